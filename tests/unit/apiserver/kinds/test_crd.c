/* CustomResourceDefinitions: what a write makes of them, what they ask for, their status; and the version of
 * stored objects. */
#include "crd.h"
#include "crd_text.h"
#include "stored_version.h"
#include "vdtest.h"

static void each_served_version_is_a_resource(void **state)
{
	struct vdi_crd	crd;
	struct vd_error error;

	assert_status(vdi_crd_read(vd_bytes_of(CRD(TWO)), "/registry/", &crd, &error), VD_OK);
	assert_int_equal(crd.resources.count, 2);
	assert_string_equal(crd.resources.items[0]->version, "v1"); /* the better one first */
	assert_string_equal(crd.resources.items[1]->version, "v1beta1");
	assert_ptr_equal(crd.stored, crd.resources.items[0]);
	assert_string_equal(crd.stored->key_prefix, "/registry/example.com/widgets/");
	assert_string_equal(crd.resources.items[1]->stored_api_version, "example.com/v1");
	assert_string_equal(crd.resources.items[1]->api_version, "example.com/v1beta1");
	assert_int_equal(crd.field_count, 2);
	assert_int_equal(crd.resources.items[1]->field_count, 1);
	assert_int_equal(crd.stored->column_count, 2);
	assert_int_equal(crd.resources.items[1]->column_count, 2);
	assert_string_equal(crd.stored->columns[0].name, "Name");
	assert_string_equal(crd.stored->columns[1].name, "A");
	assert_string_equal(crd.stored->columns[1].type, "integer");
	assert_string_equal(crd.stored->columns[1].path, ".spec.a");
	assert_int_equal(crd.stored->columns[1].cell, VDI_CELL_TYPED);
	assert_string_equal(crd.fields[0].name, "spec.a");
	assert_string_equal(crd.fields[1].json_path, ".spec.b");
	assert_string_equal(crd.stored->scale_status_path, ".status.r");
	assert_string_equal(crd.stored->scale_selector_path, "");
	assert_string_equal(crd.stored->short_names[0], "wd");
	assert_true(crd.stored->has_generation && crd.stored->is_custom && !crd.stored->is_terminating);
	assert_int_equal(crd.stored->columns[1].priority, 1);
	assert_string_equal(crd.resources.items[1]->columns[1].name, "Age");
	assert_true(crd.stored->namespaced && crd.resources.items[1]->namespaced);
	assert_true(crd.stored->has_status && crd.stored->has_scale && !crd.resources.items[1]->has_status);
	assert_string_equal(crd.stored->scale_spec_path, ".spec.r");
	assert_non_null(crd.stored->schema);
	assert_int_equal(crd.generation, 3);
	assert_string_equal(crd.uid, "u1");
	assert_false(crd.is_terminating || crd.is_kept || crd.was_accepted);
	vdi_crd_fini(&crd);
}

static void what_cannot_be_served_is_said(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"spec\":{\"conversion\":{\"strategy\":\"Webhook\"}}}", "a webhook" },
		{ CRD("{\"name\":\"v1\",\"served\":true,\"storage\":false," ANYTHING "}"),
		  "spec.versions: no version has storage: true" },
		{ CRD("{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{"
		      "\"type\":\"array\"}}}"),
		  "the schema of v1 is not structural" },
		{ CRD("{\"name\":\"v1\",\"served\":true,\"storage\":true," ANYTHING
		      ",\"selectableFields\":[{\"jsonPath\":\"a\"}]}"),
		  "spec.versions: a selectable field has an invalid jsonPath" },
		{ "{\"spec\":{\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true}]}}",
		  "spec.group, a version's name or a member of spec.names is empty" },
		{ "[]", "no version" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_crd	crd;
		struct vd_error error = { 0 };

		assert_status(vdi_crd_read(vd_bytes_of(rows[i][0]), "/registry/", &crd, &error), VD_INVALID);
		assert_non_null(strstr(error.message, rows[i][1]));
	}
}

static char *texted(const struct vdi_node *root)
{
	struct vdi_out out = VDI_OUT_INIT;
	char	      *text;

	vdi_tree_write(&out, root);
	text = malloc(out.size + 1);
	assert_non_null(text);
	memcpy(text, out.data, out.size);
	text[out.size] = 0;
	vdi_out_fini(&out);
	return text;
}

static void a_status_follows_what_is_served(void **state)
{
	struct vdi_tree	     tree = VDI_TREE_INIT;
	struct vdi_node	    *root;
	struct vdi_crd_state accepted = { .is_served = true },
			     refused = { .conflict = "KindConflict",
					 .conflict_message = "\"Widget\" is already in use" };
	vd_wall now = { (int64_t) 1800000000 * 1000000000 }, later = { (int64_t) 1800000100 * 1000000000 };
	bool	is_changed;
	char   *text;

	assert_status(vdi_tree_parse(&tree, vd_bytes_of(CRD(TWO)), &root, NULL), VD_OK);
	assert_status(vdi_crd_prepare(&tree, root, NULL), VD_OK);
	assert_status(vdi_crd_set_status(&tree, root, &refused, now, &is_changed), VD_OK);
	assert_true(is_changed);
	assert_status(vdi_crd_set_status(&tree, root, &refused, later, &is_changed), VD_OK);
	assert_false(is_changed);
	assert_status(vdi_crd_set_status(&tree, root, &accepted, later, &is_changed), VD_OK);
	assert_true(is_changed);
	assert_status(vdi_crd_set_status(&tree, root, &accepted, now, &is_changed), VD_OK);
	assert_false(is_changed);
	text = texted(vdi_tree_get(&tree, root, vd_bytes_of("status")));
	assert_non_null(strstr(
		text, "{\"lastTransitionTime\":\"2027-01-15T08:01:40Z\",\"message\":\"the initial names have "
		      "been accepted\","
		      "\"reason\":\"InitialNamesAccepted\",\"status\":\"True\",\"type\":\"Established\"}"));
	assert_non_null(strstr(text, "\"acceptedNames\":{\"plural\":\"widgets\""));
	assert_non_null(strstr(text, "\"storedVersions\":[\"v1\"]"));
	free(text);
	assert_status(vdi_crd_set_terminating(&tree, root, now), VD_OK);
	assert_status(vdi_crd_set_terminating(&tree, root, now), VD_OK);
	text = texted(root);
	assert_non_null(strstr(text, "\"finalizers\":[\"" VDI_CRD_FINALIZER "\"]"));
	free(text);
	vdi_crd_remove_finalizer(&tree, root);
	assert_null(vdi_tree_find(&tree, root, "metadata.finalizers"));
	vdi_tree_fini(&tree);
}

static void a_stored_version_is_exchanged(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"apiVersion\":\"example.com/v1\",\"kind\":\"W\"}",
		  "{\"apiVersion\":\"example.com/v2\",\"kind\":\"W\"}" },
		{ "{\"metadata\":{\"apiVersion\":\"x\",\"a\":[{\"b\":\"}\\\"\"},1]},\"n\":-1.5e3,\"t\":true,"
		  "\"apiVersion\" : \"example.com/v1\"}",
		  "{\"metadata\":{\"apiVersion\":\"x\",\"a\":[{\"b\":\"}\\\"\"},1]},\"n\":-1.5e3,\"t\":true,"
		  "\"apiVersion\" : \"example.com/v2\"}" },
		{ "{\"kind\":\"W\"}", "{\"kind\":\"W\"}" },
		{ "{}", "{}" },
		{ "{\"apiVersion\":7}", "{\"apiVersion\":7}" },
		{ "{\"a\":\"apiVersion\",\"b\":{}}", "{\"a\":\"apiVersion\",\"b\":{}}" },
	};
	const struct vdi_resource resource = { .group = "example.com",
					       .version = "v2",
					       .api_version = "example.com/v2" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_out out = VDI_OUT_INIT;

		vdi_version_write(&out, &resource, vd_bytes_of(rows[i][0]));
		assert_int_equal(out.size, strlen(rows[i][1]));
		assert_memory_equal(out.data, rows[i][1], out.size);
		vdi_out_fini(&out);
	}
}

static void r612_a_definition_has_its_members_only(void **state)
{
	static const struct {
		const char *definition;
		const char *unknown; /* or NULL */
		const char *result;  /* what is wrong, or what is left; NULL: all of it */
		vd_status   status;
	} rows[] = {
		{ CRD(TWO), NULL, NULL, VD_OK },
		{ "{\"spec\":{\"nosuch\":1,\"scope\":\"x\"}}", "unknown field \"spec.nosuch\"",
		  "{\"spec\":{\"scope\":\"x\"}}", VD_OK },
		{ "{\"nosuch\":1,\"spec\":{\"names\":{\"nosuch\":[]}}}",
		  "unknown field \"nosuch\", unknown field \"spec.names.nosuch\"",
		  "{\"spec\":{\"names\":{}}}", VD_OK },
		{ "{\"spec\":{\"versions\":[null,{\"nosuch\":1,\"schema\":{\"nosuch\":2,\"openAPIV3Schema\":{"
		  "\"any\":1}}}]}}",
		  "unknown field \"spec.versions[1].nosuch\", unknown field "
		  "\"spec.versions[1].schema.nosuch\"",
		  "{\"spec\":{\"versions\":[null,{\"schema\":{\"openAPIV3Schema\":{\"any\":1}}}]}}", VD_OK },
		{ "{\"spec\":{\"versions\":[{\"subresources\":{\"status\":{\"a\":1}}}]}}",
		  "unknown field \"spec.versions[0].subresources.status.a\"",
		  "{\"spec\":{\"versions\":[{\"subresources\":{\"status\":{}}}]}}", VD_OK },
		{ "{\"metadata\":{\"nosuch\":1,\"managedFields\":[{\"fieldsV1\":{\"f:x\":{}}}]}}",
		  "unknown field \"metadata.nosuch\"",
		  "{\"metadata\":{\"managedFields\":[{\"fieldsV1\":{\"f:x\":{}}}]}}", VD_OK },
		{ "{\"metadata\":{\"managedFields\":[{\"fieldsV1\":\"x\"}]}}", NULL, NULL, VD_OK },
		/* null is nothing, of every type */
		{ "{\"metadata\":{\"creationTimestamp\":null,\"labels\":{\"a\":null}},\"spec\":{\"versions\":"
		  "null,\"names\":null,\"preserveUnknownFields\":null},\"status\":null}",
		  NULL, "{\"metadata\":{\"labels\":{\"a\":null}},\"spec\":{}}", VD_OK },
		/* and so is zero where Go's encoder leaves it out, but not elsewhere */
		{ "{\"spec\":{\"preserveUnknownFields\":false,\"names\":{\"shortNames\":[],\"categories\":[],"
		  "\"singular\":\"\",\"plural\":\"\"},\"versions\":[{\"served\":false,\"deprecated\":false,"
		  "\"deprecationWarning\":\"\",\"selectableFields\":[],\"additionalPrinterColumns\":[{"
		  "\"priority\":0,\"format\":\"\",\"description\":\"\",\"name\":\"\"}]},"
		  "{\"deprecated\":true,\"additionalPrinterColumns\":[]}]},\"status\":{\"conditions\":[]}}",
		  NULL,
		  "{\"spec\":{\"names\":{\"plural\":\"\"},\"versions\":[{\"served\":false,"
		  "\"deprecationWarning\":\"\",\"additionalPrinterColumns\":[{\"name\":\"\"}]},"
		  "{\"deprecated\":true}]},\"status\":{\"conditions\":[]}}",
		  VD_OK },
		{ "{\"spec\":{\"conversion\":{\"strategy\":\"Webhook\",\"webhook\":{\"clientConfig\":{"
		  "\"url\":\"u\",\"service\":{\"namespace\":\"n\",\"name\":\"s\",\"path\":\"/\","
		  "\"port\":443},\"caBundle\":\"eA==\"},\"conversionReviewVersions\":[\"v1\"]}}}}",
		  NULL, NULL, VD_OK },
		{ "{\"status\":{\"conditions\":[{\"type\":\"a\",\"status\":\"True\",\"lastTransitionTime\":"
		  "\"2026-11-22T00:00:00Z\",\"reason\":\"r\",\"message\":\"m\","
		  "\"observedGeneration\":-9223372036854775807}],\"observedGeneration\":1,\"storedVersions\":"
		  "[\"v1\"],\"acceptedNames\":{\"plural\":\"x\",\"kind\":\"X\"}}}",
		  NULL, NULL, VD_OK },
		{ "{\"spec\":{\"names\":{\"kind\":\"\",\"listKind\":\"\"},\"versions\":[{\"name\":\"\","
		  "\"storage\":false,\"additionalPrinterColumns\":[{\"type\":\"\",\"priority\":2147483647,"
		  "\"jsonPath\":\"\"},{\"priority\":-2147483648}],\"selectableFields\":[{\"jsonPath\":\"\"}],"
		  "\"subresources\":{\"scale\":{\"labelSelectorPath\":\"\"}}}]},\"metadata\":{"
		  "\"generation\":9223372036854775807}}",
		  NULL,
		  "{\"spec\":{\"names\":{\"kind\":\"\"},\"versions\":[{\"name\":\"\","
		  "\"storage\":false,\"additionalPrinterColumns\":[{\"type\":\"\",\"priority\":2147483647,"
		  "\"jsonPath\":\"\"},{\"priority\":-2147483648}],\"selectableFields\":[{\"jsonPath\":\"\"}],"
		  "\"subresources\":{\"scale\":{\"labelSelectorPath\":\"\"}}}]},\"metadata\":{"
		  "\"generation\":9223372036854775807}}",
		  VD_OK },
		{ "{\"spec\":{\"versions\":[{\"additionalPrinterColumns\":[{\"priority\":-2147483649}]}]}}",
		  NULL, "is not a whole number, or out of range", VD_BAD_REQUEST },
		{ "{\"metadata\":{\"generation\":1.5}}", NULL,
		  "metadata.generation: is not a whole number, or out of range", VD_BAD_REQUEST },
		{ "{\"metadata\":{\"generation\":9223372036854775808}}", NULL,
		  "metadata.generation: is not a whole number, or out of range", VD_BAD_REQUEST },
		{ "{\"metadata\":{\"labels\":{\"a\":\"x\",\"b\":null,\"c\":1}}}", NULL,
		  "metadata.labels.c: is not a string", VD_BAD_REQUEST },
		{ "{\"spec\":{\"names\":{\"shortNames\":[\"a\",1]}}}", NULL,
		  "spec.names.shortNames[1]: is not a string", VD_BAD_REQUEST },
		{ "{\"metadata\":{\"labels\":[]}}", NULL, "metadata.labels: is not an object",
		  VD_BAD_REQUEST },
		{ "{\"metadata\":{\"creationTimestamp\":1}}", NULL, "is not a time (RFC 3339)",
		  VD_BAD_REQUEST },
		{ "[]", NULL, ": is not an object", VD_BAD_REQUEST },
		{ "{\"spec\":\"x\"}", NULL, "spec: is not an object", VD_BAD_REQUEST },
		{ "{\"spec\":{\"versions\":\"x\"}}", NULL, "spec.versions: is not a list", VD_BAD_REQUEST },
		{ "{\"spec\":{\"versions\":[{},{\"served\":\"true\"}]}}", NULL,
		  "spec.versions[1].served: is neither true nor false", VD_BAD_REQUEST },
		{ "{\"spec\":{\"versions\":[{\"schema\":{\"openAPIV3Schema\":[]}}]}}", NULL,
		  "spec.versions[0].schema.openAPIV3Schema: is not an object", VD_BAD_REQUEST },
		{ "{\"spec\":{\"versions\":[{\"additionalPrinterColumns\":[{\"priority\":\"1\"}]}]}}", NULL,
		  "priority: is not a number", VD_BAD_REQUEST },
		{ "{\"spec\":{\"versions\":[{\"additionalPrinterColumns\":[{\"priority\":2147483648}]}]}}",
		  NULL, "is not a whole number, or out of range", VD_BAD_REQUEST },
		{ "{\"spec\":{\"names\":{\"shortNames\":[1]}}}", NULL,
		  "spec.names.shortNames[0]: is not a string", VD_BAD_REQUEST },
		{ "{\"status\":{\"storedVersions\":\"x\"}}", NULL, "status.storedVersions: is not a list",
		  VD_BAD_REQUEST },
		{ "{\"status\":{\"conditions\":\"x\"}}", NULL, "status.conditions: is not a list",
		  VD_BAD_REQUEST },
		{ "{\"status\":{\"conditions\":[{\"lastTransitionTime\":\"now\"}]}}", NULL,
		  "status.conditions[0].lastTransitionTime: is not a time (RFC 3339)", VD_BAD_REQUEST },
		{ "{\"metadata\":{\"labels\":{\"a\":1}}}", NULL, "metadata.labels.a: is not a string",
		  VD_BAD_REQUEST },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_unknown_fields unknown = { .warnings = VDI_OUT_INIT, .refusal = VDI_OUT_INIT };
		struct vdi_tree		  tree = VDI_TREE_INIT;
		struct vd_error		  error = { 0 };
		struct vdi_node		 *root;
		char			 *text;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].definition), &root, NULL), VD_OK);
		assert_status(vdi_crd_check_fields(&tree, root, &unknown, &error), rows[i].status);
		if (rows[i].status != VD_OK)
			assert_non_null(strstr(error.message, rows[i].result));
		assert_int_equal(unknown.count > 0, rows[i].unknown != NULL);
		if (rows[i].status == VD_OK) {
			text = texted(root);
			assert_string_equal(text, rows[i].result ? rows[i].result : rows[i].definition);
			free(text);
		}
		if (rows[i].unknown) {
			assert_int_equal(unknown.refusal.size, strlen(rows[i].unknown));
			assert_memory_equal(unknown.refusal.data, rows[i].unknown, unknown.refusal.size);
		}
		vdi_unknown_fields_fini(&unknown);
		vdi_tree_fini(&tree);
	}
}

static void which_kind_is_that_of_definitions(void **state)
{
	assert_true(vdi_crd_is(
		&(struct vdi_resource) { .built_in = true, .plural = "customresourcedefinitions" }));
	assert_false(vdi_crd_is(
		&(struct vdi_resource) { .built_in = false, .plural = "customresourcedefinitions" }));
	assert_false(vdi_crd_is(&(struct vdi_resource) { .built_in = true, .plural = "pods" }));
}

#define STATE(metadata, status)                                                                              \
	"{\"metadata\":{" metadata "},\"status\":{" status                                                   \
	"},\"spec\":{\"group\":\"g\",\"names\":{\"plural\":\"p\",\"singular\":\"s\",\"kind\":\"K\","         \
	"\"listKind\":\"L\"},"                                                                               \
	"\"scope\":\"Cluster\",\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true}]}}"

static void what_else_a_definition_says(void **state)
{
	static const struct {
		const char *definition, *uid;
		int64_t	    generation;
		bool	    is_terminating, is_kept, was_accepted;
	} rows[] = {
		{ STATE("", ""), "", 0, false, false, false },
		{ STATE("\"uid\":\"u\",\"generation\":7", ""), "u", 7, false, false, false },
		{ STATE("\"deletionTimestamp\":\"2026-05-28T20:26:00Z\"", ""), "", 0, true, false, false },
		{ STATE("\"finalizers\":[\"a\",\"" VDI_CRD_FINALIZER "\",\"b\"]", ""), "", 0, false, true,
		  false },
		{ STATE("\"finalizers\":[\"a\"]", ""), "", 0, false, false, false },
		{ STATE("", "\"conditions\":[{\"type\":\"NamesAccepted\",\"status\":\"True\"}]"), "", 0,
		  false, false, true },
		{ STATE("", "\"conditions\":[{\"type\":\"Established\",\"status\":\"True\"},{\"type\":"
			    "\"NamesAccepted\",\"status\":\"False\"}]"),
		  "", 0, false, false, false },
		{ STATE("", "\"conditions\":[{\"type\":\"Established\",\"status\":\"False\"},{\"type\":"
			    "\"NamesAccepted\",\"status\":\"True\"}]"),
		  "", 0, false, false, true },
		{ STATE("", "\"conditions\":[{\"type\":\"Established\",\"status\":\"True\"}]"), "", 0, false,
		  false, false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_crd crd;

		assert_status(vdi_crd_read(vd_bytes_of(rows[i].definition), "/r/", &crd, NULL), VD_OK);
		assert_string_equal(crd.uid, rows[i].uid);
		assert_int_equal(crd.generation, rows[i].generation);
		assert_int_equal(crd.is_terminating, rows[i].is_terminating);
		assert_int_equal(crd.resources.items[0]->is_terminating, rows[i].is_terminating);
		assert_int_equal(crd.is_kept, rows[i].is_kept);
		assert_int_equal(crd.was_accepted, rows[i].was_accepted);
		assert_false(crd.stored->namespaced);
		vdi_crd_fini(&crd);
	}
}

static vd_status all_of_it(void)
{
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_node	       *root;
	struct vdi_crd		crd;
	struct vdi_crd_state	accepted = { .is_served = true };
	size_t			rule_count;
	bool			is_changed;
	vd_status		status = vdi_tree_parse(&tree, vd_bytes_of(CRD(TWO)), &root, NULL);

	if (status == VD_OK)
		status = vdi_crd_check_fields(&tree, root, NULL, NULL);
	if (status == VD_OK)
		status = vdi_crd_prepare(&tree, root, NULL);
	if (status == VD_OK)
		status = vdi_crd_validate(&tree, root, NULL, &field_errors, &rule_count);
	if (status == VD_OK)
		assert_int_equal(field_errors.count, 0);
	if (status == VD_OK)
		status = vdi_crd_set_status(&tree, root, &accepted, (vd_wall) { 0 }, &is_changed);
	if (status == VD_OK)
		status = vdi_crd_set_terminating(&tree, root, (vd_wall) { 0 });
	vdi_tree_fini(&tree);
	vdi_field_errors_fini(&field_errors);
	if (status != VD_OK)
		return status;
	VDI_TRY(vdi_crd_read(vd_bytes_of(CRD(TWO)), "/registry/", &crd, NULL));
	vdi_crd_fini(&crd);
	return VD_OK;
}

static void out_of_memory_is_said_and_leaves_nothing(void **state)
{
	int64_t live = vdi_alloc_live();

	for (uint64_t nth = 1;; nth++) {
		vd_status status;
		bool	  failed;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = all_of_it();
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed) {
			assert_status(status, VD_OK);
			break;
		}
		assert_status(status, VD_NOMEM);
	}
}

/* null where a list belongs is an empty list: what is added to it stays. */
static void null_is_an_empty_list(void **state)
{
	struct vdi_tree	     tree = VDI_TREE_INIT;
	struct vdi_crd_state accepted = { .is_served = true };
	struct vdi_node	    *root;
	bool		     is_changed;
	char		    *text;

	assert_status(
		vdi_tree_parse(&tree,
			       vd_bytes_of("{\"metadata\":{\"finalizers\":null},\"spec\":{\"names\":{"
					   "\"plural\":\"ws\",\"kind\":\"W\"},\"versions\":[{\"name\":\"v2\","
					   "\"storage\":true}]},\"status\":{\"storedVersions\":null,"
					   "\"conditions\":null}}"),
			       &root, NULL),
		VD_OK);
	assert_status(vdi_crd_prepare(&tree, root, root), VD_OK);
	assert_status(vdi_crd_set_status(&tree, root, &accepted, (vd_wall) { 0 }, &is_changed), VD_OK);
	assert_status(vdi_crd_set_terminating(&tree, root, (vd_wall) { 0 }), VD_OK);
	text = texted(root);
	assert_non_null(strstr(text, "\"storedVersions\":[\"v2\"]"));
	assert_non_null(strstr(text, "\"type\":\"Established\""));
	assert_non_null(strstr(text, "\"type\":\"Terminating\""));
	assert_non_null(strstr(text, "\"finalizers\":[\"" VDI_CRD_FINALIZER "\"]"));
	free(text);
	vdi_tree_fini(&tree);
}

/* What a new one brings as its status is not believed; that of an old one stays. */
static void a_new_definition_has_a_status_of_its_own(void **state)
{
	for (int is_new = 0; is_new < 2; is_new++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_node *root, *old;
		char		*text;

		assert_status(
			vdi_tree_parse(&tree,
				       vd_bytes_of("{\"spec\":{\"names\":{\"plural\":\"ws\",\"kind\":\"W\"},"
						   "\"versions\":[{\"name\":\"v2\",\"storage\":true}]},"
						   "\"status\":{\"storedVersions\":[\"v1\"]}}"),
				       &root, NULL),
			VD_OK);
		assert_status(vdi_tree_parse(&tree, vd_bytes_of("{}"), &old, NULL), VD_OK);
		assert_status(vdi_crd_prepare(&tree, root, is_new ? NULL : old), VD_OK);
		text = texted(vdi_tree_get(&tree, root, vd_bytes_of("status")));
		assert_string_equal(text, is_new ? "{\"conditions\":[],\"acceptedNames\":{\"plural\":\"\","
						   "\"kind\":\"\"},\"storedVersions\":[\"v2\"]}" :
						   "{\"storedVersions\":[\"v1\",\"v2\"]}");
		free(text);
		vdi_tree_fini(&tree);
	}
}

/* Its own finalizer goes, others stay, and an empty list is none. */
static void the_finalizer_is_taken_back(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"metadata\":{\"finalizers\":[\"" VDI_CRD_FINALIZER "\"]}}", "{\"metadata\":{}}" },
		{ "{\"metadata\":{\"finalizers\":[\"a\",\"" VDI_CRD_FINALIZER "\",\"b\"]}}",
		  "{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}" },
		{ "{\"metadata\":{\"finalizers\":[\"a\"]}}", "{\"metadata\":{\"finalizers\":[\"a\"]}}" },
		{ "{\"metadata\":{}}", "{\"metadata\":{}}" },
		{ "{}", "{}" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_node *root;
		char		*text;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i][0]), &root, NULL), VD_OK);
		vdi_crd_remove_finalizer(&tree, root);
		text = texted(root);
		assert_string_equal(text, rows[i][1]);
		free(text);
		vdi_tree_fini(&tree);
	}
}

static void the_scope_is_of_all_versions(void **state)
{
	static const char definition[] =
		"{\"metadata\":{\"name\":\"ws.e.x\",\"uid\":\"u\"},\"spec\":{\"group\":\"e.x\",\"scope\":"
		"\"Cluster\",\"names\":{\"plural\":\"ws\",\"singular\":\"w\","
		"\"kind\":\"W\",\"listKind\":\"WList\"},\"versions\":[{\"name\":\"v1\",\"served\":true,"
		"\"storage\":true," ANYTHING "}]}}";
	struct vdi_crd crd;

	assert_status(vdi_crd_read(vd_bytes_of(definition), "/registry/", &crd, NULL), VD_OK);
	assert_false(crd.stored->namespaced);
	vdi_crd_fini(&crd);
}

#define VERSION(name, resource_set, storage)                                                                 \
	"{\"name\":\"" name "\",\"served\":" resource_set ",\"storage\":" storage "," ANYTHING "}"

/* A version is served, stored, both or neither. */
static void a_version_is_served_or_stored(void **state)
{
	static const struct {
		const char *versions, *resource_set, *stored;
	} rows[] = {
		{ VERSION("v1", "true", "true"), "v1 ", "v1" },
		{ VERSION("v1", "false", "true") "," VERSION("v2", "true", "false"), "v2 ", "v1" },
		{ VERSION("v1", "true", "false") "," VERSION("v2", "false", "true"), "v1 ", "v2" },
		{ VERSION("v1", "true", "true") "," VERSION("v2", "true", "false"), "v2 v1 ", "v1" },
		{ VERSION("v1", "true", "true") "," VERSION("v2", "false", "false"), "v1 ", "v1" },
		{ VERSION("v1", "false", "true"), "", "v1" },
		/* of several that are stored, the first */
		{ VERSION("v1", "true", "true") "," VERSION("v2", "true", "true"), "v2 v1 ", "v1" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_crd crd;
		char	       text[4000], resource_set[40] = "";

		(void) snprintf(text, sizeof text,
				"{\"metadata\":{\"name\":\"ws.e.x\",\"uid\":\"u\"},\"spec\":{\"group\":\"e."
				"x\",\"scope\":"
				"\"Cluster\",\"names\":{\"plural\":\"ws\",\"singular\":\"w\",\"kind\":\"W\","
				"\"listKind\":"
				"\"WList\"},\"versions\":[%s]}}",
				rows[i].versions);
		assert_status(vdi_crd_read(vd_bytes_of(text), "/registry/", &crd, NULL), VD_OK);
		for (size_t k = 0; k < crd.resources.count; k++)
			(void) snprintf(resource_set + strlen(resource_set),
					sizeof resource_set - strlen(resource_set), "%s ",
					crd.resources.items[k]->version);
		assert_string_equal(resource_set, rows[i].resource_set);
		assert_non_null(crd.stored);
		assert_string_equal(crd.stored->version, rows[i].stored);
		vdi_crd_fini(&crd);
	}
}

/* The storage version is noted once among those that objects may be stored in. */
static void a_stored_version_is_noted_once(void **state)
{
	static const char *const rows[][2] = {
		{ "[]", "[\"v2\"]" },
		{ "[\"v2\"]", "[\"v2\"]" },
		{ "[\"v1\",\"v2\"]", "[\"v1\",\"v2\"]" },
		{ "[\"v2\",\"v1\"]", "[\"v2\",\"v1\"]" },
		{ "[\"v1\"]", "[\"v1\",\"v2\"]" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_node *root;
		char		 definition[400], *text;

		(void) snprintf(definition, sizeof definition,
				"{\"spec\":{\"names\":{\"plural\":\"ws\",\"kind\":\"W\"},\"versions\":[{"
				"\"name\":\"v1\"},{"
				"\"name\":\"v2\",\"storage\":true}]},\"status\":{\"storedVersions\":%s}}",
				rows[i][0]);
		assert_status(vdi_tree_parse(&tree, vd_bytes_of(definition), &root, NULL), VD_OK);
		assert_status(vdi_crd_prepare(&tree, root, root), VD_OK);
		text = texted(vdi_tree_find(&tree, root, "status.storedVersions"));
		assert_string_equal(text, rows[i][1]);
		free(text);
		vdi_tree_fini(&tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_version_is_served_or_stored),
		cmocka_unit_test(a_stored_version_is_noted_once),
		cmocka_unit_test(each_served_version_is_a_resource),
		cmocka_unit_test(what_cannot_be_served_is_said),
		cmocka_unit_test(a_status_follows_what_is_served),
		cmocka_unit_test(a_stored_version_is_exchanged),
		cmocka_unit_test(r612_a_definition_has_its_members_only),
		cmocka_unit_test(which_kind_is_that_of_definitions),
		cmocka_unit_test(what_else_a_definition_says),
		cmocka_unit_test(out_of_memory_is_said_and_leaves_nothing),
		cmocka_unit_test(a_new_definition_has_a_status_of_its_own),
		cmocka_unit_test(null_is_an_empty_list),
		cmocka_unit_test(the_finalizer_is_taken_back),
		cmocka_unit_test(the_scope_is_of_all_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
