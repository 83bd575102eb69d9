/* What the files of the server share: the server, and one call (grpc_server_call.c) from the moment its place
 * is offered to core (grpc_accept.c).
 *
 * Threads: callers' threads, and one for each queue. All events of a call come out of one queue; queues for
 * unary calls also bring new calls. A call's state is under its lock, the server's lists under the server's;
 * a call's lock is taken inside the server's, never the other way round. No handler is called with a lock
 * held. Batches of a call are started on its lane's thread only, whoever asked for what they carry.
 */
#ifndef VDI_GRPC_SERVER_STATE_H
#define VDI_GRPC_SERVER_STATE_H

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "grpc_message.h"
#include "grpc_queue.h"
#include "grpc_runtime.h"
#include "lock.h"
#include "rpc_server.h"

/* A queue and who is bound to it. */
struct vdi_grpc_lane {
	struct vdi_grpc_server *server;
	struct vdi_grpc_queue  *queue;
	size_t			calls; /* under the server's lock: offered or running, of stream methods */

	struct vdi_lock lock; /* inside the lock of a call */

	/* Under lock: calls for which another thread has something to start, in order. */
	struct vdi_grpc_server_call  *kicked;
	struct vdi_grpc_server_call **kicked_last;
};

/* A message on its way out. */
struct vdi_grpc_outgoing {
	struct vdi_grpc_outgoing *next;
	struct vdi_rpc_blob	 *blob; /* NULL: none */
	size_t			  head_size;
	char			  head[32];
};

struct vdi_grpc_server_call {
	struct vdi_rpc_server_call base;
	struct vdi_grpc_server	  *server;
	struct vdi_grpc_lane	  *lane; /* where its events come out */
	struct vdi_grpc_lane	  *accept_lane;
	size_t			   method_index; /* into the server's stream methods; SIZE_MAX: any other */
	size_t			   unary_index;	 /* into its unary methods; SIZE_MAX: any other */

	/* Filled by core when the call arrives, then fixed. */
	grpc_call	   *core;
	grpc_call_details   details;
	gpr_timespec	    deadline;
	grpc_metadata_array metadata;
	const char	   *method;
	char		   *method_copy;
	void		   *arg; /* the service's; set before anything else is told */
	grpc_byte_buffer
		*payload; /* of a unary method: the request, which came with the call, until it is told */
	bool	 is_beginning; /* the lane's: the payload will be looked at */

	struct vdi_lock lock;

	/* Under lock. */
	unsigned tags; /* out */
	bool	 is_arrived;
	bool	 is_refused;   /* not told to the service */
	bool	 offers_again; /* its memory is the next place */
	bool	 has_metadata; /* ours was given to core */
	bool	 is_receiving;
	bool	 is_sending;
	/* core was asked to say when it is over: at once, or, of a unary method, with the status */
	bool			   awaits_close;
	bool			   closes_with_send; /* in one batch */
	bool			   is_closed;	     /* core has said that it is over */
	bool			   is_cancelled;
	bool			   is_finishing; /* the service has given a status */
	bool			   is_finished;	 /* and core has it */
	bool			   is_ended;	 /* told, or being told */
	bool			   wants_writable;
	bool			   wants_message; /* a receive is to be started */
	bool			   is_kicked;	  /* in the lane's list, which counts as a tag */
	int			   code;
	char			  *message; /* of the status; NULL: "" */
	struct vdi_grpc_outgoing  *queue;
	struct vdi_grpc_outgoing **queue_last;
	size_t			   queued_bytes; /* the one that core has not given back included */
	size_t			   sending_bytes;
	char			  *peer; /* made when asked for */
	char			  *common_name;

	/* Under the lane's lock. */
	struct vdi_grpc_server_call *kicked_next;

	/* Under the server's lock. */
	struct vdi_grpc_server_call *next;
	struct vdi_grpc_server_call *previous;

	/* Lent to core. */
	struct vdi_grpc_tag arrive_tag;
	struct vdi_grpc_tag accept_tag;
	struct vdi_grpc_tag receive_tag;
	struct vdi_grpc_tag send_tag;
	struct vdi_grpc_tag close_tag;
	grpc_byte_buffer   *received;
	int		    close_cancelled;
};

/* Streams that an unary lane takes before there is a lane for streams alone. */
#define VDI_GRPC_STREAMS_PER_UNARY_LANE 256
#define VDI_GRPC_LANES_MAX 512

struct vdi_grpc_server {
	struct vdi_rpc_server base;

	/* Fixed at creation. */
	const struct vd_env		     *env;
	struct vdi_grpc_user		      user;
	const struct vdi_rpc_server_handlers *handlers;
	void				     *arg;
	grpc_server			     *core;
	size_t				      receive_size_max;
	size_t				      send_bytes_max;
	const char *const		     *stream_methods;
	void				    **stream_handles; /* core's names of them */
	size_t				      stream_method_count;
	const char *const		     *unary_methods;
	void				    **unary_handles;
	size_t				      unary_method_count;
	char				    **addresses;
	size_t				      address_count;
	unsigned			      unary_lanes;
	struct vdi_grpc_tag		      shutdown_tag;

	struct vdi_lock lock;

	/* Under lock. */
	struct vdi_grpc_lane	    *lanes[VDI_GRPC_LANES_MAX]; /* first those of unary calls; grows */
	unsigned		     lane_count;
	unsigned		     lanes_running;
	size_t			     offers; /* places that core has */
	struct vdi_grpc_server_call *calls;  /* arrived and not freed */
	bool			     is_draining;
	bool			     is_drained; /* core says that no call is left */
	bool			     is_closing;
	bool			     is_stopping; /* the queues end */
	vd_mono			     cut_at;
	bool			     is_shut; /* core was told to drain */
	void (*done)(void *arg);
	void *done_arg;

	bool is_told; /* all calls were ended because of closing, new ones are refused */

	/* The first lane's. */
	bool is_cut;
};

/* ---- grpc_accept.c ---- */

/* Offers core places for calls: once, before anything arrives. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_grpc_accept_start(struct vdi_grpc_server *server);
/* Offers a call that is over as a place again. */
void vdi_grpc_accept_again(struct vdi_grpc_server_call *call);

/* ---- grpc_server_call.c ---- */

extern const struct vdi_rpc_server_call_ops vdi_grpc_server_call_ops;
/* A place; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_grpc_server_call_new(struct vdi_grpc_server	     *server,
						struct vdi_grpc_server_call **ret_call);
void		       vdi_grpc_server_call_destroy(struct vdi_grpc_server_call *call);
/* On the lane that it arrived on: tells the service on its own lane; or, refused, ends it with call->code. */
void vdi_grpc_server_call_arrive(struct vdi_grpc_server_call *call);
/* On the lane's thread: starts what other threads have asked for. */
void vdi_grpc_server_calls_run(struct vdi_grpc_lane *lane);
/* Ends it as the closing of the server does: what is queued is dropped. Under the server's lock. */
void vdi_grpc_server_call_shut_down(struct vdi_grpc_server_call *call);

/* ---- grpc_server.c ---- */

/* The lane for the next stream; makes a new one when all are full. Counts the call there. */
struct vdi_grpc_lane *vdi_grpc_server_stream_lane(struct vdi_grpc_server *server);
/* After anything that closing may wait for. Under the server's lock. */
void vdi_grpc_server_wake_locked(struct vdi_grpc_server *server);

#endif
