/* The structs that the files of the server share: the server, its loops, a connection
 * (h2_server_connection.c), and a call from the first byte of its headers (h2_server_call.c).
 *
 * Threads: callers' threads, and one per loop. A connection and all of its calls stay on one loop. A call's
 * state has two parts: one for its loop's thread only, one under its lock. The lock of a call is taken inside
 * the server's and outside the loop's. No handler is called with a lock held.
 */
#ifndef VDI_H2_SERVER_STATE_H
#define VDI_H2_SERVER_STATE_H

#include <stdatomic.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/socket.h>

#include "h1_connection.h"
#include "h2_connection.h"
#include "h2_loop.h"
#include "h2_message.h"
#include "h2_detection.h"
#include "h2_tls.h"
#include "lock.h"
#include "metrics.h"
#include "rpc_server.h"

/* Identity of a connection's peer; calls may outlive the connection. */
struct vdi_h2_peer {
	_Atomic uint32_t references;
	const char	*common_name; /* behind the address */
	char		 address[];
};

/* An accepted socket that is passed to its loop. */
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
	struct vdi_h2_loop   *h2_loop;
	struct vd_actor	     *thread; /* runs the loop */

	/* Any thread. */
	_Atomic uint32_t connection_count; /* including sockets not yet taken */
	_Atomic bool	 is_pressed;	   /* it must check the unsent bytes of its calls */

	struct vdi_lock lock; /* taken inside the lock of a call */

	/* Under lock: calls for which another thread has data, in order; sockets. */
	struct vdi_h2_server_call  *kicked;
	struct vdi_h2_server_call **kicked_last;
	struct vdi_h2_arrival	   *arrivals;
	struct vdi_h2_http	   *answered; /* requests of plain HTTP */

	/* Loop's thread only. */
	struct vdi_h2_server_connection *connections;
	struct vdi_h2_timer		 check_timer;  /* h2_server_unsent.c */
	bool				 is_check_due; /* check_timer is set */
	bool				 is_drained;   /* all connections have been notified */
	bool				 is_notified;  /* closing has ended all calls; new ones are refused */
};

/* At most one of detection, connection and older is set: detection until the protocol is known, none at the
 * end. */
struct vdi_h2_server_connection {
	struct vdi_h2_server_loop	*loop;
	struct vdi_h2_detection		*detection;
	struct vdi_h2_connection	*connection;
	struct vdi_h1_connection	*older; /* HTTP/1.x */
	struct vdi_h2_http		*http;	/* with older: the request that is being answered */
	struct vdi_h2_peer		*peer;
	struct vdi_h2_server_connection *next;
	struct vdi_h2_server_connection *previous;
	struct vdi_h2_server_call	*calls;	     /* with an open stream */
	struct vdi_h2_timer		 cut;	     /* when it closes */
	int32_t				 highest_id; /* of all streams that the peer has opened */
	int32_t				 resets[64]; /* the streams that this side reset last */
	unsigned			 reset_next;
	bool				 is_tls;
	bool				 is_ready;
	bool				 is_drained; /* the final GOAWAY was sent */
	bool				 is_closing;
};

/* A request of plain HTTP, from its head until its response was passed to the connection. It counts as a call
 * of the server. */
struct vdi_h2_http {
	struct vdi_rpc_http		 base; /* first: the service's view */
	struct vdi_h2_server_loop	*loop;
	struct vdi_h2_http		*next;	     /* answered; under the loop's lock */
	struct vdi_h2_server_connection *connection; /* HTTP/1.x; NULL: it has ended. Loop's thread only */
	struct vdi_h2_server_call	*call;	     /* HTTP/2: a pin; else NULL */
	char				 text[];
};

struct vdi_h2_server_call {
	struct vdi_rpc_server_call base;
	struct vdi_h2_server	  *server;
	struct vdi_h2_server_loop *loop;
	struct vdi_h2_peer	  *peer; /* reference */

	/* From its headers, then fixed. */
	const char *method;
	size_t	    method_at; /* offset in text */
	char	   *text;      /* the method, and the metadata: key, NUL, four bytes of size, value */
	size_t	    text_size;
	size_t	    text_capacity;
	size_t	    metadata_at;
	vd_dur	    timeout;   /* 0: none */
	void	   *arg;       /* the service's; set before any other notification */
	char	    room[128]; /* used if the text is short */

	/* Loop's thread only. */
	struct vdi_h2_server_connection *connection; /* NULL: the stream is closed */
	struct vdi_h2_server_call	*next;
	struct vdi_h2_server_call	*previous;
	struct vdi_h2_inbox		 inbox;
	struct vdi_h2_outbox		 outbox;
	struct vdi_h2_timer		 deadline;
	size_t				 charged; /* of the server's memory */
	int32_t				 stream_id;
	uint16_t			 http_status; /* status of a response that is not gRPC; 0: 200 */
	uint8_t				 http_method; /* enum vdi_http_method */
	bool	 may_be_http; /* plain HTTP is answered here: a refused call may still be a request */
	bool	 is_grpc;     /* according to its content-type */
	bool	 has_method;
	bool	 has_content_type;
	bool	 is_refused;	 /* not reported to the service */
	bool	 is_notified;	 /* reported to the service */
	bool	 has_headers;	 /* nghttp2 has ours */
	bool	 is_half_closed; /* by the client */
	bool	 is_half_close_delivered;
	bool	 is_delivering;
	bool	 is_expired;
	bool	 has_status_left; /* nghttp2 has sent the last frame of the stream */
	bool	 is_cut;	  /* reset because of its unsent bytes */
	uint64_t sent;		  /* bytes */
	uint64_t sent_then;	  /* at the last check with progress */
	size_t	 waiting_then;	  /* unsent bytes at the last check */
	unsigned stalled_checks;  /* since the last progress */

	_Atomic bool wants_message; /* set by any thread, cleared by the loop */

	struct vdi_lock lock;

	/* Under lock. */
	unsigned		 pins; /* held by the stream, the service, and the list of kicked calls */
	bool			 is_closed;    /* nothing can be sent any more */
	bool			 is_finishing; /* the service or the server has set a status */
	bool			 wants_writable;
	bool			 is_kicked;
	int			 code;	  /* fixed when is_finishing */
	char			*message; /* text of the status, likewise; NULL: "" */
	struct vdi_h2_outgoing	*queue;	  /* not yet in the outbox */
	struct vdi_h2_outgoing **queue_last;
	size_t			 queued_bytes; /* without gRPC's prefixes */
	size_t			 outbox_bytes; /* with gRPC's prefixes */

	/* Under the loop's lock. */
	struct vdi_h2_server_call *kicked_next;
};

/* A listening socket. */
struct vdi_h2_listener {
	struct vdi_h2_server *server;
	struct event	      event;
	bool		      has_event;
	int		      fd;      /* -1: closed */
	char		     *address; /* as reported, with the real port */
	char		     *path;    /* of a unix socket, to be removed; else NULL */
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

	/* First loop's thread only. */
	struct vdi_h2_timer accept_pause;
	bool		    is_paused;

	/* Any thread. */
	_Atomic bool   is_draining;
	_Atomic size_t calls; /* calls not freed, plus one per loop that has not yet handled the close */
	_Atomic size_t memory_used;
	struct vdi_h2_unsent unsent;
	struct vdi_metric   *unsent_bytes;
	struct vdi_metric   *unsent_refused;
	struct vdi_metric   *unsent_cut;

	/* Collector only. */
	struct vdi_metrics_collector collector;
	bool			     has_collector; /* fixed at creation */
	size_t			     unsent_reported;

	struct vdi_lock lock;

	/* Under lock. */
	bool	 is_closing;
	bool	 has_stopped_listening;
	bool	 is_over; /* all calls have been freed, and no new ones arrive */
	unsigned loops_running;
	void (*done)(void *arg);
	void *done_arg;
};

/* ---- h2_accept.c ---- */

/* Binds and listens; does not accept yet. VD_INVALID_ARGUMENT, VD_IO name the address; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_accept_listen(struct vdi_h2_server		*server,
					    const struct vdi_rpc_server_options *options,
					    struct vd_error			*reterr);
/* Called before the first loop runs. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_accept_start(struct vdi_h2_server *server);
/* On the first loop's thread, or before or after it runs. Idempotent. */
void vdi_h2_accept_stop(struct vdi_h2_server *server);
/* After vdi_h2_accept_stop. */
void vdi_h2_accept_fini(struct vdi_h2_server *server);

/* ---- h2_server_connection.c; loop's thread only ---- */

/* Always takes over the socket. */
void vdi_h2_server_connection_open(struct vdi_h2_server_loop *loop, const struct vdi_h2_arrival *arrival);
/* Accepts no new streams; ends with the last one. */
void vdi_h2_server_connection_drain(struct vdi_h2_server_connection *connection);
/* Ends its calls with VDI_RPC_UNAVAILABLE, and itself when that is sent, or after a short time. */
void vdi_h2_server_connection_close(struct vdi_h2_server_connection *connection);
/* One of its streams has ended. */
void vdi_h2_server_connection_rest(struct vdi_h2_server_connection *connection);
/* Sends the response to its request of HTTP/1.x. */
void		    vdi_h2_server_connection_answer(struct vdi_h2_server_connection *connection,
						    const struct vdi_rpc_http	    *http);
struct vdi_h2_peer *vdi_h2_peer_unref(struct vdi_h2_peer *peer);

/* ---- h2_server_call.c; loop's thread only ---- */

/* NULL: out of memory. */
struct vdi_h2_server_call *vdi_h2_server_call_new(struct vdi_h2_server_connection *connection,
						  int32_t			   stream_id);
/* Its headers are complete: reports it to the service, or refuses it. */
void vdi_h2_server_call_begin(struct vdi_h2_server_call *call);
void vdi_h2_server_call_data(struct vdi_h2_server_call *call, struct vd_bytes bytes);
/* The client has half-closed. */
void vdi_h2_server_call_half_closed(struct vdi_h2_server_call *call);
/* The last frame of our side was sent. */
void vdi_h2_server_call_left(struct vdi_h2_server_call *call);
void vdi_h2_server_call_stream_closed(struct vdi_h2_server_call *call);
/* Executes the requests of other threads; drops the list's pin. */
void vdi_h2_server_call_run(struct vdi_h2_server_call *call);
/* Checks the progress of the client, and notifies a service that waits for room if has_room. Returns true if
 * the service waits for room. */
bool vdi_h2_server_call_check_progress(struct vdi_h2_server_call *call, bool has_room);
/* The client does not read: drops the call's messages and resets its stream. */
void vdi_h2_server_call_cut(struct vdi_h2_server_call *call);
/* Ends it because the server closes: messages that have not begun to be sent are dropped. */
void vdi_h2_server_call_shut_down(struct vdi_h2_server_call *call);

/* Under the call's lock: has the loop run the call; sets its end; drops a pin, which releases the lock and
 * may free the call. */
void vdi_h2_server_call_kick_locked(struct vdi_h2_server_call *call);
void vdi_h2_server_call_finish_locked(struct vdi_h2_server_call *call, int code, const char *message);
/* Sets its end only: the caller, on the loop's thread, sends it. */
void vdi_h2_server_call_set_status_locked(struct vdi_h2_server_call *call, int code, const char *message);
void vdi_h2_server_call_unpin_locked(struct vdi_h2_server_call *call);
/* Sends the response to a request of plain HTTP; drops the request's pin. */
void vdi_h2_server_call_answer(struct vdi_h2_server_call *call, const struct vdi_rpc_http *http);

/* ---- h2_server_service.c ---- */

extern const struct vdi_rpc_server_call_ops vdi_h2_server_call_ops;

/* ---- h2_server_http.c ---- */

/* Reports a request to the service. Either connection (HTTP/1.x) or call (HTTP/2) is set. path and query are
 * copied. False: out of memory, no effect. */
VDI_MUST_USE bool vdi_h2_server_http_begin(struct vdi_h2_server_loop	   *loop,
					   struct vdi_h2_server_connection *connection,
					   struct vdi_h2_server_call *call, enum vdi_http_method method,
					   struct vd_bytes path, struct vd_bytes query);
/* Submits headers and body of a response on the call's open stream. False: out of memory. */
VDI_MUST_USE bool vdi_h2_server_http_submit(struct vdi_h2_server_call *call, const struct vdi_rpc_http *http);
/* Passes a list of answered requests to their connections. Loop's thread. */
void vdi_h2_server_http_deliver(struct vdi_h2_http *answered);

/* ---- h2_server_header.c ---- */

/* Adds one of its headers. False: out of memory. */
VDI_MUST_USE bool vdi_h2_server_call_header(struct vdi_h2_server_call *call, struct vd_bytes name,
					    struct vd_bytes value);
/* Sets the status of a call that the service does not get. http_status 0: 200. */
void vdi_h2_server_call_refuse(struct vdi_h2_server_call *call, unsigned http_status, int code,
			       const char *message);
/* Parses "5S" and so on. False: malformed. */
bool vdi_h2_timeout_parse(struct vd_bytes text, vd_dur *ret_timeout);
/* gRPC's percent-encoding of a status message, cut to size. Returns its length. */
size_t vdi_h2_status_encode(const char *message, char *text, size_t size);

/* ---- h2_server_unsent.c ---- */

/* VD_NOMEM; fini is needed even then. */
VDI_MUST_USE vd_status vdi_h2_unsent_init(struct vdi_h2_server *server);
void		       vdi_h2_unsent_fini(struct vdi_h2_server *server);
/* Counts the message. False: no room; the caller frees it. Any thread, also under a call's lock. */
VDI_MUST_USE bool vdi_h2_unsent_take_message(struct vdi_h2_server *server, struct vdi_h2_outgoing *outgoing);
VDI_MUST_USE bool vdi_h2_unsent_take_answer(struct vdi_h2_server *server, struct vdi_h2_outgoing *outgoing);
/* is_pressed was set. Loop's thread. */
void vdi_h2_unsent_schedule_check(struct vdi_h2_server_loop *loop);
/* Ends the checks. On the loop's thread, or when it has stopped. */
void vdi_h2_unsent_stop(struct vdi_h2_server_loop *loop);

/* ---- h2_server.c ---- */

/* One less in server->calls. */
void vdi_h2_server_drop_call(struct vdi_h2_server *server);

#endif
