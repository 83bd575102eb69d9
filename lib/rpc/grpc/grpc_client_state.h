/* The structs that the files of the client share: the client, one call or stream (grpc_rpc.c), and one
 * endpoint (grpc_channel.c).
 *
 * Threads: callers' threads and the queue's thread. Lists and states are under the client's lock, which is
 * never held during a callback. Fields marked as the queue's are used on its thread only.
 *
 * States of an rpc:
 *
 *   admitted --a channel is ready--> RUNNING --all tags returned--> its end is reported, it leaves
 *      \--none is--> WAITING --one is ready--^   \--never had a connection--> WAITING
 *           \--canceled, timeout, closed, removed--> REFUSED --on the queue--> its end is reported, it leaves
 */
#ifndef VDI_GRPC_CLIENT_STATE_H
#define VDI_GRPC_CLIENT_STATE_H

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "rpc_client.h"
#include "grpc_message.h"
#include "grpc_queue.h"
#include "grpc_runtime.h"
#include "lock.h"
#include "timer.h"

struct vdi_grpc_client;

/* ---- One endpoint ---- */

struct vdi_grpc_channel {
	struct vdi_grpc_client *client;
	char		       *name; /* as configured */
	char		       *target;
	/* calls are created on it under the client's lock, so that it is not destroyed meanwhile */
	grpc_channel *core;

	/* Under the client's lock. */
	/* one for the list, one per outstanding tag, one per rpc that runs on it or is bound to it */
	unsigned		 references;
	bool			 is_ready;
	bool			 is_removed;
	char			 last_error[256];
	struct vdi_grpc_channel *removed_next;

	/* Queue's thread only. */
	bool			is_tended; /* its state was read for the first time */
	bool			is_failing;
	grpc_connectivity_state state;
	struct vdi_grpc_tag	watch_tag;
	struct vdi_grpc_tag	probe_tag;
	grpc_call	       *probe; /* call in flight */
	vd_mono			probe_due;
	unsigned		probe_count;
	grpc_status_code	probe_code;
	grpc_slice		probe_details;
	grpc_metadata_array	probe_metadata;
};

/* Does not use the network. The caller owns the one reference. VD_INVALID_ARGUMENT, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_grpc_channel_new(struct vdi_grpc_client *client, const char *name,
					    struct vdi_grpc_channel **ret_channel, struct vd_error *reterr);
void		       vdi_grpc_channel_unref_locked(struct vdi_grpc_channel *channel);
/* Starts to watch the channel's state and to connect; once. Queue's thread. */
void vdi_grpc_channel_tend(struct vdi_grpc_channel *channel);
/* Ends a removed channel, and drops the list's reference. Queue's thread. */
void vdi_grpc_channel_retire(struct vdi_grpc_channel *channel);
/* Asks core again for the cause of a failure if that is due. Returns when it is due next. Queue's thread. */
vd_mono vdi_grpc_channel_probe(struct vdi_grpc_channel *channel, vd_mono now);

/* ---- One call or stream ---- */

enum vdi_grpc_decision {
	VDI_GRPC_UNDECIDED, /* the peer's status decides */
	VDI_GRPC_CANCELED,
	VDI_GRPC_TIMEOUT,
	VDI_GRPC_CLOSED,
	VDI_GRPC_REMOVED,
	VDI_GRPC_TOO_BIG,
	VDI_GRPC_NO_MEMORY,
};

enum vdi_grpc_place { VDI_GRPC_ADMITTED, VDI_GRPC_WAITING, VDI_GRPC_RUNNING, VDI_GRPC_REFUSED };

struct vdi_grpc_rpc;

struct vdi_grpc_rpc_ops {
	bool is_stream;
	/* Starts the batches, and does not access rpc after the last one; rpc->core is set. On the caller's
	 * or the queue's thread, without a lock. */
	void (*start)(struct vdi_grpc_rpc *rpc);
	/* The rpc will not run (again): reports the end and leaves. Queue's thread. */
	void (*refused)(struct vdi_grpc_rpc *rpc, const struct vdi_rpc_end *end);
};

struct vdi_grpc_link {
	struct vdi_grpc_link *next;
	struct vdi_grpc_link *previous;
};

struct vdi_grpc_rpc {
	const struct vdi_grpc_rpc_ops *ops;
	struct vdi_grpc_client	      *client;
	const char		      *method;
	vd_mono			       deadline;
	grpc_metadata		      *metadata;
	size_t			       metadata_count;
	grpc_byte_buffer	      *message; /* NULL: none */

	/* Under the client's lock. */
	enum vdi_grpc_place	 place;
	enum vdi_grpc_decision	 decision;
	size_t			 too_big_size; /* size of the message, with VDI_GRPC_TOO_BIG */
	struct vdi_grpc_link	 live;	       /* in client->live until it leaves */
	struct vdi_grpc_link	 queued;       /* WAITING: in client->waiting; REFUSED: in client->refused */
	struct vdi_timer	 timer;	       /* WAITING */
	struct vdi_grpc_channel *only;	       /* NULL: any */
	struct vdi_grpc_channel *channel;      /* RUNNING */
	grpc_call		*core;	       /* RUNNING */
	unsigned		 attempts;

	/* Queue's thread only. */
	bool was_opened; /* the stream's metadata was sent */
};

/* The status of a call, written by core. */
struct vdi_grpc_status {
	grpc_status_code    code;
	grpc_slice	    details;
	grpc_metadata_array metadata;
	const char	   *words; /* core's own text, with source locations; NULL: none */
};
void	vdi_grpc_status_init(struct vdi_grpc_status *status);
void	vdi_grpc_status_fini(struct vdi_grpc_status *status);
grpc_op vdi_grpc_status_op(struct vdi_grpc_status *status);

/* Copies the data of request. VD_INVALID_ARGUMENT (metadata that core would not accept), VD_NOMEM. A message
 * that is too large is not an error here: the rpc is refused later. */
VDI_MUST_USE vd_status vdi_grpc_rpc_init(struct vdi_grpc_rpc *rpc, const struct vdi_grpc_rpc_ops *ops,
					 struct vdi_grpc_client	      *client,
					 const struct vdi_rpc_request *request);
void		       vdi_grpc_rpc_fini(struct vdi_grpc_rpc *rpc);
/* Adds the rpc to the client, which now lives until the rpc has left; no error occurs after this. VD_CLOSED,
 * VD_INVALID_ARGUMENT (no such endpoint). */
VDI_MUST_USE vd_status vdi_grpc_rpc_admit(struct vdi_grpc_rpc *rpc, int endpoint);
void		       vdi_grpc_rpc_submit(struct vdi_grpc_rpc *rpc);
/* Any thread, until the rpc leaves; the first decision is kept. */
void	vdi_grpc_rpc_stop(struct vdi_grpc_rpc *rpc, enum vdi_grpc_decision decision, size_t too_big_size);
void	vdi_grpc_rpc_stop_locked(struct vdi_grpc_rpc *rpc, enum vdi_grpc_decision decision);
grpc_op vdi_grpc_rpc_metadata_op(const struct vdi_grpc_rpc *rpc);

/* The result reported by core. */
struct vdi_grpc_ending {
	struct vdi_rpc_end   end;
	struct vdi_grpc_text text;
};
/* Called when all tags have returned. False: the rpc never had a connection and now waits for another one
 * (the status is released). Queue's thread. */
VDI_MUST_USE bool vdi_grpc_rpc_ended(struct vdi_grpc_rpc *rpc, struct vdi_grpc_status *status,
				     struct vdi_grpc_ending *ret_ending);
/* The last call, after the end was reported. Queue's thread. */
void vdi_grpc_rpc_leave(struct vdi_grpc_rpc *rpc);
/* Starts the waiting rpcs that have a ready channel; reports the refused ones. Queue's thread. */
void vdi_grpc_rpc_start_waiting(struct vdi_grpc_client *client);
void vdi_grpc_rpc_notify_refused(struct vdi_grpc_client *client);
void vdi_grpc_rpc_expire(struct vdi_grpc_client *client, vd_mono now);

static inline struct vdi_grpc_rpc *vdi_grpc_rpc_of_live(struct vdi_grpc_link *link)
{
	return VDI_CONTAINER_OF(link, struct vdi_grpc_rpc, live);
}
static inline struct vdi_grpc_rpc *vdi_grpc_rpc_of_queued(struct vdi_grpc_link *link)
{
	return VDI_CONTAINER_OF(link, struct vdi_grpc_rpc, queued);
}

/* grpc_call.c, grpc_stream.c: the functions of vdi_rpc_client_ops. */
vd_status vdi_grpc_call(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
			vdi_rpc_done_fn done, void *arg, struct vdi_rpc_call **ret_call);
void	  vdi_grpc_call_cancel(struct vdi_rpc_call *call);
vd_status vdi_grpc_stream_open(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
			       const struct vdi_rpc_stream_handlers *handlers, void *arg,
			       struct vdi_rpc_stream **ret_stream);
vd_status vdi_grpc_stream_send(struct vdi_rpc_stream *stream, struct vd_bytes message);
void	  vdi_grpc_stream_receive(struct vdi_rpc_stream *stream);
void	  vdi_grpc_stream_half_close(struct vdi_rpc_stream *stream);
void	  vdi_grpc_stream_cancel(struct vdi_rpc_stream *stream);
void	  vdi_grpc_stream_free(struct vdi_rpc_stream *stream);

/* ---- The client ---- */

struct vdi_grpc_client {
	struct vdi_rpc_client client;

	/* Fixed at creation. */
	const struct vd_env	 *env;
	struct vdi_grpc_user	  user;
	struct vdi_grpc_queue	 *queue;
	grpc_channel_credentials *credentials;
	grpc_resource_quota	 *quota; /* shared by all channels */
	bool			  has_tls;
	char			 *server_name;
	vd_dur			  keepalive_time;
	vd_dur			  keepalive_timeout;
	size_t			  send_size_max;
	size_t			  receive_size_max;

	struct vdi_lock lock;

	/* Under lock. */
	struct vdi_grpc_channel **channels;
	size_t			  channel_count;
	size_t			  channel_next;	  /* round robin */
	size_t			  channels_alive; /* listed, or removed and not yet freed */
	struct vdi_grpc_channel	 *removed;	  /* to be retired */
	struct vdi_grpc_link	  live;
	struct vdi_grpc_link	  waiting; /* FIFO */
	struct vdi_grpc_link	  refused;
	struct vdi_timer_heap	  timers;
	vd_mono			  next_iteration; /* until when the queue's thread sleeps */
	bool			  is_closing;
	void (*done)(void *arg);
	void *done_arg;

	/* Queue's thread only. */
	bool is_cut; /* closing has stopped all rpcs and removed all channels */
};

static inline void vdi_grpc_link_init(struct vdi_grpc_link *head)
{
	head->next = head->previous = head;
}
static inline bool vdi_grpc_link_is_empty(const struct vdi_grpc_link *head)
{
	return head->next == head;
}
static inline void vdi_grpc_link_append(struct vdi_grpc_link *head, struct vdi_grpc_link *link)
{
	link->next = head;
	link->previous = head->previous;
	head->previous->next = link;
	head->previous = link;
}
static inline void vdi_grpc_link_remove(struct vdi_grpc_link *link)
{
	link->next->previous = link->previous;
	link->previous->next = link->next;
	link->next = link->previous = NULL;
}

/* Describes why no call could be started: the endpoints (or the only one) and their errors. */
void vdi_grpc_client_describe_unready(struct vdi_grpc_client *client, const struct vdi_grpc_channel *only,
				      char *text, size_t size);

#endif
