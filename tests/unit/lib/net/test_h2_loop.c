/* The iterations of an h2_loop: their order, their bound, and timers to the nanosecond. Everything that
 * runs writes one character to a log. */
#include <event2/event.h>
#include <event2/event_struct.h>

#include "await.h"
#include "h2_loop_state.h"
#include "hand_clock.h"
#include "thread.h"
#include "wait.h"

#define ROUNDS_MAX 8 /* of one iteration */

struct fixture;

/* Work, or a timer, that logs its letter and then does what the test says. */
struct task {
	struct vdi_h2_dirty dirty;
	struct vdi_h2_timer timer;
	struct fixture	   *f;
	char		    letter;
	void (*then)(struct task *task);
};

struct fixture {
	struct vdi_clock_sim clock;
	struct vd_env	    *env;
	struct vdi_loop	    *loop;
	struct vdi_h2_loop  *h2_loop;
	struct vd_actor	    *nudge; /* lets the loop look at its timers */
	struct event	     first; /* of a run */
	struct event	     iteration;
	void (*step)(struct fixture *f);
	unsigned	 iterations_left;
	char		 log[400];
	_Atomic unsigned size; /* of the log */
	unsigned	 asks; /* the number of iterations that request the next one */
	struct task	 tasks[5];
};

static void note(struct fixture *f, char letter)
{
	unsigned size = f->size;

	assert_true(size + 1 < sizeof f->log);
	f->log[size] = letter;
	f->size = size + 1;
}

static void expect_log(struct fixture *f, const char *expected)
{
	f->log[f->size] = 0;
	assert_string_equal(f->log, expected);
	f->size = 0;
}

static void on_end(void *arg)
{
	struct fixture *f = arg;

	note(f, 'T');
	if (f->asks) {
		f->asks--;
		vdi_h2_loop_wake(f->h2_loop);
		vdi_h2_loop_wake(f->h2_loop);
	}
}

static void work(struct vdi_h2_dirty *dirty)
{
	struct task *task = VDI_CONTAINER_OF(dirty, struct task, dirty);

	assert_false(dirty->is_listed);
	note(task->f, task->letter);
	if (task->then)
		task->then(task);
}

static void fire(struct vdi_h2_timer *timer)
{
	struct task *task = VDI_CONTAINER_OF(timer, struct task, timer);

	assert_false(vdi_timer_is_set(&timer->timer));
	note(task->f, task->letter);
	if (task->then)
		task->then(task);
}

static void do_nothing(void *arg)
{
	(void) arg;
}

static void set_up(struct fixture *f, bool lends)
{
	const struct vdi_h2_loop_options options = { .end_iteration = on_end, .arg = f, .lends = lends };
	struct vd_actor_options		 nudge = { .name = "nudge", .run = do_nothing };

	*f = (struct fixture) { 0 };
	f->env = hand_clock_env(&f->clock);
	assert_status(vdi_loop_new(f->env, &f->loop), VD_OK);
	assert_status(vdi_h2_loop_new(f->env, f->loop, &options, &f->h2_loop), VD_OK);
	assert_ptr_equal(vdi_h2_loop_env(f->h2_loop), f->env);
	assert_ptr_equal(vdi_h2_loop_event_loop(f->h2_loop), f->loop);
	assert_status(vd_executor_actor_new(vdi_loop_executor(f->loop), &nudge, &f->nudge), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(f->tasks); i++)
		f->tasks[i] = (struct task) {
			.f = f, .letter = (char) ('a' + i), .dirty.work = work, .timer.fire = fire
		};
}

static void tear_down(struct fixture *f)
{
	vd_actor_close(f->nudge, NULL, NULL);
	f->h2_loop = vdi_h2_loop_free(f->h2_loop);
	assert_null(f->h2_loop);
	vdi_loop_free(f->loop);
	vd_env_free(f->env);
}

/* Everything that can be done now is done. */
static void settle(struct fixture *f)
{
	for (unsigned i = 0; i < 20; i++)
		(void) event_base_loop(vdi_loop_base(f->loop), EVLOOP_NONBLOCK);
}

static void advance(struct fixture *f, vd_dur by)
{
	vdi_clock_sim_advance(&f->clock, by);
	vd_actor_wake(f->nudge);
	settle(f);
}

static vd_mono in_ms(struct fixture *f, int64_t ms)
{
	return vd_mono_add(vd_env_now(f->env), VD_MS(ms));
}

/* ---- On the loop's thread ---- */

static void on_first(evutil_socket_t fd, short what, void *arg)
{
	struct fixture *f = arg;

	(void) fd;
	(void) what;
	assert_true(vdi_loop_is_current(f->loop));
	f->step(f);
	note(f, '.');
}

/* The loop has looked at its sockets and timers once more. */
static void on_iteration(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval zero;
	struct fixture		   *f = arg;

	(void) fd;
	(void) what;
	note(f, '|');
	if (--f->iterations_left)
		assert_int_equal(evtimer_add(&f->iteration, &zero), 0);
	else
		vdi_loop_stop(f->loop);
}

/* The step, and then so many iterations of the loop. */
static void run(struct fixture *f, void (*step)(struct fixture *f), unsigned iterations)
{
	static const struct timeval zero;

	f->step = step;
	f->iterations_left = iterations;
	assert_int_equal(event_assign(&f->first, vdi_loop_base(f->loop), -1, 0, on_first, f), 0);
	assert_int_equal(evtimer_assign(&f->iteration, vdi_loop_base(f->loop), on_iteration, f), 0);
	assert_int_equal(evtimer_add(&f->iteration, &zero), 0);
	event_active(&f->first, 0, 0);
	vdi_loop_run(f->loop);
	event_del(&f->first);
	event_del(&f->iteration);
}

/* The log without the marks of iterations. */
static void expect_done(struct fixture *f, const char *expected)
{
	unsigned size = 0;

	for (unsigned i = 0; i < f->size; i++)
		if (f->log[i] != '|')
			f->log[size++] = f->log[i];
	f->size = size;
	expect_log(f, expected);
}

static void ask_thrice(struct fixture *f)
{
	for (int i = 0; i < 3; i++)
		vdi_h2_loop_wake(f->h2_loop);
}

static void requests_of_one_iteration_are_one_call(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f, false);
	run(&f, ask_thrice, 5);
	expect_done(&f, ".T");
	run(&f, ask_thrice, 5);
	expect_done(&f, ".T");
	/* Before the loop runs, and while it does not. */
	ask_thrice(&f);
	expect_log(&f, "");
	settle(&f);
	expect_log(&f, "T");
	settle(&f);
	expect_log(&f, "");
	tear_down(&f);
}

static void a_turn_may_ask_for_the_next_one(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f, false);
	f.asks = 3;
	run(&f, ask_thrice, 5);
	expect_done(&f, ".TTTT");
	tear_down(&f);
}

/* An iteration that always asks for the next one leaves sockets and timers their time after eight of them. */
static void turns_without_end_leave_others_their_time(void **state)
{
	struct fixture f;
	unsigned       iterations = 0, in_a_row = 0, longest = 0;

	(void) state;
	set_up(&f, false);
	f.asks = 99;
	run(&f, ask_thrice, 60);
	for (unsigned i = 0; i < f.size; i++) {
		iterations += f.log[i] == 'T';
		in_a_row = f.log[i] == 'T' ? in_a_row + 1 : 0;
		longest = VDI_MAX(longest, in_a_row);
	}
	assert_int_equal(iterations, 100);
	assert_int_equal(longest, ROUNDS_MAX);
	tear_down(&f);
}

/* ---- Work at the end of an iteration ---- */

static void list(struct fixture *f, const char *letters)
{
	for (; *letters; letters++)
		vdi_h2_loop_list_dirty(f->h2_loop, &f->tasks[*letters - 'a'].dirty);
}

static void list_three_twice(struct fixture *f)
{
	list(f, "cabbac");
}

static void work_is_done_once_in_the_order_of_requests(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f, false);
	run(&f, list_three_twice, 5);
	expect_done(&f, ".Tcab");
	list(&f, "bb");
	settle(&f);
	expect_log(&f, "Tb");
	/* Not after it was taken back, which may be done twice. */
	list(&f, "abc");
	for (int i = 0; i < 2; i++)
		vdi_h2_loop_unlist_dirty(f.h2_loop, &f.tasks[1].dirty);
	settle(&f);
	expect_log(&f, "Tac");
	list(&f, "a");
	vdi_h2_loop_unlist_dirty(f.h2_loop, &f.tasks[0].dirty);
	settle(&f);
	expect_log(&f, "T");
	tear_down(&f);
}

static void list_next(struct task *task)
{
	list(task->f, (char[]) { (char) (task->letter + 1), 0 });
}

static void list_again_once(struct task *task)
{
	task->then = NULL;
	list(task->f, (char[]) { task->letter, 0 });
}

static void list_a_and_c(struct fixture *f)
{
	f->tasks[0].then = list_next;
	f->tasks[2].then = list_again_once;
	list(f, "ac");
}

/* What work requests is done in the next round, after the side was called. */
static void work_may_request_work(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f, false);
	run(&f, list_a_and_c, 5);
	expect_done(&f, ".TacTbc");
	tear_down(&f);
}

static void unlist_b(struct task *task)
{
	vdi_h2_loop_unlist_dirty(task->f->h2_loop, &task->f->tasks[1].dirty);
}

static void work_may_take_back_other_work(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f, false);
	f.tasks[0].then = unlist_b;
	list(&f, "abc");
	settle(&f);
	expect_log(&f, "Tac");
	tear_down(&f);
}

static void list_again(struct task *task)
{
	if (task->f->asks) {
		task->f->asks--;
		vdi_h2_loop_list_dirty(task->f->h2_loop, &task->dirty);
	}
}

static void on_quiet_end(void *arg)
{
	(void) arg;
}

static void list_a(struct fixture *f)
{
	list(f, "a");
}

/* Work that requests itself is bounded like iterations, and none of it is lost. */
static void work_without_end_leaves_others_their_time(void **state)
{
	for (int has_callback = 0; has_callback < 2; has_callback++) {
		const struct vdi_h2_loop_options options = { .end_iteration =
								     has_callback ? on_quiet_end : NULL };
		struct fixture			 f;
		unsigned			 done = 0, in_a_row = 0, longest = 0;

		(void) state;
		set_up(&f, false);
		vdi_h2_loop_free(f.h2_loop);
		assert_status(vdi_h2_loop_new(f.env, f.loop, &options, &f.h2_loop), VD_OK);
		f.asks = 99;
		f.tasks[0].then = list_again;
		run(&f, list_a, 60);
		for (unsigned i = 0; i < f.size; i++) {
			done += f.log[i] == 'a';
			in_a_row = f.log[i] == 'a' ? in_a_row + 1 : 0;
			longest = VDI_MAX(longest, in_a_row);
		}
		assert_int_equal(done, 100);
		assert_int_equal(longest, ROUNDS_MAX);
		tear_down(&f);
	}
}

/* ---- Timers ---- */

static void set(struct fixture *f, char letter, int64_t ms)
{
	vdi_h2_timer_set(f->h2_loop, &f->tasks[letter - 'a'].timer, in_ms(f, ms));
}

static void clear(struct fixture *f, char letter)
{
	vdi_h2_timer_set(f->h2_loop, &f->tasks[letter - 'a'].timer, VD_NEVER);
}

/* Of the timers alone; the number of iterations is not compared. */
static void expect_fired(struct fixture *f, const char *expected)
{
	unsigned size = 0;

	for (unsigned i = 0; i < f->size; i++)
		if (f->log[i] != 'T')
			f->log[size++] = f->log[i];
	f->size = size;
	expect_log(f, expected);
}

/* Nothing happens until one nanosecond before; then these fire. */
static void expect_at(struct fixture *f, int64_t ms, const char *expected)
{
	advance(f, (vd_dur) { VD_MS(ms).ns - 1 });
	expect_fired(f, "");
	advance(f, (vd_dur) { 1 });
	expect_fired(f, expected);
}

static void timers_fire_at_their_time(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f, false);
	set(&f, 'a', 30);
	set(&f, 'b', 10); /* before the one that was the first */
	set(&f, 'c', 20);
	set(&f, 'd', 20);
	expect_at(&f, 10, "b");
	expect_at(&f, 10, "cd");
	expect_at(&f, 10, "a");
	advance(&f, VD_SECONDS(1000));
	expect_fired(&f, "");
	/* And so does the next one, after the h2_loop had none. */
	set(&f, 'b', 7);
	expect_at(&f, 7, "b");
	/* It fires before the side is called at the end of its iteration. */
	set(&f, 'b', 0);
	settle(&f);
	f.log[f.size] = 0;
	assert_int_equal(strncmp(f.log, "bT", 2), 0);
	tear_down(&f);
}

static void timers_can_be_moved_and_cleared(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f, false);
	set(&f, 'a', 10);
	set(&f, 'a', 30); /* later: the h2_loop looks in vain, and again */
	expect_at(&f, 30, "a");
	set(&f, 'a', 30);
	set(&f, 'a', 10);
	expect_at(&f, 10, "a");
	set(&f, 'a', 10);
	set(&f, 'b', 20);
	clear(&f, 'a');
	clear(&f, 'a');
	expect_at(&f, 20, "b");
	clear(&f, 'b'); /* it is not set */
	advance(&f, VD_SECONDS(1000));
	expect_fired(&f, "");
	tear_down(&f);
}

static void set_again(struct task *task)
{
	vdi_h2_timer_set(task->f->h2_loop, &task->timer, in_ms(task->f, 5));
}

static void set_next(struct task *task)
{
	set(task->f, (char) (task->letter + 1), 3);
}

static void timers_set_in_a_turn_count(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f, false);
	f.tasks[0].then = set_again;
	set(&f, 'a', 1);
	expect_at(&f, 1, "a");
	for (int i = 0; i < 3; i++)
		expect_at(&f, 5, "a");
	clear(&f, 'a');
	f.tasks[2].then = set_next; /* as work */
	list(&f, "c");
	settle(&f);
	expect_fired(&f, "c");
	expect_at(&f, 3, "d");
	tear_down(&f);
}

/* ---- Other threads ---- */

static void *wake_from_outside(void *arg)
{
	struct fixture *f = arg;

	assert_false(vdi_loop_is_current(f->loop));
	vdi_h2_loop_wake(f->h2_loop);
	return NULL;
}

static void any_thread_may_request_a_turn(void **state)
{
	struct fixture	  f;
	struct vdi_thread thread;

	(void) state;
	set_up(&f, false);
	assert_status(vdi_loop_start_thread(f.loop, "loop"), VD_OK);
	for (unsigned i = 1; i <= 20; i++) {
		assert_status(vdi_thread_start(&thread, "other", wake_from_outside, &f), VD_OK);
		vdi_thread_join(&thread);
		AWAIT(f.size >= i);
	}
	vdi_loop_stop(f.loop);
	tear_down(&f);
	assert_int_equal(f.size, 20);
}

/* ---- Input ---- */

/* The thread is lent when the loop has slept for 20 us, counted from the last iteration or the last input. */
static void the_thread_is_lent_after_a_sleep(void **state)
{
	for (int lends = 0; lends < 2; lends++) {
		struct fixture f;

		(void) state;
		set_up(&f, lends);
		vdi_h2_loop_wake(f.h2_loop);
		settle(&f);
		for (int i = 0; i < 2; i++) {
			bool is_lent;

			assert_false(vdi_h2_loop_begin_input(f.h2_loop));
			vdi_clock_sim_advance(&f.clock, (vd_dur) { VD_US(20).ns - 1 });
			assert_false(vdi_h2_loop_begin_input(f.h2_loop));
			vdi_clock_sim_advance(&f.clock, (vd_dur) { 1 });
			is_lent = vdi_h2_loop_begin_input(f.h2_loop);
			assert_int_equal(is_lent, lends);
			vdi_h2_loop_end_input(f.h2_loop, is_lent);
		}
		vdi_clock_sim_advance(&f.clock, VD_US(20));
		vdi_h2_loop_wake(f.h2_loop);
		settle(&f);
		assert_false(vdi_h2_loop_begin_input(f.h2_loop));
		tear_down(&f);
	}
}

struct lent {
	struct fixture	 f;
	struct vd_actor *other;
	struct vdi_wait	 done;
	_Atomic bool	 has_begun; /* the pool's thread has something else to do */
	_Atomic bool	 is_let_go;
	bool		 has_run; /* before the end of the input */
};

static __thread bool is_loops_thread;

static void run_other(void *arg)
{
	struct lent *lent = arg;

	lent->has_run = is_loops_thread;
}

static void hold_thread(void *arg)
{
	struct lent *lent = arg;

	lent->has_begun = true;
	AWAIT(lent->is_let_go);
}

static void take_input(struct fixture *f)
{
	struct lent *lent = VDI_CONTAINER_OF(f, struct lent, f);
	bool	     is_lent;

	vdi_clock_sim_advance(&f->clock, VD_US(20));
	is_lent = vdi_h2_loop_begin_input(f->h2_loop);
	assert_true(is_lent);
	vd_actor_wake(lent->other);
	assert_false(lent->has_run);
	vdi_h2_loop_end_input(f->h2_loop, is_lent);
	assert_true(lent->has_run);
}

static void run_loop(void *arg)
{
	struct lent *lent = arg;

	is_loops_thread = true;
	run(&lent->f, take_input, 3);
	lent->is_let_go = true;
	vdi_wait_signal(&lent->done);
}

/* An actor that input wakes runs on the loop's thread, at the end of the input, while the only thread of
 * the pool is busy. */
static void what_input_wakes_runs_on_the_lent_thread(void **state)
{
	struct lent	       *lent = test_calloc(1, sizeof *lent);
	struct vd_actor_options busy = { .name = "busy", .run = hold_thread, .arg = lent },
				other = { .name = "other", .run = run_other, .arg = lent },
				loop = { .name = "loop", .run = run_loop, .arg = lent, .blocking = true };
	struct vd_actor *busy_actor, *loop_actor;

	(void) state;
	set_up(&lent->f, true);
	vdi_wait_init(&lent->done, lent->f.env);
	assert_status(vd_actor_new(lent->f.env, &busy, &busy_actor), VD_OK);
	assert_status(vd_actor_new(lent->f.env, &other, &lent->other), VD_OK);
	assert_status(vd_actor_new(lent->f.env, &loop, &loop_actor), VD_OK);
	vd_actor_wake(busy_actor);
	AWAIT(lent->has_begun);
	vd_actor_wake(loop_actor);
	vdi_wait_wait(&lent->done);
	vdi_wait_for_actor_close(lent->f.env, busy_actor);
	vdi_wait_for_actor_close(lent->f.env, lent->other);
	vdi_wait_for_actor_close(lent->f.env, loop_actor);
	vdi_wait_fini(&lent->done);
	tear_down(&lent->f);
	test_free(lent);
}

/* ---- Its life ---- */

static void ask_and_free(struct fixture *f)
{
	vdi_h2_loop_wake(f->h2_loop);
	f->h2_loop = vdi_h2_loop_free(f->h2_loop);
}

static void an_h2_loop_may_be_freed_before_its_iteration_ends(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f, false);
	run(&f, ask_and_free, 5);
	expect_done(&f, ".");
	tear_down(&f);
}

static void without_memory_there_is_no_h2_loop(void **state)
{
	const struct vdi_h2_loop_options options = { .end_iteration = NULL };
	struct fixture			 f;
	bool				 failed = true;

	(void) state;
	set_up(&f, false);
	for (uint64_t n = 1; failed; n++) {
		struct vdi_h2_loop *h2_loop = NULL;
		int64_t		    before = vdi_alloc_live();
		vd_status	    status;

		vdi_alloc_fail_nth(n, 1);
		status = vdi_h2_loop_new(f.env, f.loop, &options, &h2_loop);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		assert_int_equal(h2_loop == NULL, failed);
		if (failed)
			assert_int_equal(vdi_alloc_live(), before);
		else
			vdi_h2_loop_free(h2_loop);
		assert_true(failed || n > 2);
	}
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_of_one_iteration_are_one_call),
		cmocka_unit_test(a_turn_may_ask_for_the_next_one),
		cmocka_unit_test(turns_without_end_leave_others_their_time),
		cmocka_unit_test(work_is_done_once_in_the_order_of_requests),
		cmocka_unit_test(work_may_request_work),
		cmocka_unit_test(work_may_take_back_other_work),
		cmocka_unit_test(work_without_end_leaves_others_their_time),
		cmocka_unit_test(timers_fire_at_their_time),
		cmocka_unit_test(timers_can_be_moved_and_cleared),
		cmocka_unit_test(timers_set_in_a_turn_count),
		cmocka_unit_test(any_thread_may_request_a_turn),
		cmocka_unit_test(the_thread_is_lent_after_a_sleep),
		cmocka_unit_test(what_input_wakes_runs_on_the_lent_thread),
		cmocka_unit_test(an_h2_loop_may_be_freed_before_its_iteration_ends),
		cmocka_unit_test(without_memory_there_is_no_h2_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
