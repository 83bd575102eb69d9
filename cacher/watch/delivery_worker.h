/* A delivery worker: the watchers of one cacher whose sinks run on one executor, and the actor that delivers
 * their events on that executor's thread.
 *
 * The cacher's actor marks subscriptions dirty and posts messages. The delivery worker's actor takes each
 * event once per subscription, passes arrays of events to the sinks, keeps a position for each watcher that
 * takes fewer, sends initial states and ends watchers. A sink without an executor belongs to the inline
 * delivery worker, which the cacher's actor runs after each batch. A pulled watcher has a delivery worker of
 * its own, run by the thread that calls vd_watcher_next.
 *
 * A delivery worker on an executor ends with its last watcher. The `closed` callback of that watcher is
 * called when the delivery worker's actor is gone, so the executor may be freed then.
 */
#ifndef VDI_DELIVERY_WORKER_H
#define VDI_DELIVERY_WORKER_H

#include <stdatomic.h>

#include "base.h"
#include "lock.h"
#include "subscription.h"
#include "wait.h"
#include "watch_group.h"

struct vdi_dump_part;
struct vdi_watchers;

enum vdi_delivery_worker_kind {
	VDI_DELIVERY_WORKER_ACTOR,
	VDI_DELIVERY_WORKER_INLINE,
	VDI_DELIVERY_WORKER_PULLED
};

#define VDI_MESSAGE_JOIN 1
#define VDI_MESSAGE_RESUME 2
#define VDI_MESSAGE_CLOSE 4
#define VDI_MESSAGE_BOOKMARK 8
#define VDI_MESSAGE_DEADLINE 16

struct vdi_delivery_worker {
	_Atomic uint32_t	      references;
	enum vdi_delivery_worker_kind kind;
	struct vdi_watchers	     *watchers; /* borrowed; valid until is_shut_down */
	struct vd_executor	      executor;
	struct vd_actor		     *actor;
	atomic_uint		      closing; /* CLOSE messages posted and not yet handled */
	struct vdi_dump_part *_Atomic
		dumps; /* pending dumps that include this delivery worker; posted under the registry lock */

	/* Registry lock. */
	struct vdi_delivery_worker  *next;
	struct vdi_delivery_worker **place;    /* PULLED */
	size_t			     attached; /* watchers opened and not yet detached */

	struct vdi_lock lock; /* VDI_LOCK_CACHE_WATCHER */

	/* Under lock. */
	struct vd_watcher	*inbox_first;
	struct vd_watcher	*inbox_last;
	struct vdi_subscription *dirty_first;
	struct vdi_subscription *dirty_last;
	uint32_t		 end_generation; /* all watchers up to this generation end */
	bool			 end_wanted;
	bool			 is_shut_down;
	bool			 is_running; /* PULLED */
	struct vdi_wait		*waiter;     /* PULLED */
	int			 fd;	     /* PULLED; -1: none */

	/* Owned by the delivery worker's thread. */
	struct vdi_subscription *subscriptions;
	struct vd_watcher	*busy_first;
	struct vd_watcher	*busy_last;
	struct vd_watcher	*failed; /* failed before they had a subscription: an ERROR event is due */
	struct vd_watcher	*closed; /* watchers whose `closed` is called after the run */
};

/* Returns the delivery worker of an executor (NULL: the inline delivery worker); creates it if there is none.
 * Counts one attached watcher. Any thread. VD_NOMEM, VD_FULL, VD_CLOSED. */
VDI_MUST_USE vd_status vdi_delivery_worker_get(struct vdi_watchers	   *watchers,
					       const struct vd_executor	   *executor,
					       struct vdi_delivery_worker **ret_worker);
/* Creates the delivery worker of one pulled watcher. */
VDI_MUST_USE vd_status	    vdi_delivery_worker_new(struct vdi_watchers		 *watchers,
						    enum vdi_delivery_worker_kind kind,
						    struct vdi_delivery_worker	**ret_worker);
struct vdi_delivery_worker *vdi_delivery_worker_ref(struct vdi_delivery_worker *worker);
struct vdi_delivery_worker *vdi_delivery_worker_unref(struct vdi_delivery_worker *worker);
/* Undoes _get for a watcher that will not be joined. */
void vdi_delivery_worker_put(struct vdi_delivery_worker *worker);

/* Posts a message to a watcher; equal messages coalesce. false: the watcher is detached, nothing was posted.
 * Any thread. */
bool vdi_delivery_worker_post(struct vd_watcher *watcher, uint8_t message);
/* Marks the subscription dirty from position on. The cacher's actor. */
void vdi_delivery_worker_post_dirty(struct vdi_subscription *subscription, uint64_t from);
/* Ends all watchers up to generation with VD_CLOSED. */
void vdi_delivery_worker_post_end(struct vdi_delivery_worker *worker, uint32_t generation);
/* Wakes the delivery worker of a draining cacher, so that it ends watchers that have delivered all events. */
void vdi_delivery_worker_wake(struct vdi_delivery_worker *worker);
/* Runs one bounded step; true: more work is left. Not concurrently from two threads. */
bool vdi_delivery_worker_run(struct vdi_delivery_worker *worker);
/* vdi_delivery_worker_run for a pulled delivery worker, which two threads may want to run; false: another
 * thread is running it. */
bool vdi_delivery_worker_try_run(struct vdi_delivery_worker *worker, bool *ret_more);
/* Shuts the delivery worker at the cacher's end; later posts are ignored. */
void vdi_delivery_worker_shut_down(struct vdi_delivery_worker *worker);
/* Wakes the threads that wait for a pulled delivery worker after another thread has run it. */
void vdi_delivery_worker_notify(struct vdi_delivery_worker *worker);
/* Returns true if a run would find work. Any thread. */
bool vdi_delivery_worker_has_work(struct vdi_delivery_worker *worker);

#endif
