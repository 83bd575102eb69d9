#!/usr/bin/env python3
"""A cluster is recorded and replayed. Both must give the same watch events, lists at several revisions, and
final state.

    round_trip.py serve VEDETTE PEERS   client-go writes to `vedette serve`, recorded through its etcd port
    round_trip.py kube VEDETTE KUBE     kubectl writes to a real kube-apiserver on `vedette etcd`, recorded

The recorder is killed once and continues. The recording is replayed to real clients (--listen), and printed.
"""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from waiting import until  # noqa: E402

HANG = 600  # seconds; ends a hanging test, measures nothing
MODE, VEDETTE, PROGRAM = sys.argv[1:4]
FULL = os.environ.get("VEDETTE_TEST_SIZE", "small") != "small"
SCRATCH = tempfile.mkdtemp()
LOG = os.path.join(SCRATCH, "log.ndjson.zst")
children = []


def start(name, *arguments, stdout=None):
    errors = open(os.path.join(SCRATCH, name + ".err"), "a+", encoding="utf-8")
    child = subprocess.Popen([str(a) for a in arguments], stderr=errors, stdout=stdout or errors)
    children.append(child)
    child.errors = errors.name
    return child


def stop(child, how=signal.SIGTERM):
    child.send_signal(how)
    child.wait(HANG)
    children.remove(child)
    return child.returncode


def wait_for_file(what, condition, child, path):
    """Waits until the condition, which depends on the file, is true, and returns its value."""
    result = until(condition, child, path, HANG)
    if not result:
        sys.exit("%s: it did not happen: %s" % (what, open(child.errors, encoding="utf-8").read()[-2000:]))
    return result


def wait_for(what, condition, child):
    """The same for a condition that only a server knows, so it is polled."""
    result = until(condition, child, guard=HANG, again=0.05)
    if not result:
        sys.exit("%s: it did not happen: %s" % (what, open(child.errors, encoding="utf-8").read()[-2000:]))
    return result


def ready_line(child):
    def find():
        for line in open(child.errors, encoding="utf-8"):
            if line.startswith("vedette: ready ") and line.endswith("\n"):
                return line.split()[2:]
        return None

    return wait_for_file("ready", find, child, child.errors)


# ---- Observations of clients ----


class Endpoint:
    def __init__(self, url, token=None):
        self.url = url
        self.token = token
        self.context = ssl._create_unverified_context() if url.startswith("https") else None

    def open(self, path, **query):
        request = urllib.request.Request(
            self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        )
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        return urllib.request.urlopen(request, timeout=HANG, context=self.context)

    def get(self, path, **query):
        with self.open(path, **query) as answer:
            return json.load(answer)

    def list_at(self, path, revision):
        return self.get(path, resourceVersion=revision, resourceVersionMatch="Exact")

    def watch(self, path, after, until):
        """Returns the events after a revision, up to the one at until."""
        events = []
        with self.open(path, watch=1, resourceVersion=after) as answer:
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    sys.exit("%s: the watch says %s" % (self.url, line))
                events.append(event)
                if int(event["object"]["metadata"]["resourceVersion"]) >= until:
                    return events
        sys.exit("%s%s: the watch ended before revision %d" % (self.url, path, until))


def changes_of(prefix):
    """Returns the revisions in the log for keys under prefix, without the snapshot; and the snapshot's
    revision."""
    revisions, first = [], 0
    text = subprocess.run(["zstd", "-dc", LOG], stdout=subprocess.PIPE, check=True).stdout
    for line in text.splitlines():
        record = json.loads(line)
        if "snapshotEnd" in record:
            first, revisions = record["snapshotEnd"], []
        elif "rev" in record and record["key"].startswith(prefix):
            revisions.append(record["rev"])
    return revisions, first


def compare(what, original, replayed):
    if original == replayed:
        return
    for name, value in (("original", original), ("replayed", replayed)):
        with open(os.path.join(SCRATCH, name), "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1, sort_keys=True)
    print("%s differs:" % what)
    sys.stdout.flush()
    subprocess.run(["diff", "-u", "original", "replayed"], cwd=SCRATCH)
    sys.exit(1)


def items(answer):
    """kube-apiserver omits kind and apiVersion in the items of a list of a built-in kind."""
    return [
        {name: value for name, value in item.items() if name not in ("kind", "apiVersion")}
        for item in answer["items"]
    ]


def observe(endpoint, kinds, first):
    """Returns everything that is compared, by name."""
    seen = {}
    for path, prefix in kinds.items():
        revisions, _ = changes_of(prefix)
        if not revisions:
            sys.exit("nothing was recorded of %s" % prefix)
        last = revisions[-1]
        for part in range(5):
            revision = max(first, revisions[(len(revisions) - 1) * part // 4])
            seen["the list of %s at %d" % (path, revision)] = items(endpoint.list_at(path, revision))
        seen["the watch of %s from %d to %d" % (path, first, last)] = endpoint.watch(path, first, last)
        seen["the state of %s at the end" % path] = items(endpoint.list_at(path, last))
    return seen


def check_printed(name, seen, path, first):
    """vedette replay --print has the events of the original watch."""
    events = next(value for key, value in seen.items() if key.startswith("the watch of %s from" % path))
    printed = subprocess.run(
        [VEDETTE, "replay", LOG, "--watch", "%s?resourceVersion=%d" % (name, first)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    compare(
        "what is printed of %s" % name,
        events,
        [{"type": line["type"], "object": line["object"]} for line in lines if line["type"] != "BOOKMARK"],
    )


# ---- Recording ----


class Recording:
    def __init__(self, etcd):
        self.arguments = [
            VEDETTE,
            "record",
            "--etcd",
            "http://" + etcd,
            "--output",
            LOG,
            "--resume",
            "--quiet",
        ]
        self.child = None

    def begin(self):
        self.child = start("record", *self.arguments)
        wait_for_file("the recorded state", self.has_state, self.child, LOG)

    def has_state(self):
        text = subprocess.run(["zstd", "-dc", LOG], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        return b"snapshotEnd" in text

    def kill(self):
        stop(self.child, signal.SIGKILL)
        self.child = start("record", *self.arguments)

    def finish(self, revision):
        if stop(self.child) != 0:
            sys.exit("record did not end well")
        if subprocess.run(self.arguments + ["--until", str(revision)], timeout=HANG).returncode != 0:
            sys.exit("record --until did not end well")


def replay_and_compare(seen, kinds, first, names):
    player = start(
        "replay", VEDETTE, "replay", LOG, "--listen", "127.0.0.1:0", "--read-only", "--history-bytes", "1GiB"
    )
    url = ready_line(player)[0]
    endpoint = Endpoint(url)
    wait_for("the end of the log", lambda: endpoint.get("/debug/vedette")["store"]["replay"]["ended"], player)
    again = observe(endpoint, kinds, first)
    for what, value in seen.items():
        compare(what, value, again[what])
    stop(player)
    for path, name in names.items():
        check_printed(name, seen, path, first)
    print("%d lists and watches are equal" % len(seen))


# ---- The two clusters ----


def live_serve():
    server = start(
        "serve",
        VEDETTE,
        "serve",
        "--memory",
        "--listen",
        "127.0.0.1:0",
        "--etcd-listen",
        "127.0.0.1:0",
        "--history-window",
        "1h",
        "--history-bytes",
        "1GiB",
    )
    words = ready_line(server)
    url, etcd = words[0], words[words.index("etcd") + 1]
    recording = Recording(etcd)
    recording.begin()
    _, first = changes_of("/")
    sizes = ["--pods", "500", "--changes", "5000"] if FULL else ["--pods", "60", "--changes", "500"]
    load = start("load", PROGRAM, "informer-pods", "--server", url, *sizes)
    wait_for(
        "half of the load",
        lambda: int(Endpoint(url).get("/api/v1/pods", limit=1)["metadata"]["resourceVersion"]) > first + 100,
        load,
    )
    recording.kill()
    if load.wait(HANG) != 0:
        sys.exit("the load failed: " + open(load.errors, encoding="utf-8").read()[-3000:])
    children.remove(load)
    endpoint = Endpoint(url)
    recording.finish(int(endpoint.get("/api/v1/pods", limit=1)["metadata"]["resourceVersion"]))
    kinds = {"/api/v1/pods": "/registry/pods/"}
    seen = observe(endpoint, kinds, first)
    stop(server)
    replay_and_compare(seen, kinds, first, {"/api/v1/pods": "pods"})


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def live_kube():
    store = start("etcd", VEDETTE, "etcd", "--memory", "--listen", "127.0.0.1:0")
    words = ready_line(store)
    etcd = words[words.index("etcd") + 1]
    port = free_port()
    key = os.path.join(SCRATCH, "key")
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, stderr=subprocess.DEVNULL)
    tokens = os.path.join(SCRATCH, "tokens")
    with open(tokens, "w", encoding="utf-8") as file:
        file.write("test-token,peers,1,system:masters\n")
    kube = start(
        "kube",
        PROGRAM,
        "--etcd-servers=http://" + etcd,
        "--bind-address=127.0.0.1",
        "--secure-port=%d" % port,
        "--cert-dir=" + SCRATCH,
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=" + key,
        "--service-account-signing-key-file=" + key,
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=AlwaysAllow",
        "--token-auth-file=" + tokens,
        "--disable-admission-plugins=ServiceAccount",
    )
    endpoint = Endpoint("https://127.0.0.1:%d" % port, "test-token")

    def is_ready():
        try:
            with endpoint.open("/readyz") as answer:
                return answer.read() == b"ok"
        except OSError:
            return False

    wait_for("kube-apiserver", is_ready, kube)

    def kubectl(*arguments, **more):
        subprocess.run(
            [
                "kubectl",
                "--server=" + endpoint.url,
                "--insecure-skip-tls-verify=true",
                "--token=test-token",
                "--kubeconfig=/dev/null",
                "--cache-dir=" + SCRATCH,
                *arguments,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=HANG,
            **more
        )

    recording = Recording(etcd)
    recording.begin()
    _, first = changes_of("/")
    kubectl("create", "namespace", "team")
    for number in range(20 if FULL else 6):
        kubectl("-n", "team", "create", "configmap", "c%d" % number, "--from-literal=i=%d" % number)
        kubectl(
            "-n",
            "team",
            "create",
            "deployment",
            "web%d" % number,
            "--image=nginx:%d" % number,
            "--replicas=%d" % (number % 4),
        )
        if number == 3:
            recording.kill()
        if number % 2:
            kubectl(
                "-n",
                "team",
                "patch",
                "configmap",
                "c%d" % number,
                "--type=merge",
                "-p",
                '{"data":{"j":"x"},"metadata":{"labels":{"odd":"yes"}}}',
            )
            kubectl("-n", "team", "scale", "deployment", "web%d" % number, "--replicas=7")
    kubectl("-n", "team", "delete", "configmap", "c2")
    kubectl("-n", "team", "delete", "deployment", "web1")
    recording.finish(int(endpoint.get("/api/v1/configmaps", limit=1)["metadata"]["resourceVersion"]))
    kinds = {
        "/api/v1/namespaces/team/configmaps": "/registry/configmaps/team/",
        "/apis/apps/v1/namespaces/team/deployments": "/registry/deployments/team/",
    }
    seen = observe(endpoint, kinds, first)
    stop(kube)
    stop(store)
    replay_and_compare(
        seen,
        kinds,
        first,
        {
            "/api/v1/namespaces/team/configmaps": "configmaps",
            "/apis/apps/v1/namespaces/team/deployments": "deployments.apps",
        },
    )


def main():
    for program in ("zstd",) + (("openssl", "kubectl", PROGRAM) if MODE == "kube" else ()):
        if shutil.which(program) is None:
            print("skipped: there is no %s (docs/HACKING.md says how a kube-apiserver is built)" % program)
            sys.exit(77)
    try:
        live_serve() if MODE == "serve" else live_kube()
    finally:
        for child in children:
            child.kill()
            child.wait()
        shutil.rmtree(SCRATCH, ignore_errors=True)


main()
