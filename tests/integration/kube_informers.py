#!/usr/bin/env python3
"""Informers of vedette/kube.h on a real server, under faults, compared with the changes in etcd.

Usage: kube_informers.py MODE PEERS-BUILD-DIR WITNESS [--vedette PROGRAM] [--changes N] [--cuts N]
[--namespaces N] [--handlers N] [--seed N] [--keep]
MODE:
    faults   through a proxy that cuts, refuses, falls silent, answers 410 and exchanges tokens (HTTP/1.1);
             kube-apiserver without its watch cache, so that a restart of it forces no list
    direct   HTTP/2 with a client certificate and an exec plugin, through a proxy that cuts connections; with the
             watch cache, kill -9 of the server and a compaction
    serve    `vedette serve` in place of kube-apiserver, killed and cut off
    compare  client-go's informers beside: the same events in the same order for each object
    watch    the command `vedette watch` through the proxy: each revision once, and the command does not end

Checks: each informer reports each change of each object once and in order, the old object of an update is the one
it reported before, its local store equals the server's list, and nothing was listed twice unless the server had
forgotten a revision (410).
"""
import argparse
import collections
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from kube_faults import FaultProxy  # noqa: E402
from kube_server import TOKENS, KubeServer, Truth, VedetteServer, build_peers, until, write  # noqa: E402

POD_SPEC = {'containers': [{'name': 'c', 'image': 'i'}]}
POD = {'metadata': {'labels': {'a': 'b'}}, 'spec': POD_SPEC}
SET = {'selector': {'matchLabels': {'a': 'b'}}, 'template': POD}
JOB = {'template': {'spec': dict(POD_SPEC, restartPolicy='Never')}}
ROLE = {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'Role', 'name': 'r'}
# (group/version, plural, kind, content)
KINDS = [
    ('v1', 'configmaps', 'ConfigMap', {'data': {'a': 'b'}}),
    ('v1', 'secrets', 'Secret', {'data': {'a': 'YQ=='}}),
    ('v1', 'pods', 'Pod', {'spec': POD_SPEC}),
    ('v1', 'services', 'Service', {'spec': {'ports': [{'port': 80}]}}),
    ('v1', 'serviceaccounts', 'ServiceAccount', {}),
    ('v1', 'persistentvolumeclaims', 'PersistentVolumeClaim', {'spec': {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}}),
    ('v1', 'endpoints', 'Endpoints', {}),
    ('apps/v1', 'deployments', 'Deployment', {'spec': SET}),
    ('apps/v1', 'statefulsets', 'StatefulSet', {'spec': dict(SET, serviceName='s')}),
    ('apps/v1', 'daemonsets', 'DaemonSet', {'spec': SET}),
    ('apps/v1', 'replicasets', 'ReplicaSet', {'spec': SET}),
    ('batch/v1', 'jobs', 'Job', {'spec': JOB}),
    ('batch/v1', 'cronjobs', 'CronJob', {'spec': {'schedule': '* * * * *', 'jobTemplate': {'spec': JOB}}}),
    ('coordination.k8s.io/v1', 'leases', 'Lease', {}),
    ('discovery.k8s.io/v1', 'endpointslices', 'EndpointSlice', {'addressType': 'IPv4', 'endpoints': []}),
    ('rbac.authorization.k8s.io/v1', 'roles', 'Role', {}),
    ('rbac.authorization.k8s.io/v1', 'rolebindings', 'RoleBinding', {'roleRef': ROLE}),
    ('networking.k8s.io/v1', 'networkpolicies', 'NetworkPolicy', {'spec': {'podSelector': {}}}),
    ('networking.k8s.io/v1', 'ingresses', 'Ingress', {'spec': {'defaultBackend': {'service': {'name': 's', 'port': {'number': 80}}}}}),
    ('policy/v1', 'poddisruptionbudgets', 'PodDisruptionBudget', {'spec': {'selector': {'matchLabels': {'a': 'b'}}}}),
]
SERVE_PLURALS = {'configmaps', 'secrets', 'pods', 'services', 'serviceaccounts', 'persistentvolumeclaims', 'endpoints', 'deployments', 'statefulsets', 'daemonsets', 'replicasets', 'jobs',
                 'cronjobs', 'leases', 'endpointslices'}
HORSES = {'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition', 'metadata': {'name': 'horses.example.com'},
          'spec': {'group': 'example.com', 'names': {'kind': 'Horse', 'plural': 'horses', 'singular': 'horse'}, 'scope': 'Namespaced',
                   'versions': [{'name': 'v1', 'served': True, 'storage': True, 'schema': {'openAPIV3Schema': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}}}]}}
CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
LOST = (OSError, http.client.HTTPException)
started = time.monotonic()


def report(text, *values):
    print('%6.1f s  %s' % (time.monotonic() - started, text % values), flush=True)


class Failure(Exception):
    pass


def check(condition, text, *values):
    if not condition:
        raise Failure(text % values)


def path_of(version, plural, namespace='', name=''):
    return ('/api/' if '/' not in version else '/apis/') + version + ('/namespaces/' + namespace if namespace else '') + '/' + plural + ('/' + name if name else '')


def group_of(version):
    return version.rpartition('/')[0]


def type_name(version, plural):
    return plural + ('.' + group_of(version) if '/' in version else '')


# ---- Changes ----

class Writers:
    """Threads that create, change and delete; each one has its own objects. They pause when told, and wait for the
    server when it is away. acks: what the server has acknowledged, for each object."""

    def __init__(self, api, kinds, namespaces, count, seed):
        self.api, self.kinds, self.namespaces = api, kinds, namespaces
        self.count = 0
        self.target = 0
        self.acks = collections.defaultdict(list)  # (plural, namespace/name): [(revision or None, is_delete)]
        self.condition = threading.Condition()
        self.busy = self.total = count
        self.failure = None
        self.threads = [threading.Thread(target=self.run, args=(number, random.Random(seed * 1000 + number)), daemon=True) for number in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, number, generator):
        living = {}
        try:
            while True:
                with self.condition:
                    self.busy -= 1
                    self.condition.notify_all()
                    while self.count >= self.target:
                        self.condition.wait()
                    self.busy += 1
                    self.count += 1
                self.change(number, generator, living)
        except Exception as failure:  # reported by the waiting thread
            with self.condition:
                self.failure = failure
                self.condition.notify_all()

    def change(self, number, generator, living):
        version, plural, kind, content = self.kinds[generator.randrange(len(self.kinds))]
        namespace, name = generator.choice(self.namespaces), '%s-%d-%d' % (plural[:6], number, generator.randrange(4))  # a Service deletes its Endpoints
        key, path = (plural, namespace + '/' + name), path_of(version, plural, namespace)
        choice = generator.random()
        if key not in living:
            labels = {'colour': generator.choice(['red', 'blue'])}
            body = dict(content, apiVersion=version, kind=kind, metadata={'name': name, 'namespace': namespace, 'labels': labels, 'annotations': {'text': 'ä\n"\\/€'}})
            code, document = self.ask('POST', path, body)
            if code == 409 and not isinstance(document, str):
                code, document = self.ask('GET', path + '/' + name)
            living[key] = True
        elif choice < 0.25:
            code, document = self.ask('DELETE', path + '/' + name + '?gracePeriodSeconds=0')
            code = 200 if code == 404 else code
            living.pop(key)
            document = None
        else:
            patch = {'metadata': {'annotations': {'n': str(generator.random())}}}
            if choice > 0.9:
                patch['metadata']['labels'] = {'colour': generator.choice(['red', 'blue'])}
            code, document = self.ask('PATCH', path + '/' + name, patch, 'application/merge-patch+json')
        if code not in (200, 201, 202):
            raise Failure('%s: %s %s' % (key, code, document))
        self.acks[key].append((int(document['metadata']['resourceVersion']), False) if document else (None, True))

    def ask(self, method, path, body=None, content='application/json'):
        """Asks until the server answers."""
        while True:
            try:
                code, document = self.api.ask(method, path, body, content)
                if code not in (429, 500, 503, 504):
                    return code, document
            except LOST:
                pass
            threading.Event().wait(0.05)

    def go(self, count):
        """So many further changes; does not wait."""
        with self.condition:
            self.target = max(self.target, self.count) + count
            self.condition.notify_all()

    def wait(self):
        """Until all changes are made."""
        with self.condition:
            self.condition.wait_for(lambda: self.failure or (self.busy == 0 and self.count >= self.target), 600)
            if self.failure:
                raise self.failure

    def passed(self, count):
        return self.failure is not None or self.count >= count


# ---- The program under test ----

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


# ---- Checks ----

def key_of(item):
    return item['metadata'].get('namespace', '') + '/' + item['metadata']['name']


def is_ours(key):
    """kube-apiserver renews leases in kube-system all the time."""
    return not key.startswith('kube-')


def list_all(api, path):
    code, document = api.ask('GET', path)
    check(code == 200, 'list %s: %s %s', path, code, document)
    return {key_of(item): item for item in document['items'] if is_ours(key_of(item))}


def await_equal(witness, api, informers):
    """Waits until the events of all informers have led to the server's state, and compares the local stores."""
    lists = {}
    for informer in informers:
        if informer.path() not in lists:
            lists[informer.path()] = list_all(api, informer.path())
    wanted = {path: {key: int(item['metadata']['resourceVersion']) for key, item in items.items()} for path, items in lists.items()}

    def differing():
        return [informer for informer in informers if not informer.is_synced or informer.model != wanted[informer.path()]]
    try:
        witness.wait('informers do not reach the state of the server', lambda: not differing())
    except Failure as failure:
        for informer in differing()[:5]:
            want = wanted[informer.path()]
            print('%d %s synced=%s: differs in %s' % (informer.number, informer.scope(), informer.is_synced, [(key, want.get(key), informer.model.get(key), informer.events.get(key))
                  for key in set(want) | set(informer.model) if want.get(key) != informer.model.get(key)][:5]), file=sys.stderr)
        for health in witness.health()[:60]:
            print(health, file=sys.stderr)
        raise failure
    for informer in informers:
        check(not informer.problems, 'informer %d (%s): %s', informer.number, informer.scope(), informer.problems[:5])
    return lists


def compare_stores(witness, lists, informers):
    """Compares the local stores, member by member."""
    for informer in informers:
        ours = {key_of(item): item for item in witness.dump(informer) if is_ours(key_of(item))}
        theirs = lists[informer.path()]
        check(ours.keys() == theirs.keys(), '%s: local store has %s, server has %s', informer.scope(), sorted(ours), sorted(theirs))
        for key, item in theirs.items():
            one, other = ({name: value for name, value in document.items() if name not in ('apiVersion', 'kind')} for document in (item, ours[key]))
            check(one == other, '%s: %s is\n%s, not\n%s', informer.scope(), key, other, one)


def changes_of(truth, informer):
    """[{key: changes}] of an informer's scope; None: unknown (selectors)."""
    if informer.labels:
        return None
    changes = truth.of(group_of(informer.version), informer.plural)
    return {key: value for key, value in changes.items() if is_ours(key) and (not informer.namespace or key.startswith(informer.namespace + '/'))}


def check_sequence(informer, key, events, changes, is_exact):
    """events: reported; changes: [(revision, is_delete)] in etcd since before the informer was opened."""
    reported = [(kind in 'DX', revision) for kind, revision in events if kind != 'I']
    first = next((revision for kind, revision in events if kind == 'I'), 0)
    wanted = [(is_delete, revision) for revision, is_delete in changes if revision > first]
    if is_exact:
        check([is_delete or revision for is_delete, revision in reported] == [is_delete or revision for is_delete, revision in wanted],
              '%s %s: reported %s, in etcd %s', informer.scope(), key, events, changes)
        return
    rest = iter(wanted)
    for is_delete, revision in reported:
        check(any((is_delete and gone) or (not is_delete and not gone and revision == other) for gone, other in rest),
              '%s %s: reported %s twice, out of order or not in etcd: %s, %s', informer.scope(), key, revision, events, changes)


def check_events(truth, informers, expired):
    exact = 0
    for informer in informers:
        changes = changes_of(truth, informer)
        if changes is None:
            continue
        is_exact = not expired.get(informer.scope())
        exact += is_exact
        for key in set(changes) | set(informer.events):
            check_sequence(informer, key, informer.events.get(key, []), changes.get(key, []), is_exact)
    return exact


def check_lists(proxy, informers, has_progress):
    """No list since the initial ones, except one for each 410. A server without watch cache cannot prove that a source is up to date, so
    that a cache that begins again may read pages of its own, too."""
    for scope in sorted({informer.scope() for informer in informers}):
        queries, expired = proxy.list_queries[scope], proxy.expired[scope]
        initial, before = sum('sendInitialEvents' in query for query in queries), proxy.initial_lists[scope]
        check(1 <= initial <= before + expired and len(queries) - initial <= (0 if has_progress else expired), '%s: %d times 410, lists: %s', scope, expired, queries)


# ---- The runs ----

class Run:
    def __init__(self, options, folder):
        self.options, self.folder, self.proxy, self.witness, self.server = options, folder, None, None, None
        self.token_file = write(folder + '/token', TOKENS[0])
        self.namespaces = ['n%d' % number for number in range(options.namespaces)]
        self.kinds = [kind for kind in KINDS if options.mode != 'serve' or kind[1] in SERVE_PLURALS]

    def start_witness(self, kubeconfig, context, *more):
        log = self.folder + '/witness.log'
        self.witness = Witness([self.options.witness, '--kubeconfig', kubeconfig, '--context', context, '--silence', '5', *more], log)
        self.witness.wait('start', lambda: self.witness.answers['ready'])

    def make_namespaces(self):
        for name in self.namespaces:
            check(self.server.api.ask('POST', '/api/v1/namespaces', {'metadata': {'name': name}})[0] == 201, 'namespace %s', name)

    def start_writers(self):
        self.writers = Writers(self.server.api, self.kinds, self.namespaces, 4, self.options.seed)
        self.writers.go(100)
        self.writers.wait()

    def open_informers(self):
        """Each kind: all namespaces, single ones, a selector; with several handlers each."""
        opened = []
        for version, plural, *_ in self.kinds:
            for scope in [('', ''), ('', 'colour=red')] + [(name, '') for name in self.namespaces[:self.options.scopes]]:
                for _ in range(self.options.handlers):
                    opened.append(self.witness.open(version, plural, *scope))
        self.witness.wait('initial state', lambda: all(informer.is_synced for informer in opened))
        report('%d informers of %d sources are synced', len(opened), len({informer.scope() for informer in opened}))
        self.proxy.initial_lists = self.proxy.lists.copy()  # more than one of a source if it was cut off by silence
        return opened

    def changes_during(self, count, *steps):
        """Makes so many changes, and takes the steps one after the other, spread over them."""
        begin = self.writers.count
        self.writers.go(count)
        for number, step in enumerate(steps):
            until(lambda number=number: self.writers.passed(begin + count * (number + 1) // (len(steps) + 2)), again=0.01)
            step()
        self.writers.wait()

    def restart(self):
        self.server.kill()
        report('killed the server')
        self.server.start()
        report('the server is back')

    def settle(self, informers, expired, truth=None):
        self.writers.wait()
        lists = await_equal(self.witness, self.server.api, informers)
        if truth:
            truth.wait(self.server.revision())
            exact = check_events(truth, informers, expired)
            report('%d changes: %d informers have the state of the server, %d of them every event', self.writers.count, len(informers), exact)
        compare_stores(self.witness, lists, informers[::self.options.handlers])

    def usage(self):
        words = self.witness.ask('usage', 'u')
        report('RSS %.1f MB, CPU %.2f s, %s events', int(words[0]) / 1e6, int(words[1]) / 1e6, words[2])


class Faults(Run):
    def run(self):
        self.server = KubeServer(self.folder, self.options.peers, watch_cache=False)
        self.make_namespaces()
        self.start_writers()
        proxy = self.proxy = FaultProxy('127.0.0.1', self.server.port, self.server.tls, self.server.certificates.server, self.server.certificates.server_key, self.options.seed,
                                        upstream_token=TOKENS[0])
        proxy.accept({TOKENS[0]})
        truth = Truth(self.server, self.server.revision() + 1)
        self.start_witness(self.server.kubeconfig(self.folder + '/kubeconfig', proxy.url, token_file=self.token_file), 'file')
        horses = self.witness.open('example.com/v1', 'horses', '')  # the CRD does not exist yet
        informers = self.open_informers()
        self.streams = len({informer.scope() for informer in informers})
        self.refusals_and_cuts(proxy)
        self.settle(informers, {}, truth)
        self.check_requests()
        check_lists(proxy, informers, False)
        self.check_missing()
        self.forget(proxy)
        before = sum(proxy.expired.values())
        self.settle(informers, proxy.expired, truth)
        report('410 after the compaction: %d', sum(proxy.expired.values()) - before + self.forgotten)
        check(sum(proxy.expired.values()) + self.forgotten > before, 'the compaction caused no 410')
        check_lists(proxy, informers, False)
        self.check_horses(horses)
        self.check_redirect(proxy)
        report('proxy: %s', proxy.stats())
        self.usage()
        self.witness.quit()

    def opened_after(self, cut):
        """Cuts so many watches; returns a condition: as many as were cut at once are open again."""
        before = self.proxy.stats()
        self.proxy.cut(cut)
        after = self.proxy.stats()
        return lambda: self.proxy.stats()['watches'] >= before['watches'] + before['open'] - after['open']

    def refusals_and_cuts(self, proxy):
        changes, cuts = self.options.changes, self.options.cuts
        proxy.split(0.2)
        self.changes_during(changes // 5, *[lambda: proxy.cut(3)] * (cuts // 3))
        report('cuts: %d', proxy.stats()['cuts'])
        proxy.refuse(2 / 3, [429, 502, 503], 1)
        opened = self.opened_after(self.streams // 2)
        self.changes_during(changes // 5, *[lambda: proxy.cut(2)] * 3)
        self.witness.wait('watches after refusals', opened)
        report('refusals: %s', {code: proxy.stats().get(code, 0) for code in ('429', '502', '503')})
        proxy.heal()
        for number in range(1, 4):
            write(self.token_file, TOKENS[number])
            proxy.accept({TOKENS[number]})
            opened = self.opened_after(self.streams // 3)
            self.changes_during(changes // 20)
            self.witness.wait('watches with a new token', opened)
        report('3 new tokens; refused: %d', proxy.stats().get('401', 0))
        silenced = proxy.silence(5)
        watches = proxy.stats()['watches']
        self.changes_during(changes // 10)
        self.witness.wait('silent watches are opened again', lambda: proxy.stats()['watches'] >= watches + silenced)
        report('%d silent watches were opened again', silenced)
        self.changes_during(changes // 5, self.restart)

    def check_requests(self):
        for path, want in ('/api/v1/namespaces/n0/configmaps', ['ok', '200']), ('/api/v1/namespaces/n0/configmaps/none', ['not_found', '404']), ('/nothing', ['not_found', '404']):
            answer = self.witness.ask('request GET ' + path, 'R')
            check(answer[:2] == want, 'request %s: %s', path, answer)

    def forget(self, proxy):
        """410 as a status, as an event, and after a compaction by the server itself."""
        proxy.gone_event(6)
        self.changes_during(self.options.changes // 10)
        proxy.gone(4)
        proxy.cut(8)
        self.changes_during(self.options.changes // 10)
        before = sum(proxy.expired.values())
        report('410: %d', before)
        proxy.hole(True)
        proxy.cut_all()
        self.changes_during(self.options.changes // 10)
        self.server.compact(self.server.revision())
        proxy.hole(False)
        proxy.cut_all()
        self.changes_during(self.options.changes // 10)
        self.forgotten = sum(proxy.expired.values()) - before

    def check_missing(self):
        """A resource that does not exist; then it is created."""
        self.witness.wait('health reports that horses are missing', lambda: any(one['resource'].startswith('horses') and one['state'] == 'removed' for one in self.witness.health()))
        self.make_horse()

    def make_horse(self):
        api = self.server.api
        check(api.ask('POST', CRDS, HORSES)[0] == 201, 'CRD')
        body = {'apiVersion': 'example.com/v1', 'kind': 'Horse', 'metadata': {'name': 'h'}, 'spec': {'large': 12345678901234567890, 'tiny': 1.50}}
        until(lambda: api.ask('POST', path_of('example.com/v1', 'horses', 'n0'), body)[0] == 201, again=0.1)

    def check_horses(self, horses):
        """The resource is deleted with its objects, and with --large created and deleted again."""
        api = self.server.api
        for number in range(2 if self.options.large else 1):
            if number > 0:
                self.make_horse()
            self.witness.wait('the horse arrives', lambda: 'n0/h' in horses.model)
            api.ask('DELETE', CRDS + '/horses.example.com')
            self.witness.wait('the horse is removed', lambda: not horses.model)
            until(lambda: api.ask('GET', CRDS + '/horses.example.com')[0] == 404, again=0.1)
            report('the kind came and went: %s', horses.events)
        check(not horses.problems, 'horses: %s', horses.problems)

    def check_redirect(self, proxy):
        """A redirect is not followed, and the token does not leave."""
        trap = FaultProxy('127.0.0.1', self.server.port, self.server.tls, seed=1)
        proxy.redirect(trap.url + '/api/v1/namespaces')
        answer = self.witness.ask('request POST /api/v1/namespaces', 'R')
        check(answer[0] != 'ok' and answer[1] == '307', 'redirect: %s', answer)
        check(trap.stats().get('connections', 0) == 0, 'the redirect was followed')
        proxy.heal()
        trap.close()


class Direct(Run):
    def run(self):
        self.server = KubeServer(self.folder, self.options.peers, watch_cache=True)
        self.make_namespaces()
        self.start_writers()
        proxy = self.proxy = FaultProxy('127.0.0.1', self.server.port, self.server.tls, seed=self.options.seed, tcp=True)
        truth = Truth(self.server, self.server.revision() + 1)
        kubeconfig = self.server.kubeconfig(self.folder + '/kubeconfig', proxy.url, token_file=self.token_file)
        for context in 'exec', 'token', 'cert':
            self.start_witness(kubeconfig, context)
            if context != 'cert':
                answer = self.witness.ask('request GET /api/v1/namespaces', 'R')
                check(answer[:2] == ['ok', '200'], 'request with %s: %s', context, answer)
                self.witness.quit()
        connections = proxy.stats()['connections']
        informers = self.open_informers()
        report('connections of %d watches: %d', len({informer.scope() for informer in informers}), proxy.stats()['connections'] - connections)
        changes, cuts = self.options.changes, max(2, self.options.cuts // 5)
        self.changes_during(changes // 2, *[proxy.cut_all] * cuts)
        self.settle(informers, {}, truth)
        health = self.witness.health()
        check(all(one['lists'] <= 1 for one in health), 'lists: %s', [one for one in health if one['lists'] > 1])
        before = proxy.stats()['connections']
        silenced = proxy.silence(1000)
        self.witness.wait('silent connections are replaced', lambda: proxy.stats()['connections'] > before)
        self.changes_during(changes // 4, self.restart)
        self.settle(informers, {informer.scope(): 1 for informer in informers}, truth)  # the restarted watch cache has no history
        proxy.hole(True)
        proxy.cut_all()
        self.changes_during(changes // 4)
        self.server.compact(self.server.revision())
        proxy.hole(False)
        proxy.cut_all()
        self.settle(informers, {informer.scope(): 1 for informer in informers}, truth)
        report('%d silent connections; lists now: %s', silenced, collections.Counter(one['lists'] for one in self.witness.health()))
        report('proxy: %s', proxy.stats())
        self.usage()
        self.witness.quit()


class Serve(Run):
    def run(self):
        self.server = VedetteServer(self.folder, self.options.vedette)
        self.make_namespaces()
        self.start_writers()
        proxy = self.proxy = FaultProxy('127.0.0.1', self.server.port, seed=self.options.seed)
        self.start_witness(self.server.kubeconfig(self.folder + '/kubeconfig', proxy.url), 'token')
        before = {key: len(value) for key, value in self.writers.acks.items()}
        informers = self.open_informers()
        proxy.split(0.2)
        self.changes_during(self.options.changes, *[lambda: proxy.cut(5)] * 4, self.restart, *[lambda: proxy.cut(5)] * 2)
        self.settle(informers, proxy.expired)
        check_lists(proxy, informers, True)
        count = 0
        for informer in informers:
            if informer.labels or proxy.expired[informer.scope()]:
                continue
            for (plural, key), acks in self.writers.acks.items():
                if plural == informer.plural and (not informer.namespace or key.startswith(informer.namespace + '/')):
                    reported = [revision for kind, revision in informer.events.get(key, []) if kind in 'AU']
                    wanted = [revision for revision, is_delete in acks[before.get((plural, key), 0):] if not is_delete]
                    rest = iter(reported)
                    check(all(revision in rest for revision in wanted), '%s %s: acknowledged %s, reported %s', informer.scope(), key, wanted, reported)
                    count += len(wanted)
        report('%d acknowledged changes were reported; proxy: %s', count, proxy.stats())
        self.usage()
        self.witness.quit()


class Compare(Run):
    """client-go beside ours, without faults."""

    def run(self):
        build_peers(os.path.join(here, '..', 'peers'), self.options.peers + '/peers')
        self.server = KubeServer(self.folder, self.options.peers)
        self.make_namespaces()
        self.start_writers()
        kubeconfig = self.server.kubeconfig(self.folder + '/kubeconfig')
        self.start_witness(kubeconfig, 'cert')
        ours = self.witness
        theirs = Witness([self.options.peers + '/peers', 'kube-informer', '--kubeconfig', kubeconfig, '--context', 'cert'], self.folder + '/client-go.log')
        theirs.wait('start', lambda: theirs.answers['ready'])
        pairs = [(ours.open(version, plural, ''), theirs.open(version, plural, '')) for version, plural, *_ in self.kinds]
        for witness in ours, theirs:
            witness.wait('initial state', lambda witness=witness: all(informer.is_synced for informer in witness.informers.values()))
        self.changes_during(self.options.changes)
        for witness in theirs, ours:
            await_equal(witness, self.server.api, list(witness.informers.values()))
        count = 0
        for one, other in pairs:
            check(one.events.keys() == other.events.keys(), '%s: other objects', one.scope())
            for key, events in one.events.items():
                check([(kind, kind == 'D' or revision) for kind, revision in events] == [(kind, kind == 'D' or revision) for kind, revision in other.events[key]],
                      '%s %s: %s, client-go %s', one.scope(), key, events, other.events[key])
                count += len(events)
        report('%d events are equal', count)
        for name, witness in ('vedette', ours), ('client-go', theirs):
            words = witness.ask('usage', 'u')
            report('%s: RSS %.1f MB, CPU %.2f s', name, int(words[0]) / 1e6, int(words[1]) / 1e6)
            witness.quit()


class Watch(Run):
    """The command `vedette watch`, which never ends."""

    def create(self, prefix, names):
        for number in range(10):
            body = {'metadata': {'name': '%s-%d' % (prefix, number)}}
            code, document = self.server.api.ask('POST', '/api/v1/namespaces/default/configmaps', body)
            check(code == 201, 'create: %s', document)
            names[body['metadata']['name']] = int(document['metadata']['resourceVersion'])

    def run(self):
        self.server = KubeServer(self.folder, self.options.peers)
        certificates = self.server.certificates
        proxy = self.proxy = FaultProxy('127.0.0.1', self.server.port, self.server.tls, certificates.server, certificates.server_key, self.options.seed, upstream_token=TOKENS[0])
        proxy.accept({TOKENS[0]})
        names, output = {}, self.folder + '/events'
        with open(output, 'w') as events, open(self.folder + '/errors', 'w') as errors:
            command = subprocess.Popen([self.options.vedette, 'watch', 'configmaps', '-n', 'default', '--initial', '-o', 'json', '--server', proxy.url, '--cacert', certificates.ca,
                                        '--token-file', self.token_file], stdout=events, stderr=errors)
        try:
            def seen():
                decoder, revisions, at = json.JSONDecoder(), {}, 0
                with open(output) as file:
                    text = file.read().rstrip()
                while at < len(text):
                    try:
                        event, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
                    except ValueError:
                        break  # the rest is not written yet
                    metadata = event.get('object', event)['metadata']
                    revisions.setdefault(metadata['name'], []).append(int(metadata['resourceVersion']))
                return revisions

            def await_all(what):
                if not until(lambda: names.keys() <= seen().keys(), command, again=0.1, guard=120):
                    raise Failure('%s: the command has not shown %s: %s' % (what, sorted(names.keys() - seen().keys()), tail_of(self.folder + '/errors')))
                report('%s: %d objects', what, len(names))
            steps = [('start', lambda: None), ('cut', lambda: proxy.cut_all()), ('refused', lambda: (proxy.refuse(2 / 3, [429, 502], 1), proxy.cut_all())),
                     ('new token', lambda: (proxy.heal(), write(self.token_file, TOKENS[1]), proxy.accept({TOKENS[1]}), proxy.cut_all())), ('410 as an event', lambda: proxy.gone_event(1)),
                     ('410 as a status', lambda: (proxy.gone(1), proxy.cut_all()))]
            for what, step in steps:
                step()
                self.create(what.replace(' ', '-').lower(), names)
                await_all(what)
            check(command.poll() is None, 'the command ended')
            wrong = {name: revisions for name, revisions in seen().items() if name in names and revisions != [names[name]]}
            check(not wrong, 'shown twice or wrongly: %s', wrong)
        finally:
            command.kill()
            command.wait()


def tail_of(path):
    with open(path, errors='replace') as file:
        return file.read()[-1000:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('mode', choices=['faults', 'direct', 'serve', 'compare', 'watch'])
    parser.add_argument('peers')
    parser.add_argument('witness')
    parser.add_argument('--vedette')
    parser.add_argument('--large', action='store_true')
    parser.add_argument('--changes', type=int)
    parser.add_argument('--cuts', type=int)
    parser.add_argument('--namespaces', type=int, default=12)
    parser.add_argument('--scopes', type=int)
    parser.add_argument('--handlers', type=int)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--keep', action='store_true', help='do not remove the folder')
    options = parser.parse_args()
    large = os.environ.get('VEDETTE_TEST_SIZE') == 'long' or options.large
    options.large = large
    options.changes = options.changes or (50000 if large else 1500)
    options.cuts = options.cuts or (200 if large else 20)
    options.scopes = options.scopes or (8 if large else 1)
    options.handlers = options.handlers or (5 if large else 2)
    options.vedette = options.vedette and os.path.abspath(options.vedette)
    options.peers, options.witness = os.path.abspath(options.peers), os.path.abspath(options.witness)
    folder = tempfile.mkdtemp(prefix='kube-')
    run = {'faults': Faults, 'direct': Direct, 'serve': Serve, 'compare': Compare, 'watch': Watch}[options.mode](options, folder)
    status = 1
    try:
        run.run()
        status = 0
    except Failure as failure:
        print('FAILED: %s' % failure, file=sys.stderr)
        if run.witness:
            print('witness: %s' % run.witness.tail(), file=sys.stderr)
        if run.proxy:
            print('proxy: %s' % run.proxy.stats(), file=sys.stderr)
    finally:
        if run.proxy:
            run.proxy.close()
        if run.witness and run.witness.process.poll() is None:
            run.witness.process.kill()
        if run.server:
            run.server.stop()
        if not options.keep:
            subprocess.call(['rm', '-rf', folder])
    report('ok' if status == 0 else 'failed')
    sys.exit(status)


if __name__ == '__main__':
    main()
