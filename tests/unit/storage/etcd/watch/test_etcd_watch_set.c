/* Streams keyed by metadata, their end with the last watch, closing at any moment in any order. */
#include "vdtest.h"

#include "actor_sim.h"
#include "env.h"
#include "etcd_watch_peer.h"
#include "etcd_watch_stream.h"
#include "rand.h"

static void assert_key_equal(bool expected, bool leader_a, const struct vd_etcd_pair *a, size_t a_count,
			     bool leader_b, const struct vd_etcd_pair *b, size_t b_count)
{
	struct vdi_buffer key_a, key_b;

	vdi_buffer_init(&key_a, 1000);
	vdi_buffer_init(&key_b, 1000);
	assert_status(vdi_etcd_watch_stream_key(leader_a, a, a_count, &key_a), VD_OK);
	assert_status(vdi_etcd_watch_stream_key(leader_b, b, b_count, &key_b), VD_OK);
	assert_int_equal(vd_bytes_equal(vdi_buffer_bytes(&key_a), vdi_buffer_bytes(&key_b)), expected);
	vdi_buffer_fini(&key_a);
	vdi_buffer_fini(&key_b);
}

static void e250_the_key_is_the_metadata_sorted(void **state)
{
	const struct vd_etcd_pair ab[] = { { "a", vd_bytes_of("1") }, { "b", vd_bytes_of("2") } };
	const struct vd_etcd_pair ba[] = { { "b", vd_bytes_of("2") }, { "a", vd_bytes_of("1") } };
	const struct vd_etcd_pair aab[] = { { "a", vd_bytes_of("1") },
					    { "b", vd_bytes_of("2") },
					    { "a", vd_bytes_of("3") } };
	const struct vd_etcd_pair aba[] = { { "b", vd_bytes_of("2") },
					    { "a", vd_bytes_of("1") },
					    { "a", vd_bytes_of("3") } };
	const struct vd_etcd_pair a3a1[] = { { "a", vd_bytes_of("3") },
					     { "a", vd_bytes_of("1") },
					     { "b", vd_bytes_of("2") } };
	const struct vd_etcd_pair joined[] = { { "a", vd_bytes_of("1b2") } };
	const struct vd_etcd_pair leader[] = { { "hasleader", vd_bytes_of("true") } };
	const struct vd_etcd_pair no_leader[] = { { "hasleader", vd_bytes_of("no") } };

	assert_key_equal(true, false, NULL, 0, false, NULL, 0);
	assert_key_equal(false, false, NULL, 0, true, NULL, 0);
	assert_key_equal(true, false, ab, 2, false, ba, 2);
	assert_key_equal(false, false, ab, 2, true, ab, 2);
	assert_key_equal(false, false, ab, 2, false, ab, 1);
	assert_key_equal(false, false, ab, 2, false, joined, 1);
	assert_key_equal(true, false, aab, 3, false, aba, 3);
	assert_key_equal(false, false, aab, 3, false, a3a1, 3);	   /* the values of one key have an order */
	assert_key_equal(false, false, aab, 3, false, aab + 1, 2); /* none of them is left out */
	assert_key_equal(false, false, aab, 3, false, aab, 2);
	assert_key_equal(true, false, leader, 1, true, NULL, 0);
	assert_key_equal(false, false, no_leader, 1, true, NULL, 0);
}

static void e250_e251_one_stream_for_each_metadata(void **state)
{
	struct watch_world	     world = watch_world_new(1, 0);
	const struct vd_etcd_pair    pair = { "tenant", vd_bytes_of("one") };
	struct watch_reader	     plain, again, leader, tenant;
	struct rpc_script_call	    *stream;
	struct vd_etcd_watch_request request = { .key = vd_bytes_of("k") };

	watch_reader_open_request(&world, &plain, request);
	watch_reader_open_request(&world, &again, request);
	stream = watch_world_stream(&world);
	assert_null(rpc_script_call_metadata(stream, "hasleader").data);
	assert_non_null(rpc_script_call_metadata(stream, "client-api-version").data);
	assert_int_equal(rpc_script_call_timeout(stream).ns, 0); /* lives longer than any call */
	watch_created(stream, 0, 5);
	watch_expect(stream, WATCH_CREATE);
	watch_expect(stream, WATCH_CREATE);
	request.require_leader = true;
	watch_reader_open_request(&world, &leader, request);
	stream = watch_world_stream(&world);
	assert_memory_equal(rpc_script_call_metadata(stream, "hasleader").data, "true", 4);
	watch_expect(stream, WATCH_CREATE);
	request.require_leader = false;
	request.metadata = &pair;
	request.metadata_count = 1;
	watch_reader_open_request(&world, &tenant, request);
	stream = watch_world_stream(&world);
	assert_memory_equal(rpc_script_call_metadata(stream, "tenant").data, "one", 3);
	watch_expect(stream, WATCH_CREATE);
	assert_int_equal(rpc_script_live_count(world.script), 3);
	watch_reader_close(&plain);
	watch_reader_close(&again);
	watch_reader_close(&leader);
	watch_reader_close(&tenant);
	watch_world_run(&world);
	assert_int_equal(rpc_script_live_count(world.script), 0); /* E-252 */
	watch_world_free(&world);
}

static void e252_a_watch_that_comes_while_the_stream_goes_gets_a_new_one(void **state)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct watch_world	world = watch_world_new(seed, 0);
		struct watch_reader	old, new;
		struct rpc_script_call *stream;

		rpc_script_set_delay(world.script, VD_MS(20));
		watch_reader_open(&world, &old, "old", 0);
		stream = watch_world_stream(&world);
		watch_expect(stream, WATCH_CREATE);
		watch_created(stream, 0, 5);
		vdi_sim_advance(world.env, VD_MS(50));
		watch_reader_close(&old);
		for (uint64_t i = 0; i < seed % 5; i++)
			vdi_sim_step(world.env);
		vdi_sim_advance(world.env, VD_MS((int64_t) (seed / 5 % 4) * 10));
		watch_reader_open(&world, &new, "new", 0);
		vdi_sim_advance(world.env, VD_MS(100));
		if (!rpc_script_call_is_over(stream)) {
			assert_string_equal(watch_expect(stream, WATCH_CREATE).key, "new");
		} else {
			stream = watch_world_stream(&world);
			assert_string_equal(watch_expect(stream, WATCH_CREATE).key, "new");
		}
		watch_created(stream, 7, 5);
		watch_put(stream, 7, "new", 6);
		vdi_sim_advance(world.env, VD_MS(100));
		watch_reader_expect(&world, &new, "6");
		watch_reader_close(&new);
		watch_world_free(&world);
	}
}

static void e252_the_last_watch_takes_its_stream_with_it(void **state)
{
	struct watch_world	world = watch_world_new(3, 0);
	struct watch_reader	a, b;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &a, "a", 0);
	watch_reader_open(&world, &b, "b", 0);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 5);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 1, 5);
	watch_world_run(&world);
	watch_reader_close(&a);
	assert_int_equal(watch_expect(stream, WATCH_CANCEL).watch_id, 0);
	watch_canceled(stream, 0, 5, NULL);
	watch_world_run(&world);
	assert_false(rpc_script_call_is_canceled(stream));
	watch_reader_close(&b);
	watch_expect_nothing(&world, stream); /* E-270: no cancel, the stream itself goes */
	assert_true(rpc_script_call_is_canceled(stream));
	watch_world_free(&world);
}

static void e252_a_watch_ended_by_the_server_takes_its_stream_with_it(void **state)
{
	struct watch_world	world = watch_world_new(4, 0);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &reader, "a", 0);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 5);
	watch_canceled(stream, 0, 5, "enough");
	watch_expect_nothing(&world, stream);
	assert_true(rpc_script_call_is_canceled(stream));
	watch_reader_expect(&world, &reader, "!canceled");
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void count(void *arg)
{
	++*(unsigned *) arg;
}

/* Watches in every state, closed by their users and by the client in every order, at every step. */
static void e273_close_at_any_moment(void **state)
{
	for (uint64_t seed = 0; seed < 400; seed++) {
		int64_t			live = vdi_alloc_live();
		struct watch_world	world = watch_world_new(seed, 3000);
		struct watch_reader	readers[8] = { 0 };
		struct vdi_rand		rand;
		unsigned		closed = 0;
		struct rpc_script_call *stream;
		struct vd_bytes		message;
		int64_t			id = 0;

		vdi_rand_init(&rand, seed);
		rpc_script_set_delay(world.script, VD_MS((int64_t) vdi_rand_below(&rand, 3)));
		if (vdi_rand_once_in(&rand, 4))
			rpc_script_set_up(world.script, 0, false);
		for (int i = 0; i < 8; i++)
			watch_reader_open_request(
				&world, &readers[i],
				(struct vd_etcd_watch_request) { .key = vd_bytes_of("k"),
								 .require_leader = i % 3 == 0 });
		for (uint64_t steps = vdi_rand_below(&rand, 60); steps; steps--) {
			if (!vdi_sim_step(world.env))
				vdi_sim_advance(world.env, VD_MS(1));
			for (size_t i = 0; i < rpc_script_call_count(world.script); i++) {
				stream = rpc_script_call_at(world.script, i);
				while (rpc_script_take_message(stream, &message)) {
					if (watch_request_read(message).kind != WATCH_CREATE)
						continue;
					watch_created(stream, id, 5);
					for (vd_rev revision = 6; revision < 40; revision++)
						watch_put(stream, id, "k", revision);
					id++;
				}
			}
			if (vdi_rand_once_in(&rand, 20))
				rpc_script_cut(world.script, 0);
		}
		for (int i = 0; i < 4; i++)
			watch_reader_close(&readers[i]);
		for (uint64_t steps = vdi_rand_below(&rand, 5); steps; steps--)
			vdi_sim_step(world.env);
		vd_etcd_close(world.client, count, &closed);
		for (uint64_t steps = vdi_rand_below(&rand, 5); steps; steps--)
			vdi_sim_step(world.env);
		for (int i = 4; i < 6; i++)
			watch_reader_close(&readers[i]);
		vdi_sim_advance(world.env, VD_SECONDS(10));
		assert_int_equal(closed, 1);
		world.client = NULL;
		for (int i = 6; i < 8; i++) {
			const char *text = watch_reader_text(&world, &readers[i]);

			assert_string_equal(strchr(text, '!'), "!closed"); /* behind what was buffered */
			watch_reader_close(&readers[i]);
		}
		watch_world_free(&world);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

static void e273_cancel_then_close_gives_no_error(void **state)
{
	struct watch_world  world = watch_world_new(6, 0);
	struct watch_reader reader;
	unsigned	    closed = 0;

	watch_reader_open(&world, &reader, "k", 0);
	watch_created(watch_world_stream(&world), 0, 5);
	watch_world_run(&world);
	watch_reader_close(&reader);
	vd_etcd_close(world.client, count, &closed);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_int_equal(closed, 1);
	assert_int_equal(reader.ready, 0);
	world.client = NULL;
	watch_world_free(&world);
}

static int64_t metric_of(const struct watch_world *world, enum vdi_metric_id id)
{
	struct vdi_metric *metric;
	int64_t		   value;

	assert_status(vdi_metric_get(vdi_env_metrics(world->env), id, NULL, &metric), VD_OK);
	value = (int64_t) atomic_load(&metric->value);
	vdi_metric_release(metric);
	return value;
}

static void metrics_move(void **state)
{
	struct watch_world	world = watch_world_new(7, 1000);
	struct watch_event	events[] = { { .key = "k", .mod_rev = 6 },
					     { .key = "k", .mod_rev = 7, .value_size = 2000 } };
	struct watch_reader	a, b;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &a, "k", 0);
	watch_reader_open(&world, &b, "b", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_world_run(&world);
	assert_int_equal(metric_of(&world, VDI_METRIC_ETCD_WATCHES), 2);
	assert_int_equal(metric_of(&world, VDI_METRIC_ETCD_WATCH_CONNECTIONS_TOTAL), 1);
	watch_answer(stream,
		     &(struct watch_answer) { .id = 0, .revision = 7, .events = events, .event_count = 2 });
	watch_world_run(&world);
	assert_int_equal(metric_of(&world, VDI_METRIC_ETCD_WATCH_EVENTS_TOTAL), 2);
	assert_int_equal(metric_of(&world, VDI_METRIC_ETCD_WATCH_PARKED_TOTAL), 1);
	watch_reader_close(&b); /* on its way */
	watch_world_run(&world);
	assert_int_equal(metric_of(&world, VDI_METRIC_ETCD_WATCHES), 1);
	rpc_script_cut(world.script, 0);
	watch_world_stream(&world);
	assert_int_equal(metric_of(&world, VDI_METRIC_ETCD_WATCH_CONNECTIONS_TOTAL), 2);
	watch_reader_close(&a);
	watch_world_run(&world);
	assert_int_equal(metric_of(&world, VDI_METRIC_ETCD_WATCHES), 0);
	watch_world_free(&world);
}

/* ---- Wakes ---- */

static const struct vd_executor_ops *real_ops; /* of the simulator's actors */
static const struct vd_executor	    *real_executor;
static const struct vd_actor	    *watched_actor;
static char			     held_at_wake[128];

static void noting_wake(struct vd_actor *actor)
{
	if (actor == watched_actor)
		vdi_lock_describe_held(held_at_wake, sizeof held_at_wake);
	real_ops->actor_wake(actor);
}

static vd_status noting_new(void *executor, const struct vd_actor_options *options,
			    struct vd_actor **ret_actor)
{
	static struct vd_executor_ops noting;
	vd_status		      status = vd_executor_actor_new(real_executor, options, ret_actor);

	if (status != VD_OK)
		return status;
	real_ops = (*ret_actor)->ops;
	noting = *real_ops;
	noting.actor_wake = noting_wake;
	(*ret_actor)->ops = &noting;
	if (strcmp(options->name, "etcd_watch") == 0)
		watched_actor = *ret_actor;
	return VD_OK;
}

/* The actor may be running already, see the close and be gone, and the set with it, before a close that has
 * let go of the lock comes to wake it. */
static void e273_close_wakes_the_set_while_it_cannot_go(void **state)
{
	static const struct vd_executor_ops ops = { .actor_new = noting_new };
	struct watch_world		    world = watch_world_new(5, 0);
	struct vd_executor		    executor = world.env->executor;
	struct watch_reader		    reader;

	real_executor = &executor;
	world.env->executor = (struct vd_executor) { &ops, NULL };
	watch_reader_open(&world, &reader, "k", 0);
	watch_created(watch_world_stream(&world), 0, 5);
	watch_reader_close(&reader);
	watch_world_run(&world);
	held_at_wake[0] = 0;
	vd_etcd_close(world.client, NULL, NULL);
	world.client = NULL;
	watch_world_run(&world);
	assert_string_equal(held_at_wake, "etcd_watch_set");
	world.env->executor = executor;
	watch_world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e250_the_key_is_the_metadata_sorted),
		cmocka_unit_test(e250_e251_one_stream_for_each_metadata),
		cmocka_unit_test(e252_a_watch_that_comes_while_the_stream_goes_gets_a_new_one),
		cmocka_unit_test(e252_the_last_watch_takes_its_stream_with_it),
		cmocka_unit_test(e252_a_watch_ended_by_the_server_takes_its_stream_with_it),
		cmocka_unit_test(e273_close_at_any_moment),
		cmocka_unit_test(e273_cancel_then_close_gives_no_error),
		cmocka_unit_test(e273_close_wakes_the_set_while_it_cannot_go),
		cmocka_unit_test(metrics_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
