/* A watch of a whole kind that never ends, for controllers inside the server, which keep no copies of
 * objects.
 *
 * It starts with all existing objects (a numbered fill) and continues with changes. After an interruption it
 * resumes if it can; otherwise a new fill starts, and objects that the new fill does not contain were deleted
 * meanwhile.
 */
#ifndef VDI_KIND_WATCH_H
#define VDI_KIND_WATCH_H

#include "resources.h"

struct vdi_kind_watch;

/* Called on the watch's own thread, one call at a time. */
struct vdi_kind_watch_handler {
	/* ADDED, MODIFIED, DELETED; borrowed. Must be quick. False: out of memory; the event is delivered
	 * again a little later. */
	bool (*changed)(void *arg, const struct vd_watch_event *event, uint64_t fill);
	/* All existing objects were delivered. */
	void (*filled)(void *arg, uint64_t fill);
	void *arg;
};

/* Starts at once. Takes a reference on resource. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kind_watch_new(const struct vd_env *env, struct vdi_resource *resource,
					  const struct vdi_kind_watch_handler *handler,
					  struct vdi_kind_watch		     **ret_watch);
/* The kind is going away and its watches end: delivers all remaining events, then calls done as close does.
 * Any thread, but not from the handler. Do not call close as well. */
void vdi_kind_watch_leave(struct vdi_kind_watch *watch, void (*done)(void *arg), void *arg);
/* After done (may be NULL) was called, no call of the handler begins. Any thread, but not from the
 * handler. */
void vdi_kind_watch_close(struct vdi_kind_watch *watch, void (*done)(void *arg), void *arg);

#endif
