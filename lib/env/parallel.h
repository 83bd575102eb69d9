/* Divides computation among the processors while the caller waits: for startup, before actors exist.
 *
 * All other work is done by actors. In a simulated env the parts run one after the other on the caller's
 * thread.
 */
#ifndef VDI_PARALLEL_H
#define VDI_PARALLEL_H

#include "base.h"

#define VDI_PARALLEL_MAX 4u

/* Recommended number of parts: the usable processors, at most VDI_PARALLEL_MAX; 1 in a simulated env. */
unsigned vdi_parallel_width(const struct vd_env *env);
/* Calls run(arg, part) for each part in [0, count), count <= VDI_PARALLEL_MAX, each on a thread of its own;
 * part 0, and parts for which no thread can be created, run on the caller's thread. Returns when all have
 * returned; the caller then sees all that they wrote. Blocks; must not be called from an actor's handler. */
void vdi_parallel(const struct vd_env *env, unsigned count, void (*run)(void *arg, unsigned part), void *arg);

#endif
