/* watchChan: one watch of a store from start to end. It delivers the initial state and then the live stream,
 * decoded and in order.
 *
 *   store --pages at one revision--> \
 *                                     raw queue (100) --> decode --> result queue (100) --> next()
 *   store --watch from revision+1 --> /
 *
 * Records are decoded on the actor, or on workers; the results are put back into order. Mirrors
 * kubernetes/apiserver pkg/storage/etcd3/watcher.go. Both queues are bounded and counted; a full one stops
 * reading from the store. Nothing is dropped. An error is delivered as the last event, even if the receiver
 * is slow.
 *
 * One actor per watchChan. The receiver calls vdi_watchchan_next on its own thread, one call at a time.
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
	const char	*resource; /* for messages and metrics; borrowed until the watchChan is closed */
	struct vd_codec *codec;	   /* borrowed */
	struct vd_bytes	 key;	   /* copied; if recursive, a prefix that ends in '/' */
	bool		 recursive;
	vd_rev		 revision; /* deliver events after this one; 0: see send_initial_events */
	enum vd_tristate send_initial_events;
	bool		 initial_end_bookmark; /* an annotated bookmark ends the initial state */
	bool		 progress;	       /* store progress becomes bookmarks */
	/* Handling of a value that cannot be decoded. True: count it and continue; a change becomes DELETED
	 * (see lost below). False: one error event ends the watch. */
	bool	 skip_undecodable;
	unsigned decode_workers; /* 0: decode on the actor */
	/* Returns true if the object passes; the change of this result between the old and the new object
	 * decides between ADDED, MODIFIED, DELETED and no event. Any thread. NULL: every object passes. */
	bool (*predicate)(void *arg, const struct vd_object *object);
	void *predicate_arg;
	/* Returns the object that was already decoded from this record, with a reference for the caller, or
	 * NULL. Any thread. May be NULL. */
	struct vd_object *(*decoded)(void *arg, const struct vd_kv *kv);
	void *decoded_arg;
	/* Reports that a value could not be decoded (skip_undecodable), before the DELETED event for it; kv
	 * and error are borrowed. May be NULL. */
	void (*undecodable)(void *arg, struct vd_kv *kv, bool is_delete, const struct vd_error *error);
	void			   *undecodable_arg;
	struct vdi_storage_metrics *metrics; /* borrowed; NULL: no metrics */
	/* Called once after next() returned VD_AGAIN, when it may have an event. Any thread; must not block,
	 * and must not call the watchChan. */
	void (*ready)(void *arg);
	void *ready_arg;
};

/* The receiver owns the references to object, old_object and lost; it calls vdi_watchchan_event_fini. */
struct vdi_watchchan_event {
	enum vd_watch_type type;
	/* mod revision of the object in an initial event; revision of the change else, also for DELETED */
	vd_rev		  revision;
	struct vd_object *object;     /* ADDED, MODIFIED: new state; DELETED: last state */
	struct vd_object *old_object; /* MODIFIED: previous state if known */
	/* DELETED without an object: the record of a change that cannot be decoded (skip_undecodable); else
	 * NULL */
	struct vd_kv *lost;
	bool	      initial;
	bool	      initial_events_end;
	/* another event or a bookmark of the same revision follows: do not show this state yet */
	bool		       more_in_revision;
	vd_mono		       received; /* time at which the raw event was parsed */
	const struct vd_error *error;	 /* ERROR: borrowed until the watchChan is closed */
};
void vdi_watchchan_event_fini(struct vdi_watchchan_event *event);

/* Opens a watch; reading starts at once. Never blocks. */
VDI_MUST_USE vd_status vdi_watchchan_open(const struct vd_env *env, struct vd_store *store,
					  const struct vdi_watchchan_options *options,
					  struct vdi_watchchan **ret_watchchan, struct vd_error *reterr);
/* Takes the next event. VD_AGAIN: none yet, ready() follows. VD_CLOSED: the stream has ended, after its error
 * event if it has one. */
VDI_MUST_USE vd_status vdi_watchchan_next(struct vdi_watchchan	     *watchchan,
					  struct vdi_watchchan_event *ret_event);
/* Takes up to max events; with VD_OK *ret_count > 0. Errors as in vdi_watchchan_next. */
VDI_MUST_USE vd_status vdi_watchchan_take(struct vdi_watchchan *watchchan, struct vdi_watchchan_event *events,
					  size_t max, size_t *ret_count);
/* After the error event: the store's message, which Kubernetes' own may replace in the event. Borrowed until
 * the watchChan is closed. */
const char *vdi_watchchan_cause(const struct vdi_watchchan *watchchan);
/* Asks the store for progress; a bookmark follows after all earlier events were delivered. */
void vdi_watchchan_progress(struct vdi_watchchan *watchchan);
/* Closes the watch. After return ready() is not called. done (may be NULL) is called when all resources are
 * freed. Any thread, any time, also inside done of another watchChan. */
void vdi_watchchan_close(struct vdi_watchchan *watchchan, void (*done)(void *arg), void *arg);

struct vdi_watchchan_stats {
	size_t	 raw_len, raw_high, result_len, result_high; /* queues */
	uint64_t raw_full, result_full;			     /* times the producer had to wait */
	uint64_t events, bookmarks, undecodable;
};
void vdi_watchchan_stats_get(struct vdi_watchchan *watchchan, struct vdi_watchchan_stats *ret_stats);

#endif
