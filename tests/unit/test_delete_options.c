/* Unit tests of apiserver/delete_options.c: what a body of a delete means, and that nothing is deleted by a body that was not understood. */
#include "vdtest.h"

#include "delete_options.h"

static vd_status parse(const char *body, struct vdi_delete_options *options, struct vdi_http_status *status)
{
	*options = (struct vdi_delete_options) { 0 };
	*status = (struct vdi_http_status) { 0 };
	return vdi_delete_options_parse(vd_bytes_of(body), false, options, status);
}

static void r614_options_are_taken_from_the_body(void **state)
{
	struct vdi_delete_options options;
	struct vdi_http_status	  status;

	assert_status(parse("", &options, &status), VD_OK);
	assert_int_equal(options.propagation, VDI_PROPAGATION_UNSET);
	assert_false(options.dry_run);
	vdi_delete_options_fini(&options);

	assert_status(parse("{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Foreground\",\"gracePeriodSeconds\":5,\"dryRun\":[\"All\"],"
			    "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"}}",
			    &options, &status),
		      VD_OK);
	assert_int_equal(options.propagation, VDI_PROPAGATION_FOREGROUND);
	assert_true(options.has_grace);
	assert_int_equal(options.grace_s, 5);
	assert_true(options.dry_run);
	assert_true(vd_bytes_equal(options.uid, vd_bytes_of("u")));
	assert_true(vd_bytes_equal(options.revision, vd_bytes_of("7")));
	vdi_delete_options_fini(&options);

	/* null is like absent. */
	assert_status(parse("{\"propagationPolicy\":null,\"preconditions\":null,\"dryRun\":null,\"orphanDependents\":null,\"gracePeriodSeconds\":null,\"kind\":null}", &options,
			    &status),
		      VD_OK);
	assert_int_equal(options.propagation, VDI_PROPAGATION_UNSET);
	assert_false(options.dry_run);
	assert_false(options.has_grace);
	assert_int_equal(options.uid.size, 0);
	vdi_delete_options_fini(&options);

	/* An empty condition is none that an object meets: to Go it is a pointer to "". */
	assert_status(parse("{\"preconditions\":{\"uid\":\"\",\"resourceVersion\":\"\"}}", &options, &status), VD_OK);
	assert_true(options.uid.size > 0 && options.revision.size > 0);
	vdi_delete_options_fini(&options);
	assert_status(parse("{\"preconditions\":{}}", &options, &status), VD_OK);
	assert_int_equal(options.uid.size + options.revision.size, 0);
	vdi_delete_options_fini(&options);
}

/* rules. A dry run or a condition in another form than the one that is known is refused: it must not become a deletion. */
static void r614_what_is_not_understood_is_refused(void **state)
{
	static const struct {
		const char *body;
		int	    code;
		const char *contains;
	} rows[] = {
		{ "{", 400, "error decoding DeleteOptions: " },
		{ "[]", 400, "the body must be a JSON object" },
		{ "null", 400, "the body must be a JSON object" },
		{ "{\"dryRun\":\"All\"}", 400, "dryRun must be a list of strings" },
		{ "{\"dryRun\":{}}", 400, "dryRun must be a list of strings" },
		{ "{\"dryRun\":[true]}", 400, "dryRun must be a list of strings" },
		{ "{\"dryRun\":[\"Some\"]}", 422, "dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"" },
		{ "{\"dryRun\":[\"All\",\"None\"]}", 422, "dryRun: Unsupported value: " },
		{ "{\"preconditions\":\"u\"}", 400, "preconditions must be an object" },
		{ "{\"preconditions\":[]}", 400, "preconditions must be an object" },
		{ "{\"preconditions\":{\"uid\":5}}", 400, "preconditions must be strings" },
		{ "{\"preconditions\":{\"resourceVersion\":5}}", 400, "preconditions must be strings" },
		{ "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"}", 400, "the body holds another kind" },
		{ "{\"kind\":5}", 400, "the body holds another kind" },
		{ "{\"propagationPolicy\":5}", 400, "propagationPolicy must be a string" },
		{ "{\"propagationPolicy\":\"Sideways\"}", 422, "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"" },
		{ "{\"propagationPolicy\":\"Orphan\",\"orphanDependents\":true}", 422, "cannot be both set" },
		{ "{\"orphanDependents\":\"yes\"}", 400, "orphanDependents must be true or false" },
		{ "{\"gracePeriodSeconds\":\"5\"}", 400, "gracePeriodSeconds must be an integer" },
		{ "{\"gracePeriodSeconds\":1.5}", 400, "gracePeriodSeconds must be an integer" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_delete_options options;
		struct vdi_http_status	  status;

		if (parse(rows[i].body, &options, &status) != VD_INVALID || status.code != rows[i].code || !strstr(status.message, rows[i].contains))
			fail_msg("%s: %d %s", rows[i].body, status.code, status.message);
	}
}

static void every_failed_allocation_is_reported(void **state)
{
	const char *body = "{\"propagationPolicy\":\"Orphan\",\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"dryRun\":[\"All\"]}";
	bool	    failed = true;

	for (uint64_t nth = 1; failed; nth++) {
		int64_t			  live = vdi_alloc_live();
		struct vdi_delete_options options;
		struct vdi_http_status	  status;
		vd_status		  result;

		(void) vdi_alloc_fail_nth(nth, 1);
		result = parse(body, &options, &status);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(result, failed ? VD_NOMEM : VD_OK);
		if (failed)
			assert_int_equal(status.code, 500);
		vdi_delete_options_fini(&options);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r614_options_are_taken_from_the_body),
		cmocka_unit_test(r614_what_is_not_understood_is_refused),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
