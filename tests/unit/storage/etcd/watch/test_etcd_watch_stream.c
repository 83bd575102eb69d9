/* The life of a stream: which ends are for good, back-off, the order of creates and how many are on their
 * way, cancels, back-pressure. */
#include "vdtest.h"

#include "actor_sim.h"
#include "etcd_watch_peer.h"
#include "etcd_watch_stream.h"

/* ---- Ends ---- */

static void e254_e255_e256_which_ends_are_for_good(void **state)
{
	static const struct {
		int	    code;
		const char *message;
		bool	    halts;
		vd_status   status;
	} table[] = {
		{ VDI_RPC_OK, "", true, VD_UNAVAILABLE }, /* EOF */
		{ VDI_RPC_CANCELED, "etcdserver: watch canceled", true, VD_CANCELED },
		{ VDI_RPC_UNKNOWN, "?", true, VD_INTERNAL },
		{ VDI_RPC_INVALID_ARGUMENT, "?", true, VD_INVALID_ARGUMENT },
		{ VDI_RPC_PERMISSION_DENIED, "etcdserver: permission denied", true, VD_FORBIDDEN },
		{ VDI_RPC_RESOURCE_EXHAUSTED, "grpc: received message larger than max (2 vs. 1)", true,
		  VD_TOO_BIG },
		{ VDI_RPC_OUT_OF_RANGE, "?", true, VD_INVALID_ARGUMENT },
		{ VDI_RPC_UNIMPLEMENTED, "?", true, VD_UNSUPPORTED },
		{ VDI_RPC_DATA_LOSS, "etcdserver: corrupt cluster", true, VD_CORRUPT },
		{ VDI_RPC_UNAUTHENTICATED, "etcdserver: invalid auth token", true, VD_FORBIDDEN },
		{ VDI_RPC_UNAVAILABLE, "etcdserver: no leader", true, VD_UNAVAILABLE },
		{ VDI_RPC_UNAVAILABLE, "etcdserver: leader changed", false, VD_OK },
		{ VDI_RPC_UNAVAILABLE, "Socket closed", false, VD_OK },
		{ VDI_RPC_INTERNAL, "stream terminated", false, VD_OK },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(table); i++) {
		struct watch_world	world = watch_world_new(i, 0);
		struct watch_reader	reader, queued;
		struct rpc_script_call *stream;

		watch_reader_open(&world, &reader, "k", 0);
		watch_reader_open(&world, &queued, "q", 0);
		stream = watch_world_stream(&world);
		watch_created(stream, 0, 5);
		watch_put(stream, 0, "k", 6);
		rpc_script_end(stream, table[i].code, table[i].message);
		if (table[i].halts) {
			assert_memory_equal(watch_reader_text(&world, &reader), "6 !", 3);
			assert_status(watch_reader_end(&world, &reader).error.code, table[i].status);
			assert_status(watch_reader_end(&world, &queued).error.code, table[i].status);
			watch_world_no_stream(&world);
		} else {
			watch_reader_expect(&world, &reader, "6");
			stream = watch_world_stream(&world);
			assert_string_equal(watch_expect(stream, WATCH_CREATE).key,
					    "q"); /* E-272: it was waiting before */
			watch_created(stream, 0, 6);
			assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 7);
		}
		watch_reader_close(&reader);
		watch_reader_close(&queued);
		watch_world_free(&world);
	}
}

static void a_watch_opened_while_its_stream_halts_lives_on(void **state)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct watch_world	world = watch_world_new(seed, 0);
		struct watch_reader	old, new;
		struct rpc_script_call *stream;

		watch_reader_open(&world, &old, "old", 0);
		stream = watch_world_stream(&world);
		watch_created(stream, 0, 5);
		watch_world_run(&world);
		rpc_script_end(stream, VDI_RPC_OUT_OF_RANGE, "enough");
		for (uint64_t i = 0; i < seed % 4; i++)
			vdi_sim_step(world.env);
		watch_reader_open(&world, &new, "new", 0);
		watch_world_run(&world);
		assert_status(watch_reader_end(&world, &old).error.code, VD_INVALID_ARGUMENT);
		/* Either it was one of those that ended, or it is created on another connection. */
		if (strcmp(watch_reader_text(&world, &new), "") == 0)
			assert_string_equal(watch_expect(watch_world_stream(&world), WATCH_CREATE).key,
					    "new");
		else
			assert_status(watch_reader_end(&world, &new).error.code, VD_INVALID_ARGUMENT);
		watch_reader_close(&old);
		watch_reader_close(&new);
		watch_world_free(&world);
	}
}

/* How long the client waits before it opens again, in us. */
static int64_t wait_for_stream_us(struct watch_world *world, struct rpc_script_call **ret_stream)
{
	vd_mono before = vd_env_now(world->env);

	*ret_stream = watch_world_stream(world);
	return vd_mono_since(vd_env_now(world->env), before).ns / 1000;
}

/* rules: E-1012 */
static void e257_back_off_for_unavailable_and_internal(void **state)
{
	for (int code = VDI_RPC_INTERNAL; code <= VDI_RPC_UNAVAILABLE; code++) {
		struct watch_world	world = watch_world_new(1, 0);
		struct watch_reader	reader;
		struct rpc_script_call *stream;
		double			expected_us = 1000;

		watch_reader_open(&world, &reader, "k", 0);
		stream = watch_world_stream(&world);
		for (int i = 0; i < 40; i++) {
			int64_t wait_us;

			watch_created(stream, 0, 5); /* success does not reset it */
			watch_world_run(&world);
			rpc_script_end(stream, code, "away");
			wait_us = wait_for_stream_us(&world, &stream);
			expected_us = VDI_MIN(expected_us * 1.25, 100000);
			assert_true(wait_us >= (int64_t) expected_us - 2 &&
				    wait_us <= (int64_t) expected_us + 2);
		}
		/* After a healthy time it does (E-1012). */
		vdi_sim_advance(world.env, VD_SECONDS(6));
		rpc_script_end(stream, code, "away");
		assert_true(wait_for_stream_us(&world, &stream) < 1300);
		watch_reader_close(&reader);
		watch_world_free(&world);
	}
}

static void note_closed(void *arg)
{
	*(bool *) arg = true;
}

/* A stream that backs off waits with a timer: a watch is canceled and the client closed at the same
 * instant. */
static void e1012_nothing_waits_for_a_stream_that_backs_off(void **state)
{
	struct watch_world	world = watch_world_new(4, 0);
	struct watch_reader	away, kept;
	struct rpc_script_call *stream;
	vd_mono			now;
	bool			is_closed = false;

	watch_reader_open(&world, &away, "k", 0);
	watch_reader_open(&world, &kept, "l", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	for (int i = 0; i < 40; i++) { /* until it waits as long as it ever does */
		watch_world_run(&world);
		rpc_script_end(stream, VDI_RPC_UNAVAILABLE, "away");
		if (i < 39) {
			stream = watch_world_stream(&world);
			watch_created(stream, 0, 5);
		}
	}
	now = vd_env_now(world.env);
	watch_world_run(&world);
	watch_reader_close(&away);
	vd_etcd_close(world.client, note_closed, &is_closed);
	world.client = NULL;
	watch_world_run(&world);
	assert_true(is_closed);
	assert_int_equal(vd_env_now(world.env).ns, now.ns);
	assert_status(watch_reader_end(&world, &kept).error.code, VD_CLOSED);
	watch_reader_close(&kept);
	watch_world_free(&world);
}

static void e258_a_watch_can_be_closed_while_the_server_is_away(void **state)
{
	struct watch_world	world = watch_world_new(2, 0);
	struct watch_reader	a, b;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &a, "a", 0);
	watch_reader_open(&world, &b, "b", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_world_run(&world);
	rpc_script_set_up(world.script, 0, false);
	vdi_sim_advance(world.env, VD_SECONDS(100));
	watch_reader_close(&b);
	vdi_sim_advance(world.env, VD_SECONDS(100));
	assert_int_equal(rpc_script_live_count(world.script), 1);
	watch_reader_close(&a);
	watch_world_run(&world);
	assert_int_equal(rpc_script_live_count(world.script), 0);
	rpc_script_set_up(world.script, 0, true);
	watch_world_no_stream(&world);
	watch_world_free(&world);
}

static void a_refused_open_is_tried_again(void **state)
{
	struct watch_world	world = watch_world_new(3, 0);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	rpc_script_refuse(world.script, NULL, 5, VDI_RPC_UNAVAILABLE, "connection refused");
	watch_reader_open(&world, &reader, "k", 9);
	stream = watch_world_stream(&world);
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 9);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

/* ---- Creates ---- */

#define MANY 300

static size_t count_creates(struct watch_world *world, struct rpc_script_call *stream)
{
	struct vd_bytes message;
	size_t		count = 0;

	watch_world_run(world);
	while (rpc_script_take_message(stream, &message))
		count += watch_request_read(message).kind == WATCH_CREATE;
	return count;
}

static void open_many(struct watch_world *world, struct watch_reader *readers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char key[16];

		snprintf(key, sizeof key, "k%zu", i);
		watch_reader_open(world, &readers[i], key, 1);
	}
}

static void close_many(struct watch_reader *readers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		watch_reader_close(&readers[i]);
}

/* rules: E-1011 */
static void e261_creates_go_alone_until_the_server_answered_then_in_a_window(void **state)
{
	static struct watch_reader readers[MANY];
	struct watch_world	   world = watch_world_new(4, 0);
	struct rpc_script_call	  *stream;
	size_t			   on_their_way, answered = 0;

	open_many(&world, readers, MANY);
	stream = watch_world_stream(&world);
	on_their_way = count_creates(&world, stream);
	assert_int_equal(on_their_way, 1);
	while (answered < MANY) {
		watch_created(stream, (int64_t) answered++, 5);
		on_their_way += count_creates(&world, stream) - 1;
		assert_int_equal(on_their_way, VDI_MIN(VDI_ETCD_WATCH_CREATES_MAX, MANY - answered));
	}
	/* The window serves in order: each id has the events of its own key. */
	for (size_t i = 0; i < MANY; i += 37) {
		struct vd_etcd_watch_response response;

		watch_put(stream, (int64_t) i, "x", 10 + (vd_rev) i);
		watch_world_run(&world);
		assert_status(vd_etcd_watch_next(readers[i].watch, &response, NULL), VD_OK);
		assert_int_equal(response.events[0].kv->mod_rev, 10 + i);
	}
	/* After a loss all come back, in as few round trips. */
	rpc_script_cut(world.script, 0);
	stream = watch_world_stream(&world);
	assert_int_equal(count_creates(&world, stream), 1);
	watch_created(stream, 0, 5);
	assert_int_equal(count_creates(&world, stream), VDI_ETCD_WATCH_CREATES_MAX);
	close_many(readers, MANY);
	watch_world_free(&world);
}

/* A proxy answers when it knows, not in the order of requests. */
static void e261_an_id_out_of_turn_makes_the_stream_go_one_by_one(void **state)
{
	struct watch_reader	readers[4];
	struct watch_world	world = watch_world_new(5, 0);
	struct rpc_script_call *stream;

	open_many(&world, readers, 4);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	assert_int_equal(count_creates(&world, stream), 4);
	watch_created(stream, 2, 5); /* k2's */
	watch_put(stream, 2, "k2", 6);
	stream = watch_world_stream(&world);
	for (int64_t id = 0; id < 4; id++) {
		struct watch_request request = watch_expect(stream, WATCH_CREATE);
		char		     number = request.key[1];

		watch_expect_nothing(&world, stream);
		watch_created(stream, id, 5);
		watch_put(stream, id, request.key, 10 + number - '0');
	}
	watch_reader_expect(&world, &readers[0], "10");
	watch_reader_expect(&world, &readers[1], "11");
	watch_reader_expect(&world, &readers[2], "12");
	watch_reader_expect(&world, &readers[3], "13");
	close_many(readers, 4);
	watch_world_free(&world);
}

static void e261_ids_of_any_kind_are_fine_one_by_one(void **state)
{
	static const int64_t	ids[] = { 900, 3, INT64_MAX, 77 };
	struct watch_reader	readers[4];
	struct watch_world	world = watch_world_new(6, 0);
	struct rpc_script_call *stream;

	open_many(&world, readers, 4);
	stream = watch_world_stream(&world);
	watch_created(stream, 5, 5);
	watch_world_run(&world);
	watch_created(stream, 9, 5); /* not 6 */
	stream = watch_world_stream(&world);
	for (int i = 0; i < 4; i++) {
		char key = watch_expect(stream, WATCH_CREATE).key[1];

		watch_created(stream, ids[i], 5);
		watch_put(stream, ids[i], "x", 20 + key - '0');
	}
	watch_reader_expect(&world, &readers[0], "20");
	watch_reader_expect(&world, &readers[3], "23");
	close_many(readers, 4);
	watch_world_free(&world);
}

static void e261_an_id_in_use_is_no_answer(void **state)
{
	struct watch_reader	readers[2];
	struct watch_world	world = watch_world_new(7, 0);
	struct rpc_script_call *stream;

	open_many(&world, readers, 2);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 4, 5);
	watch_expect(stream, WATCH_CREATE);
	watch_put(stream, 4, "k0", 6);
	watch_created(stream, 4, 6); /* again */
	watch_put(stream, 4, "k1", 7);
	stream = watch_world_stream(&world);
	assert_string_equal(watch_expect(stream, WATCH_CREATE).key, "k1");
	watch_created(stream, 0, 7);
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 7);
	watch_created(stream, 1, 7);
	watch_put(stream, 0, "k1", 7);
	watch_put(stream, 1, "k0", 8);
	watch_reader_expect(&world, &readers[0], "6 8");
	watch_reader_expect(&world, &readers[1], "7");
	close_many(readers, 2);
	watch_world_free(&world);
}

/* Queued, on its way, established, parked, queued again, ended: as its stream and its reader go. */
static void e260_the_states_of_a_watch(void **state)
{
	struct watch_world	world = watch_world_new(15, 1000);
	struct watch_event	event = { .key = "a", .mod_rev = 6, .value_size = 2000 };
	struct watch_reader	first, second;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &first, "a", 0);
	watch_reader_open(&world, &second, "b", 0);
	stream = watch_world_stream(&world);
	watch_world_run(&world);
	assert_string_equal(vdi_sm_state_name(&first.watch->sm), "creating");
	assert_string_equal(vdi_sm_state_name(&second.watch->sm), "waiting");
	watch_created(stream, 0, 5);
	watch_world_run(&world);
	assert_string_equal(vdi_sm_state_name(&first.watch->sm), "established");
	assert_string_equal(vdi_sm_state_name(&second.watch->sm), "creating");
	watch_answer(stream,
		     &(struct watch_answer) { .id = 0, .revision = 6, .events = &event, .event_count = 1 });
	watch_created(stream, 1, 5);
	watch_world_run(&world);
	assert_string_equal(vdi_sm_state_name(&first.watch->sm), "paused");
	rpc_script_set_up(world.script, 0, false);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_string_equal(vdi_sm_state_name(&first.watch->sm), "paused");
	assert_string_equal(vdi_sm_state_name(&second.watch->sm),
			    "creating"); /* its request waits for a connection */
	watch_reader_expect(&world, &first, "6");
	assert_string_equal(vdi_sm_state_name(&first.watch->sm), "waiting");
	vd_etcd_close(world.client, NULL, NULL);
	world.client = NULL;
	watch_reader_expect(&world, &first, "!closed");
	assert_string_equal(vdi_sm_state_name(&first.watch->sm), "ended");
	watch_reader_close(&first);
	watch_reader_close(&second);
	watch_world_free(&world);
}

static void e263_an_abandoned_create_keeps_its_place_until_the_answer(void **state)
{
	struct watch_reader	readers[3];
	struct watch_world	world = watch_world_new(8, 0);
	struct rpc_script_call *stream;

	open_many(&world, readers, 3);
	stream = watch_world_stream(&world);
	assert_string_equal(watch_expect(stream, WATCH_CREATE).key, "k0");
	watch_reader_close(&readers[0]);
	watch_expect_nothing(&world, stream); /* nobody jumps the queue */
	watch_created(stream, 0, 5);
	assert_int_equal(watch_expect(stream, WATCH_CANCEL).watch_id, 0);
	assert_string_equal(watch_expect(stream, WATCH_CREATE).key, "k1");
	assert_string_equal(watch_expect(stream, WATCH_CREATE).key, "k2");
	watch_reader_close(&readers[1]);
	watch_put(stream, 0, "k0", 6); /* was on its way */
	watch_canceled(stream, 0, 6, NULL);
	watch_created(stream, 1, 6);
	watch_created(stream, 2, 6);
	watch_put(stream, 2, "k2", 7);
	assert_int_equal(watch_expect(stream, WATCH_CANCEL).watch_id, 1);
	watch_reader_expect(&world, &readers[2], "7");
	watch_reader_close(&readers[2]);
	watch_world_free(&world);
}

static void e263_abandoned_creates_are_not_created_again(void **state)
{
	struct watch_reader	readers[2];
	struct watch_world	world = watch_world_new(9, 0);
	struct rpc_script_call *stream;

	open_many(&world, readers, 2);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_reader_close(&readers[0]);
	watch_world_run(&world);
	rpc_script_cut(world.script, 0);
	stream = watch_world_stream(&world);
	assert_string_equal(watch_expect(stream, WATCH_CREATE).key, "k1");
	watch_expect_nothing(&world, stream);
	watch_reader_close(&readers[1]);
	watch_world_free(&world);
}

static void e272_the_queue_comes_back_in_order_with_all_its_options(void **state)
{
	struct watch_reader	readers[3], full;
	struct watch_world	world = watch_world_new(10, 0);
	struct rpc_script_call *stream;
	struct watch_request	request;

	watch_reader_open_request(&world, &full,
				  (struct vd_etcd_watch_request) { .key = vd_bytes_of("f"),
								   .range_end = vd_bytes_of("g"),
								   .previous = true,
								   .progress = true,
								   .fragment = true,
								   .no_put = true });
	open_many(&world, readers, 3);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_world_run(&world);
	watch_created(stream, 1, 5);
	watch_put(stream, 0, "f", 9);
	watch_world_run(&world); /* k1 and k2 are on their way */
	rpc_script_cut(world.script, 0);
	stream = watch_world_stream(&world);
	assert_string_equal(watch_expect(stream, WATCH_CREATE).key, "k1");
	watch_created(stream, 0, 9);
	assert_string_equal(watch_expect(stream, WATCH_CREATE).key, "k2");
	request = watch_expect(stream, WATCH_CREATE);
	assert_string_equal(request.key, "f");
	assert_string_equal(request.range_end, "g");
	assert_int_equal(request.start_revision, 10);
	assert_true(request.previous && request.progress && request.fragment && request.no_put &&
		    !request.no_delete);
	assert_string_equal(watch_expect(stream, WATCH_CREATE).key, "k0");
	watch_reader_close(&full);
	close_many(readers, 3);
	watch_world_free(&world);
}

static void e272_cancels_of_a_lost_connection_are_forgotten(void **state)
{
	struct watch_reader	readers[3];
	struct watch_world	world = watch_world_new(11, 0);
	struct rpc_script_call *stream;

	open_many(&world, readers, 3);
	stream = watch_world_stream(&world);
	for (int64_t id = 0; id < 3; id++) {
		watch_expect(stream, WATCH_CREATE);
		watch_created(stream, id, 5);
	}
	watch_world_run(&world);
	watch_reader_close(&readers[0]);
	assert_int_equal(watch_expect(stream, WATCH_CANCEL).watch_id, 0);
	rpc_script_cut(world.script, 0);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 5); /* the same id, on another connection */
	watch_put(stream, 0, "k", 6);
	watch_world_run(&world);
	watch_reader_expect(&world, &readers[1], "6");
	close_many(readers + 1, 2);
	watch_world_free(&world);
}

/* ---- Progress, back-pressure ---- */

static void progress_waits_until_all_watches_stand_at_the_server(void **state)
{
	struct watch_reader	readers[2];
	struct watch_world	world = watch_world_new(12, 0);
	struct rpc_script_call *stream;

	open_many(&world, readers, 2);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	assert_status(vd_etcd_watch_progress(readers[1].watch), VD_OK);
	watch_created(stream, 0, 5);
	watch_expect(stream, WATCH_CREATE);
	rpc_script_cut(world.script, 0);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 5);
	watch_expect(stream, WATCH_CREATE);
	watch_expect_nothing(&world, stream);
	watch_created(stream, 1, 5);
	watch_expect(stream, WATCH_PROGRESS);
	watch_expect_nothing(&world, stream);
	close_many(readers, 2);
	watch_world_free(&world);
}

/* What was asked on a connection that was lost counts for nothing on the next: its first answer speaks for
 * the watches that stood there before the request. */
static void what_a_lost_connection_was_asked_is_forgotten(void **state)
{
	struct watch_world	world = watch_world_new(17, 0);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &reader, "k", 0);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 5);
	watch_world_run(&world);
	assert_status(vd_etcd_watch_progress(reader.watch), VD_OK);
	watch_expect(stream, WATCH_PROGRESS);
	rpc_script_cut(world.script, 0);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 6);
	watch_world_run(&world);
	assert_status(vd_etcd_watch_progress(reader.watch), VD_OK);
	watch_expect(stream, WATCH_PROGRESS);
	watch_progress(stream, -1, 6);
	watch_reader_expect(&world, &reader, "~6");
	watch_reader_close(&reader);
	watch_world_free(&world);
}

/* Progress that was not asked for is not the answer to a later request: that answer still says nothing of a
 * watch that came in between. */
static void progress_that_was_not_asked_for_answers_nothing(void **state)
{
	struct watch_world	world = watch_world_new(18, 0);
	struct watch_reader	first, second;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &first, "a", 0);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 5);
	watch_progress(stream, -1, 5);
	watch_reader_expect(&world, &first, "~5");
	assert_status(vd_etcd_watch_progress(first.watch), VD_OK);
	watch_expect(stream, WATCH_PROGRESS);
	watch_reader_open(&world, &second, "b", 2);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 1, 6);
	watch_progress(stream, -1, 6);
	watch_reader_expect(&world, &first, "~6");
	watch_reader_expect(&world, &second, "");
	watch_expect(stream, WATCH_PROGRESS); /* for the second one */
	watch_progress(stream, -1, 6);
	watch_reader_expect(&world, &second, "~6");
	watch_reader_close(&first);
	watch_reader_close(&second);
	watch_world_free(&world);
}

static void progress_does_not_wait_for_ever(void **state)
{
	static struct watch_reader readers[2 * MANY];
	struct watch_world	   world = watch_world_new(16, 0);
	struct rpc_script_call	  *stream;
	struct vd_bytes		   message;
	size_t			   opened = 0, created = 0, asked_at = 0;

	/* Somebody opens watches all the time. */
	while (opened < 2 * MANY) {
		watch_reader_open(&world, &readers[opened++], "k", 1);
		if (opened == 2)
			assert_status(vd_etcd_watch_progress(readers[0].watch), VD_OK);
		watch_world_run(&world);
		if (opened < 3)
			continue;
		stream = rpc_script_call_at(world.script, 0);
		while (rpc_script_take_message(stream, &message))
			if (watch_request_read(message).kind == WATCH_PROGRESS)
				asked_at = created;
		watch_created(stream, (int64_t) created++, 5);
	}
	assert_true(asked_at >= VDI_ETCD_WATCH_PROGRESS_DELAY_MAX &&
		    asked_at < VDI_ETCD_WATCH_PROGRESS_DELAY_MAX + 10);
	close_many(readers, 2 * MANY);
	watch_world_free(&world);
}

/* While the actor does not run, the transport takes only so much from the server. */
static void the_stream_stops_asking_when_too_much_waits(void **state)
{
	struct watch_world	      world = watch_world_new(13, 64u << 20);
	struct watch_reader	      reader;
	struct rpc_script_call	     *stream;
	struct vdi_etcd_watch_stream *inside;
	struct watch_event	      event = { .key = "k", .value_size = 1u << 20 };

	watch_reader_open(&world, &reader, "k", 1);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_world_run(&world);
	for (event.mod_rev = 1; event.mod_rev <= 10; event.mod_rev++)
		watch_answer(stream,
			     &(struct watch_answer) { .revision = 50, .events = &event, .event_count = 1 });
	inside = reader.watch->stream;
	assert_true(vdi_sim_step(world.env)); /* the transport's actor: nobody else is awake */
	assert_true(inside->is_paused);
	assert_true(inside->received_bytes >= VDI_ETCD_WATCH_RECEIVED_BYTES_MAX);
	assert_true(inside->received_bytes < VDI_ETCD_WATCH_RECEIVED_BYTES_MAX + (2u << 20));
	assert_int_equal(rpc_script_call_pending_count(stream), 6);
	watch_reader_expect(&world, &reader, "1 2 3 4 5 6 7 8 9 10");
	assert_int_equal(inside->received_bytes, 0);
	assert_false(inside->is_paused);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void the_stream_stops_asking_when_too_many_wait(void **state)
{
	struct watch_world	world = watch_world_new(14, 0);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &reader, "k", 1);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_world_run(&world);
	for (int i = 0; i < 1000; i++)
		watch_put(stream, 0, "k", 1 + i);
	assert_true(vdi_sim_step(world.env));
	assert_int_equal(rpc_script_call_pending_count(stream), 1000 - VDI_ETCD_WATCH_RECEIVED_MAX);
	watch_world_run(&world);
	assert_int_equal(rpc_script_call_pending_count(stream), 0);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e254_e255_e256_which_ends_are_for_good),
		cmocka_unit_test(a_watch_opened_while_its_stream_halts_lives_on),
		cmocka_unit_test(e257_back_off_for_unavailable_and_internal),
		cmocka_unit_test(e1012_nothing_waits_for_a_stream_that_backs_off),
		cmocka_unit_test(e258_a_watch_can_be_closed_while_the_server_is_away),
		cmocka_unit_test(a_refused_open_is_tried_again),
		cmocka_unit_test(e261_creates_go_alone_until_the_server_answered_then_in_a_window),
		cmocka_unit_test(e261_an_id_out_of_turn_makes_the_stream_go_one_by_one),
		cmocka_unit_test(e261_ids_of_any_kind_are_fine_one_by_one),
		cmocka_unit_test(e261_an_id_in_use_is_no_answer),
		cmocka_unit_test(e260_the_states_of_a_watch),
		cmocka_unit_test(e263_an_abandoned_create_keeps_its_place_until_the_answer),
		cmocka_unit_test(e263_abandoned_creates_are_not_created_again),
		cmocka_unit_test(e272_the_queue_comes_back_in_order_with_all_its_options),
		cmocka_unit_test(e272_cancels_of_a_lost_connection_are_forgotten),
		cmocka_unit_test(progress_waits_until_all_watches_stand_at_the_server),
		cmocka_unit_test(what_a_lost_connection_was_asked_is_forgotten),
		cmocka_unit_test(progress_that_was_not_asked_for_answers_nothing),
		cmocka_unit_test(progress_does_not_wait_for_ever),
		cmocka_unit_test(the_stream_stops_asking_when_too_much_waits),
		cmocka_unit_test(the_stream_stops_asking_when_too_many_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
