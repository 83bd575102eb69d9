/* The struct of a check, shared by garbage_work.c and garbage_search.c. On the actor, unless stated
 * otherwise. */
#ifndef VDI_GARBAGE_WORK_STATE_H
#define VDI_GARBAGE_WORK_STATE_H

#include "garbage_state.h"

enum vdi_garbage_owner_class {
	VDI_GARBAGE_OWNER_SOLID,
	VDI_GARBAGE_OWNER_DANGLING,
	VDI_GARBAGE_OWNER_WAITING
};

struct vdi_garbage_owner {
	struct vd_bytes group, kind, name, uid; /* point into the tree */
	enum vdi_garbage_owner_class class;
};

struct vdi_garbage_work {
	struct vdi_garbage_work	     *next; /* list of the collector */
	struct vdi_garbage_collector *collector;
	struct vdi_owner_node	     *node;
	struct vdi_garbage_target     target;
	struct vdi_resource_set	     *set; /* a reference */
	struct vdi_control_return     back;

	/* Results of the last operation. */
	vd_status	       result;
	struct vd_error	       error;
	struct vd_object      *answer; /* a reference */
	struct vdi_object_call call;

	/* The object. */
	struct vd_object	 *object; /* a reference; the tree points into it */
	struct vdi_tree		  tree;
	struct vdi_node		 *metadata;
	struct vdi_garbage_owner *owners;
	size_t			  owner_count;
	size_t			  at;
	bool			  is_confirming; /* reading an absent owner from the store */
	char			  revision[24];
	struct vdi_delete_options options;
	const char		 *finalizer; /* the one to remove */

	/* The search for dependents. */
	bool		     is_foreground;
	size_t		     kind_at;
	struct vd_list	    *list;
	struct vdi_resource *kind;
	size_t		     call_count, found;
	bool		     has_failed;
};

/* End the check and free the work; the collector continues with end. */
void vdi_garbage_work_finish_after(struct vdi_garbage_work *work, enum vdi_garbage_end end, vd_dur delay);
void vdi_garbage_work_finish(struct vdi_garbage_work *work, enum vdi_garbage_end end);
/* Removes the finalizer (a literal) from the object, and ends the check. */
void vdi_garbage_work_remove_finalizer(struct vdi_garbage_work *work, const char *finalizer);
/* Searches the dependents of the object, and ends the check. */
void vdi_garbage_search_start(struct vdi_garbage_work *work);

#endif
