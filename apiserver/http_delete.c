/* DELETE of one object and of a collection (R-664..R-669).
 *
 *   delete --no finalizers--> gone
 *     \--finalizers--> mark (deletionTimestamp) --meanwhile none left--> delete
 */
#include <stdio.h>

#include "delete_options.h"
#include "http_write.h"

static void try_delete(struct vdi_request *request);

/* ---- One target ---- */

/* On a thread of the store. Refuses an object that finalizers keep. */
static vd_status check_finalizers(void *arg, struct vd_object *current, struct vd_error *reterr)
{
	struct vdi_request  *request = arg;
	struct vdi_write    *write = request->write;
	struct vdi_tree tree = VDI_TREE_INIT;
	struct vdi_node	    *root;
	vd_status	     status = vdi_write_look(write, current);
	const struct vdi_node *finalizers;

	write->edited.has_finalizers = false;
	if (status == VD_OK)
		status = vdi_tree_parse(&tree, vdi_out_slice(&write->current), &root, NULL);
	if (status == VD_OK) {
		struct vd_bytes uid = vdi_tree_string_of(vdi_tree_find(&tree, root, "metadata.uid"));

		(void) snprintf(write->uid, sizeof write->uid, "%.*s", (int) VDI_MIN(uid.size, sizeof write->uid - 1),
				uid.size ? (const char *) uid.data : "");
		finalizers = vdi_tree_find(&tree, root, "metadata.finalizers");
		write->edited.has_finalizers = finalizers && finalizers->count > 0;
	}
	vdi_tree_fini(&tree);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	return write->edited.has_finalizers ? vd_error_set(reterr, VD_CANCELED, "finalizers keep the object") : VD_OK;
}

/* On a thread of the store. */
static vd_status mark_current(void *arg, struct vd_object *current, struct vd_bytes *ret_value, int64_t *ret_ttl_s, struct vd_error *reterr)
{
	struct vdi_request *request = arg;
	struct vdi_write   *write = request->write;
	vd_status	    status = vdi_write_look(write, current);

	if (status == VD_OK)
		status = vdi_edit_mark_deleted(&write->edit, vdi_out_slice(&write->current), &write->edited, &write->status);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	if (!write->edited.has_finalizers)
		return vd_error_set(reterr, VD_CANCELED, "nothing keeps the object any more");
	*ret_value = write->edited.unchanged ? vd_kv_value(vd_object_kv(current)) : vdi_out_slice(&write->edited.text);
	if (request->resource->ttl_s)
		*ret_ttl_s = request->resource->ttl_s;
	return VD_OK;
}

static struct vd_preconditions preconditions_of(const struct vdi_write *write)
{
	return (struct vd_preconditions) { write->precondition_uid, write->precondition_revision };
}

static void marked(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	if (request->result == VD_CANCELED && !write->edited.has_finalizers && ++write->tries < VDI_WRITE_TRIES_MAX) {
		try_delete(request);
		return;
	}
	write->marked = request->result == VD_OK;
	write->deleted(request);
}

static void deleted_target(struct vdi_request *request)
{
	struct vdi_write       *write = request->write;
	struct vd_preconditions preconditions = preconditions_of(write);

	if (request->result != VD_CANCELED || !write->edited.has_finalizers) {
		write->deleted(request);
		return;
	}
	vdi_request_await(request, marked);
	vdi_request_awaited(request,
			    vd_cacher_update(request->resource->cacher, write->edit.namespace_name, write->edit.name, false, &preconditions,
					     mark_current, vdi_request_got_object, request),
			    NULL);
}

static void try_delete(struct vdi_request *request)
{
	struct vdi_write       *write = request->write;
	struct vd_preconditions preconditions = preconditions_of(write);

	vdi_request_await(request, deleted_target);
	vdi_request_awaited(request,
			    vd_cacher_delete(request->resource->cacher, write->edit.namespace_name, write->edit.name, &preconditions,
					     check_finalizers, vdi_request_got_object, request),
			    NULL);
}

void vdi_write_delete_target(struct vdi_request *request)
{
	request->write->tries = 0;
	request->write->marked = false;
	request->write->uid[0] = 0;
	try_delete(request);
}

/* ---- DELETE of an object ---- */

static void reply_success(struct vdi_request *request)
{
	struct vdi_http_status *status = &request->status;

	vdi_http_status_set(status, 200, "", "%s", "");
	status->success = true;
	vdi_http_status_details(status, request->route.name, request->resource->group, request->resource->plural);
	(void) snprintf(status->uid, sizeof status->uid, "%s", request->write->uid);
	vdi_request_reply_status(request, status, "");
}

static void deleted(struct vdi_request *request)
{
	if (request->result != VD_OK)
		vdi_write_fail(request, "delete");
	else if (request->write->marked)
		vdi_request_reply_object(request, 200, request->object, vd_object_revision(request->object));
	else
		reply_success(request);
}

/* */
static bool holds(struct vdi_request *request, const char *what, struct vd_bytes wanted, struct vd_bytes present)
{
	char why[256];

	if (wanted.size == 0 || vd_bytes_equal(wanted, present))
		return true;
	(void) snprintf(why, sizeof why, "Precondition failed: %s in precondition: %.*s, %s in object meta: %.*s", what,
			(int) VDI_MIN(wanted.size, (size_t) 64), (const char *) wanted.data, what, (int) VDI_MIN(present.size, (size_t) 64),
			present.size ? (const char *) present.data : "");
	vdi_http_status_conflict(&request->status, request->resource->group, request->resource->plural, request->route.name, why);
	vdi_request_fail(request, &request->status);
	return false;
}

static void dry_deleted(struct vdi_request *request)
{
	struct vdi_write    *write = request->write;
	struct vdi_tree tree = VDI_TREE_INIT;
	struct vdi_node	    *root;
	struct vd_bytes	     revision = VD_BYTES_NONE, uid = VD_BYTES_NONE;

	if (request->result != VD_OK) {
		vdi_request_fail_result(request, "delete", request->result, &request->error);
		return;
	}
	if (vdi_write_look(write, request->object) != VD_OK ||
	    vdi_tree_parse(&tree, vdi_out_slice(&write->current), &root, NULL) != VD_OK) {
		vdi_tree_fini(&tree);
		vdi_request_fail_nomem(request);
		return;
	}
	uid = vdi_tree_string_of(vdi_tree_find(&tree, root, "metadata.uid"));
	revision = vdi_tree_string_of(vdi_tree_find(&tree, root, "metadata.resourceVersion"));
	(void) snprintf(write->uid, sizeof write->uid, "%.*s", (int) VDI_MIN(uid.size, sizeof write->uid - 1), uid.size ? (const char *) uid.data : "");
	if (holds(request, "UID", write->precondition_uid, uid) && holds(request, "ResourceVersion", write->precondition_revision, revision))
		reply_success(request);
	vdi_tree_fini(&tree);
}

/* False after an answer was sent. */
static bool begin(struct vdi_request *request)
{
	struct vdi_delete_options options;
	struct vd_bytes		  type = VD_BYTES_NONE;
	bool			  protobuf;
	struct vdi_write	 *write = vdi_write_begin(request, false, false);

	if (write == NULL)
		return false;
	(void) vdi_http_header_get(&request->head, "Content-Type", &type);
	protobuf = vdi_media_type_is(type, "application/vnd.kubernetes.protobuf");
	if (!protobuf && request->body_size && !vdi_write_is_json(request))
		return false;
	if (!vdi_params_validate_delete(&request->params, &request->status) ||
	    vdi_delete_options_parse(write->edit.body, protobuf, &options, &request->status) != VD_OK) {
		vdi_request_fail(request, &request->status);
		return false;
	}
	write->options_text = options.text;
	write->precondition_uid = options.uid;
	write->precondition_revision = options.revision;
	write->dry_run |= options.dry_run;
	return true;
}

void vdi_handle_delete(struct vdi_request *request)
{
	if (!begin(request))
		return;
	request->write->deleted = deleted;
	if (!request->write->dry_run) {
		vdi_write_delete_target(request);
		return;
	}
	vdi_request_await(request, dry_deleted);
	vdi_request_awaited(request,
			    vd_cacher_get(request->resource->cacher, request->route.namespace_name, request->route.name, VD_REVISION_UNSET,
					  vdi_request_got_object, request),
			    NULL);
}

/* ---- DELETE of a collection: one after the other ---- */

static void delete_next(struct vdi_request *request);

static void deleted_one(struct vdi_request *request)
{
	if (request->result != VD_OK && request->result != VD_NOT_FOUND) {
		vdi_write_fail(request, "delete");
		return;
	}
	/* Through the loop, so that answers that come at once do not pile up on the stack. */
	request->resume = delete_next;
	vdi_http_loop_complete(request->loop, request);
}

static void delete_next(struct vdi_request *request)
{
	struct vdi_write *write = request->write;
	struct vd_object *object = write->dry_run ? NULL : vd_list_next(write->list);

	if (object == NULL) {
		write->uid[0] = 0;
		reply_success(request);
		return;
	}
	write->edit.namespace_name = vd_object_namespace(object);
	write->edit.name = vd_object_name(object);
	write->deleted = deleted_one;
	vdi_write_delete_target(request);
}

static void listed(struct vdi_request *request)
{
	if (request->result != VD_OK) {
		vdi_request_fail_result(request, "list", request->result, &request->error);
		return;
	}
	request->write->list = request->list;
	request->list = NULL;
	delete_next(request);
}

void vdi_handle_delete_collection(struct vdi_request *request)
{
	if (begin(request))
		vdi_request_list(request, listed);
}
