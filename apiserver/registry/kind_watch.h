/* One watch over a whole kind that never ends: for controllers inside the server, which keep no copies of
 * objects.
 *
 * It begins with everything that is there (a fill, numbered), goes on with what changes, resumes where it
 * can, and otherwise fills again: what a later fill does not bring has gone meanwhile.
 */
#ifndef VDI_KIND_WATCH_H
#define VDI_KIND_WATCH_H

#include "resources.h"

struct vdi_kind_watch;

/* Called on the watch's own thread, one at a time. */
struct vdi_kind_watch_handler {
	/* ADDED, MODIFIED, DELETED; lent. Must be quick. False: there is no memory for it; it comes again a
	 * little later. */
	bool (*changed)(void *arg, const struct vd_watch_event *event, uint64_t fill);
	/* Everything that was there has been told. */
	void (*filled)(void *arg, uint64_t fill);
	void *arg;
};

/* Starts at once. Takes a use of resource. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kind_watch_new(const struct vd_env *env, struct vdi_resource *resource,
					  const struct vdi_kind_watch_handler *handler,
					  struct vdi_kind_watch		     **ret_watch);
/* Its kind goes, and the kind's watches end: the handler hears of everything that there is to hear, then done
 * is called as of close. Any thread, but not from the handler; close is not called then. */
void vdi_kind_watch_leave(struct vdi_kind_watch *watch, void (*done)(void *arg), void *arg);
/* No call of the handler begins after done (may be NULL) was called. Any thread, but not from the handler. */
void vdi_kind_watch_close(struct vdi_kind_watch *watch, void (*done)(void *arg), void *arg);

#endif
