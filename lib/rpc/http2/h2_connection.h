/* One HTTP/2 connection on one loop: socket, TLS, nghttp2's state, keepalive, deadlines, and its end. Its
 * side, the client (h2_channel.c) or the server, handles the streams.
 *
 * Reading: one recv each time the socket is readable, while it returns less than the scratch buffer;
 * nghttp2 makes the side's callbacks from there. Writing: at the end of the h2_loop's iteration, at most
 * once per connection and iteration, up to the scratch buffer's size. Bytes that the socket does not take
 * are kept (at most that size) and sent first when it is writable. Meanwhile nothing more is taken from
 * nghttp2, so back-pressure appears in its queues and in the side's outboxes.
 *
 * Windows: the connection's window is returned at once for all received bytes, a stream's by its side
 * (nghttp2_session_consume_stream with vdi_h2_inbox_settle). So a stream that is not read blocks only
 * itself.
 *
 * All functions and callbacks run on the loop's thread. Inside the side's callbacks nghttp2_submit_*,
 * nghttp2_session_consume_stream, nghttp2_session_resume_data, vdi_h2_connection_touch, _close and _abort
 * are allowed; vdi_h2_connection_free only in `ended` and outside of all callbacks.
 *
 * Limits that no peer can change: 64 KiB of headers of one message (VDI_H2_HEADERS_SIZE_MAX), 1,000 unsent
 * acknowledgements, 32 settings in a frame, 8 CONTINUATIONs (nghttp2's), and deadlines for the handshake
 * and the first SETTINGS.
 */
#ifndef VDI_H2_CONNECTION_H
#define VDI_H2_CONNECTION_H

#include <nghttp2/nghttp2.h>

#include "h2_loop.h"
#include "h2_tls.h"

struct vdi_h2_connection;

#define VDI_H2_HEADERS_SIZE_MAX 65536

/* nghttp2's own callbacks get the connection as user_data (vdi_h2_connection_arg). They return 0,
 * NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE (the stream is reset; where nghttp2 allows it) or
 * NGHTTP2_ERR_CALLBACK_FAILURE (the connection ends: out of memory). Each may be NULL. */
struct vdi_h2_side {
	/* The handshake is done and the peer's first SETTINGS have arrived: streams may be opened. Not called
	 * if the connection ends before. */
	void (*ready)(void *arg);
	/* A complete frame, including PING and SETTINGS (already answered). */
	nghttp2_on_frame_recv_callback frame;
	/* its header has arrived, before nghttp2 checks it */
	nghttp2_on_begin_frame_callback	    frame_begin;
	nghttp2_on_begin_headers_callback   headers_begin;
	nghttp2_on_header_callback	    header;
	nghttp2_on_data_chunk_recv_callback data;
	nghttp2_on_stream_close_callback    stream_closed;
	nghttp2_on_frame_send_callback	    frame_sent;
	nghttp2_on_frame_not_send_callback  frame_not_sent;
	/* Exactly once; the last callback, never inside another one. The side ends the streams that are still
	 * open, from its own list: stream_closed is not called for them, and nghttp2 has no list of them (its
	 * priority tree is empty since 1.65). why: a short reason, NUL-terminated, borrowed; "" after
	 * vdi_h2_connection_close. */
	void (*ended)(void *arg, const char *why);
};

struct vdi_h2_connection_options {
	const struct vdi_h2_side *side; /* static */
	void			 *arg;
	bool			  is_server;
	struct vdi_h2_tls	 *tls;	/* client; NULL: plain text; borrowed for the call */
	const char		 *name; /* with tls: vdi_h2_link_new */
	struct vdi_h2_link *link; /* server; NULL: plain text. The handshake is done; taken over with VD_OK */
	bool		    has_preface;       /* server: it was already read */
	uint32_t	    stream_window;     /* that we offer; 0: 64 KiB - 1 */
	uint32_t	    connection_window; /* likewise */
	uint32_t	    streams_max;       /* server: streams that the peer may have open; 0: unlimited */
	vd_dur		    settle_timeout;    /* time until ready; 0: unlimited */
	vd_dur		    keepalive_time; /* time without bytes from the peer before a ping; 0: disabled */
	vd_dur		    keepalive_timeout; /* for the ping's acknowledgement; 0: 20 s */
	bool		    keepalive_without_streams;
	/* server: a peer that pings more often gets GOAWAY; two violations are allowed, and again two after
	 * each frame sent to it. 0: no limit */
	vd_dur ping_interval_min;
};

/* Creates a connection on fd, which is non-blocking and connected, or (client) connecting; taken over with
 * VD_OK. No callback before the loop continues. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_connection_new(struct vdi_h2_loop *h2_loop, int fd,
					     const struct vdi_h2_connection_options *options,
					     struct vdi_h2_connection		   **ret_connection);
/* After `ended` or inside it, or at once if the connection was not used. NULL is allowed; returns NULL. */
struct vdi_h2_connection *vdi_h2_connection_free(struct vdi_h2_connection *connection);

/* Requests a write at the end of the iteration, after a frame was submitted or consumed outside of the
 * side's callbacks. Inside callbacks it is automatic. */
void vdi_h2_connection_touch(struct vdi_h2_connection *connection);
/* Sends GOAWAY, then the frames submitted so far, and ends: at the end of the iteration if the socket takes
 * all, else when it has taken all or timeout has passed. `ended` follows. Idempotent. */
void vdi_h2_connection_close(struct vdi_h2_connection *connection, vd_dur timeout);
/* Ends without sending more. `ended` follows at the end of the iteration. why is copied; the first one
 * counts. */
void vdi_h2_connection_abort(struct vdi_h2_connection *connection, const char *why);

/* Returns true if the connection has ended: `ended` is pending, or is being called. */
bool vdi_h2_connection_is_over(const struct vdi_h2_connection *connection);
/* Returns true if the first SETTINGS have arrived, neither side has sent GOAWAY, and the connection is not
 * closing. */
bool vdi_h2_connection_is_ready(const struct vdi_h2_connection *connection);

nghttp2_session	   *vdi_h2_connection_session(const struct vdi_h2_connection *connection);
void		   *vdi_h2_connection_arg(const struct vdi_h2_connection *connection);
static inline void *vdi_h2_connection_arg_of(void *user_data)
{
	return vdi_h2_connection_arg(user_data);
}
int vdi_h2_connection_fd(const struct vdi_h2_connection *connection);
/* Like vdi_h2_link_common_name; "" without TLS. */
void vdi_h2_connection_common_name(const struct vdi_h2_connection *connection, char *text, size_t size);
/* Returns the bytes between nghttp2 and the socket. Bytes that nghttp2 and the peer's windows hold back are
 * counted by the outboxes. */
size_t vdi_h2_connection_kept(const struct vdi_h2_connection *connection);

#endif
