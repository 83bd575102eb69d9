/* A resource of a Kubernetes API server as a store: the state of one source, and what its files share.
 *
 *            any thread                |            the client's actor
 *   watch_next   <- ring (lock) <------+-- pump: one watch of the server -> mirror
 *   stream_next  <- snapshot, pages <--+-- fill: the initial state (WatchList, else pages)
 *   range, txn   -> calls (lock) ------+-> requests
 *   progress     -> wanted (lock) -----+-> current revision, proof watch
 *
 * The pump starts with the first stream or watch and then follows the resource until the store is closed.
 * Its position is a revision up to which every event was applied to the mirror:
 *
 *   covered   bookmarks, and the revision of the list: all events up to it were applied
 *   applied   newest event: further events of this revision may follow
 *
 * so after a cut it resumes after max(covered, applied - 1), and the mirror drops repeated events.
 *
 * A DELETED event may have companions of the same revision (objects of one lease). They arrive together,
 * so a revision that ends with one is shown to readers HOLD later, or when a later event or bookmark
 * arrives, but not while an event has arrived in part. If a companion comes still later, all watches end
 * with VD_EXPIRED, because a reader that passed the revision would not take it. Other writes of Kubernetes
 * change one object each.
 *
 * A reader that has a state of revision R and watches from R + 1 gets every later event once and in order,
 * or VD_EXPIRED. For this,
 *
 *   - a bookmark of the newest event's revision does not move covered if the event may have companions;
 *   - a revision that turned out to be incomplete after it was shown is broken (kube_ring.h): its watches
 *     are refused, and a state is given only when the server's revision has grown beyond it;
 *   - a watch from a revision that no answer of this server has reached is refused; so are those from
 *     states that were given before the server was restored, and a read that was in progress fails;
 *   - the empty state of a removed resource has a revision of its own;
 *   - the revision of a read object is one that was known before the request was sent.
 *
 * Locks: `lock` (VDI_LOCK_STORE) protects what readers see; ready() is called under it. The rest belongs to
 * the client's actor. References: the open store has one, and each watch and stream. */
#ifndef VDI_KUBE_SOURCE_H
#define VDI_KUBE_SOURCE_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "env.h"
#include "kube_client.h"
#include "kube_cluster.h"
#include "kube_feed.h"
#include "kube_fetch.h"
#include "kube_object.h"
#include "kube_ring.h"
#include "lock.h"
#include "usage.h"

#define VDI_KUBE_HOLD VD_MS(5)
#define VDI_KUBE_PAGE_LEN 500
#define VDI_KUBE_CURSORS 16
#define VDI_KUBE_REMOVED_RETRY VD_SECONDS(30)
/* Consecutive answers 404, within 10 s, after which all objects are gone. */
#define VDI_KUBE_REMOVED_ANSWERS 3
#define VDI_KUBE_WITNESSES 32

struct vdi_kube_source;

/* ---- Lists in pages (kube_pages.c) ---- */

struct vdi_kube_pages {
	/* Set by the owner. */
	struct vdi_kube_source *source;
	/* Collection; owned by the owner, valid until the end. */
	const char *path;
	vd_rev	    revision; /* exact; 0: the newest */
	/* Takes over kv. */
	vd_status (*item)(struct vdi_kube_pages *pages, struct vd_kv *kv, struct vd_error *reterr);
	/* Called once for each vdi_kube_pages_next. VD_EXPIRED: the revision or token is too old. The
	 * function may call vdi_kube_pages_next or _end. */
	void (*page)(struct vdi_kube_pages *pages, vd_status status, const struct vd_error *error);

	unsigned	      limit; /* objects of a page; 0: VDI_KUBE_PAGE_LEN */
	char		     *token; /* owned; NULL after a page: it was the last one */
	vd_rev		      read_revision;
	unsigned	      empty_pages; /* in a row */
	struct vdi_kube_fetch fetch;
};
/* Requests the first or next page. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kube_pages_next(struct vdi_kube_pages *pages);
/* Accepts a zeroed struct; may be repeated. */
void vdi_kube_pages_end(struct vdi_kube_pages *pages);

/* ---- The current revision (kube_read.c) ---- */

/* One caller that waits for the server's current revision. */
struct vdi_kube_ask {
	TAILQ_ENTRY(vdi_kube_ask) node;
	void (*answer)(struct vdi_kube_ask *ask, vd_status status, vd_rev revision,
		       const struct vd_error *error);
	bool is_asked;
};
TAILQ_HEAD(vdi_kube_asks, vdi_kube_ask);
/* Asks; requests that were sent before are not used. One request at a time. */
void vdi_kube_ask(struct vdi_kube_source *source, struct vdi_kube_ask *ask);
/* Gives up; accepts one that does not wait. */
void vdi_kube_ask_end(struct vdi_kube_source *source, struct vdi_kube_ask *ask);

/* ---- Calls (kube_read.c, kube_write.c) ---- */

/* The record of the object that the server returned for this key; the caller owns it. Errors as
 * vdi_kube_object_read; VD_BAD_REQUEST also if it is another one. */
VDI_MUST_USE vd_status vdi_kube_read_object(struct vdi_kube_source *source, struct vd_bytes key,
					    struct vd_bytes json, struct vd_kv **ret_kv,
					    struct vd_error *reterr);

struct vdi_kube_call {
	TAILQ_ENTRY(vdi_kube_call) node;
	struct vdi_kube_source *source;
	void (*start)(struct vdi_kube_call *call);
	void (*free)(struct vdi_kube_call *call);
	/* Answers with an error; the call is in no list any more. */
	void (*fail)(struct vdi_kube_call *call, vd_status status, const struct vd_error *error);
};
TAILQ_HEAD(vdi_kube_calls, vdi_kube_call);

/* Place where a list continues. */
struct vdi_kube_cursor {
	struct vd_kv *last; /* NULL: unused */
	vd_rev	      revision;
	char	     *path, *token;
};

/* ---- The pump (kube_pump.c, kube_fill.c) ---- */

enum vdi_kube_step {
	VDI_KUBE_OFF,
	VDI_KUBE_WAIT,	   /* until retry_at */
	VDI_KUBE_IDENTIFY, /* asks for the uid of kube-system */
	VDI_KUBE_CHECK,	   /* asks for the current revision: is the server still the same? */
	VDI_KUBE_FILL,	   /* WatchList */
	VDI_KUBE_FILL_PAGES,
	VDI_KUBE_FOLLOW,
};

struct vdi_kube_pump {
	enum vdi_kube_step	    step;
	bool			    is_filled, is_removed;
	bool			    refuses_watch_list; /* the server does */
	bool			    was_contradicted;	/* by an object of a list */
	bool			    may_grow;		/* the newest event may have companions */
	bool			    awaits_reader; /* VDI_KUBE_WAIT ends with the next list of a reader */
	unsigned		    removed_answers;
	vd_rev			    covered;
	struct vdi_kube_backoff	    backoff;
	vd_mono			    opened, filled_at, hold_at;
	vd_mono			    checked_at; /* the server was the same one; 0: not since the last watch */
	struct vdi_kube_mirror	    mirror, filling;
	struct vdi_kube_feed	    feed;
	struct vdi_kube_pages	    pages;
	struct vdi_kube_ask	    check;
	struct vdi_kube_cluster_ask identity;
	vd_mono			    ended;		    /* the last watch did */
	char			    uid[VDI_KUBE_UID_SIZE]; /* of kube-system; empty: unknown */
};

/* ---- Progress on demand (kube_progress.c) ---- */

struct vdi_kube_progress {
	bool		     is_asking, is_proving;
	vd_rev		     target; /* revision to reach */
	unsigned	     misses; /* proof watches that ended without a bookmark, in a row */
	vd_mono		     retry_at;
	struct vdi_kube_ask  ask;
	struct vdi_kube_feed proof;
};

/* ---- Readers ---- */

struct vdi_kube_source_watch {
	struct vd_store_watch base;
	LIST_ENTRY(vdi_kube_source_watch) node;
	struct vd_store_watch_request request; /* key and range_end are owned */

	/* Under the source's lock. */
	bool		is_placed; /* cursor is valid */
	uint64_t	cursor;
	vd_rev		told;	    /* everything up to it was delivered, or is before the start */
	bool		is_waiting; /* ready is due */
	bool		wants_progress, in_round;
	vd_rev		progress; /* progress to deliver; 0: none */
	struct vd_error end;	  /* code VD_OK: open */

	/* The reader's. */
	struct vd_store_event *events;
	size_t		       event_count, event_capacity;
};

struct vdi_kube_source_stream {
	struct vd_store_stream base;
	LIST_ENTRY(vdi_kube_source_stream) node;
	char   *key, *range_end; /* owned */
	size_t	key_size, end_size;
	int64_t limit;
	vd_rev	revision;
	void (*ready)(void *arg);
	void *ready_arg;

	/* Under the source's lock. */
	bool			  is_waiting, is_closed, is_last, is_done;
	uint64_t		  fills; /* begun when it was opened */
	bool			  wants_progress, in_round, is_proven;
	bool			  has_snapshot, has_page;
	struct vdi_btree_snapshot snapshot;
	vd_rev			  read_revision;
	struct vd_kv		**page; /* arrived, not taken */
	size_t			  page_count, page_capacity;
	struct vd_error		  end;

	/* The reader's. */
	struct vd_kv **part; /* taken */
	size_t	       part_count, part_capacity;
	struct vd_kv  *last; /* delivered; NULL: none */
	int64_t	       delivered;

	/* Actor. */
	vd_mono		      held_until; /* waits for the end or a successor of a revision; 0: it does not */
	bool		      is_reading; /* pages of its own */
	unsigned	      differs;	  /* objects that contradict the mirror */
	vd_rev		      begun_at;	  /* the pump's revision when its list began */
	uint64_t	      epoch;	  /* of the source, when its list began */
	char		     *path;
	struct vdi_kube_pages pages;
};

/* ---- The source ---- */

struct vdi_kube_source {
	struct vd_store	       base;
	struct vdi_kube_member member;
	struct vdi_usage      *usage;
	atomic_uint	       references;

	/* Fixed at creation. Texts are owned. */
	const struct vd_env *env;
	char		    *name; /* "deployments.apps" */
	char		    *root; /* "/apis/apps/v1" */
	char		    *plural, *kind, *api_version, *prefix;
	char		    *namespace_name, *label_selector, *field_selector;
	char		    *path;     /* collection of the scope */
	char		    *selector; /* "" or "&labelSelector=..." */
	size_t		     prefix_size;
	bool		     is_cluster_scoped;
	struct vdi_metric   *bytes_metric;

	/* Actor. */
	struct vdi_kube_pump	     pump;
	struct vdi_kube_progress     progress;
	struct vdi_kube_fetches	     fetches;
	struct vdi_kube_calls	     started;
	struct vdi_kube_cursor	     cursors[VDI_KUBE_CURSORS];
	unsigned		     cursor_next;
	struct vdi_kube_asks	     asks_next, asks_sent;
	struct vdi_kube_fetch	     ask;
	struct vdi_kube_reader	     objects;
	struct vdi_kube_event_reader events;
	struct vdi_kube_page_reader  pages;
	vd_mono			     heard;	/* copied to health */
	bool			     has_ended; /* nothing is sent any more */
	uint64_t		     watches_opened;
	uint64_t		     repeated, late;
	uint64_t		     epoch; /* number of restored or replaced servers */
	struct vdi_log_limit	     log_limit;

	/* Under lock. */
	struct vdi_lock	     lock;
	struct vdi_kube_ring ring;
	LIST_HEAD(, vdi_kube_source_watch) watches;
	LIST_HEAD(, vdi_kube_source_stream) streams;
	struct vdi_kube_calls calls; /* not started */
	bool		      is_wanted;
	bool		      is_closing;      /* refuses calls: shut down or closed */
	bool		      is_closed;       /* vd_store_close was called */
	bool		      is_ended;	       /* the actor no longer runs the source */
	bool		      has_no_progress; /* the server cannot prove it */
	bool		      is_filled;       /* ring and watches are valid */
	vd_rev		      covered;	       /* newest bookmark, or revision of the list */
	vd_rev		      known;	       /* newest revision seen in any answer */
	vd_rev		      removed;	       /* revision of the empty state; 0: the resource is there */
	uint64_t	      fills, filled;   /* number of fills begun; of the one that ended last */
	uint64_t	      id;
	struct vd_kube_health health;
	void (*close_done)(void *arg);
	void *close_done_arg;
};

static inline struct vdi_kube_source *vdi_kube_source_of(struct vd_store *store)
{
	return (struct vdi_kube_source *) store;
}
struct vdi_kube_source *vdi_kube_source_ref(struct vdi_kube_source *source);
void			vdi_kube_source_unref(struct vdi_kube_source *source);
/* Any thread, without the lock: raises the newest revision. */
void vdi_kube_source_raise(struct vdi_kube_source *source, vd_rev revision);
/* Adds a call, or refuses it: VD_CLOSED. */
VDI_MUST_USE vd_status vdi_kube_source_call(struct vdi_kube_source *source, struct vdi_kube_call *call);
/* Returns error (may be NULL) with this status, and with a message if it has none. */
struct vd_error vdi_kube_source_error(vd_status status, const struct vd_error *error);
/* Refuses an object of another kind than the source's. VD_BAD_REQUEST. */
VDI_MUST_USE vd_status vdi_kube_source_check(const struct vdi_kube_source *source,
					     const struct vdi_kube_object *object, struct vd_error *reterr);
/* As above; also if it is not the object of this key, or has no revision. */
VDI_MUST_USE vd_status vdi_kube_source_check_key(const struct vdi_kube_source *source,
						 const struct vdi_kube_object *object, struct vd_bytes key,
						 struct vd_error *reterr);
/* Actor: sets the state for vd_kube_health and reports a change; error NULL: none. */
void vdi_kube_source_state(struct vdi_kube_source *source, enum vd_kube_state state,
			   const struct vd_error *error);
/* Returns "path?query[selector]", to be freed; NULL: out of memory. */
char *vdi_kube_source_url(const struct vdi_kube_source *source, const char *path, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Returns the path of a namespace's collection (empty: of all), or of an object in it; to be freed. */
char *vdi_kube_source_path(const struct vdi_kube_source *source, struct vd_bytes namespace_name,
			   struct vd_bytes name);
/* Returns text with all but letters, digits, '-', '.', '_' and '~' escaped, to be freed; NULL: out of
 * memory. */
char *vdi_kube_escape(struct vd_bytes text);
/* Splits a key of the source; false: it is none. */
bool vdi_kube_source_split(const struct vdi_kube_source *source, struct vd_bytes key,
			   struct vd_bytes *ret_namespace, struct vd_bytes *ret_name);

/* Actor. Run, and the ends of the parts at the close. */
vd_mono vdi_kube_pump_run(struct vdi_kube_source *source, vd_mono now);
void	vdi_kube_pump_end(struct vdi_kube_source *source);
vd_mono vdi_kube_progress_run(struct vdi_kube_source *source, vd_mono now);
/* A round brought nothing: the next one begins a second later. */
void vdi_kube_progress_delay(struct vdi_kube_source *source);
/* Ends a proof watch: its position means nothing any more. */
void vdi_kube_progress_stop(struct vdi_kube_source *source);
void vdi_kube_progress_end(struct vdi_kube_source *source);
/* Sends the request of those that wait for the current revision. */
void vdi_kube_asks_run(struct vdi_kube_source *source);
/* Returns when to call it again at the latest. */
vd_mono vdi_kube_streams_run(struct vdi_kube_source *source, vd_mono now);
void	vdi_kube_streams_end(struct vdi_kube_source *source, const struct vd_error *error);
/* After vdi_kube_streams_end: frees those that were closed; the readers free the others. */
void vdi_kube_streams_close(struct vdi_kube_source *source);
void vdi_kube_reads_end(struct vdi_kube_source *source);

/* Actor: an event of the pump or of a proof watch. */
VDI_MUST_USE vd_status vdi_kube_pump_apply(struct vdi_kube_source *source, const struct vdi_kube_event *event,
					   struct vd_error *reterr);
/* Actor: all events up to revision were applied. */
void vdi_kube_pump_cover(struct vdi_kube_source *source, vd_rev revision);
/* Actor: an event of a revision that may have companions is not shown yet. */
static inline bool vdi_kube_pump_holds(const struct vdi_kube_source *source)
{
	return source->ring.visible < source->ring.end; /* changed by this actor only */
}
/* Actor: shows it. */
void vdi_kube_pump_show(struct vdi_kube_source *source);
/* The revision after which a watch must begin. */
vd_rev vdi_kube_pump_position(const struct vdi_kube_source *source);
/* Actor: begins to read the initial state; fill_run starts requests that wait for the identity. */
void vdi_kube_fill_begin(struct vdi_kube_source *source);
void vdi_kube_fill_run(struct vdi_kube_source *source);
/* Actor: events of the pump's feed while it reads the initial state. */
vd_status vdi_kube_fill_event(struct vdi_kube_source *source, const struct vdi_kube_event *event,
			      struct vd_error *reterr);
/* Actor: the feed ended meanwhile. True: the fill goes on in pages. */
bool vdi_kube_fill_refused(struct vdi_kube_source *source, vd_status status);
/* Actor: asks for the uid of kube-system; at the end of pages the fill is told about it. */
void vdi_kube_pump_identify(struct vdi_kube_source *source);
/* Initializes a mirror with the source's bound and metric. */
void vdi_kube_source_mirror(struct vdi_kube_source *source, struct vdi_kube_mirror *mirror);
/* Actor: the pages are complete; is_other: they may be those of two servers. */
void vdi_kube_fill_identified(struct vdi_kube_source *source, bool is_other);
/* Actor: the filling mirror is complete at revision. */
void vdi_kube_pump_filled(struct vdi_kube_source *source, vd_rev revision);
/* Actor: the current attempt failed with this HTTP status. */
void vdi_kube_pump_failed(struct vdi_kube_source *source, int code, vd_status status,
			  const struct vd_error *error);
/* Actor: the server lost revisions, or was replaced: everything is read again. */
void vdi_kube_pump_restored(struct vdi_kube_source *source, const char *why);
/* Actor: starts the feed with the query. */
void vdi_kube_pump_open(struct vdi_kube_source *source, const char *query);

/* Watches; under the lock. */
void vdi_kube_watches_wake_locked(struct vdi_kube_source *source);
/* Ends those that need events up to revision (all: INT64_MAX); the others continue after the ring's end. */
void vdi_kube_watches_expire_locked(struct vdi_kube_source *source, vd_rev revision, vd_status status,
				    const char *why);
/* As above with VD_EXPIRED; health reports the cause. */
void vdi_kube_watches_relist_locked(struct vdi_kube_source *source, vd_rev revision, vd_status cause,
				    const char *why);

/* Operations of the store. */
vd_status vdi_kube_source_range(struct vd_store *store, const struct vd_range_request *request,
				vd_range_fn done, void *arg);
vd_status vdi_kube_source_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			      void *arg);
vd_status vdi_kube_source_watch(struct vd_store *store, const struct vd_store_watch_request *request,
				struct vd_store_watch **ret_watch, struct vd_error *reterr);
vd_status vdi_kube_source_watch_next(struct vd_store_watch *watch, size_t event_count_max,
				     struct vd_store_batch *ret_batch, struct vd_error *reterr);
vd_status vdi_kube_source_watch_progress(struct vd_store_watch *watch);
void	  vdi_kube_source_watch_close(struct vd_store_watch *watch);
vd_status vdi_kube_source_stream(struct vd_store *store, const struct vd_store_stream_request *request,
				 struct vd_store_stream **ret_stream);
vd_status vdi_kube_source_stream_next(struct vd_store_stream *stream, struct vd_store_part *ret_part,
				      struct vd_error *reterr);
void	  vdi_kube_source_stream_close(struct vd_store_stream *stream);

#endif
