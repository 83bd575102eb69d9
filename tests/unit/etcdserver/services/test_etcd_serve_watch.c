/* The Watch service of the etcd server without a network: the transcript 11.2, ids, progress, compactions. */
#include "etcd_watch_talk.h"

#include "env.h"
#include "serve_watches.h"

static void e1101_watch_transcript(void **state)
{
	struct watch_test *test = *state;

	for (int i = 0; i < 4; i++)
		put(test, "b", "1");
	put(test, "x", "1"); /* revision 6 */
	create(test, (struct create) { .key = "k", .start = -1 });
	EXPECT(test, "h6 id-1 created canceled reason " COMPACTED);
	create(test, (struct create) { .key = "k", .end = "a" });
	EXPECT(test, "h6 id-1 created canceled reason mvcc: watcher range is empty");
	create(test, (struct create) { .key = "k", .previous = true });
	EXPECT(test, "h6 id0 created");
	create(test, (struct create) { .key = "k", .id = 9 });
	EXPECT(test, "h6 id9 created");
	create(test, (struct create) { .key = "k", .id = 9 });
	EXPECT(test, "h6 id-1 created canceled reason mvcc: duplicate watch ID provided on the WatchStream");
	progress(test);
	EXPECT(test, "h6 id-1");
	cancel(test, 9);
	EXPECT(test, "h6 id9 canceled");
	put(test, "k", "1");
	EXPECT(test, "h7 id0 PUT k=1@7");
	etcd_server_delete(&test->fixture, "k");
	EXPECT(test, "h8 id0 DELETE k@8(was 1@7)");
	compact(test, 6);
	create(test, (struct create) { .key = "a", .end = "\0", .end_size = 1, .start = 2 });
	EXPECT(test, "h8 id1 created");
	EXPECT(test, "h0 id1 canceled compacted 6");
	create(test, (struct create) { .key = "a", .end = "\0", .end_size = 1, .start = 6 });
	EXPECT(test, "h8 id2 created");
	EXPECT(test, "h8 id2 PUT x=1@6 PUT k=1@7 DELETE k@8");
	create(test, (struct create) { .key = "fut", .start = 1000 });
	EXPECT(test, "h8 id3 created");
	progress(test);
	cancel(test, 12345);
	EXPECT(test, "nothing");
}

/* Whatever is wrong with it: it says so under no id, and neither the stream nor the watcher 0 is the worse
 * for it. */
static void e313_a_creation_that_fails_concerns_nobody_else(void **state)
{
	struct watch_test  *test = *state;
	const struct create wrong[] = { { .key = "k", .end = "a" },
					{ .key = "k", .id = 7 },
					{ .key = "k", .start = -5 } };

	create(test, (struct create) { .key = "k" });
	EXPECT(test, "h1 id0 created");
	create(test, (struct create) { .key = "other", .id = 7 });
	EXPECT(test, "h1 id7 created");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(wrong); i++) {
		Etcdserverpb__WatchResponse *response;

		create(test, wrong[i]);
		response = etcd_server_call_next(&test->call);
		assert_true(response->created && response->canceled);
		assert_int_equal(response->watch_id, -1);
		assert_true(response->cancel_reason && *response->cancel_reason);
		etcdserverpb__watch_response__free_unpacked(response, NULL);
		EXPECT(test, "nothing");
	}
	put(test, "k", "1");
	EXPECT(test, "h2 id0 PUT k=1@2");
	assert_false(test->call.is_finished);
}

/* Everything that is there already comes after the answer that names the watch, and so does what is written
 * in the same moment. */
static void e315_created_comes_before_every_event(void **state)
{
	struct watch_test *test = *state;

	put(test, "k", "1");
	put(test, "k", "2");
	create(test, (struct create) { .key = "k", .start = 2, .id = 5 });
	put(test, "k", "3");
	EXPECT(test, "h3 id5 created");
	EXPECT(test, "h3 id5 PUT k=1@2 PUT k=2@3");
	EXPECT(test, "h4 id5 PUT k=3@4");
	EXPECT(test, "nothing");
}

static void e316_a_cancel_ends_one_watch(void **state)
{
	struct watch_test *test = *state;

	create(test, (struct create) { .key = "k" });
	create(test, (struct create) { .key = "k" });
	EXPECT(test, "h1 id0 created");
	EXPECT(test, "h1 id1 created");
	put(test, "other", "1");
	cancel(test, 0);
	EXPECT(test, "h2 id0 canceled"); /* no reason, nothing compacted */
	put(test, "k", "1");
	EXPECT(test, "h3 id1 PUT k=1@3");
	cancel(test, 0);
	cancel(test, 99);
	EXPECT(test, "nothing");
	create(test, (struct create) { .key = "k", .id = 77 });
	EXPECT(test, "h3 id77 created");
	assert_false(test->call.is_finished);
}

/* No union at all, an empty one of a future kind, and fields that nobody knows. */
static void was_put(void *arg, vd_status status, const struct vd_txn_result *result,
		    const struct vd_error *error)
{
	(void) arg;
	(void) result;
	(void) error;
	assert_status(status, VD_OK);
}

/* A cancel while an event is on its way, at each step of that way: the event comes before the end or not at
 * all, and the other watch sees every one. */
static void e316_a_cancel_meets_an_event(void **state)
{
	struct watch_test    *test = *state;
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = vd_bytes_of("k"), .value = vd_bytes_of("1") };
	struct vd_txn_request txn = { .success = &op, .success_count = 1 };
	char		      wanted[64];

	create(test, (struct create) { .key = "k", .id = 1 });
	(void) next(test);
	for (int steps = 0; steps < 12; steps++) {
		bool is_canceled = false, is_seen = false;

		create(test, (struct create) { .key = "k", .id = 2 });
		(void) next(test);
		assert_status(vd_store_txn(test->fixture.store, &txn, was_put, NULL), VD_OK);
		for (int i = 0; i < steps; i++)
			(void) vdi_sim_step(test->fixture.env);
		cancel(test, 2);
		(void) vdi_sim_run_until_idle(test->fixture.env);
		(void) snprintf(wanted, sizeof wanted, "h%d id1 PUT k=1@%d", steps + 2, steps + 2);
		for (const char *text; strcmp(text = next(test), "nothing") != 0;) {
			if (strstr(text, "id1")) {
				assert_string_equal(text, wanted);
				is_seen = true;
			} else if (strstr(text, "id2 canceled")) {
				is_canceled = true;
			} else {
				assert_non_null(strstr(text, "id2 PUT k=1"));
				assert_false(is_canceled);
			}
		}
		assert_true(is_seen && is_canceled);
	}
}

static void e318_unknown_requests_are_ignored(void **state)
{
	struct watch_test   *test = *state;
	static const uint8_t unknown_kind[] = { 0x22, 2, 0x08, 1 }, unknown_field[] = { 0xa2, 6, 1, 'x' };

	create(test, (struct create) { .key = "k" });
	EXPECT(test, "h1 id0 created");
	etcd_server_call_send_bytes(&test->call, "", 0);
	etcd_server_call_send_bytes(&test->call, unknown_kind, sizeof unknown_kind);
	etcd_server_call_send_bytes(&test->call, unknown_field, sizeof unknown_field);
	EXPECT(test, "nothing");
	put(test, "k", "1");
	EXPECT(test, "h2 id0 PUT k=1@2");
	assert_false(test->call.is_finished);
}

/* What is no message ends the stream, and what came behind it is not looked at. */
static void e318_a_malformed_request_is_the_last(void **state)
{
	struct watch_test   *test = *state;
	static const uint8_t malformed[] = { 0x0a, 9, 1 };

	create(test, (struct create) { .key = "k" });
	EXPECT(test, "h1 id0 created");
	etcd_server_call_send_bytes(&test->call, malformed, sizeof malformed);
	assert_true(test->call.is_finished);
	assert_int_equal(test->call.code, VDI_RPC_INTERNAL);
	assert_int_equal(test->call.wanted, 0);
	put(test, "k", "1");
	EXPECT(test, "nothing");
}

/* Of created, failed, canceled and progress alike: who answers, and the revision of the moment (next() looks
 * at the cluster). */
static void e320_control_answers_have_whole_headers(void **state)
{
	struct watch_test *test = *state;

	put(test, "k", "1");
	create(test, (struct create) { .key = "a", .notify = true });
	create(test, (struct create) { .key = "b", .end = "a" });
	progress(test);
	put(test, "k", "2");
	cancel(test, 0);
	for (int i = 0; i < 4; i++) {
		Etcdserverpb__WatchResponse *response = etcd_server_call_next(&test->call);

		assert_non_null(response);
		assert_int_equal(response->header->cluster_id, test->fixture.server->cluster_id);
		assert_int_equal(response->header->member_id, test->fixture.server->member_id);
		assert_int_equal(response->header->raft_term, 2);
		assert_int_equal(response->header->revision, i < 3 ? 2 : 3);
		etcdserverpb__watch_response__free_unpacked(response, NULL);
	}
	EXPECT(test, "nothing");
}

/* The header of what is caught up with is where the store stands, not where the batch ends: nobody may take
 * it for progress. */
static void e337_catching_up_says_where_the_store_stands(void **state)
{
	struct watch_test *test = *state;

	for (int i = 0; i < 1200; i++)
		put(test, "k", "v");
	put(test, "other", "1");
	create(test, (struct create) { .key = "k", .start = 2 });
	EXPECT(test, "h1202 id0 created");
	EXPECT(test, "h1202 id0 1000 events @2..1001");
	EXPECT(test, "h1202 id0 200 events @1002..1201");
	EXPECT(test, "nothing");
}

/* A backlog without a match is silence, and then the watch is like any other. */
static void e338_nothing_to_catch_up_with_is_silence(void **state)
{
	struct watch_test *test = *state;

	for (int i = 0; i < 20; i++)
		put(test, "other", "v");
	create(test, (struct create) { .key = "k", .start = 3 });
	EXPECT(test, "h21 id0 created");
	EXPECT(test, "nothing");
	put(test, "k", "1");
	EXPECT(test, "h22 id0 PUT k=1@22");
	progress(test);
	EXPECT(test, "h22 id-1");
}

static void e317_no_watchers_no_progress(void **state)
{
	progress(*state);
	EXPECT(*state, "nothing");
}

static void e319_half_closed_streams_go_on(void **state)
{
	struct watch_test *test = *state;

	create(test, (struct create) { .key = "h" });
	EXPECT(test, "h1 id0 created");
	etcd_server_call_send(&test->call, NULL);
	put(test, "h", "1");
	EXPECT(test, "h2 id0 PUT h=1@2");
	put(test, "h", "2");
	EXPECT(test, "h3 id0 PUT h=2@3");
	assert_false(test->call.is_finished);
	/* The end has its own reason, not that of a canceled watch. */
	vdi_etcdserver_stop(test->fixture.server);
	(void) vdi_sim_run_until_idle(test->fixture.env);
	assert_true(test->call.is_finished);
	assert_string_equal(test->call.text, "etcdserver: server stopped");
}

static void e314_automatic_ids_skip_those_in_use(void **state)
{
	create(*state, (struct create) { .key = "a", .id = 1 });
	EXPECT(*state, "h1 id1 created");
	create(*state, (struct create) { .key = "a" });
	EXPECT(*state, "h1 id0 created");
	create(*state, (struct create) { .key = "a" });
	EXPECT(*state, "h1 id2 created");
	create(*state, (struct create) { .key = "a", .id = -1 });
	EXPECT(*state,
	       "h1 id-1 created canceled reason mvcc: duplicate watch ID provided on the WatchStream");
	cancel(*state, 0);
	EXPECT(*state, "h1 id0 canceled");
	create(*state, (struct create) { .key = "a" });
	EXPECT(*state, "h1 id3 created");
}

static void e339_filters(void **state)
{
	create(*state, (struct create) { .key = "k", .no_put = true });
	create(*state, (struct create) { .key = "k", .no_delete = true });
	create(*state, (struct create) { .key = "k", .no_put = true, .no_delete = true });
	for (int i = 0; i < 3; i++)
		(void) next(*state);
	put(*state, "k", "1");
	EXPECT(*state, "h2 id1 PUT k=1@2");
	etcd_server_delete(&((struct watch_test *) *state)->fixture, "k");
	EXPECT(*state, "h3 id0 DELETE k@3");
	EXPECT(*state, "nothing");
	progress(*state);
	EXPECT(*state, "h3 id-1");
	/* A watcher whose events are all filtered out is told of progress: nothing was sent to it. */
	create(*state, (struct create) { .key = "k", .no_put = true, .no_delete = true, .notify = true });
	EXPECT(*state, "h3 id3 created");
	put(*state, "k", "2");
	EXPECT(*state, "h4 id1 PUT k=2@4");
	vdi_sim_advance(((struct watch_test *) *state)->fixture.env, VD_MS(11500));
	EXPECT(*state, "h4 id3");
	EXPECT(*state, "nothing");
}

/* Filters one by one, as clients before proto3 packed them: each is a number of its own, whatever came before
 * it. */
static void e339_filters_that_are_not_packed(void **state)
{
	struct watch_test   *test = *state;
	static const uint8_t all_but_deletes[] = { 0x0a, 8, 0x0a, 1, 0, 0x12, 1, 0, 0x28, 1 },
			     all_but_puts[] = { 0x0a, 8, 0x0a, 1, 0, 0x12, 1, 0, 0x28, 0 };

	etcd_server_call_send_bytes(&test->call, all_but_deletes, sizeof all_but_deletes);
	etcd_server_call_send_bytes(&test->call, all_but_puts, sizeof all_but_puts);
	EXPECT(test, "h1 id0 created");
	EXPECT(test, "h1 id1 created");
	put(test, "k", "1");
	EXPECT(test, "h2 id0 PUT k=1@2");
	etcd_server_delete(&test->fixture, "k");
	EXPECT(test, "h3 id1 DELETE k@3");
	EXPECT(test, "nothing");
}

static void e329_e343_one_transaction_is_one_answer_and_previous_is_before_it(void **state)
{
	struct watch_test      *test = *state;
	static const uint8_t	txn[] = { 0x12, 8,    0x12, 6,	  0x0a, 1,    'k',  0x12, 1,
					  '2',	0x12, 8,    0x12, 6,	0x0a, 1,    'l',  0x12,
					  1,	'3',  0x12, 5,	  0x1a, 3,    0x0a, 1,	  'm' };
	struct etcd_server_call call;

	put(test, "k", "1");
	put(test, "m", "1");
	create(test, (struct create) { .key = "k", .end = "z", .previous = true });
	(void) next(test);
	etcd_server_call_init(&call, &test->fixture);
	etcd_server_call_open(&call, &test->fixture, "/etcdserverpb.KV/Txn");
	etcd_server_call_send_bytes(&call, txn, sizeof txn);
	etcd_server_call_end(&call);
	EXPECT(test, "h4 id0 PUT k=2@4(was 1@2) PUT l=3@4 DELETE m@4(was 1@3)");
	EXPECT(test, "nothing");
}

/* The transaction deletes the key, makes it again and deletes it again: each deletion has what was there
 * before the transaction, what it made itself has nothing. */
static void e343_previous_is_before_a_transaction_that_makes_a_key_again(void **state)
{
	struct watch_test      *test = *state;
	static const uint8_t	txn[] = { 0x12, 8, 0x1a, 6, 0x0a, 1, 'k', 0x12, 1, 0,
					  0x12, 8, 0x12, 6, 0x0a, 1, 'k', 0x12, 1, '2',
					  0x12, 8, 0x1a, 6, 0x0a, 1, 'k', 0x12, 1, 0 };
	struct etcd_server_call call;

	put(test, "k", "1");
	put(test, "m", "1");
	create(test, (struct create) { .key = "k", .end = "z", .previous = true });
	(void) next(test);
	etcd_server_call_init(&call, &test->fixture);
	etcd_server_call_open(&call, &test->fixture, "/etcdserverpb.KV/Txn");
	etcd_server_call_send_bytes(&call, txn, sizeof txn);
	assert_int_equal(call.code, 0);
	etcd_server_call_end(&call);
	EXPECT(test, "h4 id0 DELETE k@4(was 1@2) DELETE m@4(was 1@3) PUT k=2@4 DELETE k@4(was 1@2)");
}

/* rules: E-1007 */
static void e336_a_backlog_comes_in_batches_of_a_thousand(void **state)
{
	struct watch_test *test = *state;

	for (int i = 0; i < 2500; i++)
		put(test, "k", "v");
	create(test, (struct create) { .key = "k", .start = 2 });
	progress(test);
	EXPECT(test, "h2501 id0 created");
	EXPECT(test, "h2501 id0 1000 events @2..1001");
	EXPECT(test, "h2501 id0 1000 events @1002..2001");
	EXPECT(test, "h2501 id0 500 events @2002..2501");
	EXPECT(test, "h2501 id-1"); /* asked for when it was behind: answered when it is not (E-1007) */
	EXPECT(test, "nothing");
}

static void e340_future_watchers_wait(void **state)
{
	create(*state, (struct create) { .key = "k", .start = 4, .notify = true });
	EXPECT(*state, "h1 id0 created");
	put(*state, "k", "1");
	put(*state, "k", "2");
	vdi_sim_advance(((struct watch_test *) *state)->fixture.env, VD_SECONDS(30));
	EXPECT(*state, "nothing");
	put(*state, "k", "3");
	EXPECT(*state, "h4 id0 PUT k=3@4");
}

static void e350_periodic_progress_of_idle_watchers(void **state)
{
	struct watch_test *test = *state;

	create(test, (struct create) { .key = "k", .notify = true });
	create(test, (struct create) { .key = "k" });
	(void) next(test);
	(void) next(test);
	put(test, "other", "1");
	vdi_sim_advance(test->fixture.env, VD_MS(11500)); /* the interval and its jitter */
	EXPECT(test, "h2 id0");
	EXPECT(test, "nothing");
	put(test, "k", "1");
	EXPECT(test, "h3 id0 PUT k=1@3");
	EXPECT(test, "h3 id1 PUT k=1@3");
	vdi_sim_advance(test->fixture.env, VD_MS(10500)); /* it was busy */
	EXPECT(test, "nothing");
	vdi_sim_advance(test->fixture.env, VD_MS(11500));
	EXPECT(test, "h3 id0");
	/* One in each interval, also when others ask for progress at once meanwhile. */
	for (int i = 0; i < 3; i++) {
		progress(test);
		EXPECT(test, "h3 id-1");
		EXPECT(test, "nothing");
	}
	vdi_sim_advance(test->fixture.env, VD_MS(11500));
	EXPECT(test, "h3 id0");
	EXPECT(test, "nothing");
}

/* Each request has the fault of its row and those of the rows below; an empty key is the key of one zero
 * byte. */
static void e311_the_first_fault_of_a_creation_is_told(void **state)
{
	struct watch_test *test = *state;

	create(test, (struct create) { .key = "k", .id = 9 });
	EXPECT(test, "h1 id9 created");
	create(test, (struct create) { .key = "k", .end = "a", .id = 9, .start = -1 });
	EXPECT(test, "h1 id-1 created canceled reason " COMPACTED);
	create(test, (struct create) { .key = "k", .end = "a", .id = 9 });
	EXPECT(test, "h1 id-1 created canceled reason mvcc: watcher range is empty");
	create(test, (struct create) { .key = "k", .id = 9 });
	EXPECT(test, "h1 id-1 created canceled reason mvcc: duplicate watch ID provided on the WatchStream");
	create(test, (struct create) { .key = "", .end = "b" });
	EXPECT(test, "h1 id0 created");
	put(test, "a", "1");
	EXPECT(test, "h2 id0 PUT a=1@2");
	put(test, "b", "1");
	EXPECT(test, "nothing");
}

/* Requests that meet the end of their stream are not answered. */
static void e358_a_stopped_stream_takes_no_requests(void **state)
{
	struct watch_test	     *test = *state;
	struct watch_test	      other = { .fixture = test->fixture };
	struct vdi_serve_watch_counts counts;

	create(test, (struct create) { .key = "k", .id = 5 });
	EXPECT(test, "h1 id5 created");
	etcd_server_call_init(&other.call, &test->fixture);
	etcd_server_call_open(&other.call, &test->fixture, "/etcdserverpb.Watch/Watch");
	vdi_etcdserver_stop(test->fixture.server);
	cancel(test, 5);
	create(&other, (struct create) { .key = "k" });
	EXPECT(test, "nothing");
	EXPECT(&other, "nothing");
	assert_true(test->call.is_finished && other.call.is_finished);
	assert_string_equal(test->call.text, "etcdserver: server stopped");
	assert_string_equal(other.call.text, "etcdserver: server stopped");
	etcd_server_call_end(&test->call);
	etcd_server_call_end(&other.call);
	vdi_serve_watches_counts(test->fixture.server->watches, &counts);
	assert_int_equal(counts.watchers, 0);
	open_stream(test); /* a new one is refused */
	assert_true(test->call.is_finished);
	assert_string_equal(test->call.text, "etcdserver: server stopped");
}

/* A watcher is slow until it has caught up with the store. */
static void watchers_behind_the_store_are_counted_as_slow(void **state)
{
	struct watch_test	     *test = *state;
	struct vdi_serve_watches     *watches = test->fixture.server->watches;
	struct vdi_serve_watch_counts counts;

	for (int i = 0; i < 3; i++)
		put(test, "k", "1");
	create(test, (struct create) { .key = "k" });
	EXPECT(test, "h4 id0 created");
	vdi_serve_watches_counts(watches, &counts);
	assert_int_equal(counts.watchers, 1);
	assert_int_equal(counts.slow_watchers, 0);
	test->call.room = 1;
	create(test, (struct create) { .key = "k", .start = 2 });
	vdi_serve_watches_counts(watches, &counts);
	assert_int_equal(counts.streams, 1);
	assert_int_equal(counts.watchers, 2);
	assert_int_equal(counts.slow_watchers, 1);
	etcd_server_call_make_room(&test->call, SIZE_MAX);
	vdi_serve_watches_counts(watches, &counts);
	assert_int_equal(counts.watchers, 2);
	assert_int_equal(counts.slow_watchers, 0);
	assert_int_equal(counts.events, 3);
	EXPECT(test, "h4 id1 created");
	EXPECT(test, "h4 id1 PUT k=1@2 PUT k=1@3 PUT k=1@4");
	EXPECT(test, "nothing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(e1101_watch_transcript),
		CASE(e311_the_first_fault_of_a_creation_is_told),
		CASE(e313_a_creation_that_fails_concerns_nobody_else),
		CASE(e315_created_comes_before_every_event),
		CASE(e316_a_cancel_ends_one_watch),
		CASE(e316_a_cancel_meets_an_event),
		CASE(e318_unknown_requests_are_ignored),
		CASE(e318_a_malformed_request_is_the_last),
		CASE(e320_control_answers_have_whole_headers),
		CASE(e337_catching_up_says_where_the_store_stands),
		CASE(e338_nothing_to_catch_up_with_is_silence),
		CASE(e317_no_watchers_no_progress),
		CASE(e319_half_closed_streams_go_on),
		CASE(e314_automatic_ids_skip_those_in_use),
		CASE(e339_filters),
		CASE(e329_e343_one_transaction_is_one_answer_and_previous_is_before_it),
		CASE(e343_previous_is_before_a_transaction_that_makes_a_key_again),
		CASE(e336_a_backlog_comes_in_batches_of_a_thousand),
		CASE(e340_future_watchers_wait),
		CASE(e350_periodic_progress_of_idle_watchers),
		CASE(e339_filters_that_are_not_packed),
		CASE(watchers_behind_the_store_are_counted_as_slow),
		CASE(e358_a_stopped_stream_takes_no_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
