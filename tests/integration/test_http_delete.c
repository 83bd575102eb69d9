/* Deletion over HTTP, the server in this process: finalizers, propagation, grace periods, and namespaces to their end. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vedette/server.h>

#include "vdtest.h"

#define PATIENCE_MS 600000

static struct {
	struct vd_env	 *env;
	struct vd_store	 *store;
	struct vd_server *server;
	uint16_t	  port;
} world;

static void start_server(bool no_collector)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct vd_error		 error = { .code = VD_OK };

	options.listen = "127.0.0.1:0";
	options.threads = 2;
	options.no_garbage_collector = no_collector;
	assert_status(vd_server_new(world.env, world.store, &options, &world.server, &error), VD_OK);
	assert_status(vd_server_start(world.server, VD_SECONDS(600), &error), VD_OK);
	world.port = (uint16_t) atoi(strrchr(vd_server_address(world.server), ':') + 1);
}

static void stop_server(void)
{
	(void) vd_server_drain(world.server, VD_SECONDS(60));
	world.server = vd_server_free(world.server);
}

static int set_up(void **state)
{
	struct vd_error error = { .code = VD_OK };

	(void) state;
	assert_status(vd_env_new_threads(NULL, &world.env), VD_OK);
	assert_status(vd_store_open_mvcc(world.env, NULL, &world.store, &error), VD_OK);
	start_server(false);
	return 0;
}

static int tear_down(void **state)
{
	(void) state;
	stop_server();
	world.store = vd_store_close_wait(world.store);
	world.env = vd_env_free(world.env);
	return 0;
}

/* ---- One request a connection ---- */

static int connect_server(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(world.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int		   fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *) &address, sizeof address), 0);
	return fd;
}

static void send_request(int fd, const char *method, const char *path, const char *type, const char *body)
{
	size_t capacity = strlen(path) + strlen(body) + 512, size, sent = 0;
	char  *text = malloc(capacity);

	size = (size_t) snprintf(text, capacity, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s", method,
				 path, type, strlen(body), body);
	while (sent < size) {
		ssize_t n = send(fd, text + sent, size - sent, MSG_NOSIGNAL);

		assert_true(n > 0);
		sent += (size_t) n;
	}
	free(text);
}

/* Until mark was read (NULL: the end). What was read is the caller's. */
static char *read_until(int fd, const char *mark)
{
	size_t size = 0, capacity = 1 << 16;
	char  *text = malloc(capacity);

	text[0] = 0;
	while (mark == NULL || strstr(text, mark) == NULL) {
		struct pollfd waiting = { fd, POLLIN, 0 };
		ssize_t	      n;

		assert_int_equal(poll(&waiting, 1, PATIENCE_MS), 1);
		if (capacity - size < 4096)
			text = realloc(text, capacity *= 2);
		n = recv(fd, text + size, capacity - size - 1, 0);
		assert_true(n >= 0);
		if (n == 0)
			break;
		size += (size_t) n;
		text[size] = 0;
	}
	if (mark)
		assert_non_null(strstr(text, mark));
	return text;
}

static char *ask(const char *method, const char *path, const char *type, const char *body, int *ret_code)
{
	int   fd = connect_server();
	char *text;

	send_request(fd, method, path, type, body);
	text = read_until(fd, NULL);
	(void) close(fd);
	*ret_code = atoi(text + 9);
	return text;
}

#define JSON  "application/json"
#define MERGE "application/merge-patch+json"

static void expect(const char *method, const char *path, const char *body, int code, const char *part)
{
	int   got;
	char *text = ask(method, path, strcmp(method, "PATCH") == 0 ? MERGE : JSON, body, &got);

	if (got != code || strstr(text, part) == NULL)
		print_message("%s %s: %s\n", method, path, text);
	assert_int_equal(got, code);
	assert_non_null(strstr(text, part));
	free(text);
}

static void expect_empty(const char *collection)
{
	int   got;
	char *text = ask("GET", collection, JSON, "", &got);

	if (got != 200 || strstr(text, "\"name\":"))
		print_message("%s: %s\n", collection, text);
	assert_int_equal(got, 200);
	assert_null(strstr(text, "\"name\":"));
	free(text);
}

/* Waits for the end of an object that is known to be going, without asking again and again: a watch says it. */
static void expect_gone(const char *collection, const char *name)
{
	char  path[512];
	char *text;
	int   fd = connect_server();

	(void) snprintf(path, sizeof path, "%s?watch=1&resourceVersion=1&fieldSelector=metadata.name%%3D%s", collection, name);
	send_request(fd, "GET", path, JSON, "");
	text = read_until(fd, "\"type\":\"DELETED\"");
	free(text);
	(void) close(fd);
	(void) snprintf(path, sizeof path, "%s/%s", collection, name);
	expect("GET", path, "", 404, "NotFound");
}

#define NS	 "/api/v1/namespaces"
#define CM(name) NS "/" name "/configmaps"

static void make_namespace(const char *name)
{
	char body[128];

	(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", name);
	expect("POST", NS, body, 201, "\"finalizers\":[\"kubernetes\"]");
}

/* ---- Objects ---- */

static void r666_r667_what_a_delete_answers(void **state)
{
	static const char held[] = "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"example.com/x\"]}}";

	(void) state;
	make_namespace("answers");
	expect("POST", CM("answers"), held, 201, "");
	expect("DELETE", CM("answers") "/a?dryRun=All", "{\"propagationPolicy\":\"Foreground\"}", 200, "\"finalizers\":[\"example.com/x\",\"foregroundDeletion\"]");
	expect("DELETE", CM("answers") "/a", "{\"orphanDependents\":false,\"dryRun\":[\"All\"]}", 202, "\"deletionTimestamp\"");
	expect("DELETE", CM("answers") "/a", "{\"preconditions\":{\"uid\":\"other\"}}", 409, "Precondition failed: UID in precondition: other");
	expect("DELETE", CM("answers") "/a", "{\"preconditions\":{\"resourceVersion\":\"1\"}}", 409, "ResourceVersion in precondition: 1");
	expect("GET", CM("answers") "/a", "", 200, "\"finalizers\":[\"example.com/x\"]");
	expect("DELETE", CM("answers") "/a", "{\"orphanDependents\":false}", 202, "\"deletionGracePeriodSeconds\":0");
	expect("DELETE", CM("answers") "/a", "", 200, "\"kind\":\"ConfigMap\"");
	expect("POST", CM("answers"), held, 409, "object is being deleted: configmaps \\\"a\\\" already exists");
	expect("PATCH", CM("answers") "/a", "{\"metadata\":{\"finalizers\":[\"example.com/x\",\"example.com/y\"]}}", 422,
	       "no new finalizers can be added if the object is being deleted, found new finalizers []string{\\\"example.com/y\\\"}");
	expect("PATCH", CM("answers") "/a", "{\"metadata\":{\"deletionTimestamp\":null,\"labels\":{\"a\":\"b\"}}}", 200, "\"deletionTimestamp\":\"");
	expect("PATCH", CM("answers") "/a", "{\"metadata\":{\"deletionGracePeriodSeconds\":7}}", 422, "field is immutable");
	expect("PATCH", CM("answers") "/a", "{\"metadata\":{\"finalizers\":[]}}", 200, "\"name\":\"a\"");
	expect("GET", CM("answers") "/a", "", 404, "NotFound");
	expect("POST", CM("answers"), "{\"metadata\":{\"name\":\"b\",\"finalizers\":[\"orphan\",\"foregroundDeletion\"]}}", 422, "cannot be both set");
	expect("POST", CM("answers"), "{\"metadata\":{\"name\":\"b\",\"ownerReferences\":[{\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"u\"}]}}", 422,
	       "metadata.ownerReferences.apiVersion");
	expect("DELETE", CM("answers") "/none?propagationPolicy=Orphan", "", 404, "NotFound");
	expect("DELETE", CM("answers") "/none?propagationPolicy=Orphan&orphanDependents=true", "", 422, "cannot be both set");
	expect("DELETE", CM("answers") "/none", "{\"gracePeriodSeconds\":\"soon\"}", 400, "gracePeriodSeconds must be an integer");
}

static void r667_a_bound_pod_waits_for_its_agent(void **state)
{
	(void) state;
	make_namespace("grace");
	expect("POST", NS "/grace/pods", "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n\",\"terminationGracePeriodSeconds\":3600}}", 201, "");
	expect("POST", NS "/grace/pods", "{\"metadata\":{\"name\":\"free\"},\"spec\":{\"terminationGracePeriodSeconds\":3600}}", 201, "");
	expect("DELETE", NS "/grace/pods/free", "", 200, "\"kind\":\"Pod\"");
	expect("GET", NS "/grace/pods/free", "", 404, "");
	expect("DELETE", NS "/grace/pods/p", "", 200, "\"deletionGracePeriodSeconds\":3600");
	expect("DELETE", NS "/grace/pods/p?gracePeriodSeconds=4000", "", 200, "\"deletionGracePeriodSeconds\":3600");
	expect("DELETE", NS "/grace/pods/p?gracePeriodSeconds=1800", "", 200, "\"deletionGracePeriodSeconds\":1800");
	expect("GET", NS "/grace/pods/p", "", 200, "\"generation\":2");
	expect("DELETE", NS "/grace/pods/p", "{\"gracePeriodSeconds\":0}", 200, "\"kind\":\"Pod\"");
	expect("GET", NS "/grace/pods/p", "", 404, "");
}

/* ---- Namespaces ---- */

static void a_namespace_goes_with_its_content(void **state)
{
	(void) state;
	make_namespace("full");
	for (int i = 0; i < 300; i++) {
		char body[64];

		(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"c%d\"}}", i);
		expect("POST", CM("full"), body, 201, "");
	}
	expect("POST", NS "/full/pods", "{\"metadata\":{\"name\":\"p\"},\"spec\":{}}", 201, "");
	expect("POST", "/apis/apps/v1/namespaces/full/deployments", "{\"metadata\":{\"name\":\"d\"}}", 201, "");
	expect("DELETE", NS "/full", "", 200, "\"phase\":\"Terminating\"");
	expect_gone(NS, "full");
	expect_empty(CM("full"));
	expect_empty(NS "/full/pods");
	expect_empty("/apis/apps/v1/namespaces/full/deployments");
	make_namespace("full");
	expect_empty(CM("full"));
}

static void a_namespace_waits_for_finalizers_and_says_so(void **state)
{
	int   fd;
	char *text;

	(void) state;
	make_namespace("held");
	expect("POST", CM("held"), "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"example.com/x\"]}}", 201, "");
	expect("POST", CM("held"), "{\"metadata\":{\"name\":\"b\"}}", 201, "");
	expect("DELETE", NS "/held", "", 200, "\"phase\":\"Terminating\"");
	fd = connect_server();
	send_request(fd, "GET", NS "?watch=1&resourceVersion=1&fieldSelector=metadata.name%3Dheld", JSON, "");
	text = read_until(fd, "Some content in the namespace has finalizers remaining: example.com/x in 1 resource instances");
	assert_non_null(strstr(text, "\"NamespaceContentRemaining\""));
	assert_non_null(strstr(text, "Some resources are remaining: configmaps. has 1 resource instances"));
	free(text);
	(void) close(fd);
	expect("POST", CM("held"), "{\"metadata\":{\"name\":\"late\"}}", 403,
	       "configmaps \\\"late\\\" is forbidden: unable to create new content in namespace held because it is being terminated");
	expect("POST", CM("held"), "{\"metadata\":{\"generateName\":\"late-\"}}", 403, "\"reason\":\"NamespaceTerminating\"");
	expect("DELETE", NS "/held", "", 200, "\"phase\":\"Terminating\"");
	expect("PATCH", CM("held") "/a", "{\"metadata\":{\"finalizers\":null}}", 200, "");
	expect_gone(NS, "held");
}

static void some_namespaces_stay(void **state)
{
	(void) state;
	expect("DELETE", NS "/default", "", 403, "namespaces \\\"default\\\" is forbidden: this namespace may not be deleted");
	expect("DELETE", NS "/kube-system?dryRun=All", "", 403, "this namespace may not be deleted");
	expect("DELETE", NS, "", 405, "MethodNotAllowed");
	expect("GET", "/api/v1", "", 200, "\"name\":\"namespaces/finalize\"");
	expect("DELETE", NS "/absent", "", 404, "namespaces \\\"absent\\\" not found");
}

static void finalize_has_its_own_door(void **state)
{
	(void) state;
	make_namespace("door");
	expect("PUT", NS "/door", "{\"metadata\":{\"name\":\"door\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"finalizers\":[\"example.com/mine\"]}}", 200,
	       "\"spec\":{\"finalizers\":[\"kubernetes\"]}");
	expect("PUT", NS "/door/finalize", "{\"metadata\":{\"name\":\"door\"},\"spec\":{\"finalizers\":[\"kubernetes\",\"example.com/mine\"]},\"status\":{\"phase\":\"x\"}}",
	       200, "\"status\":{\"phase\":\"Active\"}");
	expect("PATCH", NS "/door/finalize", "{}", 405, "");
	expect("DELETE", NS "/door", "", 200, "\"finalizers\":[\"kubernetes\",\"example.com/mine\"]");
	/* The server has done its part; the rest is somebody else's. */
	free(read_until(({
		int fd = connect_server();
		send_request(fd, "GET", NS "?watch=1&resourceVersion=1&fieldSelector=metadata.name%3Ddoor", JSON, "");
		fd;
	}), "\"spec\":{\"finalizers\":[\"example.com/mine\"]}"));
	expect("DELETE", NS "/door", "", 200, "Terminating");
	expect("PUT", NS "/door/finalize", "{\"metadata\":{\"name\":\"door\"},\"spec\":{}}", 200, "\"name\":\"door\"");
	expect("GET", NS "/door", "", 404, "");
}

/* What was let in just before must not survive: creates race with the deletion, from many connections. */
static void nothing_survives_its_namespace(void **state)
{
	enum { WRITERS = 8 };

	(void) state;
	for (int round = 0; round < 10; round++) {
		int  fds[WRITERS], deleter;
		char body[64];

		make_namespace("race");
		for (int i = 0; i < WRITERS; i++)
			fds[i] = connect_server();
		deleter = connect_server();
		for (int i = 0; i < WRITERS; i++) {
			(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"c%d\"}}", i);
			send_request(fds[i], "POST", CM("race"), JSON, body);
			if (i == round % WRITERS)
				send_request(deleter, "DELETE", NS "/race", JSON, "");
		}
		for (int i = 0; i < WRITERS; i++) {
			char *text = read_until(fds[i], NULL);
			int   code = atoi(text + 9);

			if (code != 201 && code != 403 && code != 404)
				print_message("%s\n", text);
			assert_true(code == 201 || code == 403 || code == 404);
			free(text);
			(void) close(fds[i]);
		}
		free(read_until(deleter, "Terminating"));
		(void) close(deleter);
		expect_gone(NS, "race");
		expect_empty(CM("race"));
	}
}

/* Derived from the objects only: a server that starts goes on with what another one had begun. */
static void a_restart_goes_on(void **state)
{
	(void) state;
	stop_server();
	start_server(true);
	make_namespace("later");
	expect("POST", CM("later"), "{\"metadata\":{\"name\":\"a\"}}", 201, "");
	expect("DELETE", NS "/later", "", 200, "Terminating");
	expect("GET", CM("later") "/a", "", 200, "");
	stop_server();
	start_server(false);
	expect_gone(NS, "later");
	expect_empty(CM("later"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r666_r667_what_a_delete_answers),
		cmocka_unit_test(r667_a_bound_pod_waits_for_its_agent),
		cmocka_unit_test(a_namespace_goes_with_its_content),
		cmocka_unit_test(a_namespace_waits_for_finalizers_and_says_so),
		cmocka_unit_test(some_namespaces_stay),
		cmocka_unit_test(finalize_has_its_own_door),
		cmocka_unit_test(nothing_survives_its_namespace),
		cmocka_unit_test(a_restart_goes_on),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
