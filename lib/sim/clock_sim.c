/* Two atomics: monotonic time, and the difference between wall time and it. */
#include "clock_sim.h"

static vd_mono sim_mono(const struct vdi_clock *clock)
{
	const struct vdi_clock_sim *sim = VDI_CONTAINER_OF(clock, const struct vdi_clock_sim, clock);

	return (vd_mono) { atomic_load_explicit(&sim->mono_ns, memory_order_acquire) };
}

static vd_wall sim_wall(const struct vdi_clock *clock)
{
	const struct vdi_clock_sim *sim = VDI_CONTAINER_OF(clock, const struct vdi_clock_sim, clock);

	return (vd_wall) { sim_mono(clock).ns + atomic_load(&sim->wall_minus_mono_ns) };
}

void vdi_clock_sim_init(struct vdi_clock_sim *sim, vd_mono mono, vd_wall wall)
{
	sim->clock = (struct vdi_clock) { sim_mono, sim_wall };
	atomic_init(&sim->mono_ns, mono.ns);
	atomic_init(&sim->wall_minus_mono_ns, wall.ns - mono.ns);
}

void vdi_clock_sim_set(struct vdi_clock_sim *sim, vd_mono now)
{
	VDI_CHECK(now.ns >= atomic_load(&sim->mono_ns));
	atomic_store_explicit(&sim->mono_ns, now.ns, memory_order_release);
}

void vdi_clock_sim_advance(struct vdi_clock_sim *sim, vd_dur by)
{
	VDI_CHECK(by.ns >= 0);
	vdi_clock_sim_set(sim, vd_mono_add(sim_mono(&sim->clock), by));
}

void vdi_clock_sim_jump_wall(struct vdi_clock_sim *sim, vd_dur by)
{
	atomic_fetch_add(&sim->wall_minus_mono_ns, by.ns);
}
