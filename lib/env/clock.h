/* Time behind a vtable: clock_os for programs, clock_sim for tests and the simulator.
 *
 * Any thread reads it without blocking. The monotonic clock of clock_os is CLOCK_MONOTONIC, so its vd_mono
 * can be passed to the operating system as a deadline; one from clock_sim cannot.
 */
#ifndef VDI_CLOCK_H
#define VDI_CLOCK_H

#include "base.h"

struct vdi_clock {
	vd_mono (*mono)(const struct vdi_clock *clock);
	vd_wall (*wall)(const struct vdi_clock *clock);
};

/* The clock of the operating system; static, never freed. */
extern const struct vdi_clock vdi_clock_os;

static inline vd_mono vdi_clock_mono(const struct vdi_clock *clock)
{
	return clock->mono(clock);
}

static inline vd_wall vdi_clock_wall(const struct vdi_clock *clock)
{
	return clock->wall(clock);
}

#endif
