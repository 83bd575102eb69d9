/* The inside of the garbage collector, shared by garbage_collector.c (what to look at, and when) and
 * garbage_work.c (one look at one object). */
#ifndef VDI_GARBAGE_STATE_H
#define VDI_GARBAGE_STATE_H

#include "control_loop.h"
#include "garbage_collector.h"
#include "kind_watch.h"
#include "object_call.h"
#include "owner_graph.h"

#define VDI_GARBAGE_WORKS_MAX 32 /* under way */
#define VDI_GARBAGE_CALLS_MAX 16 /* of one owner that orphans */

struct vdi_garbage_work;

struct vdi_garbage_kind {
	struct vdi_garbage_kind	     *next;
	struct vdi_garbage_collector *collector;
	struct vdi_resource	 *resource; /* a use; another edition now and then: under the graph's lock */
	struct vdi_kind_watch	 *watch;
	bool			  is_pods;
	bool			  is_seen; /* in the present set */
	bool			  is_leaving;
	struct vdi_control_return left;
};

struct vdi_garbage_collector {
	const struct vd_env *env;
	struct vdi_served *(*served)(void *arg);
	void (*gone)(void *arg, struct vd_bytes namespace_name);
	void		       *arg;
	struct vdi_control_loop loop;

	struct vdi_lock lock; /* VDI_LOCK_OWNER_GRAPH */

	/* Under lock. */
	struct vdi_owner_graph	  graph;
	struct vdi_owner_node	 *queue_first, *queue_last;
	struct vdi_garbage_counts counts;
	bool			  has_unknown; /* looks are delayed because an owner's kind is not served */

	/* Any thread. */
	atomic_bool kinds_due; /* the set is another one */

	/* The actor. */
	struct vdi_served	*set; /* the one that is gone by */
	struct vdi_garbage_kind *kinds;
	struct vdi_timer	 look_again; /* at the set of kinds */
	size_t			 working;
	struct vdi_garbage_work *works;
};

/* How a look ended. */
enum vdi_garbage_end {
	VDI_GARBAGE_DONE,
	VDI_GARBAGE_GONE /* the object is not there */,
	VDI_GARBAGE_RETRY /* it failed */,
	VDI_GARBAGE_LATER /* after delay */
};

/* What is needed to look at the object of a node; strings are its own. */
struct vdi_garbage_target {
	struct vdi_resource *resource; /* a use */
	bool		     is_pods;
	char		    *namespace_name, *name, *uid; /* one block */
};

/* ---- garbage_work.c ---- */

/* The actor. Takes over target. False: no memory, or the loop closes; the target is still the caller's. */
bool vdi_garbage_work_start(struct vdi_garbage_collector *collector, struct vdi_owner_node *node,
			    struct vdi_garbage_target *target);
void vdi_garbage_target_fini(struct vdi_garbage_target *target);
/* After the loop was closed. */
void vdi_garbage_work_free(struct vdi_garbage_work *work);
/* True: it was one of a work's, and is freed. After the loop was closed. */
bool vdi_garbage_return_free(struct vdi_control_return *back);

/* ---- garbage_collector.c ---- */

/* The actor: the look is over, and the work no longer known here. */
void vdi_garbage_worked(struct vdi_garbage_collector *collector, struct vdi_owner_node *node,
			enum vdi_garbage_end end, vd_dur delay);
/* Any thread. Whether the deletion of an object of this uid was seen. */
bool vdi_garbage_saw_end(struct vdi_garbage_collector *collector, struct vd_bytes uid);
/* Any thread. A look is going to fail because an owner's kind is not served. */
void vdi_garbage_unknown(struct vdi_garbage_collector *collector);
/* Any thread. */
void vdi_garbage_count(struct vdi_garbage_collector *collector, uint64_t *counter);
/* The actor. Whether dependents of the node block its end, and are made to be looked at; whether one of them
 * waits for its own dependents; whether there are any. */
void vdi_garbage_dependents(struct vdi_garbage_collector *collector, struct vdi_owner_node *node,
			    bool *ret_any, bool *ret_blocking, bool *ret_waiting);

#endif
