/* A clock that stands still until it is told to move.
 *
 * Monotonic time only goes forward; wall time follows it but may be made to jump either way, as NTP and
 * administrators do. Setting and reading may happen on different threads.
 */
#ifndef VDI_CLOCK_SIM_H
#define VDI_CLOCK_SIM_H

#include <stdatomic.h>

#include "clock.h"

struct vdi_clock_sim {
	struct vdi_clock clock; /* first: give &sim->clock to whoever wants a clock */
	_Atomic int64_t	 mono_ns;
	_Atomic int64_t	 wall_minus_mono_ns;
};

void vdi_clock_sim_init(struct vdi_clock_sim *sim, vd_mono mono, vd_wall wall);
/* now must not lie in the past. */
void vdi_clock_sim_set(struct vdi_clock_sim *sim, vd_mono now);
/* by must not be negative. */
void vdi_clock_sim_advance(struct vdi_clock_sim *sim, vd_dur by);
/* Moves wall time alone, forward or back. */
void vdi_clock_sim_jump_wall(struct vdi_clock_sim *sim, vd_dur by);

#endif
