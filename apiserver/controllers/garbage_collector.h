/* The garbage collector: deletes dependents of deleted owners (background), deletes dependents before their
 * owner (foreground), and removes references to owners that orphan.
 *
 * Mirrors kubernetes pkg/controller/garbagecollector. All state is derived from the objects, so it may be
 * killed at any point and run beside another collector. Before a deletion the object and all its owners are
 * read, an absent owner from the store itself; the deletion is then conditional on the uid and the
 * resourceVersion that were read. The collector follows the set of served kinds.
 */
#ifndef VDI_GARBAGE_COLLECTOR_H
#define VDI_GARBAGE_COLLECTOR_H

#include "resource_set.h"

struct vdi_garbage_collector;

/* Counters; any thread. */
struct vdi_garbage_counts {
	/* now in the graph: objects with owners, named as owners, or waiting for the collector */
	uint64_t nodes;
	uint64_t kinds;			 /* now watched */
	uint64_t waiting;		 /* nodes now queued */
	uint64_t added, retried, failed; /* checks requested, repeated, failed */
	uint64_t deleted;		 /* objects */
	uint64_t released;		 /* references to absent owners removed */
	uint64_t orphaned;		 /* references to orphaning owners removed */
	/* references that cannot be followed: from a cluster-scoped object to a namespaced owner */
	uint64_t invalid;
};

/* Starts at once. get_resource_set returns a reference to the newest set of kinds, on any thread; NULL when
 * the server ends. gone (may be NULL) is called with the namespace of each deleted object, on a thread of the
 * env. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_garbage_collector_new(const struct vd_env *env,
						 struct vdi_resource_set *(*get_resource_set)(void *arg),
						 void (*gone)(void *arg, struct vd_bytes namespace_name),
						 void *arg, struct vdi_garbage_collector **ret_collector,
						 struct vd_error *reterr);
/* Blocks until running checks have ended. NULL is allowed. Returns NULL. */
struct vdi_garbage_collector *vdi_garbage_collector_free(struct vdi_garbage_collector *collector);
/* Reports a new set of kinds; the collector also polls every few seconds. Any thread. */
void vdi_garbage_collector_kinds_changed(struct vdi_garbage_collector *collector);
void vdi_garbage_collector_counts(struct vdi_garbage_collector *collector,
				  struct vdi_garbage_counts    *ret_counts);

#endif
