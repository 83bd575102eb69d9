/* The inside of vedette/poller.h that tests need. */
#ifndef VDI_ACTOR_POLL_H
#define VDI_ACTOR_POLL_H

#include <vedette/poller.h>

#include "base.h"

/* Actors that vd_poller_run runs at most. */
#define VDI_POLLER_ROUND_MAX 256

#endif
