/* A Watch stream and its watchers, for the files that serve them: serve_watch.c (the stream and its actor),
 * serve_watch_request.c (requests of the client), serve_watcher.c (events of one watcher).
 *
 * Owned by the stream's actor, except for the few fields under the stream's lock. The functions are only
 * called by the actor; none blocks.
 */
#ifndef VDI_SERVE_WATCH_STATE_H
#define VDI_SERVE_WATCH_STATE_H

#include "auth.h"
#include "etcdserver.h"
#include "hash.h"
#include "serve_watches.h"

struct vdi_watch_stream;

struct vdi_serve_watcher {
	struct vdi_watch_stream *stream;
	struct vd_store_watch	*watch; /* NULL: dead, or to be opened again */
	int64_t			 id;
	bool			 previous;
	bool			 progress_notify;
	bool			 fragment;
	bool			 no_put;
	bool			 no_delete;
	bool			 is_dead; /* compacted; its id exists until it is canceled */
	vd_rev			 start_revision;

	/* Position for opening it again: after so many events of that revision. */
	vd_rev	 resume_revision;
	uint32_t resume_skip;

	bool	 is_live;
	unsigned burst;
	bool	 progress_due; /* nothing was sent since the last tick */
	bool	 tick_wanted;  /* its own periodic progress is due */
	bool	 all_waiting;  /* the stream's progress waits for it */
	bool	 is_active;    /* in the list of watchers that may have something to send */
	TAILQ_ENTRY(vdi_serve_watcher) active_node;

	/* Under the stream's lock. */
	bool is_ready;
	TAILQ_ENTRY(vdi_serve_watcher) ready_node;

	size_t key_size;
	size_t range_end_size;
	char   text[]; /* key, range_end */
};

TAILQ_HEAD(vdi_serve_watcher_list, vdi_serve_watcher);

struct vdi_watch_stream {
	struct vdi_watch_stream_link link; /* first */
	struct vdi_serve_call	    *call; /* one reference */
	struct vdi_etcdserver	    *server;
	struct vd_actor		    *actor;

	struct vdi_lock lock; /* "queue" */

	/* Under the lock. */
	struct vdi_serve_watcher_list ready;
	struct vdi_rpc_message	      inbox;
	bool			      has_inbox;
	bool			      was_writable;
	bool			      is_ended;
	bool			      is_stopping;
	bool			      is_revoked; /* the user was deleted */
	struct vdi_auth_user	      user;	  /* the user whose permissions were checked */

	/* Actor only. */
	struct vdi_hash watchers; /* by id */
	/* Seed of the hashes, because clients choose the IDs; from the env, so that a simulation is the
	 * same. */
	uint64_t		      seed;
	struct vdi_serve_watcher_list active;
	int64_t			      next_id;
	struct vdi_rpc_blob	     *control;	     /* did not fit */
	bool			      wants_message; /* when control is sent */
	bool			      is_blocked;
	bool			      is_finished;
	vd_mono			      tick_due;
	vd_dur			      tick_interval;
	size_t			      notify_count;
	bool			      all_wanted;
	size_t			      all_missing;
	vd_rev			      all_revision;
	unsigned		      flush_runs; /* runs that did not send everything */
};

/* A response without events: created, canceled, progress. */
struct vdi_watch_control {
	struct vdi_etcdserver *server;
	vd_rev		       revision;
	int64_t		       watch_id;
	bool		       created;
	bool		       canceled;
	vd_rev		       compact_revision;
	const char	      *reason;
};

/* ---- Sending: all of it in one order ---- */

/* False: not sent; stream->is_blocked tells whether it may be sent later, is_finished that it will not. */
bool vdi_watch_stream_send(struct vdi_watch_stream *stream, struct vd_bytes head, struct vdi_rpc_blob *blob);
/* Ends the stream. */
void vdi_watch_stream_fail(struct vdi_watch_stream *stream, enum vd_etcd_code code);
/* Sends a response, or keeps it until there is room; nothing else is sent before it. Without memory the
 * stream ends, because a missing response would be worse. Must not be called while one is kept. */
void vdi_watch_stream_send_control(struct vdi_watch_stream *stream, struct vdi_watch_control *control);
/* False: still no room, or the stream has ended. */
bool vdi_watch_stream_flush_control(struct vdi_watch_stream *stream);

/* ---- Requests ---- */

void vdi_watch_stream_handle(struct vdi_watch_stream *stream, struct vd_bytes message);
/* Sends the progress of the whole stream if it was requested and is known for all watchers. */
void			  vdi_watch_stream_send_progress(struct vdi_watch_stream *stream);
struct vdi_serve_watcher *vdi_watch_stream_find(struct vdi_watch_stream *stream, int64_t id);

/* ---- Watchers ---- */

bool	 vdi_serve_watcher_equals(const void *entry, const void *key);
uint64_t vdi_serve_watcher_hash(const struct vdi_watch_stream *stream, int64_t id);
/* Marks the watcher as having something to send; it is served in its turn. */
void vdi_serve_watcher_activate(struct vdi_serve_watcher *watcher);
void vdi_serve_watcher_set_live(struct vdi_serve_watcher *watcher, bool live);
/* Errors as vd_store_watch_open. */
VDI_MUST_USE vd_status vdi_serve_watcher_open(struct vdi_serve_watcher *watcher, vd_rev start_revision);
/* Removes it from the stream and frees it. */
void vdi_serve_watcher_free(struct vdi_serve_watcher *watcher);
bool vdi_serve_watcher_is_future(const struct vdi_serve_watcher *watcher, vd_rev current);
/* Notes that everything up to revision was sent to the watcher; INT64_MAX: it is removed and does not
 * count. */
void vdi_serve_watcher_note_progress(struct vdi_serve_watcher *watcher, vd_rev revision);
/* Takes a batch from the store and sends it. */
void vdi_serve_watcher_serve(struct vdi_serve_watcher *watcher);

#endif
