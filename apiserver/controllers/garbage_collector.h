/* The garbage collector: deletes what belongs to what has gone, in the background; what is to go before its
 * owner, in the foreground; and orphans.
 *
 * Mirrors kubernetes pkg/controller/garbagecollector. Everything is derived from the objects: it may be
 * killed at any point and run beside another one. Nothing is deleted before the object and all its owners
 * were read, an absent owner from the store itself, and then only with the uid and the resourceVersion that
 * were read. It follows the set of served kinds.
 */
#ifndef VDI_GARBAGE_COLLECTOR_H
#define VDI_GARBAGE_COLLECTOR_H

#include "resource_set.h"

struct vdi_garbage_collector;

/* What it has done and has to do; any thread. */
struct vdi_garbage_counts {
	uint64_t nodes,
		/* now: objects that are known to belong to others or to wait, or are named as owners; kinds
		 * that are watched */
		kinds;
	uint64_t waiting;		 /* now: nodes to be looked at */
	uint64_t added, retried, failed; /* looks that were wanted, that are repeated, that failed */
	uint64_t deleted, released,
		orphaned; /* objects deleted; references to absent owners taken out; to owners that orphan */
	/* references that cannot be followed: to a namespaced owner from without a namespace */
	uint64_t invalid;
};

/* Starts at once. served gives a use of the newest set of kinds, from any thread, or NULL when the server
 * ends. gone (may be NULL) is told the namespace of each object that went, on a thread of the env.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_garbage_collector_new(const struct vd_env *env,
						 struct vdi_served *(*served)(void *arg),
						 void (*gone)(void *arg, struct vd_bytes namespace_name),
						 void *arg, struct vdi_garbage_collector **ret_collector,
						 struct vd_error *reterr);
/* Blocks until what is under way has ended. NULL is fine; returns NULL. */
struct vdi_garbage_collector *vdi_garbage_collector_free(struct vdi_garbage_collector *collector);
/* The set of kinds is another one; it also looks by itself every few seconds. Any thread. */
void vdi_garbage_collector_kinds_changed(struct vdi_garbage_collector *collector);
void vdi_garbage_collector_counts(struct vdi_garbage_collector *collector,
				  struct vdi_garbage_counts    *ret_counts);

#endif
