/* What the files of the client share: the client itself (h2_client.c), one call or stream (h2_rpc.c), one
 * endpoint with its connections (h2_channel.c), and the headers of a request and of what comes back
 * (h2_headers.c).
 *
 * Threads: callers' and the loop's. What callers may reach is under the client's lock, which is never held
 * while a callback runs; all else is the loop's. Who changes something on a caller's thread posts the rpc,
 * and the end of the hub's turn attends to it.
 *
 * An rpc's way:
 *
 *   posted --a channel has room--> RUNNING --its end came, all was asked for--> ENDED
 *      \--none has--> WAITING --one has--^  \    \--its end came, messages wait to be asked for--> DRAINING --> ENDED
 *      |                 ^-refused, unsent--/
 *      \--------------------any of them: canceled, timeout, closed, removed--> ENDED
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

#define VDI_H2_WORDS_SIZE_MAX 1024 /* of a status; longer ones are cut */

/* What the peer has said in headers and trailers. */
struct vdi_h2_answer {
	int   http_status; /* 0: none yet */
	bool  is_grpc;	   /* the content type is right */
	bool  is_encoded;  /* messages are in an encoding that was not offered */
	bool  has_status;
	int   status;
	char *words;	/* grpc-message, decoded; NULL: none, or no memory */
	char  type[64]; /* content type that is not gRPC's, cut */
};
void vdi_h2_answer_fini(struct vdi_h2_answer *answer);
/* One header of either block. */
void vdi_h2_answer_note(struct vdi_h2_answer *answer, struct vd_bytes name, struct vd_bytes value);
/* What its headers alone say about how it ends: VDI_RPC_OK when they are as they should be. words as in
 * vdi_h2_answer_end. */
int vdi_h2_answer_check(const struct vdi_h2_answer *answer, char *room, size_t size, const char **ret_words);
/* How it ended, the peer's END_STREAM being there. *ret_words is lent by answer or room. */
int vdi_h2_answer_end(const struct vdi_h2_answer *answer, char *room, size_t size, const char **ret_words);
/* How it ended when the stream was reset with that HTTP/2 error. */
int vdi_h2_reset_end(uint32_t error_code, char *room, size_t size);

/* Request headers, copied in one piece: VD_INVALID_ARGUMENT for what no gRPC peer would take; VD_NOMEM. */
struct vdi_h2_pairs {
	size_t	    count;
	nghttp2_nv *list; /* vdi_free frees it all; NULL when there are none */
};
VDI_MUST_USE vd_status vdi_h2_pairs_make(const struct vdi_rpc_metadata *metadata, size_t count,
					 struct vdi_h2_pairs *ret_pairs);
/* "100m" and so on, of what is left; at least one nanosecond. */
#define VDI_H2_TIMEOUT_SIZE 24
void vdi_h2_timeout_text(vd_dur left, char text[VDI_H2_TIMEOUT_SIZE]);

/* ---- One endpoint ---- */

/* One connection of it. The loop's. */
struct vdi_h2_line {
	struct vdi_h2_channel	 *channel;
	struct vdi_h2_connection *connection;
	TAILQ_HEAD(, vdi_h2_rpc) rpcs; /* that are on it */
	uint32_t count;
	bool	 was_ready;
	/* takes no new rpcs: the peer goes, or the endpoint was removed; ends with its last one */
	bool is_left;
};

struct vdi_h2_channel {
	struct vdi_h2_client *client;
	char		     *name; /* as configured */
	char		     *host; /* of a socket: its path */
	char		     *port; /* NULL: a socket */
	char		     *authority;

	/* Under the client's lock. */
	unsigned references; /* the list's, one for each line, one for each rpc on it or bound to it */
	bool	 is_ready;
	bool	 is_removed;
	char	 last_error[256];
	struct vdi_h2_channel	*removed_next;
	struct vdi_h2_addresses *resolved; /* the answer, not yet looked at */
	bool			 has_answer;
	char			 answer_why[200];

	/* The loop's. */
	bool			 is_tended;
	bool			 is_retired;
	struct vdi_h2_line	*line; /* the one that is dialed, or takes rpcs; NULL: none */
	struct vdi_h2_resolve	*resolve;
	struct vdi_h2_addresses *addresses;
	size_t			 address_next;
	struct vdi_h2_timer	 timer; /* when to dial again */
	vd_dur			 backoff;
	vd_mono			 dialed_at;
};

/* Does not touch the network. The caller owns the one reference. VD_INVALID_ARGUMENT, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_channel_new(struct vdi_h2_client *client, const char *name,
					  struct vdi_h2_channel **ret_channel, struct vd_error *reterr);
void		       vdi_h2_channel_unref_locked(struct vdi_h2_channel *channel);
/* The loop's: begins to connect, takes a resolver's answer. */
void vdi_h2_channel_tend(struct vdi_h2_channel *channel);
/* The loop's, after its removal: connections go when the last rpc has left them; drops the list's
 * reference. */
void vdi_h2_channel_retire(struct vdi_h2_channel *channel);
/* The loop's: a line that takes one more, or NULL. */
struct vdi_h2_line *vdi_h2_channel_line(struct vdi_h2_channel *channel);
/* The loop's: an rpc came or went. */
void vdi_h2_line_add(struct vdi_h2_line *line, struct vdi_h2_rpc *rpc);
void vdi_h2_line_remove(struct vdi_h2_line *line, struct vdi_h2_rpc *rpc);

/* ---- One call or stream ---- */

enum vdi_h2_verdict {
	VDI_H2_UNDECIDED, /* the peer says how it ends */
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
	bool				      is_single; /* its one message is there from the start */
	const char			     *method;
	vd_mono				      deadline;
	struct vdi_h2_pairs		      pairs;
	vdi_rpc_done_fn			      done;	/* of a call */
	const struct vdi_rpc_stream_handlers *handlers; /* of a stream */
	void				     *arg;

	/* Any thread. */
	_Atomic bool wants_message;

	/* Under the client's lock. */
	enum vdi_h2_verdict	 verdict;
	size_t			 too_big_size;
	bool			 is_posted;
	bool			 is_ended; /* its end is being told, or was */
	bool			 is_freed; /* by its user */
	bool			 is_gone;  /* the client has no more to do with it */
	bool			 wants_half_close;
	struct vdi_h2_outgoing	*sent; /* not yet looked at */
	struct vdi_h2_outgoing **sent_last;
	TAILQ_ENTRY(vdi_h2_rpc) live_node;
	TAILQ_ENTRY(vdi_h2_rpc) posted_node;
	struct vdi_h2_channel *only; /* NULL: any */

	/* The loop's. */
	enum vdi_h2_place      place;
	struct vdi_h2_channel *channel; /* since it ran; a reference */
	struct vdi_h2_line    *line;	/* RUNNING */
	int32_t		       stream_id;
	TAILQ_ENTRY(vdi_h2_rpc) line_node;
	TAILQ_ENTRY(vdi_h2_rpc) waiting_node;
	struct vdi_h2_timer    timer; /* deadline */
	struct vdi_h2_outbox   outbox;
	struct vdi_h2_inbox    inbox;
	struct vdi_h2_answer   answer;
	struct vdi_rpc_message message; /* of a call: it came, the status did not */
	bool		       has_message;
	bool		       was_opened; /* the headers went out */
	bool		       was_told;   /* `opened` was called */
	bool		       is_delivering;
	unsigned	       attempts;
};

/* vdi_rpc_client_ops. */
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

/* The first verdict stays; the rpc is posted. */
void vdi_h2_rpc_stop_locked(struct vdi_h2_rpc *rpc, enum vdi_h2_verdict verdict);
/* The loop's: what was posted; what waits, as far as there is room. */
void vdi_h2_rpc_attend_posted(struct vdi_h2_client *client);
void vdi_h2_rpc_start_waiting(struct vdi_h2_client *client);
/* What a line's connection tells (h2_channel.c has the nghttp2 side). */
void vdi_h2_rpc_opened(struct vdi_h2_rpc *rpc);
void vdi_h2_rpc_headers(struct vdi_h2_rpc *rpc, bool is_last);
void vdi_h2_rpc_data(struct vdi_h2_rpc *rpc, struct vd_bytes bytes);
void vdi_h2_rpc_finished(struct vdi_h2_rpc *rpc); /* END_STREAM */
void vdi_h2_rpc_reset(struct vdi_h2_rpc *rpc, uint32_t error_code);
/* The connection is gone, or it was never opened on it. */
void vdi_h2_rpc_lost(struct vdi_h2_rpc *rpc, const char *why);

/* ---- The client ---- */

struct vdi_h2_client {
	struct vdi_rpc_client client;

	/* Fixed at creation. */
	const struct vd_env *env;
	struct vd_actor	    *actor; /* whose one run is the loop's */
	struct vdi_loop	    *loop;
	struct vdi_h2_hub   *hub;
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
	size_t			channels_alive; /* listed, or removed and not yet gone */
	struct vdi_h2_channel  *removed;	/* to be retired */
	bool			has_news;	/* of channels: new, removed, resolved */
	TAILQ_HEAD(, vdi_h2_rpc) live;
	TAILQ_HEAD(, vdi_h2_rpc) posted;
	size_t channel_next; /* round robin */
	bool   is_closing;
	void (*done)(void *arg);
	void *done_arg;

	/* The loop's. */
	TAILQ_HEAD(, vdi_h2_rpc) waiting; /* first come, first served */
	bool has_room;			  /* a channel may take one that waits */
	bool is_cut;			  /* closing has been done to everything */
};

/* Why no call could be started: the endpoints (or the only one) and their causes. */
void vdi_h2_client_describe_unready(struct vdi_h2_client *client, const struct vdi_h2_channel *only,
				    char *text, size_t size);

#endif
