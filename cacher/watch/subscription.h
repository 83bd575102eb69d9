/* A lane: the watchers of one watch group at one outlet. A watcher that is caught up is a member and has no
 * position of its own; the others are lagging.
 *
 * Owned by its outlet's thread, except fields marked otherwise. Events are taken from the group once per lane
 * and delivered to every member.
 *
 * A lane stores a single member directly. With the second member it gets an array (crowd) of the fields that
 * delivery needs.
 */
#ifndef VDI_LANE_H
#define VDI_LANE_H

#include <stdatomic.h>

#include <vedette/watch.h>

#include "base.h"

struct vd_watcher;
struct vdi_outlet;
struct vdi_watch_group;

struct vdi_lane_member {
	size_t (*deliver)(void *arg, const struct vd_watch_event *events, size_t count);
	void		  *arg;
	struct vd_watcher *watcher;
};

struct vdi_lane_crowd {
	uint64_t check_events; /* if the group's sums pass these, a member may exceed its lag limit */
	uint64_t check_bytes;
	uint32_t capacity;
	struct vdi_lane_member members[];
};

/* A group embeds its first lane, so the size of a lane counts in the limit that watch_group.h asserts. */
struct vdi_lane {
	_Atomic uint32_t references;

	/* The cacher's actor. */
	bool in_batch;

	/* The outlet's lock. */
	bool is_dirty;

	/* The outlet. */
	bool	 is_listed : 1;
	bool	 has_early : 1; /* a lagging watcher waits for a future revision */
	bool	 has_crowd : 1;
	bool	 owes_bookmarks : 1; /* to members, after the matches are delivered */
	uint32_t member_count;

	/* The cacher's actor. */
	uint32_t		watcher_count; /* 0: the group's own lane, unused */
	struct vdi_watch_group *group;	       /* a reference */
	struct vdi_outlet      *outlet;	       /* a reference; NULL: unused */
	struct vdi_lane	       *group_next;
	struct vdi_lane	       *batch_next;
	uint64_t		batch_from;

	/* The outlet's lock. */
	uint64_t	 dirty_from; /* first match since the lane was last clean */
	struct vdi_lane *dirty_next;

	/* Owned by the outlet (before the first join: by the cacher's actor). */
	uint64_t position;     /* matches before it were delivered to the members */
	uint64_t taken_events; /* the group's sums up to position */
	uint64_t taken_bytes;
	union {
		struct vd_watcher     *single; /* the only member */
		struct vdi_lane_crowd *crowd;  /* has_crowd */
	};
	struct vd_watcher *lagging;
	struct vdi_lane	  *outlet_next;
	struct vdi_lane	 **outlet_place;
};

/* Returns a member; index < member_count. */
static inline struct vd_watcher *vdi_lane_member_at(const struct vdi_lane *lane, size_t index)
{
	return lane->has_crowd ? lane->crowd->members[index].watcher : lane->single;
}

/* Returns the group's own lane if it is unused, otherwise a new one. Takes references. VD_NOMEM. The cacher's
 * actor. */
VDI_MUST_USE vd_status vdi_lane_new(struct vdi_watch_group *group, struct vdi_outlet *outlet,
				    struct vdi_lane **ret_lane);
struct vdi_lane	      *vdi_lane_ref(struct vdi_lane *lane);
struct vdi_lane	      *vdi_lane_unref(struct vdi_lane *lane);

/* ---- For delivery_worker.c, on the outlet's thread ---- */

/* Delivers live events to the members of the dirty lanes, a list that was taken from the outlet with its
 * references. */
void vdi_lane_run_dirty(struct vdi_outlet *outlet, struct vdi_lane *lane);
/* Serves watchers that are behind, a bounded number of turns. */
void vdi_lane_serve_busy(struct vdi_outlet *outlet);
/* Queues a watcher that has work for a turn. */
void vdi_lane_make_busy(struct vdi_outlet *outlet, struct vd_watcher *watcher);
/* Adds the watcher to the lagging watchers of its lane or, if it has none, to the outlet's failed
 * watchers. */
void vdi_lane_add_lagging(struct vd_watcher *watcher);
/* Adds the lane to the outlet's list. */
void vdi_lane_list(struct vdi_outlet *outlet, struct vdi_lane *lane);
/* Lowers the crowd's check limits so that this watcher's lag limit is checked in time. */
void vdi_lane_note_lag_limit(struct vd_watcher *watcher);
/* Ends a joining pulled watcher that was not pulled for longer than its lag limit allows (VD_TOO_SLOW). true:
 * it ended and may be freed. */
bool vdi_lane_end_slow_joiner(struct vdi_outlet *outlet, struct vd_watcher *watcher);
/* Ends the watcher and tells its sink, unless the watcher is closing. The watcher may be freed afterwards. */
void vdi_lane_end_watcher(struct vdi_outlet *outlet, struct vd_watcher *watcher, vd_status reason);
/* While the cacher drains: ends watchers that have delivered all events. */
void vdi_lane_end_drained(struct vdi_outlet *outlet);
/* Removes the outlet's last pointers to the watcher; then the cacher's actor may release it. */
void vdi_lane_leave_cacher(struct vdi_outlet *outlet, struct vd_watcher *watcher);

#endif
