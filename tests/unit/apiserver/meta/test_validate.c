/* Unit tests of apiserver/meta/validate.c: names by the rule of each kind, and the metadata of all. The
 * sentences are a kube-apiserver's (1.36), taken down beside it. */
#include "vdtest.h"

#include "resources.h"
#include "validate.h"

#define SUBDOMAIN                                                                                            \
	"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "    \
	"and must start and end with an "                                                                    \
	"alphanumeric character (e.g. 'example.com', regex used for validation is "                          \
	"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define LABEL                                                                                                \
	"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "    \
	"start and end with an alphanumeric "                                                                \
	"character (e.g. 'my-name',  or '123-abc', regex used for validation is "                            \
	"'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define MAX(count) "must be no more than " #count " characters"
#define VALUE                                                                                                \
	"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and " \
	"must start and end with an "                                                                        \
	"alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " \
	"'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

struct row {
	/* with a size, its first letter is repeated in front of the rest until the size is reached */
	const char *name;
	size_t	    size; /* 0: as it is */
	const char *why[2];
};

static void check(enum vdi_name_rule rule, const struct row *row)
{
	char	    text[512];
	const char *why[VDI_NAME_ERRORS_MAX], *end = row->name + 1;
	size_t	    size = strlen(row->name), wanted = 0, count;

	if (row->size) {
		size = row->size;
		memset(text, row->name[0], size);
		memcpy(text + size - strlen(end), end, strlen(end));
	} else {
		memcpy(text, row->name, size);
	}
	while (wanted < 2 && row->why[wanted])
		wanted++;
	count = vdi_validate_name(rule, (struct vd_bytes) { text, size }, why);
	if (count != wanted)
		fail_msg("rule %d: %.*s: %zu errors, %s", (int) rule, (int) size, text, count,
			 count ? why[0] : "");
	for (size_t i = 0; i < count; i++)
		assert_string_equal(why[i], row->why[i]);
}

static void most_names_are_subdomains(void **state)
{
	static const struct row rows[] = {
		{ "a" },
		{ "0" },
		{ "ok-name" },
		{ "a.b" },
		{ "0.0" },
		{ "1a.b-c.d" },
		{ "a", 63 },
		{ "a", 64 },
		{ "a", 253 },
		{ "a.b", 66 },
		{ "a", 254, { MAX(253) } },
		{ "A", 254, { MAX(253), SUBDOMAIN } },
		{ "A", 0, { SUBDOMAIN } },
		{ "a_b", 0, { SUBDOMAIN } },
		{ "-a", 0, { SUBDOMAIN } },
		{ "a-", 0, { SUBDOMAIN } },
		{ "a.", 0, { SUBDOMAIN } },
		{ ".a", 0, { SUBDOMAIN } },
		{ "a..b", 0, { SUBDOMAIN } },
		{ "a.-b", 0, { SUBDOMAIN } },
		{ "a/b", 0, { SUBDOMAIN } },
		{ "a b", 0, { SUBDOMAIN } },
		{ "\xc3\xa4", 0, { SUBDOMAIN } },
		{ "..", 0, { SUBDOMAIN } },
		{ "system:x", 0, { SUBDOMAIN } },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(VDI_NAME_SUBDOMAIN, &rows[i]);
}

static void services_namespaces_and_stateful_sets_are_labels(void **state)
{
	static const struct row rows[] = {
		{ "a" },
		{ "0" },
		{ "1a" },
		{ "ok-name" },
		{ "a", 63 },
		{ "a", 64, { MAX(63) } },
		{ "a.b", 0, { "must not contain dots" } },
		{ "0.0", 0, { "must not contain dots" } },
		{ "a.b", 66, { MAX(63), "must not contain dots" } },
		{ "a-", 101, { MAX(63), LABEL } },
		{ "A", 0, { LABEL } },
		{ "a..b", 0, { LABEL } },
		{ "a.", 0, { LABEL } },
		{ "-a", 0, { LABEL } },
		{ "a_b", 0, { LABEL } },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(VDI_NAME_LABEL, &rows[i]);
}

static void the_other_kinds_have_rules_of_their_own(void **state)
{
	static const struct row cron_jobs[] = {
		{ "a", 52 },
		{ "a.b" },
		{ "a", 53, { MAX(52) } },
		{ "A", 0, { SUBDOMAIN } },
		{ "A", 60, { SUBDOMAIN, MAX(52) } },
		{ "a", 254, { MAX(253), MAX(52) } },
	};
	static const struct row events[] = {
		{ "A b:\n\"" },
		{ "a..b" },
		{ "-" },
		{ "\xc3\xa4" },
		{ "a", 253 },
		{ ".", 0, { "may not be '.'" } },
		{ "..", 0, { "may not be '..'" } },
		{ "a/b", 0, { "may not contain '/'" } },
		{ "a%b", 0, { "may not contain '%'" } },
		{ "a", 254, { MAX(253) } },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(cron_jobs); i++)
		check(VDI_NAME_CRON_JOB, &cron_jobs[i]);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(events); i++)
		check(VDI_NAME_PATH_SEGMENT, &events[i]);
}

/* Each kind of the discovery with a name that tells its rule from the others. */
static void every_kind_has_its_rule(void **state)
{
	static const struct {
		const char	  *plural;
		enum vdi_name_rule rule;
	} others[] = { { "services", VDI_NAME_LABEL },
		       { "namespaces", VDI_NAME_LABEL },
		       { "statefulsets", VDI_NAME_LABEL },
		       { "cronjobs", VDI_NAME_CRON_JOB },
		       { "events", VDI_NAME_PATH_SEGMENT } };
	size_t found = 0;

	for (size_t i = 0; i < vdi_resources_built_in_count; i++) {
		enum vdi_name_rule rule = VDI_NAME_SUBDOMAIN;

		for (size_t k = 0; k < VDI_ARRAY_SIZE(others); k++)
			if (strcmp(others[k].plural, vdi_resources_built_in[i].plural) == 0) {
				rule = others[k].rule;
				found++;
			}
		if (vdi_resources_built_in[i].name_rule != rule)
			fail_msg("%s", vdi_resources_built_in[i].plural);
	}
	assert_int_equal(found, VDI_ARRAY_SIZE(others));
}

#define OWNER(more) "{\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"n\",\"uid\":\"u\"" more "}"

static void metadata_is_checked(void **state)
{
	static const struct {
		enum vdi_name_rule rule;
		const char	  *object, *field_errors;
	} rows[] = {
		{ VDI_NAME_SUBDOMAIN, "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"orphan\"]}}", "" },
		{ VDI_NAME_SUBDOMAIN,
		  "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"foregroundDeletion\"]}}", "" },
		{ VDI_NAME_SUBDOMAIN,
		  "{\"metadata\":{\"name\":\"a\",\"labels\":{\"a.b/c\":\"\"},\"annotations\":{\"x\":\"any "
		  "\\n\"},\"finalizers\":[\"a/b\"]}}",
		  "" },
		{ VDI_NAME_SUBDOMAIN, "{\"metadata\":{}}",
		  "metadata.name: Required value: name or generateName is required" },
		{ VDI_NAME_SUBDOMAIN, "{\"metadata\":{\"name\":\"g-x\",\"generateName\":\"g-\"}}", "" },
		{ VDI_NAME_SUBDOMAIN, "{\"metadata\":{\"name\":\"g.x\",\"generateName\":\"g.\"}}",
		  "metadata.generateName: Invalid value: \"g.\": " SUBDOMAIN },
		{ VDI_NAME_SUBDOMAIN, "{\"metadata\":{\"name\":\"-x\",\"generateName\":\"-\"}}",
		  "[metadata.generateName: Invalid value: \"-\": " SUBDOMAIN
		  ", metadata.name: Invalid value: \"-x\": " SUBDOMAIN "]" },
		{ VDI_NAME_LABEL, "{\"metadata\":{\"name\":\"g.x\",\"generateName\":\"g.\"}}",
		  "[metadata.generateName: Invalid value: \"g.\": " LABEL
		  ", metadata.name: Invalid value: \"g.x\": must not contain dots]" },
		{ VDI_NAME_PATH_SEGMENT, "{\"metadata\":{\"name\":\".x\",\"generateName\":\".\"}}", "" },
		{ VDI_NAME_PATH_SEGMENT, "{\"metadata\":{\"name\":\"x\",\"generateName\":\"a/\"}}",
		  "metadata.generateName: Invalid value: \"a/\": may not contain '/'" },
		{ VDI_NAME_SUBDOMAIN, "{\"metadata\":{\"name\":\"a\",\"labels\":{\"k\":\"-\"}}}",
		  "metadata.labels: Invalid value: \"-\": " VALUE },
		{ VDI_NAME_SUBDOMAIN,
		  "{\"metadata\":{\"name\":\"a\",\"labels\":{\"k\":"
		  "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-\"}}}",
		  "[metadata.labels: Invalid value: "
		  "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-\": must be no more "
		  "than 63 bytes, "
		  "metadata.labels: Invalid value: "
		  "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-\": " VALUE "]" },
		{ VDI_NAME_SUBDOMAIN,
		  "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"kind\":\"K\",\"name\":\"n\",\"uid\":"
		  "\"u\"}]}}",
		  "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty" },
		{ VDI_NAME_SUBDOMAIN,
		  "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"orphan\",\"foregroundDeletion\"]}}",
		  "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan "
		  "and foregroundDeletion cannot be both set" },
		{ VDI_NAME_SUBDOMAIN, "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"a/b\",\"-x\"]}}",
		  "metadata.finalizers: Invalid value: \"-x\": name part must consist of alphanumeric "
		  "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
		  "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
		  "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')" },
		{ VDI_NAME_SUBDOMAIN, "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"a/b\",5]}}",
		  "metadata.finalizers: Invalid value: \"5\": must be a string" },
		{ VDI_NAME_SUBDOMAIN, "{\"metadata\":{\"name\":\"a\",\"finalizers\":\"a/b\"}}",
		  "metadata.finalizers: Invalid value: must be a list of strings" },
		{ VDI_NAME_SUBDOMAIN,
		  "{\"metadata\":{\"name\":\"a\",\"finalizers\":null,\"ownerReferences\":null,\"labels\":"
		  "null}}",
		  "" },
		{ VDI_NAME_SUBDOMAIN, "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":{}}}",
		  "metadata.ownerReferences: Invalid value: must be a list" },
		{ VDI_NAME_SUBDOMAIN, "{\"metadata\":{\"name\":\"a\",\"labels\":{\"a\":\"b\",\"c\":5}}}",
		  "metadata.labels: Invalid value: must be a map of strings" },
		{ VDI_NAME_SUBDOMAIN, "{\"metadata\":{\"name\":\"a\",\"annotations\":[]}}",
		  "metadata.annotations: Invalid value: must be a map of strings" },
		{ VDI_NAME_SUBDOMAIN,
		  "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":[" OWNER(
			  ",\"controller\":true") "," OWNER(",\"controller\":false") "," OWNER("") "]}}",
		  "" },
		{ VDI_NAME_SUBDOMAIN,
		  "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":[" OWNER(
			  ",\"controller\":true") "," OWNER(",\"controller\":true") "]}}",
		  "metadata.ownerReferences: Invalid value: "
		  "[{\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"n\",\"uid\":\"u\",\"controller\":true},{"
		  "\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"n\",\"uid\":\"u\",\"controller\":true}]: "
		  "Only one reference can have Controller set to true" },
		{ VDI_NAME_SUBDOMAIN,
		  "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":[" OWNER("") ",{}]}}",
		  "[metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty, "
		  "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty, "
		  "metadata.ownerReferences.name: Invalid value: \"\": must not be empty, "
		  "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty]" },
		{ VDI_NAME_SUBDOMAIN,
		  "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
		  "\"Event\",\"name\":\"n\",\"uid\":\"u\"}]}}",
		  "metadata.ownerReferences: Invalid value: "
		  "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"n\",\"uid\":\"u\"}: /v1, Kind=Event "
		  "is disallowed from being an owner" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree		tree = VDI_TREE_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_node	       *root;
		struct vd_bytes		got = VD_BYTES_NONE;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].object), &root, NULL), VD_OK);
		vdi_validate_metadata(&tree, root, rows[i].rule, &field_errors);
		if (field_errors.count)
			got = vdi_field_errors_message(&field_errors);
		if (!vd_bytes_equal(got, vd_bytes_of(rows[i].field_errors)))
			fail_msg("%s: %.*s", rows[i].object, (int) got.size,
				 got.size ? (const char *) got.data : "");
		vdi_field_errors_fini(&field_errors);
		vdi_tree_fini(&tree);
	}
}

/* Keys of annotations are qualified names, and all of them together have a bound. */
static void annotations_are_checked(void **state)
{
	static const struct {
		const char *key;
		int	    size;  /* of the value */
		const char *fault; /* NULL: fine */
	} rows[] = {
		{ "a.b/c", 0, NULL },
		{ "-x", 0, "metadata.annotations: Invalid value: \"-x\": " },
		{ "a/b/c", 0, "metadata.annotations: Invalid value: \"a/b/c\": " },
		{ "k", 262143, NULL },
		{ "k", 262144, "metadata.annotations: Too long: may not be more than 262144 bytes" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree		tree = VDI_TREE_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_out		text = VDI_OUT_INIT;
		struct vdi_node	       *root;

		vdi_out_printf(&text, "{\"metadata\":{\"name\":\"a\",\"annotations\":{\"%s\":\"",
			       rows[i].key);
		for (int n = 0; n < rows[i].size; n++)
			vdi_out_raw(&text, "x");
		vdi_out_raw(&text, "\"}}}");
		assert_status(vdi_tree_parse(&tree, vdi_out_slice(&text), &root, NULL), VD_OK);
		vdi_validate_metadata(&tree, root, VDI_NAME_SUBDOMAIN, &field_errors);
		assert_int_equal(field_errors.count > 0, rows[i].fault != NULL);
		if (rows[i].fault)
			assert_memory_equal(vdi_field_errors_message(&field_errors).data, rows[i].fault,
					    strlen(rows[i].fault));
		vdi_field_errors_fini(&field_errors);
		vdi_out_fini(&text);
		vdi_tree_fini(&tree);
	}
}

/* Lengths, and characters at both ends and within. */
static void names_at_their_borders(void **state)
{
	static const struct {
		const char *(*check)(struct vd_bytes text);
		size_t longest;
	} lengths[] = { { vdi_validate_subdomain, 253 },
			{ vdi_validate_dns_label, 63 },
			{ vdi_validate_label_value, 63 },
			{ vdi_validate_qualified_name, 63 } };
	static const struct {
		const char *(*check)(struct vd_bytes text);
		const char *text;
		bool	    is_fine;
	} rows[] = {
		{ vdi_validate_subdomain, "a.b-c.0", true },
		{ vdi_validate_subdomain, "a..b", false },
		{ vdi_validate_subdomain, ".a", false },
		{ vdi_validate_subdomain, "a.", false },
		{ vdi_validate_subdomain, "-a", false },
		{ vdi_validate_subdomain, "a-", false },
		{ vdi_validate_subdomain, "a.-b", false },
		{ vdi_validate_subdomain, "a-.b", false },
		{ vdi_validate_subdomain, "A", false },
		{ vdi_validate_subdomain, "a_b", false },
		{ vdi_validate_subdomain, "", false },
		{ vdi_validate_subdomain, "az09", true },
		{ vdi_validate_subdomain, "a/b", false },
		{ vdi_validate_subdomain, "a:b", false },
		{ vdi_validate_subdomain, "a`b", false },
		{ vdi_validate_subdomain, "a{b", false },
		{ vdi_validate_dns_label, "a-0", true },
		{ vdi_validate_dns_label, "a.b", false },
		{ vdi_validate_dns_label, "-", false },
		{ vdi_validate_dns_label, "", false },
		{ vdi_validate_dns_label, "a-", false },
		{ vdi_validate_dns_label, "-a", false },
		{ vdi_validate_dns_label, "aB", false },
		{ vdi_validate_dns_label, "a", true },
		{ vdi_validate_label_value, "", true },
		{ vdi_validate_label_value, "A_b.c-0", true },
		{ vdi_validate_label_value, "_a", false },
		{ vdi_validate_label_value, "a_", false },
		{ vdi_validate_label_value, "a b", false },
		{ vdi_validate_label_value, "-", false },
		{ vdi_validate_label_value, ".", false },
		{ vdi_validate_label_value, "Z", true },
		{ vdi_validate_qualified_name, "a", true },
		{ vdi_validate_qualified_name, "", false },
		{ vdi_validate_qualified_name, "a/b", true },
		{ vdi_validate_qualified_name, "/b", false },
		{ vdi_validate_qualified_name, "a/", false },
		{ vdi_validate_qualified_name, "a/b/c", false },
		{ vdi_validate_qualified_name, "A/b", false },
		{ vdi_validate_qualified_name, "a.b/C_d", true },
		{ vdi_validate_path_segment, "a%b", false },
		{ vdi_validate_path_segment, "a/b", false },
		{ vdi_validate_path_segment, ".", false },
		{ vdi_validate_path_segment, "..", false },
		{ vdi_validate_path_segment, "...", true },
		{ vdi_validate_path_segment, ".a", true },
		{ vdi_validate_path_segment, "A b", true },
		{ vdi_validate_finalizer, "kubernetes", true },
		{ vdi_validate_finalizer, "a/b", true },
		{ vdi_validate_finalizer, "nobody", false },
		{ vdi_validate_finalizer, "a/", false },
	};
	char text[300];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(lengths); i++)
		for (size_t size = 1; size < sizeof text; size++) {
			memset(text, 'a', sizeof text);
			assert_int_equal(lengths[i].check((struct vd_bytes) { text, size }) == NULL,
					 size <= lengths[i].longest);
		}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		if ((rows[i].check(vd_bytes_of(rows[i].text)) == NULL) != rows[i].is_fine)
			fail_msg("%zu: %s", i, rows[i].text);
}

/* The value of a label that the server sets itself, as long as it may be. */
static void a_label_of_a_value_has_a_longest(void **state)
{
	char text[70];

	memset(text, 'a', sizeof text);
	for (size_t size = 0; size <= 65; size++) {
		struct vdi_field_errors field_errors = { 0 };

		vdi_validate_label_of(&field_errors, "f", (struct vd_bytes) { text, size });
		assert_int_equal(field_errors.count, size > 63);
		vdi_field_errors_fini(&field_errors);
	}
	for (int is_long = 0; is_long < 2; is_long++) {
		struct vdi_field_errors field_errors = { 0 };

		text[0] = '-';
		vdi_validate_label_of(&field_errors, "f", (struct vd_bytes) { text, is_long ? 64 : 63 });
		assert_int_equal(field_errors.count, 1 + is_long);
		vdi_field_errors_fini(&field_errors);
	}
}

static void errors_of_metadata_have_an_order(void **state)
{
	static const char	 object[] = "{\"metadata\":{\"name\":\"A_\",\"labels\":{\"l/"
					    "\":\"x\",\"k\":\"-\"},\"annotations\":{\"a/\":\"\"},"
					    "\"ownerReferences\":[{}],\"finalizers\":[\"f/\"]}}";
	static const char *const places[] = { "metadata.name: ", "metadata.labels: ",
					      "metadata.annotations: ", "metadata.ownerReferences",
					      "metadata.finalizers" };
	struct vdi_tree		 tree = VDI_TREE_INIT;
	struct vdi_field_errors	 field_errors = { 0 };
	struct vdi_node		*root;
	struct vd_bytes		 message;
	const char		*last = NULL;

	assert_status(vdi_tree_parse(&tree, vd_bytes_of(object), &root, NULL), VD_OK);
	vdi_validate_metadata(&tree, root, 0, &field_errors);
	message = vdi_field_errors_message(&field_errors);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(places); i++) {
		const char *at = memmem(message.data, message.size, places[i], strlen(places[i]));

		if (at == NULL || at < last)
			fail_msg("%s: %.*s", places[i], 300,
				 (const char *) message.data + message.size - 300);
		last = at;
	}
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
}

/* A prefix that ends with '-' is judged by its own characters, whatever was judged before. */
static void prefixes_are_judged_by_their_own_characters(void **state)
{
	static const struct {
		const char *prefix;
		bool	    is_fine;
	} rows[] = { { "abcdef-", true },  { "abCdef-", false }, { "abcdef-", true }, { "a_cdef-", false },
		     { "-bcdef-", false }, { "abcdef-", true },	 { "abcde--", true }, { "a.cdef-", true } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree		tree = VDI_TREE_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_node	       *root;
		char			object[100];

		(void) snprintf(object, sizeof object,
				"{\"metadata\":{\"name\":\"a\",\"generateName\":\"%s\"}}", rows[i].prefix);
		assert_status(vdi_tree_parse(&tree, vd_bytes_of(object), &root, NULL), VD_OK);
		vdi_validate_metadata(&tree, root, VDI_NAME_SUBDOMAIN, &field_errors);
		if (field_errors.count != !rows[i].is_fine)
			fail_msg("%s: %.*s", rows[i].prefix,
				 (int) vdi_field_errors_message(&field_errors).size,
				 (const char *) vdi_field_errors_message(&field_errors).data);
		vdi_field_errors_fini(&field_errors);
		vdi_tree_fini(&tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefixes_are_judged_by_their_own_characters),
		cmocka_unit_test(a_label_of_a_value_has_a_longest),
		cmocka_unit_test(errors_of_metadata_have_an_order),
		cmocka_unit_test(names_at_their_borders),
		cmocka_unit_test(most_names_are_subdomains),
		cmocka_unit_test(services_namespaces_and_stateful_sets_are_labels),
		cmocka_unit_test(the_other_kinds_have_rules_of_their_own),
		cmocka_unit_test(every_kind_has_its_rule),
		cmocka_unit_test(metadata_is_checked),
		cmocka_unit_test(annotations_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
