/* Completed operations are a list under a lock. Each run of the actor handles all of them, then the due
 * timers, and then calls the controller's turn function, which starts new work. */
#include "control_loop.h"

#include "env.h"

static struct vdi_control_return *take_returns(struct vdi_control_loop *loop)
{
	struct vdi_control_return *first;

	vdi_lock_acquire(&loop->lock);
	first = loop->is_closing ? NULL : loop->first;
	if (first)
		loop->first = loop->last = NULL;
	vdi_lock_release(&loop->lock);
	return first;
}

static bool is_closing(struct vdi_control_loop *loop)
{
	bool closing;

	vdi_lock_acquire(&loop->lock);
	closing = loop->is_closing;
	vdi_lock_release(&loop->lock);
	return closing;
}

static void run(void *arg)
{
	struct vdi_control_loop	  *loop = arg;
	struct vdi_control_return *back = take_returns(loop), *next;
	struct vdi_timer	  *timer;

	if (is_closing(loop))
		return;
	for (; back; back = next) {
		next = back->next;
		back->run(back);
	}
	while ((timer = vdi_timer_heap_pop_due(&loop->timers, vd_env_now(loop->env))) != NULL)
		loop->expired(loop->arg, timer);
	loop->turn(loop->arg);
	vd_actor_set_timer(loop->actor, vdi_timer_heap_next_due(&loop->timers));
}

vd_status vdi_control_loop_init(struct vdi_control_loop *loop, const struct vd_env *env, const char *name,
				void (*turn)(void *arg), void (*expired)(void *arg, struct vdi_timer *timer),
				void *arg)
{
	struct vd_actor_options options = { .name = name, .run = run, .arg = loop };
	vd_status		status;

	*loop = (struct vdi_control_loop) { .env = env, .turn = turn, .expired = expired, .arg = arg };
	vdi_lock_init(&loop->lock, VDI_LOCK_CONTROLLER);
	vdi_wait_init(&loop->idle, env);
	status = vd_actor_new(env, &options, &loop->actor);
	if (status != VD_OK) {
		loop->actor = NULL;
		vdi_wait_fini(&loop->idle);
		vdi_lock_fini(&loop->lock);
	}
	loop->is_made = status == VD_OK;
	return status;
}

void vdi_control_loop_close(struct vdi_control_loop *loop)
{
	bool is_idle;

	if (loop->actor == NULL)
		return;
	vdi_lock_acquire(&loop->lock);
	loop->is_closing = true;
	is_idle = loop->open_count == 0;
	vdi_lock_release(&loop->lock);
	if (!is_idle)
		vdi_wait_wait(&loop->idle);
	vdi_wait_for_actor_close(loop->env, loop->actor);
	loop->actor = NULL;
}

void vdi_control_loop_fini(struct vdi_control_loop *loop)
{
	if (!loop->is_made)
		return;
	vdi_wait_fini(&loop->idle);
	vdi_lock_fini(&loop->lock);
	loop->is_made = false;
}

bool vdi_control_loop_begin(struct vdi_control_loop *loop)
{
	bool may;

	vdi_lock_acquire(&loop->lock);
	may = !loop->is_closing;
	loop->open_count += may;
	vdi_lock_release(&loop->lock);
	return may;
}

void vdi_control_loop_post(struct vdi_control_loop *loop, struct vdi_control_return *back)
{
	bool is_last;

	vdi_lock_acquire(&loop->lock);
	back->next = NULL;
	if (loop->last)
		loop->last->next = back;
	else
		loop->first = back;
	loop->last = back;
	is_last = --loop->open_count == 0 && loop->is_closing;
	if (!loop->is_closing)
		vd_actor_wake(loop->actor);
	vdi_lock_release(&loop->lock);
	if (is_last)
		vdi_wait_signal(&loop->idle);
}

void vdi_control_loop_wake(struct vdi_control_loop *loop)
{
	vdi_lock_acquire(&loop->lock);
	if (!loop->is_closing)
		vd_actor_wake(loop->actor);
	vdi_lock_release(&loop->lock);
}

void vdi_control_loop_set_timer(struct vdi_control_loop *loop, struct vdi_timer *timer, vd_mono due)
{
	vdi_timer_heap_set(&loop->timers, timer, due);
}
