/* The range of all keys, and the checks of a page. */
#include "store_read.h"

#include "key_range.h"
#include "store.h"

vd_status vdi_store_interval_init(struct vdi_store_interval *interval, struct vd_bytes prefix)
{
	interval->prefix = vdi_strndup(prefix.size ? prefix.data : "", prefix.size);
	interval->prefix_end = vdi_alloc(prefix.size + 1);
	if (interval->prefix == NULL || interval->prefix_end == NULL)
		return VD_NOMEM;
	/* All keys: from "\0" on. */
	interval->key =
		(struct vd_bytes) { prefix.size ? interval->prefix : "", prefix.size ? prefix.size : 1 };
	interval->range_end = vdi_bytes_prefix_end((struct vd_bytes) { interval->prefix, prefix.size },
						   interval->prefix_end);
	return VD_OK;
}

void vdi_store_interval_fini(struct vdi_store_interval *interval)
{
	vdi_free(interval->prefix);
	vdi_free(interval->prefix_end);
}

vd_status vdi_store_page_ask(struct vd_store *store, const struct vdi_store_interval *interval,
			     const struct vd_kv *last, vd_rev revision, vd_range_fn done, void *arg)
{
	struct vd_range_request request = { .key = interval->key,
					    .range_end = interval->range_end,
					    .revision = revision,
					    .limit = VDI_STORE_PAGE_LEN };
	char			start[VD_KEY_SIZE_MAX + 1];

	if (last)
		request.key = vdi_bytes_next_key(vd_kv_key(last), VD_KEY_SIZE_MAX, start);
	return vd_store_range(store, &request, done, arg);
}

void vdi_store_page_keep(struct vdi_store_page *page, vd_status status, const struct vd_range_result *result,
			 const struct vd_error *error)
{
	page->status = status;
	page->error = error ? *error : (struct vd_error) { .code = status };
	if (status == VD_OK)
		page->status = vdi_store_check_page(result, &page->error);
	if (page->status != VD_OK)
		return;
	if (!vdi_grow((void **) &page->kvs, &page->capacity, result->kv_count, sizeof *page->kvs)) {
		page->status = vd_error_set(&page->error, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
		return;
	}
	for (size_t i = 0; i < result->kv_count; i++)
		page->kvs[page->count++] = vd_kv_ref(result->kvs[i]);
	page->revision = result->store_revision;
	page->more = result->more;
}

void vdi_store_page_drop(struct vdi_store_page *page)
{
	for (size_t i = 0; i < page->count; i++)
		vd_kv_unref(page->kvs[i]);
	vdi_free(page->kvs);
	memset(page, 0, sizeof *page);
}

bool vdi_store_failure_passes(vd_status status)
{
	return status == VD_UNAVAILABLE || status == VD_TIMEOUT || status == VD_FULL || status == VD_NOMEM ||
	       status == VD_INTERNAL || status == VD_AGAIN;
}

void vdi_store_backoff_note(struct vdi_store_backoff *backoff, vd_mono now, vd_dur min, vd_dur max)
{
	backoff->wait.ns = backoff->wait.ns ? VDI_MIN(backoff->wait.ns * 2, max.ns) : min.ns;
	backoff->retry_at = vd_mono_add(now, backoff->wait);
}
