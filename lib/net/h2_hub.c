/* The end of a turn is an event that is made active: libevent runs it after all events that are already
 * active, and does not sleep in between. Other threads request it by waking an actor of the loop, whose run
 * does the same. The actor's timer is set to the earliest of the hub's timers.
 *
 * To know whether the thread had slept, the hub measures from its last action. Callbacks of other users of
 * the loop may fall into that time; then the thread is lent unnecessarily, which is harmless.
 */
#include <event2/event.h>
#include <event2/event_struct.h>

#include "actor_threads.h"
#include "h2_hub_state.h"

#define SLEPT VD_US(20)
#define ROUNDS_MAX 8 /* calls of the side's turn per loop iteration, so that sockets do not starve */

struct vdi_h2_hub {
	struct vdi_h2_hub_options options;
	const struct vd_env	 *env;
	struct vdi_loop		 *loop;
	struct vd_actor		 *actor;

	/* Loop's thread only. */
	struct event	      turn_event;
	bool		      is_turning;
	bool		      is_asked; /* requested while a turn runs */
	struct vdi_timer_heap timers;
	vd_mono		      timer_due; /* deadline of the actor's timer */
	vd_mono		      idle_since;
	TAILQ_HEAD(, vdi_h2_dirty) dirty;
	unsigned dirty_count;
	char	 input[VDI_H2_SCRATCH_SIZE];
	char	 output[VDI_H2_SCRATCH_SIZE + VDI_H2_FRAME_SIZE_MAX];
};

/* ---- End of a turn ---- */

static void fire_timers(struct vdi_h2_hub *hub)
{
	struct vdi_timer *timer;
	vd_mono		  now;

	if (hub->timers.count == 0)
		return;
	now = vd_env_now(hub->env);
	while ((timer = vdi_timer_heap_pop_due(&hub->timers, now)) != NULL) {
		struct vdi_h2_timer *mine = VDI_CONTAINER_OF(timer, struct vdi_h2_timer, timer);

		mine->fire(mine);
	}
}

/* A timer that fires too early finds nothing due and is set again. */
static void arm_timer(struct vdi_h2_hub *hub)
{
	vd_mono due = vdi_timer_heap_next_due(&hub->timers);

	if (due.ns < hub->timer_due.ns) {
		hub->timer_due = due;
		vd_actor_set_timer(hub->actor, due);
	}
}

/* Connections that are listed meanwhile are handled in the next round. */
static void write_dirty(struct vdi_h2_hub *hub)
{
	struct vdi_h2_dirty *dirty;

	for (unsigned left = hub->dirty_count; left && (dirty = TAILQ_FIRST(&hub->dirty)) != NULL; left--) {
		vdi_h2_hub_unlist_dirty(hub, dirty);
		dirty->work(dirty);
	}
}

static void turn(struct vdi_h2_hub *hub)
{
	hub->is_turning = true;
	for (unsigned i = 0; i < ROUNDS_MAX; i++) {
		hub->is_asked = false;
		fire_timers(hub);
		if (hub->options.turn)
			hub->options.turn(hub->options.arg);
		write_dirty(hub);
		if (!hub->is_asked && hub->dirty_count == 0)
			break;
	}
	hub->is_turning = false;
	arm_timer(hub);
	if (hub->is_asked || hub->dirty_count)
		vd_actor_wake(hub->actor); /* runs after the sockets were polled */
	hub->idle_since = vd_env_now(hub->env);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void) fd;
	(void) what;
	turn(arg);
}

static void run_actor(void *arg)
{
	struct vdi_h2_hub *hub = arg;

	if (hub->timer_due.ns <= vd_env_now(hub->env).ns)
		hub->timer_due = VD_NEVER;
	turn(hub);
}

void vdi_h2_hub_wake(struct vdi_h2_hub *hub)
{
	if (!vdi_loop_is_current(hub->loop))
		vd_actor_wake(hub->actor);
	else if (hub->is_turning)
		hub->is_asked = true;
	else
		event_active(&hub->turn_event, 0, 0);
}

void vdi_h2_hub_list_dirty(struct vdi_h2_hub *hub, struct vdi_h2_dirty *dirty)
{
	if (dirty->is_listed)
		return;
	dirty->is_listed = true;
	hub->dirty_count++;
	TAILQ_INSERT_TAIL(&hub->dirty, dirty, node);
	vdi_h2_hub_wake(hub);
}

void vdi_h2_hub_unlist_dirty(struct vdi_h2_hub *hub, struct vdi_h2_dirty *dirty)
{
	if (!dirty->is_listed)
		return;
	dirty->is_listed = false;
	hub->dirty_count--;
	TAILQ_REMOVE(&hub->dirty, dirty, node);
}

/* ---- Input ---- */

bool vdi_h2_hub_begin_input(struct vdi_h2_hub *hub)
{
	bool lends =
		hub->options.lends && vd_mono_since(vd_env_now(hub->env), hub->idle_since).ns >= SLEPT.ns;

	if (lends)
		vdi_actor_lend_begin();
	return lends;
}

void vdi_h2_hub_end_input(struct vdi_h2_hub *hub, bool lends)
{
	if (lends)
		vdi_actor_lend_end();
	hub->idle_since = vd_env_now(hub->env);
}

char *vdi_h2_hub_input(struct vdi_h2_hub *hub)
{
	return hub->input;
}

char *vdi_h2_hub_output(struct vdi_h2_hub *hub)
{
	return hub->output;
}

/* ---- Creation and end ---- */

vd_status vdi_h2_hub_new(const struct vd_env *env, struct vdi_loop *loop,
			 const struct vdi_h2_hub_options *options, struct vdi_h2_hub **ret_hub)
{
	struct vdi_h2_hub      *hub = VDI_NEW(struct vdi_h2_hub);
	struct vd_actor_options actor_options = { .name = "h2_hub", .run = run_actor, .arg = hub };
	vd_status		status;

	if (hub == NULL)
		return VD_NOMEM;
	hub->options = *options;
	hub->env = env;
	hub->loop = loop;
	hub->timer_due = VD_NEVER;
	TAILQ_INIT(&hub->dirty);
	status = event_assign(&hub->turn_event, vdi_loop_base(loop), -1, 0, on_turn, hub) == 0 ?
			 vd_executor_actor_new(vdi_loop_executor(loop), &actor_options, &hub->actor) :
			 VD_NOMEM;
	if (status != VD_OK) {
		vdi_free(hub);
		return status;
	}
	*ret_hub = hub;
	return VD_OK;
}

struct vdi_h2_hub *vdi_h2_hub_free(struct vdi_h2_hub *hub)
{
	if (hub == NULL)
		return NULL;
	VDI_CHECK(hub->dirty_count == 0 && hub->timers.count == 0 && !hub->is_turning);
	event_del(&hub->turn_event);
	vd_actor_close(hub->actor, NULL, NULL);
	vdi_free(hub);
	return NULL;
}

const struct vd_env *vdi_h2_hub_env(const struct vdi_h2_hub *hub)
{
	return hub->env;
}

struct vdi_loop *vdi_h2_hub_loop(const struct vdi_h2_hub *hub)
{
	return hub->loop;
}

void vdi_h2_timer_set(struct vdi_h2_hub *hub, struct vdi_h2_timer *timer, vd_mono due)
{
	if (due.ns == VD_NEVER.ns) {
		vdi_timer_heap_remove(&hub->timers, &timer->timer);
		return;
	}
	vdi_timer_heap_set(&hub->timers, &timer->timer, due);
	if (!hub->is_turning)
		arm_timer(hub);
}
