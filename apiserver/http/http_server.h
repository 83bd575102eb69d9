/* Private structs of the server: server, event loops, connections, and the functions that a response writer
 * may call on a connection.
 *
 * A connection belongs to one loop for its lifetime, and only that loop's thread accesses it. Results of
 * other threads (a get from the store, a write) return through the loop's inbox. Nothing here blocks.
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
#include "gzip_writer.h"
#include "http_parser.h"
#include "http_text.h"
#include "kinds.h"
#include "lock.h"
#include "resource_set.h"
#include "security.h"
#include "timer.h"
#include "usage.h"
#include "work_queue.h"

struct vdi_controller_metrics;
struct vdi_garbage_collector;
struct vdi_http_metrics;
struct vdi_namespace_controller;
struct vdi_request;
struct vdi_request_log;
struct vdi_request_logs;
struct vdi_http_connection;

/* A response that is written in pieces. */
struct vdi_http_stream {
	const struct vdi_http_stream_ops *ops;
};

struct vdi_http_stream_ops {
	/* Writes as much as it can. VD_OK: the response is complete. VD_AGAIN: the socket is full, call again
	 * when it is writable. VD_FULL: enough for this iteration, call again soon. VD_NOT_READY: no data for
	 * now; the stream will call vdi_http_stream_kick. Other statuses: close the connection. */
	vd_status (*pump)(struct vdi_http_stream *stream, struct vdi_http_connection *connection);
	/* The server drains: end the response soon and cleanly. May be NULL. A pump follows. */
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

	/* Owned by the loop's thread. */
	LIST_ENTRY(vdi_http_connection) siblings;
	TAILQ_ENTRY(vdi_http_connection) turns; /* queue of connections that wait to write more */
	struct event	 event;
	struct vdi_timer timer;
	/* deadline of the whole response; VD_NEVER for watches, and between requests */
	vd_mono			request_due;
	struct vdi_http_scan	scan;
	struct vdi_identity    *identity; /* from the client certificate; NULL: none */
	struct vdi_request     *request;
	struct vdi_http_stream *stream;
	struct vdi_request_log *request_log; /* of the request in progress; NULL: logging disabled */
	char		       *input;	     /* bytes not parsed yet; NULL if none */
	uint32_t		input_size;
	uint32_t		input_capacity;
	char		       *pending; /* unsent rest of a buffered response */
	uint32_t		pending_size;
	uint32_t		pending_sent;
	struct vdi_account     *account; /* charged for pending; one reference, or NULL */
	short			event_flags;
	uint8_t			state; /* enum vdi_http_state */
	bool			keep_alive;
	bool			at_end; /* the peer has closed its sending side */
	bool			in_turns;
	bool			advancing;
	bool			is_watch;
};

struct vdi_http_loop {
	/* Fixed at creation. */
	struct vd_server *server;
	struct vdi_loop	 *loop;
	struct vd_actor	 *actor;

	/* Owned by the loop's thread. */
	LIST_HEAD(, vdi_http_connection) connections;
	/* closed connections, freed in the actor's next run, when no caller on the stack holds them */
	LIST_HEAD(, vdi_http_connection) deferred_free;
	TAILQ_HEAD(vdi_http_turns_head, vdi_http_connection) turns;
	struct vdi_timer_heap timers;
	vd_mono		      timer_due;
	uint32_t	      connection_count;
	_Atomic int64_t	      connections_open; /* these two: the counts for other threads to read */
	_Atomic int64_t	      watches_open;
	_Atomic uint64_t      served_number; /* number of resource_set */
	char		      date[VDI_HTTP_DATE_SIZE + 16];
	int64_t		      date_second;
	/* last ping that the loop has answered; written under the server's lock */
	_Atomic uint64_t     pong;
	struct vdi_security *security; /* one reference on the newest */
	/* one reference on the newest set that the loop has taken; NULL: the server ends */
	struct vdi_resource_set *resource_set;
	struct event		 accept_event; /* of a loop that accepts */
	struct vdi_timer	 accept_pause;
	struct vdi_request	*left;	      /* completed requests that the last run did not reach */
	char			*scratch;     /* VDI_HTTP_SCRATCH_SIZE bytes, for reads */
	unsigned		 gzip_count;  /* compressed responses in progress */
	struct vdi_gzip_writer	*gzip_writer; /* for compressed watches; NULL until the first */

	/* Guarded by lock. */
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
	struct vdi_request_logs	      *request_logs;
	struct vdi_garbage_collector  *garbage_collector; /* NULL: none */
	struct vdi_controller_metrics *controller_metrics;
	struct vdi_work_queue	       work; /* work that would block a loop */
	struct vdi_work_queue searches; /* searches of lists; separate, so that writes do not wait for them */
	struct vdi_namespace_controller *namespace_controller; /* fixed at the start; NULL: none */
	vd_dur write_limit; /* of requests that write one object: VDI_HTTP_WRITE_LIMIT, upstream's 34 s */
	int    listen_fd;
	char  *listen_path; /* of a Unix socket; NULL: none */
	char   address[128];

	/* Any thread. */
	_Atomic int64_t	 connections_open;
	_Atomic int64_t	 requests_open;
	_Atomic uint32_t loop_next;
	_Atomic bool	 draining;
	_Atomic bool	 is_unready; /* draining is about to start */
	_Atomic uint64_t ping;	     /* raised by a thread that checks whether all loops respond */
	_Atomic bool	 started;
	_Atomic uint64_t watches_open;
	_Atomic uint64_t request_total;
	_Atomic uint64_t refused_total;
	_Atomic uint64_t watch_event_total;

	struct vdi_accounts accounts; /* has its own lock */
	/* fixed: handles complete requests, on the loop's thread */
	void (*dispatch)(struct vdi_request *request);

	/* Guarded by lock. changed: the last connection, or the last cache, has ended. */
	struct vdi_lock	     lock;
	struct vdi_condition changed;
	struct vdi_security *security;	/* the newest; each loop has its own reference */
	uint64_t	     pool_pong; /* last ping that the env's threads have answered */
	struct vd_actor	    *heartbeat; /* answers pings on the env's threads */
	struct vdi_kinds     kinds;	/* see kinds.h */
};

/* ---- http_loop.c ---- */

VDI_MUST_USE vd_status vdi_http_loop_init(struct vdi_http_loop *loop, struct vd_server *server);
/* All connections must be closed. */
void vdi_http_loop_fini(struct vdi_http_loop *loop);
/* Any thread. */
void vdi_http_loop_accept(struct vdi_http_loop *loop);
void vdi_http_loop_drain(struct vdi_http_loop *loop);
void vdi_http_loop_close_all(struct vdi_http_loop *loop);
/* Asks the loop to answer the server's ping. */
void vdi_http_loop_ping(struct vdi_http_loop *loop);
/* The server has a new security snapshot or a new set of kinds. */
void vdi_http_loop_reload(struct vdi_http_loop *loop);
/* On the loop's thread, before a request is handled: takes the newest set, even if the loop was not notified
 * yet, so that all loops serve the same kinds. */
void vdi_http_loop_freshen(struct vdi_http_loop *loop);
void vdi_http_loop_complete(struct vdi_http_loop *loop, struct vdi_request *request);
/* On the loop's thread: sets the actor's timer to the earliest deadline. */
void vdi_http_loop_arm(struct vdi_http_loop *loop);
/* Borrowed for the loop's lifetime. NULL: out of memory. */
struct vdi_gzip_writer *vdi_http_loop_gzip_writer(struct vdi_http_loop *loop);
/* Returns "Date: ...\r\n", valid until the next call. */
const char *vdi_http_loop_date(struct vdi_http_loop *loop);

/* ---- http_connection.c: on the loop's thread ---- */

/* Takes over fd, also on failure. */
void vdi_http_connection_open(struct vdi_http_loop *loop, int fd);
/* The connection stays allocated until the next run of the loop's actor. */
void vdi_http_connection_close(struct vdi_http_connection *connection);
void vdi_http_connection_free(struct vdi_http_connection *connection);
/* The deadline of the connection's state has passed. */
void vdi_http_connection_expire(struct vdi_http_connection *connection);
void vdi_http_connection_drain(struct vdi_http_connection *connection);
/* Pumps the connection's stream again. */
void vdi_http_connection_pump(struct vdi_http_connection *connection);

/* Sends without blocking. VD_OK: all bytes; VD_AGAIN: *ret_sent bytes; VD_IO. */
VDI_MUST_USE vd_status vdi_http_connection_send(struct vdi_http_connection *connection,
						const struct iovec *parts, size_t count, size_t *ret_sent);
/* Sends a response of known size; bytes that the socket does not take are buffered. body may be empty. Ends
 * the request. */
void vdi_http_connection_answer(struct vdi_http_connection *connection, struct vd_bytes head,
				struct vd_bytes body);
/* Limits the request in progress: it is answered 504 after timeout, and a response that is not sent by then
 * is aborted. */
void vdi_http_connection_limit(struct vdi_http_connection *connection, vd_dur timeout);
/* Gives stream to the connection, which pumps it until it is done; ends the request. */
void vdi_http_connection_stream(struct vdi_http_connection *connection, struct vdi_http_stream *stream);
/* The stream has data again. */
void vdi_http_stream_kick(struct vdi_http_connection *connection);

#endif
