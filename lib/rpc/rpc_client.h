/* Remote calls, as the etcd client needs them: unary calls and streams of messages over one or several
 * endpoints.
 *
 * Three implementations: our own over HTTP/2 (lib/rpc/http2), gRPC C core (lib/rpc/grpc), and, for tests, a
 * scripted peer in the simulator (tests/support). Nothing above this header knows of any of them.
 *
 * Threads: every function may be called from any thread; none blocks. Callbacks come from a thread of the
 * transport (each client has one), one at a time for one call or stream; they must not block, do no work
 * beyond handing the result over (a queue and vd_actor_wake), and may call into the transport.
 *
 * The contract of vedette/store.h holds: an error returned means no callback; VD_OK means exactly one end.
 *
 * Balancing (E-205): a call without an endpoint of its own goes to the next READY connection, round robin.
 * When none is ready it waits for one (wait-for-ready, E-201), at most until its timeout. A stream stays
 * where it was opened.
 */
#ifndef VDI_RPC_CLIENT_H
#define VDI_RPC_CLIENT_H

#include "base.h"
#include "rpc_tls.h"

struct vdi_rpc_client;
struct vdi_rpc_call;
struct vdi_rpc_stream;

/* gRPC's numbers. */
enum vdi_rpc_code {
	VDI_RPC_OK = 0,
	VDI_RPC_CANCELED = 1,
	VDI_RPC_UNKNOWN = 2,
	VDI_RPC_INVALID_ARGUMENT = 3,
	VDI_RPC_DEADLINE_EXCEEDED = 4,
	VDI_RPC_NOT_FOUND = 5,
	VDI_RPC_PERMISSION_DENIED = 7,
	VDI_RPC_RESOURCE_EXHAUSTED = 8,
	VDI_RPC_FAILED_PRECONDITION = 9,
	VDI_RPC_OUT_OF_RANGE = 11,
	VDI_RPC_UNIMPLEMENTED = 12,
	VDI_RPC_INTERNAL = 13,
	VDI_RPC_UNAVAILABLE = 14,
	VDI_RPC_DATA_LOSS = 15,
	VDI_RPC_UNAUTHENTICATED = 16,
};

/* One received message. Whoever holds it calls release once, on any thread. */
struct vdi_rpc_message {
	struct vd_bytes bytes;
	void	       *owner;
	void (*release)(void *owner); /* NULL: nothing to give back */
};
static inline void vdi_rpc_message_release(struct vdi_rpc_message *message)
{
	if (message->release)
		message->release(message->owner);
	*message = (struct vdi_rpc_message) { 0 };
}

/* Lent for the callback. */
struct vdi_rpc_end {
	int	    code;     /* enum vdi_rpc_code or another number of the peer's */
	const char *message;  /* the peer's words, or the transport's; never NULL; NUL-terminated */
	const char *endpoint; /* as configured; "" when none was reached */
	/* not OK, and the request certainly never left this process: repeating it cannot do anything twice */
	bool unsent;
	bool local; /* this side's own doing: canceled, timeout, closed */
};

struct vdi_rpc_metadata {
	const char     *key; /* lower case */
	struct vd_bytes value;
};

#define VDI_RPC_ANY_ENDPOINT (-1)

struct vdi_rpc_request {
	const char		      *method;	 /* "/etcdserverpb.KV/Range"; lent for ever: a literal */
	const struct vdi_rpc_metadata *metadata; /* borrowed for the call, like message */
	size_t			       metadata_count;
	struct vd_bytes message; /* of a unary call, or the only one of a server stream (with half_close) */
	bool		half_close; /* stream: message is sent at once and is the last one */
	vd_dur		timeout;    /* 0: none */
	int		endpoint;   /* index into the list, or VDI_RPC_ANY_ENDPOINT */
};

/* message is filled with VDI_RPC_OK only; the callee takes it over. */
typedef void (*vdi_rpc_done_fn)(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message);

struct vdi_rpc_stream_handlers {
	/* The stream has a connection and its metadata is on its way. At most once, before everything
	 * else. */
	void (*opened)(void *arg, const char *endpoint);
	/* One message for one vdi_rpc_stream_receive; taken over. */
	void (*message)(void *arg, struct vdi_rpc_message *message);
	/* Exactly once, after the last message; nothing comes after it. A clean end of the peer is
	 * VDI_RPC_OK. */
	void (*ended)(void *arg, const struct vdi_rpc_end *end);
};

struct vdi_rpc_endpoint_state {
	const char *endpoint; /* lent until the list is replaced */
	bool	    ready;
	char last_error[256]; /* why the last attempt failed; empty: none has failed since it was ready */
};

struct vdi_rpc_client_ops {
	/* ret_call (may be NULL) is good until done has been called; only for cancel. */
	vd_status (*call)(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
			  vdi_rpc_done_fn done, void *arg, struct vdi_rpc_call **ret_call);
	/* done follows, with VDI_RPC_CANCELED unless the result was on its way. Must not race with the end of
	 * done. */
	void (*call_cancel)(struct vdi_rpc_call *call);

	vd_status (*stream_open)(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
				 const struct vdi_rpc_stream_handlers *handlers, void *arg,
				 struct vdi_rpc_stream **ret_stream);
	/* Queued in order behind earlier ones, also before opened; copied. After the end: dropped.
	 * VD_NOMEM. */
	vd_status (*stream_send)(struct vdi_rpc_stream *stream, struct vd_bytes message);
	/* Asks for one more message; not asking is back-pressure to the peer. At most one is asked for at a
	 * time. */
	void (*stream_receive)(struct vdi_rpc_stream *stream);
	void (*stream_half_close)(struct vdi_rpc_stream *stream);
	/* ended follows. Idempotent. */
	void (*stream_cancel)(struct vdi_rpc_stream *stream);
	/* After ended, or never opened. Also inside ended. */
	void (*stream_free)(struct vdi_rpc_stream *stream);

	/* Replaces the endpoints; streams on removed ones end with VDI_RPC_UNAVAILABLE. VD_INVALID_ARGUMENT
	 * names the bad one. */
	vd_status (*set_endpoints)(struct vdi_rpc_client *client, const char *const *endpoints, size_t count,
				   struct vd_error *reterr);
	size_t (*endpoint_count)(struct vdi_rpc_client *client);
	/* false: no such index. */
	bool (*endpoint_state)(struct vdi_rpc_client *client, size_t index,
			       struct vdi_rpc_endpoint_state *ret_state);
	/* Ends everything (calls and streams end with VDI_RPC_CANCELED, "grpc: the client connection is
	 * closing"); done when no callback will come any more and the memory is gone. Streams must have been
	 * freed by their owners, at the latest inside ended. */
	void (*close)(struct vdi_rpc_client *client, void (*done)(void *arg), void *arg);
};

/* First member of every implementation; likewise of calls and streams. */
struct vdi_rpc_client {
	const struct vdi_rpc_client_ops *ops;
};
struct vdi_rpc_call {
	struct vdi_rpc_client *client;
};
struct vdi_rpc_stream {
	struct vdi_rpc_client *client;
};

/* ---- What a transport makes a client of (rpc_transport.h) ----
 *
 * One connection for each endpoint, so that TLS checks each endpoint's own name and a maintenance call can go
 * to exactly one of them. Endpoints (E-204): host:port, http://host:port, https://host:port, unix:path,
 * unixs:path. The scheme of the first decides for all. No http_proxy, no retries of what was sent, reconnect
 * back-off 100 ms to 2 s; keepalive pings never more often than every 5 s nor without calls. */

struct vdi_rpc_client_options {
	const char *const	 *endpoints;
	size_t			  endpoint_count;
	const struct vdi_rpc_tls *tls;		  /* NULL: as the scheme says, with the system's roots */
	vd_dur			  keepalive_time; /* 0: off */
	vd_dur			  keepalive_timeout;
	/* a larger message ends its call with VDI_RPC_RESOURCE_EXHAUSTED, "trying to send message larger than
	 * max (n vs. max)" */
	size_t send_size_max;
	size_t receive_size_max;
};

#endif
