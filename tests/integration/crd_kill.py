#!/usr/bin/env python3
"""Usage: crd_kill.py VEDETTE
Kills `vedette serve --data-dir` in the middle of creating and deleting CustomResourceDefinitions with objects, again and again. After each
restart what was acknowledged must be there: every definition is served or on its way out, and in the end all go with their objects."""
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
import time

ROUNDS = 5
KINDS = 12
PATIENCE_S = 300
CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'


class Server:
    def __init__(self, program, directory):
        self.process = subprocess.Popen([program, 'serve', '--data-dir', directory, '--listen', '127.0.0.1:0'], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if 'ready http://' in line:
                self.address = line.split('http://')[1].strip()
                break
        else:
            raise SystemExit('the server did not start')
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, method, path, body=None):
        """The code and the answer; (0, None): the server is gone."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {'Content-Type': 'application/merge-patch+json' if method == 'PATCH' else 'application/json'})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            return 0, None
        finally:
            connection.close()

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def definition(i):
    return {'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition', 'metadata': {'name': f'kind{i}s.example.com'},
            'spec': {'group': 'example.com', 'scope': 'Namespaced', 'names': {'plural': f'kind{i}s', 'kind': f'Kind{i}'},
                     'versions': [{'name': 'v1', 'served': True, 'storage': True,
                                   'schema': {'openAPIV3Schema': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}}}]}}


def objects_path(i):
    return f'/apis/example.com/v1/namespaces/default/kind{i}s'


def work(server, seed):
    dice = random.Random(seed)
    while True:
        i = dice.randrange(KINDS)
        if dice.random() < 0.3:
            code, _ = server.ask('DELETE', f'{CRDS}/kind{i}s.example.com')
        else:
            code, _ = server.ask('POST', CRDS, definition(i))
            for n in range(4):
                server.ask('POST', objects_path(i), {'apiVersion': 'example.com/v1', 'kind': f'Kind{i}', 'metadata': {'name': f'o{n}'}})
        if code == 0:
            return


def condition(item, kind):
    for entry in item.get('status', {}).get('conditions') or []:
        if entry['type'] == kind:
            return entry['status']
    return ''


def until(what, check):
    deadline = time.monotonic() + PATIENCE_S
    while not check():
        if time.monotonic() > deadline:
            raise SystemExit(f'never: {what}')
        time.sleep(0.02)


def all_settled(server):
    """What is not on its way out is Established, and then it is served."""
    _, answer = server.ask('GET', CRDS)
    for item in answer['items']:
        if 'deletionTimestamp' in item['metadata']:
            return False
        if condition(item, 'Established') != 'True':
            return False
        if server.ask('GET', objects_path(int(item['spec']['names']['plural'][4:-1])))[0] != 200:
            raise SystemExit(f"{item['metadata']['name']} is Established and not served")
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
            before = {item['metadata']['name'] for item in server.ask('GET', CRDS)[1]['items'] if 'deletionTimestamp' not in item['metadata']}
            for name in before:  # served before it says that it is ready
                if server.ask('GET', objects_path(int(name.split('s.')[0][4:])))[0] != 200:
                    raise SystemExit(f'turn {turn}: {name} is not served after the restart')
            workers = [threading.Thread(target=work, args=(server, seed * 100 + turn * 10 + n)) for n in range(3)]
            for worker in workers:
                worker.start()
            time.sleep(dice.random() * 0.5)
            server.end(signal.SIGKILL)
            for worker in workers:
                worker.join()
        server = Server(program, directory)
        until('definitions settle', lambda: all_settled(server))
        for item in server.ask('GET', CRDS)[1]['items']:
            server.ask('DELETE', f"{CRDS}/{item['metadata']['name']}")
        until('definitions go', lambda: not server.ask('GET', CRDS)[1]['items'])
        for i in range(KINDS):  # nothing was left behind
            server.ask('POST', CRDS, definition(i))
        until('definitions come back', lambda: len(server.ask('GET', CRDS)[1]['items']) == KINDS and all_settled(server))
        for i in range(KINDS):
            left = server.ask('GET', objects_path(i))[1]['items']
            if left:
                raise SystemExit(f'objects of kind{i}s outlived their definition: {[item["metadata"]["name"] for item in left]}')
        if server.end(signal.SIGTERM) != 0:
            raise SystemExit('the server did not end well')
        print(f'crd_kill: {ROUNDS} kills, seed {seed}')
    finally:
        if server and server.process.poll() is None:
            server.process.kill()
        shutil.rmtree(directory, ignore_errors=True)


main()
