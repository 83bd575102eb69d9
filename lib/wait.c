/* A flag under a mutex. The signal is given under the lock and the flag is read under it, so that the waiter may destroy everything as soon
 * as it sees the flag. */
#include "wait.h"
#include "actor_sim.h"
#include "env.h"

void vdi_wait_init(struct vdi_wait *wait, const struct vd_env *env)
{
	wait->env = env;
	vdi_lock_init(&wait->lock, VDI_LOCK_WAIT);
	vdi_condition_init(&wait->changed);
	wait->is_done = false;
}

void vdi_wait_fini(struct vdi_wait *wait)
{
	vdi_condition_fini(&wait->changed);
	vdi_lock_fini(&wait->lock);
}

void vdi_wait_signal(struct vdi_wait *wait)
{
	vdi_lock_acquire(&wait->lock);
	VDI_CHECK(!wait->is_done);
	wait->is_done = true;
	vdi_condition_signal(&wait->changed);
	vdi_lock_release(&wait->lock);
}

void vdi_wait_signal_arg(void *wait)
{
	vdi_wait_signal(wait);
}

bool vdi_wait_is_done(struct vdi_wait *wait)
{
	bool is_done;

	vdi_lock_acquire(&wait->lock);
	is_done = wait->is_done;
	vdi_lock_release(&wait->lock);
	return is_done;
}

static bool is_done_arg(void *wait)
{
	return vdi_wait_is_done(wait);
}

bool vdi_wait_until(struct vdi_wait *wait, vd_mono due)
{
	bool is_done;

	if (vdi_env_sim(wait->env)) {
		vd_dur limit = { due.ns == VD_NEVER.ns ? INT64_MAX : VDI_MAX(due.ns - vd_env_now(wait->env).ns, 0) };

		/* The env is const for those who only use it; whoever waits on a simulated one is its driver. */
		return vdi_sim_run_until((struct vd_env *) wait->env, is_done_arg, wait, limit);
	}
	vdi_lock_acquire(&wait->lock);
	while (!wait->is_done)
		if (!vdi_condition_wait_until(&wait->changed, &wait->lock, due))
			break;
	is_done = wait->is_done;
	vdi_lock_release(&wait->lock);
	return is_done;
}

void vdi_wait_wait(struct vdi_wait *wait)
{
	VDI_CHECK(vdi_wait_until(wait, VD_NEVER));
}

void vdi_wait_for_actor_close(const struct vd_env *env, struct vd_actor *actor)
{
	struct vdi_wait wait;

	vdi_wait_init(&wait, env);
	vd_actor_close(actor, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
}
