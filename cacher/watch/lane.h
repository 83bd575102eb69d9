/* A lane: a watch group's share at one outlet. The watchers there that are caught up (members, without a
 * position of their own), and those that lag.
 *
 * Belongs to its outlet's thread, but for the parts that say otherwise. Events are taken from the group once
 * per lane and handed to every member.
 *
 * A lane that never had two members at a time knows its one member itself; with the second comes the crowd,
 * an array of what delivery needs of each.
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
	uint64_t	       check_events; /* when the group's sums pass these, somebody lags too far */
	uint64_t	       check_bytes;
	uint32_t	       capacity;
	struct vdi_lane_member members[];
};

/* A group embeds its first lane, so the size of the lane counts in the limit that watch_group.h asserts. */
struct vdi_lane {
	_Atomic uint32_t references;

	/* The cacher's actor. */
	bool in_batch;

	/* The outlet's lock. */
	bool is_dirty;

	/* The outlet. */
	bool	 is_listed : 1;
	bool	 has_early : 1; /* a lagging watcher waits for a later revision */
	bool	 has_crowd : 1;
	bool	 owes_bookmarks : 1; /* to members, once it has handed out what matched */
	uint32_t member_count;

	/* The cacher's actor. */
	uint32_t		watcher_count; /* 0: the group's own lane, which nobody uses */
	struct vdi_watch_group *group;	       /* a reference */
	struct vdi_outlet      *outlet;	       /* a reference; NULL: never used */
	struct vdi_lane	       *group_next;
	struct vdi_lane	       *batch_next;
	uint64_t		batch_from;

	/* The outlet's lock. */
	uint64_t	 dirty_from; /* no match since the lane was clean lies before */
	struct vdi_lane *dirty_next;

	/* The outlet (before the first join: the cacher's actor). */
	uint64_t position;     /* matches before it were handed to the members */
	uint64_t taken_events; /* the group's sums up to there */
	uint64_t taken_bytes;
	union {
		struct vd_watcher     *single; /* of one member */
		struct vdi_lane_crowd *crowd;  /* has_crowd */
	};
	struct vd_watcher *lagging;
	struct vdi_lane	  *outlet_next;
	struct vdi_lane	 **outlet_place;
};

/* A member; index below member_count. */
static inline struct vd_watcher *vdi_lane_member_at(const struct vdi_lane *lane, size_t index)
{
	return lane->has_crowd ? lane->crowd->members[index].watcher : lane->single;
}

/* The group's own, if that was never used, else a new one. Takes references. VD_NOMEM. The cacher's actor. */
VDI_MUST_USE vd_status vdi_lane_new(struct vdi_watch_group *group, struct vdi_outlet *outlet,
				    struct vdi_lane **ret_lane);
struct vdi_lane	      *vdi_lane_ref(struct vdi_lane *lane);
struct vdi_lane	      *vdi_lane_unref(struct vdi_lane *lane);

/* ---- For outlet.c, on the outlet's thread ---- */

/* Live events to the members of the dirty lanes, a list that was taken from the outlet with its
 * references. */
void vdi_lane_run_dirty(struct vdi_outlet *outlet, struct vdi_lane *lane);
/* Some turns for the watchers that are behind. */
void vdi_lane_serve_busy(struct vdi_outlet *outlet);
/* The watcher has work: it gets a turn. */
void vdi_lane_make_busy(struct vdi_outlet *outlet, struct vd_watcher *watcher);
/* The watcher joins its lane, behind (or, without a lane, the failed ones). */
void vdi_lane_add_lagging(struct vd_watcher *watcher);
/* The outlet knows the lane from now on. */
void vdi_lane_list(struct vdi_outlet *outlet, struct vdi_lane *lane);
/* Its lag is watched from where it stands. */
void vdi_lane_note_lag_limit(struct vd_watcher *watcher);
/* Ends a watcher that joins and was not pulled for longer than its lag limit allows (VD_TOO_SLOW). true: it
 * ended, and may be gone. */
bool vdi_lane_end_slow_joiner(struct vdi_outlet *outlet, struct vd_watcher *watcher);
/* The sink hears of it unless it does not want to. Afterwards the watcher may be gone. */
void vdi_lane_end_watcher(struct vdi_outlet *outlet, struct vd_watcher *watcher, vd_status reason);
/* While the cacher drains: who has taken all there is ends. */
void vdi_lane_end_drained(struct vdi_outlet *outlet);
/* Nothing of the outlet points at it any more: the cacher's actor may forget it. */
void vdi_lane_leave_cacher(struct vdi_outlet *outlet, struct vd_watcher *watcher);

#endif
