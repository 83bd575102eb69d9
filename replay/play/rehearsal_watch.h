/* What one watch of a rehearsal was given: kept, and checked as it comes.
 *
 *	ordered		revisions never fall
 *	unique		no object twice at one revision
 *	typed		ADDED for what was not there, MODIFIED and DELETED for what was
 *	previous	with the state before, as it was shown
 *	bookmarkable	nothing behind a bookmark that belongs before it
 *
 * The first thing that is wrong is kept as a sentence. One thread.
 */
#ifndef VDI_REHEARSAL_WATCH_H
#define VDI_REHEARSAL_WATCH_H

#include <vedette/cacher.h>

#include "base.h"
#include "hash.h"

struct vdi_rehearsal_event {
	enum vd_watch_type type;
	vd_rev		   revision;
	struct vd_object  *object; /* a reference; NULL for BOOKMARK and ERROR */
};

/* One object that the watch has shown; stays after it was deleted. */
struct vdi_rehearsal_shown {
	vd_rev	 revision; /* of its last event */
	vd_rev	 object_revision;
	bool	 is_there;
	bool	 was_listed; /* between two looks at a list */
	uint32_t key_size;
	char	 key[];
};

struct vdi_rehearsal_watch {
	vd_rev begins_at; /* nothing is known of what was there before; 0: begins with the present state */
	struct vdi_hash shown;
	vd_rev		newest, bookmark;

	struct vdi_rehearsal_event *events;
	size_t			    count, capacity;
	uint64_t		    dropped;  /* events that were too many to keep */
	size_t			    expected; /* those before were expected, or passed over */
	uint64_t		    fingerprint;
	unsigned		    restarts;	    /* how often it began with the present state again */
	char			    violation[512]; /* "": none */
};

void vdi_rehearsal_watch_init(struct vdi_rehearsal_watch *watch, vd_rev begins_at);
void vdi_rehearsal_watch_fini(struct vdi_rehearsal_watch *watch);
void vdi_rehearsal_watch_take(struct vdi_rehearsal_watch *watch, const struct vd_watch_event *event);
void vdi_rehearsal_watch_ended(struct vdi_rehearsal_watch *watch, vd_status reason, bool starts_over);
/* Its picture against a list of the same scope and selectors, which is used up. */
void vdi_rehearsal_watch_compare(struct vdi_rehearsal_watch *watch, struct vd_list *list);

#endif
