/* The garbage collector's graph of owner references, by uid.
 *
 * Only objects that have owners, are named as owners, or wait for the collector have a node. A node without a
 * kind is an owner that was never seen, or was deleted and is still named by dependents. The graph only hints
 * at objects to check: nothing is deleted before the objects were read. Not thread-safe; the collector's
 * lock guards it. Mirrors kubernetes pkg/controller/garbagecollector/{graph,graph_builder}.go.
 */
#ifndef VDI_OWNER_GRAPH_H
#define VDI_OWNER_GRAPH_H

#include "base.h"
#include "timer.h"

struct vdi_owner_node;

/* dependent names owner in its ownerReferences. */
struct vdi_owner_edge {
	struct vdi_owner_node  *owner;
	struct vdi_owner_node  *dependent;
	struct vdi_owner_edge  *next; /* next edge to the same owner */
	struct vdi_owner_edge **link;
	bool			blocks; /* blockOwnerDeletion */
};

enum vdi_owner_state { VDI_OWNER_IDLE, VDI_OWNER_QUEUED, VDI_OWNER_RUNNING, VDI_OWNER_DELAYED };

struct vdi_owner_node {
	struct vdi_owner_node *next; /* in its bucket */
	uint64_t	       hash;
	void		      *kind;	       /* NULL: never seen, or deleted */
	char		      *namespace_name; /* followed by the name, in one allocation; NULL: never seen */
	char		      *name;
	uint64_t	       fill; /* fill that saw the object last */
	/* its deletion was seen, so the object cannot exist any more, even if its kind is not served */
	bool		       is_gone;
	bool		       is_deleting;
	bool		       waits_foreground; /* the object has this finalizer and is being deleted */
	bool		       waits_orphan;
	bool		       waits_agent; /* a pod in its grace period */
	struct vdi_owner_edge *owners;	    /* an array */
	size_t		       owner_count;
	struct vdi_owner_edge *dependents; /* a list */

	/* For the collector. A node that is not idle is not freed. */
	enum vdi_owner_state   state;
	bool		       again; /* touched while it was checked */
	unsigned	       failures;
	struct vdi_timer       timer;
	struct vdi_owner_node *queue_next;

	char uid[];
};

struct vdi_owner_reference {
	struct vd_bytes uid;
	bool		blocks;
};

/* The content of an event, as far as the graph needs it. */
struct vdi_owner_attributes {
	void				 *kind;
	uint64_t			  fill;
	struct vd_bytes			  namespace_name;
	struct vd_bytes			  name;
	struct vd_bytes			  uid;
	const struct vdi_owner_reference *owners;
	size_t				  owner_count;
	bool				  is_deleting, waits_foreground, waits_orphan, waits_agent;
};

struct vdi_owner_graph {
	struct vdi_owner_node **buckets;
	size_t			bucket_count; /* a power of two, or 0 */
	size_t			count;
	uint64_t		seed; /* random, because clients can choose uids */
	/* Called inside the functions below when the node may need work; must not call back. */
	void (*touched)(void *arg, struct vdi_owner_node *node);
	void *arg;
};

void vdi_owner_graph_init(struct vdi_owner_graph *graph, uint64_t			 seed,
			  void (*touched)(void *arg, struct vdi_owner_node *node), void *arg);
void vdi_owner_graph_fini(struct vdi_owner_graph *graph);

/* Returns NULL if there is no such node. */
struct vdi_owner_node *vdi_owner_graph_find(const struct vdi_owner_graph *graph, struct vd_bytes uid);
/* Adds or updates an object. VD_NOMEM: the graph is unchanged. */
VDI_MUST_USE vd_status vdi_owner_graph_put(struct vdi_owner_graph	     *graph,
					   const struct vdi_owner_attributes *attributes);
/* Removes an object whose deletion was seen. */
void vdi_owner_graph_delete(struct vdi_owner_graph *graph, struct vd_bytes uid);
/* Removes an object that was found to be absent. */
void vdi_owner_graph_remove(struct vdi_owner_graph *graph, struct vd_bytes uid);
/* Removes the objects of kind that the given fill did not contain, and touches the dependents of owners that
 * were never seen, because these may have been deleted unnoticed. fill 0: removes all of the kind. */
void vdi_owner_graph_sweep(struct vdi_owner_graph *graph, void *kind, uint64_t fill);
/* Calls touched for all delayed or running nodes. Visits the whole graph. */
void vdi_owner_graph_touch_delayed(struct vdi_owner_graph *graph);
/* Call after node became idle: frees it if nothing refers to it. */
void vdi_owner_graph_release(struct vdi_owner_graph *graph, struct vdi_owner_node *node);

#endif
