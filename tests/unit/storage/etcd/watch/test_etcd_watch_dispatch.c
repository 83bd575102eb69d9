/* Answers in every order, odd ones too: failed creates, cancels, unknown ids, fragments. */
#include <rpc.pb-c.h>

#include "actor_sim.h"
#include "etcd_client_fixture.h"
#include "etcd_watch_pair.h"
#include "etcd_watch_peer.h"
#include "vdtest.h"

/* ---- Created ---- */

static void e262_created_belongs_to_the_oldest_create(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
	watch_put(t.stream, 1, "s", 6);
	watch_put(t.stream, 0, "k", 7);
	watch_reader_expect(&t.world, &t.reader, "7");
	watch_reader_expect(&t.world, &t.sibling, "6");
	watch_pair_close(&t);
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
		struct watch_pair    t;
		struct watch_reader  failing;
		struct vd_etcd_error error;

		watch_pair_open(&t, 0);
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
		watch_pair_close(&t);
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
	struct watch_pair   t;
	struct watch_reader old, silent;

	watch_pair_open(&t, 0);
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
	watch_pair_close(&t);
}

/* Several creates at once, the first of which fails. If its answer has an id, that id is used up; else the
 * next one gets it. Both orders are those of the requests. */
static void e264_a_failed_create_may_use_up_an_id(void **state)
{
	for (int has_id = 0; has_id < 2; has_id++) {
		struct watch_pair   t;
		struct watch_reader refused, second, third;

		watch_pair_open(&t, 0);
		watch_reader_open(&t.world, &refused, "f", 0);
		watch_reader_open(&t.world, &second, "g", 0);
		watch_reader_open(&t.world, &third, "h", 0);
		for (int i = 0; i < 3; i++)
			watch_expect(t.stream, WATCH_CREATE);
		watch_answer(t.stream, &(struct watch_answer) { .id = has_id ? 2 : -1,
								.revision = 6,
								.created = true,
								.canceled = true,
								.reason = "no" });
		watch_created(t.stream, 2 + has_id, 6);
		watch_created(t.stream, 3 + has_id, 6);
		watch_put(t.stream, 2 + has_id, "g", 7);
		watch_put(t.stream, 3 + has_id, "h", 8);
		watch_put(t.stream, 0, "k", 9);
		watch_reader_expect(&t.world, &refused, "!canceled");
		watch_reader_expect(&t.world, &second, "7");
		watch_reader_expect(&t.world, &third, "8");
		watch_reader_expect(&t.world, &t.reader, "9");
		watch_reader_close(&refused);
		watch_reader_close(&second);
		watch_reader_close(&third);
		watch_pair_close(&t);
	}
}

static void e264_created_and_compacted_at_once(void **state)
{
	struct watch_pair   t;
	struct watch_reader old;

	watch_pair_open(&t, 0);
	watch_reader_open(&t.world, &old, "f", 2);
	watch_expect(t.stream, WATCH_CREATE);
	watch_answer(t.stream, &(struct watch_answer) {
				       .id = 2, .created = true, .canceled = true, .compact_revision = 9 });
	watch_reader_expect(&t.world, &old, "!expired");
	assert_int_equal(watch_reader_end(&t.world, &old).error.compacted, 9);
	watch_reader_close(&old);
	watch_pair_close(&t);
}

/* etcd answers failures in their turn, and its header has a revision; a proxy answers them at once,
 * without. */
static void e264_a_failure_among_several_creates(void **state)
{
	for (vd_rev header = 0; header <= 6; header += 6) {
		struct watch_pair   t;
		struct watch_reader first, second;

		watch_pair_open(&t, 0);
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
		watch_pair_close(&t);
	}
}

static void created_that_nobody_asked_for_is_canceled(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
	watch_created(t.stream, 9, 6);
	assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, 9);
	watch_created(t.stream, 0, 6); /* of an established watch: a repetition */
	watch_answer(t.stream,
		     &(struct watch_answer) {
			     .id = -1, .revision = 6, .created = true, .canceled = true, .reason = "x" });
	watch_expect_nothing(&t.world, t.stream);
	watch_put(t.stream, 0, "k", 7);
	watch_reader_expect(&t.world, &t.reader, "7");
	watch_pair_close(&t);
}

/* Events before the creation: the id was unknown and got a cancel, so the watch is created once more. */
static void a_late_created_is_not_bound_to_a_canceled_id(void **state)
{
	struct watch_pair   t;
	struct watch_reader late;

	watch_pair_open(&t, 0);
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
	watch_pair_close(&t);
}

/* ---- Canceled ---- */

static void e265_canceled_by_the_server(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
	watch_put(t.stream, 0, "k", 6);
	watch_canceled(t.stream, 0, 6, "go away");
	watch_reader_expect(&t.world, &t.reader, "6 !canceled");
	assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, 0); /* upstream's clients send it */
	watch_canceled(t.stream, 0, 6, NULL);
	watch_canceled(t.stream, -1, 6, NULL);
	watch_put(t.stream, 1, "s", 7);
	watch_reader_expect(&t.world, &t.sibling, "7");
	watch_expect_nothing(&t.world, t.stream);
	watch_pair_close(&t);
}

static void e266_canceled_by_compaction_gets_one_cancel(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
	watch_compacted(t.stream, 0, 9);
	watch_compacted(t.stream, 0, 9); /* some servers repeat it until they are told (E-334) */
	assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, 0);
	watch_expect_nothing(&t.world, t.stream);
	watch_reader_expect(&t.world, &t.reader, "!expired");
	watch_pair_close(&t);
}

static void e267_an_unknown_id_gets_one_cancel(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
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
	watch_pair_close(&t);
}

static void e267_unknown_ids_are_remembered_up_to_a_bound(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
	for (int64_t id = 100; id < 10100; id++)
		watch_put(t.stream, id, "x", 6);
	watch_put(t.stream, 0, "k", 7);
	watch_reader_expect(&t.world, &t.reader, "7");
	for (int64_t id = 100; id < 10100; id++)
		assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, id);
	watch_pair_close(&t);
}

static void e268_what_came_before_the_loss_is_seen_or_asked_for_again(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
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
	watch_pair_close(&t);
}

static void e270_cancel_is_sent_at_once_and_late_events_are_dropped(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
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
	struct watch_pair	      t;
	struct vd_etcd_watch_response response;

	watch_pair_open(&t, 3);
	watch_pair_fragment(&t, 0, 8, 6, true);
	watch_pair_fragment(&t, 0, 9, 6, true); /* the same revision on both sides of the cut */
	watch_reader_expect(&t.world, &t.reader, "");
	watch_pair_fragment(&t, 0, 9, 7, false);
	watch_world_run(&t.world);
	assert_status(vd_etcd_watch_next(t.reader.watch, &response, NULL), VD_OK);
	assert_int_equal(response.header.revision, 8); /* the first one's */
	assert_int_equal(response.event_count, 3);
	assert_true(response.events[0].kv->sub == 0 && response.events[1].kv->sub == 1 &&
		    response.events[2].kv->sub == 0);
	assert_int_equal(response.events[2].kv->mod_rev, 7);
	watch_reader_expect(&t.world, &t.reader, "");
	watch_pair_close(&t);
}

static void e275_fragments_of_several_ids_do_not_disturb_each_other(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 3);
	watch_pair_fragment(&t, 0, 9, 6, true);
	watch_pair_fragment(&t, 1, 9, 6, true);
	watch_pair_fragment(&t, 0, 9, 7, true);
	watch_progress(t.stream, -1, 9); /* of neither */
	watch_progress(t.stream, 0, 9);
	watch_pair_fragment(&t, 1, 9, 8, false);
	watch_pair_fragment(&t, 0, 9, 9, false);
	watch_reader_expect(&t.world, &t.reader, "6,7,9");
	watch_reader_expect(&t.world, &t.sibling, "6,8");
	watch_pair_close(&t);
}

static void e275_fragments_end_with_created_or_canceled(void **state)
{
	struct watch_pair   t;
	struct watch_reader other;

	watch_pair_open(&t, 3);
	watch_pair_fragment(&t, 0, 9, 6, true);
	watch_reader_open(&t.world, &other, "o", 0); /* a creation between fragments of another */
	watch_expect(t.stream, WATCH_CREATE);
	watch_created(t.stream, 2, 9);
	watch_pair_fragment(&t, 0, 9, 7, false);
	watch_reader_expect(&t.world, &t.reader, "6,7");
	watch_pair_fragment(&t, 0, 9, 8, true);
	watch_compacted(t.stream, 0, 20);
	watch_reader_expect(&t.world, &t.reader, "!expired");
	watch_reader_close(&other);
	watch_pair_close(&t);
}

static void an_answer_that_is_no_message_breaks_the_connection(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
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
	watch_pair_close(&t);
}

static void an_empty_answer_is_nothing(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
	rpc_script_send(t.stream,
			VD_BYTES_NONE); /* id 0, no header, no events: says nothing about any revision */
	watch_put(t.stream, 0, "k", 6);
	watch_reader_expect(&t.world, &t.reader, "6");
	watch_pair_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e262_created_belongs_to_the_oldest_create),
		cmocka_unit_test(e264_a_failed_create_ends_its_watch_alone),
		cmocka_unit_test(e209_a_stream_older_than_its_token_is_opened_anew),
		cmocka_unit_test(e264_created_and_canceled_with_an_id),
		cmocka_unit_test(e264_a_failed_create_may_use_up_an_id),
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
		cmocka_unit_test(an_answer_that_is_no_message_breaks_the_connection),
		cmocka_unit_test(an_empty_answer_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
