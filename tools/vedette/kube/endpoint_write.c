/* Writes. A transaction is one put or one delete of one object. A put is a PUT of the object; if it does not
 * exist (404), a POST. A conflict with another writer (409) is not an error: then this write changed
 * nothing. */
#include <stdio.h>

#include "endpoint_state.h"

#define TIMEOUT_S 60

static void free_write(struct vdi_endpoint_write *write)
{
	vdi_endpoint_transfer_end(&write->transfer);
	vdi_free(write->collection);
	vdi_free(write->name);
	vdi_free(write->body);
	vdi_free(write);
}

void vdi_endpoint_write_answer(struct vdi_endpoint_write *write, vd_status status, vd_rev revision,
			       bool changed, const struct vd_error *error)
{
	struct vdi_endpoint_store *store = write->store;
	struct vd_op_result	   op = { .kind = write->body ? VD_OP_PUT : VD_OP_DELETE,
					  .revision = revision,
					  .deleted = write->body == NULL && changed };
	struct vd_txn_result	   result = {
		      .revision = revision, .succeeded = true, .results = &op, .result_count = changed
	};

	vdi_lock_acquire(&store->lock);
	LIST_REMOVE(write, node);
	vdi_lock_release(&store->lock);
	write->done(write->arg, status, status == VD_OK ? &result : NULL, error);
	free_write(write);
}

static void answer_error(struct vdi_endpoint_write *write, const struct vd_error *error)
{
	vdi_endpoint_write_answer(write, error->code, 0, false, error);
}

/* ---- Requests ---- */

static void send_request(struct vdi_endpoint_write *write)
{
	size_t		size = strlen(write->collection) + strlen(write->name) + 2;
	char	       *path = vdi_alloc(size);
	struct vd_error error = { 0 };

	if (path)
		snprintf(path, size, write->creates ? "%s" : "%s/%s", write->collection, write->name);
	write->transfer.method = write->body == NULL ? "DELETE" : write->creates ? "POST" : "PUT";
	write->transfer.upload = write->body;
	error.code = path ? vdi_endpoint_transfer_begin(&write->transfer, path, TIMEOUT_S, &error) :
			    vd_error_set(&error, VD_NOMEM, "out of memory");
	vdi_free(path);
	if (error.code != VD_OK)
		answer_error(write, &error);
}

static vd_status revision_of(struct vdi_endpoint_write *write, vd_rev *ret_revision, struct vd_error *reterr)
{
	struct vd_bytes	       json = { write->transfer.body.data, write->transfer.body.size };
	struct vdi_kube_object object;

	VDI_TRY(vdi_kube_object_read(&write->store->objects, json, write->kind->kind,
				     write->kind->api_version, &object, reterr));
	if (object.revision == 0)
		return vd_error_set(reterr, VD_BAD_REQUEST, "the response to a write has no resourceVersion");
	*ret_revision = object.revision;
	return VD_OK;
}

static void write_ended(struct vdi_endpoint_transfer *transfer, vd_status result,
			const struct vd_error *reason)
{
	int			   code = transfer->code;
	struct vdi_endpoint_write *write = transfer->arg;
	struct vd_error		   error = { 0 };
	vd_rev			   revision = 0;

	if (result == VD_OK && code == 404 && write->body && !write->creates) {
		vdi_endpoint_transfer_end(transfer);
		write->creates = true;
		send_request(write);
		return;
	}
	if (result == VD_OK && (code == 409 || (code == 404 && write->body == NULL))) {
		vdi_endpoint_write_answer(write, VD_OK, 0, false, NULL);
		return;
	}
	if (result != VD_OK || code < 200 || code >= 300)
		error.code = vdi_endpoint_transfer_error(transfer, write->kind->name, result, reason, &error);
	else if (write->body)
		error.code = revision_of(write, &revision, &error);
	if (error.code != VD_OK)
		answer_error(write, &error);
	else
		vdi_endpoint_write_answer(write, VD_OK, revision, true, NULL);
}

void vdi_endpoint_write_start(struct vdi_endpoint_write *write)
{
	write->transfer =
		(struct vdi_endpoint_transfer) { .store = write->store, .ended = write_ended, .arg = write };
	send_request(write);
}

/* ---- Calls ---- */

static const struct vdi_endpoint_kind *kind_of(const struct vdi_endpoint_kinds *kinds, struct vd_bytes key)
{
	for (size_t i = 0; i < kinds->count; i++) {
		size_t size = strlen(kinds->items[i].prefix);

		if (key.size > size && memcmp(key.data, kinds->items[i].prefix, size) == 0)
			return &kinds->items[i];
	}
	return NULL;
}

/* Splits "/registry/configmaps/a/b" of "/api/v1/configmaps" into "/api/v1/namespaces/a/configmaps" and "b".
 * false: out of memory. */
static bool place(struct vdi_endpoint_write *write, struct vd_bytes key)
{
	const char *rest = (const char *) key.data + strlen(write->kind->prefix),
		   *end = (const char *) key.data + key.size;
	const char *slash = memchr(rest, '/', (size_t) (end - rest)),
		   *plural = strrchr(write->kind->path, '/');
	const char *name_start = slash ? slash + 1 : rest;
	char	   *namespace_name =
		      slash ? vdi_endpoint_escape((struct vd_bytes) { rest, (size_t) (slash - rest) }) : NULL;
	char  *name = vdi_endpoint_escape((struct vd_bytes) { name_start, (size_t) (end - name_start) });
	size_t size = strlen(write->kind->path) + (namespace_name ? strlen(namespace_name) : 0) +
		      sizeof "/namespaces/";

	write->collection = vdi_alloc(size);
	write->name = name;
	if (write->collection && namespace_name)
		snprintf(write->collection, size, "%.*s/namespaces/%s%s", (int) (plural - write->kind->path),
			 write->kind->path, namespace_name, plural);
	else if (write->collection)
		snprintf(write->collection, size, "%s", write->kind->path);
	vdi_free(namespace_name);
	return write->collection && write->name && (slash == NULL || namespace_name);
}

vd_status vdi_endpoint_txn(struct vd_store *base, const struct vd_txn_request *request, vd_txn_fn done,
			   void *arg)
{
	struct vdi_endpoint_store      *store = (struct vdi_endpoint_store *) base;
	const struct vd_op	       *op = request->success;
	const struct vdi_endpoint_kind *kind;
	struct vdi_endpoint_write      *write;
	vd_status			status = VD_OK;

	if (request->compare_count || request->success_count != 1 ||
	    (op->kind != VD_OP_PUT && op->kind != VD_OP_DELETE) || op->range_end.size || op->lease ||
	    op->previous)
		return VD_UNSUPPORTED;
	kind = kind_of(store->kinds, op->key);
	if (kind == NULL)
		return VD_UNSUPPORTED;
	write = VDI_NEW(struct vdi_endpoint_write);
	if (write == NULL)
		return VD_NOMEM;
	*write = (struct vdi_endpoint_write) { .store = store, .kind = kind, .done = done, .arg = arg };
	write->body = op->kind == VD_OP_PUT ? vdi_strndup(op->value.data, op->value.size) : NULL;
	if (!place(write, op->key) || (op->kind == VD_OP_PUT && write->body == NULL))
		status = VD_NOMEM;
	vdi_lock_acquire(&store->lock);
	if (status == VD_OK && store->is_closing)
		status = VD_CLOSED;
	if (status == VD_OK) {
		LIST_INSERT_HEAD(&store->writes, write, node);
		vdi_endpoint_store_wake(store);
	}
	vdi_lock_release(&store->lock);
	if (status != VD_OK)
		free_write(write);
	return status;
}
