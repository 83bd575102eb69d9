#!/usr/bin/env python3
"""The credentials of a kubeconfig, for vedette record and vedette verify: tokens, certificates,
programs.

    test_kubeconfig.py PROGRAM [TEST...]
"""

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kube_case import PROGRAM, Case, run, text_of  # noqa: E402
from lying_proxy import LyingProxy  # noqa: E402
from waiting import GUARD, until  # noqa: E402


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
        yaml = run(
            "record",
            "--kubeconfig",
            config,
            "--kind",
            "configmaps",
            "-q",
            "-o",
            self.path("log1"),
            "--until",
            str(last),
        )
        if "without libyaml" in yaml.stderr:
            self.skipTest("built without libyaml")
        self.assertEqual(yaml.returncode, 0, yaml.stderr)
        self.assertEqual({headers["Authorization"] for headers in proxy.headers}, {"Bearer my-token"})
        proxy.headers.clear()
        done = run(
            "record",
            "--kubeconfig",
            config,
            "--context",
            "two",
            "--kind",
            "configmaps",
            "-q",
            "-o",
            self.path("log2"),
            "--until",
            str(last),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({headers["Authorization"] for headers in proxy.headers}, {"Bearer from-a-file"})
        proxy.close()
        for context, said in (
            ("three", "only tokens, client certificates and exec"),
            ("four", '"absent"'),
            ("five", '"five"'),
        ):
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
            file.write(
                json.dumps(
                    {
                        "current-context": "a",
                        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
                        "clusters": [
                            {
                                "name": "c",
                                "cluster": {
                                    "server": url,
                                    **({"certificate-authority-data": ca} if ca else {}),
                                },
                            }
                        ],
                        "users": [
                            {
                                "name": "u",
                                "user": {
                                    "exec": {
                                        "apiVersion": "client.authentication.k8s.io/" + version,
                                        "command": "./who-am-i",
                                        "args": arguments,
                                        "provideClusterInfo": True,
                                        "installHint": "get it",
                                        "env": [{"name": "COUNT", "value": self.path("count")}],
                                        "interactiveMode": more or "Never",
                                    }
                                },
                            }
                        ],
                    }
                )
            )
        return config

    def runs_of_program(self):
        return len(text_of(self.path("count")).splitlines())

    def test_a_program_says_who_we_are(self):
        server = self.serve()
        last = server.write("a", 1)
        for version, expires, again in (
            ("v1", "", False),
            ("v1beta1", ',"expirationTimestamp":"2999-01-01T00:00:00Z"', False),
            ("v1", ',"expirationTimestamp":"2020-01-01T00:00:00Z"', True),
        ):
            if os.path.exists(self.path("count")):
                os.remove(self.path("count"))
            proxy = LyingProxy(server.url)
            config = self.config_with_program(proxy.url, [version, expires], version=version)
            done = run(
                "record",
                "--kubeconfig",
                config,
                "--kind",
                "configmaps",
                "-q",
                "-o",
                self.path("log" + str(len(proxy.url) + len(expires) + len(version))),
                "--until",
                str(last),
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            tokens = {headers["Authorization"] for headers in proxy.headers}
            proxy.close()
            # One that has expired already is used until the program has run again, after a pause.
            runs = self.runs_of_program()
            self.assertTrue(
                {"Bearer token-1"} <= tokens <= {"Bearer token-%d" % (i + 1) for i in range(runs)}, tokens
            )
            self.assertTrue(again or runs == 1, runs)
            info = json.loads(text_of(self.path("count.info")))
            self.assertEqual(
                (info["apiVersion"], info["spec"]["interactive"], info["spec"]["cluster"]["server"]),
                ("client.authentication.k8s.io/" + version, False, proxy.url),
            )

    def test_a_program_is_asked_again_when_its_token_is_refused(self):
        tokens = self.path("tokens")
        with open(tokens, "w", encoding="utf-8") as file:
            file.write("token-1,ann,1\nroot,root,2,system:masters\n")
        server = self.serve("--memory", "--token-file", tokens)
        proxy = LyingProxy(server.url)
        process = subprocess.Popen(
            [
                PROGRAM,
                "verify",
                "--kubeconfig",
                self.config_with_program(proxy.url, ["v1", ""]),
                "--kind",
                "configmaps",
                "--watch-timeout",
                "3s",
                "--output",
                "json",
                "-q",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
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
        for text, arguments, said in (
            ("#!/bin/sh\nexit 7\n", [], "status 7"),
            ("#!/bin/sh\nkill -9 $$\n", [], "signal 9"),
            ("#!/bin/sh\nyes\n", [], "1 MiB"),
            ("#!/bin/sh\necho '{}'\n", [], "not an ExecCredential"),
            (None, ["v1beta1", ""], "apiVersion differs"),
            (None, ["v1", ',"clientCertificateData":"x"'], "must be given together"),
            (None, ["v1", ',"expirationTimestamp":"soon"'], "not a time"),
            (
                "#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\","
                "\"kind\":\"ExecCredential\",\"status\":{\"token\":\"a b\"}}'\n",
                [],
                "invalid characters",
            ),
            (
                "#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\","
                "\"kind\":\"ExecCredential\"}'\n",
                [],
                "neither",
            ),
        ):
            done = run(
                "record",
                "--kubeconfig",
                self.config_with_program("http://127.0.0.1:1", arguments, text),
                "-o",
                self.path("log"),
            )
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
        config = self.config_with_program("http://127.0.0.1:1", [])
        os.remove(self.path("who-am-i"))
        self.assertIn("get it", run("record", "--kubeconfig", config, "-o", self.path("log")).stderr)
        self.assertIn(
            "terminal",
            run(
                "record",
                "--kubeconfig",
                self.config_with_program("http://127.0.0.1:1", [], more="Always"),
                "-o",
                self.path("log"),
            ).stderr,
        )

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=self.folder.name)

    def certificates(self, ca, *names):
        self.openssl(
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            ca + ".key",
            "-out",
            ca + ".pem",
            "-subj",
            "/CN=" + ca,
        )
        for name in names:
            self.openssl(
                "req",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-keyout",
                name + ".key",
                "-out",
                name + ".csr",
                "-subj",
                "/CN=" + name,
            )
            with open(self.path("ext"), "w", encoding="utf-8") as file:
                file.write("subjectAltName=IP:127.0.0.1\n")
            self.openssl(
                "x509",
                "-req",
                "-in",
                name + ".csr",
                "-CA",
                ca + ".pem",
                "-CAkey",
                ca + ".key",
                "-CAcreateserial",
                "-out",
                name + ".pem",
                "-extfile",
                "ext",
                "-days",
                "30",
            )

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
            status = {
                "clientCertificateData": text_of(self.path(certificate)),
                "clientKeyData": text_of(self.path(key)),
                **({"expirationTimestamp": expires} if expires else {}),
            }
            with open(self.path("answer-%d" % (i + 1)), "w", encoding="utf-8") as file:
                json.dump(
                    {
                        "apiVersion": "client.authentication.k8s.io/v1",
                        "kind": "ExecCredential",
                        "status": status,
                    },
                    file,
                )

    def config_with_giver(self, proxy, text=None):
        return self.config_with_program(
            proxy.url,
            [],
            text or self.GIVER.replace("answer-", self.path("answer-")),
            ca=base64.b64encode(text_of(self.path("ca.pem")).encode()).decode(),
        )

    def test_a_program_gives_certificates(self):
        self.certificates("ca", "server", "one", "two")
        one, two = (("one.pem", "one.key"), ("two.pem", "two.key"))
        for number, (said, seen, runs) in enumerate(
            (
                (((*one, None),), {"one"}, 1),
                (((*one, "2999-01-01T00:00:00Z"), (*two, None)), {"one"}, 1),
                (((*one, "2020-01-01T00:00:00Z"), (*two, None)), {"one", "two"}, None),
            )
        ):
            proxy = self.demanding_proxy()
            self.answers(*said)
            done = run(
                "record",
                "--kubeconfig",
                self.config_with_giver(proxy),
                "--kind",
                "namespaces",
                "-q",
                "-o",
                self.path("log%d" % number),
                "--until",
                "2",
            )
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
        process = subprocess.Popen(
            [
                PROGRAM,
                "record",
                "--kubeconfig",
                self.config_with_giver(proxy),
                "--kind",
                "namespaces",
                "-q",
                "--watch-timeout",
                "3s",
                "-o",
                self.path("log"),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
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
        for certificate, key in (
            ("garbage", "one.key"),
            ("one.pem", "garbage"),
            ("one.pem", "two.key"),
            ("stranger.pem", "stranger.key"),
        ):
            self.answers((certificate, key, None))
            done = run(
                "record",
                "--kubeconfig",
                self.config_with_giver(proxy),
                "--kind",
                "namespaces",
                "-q",
                "-o",
                self.path("log-" + certificate + key),
                "--until",
                "2",
            )
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertTrue(done.stderr.startswith("vedette record: "), done.stderr)
            self.assertLessEqual(self.runs_of_program(), 3)
        for text, said in (
            ("#!/bin/sh\necho certificates\n", "not an ExecCredential"),
            ("#!/bin/sh\nexit 3\n", "status 3"),
            ("#!/bin/sh\nhead -c 3000 /dev/urandom\n", "not an ExecCredential"),
        ):
            done = run(
                "record",
                "--kubeconfig",
                self.config_with_giver(proxy, text),
                "--kind",
                "namespaces",
                "-q",
                "-o",
                self.path("log"),
                "--until",
                "2",
            )
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
        done = run(
            "record",
            "--server",
            server.url,
            "--cacert",
            self.path("ca.pem"),
            "-o",
            self.path("b"),
            *arguments
        )
        self.assertEqual(done.returncode, 1, done.stderr)  # no credential
        done = run(
            "record",
            "--server",
            server.url,
            "--cacert",
            self.path("ca.pem"),
            "--cert",
            self.path("client.pem"),
            "--key",
            self.path("client.key"),
            "-o",
            self.path("c"),
            *arguments
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        data = {
            name: base64.b64encode(text_of(self.path(name)).encode()).decode()
            for name in ("ca.pem", "client.pem", "client.key")
        }
        with open(self.path("config"), "w", encoding="utf-8") as file:  # JSON is YAML
            json.dump(
                {
                    "clusters": [
                        {
                            "name": "a",
                            "cluster": {"server": server.url, "certificate-authority-data": data["ca.pem"]},
                        }
                    ],
                    "users": [
                        {
                            "name": "b",
                            "user": {
                                "client-certificate-data": data["client.pem"],
                                "client-key-data": data["client.key"],
                            },
                        }
                    ],
                    "contexts": [{"name": "c", "context": {"cluster": "a", "user": "b"}}],
                    "current-context": "c",
                },
                file,
            )
        done = run("record", "--kubeconfig", self.path("config"), "-o", self.path("d"), *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        server.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=1)
