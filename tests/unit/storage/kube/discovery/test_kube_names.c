/* The table of resources: what each typed name finds, and documents that are not as they should be. */
#include "kube_names.h"

#include "vdtest.h"

static const char core[] =
	"{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/"
	"v2\",\"items\":[{\"metadata\":{},"
	"\"versions\":[{\"version\":\"v1\",\"freshness\":\"Current\",\"resources\":["
	"{\"resource\":\"pods\",\"responseKind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"},"
	"\"scope\":"
	"\"Namespaced\",\"singularResource\":\"pod\",\"shortNames\":[\"po\"],\"verbs\":[\"list\",\"watch\"],"
	"\"subresources\":[{\"subresource\":\"log\"}]},"
	"{\"resource\":\"nodes\",\"responseKind\":{\"kind\":\"Node\"},\"scope\":\"Cluster\","
	"\"singularResource\":"
	"\"node\",\"shortNames\":[\"no\",\"nd\"]},"
	"{\"resource\":\"events\",\"responseKind\":{\"kind\":\"Event\"},\"scope\":\"Namespaced\","
	"\"singularResource\":\"event\",\"shortNames\":[\"ev\"]}]}]}]}";

static const char groups[] =
	"{\"kind\":\"APIGroupDiscoveryList\",\"items\":["
	"{\"metadata\":{\"name\":\"apps\"},\"versions\":[{\"version\":\"v1\",\"resources\":[{\"resource\":"
	"\"deployments\",\"responseKind\":{\"kind\":\"Deployment\"},\"scope\":\"Namespaced\","
	"\"singularResource\":"
	"\"deployment\",\"shortNames\":[\"deploy\"]}]},{\"version\":\"v1beta1\",\"resources\":[{\"resource\":"
	"\"deployments\",\"responseKind\":{\"kind\":\"Deployment\"},\"scope\":\"Namespaced\","
	"\"singularResource\":"
	"\"deployment\",\"shortNames\":[\"deploy\"]},{\"resource\":\"olds\",\"scope\":\"Cluster\"}]}]},"
	"{\"metadata\":{\"name\":\"networking.k8s.io\"},\"versions\":[{\"version\":\"v1\",\"resources\":[{"
	"\"resource\":\"ingresses\",\"responseKind\":{\"kind\":\"Ingress\"},\"scope\":\"Namespaced\","
	"\"singularResource\":\"ingress\",\"shortNames\":[\"ing\"]}]}]},"
	"{\"metadata\":{\"name\":\"events.k8s.io\"},\"versions\":[{\"version\":\"v1\",\"resources\":[{"
	"\"resource\":\"events\",\"responseKind\":{\"kind\":\"Event\"},\"scope\":\"Namespaced\","
	"\"singularResource\":\"event\",\"shortNames\":[\"ev\"]}]}]},"
	"{\"metadata\":{\"name\":\"example.com\"},\"versions\":[{\"version\":\"v2\",\"resources\":[{"
	"\"resource\":\"po\",\"responseKind\":{\"kind\":\"River\"},\"scope\":\"Cluster\","
	"\"singularResource\":"
	"\"\"}]}]},"
	"{\"metadata\":{\"name\":\"metrics.k8s.io\"},\"versions\":[{\"version\":\"v1beta1\",\"freshness\":"
	"\"Stale\"}]}]}";

static void read_both(struct vdi_kube_names *names)
{
	struct vd_error error;

	memset(names, 0, sizeof *names);
	assert_status(vdi_kube_names_read_groups(names, true, vd_bytes_of(core), &error), VD_OK);
	assert_status(vdi_kube_names_read_groups(names, false, vd_bytes_of(groups), &error), VD_OK);
}

/* Writes what typed finds, such as "apps/v1/deployments". */
static const char *found(const struct vdi_kube_names *names, const char *typed)
{
	static char		    text[1024];
	const struct vdi_kube_name *name;
	struct vd_error		    error = { 0 };
	vd_status		    status = vdi_kube_names_find(names, typed, &name, &error);

	if (status != VD_OK) {
		assert_int_equal(error.code, status);
		return vd_status_name(status);
	}
	snprintf(text, sizeof text, "%s/%s/%s%s", name->group, name->version, name->plural,
		 name->cluster_scoped ? "!" : "");
	return text;
}

static void names_are_found_as_kubectl_does(void **state)
{
	static const struct {
		const char *typed, *found;
	} cases[] = {
		{ "pods", "/v1/pods" },
		{ "pod", "/v1/pods" },
		{ "Pod", "/v1/pods" },
		{ "PODS", "/v1/pods" },
		{ "pods.v1", "/v1/pods" },
		{ "pods.v1.", "/v1/pods" },
		{ "pods.", "/v1/pods" },
		{ "pods.v2", "not_found" },
		{ "nodes", "/v1/nodes!" },
		{ "nd", "/v1/nodes!" },
		{ "no", "/v1/nodes!" },
		{ "n", "not_found" },
		/* a plural name of any group wins over a short name */
		{ "po", "example.com/v2/po!" },
		{ "River", "example.com/v2/po!" },
		{ "events", "/v1/events" },
		{ "ev", "/v1/events" },
		{ "events.events.k8s.io", "events.k8s.io/v1/events" },
		{ "ev.events.k8s.io", "events.k8s.io/v1/events" },
		{ "deployments", "apps/v1/deployments" },
		{ "deploy", "apps/v1/deployments" },
		{ "deploy.apps", "apps/v1/deployments" },
		{ "Deployment.apps", "apps/v1/deployments" },
		{ "deployments.v1.apps", "apps/v1/deployments" },
		{ "deployments.v1beta1.apps", "apps/v1beta1/deployments" },
		{ "deployments.v3.apps", "not_found" },
		{ "deployments.extensions", "not_found" },
		{ "olds", "apps/v1beta1/olds!" },
		{ "olds.apps", "apps/v1beta1/olds!" },
		/* a group may be typed up to any of its letters */
		{ "ingresses.networking", "networking.k8s.io/v1/ingresses" },
		{ "ing.net", "networking.k8s.io/v1/ingresses" },
		{ "pods.metrics.k8s.io", "unavailable" },
		{ "pods.v1beta1.metrics.k8s.io", "unavailable" },
		{ "", "invalid_argument" },
		{ ".", "invalid_argument" },
		{ "pods/log", "invalid_argument" },
		{ "po ds", "invalid_argument" },
		{ "../pods", "invalid_argument" },
	};
	struct vdi_kube_names names;

	read_both(&names);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++)
		if (strcmp(found(&names, cases[i].typed), cases[i].found) != 0)
			fail_msg("\"%s\" finds %s, not %s", cases[i].typed, found(&names, cases[i].typed),
				 cases[i].found);
	vdi_kube_names_fini(&names);
}

static void missing_groups_are_in_the_message(void **state)
{
	const struct vdi_kube_name *name;
	struct vdi_kube_names	    names;
	struct vd_error		    error;

	read_both(&names);
	assert_status(vdi_kube_names_find(&names, "things", &name, &error), VD_NOT_FOUND);
	assert_string_equal(error.message,
			    "the server does not have a resource type \"things\"; unavailable: "
			    "metrics.k8s.io/v1beta1");
	vdi_kube_names_fini(&names);
}

static void plain_documents(void **state)
{
	static const char api[] = "{\"kind\":\"APIVersions\",\"versions\":[\"v1\",7,\"\"]}";
	static const char apis[] =
		"{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"a\",\"versions\":[{\"version\":\"v1\"},{"
		"\"version\":\"v2\"}],\"preferredVersion\":{\"version\":\"v2\"}},{\"name\":\"\"},{},7,null]}";
	static const char     list[] = "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"xs\","
				       "\"singularName\":\"\",\"namespaced\":"
				       "true,\"kind\":\"X\",\"shortNames\":[\"x1\",\"x2\"]},{\"name\":\"xs/"
				       "status\",\"kind\":\"X\"}]}";
	struct vdi_kube_names names = { 0 };
	struct vd_error	      error;

	assert_status(vdi_kube_names_read_groups(&names, true, vd_bytes_of(api), &error), VD_OK);
	assert_status(vdi_kube_names_read_groups(&names, false, vd_bytes_of(apis), &error), VD_OK);
	assert_int_equal(names.version_count, 3);
	assert_string_equal(names.versions[0].group, "");
	assert_string_equal(names.versions[0].version, "v1");
	assert_string_equal(names.versions[1].version, "v2"); /* preferred */
	assert_string_equal(names.versions[2].version, "v1");
	assert_status(vdi_kube_names_read_version(&names, &names.versions[1], vd_bytes_of(list), &error),
		      VD_OK);
	assert_int_equal(names.count, 1); /* no subresource */
	assert_string_equal(found(&names, "x2"), "a/v2/xs");
	vdi_kube_names_fini(&names);
}

/* Documents that are not discovery at all, or have members of other types. */
static void documents_of_other_shapes(void **state)
{
	static const struct {
		const char *document;
		vd_status   status;
	} cases[] = {
		{ "", VD_BAD_REQUEST },
		{ "<html>", VD_BAD_REQUEST },
		{ "{}", VD_BAD_REQUEST },
		{ "[]", VD_BAD_REQUEST },
		{ "7", VD_BAD_REQUEST },
		{ "{\"kind\":7}", VD_BAD_REQUEST },
		{ "{\"kind\":\"Status\"}", VD_BAD_REQUEST },
		{ "{\"kind\":\"APIVersions\"}", VD_BAD_REQUEST }, /* of /api */
		{ "{\"kind\":\"APIGroupList\"}", VD_OK },
		{ "{\"kind\":\"APIGroupList\",\"groups\":{}}", VD_OK },
		{ "{\"kind\":\"APIGroupList\",\"groups\":[[[]]]}", VD_OK },
		{ "{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"../"
		  "a\",\"versions\":[{\"version\":\"v1\"}]}]}",
		  VD_OK },
		{ "{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"a\",\"versions\":[{\"version\":\"v/"
		  "1\"}]}]}",
		  VD_OK },
		{ "{\"kind\":\"APIGroupDiscoveryList\",\"items\":7}", VD_OK },
		{ "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[7,null,{},{\"metadata\":{\"name\":\"a\"},"
		  "\"versions\":[7,{},{\"version\":{}},{\"version\":\"v1\",\"resources\":{}},{\"version\":"
		  "\"v1\","
		  "\"resources\":[7,[],{},{\"resource\":7},{\"resource\":\"a b\"},{\"resource\":\"..\"},"
		  "{\"resource\":\"b/c\"}]}]}]}",
		  VD_OK },
	};
	/* A version without a name has no path, whatever resources it lists. */
	static const char nameless[] =
		"{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":"
		"\"a\"},\"versions\":[{\"resources\":[{\"resource\":\"b\"}]},"
		"{\"version\":\"v1\",\"resources\":[{\"resource\":\"c\"}]}]}]}";
	struct vdi_kube_names names = { 0 };

	assert_status(vdi_kube_names_read_groups(&names, false, vd_bytes_of(nameless), NULL), VD_OK);
	assert_int_equal(names.count, 1);
	assert_string_equal(found(&names, "c"), "a/v1/c!");
	assert_string_equal(found(&names, "b"), "not_found");
	vdi_kube_names_fini(&names);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vd_error error = { 0 };
		vd_status	status =
			vdi_kube_names_read_groups(&names, false, vd_bytes_of(cases[i].document), &error);

		if (status != cases[i].status)
			fail_msg("%s: %s %s", cases[i].document, vd_status_name(status), error.message);
		assert_int_equal(names.count, 0);
		assert_int_equal(names.version_count, 0);
		vdi_kube_names_fini(&names);
	}
}

/* ---- Sizes ---- */

/* Writes head, then `count` times the piece with a number, separated by commas, then tail. */
static char *repeated(const char *head, const char *piece, size_t count, const char *tail)
{
	size_t size = strlen(head) + strlen(tail) + count * (strlen(piece) + 24) + 1, used;
	char  *text = malloc(size);

	assert_non_null(text);
	used = (size_t) snprintf(text, size, "%s", head);
	for (size_t i = 0; i < count; i++) {
		used += (size_t) snprintf(text + used, size - used, "%s", i ? "," : "");
		used += (size_t) snprintf(text + used, size - used, piece, i);
	}
	snprintf(text + used, size - used, "%s", tail);
	return text;
}

static vd_status read_repeated(const char *head, const char *piece, size_t count, const char *tail,
			       struct vdi_kube_names *ret_names)
{
	struct vdi_kube_names names = { 0 };
	char		     *text = repeated(head, piece, count, tail);
	struct vd_error	      error = { 0 };
	vd_status	      status = vdi_kube_names_read_groups(&names, false, vd_bytes_of(text), &error);

	free(text);
	if (ret_names)
		*ret_names = names;
	else
		vdi_kube_names_fini(&names);
	return status;
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void	       huge_and_deep_documents(void **state)
{
	static const char group[] =
		"{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"a\"},"
		"\"versions\":[{\"version\":\"v1\",\"resources\":[";
	static const char     list[] = "{\"kind\":\"APIGroupList\",\"groups\":[";
	struct vdi_kube_names names;
	char		     *deep = malloc(200001);

	/* many resources: all, or an error */
	assert_status(read_repeated(group, "{\"resource\":\"r%zu\"}", 50000, "]}]}]}", &names), VD_OK);
	assert_int_equal(names.count, 50000);
	assert_string_equal(found(&names, "r49999"), "a/v1/r49999!");
	vdi_kube_names_fini(&names);
	assert_status(read_repeated(group, "{\"resource\":\"r%zu\"}", 50001, "]}]}]}", NULL), VD_TOO_BIG);
	/* many versions to read one after the other */
	assert_status(read_repeated(list, "{\"name\":\"g%zu\",\"versions\":[{\"version\":\"v1\"}]}", 2000,
				    "]}", NULL),
		      VD_OK);
	assert_status(read_repeated(list, "{\"name\":\"g%zu\",\"versions\":[{\"version\":\"v1\"}]}", 2001,
				    "]}", NULL),
		      VD_TOO_BIG);
	/* many small values, whose tree would be large */
	assert_status(read_repeated(list, "%zu", 600000, "]}", NULL), VD_TOO_BIG);
	/* many short names */
	assert_status(
		read_repeated("{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"a\"},"
			      "\"versions\":[{\"version\":\"v1\",\"resources\":[{\"resource\":\"x\","
			      "\"shortNames\":[",
			      "\"s%zu\"", 1000, "]}]}]}]}", &names),
		VD_OK);
	assert_string_equal(found(&names, "s15"), "a/v1/x!");
	assert_string_equal(found(&names, "s16"), "not_found");
	vdi_kube_names_fini(&names);
	memset(deep, '[', 200000);
	deep[200000] = 0;
	memset(&names, 0, sizeof names);
	assert_status(vdi_kube_names_read_groups(&names, false, vd_bytes_of(deep), NULL), VD_BAD_REQUEST);
	vdi_kube_names_fini(&names);
	free(deep);
}

static void torture_allocations(void **state)
{
	for (uint64_t nth = 1;; nth++) {
		struct vdi_kube_names names = { 0 };
		struct vd_error	      error;
		vd_status	      status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_kube_names_read_groups(&names, true, vd_bytes_of(core), &error);
		if (status == VD_OK)
			status = vdi_kube_names_read_groups(&names, false, vd_bytes_of(groups), &error);
		if (!vdi_alloc_failed()) {
			vdi_alloc_fail_nth(0, 0);
			assert_status(status, VD_OK);
			vdi_kube_names_fini(&names);
			break;
		}
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, VD_NOMEM);
		vdi_kube_names_fini(&names);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found_as_kubectl_does),
		cmocka_unit_test(missing_groups_are_in_the_message),
		cmocka_unit_test(plain_documents),
		cmocka_unit_test(documents_of_other_shapes),
		cmocka_unit_test(huge_and_deep_documents),
		cmocka_unit_test(torture_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
