/* Encode once: the first watcher that needs a frame of an event encodes it; all watchers of the cacher share
 * it.
 *
 * A slot is one representation and framing (full JSON, metadata only, one table form); the transport assigns
 * the numbers. A frame is identified by its slot and by the event type that the watcher gets (ADDED,
 * MODIFIED, DELETED). Frames are kept while they are referenced or the event is recent.
 */
#ifndef VDI_CACHING_OBJECT_H
#define VDI_CACHING_OBJECT_H

#include <vedette/watch.h>

#include "base.h"

#define VDI_FRAME_SLOTS 10

/* Encodes event into a new blob. The result must depend only on the event, the slot and arg. */
typedef vd_status (*vdi_frame_encode_fn)(void *arg, const struct vd_watch_event *event,
					 struct vd_blob **ret_frame);

/* Returns the frame; the caller owns the reference. Any thread; the encoder runs on it. Events without shared
 * (initial events, bookmarks) are encoded each time. A table frame with a header row must not use the slot of
 * those without. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_frame_get(const struct vd_watch_event *event, unsigned slot,
				     vdi_frame_encode_fn encode, void *arg, struct vd_blob **ret_frame);

/* ---- For the cacher ---- */

/* Releases the frames of an event that is no longer recent; later frames are not kept. Any thread that holds
 * a reference to the event. */
void vdi_frames_retire(struct vdi_event *event);
/* Frees the frames with the last reference to the event. */
void vdi_frames_free(struct vdi_event *event);

#endif
