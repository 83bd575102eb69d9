#!/usr/bin/env python3
"""The examples kube_informer and kube_controller against `vedette serve`.

    test_kube_examples.py VEDETTE INFORMER CONTROLLER [TEST...]
"""
import json
import os
import subprocess
import sys
import threading
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from waiting import GUARD, until as until_change  # noqa: E402

VEDETTE, INFORMER, CONTROLLER = sys.argv[1:4]

CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "websites.example.com"},
       "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "websites", "singular": "website", "kind": "Website"},
                "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                              "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
WEBSITES = "/apis/example.com/v1/namespaces/default/websites"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/website-controller"


def until(check):
    """Polls the server, which notifies nobody here."""
    result = until_change(check, again=0.05)
    assert result, "not within %d s" % GUARD


class Server:
    def __init__(self):
        self.process = subprocess.Popen([VEDETTE, "serve", "--memory", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if line.startswith("vedette: ready"):
                self.url = line.split()[2]
                break
        else:
            raise RuntimeError("the server did not start")
        self.reader = threading.Thread(target=self.process.stderr.read, daemon=True)
        self.reader.start()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()

    def request(self, method, path, body=None, content="application/json"):
        """Returns the answer; None if it is an error."""
        request = urllib.request.Request(self.url + path, data=json.dumps(body).encode() if body else None, method=method, headers={"Content-Type": content})
        try:
            with urllib.request.urlopen(request, timeout=GUARD) as answer:
                return json.load(answer)
        except urllib.error.HTTPError:
            return None


class Examples(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.end)

    def put_pod(self, name, node):
        self.assertIsNotNone(self.server.request("POST", "/api/v1/namespaces/default/pods", {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": name}, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "1"}]},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}}))

    def test_informer_adds_labels_and_owners_of_this_node(self):
        self.put_pod("web", "n1")
        self.put_pod("db", "n2")
        ended = subprocess.run([INFORMER, self.server.url], input="default web GET / 200\ndefault db x\n", capture_output=True, text=True, timeout=GUARD,
                               env={**os.environ, "NODE_NAME": "n1"})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual([json.loads(line) for line in ended.stdout.splitlines()], [
            {"log": "GET / 200", "kubernetes": {"namespace": "default", "pod": "web", "labels": {"app": "web"}, "owners": ["ReplicaSet/rs"]}},
            {"log": "x", "kubernetes": {"namespace": "default", "pod": "db"}}])

    def test_informer_without_a_server(self):
        ended = subprocess.run([INFORMER], capture_output=True, text=True, timeout=GUARD,
                               env={"NODE_NAME": "n1", "HOME": "/nonexistent", "PATH": os.environ["PATH"]})
        self.assertEqual(ended.returncode, 1)
        self.assertIn("kubeconfig", ended.stderr)

    def page(self, name):
        answer = self.server.request("GET", CONFIG_MAPS + "/" + name)
        return answer and answer["data"].get("index.html")

    def status(self, name):
        answer = self.server.request("GET", WEBSITES + "/" + name)
        return answer and answer.get("status")

    def test_controller_keeps_its_config_map(self):
        self.assertIsNotNone(self.server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD))
        until(lambda: self.server.request("GET", WEBSITES))
        controller = subprocess.Popen([CONTROLLER, self.server.url], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(controller.stdout.close)
        self.addCleanup(controller.wait)
        self.addCleanup(controller.kill)
        site = {"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "hello"}, "spec": {"page": "one"}}
        self.assertIsNotNone(self.server.request("POST", WEBSITES, site))
        until(lambda: self.status("hello") == {"ready": True, "configMap": "hello", "observedGeneration": 1})
        self.assertEqual(self.page("hello"), "one")
        self.server.request("PATCH", WEBSITES + "/hello", {"spec": {"page": "two"}}, "application/merge-patch+json")
        until(lambda: self.page("hello") == "two")
        # what others change or delete is put right
        self.server.request("PATCH", CONFIG_MAPS + "/hello", {"data": {"index.html": "three"}}, "application/merge-patch+json")
        until(lambda: self.page("hello") == "two")
        self.server.request("DELETE", CONFIG_MAPS + "/hello")
        until(lambda: self.page("hello") == "two")
        self.assertTrue(self.server.request("GET", LEASE)["spec"]["holderIdentity"])
        self.server.request("DELETE", WEBSITES + "/hello")
        until(lambda: self.server.request("GET", WEBSITES + "/hello") is None)
        self.assertIsNone(self.page("hello"))
        controller.terminate()
        self.assertEqual(controller.wait(GUARD), 0)
        self.assertEqual(self.server.request("GET", LEASE)["spec"]["holderIdentity"], "")  # released
        self.assertIn("default/hello: finalizer removed", controller.stdout.read())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
