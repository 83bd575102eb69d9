/* Responses to reads and writes of one object that are those of another one. */
#include "actor_sim.h"
#include "cacher_fixture.h"
#include "kube_peer.h"
#include "kube_world.h"

#define POD_X "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\",\"namespace\":\"a\"}}"
#define OBJECT(kind, namespace_name, name, revision)                                                         \
	"{\"kind\":\"" kind "\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name                        \
	"\",\"namespace\":\"" namespace_name "\",\"resourceVersion\":\"" revision "\"}}"

static const char *const wrong[] = {
	OBJECT("Node", "a", "x", "900"),
	OBJECT("Pod", "a", "y", "900"),
	OBJECT("Pod", "b", "x", "900"),
	OBJECT("Pod", "a", "x", "0"),
	OBJECT("Pod", "a", "x", ""),
	"{\"kind\":\"Pod\"}",
	"<html>",
};

static void a_read_of_another_object_is_an_error(void **state)
{
	for (size_t i = 0; i <= VDI_ARRAY_SIZE(wrong); i++) {
		bool		   is_wrong = i < VDI_ARRAY_SIZE(wrong);
		struct kube_world  world;
		struct kube_answer answer;

		kube_world_open(&world, 3);
		kube_peer_put(world.peer, "pods", "a", "x", "");
		kube_peer_set_document(world.peer, "/api/v1/namespaces/a/pods/x",
				       is_wrong ? wrong[i] : OBJECT("Pod", "a", "x", "900"));
		answer = kube_world_range(&world, KUBE_PREFIX "a/x", strlen(KUBE_PREFIX "a/x"), "", 0, 0);
		assert_status(answer.status, is_wrong ? VD_UNAVAILABLE : VD_OK);
		if (is_wrong)
			assert_true(answer.error.message[0]);
		else
			assert_int_equal(answer.revision, 900);
		/* The else branch. */
		answer = kube_world_txn(&world, KUBE_PREFIX "a/x", 0, POD_X);
		assert_status(answer.status, is_wrong ? VD_UNAVAILABLE : VD_OK);
		kube_world_close(&world);
	}
}

/* The write may have been applied: its outcome is unknown. */
static void a_write_that_returns_another_object_is_an_error(void **state)
{
	for (size_t i = 0; i <= VDI_ARRAY_SIZE(wrong); i++) {
		bool		  is_wrong = i < VDI_ARRAY_SIZE(wrong);
		vd_status	  expected = is_wrong ? VD_UNAVAILABLE : VD_OK;
		struct kube_world world;
		vd_rev		  revision;

		kube_world_open(&world, 3);
		world.peer->write_answer = is_wrong ? wrong[i] : OBJECT("Pod", "a", "x", "900");
		assert_status(kube_world_txn(&world, KUBE_PREFIX "a/x", 0, POD_X).status, expected);
		revision = kube_peer_find(world.peer, "pods", "a", "x");
		assert_true(revision > 0);
		assert_status(kube_world_txn(&world, KUBE_PREFIX "a/x", revision, POD_X).status, expected);
		revision = kube_peer_find(world.peer, "pods", "a", "x");
		assert_status(kube_world_txn(&world, KUBE_PREFIX "a/x", revision, NULL).status, expected);
		assert_int_equal(kube_peer_find(world.peer, "pods", "a", "x"), 0);
		kube_world_close(&world);
	}
}

/* An older revision than the one that was compared; a Status, which only a deletion may return. */
static void what_only_some_writes_may_return(void **state)
{
	static const char  status[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
				      "\"status\":\"Success\"}";
	struct kube_world  world;
	struct kube_answer answer;
	vd_rev		   revision;

	kube_world_open(&world, 3);
	for (int i = 0; i < 5; i++)
		revision = kube_peer_put(world.peer, "pods", "a", "x", "");
	world.peer->write_answer = OBJECT("Pod", "a", "x", "2");
	assert_true(revision > 2);
	answer = kube_world_txn(&world, KUBE_PREFIX "a/x", revision, POD_X);
	assert_status(answer.status, VD_UNAVAILABLE);
	assert_non_null(strstr(answer.error.message, "revision 2 after"));
	world.peer->write_answer = status;
	assert_status(kube_world_txn(&world, KUBE_PREFIX "a/x", -1, POD_X).status, VD_UNAVAILABLE);
	assert_status(kube_world_txn(&world, KUBE_PREFIX "a/x", -1, NULL).status, VD_OK);
	kube_world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_of_another_object_is_an_error),
		cmocka_unit_test(a_write_that_returns_another_object_is_an_error),
		cmocka_unit_test(what_only_some_writes_may_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
