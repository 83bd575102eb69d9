/* POST, PUT, PATCH.
 *
 * object_edit computes the new object from the request body and the current object, on the thread from which
 * the store calls back; the loop only starts the write and responds. Long writes (work_queue.h) are computed
 * by the server's workers: if a callback of the store finds a long object, it cancels the attempt, which is
 * repeated on a worker that calls the store itself. An update that removes the last finalizer of an object
 * marked for deletion becomes its deletion.
 */
#include <stdio.h>

#include "cacher.h"
#include "crd.h"
#include "field_check.h"
#include "http_handlers.h"
#include "http_write.h"
#include "json_number.h"
#include "object_scale.h"
#include "protobuf.h"
#include "request_log.h"
#include "stored_version.h"

static const char patch_types[] =
	"application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json";
static const char json_types[] = "application/json, application/yaml";
static const char json_or_protobuf[] = "application/json, application/yaml, " VDI_K8S_PROTO_TYPE;
static const char custom_patch_types[] = "application/json-patch+json, application/merge-patch+json";

static void free_write(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	vdi_edited_fini(&write->edited);
	vdi_out_fini(&write->current);
	(void) vd_list_free(write->list);
	vdi_buffer_fini(&write->json);
	vdi_out_fini(&write->warnings);
	vdi_delete_options_fini(&write->options);
	vdi_object_call_fini(&write->call);
	(void) vd_object_unref(write->guard);
	(void) vd_object_unref(write->object);
	(void) vd_object_unref(write->newest);
	vdi_free(write);
}

void vdi_write_shuffle(struct vdi_request *request)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(request->write->edit.random); i++)
		request->write->edit.random[i] = vd_env_random(request->server->env);
}

static bool has_protobuf(const struct vdi_request *request)
{
	struct vd_bytes type;

	return vdi_http_header_get(&request->head, "Content-Type", &type) &&
	       vdi_media_type_is(type, VDI_K8S_PROTO_TYPE);
}

struct vdi_write *vdi_write_begin(struct vdi_request *request, const char *options_kind)
{
	struct vdi_write *write;

	if (!vdi_params_validate_write(&request->params, options_kind, false, &request->status)) {
		vdi_request_fail(request, &request->status);
		return NULL;
	}
	write = request->write = VDI_NEW(struct vdi_write);
	request->free_state = write ? free_write : NULL;
	if (write == NULL) {
		vdi_request_fail_nomem(request);
		return NULL;
	}
	write->request = request;
	vdi_buffer_init(&write->json, VDI_PROTOBUF_BODY_MAX);
	write->is_long = request->body_size > VDI_WORK_BYTES_SHORT || request->resource->schema ||
			 vdi_crd_is(request->resource);
	write->edit.resource = request->resource;
	write->edit.namespace_name = request->route.namespace_name;
	write->edit.name = request->route.name;
	write->edit.body = (struct vd_bytes) { request->body, request->body_size };
	if (!has_protobuf(request) || request->head.method == VDI_HTTP_DELETE)
		vdi_request_log_request_body(request->connection->request_log, write->edit.body);
	write->edit.now = vd_env_wall(request->server->env);
	write->dry_run = request->params.has_dry_run;
	if (request->head.method == VDI_HTTP_PATCH &&
	    !vd_bytes_equal(request->params.field_validation, vd_bytes_of("Ignore")))
		write->edit.unknown =
			vd_bytes_equal(request->params.field_validation, vd_bytes_of("Strict")) ?
				VDI_UNKNOWN_REFUSED :
				VDI_UNKNOWN_WARNED;
	if (vd_bytes_equal(request->route.subresource, vd_bytes_of("status")))
		write->edit.part = VDI_EDIT_STATUS;
	else if (vd_bytes_equal(request->route.subresource, vd_bytes_of("scale")))
		write->edit.part = VDI_EDIT_SCALE;
	else if (vd_bytes_equal(request->route.subresource, vd_bytes_of("finalize")))
		write->edit.part = VDI_EDIT_FINALIZE;
	vdi_write_shuffle(request);
	return write;
}

void vdi_write_fail(struct vdi_request *request, const char *verb)
{
	if (request->write->status.code)
		vdi_request_fail(request, &request->write->status);
	else
		vdi_request_fail_result(request, verb, request->result, &request->error);
}

vd_status vdi_write_note_current(struct vdi_write *write, struct vd_object *current)
{
	write->seen = vd_object_revision(current);
	vdi_out_reset(&write->current);
	vdi_object_write(&write->current, write->edit.resource, current, write->seen);
	return write->current.failed ? VD_NOMEM : VD_OK;
}

vd_status vdi_write_show_dry(struct vdi_write *write, struct vd_bytes text)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root, *metadata;
	char		 revision[24];
	bool		 done = false;

	(void) snprintf(revision, sizeof revision, "%lld", (long long) write->seen);
	if (vdi_tree_parse(&tree, text, &root, NULL) == VD_OK &&
	    (metadata = vdi_tree_object_at(&tree, root, "metadata")) != NULL &&
	    vdi_tree_set(&tree, metadata, vd_bytes_of("resourceVersion"),
			 vdi_tree_new_string(&tree, vd_bytes_of(revision)))) {
		vdi_out_reset(&write->current);
		vdi_tree_write(&write->current, root);
		done = !write->current.failed;
	}
	vdi_tree_fini(&tree);
	if (!done)
		vdi_http_status_set(&write->status, 500, "InternalError",
				    "Internal error occurred: out of memory");
	return done ? VD_OK : VD_NOMEM;
}

/* ---- On the loop or on a worker ---- */

static void run_work(struct vdi_work *work)
{
	struct vdi_write *write = VDI_CONTAINER_OF(work, struct vdi_write, work);

	write->computed = write->compute(write->request);
	vdi_request_got_object(write->request, VD_OK, NULL, 0, NULL);
}

/* Posts run to the workers; resume continues when run has called vdi_request_got_object. */
static void post(struct vdi_request *request, void (*run)(struct vdi_work *work),
		 void (*resume)(struct vdi_request *request))
{
	request->write->work.run = run;
	vdi_request_await(request, resume);
	if (vdi_work_queue_post(&request->server->work, &request->write->work) == VD_OK) {
		vdi_request_awaited(request, VD_OK, NULL);
		return;
	}
	request->waiting = 0;
	request->resume = NULL;
	vdi_request_fail_too_many(request);
}

void vdi_write_compute(struct vdi_request *request, vd_status (*compute)(struct vdi_request *request),
		       void (*resume)(struct vdi_request *request))
{
	struct vdi_write *write = request->write;

	write->compute = compute;
	if (write->is_long) {
		post(request, run_work, resume);
		return;
	}
	write->computed = compute(request);
	resume(request);
}

bool vdi_write_is_json(struct vdi_request *request)
{
	struct vd_bytes type;

	if (!vdi_http_header_get(&request->head, "Content-Type", &type) ||
	    vdi_media_type_is(type, "application/json") || vdi_media_type_is(type, "application/yaml"))
		return true;
	vdi_http_status_media_type(&request->status,
				   vdi_request_serves_protobuf(request) ? json_or_protobuf : json_types);
	vdi_request_fail(request, &request->status);
	return false;
}

static vd_status check_numbers(struct vdi_request *request, struct vd_bytes body)
{
	static const char	why[] = "json: cannot unmarshal number %.*s into Go value of type float64";
	struct vdi_http_status *status = &request->write->status;
	char			message[160];
	struct vd_bytes		number;

	if (!vdi_json_has_unfit_number(body, NULL, &number))
		return VD_OK;
	(void) snprintf(message, sizeof message, why, (int) VDI_MIN(number.size, (size_t) 60),
			(const char *) number.data);
	if (request->head.method == VDI_HTTP_PATCH)
		vdi_http_status_set(status, 400, "BadRequest", "error decoding patch: %s", message);
	else
		vdi_http_status_set(status, 400, "BadRequest",
				    "%s in version \"%s\" cannot be handled as a %s: %s",
				    request->resource->kind, request->resource->version,
				    request->resource->kind, message);
	return VD_INVALID;
}

/* Checks the Content-Type of a body with a whole object. False: a response was sent. */
static bool takes_body(struct vdi_request *request)
{
	if (!has_protobuf(request) || !vdi_request_serves_protobuf(request))
		return vdi_write_is_json(request); /* protobuf only for kinds with a field table */
	return true;
}

/* Transcodes the body to JSON and validates it against the kind. */
static vd_status check_body(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	if (has_protobuf(request)) {
		VDI_TRY(vdi_protobuf_decode((struct vd_bytes) { request->body, request->body_size },
					    &write->json, &write->status));
		write->edit.body = (struct vd_bytes) { write->json.data, write->json.size };
	}
	VDI_TRY(check_numbers(request, write->edit.body));
	const struct vdi_field_check check = { request->resource, request->route.subresource,
					       request->params.field_validation };

	return vdi_field_check_body(&check, write->edit.body, &write->warnings, &write->status);
}

/* False: a response was sent. */
static bool take_checked(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	if (has_protobuf(request) && write->edit.body.data == write->json.data)
		vdi_request_log_request_body(request->connection->request_log, write->edit.body);
	if (write->computed != VD_OK) {
		vdi_request_fail(request, &write->status);
		return false;
	}
	vdi_out_bytes(&request->warnings, vdi_out_slice(&write->warnings));
	return true;
}

/* Responds with a Scale, or with the object itself. */
static void reply(struct vdi_request *request, int code, struct vd_bytes text)
{
	struct vdi_write *write = request->write;

	if (write->edited.unknown.count) /* fields of a patch that the kind does not have */
		vdi_out_bytes(&request->warnings, vdi_out_slice(&write->edited.unknown.warnings));
	if (write->edited.rule_count)
		vdi_out_raw(&request->warnings, "Warning: 299 - \"x-kubernetes-validations are kept but not "
						"evaluated by this server\"\r\n");
	if (write->edit.part != VDI_EDIT_SCALE) {
		vdi_request_reply_text(request, code, text);
		return;
	}
	vdi_out_reset(&write->edited.text);
	if (vdi_scale_of(write->edit.resource, text, &write->edited.text) != VD_OK)
		vdi_request_fail_nomem(request);
	else
		vdi_request_reply_text(request, code, vdi_out_slice(&write->edited.text));
}

static void reply_object(struct vdi_request *request, int code)
{
	struct vdi_out text = VDI_OUT_INIT;

	vdi_object_write(&text, request->resource, request->object, vd_object_revision(request->object));
	if (text.failed)
		vdi_request_fail_nomem(request);
	else
		reply(request, code, vdi_out_slice(&text));
	vdi_out_fini(&text);
}

/* Responds with an object that was not stored. */
static void reply_unstored(struct vdi_request *request, int code, struct vd_bytes stored)
{
	struct vdi_out text = VDI_OUT_INIT;

	vdi_version_write(&text, request->resource, stored);
	if (text.failed)
		vdi_request_fail_nomem(request);
	else
		reply(request, code, vdi_out_slice(&text));
	vdi_out_fini(&text);
}

/* ---- Create ---- */

static void try_create(struct vdi_request *request);
static void find_namespace(struct vdi_request *request, vd_rev revision);

static bool is_terminating(struct vdi_request *request)
{
	struct vdi_out	 text = VDI_OUT_INIT;
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	bool		 terminating = false;

	vdi_object_write(&text, NULL, request->object, vd_object_revision(request->object));
	if (!text.failed && vdi_tree_parse_shown(&tree, vdi_out_slice(&text), &root, NULL) == VD_OK)
		terminating = vdi_tree_find(&tree, root, "metadata.deletionTimestamp") != NULL;
	vdi_tree_fini(&tree);
	vdi_out_fini(&text);
	return terminating;
}

/* As upstream, the message tells if the existing object is being deleted. */
static void got_existing(struct vdi_request *request)
{
	char message[VDI_STATUS_MESSAGE_SIZE];
	bool terminating = request->result == VD_OK && is_terminating(request);

	vdi_http_status_exists(&request->status, request->resource->group, request->resource->plural,
			       vd_bytes_of(request->write->edited.name));
	if (terminating) {
		memcpy(message, request->status.message, sizeof message);
		(void) snprintf(request->status.message, sizeof request->status.message,
				"object is being deleted: %.900s", message);
	}
	vdi_request_fail(request, &request->status);
}

static void created(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	if (request->result == VD_OK) {
		reply_object(request, 201);
		return;
	}
	if (request->result == VD_CONFLICT && write->guard && ++write->guard_tries < VDI_WRITE_TRIES_MAX) {
		/* The namespace has changed since it was read: it may be terminating. */
		find_namespace(request, VD_REVISION_UNSET);
		return;
	}
	if (request->result == VD_EXISTS && write->edited.generated && ++write->tries < VDI_WRITE_TRIES_MAX) {
		vdi_write_shuffle(request);
		try_create(request);
		return;
	}
	if (request->result == VD_EXISTS && !write->edited.generated) {
		vdi_request_await(request, got_existing);
		vdi_request_awaited(request,
				    vd_cacher_get(request->resource->cacher, write->edit.namespace_name,
						  vd_bytes_of(write->edited.name), VD_REVISION_UNSET,
						  vdi_request_got_object, request),
				    NULL);
		return;
	}
	vdi_http_status_of(&request->status, "create", request->resource->group, request->resource->plural,
			   vd_bytes_of(write->edited.name), request->result, &request->error);
	if (request->result == VD_EXISTS && write->edited.generated) {
		size_t size = strlen(request->status.message);

		(void) snprintf(request->status.message + size, sizeof request->status.message - size,
				", the server was not able to generate a unique name for the object");
		request->status.retry_after_s = 1;
	}
	vdi_request_fail(request, &request->status);
}

static void dry_created(struct vdi_request *request)
{
	if (request->result == VD_NOT_FOUND) {
		reply_unstored(request, 201, vdi_out_slice(&request->write->edited.text));
	} else if (request->result == VD_OK) {
		vdi_http_status_exists(&request->status, request->resource->group, request->resource->plural,
				       vd_bytes_of(request->write->edited.name));
		vdi_request_fail(request, &request->status);
	} else {
		vdi_request_fail_result(request, "create", request->result, &request->error);
	}
}

static void create_edited(struct vdi_request *request)
{
	struct vdi_write *write = request->write;
	struct vd_bytes	  name;
	vd_status	  status;

	if (write->computed != VD_OK) {
		vdi_request_fail(request, &write->status);
		return;
	}
	name = vd_bytes_of(write->edited.name);
	vdi_request_log_named(request->connection->request_log, write->edited.name);
	if (write->dry_run) {
		vdi_request_await(request, dry_created);
		status = vd_cacher_get(request->resource->cacher, write->edit.namespace_name, name,
				       VD_REVISION_UNSET, vdi_request_got_object, request);
	} else {
		vdi_request_await(request, created);
		status = vdi_cacher_create_beside(request->resource->cacher, write->guard,
						  write->edit.namespace_name, name,
						  vdi_out_slice(&write->edited.text),
						  request->resource->ttl_s, vdi_request_got_object, request);
	}
	vdi_request_awaited(request, status, NULL);
}

static vd_status make_new(struct vdi_request *request)
{
	return vdi_edit_create(&request->write->edit, &request->write->edited, &request->write->status);
}

static void try_create(struct vdi_request *request)
{
	vdi_write_compute(request, make_new, create_edited);
}

/* The text is admission's (kubernetes/apiserver pkg/admission/plugin/namespace/lifecycle). */
static void refuse_terminating(struct vdi_request *request)
{
	struct vd_bytes object = vd_bytes_of(request->write->edited.name),
			name = request->route.namespace_name;
	struct vdi_resource *resource = request->resource;

	if (request->write->computed != VD_OK) {
		vdi_request_fail(request, &request->write->status);
		return;
	}
	vdi_http_status_set(&request->status, 403, "Forbidden",
			    "%s%s%s \"%.*s\" is forbidden: unable to create new content in namespace %.*s "
			    "because it is being terminated",
			    resource->plural, *resource->group ? "." : "", resource->group, (int) object.size,
			    (const char *) object.data, (int) name.size, (const char *) name.data);
	vdi_http_status_details(&request->status, object, resource->group, resource->plural);
	vdi_http_status_cause(&request->status, "NamespaceTerminating", "metadata.namespace",
			      "namespace %.*s is being terminated", (int) name.size,
			      (const char *) name.data);
	vdi_request_fail(request, &request->status);
}

static void got_namespace(struct vdi_request *request)
{
	struct vdi_resource *namespaces = request->loop->resource_set->namespaces;
	struct vd_bytes	     name = request->route.namespace_name;

	if (request->result == VD_NOT_FOUND && request->write->tries == 0) {
		/* The cache may not have a new namespace yet: get the latest state. */
		request->write->tries = 1;
		find_namespace(request, VD_REVISION_UNSET);
	} else if (request->result != VD_OK) {
		vdi_http_status_of(&request->status, "get", namespaces->group, namespaces->plural, name,
				   request->result, &request->error);
		vdi_request_fail(request, &request->status);
	} else if (is_terminating(request)) {
		/* Make the object for the message: the server may generate its name. */
		vdi_write_compute(request, make_new, refuse_terminating);
	} else {
		(void) vd_object_unref(request->write->guard);
		request->write->guard = vd_object_ref(request->object);
		request->write->tries = 0;
		try_create(request);
	}
}

static void find_namespace(struct vdi_request *request, vd_rev revision)
{
	vdi_request_await(request, got_namespace);
	vdi_request_awaited(request,
			    vd_cacher_get(request->loop->resource_set->namespaces->cacher, VD_BYTES_NONE,
					  request->route.namespace_name, revision, vdi_request_got_object,
					  request),
			    NULL);
}

static void create_checked(struct vdi_request *request)
{
	if (!take_checked(request))
		return;
	if (request->resource->namespaced)
		find_namespace(request, VD_REVISION_ANY);
	else
		try_create(request);
}

void vdi_handle_create(struct vdi_request *request)
{
	if (takes_body(request) && vdi_write_begin(request, "CreateOptions"))
		vdi_write_compute(request, check_body, create_checked);
}

/* ---- Update and patch ---- */

static void try_update(struct vdi_request *request);

/* Edits write->current. */
static vd_status edit(struct vdi_write *write)
{
	vd_status status =
		vdi_edit_update(&write->edit, vdi_out_slice(&write->current), &write->edited, &write->status);

	if (status == VD_NOMEM)
		vdi_http_status_set(&write->status, 500, "InternalError",
				    "Internal error occurred: out of memory");
	return status;
}

static vd_status edit_state(struct vdi_write *write, struct vd_object *state)
{
	write->is_edited = false;
	write->edited.finished = false;
	VDI_TRY(vdi_write_note_current(write, state));
	write->computed = edit(write);
	write->is_edited = true;
	return VD_OK;
}

/* Keeps the state for a worker: the cache may not have it yet, and a retry from an older state would meet
 * this one again. */
static void keep_newest(struct vdi_write *write, struct vd_object *current)
{
	(void) vd_object_unref(write->newest);
	write->newest = vd_object_ref(current);
	write->is_too_long = true;
}

/* On a thread of the store, or on a worker. */
static vd_status edit_current(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			      int64_t *ret_ttl_s, struct vd_error *reterr)
{
	struct vdi_request *request = arg;
	struct vdi_write   *write = request->write;
	size_t		    size = vd_kv_value(vd_object_kv(current)).size + write->edit.body.size;

	if (write->newest && vd_object_revision(current) < vd_object_revision(write->newest))
		return vd_error_set(reterr, VD_CANCELED,
				    /* the object came from the cache: the caller reads the store instead */
				    "the cache is behind: read the latest state");
	if (!write->is_edited || write->seen != vd_object_revision(current)) {
		if ((write->is_long || size > VDI_WORK_BYTES_SHORT) && !vdi_work_is_current()) {
			keep_newest(write, current);
			return vd_error_set(reterr, VD_CANCELED, "to be edited by a worker");
		}
		if (edit_state(write, current) != VD_OK)
			return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	}
	if (write->computed != VD_OK)
		return vd_error_set(reterr, VD_INVALID, "%s", write->status.message);
	if (write->edited.finished)
		return vd_error_set(reterr, VD_CANCELED, "the last finalizer is gone: to be deleted");
	/* An object in an older storage version is written even if it is unchanged. */
	write->edited.unchanged &= vdi_version_is_stored(request->resource, current);
	*ret_value = write->edited.unchanged ? vd_kv_value(vd_object_kv(current)) :
					       vdi_out_slice(&write->edited.text);
	if (request->resource->ttl_s)
		*ret_ttl_s = request->resource->ttl_s;
	return VD_OK;
}

/* The last finalizer was removed and the object was deleted: responds with its last state. */
static void finished(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	if (request->result == VD_OK)
		reply_object(request, 200);
	else if ((request->result == VD_CONFLICT || request->result == VD_PRECONDITION) &&
		 ++write->tries < VDI_WRITE_TRIES_MAX)
		try_update(request);
	else
		vdi_write_fail(request, "update");
}

/* Permits the deletion only of the state that the update saw. */
static vd_status is_what_was_seen(void *arg, struct vd_object *current, struct vd_error *reterr)
{
	struct vdi_request *request = arg;

	if (vd_object_revision(current) == request->write->seen)
		return VD_OK;
	return vd_error_set(reterr, VD_CONFLICT, "the object was changed by another writer");
}

static void updated(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	if (request->result == VD_OK) {
		reply_object(request, 200);
		return;
	}
	if (write->is_too_long) {
		write->is_long = true;
		if (++write->meetings < VDI_WRITE_MEETINGS_MAX) {
			try_update(request);
			return;
		}
		request->result = VD_CONFLICT; /* other writers changed it before each attempt */
	}
	if (write->is_too_long || !write->edited.finished || write->status.code) {
		vdi_write_fail(request, "update");
		return;
	}
	vdi_request_await(request, finished);
	vdi_request_awaited(request,
			    vd_cacher_delete(request->resource->cacher, write->edit.namespace_name,
					     write->edit.name, NULL, is_what_was_seen, vdi_request_got_object,
					     request),
			    NULL);
}

/* Dry run: writes the edited object, still at the present revision, to write->current. */
static vd_status make_dry(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	VDI_TRY(edit(write));
	return vdi_write_show_dry(write, vdi_out_slice(&write->edited.text));
}

static void dry_made(struct vdi_request *request)
{
	if (request->write->computed == VD_OK)
		reply_unstored(request, 200, vdi_out_slice(&request->write->current));
	else
		vdi_request_fail(request, &request->write->status);
}

static void dry_updated(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	if (request->result != VD_OK) {
		vdi_request_fail_result(request, "update", request->result, &request->error);
		return;
	}
	if (vdi_write_note_current(write, request->object) != VD_OK) {
		vdi_request_fail_nomem(request);
		return;
	}
	write->is_long |= write->current.size > VDI_WORK_BYTES_SHORT;
	vdi_write_compute(request, make_dry, dry_made);
}

static vd_status start_update(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	return vd_cacher_update(request->resource->cacher, write->edit.namespace_name, write->edit.name,
				false, NULL, edit_current, vdi_request_got_object, request);
}

static void run_update(struct vdi_work *work)
{
	struct vdi_write   *write = VDI_CONTAINER_OF(work, struct vdi_write, work);
	struct vdi_request *request = write->request;
	vd_status	    status = write->newest ? edit_state(write, write->newest) : VD_OK;

	if (status == VD_OK)
		status = start_update(request);
	if (status != VD_OK)
		vdi_request_got_object(request, status, NULL, 0, NULL);
}

static void try_update(struct vdi_request *request)
{
	struct vdi_write *write = request->write;

	write->is_too_long = false;
	if (write->dry_run) {
		vdi_request_await(request, dry_updated);
		vdi_request_awaited(request,
				    vd_cacher_get(request->resource->cacher, write->edit.namespace_name,
						  write->edit.name, VD_REVISION_UNSET, vdi_request_got_object,
						  request),
				    NULL);
	} else if (write->is_long) {
		post(request, run_update, updated);
	} else {
		vdi_request_await(request, updated);
		vdi_request_awaited(request, start_update(request), NULL);
	}
}

static void update_checked(struct vdi_request *request)
{
	if (take_checked(request))
		try_update(request);
}

void vdi_handle_update(struct vdi_request *request)
{
	if (takes_body(request) && vdi_write_begin(request, "UpdateOptions"))
		vdi_write_compute(request, check_body, update_checked);
}

static vd_status check_patch(struct vdi_request *request)
{
	return check_numbers(request, request->write->edit.body);
}

static void refuse_type(struct vdi_request *request)
{
	vdi_http_status_media_type(&request->status,
				   request->resource->built_in ? patch_types : custom_patch_types);
	vdi_request_fail(request, &request->status);
}

void vdi_handle_patch(struct vdi_request *request)
{
	struct vd_bytes	    type = VD_BYTES_NONE;
	enum vdi_edit_patch patch;

	(void) vdi_http_header_get(&request->head, "Content-Type", &type);
	if (vdi_media_type_is(type, "application/json-patch+json")) {
		patch = VDI_PATCH_OPERATIONS;
	} else if (vdi_media_type_is(type, "application/merge-patch+json")) {
		patch = VDI_PATCH_MERGE;
	} else if (vdi_media_type_is(type, "application/strategic-merge-patch+json") &&
		   request->resource->built_in) {
		patch = VDI_PATCH_STRATEGIC;
	} else {
		refuse_type(request);
		return;
	}
	if (vdi_write_begin(request, "PatchOptions") == NULL)
		return;
	request->write->edit.patch = patch;
	vdi_write_compute(request, check_patch, update_checked);
}

static void got_for_scale(struct vdi_request *request)
{
	if (request->result != VD_OK)
		vdi_request_fail_result(request, "get", request->result, &request->error);
	else
		reply_object(request, 200);
}

void vdi_handle_get_scale(struct vdi_request *request)
{
	vd_rev revision;

	if (!vdi_params_revision(request->params.resource_version, &revision, &request->status)) {
		vdi_request_fail(request, &request->status);
		return;
	}
	if (vdi_write_begin(request, "GetOptions") == NULL)
		return;
	vdi_request_await(request, got_for_scale);
	vdi_request_awaited(request,
			    vd_cacher_get(request->resource->cacher, request->route.namespace_name,
					  request->route.name, revision, vdi_request_got_object, request),
			    NULL);
}
