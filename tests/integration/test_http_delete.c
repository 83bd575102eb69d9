/* Deletion over HTTP, with the server in this process: finalizers, propagation, grace periods, and the end of
 * namespaces. */
#include <pthread.h>
#include <unistd.h>

#include "http_deletion.h"
#include "http_fixture.h"

/* ---- Objects ---- */

/* rules: R-664 */
static void r666_r667_what_a_delete_answers(void **state)
{
	static const char held[] = "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"example.com/x\"]}}";

	(void) state;
	deletion_make_namespace("answers");
	deletion_expect("POST", CM("answers"), held, 201, "");
	deletion_expect("DELETE", CM("answers") "/a?dryRun=All", "{\"propagationPolicy\":\"Foreground\"}",
			200, "\"finalizers\":[\"example.com/x\",\"foregroundDeletion\"]");
	deletion_expect("DELETE", CM("answers") "/a", "{\"orphanDependents\":false,\"dryRun\":[\"All\"]}",
			202, "\"deletionTimestamp\"");
	deletion_expect("DELETE", CM("answers") "/a", "{\"preconditions\":{\"uid\":\"other\"}}", 409,
			"Precondition failed: UID in precondition: other");
	deletion_expect("DELETE", CM("answers") "/a", "{\"preconditions\":{\"resourceVersion\":\"1\"}}", 409,
			"ResourceVersion in precondition: 1");
	deletion_expect("GET", CM("answers") "/a", "", 200, "\"finalizers\":[\"example.com/x\"]");
	deletion_expect("DELETE", CM("answers") "/a", "{\"orphanDependents\":false}", 202,
			"\"deletionGracePeriodSeconds\":0");
	deletion_expect("DELETE", CM("answers") "/a", "", 200, "\"kind\":\"ConfigMap\"");
	deletion_expect("POST", CM("answers"), held, 409,
			"object is being deleted: configmaps \\\"a\\\" already exists");
	deletion_expect("PATCH", CM("answers") "/a",
			"{\"metadata\":{\"finalizers\":[\"example.com/x\",\"example.com/y\"]}}", 422,
			"no new finalizers can be added if the object is being deleted, found new finalizers "
			"[]string{\\\"example.com/y\\\"}");
	deletion_expect("PATCH", CM("answers") "/a",
			"{\"metadata\":{\"deletionTimestamp\":null,\"labels\":{\"a\":\"b\"}}}", 200,
			"\"deletionTimestamp\":\"");
	deletion_expect("PATCH", CM("answers") "/a", "{\"metadata\":{\"deletionGracePeriodSeconds\":7}}", 422,
			"field is immutable");
	deletion_expect("PATCH", CM("answers") "/a", "{\"metadata\":{\"finalizers\":[]}}", 200,
			"\"name\":\"a\"");
	deletion_expect("GET", CM("answers") "/a", "", 404, "NotFound");
	deletion_expect("POST", CM("answers"),
			"{\"metadata\":{\"name\":\"b\",\"finalizers\":[\"orphan\",\"foregroundDeletion\"]}}",
			422, "cannot be both set");
	deletion_expect(
		"POST", CM("answers"),
		"{\"metadata\":{\"name\":\"b\",\"ownerReferences\":[{\"kind\":\"Pod\",\"name\":\"p\",\"uid\":"
		"\"u\"}]}}",
		422, "metadata.ownerReferences.apiVersion");
	deletion_expect("DELETE", CM("answers") "/none?propagationPolicy=Orphan", "", 404, "NotFound");
	deletion_expect("DELETE", CM("answers") "/none?propagationPolicy=Orphan&orphanDependents=true", "",
			422, "cannot be both set");
	deletion_expect("DELETE", CM("answers") "/none", "{\"gracePeriodSeconds\":\"soon\"}", 400,
			"gracePeriodSeconds must be an integer");
}

/* A precondition on the version applies to the object as it was requested, even if the deletion changes the
 * object first. */
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
	deletion_make_namespace("versions");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"v\",\"finalizers\":[\"%s\"]}}",
				rows[i].finalizer);
		text = deletion_ask("POST", CM("versions"), body, &code);
		assert_int_equal(code, 201);
		revision = strstr(text, "\"resourceVersion\":\"");
		assert_non_null(revision);
		(void) snprintf(body, sizeof body, "{%s\"preconditions\":{\"resourceVersion\":\"%lld\"}}",
				rows[i].options, atoll(revision + strlen("\"resourceVersion\":\"")));
		free(text);
		deletion_expect("DELETE", CM("versions") "/v", body, 200, "");
		deletion_expect("GET", CM("versions") "/v", "", rows[i].code,
				rows[i].code == 200 ? "\"deletionTimestamp\"" : "NotFound");
		if (rows[i].code == 404)
			continue;
		/* It was marked since then. */
		deletion_expect("DELETE", CM("versions") "/v", body, 409,
				"Precondition failed: ResourceVersion in precondition");
		deletion_expect("PATCH", CM("versions") "/v", "{\"metadata\":{\"finalizers\":null}}", 200,
				"");
	}
}

/* With a limit, one page of a collection is deleted, from the position of the token; without, all of it. The
 * options are those of the body, if there is one. rules */
static void r669_collections_are_deleted_by_pages(void **state)
{
	char body[64], path[512], *text, *token;
	int  code;

	(void) state;
	deletion_make_namespace("pages");
	for (int i = 0; i < 7; i++) {
		(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"c%d\"%s}}", i,
				i == 6 ? ",\"finalizers\":[\"example.com/x\"]" : "");
		deletion_expect("POST", CM("pages"), body, 201, "");
	}
	deletion_expect("DELETE", CM("pages") "?limit=2&dryRun=All", "", 200, "\"status\":\"Success\"");
	deletion_expect("DELETE", CM("pages") "?limit=2", "", 200, "\"status\":\"Success\"");
	deletion_expect("GET", CM("pages") "/c1", "", 404, "");
	deletion_expect("GET", CM("pages") "/c2", "", 200, "");
	text = deletion_ask("GET", CM("pages") "?limit=1", "", &code);
	token = strstr(text, "\"continue\":\"");
	assert_non_null(token);
	token += strlen("\"continue\":\"");
	(void) snprintf(path, sizeof path, CM("pages") "?limit=1&continue=%.*s", (int) strcspn(token, "\""),
			token);
	free(text);
	deletion_expect("DELETE", path, "", 200, "\"status\":\"Success\"");
	deletion_expect("GET", CM("pages") "/c2", "", 200, "");
	deletion_expect("GET", CM("pages") "/c3", "", 404, "");
	deletion_expect("GET", CM("pages") "/c4", "", 200, "");
	deletion_expect("DELETE", CM("pages") "?labelSelector=a%3Db", "", 200, "");
	deletion_expect("GET", CM("pages") "/c4", "", 200, "");
	/* The query asks for a finalizer, the body does not. */
	deletion_expect("DELETE", CM("pages") "/c4?propagationPolicy=Foreground",
			"{\"propagationPolicy\":\"Background\"}", 200, "\"status\":\"Success\"");
	deletion_expect("GET", CM("pages") "/c4", "", 404, "");
	deletion_expect("DELETE", CM("pages") "", "", 200, "\"status\":\"Success\"");
	deletion_expect("GET", CM("pages") "/c2", "", 404, "");
	deletion_expect("GET", CM("pages") "/c6", "", 200, "\"deletionTimestamp\"");
	deletion_expect("PATCH", CM("pages") "/c6", "{\"metadata\":{\"finalizers\":null}}", 200, "");
	deletion_expect_empty(CM("pages"));
}

static void r667_a_bound_pod_waits_for_its_agent(void **state)
{
	(void) state;
	deletion_make_namespace("grace");
	deletion_expect("POST", NS "/grace/pods",
			"{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n\","
			"\"terminationGracePeriodSeconds\":3600}}",
			201, "");
	deletion_expect(
		"POST", NS "/grace/pods",
		"{\"metadata\":{\"name\":\"free\"},\"spec\":{\"terminationGracePeriodSeconds\":3600}}", 201,
		"");
	deletion_expect("DELETE", NS "/grace/pods/free", "", 200, "\"kind\":\"Pod\"");
	deletion_expect("GET", NS "/grace/pods/free", "", 404, "");
	deletion_expect("DELETE", NS "/grace/pods/p", "", 200, "\"deletionGracePeriodSeconds\":3600");
	deletion_expect("DELETE", NS "/grace/pods/p?gracePeriodSeconds=4000", "", 200,
			"\"deletionGracePeriodSeconds\":3600");
	deletion_expect("DELETE", NS "/grace/pods/p?gracePeriodSeconds=1800", "", 200,
			"\"deletionGracePeriodSeconds\":1800");
	deletion_expect("GET", NS "/grace/pods/p", "", 200, "\"generation\":2");
	deletion_expect("DELETE", NS "/grace/pods/p", "{\"gracePeriodSeconds\":0}", 200, "\"kind\":\"Pod\"");
	deletion_expect("GET", NS "/grace/pods/p", "", 404, "");
}

/* ---- Namespaces ---- */

static void a_namespace_goes_with_its_content(void **state)
{
	(void) state;
	deletion_make_namespace("full");
	for (int i = 0; i < 300; i++) {
		char body[64];

		(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"c%d\"}}", i);
		deletion_expect("POST", CM("full"), body, 201, "");
	}
	deletion_expect("POST", NS "/full/pods", "{\"metadata\":{\"name\":\"p\"},\"spec\":{}}", 201, "");
	deletion_expect("POST", "/apis/apps/v1/namespaces/full/deployments",
			"{\"metadata\":{\"name\":\"d\"}}", 201, "");
	deletion_expect("DELETE", NS "/full", "", 200, "\"phase\":\"Terminating\"");
	deletion_expect_gone(NS, "full");
	deletion_expect_empty(CM("full"));
	deletion_expect_empty(NS "/full/pods");
	deletion_expect_empty("/apis/apps/v1/namespaces/full/deployments");
	deletion_make_namespace("full");
	deletion_expect_empty(CM("full"));
}

static void a_namespace_waits_for_finalizers_and_says_so(void **state)
{
	char *text;

	(void) state;
	deletion_make_namespace("held");
	deletion_expect("POST", CM("held"),
			"{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"example.com/x\"]}}", 201, "");
	deletion_expect("POST", CM("held"), "{\"metadata\":{\"name\":\"b\"}}", 201, "");
	deletion_expect("DELETE", NS "/held", "", 200, "\"phase\":\"Terminating\"");
	text = deletion_watch_until(
		NS, "held", 0,
		"Some content in the namespace has finalizers remaining: example.com/x in 1 "
		"resource instances");
	assert_non_null(strstr(text, "\"NamespaceContentRemaining\""));
	assert_non_null(strstr(text, "Some resources are remaining: configmaps. has 1 resource instances"));
	free(text);
	deletion_expect("POST", CM("held"), "{\"metadata\":{\"name\":\"late\"}}", 403,
			"configmaps \\\"late\\\" is forbidden: unable to create new content in namespace "
			"held because "
			"it is being terminated");
	deletion_expect("POST", CM("held"), "{\"metadata\":{\"generateName\":\"late-\"}}", 403,
			"\"reason\":\"NamespaceTerminating\"");
	deletion_expect("DELETE", NS "/held", "", 200, "\"phase\":\"Terminating\"");
	deletion_expect("PATCH", CM("held") "/a", "{\"metadata\":{\"finalizers\":null}}", 200, "");
	deletion_expect_gone(NS, "held");
}

/* An undecodable object is in no list, but must not remain. rules: O-20 */
static void a_namespace_waits_for_what_cannot_be_decoded(void **state)
{
	struct vd_bytes key = vd_bytes_of("/registry/configmaps/unreadable/c");

	(void) state;
	deletion_make_namespace("unreadable");
	deletion_expect("POST", CM("unreadable"), "{\"metadata\":{\"name\":\"c\"}}", 201, "");
	assert_status(vd_store_put_wait(deletion_server.store, key, vd_bytes_of("junk"), NULL, NULL), VD_OK);
	deletion_expect("DELETE", NS "/unreadable", "", 200, "");
	free(deletion_watch_until(
		NS, "unreadable", 0,
		"configmaps: the object stored under /registry/configmaps/unreadable/c cannot be decoded"));
	assert_status(vd_store_delete_wait(deletion_server.store, key, VD_BYTES_NONE, NULL, NULL, NULL),
		      VD_OK);
	deletion_expect_gone(NS, "unreadable");
}

static void some_namespaces_stay(void **state)
{
	(void) state;
	deletion_expect("DELETE", NS "/default", "", 403,
			"namespaces \\\"default\\\" is forbidden: this namespace may not be deleted");
	deletion_expect("DELETE", NS "/kube-system?dryRun=All", "", 403, "this namespace may not be deleted");
	deletion_expect("DELETE", NS, "", 405, "MethodNotAllowed");
	deletion_expect("GET", "/api/v1", "", 200, "\"name\":\"namespaces/finalize\"");
	deletion_expect("DELETE", NS "/absent", "", 404, "namespaces \\\"absent\\\" not found");
}

static void finalize_has_its_own_door(void **state)
{
	(void) state;
	deletion_make_namespace("door");
	deletion_expect(
		"PUT", NS "/door",
		"{\"metadata\":{\"name\":\"door\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"finalizers\":["
		"\"example.com/mine\"]}}",
		200, "\"spec\":{\"finalizers\":[\"kubernetes\"]}");
	deletion_expect(
		"PUT", NS "/door/finalize",
		"{\"metadata\":{\"name\":\"door\"},\"spec\":{\"finalizers\":[\"kubernetes\",\"example.com/"
		"mine\"]},\"status\":{\"phase\":\"x\"}}",
		200, "\"status\":{\"phase\":\"Active\"}");
	deletion_expect("PATCH", NS "/door/finalize", "{}", 405, "");
	deletion_expect("DELETE", NS "/door", "", 200,
			"\"finalizers\":[\"kubernetes\",\"example.com/mine\"]");
	/* The server has done its part; the other finalizer belongs to the client. */
	free(deletion_watch_until(NS, "door", 0, "\"spec\":{\"finalizers\":[\"example.com/mine\"]}"));
	deletion_expect("DELETE", NS "/door", "", 200, "Terminating");
	deletion_expect("PUT", NS "/door/finalize", "{\"metadata\":{\"name\":\"door\"},\"spec\":{}}", 200,
			"\"name\":\"door\"");
	deletion_expect("GET", NS "/door", "", 404, "");
}

/* No object may outlive its namespace: creates race with the deletion, from many connections. */
static void nothing_survives_its_namespace(void **state)
{
	enum { WRITERS = 8 };

	(void) state;
	for (int round = 0; round < 10; round++) {
		int  fds[WRITERS], deleter;
		char body[64];

		deletion_make_namespace("race");
		for (int i = 0; i < WRITERS; i++)
			fds[i] = http_open(deletion_server.port, 0);
		deleter = http_open(deletion_server.port, 0);
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
		deletion_expect_gone(NS, "race");
		deletion_expect_empty(CM("race"));
	}
}

/* A store that can hold a transaction back before it is made. */
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

/* A create that has read its namespace does not commit if the namespace is gone by then, or was replaced by
 * another one of the same name. */
static void a_create_that_comes_too_late_is_refused(void **state)
{
	struct vd_store_ops ops = *deletion_server.store->ops;
	char		   *text;

	(void) state;
	held.ops = deletion_server.store->ops;
	ops.txn = hold_txn;
	deletion_stop_server();
	deletion_server.store->ops = &ops;
	deletion_loop_count = 16; /* one of them is blocked */
	deletion_start_server(false);
	for (int round = 0; round < 2; round++) {
		int fd;

		deletion_make_namespace("slow");
		held.is_holding = true;
		held.has_come = false;
		fd = http_open(deletion_server.port, 0);
		http_send_request(fd, "POST", CM("slow"), HTTP_JSON, "{\"metadata\":{\"name\":\"a\"}}");
		pthread_mutex_lock(&held.mutex);
		while (!held.has_come)
			pthread_cond_wait(&held.changed, &held.mutex);
		pthread_mutex_unlock(&held.mutex);
		deletion_expect("DELETE", NS "/slow", "", 200, "Terminating");
		deletion_expect_gone(NS, "slow");
		if (round == 1)
			deletion_make_namespace("slow");
		pthread_mutex_lock(&held.mutex);
		held.is_holding = false;
		pthread_cond_broadcast(&held.changed);
		pthread_mutex_unlock(&held.mutex);
		text = http_read_until(fd, NULL);
		(void) close(fd);
		assert_int_equal(atoi(text + 9),
				 round == 0 ? 404 : 201); /* the create is valid in the new namespace */
		free(text);
		if (round == 0)
			deletion_expect_empty(CM("slow"));
	}
	deletion_loop_count = 2;
	deletion_stop_server();
	deletion_server.store->ops = held.ops;
	deletion_start_server(false);
}

/* Derived from the objects only: a restarted server continues the deletions of the previous one. */
static void a_restart_goes_on(void **state)
{
	(void) state;
	deletion_stop_server();
	deletion_start_server(true);
	deletion_make_namespace("later");
	deletion_expect("POST", CM("later"), "{\"metadata\":{\"name\":\"a\"}}", 201, "");
	deletion_expect("DELETE", NS "/later", "", 200, "Terminating");
	deletion_expect("GET", CM("later") "/a", "", 200, "");
	deletion_stop_server();
	deletion_start_server(false);
	deletion_expect_gone(NS, "later");
	deletion_expect_empty(CM("later"));
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
	};
	return cmocka_run_group_tests(tests, deletion_set_up, deletion_tear_down);
}
