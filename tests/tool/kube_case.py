"""The fixtures of the tests of the program with a Kubernetes endpoint: sys.argv[1] is the program."""

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from serve_process import ServeProcess  # noqa: E402
from waiting import CHANGES, GUARD  # noqa: E402

PROGRAM = sys.argv[1]


class Server(ServeProcess):
    def __init__(self, *arguments, **options):
        super().__init__(PROGRAM, *arguments, **options)

    def await_change(self, path, revision):
        """Waits for the next change of a list after a revision."""
        with urllib.request.urlopen(
            "%s%s?watch=true&resourceVersion=%s" % (self.url, path, revision), timeout=GUARD
        ) as answer:
            return answer.readline()

    def revision(self):
        code, answer = self.request("GET", "/api/v1/configmaps?limit=1")
        return int(answer["metadata"]["resourceVersion"]) if code == 200 else 0

    def write(self, name, value, namespace="default"):
        path = "/api/v1/namespaces/%s/configmaps" % namespace
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"value": str(value)},
        }
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
