/* Effects of new and deleted kinds: on watches, the garbage collector, defaults, the resources file; and many
 * at once. The server is in this process. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "await.h"
#include "http_definitions.h"
#include "http_fixture.h"

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

/* Megabytes are in flight to a slow watch after the definition is gone for all other clients. */
static void a_slow_watch_hears_of_all_deletions(void **state)
{
	int   watch, count = 150;
	char *body = malloc(FAT + 256), *first, *text;

	definitions_make_widgets();
	for (int i = 0; i < count; i++) {
		int size = sprintf(
			body,
			"{\"apiVersion\":\"example.com/"
			"v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w%d\"},\"spec\":{\"fat\":\"",
			i);

		memset(body + size, 'x', FAT);
		strcpy(body + size + FAT, "\"}}");
		definitions_expect("POST", WIDGETS("v1"), JSON, body, 201, "");
	}
	free(body);
	watch = http_open(definitions_server.port, 4096);
	http_send_request(watch, "GET", WIDGETS("v1") "?watch=1", "", "");
	first = http_read_until(watch, "ADDED");
	definitions_expect("DELETE", CRDS "/widgets.example.com", "", "", 200, "");
	definitions_await(CRDS "/widgets.example.com", 404, "");
	definitions_await(WIDGETS("v1"), 404, "could not find");
	/* A new kind of the same name does not affect those who still read from the old one. */
	definitions_make_widgets();
	definitions_expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "fresh", ""), 201, "");
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
	char *text = definitions_get(path, &code), *at = strstr(text, "\"uid\":\"");

	assert_int_equal(code, 200);
	assert_non_null(at);
	sprintf(uid, "%.36s", at + 7);
	free(text);
}

/* format has a place for the owner's uid. */
static void create_owned(const char *path, const char *format, const char *uid)
{
	char body[1024];

	(void) snprintf(body, sizeof body, format, uid);
	definitions_expect("POST", path, JSON, body, 201, uid);
}

/* The collector watches a kind before an object of it can exist; otherwise an object to be orphaned would not
 * be found, and collected later. */
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
		definitions_expect("POST", MAPS, JSON, body, 201, "");
		uid_of(map, uid);
		definitions_create(plural, kind, V1, "");
		definitions_await_established(plural);
		sprintf(body,
			"{\"apiVersion\":\"example.com/"
			"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{"
			"\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
			"\"name\":\"owner%d\",\"uid\":\"%%s\"}]}}",
			kind, i);
		create_owned(path, body, uid);
		definitions_expect("DELETE", map, JSON, "{\"propagationPolicy\":\"Orphan\"}", 200, "");
		definitions_await(map, 404, "");
		definitions_lack(object, "ownerReferences");
	}
}

/* The dependents of a kind's objects are deleted with the kind; and again after it was created again. */
static void what_a_kind_owned_goes_with_it(void **state)
{
	for (int round = 0; round < 3; round++) {
		char uid[64];

		definitions_make_widgets();
		definitions_expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "a", ""), 201, "");
		uid_of(WIDGETS("v1") "/a", uid);
		create_owned(MAPS,
			     "{\"metadata\":{\"name\":\"m\"," OWNED("example.com/v1", "Widget", "a", "%s",
								    "") "}}",
			     uid);
		if (round == 1) { /* one by one */
			definitions_expect("DELETE", WIDGETS("v1") "/a", "", "", 200, "");
			definitions_await(MAPS "/m", 404, "");
		}
		definitions_expect("DELETE", CRDS "/widgets.example.com", "", "", 200, "");
		definitions_await(CRDS "/widgets.example.com", 404, "");
		definitions_await(MAPS "/m", 404, "");
		definitions_await(WIDGETS("v1"), 404, "could not find");
	}
}

static long metric(const char *name)
{
	int   code;
	char *text = definitions_get("/metrics", &code), *at = strstr(text, name);
	long  value;

	assert_non_null(at);
	value = atol(at + strlen(name));
	free(text);
	return value;
}

/* An owner of an unknown kind may exist: its dependents stay until the kind is known, and are then checked
 * soon. */
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
	definitions_await(MAPS "/n", 404, ""); /* of a known one */
	AWAIT(metric(retries) >= 4);
	definitions_expect("GET", MAPS "/m", "", "", 200, uid);
	definitions_make_widgets();
	definitions_await(MAPS "/m", 404, "");
}

/* ---- Defaults ---- */

#define SPEC(name, storage, default)                                                                         \
	"{\"name\":\"" name "\",\"served\":true,\"storage\":" storage                                        \
	",\"selectableFields\":[{\"jsonPath\":\".spec.color\"}],\"schema\":{\"openAPIV3Schema\":{\"type\":"  \
	"\"object\","                                                                                        \
	"\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{\"size\":{\"type\":\"integer\"},"     \
	"\"color\":{\"type\":\"string\"" default "}}}}}}}"
#define VERSIONS(text) "{\"spec\":{\"versions\":[" text "]}}"

/* In every answer: the object alone, the list, a list by a field, and the initial events of a watch. */
static void await_color(const char *color)
{
	char part[64], path[256];
	int  watch;

	sprintf(part, "\"color\":\"%s\"", color);
	definitions_await(WIDGETS("v1") "/old", 200, part);
	definitions_expect("GET", WIDGETS("v1") "/old?resourceVersion=0", "", "", 200, part);
	definitions_expect("GET", WIDGETS("v1"), "", "", 200, part);
	definitions_expect("GET", WIDGETS("v1") "?resourceVersion=0", "", "", 200, part);
	definitions_expect("GET", WIDGETS("v2") "/old", "", "", 200, part);
	sprintf(path, WIDGETS("v1") "?fieldSelector=spec.color%%3D%s", color);
	definitions_expect("GET", path, "", "", 200, "\"name\":\"old\"");
	watch = definitions_watch_until(
		WIDGETS("v1") "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&"
			      "resourceVersionMatch=NotOlderThan",
		"", part);
	(void) close(watch);
}

/* Objects stored before their schema had a default have it in answers, by the version in which they are
 * stored; the stored text stays until the next write. */
static void objects_have_defaults_that_came_after_them(void **state)
{
	int   before = http_open(definitions_server.port, 0), code;
	char *old, *text;

	definitions_create("widgets", "Widget", SPEC("v1", "true", "") "," SPEC("v2", "false", ""), "");
	definitions_await_established("widgets");
	definitions_expect("POST", WIDGETS("v1"), JSON, WIDGET("v1", "old", ",\"spec\":{\"size\":3}"), 201,
			   "\"generation\":1");
	definitions_lack(WIDGETS("v1") "/old", "color");
	old = definitions_get(WIDGETS("v1") "/old", &code);
	http_send_request(before, "GET", WIDGETS("v1") "?watch=1", "", "");
	free(http_read_until(before, "ADDED"));
	definitions_expect("PATCH", CRDS "/widgets.example.com", MERGE,
			   VERSIONS(SPEC("v1", "true", ",\"default\":\"red\"") "," SPEC(
				   "v2", "false", ",\"default\":\"blue\"")),
			   200, "");
	await_color("red");
	free(http_read_until(before, NULL)); /* it has ended, to be resumed */
	(void) close(before);
	/* Nothing was written. */
	text = definitions_get(WIDGETS("v1") "/old", &code);
	assert_int_equal(atoi(strstr(text, "\"resourceVersion\":\"") + 19),
			 atoi(strstr(old, "\"resourceVersion\":\"") + 19));
	assert_non_null(strstr(text, "\"generation\":1"));
	free(text);
	free(old);
	definitions_expect("PATCH", CRDS "/widgets.example.com", MERGE,
			   VERSIONS(SPEC("v1", "true", ",\"default\":\"green\"") "," SPEC(
				   "v2", "false", ",\"default\":\"blue\"")),
			   200, "");
	await_color("green");
	/* Another version becomes the storage version: objects stored in the old one keep that one's
	 * defaults. */
	definitions_expect("PATCH", CRDS "/widgets.example.com", MERGE,
			   VERSIONS(SPEC("v1", "false", ",\"default\":\"green\"") "," SPEC(
				   "v2", "true", ",\"default\":\"blue\"")),
			   200, "");
	definitions_await(CRDS "/widgets.example.com", 200, "\"storedVersions\":[\"v1\",\"v2\"]");
	await_color("green");
	definitions_restart_server();
	await_color("green");
	/* Without the default, objects that were stored without it no longer show it. */
	definitions_expect("PATCH", CRDS "/widgets.example.com", MERGE,
			   VERSIONS(SPEC("v1", "false", "") "," SPEC("v2", "true", "")), 200, "");
	definitions_await_without(WIDGETS("v1") "/old", "color");
	definitions_expect("PATCH", CRDS "/widgets.example.com", MERGE,
			   VERSIONS(SPEC("v1", "false", ",\"default\":\"green\"") "," SPEC(
				   "v2", "true", ",\"default\":\"blue\"")),
			   200, "");
	await_color("green");
	/* A watch event has the value from before. */
	before = definitions_watch_until(WIDGETS("v1") "?watch=1", "", "\"color\":\"green\"");
	definitions_expect("PATCH", WIDGETS("v1") "/old", MERGE, "{\"spec\":{\"size\":4}}", 200,
			   "\"color\":\"green\"");
	definitions_expect("DELETE", WIDGETS("v1") "/old", "", "", 200, "");
	text = http_read_until(before, "DELETED");
	assert_non_null(strstr(text, "\"type\":\"MODIFIED\""));
	assert_null(strstr(strstr(text, "\"type\":\"MODIFIED\""), "blue"));
	free(text);
	(void) close(before);
}

/* ---- The resources file ---- */

static void write_file(const char *text)
{
	FILE *file = fopen(definitions_file, "w");

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

	definitions_server.server = vd_server_free(definitions_server.server);
	strcpy(definitions_file, "/tmp/vedette-crd-XXXXXX");
	(void) close(mkstemp(definitions_file));
	write_file("[]");
	definitions_start_server();
	write_file("[" GADGET "}]");
	assert_status(vd_server_reload(definitions_server.server, &error), VD_OK);
	definitions_expect("POST", GADGETS, JSON,
			   "{\"apiVersion\":\"example.com/"
			   "v1\",\"kind\":\"Gadget\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"x\":5}}",
			   201, "");
	watch = definitions_watch_until(GADGETS "?watch=1", "", "ADDED");
	/* A definition of a kind in the file. */
	definitions_create("gadgets", "Gadget", V1, "");
	definitions_await(CRDS "/gadgets.example.com", 200,
			  "is already in use by a kind that was declared at the start of "
			  "this server\",\"reason\":\"PluralConflict\"");
	write_file("[" GADGET
		   ",\"printerColumns\":[{\"name\":\"X\",\"type\":\"integer\",\"jsonPath\":\".spec.x\"}]}]");
	assert_status(vd_server_reload(definitions_server.server, &error), VD_OK);
	definitions_expect("GET", GADGETS, TABLE, "", 200, "{\"cells\":[\"a\",5]");
	definitions_expect("DELETE", GADGETS "/a", "", "", 200, "");
	free(http_read_until(watch, "DELETED")); /* it continued */
	write_file("[" GADGET ",\"colour\":1}]");
	assert_status(vd_server_reload(definitions_server.server, &error), VD_INVALID);
	assert_non_null(strstr(error.message, "entry 0 (gadgets): colour: unknown key"));
	definitions_expect("GET", GADGETS, "", "", 200, "GadgetList");
	write_file("[]");
	assert_status(vd_server_reload(definitions_server.server, &error), VD_OK);
	text = http_read_until(watch, NULL); /* its end */
	free(text);
	(void) close(watch);
	definitions_await_established("gadgets"); /* its names are free */
	definitions_await(GADGETS, 200, "GadgetList");
}

/* ---- Many ---- */

#define MANY 200

static atomic_bool is_over;

static void *look_around(void *arg)
{
	uint16_t port = definitions_server.port;
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
			free(http_read_until(fd, "\r\n\r\n"));
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
		definitions_create(plural, kind, V1, "");
		if (i % 4 == 0) {
			definitions_await_established(plural);
			sprintf(path, "/apis/example.com/v1/namespaces/default/%s", plural);
			sprintf(body,
				"{\"apiVersion\":\"example.com/"
				"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"a\"}}",
				kind);
			definitions_expect("POST", path, JSON, body, 201, "");
		}
		if (i % 3 == 0) {
			sprintf(path, CRDS "/%s.example.com", plural);
			definitions_expect("DELETE", path, "", "", 200, "");
		}
	}
	for (int i = 0; i < MANY; i++) {
		char path[256];
		int  code;

		sprintf(path, CRDS "/kind%ds.example.com", i);
		free(http_ask(definitions_server.port, "DELETE", path, "", "", &code));
	}
	definitions_await_without(CRDS, "example.com");
	atomic_store(&is_over, true);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	definitions_await_without("/apis", "example.com");
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, definitions_set_up, definitions_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(objects_have_defaults_that_came_after_them), TEST(a_slow_watch_hears_of_all_deletions),
		TEST(new_kinds_are_searched_for_dependents),	  TEST(what_a_kind_owned_goes_with_it),
		TEST(owners_of_unknown_kinds_are_not_absent),	  TEST(the_resources_file_is_read_again),
		TEST(many_definitions_come_and_go_under_load),
	};

	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
