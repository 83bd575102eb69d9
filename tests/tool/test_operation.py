#!/usr/bin/env python3
"""The operation of vedette serve: audit log, access log, reloads, service manager, socket activation,
shutdown.

    test_operation.py PROGRAM [TEST...]
"""

import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from waiting import until  # noqa: E402

PROGRAM = sys.argv[1]
GUARD = 600
TOKENS = "s3cret-of-ann,ann,17,\"dev,ops\"\ns3cret-of-bob,bob,18\n"
POLICY = {"rules": [{"users": ["ann"], "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}


class Server:
    """A server that is ready; its standard error is read line by line. It has one loop, so a request is
    logged before the next one is read."""

    def __init__(self, *arguments, prefix=(), environment=None, listen=("--listen", "127.0.0.1:0"), **more):
        self.process = subprocess.Popen(
            [*prefix, PROGRAM, "serve", "--memory", "--threads", "1", *listen, *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
            **more
        )
        self.said = []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.url = self.wait_for("vedette: ready").split()[2]

    def read(self):
        for line in self.process.stderr:
            with self.changed:
                self.said.append(line)
                self.changed.notify_all()
        with self.changed:
            self.said.append(None)
            self.changed.notify_all()

    def wait_for(self, text):
        at = 0
        with self.changed:
            while True:
                while at < len(self.said):
                    if self.said[at] is None:
                        raise RuntimeError("it ended before it said %r: %r" % (text, self.said))
                    if text in self.said[at]:
                        return self.said.pop(at)
                    at += 1
                if not self.changed.wait(GUARD):
                    raise RuntimeError("it did not say %r: %r" % (text, self.said))

    def request(self, method, path, body=None, token=None, **headers):
        data = json.dumps(body).encode() if body is not None else None
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers.setdefault("Content-Type", "application/json")
        if token:
            headers["Authorization"] = "Bearer " + token
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=GUARD) as answer:
                return answer.status, answer.read().decode(errors="replace"), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Ends the server, so that all logs are written. Returns the exit status."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        code = self.process.wait(GUARD)
        self.reader.join()
        self.process.stderr.close()
        return code


def config_map(name=None, **data):
    metadata = {"name": name} if name else {"generateName": "made-"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def lines_of(path):
    with open(path) as file:
        return file.read().splitlines()


def refused(*arguments, environment=None, prefix=(), **more):
    ended = subprocess.run(
        [*prefix, PROGRAM, "serve", "--memory", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        timeout=GUARD,
        env={**os.environ, **(environment or {})},
        **more
    )
    return ended.returncode, ended.stderr


class Operation(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def place(self, name, content=None):
        path = os.path.join(self.directory, name)
        if content is not None:
            with open(path, "w") as file:
                file.write(content)
        return path

    def server(self, *arguments, **more):
        server = Server(*arguments, **more)
        self.addCleanup(lambda: server.process.poll() is None and (server.process.kill(), server.wait()))
        return server


class Audit(Operation):
    def test_metadata_of_each_request(self):
        path = self.place("audit")
        server = self.server("--audit-log", path)
        code, body, headers = server.request(
            "POST",
            "/api/v1/namespaces/default/configmaps",
            config_map(hidden="in-the-body"),
            User_Agent="me/1.0 \"x\"",
        )
        self.assertEqual(code, 201)
        name = json.loads(body)["metadata"]["name"]
        self.assertEqual(
            server.request(
                "GET", "/apis/apps/v1/namespaces/a/deployments/b/scale?pretty=0", Audit_ID="of-the-client"
            )[0],
            404,
        )
        self.assertEqual(server.request("GET", "/readyz")[0], 200)
        self.assertEqual(server.end(), 0)
        events = [json.loads(line) for line in lines_of(path)]
        self.assertEqual(len(events), 3)
        made, missing, ready = events
        for event in events:
            self.assertEqual(
                (event["kind"], event["apiVersion"], event["level"], event["stage"]),
                ("Event", "audit.k8s.io/v1", "Metadata", "ResponseComplete"),
            )
            self.assertEqual(event["sourceIPs"], ["127.0.0.1"])
            self.assertEqual(
                event["user"], {"username": "system:anonymous", "groups": ["system:unauthenticated"]}
            )
            self.assertEqual(
                event["annotations"],
                {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""},
            )
            for key in "requestReceivedTimestamp", "stageTimestamp":
                self.assertRegex(event[key], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
            self.assertLessEqual(event["requestReceivedTimestamp"], event["stageTimestamp"])
        self.assertEqual(made["auditID"], headers["Audit-Id"])
        self.assertRegex(
            made["auditID"], r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
        )
        self.assertEqual(
            (made["verb"], made["requestURI"], made["userAgent"]),
            ("create", "/api/v1/namespaces/default/configmaps", "me/1.0 \"x\""),
        )
        self.assertEqual(
            made["objectRef"],
            {"resource": "configmaps", "namespace": "default", "name": name, "apiVersion": "v1"},
        )
        self.assertEqual(made["responseStatus"], {"metadata": {}, "code": 201})
        self.assertEqual(missing["auditID"], "of-the-client")
        self.assertEqual(
            missing["objectRef"],
            {
                "resource": "deployments",
                "namespace": "a",
                "name": "b",
                "apiGroup": "apps",
                "apiVersion": "v1",
                "subresource": "scale",
            },
        )
        self.assertEqual(
            (missing["requestURI"], missing["verb"]),
            ("/apis/apps/v1/namespaces/a/deployments/b/scale?pretty=0", "get"),
        )
        self.assertEqual(
            (missing["responseStatus"]["code"], missing["responseStatus"]["reason"]), (404, "NotFound")
        )
        self.assertNotIn("objectRef", ready)
        self.assertNotIn("in-the-body", open(path).read())

    def test_who_and_what_was_decided_but_no_tokens(self):
        path = self.place("audit")
        server = self.server(
            "--audit-log",
            path,
            "--audit-level",
            "RequestResponse",
            "--token-file",
            self.place("tokens", TOKENS),
            "--authorization-policy",
            self.place("policy", json.dumps(POLICY)),
        )
        for token, code in (
            ("s3cret-of-ann", 200),
            ("s3cret-of-bob", 403),
            ("s3cret-of-none", 401),
            (None, 401),
        ):
            self.assertEqual(server.request("GET", "/api/v1/pods", token=token)[0], code)
        self.assertEqual(server.end(), 0)
        ann, bob, unknown, nobody = [json.loads(line) for line in lines_of(path)]
        self.assertEqual(
            ann["user"], {"username": "ann", "uid": "17", "groups": ["dev", "ops", "system:authenticated"]}
        )
        self.assertEqual(ann["annotations"]["authorization.k8s.io/decision"], "allow")
        self.assertEqual((bob["user"]["username"], bob["responseStatus"]["code"]), ("bob", 403))
        self.assertEqual(bob["annotations"]["authorization.k8s.io/decision"], "forbid")
        self.assertEqual((unknown["user"], unknown["responseStatus"]["code"]), ({}, 401))
        self.assertNotIn("annotations", unknown)
        self.assertEqual(
            (nobody["user"]["username"], nobody["annotations"]["authorization.k8s.io/decision"]),
            ("system:anonymous", "forbid"),
        )
        self.assertNotIn("s3cret", open(path).read())

    def test_bodies_but_none_of_secrets(self):
        path = self.place("audit")
        server = self.server("--audit-log", path, "--audit-level", "RequestResponse")
        objects = "/api/v1/namespaces/default/"
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"x": "aGlkZGVu"}}
        self.assertEqual(server.request("POST", objects + "secrets", secret)[0], 201)
        self.assertEqual(
            server.request(
                "PATCH",
                objects + "secrets/s",
                {"data": {"x": "aGlkZGVu"}},
                Content_Type="application/merge-patch+json",
            )[0],
            200,
        )
        self.assertGreaterEqual(
            server.request("PUT", objects + "secrets/s", {**secret, "data": "aGlkZGVu"})[0], 400
        )
        self.assertEqual(server.request("GET", objects + "secrets/s")[0], 200)
        self.assertEqual(server.request("POST", objects + "configmaps", config_map("a", v="1"))[0], 201)
        self.assertEqual(
            server.request(
                "PATCH",
                objects + "configmaps/a",
                {"data": {"v": "2"}},
                Content_Type="application/merge-patch+json",
            )[0],
            200,
        )
        self.assertEqual(
            server.request(
                "POST",
                objects + "configmaps",
                config_map("b", v="1"),
                Accept="application/vnd.kubernetes.protobuf",
            )[0],
            201,
        )
        self.assertEqual(server.request("DELETE", objects + "configmaps/b")[0], 200)
        self.assertEqual(server.end(), 0)
        text = open(path).read()
        self.assertNotIn("aGlkZGVu", text)
        events = [json.loads(line) for line in text.splitlines()]
        for event in events[:4]:
            self.assertEqual(event["level"], "Metadata")
            self.assertFalse("requestObject" in event or "responseObject" in event)
            self.assertNotIn("message", event["responseStatus"])
        self.assertEqual(events[4]["requestObject"], config_map("a", v="1"))
        self.assertEqual(events[5]["requestObject"], {"data": {"v": "2"}})
        self.assertEqual(events[5]["responseObject"]["data"], {"v": "2"})
        self.assertEqual(events[6]["responseObject"]["metadata"]["name"], "b")
        self.assertTrue(events[6]["responseObject"]["metadata"]["resourceVersion"])
        self.assertEqual(events[7]["responseObject"]["kind"], "Status")
        # The log can be converted into an event log, which has the objects at their revisions.
        if (
            "--from-audit"
            not in subprocess.run([PROGRAM, "record", "--help"], capture_output=True, text=True).stdout
        ):
            return
        log = self.place("recorded")
        subprocess.run(
            [PROGRAM, "record", "--from-audit", path, "--output", log],
            check=True,
            capture_output=True,
            timeout=GUARD,
        )
        recorded = open(log).read()
        self.assertIn("configmaps/default/a", recorded)
        self.assertIn(events[5]["responseObject"]["metadata"]["resourceVersion"], recorded)
        self.assertNotIn("secrets", recorded)

    def test_watches_have_two_stages(self):
        path = self.place("audit")
        server = self.server("--audit-log", path)
        with urllib.request.urlopen(server.url + "/api/v1/pods?watch=true", timeout=GUARD) as watch:
            until(lambda: os.path.getsize(path), server.process, path)
            started = json.loads(lines_of(path)[0])
            self.assertEqual(
                (started["stage"], started["verb"], started["responseStatus"]["code"]),
                ("ResponseStarted", "watch", 200),
            )
            self.assertEqual(server.end(), 0)
            watch.read()
        stages = [json.loads(line) for line in lines_of(path)]
        self.assertEqual([event["stage"] for event in stages], ["ResponseStarted", "ResponseComplete"])
        self.assertEqual(stages[0]["auditID"], stages[1]["auditID"])

    def test_a_full_disk_stops_nobody(self):
        server = self.server("--audit-log", "/dev/full")
        for _ in range(20):
            self.assertEqual(server.request("GET", "/api/v1/pods")[0], 200)
        while True:
            metrics = dict(
                line.rsplit(" ", 1)
                for line in server.request("GET", "/metrics")[1].splitlines()
                if not line.startswith("#")
            )
            if int(metrics['apiserver_audit_error_total{plugin="log"}']) >= 20:
                break
        self.assertGreaterEqual(int(metrics["apiserver_audit_event_total"]), 20)
        self.assertEqual(server.end(), 0)
        self.assertEqual(len([line for line in server.said if line and "No space left on device" in line]), 1)

    def test_standard_output_and_level_none(self):
        server = self.server("--audit-log", "-", stdout=subprocess.PIPE)
        server.request("GET", "/version")
        server.end()
        self.assertEqual(json.loads(server.process.stdout.read())["requestURI"], "/version")
        server.process.stdout.close()
        path = self.place("audit")
        server = self.server("--audit-log", path, "--audit-level", "None")
        self.assertNotIn("Audit-Id", server.request("GET", "/version")[2])
        server.end()
        self.assertFalse(os.path.exists(path))

    def test_mistakes_are_named(self):
        code, said = refused("--listen", "127.0.0.1:0", "--audit-log", "/nowhere/audit")
        self.assertEqual(
            (code, "audit log /nowhere/audit: No such file or directory" in said), (1, True), said
        )
        code, said = refused("--listen", "127.0.0.1:0", "--access-log", self.directory)
        self.assertEqual((code, "access log %s: Is a directory" % self.directory in said), (1, True), said)
        code, said = refused("--audit-level", "Everything")
        self.assertEqual((code, "--audit-level" in said), (2, True), said)


class Access(Operation):
    LINE = re.compile(
        r'^(\S+) - (\S+) \[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000)\] '
        r'"([^"]*)" (\d{3}) (\d+) "-" "([^"]*)" (\d+\.\d{6}) (\S+)$'
    )

    def test_a_line_for_each_answer(self):
        path = self.place("access")
        server = self.server("--access-log", path, "--token-file", self.place("tokens", TOKENS))
        body = server.request(
            "GET", "/api/v1/pods?limit=3", token="s3cret-of-ann", User_Agent='a "quoted" \\ name'
        )[1]
        server.request("GET", "/api/v1/pods", token="s3cret-of-none")
        with socket.create_connection(server.url.split("//")[1].split(":"), timeout=GUARD) as connection:
            connection.sendall(b"NONSENSE\r\n\r\n")
            while connection.recv(4096):
                pass
        self.assertEqual(server.end(), 0)
        lines = lines_of(path)
        first, second, third = [self.LINE.match(line).groups() for line in lines]
        self.assertEqual(
            first[:2] + first[3:5], ("127.0.0.1", "ann", "GET /api/v1/pods?limit=3 HTTP/1.1", "200")
        )
        self.assertEqual(first[6], "a \\x22quoted\\x22 \\x5C name")
        self.assertGreater(int(first[5]), len(body))
        self.assertEqual((second[1], second[4]), ("-", "401"))
        self.assertEqual((third[3], third[4]), ("-", "400"))
        self.assertNotIn("s3cret", "\n".join(lines))

    def test_logs_are_opened_anew(self):
        access, audit = self.place("access"), self.place("audit")
        server = self.server("--access-log", access, "--audit-log", audit)
        server.request("GET", "/version?first")
        until(lambda: os.path.getsize(access) and os.path.getsize(audit), server.process, access)
        for path in access, audit:
            os.rename(path, path + ".1")
        server.signal(signal.SIGHUP)
        server.wait_for("were read again")
        server.request("GET", "/version?second")
        self.assertEqual(server.end(), 0)
        for path in access, audit:
            self.assertIn("first", open(path + ".1").read())
            self.assertNotIn("second", open(path + ".1").read())
            self.assertIn("second", open(path).read())


class Manager:
    """systemd's side of a service: a socket that receives its notifications."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(GUARD)
        self.socket.bind("\0" + path[1:] if path.startswith("@") else path)
        self.environment = {"NOTIFY_SOCKET": path}

    def hear(self):
        return dict(line.split("=", 1) for line in self.socket.recv(65536).decode().splitlines())

    def hear_until(self, key):
        while True:
            said = self.hear()
            if key in said:
                return said


class ServiceManager(Operation):
    def manager(self, path):
        manager = Manager(path)
        self.addCleanup(manager.socket.close)
        return manager

    def test_ready_reloading_stopping(self):
        for path in self.place("notify"), "@vedette-test-%d" % os.getpid():
            manager = self.manager(path)
            server = self.server(environment=manager.environment)
            ready = manager.hear()
            self.assertEqual((ready["READY"], ready["STATUS"]), ("1", "Serving " + server.url))
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            server.signal(signal.SIGHUP)
            reloading = manager.hear()
            self.assertEqual(reloading["RELOADING"], "1")
            self.assertGreaterEqual(int(reloading["MONOTONIC_USEC"]), before)
            self.assertEqual(manager.hear()["READY"], "1")
            self.assertEqual(server.end(), 0)
            self.assertEqual(manager.hear()["STOPPING"], "1")

    def test_signs_of_life(self):
        manager = self.manager(self.place("notify"))
        server = self.server(environment={**manager.environment, "WATCHDOG_USEC": "100000"})
        for _ in range(3):
            self.assertEqual(manager.hear_until("WATCHDOG")["WATCHDOG"], "1")
        self.assertEqual(server.end(), 0)
        # The variables are meant for another process.
        manager = self.manager(self.place("other"))
        server = self.server(environment={**manager.environment, "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"})
        self.assertIn("READY", manager.hear())
        self.assertEqual(server.end(), 0)
        self.assertIn("STOPPING", manager.hear())

    def test_mistakes_are_named(self):
        for environment, words in (
            ({"NOTIFY_SOCKET": "relative"}, "NOTIFY_SOCKET=relative"),
            ({"NOTIFY_SOCKET": "/" + 200 * "x"}, "NOTIFY_SOCKET=/xx"),
            ({"WATCHDOG_USEC": "soon"}, "WATCHDOG_USEC=soon"),
        ):
            code, said = refused(environment=environment)
            self.assertEqual((code, words in said), (2, True), said)
        # A missing notification socket does not keep the server from serving.
        server = self.server(environment={"NOTIFY_SOCKET": self.place("nobody")})
        self.assertEqual(server.request("GET", "/readyz")[0], 200)
        self.assertEqual(server.end(), 0)

    # A shell puts the sockets where systemd has them, and knows the process id that the server will have.
    def handed_over(self, *sockets, count=None):
        moves = " ".join("exec %d<&%d;" % (3 + i, given.fileno()) for i, given in enumerate(sockets))
        return {
            "prefix": ["bash", "-c", moves + ' LISTEN_PID=$$ exec "$@"', "bash"],
            "pass_fds": [given.fileno() for given in sockets],
            "environment": {"LISTEN_FDS": str(len(sockets) if count is None else count)},
        }

    def test_a_socket_that_was_handed_over(self):
        with socket.create_server(("127.0.0.1", 0)) as given:
            port = given.getsockname()[1]
            server = self.server(listen=(), **self.handed_over(given))
            self.assertEqual(server.url, "http://127.0.0.1:%d" % port)
            self.assertEqual(server.request("GET", "/readyz")[0], 200)
            self.assertEqual(server.end(), 0)

    def test_a_socket_of_the_file_system(self):
        path = self.place("socket")
        with socket.socket(socket.AF_UNIX) as given:
            given.bind(path)
            given.listen()
            server = self.server("--access-log", self.place("access"), listen=(), **self.handed_over(given))
            self.assertEqual(server.url, "unix:" + path)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                client.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                self.assertIn(b"200 OK", client.recv(4096))
            self.assertEqual(server.end(), 0)
            self.assertTrue(os.path.exists(path))  # the process that made it removes it
            self.assertRegex(lines_of(self.place("access"))[0], "^- - system:anonymous ")

    def test_sockets_that_cannot_be_served(self):
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(
            ("127.0.0.1", 0)
        ) as two, socket.create_server(("0.0.0.0", 0)) as open_to_all, socket.socket(
            socket.AF_INET, socket.SOCK_DGRAM
        ) as datagrams:
            for sockets, arguments, words in (
                ((one, two), (), "LISTEN_FDS passes 2 sockets"),
                ((datagrams,), (), "no stream socket that listens"),
                ((open_to_all,), (), "without authentication only loopback addresses"),
                ((one,), ("--listen", "127.0.0.1:0"), "which excludes --listen"),
            ):
                code, said = refused(*arguments, **self.handed_over(*sockets))
                self.assertEqual((code, words in said), (2, True), said)
        code, said = refused(**self.handed_over(count=1))
        self.assertEqual((code, "file descriptor 3 is not open" in said), (2, True), said)
        # The variables are meant for another process.
        server = self.server(environment={"LISTEN_FDS": "2", "LISTEN_PID": "1"})
        self.assertEqual(server.end(), 0)


class Size(Operation):
    def test_what_only_clients_need_is_not_loaded(self):
        server = self.server()
        with open("/proc/%d/maps" % server.process.pid) as maps:
            loaded = maps.read()
        self.assertIn("libcrypto", loaded)
        for name in ("libcurl", "libldap", "libkrb5", "libgnutls"):
            self.assertNotIn(name, loaded)


class End(Operation):
    def test_readyz_fails_first(self):
        server = self.server("--shutdown-delay", "10h")
        with urllib.request.urlopen(server.url + "/api/v1/pods?watch=true", timeout=GUARD) as watch:
            server.signal(signal.SIGTERM)
            server.wait_for("/readyz fails from now on")
            code, body, _ = server.request("GET", "/readyz")
            self.assertEqual(code, 500)
            self.assertIn("[-]shutdown failed", body)
            self.assertEqual(server.request("GET", "/livez")[0], 200)
            self.assertEqual(
                server.request("POST", "/api/v1/namespaces/default/configmaps", config_map("late"))[0], 201
            )
            server.signal(signal.SIGHUP)
            server.wait_for("were read again")
            self.assertEqual(server.end(), 0)  # a second signal ends it at once
            watch.read()  # a clean end: no IncompleteRead

    def test_the_delay_passes(self):
        server = self.server("--shutdown-delay", "50ms")
        self.assertEqual(server.end(), 0)


class Encryption(unittest.TestCase):
    """--encryption-provider-config: stored values, changed keys, invalid files."""

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def config(self, *providers, resources=("secrets",)):
        path = os.path.join(self.scratch.name, "encryption.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(
                {
                    "kind": "EncryptionConfiguration",
                    "apiVersion": "apiserver.config.k8s.io/v1",
                    "resources": [{"resources": list(resources), "providers": list(providers)}],
                },
                file,
            )
        return path

    KEYS = {
        name: {"name": name, "secret": base64.b64encode(name[:1].encode() * 32).decode()}
        for name in ("old", "new")
    }

    def gcm(self, *names):
        return {"aesgcm": {"keys": [self.KEYS[name] for name in names]}}

    def start(self, config):
        """Several configurations in succession on one data directory."""
        process = subprocess.Popen(
            [
                PROGRAM,
                "serve",
                "--data-dir",
                os.path.join(self.scratch.name, "data"),
                "--listen",
                "127.0.0.1:0",
                "--encryption-provider-config",
                config,
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        for line in process.stderr:
            if line.startswith("vedette: ready"):
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return process, line.split()[2]
        raise RuntimeError("it ended before it was ready")

    def end(self, process):
        process.terminate()
        self.assertEqual(process.wait(GUARD), 0)

    def secret(self, url, value=None):
        path = url + "/api/v1/namespaces/default/secrets"
        if value is None:
            with urllib.request.urlopen(path + "/word", timeout=GUARD) as answer:
                return json.load(answer)
        body = json.dumps({"metadata": {"name": "word"}, "stringData": {"word": value}}).encode()
        with urllib.request.urlopen(
            urllib.request.Request(path, body, {"Content-Type": "application/json"}), timeout=GUARD
        ) as answer:
            return json.load(answer)

    def replace(self, url, value):
        request = urllib.request.Request(
            url + "/api/v1/namespaces/default/secrets/word",
            json.dumps(value).encode(),
            {"Content-Type": "application/json"},
            method="PUT",
        )
        with urllib.request.urlopen(request, timeout=GUARD) as answer:
            return json.load(answer)

    def on_disk(self, text):
        found = False
        for folder, _, names in os.walk(os.path.join(self.scratch.name, "data")):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    found |= text in file.read()
        return found

    def test_a_key_that_changes(self):
        """rules: R-145, R-135"""
        process, url = self.start(self.config(self.gcm("old")))
        created = self.secret(url, "swordfish")
        self.end(process)
        self.assertTrue(self.on_disk(b"k8s:enc:aesgcm:v1:old:"))
        self.assertFalse(self.on_disk(base64.b64encode(b"swordfish")))
        process, url = self.start(self.config(self.gcm("new", "old")))
        there = self.secret(url)
        self.assertEqual(there["data"], created["data"])
        self.assertFalse(self.on_disk(b"k8s:enc:aesgcm:v1:new:"))
        written = self.replace(url, there)  # only the stored form changes
        self.assertGreater(
            int(written["metadata"]["resourceVersion"]), int(there["metadata"]["resourceVersion"])
        )
        self.assertEqual(
            self.replace(url, written)["metadata"]["resourceVersion"], written["metadata"]["resourceVersion"]
        )
        self.end(process)
        self.assertTrue(self.on_disk(b"k8s:enc:aesgcm:v1:new:"))
        process, url = self.start(self.config(self.gcm("new")))
        self.assertEqual(self.secret(url)["data"], created["data"])
        self.end(process)

    def test_without_the_key(self):
        process, url = self.start(self.config(self.gcm("old")))
        self.secret(url, "swordfish")
        self.end(process)
        process, url = self.start(self.config(self.gcm("new")))
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.secret(url)
        with caught.exception:
            self.assertEqual(caught.exception.code, 500)
        with urllib.request.urlopen(url + "/metrics", timeout=GUARD) as answer:
            text = answer.read().decode()
        self.assertRegex(
            text,
            r'apiserver_storage_transformation_operations_total\{status="Internal",'
            r'transformation_type="from_storage"\} [1-9]',
        )
        self.end(process)

    def test_files_that_are_wrong(self):
        small = {"aesgcm": {"keys": [{"name": "a", "secret": "AAAA"}]}}
        for providers, resources, words in (
            ([{"aescbc": {}}], ["secrets"], "aescbc is not supported"),
            ([{"aesgcm": {}}], ["secrets"], "keys is missing"),
            ([small], ["secrets"], "16, 24 or 32 bytes"),
            ([self.gcm("old")], ["nothing"], "unknown resource of the core group"),
            ([], ["secrets"], "providers is missing or empty"),
            ([self.gcm("old")], [], "resources is missing or empty"),
        ):
            config = self.config(*providers, resources=resources)
            done = subprocess.run(
                [
                    PROGRAM,
                    "serve",
                    "--memory",
                    "--listen",
                    "127.0.0.1:0",
                    "--encryption-provider-config",
                    config,
                ],
                capture_output=True,
                text=True,
                timeout=GUARD,
            )
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(words, done.stderr)
            self.assertIn(config, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
