/* The end of an iteration is an event that is made active: libevent runs it after all events that are
 * already active, and does not sleep in between. Other threads request it by waking an actor of the loop,
 * whose run does the same. The actor's timer is set to the earliest of the h2_loop's timers.
 *
 * To know whether the thread had slept, the h2_loop measures from its last action. Callbacks of other users
 * of the loop may fall into that time; then the thread is lent unnecessarily, which is harmless.
 */
#include <event2/event.h>
#include <event2/event_struct.h>

#include "actor_threads.h"
#include "h2_loop_state.h"

#define SLEPT VD_US(20)
#define ROUNDS_MAX 8 /* calls of end_iteration per iteration of the loop, so that sockets do not starve */

struct vdi_h2_loop {
	struct vdi_h2_loop_options options;
	const struct vd_env	  *env;
	struct vdi_loop		  *loop;
	struct vd_actor		  *actor;

	/* Loop's thread only. */
	struct event	      end_event;
	bool		      is_ending;
	bool		      is_requested; /* requested while an iteration runs */
	struct vdi_timer_heap timers;
	vd_mono		      timer_due; /* deadline of the actor's timer */
	vd_mono		      idle_since;
	TAILQ_HEAD(, vdi_h2_dirty) dirty;
	unsigned dirty_count;
	char	 input[VDI_H2_SCRATCH_SIZE];
	char	 output[VDI_H2_SCRATCH_SIZE + VDI_H2_FRAME_SIZE_MAX];
};

/* ---- End of an iteration ---- */

static void fire_timers(struct vdi_h2_loop *h2_loop)
{
	struct vdi_timer *timer;
	vd_mono		  now;

	if (h2_loop->timers.count == 0)
		return;
	now = vd_env_now(h2_loop->env);
	while ((timer = vdi_timer_heap_pop_due(&h2_loop->timers, now)) != NULL) {
		struct vdi_h2_timer *mine = VDI_CONTAINER_OF(timer, struct vdi_h2_timer, timer);

		mine->fire(mine);
	}
}

/* A timer that fires too early finds nothing due and is set again. */
static void arm_timer(struct vdi_h2_loop *h2_loop)
{
	vd_mono due = vdi_timer_heap_next_due(&h2_loop->timers);

	if (due.ns < h2_loop->timer_due.ns) {
		h2_loop->timer_due = due;
		vd_actor_set_timer(h2_loop->actor, due);
	}
}

/* Connections that are listed meanwhile are handled in the next round. */
static void write_dirty(struct vdi_h2_loop *h2_loop)
{
	struct vdi_h2_dirty *dirty;

	for (unsigned left = h2_loop->dirty_count; left && (dirty = TAILQ_FIRST(&h2_loop->dirty)) != NULL;
	     left--) {
		vdi_h2_loop_unlist_dirty(h2_loop, dirty);
		dirty->work(dirty);
	}
}

static void end_iteration(struct vdi_h2_loop *h2_loop)
{
	h2_loop->is_ending = true;
	for (unsigned i = 0; i < ROUNDS_MAX; i++) {
		h2_loop->is_requested = false;
		fire_timers(h2_loop);
		if (h2_loop->options.end_iteration)
			h2_loop->options.end_iteration(h2_loop->options.arg);
		write_dirty(h2_loop);
		if (!h2_loop->is_requested && h2_loop->dirty_count == 0)
			break;
	}
	h2_loop->is_ending = false;
	arm_timer(h2_loop);
	if (h2_loop->is_requested || h2_loop->dirty_count)
		vd_actor_wake(h2_loop->actor); /* runs after the sockets were polled */
	h2_loop->idle_since = vd_env_now(h2_loop->env);
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
	(void) fd;
	(void) what;
	end_iteration(arg);
}

static void run_actor(void *arg)
{
	struct vdi_h2_loop *h2_loop = arg;

	if (h2_loop->timer_due.ns <= vd_env_now(h2_loop->env).ns)
		h2_loop->timer_due = VD_NEVER;
	end_iteration(h2_loop);
}

void vdi_h2_loop_wake(struct vdi_h2_loop *h2_loop)
{
	if (!vdi_loop_is_current(h2_loop->loop))
		vd_actor_wake(h2_loop->actor);
	else if (h2_loop->is_ending)
		h2_loop->is_requested = true;
	else
		event_active(&h2_loop->end_event, 0, 0);
}

void vdi_h2_loop_list_dirty(struct vdi_h2_loop *h2_loop, struct vdi_h2_dirty *dirty)
{
	if (dirty->is_listed)
		return;
	dirty->is_listed = true;
	h2_loop->dirty_count++;
	TAILQ_INSERT_TAIL(&h2_loop->dirty, dirty, node);
	vdi_h2_loop_wake(h2_loop);
}

void vdi_h2_loop_unlist_dirty(struct vdi_h2_loop *h2_loop, struct vdi_h2_dirty *dirty)
{
	if (!dirty->is_listed)
		return;
	dirty->is_listed = false;
	h2_loop->dirty_count--;
	TAILQ_REMOVE(&h2_loop->dirty, dirty, node);
}

/* ---- Input ---- */

bool vdi_h2_loop_begin_input(struct vdi_h2_loop *h2_loop)
{
	bool lends = h2_loop->options.lends &&
		     vd_mono_since(vd_env_now(h2_loop->env), h2_loop->idle_since).ns >= SLEPT.ns;

	if (lends)
		vdi_actor_lend_begin();
	return lends;
}

void vdi_h2_loop_end_input(struct vdi_h2_loop *h2_loop, bool lends)
{
	if (lends)
		vdi_actor_lend_end();
	h2_loop->idle_since = vd_env_now(h2_loop->env);
}

char *vdi_h2_loop_input(struct vdi_h2_loop *h2_loop)
{
	return h2_loop->input;
}

char *vdi_h2_loop_output(struct vdi_h2_loop *h2_loop)
{
	return h2_loop->output;
}

/* ---- Creation and end ---- */

vd_status vdi_h2_loop_new(const struct vd_env *env, struct vdi_loop *loop,
			  const struct vdi_h2_loop_options *options, struct vdi_h2_loop **ret_h2_loop)
{
	struct vdi_h2_loop     *h2_loop = VDI_NEW(struct vdi_h2_loop);
	struct vd_actor_options actor_options = { .name = "h2_loop", .run = run_actor, .arg = h2_loop };
	vd_status		status;

	if (h2_loop == NULL)
		return VD_NOMEM;
	h2_loop->options = *options;
	h2_loop->env = env;
	h2_loop->loop = loop;
	h2_loop->timer_due = VD_NEVER;
	TAILQ_INIT(&h2_loop->dirty);
	status = event_assign(&h2_loop->end_event, vdi_loop_base(loop), -1, 0, on_end, h2_loop) == 0 ?
			 vd_executor_actor_new(vdi_loop_executor(loop), &actor_options, &h2_loop->actor) :
			 VD_NOMEM;
	if (status != VD_OK) {
		vdi_free(h2_loop);
		return status;
	}
	*ret_h2_loop = h2_loop;
	return VD_OK;
}

struct vdi_h2_loop *vdi_h2_loop_free(struct vdi_h2_loop *h2_loop)
{
	if (h2_loop == NULL)
		return NULL;
	VDI_CHECK(h2_loop->dirty_count == 0 && h2_loop->timers.count == 0 && !h2_loop->is_ending);
	event_del(&h2_loop->end_event);
	vd_actor_close(h2_loop->actor, NULL, NULL);
	vdi_free(h2_loop);
	return NULL;
}

const struct vd_env *vdi_h2_loop_env(const struct vdi_h2_loop *h2_loop)
{
	return h2_loop->env;
}

struct vdi_loop *vdi_h2_loop_event_loop(const struct vdi_h2_loop *h2_loop)
{
	return h2_loop->loop;
}

void vdi_h2_timer_set(struct vdi_h2_loop *h2_loop, struct vdi_h2_timer *timer, vd_mono due)
{
	if (due.ns == VD_NEVER.ns) {
		vdi_timer_heap_remove(&h2_loop->timers, &timer->timer);
		return;
	}
	vdi_timer_heap_set(&h2_loop->timers, &timer->timer, due);
	if (!h2_loop->is_ending)
		arm_timer(h2_loop);
}
