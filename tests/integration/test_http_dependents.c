/* The garbage collector over HTTP, with the server in this process: dependents of deleted owners, and a model
 * of the objects that must remain. */
#include <unistd.h>

#include "http_deletion.h"
#include "http_fixture.h"

/* ---- Dependents ---- */

#define RS(name) "/apis/apps/v1/namespaces/" name "/replicasets"
#define DP(name) "/apis/apps/v1/namespaces/" name "/deployments"

/* Creates an object and returns its uid; owners is the text of its references, "" for none. */
static void make(const char *collection, const char *name, const char *owners, char uid[64])
{
	char  body[2048];
	char *text, *at;
	int   code;

	(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[%s]}}", name,
			owners);
	text = deletion_ask("POST", collection, body, &code);
	if (code != 201)
		print_message("%s: %s\n", body, text);
	assert_int_equal(code, 201);
	at = strstr(text, "\"uid\":\"");
	while (strstr(at + 1, "\"uid\":\"")) /* its own uid is after those of its owners */
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

	deletion_make_namespace(namespace_name);
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
	deletion_expect("DELETE", DP("back") "/d", "{\"propagationPolicy\":\"Background\"}", 200,
			"\"status\":\"Success\"");
	deletion_expect("GET", DP("back") "/d", "", 404, "");
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 3; j++) {
			char name[32];

			(void) snprintf(name, sizeof name, "p%d-%d", i, j);
			deletion_expect_gone(NS "/back/pods", name);
		}
	deletion_expect_empty(RS("back"));
}

static void foreground_dependents_go_first(void **state)
{
	int   fd, code;
	char  path[128];
	char *text;

	(void) state;
	make_tree("front", true);
	/* When a watch reports the owner's deletion, none of its dependents exists. */
	fd = http_open(deletion_server.port, 0);
	(void) snprintf(path, sizeof path, DP("front") "?watch=1&resourceVersion=%lld",
			deletion_present_revision(DP("front")));
	http_send_request(fd, "GET", path, HTTP_JSON, "");
	deletion_expect("DELETE", DP("front") "/d", "{\"propagationPolicy\":\"Foreground\"}", 200,
			"\"finalizers\":[\"foregroundDeletion\"]");
	free(http_read_until(fd, "\"type\":\"DELETED\""));
	(void) close(fd);
	deletion_expect_empty(NS "/front/pods");
	deletion_expect_empty(RS("front"));
	text = deletion_ask("GET", DP("front") "/d", "", &code);
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
	deletion_expect("DELETE", DP("orphans") "/d", "{\"propagationPolicy\":\"Orphan\"}", 200,
			"\"finalizers\":[\"orphan\"]");
	deletion_expect_gone(DP("orphans"), "d");
	for (int i = 0; i < 2; i++) {
		(void) snprintf(path, sizeof path, RS("orphans") "/rs%d", i);
		text = deletion_ask("GET", path, "", &code);
		assert_int_equal(code, 200);
		assert_null(strstr(text, "ownerReferences"));
		free(text);
	}
	deletion_expect("GET", NS "/orphans/pods/p0-0", "", 200, "ownerReferences");
	deletion_expect("GET", NS "/orphans/pods/p1-2", "", 200, "ownerReferences");
}

static void one_owner_that_lives_is_enough(void **state)
{
	char	  a[64], b[64], c[64], owners[1024];
	long long revision;

	(void) state;
	deletion_make_namespace("several");
	make(CM("several"), "a", "", a);
	make(CM("several"), "b", "", b);
	(void) snprintf(owners, sizeof owners, "%s,%s", owned_by("v1", "ConfigMap", "a", a, false),
			owned_by("v1", "ConfigMap", "b", b, false));
	make(CM("several"), "c", owners, c);
	revision = deletion_present_revision(CM("several"));
	deletion_expect("DELETE", CM("several") "/a", "", 200, "Success");
	free(deletion_watch_until(CM("several"), "c", revision,
				  "\"type\":\"MODIFIED\"")); /* the reference to a was removed */
	deletion_expect("GET", CM("several") "/c", "", 200, b);
	deletion_expect("DELETE", CM("several") "/b", "", 200, "Success");
	deletion_expect_gone(CM("several"), "c");
}

static void an_owner_elsewhere_is_none(void **state)
{
	char a[64], uid[64];

	(void) state;
	deletion_make_namespace("here");
	deletion_make_namespace("there");
	make(CM("there"), "a", "", a);
	make(CM("here"), "b", owned_by("v1", "ConfigMap", "a", a, false), uid);
	deletion_expect_gone(CM("here"), "b");
	deletion_expect("GET", CM("there") "/a", "", 200, "");
	/* An owner that never existed. */
	make(CM("here"), "c",
	     owned_by("v1", "ConfigMap", "none", "5e1f2f7e-0000-4000-8000-000000000000", false), uid);
	deletion_expect_gone(CM("here"), "c");
	/* An object of the same name with another uid. */
	make(CM("here"), "a", "", uid);
	make(CM("here"), "d", owned_by("v1", "ConfigMap", "a", a, false), uid);
	deletion_expect_gone(CM("here"), "d");
	/* A cluster-scoped object cannot refer to a namespaced owner, and an owner of an unknown kind cannot
	 * be checked: both objects stay. */
	make("/api/v1/persistentvolumes", "v", owned_by("v1", "ConfigMap", "a", a, false), uid);
	make(CM("here"), "e",
	     owned_by("example.com/v1", "Thing", "t", "5e1f2f7e-0000-4000-8000-000000000001", false), uid);
	/* An owner outside of the namespace. */
	make("/api/v1/persistentvolumes", "w", "", a);
	make(CM("here"), "f", owned_by("v1", "PersistentVolume", "w", a, false), uid);
	make(CM("here"), "g",
	     owned_by("v1", "PersistentVolume", "w", "5e1f2f7e-0000-4000-8000-000000000002", false), uid);
	deletion_expect_gone(CM("here"), "g");
	deletion_expect("GET", CM("here") "/f", "", 200, "");
	deletion_expect("DELETE", "/api/v1/persistentvolumes/w", "", 200, "");
	deletion_expect_gone(CM("here"), "f");
	deletion_expect("GET", "/api/v1/persistentvolumes/v", "", 200, "");
	deletion_expect("GET", CM("here") "/e", "", 200, "");
}

/* a blocks b, b blocks a. */
static void a_circle_ends(void **state)
{
	char a[64], b[64], body[512];

	(void) state;
	deletion_make_namespace("circle");
	make(CM("circle"), "a", "", a);
	make(CM("circle"), "b", owned_by("v1", "ConfigMap", "a", a, true), b);
	(void) snprintf(body, sizeof body, "{\"metadata\":{\"ownerReferences\":[%s]}}",
			owned_by("v1", "ConfigMap", "b", b, true));
	deletion_expect("PATCH", CM("circle") "/a", body, 200, "");
	deletion_expect("DELETE", CM("circle") "/a", "{\"propagationPolicy\":\"Foreground\"}", 200,
			"foregroundDeletion");
	deletion_expect_gone(CM("circle"), "a");
	deletion_expect_gone(CM("circle"), "b");
}

/* The next server collects, too, because the objects contain all that is needed. */
static void dependents_of_what_went_before_the_start_go(void **state)
{
	(void) state;
	deletion_stop_server();
	deletion_start_server(true);
	make_tree("before", true);
	deletion_expect("DELETE", DP("before") "/d", "{\"propagationPolicy\":\"Background\"}", 200,
			"Success");
	deletion_expect("GET", RS("before") "/rs0", "", 200, "");
	deletion_stop_server();
	deletion_start_server(false);
	deletion_expect_gone(RS("before"), "rs0");
	deletion_expect_gone(NS "/before/pods", "p1-2");
	deletion_expect_gone(NS "/before/pods", "p0-0");
}

/* References are removed by uid. A wrong one with the uid of an existing owner must not remove the right
 * one. */
static void an_owner_that_is_named_twice_holds_as_long_as_it_is_there(void **state)
{
	char	  owner[64], other[64], uid[64], owners[1024];
	char	 *text;
	long long revision;

	(void) state;
	deletion_make_namespace("twice");
	make(CM("twice"), "owner", "", owner);
	make(CM("twice"), "other", "", other);
	(void) snprintf(owners, sizeof owners, "%s,%s,%s", owned_by("v1", "ConfigMap", "owner", owner, false),
			owned_by("v1", "ConfigMap", "nobody", owner, false),
			owned_by("v1", "ConfigMap", "other", other, false));
	make(CM("twice"), "owned", owners, uid);
	revision = deletion_present_revision(CM("twice"));
	deletion_expect("DELETE", CM("twice") "/other", "", 200, "");
	text = deletion_watch_until(CM("twice"), "owned", revision, "\"type\":\"MODIFIED\"");
	assert_non_null(strstr(strstr(text, "\"type\":\"MODIFIED\""), owner));
	free(text);
	deletion_expect("DELETE", CM("twice") "/owner", "", 200, "");
	deletion_expect_gone(CM("twice"), "owned");
}

/* A pod whose node does not exist is removed when its grace period is over; one whose node exists waits for
 * it. */
static void r667_pods_of_absent_nodes_go(void **state)
{
	(void) state;
	deletion_make_namespace("agents");
	deletion_expect("POST", "/api/v1/nodes", "{\"metadata\":{\"name\":\"present\"}}", 201, "");
	deletion_expect("POST", NS "/agents/pods",
			"{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"absent\","
			"\"terminationGracePeriodSeconds\":1}}",
			201, "");
	deletion_expect("POST", NS "/agents/pods",
			"{\"metadata\":{\"name\":\"q\"},\"spec\":{\"nodeName\":\"present\","
			"\"terminationGracePeriodSeconds\":1}}",
			201, "");
	deletion_expect("DELETE", NS "/agents/pods/p", "", 200, "\"deletionGracePeriodSeconds\":1");
	deletion_expect("DELETE", NS "/agents/pods/q", "", 200, "\"deletionGracePeriodSeconds\":1");
	deletion_expect_gone(NS "/agents/pods", "p");
	deletion_expect("GET", NS "/agents/pods/q", "", 200, "");
	deletion_expect("DELETE", NS "/agents/pods/q?gracePeriodSeconds=0", "", 200, "");
	deletion_expect("GET", NS "/agents/pods/q", "", 404, "");
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

/* Computes the final state: objects with owners, none of which exists, are deleted. */
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

/* Owners are deleted in all ways while the server is stopped and restarted; the final state is exactly the
 * model's. */
static void r667_the_collector_against_a_model(void **state)
{
	static const char *const policies[] = { "Background", "Foreground", "Background" };
	uint64_t		 seed = 0x5eed + (uint64_t) getpid();
	struct model		 model[OBJECTS];

	(void) state;
	print_message("seed %llu\n", (unsigned long long) seed);
	for (int round = 0; round < ROUNDS; round++) {
		deletion_make_namespace("forest");
		make_forest(model, &seed);
		for (int i = 0; i < 6; i++) {
			int  victim = (int) (next_random(&seed) % OBJECTS), code;
			char path[128], body[64];

			(void) snprintf(path, sizeof path, CM("forest") "/o%d", victim);
			(void) snprintf(body, sizeof body, "{\"propagationPolicy\":\"%s\"}",
					policies[next_random(&seed) % 3]);
			free(deletion_ask("DELETE", path, body, &code));
			assert_true(code == 200 || code == 404);
			model[victim].exists = false;
			if (i == 2) {
				deletion_stop_server();
				deletion_start_server(round % 2);
			}
		}
		deletion_stop_server();
		deletion_start_server(false);
		settle_model(model);
		for (int i = 0; i < OBJECTS; i++) {
			char name[16], path[128];

			(void) snprintf(name, sizeof name, "o%d", i);
			(void) snprintf(path, sizeof path, CM("forest") "/o%d", i);
			if (model[i].exists)
				deletion_expect("GET", path, "", 200, model[i].uid);
			else
				deletion_expect_gone(CM("forest"), name);
		}
		for (int i = 0; i < OBJECTS; i++) { /* nothing was deleted meanwhile either */
			char path[128];

			(void) snprintf(path, sizeof path, CM("forest") "/o%d", i);
			if (model[i].exists)
				deletion_expect("GET", path, "", 200, model[i].uid);
		}
		deletion_expect("DELETE", NS "/forest", "", 200, "Terminating");
		deletion_expect_gone(NS, "forest");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	return cmocka_run_group_tests(tests, deletion_set_up, deletion_tear_down);
}
