"""What informers reported, compared with the server's lists and with the changes in etcd."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kube_changes import Failure, check, group_of, is_ours  # noqa: E402


def key_of(item):
    return item['metadata'].get('namespace', '') + '/' + item['metadata']['name']


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
