/* A watch and its sibling on one stream of a played server (etcd_watch_peer.h), which is cut and answers in
 * fragments. */
#ifndef ETCD_WATCH_PAIR_H
#define ETCD_WATCH_PAIR_H

#include <rpc.pb-c.h>

#include "etcd_watch_peer.h"
#include "vdtest.h"

/* A watch on "k" from revision, established as id 0 at h5, with a second one (id 1) beside it that keeps the
 * stream alive. */
struct watch_pair {
	struct watch_world	world;
	struct watch_reader	reader, sibling;
	struct rpc_script_call *stream;
};

void watch_pair_open(struct watch_pair *t, vd_rev revision);
void watch_pair_close(struct watch_pair *t);
/* The connection goes; answers the start revision with which the watch on "k" comes back. Both are
 * established again. */
vd_rev watch_pair_resume(struct watch_pair *t);
void   watch_pair_fragment(struct watch_pair *t, int64_t id, vd_rev header, vd_rev mod_rev, bool more);

#endif
