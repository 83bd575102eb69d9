/* Matches the server's messages to the watches of a stream.
 *
 * - created: for the oldest pending create: established, or failed (id -1, or canceled at once)
 * - canceled: by the server, or the response to a cancel
 * - compact_revision: the watch ends with it, after its buffered responses
 * - id -1, no events: progress of every established watch
 * - fragment: collected until the last one; the resume position does not move before that
 * - others: events, or progress of one watch
 *
 * Progress with id -1 is the response to a progress request. It covers every watch registered when the server
 * produced it. The server answers requests in order, but a progress response is sent with the events, and
 * "created" may overtake these. So a watch created after a request may get progress beyond events of its own
 * that have not arrived; if the connection is then lost, it would resume after them. A response is of this
 * kind only if all of these hold:
 * - its revision is not above that at which the watch was created: an earlier response cannot be newer;
 * - the watch has received nothing else since its creation: its own messages use the same queue and come
 *   after it;
 * - the number of responses so far, including this one, is at most that of requests sent before the create.
 *
 * A watch that starts above the server's revision has no such events. See docs/decisions/progress-of-all.md.
 *
 * An unknown id is canceled once. Resume positions only increase, and only up to responses stored in the
 * watch's buffer. */
#include "etcd_call.h"
#include "etcd_watch_stream.h"
#include "key_range.h"

#define NO_WATCH_ID INT64_C(-1)

static struct vd_etcd_watch *find_watch(struct vdi_etcd_watch_stream *stream, int64_t id)
{
	return vdi_hash_get(&stream->by_id, vdi_etcd_watch_id_hash(id), &id);
}

static bool was_canceled(struct vdi_etcd_watch_stream *stream, int64_t id)
{
	return vdi_hash_get(&stream->canceled, vdi_etcd_watch_id_hash(id), &id) != NULL;
}

static void error_of_code(enum vd_etcd_code code, struct vd_etcd_error *ret_error)
{
	(void) vdi_etcd_error_set(ret_error, vdi_etcd_code_status(code), "%s",
				  vdi_etcd_code_message(code)); /* returns the status it was given */
	ret_error->code = code;
	ret_error->grpc_code = vdi_etcd_code_grpc(code);
}

/* Error of a canceled watch, in clientv3's order of precedence. */
static void error_of_cancel(struct vdi_etcd_watch_stream	      *stream,
			    const struct vdi_etcd_wire_watch_response *response,
			    struct vd_etcd_error		      *ret_error)
{
	if (response->compact_revision != 0) {
		error_of_code(VD_ETCD_COMPACTED, ret_error);
		ret_error->error.compacted = response->compact_revision;
	} else if (response->cancel_reason.size != 0) {
		vdi_etcd_error_of_reason(response->cancel_reason, ret_error);
	} else {
		error_of_code(VD_ETCD_FUTURE_REVISION, ret_error);
	}
	vdi_lock_acquire(&stream->set->lock);
	memcpy(ret_error->endpoint, stream->endpoint, sizeof ret_error->endpoint);
	vdi_lock_release(&stream->set->lock);
}

static void advance(struct vd_etcd_watch *watch, vd_rev next_revision)
{
	watch->next_revision = VDI_MAX(watch->next_revision, next_revision);
}

/* Parks a watch whose reader is behind: canceled at the server until the reader requests to resume. */
static vd_status pause(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch)
{
	int64_t id = watch->id;

	vdi_etcd_watch_stream_move(stream, watch, VDI_ETCD_WATCH_PAUSED);
	vdi_metric_add(stream->set->paused, 1);
	return vdi_etcd_watch_stream_cancel_id(stream, id);
}

/* ---- Faults of the server, for observers ---- */

static void report_all(struct vdi_etcd_watch_stream *stream, enum vd_watch_fault_kind kind, vd_rev revision,
		       const char *text)
{
	struct vd_etcd_watch *watch;

	TAILQ_FOREACH(watch, &stream->established, stream_node)
	vdi_etcd_watch_report(watch, kind, revision, VD_BYTES_NONE, text);
}

static void observe_event(struct vd_etcd_watch *watch, const struct vd_store_event *event)
{
	struct vdi_key_range range =
		vdi_key_range_from_etcd(vdi_etcd_watch_key(watch), vdi_etcd_watch_range_end(watch));
	struct vd_bytes key = vd_kv_key(event->kv);
	vd_rev		revision = event->kv->mod_rev;

	if (revision < watch->floor_revision)
		vdi_etcd_watch_report(watch, VD_FAULT_REPEATED, revision, key,
				      "the event was sent before, or is older than the start of the watch");
	if (watch->previous && event->previous == NULL && !vd_store_event_is_create(event))
		vdi_etcd_watch_report(watch, VD_FAULT_PREVIOUS, revision, key,
				      "the previous record was requested and is missing");
	if (event->previous &&
	    (event->previous->mod_rev >= revision || !vd_bytes_equal(vd_kv_key(event->previous), key)))
		vdi_etcd_watch_report(watch, VD_FAULT_PROTOCOL, revision, key,
				      "the previous record is of another key, or not older than the event");
	if (!vdi_key_range_contains(&range, key))
		vdi_etcd_watch_report(watch, VD_FAULT_PROTOCOL, revision, key,
				      "the key is outside of the watch");
	if (event->is_delete ? watch->no_delete : watch->no_put)
		vdi_etcd_watch_report(watch, VD_FAULT_PROTOCOL, revision, key,
				      "events of this type were filtered out by the request");
}

static void observe_events(struct vd_etcd_watch *watch, const struct vd_etcd_header *header,
			   const struct vdi_etcd_wire_events *events)
{
	const struct vd_store_event *items = events->items;

	if (watch->observer == NULL)
		return;
	for (size_t i = 0; i < events->count; i++) {
		observe_event(watch, &items[i]);
		if (i && items[i].kv->mod_rev < items[i - 1].kv->mod_rev)
			vdi_etcd_watch_report(watch, VD_FAULT_ORDER, items[i].kv->mod_rev,
					      vd_kv_key(items[i].kv),
					      "an event of a higher revision came before it");
		if (items[i].kv->mod_rev > header->revision)
			vdi_etcd_watch_report(
				watch, VD_FAULT_PROTOCOL, items[i].kv->mod_rev, vd_kv_key(items[i].kv),
				"the event is newer than the revision in the header of its response");
	}
}

/* ---- Created ---- */

static vd_status handle_failed_create(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch,
				      const struct vdi_etcd_wire_watch_response *response)
{
	struct vd_etcd_error error;

	/* Without a revision it comes from a proxy, which answers failures at once but successes later, so
	 * not in the order of requests. */
	if (stream->creating_count > 1 && response->header.revision == 0) {
		stream->is_serial = true;
		return VD_CORRUPT;
	}
	error_of_cancel(stream, response, &error);
	/* The stream is older than its token. The next connection has a new one; if that is refused too, it
	 * is the user who lacks permission. */
	if (!stream->is_renewed && vdi_etcd_wants_new_token(stream->set->client, error.code)) {
		stream->is_renewed = true;
		return VD_FORBIDDEN;
	}
	if (response->watch_id != NO_WATCH_ID)
		stream->created_id = response->watch_id;
	vdi_etcd_watch_stream_end_watch(stream, watch, &error);
	return VD_OK;
}

/* Clears the mark of unconfirmed progress if the watch cannot have events on their way. */
static void note_created(struct vd_etcd_watch *watch, vd_rev revision)
{
	if (watch->unconfirmed == NULL)
		return;
	watch->unconfirmed->revision = revision;
	if (watch->next_revision == 0 || (revision > 0 && watch->next_revision > revision))
		vdi_etcd_watch_drop_unconfirmed(watch);
}

static vd_status establish(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch,
			   const struct vdi_etcd_wire_watch_response *response)
{
	struct vdi_etcd_watch_batch *batch = NULL;

	if (watch->reports_created) {
		struct vdi_etcd_wire_events none = { 0 };

		VDI_TRY(vdi_etcd_watch_batch_new(&response->header, &none, 0, &batch));
		batch->created = true;
	}
	watch->id = response->watch_id;
	watch->has_heard = false;
	if (vdi_hash_put(&stream->by_id, vdi_etcd_watch_id_hash(watch->id), &watch->id, watch, NULL) !=
	    VD_OK) {
		vdi_etcd_watch_batch_free(batch);
		return VD_NOMEM;
	}
	vdi_etcd_watch_stream_move(stream, watch, VDI_ETCD_WATCH_ESTABLISHED);
	if (atomic_load_explicit(&watch->created_revision, memory_order_relaxed) == 0)
		atomic_store_explicit(&watch->created_revision, response->header.revision,
				      memory_order_relaxed);
	note_created(watch, response->header.revision);
	if (watch->next_revision == 0)
		/* As clientv3: a watch from now resumes at the revision of its creation. */
		watch->next_revision = response->header.revision;
	if (batch == NULL)
		return VD_OK;
	watch->reports_created = false;
	return vdi_etcd_watch_put(watch, batch) ? pause(stream, watch) : VD_OK;
}

static vd_status handle_created(struct vdi_etcd_watch_stream		  *stream,
				const struct vdi_etcd_wire_watch_response *response)
{
	struct vd_etcd_watch *watch = TAILQ_FIRST(&stream->creating);
	int64_t		      id = response->watch_id;

	if (watch == NULL) /* no pending create */
		report_all(stream, VD_FAULT_PROTOCOL, response->header.revision,
			   "the creation of a watch was answered that was not requested");
	if (watch == NULL)
		return id == NO_WATCH_ID || find_watch(stream, id) ?
			       VD_OK :
			       vdi_etcd_watch_stream_cancel_id(stream, id);
	if (id == NO_WATCH_ID || response->canceled || response->compact_revision != 0)
		return handle_failed_create(stream, watch, response);
	/* The order of creates is the only hint to which one is answered. An id out of sequence or already in
	 * use shows that it is not reliable. */
	if (find_watch(stream, id) || (stream->creating_count > 1 && id != stream->created_id + 1)) {
		stream->is_serial = true;
		return VD_CORRUPT;
	}
	stream->has_created = true;
	stream->is_renewed = false;
	stream->created_id = id;
	stream->progress_delay += stream->wants_progress;
	if (vdi_sm_is(&watch->sm, VDI_ETCD_WATCH_ABANDONED)) {
		vdi_etcd_watch_stream_end_watch(stream, watch, NULL);
		return vdi_etcd_watch_stream_cancel_id(stream, id);
	}
	if (was_canceled(stream, id)) { /* its events came before "created", so a cancel was sent */
		vdi_etcd_watch_stream_move(stream, watch, VDI_ETCD_WATCH_WAITING);
		return VD_OK;
	}
	return establish(stream, watch, response);
}

/* ---- Events ---- */

static void drop_first(struct vdi_etcd_wire_events *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct vd_store_event event = events->items[0];

		vdi_etcd_watch_events_forget(events, 1);
		vd_kv_unref(event.kv);
		vd_kv_unref(event.previous);
	}
}

/* Delivers the first count events, whole revisions. Events below the floor were delivered before, or not
 * requested. */
static vd_status deliver(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch,
			 const struct vd_etcd_header *header, struct vdi_etcd_wire_events *events,
			 size_t count)
{
	struct vdi_etcd_watch_batch *batch;
	size_t			     below = 0;
	vd_rev			     last;

	while (below < count && events->items[below].kv->mod_rev < watch->floor_revision)
		below++;
	drop_first(events, below);
	count -= below;
	if (count == 0)
		return VD_OK;
	last = events->items[count - 1].kv->mod_rev;
	VDI_TRY(vdi_etcd_watch_batch_new(header, events, count, &batch));
	watch->has_heard = true;
	advance(watch, last + 1); /* the events' revision counts, even if the header's is older */
	watch->floor_revision = VDI_MAX(watch->floor_revision, last + 1);
	return vdi_etcd_watch_put(watch, batch) ? pause(stream, watch) : VD_OK;
}

static void take_progress(struct vd_etcd_watch *watch, const struct vd_etcd_header *header)
{
	if (watch->partial || header->revision == 0)
		vdi_etcd_watch_report(watch, VD_FAULT_PROTOCOL, header->revision, VD_BYTES_NONE,
				      "progress without a revision, or between the fragments of a response");
	/* ignore it while a response is incomplete, and if it is older than the delivered or requested
	 * revision */
	if (watch->partial || header->revision == 0 || header->revision + 1 < watch->next_revision)
		return;
	watch->has_heard = true;
	advance(watch, header->revision + 1); /* an idle watch resumes after compactions */
	vdi_etcd_watch_put_progress(watch, header);
}

static bool covers(const struct vdi_etcd_watch_stream *stream, const struct vd_etcd_watch *watch,
		   const struct vd_etcd_header *header)
{
	const struct vdi_etcd_watch_unconfirmed *unconfirmed = watch->unconfirmed;

	return unconfirmed == NULL || stream->progress_answered > unconfirmed->requests ||
	       (unconfirmed->revision > 0 && header->revision > unconfirmed->revision);
}

/* Watches that the response does not cover get the next one. */
static void take_progress_of_all(struct vdi_etcd_watch_stream *stream, const struct vd_etcd_header *header)
{
	struct vd_etcd_watch *watch;

	if (stream->progress_answered < stream->progress_sent)
		stream->progress_answered++;
	if (header->revision < stream->progress_revision)
		report_all(stream, VD_FAULT_PROGRESS, header->revision,
			   "progress at a higher revision came before it");
	stream->progress_revision = VDI_MAX(stream->progress_revision, header->revision);
	TAILQ_FOREACH(watch, &stream->established, stream_node)
	{
		if (!covers(stream, watch, header)) {
			stream->wants_progress = true;
			continue;
		}
		vdi_etcd_watch_stream_trust(stream, watch);
		take_progress(watch, header);
	}
}

/* Appends decoded events; a revision may be split between messages. */
static vd_status gather(struct vd_etcd_watch *watch, const struct vd_etcd_header *header,
			struct vdi_etcd_wire_events *decoded)
{
	struct vdi_etcd_wire_events *events;
	struct vd_kv		    *last;

	if (watch->partial == NULL) {
		watch->partial = VDI_NEW(struct vdi_etcd_watch_partial);
		if (watch->partial == NULL)
			return VD_NOMEM;
		watch->partial->header = *header;
		watch->partial->events = *decoded;
		*decoded = (struct vdi_etcd_wire_events) { 0 };
		return VD_OK;
	}
	events = &watch->partial->events;
	if (!vdi_grow((void **) &events->items, &events->capacity, events->count + decoded->count,
		      sizeof events->items[0]))
		return VD_NOMEM;
	last = events->count ? events->items[events->count - 1].kv : NULL;
	for (size_t i = 0; last && i < decoded->count && decoded->items[i].kv->mod_rev == last->mod_rev; i++)
		decoded->items[i].kv->sub += last->sub + 1;
	if (decoded->count)
		memcpy(events->items + events->count, decoded->items,
		       decoded->count * sizeof events->items[0]);
	events->count += decoded->count;
	events->bytes += decoded->bytes;
	vdi_etcd_watch_events_forget(decoded, decoded->count);
	return VD_OK;
}

/* Delivers all but the last revision of a response larger than the buffer, because these are complete. */
static vd_status flush_gathered(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch)
{
	struct vdi_etcd_wire_events *events = &watch->partial->events;
	size_t			     complete = events->count;

	if (events->bytes <= watch->buffer_bytes_max)
		return VD_OK;
	while (complete > 0 &&
	       events->items[complete - 1].kv->mod_rev == events->items[events->count - 1].kv->mod_rev)
		complete--;
	return complete ? deliver(stream, watch, &watch->partial->header, events, complete) : VD_OK;
}

static vd_status finish_gathered(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch)
{
	struct vdi_etcd_watch_partial *partial = watch->partial;
	vd_status		       status;

	watch->partial = NULL;
	status = deliver(stream, watch, &partial->header, &partial->events, partial->events.count);
	vdi_etcd_wire_events_fini(&partial->events);
	vdi_free(partial);
	return status;
}

static vd_status handle_response(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch,
				 const struct vdi_etcd_wire_watch_response *response,
				 struct vdi_etcd_wire_events		   *events)
{
	vdi_etcd_watch_stream_trust(stream, watch);
	observe_events(watch, &response->header, events);
	if (events->count == 0 && !response->fragment) {
		/* A member that is behind may send an older revision than another member before. */
		if (watch->has_heard && response->header.revision != 0 &&
		    response->header.revision + 1 < watch->next_revision)
			vdi_etcd_watch_report(watch, VD_FAULT_PROGRESS, response->header.revision,
					      VD_BYTES_NONE,
					      "an event or progress of a higher revision came before it");
		take_progress(watch, &response->header);
		return VD_OK;
	}
	if (watch->partial == NULL && !response->fragment)
		return deliver(stream, watch, &response->header, events, events->count);
	VDI_TRY(gather(watch, &response->header, events));
	return response->fragment ? flush_gathered(stream, watch) : finish_gathered(stream, watch);
}

/* ---- The rest ---- */

static vd_status handle_canceled(struct vdi_etcd_watch_stream		   *stream,
				 const struct vdi_etcd_wire_watch_response *response,
				 struct vdi_etcd_wire_events		   *events)
{
	struct vd_etcd_watch *watch = find_watch(stream, response->watch_id);
	struct vd_etcd_error  error;

	vdi_hash_remove(&stream->canceled, vdi_etcd_watch_id_hash(response->watch_id), &response->watch_id);
	if (watch == NULL)
		return VD_OK;
	error_of_cancel(stream, response, &error);
	vdi_etcd_watch_stream_end_watch(stream, watch, &error);
	/* The server has canceled it, except after a compaction, which some servers report until they get a
	 * cancel. */
	return vdi_etcd_watch_stream_is_needed(stream) ?
		       vdi_etcd_watch_stream_cancel_id(stream, response->watch_id) :
		       VD_OK;
}

static vd_status handle_unknown(struct vdi_etcd_watch_stream *stream, int64_t id)
{
	return was_canceled(stream, id) ? VD_OK : vdi_etcd_watch_stream_cancel_id(stream, id);
}

static vd_status handle(struct vdi_etcd_watch_stream		  *stream,
			const struct vdi_etcd_wire_watch_response *response,
			struct vdi_etcd_wire_events		  *events)
{
	struct vd_etcd_watch *watch;

	if (response->created)
		return handle_created(stream, response);
	if (response->canceled || response->compact_revision != 0)
		return handle_canceled(stream, response, events);
	if (response->watch_id == NO_WATCH_ID) {
		if (events->count == 0)
			take_progress_of_all(stream, &response->header);
		return VD_OK;
	}
	watch = find_watch(stream, response->watch_id);
	return watch ? handle_response(stream, watch, response, events) :
		       handle_unknown(stream, response->watch_id);
}

vd_status vdi_etcd_watch_stream_dispatch(struct vdi_etcd_watch_stream *stream, struct vd_bytes message)
{
	struct vdi_etcd_wire_events	   *events = &stream->set->events;
	struct vdi_etcd_wire_watch_response response;
	vd_status			    status;

	VDI_TRY(vdi_etcd_wire_watch_response_decode(message, &response, events, NULL));
	vdi_metric_add(stream->set->received_events, events->count);
	status = handle(stream, &response, events);
	vdi_etcd_wire_events_clear(events);
	return status;
}
