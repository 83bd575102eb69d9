#!/usr/bin/env python3
"""vedette record and vedette verify of a Kubernetes endpoint: vedette serve, alone, killed, and behind a
proxy that falsifies answers.

    test_kube.py PROGRAM [TEST...]
"""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kube_case import PROGRAM, Case, Server, Writer, read_log, run, text_of  # noqa: E402
from lying_proxy import LyingProxy  # noqa: E402
from waiting import GUARD, until  # noqa: E402


class Recording(Case):
    def test_the_state_and_every_revision_once(self):
        server = self.serve()
        for i in range(7):
            server.write("before%d" % i, i)
        log = self.path("log.ndjson")
        recorder = subprocess.Popen(
            [PROGRAM, "record", "--watch-timeout", "3s", "--server", server.url, "--output", log, "-q"],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.assertTrue(until(lambda: os.path.exists(log) and '"snapshotEnd"' in text_of(log), recorder, log))
        writer = Writer(server)
        until(lambda: writer.count >= 60)
        recorder.send_signal(signal.SIGKILL)  # and continues later
        recorder.communicate()
        until(lambda: writer.count >= 90)
        writer.stop()
        server.request(
            "POST",
            "/api/v1/namespaces/default/pods",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p"},
                "spec": {"containers": [{"name": "a", "image": "b"}]},
            },
        )
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
        self.assertEqual(
            {key: value["metadata"]["resourceVersion"] for key, value in state.items()},
            {
                "/registry/configmaps/default/"
                + item["metadata"]["name"]: item["metadata"]["resourceVersion"]
                for item in listed["items"]
            },
        )
        for item in listed["items"]:
            self.assertEqual(
                state["/registry/configmaps/default/" + item["metadata"]["name"]]["data"], item["data"]
            )
        self.assertIn("/registry/pods/default/p", {record.get("key") for record in records})

    def test_how_far_it_is_is_shown(self):
        server = self.serve()
        last = server.write("a", 1)
        terminal, other_end = pty.openpty()
        recorder = subprocess.Popen(
            [
                PROGRAM,
                "record",
                "--watch-timeout",
                "3s",
                "--server",
                server.url,
                "--kind",
                "configmaps",
                "-o",
                self.path("log"),
            ],
            stderr=other_end,
        )
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
        done = run(
            "record",
            "--server",
            server.url,
            "--kind",
            "configmaps",
            "--resume",
            "--until",
            str(last),
            "-o",
            self.path("log"),
        )
        self.assertEqual(
            (done.returncode, done.stderr), (0, "vedette record: at revision %d, 1 records\n" % last)
        )
        self.assertEqual(
            run(
                "record",
                "--server",
                server.url,
                "--kind",
                "configmaps",
                "--resume",
                "--until",
                str(last),
                "-q",
                "-o",
                self.path("log"),
            ).stderr,
            "",
        )

    def test_pages_of_one_moment(self):
        server = self.serve()
        for i in range(1203):
            server.write("c%04d" % i, "x")
        log = self.path("log.ndjson")
        last = server.write("z", 1)
        done = run(
            "record", "--server", server.url, "--kind", "cm", "--output", log, "-q", "--until", str(last)
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        keys = [record["key"] for record in read_log(log) if "key" in record]
        self.assertEqual(
            keys,
            ["/registry/configmaps/default/c%04d" % i for i in range(1203)]
            + ["/registry/configmaps/default/z"],
        )

    def test_a_gap_ends_it_or_is_listed_again(self):
        server = self.serve()
        server.write("stays", 1)
        server.write("goes", 1)
        server.write("changes", 1)
        log = self.path("log.ndjson")
        start = server.write("a", 1)
        self.assertEqual(
            run(
                "record",
                "--server",
                server.url,
                "--kind",
                "configmaps",
                "-q",
                "-o",
                log,
                "--until",
                str(start),
            ).returncode,
            0,
        )
        for i in range(4):  # the third event is 410 Expired instead
            server.write("changes", i)
        server.request("DELETE", "/api/v1/namespaces/default/configmaps/goes")
        listed = server.revision()

        def record(*arguments):
            proxy = LyingProxy(server.url, "error")
            try:
                return (
                    run(
                        "record",
                        "--server",
                        proxy.url,
                        "--kind",
                        "configmaps",
                        "-o",
                        log,
                        "--resume",
                        *arguments
                    ),
                    proxy.told,
                )
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
        done = run(
            "record",
            "--server",
            server.url,
            "--kind",
            "configmaps",
            "-q",
            "-o",
            log,
            "--resume",
            "--until",
            str(last),
        )
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
            done = run(
                "record", "--server", "http://127.0.0.1:%d" % nobody.getsockname()[1], "-o", self.path("a")
            )
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
        for arguments in (
            ("--server", server.url, "--etcd", "http://127.0.0.1:1"),
            (),
            ("--server", server.url, "--cert", "x"),
            ("--token", "x", "--etcd", "http://127.0.0.1:1"),
        ):
            self.assertEqual(run("record", "-o", self.path("d"), *arguments).returncode, 2, arguments)


class Verifying(Case):
    def verify(self, url, *arguments):
        return subprocess.Popen(
            [PROGRAM, "verify", "--server", url, "--output", "json", "-q", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

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
        names = [item["metadata"]["name"] for item in namespaces["items"]] + [
            item["metadata"].get("namespace", "") for item in objects["items"]
        ]
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
