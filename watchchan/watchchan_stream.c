/* The live stream after the base revision: turns the batches of the store's watch into raw events. */
#include "watchchan_state.h"

/* The store has events; the actor reads them. */
static void on_store_ready(void *arg)
{
	struct vdi_watchchan *watchchan = arg;

	vd_actor_wake(watchchan->actor);
}

static bool open_watch(struct vdi_watchchan *watchchan)
{
	struct vd_store_watch_request request = {
		.key = watchchan->options.key,
		.range_end = watchchan->range_end,
		.start_revision = watchchan->base_revision + 1,
		.previous = true,
		.progress = watchchan->options.progress,
		.ready = on_store_ready,
		.ready_arg = watchchan,
	};
	struct vd_store_watch *watch = NULL;
	struct vd_error	       error = { 0 };
	vd_status	       status = vd_store_watch_open(watchchan->store, &request, &watch, &error);

	if (status != VD_OK) {
		vdi_watchchan_push_error(watchchan, status, &error);
		return false;
	}
	vdi_lock_acquire(&watchchan->lock);
	watchchan->watch = watch;
	if (watchchan->progress_wanted)
		(void) vd_store_watch_progress(watch); /* failure is harmless: the caller asks again */
	vdi_lock_release(&watchchan->lock);
	return true;
}

/* The store delivers whole revisions, so the batch tells whether more events of a revision follow. */
static void push_change(struct vdi_watchchan *watchchan, vd_mono now)
{
	const struct vd_store_batch *batch = &watchchan->batch;
	const struct vd_store_event *event = &batch->events[watchchan->batch_next++];
	bool			     wants_previous = event->is_delete ||
			      /* the previous record's memory is cold: do not touch it unless it is used */
			      watchchan->options.predicate;
	struct vdi_raw_event raw = {
		.kind = VDI_RAW_CHANGE,
		.more_in_revision = watchchan->batch_next < batch->event_count &&
				    event[1].kv->mod_rev == event->kv->mod_rev,
		.is_delete = event->is_delete,
		.revision = event->kv->mod_rev,
		.kv = vd_kv_ref(event->kv),
		.has_previous = event->previous != NULL,
		.previous = event->previous && wants_previous ? vd_kv_ref(event->previous) : NULL,
		.received = now,
	};

	if (watchchan->batch_next + 2 < batch->event_count)
		__builtin_prefetch(event[3].kv, 1);
	vdi_watchchan_push_raw(watchchan, &raw);
}

static void push_progress(struct vdi_watchchan *watchchan, vd_rev revision)
{
	struct vdi_raw_event raw = { .kind = VDI_RAW_BOOKMARK,
				     .revision = revision,
				     .received = vd_env_now(watchchan->env) };

	vdi_storage_metrics_progress(watchchan->options.metrics);
	vdi_watchchan_push_raw(watchchan, &raw);
}

/* Takes the next batch from the store. False: none yet, or the stream has ended. */
static bool next_batch(struct vdi_watchchan *watchchan)
{
	struct vd_error error = { 0 };
	vd_status	status =
		vd_store_watch_next(watchchan->watch, VDI_WATCHCHAN_QUEUE_LEN, &watchchan->batch, &error);

	watchchan->batch_next = 0;
	if (status == VD_OK)
		return true;
	memset(&watchchan->batch, 0, sizeof watchchan->batch);
	if (status != VD_AGAIN)
		vdi_watchchan_push_error(watchchan, status, &error);
	return false;
}

bool vdi_watchchan_stream(struct vdi_watchchan *watchchan)
{
	size_t	pushed = 0;
	bool	moved = false;
	vd_mono now;

	if (watchchan->watch == NULL && !open_watch(watchchan))
		return true;
	now = vd_env_now(watchchan->env);
	while (!vdi_slots_full(watchchan)) {
		if (watchchan->batch_next < watchchan->batch.event_count) {
			push_change(watchchan, now);
			pushed++;
		} else if (!next_batch(watchchan)) {
			break;
		} else if (watchchan->batch.event_count == 0) {
			push_progress(watchchan, watchchan->batch.revision);
		}
		moved = true;
	}
	vdi_storage_metrics_events(watchchan->options.metrics, pushed);
	return moved || watchchan->phase == VDI_PHASE_ENDED;
}
