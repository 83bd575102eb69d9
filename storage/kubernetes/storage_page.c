/* How: pages, counts and the current revision are each one range of the store. */
#include "key_range.h"
#include "storage_state.h"
#include "store.h"
#include "undecodable.h"

struct read_call {
	struct vdi_storage  *storage;
	vdi_storage_page_fn  page_done;
	vdi_storage_count_fn count_done;
	vd_done_fn	     revision_done;
	vd_mono		     issued;
	bool		     is_single; /* the page is a single key */
	void		    *arg;
};

static struct read_call *read_call_new(struct vdi_storage *storage, void *arg)
{
	struct read_call *call = VDI_NEW(struct read_call);

	if (call) {
		call->storage = storage;
		call->arg = arg;
		call->issued = vd_env_now(storage->env);
	}
	return call;
}

static void answer_page(struct read_call *call, const struct vd_range_result *result)
{
	struct vdi_storage_page page = { .revision = result->store_revision,
					 .object_count = result->kv_count,
					 .count = result->count,
					 .more = result->more };
	struct vd_error		error = { 0 }, first_error = { 0 };
	vd_status		status = vdi_store_check_page(result, &error);

	if (status != VD_OK) {
		call->page_done(call->arg, status, NULL, &error);
		return;
	}
	if (result->kv_count)
		page.last_key = vd_kv_key(result->kvs[result->kv_count - 1]);
	page.objects = vdi_calloc(result->kv_count ? result->kv_count : 1, sizeof *page.objects);
	if (page.objects == NULL) {
		vd_error_set(&error, VD_NOMEM, "out of memory for a page of %zu objects", result->kv_count);
		call->page_done(call->arg, VD_NOMEM, NULL, &error);
		return;
	}
	for (size_t i = 0; i < result->kv_count && status != VD_NOMEM; i++) {
		status = vd_object_new(call->storage->codec, result->kvs[i], &page.objects[i], &error);
		if (status != VD_OK && status != VD_NOMEM) {
			vdi_storage_metrics_undecodable(call->storage->metrics);
			page.undecodable_count++;
		}
		if (status != VD_OK && first_error.code == VD_OK) {
			first_error = error;
			if (status != VD_NOMEM)
				(void) vdi_undecodable_item(&first_error, result->kvs[i]);
		}
	}
	if (status == VD_NOMEM)
		call->page_done(call->arg, VD_NOMEM, NULL, &error);
	else
		call->page_done(call->arg, VD_OK, &page, first_error.code ? &first_error : NULL);
	for (size_t i = 0; i < result->kv_count; i++)
		vd_object_unref(page.objects[i]);
	vdi_free(page.objects);
}

static void count_answer(const struct read_call *call, vd_status status)
{
	vdi_storage_metrics_request(call->storage->metrics,
				    call->is_single  ? VDI_OPERATION_GET :
				    call->page_done  ? VDI_OPERATION_LIST :
				    call->count_done ? VDI_OPERATION_LIST_WITH_COUNT :
						       VDI_OPERATION_CURRENT_REVISION,
				    call->issued, status);
}

static void on_read(void *arg, vd_status status, const struct vd_range_result *result,
		    const struct vd_error *error)
{
	struct read_call *call = arg;

	count_answer(call, status);
	if (call->page_done) {
		if (status == VD_OK)
			answer_page(call, result);
		else
			call->page_done(call->arg, status, NULL, error);
	} else if (call->count_done) {
		call->count_done(call->arg, status, status == VD_OK ? result->count : -1, error);
	} else {
		call->revision_done(call->arg, status, status == VD_OK ? result->store_revision : 0, error);
	}
	vdi_free(call);
}

static vd_status read_issue(struct read_call *call, const struct vd_range_request *request)
{
	vd_status status = vd_store_range(call->storage->store, request, on_read, call);

	if (status != VD_OK) {
		count_answer(call, status);
		vdi_free(call);
	}
	return status;
}

vd_status vdi_storage_page(struct vdi_storage *storage, struct vd_bytes prefix, struct vd_bytes start,
			   vd_rev revision, int64_t limit, vdi_storage_page_fn done, void *arg)
{
	char			end[VDI_STORAGE_KEY_MAX];
	struct read_call       *call;
	struct vd_range_request request = { .key = start.size ? start : prefix,
					    .revision = revision,
					    .limit = limit };

	if (prefix.size == 0 || prefix.size > sizeof end)
		return VD_INVALID_ARGUMENT;
	call = read_call_new(storage, arg);
	if (call == NULL)
		return VD_NOMEM;
	call->is_single = ((const char *) prefix.data)[prefix.size - 1] != '/';
	if (!call->is_single)
		request.range_end = vdi_bytes_prefix_end(prefix, end);
	call->page_done = done;
	return read_issue(call, &request);
}

vd_status vdi_storage_current_revision(struct vdi_storage *storage, vd_done_fn done, void *arg)
{
	/* As upstream: read the prefix itself, without its slash, and use only the revision of the
	 * response. */
	struct vd_range_request request = { .key = { storage->key_prefix, storage->key_prefix_size - 1 },
					    .limit = 1 };
	struct read_call       *call = read_call_new(storage, arg);

	if (call == NULL)
		return VD_NOMEM;
	call->revision_done = done;
	return read_issue(call, &request);
}

vd_status vdi_storage_count(struct vdi_storage *storage, vdi_storage_count_fn done, void *arg)
{
	char			end[VDI_STORAGE_KEY_MAX];
	struct vd_range_request request = { .key = { storage->key_prefix, storage->key_prefix_size },
					    .count_only = true };
	struct read_call       *call = read_call_new(storage, arg);

	if (call == NULL)
		return VD_NOMEM;
	request.range_end = vdi_bytes_prefix_end(request.key, end);
	call->count_done = done;
	return read_issue(call, &request);
}
