#!/usr/bin/env python3
"""Usage: hostile.py VEDETTE [--strict]
Sends small requests that are costly to serve to `vedette serve`, and polls /livez meanwhile. Each must get
one of the expected codes. Afterwards the server must use at most 64 MiB more memory than before. --strict (an
optimised build, also with the address sanitizer): no iteration of an event loop may take more than 50 ms
(loop_limit.py). An answer to /livez needs two iterations of such a loop, one that accepts the connection and
one that reads it, so the limit keeps /livez under 100 ms. The times of /livez before and during the attacks
are printed, because they depend on the machine."""

import http.client
import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from loop_limit import LoopLimit

PATIENCE_S = 600
PROCESSES = multiprocessing.get_context('spawn')
CROWD_COUNT = 20000
GROWTH_MAX_KIB = 64 * 1024
BODY_MAX = 3 << 20
JSON, MERGE, STRATEGIC = (
    'application/json',
    'application/merge-patch+json',
    'application/strategic-merge-patch+json',
)
OPERATIONS = 'application/json-patch+json'
TABLE = {'Accept': 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'}
METADATA = {'Accept': 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json'}
CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
MAPS = '/api/v1/namespaces/default/configmaps'
PODS = '/api/v1/namespaces/default/pods'
THINGS = '/apis/example.com/v1/namespaces/default/things'
SETS = '/apis/example.com/v1/namespaces/default/sets'
CROWD = '/api/v1/namespaces/crowd/configmaps'
PROTOBUF = {'Accept': 'application/vnd.kubernetes.protobuf,application/json'}


class Server:
    def __init__(self, program, directory, log):
        options = (
            os.environ.get('ASAN_OPTIONS', '')
            + ':quarantine_size_mb=1:thread_local_quarantine_size_kb=64'
            + ':allocator_release_to_os_interval_ms=10'
        )
        self.process = subprocess.Popen(
            [program, 'serve', '--data-dir', directory, '--load', log, '--listen', '127.0.0.1:0'],
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ, ASAN_OPTIONS=options),
        )
        for line in self.process.stderr:
            if 'ready http://' in line:
                self.address = line.split('http://')[1].strip()
                break
        else:
            raise SystemExit('the server did not start')
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, method, path, body=None, kind=JSON, headers=None):
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            text = (
                body
                if body is None or isinstance(body, (str, bytes))
                else json.dumps(body, separators=(',', ':'))
            )
            connection.request(
                method,
                path,
                text,
                dict(headers or {}, **({'Content-Type': kind} if text is not None else {})),
            )
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def longest_us(self, clock):
        for line in self.ask('GET', '/metrics')[1].decode().splitlines():
            if (
                line.startswith('vedette_loop_iteration_max_microseconds')
                and f'clock="{clock}"' in line
                and 'loop="http"' in line
            ):
                return int(float(line.split()[-1]))
        raise SystemExit('the server does not tell its longest iteration')

    def resident_kib(self):
        with open(f'/proc/{self.process.pid}/status', encoding='ascii') as status:
            return next(int(line.split()[1]) for line in status if line.startswith('VmRSS:'))


def write_crowd(path):
    """Writes an event log with many small objects."""
    with open(path, 'w', encoding='ascii') as log:
        log.write('{"vedetteLog":1}\n')
        objects = [
            (
                'namespaces/crowd',
                {
                    'apiVersion': 'v1',
                    'kind': 'Namespace',
                    'metadata': {'name': 'crowd'},
                    'status': {'phase': 'Active'},
                },
            )
        ]
        for i in range(CROWD_COUNT):
            labels = {'app': f'a{i % 100}', 'n': str(i), 'tier': 'x', 'hash': f'h{i * 7919}'}
            metadata = {'name': f'm{i}', 'namespace': 'crowd', 'uid': f'u{i}', 'labels': labels}
            objects.append(
                (
                    f'configmaps/crowd/m{i}',
                    {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': metadata, 'data': {'k': 'v' * 80}},
                )
            )
        for i, (key, value) in enumerate(objects):
            log.write(
                json.dumps(
                    {'rev': i + 2, 'type': 'PUT', 'key': '/registry/' + key, 'value': value},
                    separators=(',', ':'),
                )
                + '\n{"commit":%d}\n' % (i + 2)
            )


def waited_s(tasks):
    """Returns how long these threads were runnable without a processor."""
    total = 0
    for task in tasks:
        with open(task + '/schedstat', encoding='ascii') as stat:
            total += int(stat.read().split()[1])
    return total / 1e9


def beat(address, pid, pipe):
    """Runs in a process of its own, so that it does not wait for the interpreter's lock. Polls /livez until
    told to stop. Reports the slowest answer, how long this process and the loops of the server waited for a
    processor meanwhile, and how many answers were not 200."""
    tasks = ['/proc/self']
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/comm', encoding='ascii') as comm:
            if comm.read().strip() == 'http':
                tasks.append(f'/proc/{pid}/task/{task}')
    slowest, count, bad = (0, 0), 0, 0
    while count < 50 or not pipe.poll():
        waited, began = waited_s(tasks), time.monotonic()
        connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
        connection.request('GET', '/livez')
        bad += connection.getresponse().status != 200
        connection.close()
        count += 1
        slowest = max(slowest, (time.monotonic() - began, waited_s(tasks) - waited))
    pipe.send((*slowest, bad))


class Pulse:
    def __init__(self, server):
        self.pipe, pipe = PROCESSES.Pipe()
        self.process = PROCESSES.Process(
            target=beat, args=(server.address, server.process.pid, pipe), daemon=True
        )
        self.process.start()

    def end(self):
        self.pipe.send('stop')
        return self.pipe.recv()


def definition(plural, schema):
    return {
        'apiVersion': 'apiextensions.k8s.io/v1',
        'kind': 'CustomResourceDefinition',
        'metadata': {'name': plural + '.example.com'},
        'spec': {
            'group': 'example.com',
            'scope': 'Namespaced',
            'names': {'plural': plural, 'kind': plural.title()[:-1]},
            'versions': [
                {'name': 'v1', 'served': True, 'storage': True, 'schema': {'openAPIV3Schema': schema}}
            ],
        },
    }


def thing(name, more):
    """Returns the text of a custom object; more: further members, each with a comma before it."""
    return '{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"%s"}%s}' % (name, more)


def operations(one, count):
    return '[' + ','.join([one] * count) + ']'


def filled(begin, part, end, size=BODY_MAX - 4096):
    """Returns begin, as many parts as fit (`%d`: their number), and end."""
    parts, left, i = [], size - len(begin) - len(end), 0
    while left > 0:
        parts.append(part % i if '%d' in part else part)
        left -= len(parts[-1]) + 1
        i += 1
    return begin + ','.join(parts[:-1]) + end


def prepare(server):
    anything = {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}
    members = {
        'set': {'type': 'array', 'x-kubernetes-list-type': 'set', 'items': {'type': 'string'}},
        'map': {
            'type': 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['k'],
            'items': {'type': 'object', 'required': ['k'], 'properties': {'k': {'type': 'string'}}},
        },
        'enum': {'type': 'array', 'items': {'type': 'integer', 'enum': list(range(9000))}},
        'any': {
            'type': 'array',
            'items': {
                'type': 'object',
                'x-kubernetes-preserve-unknown-fields': True,
                'anyOf': [{'required': [f'r{i}']} for i in range(500)],
            },
        },
        'text': {'type': 'string', 'pattern': '^(a|aa|aaa)*b$'},
    }
    for plural, schema in (('things', anything), ('sets', {'type': 'object', 'properties': members})):
        code, answer = server.ask('POST', CRDS, definition(plural, schema))
        assert code == 201, answer
    while server.ask('GET', SETS)[0] != 200 or server.ask('GET', THINGS)[0] != 200:
        pass
    assert server.ask('POST', THINGS, thing('small', ',"a":["0123456789"]'))[0] == 201
    assert server.ask('POST', THINGS, thing('long', ',"a":[' + ','.join(['1'] * 600000) + ']'))[0] == 201
    assert (
        server.ask(
            'POST', THINGS, thing('wide', ',"a":{' + ','.join(f'"k{i}":1' for i in range(100000)) + '}')
        )[0]
        == 201
    )
    finalizers = [f'a.example/{i}' for i in range(40000)]
    held = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'held', 'finalizers': finalizers}}
    assert server.ask('POST', MAPS, held)[0] == 201
    assert server.ask('DELETE', MAPS + '/held')[0] == 200
    pod = {
        'apiVersion': 'v1',
        'kind': 'Pod',
        'metadata': {'name': 'pod'},
        'spec': {'containers': [{'name': f'c{i}', 'image': 'i'} for i in range(5000)]},
    }
    assert server.ask('POST', PODS, pod)[0] == 201
    owner = '{"apiVersion":"v1","kind":"P","name":"p","uid":"u%d"}'
    owned = filled(
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owned","ownerReferences":[', owner, ']}}'
    )
    assert server.ask('POST', MAPS, owned)[0] == 201
    for i in range(300):
        assert (
            server.ask(
                'POST',
                MAPS,
                {
                    'apiVersion': 'v1',
                    'kind': 'ConfigMap',
                    'metadata': {'name': f'm{i}', 'labels': {'of': 'many'}},
                },
            )[0]
            == 201
        )


def schema_of_everything():
    one = '"p%d":{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}'
    schema = filled('{"type":"object","properties":{', one, '}}', 2500000)
    return json.dumps(definition('huges', {})).replace('"openAPIV3Schema": {}', '"openAPIV3Schema":' + schema)


def patterned(pattern, count=1, versions=1):
    schema = {
        'type': 'object',
        'properties': {f'p{i}': {'type': 'string', 'pattern': pattern} for i in range(count)},
    }
    wanted = definition('patterns', schema)
    wanted['spec']['versions'] = [
        dict(wanted['spec']['versions'][0], name=f'v{i}', storage=i == 0) for i in range(versions)
    ]
    return wanted


def custom_set(more):
    return '{"apiVersion":"example.com/v1","kind":"Set","metadata":{"name":"x"}%s}' % more


def attacks():
    """Yields name, expected codes, and request."""
    dry = '?dryRun=All'
    config = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"%s}%s}'
    yield 'a value of 58 levels', {200}, (
        'PATCH',
        THINGS + '/small' + dry,
        '[{"op":"add","path":"/b","value":%s1%s}]' % ('[' * 58, ']' * 58),
        OPERATIONS,
    )
    copy = '{"op":"copy","from":"/a","path":"/a/-"}'
    yield 'copies that double', {413}, ('PATCH', THINGS + '/small', operations(copy, 60), OPERATIONS)
    copy = '{"op":"copy","from":"/a","path":"/b"},{"op":"remove","path":"/b"}'
    yield 'copies that go again', {413}, ('PATCH', THINGS + '/long', operations(copy, 500), OPERATIONS)
    for index, codes in ((599999, {200}), (300000, {413})):
        replace = '{"op":"replace","path":"/a/%d","value":2}' % index
        yield f'10000 operations at {index}', codes, (
            'PATCH',
            THINGS + '/long' + dry,
            operations(replace, 10000),
            OPERATIONS,
        )
    move = '{"op":"move","from":"/a","path":"/b"},{"op":"move","from":"/b","path":"/a"}'
    yield 'moves to and fro', {413}, ('PATCH', THINGS + '/long', operations(move, 4000), OPERATIONS)
    nulls = '{"a":{' + ','.join(f'"k{i}":null' for i in range(99999, -1, -1)) + '}}'
    yield 'a merge that takes out 100000 members', {200}, ('PATCH', THINGS + '/wide' + dry, nulls, MERGE)
    yield 'a merge that outgrows a body', {413}, (
        'PATCH',
        THINGS + '/long',
        '{"b":"%s"}' % ('x' * 2500000),
        MERGE,
    )
    yield 'a strategic merge of long lists', {413}, (
        'PATCH',
        PODS + '/pod',
        filled('{"spec":{"containers":[', '{"name":"x%d"}', ']}}', 500000),
        STRATEGIC,
    )
    yield 'an order of long lists', {413}, (
        'PATCH',
        PODS + '/pod',
        filled('{"spec":{"$setElementOrder/containers":[', '{"name":"x%d"}', ']}}', 500000),
        STRATEGIC,
    )
    reverse = ','.join(f'"a.example/{i}"' for i in range(39999, -1, -1))
    yield 'finalizers in the other order', {200}, (
        'PATCH',
        MAPS + '/held' + dry,
        '{"metadata":{"finalizers":[%s]}}' % reverse,
        MERGE,
    )
    for pattern in (
        '(((){1000}){1000}){1000}',
        '((((){1000}){1000}){1000}){1000}',
        '((a{1000}){1000}){1000}',
    ):
        yield 'pattern ' + pattern, {422}, ('POST', CRDS, patterned(pattern))
    yield 'many patterns', {422}, ('POST', CRDS, patterned('(a{1000}){19}', 3000))
    yield 'many patterns in many versions', {422}, ('POST', CRDS, patterned('(a{1000}){19}', 45, 60))
    yield 'a schema of 2.5 MB', {201}, ('POST', CRDS, schema_of_everything())
    yield 'its documents', {200}, ('GET', '/openapi/v3/apis/example.com/v1')
    yield 'discovery', {200}, ('GET', '/apis')
    yield 'its end', {200}, ('DELETE', CRDS + '/huges.example.com')
    yield '1500000 numbers', {201, 413}, (
        'POST',
        THINGS + dry,
        filled('{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x"},"a":[', '1', ']}'),
    )
    yield 'brackets', {400}, ('POST', THINGS, '[' * 3000000)
    yield 'a set of strings', {201}, ('POST', SETS + dry, custom_set(filled(',"set":[', '"%d"', ']')))
    yield 'a set of equal strings', {422}, ('POST', SETS + dry, custom_set(filled(',"set":[', '"x"', ']')))
    yield 'a map of objects', {201}, ('POST', SETS + dry, custom_set(filled(',"map":[', '{"k":"%d"}', ']')))
    yield 'values that are last in their enum', {201, 422}, (
        'POST',
        SETS + dry,
        custom_set(filled(',"enum":[', '8999', ']')),
    )
    yield 'objects that match no branch', {422}, (
        'POST',
        SETS + dry,
        custom_set(filled(',"any":[', '{}', ']')),
    )
    yield 'a text that nearly matches', {422}, (
        'POST',
        SETS + dry,
        custom_set(',"text":"%s"' % ('a' * 3000000)),
    )
    yield '500000 members that the kind does not have', {201}, (
        'POST',
        SETS + dry + '&fieldValidation=Warn',
        custom_set(filled(',"q":{', '"%d":1', '}')),
    )
    yield 'unknown members of a built-in kind', {201}, (
        'POST',
        MAPS + dry + '&fieldValidation=Warn',
        config % ('', filled(',"q":{', '"%d":1', '}')),
    )
    yield 'the same, refused', {400}, (
        'POST',
        MAPS + dry + '&fieldValidation=Strict',
        config % ('', filled(',', '"q%d":1', '', 2500000)),
    )
    yield 'labels', {201, 422}, ('POST', MAPS + dry, config % (filled(',"labels":{', '"l%d":"a"', '}'), ''))
    owner = '{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u%d"}'
    yield 'owners', {201}, ('POST', MAPS + dry, config % (filled(',"ownerReferences":[', owner, ']'), ''))
    yield 'annotations', {201, 422}, (
        'POST',
        MAPS + dry,
        config % (filled(',"annotations":{', '"a%d":""', '}'), ''),
    )
    yield 'managed fields', {201}, (
        'POST',
        MAPS + dry,
        config % (filled(',"managedFields":[', '{"manager":"m%d","fieldsV1":{}}', ']'), ''),
    )
    yield 'data', {201}, ('POST', MAPS + dry, config % ('', filled(',"data":{', '"d%d":""', '}')))
    yield 'the same member twice', {400}, ('POST', MAPS, config % ('', filled(',"data":{', '"d":""', '}')))
    yield 'a long selector', {200, 400, 414, 431}, (
        'GET',
        MAPS + '?labelSelector=of%20in%20(' + ','.join(f'v{i}' for i in range(8000)) + ')',
    )
    yield 'many terms', {200, 400, 414, 431}, (
        'GET',
        MAPS + '?labelSelector=' + ','.join(f'k{i}!=v' for i in range(5000)),
    )
    for form in (TABLE, METADATA, {'Accept-Encoding': 'gzip'}, {'User-Agent': 'curl'}):
        yield 'a long object as ' + str(form), {200}, ('GET', THINGS + '/long', None, JSON, form)
        yield 'long objects as ' + str(form), {200}, ('GET', THINGS, None, JSON, form)
        yield 'long metadata as ' + str(form), {200}, ('GET', MAPS + '/owned', None, JSON, form)
    yield 'options of a delete', {413}, ('DELETE', MAPS + '/none', filled('{"q":[', '1', ']}'))
    yield 'a collection that would go', {200}, ('DELETE', MAPS + dry + '&labelSelector=of%3Dmany')
    yield 'a collection that goes', {200}, ('DELETE', MAPS + '?labelSelector=of%3Dmany')
    review = (
        '{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview",'
        '"spec":{"namespace":"default"%s}}'
    )
    yield 'a review', {413}, (
        'POST',
        '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
        review % filled(',"q":[', '1', ']'),
    )


def searches():
    """The same over many objects, with selectors that match none or all."""
    absent = ','.join(f'!a{i}' for i in range(998))
    names = ','.join(f'metadata.name!=x{i}' for i in range(700))
    old = f'resourceVersionMatch=Exact&resourceVersion={CROWD_COUNT - 9}'
    for name, query in (
        ('none', 'labelSelector=none'),
        ('a page of none', 'labelSelector=none&limit=3'),
        ('none with many terms', f'labelSelector={absent},none'),
        ('a long page', f'labelSelector={absent}&limit={CROWD_COUNT - 1}'),
        ('none by fields', f'labelSelector=none&fieldSelector={names}'),
        ('a page of none by fields', f'labelSelector=none&fieldSelector={names}&limit=1'),
        ('an old revision', old),
        ('a page of an old revision', f'{old}&limit={CROWD_COUNT - 1}'),
        ('all', ''),
        ('all, indented', 'pretty=true'),
    ):
        yield 'a list of ' + name, {200}, ('GET', f'{CROWD}?{query}')
    for form in (TABLE, METADATA, PROTOBUF, {'Accept-Encoding': 'gzip'}):
        yield 'all as ' + str(form), {200}, ('GET', CROWD, None, JSON, form)
    yield 'a page as protobuf', {200}, ('GET', CROWD + '?limit=6000', None, JSON, PROTOBUF)
    for name, query in (
        ('none', f'labelSelector=none,{absent}'),
        ('none by fields', f'labelSelector=none&fieldSelector={names}'),
        ('all', ''),
    ):
        yield 'a watch of ' + name, {200}, (
            'GET',
            f'{CROWD}?watch=true&resourceVersion=0&timeoutSeconds=1&{query}',
        )
    yield 'a watch of what was', {200}, (
        'GET',
        f'{CROWD}?watch=true&resourceVersion={CROWD_COUNT // 2}&timeoutSeconds=1&labelSelector={absent},none',
    )
    yield 'a collection of none', {200}, ('DELETE', f'{CROWD}?dryRun=All&labelSelector={absent},none')
    yield 'the dump', {200}, ('GET', '/debug/vedette')
    yield 'openapi', {200}, ('GET', '/openapi/v2')


def check_searches(server):
    """Lists whose matches a worker finds and a loop writes: the whole list, and all its pages."""
    absent = ','.join(f'!a{i}' for i in range(500))
    names = [item['metadata']['name'] for item in json.loads(server.ask('GET', CROWD)[1])['items']]
    found, token = [], ''
    while True:
        page = json.loads(server.ask('GET', f'{CROWD}?labelSelector={absent}&limit=7001&continue={token}')[1])
        found += [item['metadata']['name'] for item in page['items']]
        token = page['metadata'].get('continue', '')
        if not token:
            break
    whole = [
        item['metadata']['name']
        for item in json.loads(server.ask('GET', f'{CROWD}?labelSelector={absent}')[1])['items']
    ]
    if len(names) != CROWD_COUNT or names != found or names != whole:
        return [
            f'{len(names)} objects, {len(found)} in pages with a selector, {len(whole)} in a list with one'
        ]
    return []


def watch(server):
    """A table watch that stays open and reads its events."""

    def follow():
        try:
            connection = http.client.HTTPConnection(server.address, timeout=PATIENCE_S)
            connection.request('GET', THINGS + '?watch=true&includeObject=Object', headers=TABLE)
            answer = connection.getresponse()
            while answer.read(65536):
                pass
        except (OSError, http.client.HTTPException):
            pass

    threading.Thread(target=follow, daemon=True).start()


def main():
    strict = '--strict' in sys.argv[2:]
    failures = []
    limit = LoopLimit()
    with tempfile.TemporaryDirectory() as directory:
        log = os.path.join(directory, 'crowd.ndjson')
        write_crowd(log)
        server = Server(sys.argv[1], os.path.join(directory, 'data'), log)
        prepare(server)
        watch(server)
        server.ask('GET', THINGS, None, JSON, TABLE)
        server.ask('GET', CROWD)
        before, cpu = server.resident_kib(), server.longest_us('cpu')
        quiet_s, _, _ = Pulse(server).end()
        pulse = Pulse(server)
        print(f'prepared: {before} KiB, longest iteration {cpu} us', flush=True)
        if strict and cpu > limit.us:
            failures.append(f'preparing: an iteration of {cpu} us')
        for name, codes, what in itertools.chain(attacks(), searches()):
            began = time.monotonic()
            code, answer = server.ask(*what)
            now = server.longest_us('cpu')
            print(
                f'{name}: {code} in {time.monotonic() - began:.2f} s, longest iteration {now} us, '
                f'{server.resident_kib()} KiB',
                flush=True,
            )
            if code not in codes:
                failures.append(f'{name}: {code}, not one of {sorted(codes)}: {answer[:300]}')
            if strict and now > max(cpu, limit.us):
                failures.append(f'{name}: an iteration of {now} us')
            cpu = max(cpu, now)
        failures += check_searches(server)
        slowest_s, waited, bad = pulse.end()
        after = server.resident_kib()
        print(
            f'/livez: slowest answer {slowest_s * 1000:.0f} ms (loops and client waited '
            f'{waited * 1000:.0f} ms for a processor), before the attacks {quiet_s * 1000:.0f} ms; '
            f'load {os.getloadavg()[0]:.1f}, slowness of the machine {limit.slowness:.2f}; '
            f'memory {before} KiB before, {after} KiB after; wall {server.longest_us("wall")} us'
        )
        if bad:
            failures.append(f'/livez was not 200 {bad} times')
        if after - before > GROWTH_MAX_KIB:
            failures.append(f'memory grew by {after - before} KiB')
        server.process.send_signal(signal.SIGTERM)
        if server.process.wait(PATIENCE_S) != 0:
            failures.append('the server did not end well')
    print('\n'.join(failures))
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
