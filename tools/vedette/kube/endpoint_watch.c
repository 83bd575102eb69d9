/* Watches. Each kind of the interval has a stream of its own. With whole revisions the streams are merged:
 *
 *   pods		  5	  8   9 ..... has passed 8 (more events of 9 may follow)
 *   leases		      7	  bookmark 12 has passed 12
 *   configmaps  bookmark 7		      has passed 7
 * 				-> 5 and 7 are delivered, 8 and 9 wait for a bookmark of configmaps
 *
 * In a kube-apiserver the cache of an unchanged kind does not advance, and neither do its bookmarks, until a
 * client requests a consistent list; so a list that selects nothing precedes each watch. Kinds without a
 * cache there (events) send no bookmarks: a watch that was opened after such a list and lasted its full time
 * has delivered all events before the list. If such an event still arrives later, in the next watch, it is
 * an error, never a gap. A stream that ends is reopened at the revision that it has passed. Events that are
 * repeated because of that, further objects of the last revision, are dropped. */
#include <stdio.h>

#include "endpoint_state.h"

#define WAITING_MAX ((size_t) 64 << 20)
#define BACKOFF_MIN VD_MS(100)
#define BACKOFF_MAX VD_SECONDS(5)
/* Maximum time of a watch beyond its requested time. */
#define OVERTIME_S 30

static struct vdi_endpoint_watch *watch_of(struct vd_store_watch *base)
{
	return (struct vdi_endpoint_watch *) base;
}

/* ---- Items ---- */

static void free_item(struct vdi_endpoint_item *item)
{
	vd_kv_unref(item->kv);
	vdi_free(item);
}

static void drop_items(struct vdi_endpoint_items *items)
{
	struct vdi_endpoint_item *item;

	while ((item = STAILQ_FIRST(items)) != NULL) {
		STAILQ_REMOVE_HEAD(items, node);
		free_item(item);
	}
}

/* Takes over kv, also on failure. */
static struct vdi_endpoint_item *new_item(struct vd_kv *kv, bool is_delete, vd_rev revision)
{
	struct vdi_endpoint_item *item = VDI_NEW(struct vdi_endpoint_item);

	if (item == NULL) {
		vd_kv_unref(kv);
		return NULL;
	}
	item->kv = kv;
	item->is_delete = is_delete;
	item->revision = revision;
	item->bytes = sizeof *item + (kv ? sizeof *kv + kv->key_size + kv->value_size : 0);
	return item;
}

/* Passes items to the reader. */
static void hand_over(struct vdi_endpoint_watch *watch, struct vdi_endpoint_items *items, vd_rev newest)
{
	struct vdi_endpoint_store *store = watch->store;

	vdi_lock_acquire(&store->lock);
	STAILQ_CONCAT(&watch->items, items);
	store->newest = VDI_MAX(store->newest, newest);
	if (!watch->is_closing)
		watch->ready(watch->ready_arg);
	vdi_lock_release(&store->lock);
}

static void count_bytes(struct vdi_endpoint_watch *watch, size_t more)
{
	vdi_lock_acquire(&watch->store->lock);
	watch->bytes += more;
	vdi_lock_release(&watch->store->lock);
}

static size_t bytes_waiting(struct vdi_endpoint_watch *watch)
{
	size_t bytes;

	vdi_lock_acquire(&watch->store->lock);
	bytes = watch->bytes;
	vdi_lock_release(&watch->store->lock);
	return bytes;
}

void vdi_endpoint_watch_end(struct vdi_endpoint_watch *watch, vd_status status, const struct vd_error *error)
{
	for (size_t i = 0; i < watch->stream_count; i++)
		watch->streams[i].retry_at = VD_NEVER;
	vdi_lock_acquire(&watch->store->lock);
	if (watch->end == VD_OK) {
		watch->end = status;
		watch->error = *error;
		watch->error.code = status;
		if (!watch->is_closing)
			watch->ready(watch->ready_arg);
	}
	vdi_lock_release(&watch->store->lock);
}

/* ---- Merging ---- */

/* Returns the stream with the oldest first item, among those up to low. */
static struct vdi_endpoint_stream *oldest(struct vdi_endpoint_watch *watch, vd_rev low)
{
	struct vdi_endpoint_stream *found = NULL;
	vd_rev			    revision = low;

	for (size_t i = 0; i < watch->stream_count; i++) {
		const struct vdi_endpoint_item *item = STAILQ_FIRST(&watch->streams[i].queue);

		if (item && (item->revision < revision || (item->revision == revision && found == NULL))) {
			found = &watch->streams[i];
			revision = item->revision;
		}
	}
	return found;
}

/* Delivers what every stream has passed. */
static vd_status merge(struct vdi_endpoint_watch *watch)
{
	struct vdi_endpoint_items   items = STAILQ_HEAD_INITIALIZER(items);
	struct vdi_endpoint_stream *stream;
	struct vdi_endpoint_item   *item;
	vd_rev			    low = INT64_MAX;

	for (size_t i = 0; i < watch->stream_count; i++)
		low = VDI_MIN(low, watch->streams[i].passed);
	if (low <= watch->reported)
		return VD_OK;
	while ((stream = oldest(watch, low)) != NULL) {
		item = STAILQ_FIRST(&stream->queue);
		STAILQ_REMOVE_HEAD(&stream->queue, node);
		stream->bytes -= item->bytes;
		STAILQ_INSERT_TAIL(&items, item, node);
	}
	item = new_item(NULL, false, low);
	if (item) {
		STAILQ_INSERT_TAIL(&items, item, node);
		count_bytes(watch, item->bytes);
		watch->reported = low;
	}
	hand_over(watch, &items, low);
	return item ? VD_OK : VD_NOMEM;
}

/* ---- Received events ---- */

static vd_status put(struct vdi_endpoint_stream *stream, struct vdi_endpoint_item *item)
{
	struct vdi_endpoint_watch *watch = stream->watch;
	struct vdi_endpoint_items  items = STAILQ_HEAD_INITIALIZER(items);

	if (item == NULL)
		return VD_NOMEM;
	count_bytes(watch, item->bytes);
	if (watch->store->whole_revisions && item->kv) {
		stream->bytes += item->bytes;
		STAILQ_INSERT_TAIL(&stream->queue, item, node);
	} else {
		STAILQ_INSERT_TAIL(&items, item, node);
		hand_over(watch, &items, item->revision);
	}
	return VD_OK;
}

static vd_status take_bookmark(struct vdi_endpoint_stream *stream, vd_rev revision, struct vd_error *reterr)
{
	if (revision == 0)
		return vd_error_set(reterr, VD_BAD_REQUEST, "the bookmark has no resourceVersion");
	if (revision > stream->passed)
		stream->passed = revision;
	return stream->watch->store->whole_revisions ? VD_OK : put(stream, new_item(NULL, false, revision));
}

/* Returns true for a repeated event. */
static bool is_repeated(struct vdi_endpoint_stream *stream, vd_rev revision)
{
	if (revision == stream->last && stream->repeated > 0) {
		stream->repeated--;
		return true;
	}
	stream->repeated = 0;
	if (revision > stream->last) {
		stream->last = revision;
		stream->parts = 1;
	} else if (revision == stream->last) {
		stream->parts++;
	}
	return false;
}

static vd_status take_object(struct vdi_endpoint_stream *stream, enum vdi_kube_event_type type,
			     struct vdi_kube_object *object, struct vd_error *reterr)
{
	struct vdi_endpoint_store *store = stream->watch->store;
	struct vd_kv		  *kv;

	if (object->revision <= stream->passed && store->whole_revisions)
		return vd_error_set(reterr, VD_BAD_REQUEST, "revision %lld came after %lld",
				    (long long) object->revision, (long long) stream->passed);
	if (is_repeated(stream, object->revision))
		return VD_OK;
	VDI_TRY(vdi_kube_object_kv(object, stream->kind->prefix, type == VDI_KUBE_DELETED, &kv, reterr));
	if (type == VDI_KUBE_ADDED)
		kv->create_rev = kv->mod_rev;
	stream->passed = VDI_MAX(stream->passed, object->revision - 1);
	return put(stream, new_item(kv, type == VDI_KUBE_DELETED, object->revision));
}

static vd_status take_frame(void *arg, struct vd_bytes json)
{
	struct vdi_endpoint_stream *stream = arg;
	struct vdi_endpoint_store  *store = stream->watch->store;
	struct vdi_kube_event	    event;
	struct vdi_kube_object	    object;
	struct vd_error		    error = { 0 };

	error.code = vdi_kube_event_read(&store->events, json, &event, &error);
	if (error.code == VD_OK && event.type == VDI_KUBE_ERROR) {
		error.code = vdi_kube_status_error(event.object, &error);
		error.compacted = error.code == VD_EXPIRED ? stream->passed : 0;
	} else if (error.code == VD_OK) {
		error.code = vdi_kube_object_read(&store->objects, event.object, stream->kind->kind,
						  stream->kind->api_version, &object, &error);
		if (error.code == VD_OK)
			error.code = event.type == VDI_KUBE_BOOKMARK ?
					     take_bookmark(stream, object.revision, &error) :
					     take_object(stream, event.type, &object, &error);
	}
	if (error.code == VD_OK) {
		stream->has_come = true;
		stream->backoff.ns = 0;
		return VD_OK;
	}
	error.code = vdi_endpoint_blame(stream->kind->name, error.code, error.message, &error);
	vdi_endpoint_watch_end(stream->watch, error.code, &error);
	return error.code;
}

/* Returns true if the reader is behind, or this stream is ahead of the others. */
static bool must_wait(struct vdi_endpoint_stream *stream)
{
	return bytes_waiting(stream->watch) > WAITING_MAX &&
	       (!stream->watch->store->whole_revisions || !STAILQ_EMPTY(&stream->queue));
}

static bool take_bytes(struct vdi_endpoint_transfer *transfer, struct vd_bytes bytes)
{
	struct vdi_endpoint_stream *stream = transfer->arg;
	struct vd_error		    error = { 0 };
	vd_status		    status;

	stream->is_paused = must_wait(stream);
	if (stream->is_paused)
		return false;
	status = vdi_json_stream_feed(&stream->frames, bytes, take_frame, stream);
	vdi_endpoint_store_wake(stream->watch->store); /* merges, or ends the transfers */
	if (status == VD_OK)
		return true;
	/* The message of take_frame comes first. */
	status = vdi_endpoint_blame(stream->kind->name, status,
				    status == VD_BAD_REQUEST ? "the server's response is not a watch" : NULL,
				    &error);
	vdi_endpoint_watch_end(stream->watch, status, &error);
	vdi_endpoint_transfer_end(transfer);
	return true;
}

/* ---- Opening and ending ---- */

static void back_off(struct vdi_endpoint_stream *stream)
{
	stream->backoff.ns =
		stream->backoff.ns ? VDI_MIN(stream->backoff.ns * 2, BACKOFF_MAX.ns) : BACKOFF_MIN.ns;
	stream->retry_at = vd_mono_add(vd_env_now(stream->watch->store->env), stream->backoff);
}

/* Drops events after the last revision that is known to be complete; they will be received again. */
static void drop_incomplete(struct vdi_endpoint_stream *stream)
{
	struct vdi_endpoint_items kept = STAILQ_HEAD_INITIALIZER(kept);
	struct vdi_endpoint_item *item;
	size_t			  dropped = 0;

	while ((item = STAILQ_FIRST(&stream->queue)) != NULL) {
		STAILQ_REMOVE_HEAD(&stream->queue, node);
		if (item->revision <= stream->passed) {
			STAILQ_INSERT_TAIL(&kept, item, node);
			continue;
		}
		dropped += item->bytes;
		free_item(item);
	}
	STAILQ_CONCAT(&stream->queue, &kept);
	stream->bytes -= dropped;
	vdi_lock_acquire(&stream->watch->store->lock);
	stream->watch->bytes -= dropped;
	vdi_lock_release(&stream->watch->store->lock);
}

/* Handles a watch that lasted its full time. */
static void note_clean_end(struct vdi_endpoint_stream *stream, bool is_read)
{
	stream->resume = stream->passed;
	if (!is_read || stream->listed <= stream->passed)
		return;
	if (stream->last <= stream->listed)
		stream->resume = VDI_MAX(stream->resume, stream->last);
	stream->passed = stream->listed;
}

static void stream_ended(struct vdi_endpoint_transfer *transfer, vd_status result,
			 const struct vd_error *reason)
{
	struct vdi_endpoint_stream *stream = transfer->arg;
	struct vdi_endpoint_watch  *watch = stream->watch;
	struct vd_error		    error = { 0 };
	bool			    is_whole = !vdi_json_stream_is_open(&stream->frames);

	vdi_json_stream_reset(&stream->frames);
	if (watch->end == VD_OK && transfer->code == 200 &&
	    ((result == VD_OK && is_whole) || (result == VD_TIMEOUT && stream->is_paused))) {
		vdi_endpoint_transfer_end(transfer);
		note_clean_end(stream, result == VD_OK);
		if (stream->has_come)
			stream->retry_at.ns = 0;
		else
			back_off(stream);
		return;
	}
	if (result == VD_OK && transfer->code == 200)
		error.code = vdi_endpoint_blame(stream->kind->name, VD_UNAVAILABLE,
						"the watch ended in the middle of an event", &error);
	else
		error.code =
			vdi_endpoint_transfer_error(transfer, stream->kind->name, result, reason, &error);
	if (error.code == VD_EXPIRED)
		error.compacted = stream->passed;
	vdi_endpoint_transfer_end(transfer);
	vdi_endpoint_watch_end(watch, error.code, &error);
}

static void end_transfers(struct vdi_endpoint_watch *watch)
{
	for (size_t i = 0; i < watch->stream_count; i++) {
		vdi_endpoint_transfer_end(&watch->streams[i].transfer);
		vdi_endpoint_transfer_end(&watch->streams[i].nudge);
	}
}

/* Notes the revision of the list; errors are left to the watch. */
static void nudge_ended(struct vdi_endpoint_transfer *transfer, vd_status result,
			const struct vd_error *reason)
{
	struct vdi_endpoint_stream *stream = transfer->arg;
	struct vdi_kube_page	    page;

	(void) reason;
	if (result == VD_OK && transfer->code == 200 &&
	    vdi_kube_page_read(&stream->watch->store->pages,
			       (struct vd_bytes) { transfer->body.data, transfer->body.size }, &page,
			       NULL) == VD_OK)
		stream->listed = page.revision;
	vdi_endpoint_transfer_end(transfer);
}

static bool begin_nudge(struct vdi_endpoint_stream *stream)
{
	char path[sizeof stream->kind->path + 128];

	snprintf(path, sizeof path, "%s?fieldSelector=metadata.name%%3Dvedette-nothing", stream->kind->path);
	stream->is_nudged = true;
	stream->listed = 0;
	return vdi_endpoint_transfer_begin(&stream->nudge, path, OVERTIME_S, NULL) == VD_OK;
}

static void open_stream(struct vdi_endpoint_stream *stream)
{
	struct vdi_endpoint_store *store = stream->watch->store;
	unsigned		   timeout_s = store->watch_timeout_s +
			     (unsigned) vdi_rand_below(&store->rand, store->watch_timeout_s / 2 + 1);
	char		path[sizeof stream->kind->path + 128];
	struct vd_error error = { 0 };

	if (store->whole_revisions && !stream->is_nudged && begin_nudge(stream))
		return;
	stream->is_nudged = false;
	drop_incomplete(stream);
	stream->is_paused = stream->has_come = false;
	/* With whole revisions they were dropped; otherwise the reader has them. */
	stream->repeated = !store->whole_revisions && stream->last > stream->passed ? stream->parts : 0;
	if (store->whole_revisions)
		stream->last = 0;
	snprintf(path, sizeof path,
		 "%s?watch=true&allowWatchBookmarks=true&resourceVersion=%lld&timeoutSeconds=%u",
		 stream->kind->path,
		 (long long) VDI_MAX(stream->resume,
				     stream->watch->store->whole_revisions ? 0 : stream->passed),
		 timeout_s);
	error.code = vdi_endpoint_transfer_begin(&stream->transfer, path, timeout_s + OVERTIME_S, &error);
	if (error.code != VD_OK)
		vdi_endpoint_watch_end(stream->watch, error.code, &error);
}

vd_mono vdi_endpoint_watch_tend(struct vdi_endpoint_watch *watch, vd_mono now, vd_mono due)
{
	struct vd_error error = { 0 };

	if (watch->end != VD_OK) {
		end_transfers(watch);
		return due;
	}
	for (size_t i = 0; i < watch->stream_count && watch->end == VD_OK; i++) {
		struct vdi_endpoint_stream *stream = &watch->streams[i];

		if (stream->nudge.is_running)
			continue;
		if (!stream->transfer.is_running && now.ns >= stream->retry_at.ns)
			open_stream(stream);
		else if (!stream->transfer.is_running)
			due.ns = VDI_MIN(due.ns, stream->retry_at.ns);
		if (stream->is_paused && !must_wait(stream)) {
			stream->is_paused = false;
			vdi_endpoint_transfer_resume(&stream->transfer);
		}
	}
	if (watch->store->whole_revisions && watch->end == VD_OK && merge(watch) != VD_OK) {
		(void) vd_error_set(&error, VD_NOMEM, "out of memory");
		vdi_endpoint_watch_end(watch, VD_NOMEM, &error);
	}
	return due;
}

/* ---- The reader ---- */

static void drop_borrowed(struct vdi_endpoint_watch *watch)
{
	for (size_t i = 0; i < watch->event_count; i++)
		vd_kv_unref(watch->events[i].kv);
	watch->event_count = 0;
}

/* Takes the first items as a batch; false: out of memory, the first item is kept. */
static bool take_batch_locked(struct vdi_endpoint_watch *watch, size_t count_max,
			      struct vd_store_batch *ret_batch)
{
	struct vdi_endpoint_item *item = STAILQ_FIRST(&watch->items);
	vd_rev			  revision = item->revision;

	if (item->kv == NULL) {
		STAILQ_REMOVE_HEAD(&watch->items, node);
		watch->bytes -= item->bytes;
		free_item(item);
		*ret_batch = (struct vd_store_batch) { revision, NULL, 0 };
		return true;
	}
	while ((item = STAILQ_FIRST(&watch->items)) != NULL && item->kv &&
	       (watch->event_count < count_max || item->revision == revision)) {
		if (!vdi_grow((void **) &watch->events, &watch->event_capacity, watch->event_count + 1,
			      sizeof *watch->events))
			break;
		revision = item->revision;
		watch->events[watch->event_count++] =
			(struct vd_store_event) { item->is_delete, item->kv, NULL };
		item->kv = NULL;
		watch->bytes -= item->bytes;
		STAILQ_REMOVE_HEAD(&watch->items, node);
		free_item(item);
	}
	*ret_batch = (struct vd_store_batch) { revision, watch->events, watch->event_count };
	return watch->event_count > 0;
}

vd_status vdi_endpoint_watch_next(struct vd_store_watch *base, size_t event_count_max,
				  struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct vdi_endpoint_watch *watch = watch_of(base);
	struct vdi_endpoint_store *store = watch->store;
	vd_status		   status = VD_OK;
	bool			   was_full;

	drop_borrowed(watch);
	vdi_lock_acquire(&store->lock);
	was_full = watch->bytes > WAITING_MAX;
	if (!STAILQ_EMPTY(&watch->items)) {
		if (!take_batch_locked(watch, event_count_max, ret_batch))
			status = vd_error_set(reterr, VD_NOMEM, "out of memory");
	} else if (watch->end != VD_OK) {
		status = watch->end;
		if (reterr)
			*reterr = watch->error;
	} else {
		status = VD_AGAIN;
	}
	if (was_full && watch->bytes <= WAITING_MAX && !store->is_closing)
		vdi_endpoint_store_wake(store);
	vdi_lock_release(&store->lock);
	return status;
}

/* ---- Lifetime ---- */

bool vdi_endpoint_watch_orphan(struct vdi_endpoint_watch *watch, const struct vd_error *error)
{
	bool is_closing;

	end_transfers(watch);
	vdi_lock_acquire(&watch->store->lock);
	watch->is_orphan = true;
	if (watch->end == VD_OK) {
		watch->end = error->code;
		watch->error = *error;
	}
	is_closing = watch->is_closing;
	if (!is_closing)
		watch->ready(watch->ready_arg);
	vdi_lock_release(&watch->store->lock);
	return is_closing;
}

void vdi_endpoint_watch_free(struct vdi_endpoint_watch *watch)
{
	struct vdi_endpoint_store *store = watch->store;

	for (size_t i = 0; i < watch->stream_count; i++) {
		vdi_endpoint_transfer_end(&watch->streams[i].transfer);
		vdi_endpoint_transfer_end(&watch->streams[i].nudge);
		vdi_json_stream_fini(&watch->streams[i].frames);
		drop_items(&watch->streams[i].queue);
	}
	drop_items(&watch->items);
	drop_borrowed(watch);
	vdi_free(watch->events);
	vdi_free(watch->streams);
	vdi_free(watch);
	vdi_endpoint_store_unref(store);
}

static void no_ready(void *arg)
{
	(void) arg;
}

static vd_status add_streams(struct vdi_endpoint_watch *watch, const struct vd_store_watch_request *request)
{
	const struct vdi_endpoint_kinds *kinds = watch->store->kinds;

	watch->streams = vdi_calloc(kinds->count, sizeof *watch->streams);
	if (watch->streams == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < kinds->count; i++) {
		struct vdi_endpoint_stream *stream = &watch->streams[watch->stream_count];

		if (!vdi_endpoint_kind_is_in(&kinds->items[i], request->key, request->range_end))
			continue;
		stream->watch = watch;
		stream->kind = &kinds->items[i];
		stream->passed = stream->resume = request->start_revision - 1;
		stream->transfer = (struct vdi_endpoint_transfer) {
			.store = watch->store, .take = take_bytes, .ended = stream_ended, .arg = stream
		};
		stream->nudge = (struct vdi_endpoint_transfer) { .store = watch->store,
								 .ended = nudge_ended,
								 .arg = stream };
		STAILQ_INIT(&stream->queue);
		watch->stream_count++;
	}
	watch->reported = request->start_revision - 1;
	return watch->stream_count ? VD_OK : VD_UNSUPPORTED;
}

vd_status vdi_endpoint_watch_open(struct vd_store *base, const struct vd_store_watch_request *request,
				  struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct vdi_endpoint_store *store = (struct vdi_endpoint_store *) base;
	struct vdi_endpoint_watch *watch;
	vd_status		   status;

	/* A Kubernetes watch from revision 0 or 1 would start with the initial state. */
	if (request->start_revision < 2 || request->no_put || request->no_delete)
		return vd_error_set(reterr, VD_UNSUPPORTED,
				    "a watch of a Kubernetes endpoint needs a start revision and no filters");
	watch = VDI_NEW(struct vdi_endpoint_watch);
	if (watch == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	watch->base.store = base;
	watch->store = store;
	watch->ready = request->ready ? request->ready : no_ready;
	watch->ready_arg = request->ready_arg;
	STAILQ_INIT(&watch->items);
	atomic_fetch_add_explicit(&store->references, 1, memory_order_relaxed);
	status = add_streams(watch, request);
	vdi_lock_acquire(&store->lock);
	if (status == VD_OK && store->is_closing)
		status = VD_CLOSED;
	if (status == VD_OK) {
		LIST_INSERT_HEAD(&store->watches, watch, node);
		vdi_endpoint_store_wake(store);
	}
	vdi_lock_release(&store->lock);
	if (status != VD_OK) {
		vdi_endpoint_watch_free(watch);
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	*ret_watch = &watch->base;
	return VD_OK;
}

void vdi_endpoint_watch_close(struct vd_store_watch *base)
{
	struct vdi_endpoint_watch *watch = watch_of(base);
	struct vdi_endpoint_store *store = watch->store;
	bool			   is_orphan;

	drop_borrowed(watch);
	vdi_lock_acquire(&store->lock);
	watch->is_closing = true;
	is_orphan = watch->is_orphan;
	if (!is_orphan)
		vdi_endpoint_store_wake(store);
	vdi_lock_release(&store->lock);
	if (is_orphan)
		vdi_endpoint_watch_free(watch);
}
