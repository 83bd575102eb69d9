/* The ready state: messages, generation, and how long clients are told to stay away. */
#include "vdtest.h"

#include "actor_sim.h"
#include "env.h"
#include "ready.h"

/* rules: R-510 */
static void t148_r512_states_and_words(void **state)
{
	struct vd_env	*env;
	struct vdi_ready ready;
	struct vd_error	 error;
	uint64_t	 generation = 0;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	vdi_ready_init(&ready, env);
	assert_status(vdi_ready_check(&ready, NULL, &error), VD_NOT_READY);
	assert_string_equal(error.message, "storage is (re)initializing");
	vdi_ready_set_ready(&ready);
	assert_status(vdi_ready_check(&ready, &generation, &error), VD_OK);
	assert_int_equal(generation, 1);
	vdi_ready_set_ready(&ready);
	assert_status(vdi_ready_check(&ready, &generation, &error), VD_OK);
	assert_int_equal(generation, 1);
	vdi_ready_set_pending(&ready, "the disk is on fire");
	vdi_sim_advance(env, VD_SECONDS(14));
	assert_status(vdi_ready_check(&ready, NULL, &error), VD_NOT_READY);
	assert_string_equal(error.message, "storage is (re)initializing: the disk is on fire");
	assert_int_equal(error.retry_after_s, 2);
	vdi_ready_set_ready(&ready);
	assert_status(vdi_ready_check(&ready, &generation, &error), VD_OK);
	assert_int_equal(generation, 2);
	vdi_ready_stop(&ready);
	vdi_ready_set_ready(&ready);
	assert_status(vdi_ready_check(&ready, &generation, &error), VD_CLOSED);
	assert_string_equal(error.message, "apiserver cacher is stopped");
	vdi_ready_fini(&ready);
	vd_env_free(env);
}

static void count(void *arg)
{
	++*(unsigned *) arg;
}

static void who_listens_is_told_once(void **state)
{
	unsigned		told[3] = { 0 };
	struct vdi_ready_waiter waiters[] = { { .notify = count, .arg = &told[0] },
					      { .notify = count, .arg = &told[1] },
					      { .notify = count, .arg = &told[2] } };
	struct vd_env	       *env;
	struct vdi_ready	ready;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	vdi_ready_init(&ready, env);
	for (size_t i = 0; i < 3; i++)
		assert_true(vdi_ready_listen(&ready, &waiters[i]));
	vdi_ready_forget(&ready, &waiters[1]);
	vdi_ready_set_pending(&ready, "not yet");
	assert_int_equal(told[0] + told[1] + told[2], 0);
	vdi_ready_set_ready(&ready);
	assert_false(vdi_ready_listen(&ready, &waiters[1]));
	vdi_ready_forget(&ready, &waiters[0]);
	vdi_ready_set_pending(&ready, NULL);
	assert_true(vdi_ready_listen(&ready, &waiters[1]));
	vdi_ready_stop(&ready);
	assert_false(vdi_ready_listen(&ready, &waiters[0]));
	assert_true(told[0] == 1 && told[1] == 1 && told[2] == 1);
	vdi_ready_fini(&ready);
	vd_env_free(env);
}

/* A blocking wait ends with the state, or at its time with the reason why it is not ready. */
struct later {
	struct vd_actor	 *actor;
	struct vdi_ready *ready;
	void (*change)(struct vdi_ready *ready);
};

static void change_later(void *arg)
{
	struct later *later = arg;

	if (later->change)
		later->change(later->ready);
}

static void flap(struct vdi_ready *ready)
{
	vdi_ready_set_ready(ready);
	vdi_ready_set_pending(ready, "again");
}

static void r510_r513_waiting_for_it(void **state)
{
	struct later		later = { 0 };
	struct vd_actor_options options = { .name = "later", .run = change_later, .arg = &later };
	struct vd_env	       *env;
	struct vdi_ready	ready;
	struct vd_error		error = { 0 };
	vd_mono			begin;
	char			longest[2 * VD_ERROR_MESSAGE_SIZE];

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	vdi_ready_init(&ready, env);
	later.ready = &ready;
	assert_status(vd_actor_new(env, &options, &later.actor), VD_OK);
	begin = vd_env_now(env);
	vdi_ready_set_pending(&ready, "the disk is on fire");
	assert_status(vdi_ready_wait(&ready, vd_mono_add(begin, VD_SECONDS(3)), &error), VD_NOT_READY);
	assert_int_equal(vd_mono_since(vd_env_now(env), begin).ns, VD_SECONDS(3).ns);
	assert_string_equal(error.message, "storage is (re)initializing: the disk is on fire");
	assert_int_equal(error.retry_after_s, 1);
	assert_null(ready.waiters);
	vdi_ready_set_pending(&ready, ""); /* no reason any more */
	assert_status(vdi_ready_check(&ready, NULL, &error), VD_NOT_READY);
	assert_string_equal(error.message, "storage is (re)initializing");
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	vdi_ready_set_pending(&ready, longest);
	assert_int_equal(strlen(ready.error), sizeof ready.error - 1);
	/* In the middle of the wait. */
	later.change = vdi_ready_set_ready;
	begin = vd_env_now(env);
	vd_actor_set_timer(later.actor, vd_mono_add(begin, VD_SECONDS(1)));
	memset(&error, 0, sizeof error);
	assert_status(vdi_ready_wait(&ready, vd_mono_add(begin, VD_SECONDS(3)), &error), VD_OK);
	assert_int_equal(vd_mono_since(vd_env_now(env), begin).ns, VD_SECONDS(1).ns);
	assert_int_equal(error.code, VD_OK); /* nothing is said about what goes well */
	assert_string_equal(error.message, "");
	assert_status(vdi_ready_wait(&ready, begin, &error), VD_OK);
	/* Ready, and pending again before who waits has looked: it waits on. */
	vdi_ready_set_pending(&ready, NULL);
	later.change = flap;
	begin = vd_env_now(env);
	vd_actor_set_timer(later.actor, vd_mono_add(begin, VD_SECONDS(1)));
	assert_status(vdi_ready_wait(&ready, vd_mono_add(begin, VD_SECONDS(3)), &error), VD_NOT_READY);
	assert_int_equal(vd_mono_since(vd_env_now(env), begin).ns, VD_SECONDS(3).ns);
	assert_string_equal(error.message, "storage is (re)initializing: again");
	assert_null(ready.waiters);
	later.change = vdi_ready_stop;
	begin = vd_env_now(env);
	vd_actor_set_timer(later.actor, vd_mono_add(begin, VD_SECONDS(1)));
	assert_status(vdi_ready_wait(&ready, VD_NEVER, &error), VD_CLOSED);
	assert_status(error.code, VD_CLOSED);
	assert_string_equal(error.message, "apiserver cacher is stopped");
	assert_status(vdi_ready_wait(&ready, VD_NEVER, NULL), VD_CLOSED);
	assert_status(vdi_ready_check(&ready, NULL, NULL), VD_CLOSED);
	vd_actor_close(later.actor, NULL, NULL);
	vdi_sim_run_until_idle(env);
	vdi_ready_fini(&ready);
	vd_env_free(env);
}

static void t137_r514_retry_after(void **state)
{
	static const uint32_t table[][2] = { { 0, 1 },	 { 14, 2 },  { 20, 3 },	 { 30, 6 },
					     { 40, 11 }, { 50, 20 }, { 57, 30 }, { 100000, 30 } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(table); i++)
		assert_int_equal(vdi_ready_retry_after_s(VD_SECONDS(table[i][0])), table[i][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(t148_r512_states_and_words),
					    cmocka_unit_test(who_listens_is_told_once),
					    cmocka_unit_test(t137_r514_retry_after),
					    cmocka_unit_test(r510_r513_waiting_for_it) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
