#!/usr/bin/env python3
"""A real kube-apiserver on a real etcd, for tests; or `vedette serve` in its place.

Usage: kube_server.py PEERS-BUILD-DIR [--no-watch-cache] -- COMMAND [ARG...]
Runs COMMAND with a kube-apiserver: KUBECONFIG (its context is the token), KUBE_SERVER, KUBE_CA, KUBE_TOKEN,
KUBE_DIR (contexts token, cert, exec, file of KUBECONFIG). Exits as COMMAND did; 77 with the reason if a
program is missing.

All processes are children in groups of their own; stop() ends them. etcd listens without TLS on loopback.
"""
import base64
import contextlib
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
import threading

here = os.path.dirname(os.path.abspath(__file__))
tests = os.path.join(here, '..')
sys.path.insert(0, os.path.join(tests, 'support'))
from waiting import GUARD, until  # noqa: E402

TOKENS = ['token-%d' % i for i in range(64)]  # all are accepted; the first is the default
# Resources whose folder in etcd has another name, with the group's folder for custom resources left out.
FOLDERS = {'services': 'services/specs', 'endpoints': 'services/endpoints', 'nodes': 'minions', 'replicationcontrollers': 'controllers', 'ingresses': 'ingress'}


def skip(reason):
    print('skipped: ' + reason, file=sys.stderr)
    sys.exit(77)


def build_peers(source, program, *package):
    """Builds a Go program if needed; exits with 77 if that is not possible here."""
    status = subprocess.call([os.path.join(tests, 'integration', 'build-peers.sh'), source, program, *package])
    if status:
        sys.exit(status)


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def write(path, text, mode=0o600):
    """Replaces a file in one step, as a kubelet replaces a projected token."""
    with open(path + '.new', 'w') as file:
        file.write(text)
    os.chmod(path + '.new', mode)
    os.rename(path + '.new', path)
    return path


def tail(path):
    with open(path, errors='replace') as log:
        return log.read()[-3000:]


def openssl(*arguments):
    subprocess.run(['openssl', *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Certificates:
    """A CA, a certificate for 127.0.0.1 and a client certificate (system:masters)."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.ca, self.ca_key = self.path('ca.crt'), self.path('ca.key')
        openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30', '-subj', '/CN=test-ca', '-keyout', self.ca_key, '-out', self.ca)
        self.server, self.server_key = self.sign('server', '/CN=kube-apiserver', 'subjectAltName=IP:127.0.0.1,DNS:localhost')
        self.client, self.client_key = self.sign('client', '/O=system:masters/CN=tester', 'extendedKeyUsage=clientAuth')

    def path(self, name):
        return os.path.join(self.folder, name)

    def sign(self, name, subject, extension):
        key, request, result = self.path(name + '.key'), self.path(name + '.csr'), self.path(name + '.crt')
        openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', subject, '-keyout', key, '-out', request)
        openssl('x509', '-req', '-in', request, '-CA', self.ca, '-CAkey', self.ca_key, '-CAcreateserial', '-days', '30', '-out', result,
                '-extfile', write(self.path(name + '.ext'), extension + '\n'))
        return result, key


def kubeconfig(path, server, ca, users, current):
    """Writes a kubeconfig with one context for each user; users maps names to user entries."""
    def cluster(url):
        return {'server': url, **({'certificate-authority': ca} if ca else {})}
    write(path, json.dumps({'apiVersion': 'v1', 'kind': 'Config', 'current-context': current, 'clusters': [{'name': 'c', 'cluster': cluster(server)}],
                            'users': [{'name': name, 'user': user} for name, user in users.items()],
                            'contexts': [{'name': name, 'context': {'cluster': 'c', 'user': name}} for name in users]}))
    return path


class Api:
    """Requests to a server, over one connection per thread that is opened again after errors."""

    def __init__(self, host, port, tls, token=None):
        self.address, self.tls, self.token, self.local = (host, port), tls, token, threading.local()

    def connection(self):
        connection = getattr(self.local, 'connection', None)
        if connection is None:
            kind = http.client.HTTPSConnection if self.tls else http.client.HTTPConnection
            connection = kind(*self.address, timeout=60, **({'context': self.tls} if self.tls else {}))
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.local.connection = connection
        return connection

    def drop(self):
        with contextlib.suppress(AttributeError, OSError):
            self.local.connection.close()
        self.local.connection = None

    def ask(self, method, path, body=None, content='application/json'):
        """Returns (code, document); document is text if it is no JSON object. OSError or HTTPException if the
        connection is lost: the request may have been applied."""
        headers = {'Content-Type': content, 'Accept': 'application/json', **({'Authorization': 'Bearer ' + self.token} if self.token else {})}
        # A server may close a kept connection while it is idle; a read may be repeated.
        for is_last in (method != 'GET', True):
            try:
                connection = self.connection()
                connection.request(method, path, json.dumps(body) if body is not None else None, headers)
                response = connection.getresponse()
                data = response.read()
                break
            except (OSError, http.client.HTTPException):
                self.drop()
                if is_last:
                    raise
        return response.status, json.loads(data) if data[:1] == b'{' else data.decode()


class Processes:
    def __init__(self, folder):
        self.folder, self.children = folder, []

    def start(self, name, *command, mode='a', **options):
        path = os.path.join(self.folder, name + '.log')
        with open(path, mode) as log:
            child = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, start_new_session=True, **options)
        self.children.append(child)
        return child

    def kill(self, child):
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        self.children.remove(child)

    def kill_all(self):
        for child in list(self.children):
            self.kill(child)

    def wait_line(self, name, child, pattern):
        path = os.path.join(self.folder, name + '.log')

        def find():
            with open(path, errors='replace') as log:
                return re.search(pattern, log.read())
        found = until(find, child, path)
        if not found:
            sys.exit('%s: no line like %s: %s' % (path, pattern, tail(path)))
        return found.group(1)


class KubeServer:
    """etcd and kube-apiserver. The port stays the same over restarts."""

    def __init__(self, folder, peers, watch_cache=True, flags=(), authorization='AlwaysAllow'):
        """peers: folder with the programs etcd, etcdctl and kube-apiserver."""
        self.folder, self.watch_cache, self.flags, self.authorization = folder, watch_cache, flags, authorization
        self.programs = {name: os.path.join(os.path.abspath(peers), name) for name in ('etcd', 'etcdctl', 'kube-apiserver')}
        if not shutil.which('openssl'):
            skip('there is no openssl')
        for name in 'etcd', 'etcdctl':
            build_peers(os.path.join(tests, 'peers', 'cmd', 'etcd'), self.programs[name], name)
        if not os.access(self.programs['kube-apiserver'], os.X_OK):
            skip('there is no kube-apiserver (docs/HACKING.md says how one is built)')
        self.processes = Processes(folder)
        self.certificates = Certificates(os.path.join(folder, 'certs'))
        openssl('genrsa', '-out', folder + '/sa.key', '2048')
        write(folder + '/tokens', ''.join('%s,tester,1,system:masters\n' % token for token in TOKENS))
        self.port, self.client_port, self.peer_port = free_port(), free_port(), free_port()
        self.url = 'https://127.0.0.1:%d' % self.port
        self.etcd_url = 'http://127.0.0.1:%d' % self.client_port
        self.tls = ssl.create_default_context(cafile=self.certificates.ca)
        self.api = Api('127.0.0.1', self.port, self.tls, TOKENS[0])
        self.start_etcd()
        self.start()

    def start_etcd(self):
        peer = 'http://127.0.0.1:%d' % self.peer_port
        self.etcd = self.processes.start('etcd', self.programs['etcd'], '--data-dir', self.folder + '/etcd', '--listen-client-urls', self.etcd_url, '--advertise-client-urls', self.etcd_url,
                                         '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', 'default=' + peer, '--unsafe-no-fsync', '--log-level', 'warn')

    def start(self):
        key = self.folder + '/sa.key'
        self.process = self.processes.start(
            'kube', self.programs['kube-apiserver'], '--etcd-servers=' + self.etcd_url, '--bind-address=127.0.0.1', '--secure-port=%d' % self.port,
            '--tls-cert-file=' + self.certificates.server, '--tls-private-key-file=' + self.certificates.server_key, '--client-ca-file=' + self.certificates.ca,
            '--service-account-issuer=https://kubernetes.default.svc', '--service-account-key-file=' + key, '--service-account-signing-key-file=' + key,
            '--service-cluster-ip-range=10.96.0.0/16', '--authorization-mode=' + self.authorization, '--token-auth-file=' + self.folder + '/tokens',
            '--disable-admission-plugins=ServiceAccount', '--etcd-compaction-interval=0', '--watch-cache=' + ('true' if self.watch_cache else 'false'), *self.flags)

        def is_ready():
            try:
                return self.api.ask('GET', '/readyz') == (200, 'ok') and self.api.ask('GET', '/api/v1/namespaces/default')[0] == 200
            except (OSError, http.client.HTTPException):
                return False
        if not until(is_ready, self.process, again=0.1, guard=GUARD):
            sys.exit('kube-apiserver is not ready: ' + tail(self.folder + '/kube.log'))

    def kill(self):
        """kill -9"""
        self.processes.kill(self.process)

    def etcdctl(self, *arguments):
        return subprocess.run([self.programs['etcdctl'], '--endpoints', self.etcd_url, *arguments], check=True, capture_output=True, text=True).stdout

    def revision(self):
        return json.loads(self.etcdctl('get', '/x', '-w', 'json'))['header']['revision']

    def compact(self, revision):
        self.etcdctl('compact', str(revision))

    def kubeconfig(self, path, url=None, ca=None, token_file=None):
        """Contexts: token, cert, and with token_file also exec and file, which read that file."""
        users = {'token': {'token': TOKENS[0]}, 'cert': {'client-certificate': self.certificates.client, 'client-key': self.certificates.client_key}}
        if token_file:
            users['file'] = {'tokenFile': token_file}
            plugin = write(path + '.plugin', '#!/bin/sh\nprintf \'{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}\' "$(cat \''
                           + token_file + '\')"\n', 0o700)
            users['exec'] = {'exec': {'apiVersion': 'client.authentication.k8s.io/v1', 'command': plugin, 'interactiveMode': 'Never'}}
        return kubeconfig(path, url or self.url, ca or self.certificates.ca, users, 'token')

    def stop(self):
        self.processes.kill_all()

    def log(self):
        return tail(self.folder + '/kube.log')


class Truth:
    """Every change of the objects, from etcd itself: `etcdctl watch` from a revision on. after the watch has
    been started, no compaction below its position may be made without wait(revision)."""

    def __init__(self, server, revision):
        self.server = server
        self.child = subprocess.Popen([server.programs['etcdctl'], '--endpoints', server.etcd_url, 'watch', '/registry/', '--prefix', '--rev', str(revision), '-w', 'json'],
                                      stdout=subprocess.PIPE, start_new_session=True)
        server.processes.children.append(self.child)
        self.changes = {}  # key: [(revision, is_delete)]
        self.revision = revision - 1
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.child.stdout:
            document = json.loads(line)
            with self.lock:
                for event in document.get('Events') or []:
                    kv = event['kv']
                    self.changes.setdefault(base64.b64decode(kv['key']).decode(), []).append((kv['mod_revision'], event.get('type', 0) in (1, 'DELETE')))
                    self.revision = max(self.revision, kv['mod_revision'])

    def wait(self, revision):
        if not until(lambda: self.revision >= revision, self.child, again=0.05):
            sys.exit('etcdctl watch stopped at %d, before %d' % (self.revision, revision))

    def of(self, group, plural):
        """{namespace/name: changes} of a resource."""
        folder = '/registry/' + (group + '/' if group and '.' in group and not group.endswith('.k8s.io') else '') + FOLDERS.get(plural, plural) + '/'
        with self.lock:
            return {key[len(folder):]: list(changes) for key, changes in self.changes.items() if key.startswith(folder)}


class VedetteServer:
    """`vedette serve --data-dir`, with the parts of KubeServer that tests of both use."""

    def __init__(self, folder, vedette):
        self.folder, self.vedette, self.processes = folder, os.path.abspath(vedette), Processes(folder)
        self.port, self.url, self.certificates = free_port(), None, None
        self.start()

    def start(self):
        self.process = self.processes.start('serve', self.vedette, 'serve', '--data-dir', self.folder + '/data', '--listen', '127.0.0.1:%d' % self.port, mode='w')
        self.url = self.processes.wait_line('serve', self.process, r'ready (http://[0-9.:]+)')
        self.api = Api('127.0.0.1', self.port, None)

    def kill(self):
        self.processes.kill(self.process)

    def kubeconfig(self, path, url=None, ca=None, token_file=None):
        return kubeconfig(path, url or self.url, ca, {'token': {}}, 'token')

    def stop(self):
        self.processes.kill_all()

    def log(self):
        return tail(self.folder + '/serve.log')


def main():
    split = sys.argv.index('--')
    options, command = sys.argv[1:split], sys.argv[split + 1:]
    with tempfile.TemporaryDirectory(prefix='kube-') as folder:
        server = KubeServer(folder, options[0], '--no-watch-cache' not in options)
        try:
            token_file = write(folder + '/token', TOKENS[0])
            path = server.kubeconfig(folder + '/kubeconfig', token_file=token_file)
            status = subprocess.call(command, env=dict(os.environ, KUBECONFIG=path, KUBE_SERVER=server.url, KUBE_CA=server.certificates.ca, KUBE_TOKEN=TOKENS[0], KUBE_DIR=folder))
        finally:
            server.stop()
    sys.exit(status)


if __name__ == '__main__':
    main()
