/* Each run of a worker makes a chunk; the next run starts when it is sent. A client that does not read costs
 * the bytes in the transport and the position here. A stream sorted by anything but the key reads its whole
 * range in the first run, and then has a reference to each record. (Upstream sorts each chunk separately and
 * continues after the last key of the chunk, so records are lost or sent twice.) */
#include "serve_range_stream.h"

#include "auth.h"
#include "serve_txn.h"

#define FIRST_CHUNK_KEYS 10

struct range_stream {
	struct vdi_serve_range range;
	int64_t		       keys_left; /* of the limit */
	int64_t		       chunk_keys;
	int64_t		       sent_count;
	vd_rev		       header_revision; /* 0: nothing was sent yet */
	struct vdi_rpc_blob   *waiting;		/* encoded, but not accepted by the transport */
	size_t		       waiting_size;
	bool		       waiting_is_last;
	atomic_bool	       is_blocked; /* VD_FULL was returned: writable continues */
	char		       next_key[VD_KEY_SIZE_MAX + 1];

	/* Sorted stream: all records to send, with one reference each, and the number already sent. */
	struct vd_kv **sorted;
	size_t	       sorted_count;
	size_t	       sorted_next;
	bool	       sorted_more;
	int64_t	       sorted_total;
};

struct chunk {
	struct vdi_serve_call	   *call;
	struct range_stream	   *stream;
	struct vdi_serve_range_view view;
	vd_rev			    revision;
	bool			    is_last;
};

static void write_inner(struct vdi_wire_out *out, const void *arg)
{
	const struct chunk *chunk = arg;

	if (chunk->is_last)
		vdi_serve_write_header(out, chunk->call->server, chunk->stream->header_revision);
	vdi_serve_range_view_write(out, &chunk->view);
}

static void write_chunk(struct vdi_wire_out *out, const void *arg)
{
	vdi_wire_message(out, 1, write_inner, arg);
}

static void take_count(void *arg, vd_status status, const struct vd_range_result *result,
		       const struct vd_error *error)
{
	struct chunk *chunk = arg;

	(void) error;
	if (status == VD_OK)
		chunk->view.count += result->count;
}

static void set_next_key(struct range_stream *stream, const struct vd_kv *last)
{
	memcpy(stream->next_key, last->data, last->key_size);
	stream->next_key[last->key_size] = 0;
	stream->range.key = (struct vd_bytes) { stream->next_key, last->key_size + 1u };
}

/* As etcd, only the last chunk has a header, more and a count, which cover the sent records and those beyond
 * the limit. */
static vd_status finish_chunk(struct chunk *chunk)
{
	struct range_stream    *stream = chunk->stream;
	bool			more = chunk->view.more;
	struct vd_range_request rest;

	stream->sent_count += (int64_t) chunk->view.kv_count;
	stream->keys_left -= (int64_t) chunk->view.kv_count;
	chunk->is_last = !more || stream->keys_left == 0;
	if (more)
		set_next_key(stream, chunk->view.kvs[chunk->view.kv_count - 1]);
	chunk->view.more = chunk->is_last && more;
	if (stream->range.count_only)
		return VD_OK;
	chunk->view.count = chunk->is_last ? stream->sent_count : 0;
	if (!chunk->is_last || !more)
		return VD_OK;
	vdi_serve_range_ask(&stream->range, &rest);
	rest.count_only = true;
	return vd_store_range(chunk->call->server->store, &rest, take_count, chunk);
}

static bool is_sorted(const struct range_stream *stream)
{
	return stream->range.sort_target != VDI_SORT_KEY && !stream->range.count_only;
}

/* Encodes the chunk, to be sent later. */
static vd_status encode_chunk(struct chunk *chunk)
{
	struct range_stream *stream = chunk->stream;
	struct vdi_wire_out  size = { 0 };

	VDI_TRY(vdi_wire_encode(write_chunk, chunk, &stream->waiting));
	write_chunk(&size, chunk);
	stream->waiting_size = size.size;
	stream->waiting_is_last = chunk->is_last;
	return VD_OK;
}

static vd_status keep_sorted(struct range_stream *stream, const struct vd_range_result *result)
{
	struct vdi_serve_range_view view;

	VDI_TRY(vdi_serve_range_view_init(&stream->range, result, &view));
	stream->sorted = vdi_alloc((view.kv_count + 1) * sizeof view.kvs[0]);
	for (size_t i = 0; stream->sorted && i < view.kv_count; i++)
		stream->sorted[stream->sorted_count++] = vd_kv_ref(view.kvs[i]);
	stream->header_revision = result->store_revision;
	stream->sorted_more = view.more;
	stream->sorted_total = view.count;
	vdi_serve_range_view_fini(&view);
	return stream->sorted ? VD_OK : VD_NOMEM;
}

static void sorted_done(void *arg, vd_status status, const struct vd_range_result *result,
			const struct vd_error *error)
{
	struct vdi_serve_call *call = arg;

	(void) error;
	if (status == VD_OK)
		status = keep_sorted(call->state, result);
	if (status != VD_OK)
		vdi_serve_fail_status(call, status);
}

static void make_sorted_chunk(struct vdi_serve_call *call, struct range_stream *stream)
{
	size_t	     left = stream->sorted_count - stream->sorted_next;
	size_t	     count = VDI_MIN(left, (size_t) stream->chunk_keys);
	bool	     is_last = count == left;
	struct chunk chunk = { .call = call,
			       .stream = stream,
			       .is_last = is_last,
			       .view = { .kvs = stream->sorted + stream->sorted_next,
					 .kv_count = count,
					 .more = is_last && stream->sorted_more,
					 .count = is_last ? stream->sorted_total : 0,
					 .keys_only = stream->range.keys_only,
					 .with_lease = stream->range.sort_target == VDI_SORT_VALUE } };
	vd_status    status = encode_chunk(&chunk);

	stream->sorted_next += count;
	if (status != VD_OK)
		vdi_serve_fail_status(call, status);
}

static void chunk_done(void *arg, vd_status status, const struct vd_range_result *result,
		       const struct vd_error *error)
{
	struct vdi_serve_call *call = arg;
	struct range_stream   *stream = call->state;
	struct chunk	       chunk = { .call = call, .stream = stream };

	(void) error;
	if (status == VD_OK)
		status = vdi_serve_range_view_init(&stream->range, result, &chunk.view);
	if (status == VD_OK) {
		if (stream->header_revision == 0) {
			stream->header_revision = result->store_revision;
			if (stream->range.revision <= 0)
				stream->range.revision = result->store_revision;
		}
		status = finish_chunk(&chunk);
		if (status == VD_OK)
			status = encode_chunk(&chunk);
		vdi_serve_range_view_fini(&chunk.view);
	}
	if (status != VD_OK)
		vdi_serve_fail_status(call, status);
}

static void adjust_chunk(struct range_stream *stream, size_t target)
{
	if (stream->waiting_size < target / 2)
		stream->chunk_keys *= 2;
	else if (stream->waiting_size > target * 2)
		stream->chunk_keys /= 2;
	stream->chunk_keys = VDI_MAX(stream->chunk_keys, 1);
}

/* False: the stream has ended, or waits for the transport. */
static bool send_waiting(struct vdi_serve_call *call, struct range_stream *stream)
{
	vd_status status;

	atomic_store(&stream->is_blocked, true);
	status = vdi_serve_send(call, VD_BYTES_NONE, stream->waiting);
	if (status == VD_FULL)
		return false; /* from here on writable may run concurrently */
	atomic_store(&stream->is_blocked, false);
	stream->waiting = vdi_rpc_blob_unref(stream->waiting);
	if (status != VD_OK)
		return false;
	if (stream->waiting_is_last) {
		vdi_serve_finish(call, VDI_RPC_OK, "");
		return false;
	}
	adjust_chunk(stream, call->server->options.request_bytes_max);
	return true;
}

/* Makes the next chunk, or ends the call with an error. */
static void make_chunk(struct vdi_serve_call *call, struct range_stream *stream)
{
	struct vd_range_request request;
	vd_status		status = VD_OK;

	if (!is_sorted(stream)) {
		stream->range.limit = VDI_MIN(stream->chunk_keys, stream->keys_left);
		vdi_serve_range_ask(&stream->range, &request);
		status = vd_store_range(call->server->store, &request, chunk_done, call);
	} else if (stream->sorted == NULL) {
		vdi_serve_range_ask(&stream->range, &request);
		status = vd_store_range(call->server->store, &request, sorted_done, call);
	}
	if (status != VD_OK)
		vdi_serve_fail_status(call, status);
	else if (stream->sorted)
		make_sorted_chunk(call, stream);
}

static void turn(struct vdi_serve_call *call)
{
	struct range_stream *stream = call->state;

	if (atomic_load_explicit(&call->is_ended, memory_order_acquire))
		return;
	if (stream->waiting == NULL)
		make_chunk(call, stream);
	if (stream->waiting == NULL)
		return;
	if (send_waiting(call, stream))
		vdi_serve_defer(call, vdi_serve_any_range_worker(call->server), turn);
}

static void range_stream_writable(struct vdi_serve_call *call)
{
	struct range_stream *stream = call->state;

	if (atomic_exchange(&stream->is_blocked, false))
		vdi_serve_defer(call, vdi_serve_any_range_worker(call->server), turn);
}

static void range_stream_free(struct vdi_serve_call *call)
{
	struct range_stream *stream = call->state;

	vdi_rpc_blob_unref(stream->waiting);
	for (size_t i = 0; i < stream->sorted_count; i++)
		vd_kv_unref(stream->sorted[i]);
	vdi_free(stream->sorted);
	vdi_free(stream);
}

static void start(struct vdi_serve_call *call, const struct vdi_serve_range *range)
{
	struct range_stream *stream = VDI_NEW(struct range_stream);

	if (stream == NULL) {
		vdi_serve_fail_status(call, VD_NOMEM);
		return;
	}
	stream->range = *range;
	stream->keys_left = range->limit > 0 ? range->limit : INT64_MAX;
	stream->chunk_keys = FIRST_CHUNK_KEYS;
	call->state = stream;
	call->on_free = range_stream_free;
	call->on_writable = range_stream_writable;
	vdi_serve_defer(call, vdi_serve_any_range_worker(call->server), turn);
}

void vdi_serve_range_stream_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct vdi_serve_range range;
	struct vdi_auth_user   user;
	enum vd_etcd_code      code;

	if (!vdi_serve_range_decode(message, &range)) {
		vdi_serve_fail_malformed(call);
		return;
	}
	code = vdi_serve_range_check(&range);
	if (code == VD_ETCD_OTHER && range.sort_order != VDI_SORT_NONE &&
	    !(range.sort_order == VDI_SORT_ASCEND && range.sort_target == VDI_SORT_KEY)) {
		vdi_serve_finish(call, VDI_RPC_UNIMPLEMENTED,
				 "RangeStream does not support custom sort orders");
		return;
	}
	if (code == VD_ETCD_OTHER && vdi_serve_range_has_filters(&range)) {
		vdi_serve_finish(call, VDI_RPC_UNIMPLEMENTED,
				 "RangeStream does not support revision filters");
		return;
	}
	if (code == VD_ETCD_OTHER) {
		if (!vdi_auth_identify(call, &user))
			return;
		code = vdi_auth_check_range(call->server->auth, &user, range.key, range.range_end);
	}
	if (code == VD_ETCD_OTHER)
		start(call, &range);
	else
		vdi_serve_fail(call, code);
}
