/* The HTTP endpoints of the etcd server without a network: paths, methods, queries, alarms. */
#include <sys/resource.h>
#include <time.h>

#include "etcd_server_fixture.h"

#include "serve_http.h"
#include "serve_state.h"
#include "vdtest.h"

struct answer {
	int  code;
	char headers[1024];
	char body[1024]; /* cut */
	bool closes;
};

static struct answer ask_with(struct etcd_server_fixture *fixture, bool with_cors,
			      enum vdi_http_method method, const char *target)
{
	const char	   *mark = strchr(target, '?');
	struct vdi_rpc_http http = { .method = method, .code = 200 };
	struct answer	    answer;

	http.path = (struct vd_bytes) { target, mark ? (size_t) (mark - target) : strlen(target) };
	http.query = vd_bytes_of(mark ? mark + 1 : "");
	vdi_buffer_init(&http.headers, 4096);
	vdi_buffer_init(&http.body, 1 << 20);
	vdi_serve_http_fill(fixture->server, with_cors, &http);
	assert_status(vdi_buffer_status(&http.headers), VD_OK);
	assert_status(vdi_buffer_status(&http.body), VD_OK);
	answer.code = http.code;
	answer.closes = http.closes;
	snprintf(answer.headers, sizeof answer.headers, "%.*s", (int) http.headers.size,
		 http.headers.data ? http.headers.data : "");
	snprintf(answer.body, sizeof answer.body, "%.*s", (int) http.body.size,
		 http.body.data ? http.body.data : "");
	vdi_buffer_fini(&http.headers);
	vdi_buffer_fini(&http.body);
	return answer;
}

static struct answer ask(struct etcd_server_fixture *fixture, const char *target)
{
	return ask_with(fixture, false, VDI_HTTP_GET, target);
}

static void expect(struct etcd_server_fixture *fixture, const char *target, int code, const char *body)
{
	struct answer answer = ask(fixture, target);

	if (answer.code != code || strcmp(answer.body, body) != 0)
		fail_msg("%s: %d \"%s\", not %d \"%s\"", target, answer.code, answer.body, code, body);
}

#define ALL_READY                                                                                            \
	"[+]data_corruption ok\n[+]serializable_read ok\n[+]linearizable_read ok\n[+]non_learner ok\nok\n"
#define HEALTHY "{\"health\":\"true\",\"reason\":\"\"}"
#define NOT_FOUND "404 page not found\n"

static void e153_e640_what_a_healthy_member_says(void **state)
{
	expect(*state, "/health", 200, HEALTHY);
	expect(*state, "/health?serializable=true", 200, HEALTHY);
	expect(*state, "/version", 200,
	       "{\"etcdserver\":\"3.7.3\",\"etcdcluster\":\"3.7.0\",\"storage\":\"3.7.0\"}");
	expect(*state, "/livez", 200, "ok\n");
	expect(*state, "/livez?verbose", 200, "[+]serializable_read ok\nok\n");
	expect(*state, "/livez?exclude=serializable_read&verbose", 200, "ok\n");
	expect(*state, "/livez/serializable_read?verbose&exclude=serializable_read", 200,
	       "[+]serializable_read ok\nok\n");
	expect(*state, "/readyz", 200, "ok\n");
	expect(*state, "/readyz?verbose=no", 200, ALL_READY);
	expect(*state, "/readyz?exclude=data_corruption&exclude=non%5flearner&exclude=&exclude=other&verbose",
	       200, "[+]serializable_read ok\n[+]linearizable_read ok\nok\n");
	expect(*state, "/readyz?exclude=data_corruption;x&verbose", 200, ALL_READY);
	expect(*state, "/readyz/non_learner?verbose", 200, "[+]non_learner ok\nok\n");
	assert_non_null(strstr(ask(*state, "/metrics").headers, "Content-Type: text/plain; version=0.0.4"));
	assert_string_equal(ask(*state, "/health").headers, "Content-Type: text/plain; charset=utf-8\r\n");
	assert_string_equal(ask(*state, "/version").headers, "Content-Type: application/json\r\n");
	assert_string_equal(ask(*state, "/livez").headers,
			    "Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n");
}

/* Processor time is that of this process: it grows with what is done, and not beyond it. */
static void e153_processor_time_is_measured(void **state)
{
	double before = 0, after = 0;

	for (int i = 0; i < 2; i++) {
		struct vdi_rpc_http http = { .method = VDI_HTTP_GET,
					     .path = vd_bytes_of("/metrics"),
					     .code = 200 };
		struct rusage	    usage;
		const char	   *line;

		vdi_buffer_init(&http.headers, 4096);
		vdi_buffer_init(&http.body, 4 << 20);
		vdi_serve_http_fill(((struct etcd_server_fixture *) *state)->server, false, &http);
		vdi_buffer_append_char(&http.body, 0);
		line = strstr(http.body.data, "\nprocess_cpu_seconds_total ");
		assert_non_null(line);
		before = after;
		after = strtod(line + strlen("\nprocess_cpu_seconds_total "), NULL);
		assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
		assert_true(after <=
			    (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
				    (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6 + 0.03);
		vdi_buffer_fini(&http.headers);
		vdi_buffer_fini(&http.body);
		while (i == 0 && (double) clock() / CLOCKS_PER_SEC < after + 0.1)
			;
	}
	assert_true(after > before);
}

static void e153_alarms_are_reasons_unless_excluded(void **state)
{
	struct etcd_server_fixture *fixture = *state;

	vdi_serve_state_raise(fixture->server->state, fixture->server->member_id, VDI_ALARM_NOSPACE);
	expect(fixture, "/health", 503, "{\"health\":\"false\",\"reason\":\"ALARM NOSPACE\"}\n");
	expect(fixture, "/health?exclude=NOSPACE", 200, HEALTHY);
	expect(fixture, "/health?exclude=%4EOSPACE", 200, HEALTHY);
	expect(fixture, "/health?exclude=NOSPACE;", 503,
	       "{\"health\":\"false\",\"reason\":\"ALARM NOSPACE\"}\n");
	expect(fixture, "/readyz", 200, "ok\n");
	vdi_serve_state_raise(fixture->server->state, fixture->server->member_id, VDI_ALARM_CORRUPT);
	expect(fixture, "/health?exclude=NOSPACE", 503,
	       "{\"health\":\"false\",\"reason\":\"ALARM CORRUPT\"}\n");
	expect(fixture, "/health?exclude=NOSPACE&exclude=CORRUPT", 200, HEALTHY);
	expect(fixture, "/readyz", 503,
	       "[-]data_corruption failed: alarm activated: CORRUPT\n[+]serializable_read "
	       "ok\n[+]linearizable_read ok\n[+]non_learner ok\n\n");
	expect(fixture, "/readyz/data_corruption", 503,
	       "[-]data_corruption failed: alarm activated: CORRUPT\n\n");
	expect(fixture, "/readyz?exclude=data_corruption", 200, "ok\n");
	expect(fixture, "/livez", 200, "ok\n");
}

static void e153_other_methods_are_refused_where_the_path_is_known(void **state)
{
	static const char *const paths[] = { "/health", "/version", "/livez", "/readyz/non_learner" };
	struct answer		 answer;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(paths); i++)
		for (enum vdi_http_method method = VDI_HTTP_HEAD; method <= VDI_HTTP_OTHER; method++) {
			answer = ask_with(*state, false, method, paths[i]);
			assert_int_equal(answer.code, 405);
			assert_string_equal(answer.body, "Method Not Allowed\n");
			assert_string_equal(answer.headers,
					    "Allow: GET\r\nContent-Type: text/plain; "
					    "charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n");
		}
	assert_int_equal(ask_with(*state, false, VDI_HTTP_POST, "/metrics").code, 200);
	assert_int_equal(ask_with(*state, false, VDI_HTTP_POST, "/nothing").code, 404);
}

/* As Go's mux: what is not clean is elsewhere. */
static void e153_paths_are_cleaned_by_a_redirect(void **state)
{
	static const char *const cases[][2] = {
		{ "//health", "/health" },
		{ "/x/../health?a=b&c", "/health?a=b&c" },
		{ "/health/.", "/health" },
		{ "/..", "/" },
		{ "//", "/" },
		{ "/x//y/?q", "/x/y/?q" },
		{ "/./version", "/version" },
		{ "/x/..//../y/", "/y/" },
		{ "/%41//b", "/%2541/b" },
	};
	struct answer answer;
	char	      wanted[128];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		answer = ask(*state, cases[i][0]);
		snprintf(wanted, sizeof wanted, "Content-Type: text/html; charset=utf-8\r\nLocation: %s\r\n",
			 cases[i][1]);
		assert_int_equal(answer.code, 307);
		assert_string_equal(answer.headers, wanted);
	}
	assert_string_equal(ask(*state, "//health?<&").body,
			    "<a href=\"/health?&lt;&amp;\">Temporary Redirect</a>.\n\n");
	answer = ask_with(*state, false, VDI_HTTP_POST, "//health");
	assert_string_equal(answer.headers, "Location: /health\r\n");
	assert_string_equal(answer.body, "");
	/* Nothing that a client sends gets into a line of its own (HTTP/2 lets more pass). */
	assert_string_equal(ask(*state, "//a\r\nX: y?b\r\nc").headers,
			    "Content-Type: text/html; charset=utf-8\r\nLocation: /a%0D%0AX:%20y\r\n");
}

static void paths_that_are_none(void **state)
{
	static const char *const unknown[] = { "/",
					       "/nothing",
					       "/health/",
					       "/livez/",
					       "/livez/data_corruption",
					       "/readyz/x",
					       "/Health",
					       "/livez%2fserializable_read",
					       "/health%00" };
	static const char *const broken[] = { "/%", "/%z", "/%zz", "/health%4", "", "health", "*" };
	static char		 path[3000];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(unknown); i++)
		expect(*state, unknown[i], 404, NOT_FOUND);
	expect(*state, "/%68ealt%68", 200, HEALTHY);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(broken); i++) {
		expect(*state, broken[i], 400, "400 Bad Request");
		assert_true(ask(*state, broken[i]).closes);
		assert_string_equal(ask(*state, broken[i]).headers,
				    "Content-Type: text/plain; charset=utf-8\r\n");
	}
	/* Paths below 1,024 bytes are cleaned, longer ones are none of ours. */
	for (size_t size = 1022; size <= 1026; size++) {
		memset(path, 'p', size);
		path[0] = path[1] = '/';
		path[size] = 0;
		assert_int_equal(ask(*state, path).code, size < 1024 ? 307 : 404);
	}
	memset(path, '/', sizeof path - 1);
	expect(*state, path, 404, NOT_FOUND);
	for (size_t size = 1000; size < 1050; size++) {
		path[size] = 0;
		(void) ask(*state, path);
		path[size] = '/';
	}
}

static void e152_pages_of_any_origin_may_ask_on_the_clients_port(void **state)
{
	static const char cors[] = "Access-Control-Allow-Headers: accept, content-type, authorization\r\n"
				   "Access-Control-Allow-Methods: POST, GET, OPTIONS, PUT, "
				   "DELETE\r\nAccess-Control-Allow-Origin: *\r\n";
	struct answer	  answer = ask_with(*state, true, VDI_HTTP_OPTIONS, "/nothing");

	assert_int_equal(answer.code, 200);
	assert_string_equal(answer.headers, cors);
	assert_string_equal(answer.body, "");
	answer = ask_with(*state, true, VDI_HTTP_GET, "/version");
	assert_memory_equal(answer.headers, cors, sizeof cors - 1);
	answer = ask_with(*state, true, VDI_HTTP_OPTIONS, "*");
	assert_int_equal(answer.code, 200);
	assert_string_equal(answer.headers, "");
}

static void what_is_slow_is_known_beforehand(void **state)
{
	static const struct {
		const char *path;
		bool	    is_slow;
	} paths[] = { { "/metrics", true }, { "/%6detrics", true }, { "/metrics/", false },
		      { "/health", false }, { "/%zz", false },	    { "", false } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(paths); i++) {
		struct vdi_rpc_http http = { .path = vd_bytes_of(paths[i].path) };

		assert_int_equal(vdi_serve_http_is_slow(&http), paths[i].is_slow);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(e153_e640_what_a_healthy_member_says),
		TEST(e153_processor_time_is_measured),
		TEST(e153_alarms_are_reasons_unless_excluded),
		TEST(e153_other_methods_are_refused_where_the_path_is_known),
		TEST(e153_paths_are_cleaned_by_a_redirect),
		TEST(paths_that_are_none),
		TEST(e152_pages_of_any_origin_may_ask_on_the_clients_port),
		TEST(what_is_slow_is_known_beforehand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
