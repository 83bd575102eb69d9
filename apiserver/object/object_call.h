/* One change or deletion of an object by the server itself or for a request, from its first attempt to its
 * end, by the rules of deletion.h.
 *
 * A call is memory of its caller's, who fills the first part and must keep everything it points to until
 * done. Asynchronous as vedette/cacher.h: done is called exactly once, from any thread, perhaps before the
 * function returns. What done finds in the call is the caller's; vdi_object_call_fini frees it.
 */
#ifndef VDI_OBJECT_CALL_H
#define VDI_OBJECT_CALL_H

#include "deletion.h"
#include "work_queue.h"

struct vdi_object_call;

/* Changes root in place, on a thread of the store, perhaps several times; true: something was changed.
 * VD_NOMEM. Anything else ends the call. */
typedef vd_status (*vdi_object_edit_fn)(struct vdi_object_call *call, struct vdi_tree *tree,
					struct vdi_node *root, bool *ret_changed);

struct vdi_object_call {
	/* The caller's. */
	const struct vdi_resource	*resource;
	struct vd_bytes			 namespace_name;
	struct vd_bytes			 name;
	struct vd_preconditions		 preconditions; /* of a change; a deletion has those of its options */
	const struct vdi_delete_options *options;	/* of a deletion */
	vdi_object_edit_fn		 edit;		/* of a change */
	vd_wall				 now;
	/* of a deletion that a loop must not plan when the object is long; NULL: any thread may */
	struct vdi_work_queue *queue;
	void (*done)(struct vdi_object_call *call);
	void *arg;

	/* The end. VD_OK: object is the present or, if it was removed, last state, revision what to show with
	 * it. */
	vd_status	       result;
	struct vd_error	       error;
	struct vdi_http_status status; /* code other than 0: refused by a rule, as upstream words it */
	struct vd_object      *object; /* a reference */
	vd_rev		       revision;
	bool		       is_removed;
	struct vdi_deletion    deletion; /* uid of what was deleted */

	/* Private. */
	struct vdi_out	current;
	vd_rev		seen;
	unsigned	tries;
	bool		is_over;
	bool		is_planned;  /* for the state of `seen` */
	vd_status	planned;     /* what came of it */
	bool		is_too_long; /* the last attempt met a state that only the queue may plan */
	struct vdi_work work;
};

#define VDI_OBJECT_CALL_TRIES_MAX 8

/* DELETE: removes the object, or marks it when something keeps it. VD_NOT_FOUND, VD_PRECONDITION, VD_CONFLICT
 * (it changed too often), and what a store says. */
void vdi_object_call_delete(struct vdi_object_call *call);
/* Reads, edits, writes, again while others write; removes the object when the edit took away the last thing
 * that kept it. No write without a change. */
void vdi_object_call_change(struct vdi_object_call *call);
/* Forgets what a finished call holds; the caller's part stays. */
void vdi_object_call_fini(struct vdi_object_call *call);

#endif
