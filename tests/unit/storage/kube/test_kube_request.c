/* Requests over a scripted transport: repeats, deadlines, errors, the end of the client. */
#include "actor_sim.h"
#include "kube_client.h"
#include "kube_script.h"
#include "temp_folder.h"
#include "vdtest.h"

struct world {
	struct vd_env	   *env;
	struct vd_kube	   *kube;
	struct kube_script  script;
	bool		    is_answered, is_closed;
	vd_status	    status;
	struct vd_error	    error;
	int		    code; /* -1: there was no response */
	char		    body[256];
	struct vd_kube_call call;
};

static struct world world;

static void begin_with(struct vd_kube_options options, const struct kube_script_answer *answers, size_t count)
{
	struct vd_error error = { 0 };

	memset(&world, 0, sizeof world);
	world.call = (struct vd_kube_call) VD_KUBE_CALL_INIT;
	world.call.path = "/api/v1/x";
	assert_status(vdi_env_new_sim(7, NULL, NULL, &world.env), VD_OK);
	world.script.env = world.env;
	world.script.answers = answers;
	world.script.count = count;
	kube_script_use(&world.script);
	assert_status(vdi_kube_open_over(world.env, &options, kube_script_transport_new, &world.kube, &error),
		      VD_OK);
}

static void begin(const struct kube_script_answer *answers, size_t count)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;

	options.server = "http://127.0.0.1:1";
	options.token = "secret";
	begin_with(options, answers, count);
}

static void end(void)
{
	world.kube = vd_kube_close_wait(world.kube);
	assert_int_equal(world.script.open, 0);
	world.env = vd_env_free(world.env);
}

static void on_answer(void *arg, vd_status status, const struct vd_kube_answer *answer,
		      const struct vd_error *error)
{
	(void) arg;
	assert_false(world.is_answered);
	world.is_answered = true;
	world.status = status;
	world.error = *error;
	world.code = answer ? answer->code : -1;
	if (answer)
		snprintf(world.body, sizeof world.body, "%.*s", (int) answer->body.size,
			 answer->body.size ? (const char *) answer->body.data : "");
}

static bool is_answered(void *arg)
{
	(void) arg;
	return world.is_answered;
}

/* Sends world.call; returns the time to its answer. */
static vd_dur ask(void)
{
	vd_mono begun = vd_env_now(world.env);

	world.is_answered = false;
	assert_status(vd_kube_request(world.kube, &world.call, on_answer, NULL), VD_OK);
	assert_false(world.is_answered); /* not inside the call */
	assert_true(vdi_sim_run_until(world.env, is_answered, NULL, VD_SECONDS(3600)));
	return vd_mono_since(vd_env_now(world.env), begun);
}

#define BEGIN(answers) begin(answers, VDI_ARRAY_SIZE(answers))

static void a_response_is_passed_on(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 200, .body = "{}" } };

	(void) state;
	BEGIN(answers);
	ask();
	assert_status(world.status, VD_OK);
	assert_int_equal(world.code, 200);
	assert_string_equal(world.body, "{}");
	assert_string_equal(world.script.requests[0].token, "secret");
	assert_string_equal(world.script.requests[0].method, "GET");
	assert_int_equal(world.script.requests[0].timeout.ns, VD_SECONDS(30).ns);
	end();
}

struct expected {
	int	    code;
	const char *body;
	vd_status   status;
	const char *message;
};

static const struct expected expectations[] = {
	{ 400, "{\"message\":\"bad\"}", VD_INVALID, "bad" },
	{ 422, "{\"message\":\"worse\"}", VD_INVALID, "worse" },
	{ 401, "", VD_FORBIDDEN, "401" },
	{ 403, "{\"message\":\"no\"}", VD_FORBIDDEN, "no" },
	{ 404, "<html>\n", VD_NOT_FOUND, "<html>" },
	{ 409, "{\"reason\":\"AlreadyExists\"}", VD_EXISTS, "409" },
	{ 409, "{\"reason\":\"Conflict\"}", VD_CONFLICT, "409" },
	{ 409, "", VD_CONFLICT, "409" },
	{ 410, "{\"reason\":\"Expired\"}", VD_EXPIRED, "410" },
	{ 413, "", VD_TOO_BIG, "413" },
	{ 429, "{\"details\":{\"retryAfterSeconds\":3}}", VD_FULL, "429" },
	{ 504, "", VD_TIMEOUT, "504" },
	{ 500, "{\"message\":\"b\\u00fcg\"}", VD_UNAVAILABLE, "b\303\274g" },
	{ 302, "", VD_UNAVAILABLE, "302" },
	{ 599, "\001\002\377{", VD_UNAVAILABLE, "599:    {" },
	{ 599, " ~\177\037x", VD_UNAVAILABLE, "599:  ~  x" },
	{ 500, "{\"message\":\" a\\u001b\\u001f\\u007f~b\"}", VD_UNAVAILABLE, " a   ~b" },
};

static void errors_are_those_of_the_status(void **state)
{
	size_t i;

	(void) state;
	for (i = 0; i < VDI_ARRAY_SIZE(expectations); i++) {
		const struct expected	 *expected = &expectations[i];
		struct kube_script_answer answer = { .code = expected->code, .body = expected->body };

		begin(&answer, 1);
		ask();
		assert_status(world.status, expected->status);
		assert_status(world.error.code, expected->status);
		assert_int_equal(world.code, expected->code);
		assert_string_equal(world.body, expected->body);
		assert_non_null(strstr(world.error.message, expected->message));
		assert_int_equal(world.error.retry_after_s, expected->code == 429 ? 3 : 0);
		assert_int_equal(world.script.request_count, 1);
		end();
	}
}

/* Sends one request, whose response is this; returns its error. */
static struct vd_error error_of(const struct kube_script_answer *answer)
{
	begin(answer, 1);
	ask();
	end();
	return world.error;
}

#define STATUS "the server answered with HTTP status 500"

static void another_body_is_quoted(void **state)
{
	static const struct {
		const char *body, *message;
	} rows[] = {
		{ "", STATUS },
		{ "\n \r\n", STATUS },
		{ "page\n", STATUS ": page" },
		{ "page\r", STATUS ": page" },
		{ "page ", STATUS ": page" },
		{ "a\nb \r\n", STATUS ": a b" },
	};
	struct kube_script_answer answer = { .code = 500 };
	char			  body[300], expected[300];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		answer.body = rows[i].body;
		assert_string_equal(error_of(&answer).message, rows[i].message);
	}
	/* The first 200 bytes of a long one. */
	for (size_t i = 0; i < sizeof body - 1; i++)
		body[i] = (char) ('a' + i % 26);
	body[sizeof body - 1] = 0;
	answer.body = body;
	snprintf(expected, sizeof expected, STATUS ": %.200s", body);
	assert_string_equal(error_of(&answer).message, expected);
}

/* A Status of 1 MiB is read; of a larger one, the begin is quoted as of any other body. */
static void a_status_has_a_largest_size(void **state)
{
	static char		  body[(1 << 20) + 2];
	struct kube_script_answer answer = { .code = 500, .body = body };

	(void) state;
	for (int more = 0; more < 2; more++) {
		int head = snprintf(body, sizeof body, "{\"message\":\"why\"}");

		memset(body + head, ' ', sizeof body - 2 - (size_t) head + (size_t) more);
		body[sizeof body - 2 + (size_t) more] = 0;
		assert_string_equal(error_of(&answer).message,
				    more ? STATUS ": {\"message\":\"why\"}" : "why");
	}
}

/* The header counts more than the Status, which may ask for a day at most. */
static void when_to_try_again(void **state)
{
	static const struct {
		unsigned    header;
		const char *body;
		unsigned    expected;
	} rows[] = {
		{ 0, "{\"details\":{\"retryAfterSeconds\":1}}", 1 },
		{ 0, "{\"details\":{\"retryAfterSeconds\":86400}}", 86400 },
		{ 0, "{\"details\":{\"retryAfterSeconds\":86401}}", 86400 },
		{ 0, "{\"details\":{\"retryAfterSeconds\":-1}}", 0 },
		{ 0, "{\"details\":{\"retryAfterSeconds\":\"1\"}}", 0 },
		{ 100, "{\"details\":{\"retryAfterSeconds\":3}}", 100 },
		{ 100, "{}", 100 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const struct kube_script_answer answer = { .code = 429,
							   .body = rows[i].body,
							   .retry_after_s = rows[i].header };

		assert_int_equal(error_of(&answer).retry_after_s, rows[i].expected);
	}
}

static void a_request_names_its_types(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 200 },
							     { .code = 200 },
							     { .code = 200 } };

	(void) state;
	BEGIN(answers);
	ask();
	assert_string_equal(world.script.requests[0].content_type, "");
	world.call.method = "PUT";
	world.call.body = vd_bytes_of("{}");
	ask();
	assert_string_equal(world.script.requests[1].content_type, "application/json");
	world.call.content_type = "application/merge-patch+json";
	world.call.accept = "text/plain";
	ask();
	assert_string_equal(world.script.requests[2].content_type, "application/merge-patch+json");
	assert_string_equal(world.script.requests[2].accept, "text/plain");
	end();
}

static void failures_are_repeated_if_asked_for(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 500 },
		{ .code = 502, .body = "page of a proxy" },
		{ .code = 503 },
		{ .code = 504 },
		{ .code = 429 },
		{ .status = VD_UNAVAILABLE },
		{ .code = 200, .body = "half", .status = VD_UNAVAILABLE },
		{ .code = 200, .body = "whole" },
	};
	vd_dur took;
	size_t i;

	(void) state;
	BEGIN(answers);
	world.call.repeat = true;
	took = ask();
	assert_status(world.status, VD_OK);
	assert_string_equal(world.body, "whole");
	assert_int_equal(world.script.request_count, 8);
	/* The delays grow: half to all of 0.1, 0.2 .. 6.4 s. */
	assert_in_range(took.ns, VD_MS(6350).ns, VD_MS(12700).ns);
	for (i = 1; i < 8; i++)
		assert_in_range(world.script.requests[i].at.ns - world.script.requests[i - 1].at.ns,
				VD_MS(50).ns << (i - 1), VD_MS(100).ns << (i - 1));
	end();
}

static void other_failures_are_not_repeated(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 404 }, { .code = 501 }, { .status = VD_TOO_BIG }, { .code = 200 }
	};
	static const vd_status statuses[] = { VD_NOT_FOUND, VD_UNAVAILABLE, VD_TOO_BIG, VD_OK };
	size_t		       i;

	(void) state;
	BEGIN(answers);
	world.call.repeat = true;
	for (i = 0; i < VDI_ARRAY_SIZE(answers); i++) {
		ask();
		assert_status(world.status, statuses[i]);
	}
	assert_int_equal(world.script.request_count, 4);
	end();
}

static void a_write_is_sent_once(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 503 }, { .status = VD_UNAVAILABLE } };

	(void) state;
	BEGIN(answers);
	world.call.method = "POST";
	world.call.body = vd_bytes_of("{}");
	ask();
	assert_status(world.status, VD_UNAVAILABLE);
	assert_int_equal(world.code, 503);
	assert_string_equal(world.script.requests[0].body, "{}");
	ask();
	assert_status(world.status, VD_UNAVAILABLE);
	assert_int_equal(world.code, -1);
	assert_int_equal(world.script.request_count, 2);
	end();
}

/* The server has not applied it and says so. */
static void retry_after_is_obeyed_for_every_method(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 429, .retry_after_s = 2 },
							     { .code = 503, .retry_after_s = 3 },
							     { .code = 201 } };

	(void) state;
	BEGIN(answers);
	world.call.method = "POST";
	assert_in_range(ask().ns, VD_SECONDS(5).ns, VD_MS(6250).ns);
	assert_status(world.status, VD_OK);
	assert_int_equal(world.script.request_count, 3);
	end();
}

static void a_repeat_after_the_deadline_is_not_waited_for(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 429, .retry_after_s = 60 } };

	(void) state;
	BEGIN(answers);
	assert_int_equal(ask().ns, 0);
	assert_status(world.status, VD_FULL);
	assert_int_equal(world.error.retry_after_s, 60);
	assert_int_equal(world.code, 429);
	end();
}

static void a_request_ends_at_its_deadline(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 200, .body = "part", .holds = true } };

	(void) state;
	BEGIN(answers);
	world.call.timeout = VD_SECONDS(4);
	assert_int_equal(ask().ns, VD_SECONDS(4).ns);
	assert_status(world.status, VD_TIMEOUT);
	assert_int_equal(world.code, -1);
	end();
}

static void repeats_end_at_the_deadline(void **state)
{
	struct kube_script_answer answers[40];
	size_t			  i;

	(void) state;
	for (i = 0; i < VDI_ARRAY_SIZE(answers); i++)
		answers[i] = (struct kube_script_answer) { .code = 500, .body = "{\"message\":\"still\"}" };
	BEGIN(answers);
	world.call.repeat = true;
	assert_true(ask().ns <= VD_SECONDS(30).ns);
	assert_status(world.status, VD_UNAVAILABLE);
	assert_string_equal(world.error.message, "still");
	assert_in_range(world.script.request_count, 5, 12);
	end();
}

static void bad_calls_are_refused(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 200 }, { .code = 200 } };
	struct vd_kube_call		       calls[22];
	size_t				       i;

	(void) state;
	BEGIN(answers);
	for (i = 0; i < VDI_ARRAY_SIZE(calls); i++)
		calls[i] = world.call;
	calls[0].size = 1;
	calls[1].path = "api";
	calls[2].path = NULL;
	calls[3].path = "/a b";
	calls[4].path = "/a\r\nX: y";
	calls[5].method = "get";
	calls[6].method = "GET /";
	calls[7].accept = "a\r\nb: c";
	calls[8].content_type = "a\nb";
	calls[9].timeout.ns = -1;
	calls[10].repeat = true;
	calls[10].method = "POST";
	calls[11].body.size = 4;
	calls[12].repeat = true;
	calls[12].method = "PATCH";
	calls[13].method = "CONNECT";
	calls[14].method = "";
	calls[15].method = "ABCDEFGHIJKLMNOPQRST"; /* 20 letters */
	calls[16].path = "/a#b";
	calls[17].path = "/a\177b";
	calls[18].path = "/a\x1f";
	calls[19].accept = "a\rb";
	calls[20].content_type = "a\rb";
	calls[21].path = "";
	for (i = 0; i < VDI_ARRAY_SIZE(calls); i++)
		assert_status(vd_kube_request(world.kube, &calls[i], on_answer, NULL), VD_INVALID_ARGUMENT);
	assert_status(vd_kube_request(world.kube, &world.call, NULL, NULL), VD_INVALID_ARGUMENT);
	assert_status(vd_kube_request(NULL, &world.call, on_answer, NULL), VD_INVALID_ARGUMENT);
	vdi_sim_run_until_idle(world.env);
	assert_false(world.is_answered);
	assert_int_equal(world.script.request_count, 0);
	/* The borders of what is accepted. */
	world.call.method = "ABCDEFGHIJKLMNOPQRS";
	world.call.path = "/!~\200";
	ask();
	assert_string_equal(world.script.requests[0].method, "ABCDEFGHIJKLMNOPQRS");
	assert_string_equal(world.script.requests[0].path, "/!~\200");
	world.call.method = "POSTS";
	world.call.repeat = true;
	ask();
	end();
}

static void note_closed(void *arg)
{
	(void) arg;
	world.is_closed = true;
}

static void closing_answers_what_is_outstanding(void **state)
{
	(void) state;
	begin(NULL, 0);
	assert_status(vd_kube_request(world.kube, &world.call, on_answer, NULL), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_int_equal(world.script.open, 1);
	vd_kube_close(world.kube, note_closed, NULL);
	assert_status(vd_kube_request(world.kube, &world.call, on_answer, NULL), VD_CLOSED);
	assert_false(world.is_closed);
	vdi_sim_run_until_idle(world.env);
	assert_true(world.is_closed);
	assert_true(world.is_answered);
	assert_status(world.status, VD_CLOSED);
	assert_int_equal(world.script.open, 0);
	world.env = vd_env_free(world.env);
}

/* A request that was sent right before, which has not run. */
static void closing_answers_what_has_not_begun(void **state)
{
	(void) state;
	begin(NULL, 0);
	assert_status(vd_kube_request(world.kube, &world.call, on_answer, NULL), VD_OK);
	end();
	assert_true(world.is_answered);
	assert_status(world.status, VD_CLOSED);
}

/* ---- Identity ---- */

static void write_file(const char *folder, const char *name, const char *text, char path[128])
{
	FILE *file;

	snprintf(path, 128, "%s/%s", folder, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void a_401_is_repeated_with_the_next_token(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 401 }, { .code = 201 }, { .code = 401 }, { .code = 401 }
	};
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	char		       folder[TEMP_FOLDER_SIZE], path[128];

	(void) state;
	temp_folder_make(folder);
	write_file(folder, "token", "one\n", path);
	options.server = "http://127.0.0.1:1";
	options.token_path = path;
	begin_with(options, answers, VDI_ARRAY_SIZE(answers));
	write_file(folder, "token", "two\n", path);
	world.call.method = "POST"; /* was not applied */
	ask();
	assert_status(world.status, VD_OK);
	assert_string_equal(world.script.requests[0].token, "one");
	assert_string_equal(world.script.requests[1].token, "two");
	ask(); /* but only once */
	assert_status(world.status, VD_FORBIDDEN);
	assert_int_equal(world.code, 401);
	assert_int_equal(world.script.request_count, 4);
	end();
	temp_folder_remove(folder);
}

static void on_one_of_two(void *arg, vd_status status, const struct vd_kube_answer *answer,
			  const struct vd_error *error)
{
	(void) answer, (void) error;
	assert_status(status, VD_OK);
	++*(unsigned *) arg;
}

static bool are_two_answered(void *arg)
{
	return *(unsigned *) arg == 2;
}

static void expect_token_of(size_t request, const char *token)
{
	assert_string_equal(world.script.requests[request].token, token);
}

/* The token is replaced while two requests with the old one run. Both are repeated with the new one, and the
 * later 401 of the old one is no reason to doubt the new one. */
static void a_token_is_replaced_while_requests_run(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 401, .delay = { 1000000000 } },
		{ .code = 401, .delay = { 3000000000 } },
		{ .code = 200, .delay = { 4000000000 } },
		{ .code = 200 },
		{ .code = 200 },
		{ .code = 200, .delay = { 20000000000 } },
		{ .code = 200 },
	};
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	char		       folder[TEMP_FOLDER_SIZE], path[128];
	unsigned	       answered = 0;

	(void) state;
	temp_folder_make(folder);
	write_file(folder, "token", "one", path);
	options.server = "http://127.0.0.1:1";
	options.token_path = path;
	begin_with(options, answers, VDI_ARRAY_SIZE(answers));
	for (unsigned i = 0; i < 2; i++)
		assert_status(vd_kube_request(world.kube, &world.call, on_one_of_two, &answered), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(world.script.request_count, 2);
	write_file(folder, "token", "two", path);
	vdi_sim_advance(world.env, VD_SECONDS(2));
	assert_int_equal(world.script.request_count, 3);
	write_file(folder, "token", "three", path); /* not read for 10 s after "two" */
	assert_true(vdi_sim_run_until(world.env, are_two_answered, &answered, VD_SECONDS(60)));
	ask();
	expect_token_of(0, "one");
	expect_token_of(1, "one");
	expect_token_of(2, "two");
	expect_token_of(3, "two");
	expect_token_of(4, "two");
	/* Without a 401: a request that began before ends as it began. */
	answered = 0;
	assert_status(vd_kube_request(world.kube, &world.call, on_one_of_two, &answered), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(11));
	assert_status(vd_kube_request(world.kube, &world.call, on_one_of_two, &answered), VD_OK);
	assert_true(vdi_sim_run_until(world.env, are_two_answered, &answered, VD_SECONDS(60)));
	expect_token_of(5, "two");
	expect_token_of(6, "three");
	assert_int_equal(world.script.request_count, 7);
	end();
	temp_folder_remove(folder);
}

#define EXEC_CONFIG                                                                                          \
	"current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"                        \
	"clusters: [{name: a, cluster: {server: 'https://10.0.0.1'}}]\n"                                     \
	"users: [{name: a, user: {exec: {command: /bin/sh, apiVersion: "                                     \
	"client.authentication.k8s.io/v1, args: ['-c', '%s']}}}]\n"

#define EXEC_PRINTS_A_TOKEN                                                                                  \
	"echo \"{\\\"kind\\\":\\\"ExecCredential\\\",\\\"apiVersion\\\":"                                    \
	"\\\"client.authentication.k8s.io/v1\\\",\\\"status\\\":{\\\"token\\\":\\\"made\\\"}}\""

static void a_request_waits_for_the_program(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 200 }, { .code = 200 } };
	struct vd_kube_options		       options = VD_KUBE_OPTIONS_INIT;
	char				       folder[TEMP_FOLDER_SIZE], path[128], text[1024];

	(void) state;
	temp_folder_make(folder);
	snprintf(text, sizeof text, EXEC_CONFIG, EXEC_PRINTS_A_TOKEN);
	write_file(folder, "config", text, path);
	options.kubeconfig = path;
	begin_with(options, answers, VDI_ARRAY_SIZE(answers));
	ask();
	assert_status(world.status, VD_OK);
	assert_string_equal(world.script.requests[0].token, "made");
	ask();
	assert_string_equal(world.script.requests[1].token, "made");
	end();
	temp_folder_remove(folder);
}

/* A client whose program prints the same token each time. */
static void begin_with_program(char folder[TEMP_FOLDER_SIZE], const struct kube_script_answer *answers,
			       size_t count)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	char		       path[128], text[1024];

	temp_folder_make(folder);
	snprintf(text, sizeof text, EXEC_CONFIG, EXEC_PRINTS_A_TOKEN);
	write_file(folder, "config", text, path);
	options.kubeconfig = path;
	begin_with(options, answers, count);
}

/* A 401 soon after another one is not followed by a run at once, unless the server accepted the credential
 * in between. An error of the server says nothing about it. */
static void what_accepts_a_credential(void **state)
{
	static const int codes[] = { 200, 404, 499, 500, 503 };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(codes); i++) {
		const struct kube_script_answer answers[] = {
			{ .code = 401 }, { .code = codes[i] }, { .code = 401 }, { .code = 200 }
		};
		char folder[TEMP_FOLDER_SIZE];

		begin_with_program(folder, answers, VDI_ARRAY_SIZE(answers));
		ask();
		assert_int_equal(world.code, codes[i]);
		vdi_sim_advance(
			world.env,
			VD_SECONDS(10)); /* a rejection runs the program at once, but not more often */
		ask();
		if (codes[i] < 500) {
			assert_status(world.status, VD_OK);
			assert_int_equal(world.script.request_count, 4);
		} else {
			assert_status(world.status, VD_FORBIDDEN);
			assert_int_equal(world.code, -1);
			assert_int_equal(world.script.request_count, 3);
		}
		end();
		temp_folder_remove(folder);
	}
}

static void on_held_answer(void *arg, vd_status status, const struct vd_kube_answer *answer,
			   const struct vd_error *error)
{
	(void) answer;
	(void) error;
	*(vd_status *) arg = status;
}

/* Everything is woken by a new credential; a request that was sent stays as it is. */
static void a_new_credential_repeats_nothing(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 200, .holds = true },
							     { .code = 401 },
							     { .code = 200, .body = "second" } };
	char				       folder[TEMP_FOLDER_SIZE];
	vd_status			       held = VD_OK;

	(void) state;
	begin_with_program(folder, answers, VDI_ARRAY_SIZE(answers));
	assert_status(vd_kube_request(world.kube, &world.call, on_held_answer, &held), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(world.script.request_count, 1);
	ask();
	assert_string_equal(world.body, "second");
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(world.script.request_count, 3);
	assert_int_equal(world.script.open, 1);
	end();
	assert_status(held, VD_CLOSED);
	temp_folder_remove(folder);
}

static size_t size_of(const char *path)
{
	FILE *file = fopen(path, "re");
	long  size;

	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	size = ftell(file);
	assert_int_equal(fclose(file), 0);
	return (size_t) size;
}

/* Also by a client that sends nothing meanwhile. */
static void a_credential_is_renewed_in_time(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 200 } };
	struct vd_kube_options		       options = VD_KUBE_OPTIONS_INIT;
	char				       folder[TEMP_FOLDER_SIZE], path[128], text[1024], program[700];

	(void) state;
	temp_folder_make(folder);
	write_file(folder, "answer",
		   "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
		   "\"status\":{\"token\":\"made\",\"expirationTimestamp\":\"2024-01-01T00:10:00Z\"}}",
		   path);
	snprintf(program, sizeof program, "echo >>%s/runs; cat %s", folder, path);
	snprintf(text, sizeof text, EXEC_CONFIG, program);
	write_file(folder, "config", text, path);
	options.kubeconfig = path;
	begin_with(options, answers, VDI_ARRAY_SIZE(answers));
	ask();
	assert_string_equal(world.script.requests[0].token, "made");
	snprintf(text, sizeof text, "%s/runs", folder);
	vdi_sim_advance(world.env, VD_SECONDS(9 * 60 - 1));
	assert_int_equal(size_of(text), 1);
	vdi_sim_advance(world.env, VD_SECONDS(1)); /* a minute before its end */
	assert_int_equal(size_of(text), 2);
	assert_int_equal(world.script.request_count, 1);
	end();
	temp_folder_remove(folder);
}

/* A part of the client may bound what it reads. */
static void a_response_that_is_too_large(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 200, .body = "1234" },
							     { .code = 200, .body = "12345" },
							     { .code = 500, .body = "12345" } };

	(void) state;
	BEGIN(answers);
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(answers); i++) {
		world.is_answered = false;
		assert_status(vdi_kube_request_bounded(world.kube, &world.call, 4, on_answer, NULL), VD_OK);
		assert_true(vdi_sim_run_until(world.env, is_answered, NULL, VD_SECONDS(1)));
		assert_status(world.status, i ? VD_TOO_BIG : VD_OK);
		assert_int_equal(world.code, i ? -1 : 200);
		assert_string_equal(world.error.message, i ? "the response is larger than 4 bytes" : "");
	}
	assert_int_equal(world.script.request_count, 3);
	assert_int_equal(world.script.open, 0);
	end();
}

static void a_failed_program_is_the_cause(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	char		       folder[TEMP_FOLDER_SIZE], path[128], text[1024];

	(void) state;
	temp_folder_make(folder);
	snprintf(text, sizeof text, EXEC_CONFIG, "exit 7");
	write_file(folder, "config", text, path);
	options.kubeconfig = path;
	begin_with(options, NULL, 0);
	assert_int_equal(ask().ns, 0);
	assert_status(world.status, VD_FORBIDDEN);
	assert_non_null(strstr(world.error.message, "status 7"));
	assert_int_equal(world.code, -1);
	world.call.repeat = true; /* until the deadline */
	assert_true(ask().ns > VD_SECONDS(10).ns);
	assert_status(world.status, VD_FORBIDDEN);
	assert_int_equal(world.script.request_count, 0);
	end();
	temp_folder_remove(folder);
}

static void torture_a_request(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 503 }, { .code = 409, .body = "{\"message\":\"conflict\"}" }
	};
	uint64_t nth;
	bool	 has_failed = true;

	(void) state;
	for (nth = 1; has_failed; nth++) {
		vd_status status;

		BEGIN(answers);
		world.call.repeat = true;
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vd_kube_request(world.kube, &world.call, on_answer, NULL);
		if (status == VD_OK)
			(void) vdi_sim_run_until(world.env, is_answered, NULL, VD_SECONDS(60));
		has_failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_true(world.is_answered == (status == VD_OK));
		if (!has_failed)
			assert_status(world.status, VD_CONFLICT);
		else if (status == VD_OK)
			assert_true(world.status == VD_NOMEM || world.status == VD_CONFLICT);
		else
			assert_status(status, VD_NOMEM);
		end();
	}
	assert_true(nth > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_response_is_passed_on),
		cmocka_unit_test(errors_are_those_of_the_status),
		cmocka_unit_test(another_body_is_quoted),
		cmocka_unit_test(a_status_has_a_largest_size),
		cmocka_unit_test(when_to_try_again),
		cmocka_unit_test(a_request_names_its_types),
		cmocka_unit_test(failures_are_repeated_if_asked_for),
		cmocka_unit_test(other_failures_are_not_repeated),
		cmocka_unit_test(a_write_is_sent_once),
		cmocka_unit_test(retry_after_is_obeyed_for_every_method),
		cmocka_unit_test(a_repeat_after_the_deadline_is_not_waited_for),
		cmocka_unit_test(a_request_ends_at_its_deadline),
		cmocka_unit_test(repeats_end_at_the_deadline),
		cmocka_unit_test(bad_calls_are_refused),
		cmocka_unit_test(closing_answers_what_is_outstanding),
		cmocka_unit_test(closing_answers_what_has_not_begun),
		cmocka_unit_test(a_401_is_repeated_with_the_next_token),
		cmocka_unit_test(a_token_is_replaced_while_requests_run),
		cmocka_unit_test(a_request_waits_for_the_program),
		cmocka_unit_test(what_accepts_a_credential),
		cmocka_unit_test(a_new_credential_repeats_nothing),
		cmocka_unit_test(a_credential_is_renewed_in_time),
		cmocka_unit_test(a_response_that_is_too_large),
		cmocka_unit_test(a_failed_program_is_the_cause),
		cmocka_unit_test(torture_a_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
