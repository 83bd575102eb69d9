/* The inside of vedette/poller.h that tests need. */
#ifndef VDI_ACTOR_POLL_H
#define VDI_ACTOR_POLL_H

#include <vedette/poller.h>

#include "base.h"

/* Actors that vd_poller_run runs at most. */
#define VDI_POLLER_ROUND_MAX 256

/* Whether runner is a poller's that this thread serves: it ran it last, or has made it and nobody has run it
 * yet. What waits here for an actor of it waits for ever. NULL is fine. */
bool vdi_poller_serves_here(const struct vd_runner *runner);

#endif
