/* WATCH: frames encoded once, written straight to the socket.
 *
 * The cacher calls deliver() on this connection's loop. Each event becomes a frame, `<hex>\r\n{"type":...,"object":...}\n\r\n`, made by whoever needs it
 * first and shared by all watches of its form (vdi_frame_get). As protobuf the content is a length of four bytes and a WatchEvent. Frames gather up to FRAMES_MAX, then one sendmsg takes them; what the socket does not take stays here,
 * deliver() then takes nothing more, and the cacher waits until the socket is writable again. An idle watch holds no frames and no buffer.
 */
#include "hash.h"
#include "http_request.h"

#include <stdio.h>
#include <sys/socket.h>

#include "caching_object.h"
#include "object.h"
#include "protobuf.h"

#define FRAME_MAX    ((size_t) 64 << 20)
#define FRAMES_MAX   64
#define BYTES_MAX    262144
#define SOCKET_BYTES 196608 /* of the kernel's, which doubles them and by itself goes up to 4 MB for each client that does not read */
#define ANNOTATED    "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"

/* Frame slots, as vdi_frame_get knows them. Tables with includeObject=Object are rare and encoded afresh. */
enum { SLOT_OBJECT, SLOT_METADATA, SLOT_TABLE, SLOT_PROTOBUF, SLOT_PROTOBUF_METADATA, SLOT_NONE };
_Static_assert(SLOT_NONE <= VDI_FRAME_SLOTS, "a slot for each shared representation");

/* Frames that the socket has not taken yet; exists only while there are some. */
struct backlog {
	size_t		at;
	size_t		count;
	size_t		offset; /* sent of frames[at] */
	size_t		bytes;
	struct vd_blob *frames[FRAMES_MAX];
};

struct watch_stream {
	struct vdi_http_stream	    stream;
	struct vdi_http_connection *connection;
	struct vd_server	   *server;
	struct vdi_resource	   *resource;
	struct vd_watcher	   *watcher;
	struct backlog		   *backlog;
	struct vdi_watch_counts	   *counts;
	struct vdi_metric	   *running; /* a gauge */
	struct vdi_request_labels  labels;
	struct vdi_account	   *account; /* a use of it; NULL: no limits */
	struct vdi_negotiated	    form;
	uint8_t			    include;
	bool			    opened;	 /* the connection pumps this stream */
	bool			    header_due;	 /* the next table carries the columns */
	bool			    paused;	 /* deliver took less than it was offered */
	bool			    ended;	 /* no more events come */
	bool			    closing;	 /* the last chunk is in the backlog or sent */
	bool			    failed;
	bool			    cut;	 /* the last frame ends in its middle */
	vd_rev			    first;	 /* revision of the first event, for the dice of cuts */
	bool			    state_due;	 /* the initial events were not all sent yet */
};

/* ---- Frames ---- */

static void write_table(struct vdi_out *out, const struct watch_stream *watch, struct vd_bytes text, bool with_columns)
{
	struct vdi_tree tree = VDI_TREE_INIT;
	struct vdi_node	    *root;

	if (vdi_tree_parse(&tree, text, &root, NULL) != VD_OK) {
		out->failed = true;
	} else {
		vdi_out_printf(out, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{", watch->form.v1beta1 ? "v1beta1" : "v1");
		vdi_out_member(out, "resourceVersion", vdi_tree_string_of(vdi_tree_find(&tree, root, "metadata.resourceVersion")));
		vdi_out_raw(out, "}");
		if (with_columns)
			vdi_table_columns(out, watch->resource);
		else
			vdi_out_raw(out, ",\"columnDefinitions\":[]");
		vdi_out_raw(out, ",\"rows\":[");
		vdi_table_row(out, watch->resource, &tree, root, text, (enum vdi_include) watch->include, watch->form.v1beta1,
			      vd_env_wall(watch->server->env));
		vdi_out_raw(out, "]}");
	}
	vdi_tree_fini(&tree);
}

static void write_metadata(struct vdi_out *out, const struct watch_stream *watch, struct vd_bytes text)
{
	struct vdi_tree tree = VDI_TREE_INIT;
	struct vdi_node	    *root;

	if (vdi_tree_parse(&tree, text, &root, NULL) != VD_OK)
		out->failed = true;
	else
		vdi_table_metadata(out, &tree, root, watch->form.v1beta1);
	vdi_tree_fini(&tree);
}

/* The object of a bookmark: of the served kind, nothing but a revision (H-403, H-405). */
static void write_bookmark_object(struct vdi_out *out, const struct watch_stream *watch, const struct vd_watch_event *event)
{
	char version[VDI_RESOURCE_NAME_MAX];

	vdi_out_printf(out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%lld\"%s,\"creationTimestamp\":null}}",
			watch->resource->kind, vdi_resource_api_version(watch->resource, version), (long long) event->revision,
			event->initial_events_end ? "," ANNOTATED : "");
}

static void write_bookmark(struct vdi_out *out, const struct watch_stream *watch, const struct vd_watch_event *event)
{
	struct vdi_out text = VDI_OUT_INIT;

	write_bookmark_object(&text, watch, event);
	if (text.failed)
		out->failed = true;
	else if (watch->form.form == VDI_FORM_TABLE)
		write_table(out, watch, vdi_out_slice(&text), watch->header_due);
	else if (watch->form.form == VDI_FORM_OBJECT)
		vdi_out_bytes(out, vdi_out_slice(&text));
	else
		write_metadata(out, watch, vdi_out_slice(&text));
	vdi_out_fini(&text);
}

static void write_error(struct vdi_out *out, const struct watch_stream *watch, const struct vd_error *error)
{
	struct vdi_http_status *status = VDI_NEW(struct vdi_http_status);

	if (status == NULL) {
		out->failed = true;
		return;
	}
	vdi_http_status_of(status, "watch", watch->resource->group, watch->resource->plural, VD_BYTES_NONE, error->code, error);
	vdi_http_status_write(out, status);
	vdi_free(status);
}

static void write_object(struct vdi_out *out, const struct watch_stream *watch, const struct vd_watch_event *event)
{
	struct vdi_out text = VDI_OUT_INIT;

	if (watch->form.form == VDI_FORM_OBJECT) {
		vdi_object_write(out, event->object, event->revision);
		return;
	}
	vdi_object_write(&text, event->object, event->revision);
	if (text.failed)
		out->failed = true;
	else if (watch->form.form == VDI_FORM_TABLE)
		write_table(out, watch, vdi_out_slice(&text), watch->header_due);
	else
		write_metadata(out, watch, vdi_out_slice(&text));
	vdi_out_fini(&text);
}

/* A chunk's size stands before what it measures, so the content is written first and the size put in front: room is left for 8 digits. */
static const char chunk_room[] = "          "; /* "ffffffff\r\n" */
#define CHUNK_ROOM (sizeof chunk_room - 1)

/* text: the room, the content, and the line end of the chunk. */
static vd_status make_frame(char *text, size_t size, struct vd_blob **ret_frame)
{
	char   line[16];
	size_t size_of_line = (size_t) snprintf(line, sizeof line, "%zx\r\n", size - CHUNK_ROOM - 2);

	memcpy(text + CHUNK_ROOM - size_of_line, line, size_of_line);
	return vd_blob_new((struct vd_bytes) { text + CHUNK_ROOM - size_of_line, size - CHUNK_ROOM + size_of_line }, ret_frame);
}

/* VD_BAD_REQUEST: the object is not what its kind says. */
static vd_status write_protobuf(struct vdi_buffer *out, const struct watch_stream *watch, const struct vd_watch_event *event)
{
	struct vdi_protobuf protobuf;
	struct vdi_out	    text = VDI_OUT_INIT;
	vd_status	    status = VD_NOMEM;

	vdi_protobuf_init(&protobuf, watch->resource, false, &watch->form);
	if (event->type == VD_WATCH_ERROR)
		write_error(&text, watch, event->error);
	else if (event->type == VD_WATCH_BOOKMARK)
		write_bookmark_object(&text, watch, event);
	if (text.failed)
		status = VD_NOMEM;
	else if (event->type == VD_WATCH_ERROR)
		status = vdi_protobuf_error_event(out, vdi_out_slice(&text));
	else
		status = vdi_protobuf_event(out, &protobuf, vd_watch_type_name(event->type),
					    event->type == VD_WATCH_BOOKMARK ? vdi_out_slice(&text) : vd_kv_value(vd_object_kv(event->object)),
					    event->type == VD_WATCH_BOOKMARK ? 0 : event->revision, NULL);
	vdi_out_fini(&text);
	return status;
}

static vd_status encode_protobuf(const struct watch_stream *watch, const struct vd_watch_event *event, struct vd_blob **ret_frame)
{
	struct vdi_buffer out;
	vd_status	  status;

	vdi_buffer_init(&out, FRAME_MAX);
	vdi_buffer_append(&out, (struct vd_bytes) { chunk_room, CHUNK_ROOM });
	status = write_protobuf(&out, watch, event);
	vdi_buffer_append(&out, (struct vd_bytes) { "\r\n", 2 });
	if (status == VD_OK)
		status = vdi_buffer_status(&out);
	if (status == VD_OK)
		status = make_frame(out.data, out.size, ret_frame);
	vdi_buffer_fini(&out);
	return status;
}

static vd_status encode(void *arg, const struct vd_watch_event *event, struct vd_blob **ret_frame)
{
	const struct watch_stream *watch = arg;
	struct vdi_out		   out = VDI_OUT_INIT;
	vd_status		   status = VD_NOMEM;

	if (watch->form.protobuf)
		return encode_protobuf(watch, event, ret_frame);
	vdi_out_raw(&out, chunk_room);
	vdi_out_printf(&out, "{\"type\":\"%s\",\"object\":", vd_watch_type_name(event->type));
	if (event->type == VD_WATCH_ERROR)
		write_error(&out, watch, event->error);
	else if (event->type == VD_WATCH_BOOKMARK)
		write_bookmark(&out, watch, event);
	else
		write_object(&out, watch, event);
	vdi_out_raw(&out, "}\n\r\n");
	if (!out.failed)
		status = make_frame(out.data, out.size, ret_frame);
	vdi_out_fini(&out);
	return status;
}

static unsigned slot_of(const struct watch_stream *watch)
{
	switch (watch->form.form) {
	case VDI_FORM_OBJECT: return watch->form.protobuf ? SLOT_PROTOBUF : SLOT_OBJECT;
	case VDI_FORM_TABLE: return watch->header_due || watch->include != VDI_INCLUDE_METADATA || watch->form.v1beta1 ? SLOT_NONE : SLOT_TABLE;
	default: return watch->form.v1beta1 ? SLOT_NONE : watch->form.protobuf ? SLOT_PROTOBUF_METADATA : SLOT_METADATA;
	}
}

static vd_status frame_of(struct watch_stream *watch, const struct vd_watch_event *event, struct vd_blob **ret_frame)
{
	unsigned  slot = slot_of(watch);
	vd_status status;

	if (slot == SLOT_NONE || event->shared == NULL)
		status = encode(watch, event, ret_frame);
	else
		status = vdi_frame_get(event, slot, encode, watch, ret_frame);
	if (status == VD_OK && event->type != VD_WATCH_ERROR)
		watch->header_due = false;
	return status;
}

/* ---- Out ---- */

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

/* VD_OK: everything was sent, and the backlog is gone. */
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

/* One frame always has: who has nothing unsent is not made to wait for others of its client. */
static bool has_room(const struct watch_stream *watch)
{
	int64_t client_max = watch->server->options.client_bytes_max;

	if (watch->backlog == NULL)
		return true;
	if (watch->account && client_max && atomic_load_explicit(&watch->account->unsent_bytes, memory_order_relaxed) >= client_max)
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

/* Queues the last chunk once, and stops the source. */
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
	/* One place beyond FRAMES_MAX is never needed: deliver leaves the last place free. */
	watch->failed |= !enqueue(watch, last);
}

/* Bytes of a frame without those of its chunk. */
static size_t content_size(const struct vd_blob *frame)
{
	size_t size = vd_blob_bytes(frame).size - 4, digits = 1;

	while (digits < 8 && (size - digits) >> (4 * digits))
		digits++;
	return size - digits;
}

/* The object of event cannot be told in the form that this watch has: says so and ends. */
static void refuse_event(struct watch_stream *watch, const struct vd_watch_event *event)
{
	struct vd_error	      error = { 0 };
	struct vd_watch_event refusal = { .type = VD_WATCH_ERROR, .revision = event->revision, .error = &error };
	struct vd_bytes	      name = vd_object_name(event->object);
	struct vd_blob	     *frame;

	vd_error_set(&error, VD_INTERNAL, "%s \"%.*s\" cannot be written as protobuf: ask for JSON", watch->resource->plural,
		     (int) VDI_MIN(name.size, (size_t) 200), (const char *) name.data);
	if (encode(watch, &refusal, &frame) != VD_OK || !enqueue(watch, frame))
		watch->failed = true;
	watch->ended = true;
}

/* Whether this frame is to be cut, and where: the same watch of the same history is cut at the same place. Never the first: who comes back gets on. */
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
	return (double) (dice >> 11) * 0x1p-53 < options->cut_frames ? 1 + (size_t) ((dice & 0x7ff) * (size - 1) / 0x800) : 0;
}

/* Takes over *frame. VD_OK: it is what it was, or shorter. */
static vd_status cut_frame(struct watch_stream *watch, const struct vd_watch_event *event, struct vd_blob **frame)
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

static size_t deliver(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct watch_stream *watch = arg;
	size_t		     taken = 0;

	while (taken < count && !watch->failed && !watch->ended) {
		vd_status status = VD_OK;

		while (taken < count && (watch->backlog == NULL || (watch->backlog->count < FRAMES_MAX - 1 && has_room(watch)))) {
			struct vd_blob *frame;
			vd_status	made = frame_of(watch, &events[taken], &frame);

			if (__builtin_expect(made == VD_BAD_REQUEST || made == VD_TOO_BIG, 0)) {
				refuse_event(watch, &events[taken]);
				break;
			}
			if (made == VD_OK && __builtin_expect(watch->server->options.cut_frames > 0, 0))
				made = cut_frame(watch, &events[taken], &frame);
			if (made != VD_OK || !enqueue(watch, frame)) {
				watch->failed = true; /* a hole must not appear: the stream is cut instead */
				break;
			}
			if (__builtin_expect(watch->cut, 0))
				break;
			vdi_watch_counts_frame(watch->counts, content_size(frame));
			if (__builtin_expect(watch->state_due && events[taken].initial_events_end, 0)) {
				watch->state_due = false;
				vdi_request_labels_state_sent(&watch->labels);
			}
			taken++;
		}
		if (watch->opened)
			status = flush(watch);
		if (watch->backlog) { /* full, blocked, or broken */
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

static void ended(void *arg, vd_status reason)
{
	struct watch_stream *watch = arg;

	(void) reason; /* an ERROR event went before where the client has to know */
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
	if (watch->ended && !watch->closing) {
		end_stream(watch);
		if (watch->failed)
			return VD_IO;
		connection->is_watch = !watch->closing; /* from here on a deadline holds, as for any answer */
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

/* ---- Opening ---- */

static bool read_options(struct vdi_request *request, struct vd_watch_options *options)
{
	struct vdi_params *params = &request->params;
	struct vd_store_status store = { 0 };
	int64_t		   timeout_s, limit;

	/* Initial events need an end, and that needs proof of progress: informers then list and watch. */
	params->watch_list_off = vd_store_status_get(request->server->store, &store) == VD_OK && !store.progress;
	vdi_params_default(params);
	if (!vdi_params_validate_list(params, &request->status) || !vdi_params_validate_query(params, &request->status) ||
	    !vdi_params_validate_fields(params, request->resource, &request->status) ||
	    !vdi_params_revision(params->resource_version, &options->revision, &request->status) ||
	    !vdi_params_int(params->timeout_seconds, &timeout_s, &request->status) ||
	    !vdi_params_int(params->limit, &limit, &request->status))
		return false;
	if (request->head.version_1_0) {
		vdi_http_status_set(&request->status, 400, "BadRequest", "a watch needs HTTP/1.1");
		return false;
	}
	if (timeout_s <= 0) /* */
		timeout_s = 1800 + (int64_t) vd_env_random_below(request->server->env, 1800);
	timeout_s = VDI_MIN(timeout_s, (int64_t) 1000000000);
	options->deadline = vd_mono_add(vd_env_now(request->server->env), VD_SECONDS(timeout_s));
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
	watch->form = request->form;
	if (watch->form.form == VDI_FORM_METADATA_LIST)
		watch->form.form = VDI_FORM_METADATA;
	watch->include = vd_bytes_equal(request->params.include_object, vd_bytes_of("Object"))   ? VDI_INCLUDE_OBJECT
			 : vd_bytes_equal(request->params.include_object, vd_bytes_of("None")) ? VDI_INCLUDE_NONE
												: VDI_INCLUDE_METADATA;
	watch->header_due = watch->form.form == VDI_FORM_TABLE;
	watch->server->watches_open++;
	request->loop->watches_open++;
	watch->counts = vdi_http_metrics_watch(request->loop, request->resource);
	vdi_request_labels_of(request, &watch->labels);
	watch->running = vdi_request_labels_running(&watch->labels);
	watch->state_due = request->params.send_initial_events == VD_TRUE;
	vdi_metric_add(watch->running, 1);
	return watch;
}

void vdi_handle_watch(struct vdi_request *request)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watch_sink	sink = { deliver, ended, NULL, vdi_loop_runner(request->loop->loop) };
	struct vdi_out	head = VDI_OUT_INIT;
	struct watch_stream    *watch;
	struct vd_blob	       *frame;
	struct vd_error		error = { 0 };
	vd_status		status;

	if (!read_options(request, &options)) {
		vdi_request_fail(request, &request->status);
		return;
	}
	if (request->account && !vdi_account_admit(&request->account->watches, request->server->options.client_watch_count_max)) {
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
	status = vd_cacher_watch(request->resource->cacher, &options, &sink, &watch->watcher, &error);
	if (status != VD_OK) {
		watch->watcher = NULL;
		free_watch(&watch->stream);
		vdi_request_fail_result(request, "watch", status, &error);
		return;
	}
	vdi_request_stream_head(request, &head, watch->form.protobuf ? VDI_K8S_PROTO_TYPE ";stream=watch" : "application/json", true);
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
