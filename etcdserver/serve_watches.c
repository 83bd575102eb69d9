/* A kept frame has a reference to each record of its events, so equal pointers mean equal events. Frames are
 * kept in slots chosen by their hash; a newer frame replaces an older one, so while events flow none is kept
 * much longer than it is used. */
#include "serve_watches.h"

#include "hash.h"

struct kept_frame {
	uint64_t	     hash;
	vd_rev		     revision;
	size_t		     previous_count; /* events with their previous record */
	bool		     is_fragment;
	size_t		     count; /* 0: empty */
	struct vd_kv	   **kvs;
	struct vdi_rpc_blob *blob;
};

struct vdi_serve_watches {
	struct vdi_etcdserver *server;

	struct vdi_lock list_lock; /* "store" */

	/* Under list_lock. */
	struct vdi_watch_stream_list streams;
	size_t			     flush_missing; /* streams with is_flushing set */
	struct vdi_serve_call	    *flush_now;	    /* calls that wait for them */
	struct vdi_serve_call	    *flush_next;    /* calls that wait for the next flush */

	struct vdi_lock	  frame_lock;		    /* "leaf" */
	struct kept_frame frames[VDI_WATCH_FRAMES]; /* under frame_lock */

	_Atomic int64_t stream_count;
	_Atomic int64_t watcher_count;
	_Atomic int64_t slow_count;
	_Atomic int64_t event_count;
	_Atomic int64_t frame_count;
};

vd_status vdi_serve_watches_new(struct vdi_etcdserver *server, struct vdi_serve_watches **ret_watches)
{
	struct vdi_serve_watches *watches = VDI_NEW(struct vdi_serve_watches);

	if (watches == NULL)
		return VD_NOMEM;
	watches->server = server;
	vdi_lock_init(&watches->list_lock, VDI_LOCK_STORE);
	vdi_lock_init(&watches->frame_lock, VDI_LOCK_LEAF);
	LIST_INIT(&watches->streams);
	*ret_watches = watches;
	return VD_OK;
}

static void drop_frame(const struct kept_frame *kept)
{
	for (size_t i = 0; i < kept->count; i++)
		vd_kv_unref(kept->kvs[i]);
	vdi_free(kept->kvs);
	vdi_rpc_blob_unref(kept->blob);
}

struct vdi_serve_watches *vdi_serve_watches_free(struct vdi_serve_watches *watches)
{
	if (watches == NULL)
		return NULL;
	VDI_CHECK(LIST_EMPTY(&watches->streams));
	for (size_t i = 0; i < VDI_WATCH_FRAMES; i++)
		drop_frame(&watches->frames[i]);
	vdi_lock_fini(&watches->list_lock);
	vdi_lock_fini(&watches->frame_lock);
	vdi_free(watches);
	return NULL;
}

void vdi_serve_watches_stop(struct vdi_serve_watches *watches)
{
	struct vdi_watch_stream_link *link;

	vdi_lock_acquire(&watches->list_lock);
	LIST_FOREACH(link, &watches->streams, node)
	link->stop(link);
	vdi_lock_release(&watches->list_lock);
}

void vdi_serve_watches_revoke(struct vdi_serve_watches *watches, struct vd_bytes user)
{
	struct vdi_watch_stream_link *link;

	vdi_lock_acquire(&watches->list_lock);
	LIST_FOREACH(link, &watches->streams, node)
	link->revoke(link, user);
	vdi_lock_release(&watches->list_lock);
}

void vdi_serve_watches_add(struct vdi_serve_watches *watches, struct vdi_watch_stream_link *link)
{
	atomic_fetch_add_explicit(&watches->stream_count, 1, memory_order_relaxed);
	atomic_init(&link->is_flushing, false);
	vdi_lock_acquire(&watches->list_lock);
	LIST_INSERT_HEAD(&watches->streams, link, node);
	vdi_lock_release(&watches->list_lock);
}

/* ---- Flushing: one at a time; who comes meanwhile shares the next ---- */

/* Returns the calls that need not wait. */
static struct vdi_serve_call *begin_flush_locked(struct vdi_serve_watches *watches)
{
	struct vdi_watch_stream_link *link;
	struct vdi_serve_call	     *calls = watches->flush_next;

	if (watches->flush_missing || calls == NULL)
		return NULL;
	watches->flush_next = NULL;
	LIST_FOREACH(link, &watches->streams, node)
	{
		watches->flush_missing++;
		atomic_store_explicit(&link->is_flushing, true, memory_order_release);
		link->flush(link);
	}
	if (watches->flush_missing == 0)
		return calls;
	watches->flush_now = calls;
	return NULL;
}

/* Returns the calls that have finished waiting: at most two lists. */
static void end_flush_locked(struct vdi_serve_watches *watches, struct vdi_watch_stream_link *link,
			     struct vdi_serve_call *lists[2])
{
	lists[0] = lists[1] = NULL;
	if (!atomic_load_explicit(&link->is_flushing, memory_order_relaxed))
		return;
	atomic_store_explicit(&link->is_flushing, false, memory_order_relaxed);
	if (--watches->flush_missing)
		return;
	lists[0] = watches->flush_now;
	watches->flush_now = NULL;
	lists[1] = begin_flush_locked(watches);
}

static void run_calls(struct vdi_serve_call *calls)
{
	while (calls) {
		struct vdi_serve_call *next = calls->next;

		calls->next = NULL;
		calls->work(calls);
		calls = next;
	}
}

void vdi_serve_watches_flush(struct vdi_serve_watches *watches, struct vdi_serve_call *call,
			     void (*work)(struct vdi_serve_call *call))
{
	call->work = work;
	vdi_lock_acquire(&watches->list_lock);
	call->next = watches->flush_next;
	watches->flush_next = call;
	call = begin_flush_locked(watches);
	vdi_lock_release(&watches->list_lock);
	run_calls(call);
}

void vdi_serve_watches_flushed(struct vdi_serve_watches *watches, struct vdi_watch_stream_link *link)
{
	struct vdi_serve_call *lists[2];

	vdi_lock_acquire(&watches->list_lock);
	end_flush_locked(watches, link, lists);
	vdi_lock_release(&watches->list_lock);
	run_calls(lists[0]);
	run_calls(lists[1]);
}

void vdi_serve_watches_remove(struct vdi_serve_watches *watches, struct vdi_watch_stream_link *link)
{
	struct vdi_serve_call *lists[2];

	vdi_lock_acquire(&watches->list_lock);
	LIST_REMOVE(link, node);
	end_flush_locked(watches, link, lists);
	vdi_lock_release(&watches->list_lock);
	atomic_fetch_sub_explicit(&watches->stream_count, 1, memory_order_relaxed);
	run_calls(lists[0]);
	run_calls(lists[1]);
}

void vdi_serve_watches_count(struct vdi_serve_watches *watches, int watchers, int slow_watchers, int events)
{
	if (watchers)
		atomic_fetch_add_explicit(&watches->watcher_count, watchers, memory_order_relaxed);
	if (slow_watchers)
		atomic_fetch_add_explicit(&watches->slow_count, slow_watchers, memory_order_relaxed);
	if (events)
		atomic_fetch_add_explicit(&watches->event_count, events, memory_order_relaxed);
}

void vdi_serve_watches_counts(struct vdi_serve_watches *watches, struct vdi_serve_watch_counts *ret_counts)
{
	ret_counts->streams = atomic_load_explicit(&watches->stream_count, memory_order_relaxed);
	ret_counts->watchers = atomic_load_explicit(&watches->watcher_count, memory_order_relaxed);
	ret_counts->slow_watchers = atomic_load_explicit(&watches->slow_count, memory_order_relaxed);
	ret_counts->events = atomic_load_explicit(&watches->event_count, memory_order_relaxed);
	ret_counts->frames = atomic_load_explicit(&watches->frame_count, memory_order_relaxed);
}

/* ---- Frames ---- */

static size_t event_body_size(const struct vd_store_event *event, bool previous)
{
	struct vdi_wire_out out = { 0 };

	vdi_wire_number(&out, 1, event->is_delete);
	vdi_wire_kv(&out, 2, event->kv, false, true);
	if (previous && event->previous)
		vdi_wire_kv(&out, 3, event->previous, false, true);
	return out.size;
}

size_t vdi_watch_event_size(const struct vd_store_event *event, bool previous)
{
	size_t size = event_body_size(event, previous);

	return 1 + vdi_varint_size(size) + size;
}

static void write_event(struct vdi_wire_out *out, const struct vd_store_event *event, bool previous)
{
	size_t size = event_body_size(event, previous);

	vdi_wire_varint(out, VDI_WIRE_BYTES(11));
	vdi_wire_varint(out, size);
	if (out->at == NULL) {
		out->size += size;
		return;
	}
	vdi_wire_number(out, 1, event->is_delete);
	vdi_wire_kv(out, 2, event->kv, false, true);
	if (previous && event->previous)
		vdi_wire_kv(out, 3, event->previous, false, true);
}

struct frame_answer {
	struct vdi_etcdserver	     *server;
	const struct vdi_watch_frame *frame;
};

static void write_frame(struct vdi_wire_out *out, const void *arg)
{
	const struct frame_answer *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->frame->revision);
	vdi_wire_number(out, 7, answer->frame->is_fragment);
	for (size_t i = 0; i < answer->frame->event_count; i++)
		write_event(out, &answer->frame->events[i], answer->frame->previous);
}

/* Counts previous records: of two watchers that want them, one created after a compaction does not get those
 * of the compacted revision, as in etcd. */
static size_t count_previous(const struct vdi_watch_frame *frame)
{
	size_t count = 0;

	for (size_t i = 0; frame->previous && i < frame->event_count; i++)
		count += frame->events[i].previous != NULL;
	return count;
}

static uint64_t hash_frame(const struct vdi_watch_frame *frame, size_t previous_count)
{
	uint64_t parts[4] = { (uint64_t) (uintptr_t) frame->events[0].kv, (uint64_t) frame->revision,
			      frame->event_count, (uint64_t) previous_count << 1 | frame->is_fragment };

	return vdi_hash_bytes((struct vd_bytes) { parts, sizeof parts }, 0);
}

static bool is_same(const struct kept_frame *kept, const struct vdi_watch_frame *frame, size_t previous_count,
		    uint64_t hash)
{
	if (kept->count != frame->event_count || kept->hash != hash || kept->revision != frame->revision ||
	    kept->previous_count != previous_count || kept->is_fragment != frame->is_fragment)
		return false;
	for (size_t i = 0; i < kept->count; i++)
		if (kept->kvs[i] != frame->events[i].kv)
			return false;
	return true;
}

/* Without memory the next watcher encodes its own frame. */
static void keep_frame(struct vdi_serve_watches *watches, const struct vdi_watch_frame *frame,
		       size_t previous_count, uint64_t hash, struct vdi_rpc_blob *blob)
{
	struct kept_frame  kept = { .hash = hash,
				    .revision = frame->revision,
				    .previous_count = previous_count,
				    .is_fragment = frame->is_fragment,
				    .count = frame->event_count,
				    .kvs = vdi_alloc(frame->event_count * sizeof(struct vd_kv *)) };
	struct kept_frame *place = &watches->frames[hash % VDI_WATCH_FRAMES];
	struct kept_frame  old;

	if (kept.kvs == NULL)
		return;
	kept.blob = vdi_rpc_blob_ref(blob);
	for (size_t i = 0; i < kept.count; i++)
		kept.kvs[i] = vd_kv_ref(frame->events[i].kv);
	vdi_lock_acquire(&watches->frame_lock);
	old = *place;
	*place = kept;
	vdi_lock_release(&watches->frame_lock);
	drop_frame(&old);
}

vd_status vdi_serve_watches_frame(struct vdi_serve_watches *watches, const struct vdi_watch_frame *frame,
				  struct vdi_rpc_blob **ret_blob)
{
	struct frame_answer answer = { watches->server, frame };
	bool		   is_shared = frame->event_count && frame->event_count <= VDI_WATCH_FRAME_EVENTS_MAX;
	size_t		   previous_count = is_shared ? count_previous(frame) : 0;
	uint64_t	   hash = is_shared ? hash_frame(frame, previous_count) : 0;
	struct kept_frame *kept = &watches->frames[hash % VDI_WATCH_FRAMES];
	struct vdi_rpc_blob *blob = NULL;
	size_t		     size = 0;

	if (is_shared) {
		vdi_lock_acquire(&watches->frame_lock);
		if (is_same(kept, frame, previous_count, hash))
			blob = vdi_rpc_blob_ref(kept->blob);
		vdi_lock_release(&watches->frame_lock);
	}
	if (blob == NULL) {
		VDI_TRY(vdi_wire_encode(write_frame, &answer, &blob));
		atomic_fetch_add_explicit(&watches->frame_count, 1, memory_order_relaxed);
		for (size_t i = 0; is_shared && i < frame->event_count; i++)
			size += vdi_watch_event_size(&frame->events[i], frame->previous);
		if (is_shared && size <= VDI_WATCH_FRAME_BYTES_MAX)
			keep_frame(watches, frame, previous_count, hash, blob);
	}
	*ret_blob = blob;
	return VD_OK;
}
