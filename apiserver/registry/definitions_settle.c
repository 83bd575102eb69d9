/* The writes that follow from the state of a definition: its status, the deletion of its objects, the removal
 * of its finalizer. One write of a definition is outstanding at a time. Its edit runs on a thread of the
 * store and uses only the copies in struct vdi_definition_call.
 */
#include "definitions_state.h"

#include <stdio.h>

#include "crd_cleanup.h"
#include "env.h"
#include "kind_cache.h"

#define CACHE_POLL VD_MS(5)
#define RETRY VD_MS(200)
#define CLEANUP_RETRY VD_SECONDS(1)

/* ---- Statuses ---- */

static vd_status write_current(struct vdi_definition_call *call, struct vd_object *current)
{
	struct vd_object_json json;

	vdi_out_reset(&call->current);
	vd_object_json(current, vd_object_revision(current), &json);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(json.piece); i++)
		vdi_out_bytes(&call->current, json.piece[i]);
	return call->current.failed ? VD_NOMEM : VD_OK;
}

/* Writes the definition with its new status to call->text. VD_CANCELED: this is not the state that was judged
 * (another UID or generation). */
static vd_status edit_status(struct vdi_definition *definition, struct vd_object *current, bool *ret_changed)
{
	struct vdi_definition_call *call = &definition->status;
	struct vdi_tree		    tree = VDI_TREE_INIT;
	struct vdi_node		   *root, *metadata;
	vd_status		    status = write_current(call, current);

	if (status == VD_OK)
		status = vdi_tree_parse(&tree, vdi_out_slice(&call->current), &root, NULL);
	if (status == VD_OK) {
		metadata = vdi_tree_get(&tree, root, vd_bytes_of("metadata"));
		if (!vd_bytes_equal(vdi_tree_string_of(vdi_tree_get(&tree, metadata, vd_bytes_of("uid"))),
				    vd_bytes_of(call->uid)) ||
		    vdi_tree_int_of(vdi_tree_get(&tree, metadata, vd_bytes_of("generation")), 0) !=
			    call->generation)
			status = VD_CANCELED;
	}
	if (status == VD_OK)
		status = vdi_crd_set_status(&tree, root, &call->state,
					    vd_env_wall(definition->owner->kinds->host.env), ret_changed);
	if (status == VD_OK && call->is_removal) {
		const struct vdi_node *finalizers;

		vdi_crd_remove_finalizer(&tree, root);
		finalizers = vdi_tree_find(&tree, root, "metadata.finalizers");
		call->has_others = finalizers && finalizers->count > 0;
		*ret_changed = true;
	}
	if (status == VD_OK) {
		(void) vdi_tree_remove(&tree, metadata, vd_bytes_of("resourceVersion"));
		vdi_out_reset(&call->text);
		vdi_tree_write(&call->text, root);
		status = call->text.failed ? VD_NOMEM : VD_OK;
	}
	vdi_tree_fini(&tree);
	return status == VD_BAD_REQUEST ? VD_CANCELED : status;
}

/* Runs on a thread of the store. */
static vd_status edit_current(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			      int64_t *ret_ttl_s, struct vd_error *reterr)
{
	struct vdi_definition *definition = arg;
	bool		       is_changed = false;
	vd_status	       status = edit_status(definition, current, &is_changed);

	(void) ret_ttl_s;
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	*ret_value =
		is_changed ? vdi_out_slice(&definition->status.text) : vd_kv_value(vd_object_kv(current));
	return VD_OK;
}

/* Runs on a thread of the store. Permits the deletion only if no other finalizer exists. */
static vd_status may_be_deleted(void *arg, struct vd_object *current, struct vd_error *reterr)
{
	struct vdi_definition *definition = arg;
	bool		       is_changed = false;
	vd_status	       status = edit_status(definition, current, &is_changed);

	if (status == VD_OK && definition->status.has_others)
		status = VD_CANCELED;
	return status == VD_OK ? VD_OK : vd_error_set(reterr, status, "%s", vd_status_sentence(status));
}

static void status_answered(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			    const struct vd_error *error)
{
	struct vdi_definition *definition = arg;
	struct vdi_kinds      *kinds = definition->owner->kinds;

	(void) object;
	(void) revision;
	(void) error;
	definition->status.result = status;
	atomic_store(&definition->status.call, VDI_DEFINITION_CALL_ANSWERED);
	vdi_kinds_call_end(kinds); /* the definition may be freed by now */
}

static void call_status(struct vdi_definition *definition, bool as_delete)
{
	struct vdi_definitions *definitions = definition->owner;
	vd_status		status;

	vdi_kinds_call_begin(definitions->kinds);
	atomic_store(&definition->status.call, VDI_DEFINITION_CALL_BUSY);
	if (as_delete)
		status = vd_cacher_delete(definitions->cacher, VD_BYTES_NONE, vd_bytes_of(definition->name),
					  NULL, may_be_deleted, status_answered, definition);
	else
		status = vd_cacher_update(definitions->cacher, VD_BYTES_NONE, vd_bytes_of(definition->name),
					  false, NULL, edit_current, status_answered, definition);
	if (status != VD_OK)
		status_answered(definition, status, NULL, 0, NULL);
}

static void begin_call(struct vdi_definition *definition, bool is_removal)
{
	struct vdi_definition_call *call = &definition->status;

	memcpy(call->conflict_message, definition->conflict_message, sizeof call->conflict_message);
	memcpy(call->cleaning, definition->cleaning, sizeof call->cleaning);
	call->state = (struct vdi_crd_state) { .conflict = definition->conflict,
					       .conflict_message = call->conflict_message,
					       .is_served = definition->is_accepted && definition->is_served,
					       .is_cleaned = definition->is_cleaned,
					       .cleaning = call->cleaning[0] ? call->cleaning : NULL };
	memcpy(call->uid, definition->crd.uid, sizeof call->uid);
	call->generation = definition->crd.generation;
	call->is_removal = is_removal;
	call->has_others = false;
}

/* A kube-apiserver that shares this store relies on the conditions. */
static bool is_shared(const struct vdi_kinds *kinds)
{
	struct vd_store_status store = { 0 };

	return vd_store_status_get(kinds->host.store, &store) == VD_OK && store.remote;
}

/* Writes the status only if it differs. */
static void settle_status(struct vdi_definition *definition, vd_mono now)
{
	bool	  is_changed = false;
	vd_status status;

	if (!definition->is_status_due || definition->status_retry.ns > now.ns ||
	    (definition->is_accepted && !definition->is_served))
		return;
	/* A definition that cannot be parsed has no status to write. A conflict with a kind that only this
	 * server has is not written to a store that other servers share. */
	if (definition->crd.stored == NULL ||
	    (definition->is_conflict_ours && is_shared(definition->owner->kinds))) {
		definition->is_status_due = false;
		return;
	}
	begin_call(definition, false);
	status = edit_status(definition, definition->object, &is_changed);
	definition->is_status_due = status == VD_NOMEM;
	definition->status_retry = status == VD_NOMEM ? vd_mono_add(now, RETRY) : (vd_mono) { 0 };
	if (status == VD_OK && is_changed)
		call_status(definition, false);
}

/* ---- Deletion of a definition ---- */

static void cleanup_begin(void *arg)
{
	vdi_kinds_call_begin(arg);
}

static void cleanup_end(void *arg)
{
	vdi_kinds_call_end(arg);
}

/* Returns true if all of its objects are deleted. */
static bool clean(struct vdi_definition *definition, vd_mono now)
{
	struct vdi_kinds		 *kinds = definition->owner->kinds;
	const struct vdi_crd_cleanup_host host = { kinds->host.env, cleanup_begin, cleanup_end, kinds };
	vd_status			  status = VD_NOMEM;
	size_t				  left = 0;

	if (definition->cleanup_retry.ns > now.ns)
		return false;
	/* No loop starts a create any more; wait for those that were started before. */
	if (definition->cleanup == NULL && atomic_load(&definition->crd.stored->cache->create_count) > 0) {
		definition->cleanup_retry = vd_mono_add(now, CACHE_POLL);
		return false;
	}
	if (definition->cleanup == NULL)
		definition->cleanup = vdi_crd_cleanup_new(&host, definition->crd.stored);
	if (definition->cleanup)
		status = vdi_crd_cleanup_run(definition->cleanup, &left);
	if (status == VD_AGAIN)
		return false;
	if (status != VD_OK) {
		definition->cleanup_retry = vd_mono_add(now, left ? CLEANUP_RETRY : RETRY);
		if (left) {
			(void) snprintf(
				definition->cleaning, sizeof definition->cleaning,
				"%zu instances are left: finalizers keep them, or they cannot be decoded",
				left);
			definition->is_status_due = true;
		}
		return false;
	}
	definition->cleanup = vdi_crd_cleanup_free(definition->cleanup);
	return true;
}

static void settle_end(struct vdi_definition *definition, vd_mono now)
{
	bool has_objects = definition->is_accepted && definition->crd.stored && definition->crd.stored->cache;

	if (!definition->crd.is_terminating || !definition->crd.is_kept ||
	    (definition->is_accepted && (!definition->is_served || !vdi_definition_is_current(definition))))
		return;
	if (!definition->is_cleaned && has_objects && !clean(definition, now))
		return;
	definition->is_cleaned = true;
	if (atomic_load(&definition->status.call) != VDI_DEFINITION_CALL_IDLE ||
	    definition->status_retry.ns > now.ns)
		return;
	begin_call(definition, true);
	call_status(definition, true);
}

static void take_answer(struct vdi_definition *definition, vd_mono now)
{
	struct vdi_definition_call *call = &definition->status;

	if (atomic_load(&call->call) != VDI_DEFINITION_CALL_ANSWERED)
		return;
	atomic_store(&call->call, VDI_DEFINITION_CALL_IDLE);
	if (call->is_removal && call->result == VD_CANCELED && call->has_others) {
		call_status(definition, false); /* keep the definition; remove only our finalizer */
		return;
	}
	if (call->result == VD_OK || call->result == VD_NOT_FOUND || call->result == VD_CANCELED) {
		definition->status_retry = call->is_removal ?
						   vd_mono_add(now, RETRY) :
						   (vd_mono) { 0 }; /* wait for the event of its deletion */
		return;
	}
	definition->is_status_due = true;
	definition->status_retry = vd_mono_add(now, RETRY);
}

vd_mono vdi_definitions_settle(struct vdi_definitions *definitions)
{
	vd_mono now = vd_env_now(definitions->kinds->host.env), due = VD_NEVER;

	vdi_definitions_drain_retired(definitions);
	for (struct vdi_definition *definition = definitions->first; definition;
	     definition = definition->next) {
		take_answer(definition, now);
		if (definition->object == NULL)
			continue;
		if (!definition->is_served && definition->is_accepted &&
		    vdi_definition_is_current(definition)) {
			definition->is_served = true;
			definition->is_status_due = true;
		}
		if (definitions->kinds->host.options->read_only)
			continue;
		if (atomic_load(&definition->status.call) == VDI_DEFINITION_CALL_IDLE)
			settle_status(definition, now);
		settle_end(definition, now);
		if (definition->is_status_due && definition->status_retry.ns > now.ns)
			due.ns = VDI_MIN(due.ns, definition->status_retry.ns);
		if (definition->crd.is_terminating && definition->cleanup_retry.ns > now.ns)
			due.ns = VDI_MIN(due.ns, definition->cleanup_retry.ns);
		if (definition->crd.is_terminating && definition->status_retry.ns > now.ns)
			due.ns = VDI_MIN(due.ns, definition->status_retry.ns);
	}
	return due;
}
