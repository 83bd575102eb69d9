/* What a cacher looks like inside, as JSON, for people.
 *
 * Everybody tells about what is theirs on their own thread (the cacher's actor, then each outlet), so nothing
 * that belongs to one thread is read by another; locks are held for some numbers only and dispatch never
 * waits. What watchers that are pulled think is not asked.
 */
#ifndef VDI_CACHER_DUMP_H
#define VDI_CACHER_DUMP_H

#include "base.h"

struct vd_cacher;
struct vdi_outlet;

#define VDI_DUMP_WATCHERS_MAX 100
#define VDI_DUMP_QUARANTINED_MAX 20

/* json is one object, lent for the call; empty unless status is VD_OK. Any thread; must not block. */
typedef void (*vdi_cacher_dump_fn)(void *arg, vd_status status, struct vd_bytes json);

/* VD_CLOSED, VD_NOMEM: done is not called. Else it is, exactly once; the cacher stays until then. Any thread,
 * does not wait. */
VDI_MUST_USE vd_status vdi_cacher_dump(struct vd_cacher *cacher, vdi_cacher_dump_fn done, void *arg);

/* The cacher's actor and the outlet's thread: answer those who have asked. */
void vdi_cacher_dump_run(struct vd_cacher *cacher);
void vdi_cacher_dump_outlet(struct vdi_outlet *outlet);

#endif
