/* The events of one watch of a cacher, as lines of JSON:
 *
 * 	{"watch":0,"type":"ADDED","rev":12,"key":"/registry/pods/a/b","object":{...}}	also MODIFIED, DELETED
 * 	{"watch":0,"type":"BOOKMARK","rev":12}		with "initialEventsEnd":true after the initial state
 * 	{"watch":0,"type":"ERROR","error":{"code":410,"reason":"Expired","message":"..."}}
 * 	{"watch":0,"end":"expired"}			the name of the status; the watch has ended
 *
 * The watch is opened when the cacher is ready. With resume a watch that has ended is opened again, as
 * clients do: from the last revision that it saw or, if that has expired, with the initial state.
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
	vd_dur			       pause; /* after each event, to simulate a slow client; 0: none */
	void (*line)(
		void *arg,
		/* With its newline; borrowed. On an actor, one at a time for one viewer. NULL: lines are not
		 * used. */
		struct vd_bytes line);
	void *line_arg;
	/* Replace lines, if event is set: the events themselves, and the end of a watch; starts_over: the
	 * next watch begins with the initial state. */
	void (*event)(void *arg, const struct vd_watch_event *event);
	void (*ended)(void *arg, vd_status reason, bool starts_over);
	void *event_arg;
};

/* Opens its watch as soon as the cacher is ready. VD_NOMEM. cacher must outlive it. */
VDI_MUST_USE vd_status vdi_viewer_new(const struct vd_env *env, struct vd_cacher *cacher,
				      const struct vdi_viewer_options *options,
				      struct vdi_viewer		     **ret_viewer);
/* Returns true if the watch is open, or has ended permanently. Any thread. */
bool vdi_viewer_is_open(const struct vdi_viewer *viewer);
/* Returns true if no event waits for the end of a pause. Any thread. */
bool vdi_viewer_is_idle(const struct vdi_viewer *viewer);
/* Closes the viewer; no line is written after done was called. */
void vdi_viewer_close(struct vdi_viewer *viewer, void (*done)(void *arg), void *arg);

#endif
