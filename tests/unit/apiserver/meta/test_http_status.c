/* Status objects, byte for byte. */
#include "vdtest.h"

#include "http_status.h"
#include "http_text.h"
#include "tree.h"

static struct vdi_http_status status;

static void check(const char *wanted)
{
	struct vdi_out out = VDI_OUT_INIT;

	vdi_http_status_write(&out, &status);
	vdi_out_printf(&out, "%c", 0);
	assert_string_equal(out.data, wanted);
	vdi_out_fini(&out);
}

static void of(const char *verb, vd_status code, const struct vd_error *error)
{
	vdi_http_status_of(&status, verb, "apps", "deployments", vd_bytes_of("d"), code, error);
}

static void r680_failures_look_as_upstream_writes_them(void **state)
{
	struct vd_error error = {
		.code = VD_TOO_LARGE_REVISION, .requested = 9, .current = 5, .retry_after_s = 1
	};

	of("get", VD_NOT_FOUND, NULL);
	check("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
	      "\"deployments.apps \\\"d\\\" not found\","
	      "\"reason\":\"NotFound\",\"details\":{\"name\":\"d\",\"group\":\"apps\",\"kind\":"
	      "\"deployments\"},\"code\":404}");
	of("create", VD_EXISTS, NULL);
	assert_string_equal(status.message, "deployments.apps \"d\" already exists");
	of("update", VD_CONFLICT, NULL);
	assert_string_equal(status.message, "Operation cannot be fulfilled on deployments.apps \"d\": the "
					    "object has been modified; please apply your "
					    "changes to the latest version and try again");
	of("list", VD_TOO_LARGE_REVISION, &error);
	check("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
	      "\"Timeout: Too large resource version: 9, current: 5\","
	      "\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\","
	      "\"message\":\"Too large resource version\"}],"
	      "\"retryAfterSeconds\":1},\"code\":504}");
	of("list", VD_UNAVAILABLE, NULL);
	assert_string_equal(status.message, "The list operation against deployments.apps could not be "
					    "completed at this time, please try again.");
	assert_int_equal(status.retry_after_s, 2);
}

/* Each error of the storage has its code, reason and words for the client.
 * rules: R-113, R-114, R-115, R-116, R-117, R-118, R-119, R-121, R-124, R-514, R-583 */
static void r680_r690_each_error_has_its_code_and_reason(void **state)
{
	static const struct {
		const char *verb;
		vd_status   status;
		const char *said; /* by the storage */
		int	    code;
		const char *reason, *message, *name; /* the name in the details */
		uint32_t    retry_after_s;
	} rows[] = {
		{ "get", VD_NOT_FOUND, "key not found", 404, "NotFound", "deployments.apps \"d\" not found",
		  "d", 0 },
		{ "update", VD_NOT_FOUND, "key not found", 404, "NotFound",
		  "deployments.apps \"d\" not found", "d", 0 },
		{ "delete", VD_NOT_FOUND, "key not found", 404, "NotFound",
		  "deployments.apps \"d\" not found", "d", 0 },
		{ "list", VD_NOT_FOUND, "key not found", 404, "NotFound", "deployments.apps \"\" not found",
		  "", 0 },
		{ "create", VD_EXISTS, "key exists", 409, "AlreadyExists",
		  "deployments.apps \"d\" already exists", "d", 0 },
		{ "update", VD_CONFLICT, "conflicts", 409, "Conflict",
		  "Operation cannot be fulfilled on deployments.apps \"d\": the object has been modified; "
		  "please apply your changes to the latest version and try again",
		  "d", 0 },
		{ "update", VD_PRECONDITION, "StorageError: invalid object, Code: 4", 409, "Conflict",
		  "Operation cannot be fulfilled on deployments.apps \"d\": StorageError: invalid object, "
		  "Code: 4",
		  "d", 0 },
		{ "delete", VD_PRECONDITION, "StorageError: invalid object, Code: 4", 409, "Conflict",
		  "Operation cannot be fulfilled on deployments.apps \"d\": StorageError: invalid object, "
		  "Code: 4",
		  "d", 0 },
		{ "get", VD_UNAVAILABLE, "no route", 500, "ServerTimeout",
		  "The get operation against deployments.apps could not be completed at this time, please "
		  "try again.",
		  "get", 2 },
		{ "list", VD_UNAVAILABLE, "no route", 500, "ServerTimeout",
		  "The list operation against deployments.apps could not be completed at this time, please "
		  "try again.",
		  "list", 2 },
		{ "get", VD_CORRUPT, "a broken file", 500, "InternalError",
		  "Internal error occurred: a broken file", "", 0 },
		{ "get", VD_BAD_REQUEST, "invalid continue token: x", 400, "BadRequest",
		  "invalid continue token: x", "", 0 },
		{ "list", VD_EXPIRED, "too old resource version: 5 (9)", 410, "Expired",
		  "too old resource version: 5 (9)", "", 0 },
		{ "list", VD_NOT_READY, "storage is (re)initializing", 429, "TooManyRequests",
		  "storage is (re)initializing", "", 1 },
		{ "get", VD_TIMEOUT, "late", 504, "Timeout",
		  "Timeout: request did not complete within requested timeout - late", "", 0 },
		{ "get", VD_TOO_LARGE_REVISION, "", 504, "Timeout",
		  "Timeout: Too large resource version: 9, current: 5", "", 0 },
		{ "create", VD_REVISION_ON_CREATE,
		  "resourceVersion should not be set on objects to be created", 500, "",
		  "resourceVersion should not be set on objects to be created", "", 0 },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error = { .code = rows[i].status, .requested = 9, .current = 5 };

		snprintf(error.message, sizeof error.message, "%s", rows[i].said);
		of(rows[i].verb, rows[i].status, &error);
		if (status.code != rows[i].code || strcmp(status.reason, rows[i].reason) != 0)
			fail_msg("%zu: %d %s", i, status.code, status.reason);
		assert_string_equal(status.message, rows[i].message);
		assert_string_equal(status.name, rows[i].name);
		assert_int_equal(status.retry_after_s, rows[i].retry_after_s);
	}
}

static void r690_every_code_has_an_answer(void **state)
{
	for (int code = 1; code < VD_STATUS_COUNT; code++) {
		of("get", (vd_status) code, NULL);
		assert_true(status.code >= 400 && status.code < 600);
		assert_true(status.message[0]);
		assert_non_null(vdi_http_reason_phrase(status.code));
		if (status.code == 429)
			assert_true(status.retry_after_s > 0);
	}
	of("create", VD_REVISION_ON_CREATE, NULL);
	assert_int_equal(status.code, 500);
	assert_string_equal(status.reason, "");
}

/* What has its causes as JSON already shows those. */
static void causes_may_be_written_already(void **state)
{
	struct vd_error error = { .code = VD_NOT_FOUND };

	(void) state;
	of("get", VD_NOT_FOUND, &error);
	vdi_http_status_cause(&status, "r", "f", "%s", "c");
	status.causes_text = vd_bytes_of("{\"field\":\"g\"},{\"field\":\"h\"}");
	check("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
	      "\"deployments.apps \\\"d\\\" not found\","
	      "\"reason\":\"NotFound\",\"details\":{\"name\":\"d\",\"group\":\"apps\",\"kind\":"
	      "\"deployments\",\"causes\":[{\"field\":\"g\"},{\"field\":\"h\"}]},\"code\":404}");
}

/* One answer for every verb: the inner text in the message and in the only cause. */
static void r120_internal_errors(void **state)
{
	static const char *const verbs[] = { "get",    "list",	"watch",  "create",
					     "update", "patch", "delete", "deletecollection" };
	static const vd_status	 codes[] = { VD_INTERNAL, VD_NOMEM, VD_IO, VD_CORRUPT, VD_UNDECODABLE };
	struct vd_error		 error = { .message = "inner \"text\"" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(verbs); i++)
		for (size_t j = 0; j < VDI_ARRAY_SIZE(codes); j++) {
			error.code = codes[j];
			of(verbs[i], codes[j], &error);
			check("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
			      "\"Failure\","
			      "\"message\":\"Internal error occurred: inner "
			      "\\\"text\\\"\",\"reason\":\"InternalError\","
			      "\"details\":{\"causes\":[{\"message\":\"inner "
			      "\\\"text\\\"\"}]},\"code\":500}");
		}
}

static void r679_text_is_escaped(void **state)
{
	struct vdi_out out = VDI_OUT_INIT;

	vdi_out_string(&out, (struct vd_bytes) { "<a>&\"\\\n\x01\xE2\x80\xA8\xE2\x80\xA9\xFF\xC3\xA9", 17 });
	vdi_out_printf(&out, "%c", 0);
	assert_string_equal(out.data,
			    "\"\\u003ca\\u003e\\u0026\\\"\\\\\\n\\u0001\\u2028\\u2029\\ufffd\xC3\xA9\"");
	vdi_out_fini(&out);
}

static void r609_pretty_is_indented_by_two(void **state)
{
	struct vdi_out out = VDI_OUT_INIT;

	vdi_out_pretty(&out, vd_bytes_of("{\"a\":[1,{\"b\":\"x,{}:\\\"\"}],\"c\":{},\"d\":[]}\n"));
	vdi_out_printf(&out, "%c", 0);
	assert_string_equal(out.data, "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x,{}:\\\"\"\n    }\n  "
				      "],\n  \"c\": {},\n  \"d\": []\n}\n");
	vdi_out_fini(&out);
}

/* Details are there as soon as one of their members is. rules: R-679 */
static void details_have_what_is_known(void **state)
{
	static const char *const members[] = { "name", "group", "kind", "uid" };

	for (size_t i = 0; i < 6; i++) {
		char	    wanted[256];
		char *const places[] = { status.name, status.group, status.kind, status.uid };

		vdi_http_status_set(&status, 404, "NotFound", "m");
		check("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
		      "\"message\":\"m\",\"reason\":\"NotFound\",\"code\":404}");
		if (i < 4) {
			memcpy(places[i], "x", 2);
			(void) snprintf(wanted, sizeof wanted, "{\"%s\":\"x\"}", members[i]);
		} else if (i == 4) {
			status.retry_after_s = 3;
			(void) snprintf(wanted, sizeof wanted, "{\"retryAfterSeconds\":3}");
		} else {
			vdi_http_status_cause(&status, "r", "f", "%s", "c");
			(void) snprintf(
				wanted, sizeof wanted,
				"{\"causes\":[{\"reason\":\"r\",\"message\":\"c\",\"field\":\"f\"}]}");
		}
		char whole[512];

		(void) snprintf(
			whole, sizeof whole,
			"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
			"\"message\":\"m\",\"reason\":\"NotFound\",\"details\":%s,\"code\":404}",
			wanted);
		check(whole);
	}
}

static void the_code_is_left_out_of_a_plain_success(void **state)
{
	vdi_http_status_set(&status, 200, "", "%s", "");
	status.success = true;
	check("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\"}");
	status.code = 201;
	check("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\",\"code\":"
	      "201}");
	status.success = false;
	status.code = 200;
	check("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"code\":"
	      "200}");
	vdi_http_status_set(&status, 410, "Expired", "%s", "old");
	status.continue_token = vd_bytes_of("token");
	status.long_message = vd_bytes_of("longer");
	check("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{\"continue\":\"token\"},\"status\":"
	      "\"Failure\",\"message\":\"longer\",\"reason\":\"Expired\",\"code\":410}");
}

/* Causes are told one after the other, several in brackets, as far as there is room. */
static void causes_are_told_in_the_message(void **state)
{
	static const char *const messages[] = { "Foo.g \"n\" is invalid: ",
						"Foo.g \"n\" is invalid: f0: m0",
						"Foo.g \"n\" is invalid: [f0: m0, f1: m1]",
						"Foo.g \"n\" is invalid: [f0: m0, f1: m1, f2: m2]",
						"Foo.g \"n\" is invalid: [f0: m0, f1: m1, f2: m2, f3: m3]",
						"Foo.g \"n\" is invalid: [f0: m0, f1: m1, f2: m2, f3: m3]" };
	char			 long_text[400];

	for (int count = 0; count < 6; count++) {
		vdi_http_status_set(&status, 400, "Other", "%s", "");
		for (int i = 0; i < count; i++) {
			char field[8];

			snprintf(field, sizeof field, "f%d", i);
			vdi_http_status_cause(&status, "R", field, "m%d", i);
		}
		vdi_http_status_invalid(&status, "g", "Foo", vd_bytes_of("n"));
		assert_string_equal(status.message, messages[count]);
		assert_string_equal(status.name, "n");
		assert_string_equal(status.group, "g");
		assert_string_equal(status.kind, "Foo");
		assert_int_equal(status.code, 422);
		assert_string_equal(status.reason, "Invalid");
		assert_int_equal(status.cause_count,
				 count < VDI_STATUS_CAUSES_MAX ? count : VDI_STATUS_CAUSES_MAX);
	}
	memset(long_text, 'x', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = 0;
	vdi_http_status_set(&status, 422, "Invalid", "%s", "");
	for (int i = 0; i < 4; i++)
		vdi_http_status_cause(&status, "R", "f", "%s", long_text);
	vdi_http_status_invalid(&status, "", "Foo", vd_bytes_of("n"));
	assert_int_equal(strlen(status.message), sizeof status.message - 1);
	assert_memory_equal(status.message, "Foo \"n\" is invalid: [f: xxx", 27);
	assert_int_equal(status.message[sizeof status.message - 2], 'x');
}

/* Names are copied as far as there is room, and never without an end. */
static void details_are_cut_off(void **state)
{
	char text[300];

	memset(text, 'x', sizeof text);
	for (size_t size = 0; size < sizeof text; size++) {
		text[size] = 0;
		memset(&status, 'y', sizeof status);
		vdi_http_status_set(&status, 404, "NotFound", "%s", "");
		vdi_http_status_details(&status, (struct vd_bytes) { text, size }, text, text);
		assert_int_equal(strlen(status.name),
				 size < sizeof status.name ? size : sizeof status.name - 1);
		assert_int_equal(strlen(status.group),
				 size < sizeof status.group ? size : sizeof status.group - 1);
		assert_int_equal(strlen(status.kind),
				 size < sizeof status.kind ? size : sizeof status.kind - 1);
		text[size] = 'x';
	}
}

static void details_have_an_order(void **state)
{
	vdi_http_status_set(&status, 422, "Invalid", "%s", "m");
	vdi_http_status_details(&status, vd_bytes_of("n"), "g", "K");
	(void) snprintf(status.uid, sizeof status.uid, "u");
	vdi_http_status_cause(&status, "R1", "f1", "m1");
	vdi_http_status_cause(&status, "R2", "f2", "m2");
	status.retry_after_s = 3;
	check("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
	      "\"m\","
	      "\"reason\":\"Invalid\",\"details\":{\"name\":\"n\",\"group\":\"g\",\"kind\":\"K\",\"uid\":"
	      "\"u\",\"causes\":["
	      "{\"reason\":\"R1\",\"message\":\"m1\",\"field\":\"f1\"},{\"reason\":\"R2\",\"message\":\"m2\","
	      "\"field\":"
	      "\"f2\"}],\"retryAfterSeconds\":3},\"code\":422}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(details_have_an_order),
		cmocka_unit_test(the_code_is_left_out_of_a_plain_success),
		cmocka_unit_test(causes_are_told_in_the_message),
		cmocka_unit_test(details_are_cut_off),
		cmocka_unit_test(r680_failures_look_as_upstream_writes_them),
		cmocka_unit_test(r680_r690_each_error_has_its_code_and_reason),
		cmocka_unit_test(r690_every_code_has_an_answer),
		cmocka_unit_test(causes_may_be_written_already),
		cmocka_unit_test(r120_internal_errors),
		cmocka_unit_test(r679_text_is_escaped),
		cmocka_unit_test(r609_pretty_is_indented_by_two),
		cmocka_unit_test(details_have_what_is_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
