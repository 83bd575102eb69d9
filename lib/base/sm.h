/* Declared state machines: the states, the allowed transitions, and a check at each transition.
 *
 * A table is a constant; a struct vdi_sm is the state of one object and belongs to its owner. Each transition
 * is added to the trace ring, so a failed check shows the previous ones.
 *
 * 	enum { WAITING, LIVE, ENDED };
 * 	static const struct vdi_sm_state states[] = {
 * 	[WAITING] = { "waiting", VDI_SM_TO(LIVE) | VDI_SM_TO(ENDED) },
 * 	[LIVE] = { "live", VDI_SM_TO(ENDED) },
 * 	[ENDED] = { "ended", 0 },
 * 	};
 * 	static const struct vdi_sm_table table = { "cache_watcher", states, VDI_ARRAY_SIZE(states) };
 */
#ifndef VDI_SM_H
#define VDI_SM_H

#include "base.h"

#define VDI_SM_STATES_MAX 64
#define VDI_SM_TO(state) (UINT64_C(1) << (state))

struct vdi_sm_state {
	const char *name;
	uint64_t    next; /* VDI_SM_TO(...) | ...; a transition to the same state must be listed too */
};

struct vdi_sm_table {
	const char		  *name;
	const struct vdi_sm_state *states;
	unsigned		   count; /* at most VDI_SM_STATES_MAX */
};

struct vdi_sm {
	const struct vdi_sm_table *table;
	unsigned		   state;
};

void vdi_sm_init(struct vdi_sm *sm, const struct vdi_sm_table *table, unsigned initial);
/* Returns true if vdi_sm_move() to next is allowed. */
bool vdi_sm_may(const struct vdi_sm *sm, unsigned next);
/* A transition that the table does not list is a programming error: it stops the program with the names of
 * machine and states. */
void	    vdi_sm_move(struct vdi_sm *sm, unsigned next);
const char *vdi_sm_state_name(const struct vdi_sm *sm);

static inline bool vdi_sm_is(const struct vdi_sm *sm, unsigned state)
{
	return sm->state == state;
}

#endif
