/* What is written down of a request, and that nothing is lost in silence when there is no memory. */
#include "request_log.h"
#include "vdtest.h"

#include <unistd.h>

#include "http_request.h"

static const char body[] = "{\n  \"metadata\": {\"name\": \"x\"},\n  \"data\": {\"k\": \"v\"}\n}\n";

struct world {
	struct vd_env	 *env;
	struct vd_server *server;
	char		  audit[64], access[64];
};

static struct world world_new(int level)
{
	struct world		 world = { .audit = "/tmp/vedette-test-audit-XXXXXX",
					   .access = "/tmp/vedette-test-access-XXXXXX" };
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct vd_error		 error;

	assert_status(vd_env_new_threads(NULL, &world.env), VD_OK);
	(void) close(mkstemp(world.audit));
	(void) close(mkstemp(world.access));
	world.server = test_calloc(1, sizeof *world.server);
	options.audit_path = world.audit;
	options.audit_level = level;
	options.access_path = world.access;
	assert_status(vdi_request_logs_open(world.env, &options, &world.server->request_logs, &error), VD_OK);
	return world;
}

/* Returns what the file of path holds; good until the next call. */
static const char *read_file(const char *path)
{
	static char text[16384];
	FILE	   *file = fopen(path, "r");

	assert_non_null(file);
	text[fread(text, 1, sizeof text - 1, file)] = 0;
	(void) fclose(file);
	return text;
}

static void world_free(struct world *world)
{
	world->server->request_logs = vdi_request_logs_close(world->server->request_logs);
	test_free(world->server);
	vd_env_free(world->env);
	(void) unlink(world->audit);
	(void) unlink(world->access);
}

/* One request from its head to its end; without a connection's socket, so nobody knows from where. */
static void live_through(struct world *world, const char *line, int code)
{
	struct vdi_http_connection connection = { .fd = -1 };
	struct vdi_request	   request = { .server = world->server, .connection = &connection };
	struct vdi_http_status	   status;
	struct vdi_http_refusal	   refusal;
	struct vdi_identity	  *identity = NULL;
	struct vdi_request_log	  *request_log;
	char			   head[512];
	int			   size = snprintf(head, sizeof head,
						   "%s HTTP/1.1\r\nHost: localhost\r\n"
									  "User-Agent: \"tool\"\r\n"
									  "Authorization: Bearer "
									  "t0ken\r\n\r\n",
						   line);

	assert_status(vdi_http_head_parse((struct vd_bytes) { head, (size_t) size }, &request.head, &refusal),
		      VD_OK);
	vdi_route_parse(request.head.path, &request.route);
	request_log = vdi_request_log_begin(&request);
	(void) !vdi_identity_new(vd_bytes_of("ann lee"), VD_BYTES_NONE, NULL, 0, VDI_GROUP_AUTHENTICATED,
				 &identity);
	vdi_request_log_decided(request_log, identity, true);
	(void) vdi_identity_unref(identity);
	vdi_request_log_named(request_log, "made");
	vdi_request_log_request_body(request_log, vd_bytes_of(body));
	vdi_request_log_request_body(request_log, VD_BYTES_NONE);
	if (code) {
		vdi_http_status_set(&status, code, "Reason", "a \"message\"");
		vdi_request_log_status(request_log, &status);
		vdi_request_log_response_body(request_log, vd_bytes_of(body));
		vdi_request_log_answered(request_log, code);
		vdi_request_log_sent(request_log, 10);
		vdi_request_log_sent(request_log, 7);
	}
	assert_null(vdi_request_log_end(request_log));
}

static void assert_has(const char *text, const char *part)
{
	assert_non_null(text);
	if (strstr(text, part) == NULL) {
		print_error("%s is missing in:\n", part);
		fail_msg("%s", text);
	}
}

static void assert_has_not(const char *text, const char *part)
{
	assert_non_null(text);
	if (strstr(text, part)) {
		print_error("%s is in:\n", part);
		fail_msg("%s", text);
	}
}

static void an_event_has_what_its_level_says(void **state)
{
	static const char object[] = "Object\":{\"metadata\":{\"name\":\"x\"},\"data\":{\"k\":\"v\"}}";

	(void) state;
	for (int level = VD_AUDIT_METADATA; level <= VD_AUDIT_REQUEST_RESPONSE; level++) {
		struct world world = world_new(level);
		const char  *text;

		live_through(&world, "POST /api/v1/namespaces/n/configmaps?x=\"1\"", 409);
		world.server->request_logs = vdi_request_logs_close(world.server->request_logs);
		text = read_file(world.audit);
		assert_has(text,
			   "\"verb\":\"create\",\"user\":{\"username\":\"ann "
			   "lee\",\"groups\":[\"system:authenticated\"]},\"userAgent\":\"\\\"tool\\\"\"");
		assert_has(text, "\"objectRef\":{\"resource\":\"configmaps\",\"namespace\":\"n\","
				 "\"apiVersion\":\"v1\",\"name\":\"made\"}");
		assert_has(text, "\"responseStatus\":{\"metadata\":{},\"status\":\"Failure\",\"message\":\"a "
				 "\\\"message\\\"\",\"reason\":\"Reason\",\"code\":409}");
		assert_has_not(text, "t0ken");
		assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text)); /* one line */
		(level >= VD_AUDIT_REQUEST ? assert_has : assert_has_not)(text, "\"requestObject");
		(level >= VD_AUDIT_REQUEST_RESPONSE ? assert_has : assert_has_not)(text, "\"responseObject");
		if (level == VD_AUDIT_REQUEST_RESPONSE)
			assert_has(strstr(text, "\"responseObject"), object);
		world_free(&world);
	}
}

static void secrets_stay_secret(void **state)
{
	static const char *const lines[] = { "PUT /api/v1/namespaces/n/secrets/made",
					     "POST /api/v1/namespaces/n/serviceaccounts/made/token",
					     "POST /apis/authentication.k8s.io/v1/tokenreviews" };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(lines); i++) {
		struct world world = world_new(VD_AUDIT_REQUEST_RESPONSE);
		const char  *text;

		live_through(&world, lines[i], 422);
		world.server->request_logs = vdi_request_logs_close(world.server->request_logs);
		text = read_file(world.audit);
		assert_has(text, "\"level\":\"Metadata\"");
		assert_has(text, "\"reason\":\"Reason\"");
		assert_has_not(text, "Object\"");
		assert_has_not(text, "message");
		world_free(&world);
	}
}

static void what_was_cut_before_its_answer_says_so(void **state)
{
	struct world world = world_new(VD_AUDIT_METADATA);

	(void) state;
	live_through(&world, "DELETE /api/v1/namespaces/n/configmaps/x", 0);
	world.server->request_logs = vdi_request_logs_close(world.server->request_logs);
	assert_has(read_file(world.audit),
		   "\"message\":\"the connection was closed before the answer\",\"code\":499}");
	assert_has(read_file(world.access),
		   "] \"DELETE /api/v1/namespaces/n/configmaps/x HTTP/1.1\" 499 0 \"-\" \"\\x22tool\\x22\" ");
	world_free(&world);
}

static void the_access_log_is_words_and_quoted_texts(void **state)
{
	struct world world = world_new(VD_AUDIT_NONE);

	(void) state;
	live_through(&world, "GET /api/v1/pods?q=\\\"", 200);
	world.server->request_logs = vdi_request_logs_close(world.server->request_logs);
	assert_string_equal(read_file(world.audit), "");
	assert_memory_equal(read_file(world.access), "- - ann\\x20lee [", 16);
	assert_has(read_file(world.access), "\"GET /api/v1/pods?q=\\x5C\\x22 HTTP/1.1\" 200 17 \"-\"");
	world_free(&world);
}

/* Some clients put a token into the address, where it does no good here; the logs must not pass it on. */
static void credentials_in_a_query_are_left_out(void **state)
{
	struct world world = world_new(VD_AUDIT_METADATA);

	(void) state;
	live_through(&world,
		     "GET "
		     "/api/v1/"
		     "pods?limit=5&access_token=hunter2&Token=hunter2&%74oken=hunter2&%61%63%63%65%73%73_%74%"
		     "6f%6b%65%6e=hunter2&password=hunter2=&continue=abc&token&watch=1",
		     200);
	live_through(&world, "GET /api/v1/pods?token=hunter2", 200);
	world.server->request_logs = vdi_request_logs_close(world.server->request_logs);
	assert_has_not(read_file(world.audit), "hunter2");
	assert_has(read_file(world.access),
		   "/api/v1/"
		   "pods?limit=5&access_token=REDACTED&Token=REDACTED&%74oken=REDACTED&%61%63%63%65%73%73_%"
		   "74%6f%6b%65%6e=REDACTED&password=REDACTED&continue=abc&token&watch=1 HTTP");
	assert_has_not(read_file(world.access), "hunter2");
	assert_has(read_file(world.access), "/api/v1/pods?token=REDACTED HTTP");
	world_free(&world);
}

static void nobody_wants_to_know(void **state)
{
	struct vd_server	   server = { 0 };
	struct vdi_http_connection connection = { .fd = -1 };
	struct vdi_request	   request = { .server = &server, .connection = &connection };

	(void) state;
	assert_null(vdi_request_log_begin(&request));
	vdi_request_log_decided(NULL, NULL, true);
	vdi_request_log_named(NULL, "x");
	vdi_request_log_request_body(NULL, VD_BYTES_NONE);
	vdi_request_log_response_body(NULL, VD_BYTES_NONE);
	vdi_request_log_answered(NULL, 200);
	vdi_request_log_status(NULL, NULL);
	vdi_request_log_streams(NULL);
	vdi_request_log_sent(NULL, 1);
	assert_string_equal(vdi_request_log_header(NULL), "");
	assert_null(vdi_request_log_end(NULL));
}

/* Either in the file as a whole, or counted. */
static void torture(void **state)
{
	struct world	   world = world_new(VD_AUDIT_REQUEST_RESPONSE);
	int64_t		   wanted = 0, lines[2] = { 0 };
	const char	  *paths[] = { world.audit, world.access };
	struct vdi_metric *lost[2];
	bool		   was_hit = true;

	(void) state;
	for (uint64_t nth = 1; was_hit; nth++, wanted++) {
		(void) vdi_alloc_fail_nth(nth, 1);
		live_through(&world, "POST /api/v1/namespaces/n/configmaps", 201);
		was_hit = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
	}
	lost[0] = world.server->request_logs->audit_lost;
	lost[1] = world.server->request_logs->access_lost;
	lines[0] = vdi_metric_value(lost[0]);
	lines[1] = vdi_metric_value(lost[1]);
	world.server->request_logs = vdi_request_logs_close(world.server->request_logs);
	for (size_t i = 0; i < 2; i++) {
		FILE *file = fopen(paths[i], "r");
		char  line[4096];

		assert_true(lines[i] > 0);
		while (fgets(line, sizeof line, file)) {
			lines[i]++;
			if (i == 0)
				assert_has(strstr(line, "\"requestObject\":{\"metadata"),
					   "\"responseObject\":{\"metadata");
		}
		(void) fclose(file);
		assert_int_equal(lines[i], wanted);
	}
	world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_has_what_its_level_says),
		cmocka_unit_test(secrets_stay_secret),
		cmocka_unit_test(what_was_cut_before_its_answer_says_so),
		cmocka_unit_test(the_access_log_is_words_and_quoted_texts),
		cmocka_unit_test(credentials_in_a_query_are_left_out),
		cmocka_unit_test(nobody_wants_to_know),
		cmocka_unit_test(torture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
