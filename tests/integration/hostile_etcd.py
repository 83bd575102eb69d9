#!/usr/bin/env python3
"""Usage: hostile_etcd.py VEDETTE [--strict]
Sends small requests that are costly to serve to `vedette etcd`, and polls single keys and /health meanwhile.
Each is answered, or refused where stated. Afterwards the server must use at most 64 MiB more memory than
before. --strict: no iteration of an event loop may take more than 50 ms (loop_limit.py). The slowest answers
to the polls are printed, because they depend on the machine."""

import http.client
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from etcd_frames import (
    ALL,
    KV,
    LEASE,
    MAINTENANCE,
    PATIENCE_S,
    WATCH,
    Client,
    delete_of,
    number,
    put_of,
    range_of,
    text,
    txn_of,
    varint,
)
from loop_limit import LoopLimit

GROWTH_MAX_KIB = 64 * 1024
PROCESSES = multiprocessing.get_context('spawn')
KEYS = 30000
REFUSED = 'refused: '


def compare_of(key, end):
    """The version is at least 0, which holds for every key."""
    return number(1, 1) + number(2, 0) + text(3, key) + varint(4 << 3) + varint(-1) + text(64, end)


class Server:
    def __init__(self, program, directory):
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            self.address = probe.getsockname()
        options = (
            os.environ.get('ASAN_OPTIONS', '')
            + ':quarantine_size_mb=1:thread_local_quarantine_size_kb=64'
            + ':allocator_release_to_os_interval_ms=10'
        )
        url = f'http://127.0.0.1:{self.address[1]}'
        self.process = subprocess.Popen(
            [
                program,
                'etcd',
                '--data-dir',
                directory,
                '--listen-client-urls',
                url,
                '--advertise-client-urls',
                url,
            ],
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ, ASAN_OPTIONS=options),
        )
        for line in self.process.stderr:
            if 'ready' in line:
                break
        else:
            raise SystemExit('the server did not start')
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def longest_us(self, clock):
        longest = [
            int(float(line.split()[-1]))
            for line in get(self.address, '/metrics')[1].decode().splitlines()
            if line.startswith('vedette_loop_iteration_max_microseconds') and f'clock="{clock}"' in line
        ]
        if not longest:
            raise SystemExit('the server does not tell its longest iteration')
        return max(longest)

    def resident_kib(self):
        with open(f'/proc/{self.process.pid}/status', encoding='ascii') as status:
            return next(int(line.split()[1]) for line in status if line.startswith('VmRSS:'))


def get(address, path):
    connection = http.client.HTTPConnection(*address, timeout=PATIENCE_S)
    try:
        connection.request('GET', path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def beat(address, path, pipe):
    """Runs in a process of its own, so that it does not wait for the interpreter's lock. Fetches the page, or
    (None) reads a key, until told to stop. Reports the number of polls, the slowest answer, and the number of
    failures."""
    client = None if path else Client(address)
    slowest_s, count, bad = 0, 0, 0
    while count == 0 or not pipe.poll():
        began = time.monotonic()
        is_good = get(address, path)[0] == 200 if path else client.ask(KV + 'Range', range_of(b'k000001'))
        slowest_s = max(slowest_s, time.monotonic() - began)
        count += 1
        bad += not is_good
    pipe.send((count, slowest_s, bad))


class Pulse:
    def __init__(self, address, path):
        self.pipe, pipe = PROCESSES.Pipe()
        self.process = PROCESSES.Process(target=beat, args=(address, path, pipe), daemon=True)
        self.process.start()

    def end(self):
        self.pipe.send('stop')
        return self.pipe.recv()


# ---- The attacks ----


def fill(client):
    for at in range(0, KEYS, 100):
        puts = [text(2, put_of(b'k%06d' % i, b'v' * 64)) for i in range(at, at + 100)]
        assert client.ask(KV + 'Txn', txn_of(puts))
    assert client.ask(LEASE + 'LeaseGrant', number(1, 36000) + number(2, 7))
    for at in range(0, KEYS // 2, 100):
        assert client.ask(
            KV + 'Txn', txn_of([text(2, put_of(b'l%06d' % i, b'v', 7)) for i in range(at, at + 100)])
        )


def watch_flood(server):
    """Opens watches on one stream, half of them from the first revision on, and reads their events."""
    client = Client(server.address)
    creates = [text(1, text(1, b'k%06d' % i) + number(3, i % 2 and 2)) for i in range(500)]
    client.begin(WATCH, creates, False)
    size = 0
    while size < 500 * 20:
        size += len(client.next()[0])
    client.socket.close()
    return size


def attacks(server, client):
    """Yields name and a call that returns the number of bytes of the answer."""

    def ask(path, message=b''):
        return lambda: client.ask(path, message)

    every = range_of(ALL, ALL)
    old = KEYS // 200
    yield 'all keys', ask(KV + 'Range', every)
    for target in range(5):
        yield f'all sorted by {target}', ask(
            KV + 'Range', range_of(ALL, ALL, order=2, target=target, limit=3)
        )
    yield 'all keys, filtered', ask(KV + 'Range', range_of(ALL, ALL, min_mod=1 << 40, limit=1))
    yield 'all counted', ask(KV + 'Range', range_of(ALL, ALL, count_only=1))
    yield 'one of an old revision', ask(KV + 'Range', range_of(ALL, ALL, revision=old, limit=1))
    yield 'an old count', ask(KV + 'Range', range_of(ALL, ALL, revision=old, count_only=1))
    yield 'a stream of all', ask(KV + 'RangeStream', every)
    yield '20 times all', ask(KV + 'Txn', txn_of([text(1, every)] * 20))
    yield '128 counts of old revisions', ask(
        KV + 'Txn', txn_of([text(1, range_of(ALL, ALL, revision=old + i, limit=1)) for i in range(128)])
    )
    yield '128 compares of all', ask(KV + 'Txn', txn_of(compares=[compare_of(ALL, ALL)] * 128))
    write = text(2, put_of(b'x', b'x'))
    yield 'a write with 5 compares of all', ask(
        KV + 'Txn', txn_of([write], compares=[compare_of(ALL, ALL)] * 5)
    )
    yield f'{REFUSED}a write with 100 compares of all', ask(
        KV + 'Txn', txn_of([write], compares=[compare_of(ALL, ALL)] * 100)
    )
    deep = text(4, txn_of(compares=[compare_of(ALL, ALL)] * 60))
    yield f'{REFUSED}a write with 3600 compares of all', ask(KV + 'Txn', txn_of([write] + [deep] * 60))
    yield f'{REFUSED}a write that reads all 100 times', ask(
        KV + 'Txn', txn_of([write] + [text(1, every)] * 100)
    )
    yield 'keys of a lease', ask(LEASE + 'LeaseTimeToLive', number(1, 7) + number(2, 1))
    yield 'leases', ask(LEASE + 'LeaseLeases')
    yield 'watches', lambda: watch_flood(server)
    yield 'a hash', ask(MAINTENANCE + 'HashKV')
    yield 'a snapshot', ask(MAINTENANCE + 'Snapshot')
    yield 'the end of a lease', ask(LEASE + 'LeaseRevoke', number(1, 7))
    yield 'all gone', ask(KV + 'DeleteRange', delete_of(ALL, ALL, 1))
    yield 'compaction', ask(KV + 'Compact', number(1, KEYS // 100) + number(2, 1))
    yield 'defragmentation', ask(MAINTENANCE + 'Defragment')


def main():
    strict = '--strict' in sys.argv[2:]
    limit = LoopLimit()
    failures = []
    with tempfile.TemporaryDirectory() as directory:
        server = Server(sys.argv[1], directory)
        client = Client(server.address)
        fill(client)
        client.ask(KV + 'Range', range_of(ALL, ALL))
        before, cpu = server.resident_kib(), server.longest_us('cpu')
        pulses = {'a key': Pulse(server.address, None), '/health': Pulse(server.address, '/health')}
        print(f'prepared: {before} KiB, longest iteration {cpu} us', flush=True)
        for name, attack in attacks(server, client):
            began = time.monotonic()
            size = attack()
            now = server.longest_us('cpu')
            print(
                f'{name}: {size} bytes in {time.monotonic() - began:.2f} s, longest iteration {now} us, '
                f'{server.resident_kib()} KiB',
                flush=True,
            )
            if (size == 0) != name.startswith(REFUSED):
                failures.append(f'{name}: {size} bytes')
            if strict and now > max(cpu, limit.us):
                failures.append(f'{name}: an iteration of {now} us')
            cpu = max(cpu, now)
        for name, pulse in pulses.items():
            count, slowest_s, bad = pulse.end()
            print(
                f'{name}: asked {count} times, slowest answer {slowest_s * 1000:.0f} ms, '
                f'load {os.getloadavg()[0]:.1f}'
            )
            if bad:
                failures.append(f'{name} failed {bad} times')
        after = server.resident_kib()
        print(f'memory {before} KiB before, {after} KiB after; wall {server.longest_us("wall")} us')
        if after - before > GROWTH_MAX_KIB:
            failures.append(f'memory grew by {after - before} KiB')
        server.process.send_signal(signal.SIGTERM)
        if server.process.wait(PATIENCE_S) != 0:
            failures.append('the server did not end well')
    print('\n'.join(failures))
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
