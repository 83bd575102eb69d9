"""Why a goal is missed: what a profile says, and the next step. By group and case; a star at the end: all cases that begin so."""

ingest = ("of the 12,000 instructions of an event 5,530 are the scan of the JSON, 1,700 the facts and the object made of it, 2,100 the way down the tree of objects, twice, 2,700 "
          "queues, history, references, locks and malloc; the store's writer shares the core meanwhile, which makes all of it slower by a half or more (decisions/ingest, with what was tried). Next: a "
          "scan that passes by brackets over what no path leads to.")
sockets = ("one `write` to a socket is nearly all of it (the limit is measured beside it): eight PUTs at once come as two or three batches, because the first event is on its way to the sockets "
           "before the last PUT is stored. Tried and not taken yet: the outlet waits for a tenth of what handing out took the last time, 1 ms at most, before it begins; 1.37 and 0.90 us became "
           "0.86 and 0.81, by turns on a machine with a load of 18. It needs a quiet machine to be judged, above all its latency.")
disk = ("on an idle machine an `fdatasync` here takes half of what it took where the goals come from, and then the two processors are what is short, on which 256 writers' threads, the store's writer and the "
        "checkpoint share: 5.6 us of CPU for each of 256 in flight, most of it the submitters'. Next: what is submitted by one thread is taken over as a list.")
start = ("measured with a load of 20 to 40 on two processors, so the wall says little. The same 100,000 objects by turns on a less loaded machine: ready after 291 ms, the list read after 340, where it "
         "was 356 and 398, and in one start of three 1.1 s and more (decisions/start). Next: the list decoded in parts on both processors, which is 110 ms on one.")
opening = "measured with a load of 20 to 40 on two processors, so the wall says little: it was 0.42 s on a quiet machine (decisions/start)."

reasons = {
    ("cacher", "ingest:64"): ingest,
    ("cacher", "one-of:*"): "an event in a batch of 8 costs as much when nobody watches at all, 4.2 us, so finding the one watcher is not what is missed by, and it is "
                            "flat in W. The peer's events are ready made. The thread begins each batch with cold caches (decisions/ingest). The next step is that of ingest.",
    ("cacher", "delivery:100"): "the ingest of the event, 4.2 us in a batch of 8, is shared by only 100 watchers. See ingest.",
    ("cacher", "delivery-consumer:*"): "the ingest of the event, 4.2 us in a batch of 8, is shared by W. See ingest.",
    ("cacher", "idle:different"): "a watcher with a selector of its own is a group of its own, with a lane: 208 bytes of watcher and a block of 272 with group (64), lane (128), predicate (32) and selector (37) "
                                  "(decisions/one-history-many-cursors). The goal was set for watchers that share, which take 247. Next: the 64 bytes that a watcher needs only while it lags, lent by "
                                  "its outlet; 416 would be left.",
    ("cacher", "object:1024"): "1,178 bytes are there before the cache starts (value, key, store); the cache adds 286, of which 250 went with the indexes of fields. Next: the decoded header of an object.",
    ("cacher", "sync:1024"): "3.2 us of CPU for each object; the wall is that of a machine with a load above 20 (459 ms in another run there, when the program before took 1,815).",
    ("http", "http-delivery:1000:8"): sockets,
    ("http", "http-stalled"): "the CPU of a PUT is the same beside them. The ratio of the p99s lies between 0.37 and 4.6 from pair to pair on a machine with a load of 10 to 15, so it says nothing; "
                              "`--first` the day before gave 1.00.",
    ("http", "http-start"): start,
    ("http", "http-list:label"): "the first such list scans and the second builds an index (decisions/indexes-on-demand); both were in this figure if it is above 1 ms: ten lists were measured. It was 5.7 ms before.",
    ("outside", "rest"): "13.4 of these MiB are pages of files, the program and its libraries, which other processes share; private memory is 4.3. Next: a `serve` without gRPC's core, which the transport of our "
                         "own on nghttp2 allows.",
    ("outside", "http-latency"): disk,
    ("outside", "restart"): start,
    ("cacher", "latency:event"): disk,
    ("mvcc", "durable*"): disk,
    ("mvcc", "open"): opening,
    ("etcd-server", "put:256"): "256 clients that put as fast as they can are 256 goroutines on the processors that the server needs: Little's law makes their mean 10 ms at 26,000 a second, and of the server's own answers 97 % take less "
                                "than 4 ms in the same run. At a given pace, 5,000 a second, the p99 is 0.15 of the peer's (below). The goal asks for a p99 that is hardly above that mean.",
    ("etcd-server", "put:*"): "of a put at 64 clients 12 us are the connection's loop, 7 of these the kernel's, 7 the writer's and 1.3 the checkpoint's (decisions/http2-transport); "
                              "rates and latencies have the Go clients on the same two processors in them. Next: the store's answers made on the loop, fewer wakes of the journal.",
    ("etcd-server", "start:*"): opening,
}
