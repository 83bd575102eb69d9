/* The events of one watch of a simulation: kept, and checked as they arrive.
 *
 *	ordered		revisions never decrease
 *	unique		no object is delivered twice at one revision
 *	typed		ADDED for an absent object, MODIFIED and DELETED for a present one
 *	previous	the previous object is the one that was delivered
 *	bookmarkable	no event after a bookmark that belongs before it
 *
 * The first violation is kept as a sentence. One thread.
 */
#ifndef VDI_SIMULATION_WATCH_H
#define VDI_SIMULATION_WATCH_H

#include <vedette/cacher.h>

#include "base.h"
#include "hash.h"

struct vdi_simulation_event {
	enum vd_watch_type type;
	vd_rev		   revision;
	struct vd_object  *object; /* a reference; NULL for BOOKMARK and ERROR */
};

/* An object that the watch has delivered; kept after its deletion. */
struct vdi_simulation_shown {
	vd_rev	 revision; /* of its last event */
	vd_rev	 object_revision;
	bool	 is_there;
	bool	 was_listed; /* since the last comparison with a list */
	uint32_t key_size;
	char	 key[];
};

struct vdi_simulation_watch {
	vd_rev		begins_at; /* earlier state is unknown; 0: starts with the initial state */
	struct vdi_hash shown;
	vd_rev		newest, bookmark;

	struct vdi_simulation_event *events;
	size_t			     count, capacity;
	uint64_t		     dropped;  /* events beyond the kept ones */
	size_t			     expected; /* events before it were expected or skipped */
	uint64_t		     fingerprint;
	unsigned		     restarts;	     /* number of restarts with the initial state */
	char			     violation[512]; /* "": none */
};

void vdi_simulation_watch_init(struct vdi_simulation_watch *watch, vd_rev begins_at);
void vdi_simulation_watch_fini(struct vdi_simulation_watch *watch);
void vdi_simulation_watch_take(struct vdi_simulation_watch *watch, const struct vd_watch_event *event);
void vdi_simulation_watch_ended(struct vdi_simulation_watch *watch, vd_status reason, bool starts_over);
/* Compares the delivered state with a list of the same scope and selectors, which is consumed. */
void vdi_simulation_watch_compare(struct vdi_simulation_watch *watch, struct vd_list *list);

#endif
