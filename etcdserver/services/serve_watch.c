/* The Watch service: one actor per stream, one watch of the store per watcher.
 *
 *   transport --message--> inbox (one) --\
 *   store --ready()------> ready list ----+--> stream_run --> send (events and responses in one order)
 *   transport --writable--> flag --------/
 *
 * Everything a stream does happens in stream_run, so responses and events cannot overtake each other: Created
 * is sent before the watcher is served for the first time, Canceled when it is no longer served. The next
 * request is taken when the response to the last one is sent.
 *
 * If a client does not read, send returns VD_FULL and the stream pauses. Unsent events of a watcher are not
 * kept: its watch of the store is closed, and later opened again at the first unsent event. So a stuck client
 * costs the bytes in the transport and a revision per watcher, whatever is written meanwhile. If that
 * revision is compacted, the watcher ends, as it would upstream.
 *
 * Upstream's groups: synced = the store's watch is parked (is_live); unsynced and victim = it has more
 * events, or is closed temporarily. A live watcher gets one response per revision; one that is behind gets
 * many revisions in one response, with the store's current revision in the header, as etcd.
 *
 * Progress is requested from the store's watches, which answer when all earlier events are delivered. The
 * response for the whole stream (-1) has the lowest revision of all its watchers.
 */
#include "env.h"
#include "serve_watch_state.h"

/* Maximum batches of one run of the actor. */
#define RUN_BATCHES_MAX 256
/* Maximum runs that a compaction waits for a stream that always has more to send. */
#define FLUSH_RUNS_MAX 8

/* ---- Sending ---- */

/* False: not sent; is_blocked tells whether it may be sent later. */
bool vdi_watch_stream_send(struct vdi_watch_stream *stream, struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	vd_status status = vdi_serve_send(stream->call, head, blob);

	if (status == VD_FULL)
		stream->is_blocked = true;
	else if (status != VD_OK)
		stream->is_finished = true;
	return status == VD_OK;
}

void vdi_watch_stream_fail(struct vdi_watch_stream *stream, enum vd_etcd_code code)
{
	stream->is_finished = true;
	vdi_serve_fail(stream->call, code);
}

static void write_control(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_watch_control *control = arg;

	vdi_serve_write_header(out, control->server, control->revision);
	vdi_wire_number(out, 2, (uint64_t) control->watch_id);
	vdi_wire_number(out, 3, control->created);
	vdi_wire_number(out, 4, control->canceled);
	vdi_wire_number(out, 5, (uint64_t) control->compact_revision);
	if (control->reason)
		vdi_wire_bytes(out, 6, vd_bytes_of(control->reason));
}

/* Sends a response, or keeps it until there is room; nothing else is sent before it. Without memory the
 * stream ends, because a missing response would be worse. */
void vdi_watch_stream_send_control(struct vdi_watch_stream *stream, struct vdi_watch_control *control)
{
	struct vdi_rpc_blob *blob;

	if (stream->is_finished)
		return;
	control->server = stream->server;
	if (vdi_wire_encode(write_control, control, &blob) != VD_OK) {
		stream->is_finished = true;
		vdi_serve_fail_status(stream->call, VD_NOMEM);
		return;
	}
	VDI_CHECK(stream->control == NULL);
	if (vdi_watch_stream_send(stream, VD_BYTES_NONE, blob) || !stream->is_blocked)
		vdi_rpc_blob_unref(blob);
	else
		stream->control = blob;
}

bool vdi_watch_stream_flush_control(struct vdi_watch_stream *stream)
{
	if (stream->control == NULL)
		return true;
	if (!vdi_watch_stream_send(stream, VD_BYTES_NONE, stream->control) && stream->is_blocked)
		return false;
	stream->control = vdi_rpc_blob_unref(stream->control);
	return !stream->is_finished;
}

/* ---- Periodic progress ---- */

static void tick(struct vdi_watch_stream *stream)
{
	vd_mono			  now = vd_env_now(stream->server->env);
	vd_rev			  current;
	struct vdi_serve_watcher *watcher;
	size_t			  position = 0;

	if (stream->tick_due.ns > now.ns)
		return;
	if (stream->notify_count == 0) {
		stream->tick_due = VD_NEVER;
		return;
	}
	stream->tick_due = vd_mono_add(now, stream->tick_interval);
	current = vdi_serve_revision(stream->server);
	while ((watcher = vdi_hash_next(&stream->watchers, &position)) != NULL) {
		if (!watcher->progress_notify || watcher->is_dead)
			continue;
		if (watcher->progress_due && watcher->watch && watcher->is_live &&
		    !vdi_serve_watcher_is_future(watcher, current)) {
			watcher->tick_wanted = true;
			/* Fails if the watch has ended; the next call of serve reports that. */
			(void) vd_store_watch_progress(watcher->watch);
		}
		watcher->progress_due = true;
	}
}

/* ---- The actor ---- */

struct news {
	struct vdi_rpc_message message; /* zero: none */
	bool		       is_ended;
	bool		       is_stopping;
	bool		       is_revoked;
};

static void take_news(struct vdi_watch_stream *stream, struct news *news)
{
	struct vdi_serve_watcher *watcher;

	memset(news, 0, sizeof *news);
	vdi_lock_acquire(&stream->lock);
	news->is_ended = stream->is_ended;
	news->is_stopping = stream->is_stopping;
	news->is_revoked = stream->is_revoked;
	if (stream->was_writable)
		stream->is_blocked = false;
	stream->was_writable = false;
	if (!stream->is_blocked && stream->control == NULL && stream->has_inbox) {
		news->message = stream->inbox;
		stream->has_inbox = false;
		stream->inbox = (struct vdi_rpc_message) { 0 };
	}
	while ((watcher = TAILQ_FIRST(&stream->ready)) != NULL) {
		TAILQ_REMOVE(&stream->ready, watcher, ready_node);
		watcher->is_ready = false;
		vdi_serve_watcher_activate(watcher);
	}
	vdi_lock_release(&stream->lock);
}

static void on_stream_closed(void *arg)
{
	struct vdi_watch_stream *stream = arg;
	struct vdi_serve_call	*call = stream->call;

	vdi_lock_fini(&stream->lock);
	vdi_free(stream);
	vdi_serve_call_unref(call);
}

static void tear_down(struct vdi_watch_stream *stream)
{
	struct vdi_serve_watcher *watcher;
	size_t			  position = 0;

	vdi_serve_watches_remove(stream->server->watches, &stream->link);
	while (position = 0, (watcher = vdi_hash_next(&stream->watchers, &position)) != NULL)
		vdi_serve_watcher_free(watcher);
	vdi_hash_fini(&stream->watchers);
	stream->control = vdi_rpc_blob_unref(stream->control);
	if (stream->has_inbox)
		vdi_rpc_message_release(&stream->inbox);
	vd_actor_close(stream->actor, on_stream_closed, stream);
}

static void handle_inbox(struct vdi_watch_stream *stream, struct news *news)
{
	/* A half-closed client still receives, as in etcd, but sends nothing. */
	if (news->message.bytes.data) {
		stream->wants_message = true;
		vdi_watch_stream_handle(stream, news->message.bytes);
	}
	vdi_rpc_message_release(&news->message);
}

/* Ends a flush after a run that began with is_flushing set: everything is sent, or the rest is not waited
 * for. */
static void end_flush(struct vdi_watch_stream *stream, bool is_flushing)
{
	bool has_more = !stream->is_blocked && !stream->is_finished && !TAILQ_EMPTY(&stream->active);

	if (!is_flushing || (has_more && ++stream->flush_runs < FLUSH_RUNS_MAX))
		return;
	stream->flush_runs = 0;
	vdi_serve_watches_flushed(stream->server->watches, &stream->link);
}

static void serve_watchers(struct vdi_watch_stream *stream)
{
	struct vdi_serve_watcher *watcher;
	unsigned		  batches = 0;

	while (!stream->is_blocked && !stream->is_finished && batches++ < RUN_BATCHES_MAX &&
	       (watcher = TAILQ_FIRST(&stream->active)) != NULL) {
		vdi_serve_watcher_serve(watcher);
		if (!stream->is_blocked && !stream->is_finished)
			vdi_watch_stream_send_progress(stream);
	}
}

static void stream_run(void *arg)
{
	struct vdi_watch_stream *stream = arg;
	struct news		 news;
	bool is_flushing = atomic_load_explicit(&stream->link.is_flushing, memory_order_acquire);

	take_news(stream, &news);
	if (news.is_ended) {
		vdi_rpc_message_release(&news.message);
		tear_down(stream);
		return;
	}
	if (news.is_stopping && !stream->is_finished)
		vdi_watch_stream_fail(stream, VD_ETCD_STOPPED);
	if (news.is_revoked && !stream->is_finished)
		vdi_watch_stream_fail(stream, VD_ETCD_INVALID_AUTH_TOKEN);
	if (stream->is_finished || stream->is_blocked || !vdi_watch_stream_flush_control(stream)) {
		vdi_rpc_message_release(&news.message);
		end_flush(stream, is_flushing);
		return;
	}
	handle_inbox(stream, &news);
	if (!stream->is_blocked && !stream->is_finished)
		vdi_watch_stream_send_progress(stream);
	tick(stream);
	serve_watchers(stream);
	end_flush(stream, is_flushing);
	if (stream->is_finished)
		return;
	if (stream->wants_message && stream->control == NULL) {
		stream->wants_message = false;
		stream->call->ops->receive(stream->call);
	}
	vd_actor_set_timer(stream->actor, stream->tick_due);
	if (!stream->is_blocked && !TAILQ_EMPTY(&stream->active))
		vd_actor_wake(stream->actor);
}

/* ---- The transport's side ---- */

static void watch_message(struct vdi_serve_call *call, struct vdi_rpc_message *message)
{
	struct vdi_watch_stream *stream = call->state;

	vdi_lock_acquire(&stream->lock);
	stream->inbox = *message;
	stream->has_inbox = true;
	vdi_lock_release(&stream->lock);
	*message = (struct vdi_rpc_message) { 0 };
	vd_actor_wake(stream->actor);
}

static void watch_writable(struct vdi_serve_call *call)
{
	struct vdi_watch_stream *stream = call->state;

	vdi_lock_acquire(&stream->lock);
	stream->was_writable = true;
	vdi_lock_release(&stream->lock);
	vd_actor_wake(stream->actor);
}

static void watch_call_ended(struct vdi_serve_call *call)
{
	struct vdi_watch_stream *stream = call->state;

	/* Wake under the lock, because the stream may be freed once its actor has seen the change. */
	vdi_lock_acquire(&stream->lock);
	stream->is_ended = true;
	vd_actor_wake(stream->actor);
	vdi_lock_release(&stream->lock);
}

static void watch_stop(struct vdi_watch_stream_link *link)
{
	struct vdi_watch_stream *stream = VDI_CONTAINER_OF(link, struct vdi_watch_stream, link);

	vdi_lock_acquire(&stream->lock);
	stream->is_stopping = true;
	vd_actor_wake(stream->actor);
	vdi_lock_release(&stream->lock);
}

static void watch_revoke(struct vdi_watch_stream_link *link, struct vd_bytes user)
{
	struct vdi_watch_stream *stream = VDI_CONTAINER_OF(link, struct vdi_watch_stream, link);

	vdi_lock_acquire(&stream->lock);
	if (stream->user.is_given &&
	    vd_bytes_equal(user, (struct vd_bytes) { stream->user.name, stream->user.name_size })) {
		stream->is_revoked = true;
		vd_actor_wake(stream->actor);
	}
	vdi_lock_release(&stream->lock);
}

static void watch_flush(struct vdi_watch_stream_link *link)
{
	vd_actor_wake(VDI_CONTAINER_OF(link, struct vdi_watch_stream, link)->actor);
}

static vd_status start_stream(struct vdi_serve_call *call, struct vdi_watch_stream *stream)
{
	struct vdi_etcdserver  *server = call->server;
	struct vd_actor_options options = { .name = "etcd watch", .run = stream_run, .arg = stream };
	vd_dur			interval = server->options.progress_interval;

	VDI_TRY(vd_actor_new(server->env, &options, &stream->actor));
	stream->link.stop = watch_stop;
	stream->link.revoke = watch_revoke;
	stream->link.flush = watch_flush;
	stream->server = server;
	stream->call = vdi_serve_call_ref(call);
	vdi_lock_init(&stream->lock, VDI_LOCK_QUEUE);
	TAILQ_INIT(&stream->ready);
	TAILQ_INIT(&stream->active);
	vdi_hash_init(&stream->watchers, vdi_serve_watcher_equals, 0);
	stream->seed = vd_env_random(server->env);
	stream->tick_interval =
		(vd_dur) { interval.ns +
			   (int64_t) vd_env_random_below(server->env, (uint64_t) (interval.ns / 10) + 1) };
	stream->tick_due = VD_NEVER;
	vdi_serve_watches_add(server->watches, &stream->link);
	return VD_OK;
}

static void watch_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct vdi_watch_stream *stream = VDI_NEW(struct vdi_watch_stream);
	vd_status		 status = VD_NOMEM;

	(void) message;
	if (stream)
		status = start_stream(call, stream);
	if (status != VD_OK) {
		vdi_free(stream);
		vdi_serve_fail_status(call, status);
		return;
	}
	call->state = stream;
	call->on_message = watch_message;
	call->on_writable = watch_writable;
	call->on_ended = watch_call_ended;
}

const struct vdi_serve_method vdi_serve_watch_methods[] = {
	{ "/etcdserverpb.Watch/Watch", VDI_SERVE_STREAM, watch_begin },
	{ 0 },
};
