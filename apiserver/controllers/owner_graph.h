/* Who belongs to whom, by uid: what the garbage collector knows of the objects.
 *
 * Only objects that have owners, that are named as owners, or that wait for the collector have a node. An
 * owner that nobody has seen is a node without a kind; so is one that has gone, as long as somebody still
 * names it. The graph is a hint where to look: nothing is deleted before the objects were read. Not
 * thread-safe: one lock around it, the collector's. Mirrors kubernetes
 * pkg/controller/garbagecollector/{graph,graph_builder}.go.
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
	struct vdi_owner_edge  *next; /* of the owner's */
	struct vdi_owner_edge **link;
	bool			blocks; /* blockOwnerDeletion */
};

enum vdi_owner_state { VDI_OWNER_IDLE, VDI_OWNER_QUEUED, VDI_OWNER_RUNNING, VDI_OWNER_DELAYED };

struct vdi_owner_node {
	struct vdi_owner_node *next; /* of its bucket */
	uint64_t	       hash;
	void		      *kind;	       /* NULL: not seen, or gone */
	char		      *namespace_name; /* with the name behind it; NULL: not seen */
	char		      *name;
	uint64_t	       fill; /* which one saw it last */
	bool is_gone;		     /* its deletion was seen: it is nowhere, whatever its kind is by now */
	bool is_deleting;
	bool waits_foreground; /* it has that finalizer and is being deleted */
	bool waits_orphan;
	bool waits_agent;	       /* a pod under its grace period */
	struct vdi_owner_edge *owners; /* an array */
	size_t		       owner_count;
	struct vdi_owner_edge *dependents; /* a list */

	/* Whoever works on the nodes. A node that is not idle stays. */
	enum vdi_owner_state   state;
	bool		       again; /* touched while it was worked on */
	unsigned	       failures;
	struct vdi_timer       timer;
	struct vdi_owner_node *queue_next;

	char uid[];
};

struct vdi_owner_reference {
	struct vd_bytes uid;
	bool		blocks;
};

/* What an event says of an object. */
struct vdi_owner_facts {
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
	uint64_t		seed; /* uids come from outside */
	/* The node may need something done. Called inside the functions below; must not call back. */
	void (*touched)(void *arg, struct vdi_owner_node *node);
	void *arg;
};

void vdi_owner_graph_init(struct vdi_owner_graph *graph, uint64_t			 seed,
			  void (*touched)(void *arg, struct vdi_owner_node *node), void *arg);
void vdi_owner_graph_fini(struct vdi_owner_graph *graph);

/* NULL when there is none. */
struct vdi_owner_node *vdi_owner_graph_find(const struct vdi_owner_graph *graph, struct vd_bytes uid);
/* The object is there, as the facts say. VD_NOMEM: the graph is as before. */
VDI_MUST_USE vd_status vdi_owner_graph_put(struct vdi_owner_graph	*graph,
					   const struct vdi_owner_facts *facts);
/* It has gone: its deletion was seen. */
void vdi_owner_graph_delete(struct vdi_owner_graph *graph, struct vd_bytes uid);
/* It is not there any more. */
void vdi_owner_graph_remove(struct vdi_owner_graph *graph, struct vd_bytes uid);
/* What kind had and the given fill has not seen has gone; and owners that nobody saw may have gone unseen.
 * fill 0: all of the kind. */
void vdi_owner_graph_sweep(struct vdi_owner_graph *graph, void *kind, uint64_t fill);
/* touched for all that are delayed or worked on. Walks the whole graph. */
void vdi_owner_graph_touch_delayed(struct vdi_owner_graph *graph);
/* After node became idle: it goes if nothing needs it. */
void vdi_owner_graph_release(struct vdi_owner_graph *graph, struct vdi_owner_node *node);

#endif
