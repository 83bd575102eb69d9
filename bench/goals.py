"""The rows of docs/PERFORMANCE.md: case and field of each figure, and its goal.

A goal holds for the machine on which the peers were first recorded; `recorded` is the peer's figure there. So
a goal is also a ratio to the peer. If both ran in the same run on a slower or loaded machine, the ratio
counts. A row without such a peer may have a yardstick: the machine's own cost of the step that cannot be
avoided (bench_limits), and that cost on the first machine."""

sections = []


def section(name, text):
    sections.append(dict(name=name, text=text, rows=[]))


def row(what, bench, case, unit, goal=None, *, limit=None, recorded=None, field="value", at_least=False, ratio=None, peer="apiserver", peer_case=None, peer_field=None,
        yard=None, times=1.0, over=None, note=""):
    """ratio: the goal is only this ratio to the peer. yard: (case of a limit, its recorded figure). times:
    factor for the figures of both sides. over: the case by which the figure is divided."""
    sections[-1]["rows"].append(dict(what=what, bench=bench, case=case, unit=unit, goal=goal, limit=limit, recorded=recorded, field=field, at_least=at_least, ratio=ratio,
                                     peer=peer, peer_case=peer_case or case, peer_field=peer_field or field, yard=yard, times=times, over=over, note=note))


def all_rows():
    return [entry for part in sections for entry in part["rows"]]


sync = ("limit-sync", 177)
write_1k = ("limit-write:1024", 2.35)

section("In process, beside k8s.io/apiserver's Cacher", "One event to W watchers, 8 events at a time; including the ingest, shared by W. The peer gets ready-made objects, vedette decodes each.")
for watchers, recorded in ((100, 598), (1000, 654), (10000, 824)):
    row("delivery, all of {:,} watchers match, on the dispatching loop".format(watchers), "cacher", "delivery:%d" % watchers, "ns CPU", 25, limit=16, recorded=recorded)
for watchers, recorded in ((100, 598), (1000, 654), (10000, 824)):
    row("the same, consumer on another thread, {:,} watchers".format(watchers), "cacher", "delivery-consumer:%d" % watchers, "ns CPU", 60, limit=40, recorded=recorded,
        peer_case="delivery:%d" % watchers)
row("ingest of one event: decode, store, index, history, dispatch; 64 together, 100,000 objects", "cacher", "ingest:64", "us CPU", 1.5, limit=1.0, recorded=13.3)
for by, recorded in (("trigger", 18.4), ("namespace", 19.8), ("field", 6640), ("label", 6140)):
    row("event that one of 10,000 watchers matches, by %s" % by, "cacher", "one-of:%s:10000" % by, "us CPU", 2, recorded=recorded)
row("idle watcher, selectors shared with others", "cacher", "idle", "bytes", 256, recorded=4600)
row("idle watcher with a selector of its own", "cacher", "idle:different", "bytes", 256, recorded=4600, peer_case="idle")
for size, recorded in ((1024, 4720), (4096, 14400)):
    row("private memory of store and cache, per object of {:,} bytes, 100,000 objects".format(size), "cacher", "object:%d" % size, "bytes", size * 1.3, limit=size, recorded=recorded)
row("LIST of 100,000 objects of 1 KB", "cacher", "list:all", "ms CPU", 2, recorded=121)
row("LIST of 1 % by label, indexed", "cacher", "list:label", "ms CPU", 1, recorded=60)
row("LIST of 1 % by label, scanned", "cacher", "list:scanned", "ms CPU", 10, recorded=60, peer_case="list:label")
row("LIST of one namespace of 100", "cacher", "list:namespace", "ms CPU", ratio=1.0)
row("GET by name", "cacher", "get", "us CPU", 0.3, recorded=3.4)
row("initial sync of 100,000 from the embedded store, until ready", "cacher", "sync:1024", "ms", 400, field="wall_ms", recorded=2800, peer_case="sync-etcd", peer_field="ready_ms")
row("p99 of put to event beside 1,000 stalled watchers, over that without", "cacher", "stalled", "x", 1.1)

section("`vedette serve` over HTTP, beside upstream's HTTP handlers over its Cacher", "The peer has no authentication, no admission and no fair queuing, and gets ready-made objects. CPU of the server's process.")
row("delivery to 1,000 connections, event by event", "http", "http-delivery:1000:1", "us CPU", 2.6, limit=("limit-write:1024", 1), recorded=7.0)
row("delivery to 1,000 connections, 8 together", "http", "http-delivery:1000:8", "us CPU", 0.5, limit=("limit-write:8192", 0.125), recorded=2.4)
row("delivery to 10,000 connections, event by event", "http", "http-delivery:10000:1", "us CPU", ratio=1.0, limit=("limit-write:1024", 1))
row("idle watch, of 1,000", "http", "http-idle:1000", "bytes", 2048, recorded=43000)
row("idle watch, of 10,000", "http", "http-idle:10000", "bytes", 2048, recorded=43000)
row("LIST of 100,000 objects of 1 KB", "http", "http-list:all", "ms CPU", 60, recorded=531)
row("64 such lists at once, memory above rest (the peer: 8)", "http", "http-lists", "MiB", 64)
row("p99 of PUT to event beside 1,000 stalled watches, over that without", "http", "http-stalled", "x", 1.1)
row("CPU of a PUT beside 1,000 stalled watches, over that without", "http", "http-stalled", "x", 1.1, field="cpu_ratio")

section("Durable, and from an etcd", "The peer stores in etcd 3.7, vedette in its own store, both with fsync; the times of both end when a client has read the event or the list.")
row("initial sync of 100,000 from etcd, the server's side", "outside", "sync-etcd", "us CPU each", 4, limit=0.4, recorded=37, field="cpu_us")
row("start with 100,000 objects, until ready (the peer: on etcd)", "http", "http-start", "ms", 300, recorded=2800, peer_case="sync-etcd", peer_field="ready_ms")
row("of 100 events since before a kill -9, received by a resumed watch (-1: refused)", "outside", "resume", "", 100, field="events", at_least=True)
row("PUT sent to event read, p50", "outside", "http-latency", "us", 300, recorded=824, limit=("limit-sync", 1))
row("put to event in process, durable, p50", "cacher", "latency:event", "us", 300, yard=sync, limit=("limit-sync", 1))
row("of that: the store, until the put is durable, p50", "cacher", "latency:store", "us", yard=sync)
row("of that: from there to the watcher of the cacher, p50", "cacher", "latency:cacher", "us")
row("put to event in process, durable, p99", "cacher", "latency:event", "us", field="p99_us")
row("put to event in process, durable, p99.9", "cacher", "latency:event", "us", field="p999_us")
row("PUT sent to event read, p99.9", "outside", "http-latency", "us", field="p999_us")

section("The whole server, from outside", "Goals and recorded figures are for a complete kube-apiserver 1.36 over TLS on etcd, with 30,000 objects of 1.4 KB; it is too heavy to build here. The peer of these "
        "runs is upstream's handlers, registry and Cacher alone, so its figures mean less than the recorded ones. Lists of 100,000 x 1 KB are scaled to 43 MB.")
row("create, 64 connections, durable", "outside", "http-create", "us CPU", 60, recorded=None, note="kube-apiserver: 1,226 us and 174 us in etcd")
row("GET by name, most recent", "http", "http-get:latest", "us CPU", 15, yard=write_1k, note="kube-apiserver: 549 us")
row("GET by name, resourceVersion=0", "http", "http-get:cache", "us CPU", 15, yard=write_1k, note="kube-apiserver: 237 us")
row("watch event to 1,000 connections, one by one", "http", "http-delivery:1000:1", "us CPU", 2.6, yard=write_1k, note="kube-apiserver: 11.3 us")
row("watch event to 1,000 connections, 8 together", "http", "http-delivery:1000:8", "us CPU", 0.6, yard=write_1k, note="kube-apiserver: 5.8 us")
row("update that one of 1,000 selector watchers matches, the update included", "http", "http-one-of", "us CPU", 80, yard=write_1k, note="kube-apiserver: 3,800 us")
row("LIST of all, 43 MB", "http", "http-list:all", "ms CPU", 30, times=0.41, note="kube-apiserver: 1.8 s")
row("LIST of 1 % of 30,000 by label, repeated", "http", "http-list:label", "ms CPU", 1, times=0.3, note="kube-apiserver: 32 ms")
row("all pages by 500, 43 MB", "http", "http-list:pages", "ms CPU", 60, times=0.41, note="kube-apiserver: 1.8 s")
row("full lists at once (64; the goal is for 16; the peer: 8), memory above rest", "http", "http-lists", "MiB", 32, note="kube-apiserver: 6.1 GB")
row("memory (RSS) of the server for each object of 1 KB, settled, from etcd", "outside", "sync-etcd", "bytes", 2048, field="rss_bytes", note="kube-apiserver: 22 KB")
row("memory of an idle watch, plain", "http", "http-idle:1000", "bytes", 4096)
row("memory of an idle watch, TLS", "outside", "tls-idle", "bytes", 25600, note="kube-apiserver: 65 to 74 KB")
row("put to event, one watcher, p50", "outside", "http-latency", "us", 400, yard=sync, note="kube-apiserver: 2.3 ms")
row("put to event, one watcher, p99", "outside", "http-latency", "us", 1500, field="p99_us", yard=("limit-sync.p99_us", 1000), note="kube-apiserver: 5.3 ms")
row("restart until a full list answers, 100,000 objects", "outside", "restart", "ms", 300, field="list_ms", note="kube-apiserver: 7.9 s with 30,000")
row("a watch from 100 updates before the restart: received events (-1: refused)", "outside", "resume", "", 100, field="events", at_least=True, note="kube-apiserver: 410 Expired")
row("memory (RSS) of an empty server", "outside", "rest", "MiB", 10, field="rss_mib", note="kube-apiserver: 272 MB")
row("CPU of an empty server", "outside", "rest", "%", 0.1, field="cpu_percent", note="kube-apiserver: 1 to 2 %")

section("The embedded store, 1 KB values", "In process, with fsync. There is no peer.")
for writers, goal, name in ((1, 5000, "1 blocking writer"), (64, 60000, "64 blocking writers"), (256, 150000, "256 blocking writers")):
    row("durable puts, " + name, "mvcc", "durable-put:%d" % writers, "a second", goal, at_least=True, yard=sync)
row("durable puts, 256 in flight", "mvcc", "durable-put:256-flight", "a second", 250000, at_least=True, yard=sync)
row("durable put to event of the store, p50", "mvcc", "durable-latency:put to event", "us", 300, yard=sync)
row("a watch one million revisions behind, alone", "mvcc", "catch-up:alone", "events a second", 1000000, at_least=True)
row("the same while a writer writes", "mvcc", "catch-up:writing", "events a second", 1000000, at_least=True)
row("p99 of puts beside that watch", "mvcc", "put-p99:beside", "us")
row("p99 of puts alone", "mvcc", "put-p99:alone", "us")
row("open a data directory of 1,000,000 keys", "mvcc", "open", "s", 1)

section("`vedette etcd` beside etcd 3.7, both durable, loaded by the same Go clients", "CPU is that of the server, with our own HTTP/2. Rates and latencies include the Go clients, which share the two processors.")
etcd = dict(peer="etcd")
for clients, ratio, cpu, recorded in ((1, 1.4, None, None), (8, None, None, None), (64, 1.8, 18, 72), (256, 1.8, 18, 52), (1000, None, None, None)):
    name = "put of 1 KB, {:,} client{}".format(clients, "" if clients == 1 else "s")
    row(name, "etcd-server", "put:%d" % clients, "a second", field="per_s", ratio=ratio, at_least=True, **etcd)
    row(name + ": CPU", "etcd-server", "put:%d" % clients, "us CPU", cpu, field="cpu_us", recorded=recorded, **etcd)
    row(name + ": p99", "etcd-server", "put:%d" % clients, "ms", 12 if clients == 256 else None, field="p99_us", times=0.001, recorded=44 if clients == 256 else None, **etcd)
row("5,000 puts of 1 KB a second by 256 clients: p50", "etcd-server", "steady:256", "ms", field="p50_us", times=0.001, **etcd)
row("5,000 puts of 1 KB a second by 256 clients: p99", "etcd-server", "steady:256", "ms", field="p99_us", times=0.001, **etcd)
row("5,000 puts of 1 KB a second by 256 clients: CPU", "etcd-server", "steady:256", "us CPU", field="cpu_us", **etcd)
for clients in (1, 64):
    name = "range of one key, %d client%s" % (clients, "" if clients == 1 else "s")
    row(name, "etcd-server", "range:%d" % clients, "a second", field="per_s", at_least=True, **etcd)
    row(name + ": CPU", "etcd-server", "range:%d" % clients, "us CPU", field="cpu_us", **etcd)
row("transaction of a compare and a put, 64 clients", "etcd-server", "txn:64", "a second", field="per_s", at_least=True, **etcd)
row("transaction of a compare and a put, 64 clients: CPU", "etcd-server", "txn:64", "us CPU", field="cpu_us", **etcd)
row("range of 10,000 keys of 1 KB", "etcd-server", "list", "ms", field="p50_ms", **etcd)
row("range of 10,000 keys of 1 KB: CPU", "etcd-server", "list", "ms CPU", 6, field="cpu_ms", recorded=29, **etcd)
for watchers, goal, recorded in ((1, None, None), (100, None, None), (1000, 2, 4.8), (10000, 2, 4.4)):
    name = "an event to each of {:,} watcher{}".format(watchers, "" if watchers == 1 else "s")
    row(name, "etcd-server", "watch:%d" % watchers, "a second", field="events_per_s", at_least=True, **etcd)
    row(name + ": CPU for each", "etcd-server", "watch:%d" % watchers, "us CPU", goal, field="cpu_us_per_event", recorded=recorded, **etcd)
row("100 events together to each of 1,000 watchers", "etcd-server", "piled:1000", "a second", field="events_per_s", at_least=True, **etcd)
row("100 events together to each of 1,000 watchers: CPU for each", "etcd-server", "piled:1000", "us CPU", 0.6, limit=0.5, field="cpu_us_per_event", recorded=4.8, **etcd)
row("put, 8 clients, beside 1,000 watchers that are 20 MB behind and do not read", "etcd-server", "behind:1000", "a second", field="per_s", at_least=True, **etcd)
row("puts beside watchers that are behind: p99", "etcd-server", "behind:1000", "ms", field="p99_us", times=0.001, **etcd)
row("memory for 1,000 watchers that are behind", "etcd-server", "behind:1000", "MiB", field="rss_more_kib", times=1 / 1024, **etcd)
row("memory (RSS), empty", "etcd-server", "idle", "MiB", 16, field="rss_kib", times=1 / 1024, recorded=30.6, **etcd)
row("memory with 100,000 keys of 1 KB", "etcd-server", "keys:100000:1024", "MiB", 150, field="rss_kib", times=1 / 1024, recorded=314, **etcd)
row("memory after a start with 100,000 keys of 1 KB", "etcd-server", "started:keys:100000:1024", "MiB", field="rss_kib", times=1 / 1024, **etcd)
row("a start with 100,000 keys of 1 KB, until etcdctl has an answer", "etcd-server", "start:keys:100000:1024", "ms", field="ms", **etcd)
row("memory with 1,000,000 keys of 100 bytes", "etcd-server", "keys:1000000:100", "MiB", field="rss_kib", times=1 / 1024, **etcd)
row("memory after a start with 1,000,000 keys of 100 bytes", "etcd-server", "started:keys:1000000:100", "MiB", field="rss_kib", times=1 / 1024, **etcd)
row("a start with 1,000,000 keys of 100 bytes, until etcdctl has an answer", "etcd-server", "start:keys:1000000:100", "ms", 1000, field="ms", **etcd)

section("`vedette etcd --rpc grpc` beside etcd 3.7", "The same over gRPC C core; compare with the section above.")
for clients in (64, 256):
    row("put of 1 KB, %d clients" % clients, "etcd-server-grpc", "put:%d" % clients, "a second", field="per_s", at_least=True, **etcd)
    row("put of 1 KB, %d clients: CPU" % clients, "etcd-server-grpc", "put:%d" % clients, "us CPU", field="cpu_us", **etcd)
row("range of one key, 64 clients: CPU", "etcd-server-grpc", "range:64", "us CPU", field="cpu_us", **etcd)
row("transaction of a compare and a put, 64 clients: CPU", "etcd-server-grpc", "txn:64", "us CPU", field="cpu_us", **etcd)
row("range of 10,000 keys of 1 KB: CPU", "etcd-server-grpc", "list", "ms CPU", field="cpu_ms", **etcd)
for watchers in (100, 1000):
    row("an event to each of {:,} watchers: CPU for each".format(watchers), "etcd-server-grpc", "watch:%d" % watchers, "us CPU", field="cpu_us_per_event", **etcd)

section("The etcd client, on a real etcd 3.7, beside etcd's own Go client", "CPU of the client's process.")
client = dict(peer="goclient")
row("idle watch of 10,000 on one stream, key included", "etcd", "etcd-watch-idle:10000", "bytes", 512, **client)
row("opening a watch of 10,000", "etcd", "etcd-watch-open:10000", "us CPU", ratio=0.4, **client)
row("event, 1,000 a second, each for one of 10,000 watches", "etcd", "etcd-watch-event:10000", "us CPU", ratio=0.4, **client)
row("event, 50 together, one watch", "etcd", "etcd-burst:1:50", "us CPU", ratio=0.4, **client)
row("event, 50 together, 100 watches", "etcd", "etcd-burst:100:50", "us CPU", ratio=0.4, **client)
row("object of 100,000, listed in pages", "etcd", "etcd-list:pages", "us CPU", **client)
row("the same until a Cacher over it is ready", "etcd", "etcd-list:cacher", "us CPU", 4, **client)

section("An informer of `vedette/kube.h` beside client-go's, on a real kube-apiserver", "Pods of 4 KB over TLS: JSON here, typed pods over protobuf in client-go. A writer changes one pod after the other, "
        "so each event wakes the informer by itself. CPU of the informer's process, memory after the events; the kube-apiserver's CPU includes the writer's requests.")
informer = dict(peer="client-go")
for pods in (10000, 100000):
    row("event, {:,} pods".format(pods), "kube", "kube-informer:%d" % pods, "us CPU", field="event_cpu_us", ratio=0.25, **informer)
    row("memory (RSS), {:,} pods".format(pods), "kube", "kube-informer:%d" % pods, "MB", field="rss_mb", ratio=0.2, **informer)
    row("CPU of the kube-apiserver for an event, {:,} pods".format(pods), "kube", "kube-informer:%d" % pods, "us CPU", field="upstream_cpu_us", ratio=1.0, **informer)
    row("start until synced, for each of {:,} pods".format(pods), "kube", "kube-informer:%d" % pods, "us CPU", field="sync_cpu_us", **informer)

section("Replay and kinds", "`vedette replay --quiet`, 1 KB objects, the log through a pipe; ingest of one event of other kinds, in process. "
        "A replay became a quarter faster when its blocks no longer came from malloc (lib/base/alloc_slab), and a tenth when values were no longer scanned twice (storage/codec/codec_json.h).")
row("events into 1 watch of everything", "replay", "replay:1", "a second of CPU", at_least=True)
row("events into 100 watches of everything", "replay", "replay:100", "a second of CPU", 250000, at_least=True)
row("memory (RSS) after 10,000,000 events", "replay", "replay:100", "MiB", field="rss_mib")
row("growth of memory (RSS) after the first tenth", "replay", "replay:100", "MiB", field="rss_grown_mib")
for kind in ("leases", "configmaps", "events", "endpointslices"):
    row("ingest of one event of %s" % kind, "cacher", "ingest-kind:" + kind, "us CPU")

section("The machine's own limits", "bench_limits. Recorded: the figure of the machine for which the goals were set.")
row("write of 1 KB to each of 1,000 loopback sockets", "limits", "limit-write:1024", "us CPU", recorded=2.35, note="recorded: 2.35 us")
row("write of 8 KB to each of 1,000 loopback sockets", "limits", "limit-write:8192", "us CPU", recorded=3.5, note="recorded: 3.5 us")
row("append 4 KB and fdatasync, p50", "limits", "limit-sync", "us", note="recorded: 177 us")
row("append 4 KB and fdatasync, p99", "limits", "limit-sync", "us", field="p99_us", note="recorded: 0.3 to 5 ms")
row("1 KB of cold memory copied", "limits", "limit-copy", "ns CPU", note="recorded: 71 ns in sequence")
row("a pointer through a ring, one thread", "limits", "limit-push", "ns CPU", note="recorded: 15.8 ns")

# Scaling: file, title, x axis, y axis, [(label, case with one %s, [x...], server, field, times)]
watchers = [1, 10, 100, 1000, 10000, 100000]
few = [10, 1000, 10000]
counts = [1000, 10000, 100000, 1000000]
sizes = [256, 512, 1024, 2048, 4096, 8192, 16384]
connections = [1, 10, 100, 1000, 10000]


def both(label, case, points):
    return [("vedette, " + label if label else "vedette", case, points, "vedette"), ("apiserver, " + label if label else "apiserver", case, points, "apiserver")]


plots = [
    dict(file="delivery", title="Delivery in process, all of W watchers match the event", x="watchers", y="ns CPU per delivery", per_unit=True, series=both("", "delivery:%d", watchers)),
    dict(file="one-of", title="An event that one of W watchers matches", x="watchers", y="us CPU per event", per_unit=True,
         series=[part for by in ("trigger", "namespace", "field", "label") for part in both(by, "one-of:" + by + ":%d", few)]),
    dict(file="http-delivery", title="HTTP delivery to W connections", x="connections", y="us CPU per delivery", per_unit=True,
         series=both("one by one", "http-delivery:%d:1", connections) + both("8 together", "http-delivery:%d:8", connections)),
    dict(file="object-memory", title="Memory per object of 1 KB", x="objects", y="bytes", per_unit=True, series=both("", "scale-memory:%d", counts)),
    dict(file="list", title="LIST in process: all, and 1 % by label, repeated", x="objects", y="ms CPU", per_unit=False,
         series=both("all", "scale-list:all:%d", counts) + both("label", "scale-list:label:%d", counts)),
    dict(file="list-namespace", title="LIST of one namespace of 100, of N objects", x="objects", y="ms CPU", per_unit=True, series=both("", "scale-list:namespace:%d", counts)),
    dict(file="sync", title="Initial sync from the embedded store", x="objects", y="us CPU per object", per_unit=True, series=both("", "scale-sync:%d", counts)[:1]),
    dict(file="ingest-size", title="Ingest of an event by its size", x="bytes of JSON", y="us CPU per event", per_unit=False, series=both("", "ingest-size:%d", sizes)),
    dict(file="http-size", title="HTTP delivery to 1,000 connections by size of the event", x="bytes of JSON", y="us CPU per delivery", per_unit=False,
         series=both("", "http-size:%d", sizes[2:])),
]
