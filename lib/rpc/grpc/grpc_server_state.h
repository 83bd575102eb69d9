/* The structs that the files of the server share: the server, and one call (grpc_server_call.c) from the
 * offer of its slot to core (grpc_accept.c).
 *
 * Threads: callers' threads, and one per queue. All events of a call are delivered on one queue; queues for
 * unary calls also deliver new calls. A call's state is under its lock, the server's lists under the
 * server's; a call's lock is taken inside the server's, never the other way round. No handler is called with
 * a lock held. Batches of a call are started on its accept queue's thread only, even if another thread
 * supplied their content.
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

/* A completion queue and the calls bound to it. */
struct vdi_grpc_accept_queue {
	struct vdi_grpc_server *server;
	struct vdi_grpc_queue  *queue;
	/* under the server's lock: calls of stream methods, offered or running */
	size_t calls;

	struct vdi_lock lock; /* taken inside the lock of a call */

	/* Under lock: calls for which another thread has data to send, in order. */
	struct vdi_grpc_server_call  *kicked;
	struct vdi_grpc_server_call **kicked_last;
};

/* A message to be sent. */
struct vdi_grpc_outgoing {
	struct vdi_grpc_outgoing *next;
	struct vdi_rpc_blob	 *blob; /* NULL: none */
	size_t			  head_size;
	char			  head[32];
};

struct vdi_grpc_server_call {
	struct vdi_rpc_server_call    base;
	struct vdi_grpc_server	     *server;
	struct vdi_grpc_accept_queue *accept_queue; /* delivers its events */
	struct vdi_grpc_accept_queue *notification_queue;
	/* index into the server's stream methods; SIZE_MAX: other method */
	size_t method_index;
	size_t unary_index; /* index into its unary methods; SIZE_MAX: other method */

	/* Set by core when the call arrives, then fixed. */
	grpc_call	   *core;
	grpc_call_details   details;
	gpr_timespec	    deadline;
	grpc_metadata_array metadata;
	const char	   *method;
	char		   *method_copy;
	void		   *arg; /* the service's; set before any other notification */
	grpc_byte_buffer
		/* frequent unary method: the request that arrived with the call, until it is delivered */
		*payload;
	bool	 is_beginning; /* accept queue's thread only: the payload will be checked soon */

	struct vdi_lock lock;

	/* Under lock. */
	unsigned tags; /* outstanding */
	bool	 is_arrived;
	bool	 is_refused;   /* not reported to the service */
	bool	 offers_again; /* its memory becomes the next slot */
	bool	 has_metadata; /* our metadata was given to core */
	bool	 is_receiving;
	bool	 is_sending;
	/* core was asked for the close event: at once, or for a frequent unary method together with the
	 * status */
	bool			   awaits_close;
	bool			   closes_with_send; /* in one batch with the response */
	bool			   is_closed;	     /* the close event has arrived */
	bool			   is_cancelled;
	bool			   is_finishing; /* the service has set a status */
	bool			   is_finished;	 /* core has the status */
	bool			   is_ended;	 /* the service was notified, or is being notified */
	bool			   wants_writable;
	bool			   wants_message; /* a receive must be started */
	bool			   is_kicked;	  /* in the accept queue's list, which counts as a tag */
	int			   code;
	char			  *message; /* text of the status; NULL: "" */
	struct vdi_grpc_outgoing  *queue;
	struct vdi_grpc_outgoing **queue_last;
	size_t			   queued_bytes; /* includes the message that core is sending */
	size_t			   sending_bytes;
	char			  *peer; /* created on first use */
	char			  *common_name;

	/* Under the accept queue's lock. */
	struct vdi_grpc_server_call *kicked_next;

	/* Under the server's lock. */
	struct vdi_grpc_server_call *next;
	struct vdi_grpc_server_call *previous;

	/* Used by core. */
	struct vdi_grpc_tag arrive_tag;
	struct vdi_grpc_tag accept_tag;
	struct vdi_grpc_tag receive_tag;
	struct vdi_grpc_tag send_tag;
	struct vdi_grpc_tag close_tag;
	grpc_byte_buffer   *received;
	int		    close_cancelled;
};

/* Streams on a unary accept queue before an accept queue for streams alone is added. */
#define VDI_GRPC_STREAMS_PER_UNARY_ACCEPT_QUEUE 256
#define VDI_GRPC_ACCEPT_QUEUES_MAX 512

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
	void				    **stream_handles; /* core's handles of the methods */
	size_t				      stream_method_count;
	const char *const		     *unary_methods;
	void				    **unary_handles;
	size_t				      unary_method_count;
	char				    **addresses;
	size_t				      address_count;
	unsigned			      unary_accept_queues;
	struct vdi_grpc_tag		      shutdown_tag;

	struct vdi_lock lock;

	/* Under lock. */
	/* the accept queues of unary calls first; grows */
	struct vdi_grpc_accept_queue *accept_queues[VDI_GRPC_ACCEPT_QUEUES_MAX];
	unsigned		      accept_queue_count;
	unsigned		      accept_queues_running;
	size_t			      offers; /* slots that core has */
	struct vdi_grpc_server_call  *calls;  /* arrived and not freed */
	bool			      is_draining;
	bool			      is_drained; /* core reports that no call is left */
	bool			      is_closing;
	bool			      is_stopping; /* the queues are ending */
	vd_mono			      cut_at;
	bool			      is_shut; /* core was told to drain */
	void (*done)(void *arg);
	void *done_arg;

	bool is_notified; /* closing has ended all calls; new ones are refused */

	/* First accept queue's thread only. */
	bool is_cut;
};

/* ---- grpc_accept.c ---- */

/* Offers slots to core: once, before calls arrive. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_grpc_accept_start(struct vdi_grpc_server *server);
/* Offers an ended call as a slot again. */
void vdi_grpc_accept_again(struct vdi_grpc_server_call *call);

/* ---- grpc_server_call.c ---- */

extern const struct vdi_rpc_server_call_ops vdi_grpc_server_call_ops;
/* Creates a slot; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_grpc_server_call_new(struct vdi_grpc_server	     *server,
						struct vdi_grpc_server_call **ret_call);
void		       vdi_grpc_server_call_destroy(struct vdi_grpc_server_call *call);
/* Reports the call to the service on the call's own accept queue; or, if it is refused, ends it with
 * call->code. On the accept queue where it arrived. */
void vdi_grpc_server_call_arrive(struct vdi_grpc_server_call *call);
/* Starts the batches that other threads have requested. On the accept queue's thread. */
void vdi_grpc_server_calls_run(struct vdi_grpc_accept_queue *accept_queue);
/* Ends the call because the server closes: queued messages are dropped. Under the server's lock. */
void vdi_grpc_server_call_shut_down(struct vdi_grpc_server_call *call);

/* ---- grpc_server.c ---- */

/* Returns the accept queue for the next stream, a new one if all are full, and counts the call there. */
struct vdi_grpc_accept_queue *vdi_grpc_server_queue_for_stream(struct vdi_grpc_server *server);
/* Called after any change that closing may wait for. Under the server's lock. */
void vdi_grpc_server_wake_locked(struct vdi_grpc_server *server);

#endif
