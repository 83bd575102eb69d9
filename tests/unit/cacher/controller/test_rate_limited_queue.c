/* The work queue in the simulator: client-go's own tests of its queue and delaying queue, shutdown,
 * memory. */
#include <vedette/work_queue.h>

#include "actor_sim.h"
#include "env.h"
#include "metrics.h"
#include "vdtest.h"

struct world {
	struct vd_env	     *env;
	struct vd_work_queue *queue;
};

static void world_init(struct world *world, const struct vd_work_queue_options *options)
{
	struct vd_error error;

	assert_status(vdi_env_new_sim(7, NULL, NULL, &world->env), VD_OK);
	assert_status(vd_work_queue_new(world->env, options, &world->queue, &error), VD_OK);
}

static void world_fini(struct world *world)
{
	assert_null(vd_work_queue_close_wait(world->queue));
	vd_env_free(world->env);
}

static void add(struct world *world, const char *key)
{
	assert_status(vd_work_queue_add(world->queue, vd_bytes_of(key)), VD_OK);
}

static void add_after(struct world *world, const char *key, vd_dur delay)
{
	assert_status(vd_work_queue_add_after(world->queue, vd_bytes_of(key), delay), VD_OK);
}

static void take(struct world *world, const char *expected)
{
	struct vd_bytes key;

	assert_status(vd_work_queue_get(world->queue, NULL, NULL, &key), VD_OK);
	assert_true(vd_bytes_equal(key, vd_bytes_of(expected)));
}

static void done(struct world *world, const char *key)
{
	vd_work_queue_done(world->queue, vd_bytes_of(key));
}

static void assert_empty(struct world *world)
{
	struct vd_bytes key;

	assert_int_equal(vd_work_queue_len(world->queue), 0);
	assert_status(vd_work_queue_get(world->queue, NULL, NULL, &key), VD_AGAIN);
}

static void k102_a_key_added_while_processed_is_queued_again_when_done(void **state)
{
	struct world world;

	world_init(&world, NULL);
	add(&world, "foo");
	take(&world, "foo");
	add(&world, "foo");
	assert_empty(&world);
	done(&world, "foo");
	assert_int_equal(vd_work_queue_len(world.queue), 1);
	take(&world, "foo");
	done(&world, "foo");
	assert_empty(&world);
	world_fini(&world);
}

static void k103_the_length_counts_each_queued_key_once(void **state)
{
	struct world world;

	world_init(&world, NULL);
	add(&world, "foo");
	assert_int_equal(vd_work_queue_len(world.queue), 1);
	add(&world, "bar");
	assert_int_equal(vd_work_queue_len(world.queue), 2);
	add(&world, "foo");
	assert_int_equal(vd_work_queue_len(world.queue), 2);
	add(&world, "");
	assert_int_equal(vd_work_queue_len(world.queue), 3);
	take(&world, "foo");
	assert_int_equal(vd_work_queue_len(world.queue), 2);
	world_fini(&world);
}

static void k104_a_key_taken_again_is_not_queued_a_third_time(void **state)
{
	struct world world;

	world_init(&world, NULL);
	add(&world, "foo");
	take(&world, "foo");
	add(&world, "foo");
	done(&world, "foo");
	done(&world, "foo"); /* not processed now: no effect */
	take(&world, "foo");
	done(&world, "foo");
	done(&world, "unknown");
	assert_empty(&world);
	world_fini(&world);
}

static void k105_a_key_added_twice_is_taken_once(void **state)
{
	struct world world;

	world_init(&world, NULL);
	add(&world, "bar");
	add(&world, "bar");
	take(&world, "bar");
	done(&world, "bar");
	assert_empty(&world);
	world_fini(&world);
}

static void k106_a_key_added_twice_while_processed_is_taken_once_more(void **state)
{
	struct world world;

	world_init(&world, NULL);
	add(&world, "bar");
	take(&world, "bar");
	add(&world, "bar");
	add(&world, "bar");
	done(&world, "bar");
	take(&world, "bar");
	done(&world, "bar");
	assert_empty(&world);
	world_fini(&world);
}

/* ---- Shutdown ---- */

struct ending {
	unsigned  calls;
	vd_status status;
};

static void note_end(void *arg, vd_status status)
{
	struct ending *ending = arg;

	ending->calls++;
	ending->status = status;
}

static void drain(struct world *world, struct ending *ending)
{
	assert_status(vd_work_queue_shutdown_drain(world->queue, note_end, ending), VD_OK);
	vdi_sim_run_until_idle(world->env);
}

static void k107_a_drain_ends_when_all_processed_keys_are_done(void **state)
{
	struct world	world;
	struct ending	ending = { 0 };
	struct vd_bytes key;

	world_init(&world, NULL);
	add(&world, "foo");
	add(&world, "bar");
	take(&world, "foo");
	drain(&world, &ending);
	assert_true(vd_work_queue_is_shutting_down(world.queue));
	assert_int_equal(ending.calls, 0);
	assert_status(vd_work_queue_add(world.queue, vd_bytes_of("baz")), VD_CLOSED);
	done(&world, "foo");
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(ending.calls, 0); /* bar is queued */
	take(&world, "bar");
	assert_status(vd_work_queue_get(world.queue, NULL, NULL, &key), VD_CLOSED);
	done(&world, "bar");
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(ending.calls, 1);
	assert_status(ending.status, VD_OK);
	assert_status(vd_work_queue_shutdown_drain_wait(world.queue, VD_SECONDS(1)), VD_OK);
	world_fini(&world);
}

static void k108_a_shutdown_does_not_wait_for_processed_keys(void **state)
{
	struct world	world;
	struct vd_bytes key;

	world_init(&world, NULL);
	add(&world, "foo");
	add(&world, "bar");
	take(&world, "foo");
	vd_work_queue_shutdown(world.queue);
	take(&world, "bar");
	assert_status(vd_work_queue_get(world.queue, NULL, NULL, &key), VD_CLOSED);
	assert_status(vd_work_queue_get_wait(world.queue, VD_SECONDS(1), &key), VD_CLOSED);
	done(&world, "foo");
	done(&world, "bar");
	world_fini(&world);
}

static void k109_a_shutdown_ends_a_drain(void **state)
{
	struct world  world;
	struct ending ending = { 0 };

	world_init(&world, NULL);
	add(&world, "foo");
	take(&world, "foo");
	drain(&world, &ending);
	assert_status(vd_work_queue_shutdown_drain_wait(world.queue, VD_SECONDS(1)), VD_TIMEOUT);
	assert_int_equal(ending.calls, 0);
	vd_work_queue_shutdown(world.queue);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(ending.calls, 1);
	assert_status(ending.status, VD_CANCELED);
	world_fini(&world);
}

static void k110_a_drain_waits_for_a_key_added_while_processed(void **state)
{
	struct world  world;
	struct ending ending = { 0 };

	world_init(&world, NULL);
	add(&world, "foo");
	take(&world, "foo");
	add(&world, "foo");
	drain(&world, &ending);
	done(&world, "foo");
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(ending.calls, 0);
	take(&world, "foo");
	done(&world, "foo");
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(ending.calls, 1);
	assert_status(ending.status, VD_OK);
	world_fini(&world);
}

static void k111_a_processed_key_leaves_no_memory(void **state)
{
	struct world world;
	int64_t	     live;
	char	     key[16];

	world_init(&world, NULL);
	add(&world, "first");
	take(&world, "first");
	done(&world, "first");
	live = vdi_alloc_live();
	for (unsigned i = 0; i < 1000; i++) {
		(void) snprintf(key, sizeof key, "k%u", i);
		assert_status(vd_work_queue_add_rate_limited(world.queue, vd_bytes_of(key)), VD_OK);
		vdi_sim_advance(world.env, VD_SECONDS(1));
		take(&world, key);
		vd_work_queue_forget(world.queue, vd_bytes_of(key));
		done(&world, key);
	}
	assert_int_equal(vdi_alloc_live(), live);
	world_fini(&world);
}

static void k112_a_shutdown_drops_delayed_keys_and_refuses_new_ones(void **state)
{
	struct world	world;
	struct vd_bytes key;

	world_init(&world, NULL);
	add_after(&world, "foo", VD_MS(50));
	vd_work_queue_shutdown(world.queue);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_int_equal(vd_work_queue_len(world.queue), 0);
	assert_status(vd_work_queue_get(world.queue, NULL, NULL, &key), VD_CLOSED);
	assert_status(vd_work_queue_add(world.queue, vd_bytes_of("a")), VD_CLOSED);
	assert_status(vd_work_queue_add_after(world.queue, vd_bytes_of("a"), VD_MS(1)), VD_CLOSED);
	assert_status(vd_work_queue_add_rate_limited(world.queue, vd_bytes_of("a")), VD_CLOSED);
	world_fini(&world);
}

/* ---- Delays ---- */

static void k120_a_delayed_key_is_queued_after_its_delay(void **state)
{
	struct world world;

	world_init(&world, NULL);
	add_after(&world, "foo", VD_MS(50));
	assert_empty(&world);
	vdi_sim_advance(world.env, VD_MS(49));
	assert_empty(&world);
	vdi_sim_advance(world.env, VD_MS(1));
	take(&world, "foo");
	done(&world, "foo");
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_empty(&world);
	add_after(&world, "now", VD_MS(0));
	take(&world, "now");
	add_after(&world, "past", VD_MS(-5));
	take(&world, "past");
	world_fini(&world);
}

static void k121_the_nearer_time_of_a_delayed_key_counts(void **state)
{
	struct world world;

	world_init(&world, NULL);
	add_after(&world, "foo", VD_MS(50));
	add_after(&world, "foo", VD_MS(70)); /* farther: no effect */
	vdi_sim_advance(world.env, VD_MS(60));
	take(&world, "foo");
	done(&world, "foo");
	vdi_sim_advance(world.env, VD_MS(20));
	assert_empty(&world);
	add_after(&world, "foo", VD_MS(50));
	add_after(&world, "foo", VD_MS(30)); /* nearer: replaces */
	vdi_sim_advance(world.env, VD_MS(40));
	take(&world, "foo");
	done(&world, "foo");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_empty(&world);
	world_fini(&world);
}

static void k122_k123_delayed_keys_are_queued_in_the_order_of_their_times(void **state)
{
	struct world world;

	world_init(&world, NULL);
	add_after(&world, "foo", VD_SECONDS(1));
	add_after(&world, "bar", VD_MS(50));
	vdi_sim_advance(world.env, VD_MS(60));
	take(&world, "bar");
	done(&world, "bar");
	assert_empty(&world);
	add_after(&world, "third", VD_MS(300));
	add_after(&world, "second", VD_MS(200));
	add_after(&world, "first", VD_MS(100));
	vdi_sim_advance(world.env, VD_SECONDS(2));
	assert_int_equal(vd_work_queue_len(world.queue), 4);
	take(&world, "first");
	take(&world, "second");
	take(&world, "third");
	take(&world, "foo");
	world_fini(&world);
}

static void k135_failures_grow_the_delay_until_the_key_is_forgotten(void **state)
{
	struct vd_work_queue_options options = VD_WORK_QUEUE_OPTIONS_INIT;
	struct world		     world;

	options.limits.qps = 0;
	options.limits.failure_base = VD_MS(1);
	options.limits.failure_max = VD_SECONDS(1);
	world_init(&world, &options);
	assert_status(vd_work_queue_add_rate_limited(world.queue, vd_bytes_of("one")), VD_OK);
	assert_status(vd_work_queue_add_rate_limited(world.queue, vd_bytes_of("one")), VD_OK);
	assert_int_equal(vd_work_queue_num_requeues(world.queue, vd_bytes_of("one")), 2);
	assert_int_equal(vd_work_queue_num_requeues(world.queue, vd_bytes_of("two")), 0);
	vdi_sim_advance(world.env, VD_MS(1)); /* the nearer of 1 and 2 ms */
	take(&world, "one");
	assert_status(vd_work_queue_add_rate_limited(world.queue, vd_bytes_of("one")), VD_OK);
	done(&world, "one");
	vdi_sim_advance(world.env, VD_US(3999));
	assert_empty(&world);
	vdi_sim_advance(world.env, VD_US(1));
	take(&world, "one");
	vd_work_queue_forget(world.queue, vd_bytes_of("one"));
	vd_work_queue_forget(world.queue, vd_bytes_of("none"));
	assert_int_equal(vd_work_queue_num_requeues(world.queue, vd_bytes_of("one")), 0);
	assert_status(vd_work_queue_add_rate_limited(world.queue, vd_bytes_of("one")), VD_OK);
	done(&world, "one");
	vdi_sim_advance(world.env, VD_MS(1));
	take(&world, "one");
	world_fini(&world);
}

/* ---- Callbacks, waits ---- */

static void count_call(void *arg)
{
	++*(unsigned *) arg;
}

/* Several calls of get with the same ready and arg, while nothing is queued, lead to one call of ready.
 * Another arg leads to a call of its own. */
static void a_ready_callback_waits_once(void **state)
{
	struct world	world;
	unsigned	first = 0, second = 0;
	struct vd_bytes key;

	world_init(&world, NULL);
	for (int i = 0; i < 3; i++)
		assert_status(vd_work_queue_get(world.queue, count_call, &first, &key), VD_AGAIN);
	assert_status(vd_work_queue_get(world.queue, count_call, &second, &key), VD_AGAIN);
	add(&world, "foo");
	add(&world, "bar");
	add(&world, "baz");
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(first, 1);
	assert_int_equal(second, 1);
	world_fini(&world);
}

static void a_callback_is_called_once_when_a_key_is_queued(void **state)
{
	struct world	world;
	struct vd_bytes key;
	unsigned	calls = 0, others = 0;

	world_init(&world, NULL);
	assert_status(vd_work_queue_get(world.queue, count_call, &calls, &key), VD_AGAIN);
	assert_status(vd_work_queue_get(world.queue, count_call, &calls, &key), VD_AGAIN);
	assert_status(vd_work_queue_get(world.queue, count_call, &others, &key), VD_AGAIN);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(calls, 0);
	add(&world, "a");
	assert_int_equal(calls, 0); /* not inside the call */
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(calls, 1);
	assert_int_equal(others, 0); /* one key wakes one consumer */
	vd_work_queue_shutdown(world.queue);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(others, 1);
	world_fini(&world);
}

static void a_thread_waits_for_a_delayed_key(void **state)
{
	struct world	world;
	struct vd_bytes key;

	world_init(&world, NULL);
	add_after(&world, "late", VD_SECONDS(3));
	assert_status(vd_work_queue_get_wait(world.queue, VD_SECONDS(2), &key), VD_TIMEOUT);
	assert_status(vd_work_queue_get_wait(world.queue, VD_SECONDS(2), &key), VD_OK);
	assert_true(vd_bytes_equal(key, vd_bytes_of("late")));
	world_fini(&world);
}

static void too_many_too_big_and_wrong(void **state)
{
	struct vd_work_queue_options options = VD_WORK_QUEUE_OPTIONS_INIT;
	struct vd_work_queue	    *queue = NULL;
	struct world		     world;
	struct vd_error		     error;
	struct vd_bytes		     key;
	static char		     big[VD_WORK_KEY_SIZE_MAX + 1];
	unsigned		     calls[1025] = { 0 };

	options.items_max = 2;
	world_init(&world, &options);
	add(&world, "a");
	add_after(&world, "b", VD_SECONDS(1));
	assert_status(vd_work_queue_add(world.queue, vd_bytes_of("c")), VD_FULL);
	add(&world, "a");
	take(&world, "a");
	done(&world, "a");
	add(&world, "c");
	take(&world, "c");
	done(&world, "c");
	assert_status(vd_work_queue_add(world.queue, (struct vd_bytes) { big, sizeof big }), VD_TOO_BIG);
	assert_status(vd_work_queue_add(world.queue, (struct vd_bytes) { NULL, 1 }), VD_INVALID_ARGUMENT);
	for (unsigned i = 0; i < 1024; i++)
		assert_status(vd_work_queue_get(world.queue, count_call, &calls[i], &key), VD_AGAIN);
	assert_status(vd_work_queue_get(world.queue, count_call, &calls[1024], &key), VD_FULL);
	options.items_max = 0;
	assert_status(vd_work_queue_new(world.env, &options, &queue, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "items_max is 0, must be 1 to 1073741824");
	options.items_max = 1;
	options.size = 3;
	assert_status(vd_work_queue_new(world.env, &options, &queue, &error), VD_INVALID_ARGUMENT);
	assert_null(queue);
	world_fini(&world);
}

/* ---- Metrics ---- */

static int64_t value_of(struct world *world, enum vdi_metric_id id)
{
	const char	  *values[] = { "test" };
	struct vdi_metric *metric;
	int64_t		   value;

	assert_status(vdi_metric_get(vdi_env_metrics(world->env), id, values, &metric), VD_OK);
	value = vdi_metric_value(metric);
	vdi_metric_release(metric);
	return value;
}

static void assert_rendered(struct world *world, const char *line)
{
	struct vdi_buffer buffer;

	vdi_buffer_init(&buffer, 1 << 20);
	assert_status(vdi_metrics_render(vdi_env_metrics(world->env), &buffer), VD_OK);
	vdi_buffer_append_char(&buffer, 0);
	if (strstr(buffer.data, line) == NULL)
		fail_msg("%s is not in\n%s", line, buffer.data);
	vdi_buffer_fini(&buffer);
}

static void k140_metrics_follow_the_life_of_a_key(void **state)
{
	struct vd_work_queue_options options = VD_WORK_QUEUE_OPTIONS_INIT;
	struct world		     world;

	options.name = "test";
	world_init(&world, &options);
	add(&world, "foo");
	assert_int_equal(value_of(&world, VDI_METRIC_WORKQUEUE_ADDS_TOTAL), 1);
	assert_int_equal(value_of(&world, VDI_METRIC_WORKQUEUE_DEPTH), 1);
	vdi_sim_advance(world.env, VD_SECONDS(50));
	take(&world, "foo");
	assert_rendered(&world, "workqueue_queue_duration_seconds_sum{name=\"test\"} 50\n");
	assert_int_equal(value_of(&world, VDI_METRIC_WORKQUEUE_DEPTH), 0);
	add(&world, "foo"); /* counts at once, although it is queued later */
	add(&world, "foo");
	assert_int_equal(value_of(&world, VDI_METRIC_WORKQUEUE_ADDS_TOTAL), 2);
	assert_int_equal(value_of(&world, VDI_METRIC_WORKQUEUE_DEPTH), 1);
	vdi_sim_advance(world.env, VD_SECONDS(25));
	add(&world, "bar");
	done(&world, "foo");
	assert_rendered(&world, "workqueue_work_duration_seconds_sum{name=\"test\"} 25\n");
	take(&world, "bar");
	vdi_sim_advance(world.env, VD_SECONDS(2));
	take(&world, "foo");
	vdi_sim_advance(world.env, VD_SECONDS(3));
	assert_rendered(&world, "workqueue_unfinished_work_seconds{name=\"test\"} 8\n");
	assert_rendered(&world, "workqueue_longest_running_processor_seconds{name=\"test\"} 5\n");
	done(&world, "bar");
	assert_rendered(&world, "workqueue_longest_running_processor_seconds{name=\"test\"} 3\n");
	add_after(&world, "baz", VD_SECONDS(1));
	assert_int_equal(value_of(&world, VDI_METRIC_WORKQUEUE_RETRIES_TOTAL), 1);
	world_fini(&world);
}

static void k141_a_closed_queue_leaves_no_gauges(void **state)
{
	struct vd_work_queue_options options = VD_WORK_QUEUE_OPTIONS_INIT;
	struct world		     world, other;

	options.name = "test";
	world_init(&world, &options);
	other.env = world.env;
	assert_status(vd_work_queue_new(world.env, &options, &other.queue, NULL), VD_OK);
	add(&world, "a");
	add(&other, "a");
	assert_int_equal(value_of(&world, VDI_METRIC_WORKQUEUE_DEPTH), 2);
	vd_work_queue_close_wait(other.queue);
	assert_int_equal(value_of(&world, VDI_METRIC_WORKQUEUE_DEPTH), 1);
	world_fini(&world);
}

static void torture_without_memory_nothing_is_lost(void **state)
{
	struct vd_work_queue_options options = VD_WORK_QUEUE_OPTIONS_INIT;
	bool			     has_failed = true;

	options.name = "test";
	for (uint64_t nth = 1; has_failed; nth++) {
		struct ending	      ending = { 0 };
		struct vd_work_queue *queue = NULL;
		struct world	      world;
		struct vd_bytes	      key;
		unsigned	      calls = 0;
		vd_status	      status;

		assert_status(vdi_env_new_sim(7, NULL, NULL, &world.env), VD_OK);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vd_work_queue_new(world.env, &options, &queue, NULL);
		if (status == VD_OK) {
			world.queue = queue;
			status = vd_work_queue_add(queue, vd_bytes_of("a"));
			assert_int_equal(vd_work_queue_len(queue), status == VD_OK);
			if (status == VD_OK) {
				take(&world, "a");
				status = vd_work_queue_get(queue, count_call, &calls, &key);
				assert_true(status == VD_AGAIN || status == VD_NOMEM);
				if (status == VD_AGAIN)
					status = vd_work_queue_shutdown_drain(queue, note_end, &ending);
				assert_int_equal(vd_work_queue_is_shutting_down(queue), status == VD_OK);
			}
		}
		has_failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, has_failed ? VD_NOMEM : VD_OK);
		vd_work_queue_close_wait(queue);
		vd_env_free(world.env);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(k102_a_key_added_while_processed_is_queued_again_when_done),
		cmocka_unit_test(k103_the_length_counts_each_queued_key_once),
		cmocka_unit_test(a_ready_callback_waits_once),
		cmocka_unit_test(k104_a_key_taken_again_is_not_queued_a_third_time),
		cmocka_unit_test(k105_a_key_added_twice_is_taken_once),
		cmocka_unit_test(k106_a_key_added_twice_while_processed_is_taken_once_more),
		cmocka_unit_test(k107_a_drain_ends_when_all_processed_keys_are_done),
		cmocka_unit_test(k108_a_shutdown_does_not_wait_for_processed_keys),
		cmocka_unit_test(k109_a_shutdown_ends_a_drain),
		cmocka_unit_test(k110_a_drain_waits_for_a_key_added_while_processed),
		cmocka_unit_test(k111_a_processed_key_leaves_no_memory),
		cmocka_unit_test(k112_a_shutdown_drops_delayed_keys_and_refuses_new_ones),
		cmocka_unit_test(k120_a_delayed_key_is_queued_after_its_delay),
		cmocka_unit_test(k121_the_nearer_time_of_a_delayed_key_counts),
		cmocka_unit_test(k122_k123_delayed_keys_are_queued_in_the_order_of_their_times),
		cmocka_unit_test(k135_failures_grow_the_delay_until_the_key_is_forgotten),
		cmocka_unit_test(a_callback_is_called_once_when_a_key_is_queued),
		cmocka_unit_test(a_thread_waits_for_a_delayed_key),
		cmocka_unit_test(too_many_too_big_and_wrong),
		cmocka_unit_test(k140_metrics_follow_the_life_of_a_key),
		cmocka_unit_test(k141_a_closed_queue_leaves_no_gauges),
		cmocka_unit_test(torture_without_memory_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
