/* An environment of real threads whose clock stands still until the test advances it (vdi_clock_sim_advance).
 * Its time is so late that no timer of the operating system fires by itself: a loop checks its timers only
 * when it runs for another reason. A wait with a deadline never times out. */
#ifndef HAND_CLOCK_H
#define HAND_CLOCK_H

#include "actor_threads.h"
#include "clock_sim.h"
#include "env.h"
#include "vdtest.h"

static inline struct vd_env *hand_clock_env(struct vdi_clock_sim *clock)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;
	struct vd_env	     *env;

	vdi_clock_sim_init(clock, vd_mono_add(vdi_clock_mono(&vdi_clock_os), VD_SECONDS(1000000000)),
			   (vd_wall) { 0 });
	assert_status(vdi_env_new(&options, &clock->clock, &env), VD_OK);
	assert_status(vdi_actor_threads_new(1, &env->executor), VD_OK);
	env->executor_free = vdi_actor_threads_free;
	return env;
}

#endif
