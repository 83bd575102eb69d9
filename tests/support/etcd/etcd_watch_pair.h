/* A watch and a second one on the same stream of a scripted server (etcd_watch_peer.h) that cuts connections
 * and sends fragments. */
#ifndef ETCD_WATCH_PAIR_H
#define ETCD_WATCH_PAIR_H

#include <rpc.pb-c.h>

#include "etcd_watch_peer.h"
#include "vdtest.h"

/* A watch on "k" from revision, created as id 0 at h5, and a second one (id 1) that keeps the stream
 * alive. */
struct watch_pair {
	struct watch_world	world;
	struct watch_reader	reader, sibling;
	struct rpc_script_call *stream;
};

void watch_pair_open(struct watch_pair *t, vd_rev revision);
void watch_pair_close(struct watch_pair *t);
/* Cuts the connection; returns the start revision with which the watch on "k" resumes. Both watches are
 * created again. */
vd_rev watch_pair_resume(struct watch_pair *t);
void   watch_pair_fragment(struct watch_pair *t, int64_t id, vd_rev header, vd_rev mod_rev, bool more);

#endif
