/* A simulator with a scripted API server (kube_peer.h), a client, a store of its pods, and a cacher. */
#ifndef KUBE_WORLD_H
#define KUBE_WORLD_H

#include <vedette/cacher.h>
#include <vedette/kube.h>

#include "kube_peer.h"

struct kube_world {
	struct vd_env	 *env;
	struct kube_peer *peer;
	struct vd_kube	 *kube;
	struct vd_store	 *store;
	struct vd_codec	 *codec;
	struct vd_cacher *cacher;
	char		  cacher_log[256]; /* newest message of the cacher */
};

#define KUBE_PREFIX "/registry/pods/"
#define KUBE_PREFIX_END "/registry/pods0"

extern const struct vd_kube_resource kube_pods;

/* Everything but the cacher. preemptions as vdi_sim_set_preemptions. */
void kube_world_open(struct kube_world *world, uint64_t seed);
void kube_world_open_preempted(struct kube_world *world, uint64_t seed, unsigned preemptions);
/* Opens the client and the store again, with another bound of bytes; without a cacher. */
void kube_world_reopen(struct kube_world *world, uint64_t source_bytes_max);
void kube_world_open_cacher(struct kube_world *world);
/* Waits until the cacher is ready. */
void kube_world_settle(struct kube_world *world);
/* Returns true if the cache has the peer's pods at their revisions. */
bool kube_world_is_equal(struct kube_world *world);
void kube_world_close(struct kube_world *world);

/* What a call to the store answered. */
struct kube_answer {
	vd_status	status;
	bool		came;
	vd_rev		revision;
	size_t		count;
	int64_t		total;
	bool		more, succeeded;
	char		last[256]; /* range: last key; txn: value found by the else branch */
	struct vd_error error;
};
/* A vd_range_fn. */
void		   kube_answer_range(void *arg, vd_status status, const struct vd_range_result *result,
				     const struct vd_error *error);
bool		   kube_answer_has_come(void *arg);
struct kube_answer kube_world_range(struct kube_world *world, const char *key, size_t key_size,
				    const char *end, vd_rev revision, int64_t limit);
vd_status	   kube_world_begin_txn(struct kube_world *world, const struct vd_txn_request *request,
					struct kube_answer *answer);
/* expected -1: no compare. value NULL: a delete. */
struct kube_answer kube_world_txn(struct kube_world *world, const char *key, vd_rev expected,
				  const char *value);

#endif
