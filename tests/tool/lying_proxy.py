"""A proxy that falsifies the answers of a Kubernetes endpoint: drop, double, reorder, bookmark, stale, cut,
html, slow. For tests of programs that must notice."""

import http.client
import http.server
import json
import socket
import ssl
import threading
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from waiting import CHANGES  # noqa: E402


class LyingProxy:
    """One falsification for one kind (the last part of the path), repeated until lie is None. told counts."""

    def __init__(self, server, lie=None, kind="configmaps", tls=None):
        where = urllib.parse.urlsplit(server)
        self.host, self.port = where.hostname, where.port
        self.lie, self.kind, self.told, self.lists = lie, kind, 0, {}
        self.streams = 0
        self.lock = threading.Lock()
        self.paths = []
        self.headers = []
        self.peers = []  # common names of the clients' certificates
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_GET(self):
                try:
                    proxy.answer(self)
                except (OSError, http.client.HTTPException):
                    self.close_connection = True

            do_POST = do_PUT = do_DELETE = do_GET

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, request, client_address):
                pass  # the client does not trust the proxy, or the proxy not the client

        self.server = Server(("127.0.0.1", 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.url = "%s://127.0.0.1:%d" % ("https" if tls else "http", self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler):
        path = urllib.parse.urlsplit(handler.path)
        with self.lock:
            self.paths.append(handler.path)
            self.headers.append(dict(handler.headers))
            if isinstance(handler.connection, ssl.SSLSocket):
                self.peers.append(
                    {
                        key: value
                        for part in (handler.connection.getpeercert() or {}).get("subject", ())
                        for key, value in part
                    }.get("commonName")
                )
        CHANGES.tell()
        is_kind = path.path.endswith("/" + self.kind)
        upstream = http.client.HTTPConnection(self.host, self.port, timeout=300)
        try:
            body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
            upstream.request(
                handler.command,
                handler.path,
                body or None,
                {
                    name: handler.headers[name]
                    for name in ("Accept", "Authorization", "Content-Type")
                    if name in handler.headers
                },
            )
            response = upstream.getresponse()
            if handler.command != "GET":
                self.whole(handler, response, False)
            elif is_kind and "watch=true" in path.query and response.status == 200:
                self.stream(handler, response)
            else:
                self.whole(
                    handler,
                    response,
                    is_kind and "resourceVersion" not in path.query and "continue" not in path.query,
                )
        finally:
            upstream.close()

    def whole(self, handler, response, is_newest_list):
        body, status = response.read(), response.status
        if is_newest_list and status == 200:
            with self.lock:
                first = self.lists.setdefault(handler.path, body)
                if self.lie == "stale" and first != body:
                    body, self.told = first, self.told + 1
                if self.lie == "html":
                    body, self.told = b"<html>a hotel's wireless network</html>", self.told + 1
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def stream(self, handler, response):
        def send(bytes_):
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(bytes_), bytes_))
            handler.wfile.flush()

        with self.lock:
            self.streams += 1
            number = self.streams
        CHANGES.tell()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        held, count = None, 0
        while line := response.readline():
            event = json.loads(line)
            lie = self.lie if event["type"] in ("ADDED", "MODIFIED", "DELETED") else None
            count += lie is not None
            # Only every second stream is falsified, and not at its first event, so that it can be noticed.
            # All streams are cut.
            tells = lie and (number % 2 or lie == "cut") and count % 4 == 3
            self.told += bool(tells)
            CHANGES.tell()
            if tells and lie == "cut":
                send(line[: len(line) // 2])
                handler.close_connection = True
                handler.connection.shutdown(socket.SHUT_RDWR)
                return
            if tells and lie == "drop":
                continue
            if tells and lie == "reorder":
                held = line
                continue
            if tells and lie == "bookmark":
                send(
                    json.dumps(
                        {
                            "type": "BOOKMARK",
                            "object": {
                                "kind": "ConfigMap",
                                "apiVersion": "v1",
                                "metadata": {
                                    "resourceVersion": event["object"]["metadata"]["resourceVersion"]
                                },
                            },
                        }
                    ).encode()
                    + b"\n"
                )
            if tells and lie == "error":
                line = (
                    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure",'
                    b'"message":"too old","reason":"Expired","code":410}}\n'
                )
            send(line)
            if tells and lie == "double":
                send(line)
            if held:
                send(held)
                held = None
        handler.wfile.write(b"0\r\n\r\n")
