/* Watch events and how a watcher receives them.
 *
 * A watch is ordered, unique, reliable and resumable: events are delivered in revision order, each once,
 * and none is missing between the start revision and the end of the watch. The next watch may start at the
 * last revision seen, of an event or a bookmark. A watcher that cannot keep up is ended with a reason; it
 * never sees a gap. The behaviour is that of kubernetes/apiserver pkg/storage/cacher. One deliberate
 * difference: watchers hold cursors into one shared history instead of queues of their own.
 */
#ifndef VEDETTE_WATCH_H
#define VEDETTE_WATCH_H

#include <vedette/codec.h>
#include <vedette/env.h>
#include <vedette/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The resourceVersions "" and "0" have different meanings for get, list and watch. */
#define VD_REVISION_UNSET ((vd_rev) -1)
#define VD_REVISION_ANY ((vd_rev) 0)

enum vd_watch_type { VD_WATCH_ADDED, VD_WATCH_MODIFIED, VD_WATCH_DELETED, VD_WATCH_BOOKMARK, VD_WATCH_ERROR };
/* Returns "ADDED", "MODIFIED", "DELETED", "BOOKMARK" or "ERROR". */
VD_API const char *vd_watch_type_name(enum vd_watch_type type);

/* One event. Borrowed for the call; take references (vd_object_ref) to keep objects. */
struct vd_watch_event {
	enum vd_watch_type type;
	vd_rev		   revision; /* resourceVersion of the event; DELETED: that of the deletion */
	/* ADDED, MODIFIED: new state. DELETED: last state; encode it with the event's revision. Else NULL. */
	struct vd_object      *object;
	struct vd_object      *old_object; /* MODIFIED, DELETED: previous state; else NULL */
	const struct vd_error *error;	   /* ERROR: the reason; no event follows */
	/* ADDED event of the initial state, which is sorted by key; revisions may decrease within it */
	bool initial;
	/* BOOKMARK with the annotation k8s.io/initial-events-end */
	bool initial_events_end;
	/* Private to vedette: cache of encoded frames. NULL for initial events and bookmarks. */
	struct vdi_event *shared;
};

enum vd_tristate { VD_UNSET = 0, VD_FALSE = 1, VD_TRUE = 2 };

struct vd_watch_options {
	size_t		size;		/* sizeof(struct vd_watch_options) */
	struct vd_bytes namespace_name; /* empty: all namespaces */
	struct vd_bytes name;		/* empty: all names */
	struct vd_bytes label_selector; /* Kubernetes syntax; empty: no selector */
	struct vd_bytes field_selector;
	/* VD_REVISION_UNSET, VD_REVISION_ANY, or N: events after revision N */
	vd_rev revision;
	/* Kubernetes' sendInitialEvents; VD_TRUE: WatchList. VD_UNSET: the initial state is sent if
	 * revision is VD_REVISION_ANY or VD_REVISION_UNSET. */
	enum vd_tristate send_initial_events;
	bool		 allow_bookmarks;
	/* Time at which the watch ends with VD_TIMEOUT; VD_NEVER: none; 0 (zeroed options):
	 * VD_INVALID_ARGUMENT. With allow_bookmarks, a bookmark is sent 2 s before the deadline. */
	vd_mono deadline;
	/* maximum size of undelivered events, in bytes; beyond it VD_TOO_SLOW; 0: the cacher's default */
	int64_t lag_bytes_max;
	/* maximum number of undelivered events; beyond it VD_TOO_SLOW; 0: no limit */
	int64_t lag_events_max;
	/* shard selector as for lists (KEP-5866): only objects in these hash ranges; empty: all */
	struct vd_bytes shard_selector;
};
#define VD_WATCH_OPTIONS_INIT                                                                                \
	{                                                                                                    \
		sizeof(struct vd_watch_options), { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 }, VD_REVISION_UNSET,  \
			VD_UNSET, false, { INT64_MAX }, 0, 0,                                                \
		{                                                                                            \
			0, 0                                                                                 \
		}                                                                                            \
	}

/* Receiver of events. One actor calls both functions, one call at a time; they must not block. */
struct vd_watch_sink {
	/* Takes the first n <= count events and returns n. n < count: the receiver has no room; nothing
	 * more is delivered until vd_watcher_resume, and the next call begins with the first event that was
	 * not taken. */
	size_t (*deliver)(void *arg, const struct vd_watch_event *events, size_t count);
	/* Called exactly once, as the last call, unless the watcher is closed first. VD_TIMEOUT: deadline.
	 * VD_CLOSED: the cacher stopped or re-initialized (watch again). VD_TOO_SLOW: lag limit exceeded
	 * (resume from the last revision). VD_EXPIRED and other errors: an ERROR event was delivered
	 * before. The receiver must still call vd_watcher_close. */
	void (*ended)(void *arg, vd_status reason);
	void *arg;
	/* Executor whose thread calls the sink. NULL: the cacher's own dispatching actor, which costs least;
	 * deliver must then be quick, because it delays all other watchers. Otherwise, such as for the
	 * event loop of a connection, all watchers of one cacher on the same executor share one actor. */
	const struct vd_executor *executor;
};

struct vd_watcher;

/* Resumes delivery after deliver took fewer events than offered. May be called from any thread; calls
 * coalesce. */
VD_API void vd_watcher_resume(struct vd_watcher *watcher);
/* Ends and frees the watcher; watcher may be NULL. May be called from any thread, once, and before the env
 * is freed; otherwise the program aborts if the misuse can be detected. On the sink's own thread,
 * including inside deliver and ended, no call into the sink happens after return. On another thread one
 * call may still be in progress. closed (may be NULL) is called once no call into the sink is in progress. */
VD_API void vd_watcher_close(struct vd_watcher *watcher, void (*closed)(void *arg), void *arg);

/* ---- Pulled watchers: opened without a sink; one thread at a time ----
 *
 * The lag limits of a pulled watcher apply from its opening, and are checked when it is pulled: no thread
 * works for the watcher in between. */

/* Takes the next event. VD_OK: *ret_event is borrowed until the next call. VD_AGAIN: nothing now.
 * VD_INVALID_ARGUMENT: the watcher has a sink, or a pointer is NULL. Any other status is final; later
 * calls return it again. Never blocks. */
VD_API VD_MUST_USE vd_status vd_watcher_next(struct vd_watcher *watcher, struct vd_watch_event *ret_event);
/* Blocks until vd_watcher_next would not answer VD_AGAIN, at most for timeout (negative: for ever).
 * Errors: VD_TIMEOUT; VD_INVALID_ARGUMENT inside an actor's handler. */
VD_API VD_MUST_USE vd_status vd_watcher_wait(struct vd_watcher *watcher, vd_dur timeout);
/* Returns a descriptor that is readable (poll, epoll) while there may be something to take;
 * vd_watcher_next clears it when it answers VD_AGAIN. Created by the first call and owned by the watcher.
 * -1 if the process has no descriptor left, or if the watcher has a sink. */
VD_API int vd_watcher_fd(struct vd_watcher *watcher);

#ifdef __cplusplus
}
#endif
#endif
