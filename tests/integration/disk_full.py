#!/usr/bin/env python3
"""Usage: disk_full.py VEDETTE
`vedette serve --etcd-listen` on a small disk that is really full: it is killed there and starts again, deletes go on, and creates come back by themselves.
Runs itself in a mount namespace (root) or a user namespace."""
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

PATIENCE_S = 300
MAPS = '/api/v1/namespaces/default/configmaps'


class Server:
    def __init__(self, program, directory):
        self.process = subprocess.Popen([program, 'serve', '--data-dir', directory, '--listen', '127.0.0.1:0', '--etcd-listen', '127.0.0.1:0', '--history-bytes', '64KiB'],
                                        stderr=subprocess.PIPE, text=True)
        self.address = None
        for line in self.process.stderr:
            if 'ready http://' in line:
                self.address = line.split('http://')[1].split()[0]
                break
        if self.address is None:
            raise SystemExit('the server did not start')
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {'Content-Type': 'application/json'})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def fill(server, first):
    """Creates objects until the disk is full. Returns their names."""
    names = []
    while True:
        name = f'map-{first + len(names)}'
        code, answer = server.ask('POST', MAPS, {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name}, 'data': {'a': 'x' * 50000}})
        if code == 507:
            if 'the disk is full' not in answer['message']:
                raise SystemExit(f'which one is full? {answer["message"]}')
            return names
        if code != 201:
            raise SystemExit(f'create: {code} {answer}')
        names.append(name)


def fill_rest(directory):
    with open(directory + '/neighbour', 'wb') as file:
        free = os.statvfs(directory)
        if free.f_bfree:
            os.posix_fallocate(file.fileno(), 0, free.f_bfree * free.f_frsize)


def run(program, directory):
    data = directory + '/data'
    server = Server(program, data)
    for round_number in range(3):
        names = fill(server, round_number * 10000)
        if len(names) < 50:
            raise SystemExit(f'only {len(names)} objects fit')
        fill_rest(directory)
        server.end(signal.SIGKILL)
        server = Server(program, data)
        for name in names:
            code, answer = server.ask('DELETE', f'{MAPS}/{name}')
            if code != 200:
                raise SystemExit(f'delete: {code} {answer}')
        # The history is small: it goes, and with it what was deleted.
        os.unlink(directory + '/neighbour')
        while server.ask('POST', MAPS, {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'generateName': 'later-'}, 'data': {'a': 'x' * 50000}})[0] != 201:
            pass
        print(f'{len(names)} objects')
    if server.end(signal.SIGTERM) != 0:
        raise SystemExit('the server did not end well')


def main():
    if len(sys.argv) == 2:
        flags = ['-m'] if os.getuid() == 0 else ['-rm']
        if subprocess.run(['unshare', *flags, 'true'], check=False).returncode != 0:
            print('neither a mount namespace nor a user namespace is allowed here')
            sys.exit(77)
        with tempfile.TemporaryDirectory() as directory:
            sys.exit(subprocess.run(['unshare', *flags, sys.executable, sys.argv[0], sys.argv[1], directory], check=False).returncode)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', sys.argv[2]], check=True)
    run(sys.argv[1], sys.argv[2])


main()
