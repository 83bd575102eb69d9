/* Unit tests of apiserver/object/omit_empty.c: which members say nothing, by the types of the kind. What a
 * kube-apiserver (1.36) stores and returns was taken down beside it. */
#include "vdtest.h"

#include "omit_empty.h"

static const struct vdi_resource deployments = {
	.group = "apps", .version = "v1", .kind = "Deployment", .plural = "deployments", .built_in = true
};
static const struct vdi_resource scaled = { .group = "apps",
					    .version = "v1",
					    .kind = "Deployment",
					    .plural = "deployments",
					    .built_in = true,
					    .has_status = true };
static const struct vdi_resource maps = {
	.group = "", .version = "v1", .kind = "ConfigMap", .plural = "configmaps", .built_in = true
};
static const struct vdi_resource slices = { .group = "resource.k8s.io",
					    .version = "v1",
					    .kind = "ResourceSlice",
					    .plural = "resourceslices",
					    .built_in = true };
static const struct vdi_resource services = {
	.group = "", .version = "v1", .kind = "Service", .plural = "services", .built_in = true
};
static const struct vdi_resource widgets = {
	.group = "example.com", .version = "v1", .kind = "Widget", .plural = "widgets"
};

static void check(const struct vdi_resource *resource, const char *from, const char *to)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_out	 text = VDI_OUT_INIT;
	struct vdi_node *root;

	assert_status(vdi_tree_parse(&tree, vd_bytes_of(from), &root, NULL), VD_OK);
	vdi_omit_empty(resource, &tree, root);
	vdi_tree_write(&text, root);
	if (!vd_bytes_equal(vdi_out_slice(&text), vd_bytes_of(to)))
		fail_msg("%s: %.*s", from, (int) text.size, text.data);
	vdi_out_fini(&text);
	vdi_tree_fini(&tree);
}

static void what_go_omits_goes(void **state)
{
	static const struct {
		const struct vdi_resource *resource;
		const char		  *from, *to;
	} rows[] = {
		{ &maps,
		  "{\"metadata\":{\"name\":\"a\",\"labels\":{},\"annotations\":null,\"finalizers\":[],"
		  "\"ownerReferences\":null,\"generateName\":\"\",\"creationTimestamp\":null,\"generation\":"
		  "0}}",
		  "{\"metadata\":{\"name\":\"a\"}}" },
		{ &maps, "{\"data\":{},\"binaryData\":null,\"immutable\":null}", "{}" },
		{ &maps, "{\"data\":{\"a\":\"\",\"b\":null},\"immutable\":false}",
		  "{\"data\":{\"a\":\"\",\"b\":null},\"immutable\":false}" },
		{ &deployments,
		  "{\"spec\":{\"replicas\":0,\"paused\":false,\"minReadySeconds\":0,\"revisionHistoryLimit\":"
		  "0,\"strategy\":null}}",
		  "{\"spec\":{\"replicas\":0,\"revisionHistoryLimit\":0}}" },
		{ &deployments, "{\"spec\":{\"replicas\":null,\"strategy\":{}},\"status\":{}}",
		  "{\"spec\":{\"strategy\":{}},\"status\":{}}" },
		{ &deployments,
		  "{\"spec\":{\"template\":{\"metadata\":{\"creationTimestamp\":null,\"labels\":{\"a\":\"\"}}"
		  ",\"spec\":{\"hostNetwork\":false,\"volumes\":[],\"nodeSelector\":{},"
		  "\"containers\":[{\"name\":\"\",\"image\":\"\",\"resources\":{},\"args\":[\"\",null],"
		  "\"securityContext\":null,\"ports\":[{\"containerPort\":0,\"hostPort\":0}]}]}}}}",
		  "{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"a\":\"\"}},\"spec\":{\"containers\":["
		  "{\"name\":\"\",\"resources\":{},\"args\":[\"\",null],\"ports\":[{\"containerPort\":0}]}]}}"
		  "}}" },
		/* a handler of a probe is a member of the probe */
		{ &deployments,
		  "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{},"
		  "\"livenessProbe\":{\"tcpSocket\":{\"port\":0,\"host\":\"\"},\"periodSeconds\":0}}]}}}}",
		  "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{},"
		  "\"livenessProbe\":{\"tcpSocket\":{\"port\":0}}}]}}}}" },
		/* What the kind does not have, and what is not of its type, stays. */
		{ &maps, "{\"x\":null,\"metadata\":{\"x\":0,\"name\":5},\"data\":\"\"}",
		  "{\"x\":null,\"metadata\":{\"x\":0,\"name\":5},\"data\":\"\"}" },
		{ &maps, "{\"metadata\":null}", "{}" },
		{ &services,
		  "{\"spec\":{\"clusterIP\":\"\",\"ports\":[{\"port\":80,\"nodePort\":0,\"targetPort\":0}],"
		  "\"allocateLoadBalancerNodePorts\":false}}",
		  "{\"spec\":{\"ports\":[{\"port\":80,\"targetPort\":0}],\"allocateLoadBalancerNodePorts\":"
		  "false}}" },
		/* Of custom kinds only metadata has types. */
		{ &widgets,
		  "{\"metadata\":{\"labels\":{},\"name\":\"a\"},\"spec\":{\"a\":null,\"b\":0,\"c\":{}},"
		  "\"status\":null}",
		  "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"a\":null,\"b\":0,\"c\":{}},\"status\":null}" },
		{ &widgets, "[]", "[]" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(rows[i].resource, rows[i].from, rows[i].to);
}

static void what_says_nothing_is_the_same_as_nothing(void **state)
{
	static const struct {
		const struct vdi_resource *resource;
		const char		  *a, *b;
		bool			   same, same_content;
	} rows[] = {
		{ &deployments, "{}",
		  "{\"metadata\":{},\"spec\":{\"strategy\":{},\"template\":{\"metadata\":{\"labels\":{}},"
		  "\"spec\":{}}},\"status\":{}}",
		  true, true },
		{ &deployments, "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{}]}}}}",
		  "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"\",\"resources\":{},"
		  "\"ports\":[],\"image\":\"\"}]}}}}",
		  true, true },
		{ &deployments, "{\"spec\":{\"template\":{\"spec\":{}}}}",
		  "{\"spec\":{\"template\":{\"spec\":{\"securityContext\":{}}}}}", false,
		  false }, /* a pointer */
		{ &deployments, "{\"spec\":{\"replicas\":0}}", "{\"spec\":{}}", false, false },
		{ &deployments, "{\"spec\":{\"x\":null}}", "{\"spec\":{}}", false, false },
		{ &deployments, "{\"spec\":{\"paused\":false}}", "{\"spec\":{\"paused\":true}}", false,
		  false },
		{ &deployments, "{\"metadata\":{\"labels\":{\"a\":\"\"}}}", "{\"metadata\":{\"labels\":{}}}",
		  false, true },
		{ &deployments,
		  "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}}}",
		  "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"b\"},{\"name\":\"a\"}]}}}}",
		  false, false },
		{ &deployments, "{\"status\":{\"replicas\":1}}", "{}", false,
		  false }, /* of this one it is not written apart */
		{ &scaled, "{\"status\":{\"replicas\":1},\"metadata\":{\"name\":\"a\"}}", "{}", false, true },
		{ &maps, "{\"data\":{\"a\":\"x\",\"b\":\"y\"}}",
		  "{\"binaryData\":{},\"data\":{\"b\":\"y\",\"a\":\"x\"}}", true, true },
		{ &widgets, "{\"metadata\":{\"labels\":{}},\"spec\":{}}", "{\"metadata\":{},\"spec\":{}}",
		  true, true },
		{ &widgets, "{\"metadata\":{}}", "{\"metadata\":{},\"spec\":{}}", false, false },
		{ &widgets, "{\"spec\":{\"a\":null}}", "{\"spec\":{}}", false, false },
		/* Lists of other lengths, objects that are none, a member that only one has. */
		{ &deployments, "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}}}",
		  "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}}}",
		  false, false },
		{ &deployments,
		  "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}}}",
		  "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}}}", false, false },
		{ &deployments, "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}}}",
		  "{\"spec\":{\"template\":{\"spec\":{\"containers\":{\"0\":{\"name\":\"a\"}}}}}}", false,
		  false },
		{ &deployments, "{\"spec\":[1]}", "{\"spec\":[2]}", false, false },
		{ &deployments, "{\"spec\":[1]}", "{\"spec\":[1]}", true, true },
		{ &deployments, "{\"spec\":[]}", "{\"spec\":{\"paused\":true}}", false, false },
		{ &deployments, "{\"spec\":[]}", "{\"spec\":{}}", false, false },
		{ &deployments, "{\"spec\":{}}", "{\"spec\":[]}", false, false },
		{ &deployments, "{\"spec\":{\"paused\":true}}", "{\"spec\":[]}", false, false },
		{ &deployments, "{\"spec\":5}", "{\"spec\":{}}", false, false },
		{ &deployments, "{\"spec\":{}}", "{\"spec\":5}", false, false },
		{ &deployments, "{\"spec\":{\"paused\":true}}",
		  "{\"spec\":{\"paused\":true,\"minReadySeconds\":5}}", false, false },
		{ &deployments, "{\"spec\":{\"paused\":true,\"minReadySeconds\":5}}",
		  "{\"spec\":{\"paused\":true}}", false, false },
		{ &deployments, "{\"spec\":{\"paused\":true}}",
		  "{\"spec\":{\"paused\":true,\"minReadySeconds\":0}}", true, true },
		{ &deployments, "{\"spec\":{\"paused\":true}}", "{\"x\":1,\"spec\":{\"paused\":true}}", false,
		  false },
		{ &deployments, "{\"spec\":\"x\"}", "{\"spec\":\"y\"}", false, false },
		{ &maps, "{\"data\":{\"a\":\"x\"}}", "{\"data\":{\"b\":\"x\"}}", false, false },
		/* A map of messages. */
		{ &slices,
		  "{\"spec\":{\"devices\":[{\"name\":\"d\",\"attributes\":{\"a\":{\"int\":1},\"b\":{}}}]}}",
		  "{\"spec\":{\"devices\":[{\"name\":\"d\",\"attributes\":{\"b\":{},\"a\":{\"int\":1}}}]}}",
		  true, true },
		{ &slices, "{\"spec\":{\"devices\":[{\"attributes\":{\"a\":{\"int\":1}}}]}}",
		  "{\"spec\":{\"devices\":[{\"attributes\":{\"b\":{\"int\":1}}}]}}", false, false },
		{ &slices, "{\"spec\":{\"devices\":[{\"attributes\":{\"a\":{\"int\":1},\"b\":{}}}]}}",
		  "{\"spec\":{\"devices\":[{\"attributes\":{\"a\":{\"int\":1},\"b\":{\"int\":1}}}]}}", false,
		  false },
		{ &slices, "{\"spec\":{\"devices\":[{\"attributes\":{\"a\":{\"int\":1},\"b\":{}}}]}}",
		  "{\"spec\":{\"devices\":[{\"attributes\":{\"a\":{\"int\":1}}}]}}", false, false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_node *a, *b;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].a), &a, NULL), VD_OK);
		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].b), &b, NULL), VD_OK);
		if (vdi_omit_same(rows[i].resource, &tree, a, b) != rows[i].same ||
		    vdi_omit_same(rows[i].resource, &tree, b, a) != rows[i].same ||
		    vdi_omit_same_content(rows[i].resource, &tree, a, b) != rows[i].same_content ||
		    vdi_omit_same_content(rows[i].resource, &tree, b, a) != rows[i].same_content)
			fail_msg("%s and %s", rows[i].a, rows[i].b);
		assert_true(vdi_omit_same(rows[i].resource, &tree, a, a) &&
			    vdi_omit_same_content(rows[i].resource, &tree, b, b));
		vdi_tree_fini(&tree);
	}
}

/* Members of an object with an index, which look-ups used before and use again. */
static void look_ups_still_find_the_rest(void **state)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_out	 text = VDI_OUT_INIT;
	struct vdi_node *root;
	char		 name[16];

	vdi_out_raw(&text, "{\"data\":{}");
	for (int i = 0; i < 100; i++)
		vdi_out_printf(&text, ",\"x%d\":%d", i, i);
	vdi_out_raw(&text, ",\"immutable\":null}");
	assert_status(vdi_tree_parse(&tree, vdi_out_slice(&text), &root, NULL), VD_OK);
	assert_non_null(vdi_tree_get(&tree, root, vd_bytes_of("data")));
	vdi_omit_empty(&maps, &tree, root);
	assert_null(vdi_tree_get(&tree, root, vd_bytes_of("data")));
	assert_null(vdi_tree_get(&tree, root, vd_bytes_of("immutable")));
	assert_int_equal(root->count, 100);
	for (int i = 0; i < 100; i++) {
		(void) snprintf(name, sizeof name, "x%d", i);
		assert_int_equal(vdi_tree_int_of(vdi_tree_get(&tree, root, vd_bytes_of(name)), -1), i);
	}
	assert_true(vdi_tree_set(&tree, root, vd_bytes_of("data"), vdi_tree_new(&tree, VDI_NODE_OBJECT)));
	assert_ptr_equal(vdi_tree_last(root), vdi_tree_get(&tree, root, vd_bytes_of("data")));
	vdi_out_fini(&text);
	vdi_tree_fini(&tree);
}

static void metadata_alone(void **state)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_out	 text = VDI_OUT_INIT;
	struct vdi_node *root;

	assert_status(vdi_tree_parse(&tree,
				     vd_bytes_of("{\"metadata\":{\"name\":\"a\",\"labels\":{}},\"spec\":{"
						 "\"replicas\":0},\"data\":{}}"),
				     &root, NULL),
		      VD_OK);
	vdi_omit_empty_metadata(&tree, root);
	vdi_tree_write(&text, root);
	assert_true(vd_bytes_equal(
		vdi_out_slice(&text),
		vd_bytes_of("{\"metadata\":{\"name\":\"a\"},\"spec\":{\"replicas\":0},\"data\":{}}")));
	vdi_out_fini(&text);
	vdi_tree_fini(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metadata_alone),
		cmocka_unit_test(what_go_omits_goes),
		cmocka_unit_test(what_says_nothing_is_the_same_as_nothing),
		cmocka_unit_test(look_ups_still_find_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
