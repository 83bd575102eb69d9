/* Unit tests of replay/log/import_audit.c and import_watch.c: memory may run out anywhere. What becomes what
 * is in tests/tool/test_import.py; bad bytes are tests/fuzz/fuzz_import.c. */
#include <stdio.h>

#include "import_audit.h"
#include "import_watch.h"
#include "vdtest.h"

#define K(text) vd_bytes_of(text)

static unsigned changes;

static vd_status on_change(void *arg, bool is_delete, const struct vd_kv *kv, vd_wall time,
			   struct vd_error *reterr)
{
	changes++;
	return VD_OK;
}

static vd_status on_commit(void *arg, vd_rev revision, struct vd_error *reterr)
{
	return VD_OK;
}

static vd_status on_snapshot(void *arg, vd_rev revision, bool begins, struct vd_error *reterr)
{
	return VD_OK;
}

static vd_status on_mark(void *arg, enum vdi_log_kind kind, vd_rev revision, const char *text,
			 struct vd_error *reterr)
{
	return VD_OK;
}

static const struct vdi_import_sink sink = { on_change, on_commit, on_snapshot, on_mark, NULL };

static bool prefix_of(void *arg, struct vd_bytes api_version, struct vd_bytes kind,
		      char prefix[VDI_KUBE_PREFIX_MAX])
{
	return vdi_kube_prefix("", "pods", prefix);
}

#define POD(name, revision)                                                                                  \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name                             \
	"\",\"namespace\":\"n\",\"resourceVersion\":\"" revision "\"}}"
#define AUDIT(verb, object)                                                                                  \
	"{\"kind\":\"Event\",\"stage\":\"ResponseComplete\",\"level\":\"RequestResponse\",\"verb\":\"" verb  \
	"\",\"objectRef\":{\"resource\":\"pods\",\"name\":\"a\",\"namespace\":\"n\"},\"responseStatus\":{"   \
	"\"code\":200},\"responseObject\":" object "}\n"

static vd_status import_audit(void)
{
	struct vdi_import_audit *import;
	vd_status		 status;

	VDI_TRY(vdi_import_audit_new(&sink, &import));
	status = vdi_import_audit_feed(import,
				       K(AUDIT("create", POD("a", "5")) AUDIT("patch", POD("b", "4")) AUDIT(
					       "delete", "{\"kind\":\"Status\",\"apiVersion\":\"v1\"}")),
				       NULL);
	if (status == VD_OK)
		status = vdi_import_audit_end(import, NULL, NULL);
	vdi_import_audit_free(import);
	return status;
}

static vd_status pass(const struct vdi_import_watch_scan *scan, struct vdi_import_watch_scan *ret_scan)
{
	struct vdi_import_watch *import;
	vd_status		 status;

	VDI_TRY(vdi_import_watch_new(scan, prefix_of, NULL, &sink, &import));
	status = vdi_import_watch_feed(
		import,
		K("{\"type\":\"ADDED\",\"object\":" POD("a", "5") "}{\"type\":\"ADDED\",\"object\":" POD(
			"b", "4") "}\n" POD("b", "7")),
		NULL);
	if (status == VD_OK)
		status = vdi_import_watch_end(import, ret_scan, NULL, NULL);
	vdi_import_watch_free(import);
	return status;
}

static vd_status import_watch(void)
{
	struct vdi_import_watch_scan scan;

	VDI_TRY(pass(NULL, &scan));
	return pass(&scan, NULL);
}

static void every_allocation_may_fail(void **state)
{
	vd_status (*const imports[])(void) = { import_audit, import_watch };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(imports); i++)
		for (uint64_t nth = 1;; nth++) {
			int64_t	  live = vdi_alloc_live();
			vd_status status;
			bool	  failed;

			changes = 0;
			(void) vdi_alloc_fail_nth(nth, 1);
			status = imports[i]();
			failed = vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
			assert_status(status, failed ? VD_NOMEM : VD_OK);
			assert_int_equal(vdi_alloc_live(), live);
			if (failed)
				continue;
			assert_int_equal(changes, 3);
			break;
		}
}

/* ---- What an audit log becomes ---- */

static char told[2048];

static void tell(const char *format, long long number, const char *key, size_t size, long long seconds)
{
	size_t used = strlen(told);

	used += (size_t) snprintf(told + used, sizeof told - used, format, number, (int) size, key);
	if (seconds)
		(void) snprintf(told + used, sizeof told - used, " t%lld", seconds);
}

static vd_status tell_change(void *arg, bool is_delete, const struct vd_kv *kv, vd_wall time,
			     struct vd_error *reterr)
{
	/* Behind "/registry/". */
	tell(is_delete ? " %lld-%.*s" : " %lld+%.*s", (long long) kv->mod_rev, kv->data + 10,
	     kv->key_size - 10, (long long) (time.ns / 1000000000));
	return VD_OK;
}

static vd_status tell_commit(void *arg, vd_rev revision, struct vd_error *reterr)
{
	tell(" |%lld%.*s", (long long) revision, "", 0, 0);
	return VD_OK;
}

static const struct vdi_import_sink teller = { tell_change, tell_commit, on_snapshot, on_mark, NULL };

/* Everything that the lines become, and ": read taken skipped revision", or the message of the error. */
static const char *become(const char *lines)
{
	struct vdi_import_audit *import;
	struct vdi_import_totals totals = { 0 };
	struct vd_error		 error = { 0 };
	vd_status		 status;
	size_t			 used;

	told[0] = 0;
	assert_status(vdi_import_audit_new(&teller, &import), VD_OK);
	status = vdi_import_audit_feed(import, K(lines), &error);
	if (status == VD_OK)
		status = vdi_import_audit_end(import, &totals, &error);
	assert_status(status, error.code);
	used = strlen(told);
	if (status == VD_OK)
		snprintf(told + used, sizeof told - used, " : %llu %llu %llu %lld",
			 (unsigned long long) totals.read, (unsigned long long) totals.taken,
			 (unsigned long long) totals.skipped, (long long) totals.revision);
	else
		snprintf(told + used, sizeof told - used, " : %s", error.message);
	vdi_import_audit_free(import);
	return told;
}

#define GONE "{\"kind\":\"Status\",\"apiVersion\":\"v1\"}"
#define LINE(stage, level, verb, reference, code, more)                                                      \
	"{\"kind\":\"Event\",\"stage\":\"" stage "\",\"level\":\"" level "\",\"verb\":\"" verb               \
	"\",\"objectRef\":{" reference "},\"responseStatus\":{\"code\":" code "}," more                      \
	"\"responseObject\":" POD("a", "5") "}\n"
#define PODS "\"resource\":\"pods\",\"name\":\"a\",\"namespace\":\"n\""

static void changes_come_in_the_order_of_their_revisions(void **state)
{
	(void) state;
	assert_string_equal(
		become(AUDIT("create", POD("a", "5")) AUDIT("update", POD("b", "9")) AUDIT(
			"patch", POD("c", "7")) AUDIT("update", POD("d", "6")) AUDIT("patch", POD("e", "8"))),
		" 5+pods/n/a |5 6+pods/n/d |6 7+pods/n/c |7 8+pods/n/e |8 9+pods/n/b |9 : 5 5 0 9");
	/* Twice is once. */
	assert_string_equal(become(AUDIT("create", POD("a", "5")) AUDIT("create", POD("a", "5"))
					   AUDIT("create", POD("b", "5"))),
			    " 5+pods/n/a 5+pods/n/b |5 : 3 2 1 5");
	assert_string_equal(become(""), " : 0 0 0 0");
}

/* A deletion of which the answer says nothing comes behind what was read before it. */
static void a_deletion_without_a_revision_gets_one(void **state)
{
	(void) state;
	assert_string_equal(become(AUDIT("create", POD("a", "5")) AUDIT("delete", GONE)),
			    " 5+pods/n/a |5 6-pods/n/a |6 : 2 2 0 6");
	/* It joins another change there. */
	assert_string_equal(
		become(AUDIT("create", POD("a", "5")) AUDIT("delete", GONE) AUDIT("create", POD("b", "6"))),
		" 5+pods/n/a |5 6-pods/n/a 6+pods/n/b |6 : 3 3 0 6");
	/* Unless that is of the same key, which lives on. */
	assert_string_equal(
		become(AUDIT("create", POD("a", "5")) AUDIT("delete", GONE) AUDIT("create", POD("a", "6"))),
		" 5+pods/n/a |5 6+pods/n/a |6 : 3 2 1 6");
	assert_string_equal(
		become(AUDIT("create", POD("a", "5")) AUDIT("delete", GONE) AUDIT("create", POD("a", "7"))),
		" 5+pods/n/a |5 6-pods/n/a |6 7+pods/n/a |7 : 3 3 0 7");
	/* The answer to anything else is no deletion. */
	assert_string_equal(become(AUDIT("create", POD("a", "5")) AUDIT("patch", GONE)),
			    " 5+pods/n/a |5 : 2 1 1 5");
	assert_string_equal(become(AUDIT("delete", POD("a", "5"))), " 5-pods/n/a |5 : 1 1 0 5");
	assert_string_equal(
		become(AUDIT("deletecollection",
			     "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[" POD(
				     "a", "5") "," POD("b", "6") "]}")),
		" 5-pods/n/a |5 6-pods/n/b |6 : 1 2 0 6");
}

/* Only what changed the store, and says how. */
static void other_lines_are_left_out(void **state)
{
	static const struct {
		const char *line;
		bool	    is_taken;
	} cases[] = { { LINE("ResponseComplete", "RequestResponse", "create", PODS, "200", ""), true },
		      { LINE("ResponseComplete", "RequestResponse", "create", PODS, "201", ""), true },
		      { LINE("ResponseComplete", "RequestResponse", "update", PODS, "299", ""), true },
		      { LINE("ResponseComplete", "RequestResponse", "create", PODS, "300", ""), false },
		      { LINE("ResponseComplete", "RequestResponse", "create", PODS, "409", ""), false },
		      { LINE("ResponseComplete", "RequestResponse", "create", PODS, "20", ""), false },
		      { LINE("ResponseComplete", "RequestResponse", "create", PODS, "2000", ""), false },
		      { LINE("ResponseStarted", "RequestResponse", "create", PODS, "200", ""), false },
		      { LINE("ResponseComplete", "Request", "create", PODS, "200", ""), false },
		      { LINE("ResponseComplete", "RequestResponse", "get", PODS, "200", ""), false },
		      { LINE("ResponseComplete", "RequestResponse", "create",
			     PODS ",\"subresource\":\"status\"", "200", ""),
			true },
		      { LINE("ResponseComplete", "RequestResponse", "create",
			     PODS ",\"subresource\":\"resize\"", "200", ""),
			true },
		      { LINE("ResponseComplete", "RequestResponse", "create",
			     PODS ",\"subresource\":\"binding\"", "200", ""),
			false },
		      { LINE("ResponseComplete", "RequestResponse", "create", "\"name\":\"a\"", "200", ""),
			false },
		      { LINE("ResponseComplete", "RequestResponse", "create", PODS, "200",
			     "\"requestURI\":\"/api/v1/pods?dryRun=All\","),
			false },
		      { LINE("ResponseComplete", "RequestResponse", "create", PODS, "200",
			     "\"requestURI\":\"/api/v1/pods\","),
			true } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++)
		if (strcmp(become(cases[i].line),
			   cases[i].is_taken ? " 5+pods/n/a |5 : 1 1 0 5" : " : 1 0 1 0") != 0)
			fail_msg("%s%s", cases[i].line, told);
	assert_string_equal(become(LINE("ResponseComplete", "RequestResponse", "create", PODS, "200",
					"\"stageTimestamp\":\"1970-01-01T00:00:07.5Z\",")),
			    " 5+pods/n/a t7 |5 : 1 1 0 5");
}

static void what_is_no_audit_log_is_named_by_its_line(void **state)
{
	static const char *const cases[][2] = {
		{ AUDIT("create", POD("a", "5")) "{\"kind\":\"Pod\"}\n",
		  " : line 2: not an audit event: its kind is not Event, or it has no stage" },
		{ "{\"kind\":\"Event\"}\n",
		  " : line 1: not an audit event: its kind is not Event, or it has no stage" },
		{ "{\"kind\":1,\"stage\":\"x\"}\n",
		  " : line 1: not an audit event: its kind is not Event, or it has no stage" },
		{ "\n\nx\n", " : line 3: expected a JSON object" },
		{ "\n{\"kind\":", " : line 2: the input ends inside an object" },
		{ LINE("ResponseComplete", "RequestResponse", "create", "\"resource\":\"p\\u006fds\"", "200",
		       ""),
		  " : line 1: the apiGroup or resource in objectRef is not a plain name" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++)
		assert_string_equal(become(cases[i][0]), cases[i][1]);
}

/* The window holds so many changes: what comes too late by one more is refused, with its line. */
static void the_window_is_bounded(void **state)
{
	(void) state;
	for (int late = 0; late < 2; late++) {
		struct vdi_import_audit *import;
		struct vd_error		 error = { 0 };
		vd_status		 status = VD_OK;
		char			 line[512];

		told[0] = 0;
		changes = 0;
		assert_status(vdi_import_audit_new(&sink, &import), VD_OK);
		for (int i = 0; status == VD_OK && i < VDI_IMPORT_AUDIT_WINDOW + late; i++) {
			snprintf(line, sizeof line,
				 "{\"kind\":\"Event\",\"stage\":\"ResponseComplete\",\"level\":"
				 "\"RequestResponse\",\"verb\":\"create\",\"objectRef\":{" PODS
				 "},\"responseStatus\":{\"code\":200},\"responseObject\":{\"kind\":\"Pod\","
				 "\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"%"
				 "d\"}}}\n",
				 100 + i);
			status = vdi_import_audit_feed(import, K(line), &error);
		}
		assert_status(status, VD_OK);
		assert_int_equal(changes, late);
		assert_status(vdi_import_audit_feed(import, K(AUDIT("create", POD("b", "50"))), &error),
			      VD_OK);
		status = vdi_import_audit_end(import, NULL, &error);
		assert_status(status, VD_BAD_REQUEST);
		assert_non_null(strstr(error.message, "is more than"));
		vdi_import_audit_free(import);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(changes_come_in_the_order_of_their_revisions),
		cmocka_unit_test(a_deletion_without_a_revision_gets_one),
		cmocka_unit_test(other_lines_are_left_out),
		cmocka_unit_test(what_is_no_audit_log_is_named_by_its_line),
		cmocka_unit_test(the_window_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
