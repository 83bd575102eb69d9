/* A clock that moves only when a test advances it.
 *
 * Monotonic time never moves back. Wall time follows it but may jump in both directions, like under NTP or an
 * administrator. Different threads may set and read it.
 */
#ifndef VDI_CLOCK_SIM_H
#define VDI_CLOCK_SIM_H

#include <stdatomic.h>

#include "clock.h"

struct vdi_clock_sim {
	struct vdi_clock clock; /* first: pass &sim->clock as the clock */
	_Atomic int64_t	 mono_ns;
	_Atomic int64_t	 wall_minus_mono_ns;
};

void vdi_clock_sim_init(struct vdi_clock_sim *sim, vd_mono mono, vd_wall wall);
/* now must not be in the past. */
void vdi_clock_sim_set(struct vdi_clock_sim *sim, vd_mono now);
/* by must not be negative. */
void vdi_clock_sim_advance(struct vdi_clock_sim *sim, vd_dur by);
/* Moves only wall time, forward or back. */
void vdi_clock_sim_jump_wall(struct vdi_clock_sim *sim, vd_dur by);

#endif
