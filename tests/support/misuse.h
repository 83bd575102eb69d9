/* Tables of misuses: each is a test of its own in a small world, which must shut down cleanly afterwards. */
#ifndef MISUSE_H
#define MISUSE_H

#include <vedette/vedette.h>

#include "vdtest.h"

struct misuse_world {
	struct vd_env	 *env; /* one thread */
	struct vd_store	 *store;
	struct vd_codec	 *codec; /* of Pods: spec.nodeName, status.phase */
	struct vd_cacher *pods;	 /* ready; holds ns/a */
	struct vd_cacher *nodes; /* the same, cluster-scoped, empty */
	struct vd_error	  error;
};

struct misuse {
	const char *name;
	vd_status (*commit)(struct misuse_world *world);
	vd_status status; /* the expected status */
	/* part of world->error, or of the callback's error; NULL: the call reports none */
	const char *message;
};

#define MISUSE(name, status, message)                                                                        \
	{                                                                                                    \
#name, name, status, message                                                                 \
	}

void misuse_world_init(struct misuse_world *world);
void misuse_world_fini(struct misuse_world *world);
/* All of a table as tests; returns how many failed. */
int misuse_run(const char *group, const struct misuse *misuses, size_t count);

/* For calls that tell their callback: keeps status and message in *arg, a struct misuse_world. */
void misuse_told_object(void *world, vd_status status, struct vd_object *object, vd_rev revision,
			const struct vd_error *error);

#endif
