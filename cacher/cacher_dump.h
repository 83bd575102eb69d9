/* The internal state of a cacher as JSON, for debugging by people.
 *
 * The cacher's actor and each delivery worker write their own part on their own thread, so no thread reads
 * data of another. Locks are held only to copy a few numbers, and dispatch never waits. Pulled watchers are
 * not asked for their state.
 */
#ifndef VDI_CACHER_DUMP_H
#define VDI_CACHER_DUMP_H

#include "base.h"

struct vd_cacher;
struct vdi_delivery_worker;

#define VDI_DUMP_WATCHERS_MAX 100
#define VDI_DUMP_QUARANTINED_MAX 20

/* json is one object, borrowed for the call; empty unless status is VD_OK. Any thread; must not block. */
typedef void (*vdi_cacher_dump_fn)(void *arg, vd_status status, struct vd_bytes json);

/* Starts a dump. On VD_CLOSED and VD_NOMEM done is not called; otherwise it is called exactly once, and the
 * cacher is kept until then. Any thread; does not wait. */
VDI_MUST_USE vd_status vdi_cacher_dump(struct vd_cacher *cacher, vdi_cacher_dump_fn done, void *arg);

/* Write the parts that pending dumps need from the cacher's actor and from the delivery worker, on their
 * threads. */
void vdi_cacher_dump_run(struct vd_cacher *cacher);
void vdi_cacher_dump_worker(struct vdi_delivery_worker *worker);

#endif
