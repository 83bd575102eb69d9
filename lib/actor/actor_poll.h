/* Private parts of vedette/poller.h, for tests. */
#ifndef VDI_ACTOR_POLL_H
#define VDI_ACTOR_POLL_H

#include <vedette/poller.h>

#include "base.h"

/* Maximum actors per vd_poller_run. */
#define VDI_POLLER_RUN_MAX 256

/* Returns true if executor belongs to a poller that the calling thread runs: the thread ran it last, or
 * created it and no thread has run it yet. If so, waiting here for one of its actors would never end. NULL is
 * allowed. */
bool vdi_poller_serves_here(const struct vd_executor *executor);

#endif
