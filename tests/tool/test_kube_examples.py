#!/usr/bin/env python3
"""The examples kube_informer and kube_controller against `vedette serve`.

test_kube_examples.py VEDETTE INFORMER CONTROLLER [TEST...]
"""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from serve_process import ServeProcess  # noqa: E402
from waiting import GUARD, until as until_change  # noqa: E402

VEDETTE, INFORMER, CONTROLLER = sys.argv[1:4]

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "websites.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "websites", "singular": "website", "kind": "Website"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
WEBSITES = "/apis/example.com/v1/namespaces/default/websites"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/website-controller"


def until(check):
    """Polls the server, which notifies nobody here."""
    result = until_change(check, again=0.05)
    assert result, "not within %d s" % GUARD


class Examples(unittest.TestCase):
    def setUp(self):
        self.server = ServeProcess(VEDETTE, "--memory")
        self.addCleanup(self.server.kill)

    def request(self, *arguments):
        """Returns the answer; None if it is an error."""
        return self.server.request(*arguments)[1]

    def put_pod(self, name, node):
        self.assertIsNotNone(
            self.request(
                "POST",
                "/api/v1/namespaces/default/pods",
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": name,
                        "labels": {"app": name},
                        "ownerReferences": [
                            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "1"}
                        ],
                    },
                    "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
                },
            )
        )

    def test_informer_adds_labels_and_owners_of_this_node(self):
        self.put_pod("web", "n1")
        self.put_pod("db", "n2")
        ended = subprocess.run(
            [INFORMER, self.server.url],
            input="default web GET / 200\ndefault db x\n",
            capture_output=True,
            text=True,
            timeout=GUARD,
            env={**os.environ, "NODE_NAME": "n1"},
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(
            [json.loads(line) for line in ended.stdout.splitlines()],
            [
                {
                    "log": "GET / 200",
                    "kubernetes": {
                        "namespace": "default",
                        "pod": "web",
                        "labels": {"app": "web"},
                        "owners": ["ReplicaSet/rs"],
                    },
                },
                {"log": "x", "kubernetes": {"namespace": "default", "pod": "db"}},
            ],
        )

    def test_informer_without_a_server(self):
        ended = subprocess.run(
            [INFORMER],
            capture_output=True,
            text=True,
            timeout=GUARD,
            env={"NODE_NAME": "n1", "HOME": "/nonexistent", "PATH": os.environ["PATH"]},
        )
        self.assertEqual(ended.returncode, 1)
        self.assertIn("kubeconfig", ended.stderr)

    def page(self, name):
        answer = self.request("GET", CONFIG_MAPS + "/" + name)
        return answer and answer["data"].get("index.html")

    def status(self, name):
        answer = self.request("GET", WEBSITES + "/" + name)
        return answer and answer.get("status")

    def test_controller_keeps_its_config_map(self):
        self.assertIsNotNone(
            self.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        )
        until(lambda: self.request("GET", WEBSITES))
        controller = subprocess.Popen(
            [CONTROLLER, self.server.url], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.addCleanup(controller.stdout.close)
        self.addCleanup(controller.wait)
        self.addCleanup(controller.kill)
        site = {
            "apiVersion": "example.com/v1",
            "kind": "Website",
            "metadata": {"name": "hello"},
            "spec": {"page": "one"},
        }
        self.assertIsNotNone(self.request("POST", WEBSITES, site))
        until(lambda: self.status("hello") == {"ready": True, "configMap": "hello", "observedGeneration": 1})
        self.assertEqual(self.page("hello"), "one")
        self.request("PATCH", WEBSITES + "/hello", {"spec": {"page": "two"}}, "application/merge-patch+json")
        until(lambda: self.page("hello") == "two")
        # what others change or delete is put right
        self.request(
            "PATCH", CONFIG_MAPS + "/hello", {"data": {"index.html": "three"}}, "application/merge-patch+json"
        )
        until(lambda: self.page("hello") == "two")
        self.request("DELETE", CONFIG_MAPS + "/hello")
        until(lambda: self.page("hello") == "two")
        self.assertTrue(self.request("GET", LEASE)["spec"]["holderIdentity"])
        self.request("DELETE", WEBSITES + "/hello")
        until(lambda: self.request("GET", WEBSITES + "/hello") is None)
        self.assertIsNone(self.page("hello"))
        controller.terminate()
        self.assertEqual(controller.wait(GUARD), 0)
        self.assertEqual(self.request("GET", LEASE)["spec"]["holderIdentity"], "")  # released
        self.assertIn("default/hello: finalizer removed", controller.stdout.read())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
