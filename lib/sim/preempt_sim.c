/* The driver's stack is also the scheduler's. A handler runs on a fiber; suspending it switches back to the
 * driver, which runs other steps. If the driver itself is to be suspended, at a point inside a call of the
 * library, it runs steps right there.
 *
 * Locks: each context has the list of locks it holds (lib/base/lock.c maintains it), so a search finds the
 * holder of a lock that is not free. An ordinary context that waits for a lock is skipped until the lock is
 * free. An atomic one, or the driver, must continue before anything else happens: it is `urgent`, and only
 * the holder of its lock runs until the lock is released.
 */
#include "preempt_sim.h"

#include <stdlib.h>

#include "fiber.h"
#include "lock.h"
#include "rand.h"
#include "wait.h"

#define FIBERS_MAX 16
#define CONTEXTS (FIBERS_MAX + 1)
#define WINDOW_BITS_MIN 5 /* 32 to 4,096 points */
#define WINDOW_BITS_SPAN 8
#define LENGTH_BITS_SPAN 10 /* a preemption takes 1 to 512 steps of others */
#define STALL_ONE_IN 8
#define STALL_BITS_SPAN 12 /* short stalls are as likely as long ones */

struct context {
	struct vdi_preempt_sim *preempt;
	struct vdi_fiber       *fiber;
	bool			is_busy; /* runs, or is suspended */
	bool			is_atomic;
	const struct vdi_lock  *wanted; /* the lock it waits for; NULL: none */
	uint64_t due_steps; /* suspended until this number of steps, or until nothing else can run */
	vd_mono	 due;	    /* and until this time */
	void (*run)(void *arg);
	void *arg;

	/* Valid while it does not run. */
	struct vdi_lock_held   held;
	struct vdi_wait_batch *batch;
};

struct vdi_preempt_sim {
	struct vdi_preemption hooks; /* first */
	struct vdi_rand	      rand;
	bool (*step)(void *arg);
	void	       *step_arg;
	struct context	contexts[CONTEXTS]; /* the first is the driver */
	struct context *current;
	struct context *urgent; /* NULL: none */
	uint64_t	steps;
	uint64_t	hash;
	uint64_t	count;
	bool		is_held;
	vd_mono		now; /* at the last step */
	vd_dur		stall_max;

	/* The window: points left in it, and the chosen points among them, in descending order. */
	uint64_t window;
	uint64_t points_left;
	uint64_t chosen[VDI_PREEMPTIONS_MAX];
	unsigned chosen_count;
	unsigned preemptions;
};

static struct context *driver_of(struct vdi_preempt_sim *preempt)
{
	return &preempt->contexts[0];
}

uint64_t vdi_preempt_sim_draw(struct vdi_preempt_sim *preempt, uint64_t bound)
{
	return vdi_rand_below(&preempt->rand, bound);
}

/* ---- Switching ---- */

static void switch_to(struct vdi_preempt_sim *preempt, struct context *to)
{
	struct context *from = preempt->current;
	const char     *handler = vdi_wait_enter_handler(NULL); /* belongs to `from`, until that continues */

	preempt->hash = (preempt->hash ^ (uint64_t) (to - preempt->contexts)) * UINT64_C(0x100000001b3);
	from->held = *vdi_lock_held();
	*vdi_lock_held() = to->held;
	from->batch = vdi_wait_batch_swap(to->batch);
	preempt->current = to;
	vdi_fiber_switch(from->fiber, to->fiber);
	vdi_wait_leave_handler(handler);
}

static void run_fiber(void *arg)
{
	struct context *self = arg;

	for (;;) {
		self->run(self->arg);
		VDI_CHECK(vdi_lock_held()->count == 0);
		self->is_busy = false;
		switch_to(self->preempt, driver_of(self->preempt));
	}
}

/* ---- Lock holders ---- */

static struct context *holder_of(struct vdi_preempt_sim *preempt, const struct vdi_lock *lock)
{
	for (size_t i = 0; i < CONTEXTS; i++) {
		struct context		   *context = &preempt->contexts[i];
		const struct vdi_lock_held *held =
			context == preempt->current ? vdi_lock_held() : &context->held;

		if (!context->is_busy || context->wanted == lock)
			continue; /* a lock that a context waits for is in its list already */
		for (unsigned j = 0; j < held->count; j++)
			if (held->locks[j] == lock)
				return context;
	}
	return NULL;
}

static bool is_blocked(struct vdi_preempt_sim *preempt, const struct context *context)
{
	return context->wanted && holder_of(preempt, context->wanted);
}

/* Returns the context that must run so that this one can continue: itself, or the holder of its lock. */
static struct context *first_to_run(struct vdi_preempt_sim *preempt, struct context *context)
{
	struct context *holder;

	for (unsigned hops = 0; context->wanted && (holder = holder_of(preempt, context->wanted)); hops++) {
		if (hops == CONTEXTS)
			vdi_panic(__FILE__, __LINE__, "deadlock", vdi_lock_name(context->wanted->name));
		context = holder;
	}
	return context;
}

/* ---- Points ---- */

static int compare_down(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

	return x < y ? 1 : x > y ? -1 : 0;
}

static void begin_window(struct vdi_preempt_sim *preempt)
{
	preempt->points_left = preempt->window;
	for (unsigned i = 0; i < preempt->preemptions; i++)
		preempt->chosen[i] = vdi_preempt_sim_draw(preempt, preempt->window);
	qsort(preempt->chosen, preempt->preemptions, sizeof preempt->chosen[0], compare_down);
	preempt->chosen_count = preempt->preemptions;
}

/* Counts a point; true: suspend here. */
static bool is_chosen(struct vdi_preempt_sim *preempt)
{
	if (preempt->points_left == 0)
		begin_window(preempt);
	preempt->points_left--;
	if (preempt->chosen_count == 0 || preempt->points_left > preempt->chosen[0])
		return false;
	preempt->chosen_count--;
	memmove(preempt->chosen, preempt->chosen + 1, preempt->chosen_count * sizeof preempt->chosen[0]);
	return true;
}

static void suspend_for(struct vdi_preempt_sim *preempt, uint64_t steps)
{
	struct context *self = preempt->current;

	if (self == driver_of(preempt)) {
		while (steps-- && preempt->step(preempt->step_arg))
			continue;
		return;
	}
	self->due_steps = preempt->steps + steps;
	self->due = preempt->now;
	switch_to(preempt, driver_of(preempt));
}

static void on_point(struct vdi_preemption *hooks)
{
	struct vdi_preempt_sim *preempt = (struct vdi_preempt_sim *) hooks;
	struct context	       *self = preempt->current;

	if (preempt->urgent) {
		if (preempt->urgent != self && !is_blocked(preempt, preempt->urgent))
			suspend_for(preempt, self == driver_of(preempt) ? 1 : 0);
		return;
	}
	if (self->is_atomic || preempt->is_held || !is_chosen(preempt))
		return;
	preempt->count++;
	if (self != driver_of(preempt) && preempt->stall_max.ns > 0 &&
	    vdi_preempt_sim_draw(preempt, STALL_ONE_IN) == 0) {
		uint64_t length =
			(uint64_t) preempt->stall_max.ns >> vdi_preempt_sim_draw(preempt, STALL_BITS_SPAN);

		self->due_steps = 0;
		self->due = vd_mono_add(preempt->now,
					(vd_dur) { (int64_t) vdi_preempt_sim_draw(preempt, length + 1) });
		switch_to(preempt, driver_of(preempt));
		return;
	}
	suspend_for(preempt, 1 + vdi_preempt_sim_draw(preempt, UINT64_C(1) << vdi_preempt_sim_draw(
								       preempt, LENGTH_BITS_SPAN)));
}

static void resume_context(struct vdi_preempt_sim *preempt, struct context *context)
{
	VDI_CHECK(preempt->current == driver_of(preempt) && context->is_busy);
	preempt->steps++;
	switch_to(preempt, context);
}

static void on_blocked(struct vdi_preemption *hooks, const struct vdi_lock *lock)
{
	struct vdi_preempt_sim *preempt = (struct vdi_preempt_sim *) hooks;
	struct context	       *self = preempt->current, *urgent = preempt->urgent;

	self->wanted = lock;
	self->due_steps = 0;
	if (self == driver_of(preempt)) {
		struct context *first = first_to_run(preempt, self);

		if (first == self)
			vdi_panic(__FILE__, __LINE__, "deadlock", vdi_lock_name(lock->name));
		preempt->urgent = self;
		resume_context(preempt, first);
		preempt->urgent = urgent;
	} else {
		if (self->is_atomic && urgent == NULL)
			preempt->urgent = self;
		switch_to(preempt, driver_of(preempt));
		if (preempt->urgent == self)
			preempt->urgent = NULL;
	}
	self->wanted = NULL;
}

static void on_spin(struct vdi_preemption *hooks)
{
	struct vdi_preempt_sim *preempt = (struct vdi_preempt_sim *) hooks;

	suspend_for(preempt, 1);
}

/* ---- Steps ---- */

static bool is_stalled(const struct vdi_preempt_sim *preempt, const struct context *context)
{
	return context->is_busy && !context->wanted && context->due.ns > preempt->now.ns && !preempt->is_held;
}

vd_mono vdi_preempt_sim_next_due(const struct vdi_preempt_sim *preempt)
{
	vd_mono due = VD_NEVER;

	for (size_t i = 1; i < CONTEXTS; i++)
		if (is_stalled(preempt, &preempt->contexts[i]) && preempt->contexts[i].due.ns < due.ns)
			due = preempt->contexts[i].due;
	return due;
}

bool vdi_preempt_sim_resume(struct vdi_preempt_sim *preempt, vd_mono now, bool is_idle, bool *ret_must_stop)
{
	struct context *choice = NULL;
	unsigned	candidates = 0, busy = 0, stalled = 0;
	bool		is_crowded;

	preempt->now = now;
	*ret_must_stop = false;
	if (preempt->urgent) {
		choice = first_to_run(preempt, preempt->urgent);
		*ret_must_stop = choice == driver_of(preempt);
		if (!*ret_must_stop)
			resume_context(preempt, choice);
		return !*ret_must_stop;
	}
	for (size_t i = 1; i < CONTEXTS; i++) {
		busy += preempt->contexts[i].is_busy;
		stalled += is_stalled(preempt, &preempt->contexts[i]);
	}
	if (busy == 0)
		return false;
	is_crowded = busy == FIBERS_MAX; /* one must end first */
	is_idle |= is_crowded;
	for (size_t i = 1; i < CONTEXTS; i++) {
		struct context *context = &preempt->contexts[i];

		if (context->is_busy && (is_idle || context->due_steps <= preempt->steps) &&
		    (is_crowded || !is_stalled(preempt, context)) && !is_blocked(preempt, context) &&
		    vdi_preempt_sim_draw(preempt, ++candidates) == 0)
			choice = context;
	}
	if (choice == NULL && is_idle && stalled == 0) {
		/* All wait for locks: either the driver holds one of them, or this is a deadlock. */
		for (size_t i = 1; i < CONTEXTS && !*ret_must_stop; i++)
			*ret_must_stop = preempt->contexts[i].is_busy &&
					 first_to_run(preempt, &preempt->contexts[i]) == driver_of(preempt);
		VDI_CHECK(*ret_must_stop);
	}
	if (choice)
		resume_context(preempt, choice);
	return choice != NULL;
}

bool vdi_preempt_sim_is_urgent(const struct vdi_preempt_sim *preempt)
{
	return preempt->urgent != NULL;
}

void vdi_preempt_sim_run(struct vdi_preempt_sim *preempt, void (*run)(void *arg), void *arg)
{
	size_t i = 1;

	while (i < CONTEXTS && preempt->contexts[i].is_busy)
		i++;
	VDI_CHECK(i < CONTEXTS);
	preempt->contexts[i].is_busy = true;
	preempt->contexts[i].is_atomic = false;
	preempt->contexts[i].run = run;
	preempt->contexts[i].arg = arg;
	resume_context(preempt, &preempt->contexts[i]);
}

bool vdi_preempt_sim_set_atomic(struct vdi_preempt_sim *preempt, bool is_atomic)
{
	bool before = preempt->current->is_atomic;

	preempt->current->is_atomic = is_atomic;
	return before;
}

void vdi_preempt_sim_set_stalls(struct vdi_preempt_sim *preempt, vd_dur max)
{
	preempt->stall_max = max;
}

void vdi_preempt_sim_hold(struct vdi_preempt_sim *preempt, bool is_held)
{
	preempt->is_held = is_held;
}

bool vdi_preempt_sim_is_driver(const struct vdi_preempt_sim *preempt)
{
	return preempt->current == &preempt->contexts[0];
}

uint64_t vdi_preempt_sim_hash(const struct vdi_preempt_sim *preempt)
{
	return preempt->hash;
}

uint64_t vdi_preempt_sim_count(const struct vdi_preempt_sim *preempt)
{
	return preempt->count;
}

/* ---- Creation and end ---- */

vd_status vdi_preempt_sim_new(uint64_t seed, unsigned preemptions, bool (*step)(void *arg), void *arg,
			      struct vdi_preempt_sim **ret_preempt)
{
	struct vdi_preempt_sim *preempt = VDI_NEW(struct vdi_preempt_sim);
	vd_status		status;

	VDI_CHECK(preemptions >= 1 && preemptions <= VDI_PREEMPTIONS_MAX && vdi_preemption == NULL);
	if (preempt == NULL)
		return VD_NOMEM;
	preempt->hooks = (struct vdi_preemption) { on_point, on_blocked, on_spin };
	vdi_rand_init(&preempt->rand, seed);
	preempt->step = step;
	preempt->step_arg = arg;
	preempt->preemptions = preemptions;
	preempt->window = UINT64_C(1) << (WINDOW_BITS_MIN + vdi_preempt_sim_draw(preempt, WINDOW_BITS_SPAN));
	preempt->current = driver_of(preempt);
	preempt->current->is_busy = preempt->current->is_atomic = true;
	status = vdi_fiber_of_thread(&preempt->current->fiber);
	for (size_t i = 1; i < CONTEXTS && status == VD_OK; i++) {
		preempt->contexts[i].preempt = preempt;
		status = vdi_fiber_new(run_fiber, &preempt->contexts[i], &preempt->contexts[i].fiber);
	}
	if (status != VD_OK) {
		vdi_preempt_sim_free(preempt);
		return status;
	}
	vdi_preemption = &preempt->hooks;
	*ret_preempt = preempt;
	return VD_OK;
}

void vdi_preempt_sim_free(struct vdi_preempt_sim *preempt)
{
	if (preempt == NULL)
		return;
	for (size_t i = 0; i < CONTEXTS; i++) {
		VDI_CHECK(i == 0 || !preempt->contexts[i].is_busy);
		vdi_fiber_free(preempt->contexts[i].fiber);
	}
	if (vdi_preemption == &preempt->hooks)
		vdi_preemption = NULL;
	vdi_free(preempt);
}
