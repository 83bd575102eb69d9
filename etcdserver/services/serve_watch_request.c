/* Requests of a client on its Watch stream: create, cancel, progress. One at a time; its response is sent, or
 * kept, before the next one.
 *
 * Progress of the whole stream is requested from the watches of all its watchers, which answer when all
 * earlier events are delivered; the response (-1) has the lowest of their revisions. Upstream drops the
 * request if a watcher is behind; here it waits, except for watchers that start in the future.
 */
#include <stdio.h>

#include "auth.h"
#include "env.h"
#include "serve_watch_state.h"

struct vdi_serve_watcher *vdi_watch_stream_find(struct vdi_watch_stream *stream, int64_t id)
{
	return vdi_hash_get(&stream->watchers, vdi_serve_watcher_hash(stream, id), &id);
}

/* ---- Progress of the stream ---- */

static void forget_all_progress(struct vdi_watch_stream *stream)
{
	struct vdi_serve_watcher *watcher;
	size_t			  position = 0;

	while ((watcher = vdi_hash_next(&stream->watchers, &position)) != NULL)
		watcher->all_waiting = false;
	stream->all_wanted = false;
	stream->all_missing = 0;
}

static void ask_all_progress(struct vdi_watch_stream *stream, struct vdi_serve_watcher *watcher)
{
	if (watcher->is_dead || watcher->all_waiting)
		return;
	if (vdi_serve_watcher_is_future(watcher, vdi_serve_revision(stream->server))) {
		forget_all_progress(stream); /* as etcd: the client requests it again */
		return;
	}
	watcher->all_waiting = true;
	stream->all_missing++;
	if (watcher->watch)
		(void) vd_store_watch_progress(
			watcher->watch); /* fails if the watch has ended, and then the watcher is retired */
}

/* ---- Requests: create ---- */

struct create_request {
	struct vd_bytes key;
	struct vd_bytes range_end;
	vd_rev		start_revision;
	int64_t		watch_id;
	bool		progress_notify;
	bool		previous;
	bool		fragment;
	bool		no_put;
	bool		no_delete;
};

static void add_filter(struct create_request *request, uint64_t filter)
{
	request->no_put = request->no_put || filter == 0;
	request->no_delete = request->no_delete || filter == 1;
}

static bool decode_create(struct vd_bytes message, struct create_request *request)
{
	struct vdi_wire_reader reader;
	struct vdi_wire_reader packed;
	uint64_t	       filter;

	memset(request, 0, sizeof *request);
	request->key.data = request->range_end.data = "";
	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader)) {
		switch (reader.tag) {
		case VDI_WIRE_BYTES(1): request->key = reader.bytes; break;
		case VDI_WIRE_BYTES(2): request->range_end = reader.bytes; break;
		case VDI_WIRE_VARINT(3): request->start_revision = (int64_t) reader.number; break;
		case VDI_WIRE_VARINT(4): request->progress_notify = reader.number != 0; break;
		case VDI_WIRE_VARINT(5): add_filter(request, reader.number); break;
		case VDI_WIRE_BYTES(5):
			vdi_wire_reader_init(&packed, reader.bytes);
			while (vdi_wire_next_packed(&packed, &filter))
				add_filter(request, filter);
			if (packed.is_bad)
				return false;
			break;
		case VDI_WIRE_VARINT(6): request->previous = reader.number != 0; break;
		case VDI_WIRE_VARINT(7): request->watch_id = (int64_t) reader.number; break;
		case VDI_WIRE_VARINT(8): request->fragment = reader.number != 0; break;
		default: break;
		}
	}
	return !reader.is_bad;
}

static void refuse_create(struct vdi_watch_stream *stream, const char *reason)
{
	struct vdi_watch_control control = { .revision = vdi_serve_revision(stream->server),
					     .watch_id = -1,
					     .created = true,
					     .canceled = true,
					     .reason = reason };

	vdi_watch_stream_send_control(stream, &control);
}

/* With the text of a status as Go prints it. */
static void refuse_create_for(struct vdi_watch_stream *stream, enum vd_etcd_code code)
{
	const char *name = code == VD_ETCD_PERMISSION_DENIED  ? "PermissionDenied" :
			   code == VD_ETCD_INVALID_AUTH_TOKEN ? "Unauthenticated" :
								"InvalidArgument";
	char	    text[192];

	(void) snprintf(text, sizeof text, "rpc error: code = %s desc = %s", name,
			vdi_serve_code_message(code));
	refuse_create(stream, text);
}

/* Checks the token for each watcher. */
static enum vd_etcd_code check_permission(struct vdi_watch_stream     *stream,
					  const struct create_request *request, struct vd_bytes key)
{
	struct vdi_auth_user user;
	enum vd_etcd_code    code;

	if (!vdi_auth_is_enabled(stream->server->auth))
		return VD_ETCD_OTHER;
	code = vdi_auth_find_user(stream->call, &user);
	/* Before the check, so that a deletion of the user after the check is noticed here. */
	vdi_lock_acquire(&stream->lock);
	if (user.is_given)
		stream->user = user;
	vdi_lock_release(&stream->lock);
	/* Check the range as sent, before it is normalized. */
	return code == VD_ETCD_OTHER ?
		       vdi_auth_check_range(stream->server->auth, &user, key, request->range_end) :
		       code;
}

static int64_t choose_id(struct vdi_watch_stream *stream)
{
	while (vdi_watch_stream_find(stream, stream->next_id))
		stream->next_id++;
	return stream->next_id++;
}

static vd_status new_watcher(struct vdi_watch_stream *stream, const struct create_request *request,
			     struct vd_bytes key, int64_t id, struct vdi_serve_watcher **ret_watcher)
{
	struct vdi_serve_watcher *watcher =
		vdi_calloc(1, sizeof *watcher + key.size + request->range_end.size);
	vd_status status;

	if (watcher == NULL)
		return VD_NOMEM;
	watcher->stream = stream;
	watcher->id = id;
	watcher->previous = request->previous;
	watcher->progress_notify = request->progress_notify;
	watcher->fragment = request->fragment;
	watcher->no_put = request->no_put;
	watcher->no_delete = request->no_delete;
	watcher->start_revision = request->start_revision;
	watcher->progress_due = true;
	watcher->is_live = true;
	watcher->key_size = key.size;
	watcher->range_end_size = request->range_end.size;
	memcpy(watcher->text, key.data, key.size);
	memcpy(watcher->text + key.size, request->range_end.data, request->range_end.size);
	status = vdi_hash_put(&stream->watchers, vdi_serve_watcher_hash(stream, id), &id, watcher, NULL);
	if (status == VD_OK) {
		status = vdi_serve_watcher_open(watcher, request->start_revision);
		if (status != VD_OK)
			(void) vdi_hash_remove(&stream->watchers, vdi_serve_watcher_hash(stream, id), &id);
	}
	if (status != VD_OK) {
		vdi_free(watcher);
		return status;
	}
	vdi_serve_watches_count(stream->server->watches, 1, 0, 0);
	*ret_watcher = watcher;
	return VD_OK;
}

static void start_watcher(struct vdi_watch_stream *stream, struct vdi_serve_watcher *watcher)
{
	struct vdi_watch_control control = { .revision = watcher->watch->opened,
					     .watch_id = watcher->id,
					     .created = true };
	vd_rev			 current = vdi_serve_revision(stream->server);

	if (control.revision == 0)
		control.revision = current;
	vdi_watch_stream_send_control(stream, &control);
	/* It counts as behind unless it starts in the future. */
	vdi_serve_watcher_set_live(watcher, watcher->start_revision == 0 ||
						    watcher->start_revision > control.revision);
	if (watcher->progress_notify && stream->notify_count++ == 0 && stream->tick_due.ns == VD_NEVER.ns)
		stream->tick_due = vd_mono_add(vd_env_now(stream->server->env), stream->tick_interval);
	vdi_serve_watcher_activate(watcher);
	if (stream->all_wanted)
		ask_all_progress(stream, watcher);
}

static void create(struct vdi_watch_stream *stream, struct vd_bytes message)
{
	static const char	  zero[1];
	struct create_request	  request;
	struct vd_bytes		  key;
	struct vdi_serve_watcher *watcher;
	enum vd_etcd_code	  code;
	bool			  to_infinity;
	vd_status		  status;

	if (!decode_create(message, &request)) {
		stream->is_finished = true;
		vdi_serve_fail_malformed(stream->call);
		return;
	}
	key = request.key.size ? request.key : (struct vd_bytes) { zero, 1 };
	if (request.start_revision < 0) {
		refuse_create(stream, vdi_serve_code_message(VD_ETCD_COMPACTED));
		return;
	}
	code = check_permission(stream, &request, key);
	if (code != VD_ETCD_OTHER) {
		refuse_create_for(stream, code);
		return;
	}
	to_infinity = vd_bytes_equal(request.range_end, (struct vd_bytes) { zero, 1 });
	if (request.range_end.size && !to_infinity && vd_bytes_compare(key, request.range_end) >= 0) {
		refuse_create(stream, "mvcc: watcher range is empty");
		return;
	}
	if (request.watch_id == -1 || (request.watch_id && vdi_watch_stream_find(stream, request.watch_id))) {
		refuse_create(stream, "mvcc: duplicate watch ID provided on the WatchStream");
		return;
	}
	if (stream->watchers.count >= stream->server->options.watchers_max) {
		refuse_create(stream, vdi_serve_code_message(VD_ETCD_TOO_MANY_REQUESTS));
		return;
	}
	status = new_watcher(stream, &request, key, request.watch_id ? request.watch_id : choose_id(stream),
			     &watcher);
	if (status == VD_OK)
		start_watcher(stream, watcher);
	else if (status == VD_CLOSED)
		vdi_watch_stream_fail(stream, VD_ETCD_STOPPED);
	else
		refuse_create(stream, status == VD_TOO_BIG ?
					      vdi_serve_code_message(VD_ETCD_REQUEST_TOO_LARGE) :
					      vd_status_sentence(status));
}

/* ---- Requests: cancel and progress ---- */

static void cancel(struct vdi_watch_stream *stream, struct vd_bytes message)
{
	struct vdi_watch_control  control = { .canceled = true };
	struct vdi_serve_watcher *watcher;

	(void) vdi_wire_read_number(message, &control.watch_id,
				    NULL); /* 0, or the part before invalid bytes */
	watcher = vdi_watch_stream_find(stream, control.watch_id);
	if (watcher == NULL)
		return;
	control.revision = vdi_serve_revision(stream->server);
	vdi_serve_watcher_free(watcher);
	vdi_watch_stream_send_control(stream, &control);
}

static void progress(struct vdi_watch_stream *stream)
{
	vd_rev			  current = vdi_serve_revision(stream->server);
	struct vdi_serve_watcher *watcher;
	size_t			  position = 0;
	size_t			  alive = 0;

	if (stream->all_wanted)
		return; /* one response answers both */
	while ((watcher = vdi_hash_next(&stream->watchers, &position)) != NULL) {
		if (watcher->is_dead)
			continue;
		if (vdi_serve_watcher_is_future(watcher, current))
			return;
		alive++;
	}
	if (alive == 0)
		return;
	stream->all_wanted = true;
	stream->all_revision = INT64_MAX;
	position = 0;
	while (stream->all_wanted && (watcher = vdi_hash_next(&stream->watchers, &position)) != NULL)
		ask_all_progress(stream, watcher);
}

void vdi_watch_stream_send_progress(struct vdi_watch_stream *stream)
{
	struct vdi_watch_control control = { .revision = stream->all_revision, .watch_id = -1 };

	if (!stream->all_wanted || stream->all_missing)
		return;
	stream->all_wanted = false;
	if (stream->all_revision != INT64_MAX)
		vdi_watch_stream_send_control(stream, &control);
}

void vdi_watch_stream_handle(struct vdi_watch_stream *stream, struct vd_bytes message)
{
	struct vdi_wire_reader reader;
	uint32_t	       kind = 0;
	struct vd_bytes	       body = VD_BYTES_NONE;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader))
		if (reader.tag == VDI_WIRE_BYTES(1) || reader.tag == VDI_WIRE_BYTES(2) ||
		    reader.tag == VDI_WIRE_BYTES(3)) {
			kind = reader.tag;
			body = reader.bytes;
		}
	if (reader.is_bad) {
		stream->is_finished = true;
		vdi_serve_fail_malformed(stream->call);
		return;
	}
	if (kind == VDI_WIRE_BYTES(1))
		create(stream, body);
	else if (kind == VDI_WIRE_BYTES(2))
		cancel(stream, body);
	else if (kind == VDI_WIRE_BYTES(3))
		progress(stream);
	/* As etcd, ignores other requests. */
}
