/* One stream of watches: the state machine of clientv3's watchGrpcStream (E-260..E-276), without goroutines.
 *
 *   IDLE --first watch--> OPEN --ended, not for good--> RESTING --its time--> OPEN
 *                          |  \--server misbehaves, no memory--> BREAKING --ended--> RESTING
 *                          |  \--last watch gone, client closed--> LEAVING --ended--> GONE
 *                          \--ended for good: every watch ends--> GONE
 *
 * Opening is part of OPEN: requests wait in the transport until there is a connection, and watches may be
 * closed meanwhile (E-258).
 *
 * Creates. The server answers in the order of requests, and an answer does not say whose it is. Upstream has
 * one request on its way at a time; so N watches take N round trips to come back. Here up to CREATES_MAX are
 * on their way, and answers are matched in order; what makes that safe is that every server numbers the
 * watches of a stream one after another, so an answer that jumped the queue is known by its id. The first
 * create of each connection goes alone; an id that is not the next one while others are on their way, or a
 * failure that names no revision (a proxy's, which may overtake), breaks the connection, and the stream goes
 * on one by one. docs/decisions/watch-creates-in-flight.md.
 *
 * Everything but what stands under the set's lock belongs to the set's actor.
 */
#ifndef VDI_ETCD_WATCH_STREAM_H
#define VDI_ETCD_WATCH_STREAM_H

#include "etcd_error.h"
#include "etcd_watch_set.h"
#include "queue.h"

#define VDI_ETCD_WATCH_CREATES_MAX 128
#define VDI_ETCD_WATCH_RECEIVED_MAX 128 /* messages that wait for the actor */
#define VDI_ETCD_WATCH_RECEIVED_BYTES_MAX                                                                    \
	(4u << 20) /* beyond it no further message is asked for: back-pressure to the server */
#define VDI_ETCD_WATCH_MESSAGES_PER_RUN 64
#define VDI_ETCD_WATCH_CANCELED_MAX 4096
#define VDI_ETCD_WATCH_PROGRESS_DELAY_MAX                                                                    \
	256 /* creates; who opens watches all the time keeps nobody from progress */

#define VDI_ETCD_WATCH_BACKOFF_MIN VD_MS(1) /* E-257 */
#define VDI_ETCD_WATCH_BACKOFF_MAX VD_MS(100)
#define VDI_ETCD_WATCH_HEALTHY_AFTER                                                                         \
	VD_SECONDS(5) /* a connection that lived so long: back-off begins anew (E-1012) */

enum vdi_etcd_watch_stream_state {
	VDI_ETCD_WATCH_STREAM_IDLE,
	VDI_ETCD_WATCH_STREAM_OPEN,
	VDI_ETCD_WATCH_STREAM_RESTING,
	VDI_ETCD_WATCH_STREAM_BREAKING,
	VDI_ETCD_WATCH_STREAM_LEAVING,
	VDI_ETCD_WATCH_STREAM_GONE,
	VDI_ETCD_WATCH_STREAM_STATE_COUNT
};

struct vdi_etcd_watch_stream {
	/* Fixed at creation. */
	struct vdi_etcd_watch_set *set;
	bool			   require_leader;
	struct vd_etcd_pair	  *metadata; /* into text */
	size_t			   metadata_count;
	struct vd_bytes		   key; /* into text */

	/* Under the set's lock. */
	TAILQ_ENTRY(vdi_etcd_watch_stream) set_node;
	TAILQ_ENTRY(vdi_etcd_watch_stream) attend_node;
	bool		 is_attended;	 /* in to_attend */
	uint64_t	 round;		 /* of the actor, in which it was attended last */
	bool		 is_forgotten;	 /* no new watch may join */
	bool		 is_kept;	 /* lives without watches (E-253) */
	bool		 is_asked;	 /* for progress, by no watch */
	size_t		 joining;	 /* watches whose command is on its way */
	struct vdi_queue received;	 /* struct vdi_rpc_message */
	size_t		 received_bytes; /* of these and of those taken and not worked on */
	bool		 is_paused;	 /* no message is asked for */
	bool		 has_opened;
	vd_mono		 opened_at;
	char endpoint[sizeof(((struct vd_etcd_error *) 0)->endpoint)]; /* where it was opened last */
	bool has_ended;
	struct vdi_etcd_end end; /* once it has; not changed until the next connection */

	/* The actor only. */
	struct vdi_sm		   sm;
	struct vdi_etcd_stream	  *rpc;
	struct vdi_timer	   timer;
	bool			   is_due;
	vd_dur			   backoff;
	struct vdi_etcd_watch_list waiting;
	struct vdi_etcd_watch_list creating; /* abandoned ones too, in the order of requests */
	struct vdi_etcd_watch_list established;
	struct vdi_etcd_watch_list parked;
	size_t			   watch_count; /* without abandoned ones */
	size_t			   creating_count;
	struct vdi_hash		   by_id;
	struct vdi_hash		   canceled; /* ids whose cancel was sent (E-267, E-270) */
	bool	 is_renewed; /* the last connection was given up for a new token; nothing was created since */
	bool	 has_created;	    /* on this connection */
	int64_t	 created_id;	    /* the last one */
	bool	 is_serial;	    /* the server was seen answering out of order */
	uint64_t progress_sent;	    /* requests on this connection */
	vd_rev	 progress_revision; /* of the newest answer */
	uint64_t progress_answered; /* of these so many have their answer, or get none */
	bool	 wants_progress;
	unsigned progress_delay; /* creates answered since it is wanted */

	char text[];
};

/* The canonical text of metadata (E-250): equal for what is to share a stream. Starts the buffer anew.
 * VD_NOMEM, VD_TOO_BIG. */
VDI_MUST_USE vd_status vdi_etcd_watch_stream_key(bool require_leader, const struct vd_etcd_pair *metadata,
						 size_t metadata_count, struct vdi_buffer *buffer);
/* From such a text. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_etcd_watch_stream_new(struct vdi_etcd_watch_set *set, struct vd_bytes key,
						 struct vdi_etcd_watch_stream **ret_stream);
/* IDLE or GONE. */
void vdi_etcd_watch_stream_free(struct vdi_etcd_watch_stream *stream);

/* ---- What users asked for ---- */

void vdi_etcd_watch_stream_join(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch);
/* By its user; drops the set's reference, now or when its answer came. */
void vdi_etcd_watch_stream_leave(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch);
void vdi_etcd_watch_stream_resume(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch);
/* All watches end with VD_CLOSED. */
void vdi_etcd_watch_stream_close(struct vdi_etcd_watch_stream *stream);

/* Messages, the end, the timer, requests that are due. True: there is more to do at once. The stream may be
 * GONE afterwards. */
bool vdi_etcd_watch_stream_attend(struct vdi_etcd_watch_stream *stream);

/* ---- Between the files of the stream ---- */

/* Handed over by the transport; etcd_watch_inbox.c. */
extern const struct vdi_rpc_stream_handlers vdi_etcd_watch_inbox_handlers;
/* Empties it for a new connection. */
void vdi_etcd_watch_inbox_reset(struct vdi_etcd_watch_stream *stream);
/* Up to count messages, which the caller gives back with done and then releases. */
size_t vdi_etcd_watch_inbox_take(struct vdi_etcd_watch_stream *stream, struct vdi_rpc_message *ret_messages,
				 size_t count);
/* They were worked on: asks for more when that was held back. */
void vdi_etcd_watch_inbox_done(struct vdi_etcd_watch_stream *stream, const struct vdi_rpc_message *messages,
			       size_t count);

/* One message of the server. VD_NOMEM, VD_CORRUPT (a message or an order that no server sends), VD_FORBIDDEN
 * (its token is too old): the connection is not to be used any further. */
VDI_MUST_USE vd_status vdi_etcd_watch_stream_dispatch(struct vdi_etcd_watch_stream *stream,
						      struct vd_bytes		    message);
/* Whether anybody is left who needs it; with the last watch the whole stream goes, and nothing is canceled
 * (E-270). */
bool vdi_etcd_watch_stream_is_needed(struct vdi_etcd_watch_stream *stream);
/* Sends a cancel for id and remembers that. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_etcd_watch_stream_cancel_id(struct vdi_etcd_watch_stream *stream, int64_t id);
/* Ends it for its reader, takes it out of everything, drops the set's reference. An abandoned one has no
 * reader. */
void vdi_etcd_watch_stream_end_watch(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch,
				     const struct vd_etcd_error *error);
/* It speaks for itself: no answer can come any more that was given before the watch stood at the server. */
void vdi_etcd_watch_stream_trust(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch);
/* Into another list and state; drops what it has of a response. */
void vdi_etcd_watch_stream_move(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch,
				enum vdi_etcd_watch_state state);

uint64_t vdi_etcd_watch_id_hash(int64_t id);

#endif
