/* Encode once: the frames of an event are made by whoever needs them first and shared by all watchers of the
 * cacher (R-570..R-574).
 *
 * A slot stands for one representation and framing (full JSON, metadata only, one table form); the transport
 * assigns the numbers. The event's type as this watcher sees it (ADDED, MODIFIED, DELETED) is part of the
 * identity. Frames live as long as someone holds them or the event is recent.
 */
#ifndef VDI_CACHING_OBJECT_H
#define VDI_CACHING_OBJECT_H

#include <vedette/watch.h>

#include "base.h"

#define VDI_FRAME_SLOTS 10

/* Encodes event into a new blob. Must be a pure function of the event, the slot's meaning and arg. */
typedef vd_status (*vdi_frame_encode_fn)(void *arg, const struct vd_watch_event *event,
					 struct vd_blob **ret_frame);

/* ret_frame is a reference of the caller's. Any thread; the encoder runs on the caller's. Events without
 * shared (initial, bookmarks) are encoded afresh. A table frame with its header row must not be asked for
 * here under the slot of those without. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_frame_get(const struct vd_watch_event *event, unsigned slot,
				     vdi_frame_encode_fn encode, void *arg, struct vd_blob **ret_frame);

/* ---- For the cacher ---- */

/* The event is no longer recent: lets its frames go; later ones are not kept. Any thread that holds a
 * reference of the event. */
void vdi_frames_retire(struct vdi_event *event);
/* The last reference of the event is gone. */
void vdi_frames_free(struct vdi_event *event);

#endif
