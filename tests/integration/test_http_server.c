/* The server in this process, on a memory store, with clients on raw sockets: connections, bodies, health,
 * metrics, authentication. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "http_fixture.h"
#include "http_shared.h"
#include "json_scan.h"

#define JSON HTTP_JSON

static void discovery_health_and_unknown_paths(void **state)
{
	http_shared_expect("GET", "/api", "", "", 200, "\"versions\":[\"v1\"]");
	http_shared_expect("GET", "/apis/apps/v1", "", "", 200, "\"name\":\"deployments/scale\"");
	http_shared_expect("GET", "/readyz", "", "", 200, "ok");
	http_shared_expect("GET", "/readyz?verbose", "", "", 200, "[+]cache/pods ok");
	http_shared_expect("GET", "/nope", "", "", 404, "the server could not find the requested resource");
	http_shared_expect("GET", "/api/v1/nope", "", "", 404, "NotFound");
	http_shared_expect("POST", "/api/v1/pods", JSON, "{}", 405, "MethodNotAllowed");
	http_shared_expect("GET", "/api/v1/pods/..", "", "", 400, "BadRequest");
	http_shared_expect("GET", "/debug/vedette", "", "", 200, "\"resource\":\"pods\"");
	http_shared_expect("GET", "/metrics", "", "", 200, "# TYPE");
	http_shared_expect("GET", "/api/v1/pods?resourceVersion=x", "", "", 400, "invalid syntax");
	http_shared_expect("GET", "/api/v1/pods", "Accept: text/html\r\n", "", 406, "NotAcceptable");
	http_shared_expect("GET", "/api/v1/pods", "Sec-Fetch-Site: cross-site\r\n", "", 403, "Forbidden");
}

/* rules: H-111 */
static void h115_a_known_etag_is_not_sent_again(void **state)
{
	struct http_answer first = http_shared_request(
		"GET", "/apis",
		"Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n", "");
	char		   header[200], *etag = strstr(first.head, "ETag: ");
	struct http_answer second;

	assert_non_null(etag);
	assert_non_null(strstr(
		first.head,
		"Content-Type: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n"));
	assert_non_null(strstr(first.head, "Vary: Accept"));
	sprintf(header,
		"Accept: "
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\nIf-None-Match: "
		"%.18s\r\n",
		etag + 6);
	second = http_shared_request("GET", "/apis", header, "");
	assert_int_equal(second.code, 304);
	http_answer_free(&first);
	http_answer_free(&second);
}

static void h606_pipelined_requests_are_answered_in_order(void **state)
{
	struct http_client	 client = http_client_open();
	static const char *const paths[] = { "/version", "/api", "/livez" };
	struct http_answer	 answer;

	http_client_send(
		&client,
		"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api HTTP/1.1\r\nHost: localhost\r\n\r\n"
		"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(paths); i++) {
		answer = http_client_read_answer(&client);
		assert_int_equal(answer.code, 200);
		assert_non_null(strstr(answer.body, i == 0 ? "gitVersion" : i == 1 ? "APIVersions" : "ok"));
		http_answer_free(&answer);
	}
	assert_false(http_client_read_more(&client));
	http_client_close(&client);
}

static void bytes_one_by_one_and_chunked_bodies_arrive_too(void **state)
{
	static const char text[] =
		"POST " HTTP_CM " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
		"10\r\n{\"metadata\":{\"na\r\nC\r\nme\":\"slow\"}}\r\n0\r\n\r\n";
	struct http_client client = http_client_open();
	struct http_answer answer;

	for (size_t i = 0; i + 1 < sizeof text; i++) {
		char one[2] = { text[i], 0 };

		http_client_send(&client, one);
	}
	answer = http_client_read_answer(&client);
	assert_int_equal(answer.code, 201);
	http_answer_free(&answer);
	http_client_close(&client);
	http_shared_expect("DELETE", HTTP_CM "/slow", "", "", 200, "Success");
}

static void r654_bodies_that_are_too_large_are_refused(void **state)
{
	struct http_client client = http_client_open();
	struct http_answer answer;

	http_client_send(&client,
			 "POST " HTTP_CM " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n{");
	answer = http_client_read_answer(&client);
	assert_int_equal(answer.code, 413);
	assert_non_null(strstr(answer.body, "Request entity too large: limit is 3145728"));
	http_answer_free(&answer);
	http_client_close(&client);
	/* A body of the maximum size, a patch with the maximum number of operations, and more. */
	{
		char *body = malloc(3145728 + 1), *patch = malloc(200000);

		assert_true(body && patch);
		memset(body, ' ', 3145728);
		body[3145728] = 0;
		memcpy(body, "{\"metadata\":{\"name\":\"large\"}}",
		       strlen("{\"metadata\":{\"name\":\"large\"}}"));
		http_shared_expect("POST", HTTP_CM, JSON, body, 201, "\"name\":\"large\"");
		for (int operations = 10000; operations <= 10001; operations++) {
			static const char operation[] = "{\"op\":\"test\"},";
			char		 *at = patch;

			*at++ = '[';
			for (int i = 0; i < operations; i++, at += sizeof operation - 1)
				memcpy(at, operation, sizeof operation - 1);
			memcpy(at - 1, "]", 2);
			http_shared_expect("PATCH", HTTP_CM "/large",
					   "Content-Type: application/json-patch+json\r\n", patch,
					   operations > 10000 ? 413 : 400,
					   operations > 10000 ? "\"reason\":\"RequestEntityTooLarge\"" : "");
		}
		http_shared_expect("DELETE", HTTP_CM "/large", "", "", 200, "Success");
		free(body);
		free(patch);
	}
	/* In chunks, none of which is too large. */
	{
		static char chunk[(1 << 20) + 1];

		memset(chunk, ' ', sizeof chunk - 1);
		client = http_client_open();
		http_client_send(&client,
				 "POST " HTTP_CM
				 " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
		for (int i = 0; i < 3; i++) {
			http_client_send(&client, "100000\r\n");
			http_client_send(&client, chunk);
			http_client_send(&client, "\r\n");
		}
		http_client_send(&client, "1\r\n{\r\n");
		answer = http_client_read_answer(&client);
		assert_int_equal(answer.code, 413);
		assert_non_null(strstr(answer.body, "Request entity too large: limit is 3145728"));
		http_answer_free(&answer);
		http_client_close(&client);
	}
}

/* The server's end of the client's connection; it is in this process. */
static int server_end_of(const struct http_client *client)
{
	struct sockaddr_in own, peer;
	socklen_t	   size = sizeof own;

	assert_int_equal(getsockname(client->fd, (struct sockaddr *) &own, &size), 0);
	for (int fd = 3; fd < 1024; fd++) {
		size = sizeof peer;
		if (getpeername(fd, (struct sockaddr *) &peer, &size) == 0 && peer.sin_family == AF_INET &&
		    peer.sin_port == own.sin_port)
			return fd;
	}
	fail_msg("the server has no such connection");
	return -1;
}

static int option_of(int fd, int level, int name)
{
	int	  value = 0;
	socklen_t size = sizeof value;

	assert_int_equal(getsockopt(fd, level, name, &value, &size), 0);
	return value;
}

static void h507_small_writes_go_at_once_and_dead_peers_are_found(void **state)
{
	struct http_client client = http_client_open();
	struct http_answer answer = http_client_request(&client, "GET", "/version", "", "");
	int		   fd = server_end_of(&client);

	assert_int_equal(answer.code, 200);
	assert_true(option_of(fd, IPPROTO_TCP, TCP_NODELAY));
	assert_true(option_of(fd, SOL_SOCKET, SO_KEEPALIVE));
	assert_in_range(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 1, 60);
	assert_in_range(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 30000, 60000);
	http_answer_free(&answer);
	http_client_close(&client);
}

static void only_loopback_is_served_without_authentication(void **state)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct vd_server	*server;
	struct vd_error		 error;

	options.listen = "0.0.0.0:0";
	assert_status(vd_server_new(http_shared.env, http_shared.store, &options, &server, &error),
		      VD_INVALID_ARGUMENT);
	assert_non_null(strstr(error.message, "loopback"));
	options.listen = "127.0.0.1";
	assert_status(vd_server_new(http_shared.env, http_shared.store, &options, &server, &error),
		      VD_INVALID_ARGUMENT);
	options.listen = "127.0.0.1:0";
	options.resources = vd_bytes_of("[{\"group\":\"x.io\"}]");
	assert_status(vd_server_new(http_shared.env, http_shared.store, &options, &server, &error),
		      VD_INVALID);
	assert_non_null(strstr(error.message, "entry 0"));
}

static void expect_code(int code, const char *text)
{
	struct http_client client = http_client_open();
	struct http_answer answer;

	http_client_send(&client, text);
	answer = http_client_read_answer(&client);
	if (answer.code != code)
		fail_msg("%s is answered with %d, not %d", text, answer.code, code);
	http_answer_free(&answer);
	http_client_close(&client);
}

/* A name that resolves to this machine may belong to an attacker (DNS rebinding). */
static void only_hosts_of_this_machine_are_served_without_authentication(void **state)
{
	static const char *const hosts[][2] = { { "127.0.0.1:8080", "200" },
						{ "localhost", "200" },
						{ "[::1]:1", "200" },
						{ "127.evil.example", "403" },
						{ "127.evil.example:8080", "403" },
						{ "localhost.evil.example", "403" } };
	char			 text[200];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(hosts); i++) {
		(void) snprintf(text, sizeof text, "GET /version HTTP/1.1\r\nHost: %s\r\n\r\n", hosts[i][0]);
		expect_code(atoi(hosts[i][1]), text);
	}
}

static void two_identities_are_none(void **state)
{
	(void) state;
	expect_code(400, "GET /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
			 "a\r\nAuthorization: Bearer b\r\n\r\n");
}

/* rules: R-636, T-209 */
static void draining_ends_watches_cleanly(void **state)
{
	struct http_client client = http_client_open();

	http_client_watch(&client, "&labelSelector=none", "");
	assert_status(vd_server_drain(http_shared.server, VD_SECONDS(10)), VD_OK);
	assert_null(http_client_read_chunk(&client));
	assert_false(http_client_read_more(&client));
	http_client_close(&client);
}

/* Returns the value of the series with that prefix; -1 if there is none. Checks the whole exposition:
 * comments and `name value`. */
static double metric_of(const char *name)
{
	struct http_answer answer = http_shared_request("GET", "/metrics", "", "");
	double		   value = -1;

	assert_int_equal(answer.code, 200);
	for (char *line = answer.body, *end; *line; line = end + 1) {
		char *number, *rest;

		end = strchr(line, '\n');
		assert_non_null(end);
		*end = 0;
		if (strncmp(line, "# HELP ", 7) == 0 || strncmp(line, "# TYPE ", 7) == 0)
			continue;
		number = strrchr(line, ' ');
		assert_non_null(number);
		(void) strtod(number + 1, &rest);
		assert_true(rest == end && rest > number + 1);
		if (strncmp(line, name, strlen(name)) == 0 && value < 0)
			value = strtod(number + 1, NULL);
	}
	http_answer_free(&answer);
	return value;
}

#define SECRETS "/api/v1/namespaces/default/secrets"
#define LABELS(verb, scope)                                                                                  \
	"verb=\"" verb "\",group=\"\",version=\"v1\",resource=\"secrets\",subresource=\"\",scope=\"" scope   \
	"\",component=\"apiserver\""
#define LABELS_DRY(verb, scope)                                                                              \
	"verb=\"" verb                                                                                       \
	"\",dry_run=\"\",group=\"\",version=\"v1\",resource=\"secrets\",subresource=\"\",scope=\"" scope     \
	"\",component=\"apiserver\""
#define OF_SECRETS "{group=\"\",version=\"v1\",resource=\"secrets\""

static void r745_requests_are_counted_by_verb_and_code(void **state)
{
	http_shared_expect("POST", SECRETS, JSON, "{\"metadata\":{\"name\":\"m\"}}", 201, "\"name\":\"m\"");
	http_shared_expect("GET", SECRETS "/m", "", "", 200, "\"name\":\"m\"");
	http_shared_expect("GET", SECRETS "/none", "", "", 404, "NotFound");
	http_shared_expect("GET", SECRETS, "", "", 200, "\"name\":\"m\"");
	assert_true(metric_of("apiserver_request_total{" LABELS_DRY("POST", "resource") ",code=\"201\"}") ==
		    1);
	assert_true(metric_of("apiserver_request_total{" LABELS_DRY("GET", "resource") ",code=\"200\"}") ==
		    1);
	assert_true(metric_of("apiserver_request_total{" LABELS_DRY("GET", "resource") ",code=\"404\"}") ==
		    1);
	assert_true(metric_of("apiserver_request_total{" LABELS_DRY("LIST", "namespace") ",code=\"200\"}") ==
		    1);
	assert_true(metric_of("apiserver_request_duration_seconds_count{" LABELS_DRY("GET",
										     "resource") "}") == 2);
	assert_true(metric_of("apiserver_request_sli_duration_seconds_count{" LABELS("LIST",
										     "namespace") "}") == 1);
	assert_true(metric_of("apiserver_response_sizes_sum{" LABELS("LIST", "namespace") "}") > 100);
	assert_true(metric_of("apiserver_request_body_size_bytes_sum{resource=\"secrets\",verb=\"POST\"}") ==
		    25);
	/* The present request; the previous one ends when its answer is complete, on another loop. */
	while (metric_of("apiserver_current_inflight_requests{request_kind=\"readOnly\"}") != 1)
		continue;
	while (metric_of("apiserver_current_inflight_requests{request_kind=\"mutating\"}") != 0)
		continue;
	assert_true(
		metric_of("apiserver_cache_list_returned_objects_total{group=\"\",resource=\"secrets\"}") ==
		1); /* */
	assert_true(metric_of("vedette_memory_blocks") > 0);
	assert_true(metric_of("vedette_cache_objects{group=\"\",resource=\"secrets\"}") == 1);
}

/* rules, T-209 */
static void r741_events_sizes_and_r744_running_watches_are_counted(void **state)
{
	struct http_client client = http_client_open();
	char		  *text;

	http_client_send(&client,
			 "GET " SECRETS "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
			 "allowWatchBookmarks=true HTTP/1.1\r\n"
			 "Host: localhost\r\n\r\n");
	text = http_client_read_until(&client, "\r\n\r\n");
	free(text);
	for (int i = 0; i < 2; i++) { /* the secret from above, the bookmark */
		text = http_client_read_chunk(&client);
		assert_non_null(text);
		free(text);
	}
	assert_true(metric_of("apiserver_watch_events_total" OF_SECRETS "}") == 2);
	assert_true(metric_of("apiserver_watch_events_sizes_count" OF_SECRETS "}") == 2);
	assert_true(metric_of("apiserver_watch_events_sizes_bucket" OF_SECRETS ",le=\"1024\"}") == 2);
	assert_true(metric_of("apiserver_watch_list_duration_seconds_count" OF_SECRETS
			      ",scope=\"namespace\"}") == 1); /* */
	assert_true(metric_of("apiserver_longrunning_requests{" LABELS("WATCH", "namespace") "}") == 1);
	assert_true(metric_of("apiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"}") ==
		    0); /* in memory */
	http_client_close(&client);
	while (metric_of("apiserver_longrunning_requests{" LABELS("WATCH", "namespace") "}") != 0)
		continue;
	assert_true(metric_of("apiserver_request_total{" LABELS_DRY("WATCH", "namespace") ",code=\"200\"}") ==
		    1);
	/* A state without a bookmark at its end is no streamed list: it has no latency. */
	client = http_client_open();
	http_client_send(&client, "GET " SECRETS "?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
	free(http_client_read_until(&client, "\r\n\r\n"));
	text = http_client_read_chunk(&client);
	assert_non_null(text);
	free(text);
	assert_true(metric_of("apiserver_watch_events_total" OF_SECRETS "}") == 3);
	assert_true(metric_of("apiserver_watch_list_duration_seconds_count" OF_SECRETS
			      ",scope=\"namespace\"}") == 1);
	http_client_close(&client);
}

static void the_dump_is_valid_under_load(void **state)
{
	struct http_client watches[8], writer = http_client_open();
	bool		   have_joined = false;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(watches); i++) {
		watches[i] = http_client_open();
		http_client_send(&watches[i],
				 "GET " HTTP_CM
				 "?watch=1&labelSelector=load HTTP/1.1\r\nHost: localhost\r\n\r\n");
		free(http_client_read_until(&watches[i], "\r\n\r\n"));
	}
	/* The head arrives before the cache has the watch. */
	while (!have_joined) {
		struct http_answer answer = http_shared_request("GET", "/debug/vedette", "", "");

		have_joined = strstr(answer.body, "\"labelSelector\":\"load\"") != NULL;
		http_answer_free(&answer);
	}
	for (int i = 0; i < 40; i++) {
		char		   body[128];
		struct http_answer answer;

		sprintf(body, "{\"metadata\":{\"name\":\"load%d\",\"labels\":{\"load\":\"1\"}}}", i);
		answer = http_client_request(&writer, "POST", HTTP_CM, JSON, body);
		assert_int_equal(answer.code, 201);
		http_answer_free(&answer);
		if (i == 20)
			http_client_close(&watches[0]);
		answer = http_shared_request("GET", "/debug/vedette", "", "");
		assert_int_equal(answer.code, 200);
		assert_int_equal(vdi_json_validate(vd_bytes_of(answer.body), NULL, NULL), VD_OK);
		assert_non_null(strstr(answer.body, "\"labelSelector\":\"load\""));
		assert_non_null(strstr(answer.body, "\"store\":{\"current\":"));
		assert_non_null(strstr(answer.body, "\"executor\":\"1\""));
		assert_null(strstr(answer.body, "0x")); /* addresses would help an attacker */
		http_answer_free(&answer);
	}
	for (size_t i = 1; i < VDI_ARRAY_SIZE(watches); i++)
		http_client_close(&watches[i]);
	http_client_close(&writer);
}

/* A server of one kind over the same store, on a Unix socket, as a command that reads an etcd uses it. */
static void a_server_on_a_path_serves_one_kind_read_only(void **state)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct sockaddr_un	 address = { .sun_family = AF_UNIX };
	char			 directory[] = "/tmp/vedette-http-XXXXXX", listen[128];
	struct vd_server	*server = NULL;
	struct http_client	 client = { .fd = socket(AF_UNIX, SOCK_STREAM, 0) };
	struct http_answer	 answer;
	struct vd_error		 error;
	struct stat		 file;

	assert_non_null(mkdtemp(directory));
	snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", directory);
	snprintf(listen, sizeof listen, "unix:%s", address.sun_path);
	http_shared_expect("POST", HTTP_CM, JSON, "{\"metadata\":{\"name\":\"within\"}}", 201, "within");
	options.listen = listen;
	options.read_only = true;
	options.only = "nothings";
	assert_status(vd_server_new(http_shared.env, http_shared.store, &options, &server, &error),
		      VD_INVALID);
	assert_string_equal(error.message, "resources: unknown kind nothings");
	options.only = "configmaps";
	assert_status(vd_server_new(http_shared.env, http_shared.store, &options, &server, &error), VD_OK);
	assert_status(vd_server_start(server, VD_SECONDS(60), &error), VD_OK);
	assert_string_equal(vd_server_address(server), listen);
	assert_int_equal(stat(address.sun_path, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0600);
	assert_int_equal(connect(client.fd, (struct sockaddr *) &address, sizeof address), 0);
	answer = http_client_request(&client, "GET", HTTP_CM "/within", "", "");
	assert_int_equal(answer.code, 200);
	http_answer_free(&answer);
	answer = http_client_request(&client, "GET", "/api/v1/pods", "", "");
	assert_int_equal(answer.code, 404);
	http_answer_free(&answer);
	answer = http_client_request(&client, "DELETE", HTTP_CM "/within", "", "");
	assert_int_equal(answer.code, 405);
	http_answer_free(&answer);
	http_client_send(&client,
			 "GET " HTTP_CM "?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: localhost\r\n\r\n");
	free(http_client_read_until(&client, "\"within\""));
	assert_status(vd_server_drain(server, VD_SECONDS(10)), VD_OK);
	http_client_close(&client);
	(void) vd_server_free(server);
	assert_int_equal(rmdir(directory), 0); /* the socket is gone */
	options.listen = "unix:";
	assert_status(vd_server_new(http_shared.env, http_shared.store, &options, &server, &error),
		      VD_INVALID_ARGUMENT);
	options.listen = "unix:/nowhere/at/all";
	assert_status(vd_server_new(http_shared.env, http_shared.store, &options, &server, &error), VD_IO);
	http_shared_expect("DELETE", HTTP_CM "/within", "", "", 200, "Success");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(discovery_health_and_unknown_paths),
		cmocka_unit_test(h115_a_known_etag_is_not_sent_again),
		cmocka_unit_test(h606_pipelined_requests_are_answered_in_order),
		cmocka_unit_test(bytes_one_by_one_and_chunked_bodies_arrive_too),
		cmocka_unit_test(r654_bodies_that_are_too_large_are_refused),
		cmocka_unit_test(r745_requests_are_counted_by_verb_and_code),
		cmocka_unit_test(r741_events_sizes_and_r744_running_watches_are_counted),
		cmocka_unit_test(the_dump_is_valid_under_load),
		cmocka_unit_test(a_server_on_a_path_serves_one_kind_read_only),
		cmocka_unit_test(h507_small_writes_go_at_once_and_dead_peers_are_found),
		cmocka_unit_test(only_loopback_is_served_without_authentication),
		cmocka_unit_test(only_hosts_of_this_machine_are_served_without_authentication),
		cmocka_unit_test(two_identities_are_none),
		cmocka_unit_test(draining_ends_watches_cleanly),
	};
	return cmocka_run_group_tests(tests, http_shared_set_up, http_shared_tear_down);
}
