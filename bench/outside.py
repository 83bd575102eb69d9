#!/usr/bin/env python3
"""Both servers as processes, durable, with an etcd; `bench/run outside` calls this. Prints one JSON line for
each case, server and round. The peer is bench/peers/cacher over that etcd (objects as protobuf, as an API
server stores them); vedette has its own store unless a case says etcd.

  rest              an empty, idle server: memory (RSS), and CPU time in percent
  tls-idle          1,000 idle watches over TLS: private memory of each
  sync-etcd         100,000 pods of 1 KB in the same etcd: CPU of the server until it is ready, wall time,
                    memory (RSS) for each after a list of all
  restart           100,000 pods: time from the start of the process until a list of all is read
  resume            a watch from 100 updates before a kill -9 and a restart: the number of the 100 that it
                    receives (the peer: 410 Expired)
  http-latency http-create   bench_http, durable
"""
import argparse
import http.client
import json
import os
import random
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import runners  # noqa: E402

parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("case", nargs="?", default="")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--scale", type=float, default=1.0)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
etcd = "http://" + os.environ["ETCD_DIRECT_ENDPOINTS"].split(",")[0].removeprefix("http://")
folder = tempfile.mkdtemp(prefix="vedette-bench-outside-")
peer = os.path.join(runners.peers, "cacher-bench")
objects = max(1000, int(100000 * options.scale))
tick = os.sysconf("SC_CLK_TCK")
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def say(server, case, **fields):
    print(json.dumps(dict(fields, server=server, case=case)), flush=True)


class Server:
    def __init__(self, program, *arguments):
        self.began = time.monotonic()
        self.process = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--no-garbage-collector"] + list(arguments), stderr=subprocess.PIPE)
        last = line = ""
        while True:
            last, line = line or last, self.process.stderr.readline().decode()
            if line.startswith("vedette: ready"):
                break
            if not line:
                sys.exit("outside.py: %s does not start: %s" % (program, last))
        self.ready = time.monotonic() - self.began
        self.port = int(line.split("://")[1].split()[0].rsplit(":", 1)[1])

    def cpu(self):
        fields = open("/proc/%d/stat" % self.process.pid).read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / tick

    def memory(self, name):
        for line in open("/proc/%d/status" % self.process.pid):
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
        return 0

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()
        self.process.stderr.close()

    def list_all(self, path="/api/v1/pods?resourceVersion=0"):
        """Reads the answer to its end into one buffer, which is cheap for the client."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n" % path.encode())
            buffer, size, head, last = bytearray(1 << 20), 0, b"", b""
            while count := connection.recv_into(buffer):
                size += count
                head, last = head or bytes(buffer[:100]), (last + bytes(buffer[max(0, count - 16):count]))[-16:]
        status = int(head.split(b" ", 2)[1])
        if status != 200 or size < objects * 900 or b"]}" not in last:
            sys.exit("outside.py: a list of %d bytes, status %d, that ends in %s" % (size, status, last))

    def ask(self, path, method="GET", body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        size, first = 0, b""
        while piece := answer.read(1 << 20):
            size += len(piece)
            first = first or piece
        connection.close()
        return answer.status, size, first


def pod(number, filler):
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web-%07d" % number, "namespace": "ns-%05d" % (number // 100), "labels": {"app": "app-%05d" % (number % 100)},
                                                             "annotations": {"a": filler}},
            "spec": {"containers": [{"name": "main", "image": "web:v2.1.4"}], "nodeName": "node-%05d" % (number % 1000)}, "status": {"phase": "Running"}}


def log_of_pods(path):
    """Writes an event log of so many pods of 1 KB, for `--load`."""
    source = random.Random(options.seed)
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"vedetteLog":1}\n')
        for number in range(objects):
            filler = "%0*x" % (780, source.getrandbits(3120))
            file.write('{"rev":%d,"type":"PUT","key":"/registry/pods/ns-%05d/web-%07d","value":%s}\n' % (number + 2, number // 100, number, json.dumps(pod(number, filler))))


def rest():
    for name, program, arguments in (("vedette", runners.vedette, ["--memory"]), ("apiserver", peer, [])):
        server = Server(program, *arguments)
        time.sleep(3)
        cpu = server.cpu()
        time.sleep(10)
        say(name, "rest", rss_mib=server.memory("VmRSS") / 2**20, cpu_percent=(server.cpu() - cpu) * 10)
        server.stop()


def tls_idle():
    files = [os.path.join(folder, name) for name in ("tls.crt", "tls.key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-out", files[0],
                    "-keyout", files[1]], check=True, stderr=subprocess.DEVNULL)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    count = max(10, int(1000 * options.scale))
    for name, program, arguments in (("vedette", runners.vedette, ["--memory", "--insecure-no-auth"]), ("apiserver", peer, ["--pods", "100"])):
        server = Server(program, "--tls-cert", files[0], "--tls-key", files[1], *arguments)

        def watch():
            connection = context.wrap_socket(socket.create_connection(("127.0.0.1", server.port)))
            connection.sendall(b"GET /api/v1/namespaces/ns-00000/pods?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan HTTP/1.1\r\n"
                               b"Host: localhost\r\nAccept: application/json\r\n\r\n")
            connection.recv(4096)
            return connection

        first = [watch() for _ in range(10)]
        time.sleep(0.5)
        before = server.memory("RssAnon")
        watches = [watch() for _ in range(count)]
        time.sleep(0.5)
        say(name, "tls-idle", value=(server.memory("RssAnon") - before) / count)
        for connection in first + watches:
            connection.close()
        server.stop()


filled = set()


def fill(as_json):
    """Writes the objects of both servers, each in its own form and below its own prefix."""
    prefix = "/json" if as_json else "/protobuf"
    if prefix not in filled:
        subprocess.run([peer, "fill", "--etcd", etcd, "--prefix", prefix, "--pods", str(objects)] + (["--json"] if as_json else []), check=True)
        filled.add(prefix)
    return prefix


def sync_etcd():
    sides = [("vedette", runners.vedette, ["--data-dir", None, "--etcd-prefix", fill(True)]), ("apiserver", peer, ["--etcd-prefix", fill(False)])]
    for number in range(min(options.rounds, 3)):
        for name, program, arguments in sides if number % 2 == 0 else sides[::-1]:
            directory = os.path.join(folder, "sync-%d" % number)
            server = Server(program, "--etcd", etcd, *[word or directory for word in arguments])
            cpu, peak = server.cpu(), server.memory("VmHWM")
            server.list_all()
            until_list = time.monotonic() - server.began
            time.sleep(2)
            say(name, "sync-etcd", cpu_us=cpu * 1e6 / objects, ready_ms=server.ready * 1e3, list_ms=until_list * 1e3, peak_mib=peak / 2**20,
                rss_bytes=server.memory("VmRSS") / objects)
            server.stop()
            shutil.rmtree(directory, ignore_errors=True)


def watch_from(server, path, wanted, patience):
    """Returns the number of events received; -1 if the watch is refused."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=patience)
    connection.request("GET", path)
    answer = connection.getresponse()
    if answer.status != 200:
        return -1
    count = 0
    try:
        while count < wanted:
            line = answer.readline()
            if not line:
                break
            event = json.loads(line)
            if event["type"] == "ERROR":
                return -1
            count += 1
    except (TimeoutError, socket.timeout):
        pass
    connection.close()
    return count


def updates(server, path, body):
    """Makes 100 updates; returns the revision before the first."""
    revision = None
    for number in range(101):
        body["metadata"]["annotations"]["a"] = "update %d of %d" % (number, time.monotonic_ns())
        status, _, answer = server.ask(path, "PUT", json.dumps(body))
        if status not in (200, 201):
            sys.exit("outside.py: PUT: %d %s" % (status, answer[:200]))
        revision = revision or json.loads(answer)["metadata"]["resourceVersion"]
    return revision


def life(name, server, revision):
    """Measures from the start of a server to its end; revision: where a watch of the 100 updates resumes, or
    None."""
    server.list_all()
    if options.case in ("", "restart"):
        say(name, "restart", ready_ms=server.ready * 1e3, list_ms=(time.monotonic() - server.began) * 1e3, cpu_s=server.cpu())
    if revision:
        say(name, "resume", events=watch_from(server, "/api/v1/namespaces/ns-00000/pods?watch=1&resourceVersion=%s" % revision, 100, 10))
    server.stop()


def restart():
    log, data = os.path.join(folder, "pods.log"), os.path.join(folder, "restart")
    log_of_pods(log)
    server = Server(runners.vedette, "--data-dir", data, "--load", log)
    os.unlink(log)
    path, body = "/api/v1/namespaces/ns-00000/pods/web-0000001", pod(1, "")
    wanted = options.case in ("", "resume", "restart")
    revision = updates(server, path, body) if wanted else None
    server.stop(signal.SIGKILL if wanted else signal.SIGTERM)
    for number in range(options.rounds):
        server = Server(runners.vedette, "--data-dir", data)
        life("vedette", server, revision if number == 0 else None)
    prefix = fill(False)
    server = Server(peer, "--etcd", etcd, "--etcd-prefix", prefix)
    path = "/api/v1/namespaces/ns-00000/pods/web-7d4b9c6f5-0000001"
    body["metadata"]["name"] = "web-7d4b9c6f5-0000001"
    revision = updates(server, path, body) if wanted else None
    server.stop(signal.SIGKILL)
    for number in range(min(options.rounds, 3)):
        server = Server(peer, "--etcd", etcd, "--etcd-prefix", prefix)
        life("apiserver", server, revision if number == 0 else None)


def durable_http(case):
    sides = [("vedette", {}), ("apiserver", {"BENCH_SERVER": peer, "BENCH_ETCD": etcd})]
    for number in range(options.rounds):
        for name, environment in sides if number % 2 == 0 else sides[::-1]:
            command = [runners.bench_of("http"), "--rounds", "1", "--scale", str(options.scale), "--seed", str(options.seed + number), case]
            for line in runners.renamed(runners.lines_of(command, environment), name):
                print(json.dumps(line), flush=True)


try:
    for case, run in (("rest", rest), ("tls-idle", tls_idle), ("http-latency", lambda: durable_http("http-latency")), ("http-create", lambda: durable_http("http-create")),
                      ("sync-etcd", sync_etcd), ("restart", restart)):
        if options.case in ("", case) or (case, options.case) == ("restart", "resume"):
            run()
finally:
    shutil.rmtree(folder, ignore_errors=True)
