/* Watchers of the etcd server without a network: clients that do not read, fragments, order, shared frames,
 * ends. */
#include "etcd_watch_talk.h"

#include "env.h"
#include "rand.h"
#include "serve_watch_state.h"
#include "serve_watches.h"

static void e331_stuck_clients_cost_a_position(void **state)
{
	struct watch_test *test = *state;
	int64_t		   live;
	char		   wanted[64];

	create(test, (struct create) { .key = "k", .previous = true });
	(void) next(test);
	test->call.room = 2;
	put(test, "k", "0");
	put(test, "k", "1");
	put(test, "k", "2");
	live = vdi_alloc_live();
	for (int i = 3; i < 300; i++) {
		(void) snprintf(wanted, sizeof wanted, "%d", i);
		put(test, "k", wanted);
	}
	/* What grows is the store's history: a record and its place, no message. */
	assert_true(vdi_alloc_live() - live < 2 * 297);
	EXPECT(test, "h2 id0 PUT k=0@2");
	EXPECT(test, "h3 id0 PUT k=1@3(was 0@2)");
	EXPECT(test, "nothing");
	etcd_server_call_make_room(&test->call, 1);
	EXPECT(test, "h301 id0 298 events @4..301");
	EXPECT(test, "nothing");
	etcd_server_call_make_room(&test->call, SIZE_MAX);
	put(test, "k", "live");
	EXPECT(test, "h302 id0 PUT k=live@302(was 299@301)");
}

static void e334_what_is_compacted_meanwhile_ends_the_watcher(void **state)
{
	struct watch_test *test = *state;

	create(test, (struct create) { .key = "k" });
	create(test, (struct create) { .key = "other" });
	(void) next(test);
	(void) next(test);
	test->call.room = 0;
	for (int i = 0; i < 10; i++)
		put(test, "k", "v");
	compact(test, 8);
	etcd_server_call_make_room(&test->call, SIZE_MAX);
	EXPECT(test, "h0 id0 canceled compacted 8");
	EXPECT(test, "nothing"); /* the other one was never behind */
	put(test, "other", "1");
	EXPECT(test, "h12 id1 PUT other=1@12");
	cancel(test, 0); /* known until it is canceled */
	EXPECT(test, "h12 id0 canceled");
}

/* A write is answered before the actor of the stream has run; a compaction to its revision waits for it.
 * Streams that cannot send are not waited for. */
static void e328_compaction_ends_no_watcher_that_keeps_up(void **state)
{
	struct watch_test		*test = *state;
	Etcdserverpb__PutRequest	 put_requests[2] = { ETCDSERVERPB__PUT_REQUEST__INIT,
							     ETCDSERVERPB__PUT_REQUEST__INIT };
	Etcdserverpb__CompactionRequest	 request = ETCDSERVERPB__COMPACTION_REQUEST__INIT;
	Etcdserverpb__WatchCreateRequest creation = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
	Etcdserverpb__WatchRequest	 watch = ETCDSERVERPB__WATCH_REQUEST__INIT;
	struct etcd_server_call		 stuck, writes[2], compaction;

	etcd_server_call_init(&stuck, &test->fixture);
	etcd_server_call_open(&stuck, &test->fixture, "/etcdserverpb.Watch/Watch");
	create(test, (struct create) { .key = "k" });
	EXPECT(test, "h1 id0 created");
	creation.key = etcd_bytes("k");
	watch.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
	watch.create_request = &creation;
	etcd_server_call_send(&stuck, &watch.base);
	stuck.room = 0;
	put_requests[0].key = etcd_bytes("k");
	put_requests[0].value = etcd_bytes("v");
	put_requests[1].key = etcd_bytes("other");
	for (int64_t revision = 3; revision < 120; revision += 2) {
		char wanted[64];

		/* Both are published, perhaps in one step; then the compaction races with the stream's
		 * actor. */
		etcd_server_call_post(&writes[0], &test->fixture, "/etcdserverpb.KV/Put",
				      &put_requests[0].base);
		etcd_server_call_post(&writes[1], &test->fixture, "/etcdserverpb.KV/Put",
				      &put_requests[1].base);
		while (!writes[1].is_finished)
			assert_true(vdi_sim_step(test->fixture.env));
		request.revision = revision;
		etcd_server_call_post(&compaction, &test->fixture, "/etcdserverpb.KV/Compact", &request.base);
		(void) vdi_sim_run_until_idle(test->fixture.env);
		assert_true(compaction.is_finished);
		assert_int_equal(compaction.code, 0);
		etcd_server_call_end(&writes[0]);
		etcd_server_call_end(&writes[1]);
		etcd_server_call_end(&compaction);
		(void) snprintf(wanted, sizeof wanted, "h%lld id0 PUT k=v@%lld", (long long) revision - 1,
				(long long) revision - 1);
		EXPECT(test, wanted);
	}
	/* Several at once share the next flush; the stream ends meanwhile. */
	etcd_server_call_post(&writes[0], &test->fixture, "/etcdserverpb.KV/Compact", &request.base);
	request.revision--;
	etcd_server_call_post(&compaction, &test->fixture, "/etcdserverpb.KV/Compact", &request.base);
	etcd_server_call_end(&stuck);
	assert_int_equal(writes[0].code, 11);
	assert_int_equal(compaction.code, 11);
	etcd_server_call_end(&writes[0]);
	etcd_server_call_end(&compaction);
}

/* rules: E-349, E-352. Also when the client does not read for a while: what was on its way may still come
 * before, nothing after. */
static void e349_nothing_comes_after_canceled(void **state)
{
	struct watch_test *test = *state;
	const char	  *text;
	bool		   is_canceled = false;

	create(test, (struct create) { .key = "k" });
	create(test, (struct create) { .key = "k", .id = 5 });
	EXPECT(test, "h1 id0 created");
	EXPECT(test, "h1 id5 created");
	test->call.room = 1;
	for (int i = 0; i < 20; i++)
		put(test, "k", "1");
	cancel(test, 0);
	put(test, "k", "2");
	etcd_server_call_make_room(&test->call, 1000);
	(void) vdi_sim_run_until_idle(test->fixture.env);
	put(test, "k", "3");
	while (strcmp(text = next(test), "nothing") != 0) {
		if (strstr(text, " id0 ") && is_canceled)
			fail_msg("behind the end: %s", text);
		is_canceled = is_canceled || strstr(text, " id0 canceled");
		if (strstr(text, "k=3"))
			assert_non_null(strstr(text, " id5 "));
	}
	assert_true(is_canceled);
}

/* kube-apiserver ends a watch when one is missing. */
static void e615_all_but_creations_have_the_previous_value(void **state)
{
	struct watch_test *test = *state;

	put(test, "p/a", "1");
	create(test, (struct create) { .key = "p/", .end = "p0", .previous = true, .start = 2 });
	EXPECT(test, "h2 id0 created");
	EXPECT(test, "h2 id0 PUT p/a=1@2");
	put(test, "p/a", "2");
	EXPECT(test, "h3 id0 PUT p/a=2@3(was 1@2)");
	etcd_server_delete(&test->fixture, "p/a");
	EXPECT(test, "h4 id0 DELETE p/a@4(was 2@3)");
	put(test, "p/a", "3");
	EXPECT(test, "h5 id0 PUT p/a=3@5");
	/* The same from history. */
	create(test, (struct create) { .key = "p/", .end = "p0", .previous = true, .start = 3 });
	EXPECT(test, "h5 id1 created");
	EXPECT(test, "h5 id1 PUT p/a=2@3(was 1@2) DELETE p/a@4(was 2@3) PUT p/a=3@5");
}

static void e310_control_answers_wait_for_room_and_requests_for_them(void **state)
{
	struct watch_test *test = *state;

	test->call.room = 0;
	create(test, (struct create) { .key = "k" });
	assert_int_equal(test->call.wanted, 0);
	put(test, "k", "1");
	etcd_server_call_make_room(&test->call, 1);
	EXPECT(test, "h1 id0 created"); /* and nothing before it (E-315) */
	assert_int_equal(test->call.wanted, 1);
	etcd_server_call_make_room(&test->call, SIZE_MAX);
	EXPECT(test, "h2 id0 PUT k=1@2");
}

static void put_big(struct watch_test *test, const char *key, size_t size)
{
	Etcdserverpb__PutRequest request = ETCDSERVERPB__PUT_REQUEST__INIT;
	uint8_t			*value = calloc(1, size);

	request.key = etcd_bytes(key);
	request.value = (ProtobufCBinaryData) { size, value };
	protobuf_c_message_free_unpacked(etcd_server_ask(&test->fixture, NULL, "/etcdserverpb.KV/Put",
							 &request.base,
							 &etcdserverpb__put_response__descriptor),
					 NULL);
	free(value);
}

/* An event that is larger than a fragment may be comes by itself: no limit is on what one change is. */
static void e345_a_larger_event_is_alone(void **state)
{
	struct watch_test *test = *state;

	put_big(test, "b", 1200000);
	create(test,
	       (struct create) { .key = "a", .end = "z", .start = 2, .previous = true, .fragment = true });
	EXPECT(test, "h2 id0 created");
	EXPECT(test, "h2 id0 PUT b@2");
	test->call.room = 0;
	put_big(test, "a", 10);
	put_big(test, "b", 1200000);
	put_big(test, "c", 10);
	etcd_server_call_make_room(&test->call, SIZE_MAX);
	for (int i = 0; i < 3; i++) {
		Etcdserverpb__WatchResponse *response = etcd_server_call_next(&test->call);

		assert_non_null(response);
		assert_int_equal(response->n_events, 1);
		assert_int_equal(response->events[0]->kv->mod_revision, 3 + i);
		assert_int_equal(response->fragment, i < 2);
		assert_int_equal(response->header->revision, 5);
		ETCD_FREE(response);
	}
	EXPECT(test, "nothing");
}

static void e345_fragments(void **state)
{
	struct watch_test *test = *state;

	for (int i = 0; i < 5; i++)
		put_big(test, "k", 1000000);
	create(test, (struct create) { .key = "k", .start = 2, .fragment = true });
	EXPECT(test, "h6 id0 created");
	EXPECT(test, "h6 id0 fragment PUT k@2 PUT k@3");
	EXPECT(test, "h6 id0 fragment PUT k@4 PUT k@5");
	EXPECT(test, "h6 id0 PUT k@6");
	/* Stuck between two fragments: it goes on where it stopped. */
	test->call.room = 2;
	create(test, (struct create) { .key = "k", .start = 2, .fragment = true });
	EXPECT(test, "h6 id1 created");
	EXPECT(test, "h6 id1 fragment PUT k@2 PUT k@3");
	EXPECT(test, "nothing");
	etcd_server_call_make_room(&test->call, SIZE_MAX);
	EXPECT(test, "h6 id1 fragment PUT k@4 PUT k@5");
	EXPECT(test, "h6 id1 PUT k@6");
}

/* The least interval is 100 ms; each stream's own is up to a tenth longer, so that not all of them speak at
 * once. */
static void e301_the_interval_of_progress_has_a_least_and_a_jitter(void **state)
{
	struct vdi_etcdserver_options options = { .progress_interval = VD_MS(10) };
	struct watch_test	      test;
	int64_t			      least = INT64_MAX, most = 0;

	(void) state;
	etcd_server_fixture_open(&test.fixture, NULL);
	assert_int_equal(test.fixture.server->options.progress_interval.ns, VD_SECONDS(600).ns);
	etcd_server_fixture_close(&test.fixture);
	etcd_server_fixture_open(&test.fixture, &options);
	for (int i = 0; i < 20; i++) {
		int64_t waited_ms = 0;

		open_stream(&test);
		create(&test, (struct create) { .key = "k", .notify = true });
		EXPECT(&test, "h1 id0 created");
		while (test.call.taken == test.call.count) {
			assert_true(++waited_ms < 1000);
			vdi_sim_advance(test.fixture.env, VD_MS(1));
		}
		EXPECT(&test, "h1 id0");
		least = VDI_MIN(least, waited_ms);
		most = VDI_MAX(most, waited_ms);
		etcd_server_call_end(&test.call);
	}
	assert_in_range(least, 100, 104);
	assert_in_range(most, 106, 111);
	etcd_server_fixture_close(&test.fixture);
}

/* An answer is cut where it would reach 2 MiB (what a request may be, and 512 KiB), and not below. */
static void e301_fragments_begin_where_a_request_ends(void **state)
{
	struct watch_test *test = *state;

	put_big(test, "a", 1000000);
	put_big(test, "a", 1097000);
	put_big(test, "b", 1000000);
	put_big(test, "b", 1097200);
	create(test, (struct create) { .key = "a", .start = 2, .fragment = true });
	EXPECT(test, "h5 id0 created");
	EXPECT(test, "h5 id0 PUT a@2 PUT a@3");
	create(test, (struct create) { .key = "b", .start = 2, .fragment = true });
	EXPECT(test, "h5 id1 created");
	EXPECT(test, "h5 id1 fragment PUT b@4");
	EXPECT(test, "h5 id1 PUT b@5");
}

/* Key, end, filters, and what was before: of one that was given back while its client did not read, too. */
static void e325_a_watcher_that_was_put_aside_is_the_same_afterwards(void **state)
{
	struct watch_test *test = *state;
	char		   got[3][512] = { 0 };

	create(test, (struct create) { .key = "b", .end = "d", .previous = true, .no_put = true });
	create(test, (struct create) { .key = "c", .end = "\0", .end_size = 1, .no_delete = true });
	create(test, (struct create) { .key = "c" });
	for (int i = 0; i < 3; i++)
		(void) next(test);
	test->call.room = 0;
	for (int i = 0; i < 2; i++) {
		put(test, "a", "1");
		put(test, "c", "2");
		put(test, "e", "3");
		etcd_server_delete(&test->fixture, "c");
		etcd_server_delete(&test->fixture, "e");
	}
	etcd_server_call_make_room(&test->call, SIZE_MAX);
	for (Etcdserverpb__WatchResponse *response;
	     (response = etcd_server_call_next(&test->call)) != NULL;) {
		for (size_t i = 0; i < response->n_events; i++) {
			size_t size = strlen(got[response->watch_id]);

			describe_event(got[response->watch_id] + size, sizeof got[0] - size,
				       response->events[i]);
		}
		ETCD_FREE(response);
	}
	assert_string_equal(got[0], " DELETE c@5(was 2@3) DELETE c@10(was 2@8)");
	assert_string_equal(got[1], " PUT c=2@3 PUT e=3@4 PUT c=2@8 PUT e=3@9");
	assert_string_equal(got[2], " PUT c=2@3 DELETE c@5 PUT c=2@8 DELETE c@10");
}

static void delete_all(struct watch_test *test)
{
	Etcdserverpb__DeleteRangeRequest request = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;

	request.key = request.range_end = (ProtobufCBinaryData) { 1, (uint8_t *) (uintptr_t) "" };
	ETCD_FREE(ETCD_ASK(&test->fixture, "KV/DeleteRange", &request, delete_range_response));
}

/* One revision is one answer for who did not ask for fragments, however large: to refuse it is the client's
 * affair. */
static void e346_a_revision_is_one_message_for_who_wants_no_fragments(void **state)
{
	struct watch_test *test = *state;

	put_big(test, "a", 1000000);
	put_big(test, "b", 1000000);
	put_big(test, "c", 1000000);
	create(test, (struct create) { .key = "a", .end = "z", .previous = true });
	create(test, (struct create) { .key = "a", .end = "z", .previous = true, .fragment = true });
	(void) next(test);
	(void) next(test);
	delete_all(test);
	for (int i = 0; i < 3; i++) {
		Etcdserverpb__WatchResponse *response = etcd_server_call_next(&test->call);

		assert_non_null(response);
		assert_int_equal(response->n_events, response->watch_id == 0 ? 3 :
						     response->fragment	     ? 2 :
									       1);
		assert_true(response->watch_id == 1 || !response->fragment);
		ETCD_FREE(response);
	}
	EXPECT(test, "nothing");
}

/* Upstream keeps what comes before Created and sends it whole; here it is cut as well. rules: E-1008 */
static void e347_what_waits_for_created_is_cut_too(void **state)
{
	struct watch_test *test = *state;

	for (int i = 0; i < 3; i++)
		put_big(test, "k", 1000000);
	test->call.room = 0;
	create(test, (struct create) { .key = "k", .start = 2, .fragment = true });
	put_big(test, "k", 1000000);
	etcd_server_call_make_room(&test->call, SIZE_MAX);
	EXPECT(test, "h4 id0 created");
	EXPECT(test, "h5 id0 fragment PUT k@2 PUT k@3");
	EXPECT(test, "h5 id0 PUT k@4 PUT k@5");
	EXPECT(test, "nothing");
}

/* One watch of the random stream below, where every revision is one event of every watch. */
struct followed {
	bool	is_open;
	bool	is_canceled;
	bool	is_from_start;
	int64_t last; /* revision */
};

/* Created before all of a watch, each revision once and in order, progress when all before it is there,
 * nothing behind canceled. */
static void follow(struct followed *watches, size_t count, const Etcdserverpb__WatchResponse *response)
{
	struct followed *watch = &watches[VDI_MAX(response->watch_id, 0)];

	assert_true(response->watch_id >= -1 && response->watch_id < (int64_t) count);
	if (response->watch_id == -1) {
		assert_int_equal(response->n_events, 0);
		for (size_t i = 0; i < count; i++)
			if (watches[i].is_open && !watches[i].is_canceled)
				assert_true(watches[i].last >= response->header->revision);
		return;
	}
	if (response->created) {
		assert_false(watch->is_open);
		watch->is_open = true;
		watch->last = watch->is_from_start ? 1 : response->header->revision;
		return;
	}
	assert_true(watch->is_open && !watch->is_canceled);
	watch->is_canceled = response->canceled;
	for (size_t i = 0; i < response->n_events; i++)
		assert_int_equal(response->events[i]->kv->mod_revision, ++watch->last);
	if (response->n_events == 0 && !response->canceled) /* progress of its own */
		assert_int_equal(response->header->revision, watch->last);
}

static void follow_all(struct watch_test *test, struct followed *watches, size_t count)
{
	for (Etcdserverpb__WatchResponse *response;
	     (response = etcd_server_call_next(&test->call)) != NULL;) {
		follow(watches, count, response);
		ETCD_FREE(response);
	}
}

/* rules: E-330, E-348, E-355, E-356. The client reads and stops reading, asks for progress, creates and
 * cancels, as it likes. */
static void e348_e355_the_order_of_each_watch_holds_whatever_goes_first(void **state)
{
	struct watch_test *test = *state;
	struct vdi_rand	   rand;

	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct followed watches[64] = { 0 };
		size_t		count = 0;

		vdi_rand_init(&rand, seed);
		etcd_server_call_end(&test->call);
		open_stream(test);
		for (int step = 0; step < 150; step++) {
			uint64_t what = vdi_rand_below(&rand, 10);

			if (what == 0 && count < VDI_ARRAY_SIZE(watches) && test->call.wanted) {
				watches[count].is_from_start = vdi_rand_below(&rand, 2) == 0;
				create(test, (struct create) { .key = "k",
							       .end = "m",
							       .start = watches[count].is_from_start ? 2 : 0,
							       .notify = vdi_rand_below(&rand, 2) == 0 });
				count++;
			} else if (what == 1 && test->call.wanted)
				progress(test);
			else if (what == 2 && count && test->call.wanted && vdi_rand_below(&rand, 3) == 0)
				cancel(test, (int64_t) vdi_rand_below(&rand, count));
			else if (what < 6)
				put(test, vdi_rand_below(&rand, 2) ? "k" : "l", "v");
			else if (what == 6)
				test->call.room = vdi_rand_below(&rand, 3);
			else if (what == 7)
				etcd_server_call_make_room(&test->call, 1 + vdi_rand_below(&rand, 5));
			else if (what == 8)
				vdi_sim_advance(test->fixture.env, VD_MS(4000));
			follow_all(test, watches, count);
		}
		etcd_server_call_make_room(&test->call, SIZE_MAX);
		follow_all(test, watches, count);
		put(test, "k", "the last");
		follow_all(test, watches, count);
		for (size_t i = 0; i < count; i++)
			if (watches[i].is_open && !watches[i].is_canceled)
				assert_int_equal(watches[i].last, vdi_serve_revision(test->fixture.server));
		assert_false(test->call.is_finished);
	}
}

/* The store has a message for it, the transport no memory: the client hears of it. */
static void a_message_that_cannot_be_sent_ends_the_stream(void **state)
{
	struct watch_test *test = *state;

	create(test, (struct create) { .key = "k" });
	EXPECT(test, "h1 id0 created");
	test->call.failure = VD_NOMEM;
	put(test, "k", "1");
	assert_true(test->call.is_finished);
	assert_int_equal(test->call.code, 8);
}

static void e1005_watchers_of_the_same_events_share_a_frame(void **state)
{
	struct watch_test	     *test = *state;
	struct vdi_serve_watch_counts before;
	struct vdi_serve_watch_counts after;

	for (int i = 0; i < 100; i++)
		create(test, (struct create) { .key = i % 2 ? "k" : "a", .end = i % 2 ? NULL : "z" });
	vdi_serve_watches_counts(test->fixture.server->watches, &before);
	put(test, "k", "1");
	vdi_serve_watches_counts(test->fixture.server->watches, &after);
	assert_int_equal(after.watchers, 100);
	assert_int_equal(after.events - before.events, 100);
	assert_int_equal(after.frames - before.frames, 1);
}

/* One transaction, in this order. */
static void put_together(struct watch_test *test, const char *const *keys, size_t count)
{
	Etcdserverpb__TxnRequest  request = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__PutRequest *puts = calloc(count, sizeof *puts);
	Etcdserverpb__RequestOp	 *ops = calloc(count, sizeof *ops);
	Etcdserverpb__RequestOp **list = calloc(count, sizeof(void *));

	for (size_t i = 0; i < count; i++) {
		etcdserverpb__put_request__init(&puts[i]);
		etcdserverpb__request_op__init(&ops[i]);
		puts[i].key = etcd_bytes(keys[i]);
		ops[i].request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
		ops[i].request_put = &puts[i];
		list[i] = &ops[i];
	}
	request.success = list;
	request.n_success = count;
	protobuf_c_message_free_unpacked(etcd_server_ask(&test->fixture, NULL, "/etcdserverpb.KV/Txn",
							 &request.base,
							 &etcdserverpb__txn_response__descriptor),
					 NULL);
	free(list);
	free(ops);
	free(puts);
}

/* A transaction in two fragments, of which the second one does not fit, again and again: it comes once, and
 * whole. */
static void e345_a_fragment_waits_for_room_as_often_as_it_must(void **state)
{
	struct watch_test	*test = *state;
	Etcdserverpb__TxnRequest request = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__PutRequest puts[3];
	Etcdserverpb__RequestOp	 ops[3], *list[3];
	static const char *const keys[] = { "k1", "k2", "k3" };
	uint8_t			*value = calloc(1, 450000);

	for (size_t i = 0; i < 3; i++) {
		etcdserverpb__put_request__init(&puts[i]);
		etcdserverpb__request_op__init(&ops[i]);
		puts[i].key = etcd_bytes(keys[i]);
		puts[i].value = (ProtobufCBinaryData) { 450000, value };
		ops[i].request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
		ops[i].request_put = &puts[i];
		list[i] = &ops[i];
	}
	request.success = list;
	request.n_success = 3;
	for (int i = 0; i < 2; i++)
		ETCD_FREE(ETCD_ASK(&test->fixture, "KV/Txn", &request, txn_response));
	test->call.room = 2;
	create(test,
	       (struct create) { .key = "k", .end = "l", .start = 3, .previous = true, .fragment = true });
	EXPECT(test, "h3 id0 created");
	EXPECT(test, "h3 id0 fragment PUT k1@3(was @2) PUT k2@3(was @2)");
	for (int i = 0; i < 5; i++) {
		etcd_server_call_make_room(&test->call, 0);
		EXPECT(test, "nothing");
	}
	etcd_server_call_make_room(&test->call, SIZE_MAX);
	EXPECT(test, "h3 id0 PUT k3@3(was @2)");
	EXPECT(test, "nothing");
	etcd_server_delete(&test->fixture, "k1");
	EXPECT(test, "h4 id0 DELETE k1@4(was @3)");
	free(value);
}

/* As many watchers of one stream as are allowed; one more is refused by itself, and one that ends makes
 * room. */
static void a_stream_has_a_limit_of_watchers(void **state)
{
	struct watch_test *test = *state;

	test->fixture.server->options.watchers_max = 3;
	for (int i = 0; i < 3; i++)
		create(test, (struct create) { .key = "k" });
	EXPECT(test, "h1 id0 created");
	EXPECT(test, "h1 id1 created");
	EXPECT(test, "h1 id2 created");
	create(test, (struct create) { .key = "k" });
	EXPECT(test, "h1 id-1 created canceled reason etcdserver: too many requests");
	cancel(test, 1);
	EXPECT(test, "h1 id1 canceled");
	create(test, (struct create) { .key = "k" });
	EXPECT(test, "h1 id3 created");
	assert_false(test->call.is_finished);
}

/* The periodic notice of a watcher, and the answer to a request for progress of all: neither brings the
 * other. */
static void e343_a_notice_comes_once(void **state)
{
	struct watch_test *test = *state;

	create(test, (struct create) { .key = "k", .notify = true });
	EXPECT(test, "h1 id0 created");
	vdi_sim_advance(test->fixture.env, VD_SECONDS(12));
	EXPECT(test, "h1 id0");
	EXPECT(test, "nothing");
	for (int i = 0; i < 3; i++) {
		progress(test);
		EXPECT(test, "h1 id-1");
		EXPECT(test, "nothing");
	}
	vdi_sim_advance(test->fixture.env, VD_SECONDS(11));
	EXPECT(test, "h1 id0");
	EXPECT(test, "nothing");
}

/* A request that is no message ends the stream, wherever in it the damage is. */
static void requests_that_cannot_be_read(void **state)
{
	static const struct {
		const char *bytes;
		size_t	    size;
	} rows[] = {
		{ "\x0a\x7f", 2 },	       /* the request */
		{ "\x0a\x02\x0a\x7f", 4 },     /* a creation */
		{ "\x0a\x03\x2a\x01\x80", 5 }, /* its packed filters */
	};
	struct watch_test *test = *state;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		etcd_server_call_end(&test->call);
		open_stream(test);
		etcd_server_call_send_bytes(&test->call, rows[i].bytes, rows[i].size);
		EXPECT(test, "nothing");
		assert_true(test->call.is_finished);
		assert_int_equal(test->call.code, VDI_RPC_INTERNAL);
	}
}

static void e1005_a_large_transaction_is_encoded_once(void **state)
{
	struct watch_test	     *test = *state;
	struct vdi_serve_watch_counts before;
	struct vdi_serve_watch_counts after;
	const char		     *keys[100];
	char			      texts[100][8];

	for (int i = 0; i < 100; i++) {
		snprintf(texts[i], sizeof texts[i], "k%02d", i);
		keys[i] = texts[i];
		create(test, (struct create) { .key = i % 2 ? "k" : "a", .end = "z" });
	}
	vdi_serve_watches_counts(test->fixture.server->watches, &before);
	put_together(test, keys, 100);
	vdi_serve_watches_counts(test->fixture.server->watches, &after);
	assert_int_equal(after.events - before.events, 100 * 100);
	assert_int_equal(after.frames - before.frames, 1);
}

/* As many events as one frame may share, and one more: each watcher then makes its own. */
static void e1005_frames_of_many_events_are_not_kept(void **state)
{
	struct watch_test	     *test = *state;
	struct vdi_serve_watches     *watches = test->fixture.server->watches;
	struct vdi_serve_watch_counts before, after;
	static struct vd_store_event  events[VDI_WATCH_FRAME_EVENTS_MAX + 1];
	struct vd_kv		     *kv;

	assert_status(vd_kv_new(vd_bytes_of("k"), VD_BYTES_NONE, &kv), VD_OK);
	kv->mod_rev = kv->create_rev = 2;
	kv->version = 1;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(events); i++)
		events[i].kv = kv;
	for (size_t count = VDI_WATCH_FRAME_EVENTS_MAX - 1; count <= VDI_WATCH_FRAME_EVENTS_MAX + 1;
	     count++) {
		struct vdi_watch_frame frame = { .events = events, .event_count = count, .revision = 2 };
		struct vdi_rpc_blob   *blobs[2];

		vdi_serve_watches_counts(watches, &before);
		for (int i = 0; i < 2; i++)
			assert_status(vdi_serve_watches_frame(watches, &frame, &blobs[i]), VD_OK);
		vdi_serve_watches_counts(watches, &after);
		assert_int_equal(after.frames - before.frames, count > VDI_WATCH_FRAME_EVENTS_MAX ? 2 : 1);
		assert_int_equal(blobs[0] == blobs[1], count <= VDI_WATCH_FRAME_EVENTS_MAX);
		for (int i = 0; i < 2; i++)
			(void) vdi_rpc_blob_unref(blobs[i]);
	}
	vd_kv_unref(kv);
}

/* A backlog of revisions of several events each is cut into messages between revisions, never within one. */
static void e346_a_backlog_is_cut_between_revisions(void **state)
{
	struct watch_test *test = *state;
	int64_t		   last = 0;
	size_t		   messages = 0, events = 0;

	for (int i = 0; i < 6; i++) {
		put_big(test, "a", 60000); /* which the next event of it shows as its previous value */
		put_together(test, (const char *const[]) { "a", "b", "c" }, 3);
	}
	create(test, (struct create) { .key = "a", .end = "z", .start = 2, .previous = true });
	EXPECT(test, "h13 id0 created");
	for (Etcdserverpb__WatchResponse *response; (response = etcd_server_call_next(&test->call)) != NULL;
	     messages++) {
		assert_false(response->fragment);
		assert_true(response->n_events > 0);
		assert_true(response->events[0]->kv->mod_revision > last);
		last = response->events[response->n_events - 1]->kv->mod_revision;
		events += response->n_events;
		ETCD_FREE(response);
	}
	assert_int_equal(last, 13);
	assert_int_equal(events, 6 * 4);
	assert_in_range(messages, 4, 7);
}

/* As many events, the same first one, the same last one. */
static void e1005_events_that_differ_in_the_middle_share_nothing(void **state)
{
	struct watch_test *test = *state;

	create(test, (struct create) { .key = "a", .end = "l" });
	create(test, (struct create) { .key = "k", .end = "n" });
	EXPECT(test, "h1 id0 created");
	EXPECT(test, "h1 id1 created");
	put_together(test, (const char *const[]) { "k1", "a5", "m5", "k2" }, 4);
	EXPECT(test, "h2 id0 PUT k1@2 PUT a5@2 PUT k2@2");
	EXPECT(test, "h2 id1 PUT k1@2 PUT m5@2 PUT k2@2");
}

static void e351_nothing_is_left_of_an_ended_stream(void **state)
{
	struct watch_test	     *test = *state;
	struct vdi_serve_watch_counts counts;

	for (int i = 0; i < 10; i++)
		put(test, "k", "1");
	for (int i = 0; i < 50; i++)
		create(test, (struct create) { .key = "k", .start = i % 3 });
	test->call.room = 0;
	put(test, "k", "1");
	etcd_server_call_end(&test->call);
	vdi_serve_watches_counts(test->fixture.server->watches, &counts);
	assert_int_equal(counts.watchers, 0);
	assert_int_equal(counts.slow_watchers, 0);
	assert_int_equal(counts.streams, 0);
	open_stream(test);
}

static void stopping_ends_streams_with_a_status(void **state)
{
	struct watch_test *test = *state;

	create(test, (struct create) { .key = "k" });
	vdi_etcdserver_stop(test->fixture.server);
	(void) vdi_sim_run_until_idle(test->fixture.env);
	assert_true(test->call.is_finished);
	assert_int_equal(test->call.code, 14);
	assert_string_equal(test->call.text, "etcdserver: server stopped");
}

/* Every allocation fails in turn while a watcher is made and gets an event: the stream ends with a reason, or
 * nothing is missing. */
static void torture_watch(void **state)
{
	struct watch_test *test = *state;
	bool		   done = false;

	for (uint64_t nth = 1; !done && nth < 300; nth++) {
		static const uint8_t request[] = { 0x0a, 5, 0x0a, 1, 'k', 0x30, 1 };

		etcd_server_call_end(&test->call);
		etcd_server_call_init(&test->call, &test->fixture);
		(void) vdi_alloc_fail_nth(nth, 1);
		etcd_server_call_open(&test->call, &test->fixture, "/etcdserverpb.Watch/Watch");
		if (!test->call.is_finished)
			etcd_server_call_send_bytes(&test->call, request, sizeof request);
		done = !vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		if (test->call.is_finished) {
			assert_int_equal(test->call.code, 8);
			continue;
		}
		put(test, "k", "1");
		assert_true(test->call.count == 2 ||
			    (test->call.count == 1 && strstr(next(test), "canceled")));
	}
	assert_true(done);
}

/* Clients choose the ids of their watches: no choice makes a stream's table a list. */
static void chosen_ids_do_not_collide(void **state)
{
	struct vdi_watch_stream stream = { .seed = 7 };
	static bool		seen[8192];
	unsigned		distinct = 0;

	(void) state;
	for (int64_t i = 0; i < 4096; i++) {
		bool *one = &seen[vdi_serve_watcher_hash(&stream, i << 32) % 8192];

		distinct += !*one;
		*one = true;
	}
	assert_in_range(distinct, 2500, 4096);
}

/* Watchers of the same events with and without previous records: each kind is encoded once, and neither sees
 * what the other wants. */
static void e1005_with_and_without_previous_records_are_two_frames(void **state)
{
	struct watch_test	     *test = *state;
	struct vdi_serve_watch_counts before;
	struct vdi_serve_watch_counts after;

	put(test, "k", "1");
	for (int i = 0; i < 10; i++) {
		create(test, (struct create) { .key = "k", .previous = i % 2 == 0 });
		(void) next(test);
	}
	vdi_serve_watches_counts(test->fixture.server->watches, &before);
	put(test, "k", "2");
	vdi_serve_watches_counts(test->fixture.server->watches, &after);
	assert_int_equal(after.events - before.events, 10);
	assert_int_equal(after.frames - before.frames, 2);
	for (int i = 0; i < 10; i++) {
		Etcdserverpb__WatchResponse *response = etcd_server_call_next(&test->call);

		assert_non_null(response);
		assert_int_equal(response->n_events, 1);
		assert_int_equal(response->events[0]->prev_kv != NULL, response->watch_id % 2 == 0);
		ETCD_FREE(response);
	}
	EXPECT(test, "nothing");
}

/* Events that wait for a watcher when it is canceled are not for the next watcher with its id. */
static void e349_an_id_that_is_used_again_has_none_of_the_old_events(void **state)
{
	struct watch_test *test = *state;

	create(test, (struct create) { .key = "k", .id = 5 });
	EXPECT(test, "h1 id5 created");
	test->call.room = 0;
	put(test, "k", "1");
	put(test, "k", "2");
	cancel(test, 5);
	etcd_server_call_make_room(&test->call, 1);
	create(test, (struct create) { .key = "k", .id = 5 });
	put(test, "k", "3");
	etcd_server_call_make_room(&test->call, SIZE_MAX);
	for (const char *text = next(test); strstr(text, "created") == NULL; text = next(test))
		assert_string_not_equal(text, "nothing");
	EXPECT(test, "h4 id5 PUT k=3@4");
	EXPECT(test, "nothing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chosen_ids_do_not_collide),
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(e349_nothing_comes_after_canceled),
		CASE(e349_an_id_that_is_used_again_has_none_of_the_old_events),
		CASE(e615_all_but_creations_have_the_previous_value),
		CASE(e331_stuck_clients_cost_a_position),
		CASE(e334_what_is_compacted_meanwhile_ends_the_watcher),
		CASE(e328_compaction_ends_no_watcher_that_keeps_up),
		CASE(e310_control_answers_wait_for_room_and_requests_for_them),
		CASE(e345_a_fragment_waits_for_room_as_often_as_it_must),
		CASE(e343_a_notice_comes_once),
		CASE(a_stream_has_a_limit_of_watchers),
		CASE(requests_that_cannot_be_read),
		CASE(e345_a_larger_event_is_alone),
		CASE(e345_fragments),
		cmocka_unit_test(e301_the_interval_of_progress_has_a_least_and_a_jitter),
		CASE(e301_fragments_begin_where_a_request_ends),
		CASE(e325_a_watcher_that_was_put_aside_is_the_same_afterwards),
		CASE(e346_a_revision_is_one_message_for_who_wants_no_fragments),
		CASE(e347_what_waits_for_created_is_cut_too),
		CASE(e348_e355_the_order_of_each_watch_holds_whatever_goes_first),
		CASE(a_message_that_cannot_be_sent_ends_the_stream),
		CASE(e1005_watchers_of_the_same_events_share_a_frame),
		CASE(e346_a_backlog_is_cut_between_revisions),
		CASE(e1005_frames_of_many_events_are_not_kept),
		CASE(e1005_with_and_without_previous_records_are_two_frames),
		CASE(e1005_a_large_transaction_is_encoded_once),
		CASE(e1005_events_that_differ_in_the_middle_share_nothing),
		CASE(e351_nothing_is_left_of_an_ended_stream),
		CASE(stopping_ends_streams_with_a_status),
		CASE(torture_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
