/* Bookmarks and deadlines: when each watcher is due for which of them.
 *
 * A timing wheel of one-second buckets, advanced by one timer of the cacher's actor that ticks every
 * [1, 1.25) s while the wheel has entries. An idle watcher costs its two links. A deadline before the next
 * tick is kept in a separate list and is met exactly.
 */
#ifndef VDI_BOOKMARK_H
#define VDI_BOOKMARK_H

#include "base.h"

struct vd_watcher;

#define VDI_BOOKMARK_BUCKETS 64
#define VDI_BOOKMARK_PERIOD VD_SECONDS(60)
#define VDI_BOOKMARK_BEFORE_DEADLINE VD_SECONDS(2)

struct vdi_bookmark_wheel {
	const struct vd_env *env;
	struct vd_watcher   *buckets[VDI_BOOKMARK_BUCKETS];
	struct vd_watcher   *soon; /* deadlines before the next tick */
	vd_mono		     soon_next;
	vd_mono		     tick_next; /* VD_NEVER: the wheel is empty */
	int64_t		     second;	/* all buckets up to here were visited */
	int64_t		     asked;	/* last second for which vdi_bookmark_is_near returned true */
	size_t		     count;
};

/* All on the cacher's actor. */
void vdi_bookmark_init(struct vdi_bookmark_wheel *wheel, const struct vd_env *env);
/* Files a watcher that wants bookmarks or has a deadline; others are ignored. */
void vdi_bookmark_add(struct vdi_bookmark_wheel *wheel, struct vd_watcher *watcher);
/* Does nothing if the watcher is not filed. */
void vdi_bookmark_remove(struct vdi_bookmark_wheel *wheel, struct vd_watcher *watcher);
/* Posts due bookmarks and deadlines. Returns the time of the next call. */
vd_mono vdi_bookmark_run(struct vdi_bookmark_wheel *wheel);
/* Returns true once per tick if a watcher is due at one of the next ticks. The caller then requests the
 * store's progress, so that the bookmark of an idle resource advances with writes to other resources. */
bool vdi_bookmark_is_near(struct vdi_bookmark_wheel *wheel);

#endif
