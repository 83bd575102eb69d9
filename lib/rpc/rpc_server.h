/* Serving remote calls: accept, receive, queue a message, end. The etcd server uses it and is independent of
 * gRPC.
 *
 * Threads: handlers are called on a thread of the transport, one at a time per call; they must not block and
 * should pass work on (to an actor). All functions may be called from any thread and none blocks.
 *
 * Life of a call: accepted (the service sees method, peer, metadata) -> one message arrives per
 * vdi_rpc_server_receive -> the service sends any number of messages and finishes with a status -> ended,
 * exactly once, whatever the reason (client gone, deadline, finish). After ended the service frees the call;
 * until then all functions may be called, and have no effect if it is too late.
 *
 * The server's close completes only after each call was freed, so a call never outlives the server.
 *
 * Bounds: each call has at most send_bytes_max of unsent messages. Beyond that vdi_rpc_server_send returns
 * VD_FULL, and writable() is called when half of it is free again, so the memory for a client that does not
 * read is bounded. One larger message is accepted if no other is queued. All calls together are bounded by
 * unsent_max.
 */
#ifndef VDI_RPC_SERVER_H
#define VDI_RPC_SERVER_H

#include "buffer.h"
#include "http_parser.h"
#include "rpc_blob.h"
#include "rpc_client.h"

struct vdi_rpc_server_call;

struct vdi_rpc_server_handlers {
	/* A new call. Sets the call's arg (vdi_rpc_server_call_set_arg) and requests messages. method and
	 * metadata are borrowed for the life of the call. */
	void (*accepted)(void *arg, struct vdi_rpc_server_call *call, const char *method);
	/* message->bytes.data NULL: the client has half-closed. Taken over. */
	void (*message)(void *call_arg, struct vdi_rpc_server_call *call, struct vdi_rpc_message *message);
	/* After VD_FULL: there is room again. */
	void (*writable)(void *call_arg, struct vdi_rpc_server_call *call);
	/* Exactly once, the last callback. cancelled: the client did not receive the status. */
	void (*ended)(void *call_arg, struct vdi_rpc_server_call *call, bool cancelled);
};

#define VDI_RPC_STREAMS_PER_QUEUE 500

/* A plain HTTP request on an address for calls, without its body (which is skipped). It belongs to the
 * transport, except for what the service does with it:
 *
 *   http handler -> the service fills the second part -> answer
 *
 * The service calls answer exactly once, on any thread, inside the handler or later, and must not access the
 * request afterwards. The transport adds Date, Content-Length and Connection, and omits the body if the
 * method was HEAD. The client may be gone by then. The server's close waits for the request as for a call. */
struct vdi_rpc_http {
	/* The request. */
	enum vdi_http_method method;
	/* before '?', still encoded; strict with HTTP/1.x (http_parser.h), unchecked with HTTP/2 */
	struct vd_bytes path;
	struct vd_bytes query;
	bool		is_tls;
	/* The response: preset to 200 and empty buffers with their limits. A buffer that failed becomes a
	 * 503. */
	int		  code;
	struct vdi_buffer headers; /* lines: "Name: value\r\n" */
	struct vdi_buffer body;
	bool		  closes; /* close the connection of HTTP/1.x */
	void (*answer)(struct vdi_rpc_http *http);
};

struct vdi_rpc_server_options {
	const char *const		*listen; /* addr:port (port 0: chosen by the system), or unix:/path */
	size_t				 listen_count;
	const struct vdi_rpc_server_tls *tls;		   /* NULL: plain text */
	size_t				 receive_size_max; /* etcd: maximum request plus 512 KiB */
	size_t				 send_bytes_max;   /* maximum unsent bytes of one call; 0: 4 MiB */
	/* Maximum memory of all connections together: open calls, and received parts of messages that the
	 * service does not have yet. 0: 1 GiB; beyond it calls end with VDI_RPC_RESOURCE_EXHAUSTED or are
	 * reset. A stream counts some 2 KiB; 15 KiB with gRPC C core, which checks receive_size_max only when
	 * a message is complete, so that this limit bounds a client that sends a message without end. */
	size_t memory_max;
	/* Maximum unsent bytes of all calls together; bytes that several messages share count once. 0: 1 GiB.
	 * Beyond it a message of a stream gets VD_FULL, and a response ends its call with
	 * VDI_RPC_RESOURCE_EXHAUSTED; from three quarters on, calls whose clients do not read are ended,
	 * which gRPC clients report as the same status. Ignored by gRPC C core. */
	size_t	 unsent_max;
	unsigned streams_max; /* per connection; 0: unlimited */
	unsigned threads;     /* for connections, with gRPC C core for unary calls; 0: chosen */
	/* Methods that are long streams, literals: their clients get the response headers at once. With gRPC
	 * C core they have their own queues and threads, one per VDI_RPC_STREAMS_PER_QUEUE streams. Other
	 * methods, also unknown ones, work too. */
	const char *const *stream_methods;
	size_t		   stream_method_count;
	/* Frequent methods with one request and one response, literals. With gRPC C core they cost less, but
	 * a lost client is noticed only when they are answered. */
	const char *const		     *unary_methods;
	size_t				      unary_method_count;
	vd_dur				      ping_interval_min; /* etcd: 5 s */
	vd_dur				      keepalive_time;	 /* etcd: 2 h */
	vd_dur				      keepalive_timeout; /* etcd: 20 s */
	const struct vdi_rpc_server_handlers *handlers;		 /* literals */
	void				     *arg;		 /* argument of accepted and http */
	/* NULL: the addresses serve calls only. Else they also answer HTTP/1.x, and HTTP/2 over TLS that is
	 * not a call; the first bytes or ALPN decide. Called on a thread of the transport; must not block.
	 * Never called with gRPC C core. */
	void (*http)(void *arg, struct vdi_rpc_http *http);
	/* Our own HTTP/2 only: maximum time for TLS and the first bytes, for SETTINGS, and for a request's
	 * head from its first byte (0: 20 s); between requests of HTTP/1.x (0: 5 min). */
	vd_dur settle_timeout;
	vd_dur idle_timeout;
};

/* First member of the calls of every transport; the same for servers below. */
struct vdi_rpc_server_call {
	const struct vdi_rpc_server_call_ops *ops;
};

/* The functions of a call. Any thread, until the call is freed; without effect if too late. */
struct vdi_rpc_server_call_ops {
	void (*set_arg)(struct vdi_rpc_server_call *call, void *call_arg);
	const char *(*peer)(const struct vdi_rpc_server_call *call);
	bool (*metadata)(const struct vdi_rpc_server_call *call, const char *key, struct vd_bytes *ret_value);
	const char *(*common_name)(const struct vdi_rpc_server_call *call);
	void (*receive)(struct vdi_rpc_server_call *call);
	vd_status (*send)(struct vdi_rpc_server_call *call, struct vd_bytes head, struct vdi_rpc_blob *blob);
	vd_status (*answer)(struct vdi_rpc_server_call *call, struct vd_bytes head,
			    struct vdi_rpc_blob *blob);
	void (*finish)(struct vdi_rpc_server_call *call, int code, const char *message);
	void (*free)(struct vdi_rpc_server_call *call);
};

struct vdi_rpc_server {
	const struct vdi_rpc_server_ops *ops;
};

struct vdi_rpc_server_ops {
	const char *(*address)(const struct vdi_rpc_server *server, size_t index);
	void (*drain)(struct vdi_rpc_server *server);
	void (*close)(struct vdi_rpc_server *server, void (*done)(void *arg), void *arg);
};

/* "127.0.0.1:2379", with the real port; borrowed. */
static inline const char *vdi_rpc_server_address(const struct vdi_rpc_server *server, size_t index)
{
	return server->ops->address(server, index);
}
/* Accepts no new calls (GOAWAY); open ones continue. Idempotent. */
static inline void vdi_rpc_server_drain(struct vdi_rpc_server *server)
{
	server->ops->drain(server);
}
/* Ends the open calls with VDI_RPC_UNAVAILABLE, and cuts connections if the status is not sent in a short
 * time. done is called when the last call has been freed and the memory is freed. */
static inline void vdi_rpc_server_close(struct vdi_rpc_server *server, void (*done)(void *arg), void *arg)
{
	server->ops->close(server, done, arg);
}

static inline void vdi_rpc_server_call_set_arg(struct vdi_rpc_server_call *call, void *call_arg)
{
	call->ops->set_arg(call, call_arg);
}
static inline const char *vdi_rpc_server_call_peer(const struct vdi_rpc_server_call *call)
{
	return call->ops->peer(call);
}
/* Returns the first value of that key; false: none. Borrowed for the life of the call. */
static inline bool vdi_rpc_server_call_metadata(const struct vdi_rpc_server_call *call, const char *key,
						struct vd_bytes *ret_value)
{
	return call->ops->metadata(call, key, ret_value);
}
/* Common name of the verified client certificate; "" if there is none. */
static inline const char *vdi_rpc_server_call_common_name(const struct vdi_rpc_server_call *call)
{
	return call->ops->common_name(call);
}
/* Requests one more message. */
static inline void vdi_rpc_server_receive(struct vdi_rpc_server_call *call)
{
	call->ops->receive(call);
}
/* Queues one message: head (copied, at most 32 bytes) followed by the blob (a reference is taken; may be
 * NULL). VD_FULL: not queued. VD_CLOSED: the call has ended or is finished. */
VDI_MUST_USE static inline vd_status vdi_rpc_server_send(struct vdi_rpc_server_call *call,
							 struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	return call->ops->send(call, head, blob);
}
/* Sends the whole response of a unary call, this message and VDI_RPC_OK; like send and finish but cheaper.
 * VD_CLOSED: the call has ended or is finished. */
VDI_MUST_USE static inline vd_status vdi_rpc_server_answer(struct vdi_rpc_server_call *call,
							   struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	return call->ops->answer(call, head, blob);
}
/* Ends the call with a status after everything queued. Idempotent: the first one counts; message is copied
 * (cut to VDI_RPC_STATUS_SIZE_MAX). */
#define VDI_RPC_STATUS_SIZE_MAX 1024
static inline void vdi_rpc_server_finish(struct vdi_rpc_server_call *call, int code, const char *message)
{
	call->ops->finish(call, code, message);
}
/* After ended, once. */
static inline void vdi_rpc_server_call_free(struct vdi_rpc_server_call *call)
{
	call->ops->free(call);
}

#endif
