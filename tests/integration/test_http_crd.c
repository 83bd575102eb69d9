/* CustomResourceDefinitions that are created, changed and deleted while the server runs. The server is in
 * this process. */
#include <unistd.h>

#include "http_definitions.h"
#include "http_fixture.h"

#define COLOURED                                                                                             \
	"\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":"     \
	"true,\"properties\":{\"spec\":{\"type\":\"object\","                                                \
	"\"x-kubernetes-preserve-unknown-fields\":true,\"properties\":{\"color\":{\"type\":\"string\"}}}}}}"

static void a_definition_is_served_when_it_is_established(void **state)
{
	static const char versions[] =
		"{\"name\":\"v1\",\"served\":true,\"storage\":true," COLOURED
		",\"subresources\":{\"status\":{},\"scale\":{\"specReplicasPath\":\".spec.deep.count\","
		"\"statusReplicasPath\":\".status.count\",\"labelSelectorPath\":\".status.selector\"}},"
		"\"selectableFields\":[{\"jsonPath\":\".spec.color\"}],"
		"\"additionalPrinterColumns\":[{\"name\":\"Count\",\"type\":\"integer\",\"jsonPath\":\".spec."
		"deep.count\"},"
		"{\"name\":\"Ready\",\"type\":\"string\",\"jsonPath\":\".status.conditions[?(@.type=="
		"\\\"Ready\\\")].status\"},"
		"{\"name\":\"Odd\",\"type\":\"boolean\",\"jsonPath\":\".spec.color\"},{\"name\":\"Color\","
		"\"type\":\"string\",\"jsonPath\":\".spec['color']\"}]}";

	definitions_expect("GET", WIDGETS("v1"), "", "", 404, "could not find");
	definitions_create("widgets", "Widget", versions,
			   ",\"shortNames\":[\"wd\"],\"categories\":[\"all\"]");
	definitions_await_established("widgets");
	definitions_expect(
		"GET", CRDS "/widgets.example.com", "", "", 200,
		"\"acceptedNames\":{\"plural\":\"widgets\",\"kind\":\"Widget\",\"shortNames\":[\"wd\"]");
	definitions_expect(
		"GET", "/apis/example.com/v1", "", "", 200,
		"{\"name\":\"widgets\",\"singularName\":\"widget\",\"namespaced\":true,\"kind\":\"Widget\","
		"\"verbs\":[\"create\"");
	definitions_expect("GET", "/openapi/v3", "", "", 200, "apis/example.com/v1");
	definitions_expect("GET", "/readyz?verbose", "", "", 200, "cache/widgets.example.com ok");
	definitions_expect("GET", "/debug/vedette", "", "", 200, "\"resource\":\"widgets.example.com\"");
	definitions_expect(
		"POST", WIDGETS("v1"), JSON,
		WIDGET("v1", "a",
		       ",\"spec\":{\"color\":\"red\",\"deep\":{\"count\":2}},\"status\":{\"x\":1}"),
		201, "\"generation\":1");
	definitions_lack(WIDGETS("v1") "/a", "\"status\":");
	definitions_expect("PATCH", WIDGETS("v1") "/a/status", MERGE,
			   "{\"status\":{\"count\":1,\"selector\":\"a=b\",\"conditions\":[{\"type\":"
			   "\"Ready\",\"status\":"
			   "\"True\"}]}}",
			   200, "\"generation\":1");
	definitions_expect("PATCH", WIDGETS("v1") "/a/scale", MERGE, "{\"spec\":{\"replicas\":7}}", 200,
			   "\"spec\":{\"replicas\":7},\"status\":{\"replicas\":1,\"selector\":\"a=b\"}");
	definitions_expect("GET", WIDGETS("v1") "/a", "", "", 200, "\"generation\":2");
	definitions_expect("GET", WIDGETS("v1"), TABLE, "", 200,
			   "{\"cells\":[\"a\",7,\"True\",null,\"red\"]");
	definitions_expect("GET", WIDGETS("v1") "?fieldSelector=spec.color%3Dred", "", "", 200,
			   "\"name\":\"a\"");
	definitions_lack(WIDGETS("v1") "?fieldSelector=spec.color%3Dblue", "\"name\":\"a\"");
	definitions_expect("GET", WIDGETS("v1") "?fieldSelector=spec.size%3D1", "", "", 400,
			   "field label not supported");
	definitions_expect("GET", "/metrics", "", "", 200, "resource=\"widgets\"");
}

static void a_schema_holds_for_its_objects(void **state)
{
	static const char versions[] = "{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
				       "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{"
				       "\"type\":\"object\",\"required\":[\"size\"],\"properties\":{\"size\":"
				       "{\"type\":\"integer\",\"minimum\":1,\"description\":\"How big.\"},"
				       "\"color\":{\"type\":\"string\",\"default\":\"red\"}}}}}}}";

	definitions_create("widgets", "Widget", versions, "");
	definitions_await_established("widgets");
	definitions_expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ",\"spec\":{\"size\":0}"), 422,
			   "spec.size");
	definitions_expect("POST", WIDGETS("v1"), JSON,
			   WIDGET("v1", "a", ",\"spec\":{\"size\":3,\"other\":1}"), 201, "\"color\":\"red\"");
	definitions_lack(WIDGETS("v1") "/a", "other");
	definitions_expect("GET", "/openapi/v3/apis/example.com/v1", "", "", 200, "How big.");
	definitions_expect(
		"PATCH", CRDS "/widgets.example.com?dryRun=All", MERGE,
		"{\"spec\":{\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
		"\"openAPIV3Schema\":{\"type\":\"object\","
		"\"x-kubernetes-validations\":[{\"rule\":\"true\"}]}}}]}}",
		200, "Warning: 299 - \"x-kubernetes-validations are kept");
}

#define UNFIT                                                                                                \
	"CustomResourceDefinition in version \\\"v1\\\" cannot be handled as a CustomResourceDefinition: "

static void definitions_are_checked(void **state)
{
	static const struct {
		const char *from, *to; /* the wrong text, and the right one */
		const char *part;
	} rows[] = {
		{ "widgets.example.com", "foo", "must be spec.names.plural+" },
		{ "\"group\":\"example.com\"", "\"group\":\"example\"",
		  "should be a domain with at least one dot" },
		{ "\"group\":\"example.com\"", "\"group\":\"x.k8s.io\"", "api-approved.kubernetes.io" },
		{ "Namespaced", "Anywhere", "spec.scope: Unsupported value" },
		{ "\"storage\":true", "\"storage\":false",
		  "must have exactly one version marked as storage version" },
		{ "\"name\":\"v1\"", "\"name\":\"V1\"", "spec.versions[0].name: Invalid value" },
		{ ANYTHING, "\"x\":1",
		  "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required" },
		{ "\"x-kubernetes-preserve-unknown-fields\":true", "\"nullable\":true",
		  "spec.versions[0].schema.openAPIV3Schema.nullable" },
		{ "\"kind\":\"Widget\"", "\"kind\":\"Widget\",\"listKind\":\"Widget\"",
		  "kind and listKind may not be the same" },
		{ "\"scope\"", "\"conversion\":{\"strategy\":\"Webhook\"},\"scope\"",
		  "this server calls no webhooks" },
		{ "\"scope\"", "\"preserveUnknownFields\":true,\"scope\"", "spec.preserveUnknownFields" },
		{ ANYTHING,
		  ANYTHING ",\"subresources\":{\"scale\":{\"specReplicasPath\":\".x\",\"statusReplicasPath\":"
			   "\".status.x\"}}",
		  "should be a json path under .spec" },
		{ ANYTHING,
		  ANYTHING
		  ",\"additionalPrinterColumns\":[{\"name\":\"a\",\"type\":\"text\",\"jsonPath\":\".x\"}]",
		  "must be one of boolean,date" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char *good = definitions_text("widgets", "Widget", V1, ""), *at = strstr(good, rows[i].from);
		char *bad = malloc(strlen(good) + strlen(rows[i].to) + 1);

		if (at == NULL || bad == NULL)
			abort();
		sprintf(bad, "%.*s%s%s", (int) (at - good), good, rows[i].to, at + strlen(rows[i].from));
		definitions_expect("POST", CRDS, JSON, bad, 422, rows[i].part);
		free(bad);
		free(good);
	}
	definitions_expect("POST", CRDS, JSON, "{\"metadata\":{\"name\":\"a.b\"},\"spec\":7}", 400,
			   UNFIT "spec: is not an object");
	definitions_expect(
		"POST", CRDS, JSON,
		"{\"metadata\":{\"name\":\"a.b\"},\"spec\":{\"names\":{},\"versions\":{\"a\":1},\"scope\":{}}"
		"}",
		400, UNFIT "spec.versions: is not a list");
	definitions_expect("POST", CRDS, JSON, "{\"metadata\":{\"name\":\"a.b\"}}", 422,
			   "spec: Required value");
}

static void members_that_a_definition_does_not_have_are_told(void **state)
{
	static const char more[] = ",\"nosuch\":1", path[] = CRDS "/widgets.example.com",
			  strict[] = CRDS "/widgets.example.com?fieldValidation=Strict";
	char *text = definitions_text("widgets", "Widget", V1, more);

	definitions_expect("POST", CRDS "?fieldValidation=Strict", JSON, text, 400,
			   UNFIT "strict decoding error: unknown field \\\"spec.names.nosuch\\\"");
	definitions_expect("GET", path, "", "", 404, "");
	definitions_expect("POST", CRDS "?fieldValidation=Ignore&dryRun=All", JSON, text, 201,
			   "widgets.example.com");
	definitions_expect("POST", CRDS, JSON, text, 201,
			   "Warning: 299 - \"unknown field \\\"spec.names.nosuch\\\"\"");
	free(text);
	definitions_await_established("widgets");
	definitions_lack(path, "nosuch");
	definitions_expect("PATCH", strict, MERGE, "{\"spec\":{\"nosuch\":1}}", 422,
			   "strict decoding error: unknown field \\\"spec.nosuch\\\"");
	definitions_expect("PATCH", CRDS "/widgets.example.com/status?fieldValidation=Strict", MERGE,
			   "{\"status\":{\"nosuch\":1}}", 422,
			   "strict decoding error: unknown field \\\"status.nosuch\\\"");
	definitions_expect("PATCH", path, MERGE,
			   "{\"spec\":{\"nosuch\":1},\"metadata\":{\"labels\":{\"a\":\"b\"}}}", 200,
			   "Warning: 299 - \"unknown field \\\"spec.nosuch\\\"\"");
	definitions_expect("PATCH", strict, MERGE, "{\"metadata\":{\"labels\":{\"a\":\"c\"}}}", 200,
			   "\"a\":\"c\"");
	definitions_lack(path, "nosuch");
	definitions_expect("PATCH", path, MERGE, "{\"spec\":{\"versions\":\"x\"}}", 422,
			   ": spec.versions: is not a list");
	definitions_expect("PATCH", CRDS "/widgets.example.com/status", MERGE,
			   "{\"status\":{\"storedVersions\":\"x\"}}", 422,
			   ": status.storedVersions: is not a list");
	definitions_expect("PATCH", CRDS "/widgets.example.com/status", MERGE,
			   "{\"status\":{\"conditions\":\"x\"}}", 422, ": status.conditions: is not a list");
	definitions_expect("GET", path, "", "", 200, "\"storedVersions\":[\"v1\"]");
}

/* Every answer for the version has the warning, also beside other warnings. */
static void a_deprecated_version_is_warned_of(void **state)
{
	static const char line[] = "\r\nWarning: 299 - \"example.com/v1beta1 Widget is deprecated; use "
				   "example.com/v1 Widget\"\r\n";
	static const char schema[] = "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\"}}";
	char		  versions[1024];
	char		 *text;
	int		  code, watch;

	(void) snprintf(versions, sizeof versions,
			"{\"name\":\"v1\",\"served\":true,\"storage\":true,%s},{\"name\":\"v1beta1\","
			"\"served\":true,\"storage\":false,\"deprecated\":true,%s}",
			schema, schema);
	definitions_create("widgets", "Widget", versions, "");
	definitions_await_established("widgets");
	definitions_expect("POST", WIDGETS("v1beta1"), JSON, WIDGET("v1beta1", "a", ""), 201, line);
	definitions_expect("POST", WIDGETS("v1beta1") "?dryRun=All", JSON,
			   WIDGET("v1beta1", "b", ",\"odd\":1"), 201, line);
	definitions_expect("POST", WIDGETS("v1beta1") "?dryRun=All", JSON,
			   WIDGET("v1beta1", "b", ",\"odd\":1"), 201,
			   "\r\nWarning: 299 - \"unknown field \\\"odd\\\"\"\r\n");
	definitions_expect("PATCH", WIDGETS("v1beta1") "/a", MERGE, "{\"odd\":1}", 200, line);
	definitions_expect("PATCH", WIDGETS("v1beta1") "/a", MERGE, "{\"odd\":1}", 200,
			   "unknown field \\\"odd\\\"");
	definitions_expect("GET", WIDGETS("v1beta1"), "", "", 200, line);
	definitions_expect("GET", WIDGETS("v1beta1") "/a", TABLE, "", 200, line);
	definitions_expect("GET", WIDGETS("v1beta1") "/nope", "", "", 404, line);
	watch = http_open(definitions_server.port, 0);
	http_send_request(watch, "GET", WIDGETS("v1beta1") "?watch=true", "", "");
	text = http_read_until(watch, "\r\n\r\n");
	assert_non_null(strstr(text, line));
	free(text);
	(void) close(watch);
	text = definitions_get(WIDGETS("v1"), &code);
	assert_int_equal(code, 200);
	assert_null(strstr(text, "Warning:"));
	free(text);
	definitions_expect(
		"PATCH", CRDS "/widgets.example.com", "Content-Type: application/json-patch+json\r\n",
		"[{\"op\":\"add\",\"path\":\"/spec/versions/0/deprecationWarning\",\"value\":\"x\"}]", 422,
		"spec.versions[0].deprecationWarning: Invalid value: \\\"x\\\": can only be set for "
		"deprecated versions");
	definitions_expect("DELETE", WIDGETS("v1beta1") "/a", "", "", 200, line);
}

static void versions_share_objects_and_watches_go_on(void **state)
{
	static const char patch[] =
		"{\"spec\":{\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":false," ANYTHING
		",\"additionalPrinterColumns\":[{\"name\":\"X\",\"type\":\"integer\",\"jsonPath\":\".spec."
		"x\"}]},{\"name\":\"v2\",\"served\":true,"
		"\"storage\":true," ANYTHING
		"},{\"name\":\"v1alpha1\",\"served\":false,\"storage\":false," ANYTHING "}]}}";
	static const char less[] =
		"{\"spec\":{\"versions\":[{\"name\":\"v1\",\"served\":false,\"storage\":false," ANYTHING
		"},{\"name\":\"v2\",\"served\":true,\"storage\":true," ANYTHING "}]}}";
	int   old = http_open(definitions_server.port, 0), fresh;
	char *text;

	definitions_make_widgets();
	definitions_expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ",\"spec\":{\"x\":1}"), 201,
			   "example.com/v1");
	http_send_request(old, "GET", WIDGETS("v1") "?watch=1", TABLE, "");
	free(http_read_until(old, "ADDED"));
	definitions_expect("PATCH", CRDS "/widgets.example.com", MERGE, patch, 200,
			   "\"storedVersions\":[\"v1\",\"v2\"]");
	definitions_await(WIDGETS("v2"), 200, "WidgetList");
	definitions_expect("GET", WIDGETS("v1alpha1"), "", "", 404, "");
	definitions_expect("GET", WIDGETS("v2") "/a", "", "", 200, "\"apiVersion\":\"example.com/v2\"");
	definitions_expect("GET", WIDGETS("v2"), "", "", 200,
			   "{\"apiVersion\":\"example.com/v2\",\"kind\":\"Widget\"");
	definitions_expect("GET", WIDGETS("v1"), TABLE, "", 200, "{\"cells\":[\"a\",1]");
	definitions_expect("GET", "/apis/example.com", "", "", 200,
			   "\"preferredVersion\":{\"groupVersion\":\"example.com/v2\"");
	fresh = definitions_watch_until(WIDGETS("v1") "?watch=1", TABLE, "{\"cells\":[\"a\",1]");
	definitions_expect("POST", WIDGETS("v2"), JSON, WIDGET("v2", "b", ",\"spec\":{\"x\":2}"), 201,
			   "\"apiVersion\":\"example.com/v2\"");
	definitions_expect("PATCH", WIDGETS("v1") "/b", MERGE, "{\"spec\":{\"x\":3}}", 200,
			   "\"apiVersion\":\"example.com/v1\"");
	definitions_expect("PATCH", WIDGETS("v1") "/b?dryRun=All", MERGE, "{\"spec\":{\"x\":4}}", 200,
			   "\"apiVersion\":\"example.com/v1\"");
	definitions_expect("PUT", WIDGETS("v1") "/b", JSON, WIDGET("v2", "b", ""), 400,
			   "does not match the expected API version");
	/* The old watch keeps its columns, the new one has the new ones. */
	text = http_read_until(fresh, "{\"cells\":[\"b\",3]");
	free(text);
	text = http_read_until(old, "\"MODIFIED\"");
	assert_null(strstr(text, "{\"cells\":[\"b\",3]"));
	assert_non_null(strstr(text, "{\"cells\":[\"b\",\""));
	free(text);
	definitions_expect("PATCH", CRDS "/widgets.example.com", MERGE, less, 200, "");
	definitions_await(WIDGETS("v1"), 404, "");
	definitions_await_without("/apis/example.com", "example.com/v1\"");
	definitions_expect(
		"PATCH", CRDS "/widgets.example.com", MERGE,
		"{\"spec\":{\"versions\":[{\"name\":\"v2\",\"served\":true,\"storage\":true," ANYTHING "}]}}",
		422, "was previously a storage version");
	(void) close(old);
	(void) close(fresh);
}

static void names_in_use_are_not_accepted(void **state)
{
	definitions_make_widgets();
	definitions_create("wodgets", "Widget", V1, "");
	definitions_await(CRDS "/wodgets.example.com", 200,
			  "\"reason\":\"SingularConflict\",\"status\":\"False\",\"type\":\"NamesAccepted\"");
	definitions_expect("GET", CRDS "/wodgets.example.com", "", "", 200,
			   "\"reason\":\"NotAccepted\",\"status\":\"False\",\"type\":\"Established\"");
	definitions_expect("GET", "/apis/example.com/v1/wodgets", "", "", 404, "");
	definitions_create("wedgets", "Wedget", V1, ",\"shortNames\":[\"wd\"]");
	definitions_await(CRDS "/wedgets.example.com", 200,
			  "\"message\":\"\\\"wd\\\" is already in use\",\"reason\":\"ShortNamesConflict\"");
	definitions_expect("DELETE", CRDS "/widgets.example.com", "", "", 200, "InstanceDeletionPending");
	definitions_await_established("wodgets");
	definitions_await_established("wedgets");
	definitions_await("/apis/example.com/v1/wodgets", 200, "WidgetList");
}

static void objects_go_before_their_definition(void **state)
{
	struct vd_bytes key = vd_bytes_of("/registry/example.com/widgets/default/junk");
	int		watch = http_open(definitions_server.port, 0);
	char	       *text;

	definitions_make_widgets();
	definitions_expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ""), 201, "");
	definitions_expect(
		"POST", WIDGETS("v1"), JSON,
		"{\"apiVersion\":\"example.com/"
		"v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"b\",\"finalizers\":[\"x.y/z\"]}}",
		201, "");
	http_send_request(watch, "GET", WIDGETS("v1") "?watch=1", "", "");
	free(http_read_until(watch, "\"name\":\"b\""));
	definitions_expect("DELETE", CRDS "/widgets.example.com", "", "", 200,
			   "customresourcecleanup.apiextensions.k8s.io");
	definitions_await(
		CRDS "/widgets.example.com", 200,
		"\"reason\":\"InstanceDeletionInProgress\",\"status\":\"True\",\"type\":\"Terminating\"");
	definitions_expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "c", ""), 405,
			   "create not allowed while custom resource definition is terminating");
	definitions_await(WIDGETS("v1") "/a", 404, "");
	/* An undecodable object is in no list, and keeps the definition as well. */
	assert_status(vd_store_put_wait(definitions_server.store, key, vd_bytes_of("junk"), NULL, NULL),
		      VD_OK);
	definitions_await(CRDS "/widgets.example.com", 200,
			  "2 instances are left: finalizers keep them, or they cannot be decoded");
	definitions_expect("PATCH", WIDGETS("v1") "/b", MERGE, "{\"metadata\":{\"finalizers\":null}}", 200,
			   "");
	definitions_await(CRDS "/widgets.example.com", 200,
			  "1 instances are left: finalizers keep them, or they cannot be decoded");
	assert_status(vd_store_delete_wait(definitions_server.store, key, VD_BYTES_NONE, NULL, NULL, NULL),
		      VD_OK);
	definitions_await(CRDS "/widgets.example.com", 404, "");
	definitions_await(WIDGETS("v1"), 404, "could not find");
	definitions_await_without("/apis", "example.com");
	text = http_read_until(watch, NULL); /* its end */
	assert_non_null(strstr(text, "{\"type\":\"DELETED\""));
	assert_non_null(strstr(strstr(text, "{\"type\":\"DELETED\"") + 1, "{\"type\":\"DELETED\""));
	free(text);
	(void) close(watch);
	/* Nothing of the old definition affects one of the same name. */
	definitions_make_widgets();
	definitions_lack(WIDGETS("v1"), "\"name\":\"b\"");
}

static void definitions_are_served_after_a_restart(void **state)
{
	definitions_make_widgets();
	definitions_expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ""), 201, "");
	definitions_create("wodgets", "Widget", V1, "");
	definitions_restart_server();
	for (int i = 0; i < 4; i++)
		definitions_expect("GET", WIDGETS("v1") "/a", "", "", 200, "\"name\":\"a\"");
	definitions_await(CRDS "/wodgets.example.com", 200,
			  "\"status\":\"False\",\"type\":\"NamesAccepted\"");
	/* Also while one is being deleted. */
	definitions_expect("PATCH", WIDGETS("v1") "/a", MERGE, "{\"metadata\":{\"finalizers\":[\"x.y/z\"]}}",
			   200, "");
	definitions_expect("DELETE", CRDS "/widgets.example.com", "", "", 200, "");
	definitions_restart_server();
	definitions_await(CRDS "/widgets.example.com", 200, "\"type\":\"Terminating\"");
	definitions_expect("PATCH", WIDGETS("v1") "/a", MERGE, "{\"metadata\":{\"finalizers\":null}}", 200,
			   "");
	definitions_await(CRDS "/widgets.example.com", 404, "");
	definitions_await_established("wodgets");
}

static void two_servers_see_each_others_definitions(void **state)
{
	struct http_fixture other = { .env = definitions_server.env, .store = definitions_server.store };

	http_fixture_start(&other, 2, NULL);
	definitions_make_widgets();
	for (int i = 0; i < 4; i++) /* all loops, at once, because it is Established */
		http_expect(other.port, "GET", WIDGETS("v1"), "", "", 200, "WidgetList");
	http_expect(other.port, "POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ""), 201, "");
	definitions_expect("GET", WIDGETS("v1") "/a", "", "", 200, "");
	http_expect(other.port, "DELETE", CRDS "/widgets.example.com", "", "", 200, "");
	definitions_await(WIDGETS("v1"), 404, "could not find");
	definitions_await_answer(other.port, WIDGETS("v1"), 404, "could not find", false);
	http_fixture_stop(&other, VD_SECONDS(0));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, definitions_set_up, definitions_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_definition_is_served_when_it_is_established),
		TEST(a_schema_holds_for_its_objects),
		TEST(definitions_are_checked),
		TEST(members_that_a_definition_does_not_have_are_told),
		TEST(a_deprecated_version_is_warned_of),
		TEST(versions_share_objects_and_watches_go_on),
		TEST(names_in_use_are_not_accepted),
		TEST(objects_go_before_their_definition),
		TEST(definitions_are_served_after_a_restart),
		TEST(two_servers_see_each_others_definitions),
	};

	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
