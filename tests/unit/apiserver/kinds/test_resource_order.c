/* Unit tests of apiserver/kinds/resources.c: names of resources, and the order in which they are listed. */
#include "vdtest.h"

#include "resources.h"

static void names_of_resources(void **state)
{
	static const struct {
		const char *group, *plural;
		bool	    is_namespaces;
	} rows[] = { { "", "namespaces", true },
		     { "", "pods", false },
		     { "example.com", "namespaces", false },
		     { "example.com", "pods", false },
		     { "", "namespace", false } };
	struct vdi_resources resources;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_resource resource = { .group = rows[i].group, .plural = rows[i].plural };

		assert_int_equal(vdi_resource_is_namespaces(&resource), rows[i].is_namespaces);
	}
	assert_status(vdi_resources_init(&resources), VD_OK);
	assert_true(vdi_resources_has_version(&resources, VD_BYTES_NONE, vd_bytes_of("v1")));
	assert_false(vdi_resources_has_version(&resources, VD_BYTES_NONE, vd_bytes_of("v2")));
	assert_true(vdi_resources_has_version(&resources, vd_bytes_of("apps"), vd_bytes_of("v1")));
	assert_false(vdi_resources_has_version(&resources, vd_bytes_of("apps"), vd_bytes_of("v1beta1")));
	assert_true(vdi_resources_has_version(&resources, vd_bytes_of("apps"), VD_BYTES_NONE));
	assert_false(vdi_resources_has_version(&resources, vd_bytes_of("app"), VD_BYTES_NONE));
	assert_false(vdi_resources_has_version(&resources, vd_bytes_of("app"), vd_bytes_of("v1")));
	vdi_resources_fini(&resources);
}

/* Kinds of one group and version keep the order in which they were added. */
static void equal_versions_stay_in_order(void **state)
{
	static const struct {
		const char *group, *version, *plural;
	} added[] = { { "b.x", "v1", "as" },	  { "b.x", "v1", "cs" }, { "a.x", "v1", "zs" },
		      { "b.x", "v1beta1", "as" }, { "b.x", "v1", "bs" }, { "a.x", "v2", "ys" },
		      { "a.x", "v1", "xs" } };
	static const char expected[] =
		"a.x/v2/ys a.x/v1/zs a.x/v1/xs b.x/v1/as b.x/v1/cs b.x/v1/bs b.x/v1beta1/as ";
	struct vdi_resources resources = { 0 };
	char		     text[400] = "";

	for (size_t i = 0; i < VDI_ARRAY_SIZE(added); i++) {
		struct vdi_resource *resource = vdi_resource_new();

		resource->group = added[i].group;
		resource->version = added[i].version;
		resource->plural = added[i].plural;
		assert_status(vdi_resources_add(&resources, resource), VD_OK);
		(void) vdi_resource_unref(resource);
	}
	for (size_t i = 0; i < resources.count; i++)
		(void) snprintf(text + strlen(text), sizeof text - strlen(text), "%s/%s/%s ",
				resources.items[i]->group, resources.items[i]->version,
				resources.items[i]->plural);
	assert_string_equal(text, expected);
	vdi_resources_fini(&resources);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_resources),
		cmocka_unit_test(equal_versions_stay_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
