/* The HTTP endpoints of the etcd server (E-153) on their own port, over a real socket: health, readiness,
 * version, metrics. */
#include "etcd_server_fixture.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include "env.h"
#include "http_fixture.h"
#include "serve_http_port.h"
#include "serve_state.h"
#include "vdtest.h"

struct http_test {
	struct vd_env		   *env;
	struct vd_store		   *store;
	struct vdi_etcdserver	   *server;
	struct vdi_serve_http_port *http;
	char			    answer[1 << 20];
};

static int setup(void **state)
{
	struct vd_mvcc_options	      memory = VD_MVCC_OPTIONS_INIT;
	struct vdi_etcdserver_options options = { 0 };
	struct http_test	     *test = malloc(sizeof *test);

	assert_status(vd_env_new_threads(NULL, &test->env), VD_OK);
	assert_status(vd_store_open_mvcc(test->env, &memory, &test->store, NULL), VD_OK);
	options.store = test->store;
	assert_status(vdi_etcdserver_new(test->env, &options, &test->server, NULL), VD_OK);
	assert_status(vdi_serve_http_port_new(test->server, "127.0.0.1:0", &test->http, NULL), VD_OK);
	*state = test;
	return 0;
}

static int teardown(void **state)
{
	struct http_test *test = *state;

	(void) vdi_serve_http_port_free(test->http);
	vdi_etcdserver_stop(test->server);
	(void) vdi_etcdserver_free(test->server);
	if (test->store)
		vd_store_close_wait(test->store);
	vd_env_free(test->env);
	free(test);
	return 0;
}

/* The whole answer, head and body, with LF for CRLF. */
static const char *ask(struct http_test *test, const char *method, const char *target)
{
	const char *address = vdi_serve_http_port_address(test->http);
	size_t	    kept = 0;
	int	    code;
	char *text = http_ask((uint16_t) atoi(strrchr(address, ':') + 1), method, target, "", "", &code);

	assert_true(strlen(text) < sizeof test->answer);
	for (const char *at = text; *at; at++)
		if (*at != '\r')
			test->answer[kept++] = *at;
	test->answer[kept] = 0;
	free(text);
	return test->answer;
}

static void expect_body(struct http_test *test, const char *target, int code, const char *type,
			const char *body)
{
	char	    wanted[128];
	const char *answer = ask(test, "GET", target);
	const char *end = strstr(answer, "\n\n");

	(void) snprintf(wanted, sizeof wanted, "HTTP/1.1 %d ", code);
	assert_memory_equal(answer, wanted, strlen(wanted));
	(void) snprintf(wanted, sizeof wanted, "\nContent-Type: %s\n", type);
	assert_non_null(strstr(answer, wanted));
	assert_null(strstr(answer, "Access-Control")); /* only the clients' port is for pages */
	assert_non_null(end);
	assert_string_equal(end + 2, body);
}

#define TEXT "text/plain; charset=utf-8"

static void set_alarm(struct http_test *test, enum vdi_alarm kind, bool active)
{
	struct vdi_serve_alarm alarm = { 7, kind };
	bool		       changed;

	assert_status(vdi_serve_state_set_alarm(test->server->state, &alarm, active, &changed), VD_OK);
	assert_true(changed);
}

static void e153_e640_version(void **state)
{
	expect_body(*state, "/version", 200, "application/json",
		    "{\"etcdserver\":\"3.7.3\",\"etcdcluster\":\"3.7.0\",\"storage\":\"3.7.0\"}");
}

static void e153_health_says_what_is_wrong(void **state)
{
	struct http_test *test = *state;

	expect_body(test, "/health", 200, TEXT, "{\"health\":\"true\",\"reason\":\"\"}");
	expect_body(test, "/health?serializable=true", 200, TEXT, "{\"health\":\"true\",\"reason\":\"\"}");
	set_alarm(test, VDI_ALARM_NOSPACE, true);
	expect_body(test, "/health", 503, TEXT, "{\"health\":\"false\",\"reason\":\"ALARM NOSPACE\"}\n");
	expect_body(test, "/health?exclude=CORRUPT", 503, TEXT,
		    "{\"health\":\"false\",\"reason\":\"ALARM NOSPACE\"}\n");
	expect_body(test, "/health?exclude=NOSPACE", 200, TEXT, "{\"health\":\"true\",\"reason\":\"\"}");
	set_alarm(test, VDI_ALARM_CORRUPT, true);
	expect_body(test, "/health?exclude=NOSPACE", 503, TEXT,
		    "{\"health\":\"false\",\"reason\":\"ALARM CORRUPT\"}\n");
	expect_body(test, "/health?exclude=NOSPACE&exclude=CORRUPT", 200, TEXT,
		    "{\"health\":\"true\",\"reason\":\"\"}");
	set_alarm(test, VDI_ALARM_CORRUPT, false);
	set_alarm(test, VDI_ALARM_NOSPACE, false);
	expect_body(test, "/health", 200, TEXT, "{\"health\":\"true\",\"reason\":\"\"}");
}

static void e153_livez_and_readyz(void **state)
{
	struct http_test *test = *state;

	expect_body(test, "/livez", 200, TEXT, "ok\n");
	expect_body(test, "/readyz", 200, TEXT, "ok\n");
	expect_body(test, "/livez?verbose", 200, TEXT, "[+]serializable_read ok\nok\n");
	expect_body(test, "/readyz?verbose&exclude=data_corruption", 200, TEXT,
		    "[+]serializable_read ok\n[+]linearizable_read ok\n[+]non_learner ok\nok\n");
	expect_body(test, "/livez/serializable_read", 200, TEXT, "ok\n");
	expect_body(test, "/readyz/linearizable_read?verbose", 200, TEXT, "[+]linearizable_read ok\nok\n");
	expect_body(test, "/livez/nothing", 404, TEXT, "404 page not found\n");
	set_alarm(test, VDI_ALARM_NOSPACE, true); /* no reason to be restarted, nor to get no requests */
	expect_body(test, "/livez", 200, TEXT, "ok\n");
	expect_body(test, "/readyz", 200, TEXT, "ok\n");
	set_alarm(test, VDI_ALARM_CORRUPT, true);
	expect_body(test, "/livez", 200, TEXT, "ok\n");
	expect_body(test, "/readyz/data_corruption", 503, TEXT,
		    "[-]data_corruption failed: alarm activated: CORRUPT\n\n");
	expect_body(test, "/readyz?exclude=data_corruption", 200, TEXT, "ok\n");
}

static void e153_other_methods_and_paths(void **state)
{
	struct http_test  *test = *state;
	static const char *paths[] = { "/version", "/health", "/livez", "/readyz",
				       "/livez/serializable_read" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(paths); i++) {
		const char *answer = ask(test, "POST", paths[i]);

		assert_memory_equal(answer, "HTTP/1.1 405 ", 13);
		assert_non_null(strstr(answer, "\nAllow: GET\n"));
		assert_non_null(strstr(answer, "\n\nMethod Not Allowed\n"));
	}
	expect_body(test, "/", 404, TEXT, "404 page not found\n");
	expect_body(test, "/v2/keys", 404, TEXT, "404 page not found\n");
}

/* Sends that and returns the code of the answer. */
static int send_raw(struct http_test *test, const char *bytes, size_t size)
{
	int   fd = http_open((uint16_t) atoi(strrchr(vdi_serve_http_port_address(test->http), ':') + 1), 0);
	char *answer;
	int   code;

	http_send_bytes(fd, bytes, size);
	answer = http_read_until(fd, NULL);
	code = http_code_of(answer);
	free(answer);
	close(fd);
	return code;
}

/* Nothing here takes a body or many headers: a larger request is refused before it is read. */
static void large_requests_are_refused(void **state)
{
#define HEAD(length)                                                                                         \
	"POST /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " length "\r\n\r\n"
	static const char large[] = HEAD("16385");
	static char	  just_right[sizeof HEAD("16384") - 1 + 16384];
	static char	  headers[17000];

	assert_int_equal(send_raw(*state, large, sizeof large - 1), 413);
	memset(just_right, 'b', sizeof just_right);
	memcpy(just_right, HEAD("16384"), sizeof HEAD("16384") - 1);
	assert_int_equal(send_raw(*state, just_right, sizeof just_right), 405);
	memset(headers, 'h', sizeof headers);
	memcpy(headers, "GET /version HTTP/1.1\r\nX-Long: ", 31);
	memcpy(headers + sizeof headers - 4, "\r\n\r\n", 4);
	assert_int_equal(send_raw(*state, headers, sizeof headers), 400);
}

static void addresses_are_checked(void **state)
{
	static const char *const    bad[] = { "",
					      "127.0.0.1",
					      ":80",
					      "127.0.0.1:",
					      "127.0.0.1:0x",
					      "127.0.0.1:65536",
					      "127.0.0.1:99999999999999999999",
					      "a-name-of-a-host-that-is-longer-than-an-address-is:0" };
	struct http_test	   *test = *state;
	struct vdi_serve_http_port *port;
	struct vd_error		    error;
	char			    wanted[160];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad); i++) {
		assert_status(vdi_serve_http_port_new(test->server, bad[i], &port, &error),
			      VD_INVALID_ARGUMENT);
		(void) snprintf(wanted, sizeof wanted, "\"%s\" is not an address: use ADDR:PORT", bad[i]);
		assert_string_equal(error.message, wanted);
	}
	/* One that is in use. */
	assert_status(
		vdi_serve_http_port_new(test->server, vdi_serve_http_port_address(test->http), &port, &error),
		VD_IO);
	(void) snprintf(wanted, sizeof wanted, "cannot listen on %s",
			vdi_serve_http_port_address(test->http));
	assert_string_equal(error.message, wanted);
}

static void e153_metrics_are_prometheus_text(void **state)
{
	const char *answer = ask(*state, "GET", "/metrics");

	assert_memory_equal(answer, "HTTP/1.1 200 ", 13);
	assert_non_null(strstr(answer, "\nContent-Type: text/plain; version=0.0.4; charset=utf-8\n"));
	assert_non_null(strstr(answer, "\netcd_server_has_leader 1\n"));
	assert_non_null(strstr(answer, "\n# TYPE etcd_server_client_requests_total counter\n"));
	assert_non_null(strstr(answer, "\netcd_debugging_mvcc_current_revision 1\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(e153_e640_version),	  CASE(e153_health_says_what_is_wrong),
		CASE(e153_livez_and_readyz),	  CASE(e153_other_methods_and_paths),
		CASE(addresses_are_checked),	  CASE(e153_metrics_are_prometheus_text),
		CASE(large_requests_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
