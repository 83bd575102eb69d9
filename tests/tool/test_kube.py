#!/usr/bin/env python3
"""vedette record and vedette verify of a Kubernetes endpoint: vedette serve, alone, killed, and behind a
proxy that falsifies answers.

    test_kube.py PROGRAM [TEST...]
"""
import base64
import json
import os
import pty
import random
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lying_proxy import LyingProxy  # noqa: E402
from waiting import CHANGES, GUARD, until  # noqa: E402

PROGRAM = sys.argv[1]


class Server:
    def __init__(self, *arguments, listen="127.0.0.1:0"):
        self.process = subprocess.Popen([PROGRAM, "serve", "--listen", listen, *arguments], stderr=subprocess.PIPE, text=True)
        said = ""
        for line in self.process.stderr:
            said += line
            if line.startswith("vedette: ready"):
                self.url = line.split()[2]
                break
        else:
            raise RuntimeError("the server did not start: " + said)
        self.reader = threading.Thread(target=self.drain, daemon=True)
        self.reader.start()

    def drain(self):
        for _ in self.process.stderr:
            pass

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()

    def request(self, method, path, body=None, content="application/json"):
        request = urllib.request.Request(self.url + path, data=json.dumps(body).encode() if body else None, method=method, headers={"Content-Type": content})
        try:
            with urllib.request.urlopen(request, timeout=GUARD) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, None

    def await_change(self, path, revision):
        """Waits for the next change of a list after a revision."""
        with urllib.request.urlopen("%s%s?watch=true&resourceVersion=%s" % (self.url, path, revision), timeout=GUARD) as answer:
            return answer.readline()

    def revision(self):
        code, answer = self.request("GET", "/api/v1/configmaps?limit=1")
        return int(answer["metadata"]["resourceVersion"]) if code == 200 else 0

    def write(self, name, value, namespace="default"):
        path = "/api/v1/namespaces/%s/configmaps" % namespace
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": str(value)}}
        code, answer = self.request("PUT", path + "/" + name, body)
        if code == 404:
            code, answer = self.request("POST", path, body)
        return int(answer["metadata"]["resourceVersion"]) if answer else None


class Writer(threading.Thread):
    """Writes and deletes until told to stop; servers may be restarted meanwhile."""

    def __init__(self, server, seed=1):
        super().__init__(daemon=True)
        self.server, self.random, self.stops, self.count = server, random.Random(seed), threading.Event(), 0
        self.start()

    def run(self):
        while not self.stops.wait(0.002):
            name = "k%d" % self.random.randrange(12)
            try:
                if self.random.random() < 0.25:
                    self.server.request("DELETE", "/api/v1/namespaces/default/configmaps/" + name)
                else:
                    self.server.write(name, self.random.random())
                self.count += 1
                CHANGES.tell()
            except OSError:
                continue

    def stop(self):
        self.stops.set()
        self.join()


def run(*arguments, timeout=GUARD):
    if arguments[0] == "record" and "--server" in arguments:
        arguments = ("record", "--watch-timeout", "3s", *arguments[1:])
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=timeout)


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_log(path):
    return [json.loads(line) for line in text_of(path).splitlines()]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.servers = []

    def tearDown(self):
        for server in self.servers:
            server.kill()
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def serve(self, *arguments, **options):
        self.servers.append(Server(*(arguments or ("--memory",)), **options))
        return self.servers[-1]


class Recording(Case):
    def test_the_state_and_every_revision_once(self):
        server = self.serve()
        for i in range(7):
            server.write("before%d" % i, i)
        log = self.path("log.ndjson")
        recorder = subprocess.Popen([PROGRAM, "record", "--watch-timeout", "3s", "--server", server.url, "--output", log, "-q"], stderr=subprocess.PIPE, text=True)
        self.assertTrue(until(lambda: os.path.exists(log) and '"snapshotEnd"' in text_of(log), recorder, log))
        writer = Writer(server)
        until(lambda: writer.count >= 60)
        recorder.send_signal(signal.SIGKILL)  # and continues later
        recorder.communicate()
        until(lambda: writer.count >= 90)
        writer.stop()
        server.request("POST", "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]}})
        last = server.write("after", 1)
        done = run("record", "--server", server.url, "--output", log, "-q", "--resume", "--until", str(last))
        self.assertEqual(done.returncode, 0, done.stderr)
        records = read_log(log)
        commits = [record["commit"] for record in records if "commit" in record]
        self.assertEqual(commits, sorted(set(commits)))
        first = next(record["snapshotEnd"] for record in records if "snapshotEnd" in record)
        # One write at a time, and all are received: no revision is missing.
        self.assertEqual(commits, list(range(first + 1, last + 1)))
        # A replay has the same state, and the same events for watches.
        done = run("replay", log, "--watch", "configmaps")
        self.assertEqual(done.returncode, 0, done.stderr)
        state = {}
        for event in map(json.loads, done.stdout.splitlines()):
            state.pop(event["key"], None)
            if event["type"] != "DELETED":
                state[event["key"]] = event["object"]
        _, listed = server.request("GET", "/api/v1/configmaps")
        self.assertEqual({key: value["metadata"]["resourceVersion"] for key, value in state.items()},
                         {"/registry/configmaps/default/" + item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed["items"]})
        for item in listed["items"]:
            self.assertEqual(state["/registry/configmaps/default/" + item["metadata"]["name"]]["data"], item["data"])
        self.assertIn("/registry/pods/default/p", {record.get("key") for record in records})

    def test_how_far_it_is_is_shown(self):
        server = self.serve()
        last = server.write("a", 1)
        terminal, other_end = pty.openpty()
        recorder = subprocess.Popen([PROGRAM, "record", "--watch-timeout", "3s", "--server", server.url, "--kind", "configmaps", "-o", self.path("log")], stderr=other_end)
        os.close(other_end)
        said = b""
        try:
            while b"record: at revision %d, 1 records" % last not in said:
                said += os.read(terminal, 4096)
            recorder.send_signal(signal.SIGTERM)
            while True:
                said += os.read(terminal, 4096)
        except OSError:  # the other end is closed
            os.close(terminal)
        self.assertEqual(recorder.wait(GUARD), 0, said)
        self.assertGreaterEqual(said.count(b"\rvedette record: "), 2, said)  # on one line, and a last time
        self.assertTrue(said.rstrip(b" ").endswith(b"\n"), said)
        # Without a terminal: once, at the end. The recording continues where it was.
        last = server.write("a", 2)
        done = run("record", "--server", server.url, "--kind", "configmaps", "--resume", "--until", str(last), "-o", self.path("log"))
        self.assertEqual((done.returncode, done.stderr), (0, "vedette record: at revision %d, 1 records\n" % last))
        self.assertEqual(run("record", "--server", server.url, "--kind", "configmaps", "--resume", "--until", str(last), "-q", "-o", self.path("log")).stderr, "")

    def test_pages_of_one_moment(self):
        server = self.serve()
        for i in range(1203):
            server.write("c%04d" % i, "x")
        log = self.path("log.ndjson")
        last = server.write("z", 1)
        done = run("record", "--server", server.url, "--kind", "cm", "--output", log, "-q", "--until", str(last))
        self.assertEqual(done.returncode, 0, done.stderr)
        keys = [record["key"] for record in read_log(log) if "key" in record]
        self.assertEqual(keys, ["/registry/configmaps/default/c%04d" % i for i in range(1203)] + ["/registry/configmaps/default/z"])

    def test_a_gap_ends_it_or_is_listed_again(self):
        server = self.serve()
        server.write("stays", 1)
        server.write("goes", 1)
        server.write("changes", 1)
        log = self.path("log.ndjson")
        start = server.write("a", 1)
        self.assertEqual(run("record", "--server", server.url, "--kind", "configmaps", "-q", "-o", log, "--until", str(start)).returncode, 0)
        for i in range(4):  # the third event is 410 Expired instead
            server.write("changes", i)
        server.request("DELETE", "/api/v1/namespaces/default/configmaps/goes")
        listed = server.revision()

        def record(*arguments):
            proxy = LyingProxy(server.url, "error")
            try:
                return run("record", "--server", proxy.url, "--kind", "configmaps", "-o", log, "--resume", *arguments), proxy.told
            finally:
                proxy.close()

        gap, told = record("-q", "--until", str(listed))
        self.assertEqual((gap.returncode, told), (1, 1), gap.stderr)
        self.assertIn("was compacted before it could be recorded", gap.stderr)
        done, told = record("--relist", "--until", str(listed))
        self.assertEqual((done.returncode, told), (0, 1), done.stderr)
        self.assertIn(", listed again after a gap", done.stderr)
        # And it continues after the list.
        last = server.write("changes", "after")
        done = run("record", "--server", server.url, "--kind", "configmaps", "-q", "-o", log, "--resume", "--until", str(last))
        self.assertEqual(done.returncode, 0, done.stderr)
        records = read_log(log)
        self.assertEqual([record["compact"] for record in records if "compact" in record], [listed])
        state = {}
        for record in records:
            if "key" in record:
                state[record["key"].split("/")[-1]] = record["type"] == "PUT" and record["rev"]
        self.assertEqual(state, {"stays": state["stays"], "a": start, "changes": last, "goes": False})
        done = run("replay", log, "--watch", "configmaps", "--resume")
        self.assertEqual(done.returncode, 0, done.stderr[:500])
        self.assertIn(last, [json.loads(line).get("rev") for line in done.stdout.splitlines()])

    def test_what_cannot_be_recorded_is_said(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            done = run("record", "--server", "http://127.0.0.1:%d" % nobody.getsockname()[1], "-o", self.path("a"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("onnect", done.stderr)
        server = self.serve()
        proxy = LyingProxy(server.url, "html")
        done = run("record", "--server", proxy.url, "--kind", "configmaps", "-o", self.path("b"))
        proxy.close()
        self.assertEqual(done.returncode, 1)
        self.assertIn("configmaps:", done.stderr)
        done = run("record", "--server", server.url, "--kind", "unicorns", "-o", self.path("c"))
        self.assertEqual(done.returncode, 1)
        self.assertIn('"unicorns"', done.stderr)
        for arguments in (("--server", server.url, "--etcd", "http://127.0.0.1:1"), (), ("--server", server.url, "--cert", "x"), ("--token", "x", "--etcd", "http://127.0.0.1:1")):
            self.assertEqual(run("record", "-o", self.path("d"), *arguments).returncode, 2, arguments)


class Kubeconfig(Case):
    def test_who_and_where(self):
        server = self.serve()
        proxy = LyingProxy(server.url)
        last = server.write("a", 1)
        config = self.path("config")
        self.certificates("ca")
        with open(self.path("token"), "w", encoding="utf-8") as file:
            file.write("from-a-file\n")
        with open(config, "w", encoding="utf-8") as file:
            file.write("""apiVersion: v1
kind: Config
clusters:
- name: here
  cluster:
    server: %s
    certificate-authority-data: %s
- name: nowhere
  cluster: { server: "http://127.0.0.1:1" }
users:
- name: me
  user:
    token: my-token
- name: by-file
  user: { tokenFile: token }
- name: by-program
  user: { username: x, password: y }
contexts:
- { name: one, context: { cluster: here, user: me } }
- { name: two, context: { cluster: here, user: by-file } }
- { name: three, context: { cluster: here, user: by-program } }
- { name: four, context: { cluster: absent, user: me } }
current-context: one
""" % (proxy.url, base64.b64encode(text_of(self.path("ca.pem")).encode()).decode()))
        yaml = run("record", "--kubeconfig", config, "--kind", "configmaps", "-q", "-o", self.path("log1"), "--until", str(last))
        if "without libyaml" in yaml.stderr:
            self.skipTest("built without libyaml")
        self.assertEqual(yaml.returncode, 0, yaml.stderr)
        self.assertEqual({headers["Authorization"] for headers in proxy.headers}, {"Bearer my-token"})
        proxy.headers.clear()
        done = run("record", "--kubeconfig", config, "--context", "two", "--kind", "configmaps", "-q", "-o", self.path("log2"), "--until", str(last))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({headers["Authorization"] for headers in proxy.headers}, {"Bearer from-a-file"})
        proxy.close()
        for context, said in (("three", "only tokens, client certificates and exec"), ("four", '"absent"'), ("five", '"five"')):
            done = run("record", "--kubeconfig", config, "--context", context, "-o", self.path("log3"))
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
        with open(config, "w", encoding="utf-8") as file:
            file.write("a: [b\n")
        self.assertIn("line", run("record", "--kubeconfig", config, "-o", self.path("log4")).stderr)

    PROGRAM = """#!/bin/sh
echo run >>"$COUNT"
echo "$KUBERNETES_EXEC_INFO" >"$COUNT.info"
n=$(wc -l <"$COUNT")
echo '{"apiVersion":"client.authentication.k8s.io/'$1'","kind":"ExecCredential","status":{"token":"token-'$n'"'$2'}}'
"""

    def config_with_program(self, url, arguments, text=None, version="v1", more="", ca=None):
        program = self.path("who-am-i")
        with open(program, "w", encoding="utf-8") as file:
            file.write(text or self.PROGRAM)
        os.chmod(program, 0o755)
        config = self.path("config")
        with open(config, "w", encoding="utf-8") as file:
            file.write(json.dumps({"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}], "clusters": [{"name": "c", "cluster": {"server": url, **({"certificate-authority-data": ca} if ca else {})}}], "users": [
                {"name": "u", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/" + version, "command": "./who-am-i", "args": arguments, "provideClusterInfo": True, "installHint": "get it",
                                                "env": [{"name": "COUNT", "value": self.path("count")}], "interactiveMode": more or "Never"}}}]}))
        return config

    def runs_of_program(self):
        return len(text_of(self.path("count")).splitlines())

    def test_a_program_says_who_we_are(self):
        server = self.serve()
        last = server.write("a", 1)
        for version, expires, again in (("v1", "", False), ("v1beta1", ',"expirationTimestamp":"2999-01-01T00:00:00Z"', False), ("v1", ',"expirationTimestamp":"2020-01-01T00:00:00Z"', True)):
            if os.path.exists(self.path("count")):
                os.remove(self.path("count"))
            proxy = LyingProxy(server.url)
            config = self.config_with_program(proxy.url, [version, expires], version=version)
            done = run("record", "--kubeconfig", config, "--kind", "configmaps", "-q", "-o", self.path("log" + str(len(proxy.url) + len(expires) + len(version))), "--until", str(last))
            self.assertEqual(done.returncode, 0, done.stderr)
            tokens = {headers["Authorization"] for headers in proxy.headers}
            proxy.close()
            # One that has expired already is used until the program has run again, after a pause.
            runs = self.runs_of_program()
            self.assertTrue({"Bearer token-1"} <= tokens <= {"Bearer token-%d" % (i + 1) for i in range(runs)}, tokens)
            self.assertTrue(again or runs == 1, runs)
            info = json.loads(text_of(self.path("count.info")))
            self.assertEqual((info["apiVersion"], info["spec"]["interactive"], info["spec"]["cluster"]["server"]), ("client.authentication.k8s.io/" + version, False, proxy.url))

    def test_a_program_is_asked_again_when_its_token_is_refused(self):
        tokens = self.path("tokens")
        with open(tokens, "w", encoding="utf-8") as file:
            file.write("token-1,ann,1\nroot,root,2,system:masters\n")
        server = self.serve("--memory", "--token-file", tokens)
        proxy = LyingProxy(server.url)
        process = subprocess.Popen([PROGRAM, "verify", "--kubeconfig", self.config_with_program(proxy.url, ["v1", ""]), "--kind", "configmaps", "--watch-timeout", "3s", "--output", "json", "-q"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until(lambda: proxy.streams >= 2, process)
        with open(tokens, "w", encoding="utf-8") as file:
            file.write("token-2,ann,1\ntoken-3,ann,1\n")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: self.runs_of_program() >= 2, process, self.path("count"))
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=GUARD)
        proxy.close()
        self.assertEqual(process.returncode, 0, out + said)

    def test_programs_that_cannot_be_used(self):
        for text, arguments, said in (("#!/bin/sh\nexit 7\n", [], "status 7"), ("#!/bin/sh\nkill -9 $$\n", [], "signal 9"), ("#!/bin/sh\nyes\n", [], "1 MiB"), ("#!/bin/sh\necho '{}'\n", [], "not an ExecCredential"),
                                      (None, ["v1beta1", ""], "apiVersion differs"), (None, ["v1", ',"clientCertificateData":"x"'], "must be given together"), (None, ["v1", ',"expirationTimestamp":"soon"'], "not a time"),
                                      ("#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"a b\"}}'\n", [], "invalid characters"),
                                      ("#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\"}'\n", [], "neither")):
            done = run("record", "--kubeconfig", self.config_with_program("http://127.0.0.1:1", arguments, text), "-o", self.path("log"))
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
        config = self.config_with_program("http://127.0.0.1:1", [])
        os.remove(self.path("who-am-i"))
        self.assertIn("get it", run("record", "--kubeconfig", config, "-o", self.path("log")).stderr)
        self.assertIn("terminal", run("record", "--kubeconfig", self.config_with_program("http://127.0.0.1:1", [], more="Always"), "-o", self.path("log")).stderr)

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=self.folder.name)

    def certificates(self, ca, *names):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", ca + ".key", "-out", ca + ".pem", "-subj", "/CN=" + ca)
        for name in names:
            self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name)
            with open(self.path("ext"), "w", encoding="utf-8") as file:
                file.write("subjectAltName=IP:127.0.0.1\n")
            self.openssl("x509", "-req", "-in", name + ".csr", "-CA", ca + ".pem", "-CAkey", ca + ".key", "-CAcreateserial", "-out", name + ".pem", "-extfile", "ext", "-days", "30")

    def demanding_proxy(self):
        """A TLS server that accepts only clients with a certificate of our CA."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path("server.pem"), self.path("server.key"))
        context.load_verify_locations(self.path("ca.pem"))
        context.verify_mode = ssl.CERT_REQUIRED
        return LyingProxy(self.serve().url, tls=context)

    GIVER = """#!/bin/sh
echo run >>"$COUNT"
n=$(wc -l <"$COUNT")
while [ ! -f answer-$n ]; do n=$((n - 1)); done
sed "s/SOON/$(date -u -d '2 seconds' +%Y-%m-%dT%H:%M:%SZ)/" answer-$n
"""

    def answers(self, *said):
        """The program's output the first time, the second time, ...: (certificate, key,
        expirationTimestamp)."""
        for i in range(1, 9):
            for name in ("answer-%d" % i, "count"):
                if os.path.exists(self.path(name)):
                    os.remove(self.path(name))
        for i, (certificate, key, expires) in enumerate(said):
            status = {"clientCertificateData": text_of(self.path(certificate)), "clientKeyData": text_of(self.path(key)), **({"expirationTimestamp": expires} if expires else {})}
            with open(self.path("answer-%d" % (i + 1)), "w", encoding="utf-8") as file:
                json.dump({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}, file)

    def config_with_giver(self, proxy, text=None):
        return self.config_with_program(proxy.url, [], text or self.GIVER.replace("answer-", self.path("answer-")),
                                        ca=base64.b64encode(text_of(self.path("ca.pem")).encode()).decode())

    def test_a_program_gives_certificates(self):
        self.certificates("ca", "server", "one", "two")
        one, two = (("one.pem", "one.key"), ("two.pem", "two.key"))
        for number, (said, seen, runs) in enumerate(((((*one, None),), {"one"}, 1),
                                                     (((*one, "2999-01-01T00:00:00Z"), (*two, None)), {"one"}, 1),
                                                     (((*one, "2020-01-01T00:00:00Z"), (*two, None)), {"one", "two"}, None))):
            proxy = self.demanding_proxy()
            self.answers(*said)
            done = run("record", "--kubeconfig", self.config_with_giver(proxy), "--kind", "namespaces", "-q", "-o", self.path("log%d" % number), "--until", "2")
            proxy.close()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(proxy.peers and set(proxy.peers) <= seen, proxy.peers)
            if runs:
                self.assertEqual((proxy.peers[-1] == "two", self.runs_of_program()), ("two" in seen, runs))
            self.assertNotIn("Authorization", {name for headers in proxy.headers for name in headers})

    def test_a_certificate_is_renewed_when_it_expires(self):
        self.certificates("ca", "server", "one", "two")
        proxy = self.demanding_proxy()
        self.answers(("one.pem", "one.key", "SOON"), ("two.pem", "two.key", None))
        process = subprocess.Popen([PROGRAM, "record", "--kubeconfig", self.config_with_giver(proxy), "--kind", "namespaces", "-q", "--watch-timeout", "3s", "-o", self.path("log")],
                                   stderr=subprocess.PIPE, text=True)
        until(lambda: proxy.peers.count("two") >= 3, process)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=GUARD)[1]
        proxy.close()
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(proxy.peers, sorted(proxy.peers))  # after the renewal no client uses the old one
        self.assertEqual(self.runs_of_program(), 2)

    def test_certificates_that_cannot_be_used(self):
        self.certificates("ca", "server", "one", "two")
        self.certificates("other", "stranger")
        with open(self.path("garbage"), "w", encoding="utf-8") as file:
            file.write("-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n")
        proxy = self.demanding_proxy()
        for certificate, key in (("garbage", "one.key"), ("one.pem", "garbage"), ("one.pem", "two.key"), ("stranger.pem", "stranger.key")):
            self.answers((certificate, key, None))
            done = run("record", "--kubeconfig", self.config_with_giver(proxy), "--kind", "namespaces", "-q", "-o", self.path("log-" + certificate + key), "--until", "2")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertTrue(done.stderr.startswith("vedette record: "), done.stderr)
            self.assertLessEqual(self.runs_of_program(), 3)
        for text, said in (("#!/bin/sh\necho certificates\n", "not an ExecCredential"), ("#!/bin/sh\nexit 3\n", "status 3"), ("#!/bin/sh\nhead -c 3000 /dev/urandom\n", "not an ExecCredential")):
            done = run("record", "--kubeconfig", self.config_with_giver(proxy, text), "--kind", "namespaces", "-q", "-o", self.path("log"), "--until", "2")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(said, done.stderr)
        self.assertEqual(proxy.peers, [])
        proxy.close()

    def test_tls_and_client_certificates(self):
        self.certificates("ca", "server", "client")
        server = self.demanding_proxy()
        arguments = ("--kind", "namespaces", "-q", "--until", "2")
        done = run("record", "--server", server.url, "-o", self.path("a"), *arguments)
        self.assertEqual(done.returncode, 1)
        self.assertIn("certificate", done.stderr)
        done = run("record", "--server", server.url, "--cacert", self.path("ca.pem"), "-o", self.path("b"), *arguments)
        self.assertEqual(done.returncode, 1, done.stderr)  # no credential
        done = run("record", "--server", server.url, "--cacert", self.path("ca.pem"), "--cert", self.path("client.pem"), "--key", self.path("client.key"), "-o",
                   self.path("c"), *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        data = {name: base64.b64encode(text_of(self.path(name)).encode()).decode() for name in ("ca.pem", "client.pem", "client.key")}
        with open(self.path("config"), "w", encoding="utf-8") as file:  # JSON is YAML
            json.dump({"clusters": [{"name": "a", "cluster": {"server": server.url, "certificate-authority-data": data["ca.pem"]}}],
                       "users": [{"name": "b", "user": {"client-certificate-data": data["client.pem"], "client-key-data": data["client.key"]}}],
                       "contexts": [{"name": "c", "context": {"cluster": "a", "user": "b"}}], "current-context": "c"}, file)
        done = run("record", "--kubeconfig", self.path("config"), "-o", self.path("d"), *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        server.close()


class Verifying(Case):
    def verify(self, url, *arguments):
        return subprocess.Popen([PROGRAM, "verify", "--server", url, "--output", "json", "-q", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def lie(self, lie, guarantees):
        server = self.serve()
        server.write("k0", 0)
        proxy = LyingProxy(server.url, lie)
        process = self.verify(proxy.url, "--kind", "configmaps")
        writer = Writer(server)
        out, said = process.communicate(timeout=GUARD)
        writer.stop()
        proxy.close()
        self.assertEqual(process.returncode, 1, said)
        self.assertGreater(proxy.told, 0)
        first = json.loads(out.splitlines()[0])
        self.assertIn(first["violation"], guarantees, out)
        self.assertGreater(first["revision"], 0)

    def test_a_dropped_event(self):
        self.lie("drop", {"reliable", "resumable", "bookmarkable"})

    def test_a_doubled_event(self):
        self.lie("double", {"unique", "atomic"})

    def test_reordered_events(self):
        self.lie("reorder", {"ordered", "reliable", "resumable", "unique"})

    def test_an_early_bookmark(self):
        self.lie("bookmark", {"bookmarkable"})

    def test_a_stale_list(self):
        self.lie("stale", {"list"})

    def test_silent_when_connections_are_cut(self):
        server = self.serve()
        proxy = LyingProxy(server.url, "cut")
        process = self.verify(proxy.url, "--kind", "configmaps")
        writer = Writer(server)
        until(lambda: proxy.told >= 5, process)
        proxy.lie = None
        writer.stop()
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=GUARD)
        proxy.close()
        self.assertEqual(process.returncode, 0, out + said)
        result = json.loads(out.splitlines()[-1])
        self.assertEqual(result["result"], "ok")
        self.assertGreater(result["reconnects"], 0)
        self.assertGreater(result["events"], 0)

    def test_silent_when_the_server_is_killed(self):
        data = self.path("data")
        server = self.serve("--data-dir", data)
        proxy = LyingProxy(server.url)
        process = self.verify(proxy.url)
        until(lambda: proxy.streams >= 2, process)
        writer = Writer(server)
        for _ in range(3):
            count = writer.count
            until(lambda: writer.count >= count + 40, process)
            server.kill()
            again = Server("--data-dir", data, listen=server.url.split("//")[1])
            server.process, server.reader = again.process, again.reader
        count = writer.count
        until(lambda: writer.count >= count + 40, process)
        writer.stop()
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=GUARD)
        proxy.close()
        self.assertEqual(process.returncode, 0, out + said)
        self.assertEqual(json.loads(out.splitlines()[-1])["result"], "ok")

    def assert_nothing_left(self, server):
        while True:  # the deletion of a namespace takes some time
            _, namespaces = server.request("GET", "/api/v1/namespaces")
            if not self.left_behind(server):
                return
            server.await_change("/api/v1/namespaces", namespaces["metadata"]["resourceVersion"])

    def left_behind(self, server):
        code, namespaces = server.request("GET", "/api/v1/namespaces")
        self.assertEqual(code, 200)
        code, objects = server.request("GET", "/api/v1/configmaps")
        self.assertEqual(code, 200)
        names = [item["metadata"]["name"] for item in namespaces["items"]] + [item["metadata"].get("namespace", "") for item in objects["items"]]
        return [name for name in names if name.startswith("vedette-verify-")]

    def drive_and_lie(self, lie, guarantees):
        server = self.serve()
        proxy = LyingProxy(server.url, lie)
        process = self.verify(proxy.url, "--kind", "configmaps", "--drive", "--writers", "2")
        out, said = process.communicate(timeout=GUARD)
        proxy.close()
        self.assertEqual(process.returncode, 1, out + said)
        self.assertGreater(proxy.told, 0)
        self.assertIn(json.loads(out.splitlines()[0])["violation"], guarantees, out)
        self.assert_nothing_left(server)

    def test_driving_finds_a_dropped_event(self):
        self.drive_and_lie("drop", {"reliable", "resumable", "bookmarkable"})

    def test_driving_finds_a_doubled_event(self):
        self.drive_and_lie("double", {"unique", "atomic"})

    def test_driving_finds_reordered_events(self):
        self.drive_and_lie("reorder", {"ordered", "reliable", "resumable", "unique"})

    def test_driving_finds_a_stale_list(self):
        self.drive_and_lie("stale", {"list"})

    def test_driving_a_server_that_is_killed(self):
        data = self.path("data")
        server = self.serve("--data-dir", data)
        proxy = LyingProxy(server.url)
        process = self.verify(proxy.url, "--kind", "configmaps", "--kind", "namespaces", "--drive")
        for kills in range(4):  # drives it before each kill, and after the last one
            wanted = (server.revision() if kills else 0) + 60
            until(lambda: server.revision() >= wanted, process)
            if kills == 3:
                break
            server.kill()
            again = Server("--data-dir", data, listen=server.url.split("//")[1])
            server.process, server.reader = again.process, again.reader
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=GUARD)
        proxy.close()
        self.assertEqual(process.returncode, 0, out + said)
        result = json.loads(out.splitlines()[-1])
        self.assertEqual(result["result"], "ok")
        self.assertGreater(result["writesSeen"], 50)
        self.assert_nothing_left(server)

    def test_what_cannot_be_driven_is_said(self):
        server = self.serve()
        done = run("verify", "--server", server.url, "--kind", "pods", "--drive")
        self.assertEqual(done.returncode, 1)
        self.assertIn("configmaps", done.stderr)
        self.assert_nothing_left(server)

    def test_usage(self):
        self.assertEqual(run("verify", "--context", "x", "--server", "http://127.0.0.1:1").returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=1)
