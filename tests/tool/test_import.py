#!/usr/bin/env python3
"""vedette record --from-...: files of other programs become logs, and errors in them are reported with their
place.

    test_import.py PROGRAM [TEST...]
"""

import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]


def pod(name, revision, namespace="default", **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "resourceVersion": str(revision), **metadata},
        "spec": {"containers": [{"name": "a", "image": "b"}]},
    }


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def record(self, *arguments, stdin=None):
        if os.path.exists(self.path("log")):
            os.unlink(self.path("log"))
        return subprocess.run(
            [PROGRAM, "record", "--output", self.path("log"), *arguments],
            capture_output=True,
            text=True,
            timeout=600,
            input=stdin,
        )

    def log(self, *arguments, stdin=None):
        done = self.record(*arguments, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("log"), encoding="utf-8") as file:
            return [json.loads(line) for line in file][1:]

    def fails(self, said, *arguments):
        done = self.record(*arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(said, done.stderr)

    def replay(self, *arguments):
        done = subprocess.run(
            [PROGRAM, "replay", self.path("log"), *arguments], capture_output=True, text=True, timeout=600
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]


def short(records):
    """["snapshot 5", "PUT 3 /registry/pods/default/a", "commit 7", ...]"""
    result = []
    for record in records:
        if "end" in record:  # the writer closed the log
            continue
        if "key" in record:
            result.append(
                "%s %d %s" % (record["type"], record["rev"], record["key"].replace("/registry/", ""))
            )
        else:
            result += [
                "%s %s" % (name, record[name])
                for name in ("snapshot", "snapshotEnd", "commit", "progress", "error", "compact")
                if name in record
            ]
    return result


class Watches(Case):
    EVENTS = [
        {"type": "ADDED", "object": pod("a", 12)},
        {"type": "ADDED", "object": pod("b", 9)},
        {"type": "MODIFIED", "object": pod("b", 14)},
        {
            "type": "BOOKMARK",
            "object": {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "16"}},
        },
        {"type": "DELETED", "object": pod("a", 17)},
        {
            "type": "ERROR",
            "object": {
                "kind": "Status",
                "apiVersion": "v1",
                "code": 410,
                "reason": "Expired",
                "message": "too old",
            },
        },
    ]
    WANTED = [
        "snapshot 12",
        "PUT 12 pods/default/a",
        "PUT 9 pods/default/b",
        "snapshotEnd 12",
        "PUT 14 pods/default/b",
        "commit 14",
        "progress 16",
        "DELETE 17 pods/default/a",
        "commit 17",
        "error too old (Expired)",
    ]

    def test_events_of_a_watch(self):
        for indent in (None, 4):
            path = self.write("watch", "\n".join(json.dumps(event, indent=indent) for event in self.EVENTS))
            records = self.log("--from-watch", path)
            self.assertEqual(short(records), self.WANTED)
            self.assertNotIn("resourceVersion", json.dumps([record.get("value") for record in records]))
        seen = self.replay("--watch", "pods")
        self.assertEqual(
            [event["type"] for event in seen if "type" in event], ["ADDED", "ADDED", "MODIFIED", "DELETED"]
        )

    def test_objects_and_lists(self):
        lists = {
            "apiVersion": "v1",
            "kind": "List",
            "metadata": {"resourceVersion": ""},
            "items": [pod("a", 12), pod("b", 9)],
        }
        path = self.write(
            "watch",
            json.dumps(lists)
            + json.dumps(pod("b", 14))
            + json.dumps(pod("b", 14))
            + json.dumps(pod("c", 15)),
        )
        self.assertEqual(
            short(self.log("--from-watch", path)), self.WANTED[:6] + ["PUT 15 pods/default/c", "commit 15"]
        )
        path = self.write("watch", json.dumps(pod("b", 14)) + json.dumps(pod("c", 15)))
        self.assertEqual(
            short(self.log("--from-watch", path)),
            ["PUT 14 pods/default/b", "commit 14", "PUT 15 pods/default/c", "commit 15"],
        )
        self.assertEqual(short(self.log("--from-watch", self.write("watch", ""))), [])

    def test_where_kinds_lie(self):
        def of(api_version, kind):
            return json.dumps(
                {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "resourceVersion": "5"}}
            )

        for api_version, kind, key in (
            ("v1", "Node", "minions"),
            ("v1", "Service", "services/specs"),
            ("apps/v1", "Deployment", "deployments"),
            ("networking.k8s.io/v1", "Ingress", "ingress"),
            ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
            ("example.com/v1", "Gateway", "example.com/gateways"),
            ("example.com/v1", "Switch", "example.com/switches"),
        ):
            self.assertEqual(
                short(self.log("--from-watch", self.write("watch", of(api_version, kind)))),
                ["PUT 5 %s/x" % key, "commit 5"],
            )
        resources = self.write(
            "resources",
            json.dumps([{"group": "example.com", "version": "v1", "kind": "Ox", "plural": "oxen"}]),
        )
        path = self.write("watch", of("example.com/v1", "Ox"))
        self.assertEqual(
            short(self.log("--from-watch", path, "--resources", resources)),
            ["PUT 5 example.com/oxen/x", "commit 5"],
        )

    def test_what_is_broken_is_said(self):
        good = json.dumps(pod("a", 5))
        for text, said in (
            ('{"a":\n\n1', "line 1: the input ends"),
            (good + "\n" + '{"a":1}', "line 2: "),
            (good + "\n\nhello", "line 3: expected a"),
            (
                good + "\n" + json.dumps(pod("a", 7)) + "\n" + json.dumps(pod("a", 6)),
                "line 3: revision 6 comes after 7",
            ),
            (json.dumps(pod("a/b", 5)), "line 1: "),
            (json.dumps(pod("a", "x")), 'line 1: the resourceVersion "x" is not a number'),
            (json.dumps({"type": "SEEN", "object": pod("a", 5)}), "line 1: "),
        ):
            self.fails(said, "--from-watch", self.write("watch", text))
        self.fails("No such file", "--from-watch", self.path("nothing"))


class Audit(Case):
    def event(
        self,
        verb,
        resource,
        answer,
        group="",
        name=None,
        code=200,
        stage="ResponseComplete",
        level="RequestResponse",
        **reference
    ):
        return json.dumps(
            {
                "kind": "Event",
                "apiVersion": "audit.k8s.io/v1",
                "level": level,
                "stage": stage,
                "auditID": "1",
                "verb": verb,
                "requestURI": "/x",
                "objectRef": {
                    "resource": resource,
                    "namespace": "default",
                    "name": name or "a",
                    **({"apiGroup": group} if group else {}),
                    **reference,
                },
                "responseStatus": {"code": code},
                "responseObject": answer,
                "stageTimestamp": "2026-05-28T20:26:42.123456Z",
            }
        )

    def test_writes_and_nothing_else(self):
        status = {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        lines = [
            self.event("create", "pods", pod("a", 10), code=201),
            self.event("create", "pods", pod("a", 10), code=201, stage="RequestReceived"),
            self.event("get", "pods", pod("a", 10)),
            self.event("create", "pods", status, code=409),
            self.event("create", "pods", pod("a", 10), code=201, level="Metadata"),
            self.event("update", "pods", pod("a", 13), subresource="status"),
            self.event("patch", "pods", pod("b", 12)),  # completed later
            self.event(
                "create",
                "pods",
                {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "a"}},
                subresource="eviction",
                code=201,
            ),
            self.event(
                "update",
                "deployments",
                {
                    "kind": "Scale",
                    "apiVersion": "autoscaling/v1",
                    "metadata": {"name": "a", "resourceVersion": "20"},
                },
                group="apps",
                subresource="scale",
            ),
            self.event(
                "delete",
                "pods",
                pod("a", 15, deletionTimestamp="2026-05-28T20:26:42Z", deletionGracePeriodSeconds=30),
            ),
            self.event(
                "delete",
                "pods",
                pod("a", 16, deletionTimestamp="2026-05-28T20:26:42Z", deletionGracePeriodSeconds=0),
            ),
            self.event("delete", "configmaps", status, name="c"),
            self.event(
                "delete",
                "namespaces",
                {
                    "kind": "Namespace",
                    "apiVersion": "v1",
                    "metadata": {"name": "n", "resourceVersion": "19", "deletionTimestamp": "x"},
                    "spec": {"finalizers": ["kubernetes"]},
                },
                name="n",
            ),
            self.event(
                "update",
                "namespaces",
                {
                    "kind": "Namespace",
                    "apiVersion": "v1",
                    "metadata": {"name": "n", "resourceVersion": "21", "deletionTimestamp": "x"},
                    "spec": {"finalizers": []},
                },
                name="n",
                subresource="finalize",
            ),
            self.event(
                "deletecollection",
                "pods",
                {
                    "kind": "PodList",
                    "apiVersion": "v1",
                    "metadata": {"resourceVersion": "25"},
                    "items": [pod("b", 22), pod("d", 23)],
                },
            ),
        ]
        wanted = [
            "PUT 10 pods/default/a",
            "PUT 12 pods/default/b",
            "PUT 13 pods/default/a",
            "PUT 15 pods/default/a",
            "DELETE 16 pods/default/a",
            "DELETE 17 configmaps/default/c",
            "PUT 19 namespaces/n",
            "DELETE 21 namespaces/n",
            "DELETE 22 pods/default/b",
            "DELETE 23 pods/default/d",
        ]
        records = self.log("--from-audit", self.write("audit", "\n".join(lines)))
        self.assertEqual([line for line in short(records) if "commit" not in line], wanted)
        self.assertEqual(records[0]["time"], "2026-05-28T20:26:42.123Z")
        self.assertEqual(short(self.log("--from-audit", "-", stdin="\n".join(lines))), short(records))

    def test_the_window(self):
        count = 9000
        lines = [self.event("update", "pods", pod("p%d" % (i % 50), 10 + i)) for i in range(count)]
        shuffled = sorted(range(count), key=lambda i, r=random.Random(1): i + r.randrange(2000))
        records = self.log("--from-audit", self.write("audit", "\n".join(lines[i] for i in shuffled)))
        self.assertEqual(
            [record["rev"] for record in records if "rev" in record], list(range(10, 10 + count))
        )
        self.fails(
            "line %d: revision 10 is more than 4096 changes late" % count,
            "--from-audit",
            self.write("audit", "\n".join(lines[1:] + lines[:1])),
        )

    def test_what_is_broken_is_said(self):
        good = self.event("create", "pods", pod("a", 10))
        for text, said in (
            (good + "\n{}", "line 2: not an audit event"),
            (good + "\n" + good[:-5], "line 2: the input ends"),
            (good + "\nx", "line 2: "),
            (self.event("create", "pods", pod("a", "x")), "line 1: "),
        ):
            self.fails(said, "--from-audit", self.write("audit", text))


class Kine(Case):
    def database(self, rows):
        path = self.path("kine.db")
        database = sqlite3.connect(path)
        database.execute(
            "CREATE TABLE kine (id INTEGER PRIMARY KEY AUTOINCREMENT, name INTEGER, created INTEGER, "
            "deleted INTEGER, create_revision INTEGER, prev_revision INTEGER, lease INTEGER, value BLOB, "
            "old_value BLOB)"
        )
        database.executemany(
            "INSERT INTO kine (id, name, created, deleted, create_revision, prev_revision, lease, value) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        database.commit()
        database.close()
        return path

    def test_rows_are_revisions(self):
        value = (
            b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"default"},'
            b'"data":{"n":"%d"}}'
        )
        key = "/registry/configmaps/default/"
        path = self.database(
            [
                (1, "compact_rev_key", 1, 0, 0, 6, 0, b""),
                (2, "/registry/health", 1, 0, 0, 0, 0, b'{"health":"true"}'),
                (3, key + "x", 1, 0, 0, 0, 0, value % 3),
                (4, key + "x", 0, 0, 3, 3, 0, value % 4),
                (5, key + "gone", 1, 0, 0, 0, 0, value % 5),
                (6, key + "gone", 0, 1, 5, 5, 0, value % 5),
                (7, key + "x", 0, 0, 3, 4, 0, value % 7),
                (8, "gap-8", 1, 1, 0, 0, 0, b""),
                (9, key + "y", 1, 0, 0, 0, 77, value % 9),
                (10, key + "x", 0, 1, 3, 7, 0, value % 7),
                (11, "/registry/pods/default/p", 1, 0, 0, 0, 0, b"k8s\x00binary"),
            ]
        )
        records = self.log("--from-kine", path)
        if "without SQLite" in str(records):
            self.skipTest("built without SQLite")
        self.assertEqual(
            short(records),
            [
                "snapshot 6",
                "PUT 2 health",
                "PUT 4 configmaps/default/x",
                "snapshotEnd 6",
                "PUT 7 configmaps/default/x",
                "commit 7",
                "PUT 9 configmaps/default/y",
                "commit 9",
                "DELETE 10 configmaps/default/x",
                "commit 10",
                "PUT 11 pods/default/p",
                "commit 11",
            ],
        )
        by_revision = {record["rev"]: record for record in records if "rev" in record}
        self.assertEqual(
            (
                by_revision[4]["createRev"],
                by_revision[7]["createRev"],
                by_revision[9]["version"],
                by_revision[9]["lease"],
            ),
            (3, 3, 1, 77),
        )
        self.assertIn("valueBase64", by_revision[11])
        self.assertEqual(
            [(event["type"], event["rev"]) for event in self.replay("--watch", "configmaps")],
            [("ADDED", 4), ("MODIFIED", 7), ("ADDED", 9), ("DELETED", 10)],
        )

    def test_what_is_broken_is_said(self):
        self.fails("No such file" if False else "unable to open", "--from-kine", self.path("nothing"))
        self.fails(
            "not a database",
            "--from-kine",
            self.write("text", "this is a text of some length, and no database at all" * 40),
        )
        self.fails(
            "row 3: a key of 0 bytes",
            "--from-kine",
            self.database([(2, "/a", 1, 0, 0, 0, 0, b"1"), (3, "", 1, 0, 0, 0, 0, b"1")]),
        )
        os.unlink(self.path("kine.db"))
        self.fails(
            "row 2: its create_revision is 9", "--from-kine", self.database([(2, "/a", 0, 0, 9, 0, 0, b"1")])
        )
        empty = self.path("empty.db")
        sqlite3.connect(empty).execute("CREATE TABLE other (x)").connection.close()
        self.fails("no such table: kine", "--from-kine", empty)


class Snapshot(Case):
    def test_what_is_broken_is_said(self):
        self.fails("No such file", "--from-snapshot", self.path("nothing"))
        self.fails("not a snapshot: empty", "--from-snapshot", self.write("empty", ""))
        self.fails("text: ", "--from-snapshot", self.write("text", "x" * 8192))


class Usage(Case):
    def test_one_source(self):
        for arguments in (
            (),
            ("--from-audit", "a", "--from-watch", "b"),
            ("--from-audit", "a", "--server", "http://127.0.0.1:1"),
            ("--from-audit", "a", "--resume"),
            ("--from-watch", "-"),
            ("--from-audit", "a", "--resources", "b"),
        ):
            self.assertEqual(self.record(*arguments).returncode, 2, arguments)
        self.write("log", "there is something")
        done = subprocess.run(
            [PROGRAM, "record", "--output", self.path("log"), "--from-audit", self.write("audit", "")],
            capture_output=True,
            text=True,
            timeout=600,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("already exists", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=1)
