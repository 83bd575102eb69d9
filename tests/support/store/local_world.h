/* A local history on a simulated disk, in front of an embedded store that plays an etcd: it runs on while the
 * server is stopped and restarted. Every error fails the test. */
#ifndef LOCAL_WORLD_H
#define LOCAL_WORLD_H

#include "env.h"
#include "part_store.h"
#include "rand.h"
#include "vdtest.h"

#define K(text) vd_bytes_of(text)
#define LOCAL_DIRECTORY "/data"

/* One change as the store below reported it. */
struct local_truth {
	vd_rev revision;
	vd_rev previous; /* 0: none */
	bool   is_delete;
	char   key[40];
};

struct local_world {
	struct vd_env	      *env;
	struct vdi_disk	      *disk;
	struct vd_store	      *mvcc;  /* the etcd's state */
	struct vd_store	      *chaos; /* the network */
	struct vd_store	      *front; /* claims to be remote, with an identity; outlives the local history */
	struct part_options    front_options;
	struct vd_store	      *store; /* under test; NULL: stopped */
	struct vd_store_watch *oracle;
	struct local_truth    *truth;
	size_t		       count, capacity;
	struct vdi_rand	       rand;
	int64_t		       bytes;
	vd_dur		       window;
	char		       log[4096];
};

unsigned	 local_log_lines(struct local_world *w, const char *text);
void		 local_ignore_ready(void *arg);
struct vd_store *local_mvcc_new(struct local_world *w);
void		 local_world_init(struct local_world *w, uint64_t seed);
vd_status	 local_try_start(struct local_world *w, struct vd_error *error);
void		 local_start(struct local_world *w);
void		 local_stop(struct local_world *w);
/* Everything that was not synced may be lost, in part. */
void   local_power_cut(struct local_world *w);
void   local_world_fini(struct local_world *w);
vd_rev local_put(struct local_world *w, const char *key, const char *value);
vd_rev local_put_some(struct local_world *w, unsigned count);
void   local_ask_oracle(struct local_world *w);
/* Compacts the store below; the oracle has received all events before. */
void local_compact(struct local_world *w, vd_rev revision);
/* Asserts that a watch of prefix from after a revision gets exactly the true events, and then progress.
 * Returns the number of events. */
size_t		       local_assert_watch(struct local_world *w, const char *prefix, vd_rev after);
struct vd_store_status local_status_of(struct local_world *w);

#endif
