/* CustomResourceDefinitions: what a write makes of them, what they ask for, their status; and the version of stored objects. */
#include "vdtest.h"

#include "crd.h"
#include "schema.h"
#include "stored_version.h"

#define ANYTHING "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}"
#define CRD(versions)                                                                                                                                              \
	"{\"metadata\":{\"name\":\"widgets.example.com\",\"uid\":\"u1\",\"generation\":3},\"spec\":{\"group\":\"example.com\",\"scope\":\"Namespaced\",\"names\":{"        \
	"\"plural\":\"widgets\",\"singular\":\"widget\",\"kind\":\"Widget\",\"listKind\":\"WidgetList\",\"shortNames\":[\"wd\"]},\"versions\":[" versions "]}}"
#define TWO                                                                                                                                                        \
	"{\"name\":\"v1beta1\",\"served\":true,\"storage\":false," ANYTHING ",\"selectableFields\":[{\"jsonPath\":\".spec.a\"}]},{\"name\":\"v1\",\"served\":true,"          \
	"\"storage\":true," ANYTHING ",\"selectableFields\":[{\"jsonPath\":\".spec.a\"},{\"jsonPath\":\".spec.b\"}],\"additionalPrinterColumns\":[{\"name\":\"A\","         \
	"\"type\":\"integer\",\"jsonPath\":\".spec.a\",\"priority\":1}],\"subresources\":{\"status\":{},\"scale\":{\"specReplicasPath\":\".spec.r\",\"statusReplicasPath\":" \
	"\".status.r\"}}},{\"name\":\"v2\",\"served\":false,\"storage\":false," ANYTHING "}"

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
	assert_string_equal(crd.stored->columns[1].name, "A");
	assert_int_equal(crd.stored->columns[1].priority, 1);
	assert_string_equal(crd.resources.items[1]->columns[1].name, "Age");
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
		{ CRD("{\"name\":\"v1\",\"served\":true,\"storage\":false," ANYTHING "}"), "no version is the one that is stored" },
		{ CRD("{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"array\"}}}"), "the schema of v1 is not structural" },
		{ "{\"spec\":{\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true}]}}", "its names are not complete" },
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
	struct vdi_crd_state accepted = { .is_served = true }, refused = { .conflict = "KindConflict", .conflict_message = "\"Widget\" is already in use" };
	vd_wall		     now = { (int64_t) 1800000000 * 1000000000 }, later = { (int64_t) 1800000100 * 1000000000 };
	bool		     is_changed;
	char		    *text;

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
	assert_non_null(strstr(text, "{\"lastTransitionTime\":\"2027-01-15T08:01:40Z\",\"message\":\"the initial names have been accepted\","
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
		{ "{\"apiVersion\":\"example.com/v1\",\"kind\":\"W\"}", "{\"apiVersion\":\"example.com/v2\",\"kind\":\"W\"}" },
		{ "{\"metadata\":{\"apiVersion\":\"x\",\"a\":[{\"b\":\"}\\\"\"},1]},\"n\":-1.5e3,\"t\":true,\"apiVersion\" : \"example.com/v1\"}",
		  "{\"metadata\":{\"apiVersion\":\"x\",\"a\":[{\"b\":\"}\\\"\"},1]},\"n\":-1.5e3,\"t\":true,\"apiVersion\" : \"example.com/v2\"}" },
		{ "{\"kind\":\"W\"}", "{\"kind\":\"W\"}" },
		{ "{}", "{}" },
		{ "{\"apiVersion\":7}", "{\"apiVersion\":7}" },
		{ "{\"a\":\"apiVersion\",\"b\":{}}", "{\"a\":\"apiVersion\",\"b\":{}}" },
	};
	const struct vdi_resource resource = { .group = "example.com", .version = "v2", .api_version = "example.com/v2" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_out out = VDI_OUT_INIT;

		vdi_version_write(&out, &resource, vd_bytes_of(rows[i][0]));
		assert_int_equal(out.size, strlen(rows[i][1]));
		assert_memory_equal(out.data, rows[i][1], out.size);
		vdi_out_fini(&out);
	}
}

static vd_status all_of_it(void)
{
	struct vdi_tree	     tree = VDI_TREE_INIT;
	struct vdi_faults    faults = { 0 };
	struct vdi_node	    *root;
	struct vdi_crd	     crd;
	struct vdi_crd_state accepted = { .is_served = true };
	size_t		     rule_count;
	bool		     is_changed;
	vd_status	     status = vdi_tree_parse(&tree, vd_bytes_of(CRD(TWO)), &root, NULL);

	if (status == VD_OK)
		status = vdi_crd_prepare(&tree, root, NULL);
	if (status == VD_OK)
		status = vdi_crd_validate(&tree, root, NULL, &faults, &rule_count);
	if (status == VD_OK)
		assert_int_equal(faults.count, 0);
	if (status == VD_OK)
		status = vdi_crd_set_status(&tree, root, &accepted, (vd_wall) { 0 }, &is_changed);
	if (status == VD_OK)
		status = vdi_crd_set_terminating(&tree, root, (vd_wall) { 0 });
	vdi_tree_fini(&tree);
	vdi_faults_fini(&faults);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_served_version_is_a_resource),
		cmocka_unit_test(what_cannot_be_served_is_said),
		cmocka_unit_test(a_status_follows_what_is_served),
		cmocka_unit_test(a_stored_version_is_exchanged),
		cmocka_unit_test(out_of_memory_is_said_and_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
