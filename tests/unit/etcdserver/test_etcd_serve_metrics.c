/* Unit tests of etcdserver/serve_metrics.c: what calls count. That names, labels and buckets are etcd's is in
 * tests/integration/etcd_metrics.py. */
#include "auth.h"
#include "env.h"
#include "etcd_server_fixture.h"
#include "metrics.h"
#include "serve_counts.h"
#include "serve_http.h"
#include "serve_state.h"
#include "vdtest.h"

static void expect_text(struct etcd_server_fixture *fixture, const char *sample, const char *value)
{
	struct vdi_buffer text;
	char		  line[512];
	const char	 *found;

	vdi_buffer_init(&text, 1 << 20);
	assert_status(vdi_metrics_render(vdi_env_metrics(fixture->env), &text), VD_OK);
	vdi_buffer_append_char(&text, 0);
	(void) snprintf(line, sizeof line, "\n%s ", sample);
	found = strstr(text.data, line);
	if (found == NULL || strncmp(found + strlen(line), value, strlen(value)) != 0 ||
	    found[strlen(line) + strlen(value)] != '\n')
		fail_msg("%s is not %s, but %.40s", sample, value, found ? found + strlen(line) : "absent");
	vdi_buffer_fini(&text);
}

#define LABELS(type, service, method)                                                                        \
	"grpc_type=\"" type "\",grpc_service=\"etcdserverpb." service "\",grpc_method=\"" method "\""
#define PUT LABELS("unary", "KV", "Put")
#define WATCH LABELS("bidi_stream", "Watch", "Watch")

static void calls_are_counted_by_method_and_code(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__PutRequest    empty = ETCDSERVERPB__PUT_REQUEST__INIT;

	etcd_server_put(fixture, "a", "1");
	etcd_server_put(fixture, "a", "2");
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Put", &empty.base, VD_ETCD_EMPTY_KEY);
	for (int again = 0; again < 2; again++) { /* asking changes nothing */
		expect_text(fixture, "grpc_server_started_total{" PUT "}", "3");
		expect_text(fixture, "grpc_server_msg_received_total{" PUT "}", "3");
		expect_text(fixture, "grpc_server_msg_sent_total{" PUT "}", "2");
		expect_text(fixture, "grpc_server_handled_total{" PUT ",grpc_code=\"OK\"}", "2");
		expect_text(fixture, "grpc_server_handled_total{" PUT ",grpc_code=\"InvalidArgument\"}", "1");
		expect_text(fixture, "grpc_server_handled_total{" PUT ",grpc_code=\"Canceled\"}", "0");
	}
	expect_text(fixture, "grpc_server_started_total{" LABELS("unary", "KV", "Range") "}", "0");
	expect_text(fixture, "grpc_server_started_total{" LABELS("server_stream", "KV", "RangeStream") "}",
		    "0");
	expect_text(fixture, "etcd_server_calls_total", "3");
}

/* What a server of one member never has is there, at 0, for those who watch for it. */
static void what_there_is_none_of_is_zero(void **state)
{
	static const char *const names[] = {
		"etcd_server_heartbeat_send_failures_total",	"etcd_server_proposals_pending",
		"etcd_server_proposals_failed_total",		"etcd_server_slow_apply_total",
		"etcd_server_read_indexes_failed_total",	"etcd_server_slow_read_indexes_total",
		"etcd_server_snapshot_apply_in_progress_total", "etcd_disk_defrag_inflight"
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++)
		expect_text(*state, names[i], "0");
	expect_text(*state, "etcd_server_has_leader", "1");
	expect_text(*state, "etcd_server_is_leader", "1");
	expect_text(*state, "etcd_server_leader_changes_seen_total", "1");
}

/* What a server of one member says of itself. */
static void values_of_the_server(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	char			    sample[128], number[24];

	etcd_server_put(fixture, "a", "1");
	/* Revision 2, and three entries that etcd writes at its start. */
	expect_text(fixture, "etcd_server_proposals_committed_total", "5");
	expect_text(fixture, "etcd_server_proposals_applied_total", "5");
	etcd_server_put(fixture, "a", "2");
	expect_text(fixture, "etcd_server_proposals_committed_total", "6");
	expect_text(fixture, "etcd_server_proposals_applied_total", "6");
	expect_text(fixture, "etcd_server_quota_backend_bytes", "2147483648");
	fixture->server->options.quota_bytes = 12345678;
	expect_text(fixture, "etcd_server_quota_backend_bytes", "12345678");
	fixture->server->options.quota_bytes = 0;
	(void) snprintf(sample, sizeof sample, "etcd_server_id{server_id=\"%llx\"}",
			(unsigned long long) fixture->server->member_id);
	expect_text(fixture, sample, "1");
	expect_text(fixture, "etcd_server_version{server_version=\"3.7.3\"}", "1");
	expect_text(fixture, "etcd_cluster_version{cluster_version=\"3.7\"}", "1");
	(void) snprintf(number, sizeof number, "%llu",
			(unsigned long long) vdi_auth_revision(fixture->server->auth));
	expect_text(fixture, "etcd_debugging_auth_revision", number);
}

/* Each answer of /health is counted as what it was. */
static void answers_about_health_are_counted(void **state)
{
	struct etcd_server_fixture *fixture = *state;

	expect_text(fixture, "etcd_server_health_success", "0");
	expect_text(fixture, "etcd_server_health_failures", "0");
	for (int i = 0; i < 5; i++) {
		struct vdi_rpc_http http = { .method = VDI_HTTP_GET,
					     .path = vd_bytes_of("/health"),
					     .code = 200 };

		if (i == 3)
			vdi_serve_state_raise(fixture->server->state, fixture->server->member_id,
					      VDI_ALARM_NOSPACE);
		vdi_buffer_init(&http.headers, 4096);
		vdi_buffer_init(&http.body, 4096);
		vdi_serve_http_fill(fixture->server, false, &http);
		assert_int_equal(http.code, i < 3 ? 200 : 503);
		vdi_buffer_fini(&http.headers);
		vdi_buffer_fini(&http.body);
	}
	expect_text(fixture, "etcd_server_health_success", "3");
	expect_text(fixture, "etcd_server_health_failures", "2");
}

/* Each gRPC code has a counter; what is no code counts as Unknown. Only the first end counts. */
static void ends_are_counted_by_their_code(void **state)
{
	static const int codes[] = { 0, 1, 16, 17, 18, -1, INT32_MAX };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(codes); i++) {
		struct vdi_serve_method_counts counts = { 0 };
		struct vdi_serve_call	       call = { .counts = &counts };
		int			       wanted = codes[i] >= 0 && codes[i] <= 16 ? codes[i] : 2;

		vdi_serve_count_ended(&call, codes[i]);
		vdi_serve_count_ended(&call, 5);
		for (int code = 0; code < VDI_SERVE_CODES; code++)
			assert_int_equal(counts.handled[code], code == wanted);
		assert_null(counts.handling);
	}
	/* A call of an unknown method has no counters. */
	vdi_serve_count_ended(&(struct vdi_serve_call) { 0 }, 0);
}

/* What takes long is measured each time. */
static void hashes_are_measured(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__HashKVRequest request = ETCDSERVERPB__HASH_KVREQUEST__INIT;
	Etcdserverpb__HashRequest   whole = ETCDSERVERPB__HASH_REQUEST__INIT;

	expect_text(fixture, "etcd_mvcc_hash_rev_duration_seconds_count", "0");
	for (int i = 0; i < 2; i++)
		ETCD_FREE(ETCD_ASK(fixture, "Maintenance/HashKV", &request, hash_kvresponse));
	expect_text(fixture, "etcd_mvcc_hash_rev_duration_seconds_count", "2");
	expect_text(fixture, "etcd_mvcc_hash_duration_seconds_count", "0");
	for (int i = 0; i < 3; i++)
		ETCD_FREE(ETCD_ASK(fixture, "Maintenance/Hash", &whole, hash_response));
	expect_text(fixture, "etcd_mvcc_hash_rev_duration_seconds_count", "2");
	expect_text(fixture, "etcd_mvcc_hash_duration_seconds_count", "3");
}

/* A client that goes away, with nobody having ended its call: Canceled. rules: E-319 */
static void a_stream_counts_its_messages_and_ends_canceled(void **state)
{
	struct etcd_server_fixture	*fixture = *state;
	Etcdserverpb__WatchRequest	 request = ETCDSERVERPB__WATCH_REQUEST__INIT;
	Etcdserverpb__WatchCreateRequest create = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
	struct etcd_server_call		 call;

	create.key = etcd_bytes("a");
	request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
	request.create_request = &create;
	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Watch/Watch");
	etcd_server_call_send(&call, &request.base);
	etcd_server_put(fixture, "a", "1");
	expect_text(fixture, "grpc_server_started_total{" WATCH "}", "1");
	expect_text(fixture, "grpc_server_msg_received_total{" WATCH "}", "1");
	expect_text(fixture, "grpc_server_msg_sent_total{" WATCH "}", "2");
	expect_text(fixture, "grpc_server_handled_total{" WATCH ",grpc_code=\"Canceled\"}", "0");
	etcd_server_call_end(&call);
	expect_text(fixture, "grpc_server_handled_total{" WATCH ",grpc_code=\"Canceled\"}", "1");
	expect_text(fixture, "grpc_server_handled_total{" WATCH ",grpc_code=\"OK\"}", "0");
}

static void methods_that_are_unknown_count_as_calls_only(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	struct etcd_server_call	    call;

	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/None");
	etcd_server_call_end(&call);
	expect_text(fixture, "etcd_server_calls_total", "1");
	expect_text(fixture, "etcd_network_client_grpc_received_bytes_total", "0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		CASE(calls_are_counted_by_method_and_code),
		CASE(hashes_are_measured),
		CASE(what_there_is_none_of_is_zero),
		CASE(values_of_the_server),
		CASE(answers_about_health_are_counted),
		CASE(ends_are_counted_by_their_code),
		CASE(a_stream_counts_its_messages_and_ends_canceled),
		CASE(methods_that_are_unknown_count_as_calls_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
