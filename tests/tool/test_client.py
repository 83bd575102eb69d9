#!/usr/bin/env python3
"""vedette get, watch and kubeconfig, with a server that each test scripts.

test_client.py PROGRAM [TEST...]
"""

import http.server
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

PROGRAM = sys.argv[1]


def pod(name, revision, namespace="shop", **labels):
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "resourceVersion": str(revision),
            "labels": labels,
        },
        "spec": {"ratio": 1.50, "big": 12345678901234567890},
    }


def pod_list(revision, *items, **metadata):
    return {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": str(revision), **metadata},
        "items": list(items),
    }


def event(kind, thing):
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


def failure(code, reason, message, **more):
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
        **more,
    }


CORE = {
    "resource": "pods",
    "singularResource": "pod",
    "scope": "Namespaced",
    "shortNames": ["po"],
    "responseKind": {"kind": "Pod"},
    "verbs": [],
}
NODES = {
    "resource": "nodes",
    "singularResource": "node",
    "scope": "Cluster",
    "shortNames": ["no"],
    "responseKind": {"kind": "Node"},
    "verbs": [],
}
DEPLOYMENTS = {
    "resource": "deployments",
    "singularResource": "deployment",
    "scope": "Namespaced",
    "shortNames": ["deploy"],
    "responseKind": {"kind": "Deployment"},
    "verbs": [],
}
AGGREGATED = {
    "/api": {
        "kind": "APIGroupDiscoveryList",
        "items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [CORE, NODES]}]}],
    },
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [DEPLOYMENTS]}]}
        ],
    },
}
LEGACY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {
        "kind": "APIResourceList",
        "resources": [
            {"name": "pods/status", "kind": "Pod", "namespaced": True},
            {"name": "pods", "singularName": "pod", "kind": "Pod", "namespaced": True, "shortNames": ["po"]},
        ],
    },
    "/apis": {
        "kind": "APIGroupList",
        "groups": [{"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]}],
    },
    "/apis/apps/v1": {
        "kind": "APIResourceList",
        "resources": [
            {
                "name": "deployments",
                "singularName": "deployment",
                "kind": "Deployment",
                "namespaced": True,
                "shortNames": ["deploy"],
            }
        ],
    },
}


class Server:
    """answers(path, query, number of the request to this path) returns (code, body) or a list of chunks; None
    closes the connection."""

    def __init__(self, answers, discovery=AGGREGATED):
        outer = self
        self.requests = []
        self.counts = {}
        self.lock = threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def send_json(self, code, body):
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                query = dict(urllib.parse.parse_qsl(url.query))
                with outer.lock:
                    outer.requests.append((url.path, query, self.headers))
                    number = outer.counts[url.path] = outer.counts.get(url.path, 0) + 1
                if url.path in discovery:
                    return self.send_json(200, discovery[url.path])
                answer = answers(url.path, query, number)
                if isinstance(answer, tuple):
                    return self.send_json(*answer)
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for chunk in answer:
                    if chunk is None:
                        self.wfile.flush()
                        self.connection.shutdown(socket.SHUT_RDWR)
                        self.close_connection = True
                        return
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def paths(self, start):
        return [query for path, query, _ in self.requests if path.startswith(start)]


class ClientTest(unittest.TestCase):
    def serve(self, answers, discovery=AGGREGATED):
        server = Server(answers, discovery)
        self.addCleanup(server.close)
        return server

    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)

    def ask(self, server, command, *arguments):
        return self.run_program(command, "--server", server.url, *arguments)

    # ---- usage ----

    def test_usage_mistakes_exit_2(self):
        for arguments in (
            ["frobnicate"],
            ["get"],
            ["get", "--frob", "pods"],
            ["get", "-o", "xml", "pods"],
            ["get", "--limit", "x", "pods"],
            ["get", "pods", "a", "b"],
            ["get", "pods", "--server"],
            ["get", "--server", "ftp://x", "pods"],
            ["get", "pods/a", "b"],
            ["get", "--raw", "readyz"],
            ["get", "--raw", "/x", "pods"],
            ["get", "pods", "--all-namespaces=yes"],
            ["get", "pods", "--resource-version-match", "Exact"],
            ["get", "pods", "--history", "--diff", "1..2"],
            ["get", "pods", "--since", "5"],
            ["watch"],
            ["watch", "pods", "--initial", "--resource-version", "1"],
            ["kubeconfig", "x"],
            ["kubeconfig", "--cert", "a"],
            ["help", "x"],
            [],
            ["serve", "--memory", "--data-dir", "/nonexistent"],
            ["serve", "--history-bytes", "many"],
            ["serve", "x"],
        ):
            result = self.run_program(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertNotEqual(result.stderr, "")
            self.assertEqual(result.stdout, "")

    def test_help_and_version(self):
        for arguments in (
            ["--help"],
            ["get", "--help"],
            ["watch", "-h"],
            ["kubeconfig", "--help"],
            ["help"],
            ["help", "watch"],
        ):
            result = self.run_program(*arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
            self.assertIn("Usage: vedette", result.stdout)
        self.assertIn("Examples:", self.run_program("help", "get").stdout)
        self.assertRegex(self.run_program("get", "--version").stdout, r"^vedette \d+\.\d+\.\d+\n$")
        self.assertEqual(self.run_program("--version").stdout, self.run_program("get", "--version").stdout)

    def test_kubeconfig(self):
        text = self.run_program(
            "kubeconfig", "--server", "http://127.0.0.1:1", "--name", "a", "-n", "shop"
        ).stdout
        self.assertIn('    server: "http://127.0.0.1:1"\n', text)
        self.assertIn('    namespace: "shop"\ncurrent-context: "a"\n', text)
        self.assertIn(
            'token: "t"', self.run_program("kubeconfig", "--server", "https://h", "--token", "t").stdout
        )

    # ---- get ----

    def test_get_json_keeps_the_text_of_values(self):
        server = self.serve(lambda path, query, number: (200, pod("a", 5)))
        result = self.ask(server, "get", "po/a", "-n", "shop", "-o", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout), pod("a", 5))
        self.assertIn("12345678901234567890", result.stdout)
        self.assertIn('\n    "kind": "Pod",\n', result.stdout)
        self.assertEqual(server.requests[-1][0], "/api/v1/namespaces/shop/pods/a")

    # ---- get --history, get --diff ----

    def test_history_begins_where_the_server_does(self):
        def answers(path, query, number):
            if query.get("watch"):
                if query["resourceVersion"] == "1":
                    return [event("ERROR", failure(410, "Expired", "too old resource version: 1 (12)"))]
                self.assertEqual(
                    (query["resourceVersion"], query["fieldSelector"]), ("12", "metadata.name=a")
                )
                return [
                    event("MODIFIED", pod("a", 14, app="db")),
                    event("DELETED", pod("a", 15, app="db")),
                    event("ADDED", pod("a", 16)),
                    event(
                        "BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "20"}}
                    ),
                    event("MODIFIED", pod("a", 99)),
                ]
            if query.get("resourceVersionMatch") == "Exact":
                self.assertEqual(
                    (query["resourceVersion"], query["fieldSelector"]), ("12", "metadata.name=a")
                )
                return 200, pod_list(12, pod("a", 9, app="web"))
            return 200, pod_list(20)

        result = self.ask(self.serve(answers), "get", "pod", "a", "-n", "shop", "--history")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(
            result.stdout,
            "9           existed; earlier changes are not in the history\n"
            "14          changed\n            metadata.labels.app: \"web\" -> \"db\"\n"
            "15          deleted\n16          created\n",
        )

    def test_history_since_and_as_json(self):
        def answers(path, query, number):
            if query.get("watch"):
                return [event("MODIFIED", pod("a", 7, app="db"))]
            return 200, pod_list(7, *([pod("a", 5, app="web")] if query.get("resourceVersionMatch") else []))

        result = self.ask(
            self.serve(answers), "get", "pod/a", "-n", "shop", "--history", "--since", "5", "-o", "json"
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        line = json.loads(result.stdout)
        self.assertEqual((line["type"], line["name"], line["resourceVersion"]), ("MODIFIED", "a", "7"))
        self.assertEqual(line["changes"], [{"path": "metadata.labels.app", "from": "web", "to": "db"}])
        refused = self.serve(
            lambda path, query, number: (
                [event("ERROR", failure(410, "Expired", "too old resource version: 5 (12)"))]
                if query.get("watch")
                else (200, pod_list(20))
            )
        )
        result = self.ask(refused, "get", "pod/a", "--history", "--since", "5")
        self.assertEqual(result.returncode, 1)
        self.assertIn("too old resource version: 5 (12)", result.stderr)
        self.assertEqual(self.ask(refused, "get", "pods", "--history").returncode, 2)

    def test_diff_of_two_revisions(self):
        states = {
            "5": [pod("a", 3, app="web"), pod("b", 4), pod("same", 2)],
            "9": [pod("a", 8, app="db", **{"x.y/z": "1"}), pod("c", 9), pod("same", 2)],
        }

        def answers(path, query, number):
            if query.get("resourceVersionMatch") == "Exact":
                return 200, pod_list(int(query["resourceVersion"]), *states[query["resourceVersion"]])
            return 200, pod_list(9)

        expected = (
            '~ shop/a\n    metadata.labels.app: "web" -> "db"\n'
            '    metadata.labels["x.y/z"]: (none) -> "1"\n- shop/b\n+ shop/c\n'
        )
        server = self.serve(answers)
        for span in ("5..9", "5..", "5"):
            result = self.ask(server, "get", "pods", "-n", "shop", "--diff", span)
            self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", expected))
        result = self.ask(server, "get", "pods", "-A", "--diff", "9..5", "-o", "json")
        self.assertEqual(
            [json.loads(line)["type"] for line in result.stdout.splitlines()],
            ["MODIFIED", "ADDED", "DELETED"],
        )
        for span in ("x", "5..x", "..9", "0..9"):
            self.assertEqual(self.ask(server, "get", "pods", "--diff", span).returncode, 2)

    def test_get_list_reads_all_pages(self):
        def answers(path, query, number):
            if "continue" not in query:
                return 200, pod_list(9, pod("a", 1), pod("b", 2), **{"continue": "t/1 ="})
            return 200, pod_list(9, pod("c", 3))

        server = self.serve(answers)
        result = self.ask(
            server,
            "get",
            "pods",
            "-A",
            "-o",
            "json",
            "--chunk-size",
            "2",
            "-l",
            "app in (a, b)",
            "--resource-version",
            "7",
        )
        self.assertEqual(json.loads(result.stdout), pod_list(9, pod("a", 1), pod("b", 2), pod("c", 3)))
        first, second = server.paths("/api/v1/pods")
        self.assertEqual(
            first,
            {
                "limit": "2",
                "labelSelector": "app in (a, b)",
                "resourceVersion": "7",
                "resourceVersionMatch": "NotOlderThan",
            },
        )
        self.assertEqual(second, {"limit": "2", "labelSelector": "app in (a, b)", "continue": "t/1 ="})

    def test_get_limit_ends_the_list(self):
        def answers(path, query, number):
            return 200, pod_list(9, *[pod("p%d" % number, 1)] * int(query["limit"]), **{"continue": "more"})

        server = self.serve(answers)
        result = self.ask(server, "get", "pods", "-o", "name", "--chunk-size", "2", "--limit", "3")
        self.assertEqual(result.stdout, "pod/p1\npod/p1\npod/p2\n")
        self.assertEqual(
            [query["limit"] for query in server.paths("/api/v1/namespaces/default/pods")], ["2", "1"]
        )

    def test_get_expired_page_goes_on_with_the_fresh_token(self):
        def answers(path, query, number):
            if "continue" not in query:
                return 200, pod_list(9, pod("a", 1), **{"continue": "old"})
            if query["continue"] == "old":
                return 410, failure(410, "Expired", "too old", metadata={"continue": "fresh"})
            return 200, pod_list(20, pod("b", 15))

        result = self.ask(self.serve(answers), "get", "pods", "-o", "name")
        self.assertEqual((result.returncode, result.stdout), (0, "pod/a\npod/b\n"))
        self.assertIn("newer", result.stderr)

    def test_get_table(self):
        table = {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": "9"},
            "columnDefinitions": [
                {"name": "Name", "type": "string", "priority": 0},
                {"name": "Restarts", "type": "integer", "priority": 0},
                {"name": "Node", "type": "string", "priority": 1},
            ],
            "rows": [
                {"cells": ["a", 3, "n1"], "object": {"metadata": {"name": "a", "namespace": "shop"}}},
                {
                    "cells": ["caf\u00e9-long", 0, None],
                    "object": {"metadata": {"name": "b", "namespace": "x"}},
                },
            ],
        }
        server = self.serve(lambda path, query, number: (200, table))
        self.assertEqual(
            self.ask(server, "get", "pods").stdout,
            "NAME        RESTARTS\na           3\ncaf\u00e9-long   0\n",
        )
        self.assertIn("as=Table", server.requests[-1][2]["Accept"])
        self.assertEqual(
            self.ask(server, "get", "pods", "-A", "-o", "wide").stdout,
            "NAMESPACE   NAME        RESTARTS   NODE\n"
            "shop        a           3          n1\n"
            "x           caf\u00e9-long   0          <none>\n",
        )
        self.assertEqual(
            self.ask(server, "get", "pods", "--no-headers").stdout.splitlines()[0], "a           3"
        )

    def test_get_of_a_server_without_tables_prints_names(self):
        server = self.serve(lambda path, query, number: (200, pod_list(3, pod("a", 1))))
        self.assertEqual(self.ask(server, "get", "pods", "-A").stdout, "NAMESPACE   NAME\nshop        a\n")

    def test_get_nothing(self):
        server = self.serve(lambda path, query, number: (200, pod_list(3)))
        result = self.ask(server, "get", "pods", "-n", "shop")
        self.assertEqual(
            (result.returncode, result.stdout, result.stderr),
            (0, "", "No resources found in shop namespace.\n"),
        )
        self.assertEqual(json.loads(self.ask(server, "get", "pods", "-o", "json").stdout), pod_list(3))

    def test_names_of_resources(self):
        for discovery in (AGGREGATED, LEGACY):
            server = self.serve(lambda path, query, number: (200, pod_list(1)), discovery)
            for typed, path in (
                ("pods", "/api/v1/namespaces/default/pods"),
                ("pod", "/api/v1/namespaces/default/pods"),
                ("PO", "/api/v1/namespaces/default/pods"),
                ("Pod", "/api/v1/namespaces/default/pods"),
                ("pods.v1", "/api/v1/namespaces/default/pods"),
                ("deployments.apps", "/apis/apps/v1/namespaces/default/deployments"),
                ("deploy", "/apis/apps/v1/namespaces/default/deployments"),
                ("deployment.v1.apps", "/apis/apps/v1/namespaces/default/deployments"),
            ):
                self.assertEqual(self.ask(server, "get", typed, "-o", "name").returncode, 0, typed)
                self.assertEqual(server.requests[-1][0], path, typed)
            result = self.ask(server, "get", "frobs")
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr, 'vedette get: the server does not have a resource type "frobs"\n')
            self.assertEqual(self.ask(server, "get", "pods.apps").returncode, 1)

    def test_cluster_scope_has_no_namespace(self):
        server = self.serve(lambda path, query, number: (200, pod_list(1)))
        self.ask(server, "get", "nodes", "-n", "shop", "-o", "name")
        self.assertEqual(server.requests[-1][0], "/api/v1/nodes")

    def test_errors_say_what_the_server_said(self):
        server = self.serve(lambda path, query, number: (404, failure(404, "NotFound", 'pods "x" not found')))
        result = self.ask(server, "get", "pod", "x")
        self.assertEqual(
            (result.returncode, result.stdout, result.stderr),
            (1, "", 'vedette get: pods "x" not found (NotFound)\n'),
        )
        server = self.serve(lambda path, query, number: (502, b"<html>bad gateway</html>\nmore"))
        self.assertEqual(
            self.ask(server, "get", "--raw", "/x").stderr,
            "vedette get: the server answered with HTTP status 502: <html>bad gateway</html> more\n",
        )

    def test_nobody_there(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            address = "http://127.0.0.1:%d" % unused.getsockname()[1]
        for command in ("get", "watch"):
            result = self.run_program(command, "--server", address, "pods")
            self.assertEqual(result.returncode, 1)
            self.assertIn(address, result.stderr)

    def test_a_libcurl_that_cannot_be_loaded_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "libcurl.so.4"), "w") as broken:
                broken.write("no library")
            for command in (
                ["get", "pods", "--server", "http://127.0.0.1:1"],
                ["watch", "pods", "--server", "http://127.0.0.1:1"],
            ):
                result = subprocess.run(
                    [PROGRAM, *command],
                    capture_output=True,
                    text=True,
                    timeout=60,
                    env={**os.environ, "LD_LIBRARY_PATH": folder},
                )
                self.assertEqual(result.returncode, 1)
                self.assertIn("requests require libcurl (Debian: libcurl4)", result.stderr)

    def test_raw(self):
        server = self.serve(lambda path, query, number: (200, b"ok"))
        result = self.ask(server, "get", "--raw", "/readyz?verbose=1", "--token", "secret")
        self.assertEqual(result.stdout, "ok")
        self.assertEqual(server.requests[-1][2]["Authorization"], "Bearer secret")

    # ---- watch ----

    def test_watch_starts_now_and_cuts_events_anywhere(self):
        text = (
            event("ADDED", pod("c}{\"\\", 11))
            + event("MODIFIED", pod("a", 12)).rstrip()
            + event("DELETED", pod("b", 13))
        )

        def answers(path, query, number):
            if "watch" not in query:
                return 200, pod_list(10, pod("a", 1), pod("b", 2))
            return [text[i : i + 7] for i in range(0, len(text), 7)]

        server = self.serve(answers)
        result = self.ask(
            server, "watch", "pods", "-n", "shop", "-o", "json", "--count", "3", "-l", "app=web"
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        events = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(
            [(e["type"], e["object"]["metadata"]["resourceVersion"]) for e in events],
            [("ADDED", "11"), ("MODIFIED", "12"), ("DELETED", "13")],
        )
        self.assertEqual(
            server.requests[-1][1],
            {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": "10",
                "labelSelector": "app=web",
            },
        )

    def test_watch_resumes_after_a_cut_from_the_last_revision(self):
        def answers(path, query, number):
            if "watch" not in query:
                return 200, pod_list(10)
            after = int(query["resourceVersion"])
            if after == 10:
                return [
                    event("ADDED", pod("a", 11)),
                    event("BOOKMARK", pod("", 15)),
                    event("ADDED", pod("half", 16))[:20],
                    None,
                ]
            return [event("MODIFIED", pod("a", after + 1))]

        server = self.serve(answers)
        result = self.ask(server, "watch", "pods", "-n", "shop", "-o", "name", "--count", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "ADDED    pod/a 11\nMODIFIED pod/a 16\nMODIFIED pod/a 17\n")
        self.assertIn("resuming after revision 15", result.stderr)
        self.assertEqual(
            [q["resourceVersion"] for q in server.paths("/api") if "watch" in q], ["10", "15", "16"]
        )

    def lists_again(self, gone):
        def answers(path, query, number):
            if "watch" not in query:
                if number == 1:
                    return 200, pod_list(10, pod("same", 1), pod("changed", 2), pod("removed", 3))
                return 200, pod_list(50, pod("same", 1), pod("changed", 40), pod("new", 45))
            return gone if query["resourceVersion"] == "10" else [event("ADDED", pod("later", 51))]

        server = self.serve(answers)
        result = self.ask(server, "watch", "pods", "-n", "shop", "-o", "name", "--count", "4")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(
            result.stdout,
            "MODIFIED pod/changed 40\nADDED    pod/new 45\nDELETED  pod/removed 50\nADDED    pod/later 51\n",
        )
        self.assertIn("revision 10 is no longer in the server's history", result.stderr)

    def test_watch_lists_again_on_an_error_event(self):
        self.lists_again([event("ERROR", failure(410, "Expired", "too old resource version: 10 (20)"))])

    def test_watch_lists_again_on_http_410(self):
        self.lists_again((410, failure(410, "Expired", "too old resource version: 10 (20)")))

    def test_watch_waits_while_the_server_is_away(self):
        def answers(path, query, number):
            if "watch" not in query:
                return 200, pod_list(10)
            if number == 2:
                return [event("ADDED", pod("a", 11)), None]
            if number < 5:
                return 429, failure(429, "TooManyRequests", "not now")
            return [event("MODIFIED", pod("a", 12))]

        result = self.ask(self.serve(answers), "watch", "pods", "-n", "shop", "-o", "name", "--count", "2")
        self.assertEqual((result.returncode, result.stdout), (0, "ADDED    pod/a 11\nMODIFIED pod/a 12\n"))
        self.assertEqual(result.stderr.count("resuming"), 1, result.stderr)

    def test_watch_gives_up_on_what_cannot_pass(self):
        def answers(path, query, number):
            return (
                (400, failure(400, "BadRequest", "unable to parse"))
                if "watch" in query
                else (200, pod_list(1))
            )

        result = self.ask(self.serve(answers), "watch", "pods")
        self.assertEqual(
            (result.returncode, result.stderr), (1, "vedette watch: unable to parse (BadRequest)\n")
        )

    def test_watch_initial_and_by_name(self):
        def answers(path, query, number):
            self.assertEqual(query["fieldSelector"], "metadata.name=a")
            return (
                (200, pod_list(10, pod("a", 4)))
                if "watch" not in query
                else [event("MODIFIED", pod("a", 12))]
            )

        result = self.ask(
            self.serve(answers), "watch", "pods", "a", "-n", "shop", "--initial", "-o", "json", "--count", "2"
        )
        self.assertEqual(
            [json.loads(line)["type"] for line in result.stdout.splitlines()],
            ["ADDED", "MODIFIED"],
            result.stderr,
        )

    def test_watch_from_a_revision_lists_nothing(self):
        server = self.serve(lambda path, query, number: [event("ADDED", pod("a", 8))])
        self.ask(server, "watch", "pods", "-A", "--resource-version", "7", "--count", "1")
        self.assertEqual([query.get("resourceVersion") for query in server.paths("/api/v1/pods")], ["7"])

    def test_watch_table(self):
        columns = [{"name": "Name", "priority": 0}, {"name": "Ready", "priority": 0}]

        def row(kind, name, ready, revision, heads):
            return event(
                kind,
                {
                    "kind": "Table",
                    "metadata": {"resourceVersion": str(revision)},
                    "columnDefinitions": heads,
                    "rows": [
                        {
                            "cells": [name, ready],
                            "object": {
                                "metadata": {
                                    "name": name,
                                    "namespace": "shop",
                                    "resourceVersion": str(revision),
                                }
                            },
                        }
                    ],
                },
            )

        def answers(path, query, number):
            if "watch" not in query:
                return 200, {
                    "kind": "Table",
                    "metadata": {"resourceVersion": "5"},
                    "columnDefinitions": columns,
                    "rows": [],
                }
            return [row("ADDED", "a", "0/1", 6, columns), row("MODIFIED", "a", "1/1", 7, [])]

        server = self.serve(answers)
        result = self.ask(server, "watch", "pods", "-n", "shop", "--count", "2")
        self.assertEqual(
            result.stdout,
            "EVENT      NAME   READY\nADDED      a      0/1\nMODIFIED   a      1/1\n",
            result.stderr,
        )


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
