/* One HTTP/2 connection on one loop: socket, TLS, nghttp2's state, keepalive, deadlines, and its end. What
 * its streams mean is its side's business: the client's (h2_channel.c) or the server's.
 *
 * Reading: one recv for each time that the socket becomes readable, as long as it brings less than the
 * scratch buffer; nghttp2 calls the side out of that. Writing: at the end of the hub's turn, at most once for
 * each connection and turn, up to the scratch buffer's size; what the socket does not take is kept (at most
 * that much) and goes first when it can be written. While something is kept nothing more is taken from
 * nghttp2, so its queues and the side's outboxes are where back-pressure shows.
 *
 * Windows: the connection's is given back at once for whatever comes; a stream's by its side
 * (nghttp2_session_consume_stream with vdi_h2_inbox_settle). So a stream that nobody reads from holds up
 * nothing but itself.
 *
 * Everything on the loop's thread. Inside the side's callbacks: nghttp2_submit_*,
 * nghttp2_session_consume_stream, nghttp2_session_resume_data, vdi_h2_connection_touch, _close and _abort are
 * allowed; vdi_h2_connection_free only in `ended` and outside of all of them.
 *
 * Bounds that no peer moves: 64 KiB of headers of one message (VDI_H2_HEADERS_SIZE_MAX), 1,000 unsent
 * acknowledgements, 32 settings in a frame, 8 CONTINUATIONs (nghttp2's), the handshake's and the first
 * SETTINGS' deadline.
 */
#ifndef VDI_H2_CONNECTION_H
#define VDI_H2_CONNECTION_H

#include <nghttp2/nghttp2.h>

#include "h2_hub.h"
#include "h2_tls.h"

struct vdi_h2_connection;

#define VDI_H2_HEADERS_SIZE_MAX 65536

/* nghttp2's own callbacks have the connection as user_data (vdi_h2_connection_arg). They answer 0,
 * NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE (the stream is reset; where nghttp2 allows it) or
 * NGHTTP2_ERR_CALLBACK_FAILURE (the connection is broken: no memory). Each may be NULL. */
struct vdi_h2_side {
	/* The peer's first SETTINGS came (and the handshake is done): streams may be opened. Not on a
	 * connection that ends before. */
	void (*ready)(void *arg);
	/* A whole frame, PING and SETTINGS too (answered already). */
	nghttp2_on_frame_recv_callback	    frame;
	nghttp2_on_begin_frame_callback	    frame_begin; /* its head came, before nghttp2 judges it */
	nghttp2_on_begin_headers_callback   headers_begin;
	nghttp2_on_header_callback	    header;
	nghttp2_on_data_chunk_recv_callback data;
	nghttp2_on_stream_close_callback    stream_closed;
	nghttp2_on_frame_send_callback	    frame_sent;
	nghttp2_on_frame_not_send_callback  frame_not_sent;
	/* Exactly once; the last. The side ends the streams that are still open, from its own list:
	 * stream_closed is not called for them, and nghttp2 has no list of them (its tree of priorities is
	 * empty since 1.65). why: in few words, NUL-terminated, lent; "" after vdi_h2_connection_close. Not
	 * inside another callback. */
	void (*ended)(void *arg, const char *why);
};

struct vdi_h2_connection_options {
	const struct vdi_h2_side *side; /* lent for ever */
	void			 *arg;
	bool			  is_server;
	struct vdi_h2_tls	 *tls;	/* NULL: plain text; borrowed for the call */
	const char		 *name; /* client with TLS: vdi_h2_link_new */
	struct vdi_h2_link
		*link; /* server, instead of tls: the handshake is done; the connection's from VD_OK on */
	bool	 has_preface;	    /* server: it was read already */
	uint32_t stream_window;	    /* that we offer; 0: 64 KiB - 1 */
	uint32_t connection_window; /* likewise */
	uint32_t streams_max;	    /* server: that the peer may have open; 0: no bound */
	vd_dur	 settle_timeout;    /* until ready; 0: none */
	vd_dur	 keepalive_time;    /* a ping after so long without anything from the peer; 0: off */
	vd_dur	 keepalive_timeout; /* for the answer; 0: 20 s */
	bool	 keepalive_without_streams;
	/* server: a peer that pings more often (twice forgiven, and each time that something was sent to it)
	 * gets GOAWAY; 0: whatever */
	vd_dur ping_interval_min;
};

/* fd is connected, or (client) a non-blocking connect is under way; non-blocking, and the connection's from
 * VD_OK on. Nothing is called before the loop runs on. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_connection_new(struct vdi_h2_hub *hub, int fd,
					     const struct vdi_h2_connection_options *options,
					     struct vdi_h2_connection		   **ret_connection);
/* After `ended` (or in it), or at once if nothing was done with it. NULL is fine; returns NULL. */
struct vdi_h2_connection *vdi_h2_connection_free(struct vdi_h2_connection *connection);

/* Something was submitted or consumed outside of the side's callbacks: the connection writes at the end of
 * the turn. Inside callbacks that happens by itself. */
void vdi_h2_connection_touch(struct vdi_h2_connection *connection);
/* Sends GOAWAY, then what was submitted so far, and ends; at the end of the turn if the socket takes it all,
 * else as soon as it does or timeout has passed. `ended` follows. Idempotent. */
void vdi_h2_connection_close(struct vdi_h2_connection *connection, vd_dur timeout);
/* Sends nothing any more. `ended` follows at the end of the turn. why is copied; the first one counts. */
void vdi_h2_connection_abort(struct vdi_h2_connection *connection, const char *why);

/* It ends: `ended` is due, or is being called. */
bool vdi_h2_connection_is_over(const struct vdi_h2_connection *connection);
/* The first SETTINGS came, neither side sent GOAWAY, and it is not closing. */
bool vdi_h2_connection_is_ready(const struct vdi_h2_connection *connection);

nghttp2_session	   *vdi_h2_connection_session(const struct vdi_h2_connection *connection);
void		   *vdi_h2_connection_arg(const struct vdi_h2_connection *connection);
static inline void *vdi_h2_connection_arg_of(void *user_data)
{
	return vdi_h2_connection_arg(user_data);
}
int vdi_h2_connection_fd(const struct vdi_h2_connection *connection);
/* As vdi_h2_link_common_name; "" without TLS. */
void vdi_h2_connection_common_name(const struct vdi_h2_connection *connection, char *text, size_t size);
/* All bytes that nghttp2 and the peer's windows have not let go yet are the outboxes' business; this is what
 * lies between nghttp2 and the socket. */
size_t vdi_h2_connection_kept(const struct vdi_h2_connection *connection);

#endif
