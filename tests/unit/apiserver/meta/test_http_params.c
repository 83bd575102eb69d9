/* Query parameters: parsing, defaulting, and the validation table with its exact texts. */
#include "vdtest.h"

#include "actor_sim.h"
#include "field_support.h"
#include "http_params.h"

static struct vdi_params parse(const char *query)
{
	struct vdi_params params;

	assert_status(vdi_params_parse(vd_bytes_of(query), &params), VD_OK);
	return params;
}

static void check(struct vd_bytes got, const char *wanted)
{
	assert_int_equal(got.size, strlen(wanted));
	assert_memory_equal(got.data, wanted, got.size);
}

static void r602_booleans_are_true_unless_0_or_false(void **state)
{
	static const struct {
		const char *query;
		bool	    watch;
	} rows[] = { { "watch=true", true },   { "watch=1", true },	 { "watch", true },
		     { "watch=", true },       { "watch=x", true },	 { "watch=0", false },
		     { "watch=false", false }, { "watch=FALSE", false }, { "", false },
		     { "Watch=1", false } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_params params = parse(rows[i].query);

		assert_int_equal(params.watch, rows[i].watch);
		vdi_params_fini(&params);
	}
}

static void h104_values_are_decoded_and_unknown_ones_ignored(void **state)
{
	struct vdi_params params = parse("labelSelector=a%3Db%2Cc%21%3Dd&fieldSelector=x+y&nonsense=1&limit="
					 "5&limit=6&bad=%zz&timeout=32s&dryRun=All");

	check(params.label_selector, "a=b,c!=d");
	check(params.field_selector, "x y");
	check(params.limit, "5");
	check(params.timeout, "32s");
	assert_true(params.has_dry_run);
	assert_false(params.dry_run_other);
	vdi_params_fini(&params);
}

struct row {
	const char *query;
	const char *message; /* NULL: valid */
};

#define PREFIX "ListOptions.meta.k8s.io \"\" is invalid: "

static void r607_list_options_are_validated_with_the_exact_texts(void **state)
{
	static const struct row rows[] = {
		{ "", NULL },
		{ "resourceVersion=5&resourceVersionMatch=Exact", NULL },
		{ "resourceVersionMatch=Exact",
		  PREFIX "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
			 "resourceVersion is provided" },
		{ "resourceVersion=1&resourceVersionMatch=Exact&continue=x",
		  PREFIX "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue "
			 "is provided" },
		{ "resourceVersion=1&resourceVersionMatch=Foo",
		  PREFIX "resourceVersionMatch: Unsupported value: \"Foo\": supported values: \"Exact\", "
			 "\"NotOlderThan\", \"\"" },
		{ "resourceVersion=0&resourceVersionMatch=Exact",
		  PREFIX "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for "
			 "resourceVersion \"0\"" },
		{ "sendInitialEvents=false",
		  PREFIX "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list" },
		{ "resourceVersionMatch=Foo&sendInitialEvents=1",
		  PREFIX "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
			 "resourceVersion is provided, "
			 "resourceVersionMatch: Unsupported value: \"Foo\": supported values: \"Exact\", "
			 "\"NotOlderThan\", \"\", "
			 "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list]" },
		{ "watch=1", NULL },
		{ "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", NULL },
		{ "watch=1&sendInitialEvents=true",
		  PREFIX "resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
			 "resourceVersionMatch to NotOlderThan" },
		{ "watch=1&resourceVersion=5&resourceVersionMatch=NotOlderThan",
		  PREFIX "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
			 "unless sendInitialEvents is provided" },
		{ "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x",
		  PREFIX "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue "
			 "is provided" },
		{ "watch=1&resourceVersion=5&resourceVersionMatch=Exact", PREFIX
		  "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless "
		  "sendInitialEvents is provided, "
		  "resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]" },
	};
	struct vdi_http_status *status = vdi_alloc(sizeof *status);

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_params params = parse(rows[i].query);

		assert_int_equal(vdi_params_validate_list(&params, status), rows[i].message == NULL);
		if (rows[i].message) {
			assert_string_equal(status->message, rows[i].message);
			assert_int_equal(status->code, 422);
			assert_string_equal(status->reason, "Invalid");
			assert_string_equal(status->kind, "ListOptions");
		}
		vdi_params_fini(&params);
	}
	vdi_free(status);
}

static void r606_a_plain_watch_becomes_a_watch_list(void **state)
{
	static const struct {
		const char	*query;
		enum vd_tristate send;
	} rows[] = { { "watch=1", VD_TRUE },
		     { "watch=1&resourceVersion=0", VD_TRUE },
		     { "watch=1&resourceVersion=5", VD_UNSET },
		     { "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", VD_FALSE },
		     { "watch=1&resourceVersionMatch=NotOlderThan", VD_UNSET },
		     { "", VD_UNSET } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_params params = parse(rows[i].query);

		vdi_params_default(&params);
		assert_int_equal(params.send_initial_events, rows[i].send);
		vdi_params_fini(&params);
	}
}

/* A store that cannot prove progress: as upstream with the gate WatchList off. */
static void r606_r607_without_proof_of_progress_there_is_no_watch_list(void **state)
{
	struct vdi_http_status *status = calloc(1, sizeof *status);
	struct vdi_params	params = parse("watch=1&allowWatchBookmarks=true");

	(void) state;
	params.watch_list_off = true;
	vdi_params_default(&params);
	assert_int_equal(params.send_initial_events, VD_UNSET);
	assert_true(vdi_params_validate_list(&params, status));
	vdi_params_fini(&params);
	params = parse(
		"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
	params.watch_list_off = true;
	vdi_params_default(&params);
	assert_false(vdi_params_validate_list(&params, status));
	assert_int_equal(status->code, 422);
	assert_string_equal(status->message,
			    PREFIX "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch "
				   "unless the WatchList feature gate is enabled");
	vdi_params_fini(&params);
	free(status);
}

static void r616_a_name_in_the_path_is_the_one_of_the_selector(void **state)
{
	static const struct {
		const char *name, *query;
		bool	    valid;
	} rows[] = {
		{ "a", "", true },
		{ "a", "fieldSelector=", true },
		{ "a", "fieldSelector=,", true },
		{ "a", "fieldSelector=metadata.name%3Da", true },
		{ "a", "fieldSelector=spec.x%3Dy,metadata.name%3D%3Da", true },
		{ "a", "fieldSelector=metadata.name%3Db", false },
		{ "a", "fieldSelector=metadata.name%3D", false },
		{ "a", "fieldSelector=metadata.name!%3Db", false },
		{ "a", "fieldSelector=spec.x%3Dy", false }, /* as upstream: it names none */
		{ "", "fieldSelector=metadata.name%3Db", true },
		{ "a", "fieldSelector=b", true }, /* somebody else says why not */
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_params      params = parse(rows[i].query);
		struct vdi_http_status status = { 0 };

		if (vdi_params_validate_name(&params, vd_bytes_of(rows[i].name), &status) != rows[i].valid)
			fail_msg("%s", rows[i].query);
		assert_int_equal(status.code, rows[i].valid ? 0 : 400);
		assert_string_equal(
			status.message,
			rows[i].valid ? "" : "fieldSelector metadata.name doesn't match requested name");
		vdi_params_fini(&params);
	}
}

/* As long as was asked for, however long; what did not ask has 30 minutes to an hour, each another time. */
static void r630_how_long_a_watch_lasts(void **state)
{
	static const int64_t asked[] = { 1, 2, 1799, 3601, 86400, 31536000 };
	struct vd_env	    *env;
	bool		     seen[1800] = { false };
	size_t		     count = 0;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(asked); i++)
		assert_int_equal(vdi_params_watch_time(asked[i], env).ns, VD_SECONDS(asked[i]).ns);
	assert_true(vdi_params_watch_time(INT64_MAX, env).ns >= VD_SECONDS(INT64_C(1000000000)).ns);
	for (int i = 0; i < 20000; i++) {
		int64_t seconds = vdi_params_watch_time(i % 3 ? 0 : -i, env).ns / 1000000000;

		assert_in_range(seconds, 1800, 3599);
		count += !seen[seconds - 1800];
		seen[seconds - 1800] = true;
	}
	assert_true(count > 1700);
	vd_env_free(env);
}

static void r101_resource_versions_are_decimal(void **state)
{
	static const struct {
		const char *text;
		vd_rev	    revision;
	} good[] = { { "", VD_REVISION_UNSET },
		     { "0", 0 },
		     { "00", 0 },
		     { "01", 1 },
		     { "42", 42 },
		     { "18446744073709551615", INT64_MAX } };
	static const char *const bad[] = { "-1", "+1", "1.0", "abc", "18446744073709551616", " 1" };
	struct vdi_http_status	*status = vdi_alloc(sizeof *status);
	vd_rev			 revision;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(good); i++) {
		assert_true(vdi_params_revision(vd_bytes_of(good[i].text), &revision, status));
		assert_int_equal(revision, good[i].revision);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad); i++) {
		assert_false(vdi_params_revision(vd_bytes_of(bad[i]), &revision, status));
		assert_int_equal(status->code, 400);
	}
	assert_false(vdi_params_revision(vd_bytes_of("abc"), &revision, status));
	assert_string_equal(status->message, "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: "
					     "parsing \"abc\": invalid syntax");
	assert_false(vdi_params_revision(vd_bytes_of("18446744073709551616"), &revision, status));
	assert_string_equal(status->message, "resourceVersion: Invalid value: \"18446744073709551616\": "
					     "strconv.ParseUint: parsing \"18446744073709551616\": "
					     "value out of range");
	vdi_free(status);
}

static void r604_limits_are_int64(void **state)
{
	struct vdi_http_status *status = vdi_alloc(sizeof *status);
	int64_t			number;

	assert_true(vdi_params_int(vd_bytes_of(""), &number, status));
	assert_int_equal(number, 0);
	assert_true(vdi_params_int(vd_bytes_of("-5"), &number, status));
	assert_int_equal(number, -5);
	assert_true(vdi_params_int(vd_bytes_of("9223372036854775807"), &number, status));
	assert_false(vdi_params_int(vd_bytes_of("9223372036854775808"), &number, status));
	assert_false(vdi_params_int(vd_bytes_of("x"), &number, status));
	assert_string_equal(status->message, "strconv.ParseInt: parsing \"x\": invalid syntax");
	vdi_free(status);
}

/* rules */
static void r610_to_r613_writes_are_validated(void **state)
{
	static const struct row rows[] = {
		{ "dryRun=All&fieldValidation=Strict&fieldManager=me", NULL },
		{ "dryRun=Some", "PatchOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: "
				 "[\"Some\"]: supported values: \"All\"" },
		{ "force=true", "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be "
				"specified for non-apply patch" },
		{ "fieldManager=%01", "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid "
				      "value: should only contain printable characters" },
	};
	struct vdi_http_status *status = vdi_alloc(sizeof *status);

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_params params = parse(rows[i].query);

		assert_int_equal(vdi_params_validate_write(&params, "PatchOptions", false, status),
				 rows[i].message == NULL);
		if (rows[i].message)
			assert_string_equal(status->message, rows[i].message);
		vdi_params_fini(&params);
	}
	vdi_free(status);
}

static void h303_what_a_table_may_include(void **state)
{
	static const struct row rows[] = {
		{ "", NULL },
		{ "includeObject=None", NULL },
		{ "includeObject=Metadata", NULL },
		{ "includeObject=Object&timeoutSeconds=5", NULL },
		{ "includeObject=object",
		  "Invalid value: \"object\": supported values: \"Metadata\", \"None\", \"Object\"" },
		{ "includeObject=Nones",
		  "Invalid value: \"Nones\": supported values: \"Metadata\", \"None\", \"Object\"" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_params	params = parse(rows[i].query);
		struct vdi_http_status *status = calloc(1, sizeof *status);

		assert_int_equal(vdi_params_validate_include(&params, status), rows[i].message == NULL);
		assert_int_equal(status->code, rows[i].message ? 400 : 0);
		if (rows[i].message)
			assert_string_equal(status->message, rows[i].message);
		assert_int_equal(vdi_params_validate_query(&params, status), rows[i].message == NULL);
		free(status);
		vdi_params_fini(&params);
	}
}

static void h416_only_declared_fields_can_be_selected(void **state)
{
	static const struct {
		const char *query;
		bool	    valid;
	} rows[] = { { "fieldSelector=spec.nodeName%3Dx,metadata.name%21%3Dy,metadata.namespace%3Dz", true },
		     { "fieldSelector=spec.foo%3Dx", false } };
	struct vdi_http_status *status = vdi_alloc(sizeof *status);
	struct vdi_resources	resources;

	assert_status(vdi_resources_init(&resources), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_params params = parse(rows[i].query);

		assert_int_equal(
			vdi_field_support_check(vdi_resources_find(&resources, VD_BYTES_NONE,
								   vd_bytes_of("v1"), vd_bytes_of("pods")),
						params.field_selector, status),
			rows[i].valid);
		vdi_params_fini(&params);
	}
	assert_string_equal(status->message, "field label not supported: spec.foo");
	vdi_resources_fini(&resources);
	vdi_free(status);
}

static void r614_the_query_of_a_delete(void **state)
{
#define BOTH "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: "
	static const struct row rows[] = {
		{ "", NULL },
		{ "gracePeriodSeconds=0&propagationPolicy=Background", NULL },
		{ "gracePeriodSeconds=30&propagationPolicy=Foreground", NULL },
		{ "propagationPolicy=Orphan", NULL },
		{ "orphanDependents=true", NULL },
		{ "propagationPolicy=Later", BOTH "Unsupported value: \"Later\": supported values: "
						  "\"Foreground\", \"Background\", \"Orphan\", \"nil\"" },
		{ "propagationPolicy=Orphan&orphanDependents=false",
		  BOTH "Invalid value: orphanDependents and deletionPropagation cannot be both set" },
		{ "gracePeriodSeconds=soon", "" },
		{ "gracePeriodSeconds=1.5", "" },
	};
	struct vdi_http_status *status = calloc(1, sizeof *status);

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_params params = parse(rows[i].query);

		if (vdi_params_validate_delete(&params, status) != (rows[i].message == NULL))
			fail_msg("%s", rows[i].query);
		if (rows[i].message && rows[i].message[0])
			assert_string_equal(status->message, rows[i].message);
		else if (rows[i].message)
			assert_int_equal(status->code, 400);
		vdi_params_fini(&params);
	}
	free(status);
}

static void h104_durations(void **state)
{
	static const struct {
		const char *text;
		int64_t	    ns; /* -1: none */
	} rows[] = { { "1s", 1000000000 },
		     { "1.5s", 1500000000 },
		     { "1h1m1s", 3661000000000 },
		     { "20ms", 20000000 },
		     { "3us", 3000 },
		     { "0", 0 },
		     { "+2m", 120000000000 },
		     { "1", -1 },
		     { "s", -1 },
		     { "1x", -1 },
		     { "1s2", -1 },
		     { "-", -1 },
		     { ".s", -1 },
		     { "1sx", -1 } };
	struct vdi_http_status *status = calloc(1, sizeof *status);

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		vd_dur duration = { 0 };

		if (vdi_params_duration(vd_bytes_of(rows[i].text), &duration, status) != (rows[i].ns >= 0) ||
		    (rows[i].ns >= 0 && duration.ns != rows[i].ns))
			fail_msg("%s: %lld", rows[i].text, (long long) duration.ns);
	}
	free(status);
}

/* Every text parameter by its name, and the first of two of a name. */
static void h104_each_parameter_has_its_place(void **state)
{
	static const struct {
		const char *name;
		size_t	    offset;
	} texts[] = {
		{ "labelSelector", offsetof(struct vdi_params, label_selector) },
		{ "fieldSelector", offsetof(struct vdi_params, field_selector) },
		{ "shardSelector", offsetof(struct vdi_params, shard_selector) },
		{ "resourceVersion", offsetof(struct vdi_params, resource_version) },
		{ "resourceVersionMatch", offsetof(struct vdi_params, resource_version_match) },
		{ "continue", offsetof(struct vdi_params, continue_token) },
		{ "limit", offsetof(struct vdi_params, limit) },
		{ "timeoutSeconds", offsetof(struct vdi_params, timeout_seconds) },
		{ "timeout", offsetof(struct vdi_params, timeout) },
		{ "fieldManager", offsetof(struct vdi_params, field_manager) },
		{ "fieldValidation", offsetof(struct vdi_params, field_validation) },
		{ "includeObject", offsetof(struct vdi_params, include_object) },
		{ "propagationPolicy", offsetof(struct vdi_params, propagation_policy) },
		{ "gracePeriodSeconds", offsetof(struct vdi_params, grace_period_seconds) },
	};
	static const struct {
		const char *name;
		size_t	    offset;
	} tristates[] = {
		{ "force", offsetof(struct vdi_params, force) },
		{ "pretty", offsetof(struct vdi_params, pretty) },
		{ "sendInitialEvents", offsetof(struct vdi_params, send_initial_events) },
		{ "orphanDependents", offsetof(struct vdi_params, orphan_dependents) },
	};
	char query[400];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		struct vdi_params params;

		snprintf(query, sizeof query, "%s=a;b&%s=%%zz&%s=one&%s=two&watch=1", texts[i].name,
			 texts[i].name, texts[i].name, texts[i].name);
		params = parse(query);
		for (size_t k = 0; k < VDI_ARRAY_SIZE(texts); k++)
			check(*(struct vd_bytes *) (void *) ((char *) &params + texts[k].offset),
			      k == i ? "one" : "");
		assert_true(params.watch && !params.allow_bookmarks && !params.export_object &&
			    !params.has_dry_run);
		vdi_params_fini(&params);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(tristates); i++) {
		struct vdi_params params;

		snprintf(query, sizeof query, "%s=false&%s=true&limit=4", tristates[i].name,
			 tristates[i].name);
		params = parse(query);
		for (size_t k = 0; k < VDI_ARRAY_SIZE(tristates); k++)
			assert_int_equal(
				*(enum vd_tristate *) (void *) ((char *) &params + tristates[k].offset),
				k == i ? VD_FALSE : VD_UNSET);
		check(params.limit, "4");
		vdi_params_fini(&params);
		snprintf(query, sizeof query, "%s=1", tristates[i].name);
		params = parse(query);
		assert_int_equal(*(enum vd_tristate *) (void *) ((char *) &params + tristates[i].offset),
				 VD_TRUE);
		vdi_params_fini(&params);
	}
}

static void r602_the_first_of_two_counts(void **state)
{
	static const struct {
		const char *query;
		bool	    watch, bookmarks, exported;
	} rows[] = {
		{ "watch=1&watch=0", true, false, false },
		{ "watch=0&watch=1", false, false, false },
		{ "allowWatchBookmarks=1", false, true, false },
		{ "allowWatchBookmarks=0&allowWatchBookmarks=1", false, false, false },
		{ "allowWatchBookmarks=1&allowWatchBookmarks=0", false, true, false },
		{ "watch=1&allowWatchBookmarks=false", true, false, false },
		{ "allowWatchBookmarks=true&watch=true", true, true, false },
		{ "export=1", false, false, true },
		{ "export=0", false, false, false },
		{ "watch=fAlSe", false, false, false },
		{ "watch=fals", true, false, false },
		{ "watch=falsy", true, false, false },
		{ "watch=falsee", true, false, false },
		{ "watch=xalse", true, false, false },
		{ "watch=00", true, false, false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_params params = parse(rows[i].query);

		assert_int_equal(params.watch, rows[i].watch);
		assert_int_equal(params.allow_bookmarks, rows[i].bookmarks);
		assert_int_equal(params.export_object, rows[i].exported);
		vdi_params_fini(&params);
	}
}

static void without_memory_there_are_no_parameters(void **state)
{
	struct vdi_params params;

	(void) vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_params_parse(vd_bytes_of("watch=1"), &params), VD_NOMEM);
	(void) vdi_alloc_fail_nth(0, 0);
}

#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define DIGITS "9999999999"
#define MANY DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS

/* What is told of a value is told as it is, or its first bytes; what stands behind it in the query is not. */
static void texts_are_told_up_to_a_length(void **state)
{
	static const struct {
		const char *query, *message;
	} rows[] = {
		{ "resourceVersion=x&limit=5",
		  "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax" },
		{ "resourceVersion=x" HUNDRED,
		  "resourceVersion: Invalid value: \"x" TEN TEN TEN TEN TEN TEN TEN TEN		TEN
		  "012345678\": strconv.ParseUint: parsing \"x" TEN TEN TEN TEN TEN TEN TEN TEN TEN
		  "012345678\": invalid syntax" },
		{ "resourceVersion=18446744073709551616&limit=5",
		  "resourceVersion: Invalid value: \"18446744073709551616\": strconv.ParseUint: parsing "
		  "\"18446744073709551616\": value out of range" },
		{ "resourceVersion=9" MANY,
		  "resourceVersion: Invalid value: \"" MANY "\": strconv.ParseUint: parsing \"" MANY
		  "\": value out of range" },
		{ "limit=x&continue=1", "strconv.ParseInt: parsing \"x\": invalid syntax" },
		{ "limit=x" HUNDRED, "strconv.ParseInt: parsing \"x" TEN TEN TEN TEN TEN TEN TEN TEN TEN
				     "012345678\": invalid syntax" },
		{ "timeout=x&continue=1",
		  "invalid timeout specified in the request URL - time: invalid duration \"x\"" },
		{ "timeout=x" HUNDRED,
		  "invalid timeout specified in the request URL - time: invalid duration \"x" TEN TEN TEN TEN
			  TEN TEN TEN TEN TEN "012345678\"" },
		{ "includeObject=x&continue=1",
		  "Invalid value: \"x\": supported values: \"Metadata\", \"None\", \"Object\"" },
		{ "includeObject=x" HUNDRED,
		  "Invalid value: \"x" TEN TEN TEN TEN TEN TEN TEN TEN TEN
		  "012345678\": supported values: \"Metadata\", \"None\", \"Object\"" },
		{ "fieldSelector=x%3D1&continue=1", "field label not supported: x" },
	};
	static const struct vdi_resource resource = { .plural = "pods" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_params      params = parse(rows[i].query);
		struct vdi_http_status status = { 0 };
		int64_t		       number;
		vd_dur		       duration;
		vd_rev		       revision;

		assert_false(vdi_params_revision(params.resource_version, &revision, &status) &&
			     vdi_params_int(params.limit, &number, &status) &&
			     vdi_params_duration(params.timeout, &duration, &status) &&
			     vdi_params_validate_include(&params, &status) &&
			     vdi_field_support_check(&resource, params.field_selector, &status));
		assert_int_equal(status.code, 400);
		assert_string_equal(status.message, rows[i].message);
		vdi_params_fini(&params);
	}
}

static void r610_to_r613_borders_of_writes(void **state)
{
	static const struct {
		const char *query, *kind;
		bool	    is_apply;
		const char *message; /* NULL: valid */
	} rows[] = {
		{ "fieldValidation=Ignore", "CreateOptions", false, NULL },
		{ "fieldValidation=Warn", "CreateOptions", false, NULL },
		{ "fieldValidation=Strict", "CreateOptions", false, NULL },
		{ "fieldValidation=strict&limit=1", "CreateOptions", false,
		  "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: "
		  "\"strict\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"" },
		{ "fieldManager=%20a%7e", "CreateOptions", false, NULL },
		{ "fieldManager=a%1f", "CreateOptions", false,
		  "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: should only "
		  "contain printable characters" },
		{ "fieldManager=%7f", "CreateOptions", false,
		  "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: should only "
		  "contain printable characters" },
		{ "fieldManager=" HUNDRED TEN TEN "01234567", "CreateOptions", false, NULL },
		{ "fieldManager=" HUNDRED TEN TEN "012345678", "CreateOptions", false,
		  "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than "
		  "128 bytes" },
		{ "force=true", "PatchOptions", true, NULL },
		{ "force=true", "UpdateOptions", false, NULL },
		{ "force=false", "PatchOptions", false,
		  "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for "
		  "non-apply patch" },
		{ "dryRun=All&dryRun=All", "CreateOptions", false, NULL },
		{ "dryRun=All&dryRun=x&dryRun=y", "CreateOptions", false,
		  "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"x\"]: supported "
		  "values: \"All\"" },
		{ "dryRun=&limit=3", "CreateOptions", false,
		  "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"\"]: supported "
		  "values: \"All\"" },
		{ "dryRun=" HUNDRED, "CreateOptions", false,
		  "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"" TEN TEN TEN TEN
			  TEN TEN "\"]: supported values: \"All\"" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_params      params = parse(rows[i].query);
		struct vdi_http_status status = { 0 };

		assert_int_equal(vdi_params_validate_write(&params, rows[i].kind, rows[i].is_apply, &status),
				 rows[i].message == NULL);
		if (rows[i].message)
			assert_string_equal(status.message, rows[i].message);
		vdi_params_fini(&params);
	}
}

static void borders_of_durations_and_numbers(void **state)
{
	static const struct {
		const char *text;
		int64_t	    ns; /* -1: it is none */
	} durations[] = {
		{ "", 0 },
		{ "0", 0 },
		{ "+0", 0 },
		{ "-0", 0 },
		{ "-", -1 },
		{ "+", -1 },
		{ "1", -1 },
		{ "s", -1 },
		{ ".s", -1 },
		{ "1.", -1 },
		{ "1.s", 1000000000 },
		{ ".5s", 500000000 },
		{ "1ns", 1 },
		{ "2us", 2000 },
		{ "3ms", 3000000 },
		{ "4s", 4000000000 },
		{ "1m", 60000000000 },
		{ "2h", 7200000000000 },
		{ "1h1m1s", 3661000000000 },
		{ "1m.5s", 60500000000 },
		{ "-1s", 0 },
		{ "+1s", 1000000000 },
		{ "1x", -1 },
		{ "1sx", -1 },
		{ "1s1", -1 },
		{ "1 s", -1 },
		{ "999999999s", 999999999000000000 },
		{ "1000000000s", 0 },
		{ "1.25s", 1250000000 },
		{ "1mh", -1 },
		{ "9s", 9000000000 },
		{ "00s", 0 },
		{ "1s/", -1 },
		{ "1s:", -1 },
		{ "1s0s", 1000000000 },
		{ "1s9s", 10000000000 },
	};
	static const struct {
		const char *text;
		int64_t	    number;
		bool	    is_number;
	} numbers[] = {
		{ "", 0, true },
		{ "0", 0, true },
		{ "9", 9, true },
		{ "-9", -9, true },
		{ "-", 0, false },
		{ "/", 0, false },
		{ ":", 0, false },
		{ "1:", 0, false },
		{ "-x", 0, false },
		{ "--1", 0, false },
		{ "9223372036854775807", INT64_MAX, true },
		{ "9223372036854775808", 0, false },
		{ "-9223372036854775808", INT64_MIN, true },
		{ "-9223372036854775809", 0, false },
		{ "92233720368547758070", 0, false },
	};
	static const struct {
		const char *text;
		vd_rev	    revision; /* -2: it is none */
	} revisions[] = {
		{ "", VD_REVISION_UNSET },
		{ "0", 0 },
		{ "9", 9 },
		{ "10", 10 },
		{ "/", -2 },
		{ ":", -2 },
		{ "-1", -2 },
		{ "9223372036854775807", INT64_MAX },
		{ "9223372036854775808", INT64_MAX },
		{ "18446744073709551615", INT64_MAX },
		{ "18446744073709551616", -2 },
		{ "184467440737095516150", -2 },
	};
	struct vdi_http_status status;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(durations); i++) {
		vd_dur duration = { -7 };

		if (vdi_params_duration(vd_bytes_of(durations[i].text), &duration, &status) !=
			    (durations[i].ns >= 0) ||
		    (durations[i].ns >= 0 && duration.ns != durations[i].ns))
			fail_msg("%s: %lld", durations[i].text, (long long) duration.ns);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(numbers); i++) {
		int64_t number = -7;

		if (vdi_params_int(vd_bytes_of(numbers[i].text), &number, &status) != numbers[i].is_number ||
		    (numbers[i].is_number && number != numbers[i].number))
			fail_msg("%s: %lld", numbers[i].text, (long long) number);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(revisions); i++) {
		vd_rev revision = -7;

		if (vdi_params_revision(vd_bytes_of(revisions[i].text), &revision, &status) !=
			    (revisions[i].revision != -2) ||
		    (revisions[i].revision != -2 && revision != revisions[i].revision))
			fail_msg("%s: %lld", revisions[i].text, (long long) revision);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r602_booleans_are_true_unless_0_or_false),
		cmocka_unit_test(h104_values_are_decoded_and_unknown_ones_ignored),
		cmocka_unit_test(r607_list_options_are_validated_with_the_exact_texts),
		cmocka_unit_test(r606_a_plain_watch_becomes_a_watch_list),
		cmocka_unit_test(r606_r607_without_proof_of_progress_there_is_no_watch_list),
		cmocka_unit_test(r616_a_name_in_the_path_is_the_one_of_the_selector),
		cmocka_unit_test(r630_how_long_a_watch_lasts),
		cmocka_unit_test(r101_resource_versions_are_decimal),
		cmocka_unit_test(r604_limits_are_int64),
		cmocka_unit_test(r610_to_r613_writes_are_validated),
		cmocka_unit_test(h303_what_a_table_may_include),
		cmocka_unit_test(h416_only_declared_fields_can_be_selected),
		cmocka_unit_test(r614_the_query_of_a_delete),
		cmocka_unit_test(h104_durations),
		cmocka_unit_test(h104_each_parameter_has_its_place),
		cmocka_unit_test(r602_the_first_of_two_counts),
		cmocka_unit_test(without_memory_there_are_no_parameters),
		cmocka_unit_test(texts_are_told_up_to_a_length),
		cmocka_unit_test(r610_to_r613_borders_of_writes),
		cmocka_unit_test(borders_of_durations_and_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
