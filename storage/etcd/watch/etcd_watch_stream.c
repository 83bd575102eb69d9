/* The lifecycle of a stream: when it is open, which creates and cancels are sent, and how watches survive its
 * loss. etcd_watch_dispatch.c handles the server's messages.
 *
 * Every failure on the way (no memory for a request; a message or an order that no server sends) is handled
 * in one way: the connection is dropped, and after a while the watches are created again from their
 * positions. Nothing is lost, because a resume position moves only when its events are in the watch's
 * buffer.
 */
#include "etcd_watch_stream.h"

#include "env.h"

static const struct vdi_sm_state stream_states[VDI_ETCD_WATCH_STREAM_STATE_COUNT] = {
	[VDI_ETCD_WATCH_STREAM_IDLE] = { "idle", VDI_SM_TO(VDI_ETCD_WATCH_STREAM_OPEN) |
							 VDI_SM_TO(VDI_ETCD_WATCH_STREAM_RESTING) |
							 VDI_SM_TO(VDI_ETCD_WATCH_STREAM_GONE) },
	[VDI_ETCD_WATCH_STREAM_OPEN] = { "open", VDI_SM_TO(VDI_ETCD_WATCH_STREAM_RESTING) |
							 VDI_SM_TO(VDI_ETCD_WATCH_STREAM_BREAKING) |
							 VDI_SM_TO(VDI_ETCD_WATCH_STREAM_LEAVING) |
							 VDI_SM_TO(VDI_ETCD_WATCH_STREAM_GONE) },
	[VDI_ETCD_WATCH_STREAM_RESTING] = { "resting", VDI_SM_TO(VDI_ETCD_WATCH_STREAM_OPEN) |
							       VDI_SM_TO(VDI_ETCD_WATCH_STREAM_RESTING) |
							       VDI_SM_TO(VDI_ETCD_WATCH_STREAM_GONE) },
	[VDI_ETCD_WATCH_STREAM_BREAKING] = { "breaking", VDI_SM_TO(VDI_ETCD_WATCH_STREAM_RESTING) |
								 VDI_SM_TO(VDI_ETCD_WATCH_STREAM_LEAVING) |
								 VDI_SM_TO(VDI_ETCD_WATCH_STREAM_GONE) },
	[VDI_ETCD_WATCH_STREAM_LEAVING] = { "leaving", VDI_SM_TO(VDI_ETCD_WATCH_STREAM_GONE) },
	[VDI_ETCD_WATCH_STREAM_GONE] = { "gone", 0 },
};
static const struct vdi_sm_table stream_table = { "etcd_watch_stream", stream_states,
						  VDI_ARRAY_SIZE(stream_states) };

/* ---- Metadata ---- */

static bool is_leader_pair(const struct vd_etcd_pair *pair)
{
	return strcmp(pair->key, "hasleader") == 0 && vd_bytes_equal(pair->value, vd_bytes_of("true"));
}

static const struct vd_etcd_pair *next_pair(const struct vd_etcd_pair *metadata, size_t count,
					    const struct vd_etcd_pair *after)
{
	const struct vd_etcd_pair *next = NULL;

	/* Finds the smallest key above after's, or a later pair with the same key. */
	for (size_t i = 0; i < count; i++) {
		int order = after ? strcmp(metadata[i].key, after->key) : 1;

		if (is_leader_pair(&metadata[i]) || order < 0 || (order == 0 && &metadata[i] <= after))
			continue;
		if (next == NULL || strcmp(metadata[i].key, next->key) < 0)
			next = &metadata[i];
	}
	return next;
}

vd_status vdi_etcd_watch_stream_key(bool require_leader, const struct vd_etcd_pair *metadata,
				    size_t metadata_count, struct vdi_buffer *buffer)
{
	for (size_t i = 0; i < metadata_count; i++)
		require_leader |= is_leader_pair(&metadata[i]);
	vdi_buffer_clear(buffer);
	vdi_buffer_append_char(buffer, require_leader ? 'L' : '-');
	for (const struct vd_etcd_pair *pair = NULL;
	     (pair = next_pair(metadata, metadata_count, pair)) != NULL;) {
		uint32_t size = (uint32_t) VDI_MIN(pair->value.size, UINT32_MAX);

		vdi_buffer_append(buffer, (struct vd_bytes) { pair->key, strlen(pair->key) + 1 });
		vdi_buffer_append(buffer, (struct vd_bytes) { &size, sizeof size });
		vdi_buffer_append(buffer, pair->value);
	}
	return vdi_buffer_status(buffer);
}

/* Reads the pairs of a canonical text; pairs NULL: only counts. */
static size_t read_pairs(struct vd_bytes key, struct vd_etcd_pair *pairs)
{
	const char *at = (const char *) key.data + 1, *end = (const char *) key.data + key.size;
	size_t	    count = 0;

	while (at < end) {
		const char *name = at;
		uint32_t    size;

		at += strlen(at) + 1;
		memcpy(&size, at, sizeof size);
		at += sizeof size;
		if (pairs)
			pairs[count] = (struct vd_etcd_pair) { name, { at, size } };
		at += size;
		count++;
	}
	return count;
}

/* ---- Life ---- */

static bool watch_has_id(const void *entry, const void *key)
{
	return ((const struct vd_etcd_watch *) entry)->id == *(const int64_t *) key;
}

/* Entries of the set of canceled ids are the ids themselves, increased by one so that none is NULL. */
static bool is_id(const void *entry, const void *key)
{
	return (uintptr_t) entry == (uintptr_t) * (const int64_t *) key + 1;
}

uint64_t vdi_etcd_watch_id_hash(int64_t id)
{
	return vdi_hash_bytes((struct vd_bytes) { &id, sizeof id }, vdi_hash_seed());
}

vd_status vdi_etcd_watch_stream_new(struct vdi_etcd_watch_set *set, struct vd_bytes key,
				    struct vdi_etcd_watch_stream **ret_stream)
{
	static const struct vdi_queue_options queue_options = { .name = "etcd_watch_received",
								.when_full =
									"no further message is asked for",
								.capacity = VDI_ETCD_WATCH_RECEIVED_MAX,
								.item_size = sizeof(struct vdi_rpc_message) };
	struct vdi_etcd_watch_stream	     *stream = vdi_calloc(1, sizeof *stream + key.size);

	if (stream == NULL)
		return VD_NOMEM;
	memcpy(stream->text, key.data, key.size);
	stream->set = set;
	stream->key = (struct vd_bytes) { stream->text, key.size };
	stream->require_leader = stream->text[0] == 'L';
	stream->metadata_count = read_pairs(stream->key, NULL);
	stream->metadata = vdi_calloc(stream->metadata_count + 1, sizeof *stream->metadata);
	if (stream->metadata == NULL ||
	    vdi_queue_init(&stream->received, &queue_options, vdi_env_metrics(set->env)) != VD_OK) {
		vdi_free(stream->metadata);
		vdi_free(stream);
		return VD_NOMEM;
	}
	read_pairs(stream->key, stream->metadata);
	vdi_sm_init(&stream->sm, &stream_table, VDI_ETCD_WATCH_STREAM_IDLE);
	stream->backoff = VDI_ETCD_WATCH_BACKOFF_MIN;
	TAILQ_INIT(&stream->waiting);
	TAILQ_INIT(&stream->creating);
	TAILQ_INIT(&stream->established);
	TAILQ_INIT(&stream->paused);
	vdi_hash_init(&stream->by_id, watch_has_id, 0);
	vdi_hash_init(&stream->canceled, is_id, VDI_ETCD_WATCH_CANCELED_MAX);
	*ret_stream = stream;
	return VD_OK;
}

void vdi_etcd_watch_stream_free(struct vdi_etcd_watch_stream *stream)
{
	VDI_CHECK(stream->rpc == NULL && stream->watch_count == 0 && TAILQ_EMPTY(&stream->creating));
	vdi_hash_fini(&stream->by_id);
	vdi_hash_fini(&stream->canceled);
	vdi_queue_fini(&stream->received);
	vdi_free(stream->metadata);
	vdi_free(stream);
}

/* ---- Lists ---- */

static struct vdi_etcd_watch_list *list_of(struct vdi_etcd_watch_stream *stream, unsigned state)
{
	switch (state) {
	case VDI_ETCD_WATCH_WAITING: return &stream->waiting;
	case VDI_ETCD_WATCH_CREATING:
	case VDI_ETCD_WATCH_ABANDONED: return &stream->creating;
	case VDI_ETCD_WATCH_ESTABLISHED: return &stream->established;
	default: return &stream->paused;
	}
}

static void drop_partial(struct vd_etcd_watch *watch)
{
	if (watch->partial == NULL)
		return;
	vdi_etcd_wire_events_fini(&watch->partial->events);
	vdi_free(watch->partial);
	watch->partial = NULL;
}

void vdi_etcd_watch_stream_trust(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch)
{
	if (watch->unconfirmed == NULL)
		return;
	stream->progress_answered = VDI_MAX(stream->progress_answered, watch->unconfirmed->requests);
	vdi_etcd_watch_drop_unconfirmed(watch);
}

static void unlink_watch(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch)
{
	unsigned state = watch->sm.state;

	TAILQ_REMOVE(list_of(stream, state), watch, stream_node);
	if (state == VDI_ETCD_WATCH_CREATING || state == VDI_ETCD_WATCH_ABANDONED)
		stream->creating_count--;
	if (state == VDI_ETCD_WATCH_ESTABLISHED)
		vdi_hash_remove(&stream->by_id, vdi_etcd_watch_id_hash(watch->id), &watch->id);
	drop_partial(watch);
}

void vdi_etcd_watch_stream_move(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch,
				enum vdi_etcd_watch_state state)
{
	unlink_watch(stream, watch);
	vdi_sm_move(&watch->sm, state);
	TAILQ_INSERT_TAIL(list_of(stream, state), watch, stream_node);
	if (state == VDI_ETCD_WATCH_CREATING)
		stream->creating_count++;
}

static void discount(struct vdi_etcd_watch_stream *stream)
{
	stream->watch_count--;
	vdi_metric_subtract(stream->set->watches, 1);
}

/* Removes the watch from all lists, without an end for its reader; the caller gets the set's reference. */
static void remove_watch(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch)
{
	unlink_watch(stream, watch);
	vdi_etcd_watch_drop_unconfirmed(watch);
	if (!vdi_sm_is(&watch->sm, VDI_ETCD_WATCH_ABANDONED))
		discount(stream);
	vdi_sm_move(&watch->sm, VDI_ETCD_WATCH_ENDED);
}

static void end_watch(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch, vd_status status,
		      vd_rev compacted, struct vdi_etcd_watch_end *end)
{
	bool is_abandoned = vdi_sm_is(&watch->sm, VDI_ETCD_WATCH_ABANDONED);

	remove_watch(stream, watch);
	if (!is_abandoned)
		vdi_etcd_watch_put_end(watch, status, compacted, end);
	vdi_etcd_watch_unref(watch);
}

void vdi_etcd_watch_stream_end_watch(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch,
				     const struct vd_etcd_error *error)
{
	struct vdi_etcd_watch_end *end;

	if (vdi_sm_is(&watch->sm, VDI_ETCD_WATCH_ABANDONED)) {
		remove_watch(stream, watch);
		vdi_etcd_watch_unref(watch);
		return;
	}
	end = vdi_etcd_watch_end_new(error);
	end_watch(stream, watch, error->error.code, error->error.compacted, end);
	vdi_etcd_watch_end_unref(end);
}

static void end_list(struct vdi_etcd_watch_stream *stream, struct vdi_etcd_watch_list *list,
		     const struct vd_etcd_error *error, struct vdi_etcd_watch_end *end)
{
	struct vd_etcd_watch *watch;

	while ((watch = TAILQ_FIRST(list)) != NULL)
		end_watch(stream, watch, error->error.code, error->error.compacted, end);
}

static void end_all(struct vdi_etcd_watch_stream *stream, const struct vd_etcd_error *error)
{
	struct vdi_etcd_watch_end *end = vdi_etcd_watch_end_new(error);

	end_list(stream, &stream->established, error, end);
	end_list(stream, &stream->creating, error, end);
	end_list(stream, &stream->waiting, error, end);
	end_list(stream, &stream->paused, error, end);
	vdi_etcd_watch_end_unref(end);
}

/* ---- Connections ---- */

static void rest(struct vdi_etcd_watch_stream *stream)
{
	vd_mono now = vd_env_now(stream->set->env);

	stream->backoff.ns =
		VDI_MIN(stream->backoff.ns + stream->backoff.ns / 4, VDI_ETCD_WATCH_BACKOFF_MAX.ns);
	vdi_sm_move(&stream->sm, VDI_ETCD_WATCH_STREAM_RESTING);
	vdi_timer_heap_set(&stream->set->timers, &stream->timer, vd_mono_add(now, stream->backoff));
}

/* Closes the stream for new watches. False: one is about to join. */
static bool forget(struct vdi_etcd_watch_stream *stream)
{
	struct vdi_etcd_watch_set *set = stream->set;
	bool			   is_forgotten;

	vdi_lock_acquire(&set->lock);
	if (!stream->is_forgotten && stream->joining == 0 && (!stream->is_kept || set->is_closing)) {
		vdi_hash_remove(&set->by_metadata, vdi_hash_bytes(stream->key, vdi_hash_seed()),
				&stream->key);
		stream->is_forgotten = true;
	}
	is_forgotten = stream->is_forgotten;
	vdi_lock_release(&set->lock);
	return is_forgotten;
}

/* Requeues all watches after a connection: creates in progress first, then waiting ones, then established
 * ones. Ids of the lost connection are void. */
static void requeue_all(struct vdi_etcd_watch_stream *stream)
{
	struct vd_etcd_watch *watch;

	while ((watch = TAILQ_LAST(&stream->creating, vdi_etcd_watch_list)) != NULL) {
		if (vdi_sm_is(&watch->sm, VDI_ETCD_WATCH_ABANDONED)) {
			remove_watch(stream, watch);
			vdi_etcd_watch_unref(watch);
			continue;
		}
		unlink_watch(stream, watch);
		vdi_sm_move(&watch->sm, VDI_ETCD_WATCH_WAITING);
		TAILQ_INSERT_HEAD(&stream->waiting, watch, stream_node);
	}
	while ((watch = TAILQ_FIRST(&stream->established)) != NULL)
		vdi_etcd_watch_stream_move(stream, watch, VDI_ETCD_WATCH_WAITING);
	vdi_hash_clear(&stream->canceled);
	stream->has_created = false;
}

static void break_off(struct vdi_etcd_watch_stream *stream)
{
	if (!vdi_sm_is(&stream->sm, VDI_ETCD_WATCH_STREAM_OPEN))
		return;
	vdi_sm_move(&stream->sm, VDI_ETCD_WATCH_STREAM_BREAKING);
	vdi_etcd_stream_cancel(stream->rpc);
}

/* Leaves; the state is not LEAVING or GONE, and the stream is forgotten. */
static void depart(struct vdi_etcd_watch_stream *stream)
{
	struct vd_etcd_watch *watch;

	while ((watch = TAILQ_FIRST(&stream->creating)) != NULL) { /* abandoned ones */
		remove_watch(stream, watch);
		vdi_etcd_watch_unref(watch);
	}
	vdi_timer_heap_remove(&stream->set->timers, &stream->timer);
	if (stream->rpc == NULL) {
		vdi_sm_move(&stream->sm, VDI_ETCD_WATCH_STREAM_GONE);
		return;
	}
	vdi_sm_move(&stream->sm, VDI_ETCD_WATCH_STREAM_LEAVING);
	vdi_etcd_stream_cancel(stream->rpc);
}

static bool is_over(const struct vdi_etcd_watch_stream *stream)
{
	return vdi_sm_is(&stream->sm, VDI_ETCD_WATCH_STREAM_LEAVING) ||
	       vdi_sm_is(&stream->sm, VDI_ETCD_WATCH_STREAM_GONE);
}

void vdi_etcd_watch_stream_close(struct vdi_etcd_watch_stream *stream)
{
	struct vd_etcd_error error;

	(void) vdi_etcd_error_set(&error, VD_CLOSED,
				  "the client was closed"); /* returns the code it was given */
	end_all(stream, &error);
	if (!is_over(stream) && forget(stream))
		depart(stream);
}

static void open_connection(struct vdi_etcd_watch_stream *stream)
{
	struct vdi_etcd_stream_request request = {
		.method = VDI_ETCD_METHOD_WATCH,
		.require_leader = stream->require_leader,
		.metadata = stream->metadata,
		.metadata_count = stream->metadata_count,
		.due = VD_NEVER,
	};
	vd_status status;

	vdi_etcd_watch_inbox_reset(stream);
	stream->progress_sent = stream->progress_answered = 0;
	stream->progress_revision = 0;
	stream->is_due = false;
	status = vdi_etcd_stream_open(stream->set->client, &request, &vdi_etcd_watch_inbox_handlers, stream,
				      &stream->rpc);
	if (status == VD_OK) {
		vdi_sm_move(&stream->sm, VDI_ETCD_WATCH_STREAM_OPEN);
		vdi_metric_add(stream->set->connections, 1);
		vdi_etcd_stream_receive(stream->rpc);
		return;
	}
	stream->rpc = NULL;
	if (status == VD_INVALID_ARGUMENT) {
		struct vd_etcd_error error;

		(void) vdi_etcd_error_set(&error, status,
					  /* Returns the code it was given. */
					  "a stream with such metadata cannot be opened");
		end_all(stream, &error);
	}
	rest(stream); /* no memory, or the client is closing and will end this stream */
}

/* Returns true for failures of this side, which watches survive: no memory for a message to send, or no
 * server that answered the token request in time. (The stream itself was neither canceled nor has a
 * deadline.) */
static bool is_passing(const struct vdi_rpc_end *end)
{
	return end->local && (end->code == VDI_RPC_DEADLINE_EXCEEDED || end->code == VDI_RPC_CANCELED ||
			      strcmp(end->message, VDI_ETCD_NO_MEMORY_TEXT) == 0);
}

static void error_of_end(const struct vdi_rpc_end *end, struct vd_etcd_error *ret_error)
{
	if (end->code == VDI_RPC_OK) {
		(void) vdi_etcd_error_set(ret_error, VD_UNAVAILABLE,
					  /* Returns the code it was given. */
					  "the server ended the stream of watches (EOF)");
		ret_error->grpc_code = VDI_RPC_UNKNOWN;
		return;
	}
	vdi_etcd_error_of_end(end, VDI_ETCD_CONTEXT_ALIVE, ret_error);
}

/* Handles the end; all messages before it were processed. */
static void handle_end(struct vdi_etcd_watch_stream *stream)
{
	const struct vdi_rpc_end *end = &stream->end.end;
	unsigned		  state = stream->sm.state;

	vdi_etcd_stream_free(stream->rpc);
	stream->rpc = NULL;
	if (state == VDI_ETCD_WATCH_STREAM_LEAVING) {
		vdi_sm_move(&stream->sm, VDI_ETCD_WATCH_STREAM_GONE);
		return;
	}
	if (stream->has_opened && vd_mono_since(vd_env_now(stream->set->env), stream->opened_at).ns >=
					  VDI_ETCD_WATCH_HEALTHY_AFTER.ns)
		stream->backoff = VDI_ETCD_WATCH_BACKOFF_MIN;
	if (state == VDI_ETCD_WATCH_STREAM_OPEN && vdi_etcd_is_halt(end) && !is_passing(end)) {
		struct vd_etcd_error error;

		error_of_end(end, &error);
		end_all(stream, &error);
		vdi_lock_acquire(&stream->set->lock);
		stream->is_kept = false;
		vdi_lock_release(&stream->set->lock);
		stream->wants_progress = false;
	}
	requeue_all(stream);
	rest(stream);
}

/* ---- Requests ---- */

static vd_status send_request(struct vdi_etcd_watch_stream *stream)
{
	return vdi_etcd_stream_send(stream->rpc, vdi_buffer_bytes(&stream->set->request));
}

vd_status vdi_etcd_watch_stream_cancel_id(struct vdi_etcd_watch_stream *stream, int64_t id)
{
	void *entry = (void *) ((uintptr_t) id + 1);

	if (!vdi_sm_is(&stream->sm, VDI_ETCD_WATCH_STREAM_OPEN))
		return VD_OK;
	/* Ids that the server no longer knows are never removed; if the set is full, a missing id costs at
	 * most one unnecessary cancel. */
	if (vdi_hash_put(&stream->canceled, vdi_etcd_watch_id_hash(id), &id, entry, NULL) == VD_FULL)
		vdi_hash_clear(&stream->canceled);
	VDI_TRY(vdi_etcd_wire_watch_cancel_encode(id, &stream->set->request));
	return send_request(stream);
}

/* Notes whether progress responses are, or may be, on their way. */
static vd_status note_unconfirmed(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch)
{
	vdi_etcd_watch_drop_unconfirmed(watch); /* of an earlier connection */
	if (stream->progress_sent == stream->progress_answered)
		return VD_OK;
	watch->unconfirmed = VDI_NEW(struct vdi_etcd_watch_unconfirmed);
	if (watch->unconfirmed == NULL)
		return VD_NOMEM;
	watch->unconfirmed->requests = stream->progress_sent;
	return VD_OK;
}

static vd_status send_create(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch)
{
	struct vdi_etcd_wire_watch_create create = {
		.key = vdi_etcd_watch_key(watch),
		.range_end = vdi_etcd_watch_range_end(watch),
		.start_revision = watch->next_revision, /* resume position */
		.progress = watch->progress,
		.previous = watch->previous,
		.fragment = watch->fragment,
		.no_put = watch->no_put,
		.no_delete = watch->no_delete,
	};

	VDI_TRY(vdi_etcd_wire_watch_create_encode(&create, &stream->set->request));
	VDI_TRY(note_unconfirmed(stream, watch));
	VDI_TRY(send_request(stream));
	watch->floor_revision = VDI_MAX(watch->floor_revision, watch->next_revision);
	vdi_etcd_watch_stream_move(stream, watch, VDI_ETCD_WATCH_CREATING);
	return VD_OK;
}

static vd_status send_creates(struct vdi_etcd_watch_stream *stream)
{
	size_t creates_max = stream->has_created && !stream->is_serial ? VDI_ETCD_WATCH_CREATES_MAX : 1;
	struct vd_etcd_watch *watch;

	while (stream->creating_count < creates_max && (watch = TAILQ_FIRST(&stream->waiting)) != NULL)
		VDI_TRY(send_create(stream, watch));
	return VD_OK;
}

/* Sends a progress request when no create is pending, so that the response can cover all watches, or after
 * VDI_ETCD_WATCH_PROGRESS_DELAY_MAX creates. */
static vd_status send_progress(struct vdi_etcd_watch_stream *stream)
{
	bool is_settled = TAILQ_EMPTY(&stream->waiting) && TAILQ_EMPTY(&stream->creating);

	if (!stream->wants_progress ||
	    (!is_settled && stream->progress_delay < VDI_ETCD_WATCH_PROGRESS_DELAY_MAX))
		return VD_OK;
	stream->wants_progress = false;
	stream->progress_delay = 0;
	VDI_TRY(vdi_etcd_wire_watch_progress_encode(&stream->set->request));
	VDI_TRY(send_request(stream));
	stream->progress_sent++;
	return VD_OK;
}

bool vdi_etcd_watch_stream_is_needed(struct vdi_etcd_watch_stream *stream)
{
	bool is_needed;

	vdi_lock_acquire(&stream->set->lock);
	is_needed = stream->watch_count > 0 || stream->joining > 0 || stream->is_kept;
	vdi_lock_release(&stream->set->lock);
	return is_needed;
}

/* ---- What users asked for ---- */

void vdi_etcd_watch_stream_join(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch)
{
	TAILQ_INSERT_TAIL(&stream->waiting, watch, stream_node);
	stream->watch_count++;
	vdi_metric_add(stream->set->watches, 1);
}

void vdi_etcd_watch_stream_resume(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch)
{
	if (vdi_sm_is(&watch->sm, VDI_ETCD_WATCH_PAUSED))
		vdi_etcd_watch_stream_move(stream, watch, VDI_ETCD_WATCH_WAITING);
}

void vdi_etcd_watch_stream_leave(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch)
{
	int64_t id = watch->id;
	bool	is_established = vdi_sm_is(&watch->sm, VDI_ETCD_WATCH_ESTABLISHED);

	/* It has no reader; this drops the reference to the set. */
	vdi_etcd_watch_put_end(watch, VD_CANCELED, 0, NULL);
	if (vdi_sm_is(&watch->sm, VDI_ETCD_WATCH_CREATING)) {
		vdi_sm_move(&watch->sm, VDI_ETCD_WATCH_ABANDONED);
		discount(stream);
		return;
	}
	remove_watch(stream, watch);
	vdi_etcd_watch_unref(watch);
	if (is_established && vdi_etcd_watch_stream_is_needed(stream) &&
	    vdi_etcd_watch_stream_cancel_id(stream, id) != VD_OK)
		break_off(stream);
}

/* ---- The actor's turn ---- */

/* Returns true if there may be more. */
static bool work_off_messages(struct vdi_etcd_watch_stream *stream)
{
	struct vdi_rpc_message messages[VDI_ETCD_WATCH_MESSAGES_PER_RUN];
	size_t		       count = vdi_etcd_watch_inbox_take(stream, messages, VDI_ARRAY_SIZE(messages));

	for (size_t i = 0; i < count; i++)
		if (vdi_sm_is(&stream->sm, VDI_ETCD_WATCH_STREAM_OPEN) &&
		    vdi_etcd_watch_stream_dispatch(stream, messages[i].bytes) != VD_OK)
			break_off(stream);
	if (count)
		vdi_etcd_watch_inbox_done(stream, messages, count);
	for (size_t i = 0; i < count; i++)
		vdi_rpc_message_release(&messages[i]);
	return count == VDI_ARRAY_SIZE(messages);
}

static bool has_ended(struct vdi_etcd_watch_stream *stream)
{
	bool ended;

	vdi_lock_acquire(&stream->set->lock);
	ended = stream->has_ended && stream->received.count == 0;
	vdi_lock_release(&stream->set->lock);
	return ended;
}

/* Returns true if a connection is needed. */
static bool is_wanted(struct vdi_etcd_watch_stream *stream)
{
	return stream->watch_count > 0 || !forget(stream);
}

bool vdi_etcd_watch_stream_attend(struct vdi_etcd_watch_stream *stream)
{
	bool has_more = stream->rpc && work_off_messages(stream);

	if (stream->rpc && !has_more && has_ended(stream))
		handle_end(stream);
	if (is_over(stream))
		return has_more;
	if (!is_wanted(stream)) {
		depart(stream);
		return has_more;
	}
	if (vdi_sm_is(&stream->sm, VDI_ETCD_WATCH_STREAM_IDLE) ||
	    (vdi_sm_is(&stream->sm, VDI_ETCD_WATCH_STREAM_RESTING) && stream->is_due))
		open_connection(stream);
	if (vdi_sm_is(&stream->sm, VDI_ETCD_WATCH_STREAM_OPEN) &&
	    (send_creates(stream) != VD_OK || send_progress(stream) != VD_OK))
		break_off(stream);
	return has_more;
}
