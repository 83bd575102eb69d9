/* Answers in every order, odd ones too: failed creates, cancels, unknown ids, fragments, and where a watch is
 * resumed after each. */
#include "vdtest.h"

#include "actor_sim.h"
#include "etcd_client_fixture.h"
#include "etcd_watch_peer.h"

#include <rpc.pb-c.h>

/* A watch on "k" from revision, established as id 0 at h5, with a second one (id 1) beside it that keeps the
 * stream alive. */
struct table {
	struct watch_world	world;
	struct watch_reader	reader, sibling;
	struct rpc_script_call *stream;
};

static void setup(struct table *t, vd_rev revision)
{
	t->world = watch_world_new(1, 0);
	watch_reader_open(&t->world, &t->reader, "k", revision);
	t->stream = watch_world_stream(&t->world);
	watch_expect(t->stream, WATCH_CREATE);
	watch_created(t->stream, 0, 5);
	watch_world_run(&t->world);
	watch_reader_open(&t->world, &t->sibling, "s", 0);
	watch_expect(t->stream, WATCH_CREATE);
	watch_created(t->stream, 1, 5);
	watch_world_run(&t->world);
}

static void teardown(struct table *t)
{
	watch_reader_close(&t->reader);
	watch_reader_close(&t->sibling);
	watch_world_free(&t->world);
}

/* The connection goes; answers the start revision with which the watch on "k" comes back. Both are
 * established again. */
static vd_rev resume(struct table *t)
{
	vd_rev start = -1;

	watch_world_run(&t->world);
	rpc_script_cut(t->world.script, 0);
	t->stream = watch_world_stream(&t->world);
	for (int64_t id = 0; id < 2; id++) {
		struct watch_request request = watch_expect(t->stream, WATCH_CREATE);

		if (strcmp(request.key, "k") == 0)
			start = request.start_revision;
		watch_created(t->stream, id, 50);
	}
	watch_world_run(&t->world);
	return start;
}

static void fragment(struct table *t, int64_t id, vd_rev header, vd_rev mod_rev, bool more)
{
	struct watch_event event = { .key = "k", .mod_rev = mod_rev };

	watch_answer(
		t->stream,
		&(struct watch_answer) {
			.id = id, .revision = header, .fragment = more, .events = &event, .event_count = 1 });
}

/* ---- Created ---- */

static void e262_created_belongs_to_the_oldest_create(void **state)
{
	struct table t;

	setup(&t, 0);
	watch_put(t.stream, 1, "s", 6);
	watch_put(t.stream, 0, "k", 7);
	watch_reader_expect(&t.world, &t.reader, "7");
	watch_reader_expect(&t.world, &t.sibling, "6");
	teardown(&t);
}

static void e264_a_failed_create_ends_its_watch_alone(void **state)
{
	static const struct {
		const char	 *reason;
		vd_status	  status;
		enum vd_etcd_code code;
	} cases[] = {
		{ "rpc error: code = PermissionDenied desc = etcdserver: permission denied", VD_FORBIDDEN,
		  VD_ETCD_PERMISSION_DENIED },
		{ "etcdserver: mvcc: required revision has been compacted", VD_EXPIRED, VD_ETCD_COMPACTED },
		{ "mvcc: watcher range is empty", VD_CANCELED, VD_ETCD_OTHER },
		{ "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token", VD_FORBIDDEN,
		  VD_ETCD_INVALID_AUTH_TOKEN },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct table	     t;
		struct watch_reader  failing;
		struct vd_etcd_error error;

		setup(&t, 0);
		watch_reader_open(&t.world, &failing, "f", 0);
		watch_expect(t.stream, WATCH_CREATE);
		watch_answer(t.stream, &(struct watch_answer) { .id = -1,
								.revision = 6,
								.created = true,
								.canceled = true,
								.reason = cases[i].reason });
		error = watch_reader_end(&t.world, &failing);
		assert_status(error.error.code, cases[i].status);
		assert_int_equal(error.code, cases[i].code);
		assert_string_equal(error.endpoint, "peer:2379"); /* who has said so */
		watch_reader_close(&failing);
		watch_expect_nothing(&t.world, t.stream);
		/* The error is not its siblings' (upstream's leak, E-264): one that is canceled later has its
		 * own. */
		watch_canceled(t.stream, 0, 7, "later");
		error = watch_reader_end(&t.world, &t.reader);
		assert_status(error.error.code, VD_CANCELED);
		assert_non_null(strstr(error.error.message, "later"));
		watch_put(t.stream, 1, "s", 8);
		watch_reader_expect(&t.world, &t.sibling, "8");
		teardown(&t);
	}
}

/* The stream that comes with the next token. */
static struct rpc_script_call *stream_with_token(struct watch_world *world, const char *token)
{
	Etcdserverpb__AuthenticateResponse answer = ETCDSERVERPB__AUTHENTICATE_RESPONSE__INIT;
	struct rpc_script_call		  *stream;

	answer.token = (char *) (uintptr_t) token;
	vdi_sim_advance(world->env, VD_SECONDS(1));
	rpc_script_answer(rpc_script_expect_call(world->script, "/etcdserverpb.Auth/Authenticate"),
			  etcd_pack(&answer));
	stream = watch_world_stream(world);
	assert_true(vd_bytes_equal(rpc_script_call_metadata(stream, "token"), vd_bytes_of(token)));
	return stream;
}

static void refuse(struct rpc_script_call *stream, const char *reason)
{
	watch_answer(stream,
		     &(struct watch_answer) {
			     .id = -1, .revision = 6, .created = true, .canceled = true, .reason = reason });
}

/* A server looks at the token of a stream again with every watch that is created on it, and the stream may be
 * older than tokens become. */
static void e209_a_stream_older_than_its_token_is_opened_anew(void **state)
{
	static const char *const reasons[] = {
		"etcdserver: invalid auth token",
		"rpc error: code = Unauthenticated desc = etcdserver: invalid auth token",
		"etcdserver: revision of auth store is old", "etcdserver: user name is empty"
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(reasons); i++) {
		struct watch_world	world = watch_world_new_for(1, 0, "alice", "secret");
		struct watch_reader	first, second, third;
		struct vd_etcd_error	error;
		struct rpc_script_call *stream, *old;

		watch_reader_open(&world, &first, "a", 0);
		stream = old = stream_with_token(&world, "t0");
		watch_expect(stream, WATCH_CREATE);
		watch_created(stream, 0, 5);
		watch_put(stream, 0, "a", 7);
		watch_reader_expect(&world, &first, "7");
		/* No word of it to anybody: both go on where they were. */
		watch_reader_open(&world, &second, "b", 3);
		watch_expect(stream, WATCH_CREATE);
		refuse(stream, reasons[i]);
		stream = stream_with_token(&world, "t1");
		assert_true(rpc_script_call_is_canceled(old));
		assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 3);
		watch_created(stream, 0, 8);
		assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 8);
		watch_created(stream, 1, 8);
		watch_put(stream, 0, "b", 9);
		watch_put(stream, 1, "a", 10);
		watch_reader_expect(&world, &second, "9");
		watch_reader_expect(&world, &first, "10");
		/* A token that is new and refused all the same is an answer, for that watch alone. */
		watch_reader_open(&world, &third, "c", 4);
		watch_expect(stream, WATCH_CREATE);
		refuse(stream, reasons[i]);
		stream = stream_with_token(&world, "t2");
		assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 4);
		refuse(stream, reasons[i]);
		error = watch_reader_end(&world, &third);
		assert_status(error.error.code, i == 2 ? VD_CONFLICT : VD_FORBIDDEN);
		watch_expect(stream, WATCH_CREATE);
		watch_created(stream, 0, 11);
		watch_expect(stream, WATCH_CREATE);
		watch_created(stream, 1, 11);
		watch_put(stream, 0, "b", 12);
		watch_put(stream, 1, "a", 13);
		watch_reader_expect(&world, &second, "12");
		watch_reader_expect(&world, &first, "13");
		watch_reader_close(&first);
		watch_reader_close(&second);
		watch_reader_close(&third);
		watch_world_free(&world);
	}
}

static void e264_created_and_canceled_with_an_id(void **state)
{
	struct table	    t;
	struct watch_reader old, silent;

	setup(&t, 0);
	watch_reader_open(&t.world, &old, "f", 0);
	watch_reader_open(&t.world, &silent, "g", 0);
	watch_expect(t.stream, WATCH_CREATE);
	watch_expect(t.stream, WATCH_CREATE);
	watch_answer(t.stream, &(struct watch_answer) { .id = 2,
							.revision = 6,
							.created = true,
							.canceled = true,
							.reason = "as servers up to 3.3 do" });
	watch_answer(t.stream,
		     &(struct watch_answer) { .id = 3, .revision = 6, .created = true, .canceled = true });
	watch_reader_expect(&t.world, &old, "!canceled");
	watch_reader_expect(&t.world, &silent, "!too_large_revision");
	watch_put(t.stream, 0, "k", 7);
	watch_reader_expect(&t.world, &t.reader, "7");
	watch_reader_close(&old);
	watch_reader_close(&silent);
	teardown(&t);
}

static void e264_created_and_compacted_at_once(void **state)
{
	struct table	    t;
	struct watch_reader old;

	setup(&t, 0);
	watch_reader_open(&t.world, &old, "f", 2);
	watch_expect(t.stream, WATCH_CREATE);
	watch_answer(t.stream, &(struct watch_answer) {
				       .id = 2, .created = true, .canceled = true, .compact_revision = 9 });
	watch_reader_expect(&t.world, &old, "!expired");
	assert_int_equal(watch_reader_end(&t.world, &old).error.compacted, 9);
	watch_reader_close(&old);
	teardown(&t);
}

/* etcd answers failures in their turn, and its header has a revision; a proxy answers them at once,
 * without. */
static void e264_a_failure_among_several_creates(void **state)
{
	for (vd_rev header = 0; header <= 6; header += 6) {
		struct table	    t;
		struct watch_reader first, second;

		setup(&t, 0);
		watch_reader_open(&t.world, &first, "a", 0);
		watch_reader_open(&t.world, &second, "b", 0);
		watch_expect(t.stream, WATCH_CREATE);
		watch_expect(t.stream, WATCH_CREATE);
		watch_answer(t.stream, &(struct watch_answer) { .id = -1,
								.revision = header,
								.created = true,
								.canceled = true,
								.reason = "no" });
		if (header) {
			watch_reader_expect(&t.world, &first, "!canceled");
			watch_created(t.stream, 2, 6);
			watch_put(t.stream, 2, "b", 7);
		} else {
			/* Whose was it? One by one it is clear. */
			t.stream = watch_world_stream(&t.world);
			for (int64_t id = 0; id < 4; id++) {
				struct watch_request request = watch_expect(t.stream, WATCH_CREATE);

				watch_expect_nothing(&t.world, t.stream);
				if (strcmp(request.key, "a") == 0)
					watch_answer(t.stream, &(struct watch_answer) { .id = -1,
											.created = true,
											.canceled = true,
											.reason = "no" });
				else
					watch_created(t.stream, id, 6);
				if (strcmp(request.key, "b") == 0)
					watch_put(t.stream, id, "b", 7);
			}
			watch_reader_expect(&t.world, &first, "!canceled");
		}
		watch_reader_expect(&t.world, &second, "7");
		watch_reader_expect(&t.world, &t.reader, "");
		watch_reader_close(&first);
		watch_reader_close(&second);
		teardown(&t);
	}
}

static void created_that_nobody_asked_for_is_canceled(void **state)
{
	struct table t;

	setup(&t, 0);
	watch_created(t.stream, 9, 6);
	assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, 9);
	watch_created(t.stream, 0, 6); /* of an established watch: a repetition */
	watch_answer(t.stream,
		     &(struct watch_answer) {
			     .id = -1, .revision = 6, .created = true, .canceled = true, .reason = "x" });
	watch_expect_nothing(&t.world, t.stream);
	watch_put(t.stream, 0, "k", 7);
	watch_reader_expect(&t.world, &t.reader, "7");
	teardown(&t);
}

/* Events before the creation: the id was unknown and got a cancel, so the watch is created once more. */
static void a_late_created_is_not_bound_to_a_canceled_id(void **state)
{
	struct table	    t;
	struct watch_reader late;

	setup(&t, 0);
	watch_reader_open(&t.world, &late, "l", 3);
	watch_expect(t.stream, WATCH_CREATE);
	watch_put(t.stream, 2, "l", 3);
	watch_created(t.stream, 2, 6);
	assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, 2);
	assert_int_equal(watch_expect(t.stream, WATCH_CREATE).start_revision, 3);
	watch_canceled(t.stream, 2, 6, NULL);
	watch_created(t.stream, 3, 6);
	watch_put(t.stream, 3, "l", 3);
	watch_reader_expect(&t.world, &late, "3");
	watch_reader_close(&late);
	teardown(&t);
}

/* ---- Canceled ---- */

static void e265_canceled_by_the_server(void **state)
{
	struct table t;

	setup(&t, 0);
	watch_put(t.stream, 0, "k", 6);
	watch_canceled(t.stream, 0, 6, "go away");
	watch_reader_expect(&t.world, &t.reader, "6 !canceled");
	assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, 0); /* upstream's clients send it */
	watch_canceled(t.stream, 0, 6, NULL);
	watch_canceled(t.stream, -1, 6, NULL);
	watch_put(t.stream, 1, "s", 7);
	watch_reader_expect(&t.world, &t.sibling, "7");
	watch_expect_nothing(&t.world, t.stream);
	teardown(&t);
}

static void e266_canceled_by_compaction_gets_one_cancel(void **state)
{
	struct table t;

	setup(&t, 0);
	watch_compacted(t.stream, 0, 9);
	watch_compacted(t.stream, 0, 9); /* some servers repeat it until they are told (E-334) */
	assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, 0);
	watch_expect_nothing(&t.world, t.stream);
	watch_reader_expect(&t.world, &t.reader, "!expired");
	teardown(&t);
}

static void e267_an_unknown_id_gets_one_cancel(void **state)
{
	struct table t;

	setup(&t, 0);
	watch_put(t.stream, 44, "x", 6);
	watch_put(t.stream, 44, "x", 7);
	watch_progress(t.stream, 44, 8);
	assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, 44);
	watch_expect_nothing(&t.world, t.stream);
	watch_canceled(t.stream, 44, 8, NULL);
	watch_put(t.stream, 44, "x", 9); /* it was told that this is over */
	assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, 44);
	watch_put(t.stream, -1, "x", 9); /* progress has no events */
	watch_expect_nothing(&t.world, t.stream);
	watch_reader_expect(&t.world, &t.reader, "");
	teardown(&t);
}

static void e267_unknown_ids_are_remembered_up_to_a_bound(void **state)
{
	struct table t;

	setup(&t, 0);
	for (int64_t id = 100; id < 10100; id++)
		watch_put(t.stream, id, "x", 6);
	watch_put(t.stream, 0, "k", 7);
	watch_reader_expect(&t.world, &t.reader, "7");
	for (int64_t id = 100; id < 10100; id++)
		assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, id);
	teardown(&t);
}

static void e268_what_came_before_the_loss_is_seen_or_asked_for_again(void **state)
{
	struct table t;

	setup(&t, 0);
	for (vd_rev revision = 6; revision < 20; revision++)
		watch_put(t.stream, 0, "k", revision);
	rpc_script_end(t.stream, VDI_RPC_UNAVAILABLE, "away"); /* behind them */
	watch_world_run(&t.world);
	t.stream = watch_world_stream(&t.world);
	for (int64_t id = 0; id < 2; id++) {
		struct watch_request request = watch_expect(t.stream, WATCH_CREATE);

		assert_int_equal(request.start_revision, strcmp(request.key, "k") == 0 ? 20 : 5);
		watch_created(t.stream, id, 20);
	}
	watch_reader_expect(&t.world, &t.reader, "6 7 8 9 10 11 12 13 14 15 16 17 18 19");
	teardown(&t);
}

static void e270_cancel_is_sent_at_once_and_late_events_are_dropped(void **state)
{
	struct table t;

	setup(&t, 0);
	watch_reader_close(&t.reader);
	assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, 0);
	watch_put(t.stream, 0, "k", 6);
	watch_canceled(t.stream, 0, 6, NULL);
	watch_expect_nothing(&t.world, t.stream);
	watch_put(t.stream, 1, "s", 7);
	watch_reader_expect(&t.world, &t.sibling, "7");
	/* The last one ends the stream: no cancel request. */
	assert_false(rpc_script_call_is_canceled(t.stream));
	watch_reader_close(&t.sibling);
	watch_expect_nothing(&t.world, t.stream);
	assert_true(rpc_script_call_is_canceled(t.stream));
	watch_world_free(&t.world);
}

/* ---- Fragments ---- */

static void e275_fragments_become_one_response(void **state)
{
	struct table		      t;
	struct vd_etcd_watch_response response;

	setup(&t, 3);
	fragment(&t, 0, 8, 6, true);
	fragment(&t, 0, 9, 6, true); /* the same revision on both sides of the cut */
	watch_reader_expect(&t.world, &t.reader, "");
	fragment(&t, 0, 9, 7, false);
	watch_world_run(&t.world);
	assert_status(vd_etcd_watch_next(t.reader.watch, &response, NULL), VD_OK);
	assert_int_equal(response.header.revision, 8); /* the first one's */
	assert_int_equal(response.event_count, 3);
	assert_true(response.events[0].kv->sub == 0 && response.events[1].kv->sub == 1 &&
		    response.events[2].kv->sub == 0);
	assert_int_equal(response.events[2].kv->mod_rev, 7);
	watch_reader_expect(&t.world, &t.reader, "");
	teardown(&t);
}

static void e275_fragments_of_several_ids_do_not_disturb_each_other(void **state)
{
	struct table t;

	setup(&t, 3);
	fragment(&t, 0, 9, 6, true);
	fragment(&t, 1, 9, 6, true);
	fragment(&t, 0, 9, 7, true);
	watch_progress(t.stream, -1, 9); /* of neither */
	watch_progress(t.stream, 0, 9);
	fragment(&t, 1, 9, 8, false);
	fragment(&t, 0, 9, 9, false);
	watch_reader_expect(&t.world, &t.reader, "6,7,9");
	watch_reader_expect(&t.world, &t.sibling, "6,8");
	teardown(&t);
}

static void e275_fragments_end_with_created_or_canceled(void **state)
{
	struct table	    t;
	struct watch_reader other;

	setup(&t, 3);
	fragment(&t, 0, 9, 6, true);
	watch_reader_open(&t.world, &other, "o", 0); /* a creation between fragments of another */
	watch_expect(t.stream, WATCH_CREATE);
	watch_created(t.stream, 2, 9);
	fragment(&t, 0, 9, 7, false);
	watch_reader_expect(&t.world, &t.reader, "6,7");
	fragment(&t, 0, 9, 8, true);
	watch_compacted(t.stream, 0, 20);
	watch_reader_expect(&t.world, &t.reader, "!expired");
	watch_reader_close(&other);
	teardown(&t);
}

static void e276_a_loss_within_fragments_resumes_before_the_first(void **state)
{
	struct table t;

	setup(&t, 3);
	watch_put(t.stream, 0, "k", 4);
	fragment(&t, 0, 9, 6, true);
	fragment(&t, 0, 9, 7, true);
	assert_int_equal(resume(&t), 5);
	fragment(&t, 0, 9, 6, true);
	fragment(&t, 0, 9, 7, true);
	fragment(&t, 0, 9, 8, false);
	watch_reader_expect(&t.world, &t.reader, "4 6,7,8");
	teardown(&t);
}

/* ---- Where to resume ---- */

static void e280_the_requested_revision_stands_until_something_came(void **state)
{
	struct table t;

	setup(&t, 77);
	assert_int_equal(resume(&t), 77);
	teardown(&t);
}

static void e281_from_now_on_means_from_the_creation(void **state)
{
	struct table t;

	setup(&t, 0);
	assert_int_equal(resume(&t), 5); /* the header's of the first creation... */
	assert_int_equal(resume(&t), 5); /* ...and of no later one */
	teardown(&t);
}

static void e282_events_win_over_the_header(void **state)
{
	struct watch_event event = { .key = "k", .mod_rev = 7 };
	struct table	   t;

	setup(&t, 3);
	watch_answer(t.stream,
		     &(struct watch_answer) { .id = 0, .revision = 40, .events = &event, .event_count = 1 });
	assert_int_equal(resume(&t), 8);
	teardown(&t);
}

static void e282_e283_progress_moves_the_position(void **state)
{
	struct table t;

	setup(&t, 0);
	watch_progress(t.stream, -1, 12);
	assert_int_equal(resume(&t), 13);
	watch_progress(t.stream, 0, 20);
	assert_int_equal(resume(&t), 21);
	watch_progress(t.stream, 0, 15); /* never back */
	assert_int_equal(resume(&t), 21);
	teardown(&t);
}

static void e284_a_compacted_position_ends_the_watch(void **state)
{
	struct table t;

	setup(&t, 0);
	watch_put(t.stream, 0, "k", 6);
	assert_int_equal(resume(&t), 7);
	watch_compacted(t.stream, 0, 30);
	watch_compacted(t.stream, 1, 30);
	watch_reader_expect(&t.world, &t.reader, "6 !expired");
	watch_reader_expect(&t.world, &t.sibling, "!expired");
	teardown(&t);
}

static void e285_what_was_delivered_is_not_delivered_again(void **state)
{
	static const struct watch_event again[] = { { .key = "k", .mod_rev = 6 },
						    { .key = "k", .mod_rev = 7 },
						    { .key = "k", .mod_rev = 8 } };
	struct table			t;

	setup(&t, 3);
	watch_put(t.stream, 0, "k", 2); /* below what was asked for (issue 20221) */
	watch_put(t.stream, 0, "k", 6);
	watch_put(t.stream, 0, "k", 6);
	assert_int_equal(resume(&t), 7);
	/* A server that goes by older positions. */
	watch_answer(t.stream,
		     &(struct watch_answer) { .id = 0, .revision = 9, .events = again, .event_count = 3 });
	watch_reader_expect(&t.world, &t.reader, "6 7,8");
	teardown(&t);
}

static void e285_progress_ahead_of_its_events_loses_none_of_them(void **state)
{
	struct table t;

	setup(&t, 3);
	watch_progress(t.stream, -1, 10); /* some servers do (E-708) */
	watch_put(t.stream, 0, "k", 9);
	watch_reader_expect(&t.world, &t.reader, "~10 9");
	teardown(&t);
}

/* Progress was asked for, and then a watch on "l" was opened from revision: created as id 2 at h10, before
 * the answer came. */
static void open_late(struct table *t, struct watch_reader *late, vd_rev revision, vd_rev header)
{
	setup(t, 3);
	assert_status(vd_etcd_watch_progress(t->reader.watch), VD_OK);
	watch_expect(t->stream, WATCH_PROGRESS);
	watch_reader_open(&t->world, late, "l", revision);
	watch_expect(t->stream, WATCH_CREATE);
	watch_created(t->stream, 2, header);
	watch_world_run(&t->world);
}

static void close_late(struct table *t, struct watch_reader *late)
{
	watch_reader_close(late);
	teardown(t);
}

static void e245_an_answer_from_before_a_watch_does_not_speak_for_it(void **state)
{
	struct table	    t;
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
	struct table	    t;
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
	struct table	    t;
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
	struct table	    t;
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
		struct table	    t;
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
	struct table	    t;
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

static void an_answer_that_is_no_message_breaks_the_connection(void **state)
{
	struct table t;

	setup(&t, 0);
	watch_put(t.stream, 0, "k", 6);
	rpc_script_send(t.stream, vd_bytes_of("\xff\xff\xff"));
	watch_put(t.stream, 0, "k", 7);
	t.stream = watch_world_stream(&t.world);
	for (int64_t id = 0; id < 2; id++) {
		struct watch_request request = watch_expect(t.stream, WATCH_CREATE);

		if (strcmp(request.key, "k") == 0)
			assert_int_equal(request.start_revision, 7);
		watch_created(t.stream, id, 7);
		if (strcmp(request.key, "k") == 0)
			watch_put(t.stream, id, "k", 7);
	}
	watch_reader_expect(&t.world, &t.reader, "6 7");
	teardown(&t);
}

static void an_empty_answer_is_nothing(void **state)
{
	struct table t;

	setup(&t, 0);
	rpc_script_send(t.stream,
			VD_BYTES_NONE); /* id 0, no header, no events: says nothing about any revision */
	watch_put(t.stream, 0, "k", 6);
	watch_reader_expect(&t.world, &t.reader, "6");
	teardown(&t);
}

/* ---- What Go's client does with the same script (11.3) ---- */

static void e1101_golden_1_canceled_beside_a_sibling(void **state)
{
	struct table t;

	setup(&t, 0);
	watch_canceled(t.stream, 0, 5, "why not");
	watch_reader_expect(&t.world, &t.reader, "!canceled");
	assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, 0);
	watch_put(t.stream, 1, "s", 6);
	watch_reader_expect(&t.world, &t.sibling, "6");
	teardown(&t);
}

static void e1101_golden_3_ends_for_good(void **state)
{
	static const struct {
		int	    code;
		const char *text, *contains;
	} cases[] = { { VDI_RPC_OK, "", "EOF" },
		      { VDI_RPC_RESOURCE_EXHAUSTED, "grpc: received message larger than max (9 vs. 8)",
			"code = ResourceExhausted" },
		      { VDI_RPC_UNAVAILABLE, "etcdserver: no leader", "etcdserver: no leader" } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct watch_event event = { .key = "k", .mod_rev = 7 };
		struct table	   t;

		setup(&t, 0);
		watch_answer(t.stream, &(struct watch_answer) {
					       .id = 0, .revision = 9, .events = &event, .event_count = 1 });
		rpc_script_end(t.stream, cases[i].code, cases[i].text);
		assert_memory_equal(watch_reader_text(&t.world, &t.reader), "7 !", 3);
		assert_non_null(
			strstr(watch_reader_end(&t.world, &t.reader).error.message, cases[i].contains));
		watch_world_no_stream(&t.world);
		teardown(&t);
	}
}

static void e1101_golden_4_reconnects(void **state)
{
	struct watch_event	event = { .key = "k", .mod_rev = 7 };
	struct watch_world	world = watch_world_new(1, 0);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	watch_reader_open_request(
		&world, &reader,
		(struct vd_etcd_watch_request) { .key = vd_bytes_of("k"), .created_notify = true });
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_answer(stream,
		     &(struct watch_answer) { .id = 0, .revision = 9, .events = &event, .event_count = 1 });
	rpc_script_end(stream, VDI_RPC_INTERNAL, "x");
	stream = watch_world_stream(&world);
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 8);
	watch_created(stream, 0, 9);
	watch_progress(stream, -1, 12);
	watch_world_run(&world);
	rpc_script_end(stream, VDI_RPC_UNAVAILABLE, "x");
	stream = watch_world_stream(&world);
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 13);
	watch_reader_expect(&world, &reader, "+5 7 ~12");
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void e1101_golden_5_losses_before_any_complete_response(void **state)
{
	struct table t;

	setup(&t, 0);
	assert_int_equal(resume(&t), 5);
	fragment(&t, 0, 8, 6, true);
	assert_int_equal(resume(&t), 5);
	teardown(&t);
}

static void e1101_golden_6_fragments_then_compaction_without_header(void **state)
{
	struct table		      t;
	struct vd_etcd_watch_response response;

	setup(&t, 0);
	fragment(&t, 0, 8, 6, true);
	fragment(&t, 0, 9, 7, false);
	watch_compacted(t.stream, 0, 20);
	watch_world_run(&t.world);
	assert_status(vd_etcd_watch_next(t.reader.watch, &response, NULL), VD_OK);
	assert_true(response.header.revision == 8 && response.event_count == 2);
	watch_reader_expect(&t.world, &t.reader, "!expired");
	assert_int_equal(watch_reader_end(&t.world, &t.reader).error.compacted, 20);
	teardown(&t);
}

static void e1101_golden_8_progress_without_watches_then_a_leader_stream(void **state)
{
	struct watch_world	world = watch_world_new(1, 0);
	struct watch_reader	reader;
	struct rpc_script_call *plain, *leader;

	assert_status(vd_etcd_request_progress(world.client, NULL, NULL), VD_OK);
	plain = watch_world_stream(&world);
	watch_expect(plain, WATCH_PROGRESS);
	watch_reader_open_request(
		&world, &reader,
		(struct vd_etcd_watch_request) { .key = vd_bytes_of("k"), .require_leader = true });
	leader = watch_world_stream(&world);
	assert_non_null(rpc_script_call_metadata(leader, "hasleader").data);
	assert_null(rpc_script_call_metadata(plain, "hasleader").data);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e262_created_belongs_to_the_oldest_create),
		cmocka_unit_test(e264_a_failed_create_ends_its_watch_alone),
		cmocka_unit_test(e209_a_stream_older_than_its_token_is_opened_anew),
		cmocka_unit_test(e264_created_and_canceled_with_an_id),
		cmocka_unit_test(e264_created_and_compacted_at_once),
		cmocka_unit_test(e264_a_failure_among_several_creates),
		cmocka_unit_test(created_that_nobody_asked_for_is_canceled),
		cmocka_unit_test(a_late_created_is_not_bound_to_a_canceled_id),
		cmocka_unit_test(e265_canceled_by_the_server),
		cmocka_unit_test(e266_canceled_by_compaction_gets_one_cancel),
		cmocka_unit_test(e267_an_unknown_id_gets_one_cancel),
		cmocka_unit_test(e267_unknown_ids_are_remembered_up_to_a_bound),
		cmocka_unit_test(e268_what_came_before_the_loss_is_seen_or_asked_for_again),
		cmocka_unit_test(e270_cancel_is_sent_at_once_and_late_events_are_dropped),
		cmocka_unit_test(e275_fragments_become_one_response),
		cmocka_unit_test(e275_fragments_of_several_ids_do_not_disturb_each_other),
		cmocka_unit_test(e275_fragments_end_with_created_or_canceled),
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
		cmocka_unit_test(an_answer_that_is_no_message_breaks_the_connection),
		cmocka_unit_test(an_empty_answer_is_nothing),
		cmocka_unit_test(e1101_golden_1_canceled_beside_a_sibling),
		cmocka_unit_test(e1101_golden_3_ends_for_good),
		cmocka_unit_test(e1101_golden_4_reconnects),
		cmocka_unit_test(e1101_golden_5_losses_before_any_complete_response),
		cmocka_unit_test(e1101_golden_6_fragments_then_compaction_without_header),
		cmocka_unit_test(e1101_golden_8_progress_without_watches_then_a_leader_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
