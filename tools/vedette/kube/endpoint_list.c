/* Ranges. A range walks over kinds and, within a kind, over the pages of its list; it is answered with the
 * first non-empty page. The next range continues where the last returned key is remembered, because a
 * continue token cannot be derived from a key. */
#include <stdio.h>

#include "endpoint_state.h"

#define TIMEOUT_S 120

static void forget_cursor(struct vdi_endpoint_cursor *cursor)
{
	vd_kv_unref(cursor->last);
	vdi_free(cursor->token);
	memset(cursor, 0, sizeof *cursor);
}

void vdi_endpoint_cursors_fini(struct vdi_endpoint_store *store)
{
	for (size_t i = 0; i < VDI_ENDPOINT_CURSORS; i++)
		forget_cursor(&store->cursors[i]);
}

static void free_call(struct vdi_endpoint_call *call)
{
	for (size_t i = 0; i < call->count; i++)
		vd_kv_unref(call->kvs[i]);
	vdi_endpoint_transfer_end(&call->transfer);
	vdi_free(call->kvs);
	vdi_free(call->token);
	vdi_free(call->key);
	vdi_free(call->range_end);
	vdi_free(call);
}

void vdi_endpoint_call_answer(struct vdi_endpoint_call *call, vd_status status, const struct vd_error *error,
			      bool more)
{
	struct vdi_endpoint_store *store = call->store;
	struct vd_range_result	   result = { .store_revision = call->shown,
					      .kvs = call->kvs,
					      .kv_count = call->count,
					      .count = (int64_t) call->count,
					      .more = more };

	vdi_lock_acquire(&store->lock);
	LIST_REMOVE(call, node);
	if (status == VD_OK)
		store->newest = VDI_MAX(store->newest, call->shown);
	vdi_lock_release(&store->lock);
	call->done(call->arg, status, status == VD_OK ? &result : NULL, error);
	free_call(call);
}

static void answer_error(struct vdi_endpoint_call *call, const struct vd_error *error)
{
	vdi_endpoint_call_answer(call, error->code, error, false);
}

/* Moves to the next kind of the interval. false: there is none. */
static bool next_kind(struct vdi_endpoint_call *call)
{
	const struct vdi_endpoint_kinds *kinds = call->store->kinds;

	while (++call->kind < kinds->count)
		if (vdi_endpoint_kind_is_in(&kinds->items[call->kind], call->key_bytes, call->end_bytes))
			return true;
	return false;
}

/* ---- Pages ---- */

static void ask(struct vdi_endpoint_call *call)
{
	const struct vdi_endpoint_kind *kind = &call->store->kinds->items[call->kind];
	unsigned			limit = call->store->page_len;
	vd_rev				revision = call->revision ? call->revision : call->shown;
	size_t				size = strlen(kind->path) + 128;
	char			       *path, *token = NULL;
	struct vd_error			error = { 0 };

	if (call->limit > 0)
		limit = (unsigned) VDI_MIN((int64_t) limit, call->limit);
	if (call->token) {
		token = vdi_endpoint_escape(vd_bytes_of(call->token));
		size += token ? strlen(token) : 0;
	}
	path = vdi_alloc(size);
	if (path == NULL || (call->token && token == NULL)) {
		error.code = vd_error_set(&error, VD_NOMEM, "out of memory");
	} else {
		if (token)
			snprintf(path, size, "%s?limit=%u&continue=%s", kind->path, limit, token);
		else if (revision)
			snprintf(path, size, "%s?limit=%u&resourceVersion=%lld&resourceVersionMatch=Exact",
				 kind->path, limit, (long long) revision);
		else
			snprintf(path, size, "%s?limit=%u", kind->path, limit);
		error.code = vdi_endpoint_transfer_begin(&call->transfer, path, TIMEOUT_S, &error);
	}
	vdi_free(path);
	vdi_free(token);
	if (error.code != VD_OK)
		answer_error(call, &error);
}

struct taking {
	struct vdi_endpoint_call       *call;
	const struct vdi_endpoint_kind *kind;
	struct vd_error		       *reterr;
};

static vd_status take_item(void *arg, struct vd_bytes json)
{
	struct taking		 *taking = arg;
	struct vdi_endpoint_call *call = taking->call;
	struct vdi_kube_object	  object;
	struct vd_kv		 *kv;

	VDI_TRY(vdi_kube_object_read(&call->store->objects, json, taking->kind->kind,
				     taking->kind->api_version, &object, taking->reterr));
	if (!vdi_grow((void **) &call->kvs, &call->capacity, call->count + 1, sizeof *call->kvs))
		return vd_error_set(taking->reterr, VD_NOMEM, "out of memory");
	VDI_TRY(vdi_kube_object_kv(&object, taking->kind->prefix, false, &kv, taking->reterr));
	call->kvs[call->count++] = kv;
	return VD_OK;
}

static vd_status take_items(struct vdi_endpoint_call *call, const struct vdi_endpoint_kind *kind,
			    struct vd_bytes items, struct vd_error *reterr)
{
	struct vdi_json_stream stream = { 0 };
	struct taking	       taking = { call, kind, reterr };
	vd_status	       status = VD_OK;

	for (size_t at = 0; status == VD_OK && at < items.size; at += 65536)
		status = vdi_json_stream_feed(&stream,
					      (struct vd_bytes) { (const char *) items.data + at,
								  VDI_MIN((size_t) 65536, items.size - at) },
					      take_item, &taking);
	vdi_json_stream_fini(&stream);
	return status;
}

static vd_status take_page(struct vdi_endpoint_call *call, struct vd_error *reterr)
{
	const struct vdi_endpoint_kind *kind = &call->store->kinds->items[call->kind];
	struct vdi_kube_page		page;
	vd_rev				asked = call->revision ? call->revision : call->shown;

	VDI_TRY(vdi_kube_page_read(&call->store->pages,
				   (struct vd_bytes) { call->transfer.body.data, call->transfer.body.size },
				   &page, reterr));
	if (page.revision == 0)
		return vd_error_set(reterr, VD_BAD_REQUEST, "the list has no resourceVersion");
	if (asked && page.revision != asked)
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "the server returned a list at revision %lld instead of %lld",
				    (long long) asked, (long long) page.revision);
	call->shown = page.revision;
	VDI_TRY(take_items(call, kind, page.items, reterr));
	vdi_free(call->token);
	call->token = NULL;
	if (page.continue_token.size) {
		call->token = vdi_strndup(page.continue_token.data, page.continue_token.size);
		if (call->token == NULL)
			return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	return VD_OK;
}

/* Remembers where the next range continues. */
static void remember(struct vdi_endpoint_call *call)
{
	struct vdi_endpoint_cursor *cursor =
		&call->store->cursors[call->store->cursor_next++ % VDI_ENDPOINT_CURSORS];

	forget_cursor(cursor);
	cursor->last = vd_kv_ref(call->kvs[call->count - 1]);
	cursor->revision = call->shown;
	cursor->kind = call->kind;
	cursor->token = call->token;
	call->token = NULL;
}

static void page_ended(struct vdi_endpoint_transfer *transfer, vd_status result,
		       const struct vd_error *reason)
{
	struct vdi_endpoint_call  *call = transfer->arg;
	struct vdi_endpoint_store *store = call->store;
	const char		  *name = store->kinds->items[call->kind].name;
	struct vd_error		   error = { 0 };
	bool			   more;

	if (vdi_buffer_status(&transfer->body) == VD_TOO_BIG && store->page_len > 1) {
		store->page_len /= 8; /* objects are large */
		store->page_len = VDI_MAX(store->page_len, 1u);
		vdi_endpoint_transfer_end(transfer);
		ask(call);
		return;
	}
	if (result != VD_OK || transfer->code != 200) {
		error.code = vdi_endpoint_transfer_error(transfer, name, result, reason, &error);
		answer_error(call, &error);
		return;
	}
	error.code = take_page(call, &error);
	if (error.code != VD_OK) {
		error.code = vdi_endpoint_blame(name, error.code, error.message, &error);
		answer_error(call, &error);
		return;
	}
	vdi_endpoint_transfer_end(transfer);
	more = call->token != NULL || next_kind(call);
	if (call->count == 0 && more) {
		ask(call);
		return;
	}
	if (more)
		remember(call);
	vdi_endpoint_call_answer(call, VD_OK, NULL, more);
}

/* ---- Calls ---- */

/* Continues after a key that was returned before. */
static bool find_cursor(struct vdi_endpoint_call *call)
{
	for (size_t i = 0; i < VDI_ENDPOINT_CURSORS; i++) {
		struct vdi_endpoint_cursor *cursor = &call->store->cursors[i];
		struct vd_bytes		    last;

		if (cursor->last == NULL || cursor->revision != call->revision)
			continue;
		last = vd_kv_key(cursor->last);
		if (call->key_bytes.size != last.size + 1 || memcmp(call->key, last.data, last.size) != 0 ||
		    call->key[last.size] != 0)
			continue;
		call->kind = cursor->kind;
		call->token = cursor->token ? vdi_strndup(cursor->token, strlen(cursor->token)) : NULL;
		return cursor->token == NULL || call->token != NULL;
	}
	return false;
}

void vdi_endpoint_call_start(struct vdi_endpoint_call *call)
{
	struct vd_error error = { 0 };

	call->transfer =
		(struct vdi_endpoint_transfer) { .store = call->store, .ended = page_ended, .arg = call };
	call->kind = SIZE_MAX; /* next_kind starts with 0 */
	if (find_cursor(call) || next_kind(call)) {
		ask(call);
		return;
	}
	(void) vd_error_set(&error, VD_EXPIRED, "the continuation of this list has expired");
	answer_error(call, &error);
}

vd_status vdi_endpoint_range(struct vd_store *base, const struct vd_range_request *request, vd_range_fn done,
			     void *arg)
{
	struct vdi_endpoint_store *store = (struct vdi_endpoint_store *) base;
	struct vdi_endpoint_call  *call;
	vd_status		   status = VD_OK;

	if (request->range_end.size == 0 || request->count_only)
		return VD_UNSUPPORTED;
	call = VDI_NEW(struct vdi_endpoint_call);
	if (call == NULL)
		return VD_NOMEM;
	call->store = store;
	call->revision = request->revision;
	call->limit = request->limit;
	call->done = done;
	call->arg = arg;
	call->key = vdi_strndup(request->key.data, request->key.size);
	call->range_end = vdi_strndup(request->range_end.data, request->range_end.size);
	if (call->key == NULL || call->range_end == NULL)
		status = VD_NOMEM;
	call->key_bytes = (struct vd_bytes) { call->key, request->key.size };
	call->end_bytes = (struct vd_bytes) { call->range_end, request->range_end.size };
	vdi_lock_acquire(&store->lock);
	if (status == VD_OK && store->is_closing)
		status = VD_CLOSED;
	if (status == VD_OK) {
		LIST_INSERT_HEAD(&store->calls, call, node);
		vdi_endpoint_store_wake(store);
	}
	vdi_lock_release(&store->lock);
	if (status != VD_OK)
		free_call(call);
	return status;
}
