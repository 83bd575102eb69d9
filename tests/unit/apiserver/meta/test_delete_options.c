/* Unit tests of apiserver/meta/delete_options.c: what a body of a delete means, and that nothing is deleted
 * by a body that was not understood. */
#include "vdtest.h"

#include "delete_options.h"
#include "k8s_proto.h"

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

	assert_status(parse("{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":"
			    "\"Foreground\",\"gracePeriodSeconds\":5,\"dryRun\":[\"All\"],"
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
	assert_status(parse("{\"propagationPolicy\":null,\"preconditions\":null,\"dryRun\":null,"
			    "\"orphanDependents\":null,\"gracePeriodSeconds\":null,\"kind\":null}",
			    &options, &status),
		      VD_OK);
	assert_int_equal(options.propagation, VDI_PROPAGATION_UNSET);
	assert_false(options.dry_run);
	assert_false(options.has_grace);
	assert_int_equal(options.uid.size, 0);
	vdi_delete_options_fini(&options);

	/* An empty condition is none that an object meets: to Go it is a pointer to "". */
	assert_status(parse("{\"preconditions\":{\"uid\":\"\",\"resourceVersion\":\"\"}}", &options, &status),
		      VD_OK);
	assert_true(options.uid.size > 0 && options.revision.size > 0);
	vdi_delete_options_fini(&options);
	assert_status(parse("{\"preconditions\":{}}", &options, &status), VD_OK);
	assert_int_equal(options.uid.size + options.revision.size, 0);
	vdi_delete_options_fini(&options);
}

/* rules. A dry run or a condition in another form than the one that is known is refused:
 * it must not become a deletion. */
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
		{ "{\"dryRun\":[\"Some\"]}", 422,
		  "dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"" },
		{ "{\"dryRun\":[\"All\",\"None\"]}", 422, "dryRun: Unsupported value: " },
		{ "{\"preconditions\":\"u\"}", 400, "preconditions must be an object" },
		{ "{\"preconditions\":[]}", 400, "preconditions must be an object" },
		{ "{\"preconditions\":{\"uid\":5}}", 400, "preconditions must be strings" },
		{ "{\"preconditions\":{\"resourceVersion\":5}}", 400, "preconditions must be strings" },
		{ "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"}", 400, "the body holds another kind" },
		{ "{\"kind\":5}", 400, "the body holds another kind" },
		{ "{\"propagationPolicy\":5}", 400, "propagationPolicy must be a string" },
		{ "{\"propagationPolicy\":\"Sideways\"}", 422,
		  "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"" },
		{ "{\"propagationPolicy\":\"Orphan\",\"orphanDependents\":true}", 422, "cannot be both set" },
		{ "{\"orphanDependents\":\"yes\"}", 400, "orphanDependents must be true or false" },
		{ "{\"gracePeriodSeconds\":\"5\"}", 400, "gracePeriodSeconds must be an integer" },
		{ "{\"gracePeriodSeconds\":1.5}", 400, "gracePeriodSeconds must be an integer" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_delete_options options;
		struct vdi_http_status	  status;

		if (parse(rows[i].body, &options, &status) != VD_INVALID || status.code != rows[i].code ||
		    !strstr(status.message, rows[i].contains))
			fail_msg("%s: %d %s", rows[i].body, status.code, status.message);
	}
}

static void every_failed_allocation_is_reported(void **state)
{
	const char *body = "{\"propagationPolicy\":\"Orphan\",\"preconditions\":{\"uid\":\"u\","
			   "\"resourceVersion\":\"7\"},\"dryRun\":[\"All\"]}";
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

static void r614_options_are_taken_from_the_query(void **state)
{
	static const struct {
		const char	    *query;
		enum vdi_propagation propagation;
		enum vd_tristate     orphans;
		bool		     has_grace;
		int64_t		     grace_s;
	} rows[] = {
		{ "", VDI_PROPAGATION_UNSET, VD_UNSET, false, 0 },
		{ "propagationPolicy=Background", VDI_PROPAGATION_BACKGROUND, VD_UNSET, false, 0 },
		{ "propagationPolicy=Foreground", VDI_PROPAGATION_FOREGROUND, VD_UNSET, false, 0 },
		{ "propagationPolicy=Orphan", VDI_PROPAGATION_ORPHAN, VD_UNSET, false, 0 },
		{ "propagationPolicy=orphan", VDI_PROPAGATION_UNSET, VD_UNSET, false, 0 },
		{ "orphanDependents=true", VDI_PROPAGATION_UNSET, VD_TRUE, false, 0 },
		{ "orphanDependents=false", VDI_PROPAGATION_UNSET, VD_FALSE, false, 0 },
		{ "gracePeriodSeconds=0", VDI_PROPAGATION_UNSET, VD_UNSET, true, 0 },
		{ "gracePeriodSeconds=30", VDI_PROPAGATION_UNSET, VD_UNSET, true, 30 },
		{ "gracePeriodSeconds=-1", VDI_PROPAGATION_UNSET, VD_UNSET, true, -1 },
		{ "gracePeriodSeconds=x", VDI_PROPAGATION_UNSET, VD_UNSET, false, 0 },
		{ "gracePeriodSeconds=", VDI_PROPAGATION_UNSET, VD_UNSET, false, 0 },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_delete_options options = { 0 };
		struct vdi_params	  params;

		assert_status(vdi_params_parse(vd_bytes_of(rows[i].query), &params), VD_OK);
		vdi_delete_options_query(&params, &options);
		assert_int_equal(options.propagation, rows[i].propagation);
		assert_int_equal(options.orphan_dependents, rows[i].orphans);
		assert_int_equal(options.has_grace, rows[i].has_grace);
		if (rows[i].has_grace)
			assert_int_equal(options.grace_s, rows[i].grace_s);
		vdi_delete_options_fini(&options);
		vdi_params_fini(&params);
	}
}

#define SIXTY "123456789012345678901234567890123456789012345678901234567890"

static void r614_each_member_of_a_body(void **state)
{
	static const struct {
		const char	    *body;
		enum vdi_propagation propagation;
		enum vd_tristate     orphans;
		bool		     has_grace, dry_run;
		int64_t		     grace_s;
		const char	    *message; /* of a refusal; NULL: it is taken */
	} rows[] = {
		{ "{\"orphanDependents\":true}", VDI_PROPAGATION_UNSET, VD_TRUE, false, false, 0, NULL },
		{ "{\"orphanDependents\":false}", VDI_PROPAGATION_UNSET, VD_FALSE, false, false, 0, NULL },
		{ "{\"orphanDependents\":null,\"propagationPolicy\":\"Orphan\"}", VDI_PROPAGATION_ORPHAN,
		  VD_UNSET, false, false, 0, NULL },
		{ "{\"orphanDependents\":true,\"propagationPolicy\":null}", VDI_PROPAGATION_UNSET, VD_TRUE,
		  false, false, 0, NULL },
		{ "{\"propagationPolicy\":\"Background\"}", VDI_PROPAGATION_BACKGROUND, VD_UNSET, false,
		  false, 0, NULL },
		{ "{\"gracePeriodSeconds\":0}", VDI_PROPAGATION_UNSET, VD_UNSET, true, false, 0, NULL },
		{ "{\"gracePeriodSeconds\":-5}", VDI_PROPAGATION_UNSET, VD_UNSET, true, false, -5, NULL },
		{ "{\"dryRun\":[]}", VDI_PROPAGATION_UNSET, VD_UNSET, false, false, 0, NULL },
		{ "{\"dryRun\":[\"All\",\"All\"]}", VDI_PROPAGATION_UNSET, VD_UNSET, false, true, 0, NULL },
		{ "{\"kind\":\"\"}", VDI_PROPAGATION_UNSET, VD_UNSET, false, false, 0, NULL },
		{ "{\"propagationPolicy\":\"x\"}", 0, 0, false, false, 0,
		  "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"x\": "
		  "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"" },
		{ "{\"propagationPolicy\":\"" SIXTY "1\"}", 0, 0, false, false, 0,
		  "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"" SIXTY
		  "\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"" },
		{ "{\"dryRun\":[\"x\"]}", 0, 0, false, false, 0,
		  "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"x\"]: supported "
		  "values: \"All\"" },
		{ "{\"dryRun\":[\"" SIXTY "1\"]}", 0, 0, false, false, 0,
		  "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"" SIXTY
		  "\"]: supported values: \"All\"" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_delete_options options;
		struct vdi_http_status	  status;

		assert_status(parse(rows[i].body, &options, &status), rows[i].message ? VD_INVALID : VD_OK);
		if (rows[i].message) {
			assert_string_equal(status.message, rows[i].message);
			continue;
		}
		assert_int_equal(options.propagation, rows[i].propagation);
		assert_int_equal(options.orphan_dependents, rows[i].orphans);
		assert_int_equal(options.has_grace, rows[i].has_grace);
		assert_int_equal(options.dry_run, rows[i].dry_run);
		if (rows[i].has_grace)
			assert_int_equal(options.grace_s, rows[i].grace_s);
		vdi_delete_options_fini(&options);
	}
}

/* kubectl and client-go send the options as protobuf, too: both forms mean the same. */
static vd_status parse_as_protobuf(const char *kind, const char *json, struct vdi_delete_options *options,
				   struct vdi_http_status *status)
{
	struct vdi_buffer body;
	vd_status	  result;
	size_t		  mark;

	*options = (struct vdi_delete_options) { 0 };
	memset(status, 0x5A, sizeof *status); /* an output: its content does not count */
	status->code = 0;
	status->message[0] = 0;
	vdi_buffer_init(&body, 4096);
	mark = vdi_k8s_proto_envelope_begin(&body, vd_bytes_of("v1"), vd_bytes_of(kind));
	assert_status(vdi_k8s_proto_from_json(vdi_k8s_kind_find(vd_bytes_of("v1"), vd_bytes_of(kind)),
					      vd_bytes_of(json), NULL, &body, NULL),
		      VD_OK);
	vdi_k8s_proto_envelope_end(&body, mark);
	result = vdi_delete_options_parse(vdi_buffer_bytes(&body), true, options, status);
	vdi_buffer_fini(&body);
	return result;
}

static void r614_protobuf_means_the_same(void **state)
{
	static const char *const bodies[] = {
		"{}",
		"{\"orphanDependents\":true}",
		"{\"orphanDependents\":false}",
		"{\"propagationPolicy\":\"Foreground\"}",
		"{\"propagationPolicy\":\"Background\",\"gracePeriodSeconds\":0}",
		"{\"gracePeriodSeconds\":-5}",
		"{\"dryRun\":[]}",
		"{\"dryRun\":[\"All\",\"All\"]}",
		"{\"dryRun\":[\"All\",\"None\"]}",
		"{\"propagationPolicy\":\"Sideways\"}",
		"{\"propagationPolicy\":\"Orphan\",\"orphanDependents\":true}",
		"{\"preconditions\":{\"uid\":\"u\"}}",
		"{\"preconditions\":{\"resourceVersion\":\"7\"}}",
		"{\"preconditions\":{\"uid\":\"\",\"resourceVersion\":\"\"}}",
	};
	struct vdi_delete_options one, other;
	struct vdi_http_status	  status, other_status;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(bodies); i++) {
		vd_status result = parse(bodies[i], &one, &status);

		assert_status(parse_as_protobuf("DeleteOptions", bodies[i], &other, &other_status), result);
		assert_int_equal(one.propagation, other.propagation);
		assert_int_equal(one.orphan_dependents, other.orphan_dependents);
		assert_int_equal(one.dry_run, other.dry_run);
		assert_int_equal(one.has_grace, other.has_grace);
		assert_int_equal(one.grace_s, other.grace_s);
		assert_true(vd_bytes_equal(one.uid, other.uid));
		assert_true(vd_bytes_equal(one.revision, other.revision));
		assert_int_equal(status.code, other_status.code);
		assert_string_equal(status.message, other_status.message);
		vdi_delete_options_fini(&one);
		vdi_delete_options_fini(&other);
	}
	assert_status(parse_as_protobuf("Pod", "{}", &other, &other_status), VD_INVALID);
	assert_int_equal(other_status.code, 400);
	assert_string_equal(other_status.message,
			    "error decoding DeleteOptions: the body holds another kind");
	assert_status(
		parse_as_protobuf("ConfigMap", "{\"metadata\":{\"name\":\"a\"}}", &other, &other_status),
		VD_INVALID);
	assert_string_equal(other_status.message,
			    "error decoding DeleteOptions: the body holds another kind");
	assert_status(vdi_delete_options_parse(vd_bytes_of("k8s"), true, &other, &other_status), VD_INVALID);
	assert_int_equal(other_status.code, 400);
	assert_status(vdi_delete_options_parse(VD_BYTES_NONE, true, &other, &other_status), VD_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r614_options_are_taken_from_the_query),
		cmocka_unit_test(r614_each_member_of_a_body),
		cmocka_unit_test(r614_options_are_taken_from_the_body),
		cmocka_unit_test(r614_protobuf_means_the_same),
		cmocka_unit_test(r614_what_is_not_understood_is_refused),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
