#include "feed_store.h"

#include "lock.h"

struct feed_watch {
	struct vd_store_watch base;
	void (*ready)(void *arg);
	void		     *ready_arg;
	vd_rev		      delivered;
	bool		      progress_wanted;
	vd_status	      broken;
	struct vd_store_event taken[128];
	size_t		      taken_count;
};

struct feed_store {
	struct vd_store	       base;
	struct vdi_lock	       lock;
	vd_rev		       revision;
	bool		       has_progress, holds_progress, omits_previous, was_set_back;
	uint64_t	       progress_requests, watches;
	struct vd_kv	     **kvs;
	size_t		       kv_count, kv_capacity;
	struct vd_store_event *events; /* [event_start, event_count) are not taken */
	size_t		       event_start, event_count, event_capacity;
	struct feed_watch     *watch;
};

static struct feed_store *feed_of(struct vd_store *store)
{
	return VDI_CONTAINER_OF(store, struct feed_store, base);
}

static bool in_range(const struct vd_range_request *request, struct vd_bytes key)
{
	if (request->range_end.size == 0)
		return vd_bytes_equal(key, request->key);
	return vd_bytes_compare(key, request->key) >= 0 &&
	       ((request->range_end.size == 1 && *(const char *) request->range_end.data == 0) ||
		vd_bytes_compare(key, request->range_end) < 0);
}

static size_t place_of(const struct feed_store *feed, struct vd_bytes key)
{
	size_t low = 0;
	size_t high = feed->kv_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (vd_bytes_compare(vd_kv_key(feed->kvs[middle]), key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static vd_status feed_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			    void *arg)
{
	struct feed_store     *feed = feed_of(store);
	struct vd_range_result result = { 0 };
	size_t		       first = place_of(feed, request->key);

	result.kvs = feed->kvs + first;
	while (first + (size_t) result.count < feed->kv_count &&
	       in_range(request, vd_kv_key(feed->kvs[first + (size_t) result.count])))
		result.count++;
	result.kv_count = request->count_only ? 0 : (size_t) result.count;
	if (request->limit && result.kv_count > (size_t) request->limit) {
		result.kv_count = (size_t) request->limit;
		result.more = true;
	}
	vdi_lock_acquire(&feed->lock);
	result.store_revision = feed->revision;
	vdi_lock_release(&feed->lock);
	done(arg, VD_OK, &result, NULL);
	return VD_OK;
}

static vd_status feed_watch_open(struct vd_store *store, const struct vd_store_watch_request *request,
				 struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct feed_store *feed = feed_of(store);
	struct feed_watch *watch = VDI_NEW(struct feed_watch);

	if (watch == NULL)
		return VD_NOMEM;
	watch->base.store = store;
	watch->ready = request->ready;
	watch->ready_arg = request->ready_arg;
	vdi_lock_acquire(&feed->lock);
	watch->delivered = request->start_revision ? request->start_revision - 1 : feed->revision;
	feed->watch = watch;
	feed->watches++;
	vdi_lock_release(&feed->lock);
	*ret_watch = &watch->base;
	return VD_OK;
}

static void drop_event(struct vd_store_event *event)
{
	vd_kv_unref(event->kv);
	vd_kv_unref(event->previous);
}

static void drop_taken(struct feed_watch *watch)
{
	for (size_t i = 0; i < watch->taken_count; i++)
		drop_event(&watch->taken[i]);
	watch->taken_count = 0;
}

static vd_status feed_watch_next(struct vd_store_watch *base, size_t event_count_max,
				 struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct feed_watch *watch = VDI_CONTAINER_OF(base, struct feed_watch, base);
	struct feed_store *feed = feed_of(base->store);
	vd_status	   status = VD_OK;

	drop_taken(watch);
	vdi_lock_acquire(&feed->lock);
	while (watch->taken_count < VDI_MIN(event_count_max, VDI_ARRAY_SIZE(watch->taken)) &&
	       feed->event_start < feed->event_count) {
		struct vd_store_event event = feed->events[feed->event_start++];

		if (event.kv->mod_rev > watch->delivered || feed->was_set_back)
			watch->taken[watch->taken_count++] = event;
		else
			drop_event(&event);
	}
	if (feed->event_start == feed->event_count)
		feed->event_start = feed->event_count = 0;
	if (watch->taken_count) {
		watch->delivered = watch->taken[watch->taken_count - 1].kv->mod_rev;
		*ret_batch = (struct vd_store_batch) { watch->delivered, watch->taken, watch->taken_count };
	} else if (watch->broken != VD_OK) {
		status = vd_error_set(reterr, watch->broken, "the feed broke");
	} else if (watch->progress_wanted && !feed->holds_progress) {
		watch->progress_wanted = false;
		*ret_batch = (struct vd_store_batch) { .revision = feed->revision };
	} else {
		status = VD_AGAIN;
	}
	vdi_lock_release(&feed->lock);
	return status;
}

static void call_ready(struct feed_watch *watch)
{
	if (watch)
		watch->ready(watch->ready_arg);
}

static vd_status feed_watch_progress(struct vd_store_watch *base)
{
	struct feed_watch *watch = VDI_CONTAINER_OF(base, struct feed_watch, base);
	struct feed_store *feed = feed_of(base->store);

	vdi_lock_acquire(&feed->lock);
	watch->progress_wanted = true;
	feed->progress_requests++;
	call_ready(watch);
	vdi_lock_release(&feed->lock);
	return VD_OK;
}

static void feed_watch_close(struct vd_store_watch *base)
{
	struct feed_watch *watch = VDI_CONTAINER_OF(base, struct feed_watch, base);
	struct feed_store *feed = feed_of(base->store);

	vdi_lock_acquire(&feed->lock);
	if (feed->watch == watch)
		feed->watch = NULL;
	vdi_lock_release(&feed->lock);
	drop_taken(watch);
	vdi_free(watch);
}

static vd_status feed_status(struct vd_store *store, struct vd_store_status *ret_status)
{
	struct feed_store *feed = feed_of(store);

	vdi_lock_acquire(&feed->lock);
	*ret_status = (struct vd_store_status) { .current = feed->revision,
						 .compacted = -1,
						 .progress = feed->has_progress };
	vdi_lock_release(&feed->lock);
	return VD_OK;
}

static const struct vd_store_ops feed_ops = {
	.size = sizeof(struct vd_store_ops),
	.range = feed_range,
	.watch = feed_watch_open,
	.watch_next = feed_watch_next,
	.watch_progress = feed_watch_progress,
	.watch_close = feed_watch_close,
	.status = feed_status,
};

struct vd_store *feed_store_new(const struct vd_env *env)
{
	struct feed_store *feed = VDI_NEW(struct feed_store);

	VDI_CHECK(feed != NULL);
	feed->base.ops = &feed_ops;
	feed->base.env = env;
	feed->revision = 1;
	feed->has_progress = true;
	vdi_lock_init(&feed->lock, VDI_LOCK_STORE);
	return &feed->base;
}

void feed_load(struct vd_store *store, const char *key, struct vd_bytes value)
{
	struct feed_store *feed = feed_of(store);
	void		  *kvs = feed->kvs;

	VDI_CHECK(vdi_grow(&kvs, &feed->kv_capacity, feed->kv_count + 1, sizeof *feed->kvs));
	feed->kvs = kvs;
	VDI_CHECK(vd_kv_new(vd_bytes_of(key), value, &feed->kvs[feed->kv_count]) == VD_OK);
	feed->kvs[feed->kv_count]->mod_rev = feed->kvs[feed->kv_count]->create_rev = ++feed->revision;
	feed->kvs[feed->kv_count++]->version = 1;
}

/* The present record moves to *ret_previous (or NULL); kv NULL removes. */
static void replace_locked(struct feed_store *feed, struct vd_bytes key, struct vd_kv *kv,
			   struct vd_kv **ret_previous)
{
	size_t place = place_of(feed, key);
	bool   exists = place < feed->kv_count && vd_bytes_equal(vd_kv_key(feed->kvs[place]), key);
	void  *kvs = feed->kvs;

	*ret_previous = exists ? feed->kvs[place] : NULL;
	if (kv && !exists) {
		VDI_CHECK(vdi_grow(&kvs, &feed->kv_capacity, feed->kv_count + 1, sizeof *feed->kvs));
		feed->kvs = kvs;
		memmove(feed->kvs + place + 1, feed->kvs + place,
			(feed->kv_count++ - place) * sizeof *feed->kvs);
	} else if (!kv && exists) {
		memmove(feed->kvs + place, feed->kvs + place + 1,
			(--feed->kv_count - place) * sizeof *feed->kvs);
	}
	if (kv)
		feed->kvs[place] = vd_kv_ref(kv);
}

static vd_rev append(struct feed_store *feed, const char *key, const char *value, bool is_delete)
{
	struct vd_kv *kv = NULL;
	struct vd_kv *previous;
	void	     *events;
	vd_rev	      revision;

	VDI_CHECK(vd_kv_new(vd_bytes_of(key), is_delete ? VD_BYTES_NONE : vd_bytes_of(value), &kv) == VD_OK);
	vdi_lock_acquire(&feed->lock);
	events = feed->events;
	VDI_CHECK(vdi_grow(&events, &feed->event_capacity, feed->event_count + 1, sizeof *feed->events));
	feed->events = events;
	replace_locked(feed, vd_bytes_of(key), is_delete ? NULL : kv, &previous);
	revision = kv->mod_rev = ++feed->revision;
	if (!is_delete) {
		kv->create_rev = previous ? previous->create_rev : revision;
		kv->version = previous ? previous->version + 1 : 1;
	}
	if (feed->omits_previous)
		previous = vd_kv_unref(previous);
	feed->events[feed->event_count++] =
		(struct vd_store_event) { .is_delete = is_delete, .kv = kv, .previous = previous };
	call_ready(feed->watch);
	vdi_lock_release(&feed->lock);
	return revision;
}

vd_rev feed_put(struct vd_store *store, const char *key, const char *value)
{
	return append(feed_of(store), key, value, false);
}

vd_rev feed_delete(struct vd_store *store, const char *key)
{
	return append(feed_of(store), key, "", true);
}

void feed_progress(struct vd_store *store)
{
	struct feed_store *feed = feed_of(store);

	vdi_lock_acquire(&feed->lock);
	feed->revision++;
	vdi_lock_release(&feed->lock);
}

void feed_set_back(struct vd_store *store, vd_rev revision)
{
	struct feed_store *feed = feed_of(store);

	vdi_lock_acquire(&feed->lock);
	feed->revision = revision;
	feed->was_set_back = true;
	vdi_lock_release(&feed->lock);
}

void feed_break(struct vd_store *store, vd_status status)
{
	struct feed_store *feed = feed_of(store);

	vdi_lock_acquire(&feed->lock);
	if (feed->watch)
		feed->watch->broken = status;
	call_ready(feed->watch);
	vdi_lock_release(&feed->lock);
}

void feed_omit_previous(struct vd_store *store, bool omit)
{
	feed_of(store)->omits_previous = omit;
}

void feed_set_progress(struct vd_store *store, bool progress)
{
	feed_of(store)->has_progress = progress;
}

void feed_hold_progress(struct vd_store *store, bool hold)
{
	struct feed_store *feed = feed_of(store);

	vdi_lock_acquire(&feed->lock);
	feed->holds_progress = hold;
	call_ready(feed->watch);
	vdi_lock_release(&feed->lock);
}

uint64_t feed_progress_requests(struct vd_store *store)
{
	return feed_of(store)->progress_requests;
}

uint64_t feed_watches(struct vd_store *store)
{
	return feed_of(store)->watches;
}

void feed_store_free(struct vd_store *store)
{
	struct feed_store *feed = feed_of(store);

	for (size_t i = 0; i < feed->kv_count; i++)
		vd_kv_unref(feed->kvs[i]);
	for (size_t i = feed->event_start; i < feed->event_count; i++)
		drop_event(&feed->events[i]);
	vdi_free(feed->kvs);
	vdi_free(feed->events);
	vdi_lock_fini(&feed->lock);
	vdi_free(feed);
}
