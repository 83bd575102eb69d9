/* The state word of an actor, common to all executors: idle, woken, running, closing.
 *
 * An actor is in at most one run queue. It is queued exactly while WOKEN is set and RUNNING is not; the
 * thread that makes this true queues it. Setting WOKEN has release order and starting a run has acquire
 * order: data written before a wake is visible to the run after it.
 *
 *          wake               start                  finish
 *   idle --------> WOKEN ---------------> RUNNING ------------> idle
 *                    ^                       | wake
 *                    |   finish              v
 *                    '---------------- RUNNING|WOKEN
 *
 * CLOSING is set together with WOKEN, so a closing actor is queued once more, and is ended instead of run.
 */
#ifndef VDI_ACTOR_STATE_H
#define VDI_ACTOR_STATE_H

#include <stdatomic.h>

#include "base.h"

#define VDI_ACTOR_WOKEN 1u
#define VDI_ACTOR_RUNNING 2u
#define VDI_ACTOR_CLOSING 4u

typedef atomic_uint vdi_actor_state;

/* Wakes the actor. True: the caller must queue it. */
static inline bool vdi_actor_state_wake(vdi_actor_state *state)
{
	return (atomic_fetch_or_explicit(state, VDI_ACTOR_WOKEN, memory_order_acq_rel) &
		(VDI_ACTOR_WOKEN | VDI_ACTOR_RUNNING)) == 0;
}

/* Closes the actor. True: the caller must queue it. Closing twice is a programming error. */
static inline bool vdi_actor_state_close(vdi_actor_state *state)
{
	unsigned before =
		atomic_fetch_or_explicit(state, VDI_ACTOR_WOKEN | VDI_ACTOR_CLOSING, memory_order_acq_rel);

	VDI_CHECK((before & VDI_ACTOR_CLOSING) == 0);
	return (before & (VDI_ACTOR_WOKEN | VDI_ACTOR_RUNNING)) == 0;
}

/* Starts a run of an actor that was just taken from the queue. True: run it; false: it is closing, end it. */
static inline bool vdi_actor_state_start(vdi_actor_state *state)
{
	unsigned before =
		atomic_fetch_xor_explicit(state, VDI_ACTOR_WOKEN | VDI_ACTOR_RUNNING, memory_order_acq_rel);

	VDI_CHECK((before & (VDI_ACTOR_WOKEN | VDI_ACTOR_RUNNING)) == VDI_ACTOR_WOKEN);
	return (before & VDI_ACTOR_CLOSING) == 0;
}

/* Called after the handler returned. True: queue the actor again. False: the actor may already be freed, do
 * not use it. */
static inline bool vdi_actor_state_finish(vdi_actor_state *state)
{
	return atomic_fetch_and_explicit(state, ~VDI_ACTOR_RUNNING, memory_order_acq_rel) & VDI_ACTOR_WOKEN;
}

#endif
