/* CustomResourceDefinitions, and the resources file read again: kinds that come and go while the server runs.
 * The server is in this process. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "http_fixture.h"

#define CRDS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define ANYTHING                                                                                             \
	"\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":"     \
	"true}}"
#define V1 "{\"name\":\"v1\",\"served\":true,\"storage\":true," ANYTHING "}"

static struct http_fixture fixture;
static char		   resources_file[64]; /* "": none */

static void start_server(void)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;

	options.resources_path = resources_file[0] ? resources_file : NULL;
	http_fixture_start(&fixture, 2, &options);
}

static void restart_server(void)
{
	http_fixture_stop(&fixture, VD_SECONDS(0));
	start_server();
}

static int set_up(void **state)
{
	(void) state;
	http_fixture_init(&fixture);
	start_server();
	return 0;
}

static int tear_down(void **state)
{
	(void) state;
	http_fixture_close(&fixture, VD_SECONDS(0));
	if (resources_file[0])
		(void) unlink(resources_file);
	resources_file[0] = 0;
	return 0;
}

/* ---- A client ---- */

#define JSON HTTP_JSON
#define MERGE HTTP_MERGE
#define TABLE "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"

static void expect(const char *method, const char *path, const char *headers, const char *body, int code,
		   const char *part)
{
	http_expect(fixture.port, method, path, headers, body, code, part);
}

/* The answer to a GET. */
static char *get(const char *path, int *ret_code)
{
	return http_ask(fixture.port, "GET", path, "", "", ret_code);
}

/* A watch that has said mark. */
static int watch_until(const char *path, const char *headers, const char *mark)
{
	int fd = http_open(fixture.port, 0);

	http_send_request(fd, "GET", path, headers, "");
	free(http_read_until(fd, mark));
	return fd;
}

static void lacks(const char *path, const char *part)
{
	int   code;
	char *text = get(path, &code);

	assert_int_equal(code, 200);
	assert_null(strstr(text, part));
	free(text);
}

/* Asks until the answer is that, with part or (is_without) without it, from all loops: connections go
 * round. */
static void await_answer(uint16_t port, const char *path, int code, const char *part, bool is_without)
{
	int in_a_row = 0;

	for (int tries = 0; in_a_row < 3; tries++) {
		int   got;
		char *text = http_ask(port, "GET", path, "", "", &got);

		in_a_row = got == code && (strstr(text, part) == NULL) == is_without ? in_a_row + 1 : 0;
		free(text);
		assert_true(tries < 200000);
		(void) poll(NULL, 0, 1);
	}
}

static void await(const char *path, int code, const char *part)
{
	await_answer(fixture.port, path, code, part, false);
}

static void await_without(const char *path, const char *part)
{
	await_answer(fixture.port, path, 200, part, true);
}

/* versions: the list's content; more: members of names. */
static char *crd_text(const char *plural, const char *kind, const char *versions, const char *more)
{
	char *text = malloc(strlen(versions) + 1024);

	if (text == NULL)
		abort();
	sprintf(text,
		"{\"apiVersion\":\"apiextensions.k8s.io/"
		"v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"%s.example.com\"},"
		"\"spec\":{"
		"\"group\":\"example.com\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"%s\",\"kind\":\"%"
		"s\"%s},\"versions\":[%s]}}",
		plural, plural, kind, more, versions);
	return text;
}

static void create_crd(const char *plural, const char *kind, const char *versions, const char *more)
{
	char *text = crd_text(plural, kind, versions, more);

	expect("POST", CRDS, JSON, text, 201, "\"storedVersions\":[\"v1\"]");
	free(text);
}

static void await_established(const char *plural)
{
	char path[256];

	sprintf(path, CRDS "/%s.example.com", plural);
	await(path, 200, "\"reason\":\"InitialNamesAccepted\",\"status\":\"True\",\"type\":\"Established\"");
}

#define WIDGETS(version) "/apis/example.com/" version "/namespaces/default/widgets"
#define WIDGET(version, name, more)                                                                          \
	"{\"apiVersion\":\"example.com/" version "\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"" name     \
	"\"}" more "}"

static void make_widgets(void)
{
	create_crd("widgets", "Widget", V1, ",\"shortNames\":[\"wd\"]");
	await_established("widgets");
}

/* ---- Tests ---- */

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

	expect("GET", WIDGETS("v1"), "", "", 404, "could not find");
	create_crd("widgets", "Widget", versions, ",\"shortNames\":[\"wd\"],\"categories\":[\"all\"]");
	await_established("widgets");
	expect("GET", CRDS "/widgets.example.com", "", "", 200,
	       "\"acceptedNames\":{\"plural\":\"widgets\",\"kind\":\"Widget\",\"shortNames\":[\"wd\"]");
	expect("GET", "/apis/example.com/v1", "", "", 200,
	       "{\"name\":\"widgets\",\"singularName\":\"widget\",\"namespaced\":true,\"kind\":\"Widget\","
	       "\"verbs\":[\"create\"");
	expect("GET", "/openapi/v3", "", "", 200, "apis/example.com/v1");
	expect("GET", "/readyz?verbose", "", "", 200, "cache/widgets.example.com ok");
	expect("GET", "/debug/vedette", "", "", 200, "\"resource\":\"widgets.example.com\"");
	expect("POST", WIDGETS("v1"), JSON,
	       WIDGET("v1", "a", ",\"spec\":{\"color\":\"red\",\"deep\":{\"count\":2}},\"status\":{\"x\":1}"),
	       201, "\"generation\":1");
	lacks(WIDGETS("v1") "/a", "\"status\":");
	expect("PATCH", WIDGETS("v1") "/a/status", MERGE,
	       "{\"status\":{\"count\":1,\"selector\":\"a=b\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
	       "\"True\"}]}}",
	       200, "\"generation\":1");
	expect("PATCH", WIDGETS("v1") "/a/scale", MERGE, "{\"spec\":{\"replicas\":7}}", 200,
	       "\"spec\":{\"replicas\":7},\"status\":{\"replicas\":1,\"selector\":\"a=b\"}");
	expect("GET", WIDGETS("v1") "/a", "", "", 200, "\"generation\":2");
	expect("GET", WIDGETS("v1"), TABLE, "", 200, "{\"cells\":[\"a\",7,\"True\",null,\"red\"]");
	expect("GET", WIDGETS("v1") "?fieldSelector=spec.color%3Dred", "", "", 200, "\"name\":\"a\"");
	lacks(WIDGETS("v1") "?fieldSelector=spec.color%3Dblue", "\"name\":\"a\"");
	expect("GET", WIDGETS("v1") "?fieldSelector=spec.size%3D1", "", "", 400, "field label not supported");
	expect("GET", "/metrics", "", "", 200, "resource=\"widgets\"");
}

static void a_schema_holds_for_its_objects(void **state)
{
	static const char versions[] = "{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
				       "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{"
				       "\"type\":\"object\",\"required\":[\"size\"],\"properties\":{\"size\":"
				       "{\"type\":\"integer\",\"minimum\":1,\"description\":\"How big.\"},"
				       "\"color\":{\"type\":\"string\",\"default\":\"red\"}}}}}}}";

	create_crd("widgets", "Widget", versions, "");
	await_established("widgets");
	expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ",\"spec\":{\"size\":0}"), 422, "spec.size");
	expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ",\"spec\":{\"size\":3,\"other\":1}"), 201,
	       "\"color\":\"red\"");
	lacks(WIDGETS("v1") "/a", "other");
	expect("GET", "/openapi/v3/apis/example.com/v1", "", "", 200, "How big.");
	expect("PATCH", CRDS "/widgets.example.com?dryRun=All", MERGE,
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
		const char *from, *to; /* in a good one */
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
		char *good = crd_text("widgets", "Widget", V1, ""), *at = strstr(good, rows[i].from);
		char *bad = malloc(strlen(good) + strlen(rows[i].to) + 1);

		if (at == NULL || bad == NULL)
			abort();
		sprintf(bad, "%.*s%s%s", (int) (at - good), good, rows[i].to, at + strlen(rows[i].from));
		expect("POST", CRDS, JSON, bad, 422, rows[i].part);
		free(bad);
		free(good);
	}
	expect("POST", CRDS, JSON, "{\"metadata\":{\"name\":\"a.b\"},\"spec\":7}", 400,
	       UNFIT "spec: is not an object");
	expect("POST", CRDS, JSON,
	       "{\"metadata\":{\"name\":\"a.b\"},\"spec\":{\"names\":{},\"versions\":{\"a\":1},\"scope\":{}}"
	       "}",
	       400, UNFIT "spec.versions: is not a list");
	expect("POST", CRDS, JSON, "{\"metadata\":{\"name\":\"a.b\"}}", 422, "spec: Required value");
}

static void members_that_a_definition_does_not_have_are_told(void **state)
{
	static const char more[] = ",\"nosuch\":1", path[] = CRDS "/widgets.example.com",
			  strict[] = CRDS "/widgets.example.com?fieldValidation=Strict";
	char *text = crd_text("widgets", "Widget", V1, more);

	expect("POST", CRDS "?fieldValidation=Strict", JSON, text, 400,
	       UNFIT "strict decoding error: unknown field \\\"spec.names.nosuch\\\"");
	expect("GET", path, "", "", 404, "");
	expect("POST", CRDS "?fieldValidation=Ignore&dryRun=All", JSON, text, 201, "widgets.example.com");
	expect("POST", CRDS, JSON, text, 201, "Warning: 299 - \"unknown field \\\"spec.names.nosuch\\\"\"");
	free(text);
	await_established("widgets");
	lacks(path, "nosuch");
	expect("PATCH", strict, MERGE, "{\"spec\":{\"nosuch\":1}}", 422,
	       "strict decoding error: unknown field \\\"spec.nosuch\\\"");
	expect("PATCH", CRDS "/widgets.example.com/status?fieldValidation=Strict", MERGE,
	       "{\"status\":{\"nosuch\":1}}", 422,
	       "strict decoding error: unknown field \\\"status.nosuch\\\"");
	expect("PATCH", path, MERGE, "{\"spec\":{\"nosuch\":1},\"metadata\":{\"labels\":{\"a\":\"b\"}}}", 200,
	       "Warning: 299 - \"unknown field \\\"spec.nosuch\\\"\"");
	expect("PATCH", strict, MERGE, "{\"metadata\":{\"labels\":{\"a\":\"c\"}}}", 200, "\"a\":\"c\"");
	lacks(path, "nosuch");
	expect("PATCH", path, MERGE, "{\"spec\":{\"versions\":\"x\"}}", 422,
	       ": spec.versions: is not a list");
	expect("PATCH", CRDS "/widgets.example.com/status", MERGE, "{\"status\":{\"storedVersions\":\"x\"}}",
	       422, ": status.storedVersions: is not a list");
	expect("PATCH", CRDS "/widgets.example.com/status", MERGE, "{\"status\":{\"conditions\":\"x\"}}", 422,
	       ": status.conditions: is not a list");
	expect("GET", path, "", "", 200, "\"storedVersions\":[\"v1\"]");
}

/* On every answer for the version, whatever it says, and beside other warnings. */
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
	create_crd("widgets", "Widget", versions, "");
	await_established("widgets");
	expect("POST", WIDGETS("v1beta1"), JSON, WIDGET("v1beta1", "a", ""), 201, line);
	expect("POST", WIDGETS("v1beta1") "?dryRun=All", JSON, WIDGET("v1beta1", "b", ",\"odd\":1"), 201,
	       line);
	expect("POST", WIDGETS("v1beta1") "?dryRun=All", JSON, WIDGET("v1beta1", "b", ",\"odd\":1"), 201,
	       "\r\nWarning: 299 - \"unknown field \\\"odd\\\"\"\r\n");
	expect("PATCH", WIDGETS("v1beta1") "/a", MERGE, "{\"odd\":1}", 200, line);
	expect("PATCH", WIDGETS("v1beta1") "/a", MERGE, "{\"odd\":1}", 200, "unknown field \\\"odd\\\"");
	expect("GET", WIDGETS("v1beta1"), "", "", 200, line);
	expect("GET", WIDGETS("v1beta1") "/a", TABLE, "", 200, line);
	expect("GET", WIDGETS("v1beta1") "/nope", "", "", 404, line);
	watch = http_open(fixture.port, 0);
	http_send_request(watch, "GET", WIDGETS("v1beta1") "?watch=true", "", "");
	text = http_read_until(watch, "\r\n\r\n");
	assert_non_null(strstr(text, line));
	free(text);
	(void) close(watch);
	text = get(WIDGETS("v1"), &code);
	assert_int_equal(code, 200);
	assert_null(strstr(text, "Warning:"));
	free(text);
	expect("PATCH", CRDS "/widgets.example.com", "Content-Type: application/json-patch+json\r\n",
	       "[{\"op\":\"add\",\"path\":\"/spec/versions/0/deprecationWarning\",\"value\":\"x\"}]", 422,
	       "spec.versions[0].deprecationWarning: Invalid value: \\\"x\\\": can only be set for "
	       "deprecated versions");
	expect("DELETE", WIDGETS("v1beta1") "/a", "", "", 200, line);
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
	int   old = http_open(fixture.port, 0), fresh;
	char *text;

	make_widgets();
	expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ",\"spec\":{\"x\":1}"), 201, "example.com/v1");
	http_send_request(old, "GET", WIDGETS("v1") "?watch=1", TABLE, "");
	free(http_read_until(old, "ADDED"));
	expect("PATCH", CRDS "/widgets.example.com", MERGE, patch, 200, "\"storedVersions\":[\"v1\",\"v2\"]");
	await(WIDGETS("v2"), 200, "WidgetList");
	expect("GET", WIDGETS("v1alpha1"), "", "", 404, "");
	expect("GET", WIDGETS("v2") "/a", "", "", 200, "\"apiVersion\":\"example.com/v2\"");
	expect("GET", WIDGETS("v2"), "", "", 200, "{\"apiVersion\":\"example.com/v2\",\"kind\":\"Widget\"");
	expect("GET", WIDGETS("v1"), TABLE, "", 200, "{\"cells\":[\"a\",1]");
	expect("GET", "/apis/example.com", "", "", 200,
	       "\"preferredVersion\":{\"groupVersion\":\"example.com/v2\"");
	fresh = watch_until(WIDGETS("v1") "?watch=1", TABLE, "{\"cells\":[\"a\",1]");
	expect("POST", WIDGETS("v2"), JSON, WIDGET("v2", "b", ",\"spec\":{\"x\":2}"), 201,
	       "\"apiVersion\":\"example.com/v2\"");
	expect("PATCH", WIDGETS("v1") "/b", MERGE, "{\"spec\":{\"x\":3}}", 200,
	       "\"apiVersion\":\"example.com/v1\"");
	expect("PATCH", WIDGETS("v1") "/b?dryRun=All", MERGE, "{\"spec\":{\"x\":4}}", 200,
	       "\"apiVersion\":\"example.com/v1\"");
	expect("PUT", WIDGETS("v1") "/b", JSON, WIDGET("v2", "b", ""), 400,
	       "does not match the expected API version");
	/* The old watch has its old columns, the new one the new ones. */
	text = http_read_until(fresh, "{\"cells\":[\"b\",3]");
	free(text);
	text = http_read_until(old, "\"MODIFIED\"");
	assert_null(strstr(text, "{\"cells\":[\"b\",3]"));
	assert_non_null(strstr(text, "{\"cells\":[\"b\",\""));
	free(text);
	expect("PATCH", CRDS "/widgets.example.com", MERGE, less, 200, "");
	await(WIDGETS("v1"), 404, "");
	await_without("/apis/example.com", "example.com/v1\"");
	expect("PATCH", CRDS "/widgets.example.com", MERGE,
	       "{\"spec\":{\"versions\":[{\"name\":\"v2\",\"served\":true,\"storage\":true," ANYTHING "}]}}",
	       422, "was previously a storage version");
	(void) close(old);
	(void) close(fresh);
}

static void names_in_use_are_not_accepted(void **state)
{
	make_widgets();
	create_crd("wodgets", "Widget", V1, "");
	await(CRDS "/wodgets.example.com", 200,
	      "\"reason\":\"SingularConflict\",\"status\":\"False\",\"type\":\"NamesAccepted\"");
	expect("GET", CRDS "/wodgets.example.com", "", "", 200,
	       "\"reason\":\"NotAccepted\",\"status\":\"False\",\"type\":\"Established\"");
	expect("GET", "/apis/example.com/v1/wodgets", "", "", 404, "");
	create_crd("wedgets", "Wedget", V1, ",\"shortNames\":[\"wd\"]");
	await(CRDS "/wedgets.example.com", 200,
	      "\"message\":\"\\\"wd\\\" is already in use\",\"reason\":\"ShortNamesConflict\"");
	expect("DELETE", CRDS "/widgets.example.com", "", "", 200, "InstanceDeletionPending");
	await_established("wodgets");
	await_established("wedgets");
	await("/apis/example.com/v1/wodgets", 200, "WidgetList");
}

static void objects_go_before_their_definition(void **state)
{
	struct vd_bytes key = vd_bytes_of("/registry/example.com/widgets/default/junk");
	int		watch = http_open(fixture.port, 0);
	char	       *text;

	make_widgets();
	expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ""), 201, "");
	expect("POST", WIDGETS("v1"), JSON,
	       "{\"apiVersion\":\"example.com/"
	       "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"b\",\"finalizers\":[\"x.y/z\"]}}",
	       201, "");
	http_send_request(watch, "GET", WIDGETS("v1") "?watch=1", "", "");
	free(http_read_until(watch, "\"name\":\"b\""));
	expect("DELETE", CRDS "/widgets.example.com", "", "", 200,
	       "customresourcecleanup.apiextensions.k8s.io");
	await(CRDS "/widgets.example.com", 200,
	      "\"reason\":\"InstanceDeletionInProgress\",\"status\":\"True\",\"type\":\"Terminating\"");
	expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "c", ""), 405,
	       "create not allowed while custom resource definition is terminating");
	await(WIDGETS("v1") "/a", 404, "");
	/* One that cannot be decoded is in no list, and holds the definition as well. */
	assert_status(vd_store_put_wait(fixture.store, key, vd_bytes_of("junk"), NULL, NULL), VD_OK);
	await(CRDS "/widgets.example.com", 200,
	      "2 instances are left: finalizers keep them, or they cannot be decoded");
	expect("PATCH", WIDGETS("v1") "/b", MERGE, "{\"metadata\":{\"finalizers\":null}}", 200, "");
	await(CRDS "/widgets.example.com", 200,
	      "1 instances are left: finalizers keep them, or they cannot be decoded");
	assert_status(vd_store_delete_wait(fixture.store, key, VD_BYTES_NONE, NULL, NULL, NULL), VD_OK);
	await(CRDS "/widgets.example.com", 404, "");
	await(WIDGETS("v1"), 404, "could not find");
	await_without("/apis", "example.com");
	text = http_read_until(watch, NULL); /* its end */
	assert_non_null(strstr(text, "{\"type\":\"DELETED\""));
	assert_non_null(strstr(strstr(text, "{\"type\":\"DELETED\"") + 1, "{\"type\":\"DELETED\""));
	free(text);
	(void) close(watch);
	/* Nothing of it is left for one of the same name. */
	make_widgets();
	lacks(WIDGETS("v1"), "\"name\":\"b\"");
}

static void definitions_are_served_after_a_restart(void **state)
{
	make_widgets();
	expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ""), 201, "");
	create_crd("wodgets", "Widget", V1, "");
	restart_server();
	for (int i = 0; i < 4; i++)
		expect("GET", WIDGETS("v1") "/a", "", "", 200, "\"name\":\"a\"");
	await(CRDS "/wodgets.example.com", 200, "\"status\":\"False\",\"type\":\"NamesAccepted\"");
	/* And while one is on its way out. */
	expect("PATCH", WIDGETS("v1") "/a", MERGE, "{\"metadata\":{\"finalizers\":[\"x.y/z\"]}}", 200, "");
	expect("DELETE", CRDS "/widgets.example.com", "", "", 200, "");
	restart_server();
	await(CRDS "/widgets.example.com", 200, "\"type\":\"Terminating\"");
	expect("PATCH", WIDGETS("v1") "/a", MERGE, "{\"metadata\":{\"finalizers\":null}}", 200, "");
	await(CRDS "/widgets.example.com", 404, "");
	await_established("wodgets");
}

static void two_servers_see_each_others_definitions(void **state)
{
	struct http_fixture other = { .env = fixture.env, .store = fixture.store };

	http_fixture_start(&other, 2, NULL);
	make_widgets();
	for (int i = 0; i < 4; i++) /* all loops, at once: it is Established */
		http_expect(other.port, "GET", WIDGETS("v1"), "", "", 200, "WidgetList");
	http_expect(other.port, "POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ""), 201, "");
	expect("GET", WIDGETS("v1") "/a", "", "", 200, "");
	http_expect(other.port, "DELETE", CRDS "/widgets.example.com", "", "", 200, "");
	await(WIDGETS("v1"), 404, "could not find");
	await_answer(other.port, WIDGETS("v1"), 404, "could not find", false);
	http_fixture_stop(&other, VD_SECONDS(0));
}

/* ---- The end of watches ---- */

#define FAT 20000

static int occurrences(const char *text, const char *part)
{
	int count = 0;

	while ((text = strstr(text, part)) != NULL) {
		text += strlen(part);
		count++;
	}
	return count;
}

/* Megabytes are on their way to one that does not read when the definition is gone for everybody else. */
static void a_slow_watch_hears_of_all_deletions(void **state)
{
	int   watch, count = 150;
	char *body = malloc(FAT + 256), *first, *text;

	make_widgets();
	for (int i = 0; i < count; i++) {
		int size = sprintf(
			body,
			"{\"apiVersion\":\"example.com/"
			"v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w%d\"},\"spec\":{\"fat\":\"",
			i);

		memset(body + size, 'x', FAT);
		strcpy(body + size + FAT, "\"}}");
		expect("POST", WIDGETS("v1"), JSON, body, 201, "");
	}
	free(body);
	watch = http_open(fixture.port, 4096);
	http_send_request(watch, "GET", WIDGETS("v1") "?watch=1", "", "");
	first = http_read_until(watch, "ADDED");
	expect("DELETE", CRDS "/widgets.example.com", "", "", 200, "");
	await(CRDS "/widgets.example.com", 404, "");
	await(WIDGETS("v1"), 404, "could not find");
	/* A kind of the same name does not mind those who still read of the old one. */
	make_widgets();
	expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "fresh", ""), 201, "");
	(void) poll(NULL, 0, 1000);
	body = http_read_until(watch, NULL);
	text = malloc(strlen(first) + strlen(body) + 1);
	strcat(strcpy(text, first), body);
	assert_int_equal(occurrences(text, "{\"type\":\"ADDED\""), count);
	assert_int_equal(occurrences(text, "{\"type\":\"DELETED\""), count);
	assert_int_equal(occurrences(text, "{\"type\":"), 2 * count);
	assert_null(strstr(text, "fresh"));
	assert_string_equal(text + strlen(text) - 7, "\r\n0\r\n\r\n");
	free(text);
	free(body);
	free(first);
	(void) close(watch);
}

/* ---- The garbage collector ---- */

#define MAPS "/api/v1/namespaces/default/configmaps"
#define OWNED(version, kind, name, uid, more)                                                                \
	"\"ownerReferences\":[{\"apiVersion\":\"" version "\",\"kind\":\"" kind "\",\"name\":\"" name        \
	"\",\"uid\":\"" uid "\"" more "}]"

static void uid_of(const char *path, char uid[64])
{
	int   code;
	char *text = get(path, &code), *at = strstr(text, "\"uid\":\"");

	assert_int_equal(code, 200);
	assert_non_null(at);
	sprintf(uid, "%.36s", at + 7);
	free(text);
}

/* format has the place of the owner's uid. */
static void create_owned(const char *path, const char *format, const char *uid)
{
	char body[1024];

	(void) snprintf(body, sizeof body, format, uid);
	expect("POST", path, JSON, body, 201, uid);
}

/* The collector knows a kind before there can be an object of it: else what is to be orphaned is not found,
 * and collected later. */
static void new_kinds_are_searched_for_dependents(void **state)
{
	for (int i = 0; i < 8; i++) {
		char plural[32], kind[32], path[128], object[192], map[128], uid[64], body[256];

		sprintf(plural, "kind%ds", i);
		sprintf(kind, "Kind%d", i);
		sprintf(path, "/apis/example.com/v1/namespaces/default/%s", plural);
		sprintf(map, MAPS "/owner%d", i);
		sprintf(object, "%s/a", path);
		sprintf(body, "{\"metadata\":{\"name\":\"owner%d\"}}", i);
		expect("POST", MAPS, JSON, body, 201, "");
		uid_of(map, uid);
		create_crd(plural, kind, V1, "");
		await_established(plural);
		sprintf(body,
			"{\"apiVersion\":\"example.com/"
			"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{"
			"\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
			"\"name\":\"owner%d\",\"uid\":\"%%s\"}]}}",
			kind, i);
		create_owned(path, body, uid);
		expect("DELETE", map, JSON, "{\"propagationPolicy\":\"Orphan\"}", 200, "");
		await(map, 404, "");
		lacks(object, "ownerReferences");
	}
}

/* What a kind's objects owned goes with the kind; and again when it comes again. */
static void what_a_kind_owned_goes_with_it(void **state)
{
	for (int round = 0; round < 3; round++) {
		char uid[64];

		make_widgets();
		expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ""), 201, "");
		uid_of(WIDGETS("v1") "/a", uid);
		create_owned(MAPS,
			     "{\"metadata\":{\"name\":\"m\"," OWNED("example.com/v1", "Widget", "a", "%s",
								    "") "}}",
			     uid);
		if (round == 1) { /* one by one */
			expect("DELETE", WIDGETS("v1") "/a", "", "", 200, "");
			await(MAPS "/m", 404, "");
		}
		expect("DELETE", CRDS "/widgets.example.com", "", "", 200, "");
		await(CRDS "/widgets.example.com", 404, "");
		await(MAPS "/m", 404, "");
		await(WIDGETS("v1"), 404, "could not find");
	}
}

static long metric(const char *name)
{
	int   code;
	char *text = get("/metrics", &code), *at = strstr(text, name);
	long  value;

	assert_non_null(at);
	value = atol(at + strlen(name));
	free(text);
	return value;
}

/* Whether an owner of an unknown kind is absent nobody can say: nothing is deleted until the kind is known,
 * and then soon. */
static void owners_of_unknown_kinds_are_not_absent(void **state)
{
	static const char retries[] = "\nvedette_garbage_collector_actions_total{action=\"failed\"} ";
	static const char uid[] = "11111111-2222-3333-4444-555555555555";

	create_owned(
		MAPS,
		"{\"metadata\":{\"name\":\"m\"," OWNED("example.com/v1", "Widget", "never", "%s", "") "}}",
		uid);
	create_owned(MAPS,
		     "{\"metadata\":{\"name\":\"n\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
		     "\"ConfigMap\",\"name\":\"gone\",\"uid\":\"%s\"}]}}",
		     uid);
	await(MAPS "/n", 404, ""); /* of a known one */
	while (metric(retries) < 4)
		(void) poll(NULL, 0, 5);
	expect("GET", MAPS "/m", "", "", 200, uid);
	make_widgets();
	await(MAPS "/m", 404, "");
}

/* ---- Defaults ---- */

#define SPEC(name, storage, default)                                                                         \
	"{\"name\":\"" name "\",\"served\":true,\"storage\":" storage                                        \
	",\"selectableFields\":[{\"jsonPath\":\".spec.color\"}],\"schema\":{\"openAPIV3Schema\":{\"type\":"  \
	"\"object\","                                                                                        \
	"\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{\"size\":{\"type\":\"integer\"},"     \
	"\"color\":{\"type\":\"string\"" default "}}}}}}}"
#define VERSIONS(text) "{\"spec\":{\"versions\":[" text "]}}"

/* In every answer: of the object alone, of the list, of a list by a field, and of a watch's first events. */
static void await_color(const char *color)
{
	char part[64], path[256];
	int  watch;

	sprintf(part, "\"color\":\"%s\"", color);
	await(WIDGETS("v1") "/old", 200, part);
	expect("GET", WIDGETS("v1") "/old?resourceVersion=0", "", "", 200, part);
	expect("GET", WIDGETS("v1"), "", "", 200, part);
	expect("GET", WIDGETS("v1") "?resourceVersion=0", "", "", 200, part);
	expect("GET", WIDGETS("v2") "/old", "", "", 200, part);
	sprintf(path, WIDGETS("v1") "?fieldSelector=spec.color%%3D%s", color);
	expect("GET", path, "", "", 200, "\"name\":\"old\"");
	watch = watch_until(WIDGETS("v1") "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&"
					  "resourceVersionMatch=NotOlderThan",
			    "", part);
	(void) close(watch);
}

/* What was stored before its schema had a default has it nevertheless, by the version that it is stored in;
 * the store keeps what was written, until something is written. */
static void objects_have_defaults_that_came_after_them(void **state)
{
	int   before = http_open(fixture.port, 0), code;
	char *old, *text;

	create_crd("widgets", "Widget", SPEC("v1", "true", "") "," SPEC("v2", "false", ""), "");
	await_established("widgets");
	expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "old", ",\"spec\":{\"size\":3}"), 201,
	       "\"generation\":1");
	lacks(WIDGETS("v1") "/old", "color");
	old = get(WIDGETS("v1") "/old", &code);
	http_send_request(before, "GET", WIDGETS("v1") "?watch=1", "", "");
	free(http_read_until(before, "ADDED"));
	expect("PATCH", CRDS "/widgets.example.com", MERGE,
	       VERSIONS(SPEC("v1", "true", ",\"default\":\"red\"") "," SPEC("v2", "false",
									    ",\"default\":\"blue\"")),
	       200, "");
	await_color("red");
	free(http_read_until(before, NULL)); /* it has ended, to be resumed */
	(void) close(before);
	/* Nothing was written. */
	text = get(WIDGETS("v1") "/old", &code);
	assert_int_equal(atoi(strstr(text, "\"resourceVersion\":\"") + 19),
			 atoi(strstr(old, "\"resourceVersion\":\"") + 19));
	assert_non_null(strstr(text, "\"generation\":1"));
	free(text);
	free(old);
	expect("PATCH", CRDS "/widgets.example.com", MERGE,
	       VERSIONS(SPEC("v1", "true", ",\"default\":\"green\"") "," SPEC("v2", "false",
									      ",\"default\":\"blue\"")),
	       200, "");
	await_color("green");
	/* Another version becomes the one that is stored: what is stored in the old one keeps that one's. */
	expect("PATCH", CRDS "/widgets.example.com", MERGE,
	       VERSIONS(SPEC("v1", "false", ",\"default\":\"green\"") "," SPEC("v2", "true",
									       ",\"default\":\"blue\"")),
	       200, "");
	await(CRDS "/widgets.example.com", 200, "\"storedVersions\":[\"v1\",\"v2\"]");
	await_color("green");
	restart_server();
	await_color("green");
	/* Without the default it is gone from what never had it written. */
	expect("PATCH", CRDS "/widgets.example.com", MERGE,
	       VERSIONS(SPEC("v1", "false", "") "," SPEC("v2", "true", "")), 200, "");
	await_without(WIDGETS("v1") "/old", "color");
	expect("PATCH", CRDS "/widgets.example.com", MERGE,
	       VERSIONS(SPEC("v1", "false", ",\"default\":\"green\"") "," SPEC("v2", "true",
									       ",\"default\":\"blue\"")),
	       200, "");
	await_color("green");
	/* A watch tells of it with what it had. */
	before = watch_until(WIDGETS("v1") "?watch=1", "", "\"color\":\"green\"");
	expect("PATCH", WIDGETS("v1") "/old", MERGE, "{\"spec\":{\"size\":4}}", 200, "\"color\":\"green\"");
	expect("DELETE", WIDGETS("v1") "/old", "", "", 200, "");
	text = http_read_until(before, "DELETED");
	assert_non_null(strstr(text, "\"type\":\"MODIFIED\""));
	assert_null(strstr(strstr(text, "\"type\":\"MODIFIED\""), "blue"));
	free(text);
	(void) close(before);
}

/* ---- The resources file ---- */

static void write_file(const char *text)
{
	FILE *file = fopen(resources_file, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

#define GADGET "{\"group\":\"example.com\",\"version\":\"v1\",\"kind\":\"Gadget\",\"plural\":\"gadgets\""
#define GADGETS "/apis/example.com/v1/namespaces/default/gadgets"

static void the_resources_file_is_read_again(void **state)
{
	struct vd_error error = { 0 };
	int		watch;
	char	       *text;

	fixture.server = vd_server_free(fixture.server);
	strcpy(resources_file, "/tmp/vedette-crd-XXXXXX");
	(void) close(mkstemp(resources_file));
	write_file("[]");
	start_server();
	write_file("[" GADGET "}]");
	assert_status(vd_server_reload(fixture.server, &error), VD_OK);
	expect("POST", GADGETS, JSON,
	       "{\"apiVersion\":\"example.com/"
	       "v1\",\"kind\":\"Gadget\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"x\":5}}",
	       201, "");
	watch = watch_until(GADGETS "?watch=1", "", "ADDED");
	/* A definition of a kind that the file has. */
	create_crd("gadgets", "Gadget", V1, "");
	await(CRDS "/gadgets.example.com", 200,
	      "is already in use by a kind that this server was told of at its "
	      "start\",\"reason\":\"PluralConflict\"");
	write_file("[" GADGET
		   ",\"printerColumns\":[{\"name\":\"X\",\"type\":\"integer\",\"jsonPath\":\".spec.x\"}]}]");
	assert_status(vd_server_reload(fixture.server, &error), VD_OK);
	expect("GET", GADGETS, TABLE, "", 200, "{\"cells\":[\"a\",5]");
	expect("DELETE", GADGETS "/a", "", "", 200, "");
	free(http_read_until(watch, "DELETED")); /* it went on */
	write_file("[" GADGET ",\"colour\":1}]");
	assert_status(vd_server_reload(fixture.server, &error), VD_INVALID);
	assert_non_null(strstr(error.message, "entry 0 (gadgets): colour: unknown key"));
	expect("GET", GADGETS, "", "", 200, "GadgetList");
	write_file("[]");
	assert_status(vd_server_reload(fixture.server, &error), VD_OK);
	text = http_read_until(watch, NULL); /* its end */
	free(text);
	(void) close(watch);
	await_established("gadgets"); /* its names are free */
	await(GADGETS, 200, "GadgetList");
}

/* ---- Many ---- */

#define MANY 200

static atomic_bool is_over;

static void *look_around(void *arg)
{
	uint16_t port = fixture.port;
	unsigned seed = (unsigned) (uintptr_t) arg;

	while (!atomic_load(&is_over)) {
		char path[128];
		int  code, fd;

		seed = seed * 1103515245 + 12345;
		sprintf(path, "/apis/example.com/v1/namespaces/default/kind%us%s", (seed >> 16) % MANY,
			seed >> 31 ? "" : "?watch=1&timeoutSeconds=1");
		if (seed >> 31) {
			free(http_ask(port, "GET", path, "", "", &code));
			free(http_ask(port, "GET", "/apis/example.com/v1", "", "", &code));
		} else {
			fd = http_open(port, 0);
			http_send_request(fd, "GET", path, "", "");
			(void) poll(NULL, 0, 5);
			(void) close(fd);
		}
	}
	return NULL;
}

static void many_definitions_come_and_go_under_load(void **state)
{
	pthread_t threads[2];

	atomic_store(&is_over, false);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look_around, (void *) (i + 7)), 0);
	for (int i = 0; i < MANY; i++) {
		char plural[32], kind[32], path[256], body[256];

		sprintf(plural, "kind%ds", i);
		sprintf(kind, "Kind%d", i);
		create_crd(plural, kind, V1, "");
		if (i % 4 == 0) {
			await_established(plural);
			sprintf(path, "/apis/example.com/v1/namespaces/default/%s", plural);
			sprintf(body,
				"{\"apiVersion\":\"example.com/"
				"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"a\"}}",
				kind);
			expect("POST", path, JSON, body, 201, "");
		}
		if (i % 3 == 0) {
			sprintf(path, CRDS "/%s.example.com", plural);
			expect("DELETE", path, "", "", 200, "");
		}
	}
	for (int i = 0; i < MANY; i++) {
		char path[256];
		int  code;

		sprintf(path, CRDS "/kind%ds.example.com", i);
		free(http_ask(fixture.port, "DELETE", path, "", "", &code));
	}
	await_without(CRDS, "example.com");
	atomic_store(&is_over, true);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	await_without("/apis", "example.com");
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
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
		TEST(objects_have_defaults_that_came_after_them),
		TEST(a_slow_watch_hears_of_all_deletions),
		TEST(new_kinds_are_searched_for_dependents),
		TEST(what_a_kind_owned_goes_with_it),
		TEST(owners_of_unknown_kinds_are_not_absent),
		TEST(the_resources_file_is_read_again),
		TEST(many_definitions_come_and_go_under_load),
	};

	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
