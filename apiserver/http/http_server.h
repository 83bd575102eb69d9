/* The daemon's inside: server, event loops, connections, and what a response writer may ask of a connection.
 *
 * A connection belongs to one loop for life and is touched on that loop's thread only. What other threads
 * finish (a get from the store, a write) comes back through the loop's inbox. Nothing here waits.
 */
#ifndef VDI_HTTP_SERVER_H
#define VDI_HTTP_SERVER_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>
#include <sys/uio.h>
#include <vedette/server.h>

#include "accounts.h"
#include "actor_loop.h"
#include "http_parser.h"
#include "kinds.h"
#include "lock.h"
#include "packer.h"
#include "security.h"
#include "served.h"
#include "timer.h"
#include "usage.h"
#include "work_queue.h"

struct vdi_controller_metrics;
struct vdi_garbage_collector;
struct vdi_http_metrics;
struct vdi_namespace_controller;
struct vdi_request;
struct vdi_trail;
struct vdi_trails;
struct vdi_http_connection;

/* A response that is written bit by bit. */
struct vdi_http_stream {
	const struct vdi_http_stream_ops *ops;
};

struct vdi_http_stream_ops {
	/* Writes what it can. VD_OK: the response is complete. VD_AGAIN: the socket is full, call again when
	 * it is writable. VD_FULL: enough for one turn, call again soon. VD_NOT_READY: nothing to write for
	 * now; the stream itself will call vdi_http_stream_kick. Anything else: close. */
	vd_status (*pump)(struct vdi_http_stream *stream, struct vdi_http_connection *connection);
	/* The server drains: end soon, cleanly. May be NULL. Followed by a pump. */
	void (*drain)(struct vdi_http_stream *stream);
	void (*free)(struct vdi_http_stream *stream);
};

enum vdi_http_state {
	VDI_HTTP_READ_HEAD,
	VDI_HTTP_READ_BODY,
	VDI_HTTP_HANDLE,
	VDI_HTTP_RESPOND,
	VDI_HTTP_LINGER,
	VDI_HTTP_CLOSED,
	VDI_HTTP_SHAKE
};

struct vdi_http_connection {
	/* Fixed. */
	struct vdi_http_loop *loop;
	int		      fd;
	struct vdi_tls_link  *tls; /* NULL: plain */

	/* The loop's thread only. */
	LIST_ENTRY(vdi_http_connection) siblings;
	TAILQ_ENTRY(vdi_http_connection) turns; /* waiting for another turn to write */
	struct event	 event;
	struct vdi_timer timer;
	/* when the answer must be out; VD_NEVER: of watches, and between requests */
	vd_mono			request_due;
	struct vdi_http_scan	scan;
	struct vdi_identity    *identity; /* of its certificate; NULL: it showed none */
	struct vdi_request     *request;
	struct vdi_http_stream *stream;
	struct vdi_trail       *trail; /* of the request that is being answered; NULL: nobody wants to know */
	char		       *input; /* bytes not yet parsed; NULL when there are none */
	uint32_t		input_size;
	uint32_t		input_capacity;
	char		       *pending; /* the unsent rest of a plain answer */
	uint32_t		pending_size;
	uint32_t		pending_sent;
	struct vdi_account     *account; /* of pending; a use of it, or NULL */
	short			event_flags;
	uint8_t			state; /* enum vdi_http_state */
	bool			keep_alive;
	bool			at_end; /* the peer sends no more */
	bool			in_turns;
	bool			advancing;
	bool			is_watch;
};

struct vdi_http_loop {
	/* Fixed at creation. */
	struct vd_server *server;
	struct vdi_loop	 *loop;
	struct vd_actor	 *actor;

	/* The loop's thread only. */
	LIST_HEAD(, vdi_http_connection) connections;
	LIST_HEAD(, vdi_http_connection)
	graveyard; /* freed by the next turn of the actor, when nobody on the stack knows them */
	TAILQ_HEAD(vdi_http_turns_head, vdi_http_connection) turns;
	struct vdi_timer_heap timers;
	vd_mono		      timer_due;
	uint32_t	      connection_count;
	_Atomic int64_t	      connections_open; /* the same, and watches, for other threads to read */
	_Atomic int64_t	      watches_open;
	_Atomic uint64_t      served_number; /* of served */
	char		      date[40];
	int64_t		      date_second;
	_Atomic uint64_t      pong;	/* the last ping that it has seen; written under the server's lock */
	struct vdi_security  *security; /* a use of what was read last */
	struct vdi_served
		    *served; /* a use of the newest that this loop has heard of; NULL when the server ends */
	struct event accept_event; /* of a loop that accepts */
	struct vdi_timer    accept_pause;
	struct vdi_request *left;	/* completed, and not reached by the last run */
	char		   *scratch;	/* VDI_HTTP_SCRATCH_SIZE, for reads */
	unsigned	    gzip_count; /* answers that are being compressed */
	struct vdi_packer  *packer;	/* of its watches that go out compressed; NULL until there was one */

	/* Under lock. */
	struct vdi_lock	    lock;
	struct vdi_request *completed; /* newest first */
	struct vdi_arrival *arrived;
	bool		    has_to_accept;
	bool		    has_to_drain;
	bool		    has_to_close;
	bool		    has_to_reload;
};

#define VDI_HTTP_SCRATCH_SIZE 65536
#define VDI_HTTP_WRITE_LIMIT VD_SECONDS(34)

struct vd_server {
	/* Fixed before the loops start. */
	const struct vd_env	      *env;
	struct vd_store		      *store;
	struct vd_server_options       options;
	struct vdi_usage	       usage;
	struct vdi_http_loop	      *loops;
	size_t			       loop_count;
	struct vdi_http_metrics	      *metrics;
	struct vdi_trails	      *trails;
	struct vdi_garbage_collector  *garbage_collector; /* the same */
	struct vdi_controller_metrics *controller_metrics;
	struct vdi_work_queue	       work; /* what would hold a loop for too long */
	struct vdi_work_queue
		searches; /* lists that would: nobody's writes wait for other people's selectors */
	struct vdi_namespace_controller *namespace_controller; /* from the start on; NULL: there is none */
	vd_dur write_limit; /* of what writes one object: VDI_HTTP_WRITE_LIMIT */
	int    listen_fd;
	char  *listen_path; /* of a socket of the file system; NULL: none */
	char   address[128];

	/* Any thread. */
	_Atomic int64_t	 connections_open;
	_Atomic int64_t	 requests_open;
	_Atomic uint32_t loop_next;
	_Atomic bool	 draining;
	_Atomic bool	 is_unready; /* it will drain soon */
	_Atomic uint64_t ping;	     /* raised by whoever wants to know whether everybody is alive */
	_Atomic bool	 started;
	_Atomic uint64_t watches_open;
	_Atomic uint64_t request_total;
	_Atomic uint64_t refused_total;
	_Atomic uint64_t watch_event_total;

	struct vdi_accounts accounts;		       /* has its own lock */
	void (*dispatch)(struct vdi_request *request); /* fixed: where requests go; the loop's thread */

	/* Under lock: who waits for the last connection, or the last cache, to go. */
	struct vdi_lock	     lock;
	struct vdi_condition changed;
	struct vdi_security *security;	/* as read last; the loops have uses of their own */
	uint64_t	     pool_pong; /* of the threads of the env */
	struct vd_actor	    *pulse;	/* which answers for them */
	struct vdi_kinds     kinds;	/* see there */
};

/* ---- http_loop.c ---- */

VDI_MUST_USE vd_status vdi_http_loop_init(struct vdi_http_loop *loop, struct vd_server *server);
/* Every connection must be closed. */
void vdi_http_loop_fini(struct vdi_http_loop *loop);
/* Any thread. */
void vdi_http_loop_accept(struct vdi_http_loop *loop);
void vdi_http_loop_drain(struct vdi_http_loop *loop);
void vdi_http_loop_close_all(struct vdi_http_loop *loop);
/* It is to note the server's ping. */
void vdi_http_loop_ping(struct vdi_http_loop *loop);
/* The server's security or its set of kinds is another one. */
void vdi_http_loop_reload(struct vdi_http_loop *loop);
/* The loop's thread, before a request is looked at: what one loop serves, all do, whether they were told by
 * now or not. */
void vdi_http_loop_freshen(struct vdi_http_loop *loop);
void vdi_http_loop_complete(struct vdi_http_loop *loop, struct vdi_request *request);
/* The loop's thread: makes sure the timers are looked at in time. */
void vdi_http_loop_arm(struct vdi_http_loop *loop);
/* Lent as long as the loop is. NULL: out of memory. */
struct vdi_packer *vdi_http_loop_packer(struct vdi_http_loop *loop);
/* "Date: ...\r\n"; good until the next call. */
const char *vdi_http_loop_date(struct vdi_http_loop *loop);

/* ---- http_connection.c: the loop's thread only ---- */

/* Takes over fd, also when it fails. */
void vdi_http_connection_open(struct vdi_http_loop *loop, int fd);
/* The connection may be used until the next turn of the loop's actor. */
void vdi_http_connection_close(struct vdi_http_connection *connection);
void vdi_http_connection_free(struct vdi_http_connection *connection);
/* The deadline of its state has passed. */
void vdi_http_connection_expire(struct vdi_http_connection *connection);
void vdi_http_connection_drain(struct vdi_http_connection *connection);
/* Its stream gets another turn. */
void vdi_http_connection_pump(struct vdi_http_connection *connection);

/* Sends without waiting. VD_OK: all of it; VD_AGAIN: *ret_sent bytes; VD_IO. */
VDI_MUST_USE vd_status vdi_http_connection_send(struct vdi_http_connection *connection,
						const struct iovec *parts, size_t count, size_t *ret_sent);
/* Sends an answer whose size is known; what the socket does not take is kept. body may be empty. Ends the
 * request. */
void vdi_http_connection_answer(struct vdi_http_connection *connection, struct vd_bytes head,
				struct vd_bytes body);
/* The request under way is answered 504 after this time at the latest; an answer that is not out by then is
 * cut. */
void vdi_http_connection_limit(struct vdi_http_connection *connection, vd_dur timeout);
/* The connection owns stream from now on and pumps it until it is done; ends the request. */
void vdi_http_connection_stream(struct vdi_http_connection *connection, struct vdi_http_stream *stream);
/* The stream has something to write again. */
void vdi_http_stream_kick(struct vdi_http_connection *connection);

#endif
