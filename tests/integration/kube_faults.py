#!/usr/bin/env python3
"""A proxy in front of a Kubernetes API server that injects faults.

Usage: kube_faults.py UPSTREAM-URL [--listen PORT] [--certificate FILE --key FILE] [--tcp] [--seed N] [--token TOKEN]
Prints its port. Reads commands from stdin, one a line, and answers each with a line of JSON (the counters):
cut N, cut-all, silence N, refuse SHARE CODE,CODE RETRY-AFTER [watch], gone N, gone-event N, accept TOKEN,TOKEN,
split SHARE, hole on|off, redirect URL|off, heal, stats.

With HTTP/1.1 (TLS ends here if a certificate is given), each request and each chunk of a stream can be falsified.
With --tcp bytes pass unchanged, TLS and HTTP/2 too, and only connections can be cut or silenced.
All choices come from one generator, so a run with the same seed and the same traffic has the same faults.
The proxy runs on a thread of its own; the methods without leading underscore may be called from any thread.
"""
import argparse
import asyncio
import collections
import contextlib
import json
import logging
import os
import random
import ssl
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from waiting import pause  # noqa: E402

logging.getLogger('asyncio').setLevel(logging.CRITICAL)  # it reports tasks that end with the process
EXPIRED = {'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Failure', 'message': 'too old resource version: 1 (2)', 'reason': 'Expired', 'code': 410}
REASONS = {401: 'Unauthorized', 410: 'Expired', 429: 'TooManyRequests', 500: 'InternalError', 502: '', 503: 'ServiceUnavailable', 504: 'Timeout'}


class Stream:
    """A watch that is open (HTTP), or a connection (TCP)."""

    def __init__(self, scope, writer):
        self.scope, self.writer = scope, writer
        self.silent = self.cut_next = self.gone_next = False


class FaultProxy:
    def __init__(self, host, port, upstream_tls=None, certificate=None, key=None, seed=1, tcp=False, upstream_token=None, listen=0):
        """certificate, key: files; None: no TLS. upstream_token replaces the client's token, so that the tokens
        accepted here (accept) need not be known there."""
        self.upstream, self.upstream_tls, self.upstream_token, self.tcp, self.listen = (host, port), upstream_tls, upstream_token, tcp, listen
        self.random = random.Random(seed)
        self.tls = None
        if certificate and not tcp:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate, key)
            self.tls.set_alpn_protocols(['http/1.1'])
        self.counts = collections.Counter()
        self.lists = collections.Counter()  # successful ones by scope (path and selectors), WatchLists too
        self.list_queries = {}  # of lists, by scope
        self.expired = collections.Counter()  # 410 that clients received, by scope
        self.streams = []
        self.connections = set()
        self._heal()
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self.ready.wait()

    # ---- Faults ----

    def call(self, function, *arguments):
        """Runs a function on the proxy's thread."""
        async def run():
            return function(*arguments)
        return asyncio.run_coroutine_threadsafe(run(), self.loop).result()

    def cut(self, count):
        """Cuts streams: at once, or in the middle of the next chunk. Returns how many."""
        return self.call(self._cut, count)

    def cut_all(self):
        return self.call(self._cut_all)

    def silence(self, count):
        """From now on nothing passes on so many streams, but they stay open."""
        return self.call(self._mark, count, 'silent')

    def gone_event(self, count):
        """So many streams get an ERROR event 410 before their next event, then end."""
        return self.call(self._mark, count, 'gone_next')

    def gone(self, count):
        """The next watch requests are answered with status 410."""
        self.call(self._set, 'gone_left', count)

    def refuse(self, share, codes, retry_after=0, only_watch=False):
        self.call(self._set, 'refusal', (share, codes, retry_after, only_watch))

    def accept(self, tokens):
        """Other tokens are answered with 401. None: all are accepted."""
        self.call(self._set, 'tokens', tokens)

    def split(self, share):
        """So many chunks are passed on in pieces, with pauses of up to 5 ms."""
        self.call(self._set, 'split_share', share)

    def hole(self, is_on):
        """New connections are accepted and never answered."""
        self.call(self._set, 'is_hole', is_on)

    def redirect(self, url):
        self.call(self._set, 'redirect_url', url)

    def heal(self):
        self.call(self._heal)

    def stats(self):
        return self.call(lambda: dict(self.counts, open=len(self.streams), connected=len(self.connections)))

    def close(self):
        self.loop.call_soon_threadsafe(self.main.cancel)
        self.thread.join()

    def _set(self, name, value):
        setattr(self, name, value)

    def _heal(self):
        self.refusal, self.tokens, self.gone_left, self.split_share, self.is_hole, self.redirect_url = None, None, 0, 0, False, None
        for stream in self.streams:
            stream.cut_next = stream.gone_next = False

    def _sample(self, count):
        return self.random.sample(self.streams, min(count, len(self.streams)))

    def _mark(self, count, name):
        chosen = self._sample(count)
        for stream in chosen:
            setattr(stream, name, True)
        if name == 'silent':
            self.counts['silenced'] += len(chosen)
        return len(chosen)

    def _cut(self, count):
        chosen = self._sample(count)
        for stream in chosen:
            if not self.tcp and self.random.random() < 0.5:
                stream.cut_next = True
            else:
                self._abort(stream)
        return len(chosen)

    def _abort(self, stream):
        self.counts['cuts'] += 1
        stream.writer.transport.abort()
        if stream in self.streams:
            self.streams.remove(stream)

    def _cut_all(self):
        count = len(self.connections)
        for writer in list(self.connections):
            writer.transport.abort()
        self.streams.clear()
        self.counts['cuts'] += count
        return count

    # ---- The server ----

    def _run(self):
        asyncio.set_event_loop(self.loop)
        try:
            self.main = self.loop.create_task(self._serve())
            self.loop.run_until_complete(self.main)
        except asyncio.CancelledError:
            for task in (tasks := asyncio.all_tasks(self.loop)):
                task.cancel()
            if tasks:
                self.loop.run_until_complete(asyncio.wait(tasks))

    async def _serve(self):
        server = await asyncio.start_server(self._client, '127.0.0.1', self.listen, ssl=self.tls, limit=1 << 20, backlog=4096)
        self.port = server.sockets[0].getsockname()[1]
        self.url = 'http%s://127.0.0.1:%d' % ('s' if self.tls or (self.tcp and self.upstream_tls) else '', self.port)
        self.ready.set()
        async with server:
            await server.serve_forever()

    async def _client(self, reader, writer):
        self.counts['connections'] += 1
        self.connections.add(writer)
        upstream = None
        try:
            if self.is_hole:
                self.counts['holes'] += 1
                await reader.read()  # until the client gives up
                return
            if self.tcp:
                await self._pass(reader, writer)
                return
            while True:
                request = await self._read_head(reader)
                if request is None:
                    return
                upstream = await self._exchange(request, reader, writer, upstream)
                if upstream is None:
                    return
        except (OSError, EOFError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
            pass
        finally:
            self.connections.discard(writer)
            for one in (writer, upstream[1] if upstream else None):
                if one:
                    one.transport.abort()

    async def _pass(self, reader, writer):
        """Copies bytes both ways."""
        stream = Stream('', writer)
        up_reader, up_writer = await asyncio.open_connection(*self.upstream)
        self.streams.append(stream)

        async def copy(source, target, is_answer):
            while data := await source.read(65536):
                if stream.silent:
                    continue
                if is_answer and self.split_share and self.random.random() < self.split_share:
                    await self._pause()
                target.write(data)
                await target.drain()
        tasks = [asyncio.ensure_future(copy(reader, up_writer, False)), asyncio.ensure_future(copy(up_reader, writer, True))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            up_writer.transport.abort()
            if stream in self.streams:
                self.streams.remove(stream)

    async def _pause(self):
        await pause(self.random.random() * 0.005)

    @staticmethod
    async def _read_head(reader):
        """Returns (first line, [(name, value)]) or None at the end."""
        try:
            text = await reader.readuntil(b'\r\n\r\n')
        except asyncio.IncompleteReadError:
            return None
        lines = text.decode('latin-1').split('\r\n')[:-2]
        return lines[0], [tuple(part.strip() for part in line.split(':', 1)) for line in lines[1:]]

    @staticmethod
    def _value(headers, name, default=''):
        return next((value for key, value in headers if key.lower() == name), default)

    async def _exchange(self, request, reader, writer, upstream):
        """One request; returns the connection to the server, for the next one, or None to close."""
        line, headers = request
        body = await reader.readexactly(int(self._value(headers, 'content-length', '0')))
        method, target, _ = line.split(' ', 2)
        url = urllib.parse.urlsplit(target)
        query = {key: values[0] for key, values in urllib.parse.parse_qs(url.query).items()}
        is_watch = query.get('watch') in ('1', 'true')
        token = self._value(headers, 'authorization').removeprefix('Bearer ')
        self.counts['requests'] += 1
        code, more = self._refusal(token, is_watch)
        scope = self.scope(url.path, query)
        if code:
            self.counts[str(code)] += 1
            self._count(method, scope, query, is_watch, code)
            status = dict(EXPIRED, code=code, reason=REASONS.get(code, ''), **({} if code == 410 else {'message': 'injected %d' % code}))
            text = json.dumps(status).encode() if code not in (502, 307) else b'<html>Bad Gateway</html>'
            writer.write(('HTTP/1.1 %d Injected\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n'
                          % (code, 'application/json' if code not in (502, 307) else 'text/html', len(text), more)).encode() + text)
            await writer.drain()
            return upstream or (None, None)
        if upstream is None or upstream[1] is None or upstream[1].transport.is_closing() or upstream[0].at_eof():
            upstream = await asyncio.open_connection(*self.upstream, ssl=self.upstream_tls, limit=1 << 20)
        kept = [(key, value) for key, value in headers if key.lower() not in ('authorization', 'host')]
        if self.upstream_token or token:
            kept.append(('Authorization', 'Bearer ' + (self.upstream_token or token)))
        kept.append(('Host', '%s:%d' % self.upstream))
        upstream[1].write((line + '\r\n' + ''.join('%s: %s\r\n' % pair for pair in kept) + '\r\n').encode('latin-1') + body)
        await upstream[1].drain()
        if not is_watch:
            return await self._answer(method, scope, query, is_watch, writer, upstream)
        watcher = asyncio.ensure_future(self._until_closed(reader, upstream[1]))
        try:
            return await self._answer(method, scope, query, is_watch, writer, upstream)
        finally:
            watcher.cancel()

    @staticmethod
    async def _until_closed(reader, up_writer):
        """A client that closes a watch sends nothing before."""
        if not await reader.read(1):
            up_writer.transport.abort()

    def _refusal(self, token, is_watch):
        """Returns (status, further header lines); status 0: none."""
        if self.tokens is not None and token not in self.tokens:
            return 401, ''
        if self.redirect_url:
            return 307, 'Location: %s\r\n' % self.redirect_url
        if self.refusal:
            share, codes, retry_after, only_watch = self.refusal
            if (is_watch or not only_watch) and self.random.random() < share:
                code = self.random.choice(codes)
                return code, 'Retry-After: %d\r\n' % retry_after if retry_after and code in (429, 503) else ''
        if is_watch and self.gone_left > 0:
            self.gone_left -= 1
            return 410, ''
        return 0, ''

    async def _answer(self, method, scope, query, is_watch, writer, upstream):
        up_reader = upstream[0]
        head = await self._read_head(up_reader)
        if head is None:
            raise EOFError
        line, headers = head
        code = int(line.split(' ')[1])
        self._count(method, scope, query, is_watch, code)
        writer.write((line + '\r\n' + ''.join('%s: %s\r\n' % pair for pair in headers) + '\r\n').encode('latin-1'))
        await writer.drain()
        if self._value(headers, 'transfer-encoding').lower() == 'chunked':
            if not await self._chunks(scope, up_reader, writer, is_watch and code == 200):
                return None
        elif code not in (204, 304) and method != 'HEAD':
            left = int(self._value(headers, 'content-length', '0'))
            while left > 0:
                data = await up_reader.read(min(left, 65536))
                if not data:
                    raise EOFError
                left -= len(data)
                writer.write(data)
                await writer.drain()
        return upstream

    @staticmethod
    def scope(path, query):
        return '%s?%s&%s' % (path, query.get('labelSelector', ''), query.get('fieldSelector', ''))

    def _count(self, method, scope, query, is_watch, code):
        if code == 410:
            self.expired[scope] += 1
        if method != 'GET' or code != 200:
            return
        if is_watch:
            self.counts['watches'] += 1
        if query.get('sendInitialEvents') == 'true' or ('limit' in query and 'continue' not in query and query['limit'] != '1'):
            self.lists[scope] += 1
            self.list_queries.setdefault(scope, []).append(' '.join('%s=%s' % pair for pair in query.items()))

    async def _chunks(self, scope, up_reader, writer, is_watch):
        """Passes on a chunked body; false if the connection must be closed."""
        stream = Stream(scope, writer)
        if is_watch:
            self.streams.append(stream)
        at_line = True  # the bytes passed on end with a complete line
        try:
            while True:
                size = int((await up_reader.readuntil(b'\r\n')).split(b';')[0], 16)
                data = await up_reader.readexactly(size)
                await up_reader.readexactly(2)
                while stream.silent:
                    if not await up_reader.read(65536):
                        await self._until_aborted(writer)
                        return False
                if stream.gone_next and at_line:
                    self.counts['gone'] += 1
                    self.expired[scope] += 1
                    event = json.dumps({'type': 'ERROR', 'object': EXPIRED}).encode() + b'\n'
                    writer.write(b'%x\r\n%s\r\n0\r\n\r\n' % (len(event), event))
                    await writer.drain()
                    return False
                if stream.cut_next:
                    self.counts['cuts'] += 1
                    writer.write(b'%x\r\n%s' % (size, data[:size // 2]))
                    await writer.drain()
                    return False
                if size == 0:
                    writer.write(b'0\r\n\r\n')
                    await writer.drain()
                    return True
                if is_watch and b'"ERROR"' in data and b'"code":410' in data:
                    self.expired[scope] += 1
                await self._chunk(data, writer)
                at_line = data.endswith(b'\n')
        finally:
            if stream in self.streams:
                self.streams.remove(stream)

    @staticmethod
    async def _until_aborted(writer):
        """Keeps a silent connection open, though the server has ended its stream."""
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _chunk(self, data, writer):
        if self.split_share and len(data) > 1 and self.random.random() < self.split_share:
            middle = self.random.randrange(1, len(data))
            self.counts['split'] += 1
            writer.write(b'%x\r\n%s\r\n' % (middle, data[:middle]))
            await writer.drain()
            await self._pause()
            data = data[middle:]
        writer.write(b'%x\r\n%s\r\n' % (len(data), data))
        await writer.drain()


def obey(proxy, words):
    name, arguments = words[0], words[1:]
    if name in ('cut', 'silence', 'gone', 'gone-event'):
        getattr(proxy, name.replace('-', '_'))(int(arguments[0]))
    elif name == 'refuse':
        proxy.refuse(float(arguments[0]), [int(code) for code in arguments[1].split(',')], int(arguments[2]) if len(arguments) > 2 else 0, 'watch' in arguments)
    elif name == 'accept':
        proxy.accept(set(arguments[0].split(',')))
    elif name == 'split':
        proxy.split(float(arguments[0]))
    elif name == 'hole':
        proxy.hole(arguments[0] == 'on')
    elif name == 'redirect':
        proxy.redirect(None if arguments[0] == 'off' else arguments[0])
    elif name in ('cut-all', 'heal'):
        getattr(proxy, name.replace('-', '_'))()
    elif name != 'stats':
        return {'error': 'no such command: ' + name}
    return proxy.stats()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('upstream')
    parser.add_argument('--listen', type=int, default=0)
    parser.add_argument('--certificate')
    parser.add_argument('--key')
    parser.add_argument('--tcp', action='store_true')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--token')
    options = parser.parse_args()
    url = urllib.parse.urlsplit(options.upstream)
    tls = ssl._create_unverified_context() if url.scheme == 'https' else None
    proxy = FaultProxy(url.hostname, url.port, tls, options.certificate, options.key, options.seed, options.tcp, options.token, options.listen)
    print(proxy.port, flush=True)
    for line in sys.stdin:
        if line.strip():
            print(json.dumps(obey(proxy, line.split())), flush=True)
    proxy.close()


if __name__ == '__main__':
    main()
