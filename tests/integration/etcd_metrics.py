#!/usr/bin/env python3
"""etcd_metrics.py VEDETTE, under with-etcd.sh --flag=--metrics=extensive

Every metric of a real etcd is in vedette etcd's /metrics, with the same kind, labels and buckets, or in
etcd-metrics.absent with a reason. The metrics that dashboards read change when they should.
"""

import fnmatch
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

here = os.path.dirname(os.path.realpath(__file__))
failures = []


def wrong(text):
    failures.append(text)
    print("etcd_metrics.py: " + text, file=sys.stderr)


def read(url):
    """Returns families: name -> (kind, label names, bounds); and samples: line without its value -> value."""
    text = urllib.request.urlopen(url + "/metrics", timeout=60).read().decode()
    families, samples = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:4]
            families[name] = (kind, set(), set())
        elif line and line[0] != "#":
            sample, value = line.rsplit(" ", 1)
            samples[sample] = float(value)
            name, labels = re.match(r"([a-zA-Z_:0-9]+)(?:\{(.*)\})?$", sample).groups()
            if name not in families:
                name = re.sub("_(bucket|sum|count)$", "", name)
            for label, value in re.findall(r'([a-zA-Z_0-9]+)="((?:[^"\\]|\\.)*)"', labels or ""):
                if label == "le":
                    families[name][2].add(float(value))
                else:
                    families[name][1].add(label)
    return families, samples


def etcdctl(endpoint, *arguments):
    subprocess.run(
        [os.environ["ETCDCTL"], "--endpoints", endpoint, *arguments],
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=120,
    )


def use(endpoint):
    etcdctl(endpoint, "put", "a", "1")
    etcdctl(endpoint, "get", "a")
    etcdctl(endpoint, "get", "")
    etcdctl(endpoint, "endpoint", "hashkv")
    with tempfile.TemporaryDirectory() as folder:
        etcdctl(endpoint, "snapshot", "save", folder + "/db")


absent = {}
for line in open(os.path.join(here, "etcd-metrics.absent"), encoding="utf-8"):
    if line[0] != "#":
        pattern, reason = line.rstrip("\n").split("\t")
        absent[pattern] = reason
if not all(absent.values()):
    wrong("etcd-metrics.absent: a reason is missing")

with tempfile.TemporaryDirectory() as folder:
    with subprocess.Popen(
        [
            sys.argv[1],
            "etcd",
            "--data-dir",
            folder + "/data",
            "--listen",
            "127.0.0.1:0",
            "--metrics=extensive",
        ],
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        endpoint = next(line for line in server.stderr if line.startswith("vedette: ready")).split()[3]
        real, ours = (
            "http://" + os.environ["ETCD_ENDPOINTS"].split(",")[0].removeprefix("http://"),
            "http://" + endpoint,
        )
        for url in (real, ours):
            use(url)
            urllib.request.urlopen(url + "/health", timeout=60).read()
        before = read(ours)[1]
        use(ours)
        urllib.request.urlopen(ours + "/health", timeout=60).read()
        (wanted, _), (families, samples) = read(real), read(ours)
        server.terminate()
        server.stderr.read()

for name, (kind, labels, bounds) in sorted(wanted.items()):
    reasons = [pattern for pattern in absent if fnmatch.fnmatchcase(name, pattern)]
    if reasons:
        if name in families:
            wrong("%s is there, and in etcd-metrics.absent" % name)
        continue
    if name not in families:
        wrong("%s is missing" % name)
        continue
    for what, theirs, mine in (
        ("kind", kind, families[name][0]),
        ("labels", labels, families[name][1]),
        ("buckets", bounds, families[name][2]),
    ):
        if theirs != mine:
            wrong("%s: %s: etcd has %s, vedette %s" % (name, what, theirs, mine))
for pattern in absent:
    if not any(fnmatch.fnmatchcase(name, pattern) for name in wanted):
        wrong("etcd-metrics.absent: etcd has no %s" % pattern)


def grows(sample, least=1):
    if samples.get(sample, -1) < before.get(sample, 0) + least:
        wrong("%s: %s, before %s" % (sample, samples.get(sample), before.get(sample)))


for method, service, kind, code in (
    ("Put", "KV", "unary", "OK"),
    ("Range", "KV", "unary", "OK"),
    ("HashKV", "Maintenance", "unary", "OK"),
    ("Range", "KV", "unary", "InvalidArgument"),
    ("Snapshot", "Maintenance", "server_stream", "OK"),
):
    labels = 'grpc_type="%s",grpc_service="etcdserverpb.%s",grpc_method="%s"' % (kind, service, method)
    grows('grpc_server_handled_total{%s,grpc_code="%s"}' % (labels, code))
    if code == "OK":
        for name in (
            "grpc_server_started_total",
            "grpc_server_msg_received_total",
            "grpc_server_msg_sent_total",
            "grpc_server_handling_seconds_count",
        ):
            grows("%s{%s}" % (name, labels))
for name in (
    "etcd_disk_wal_fsync_duration_seconds_count",
    "etcd_network_client_grpc_sent_bytes_total",
    "etcd_network_client_grpc_received_bytes_total",
    "etcd_server_health_success",
    "etcd_mvcc_put_total",
    "etcd_mvcc_hash_rev_duration_seconds_count",
    "etcd_disk_backend_snapshot_duration_seconds_count",
):
    grows(name)
for name in (
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
    "process_start_time_seconds",
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_max_fds",
    "os_fd_used",
    "os_fd_limit",
    "etcd_server_has_leader",
    "etcd_server_quota_backend_bytes",
    "etcd_mvcc_db_total_size_in_bytes",
    "etcd_mvcc_db_total_size_in_use_in_bytes",
):
    if samples.get(name, 0) <= 0:
        wrong("%s is %s" % (name, samples.get(name)))
# Each call is counted once, at its end.
started = sum(value for sample, value in samples.items() if sample.startswith("grpc_server_started_total"))
handled = sum(value for sample, value in samples.items() if sample.startswith("grpc_server_handled_total"))
if started != handled or started == 0:
    wrong("%s calls began, %s ended" % (started, handled))
print("%d metrics of etcd: %d failed" % (len(wanted), len(failures)))
sys.exit(1 if failures else 0)
