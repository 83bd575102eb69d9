#include <stdatomic.h>

#include "grpc_queue.h"
#include "grpc_runtime.h"
#include "thread.h"
#include "vdtest.h"
#include "wait.h"

struct fixture {
	struct vd_env	      *env;
	struct vdi_grpc_user   user;
	struct vdi_grpc_queue *queue;
	struct vdi_wait	       ended;
	vd_mono		       due;	     /* the answer of the next iteration */
	unsigned	       wakes_itself; /* in this many further iterations */
	_Atomic uint64_t       iterations;
	_Atomic bool	       stops;
	int64_t		       live_before;
};

static vd_mono iterate(void *arg)
{
	struct fixture *f = arg;
	vd_mono		due = f->due;

	f->due = VD_NEVER;
	if (atomic_load(&f->stops))
		vdi_grpc_queue_stop(f->queue);
	else if (f->wakes_itself) {
		f->wakes_itself--;
		vdi_grpc_queue_wake(f->queue);
	}
	atomic_fetch_add(&f->iterations, 1);
	return due;
}

static void ended(void *arg)
{
	struct fixture *f = arg;

	vdi_grpc_runtime_leave(&f->user);
	vdi_wait_signal(&f->ended);
}

static vd_status open_queue(struct fixture *f)
{
	struct vdi_grpc_queue_options options = {
		.name = "queue", .iterate = iterate, .ended = ended, .arg = f
	};

	return vdi_grpc_queue_new(f->env, &options, &f->queue);
}

static int start(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof f);
	f.live_before = vdi_alloc_live();
	assert_status(vd_env_new_threads(NULL, &f.env), VD_OK);
	f.due = VD_NEVER;
	vdi_grpc_runtime_enter(&f.user, f.env);
	vdi_wait_init(&f.ended, f.env);
	*state = &f;
	return 0;
}

static int stop(void **state)
{
	struct fixture *f = *state;

	vdi_wait_fini(&f->ended);
	f->env = vd_env_free(f->env);
	assert_int_equal(vdi_alloc_live(), f->live_before);
	return 0;
}

static void wait_for_iterations(struct fixture *f, uint64_t iterations)
{
	vd_mono due = vd_mono_add(vd_env_now(f->env), VD_SECONDS(20));

	while (atomic_load(&f->iterations) < iterations)
		assert_true(vd_env_now(f->env).ns < due.ns);
}

static void stop_queue(struct fixture *f)
{
	atomic_store(&f->stops, true);
	vdi_grpc_queue_wake(f->queue);
	vdi_wait_wait(&f->ended);
}

static void an_iteration_follows_the_start_and_each_wake(void **state)
{
	struct fixture *f = *state;

	assert_status(open_queue(f), VD_OK);
	assert_int_equal(f->iterations, 0);
	vdi_grpc_queue_start(f->queue);
	for (uint64_t i = 1; i <= 1000; i++) {
		wait_for_iterations(f, i);
		vdi_grpc_queue_wake(f->queue);
	}
	wait_for_iterations(f, 1001);
	stop_queue(f);
}

static void an_iteration_follows_when_it_was_requested(void **state)
{
	struct fixture *f = *state;

	assert_status(open_queue(f), VD_OK);
	f->due = vd_mono_add(vd_env_now(f->env), VD_MS(20));
	vdi_grpc_queue_start(f->queue);
	wait_for_iterations(f, 2);
	stop_queue(f);
}

static void an_iteration_may_request_another_and_no_wake_is_lost(void **state)
{
	struct fixture *f = *state;

	assert_status(open_queue(f), VD_OK);
	f->wakes_itself = 3;
	vdi_grpc_queue_start(f->queue);
	wait_for_iterations(f, 4);
	vdi_grpc_queue_wake(f->queue);
	wait_for_iterations(f, 5);
	stop_queue(f);
}

static void *wake_often(void *arg)
{
	struct fixture *f = arg;

	for (int i = 0; i < 20000; i++)
		vdi_grpc_queue_wake(f->queue);
	return NULL;
}

static void many_threads_may_wake(void **state)
{
	struct fixture	 *f = *state;
	struct vdi_thread threads[4];
	uint64_t	  iterations;

	assert_status(open_queue(f), VD_OK);
	vdi_grpc_queue_start(f->queue);
	for (int i = 0; i < 4; i++)
		assert_status(vdi_thread_start(&threads[i], "waker", wake_often, f), VD_OK);
	for (int i = 0; i < 4; i++)
		vdi_thread_join(&threads[i]);
	iterations = f->iterations;
	vdi_grpc_queue_wake(f->queue);
	wait_for_iterations(f, iterations + 1);
	stop_queue(f);
}

static void one_that_never_started_is_freed(void **state)
{
	struct fixture *f = *state;

	for (uint64_t n = 1;; n++) {
		vd_status status;
		bool	  failed;

		vdi_alloc_fail_nth(n, 1);
		status = open_queue(f);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK)
			assert_null(vdi_grpc_queue_free(f->queue));
		if (!failed)
			break;
		assert_status(status, VD_NOMEM);
	}
	vdi_grpc_runtime_leave(&f->user);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_iteration_follows_the_start_and_each_wake, start, stop),
		cmocka_unit_test_setup_teardown(an_iteration_follows_when_it_was_requested, start, stop),
		cmocka_unit_test_setup_teardown(an_iteration_may_request_another_and_no_wake_is_lost, start,
						stop),
		cmocka_unit_test_setup_teardown(many_threads_may_wake, start, stop),
		cmocka_unit_test_setup_teardown(one_that_never_started_is_freed, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
