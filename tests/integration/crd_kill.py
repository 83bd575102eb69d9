#!/usr/bin/env python3
"""Usage: crd_kill.py VEDETTE
Kills `vedette serve --data-dir` repeatedly while CustomResourceDefinitions with objects are created and
deleted. After each restart every acknowledged definition must be served or being deleted; in the end all are
deleted with their objects."""

import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

ROUNDS = 5
KINDS = 12
PATIENCE_S = 300
CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'


class Server:
    def __init__(self, program, directory):
        self.process = subprocess.Popen(
            [program, 'serve', '--data-dir', directory, '--listen', '127.0.0.1:0'],
            stderr=subprocess.PIPE,
            text=True,
        )
        for line in self.process.stderr:
            if 'ready http://' in line:
                self.address = line.split('http://')[1].strip()
                break
        else:
            raise SystemExit('the server did not start')
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, method, path, body=None):
        """Returns code and body; (0, None): the server is gone."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {'Content-Type': 'application/merge-patch+json' if method == 'PATCH' else 'application/json'},
            )
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            return 0, None
        finally:
            connection.close()

    def await_change(self, path, revision):
        """Waits for the next change of a list after a revision. Returns False if none arrived."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            connection.request('GET', f'{path}?watch=true&resourceVersion={revision}')
            return bool(connection.getresponse().readline())
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def definition(i):
    return {
        'apiVersion': 'apiextensions.k8s.io/v1',
        'kind': 'CustomResourceDefinition',
        'metadata': {'name': f'kind{i}s.example.com'},
        'spec': {
            'group': 'example.com',
            'scope': 'Namespaced',
            'names': {'plural': f'kind{i}s', 'kind': f'Kind{i}'},
            'versions': [
                {
                    'name': 'v1',
                    'served': True,
                    'storage': True,
                    'schema': {
                        'openAPIV3Schema': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}
                    },
                }
            ],
        },
    }


def objects_path(i):
    return f'/apis/example.com/v1/namespaces/default/kind{i}s'


class Counter:
    """Records the answers that arrived."""

    def __init__(self):
        self.count = 0
        self.changed = threading.Condition()

    def add(self):
        with self.changed:
            self.count += 1
            self.changed.notify_all()

    def reach(self, count):
        with self.changed:
            if not self.changed.wait_for(lambda: self.count >= count, PATIENCE_S):
                raise SystemExit(f'the server has answered {self.count} times only')


def work(server, seed, answers):
    dice = random.Random(seed)

    def ask(*arguments):
        code, _ = server.ask(*arguments)
        if code:
            answers.add()
        return code

    while True:
        i = dice.randrange(KINDS)
        if dice.random() < 0.3:
            code = ask('DELETE', f'{CRDS}/kind{i}s.example.com')
        else:
            code = ask('POST', CRDS, definition(i))
            for n in range(4):
                ask(
                    'POST',
                    objects_path(i),
                    {'apiVersion': 'example.com/v1', 'kind': f'Kind{i}', 'metadata': {'name': f'o{n}'}},
                )
        if code == 0:
            return


def condition(item, kind):
    for entry in item.get('status', {}).get('conditions') or []:
        if entry['type'] == kind:
            return entry['status']
    return ''


def until(what, server, check):
    """Waits for definitions to settle; checks again when one of them has changed."""
    while True:
        _, answer = server.ask('GET', CRDS)
        if check(answer['items']):
            return
        if not server.await_change(CRDS, answer['metadata']['resourceVersion']):
            raise SystemExit(f'never: {what}')


def check_served(server, item, when):
    """Checks all loops: connections are distributed in turn."""
    for _ in range(2 * os.cpu_count()):
        if server.ask('GET', objects_path(int(item['spec']['names']['plural'][4:-1])))[0] != 200:
            raise SystemExit(f"{item['metadata']['name']} is not served {when}")


def all_settled(server, items):
    """Every definition that is not being deleted is Established, and an established one is served."""
    for item in items:
        if 'deletionTimestamp' in item['metadata'] or condition(item, 'Established') != 'True':
            return False
        check_served(server, item, 'and Established')
    return True


def main():
    program = sys.argv[1]
    seed = int(os.environ.get('SEED', '3'))
    directory = tempfile.mkdtemp()
    server = None
    try:
        dice = random.Random(seed)
        for turn in range(ROUNDS):
            server = Server(program, directory)
            for item in server.ask('GET', CRDS)[1]['items']:  # served before the server reports ready
                if 'deletionTimestamp' not in item['metadata']:
                    check_served(server, item, f'after the restart, in turn {turn}')
            answers = Counter()
            workers = [
                threading.Thread(target=work, args=(server, seed * 100 + turn * 10 + n, answers))
                for n in range(3)
            ]
            for worker in workers:
                worker.start()
            answers.reach(dice.randrange(200))
            server.end(signal.SIGKILL)
            for worker in workers:
                worker.join()
        server = Server(program, directory)
        until('definitions settle', server, lambda items: all_settled(server, items))
        for item in server.ask('GET', CRDS)[1]['items']:
            server.ask('DELETE', f"{CRDS}/{item['metadata']['name']}")
        until('definitions go', server, lambda items: not items)
        for i in range(KINDS):  # nothing is left
            server.ask('POST', CRDS, definition(i))
        until(
            'definitions come back', server, lambda items: len(items) == KINDS and all_settled(server, items)
        )
        for i in range(KINDS):
            left = server.ask('GET', objects_path(i))[1]['items']
            if left:
                raise SystemExit(
                    f'objects of kind{i}s outlived their definition: '
                    f'{[item["metadata"]["name"] for item in left]}'
                )
        if server.end(signal.SIGTERM) != 0:
            raise SystemExit('the server did not end well')
        print(f'crd_kill: {ROUNDS} kills, seed {seed}')
    finally:
        if server and server.process.poll() is None:
            server.process.kill()
        shutil.rmtree(directory, ignore_errors=True)


main()
