/* One call of Create, Get, GuaranteedUpdate or Delete, shared by storage_op.c (calls, requests and their
 * answers), storage_decide.c (the decision on a state) and storage_lease.c (the lease of a write). An
 * operation belongs to one thread at a time: to the issuer or to the callback of its current request. */
#ifndef VDI_STORAGE_OP_H
#define VDI_STORAGE_OP_H

#include "storage_state.h"

enum vdi_storage_op_kind { VDI_STORAGE_GET, VDI_STORAGE_CREATE, VDI_STORAGE_UPDATE, VDI_STORAGE_DELETE };
enum vdi_storage_step { VDI_STEP_READ, VDI_STEP_DECIDE, VDI_STEP_LEASE, VDI_STEP_WRITE, VDI_STEP_DONE };

struct vdi_storage_op {
	struct vdi_storage	*storage;
	enum vdi_storage_op_kind kind;
	enum vdi_storage_step	 step;
	vd_mono			 issued;  /* start of the current request */
	unsigned		 arrived; /* issuer and callback; the second one continues */

	struct vd_bytes	  key;			       /* own copy */
	char		 *uid, *precondition_revision; /* own copies, or NULL */
	struct vd_object *guard;		       /* reference, or NULL; create only */
	bool		  create_missing;
	vd_update_fn	  update;
	vd_validate_fn	  validate;
	vd_object_fn	  done;
	void		 *arg;
	vd_rev		  minimum;

	/* State on which the decision is based. */
	struct vd_object *current; /* reference; NULL: missing */
	bool		  stale_possible;
	/* Failed decision on a suggestion, with its revision, until it is confirmed. */
	vd_status	first_status;
	struct vd_error first_error;
	vd_rev		first_revision;

	/* Data to write. */
	struct vd_kv	      *wanted; /* own copy of key and value, without resourceVersion */
	struct vd_object      *wanted_object;
	int64_t		       ttl_s;
	int64_t		       lease;
	vd_mono		       lease_asked_at;
	bool		       lease_was_gone; /* retried once with a new lease */
	struct vdi_storage_op *lease_next;     /* in the list of operations that wait for a grant */

	/* Result. */
	vd_status	  status;
	struct vd_error	  error;
	struct vd_object *result;
	vd_rev		  revision;
};

/* ---- storage_op.c ---- */

/* The issuer, after the store's function has returned, and the callback both call this; the second one
 * continues the operation, which may free it. */
void vdi_storage_op_meet(struct vdi_storage_op *op);
/* Sets the result; the loop answers. */
void vdi_storage_op_finish(struct vdi_storage_op *op, vd_status status);
/* error may be NULL or empty: the sentence of status. */
void vdi_storage_op_finish_error(struct vdi_storage_op *op, vd_status status, const struct vd_error *error);
/* Makes the record to write, and the object that is the result if the write succeeds. VD_INVALID_ARGUMENT,
 * errors of the codec; op->error is set. */
vd_status vdi_storage_op_set_wanted(struct vdi_storage_op *op, struct vd_bytes value, int64_t ttl_s);

/* ---- storage_decide.c ---- */

/* Decides on op->current: finishes the operation, or sets its next step. */
void vdi_storage_op_decide(struct vdi_storage_op *op);
/* Fills error as upstream's StorageError; inner may be NULL. Returns code. */
vd_status vdi_storage_error(struct vd_error *error, vd_status code, struct vd_bytes key, vd_rev revision,
			    const char *inner);

/* ---- storage_lease.c ---- */

/* Returns true if the operation can use the last granted lease; op->lease is set. */
bool vdi_storage_lease_reuse(struct vdi_storage_op *op);
/* Requests a lease, one at a time: a write that arrives meanwhile waits, and can most likely use the same
 * one. */
vd_status vdi_storage_lease_issue(struct vdi_storage_op *op);
/* Handles the loss of a reused lease (revoked, or missing after the store was restored): requests another
 * one, once. */
bool vdi_storage_lease_was_lost(struct vdi_storage_op *op, vd_status status);

#endif
