/* Objects over HTTP, with the server in this process: create, read, change, delete, and refusals. */
#include "http_fixture.h"
#include "http_shared.h"

#define JSON HTTP_JSON

/* rules: H-332 */
static void r660_objects_are_created_read_changed_and_deleted(void **state)
{
	http_shared_expect("POST", HTTP_CM, JSON, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"x\":\"1\"}}",
			   201, "\"uid\":\"");
	http_shared_expect("POST", HTTP_CM, JSON, "{\"metadata\":{\"name\":\"a\"}}", 409,
			   "configmaps \\\"a\\\" already exists");
	http_shared_expect("GET", HTTP_CM "/a", "", "", 200, "\"data\":{\"x\":\"1\"}");
	http_shared_expect("PUT", HTTP_CM "/a", JSON,
			   "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}", 409,
			   "the object has been modified");
	http_shared_expect("PUT", HTTP_CM "/a", JSON,
			   "{\"metadata\":{\"name\":\"a\"},\"data\":{\"x\":\"2\"}}", 200, "\"x\":\"2\"");
	http_shared_expect("PUT", HTTP_CM "/a", JSON, "{\"metadata\":{\"name\":\"b\"}}", 400,
			   "does not match the name on the URL");
	http_shared_expect("PUT", HTTP_CM "/nope", JSON, "{\"metadata\":{\"name\":\"nope\"}}", 404,
			   "configmaps \\\"nope\\\" not found");
	http_shared_expect("PATCH", HTTP_CM "/a", HTTP_MERGE, "{\"data\":{\"y\":\"3\",\"x\":null}}", 200,
			   "\"data\":{\"y\":\"3\"}");
	http_shared_expect("PATCH", HTTP_CM "/a", "Content-Type: application/json-patch+json\r\n",
			   "[{\"op\":\"test\",\"path\":\"/data/y\",\"value\":\"9\"}]", 422,
			   "testing value failed");
	http_shared_expect("PATCH", HTTP_CM "/a", "Content-Type: application/apply-patch+yaml\r\n", "{}", 415,
			   "UnsupportedMediaType");
	http_shared_expect("DELETE", HTTP_CM "/a", JSON, "{\"preconditions\":{\"uid\":\"other\"}}", 409,
			   "Precondition failed: UID in precondition: other");
	http_shared_expect("DELETE", HTTP_CM "/a?dryRun=All", "", "", 200, "\"status\":\"Success\"");
	http_shared_expect("DELETE", HTTP_CM "/a", "", "", 200, "\"status\":\"Success\"");
	http_shared_expect("GET", HTTP_CM "/a", "", "", 404, "\"reason\":\"NotFound\"");
}

/* rules: R-110, H-307, H-331 */
static void r661_bad_bodies_are_refused(void **state)
{
	http_shared_expect("POST", HTTP_CM, JSON, "{", 400, "expected a string as key");
	http_shared_expect("POST", HTTP_CM, JSON, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}", 400,
			   "cannot be handled as a ConfigMap");
	http_shared_expect("POST", HTTP_CM, JSON, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"other\"}}",
			   400, "does not match the namespace sent on the request");
	http_shared_expect("POST", HTTP_CM, JSON, "{\"metadata\":{\"name\":\"A_\"}}", 422,
			   "metadata.name: Invalid value");
	http_shared_expect("POST", HTTP_CM, "Content-Type: application/vnd.kubernetes.protobuf\r\n", "k8s",
			   400, "malformed protobuf");
	http_shared_expect("POST", HTTP_CM, "Content-Type: application/cbor\r\n", "k8s", 415,
			   "application/json, application/yaml, application/vnd.kubernetes.protobuf");
	http_shared_expect("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
			   "Content-Type: application/vnd.kubernetes.protobuf\r\n", "k8s", 415,
			   "application/json, application/yaml\"");
	http_shared_expect("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
			   "Accept: application/vnd.kubernetes.protobuf\r\n", "", 406,
			   "accepted: application/json\"");
	http_shared_expect("GET", HTTP_CM "/nope", "Accept: text/html\r\n", "", 406,
			   "application/json, application/vnd.kubernetes.protobuf");
	http_shared_expect("GET", HTTP_CM "/a%25b", "", "", 400,
			   "Name parameter invalid: \\\"a%b\\\": may not contain '%'");
	http_shared_expect("POST", "/api/v1/namespaces/nope/configmaps", JSON,
			   "{\"metadata\":{\"name\":\"a\"}}", 404, "namespaces \\\"nope\\\" not found");
	http_shared_expect("POST", HTTP_CM, JSON, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"5\"}}",
			   500, "resourceVersion should not be set");
	http_shared_expect("POST", HTTP_CM "?dryRun=All", JSON, "{\"metadata\":{\"name\":\"dry\"}}", 201,
			   "\"name\":\"dry\"");
	http_shared_expect("GET", HTTP_CM "/dry", "", "", 404, "NotFound");
}

/* warning: a part of the answer's head; NULL: no warning. */
static void expect_warning(const char *method, const char *path, const char *headers, const char *body,
			   int code, const char *warning)
{
	struct http_answer answer = http_shared_request(method, path, headers, body);

	assert_int_equal(answer.code, code);
	if (warning)
		assert_non_null(strstr(answer.head, warning));
	else
		assert_null(strstr(answer.head, "Warning:"));
	http_answer_free(&answer);
}

static void r612_fields_are_checked_against_the_kind(void **state)
{
	static const char unknown[] =
		"{\"metadata\":{\"name\":\"fields\",\"lables\":{}},\"datum\":{\"x\":\"1\"}}";

	(void) state;
	http_shared_expect(
		"POST", HTTP_CM "?fieldValidation=Strict&dryRun=All", JSON, unknown, 400,
		"ConfigMap in version \\\"v1\\\" cannot be handled as a ConfigMap: strict decoding error: "
		"unknown field \\\"metadata.lables\\\", "
		"unknown field \\\"datum\\\"");
	/* Warn is the default */
	expect_warning("POST", HTTP_CM "?dryRun=All", JSON, unknown, 201,
		       "\r\nWarning: 299 - \"unknown field \\\"metadata.lables\\\"\"\r\nWarning: 299 - "
		       "\"unknown field \\\"datum\\\"\"\r\n");
	expect_warning("POST", HTTP_CM "?dryRun=All&fieldValidation=Ignore", JSON, unknown, 201, NULL);
	/* a text that could end the header is not in the warning */
	expect_warning("POST", HTTP_CM "?dryRun=All", JSON,
		       "{\"metadata\":{\"name\":\"fields\"},\"a\\r\\nX: y\\\"\":1}", 201,
		       "unknown field \\\"a??X: y?\\\"\"\r\n");
	http_shared_expect("POST", HTTP_CM "?dryRun=All", JSON,
			   "{\"metadata\":{\"name\":\"fields\"},\"data\":{\"x\":1}}", 400,
			   "cannot be handled as a ConfigMap: data.x: is not a string");
	http_shared_expect("POST", HTTP_CM, JSON, "{\"metadata\":{\"name\":\"fields\"}}", 201, "fields");
	http_shared_expect("PATCH", HTTP_CM "/fields", HTTP_MERGE, "{\"data\":{\"x\":1}}", 422,
			   "data.x: is not a string");
	http_shared_expect("PATCH", HTTP_CM "/fields?fieldValidation=Strict", HTTP_MERGE, "{\"datum\":1}",
			   422, "strict decoding error: unknown field \\\"datum\\\"");
	expect_warning("PATCH", HTTP_CM "/fields?dryRun=All", HTTP_MERGE, "{\"datum\":1}", 200,
		       "\r\nWarning: 299 - \"unknown field \\\"datum\\\"\"\r\n");
	expect_warning("PATCH", HTTP_CM "/fields?fieldValidation=Ignore", HTTP_MERGE, "{\"datum\":1}", 200,
		       NULL);
	/* members stored before may stay */
	http_shared_expect("PATCH", HTTP_CM "/fields?fieldValidation=Strict", HTTP_MERGE,
			   "{\"data\":{\"x\":\"1\"}}", 200, "\"x\":\"1\"");
	http_shared_expect("POST", HTTP_CM "?dryRun=All", JSON,
			   "{\"metadata\":{\"name\":\"nulls\",\"labels\":{\"a\":null}}}", 201,
			   "\"labels\":{\"a\":\"\"}");
	http_shared_expect("PUT", HTTP_CM "/fields?fieldValidation=Strict", JSON, unknown, 400,
			   "strict decoding error");
	/* a definition has tables of its own */
	http_shared_expect(
		"POST",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All&fieldValidation=Strict",
		JSON,
		"{\"metadata\":{\"name\":\"as.example.com\"},\"spec\":{\"group\":\"example.com\",\"x\":1,"
		"\"scope\":\"Cluster\",\"names\":{\"plural\":\"as\","
		"\"kind\":\"A\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
		"\"openAPIV3Schema\":{\"type\":\"object\"}}}]}}",
		400, "strict decoding error: unknown field \\\"spec.x\\\"");
	http_shared_expect("DELETE", HTTP_CM "/fields", "", "", 200, "Success");
}

static void r667_finalizers_delay_the_deletion(void **state)
{
	http_shared_expect("POST", HTTP_CM, JSON,
			   "{\"metadata\":{\"name\":\"f\",\"finalizers\":[\"example.com/x\"]}}", 201,
			   "example.com/x");
	http_shared_expect("DELETE", HTTP_CM "/f", "", "", 200, "\"deletionTimestamp\":\"");
	http_shared_expect("GET", HTTP_CM "/f", "", "", 200, "\"deletionTimestamp\":\"");
	http_shared_expect("PATCH", HTTP_CM "/f", HTTP_MERGE, "{\"metadata\":{\"finalizers\":null}}", 200,
			   "\"name\":\"f\"");
	http_shared_expect("GET", HTTP_CM "/f", "", "", 404, "NotFound");
}

/* rules: R-645 */
static void h348_status_has_its_own_door(void **state)
{
	static const char path[] = "/api/v1/namespaces/default/pods";

	http_shared_expect("POST", path, JSON,
			   "{\"metadata\":{\"name\":\"p\"},\"spec\":{},\"status\":{\"phase\":\"Running\"}}",
			   201, "\"phase\":\"Pending\"");
	http_shared_expect("PATCH", "/api/v1/namespaces/default/pods/p/status", HTTP_MERGE,
			   "{\"status\":{\"phase\":\"Running\"},\"spec\":{\"nodeName\":\"n\"}}", 200,
			   "\"spec\":{}");
	http_shared_expect("GET", "/api/v1/namespaces/default/pods/p", "", "", 200, "\"phase\":\"Running\"");
	http_shared_expect("PATCH", "/api/v1/namespaces/default/pods/p",
			   "Content-Type: application/strategic-merge-patch+json\r\n",
			   "{\"spec\":{\"nodeName\":\"n\"},\"status\":null}", 200, "\"generation\":2");
	http_shared_expect("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn", "", "", 200,
			   "\"name\":\"p\"");
	http_shared_expect("GET", "/api/v1/pods", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n",
			   "", 200, "\"cells\":[\"p\",\"0/0\",\"Running\",\"0\"");
	http_shared_expect("GET", "/api/v1/namespaces/default/pods/p/log", "", "", 404,
			   "the server could not find the requested resource");
	http_shared_expect("DELETE", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0", "", "", 200,
			   "Success");
	http_shared_expect("GET", path, "", "", 200, "\"items\":[]");
}

/* Clients at a terminal or a browser get indented JSON, unless they request otherwise; watches never do. */
static void r609_pretty_is_for_people(void **state)
{
	static const struct {
		const char *agent, *query;
		bool	    is_pretty;
	} rows[] = {
		{ "curl/8.0", "", true },
		{ "Wget/1.21", "", true },
		{ "Mozilla/5.0 (X11)", "", true },
		{ "curl/8.0", "?pretty=false", false },
		{ "Wget/1.21", "?pretty=0", false },
		{ "Mozilla/4.0", "", false },
		{ "kubectl/v1.37", "", false },
		{ "kubectl/v1.37", "?pretty=true", true },
		{ "kubectl/v1.37", "?pretty=1", true },
		{ "xcurl", "", false },
		{ "curl/8.0", "?pretty=true", true },
	};
	struct http_client client;
	char		   headers[128], path[200], *text;

	http_shared_expect("POST", HTTP_CM, JSON, "{\"metadata\":{\"name\":\"pretty\"}}", 201, "");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		(void) snprintf(headers, sizeof headers, "User-Agent: %s\r\n", rows[i].agent);
		(void) snprintf(path, sizeof path, HTTP_CM "/pretty%s", rows[i].query);
		http_shared_expect("GET", path, headers, "", 200,
				   rows[i].is_pretty ? "\n  \"metadata\": {\n" : "\"metadata\":{\"");
	}
	client = http_client_open();
	http_client_send(&client, "GET " HTTP_CM "?watch=1&pretty=true&fieldSelector=metadata.name%3Dpretty "
				  "HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8.0\r\n\r\n");
	free(http_client_read_until(&client, "\r\n\r\n"));
	text = http_client_read_chunk(&client);
	assert_non_null(text);
	assert_ptr_equal(strstr(text, "{\"type\":\"ADDED\",\"object\":{\""), text);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	free(text);
	http_client_close(&client);
	http_shared_expect("DELETE", HTTP_CM "/pretty", "", "", 200, "Success");
}

static void h347_scale_reads_and_writes_replicas(void **state)
{
	static const char path[] = "/apis/apps/v1/namespaces/default/deployments";

	http_shared_expect("POST", path, JSON, "{\"metadata\":{\"name\":\"d\"},\"spec\":{}}", 201,
			   "\"replicas\":1");
	http_shared_expect("PATCH", "/apis/apps/v1/namespaces/default/deployments/d/scale", HTTP_MERGE,
			   "{\"spec\":{\"replicas\":4}}", 200, "\"kind\":\"Scale\"");
	http_shared_expect("GET", "/apis/apps/v1/namespaces/default/deployments/d", "", "", 200,
			   "\"replicas\":4");
	http_shared_expect("GET", "/apis/apps/v1/namespaces/default/deployments/d/scale", "", "", 200,
			   "\"spec\":{\"replicas\":4}");
}

/* Go's encoder omits zero, in JSON as in protobuf: a Scale of zero has no number. */
static void h347_a_scale_without_a_number_is_zero(void **state)
{
	static const char path[] = "/apis/apps/v1/namespaces/default/deployments",
			  scale[] = "/apis/apps/v1/namespaces/default/deployments/zero/scale";

	http_shared_expect("POST", path, JSON, "{\"metadata\":{\"name\":\"zero\"},\"spec\":{\"replicas\":3}}",
			   201, "\"replicas\":3");
	http_shared_expect("PUT", scale, JSON,
			   "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/"
			   "v1\",\"metadata\":{\"name\":\"zero\"},\"spec\":{}}",
			   200, "\"spec\":{\"replicas\":0}");
	http_shared_expect("GET", "/apis/apps/v1/namespaces/default/deployments/zero", "", "", 200,
			   "\"replicas\":0");
}

/* No Go client could decode a list with such an object. */
static void numbers_that_fit_neither_int64_nor_float64_are_refused(void **state)
{
	static const char why[] = "ConfigMap in version \\\"v1\\\" cannot be handled as a ConfigMap: json: "
				  "cannot unmarshal number 1e400 into Go value of type float64";
	static const char patch[] =
		"error decoding patch: json: cannot unmarshal number -1e309 into Go value of type float64";

	/* Also in a member unknown to the kind, which is stored. */
	http_shared_expect("POST", HTTP_CM, JSON, "{\"metadata\":{\"name\":\"number\"},\"x\":1e400}", 400,
			   why);
	http_shared_expect("GET", HTTP_CM "/number", "", "", 404, "NotFound");
	http_shared_expect(
		"POST", HTTP_CM, JSON,
		"{\"metadata\":{\"name\":\"number\"},\"data\":{\"a\":\"1e400\"},\"x\":[1e308,1e-400,-0,"
		"18446744073709551616]}",
		201, "18446744073709551616");
	http_shared_expect("PUT", HTTP_CM "/number", JSON,
			   "{\"metadata\":{\"name\":\"number\"},\"x\":{\"y\":[1e400]}}", 400, why);
	http_shared_expect("PATCH", HTTP_CM "/number", HTTP_MERGE, "{\"x\":-1e309}", 400, patch);
	http_shared_expect("PATCH", HTTP_CM "/number",
			   "Content-Type: application/strategic-merge-patch+json\r\n", "{\"x\":-1e309}", 400,
			   patch);
	http_shared_expect("PATCH", HTTP_CM "/number", "Content-Type: application/json-patch+json\r\n",
			   "[{\"op\":\"add\",\"path\":\"/x\",\"value\":-1e309}]", 400, patch);
	http_shared_expect("DELETE", HTTP_CM "/number", JSON, "{\"gracePeriodSeconds\":1e400}", 400,
			   "gracePeriodSeconds must be an integer");
	http_shared_expect("GET", HTTP_CM "/number", "", "", 200,
			   "\"x\":[1e308,1e-400,-0,18446744073709551616]");
}

/* Names by kind, Secrets, empty preconditions: the rules of the unit tests, over HTTP. */
static void r661_kinds_have_rules(void **state)
{
	static const char secrets[] = "/api/v1/namespaces/default/secrets",
			  secret[] = "/api/v1/namespaces/default/secrets/rules";

	http_shared_expect("POST", "/api/v1/namespaces/default/services", JSON,
			   "{\"metadata\":{\"name\":\"a.b\"}}", 422,
			   "\"causes\":[{\"reason\":\"FieldValueInvalid\",\"message\":\"Invalid value: "
			   "\\\"a.b\\\": must "
			   "not contain dots\",\"field\":\"metadata.name\"}]");
	http_shared_expect("POST", HTTP_CM, JSON, "{\"metadata\":{\"name\":\"a.b\"}}", 201, "\"a.b\"");
	http_shared_expect(
		"POST", secrets, JSON,
		"{\"metadata\":{\"name\":\"rules\"},\"stringData\":{\"a\":\"x\"},\"immutable\":true}", 201,
		"\"type\":\"Opaque\"");
	http_shared_expect("GET", secret, "", "", 200, "\"data\":{\"a\":\"eA==\"}");
	http_shared_expect("PATCH", secret, HTTP_MERGE, "{\"stringData\":{\"a\":\"y\"}}", 422,
			   "data: Forbidden: field is immutable when `immutable` is set");
	http_shared_expect("DELETE", secret, JSON, "{\"preconditions\":{\"uid\":\"\"}}", 409,
			   "Precondition failed");
	http_shared_expect("GET", "/api/v1/namespaces/default/secrets?fieldSelector=type%3DOpaque", "", "",
			   200, "\"rules\"");
}

/* A get at an exact revision returns the object as it was then. */
static void r472_get_at_an_exact_revision(void **state)
{
	char		   path[200];
	long long	   first;
	struct http_answer answer;
	const char	  *at;

	http_shared_expect(
		"POST", HTTP_CM, "",
		"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"travel\"},\"data\":{"
		"\"k\":\"one\"}}",
		201, "travel");
	answer = http_shared_request("GET", HTTP_CM "/travel", "", "");
	at = strstr(answer.body, "\"resourceVersion\":\"");
	assert_non_null(at);
	first = atoll(at + strlen("\"resourceVersion\":\""));
	http_answer_free(&answer);
	http_shared_expect("PATCH", HTTP_CM "/travel", HTTP_MERGE, "{\"data\":{\"k\":\"two\"}}", 200, "two");
	http_shared_expect("DELETE", HTTP_CM "/travel", "", "", 200, "Success");
	for (int i = -1; i <= 2; i++) {
		snprintf(path, sizeof path, HTTP_CM "/travel?resourceVersionMatch=Exact&resourceVersion=%lld",
			 first + i);
		if (i == 0 || i == 1)
			http_shared_expect("GET", path, "", "", 200, i ? "\"k\":\"two\"" : "\"k\":\"one\"");
		else
			http_shared_expect("GET", path, "", "", 404, "configmaps \\\"travel\\\" not found");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r660_objects_are_created_read_changed_and_deleted),
		cmocka_unit_test(r661_bad_bodies_are_refused),
		cmocka_unit_test(r612_fields_are_checked_against_the_kind),
		cmocka_unit_test(r667_finalizers_delay_the_deletion),
		cmocka_unit_test(h348_status_has_its_own_door),
		cmocka_unit_test(r609_pretty_is_for_people),
		cmocka_unit_test(h347_scale_reads_and_writes_replicas),
		cmocka_unit_test(r472_get_at_an_exact_revision),
		cmocka_unit_test(h347_a_scale_without_a_number_is_zero),
		cmocka_unit_test(numbers_that_fit_neither_int64_nor_float64_are_refused),
		cmocka_unit_test(r661_kinds_have_rules),
	};
	return cmocka_run_group_tests(tests, http_shared_set_up, http_shared_tear_down);
}
