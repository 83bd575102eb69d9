/* A watch as its user sees it: the request, the buffer of responses, the end.
 *
 * The buffer is a list of batches, filled by the set's actor and emptied by one reader. The reader's current
 * batch is removed from it as a whole and borrowed until the next call, so no event is copied and the lock is
 * held only to change pointers. The reaction to a full buffer is decided under the same lock (is_full), so
 * that exactly one side notices: put returns "full", and the reader that has emptied half of it requests
 * "resume".
 *
 * Progress has no events, and must not pile up for a reader that has stopped: of consecutive progress only
 * the last is kept. The end stays readable, and after it is read every call returns it again. (Upstream may
 * drop the end and the responses before it.)
 */
#include "etcd_watch.h"

#include "etcd_client.h"
#include "etcd_error.h"
#include "etcd_watch_set.h"
#include "usage.h"

/* A larger request would be rejected by servers and end the stream of all its watches. */
#define KEY_AND_END_SIZE_MAX (1u << 20)

static const struct vdi_sm_state states[VDI_ETCD_WATCH_STATE_COUNT] = {
	[VDI_ETCD_WATCH_WAITING] = { "waiting",
				     VDI_SM_TO(VDI_ETCD_WATCH_CREATING) | VDI_SM_TO(VDI_ETCD_WATCH_ENDED) },
	[VDI_ETCD_WATCH_CREATING] = { "creating", VDI_SM_TO(VDI_ETCD_WATCH_ESTABLISHED) |
							  VDI_SM_TO(VDI_ETCD_WATCH_ABANDONED) |
							  VDI_SM_TO(VDI_ETCD_WATCH_WAITING) |
							  VDI_SM_TO(VDI_ETCD_WATCH_ENDED) },
	[VDI_ETCD_WATCH_ABANDONED] = { "abandoned", VDI_SM_TO(VDI_ETCD_WATCH_ENDED) },
	[VDI_ETCD_WATCH_ESTABLISHED] = { "established", VDI_SM_TO(VDI_ETCD_WATCH_PAUSED) |
								VDI_SM_TO(VDI_ETCD_WATCH_WAITING) |
								VDI_SM_TO(VDI_ETCD_WATCH_ENDED) },
	[VDI_ETCD_WATCH_PAUSED] = { "paused",
				    VDI_SM_TO(VDI_ETCD_WATCH_WAITING) | VDI_SM_TO(VDI_ETCD_WATCH_ENDED) },
	[VDI_ETCD_WATCH_ENDED] = { "ended", 0 },
};
const struct vdi_sm_table vdi_etcd_watch_table = { "etcd_watch", states, VDI_ARRAY_SIZE(states) };

/* ---- Batches and ends ---- */

static size_t kv_bytes(const struct vd_kv *kv)
{
	return kv ? (size_t) kv->key_size + kv->value_size : 0;
}

void vdi_etcd_watch_events_forget(struct vdi_etcd_wire_events *events, size_t count)
{
	for (size_t i = 0; i < count; i++)
		events->bytes -= kv_bytes(events->items[i].kv) + kv_bytes(events->items[i].previous);
	events->count -= count;
	memmove(events->items, events->items + count, events->count * sizeof events->items[0]);
}

vd_status vdi_etcd_watch_batch_new(const struct vd_etcd_header *header, struct vdi_etcd_wire_events *events,
				   size_t count, struct vdi_etcd_watch_batch **ret_batch)
{
	struct vdi_etcd_watch_batch *batch = vdi_alloc(sizeof *batch + count * sizeof batch->events[0]);

	if (batch == NULL)
		return VD_NOMEM;
	*batch = (struct vdi_etcd_watch_batch) { .header = *header, .event_count = count };
	if (count) {
		memcpy(batch->events, events->items, count * sizeof batch->events[0]);
		batch->bytes = events->bytes;
		vdi_etcd_watch_events_forget(events, count);
		batch->bytes -= events->bytes;
	}
	batch->bytes += sizeof *batch + count * (sizeof batch->events[0] + sizeof(struct vd_kv));
	*ret_batch = batch;
	return VD_OK;
}

void vdi_etcd_watch_batch_free(struct vdi_etcd_watch_batch *batch)
{
	if (batch == NULL)
		return;
	for (size_t i = 0; i < batch->event_count; i++) {
		vd_kv_unref(batch->events[i].kv);
		vd_kv_unref(batch->events[i].previous);
	}
	vdi_free(batch);
}

struct vdi_etcd_watch_end *vdi_etcd_watch_end_new(const struct vd_etcd_error *error)
{
	struct vdi_etcd_watch_end *end = vdi_alloc(sizeof *end);

	if (end == NULL)
		return NULL;
	atomic_init(&end->references, 1);
	end->error = *error;
	return end;
}

void vdi_etcd_watch_end_unref(struct vdi_etcd_watch_end *end)
{
	if (end && atomic_fetch_sub_explicit(&end->references, 1, memory_order_acq_rel) == 1)
		vdi_free(end);
}

/* ---- Life ---- */

static void free_batches(struct vdi_etcd_watch_batch *batch)
{
	while (batch) {
		struct vdi_etcd_watch_batch *next = batch->next;

		vdi_etcd_watch_batch_free(batch);
		batch = next;
	}
}

void vdi_etcd_watch_unref(struct vd_etcd_watch *watch)
{
	if (atomic_fetch_sub_explicit(&watch->references, 1, memory_order_acq_rel) != 1)
		return;
	VDI_CHECK(watch->partial == NULL && watch->unconfirmed == NULL && watch->set == NULL);
	free_batches(watch->first);
	vdi_etcd_watch_end_unref(watch->end);
	vdi_lock_fini(&watch->lock);
	vdi_free(watch);
}

static vd_status check_request(const struct vd_etcd_watch_request *request, struct vd_error *reterr)
{
	VDI_REQUIRE_BYTES(request->key, reterr);
	VDI_REQUIRE_BYTES(request->range_end, reterr);
	if (request->metadata_count)
		VDI_REQUIRE(request->metadata, reterr);
	if (request->key.size > KEY_AND_END_SIZE_MAX || request->range_end.size > KEY_AND_END_SIZE_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "a watch's key and range_end have at most %u bytes",
				    KEY_AND_END_SIZE_MAX);
	if (request->ready == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "watch: ready is NULL");
	for (size_t i = 0; i < request->metadata_count; i++)
		if (request->metadata[i].key == NULL || *request->metadata[i].key == 0)
			return vd_error_set(reterr, VD_INVALID_ARGUMENT, "metadata: a key is NULL");
	return VD_OK;
}

static struct vd_etcd_watch *watch_new(struct vd_etcd *client, const struct vd_etcd_watch_request *request)
{
	struct vd_etcd_watch *watch =
		vdi_calloc(1, sizeof *watch + request->key.size + request->range_end.size);

	if (watch == NULL)
		return NULL;
	watch->ready = request->ready;
	watch->ready_arg = request->ready_arg;
	watch->observer = request->observer;
	watch->buffer_bytes_max = vdi_etcd_watch_buffer_bytes(client);
	watch->key_size = (uint32_t) request->key.size;
	watch->range_end_size = (uint32_t) request->range_end.size;
	watch->previous = request->previous;
	watch->progress = request->progress;
	watch->fragment = request->fragment;
	watch->no_put = request->no_put;
	watch->no_delete = request->no_delete;
	watch->reports_created = request->created_notify;
	watch->next_revision = watch->floor_revision = request->revision;
	watch->last = &watch->first;
	vdi_sm_init(&watch->sm, &vdi_etcd_watch_table, VDI_ETCD_WATCH_WAITING);
	atomic_init(&watch->references, 1);
	vdi_lock_init(&watch->lock, VDI_LOCK_ETCD_WATCH);
	if (request->key.size)
		memcpy(watch->text, request->key.data, request->key.size);
	if (request->range_end.size)
		memcpy(watch->text + request->key.size, request->range_end.data, request->range_end.size);
	return watch;
}

vd_status vd_etcd_watch_open(struct vd_etcd *client, const struct vd_etcd_watch_request *request,
			     struct vd_etcd_watch **ret_watch, struct vd_error *reterr)
{
	struct vdi_etcd_watch_set *set;
	struct vd_etcd_watch	  *watch;
	vd_status		   status;

	VDI_REQUIRE(client, reterr);
	VDI_REQUIRE(request, reterr);
	VDI_REQUIRE(ret_watch, reterr);
	VDI_TRY(check_request(request, reterr));
	status = vdi_etcd_watch_set_get(client, &set);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s",
				    status == VD_CLOSED ? "the client is closed" :
							  vd_status_sentence(status));
	watch = watch_new(client, request);
	if (watch == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a watch");
	status = vdi_etcd_watch_set_add(set, watch, request->require_leader, request->metadata,
					request->metadata_count);
	if (status != VD_OK) {
		vdi_etcd_watch_unref(watch);
		return vd_error_set(reterr, status, "%s",
				    status == VD_CLOSED ? "the client is closed" :
							  vd_status_sentence(status));
	}
	watch->usage = vdi_usage_watch_opened(vdi_etcd_usage(client));
	*ret_watch = watch;
	return VD_OK;
}

void vd_etcd_watch_close(struct vd_etcd_watch *watch)
{
	struct vdi_etcd_watch_batch *batches;

	if (watch == NULL)
		return;
	vdi_lock_acquire(&watch->lock);
	watch->is_closed = true;
	batches = watch->first;
	watch->first = NULL;
	watch->last = &watch->first;
	if (watch->set)
		vdi_etcd_watch_set_command(watch->set, watch, VDI_ETCD_WATCH_WANT_CLOSE);
	vdi_lock_release(&watch->lock);
	free_batches(batches);
	vdi_etcd_watch_batch_free(watch->borrowed);
	watch->borrowed = NULL;
	vdi_usage_watch_closed(watch->usage);
	vdi_etcd_watch_unref(watch);
}

vd_status vd_etcd_watch_progress(struct vd_etcd_watch *watch)
{
	vd_status status = VD_OK;

	VDI_REQUIRE(watch, NULL);
	vdi_lock_acquire(&watch->lock);
	if (watch->set)
		vdi_etcd_watch_set_command(watch->set, watch, VDI_ETCD_WATCH_WANT_PROGRESS);
	else
		status = watch->end_status;
	vdi_lock_release(&watch->lock);
	return status;
}

vd_status vd_etcd_request_progress(struct vd_etcd *client, const struct vd_etcd_call *call,
				   struct vd_error *reterr)
{
	static const struct vd_etcd_call plain = { 0 };
	struct vdi_etcd_watch_set	*set;
	vd_status			 status;

	VDI_REQUIRE(client, reterr);
	if (call == NULL)
		call = &plain;
	if (call->metadata_count)
		VDI_REQUIRE(call->metadata, reterr);
	status = vdi_etcd_watch_set_get(client, &set);
	if (status == VD_OK)
		status = vdi_etcd_watch_set_request_progress(set, call->require_leader, call->metadata,
							     call->metadata_count);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s",
				    status == VD_CLOSED ? "no stream found for context" :
							  vd_status_sentence(status));
	return VD_OK;
}

/* ---- The reader ---- */

static vd_status fill_end_locked(const struct vd_etcd_watch *watch, struct vd_etcd_error *reterr)
{
	if (reterr == NULL)
		return watch->end_status;
	if (watch->end)
		*reterr = watch->end->error;
	else
		(void) vdi_etcd_error_set(reterr, watch->end_status, "%s",
					  vd_status_sentence(watch->end_status)); /* returned below */
	reterr->error.compacted = watch->end_compacted;
	return watch->end_status;
}

static struct vdi_etcd_watch_batch *take_batch_locked(struct vd_etcd_watch *watch)
{
	struct vdi_etcd_watch_batch *batch = watch->first;

	watch->first = batch->next;
	if (watch->first == NULL)
		watch->last = &watch->first;
	watch->buffered_bytes -= batch->bytes;
	if (watch->is_full && watch->buffered_bytes <= watch->buffer_bytes_max / 2) {
		watch->is_full = false;
		if (watch->set)
			vdi_etcd_watch_set_command(watch->set, watch, VDI_ETCD_WATCH_WANT_RESUME);
	}
	return batch;
}

vd_status vd_etcd_watch_next(struct vd_etcd_watch *watch, struct vd_etcd_watch_response *ret_response,
			     struct vd_etcd_error *reterr)
{
	vd_status status = VD_OK;

	VDI_REQUIRE(watch, reterr ? &reterr->error : NULL);
	VDI_REQUIRE(ret_response, reterr ? &reterr->error : NULL);
	vdi_etcd_watch_batch_free(watch->borrowed);
	watch->borrowed = NULL;
	vdi_lock_acquire(&watch->lock);
	if (watch->first) {
		watch->borrowed = take_batch_locked(watch);
		*ret_response =
			(struct vd_etcd_watch_response) { watch->borrowed->header, watch->borrowed->created,
							  watch->borrowed->events,
							  watch->borrowed->event_count };
	} else if (watch->has_progress) {
		watch->has_progress = false;
		*ret_response = (struct vd_etcd_watch_response) { .header = watch->progress_header };
	} else if (watch->end_status != VD_OK) {
		status = fill_end_locked(watch, reterr);
	} else {
		watch->is_armed = true;
		status = VD_AGAIN;
	}
	vdi_lock_release(&watch->lock);
	return status;
}

/* ---- The actor's end ---- */

/* Under the lock, so that no call comes after close. */
static void call_ready_locked(struct vd_etcd_watch *watch)
{
	if (!watch->is_armed)
		return;
	watch->is_armed = false;
	watch->ready(watch->ready_arg);
}

static void append_locked(struct vd_etcd_watch *watch, struct vdi_etcd_watch_batch *batch)
{
	*watch->last = batch;
	watch->last = &batch->next;
	watch->buffered_bytes += batch->bytes;
}

/* If there is no memory the progress is dropped: later progress or events supersede it. */
static void settle_progress_locked(struct vd_etcd_watch *watch)
{
	struct vdi_etcd_wire_events  none = { 0 };
	struct vdi_etcd_watch_batch *batch;

	if (watch->has_progress &&
	    vdi_etcd_watch_batch_new(&watch->progress_header, &none, 0, &batch) == VD_OK)
		append_locked(watch, batch);
	watch->has_progress = false;
}

bool vdi_etcd_watch_put(struct vd_etcd_watch *watch, struct vdi_etcd_watch_batch *batch)
{
	bool is_full = false;

	vdi_lock_acquire(&watch->lock);
	if (!watch->is_closed) {
		settle_progress_locked(watch);
		append_locked(watch, batch);
		if (watch->buffered_bytes > watch->buffer_bytes_max)
			is_full = watch->is_full = true;
		batch = NULL;
		call_ready_locked(watch);
	}
	vdi_lock_release(&watch->lock);
	vdi_etcd_watch_batch_free(batch);
	return is_full;
}

void vdi_etcd_watch_put_progress(struct vd_etcd_watch *watch, const struct vd_etcd_header *header)
{
	vdi_lock_acquire(&watch->lock);
	if (!watch->is_closed) {
		watch->has_progress = true;
		watch->progress_header = *header;
		call_ready_locked(watch);
	}
	vdi_lock_release(&watch->lock);
}

void vdi_etcd_watch_report(struct vd_etcd_watch *watch, enum vd_watch_fault_kind kind, vd_rev revision,
			   struct vd_bytes key, const char *text)
{
	if (watch->observer == NULL)
		return;
	vdi_lock_acquire(&watch->lock);
	if (!watch->is_closed)
		watch->observer->fault(watch->observer->arg,
				       &(struct vd_watch_fault) { kind, revision, key, text });
	vdi_lock_release(&watch->lock);
}

void vdi_etcd_watch_put_end(struct vd_etcd_watch *watch, vd_status status, vd_rev compacted,
			    struct vdi_etcd_watch_end *end)
{
	VDI_CHECK(status != VD_OK && status != VD_AGAIN);
	vdi_lock_acquire(&watch->lock);
	watch->set = NULL;
	watch->end_status = status;
	watch->end_compacted = compacted;
	watch->end = end;
	if (end)
		atomic_fetch_add_explicit(&end->references, 1, memory_order_relaxed);
	if (!watch->is_closed)
		call_ready_locked(watch);
	vdi_lock_release(&watch->lock);
}
