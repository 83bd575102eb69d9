/* What the files of the server share: the server, its loops, a connection (h2_server_connection.c), a call
 * from the first byte of its headers (h2_server_call.c).
 *
 * Threads: callers' threads, and one for each loop. A connection and all of its calls stay on one loop. A
 * call's state is in two parts: what only its loop's thread touches, and what is under its lock; the lock of
 * a call is taken inside the server's and outside the loop's. No handler is called with a lock held.
 */
#ifndef VDI_H2_SERVER_STATE_H
#define VDI_H2_SERVER_STATE_H

#include <stdatomic.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/socket.h>

#include "h1_connection.h"
#include "h2_connection.h"
#include "h2_hub.h"
#include "h2_message.h"
#include "h2_opening.h"
#include "h2_tls.h"
#include "lock.h"
#include "metrics.h"
#include "rpc_server.h"

/* Who a connection's peer is; its calls may outlive it. */
struct vdi_h2_peer {
	_Atomic uint32_t references;
	const char	*common_name; /* behind the address */
	char		 address[];
};

/* A socket on its way to its loop. */
struct vdi_h2_arrival {
	struct vdi_h2_arrival  *next;
	int			fd;
	socklen_t		address_size;
	struct sockaddr_storage address;
};

struct vdi_h2_server_loop {
	/* Fixed at creation. */
	struct vdi_h2_server *server;
	struct vdi_loop	     *loop;
	struct vdi_h2_hub    *hub;
	struct vd_actor	     *thread; /* runs the loop */

	/* Any thread. */
	_Atomic uint32_t connection_count; /* those on their way here too */
	_Atomic bool	 is_pressed;	   /* it is to look at what its calls hold unsent */

	struct vdi_lock lock; /* inside the lock of a call */

	/* Under lock: calls for which another thread has something, in order; sockets. */
	struct vdi_h2_server_call  *kicked;
	struct vdi_h2_server_call **kicked_last;
	struct vdi_h2_arrival	   *arrivals;
	struct vdi_h2_http	   *answered; /* requests of plain HTTP */

	/* The loop's thread. */
	struct vdi_h2_server_connection *connections;
	struct vdi_h2_timer		 look; /* h2_server_unsent.c */
	bool				 is_looking;
	bool				 is_drained; /* all connections know it */
	bool is_told; /* all calls were ended because of closing, new ones are refused */
};

/* First it is opening, then one of the others; when it ends, none. */
struct vdi_h2_server_connection {
	struct vdi_h2_server_loop	*loop;
	struct vdi_h2_opening		*opening;
	struct vdi_h2_connection	*connection;
	struct vdi_h1_connection	*older; /* it speaks HTTP/1.x */
	struct vdi_h2_http		*http;	/* with older: the request that is being answered */
	struct vdi_h2_peer		*peer;
	struct vdi_h2_server_connection *next;
	struct vdi_h2_server_connection *previous;
	struct vdi_h2_server_call	*calls;	     /* whose stream is open */
	struct vdi_h2_timer		 cut;	     /* when it closes */
	int32_t				 highest_id; /* of all streams that the peer has opened */
	int32_t				 resets[64]; /* the streams that were reset last, by us */
	unsigned			 reset_next;
	bool				 is_tls;
	bool				 is_ready;
	bool				 is_drained; /* the peer was told of the last stream that counts */
	bool				 is_closing;
};

/* A request of plain HTTP, from its head until its answer is with the connection. One of the server's
 * calls. */
struct vdi_h2_http {
	struct vdi_rpc_http		 base; /* first: what the service sees */
	struct vdi_h2_server_loop	*loop;
	struct vdi_h2_http		*next;	     /* answered; under the loop's lock */
	struct vdi_h2_server_connection *connection; /* of HTTP/1.x; NULL: gone. The loop's thread */
	struct vdi_h2_server_call	*call;	     /* of HTTP/2, a pin; or NULL */
	char				 text[];
};

struct vdi_h2_server_call {
	struct vdi_rpc_server_call base;
	struct vdi_h2_server	  *server;
	struct vdi_h2_server_loop *loop;
	struct vdi_h2_peer	  *peer; /* a reference */

	/* From its headers, then fixed. */
	const char *method;
	size_t	    method_at; /* in text */
	char	   *text;      /* the method, and the metadata: key, NUL, four bytes of size, value */
	size_t	    text_size;
	size_t	    text_capacity;
	size_t	    metadata_at;
	vd_dur	    timeout;   /* 0: none */
	void	   *arg;       /* the service's; set before anything else is told */
	char	    room[128]; /* of a short text */

	/* The loop's thread. */
	struct vdi_h2_server_connection *connection; /* NULL: the stream is closed */
	struct vdi_h2_server_call	*next;
	struct vdi_h2_server_call	*previous;
	struct vdi_h2_inbox		 inbox;
	struct vdi_h2_outbox		 outbox;
	struct vdi_h2_timer		 deadline;
	size_t				 charged; /* of the server's memory */
	int32_t				 stream_id;
	uint16_t			 http_status; /* of an answer that is none of gRPC's; 0: 200 */
	uint8_t				 http_method; /* enum vdi_http_method */
	bool	 may_be_http; /* plain HTTP is answered here: what refuses a call may still be a request */
	bool	 is_grpc;     /* by its content-type */
	bool	 has_method;
	bool	 has_content_type;
	bool	 is_refused;	 /* not told to the service */
	bool	 is_told;	 /* to the service */
	bool	 has_headers;	 /* ours are with nghttp2 */
	bool	 is_half_closed; /* by the client */
	bool	 is_half_close_told;
	bool	 is_delivering;
	bool	 is_expired;
	bool	 has_status_left; /* with nghttp2's last frame of the stream */
	bool	 is_cut;	  /* reset for what it held unsent */
	uint64_t sent;		  /* bytes */
	uint64_t sent_then;	  /* when it was last seen to get on */
	size_t	 waiting_then;	  /* at the last look */
	unsigned stalled_looks;	  /* since it was last seen to get on */

	_Atomic bool wants_message; /* set by anybody, cleared by the loop */

	struct vdi_lock lock;

	/* Under lock. */
	unsigned		 pins;	       /* the stream, the service, the list of kicked ones */
	bool			 is_closed;    /* nothing can be sent any more */
	bool			 is_finishing; /* the service, or we, have given a status */
	bool			 wants_writable;
	bool			 is_kicked;
	int			 code;	  /* fixed when is_finishing */
	char			*message; /* of the status, likewise; NULL: "" */
	struct vdi_h2_outgoing	*queue;	  /* not in the outbox yet */
	struct vdi_h2_outgoing **queue_last;
	size_t			 queued_bytes; /* without gRPC's prefixes */
	size_t			 outbox_bytes; /* with them */

	/* Under the loop's lock. */
	struct vdi_h2_server_call *kicked_next;
};

/* A socket that listens. */
struct vdi_h2_listener {
	struct vdi_h2_server *server;
	struct event	      event;
	bool		      has_event;
	int		      fd;      /* -1: closed */
	char		     *address; /* as it is called: with the real port */
	char		     *path;    /* of a unix socket, to be removed; or NULL */
};

struct vdi_h2_server {
	struct vdi_rpc_server base;

	/* Fixed at creation. */
	const struct vd_env		     *env;
	const struct vdi_rpc_server_handlers *handlers;
	void				     *arg;
	void (*http)(void *arg, struct vdi_rpc_http *http); /* or NULL */
	struct vdi_h2_tls	  *tls;			    /* NULL: plain text */
	size_t			   receive_size_max;
	size_t			   send_bytes_max;
	size_t			   memory_max;
	size_t			   unsent_max;
	unsigned		   streams_max;
	vd_dur			   ping_interval_min;
	vd_dur			   keepalive_time;
	vd_dur			   keepalive_timeout;
	vd_dur			   settle_timeout;
	vd_dur			   idle_timeout;
	const char *const	  *stream_methods;
	size_t			   stream_method_count;
	struct vdi_h2_listener	  *listeners;
	size_t			   listener_count;
	struct vdi_h2_server_loop *loops;
	unsigned		   loop_count;

	/* The first loop's. */
	struct vdi_h2_timer accept_pause;
	bool		    is_paused;

	/* Any thread. */
	_Atomic bool is_draining;
	_Atomic size_t
		calls; /* not freed, and one for each loop that has not been told that the server closes */
	_Atomic size_t	     memory_used;
	struct vdi_h2_unsent unsent;
	struct vdi_metric   *unsent_bytes;
	struct vdi_metric   *unsent_refused;
	struct vdi_metric   *unsent_cut;

	/* The collector's. */
	struct vdi_metrics_collector collector;
	bool			     has_collector; /* fixed at creation */
	size_t			     unsent_told;

	struct vdi_lock lock;

	/* Under lock. */
	bool	 is_closing;
	bool	 has_stopped_listening;
	bool	 is_over; /* all calls have been freed, and no new ones come */
	unsigned loops_running;
	void (*done)(void *arg);
	void *done_arg;
};

/* ---- h2_accept.c ---- */

/* Binds and listens; nothing is accepted yet. VD_INVALID_ARGUMENT, VD_IO name the address; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_accept_listen(struct vdi_h2_server		*server,
					    const struct vdi_rpc_server_options *options,
					    struct vd_error			*reterr);
/* Before the first loop runs. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_accept_start(struct vdi_h2_server *server);
/* On the first loop's thread; or before it ran, or after. Idempotent. */
void vdi_h2_accept_stop(struct vdi_h2_server *server);
/* After that. */
void vdi_h2_accept_fini(struct vdi_h2_server *server);

/* ---- h2_server_connection.c; all on the loop's thread ---- */

/* Takes the socket over, always. */
void vdi_h2_server_connection_open(struct vdi_h2_server_loop *loop, const struct vdi_h2_arrival *arrival);
/* No new streams; it ends when the last one has. */
void vdi_h2_server_connection_drain(struct vdi_h2_server_connection *connection);
/* Ends its calls with VDI_RPC_UNAVAILABLE, and itself as soon as that is out, or after a short time. */
void vdi_h2_server_connection_close(struct vdi_h2_server_connection *connection);
/* A stream of it has ended. */
void vdi_h2_server_connection_rest(struct vdi_h2_server_connection *connection);
/* The answer to its request of HTTP/1.x. */
void		    vdi_h2_server_connection_answer(struct vdi_h2_server_connection *connection,
						    const struct vdi_rpc_http	    *http);
struct vdi_h2_peer *vdi_h2_peer_unref(struct vdi_h2_peer *peer);

/* ---- h2_server_call.c; all on the loop's thread ---- */

/* NULL: no memory. */
struct vdi_h2_server_call *vdi_h2_server_call_new(struct vdi_h2_server_connection *connection,
						  int32_t			   stream_id);
/* One of its headers. False: no memory. */
VDI_MUST_USE bool vdi_h2_server_call_header(struct vdi_h2_server_call *call, struct vd_bytes name,
					    struct vd_bytes value);
/* Its headers are complete: tells the service, or refuses it. */
void vdi_h2_server_call_begin(struct vdi_h2_server_call *call);
void vdi_h2_server_call_data(struct vdi_h2_server_call *call, struct vd_bytes bytes);
/* The client has half-closed. */
void vdi_h2_server_call_half_closed(struct vdi_h2_server_call *call);
/* The last frame of our side is out. */
void vdi_h2_server_call_left(struct vdi_h2_server_call *call);
void vdi_h2_server_call_stream_closed(struct vdi_h2_server_call *call);
/* What other threads have asked for; drops the list's pin. */
void vdi_h2_server_call_run(struct vdi_h2_server_call *call);
/* Whether it gets on; a service that waits for room is told when there is some. Answers whether it waits for
 * room that others have. */
bool vdi_h2_server_call_look(struct vdi_h2_server_call *call, bool has_room);
/* Its client does not read: nothing is kept for it any more, and it is reset. */
void vdi_h2_server_call_cut(struct vdi_h2_server_call *call);
/* Ends it as the closing of the server does: what has not begun to leave is dropped. */
void vdi_h2_server_call_shut_down(struct vdi_h2_server_call *call);

/* Under the call's lock: has the loop look at the call; sets its end; gives a pin back, which releases the
 * lock and may free the call. */
void vdi_h2_server_call_kick_locked(struct vdi_h2_server_call *call);
void vdi_h2_server_call_finish_locked(struct vdi_h2_server_call *call, int code, const char *message);
void vdi_h2_server_call_unpin_locked(struct vdi_h2_server_call *call);
/* The answer to a request of plain HTTP; drops that one's pin. */
void vdi_h2_server_call_answer(struct vdi_h2_server_call *call, const struct vdi_rpc_http *http);

/* ---- h2_server_service.c ---- */

extern const struct vdi_rpc_server_call_ops vdi_h2_server_call_ops;

/* ---- h2_server_http.c ---- */

/* The request is known: the service is told of it. connection: of HTTP/1.x; call: of HTTP/2; one of them.
 * path and query are copied. False: no memory, nothing happened. */
VDI_MUST_USE bool vdi_h2_server_http_begin(struct vdi_h2_server_loop	   *loop,
					   struct vdi_h2_server_connection *connection,
					   struct vdi_h2_server_call *call, enum vdi_http_method method,
					   struct vd_bytes path, struct vd_bytes query);
/* Headers and body of an answer, on the call's open stream. False: no memory. */
VDI_MUST_USE bool vdi_h2_server_http_submit(struct vdi_h2_server_call *call, const struct vdi_rpc_http *http);
/* Hands out a list of answered ones to their connections. The loop's thread. */
void vdi_h2_server_http_deliver(struct vdi_h2_http *answered);

/* ---- h2_server_header.c ---- */

/* "5S" and so on. False: malformed. */
bool vdi_h2_timeout_parse(struct vd_bytes text, vd_dur *ret_timeout);
/* gRPC's percent-encoding of a status message, cut to size. Answers how long it is. */
size_t vdi_h2_status_encode(const char *message, char *text, size_t size);

/* ---- h2_server_unsent.c ---- */

/* VD_NOMEM; fini all the same. */
VDI_MUST_USE vd_status vdi_h2_unsent_init(struct vdi_h2_server *server);
void		       vdi_h2_unsent_fini(struct vdi_h2_server *server);
/* Counts it. False: there is no room; free it. Any thread, also under a call's lock. */
VDI_MUST_USE bool vdi_h2_unsent_take_message(struct vdi_h2_server *server, struct vdi_h2_outgoing *outgoing);
VDI_MUST_USE bool vdi_h2_unsent_take_answer(struct vdi_h2_server *server, struct vdi_h2_outgoing *outgoing);
/* On the loop's thread: it is_pressed. */
void vdi_h2_unsent_turn_pressed(struct vdi_h2_server_loop *loop);
/* On the loop's thread, or when it has stopped: it looks no more. */
void vdi_h2_unsent_stop(struct vdi_h2_server_loop *loop);

/* ---- h2_server.c ---- */

/* One of what server->calls counts. */
void vdi_h2_server_drop_call(struct vdi_h2_server *server);

#endif
