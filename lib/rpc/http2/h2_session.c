/* The nghttp2 session of a connection: its options, and the callbacks that nghttp2 makes. DATA frames are
 * written straight into the h2_loop's output buffer (send_data); other frames come from
 * nghttp2_session_mem_send. This file counts streams and header bytes; the side handles the rest. */
#include <stdio.h>

#include "env.h"
#include "h2_connection_state.h"
#include "h2_message.h"

#define PING_STRIKES_MAX 2
#define RESETS_BURST 20000 /* clients may end all their watches at once */
#define RESETS_PER_SECOND 5000

/* ---- Callbacks of nghttp2 ---- */

static void *allocate(size_t size, void *arg)
{
	(void) arg;
	return vdi_alloc(size);
}

static void release(void *memory, void *arg)
{
	(void) arg;
	vdi_free(memory);
}

static void *allocate_zeroed(size_t count, size_t size, void *arg)
{
	(void) arg;
	return vdi_calloc(count, size);
}

static void *reallocate(void *memory, size_t size, void *arg)
{
	(void) arg;
	return vdi_realloc(memory, size);
}

static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t size,
		     nghttp2_data_source *source, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;
	char			 *output = vdi_h2_loop_output(connection->h2_loop) + connection->output_size;

	(void) session;
	VDI_CHECK(frame->data.padlen == 0); /* no padding was requested */
	VDI_CHECK(size <= VDI_H2_DATA_SIZE_MAX && connection->output_size + 9 + size <= VDI_H2_SCRATCH_SIZE);
	memcpy(output, head, 9);
	if (size)
		vdi_h2_outbox_write(source->ptr, output + 9, size);
	connection->output_size += 9 + size;
	if (vdi_h2_session_has_room(connection))
		return 0;
	/* The frame is written, and nghttp2 must stop. If this callback failed instead, nghttp2 would keep
	 * the announced frame until there is room, when its stream and data source may be freed. */
	connection->is_full = true;
	return NGHTTP2_ERR_PAUSE;
}

static void note_goaway(struct vdi_h2_connection *connection, const nghttp2_goaway *goaway)
{
	connection->has_goaway = true;
	if (goaway->error_code != NGHTTP2_NO_ERROR && connection->hint[0] == 0)
		(void) snprintf(
			connection->hint, sizeof connection->hint, "the peer ended the connection: %s%s%.*s",
			nghttp2_http2_strerror(goaway->error_code), goaway->opaque_data_len ? ", " : "",
			(int) VDI_MIN(goaway->opaque_data_len, 100), (const char *) goaway->opaque_data);
}

/* Like grpc-go's enforcement policy: each frame sent to the peer resets the count. */
static void check_ping(struct vdi_h2_connection *connection)
{
	static const char words[] = "too_many_pings";
	vd_mono		  now = connection->received_at;

	if (connection->ping_interval_min.ns == 0)
		return;
	if (connection->pinged_at.ns &&
	    vd_mono_since(now, connection->pinged_at).ns < connection->ping_interval_min.ns &&
	    ++connection->strikes > PING_STRIKES_MAX) {
		(void) nghttp2_submit_goaway(connection->session, NGHTTP2_FLAG_NONE,
					     nghttp2_session_get_last_proc_stream_id(connection->session),
					     NGHTTP2_ENHANCE_YOUR_CALM, (const uint8_t *) words,
					     sizeof words - 1);
		(void) snprintf(connection->hint, sizeof connection->hint, "%s", words);
		vdi_h2_connection_close(connection, VD_SECONDS(1));
	}
	connection->pinged_at = now;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0 &&
	    !connection->is_ready) {
		connection->is_ready = true;
		if (!connection->is_closing)
			vdi_h2_connection_arm_keepalive(connection);
		if (connection->side->ready && !connection->is_closing)
			connection->side->ready(connection->arg);
	} else if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0)
		check_ping(connection);
	else if (frame->hd.type == NGHTTP2_GOAWAY)
		note_goaway(connection, &frame->goaway);
	return connection->side->frame ? connection->side->frame(session, frame, user_data) : 0;
}

static int on_frame_begin(nghttp2_session *session, const nghttp2_frame_hd *head, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	return connection->side->frame_begin ? connection->side->frame_begin(session, head, user_data) : 0;
}

static int on_headers_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	connection->headers_size = 0;
	if (connection->is_server && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		connection->streams++;
	return connection->side->headers_begin ? connection->side->headers_begin(session, frame, user_data) :
						 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
		     void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	connection->headers_size += name_size + value_size + 32;
	if (connection->headers_size > VDI_H2_HEADERS_SIZE_MAX)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return connection->side->header ? connection->side->header(session, frame, name, name_size, value,
								   value_size, flags, user_data) :
					  0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
		   size_t size, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	if (nghttp2_session_consume_connection(session, size) != 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	return connection->side->data ?
		       connection->side->data(session, flags, stream_id, data, size, user_data) :
		       0;
}

static int on_stream_closed(nghttp2_session *session, int32_t stream_id, uint32_t error_code, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	if (stream_id == connection->not_sent_id)
		connection->not_sent_id = 0;
	else if (connection->streams)
		connection->streams--;
	return connection->side->stream_closed ?
		       connection->side->stream_closed(session, stream_id, error_code, user_data) :
		       0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) {
		connection->strikes = 0;
		connection->pinged_at.ns = 0;
		if (!connection->is_server && frame->hd.type == NGHTTP2_HEADERS &&
		    frame->headers.cat == NGHTTP2_HCAT_REQUEST)
			connection->streams++;
	} else if (frame->hd.type == NGHTTP2_GOAWAY)
		connection->has_goaway = true;
	return connection->side->frame_sent ? connection->side->frame_sent(session, frame, user_data) : 0;
}

static int on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	if (!connection->is_server && frame->hd.type == NGHTTP2_HEADERS &&
	    frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		connection->not_sent_id = frame->hd.stream_id;
	return connection->side->frame_not_sent ?
		       connection->side->frame_not_sent(session, frame, error, user_data) :
		       0;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	(void) session;
	(void) frame;
	(void) snprintf(connection->hint, sizeof connection->hint, "%s", nghttp2_strerror(error));
	return 0;
}

/* ---- Creating a session ---- */

static vd_status new_callbacks(nghttp2_session_callbacks **ret_callbacks)
{
	nghttp2_session_callbacks *callbacks;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		return VD_NOMEM;
	nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
	nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_frame_begin);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_headers_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
	*ret_callbacks = callbacks;
	return VD_OK;
}

static vd_status new_options(nghttp2_option **ret_option)
{
	nghttp2_option *option;

	if (nghttp2_option_new(&option) != 0)
		return VD_NOMEM;
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_no_closed_streams(option, 1);
	nghttp2_option_set_max_reserved_remote_streams(option, 0);
	nghttp2_option_set_max_send_header_block_length(option, VDI_H2_HEADERS_SIZE_MAX);
	nghttp2_option_set_stream_reset_rate_limit(option, RESETS_BURST, RESETS_PER_SECOND);
#ifdef VDI_H2_HAS_GLITCH_LIMIT
	/* DATA in flight when its stream was reset counts too: up to a connection's window and more. */
	nghttp2_option_set_glitch_rate_limit(option, RESETS_BURST, RESETS_PER_SECOND);
#endif
	*ret_option = option;
	return VD_OK;
}

vd_status vdi_h2_session_new(struct vdi_h2_connection *connection)
{
	nghttp2_mem		   memory = { NULL, allocate, release, allocate_zeroed, reallocate };
	nghttp2_session_callbacks *callbacks;
	nghttp2_option		  *option;
	int			   error;

	VDI_TRY(new_callbacks(&callbacks));
	if (new_options(&option) != VD_OK) {
		nghttp2_session_callbacks_del(callbacks);
		return VD_NOMEM;
	}
	error = connection->is_server ? nghttp2_session_server_new3(&connection->session, callbacks,
								    connection, option, &memory) :
					nghttp2_session_client_new3(&connection->session, callbacks,
								    connection, option, &memory);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	if (error)
		connection->session = NULL;
	return error ? VD_NOMEM : VD_OK;
}

/* Submits our SETTINGS, as the first frame. */
vd_status vdi_h2_session_introduce(struct vdi_h2_connection		  *connection,
				   const struct vdi_h2_connection_options *options)
{
	nghttp2_settings_entry settings[4];
	size_t		       count = 0;

	settings[count++] =
		(nghttp2_settings_entry) { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, VDI_H2_HEADERS_SIZE_MAX };
	if (!options->is_server)
		settings[count++] = (nghttp2_settings_entry) { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 };
	if (options->stream_window)
		settings[count++] = (nghttp2_settings_entry) { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
							       options->stream_window };
	if (options->is_server && options->streams_max)
		settings[count++] = (nghttp2_settings_entry) { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
							       options->streams_max };
	if (nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings, count) != 0)
		return VD_NOMEM;
	if (options->connection_window &&
	    nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
						  (int32_t) options->connection_window) != 0)
		return VD_NOMEM;
	return VD_OK;
}
