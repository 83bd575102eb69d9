/* Serves a watcher: events from the store, progress, its end; suspends it if the client does not read (see
 * serve_watch.c). */
#include "env.h"
#include "serve_watch_state.h"

#define BATCH_REVISIONS_MAX 1000
#define MESSAGE_BYTES_MAX ((size_t) 128 << 10)
/* Consecutive responses with one revision before a watcher counts as behind. */
#define LIVE_BURST_MAX 4

/* ---- Small things ---- */

bool vdi_serve_watcher_equals(const void *entry, const void *key)
{
	return ((const struct vdi_serve_watcher *) entry)->id == *(const int64_t *) key;
}

uint64_t vdi_serve_watcher_hash(const struct vdi_watch_stream *stream, int64_t id)
{
	return vdi_hash_bytes((struct vd_bytes) { &id, sizeof id }, stream->seed);
}

void vdi_serve_watcher_activate(struct vdi_serve_watcher *watcher)
{
	if (!watcher->is_active)
		TAILQ_INSERT_TAIL(&watcher->stream->active, watcher, active_node);
	watcher->is_active = true;
}

static void deactivate(struct vdi_serve_watcher *watcher)
{
	if (watcher->is_active)
		TAILQ_REMOVE(&watcher->stream->active, watcher, active_node);
	watcher->is_active = false;
}

void vdi_serve_watcher_set_live(struct vdi_serve_watcher *watcher, bool live)
{
	if (watcher->is_live != live)
		vdi_serve_watches_count(watcher->stream->server->watches, 0, live ? -1 : 1, 0);
	watcher->is_live = live;
}

/* ---- Watchers ---- */

static void watch_ready(void *arg)
{
	struct vdi_serve_watcher *watcher = arg;
	struct vdi_watch_stream	 *stream = watcher->stream;

	vdi_lock_acquire(&stream->lock);
	if (!watcher->is_ready)
		TAILQ_INSERT_TAIL(&stream->ready, watcher, ready_node);
	watcher->is_ready = true;
	vdi_lock_release(&stream->lock);
	vd_actor_wake(stream->actor);
}

vd_status vdi_serve_watcher_open(struct vdi_serve_watcher *watcher, vd_rev start_revision)
{
	struct vd_store_watch_request request = { .key = { watcher->text, watcher->key_size },
						  .range_end = { watcher->text + watcher->key_size,
								 watcher->range_end_size },
						  .start_revision = start_revision,
						  .previous = watcher->previous,
						  .no_put = watcher->no_put,
						  .no_delete = watcher->no_delete,
						  .ready = watch_ready,
						  .ready_arg = watcher };

	return vd_store_watch_open(watcher->stream->server->store, &request, &watcher->watch, NULL);
}

static void close_watch(struct vdi_serve_watcher *watcher)
{
	struct vdi_watch_stream *stream = watcher->stream;

	vd_store_watch_close(watcher->watch);
	watcher->watch = NULL;
	vdi_lock_acquire(&stream->lock);
	if (watcher->is_ready)
		TAILQ_REMOVE(&stream->ready, watcher, ready_node);
	watcher->is_ready = false;
	vdi_lock_release(&stream->lock);
}

/* Stops serving the watcher. */
static void retire(struct vdi_serve_watcher *watcher)
{
	deactivate(watcher);
	close_watch(watcher);
	vdi_serve_watcher_note_progress(watcher, INT64_MAX);
	if (watcher->progress_notify && !watcher->is_dead)
		watcher->stream->notify_count--;
	vdi_serve_watcher_set_live(watcher, true);
	watcher->is_dead = true;
}

void vdi_serve_watcher_free(struct vdi_serve_watcher *watcher)
{
	struct vdi_watch_stream *stream = watcher->stream;

	retire(watcher);
	(void) vdi_hash_remove(&stream->watchers, vdi_serve_watcher_hash(stream, watcher->id), &watcher->id);
	vdi_serve_watches_count(stream->server->watches, -1, 0, 0);
	vdi_free(watcher);
}

bool vdi_serve_watcher_is_future(const struct vdi_serve_watcher *watcher, vd_rev current)
{
	return watcher->start_revision > current;
}

void vdi_serve_watcher_note_progress(struct vdi_serve_watcher *watcher, vd_rev revision)
{
	struct vdi_watch_stream *stream = watcher->stream;

	if (!watcher->all_waiting)
		return;
	watcher->all_waiting = false;
	stream->all_missing--;
	stream->all_revision = VDI_MIN(stream->all_revision, revision);
}

/* ---- Events ---- */

static struct vd_bytes encode_head(int64_t id, uint8_t head[16])
{
	struct vdi_wire_out out = { head, 0 };

	vdi_wire_number(&out, 2, (uint64_t) id);
	return (struct vd_bytes) { head, out.size };
}

/* Suspends the watcher, to be opened again after the events already sent: those before *next. A batch begins
 * with a whole revision, so events of next's revision that were sent are in the batch before it. */
static void suspend(struct vdi_serve_watcher *watcher, const struct vd_store_event *events,
		    const struct vd_store_event *next)
{
	watcher->resume_revision = next->kv->mod_rev;
	watcher->resume_skip = 0;
	while (next-- > events && next->kv->mod_rev == watcher->resume_revision)
		watcher->resume_skip++;
	close_watch(watcher);
	vdi_serve_watcher_set_live(watcher, false);
	vdi_serve_watcher_activate(watcher);
}

/* Sends one message; false: not sent. */
static bool send_piece(struct vdi_serve_watcher *watcher, const struct vd_store_event *events, size_t count,
		       vd_rev revision, bool is_fragment)
{
	struct vdi_watch_stream *stream = watcher->stream;
	struct vdi_watch_frame	 frame = { events, count, revision, watcher->previous, is_fragment };
	struct vdi_rpc_blob	*blob;
	uint8_t			 head[16];
	bool			 sent;

	if (vdi_serve_watches_frame(stream->server->watches, &frame, &blob) != VD_OK) {
		stream->is_finished = true;
		vdi_serve_fail_status(stream->call, VD_NOMEM);
		return false;
	}
	sent = vdi_watch_stream_send(stream, encode_head(watcher->id, head), blob);
	vdi_rpc_blob_unref(blob);
	if (sent) {
		watcher->progress_due = false;
		watcher->resume_skip = 0;
		vdi_serve_watches_count(stream->server->watches, 0, 0, (int) count);
	}
	return sent;
}

/* Returns the number of events for the next message: fragments as etcd if requested, else whole revisions up
 * to MESSAGE_BYTES_MAX. */
static size_t piece_count(const struct vdi_serve_watcher *watcher, const struct vd_store_event *events,
			  size_t count, bool *ret_fragment)
{
	size_t threshold = watcher->stream->server->options.request_bytes_max + VDI_ETCD_RECEIVE_EXTRA;
	size_t size = 40; /* header and flags */
	size_t whole = 0; /* size up to the end of a revision */

	*ret_fragment = false;
	for (size_t i = 0; i < count; i++) {
		size += vdi_watch_event_size(&events[i], watcher->previous);
		if (watcher->fragment && i && size >= threshold) {
			*ret_fragment = true;
			return i;
		}
		if (!watcher->fragment && whole && size > MESSAGE_BYTES_MAX)
			return whole;
		if (i + 1 == count || events[i + 1].kv->mod_rev != events[i].kv->mod_rev)
			whole = i + 1;
	}
	return count;
}

static void send_events(struct vdi_serve_watcher *watcher, const struct vd_store_batch *batch,
			vd_rev revision)
{
	const struct vd_store_event *events = batch->events;
	const struct vd_store_event *end = events + batch->event_count;
	const struct vd_store_event *next = events;
	bool			     is_fragment;

	/* Skip events of the first revision that were sent before the watch was suspended. */
	if (watcher->resume_skip && events->kv->mod_rev == watcher->resume_revision)
		next += VDI_MIN(watcher->resume_skip, batch->event_count);
	while (next < end && !watcher->stream->is_finished) {
		size_t count = piece_count(watcher, next, (size_t) (end - next), &is_fragment);

		if (!send_piece(watcher, next, count, revision, is_fragment)) {
			if (watcher->stream->is_blocked)
				suspend(watcher, events, next);
			return;
		}
		next += count;
	}
}

static void send_progress(struct vdi_serve_watcher *watcher, vd_rev revision)
{
	struct vdi_watch_control control = { .revision = revision, .watch_id = watcher->id };

	vdi_serve_watcher_set_live(watcher, true);
	vdi_serve_watcher_note_progress(watcher, revision);
	if (!watcher->tick_wanted)
		return;
	watcher->tick_wanted = false;
	vdi_watch_stream_send_control(watcher->stream, &control);
}

/* Handles the end of the watch by itself. */
static void watch_ended(struct vdi_serve_watcher *watcher, vd_status status, const struct vd_error *error)
{
	struct vdi_watch_stream *stream = watcher->stream;
	struct vdi_watch_control control = { .watch_id = watcher->id, .canceled = true };

	if (status == VD_CLOSED) {
		vdi_watch_stream_fail(stream, VD_ETCD_STOPPED);
		return;
	}
	if (status == VD_EXPIRED) {
		/* As etcd: compact_revision instead of a reason and a revision. */
		control.compact_revision = error->compacted;
	} else {
		control.revision = vdi_serve_revision(stream->server);
		control.reason = vd_status_sentence(status);
	}
	retire(watcher);
	vdi_watch_stream_send_control(stream, &control);
}

/* Serves one batch of one watcher. */
void vdi_serve_watcher_serve(struct vdi_serve_watcher *watcher)
{
	struct vdi_watch_stream *stream = watcher->stream;
	bool			 is_single = watcher->is_live && watcher->burst < LIVE_BURST_MAX;
	struct vd_store_batch	 batch;
	struct vd_error		 error = { .code = VD_OK };
	vd_status		 status = VD_OK;

	if (watcher->watch == NULL) {
		status = vdi_serve_watcher_open(watcher, watcher->resume_revision);
		if (status == VD_OK && watcher->all_waiting)
			(void) vd_store_watch_progress(watcher->watch);
		if (status == VD_OK && watcher->tick_wanted)
			(void) vd_store_watch_progress(watcher->watch);
	}
	if (status == VD_OK)
		status = vd_store_watch_next(watcher->watch, is_single ? 1 : BATCH_REVISIONS_MAX, &batch,
					     &error);
	if (status == VD_AGAIN) {
		deactivate(watcher);
		watcher->burst = 0;
		vdi_serve_watcher_set_live(watcher, true);
		return;
	}
	if (status != VD_OK) {
		watch_ended(watcher, status, &error);
		return;
	}
	/* Moves to the end of the list, because others wait. */
	deactivate(watcher);
	vdi_serve_watcher_activate(watcher);
	if (batch.event_count == 0) {
		send_progress(watcher, batch.revision);
		return;
	}
	watcher->burst++;
	if (!is_single)
		vdi_serve_watcher_set_live(watcher, false);
	send_events(watcher, &batch,
		    is_single ? batch.revision : VDI_MAX(batch.revision, vdi_serve_revision(stream->server)));
}
