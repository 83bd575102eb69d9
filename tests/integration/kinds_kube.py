#!/usr/bin/env python3
"""Usage: kinds_kube.py VEDETTE KUBE_APISERVER

The rules of Kubernetes' own kinds, on `vedette serve` and on a real kube-apiserver (on `vedette etcd`): names
and prefixes of names for each kind, writes of Secrets and ConfigMaps, empty members, scales. Code, reason,
message and details of all answers must be equal. Comments with DIFFERS name the exceptions.
"""

# rules, H-101, H-347
import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from waiting import until  # noqa: E402

vedette, kube = map(os.path.abspath, sys.argv[1:3])  # they run in another folder
if not os.access(kube, os.X_OK) or not shutil.which('openssl'):
    print('skipped: there is no kube-apiserver (docs/HACKING.md says how one is built)', file=sys.stderr)
    sys.exit(77)

DEFAULT = '/api/v1/namespaces/default/'
CONTAINERS = [{'name': 'c', 'image': 'i'}]
POD = {'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': CONTAINERS}}
SET = {'selector': {'matchLabels': {'a': 'b'}}, 'template': POD}
JOB = {'template': {'spec': {'containers': CONTAINERS, 'restartPolicy': 'Never'}}}
STORAGE = {'accessModes': ['ReadWriteOnce']}
KINDS = {
    'v1/ConfigMap': ('configmaps', {}),
    'v1/Endpoints': ('endpoints', {}),
    'v1/Event': ('events', {'involvedObject': {'namespace': 'default'}, 'reason': 'r', 'type': 'Normal'}),
    'v1/Namespace': ('namespaces', {}),
    'v1/Node': ('nodes', {}),
    'v1/PersistentVolumeClaim': (
        'persistentvolumeclaims',
        {'spec': dict(STORAGE, resources={'requests': {'storage': '1Gi'}})},
    ),
    'v1/PersistentVolume': (
        'persistentvolumes',
        {'spec': dict(STORAGE, capacity={'storage': '1Gi'}, hostPath={'path': '/x'})},
    ),
    'v1/Pod': ('pods', {'spec': {'containers': CONTAINERS}}),
    'v1/Secret': ('secrets', {}),
    'v1/ServiceAccount': ('serviceaccounts', {}),
    'v1/Service': ('services', {'spec': {'ports': [{'port': 80}]}}),
    'apps/v1/DaemonSet': ('daemonsets', {'spec': SET}),
    'apps/v1/Deployment': ('deployments', {'spec': SET}),
    'apps/v1/ReplicaSet': ('replicasets', {'spec': SET}),
    'apps/v1/StatefulSet': ('statefulsets', {'spec': dict(SET, serviceName='s')}),
    'batch/v1/CronJob': ('cronjobs', {'spec': {'schedule': '* * * * *', 'jobTemplate': {'spec': JOB}}}),
    'batch/v1/Job': ('jobs', {'spec': JOB}),
    'coordination.k8s.io/v1/Lease': ('leases', {}),
    'discovery.k8s.io/v1/EndpointSlice': ('endpointslices', {'addressType': 'IPv4', 'endpoints': []}),
}
CLUSTER = ('namespaces', 'nodes', 'persistentvolumes')
NAMES = [
    'ok-name',
    'a.b',
    '1a',
    '1',
    'A',
    'a_b',
    '-a',
    'a-',
    'a.',
    '.a',
    'a..b',
    '',
    'a/b',
    'a%b',
    '.',
    '..',
    'a b',
    '\u00e4',
    'system:node:x',
    'a' * 52,
    'a' * 53,
    'a' * 63,
    'a' * 64,
    'a' * 64 + '.b',
    'a' * 100 + '-',
    'a' * 253,
    'a' * 254,
    'A' * 254,
    'a:b',
    'a\n',
    'a"b',
    '0.0',
    None,
]
PREFIXES = [
    'g-',
    'g',
    'G-',
    'g.',
    'g_',
    'a' * 57 + '-',
    'a' * 58,
    'a' * 70,
    'a' * 253,
    'a' * 254,
    '-',
    '1-',
    'a/',
    '.',
]


def text64(text):
    return base64.b64encode(text.encode()).decode()


class Server:
    def __init__(self, port, tls):
        self.host = ('127.0.0.1', port)
        self.tls = ssl._create_unverified_context() if tls else None

    def ask(self, method, path, body=None, kind='application/json'):
        client = (
            http.client.HTTPSConnection(*self.host, context=self.tls, timeout=120)
            if self.tls
            else http.client.HTTPConnection(*self.host, timeout=120)
        )
        headers = {
            'Content-Type': kind,
            'Accept': 'application/json',
            **({'Authorization': 'Bearer test-token'} if self.tls else {}),
        }
        client.request(method, path, json.dumps(body) if isinstance(body, (dict, list)) else body, headers)
        response = client.getresponse()
        data = response.read()
        client.close()
        return response.status, json.loads(data) if data[:1] == b'{' else {'text': data.decode()}


checks = failures = 0


def same(what, real, ours):
    global checks, failures
    checks += 1
    if real != ours:
        failures += 1
        print(
            'FAILED %.200s\n  kube-apiserver %.600s\n  vedette        %.600s' % (what, real, ours),
            file=sys.stderr,
        )


def view(answer, show=None):
    code, document = answer
    if code >= 400:
        return code, document.get('reason'), document.get('message'), document.get('details') or {}
    return code, show(document) if show else None


def both(servers, method, path, body=None, kind='application/json', show=None):
    answers = [server.ask(method, path, body, kind) for server in servers]
    same('%s %s %s' % (method, path, json.dumps(body)), view(answers[0], show), view(answers[1], show))
    return answers


# DIFFERS: kube-apiserver does not bound the names of Events; for prefixes the generated letters differ.
def check_names(servers):
    for kind, (plural, content) in KINDS.items():
        version, _, title = kind.rpartition('/')
        path = (
            ('/api/' if '/' not in version else '/apis/')
            + version
            + ('/' if plural in CLUSTER else '/namespaces/default/')
            + plural
            + '?dryRun=All'
        )
        for name in NAMES:
            if title != 'Event' or len(name or '') <= 253:
                both(
                    servers,
                    'POST',
                    path,
                    dict(
                        content,
                        apiVersion=version,
                        kind=title,
                        metadata={} if name is None else {'name': name},
                    ),
                )
        for prefix in PREFIXES:
            answers = [
                server.ask(
                    'POST',
                    path,
                    dict(content, apiVersion=version, kind=title, metadata={'generateName': prefix}),
                )
                for server in servers
            ]
            same(
                '%s, prefix %s' % (kind, prefix),
                *(
                    (
                        code,
                        len(document['metadata'].get('name', '')),
                        [cause['field'] for cause in (document.get('details') or {}).get('causes', [])],
                    )
                    for code, document in answers
                )
            )


def check_config_data(servers):
    secret, config = DEFAULT + 'secrets', DEFAULT + 'configmaps'
    count = 0

    def show(document):
        return {
            key: document[key]
            for key in ('type', 'data', 'stringData', 'binaryData', 'immutable')
            if key in document
        }

    def new(path, body):
        nonlocal count
        count += 1
        name = 'rules%d' % count
        both(servers, 'POST', path, dict(body, metadata=dict(body.get('metadata', {}), name=name)), show=show)
        return path + '/' + name, name

    for body in [
        {},
        {'type': ''},
        {'type': None},
        {'type': 'a/b'},
        {'data': None},
        {'data': {}},
        {'stringData': {}},
        {'stringData': {'a': 'x', 'b': ''}, 'data': {'a': 'eQ==', 'c': 'eg=='}},
        {'stringData': {'a': None}},
        {'data': {'a': None}},
        {'data': {'a': 'YQ==\n'}},
        {'stringData': {'a': '\u00f6\u20ac\n\t"'}},
        {'immutable': None},
        {'immutable': False},
        {'immutable': True},
        {'data': {'a b': ''}},
        {'data': {'': ''}},
        {'data': {'.': ''}},
        {'data': {'..': ''}},
        {'data': {'..a': ''}},
        {'data': {'a' * 253: ''}},
        {'data': {'a' * 254: ''}},
        {'type': 'kubernetes.io/tls'},
        {'type': 'kubernetes.io/basic-auth'},
        {'type': 'kubernetes.io/basic-auth', 'stringData': {'username': ''}},
        {'type': 'kubernetes.io/ssh-auth'},
        {'type': 'kubernetes.io/ssh-auth', 'stringData': {'ssh-privatekey': ''}},
        {'type': 'kubernetes.io/dockercfg'},
        {'type': 'kubernetes.io/dockercfg', 'stringData': {'.dockercfg': '{}'}},
        {'type': 'kubernetes.io/dockerconfigjson'},
        {'type': 'kubernetes.io/service-account-token'},
        {'data': {'a': text64('x' * (1 << 20))}},
        {'data': {'a': text64('x' * ((1 << 20) + 1))}},
    ]:
        new(secret, body)
    for body in [
        {},
        {'data': None},
        {'data': {}},
        {'data': {'a': None}},
        {'binaryData': {'a': 'YQ=='}},
        {'data': {'a': 'x'}, 'binaryData': {'a': 'YQ=='}},
        {'data': {'a b': 'x'}},
        {'binaryData': {'..x': ''}},
        {'data': {'a': 'x' * (1 << 20)}, 'binaryData': {'b': 'YQ=='}},
    ]:
        new(config, body)
    for path, value, other, title in (secret, 'eA==', 'eQ==', 'Secret'), (config, 'x', 'y', 'ConfigMap'):
        for immutable in True, False:
            base = {
                'data': {'a': value},
                'immutable': immutable,
                **({'type': 'my/type'} if path == secret else {}),
            }
            changes = [
                {},
                {'immutable': not immutable},
                {'immutable': None},
                {'data': {'a': other}},
                {'data': {}},
                {'data': None},
                {'data': {'a': value, 'b': ''}},
                {'metadata': {'labels': {'x': 'y'}}},
            ]
            if path == secret:
                changes += [
                    {'type': 'z'},
                    {'type': None},
                    {'stringData': {'a': 'x'}},
                    {'stringData': {'a': 'y'}},
                ]
            else:
                changes += [{'binaryData': {'b': 'YQ=='}}]
            for change in changes:
                target, name = new(path, base)
                both(
                    servers,
                    'PUT',
                    target,
                    dict(base, **dict(change, metadata=dict(change.get('metadata', {}), name=name))),
                    show=show,
                )
                for patch in 'merge-patch', 'strategic-merge-patch':
                    target, name = new(path, base)
                    both(servers, 'PATCH', target, change, 'application/%s+json' % patch, show=show)
            for operations in [
                [{'op': 'remove', 'path': '/immutable'}],
                [{'op': 'replace', 'path': '/data/a', 'value': other}],
                [{'op': 'remove', 'path': '/data'}],
            ]:
                both(
                    servers, 'PATCH', new(path, base)[0], operations, 'application/json-patch+json', show=show
                )


def check_silence(servers):
    """Empty members change nothing."""
    kinds = {
        'v1/ConfigMap': {'data': {'a': 'x'}},
        'apps/v1/Deployment': {'spec': dict(SET, replicas=2)},
        'v1/Service': {'spec': {'ports': [{'port': 80}]}},
    }
    values = (
        [(('metadata', name), value) for name in ('labels', 'annotations') for value in (None, {})]
        + [(('metadata', name), value) for name in ('finalizers', 'ownerReferences') for value in (None, [])]
        + [
            (('metadata', 'generateName'), ''),
            (('metadata', 'creationTimestamp'), None),
            (('metadata', 'generation'), 0),
        ]
    )
    pods = [
        (('spec', 'paused'), False),
        (('spec', 'minReadySeconds'), 0),
        (('spec', 'strategy'), {}),
        (('spec', 'strategy'), None),
        (('spec', 'template', 'metadata', 'creationTimestamp'), None),
        (('spec', 'template', 'spec', 'volumes'), []),
        (('spec', 'template', 'spec', 'nodeSelector'), {}),
        (('spec', 'template', 'spec', 'hostNetwork'), False),
        (('status',), {}),
    ]
    for number, (kind, content) in enumerate(kinds.items()):
        version, _, title = kind.rpartition('/')
        path = (
            ('/api/' if '/' not in version else '/apis/') + version + '/namespaces/default/' + KINDS[kind][0]
        )
        for place, (where, value) in enumerate(values + (pods if title == 'Deployment' else [])):
            name, seen = 'silent%d-%d' % (number, place), []
            for server in servers:
                sent = json.loads(
                    json.dumps(dict(content, apiVersion=version, kind=title, metadata={'name': name}))
                )
                code, made = server.ask('POST', path, sent)
                target = sent
                for member in where[:-1]:
                    target = target.setdefault(member, {})
                target[where[-1]] = value
                code, changed = server.ask('PUT', path + '/' + name, sent)
                seen.append(
                    (
                        code,
                        made['metadata']['resourceVersion'] == changed['metadata'].get('resourceVersion'),
                        made['metadata'].get('generation') == changed['metadata'].get('generation'),
                    )
                )
            same('%s %s=%s' % (kind, '.'.join(where), value), *seen)


def check_the_rest(servers):
    deployments = '/apis/apps/v1/namespaces/default/deployments'
    both(
        servers,
        'POST',
        deployments,
        {'metadata': {'name': 'scaled'}, 'spec': dict(SET, replicas=3)},
        show=lambda document: document['spec']['replicas'],
    )
    both(
        servers,
        'PUT',
        deployments + '/scaled/scale',
        {'metadata': {'name': 'scaled'}, 'spec': {}},
        show=lambda document: document['spec'].get('replicas', 0),
    )
    both(servers, 'GET', deployments + '/scaled', show=lambda document: document['spec']['replicas'])
    both(
        servers,
        'POST',
        '/apis/coordination.k8s.io/v1/namespaces/default/leases',
        {'metadata': {'name': 'lock'}},
    )
    both(
        servers,
        'PUT',
        '/apis/coordination.k8s.io/v1/namespaces/default/leases/lock',
        {'metadata': {'name': 'lock'}},
    )
    for precondition in {'uid': ''}, {'resourceVersion': ''}:
        answers = [
            server.ask('DELETE', deployments + '/scaled', {'preconditions': precondition})
            for server in servers
        ]
        same('empty precondition', *(code for code, _ in answers))


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def tail(path):
    with open(path) as log:
        return log.read()[-2000:]


def wait_line(path, child, pattern):
    def find():
        with open(path) as log:
            return re.search(pattern, log.read())

    found = until(find, child, path)
    if not found:
        sys.exit('%s: no line like %s: %s' % (path, pattern, tail(path)))
    return found.group(1)


def wait_ready(path, child, server):
    def is_ready():
        try:
            return (
                server.ask('GET', '/readyz')[1].get('text') == 'ok'
                and server.ask('GET', '/api/v1/namespaces/default')[0] == 200
            )
        except (OSError, http.client.HTTPException):
            return False

    if not until(is_ready, child, again=0.1):
        sys.exit('kube-apiserver is not ready: %s' % tail(path))


def run(folder, children):
    def start(name, *command):
        with open(folder + '/' + name, 'w') as log:
            children.append(
                subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, start_new_session=True)
            )
        return children[-1]

    etcd = start(
        'etcd.log',
        vedette,
        'etcd',
        '--data-dir',
        folder + '/data',
        '--listen',
        '127.0.0.1:0',
        '--http-listen',
        '127.0.0.1:0',
    )
    serve = start('serve.log', vedette, 'serve', '--memory', '--listen', '127.0.0.1:0')
    subprocess.run(
        ['openssl', 'genrsa', '-out', folder + '/key', '2048'], check=True, stderr=subprocess.DEVNULL
    )
    with open(folder + '/tokens', 'w') as tokens:
        tokens.write('test-token,peers,1,system:masters\n')
    port = free_port()
    api = start(
        'kube.log',
        kube,
        '--etcd-servers=http://' + wait_line(folder + '/etcd.log', etcd, 'ready etcd ([^ \n]+)'),
        '--bind-address=127.0.0.1',
        '--secure-port=%d' % port,
        '--cert-dir=' + folder + '/certs',
        '--service-account-issuer=https://kubernetes.default.svc',
        '--service-account-key-file=' + folder + '/key',
        '--service-account-signing-key-file=' + folder + '/key',
        '--service-cluster-ip-range=10.96.0.0/16',
        '--authorization-mode=AlwaysAllow',
        '--token-auth-file=' + folder + '/tokens',
        '--disable-admission-plugins=ServiceAccount',
    )
    servers = Server(port, True), Server(
        int(wait_line(folder + '/serve.log', serve, r'ready http://127.0.0.1:(\d+)')), False
    )
    wait_ready(folder + '/kube.log', api, servers[0])
    for check in check_names, check_config_data, check_silence, check_the_rest:
        check(servers)


with tempfile.TemporaryDirectory() as scratch:
    processes = []
    try:
        run(scratch, processes)
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
print('kinds_kube.py: %d answers compared, %d differ' % (checks, failures))
sys.exit(1 if failures else 0)
