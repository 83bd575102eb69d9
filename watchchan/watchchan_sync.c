/* The initial state: finds the start revision, then reads the prefix in one range stream if the store has
 * them, else in pages pinned to the first page's revision (upstream: sync in etcd3/watcher.go). */
#include "key_range.h"
#include "store.h"
#include "watchchan_state.h"

static bool wants_initial(const struct vdi_watchchan *watchchan)
{
	const struct vdi_watchchan_options *options = &watchchan->options;

	return options->send_initial_events == VD_TRUE ||
	       (options->send_initial_events == VD_UNSET && options->revision == 0);
}

/* Counts the request under upstream's operation name: current revision, range stream, pages of a prefix, or a
 * single key. */
static void count_read(struct vdi_watchchan *watchchan, vd_status status)
{
	vdi_storage_metrics_request(watchchan->options.metrics,
				    watchchan->phase != VDI_PHASE_SYNCING ? VDI_OPERATION_CURRENT_REVISION :
				    watchchan->stream			  ? VDI_OPERATION_LIST_STREAM :
				    watchchan->options.recursive	  ? VDI_OPERATION_LIST :
									    VDI_OPERATION_GET,
				    watchchan->read_issued, status);
}

/* Called on the store's thread. The references to the records are taken over by the actor later. */
static void on_read(void *arg, vd_status status, const struct vd_range_result *result,
		    const struct vd_error *error)
{
	struct vdi_watchchan *watchchan = arg;
	struct vd_kv	    **kvs = NULL;
	struct vd_error	      wrong;

	count_read(watchchan, status);
	/* The request for the current revision ignores the keys. */
	if (status == VD_OK && watchchan->phase == VDI_PHASE_SYNCING) {
		status = vdi_store_check_page(result, &wrong);
		if (status != VD_OK)
			error = &wrong;
	}
	if (status == VD_OK && result->kv_count && watchchan->phase == VDI_PHASE_SYNCING) {
		kvs = vdi_calloc(result->kv_count, sizeof(struct vd_kv *));
		if (kvs == NULL)
			status = VD_NOMEM;
		for (size_t i = 0; kvs && i < result->kv_count; i++)
			kvs[i] = vd_kv_ref(result->kvs[i]);
	}
	vdi_lock_acquire(&watchchan->lock);
	watchchan->read_status = status;
	if (status != VD_OK && error)
		watchchan->read_error = *error;
	watchchan->read_revision = status == VD_OK ? result->store_revision : 0;
	watchchan->read_kvs = kvs;
	watchchan->read_count = kvs ? result->kv_count : 0;
	watchchan->read_more = status == VD_OK && result->more;
	watchchan->reading = false;
	watchchan->read_ready = true;
	/* Wake under the lock: close waits for `reading` to be false under it, so the actor still exists. */
	vd_actor_wake(watchchan->actor);
	vdi_lock_release(&watchchan->lock);
}

static void read_store(struct vdi_watchchan *watchchan, const struct vd_range_request *request)
{
	vd_status status;

	vdi_lock_acquire(&watchchan->lock);
	watchchan->reading = true;
	watchchan->read_issued = vd_env_now(watchchan->env);
	vdi_lock_release(&watchchan->lock);
	status = vd_store_range(watchchan->store, request, on_read, watchchan);
	if (status != VD_OK) {
		count_read(watchchan, status);
		vdi_lock_acquire(&watchchan->lock);
		watchchan->reading = false;
		vdi_lock_release(&watchchan->lock);
		vdi_watchchan_push_error(watchchan, status, NULL);
	}
}

/* Takes the result of the last read, with its page; false while it is in flight. */
static bool read_answer(struct vdi_watchchan *watchchan, vd_status *ret_status)
{
	bool ready;

	vdi_lock_acquire(&watchchan->lock);
	ready = watchchan->read_ready;
	if (ready) {
		watchchan->read_ready = false;
		*ret_status = watchchan->read_status;
		watchchan->page_kvs = watchchan->read_kvs;
		watchchan->page_count = watchchan->read_count;
		watchchan->page_more = watchchan->read_more;
		watchchan->page_next = 0;
		watchchan->read_kvs = NULL;
	}
	vdi_lock_release(&watchchan->lock);
	return ready;
}

/* Asks for the store's current revision: a get of the resource's prefix without its slash, limit 1; only the
 * header of the response is used. */
static void ask_revision(struct vdi_watchchan *watchchan)
{
	struct vd_range_request request = { .key = watchchan->options.key, .limit = 1, .keys_only = true };

	if (watchchan->options.recursive && request.key.size > 1)
		request.key.size--;
	read_store(watchchan, &request);
}

static void ask_page(struct vdi_watchchan *watchchan, struct vd_bytes start)
{
	struct vd_range_request request = { .key = start, .revision = watchchan->base_revision };

	if (watchchan->options.recursive) {
		request.range_end = watchchan->range_end;
		request.limit = VDI_WATCHCHAN_PAGE_LEN;
	}
	read_store(watchchan, &request);
}

/* The range stream has another part; the actor reads it. */
static void on_stream_ready(void *arg)
{
	struct vdi_watchchan *watchchan = arg;

	vd_actor_wake(watchchan->actor);
}

static vd_status open_stream(struct vdi_watchchan *watchchan)
{
	struct vd_store_stream_request request = {
		.range = { .key = watchchan->options.key, .range_end = watchchan->range_end },
		.ready = on_stream_ready,
		.ready_arg = watchchan,
	};

	if (!watchchan->options.recursive)
		return VD_UNSUPPORTED;
	watchchan->read_issued = vd_env_now(watchchan->env);
	return vd_store_stream_open(watchchan->store, &request, &watchchan->stream);
}

static void begin_sync(struct vdi_watchchan *watchchan)
{
	vd_status status;

	watchchan->phase = VDI_PHASE_SYNCING;
	watchchan->base_revision = 0;
	status = open_stream(watchchan);
	if (status == VD_UNSUPPORTED)
		ask_page(watchchan, watchchan->options.key);
	else if (status != VD_OK)
		vdi_watchchan_push_error(watchchan, status, NULL);
}

bool vdi_watchchan_start(struct vdi_watchchan *watchchan)
{
	const struct vdi_watchchan_options *options = &watchchan->options;
	bool				    initial = wants_initial(watchchan);
	vd_status			    status;

	if (initial && options->revision == 0) {
		begin_sync(watchchan);
		return true;
	}
	if (!initial && options->revision > 0) {
		watchchan->base_revision = options->revision;
		watchchan->phase = VDI_PHASE_STREAMING;
		return true;
	}
	/* A watch from 0 without initial state, and one from a given revision with it, need the current
	 * revision. */
	if (!watchchan->waiting_for_store) {
		watchchan->waiting_for_store = true;
		ask_revision(watchchan);
	}
	if (watchchan->phase == VDI_PHASE_ENDED)
		return true;
	if (!read_answer(watchchan, &status))
		return false;
	if (status != VD_OK) {
		vdi_watchchan_push_error(watchchan, status, &watchchan->read_error);
	} else if (!initial) {
		watchchan->base_revision = watchchan->read_revision;
		watchchan->phase = VDI_PHASE_STREAMING;
	} else if (options->revision > watchchan->read_revision) {
		struct vd_error error = { .requested = options->revision };

		vd_error_set(&error, VD_TOO_LARGE_REVISION, "Too large resource version: %lld, current: %lld",
			     (long long) options->revision, (long long) watchchan->read_revision);
		error.requested = options->revision;
		error.current = watchchan->read_revision;
		error.retry_after_s = 1 + (uint32_t) vd_env_random_below(watchchan->env, 3);
		vdi_watchchan_push_error(watchchan, VD_TOO_LARGE_REVISION, &error);
	} else {
		begin_sync(watchchan);
	}
	return true;
}

void vdi_watchchan_page_release(struct vdi_watchchan *watchchan)
{
	for (size_t i = 0; i < watchchan->page_count; i++)
		vd_kv_unref(watchchan->page_kvs[i]);
	vdi_free(watchchan->page_kvs);
	watchchan->page_kvs = NULL;
	watchchan->page_count = watchchan->page_next = 0;
}

static void end_sync(struct vdi_watchchan *watchchan)
{
	watchchan->phase = VDI_PHASE_STREAMING;
	if (watchchan->options.initial_end_bookmark) {
		struct vdi_raw_event raw = {
			.kind = VDI_RAW_BOOKMARK,
			.initial_events_end = true,
			.revision = watchchan->base_revision,
			.received = vd_env_now(watchchan->env),
		};

		vdi_watchchan_push_raw(watchchan, &raw);
	}
}

/* Called after the last record of a page: asks for the next page, which starts after the last key, or ends
 * the sync. */
static void page_done(struct vdi_watchchan *watchchan, struct vd_kv *last)
{
	char		start[VD_KEY_SIZE_MAX + 1];
	struct vd_bytes key;
	bool		more = watchchan->page_more && last && watchchan->options.recursive;

	if (more)
		key = vdi_bytes_next_key(vd_kv_key(last), VD_KEY_SIZE_MAX, start);
	vdi_watchchan_page_release(watchchan);
	if (more)
		ask_page(watchchan, key);
	else
		end_sync(watchchan);
}

static void push_initial(struct vdi_watchchan *watchchan, struct vd_kv *kv)
{
	struct vdi_raw_event raw = {
		.kind = VDI_RAW_INITIAL,
		.revision = kv->mod_rev,
		.kv = vd_kv_ref(kv),
		.received = vd_env_now(watchchan->env),
	};

	vdi_watchchan_push_raw(watchchan, &raw);
}

void vdi_watchchan_sync_close(struct vdi_watchchan *watchchan)
{
	vd_store_stream_close(watchchan->stream);
	watchchan->stream = NULL;
}

/* Takes the next part of the range stream; false if there is none yet, or if the stream failed. */
static bool next_part(struct vdi_watchchan *watchchan, bool *ret_moved)
{
	struct vd_error error = { 0 };
	vd_status	status = vd_store_stream_next(watchchan->stream, &watchchan->part, &error);

	if (status == VD_OK) {
		watchchan->has_part = true;
		watchchan->page_next = 0;
		watchchan->base_revision = watchchan->part.read_revision;
		return true;
	}
	if (status == VD_AGAIN)
		return false;
	*ret_moved = true;
	if (status == VD_UNSUPPORTED && watchchan->base_revision == 0) {
		vdi_watchchan_sync_close(watchchan);
		ask_page(watchchan, watchchan->options.key);
	} else {
		count_read(watchchan, status);
		vdi_watchchan_sync_close(watchchan);
		vdi_watchchan_push_error(watchchan, status, &error);
	}
	return false;
}

/* Ends the range stream. more is an error: a range stream without a limit must reach the last key. */
static void end_stream(struct vdi_watchchan *watchchan, bool more)
{
	struct vd_error error = { 0 };

	count_read(watchchan, VD_OK);
	vdi_watchchan_sync_close(watchchan);
	if (more) {
		vd_error_set(&error, VD_INTERNAL,
			     "the store ended a range stream before the last key: it indicated that there "
			     "were more values remaining");
		vdi_watchchan_push_error(watchchan, VD_INTERNAL, &error);
	} else {
		end_sync(watchchan);
	}
}

static bool sync_streamed(struct vdi_watchchan *watchchan)
{
	const struct vd_store_part *part = &watchchan->part;
	bool			    moved = false;

	if (!watchchan->has_part && !next_part(watchchan, &moved))
		return moved;
	while (watchchan->page_next < part->kv_count && !vdi_slots_full(watchchan))
		push_initial(watchchan, part->kvs[watchchan->page_next++]);
	/* Keep a slot for the end bookmark. */
	if (watchchan->page_next == part->kv_count && !vdi_slots_full(watchchan)) {
		watchchan->has_part = false;
		watchchan->page_next = 0;
		if (part->last)
			end_stream(watchchan, part->more);
	}
	return true;
}

bool vdi_watchchan_sync(struct vdi_watchchan *watchchan)
{
	bool	  moved = false;
	vd_status status;

	if (watchchan->stream)
		return sync_streamed(watchchan);
	if (watchchan->page_kvs == NULL) {
		if (!read_answer(watchchan, &status))
			return false;
		if (status != VD_OK) {
			vdi_watchchan_push_error(watchchan, status, &watchchan->read_error);
			return true;
		}
		if (watchchan->base_revision == 0)
			watchchan->base_revision =
				/* later pages are pinned to the revision of the first */
				watchchan->read_revision;
		if (watchchan->page_count == 0) {
			page_done(watchchan, NULL);
			return true;
		}
	}
	while (watchchan->page_next < watchchan->page_count && !vdi_slots_full(watchchan)) {
		push_initial(watchchan, watchchan->page_kvs[watchchan->page_next++]);
		moved = true;
	}
	/* Keep a slot for the end bookmark. */
	if (watchchan->page_next == watchchan->page_count && !vdi_slots_full(watchchan)) {
		page_done(watchchan, watchchan->page_kvs[watchchan->page_count - 1]);
		moved = true;
	}
	return moved;
}
