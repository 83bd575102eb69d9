/* Workers in the simulator, and the queue under real threads for the thread sanitizer. */
#include <pthread.h>
#include <stdatomic.h>
#include <vedette/work_queue.h>

#include "actor_sim.h"
#include "await.h"
#include "vdtest.h"

enum { WORKS_MAX = 8 };

struct world {
	struct vd_env	     *env;
	struct vd_work_queue *queue;
	struct vd_work	     *works[WORKS_MAX]; /* in progress */
	char		      keys[WORKS_MAX][16];
	unsigned	      count, calls, requeues;
	bool		      is_inline; /* finish inside the handler */
};

static void work(void *arg, struct vd_work *work, struct vd_bytes key)
{
	struct world *world = arg;

	world->calls++;
	world->requeues = vd_work_num_requeues(work);
	if (world->is_inline) {
		vd_work_finish(work, VD_WORK_DONE, VD_MS(0));
		return;
	}
	assert_in_range(world->count, 0, WORKS_MAX - 1);
	(void) snprintf(world->keys[world->count], 16, "%.*s", (int) key.size, (const char *) key.data);
	world->works[world->count++] = work;
}

static void world_init(struct world *world, unsigned concurrency)
{
	struct vd_work_queue_options options = VD_WORK_QUEUE_OPTIONS_INIT;
	struct vd_worker_options     workers = VD_WORKER_OPTIONS_INIT;
	struct vd_error		     error;

	*world = (struct world) { 0 };
	options.limits.qps = 0;
	assert_status(vdi_env_new_sim(7, NULL, NULL, &world->env), VD_OK);
	assert_status(vd_work_queue_new(world->env, &options, &world->queue, &error), VD_OK);
	workers.concurrency = concurrency;
	workers.work = work;
	workers.arg = world;
	assert_status(vd_work_queue_run(world->queue, &workers, &error), VD_OK);
	vdi_sim_run_until_idle(world->env);
}

static void world_fini(struct world *world)
{
	vd_work_queue_close_wait(world->queue);
	vd_env_free(world->env);
}

static void add(struct world *world, const char *key)
{
	assert_status(vd_work_queue_add(world->queue, vd_bytes_of(key)), VD_OK);
	vdi_sim_run_until_idle(world->env);
}

static void finish(struct world *world, enum vd_work_result result, vd_dur after)
{
	assert_int_not_equal(world->count, 0);
	vd_work_finish(world->works[--world->count], result, after);
	vdi_sim_run_until_idle(world->env);
}

static void k150_a_failed_key_is_retried_after_a_growing_delay(void **state)
{
	struct world world;

	world_init(&world, 1);
	add(&world, "a");
	assert_int_equal(world.calls, 1);
	finish(&world, VD_WORK_RETRY, VD_MS(0));
	vdi_sim_advance(world.env, VD_US(4999));
	assert_int_equal(world.calls, 1);
	vdi_sim_advance(world.env, VD_US(1));
	assert_int_equal(world.calls, 2);
	assert_int_equal(world.requeues, 1);
	finish(&world, VD_WORK_RETRY, VD_MS(0));
	vdi_sim_advance(world.env, VD_US(9999));
	assert_int_equal(world.calls, 2);
	vdi_sim_advance(world.env, VD_US(1));
	assert_int_equal(world.calls, 3);
	assert_int_equal(world.requeues, 2);
	finish(&world, VD_WORK_DONE, VD_MS(0));
	vdi_sim_advance(world.env, VD_SECONDS(100));
	assert_int_equal(world.calls, 3);
	assert_int_equal(vd_work_queue_num_requeues(world.queue, vd_bytes_of("a")), 0);
	world_fini(&world);
}

static void k151_a_key_with_a_delay_is_forgotten_and_processed_after_it(void **state)
{
	struct world world;

	world_init(&world, 1);
	add(&world, "a");
	finish(&world, VD_WORK_RETRY, VD_MS(0));
	vdi_sim_advance(world.env, VD_MS(5));
	finish(&world, VD_WORK_AFTER, VD_SECONDS(60));
	assert_int_equal(vd_work_queue_num_requeues(world.queue, vd_bytes_of("a")), 0);
	vdi_sim_advance(world.env, VD_MS(59999));
	assert_int_equal(world.calls, 2);
	vdi_sim_advance(world.env, VD_MS(1));
	assert_int_equal(world.calls, 3);
	assert_int_equal(world.requeues, 0);
	add(&world, "a"); /* while it is processed */
	assert_int_equal(world.calls, 3);
	finish(&world, VD_WORK_DONE, VD_MS(0));
	assert_int_equal(world.calls, 4);
	finish(&world, VD_WORK_DONE, VD_MS(0));
	world_fini(&world);
}

static void k152_no_more_keys_are_processed_than_there_are_workers(void **state)
{
	struct world world;

	world_init(&world, 2);
	add(&world, "a");
	add(&world, "b");
	add(&world, "c");
	assert_int_equal(world.count, 2);
	assert_int_equal(vd_work_queue_len(world.queue), 1);
	finish(&world, VD_WORK_DONE, VD_MS(0));
	assert_int_equal(world.count, 2);
	assert_string_equal(world.keys[1], "c");
	finish(&world, VD_WORK_DONE, VD_MS(0));
	finish(&world, VD_WORK_DONE, VD_MS(0));
	assert_int_equal(world.calls, 3);
	world_fini(&world);
}

static void a_worker_that_finishes_inside_its_handler_takes_all_keys(void **state)
{
	struct world world;
	char	     key[16];

	world_init(&world, 1);
	world.is_inline = true;
	for (unsigned i = 0; i < 100; i++) {
		(void) snprintf(key, sizeof key, "k%u", i);
		assert_status(vd_work_queue_add(world.queue, vd_bytes_of(key)), VD_OK);
	}
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(world.calls, 100);
	assert_status(vd_work_queue_shutdown_drain_wait(world.queue, VD_SECONDS(1)), VD_OK);
	world_fini(&world);
}

static void note_closed(void *arg)
{
	*(bool *) arg = true;
}

static void a_close_waits_for_keys_in_work_and_drops_queued_ones(void **state)
{
	struct world world;
	bool	     is_closed = false;

	world_init(&world, 1);
	add(&world, "a");
	add(&world, "b");
	vd_work_queue_close(world.queue, note_closed, &is_closed);
	vdi_sim_run_until_idle(world.env);
	assert_false(is_closed);
	finish(&world, VD_WORK_RETRY, VD_MS(0));
	assert_true(is_closed);
	assert_int_equal(world.calls, 1);
	vd_env_free(world.env);
}

static void a_shut_down_queue_is_worked_off(void **state)
{
	struct vd_worker_options options = VD_WORKER_OPTIONS_INIT;
	struct vd_error		 error;
	struct world		 world;

	world_init(&world, 1);
	add(&world, "a");
	add(&world, "b");
	add(&world, "a");
	vd_work_queue_shutdown(world.queue);
	finish(&world, VD_WORK_DONE, VD_MS(0));
	finish(&world, VD_WORK_DONE, VD_MS(0));
	finish(&world, VD_WORK_DONE, VD_MS(0)); /* a again: it was added while it was processed */
	assert_int_equal(world.calls, 3);
	options.work = work;
	assert_status(vd_work_queue_run(world.queue, &options, &error), VD_CLOSED);
	options.concurrency = 257;
	assert_status(vd_work_queue_run(world.queue, &options, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "concurrency is 257, must be 1 to 256");
	vdi_sim_run_until_idle(world.env);
	world_fini(&world);
}

static void torture_workers_start_all_or_none(void **state)
{
	struct vd_worker_options options = VD_WORKER_OPTIONS_INIT;
	bool			 has_failed = true;

	options.concurrency = 3;
	options.work = work;
	for (uint64_t nth = 1; has_failed; nth++) {
		struct world world = { .is_inline = true };
		vd_status    status;

		options.arg = &world;
		assert_status(vdi_env_new_sim(7, NULL, NULL, &world.env), VD_OK);
		assert_status(vd_work_queue_new(world.env, NULL, &world.queue, NULL), VD_OK);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vd_work_queue_run(world.queue, &options, NULL);
		has_failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, has_failed ? VD_NOMEM : VD_OK);
		add(&world, "a");
		assert_int_equal(world.calls, !has_failed);
		world_fini(&world);
	}
}

/* ---- Real threads ---- */

enum { PRODUCERS = 3, CONSUMERS = 3, KEYS = 50, ROUNDS = 40 };

struct race {
	struct vd_env	     *env;
	struct vd_work_queue *queue;
	atomic_int	      in_work[KEYS];
	atomic_uint	      calls[KEYS];
	atomic_uint	      ends;
	atomic_int	      number_next;
};

static void enter(struct race *race, struct vd_bytes key)
{
	unsigned at = (unsigned) ((const char *) key.data)[0];

	assert_int_equal(atomic_fetch_add(&race->in_work[at], 1), 0);
	atomic_fetch_add(&race->calls[at], 1);
}

static void leave(struct race *race, struct vd_bytes key)
{
	atomic_fetch_sub(&race->in_work[(unsigned) ((const char *) key.data)[0]], 1);
}

static void *produce(void *arg)
{
	struct race *race = arg;

	for (unsigned i = 0; i < ROUNDS * KEYS; i++) {
		char key = (char) (i % KEYS);

		assert_status(i % 7 ? vd_work_queue_add(race->queue, (struct vd_bytes) { &key, 1 }) :
				      vd_work_queue_add_after(race->queue, (struct vd_bytes) { &key, 1 },
							      VD_US(i % 100)),
			      VD_OK);
	}
	return NULL;
}

static void *consume(void *arg)
{
	struct race    *race = arg;
	struct vd_bytes key;

	while (vd_work_queue_get_wait(race->queue, (vd_dur) { -1 }, &key) == VD_OK) {
		enter(race, key);
		leave(race, key);
		vd_work_queue_done(race->queue, key);
	}
	atomic_fetch_add(&race->ends, 1);
	return NULL;
}

static void work_in_race(void *arg, struct vd_work *work, struct vd_bytes key)
{
	struct race *race = arg;
	bool	     fails = atomic_load(&race->calls[(unsigned) ((const char *) key.data)[0]]) % 5 == 0;

	enter(race, key);
	leave(race, key);
	vd_work_finish(work, fails ? VD_WORK_RETRY : VD_WORK_DONE, VD_MS(0));
}

/* Producers and consumers on threads of their own, beside workers on actors. */
static void k101_every_added_key_is_processed_by_one_consumer_at_a_time(void **state)
{
	struct vd_worker_options options = VD_WORKER_OPTIONS_INIT;
	struct race		 race = { 0 };
	pthread_t		 producers[PRODUCERS], consumers[CONSUMERS];

	assert_status(vd_env_new_threads(NULL, &race.env), VD_OK);
	assert_status(vd_work_queue_new(race.env, NULL, &race.queue, NULL), VD_OK);
	options.concurrency = 3;
	options.work = work_in_race;
	options.arg = &race;
	assert_status(vd_work_queue_run(race.queue, &options, NULL), VD_OK);
	for (unsigned i = 0; i < CONSUMERS; i++)
		assert_int_equal(pthread_create(&consumers[i], NULL, consume, &race), 0);
	for (unsigned i = 0; i < PRODUCERS; i++)
		assert_int_equal(pthread_create(&producers[i], NULL, produce, &race), 0);
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	AWAIT(vd_work_queue_len(race.queue) == 0);
	assert_status(vd_work_queue_shutdown_drain_wait(race.queue, (vd_dur) { -1 }), VD_OK);
	for (unsigned i = 0; i < CONSUMERS; i++)
		pthread_join(consumers[i], NULL);
	assert_int_equal(atomic_load(&race.ends), CONSUMERS);
	for (unsigned i = 0; i < KEYS; i++)
		assert_in_range(atomic_load(&race.calls[i]), 1, PRODUCERS * ROUNDS * 2);
	vd_work_queue_close_wait(race.queue);
	vd_env_free(race.env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(k150_a_failed_key_is_retried_after_a_growing_delay),
		cmocka_unit_test(k151_a_key_with_a_delay_is_forgotten_and_processed_after_it),
		cmocka_unit_test(k152_no_more_keys_are_processed_than_there_are_workers),
		cmocka_unit_test(a_worker_that_finishes_inside_its_handler_takes_all_keys),
		cmocka_unit_test(a_close_waits_for_keys_in_work_and_drops_queued_ones),
		cmocka_unit_test(a_shut_down_queue_is_worked_off),
		cmocka_unit_test(torture_workers_start_all_or_none),
		cmocka_unit_test(k101_every_added_key_is_processed_by_one_consumer_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
