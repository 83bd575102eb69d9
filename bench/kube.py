#!/usr/bin/env python3
"""Informers on a real kube-apiserver and etcd; `bench/run kube` calls this. Prints one JSON line for each side
and round. Both sides run alone, in alternating order, on the same server with the same pods of 4 KB:

  vedette    tests/integration/kube/kube_witness.c over vedette/kube.h: JSON
  client-go  tests/peers kube-informer: its shared informer of typed pods: protobuf

  sync_cpu_us      CPU time of the client for each object, from its start until it is synced
  event_cpu_us     CPU time of the client for each event, while a writer changes pods one after the other
  rss_mb           memory (RSS) after the events
  upstream_cpu_us  CPU time of the kube-apiserver for each event, with the writer's requests
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import runners  # noqa: E402

sys.path.insert(0, os.path.join(runners.root, "tests", "integration"))
import kube_server  # noqa: E402

parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("witness", help="kube_witness")
parser.add_argument("peers", help="the folder of peers, etcd, etcdctl and kube-apiserver")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--scale", type=float, default=1.0)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
pods = max(100, int(10000 * options.scale))
changes = max(100, pods // 2)
tick = os.sysconf("SC_CLK_TCK")


class Informer:
    """One side as a process; commands and reports as in kube_witness.c."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.wait("ready")

    def wait(self, word):
        for line in self.process.stdout:
            if line.split(" ")[0] == word:
                return line.split()
        sys.exit("the informer ended before it reported " + word)

    def ask(self, command, word):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.wait(word)

    def usage(self):
        rss, cpu, events = self.ask("usage", "u")[1:4]
        return int(rss), int(cpu), int(events)

    def end(self):
        self.process.communicate("quit\n", timeout=120)


def pod(number):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod-%06d" % number, "labels": {"app": "a%d" % (number % 100)}, "annotations": {"filling": "x" * 3200}},
            "spec": {"containers": [{"name": "c", "image": "registry.example.com/a:1"}], "terminationGracePeriodSeconds": 0}}


def create_pods(server):
    def create(number):
        code, answer = server.api.ask("POST", "/api/v1/namespaces/default/pods", pod(number))
        if code != 201:
            sys.exit("a pod was not created: %s" % answer)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(pods)))


def cpu_of(child):
    with open("/proc/%d/stat" % child.pid, encoding="utf-8") as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000000 // tick


def change_pods(server, mark):
    for number in range(changes):
        path = "/api/v1/namespaces/default/pods/pod-%06d" % (number * 7 % pods)
        code, answer = server.api.ask("PATCH", path, {"metadata": {"annotations": {"mark": mark + str(number)}}}, "application/merge-patch+json")
        if code != 200:
            sys.exit("a pod was not changed: %s" % answer)


def measure(server, name, mark, command):
    informer = Informer(*command)
    informer.ask("open 1 pods - - -", "S")
    _, synced_cpu, synced_events = informer.usage()
    upstream = cpu_of(server.process)
    change_pods(server, mark)
    end = time.monotonic() + 60
    while True:
        rss, cpu, events = informer.usage()
        if events >= synced_events + changes:
            break
        if time.monotonic() > end:
            sys.exit("%s received %d events of %d" % (name, events - synced_events, changes))
        time.sleep(0.05)
    upstream = cpu_of(server.process) - upstream
    informer.end()
    print(json.dumps({"server": name, "case": "kube-informer:%d" % pods, "sync_cpu_us": synced_cpu / pods, "event_cpu_us": (cpu - synced_cpu) / changes, "rss_mb": rss / 1e6,
                      "upstream_cpu_us": upstream / changes}), flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="vedette-bench-kube-") as folder:
        server = kube_server.KubeServer(folder, options.peers)
        try:
            config = server.kubeconfig(folder + "/kubeconfig")
            create_pods(server)
            sides = [("vedette", [options.witness]), ("client-go", [os.path.join(options.peers, "peers"), "kube-informer", "--typed"])]
            for number in range(options.rounds):
                for name, command in sides if number % 2 == 0 else sides[::-1]:
                    measure(server, name, "%s-%d-" % (name, number), command + ["--kubeconfig", config, "--quiet"])
        finally:
            server.stop()


main()
