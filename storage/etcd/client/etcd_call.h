/* One call from its start to the user's callback: attempts, waits, the end (E-206..E-211). For the files that
 * make calls: etcd_kv, etcd_lease, ...
 *
 * A call is made with vdi_etcd_call_new, its request is encoded into call->request, and vdi_etcd_call_start
 * takes it over. finish is called once, on the client's actor: with an error, or with the answer's bytes; it
 * decodes and calls the user. A server stream has part called for each message before that, and the next one
 * is asked for when part has returned, or later (wants_hold, vd_etcd_range_stream_resume).
 */
#ifndef VDI_ETCD_CALL_H
#define VDI_ETCD_CALL_H

#include "buffer.h"
#include "etcd_proto.h"
#include "etcd_state.h"

enum vdi_etcd_call_state {
	VDI_ETCD_CALL_WAITING,	/* for the gate or a timer; the actor's */
	VDI_ETCD_CALL_STARTING, /* somebody is inside the transport's call */
	VDI_ETCD_CALL_RUNNING,
	VDI_ETCD_CALL_ENDED, /* end is filled; the actor's */
};

/* A user's function of any kind; cast back by the finish that knows it. */
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
	bool			 is_internal; /* passes the gate */
	vd_mono			 due;	      /* VD_NEVER: none */
	uint64_t		 id;
	vdi_etcd_finish_fn	 finish;
	/* Server streams. error must be set when false is answered: the call ends with it. */
	bool (*part)(struct vdi_etcd_call *call, struct vd_bytes message, struct vd_etcd_error *error);
	vdi_etcd_any_fn done;
	void	       *arg;
	union { /* for finish */
		enum vd_op_kind kind;
		int64_t		number;
		void	       *pointer;
	} extra;

	/* Under the client's lock. */
	enum vdi_etcd_call_state state;
	enum vdi_etcd_context	 context; /* canceled, closed */
	bool			 is_in_inbox;
	TAILQ_ENTRY(vdi_etcd_call) inbox_node;
	uint64_t	       attempt_serial;
	struct vdi_rpc_call   *rpc;
	struct vdi_rpc_message message;
	bool		       has_message; /* of a stream */
	bool		       is_held; /* of a stream: the next message is asked for when the user says so */
	bool		       is_resumed; /* the user said so while part was still under way */
	struct vdi_etcd_end    end;

	/* Actor only; attempt also by the one who starts. */
	struct vdi_etcd_stream *stream; /* written under the lock */
	unsigned		attempt;
	uint64_t		token_generation; /* that the running attempt has used */
	bool			maybe_applied;	  /* by any attempt */
	bool			has_parts;
	bool			wants_hold; /* set by part: the user did not want the next one at once */
	struct vd_etcd_error   *stop_error; /* of streams; made at start, filled when part stops the call */
	bool			is_stopped;
	struct vdi_timer	timer;
	bool			retries; /* the timer is for the next attempt */
	struct vdi_etcd_waiter	waiter;
};

/* options as the user gave them (borrowed; may be NULL). done NULL is VD_INVALID_ARGUMENT; so are bad
 * metadata or an endpoint that is not in the list. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_etcd_call_new(struct vd_etcd *client, const struct vd_etcd_call *options,
					 enum vdi_etcd_method method, vdi_etcd_finish_fn finish,
					 vdi_etcd_any_fn done, void *arg, struct vdi_etcd_call **ret_call);
/* Takes the call over, also when it fails; finish is not called then. encoded: what encoding the request
 * said, so that callers end with one line. VD_CLOSED, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_etcd_call_start(struct vdi_etcd_call *call, vd_status encoded, uint64_t *ret_id);
/* new, pack, start in one. */
VDI_MUST_USE vd_status vdi_etcd_call_message(struct vd_etcd *client, const struct vd_etcd_call *options,
					     enum vdi_etcd_method method, vdi_etcd_finish_fn finish,
					     vdi_etcd_any_fn done, void *arg,
					     const ProtobufCMessage *message);
/* An answer that cannot be read: what error->error does not say yet. Returns status. */
vd_status vdi_etcd_call_unreadable(const struct vdi_etcd_call *call, vd_status status,
				   struct vd_etcd_error *error);
/* The finish of calls whose answer is a header and nothing else (or not even that, E-123); done is a
 * vd_etcd_done_fn. */
void vdi_etcd_finish_header(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message);
/* Before start only. NULL is fine. */
void vdi_etcd_call_free(struct vdi_etcd_call *call);

/* ---- What the end of an attempt means; etcd_outcome.c ---- */

/* Not when it was never sent, nor when the server refused it in words of its own. */
bool vdi_etcd_may_have_applied(enum vdi_etcd_method method, const struct vdi_rpc_end *end,
			       enum vd_etcd_code known);
/* E-209. */
bool vdi_etcd_wants_new_token(const struct vd_etcd *client, enum vd_etcd_code known);
/* E-206..E-208: whether call->end allows another attempt, and whether there is one left. */
bool vdi_etcd_may_repeat(struct vdi_etcd_call *call, enum vd_etcd_code known);
bool vdi_etcd_has_attempts_left(const struct vdi_etcd_call *call);

/* ---- Metadata and endpoints; etcd_client.c ---- */

/* The bits that make a request: what the client adds (E-140) and what the user brought, lent together. */
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
/* Copies pairs into one block. VD_INVALID_ARGUMENT: a key that is not [0-9a-z_.-]+, or the client's own; a
 * value with other than printable ASCII. */
VDI_MUST_USE vd_status vdi_etcd_metadata_copy(const struct vd_etcd_pair *pairs, size_t count,
					      struct vdi_rpc_metadata **ret_metadata);
/* VDI_RPC_ANY_ENDPOINT for NULL. False: not in the list. */
VDI_MUST_USE bool vdi_etcd_endpoint_index(struct vd_etcd *client, const char *endpoint, int *ret_index);

#endif
