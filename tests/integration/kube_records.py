#!/usr/bin/env python3
"""Events, updates and apply of our client on a real kube-apiserver: the objects that the server has afterwards.

Usage: kube_records.py PEERS-BUILD-DIR EXAMPLE-KUBE-EVENTS
"""
# rules: K-301, K-303, K-310, K-311, K-401
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from kube_server import KubeServer  # noqa: E402


def get(server, path):
    code, document = server.api.ask('GET', path)
    if code != 200:
        sys.exit('GET %s: %d %s' % (path, code, document))
    return document


def main():
    peers, program = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        server = KubeServer(folder, peers)
        try:
            server.start()
            environment = dict(os.environ, KUBECONFIG=server.kubeconfig(os.path.join(folder, 'config')))
            status = subprocess.call([os.path.abspath(program)], env=environment)
            if status:
                sys.exit('the example ended with %d' % status)
            data = get(server, '/api/v1/namespaces/default/configmaps/cfg')['data']
            events = [event for event in get(server, '/api/v1/namespaces/default/events')['items'] if event['source'].get('component') == 'records']
        finally:
            server.stop()
    if data != {'a': 'b', **{'n%d' % i: 'x' for i in range(8)}}:
        sys.exit('lost updates: %s' % data)
    found = sorted((event['reason'], event['message'], event['count'], event['type'], event['involvedObject']['kind']) for event in events)
    expected = [('Different', 'message %d' % i, 1, 'Warning', 'ConfigMap') for i in range(9)]
    expected += [('Different', '(combined from similar events): message 14', 6, 'Warning', 'ConfigMap'), ('Same', 'the same <message>', 3, 'Normal', 'ConfigMap'),
                 ('Odd', 'a name that is no name of an Event', 1, 'Warning', 'Node')]
    if found != sorted(expected):
        sys.exit('events: %s' % found)


main()
