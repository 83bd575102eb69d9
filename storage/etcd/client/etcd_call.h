/* One call from its start to the user's callback: attempts, waits, the end. For the files that make calls
 * (etcd_kv, etcd_lease, ...).
 *
 * The caller makes a call with vdi_etcd_call_new, encodes the request into call->request, and hands it over
 * with vdi_etcd_call_start. finish runs once, on the client's actor, with an error or with the bytes of the
 * response; it decodes them and calls the user. For a server stream, part runs for each message before that;
 * the next message is requested after part has returned, or later (wants_hold,
 * vd_etcd_range_stream_resume).
 */
#ifndef VDI_ETCD_CALL_H
#define VDI_ETCD_CALL_H

#include "buffer.h"
#include "etcd_proto.h"
#include "etcd_state.h"

enum vdi_etcd_call_state {
	VDI_ETCD_CALL_WAITING,	/* waits for the preflight or a timer; owned by the actor */
	VDI_ETCD_CALL_STARTING, /* a thread is inside the transport's start function */
	VDI_ETCD_CALL_RUNNING,
	VDI_ETCD_CALL_ENDED, /* end is filled; owned by the actor */
};

/* A user's callback of any type; finish casts it back to its type. */
typedef void (*vdi_etcd_any_fn)(void);
typedef void (*vdi_etcd_finish_fn)(struct vdi_etcd_call *call, struct vd_etcd_error *error,
				   struct vd_bytes message);

struct vdi_etcd_call {
	/* Fixed at start. */
	struct vd_etcd		*client;
	enum vdi_etcd_method	 method;
	struct vdi_buffer	 request;
	struct vdi_rpc_metadata *metadata; /* of the user; one block */
	size_t			 metadata_count;
	char			*endpoint; /* NULL: any */
	bool			 require_leader;
	bool			 is_internal; /* skips the preflight */
	vd_mono			 due;	      /* VD_NEVER: no deadline */
	uint64_t		 id;
	vdi_etcd_finish_fn	 finish;
	/* For server streams. If it returns false the call ends, with the error that it must set. */
	bool (*part)(struct vdi_etcd_call *call, struct vd_bytes message, struct vd_etcd_error *error);
	vdi_etcd_any_fn done;
	void	       *arg;
	union { /* data for finish */
		enum vd_op_kind kind;
		int64_t		number;
		void	       *pointer;
	} extra;

	/* Under the client's lock. */
	enum vdi_etcd_call_state state;
	enum vdi_etcd_context	 context; /* canceled or closed */
	bool			 is_in_inbox;
	TAILQ_ENTRY(vdi_etcd_call) inbox_node;
	uint64_t	       attempt_serial;
	struct vdi_rpc_call   *rpc;
	struct vdi_rpc_message message;
	bool		       has_message; /* stream: message is filled */
	bool		       is_held;	    /* stream: the next message is requested when the user resumes */
	bool		       is_resumed;  /* the user resumed while part was running */
	struct vdi_etcd_end    end;

	/* Actor only; attempt also by the thread that starts the call. */
	struct vdi_etcd_stream *stream; /* written under the lock */
	unsigned		attempt;
	uint64_t		token_generation; /* token generation used by the running attempt */
	bool			maybe_applied;	  /* any attempt may have been applied */
	bool			has_parts;
	bool			wants_hold; /* set by part: do not request the next message yet */
	struct vd_etcd_error   *stop_error; /* stream: allocated at start, filled when part stops the call */
	bool			is_stopped;
	struct vdi_timer	timer;
	bool			retries; /* the timer is for the next attempt */
	struct vdi_etcd_waiter	waiter;
};

/* Makes a call. options: as the user passed them (borrowed; may be NULL). VD_INVALID_ARGUMENT: done is NULL,
 * invalid metadata, or an endpoint that is not in the list. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_etcd_call_new(struct vd_etcd *client, const struct vd_etcd_call *options,
					 enum vdi_etcd_method method, vdi_etcd_finish_fn finish,
					 vdi_etcd_any_fn done, void *arg, struct vdi_etcd_call **ret_call);
/* Takes over the call, also on failure, when finish is not called. encoded: result of encoding the request,
 * so that callers need only one return statement. VD_CLOSED, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_etcd_call_start(struct vdi_etcd_call *call, vd_status encoded, uint64_t *ret_id);
/* Combines new, pack and start. */
VDI_MUST_USE vd_status vdi_etcd_call_message(struct vd_etcd *client, const struct vd_etcd_call *options,
					     enum vdi_etcd_method method, vdi_etcd_finish_fn finish,
					     vdi_etcd_any_fn done, void *arg,
					     const ProtobufCMessage *message);
/* Fills the fields of error that error->error does not have, for a response that cannot be decoded. Returns
 * status. */
vd_status vdi_etcd_call_unreadable(const struct vdi_etcd_call *call, vd_status status,
				   struct vd_etcd_error *error);
/* A finish for calls whose response is only a header (or not even that); done is a vd_etcd_done_fn. */
void vdi_etcd_finish_header(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message);
/* Frees a call that was not started. NULL is fine. */
void vdi_etcd_call_free(struct vdi_etcd_call *call);

/* ---- What the end of an attempt means; etcd_outcome.c ---- */

/* Returns false if the attempt was not sent, or if the server refused it with an etcd error. */
bool vdi_etcd_may_have_applied(enum vdi_etcd_method method, const struct vdi_rpc_end *end,
			       enum vd_etcd_code known);
/* Returns true if the error means that the token is missing, invalid or too old. */
bool vdi_etcd_wants_new_token(const struct vd_etcd *client, enum vd_etcd_code known);
/* Decides whether call->end allows another attempt, and whether an attempt is left. */
bool vdi_etcd_may_repeat(struct vdi_etcd_call *call, enum vd_etcd_code known);
bool vdi_etcd_has_attempts_left(const struct vdi_etcd_call *call);

/* ---- Metadata and endpoints; etcd_client.c ---- */

/* Metadata of a request: the client's own and the user's, borrowed together. */
struct vdi_etcd_metadata {
	struct vdi_rpc_metadata	 few[8];
	struct vdi_rpc_metadata *items;
	size_t			 count;
	struct vd_blob		*token;
	uint64_t		 token_generation;
};
VDI_MUST_USE vd_status vdi_etcd_metadata_make(struct vd_etcd *client, bool require_leader, bool with_token,
					      const struct vdi_rpc_metadata *more, size_t more_count,
					      struct vdi_etcd_metadata *metadata);
void		       vdi_etcd_metadata_fini(struct vdi_etcd_metadata *metadata);
/* Copies pairs into one block. VD_INVALID_ARGUMENT: a key that is not [0-9a-z_.-]+ or is used by the client
 * itself; a value that is not printable ASCII. */
VDI_MUST_USE vd_status vdi_etcd_metadata_copy(const struct vd_etcd_pair *pairs, size_t count,
					      struct vdi_rpc_metadata **ret_metadata);
/* Returns VDI_RPC_ANY_ENDPOINT for NULL. False: not in the list. */
VDI_MUST_USE bool vdi_etcd_endpoint_index(struct vd_etcd *client, const char *endpoint, int *ret_index);

#endif
