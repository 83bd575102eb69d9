/* Bookmarks and deadlines: who is due what when (R-556..R-558).
 *
 * A wheel of one-second buckets, turned by one timer of the cacher's actor that ticks every [1, 1.25) s and
 * only while somebody is in the wheel. An idle watcher costs its two links. A deadline that falls before the
 * next tick waits in a list of its own and is met exactly.
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
	int64_t		     second;	/* everything up to here was looked at */
	int64_t		     asked;	/* vdi_bookmark_is_near was answered for this second */
	size_t		     count;
};

/* All on the cacher's actor. */
void vdi_bookmark_init(struct vdi_bookmark_wheel *wheel, const struct vd_env *env);
/* Files a watcher that wants bookmarks or has a deadline; others are ignored. */
void vdi_bookmark_add(struct vdi_bookmark_wheel *wheel, struct vd_watcher *watcher);
/* Fine if it is not filed. */
void vdi_bookmark_remove(struct vdi_bookmark_wheel *wheel, struct vd_watcher *watcher);
/* Posts what is due. Returns when to call again. */
vd_mono vdi_bookmark_run(struct vdi_bookmark_wheel *wheel);
/* true, once a tick: somebody is due at one of the next ticks. The time to ask the store how far it is, so
 * that the bookmark of an idle resource moves with writes to others. */
bool vdi_bookmark_is_near(struct vdi_bookmark_wheel *wheel);

#endif
