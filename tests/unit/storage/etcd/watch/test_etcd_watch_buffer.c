/* The bounded buffer of a watch: who does not read is parked, alone, and misses nothing. */
#include "etcd_watch.h"
#include "etcd_watch_peer.h"
#include "vdtest.h"

#define BUFFER_BYTES 10000

static void put_large(struct rpc_script_call *stream, int64_t id, vd_rev revision, size_t size)
{
	struct watch_event event = { .key = "k", .mod_rev = revision, .value_size = size };

	watch_answer(stream, &(struct watch_answer) {
				     .id = id, .revision = revision, .events = &event, .event_count = 1 });
}

/* rules: E-1010 */
static void e232_a_full_buffer_parks_the_watch_and_no_one_else(void **state)
{
	struct watch_world	      world = watch_world_new(16, BUFFER_BYTES);
	struct watch_reader	      slow, sibling;
	struct rpc_script_call	     *stream;
	struct vd_etcd_watch_response response;
	vd_rev			      revision;

	watch_reader_open(&world, &slow, "k", 0);
	watch_reader_open(&world, &sibling, "s", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_expect(stream, WATCH_CREATE);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 1, 5);
	for (revision = 6; revision < 30; revision++)
		put_large(stream, 0, revision, 1000); /* the server does not know yet that it is parked */
	watch_put(stream, 1, "s", 30);
	watch_reader_expect(&world, &sibling, "30");
	assert_int_equal(watch_expect(stream, WATCH_CANCEL).watch_id, 0);
	assert_true(slow.watch->buffered_bytes > BUFFER_BYTES &&
		    slow.watch->buffered_bytes < BUFFER_BYTES + 2000);
	watch_canceled(stream, 0, 30, NULL);
	watch_expect_nothing(&world, stream);
	/* Read half of it. */
	for (revision = 6; slow.watch->buffered_bytes > BUFFER_BYTES / 2; revision++) {
		watch_expect_nothing(&world, stream);
		assert_status(vd_etcd_watch_next(slow.watch, &response, NULL), VD_OK);
		assert_int_equal(response.events[0].kv->mod_rev, revision);
	}
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 15);
	watch_created(stream, 2, 30);
	for (vd_rev next = 15; next < 18; next++)
		put_large(stream, 2, next, 1000);
	watch_world_run(&world);
	for (; revision < 18; revision++) {
		assert_status(vd_etcd_watch_next(slow.watch, &response, NULL), VD_OK);
		assert_int_equal(response.events[0].kv->mod_rev, revision);
	}
	watch_reader_close(&slow);
	watch_reader_close(&sibling);
	watch_world_free(&world);
}

static void a_response_larger_than_the_buffer_is_whole(void **state)
{
	static const struct watch_event events[] = { { .key = "a", .mod_rev = 6, .value_size = 9000 },
						     { .key = "b", .mod_rev = 6, .value_size = 9000 } };
	struct watch_world		world = watch_world_new(17, BUFFER_BYTES);
	struct watch_reader		reader;
	struct rpc_script_call	       *stream;

	watch_reader_open(&world, &reader, "k", 0);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 5);
	watch_answer(stream, &(struct watch_answer) { .revision = 6, .events = events, .event_count = 2 });
	watch_reader_expect(&world, &reader, "6,6");
	assert_int_equal(watch_expect(stream, WATCH_CANCEL).watch_id, 0);
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 7);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void fragments_beyond_the_buffer_are_delivered_by_whole_revisions(void **state)
{
	struct watch_world	world = watch_world_new(18, BUFFER_BYTES);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &reader, "k", 1);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 50);
	for (vd_rev i = 0; i < 20; i++) {
		struct watch_event event = { .key = "k", .mod_rev = 1 + i / 2, .value_size = 1000 };

		watch_answer(stream, &(struct watch_answer) { .revision = 50,
							      .fragment = i < 19,
							      .events = &event,
							      .event_count = 1 });
	}
	/* Ten events are too many to gather: four revisions are complete. With ten more the buffer itself is
	 * full. The read makes room, so the rest comes anew. */
	watch_reader_expect(&world, &reader, "1,1,2,2,3,3,4,4 5,5,6,6,7,7,8,8");
	assert_int_equal(watch_expect(stream, WATCH_CANCEL).watch_id, 0);
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 9);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

#define PIECES 30

/* Piece by piece, all of one revision, and together twice as much as the buffer takes. */
static void send_pieces(struct watch_world *world, struct watch_reader *reader,
			struct rpc_script_call *stream, int64_t id, vd_rev revision)
{
	for (int i = 0; i < PIECES; i++) {
		char		   key[16];
		struct watch_event event = { .key = key, .mod_rev = revision, .value_size = 1000 };

		snprintf(key, sizeof key, "k%02d", i);
		watch_reader_expect(world, reader, ""); /* nothing of it before all of it is there */
		watch_answer(stream, &(struct watch_answer) { .id = id,
							      .revision = 50,
							      .fragment = i + 1 < PIECES,
							      .events = &event,
							      .event_count = 1 });
	}
	watch_world_run(world);
}

static void expect_pieces(struct watch_reader *reader, vd_rev revision)
{
	struct vd_etcd_watch_response response;

	assert_status(vd_etcd_watch_next(reader->watch, &response, NULL), VD_OK);
	assert_int_equal(response.event_count, PIECES);
	for (int i = 0; i < PIECES; i++) {
		char key[16];

		snprintf(key, sizeof key, "k%02d", i);
		assert_true(vd_bytes_equal(vd_kv_key(response.events[i].kv), vd_bytes_of(key)));
		assert_int_equal(response.events[i].kv->mod_rev, revision);
		assert_int_equal(response.events[i].kv->sub, i);
	}
}

/* A transaction is whole or not there, however large it is: by itself, and behind revisions that are
 * delivered before it is complete.
 * rules: E-275, E-276 */
static void e345_a_fragmented_transaction_beyond_the_buffer_is_whole(void **state)
{
	static const struct watch_event small = { .key = "k", .mod_rev = 6, .value_size = 10 };
	struct watch_world		world = watch_world_new(18, BUFFER_BYTES);
	struct watch_reader		reader;
	struct rpc_script_call	       *stream;

	assert_true(PIECES * 1000 > 3 * BUFFER_BYTES / 2);
	watch_reader_open(&world, &reader, "k", 1);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 50);
	send_pieces(&world, &reader, stream, 0, 5);
	expect_pieces(&reader, 5);
	assert_int_equal(watch_expect(stream, WATCH_CANCEL).watch_id, 0);
	watch_reader_expect(&world, &reader, "");
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 6);
	watch_created(stream, 1, 50);
	/* In one response with a small one: that one need not wait, the other must. */
	watch_answer(stream,
		     &(struct watch_answer) {
			     .id = 1, .revision = 50, .fragment = true, .events = &small, .event_count = 1 });
	for (int i = 0; i < PIECES; i++) {
		struct watch_event event = { .key = "k", .mod_rev = 7, .value_size = 1000 };

		watch_answer(stream, &(struct watch_answer) { .id = 1,
							      .revision = 50,
							      .fragment = true,
							      .events = &event,
							      .event_count = 1 });
	}
	watch_reader_expect(&world, &reader, "6");
	rpc_script_cut(world.script, 0);
	stream = watch_world_stream(&world);
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 7); /* from its beginning */
	watch_created(stream, 0, 50);
	send_pieces(&world, &reader, stream, 0, 7);
	expect_pieces(&reader, 7);
	watch_reader_expect(&world, &reader, "");
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void e238_compaction_while_parked_comes_after_the_buffered_events(void **state)
{
	struct watch_world	world = watch_world_new(19, BUFFER_BYTES);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &reader, "k", 0);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 5);
	for (vd_rev revision = 6; revision < 30; revision++)
		put_large(stream, 0, revision, 1000);
	watch_world_run(&world);
	assert_int_equal(watch_expect(stream, WATCH_CANCEL).watch_id, 0);
	watch_reader_expect(&world, &reader, "6 7 8 9 10 11 12 13 14");
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 15);
	watch_created(stream, 1, 40);
	watch_compacted(stream, 1, 33);
	watch_reader_expect(&world, &reader, "!expired");
	assert_int_equal(watch_reader_end(&world, &reader).error.compacted, 33);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void a_parked_watch_survives_the_loss_of_its_stream(void **state)
{
	struct watch_world	world = watch_world_new(20, BUFFER_BYTES);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &reader, "k", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	for (vd_rev revision = 6; revision < 30; revision++)
		put_large(stream, 0, revision, 1000);
	watch_world_run(&world);
	rpc_script_cut(world.script, 0);
	stream = watch_world_stream(&world);
	watch_expect_nothing(&world, stream);
	watch_reader_expect(&world, &reader, "6 7 8 9 10 11 12 13 14");
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 15);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void an_idle_watch_takes_less_than_512_bytes(void **state)
{
	/* With its place in the table of ids (12 bytes a slot, at least 3/8 in use) and what the allocator
	 * adds. */
	assert_true(sizeof(struct vd_etcd_watch) + 32 + 16 <= 512);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e232_a_full_buffer_parks_the_watch_and_no_one_else),
		cmocka_unit_test(a_response_larger_than_the_buffer_is_whole),
		cmocka_unit_test(fragments_beyond_the_buffer_are_delivered_by_whole_revisions),
		cmocka_unit_test(e345_a_fragmented_transaction_beyond_the_buffer_is_whole),
		cmocka_unit_test(e238_compaction_while_parked_comes_after_the_buffered_events),
		cmocka_unit_test(a_parked_watch_survives_the_loss_of_its_stream),
		cmocka_unit_test(an_idle_watch_takes_less_than_512_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
