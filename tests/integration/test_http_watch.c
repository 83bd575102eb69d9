/* Lists and watches over HTTP, with the server in this process: pages, initial events, errors, shards, and
 * clients that do not read. */
#include <sys/socket.h>
#include <unistd.h>

#include "http_fixture.h"
#include "http_shared.h"
#include "wait.h"

#define JSON HTTP_JSON

static void a_list_of_many_comes_whole_and_in_pages(void **state)
{
	struct http_answer answer;
	size_t		   count = 0;
	char		   body[1200], filler[1000];

	memset(filler, 'f', sizeof filler - 1);
	filler[sizeof filler - 1] = 0;
	for (int i = 0; i < 400; i++) {
		sprintf(body,
			"{\"metadata\":{\"name\":\"many-%03d\",\"labels\":{\"many\":\"1\"}},\"data\":{\"x\":"
			"\"%s\"}}",
			i, filler);
		http_shared_expect("POST", HTTP_CM, JSON, body, 201, "many-");
	}
	answer = http_shared_request("GET", HTTP_CM "?labelSelector=many%3D1", "", "");
	assert_int_equal(answer.code, 200);
	for (const char *at = answer.body; (at = strstr(at, "\"name\":\"many-")) != NULL; at++)
		count++;
	assert_int_equal(count, 400);
	assert_string_equal(answer.body + strlen(answer.body) - 4, "}]}\n");
	http_answer_free(&answer);
	http_shared_expect("GET", HTTP_CM "?limit=5", "", "", 200, "\"remainingItemCount\":");
	http_shared_expect("GET", HTTP_CM "?labelSelector=many&limit=5",
			   "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io\r\n", "",
			   200, "\"kind\":\"PartialObjectMetadataList\"");
	http_shared_expect("GET", HTTP_CM "?limit=3&pretty=true", "", "", 200, "\n  \"items\": [\n    {\n");
	http_shared_expect("DELETE", HTTP_CM "?labelSelector=many", "", "", 200, "Success");
	http_shared_expect("GET", HTTP_CM "?labelSelector=many", "", "", 200, "\"items\":[]");
}

static void expect_event(struct http_client *client, const char *type, const char *part)
{
	char *chunk = http_client_read_chunk(client), start[64];

	assert_non_null(chunk);
	sprintf(start, "{\"type\":\"%s\",\"object\":{", type);
	if (strncmp(chunk, start, strlen(start)) != 0 || strstr(chunk, part) == NULL)
		print_message("wanted %s %s, got %s\n", type, part, chunk);
	assert_int_equal(strncmp(chunk, start, strlen(start)), 0);
	assert_non_null(strstr(chunk, part));
	assert_string_equal(chunk + strlen(chunk) - 2, "}\n");
	free(chunk);
}

/* Each object once, then the bookmark, which is at least as new as the newest of them, then later changes. */
static void h404_a_watch_list_has_each_object_once_and_goes_on(void **state)
{
	struct http_client client = http_client_open();
	bool		   seen[20] = { false };
	char		   body[120], *chunk;
	const char	  *at;
	long long	   version, newest = 0;

	(void) state;
	for (int i = 0; i < 20; i++) {
		sprintf(body, "{\"metadata\":{\"name\":\"once-%02d\",\"labels\":{\"once\":\"1\"}}}",
			i * 7 % 20);
		http_shared_expect("POST", HTTP_CM, JSON, body, 201, "once-");
	}
	http_client_watch(
		&client,
		"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&"
		"labelSelector=once",
		"");
	for (int i = 0; i <= 20; i++) {
		chunk = http_client_read_chunk(&client);
		assert_non_null(chunk);
		at = strstr(chunk, "\"resourceVersion\":\"");
		assert_non_null(at);
		version = atoll(at + strlen("\"resourceVersion\":\""));
		if (i < 20) {
			assert_memory_equal(chunk, "{\"type\":\"ADDED\"", 15);
			at = strstr(chunk, "\"name\":\"once-");
			assert_non_null(at);
			assert_in_range(atoi(at + 13), 0, 19);
			assert_false(seen[atoi(at + 13)]);
			seen[atoi(at + 13)] = true;
			newest = version > newest ? version : newest;
		} else {
			assert_memory_equal(chunk, "{\"type\":\"BOOKMARK\"", 18);
			assert_non_null(strstr(chunk, "\"k8s.io/initial-events-end\":\"true\""));
			assert_true(version >= newest);
		}
		free(chunk);
	}
	for (int i = 0; i < 3; i++) {
		sprintf(body, "{\"metadata\":{\"name\":\"once-later-%d\",\"labels\":{\"once\":\"1\"}}}", i);
		http_shared_expect("POST", HTTP_CM, JSON, body, 201, "once-");
		sprintf(body, "\"name\":\"once-later-%d\"", i);
		expect_event(&client, "ADDED", body);
	}
	http_client_close(&client);
	http_shared_expect("DELETE", HTTP_CM "?labelSelector=once", "", "", 200, "Success");
}

static void h403_a_watch_list_ends_its_initial_events_and_goes_on(void **state)
{
	struct http_client client = http_client_open(), table = http_client_open();

	http_shared_expect("POST", HTTP_CM, JSON, "{\"metadata\":{\"name\":\"w\"}}", 201, "\"w\"");
	http_client_watch(
		&client, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		"");
	expect_event(&client, "ADDED", "\"name\":\"w\"");
	expect_event(&client, "BOOKMARK", "\"k8s.io/initial-events-end\":\"true\"");
	http_client_watch(&table, "", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n");
	expect_event(&table, "ADDED", "\"columnDefinitions\":[{\"name\":\"Name\"");
	http_shared_expect("PUT", HTTP_CM "/w", JSON,
			   "{\"metadata\":{\"name\":\"w\"},\"data\":{\"k\":\"v\"}}", 200, "\"k\"");
	expect_event(&client, "MODIFIED", "\"data\":{\"k\":\"v\"}");
	expect_event(&table, "MODIFIED", "\"columnDefinitions\":[],\"rows\":[{\"cells\":[\"w\",\"1\",");
	http_shared_expect("DELETE", HTTP_CM "/w", "", "", 200, "Success");
	expect_event(&client, "DELETED", "\"name\":\"w\"");
	expect_event(&table, "DELETED", "\"w\"");
	http_client_close(&client);
	http_client_close(&table);
}

/* A limit and a token are ignored. rules */
static void h409_a_watch_that_times_out_keeps_the_connection(void **state)
{
	struct http_client client = http_client_open();
	struct http_answer answer;

	http_client_watch(&client,
			  "&resourceVersion=1&timeoutSeconds=1&labelSelector=none&limit=1&continue=nonsense",
			  "");
	assert_null(http_client_read_chunk(&client));
	answer = http_client_request(&client, "GET", "/livez", "", "");
	assert_int_equal(answer.code, 200);
	http_answer_free(&answer);
	http_client_close(&client);
}

/* rules */
static void r631_errors_before_the_stream_are_answers(void **state)
{
	http_shared_expect("GET", HTTP_CM "?watch=1&sendInitialEvents=true", "", "", 422,
			   "sendInitialEvents requires setting resourceVersionMatch");
	http_shared_expect("GET", HTTP_CM "?watch=1&labelSelector=(", "", "", 400, "BadRequest");
	http_shared_expect("GET", HTTP_CM "?watch=1&fieldSelector=x%3Dy", "", "", 400,
			   "field label not supported: x");
	http_shared_expect("GET", HTTP_CM "?watch=1&shardSelector=x", "", "", 400,
			   "invalid shard selector: unsupported function");
	http_shared_expect("GET",
			   "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.name%3Db",
			   "", "", 400, "fieldSelector metadata.name doesn't match requested name");
	http_shared_expect("GET", HTTP_CM "?watch=1", "Accept: application/yaml\r\n", "", 406,
			   "only the following media types are accepted: application/json"); /* */
}

/* Upstream answers 500 with an empty reason, for a watch and for a get. */
static void w31_a_resource_version_that_is_no_number_is_a_bad_request(void **state)
{
	static const char *const versions[] = { "x", "-1", "1.0", "18446744073709551616" };
	static const char *const paths[] = {
		HTTP_CM "?watch=1&resourceVersion=%s",
		HTTP_CM
		"?watch=1&resourceVersion=%s&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
		HTTP_CM "?resourceVersion=%s", HTTP_CM "/x?resourceVersion=%s"
	};
	char path[200];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(paths); i++)
		for (size_t k = 0; k < VDI_ARRAY_SIZE(versions); k++) {
			(void) snprintf(path, sizeof path, paths[i], versions[k]);
			http_shared_expect("GET", path, "", "", 400, "\"reason\":\"BadRequest\"");
		}
}

/* Versions are decimal numbers without leading zeros, in one sequence for all kinds: a later write has the
 * greater one. */
static void h419_versions_grow_over_all_kinds(void **state)
{
	static const char *const rows[][2] = {
		{ "/api/v1/namespaces/default/configmaps", "ConfigMap" },
		{ "/api/v1/namespaces/default/secrets", "Secret" },
		{ "/api/v1/namespaces", "Namespace" },
		{ "/api/v1/namespaces/default/serviceaccounts", "ServiceAccount" },
	};
	long long last = 0;

	for (unsigned i = 0; i < 20; i++) {
		const char *const *row = rows[i % VDI_ARRAY_SIZE(rows)];
		char		   body[200], again[32];
		struct http_answer answer;
		const char	  *at;
		long long	   version;

		(void) snprintf(body, sizeof body,
				"{\"kind\":\"%s\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"h419-%u\"}}",
				row[1], i);
		answer = http_shared_request("POST", row[0], JSON, body);
		assert_int_equal(answer.code, 201);
		at = strstr(answer.body, "\"resourceVersion\":\"");
		assert_non_null(at);
		version = atoll(at + strlen("\"resourceVersion\":\""));
		(void) snprintf(again, sizeof again, "\"resourceVersion\":\"%lld\"", version);
		assert_memory_equal(at, again, strlen(again));
		assert_true(version > last);
		last = version;
		http_answer_free(&answer);
	}
}

static void note_compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) revision;
	(void) error;
	assert_status(status, VD_OK);
	vdi_wait_signal(arg);
}

/* A server that starts after a compaction: a watch from before it is a stream with one event, the error. */
static void r631_errors_of_a_stream_are_events(void **state)
{
	struct http_fixture other;
	struct http_client  client;
	struct vdi_wait	    wait;
	char		   *head;

	http_fixture_init(&other);
	for (unsigned i = 0; i < 3; i++)
		http_fixture_put(&other, "x", 1, false);
	vdi_wait_init(&wait, other.env);
	assert_status(vd_store_compact(other.store, 4, false, note_compacted, &wait), VD_OK);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	http_fixture_start(&other, 1, NULL);
	client = (struct http_client) { .fd = http_open(other.port, 0) };
	http_client_send(&client,
			 "GET " HTTP_CM "?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
	head = http_client_read_until(&client, "\r\n\r\n");
	assert_int_equal(http_code_of(head), 200);
	assert_non_null(strstr(head, "Content-Type: application/json\r\n"));
	free(head);
	expect_event(&client, "ERROR", "\"reason\":\"Expired\",\"code\":410}");
	assert_null(http_client_read_chunk(&client));
	http_client_close(&client);
	http_fixture_close(&other, VD_SECONDS(10));
}

/* A token with a compacted revision: the answer has another token, which continues with the newest state.
 * rules */
static void r125_an_expired_page_may_go_on_in_the_newest_state(void **state)
{
	struct http_fixture    other;
	struct vd_store_status status;
	struct vdi_wait	       wait;
	char		       path[512], *text, *token;
	int		       code;

	http_fixture_init(&other);
	http_fixture_put(&other, "a", 1, false);
	http_fixture_put(&other, "b", 1, false);
	http_fixture_put(&other, "d", 1, false);
	http_fixture_start(&other, 1, NULL);
	text = http_ask(other.port, "GET", HTTP_CM "?limit=2", "", "", &code);
	assert_int_equal(code, 200);
	for (int round = 0; round < 2; round++) {
		token = strstr(text, "\"continue\":\"");
		assert_non_null(token);
		token += strlen("\"continue\":\"");
		(void) snprintf(path, sizeof path, HTTP_CM "?limit=2&continue=%.*s",
				(int) strcspn(token, "\""), token);
		free(text);
		if (round == 0) {
			http_fixture_put(&other, "c", 1, false);
			http_fixture_put(&other, "a", 1, false);
			assert_status(vd_store_status_get(other.store, &status), VD_OK);
			vdi_wait_init(&wait, other.env);
			assert_status(
				vd_store_compact(other.store, status.current, false, note_compacted, &wait),
				VD_OK);
			vdi_wait_wait(&wait);
			vdi_wait_fini(&wait);
		}
		text = http_ask(other.port, "GET", path, "", "", &code);
		if (round == 0) {
			assert_int_equal(code, 410);
			assert_non_null(strstr(text, "\"metadata\":{\"continue\":\""));
			assert_non_null(strstr(text, "\"message\":\"The provided continue parameter is too "
						     "old to display a consistent list result."));
			assert_non_null(strstr(text, "\"reason\":\"Expired\",\"code\":410}"));
		}
	}
	assert_int_equal(code, 200);
	assert_null(strstr(text, "\"continue\""));
	token = strstr(text, "\"metadata\":{\"resourceVersion\":\"");
	assert_non_null(token);
	assert_true(atoll(token + strlen("\"metadata\":{\"resourceVersion\":\"")) >= status.current);
	assert_null(strstr(text, "\"name\":\"a\""));
	assert_null(strstr(text, "\"name\":\"b\""));
	assert_non_null(strstr(text, "\"name\":\"c\"")); /* created meanwhile */
	assert_non_null(strstr(text, "\"name\":\"d\""));
	free(text);
	http_fixture_close(&other, VD_SECONDS(10));
}

#define SHARD "shardRange(object.metadata.uid,%20%270x0000000000000000%27,%20%270x8000000000000000%27)"

static void r608_r622_shards_over_http(void **state)
{
	http_shared_expect(
		"GET", HTTP_CM "?shardSelector=" SHARD, "", "", 200,
		"\"shardInfo\":{\"selector\":\"shardRange(object.metadata.uid, '0x0000000000000000', "
		"'0x8000000000000000')\"}},\"items\":[");
	http_shared_expect("GET", HTTP_CM "?limit=1&shardSelector=" SHARD "%20%7C%7C%20" SHARD, "", "", 200,
			   "') || shardRange(object.metadata.uid, '0x0");
	http_shared_expect("GET", HTTP_CM "?shardSelector=%20", "", "", 400,
			   "invalid shard selector: empty shard selector is not allowed");
	http_shared_expect("GET",
			   HTTP_CM "?shardSelector=shardRange(object.metadata.uid,%270x0%27,%270x8%27)", "",
			   "", 400, "16-digit hex value");
}

/* A client that does not read gets what fits, and does not affect others. */
static void h624_a_stalled_watch_delays_nobody(void **state)
{
	struct http_client stalled = http_client_open(), reading = http_client_open();
	char		   body[70000];
	int		   size = 65536;

	(void) setsockopt(stalled.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	http_client_watch(&stalled, "&resourceVersion=1&labelSelector=big", "");
	http_client_watch(&reading, "&labelSelector=big", "");
	for (int i = 0; i < 100; i++) {
		sprintf(body,
			"{\"metadata\":{\"name\":\"big-%d\",\"labels\":{\"big\":\"1\"}},\"data\":{\"x\":\"%0*"
			"d\"}}",
			i, 60000, i);
		http_shared_expect("POST", HTTP_CM, JSON, body, 201, "big-");
		expect_event(&reading, "ADDED", "\"name\":\"big-");
	}
	for (int i = 0; i < 100; i++) {
		sprintf(body, "\"name\":\"big-%d\"", i);
		expect_event(&stalled, "ADDED", body);
	}
	http_client_close(&stalled);
	http_client_close(&reading);
	http_shared_expect("DELETE", HTTP_CM "?labelSelector=big", "", "", 200, "Success");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_of_many_comes_whole_and_in_pages),
		cmocka_unit_test(h404_a_watch_list_has_each_object_once_and_goes_on),
		cmocka_unit_test(h403_a_watch_list_ends_its_initial_events_and_goes_on),
		cmocka_unit_test(h409_a_watch_that_times_out_keeps_the_connection),
		cmocka_unit_test(r631_errors_before_the_stream_are_answers),
		cmocka_unit_test(r631_errors_of_a_stream_are_events),
		cmocka_unit_test(r608_r622_shards_over_http),
		cmocka_unit_test(r125_an_expired_page_may_go_on_in_the_newest_state),
		cmocka_unit_test(h624_a_stalled_watch_delays_nobody),
		cmocka_unit_test(w31_a_resource_version_that_is_no_number_is_a_bad_request),
		cmocka_unit_test(h419_versions_grow_over_all_kinds),
	};
	return cmocka_run_group_tests(tests, http_shared_set_up, http_shared_tear_down);
}
