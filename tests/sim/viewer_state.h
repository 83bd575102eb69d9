/* Private state of viewers, for viewer.c and viewer_check.c. */
#ifndef VIEWER_STATE_H
#define VIEWER_STATE_H

#include "viewer.h"

#define VIEWERS_MAX 32

enum start {
	START_STATE_BOOKMARK,
	START_STATE,
	START_LEGACY_ANY,
	START_NOW,
	START_CACHE_NOW,
	START_AFTER,
	START_KINDS
};
enum pace { PACE_FAST, PACE_SLOW, PACE_STALLS };
enum phase { IDLE, LISTING, OPEN, ENDED, CLOSING };

struct viewer {
	struct world	 *world;
	unsigned	  number;
	struct sim_filter filter;
	enum pace	  pace;
	bool		  is_pulled;
	int		  executor; /* -1: the cacher's own actor */
	bool		  has_bookmarks, wants_tight_lag, wants_deadline, closes_in_deliver;

	enum phase	   phase;
	struct vd_watcher *watcher;
	enum start	   start;
	vd_mono		   opened;
	vd_mono		   deadline;
	int64_t		   lag_events_max, lag_bytes_max;
	vd_rev		   opened_above; /* the watch must start at or after this */
	vd_rev		   opened_below; /* and at or before this; 0: not known yet */
	uint64_t	   relists_at_open;
	uint32_t	   generation_at_open;
	bool		   is_resume;
	uint64_t	   restarts_at_open;

	vd_rev	floor;			  /* requested start: events after this one; may be in the future */
	vd_rev	last;			  /* last event or bookmark, where a new watch resumes; 0: none yet */
	int	cursor;			  /* next record to compare */
	bool	is_known;		  /* the cursor is known */
	bool	in_state;		  /* initial events are being delivered */
	int	initial[ORACLE_KEYS_MAX]; /* records */
	size_t	initial_count;
	vd_mono last_bookmark;

	unsigned  late_calls; /* calls of the sink that may still arrive after the close */
	bool	  has_error;  /* an ERROR event arrived */
	vd_status error;
	vd_status reason;
	bool	  is_stuck; /* took less than offered */
	size_t	  room;
	vd_mono	  stalled_until;
	vd_mono	  free_since; /* since then it accepts everything */
	vd_mono	  retry_at;
	bool	  must_relist;
};

struct viewers {
	struct viewer all[VIEWERS_MAX];
	unsigned      count;
};

#define viewer_fail(viewer, property, format, ...)                                                           \
	sim_fail((viewer)->world, property,                                                                  \
		 "viewer %u (start %d, %s '%s' '%s' ns '%s' name '%s', last %lld): " format,                 \
		 (viewer)->number, (int) (viewer)->start,                                                    \
		 (viewer)->is_pulled	? "pulled" :                                                         \
		 (viewer)->executor < 0 ? "inline" :                                                         \
					  "executor",                                                        \
		 (viewer)->filter.label_text, (viewer)->filter.field_text, (viewer)->filter.namespace_name,  \
		 (viewer)->filter.name, (long long) (viewer)->last, ##__VA_ARGS__)

/* ---- viewer_check.c ---- */

/* Returns the next record for this viewer from index on; -1: none. */
int  viewer_next_from(const struct viewer *viewer, int index);
int  viewer_next_expected(struct viewer *viewer);
void viewer_take_event(struct viewer *viewer, const struct vd_watch_event *event);
/* Returns true if a part of the last revision is missing. Called where the watch pauses or ends. */
bool viewer_is_mid_revision(struct viewer *viewer);

#endif
