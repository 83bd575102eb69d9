/* The inner store's watch, which starts after the loaded history, is opened at once, so that nothing can be
 * compacted in between; it is read after the loaded history. Like any watch it may outlive the store: nothing
 * here uses the store.
 *
 * etcd reports no progress below a watch's start revision, so this watch reports the progress through the
 * loaded history itself. */
#include "key_range.h"
#include "local_store.h"

/* Maximum events examined by one call. */
#define SCAN_MAX 16384

struct local_watch {
	struct vd_store_watch	   base;
	struct vd_store		   stub;   /* only base.store's ops are used */
	struct vdi_loaded_history *loaded; /* NULL: delivered */
	struct vd_store_watch	  *inner;
	size_t			   next;
	struct vdi_key_range	   range;
	bool			   previous, no_put, no_delete;
	vd_rev	    until;    /* end of the loaded history; 0: the inner watch has progressed further */
	atomic_bool is_asked; /* progress is requested */
	void (*ready)(void *arg);
	void *ready_arg;

	/* Borrowed by the reader. */
	struct vd_store_event *events;
	size_t		       event_count;
	size_t		       event_capacity;
	char		       keys[];
};

static struct local_watch *watch_of(struct vd_store_watch *watch)
{
	return VDI_CONTAINER_OF(watch, struct local_watch, base);
}

static bool is_wanted(const struct local_watch *watch, const struct vd_store_event *event)
{
	return !(event->is_delete ? watch->no_delete : watch->no_put) &&
	       vdi_key_range_contains(&watch->range, vd_kv_key(event->kv));
}

/* Collects the matching events of the revision at `next`. */
static vd_status take_revision(struct local_watch *watch)
{
	const struct vd_store_event *all = watch->loaded->events;
	vd_rev			     revision = all[watch->next].kv->mod_rev;
	size_t			     count = watch->event_count, i;

	for (i = watch->next; i < watch->loaded->count && all[i].kv->mod_rev == revision; i++) {
		if (!is_wanted(watch, &all[i]))
			continue;
		if (!vdi_grow((void **) &watch->events, &watch->event_capacity, watch->event_count + 1,
			      sizeof *watch->events)) {
			watch->event_count = count;
			return VD_NOMEM;
		}
		watch->events[watch->event_count] = all[i];
		if (!watch->previous)
			watch->events[watch->event_count].previous = NULL;
		watch->event_count++;
	}
	watch->next = i;
	return VD_OK;
}

/* Continues with the inner watch, or reports progress through the loaded history if requested. */
static vd_status next_of_inner(struct local_watch *watch, size_t event_count_max,
			       struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	vd_status status = vd_store_watch_next(watch->inner, event_count_max, ret_batch, reterr);

	if (status == VD_AGAIN && watch->until && atomic_exchange(&watch->is_asked, false)) {
		*ret_batch = (struct vd_store_batch) { .revision = watch->until };
		return VD_OK;
	}
	if (status == VD_OK)
		watch->until = 0;
	return status;
}

static vd_status local_next(struct vd_store_watch *base, size_t event_count_max,
			    struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct local_watch *watch = watch_of(base);
	size_t		    scan_end;

	if (watch->loaded == NULL)
		return next_of_inner(watch, event_count_max, ret_batch, reterr);
	scan_end = VDI_MIN(watch->loaded->count, watch->next + SCAN_MAX);
	watch->event_count = 0;
	while (watch->next < scan_end && watch->event_count < VDI_MAX(event_count_max, 1))
		if (take_revision(watch) != VD_OK)
			return vd_error_set(reterr, VD_NOMEM, "out of memory for a watch");
	if (watch->event_count) {
		*ret_batch =
			(struct vd_store_batch) { .revision =
							  watch->events[watch->event_count - 1].kv->mod_rev,
						  .events = watch->events,
						  .event_count = watch->event_count };
		return VD_OK;
	}
	if (watch->next < watch->loaded->count) {
		watch->ready(watch->ready_arg); /* the next call continues */
		return VD_AGAIN;
	}
	/* The reader no longer borrows the events. */
	watch->loaded = vdi_loaded_history_unref(watch->loaded);
	return next_of_inner(watch, event_count_max, ret_batch, reterr);
}

static vd_status local_progress(struct vd_store_watch *base)
{
	struct local_watch *watch = watch_of(base);
	vd_status	    status = vd_store_watch_progress(watch->inner);

	if (status == VD_OK) {
		atomic_store(&watch->is_asked, true);
		watch->ready(watch->ready_arg);
	}
	return status;
}

static void local_close(struct vd_store_watch *base)
{
	struct local_watch *watch = watch_of(base);

	vd_store_watch_close(watch->inner);
	vdi_loaded_history_unref(watch->loaded);
	vdi_free(watch->events);
	vdi_free(watch);
}

static const struct vd_store_ops watch_ops = {
	.size = sizeof(struct vd_store_ops),
	.watch_next = local_next,
	.watch_progress = local_progress,
	.watch_close = local_close,
};

vd_status vdi_local_watch_open(struct vd_store *inner, struct vdi_loaded_history *loaded,
			       const struct vd_store_watch_request *request,
			       struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct vd_store_watch_request behind = *request;
	struct local_watch	     *watch =
		vdi_calloc(1, sizeof *watch + request->key.size + request->range_end.size);
	vd_status status;

	if (watch == NULL) {
		vdi_loaded_history_unref(loaded);
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a watch");
	}
	memcpy(watch->keys, request->key.data, request->key.size);
	if (request->range_end.size)
		memcpy(watch->keys + request->key.size, request->range_end.data, request->range_end.size);
	watch->range = vdi_key_range_from_etcd(
		(struct vd_bytes) { watch->keys, request->key.size },
		(struct vd_bytes) { watch->keys + request->key.size, request->range_end.size });
	behind.start_revision = loaded->until + 1;
	status = vd_store_watch_open(inner, &behind, &watch->inner, reterr);
	if (status != VD_OK) {
		vdi_loaded_history_unref(loaded);
		vdi_free(watch);
		return status;
	}
	watch->stub = (struct vd_store) { .ops = &watch_ops, .env = inner->env };
	watch->base.store = &watch->stub;
	watch->base.opened = watch->inner->opened;
	watch->loaded = loaded;
	watch->until = loaded->until;
	atomic_init(&watch->is_asked, request->progress);
	watch->next = vdi_loaded_history_find(loaded, request->start_revision);
	watch->previous = request->previous;
	watch->no_put = request->no_put;
	watch->no_delete = request->no_delete;
	watch->ready = request->ready;
	watch->ready_arg = request->ready_arg;
	*ret_watch = &watch->base;
	return VD_OK;
}
