/* Remote calls for the etcd client: unary calls and streams of messages over one or several endpoints.
 *
 * Three implementations: our own over HTTP/2 (lib/rpc/http2), gRPC C core (lib/rpc/grpc), and, for tests, a
 * scripted peer in the simulator (tests/support). Code above this header does not depend on any of them.
 *
 * Threads: every function may be called from any thread; none blocks. Callbacks run on a thread of the
 * transport (each client has one), one at a time per call or stream. They must not block, should only pass
 * the result on (a queue and vd_actor_wake), and may call the transport.
 *
 * As in vedette/store.h, a function that returns an error calls no callback, and VD_OK means exactly one end.
 *
 * Load balancing (etcd's client does the same): a call without an endpoint of its own uses the next READY
 * connection, round robin. If none is ready, it waits for one (wait-for-ready), at most until its timeout. A
 * stream stays on the connection on which it was opened.
 */
#ifndef VDI_RPC_CLIENT_H
#define VDI_RPC_CLIENT_H

#include "base.h"
#include "rpc_tls.h"

struct vdi_rpc_client;
struct vdi_rpc_call;
struct vdi_rpc_stream;

/* gRPC's status codes. */
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

/* One received message. Its holder calls release once, on any thread. */
struct vdi_rpc_message {
	struct vd_bytes bytes;
	void	       *owner;
	void (*release)(void *owner); /* NULL: nothing to release */
};
static inline void vdi_rpc_message_release(struct vdi_rpc_message *message)
{
	if (message->release)
		message->release(message->owner);
	*message = (struct vdi_rpc_message) { 0 };
}

/* Borrowed for the callback. */
struct vdi_rpc_end {
	int	    code;     /* enum vdi_rpc_code, or another code from the peer */
	const char *message;  /* text of the peer or of the transport; never NULL; NUL-terminated */
	const char *endpoint; /* as configured; "" if none was reached */
	/* the call failed and its request was certainly not sent: a retry cannot apply it twice */
	bool unsent;
	bool local; /* ended by this side: canceled, timeout, closed */
};

struct vdi_rpc_metadata {
	const char     *key; /* lower case */
	struct vd_bytes value;
};

#define VDI_RPC_ANY_ENDPOINT (-1)

struct vdi_rpc_request {
	const char		      *method;	 /* "/etcdserverpb.KV/Range"; a literal */
	const struct vdi_rpc_metadata *metadata; /* borrowed for the call, like message */
	size_t			       metadata_count;
	/* request of a unary call, or single request of a server stream (with half_close) */
	struct vd_bytes message;
	bool		half_close; /* stream: message is sent at once and is the last one */
	vd_dur		timeout;    /* 0: none */
	int		endpoint;   /* index into the list, or VDI_RPC_ANY_ENDPOINT */
};

/* message is set with VDI_RPC_OK only; the callee takes it over. */
typedef void (*vdi_rpc_done_fn)(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message);

struct vdi_rpc_stream_handlers {
	/* The stream has a connection and its metadata is being sent. At most once, before all other
	 * callbacks. */
	void (*opened)(void *arg, const char *endpoint);
	/* One message per vdi_rpc_stream_receive; taken over. */
	void (*message)(void *arg, struct vdi_rpc_message *message);
	/* Exactly once, after the last message; the last callback. VDI_RPC_OK if the peer ended the stream
	 * normally. */
	void (*ended)(void *arg, const struct vdi_rpc_end *end);
};

struct vdi_rpc_endpoint_state {
	const char *endpoint; /* borrowed until the list is replaced */
	bool	    ready;
	char	    last_error[256]; /* reason of the last failed attempt; empty: none since it was ready */
};

struct vdi_rpc_client_ops {
	/* *ret_call (ret_call may be NULL) is valid until done returns; only for cancel. */
	vd_status (*call)(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
			  vdi_rpc_done_fn done, void *arg, struct vdi_rpc_call **ret_call);
	/* done follows, with VDI_RPC_CANCELED unless the result was on its way. The caller makes sure that
	 * done has not returned. */
	void (*call_cancel)(struct vdi_rpc_call *call);

	vd_status (*stream_open)(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
				 const struct vdi_rpc_stream_handlers *handlers, void *arg,
				 struct vdi_rpc_stream **ret_stream);
	/* Queues the message behind earlier ones, also before opened; copied. Dropped after the end.
	 * VD_NOMEM. */
	vd_status (*stream_send)(struct vdi_rpc_stream *stream, struct vd_bytes message);
	/* Requests one more message; at most one request may be outstanding. Without requests the peer gets
	 * back-pressure. */
	void (*stream_receive)(struct vdi_rpc_stream *stream);
	void (*stream_half_close)(struct vdi_rpc_stream *stream);
	/* ended follows. Idempotent. */
	void (*stream_cancel)(struct vdi_rpc_stream *stream);
	/* After ended (also inside it), or if the stream was never opened. */
	void (*stream_free)(struct vdi_rpc_stream *stream);

	/* Replaces the endpoints; streams on removed ones end with VDI_RPC_UNAVAILABLE. VD_INVALID_ARGUMENT
	 * names the invalid endpoint. */
	vd_status (*set_endpoints)(struct vdi_rpc_client *client, const char *const *endpoints, size_t count,
				   struct vd_error *reterr);
	size_t (*endpoint_count)(struct vdi_rpc_client *client);
	/* false: no such index. */
	bool (*endpoint_state)(struct vdi_rpc_client *client, size_t index,
			       struct vdi_rpc_endpoint_state *ret_state);
	/* Ends all calls and streams with VDI_RPC_CANCELED, "grpc: the client connection is closing"; done is
	 * called when no callback will follow and the memory is freed. Streams must be freed by their owners,
	 * at the latest inside ended. */
	void (*close)(struct vdi_rpc_client *client, void (*done)(void *arg), void *arg);
};

/* First member of every implementation; the same for calls and streams. */
struct vdi_rpc_client {
	const struct vdi_rpc_client_ops *ops;
};
struct vdi_rpc_call {
	struct vdi_rpc_client *client;
};
struct vdi_rpc_stream {
	struct vdi_rpc_client *client;
};

/* ---- Creating a client (rpc_transport.h) ----
 *
 * One connection per endpoint, so that TLS verifies each endpoint's own name and a maintenance call can use
 * exactly one of them. Endpoints have the forms of etcd's client: host:port, http://host:port,
 * https://host:port, unix:path, unixs:path. The scheme of the first one selects TLS for all. http_proxy is
 * ignored, sent requests are not retried, the reconnect back-off is 100 ms to 2 s; keepalive pings are sent
 * at most every 5 s and only while calls are open. */

struct vdi_rpc_client_options {
	const char *const	 *endpoints;
	size_t			  endpoint_count;
	const struct vdi_rpc_tls *tls;		  /* NULL: as the scheme says, with the system's roots */
	vd_dur			  keepalive_time; /* 0: disabled */
	vd_dur			  keepalive_timeout;
	/* a larger message ends its call with VDI_RPC_RESOURCE_EXHAUSTED, "trying to send message larger than
	 * max (n vs. max)" */
	size_t send_size_max;
	size_t receive_size_max;
};

#endif
