/* One change or deletion of an object, by the server itself or for a request, with all its attempts and the
 * rules of deletion.h.
 *
 * The caller owns the memory of a call, fills its first part, and keeps everything that it points to until
 * done. Asynchronous as vedette/cacher.h: done is called exactly once, on any thread, possibly before the
 * function returns. Afterwards the caller owns the results in the call; vdi_object_call_fini frees them.
 */
#ifndef VDI_OBJECT_CALL_H
#define VDI_OBJECT_CALL_H

#include "deletion.h"
#include "work_queue.h"

struct vdi_object_call;

/* Changes root in place, on a thread of the store, possibly several times; *ret_changed: something was
 * changed. An error ends the call; VD_NOMEM. */
typedef vd_status (*vdi_object_edit_fn)(struct vdi_object_call *call, struct vdi_tree *tree,
					struct vdi_node *root, bool *ret_changed);

struct vdi_object_call {
	/* Filled by the caller. */
	const struct vdi_resource	*resource;
	struct vd_bytes			 namespace_name;
	struct vd_bytes			 name;
	struct vd_preconditions		 preconditions; /* of a change; a deletion has those of its options */
	const struct vdi_delete_options *options;	/* of a deletion */
	vdi_object_edit_fn		 edit;		/* of a change */
	vd_wall				 now;
	/* For a deletion that must not be planned on an event loop if the object is long; NULL: any thread
	 * may plan. */
	struct vdi_work_queue *queue;
	void (*done)(struct vdi_object_call *call);
	void *arg;

	/* Results. VD_OK: object is the present state or, if it was removed, the last one; revision is the
	 * one to report with it. */
	vd_status	       result;
	struct vd_error	       error;
	struct vdi_http_status status; /* code other than 0: a rule refused the call, with upstream's text */
	struct vd_object      *object; /* a reference */
	vd_rev		       revision;
	bool		       is_removed;
	struct vdi_deletion    deletion; /* uid of the deleted object */

	/* Private. */
	struct vdi_out	current;
	vd_rev		seen;
	unsigned	tries;
	bool		is_over;
	bool		is_planned;  /* the plan below is for the state at revision seen */
	vd_status	planned;     /* result of the planning */
	bool		is_too_long; /* the last attempt met an object that only a worker may plan */
	struct vdi_work work;
};

#define VDI_OBJECT_CALL_TRIES_MAX 8

/* DELETE: removes the object, or marks it if something holds it. VD_NOT_FOUND, VD_PRECONDITION, VD_CONFLICT
 * (too many concurrent changes), and the store's errors. */
void vdi_object_call_delete(struct vdi_object_call *call);
/* Reads, edits and writes the object, again after a conflict; removes it if the edit removed the last thing
 * that held it. Writes nothing if the edit changed nothing. */
void vdi_object_call_change(struct vdi_object_call *call);
/* Frees the results of a finished call; the caller's part stays. */
void vdi_object_call_fini(struct vdi_object_call *call);

#endif
