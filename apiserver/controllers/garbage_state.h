/* Private state of the garbage collector, shared by garbage_collector.c (queue of objects) and garbage_work.c
 * (check of one object). */
#ifndef VDI_GARBAGE_STATE_H
#define VDI_GARBAGE_STATE_H

#include "control_loop.h"
#include "garbage_collector.h"
#include "kind_watch.h"
#include "object_call.h"
#include "owner_graph.h"

#define VDI_GARBAGE_WORKS_MAX 32 /* concurrent checks */
#define VDI_GARBAGE_CALLS_MAX 16 /* concurrent calls of one check that orphans */

struct vdi_garbage_work;

struct vdi_garbage_kind {
	struct vdi_garbage_kind	     *next;
	struct vdi_garbage_collector *collector;
	/* a reference; replaced when the kind's definition changes, under the graph's lock */
	struct vdi_resource	 *resource;
	struct vdi_kind_watch	 *watch;
	bool			  is_pods;
	bool			  is_seen; /* still in the newest set */
	bool			  is_leaving;
	struct vdi_control_return left;
};

struct vdi_garbage_collector {
	const struct vd_env *env;
	struct vdi_resource_set *(*get_resource_set)(void *arg);
	void (*gone)(void *arg, struct vd_bytes namespace_name);
	void		       *arg;
	struct vdi_control_loop loop;

	struct vdi_lock lock; /* VDI_LOCK_OWNER_GRAPH */

	/* Under lock. */
	struct vdi_owner_graph	  graph;
	struct vdi_owner_node	 *queue_first, *queue_last;
	struct vdi_garbage_counts counts;
	/* checks are delayed because an owner's kind is not served */
	bool has_unknown;

	/* Any thread. */
	atomic_bool kinds_due; /* there is a new set of kinds */

	/* Owned by the actor. */
	struct vdi_resource_set *set; /* the set in use */
	struct vdi_garbage_kind *kinds;
	struct vdi_timer	 recheck_kinds; /* next poll of the set of kinds */
	size_t			 working;
	struct vdi_garbage_work *works;
};

/* Results of a check. */
enum vdi_garbage_end {
	VDI_GARBAGE_DONE,
	VDI_GARBAGE_GONE /* the object does not exist */,
	VDI_GARBAGE_RETRY /* it failed: try again with back-off */,
	VDI_GARBAGE_LATER /* try again after delay */
};

/* The data that a check needs of its node; the strings are copies. */
struct vdi_garbage_target {
	struct vdi_resource *resource; /* a reference */
	bool		     is_pods;
	char		    *namespace_name, *name, *uid; /* one allocation */
};

/* ---- garbage_work.c ---- */

/* On the actor. Takes over target. False: no memory, or the loop closes; target stays with the caller. */
bool vdi_garbage_work_start(struct vdi_garbage_collector *collector, struct vdi_owner_node *node,
			    struct vdi_garbage_target *target);
void vdi_garbage_target_fini(struct vdi_garbage_target *target);
/* Only after the loop was closed. */
void vdi_garbage_work_free(struct vdi_garbage_work *work);

/* ---- garbage_search.c ---- */

/* Returns true if back belongs to a work and was freed. Only after the loop was closed. */
bool vdi_garbage_return_free(struct vdi_control_return *back);

/* ---- garbage_collector.c ---- */

/* On the actor: the check has ended and its work was freed. */
void vdi_garbage_worked(struct vdi_garbage_collector *collector, struct vdi_owner_node *node,
			enum vdi_garbage_end end, vd_dur delay);
/* Returns true if the deletion of an object with this uid was seen. Any thread. */
bool vdi_garbage_saw_end(struct vdi_garbage_collector *collector, struct vd_bytes uid);
/* Reports that a check is about to fail because an owner's kind is not served. Any thread. */
void vdi_garbage_unknown(struct vdi_garbage_collector *collector);
/* Increments a counter. Any thread. */
void vdi_garbage_count(struct vdi_garbage_collector *collector, uint64_t *counter);
/* Returns whether the node has dependents, whether some block its deletion (these are queued), and whether
 * one waits for its own dependents. On the actor. */
void vdi_garbage_dependents(struct vdi_garbage_collector *collector, struct vdi_owner_node *node,
			    bool *ret_any, bool *ret_blocking, bool *ret_waiting);

#endif
