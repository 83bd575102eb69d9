/* The server in this process, on a memory store, spoken to over raw sockets: CRUD, lists, watches, and
 * clients that misbehave. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "http_fixture.h"
#include "json_scan.h"
#include "wait.h"

/* What one client has read and not yet used up. */
struct client {
	int    fd;
	char  *data;
	size_t size;
	size_t capacity;
};

struct answer {
	int   code;
	char *head;
	char *body;
};

static struct http_fixture fixture;

static int set_up(void **state)
{
	(void) state;
	http_fixture_init(&fixture);
	http_fixture_start(&fixture, 2, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void) state;
	http_fixture_close(&fixture, VD_SECONDS(10));
	return 0;
}

static struct client open_client(void)
{
	return (struct client) { .fd = http_open(fixture.port, 0) };
}

static void close_client(struct client *client)
{
	(void) close(client->fd);
	free(client->data);
	memset(client, 0, sizeof *client);
	client->fd = -1;
}

static void send_text(struct client *client, const char *text)
{
	http_send_bytes(client->fd, text, strlen(text));
}

/* False at the end of the stream. */
static bool read_more(struct client *client)
{
	ssize_t size;

	if (client->capacity - client->size < 65536) {
		client->capacity = client->capacity * 2 + 131072;
		client->data = realloc(client->data, client->capacity);
	}
	size = http_receive_bytes(client->fd, client->data + client->size,
				  client->capacity - client->size - 1);
	if (size <= 0)
		return false;
	client->size += (size_t) size;
	client->data[client->size] = 0;
	return true;
}

static void use_up(struct client *client, size_t size)
{
	client->size -= size;
	memmove(client->data, client->data + size, client->size + 1);
}

static char *read_until(struct client *client, const char *mark)
{
	char *found = NULL, *text;

	while (client->size == 0 || (found = strstr(client->data, mark)) == NULL)
		assert_true(read_more(client));
	found += strlen(mark);
	text = strndup(client->data, (size_t) (found - client->data));
	use_up(client, (size_t) (found - client->data));
	return text;
}

static char *read_exactly(struct client *client, size_t size)
{
	char *text;

	while (client->size < size)
		assert_true(read_more(client));
	text = malloc(size + 1);
	memcpy(text, client->data, size);
	text[size] = 0;
	use_up(client, size);
	return text;
}

/* NULL for the last chunk. */
static char *read_chunk(struct client *client)
{
	char  *line = read_until(client, "\r\n");
	size_t size = strtoul(line, NULL, 16);
	char  *chunk = read_exactly(client, size), *end = read_exactly(client, 2);

	assert_string_equal(end, "\r\n");
	free(end);
	free(line);
	if (size)
		return chunk;
	free(chunk);
	return NULL;
}

static struct answer read_answer(struct client *client)
{
	struct answer answer = { .head = read_until(client, "\r\n\r\n") };
	const char   *length = strstr(answer.head, "Content-Length: ");

	answer.code = http_code_of(answer.head);
	if (length) {
		answer.body = read_exactly(client, strtoul(length + 16, NULL, 10));
	} else if (strstr(answer.head, "Transfer-Encoding: chunked")) {
		size_t size = 0;
		char  *chunk;

		answer.body = calloc(1, 1);
		while ((chunk = read_chunk(client)) != NULL) {
			answer.body = realloc(answer.body, size + strlen(chunk) + 1);
			strcpy(answer.body + size, chunk);
			size += strlen(chunk);
			free(chunk);
		}
	} else {
		answer.body = calloc(1, 1);
	}
	return answer;
}

static void free_answer(struct answer *answer)
{
	free(answer->head);
	free(answer->body);
}

static struct answer request_on(struct client *client, const char *method, const char *path,
				const char *headers, const char *body)
{
	http_send_kept_request(client->fd, method, path, headers, body);
	return read_answer(client);
}

static struct answer request(const char *method, const char *path, const char *headers, const char *body)
{
	struct client client = open_client();
	struct answer answer = request_on(&client, method, path, headers, body);

	close_client(&client);
	return answer;
}

#define JSON HTTP_JSON

static void expect(const char *method, const char *path, const char *headers, const char *body, int code,
		   const char *part)
{
	struct answer answer = request(method, path, headers, body);

	if (answer.code != code || strstr(answer.body, part) == NULL)
		print_message("%s %s: %d %s\n", method, path, answer.code, answer.body);
	assert_int_equal(answer.code, code);
	assert_non_null(strstr(answer.body, part));
	free_answer(&answer);
}

#define CM "/api/v1/namespaces/default/configmaps"

/* rules: H-332 */
static void r660_objects_are_created_read_changed_and_deleted(void **state)
{
	expect("POST", CM, JSON, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"x\":\"1\"}}", 201, "\"uid\":\"");
	expect("POST", CM, JSON, "{\"metadata\":{\"name\":\"a\"}}", 409,
	       "configmaps \\\"a\\\" already exists");
	expect("GET", CM "/a", "", "", 200, "\"data\":{\"x\":\"1\"}");
	expect("PUT", CM "/a", JSON, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}", 409,
	       "the object has been modified");
	expect("PUT", CM "/a", JSON, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"x\":\"2\"}}", 200,
	       "\"x\":\"2\"");
	expect("PUT", CM "/a", JSON, "{\"metadata\":{\"name\":\"b\"}}", 400,
	       "does not match the name on the URL");
	expect("PUT", CM "/nope", JSON, "{\"metadata\":{\"name\":\"nope\"}}", 404,
	       "configmaps \\\"nope\\\" not found");
	expect("PATCH", CM "/a", HTTP_MERGE, "{\"data\":{\"y\":\"3\",\"x\":null}}", 200,
	       "\"data\":{\"y\":\"3\"}");
	expect("PATCH", CM "/a", "Content-Type: application/json-patch+json\r\n",
	       "[{\"op\":\"test\",\"path\":\"/data/y\",\"value\":\"9\"}]", 422, "testing value failed");
	expect("PATCH", CM "/a", "Content-Type: application/apply-patch+yaml\r\n", "{}", 415,
	       "UnsupportedMediaType");
	expect("DELETE", CM "/a", JSON, "{\"preconditions\":{\"uid\":\"other\"}}", 409,
	       "Precondition failed: UID in precondition: other");
	expect("DELETE", CM "/a?dryRun=All", "", "", 200, "\"status\":\"Success\"");
	expect("DELETE", CM "/a", "", "", 200, "\"status\":\"Success\"");
	expect("GET", CM "/a", "", "", 404, "\"reason\":\"NotFound\"");
}

/* rules: R-110, H-307, H-331 */
static void r661_bad_bodies_are_refused(void **state)
{
	expect("POST", CM, JSON, "{", 400, "expected a string as key");
	expect("POST", CM, JSON, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}", 400,
	       "cannot be handled as a ConfigMap");
	expect("POST", CM, JSON, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"other\"}}", 400,
	       "does not match the namespace sent on the request");
	expect("POST", CM, JSON, "{\"metadata\":{\"name\":\"A_\"}}", 422, "metadata.name: Invalid value");
	expect("POST", CM, "Content-Type: application/vnd.kubernetes.protobuf\r\n", "k8s", 400,
	       "malformed protobuf");
	expect("POST", CM, "Content-Type: application/cbor\r\n", "k8s", 415,
	       "application/json, application/yaml, application/vnd.kubernetes.protobuf");
	expect("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	       "Content-Type: application/vnd.kubernetes.protobuf\r\n", "k8s", 415,
	       "application/json, application/yaml\"");
	expect("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	       "Accept: application/vnd.kubernetes.protobuf\r\n", "", 406, "accepted: application/json\"");
	expect("GET", CM "/nope", "Accept: text/html\r\n", "", 406,
	       "application/json, application/vnd.kubernetes.protobuf");
	expect("GET", CM "/a%25b", "", "", 400, "Name parameter invalid: \\\"a%b\\\": may not contain '%'");
	expect("POST", "/api/v1/namespaces/nope/configmaps", JSON, "{\"metadata\":{\"name\":\"a\"}}", 404,
	       "namespaces \\\"nope\\\" not found");
	expect("POST", CM, JSON, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"5\"}}", 500,
	       "resourceVersion should not be set");
	expect("POST", CM "?dryRun=All", JSON, "{\"metadata\":{\"name\":\"dry\"}}", 201, "\"name\":\"dry\"");
	expect("GET", CM "/dry", "", "", 404, "NotFound");
}

/* warning: a part of the answer's head; NULL: nothing is warned of. */
static void expect_warning(const char *method, const char *path, const char *headers, const char *body,
			   int code, const char *warning)
{
	struct answer answer = request(method, path, headers, body);

	assert_int_equal(answer.code, code);
	if (warning)
		assert_non_null(strstr(answer.head, warning));
	else
		assert_null(strstr(answer.head, "Warning:"));
	free_answer(&answer);
}

static void r612_fields_are_checked_against_the_kind(void **state)
{
	static const char unknown[] =
		"{\"metadata\":{\"name\":\"fields\",\"lables\":{}},\"datum\":{\"x\":\"1\"}}";

	(void) state;
	expect("POST", CM "?fieldValidation=Strict&dryRun=All", JSON, unknown, 400,
	       "ConfigMap in version \\\"v1\\\" cannot be handled as a ConfigMap: strict decoding error: "
	       "unknown field \\\"metadata.lables\\\", "
	       "unknown field \\\"datum\\\"");
	/* Warn is the default */
	expect_warning("POST", CM "?dryRun=All", JSON, unknown, 201,
		       "\r\nWarning: 299 - \"unknown field \\\"metadata.lables\\\"\"\r\nWarning: 299 - "
		       "\"unknown field \\\"datum\\\"\"\r\n");
	expect_warning("POST", CM "?dryRun=All&fieldValidation=Ignore", JSON, unknown, 201, NULL);
	/* what could end the header does not */
	expect_warning("POST", CM "?dryRun=All", JSON,
		       "{\"metadata\":{\"name\":\"fields\"},\"a\\r\\nX: y\\\"\":1}", 201,
		       "unknown field \\\"a??X: y?\\\"\"\r\n");
	expect("POST", CM "?dryRun=All", JSON, "{\"metadata\":{\"name\":\"fields\"},\"data\":{\"x\":1}}", 400,
	       "cannot be handled as a ConfigMap: data.x: is not a string");
	expect("POST", CM, JSON, "{\"metadata\":{\"name\":\"fields\"}}", 201, "fields");
	expect("PATCH", CM "/fields", HTTP_MERGE, "{\"data\":{\"x\":1}}", 422, "data.x: is not a string");
	expect("PATCH", CM "/fields?fieldValidation=Strict", HTTP_MERGE, "{\"datum\":1}", 422,
	       "strict decoding error: unknown field \\\"datum\\\"");
	expect_warning("PATCH", CM "/fields?dryRun=All", HTTP_MERGE, "{\"datum\":1}", 200,
		       "\r\nWarning: 299 - \"unknown field \\\"datum\\\"\"\r\n");
	expect_warning("PATCH", CM "/fields?fieldValidation=Ignore", HTTP_MERGE, "{\"datum\":1}", 200, NULL);
	/* what was stored so may stay */
	expect("PATCH", CM "/fields?fieldValidation=Strict", HTTP_MERGE, "{\"data\":{\"x\":\"1\"}}", 200,
	       "\"x\":\"1\"");
	expect("POST", CM "?dryRun=All", JSON, "{\"metadata\":{\"name\":\"nulls\",\"labels\":{\"a\":null}}}",
	       201, "\"labels\":{\"a\":\"\"}");
	expect("PUT", CM "/fields?fieldValidation=Strict", JSON, unknown, 400, "strict decoding error");
	/* a definition has tables of its own */
	expect("POST",
	       "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All&fieldValidation=Strict",
	       JSON,
	       "{\"metadata\":{\"name\":\"as.example.com\"},\"spec\":{\"group\":\"example.com\",\"x\":1,"
	       "\"scope\":\"Cluster\",\"names\":{\"plural\":\"as\","
	       "\"kind\":\"A\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
	       "\"openAPIV3Schema\":{\"type\":\"object\"}}}]}}",
	       400, "strict decoding error: unknown field \\\"spec.x\\\"");
	expect("DELETE", CM "/fields", "", "", 200, "Success");
}

static void r667_finalizers_delay_the_deletion(void **state)
{
	expect("POST", CM, JSON, "{\"metadata\":{\"name\":\"f\",\"finalizers\":[\"example.com/x\"]}}", 201,
	       "example.com/x");
	expect("DELETE", CM "/f", "", "", 200, "\"deletionTimestamp\":\"");
	expect("GET", CM "/f", "", "", 200, "\"deletionTimestamp\":\"");
	expect("PATCH", CM "/f", HTTP_MERGE, "{\"metadata\":{\"finalizers\":null}}", 200, "\"name\":\"f\"");
	expect("GET", CM "/f", "", "", 404, "NotFound");
}

/* rules: R-645 */
static void h348_status_has_its_own_door(void **state)
{
	static const char path[] = "/api/v1/namespaces/default/pods";

	expect("POST", path, JSON,
	       "{\"metadata\":{\"name\":\"p\"},\"spec\":{},\"status\":{\"phase\":\"Running\"}}", 201,
	       "\"phase\":\"Pending\"");
	expect("PATCH", "/api/v1/namespaces/default/pods/p/status", HTTP_MERGE,
	       "{\"status\":{\"phase\":\"Running\"},\"spec\":{\"nodeName\":\"n\"}}", 200, "\"spec\":{}");
	expect("GET", "/api/v1/namespaces/default/pods/p", "", "", 200, "\"phase\":\"Running\"");
	expect("PATCH", "/api/v1/namespaces/default/pods/p",
	       "Content-Type: application/strategic-merge-patch+json\r\n",
	       "{\"spec\":{\"nodeName\":\"n\"},\"status\":null}", 200, "\"generation\":2");
	expect("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn", "", "", 200, "\"name\":\"p\"");
	expect("GET", "/api/v1/pods", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n", "", 200,
	       "\"cells\":[\"p\",\"0/0\",\"Running\",\"0\"");
	expect("GET", "/api/v1/namespaces/default/pods/p/log", "", "", 404,
	       "the server could not find the requested resource");
	expect("DELETE", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0", "", "", 200, "Success");
	expect("GET", path, "", "", 200, "\"items\":[]");
}

/* People at a terminal or a browser get lines, unless they say otherwise; watches never do. */
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
	struct client client;
	char	      headers[128], path[200], *text;

	expect("POST", CM, JSON, "{\"metadata\":{\"name\":\"pretty\"}}", 201, "");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		(void) snprintf(headers, sizeof headers, "User-Agent: %s\r\n", rows[i].agent);
		(void) snprintf(path, sizeof path, CM "/pretty%s", rows[i].query);
		expect("GET", path, headers, "", 200,
		       rows[i].is_pretty ? "\n  \"metadata\": {\n" : "\"metadata\":{\"");
	}
	client = open_client();
	send_text(&client, "GET " CM "?watch=1&pretty=true&fieldSelector=metadata.name%3Dpretty "
			   "HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8.0\r\n\r\n");
	free(read_until(&client, "\r\n\r\n"));
	text = read_chunk(&client);
	assert_non_null(text);
	assert_ptr_equal(strstr(text, "{\"type\":\"ADDED\",\"object\":{\""), text);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	free(text);
	close_client(&client);
	expect("DELETE", CM "/pretty", "", "", 200, "Success");
}

static void h347_scale_reads_and_writes_replicas(void **state)
{
	static const char path[] = "/apis/apps/v1/namespaces/default/deployments";

	expect("POST", path, JSON, "{\"metadata\":{\"name\":\"d\"},\"spec\":{}}", 201, "\"replicas\":1");
	expect("PATCH", "/apis/apps/v1/namespaces/default/deployments/d/scale", HTTP_MERGE,
	       "{\"spec\":{\"replicas\":4}}", 200, "\"kind\":\"Scale\"");
	expect("GET", "/apis/apps/v1/namespaces/default/deployments/d", "", "", 200, "\"replicas\":4");
	expect("GET", "/apis/apps/v1/namespaces/default/deployments/d/scale", "", "", 200,
	       "\"spec\":{\"replicas\":4}");
}

/* Go's encoder omits zero, in JSON as in protobuf: a Scale of zero has no number. */
static void h347_a_scale_without_a_number_is_zero(void **state)
{
	static const char path[] = "/apis/apps/v1/namespaces/default/deployments",
			  scale[] = "/apis/apps/v1/namespaces/default/deployments/zero/scale";

	expect("POST", path, JSON, "{\"metadata\":{\"name\":\"zero\"},\"spec\":{\"replicas\":3}}", 201,
	       "\"replicas\":3");
	expect("PUT", scale, JSON,
	       "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/"
	       "v1\",\"metadata\":{\"name\":\"zero\"},\"spec\":{}}",
	       200, "\"spec\":{\"replicas\":0}");
	expect("GET", "/apis/apps/v1/namespaces/default/deployments/zero", "", "", 200, "\"replicas\":0");
}

/* No Go client could read a list with such an object. */
static void numbers_that_fit_neither_int64_nor_float64_are_refused(void **state)
{
	static const char why[] = "ConfigMap in version \\\"v1\\\" cannot be handled as a ConfigMap: json: "
				  "cannot unmarshal number 1e400 into Go value of type float64";
	static const char patch[] =
		"error decoding patch: json: cannot unmarshal number -1e309 into Go value of type float64";

	/* Also in a member that the kind does not have, which is stored. */
	expect("POST", CM, JSON, "{\"metadata\":{\"name\":\"number\"},\"x\":1e400}", 400, why);
	expect("GET", CM "/number", "", "", 404, "NotFound");
	expect("POST", CM, JSON,
	       "{\"metadata\":{\"name\":\"number\"},\"data\":{\"a\":\"1e400\"},\"x\":[1e308,1e-400,-0,"
	       "18446744073709551616]}",
	       201, "18446744073709551616");
	expect("PUT", CM "/number", JSON, "{\"metadata\":{\"name\":\"number\"},\"x\":{\"y\":[1e400]}}", 400,
	       why);
	expect("PATCH", CM "/number", HTTP_MERGE, "{\"x\":-1e309}", 400, patch);
	expect("PATCH", CM "/number", "Content-Type: application/strategic-merge-patch+json\r\n",
	       "{\"x\":-1e309}", 400, patch);
	expect("PATCH", CM "/number", "Content-Type: application/json-patch+json\r\n",
	       "[{\"op\":\"add\",\"path\":\"/x\",\"value\":-1e309}]", 400, patch);
	expect("DELETE", CM "/number", JSON, "{\"gracePeriodSeconds\":1e400}", 400,
	       "gracePeriodSeconds must be an integer");
	expect("GET", CM "/number", "", "", 200, "\"x\":[1e308,1e-400,-0,18446744073709551616]");
}

/* Names by kind, Secrets, preconditions that are empty: what unit tests know of the parts, through the
 * door. */
static void r661_kinds_have_rules(void **state)
{
	static const char secrets[] = "/api/v1/namespaces/default/secrets",
			  secret[] = "/api/v1/namespaces/default/secrets/rules";

	expect("POST", "/api/v1/namespaces/default/services", JSON, "{\"metadata\":{\"name\":\"a.b\"}}", 422,
	       "\"causes\":[{\"reason\":\"FieldValueInvalid\",\"message\":\"Invalid value: \\\"a.b\\\": must "
	       "not contain dots\",\"field\":\"metadata.name\"}]");
	expect("POST", CM, JSON, "{\"metadata\":{\"name\":\"a.b\"}}", 201, "\"a.b\"");
	expect("POST", secrets, JSON,
	       "{\"metadata\":{\"name\":\"rules\"},\"stringData\":{\"a\":\"x\"},\"immutable\":true}", 201,
	       "\"type\":\"Opaque\"");
	expect("GET", secret, "", "", 200, "\"data\":{\"a\":\"eA==\"}");
	expect("PATCH", secret, HTTP_MERGE, "{\"stringData\":{\"a\":\"y\"}}", 422,
	       "data: Forbidden: field is immutable when `immutable` is set");
	expect("DELETE", secret, JSON, "{\"preconditions\":{\"uid\":\"\"}}", 409, "Precondition failed");
	expect("GET", "/api/v1/namespaces/default/secrets?fieldSelector=type%3DOpaque", "", "", 200,
	       "\"rules\"");
}

static void discovery_health_and_unknown_paths(void **state)
{
	expect("GET", "/api", "", "", 200, "\"versions\":[\"v1\"]");
	expect("GET", "/apis/apps/v1", "", "", 200, "\"name\":\"deployments/scale\"");
	expect("GET", "/readyz", "", "", 200, "ok");
	expect("GET", "/readyz?verbose", "", "", 200, "[+]cache/pods ok");
	expect("GET", "/nope", "", "", 404, "the server could not find the requested resource");
	expect("GET", "/api/v1/nope", "", "", 404, "NotFound");
	expect("POST", "/api/v1/pods", JSON, "{}", 405, "MethodNotAllowed");
	expect("GET", "/api/v1/pods/..", "", "", 400, "BadRequest");
	expect("GET", "/debug/vedette", "", "", 200, "\"resource\":\"pods\"");
	expect("GET", "/metrics", "", "", 200, "# TYPE");
	expect("GET", "/api/v1/pods?resourceVersion=x", "", "", 400, "invalid syntax");
	expect("GET", "/api/v1/pods", "Accept: text/html\r\n", "", 406, "NotAcceptable");
	expect("GET", "/api/v1/pods", "Sec-Fetch-Site: cross-site\r\n", "", 403, "Forbidden");
}

/* rules: H-111 */
static void h115_a_known_etag_is_not_sent_again(void **state)
{
	struct answer first = request(
		"GET", "/apis",
		"Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n", "");
	char	      header[200], *etag = strstr(first.head, "ETag: ");
	struct answer second;

	assert_non_null(etag);
	assert_non_null(strstr(
		first.head,
		"Content-Type: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n"));
	assert_non_null(strstr(first.head, "Vary: Accept"));
	sprintf(header,
		"Accept: "
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\nIf-None-Match: "
		"%.18s\r\n",
		etag + 6);
	second = request("GET", "/apis", header, "");
	assert_int_equal(second.code, 304);
	free_answer(&first);
	free_answer(&second);
}

static void h606_pipelined_requests_are_answered_in_order(void **state)
{
	struct client		 client = open_client();
	static const char *const paths[] = { "/version", "/api", "/livez" };
	struct answer		 answer;

	send_text(
		&client,
		"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api HTTP/1.1\r\nHost: localhost\r\n\r\n"
		"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(paths); i++) {
		answer = read_answer(&client);
		assert_int_equal(answer.code, 200);
		assert_non_null(strstr(answer.body, i == 0 ? "gitVersion" : i == 1 ? "APIVersions" : "ok"));
		free_answer(&answer);
	}
	assert_false(read_more(&client));
	close_client(&client);
}

static void bytes_one_by_one_and_chunked_bodies_arrive_too(void **state)
{
	static const char text[] =
		"POST " CM " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
		"10\r\n{\"metadata\":{\"na\r\nC\r\nme\":\"slow\"}}\r\n0\r\n\r\n";
	struct client client = open_client();
	struct answer answer;

	for (size_t i = 0; i + 1 < sizeof text; i++) {
		char one[2] = { text[i], 0 };

		send_text(&client, one);
	}
	answer = read_answer(&client);
	assert_int_equal(answer.code, 201);
	free_answer(&answer);
	close_client(&client);
	expect("DELETE", CM "/slow", "", "", 200, "Success");
}

static void r654_bodies_that_are_too_large_are_refused(void **state)
{
	struct client client = open_client();
	struct answer answer;

	send_text(&client, "POST " CM " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n{");
	answer = read_answer(&client);
	assert_int_equal(answer.code, 413);
	assert_non_null(strstr(answer.body, "Request entity too large: limit is 3145728"));
	free_answer(&answer);
	close_client(&client);
	/* One that is as large as may be, and a patch with as many operations, and more. */
	{
		char *body = malloc(3145728 + 1), *patch = malloc(200000);

		assert_true(body && patch);
		memset(body, ' ', 3145728);
		body[3145728] = 0;
		memcpy(body, "{\"metadata\":{\"name\":\"large\"}}",
		       strlen("{\"metadata\":{\"name\":\"large\"}}"));
		expect("POST", CM, JSON, body, 201, "\"name\":\"large\"");
		for (int operations = 10000; operations <= 10001; operations++) {
			static const char operation[] = "{\"op\":\"test\"},";
			char		 *at = patch;

			*at++ = '[';
			for (int i = 0; i < operations; i++, at += sizeof operation - 1)
				memcpy(at, operation, sizeof operation - 1);
			memcpy(at - 1, "]", 2);
			expect("PATCH", CM "/large", "Content-Type: application/json-patch+json\r\n", patch,
			       operations > 10000 ? 413 : 400,
			       operations > 10000 ? "\"reason\":\"RequestEntityTooLarge\"" : "");
		}
		expect("DELETE", CM "/large", "", "", 200, "Success");
		free(body);
		free(patch);
	}
	/* In chunks, of which none is too large. */
	{
		static char chunk[(1 << 20) + 1];

		memset(chunk, ' ', sizeof chunk - 1);
		client = open_client();
		send_text(&client,
			  "POST " CM " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
		for (int i = 0; i < 3; i++) {
			send_text(&client, "100000\r\n");
			send_text(&client, chunk);
			send_text(&client, "\r\n");
		}
		send_text(&client, "1\r\n{\r\n");
		answer = read_answer(&client);
		assert_int_equal(answer.code, 413);
		assert_non_null(strstr(answer.body, "Request entity too large: limit is 3145728"));
		free_answer(&answer);
		close_client(&client);
	}
}

static void a_list_of_many_comes_whole_and_in_pages(void **state)
{
	struct answer answer;
	size_t	      count = 0;
	char	      body[1200], filler[1000];

	memset(filler, 'f', sizeof filler - 1);
	filler[sizeof filler - 1] = 0;
	for (int i = 0; i < 400; i++) {
		sprintf(body,
			"{\"metadata\":{\"name\":\"many-%03d\",\"labels\":{\"many\":\"1\"}},\"data\":{\"x\":"
			"\"%s\"}}",
			i, filler);
		expect("POST", CM, JSON, body, 201, "many-");
	}
	answer = request("GET", CM "?labelSelector=many%3D1", "", "");
	assert_int_equal(answer.code, 200);
	for (const char *at = answer.body; (at = strstr(at, "\"name\":\"many-")) != NULL; at++)
		count++;
	assert_int_equal(count, 400);
	assert_string_equal(answer.body + strlen(answer.body) - 4, "}]}\n");
	free_answer(&answer);
	expect("GET", CM "?limit=5", "", "", 200, "\"remainingItemCount\":");
	expect("GET", CM "?labelSelector=many&limit=5",
	       "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io\r\n", "", 200,
	       "\"kind\":\"PartialObjectMetadataList\"");
	expect("GET", CM "?limit=3&pretty=true", "", "", 200, "\n  \"items\": [\n    {\n");
	expect("DELETE", CM "?labelSelector=many", "", "", 200, "Success");
	expect("GET", CM "?labelSelector=many", "", "", 200, "\"items\":[]");
}

static void watch(struct client *client, const char *query, const char *headers)
{
	char text[600];

	sprintf(text, "GET " CM "?watch=1%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", query, headers);
	send_text(client, text);
	free(read_until(client, "\r\n\r\n"));
}

static void expect_event(struct client *client, const char *type, const char *part)
{
	char *chunk = read_chunk(client), start[64];

	assert_non_null(chunk);
	sprintf(start, "{\"type\":\"%s\",\"object\":{", type);
	if (strncmp(chunk, start, strlen(start)) != 0 || strstr(chunk, part) == NULL)
		print_message("wanted %s %s, got %s\n", type, part, chunk);
	assert_int_equal(strncmp(chunk, start, strlen(start)), 0);
	assert_non_null(strstr(chunk, part));
	assert_string_equal(chunk + strlen(chunk) - 2, "}\n");
	free(chunk);
}

/* Each object once, then the bookmark, which is no older than the newest of them, then what comes later. */
static void h404_a_watch_list_has_each_object_once_and_goes_on(void **state)
{
	struct client client = open_client();
	bool	      seen[20] = { false };
	char	      body[120], *chunk;
	const char   *at;
	long long     version, newest = 0;

	(void) state;
	for (int i = 0; i < 20; i++) {
		sprintf(body, "{\"metadata\":{\"name\":\"once-%02d\",\"labels\":{\"once\":\"1\"}}}",
			i * 7 % 20);
		expect("POST", CM, JSON, body, 201, "once-");
	}
	watch(&client,
	      "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&"
	      "labelSelector=once",
	      "");
	for (int i = 0; i <= 20; i++) {
		chunk = read_chunk(&client);
		assert_non_null(chunk);
		at = strstr(chunk, "\"resourceVersion\":\"");
		assert_non_null(at);
		version = atoll(at + strlen("\"resourceVersion\":\""));
		if (i < 20) {
			assert_memory_equal(chunk, "{\"type\":\"ADDED\"", 15);
			at = strstr(chunk, "\"name\":\"once-");
			assert_non_null(at);
			assert_in_range(atoi(at + 13), 0, 19);
			assert_false(seen[atoi(at + 13)]);
			seen[atoi(at + 13)] = true;
			newest = version > newest ? version : newest;
		} else {
			assert_memory_equal(chunk, "{\"type\":\"BOOKMARK\"", 18);
			assert_non_null(strstr(chunk, "\"k8s.io/initial-events-end\":\"true\""));
			assert_true(version >= newest);
		}
		free(chunk);
	}
	for (int i = 0; i < 3; i++) {
		sprintf(body, "{\"metadata\":{\"name\":\"once-later-%d\",\"labels\":{\"once\":\"1\"}}}", i);
		expect("POST", CM, JSON, body, 201, "once-");
		sprintf(body, "\"name\":\"once-later-%d\"", i);
		expect_event(&client, "ADDED", body);
	}
	close_client(&client);
	expect("DELETE", CM "?labelSelector=once", "", "", 200, "Success");
}

static void h403_a_watch_list_ends_its_initial_events_and_goes_on(void **state)
{
	struct client client = open_client(), table = open_client();

	expect("POST", CM, JSON, "{\"metadata\":{\"name\":\"w\"}}", 201, "\"w\"");
	watch(&client, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
	      "");
	expect_event(&client, "ADDED", "\"name\":\"w\"");
	expect_event(&client, "BOOKMARK", "\"k8s.io/initial-events-end\":\"true\"");
	watch(&table, "", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n");
	expect_event(&table, "ADDED", "\"columnDefinitions\":[{\"name\":\"Name\"");
	expect("PUT", CM "/w", JSON, "{\"metadata\":{\"name\":\"w\"},\"data\":{\"k\":\"v\"}}", 200, "\"k\"");
	expect_event(&client, "MODIFIED", "\"data\":{\"k\":\"v\"}");
	expect_event(&table, "MODIFIED", "\"columnDefinitions\":[],\"rows\":[{\"cells\":[\"w\",\"1\",");
	expect("DELETE", CM "/w", "", "", 200, "Success");
	expect_event(&client, "DELETED", "\"name\":\"w\"");
	expect_event(&table, "DELETED", "\"w\"");
	close_client(&client);
	close_client(&table);
}

/* A limit and a token mean nothing to it. rules */
static void h409_a_watch_that_times_out_keeps_the_connection(void **state)
{
	struct client client = open_client();
	struct answer answer;

	watch(&client, "&resourceVersion=1&timeoutSeconds=1&labelSelector=none&limit=1&continue=nonsense",
	      "");
	assert_null(read_chunk(&client));
	answer = request_on(&client, "GET", "/livez", "", "");
	assert_int_equal(answer.code, 200);
	free_answer(&answer);
	close_client(&client);
}

/* rules */
static void r631_errors_before_the_stream_are_answers(void **state)
{
	expect("GET", CM "?watch=1&sendInitialEvents=true", "", "", 422,
	       "sendInitialEvents requires setting resourceVersionMatch");
	expect("GET", CM "?watch=1&labelSelector=(", "", "", 400, "BadRequest");
	expect("GET", CM "?watch=1&fieldSelector=x%3Dy", "", "", 400, "field label not supported: x");
	expect("GET", CM "?watch=1&shardSelector=x", "", "", 400,
	       "invalid shard selector: unsupported function");
	expect("GET", "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.name%3Db", "", "",
	       400, "fieldSelector metadata.name doesn't match requested name");
	expect("GET", CM "?watch=1", "Accept: application/yaml\r\n", "", 406,
	       "only the following media types are accepted: application/json"); /* */
}

/* Upstream answers 500 with an empty reason to a watch and to a get. */
static void w31_a_resource_version_that_is_no_number_is_a_bad_request(void **state)
{
	static const char *const versions[] = { "x", "-1", "1.0", "18446744073709551616" };
	static const char *const paths[] = {
		CM "?watch=1&resourceVersion=%s",
		CM "?watch=1&resourceVersion=%s&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
		CM "?resourceVersion=%s", CM "/x?resourceVersion=%s"
	};
	char path[200];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(paths); i++)
		for (size_t k = 0; k < VDI_ARRAY_SIZE(versions); k++) {
			(void) snprintf(path, sizeof path, paths[i], versions[k]);
			expect("GET", path, "", "", 400, "\"reason\":\"BadRequest\"");
		}
}

/* Versions are decimal numbers without leading zeros in one line for all kinds: a later write has the greater
 * one, whatever was written. */
static void h419_versions_grow_over_all_kinds(void **state)
{
	static const char *const rows[][2] = {
		{ "/api/v1/namespaces/default/configmaps", "ConfigMap" },
		{ "/api/v1/namespaces/default/secrets", "Secret" },
		{ "/api/v1/namespaces", "Namespace" },
		{ "/api/v1/namespaces/default/serviceaccounts", "ServiceAccount" },
	};
	long long last = 0;

	for (unsigned i = 0; i < 20; i++) {
		const char *const *row = rows[i % VDI_ARRAY_SIZE(rows)];
		char		   body[200], again[32];
		struct answer	   answer;
		const char	  *at;
		long long	   version;

		(void) snprintf(body, sizeof body,
				"{\"kind\":\"%s\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"h419-%u\"}}",
				row[1], i);
		answer = request("POST", row[0], JSON, body);
		assert_int_equal(answer.code, 201);
		at = strstr(answer.body, "\"resourceVersion\":\"");
		assert_non_null(at);
		version = atoll(at + strlen("\"resourceVersion\":\""));
		(void) snprintf(again, sizeof again, "\"resourceVersion\":\"%lld\"", version);
		assert_memory_equal(at, again, strlen(again));
		assert_true(version > last);
		last = version;
		free_answer(&answer);
	}
}

/* The server's end of the client's connection; it is in this process. */
static int server_end_of(const struct client *client)
{
	struct sockaddr_in own, peer;
	socklen_t	   size = sizeof own;

	assert_int_equal(getsockname(client->fd, (struct sockaddr *) &own, &size), 0);
	for (int fd = 3; fd < 1024; fd++) {
		size = sizeof peer;
		if (getpeername(fd, (struct sockaddr *) &peer, &size) == 0 && peer.sin_family == AF_INET &&
		    peer.sin_port == own.sin_port)
			return fd;
	}
	fail_msg("the server has no such connection");
	return -1;
}

static int option_of(int fd, int level, int name)
{
	int	  value = 0;
	socklen_t size = sizeof value;

	assert_int_equal(getsockopt(fd, level, name, &value, &size), 0);
	return value;
}

static void h507_small_writes_go_at_once_and_dead_peers_are_found(void **state)
{
	struct client client = open_client();
	struct answer answer = request_on(&client, "GET", "/version", "", "");
	int	      fd = server_end_of(&client);

	assert_int_equal(answer.code, 200);
	assert_true(option_of(fd, IPPROTO_TCP, TCP_NODELAY));
	assert_true(option_of(fd, SOL_SOCKET, SO_KEEPALIVE));
	assert_in_range(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 1, 60);
	assert_in_range(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 30000, 60000);
	free_answer(&answer);
	close_client(&client);
}

static void note_compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) revision;
	(void) error;
	assert_status(status, VD_OK);
	vdi_wait_signal(arg);
}

/* A server that starts after a compaction: a watch from before it is a stream all the same, with one event
 * that is the error. */
static void r631_errors_of_a_stream_are_events(void **state)
{
	struct http_fixture other;
	struct client	    client;
	struct vdi_wait	    wait;
	char		   *head;

	http_fixture_init(&other);
	for (unsigned i = 0; i < 3; i++)
		http_fixture_put(&other, "x", 1, false);
	vdi_wait_init(&wait, other.env);
	assert_status(vd_store_compact(other.store, 4, false, note_compacted, &wait), VD_OK);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	http_fixture_start(&other, 1, NULL);
	client = (struct client) { .fd = http_open(other.port, 0) };
	send_text(&client, "GET " CM "?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
	head = read_until(&client, "\r\n\r\n");
	assert_int_equal(http_code_of(head), 200);
	assert_non_null(strstr(head, "Content-Type: application/json\r\n"));
	free(head);
	expect_event(&client, "ERROR", "\"reason\":\"Expired\",\"code\":410}");
	assert_null(read_chunk(&client));
	close_client(&client);
	http_fixture_close(&other, VD_SECONDS(10));
}

/* A token whose revision is compacted: the answer has another one, with which the newest state is told from
 * there on.
 * rules */
static void r125_an_expired_page_may_go_on_in_the_newest_state(void **state)
{
	struct http_fixture    other;
	struct vd_store_status status;
	struct vdi_wait	       wait;
	char		       path[512], *text, *token;
	int		       code;

	http_fixture_init(&other);
	http_fixture_put(&other, "a", 1, false);
	http_fixture_put(&other, "b", 1, false);
	http_fixture_put(&other, "d", 1, false);
	http_fixture_start(&other, 1, NULL);
	text = http_ask(other.port, "GET", CM "?limit=2", "", "", &code);
	assert_int_equal(code, 200);
	for (int round = 0; round < 2; round++) {
		token = strstr(text, "\"continue\":\"");
		assert_non_null(token);
		token += strlen("\"continue\":\"");
		(void) snprintf(path, sizeof path, CM "?limit=2&continue=%.*s", (int) strcspn(token, "\""),
				token);
		free(text);
		if (round == 0) {
			http_fixture_put(&other, "c", 1, false);
			http_fixture_put(&other, "a", 1, false);
			assert_status(vd_store_status_get(other.store, &status), VD_OK);
			vdi_wait_init(&wait, other.env);
			assert_status(
				vd_store_compact(other.store, status.current, false, note_compacted, &wait),
				VD_OK);
			vdi_wait_wait(&wait);
			vdi_wait_fini(&wait);
		}
		text = http_ask(other.port, "GET", path, "", "", &code);
		if (round == 0) {
			assert_int_equal(code, 410);
			assert_non_null(strstr(text, "\"metadata\":{\"continue\":\""));
			assert_non_null(strstr(text, "\"message\":\"The provided continue parameter is too "
						     "old to display a consistent list result."));
			assert_non_null(strstr(text, "\"reason\":\"Expired\",\"code\":410}"));
		}
	}
	assert_int_equal(code, 200);
	assert_null(strstr(text, "\"continue\""));
	token = strstr(text, "\"metadata\":{\"resourceVersion\":\"");
	assert_non_null(token);
	assert_true(atoll(token + strlen("\"metadata\":{\"resourceVersion\":\"")) >= status.current);
	assert_null(strstr(text, "\"name\":\"a\""));
	assert_null(strstr(text, "\"name\":\"b\""));
	assert_non_null(strstr(text, "\"name\":\"c\"")); /* made meanwhile */
	assert_non_null(strstr(text, "\"name\":\"d\""));
	free(text);
	http_fixture_close(&other, VD_SECONDS(10));
}

/* A get at an exact revision: what the object was, not what it is. */
static void r472_get_at_an_exact_revision(void **state)
{
	char	      path[200];
	long long     first;
	struct answer answer;
	const char   *at;

	expect("POST", CM, "",
	       "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"travel\"},\"data\":{"
	       "\"k\":\"one\"}}",
	       201, "travel");
	answer = request("GET", CM "/travel", "", "");
	at = strstr(answer.body, "\"resourceVersion\":\"");
	assert_non_null(at);
	first = atoll(at + strlen("\"resourceVersion\":\""));
	free_answer(&answer);
	expect("PATCH", CM "/travel", HTTP_MERGE, "{\"data\":{\"k\":\"two\"}}", 200, "two");
	expect("DELETE", CM "/travel", "", "", 200, "Success");
	for (int i = -1; i <= 2; i++) {
		snprintf(path, sizeof path, CM "/travel?resourceVersionMatch=Exact&resourceVersion=%lld",
			 first + i);
		if (i == 0 || i == 1)
			expect("GET", path, "", "", 200, i ? "\"k\":\"two\"" : "\"k\":\"one\"");
		else
			expect("GET", path, "", "", 404, "configmaps \\\"travel\\\" not found");
	}
}

#define SHARD "shardRange(object.metadata.uid,%20%270x0000000000000000%27,%20%270x8000000000000000%27)"

static void r608_r622_shards_over_http(void **state)
{
	expect("GET", CM "?shardSelector=" SHARD, "", "", 200,
	       "\"shardInfo\":{\"selector\":\"shardRange(object.metadata.uid, '0x0000000000000000', "
	       "'0x8000000000000000')\"}},\"items\":[");
	expect("GET", CM "?limit=1&shardSelector=" SHARD "%20%7C%7C%20" SHARD, "", "", 200,
	       "') || shardRange(object.metadata.uid, '0x0");
	expect("GET", CM "?shardSelector=%20", "", "", 400,
	       "invalid shard selector: empty shard selector is not allowed");
	expect("GET", CM "?shardSelector=shardRange(object.metadata.uid,%270x0%27,%270x8%27)", "", "", 400,
	       "16-digit hex value");
}

/* A client that does not read gets what fits, and costs nobody else anything. */
static void h624_a_stalled_watch_delays_nobody(void **state)
{
	struct client stalled = open_client(), reading = open_client();
	char	      body[70000];
	int	      size = 65536;

	(void) setsockopt(stalled.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	watch(&stalled, "&resourceVersion=1&labelSelector=big", "");
	watch(&reading, "&labelSelector=big", "");
	for (int i = 0; i < 100; i++) {
		sprintf(body,
			"{\"metadata\":{\"name\":\"big-%d\",\"labels\":{\"big\":\"1\"}},\"data\":{\"x\":\"%0*"
			"d\"}}",
			i, 60000, i);
		expect("POST", CM, JSON, body, 201, "big-");
		expect_event(&reading, "ADDED", "\"name\":\"big-");
	}
	for (int i = 0; i < 100; i++) {
		sprintf(body, "\"name\":\"big-%d\"", i);
		expect_event(&stalled, "ADDED", body);
	}
	close_client(&stalled);
	close_client(&reading);
	expect("DELETE", CM "?labelSelector=big", "", "", 200, "Success");
}

static void only_loopback_is_served_without_authentication(void **state)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct vd_server	*server;
	struct vd_error		 error;

	options.listen = "0.0.0.0:0";
	assert_status(vd_server_new(fixture.env, fixture.store, &options, &server, &error),
		      VD_INVALID_ARGUMENT);
	assert_non_null(strstr(error.message, "loopback"));
	options.listen = "127.0.0.1";
	assert_status(vd_server_new(fixture.env, fixture.store, &options, &server, &error),
		      VD_INVALID_ARGUMENT);
	options.listen = "127.0.0.1:0";
	options.resources = vd_bytes_of("[{\"group\":\"x.io\"}]");
	assert_status(vd_server_new(fixture.env, fixture.store, &options, &server, &error), VD_INVALID);
	assert_non_null(strstr(error.message, "entry 0"));
}

static void expect_code(int code, const char *text)
{
	struct client client = open_client();
	struct answer answer;

	send_text(&client, text);
	answer = read_answer(&client);
	if (answer.code != code)
		fail_msg("%s is answered with %d, not %d", text, answer.code, code);
	free_answer(&answer);
	close_client(&client);
}

/* A name that resolves to this machine may belong to anybody (DNS rebinding). */
static void only_hosts_of_this_machine_are_served_without_authentication(void **state)
{
	static const char *const hosts[][2] = { { "127.0.0.1:8080", "200" },
						{ "localhost", "200" },
						{ "[::1]:1", "200" },
						{ "127.evil.example", "403" },
						{ "127.evil.example:8080", "403" },
						{ "localhost.evil.example", "403" } };
	char			 text[200];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(hosts); i++) {
		(void) snprintf(text, sizeof text, "GET /version HTTP/1.1\r\nHost: %s\r\n\r\n", hosts[i][0]);
		expect_code(atoi(hosts[i][1]), text);
	}
}

static void two_identities_are_none(void **state)
{
	(void) state;
	expect_code(400, "GET /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
			 "a\r\nAuthorization: Bearer b\r\n\r\n");
}

/* rules: R-636 */
static void draining_ends_watches_cleanly(void **state)
{
	struct client client = open_client();

	watch(&client, "&labelSelector=none", "");
	assert_status(vd_server_drain(fixture.server, VD_SECONDS(10)), VD_OK);
	assert_null(read_chunk(&client));
	assert_false(read_more(&client));
	close_client(&client);
}

/* The value of the series that begins with name; -1 when there is none. The whole exposition is looked at:
 * comments and `name value`. */
static double metric_of(const char *name)
{
	struct answer answer = request("GET", "/metrics", "", "");
	double	      value = -1;

	assert_int_equal(answer.code, 200);
	for (char *line = answer.body, *end; *line; line = end + 1) {
		char *number, *rest;

		end = strchr(line, '\n');
		assert_non_null(end);
		*end = 0;
		if (strncmp(line, "# HELP ", 7) == 0 || strncmp(line, "# TYPE ", 7) == 0)
			continue;
		number = strrchr(line, ' ');
		assert_non_null(number);
		(void) strtod(number + 1, &rest);
		assert_true(rest == end && rest > number + 1);
		if (strncmp(line, name, strlen(name)) == 0 && value < 0)
			value = strtod(number + 1, NULL);
	}
	free_answer(&answer);
	return value;
}

#define SECRETS "/api/v1/namespaces/default/secrets"
#define LABELS(verb, scope)                                                                                  \
	"verb=\"" verb "\",group=\"\",version=\"v1\",resource=\"secrets\",subresource=\"\",scope=\"" scope   \
	"\",component=\"apiserver\""
#define LABELS_DRY(verb, scope)                                                                              \
	"verb=\"" verb                                                                                       \
	"\",dry_run=\"\",group=\"\",version=\"v1\",resource=\"secrets\",subresource=\"\",scope=\"" scope     \
	"\",component=\"apiserver\""
#define OF_SECRETS "{group=\"\",version=\"v1\",resource=\"secrets\""

static void r745_requests_are_counted_by_verb_and_code(void **state)
{
	expect("POST", SECRETS, JSON, "{\"metadata\":{\"name\":\"m\"}}", 201, "\"name\":\"m\"");
	expect("GET", SECRETS "/m", "", "", 200, "\"name\":\"m\"");
	expect("GET", SECRETS "/none", "", "", 404, "NotFound");
	expect("GET", SECRETS, "", "", 200, "\"name\":\"m\"");
	assert_true(metric_of("apiserver_request_total{" LABELS_DRY("POST", "resource") ",code=\"201\"}") ==
		    1);
	assert_true(metric_of("apiserver_request_total{" LABELS_DRY("GET", "resource") ",code=\"200\"}") ==
		    1);
	assert_true(metric_of("apiserver_request_total{" LABELS_DRY("GET", "resource") ",code=\"404\"}") ==
		    1);
	assert_true(metric_of("apiserver_request_total{" LABELS_DRY("LIST", "namespace") ",code=\"200\"}") ==
		    1);
	assert_true(metric_of("apiserver_request_duration_seconds_count{" LABELS_DRY("GET",
										     "resource") "}") == 2);
	assert_true(metric_of("apiserver_request_sli_duration_seconds_count{" LABELS("LIST",
										     "namespace") "}") == 1);
	assert_true(metric_of("apiserver_response_sizes_sum{" LABELS("LIST", "namespace") "}") > 100);
	assert_true(metric_of("apiserver_request_body_size_bytes_sum{resource=\"secrets\",verb=\"POST\"}") ==
		    25);
	/* The one that asks; the one before it goes when its answer is out, on a loop of its own. */
	while (metric_of("apiserver_current_inflight_requests{request_kind=\"readOnly\"}") != 1)
		continue;
	while (metric_of("apiserver_current_inflight_requests{request_kind=\"mutating\"}") != 0)
		continue;
	assert_true(
		metric_of("apiserver_cache_list_returned_objects_total{group=\"\",resource=\"secrets\"}") ==
		1); /* */
	assert_true(metric_of("vedette_memory_blocks") > 0);
	assert_true(metric_of("vedette_cache_objects{group=\"\",resource=\"secrets\"}") == 1);
}

/* rules */
static void r741_events_sizes_and_r744_running_watches_are_counted(void **state)
{
	struct client client = open_client();
	char	     *text;

	send_text(&client, "GET " SECRETS "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
			   "allowWatchBookmarks=true HTTP/1.1\r\n"
			   "Host: localhost\r\n\r\n");
	text = read_until(&client, "\r\n\r\n");
	free(text);
	for (int i = 0; i < 2; i++) { /* the secret of above, the bookmark */
		text = read_chunk(&client);
		assert_non_null(text);
		free(text);
	}
	assert_true(metric_of("apiserver_watch_events_total" OF_SECRETS "}") == 2);
	assert_true(metric_of("apiserver_watch_events_sizes_count" OF_SECRETS "}") == 2);
	assert_true(metric_of("apiserver_watch_events_sizes_bucket" OF_SECRETS ",le=\"1024\"}") == 2);
	assert_true(metric_of("apiserver_watch_list_duration_seconds_count" OF_SECRETS
			      ",scope=\"namespace\"}") == 1); /* */
	assert_true(metric_of("apiserver_longrunning_requests{" LABELS("WATCH", "namespace") "}") == 1);
	assert_true(metric_of("apiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"}") ==
		    0); /* in memory */
	close_client(&client);
	while (metric_of("apiserver_longrunning_requests{" LABELS("WATCH", "namespace") "}") != 0)
		continue;
	assert_true(metric_of("apiserver_request_total{" LABELS_DRY("WATCH", "namespace") ",code=\"200\"}") ==
		    1);
}

static void the_dump_is_valid_under_load(void **state)
{
	struct client watches[8], writer = open_client();
	bool	      have_joined = false;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(watches); i++) {
		watches[i] = open_client();
		send_text(&watches[i],
			  "GET " CM "?watch=1&labelSelector=load HTTP/1.1\r\nHost: localhost\r\n\r\n");
		free(read_until(&watches[i], "\r\n\r\n"));
	}
	/* The head comes before the cache has the watch. */
	while (!have_joined) {
		struct answer answer = request("GET", "/debug/vedette", "", "");

		have_joined = strstr(answer.body, "\"labelSelector\":\"load\"") != NULL;
		free_answer(&answer);
	}
	for (int i = 0; i < 40; i++) {
		char	      body[128];
		struct answer answer;

		sprintf(body, "{\"metadata\":{\"name\":\"load%d\",\"labels\":{\"load\":\"1\"}}}", i);
		answer = request_on(&writer, "POST", CM, JSON, body);
		assert_int_equal(answer.code, 201);
		free_answer(&answer);
		if (i == 20)
			close_client(&watches[0]);
		answer = request("GET", "/debug/vedette", "", "");
		assert_int_equal(answer.code, 200);
		assert_int_equal(vdi_json_validate(vd_bytes_of(answer.body), NULL, NULL), VD_OK);
		assert_non_null(strstr(answer.body, "\"labelSelector\":\"load\""));
		assert_non_null(strstr(answer.body, "\"store\":{\"current\":"));
		assert_non_null(strstr(answer.body, "\"runner\":\"1\""));
		assert_null(strstr(answer.body, "0x")); /* addresses help who looks for a way in */
		free_answer(&answer);
	}
	for (size_t i = 1; i < VDI_ARRAY_SIZE(watches); i++)
		close_client(&watches[i]);
	close_client(&writer);
}

/* A server of one kind over the same store, on a socket of the file system: what a command uses that reads an
 * etcd by itself. */
static void a_server_on_a_path_serves_one_kind_read_only(void **state)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct sockaddr_un	 address = { .sun_family = AF_UNIX };
	char			 directory[] = "/tmp/vedette-http-XXXXXX", listen[128];
	struct vd_server	*server = NULL;
	struct client		 client = { .fd = socket(AF_UNIX, SOCK_STREAM, 0) };
	struct answer		 answer;
	struct vd_error		 error;
	struct stat		 file;

	assert_non_null(mkdtemp(directory));
	snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", directory);
	snprintf(listen, sizeof listen, "unix:%s", address.sun_path);
	expect("POST", CM, JSON, "{\"metadata\":{\"name\":\"within\"}}", 201, "within");
	options.listen = listen;
	options.read_only = true;
	options.only = "nothings";
	assert_status(vd_server_new(fixture.env, fixture.store, &options, &server, &error), VD_INVALID);
	assert_string_equal(error.message, "resources: unknown kind nothings");
	options.only = "configmaps";
	assert_status(vd_server_new(fixture.env, fixture.store, &options, &server, &error), VD_OK);
	assert_status(vd_server_start(server, VD_SECONDS(60), &error), VD_OK);
	assert_string_equal(vd_server_address(server), listen);
	assert_int_equal(stat(address.sun_path, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0600);
	assert_int_equal(connect(client.fd, (struct sockaddr *) &address, sizeof address), 0);
	answer = request_on(&client, "GET", CM "/within", "", "");
	assert_int_equal(answer.code, 200);
	free_answer(&answer);
	answer = request_on(&client, "GET", "/api/v1/pods", "", "");
	assert_int_equal(answer.code, 404);
	free_answer(&answer);
	answer = request_on(&client, "DELETE", CM "/within", "", "");
	assert_int_equal(answer.code, 405);
	free_answer(&answer);
	send_text(&client, "GET " CM "?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: localhost\r\n\r\n");
	free(read_until(&client, "\"within\""));
	assert_status(vd_server_drain(server, VD_SECONDS(10)), VD_OK);
	close_client(&client);
	(void) vd_server_free(server);
	assert_int_equal(rmdir(directory), 0); /* the socket is gone */
	options.listen = "unix:";
	assert_status(vd_server_new(fixture.env, fixture.store, &options, &server, &error),
		      VD_INVALID_ARGUMENT);
	options.listen = "unix:/nowhere/at/all";
	assert_status(vd_server_new(fixture.env, fixture.store, &options, &server, &error), VD_IO);
	expect("DELETE", CM "/within", "", "", 200, "Success");
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
		cmocka_unit_test(discovery_health_and_unknown_paths),
		cmocka_unit_test(h115_a_known_etag_is_not_sent_again),
		cmocka_unit_test(h606_pipelined_requests_are_answered_in_order),
		cmocka_unit_test(bytes_one_by_one_and_chunked_bodies_arrive_too),
		cmocka_unit_test(r654_bodies_that_are_too_large_are_refused),
		cmocka_unit_test(a_list_of_many_comes_whole_and_in_pages),
		cmocka_unit_test(h404_a_watch_list_has_each_object_once_and_goes_on),
		cmocka_unit_test(h403_a_watch_list_ends_its_initial_events_and_goes_on),
		cmocka_unit_test(h409_a_watch_that_times_out_keeps_the_connection),
		cmocka_unit_test(r631_errors_before_the_stream_are_answers),
		cmocka_unit_test(r631_errors_of_a_stream_are_events),
		cmocka_unit_test(r608_r622_shards_over_http),
		cmocka_unit_test(r125_an_expired_page_may_go_on_in_the_newest_state),
		cmocka_unit_test(r472_get_at_an_exact_revision),
		cmocka_unit_test(h624_a_stalled_watch_delays_nobody),
		cmocka_unit_test(r745_requests_are_counted_by_verb_and_code),
		cmocka_unit_test(r741_events_sizes_and_r744_running_watches_are_counted),
		cmocka_unit_test(the_dump_is_valid_under_load),
		cmocka_unit_test(a_server_on_a_path_serves_one_kind_read_only),
		cmocka_unit_test(h347_a_scale_without_a_number_is_zero),
		cmocka_unit_test(numbers_that_fit_neither_int64_nor_float64_are_refused),
		cmocka_unit_test(r661_kinds_have_rules),
		cmocka_unit_test(w31_a_resource_version_that_is_no_number_is_a_bad_request),
		cmocka_unit_test(h419_versions_grow_over_all_kinds),
		cmocka_unit_test(h507_small_writes_go_at_once_and_dead_peers_are_found),
		cmocka_unit_test(only_loopback_is_served_without_authentication),
		cmocka_unit_test(only_hosts_of_this_machine_are_served_without_authentication),
		cmocka_unit_test(two_identities_are_none),
		cmocka_unit_test(draining_ends_watches_cleanly),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
