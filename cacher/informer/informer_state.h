/* The private state of an informer, shared by its files.
 *
 *   informer.c           lifetime, the watch, the actor
 *   informer_objects.c   the objects: changed by the actor, read by any thread
 *   informer_handlers.c  handlers: registration, notification, resync
 *
 * Every function here is called on the informer's actor unless it says otherwise.
 */
#ifndef VDI_INFORMER_STATE_H
#define VDI_INFORMER_STATE_H

#include <stdatomic.h>

#include <vedette/informer.h>

#include "btree.h"
#include "informer_index.h"
#include "informer_queue.h"
#include "lock.h"
#include "ready.h"
#include "usage.h"
#include "wait.h"

struct vd_informer_registration {
	struct vd_informer_handler	 handler;
	struct vd_informer_registration *next;
	bool				 is_synced;
	bool				 is_removed; /* under the informer's lock */
	vd_mono				 resync_due;
	void (*removed)(void *arg);
	void *removed_arg;
};

struct vd_informer {
	/* Fixed at creation. */
	const struct vd_env	  *env;
	struct vd_cacher	  *cacher; /* a reference */
	const struct vd_executor  *executor;
	struct vd_actor		  *actor;
	struct vdi_usage	   usage;
	struct vd_watch_options	   options; /* strings are owned copies */
	struct vdi_informer_index *indexes;
	size_t			   index_count;

	struct vdi_lock lock; /* VDI_LOCK_CACHE_WATCHER */

	/* Under lock. */
	struct vdi_btree objects; /* changed only by the actor, as are the indexes */
	vd_rev		 shown_revision;
	bool		 is_synced;
	bool		 is_closed;
	struct vdi_synced_waiter {
		struct vdi_wait		 *wait;
		struct vdi_synced_waiter *next;
	} * waiters;
	void (*closed)(void *arg);
	void				*closed_arg;
	struct vd_informer_registration *arrivals; /* new handlers, not seen by the actor yet; newest first */
	struct vdi_informer_queue	 queue;
	bool				 has_ended;  /* the watch has ended, after the queued events */
	bool				 watch_open; /* a watcher exists and was not closed yet */
	struct vd_watcher		*watcher;

	/* The actor. */
	struct vd_informer_registration *registrations; /* in the order of registration */
	struct vdi_btree		 seen;		/* keys received in the current initial state */
	bool				 is_filling;
	bool				 was_filled;
	vd_rev				 revision; /* last one processed; 0: the initial state is needed */
	uint64_t			 set_back; /* of the cacher, when the initial state was requested */
	vd_mono				 reopen_at;

	struct vdi_ready_waiter ready_waiter;
	atomic_bool is_cache_ready; /* the cache was not ready when the watch should open, and is now */
};

/* ---- informer_objects.c ---- */

/* Returns a snapshot of the objects, which the caller releases, and a cursor before the first. Any thread. */
void vdi_informer_snapshot(struct vd_informer *informer, struct vdi_btree_snapshot *ret_snapshot,
			   struct vdi_btree_cursor *cursor);
/* Makes the next watch start with the initial state, because memory was short or the stream broke. */
void vdi_informer_forget_place(struct vd_informer *informer);
/* Changes the store and notifies the handlers. VD_NOMEM: nothing has changed. */
VDI_MUST_USE vd_status vdi_informer_take_event(struct vd_informer	       *informer,
					       const struct vdi_informer_event *event);
/* The lock is held. */
void vdi_informer_wake_waiters_locked(struct vd_informer *informer);

/* ---- informer_handlers.c ---- */

void vdi_informer_notify_add(struct vd_informer *informer, struct vd_object *object);
void vdi_informer_notify_update(struct vd_informer *informer, struct vd_object *old_object,
				struct vd_object *object);
void vdi_informer_notify_remove(struct vd_informer *informer, struct vd_object *object,
				bool unknown_final_state);
/* Notifies a handler that it is synced, once; later calls do nothing. */
void vdi_informer_notify_synced(struct vd_informer *informer, struct vd_informer_registration *to);
/* Notifies new handlers of all present objects. */
void vdi_informer_take_arrivals(struct vd_informer *informer);
void vdi_informer_drop_removed(struct vd_informer *informer);
/* Notifies handlers whose resync is due of all objects. Returns when the next one is due. */
vd_mono vdi_informer_resync(struct vd_informer *informer);
/* Any thread. */
VDI_MUST_USE vd_status vdi_informer_check_handler(const struct vd_informer_handler *handler,
						  struct vd_error		   *reterr);

#endif
