/* A source over a peer: reads, writes, progress, health, and its end. */
#include "actor_sim.h"
#include "cacher_fixture.h"
#include "cacher_state.h"
#include "kube_peer.h"
#include "kube_source.h"
#include "kube_world.h"

/* rules: K-501, K-508 */
static void a_cacher_follows_the_server(void **state)
{
	struct kube_world world;

	for (unsigned mode = 0; mode < 3; mode++) {
		kube_world_open(&world, mode);
		world.peer->watch_list = (enum kube_peer_watch_list) mode;
		kube_peer_put(world.peer, "pods", "a", "x", "\"spec\":{\"unknown\":[1,2]}");
		kube_peer_put(world.peer, "pods", "b", "y", "");
		kube_world_open_cacher(&world);
		kube_world_settle(&world);
		assert_true(kube_world_is_equal(&world));
		kube_peer_put(world.peer, "pods", "a", "x", "\"spec\":{}");
		kube_peer_delete(world.peer, "pods", "b", "y");
		kube_peer_put(world.peer, "pods", "c", "z", "");
		vdi_sim_advance(world.env, VD_SECONDS(1));
		assert_true(kube_world_is_equal(&world));
		assert_int_equal(world.cacher->reflector.relists, 0);
		assert_int_equal(world.peer->lists, mode ? 1 : 0);
		assert_int_equal(world.peer->watch_lists, mode ? mode - 1 : 1);
		kube_world_close(&world);
	}
}

#define POD_X                                                                                                \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\",\"namespace\":\"a\"},"         \
	"\"spec\":1}"

static void ranges_are_lists_of_the_server(void **state)
{
	struct kube_world  world;
	struct kube_answer answer;
	char		   key[300], name[16];
	size_t		   seen = 0;
	vd_rev		   revision, old;

	kube_world_open(&world, 1);
	for (int i = 0; i < 9; i++) {
		snprintf(name, sizeof name, "p%d", i);
		kube_peer_put(world.peer, "pods", i < 5 ? "a" : "b", name, "");
	}
	/* The current revision. */
	answer = kube_world_range(&world, "/registry/pods", 14, "", 0, 1);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.revision, world.peer->revision);
	assert_int_equal(answer.count, 0);
	/* One object. */
	answer = kube_world_range(&world, KUBE_PREFIX "a/p1", strlen(KUBE_PREFIX "a/p1"), "", 0, 0);
	assert_int_equal(answer.count, 1);
	assert_string_equal(answer.last, KUBE_PREFIX "a/p1");
	answer = kube_world_range(&world, KUBE_PREFIX "a/none", strlen(KUBE_PREFIX "a/none"), "", 0, 0);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.count, 0);
	/* Everything, a namespace, and pages that continue by key at the first page's revision. */
	assert_int_equal(
		kube_world_range(&world, KUBE_PREFIX, strlen(KUBE_PREFIX), KUBE_PREFIX_END, 0, 0).count, 9);
	assert_int_equal(
		kube_world_range(&world, KUBE_PREFIX "a/", strlen(KUBE_PREFIX "a/"), KUBE_PREFIX "a0", 0, 0)
			.count,
		5);
	snprintf(key, sizeof key, KUBE_PREFIX);
	old = world.peer->revision;
	for (revision = 0;;) {
		size_t size = strlen(key) + (seen ? 1 : 0); /* the key after the last one */

		answer = kube_world_range(&world, key, size, KUBE_PREFIX_END, revision, 2);
		assert_status(answer.status, VD_OK);
		assert_int_equal(answer.revision, old);
		seen += answer.count;
		revision = answer.revision;
		if (!answer.more)
			break;
		snprintf(key, sizeof key, "%s", answer.last);
		kube_peer_put(world.peer, "pods", "c", "later", "");
	}
	assert_int_equal(seen, 9);
	assert_int_equal(world.peer->pages, 4);
	/* An arbitrary start, at an old revision. */
	answer = kube_world_range(&world, KUBE_PREFIX "a/p3", strlen(KUBE_PREFIX "a/p3"), KUBE_PREFIX_END,
				  old, 0);
	assert_int_equal(answer.count, 6);
	answer = kube_world_range(&world, KUBE_PREFIX, strlen(KUBE_PREFIX), KUBE_PREFIX_END,
				  world.peer->revision + 5, 0);
	assert_status(answer.status, VD_TOO_LARGE_REVISION);
	kube_peer_compact(world.peer);
	answer = kube_world_range(&world, KUBE_PREFIX, strlen(KUBE_PREFIX), KUBE_PREFIX_END, old, 0);
	assert_status(answer.status, VD_EXPIRED);
	kube_peer_remove_resource(world.peer, "pods");
	answer = kube_world_range(&world, KUBE_PREFIX, strlen(KUBE_PREFIX), KUBE_PREFIX_END, 0, 0);
	assert_status(answer.status, VD_UNAVAILABLE);
	kube_world_close(&world);
}

/* A range that is not exactly that of a namespace begins in it and goes on behind it. */
static void a_range_behind_a_namespace_has_what_follows(void **state)
{
	static const struct {
		const char *end;
		size_t	    count;
	} cases[] = { { "a0", 2 }, { "a1", 3 }, { "b0", 4 }, { "a00", 3 }, { "a/q", 1 } };
	struct kube_world world;

	kube_world_open(&world, 1);
	kube_peer_put(world.peer, "pods", "a", "p", "");
	kube_peer_put(world.peer, "pods", "a", "r", "");
	kube_peer_put(world.peer, "pods", "a0", "p", "");
	kube_peer_put(world.peer, "pods", "b", "p", "");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		char		   end[64];
		struct kube_answer answer;

		snprintf(end, sizeof end, KUBE_PREFIX "%s", cases[i].end);
		answer = kube_world_range(&world, KUBE_PREFIX "a/", strlen(KUBE_PREFIX "a/"), end, 0, 0);
		assert_status(answer.status, VD_OK);
		assert_int_equal(answer.count, cases[i].count);
	}
	kube_world_close(&world);
}

static void one_request_answers_all_that_ask_for_the_revision(void **state)
{
	struct kube_world	world;
	struct kube_answer	answers[10] = { 0 };
	struct vd_range_request request = { .key = { "/registry/pods", 14 }, .limit = 1 };

	kube_world_open(&world, 1);
	for (size_t i = 0; i < 10; i++)
		assert_status(vd_store_range(world.store, &request, kube_answer_range, &answers[i]), VD_OK);
	assert_true(vdi_sim_run_until(world.env, kube_answer_has_come, &answers[9], VD_SECONDS(10)));
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(answers[i].revision, world.peer->revision);
	assert_int_equal(world.peer->current, 1);
	kube_world_close(&world);
}

static void writes_become_requests_with_preconditions(void **state)
{
	struct kube_world  world;
	struct kube_answer answer;
	vd_rev		   revision;

	kube_world_open(&world, 3);
	answer = kube_world_txn(&world, KUBE_PREFIX "a/x", 0, POD_X);
	assert_true(answer.succeeded);
	revision = answer.revision;
	assert_int_equal(revision, kube_peer_find(world.peer, "pods", "a", "x"));
	/* It exists: the else branch returns it, as it would be stored. */
	answer = kube_world_txn(&world, KUBE_PREFIX "a/x", 0, POD_X);
	assert_false(answer.succeeded);
	assert_int_equal(answer.total, 1);
	assert_string_equal(answer.last, POD_X);
	answer = kube_world_txn(&world, KUBE_PREFIX "a/x", revision, POD_X);
	assert_true(answer.succeeded);
	assert_true(answer.revision > revision);
	/* An older revision, for a put and a delete. */
	assert_false(kube_world_txn(&world, KUBE_PREFIX "a/x", revision, POD_X).succeeded);
	assert_false(kube_world_txn(&world, KUBE_PREFIX "a/x", revision, NULL).succeeded);
	assert_true(kube_world_txn(&world, KUBE_PREFIX "a/x", answer.revision, NULL).succeeded);
	assert_int_equal(kube_peer_find(world.peer, "pods", "a", "x"), 0);
	answer = kube_world_txn(&world, KUBE_PREFIX "a/x", 7, NULL);
	assert_false(answer.succeeded);
	assert_int_equal(answer.total, 0);
	/* Without a condition. */
	assert_true(kube_world_txn(&world, KUBE_PREFIX "a/x", -1, POD_X).succeeded);
	assert_true(kube_world_txn(&world, KUBE_PREFIX "a/x", -1, POD_X).succeeded);
	assert_true(kube_world_txn(&world, KUBE_PREFIX "a/x", -1, NULL).succeeded);
	assert_int_equal(kube_peer_count(world.peer, "pods"), 0);
	kube_world_close(&world);
}

static bool has_written(void *arg)
{
	return ((struct kube_peer *) arg)->writes > 0;
}

/* The write is refused, and the object cannot be read: that is no answer about the object. */
static void a_failed_read_of_the_else_branch_fails_the_transaction(void **state)
{
	struct vd_compare     compare = { .target = VD_COMPARE_MOD,
					  .result = VD_COMPARE_EQUAL,
					  .key = vd_bytes_of(KUBE_PREFIX "a/x") };
	struct vd_op	      put = { .kind = VD_OP_PUT, .key = compare.key, .value = vd_bytes_of(POD_X) };
	struct vd_op	      get = { .kind = VD_OP_RANGE, .range = { .key = compare.key, .limit = 1 } };
	struct vd_txn_request request = { .compares = &compare,
					  .compare_count = 1,
					  .success = &put,
					  .success_count = 1,
					  .failure = &get,
					  .failure_count = 1 };
	struct kube_answer    answer = { 0 };
	struct kube_world     world;

	kube_world_open(&world, 3);
	kube_peer_put(world.peer, "pods", "a", "x", "");
	assert_status(kube_world_begin_txn(&world, &request, &answer), VD_OK);
	assert_true(vdi_sim_run_until(world.env, has_written, world.peer, VD_SECONDS(10)));
	world.peer->faults.refused = 100;
	assert_true(vdi_sim_run_until(world.env, kube_answer_has_come, &answer, VD_SECONDS(200)));
	assert_status(answer.status, VD_UNAVAILABLE);
	kube_world_close(&world);
}

/* A refusal that is no answer about the object: of a namespace that is not there, or of another writer. */
static void refused_writes_are_errors(void **state)
{
	static const struct {
		int	  code;
		unsigned  count;
		vd_rev	  expected; /* -1: no condition */
		bool	  is_delete;
		vd_status status;
	} rows[] = {
		{ 404, 1, 0, false, VD_UNAVAILABLE },  /* a create */
		{ 404, 2, -1, false, VD_UNAVAILABLE }, /* a put, and the create that follows it */
		{ 409, 1, -1, false, VD_CONFLICT },    { 409, 1, -1, true, VD_CONFLICT },
		{ 422, 1, 0, false, VD_INVALID },      { 404, 1, -1, true, VD_OK },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct kube_world  world;
		struct kube_answer answer;

		kube_world_open(&world, 3);
		world.peer->refuse_code = rows[i].code;
		world.peer->refuse_count = rows[i].count;
		answer = kube_world_txn(&world, KUBE_PREFIX "a/x", rows[i].expected,
					rows[i].is_delete ? NULL : POD_X);
		assert_status(answer.status, rows[i].status);
		assert_int_equal(answer.succeeded, rows[i].status == VD_OK);
		assert_int_equal(world.peer->refuse_count, 0);
		assert_int_equal(kube_peer_count(world.peer, "pods"), 0);
		kube_world_close(&world);
	}
}

/* A version can only be put into an object with metadata. */
static void a_value_without_metadata_is_not_sent(void **state)
{
	static const char *const values[] = { "",	 "[]",
					      "{}",	 "{\"metadata\":1}",
					      "no JSON", "{\"metadata\":{\"name\":\"x\"},\"spec\":" };
	struct kube_world	 world;

	kube_world_open(&world, 3);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(values); i++) {
		assert_true(kube_world_txn(&world, KUBE_PREFIX "a/x", 5, values[i]).status != VD_OK);
		assert_int_equal(world.peer->writes, 0);
	}
	kube_world_close(&world);
}

/* Those that may be over at the next attempt. */
static void failures_that_pass(void **state)
{
	static const vd_status statuses[] = { VD_OK, VD_UNAVAILABLE, VD_TIMEOUT, VD_TOO_BIG, VD_NOMEM };
	static const struct {
		int	    code;
		const char *passing; /* by status */
	} rows[] = {
		{ 0, " ++  " },	  { 199, "     " }, { 200, " ++  " }, { 299, " ++  " }, { 300, "     " },
		{ 404, "     " }, { 429, "+++++" }, { 500, "+++++" }, { 501, "     " }, { 502, "+++++" },
		{ 503, "+++++" }, { 504, "+++++" }, { 505, "     " },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (size_t k = 0; k < VDI_ARRAY_SIZE(statuses); k++)
			assert_int_equal(vdi_kube_fetch_is_passing(rows[i].code, statuses[k]),
					 rows[i].passing[k] == '+');
}

/* One put or delete, under one condition about the version of its object, and a read of it. */
static void other_transactions_are_unsupported(void **state)
{
	const struct vd_bytes	    x = vd_bytes_of(KUBE_PREFIX "a/x"), y = vd_bytes_of(KUBE_PREFIX "a/y");
	const struct vd_compare	    good_compare = { .target = VD_COMPARE_MOD, .key = x, .number = 5 };
	const struct vd_op	    good_op = { .kind = VD_OP_PUT, .key = x, .value = vd_bytes_of(POD_X) };
	const struct vd_op	    good_get = { .kind = VD_OP_RANGE, .range = { .key = x, .limit = 1 } };
	struct vd_compare	    compares[2];
	struct vd_op		    ops[2], gets[2];
	const struct vd_txn_request good = { compares, 1, ops, 1, gets, 1 };
	struct kube_world	    world;

	kube_world_open(&world, 3);
	for (unsigned i = 0; i <= 24; i++) {
		struct kube_answer    answer = { 0 };
		struct vd_txn_request request = good;

		compares[0] = compares[1] = good_compare;
		ops[0] = ops[1] = good_op;
		gets[0] = gets[1] = good_get;
		switch (i) {
		case 0: ops[0].lease = 5; break;
		case 1: ops[1].key = y, request.success_count = 2; break;
		case 2: request.success_count = 0; break;
		case 3: request.compare_count = 2; break;
		case 4: request.failure_count = 2; break;
		case 5: ops[0].ignore_value = true, ops[0].value.size = 0; break;
		case 6: ops[0].ignore_lease = true; break;
		case 7: ops[0].previous = true; break;
		case 8: ops[0] = (struct vd_op) { .kind = VD_OP_DELETE, .key = x, .range_end = y }; break;
		case 9: ops[0] = good_get; break;
		case 10: compares[0].result = VD_COMPARE_LESS; break;
		case 11: compares[0].result = VD_COMPARE_NOT_EQUAL; break;
		case 12: compares[0].key = y; break;
		case 13: compares[0].range_end = y; break;
		case 14: compares[0].target = VD_COMPARE_CREATE; break;
		case 15: compares[0].target = VD_COMPARE_VERSION; break;
		case 16: compares[0].target = VD_COMPARE_LEASE, compares[0].number = 0; break;
		case 17: compares[0].target = VD_COMPARE_VALUE, compares[0].number = 0; break;
		case 18: ops[0].kind = VD_OP_DELETE, ops[0].value.size = 0, compares[0].number = 0; break;
		case 19: gets[0] = good_op; break;
		case 20: gets[0].range.revision = 3; break;
		case 21: gets[0].range.key = y; break;
		case 22: gets[0].range.range_end = y; break;
		default: break;
		}
		if (i == 23)
			request.compare_count = request.failure_count = 0;
		else if (i == 24)
			compares[0].target = VD_COMPARE_CREATE, compares[0].number = 0;
		if (i < 23) {
			assert_status(kube_world_begin_txn(&world, &request, &answer), VD_UNSUPPORTED);
			vdi_sim_run_until_idle(world.env);
			assert_false(answer.came);
			assert_int_equal(world.peer->writes, 0);
		} else {
			assert_status(kube_world_begin_txn(&world, &request, &answer), VD_OK);
			assert_true(
				vdi_sim_run_until(world.env, kube_answer_has_come, &answer, VD_SECONDS(10)));
			assert_status(answer.status, VD_OK);
			assert_int_equal(answer.succeeded, i == 23);
		}
	}
	{
		struct kube_answer    answer = { 0 };
		struct vd_txn_request request = { .success = ops, .success_count = 1 };

		ops[0].key = vd_bytes_of("/registry/other/x");
		assert_status(kube_world_begin_txn(&world, &request, &answer), VD_INVALID_ARGUMENT);
		assert_false(answer.came);
	}
	kube_world_close(&world);
}

static void on_leases(void *arg, vd_status status, const int64_t *ids, size_t count, vd_rev revision)
{
	*(bool *) arg = true;
}

static void on_dump(void *arg, struct vd_bytes json)
{
	*(bool *) arg = true;
}

static void leases_are_unsupported_and_a_dump_is_empty(void **state)
{
	struct kube_world world;
	bool		  has_come = false;

	kube_world_open(&world, 3);
	assert_status(vd_store_lease_list(world.store, on_leases, &has_come), VD_UNSUPPORTED);
	vd_store_dump(world.store, on_dump, &has_come);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_false(has_come);
	kube_world_close(&world);
}

static void on_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	struct kube_answer *answer = arg;

	answer->came = true;
	answer->status = status;
	if (list)
		answer->revision = vd_list_revision(list);
	list = vd_list_free(list);
}

/* A consistent list of an idle resource, while others change: about a second, by a proof watch. */
static void a_consistent_list_needs_no_list_of_the_server(void **state)
{
	struct kube_world      world;
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct kube_answer     answer = { 0 };
	vd_mono		       begun;
	struct vd_error	       error;

	kube_world_open(&world, 5);
	kube_peer_put(world.peer, "pods", "a", "x", "");
	kube_world_open_cacher(&world);
	kube_world_settle(&world);
	for (int i = 0; i < 10; i++)
		kube_peer_advance(world.peer);
	begun = vd_env_now(world.env);
	assert_status(vd_cacher_list(world.cacher, &options, on_list, &answer, &error), VD_OK);
	assert_true(vdi_sim_run_until(world.env, kube_answer_has_come, &answer, VD_SECONDS(10)));
	assert_status(answer.status, VD_OK);
	assert_true(answer.revision >= world.peer->revision);
	assert_true(vd_mono_since(vd_env_now(world.env), begun).ns < VD_SECONDS(2).ns);
	assert_int_equal(world.peer->lists, 0);
	assert_int_equal(world.cacher->reflector.relists, 0);
	kube_world_close(&world);
}

static void a_server_without_bookmarks_ends_progress(void **state)
{
	struct kube_world      world;
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct kube_answer     answer = { 0 };
	struct vd_store_status status;
	struct vd_error	       error;

	kube_world_open(&world, 5);
	world.peer->no_bookmarks = true;
	world.peer->watch_list = KUBE_PEER_WATCH_LIST_REFUSED;
	kube_peer_put(world.peer, "pods", "a", "x", "");
	kube_world_open_cacher(&world);
	kube_world_settle(&world);
	assert_status(vd_store_status_get(world.store, &status), VD_OK);
	assert_true(status.progress);
	kube_peer_advance(world.peer);
	assert_status(vd_cacher_list(world.cacher, &options, on_list, &answer, &error), VD_OK);
	assert_true(vdi_sim_run_until(world.env, kube_answer_has_come, &answer, VD_SECONDS(60)));
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_status(vd_store_status_get(world.store, &status), VD_OK);
	assert_false(status.progress);
	answer.came = false;
	assert_status(vd_cacher_list(world.cacher, &options, on_list, &answer, &error), VD_OK);
	assert_true(vdi_sim_run_until(world.env, kube_answer_has_come, &answer, VD_SECONDS(60)));
	assert_status(answer.status, VD_OK);
	kube_world_close(&world);
}

/* ---- Health, removal, close ---- */

static void health_of(void *arg, const struct vd_kube_health *health)
{
	if (health->resource)
		*(struct vd_kube_health *) arg = *health;
}

static void a_removed_resource_empties_the_cache_and_comes_back(void **state)
{
	struct kube_world     world;
	struct vd_kube_health health = { 0 };

	kube_world_open(&world, 9);
	kube_peer_put(world.peer, "pods", "a", "x", "");
	kube_world_open_cacher(&world);
	kube_world_settle(&world);
	vd_kube_health(world.kube, health_of, &health);
	assert_int_equal(health.state, VD_KUBE_WATCHING);
	assert_int_equal(health.lists, 1);
	assert_string_equal(health.resource, "pods");
	kube_peer_remove_resource(world.peer, "pods");
	vdi_sim_advance(world.env, VD_SECONDS(5));
	vd_kube_health(world.kube, health_of, &health);
	assert_int_equal(health.state, VD_KUBE_REMOVED);
	vdi_sim_advance(world.env, VD_SECONDS(100));
	kube_world_settle(&world);
	assert_true(kube_world_is_equal(&world));
	/* Its empty state has a revision, unless the server says something else. */
	assert_status(kube_world_range(&world, "/registry/pods", 14, "", 0, 1).status, VD_OK);
	world.peer->refuse_code = 403;
	world.peer->refuse_count = 1;
	assert_true(kube_world_range(&world, "/registry/pods", 14, "", 0, 1).status != VD_OK);
	kube_peer_return_resource(world.peer, "pods");
	kube_peer_put(world.peer, "pods", "a", "again", "");
	vdi_sim_advance(world.env, VD_SECONDS(100));
	kube_world_settle(&world);
	assert_true(kube_world_is_equal(&world));
	vd_kube_health(world.kube, health_of, &health);
	assert_int_equal(health.state, VD_KUBE_WATCHING);
	kube_world_close(&world);
}

static void note_change(void *arg, const struct vd_kube_health *health)
{
	char *text = arg;

	if (health->resource && strlen(text) < 100)
		snprintf(text + strlen(text), 8, "%d ", (int) health->state);
}

/* Further attempts with the same error are no change of the state. */
static void a_state_is_told_when_it_changes(void **state)
{
	struct kube_world      world;
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_kube_health  health = { 0 };
	struct vd_error	       error;
	char		       expected[32], text[128] = "";
	unsigned	       attempts;

	kube_world_open(&world, 9);
	world.store = vd_store_close_wait(world.store);
	world.kube = vd_kube_close_wait(world.kube);
	options.server = "https://peer";
	options.changed = note_change;
	options.changed_arg = text;
	assert_status(vdi_kube_open_over(world.env, &options, kube_peer_transport_new, &world.kube, &error),
		      VD_OK);
	assert_status(vd_store_open_kube(world.kube, &kube_pods, NULL, KUBE_PREFIX, &world.store, &error),
		      VD_OK);
	kube_world_open_cacher(&world);
	kube_world_settle(&world);
	text[0] = 0;
	world.peer->faults.unreachable = 100;
	kube_peer_cut(world.peer);
	vdi_sim_advance(world.env, VD_SECONDS(20));
	vd_kube_health(world.kube, health_of, &health);
	attempts = health.attempts;
	vdi_sim_advance(world.env, VD_SECONDS(100));
	vd_kube_health(world.kube, health_of, &health);
	assert_int_equal(health.state, VD_KUBE_RETRYING);
	assert_true(health.attempts > attempts + 1);
	snprintf(expected, sizeof expected, "%d ", VD_KUBE_RETRYING);
	assert_string_equal(text, expected);
	world.peer->faults.unreachable = 0;
	kube_world_close(&world);
}

static void health_says_when_the_server_was_heard(void **state)
{
	struct kube_world     world;
	struct vd_kube_health health = { 0 };
	vd_mono		      put;

	kube_world_open(&world, 9);
	kube_world_open_cacher(&world);
	kube_world_settle(&world);
	vdi_sim_advance(world.env, VD_SECONDS(3));
	put = vd_env_now(world.env);
	vd_kube_health(world.kube, health_of, &health);
	assert_in_range(health.heard.ns, 1, put.ns - 1);
	kube_peer_put(world.peer, "pods", "a", "x", "");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	vd_kube_health(world.kube, health_of, &health);
	assert_in_range(health.heard.ns, put.ns, vd_env_now(world.env).ns);
	kube_world_close(&world);
}

/* rules: K-504 */
static void silence_is_noticed_and_reported(void **state)
{
	struct kube_world     world;
	struct vd_kube_health health = { 0 };
	unsigned	      watches;

	kube_world_open(&world, 9);
	world.peer->no_bookmarks = true;
	world.peer->watch_list = KUBE_PEER_WATCH_LIST_REFUSED;
	kube_world_open_cacher(&world);
	kube_world_settle(&world);
	watches = world.peer->watches;
	vdi_sim_advance(world.env, VD_SECONDS(74));
	assert_int_equal(world.peer->watches, watches + 1);
	vdi_sim_advance(world.env, VD_SECONDS(2));
	assert_int_equal(world.peer->watches, watches + 2);
	vd_kube_health(world.kube, health_of, &health);
	assert_int_equal(health.error.code, VD_TIMEOUT);
	kube_world_close(&world);
}

static void on_ready(void *arg)
{
	++*(int *) arg;
}

/* rules: K-513 */
static void a_closed_store_answers_and_ends_watches(void **state)
{
	struct kube_world	       world;
	struct kube_answer	       answer = { 0 };
	struct vd_range_request	       request = { .key = vd_bytes_of(KUBE_PREFIX),
						   .range_end = vd_bytes_of(KUBE_PREFIX_END) };
	int			       ready = 0;
	struct vd_store_watch_request  watch_request = { .key = vd_bytes_of(KUBE_PREFIX),
							 .range_end = vd_bytes_of(KUBE_PREFIX_END),
							 .ready = on_ready,
							 .ready_arg = &ready };
	struct vd_store_stream_request stream_request = { .range = request,
							  .ready = on_ready,
							  .ready_arg = &ready };
	struct vd_store_watch	      *watch;
	struct vd_store_stream	      *stream;
	struct vd_store_batch	       batch;
	struct vd_store_part	       part;
	struct vd_error		       error;

	kube_world_open(&world, 11);
	assert_status(vd_store_watch_open(world.store, &watch_request, &watch, &error), VD_OK);
	assert_status(vd_store_stream_open(world.store, &stream_request, &stream), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, &error), VD_AGAIN);
	assert_status(vd_store_stream_next(stream, &part, &error), VD_AGAIN);
	assert_status(vd_store_range(world.store, &request, kube_answer_range, &answer), VD_OK);
	world.store = vd_store_close_wait(world.store);
	assert_true(answer.came);
	assert_status(answer.status, VD_CLOSED);
	assert_int_equal(ready, 2);
	assert_status(vd_store_watch_next(watch, 10, &batch, &error), VD_CLOSED);
	assert_status(vd_store_stream_next(stream, &part, &error), VD_CLOSED);
	world.kube = vd_kube_close_wait(world.kube);
	vd_store_stream_close(stream);
	vd_store_watch_close(watch);
	kube_peer_free(world.peer);
	world.codec = vd_codec_free(world.codec);
	world.env = vd_env_free(world.env);
}

/* Deletes of one revision are one batch, however they arrive. */
static void events_of_one_revision_are_one_batch(void **state)
{
	for (unsigned seed = 0; seed < 20; seed++) {
		const char		     *names[] = { "x", "y", "z" };
		struct kube_world	      world;
		int			      ready = 0;
		struct vd_store_watch_request request = { .key = vd_bytes_of(KUBE_PREFIX),
							  .range_end = vd_bytes_of(KUBE_PREFIX_END),
							  .previous = true,
							  .ready = on_ready,
							  .ready_arg = &ready };
		struct vd_store_watch	     *watch;
		struct vd_store_batch	      batch;
		struct vd_error		      error;
		vd_rev			      revision;

		kube_world_open(&world, seed);
		for (size_t i = 0; i < 3; i++)
			kube_peer_put(world.peer, "pods", "a", names[i], "");
		request.start_revision = world.peer->revision + 1;
		assert_status(vd_store_watch_open(world.store, &request, &watch, &error), VD_OK);
		vdi_sim_advance(world.env, VD_SECONDS(1));
		world.peer->chunk_max = 1 + seed * 20;
		revision = kube_peer_delete_many(world.peer, "pods", "a", names, 3);
		if (seed % 2) {
			vdi_sim_advance(world.env, VD_MS(seed));
			kube_peer_cut(world.peer);
		}
		vdi_sim_advance(world.env, VD_SECONDS(5));
		assert_status(vd_store_watch_next(watch, 1, &batch, &error), VD_OK);
		assert_int_equal(batch.event_count, 3);
		assert_int_equal(batch.revision, revision);
		for (size_t i = 0; i < 3; i++) {
			assert_true(batch.events[i].is_delete);
			assert_non_null(batch.events[i].previous);
			assert_int_equal(batch.events[i].kv->mod_rev, revision);
		}
		assert_status(vd_store_watch_next(watch, 1, &batch, &error), VD_AGAIN);
		vd_store_watch_close(watch);
		kube_world_close(&world);
	}
}

/* A server that is restored while no watch is open has a greater revision again when it is asked. */
static void a_restored_server_is_noticed_by_its_uid(void **state)
{
	struct kube_world world;

	kube_world_open(&world, 2);
	for (int i = 0; i < 10; i++)
		kube_peer_put(world.peer, "pods", "a", i % 2 ? "x" : "y", "");
	kube_world_open_cacher(&world);
	kube_world_settle(&world);
	kube_peer_restore(world.peer, world.peer->revision - 9);
	assert_int_equal(kube_peer_count(world.peer, "pods"), 1);
	for (int i = 0; i < 30; i++)
		kube_peer_put(world.peer, "pods", "b", "z", "");
	vdi_sim_advance(world.env, VD_SECONDS(60));
	kube_world_settle(&world);
	assert_true(kube_world_is_equal(&world));
	assert_int_equal(world.peer->watch_lists, 2);
	kube_world_close(&world);
}

static size_t read_stream(struct kube_world *world, vd_rev *ret_revision)
{
	int			       ready = 0;
	struct vd_store_stream_request request = { .range = { .key = vd_bytes_of(KUBE_PREFIX),
							      .range_end = vd_bytes_of(KUBE_PREFIX_END) },
						   .ready = on_ready,
						   .ready_arg = &ready };
	struct vd_store_stream	      *stream;
	struct vd_store_part	       part = { 0 };
	struct vd_error		       error;
	size_t			       count = 0;

	assert_status(vd_store_stream_open(world->store, &request, &stream), VD_OK);
	while (!part.last) {
		vd_status status = vd_store_stream_next(stream, &part, &error);

		if (status == VD_AGAIN)
			vdi_sim_advance(world->env, VD_MS(100));
		else
			assert_status(status, VD_OK);
		if (status == VD_OK)
			count += part.kv_count;
	}
	*ret_revision = part.read_revision;
	assert_status(vd_store_stream_next(stream, &part, &error), VD_CLOSED);
	vd_store_stream_close(stream);
	return count;
}

static void a_later_stream_is_current_without_a_list(void **state)
{
	for (unsigned mode = 0; mode < 2; mode++) {
		struct kube_world world;
		vd_rev		  revision;

		kube_world_open(&world, 2);
		world.peer->no_bookmarks = mode == 1;
		world.peer->watch_list = mode ? KUBE_PEER_WATCH_LIST_REFUSED : KUBE_PEER_WATCH_LIST;
		world.peer->page_max = 2;
		kube_peer_put(world.peer, "pods", "a", "x", "");
		assert_int_equal(read_stream(&world, &revision), 1);
		for (int i = 0; i < 5; i++) {
			kube_peer_put(world.peer, "pods", "a", "y", "");
			kube_peer_put(world.peer, "pods", "b", i % 2 ? "x" : "z", "");
			kube_peer_advance(world.peer);
			assert_int_equal(read_stream(&world, &revision), i ? 4 : 3);
			assert_true(revision >= world.peer->revision);
		}
		assert_int_equal(world.peer->watch_lists + world.peer->lists, mode ? 6 : 1);
		kube_world_close(&world);
	}
}

/* Each object once: a part begins behind the last object of the one before. */
static void a_stream_of_several_parts_has_each_object_once(void **state)
{
	struct kube_world world;
	char		  name[16];
	vd_rev		  revision;

	kube_world_open(&world, 2);
	for (int i = 0; i < 1203; i++) {
		snprintf(name, sizeof name, "p%04d", i);
		kube_peer_put(world.peer, "pods", "a", name, "");
	}
	assert_int_equal(read_stream(&world, &revision), 1203);
	assert_int_equal(read_stream(&world, &revision), 1203); /* from the mirror */
	kube_world_close(&world);
}

/* An event whose revision readers have passed: they would not take it, so they list again. */
static void a_late_event_of_a_revision_is_not_lost(void **state)
{
	const char	       *names[] = { "x", "y", "z" };
	struct kube_world	world;
	struct vdi_kube_source *source;
	struct vd_kube_health	health;

	kube_world_open(&world, 4);
	for (size_t i = 0; i < 3; i++)
		kube_peer_put(world.peer, "pods", "a", names[i], "");
	kube_world_open_cacher(&world);
	kube_world_settle(&world);
	source = (struct vdi_kube_source *) world.store;
	world.peer->event_gap = VD_MS(100);
	kube_peer_delete_many(world.peer, "pods", "a", names, 3);
	vdi_sim_advance(world.env, VD_SECONDS(20));
	kube_peer_advance(world.peer);
	kube_world_settle(&world);
	assert_true(kube_world_is_equal(&world));
	assert_true(source->late > 0);
	assert_int_equal(world.peer->watch_lists + world.peer->lists, 1);
	vd_kube_health(world.kube, health_of, &health);
	assert_status(health.list_cause.code, VD_EXPIRED);
	assert_non_null(strstr(health.list_cause.message, "arrived after its revision"));
	kube_world_close(&world);
}

/* A server that refuses everything delays no end. */
static void a_shutdown_gives_up_calls_and_watches(void **state)
{
	struct kube_world	      world;
	struct kube_answer	      answer = { 0 };
	int			      ready = 0;
	struct vd_range_request	      request = { .key = vd_bytes_of(KUBE_PREFIX),
						  .range_end = vd_bytes_of(KUBE_PREFIX_END) };
	struct vd_store_watch_request watch_request = {
		.key = request.key, .range_end = request.range_end, .ready = on_ready, .ready_arg = &ready
	};
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;
	struct vd_error	       error;

	kube_world_open(&world, 11);
	kube_world_open_cacher(&world);
	kube_world_settle(&world);
	assert_status(vd_store_watch_open(world.store, &watch_request, &watch, &error), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, &error), VD_AGAIN);
	world.peer->faults.refused = 100;
	assert_status(vd_store_range(world.store, &request, kube_answer_range, &answer), VD_OK);
	vdi_sim_advance(world.env, VD_MS(100));
	assert_false(answer.came);
	vd_store_shutdown(world.store);
	vd_store_shutdown(world.store);
	vdi_sim_advance(world.env, VD_MS(100));
	assert_true(answer.came);
	assert_status(answer.status, VD_CLOSED);
	assert_int_equal(ready, 1);
	assert_status(vd_store_watch_next(watch, 10, &batch, &error), VD_CLOSED);
	assert_status(vd_store_range(world.store, &request, kube_answer_range, &answer), VD_CLOSED);
	vd_store_watch_close(watch);
	kube_world_close(&world);
}

/* Nothing happens after the fill that could wake it. */
static void a_stream_opened_during_a_fill_is_answered(void **state)
{
	for (unsigned ms = 0; ms < 40; ms++) {
		struct kube_world	      world;
		vd_rev			      revision;
		int			      ready = 0;
		struct vd_store_watch_request request = { .key = vd_bytes_of(KUBE_PREFIX),
							  .range_end = vd_bytes_of(KUBE_PREFIX_END),
							  .ready = on_ready,
							  .ready_arg = &ready };
		struct vd_store_watch	     *watch;
		struct vd_error		      error;
		vd_mono			      begun;

		kube_world_open(&world, ms);
		world.peer->chunk_max = 20;
		kube_peer_put(world.peer, "pods", "a", "x", "");
		kube_peer_put(world.peer, "pods", "a", "y", "");
		assert_status(vd_store_watch_open(world.store, &request, &watch, &error), VD_OK);
		vdi_sim_advance(world.env, VD_MS(ms));
		begun = vd_env_now(world.env);
		assert_int_equal(read_stream(&world, &revision), 2);
		assert_true(vd_mono_since(vd_env_now(world.env), begun).ns < VD_SECONDS(5).ns);
		vd_store_watch_close(watch);
		kube_world_close(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cacher_follows_the_server),
		cmocka_unit_test(ranges_are_lists_of_the_server),
		cmocka_unit_test(a_range_behind_a_namespace_has_what_follows),
		cmocka_unit_test(one_request_answers_all_that_ask_for_the_revision),
		cmocka_unit_test(writes_become_requests_with_preconditions),
		cmocka_unit_test(a_failed_read_of_the_else_branch_fails_the_transaction),
		cmocka_unit_test(refused_writes_are_errors),
		cmocka_unit_test(a_value_without_metadata_is_not_sent),
		cmocka_unit_test(failures_that_pass),
		cmocka_unit_test(other_transactions_are_unsupported),
		cmocka_unit_test(leases_are_unsupported_and_a_dump_is_empty),
		cmocka_unit_test(a_consistent_list_needs_no_list_of_the_server),
		cmocka_unit_test(a_server_without_bookmarks_ends_progress),
		cmocka_unit_test(a_removed_resource_empties_the_cache_and_comes_back),
		cmocka_unit_test(a_state_is_told_when_it_changes),
		cmocka_unit_test(health_says_when_the_server_was_heard),
		cmocka_unit_test(silence_is_noticed_and_reported),
		cmocka_unit_test(a_closed_store_answers_and_ends_watches),
		cmocka_unit_test(events_of_one_revision_are_one_batch),
		cmocka_unit_test(a_restored_server_is_noticed_by_its_uid),
		cmocka_unit_test(a_later_stream_is_current_without_a_list),
		cmocka_unit_test(a_stream_of_several_parts_has_each_object_once),
		cmocka_unit_test(a_late_event_of_a_revision_is_not_lost),
		cmocka_unit_test(a_shutdown_gives_up_calls_and_watches),
		cmocka_unit_test(a_stream_opened_during_a_fill_is_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
