/* Watches of the store: cursors into the ring.
 *
 * A watch is placed when the ring is valid: at once, or when the fill ends. The ring of a removed resource is
 * valid and empty. A watch whose start is before
 * the ring ends with VD_EXPIRED; so does one that reads too slowly, when the ring drops its next event. */
#include <inttypes.h>

#include "key_range.h"
#include "kube_source.h"

static struct vdi_kube_source_watch *watch_of(struct vd_store_watch *base)
{
	return (struct vdi_kube_source_watch *) base;
}

static struct vdi_kube_source *source_of(const struct vdi_kube_source_watch *watch)
{
	return vdi_kube_source_of(watch->base.store);
}

static void wake_locked(struct vdi_kube_source_watch *watch)
{
	if (!watch->is_waiting)
		return;
	watch->is_waiting = false;
	watch->request.ready(watch->request.ready_arg);
}

void vdi_kube_watches_wake_locked(struct vdi_kube_source *source)
{
	struct vdi_kube_source_watch *watch;

	LIST_FOREACH(watch, &source->watches, node)
	wake_locked(watch);
}

static void expire_locked(struct vdi_kube_source_watch *watch, vd_status status, const char *why)
{
	struct vdi_kube_source *source = source_of(watch);

	if (watch->end.code != VD_OK)
		return;
	(void) vd_error_set(&watch->end, status, "%s", why);
	watch->end.requested = watch->told + 1;
	watch->end.current = source->known;
	if (status == VD_EXPIRED && source->is_filled)
		watch->end.compacted = source->ring.after + 1;
	wake_locked(watch);
}

static void place_locked(struct vdi_kube_source_watch *watch)
{
	struct vdi_kube_source *source = source_of(watch);

	if (watch->told == 0)
		watch->told = VDI_MAX(vdi_kube_ring_shown(&source->ring), (vd_rev) 1);
	if (watch->told > VDI_MAX(source->known, vdi_kube_ring_shown(&source->ring)) && watch->told > 1) {
		expire_locked(watch, VD_EXPIRED, "the server has not reached its start; list again");
		return;
	}
	if (vdi_kube_ring_find(&source->ring, watch->told + 1, &watch->cursor) != VD_OK) {
		expire_locked(watch, VD_EXPIRED, "the events since its start are not available; list again");
		return;
	}
	watch->is_placed = true;
}

void vdi_kube_watches_expire_locked(struct vdi_kube_source *source, vd_rev revision, vd_status status,
				    const char *why)
{
	struct vdi_kube_source_watch *watch;

	LIST_FOREACH(watch, &source->watches, node)
	{
		/* Before the first fill no watch needs events that are gone. */
		if (revision == INT64_MAX && status == VD_EXPIRED && !watch->is_placed)
			continue;
		if (watch->told && watch->told < revision) {
			expire_locked(watch, status, why);
		} else if (revision == INT64_MAX) {
			expire_locked(watch, status, why);
		} else {
			place_locked(watch);
			wake_locked(watch);
		}
	}
}

void vdi_kube_watches_relist_locked(struct vdi_kube_source *source, vd_rev revision, vd_status cause,
				    const char *why)
{
	(void) vd_error_set(&source->health.list_cause, cause, "%s", why);
	vdi_kube_watches_expire_locked(source, revision, VD_EXPIRED, why);
}

vd_status vdi_kube_source_watch(struct vd_store *store, const struct vd_store_watch_request *request,
				struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct vdi_kube_source	     *source = vdi_kube_source_of(store);
	struct vdi_kube_source_watch *watch = VDI_NEW(struct vdi_kube_source_watch);
	char			     *key = vdi_strndup(request->key.data, request->key.size);
	char			     *end = vdi_strndup(request->range_end.data, request->range_end.size);
	vd_status		      status = VD_OK;

	if (watch == NULL || key == NULL || end == NULL) {
		status = VD_NOMEM;
	} else {
		watch->base.store = store;
		watch->request = *request;
		watch->request.key.data = key;
		watch->request.range_end.data = end;
		watch->told = request->start_revision ? request->start_revision - 1 : 0;
		vdi_lock_acquire(&source->lock);
		if (source->is_closing) {
			status = VD_CLOSED;
		} else {
			source->is_wanted = true;
			watch->base.opened = source->is_filled ? vdi_kube_ring_shown(&source->ring) : 0;
			LIST_INSERT_HEAD(&source->watches, watch, node);
			if (source->is_filled || source->removed)
				place_locked(watch);
			(void) vdi_kube_source_ref(source);
			(void) vdi_usage_watch_opened(source->usage);
			vdi_kube_member_wake(&source->member);
		}
		vdi_lock_release(&source->lock);
	}
	if (status != VD_OK) {
		vdi_free(watch);
		vdi_free(key);
		vdi_free(end);
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	*ret_watch = &watch->base;
	return VD_OK;
}

/* ---- Reading ---- */

static void drop_events(struct vdi_kube_source_watch *watch)
{
	for (size_t i = 0; i < watch->event_count; i++) {
		vd_kv_unref(watch->events[i].kv);
		vd_kv_unref(watch->events[i].previous);
	}
	watch->event_count = 0;
}

static bool wants(const struct vdi_kube_source_watch *watch, const struct vdi_key_range *range,
		  const struct vdi_kube_change *change)
{
	return vdi_key_range_contains(range, vd_kv_key(change->kv)) &&
	       !(change->is_delete ? watch->request.no_delete : watch->request.no_put);
}

/* Number of the event after the last one to take: whole revisions, about max events. */
static uint64_t batch_end_locked(const struct vdi_kube_source_watch *watch, size_t max)
{
	const struct vdi_kube_ring *ring = &source_of(watch)->ring;
	uint64_t		    end = watch->cursor, most = watch->cursor + VDI_MAX(max, (size_t) 1);

	while (end < ring->visible && (end < most || vdi_kube_ring_at(ring, end)->kv->mod_rev ==
							     vdi_kube_ring_at(ring, end - 1)->kv->mod_rev))
		end++;
	return end;
}

/* Takes the events up to end. VD_AGAIN: none of them is for this watch. */
static vd_status take_locked(struct vdi_kube_source_watch *watch, uint64_t end,
			     struct vd_store_batch *ret_batch)
{
	const struct vdi_kube_ring *ring = &source_of(watch)->ring;
	struct vdi_key_range range = vdi_key_range_from_etcd(watch->request.key, watch->request.range_end);

	if (!vdi_grow((void **) &watch->events, &watch->event_capacity, (size_t) (end - watch->cursor),
		      sizeof *watch->events))
		return VD_NOMEM;
	for (; watch->cursor < end; watch->cursor++) {
		const struct vdi_kube_change *change = vdi_kube_ring_at(ring, watch->cursor);
		struct vd_store_event	     *event = &watch->events[watch->event_count];

		if (change->kv->mod_rev <= watch->told || !wants(watch, &range, change))
			continue;
		event->is_delete = change->is_delete;
		event->kv = vd_kv_ref(change->kv);
		event->previous =
			watch->request.previous && change->previous ? vd_kv_ref(change->previous) : NULL;
		watch->event_count++;
	}
	watch->told = VDI_MAX(watch->told, vdi_kube_ring_at(ring, end - 1)->kv->mod_rev);
	if (watch->event_count == 0)
		return VD_AGAIN;
	*ret_batch = (struct vd_store_batch) { .revision = watch->events[watch->event_count - 1].kv->mod_rev,
					       .events = watch->events,
					       .event_count = watch->event_count };
	return VD_OK;
}

static vd_status take_progress_locked(struct vdi_kube_source_watch *watch, struct vd_store_batch *ret_batch)
{
	struct vdi_kube_source *source = source_of(watch);
	/* Read here without the actor: bookmarks raise the shown progress under the lock. */
	vd_rev covered = source->covered;
	vd_rev revision = watch->progress;

	if (watch->request.progress && covered > watch->told)
		revision = VDI_MAX(revision, covered);
	if (revision == 0)
		return VD_AGAIN;
	watch->progress = 0;
	watch->told = VDI_MAX(watch->told, revision);
	*ret_batch = (struct vd_store_batch) { .revision = watch->told };
	return VD_OK;
}

static vd_status next_locked(struct vdi_kube_source_watch *watch, size_t max,
			     struct vd_store_batch *ret_batch)
{
	struct vdi_kube_source *source = source_of(watch);
	vd_status		status;

	if (watch->end.code != VD_OK)
		return watch->end.code;
	if (!watch->is_placed)
		return VD_AGAIN;
	if (watch->cursor < source->ring.first) {
		expire_locked(watch, VD_EXPIRED, "the watch was too slow: its next event was dropped");
		return watch->end.code;
	}
	while (watch->cursor < source->ring.visible) {
		status = take_locked(watch, batch_end_locked(watch, max), ret_batch);
		if (status != VD_AGAIN)
			return status;
	}
	return take_progress_locked(watch, ret_batch);
}

/* Drops events that all watches have taken; not while a list is read, whose reader opens a watch next. */
static void trim_ring_locked(struct vdi_kube_source *source)
{
	struct vdi_kube_source_watch *watch;
	uint64_t		      cursor = source->ring.visible;

	if (source->ring.bytes <= source->ring.bytes_min || !LIST_EMPTY(&source->streams))
		return;
	LIST_FOREACH(watch, &source->watches, node)
	{
		if (watch->is_placed && watch->end.code == VD_OK)
			cursor = VDI_MIN(cursor, watch->cursor);
	}
	vdi_kube_ring_trim(&source->ring, cursor);
}

vd_status vdi_kube_source_watch_next(struct vd_store_watch *base, size_t event_count_max,
				     struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct vdi_kube_source_watch *watch = watch_of(base);
	struct vdi_kube_source	     *source = source_of(watch);
	vd_status		      status;

	drop_events(watch);
	vdi_lock_acquire(&source->lock);
	status = next_locked(watch, event_count_max, ret_batch);
	watch->is_waiting = status == VD_AGAIN;
	trim_ring_locked(source);
	if (status != VD_OK && status != VD_AGAIN && reterr) {
		*reterr = watch->end;
		if (watch->end.code == VD_OK)
			(void) vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	vdi_lock_release(&source->lock);
	return status;
}

vd_status vdi_kube_source_watch_progress(struct vd_store_watch *base)
{
	struct vdi_kube_source_watch *watch = watch_of(base);
	struct vdi_kube_source	     *source = source_of(watch);
	vd_status		      status = VD_OK;

	vdi_lock_acquire(&source->lock);
	if (source->is_closing) {
		status = VD_CLOSED;
	} else if (source->has_no_progress) {
		status = VD_UNSUPPORTED;
	} else {
		watch->wants_progress = true;
		vdi_kube_member_wake(&source->member);
	}
	vdi_lock_release(&source->lock);
	return status;
}

void vdi_kube_source_watch_close(struct vd_store_watch *base)
{
	struct vdi_kube_source_watch *watch = watch_of(base);
	struct vdi_kube_source	     *source = source_of(watch);
	struct vdi_usage	     *usage;

	drop_events(watch);
	vdi_lock_acquire(&source->lock);
	LIST_REMOVE(watch, node);
	if (watch->is_placed && watch->end.code == VD_OK)
		vdi_kube_ring_give(&source->ring, watch->told); /* its reader may continue later */
	usage = source->usage;
	vdi_lock_release(&source->lock);
	vdi_usage_watch_closed(usage);
	vdi_free(watch->events);
	vdi_free((char *) (uintptr_t) watch->request.key.data);
	vdi_free((char *) (uintptr_t) watch->request.range_end.data);
	vdi_free(watch);
	vdi_kube_source_unref(source);
}
