/* What one watch of a cacher sees, as lines of JSON:
 *
 * 	{"watch":0,"type":"ADDED","rev":12,"key":"/registry/pods/a/b","object":{...}}	also MODIFIED, DELETED
 * 	{"watch":0,"type":"BOOKMARK","rev":12}						with "initialEventsEnd":true for the one that closes the initial state
 * 	{"watch":0,"type":"ERROR","error":{"code":410,"reason":"Expired","message":"..."}}
 * 	{"watch":0,"end":"expired"}							the name of the status; the watch is over
 *
 * The watch is opened when the cacher is ready. With resume a watch that has ended is opened again, as
 * clients do: from the last revision it saw, or, when that is gone, from the present state.
 */
#ifndef VDI_VIEWER_H
#define VDI_VIEWER_H

#include <vedette/cacher.h>

#include "base.h"

struct vdi_viewer;

struct vdi_viewer_options {
	unsigned		       number;
	const struct vd_watch_options *watch; /* slices are copied */
	bool			       resume;
	vd_dur			       pause; /* after each event: a slow client; 0: none */
	void (*line)(
		void *arg,
		/* with its newline; lent. On an actor, one at a time for one viewer. NULL: nobody wants to
		 * know */
		struct vd_bytes line);
	void *line_arg;
	/* In the place of lines, when event is given: the events themselves, and how a watch ended;
	 * starts_over: the next one begins with the present state. */
	void (*event)(void *arg, const struct vd_watch_event *event);
	void (*ended)(void *arg, vd_status reason, bool starts_over);
	void *event_arg;
};

/* Opens its watch as soon as it can. VD_NOMEM. cacher outlives it. */
VDI_MUST_USE vd_status vdi_viewer_new(const struct vd_env *env, struct vd_cacher *cacher,
				      const struct vdi_viewer_options *options,
				      struct vdi_viewer		     **ret_viewer);
/* The watch is open, or has ended for good. Any thread. */
bool vdi_viewer_is_open(const struct vdi_viewer *viewer);
/* Nothing waits for the end of a pause. Any thread. */
bool vdi_viewer_is_idle(const struct vdi_viewer *viewer);
/* No lines any more when done is called. */
void vdi_viewer_close(struct vdi_viewer *viewer, void (*done)(void *arg), void *arg);

#endif
