/* WATCH: frames are encoded once and written directly to the socket.
 *
 * The cacher calls deliver() on the connection's loop. Each event becomes a frame (watch_frame.h), encoded by
 * the first watch that needs it and shared by all watches of its form. Up to FRAMES_MAX frames are sent with
 * one sendmsg. Frames that the socket does not take stay in the backlog; deliver() then takes no more events,
 * and the cacher waits until the socket is writable again. An idle watch holds no frames and no buffer.
 *
 * A compressed watch (a streamed list whose client accepts gzip) uses deliver_compressed() instead. The frame
 * of a live event is a gzip member, shared like plain frames. Initial events are not shared: they are
 * collected in one member, up to SLICE bytes of content; a longer frame becomes several members, one per
 * iteration. Every member is complete at the end of an iteration, so one gzip writer per loop is enough.
 */
#include "env.h"
#include "field_support.h"
#include "hash.h"
#include "http_handlers.h"

#include <stdio.h>
#include <sys/socket.h>

#include "http_gzip.h"
#include "http_metrics.h"
#include "object.h"
#include "protobuf.h"
#include "watch_frame.h"

#define FRAMES_MAX 64
#define BYTES_MAX 262144
#define SLICE 65536 /* content that one watch compresses per iteration: half a millisecond */
/* Send buffer of a watch's socket, which the kernel doubles. By default it grows to 4 MB for each client that
 * does not read. */
#define SOCKET_BYTES 196608

/* Frames that the socket has not taken yet; exists only while there are any. */
struct backlog {
	size_t		at;
	size_t		count;
	size_t		offset; /* sent bytes of frames[at] */
	size_t		bytes;
	struct vd_blob *frames[FRAMES_MAX];
};

struct watch_stream {
	struct vdi_http_stream	    stream;
	struct vdi_http_connection *connection;
	struct vd_server	   *server;
	struct vd_watcher	   *watcher;
	struct backlog		   *backlog;
	struct vdi_watch_counts	   *counts;
	struct vdi_metric	   *running; /* gauge of running watches */
	struct vdi_request_labels   labels;
	struct vdi_account	   *account;  /* one reference; NULL: no limits */
	struct vdi_resource	   *resource; /* one reference */
	struct vdi_watch_encoding   form;
	struct vd_blob		   *rest;	   /* a frame that is compressed in several iterations */
	size_t			    rest_at;	   /* position in its content */
	bool			    is_slice_used; /* the iteration's slice is used up */
	bool			    opened;	   /* the connection pumps this stream */
	bool			    paused;	   /* deliver took fewer events than offered */
	bool			    ended;	   /* no more events follow */
	bool			    closing;	   /* the last-chunk is in the backlog or sent */
	bool			    failed;
	bool			    cut; /* the last frame was truncated on purpose (cut_frames) */
	/* revision of the first event; part of the random seed of cuts */
	vd_rev first;
	bool   state_due; /* initial events not all sent yet */
};

static vd_status frame_of(struct watch_stream *watch, const struct vd_watch_event *event,
			  struct vd_blob **ret_frame)
{
	if (vdi_watch_frame_is_shared(&watch->form, event))
		return vdi_watch_frame_get(&watch->form, event, ret_frame);
	return vdi_watch_frame_new(&watch->form, event, ret_frame);
}

/* ---- Output ---- */

static void count_unsent(struct watch_stream *watch, int64_t bytes)
{
	if (watch->account)
		atomic_fetch_add_explicit(&watch->account->unsent_bytes, bytes, memory_order_relaxed);
}

static void drop_backlog(struct watch_stream *watch)
{
	if (watch->backlog == NULL)
		return;
	count_unsent(watch, -(int64_t) watch->backlog->bytes);
	for (size_t i = watch->backlog->at; i < watch->backlog->count; i++)
		vd_blob_unref(watch->backlog->frames[i]);
	vdi_free(watch->backlog);
	watch->backlog = NULL;
}

/* VD_OK: everything was sent, and the backlog is freed. */
static vd_status flush(struct watch_stream *watch)
{
	struct backlog *backlog = watch->backlog;
	struct iovec	parts[FRAMES_MAX] = { { NULL, 0 } };
	size_t		count = 0, sent;
	vd_status	status;

	if (backlog == NULL)
		return VD_OK;
	for (size_t i = backlog->at; i < backlog->count; i++) {
		struct vd_bytes bytes = vd_blob_bytes(backlog->frames[i]);
		size_t		skip = i == backlog->at ? backlog->offset : 0;

		parts[count++] = (struct iovec) { (char *) (uintptr_t) bytes.data + skip, bytes.size - skip };
	}
	status = vdi_http_connection_send(watch->connection, parts, count, &sent);
	backlog->bytes -= sent;
	count_unsent(watch, -(int64_t) sent);
	for (size_t i = 0; i < count && sent >= parts[i].iov_len; i++) {
		sent -= parts[i].iov_len;
		vd_blob_unref(backlog->frames[backlog->at++]);
		backlog->offset = 0;
	}
	backlog->offset += sent;
	if (status == VD_OK)
		drop_backlog(watch);
	return status;
}

/* Always true for one frame: a watch without unsent bytes does not wait for other watches of its client. */
static bool has_room(const struct watch_stream *watch)
{
	int64_t client_max = watch->server->options.client_bytes_max;

	if (watch->backlog == NULL)
		return true;
	if (watch->account && client_max &&
	    atomic_load_explicit(&watch->account->unsent_bytes, memory_order_relaxed) >= client_max)
		return false;
	return watch->backlog->count < FRAMES_MAX && watch->backlog->bytes < BYTES_MAX;
}

/* Takes over frame. */
static bool enqueue(struct watch_stream *watch, struct vd_blob *frame)
{
	if (watch->backlog == NULL)
		watch->backlog = VDI_NEW(struct backlog);
	if (watch->backlog == NULL) {
		vd_blob_unref(frame);
		return false;
	}
	watch->backlog->frames[watch->backlog->count++] = frame;
	watch->backlog->bytes += vd_blob_bytes(frame).size;
	count_unsent(watch, (int64_t) vd_blob_bytes(frame).size);
	return true;
}

/* Queues the last-chunk once, and stops the source. */
static void end_stream(struct watch_stream *watch)
{
	struct vd_blob *last;

	if (watch->watcher)
		vd_watcher_close(watch->watcher, NULL, NULL);
	watch->watcher = NULL;
	if (watch->closing)
		return;
	watch->closing = true;
	if (vd_blob_new(vd_bytes_of("0\r\n\r\n"), &last) != VD_OK) {
		watch->failed = true;
		return;
	}
	/* Cannot exceed FRAMES_MAX: deliver leaves the last place free. */
	watch->failed |= !enqueue(watch, last);
}

/* Returns the bytes of a frame without its chunk framing. */
static size_t content_size(const struct vd_blob *frame)
{
	size_t size = vd_blob_bytes(frame).size - 4, digits = 1;

	while (digits < 8 && (size - digits) >> (4 * digits))
		digits++;
	return size - digits;
}

/* Ends the current gzip member and queues it as a frame; does nothing if it is empty. */
static void end_member(struct watch_stream *watch)
{
	struct vd_blob *frame;

	if (watch->form.gzip_writer == NULL || vdi_gzip_writer_size(watch->form.gzip_writer) == 0)
		return;
	if (vdi_gzip_writer_end(watch->form.gzip_writer, &frame) != VD_OK || !enqueue(watch, frame))
		watch->failed = true;
}

/* Takes over frame, an uncompressed one; with a gzip writer, compresses it as a member of its own. */
static void enqueue_alone(struct watch_stream *watch, struct vd_blob *frame)
{
	if (watch->form.gzip_writer == NULL) {
		watch->failed |= !enqueue(watch, frame);
		return;
	}
	end_member(watch);
	if (!watch->failed)
		vdi_gzip_writer_add(watch->form.gzip_writer, vdi_frame_content(frame));
	vd_blob_unref(frame);
	end_member(watch);
}

/* The event's object has no encoding in this watch's form: sends an ERROR event and ends the watch. */
static void refuse_event(struct watch_stream *watch, const struct vd_watch_event *event)
{
	struct vd_error	      error = { 0 };
	struct vd_watch_event refusal = { .type = VD_WATCH_ERROR,
					  .revision = event->revision,
					  .error = &error };
	struct vd_bytes	      name = vd_object_name(event->object);
	struct vd_blob	     *frame;

	vd_error_set(&error, VD_INTERNAL, "%s \"%.*s\" cannot be written as protobuf: ask for JSON",
		     watch->form.resource->plural, (int) VDI_MIN(name.size, (size_t) 200),
		     (const char *) name.data);
	if (vdi_watch_frame_new(&watch->form, &refusal, &frame) == VD_OK)
		enqueue_alone(watch, frame);
	else
		watch->failed = true;
	watch->ended = true;
}

/* Fault injection (cut_frames): decides whether, and where, to truncate this frame. The same watch of the
 * same history is truncated at the same place; the first frame never is, so that a reconnecting client makes
 * progress. */
static size_t cut_of(struct watch_stream *watch, const struct vd_watch_event *event, size_t size)
{
	const struct vd_server_options *options = &watch->server->options;
	struct {
		uint64_t seed;
		int64_t	 first, revision;
	} what = { options->cut_seed, watch->first, event->revision };
	uint64_t dice;

	if (watch->first == 0) {
		watch->first = VDI_MAX(event->revision, 1);
		return 0;
	}
	dice = vdi_hash_bytes((struct vd_bytes) { (const char *) &what, sizeof what }, 0);
	return (double) (dice >> 11) * 0x1p-53 < options->cut_frames ?
		       1 + (size_t) ((dice & 0x7ff) * (size - 1) / 0x800) :
		       0;
}

/* Takes over *frame. VD_OK: *frame is unchanged or truncated. */
static vd_status cut_frame(struct watch_stream *watch, const struct vd_watch_event *event,
			   struct vd_blob **frame)
{
	struct vd_bytes bytes = vd_blob_bytes(*frame);
	size_t		size = cut_of(watch, event, bytes.size);
	struct vd_blob *whole = *frame;
	vd_status	status;

	if (size == 0)
		return VD_OK;
	status = vd_blob_new((struct vd_bytes) { bytes.data, size }, frame);
	vd_blob_unref(whole);
	watch->cut = watch->ended = true;
	return status;
}

/* Counts an event that was queued; size is that of its uncompressed frame. */
static inline void count_event(struct watch_stream *watch, const struct vd_watch_event *event, size_t size)
{
	vdi_watch_counts_frame(watch->counts, size);
	if (__builtin_expect(watch->state_due && event->initial_events_end, 0)) {
		watch->state_due = false;
		vdi_request_labels_state_sent(&watch->labels);
	}
}

static size_t deliver(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct watch_stream *watch = arg;
	size_t		     taken = 0;

	while (taken < count && !watch->failed && !watch->ended) {
		vd_status status = VD_OK;

		while (taken < count && (watch->backlog == NULL ||
					 (watch->backlog->count < FRAMES_MAX - 1 && has_room(watch)))) {
			struct vd_blob *frame;
			vd_status	made = frame_of(watch, &events[taken], &frame);

			if (__builtin_expect(made == VD_BAD_REQUEST || made == VD_TOO_BIG, 0)) {
				refuse_event(watch, &events[taken]);
				break;
			}
			if (made == VD_OK && __builtin_expect(watch->server->options.cut_frames > 0, 0))
				made = cut_frame(watch, &events[taken], &frame);
			if (made != VD_OK || !enqueue(watch, frame)) {
				watch->failed = true; /* never leave a gap: the stream is aborted instead */
				break;
			}
			if (__builtin_expect(watch->cut, 0))
				break;
			count_event(watch, &events[taken], content_size(frame));
			taken++;
		}
		if (watch->opened)
			status = flush(watch);
		if (watch->backlog) { /* full, blocked or broken */
			watch->failed |= status != VD_OK && status != VD_AGAIN;
			break;
		}
	}
	watch->server->watch_event_total += taken;
	watch->paused = taken < count;
	if (watch->opened && (watch->failed || watch->backlog || watch->ended))
		vdi_http_stream_kick(watch->connection);
	return taken;
}

/* ---- Compressed watches ---- */

/* Compresses as much of the rest as the iteration's slice allows, into the current member. */
static void pack_rest(struct watch_stream *watch)
{
	struct vd_bytes content = vdi_frame_content(watch->rest);
	size_t		size = VDI_MIN(content.size - watch->rest_at, SLICE - watch->form.compressed_size);

	vdi_gzip_writer_add(watch->form.gzip_writer,
			    (struct vd_bytes) { (const char *) content.data + watch->rest_at, size });
	watch->form.compressed_size += size;
	watch->rest_at += size;
	if (watch->rest_at == content.size)
		watch->rest = vd_blob_unref(watch->rest);
}

/* Takes over *frame, with the result of making it. True: send it. False: it was rejected or truncated, or
 * memory is short. */
static bool check_frame(struct watch_stream *watch, const struct vd_watch_event *event, vd_status made,
			struct vd_blob **frame)
{
	if (made == VD_BAD_REQUEST || made == VD_TOO_BIG) {
		refuse_event(watch, event);
		return false;
	}
	if (made == VD_OK && watch->server->options.cut_frames > 0)
		made = cut_frame(watch, event, frame);
	if (made == VD_OK && watch->cut)
		(void) enqueue(watch, *frame);
	watch->failed |= made != VD_OK; /* never leave a gap: the stream is aborted instead */
	return made == VD_OK && !watch->cut;
}

/* A shared frame is a gzip member of its own, compressed once for all watches. */
static bool pack_shared(struct watch_stream *watch, const struct vd_watch_event *event)
{
	struct vd_blob *frame = NULL;
	size_t		size;

	end_member(watch);
	if (watch->failed)
		return false;
	if (!check_frame(watch, event, vdi_watch_frame_get(&watch->form, event, &frame), &frame))
		return false;
	size = vdi_frame_unpacked_size(frame);
	if (!enqueue(watch, frame)) {
		watch->failed = true;
		return false;
	}
	count_event(watch, event, size);
	return true;
}

/* Other events (initial events, bookmarks, errors) are collected in one member, up to the iteration's
 * slice. */
static bool pack_own(struct watch_stream *watch, const struct vd_watch_event *event)
{
	vd_status made = vdi_watch_frame_new(&watch->form, event, &watch->rest);
	size_t	  size;

	if (made == VD_OK &&
	    watch->server->options.cut_frames > 0) { /* what is cut is a member on the wire */
		struct vd_blob *frame = watch->rest;

		watch->rest = NULL;
		end_member(watch);
		if (watch->failed) {
			vd_blob_unref(frame);
			return false;
		}
		size = content_size(frame);
		vdi_gzip_writer_add(watch->form.gzip_writer, vdi_frame_content(frame));
		vd_blob_unref(frame);
		made = vdi_gzip_writer_end(watch->form.gzip_writer, &frame);
		if (!check_frame(watch, event, made, &frame))
			return false;
		watch->failed |= !enqueue(watch, frame);
		count_event(watch, event, size);
		return !watch->failed;
	}
	if (made != VD_OK) {
		watch->rest = NULL;
		return check_frame(watch, event, made, NULL);
	}
	watch->rest_at = 0;
	count_event(watch, event, content_size(watch->rest));
	pack_rest(watch);
	return true;
}

static bool has_slice(const struct watch_stream *watch)
{
	return watch->rest == NULL && watch->form.compressed_size < SLICE;
}

/* As deliver, with compression, which takes time: after SLICE bytes other connections run. The gzip writer is
 * empty at the end. */
static size_t deliver_compressed(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct watch_stream *watch = arg;
	size_t		     taken = 0;

	if (watch->rest || watch->is_slice_used) {
		watch->paused = true;
		return 0;
	}
	watch->form.compressed_size = 0;
	while (taken < count && !watch->failed && !watch->ended && has_slice(watch)) {
		vd_status status = VD_OK;
		bool	  took = true;

		/* An event adds at most two frames; two places are for an error event and the last-chunk. */
		while (took && taken < count && has_slice(watch) &&
		       (watch->backlog == NULL ||
			(watch->backlog->count < FRAMES_MAX - 5 && has_room(watch)))) {
			took = vdi_watch_frame_is_shared(&watch->form, &events[taken]) ?
				       pack_shared(watch, &events[taken]) :
				       pack_own(watch, &events[taken]);
			taken += took;
		}
		end_member(watch);
		if (watch->opened)
			status = flush(watch);
		if (watch->backlog) {
			watch->failed |= status != VD_OK && status != VD_AGAIN;
			break;
		}
	}
	if (watch->rest)
		count_unsent(watch, (int64_t) vd_blob_bytes(watch->rest).size);
	watch->is_slice_used |= !has_slice(watch);
	watch->server->watch_event_total += taken;
	watch->paused = taken < count;
	if (watch->opened && (watch->failed || watch->backlog || watch->ended || watch->is_slice_used))
		vdi_http_stream_kick(watch->connection);
	return taken;
}

static void drop_rest(struct watch_stream *watch)
{
	if (watch->rest)
		count_unsent(watch, -(int64_t) vd_blob_bytes(watch->rest).size);
	watch->rest = vd_blob_unref(watch->rest);
}

/* Sends one more slice of the rest. VD_FULL: more may follow. */
static vd_status send_rest(struct watch_stream *watch)
{
	int64_t	  size = (int64_t) vd_blob_bytes(watch->rest).size;
	vd_status status;

	watch->form.compressed_size = 0;
	pack_rest(watch);
	if (watch->rest == NULL)
		count_unsent(watch, -size);
	end_member(watch);
	if (watch->failed)
		return VD_IO;
	status = flush(watch);
	return status == VD_OK ? VD_FULL : status;
}

static void ended(void *arg, vd_status reason)
{
	struct watch_stream *watch = arg;

	(void) reason; /* if the client needs the reason, an ERROR event was sent before */
	watch->ended = true;
	if (watch->opened)
		vdi_http_stream_kick(watch->connection);
}

static vd_status pump(struct vdi_http_stream *stream, struct vdi_http_connection *connection)
{
	struct watch_stream *watch = VDI_CONTAINER_OF(stream, struct watch_stream, stream);
	vd_status	     status;

	if (!watch->opened) {
		int size = SOCKET_BYTES;

		(void) setsockopt(connection->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	}
	watch->opened = true;
	if (watch->failed)
		return VD_IO;
	status = flush(watch);
	if (status != VD_OK)
		return status;
	if (watch->cut)
		return VD_IO;
	if (watch->is_slice_used) {
		watch->is_slice_used = false;
		return VD_FULL;
	}
	if (watch->rest)
		return send_rest(watch);
	if (watch->ended && !watch->closing) {
		end_stream(watch);
		if (watch->failed)
			return VD_IO;
		/* while closing, a deadline applies, as for any response */
		connection->is_watch = !watch->closing;
		status = flush(watch);
		if (status != VD_OK)
			return status;
	}
	if (watch->closing)
		return VD_OK;
	if (watch->paused) {
		watch->paused = false;
		vd_watcher_resume(watch->watcher);
	}
	return VD_NOT_READY;
}

static void drain(struct vdi_http_stream *stream)
{
	VDI_CONTAINER_OF(stream, struct watch_stream, stream)->ended = true;
}

static void free_watch(struct vdi_http_stream *stream)
{
	struct watch_stream *watch = VDI_CONTAINER_OF(stream, struct watch_stream, stream);

	if (watch->watcher)
		vd_watcher_close(watch->watcher, NULL, NULL);
	drop_backlog(watch);
	drop_rest(watch);
	if (watch->account)
		atomic_fetch_sub(&watch->account->watches, 1);
	vdi_account_put(&watch->server->accounts, watch->account);
	if (watch->opened)
		vdi_request_labels_answered(&watch->labels, 200, -1);
	vdi_metric_subtract(watch->running, 1);
	watch->server->watches_open--;
	watch->labels.loop->watches_open--;
	(void) vdi_resource_unref(watch->resource);
	vdi_free(watch);
}

static const struct vdi_http_stream_ops watch_ops = { pump, drain, free_watch };

/* ---- Start ---- */

static bool read_options(struct vdi_request *request, struct vd_watch_options *options)
{
	struct vdi_params     *params = &request->params;
	struct vd_store_status store = { 0 };
	int64_t		       timeout_s, limit;

	/* Without proof of progress the store cannot confirm the end of the initial events. Reject a streamed
	 * list, so that informers list and watch instead. */
	params->watch_list_off =
		vd_store_status_get(request->server->store, &store) == VD_OK && !store.progress;
	vdi_params_default(params);
	if (!vdi_params_validate_list(params, &request->status) ||
	    !vdi_params_validate_query(params, &request->status) ||
	    !vdi_field_support_check(request->resource, params->field_selector, &request->status) ||
	    !vdi_params_validate_name(params, request->route.name, &request->status) ||
	    !vdi_params_revision(params->resource_version, &options->revision, &request->status) ||
	    !vdi_params_int(params->timeout_seconds, &timeout_s, &request->status) ||
	    !vdi_params_int(params->limit, &limit, &request->status))
		return false;
	if (request->head.version_1_0) {
		vdi_http_status_set(&request->status, 400, "BadRequest", "a watch needs HTTP/1.1");
		return false;
	}
	options->deadline = vd_mono_add(vd_env_now(request->server->env),
					vdi_params_watch_time(timeout_s, request->server->env));
	options->namespace_name = request->route.namespace_name;
	options->name = request->route.name;
	options->label_selector = params->label_selector;
	options->field_selector = params->field_selector;
	options->shard_selector = params->shard_selector;
	options->send_initial_events = params->send_initial_events;
	options->allow_bookmarks = params->allow_bookmarks;
	return true;
}

static struct watch_stream *new_stream(struct vdi_request *request)
{
	struct watch_stream *watch = VDI_NEW(struct watch_stream);

	if (watch == NULL)
		return NULL;
	watch->stream.ops = &watch_ops;
	watch->connection = request->connection;
	watch->server = request->server;
	watch->resource = vdi_resource_ref(request->resource);
	watch->form.resource = watch->resource;
	watch->form.env = request->server->env;
	watch->form.negotiated = request->form;
	if (watch->form.negotiated.form == VDI_FORM_METADATA_LIST)
		watch->form.negotiated.form = VDI_FORM_METADATA;
	watch->form.include =
		vd_bytes_equal(request->params.include_object, vd_bytes_of("Object")) ? VDI_INCLUDE_OBJECT :
		vd_bytes_equal(request->params.include_object, vd_bytes_of("None"))   ? VDI_INCLUDE_NONE :
											VDI_INCLUDE_METADATA;
	watch->form.header_due = watch->form.negotiated.form == VDI_FORM_TABLE;
	watch->server->watches_open++;
	request->loop->watches_open++;
	watch->counts = vdi_http_metrics_watch(request->loop, request->resource);
	vdi_request_labels_of(request, &watch->labels);
	watch->running = vdi_request_labels_running(&watch->labels);
	watch->state_due = request->params.send_initial_events == VD_TRUE;
	if (request->params.send_initial_events == VD_TRUE && request->params.allow_bookmarks &&
	    vdi_request_accepts_gzip(request))
		/* NULL: sent uncompressed */
		watch->form.gzip_writer = vdi_http_loop_gzip_writer(request->loop);
	vdi_metric_add(watch->running, 1);
	return watch;
}

void vdi_handle_watch(struct vdi_request *request)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watch_sink	sink = { deliver, ended, NULL, vdi_loop_executor(request->loop->loop) };
	struct vdi_out		head = VDI_OUT_INIT;
	struct watch_stream    *watch;
	struct vd_blob	       *frame;
	const char	       *type;
	struct vd_error		error = { 0 };
	vd_status		status;

	if (!read_options(request, &options)) {
		vdi_request_fail(request, &request->status);
		return;
	}
	if (request->account &&
	    !vdi_account_admit(&request->account->watches, request->server->options.client_watch_count_max)) {
		vdi_request_fail_too_many(request);
		return;
	}
	watch = new_stream(request);
	if (watch == NULL) {
		if (request->account)
			atomic_fetch_sub(&request->account->watches, 1);
		vdi_request_fail_nomem(request);
		return;
	}
	watch->account = request->account;
	request->account = NULL;
	sink.arg = watch;
	if (watch->form.gzip_writer)
		sink.deliver = deliver_compressed;
	status = vd_cacher_watch(request->resource->cacher, &options, &sink, &watch->watcher, &error);
	if (status != VD_OK) {
		watch->watcher = NULL;
		free_watch(&watch->stream);
		vdi_request_fail_result(request, "watch", status, &error);
		return;
	}
	type = watch->form.negotiated.protobuf ? VDI_K8S_PROTO_TYPE ";stream=watch" : "application/json";
	if (watch->form.gzip_writer)
		vdi_request_encoded_head(request, &head, 200, type, "", "gzip");
	else
		vdi_request_stream_head(request, &head, type, true);
	if (head.failed || vd_blob_new(vdi_out_slice(&head), &frame) != VD_OK || !enqueue(watch, frame)) {
		vdi_out_fini(&head);
		free_watch(&watch->stream);
		vdi_request_fail_nomem(request);
		return;
	}
	vdi_out_fini(&head);
	request->connection->is_watch = true;
	vdi_http_connection_stream(request->connection, &watch->stream);
}
