/* Unit tests of apiserver/object/object_scale.c: the Scale of an object, and where its number is stored. */
#include "vdtest.h"

#include "object_edit.h"
#include "object_scale.h"

static const struct vdi_resource deployments = { .group = "apps",
						 .version = "v1",
						 .kind = "Deployment",
						 .plural = "deployments",
						 .namespaced = true,
						 .built_in = true,
						 .has_status = true,
						 .has_scale = true,
						 .has_generation = true };
static const struct vdi_resource widgets = { .group = "example.com",
					     .version = "v1",
					     .kind = "Widget",
					     .plural = "widgets",
					     .namespaced = true,
					     .has_status = true,
					     .has_scale = true,
					     .has_generation = true };

#define META                                                                                                 \
	"\"metadata\":{\"resourceVersion\":\"7\",\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"u\","    \
	"\"creationTimestamp\":\"2026-05-28T20:00:00Z\",\"generation\":1}"

/* The Scale of an object: Kubernetes' own selector is written out, a custom kind's is a string at its
 * path. */
static void h347_the_scale_of_an_object(void **state)
{
	struct vdi_resource custom = widgets;
#define HEAD                                                                                                 \
	"{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/"                                                  \
	"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\","     \
	"\"creationTimestamp\":\"t\"},"
#define BODY                                                                                                 \
	"\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\","          \
	"\"creationTimestamp\":\"t\",\"labels\":{}}"
	const struct {
		const struct vdi_resource *resource;
		const char		  *object, *scale;
	} scales[] = {
		{ &deployments,
		  "{" BODY ",\"spec\":{\"replicas\":3,\"selector\":{\"matchLabels\":{\"a\":\"b\",\"c\":\"d\"}"
		  "}},\"status\":{\"replicas\":2}}",
		  HEAD "\"spec\":{\"replicas\":3},\"status\":{\"replicas\":2,\"selector\":\"a=b,c=d\"}}" },
		{ &deployments, "{" BODY "}", HEAD "\"spec\":{\"replicas\":0},\"status\":{\"replicas\":0}}" },
		{ &custom,
		  "{" BODY ",\"spec\":{\"n\":3,\"selector\":{\"matchLabels\":{\"a\":\"b\"}}},\"status\":{"
		  "\"n\":2,\"s\":\"x=y\"}}",
		  HEAD "\"spec\":{\"replicas\":3},\"status\":{\"replicas\":2,\"selector\":\"x=y\"}}" },
		{ &custom, "{" BODY "}", HEAD "\"spec\":{\"replicas\":0},\"status\":{\"replicas\":0}}" },
	};

	custom.is_custom = true;
	custom.scale_spec_path = ".spec.n";
	custom.scale_status_path = ".status.n";
	custom.scale_selector_path = ".status.s";
	for (size_t i = 0; i < VDI_ARRAY_SIZE(scales); i++) {
		struct vdi_edit scale_edit = { .resource = scales[i].resource, .part = VDI_EDIT_SCALE };
		struct vdi_out	out = VDI_OUT_INIT;

		assert_status(vdi_scale_of(scale_edit.resource, vd_bytes_of(scales[i].object), &out), VD_OK);
		if (!vd_bytes_equal(vdi_out_slice(&out), vd_bytes_of(scales[i].scale)))
			fail_msg("%.*s", (int) out.size, out.data);
		vdi_out_fini(&out);
	}
}

/* A number of replicas is set where the kind keeps it, also if the objects on the way are missing. */
static void a_scale_is_stored_at_its_path(void **state)
{
	static const struct {
		const char *path, *object, *result;
	} rows[] = {
		{ NULL, "{}", "{\"spec\":{\"replicas\":4}}" },
		{ NULL, "{\"spec\":{\"a\":1}}", "{\"spec\":{\"a\":1,\"replicas\":4}}" },
		{ ".spec.n", "{\"spec\":{\"n\":1}}", "{\"spec\":{\"n\":4}}" },
		{ ".spec.a.b.n", "{}", "{\"spec\":{\"a\":{\"b\":{\"n\":4}}}}" },
		{ ".spec.a.b.n", "{\"spec\":{\"a\":{\"c\":1}}}",
		  "{\"spec\":{\"a\":{\"c\":1,\"b\":{\"n\":4}}}}" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_resource resource = widgets;
		bool		    failed = true;

		resource.scale_spec_path = rows[i].path;
		for (uint64_t nth = 1; failed; nth++) {
			struct vdi_tree	 tree = VDI_TREE_INIT;
			struct vdi_out	 out = VDI_OUT_INIT;
			struct vdi_node *root, *replicas;
			bool		 is_set;

			assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].object), &root, NULL), VD_OK);
			replicas = vdi_tree_new_int(&tree, 4);
			(void) vdi_alloc_fail_nth(nth, 1);
			is_set = vdi_scale_set(&tree, root, &resource, replicas);
			failed = vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
			assert_int_equal(is_set, !failed);
			vdi_tree_write(&out, root);
			if (is_set && !vd_bytes_equal(vdi_out_slice(&out), vd_bytes_of(rows[i].result)))
				fail_msg("%.*s", (int) out.size, out.data);
			vdi_out_fini(&out);
			vdi_tree_fini(&tree);
		}
	}
}

static void a_scale_without_memory_is_none(void **state)
{
	static const char object[] =
		"{" META ",\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\",\"c\":\"d\"}}}}";
	bool failed = true;

	for (uint64_t nth = 1; failed; nth++) {
		struct vdi_out out = VDI_OUT_INIT;
		vd_status      status;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_scale_of(&deployments, vd_bytes_of(object), &out);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		vdi_out_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h347_the_scale_of_an_object),
		cmocka_unit_test(a_scale_is_stored_at_its_path),
		cmocka_unit_test(a_scale_without_memory_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
