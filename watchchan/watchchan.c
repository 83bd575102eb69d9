/* The lifecycle of a watchChan and one run of its actor: collect decoded slots, fill the raw queue, decode.
 *
 * The actor is woken by the store (new events, a page), by decode workers (slots decoded) and by the receiver
 * (room in the result queue). The work of one run is bounded; the actor wakes itself if more remains.
 *
 * The actor also closes the watchChan: it waits for the read in flight and for its workers, closes the
 * store's watch, and then closes itself. So no callback can use freed memory.
 */
#include "watchchan.h"

#include "key_range.h"
#include "watchchan_state.h"

/* Maximum raw events per run of the actor. */
#define RUN_EVENTS_MAX (4 * VDI_WATCHCHAN_QUEUE_LEN)
/* Log only if the result queue was full for at least this long within one window of the log limit (upstream:
 * 100 ms in 5 s). */
#define BLOCKED_WORTH_LOGGING_NS 100000000
/* Bytes of a record that are prefetched; the hardware prefetcher continues from there. */
#define PREFETCHED_MAX 1152

/* ---- Queues ---- */

void vdi_watchchan_push_raw(struct vdi_watchchan *watchchan, const struct vdi_raw_event *raw)
{
	struct vdi_slot *slot = vdi_slot_at(watchchan, watchchan->slot_tail);
	size_t		 length;

	VDI_CHECK(!vdi_slots_full(watchchan));
	slot->raw = *raw;
	slot->state = VDI_SLOT_RAW;
	watchchan->slot_tail++;
	length = (size_t) (watchchan->slot_tail - watchchan->slot_head);
	watchchan->raw_len = length;
	watchchan->raw_high = VDI_MAX(watchchan->raw_high, length);
}

/* Maps an error of the store to the error event that the client sees (upstream: parseError in
 * etcd3/watcher.go). */
static void set_error(struct vd_error *ret, vd_status status, const struct vd_error *error)
{
	const char *text = error && error->message[0] ? error->message : vd_status_sentence(status);

	switch (status) {
	case VD_EXPIRED:
		vd_error_set(ret, VD_EXPIRED, "The resourceVersion for the provided watch is too old.");
		ret->compacted = error ? error->compacted : 0;
		break;
	case VD_TOO_LARGE_REVISION:
	case VD_NOMEM:
	case VD_INTERNAL:
	case VD_CORRUPT: /* the stream cannot continue: the reflector lists again */
	case VD_UNDECODABLE:
	case VD_BAD_REQUEST: /* the store does not accept this watch */
	case VD_INVALID_ARGUMENT:
	case VD_UNSUPPORTED:
		if (error && error->message[0])
			*ret = *error;
		else
			vd_error_set(ret, status, "%s", text);
		break;
	default: vd_error_set(ret, VD_INTERNAL, "Internal error occurred: %.300s", text);
	}
}

const char *vdi_watchchan_cause(const struct vdi_watchchan *watchchan)
{
	return watchchan->cause.message[0] ? watchchan->cause.message : watchchan->error.message;
}

void vdi_watchchan_push_error(struct vdi_watchchan *watchchan, vd_status status, const struct vd_error *error)
{
	watchchan->phase = VDI_PHASE_ENDED;
	/* the stream ends without an error event */
	watchchan->quiet_end = status == VD_CLOSED || status == VD_CANCELED;
	if (watchchan->quiet_end)
		return;
	set_error(&watchchan->error, status, error);
	if (status == VD_EXPIRED && error)
		watchchan->cause = *error;
	watchchan->error_pending = true; /* queued as soon as there is room */
}

static void raw_fini(struct vdi_raw_event *raw)
{
	vd_kv_unref(raw->kv);
	vd_kv_unref(raw->previous);
	raw->kv = raw->previous = NULL;
}

void vdi_watchchan_event_fini(struct vdi_watchchan_event *event)
{
	event->object = vd_object_unref(event->object);
	event->old_object = vd_object_unref(event->old_object);
	vd_kv_unref(event->lost);
	event->lost = NULL;
}

/* Calls ready() if the receiver waits for it, once. Under the lock, so that ready() is never called after
 * close returned. */
static void notify_receiver_locked(struct vdi_watchchan *watchchan)
{
	if (watchchan->consumer_waits && !watchchan->closing) {
		watchchan->consumer_waits = false;
		watchchan->options.ready(watchchan->options.ready_arg);
	}
}

/* Only the actor uses the entries behind result_tail until it moves the tail. */
static void put_result(struct vdi_watchchan *watchchan, size_t number,
		       const struct vdi_watchchan_event *event)
{
	watchchan->results[(watchchan->result_tail + number) % VDI_WATCHCHAN_QUEUE_LEN] = *event;
}

static void publish_results_locked(struct vdi_watchchan *watchchan, size_t count, size_t bookmarks)
{
	if (count == 0)
		return;
	watchchan->result_tail += count;
	watchchan->stats.result_high = VDI_MAX(watchchan->stats.result_high,
					       (size_t) (watchchan->result_tail - watchchan->result_head));
	watchchan->stats.bookmarks += bookmarks;
	watchchan->stats.events += count - bookmarks;
	notify_receiver_locked(watchchan);
}

/* ---- One run of the actor ---- */

/* Handles an object that cannot be decoded: with skip_undecodable the watch continues, else slot->event
 * becomes the error event that ends it. A change is delivered as DELETED instead of dropped, because a
 * receiver that has the previous state would keep it for ever. */
static void handle_undecodable(struct vdi_watchchan *watchchan, struct vdi_slot *slot)
{
	struct vd_kv *kv = slot->raw.kv;

	if (slot->status == VD_UNDECODABLE && watchchan->options.skip_undecodable) {
		if (watchchan->options.undecodable)
			watchchan->options.undecodable(watchchan->options.undecodable_arg, kv,
						       slot->raw.is_delete, &slot->error);
		slot->emit = slot->raw.kind == VDI_RAW_CHANGE;
		if (slot->emit) {
			slot->event.type = VD_WATCH_DELETED;
			slot->event.lost = vd_kv_ref(kv);
		}
		return;
	}
	watchchan->error = slot->error;
	watchchan->cause.message[0] = 0; /* an error of the store behind it is not delivered */
	memset(&slot->event, 0, sizeof slot->event);
	slot->event.type = VD_WATCH_ERROR;
	slot->event.received = slot->raw.received;
	watchchan->phase = VDI_PHASE_ENDED;
}

/* If the last event of a revision is dropped and the receiver waits for the end of that revision, a bookmark
 * replaces the event. */
static void close_revision(struct vdi_watchchan *watchchan, struct vdi_slot *slot)
{
	if (!slot->emit && slot->raw.kind == VDI_RAW_CHANGE && !slot->raw.more_in_revision &&
	    watchchan->revision_open) {
		memset(&slot->event, 0, sizeof slot->event);
		slot->event.type = VD_WATCH_BOOKMARK;
		slot->event.revision = slot->raw.revision;
		slot->event.received = slot->raw.received;
		slot->emit = true;
	}
	if (slot->emit)
		watchchan->revision_open = slot->event.more_in_revision;
}

/* Counts the decoded slots from the head on, at most as many as fit into the result queue. There is at least
 * one slot. */
static size_t count_collectable_locked(struct vdi_watchchan *watchchan)
{
	size_t room = VDI_WATCHCHAN_QUEUE_LEN - (size_t) (watchchan->result_tail - watchchan->result_head);
	size_t count = 0;

	while (count < room && watchchan->slot_head + count < watchchan->slot_tail &&
	       vdi_slot_at(watchchan, watchchan->slot_head + count)->state == VDI_SLOT_DONE)
		count++;
	if (room == 0 && !watchchan->producer_waits) {
		watchchan->producer_waits = true;
		watchchan->stats.result_full++;
		watchchan->blocked_since = vd_env_now(watchchan->env);
	}
	return count;
}

/* Moves decoded slots, in order, into the result queue until it is full. Takes the lock once for all of
 * them. */
static bool collect(struct vdi_watchchan *watchchan)
{
	size_t count, made = 0, bookmarks = 0, undecodable = 0;

	if (watchchan->slot_head == watchchan->slot_tail || watchchan->done)
		return false;
	vdi_lock_acquire(&watchchan->lock);
	count = count_collectable_locked(watchchan);
	vdi_lock_release(&watchchan->lock);
	for (size_t i = 0; i < count && !watchchan->done; i++) {
		struct vdi_slot *slot = vdi_slot_at(watchchan, watchchan->slot_head);

		if (slot->status != VD_OK)
			handle_undecodable(watchchan, slot);
		close_revision(watchchan, slot);
		if (slot->status == VD_UNDECODABLE && slot->event.type != VD_WATCH_ERROR)
			undecodable++;
		if (slot->emit) {
			watchchan->done = slot->event.type == VD_WATCH_ERROR;
			if (watchchan->done)
				slot->event.error = &watchchan->error;
			bookmarks += slot->event.type == VD_WATCH_BOOKMARK;
			put_result(watchchan, made++, &slot->event);
		}
		raw_fini(&slot->raw);
		slot->state = VDI_SLOT_EMPTY;
		watchchan->slot_head++;
	}
	watchchan->raw_len = (size_t) (watchchan->slot_tail - watchchan->slot_head);
	vdi_lock_acquire(&watchchan->lock);
	watchchan->stats.undecodable += undecodable;
	publish_results_locked(watchchan, made, bookmarks);
	vdi_lock_release(&watchchan->lock);
	return count > 0;
}

static bool fill(struct vdi_watchchan *watchchan)
{
	if (vdi_slots_full(watchchan)) {
		watchchan->raw_full++;
		return false;
	}
	switch (watchchan->phase) {
	case VDI_PHASE_STARTING: return vdi_watchchan_start(watchchan);
	case VDI_PHASE_SYNCING: return vdi_watchchan_sync(watchchan);
	case VDI_PHASE_STREAMING: return vdi_watchchan_stream(watchchan);
	case VDI_PHASE_ENDED:
		if (watchchan->error_pending) {
			struct vdi_raw_event raw = { .kind = VDI_RAW_ERROR,
						     .received = vd_env_now(watchchan->env) };

			vdi_watchchan_push_raw(watchchan, &raw);
			watchchan->error_pending = false;
			return true;
		}
		return false;
	}
	VDI_UNREACHABLE("watchChan phase is not in the enum");
}

/* Another thread wrote the bytes: fetch the next record into this CPU's cache while the current one is
 * decoded. */
static void prefetch_value(const struct vd_kv *kv)
{
	size_t size = VDI_MIN((size_t) kv->key_size + kv->value_size, (size_t) PREFETCHED_MAX);

	for (size_t offset = 0; offset < size; offset += 64)
		__builtin_prefetch(kv->data + offset);
}

static bool decode_inline(struct vdi_watchchan *watchchan)
{
	bool moved = watchchan->slot_decode < watchchan->slot_tail;

	for (; watchchan->slot_decode < watchchan->slot_tail; watchchan->slot_decode++) {
		struct vdi_slot *slot = vdi_slot_at(watchchan, watchchan->slot_decode);

		if (watchchan->slot_decode + 1 < watchchan->slot_tail &&
		    vdi_slot_at(watchchan, watchchan->slot_decode + 1)->raw.kv)
			prefetch_value(vdi_slot_at(watchchan, watchchan->slot_decode + 1)->raw.kv);
		vdi_watchchan_decode_slot(watchchan, slot);
		slot->state = VDI_SLOT_DONE;
	}
	return moved;
}

/* Marks the stream as ended, once, after its last event was queued. */
static void note_end(struct vdi_watchchan *watchchan)
{
	bool over = watchchan->done || (watchchan->phase == VDI_PHASE_ENDED && watchchan->quiet_end &&
					watchchan->slot_head == watchchan->slot_tail);

	if (!over)
		return;
	vdi_lock_acquire(&watchchan->lock);
	if (!watchchan->ended) {
		watchchan->ended = true;
		notify_receiver_locked(watchchan);
	}
	vdi_lock_release(&watchchan->lock);
}

static void publish_stats(struct vdi_watchchan *watchchan)
{
	vdi_lock_acquire(&watchchan->lock);
	watchchan->stats.raw_len = watchchan->raw_len;
	watchchan->stats.raw_high = watchchan->raw_high;
	watchchan->stats.raw_full = watchchan->raw_full;
	vdi_lock_release(&watchchan->lock);
}

static void free_all(void *arg)
{
	struct vdi_watchchan *watchchan = arg;
	void (*closed)(void *) = watchchan->closed;
	void *closed_arg = watchchan->closed_arg;

	for (; watchchan->slot_head < watchchan->slot_tail; watchchan->slot_head++) {
		struct vdi_slot *slot = vdi_slot_at(watchchan, watchchan->slot_head);

		raw_fini(&slot->raw);
		if (slot->state == VDI_SLOT_DONE)
			vdi_watchchan_event_fini(&slot->event);
	}
	for (; watchchan->result_head < watchchan->result_tail; watchchan->result_head++)
		vdi_watchchan_event_fini(
			&watchchan->results[watchchan->result_head % VDI_WATCHCHAN_QUEUE_LEN]);
	vdi_watchchan_page_release(watchchan);
	watchchan->page_kvs = watchchan->read_kvs; /* an answer that the actor did not process */
	watchchan->page_count = watchchan->read_kvs ? watchchan->read_count : 0;
	vdi_watchchan_page_release(watchchan);
	vdi_lock_fini(&watchchan->lock);
	vdi_free(watchchan->key);
	vdi_free(watchchan);
	if (closed)
		closed(closed_arg);
}

/* One step of closing; repeated until no read is in flight and all workers have ended. */
static void close_step(struct vdi_watchchan *watchchan)
{
	struct vd_store_watch *watch;
	bool		       quiet;

	if (!watchchan->resources_closed) {
		watchchan->resources_closed = true;
		vdi_watchchan_workers_close(watchchan);
		vdi_watchchan_sync_close(watchchan);
		vdi_lock_acquire(&watchchan->lock);
		watch = watchchan->watch;
		watchchan->watch = NULL;
		vdi_lock_release(&watchchan->lock);
		vd_store_watch_close(watch);
	}
	vdi_lock_acquire(&watchchan->lock);
	quiet = !watchchan->reading && watchchan->workers_open == 0;
	vdi_lock_release(&watchchan->lock);
	if (quiet)
		vd_actor_close(watchchan->actor, free_all, watchchan);
}

static void watchchan_run(void *arg)
{
	struct vdi_watchchan *watchchan = arg;
	bool		      closing, moved = true;

	vdi_lock_acquire(&watchchan->lock);
	closing = watchchan->closing;
	vdi_lock_release(&watchchan->lock);
	if (closing) {
		close_step(watchchan);
		return;
	}
	for (uint64_t first = watchchan->slot_tail; moved && watchchan->slot_tail - first < RUN_EVENTS_MAX;) {
		moved = collect(watchchan);
		moved |= fill(watchchan);
		if (watchchan->options.decode_workers)
			vdi_watchchan_workers_wake(watchchan);
		else
			moved |= decode_inline(watchchan);
	}
	note_end(watchchan);
	publish_stats(watchchan);
	if (moved)
		vd_actor_wake(watchchan->actor);
}

/* ---- Functions of the receiver ---- */

vd_status vdi_watchchan_take(struct vdi_watchchan *watchchan, struct vdi_watchchan_event *events, size_t max,
			     size_t *ret_count)
{
	static struct vdi_log_limit blocked_limit = VDI_LOG_LIMIT(((vd_dur) { 5000000000 }));
	size_t			    count = 0;
	int64_t			    blocked_ns = 0;
	vd_status		    status;

	vdi_lock_acquire(&watchchan->lock);
	while (count < max && watchchan->result_head < watchchan->result_tail)
		events[count++] = watchchan->results[watchchan->result_head++ % VDI_WATCHCHAN_QUEUE_LEN];
	status = count ? VD_OK : watchchan->ended ? VD_CLOSED : VD_AGAIN;
	if (status == VD_AGAIN)
		watchchan->consumer_waits = true;
	if (count && watchchan->producer_waits) {
		watchchan->producer_waits = false;
		blocked_ns = vd_mono_since(vd_env_now(watchchan->env), watchchan->blocked_since).ns;
		vd_actor_wake(watchchan->actor);
	}
	vdi_lock_release(&watchchan->lock);
	if (blocked_ns > BLOCKED_WORTH_LOGGING_NS)
		vdi_log_limited(
			watchchan->env, &blocked_limit, VD_LOG_WARNING, "watchchan",
			"watch of %s: the result queue was full for %lld ms, the receiver is too slow",
			watchchan->options.resource ? watchchan->options.resource : "an unnamed resource",
			(long long) (blocked_ns / 1000000));
	*ret_count = count;
	return status;
}

vd_status vdi_watchchan_next(struct vdi_watchchan *watchchan, struct vdi_watchchan_event *ret_event)
{
	size_t count;

	return vdi_watchchan_take(watchchan, ret_event, 1, &count);
}

void vdi_watchchan_progress(struct vdi_watchchan *watchchan)
{
	vdi_lock_acquire(&watchchan->lock);
	if (watchchan->watch)
		/* failure is harmless: the caller asks again */
		(void) vd_store_watch_progress(watchchan->watch);
	else
		watchchan->progress_wanted = true;
	vdi_lock_release(&watchchan->lock);
}

void vdi_watchchan_stats_get(struct vdi_watchchan *watchchan, struct vdi_watchchan_stats *ret_stats)
{
	vdi_lock_acquire(&watchchan->lock);
	*ret_stats = watchchan->stats;
	ret_stats->result_len = (size_t) (watchchan->result_tail - watchchan->result_head);
	vdi_lock_release(&watchchan->lock);
}

/* ---- Open and close ---- */

static vd_status check_options(const struct vdi_watchchan_options *options, struct vd_error *reterr)
{
	if (options->key.size == 0 || options->key.size > VD_KEY_SIZE_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "watch: the key has %zu bytes, must have 1 to %d", options->key.size,
				    VD_KEY_SIZE_MAX);
	if (options->recursive && ((const char *) options->key.data)[options->key.size - 1] != '/')
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "recursive key needs to end with \"/\"");
	if (options->revision < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "watch: start revision is %lld, must be 0 or more",
				    (long long) options->revision);
	if (options->ready == NULL || options->codec == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "watch: codec or ready is NULL");
	return VD_OK;
}

vd_status vdi_watchchan_open(const struct vd_env *env, struct vd_store *store,
			     const struct vdi_watchchan_options *options,
			     struct vdi_watchchan **ret_watchchan, struct vd_error *reterr)
{
	struct vdi_watchchan   *watchchan;
	struct vd_actor_options actor = { .name = "watchchan", .run = watchchan_run };
	vd_status		status;

	VDI_TRY(check_options(options, reterr));
	watchchan = VDI_NEW(struct vdi_watchchan);
	if (watchchan == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	vdi_lock_init(&watchchan->lock, VDI_LOCK_WATCHCHAN);
	watchchan->env = env;
	watchchan->store = store;
	watchchan->options = *options;
	watchchan->options.decode_workers =
		VDI_MIN(options->decode_workers, (unsigned) VDI_DECODE_WORKERS_MAX);
	watchchan->consumer_waits = true;
	/* the key and the range end, which is not longer */
	watchchan->key = vdi_alloc(2 * options->key.size);
	if (watchchan->key == NULL) {
		free_all(watchchan);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	memcpy(watchchan->key, options->key.data, options->key.size);
	watchchan->options.key.data = watchchan->key;
	if (options->recursive)
		watchchan->range_end =
			vdi_bytes_prefix_end(watchchan->options.key, watchchan->key + options->key.size);
	actor.arg = watchchan;
	status = vd_actor_new(env, &actor, &watchchan->actor);
	if (status != VD_OK) {
		free_all(watchchan);
		return vd_error_set(reterr, status, "cannot create the actor of a watch");
	}
	status = vdi_watchchan_workers_open(watchchan);
	if (status != VD_OK) {
		/* The actors have never run, so nothing else uses the watchChan. */
		for (unsigned i = 0; i < watchchan->workers_open; i++)
			vd_actor_close(watchchan->workers[i].actor, NULL, NULL);
		vd_actor_close(watchchan->actor, NULL, NULL);
		free_all(watchchan);
		return vd_error_set(reterr, status, "cannot create the decode workers of a watch");
	}
	vd_actor_wake(watchchan->actor);
	*ret_watchchan = watchchan;
	return VD_OK;
}

void vdi_watchchan_close(struct vdi_watchchan *watchchan, void (*done)(void *arg), void *arg)
{
	if (watchchan == NULL) {
		if (done)
			done(arg);
		return;
	}
	vdi_lock_acquire(&watchchan->lock);
	watchchan->closing = true;
	watchchan->closed = done;
	watchchan->closed_arg = arg;
	vd_actor_wake(watchchan->actor);
	vdi_lock_release(&watchchan->lock);
}
