/* Discovery: one reading for all callers, repeated readings, and unavailable servers and groups. */
#include "kube_discovery.h"

#include "actor_sim.h"
#include "kube_client.h"
#include "kube_routes.h"
#include "vdtest.h"

static const char aggregated_core[] =
	"{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{},\"versions\":[{\"version\":\"v1\","
	"\"resources\":[{\"resource\":\"pods\",\"responseKind\":{\"kind\":\"Pod\"},\"scope\":\"Namespaced\","
	"\"singularResource\":\"pod\",\"shortNames\":[\"po\"]}]}]}]}";
static const char aggregated_groups[] =
	"{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"apps\"},\"versions\":[{"
	"\"version\":\"v1\",\"resources\":[{\"resource\":\"deployments\",\"responseKind\":{\"kind\":"
	"\"Deployment\"},\"scope\":\"Namespaced\"}]}]}]}";
static const char more_groups[] =
	"{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"shop\"},\"versions\":[{"
	"\"version\":\"v1\",\"resources\":[{\"resource\":\"carts\",\"responseKind\":{\"kind\":\"Cart\"},"
	"\"scope\":\"Cluster\"}]}]}]}";
static const char plain_core[] = "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}";
static const char plain_groups[] = "{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"apps\",\"versions\":[{"
				   "\"version\":\"v1\"}]},{\"name\":"
				   "\"metrics\",\"versions\":[{\"version\":\"v1beta1\"}]},{\"name\":\"shop\","
				   "\"versions\":[{\"version\":\"v1\"}]"
				   "}]}";
static const char plain_v1[] =
	"{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"pods\",\"singularName\":\"pod\","
	"\"namespaced\":true,"
	"\"kind\":\"Pod\",\"shortNames\":[\"po\"]},{\"name\":\"pods/log\",\"kind\":\"Pod\"}]}";
static const char plain_apps[] =
	"{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"deployments\",\"namespaced\":true,\"kind\":"
	"\"Deployment\"}]}";
static const char plain_shop[] = "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"carts\","
				 "\"namespaced\":false,\"kind\":\"Cart\"}]}";

static struct kube_routes routes;

struct fixture {
	struct vd_env  *env;
	struct vd_kube *kube;
};

/* The answer of one find. */
struct found {
	unsigned	count;
	vd_status	status;
	char		text[256];
	char		message[VD_ERROR_MESSAGE_SIZE];
	struct vd_kube *again; /* not NULL: one more find inside the callback */
	struct found   *next;
};

static void on_found(void *arg, vd_status status, const struct vd_kube_resource *resource,
		     const struct vd_error *error)
{
	struct found *found = arg;

	found->count++;
	found->status = status;
	if (status == VD_OK)
		snprintf(found->text, sizeof found->text, "%s/%s/%s %s%s", resource->group, resource->version,
			 resource->plural, resource->kind, resource->cluster_scoped ? "!" : "");
	else
		snprintf(found->message, sizeof found->message, "%s", error->message);
	if (found->again)
		found->next->status = vd_kube_find(found->again, "pods", on_found, found->next);
}

static void setup(struct fixture *f, uint64_t seed)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_error	       error;

	kube_routes_init(&routes);
	routes.piece = 7;
	options.server = "http://server";
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &f->env), VD_OK);
	assert_status(vdi_kube_open_over(f->env, &options, kube_routes_transport, &f->kube, &error), VD_OK);
}

static void teardown(struct fixture *f)
{
	f->kube = vd_kube_close_wait(f->kube);
	f->env = vd_env_free(f->env);
}

static void serve_aggregated(void)
{
	routes.is_aggregated = true;
	kube_routes_set(&routes, "/api", 200, aggregated_core)->plain = plain_core;
	kube_routes_set(&routes, "/apis", 200, aggregated_groups)->plain = plain_groups;
}

static void serve_plain(void)
{
	kube_routes_set(&routes, "/api", 200, plain_core);
	kube_routes_set(&routes, "/apis", 200, plain_groups);
	kube_routes_set(&routes, "/api/v1", 200, plain_v1);
	kube_routes_set(&routes, "/apis/apps/v1", 200, plain_apps);
	kube_routes_set(&routes, "/apis/shop/v1", 200, plain_shop);
	kube_routes_set(&routes, "/apis/metrics/v1beta1", 503, "service unavailable");
}

static bool is_found(void *arg)
{
	return ((struct found *) arg)->count > 0;
}

static struct found find(struct fixture *f, const char *name)
{
	struct found found = { 0 };

	assert_status(vd_kube_find(f->kube, name, on_found, &found), VD_OK);
	assert_int_equal(found.count, 0); /* never inside the call */
	assert_true(vdi_sim_run_until(f->env, is_found, &found, VD_SECONDS(200)));
	vdi_sim_run_until_idle(f->env);
	assert_int_equal(found.count, 1);
	return found;
}

static void aggregated_discovery_needs_two_requests(void **state)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct fixture f;

		setup(&f, seed);
		serve_aggregated();
		assert_string_equal(find(&f, "po").text, "/v1/pods Pod");
		assert_string_equal(find(&f, "deployments.apps").text, "apps/v1/deployments Deployment");
		assert_int_equal(routes.requests, 2);
		teardown(&f);
	}
}

static void plain_discovery_reads_each_version(void **state)
{
	struct fixture f;

	setup(&f, 1);
	serve_plain();
	assert_string_equal(find(&f, "Pod").text, "/v1/pods Pod");
	assert_string_equal(find(&f, "carts").text, "shop/v1/carts Cart!");
	assert_int_equal(routes.requests, 6);
	assert_int_equal(routes.opened_max, 1);
	teardown(&f);
}

/* A server with a core group only, and one without it. */
static void a_missing_list_of_groups_is_empty(void **state)
{
	struct fixture f;

	setup(&f, 1);
	kube_routes_set(&routes, "/api", 200, plain_core);
	kube_routes_set(&routes, "/api/v1", 200, plain_v1);
	assert_string_equal(find(&f, "pods").text, "/v1/pods Pod");
	assert_status(find(&f, "carts").status, VD_NOT_FOUND);
	teardown(&f);

	setup(&f, 1);
	kube_routes_set(&routes, "/apis", 200, plain_groups);
	kube_routes_set(&routes, "/apis/shop/v1", 200, plain_shop);
	assert_string_equal(find(&f, "carts").text, "shop/v1/carts Cart!");
	assert_status(find(&f, "pods").status, VD_NOT_FOUND);
	teardown(&f);
}

/* The group "metrics" is down. */
static void an_unavailable_group_hides_no_other(void **state)
{
	struct fixture f;
	struct found   found;

	setup(&f, 1);
	serve_plain();
	assert_string_equal(find(&f, "carts").text, "shop/v1/carts Cart!");
	found = find(&f, "nothing");
	assert_status(found.status, VD_NOT_FOUND);
	assert_non_null(strstr(found.message, "unavailable: metrics/v1beta1"));
	assert_status(find(&f, "pods.metrics").status, VD_UNAVAILABLE);
	kube_routes_set(&routes, "/apis/metrics/v1beta1", 200, plain_v1);
	vdi_sim_advance(f.env, VD_SECONDS(11));
	assert_string_equal(find(&f, "pods.metrics").text, "metrics/v1beta1/pods Pod");
	teardown(&f);
}

static void a_group_that_answers_nonsense_hides_no_other(void **state)
{
	static const char *const bodies[] = { "", "<html>", "[]", "{\"kind\":\"Status\"}" };
	struct fixture		 f;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(bodies); i++) {
		setup(&f, 1);
		serve_plain();
		kube_routes_set(&routes, "/apis/metrics/v1beta1", 200, bodies[i]);
		assert_string_equal(find(&f, "carts").text, "shop/v1/carts Cart!");
		assert_status(find(&f, "pods.metrics").status, VD_UNAVAILABLE);
		teardown(&f);
	}
}

static void one_reading_for_all_callers(void **state)
{
	struct fixture f;
	struct found   found[100] = { 0 };

	setup(&f, 1);
	serve_aggregated();
	routes.delay = VD_SECONDS(1);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(found); i++) {
		assert_status(vd_kube_find(f.kube, i % 2 ? "po" : "nothing", on_found, &found[i]), VD_OK);
		vdi_sim_advance(f.env, VD_MS(10));
	}
	vdi_sim_advance(f.env, VD_SECONDS(10));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(found); i++) {
		assert_int_equal(found[i].count, 1);
		assert_status(found[i].status, i % 2 ? VD_OK : VD_NOT_FOUND);
	}
	assert_int_equal(routes.requests, 2);
	assert_int_equal(routes.opened_max, 1);
	teardown(&f);
}

static void a_missing_name_is_read_again_after_ten_seconds(void **state)
{
	struct fixture f;

	setup(&f, 1);
	serve_aggregated();
	assert_status(find(&f, "carts").status, VD_NOT_FOUND);
	kube_routes_set(&routes, "/apis", 200, more_groups);
	vdi_sim_advance(f.env, VD_SECONDS(9));
	assert_status(find(&f, "carts").status, VD_NOT_FOUND);
	assert_int_equal(routes.requests, 2);
	vdi_sim_advance(f.env, VD_SECONDS(2));
	assert_string_equal(find(&f, "carts").text, "shop/v1/carts Cart!");
	assert_int_equal(routes.requests, 4);
	assert_string_equal(find(&f, "pods").text, "/v1/pods Pod"); /* known: no request, at any time */
	vdi_sim_advance(f.env, VD_SECONDS(1000));
	assert_string_equal(find(&f, "pods").text, "/v1/pods Pod");
	assert_int_equal(routes.requests, 4);
	teardown(&f);
}

static void a_fresh_find_reads_again(void **state)
{
	struct found   found = { 0 };
	struct fixture f;

	setup(&f, 1);
	serve_aggregated();
	assert_status(find(&f, "deployments").status, VD_OK);
	kube_routes_set(&routes, "/apis", 200, more_groups);
	vdi_sim_advance(f.env, VD_SECONDS(20));
	assert_status(find(&f, "deployments").status, VD_OK);
	assert_status(vdi_kube_find(f.kube, "deployments", VDI_KUBE_FIND_FRESH, on_found, &found), VD_OK);
	vdi_sim_advance(f.env, VD_SECONDS(1));
	assert_status(found.status, VD_NOT_FOUND);
	assert_int_equal(routes.requests, 4);
	teardown(&f);
}

/* Lost connections and answers that mean "later" are repeated; others are the result. */
/* It is not repeated until the time for discovery is over. */
static void a_redirect_is_the_answer(void **state)
{
	struct fixture f;
	struct found   found;

	(void) state;
	setup(&f, 4);
	serve_aggregated();
	kube_routes_set(&routes, "/api", 302, "<html>log in</html>")->location = "https://login.example/";
	found = find(&f, "pods");
	assert_status(found.status, VD_UNAVAILABLE);
	assert_non_null(strstr(found.message, "a redirect to https://login.example/: "));
	assert_int_equal(kube_routes_at(&routes, "/api")->requests, 1);
	teardown(&f);
}

static void failures_of_the_server(void **state)
{
	struct fixture f;
	struct found   found;

	setup(&f, 3);
	found = (struct found) { 0 };
	kube_routes_set(&routes, "/api", 0, "");
	assert_status(vd_kube_find(f.kube, "pods", on_found, &found), VD_OK);
	vdi_sim_advance(f.env, VD_SECONDS(5));
	assert_int_equal(found.count, 0);
	assert_true(routes.requests >= 3);
	serve_aggregated();
	kube_routes_set(&routes, "/apis", 429, "")->retry_after_s = 3;
	vdi_sim_advance(f.env, VD_SECONDS(20));
	assert_int_equal(found.count, 0);
	serve_aggregated();
	vdi_sim_advance(f.env, VD_SECONDS(20));
	assert_string_equal(found.text, "/v1/pods Pod");
	teardown(&f);

	setup(&f, 4);
	kube_routes_set(&routes, "/api", 0, "");
	found = find(&f, "pods");
	assert_status(found.status, VD_UNAVAILABLE);
	assert_string_equal(found.message, "discovery, /api: connection reset by peer");
	serve_aggregated(); /* the error is the answer for a second, not longer */
	vdi_sim_advance(f.env, (vd_dur) { VD_SECONDS(1).ns - 1 });
	assert_status(find(&f, "pods").status, VD_UNAVAILABLE);
	vdi_sim_advance(f.env, (vd_dur) { 1 });
	assert_status(find(&f, "pods").status, VD_OK);
	teardown(&f);

	setup(&f, 5);
	kube_routes_set(
		&routes, "/api", 403,
		"{\"kind\":\"Status\",\"message\":\"forbidden: no\",\"reason\":\"Forbidden\",\"code\":403}");
	found = find(&f, "pods");
	assert_status(found.status, VD_FORBIDDEN);
	assert_non_null(strstr(found.message, "forbidden: no"));
	assert_int_equal(routes.requests, 1);
	teardown(&f);

	setup(&f, 6);
	kube_routes_set(&routes, "/api", 200, "<html>");
	assert_status(find(&f, "pods").status, VD_BAD_REQUEST);
	teardown(&f);
}

/* Names that were known are answered while the server is down. */
static void known_names_survive_an_outage(void **state)
{
	struct fixture f;

	setup(&f, 1);
	serve_aggregated();
	assert_status(find(&f, "pods").status, VD_OK);
	kube_routes_set(&routes, "/api", 0, "");
	vdi_sim_advance(f.env, VD_SECONDS(20));
	assert_status(find(&f, "nothing").status, VD_UNAVAILABLE);
	assert_status(find(&f, "pods").status, VD_OK);
	teardown(&f);
}

static void an_endless_document_is_cut(void **state)
{
	struct fixture	   f;
	const size_t	   size = (size_t) 17 << 20;
	char		  *body = malloc(size);
	struct kube_route *route;
	struct found	   found;

	assert_non_null(body);
	memset(body, ' ', size);
	setup(&f, 1);
	routes.piece = 1 << 16;
	route = kube_routes_set(&routes, "/api", 200, body);
	route->size = size;
	found = find(&f, "pods");
	assert_status(found.status, VD_TOO_BIG);
	assert_non_null(strstr(found.message, "/api: the response has more than 16777216 bytes"));
	assert_int_equal(routes.open, 0);
	teardown(&f);
	free(body);
}

static void thousands_of_groups(void **state)
{
	static char    paths[2500][32];
	struct fixture f;
	char	      *list = malloc(300000);
	size_t	       used = (size_t) sprintf(list, "{\"kind\":\"APIGroupList\",\"groups\":[");
	size_t	       i;

	setup(&f, 1);
	serve_plain();
	for (i = 0; i < 1900; i++) {
		used += (size_t) sprintf(list + used,
					 "{\"name\":\"g%zu\",\"versions\":[{\"version\":\"v1\"}]},", i);
		snprintf(paths[i], sizeof paths[i], "/apis/g%zu/v1", i);
		kube_routes_set(&routes, paths[i], 200, plain_apps);
	}
	sprintf(list + used, "7]}");
	kube_routes_set(&routes, "/apis", 200, list);
	assert_string_equal(find(&f, "deployments.g1899").text, "g1899/v1/deployments Deployment");
	assert_int_equal(routes.requests, 1903);
	teardown(&f);
	free(list);
}

static void closing_answers_every_find(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct found   second = { 0 }, first = { .next = &second };
		struct fixture f;

		setup(&f, seed);
		serve_aggregated();
		routes.is_silent = seed % 2;
		first.again = f.kube;
		assert_status(vd_kube_find(f.kube, "pods", on_found, &first), VD_OK);
		if (seed % 3)
			vdi_sim_advance(f.env, VD_SECONDS(1));
		teardown(&f);
		assert_int_equal(first.count, 1);
		if (routes.is_silent) {
			assert_status(first.status, VD_CLOSED);
			assert_status(second.status, VD_CLOSED);
			assert_int_equal(second.count, 0);
		}
	}
}

static void paths_of_objects(void **state)
{
	static const struct vd_kube_resource pods = { "", "v1", "pods", NULL, false },
					     nodes = { NULL, "v1", "nodes", NULL, true },
					     apps = { "apps", "v1", "deployments", NULL, false };
	const struct vd_bytes none = VD_BYTES_NONE, a = vd_bytes_of("a"), b = vd_bytes_of("b");
	char		      path[64];

	assert_int_equal(vd_kube_path(&pods, a, b, path, sizeof path), 27);
	assert_string_equal(path, "/api/v1/namespaces/a/pods/b");
	(void) vd_kube_path(&pods, none, none, path, sizeof path);
	assert_string_equal(path, "/api/v1/pods");
	(void) vd_kube_path(&nodes, a, b, path, sizeof path);
	assert_string_equal(path, "/api/v1/nodes/b");
	(void) vd_kube_path(&apps, a, none, path, sizeof path);
	assert_string_equal(path, "/apis/apps/v1/namespaces/a/deployments");
	(void) vd_kube_path(&nodes, none, vd_bytes_of("a/../b?c#d%\xc3\xa9"), path, sizeof path);
	assert_string_equal(path, "/api/v1/nodes/a%2F..%2Fb%3Fc%23d%25%C3%A9");
	(void) vd_kube_path(&nodes, none, vd_bytes_of("azAZ09-._~ +@:&=!*"), path, sizeof path);
	assert_string_equal(path, "/api/v1/nodes/azAZ09-._~%20%2B%40%3A%26%3D%21%2A");
	assert_int_equal(vd_kube_path(&nodes, none, b, path, 8), 15);
	assert_string_equal(path, "/api/v1");
	assert_int_equal(vd_kube_path(&nodes, none, b, NULL, 0), 15);
}

/* No byte of a name ends the segment or the path. */
static void each_byte_of_a_name_stays_in_its_segment(void **state)
{
	static const struct vd_kube_resource nodes = { NULL, "v1", "nodes", NULL, true };
	char				     path[64], expected[64];

	for (int byte = 0; byte < 256; byte++) {
		const unsigned char name[] = { 'a', (unsigned char) byte, 'b' };
		bool		    is_plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
				(byte >= 'a' && byte <= 'z') || (byte && strchr("-._~", byte));

		snprintf(expected, sizeof expected,
			 is_plain ? "/api/v1/nodes/a%cb" : "/api/v1/nodes/a%%%02Xb", byte);
		assert_int_equal(
			vd_kube_path(&nodes, VD_BYTES_NONE, (struct vd_bytes) { name, 3 }, path, sizeof path),
			strlen(expected));
		assert_string_equal(path, expected);
	}
}

static void torture_allocations(void **state)
{
	for (int plain = 0; plain < 2; plain++)
		for (uint64_t nth = 1;; nth++) {
			struct fixture f;
			struct found   found = { 0 };
			vd_status      status;
			bool	       failed;

			setup(&f, 1);
			if (plain)
				serve_plain();
			else
				serve_aggregated();
			vdi_alloc_fail_nth(nth, 1);
			status = vd_kube_find(f.kube, "deployments", on_found, &found);
			if (status == VD_OK)
				vdi_sim_advance(f.env, VD_SECONDS(100));
			failed = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			assert_int_equal(found.count, status == VD_OK);
			if (status != VD_OK || found.status != VD_OK)
				assert_status(status != VD_OK ? status : found.status, VD_NOMEM);
			teardown(&f);
			if (!failed)
				break;
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aggregated_discovery_needs_two_requests),
		cmocka_unit_test(plain_discovery_reads_each_version),
		cmocka_unit_test(a_missing_list_of_groups_is_empty),
		cmocka_unit_test(an_unavailable_group_hides_no_other),
		cmocka_unit_test(a_group_that_answers_nonsense_hides_no_other),
		cmocka_unit_test(one_reading_for_all_callers),
		cmocka_unit_test(a_missing_name_is_read_again_after_ten_seconds),
		cmocka_unit_test(a_fresh_find_reads_again),
		cmocka_unit_test(a_redirect_is_the_answer),
		cmocka_unit_test(failures_of_the_server),
		cmocka_unit_test(known_names_survive_an_outage),
		cmocka_unit_test(an_endless_document_is_cut),
		cmocka_unit_test(thousands_of_groups),
		cmocka_unit_test(closing_answers_every_find),
		cmocka_unit_test(paths_of_objects),
		cmocka_unit_test(each_byte_of_a_name_stays_in_its_segment),
		cmocka_unit_test(torture_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
