/* Closing a cacher is asynchronous and holds a reference, so that the codec outlives the cacher's actors,
 * regardless of which owner drops the last reference. */
#include "kind_cache.h"

#include "cacher.h"
#include "kinds.h"

/* Every kind may use the whole history budget: the old versions in a cache are the store's own bytes, a cache
 * drops what the store has compacted, and the store keeps to the budget for all kinds together. With a remote
 * store every kind may use an eighth, because few kinds are busy at a time. */
static int64_t history_of(const struct vdi_kinds *kinds, const struct vdi_resource *resource)
{
	struct vd_store_status store = { 0 };
	bool is_remote = vd_store_status_get(kinds->host.store, &store) == VD_OK && store.remote;

	if (resource->history_bytes)
		return resource->history_bytes;
	return VDI_MAX(kinds->host.options->history_bytes / (is_remote ? 8 : 1), (int64_t) 1 << 20);
}

vd_status vdi_kind_cache_new(struct vdi_kinds *kinds, struct vdi_resource *resource,
			     const struct vd_field_spec *fields, size_t field_count,
			     struct vdi_kind_cache **ret_cache, struct vd_error *reterr)
{
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	struct vdi_kind_cache	*cache = VDI_NEW(struct vdi_kind_cache);
	char			 name[VDI_RESOURCE_NAME_MAX];
	vd_status		 status;

	if (cache == NULL)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	status = vdi_resource_cacher_options(resource, fields, field_count, name, &options, reterr);
	if (status == VD_OK) {
		cache->codec = resource->codec;
		resource->codec = NULL;
		options.history_bytes = history_of(kinds, resource);
		options.history_window = kinds->host.options->history_window;
		options.consistency_interval = kinds->host.options->consistency_interval;
		options.on_inconsistency = (enum vd_on_inconsistency) kinds->host.options->on_inconsistency;
		status = vd_cacher_new(kinds->host.env, kinds->host.store, &options, &cache->cacher, reterr);
	}
	if (status != VD_OK) {
		(void) vd_codec_free(cache->codec);
		vdi_free(cache);
		return status;
	}
	(void) vdi_cacher_ref(cache->cacher);
	cache->kinds = kinds;
	atomic_init(&cache->users, 1);
	vdi_lock_acquire(kinds->host.lock);
	kinds->cache_count++;
	vdi_lock_release(kinds->host.lock);
	*ret_cache = cache;
	return VD_OK;
}

static void free_cache(struct vdi_kind_cache *cache)
{
	struct vdi_kinds *kinds = cache->kinds;

	vdi_cacher_unref(cache->cacher);
	(void) vd_codec_free(cache->codec);
	vdi_free(cache);
	vdi_lock_acquire(kinds->host.lock);
	if (--kinds->cache_count == 0)
		vdi_condition_broadcast(kinds->host.changed);
	vdi_lock_release(kinds->host.lock);
}

struct vdi_kind_cache *vdi_kind_cache_ref(struct vdi_kind_cache *cache)
{
	if (cache)
		atomic_fetch_add_explicit(&cache->users, 1, memory_order_relaxed);
	return cache;
}

struct vdi_kind_cache *vdi_kind_cache_unref(struct vdi_kind_cache *cache)
{
	if (cache == NULL || atomic_fetch_sub_explicit(&cache->users, 1, memory_order_acq_rel) != 1)
		return NULL;
	if (atomic_load(&cache->is_ended))
		free_cache(cache);
	else
		vdi_kind_cache_end(cache); /* the last reference again, dropped when the cacher is closed */
	return NULL;
}

static void closed(void *arg)
{
	(void) vdi_kind_cache_unref(arg);
}

void vdi_kind_cache_end(struct vdi_kind_cache *cache)
{
	if (cache == NULL || atomic_exchange(&cache->is_ended, true))
		return;
	(void) vdi_kind_cache_ref(cache);
	vd_cacher_close(cache->cacher, closed, cache);
}

static void drained(void *arg)
{
	struct vdi_kind_cache *cache = arg;
	struct vdi_kinds      *kinds = cache->kinds;

	vdi_kind_cache_end(cache);
	vdi_lock_acquire(kinds->host.lock);
	vdi_kinds_wake_locked(kinds);
	vdi_lock_release(kinds->host.lock);
	(void) vdi_kind_cache_unref(cache);
}

void vdi_kind_cache_drain(struct vdi_kind_cache *cache)
{
	if (atomic_load(&cache->is_ended))
		return;
	vdi_cacher_drain(vdi_kind_cache_ref(cache)->cacher, cache->last_revision, drained, cache);
}

static void give_back(struct vdi_kind_cache *cache)
{
	(void) vdi_kind_cache_unref(cache);
}

void vdi_kind_cache_bind(struct vdi_kind_cache *cache, struct vdi_resource *resource)
{
	resource->cache = vdi_kind_cache_ref(cache);
	resource->cache_unref = give_back;
	resource->codec = cache->codec;
	resource->cacher = cache->cacher;
}
