/* Deletion over HTTP, the server in this process: finalizers, propagation, grace periods, and namespaces to
 * their end. */
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "http_fixture.h"

static struct http_fixture world;
static unsigned		   loop_count = 2;

static void start_server(bool no_collector)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;

	options.no_garbage_collector = no_collector;
	http_fixture_start(&world, loop_count, &options);
}

static void stop_server(void)
{
	http_fixture_stop(&world, VD_SECONDS(60));
}

static int set_up(void **state)
{
	(void) state;
	http_fixture_init(&world);
	start_server(false);
	return 0;
}

static int tear_down(void **state)
{
	(void) state;
	http_fixture_close(&world, VD_SECONDS(60));
	return 0;
}

/* ---- One request a connection ---- */

static char *ask(const char *method, const char *path, const char *body, int *ret_code)
{
	return http_ask(world.port, method, path, HTTP_JSON, body, ret_code);
}

static void expect(const char *method, const char *path, const char *body, int code, const char *part)
{
	http_expect(world.port, method, path, strcmp(method, "PATCH") == 0 ? HTTP_MERGE : HTTP_JSON, body,
		    code, part);
}

static void expect_empty(const char *collection)
{
	int   got;
	char *text = ask("GET", collection, "", &got);

	if (got != 200 || strstr(text, "\"name\":"))
		print_message("%s: %s\n", collection, text);
	assert_int_equal(got, 200);
	assert_null(strstr(text, "\"name\":"));
	free(text);
}

/* Where the server stands. */
static long long present_revision(const char *collection)
{
	char	  path[512];
	char	 *text, *at;
	int	  code;
	long long revision;

	(void) snprintf(path, sizeof path, "%s?limit=1", collection);
	text = ask("GET", path, "", &code);
	assert_int_equal(code, 200);
	at = strstr(text, "\"resourceVersion\":\"");
	assert_non_null(at);
	revision = atoll(at + 19);
	free(text);
	return revision;
}

/* What a watch of the object says until mark; revision 0: from its present state on. The caller's. */
static char *watch_until(const char *collection, const char *name, long long revision, const char *mark)
{
	char  path[512];
	char *text;
	int   fd = http_open(world.port, 0);

	(void) snprintf(path, sizeof path,
			"%s?watch=1&fieldSelector=metadata.name%%3D%s&resourceVersion=%.0lld", collection,
			name, revision);
	http_send_request(fd, "GET", path, HTTP_JSON, "");
	text = http_read_until(fd, mark);
	(void) close(fd);
	return text;
}

/* Waits for the end of an object that is known to be going, without asking again and again: a watch says
 * it. */
static void expect_gone(const char *collection, const char *name)
{
	long long revision = present_revision(collection);
	char	  path[512];
	int	  code;

	(void) snprintf(path, sizeof path, "%s/%s", collection, name);
	free(ask("GET", path, "", &code));
	if (code != 404)
		free(watch_until(collection, name, revision, "\"type\":\"DELETED\""));
	expect("GET", path, "", 404, "NotFound");
}

#define NS "/api/v1/namespaces"
#define CM(name) NS "/" name "/configmaps"

static void make_namespace(const char *name)
{
	char body[128];

	(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", name);
	expect("POST", NS, body, 201, "\"finalizers\":[\"kubernetes\"]");
}

/* ---- Objects ---- */

/* rules: R-664 */
static void r666_r667_what_a_delete_answers(void **state)
{
	static const char held[] = "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"example.com/x\"]}}";

	(void) state;
	make_namespace("answers");
	expect("POST", CM("answers"), held, 201, "");
	expect("DELETE", CM("answers") "/a?dryRun=All", "{\"propagationPolicy\":\"Foreground\"}", 200,
	       "\"finalizers\":[\"example.com/x\",\"foregroundDeletion\"]");
	expect("DELETE", CM("answers") "/a", "{\"orphanDependents\":false,\"dryRun\":[\"All\"]}", 202,
	       "\"deletionTimestamp\"");
	expect("DELETE", CM("answers") "/a", "{\"preconditions\":{\"uid\":\"other\"}}", 409,
	       "Precondition failed: UID in precondition: other");
	expect("DELETE", CM("answers") "/a", "{\"preconditions\":{\"resourceVersion\":\"1\"}}", 409,
	       "ResourceVersion in precondition: 1");
	expect("GET", CM("answers") "/a", "", 200, "\"finalizers\":[\"example.com/x\"]");
	expect("DELETE", CM("answers") "/a", "{\"orphanDependents\":false}", 202,
	       "\"deletionGracePeriodSeconds\":0");
	expect("DELETE", CM("answers") "/a", "", 200, "\"kind\":\"ConfigMap\"");
	expect("POST", CM("answers"), held, 409,
	       "object is being deleted: configmaps \\\"a\\\" already exists");
	expect("PATCH", CM("answers") "/a",
	       "{\"metadata\":{\"finalizers\":[\"example.com/x\",\"example.com/y\"]}}", 422,
	       "no new finalizers can be added if the object is being deleted, found new finalizers "
	       "[]string{\\\"example.com/y\\\"}");
	expect("PATCH", CM("answers") "/a",
	       "{\"metadata\":{\"deletionTimestamp\":null,\"labels\":{\"a\":\"b\"}}}", 200,
	       "\"deletionTimestamp\":\"");
	expect("PATCH", CM("answers") "/a", "{\"metadata\":{\"deletionGracePeriodSeconds\":7}}", 422,
	       "field is immutable");
	expect("PATCH", CM("answers") "/a", "{\"metadata\":{\"finalizers\":[]}}", 200, "\"name\":\"a\"");
	expect("GET", CM("answers") "/a", "", 404, "NotFound");
	expect("POST", CM("answers"),
	       "{\"metadata\":{\"name\":\"b\",\"finalizers\":[\"orphan\",\"foregroundDeletion\"]}}", 422,
	       "cannot be both set");
	expect("POST", CM("answers"),
	       "{\"metadata\":{\"name\":\"b\",\"ownerReferences\":[{\"kind\":\"Pod\",\"name\":\"p\",\"uid\":"
	       "\"u\"}]}}",
	       422, "metadata.ownerReferences.apiVersion");
	expect("DELETE", CM("answers") "/none?propagationPolicy=Orphan", "", 404, "NotFound");
	expect("DELETE", CM("answers") "/none?propagationPolicy=Orphan&orphanDependents=true", "", 422,
	       "cannot be both set");
	expect("DELETE", CM("answers") "/none", "{\"gracePeriodSeconds\":\"soon\"}", 400,
	       "gracePeriodSeconds must be an integer");
}

/* A condition on the version holds for the object as it was asked for, also where the deletion changes it
 * first. */
static void r668_a_version_is_asked_for_once(void **state)
{
	static const struct {
		const char *finalizer, *options;
		int	    code; /* of a get afterwards */
	} rows[] = { { "orphan", "\"propagationPolicy\":\"Background\",", 404 },
		     { "example.com/x", "", 200 },
		     { "foregroundDeletion", "\"orphanDependents\":false,", 404 } };
	char body[200], *text, *revision;
	int  code;

	(void) state;
	make_namespace("versions");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"v\",\"finalizers\":[\"%s\"]}}",
				rows[i].finalizer);
		text = ask("POST", CM("versions"), body, &code);
		assert_int_equal(code, 201);
		revision = strstr(text, "\"resourceVersion\":\"");
		assert_non_null(revision);
		(void) snprintf(body, sizeof body, "{%s\"preconditions\":{\"resourceVersion\":\"%lld\"}}",
				rows[i].options, atoll(revision + strlen("\"resourceVersion\":\"")));
		free(text);
		expect("DELETE", CM("versions") "/v", body, 200, "");
		expect("GET", CM("versions") "/v", "", rows[i].code,
		       rows[i].code == 200 ? "\"deletionTimestamp\"" : "NotFound");
		if (rows[i].code == 404)
			continue;
		expect("DELETE", CM("versions") "/v", body, 409,
		       "Precondition failed: ResourceVersion in precondition"); /* it has been marked since */
		expect("PATCH", CM("versions") "/v", "{\"metadata\":{\"finalizers\":null}}", 200, "");
	}
}

/* With a limit a collection loses one page, from where its token says; without, it loses all. The options are
 * the body's if there is one.
 * rules */
static void r669_collections_are_deleted_by_pages(void **state)
{
	char body[64], path[512], *text, *token;
	int  code;

	(void) state;
	make_namespace("pages");
	for (int i = 0; i < 7; i++) {
		(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"c%d\"%s}}", i,
				i == 6 ? ",\"finalizers\":[\"example.com/x\"]" : "");
		expect("POST", CM("pages"), body, 201, "");
	}
	expect("DELETE", CM("pages") "?limit=2&dryRun=All", "", 200, "\"status\":\"Success\"");
	expect("DELETE", CM("pages") "?limit=2", "", 200, "\"status\":\"Success\"");
	expect("GET", CM("pages") "/c1", "", 404, "");
	expect("GET", CM("pages") "/c2", "", 200, "");
	text = ask("GET", CM("pages") "?limit=1", "", &code);
	token = strstr(text, "\"continue\":\"");
	assert_non_null(token);
	token += strlen("\"continue\":\"");
	(void) snprintf(path, sizeof path, CM("pages") "?limit=1&continue=%.*s", (int) strcspn(token, "\""),
			token);
	free(text);
	expect("DELETE", path, "", 200, "\"status\":\"Success\"");
	expect("GET", CM("pages") "/c2", "", 200, "");
	expect("GET", CM("pages") "/c3", "", 404, "");
	expect("GET", CM("pages") "/c4", "", 200, "");
	expect("DELETE", CM("pages") "?labelSelector=a%3Db", "", 200, "");
	expect("GET", CM("pages") "/c4", "", 200, "");
	/* The query asks for a finalizer, the body does not. */
	expect("DELETE", CM("pages") "/c4?propagationPolicy=Foreground",
	       "{\"propagationPolicy\":\"Background\"}", 200, "\"status\":\"Success\"");
	expect("GET", CM("pages") "/c4", "", 404, "");
	expect("DELETE", CM("pages") "", "", 200, "\"status\":\"Success\"");
	expect("GET", CM("pages") "/c2", "", 404, "");
	expect("GET", CM("pages") "/c6", "", 200, "\"deletionTimestamp\"");
	expect("PATCH", CM("pages") "/c6", "{\"metadata\":{\"finalizers\":null}}", 200, "");
	expect_empty(CM("pages"));
}

static void r667_a_bound_pod_waits_for_its_agent(void **state)
{
	(void) state;
	make_namespace("grace");
	expect("POST", NS "/grace/pods",
	       "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n\","
	       "\"terminationGracePeriodSeconds\":3600}}",
	       201, "");
	expect("POST", NS "/grace/pods",
	       "{\"metadata\":{\"name\":\"free\"},\"spec\":{\"terminationGracePeriodSeconds\":3600}}", 201,
	       "");
	expect("DELETE", NS "/grace/pods/free", "", 200, "\"kind\":\"Pod\"");
	expect("GET", NS "/grace/pods/free", "", 404, "");
	expect("DELETE", NS "/grace/pods/p", "", 200, "\"deletionGracePeriodSeconds\":3600");
	expect("DELETE", NS "/grace/pods/p?gracePeriodSeconds=4000", "", 200,
	       "\"deletionGracePeriodSeconds\":3600");
	expect("DELETE", NS "/grace/pods/p?gracePeriodSeconds=1800", "", 200,
	       "\"deletionGracePeriodSeconds\":1800");
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
	expect("POST", "/apis/apps/v1/namespaces/full/deployments", "{\"metadata\":{\"name\":\"d\"}}", 201,
	       "");
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
	char *text;

	(void) state;
	make_namespace("held");
	expect("POST", CM("held"), "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"example.com/x\"]}}", 201,
	       "");
	expect("POST", CM("held"), "{\"metadata\":{\"name\":\"b\"}}", 201, "");
	expect("DELETE", NS "/held", "", 200, "\"phase\":\"Terminating\"");
	text = watch_until(NS, "held", 0,
			   "Some content in the namespace has finalizers remaining: example.com/x in 1 "
			   "resource instances");
	assert_non_null(strstr(text, "\"NamespaceContentRemaining\""));
	assert_non_null(strstr(text, "Some resources are remaining: configmaps. has 1 resource instances"));
	free(text);
	expect("POST", CM("held"), "{\"metadata\":{\"name\":\"late\"}}", 403,
	       "configmaps \\\"late\\\" is forbidden: unable to create new content in namespace held because "
	       "it is being terminated");
	expect("POST", CM("held"), "{\"metadata\":{\"generateName\":\"late-\"}}", 403,
	       "\"reason\":\"NamespaceTerminating\"");
	expect("DELETE", NS "/held", "", 200, "\"phase\":\"Terminating\"");
	expect("PATCH", CM("held") "/a", "{\"metadata\":{\"finalizers\":null}}", 200, "");
	expect_gone(NS, "held");
}

/* What cannot be decoded is in no list, and still must not be left behind. rules: O-20 */
static void a_namespace_waits_for_what_cannot_be_decoded(void **state)
{
	struct vd_bytes key = vd_bytes_of("/registry/configmaps/unreadable/c");

	(void) state;
	make_namespace("unreadable");
	expect("POST", CM("unreadable"), "{\"metadata\":{\"name\":\"c\"}}", 201, "");
	assert_status(vd_store_put_wait(world.store, key, vd_bytes_of("junk"), NULL, NULL), VD_OK);
	expect("DELETE", NS "/unreadable", "", 200, "");
	free(watch_until(
		NS, "unreadable", 0,
		"configmaps: the object stored under /registry/configmaps/unreadable/c cannot be decoded"));
	assert_status(vd_store_delete_wait(world.store, key, VD_BYTES_NONE, NULL, NULL, NULL), VD_OK);
	expect_gone(NS, "unreadable");
}

static void some_namespaces_stay(void **state)
{
	(void) state;
	expect("DELETE", NS "/default", "", 403,
	       "namespaces \\\"default\\\" is forbidden: this namespace may not be deleted");
	expect("DELETE", NS "/kube-system?dryRun=All", "", 403, "this namespace may not be deleted");
	expect("DELETE", NS, "", 405, "MethodNotAllowed");
	expect("GET", "/api/v1", "", 200, "\"name\":\"namespaces/finalize\"");
	expect("DELETE", NS "/absent", "", 404, "namespaces \\\"absent\\\" not found");
}

static void finalize_has_its_own_door(void **state)
{
	(void) state;
	make_namespace("door");
	expect("PUT", NS "/door",
	       "{\"metadata\":{\"name\":\"door\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"finalizers\":["
	       "\"example.com/mine\"]}}",
	       200, "\"spec\":{\"finalizers\":[\"kubernetes\"]}");
	expect("PUT", NS "/door/finalize",
	       "{\"metadata\":{\"name\":\"door\"},\"spec\":{\"finalizers\":[\"kubernetes\",\"example.com/"
	       "mine\"]},\"status\":{\"phase\":\"x\"}}",
	       200, "\"status\":{\"phase\":\"Active\"}");
	expect("PATCH", NS "/door/finalize", "{}", 405, "");
	expect("DELETE", NS "/door", "", 200, "\"finalizers\":[\"kubernetes\",\"example.com/mine\"]");
	/* The server has done its part; the rest is somebody else's. */
	free(watch_until(NS, "door", 0, "\"spec\":{\"finalizers\":[\"example.com/mine\"]}"));
	expect("DELETE", NS "/door", "", 200, "Terminating");
	expect("PUT", NS "/door/finalize", "{\"metadata\":{\"name\":\"door\"},\"spec\":{}}", 200,
	       "\"name\":\"door\"");
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
			fds[i] = http_open(world.port, 0);
		deleter = http_open(world.port, 0);
		for (int i = 0; i < WRITERS; i++) {
			(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"c%d\"}}", i);
			http_send_request(fds[i], "POST", CM("race"), HTTP_JSON, body);
			if (i == round % WRITERS)
				http_send_request(deleter, "DELETE", NS "/race", HTTP_JSON, "");
		}
		for (int i = 0; i < WRITERS; i++) {
			char *text = http_read_until(fds[i], NULL);
			int   code = atoi(text + 9);

			if (code != 201 && code != 403 && code != 404)
				print_message("%s\n", text);
			assert_true(code == 201 || code == 403 || code == 404);
			free(text);
			(void) close(fds[i]);
		}
		free(http_read_until(deleter, "Terminating"));
		(void) close(deleter);
		expect_gone(NS, "race");
		expect_empty(CM("race"));
	}
}

/* The store, but for a transaction that is held back before it is made. */
static struct {
	const struct vd_store_ops *ops;
	pthread_mutex_t		   mutex;
	pthread_cond_t		   changed;
	bool			   is_holding, has_come;
} held = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static vd_status hold_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			  void *arg)
{
	static const char prefix[] = "/registry/configmaps/slow/";

	if (request->success_count && vd_bytes_has_prefix(request->success[0].key, vd_bytes_of(prefix))) {
		pthread_mutex_lock(&held.mutex);
		held.has_come = true;
		pthread_cond_broadcast(&held.changed);
		while (held.is_holding)
			pthread_cond_wait(&held.changed, &held.mutex);
		pthread_mutex_unlock(&held.mutex);
	}
	return held.ops->txn(store, request, done, arg);
}

/* A create that has seen its namespace, and commits when that is gone, or another one of the same name: it
 * does not. */
static void a_create_that_comes_too_late_is_refused(void **state)
{
	struct vd_store_ops ops = *world.store->ops;
	char		   *text;

	(void) state;
	held.ops = world.store->ops;
	ops.txn = hold_txn;
	stop_server();
	world.store->ops = &ops;
	loop_count = 16; /* one of them is held */
	start_server(false);
	for (int round = 0; round < 2; round++) {
		int fd;

		make_namespace("slow");
		held.is_holding = true;
		held.has_come = false;
		fd = http_open(world.port, 0);
		http_send_request(fd, "POST", CM("slow"), HTTP_JSON, "{\"metadata\":{\"name\":\"a\"}}");
		pthread_mutex_lock(&held.mutex);
		while (!held.has_come)
			pthread_cond_wait(&held.changed, &held.mutex);
		pthread_mutex_unlock(&held.mutex);
		expect("DELETE", NS "/slow", "", 200, "Terminating");
		expect_gone(NS, "slow");
		if (round == 1)
			make_namespace("slow");
		pthread_mutex_lock(&held.mutex);
		held.is_holding = false;
		pthread_cond_broadcast(&held.changed);
		pthread_mutex_unlock(&held.mutex);
		text = http_read_until(fd, NULL);
		(void) close(fd);
		assert_int_equal(atoi(text + 9),
				 round == 0 ? 404 : 201); /* the new namespace is as good as the old one */
		free(text);
		if (round == 0)
			expect_empty(CM("slow"));
	}
	loop_count = 2;
	stop_server();
	world.store->ops = held.ops;
	start_server(false);
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

/* ---- Dependents ---- */

#define RS(name) "/apis/apps/v1/namespaces/" name "/replicasets"
#define DP(name) "/apis/apps/v1/namespaces/" name "/deployments"

/* Makes an object and gives its uid; owners is the text of its references, "" for none. */
static void make(const char *collection, const char *name, const char *owners, char uid[64])
{
	char  body[2048];
	char *text, *at;
	int   code;

	(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[%s]}}", name,
			owners);
	text = ask("POST", collection, body, &code);
	if (code != 201)
		print_message("%s: %s\n", body, text);
	assert_int_equal(code, 201);
	at = strstr(text, "\"uid\":\"");
	while (strstr(at + 1, "\"uid\":\"")) /* its own is behind those of its owners */
		at = strstr(at + 1, "\"uid\":\"");
	(void) snprintf(uid, 64, "%.36s", at + 7);
	free(text);
}

static const char *owned_by(const char *version, const char *kind, const char *name, const char *uid,
			    bool blocks)
{
	static char texts[8][256];
	static int  next;
	char	   *text = texts[next++ % 8];

	(void) snprintf(text, sizeof texts[0],
			"{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\","
			"\"blockOwnerDeletion\":%s}",
			version, kind, name, uid, blocks ? "true" : "false");
	return text;
}

/* A deployment with two replica sets of three pods each. */
static void make_tree(const char *namespace_name, bool blocks)
{
	char path[128], name[32], deployment[64], set[64], pod[64];

	make_namespace(namespace_name);
	(void) snprintf(path, sizeof path, "/apis/apps/v1/namespaces/%s/deployments", namespace_name);
	make(path, "d", "", deployment);
	for (int i = 0; i < 2; i++) {
		(void) snprintf(path, sizeof path, "/apis/apps/v1/namespaces/%s/replicasets", namespace_name);
		(void) snprintf(name, sizeof name, "rs%d", i);
		make(path, name, owned_by("apps/v1", "Deployment", "d", deployment, blocks), set);
		for (int j = 0; j < 3; j++) {
			char pod_name[32], owner[32];

			(void) snprintf(owner, sizeof owner, "rs%d", i);
			(void) snprintf(path, sizeof path, NS "/%s/pods", namespace_name);
			(void) snprintf(pod_name, sizeof pod_name, "p%d-%d", i, j);
			make(path, pod_name, owned_by("apps/v1", "ReplicaSet", owner, set, blocks), pod);
		}
	}
}

static void background_dependents_go_after_their_owner(void **state)
{
	(void) state;
	make_tree("back", true);
	expect("DELETE", DP("back") "/d", "{\"propagationPolicy\":\"Background\"}", 200,
	       "\"status\":\"Success\"");
	expect("GET", DP("back") "/d", "", 404, "");
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 3; j++) {
			char name[32];

			(void) snprintf(name, sizeof name, "p%d-%d", i, j);
			expect_gone(NS "/back/pods", name);
		}
	expect_empty(RS("back"));
}

static void foreground_dependents_go_first(void **state)
{
	int   fd, code;
	char  path[128];
	char *text;

	(void) state;
	make_tree("front", true);
	/* As soon as a watch says that the owner has gone, nothing of what it owned is there. */
	fd = http_open(world.port, 0);
	(void) snprintf(path, sizeof path, DP("front") "?watch=1&resourceVersion=%lld",
			present_revision(DP("front")));
	http_send_request(fd, "GET", path, HTTP_JSON, "");
	expect("DELETE", DP("front") "/d", "{\"propagationPolicy\":\"Foreground\"}", 200,
	       "\"finalizers\":[\"foregroundDeletion\"]");
	free(http_read_until(fd, "\"type\":\"DELETED\""));
	(void) close(fd);
	expect_empty(NS "/front/pods");
	expect_empty(RS("front"));
	text = ask("GET", DP("front") "/d", "", &code);
	assert_int_equal(code, 404);
	free(text);
}

static void orphans_stay_without_their_owner(void **state)
{
	char  path[128];
	char *text;
	int   code;

	(void) state;
	make_tree("orphans", true);
	expect("DELETE", DP("orphans") "/d", "{\"propagationPolicy\":\"Orphan\"}", 200,
	       "\"finalizers\":[\"orphan\"]");
	expect_gone(DP("orphans"), "d");
	for (int i = 0; i < 2; i++) {
		(void) snprintf(path, sizeof path, RS("orphans") "/rs%d", i);
		text = ask("GET", path, "", &code);
		assert_int_equal(code, 200);
		assert_null(strstr(text, "ownerReferences"));
		free(text);
	}
	expect("GET", NS "/orphans/pods/p0-0", "", 200, "ownerReferences");
	expect("GET", NS "/orphans/pods/p1-2", "", 200, "ownerReferences");
}

static void one_owner_that_lives_is_enough(void **state)
{
	char	  a[64], b[64], c[64], owners[1024];
	long long revision;

	(void) state;
	make_namespace("several");
	make(CM("several"), "a", "", a);
	make(CM("several"), "b", "", b);
	(void) snprintf(owners, sizeof owners, "%s,%s", owned_by("v1", "ConfigMap", "a", a, false),
			owned_by("v1", "ConfigMap", "b", b, false));
	make(CM("several"), "c", owners, c);
	revision = present_revision(CM("several"));
	expect("DELETE", CM("several") "/a", "", 200, "Success");
	free(watch_until(CM("several"), "c", revision,
			 "\"type\":\"MODIFIED\"")); /* the reference to a is gone */
	expect("GET", CM("several") "/c", "", 200, b);
	expect("DELETE", CM("several") "/b", "", 200, "Success");
	expect_gone(CM("several"), "c");
}

static void an_owner_elsewhere_is_none(void **state)
{
	char a[64], uid[64];

	(void) state;
	make_namespace("here");
	make_namespace("there");
	make(CM("there"), "a", "", a);
	make(CM("here"), "b", owned_by("v1", "ConfigMap", "a", a, false), uid);
	expect_gone(CM("here"), "b");
	expect("GET", CM("there") "/a", "", 200, "");
	/* An owner that never was. */
	make(CM("here"), "c",
	     owned_by("v1", "ConfigMap", "none", "5e1f2f7e-0000-4000-8000-000000000000", false), uid);
	expect_gone(CM("here"), "c");
	/* One of the same name, but another one. */
	make(CM("here"), "a", "", uid);
	make(CM("here"), "d", owned_by("v1", "ConfigMap", "a", a, false), uid);
	expect_gone(CM("here"), "d");
	/* Without a namespace nothing in one can be followed; a kind that is not served cannot either: both
	 * stay. */
	make("/api/v1/persistentvolumes", "v", owned_by("v1", "ConfigMap", "a", a, false), uid);
	make(CM("here"), "e",
	     owned_by("example.com/v1", "Thing", "t", "5e1f2f7e-0000-4000-8000-000000000001", false), uid);
	/* Owned from outside of the namespace. */
	make("/api/v1/persistentvolumes", "w", "", a);
	make(CM("here"), "f", owned_by("v1", "PersistentVolume", "w", a, false), uid);
	make(CM("here"), "g",
	     owned_by("v1", "PersistentVolume", "w", "5e1f2f7e-0000-4000-8000-000000000002", false), uid);
	expect_gone(CM("here"), "g");
	expect("GET", CM("here") "/f", "", 200, "");
	expect("DELETE", "/api/v1/persistentvolumes/w", "", 200, "");
	expect_gone(CM("here"), "f");
	expect("GET", "/api/v1/persistentvolumes/v", "", 200, "");
	expect("GET", CM("here") "/e", "", 200, "");
}

/* a blocks b, b blocks a. */
static void a_circle_ends(void **state)
{
	char a[64], b[64], body[512];

	(void) state;
	make_namespace("circle");
	make(CM("circle"), "a", "", a);
	make(CM("circle"), "b", owned_by("v1", "ConfigMap", "a", a, true), b);
	(void) snprintf(body, sizeof body, "{\"metadata\":{\"ownerReferences\":[%s]}}",
			owned_by("v1", "ConfigMap", "b", b, true));
	expect("PATCH", CM("circle") "/a", body, 200, "");
	expect("DELETE", CM("circle") "/a", "{\"propagationPolicy\":\"Foreground\"}", 200,
	       "foregroundDeletion");
	expect_gone(CM("circle"), "a");
	expect_gone(CM("circle"), "b");
}

/* Collected by the next server, too: what is to be done is in the objects. */
static void dependents_of_what_went_before_the_start_go(void **state)
{
	(void) state;
	stop_server();
	start_server(true);
	make_tree("before", true);
	expect("DELETE", DP("before") "/d", "{\"propagationPolicy\":\"Background\"}", 200, "Success");
	expect("GET", RS("before") "/rs0", "", 200, "");
	stop_server();
	start_server(false);
	expect_gone(RS("before"), "rs0");
	expect_gone(NS "/before/pods", "p1-2");
	expect_gone(NS "/before/pods", "p0-0");
}

/* References are taken out by uid. One that does not hold, though its uid is that of an owner that is there,
 * takes nothing along. */
static void an_owner_that_is_named_twice_holds_as_long_as_it_is_there(void **state)
{
	char	  owner[64], other[64], uid[64], owners[1024];
	char	 *text;
	long long revision;

	(void) state;
	make_namespace("twice");
	make(CM("twice"), "owner", "", owner);
	make(CM("twice"), "other", "", other);
	(void) snprintf(owners, sizeof owners, "%s,%s,%s", owned_by("v1", "ConfigMap", "owner", owner, false),
			owned_by("v1", "ConfigMap", "nobody", owner, false),
			owned_by("v1", "ConfigMap", "other", other, false));
	make(CM("twice"), "owned", owners, uid);
	revision = present_revision(CM("twice"));
	expect("DELETE", CM("twice") "/other", "", 200, "");
	text = watch_until(CM("twice"), "owned", revision, "\"type\":\"MODIFIED\"");
	assert_non_null(strstr(strstr(text, "\"type\":\"MODIFIED\""), owner));
	free(text);
	expect("DELETE", CM("twice") "/owner", "", 200, "");
	expect_gone(CM("twice"), "owned");
}

/* A pod whose node is not there goes when its grace period is over; one whose node is there waits for it. */
static void r667_pods_of_absent_nodes_go(void **state)
{
	(void) state;
	make_namespace("agents");
	expect("POST", "/api/v1/nodes", "{\"metadata\":{\"name\":\"present\"}}", 201, "");
	expect("POST", NS "/agents/pods",
	       "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"absent\","
	       "\"terminationGracePeriodSeconds\":1}}",
	       201, "");
	expect("POST", NS "/agents/pods",
	       "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"nodeName\":\"present\","
	       "\"terminationGracePeriodSeconds\":1}}",
	       201, "");
	expect("DELETE", NS "/agents/pods/p", "", 200, "\"deletionGracePeriodSeconds\":1");
	expect("DELETE", NS "/agents/pods/q", "", 200, "\"deletionGracePeriodSeconds\":1");
	expect_gone(NS "/agents/pods", "p");
	expect("GET", NS "/agents/pods/q", "", 200, "");
	expect("DELETE", NS "/agents/pods/q?gracePeriodSeconds=0", "", 200, "");
	expect("GET", NS "/agents/pods/q", "", 404, "");
}

/* ---- Against a model ---- */

enum { OBJECTS = 60, ROUNDS = 4 };

struct model {
	bool exists;
	char uid[64];
	int  owners[2]; /* -1: none */
};

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* What is left in the end: who has owners, but none that is there, goes. */
static void settle_model(struct model *model)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (int i = 0; i < OBJECTS; i++) {
			bool has_owner = model[i].owners[0] >= 0 || model[i].owners[1] >= 0,
			     lives = !has_owner;

			for (int j = 0; j < 2; j++)
				lives |= model[i].owners[j] >= 0 && model[model[i].owners[j]].exists;
			if (model[i].exists && !lives)
				model[i].exists = false, changed = true;
		}
	}
}

static void make_forest(struct model *model, uint64_t *seed)
{
	for (int i = 0; i < OBJECTS; i++) {
		char name[16], owner[2][16], owners[1024] = "";

		(void) snprintf(name, sizeof name, "o%d", i);
		model[i] = (struct model) { .exists = true, .owners = { -1, -1 } };
		for (int j = 0; j < 2 && i > 8; j++)
			if (next_random(seed) % 3) {
				model[i].owners[j] = (int) (next_random(seed) % (uint64_t) i);
				(void) snprintf(owner[j], sizeof owner[j], "o%d", model[i].owners[j]);
				(void) snprintf(owners + strlen(owners), sizeof owners - strlen(owners),
						"%s%s", *owners ? "," : "",
						owned_by("v1", "ConfigMap", owner[j],
							 model[model[i].owners[j]].uid,
							 next_random(seed) % 2));
			}
		make(CM("forest"), name, owners, model[i].uid);
	}
}

/* Owners are deleted in all ways while the server is stopped and started; in the end there is exactly what
 * the model says. */
static void r667_the_collector_against_a_model(void **state)
{
	static const char *const policies[] = { "Background", "Foreground", "Background" };
	uint64_t		 seed = 0x5eed + (uint64_t) getpid();
	struct model		 model[OBJECTS];

	(void) state;
	print_message("seed %llu\n", (unsigned long long) seed);
	for (int round = 0; round < ROUNDS; round++) {
		make_namespace("forest");
		make_forest(model, &seed);
		for (int i = 0; i < 6; i++) {
			int  victim = (int) (next_random(&seed) % OBJECTS), code;
			char path[128], body[64];

			(void) snprintf(path, sizeof path, CM("forest") "/o%d", victim);
			(void) snprintf(body, sizeof body, "{\"propagationPolicy\":\"%s\"}",
					policies[next_random(&seed) % 3]);
			free(ask("DELETE", path, body, &code));
			assert_true(code == 200 || code == 404);
			model[victim].exists = false;
			if (i == 2) {
				stop_server();
				start_server(round % 2);
			}
		}
		stop_server();
		start_server(false);
		settle_model(model);
		for (int i = 0; i < OBJECTS; i++) {
			char name[16], path[128];

			(void) snprintf(name, sizeof name, "o%d", i);
			(void) snprintf(path, sizeof path, CM("forest") "/o%d", i);
			if (model[i].exists)
				expect("GET", path, "", 200, model[i].uid);
			else
				expect_gone(CM("forest"), name);
		}
		for (int i = 0; i < OBJECTS; i++) { /* nor did anything go meanwhile */
			char path[128];

			(void) snprintf(path, sizeof path, CM("forest") "/o%d", i);
			if (model[i].exists)
				expect("GET", path, "", 200, model[i].uid);
		}
		expect("DELETE", NS "/forest", "", 200, "Terminating");
		expect_gone(NS, "forest");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r666_r667_what_a_delete_answers),
		cmocka_unit_test(r668_a_version_is_asked_for_once),
		cmocka_unit_test(r669_collections_are_deleted_by_pages),
		cmocka_unit_test(r667_a_bound_pod_waits_for_its_agent),
		cmocka_unit_test(a_namespace_goes_with_its_content),
		cmocka_unit_test(a_namespace_waits_for_finalizers_and_says_so),
		cmocka_unit_test(a_namespace_waits_for_what_cannot_be_decoded),
		cmocka_unit_test(some_namespaces_stay),
		cmocka_unit_test(finalize_has_its_own_door),
		cmocka_unit_test(nothing_survives_its_namespace),
		cmocka_unit_test(a_create_that_comes_too_late_is_refused),
		cmocka_unit_test(a_restart_goes_on),
		cmocka_unit_test(background_dependents_go_after_their_owner),
		cmocka_unit_test(foreground_dependents_go_first),
		cmocka_unit_test(orphans_stay_without_their_owner),
		cmocka_unit_test(one_owner_that_lives_is_enough),
		cmocka_unit_test(an_owner_elsewhere_is_none),
		cmocka_unit_test(a_circle_ends),
		cmocka_unit_test(dependents_of_what_went_before_the_start_go),
		cmocka_unit_test(r667_pods_of_absent_nodes_go),
		cmocka_unit_test(an_owner_that_is_named_twice_holds_as_long_as_it_is_there),
		cmocka_unit_test(r667_the_collector_against_a_model),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
