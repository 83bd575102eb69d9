/* What a watch delivers, and how.
 *
 * A watch is ordered, unique, reliable and resumable: events leave in revision order, each once, none missing between the
 * revision it started from and its end, and the last revision seen (event or bookmark) is where the next watch may start. A watcher that cannot keep
 * up is ended with a reason; it never sees a gap. Mirrors kubernetes/apiserver pkg/storage/cacher (R-480..R-564); where it
 * differs on purpose: cursors into one shared history take the place of per-watcher queues.
 */
#ifndef VEDETTE_WATCH_H
#define VEDETTE_WATCH_H

#include <vedette/codec.h>
#include <vedette/env.h>
#include <vedette/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "" and "0" both parse to 0 but mean different things to list and watch. */
#define VD_REVISION_UNSET ((vd_rev) -1)
#define VD_REVISION_ANY	  ((vd_rev) 0)

enum vd_watch_type { VD_WATCH_ADDED, VD_WATCH_MODIFIED, VD_WATCH_DELETED, VD_WATCH_BOOKMARK, VD_WATCH_ERROR };
/* "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR". */
VD_API const char *vd_watch_type_name(enum vd_watch_type type);

/* Lent to the receiver for the call; take references (vd_object_ref) for what is kept. */
struct vd_watch_event {
	enum vd_watch_type     type;
	vd_rev		       revision;   /* the resourceVersion of this event; a DELETED carries that of the deletion */
	struct vd_object      *object;	   /* ADDED, MODIFIED: new state; DELETED: last state, to be written with revision; else NULL */
	struct vd_object      *old_object; /* MODIFIED, DELETED: the state before; else NULL */
	const struct vd_error *error;	   /* ERROR: the last event of the watch */
	bool		       initial;	   /* ADDED of the initial state, in key order */
	bool		       initial_events_end; /* BOOKMARK annotated k8s.io/initial-events-end */
	struct vdi_event      *shared;	   /* private to vedette: where encoded frames are kept; NULL for initial events and bookmarks */
};

enum vd_tristate { VD_UNSET = 0, VD_FALSE = 1, VD_TRUE = 2 };

struct vd_watch_options {
	size_t		 size; /* sizeof(struct vd_watch_options) */
	struct vd_bytes	 namespace_name; /* empty: all */
	struct vd_bytes	 name;		 /* empty: all */
	struct vd_bytes	 label_selector; /* Kubernetes grammar; empty: everything */
	struct vd_bytes	 field_selector;
	vd_rev		 revision;	 /* VD_REVISION_UNSET, VD_REVISION_ANY, or "events after this one" */
	enum vd_tristate send_initial_events; /* VD_TRUE: WatchList (table 6.2 of the specification of list and watch semantics) */
	bool		 allow_bookmarks;
	vd_mono		 deadline;	 /* VD_NEVER: none; 0, as in options that were only zeroed: VD_INVALID_ARGUMENT. The watch ends with VD_TIMEOUT; a bookmark comes 2 s before */
	int64_t		 lag_bytes_max;	 /* undelivered bytes before VD_TOO_SLOW; 0: the cacher's default (16 MiB) */
	int64_t		 lag_events_max; /* the same in events; 0: no limit of its own */
	struct vd_bytes	 shard_selector; /* as of a list: only objects of these hash ranges (KEP-5866); empty: all */
};
#define VD_WATCH_OPTIONS_INIT                                                                                                    \
	{                                                                                                                        \
		sizeof(struct vd_watch_options), { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 }, VD_REVISION_UNSET, VD_UNSET, false,     \
			{ INT64_MAX }, 0, 0, { 0, 0 }                                                                                      \
	}

/* Where events go. Both functions are called by one actor, one at a time, and must not block. */
struct vd_watch_sink {
	/* Takes the first n <= count events and returns n. Less than count means "no room now": nothing more is delivered until
	 * vd_watcher_resume. The events are consecutive. */
	size_t (*deliver)(void *arg, const struct vd_watch_event *events, size_t count);
	/* The last call, exactly once, unless the watcher was closed first. VD_TIMEOUT: deadline. VD_CLOSED: the cacher stopped or
	 * starts over (watch again). VD_TOO_SLOW: lag limit; resume from the last revision. VD_EXPIRED and other errors: an
	 * ERROR event was delivered before. The receiver still calls vd_watcher_close. */
	void (*ended)(void *arg, vd_status reason);
	void *arg;
	/* Whose thread calls: NULL = the cacher's own dispatching actor (cheapest; then deliver must be quick, it delays the others), else an
	 * actor made on this runner, such as a connection's event loop. All watchers of one cacher on the same runner share one actor. */
	const struct vd_runner *runner;
};

struct vd_watcher;

/* Any thread. After deliver took less than it was offered. Coalesces. */
VD_API void vd_watcher_resume(struct vd_watcher *watcher);
/* Ends and frees. From the sink's own thread (deliver and ended included): no call into the sink after it returned. From another thread: one call
 * may still be under way; closed (may be NULL) is called when that is over. NULL is fine. Once, and before the env is freed: else the program stops, as far as that can be
 * told. */
VD_API void vd_watcher_close(struct vd_watcher *watcher, void (*closed)(void *arg), void *arg);

/* ---- Pulling, for a watcher opened without a sink; one thread at a time ----
 *
 * The lag limits of a pulled watcher count from its opening. They are applied when it is pulled: nothing runs for it meanwhile. */

/* VD_OK: *ret_event is lent until the next call. VD_AGAIN: nothing now. VD_INVALID_ARGUMENT: the watcher has a sink, or a pointer is NULL.
 * Any other status is final; later calls return it again. Never blocks. */
VD_API VD_MUST_USE vd_status vd_watcher_next(struct vd_watcher *watcher, struct vd_watch_event *ret_event);
/* Waits at most timeout (negative: for ever) until next would not say VD_AGAIN. VD_TIMEOUT; VD_INVALID_ARGUMENT
 * in an actor's handler. */
VD_API VD_MUST_USE vd_status vd_watcher_wait(struct vd_watcher *watcher, vd_dur timeout);
/* Readable (poll, epoll) while there may be something to take; vd_watcher_next clears it when it answers VD_AGAIN. Owned by the watcher; made on
 * the first call. -1 when the system has none left, and for a watcher with a sink. */
VD_API int vd_watcher_fd(struct vd_watcher *watcher);

#ifdef __cplusplus
}
#endif
#endif
