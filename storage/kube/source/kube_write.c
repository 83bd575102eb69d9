/* Transactions of one key.
 *
 *   if mod_rev == 0 put          POST                                          409: else
 *   if mod_rev == N put          PUT with metadata.resourceVersion N           409, 404: else
 *   if mod_rev == N delete       DELETE with preconditions.resourceVersion N   409, 404: else
 *   put                          PUT without resourceVersion; 404: POST
 *   delete                       DELETE; 404: nothing was deleted
 *   else range of the key        GET
 *
 * The server validates, and may change what is stored or keep an object that has finalizers. Every other
 * shape is VD_UNSUPPORTED. */
#include <inttypes.h>
#include <stdio.h>

#include "kube_source.h"

struct write {
	struct vdi_kube_call  call;
	vd_txn_fn	      done;
	void		     *arg;
	char		     *key, *value; /* owned; value: of a put */
	size_t		      key_size, value_size;
	bool		      is_delete, compares, has_else, counts_only;
	bool		      is_looking; /* GET of the else branch */
	bool		      creates;	  /* a put whose PUT found no object */
	vd_rev		      expected;
	struct vd_kv	     *found; /* by the else branch */
	struct vdi_kube_fetch fetch;
};

static struct vd_bytes key_of(const struct write *write)
{
	return (struct vd_bytes) { write->key, write->key_size };
}

static void free_write(struct vdi_kube_call *call)
{
	struct write *write = VDI_CONTAINER_OF(call, struct write, call);

	if (call->source)
		vdi_kube_fetch_end(&write->fetch);
	vd_kv_unref(write->found);
	vdi_free(write->key);
	vdi_free(write->value);
	vdi_free(write);
}

static void fail_write(struct vdi_kube_call *call, vd_status status, const struct vd_error *error)
{
	struct write   *write = VDI_CONTAINER_OF(call, struct write, call);
	struct vd_error copy = vdi_kube_source_error(status, error);

	write->done(write->arg, status, NULL, &copy);
}

static void fail(struct write *write, vd_status status, const struct vd_error *error)
{
	TAILQ_REMOVE(&write->call.source->started, &write->call, node);
	fail_write(&write->call, status, error);
	free_write(&write->call);
}

static void finish(struct write *write, const struct vd_txn_result *result)
{
	TAILQ_REMOVE(&write->call.source->started, &write->call, node);
	write->done(write->arg, VD_OK, result, NULL);
	free_write(&write->call);
}

static vd_rev known_of(struct vdi_kube_source *source)
{
	vd_rev known;

	vdi_lock_acquire(&source->lock);
	known = source->known;
	vdi_lock_release(&source->lock);
	return VDI_MAX(known, (vd_rev) 1);
}

static void answer_done(struct write *write, vd_rev revision, int64_t deleted)
{
	struct vd_op_result result = { .kind = write->is_delete ? VD_OP_DELETE : VD_OP_PUT,
				       .revision = revision,
				       .deleted = deleted };

	finish(write,
	       &(struct vd_txn_result) {
		       .revision = revision, .succeeded = true, .results = &result, .result_count = 1 });
}

static void answer_else(struct write *write)
{
	vd_rev		    revision = known_of(write->call.source);
	struct vd_op_result result = { .kind = VD_OP_RANGE,
				       .revision = revision,
				       .range = { .store_revision = revision,
						  .kvs = &write->found,
						  .kv_count = write->found && !write->counts_only,
						  .count = write->found != NULL } };

	finish(write, &(struct vd_txn_result) { .revision = revision,
						.succeeded = false,
						.results = &result,
						.result_count = write->has_else });
}

/* ---- Requests ---- */

static bool split(const struct write *write, struct vd_bytes *ret_namespace, struct vd_bytes *ret_name)
{
	return vdi_kube_source_split(write->call.source, key_of(write), ret_namespace, ret_name);
}

/* The value with metadata.resourceVersion; revision 0: without. NULL: no memory, or not an object. */
static char *make_body(struct write *write, vd_rev revision, size_t *ret_size)
{
	struct vdi_kube_source *source = write->call.source;
	struct vd_bytes		value = { write->value, write->value_size };
	struct vdi_json_object *scan = &source->objects.scan;
	char			member[64];
	size_t			at = 0, size = 0;
	char		       *body;

	member[0] = 0;
	if (revision) {
		if (vdi_json_scan(value, NULL, scan, NULL) != VD_OK || scan->metadata_insert == 0)
			return NULL;
		at = scan->metadata_insert;
		size = (size_t) snprintf(member, sizeof member, "\"resourceVersion\":\"%" PRId64 "\"%s",
					 (int64_t) revision, scan->metadata_empty ? "" : ",");
	}
	body = vdi_alloc(value.size + size + 1);
	if (body == NULL)
		return NULL;
	memcpy(body, write->value, at);
	memcpy(body + at, member, size);
	memcpy(body + at + size, write->value + at, value.size - at);
	*ret_size = value.size + size;
	return body;
}

static char *make_options(const struct write *write, size_t *ret_size)
{
	char text[160], revision[64] = "";

	if (write->compares)
		snprintf(revision, sizeof revision,
			 ",\"preconditions\":{\"resourceVersion\":\"%" PRId64 "\"}",
			 (int64_t) write->expected);
	*ret_size = (size_t) snprintf(text, sizeof text,
				      "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"%s}", revision);
	return vdi_strndup(text, *ret_size);
}

static void on_done(struct vdi_kube_fetch *fetch, vd_status status, const struct vd_error *error);

static void send(struct write *write, const char *method, char *body, size_t size)
{
	struct vdi_kube_source *source = write->call.source;
	struct vd_bytes		namespace_name, name;
	bool			is_create = strcmp(method, "POST") == 0;
	bool			is_read = strcmp(method, "GET") == 0;
	char		       *path;

	(void) split(write, &namespace_name, &name);
	path = vdi_kube_source_path(source, namespace_name, is_create ? VD_BYTES_NONE : name);
	write->fetch.source = source;
	write->fetch.method = method;
	write->fetch.repeat = is_read;
	write->fetch.done = on_done;
	if (body == NULL && !is_read) {
		vdi_free(path);
		path = NULL;
	}
	if (vdi_kube_fetch_begin(&write->fetch, path, body, size) != VD_OK)
		fail(write, VD_NOMEM, NULL);
}

static void start_write(struct vdi_kube_call *call)
{
	struct write *write = VDI_CONTAINER_OF(call, struct write, call);
	bool	      is_create = write->compares && write->expected == 0;
	size_t	      size = 0;
	char	     *body;

	if (write->is_delete) {
		body = make_options(write, &size);
		send(write, "DELETE", body, size);
	} else {
		body = make_body(write, write->compares ? write->expected : 0, &size);
		send(write, is_create ? "POST" : "PUT", body, size);
	}
}

/* ---- Answers ---- */

static void look(struct write *write)
{
	if (!write->has_else) {
		answer_else(write);
		return;
	}
	write->is_looking = true;
	send(write, "GET", NULL, 0);
}

static void take_found(struct write *write, vd_status status, const struct vd_error *error)
{
	struct vdi_kube_fetch *fetch = &write->fetch;
	struct vd_error	       wrong = { 0 };

	if (status == VD_OK) {
		error = &wrong;
		status = vdi_kube_read_object(fetch->source, key_of(write), vdi_buffer_bytes(&fetch->body),
					      &write->found, &wrong);
		if (status == VD_OK)
			vdi_kube_source_raise(fetch->source, write->found->mod_rev);
	} else if (fetch->code == 404) {
		status = VD_OK;
	}
	if (status == VD_OK)
		answer_else(write);
	else
		fail(write, status == VD_BAD_REQUEST ? VD_UNAVAILABLE : status, error);
}

/* Reads the revision of the object that a write returned; a deletion may return a Status instead. */
static vd_status revision_of(struct write *write, vd_rev *ret_revision, struct vd_error *reterr)
{
	struct vdi_kube_source *source = write->call.source;
	struct vdi_kube_object	object;

	VDI_TRY(vdi_kube_object_read(&source->objects, vdi_buffer_bytes(&write->fetch.body), source->kind,
				     source->api_version, &object, reterr));
	if (write->is_delete && vd_bytes_equal(object.kind, vd_bytes_of("Status"))) {
		*ret_revision = known_of(source);
		return VD_OK;
	}
	VDI_TRY(vdi_kube_source_check_key(source, &object, key_of(write), reterr));
	if (write->compares && object.revision < write->expected)
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "the server sent revision %" PRId64 " after a write of revision %" PRId64,
				    (int64_t) object.revision, (int64_t) write->expected);
	vdi_kube_source_raise(source, object.revision);
	*ret_revision = object.revision;
	return VD_OK;
}

static void succeeded(struct write *write)
{
	struct vd_error error = { 0 };
	vd_rev		revision = 0;

	if (revision_of(write, &revision, &error) == VD_OK)
		answer_done(write, revision, write->is_delete);
	else
		fail(write, VD_UNAVAILABLE, &error); /* it may have been applied */
}

/* The server refused because of the state of the object. */
static void refused(struct write *write, int code, vd_status status, const struct vd_error *error)
{
	if (write->compares && (code == 409 || (code == 404 && write->expected))) {
		look(write);
	} else if (write->is_delete && code == 404) {
		answer_done(write, known_of(write->call.source), 0);
	} else if (code == 404 && !write->creates && !write->compares) {
		size_t size = 0;
		char  *body = make_body(write, 0, &size);

		write->creates = true;
		send(write, "POST", body, size);
	} else {
		fail(write, code == 404 ? VD_UNAVAILABLE : status, error);
	}
}

static void on_done(struct vdi_kube_fetch *fetch, vd_status status, const struct vd_error *error)
{
	struct write *write = VDI_CONTAINER_OF(fetch, struct write, fetch);
	int	      code = fetch->code;

	if (write->is_looking)
		take_found(write, status, error);
	else if (status == VD_OK)
		succeeded(write);
	else if (code == 404 || code == 409)
		refused(write, code, status, error);
	else
		fail(write, status, error);
}

/* ---- The call ---- */

static bool is_key(struct vd_bytes key, struct vd_bytes range_end, struct vd_bytes expected)
{
	return range_end.size == 0 && vd_bytes_equal(key, expected);
}

static bool is_supported(const struct vd_txn_request *request)
{
	const struct vd_op	*op = request->success, *other = request->failure;
	const struct vd_compare *compare = request->compares;

	if (request->success_count != 1 || request->compare_count > 1 || request->failure_count > 1)
		return false;
	if ((op->kind != VD_OP_PUT && op->kind != VD_OP_DELETE) || op->range_end.size || op->lease ||
	    op->ignore_value || op->ignore_lease || op->previous)
		return false;
	if (request->compare_count &&
	    (compare->result != VD_COMPARE_EQUAL || !is_key(compare->key, compare->range_end, op->key) ||
	     !(compare->target == VD_COMPARE_MOD ||
	       (compare->number == 0 &&
		(compare->target == VD_COMPARE_CREATE || compare->target == VD_COMPARE_VERSION)))))
		return false;
	if (request->compare_count && op->kind == VD_OP_DELETE && compare->number == 0)
		return false;
	return request->failure_count == 0 || (other->kind == VD_OP_RANGE && other->range.revision == 0 &&
					       is_key(other->range.key, other->range.range_end, op->key));
}

vd_status vdi_kube_source_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			      void *arg)
{
	const struct vd_op     *op = request->success;
	struct vdi_kube_source *source = vdi_kube_source_of(store);
	struct write	       *write;
	struct vd_bytes		namespace_name, name;
	vd_status		status;

	if (!is_supported(request))
		return VD_UNSUPPORTED;
	if (!vdi_kube_source_split(source, op->key, &namespace_name, &name))
		return VD_INVALID_ARGUMENT;
	write = VDI_NEW(struct write);
	if (write == NULL)
		return VD_NOMEM;
	write->call = (struct vdi_kube_call) { .start = start_write, .free = free_write, .fail = fail_write };
	write->done = done;
	write->arg = arg;
	write->is_delete = op->kind == VD_OP_DELETE;
	write->compares = request->compare_count == 1;
	write->expected = write->compares ? request->compares->number : 0;
	write->has_else = request->failure_count == 1;
	write->counts_only = write->has_else && request->failure->range.count_only;
	write->key_size = op->key.size;
	write->value_size = op->value.size;
	write->key = vdi_strndup(op->key.data, op->key.size);
	write->value = vdi_strndup(op->value.size ? op->value.data : "", op->value.size);
	if (write->key == NULL || write->value == NULL) {
		free_write(&write->call);
		return VD_NOMEM;
	}
	write->call.source = source;
	status = vdi_kube_source_call(source, &write->call);
	if (status != VD_OK) {
		write->call.source = NULL;
		free_write(&write->call);
	}
	return status;
}
