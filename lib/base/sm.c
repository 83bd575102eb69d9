/* The allowed transitions of a state are a bit set, so a check is one shift. */
#include <stdio.h>

#include "sm.h"
#include "trace.h"

void vdi_sm_init(struct vdi_sm *sm, const struct vdi_sm_table *table, unsigned initial)
{
	VDI_CHECK(table->count <= VDI_SM_STATES_MAX && initial < table->count);
	*sm = (struct vdi_sm) { table, initial };
}

bool vdi_sm_may(const struct vdi_sm *sm, unsigned next)
{
	return next < sm->table->count && (sm->table->states[sm->state].next & VDI_SM_TO(next));
}

void vdi_sm_move(struct vdi_sm *sm, unsigned next)
{
	if (!vdi_sm_may(sm, next)) {
		char why[128];

		snprintf(why, sizeof why, "%s: %s may not become %s", sm->table->name, vdi_sm_state_name(sm),
			 next < sm->table->count ? sm->table->states[next].name : "an unknown state");
		vdi_panic(__FILE__, __LINE__, "allowed move", why);
	}
	vdi_trace(sm->table->name, sm->state, next);
	sm->state = next;
}

const char *vdi_sm_state_name(const struct vdi_sm *sm)
{
	return sm->table->states[sm->state].name;
}
