/* One connection of HTTP/1.0 or 1.1 to a server: requests one after the other, their bodies passed over,
 * answers of known size.
 *
 *   HEAD --request--> ANSWER --answer--> WRITING --> HEAD ...
 *                                           \--> LINGERING (ours is said; until the peer ends, or a moment) --> ended
 *
 * A request is strict (http_parser.h); what is malformed is answered and ends the connection. What cannot be
 * a request at all is cut without a word when the connection is new and has no TLS: the first line must say
 * HTTP/1.x, as cmux wants it of etcd's clients. But who begins with TLS hears, in plain text, that there is
 * none.
 *
 * Bounds: VDI_H1_HEAD_MAX bytes of a head, VDI_H1_BODY_MAX of a body that is passed over (beyond it the
 * connection ends with the answer); a request must be there whole in head_timeout from its first byte on, an
 * answer taken in write_timeout; nothing is read while an answer is due, so pipelined requests wait in the
 * socket.
 *
 * The loop's thread.
 */
#ifndef VDI_H1_CONNECTION_H
#define VDI_H1_CONNECTION_H

#include <stdatomic.h>

#include "h2_hub.h"
#include "h2_tls.h"
#include "http_parser.h"

struct vdi_h1_connection;

#define VDI_H1_HEAD_MAX ((size_t) 16 << 10)
#define VDI_H1_BODY_MAX ((size_t) 256 << 10)

struct vdi_h1_side {
	/* Answered with vdi_h1_connection_answer, later. head is lent for the call. */
	void (*request)(void *arg, const struct vdi_http_head *head);
	/* Exactly once, the last; at the end of a turn. The side frees the connection then. A request may be
	 * unanswered. */
	void (*ended)(void *arg);
};

struct vdi_h1_options {
	const struct vdi_h1_side *side; /* lent for ever */
	void			 *arg;
	int fd; /* connected, non-blocking; this and link are the connection's from VD_OK on */
	struct vdi_h2_link *link;  /* NULL: plain text */
	struct vd_bytes	    first; /* what was read already */
	vd_dur		    head_timeout;
	vd_dur		    idle_timeout; /* between requests */
	vd_dur		    write_timeout;
	_Atomic size_t	   *memory_used; /* where its buffers are counted */
	size_t		    memory_max;	 /* it ends when that is passed */
};

/* Nothing is told before the end of the turn. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h1_connection_new(struct vdi_h2_hub *hub, const struct vdi_h1_options *options,
					     struct vdi_h1_connection **ret_connection);
/* In or after ended. NULL is fine; returns NULL. */
struct vdi_h1_connection *vdi_h1_connection_free(struct vdi_h1_connection *connection);

/* headers: lines with CR LF, besides Date, Content-Length and Connection. closes: it is the last. Both
 * buffers are lent. Not inside request. */
void vdi_h1_connection_answer(struct vdi_h1_connection *connection, int code, struct vd_bytes headers,
			      struct vd_bytes body, bool closes);
/* Ends with the answer that is due, or at once when none is. */
void vdi_h1_connection_drain(struct vdi_h1_connection *connection);
/* ended follows at the end of the turn. */
void vdi_h1_connection_abort(struct vdi_h1_connection *connection);

/* ---- Pure ---- */

/* Whether bytes, the beginning of a connection, can be a request of HTTP/1.x. VD_AGAIN: not known yet.
 * VD_BAD_REQUEST: they cannot. */
VDI_MUST_USE vd_status vdi_h1_recognize(struct vd_bytes bytes);

#endif
