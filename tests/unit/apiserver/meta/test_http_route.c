/* Paths: every form that clients use, and none that could leave its place. */
#include "vdtest.h"

#include "http_route.h"

struct row {
	const char	   *path;
	enum vdi_route_kind kind;
	const char	   *group, *version, *namespace_name, *plural, *name, *subresource;
	bool		    watch;
};

static void check(struct vd_bytes got, const char *wanted)
{
	assert_int_equal(got.size, wanted ? strlen(wanted) : 0);
	if (got.size)
		assert_memory_equal(got.data, wanted, got.size);
}

static void every_form_of_path_is_understood(void **state)
{
	static const struct row rows[] = {
		{ "/", VDI_ROUTE_ROOT },
		{ "/api", VDI_ROUTE_API },
		{ "/api/", VDI_ROUTE_API },
		{ "/apis", VDI_ROUTE_APIS },
		{ "/apis/apps", VDI_ROUTE_GROUP, "apps" },
		{ "/api/v1", VDI_ROUTE_VERSION, "", "v1" },
		{ "/apis/apps/v1", VDI_ROUTE_VERSION, "apps", "v1" },
		{ "/version", VDI_ROUTE_PLAIN },
		{ "/openapi/v3/apis/apps/v1", VDI_ROUTE_PLAIN },
		{ "/api/v1/pods", VDI_ROUTE_RESOURCE, "", "v1", "", "pods" },
		{ "/api/v1/nodes/n1", VDI_ROUTE_RESOURCE, "", "v1", "", "nodes", "n1" },
		{ "/api/v1/nodes/n1/status", VDI_ROUTE_RESOURCE, "", "v1", "", "nodes", "n1", "status" },
		{ "/api/v1/namespaces", VDI_ROUTE_RESOURCE, "", "v1", "", "namespaces" },
		{ "/api/v1/namespaces/a", VDI_ROUTE_RESOURCE, "", "v1", "", "namespaces", "a" },
		{ "/api/v1/namespaces/a/status", VDI_ROUTE_RESOURCE, "", "v1", "", "namespaces", "a",
		  "status" },
		{ "/api/v1/namespaces/a/finalize", VDI_ROUTE_RESOURCE, "", "v1", "", "namespaces", "a",
		  "finalize" },
		{ "/api/v1/namespaces/a/pods", VDI_ROUTE_RESOURCE, "", "v1", "a", "pods" },
		{ "/api/v1/namespaces/a/pods/p", VDI_ROUTE_RESOURCE, "", "v1", "a", "pods", "p" },
		{ "/api/v1/namespaces/a/pods/p/log", VDI_ROUTE_RESOURCE, "", "v1", "a", "pods", "p", "log" },
		{ "/api/v1/namespaces/a/pods/p/proxy/x", VDI_ROUTE_RESOURCE, "", "v1", "a", "pods", "p",
		  "proxy/x" },
		{ "/apis/apps/v1/namespaces/a/deployments/d/scale", VDI_ROUTE_RESOURCE, "apps", "v1", "a",
		  "deployments", "d", "scale" },
		{ "/api/v1/watch", VDI_ROUTE_RESOURCE, "", "v1", "", "watch" },
		{ "/api/v1/watch/pods", VDI_ROUTE_RESOURCE, "", "v1", "", "pods", NULL, NULL, true },
		{ "/api/v1/watch/namespaces/a/pods/p", VDI_ROUTE_RESOURCE, "", "v1", "a", "pods", "p", NULL,
		  true },
		{ "/api/v1/watch/namespaces/a", VDI_ROUTE_RESOURCE, "", "v1", "", "namespaces", "a", NULL,
		  true },
		{ "/api/v1/%70ods", VDI_ROUTE_RESOURCE, "", "v1", "", "pods" },
		{ "/api/v1/pods/a+b%2Bc", VDI_ROUTE_RESOURCE, "", "v1", "", "pods", "a+b+c" },
		{ "/api/v1/pods/a%20b", VDI_ROUTE_RESOURCE, "", "v1", "", "pods", "a b" },
		{ "/api/v1/pods/...", VDI_ROUTE_RESOURCE, "", "v1", "", "pods", "..." },
		{ "/api/v1/namespaces/a/status/x", VDI_ROUTE_RESOURCE, "", "v1", "", "namespaces", "a",
		  "status/x" },
		{ "/api/v1/namespaces/a/finalizers", VDI_ROUTE_RESOURCE, "", "v1", "a", "finalizers" },
		{ "/api/v1/watch/watch", VDI_ROUTE_RESOURCE, "", "v1", "", "watch", NULL, NULL, true },
		{ "/apis/apps/v1/watch/deployments/d", VDI_ROUTE_RESOURCE, "apps", "v1", "", "deployments",
		  "d", NULL, true },
		{ "/apis/", VDI_ROUTE_APIS },
		{ "/apis/apps/", VDI_ROUTE_GROUP, "apps" },
		{ "/apis/apps/v1/", VDI_ROUTE_VERSION, "apps", "v1" },
		{ "/api/v1/pods/", VDI_ROUTE_RESOURCE, "", "v1", "", "pods" },
		{ "/apix", VDI_ROUTE_PLAIN },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_route route;

		/* Nothing is left of an earlier path. */
		vdi_route_parse(vd_bytes_of("/apis/g/v/namespaces/n/p/x/s/t/u/v/w"), &route);
		assert_int_equal(route.kind, VDI_ROUTE_RESOURCE);
		vdi_route_parse(vd_bytes_of(rows[i].path), &route);
		assert_int_equal(route.kind, rows[i].kind);
		check(route.group, rows[i].group);
		check(route.version, rows[i].version);
		check(route.namespace_name, rows[i].namespace_name);
		assert_int_equal(route.has_namespace, rows[i].namespace_name && *rows[i].namespace_name);
		check(route.plural, rows[i].plural);
		check(route.name, rows[i].name);
		check(route.subresource, rows[i].subresource);
		assert_int_equal(route.watch_prefix, rows[i].watch);
	}
}

static void paths_that_could_leave_their_place_are_bad(void **state)
{
	static const char *const rows[] = { "//",
					    "/api//v1",
					    "/api/v1/pods/..",
					    "/api/v1/./pods",
					    "/api/v1/pods/%2e%2e",
					    "/api/v1/pods/a%2Fb",
					    "/api/v1/pods/a%00b",
					    "/api/v1/pods/%zz",
					    "/api/v1/pods/%2",
					    "/a/b/c/d/e/f/g/h/i/j/k/l/m" };
	struct vdi_route	 route;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		vdi_route_parse(vd_bytes_of(rows[i]), &route);
		assert_int_equal(route.kind, VDI_ROUTE_BAD);
	}
}

static void very_long_paths_are_bad(void **state)
{
	static char	 path[VDI_ROUTE_PATH_MAX + 8];
	struct vdi_route route;

	memset(path, 'a', sizeof path - 1);
	path[0] = '/';
	for (size_t size = VDI_ROUTE_PATH_MAX - 2; size < sizeof path; size++) {
		vdi_route_parse((struct vd_bytes) { path, size }, &route);
		assert_int_equal(route.kind, size < VDI_ROUTE_PATH_MAX ? VDI_ROUTE_PLAIN : VDI_ROUTE_BAD);
		if (size < VDI_ROUTE_PATH_MAX)
			assert_int_equal(route.path.size, size);
	}
}

/* The path is written again from its segments, decoded. */
static void the_path_is_decoded(void **state)
{
	static const char *const rows[][2] = {
		{ "/", "" },
		{ "/a%62/c/", "/ab/c" },
		{ "/a/b/c/d/e/f/g/h/i/j/k/l", "/a/b/c/d/e/f/g/h/i/j/k/l" },
		{ "/api/v1/pods/x+y", "/api/v1/pods/x+y" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_route route;

		vdi_route_parse(vd_bytes_of(rows[i][0]), &route);
		assert_true(route.kind != VDI_ROUTE_BAD);
		check(route.path, rows[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_path_is_decoded),
		cmocka_unit_test(every_form_of_path_is_understood),
		cmocka_unit_test(paths_that_could_leave_their_place_are_bad),
		cmocka_unit_test(very_long_paths_are_bad),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
