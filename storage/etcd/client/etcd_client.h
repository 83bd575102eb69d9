/* The inside of an etcd client, for the files that make it up: calls, streams, parts.
 *
 * A client is one transport (rpc_client.h), one actor and one lock. Calls may be started on any thread; the
 * transport's thread hands ends over, the actor decodes, repeats what may be repeated and runs the user's
 * callbacks. Nothing here blocks.
 *
 * The lock (VDI_LOCK_ETCD_CLIENT) stands between the watcher's (VDI_LOCK_ETCD_WATCH, which may be held while
 * calling in here) and the transport's own (VDI_LOCK_ETCD_CHANNEL and below). No callback is called with it
 * held.
 *
 * Life: OPEN --vd_etcd_close--> CLOSING (calls are canceled, parts close) --nothing left--> the transport
 * closes --> the actor ends --> gone.
 */
#ifndef VDI_ETCD_CLIENT_H
#define VDI_ETCD_CLIENT_H

#include <vedette/etcd.h>

#include "base.h"
#include "etcd_methods.h"
#include "rpc_client.h"

/* The version of the API that this client speaks (E-140). */
#define VDI_ETCD_API_MAJOR 3
#define VDI_ETCD_API_MINOR 7

/* A client over any transport: vd_etcd_open gives it gRPC, tests a scripted one. transport is taken over with
 * VD_OK only; NULL: the caller sets it before the first use, or discards the client. options are checked
 * (E-201, E-202) and copied. VD_INVALID_ARGUMENT, VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_etcd_new(const struct vd_env *env, const struct vd_etcd_options *options,
				    struct vdi_rpc_client *transport, struct vd_etcd **ret_client,
				    struct vd_error *reterr);
/* Frees a client that never had a transport. Does not block; a vd_env_free may follow at once. */
void vdi_etcd_discard(struct vd_etcd *client);

/* vd_etcd_open for what is closed together with something else. */
VDI_MUST_USE vd_status vdi_etcd_open(const struct vd_env *env, const struct vd_etcd_options *options,
				     struct vd_etcd **ret_client, struct vd_error *reterr);
/* What can be said about options without files or a network. */
VDI_MUST_USE vd_status vdi_etcd_check_options(const struct vd_etcd_options *options, struct vd_error *reterr);

const struct vd_env *vdi_etcd_env(const struct vd_etcd *client);
size_t		     vdi_etcd_watch_buffer_bytes(const struct vd_etcd *client);
/* What counts the client's watches; NULL: nothing does. Lent. */
struct vdi_usage *vdi_etcd_usage(const struct vd_etcd *client);
/* Uniform within 10 % of wait (E-201). */
vd_dur vdi_etcd_jitter(const struct vd_etcd *client, vd_dur wait);

/* ---- Streams ----
 *
 * A transport's stream with the client's metadata (client-api-version, hasleader, token). When the client has
 * a user, a token is fetched first (E-209: tokens expire); what is sent or asked for until then is kept. Not
 * repeated: the owner decides what an end means.
 *
 * Handlers are those of the transport, with its contract (opened, then messages, exactly one ended; handed
 * over, never worked on); they come on its thread or, when the stream could not be opened, on the client's
 * actor, with the code and words of what failed (authentication, old cluster, no memory:
 * VDI_RPC_RESOURCE_EXHAUSTED and local). *ret_stream is written before any handler is called.
 *
 * message(), send, receive, half_close, cancel: any thread, also inside handlers, until free. free: after
 * ended, also inside it; once. */

struct vdi_etcd_stream;

struct vdi_etcd_stream_request {
	enum vdi_etcd_method	   method;
	bool			   require_leader; /* E-140 */
	const struct vd_etcd_pair *metadata;	   /* copied */
	size_t			   metadata_count;
	struct vd_bytes		   message; /* copied; with half_close: the only one */
	bool			   half_close;
	vd_mono			   due;	     /* VD_NEVER or zero: no limit */
	const char		  *endpoint; /* exactly this one of the list; NULL: any */
};

/* Neither waits nor calls a handler. VD_CLOSED, VD_NOMEM, VD_INVALID_ARGUMENT (no such endpoint): no handler
 * follows. */
VDI_MUST_USE vd_status vdi_etcd_stream_open(struct vd_etcd			 *client,
					    const struct vdi_etcd_stream_request *request,
					    const struct vdi_rpc_stream_handlers *handlers, void *arg,
					    struct vdi_etcd_stream **ret_stream);
/* Copied, sent in order. VD_NOMEM: not sent. After the end: dropped. */
VDI_MUST_USE vd_status vdi_etcd_stream_send(struct vdi_etcd_stream *stream, struct vd_bytes message);
/* One more message; at most one is asked for at a time. */
void vdi_etcd_stream_receive(struct vdi_etcd_stream *stream);
void vdi_etcd_stream_half_close(struct vdi_etcd_stream *stream);
/* ended follows, with VDI_RPC_CANCELED unless another end was on its way. Idempotent. */
void vdi_etcd_stream_cancel(struct vdi_etcd_stream *stream);
void vdi_etcd_stream_free(struct vdi_etcd_stream *stream);

/* ---- Parts ----
 *
 * What lives as long as the client and has streams or an actor of its own: the watcher, the lease keeper. A
 * part is made when it is first asked for and is closed by the client's close. */

enum vdi_etcd_part_kind { VDI_ETCD_PART_WATCH, VDI_ETCD_PART_LEASE, VDI_ETCD_PART_COUNT };

struct vdi_etcd_part {
	/* Called once, on the client's actor, when the client closes: end everything (VD_CLOSED), cancel and
	 * free all streams, then call done(arg), from any thread; the part does not touch the client after
	 * that. New streams and calls are already refused. */
	void (*close)(struct vdi_etcd_part *part, void (*done)(void *arg), void *arg);
};

/* The client's part of that kind; made when there is none, by make with the client's lock held: it allocates
 * and makes an actor, nothing else. The result is good until its close. VD_CLOSED: the client is closing;
 * else what make answered. */
VDI_MUST_USE vd_status vdi_etcd_part_get(struct vd_etcd *client, enum vdi_etcd_part_kind kind,
					 vd_status (*make)(struct vd_etcd	 *client,
							   struct vdi_etcd_part **ret_part),
					 struct vdi_etcd_part **ret_part);

#endif
