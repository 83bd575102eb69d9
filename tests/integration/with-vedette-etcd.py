#!/usr/bin/env python3
"""Usage: with-vedette-etcd.py VEDETTE COMMAND [ARG...]

Runs COMMAND with `vedette etcd` instead of the etcd that with-etcd.sh starts: ETCD_ENDPOINTS, ETCD_VERSION,
and a CONTROL that accepts kill, wipe, start, restart and wait for member 0. So the tests for a real etcd also
test our server."""

import os
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading

program, command = sys.argv[1], sys.argv[2:]
directory = tempfile.mkdtemp(prefix="vedette-etcd-")
listen = "127.0.0.1:0"
server = None


def start():
    global server, listen
    server = subprocess.Popen(
        [
            program,
            "etcd",
            "--listen",
            listen,
            "--data-dir",
            directory + "/data",
            "--unsafe-no-fsync",
            "--watch-progress-notify-interval",
            "1s",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in server.stderr:
        if line.startswith("vedette: ready etcd "):
            listen = line.split()[3]
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return
        sys.stderr.write(line)
    raise RuntimeError("vedette etcd did not start")


def kill():
    server.kill()
    server.wait()


class Control(socketserver.StreamRequestHandler):
    def handle(self):
        words = self.rfile.readline().decode().split()
        try:
            if words[0] in ("kill", "restart"):
                kill()
            if words[0] == "wipe":
                shutil.rmtree(directory + "/data", ignore_errors=True)
            if words[0] in ("start", "restart"):
                start()
            self.wfile.write(b"ok\n")
        except Exception as error:  # the test reports errors itself
            self.wfile.write(("error %s\n" % error).encode())


start()
control = socketserver.TCPServer(("127.0.0.1", 0), Control)
threading.Thread(target=control.serve_forever, daemon=True).start()
environment = dict(
    os.environ,
    ETCD_ENDPOINTS="http://" + listen,
    ETCD_DIRECT_ENDPOINTS="http://" + listen,
    ETCD_VERSION="3.7",
    ETCD_DIR=directory,
    CONTROL="127.0.0.1:%d" % control.server_address[1],
)
try:
    status = subprocess.call(command, env=environment)
finally:
    kill()
    shutil.rmtree(directory, ignore_errors=True)
sys.exit(status)
