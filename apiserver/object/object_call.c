/* The two state machines:
 *
 *   delete:  delete if the plan says REMOVE --plan says MARK--> update with the plan
 *            --meanwhile REMOVE--> delete again
 *   change:  update --the edit removes the last finalizer--> delete if the state is still the same
 *            --another writer was faster--> update again
 *
 * Each attempt makes a new plan, from the state that it would overwrite. The number of attempts is small and
 * bounded, because each one recurses if the store answers at once.
 */
#include "object_call.h"

#include "stored_version.h"

static void try_delete(struct vdi_object_call *call);
static void try_change(struct vdi_object_call *call);

void vdi_object_call_fini(struct vdi_object_call *call)
{
	call->object = vd_object_unref(call->object);
	vdi_out_fini(&call->deletion.text);
	vdi_out_fini(&call->current);
}

static vd_status look(struct vdi_object_call *call, struct vd_object *current)
{
	call->seen = vd_object_revision(current);
	vdi_out_reset(&call->current);
	vdi_object_write(&call->current, NULL, current, call->seen);
	return call->current.failed ? VD_NOMEM : VD_OK;
}

static void finish(struct vdi_object_call *call, vd_status status, struct vd_object *object, vd_rev revision,
		   const struct vd_error *error)
{
	call->result = status;
	call->error = (struct vd_error) { .code = status };
	if (error)
		call->error = *error;
	if (status == VD_OK)
		call->object = vd_object_ref(object);
	call->revision = revision;
	call->done(call);
}

static void fail(struct vdi_object_call *call, vd_status status)
{
	struct vd_error error = { .code = VD_OK };

	(void) vd_error_set(&error, status, "%s", vd_status_sentence(status));
	finish(call, status, NULL, 0, &error);
}

/* ---- Deletion ---- */

/* Plans once per state: a store may ask again with the same one before it accepts a refusal. */
static vd_status plan(struct vdi_object_call *call, struct vd_object *current, struct vd_error *reterr)
{
	if (!call->is_planned || call->seen != vd_object_revision(current)) {
		if (call->queue && vd_kv_value(vd_object_kv(current)).size > VDI_WORK_BYTES_SHORT &&
		    !vdi_work_is_current()) {
			call->is_too_long = true;
			return vd_error_set(reterr, VD_CANCELED,
					    "the object is long: a worker has to plan the deletion");
		}
		call->is_planned = true;
		call->planned = look(call, current);
		if (call->planned == VD_OK)
			call->planned = vdi_deletion_plan(call->resource, call->options, call->now,
							  vdi_out_slice(&call->current), &call->deletion,
							  &call->status);
	}
	return call->planned == VD_OK ?
		       VD_OK :
		       vd_error_set(reterr, call->planned, "%s", vd_status_sentence(call->planned));
}

static void run_delete(struct vdi_work *work)
{
	try_delete(VDI_CONTAINER_OF(work, struct vdi_object_call, work));
}

/* Returns true if the attempt ended because the object is long; a worker repeats it. */
static bool retries_on_worker(struct vdi_object_call *call)
{
	vd_status status = VD_CONFLICT;

	if (!call->is_too_long)
		return false;
	call->is_too_long = false;
	call->work.run = run_delete;
	if (++call->tries < VDI_OBJECT_CALL_TRIES_MAX)
		status = vdi_work_queue_post(call->queue, &call->work);
	if (status != VD_OK)
		fail(call, status);
	return true;
}

/* Runs on a thread of the store or on a worker. */
static vd_status check_removal(void *arg, struct vd_object *current, struct vd_error *reterr)
{
	struct vdi_object_call *call = arg;

	VDI_TRY(plan(call, current, reterr));
	return call->deletion.decision == VDI_DELETION_REMOVE ?
		       VD_OK :
		       vd_error_set(reterr, VD_CANCELED, "a finalizer or grace period keeps the object");
}

/* Runs on a thread of the store. */
static vd_status mark_current(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			      int64_t *ret_ttl_s, struct vd_error *reterr)
{
	struct vdi_object_call *call = arg;

	VDI_TRY(plan(call, current, reterr));
	if (call->deletion.decision == VDI_DELETION_REMOVE)
		return vd_error_set(reterr, VD_CANCELED, "nothing keeps the object any more");
	*ret_value = call->deletion.decision == VDI_DELETION_WAIT ? vd_kv_value(vd_object_kv(current)) :
								    vdi_out_slice(&call->deletion.text);
	if (call->resource->ttl_s)
		*ret_ttl_s = call->resource->ttl_s;
	return VD_OK;
}

static void marked(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		   const struct vd_error *error)
{
	struct vdi_object_call *call = arg;

	if (status == VD_CANCELED && retries_on_worker(call))
		return;
	if (status == VD_CANCELED && call->deletion.decision == VDI_DELETION_REMOVE &&
	    ++call->tries < VDI_OBJECT_CALL_TRIES_MAX)
		try_delete(call);
	else if (status == VD_CANCELED)
		fail(call, VD_CONFLICT);
	else
		finish(call, status, object, object ? vd_object_revision(object) : revision, error);
}

static void removed(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		    const struct vd_error *error)
{
	struct vdi_object_call *call = arg;
	vd_status		result;

	if (status == VD_CANCELED && retries_on_worker(call))
		return;
	if (status != VD_CANCELED || call->deletion.decision == VDI_DELETION_REMOVE) {
		call->is_removed = status == VD_OK;
		finish(call, status, object, revision, error);
		return;
	}
	result = vd_cacher_update(call->resource->cacher, call->namespace_name, call->name, false,
				  &call->preconditions, mark_current, marked, call);
	if (result != VD_OK)
		fail(call, result);
}

static void try_delete(struct vdi_object_call *call)
{
	vd_status status = vd_cacher_delete(call->resource->cacher, call->namespace_name, call->name,
					    &call->preconditions, check_removal, removed, call);

	if (status != VD_OK)
		fail(call, status);
}

void vdi_object_call_delete(struct vdi_object_call *call)
{
	call->tries = 0;
	call->is_removed = false;
	call->is_planned = call->is_too_long = false;
	call->status.code = 0;
	call->preconditions = (struct vd_preconditions) { call->options->uid, call->options->revision };
	try_delete(call);
}

/* ---- Change ---- */

static vd_status edit_tree(struct vdi_object_call *call, struct vdi_tree *tree, bool *ret_changed)
{
	struct vdi_node *root, *old_root, *metadata;

	VDI_TRY(vdi_tree_parse(tree, vdi_out_slice(&call->current), &old_root, NULL));
	root = vdi_tree_copy(tree, old_root);
	if (root == NULL)
		return VD_NOMEM;
	VDI_TRY(call->edit(call, tree, root, ret_changed));
	call->is_over = vdi_deletion_is_over(call->resource, tree, root, old_root);
	if (!*ret_changed || call->is_over)
		return VD_OK;
	metadata = vdi_tree_object_at(tree, root, "metadata");
	if (metadata == NULL)
		return VD_NOMEM;
	(void) vdi_tree_remove(tree, metadata, vd_bytes_of("resourceVersion"));
	vdi_out_reset(&call->deletion.text);
	vdi_tree_write(&call->deletion.text, root);
	return call->deletion.text.failed ? VD_NOMEM : VD_OK;
}

/* Runs on a thread of the store. */
static vd_status edit_current(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			      int64_t *ret_ttl_s, struct vd_error *reterr)
{
	struct vdi_object_call *call = arg;
	struct vdi_tree		tree = VDI_TREE_INIT;
	bool			is_changed = false;
	vd_status		status = look(call, current);

	call->is_over = false;
	if (status == VD_OK)
		status = edit_tree(call, &tree, &is_changed);
	vdi_tree_fini(&tree);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	if (call->is_over)
		return vd_error_set(reterr, VD_CANCELED, "nothing keeps the object any more");
	*ret_value = is_changed ? vdi_out_slice(&call->deletion.text) : vd_kv_value(vd_object_kv(current));
	if (call->resource->ttl_s)
		*ret_ttl_s = call->resource->ttl_s;
	return VD_OK;
}

/* Allows the removal only of the state that the edit saw. */
static vd_status is_what_was_seen(void *arg, struct vd_object *current, struct vd_error *reterr)
{
	struct vdi_object_call *call = arg;

	if (vd_object_revision(current) == call->seen)
		return VD_OK;
	return vd_error_set(reterr, VD_CONFLICT, "the object was changed by another writer");
}

static void ended(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		  const struct vd_error *error)
{
	struct vdi_object_call *call = arg;

	if (status == VD_CONFLICT && ++call->tries < VDI_OBJECT_CALL_TRIES_MAX) {
		try_change(call);
		return;
	}
	call->is_removed = status == VD_OK;
	finish(call, status, object, revision, error);
}

static void changed(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		    const struct vd_error *error)
{
	struct vdi_object_call *call = arg;
	vd_status		result;

	if (status != VD_CANCELED || !call->is_over) {
		finish(call, status, object, object ? vd_object_revision(object) : revision, error);
		return;
	}
	result = vd_cacher_delete(call->resource->cacher, call->namespace_name, call->name,
				  &call->preconditions, is_what_was_seen, ended, call);
	if (result != VD_OK)
		fail(call, result);
}

static void try_change(struct vdi_object_call *call)
{
	vd_status status = vd_cacher_update(call->resource->cacher, call->namespace_name, call->name, false,
					    &call->preconditions, edit_current, changed, call);

	if (status != VD_OK)
		fail(call, status);
}

void vdi_object_call_change(struct vdi_object_call *call)
{
	call->tries = 0;
	call->is_removed = false;
	call->status.code = 0;
	try_change(call);
}
