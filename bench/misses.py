"""Why a goal is missed: what a profile says, and the next step. By group and case; a star at the end: all cases that begin so."""

ingest = ("of the 12,000 instructions of an event 5,530 are the scan of the JSON, 1,700 the facts and the object made of it, 2,100 the way down the tree of objects, twice, 2,700 "
          "queues, history, references, locks and malloc; the store's writer shares the core meanwhile, which makes all of it slower by a half or more (decisions/ingest, with what was tried). Next: a "
          "scan that passes by brackets over what no path leads to.")
sockets = ("one `write` to a socket is nearly all of it (the limit is measured beside it): eight PUTs at once come as two or three batches, because the first event is on its way to the sockets "
           "before the last PUT is stored. Tried and not taken yet: the outlet waits for a tenth of what handing out took the last time, 1 ms at most, before it begins; 1.37 and 0.90 us became "
           "0.86 and 0.81, by turns on a machine with a load of 18. It needs a quiet machine to be judged, above all its latency.")
disk = ("an `fdatasync` here takes half of what it took where the goals come from, and then the two processors are what is short, which are one core: of the 2 ms that a group of 256 takes, 0.6 are the "
        "disk, with the checkpoint's syncs in the way, and the rest the writer's, 40 % of that copies of leaves; with writers that block, the sleep and the wake are 4 us of each put "
        "(decisions/many-writers). From run to run 117,000 to 149,000 in flight and 73,000 to 98,000 blocking. Next: the next group is executed while the disk works.")
start = ("100,000 objects are ready after 370 ms, on two processors that are one core, and the list of them is 60 MB over a socket; decisions/start has the parts. Next: the list made ready in "
         "parts.")
opening = "two threads read and build, on two processors that are one core (decisions/start)."

reasons = {
    ("cacher", "ingest:64"): ingest,
    ("cacher", "one-of:*"): "an event in a batch of 8 costs as much when nobody watches at all, 4.2 us, so finding the one watcher is not what is missed by, and it is "
                            "flat in W. The peer's events are ready made. The thread begins each batch with cold caches (decisions/ingest). The next step is that of ingest.",
    ("cacher", "delivery:100"): "the ingest of the event, 4.2 us in a batch of 8, is shared by only 100 watchers. See ingest.",
    ("cacher", "delivery-consumer:*"): "the ingest of the event, 4.2 us in a batch of 8, is shared by W. See ingest.",
    ("cacher", "idle:different"): "a watcher with a selector of its own is a group of its own, with a lane: 208 bytes of watcher and a block of 272 with group (64), lane (128), predicate (32) and selector (37) "
                                  "(decisions/one-history-many-cursors). The goal was set for watchers that share, which take 247. Next: the 64 bytes that a watcher needs only while it lags, lent by "
                                  "its outlet; 416 would be left.",
    ("cacher", "object:1024"): "1,177 bytes are there before the cache starts (value, key, store); the cache adds 245: the decoded header, the tree and malloc's blocks. Next: a header without what its kind has in common with others.",
    ("http", "http-delivery:1000:8"): sockets,
    ("http", "http-stalled"): "the CPU of a PUT is the same beside them. The p99 is that of some hundred PUTs beside the bench's own thousand connections on the same two processors: its ratio lies "
                              "between 0.7 and 2.4 from pair to pair, with a median of 1.0 in other runs.",
    ("http", "http-start"): start,
    ("outside", "http-latency"): disk,
    ("outside", "restart"): start,
    ("outside", "http-create"): "4,096 creates take a fifth of a second here: 47 to 78 us from round to round, as the two processors, one core, are shared with the 64 clients. "
                                "Next: a profile of the turn of a loop.",
    ("cacher", "latency:event"): disk,
    ("mvcc", "durable*"): disk,
    ("mvcc", "open"): opening,
    ("etcd-server", "put:256"): "256 clients that put as fast as they can are 256 goroutines on the processors that the server needs: Little's law makes their mean 10 ms at 26,000 a second, and of the server's own answers 97 % take less "
                                "than 4 ms in the same run. At a given pace, 5,000 a second, half are answered within 0.4 ms, in a sixth of the peer's time (below). The goal asks for a p99 that is hardly above that mean.",
    ("etcd-server", "put:*"): "of a put at 64 clients 12 us are the connection's loop, 7 of these the kernel's, 7 the writer's and 1.3 the checkpoint's (decisions/http2-transport); "
                              "rates and latencies have the Go clients on the same two processors in them. Next: the store's answers made on the loop, fewer wakes of the journal.",
    ("etcd-server", "start:*"): opening,
}
