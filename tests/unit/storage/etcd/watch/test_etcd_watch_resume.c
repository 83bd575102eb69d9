/* Where a watch is resumed after each kind of answer, and which progress it may believe. */
#include <rpc.pb-c.h>

#include "etcd_watch_pair.h"
#include "etcd_watch_peer.h"
#include "vdtest.h"

static void e276_a_loss_within_fragments_resumes_before_the_first(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 3);
	watch_put(t.stream, 0, "k", 4);
	watch_pair_fragment(&t, 0, 9, 6, true);
	watch_pair_fragment(&t, 0, 9, 7, true);
	assert_int_equal(watch_pair_resume(&t), 5);
	watch_pair_fragment(&t, 0, 9, 6, true);
	watch_pair_fragment(&t, 0, 9, 7, true);
	watch_pair_fragment(&t, 0, 9, 8, false);
	watch_reader_expect(&t.world, &t.reader, "4 6,7,8");
	watch_pair_close(&t);
}

static void e280_the_requested_revision_stands_until_something_came(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 77);
	assert_int_equal(watch_pair_resume(&t), 77);
	watch_pair_close(&t);
}

static void e281_from_now_on_means_from_the_creation(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
	assert_int_equal(watch_pair_resume(&t), 5); /* the header's of the first creation... */
	assert_int_equal(watch_pair_resume(&t), 5); /* ...and of no later one */
	watch_pair_close(&t);
}

static void e282_events_win_over_the_header(void **state)
{
	struct watch_event event = { .key = "k", .mod_rev = 7 };
	struct watch_pair  t;

	watch_pair_open(&t, 3);
	watch_answer(t.stream,
		     &(struct watch_answer) { .id = 0, .revision = 40, .events = &event, .event_count = 1 });
	assert_int_equal(watch_pair_resume(&t), 8);
	watch_pair_close(&t);
}

static void e282_e283_progress_moves_the_position(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
	watch_progress(t.stream, -1, 12);
	assert_int_equal(watch_pair_resume(&t), 13);
	watch_progress(t.stream, 0, 20);
	assert_int_equal(watch_pair_resume(&t), 21);
	watch_progress(t.stream, 0, 15); /* never back */
	assert_int_equal(watch_pair_resume(&t), 21);
	watch_pair_close(&t);
}

static void e284_a_compacted_position_ends_the_watch(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
	watch_put(t.stream, 0, "k", 6);
	assert_int_equal(watch_pair_resume(&t), 7);
	watch_compacted(t.stream, 0, 30);
	watch_compacted(t.stream, 1, 30);
	watch_reader_expect(&t.world, &t.reader, "6 !expired");
	watch_reader_expect(&t.world, &t.sibling, "!expired");
	watch_pair_close(&t);
}

static void e285_what_was_delivered_is_not_delivered_again(void **state)
{
	static const struct watch_event again[] = { { .key = "k", .mod_rev = 6 },
						    { .key = "k", .mod_rev = 7 },
						    { .key = "k", .mod_rev = 8 } };
	struct watch_pair		t;

	watch_pair_open(&t, 3);
	watch_put(t.stream, 0, "k", 2); /* below what was asked for (issue 20221) */
	watch_put(t.stream, 0, "k", 6);
	watch_put(t.stream, 0, "k", 6);
	assert_int_equal(watch_pair_resume(&t), 7);
	/* A server that goes by older positions. */
	watch_answer(t.stream,
		     &(struct watch_answer) { .id = 0, .revision = 9, .events = again, .event_count = 3 });
	watch_reader_expect(&t.world, &t.reader, "6 7,8");
	watch_pair_close(&t);
}

static void e285_progress_ahead_of_its_events_loses_none_of_them(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 3);
	watch_progress(t.stream, -1, 10); /* some servers do (E-708) */
	watch_put(t.stream, 0, "k", 9);
	watch_reader_expect(&t.world, &t.reader, "~10 9");
	watch_pair_close(&t);
}

/* Progress was asked for, and then a watch on "l" was opened from revision: created as id 2 at h10, before
 * the answer came. */
static void open_late(struct watch_pair *t, struct watch_reader *late, vd_rev revision, vd_rev header)
{
	watch_pair_open(t, 3);
	assert_status(vd_etcd_watch_progress(t->reader.watch), VD_OK);
	watch_expect(t->stream, WATCH_PROGRESS);
	watch_reader_open(&t->world, late, "l", revision);
	watch_expect(t->stream, WATCH_CREATE);
	watch_created(t->stream, 2, header);
	watch_world_run(&t->world);
}

static void close_late(struct watch_pair *t, struct watch_reader *late)
{
	watch_reader_close(late);
	watch_pair_close(t);
}

static void e245_an_answer_from_before_a_watch_does_not_speak_for_it(void **state)
{
	struct watch_pair   t;
	struct watch_reader late;

	open_late(&t, &late, 4, 10);
	watch_progress(t.stream, -1, 10);
	watch_reader_expect(&t.world, &t.reader, "~10");
	watch_reader_expect(&t.world, &late, "");
	/* It is asked for again. */
	watch_expect(t.stream, WATCH_PROGRESS);
	watch_progress(t.stream, -1, 10);
	watch_reader_expect(&t.world, &t.reader, "~10");
	watch_reader_expect(&t.world, &late, "~10");
	watch_expect_nothing(&t.world, t.stream);
	close_late(&t, &late);
}

static void e284_an_answer_from_before_a_watch_does_not_move_it(void **state)
{
	struct watch_pair   t;
	struct watch_reader late;

	open_late(&t, &late, 4, 10);
	watch_progress(t.stream, -1, 10);
	watch_world_run(&t.world);
	rpc_script_cut(t.world.script, 0);
	t.stream = watch_world_stream(&t.world);
	for (int64_t id = 0; id < 3; id++) {
		struct watch_request request = watch_expect(t.stream, WATCH_CREATE);

		if (strcmp(request.key, "l") == 0)
			assert_int_equal(request.start_revision, 4);
		watch_created(t.stream, id, 50);
	}
	close_late(&t, &late);
}

static void e245_an_answer_of_a_later_revision_speaks_for_all(void **state)
{
	struct watch_pair   t;
	struct watch_reader late;

	open_late(&t, &late, 4, 10);
	watch_progress(t.stream, -1, 11);
	watch_reader_expect(&t.world, &late, "~11");
	watch_expect_nothing(&t.world, t.stream);
	/* So the request from before it got no answer, and none is waited for. */
	watch_reader_close(&late);
	watch_expect(t.stream, WATCH_CANCEL);
	watch_reader_open(&t.world, &late, "l", 4);
	watch_expect(t.stream, WATCH_CREATE);
	watch_created(t.stream, 3, 11);
	watch_progress(t.stream, -1, 11);
	watch_reader_expect(&t.world, &late, "~11");
	close_late(&t, &late);
}

static void e245_a_watch_that_has_heard_of_its_own_hears_all(void **state)
{
	struct watch_pair   t;
	struct watch_reader late;

	open_late(&t, &late, 4, 10);
	watch_put(t.stream, 2, "l", 7);
	watch_progress(t.stream, -1, 10);
	watch_reader_expect(&t.world, &late, "7 ~10");
	watch_expect_nothing(&t.world, t.stream);
	close_late(&t, &late);
}

static void e245_a_watch_that_starts_ahead_has_nothing_to_miss(void **state)
{
	static const vd_rev starts[] = { 0, 11 };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(starts); i++) {
		struct watch_pair   t;
		struct watch_reader late;

		open_late(&t, &late, starts[i], 10);
		watch_progress(t.stream, -1, 8); /* older than where it starts: nothing to tell */
		watch_reader_expect(&t.world, &late, "");
		watch_progress(t.stream, -1, 10);
		watch_reader_expect(&t.world, &late, "~10");
		watch_expect_nothing(&t.world, t.stream);
		close_late(&t, &late);
	}
}

/* Servers drop requests while a watch is behind: whose answer one is, is not known then. */
static void e245_requests_without_an_answer_are_made_up_for(void **state)
{
	struct watch_pair   t;
	struct watch_reader late;

	open_late(&t, &late, 4, 0); /* a header without a revision */
	assert_status(vd_etcd_watch_progress(late.watch), VD_OK);
	watch_expect(t.stream, WATCH_PROGRESS);
	watch_progress(t.stream, -1, 10);
	watch_reader_expect(&t.world, &late, "");
	watch_expect(t.stream, WATCH_PROGRESS);
	watch_progress(t.stream, -1, 10);
	watch_reader_expect(&t.world, &late, "~10");
	watch_expect_nothing(&t.world, t.stream);
	close_late(&t, &late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e276_a_loss_within_fragments_resumes_before_the_first),
		cmocka_unit_test(e280_the_requested_revision_stands_until_something_came),
		cmocka_unit_test(e281_from_now_on_means_from_the_creation),
		cmocka_unit_test(e282_events_win_over_the_header),
		cmocka_unit_test(e282_e283_progress_moves_the_position),
		cmocka_unit_test(e284_a_compacted_position_ends_the_watch),
		cmocka_unit_test(e285_what_was_delivered_is_not_delivered_again),
		cmocka_unit_test(e285_progress_ahead_of_its_events_loses_none_of_them),
		cmocka_unit_test(e245_an_answer_from_before_a_watch_does_not_speak_for_it),
		cmocka_unit_test(e284_an_answer_from_before_a_watch_does_not_move_it),
		cmocka_unit_test(e245_an_answer_of_a_later_revision_speaks_for_all),
		cmocka_unit_test(e245_a_watch_that_has_heard_of_its_own_hears_all),
		cmocka_unit_test(e245_a_watch_that_starts_ahead_has_nothing_to_miss),
		cmocka_unit_test(e245_requests_without_an_answer_are_made_up_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
