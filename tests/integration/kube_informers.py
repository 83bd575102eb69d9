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
import json
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from kube_changes import KINDS, SERVE_PLURALS, Failure, Writers, check, path_of, report  # noqa: E402
from kube_checks import await_equal, check_events, check_lists, compare_stores  # noqa: E402
from kube_faults import FaultProxy  # noqa: E402
from kube_server import TOKENS, KubeServer, Truth, VedetteServer, build_peers, until, write  # noqa: E402
from kube_witnesses import Witness  # noqa: E402

HORSES = {'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition', 'metadata': {'name': 'horses.example.com'},
          'spec': {'group': 'example.com', 'names': {'kind': 'Horse', 'plural': 'horses', 'singular': 'horse'}, 'scope': 'Namespaced',
                   'versions': [{'name': 'v1', 'served': True, 'storage': True, 'schema': {'openAPIV3Schema': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}}}]}}
CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'


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
