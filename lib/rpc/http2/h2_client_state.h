/* The structs that the files of the client share: the client (h2_client.c), one call or stream (h2_rpc.c),
 * one endpoint with its connections (h2_channel.c), and the headers of a request and of its response
 * (h2_headers.c).
 *
 * Threads: callers' threads and the loop's thread. Data that callers use is under the client's lock, which
 * is never held during a callback; all other data is used on the loop's thread only. A caller's thread that
 * changes an rpc posts it, and the loop handles it at the end of the h2_loop's iteration.
 *
 * States of an rpc:
 *
 *   posted --a channel has room--> RUNNING --ended, all messages delivered--> ENDED
 *      \--none has--> WAITING --one has--^  \    \--ended, messages not yet requested--> DRAINING --> ENDED
 *      |                 ^-refused, unsent--/
 *      \--------------------in any state: canceled, timeout, closed, removed--> ENDED
 */
#ifndef VDI_H2_CLIENT_STATE_H
#define VDI_H2_CLIENT_STATE_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "h2_connection.h"
#include "h2_message.h"
#include "h2_resolve.h"
#include "h2_tls.h"
#include "lock.h"
#include "rpc_client.h"

struct vdi_h2_client;
struct vdi_h2_rpc;
struct vdi_h2_channel;

/* ---- Headers ---- */

#define VDI_H2_WORDS_SIZE_MAX 1024 /* status text; longer ones are cut */

/* Headers and trailers of the peer. */
struct vdi_h2_answer {
	int   http_status; /* 0: not received */
	bool  is_grpc;	   /* the content type is gRPC */
	bool  is_encoded;  /* messages have an encoding that was not offered */
	bool  has_status;
	int   status;
	char *words;	/* grpc-message, decoded; NULL: none, or out of memory */
	char  type[64]; /* content type if it is not gRPC, cut */
};
void vdi_h2_answer_fini(struct vdi_h2_answer *answer);
/* Adds one header of either block. */
void vdi_h2_answer_note(struct vdi_h2_answer *answer, struct vd_bytes name, struct vd_bytes value);
/* Checks the headers alone: VDI_RPC_OK if they are valid, else the code with which the rpc ends. ret_words as
 * in vdi_h2_answer_end. */
int vdi_h2_answer_check(const struct vdi_h2_answer *answer, char *room, size_t size, const char **ret_words);
/* The code with which the rpc ended, after END_STREAM of the peer. *ret_words is borrowed from answer or
 * room. */
int vdi_h2_answer_end(const struct vdi_h2_answer *answer, char *room, size_t size, const char **ret_words);
/* The code with which the rpc ended if the stream was reset with that HTTP/2 error. */
int vdi_h2_reset_end(uint32_t error_code, char *room, size_t size);

/* Request headers, copied into one block. VD_INVALID_ARGUMENT: a gRPC peer would reject them. VD_NOMEM. */
struct vdi_h2_pairs {
	size_t	    count;
	nghttp2_nv *list; /* vdi_free frees the whole block; NULL if there are none */
};
VDI_MUST_USE vd_status vdi_h2_pairs_make(const struct vdi_rpc_metadata *metadata, size_t count,
					 struct vdi_h2_pairs *ret_pairs);
/* The remaining time as "100m" and so on; at least one nanosecond. */
#define VDI_H2_TIMEOUT_SIZE 24
void vdi_h2_timeout_text(vd_dur left, char text[VDI_H2_TIMEOUT_SIZE]);

/* ---- One endpoint ---- */

/* One connection of an endpoint. Loop's thread only. */
struct vdi_h2_line {
	struct vdi_h2_channel	 *channel;
	struct vdi_h2_connection *connection;
	TAILQ_HEAD(, vdi_h2_rpc) rpcs; /* that run on it */
	uint32_t count;
	bool	 was_ready;
	/* takes no new rpcs, because the peer sent GOAWAY or the endpoint was removed; ends with its last
	 * one */
	bool is_left;
};

struct vdi_h2_channel {
	struct vdi_h2_client *client;
	char		     *name; /* as configured */
	char		     *host; /* path if it is a unix socket */
	char		     *port; /* NULL: unix socket */
	char		     *authority;

	/* Under the client's lock. */
	/* one for the list, one per line, one per rpc that runs on it or is bound to it */
	unsigned		 references;
	bool			 is_ready;
	bool			 is_removed;
	char			 last_error[256];
	struct vdi_h2_channel	*removed_next;
	struct vdi_h2_addresses *resolved; /* result of the resolver, not yet processed */
	bool			 has_answer;
	char			 answer_why[200];

	/* Loop's thread only. */
	bool			 is_tended;
	bool			 is_retired;
	struct vdi_h2_line	*line; /* being dialed, or taking rpcs; NULL: none */
	struct vdi_h2_resolve	*resolve;
	struct vdi_h2_addresses *addresses;
	size_t			 address_next;
	struct vdi_h2_timer	 timer; /* time of the next dial */
	vd_dur			 backoff;
	vd_mono			 dialed_at;
};

/* Does not use the network. The caller owns the one reference. VD_INVALID_ARGUMENT, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_channel_new(struct vdi_h2_client *client, const char *name,
					  struct vdi_h2_channel **ret_channel, struct vd_error *reterr);
void		       vdi_h2_channel_unref_locked(struct vdi_h2_channel *channel);
/* Starts to connect; processes a resolver's result. Loop's thread. */
void vdi_h2_channel_tend(struct vdi_h2_channel *channel);
/* Retires a removed channel: its connections end when their last rpc has left; drops the list's reference.
 * Loop's thread. */
void vdi_h2_channel_retire(struct vdi_h2_channel *channel);
/* Returns a line that takes one more rpc, or NULL. Loop's thread. */
struct vdi_h2_line *vdi_h2_channel_line(struct vdi_h2_channel *channel);
/* Adds or removes an rpc. Loop's thread. */
void vdi_h2_line_add(struct vdi_h2_line *line, struct vdi_h2_rpc *rpc);
void vdi_h2_line_remove(struct vdi_h2_line *line, struct vdi_h2_rpc *rpc);

/* ---- One call or stream ---- */

enum vdi_h2_decision {
	VDI_H2_UNDECIDED, /* the peer's status decides */
	VDI_H2_CANCELED,
	VDI_H2_TIMEOUT,
	VDI_H2_CLOSED,
	VDI_H2_REMOVED,
	VDI_H2_TOO_BIG,
	VDI_H2_NO_MEMORY,
};

enum vdi_h2_place { VDI_H2_POSTED, VDI_H2_WAITING, VDI_H2_RUNNING, VDI_H2_DRAINING, VDI_H2_ENDED };

struct vdi_h2_rpc {
	union {
		struct vdi_rpc_call   call;
		struct vdi_rpc_stream stream;
	} base;
	struct vdi_h2_client		     *client;
	bool				      is_stream;
	bool				      is_single; /* its one message is known from the start */
	const char			     *method;
	vd_mono				      deadline;
	struct vdi_h2_pairs		      pairs;
	vdi_rpc_done_fn			      done;	/* for calls */
	const struct vdi_rpc_stream_handlers *handlers; /* for streams */
	void				     *arg;

	/* Any thread. */
	_Atomic bool wants_message;

	/* Under the client's lock. */
	enum vdi_h2_decision	 decision;
	size_t			 too_big_size;
	bool			 is_posted;
	bool			 is_ended; /* its end was reported, or is being reported */
	bool			 is_freed; /* by its user */
	bool			 is_gone;  /* the client does not use it any more */
	bool			 wants_half_close;
	struct vdi_h2_outgoing	*sent; /* not yet taken over by the loop */
	struct vdi_h2_outgoing **sent_last;
	TAILQ_ENTRY(vdi_h2_rpc) live_node;
	TAILQ_ENTRY(vdi_h2_rpc) posted_node;
	struct vdi_h2_channel *only; /* NULL: any */

	/* Loop's thread only. */
	enum vdi_h2_place      place;
	struct vdi_h2_channel *channel; /* of its current or last run; a reference */
	struct vdi_h2_line    *line;	/* RUNNING */
	int32_t		       stream_id;
	TAILQ_ENTRY(vdi_h2_rpc) line_node;
	TAILQ_ENTRY(vdi_h2_rpc) waiting_node;
	struct vdi_h2_timer    timer; /* deadline */
	struct vdi_h2_outbox   outbox;
	struct vdi_h2_inbox    inbox;
	struct vdi_h2_answer   answer;
	struct vdi_rpc_message message; /* of a call: received before the status */
	bool		       has_message;
	bool		       was_opened;   /* the headers were sent */
	bool		       was_notified; /* `opened` was called */
	bool		       is_delivering;
	unsigned	       attempts;
};

/* The functions of vdi_rpc_client_ops (h2_rpc_user.c). */
vd_status vdi_h2_call(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
		      vdi_rpc_done_fn done, void *arg, struct vdi_rpc_call **ret_call);
void	  vdi_h2_call_cancel(struct vdi_rpc_call *call);
vd_status vdi_h2_stream_open(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
			     const struct vdi_rpc_stream_handlers *handlers, void *arg,
			     struct vdi_rpc_stream **ret_stream);
vd_status vdi_h2_stream_send(struct vdi_rpc_stream *stream, struct vd_bytes message);
void	  vdi_h2_stream_receive(struct vdi_rpc_stream *stream);
void	  vdi_h2_stream_half_close(struct vdi_rpc_stream *stream);
void	  vdi_h2_stream_cancel(struct vdi_rpc_stream *stream);
void	  vdi_h2_stream_free(struct vdi_rpc_stream *stream);

/* Makes the loop handle changes of the rpc. */
void vdi_h2_rpc_post_locked(struct vdi_h2_rpc *rpc);
/* Posts the rpc; the first decision is kept. too_big_size: size of the message of VDI_H2_TOO_BIG. */
void vdi_h2_rpc_stop_locked(struct vdi_h2_rpc *rpc, enum vdi_h2_decision decision);
void vdi_h2_rpc_stop(struct vdi_h2_rpc *rpc, enum vdi_h2_decision decision, size_t too_big_size);
/* Frees an rpc that was not admitted, or that neither the client nor its user uses any more. */
void vdi_h2_rpc_free(struct vdi_h2_rpc *rpc);
/* Handles posted rpcs; starts waiting ones while there is room. Loop's thread. */
void vdi_h2_rpc_attend_posted(struct vdi_h2_client *client);
void vdi_h2_rpc_start_waiting(struct vdi_h2_client *client);
/* Events of a line's connection (h2_channel.c receives them from nghttp2). */
void vdi_h2_rpc_opened(struct vdi_h2_rpc *rpc);
void vdi_h2_rpc_headers(struct vdi_h2_rpc *rpc, bool is_last);
void vdi_h2_rpc_data(struct vdi_h2_rpc *rpc, struct vd_bytes bytes);
void vdi_h2_rpc_finished(struct vdi_h2_rpc *rpc); /* END_STREAM */
void vdi_h2_rpc_reset(struct vdi_h2_rpc *rpc, uint32_t error_code);
/* The connection has ended, or the stream was never opened on it. */
void vdi_h2_rpc_lost(struct vdi_h2_rpc *rpc, const char *why);

/* ---- The client ---- */

struct vdi_h2_client {
	struct vdi_rpc_client client;

	/* Fixed at creation. */
	const struct vd_env *env;
	struct vd_actor	    *actor; /* its single run is the loop's */
	struct vdi_loop	    *loop;
	struct vdi_h2_loop  *h2_loop;
	struct vdi_h2_tls   *tls; /* NULL: plain text */
	bool		     has_tls;
	char		    *server_name;
	vd_dur		     keepalive_time;
	vd_dur		     keepalive_timeout;
	size_t		     send_size_max;
	size_t		     receive_size_max;

	struct vdi_lock lock;

	/* Under lock. */
	struct vdi_h2_channel **channels;
	size_t			channel_count;
	size_t			channels_alive; /* listed, or removed and not yet freed */
	struct vdi_h2_channel  *removed;	/* to be retired */
	bool			has_news;	/* channels were added, removed or resolved */
	TAILQ_HEAD(, vdi_h2_rpc) live;
	TAILQ_HEAD(, vdi_h2_rpc) posted;
	size_t channel_next; /* round robin */
	bool   is_closing;
	void (*done)(void *arg);
	void *done_arg;

	/* Loop's thread only. */
	TAILQ_HEAD(, vdi_h2_rpc) waiting; /* FIFO */
	bool has_room;			  /* a channel may have room for a waiting rpc */
	bool is_cut;			  /* closing has stopped all rpcs and removed all channels */
};

/* Describes why no call could be started: the endpoints (or the only one) and their errors. */
void vdi_h2_client_describe_unready(struct vdi_h2_client *client, const struct vdi_h2_channel *only,
				    char *text, size_t size);

#endif
