"""Processes that follow resources and report events: kube/kube_witness.c, or `peers kube-informer` (client-go)."""
import collections
import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kube_changes import Failure, check, is_ours, path_of, type_name  # noqa: E402
from kube_faults import FaultProxy  # noqa: E402
from kube_server import until  # noqa: E402


class Informer:
    def __init__(self, number, version, plural, namespace, labels=''):
        self.number, self.version, self.plural, self.namespace, self.labels = number, version, plural, namespace, labels
        self.is_synced = False
        self.model = {}   # namespace/name: revision
        self.events = {}  # namespace/name: [(type, revision)]
        self.problems = []

    def path(self):
        return path_of(self.version, self.plural, self.namespace) + ('?labelSelector=' + self.labels if self.labels else '')

    def scope(self):
        return FaultProxy.scope(path_of(self.version, self.plural, self.namespace), {'labelSelector': self.labels})

    def event(self, kind, key, revision, old):
        known = self.model.get(key)
        if kind in 'IA' and known is not None:
            self.problems.append('%s: added twice, at %s and %s' % (key, known, revision))
        if kind in 'UDX' and known is None:
            self.problems.append('%s: %s at %s without an add' % (key, kind, revision))
        if kind == 'U' and (known != old or revision <= old):
            self.problems.append('%s: update from %s to %s, but the last one was %s' % (key, old, revision, known))
        if kind in 'DX':
            self.model.pop(key, None)
        else:
            self.model[key] = revision
        self.events.setdefault(key, []).append((kind, revision))


class Witness:
    """A process that reports events of informers: kube_witness, or `peers kube-informer` (client-go)."""

    def __init__(self, command, log):
        with open(log, 'w') as file:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True, start_new_session=True)
        self.command, self.log, self.informers, self.answers, self.changes = command, log, {}, collections.defaultdict(list), []
        self.objects, self.dumped = collections.defaultdict(list), {}
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            words = line.rstrip('\n').split(' ')
            kind = words[0]
            if kind in ('I', 'A', 'U', 'D', 'X') and is_ours(words[2]):
                self.informers[int(words[1])].event(kind, words[2], int(words[3]), int(words[4]) if len(words) > 4 else None)
            elif kind in ('I', 'A', 'U', 'D', 'X'):
                pass
            elif kind == 'S':
                self.informers[int(words[1])].is_synced = True
            elif kind == 'C':
                self.changes.append(words[1:])
            elif kind == 'O':
                self.objects[int(words[1])].append(json.loads(line.split(' ', 2)[2]))
            elif kind == 'o':
                self.dumped[int(words[1])] = int(words[2])
            else:
                self.answers[kind].append(words[1:])

    def send(self, text, *values):
        self.process.stdin.write(text % values + '\n')
        self.process.stdin.flush()

    def open(self, version, plural, namespace, labels=''):
        informer = Informer(len(self.informers), version, plural, namespace, labels)
        self.informers[informer.number] = informer
        self.send('open %d %s %s %s -', informer.number, type_name(version, plural), namespace or '-', labels or '-')
        return informer

    def wait(self, what, condition, guard=120):
        if not until(condition, self.process, again=0.05, guard=guard):
            raise Failure('%s: %s; status %s; last changes %s' % (self.command[0], what, self.process.poll(), self.changes[-5:]))

    def tail(self):
        with open(self.log, errors='replace') as file:
            return file.read()[-4000:]

    def ask(self, command, kind):
        count = len(self.answers[kind])
        self.send('%s', command)
        self.wait(command, lambda: len(self.answers[kind]) > count)
        return self.answers[kind][count]

    def health(self):
        """[{...}]: the cluster first."""
        self.answers['H'].clear()
        self.ask('health', 'h')
        names = ('resource', 'namespace', 'state', 'revision', 'attempts', 'lists', 'watches', 'events', 'status')
        return [dict({name: int(word) if word.isdigit() else word for name, word in zip(names, words)}, message=' '.join(words[9:])) for words in list(self.answers['H'])]

    def dump(self, informer):
        self.objects.pop(informer.number, None)
        self.dumped.pop(informer.number, None)
        self.send('dump %d', informer.number)
        self.wait('dump', lambda: informer.number in self.dumped)
        return self.objects.pop(informer.number, [])

    def quit(self):
        self.send('quit')
        status = self.process.wait(60)
        check(status == 0, '%s ended with status %d: %s', self.command[0], status, self.tail())
