#!/usr/bin/env python3
"""A client as in a pod, on a real kube-apiserver with RBAC: the folder of the service account, with tokens that the
server made, and KUBERNETES_SERVICE_HOST and _PORT; no kubeconfig.

Usage: kube_pod.py PEERS-BUILD-DIR WITNESS
The folder has a fixed path, so the client runs in a mount namespace with a /run of its own. Exit 77 if that is not
allowed here.

Checks: the client finds server, CA, namespace and token; it may do what the role of docs/KUBE.md says and nothing
else; a token that was revoked is replaced by the one in the folder; informers go on after a restart of the server.
"""
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from kube_changes import POD_SPEC, Failure, check, report  # noqa: E402
from kube_server import KubeServer, skip, until, write  # noqa: E402
from kube_witnesses import Witness  # noqa: E402

ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'
# argv: the folder outside, the place inside, the program. The folder's links are as those of a kubelet.
ENTER = 'outside=$1 inside=$2; shift 2; exec 3<"$outside" && mount -t tmpfs none /run && mkdir -p "$inside" && mount --bind /proc/self/fd/3 "$inside" && exec "$@" 3<&-'
RBAC = '/apis/rbac.authorization.k8s.io/v1/'


def namespace_command(*command):
    return ['unshare', *([] if os.geteuid() == 0 else ['--map-root-user']), '--mount', *command]


def create(server, path, body):
    code, document = server.api.ask('POST', path, body)
    check(code == 201, 'POST %s: %s %s', path, code, document)
    return document


class Account:
    """The folder of a service account, as a kubelet projects it: ..data is a link to the current files."""

    def __init__(self, server, folder):
        self.server, self.folder, self.number = server, folder, 0
        os.mkdir(folder)
        create(server, '/api/v1/namespaces/default/serviceaccounts', {'metadata': {'name': 'pods'}})
        create(server, RBAC + 'clusterroles', {'metadata': {'name': 'pods-reader'}, 'rules': [{'apiGroups': [''], 'resources': ['pods'], 'verbs': ['list', 'watch']}]})
        create(server, RBAC + 'clusterrolebindings', {'metadata': {'name': 'pods-reader'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': 'pods-reader'},
                                                      'subjects': [{'kind': 'ServiceAccount', 'name': 'pods', 'namespace': 'default'}]})

    def new_token(self):
        """A token that becomes invalid when the Secret of the same number is deleted."""
        self.number += 1
        secret = create(self.server, '/api/v1/namespaces/default/secrets', {'metadata': {'name': 'bound-%d' % self.number}})
        bound = {'apiVersion': 'v1', 'kind': 'Secret', 'name': secret['metadata']['name'], 'uid': secret['metadata']['uid']}
        body = {'apiVersion': 'authentication.k8s.io/v1', 'kind': 'TokenRequest', 'spec': {'expirationSeconds': 3600, 'boundObjectRef': bound}}
        return create(self.server, '/api/v1/namespaces/default/serviceaccounts/pods/token', body)['status']['token']

    def project(self, token):
        files = '..%d' % self.number
        os.mkdir(os.path.join(self.folder, files))
        with open(self.server.certificates.ca) as file:
            ca = file.read()
        for name, text in ('token', token), ('ca.crt', ca), ('namespace', 'default'):
            write(os.path.join(self.folder, files, name), text)
            if self.number == 1:
                os.symlink('..data/' + name, os.path.join(self.folder, name))
        os.symlink(files, os.path.join(self.folder, '..new'))
        os.rename(os.path.join(self.folder, '..new'), os.path.join(self.folder, '..data'))

    def revoke(self, token):
        """Revokes the first token. The server keeps decisions for some seconds."""
        code, document = self.server.api.ask('DELETE', '/api/v1/namespaces/default/secrets/bound-1')
        check(code == 200, 'DELETE: %s %s', code, document)
        api = type(self.server.api)('127.0.0.1', self.server.port, self.server.tls, token)
        check(until(lambda: api.ask('GET', '/api/v1/pods')[0] == 401, again=0.2), 'the token is still valid')


class Pod:
    def __init__(self, server, account, program, log):
        self.server = server
        home = os.path.dirname(log)
        environment = {'PATH': os.environ['PATH'], 'HOME': home, 'KUBERNETES_SERVICE_HOST': '127.0.0.1', 'KUBERNETES_SERVICE_PORT': str(server.port)}
        environment.update({name: value for name, value in os.environ.items() if name.endswith('SAN_OPTIONS')})
        self.witness = Witness(namespace_command('env', '-i', *['%s=%s' % pair for pair in environment.items()], 'sh', '-c', ENTER, 'sh', account.folder, ACCOUNT_FOLDER, program), log)
        self.witness.wait('start', lambda: self.witness.answers['ready'])

    def request(self, path):
        return self.witness.ask('request GET ' + path, 'R')

    def expect(self, informer, number):
        create(self.server, '/api/v1/namespaces/default/pods', {'metadata': {'name': 'pod-%d' % number}, 'spec': POD_SPEC})
        self.witness.wait('pod-%d arrives' % number, lambda: 'default/pod-%d' % number in informer.model)


def run(server, program, folder):
    account = Account(server, folder + '/account')
    first = account.new_token()
    account.project(first)
    pod = Pod(server, account, program, folder + '/witness.log')
    try:
        check(pod.witness.answers['ready'][0] == [server.url, 'default'], 'ready: %s', pod.witness.answers['ready'])
        answer = pod.request('/api/v1/pods')
        check(answer[:2] == ['ok', '200'], 'pods: %s', answer)
        answer = pod.request('/api/v1/configmaps')
        check(answer[:2] == ['forbidden', '403'] and 'system:serviceaccount:default:pods' in ' '.join(answer), 'configmaps: %s', answer)
        report('the client has the identity of the service account')
        informer = pod.witness.open('v1', 'pods', '')
        pod.witness.wait('initial state', lambda: informer.is_synced)
        pod.expect(informer, 1)
        account.project(account.new_token())
        account.revoke(first)
        answer = pod.request('/api/v1/pods')
        check(answer[:2] == ['ok', '200'], 'pods, with the next token: %s', answer)
        pod.expect(informer, 2)
        report('the revoked token was replaced')
        server.kill()
        server.start()
        pod.expect(informer, 3)
        check(not informer.problems, 'informer: %s', informer.problems)
        report('the informer went on after a restart of the server')
        pod.witness.quit()
    except Failure:
        print('witness: %s' % pod.witness.tail(), file=sys.stderr)
        raise
    finally:
        if pod.witness.process.poll() is None:
            pod.witness.process.kill()


def main():
    peers, program = (os.path.abspath(path) for path in sys.argv[1:3])
    tried = subprocess.run(namespace_command('mount', '-t', 'tmpfs', 'none', '/run'), capture_output=True, text=True, check=False)
    if tried.returncode:
        skip('no mount namespace is allowed here: ' + tried.stderr.strip())
    with tempfile.TemporaryDirectory(prefix='kube-') as folder:
        server = KubeServer(folder, peers, authorization='RBAC')
        try:
            run(server, program, folder)
        except Failure as failure:
            sys.exit('FAILED: %s' % failure)
        finally:
            server.stop()


if __name__ == '__main__':
    main()
