/* DELETE of one object and of a collection: request, response and dry run. deletion.c has the rules of a
 * deletion, object_call.c performs it. */
#include <stdio.h>

#include "delete_options.h"
#include "http_handlers.h"
#include "http_write.h"

#define OPTIONS_SIZE_MAX 65536 /* parsed on the loop */

/* ---- One target ---- */

/* On any thread. */
static void target_done(struct vdi_object_call *call)
{
	vdi_request_got_object(call->arg, call->result, call->object, call->revision, &call->error);
}

static void delete_target(struct vdi_request *request, void (*resume)(struct vdi_request *request))
{
	struct vdi_write       *write = request->write;
	struct vdi_object_call *call = &write->call;

	vdi_object_call_fini(call);
	*call = (struct vdi_object_call) { .resource = request->resource,
					   .namespace_name = write->edit.namespace_name,
					   .name = write->edit.name,
					   .options = &write->options,
					   .now = write->edit.now,
					   .queue = &request->server->work,
					   .done = target_done,
					   .arg = request };
	vdi_request_await(request, resume);
	vdi_object_call_delete(call);
	vdi_request_awaited(request, VD_OK, NULL);
}

/* ---- DELETE of an object ---- */

static void reply_success(struct vdi_request *request, const char *uid)
{
	struct vdi_http_status *status = &request->status;

	vdi_http_status_set(status, 200, "", "%s", "");
	status->success = true;
	vdi_http_status_details(status, request->route.name, request->resource->group,
				request->resource->plural);
	(void) snprintf(status->uid, sizeof status->uid, "%s", uid);
	vdi_request_reply_status(request, status, "");
}

/* 202 if the deprecated orphanDependents=false was given and the object still exists, as upstream. */
static int code_of(const struct vdi_request *request, bool is_removed)
{
	return !is_removed && request->write->options.orphan_dependents == VD_FALSE ? 202 : 200;
}

static void fail(struct vdi_request *request)
{
	if (request->write->call.status.code)
		vdi_request_fail(request, &request->write->call.status);
	else
		vdi_request_fail_result(request, "delete", request->result, &request->error);
}

static void deleted(struct vdi_request *request)
{
	struct vdi_object_call *call = &request->write->call;

	if (request->result != VD_OK)
		fail(request);
	else if (call->is_removed && !vdi_deletion_returns_object(request->resource))
		reply_success(request, call->deletion.uid);
	else
		vdi_request_reply_object(request, code_of(request, call->is_removed), request->object,
					 request->revision);
}

/* Checks one precondition. False, with write->status, if it does not hold. */
static bool holds(struct vdi_request *request, const char *what, struct vd_bytes wanted,
		  struct vd_bytes present)
{
	char why[256];

	if (wanted.size == 0 || vd_bytes_equal(wanted, present))
		return true;
	(void) snprintf(
		why, sizeof why, "Precondition failed: %s in precondition: %.*s, %s in object meta: %.*s",
		what, (int) VDI_MIN(wanted.size, (size_t) 64), (const char *) wanted.data, what,
		(int) VDI_MIN(present.size, (size_t) 64), present.size ? (const char *) present.data : "");
	vdi_http_status_conflict(&request->write->status, request->resource->group, request->resource->plural,
				 request->write->edit.name, why);
	return false;
}

static vd_status no_memory(struct vdi_write *write)
{
	vdi_http_status_set(&write->status, 500, "InternalError", "Internal error occurred: out of memory");
	return VD_NOMEM;
}

/* Makes the deletion plan for write->current, at revision write->seen, and checks the preconditions. Sets
 * write->status unless the result is VD_OK. */
static vd_status plan_current(struct vdi_request *request)
{
	struct vdi_write    *write = request->write;
	struct vdi_deletion *deletion = &write->call.deletion;
	char		     revision[24];

	write->status.code = 0;
	if (vdi_deletion_plan(request->resource, &write->options, write->edit.now,
			      vdi_out_slice(&write->current), deletion, &write->status) != VD_OK)
		return write->status.code ? VD_INVALID : no_memory(write);
	(void) snprintf(revision, sizeof revision, "%lld", (long long) write->seen);
	return holds(request, "UID", write->options.uid, vd_bytes_of(deletion->uid)) &&
			       holds(request, "ResourceVersion", write->options.revision,
				     vd_bytes_of(revision)) ?
		       VD_OK :
		       VD_INVALID;
}

/* If the delete would mark the object, writes the marked object, at its present revision, to
 * write->current. */
static vd_status plan_dry(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	VDI_TRY(plan_current(request));
	if (write->call.deletion.decision != VDI_DELETION_MARK)
		return VD_OK;
	return vdi_write_show_dry(write, vdi_out_slice(&write->call.deletion.text));
}

static void dry_planned(struct vdi_request *request)
{
	struct vdi_write    *write = request->write;
	struct vdi_deletion *deletion = &write->call.deletion;

	if (write->computed != VD_OK)
		vdi_request_fail(request, &write->status);
	else if (deletion->decision == VDI_DELETION_MARK)
		vdi_request_reply_text(request, code_of(request, false), vdi_out_slice(&write->current));
	else if (deletion->decision == VDI_DELETION_WAIT || vdi_deletion_returns_object(request->resource))
		vdi_request_reply_object(request, code_of(request, deletion->decision == VDI_DELETION_REMOVE),
					 write->object, write->seen);
	else
		reply_success(request, deletion->uid);
}

static void dry_deleted(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	if (request->result != VD_OK) {
		vdi_request_fail_result(request, "delete", request->result, &request->error);
		return;
	}
	if (vdi_write_note_current(write, request->object) != VD_OK) {
		vdi_request_fail_nomem(request);
		return;
	}
	write->object = vd_object_ref(request->object);
	write->is_long |= write->current.size > VDI_WORK_BYTES_SHORT;
	vdi_write_compute(request, plan_dry, dry_planned);
}

/* False: a response was sent. */
static bool begin(struct vdi_request *request)
{
	struct vd_bytes	  type = VD_BYTES_NONE;
	bool		  protobuf;
	struct vdi_write *write;

	if (request->body_size > OPTIONS_SIZE_MAX) {
		vdi_http_status_set(&request->status, 413, "RequestEntityTooLarge",
				    "Request entity too large: limit is %d", OPTIONS_SIZE_MAX);
		vdi_request_fail(request, &request->status);
		return false;
	}
	write = vdi_write_begin(request, "DeleteOptions");
	if (write == NULL)
		return false;
	(void) vdi_http_header_get(&request->head, "Content-Type", &type);
	protobuf = vdi_media_type_is(type, "application/vnd.kubernetes.protobuf");
	if (!protobuf && request->body_size && !vdi_write_is_json(request))
		return false;
	if (!vdi_params_validate_delete(&request->params, &request->status) ||
	    vdi_delete_options_parse(write->edit.body, protobuf, &write->options, &request->status) !=
		    VD_OK) {
		vdi_request_fail(request, &request->status);
		return false;
	}
	if (request->body_size == 0)
		vdi_delete_options_query(&request->params, &write->options);
	write->dry_run |= write->options.dry_run;
	return true;
}

static void refuse_immortal(struct vdi_request *request)
{
	struct vd_bytes name = request->route.name;

	vdi_http_status_set(&request->status, 403, "Forbidden",
			    "namespaces \"%.*s\" is forbidden: this namespace may not be deleted",
			    (int) name.size, (const char *) name.data);
	vdi_http_status_details(&request->status, name, request->resource->group, request->resource->plural);
	vdi_request_fail(request, &request->status);
}

void vdi_handle_delete(struct vdi_request *request)
{
	if (!begin(request))
		return;
	if (vdi_deletion_is_immortal(request->resource, request->route.name)) {
		refuse_immortal(request);
		return;
	}
	if (!request->write->dry_run) {
		delete_target(request, deleted);
		return;
	}
	vdi_request_await(request, dry_deleted);
	vdi_request_awaited(request,
			    vd_cacher_get(request->resource->cacher, request->route.namespace_name,
					  request->route.name, VD_REVISION_UNSET, vdi_request_got_object,
					  request),
			    NULL);
}

/* ---- DELETE of a collection, one object at a time ---- */

static void delete_next(struct vdi_request *request);

static void deleted_one(struct vdi_request *request)
{
	if (request->result != VD_OK && request->result != VD_NOT_FOUND) {
		fail(request);
		return;
	}
	/* Through the loop, so that calls that complete at once do not recurse. */
	request->resume = delete_next;
	vdi_http_loop_complete(request->loop, request);
}

/* In a dry run, checks the preconditions and rules for each object. */
static vd_status plan_all(struct vdi_request *request)
{
	struct vdi_write *write = request->write;
	struct vd_object *object;

	while ((object = vd_list_next(write->list)) != NULL) {
		if (vdi_write_note_current(write, object) != VD_OK)
			return no_memory(write);
		write->edit.name = vd_object_name(object); /* for the error message */
		VDI_TRY(plan_current(request));
	}
	return VD_OK;
}

static void all_planned(struct vdi_request *request)
{
	if (request->write->computed == VD_OK)
		reply_success(request, "");
	else
		vdi_request_fail(request, &request->write->status);
}

static void delete_next(struct vdi_request *request)
{
	struct vdi_write *write = request->write;
	struct vd_object *object = vd_list_next(write->list);

	if (object == NULL) {
		reply_success(request, "");
		return;
	}
	write->edit.namespace_name = vd_object_namespace(object);
	write->edit.name = vd_object_name(object);
	delete_target(request, deleted_one);
}

static void listed(struct vdi_request *request)
{
	if (request->result != VD_OK) {
		vdi_request_fail_result(request, "list", request->result, &request->error);
		return;
	}
	request->write->list = request->list;
	request->list = NULL;
	request->write->is_long = true; /* the list may be long */
	if (request->write->dry_run)
		vdi_write_compute(request, plan_all, all_planned);
	else
		delete_next(request);
}

void vdi_handle_delete_collection(struct vdi_request *request)
{
	if (begin(request))
		vdi_request_list(request, listed);
}
