/* A stream of watches: the state machine of clientv3's watchGrpcStream, without goroutines.
 *
 *   IDLE --first watch--> OPEN --ended, not for good--> RESTING --timer--> OPEN
 *                          |  \--server misbehaves, no memory--> BREAKING --ended--> RESTING
 *                          |  \--last watch gone, client closed--> LEAVING --ended--> GONE
 *                          \--ended for good: every watch ends--> GONE
 *
 * Opening is part of OPEN: requests wait in the transport until there is a connection, and watches may be
 * closed meanwhile.
 *
 * Creates: the server answers them in order, and a response does not say to which create it belongs. Upstream
 * sends one at a time, so N watches need N round trips to return after a reconnect. Here up to CREATES_MAX
 * are sent, and responses are matched in order. This is safe because every server numbers the watches of a
 * stream consecutively, so a response out of order shows by its id. The first create of each connection is
 * sent alone. If an id is not the next one while several creates are pending, or a failure has no revision
 * (from a proxy, which may reorder it), the connection is dropped, and the stream continues with one create
 * at a time. docs/decisions/watch-creates-in-flight.md.
 *
 * Owned by the set's actor, except for fields under the set's lock.
 */
#ifndef VDI_ETCD_WATCH_STREAM_H
#define VDI_ETCD_WATCH_STREAM_H

#include "etcd_error.h"
#include "etcd_watch_set.h"
#include "queue.h"

#define VDI_ETCD_WATCH_CREATES_MAX 128
#define VDI_ETCD_WATCH_RECEIVED_MAX 128 /* messages that wait for the actor */
/* Above it no further message is requested: back-pressure to the server. */
#define VDI_ETCD_WATCH_RECEIVED_BYTES_MAX (4u << 20)
#define VDI_ETCD_WATCH_MESSAGES_PER_RUN 64
#define VDI_ETCD_WATCH_CANCELED_MAX 4096
/* Creates; after these, progress is requested although new watches keep arriving. */
#define VDI_ETCD_WATCH_PROGRESS_DELAY_MAX 256

#define VDI_ETCD_WATCH_BACKOFF_MIN VD_MS(1) /* as clientv3 */
#define VDI_ETCD_WATCH_BACKOFF_MAX VD_MS(100)
/* Lifetime of a connection after which the back-off starts anew. */
#define VDI_ETCD_WATCH_HEALTHY_AFTER VD_SECONDS(5)

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
	uint64_t	 round;		 /* last run of the actor that handled it */
	bool		 is_forgotten;	 /* new watches must not join */
	bool		 is_kept;	 /* exists without watches, for RequestProgress */
	bool		 is_asked;	 /* progress is requested for the whole stream */
	size_t		 joining;	 /* watches whose command is not yet executed */
	struct vdi_queue received;	 /* struct vdi_rpc_message */
	size_t		 received_bytes; /* of these messages, and of those taken but not processed */
	bool		 is_paused;	 /* no message is requested */
	bool		 has_opened;
	vd_mono		 opened_at;
	char endpoint[sizeof(((struct vd_etcd_error *) 0)->endpoint)]; /* of the last connection */
	bool has_ended;
	struct vdi_etcd_end end; /* after the end; unchanged until the next connection */

	/* The actor only. */
	struct vdi_sm		   sm;
	struct vdi_etcd_stream	  *rpc;
	struct vdi_timer	   timer;
	bool			   is_due;
	vd_dur			   backoff;
	struct vdi_etcd_watch_list waiting;
	struct vdi_etcd_watch_list creating; /* including abandoned ones, in the order of requests */
	struct vdi_etcd_watch_list established;
	struct vdi_etcd_watch_list paused;
	size_t			   watch_count; /* without abandoned ones */
	size_t			   creating_count;
	struct vdi_hash		   by_id;
	struct vdi_hash		   canceled; /* ids for which a cancel was sent */
	bool	 is_renewed; /* the last connection was dropped for a new token; no watch was created since */
	bool	 has_created;	    /* on this connection */
	int64_t	 created_id;	    /* the last one */
	bool	 is_serial;	    /* the server has answered out of order: one create at a time */
	uint64_t progress_sent;	    /* requests on this connection */
	vd_rev	 progress_revision; /* of the newest response */
	uint64_t progress_answered; /* requests with a response, or that will get none */
	bool	 wants_progress;
	unsigned progress_delay; /* creates answered since progress is wanted */

	char text[];
};

/* Writes the canonical text of metadata, which is equal for watches that share a stream, replacing the
 * buffer's content. VD_NOMEM, VD_TOO_BIG. */
VDI_MUST_USE vd_status vdi_etcd_watch_stream_key(bool require_leader, const struct vd_etcd_pair *metadata,
						 size_t metadata_count, struct vdi_buffer *buffer);
/* Makes a stream from such a text. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_etcd_watch_stream_new(struct vdi_etcd_watch_set *set, struct vd_bytes key,
						 struct vdi_etcd_watch_stream **ret_stream);
/* Frees a stream that is IDLE or GONE. */
void vdi_etcd_watch_stream_free(struct vdi_etcd_watch_stream *stream);

/* ---- What users asked for ---- */

void vdi_etcd_watch_stream_join(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch);
/* Removes a watch closed by its user; drops the set's reference, at once or after the response to its
 * create. */
void vdi_etcd_watch_stream_leave(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch);
void vdi_etcd_watch_stream_resume(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch);
/* Ends all watches with VD_CLOSED. */
void vdi_etcd_watch_stream_close(struct vdi_etcd_watch_stream *stream);

/* Handles messages, the end, the timer and due requests. True: there is more to do at once. The stream may be
 * GONE afterwards. */
bool vdi_etcd_watch_stream_attend(struct vdi_etcd_watch_stream *stream);

/* ---- Between the files of the stream ---- */

/* Handlers for the transport; etcd_watch_inbox.c. */
extern const struct vdi_rpc_stream_handlers vdi_etcd_watch_inbox_handlers;
/* Empties the inbox for a new connection. */
void vdi_etcd_watch_inbox_reset(struct vdi_etcd_watch_stream *stream);
/* Takes up to count messages; the caller returns them with done and then releases them. */
size_t vdi_etcd_watch_inbox_take(struct vdi_etcd_watch_stream *stream, struct vdi_rpc_message *ret_messages,
				 size_t count);
/* Marks messages as processed; requests more if that was paused. */
void vdi_etcd_watch_inbox_done(struct vdi_etcd_watch_stream *stream, const struct vdi_rpc_message *messages,
			       size_t count);

/* Handles a message of the server. VD_NOMEM, VD_CORRUPT (a message or an order that no server sends),
 * VD_FORBIDDEN (its token is too old): the connection must be dropped. */
VDI_MUST_USE vd_status vdi_etcd_watch_stream_dispatch(struct vdi_etcd_watch_stream *stream,
						      struct vd_bytes		    message);
/* Returns true if the stream is still needed. With the last watch the whole stream is closed, and no cancel
 * is sent. */
bool vdi_etcd_watch_stream_is_needed(struct vdi_etcd_watch_stream *stream);
/* Sends a cancel for id and notes it. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_etcd_watch_stream_cancel_id(struct vdi_etcd_watch_stream *stream, int64_t id);
/* Ends the watch for its reader, removes it from all lists, drops the set's reference. An abandoned watch has
 * no reader. */
void vdi_etcd_watch_stream_end_watch(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch,
				     const struct vd_etcd_error *error);
/* Clears the mark of unconfirmed progress: after the watch's own message, no response from before its
 * creation follows. */
void vdi_etcd_watch_stream_trust(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch);
/* Moves the watch to another list and state; drops its incomplete response. */
void vdi_etcd_watch_stream_move(struct vdi_etcd_watch_stream *stream, struct vd_etcd_watch *watch,
				enum vdi_etcd_watch_state state);

uint64_t vdi_etcd_watch_id_hash(int64_t id);

#endif
