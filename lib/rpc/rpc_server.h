/* Serving remote calls: accept, receive, queue a message, end. The etcd server sits on this and knows nothing
 * of gRPC.
 *
 * Threads: handlers are called on a thread of the transport, one at a time for one call; they must not block
 * and should hand work over (an actor). All functions may be called from any thread and none blocks.
 *
 * Life of a call: accepted (the service sees method, peer, metadata) -> messages arrive one for each
 * vdi_rpc_server_receive -> the service sends any number and finishes with a status -> ended, exactly once,
 * whoever ended it (client gone, deadline, finish). After ended the service frees the call; until then
 * everything may still be called and is ignored where it is too late.
 *
 * Freeing: the server's close is not done before each call was freed, so nothing of the server is ever gone
 * under a call.
 *
 * Bounds: each call has at most send_bytes_max of unsent messages: beyond it vdi_rpc_server_send answers
 * VD_FULL and writable() comes when half of it is free again, so a client that does not read costs that much
 * and no more. One message larger than that passes when nothing else is queued. All calls together have
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
	/* A new call. Sets the call's arg (vdi_rpc_server_call_set_arg) and asks for messages. method and
	 * metadata are lent for the call's life. */
	void (*accepted)(void *arg, struct vdi_rpc_server_call *call, const char *method);
	/* message->bytes.data NULL: the client has half-closed. Taken over. */
	void (*message)(void *call_arg, struct vdi_rpc_server_call *call, struct vdi_rpc_message *message);
	/* Room again after VD_FULL. */
	void (*writable)(void *call_arg, struct vdi_rpc_server_call *call);
	/* Exactly once, the last of all. cancelled: the client did not wait for the status. */
	void (*ended)(void *call_arg, struct vdi_rpc_server_call *call, bool cancelled);
};

#define VDI_RPC_STREAMS_PER_QUEUE 500

/* A plain HTTP request that came to an address for calls, without its body (passed over). The transport's but
 * for what the service does with it:
 *
 *   http handler -> the service fills the second part -> answer
 *
 * answer: any thread, exactly once, inside the handler or later; nothing of it may be touched then. The
 * transport adds Date, Content-Length and Connection, and leaves out the body where the method was HEAD. Who
 * asked may be gone by then. The server's close waits for it as for a call. */
struct vdi_rpc_http {
	/* The request. */
	enum vdi_http_method method;
	/* before '?', still encoded; from HTTP/1.x strict (http_parser.h), from HTTP/2 anything */
	struct vd_bytes path;
	struct vd_bytes query;
	bool		is_tls;
	/* The answer: the handler finds 200 and empty buffers with their bounds. A buffer that failed is
	 * answered as 503. */
	int		  code;
	struct vdi_buffer headers; /* lines: "Name: value\r\n" */
	struct vdi_buffer body;
	bool		  closes; /* the connection, of HTTP/1.x */
	void (*answer)(struct vdi_rpc_http *http);
};

struct vdi_rpc_server_options {
	const char *const		*listen; /* addr:port (port 0 chooses), or unix:/path */
	size_t				 listen_count;
	const struct vdi_rpc_server_tls *tls;		   /* NULL: plain text */
	size_t				 receive_size_max; /* request limit + 512 KiB (E-150) */
	size_t				 send_bytes_max; /* unsent bytes of one call; default 4 MiB when 0 */
	/* What all connections together may hold: calls under way and what has come in of messages that the
	 * service does not have yet. 1 GiB when 0; beyond it calls end with VDI_RPC_RESOURCE_EXHAUSTED or are
	 * reset. A stream itself counts: some 2 KiB; 15 KiB with gRPC's core, which looks at receive_size_max
	 * only when a message is complete, so that this bounds a client that sends one without an end. */
	size_t memory_max;
	/* What unsent messages of all calls together may hold; bytes that several share count once. 1 GiB
	 * when 0. Beyond it a message of a stream is VD_FULL, and an answer ends its call with
	 * VDI_RPC_RESOURCE_EXHAUSTED; from three quarters on, calls whose clients do not read are cut, which
	 * gRPC's clients call the same. Not with gRPC's core. */
	size_t	 unsent_max;
	unsigned streams_max; /* of one connection; 0: no bound */
	unsigned threads;     /* of connections, or with gRPC's core of unary calls; 0: chosen */
	/* Methods that are long streams, lent for ever: their clients hear our headers at once. With gRPC's
	 * core these get queues and threads of their own, one for each VDI_RPC_STREAMS_PER_QUEUE of them.
	 * Others, unknown ones too, work as well. */
	const char *const *stream_methods;
	size_t		   stream_method_count;
	/* Methods of one request and one answer that come often, lent for ever. With gRPC's core they cost
	 * less, and that their client is gone is heard when they are answered. */
	const char *const		     *unary_methods;
	size_t				      unary_method_count;
	vd_dur				      ping_interval_min; /* E-151: 5 s */
	vd_dur				      keepalive_time;	 /* 2 h */
	vd_dur				      keepalive_timeout; /* 20 s */
	const struct vdi_rpc_server_handlers *handlers;		 /* lent for ever */
	void				     *arg;		 /* of accepted, and of http */
	/* NULL: the addresses are for calls only. Else they answer HTTP/1.x too, and HTTP/2 over TLS that is
	 * no call: the first bytes decide, or ALPN. On a thread of the transport; must not block. With gRPC's
	 * core nothing of the kind ever comes. */
	void (*http)(void *arg, struct vdi_rpc_http *http);
	/* Of our own HTTP/2 only: for TLS and the first bytes, for SETTINGS, for a request's head from its
	 * first byte on (0: 20 s); between requests of HTTP/1.x (0: 5 min). */
	vd_dur settle_timeout;
	vd_dur idle_timeout;
};

/* First member of every transport's calls, below of its servers. */
struct vdi_rpc_server_call {
	const struct vdi_rpc_server_call_ops *ops;
};

/* What a service may do with a call. Any thread, until the call is freed; what comes too late is ignored. */
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

/* "127.0.0.1:2379", the real port; lent. */
static inline const char *vdi_rpc_server_address(const struct vdi_rpc_server *server, size_t index)
{
	return server->ops->address(server, index);
}
/* No new calls (GOAWAY); running ones go on. Idempotent. */
static inline void vdi_rpc_server_drain(struct vdi_rpc_server *server)
{
	server->ops->drain(server);
}
/* Ends what is left with VDI_RPC_UNAVAILABLE, and after a short time for that to arrive cuts; done when the
 * last call has been freed and the memory is gone. */
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
/* The first value of that key; false: none. Lent for the call's life. */
static inline bool vdi_rpc_server_call_metadata(const struct vdi_rpc_server_call *call, const char *key,
						struct vd_bytes *ret_value)
{
	return call->ops->metadata(call, key, ret_value);
}
/* Common name of the verified client certificate; "" when there is none. */
static inline const char *vdi_rpc_server_call_common_name(const struct vdi_rpc_server_call *call)
{
	return call->ops->common_name(call);
}
/* Asks for one more message. */
static inline void vdi_rpc_server_receive(struct vdi_rpc_server_call *call)
{
	call->ops->receive(call);
}
/* Queues one message: head (copied, at most 32 bytes) followed by the blob (a reference is taken; may be
 * NULL). VD_FULL: nothing was queued. VD_CLOSED: too late. */
VDI_MUST_USE static inline vd_status vdi_rpc_server_send(struct vdi_rpc_server_call *call,
							 struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	return call->ops->send(call, head, blob);
}
/* The whole answer of a unary call: this message and VDI_RPC_OK, like send and finish but cheaper. VD_CLOSED:
 * too late. */
VDI_MUST_USE static inline vd_status vdi_rpc_server_answer(struct vdi_rpc_server_call *call,
							   struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	return call->ops->answer(call, head, blob);
}
/* Status after everything queued. Idempotent: the first one counts; message is copied (cut to
 * VDI_RPC_STATUS_SIZE_MAX). */
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
