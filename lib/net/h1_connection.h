/* One HTTP/1.0 or 1.1 connection of a server: sequential requests without their bodies, which are skipped,
 * and responses of known size.
 *
 *   HEAD --request--> ANSWER --response--> WRITING --> HEAD ...
 *                                             \--> LINGERING (our side is shut down; waits for the
 *                                                  peer's end, up to a time limit) --> ended
 *
 * Requests are parsed strictly (http_parser.h); a malformed one is answered and ends the connection. If the
 * first bytes of a new connection without TLS cannot be a request, it is closed without a response: the first
 * line must have HTTP/1.x, as cmux requires it from etcd's clients. A client that begins a TLS handshake gets
 * a plain-text message that the port is without TLS.
 *
 * Limits: VDI_H1_HEAD_MAX bytes of a head; VDI_H1_BODY_MAX of a skipped body (beyond it the connection ends
 * with the response). A request must be complete within head_timeout after its first byte, and a response
 * read within write_timeout. Nothing is read while a response is pending, so pipelined requests wait in the
 * socket.
 *
 * Loop's thread only.
 */
#ifndef VDI_H1_CONNECTION_H
#define VDI_H1_CONNECTION_H

#include <stdatomic.h>

#include "h2_loop.h"
#include "h2_tls.h"
#include "http_parser.h"

struct vdi_h1_connection;

#define VDI_H1_HEAD_MAX ((size_t) 16 << 10)
#define VDI_H1_BODY_MAX ((size_t) 256 << 10)

struct vdi_h1_side {
	/* The side responds later with vdi_h1_connection_answer. head is borrowed for the call. */
	void (*request)(void *arg, const struct vdi_http_head *head);
	/* Exactly once, the last callback; at the end of an iteration. The side then frees the connection.
	 * A request may be unanswered. */
	void (*ended)(void *arg);
};

struct vdi_h1_options {
	const struct vdi_h1_side *side; /* static */
	void			 *arg;
	int			  fd;	 /* connected, non-blocking; fd and link are taken over with VD_OK */
	struct vdi_h2_link	 *link;	 /* NULL: plain text */
	struct vd_bytes		  first; /* bytes already read */
	vd_dur			  head_timeout;
	vd_dur			  idle_timeout; /* between requests */
	vd_dur			  write_timeout;
	_Atomic size_t		 *memory_used; /* counter for the memory of its buffers */
	size_t			  memory_max;  /* limit of the counter: the connection ends beyond it */
};

/* No callback before the end of the iteration. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h1_connection_new(struct vdi_h2_loop		 *h2_loop,
					     const struct vdi_h1_options *options,
					     struct vdi_h1_connection	**ret_connection);
/* Inside or after ended. NULL is allowed; returns NULL. */
struct vdi_h1_connection *vdi_h1_connection_free(struct vdi_h1_connection *connection);

/* Sends the response. headers: lines with CR LF, in addition to Date, Content-Length and Connection. closes:
 * the connection ends with it. Both buffers are borrowed. Not inside request. */
void vdi_h1_connection_answer(struct vdi_h1_connection *connection, int code, struct vd_bytes headers,
			      struct vd_bytes body, bool closes);
/* Ends the connection with the pending response, or at once if there is none. */
void vdi_h1_connection_drain(struct vdi_h1_connection *connection);
/* ended follows at the end of the iteration. */
void vdi_h1_connection_abort(struct vdi_h1_connection *connection);

/* ---- Pure functions ---- */

/* Checks whether bytes, the beginning of a connection, can be an HTTP/1.x request. VD_AGAIN: not known yet.
 * VD_BAD_REQUEST: they cannot. */
VDI_MUST_USE vd_status vdi_h1_recognize(struct vd_bytes bytes);

#endif
