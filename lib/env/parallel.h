/* Work that computes, shared among the processors while the caller waits: for starts, when no actor exists
 * yet.
 *
 * Everything else is done by actors. In a simulated env there is one part at a time, on the caller's thread.
 */
#ifndef VDI_PARALLEL_H
#define VDI_PARALLEL_H

#include "base.h"

#define VDI_PARALLEL_MAX 4u

/* How many parts are worth it: the processors that may be used, at most VDI_PARALLEL_MAX; 1 in a simulated
 * env. */
unsigned vdi_parallel_width(const struct vd_env *env);
/* Calls run(arg, part) for each part in [0, count), count <= VDI_PARALLEL_MAX, each on a thread of its own;
 * part 0 and those for which there is no thread on the caller's. Returns when all have returned; what they
 * wrote is then seen. Blocks; never from an actor's handler. */
void vdi_parallel(const struct vd_env *env, unsigned count, void (*run)(void *arg, unsigned part), void *arg);

#endif
