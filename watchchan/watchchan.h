/* watchChan: one watch on a store, from start to end: initial state first, then the stream, decoded, in
 * order.
 *
 *   store --pages at one revision--> \
 *                                     raw queue (100) --> decode (inline, or on workers with order restored) --> result queue (100) --> next()
 *   store --watch from revision+1 --> /
 *
 * Mirrors kubernetes/apiserver pkg/storage/etcd3/watcher.go (R-201..R-233). Both queues are bounded and
 * counted; a full one stops reading from the store. Nothing is dropped. Errors are delivered as the last
 * event, whatever the receiver's speed.
 *
 * One actor per watchChan; the receiver pulls with vdi_watchchan_next on its own thread, one caller at a
 * time.
 */
#ifndef VDI_WATCHCHAN_H
#define VDI_WATCHCHAN_H

#include <vedette/store.h>
#include <vedette/watch.h>

#include "base.h"

struct vdi_watchchan;

#define VDI_WATCHCHAN_QUEUE_LEN 100
#define VDI_WATCHCHAN_PAGE_LEN 10000

struct vdi_watchchan_options {
	const char	*resource; /* for messages and metrics; lent for the life of the watchChan */
	struct vd_codec *codec;	   /* lent */
	struct vd_bytes	 key;	   /* copied; recursive: a prefix that ends in '/' */
	bool		 recursive;
	vd_rev		 revision; /* events after this one; 0: see send_initial_events */
	enum vd_tristate send_initial_events;
	bool		 initial_end_bookmark; /* an annotated bookmark closes the initial state */
	bool		 progress;	       /* store progress becomes bookmarks */
	/* O-20: count and go on, a change becomes DELETED (see lost below); else R-221: one error event and
	 * the end */
	bool	 skip_undecodable;
	unsigned decode_workers; /* 0: inline */
	/* NULL: everything. Says whether an object passes; R-219 does the rest. Any thread. */
	bool (*predicate)(void *arg, const struct vd_object *object);
	void *predicate_arg;
	/* The object that was made of this very record before, with a reference for the caller; NULL: there
	 * is none. Any thread. May be NULL. */
	struct vd_object *(*decoded)(void *arg, const struct vd_kv *kv);
	void *decoded_arg;
	/* An undecodable object was left out (skip_undecodable); lent. Comes before the event that says so.
	 * May be NULL. */
	void (*undecodable)(void *arg, struct vd_kv *kv, bool is_delete, const struct vd_error *error);
	void			   *undecodable_arg;
	struct vdi_storage_metrics *metrics; /* lent; NULL: nothing is counted */
	/* next() may have something after it said VD_AGAIN; any thread; must not block nor call back */
	void (*ready)(void *arg);
	void *ready_arg;
};

/* References of object, old_object and lost belong to the receiver of the event; it calls
 * vdi_watchchan_event_fini. */
struct vdi_watchchan_event {
	enum vd_watch_type type;
	/* own mod revision for initial ones; the deletion's for DELETED */
	vd_rev		  revision;
	struct vd_object *object;     /* ADDED, MODIFIED: new; DELETED: the last state */
	struct vd_object *old_object; /* MODIFIED: the state before when known */
	/* DELETED without an object: the record of a change that cannot be decoded (skip_undecodable); else
	 * NULL */
	struct vd_kv *lost;
	bool	      initial;
	bool	      initial_events_end;
	/* another event, or a bookmark, of the same revision follows: do not show this state yet */
	bool		       more_in_revision;
	vd_mono		       received; /* when the raw event was parsed */
	const struct vd_error *error;	 /* ERROR; lent until the watchChan is closed */
};
void vdi_watchchan_event_fini(struct vdi_watchchan_event *event);

/* Starts at once, never blocks. */
VDI_MUST_USE vd_status vdi_watchchan_open(const struct vd_env *env, struct vd_store *store,
					  const struct vdi_watchchan_options *options,
					  struct vdi_watchchan **ret_watchchan, struct vd_error *reterr);
/* VD_OK, VD_AGAIN; VD_CLOSED: the stream ended (after its error event, if any). */
VDI_MUST_USE vd_status vdi_watchchan_next(struct vdi_watchchan	     *watchchan,
					  struct vdi_watchchan_event *ret_event);
/* Up to max events at once; *ret_count > 0 with VD_OK. */
VDI_MUST_USE vd_status vdi_watchchan_take(struct vdi_watchchan *watchchan, struct vdi_watchchan_event *events,
					  size_t max, size_t *ret_count);
/* Asks the store for progress; a bookmark follows when everything before it was delivered. */
void vdi_watchchan_progress(struct vdi_watchchan *watchchan);
/* No ready() after it returned; done (may be NULL) when everything is gone. Any thread, any moment, also
 * inside done of another. */
void vdi_watchchan_close(struct vdi_watchchan *watchchan, void (*done)(void *arg), void *arg);

struct vdi_watchchan_stats {
	size_t	 raw_len, raw_high, result_len, result_high; /* queues */
	uint64_t raw_full, result_full;			     /* how often the producer had to wait */
	uint64_t events, bookmarks, undecodable;
};
void vdi_watchchan_stats_get(struct vdi_watchchan *watchchan, struct vdi_watchchan_stats *ret_stats);

#endif
