/* The Watch service of the etcd server without a network: the transcript 11.2, ids, progress, and clients that do not read. */
#include "etcd_server_fixture.h"

#include "actor_sim.h"
#include "env.h"
#include "rand.h"
#include "serve_watch_state.h"
#include "serve_watches.h"
#include "vdtest.h"

#define COMPACTED "etcdserver: mvcc: required revision has been compacted"

struct watch_test {
	struct etcd_server_fixture fixture;
	struct etcd_server_call	   call;
};

static void open_stream(struct watch_test *test)
{
	etcd_server_call_init(&test->call, &test->fixture);
	etcd_server_call_open(&test->call, &test->fixture, "/etcdserverpb.Watch/Watch");
}

static int setup(void **state)
{
	struct vdi_etcdserver_options options = { .progress_interval = VD_SECONDS(10) };
	struct watch_test	     *test = malloc(sizeof *test);

	etcd_server_fixture_open(&test->fixture, &options);
	open_stream(test);
	*state = test;
	return 0;
}

static int teardown(void **state)
{
	struct watch_test *test = *state;

	etcd_server_call_end(&test->call);
	etcd_server_fixture_close(&test->fixture);
	free(test);
	return vdi_alloc_live() == 0 ? 0 : -1;
}

/* ---- Requests ---- */

struct create {
	const char *key;
	const char *end;
	size_t	    end_size;
	int64_t	    start;
	int64_t	    id;
	bool	    previous;
	bool	    notify;
	bool	    fragment;
	bool	    no_put;
	bool	    no_delete;
};

static void create(struct watch_test *test, struct create with)
{
	Etcdserverpb__WatchCreateRequest	     body = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
	Etcdserverpb__WatchRequest		     request = ETCDSERVERPB__WATCH_REQUEST__INIT;
	Etcdserverpb__WatchCreateRequest__FilterType filters[2];

	body.key = etcd_bytes(with.key);
	if (with.end)
		body.range_end = (ProtobufCBinaryData) { with.end_size ? with.end_size : strlen(with.end), (uint8_t *) (uintptr_t) with.end };
	body.start_revision = with.start;
	body.watch_id = with.id;
	body.prev_kv = with.previous;
	body.progress_notify = with.notify;
	body.fragment = with.fragment;
	if (with.no_put)
		filters[body.n_filters++] = ETCDSERVERPB__WATCH_CREATE_REQUEST__FILTER_TYPE__NOPUT;
	if (with.no_delete)
		filters[body.n_filters++] = ETCDSERVERPB__WATCH_CREATE_REQUEST__FILTER_TYPE__NODELETE;
	body.filters = filters;
	request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
	request.create_request = &body;
	etcd_server_call_send(&test->call, &request.base);
}

static void cancel(struct watch_test *test, int64_t id)
{
	Etcdserverpb__WatchCancelRequest body = ETCDSERVERPB__WATCH_CANCEL_REQUEST__INIT;
	Etcdserverpb__WatchRequest	 request = ETCDSERVERPB__WATCH_REQUEST__INIT;

	body.watch_id = id;
	request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CANCEL_REQUEST;
	request.cancel_request = &body;
	etcd_server_call_send(&test->call, &request.base);
}

static void progress(struct watch_test *test)
{
	Etcdserverpb__WatchProgressRequest body = ETCDSERVERPB__WATCH_PROGRESS_REQUEST__INIT;
	Etcdserverpb__WatchRequest	   request = ETCDSERVERPB__WATCH_REQUEST__INIT;

	request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_PROGRESS_REQUEST;
	request.progress_request = &body;
	etcd_server_call_send(&test->call, &request.base);
}

static void put(struct watch_test *test, const char *key, const char *value)
{
	etcd_server_put(&test->fixture, key, value);
}

static void compact(struct watch_test *test, int64_t revision)
{
	Etcdserverpb__CompactionRequest request = ETCDSERVERPB__COMPACTION_REQUEST__INIT;

	request.revision = revision;
	protobuf_c_message_free_unpacked(etcd_server_ask(&test->fixture, NULL, "/etcdserverpb.KV/Compact", &request.base,
							 &etcdserverpb__compaction_response__descriptor),
					 NULL);
}

/* ---- Answers, as text: "h6 id0 created", "h7 id0 PUT k=1 @7", ... ---- */

static void describe_event(char *text, size_t size, const Mvccpb__Event *event)
{
	(void) snprintf(text + strlen(text), size - strlen(text), " %s %.*s", event->type == MVCCPB__EVENT__EVENT_TYPE__DELETE ? "DELETE" : "PUT",
			(int) event->kv->key.len, (const char *) event->kv->key.data);
	if (event->kv->value.len && event->kv->value.len < 20)
		(void) snprintf(text + strlen(text), size - strlen(text), "=%.*s", (int) event->kv->value.len, (const char *) event->kv->value.data);
	(void) snprintf(text + strlen(text), size - strlen(text), "@%d", (int) event->kv->mod_revision);
	if (event->prev_kv)
		(void) snprintf(text + strlen(text), size - strlen(text), "(was %.*s@%d)", (int) VDI_MIN(event->prev_kv->value.len, 20), (const char *) event->prev_kv->value.data,
				(int) event->prev_kv->mod_revision);
}

static const char *next(struct watch_test *test)
{
	static char		     text[4096];
	Etcdserverpb__WatchResponse *response = etcd_server_call_next(&test->call);

	if (response == NULL)
		return "nothing";
	assert_non_null(response->header);
	assert_int_equal(response->header->cluster_id, test->fixture.server->cluster_id);
	(void) snprintf(text, sizeof text, "h%d id%d%s%s%s", (int) response->header->revision, (int) response->watch_id, response->created ? " created" : "",
			response->canceled ? " canceled" : "", response->fragment ? " fragment" : "");
	if (response->compact_revision)
		(void) snprintf(text + strlen(text), sizeof text - strlen(text), " compacted %d", (int) response->compact_revision);
	if (response->cancel_reason && *response->cancel_reason)
		(void) snprintf(text + strlen(text), sizeof text - strlen(text), " reason %s", response->cancel_reason);
	if (response->n_events > 5)
		(void) snprintf(text + strlen(text), sizeof text - strlen(text), " %zu events @%d..%d", response->n_events, (int) response->events[0]->kv->mod_revision,
				(int) response->events[response->n_events - 1]->kv->mod_revision);
	for (size_t i = 0; response->n_events <= 5 && i < response->n_events; i++)
		describe_event(text, sizeof text, response->events[i]);
	etcdserverpb__watch_response__free_unpacked(response, NULL);
	return text;
}

#define EXPECT(test, wanted) assert_string_equal(next(test), wanted)

/* ---- The golden transcript 11.2 ---- */

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

/* Whatever is wrong with it: it says so under no id, and neither the stream nor the watcher 0 is the worse for it. */
static void e313_a_creation_that_fails_concerns_nobody_else(void **state)
{
	struct watch_test *test = *state;
	const struct create wrong[] = { { .key = "k", .end = "a" }, { .key = "k", .id = 7 }, { .key = "k", .start = -5 } };

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

/* Everything that is there already comes after the answer that names the watch, and so does what is written in the same moment. */
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
static void e318_unknown_requests_are_ignored(void **state)
{
	struct watch_test    *test = *state;
	static const uint8_t  unknown_kind[] = { 0x22, 2, 0x08, 1 }, unknown_field[] = { 0xa2, 6, 1, 'x' };

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
	struct watch_test    *test = *state;
	static const uint8_t  malformed[] = { 0x0a, 9, 1 };

	create(test, (struct create) { .key = "k" });
	EXPECT(test, "h1 id0 created");
	etcd_server_call_send_bytes(&test->call, malformed, sizeof malformed);
	assert_true(test->call.is_finished);
	assert_int_equal(test->call.code, VDI_RPC_INTERNAL);
	assert_int_equal(test->call.wanted, 0);
	put(test, "k", "1");
	EXPECT(test, "nothing");
}

/* Of created, failed, canceled and progress alike: who answers, and the revision of the moment (next() looks at the cluster). */
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

/* The header of what is caught up with is where the store stands, not where the batch ends: nobody may take it for progress. */
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
	EXPECT(*state, "h1 id-1 created canceled reason mvcc: duplicate watch ID provided on the WatchStream");
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
}

static void e329_e343_one_transaction_is_one_answer_and_previous_is_before_it(void **state)
{
	struct watch_test	  *test = *state;
	static const uint8_t	   txn[] = { 0x12, 8, 0x12, 6, 0x0a, 1, 'k', 0x12, 1, '2', 0x12, 8, 0x12, 6, 0x0a, 1, 'l', 0x12, 1, '3', 0x12, 5, 0x1a, 3, 0x0a, 1, 'm' };
	struct etcd_server_call	   call;

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

/* The transaction deletes the key, makes it again and deletes it again: each deletion has what was there before the transaction, what it made itself has nothing. */
static void e343_previous_is_before_a_transaction_that_makes_a_key_again(void **state)
{
	struct watch_test	*test = *state;
	static const uint8_t	 txn[] = { 0x12, 8, 0x1a, 6, 0x0a, 1, 'k', 0x12, 1, 0, 0x12, 8, 0x12, 6, 0x0a, 1, 'k', 0x12, 1, '2', 0x12, 8, 0x1a, 6, 0x0a, 1, 'k', 0x12, 1, 0 };
	struct etcd_server_call	 call;

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

/* ---- Clients that do not read ---- */

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

/* A write is answered before the actor of the stream has run; a compaction to its revision waits for it. Streams that cannot send are not waited for. */
static void e328_compaction_ends_no_watcher_that_keeps_up(void **state)
{
	struct watch_test	       *test = *state;
	Etcdserverpb__PutRequest	put_requests[2] = { ETCDSERVERPB__PUT_REQUEST__INIT, ETCDSERVERPB__PUT_REQUEST__INIT };
	Etcdserverpb__CompactionRequest request = ETCDSERVERPB__COMPACTION_REQUEST__INIT;
	Etcdserverpb__WatchCreateRequest creation = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
	Etcdserverpb__WatchRequest	watch = ETCDSERVERPB__WATCH_REQUEST__INIT;
	struct etcd_server_call		stuck, writes[2], compaction;

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

		/* Both are published, perhaps in one step; then the compaction races with the stream's actor. */
		etcd_server_call_post(&writes[0], &test->fixture, "/etcdserverpb.KV/Put", &put_requests[0].base);
		etcd_server_call_post(&writes[1], &test->fixture, "/etcdserverpb.KV/Put", &put_requests[1].base);
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
		(void) snprintf(wanted, sizeof wanted, "h%lld id0 PUT k=v@%lld", (long long) revision - 1, (long long) revision - 1);
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

/* rules: E-349, E-352. Also when the client does not read for a while: what was on its way may still come before, nothing after. */
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
	protobuf_c_message_free_unpacked(
		etcd_server_ask(&test->fixture, NULL, "/etcdserverpb.KV/Put", &request.base, &etcdserverpb__put_response__descriptor), NULL);
	free(value);
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

/* ---- Constants, and what is true whatever comes first ---- */

/* The least interval is 100 ms; each stream's own is up to a tenth longer, so that not all of them speak at once. */
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
	for (Etcdserverpb__WatchResponse *response; (response = etcd_server_call_next(&test->call)) != NULL;) {
		for (size_t i = 0; i < response->n_events; i++) {
			size_t size = strlen(got[response->watch_id]);

			describe_event(got[response->watch_id] + size, sizeof got[0] - size, response->events[i]);
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

/* One revision is one answer for who did not ask for fragments, however large: to refuse it is the client's affair. */
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
		assert_int_equal(response->n_events, response->watch_id == 0 ? 3 : response->fragment ? 2 : 1);
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

/* Created before all of a watch, each revision once and in order, progress when all before it is there, nothing behind canceled. */
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
	for (Etcdserverpb__WatchResponse *response; (response = etcd_server_call_next(&test->call)) != NULL;) {
		follow(watches, count, response);
		ETCD_FREE(response);
	}
}

/* rules: E-330, E-348, E-355, E-356. The client reads and stops reading, asks for progress, creates and cancels, as it likes. */
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
				create(test, (struct create) { .key = "k", .end = "m", .start = watches[count].is_from_start ? 2 : 0, .notify = vdi_rand_below(&rand, 2) == 0 });
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

/* ---- Sharing and ending ---- */

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
	Etcdserverpb__TxnRequest request = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__PutRequest *puts = calloc(count, sizeof *puts);
	Etcdserverpb__RequestOp	 *ops = calloc(count, sizeof *ops);
	Etcdserverpb__RequestOp	**list = calloc(count, sizeof(void *));

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
	protobuf_c_message_free_unpacked(
		etcd_server_ask(&test->fixture, NULL, "/etcdserverpb.KV/Txn", &request.base, &etcdserverpb__txn_response__descriptor), NULL);
	free(list);
	free(ops);
	free(puts);
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

/* Every allocation fails in turn while a watcher is made and gets an event: the stream ends with a reason, or nothing is missing. */
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
		assert_true(test->call.count == 2 || (test->call.count == 1 && strstr(next(test), "canceled")));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chosen_ids_do_not_collide),
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(e1101_watch_transcript),
		CASE(e313_a_creation_that_fails_concerns_nobody_else),
		CASE(e349_nothing_comes_after_canceled),
		CASE(e615_all_but_creations_have_the_previous_value),
		CASE(e315_created_comes_before_every_event),
		CASE(e316_a_cancel_ends_one_watch),
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
		CASE(e331_stuck_clients_cost_a_position),
		CASE(e334_what_is_compacted_meanwhile_ends_the_watcher),
		CASE(e328_compaction_ends_no_watcher_that_keeps_up),
		CASE(e310_control_answers_wait_for_room_and_requests_for_them),
		CASE(e345_fragments),
		cmocka_unit_test(e301_the_interval_of_progress_has_a_least_and_a_jitter),
		CASE(e301_fragments_begin_where_a_request_ends),
		CASE(e325_a_watcher_that_was_put_aside_is_the_same_afterwards),
		CASE(e346_a_revision_is_one_message_for_who_wants_no_fragments),
		CASE(e347_what_waits_for_created_is_cut_too),
		CASE(e348_e355_the_order_of_each_watch_holds_whatever_goes_first),
		CASE(a_message_that_cannot_be_sent_ends_the_stream),
		CASE(e1005_watchers_of_the_same_events_share_a_frame),
		CASE(e1005_a_large_transaction_is_encoded_once),
		CASE(e1005_events_that_differ_in_the_middle_share_nothing),
		CASE(e351_nothing_is_left_of_an_ended_stream),
		CASE(stopping_ends_streams_with_a_status),
		CASE(torture_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
