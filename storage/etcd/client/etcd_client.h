/* The internal interface of an etcd client for its files: calls, streams, parts.
 *
 * A client is a transport (rpc_client.h), an actor and a lock. Any thread may start calls. The transport's
 * thread hands over results; the actor decodes them, repeats calls where allowed, and runs the users'
 * callbacks. Nothing here blocks.
 *
 * In the order of locks, the client's (VDI_LOCK_ETCD_CLIENT) is between that of a watch (VDI_LOCK_ETCD_WATCH,
 * which may be held while calling these functions) and the transport's own (VDI_LOCK_ETCD_CHANNEL and later
 * ones). No callback is called with it held.
 *
 * Lifetime: OPEN --vd_etcd_close--> CLOSING (calls are canceled, parts close) --all have ended--> the
 * transport closes --> the actor ends --> freed.
 */
#ifndef VDI_ETCD_CLIENT_H
#define VDI_ETCD_CLIENT_H

#include <vedette/etcd.h>

#include "base.h"
#include "etcd_methods.h"
#include "rpc_client.h"

/* Version of etcd's API that this client reports in its metadata. */
#define VDI_ETCD_API_MAJOR 3
#define VDI_ETCD_API_MINOR 7

/* Makes a client over any transport: vd_etcd_open passes gRPC, tests a scripted one. transport is taken over
 * on VD_OK only; NULL: the caller sets it before the first use, or discards the client. options are checked
 * as clientv3 does, and copied. VD_INVALID_ARGUMENT, VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_etcd_new(const struct vd_env *env, const struct vd_etcd_options *options,
				    struct vdi_rpc_client *transport, struct vd_etcd **ret_client,
				    struct vd_error *reterr);
/* Frees a client that never had a transport. Does not block; vd_env_free may follow at once. */
void vdi_etcd_discard(struct vd_etcd *client);

/* vd_etcd_open for a client that is part of another object, which closes it. */
VDI_MUST_USE vd_status vdi_etcd_open(const struct vd_env *env, const struct vd_etcd_options *options,
				     struct vd_etcd **ret_client, struct vd_error *reterr);
/* Checks options, as far as possible without files or a network. */
VDI_MUST_USE vd_status vdi_etcd_check_options(const struct vd_etcd_options *options, struct vd_error *reterr);

const struct vd_env *vdi_etcd_env(const struct vd_etcd *client);
size_t		     vdi_etcd_watch_buffer_bytes(const struct vd_etcd *client);
/* Returns the counter of the client's watches, borrowed; NULL: they are not counted. */
struct vdi_usage *vdi_etcd_usage(const struct vd_etcd *client);
/* Returns a random duration within 10 % of wait, uniformly distributed. */
vd_dur vdi_etcd_jitter(const struct vd_etcd *client, vd_dur wait);

/* ---- Streams ----
 *
 * A transport's stream with the client's metadata (client-api-version, hasleader, token). If the client has a
 * user, a token is fetched first, because tokens expire; messages and requests are kept until then. Streams
 * are not repeated: the owner decides what to do after an end.
 *
 * Handlers have the contract of the transport's handlers (opened, then messages, exactly one ended; they hand
 * over and do no work). They run on the transport's thread or, if the stream could not be opened, on the
 * client's actor, with the code and message of the failure (authentication, old cluster, no memory:
 * VDI_RPC_RESOURCE_EXHAUSTED and local). *ret_stream is written before any handler is called.
 *
 * message(), send, receive, half_close, cancel: any thread, also inside handlers, until free. free: after
 * ended or inside it, once. */

struct vdi_etcd_stream;

struct vdi_etcd_stream_request {
	enum vdi_etcd_method	   method;
	bool			   require_leader; /* end the stream if the member has no leader */
	const struct vd_etcd_pair *metadata;	   /* copied */
	size_t			   metadata_count;
	struct vd_bytes		   message; /* copied; with half_close: the only message */
	bool			   half_close;
	vd_mono			   due;	     /* VD_NEVER or zero: no deadline */
	const char		  *endpoint; /* this endpoint of the list; NULL: any */
};

/* Opens a stream. Neither waits nor calls a handler. On VD_CLOSED, VD_NOMEM and VD_INVALID_ARGUMENT (no such
 * endpoint) no handler is called. */
VDI_MUST_USE vd_status vdi_etcd_stream_open(struct vd_etcd			 *client,
					    const struct vdi_etcd_stream_request *request,
					    const struct vdi_rpc_stream_handlers *handlers, void *arg,
					    struct vdi_etcd_stream **ret_stream);
/* Sends a copy of message, in order. VD_NOMEM: not sent. After the end: dropped. */
VDI_MUST_USE vd_status vdi_etcd_stream_send(struct vdi_etcd_stream *stream, struct vd_bytes message);
/* Requests one more message; at most one request may be outstanding. */
void vdi_etcd_stream_receive(struct vdi_etcd_stream *stream);
void vdi_etcd_stream_half_close(struct vdi_etcd_stream *stream);
/* Cancels the stream; ended follows, with VDI_RPC_CANCELED unless the stream has already ended otherwise.
 * Idempotent. */
void vdi_etcd_stream_cancel(struct vdi_etcd_stream *stream);
void vdi_etcd_stream_free(struct vdi_etcd_stream *stream);

/* ---- Parts ----
 *
 * What lives as long as the client and has streams or an actor of its own: the watcher, the lease keeper. A
 * part is made when it is first asked for and is closed by the client's close. */

enum vdi_etcd_part_kind { VDI_ETCD_PART_WATCH, VDI_ETCD_PART_LEASE, VDI_ETCD_PART_COUNT };

struct vdi_etcd_part {
	/* Called once, on the client's actor, when the client closes: must end everything (VD_CLOSED), cancel
	 * and free all streams, then call done(arg) from any thread, and not use the client after that. New
	 * streams and calls are already refused. */
	void (*close)(struct vdi_etcd_part *part, void (*done)(void *arg), void *arg);
};

/* Returns the client's part of that kind. If there is none, make is called with the client's lock held; it
 * allocates and creates an actor, nothing else. Valid until its close. VD_CLOSED: the client is closing; else
 * the error of make. */
VDI_MUST_USE vd_status vdi_etcd_part_get(struct vd_etcd *client, enum vdi_etcd_part_kind kind,
					 vd_status (*make)(struct vd_etcd	 *client,
							   struct vdi_etcd_part **ret_part),
					 struct vdi_etcd_part **ret_part);

#endif
