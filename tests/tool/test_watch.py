#!/usr/bin/env python3
"""vedette watch through a proxy that injects faults, in front of vedette serve: it never ends, prints every
revision once and in order, and after a loss of history the difference.

    test_watch.py PROGRAM [TEST...]

PEERS: folder with kube-apiserver, etcd and etcdctl, for the test with a real kube-apiserver; without them it
is skipped.
"""

import json
import os
import random
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.parse
import urllib.request

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "..", "support"), os.path.join(here, "..", "integration")]
from kube_faults import FaultProxy  # noqa: E402
from kube_server import TOKENS, KubeServer, write  # noqa: E402
from waiting import CHANGES, GUARD, until  # noqa: E402

PROGRAM = sys.argv[1]
PATH = "/api/v1/namespaces/default/configmaps"


class Lines(threading.Thread):
    """The lines of a stream, as they arrive."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream, self.lines = stream, []
        self.start()

    def run(self):
        for line in self.stream:
            self.lines.append(line)
            CHANGES.tell()


class Server:
    def __init__(self):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--memory", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
        )
        self.log = Lines(self.process.stderr)
        if not until(lambda: self.ready(), self.process):
            raise RuntimeError("the server did not start: " + "".join(self.log.lines))
        self.url = self.ready().split()[2]
        self.names = 0

    def ready(self):
        return next((line for line in self.log.lines if line.startswith("vedette: ready")), None)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.join()
        self.process.stderr.close()

    def request(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + path,
            data=json.dumps(body).encode() if body else None,
            method=method,
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=GUARD) as answer:
            return json.load(answer)

    def write(self, name, value):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}}
        try:
            answer = self.request("PUT", PATH + "/" + name, body)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            answer = self.request("POST", PATH, body)
        return int(answer["metadata"]["resourceVersion"])

    def remove(self, name):
        self.request("DELETE", PATH + "/" + name)

    def objects(self):
        """Returns the revisions by name, and that of the list."""
        listed = self.request("GET", "/api/v1/configmaps")
        return {
            item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in listed["items"]
        }, int(listed["metadata"]["resourceVersion"])


class Watching(unittest.TestCase):
    """A running watch and what it has printed."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def watch(self, *arguments):
        self.process = subprocess.Popen(
            [PROGRAM, "watch", "configmaps", "-A", "--initial", "-o", "json", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)

    def events(self):
        return [json.loads(line) for line in list(self.out.lines)]

    def revisions(self):
        return [int(event["object"]["metadata"]["resourceVersion"]) for event in self.events()]

    def state(self, namespace="default"):
        """Returns the revisions by name."""
        state = {}
        for event in self.events():
            meta = event["object"]["metadata"]
            if meta["namespace"] != namespace:
                continue
            if event["type"] == "DELETED":
                state.pop(meta["name"], None)
            else:
                state[meta["name"]] = int(meta["resourceVersion"])
        return state

    def await_revision(self, revision):
        self.assertTrue(
            until(lambda: revision in self.revisions(), self.process),
            "".join(self.err.lines) + str(self.revisions()[-5:]),
        )

    def await_lines(self, text, count=1):
        self.assertTrue(
            until(lambda: sum(text in line for line in self.err.lines) >= count, self.process), self.err.lines
        )

    def end(self):
        self.assertIsNone(self.process.poll(), self.err.lines)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(GUARD)
        self.out.join()
        self.err.join()
        self.process.stdout.close()
        self.process.stderr.close()


class WatchTest(Watching):
    def setUp(self):
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.close)
        url = urllib.parse.urlsplit(self.server.url)
        self.proxy = FaultProxy(url.hostname, url.port)
        self.addCleanup(self.proxy.close)
        self.server.write("before", "1")

    def change(self, count, name="k"):
        for i in range(count):
            self.server.write("%s%d" % (name, i % 7), str(i))
            if i % 5 == 4:
                self.server.remove("%s%d" % (name, i % 7))

    def test_cuts_and_refusals(self):
        self.proxy.refuse(0.67, [429, 502])
        self.watch("--server", self.proxy.url)
        first = self.server.objects()[1]
        self.await_revision(first)
        for round in range(6):
            self.proxy.cut(1)
            self.change(15)
            last = self.server.write("last", str(round))
            self.await_revision(last)
        self.end()
        # One write at a time, and nothing was forgotten: every revision, once.
        self.assertEqual(self.revisions(), list(range(first, last + 1)))
        self.assertEqual(self.state(), self.server.objects()[0])
        self.assertGreater(self.proxy.counts["429"] + self.proxy.counts["502"], 0)
        self.assertGreater(self.proxy.counts["cuts"], 0)
        notes = [line for line in self.err.lines if "vedette watch: " in line]
        self.assertTrue(
            notes and all("resuming after revision" in line or "retrying" in line for line in notes), notes
        )

    def test_retry_after_is_obeyed(self):
        self.watch("--server", self.proxy.url)
        self.await_revision(self.server.objects()[1])
        self.proxy.refuse(1, [503], 1)
        self.proxy.cut_all()
        self.await_lines("resuming after revision")
        refused = self.proxy.counts["503"]
        self.proxy.heal()
        self.await_revision(self.server.write("a", "1"))
        self.assertLessEqual(self.proxy.counts["503"] - refused, 3)
        self.end()

    def gone(self, forget):
        self.server.write("stays", "1")
        self.server.write("goes", "1")
        self.watch("--server", self.proxy.url)
        self.await_revision(self.server.write("changes", "1"))
        self.assertTrue(until(lambda: self.proxy.stats()["open"] == 1, again=0.05))
        forget()
        self.server.remove("goes")
        self.server.write("changes", "2")
        self.proxy.cut_all()
        self.await_lines("is no longer in the server's history; listing again")
        last = self.server.write("new", "1")
        self.await_revision(last)
        self.end()
        self.assertEqual(self.state(), self.server.objects()[0])
        # A removed object that is known by the list alone has the revision of the list.
        revisions = [
            int(event["object"]["metadata"]["resourceVersion"])
            for event in self.events()
            if event["type"] != "DELETED"
        ]
        self.assertEqual(len(revisions), len(set(revisions)), revisions)

    def test_410_as_a_status(self):
        self.gone(lambda: self.proxy.gone(2))

    def test_410_as_an_event(self):
        self.gone(lambda: self.proxy.gone_event(1))

    def test_a_token_file_that_is_replaced(self):
        token = os.path.join(self.folder.name, "token")

        def write(text):
            with open(token + ".new", "w", encoding="utf-8") as file:
                file.write(text + "\n")
            os.rename(token + ".new", token)

        write("one")
        self.proxy.accept({"one"})
        self.watch("--server", self.proxy.url, "--token-file", token)
        first = self.server.objects()[1]
        self.await_revision(first)
        for new in ("two", "three"):
            self.proxy.accept({new})
            self.proxy.cut_all()
            self.change(3)
            self.await_lines("resuming after revision")
            write(new)
            last = self.server.write("last", new)
            self.await_revision(last)
        self.end()
        self.assertEqual(self.revisions(), list(range(first, last + 1)))
        self.assertGreater(self.proxy.counts["401"], 0)

    def test_a_kubeconfig_names_server_token_and_namespace(self):
        config = os.path.join(self.folder.name, "config")
        with open(config, "w", encoding="utf-8") as file:  # JSON is YAML
            json.dump(
                {
                    "clusters": [
                        {"name": "c", "cluster": {"server": self.proxy.url}},
                        {"name": "nowhere", "cluster": {"server": "http://127.0.0.1:1"}},
                    ],
                    "users": [
                        {"name": "u", "user": {"token": "right"}},
                        {"name": "w", "user": {"token": "wrong"}},
                    ],
                    "contexts": [
                        {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "default"}},
                        {"name": "refused", "context": {"cluster": "c", "user": "w"}},
                        {"name": "elsewhere", "context": {"cluster": "nowhere", "user": "u"}},
                    ],
                    "current-context": "here",
                },
                file,
            )
        self.proxy.accept({"right"})
        self.watch("--kubeconfig", config)
        self.await_revision(self.server.objects()[1])
        self.end()

        def get(*arguments):
            return subprocess.run(
                [PROGRAM, "get", "configmaps", "-o", "name", *arguments],
                capture_output=True,
                text=True,
                timeout=GUARD,
            )

        done = get("--kubeconfig", config)
        self.assertEqual((done.returncode, done.stdout), (0, "configmap/before\n"), done.stderr)
        done = get("--kubeconfig", config, "--context", "elsewhere", "--server", self.proxy.url)
        self.assertEqual((done.returncode, done.stdout), (0, "configmap/before\n"), done.stderr)
        done = get("--kubeconfig", config, "--context", "elsewhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("127.0.0.1:1", done.stderr)
        for command in ("get", "watch"):
            done = subprocess.run(
                [PROGRAM, command, "configmaps", "--kubeconfig", config, "--context", "refused"],
                capture_output=True,
                text=True,
                timeout=GUARD,
            )
            self.assertEqual(done.returncode, 1)
            self.assertIn("401", done.stderr)
        for arguments, said in (
            (("--context", "absent", "--kubeconfig", config), '"absent"'),
            (("--kubeconfig", config + "-absent"), config),
        ):
            done = get(*arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
        for arguments in (
            ("--context", "here"),
            ("--token", "x", "--token-file", "y", "--server", self.proxy.url),
            ("--cert", "x", "--server", self.proxy.url),
            ("--etcd", "http://127.0.0.1:1", "--kubeconfig", config),
        ):
            self.assertEqual(get(*arguments).returncode, 2, arguments)


class RealServerTest(Watching):
    """A kube-apiserver writes objects of its own, so only those written here are expected."""

    def put(self, name, value):
        path = "/api/v1/namespaces/default/configmaps"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}}
        code, answer = self.server.api.ask("PUT", path + "/" + name, body)
        if code == 404:
            code, answer = self.server.api.ask("POST", path, body)
        self.assertIn(code, (200, 201), answer)
        return int(answer["metadata"]["resourceVersion"])

    def test_a_real_kube_apiserver(self):
        peers = os.environ.get("PEERS", "")
        if not all(
            os.access(os.path.join(peers, name), os.X_OK) for name in ("kube-apiserver", "etcd", "etcdctl")
        ):
            self.skipTest("there is no kube-apiserver")
        self.server = KubeServer(self.folder.name, peers)
        self.addCleanup(self.server.stop)
        made = self.server.certificates
        self.proxy = FaultProxy(
            "127.0.0.1",
            self.server.port,
            ssl._create_unverified_context(),
            made.server,
            made.server_key,
            upstream_token=TOKENS[0],
        )
        self.addCleanup(self.proxy.close)
        token = write(os.path.join(self.folder.name, "token"), "token-0")
        self.proxy.accept({"token-0"})
        self.proxy.refuse(0.6, [429, 502])
        first = self.put("k0", "first")
        self.watch(
            "--kubeconfig",
            self.server.kubeconfig(
                os.path.join(self.folder.name, "config"), url=self.proxy.url, token_file=token
            ),
            "--context",
            "file",
        )
        self.await_revision(first)
        base, written, choice = self.server.revision(), [], random.Random(1)
        for i in range(600):
            name = "k%d" % choice.randrange(9)
            if choice.random() < 0.2:
                self.server.api.ask("DELETE", "/api/v1/namespaces/default/configmaps/" + name)
            else:
                written.append(self.put(name, str(i)))
            if i % 40 == 0:
                self.proxy.cut(1)
            if i % 100 == 99:
                self.await_revision(written[-1])
                tokens = ["token-%d" % (i // 100), "token-%d" % (i // 100 + 1)]
                self.proxy.accept(set(tokens))
                write(token, tokens[1])
        written.append(self.put("last", "1"))
        self.await_revision(written[-1])
        self.end()
        revisions = self.revisions()
        late = [revision for revision in revisions if revision > base]
        self.assertEqual(late, sorted(set(late)))
        self.assertEqual(len(revisions), len(set(revisions)))
        self.assertEqual(set(written) - set(late), set())
        _, listed = self.server.api.ask("GET", "/api/v1/namespaces/default/configmaps")
        named = {
            item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in listed["items"]
        }
        self.assertEqual(self.state(), named)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=1)
