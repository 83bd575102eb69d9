#!/usr/bin/env python3
"""Usage: disk_full.py VEDETTE [CASE...]
Servers and recorders on a small disk that is really full (cases: serve, etcd, leases, history, record;
default all). A process that is killed there starts again, deletes and compaction work, writes work again by
themselves, and a recording continues where it ended. Runs itself in a mount namespace (root) or a user
namespace."""

import atexit
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from etcd_frames import ALL, KV, LEASE, Client, delete_of, fields, number, put_of, range_of

PATIENCE_S = 300
MAPS = '/api/v1/namespaces/default/configmaps'


class Program:
    """A server that prints its address in a line with `ready`."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)  # a failing case leaves no process
        self.address = None
        said = ''
        for line in self.process.stderr:
            said += line
            found = re.search(r'vedette: ready (?:http://|etcd )(\S+)', line)
            if found:
                self.address = found.group(1)
                break
        if self.address is None:
            raise SystemExit(f'the server did not start: {said}')
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            connection.request(
                method, path, None if body is None else json.dumps(body), {'Content-Type': 'application/json'}
            )
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def ask(self, method, path, body=None):
        code, answer = self.request(method, path, body)
        return code, json.loads(answer)

    def metric(self, name):
        return float(
            re.search(rf'^{name} (\S+)$', self.request('GET', '/metrics')[1].decode(), re.MULTILINE).group(1)
        )

    def create(self, name, size=50000):
        return self.ask(
            'POST',
            MAPS,
            {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name}, 'data': {'a': 'x' * size}},
        )

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def expect(what, is_so):
    if not is_so:
        raise SystemExit(what)


def fill(server, first, message):
    """Creates objects until the disk is full. Returns their names. Compaction may still release room of an
    earlier call piece by piece, so a refusal before 50 objects is no end."""
    names = []
    deadline = time.monotonic() + PATIENCE_S
    while True:
        name = f'map-{first + len(names)}'
        code, answer = server.create(name)
        if code == 507:
            expect(f'which one is full? {answer["message"]}', message in answer['message'])
            if len(names) >= 50:
                return names
            expect(f'only {len(names)} objects fit', time.monotonic() < deadline)
            continue
        expect(f'create: {code} {answer}', code == 201)
        names.append(name)


def fill_rest(directory, left=0):
    with open(directory + '/neighbour', 'wb') as file:
        free = os.statvfs(directory)
        size = free.f_bfree * free.f_frsize - left
        if size > 0:
            os.posix_fallocate(file.fileno(), 0, size)


def empty_rest(directory):
    os.unlink(directory + '/neighbour')


def wait_for_creates(server, prefix):
    number = 0
    while server.create(f'{prefix}-{number}')[0] != 201:
        number += 1


def serve(program, directory):
    """`serve --etcd-listen`. The history is small, so compaction removes deleted objects."""

    def start():
        return Program(
            program,
            'serve',
            '--data-dir',
            directory + '/data',
            '--listen',
            '127.0.0.1:0',
            '--etcd-listen',
            '127.0.0.1:0',
            '--history-bytes',
            '64KiB',
        )

    server = start()
    for turn in range(3):
        expect('there is no reserve', server.metric('vedette_store_reserve_bytes') > 1 << 20)
        names = fill(server, turn * 10000, 'the disk is full')
        expect('what was refused is not counted', server.metric('vedette_store_disk_full_total') >= 1)
        fill_rest(directory)
        server.end(signal.SIGKILL)
        server = start()
        for name in names:
            code, answer = server.ask('DELETE', f'{MAPS}/{name}')
            expect(f'delete: {code} {answer}', code == 200)
        empty_rest(directory)
        wait_for_creates(server, f'later-{turn}')
        print(f'serve: {len(names)} objects')
    expect('the server did not end well', server.end(signal.SIGTERM) == 0)


def etcd(program, directory):
    """`vedette etcd`, and `serve --etcd` as its client. etcd's compaction by revisions removes deleted
    objects."""

    def start(listen):
        return Program(
            program,
            'etcd',
            '--data-dir',
            directory + '/data',
            '--listen',
            listen,
            '--http-listen',
            http_listen,
            '--quota-backend-bytes',
            '-1',
            '--auto-compaction-mode',
            'revision',
            '--auto-compaction-retention',
            '1',
            '--auto-compaction-interval',
            '1s',
        )

    http_listen = free_port()
    store = start('127.0.0.1:0')
    server = Program(
        program,
        'serve',
        '--etcd',
        'http://' + store.address,
        '--listen',
        '127.0.0.1:0',
        '--etcd-compaction-interval',
        '0',
    )
    metrics = Program.__new__(Program)
    metrics.address = http_listen
    for turn in range(2):
        names = fill(server, turn * 10000, '')
        expect('what was refused is not counted', metrics.metric('vedette_store_disk_full_total') >= 1)
        fill_rest(directory)
        store.end(signal.SIGKILL)
        store = start(store.address)
        for name in names:
            # The client reconnects by itself.
            while (code := server.request('DELETE', f'{MAPS}/{name}')[0]) not in (200, 404):
                expect(f'delete: {code}', code in (500, 503, 504))
        empty_rest(directory)
        wait_for_creates(server, f'later-{turn}')
        expect('there is no reserve', metrics.metric('vedette_store_reserve_bytes') > 1 << 20)
        print(f'etcd: {len(names)} objects')
    expect('the server did not end well', server.end(signal.SIGTERM) == 0)
    expect('the etcd did not end well', store.end(signal.SIGTERM) == 0)


class Leases:
    """A client of `vedette etcd`. Of its leases KEPT is kept alive, REVOKED is revoked, SHORT expires; each
    has keys."""

    KEPT, REVOKED, SHORT = 1, 2, 3
    KEYS, LONG_S, SHORT_S = 50, 36000, 5

    def __init__(self, server):
        host, port = server.address.rsplit(':', 1)
        self.client = Client((host, int(port)))

    def call(self, path, message):
        """Returns the fields of the answer; None: the call failed."""
        frame = self.client.call(path, message)
        return fields(frame[5:]) if frame else None

    def grant(self, lease, ttl_s):
        return self.call(LEASE + 'LeaseGrant', number(1, ttl_s) + number(2, lease))

    def keep(self, lease):
        return self.call(LEASE + 'LeaseKeepAlive', number(1, lease)).get(3, 0)

    def revoke(self, lease):
        return self.call(LEASE + 'LeaseRevoke', number(1, lease))

    def ttl_s(self, lease):
        seconds = self.call(LEASE + 'LeaseTimeToLive', number(1, lease)).get(3, 0)
        return seconds - (1 << 64) if seconds >> 63 else seconds

    def put(self, key, size, lease=0):
        return self.call(KV + 'Put', put_of(key, b'x' * size, lease))

    def count(self, prefix):
        return self.call(
            KV + 'Range', range_of(prefix, prefix[:-1] + bytes([prefix[-1] + 1]), count_only=1)
        ).get(4, 0)

    def attach(self, lease):
        for key in range(self.KEYS):
            expect('a put with a lease', self.put(b'lease-%d/%d' % (lease, key), 10, lease) is not None)
        expect('the keys of a lease', lease == self.SHORT or self.keys_of(lease) == self.KEYS)

    def keys_of(self, lease):
        return self.count(b'lease-%d/' % lease)


def leases(program, directory):
    """Leases of `vedette etcd` on a full disk are kept alive, revoked, and expire; only new ones are refused.
    kill -9 changes nothing about that."""

    def start(listen):
        server = Program(
            program,
            'etcd',
            '--data-dir',
            directory + '/data',
            '--listen',
            listen,
            '--quota-backend-bytes',
            '-1',
        )
        return server, Leases(server)

    def refused(method):
        metrics = server.request('GET', '/metrics')[1].decode()
        return sum(
            map(
                int,
                re.findall(
                    rf'^grpc_server_handled_total.*grpc_method="{method}",'
                    r'grpc_code="ResourceExhausted"\} (\d+)$',
                    metrics,
                    re.MULTILINE,
                ),
            )
        )

    server, client = start('127.0.0.1:0')
    for turn in range(2):
        for lease, ttl_s in (
            (client.KEPT, client.LONG_S),
            (client.REVOKED, client.LONG_S),
            (client.SHORT, client.SHORT_S),
        ):
            expect(f'grant {lease}', client.grant(lease, ttl_s) is not None)
            client.attach(lease)
        count = 0
        for size in (30000, 3000, 300):
            while client.put(b'fill/%d' % count, size) is not None:
                client.keep(client.SHORT)  # so that it expires while the disk is full
                count += 1
        expect(f'only {count} keys fit', count >= 50)
        fill_rest(directory)
        before = refused('LeaseGrant')
        granted = 0
        # Use up the rest of the last journal file.
        while client.grant(1000 + granted, client.LONG_S) is not None:
            granted += 1
        expect('the refusal of a lease does not say why', refused('LeaseGrant') == before + 1)
        for _ in range(3000):
            expect('a lease is not kept alive', client.keep(client.KEPT) == client.LONG_S)
        expect('a lease is not revoked', client.revoke(client.REVOKED) is not None)
        expect('keys of a revoked lease', client.keys_of(client.REVOKED) == 0)
        until = time.monotonic() + PATIENCE_S
        while client.keys_of(client.SHORT):
            expect(f'a lease does not expire within {PATIENCE_S} s', time.monotonic() < until)
        server.end(signal.SIGKILL)
        server, client = start(server.address)
        expect(
            'the lease that was kept alive',
            client.LONG_S / 2 < client.ttl_s(client.KEPT) <= client.LONG_S
            and client.keys_of(client.KEPT) == client.KEYS,
        )
        for lease in (client.REVOKED, client.SHORT):
            expect(f'lease {lease} is there', client.ttl_s(lease) == -1)
            expect(f'lease {lease} has keys', client.keys_of(lease) == 0)
        for lease in range(granted):
            expect(f'lease {lease} was lost', client.ttl_s(1000 + lease) > 0)
        expect('a lease that was refused is there', client.ttl_s(1000 + granted) == -1)
        expect('a key was lost', client.count(b'fill/') == count)
        expect('a lease is not kept alive', client.keep(client.KEPT) == client.LONG_S)
        for lease in (client.KEPT, *range(1000, 1000 + granted)):
            expect(f'lease {lease} is not revoked', client.revoke(lease) is not None)
        revision = fields(client.call(KV + 'DeleteRange', delete_of(ALL, ALL, 0))[1])[3]
        expect('compaction', client.call(KV + 'Compact', number(1, revision) + number(2, 1)) is not None)
        empty_rest(directory)
        until = time.monotonic() + PATIENCE_S
        while client.put(b'later', 30000) is None:
            expect(f'writes did not come back within {PATIENCE_S} s', time.monotonic() < until)
        expect(
            'no lease is granted though there is room', client.grant(100 + turn, client.LONG_S) is not None
        )
        print(f'leases: {count} keys, {granted} more leases')
    expect('the server did not end well', server.end(signal.SIGTERM) == 0)


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return '127.0.0.1:%d' % one.getsockname()[1]


def history(program, directory):
    """The local history of `serve --etcd --data-dir` delays no request, and recording continues when there is
    room."""
    store = Program(program, 'etcd', '--memory', '--listen', '127.0.0.1:0')

    def start():
        return Program(
            program,
            'serve',
            '--etcd',
            'http://' + store.address,
            '--listen',
            '127.0.0.1:0',
            '--data-dir',
            directory + '/history',
            '--etcd-compaction-interval',
            '0',
        )

    server = start()
    number = 0
    for turn in range(2):
        fill_rest(directory)
        while server.metric('vedette_local_history_recording') == 1:
            code, answer = server.create(f'map-{number}')
            expect(f'create: {code} {answer}', code == 201)
            number += 1
        # Kill the server and start it again while there is still no room.
        server.end(signal.SIGKILL)
        server = start()
        code, answer = server.create(f'map-{number}')
        expect(f'create: {code} {answer}', code == 201)
        number += 1
        last = int(answer['metadata']['resourceVersion'])
        empty_rest(directory)
        while server.metric('vedette_local_history_newest_revision') < last:
            pass
        expect('the history is not written', server.metric('vedette_local_history_recording') == 1)
        expect('the history was dropped', server.metric('vedette_local_history_drops_total') == 0)
        print(f'history: {number} objects')
    expect('the server did not end well', server.end(signal.SIGTERM) == 0)
    # After the restart the history reaches back to the beginning.
    server = start()
    expect('the history was lost', server.metric('vedette_local_history_newest_revision') >= last)
    expect('the server did not end well', server.end(signal.SIGTERM) == 0)
    expect('the etcd did not end well', store.end(signal.SIGTERM) == 0)


def record(program, directory):
    """A recording ends with a message that has the path, and continues without a gap."""
    for name in ('log.ndjson', 'log.ndjson.zst'):
        subprocess.run(['mount', '-o', 'remount,size=4m', directory], check=True)
        server = Program(program, 'serve', '--memory', '--listen', '127.0.0.1:0')
        path = f'{directory}/{name}'
        command = [
            program,
            'record',
            '--server',
            'http://' + server.address,
            '--kind',
            'configmaps',
            '--watch-timeout',
            '3s',
            '-q',
            '-o',
            path,
        ]
        first = int(server.create('first')[1]['metadata']['resourceVersion'])
        subprocess.run([*command, '--until', str(first)], timeout=PATIENCE_S, check=True)
        recorder = subprocess.Popen([*command, '--resume'], stderr=subprocess.PIPE, text=True)
        fill_rest(directory, 1 << 20)
        for number in range(60):
            # Data that does not compress.
            code, answer = server.ask(
                'POST',
                MAPS,
                {
                    'apiVersion': 'v1',
                    'kind': 'ConfigMap',
                    'metadata': {'name': f'map-{number}'},
                    'data': {'a': os.urandom(20000).hex()},
                },
            )
            expect(f'create: {code} {answer}', code == 201)
        last = int(answer['metadata']['resourceVersion'])
        said = recorder.communicate(timeout=PATIENCE_S)[1]
        expect(
            f'the recording did not fail as it should: {recorder.returncode} {said}',
            recorder.returncode == 1 and path in said and 'No space left' in said,
        )
        done = subprocess.run(
            [program, 'replay', path, '--watch', 'configmaps'],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        expect(f'replay: {done.returncode} {done.stderr[-300:]}', done.returncode == 0)
        told = [event['rev'] for event in map(json.loads, done.stdout.splitlines()) if 'rev' in event]
        empty_rest(directory)
        done = subprocess.run(
            [*command, '--resume', '--until', str(last)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        expect(f'the recording did not go on: {done.returncode} {done.stderr}', done.returncode == 0)
        done = subprocess.run(
            [program, 'replay', path, '--watch', 'configmaps', '--strict'],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        expect(f'replay: {done.returncode} {done.stderr[-300:]}', done.returncode == 0)
        revisions = [event['rev'] for event in map(json.loads, done.stdout.splitlines()) if 'rev' in event]
        expect(
            'something was lost',
            len(told) > 1
            and revisions[: len(told)] == told
            and revisions[1:] == list(range(first + 1, last + 1)),
        )
        print(f'record: {len(told)} events before the disk was full, {len(revisions)} at last')
        os.unlink(path)
        server.end(signal.SIGTERM)


CASES = {
    'serve': (serve, 24),
    'etcd': (etcd, 24),
    'leases': (leases, 24),
    'history': (history, 8),
    'record': (record, 4),
}


def main():
    if os.environ.get('DISK_FULL_IS_ALONE') is None:
        flags = ['-m'] if os.getuid() == 0 else ['-rm']
        if subprocess.run(['unshare', *flags, 'true'], check=False).returncode != 0:
            print('neither a mount namespace nor a user namespace is allowed here')
            sys.exit(77)
        sys.exit(
            subprocess.run(
                ['unshare', *flags, sys.executable, *sys.argv],
                env={**os.environ, 'DISK_FULL_IS_ALONE': '1'},
                check=False,
            ).returncode
        )
    for name in sys.argv[2:] or CASES:
        case, size = CASES[name]
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}m', 'tmpfs', directory], check=True)
            try:
                case(sys.argv[1], directory)
            finally:
                subprocess.run(['umount', '-l', directory], check=True)


main()
