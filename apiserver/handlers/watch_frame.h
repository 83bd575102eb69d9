/* Frames of a watch: what one event is on the wire, in the form that was asked for (R-633, R-634, R-640,
 *
 *
 * A frame is a chunk of HTTP/1.1. What all watches of one form can share is made once (caching_object.h); the
 * rest each makes for itself. On the watch's loop.
 */
#ifndef VDI_WATCH_FRAME_H
#define VDI_WATCH_FRAME_H

#include <vedette/watch.h>

#include "negotiate.h"
#include "packer.h"
#include "table.h"

struct vdi_watch_form {
	const struct vdi_resource *resource;
	const struct vd_env	  *env;
	struct vdi_packer	  *packer; /* lent by the loop; NULL: this watch goes out plainly */
	size_t packed; /* content that this watch has compressed in its turn; its owner sets it back */
	struct vdi_negotiated negotiated;
	uint8_t		      include;	  /* enum vdi_include */
	bool		      header_due; /* the next table carries the columns */
};

/* Whether others may want the same bytes. */
bool vdi_watch_frame_is_shared(const struct vdi_watch_form *form, const struct vd_watch_event *event);
/* The frame of such an event; a member of its own when the watch has a packer, which must be between two
 * members. *ret_frame is a reference of the caller's. VD_NOMEM; VD_BAD_REQUEST, VD_TOO_BIG: the object cannot
 * be told in this form. */
VDI_MUST_USE vd_status vdi_watch_frame_get(struct vdi_watch_form *form, const struct vd_watch_event *event,
					   struct vd_blob **ret_frame);
/* The frame of any event, made afresh and not packed. Errors as above. */
VDI_MUST_USE vd_status vdi_watch_frame_new(struct vdi_watch_form *form, const struct vd_watch_event *event,
					   struct vd_blob **ret_frame);

#endif
