#!/usr/bin/env python3
"""Our leader election and client-go's compete for one Lease of a real kube-apiserver.

Usage: kube_leaders.py PEERS-BUILD-DIR EXAMPLE-LEADER-ELECTION

Each takes the Lease from the other: at once when the other was ended, and after the lease duration when it was
killed. While one leads, the other does not.
"""
# rules: K-201, K-202, K-204, K-207
import os
import signal
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from kube_server import KubeServer, build_peers, until  # noqa: E402

LEASE = '/apis/coordination.k8s.io/v1/namespaces/default/leases/shared'


class Candidate:
    def __init__(self, folder, name, command, environment):
        self.name, self.path = name, os.path.join(folder, '%s-%d.log' % (name, time.monotonic_ns()))
        with open(self.path, 'w') as log:
            self.child = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)

    def lines(self):
        with open(self.path) as log:
            return log.read().splitlines()

    def wait(self, line):
        if not until(lambda: line in self.lines(), self.child, self.path):
            sys.exit('%s: no line "%s": %s' % (self.name, line, self.lines()))

    def end(self, number):
        self.child.send_signal(number)
        status = self.child.wait()
        if number == signal.SIGTERM and status:
            sys.exit('%s ended with %d: %s' % (self.name, status, self.lines()))


def check(server, holder, transitions):
    code, lease = server.api.ask('GET', LEASE)
    spec = lease.get('spec', {})
    if code != 200 or spec.get('holderIdentity', '') != holder or spec.get('leaseTransitions', 0) != transitions:
        sys.exit('the Lease is %d %s, not held by %s after %d transitions' % (code, spec, holder, transitions))


def hand_over(server, leader, start, number, transitions):
    """Starts another candidate, ends the leader, and returns the other one when it leads."""
    other = start()
    other.wait('the leader is ' + leader.name)
    if other.name + ' leads' in other.lines():
        sys.exit('two leaders')
    begun = time.monotonic()
    leader.end(number)
    other.wait(other.name + ' leads')
    waited = time.monotonic() - begun
    # A leader that is killed has renewed its Lease at most the retry period ago.
    if number == signal.SIGKILL and waited < 10:
        sys.exit('%s took a Lease that had not expired, after %.1f s' % (other.name, waited))
    check(server, other.name, transitions)
    return other


def main():
    peers, example = sys.argv[1:3]
    program = os.path.join(os.path.abspath(peers), 'peers')
    build_peers(os.path.join(here, '..', 'peers'), program)
    with tempfile.TemporaryDirectory() as folder:
        server = KubeServer(folder, peers)
        try:
            server.start()
            environment = dict(os.environ, KUBECONFIG=server.kubeconfig(os.path.join(folder, 'config')))

            def ours():
                return Candidate(folder, 'ours', [os.path.abspath(example), 'default', 'shared', 'ours'], environment)

            def theirs():
                return Candidate(folder, 'theirs', [program, 'kube-leader', '--lease', 'shared', '--identity', 'theirs'], environment)
            leader = ours()
            leader.wait('ours leads')
            check(server, 'ours', 0)
            for transitions, (start, number) in enumerate(((theirs, signal.SIGTERM), (ours, signal.SIGTERM), (theirs, signal.SIGKILL), (ours, signal.SIGKILL))):
                # A release is a transition of its own for neither of them: the next holder counts it.
                leader = hand_over(server, leader, start, number, transitions + 1)
            leader.end(signal.SIGTERM)
            check(server, '', 4)
        finally:
            server.stop()


main()
