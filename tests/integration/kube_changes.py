"""Objects of many kinds, and threads that create, change and delete them on a server, for tests of its clients."""
import collections
import http.client
import random
import threading
import time

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


def is_ours(key):
    """kube-apiserver renews leases in kube-system all the time."""
    return not key.startswith('kube-')


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
