"""Why a goal is missed: the result of a profile, and the next step. By group and case; a star at the end
stands for all cases with that prefix."""

ingest = (
    "an event takes 12,000 instructions: 5,530 scan the JSON, 1,700 make attributes and object, 2,100 walk down the "
    "tree of objects, twice, and 2,700 are queues, history, references, locks and malloc. The store's writer shares "
    "the core meanwhile, which slows all of it by a half or more (decisions/ingest, with rejected ideas). Next: a "
    "scan that skips, by brackets, the parts that no path leads to."
)
sockets = (
    "nearly all of it is one `write` to a socket (the limit is measured in the same run). Eight PUTs at once arrive as "
    "two or three batches, because the first event is on its way to the sockets before the last PUT is stored. Tried, "
    "not decided: the delivery worker waits, before it begins, for a tenth of the time of its last delivery, 1 ms at "
    "most; 1.37 and 0.90 us became 0.86 and 0.81, in turn on a machine with a load of 18. A quiet machine is needed "
    "to judge it, above all its latency."
)
disk = (
    "an `fdatasync` here takes half of its time on the first machine, so the two processors, which are one core, are "
    "the bottleneck. Of the 2 ms of a group of 256 puts, 0.6 are the disk, delayed by the checkpoint's syncs, and the "
    "rest the writer, 40 % of that copies of leaves. With blocking writers, sleep and wake are 4 us of each put "
    "(decisions/many-writers). From run to run 117,000 to 149,000 in flight and 73,000 to 98,000 blocking. Next: "
    "execute the next group while the disk works."
)
start = (
    "100,000 objects are ready after 370 ms, on two processors that are one core, and their list is 60 MB over a "
    "socket; decisions/start has the parts. Next: make the list ready in parts."
)
opening = "two threads read and build, on two processors that are one core (decisions/start)."

reasons = {
    ("cacher", "ingest:64"): ingest,
    ("cacher", "one-of:*"): (
        "an event in a batch of 8 costs as much without any watcher, 4.2 us, so the search for the one watcher is not "
        "the cause, and the cost does not depend on W. The peer's events are ready made. The thread begins each "
        "batch with cold caches (decisions/ingest). The next step is that of ingest."
    ),
    ("cacher", "delivery:100"): (
        "only 100 watchers share the ingest of the event, 4.2 us in a batch of 8. See ingest."
    ),
    ("cacher", "delivery-consumer:*"): (
        "W watchers share the ingest of the event, 4.2 us in a batch of 8. See ingest."
    ),
    ("cacher", "idle:different"): (
        "a watcher with a selector of its own needs a group and a subscription: 208 bytes of watcher, and a block of "
        "272 with group (64), subscription (128), predicate (32) and selector (37) "
        "(decisions/one-history-many-cursors). The goal was set for watchers that share selectors, which take 247. "
        "Next: 64 bytes that a watcher uses only while it lags could be lent by its delivery worker; 416 would "
        "remain."
    ),
    ("cacher", "object:1024"): (
        "1,177 bytes exist before the cache starts (value, key, store); the cache adds 245: the decoded header, the "
        "tree and malloc's blocks. Next: share the part of the header that all objects of a kind have in common."
    ),
    ("http", "http-delivery:1000:8"): sockets,
    ("http", "http-stalled"): (
        "the CPU of a PUT is the same beside them. The p99 is that of about a hundred PUTs beside the bench's own "
        "thousand connections on the same two processors: its ratio is between 0.7 and 2.4 from pair to pair, with a "
        "median of 1.0 in other runs."
    ),
    ("http", "http-start"): start,
    ("outside", "http-latency"): disk,
    ("outside", "restart"): start,
    ("outside", "http-create"): (
        "4,096 creates take a fifth of a second here: 47 to 78 us from round to round, because the server shares the "
        "two processors, one core, with the 64 clients. Next: a profile of one iteration of a loop."
    ),
    ("cacher", "latency:event"): disk,
    ("mvcc", "durable*"): disk,
    ("mvcc", "open"): opening,
    ("etcd-server", "put:256"): (
        "256 clients that put as fast as possible are 256 goroutines on the processors that the server needs. By "
        "Little's law their mean is 10 ms at 26,000 a second; 97 % of the server's own answers take less than 4 ms in "
        "the same run. At a fixed rate of 5,000 a second, half are answered within 0.4 ms, in a sixth of the peer's "
        "time (below). The goal is a p99 hardly above that mean."
    ),
    ("etcd-server", "put:*"): (
        "of a put at 64 clients 12 us are the connection's loop (7 of these the kernel), 7 the writer and 1.3 the "
        "checkpoint (decisions/http2-transport). Rates and latencies include the Go clients on the same two "
        "processors. Next: make the store's answers on the loop, with fewer wakes of the journal."
    ),
    ("etcd-server", "start:*"): opening,
}
