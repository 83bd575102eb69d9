/* The uid of kube-system: who is served by which request, and what one cut of many sources costs. */
#include "kube_cluster.h"

#include "actor_sim.h"
#include "cacher_fixture.h"
#include "kube_peer.h"
#include "kube_script.h"
#include "kube_source.h"
#include "kube_world.h"

/* ---- Asks over a scripted transport ---- */

#define UID(text) "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"kube-system\",\"uid\":\"" text "\"}}"
#define ASKS 4

struct ask {
	struct vdi_kube_cluster_ask ask;
	unsigned		    answers;
	vd_status		    status;
	int			    code;
	char			    uid[VDI_KUBE_UID_SIZE];
	char			    message[VD_ERROR_MESSAGE_SIZE];
	struct ask		   *ends; /* ended by the answer function; may be NULL */
	bool			    is_repeated;
};

static struct {
	struct vd_env	  *env;
	struct vd_kube	  *kube;
	struct kube_script script;
	struct ask	   asks[ASKS];
} world;

static void on_answer(struct vdi_kube_cluster_ask *base, const struct vdi_kube_cluster_answer *answer)
{
	struct ask *ask = VDI_CONTAINER_OF(base, struct ask, ask);

	ask->answers++;
	ask->status = answer->status;
	ask->code = answer->code;
	snprintf(ask->uid, sizeof ask->uid, "%s", answer->uid);
	snprintf(ask->message, sizeof ask->message, "%s", answer->error ? answer->error->message : "");
	if (ask->ends)
		vdi_kube_cluster_ask_end(world.kube, &ask->ends->ask);
	if (ask->is_repeated) {
		ask->is_repeated = false;
		assert_status(vdi_kube_cluster_ask(world.kube, base, base->not_before), VD_OK);
	}
}

static void begin(const struct kube_script_answer *answers, size_t count)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_error	       error = { 0 };

	memset(&world, 0, sizeof world);
	assert_status(vdi_env_new_sim(7, NULL, NULL, &world.env), VD_OK);
	world.script.env = world.env;
	world.script.answers = answers;
	world.script.count = count;
	kube_script_use(&world.script);
	options.server = "http://127.0.0.1:1";
	assert_status(vdi_kube_open_over(world.env, &options, kube_script_transport_new, &world.kube, &error),
		      VD_OK);
	for (size_t i = 0; i < ASKS; i++)
		world.asks[i].ask.answer = on_answer;
	vdi_sim_advance(world.env, VD_SECONDS(1));
}

#define BEGIN(answers) begin(answers, VDI_ARRAY_SIZE(answers))

static void end(void)
{
	world.kube = vd_kube_close_wait(world.kube);
	assert_int_equal(world.script.open, 0);
	world.env = vd_env_free(world.env);
}

static vd_mono now(void)
{
	return vd_env_now(world.env);
}

static void ask(size_t i, vd_mono not_before)
{
	assert_status(vdi_kube_cluster_ask(world.kube, &world.asks[i].ask, not_before), VD_OK);
}

static void assert_answer(size_t i, unsigned answers, vd_status status, int code, const char *uid)
{
	assert_int_equal(world.asks[i].answers, answers);
	assert_status(world.asks[i].status, status);
	assert_int_equal(world.asks[i].code, code);
	assert_string_equal(world.asks[i].uid, uid);
}

static void one_request_serves_all_that_accept_it(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 200, .body = UID("a"), .delay = { 200000000 } },
		{ .code = 200, .body = UID("b"), .delay = { 200000000 } },
	};
	vd_mono ended;

	BEGIN(answers);
	ended = now();
	ask(0, ended);
	ask(1, (vd_mono) { 0 });
	vdi_sim_advance(world.env, VD_MS(100));
	ask(2, ended); /* in flight, and sent after this watch ended */
	ask(3, now()); /* sent before */
	vdi_sim_advance(world.env, VD_MS(150));
	for (size_t i = 0; i < 3; i++)
		assert_answer(i, 1, VD_OK, 200, "a");
	assert_int_equal(world.asks[3].answers, 0);
	assert_int_equal(world.script.request_count, 2);
	assert_string_equal(world.script.requests[0].path, "/api/v1/namespaces/kube-system");
	vdi_sim_advance(world.env, VD_MS(250));
	assert_answer(3, 1, VD_OK, 200, "b");
	end();
}

static void an_answer_is_used_for_a_second(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 200, .body = UID("a") },
		{ .code = 200, .body = UID("b") },
		{ .code = 200, .body = UID("c") },
	};
	vd_mono asked;

	BEGIN(answers);
	asked = now();
	ask(0, asked);
	vdi_sim_advance(world.env, VD_MS(900));
	ask(1, asked);
	assert_answer(1, 1, VD_OK, 200, "a"); /* inside the call */
	ask(2, now());
	vdi_sim_advance(world.env, VD_MS(10));
	assert_answer(2, 1, VD_OK, 200, "b");
	vdi_sim_advance(world.env, VD_MS(1000));
	ask(3, asked);
	vdi_sim_advance(world.env, VD_MS(10));
	assert_answer(3, 1, VD_OK, 200, "c");
	assert_int_equal(world.script.request_count, 3);
	end();
}

static void a_failure_is_told_to_all_and_not_remembered(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 401, .body = "{}" },
		{ .code = 200, .body = UID("a") },
	};

	BEGIN(answers);
	ask(0, now());
	ask(1, now());
	world.asks[0].is_repeated = true; /* is served by the next request, not by the same failure */
	vdi_sim_advance(world.env, VD_MS(1));
	assert_answer(1, 1, VD_FORBIDDEN, 401, "");
	assert_string_equal(world.asks[1].message, "the server answered with HTTP status 401: {}");
	assert_answer(0, 2, VD_OK, 200, "a");
	end();
}

static void a_client_that_may_not_read_it_asks_once_a_minute(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 403, .body = "{}" },
		{ .code = 404, .body = "{}" },
		{ .code = 404, .body = "{}" },
	};

	BEGIN(answers);
	ask(0, now());
	vdi_sim_advance(world.env, VD_MS(1));
	assert_answer(0, 1, VD_OK, 403, "");
	vdi_sim_advance(world.env, VD_SECONDS(59));
	ask(1, now());
	assert_answer(1, 1, VD_OK, 403, "");
	assert_int_equal(world.script.request_count, 1);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	ask(1, now());
	vdi_sim_advance(world.env, VD_MS(1));
	assert_answer(1, 2, VD_OK, 404, "");
	ask(2, now()); /* a namespace may be created */
	vdi_sim_advance(world.env, VD_MS(1));
	assert_answer(2, 1, VD_OK, 404, "");
	assert_int_equal(world.script.request_count, 3);
	end();
}

/* To the nanosecond, counted from the request. */
static void the_ages_of_answers(void **state)
{
	static const struct {
		int    code;
		vd_dur age;
	} rows[] = { { 200, { INT64_C(1000000000) } },
		     { 404, { INT64_C(1000000000) } },
		     { 403, { INT64_C(60000000000) } } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const struct kube_script_answer answers[] = { { .code = rows[i].code, .body = UID("a") },
							      { .code = rows[i].code, .body = UID("b") } };
		vd_mono				asked;

		BEGIN(answers);
		asked = now();
		ask(0, asked);
		vdi_sim_run_until_idle(world.env);
		assert_int_equal(world.asks[0].answers, 1);
		vdi_sim_advance(world.env, (vd_dur) { rows[i].age.ns - 1 });
		ask(1, asked);
		assert_int_equal(world.asks[1].answers, 1);
		assert_int_equal(world.script.request_count, 1);
		vdi_sim_advance(world.env, (vd_dur) { 1 });
		ask(2, asked);
		assert_int_equal(world.asks[2].answers, 0);
		vdi_sim_run_until_idle(world.env);
		assert_int_equal(world.asks[2].answers, 1);
		assert_int_equal(world.script.request_count, 2);
		end();
	}
}

static void an_ask_may_be_ended(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 200, .body = UID("a") },
		{ .code = 200, .body = UID("b") },
	};

	BEGIN(answers);
	vdi_kube_cluster_ask_end(world.kube, &world.asks[0].ask); /* never asked */
	for (size_t i = 0; i < 3; i++)
		ask(i, now());
	world.asks[0].ends = &world.asks[2]; /* inside an answer */
	vdi_kube_cluster_ask_end(world.kube, &world.asks[1].ask);
	vdi_sim_advance(world.env, VD_MS(1));
	assert_int_equal(world.asks[0].answers, 1);
	assert_int_equal(world.asks[1].answers, 0);
	assert_int_equal(world.asks[2].answers, 0);
	end();
}

static void the_uid_is_taken_as_a_whole_or_not_at_all(void **state)
{
	static const char *const bodies[] = {
		UID("a\\u0000b"),
		UID("a123456789012345678901234567890123456789012345678901234567890123"),
		UID(""),
		"{\"metadata\":{\"uid\":7}}",
		"[]",
		"",
		"<html>",
	};
	struct kube_script_answer answers[VDI_ARRAY_SIZE(bodies) + 1] = { 0 };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(answers); i++)
		answers[i] = (struct kube_script_answer) { .code = 200,
							   .body = i < VDI_ARRAY_SIZE(bodies) ? bodies[i] :
												UID("a") };
	BEGIN(answers);
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(answers); i++) {
		ask(0, now());
		vdi_sim_advance(world.env, VD_MS(1));
		assert_answer(0, i + 1, VD_OK, 200, i < VDI_ARRAY_SIZE(bodies) ? "" : "a");
	}
	end();
}

static void the_end_of_the_client_is_told(void **state)
{
	begin(NULL, 0); /* nothing is answered */
	ask(0, now());
	vdi_sim_advance(world.env, VD_MS(1));
	end();
	assert_answer(0, 1, VD_CLOSED, 0, "");
}

static void torture_memory_of_an_ask(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 200, .body = UID("a") } };
	bool				       has_failed = true;

	for (uint64_t nth = 1; has_failed; nth++) {
		vd_status status;

		BEGIN(answers);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_kube_cluster_ask(world.kube, &world.asks[0].ask, now());
		has_failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, has_failed ? VD_NOMEM : VD_OK);
		vdi_sim_advance(world.env, VD_MS(1));
		assert_int_equal(world.asks[0].answers, has_failed ? 0 : 1);
		end();
	}
}

/* ---- Sources over a peer ---- */

#define SOURCES 100

struct many {
	struct kube_world      world;
	struct vd_store	      *stores[SOURCES];
	struct vd_store_watch *watches[SOURCES];
};

static void on_ready(void *arg)
{
	(void) arg;
}

static void open_many(struct many *many)
{
	struct vd_store_watch_request request = { .key = vd_bytes_of(KUBE_PREFIX),
						  .range_end = vd_bytes_of(KUBE_PREFIX_END),
						  .ready = on_ready };
	char			      name[16];
	struct vd_error		      error;

	memset(many, 0, sizeof *many);
	kube_world_open(&many->world, 3);
	for (size_t i = 0; i < SOURCES; i++) {
		struct vd_kube_scope scope = { 0 };

		snprintf(name, sizeof name, "n%zu", i);
		scope.namespace_name = vd_bytes_of(name);
		assert_status(vd_store_open_kube(many->world.kube, &kube_pods, &scope, KUBE_PREFIX,
						 &many->stores[i], &error),
			      VD_OK);
		assert_status(vd_store_watch_open(many->stores[i], &request, &many->watches[i], &error),
			      VD_OK);
	}
	vdi_sim_advance(many->world.env, VD_SECONDS(10));
}

static void assert_all_watch(struct many *many, unsigned lists)
{
	for (size_t i = 0; i < SOURCES; i++) {
		struct vdi_kube_source *source = vdi_kube_source_of(many->stores[i]);

		assert_int_equal(source->pump.step, VDI_KUBE_FOLLOW);
		assert_int_equal(source->health.state, VD_KUBE_WATCHING);
		assert_int_equal(source->health.lists, lists);
	}
}

static void close_many(struct many *many)
{
	for (size_t i = 0; i < SOURCES; i++) {
		vd_store_watch_close(many->watches[i]);
		many->stores[i] = vd_store_close_wait(many->stores[i]);
	}
	kube_world_close(&many->world);
}

static void many_sources_ask_once_after_a_cut(void **state)
{
	struct many many;

	open_many(&many);
	assert_int_equal(many.world.peer->identities, 1);
	assert_all_watch(&many, 1);
	for (unsigned cuts = 1; cuts <= 3; cuts++) {
		kube_peer_cut(many.world.peer);
		vdi_sim_advance(many.world.env, VD_SECONDS(60));
		assert_int_equal(many.world.peer->identities, 1 + cuts);
		assert_all_watch(&many, 1);
	}
	close_many(&many);
}

static void many_sources_notice_another_server(void **state)
{
	struct many many;

	open_many(&many);
	vdi_sim_advance(many.world.env, VD_SECONDS(60));
	kube_peer_restore(many.world.peer, many.world.peer->revision);
	vdi_sim_advance(many.world.env, VD_SECONDS(60));
	assert_all_watch(&many, 2);
	assert_in_range(many.world.peer->identities, 2, 3);
	close_many(&many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_request_serves_all_that_accept_it),
		cmocka_unit_test(an_answer_is_used_for_a_second),
		cmocka_unit_test(a_failure_is_told_to_all_and_not_remembered),
		cmocka_unit_test(a_client_that_may_not_read_it_asks_once_a_minute),
		cmocka_unit_test(the_ages_of_answers),
		cmocka_unit_test(an_ask_may_be_ended),
		cmocka_unit_test(the_uid_is_taken_as_a_whole_or_not_at_all),
		cmocka_unit_test(the_end_of_the_client_is_told),
		cmocka_unit_test(torture_memory_of_an_ask),
		cmocka_unit_test(many_sources_ask_once_after_a_cut),
		cmocka_unit_test(many_sources_notice_another_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
