/* The etcd client over real connections, with a server that this test plays (`peers etcd-fake`,
 * tests/peers/etcd_fake.go): the observed behaviour of etcd's own client (golden transcripts of clientv3
 * 3.7.3), and orders of messages that no real server produces.
 *
 * The same rules are tested in the simulator (tests/unit/storage/etcd/watch); here a real transport is
 * between, with another implementation on the other side. Keys and values are base64: YQ== is "a", Yg== "b",
 * Yw== "c".
 */
#include "etcd_fixture.h"
#include "rpc_etcd_options.h"

#define CREATE_A "{\"create_request\":{\"key\":\"YQ==\"}}"
#define CREATE_B "{\"create_request\":{\"key\":\"Yg==\"}}"
#define WATCH "Watch/Watch"

static struct vd_etcd *client;

static int setup(void **state)
{
	(void) state;
	ask("default KV/Range -");
	ask("proxy heal");
	client = fixture_open(NULL, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	client = vd_etcd_close_wait(client);
	return 0;
}

static struct vd_etcd_watch_request of_key(const char *key)
{
	return (struct vd_etcd_watch_request) { .key = vd_bytes_of(key) };
}

static void created(int call, int id, int64_t header)
{
	ask("send %d {\"header\":{\"revision\":\"%lld\"},\"watch_id\":\"%d\",\"created\":true}", call,
	    (long long) header, id);
}

static void event(int call, int id, int64_t header, int64_t revision)
{
	ask("send %d "
	    "{\"header\":{\"revision\":\"%lld\"},\"watch_id\":\"%d\",\"events\":[{\"kv\":{\"key\":\"YQ==\","
	    "\"value\":\"YQ==\",\"mod_revision\":\"%lld\","
	    "\"create_revision\":\"2\",\"version\":\"2\"}}]}",
	    call, (long long) header, id, (long long) revision);
}

static void fragment(int call, int id, int64_t header, int64_t revision)
{
	ask("send %d "
	    "{\"header\":{\"revision\":\"%lld\"},\"watch_id\":\"%d\",\"fragment\":true,\"events\":[{\"kv\":{"
	    "\"key\":\"YQ==\",\"value\":\"YQ==\","
	    "\"mod_revision\":\"%lld\",\"create_revision\":\"2\",\"version\":\"2\"}}]}",
	    call, (long long) header, id, (long long) revision);
}

static void progress(int call, int id, int64_t header)
{
	ask("send %d {\"header\":{\"revision\":\"%lld\"},\"watch_id\":\"%d\"}", call, (long long) header, id);
}

/* Opens a watch of "a", acknowledged by the server as id 0 at revision 5. */
static int open_a(struct watcher *watcher, struct vd_etcd_watch_request request)
{
	int call;

	watcher_open(watcher, client, request);
	call = expect_call(WATCH, NULL);
	ask("message %d", call);
	created(call, 0, 5);
	return call;
}

/* Opens a second one on the same stream, id 1. */
static void open_b(struct watcher *watcher, int call)
{
	watcher_open(watcher, client, of_key("b"));
	expect_message(call, CREATE_B);
	created(call, 1, 5);
}

/* 11.3, 1 */
static void e265_a_watch_that_the_server_cancels_ends_and_its_sibling_lives(void **state)
{
	struct watcher a, b;
	int	       call;

	(void) state;
	call = open_a(&a, of_key("a"));
	open_b(&b, call);
	ask("send %d "
	    "{\"header\":{\"revision\":\"6\"},\"watch_id\":\"0\",\"canceled\":true,\"cancel_reason\":"
	    "\"because\"}",
	    call);
	watcher_expect_end(&a, VD_CANCELED);
	assert_non_null(strstr(a.error.error.message, "because"));
	event(call, 1, 7, 7);
	WATCHER_EXPECT_EVENTS(&b, 7);
	watcher_close(&a);
	watcher_close(&b);
}

/* 11.3, 2: upstream lets the second watch's error leak into the first. */
static void e264_a_failed_creation_ends_that_watch_alone(void **state)
{
	struct watcher a, b;
	int	       call;

	(void) state;
	call = open_a(&a, of_key("a"));
	watcher_open(&b, client, of_key("b"));
	expect_message(call, CREATE_B);
	ask("send %d "
	    "{\"header\":{\"revision\":\"6\"},\"watch_id\":\"-1\",\"created\":true,\"canceled\":true,"
	    "\"cancel_reason\":\"rpc error: code = PermissionDenied desc = "
	    "etcdserver: permission denied\"}",
	    call);
	watcher_expect_end(&b, VD_FORBIDDEN);
	assert_int_equal(b.error.code, VD_ETCD_PERMISSION_DENIED);
	event(call, 0, 7, 7);
	WATCHER_EXPECT_EVENTS(&a, 7);
	ask("send %d {\"header\":{\"revision\":\"8\"},\"watch_id\":\"0\",\"canceled\":true}", call);
	watcher_expect_end(
		&a, VD_TOO_LARGE_REVISION); /* E-234: canceled without a reason; not the sibling's error */
	watcher_close(&a);
	watcher_close(&b);
}

static void halts(int code, const char *text, vd_status wanted, enum vd_etcd_code wanted_code)
{
	struct watcher a, b;
	int	       call = open_a(&a, of_key("a"));

	event(call, 0, 9, 7);
	ask("end %d %d %s", call, code, text);
	WATCHER_EXPECT_EVENTS(&a, 7);
	watcher_expect_end(&a, wanted);
	assert_int_equal(a.error.code, wanted_code);
	/* No stream was opened again: the next one is another watch's. */
	watcher_open(&b, client, of_key("b"));
	call = expect_call(WATCH, NULL);
	expect_message(call, CREATE_B);
	watcher_close(&a);
	watcher_close(&b);
}

/* 11.3, 3 */
static void e254_a_clean_end_of_the_stream_halts(void **state)
{
	(void) state;
	halts(0, "", VD_UNAVAILABLE, VD_ETCD_OTHER);
}

static void e254_resource_exhausted_halts(void **state)
{
	(void) state;
	halts(8, "etcdserver: too many requests", VD_FULL, VD_ETCD_TOO_MANY_REQUESTS);
}

static void e255_no_leader_halts(void **state)
{
	(void) state;
	halts(14, "etcdserver: no leader", VD_UNAVAILABLE, VD_ETCD_NO_LEADER);
}

static void e254_permission_denied_halts(void **state)
{
	(void) state;
	halts(7, "etcdserver: permission denied", VD_FORBIDDEN, VD_ETCD_PERMISSION_DENIED);
}

/* 11.3, 4 */
static void resumes(int code, const char *text)
{
	struct vd_etcd_watch_request request = of_key("a");
	struct watcher		     a;
	int			     call;

	request.created_notify = true;
	call = open_a(&a, request);
	assert_status(watcher_next(&a), VD_OK);
	assert_true(a.response.created);
	event(call, 0, 9, 7);
	WATCHER_EXPECT_EVENTS(&a, 7);
	ask("end %d %d %s", call, code, text);
	call = expect_call(WATCH, NULL);
	expect_message(call, "{\"create_request\":{\"key\":\"YQ==\",\"start_revision\":\"8\"}}");
	created(call, 0, 9);
	progress(call, -1, 12);
	watcher_expect_progress(&a, 12); /* and no second Created (E-241) */
	ask("end %d %d %s", call, code, text);
	call = expect_call(WATCH, NULL);
	expect_message(call, "{\"create_request\":{\"key\":\"YQ==\",\"start_revision\":\"13\"}}");
	created(call, 3, 20);
	event(call, 3, 20, 20);
	WATCHER_EXPECT_EVENTS(&a, 20);
	watcher_close(&a);
}

static void e256_e283_e284_unavailable_resumes_after_what_was_seen(void **state)
{
	(void) state;
	resumes(14, "something else");
}

static void e256_internal_resumes_as_well(void **state)
{
	(void) state;
	resumes(13, "stream terminated by RST_STREAM");
}

/* 11.3, 5 */
static void e281_e276_a_loss_before_any_event_and_in_the_middle_of_fragments(void **state)
{
	struct vd_etcd_watch_request request = of_key("a");
	struct watcher		     a;
	int			     call;

	(void) state;
	request.fragment = true;
	call = open_a(&a, request);
	ask("end %d 14 gone", call);
	call = expect_call(WATCH, NULL);
	expect_message(call,
		       "{\"create_request\":{\"fragment\":true,\"key\":\"YQ==\",\"start_revision\":\"5\"}}");
	created(call, 0, 9);
	fragment(call, 0, 9, 6);
	ask("proxy cut");
	call = expect_call(WATCH, NULL);
	expect_message(call,
		       "{\"create_request\":{\"fragment\":true,\"key\":\"YQ==\",\"start_revision\":\"5\"}}");
	created(call, 0, 9);
	fragment(call, 0, 9, 6);
	event(call, 0, 9, 7);
	WATCHER_EXPECT_EVENTS(&a, 6, 7);
	watcher_close(&a);
}

/* 11.3, 6 */
static void e275_e238_fragments_become_one_response_and_compaction_comes_after_them(void **state)
{
	struct vd_etcd_watch_request request = of_key("a");
	struct watcher		     a;
	int			     call;

	(void) state;
	request.fragment = true;
	call = open_a(&a, request);
	fragment(call, 0, 8, 6);
	event(call, 0, 9, 7);
	ask("send %d {\"watch_id\":\"0\",\"canceled\":true,\"compact_revision\":\"20\"}", call);
	WATCHER_EXPECT_EVENTS(&a, 6, 7);
	assert_int_equal(a.response.header.revision, 8);
	watcher_expect_end(&a, VD_EXPIRED);
	assert_int_equal(a.error.error.compacted, 20);
	watcher_close(&a);
}

/* E-275: upstream loses the other watch's response. */
static void e275_another_watch_between_fragments_loses_nothing(void **state)
{
	struct vd_etcd_watch_request request = of_key("a");
	struct watcher		     a, b;
	int			     call;

	(void) state;
	request.fragment = true;
	call = open_a(&a, request);
	open_b(&b, call);
	fragment(call, 0, 8, 6);
	event(call, 1, 8, 6);
	event(call, 0, 9, 7);
	WATCHER_EXPECT_EVENTS(&a, 6, 7);
	WATCHER_EXPECT_EVENTS(&b, 6);
	watcher_close(&a);
	watcher_close(&b);
}

/* 11.3, 7: upstream's slow reader gets the first event only, then a plain close. */
static void e239_e274_a_slow_reader_gets_all_events_and_then_the_error(void **state)
{
	struct watcher a;
	int	       call;
	vd_rev	       wanted = 6;

	(void) state;
	call = open_a(&a, of_key("a"));
	event(call, 0, 6, 6);
	event(call, 0, 7, 7);
	event(call, 0, 8, 8);
	ask("end %d 8 etcdserver: too many requests", call);
	ask("canceled %d", call); /* all of it was sent; nothing was read yet */
	while (wanted < 9) {
		assert_status(watcher_next(&a), VD_OK);
		for (size_t i = 0; i < a.response.event_count; i++)
			assert_int_equal(a.response.events[i].kv->mod_rev, wanted++);
	}
	watcher_expect_end(&a, VD_FULL);
	watcher_close(&a);
}

/* 11.3, 8 */
static void e244_e250_progress_without_a_watch_and_a_stream_for_each_metadata(void **state)
{
	struct vd_etcd_watch_request request = of_key("a");
	struct vd_error		     error;
	struct watcher		     a;
	const char		    *metadata;
	int			     plain, leader;

	(void) state;
	assert_status(vd_etcd_request_progress(client, NULL, &error), VD_OK);
	plain = expect_call(WATCH, &metadata);
	assert_null(strstr(metadata, "hasleader"));
	assert_non_null(strstr(metadata, "\"client-api-version\":[\"3.7\"]"));
	expect_message(plain, "{\"progress_request\":{}}");
	request.require_leader = true;
	watcher_open(&a, client, request);
	leader = expect_call(WATCH, &metadata);
	assert_non_null(strstr(metadata, "\"hasleader\":[\"true\"]"));
	assert_int_not_equal(leader, plain);
	expect_message(leader, CREATE_A);
	created(leader, 0, 5);
	/* Progress of the other stream does not apply to this watch (E-245). */
	progress(plain, -1, 9);
	progress(leader, -1, 11);
	watcher_expect_progress(&a, 11);
	watcher_close(&a);
}

static void e261_e263_one_create_at_a_time_also_after_the_first_was_abandoned(void **state)
{
	struct watcher a, b;
	int	       call;

	(void) state;
	watcher_open(&a, client, of_key("a"));
	watcher_open(&b, client, of_key("b"));
	call = expect_call(WATCH, NULL);
	expect_message(call, CREATE_A);
	watcher_close(&a);
	created(call, 0, 5); /* too late: the watch was closed */
	event(call, 0, 6, 6);
	/* The next messages are b's create and the cancel of the unwanted watch, in any order. */
	for (int i = 0, creates = 0, cancels = 0; i < 2; i++) {
		const char *message = ask("message %d", call);

		creates += strcmp(message, CREATE_B) == 0;
		cancels += strcmp(message, "{\"cancel_request\":{}}") == 0;
		if (i == 1) {
			assert_int_equal(creates, 1);
			assert_int_equal(cancels, 1);
		}
	}
	created(call, 1, 6);
	event(call, 1, 7, 7);
	WATCHER_EXPECT_EVENTS(&b, 7);
	watcher_close(&b);
}

static void e266_e270_after_compaction_and_after_a_close_the_server_is_told(void **state)
{
	struct watcher a, b, c;
	int	       call;

	(void) state;
	call = open_a(&a, of_key("a"));
	open_b(&b, call);
	watcher_open(&c, client, of_key("c"));
	expect_message(call, "{\"create_request\":{\"key\":\"Yw==\"}}");
	created(call, 2, 5);
	ask("send %d {\"watch_id\":\"1\",\"canceled\":true,\"compact_revision\":\"30\"}", call);
	watcher_expect_end(&b, VD_EXPIRED);
	expect_message(call, "{\"cancel_request\":{\"watch_id\":\"1\"}}");
	event(call, 2, 7, 7);
	WATCHER_EXPECT_EVENTS(&c, 7);
	watcher_close(&c);
	expect_message(call, "{\"cancel_request\":{\"watch_id\":\"2\"}}");
	/* An error after the cancel is ignored. */
	ask("send %d "
	    "{\"header\":{\"revision\":\"9\"},\"watch_id\":\"2\",\"canceled\":true,\"cancel_reason\":\"too "
	    "late\"}",
	    call);
	event(call, 0, 9, 9);
	WATCHER_EXPECT_EVENTS(&a, 9);
	/* Closing the last watch closes the stream. */
	watcher_close(&a);
	ask("canceled %d", call);
	watcher_close(&b);
}

static void e267_what_nobody_asked_for_is_canceled_once(void **state)
{
	struct watcher a, b;
	int	       call;

	(void) state;
	call = open_a(&a, of_key("a"));
	event(call, 77, 6, 6);
	event(call, 77, 7, 7);
	expect_message(call, "{\"cancel_request\":{\"watch_id\":\"77\"}}");
	event(call, 0, 8, 8);
	WATCHER_EXPECT_EVENTS(&a, 8);
	open_b(&b, call); /* its create is the next message: 77 was not canceled again */
	watcher_close(&a);
	watcher_close(&b);
}

static void e262_an_id_may_be_used_again(void **state)
{
	struct watcher a, b, c;
	int	       call;

	(void) state;
	call = open_a(&a, of_key("a"));
	open_b(&b, call);
	watcher_close(&a);
	expect_message(call, "{\"cancel_request\":{}}");
	ask("send %d {\"header\":{\"revision\":\"6\"},\"watch_id\":\"0\",\"canceled\":true}", call);
	watcher_open(&c, client, of_key("c"));
	expect_message(call, "{\"create_request\":{\"key\":\"Yw==\"}}");
	created(call, 0, 7);
	event(call, 0, 8, 8);
	WATCHER_EXPECT_EVENTS(&c, 8);
	watcher_close(&b);
	watcher_close(&c);
}

/* No server does this. The events cannot be assigned to a watch any more, so all watches start again on a new
 * stream. */
static void e262_one_id_for_two_watches_harms_nobody(void **state)
{
	struct watcher a, b;
	int	       call, next_id = 5;

	(void) state;
	call = open_a(&a, of_key("a"));
	watcher_open(&b, client, of_key("b"));
	expect_message(call, CREATE_B);
	created(call, 0, 5);
	ask("canceled %d", call);
	call = expect_call(WATCH, NULL);
	for (int i = 0; i < 2; i++) {
		bool is_b = strstr(ask("message %d", call), "Yg==") != NULL;

		created(call, next_id, 6);
		event(call, next_id, 6, is_b ? 8 : 7);
		next_id++;
	}
	WATCHER_EXPECT_EVENTS(&a, 7);
	WATCHER_EXPECT_EVENTS(&b, 8);
	watcher_close(&a);
	watcher_close(&b);
}

/* No server does this either. */
static void e262_a_created_that_nobody_waits_for_is_canceled(void **state)
{
	struct watcher a;
	int	       call;

	(void) state;
	call = open_a(&a, of_key("a"));
	created(call, 9, 6);
	expect_message(call, "{\"cancel_request\":{\"watch_id\":\"9\"}}");
	event(call, 0, 7, 7);
	WATCHER_EXPECT_EVENTS(&a, 7);
	watcher_close(&a);
}

static void e272_all_watches_come_back_in_their_order(void **state)
{
	struct watcher a, b;
	int	       call;

	(void) state;
	call = open_a(&a, of_key("a"));
	open_b(&b, call);
	event(call, 1, 9, 9);
	WATCHER_EXPECT_EVENTS(&b, 9);
	ask("restart");
	call = expect_call(WATCH, NULL);
	for (int i = 0; i < 2; i++) {
		const char *message = ask("message %d", call);
		const char *wanted = "{\"create_request\":{\"key\":\"Yg==\",\"start_revision\":\"10\"}}";
		bool	    is_b = strcmp(message, wanted) == 0;

		if (!is_b)
			assert_string_equal(
				message, "{\"create_request\":{\"key\":\"YQ==\",\"start_revision\":\"5\"}}");
		created(call, is_b ? 1 : 0, 20);
	}
	event(call, 0, 21, 21);
	event(call, 1, 22, 22);
	WATCHER_EXPECT_EVENTS(&a, 21);
	WATCHER_EXPECT_EVENTS(&b, 22);
	watcher_close(&a);
	watcher_close(&b);
}

static void e256_a_server_that_goes_away_politely_is_left(void **state)
{
	struct watcher a;
	int	       call;

	(void) state;
	call = open_a(&a, of_key("a"));
	ask("goaway");
	/* The present stream continues; a new call uses the new connection. */
	event(call, 0, 6, 6);
	WATCHER_EXPECT_EVENTS(&a, 6);
	ask("default KV/Range {\"header\":{\"revision\":\"6\"}}");
	assert_int_equal(call_range(client, "a", VD_SECONDS(30)).revision, 6);
	watcher_close(&a);
	ask("canceled %d", call);
}

static void e231_e273_a_closed_client_ends_its_watches(void **state)
{
	struct vd_etcd *other = fixture_open(NULL, NULL);
	struct watcher	a, b;
	int		call;

	(void) state;
	watcher_open(&a, other, of_key("a"));
	call = expect_call(WATCH, NULL);
	expect_message(call, CREATE_A);
	created(call, 0, 5);
	watcher_open(&b, other, of_key("b")); /* not acknowledged yet */
	expect_message(call, CREATE_B);
	vd_etcd_close_wait(other);
	ask("canceled %d", call);
	watcher_expect_end(&a, VD_CLOSED);
	watcher_expect_end(&b, VD_CLOSED);
	watcher_close(&a);
	watcher_close(&b);
}

static void e275_a_message_that_is_no_watch_response_ends_the_stream(void **state)
{
	struct watcher a;
	int	       call;
	vd_status      status;

	(void) state;
	call = open_a(&a, of_key("a"));
	ask("send-raw %d Cv//////Dw==", call); /* a header whose length says 4 GiB */
	ask("canceled %d", call);
	/* Either the watch ends with it, or it resumes on a new stream; it never continues as if nothing had
	 * happened. */
	ask("default KV/Range {\"header\":{\"revision\":\"6\"}}");
	assert_int_equal(call_range(client, "a", VD_SECONDS(30)).revision, 6);
	status = vd_etcd_watch_next(a.watch, &a.response, &a.error);
	assert_true(status == VD_AGAIN || status == VD_CORRUPT || status == VD_INTERNAL);
	watcher_close(&a);
}

static void e209_an_expired_token_is_renewed(void **state)
{
	struct vd_etcd_options options = etcd_options_under_test();
	struct vd_etcd	      *other;
	struct pending_call    pending;
	struct watcher	       a;
	const char	      *metadata;
	int		       call;

	(void) state;
	options.user = "root";
	options.password = "secret";
	other = fixture_open(NULL, &options);
	pending_range(&pending, other, "a", VD_SECONDS(60));
	call = expect_call("Auth/Authenticate", NULL);
	expect_message(call, "{\"name\":\"root\",\"password\":\"secret\"}");
	ask("send %d {\"token\":\"first\"}", call);
	ask("end %d 0", call);
	call = expect_call("KV/Range", &metadata);
	assert_non_null(strstr(metadata, "\"token\":[\"first\"]"));
	ask("end %d 16 etcdserver: invalid auth token", call);
	call = expect_call("Auth/Authenticate", NULL);
	ask("send %d {\"token\":\"second\"}", call);
	ask("end %d 0", call);
	call = expect_call("KV/Range", &metadata);
	assert_non_null(strstr(metadata, "\"token\":[\"second\"]"));
	ask("send %d {\"header\":{\"revision\":\"9\"}}", call);
	ask("end %d 0", call);
	assert_int_equal(pending_wait(&pending).revision, 9);
	/* Every stream begins with a new token. */
	watcher_open(&a, other, of_key("a"));
	call = expect_call("Auth/Authenticate", NULL);
	ask("send %d {\"token\":\"third\"}", call);
	ask("end %d 0", call);
	call = expect_call(WATCH, &metadata);
	assert_non_null(strstr(metadata, "\"token\":[\"third\"]"));
	watcher_close(&a);
	vd_etcd_close_wait(other);
}

static void e207_e206_reads_are_repeated_and_writes_are_not(void **state)
{
	struct pending_call pending;
	struct call_result  result;
	int		    call;

	(void) state;
	pending_range(&pending, client, "a", VD_SECONDS(60));
	for (int i = 0; i < 3; i++) {
		call = expect_call("KV/Range", NULL);
		ask("end %d 14 etcdserver: request timed out", call);
	}
	call = expect_call("KV/Range", NULL);
	ask("end %d 11 etcdserver: mvcc: required revision has been compacted", call);
	result = pending_wait(&pending);
	assert_status(result.status, VD_EXPIRED);
	assert_int_equal(result.error.code, VD_ETCD_COMPACTED);
}

static void e254_an_answer_beyond_the_limit_is_refused(void **state)
{
	struct vd_etcd_options options = etcd_options_under_test();
	struct vd_etcd	      *other;
	struct pending_call    pending;
	struct call_result     result;
	struct watcher	       a;
	int		       call;

	(void) state;
	options.send_size_max = 1 << 20;
	options.receive_size_max = 1 << 20;
	other = fixture_open(NULL, &options);
	pending_range(&pending, other, "a", VD_SECONDS(60));
	call = expect_call("KV/Range", NULL);
	ask("send-size %d 20 100000", call);
	ask("end %d 0", call);
	result = pending_wait(&pending);
	assert_status(result.status, VD_TOO_BIG);
	assert_int_equal(result.error.grpc_code, 8);
	watcher_open(&a, other, of_key("a"));
	call = expect_call(WATCH, NULL);
	created(call, 0, 5);
	ask("send-size %d 20 100000", call);
	watcher_expect_end(&a, VD_TOO_BIG);
	watcher_close(&a);
	vd_etcd_close_wait(other);
}

/* Setup and teardown of the whole group. */
int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(e265_a_watch_that_the_server_cancels_ends_and_its_sibling_lives),
		CASE(e264_a_failed_creation_ends_that_watch_alone),
		CASE(e254_a_clean_end_of_the_stream_halts),
		CASE(e254_resource_exhausted_halts),
		CASE(e255_no_leader_halts),
		CASE(e254_permission_denied_halts),
		CASE(e256_e283_e284_unavailable_resumes_after_what_was_seen),
		CASE(e256_internal_resumes_as_well),
		CASE(e281_e276_a_loss_before_any_event_and_in_the_middle_of_fragments),
		CASE(e275_e238_fragments_become_one_response_and_compaction_comes_after_them),
		CASE(e275_another_watch_between_fragments_loses_nothing),
		CASE(e239_e274_a_slow_reader_gets_all_events_and_then_the_error),
		CASE(e244_e250_progress_without_a_watch_and_a_stream_for_each_metadata),
		CASE(e261_e263_one_create_at_a_time_also_after_the_first_was_abandoned),
		CASE(e266_e270_after_compaction_and_after_a_close_the_server_is_told),
		CASE(e267_what_nobody_asked_for_is_canceled_once),
		CASE(e262_an_id_may_be_used_again),
		CASE(e262_one_id_for_two_watches_harms_nobody),
		CASE(e262_a_created_that_nobody_waits_for_is_canceled),
		CASE(e272_all_watches_come_back_in_their_order),
		CASE(e256_a_server_that_goes_away_politely_is_left),
		CASE(e231_e273_a_closed_client_ends_its_watches),
		CASE(e275_a_message_that_is_no_watch_response_ends_the_stream),
		CASE(e209_an_expired_token_is_renewed),
		CASE(e207_e206_reads_are_repeated_and_writes_are_not),
		CASE(e254_an_answer_beyond_the_limit_is_refused),
	};

	if (getenv("CONTROL") == NULL) {
		fprintf(stderr, "skipped: this runs under `peers etcd-fake`\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
