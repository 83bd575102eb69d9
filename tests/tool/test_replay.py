#!/usr/bin/env python3
"""vedette replay: printing a log, comparing, and serving.

test_replay.py PROGRAM LOG [TEST...]        LOG: examples/small-cluster.ndjson
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from waiting import until  # noqa: E402

PROGRAM, LOG = sys.argv[1:3]
GUARD = 500  # seconds; ends a hanging test, measures nothing
with open(LOG, encoding="utf-8") as file:
    TEXT = file.read()


def replay(*arguments, log=LOG, stdin=None):
    return subprocess.run(
        [PROGRAM, "replay", log, *arguments], capture_output=True, text=True, timeout=GUARD, input=stdin
    )


def lines(*arguments, log=LOG):
    done = replay(*arguments, log=log)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def changes(prefix):
    """Returns [(rev, type, key)] of the log, with the types that a watch of everything under prefix would
    have."""
    there, result = set(), []
    for line in TEXT.splitlines():
        record = json.loads(line)
        if "rev" in record and record["key"].startswith(prefix):
            kind = (
                "DELETED" if record["type"] == "DELETE" else "MODIFIED" if record["key"] in there else "ADDED"
            )
            (there.discard if kind == "DELETED" else there.add)(record["key"])
            result.append((record["rev"], kind, record["key"]))
    return result


class Printing(unittest.TestCase):
    def test_a_watch_sees_the_log(self):
        seen = lines("--watch", "pods")
        self.assertEqual([(e["rev"], e["type"], e["key"]) for e in seen], changes("/registry/pods/"))
        for event in seen:
            self.assertEqual(event["watch"], 0)
            self.assertEqual(event["object"]["metadata"]["resourceVersion"], str(event["rev"]))

    def test_selectors_and_scopes(self):
        pods = lines("--watch", "pods")
        name = pods[0]["object"]["metadata"]["name"]
        for spec in ("po?name=%s&namespace=shop" % name, "pods?fieldSelector=metadata.name%%3D%s" % name):
            self.assertEqual(
                [e["rev"] for e in lines("--watch", spec)],
                [e["rev"] for e in pods if e["object"]["metadata"]["name"] == name],
            )
        self.assertEqual(lines("--watch", "pods?namespace=other"), [])
        self.assertEqual(
            {e["key"] for e in lines("--watch", "deployments.apps")}, {"/registry/deployments/shop/web"}
        )

    def test_a_watch_from_a_revision_gets_what_came_after(self):
        pods = lines("--watch", "pods")
        middle = pods[len(pods) // 2]["rev"]
        seen = lines("--start", "30", "--watch", "pods?resourceVersion=%d" % middle)
        self.assertEqual([e["rev"] for e in seen], [e["rev"] for e in pods if e["rev"] > middle])

    def test_initial_state_and_bookmark(self):
        seen = lines(
            "--start",
            "30",
            "--watch",
            "pods?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        )
        first = next(i for i, e in enumerate(seen) if e["type"] == "BOOKMARK")
        self.assertTrue(seen[first]["initialEventsEnd"])
        self.assertEqual(seen[first]["rev"], 30)
        self.assertTrue(all(e["type"] == "ADDED" and e["rev"] <= 30 for e in seen[:first]))
        self.assertTrue(all(e["rev"] > 30 for e in seen[first + 1 :]))

    def test_until(self):
        self.assertEqual(
            [e["rev"] for e in lines("--until", "20", "--watch", "pods")],
            [r for r, _, _ in changes("/registry/pods/") if r <= 20],
        )
        self.assertEqual(len(lines("--until", "1000", "--watch", "pods")), 21)

    def test_the_same_seed_prints_the_same_bytes(self):
        faults = [
            "--watch",
            "pods",
            "--watch",
            "nodes",
            "--resume",
            "--faults",
            "disconnect=0.1,compact=0.1,error=0.05,delay=80ms,slow=3ms",
        ]
        runs = [replay("--seed", str(seed), *faults).stdout for seed in (1, 1, 2)]
        self.assertEqual(runs[0], runs[1])
        self.assertNotEqual(runs[0], runs[2])

    def test_faults_lose_nothing_and_double_nothing(self):
        expected = changes("/registry/pods/")
        ends = set()
        for seed in range(8):
            seen = lines(
                "--seed",
                str(seed),
                "--watch",
                "pods",
                "--resume",
                "--faults",
                "disconnect=0.2,delay=80ms,delay-rate=0.5",
            )
            ends |= {e["end"] for e in seen if "end" in e}
            self.assertEqual([(e["rev"], e["type"], e["key"]) for e in seen if "rev" in e], expected)
        # A cut of the store's watch affects the reflector only; the watches of the cache do not notice.
        self.assertEqual(ends, set())

    def test_kinds_overtake_each_other_and_none_itself(self):
        overtaken = 0
        for seed in range(4):
            seen = lines(
                "--seed",
                str(seed),
                "--watch",
                "pods",
                "--watch",
                "deployments.apps",
                "--watch",
                "replicasets.apps",
                "--faults",
                "delay=10s,delay-rate=0.5",
            )
            for watch, prefix in enumerate(
                ("/registry/pods/", "/registry/deployments/", "/registry/replicasets/")
            ):
                self.assertEqual(
                    [(e["rev"], e["type"], e["key"]) for e in seen if e["watch"] == watch], changes(prefix)
                )
            revisions = [e["rev"] for e in seen]
            overtaken += revisions != sorted(revisions)
        self.assertGreater(overtaken, 0)

    def test_a_watch_that_expires_says_so_and_starts_over(self):
        seen = lines("--watch", "pods", "--resume", "--faults", "compact@20")
        self.assertIn("end", [k for e in seen for k in e])
        state = {}
        for event in seen:
            if event.get("type") in ("ADDED", "MODIFIED"):
                state[event["key"]] = event["rev"]
            elif event.get("type") == "DELETED":
                state.pop(event["key"], None)
            elif event.get("end") == "expired":
                state = {}  # listed again
        there = {}
        for revision, kind, key in changes("/registry/pods/"):
            there[key] = revision
            if kind == "DELETED":
                del there[key]
        self.assertEqual(state, there)

    def test_without_resume_the_end_is_the_end(self):
        seen = lines("--watch", "pods", "--faults", "compact@20")
        self.assertIn("end", seen[-1])

    def test_timeout_ends_a_watch(self):
        seen = lines("--watch", "pods?timeoutSeconds=1", "--faults", "stale=3s")
        self.assertEqual(seen[-1], {"watch": 0, "end": "timeout"})

    def test_from_standard_input(self):
        done = replay("--watch", "nodes", log="-", stdin=TEXT)
        self.assertEqual(len(done.stdout.splitlines()), 2)

    def test_rounds(self):
        once, thrice = lines("--watch", "pods"), lines("--watch", "pods", "--loop", "3")
        self.assertEqual(thrice[: len(once)], once)
        revisions = [event["rev"] for event in thrice]
        self.assertEqual(revisions, sorted(revisions))
        created = [event["object"]["metadata"]["name"] for event in once if event["type"] == "ADDED"]
        self.assertEqual(
            [event["object"]["metadata"]["name"] for event in thrice if event["type"] == "ADDED"], created * 3
        )
        self.assertEqual(replay("--watch", "pods", "--loop", "0").returncode, 2)
        self.assertLessEqual(lines("--watch", "pods", "--loop", "0", "--until", "500")[-1]["rev"], 500)

    def test_every_fault_is_the_same_again(self):
        for faults in (
            "disconnect=0.1",
            "compact=0.05",
            "error=0.1",
            "delay=2s,delay-rate=0.5",
            "stale=3s",
            "slow=1s",
            "refuse=0.3",
            "too-large=0.3",
            "disconnect@20,error@25,compact@30",
            "disconnect=0.05,compact=0.02,error=0.05,delay=1s,stale=1s,slow=100ms,refuse=0.1,too-large=0.1",
        ):
            for more in ((), ("--loop", "3")):
                arguments = (
                    "--watch",
                    "pods",
                    "--watch",
                    "deployments.apps",
                    "--resume",
                    "--seed",
                    "7",
                    "--faults",
                    faults,
                    *more,
                )
                first, second = replay(*arguments), replay(*arguments)
                self.assertEqual(first.returncode, 0, first.stderr)
                self.assertEqual(first.stdout, second.stdout, faults)


class Expecting(unittest.TestCase):
    def setUp(self):
        self.file = tempfile.NamedTemporaryFile("w+", suffix=".expected")
        self.text = replay("--watch", "pods").stdout
        self.addCleanup(self.file.close)

    def compare(self, text):
        self.file.seek(0)
        self.file.truncate()
        self.file.write(text)
        self.file.flush()
        done = replay("--watch", "pods", "--expect", self.file.name)
        self.assertEqual(done.stdout, "")
        return done

    def test_equal(self):
        done = self.compare(self.text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("21 lines, all as expected", done.stderr)

    def test_the_first_difference_is_shown_with_what_was_before(self):
        changed = self.text.splitlines(True)
        changed[4] = changed[4].replace('"MODIFIED"', '"ADDED"').replace('"rev":', '"rev":9')
        changed[6] = "{}\n"
        done = self.compare("".join(changed))
        self.assertEqual(done.returncode, 1)
        shown = done.stderr.splitlines()
        self.assertIn("at line 5", shown[0])
        self.assertEqual([s[0] for s in shown[1:]], [" ", " ", " ", "-", "+"])
        self.assertIn('"rev":9', shown[4])

    def test_more_and_less(self):
        done = self.compare(self.text + "{}\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("+ (the replay ends here)", done.stderr)
        done = self.compare("".join(self.text.splitlines(True)[:3]))
        self.assertEqual(done.returncode, 1)
        self.assertIn("- (the file ends here)", done.stderr)


class Mistakes(unittest.TestCase):
    def test_each_is_said_and_ends_with_its_status(self):
        for status, text, *arguments in (
            (2, "no output: give --watch"),
            (2, "unknown kind", "--watch", "flowers"),
            (2, "field label not supported: spec.color", "--watch", "pods?fieldSelector=spec.color%3Dred"),
            (2, "resourceVersion", "--watch", "pods?resourceVersion=old"),
            (2, "the kind is not namespaced", "--watch", "nodes?namespace=a"),
            (2, "%XX", "--watch", "pods?namespace=%4"),
            (2, "unknown fault", "--watch", "pods", "--faults", "meteor=1"),
            (2, "--speed", "--watch", "pods", "--speed", "-3"),
            (2, "--listen excludes", "--watch", "pods", "--listen", "127.0.0.1:0"),
            (2, "require --listen", "--watch", "pods", "--read-only"),
            (1, "No such file", "--watch", "pods", "--expect", "/nowhere/at/all"),
            (2, "cannot open", "--watch", "pods", "--resources", "/nowhere/at/all"),
        ):
            done = replay(*arguments)
            self.assertEqual(done.returncode, status, (arguments, done.stderr))
            self.assertIn(text, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_logs_that_are_none(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(
                '{"vedetteLog":1}\n'
                '{"rev":2,"type":"PUT","key":"/registry/pods/a/b","value":{}}\n'
                '{"rev":"x"}\n'
            )
            file.flush()
            done = replay("--watch", "pods", log=file.name)
            self.assertEqual(done.returncode, 1)
            self.assertIn(file.name + ":3: ", done.stderr)
        self.assertIn("is not an event log", replay("--watch", "pods", log=__file__).stderr)
        self.assertIn("No such file", replay("--watch", "pods", log="/nowhere").stderr)


class Changed(unittest.TestCase):
    """A recorded log that was changed is refused; a truncated one is replayed with a warning, or refused with
    --strict."""

    def setUp(self):
        log = os.path.join(os.path.dirname(LOG), "logs", "rolling-update.ndjson.zst")
        self.text = subprocess.run(["zstd", "-dc", log], stdout=subprocess.PIPE, check=True).stdout
        self.lines = self.text.splitlines(keepends=True)

    def replay(self, data, *options):
        with tempfile.NamedTemporaryFile(suffix=".ndjson") as file:
            file.write(data)
            file.flush()
            return replay("--watch", "pods", "--quiet", *options, log=file.name)

    def load(self, data, *options):
        with tempfile.NamedTemporaryFile(suffix=".ndjson") as file:
            file.write(data)
            file.flush()
            return subprocess.run(
                [PROGRAM, "serve", "--memory", "--listen", "127.0.0.1:0", "--load", file.name, *options],
                capture_output=True,
                text=True,
                timeout=GUARD,
            )

    def test_a_line_less_or_twice(self):
        self.assertEqual(self.replay(self.text, "--strict").returncode, 0)
        for number in range(0, len(self.lines) - 1, max(1, len(self.lines) // 25)):
            for lines_of_it in (0, 2):
                done = self.replay(
                    b"".join(
                        self.lines[:number]
                        + self.lines[number : number + 1] * lines_of_it
                        + self.lines[number + 1 :]
                    )
                )
                self.assertEqual(done.returncode, 1, (number, lines_of_it))
                if number:
                    self.assertRegex(done.stderr, r":\d+: ")

    def test_a_bit(self):
        for at in range(0, len(self.text), max(1, len(self.text) // 60)):
            done = self.replay(
                self.text[:at] + bytes([self.text[at] ^ 1 << at % 8]) + self.text[at + 1 :], "--strict"
            )
            self.assertEqual(done.returncode, 1, at)
        self.assertEqual(
            self.load(self.text[:500] + bytes([self.text[500] ^ 1]) + self.text[501:]).returncode, 1
        )

    def test_an_end_that_is_missing(self):
        done = self.replay(b"".join(self.lines[:-1]))
        self.assertEqual(done.returncode, 0)
        self.assertIn("has no closing line", done.stderr)
        self.assertEqual(self.replay(b"".join(self.lines[:-1]), "--strict").returncode, 1)
        cut = b"".join(self.lines[:-2]) + self.lines[-2][:9]
        done = self.replay(cut)
        self.assertEqual(done.returncode, 0)
        self.assertIn(
            "is torn at line %d: 1 whole records and %d bytes"
            % (len(self.lines) - 2, len(self.lines[-3]) + 9),
            done.stderr,
        )
        self.assertEqual(self.replay(cut, "--strict").returncode, 1)
        done = self.load(cut, "--strict")
        self.assertEqual(done.returncode, 1)
        self.assertIn("torn", done.stderr)


class Serving(unittest.TestCase):
    def start(self, *arguments):
        process = subprocess.Popen(
            [PROGRAM, "replay", LOG, "--listen", "127.0.0.1:0", *arguments], stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        ready = process.stderr.readline()
        self.assertTrue(ready.startswith("vedette: ready http://127.0.0.1:"), ready)
        return process, ready.split()[2]

    def get(self, url):
        while True:
            try:
                with urllib.request.urlopen(url) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code != 504:  # the player has not reached the revision yet
                    raise

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(GUARD), 0, process.stderr.read())

    def test_the_recorded_cluster_is_there_with_its_revisions(self):
        process, url = self.start()
        state = {key for _, kind, key in changes("/registry/pods/") if kind != "DELETED"} - {
            key for _, kind, key in changes("/registry/pods/") if kind == "DELETED"
        }
        pods = self.get(url + "/api/v1/pods?resourceVersion=43")
        self.assertEqual(
            {p["metadata"]["name"] for p in pods["items"]}, {key.split("/")[-1] for key in state}
        )
        self.assertEqual(pods["metadata"]["resourceVersion"], "43")
        with urllib.request.urlopen(url + "/api/v1/namespaces") as answer:
            self.assertNotIn("43", [n["metadata"]["resourceVersion"] for n in json.load(answer)["items"]])
        # A controller under test may write.
        request = urllib.request.Request(
            url + "/api/v1/namespaces/shop/configmaps",
            method="POST",
            headers={"Content-Type": "application/json"},
            data=b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine"}}',
        )
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(json.load(answer)["metadata"]["resourceVersion"], "44")
        self.end(process)

    def cut_places(self, url):
        """Returns [(revision of the last complete event, result of the next request)] and all events, for a
        client that reconnects after each cut."""
        revision, places, seen = "1", [], []
        while int(revision) < changes("/registry/pods/")[-1][0]:
            rest = b""
            try:
                with urllib.request.urlopen(
                    url + "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion=" + revision
                ) as stream:
                    while line := stream.readline():
                        rest = line
                        event = json.loads(line)
                        revision = event["object"]["metadata"]["resourceVersion"]
                        seen.append((int(revision), event["type"]))
                        rest = b""
            except (ValueError, OSError, http.client.HTTPException) as error:
                places.append((revision, rest or getattr(error, "partial", b"")))
        return places, seen

    def test_events_are_cut_in_their_middle(self):
        places = []
        for seed in ("3", "3", "4"):
            process, url = self.start("--faults", "cut=0.3", "--seed", seed, "--start", "43")
            found, seen = self.cut_places(url)
            self.assertEqual(seen, [(revision, kind) for revision, kind, _ in changes("/registry/pods/")])
            places.append(found)
            self.end(process)
        self.assertTrue(places[0])
        self.assertEqual(places[0], places[1])
        self.assertNotEqual(places[0], places[2])

    def test_read_only(self):
        process, url = self.start("--read-only", "--start", "43")
        request = urllib.request.Request(
            url + "/api/v1/namespaces/shop/configmaps",
            method="POST",
            headers={"Content-Type": "application/json"},
            data=b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine"}}',
        )
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request)
        self.assertEqual(caught.exception.code, 403)
        caught.exception.close()
        self.end(process)

    def test_at_the_recorded_pace_a_watch_sees_it_happen(self):
        process, url = self.start("--speed", "40")
        with urllib.request.urlopen(url + "/api/v1/pods?watch=1&resourceVersion=1") as stream:
            seen = [json.loads(stream.readline()) for _ in changes("/registry/pods/")]
        self.assertEqual(
            [(int(e["object"]["metadata"]["resourceVersion"]), e["type"]) for e in seen],
            [(revision, kind) for revision, kind, _ in changes("/registry/pods/")],
        )
        self.end(process)


class Shipped(unittest.TestCase):
    """The sample logs pass through a player, a server, a watch of every kind and a recorder: the output
    equals the input."""

    KINDS = (
        "namespaces",
        "nodes",
        "pods",
        "configmaps",
        "deployments.apps",
        "replicasets.apps",
        "leases.coordination.k8s.io",
    )
    STATE = "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

    def has_state(self, recording):
        with open(recording, encoding="utf-8") as file:
            return "snapshotEnd" in file.read()

    def record(self, log, recording, last):
        player = subprocess.Popen(
            [PROGRAM, "replay", log, "--listen", "127.0.0.1:0", "--paused", "--read-only"],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            url = player.stderr.readline().split()[2]
            recorder = subprocess.Popen(
                [
                    PROGRAM,
                    "record",
                    "--server",
                    url,
                    "--watch-timeout",
                    "3s",
                    "-q",
                    "-o",
                    recording,
                    "--until",
                    str(last),
                    *(word for kind in self.KINDS for word in ("--kind", kind)),
                ],
                stderr=subprocess.PIPE,
                text=True,
            )
            until(lambda: os.path.exists(recording) and self.has_state(recording), recorder, recording)
            player.send_signal(signal.SIGUSR1)
            said = recorder.communicate(timeout=GUARD)[1]
            self.results[log] = (recorder.returncode, said)
        finally:
            player.kill()
            player.communicate()

    def test_a_slow_watch_is_ended_and_comes_back(self):
        log = os.path.join(os.path.dirname(LOG), "logs", "lease-storm.ndjson.zst")
        quick = {event["key"]: event["rev"] for event in lines("--watch", "leases", log=log)}
        seen = lines("--watch", "leases", "--resume", "--faults", "slow=100ms", log=log)
        self.assertEqual({event["end"] for event in seen if "end" in event}, {"too_slow"})
        self.assertEqual({event["key"]: event["rev"] for event in seen if "key" in event}, quick)
        self.assertIn("end", lines("--watch", "leases", "--faults", "slow=100ms", log=log)[-1])

    def test_shipped_logs_make_the_round_trip(self):
        folder = os.path.join(os.path.dirname(LOG), "logs")
        logs = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".zst"))
        self.assertEqual(len(logs), 4)
        self.results = {}
        with tempfile.TemporaryDirectory() as scratch:
            recordings, threads, revisions = {}, [], {}
            for log in logs:
                records = [
                    json.loads(line)
                    for line in subprocess.run(
                        ["zstd", "-dc", log], stdout=subprocess.PIPE, check=True
                    ).stdout.splitlines()
                ]
                revisions[log] = sorted({record["commit"] for record in records if "commit" in record})
                recordings[log] = os.path.join(scratch, os.path.basename(log)[:-4])
                threads.append(
                    threading.Thread(target=self.record, args=(log, recordings[log], revisions[log][-1]))
                )
                threads[-1].start()
            for thread in threads:
                thread.join()
            for log in logs:
                self.assertEqual(self.results[log], (0, ""))
                watches = [
                    word for kind in self.KINDS for word in ("--watch", kind + "?resourceVersion=1200")
                ]
                original = lines(*watches, log=log)
                self.assertGreater(len(original), 30)
                self.assertEqual(original, lines(*watches, log=recordings[log]))
                for revision in (
                    1200,
                    *(revisions[log][len(revisions[log]) * part // 4] for part in range(1, 4)),
                    revisions[log][-1],
                ):
                    states = [word for kind in self.KINDS for word in ("--watch", kind + self.STATE)]
                    there = ("--start", str(revision), "--until", str(revision))
                    state = lines(*states, *there, log=log)
                    self.assertGreater(len(state), len(self.KINDS))
                    self.assertEqual(state, lines(*states, *there, log=recordings[log]), (log, revision))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
