/* A subscription: the watchers of one watch group at one delivery worker. A watcher that is caught up is a
 * member and has no position of its own; the others are lagging.
 *
 * Owned by its delivery worker's thread, except fields marked otherwise. Events are taken from the group once
 * per subscription and delivered to every member.
 *
 * A subscription stores a single member directly. With the second member it gets an array (member list) of
 * the fields that delivery needs.
 */
#ifndef VDI_SUBSCRIPTION_H
#define VDI_SUBSCRIPTION_H

#include <stdatomic.h>

#include <vedette/watch.h>

#include "base.h"

struct vd_watcher;
struct vdi_delivery_worker;
struct vdi_watch_group;

struct vdi_subscription_member {
	size_t (*deliver)(void *arg, const struct vd_watch_event *events, size_t count);
	void		  *arg;
	struct vd_watcher *watcher;
};

struct vdi_member_list {
	uint64_t check_events; /* if the group's sums pass these, a member may exceed its lag limit */
	uint64_t check_bytes;
	uint32_t capacity;
	struct vdi_subscription_member members[];
};

/* A group embeds its first subscription, so the size of a subscription counts in the limit that watch_group.h
 * asserts. */
struct vdi_subscription {
	_Atomic uint32_t references;

	/* The cacher's actor. */
	bool in_batch;

	/* The delivery worker's lock. */
	bool is_dirty;

	/* The delivery worker. */
	bool	 is_listed : 1;
	bool	 has_early : 1; /* a lagging watcher waits for a future revision */
	bool	 has_member_list : 1;
	bool	 owes_bookmarks : 1; /* to members, after the matches are delivered */
	uint32_t member_count;

	/* The cacher's actor. */
	uint32_t		    watcher_count; /* 0: the group's own subscription, unused */
	struct vdi_watch_group	   *group;	   /* a reference */
	struct vdi_delivery_worker *worker;	   /* a reference; NULL: unused */
	struct vdi_subscription	   *group_next;
	struct vdi_subscription	   *batch_next;
	uint64_t		    batch_from;

	/* The delivery worker's lock. */
	uint64_t		 dirty_from; /* first match since the subscription was last clean */
	struct vdi_subscription *dirty_next;

	/* Owned by the delivery worker (before the first join: by the cacher's actor). */
	uint64_t position;     /* matches before it were delivered to the members */
	uint64_t taken_events; /* the group's sums up to position */
	uint64_t taken_bytes;
	union {
		struct vd_watcher      *single;	     /* the only member */
		struct vdi_member_list *member_list; /* has_member_list */
	};
	struct vd_watcher	 *lagging;
	struct vdi_subscription	 *worker_next;
	struct vdi_subscription **worker_place;
};

/* Returns a member; index < member_count. */
static inline struct vd_watcher *vdi_subscription_member_at(const struct vdi_subscription *subscription,
							    size_t			   index)
{
	return subscription->has_member_list ? subscription->member_list->members[index].watcher :
					       subscription->single;
}

/* Returns the group's own subscription if it is unused, otherwise a new one. Takes references. VD_NOMEM. The
 * cacher's actor. */
VDI_MUST_USE vd_status vdi_subscription_new(struct vdi_watch_group *group, struct vdi_delivery_worker *worker,
					    struct vdi_subscription **ret_subscription);
struct vdi_subscription *vdi_subscription_ref(struct vdi_subscription *subscription);
struct vdi_subscription *vdi_subscription_unref(struct vdi_subscription *subscription);

/* ---- For delivery_worker.c, on the delivery worker's thread ---- */

/* Delivers live events to the members of the dirty subscriptions, a list that was taken from the delivery
 * worker with its references. */
void vdi_subscription_run_dirty(struct vdi_delivery_worker *worker, struct vdi_subscription *subscription);
/* Serves watchers that are behind, a bounded number of turns. */
void vdi_subscription_serve_busy(struct vdi_delivery_worker *worker);
/* Queues a watcher that has work for a turn. */
void vdi_subscription_make_busy(struct vdi_delivery_worker *worker, struct vd_watcher *watcher);
/* Adds the watcher to the lagging watchers of its subscription or, if it has none, to the delivery worker's
 * failed watchers. */
void vdi_subscription_add_lagging(struct vd_watcher *watcher);
/* Adds the subscription to the delivery worker's list. */
void vdi_subscription_list(struct vdi_delivery_worker *worker, struct vdi_subscription *subscription);
/* Lowers the member list's check limits so that this watcher's lag limit is checked in time. */
void vdi_subscription_note_lag_limit(struct vd_watcher *watcher);
/* Ends a joining pulled watcher that was not pulled for longer than its lag limit allows (VD_TOO_SLOW). true:
 * it ended and may be freed. */
bool vdi_subscription_end_slow_joiner(struct vdi_delivery_worker *worker, struct vd_watcher *watcher);
/* Ends the watcher and notifies its sink, unless the watcher is closing. The watcher may be freed
 * afterwards. */
void vdi_subscription_end_watcher(struct vdi_delivery_worker *worker, struct vd_watcher *watcher,
				  vd_status reason);
/* While the cacher drains: ends watchers that have delivered all events. */
void vdi_subscription_end_drained(struct vdi_delivery_worker *worker);
/* Removes the delivery worker's last pointers to the watcher; then the cacher's actor may release it. */
void vdi_subscription_leave_cacher(struct vdi_delivery_worker *worker, struct vd_watcher *watcher);

#endif
