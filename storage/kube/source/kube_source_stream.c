/* Long reads. A stream needs a state that is not older than its open. The mirror has it, so no list of the
 * server is needed:
 *
 *   a fill began after the open                            snapshot when the fill ends
 *   else: progress to the server's revision was proven     snapshot (kube_progress.c)
 *   the server proves no progress, or a revision is named  pages of its own
 *
 * Records of such pages that the mirror has at the same revision are shared with it. They also verify the
 * server: a revision below that of the pump when the list began, or an object that differs from the mirror
 * at the same revision, shows that the server was restored. */
#include <inttypes.h>
#include <stdlib.h>

#include "key_range.h"
#include "kube_source.h"

#define PART_MAX 500

static struct vdi_kube_source_stream *stream_of(struct vd_store_stream *base)
{
	return (struct vdi_kube_source_stream *) base;
}

static struct vdi_kube_source *source_of(const struct vdi_kube_source_stream *stream)
{
	return vdi_kube_source_of(stream->base.store);
}

static void wake_locked(struct vdi_kube_source_stream *stream)
{
	if (!stream->is_waiting || stream->is_closed)
		return;
	stream->is_waiting = false;
	stream->ready(stream->ready_arg);
}

static void end_locked(struct vdi_kube_source_stream *stream, vd_status status, const struct vd_error *error)
{
	if (stream->end.code != VD_OK || stream->is_last || stream->has_snapshot)
		return;
	if (error)
		stream->end = *error;
	if (error == NULL || error->message[0] == 0)
		(void) vd_error_set(&stream->end, status, "%s", vd_status_sentence(status));
	stream->end.code = status;
	wake_locked(stream);
}

static void drop(struct vd_kv **kvs, size_t *count)
{
	for (size_t i = 0; i < *count; i++)
		vd_kv_unref(kvs[i]);
	*count = 0;
}

static void free_stream(struct vdi_kube_source_stream *stream)
{
	vdi_btree_snapshot_release(&stream->snapshot);
	drop(stream->page, &stream->page_count);
	drop(stream->part, &stream->part_count);
	vd_kv_unref(stream->last);
	vdi_free(stream->page);
	vdi_free(stream->part);
	vdi_free(stream->path);
	vdi_free(stream->key);
	vdi_free(stream->range_end);
	vdi_free(stream);
}

static struct vdi_key_range range_of(const struct vdi_kube_source_stream *stream)
{
	return vdi_key_range_from_etcd((struct vd_bytes) { stream->key, stream->key_size },
				       (struct vd_bytes) { stream->range_end, stream->end_size });
}

/* ---- Pages, on the actor ---- */

static vd_status on_item(struct vdi_kube_pages *pages, struct vd_kv *kv, struct vd_error *reterr)
{
	struct vdi_kube_source_stream *stream = VDI_CONTAINER_OF(pages, struct vdi_kube_source_stream, pages);
	const struct vdi_kube_pump    *pump = &pages->source->pump;
	struct vdi_key_range	       range = range_of(stream);
	struct vd_kv		      *known = NULL;
	bool			       grown;

	if (!vdi_key_range_contains(&range, vd_kv_key(kv))) {
		vd_kv_unref(kv);
		return VD_OK;
	}
	if (pump->is_filled)
		known = vdi_kube_mirror_get(&pump->mirror, vd_kv_key(kv));
	if (known && known->mod_rev == kv->mod_rev) {
		if (!vd_bytes_equal(vd_kv_value(known), vd_kv_value(kv)))
			stream->differs++;
		vd_kv_unref(kv);
		kv = vd_kv_ref(known);
	} else {
		kv->create_rev = kv->mod_rev;
		kv->version = 1;
	}
	vdi_lock_acquire(&pages->source->lock);
	grown = vdi_grow((void **) &stream->page, &stream->page_capacity, stream->page_count + 1,
			 sizeof(struct vd_kv *));
	if (grown)
		stream->page[stream->page_count++] = kv;
	vdi_lock_release(&pages->source->lock);
	if (grown)
		return VD_OK;
	vd_kv_unref(kv);
	return vd_error_set(reterr, VD_NOMEM, "out of memory for a list");
}

static int compare(const void *a, const void *b)
{
	return vd_bytes_compare(vd_kv_key(*(struct vd_kv *const *) a), vd_kv_key(*(struct vd_kv *const *) b));
}

/* Sorts the page; false: it does not follow the one before. */
static bool sort_locked(struct vdi_kube_source_stream *stream)
{
	if (stream->page_count == 0)
		return true;
	for (size_t i = 1; i < stream->page_count; i++)
		if (compare(&stream->page[i - 1], &stream->page[i]) > 0) {
			qsort(stream->page, stream->page_count, sizeof(struct vd_kv *), compare);
			break;
		}
	return stream->last == NULL || compare(&stream->last, &stream->page[0]) < 0;
}

static void finish_page(struct vdi_kube_source_stream *stream)
{
	struct vdi_kube_source *source = source_of(stream);

	vdi_lock_acquire(&source->lock);
	if (sort_locked(stream)) {
		stream->has_page = true;
		stream->is_last = stream->pages.token == NULL;
		stream->read_revision = stream->pages.read_revision;
		vdi_kube_ring_give(&source->ring, stream->read_revision);
		wake_locked(stream);
	} else {
		struct vd_error error = { 0 };

		(void) vd_error_set(&error, VD_BAD_REQUEST, "the pages of the server's list are not ordered");
		end_locked(stream, VD_BAD_REQUEST, &error);
	}
	vdi_lock_release(&source->lock);
}

static void on_page(struct vdi_kube_pages *pages, vd_status status, const struct vd_error *error)
{
	struct vdi_kube_source_stream *stream = VDI_CONTAINER_OF(pages, struct vdi_kube_source_stream, pages);
	struct vdi_kube_source	      *source = pages->source;
	bool			       is_restored = false;

	/* A server whose lists and watches differ by themselves is not asked twice. */
	if (source->pump.was_contradicted)
		stream->differs = 0;
	if (status == VD_OK && source->pump.is_filled && stream->revision == 0)
		is_restored = pages->read_revision < stream->begun_at || stream->differs;
	source->pump.was_contradicted |= is_restored && stream->differs;
	if (status == VD_OK && stream->epoch != source->epoch)
		status = VD_EXPIRED; /* pages of two servers are no state */
	if (status == VD_OK && !is_restored) {
		finish_page(stream);
		return;
	}
	vdi_lock_acquire(&source->lock);
	end_locked(stream, is_restored ? VD_EXPIRED : status, is_restored ? NULL : error);
	vdi_lock_release(&source->lock);
	if (is_restored)
		vdi_kube_pump_restored(source, stream->differs ? "an object differs at its revision" :
								 "its revision went back");
}

static void begin(struct vdi_kube_source_stream *stream)
{
	struct vdi_kube_source	   *source = source_of(stream);
	const struct vdi_kube_pump *pump = &source->pump;

	stream->is_reading = true;
	stream->epoch = source->epoch;
	stream->begun_at = VDI_MAX(pump->covered, pump->mirror.applied);
	if (stream->revision && vdi_kube_ring_is_lost(&source->ring, stream->revision)) {
		vdi_lock_acquire(&source->lock);
		end_locked(stream, VD_EXPIRED, NULL);
		vdi_lock_release(&source->lock);
		return;
	}
	stream->pages.source = source;
	stream->pages.path = source->path;
	stream->pages.revision = stream->revision;
	stream->pages.item = on_item;
	stream->pages.page = on_page;
	if (vdi_kube_pages_next(&stream->pages) != VD_OK) {
		vdi_lock_acquire(&source->lock);
		end_locked(stream, VD_NOMEM, NULL);
		vdi_lock_release(&source->lock);
	}
}

static void give_snapshot(struct vdi_kube_source_stream *stream)
{
	struct vdi_kube_source *source = source_of(stream);
	struct vdi_kube_pump   *pump = &source->pump;

	vdi_lock_acquire(&source->lock);
	vdi_btree_snapshot(&pump->mirror.tree, &stream->snapshot);
	stream->has_snapshot = true;
	stream->wants_progress = stream->in_round = false;
	stream->read_revision = VDI_MAX(pump->covered, pump->mirror.applied);
	vdi_kube_ring_give(&source->ring, stream->read_revision);
	wake_locked(stream);
	vdi_lock_release(&source->lock);
}

/* What a stream needs next from the actor. */
enum need { NOTHING, FREE, SNAPSHOT, HELD, LIST, NEXT_PAGE };

/* Of a stream that may have the mirror's state. */
static enum need snapshot_need_locked(struct vdi_kube_source_stream *stream)
{
	struct vdi_kube_source *source = source_of(stream);

	/* A revision that is still open is not a state. */
	if (vdi_kube_pump_holds(source))
		return HELD;
	if (vdi_kube_ring_can_continue(&source->ring,
				       VDI_MAX(source->pump.covered, source->pump.mirror.applied)))
		return SNAPSHOT;
	if (source->has_no_progress)
		return LIST;
	if (!stream->wants_progress && !stream->in_round) {
		stream->wants_progress = true;
		vdi_kube_progress_delay(source);
	}
	return HELD;
}

/* Of a stream without a revision. */
static enum need need_locked(struct vdi_kube_source_stream *stream)
{
	struct vdi_kube_source *source = source_of(stream);

	if (source->pump.is_removed)
		return SNAPSHOT;
	if (!source->pump.is_filled)
		return NOTHING;
	if (source->filled > stream->fills || stream->is_proven)
		return snapshot_need_locked(stream);
	if (source->has_no_progress)
		return LIST;
	if (!stream->wants_progress && !stream->in_round) {
		stream->wants_progress = true;
		vdi_kube_member_wake(&source->member); /* this may be the end of a fill, outside of run */
	}
	return NOTHING;
}

static enum need need_of(struct vdi_kube_source_stream *stream)
{
	struct vdi_kube_source *source = source_of(stream);
	enum need		need;

	vdi_lock_acquire(&source->lock);
	if (stream->is_closed)
		need = FREE;
	else if (stream->end.code != VD_OK || stream->has_snapshot || stream->has_page || stream->is_last)
		need = NOTHING;
	else if (stream->is_reading)
		need = stream->pages.fetch.is_begun ? NOTHING : NEXT_PAGE;
	else
		need = stream->revision ? LIST : need_locked(stream);
	vdi_lock_release(&source->lock);
	return need;
}

/* Ends a stream that waits too long until the mirror has a state that may be given. Returns the end of the
 * wait. */
static vd_mono hold_stream(struct vdi_kube_source_stream *stream, vd_mono now)
{
	struct vdi_kube_source *source = source_of(stream);
	vd_rev			revision = VDI_MAX(source->pump.covered, source->pump.mirror.applied);
	struct vd_error		error = { 0 };

	if (stream->held_until.ns == 0) {
		stream->held_until = vd_mono_add(now, vdi_kube_options(source->member.kube)->request_timeout);
		vdi_kube_member_wake(&source->member); /* this may be outside of run */
	}
	if (stream->held_until.ns > now.ns)
		return stream->held_until;
	vdi_lock_acquire(&source->lock);
	if (vdi_kube_pump_holds(source))
		(void) vd_error_set(&error, VD_TIMEOUT, "more events of revision %" PRId64 " may follow",
				    (int64_t) revision);
	else
		(void) vd_error_set(&error, VD_TIMEOUT,
				    "revision %" PRId64
				    " was given in another state, and the server's has not "
				    "grown since",
				    (int64_t) revision);
	end_locked(stream, VD_TIMEOUT, &error);
	vdi_lock_release(&source->lock);
	return VD_NEVER;
}

/* Returns when to run it again at the latest; it may be freed. */
static vd_mono run_stream(struct vdi_kube_source_stream *stream, vd_mono now)
{
	struct vdi_kube_source *source = source_of(stream);
	enum need		need = need_of(stream);

	if (need != HELD)
		stream->held_until = (vd_mono) { 0 };
	switch (need) {
	case NOTHING: break;
	case HELD: return hold_stream(stream, now);
	case SNAPSHOT: give_snapshot(stream); break;
	case LIST: begin(stream); break;
	case NEXT_PAGE:
		if (vdi_kube_pages_next(&stream->pages) != VD_OK) {
			vdi_lock_acquire(&source->lock);
			end_locked(stream, VD_NOMEM, NULL);
			vdi_lock_release(&source->lock);
		}
		break;
	case FREE:
		vdi_kube_pages_end(&stream->pages);
		vdi_lock_acquire(&source->lock);
		LIST_REMOVE(stream, node);
		vdi_lock_release(&source->lock);
		free_stream(stream);
		vdi_kube_source_unref(source);
		break;
	}
	return VD_NEVER;
}

static struct vdi_kube_source_stream *first_stream(struct vdi_kube_source *source)
{
	struct vdi_kube_source_stream *stream;

	vdi_lock_acquire(&source->lock);
	stream = LIST_FIRST(&source->streams);
	vdi_lock_release(&source->lock);
	return stream;
}

/* Other threads insert at the head only, and only this actor removes. */
vd_mono vdi_kube_streams_run(struct vdi_kube_source *source, vd_mono now)
{
	struct vdi_kube_source_stream *stream = first_stream(source), *next;
	vd_mono			       due = VD_NEVER;

	for (; stream; stream = next) {
		next = LIST_NEXT(stream, node);
		due.ns = VDI_MIN(due.ns, run_stream(stream, now).ns);
	}
	return due;
}

void vdi_kube_streams_end(struct vdi_kube_source *source, const struct vd_error *error)
{
	struct vdi_kube_source_stream *stream;

	vdi_lock_acquire(&source->lock);
	LIST_FOREACH(stream, &source->streams, node)
	{
		if (error->code == VD_CLOSED || !stream->is_reading)
			end_locked(stream, error->code, error);
	}
	vdi_lock_release(&source->lock);
	if (error->code != VD_CLOSED)
		return;
	LIST_FOREACH(stream, &source->streams, node)
	vdi_kube_pages_end(&stream->pages);
}

void vdi_kube_streams_close(struct vdi_kube_source *source)
{
	struct vdi_kube_source_stream *stream;

	do {
		vdi_lock_acquire(&source->lock);
		source->is_ended = true;
		LIST_FOREACH(stream, &source->streams, node)
		{
			if (stream->is_closed)
				break;
		}
		if (stream)
			LIST_REMOVE(stream, node);
		vdi_lock_release(&source->lock);
		if (stream) {
			free_stream(stream);
			vdi_kube_source_unref(source);
		}
	} while (stream);
}

/* ---- The reader ---- */

vd_status vdi_kube_source_stream(struct vd_store *store, const struct vd_store_stream_request *request,
				 struct vd_store_stream **ret_stream)
{
	struct vdi_kube_source	      *source = vdi_kube_source_of(store);
	struct vdi_kube_source_stream *stream = VDI_NEW(struct vdi_kube_source_stream);
	const struct vd_range_request *range = &request->range;
	bool			       is_closing;

	if (stream == NULL)
		return VD_NOMEM;
	stream->base.store = store;
	stream->key = vdi_strndup(range->key.data, range->key.size);
	stream->range_end =
		vdi_strndup(range->range_end.size ? range->range_end.data : "", range->range_end.size);
	stream->key_size = range->key.size;
	stream->end_size = range->range_end.size;
	stream->limit = range->limit;
	stream->revision = range->revision;
	stream->ready = request->ready;
	stream->ready_arg = request->ready_arg;
	if (stream->key == NULL || stream->range_end == NULL) {
		free_stream(stream);
		return VD_NOMEM;
	}
	vdi_lock_acquire(&source->lock);
	is_closing = source->is_closing;
	if (!is_closing) {
		source->is_wanted = true;
		stream->fills = source->fills;
		LIST_INSERT_HEAD(&source->streams, stream, node);
		(void) vdi_kube_source_ref(source);
		vdi_kube_member_wake(&source->member);
	}
	vdi_lock_release(&source->lock);
	if (is_closing) {
		free_stream(stream);
		return VD_CLOSED;
	}
	*ret_stream = &stream->base;
	return VD_OK;
}

/* Fills the part from the snapshot. */
static vd_status take_snapshot(struct vdi_kube_source_stream *stream, bool *ret_last)
{
	struct vdi_btree_cursor cursor;
	struct vdi_key_range	range = range_of(stream);
	struct vd_kv	       *kv;

	if (!vdi_grow((void **) &stream->part, &stream->part_capacity, PART_MAX, sizeof(struct vd_kv *)))
		return VD_NOMEM;
	vdi_btree_cursor_init(&cursor, &stream->snapshot);
	kv = vdi_btree_cursor_seek(&cursor, stream->last ?
						    vd_kv_key(stream->last) :
						    (struct vd_bytes) { stream->key, stream->key_size });
	if (kv && stream->last && vd_bytes_equal(vd_kv_key(kv), vd_kv_key(stream->last)))
		kv = vdi_btree_cursor_next(&cursor);
	for (; kv && vdi_key_range_contains(&range, vd_kv_key(kv)) && stream->part_count < PART_MAX;
	     kv = vdi_btree_cursor_next(&cursor))
		stream->part[stream->part_count++] = vd_kv_ref(kv);
	*ret_last = kv == NULL || !vdi_key_range_contains(&range, vd_kv_key(kv));
	return VD_OK;
}

static void take_page_locked(struct vdi_kube_source_stream *stream, bool *ret_last)
{
	struct vd_kv **part = stream->part;
	size_t	       capacity = stream->part_capacity;

	stream->part = stream->page;
	stream->part_count = stream->page_count;
	stream->part_capacity = stream->page_capacity;
	stream->page = part;
	stream->page_count = 0;
	stream->page_capacity = capacity;
	stream->has_page = false;
	*ret_last = stream->is_last;
	if (!stream->is_last && !source_of(stream)->is_closing)
		vdi_kube_member_wake(&source_of(stream)->member);
}

/* Sets the part's fields; remembers its last key, from which the next one continues. */
static void finish_part(struct vdi_kube_source_stream *stream, bool is_last, struct vd_store_part *ret_part)
{
	bool more = false;

	if (stream->limit > 0 && stream->delivered + (int64_t) stream->part_count >= stream->limit) {
		size_t kept = (size_t) (stream->limit - stream->delivered);

		more = stream->part_count > kept || !is_last;
		while (stream->part_count > kept)
			vd_kv_unref(stream->part[--stream->part_count]);
		is_last = true;
	}
	stream->delivered += (int64_t) stream->part_count;
	if (stream->part_count) {
		vd_kv_unref(stream->last);
		stream->last = vd_kv_ref(stream->part[stream->part_count - 1]);
	}
	stream->is_done = is_last;
	*ret_part = (struct vd_store_part) { .kvs = stream->part,
					     .kv_count = stream->part_count,
					     .count = is_last ? stream->delivered + more : 0,
					     .more = more,
					     .last = is_last,
					     .read_revision = stream->read_revision };
}

static vd_status next_locked(struct vdi_kube_source_stream *stream, struct vd_store_part *ret_part)
{
	bool	  is_last = false;
	vd_status status = VD_OK;

	if (stream->is_done)
		return VD_CLOSED;
	if (stream->has_snapshot)
		status = take_snapshot(stream, &is_last);
	else if (stream->has_page)
		take_page_locked(stream, &is_last);
	else
		return stream->end.code != VD_OK ? stream->end.code : VD_AGAIN;
	if (status == VD_OK)
		finish_part(stream, is_last, ret_part);
	return status;
}

vd_status vdi_kube_source_stream_next(struct vd_store_stream *base, struct vd_store_part *ret_part,
				      struct vd_error *reterr)
{
	struct vdi_kube_source_stream *stream = stream_of(base);
	struct vdi_kube_source	      *source = source_of(stream);
	vd_status		       status;

	drop(stream->part, &stream->part_count);
	vdi_lock_acquire(&source->lock);
	status = next_locked(stream, ret_part);
	stream->is_waiting = status == VD_AGAIN;
	if (status != VD_OK && status != VD_AGAIN && reterr) {
		*reterr = stream->end;
		if (stream->end.code == VD_OK)
			(void) vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	vdi_lock_release(&source->lock);
	return status;
}

void vdi_kube_source_stream_close(struct vd_store_stream *base)
{
	struct vdi_kube_source_stream *stream = stream_of(base);
	struct vdi_kube_source	      *source = source_of(stream);
	bool			       is_ended;

	vdi_lock_acquire(&source->lock);
	stream->is_closed = true;
	is_ended = source->is_ended;
	if (is_ended)
		LIST_REMOVE(stream, node);
	else
		vdi_kube_member_wake(&source->member);
	vdi_lock_release(&source->lock);
	if (is_ended) { /* the actor is gone */
		free_stream(stream);
		vdi_kube_source_unref(source);
	}
}
