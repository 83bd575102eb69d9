/* An event that is encoded gets one small block with a lock and a table of frames by slot and type. The lock
 * is held while the first encoder runs, so that each frame is encoded exactly once; different events never
 * wait for each other. When the cacher retires an event, its frames are dropped: later streams encode for
 * themselves, and memory is bounded by the recent events. */
#include "caching_object.h"

#include "history.h"
#include "lock.h"

#define FRAME_TYPES 3 /* ADDED, MODIFIED, DELETED */

struct vdi_frames {
	struct vdi_lock lock;
	struct vd_blob *frames[VDI_FRAME_SLOTS][FRAME_TYPES];
};

static struct vdi_frames *frames_of(struct vdi_event *event)
{
	struct vdi_frames *frames = atomic_load_explicit(&event->frames, memory_order_acquire);
	struct vdi_frames *expected = NULL;

	if (frames)
		return frames;
	frames = VDI_NEW(struct vdi_frames);
	if (frames == NULL)
		return NULL;
	vdi_lock_init(&frames->lock, VDI_LOCK_LEAF);
	if (atomic_compare_exchange_strong(&event->frames, &expected, frames))
		return frames;
	vdi_lock_fini(&frames->lock);
	vdi_free(frames);
	return expected;
}

vd_status vdi_frame_get(const struct vd_watch_event *event, unsigned slot, vdi_frame_encode_fn encode,
			void *arg, struct vd_blob **ret_frame)
{
	struct vdi_event  *shared = event->shared;
	struct vdi_frames *frames = NULL;
	struct vd_blob	 **place;
	vd_status	   status = VD_OK;

	if (shared && slot < VDI_FRAME_SLOTS && event->type < FRAME_TYPES &&
	    atomic_load_explicit(&shared->recent, memory_order_relaxed))
		frames = frames_of(shared);
	if (frames == NULL)
		return encode(arg, event, ret_frame);
	place = &frames->frames[slot][event->type];
	vdi_lock_acquire(&frames->lock);
	if (*place) {
		*ret_frame = vd_blob_ref(*place);
	} else {
		status = encode(arg, event, ret_frame);
		/* If the event was retired meanwhile, only the caller gets a reference. */
		if (status == VD_OK && atomic_load(&shared->recent))
			*place = vd_blob_ref(*ret_frame);
	}
	vdi_lock_release(&frames->lock);
	return status;
}

static void drop_frames(struct vdi_frames *frames)
{
	for (unsigned slot = 0; slot < VDI_FRAME_SLOTS; slot++)
		for (unsigned type = 0; type < FRAME_TYPES; type++)
			frames->frames[slot][type] = vd_blob_unref(frames->frames[slot][type]);
}

void vdi_frames_retire(struct vdi_event *event)
{
	struct vdi_frames *frames;

	atomic_store(&event->recent, false);
	/* Sequentially consistent with frames_of: a block that appears after this load belongs to an encoder
	 * that saw the event as recent before, and checks again under the lock. At worst an empty block is
	 * kept until the event is freed. */
	frames = atomic_load(&event->frames);
	if (frames == NULL)
		return;
	vdi_lock_acquire(&frames->lock);
	drop_frames(frames);
	vdi_lock_release(&frames->lock);
}

void vdi_frames_free(struct vdi_event *event)
{
	struct vdi_frames *frames = atomic_load_explicit(&event->frames, memory_order_acquire);

	if (frames == NULL)
		return;
	drop_frames(frames);
	vdi_lock_fini(&frames->lock);
	vdi_free(frames);
}
