/* The ready state: messages, generation, and how long clients are told to stay away. */
#include "vdtest.h"

#include "actor_sim.h"
#include "ready.h"

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
	struct vdi_ready_waiter waiters[] = { { .told = count, .arg = &told[0] }, { .told = count, .arg = &told[1] }, { .told = count, .arg = &told[2] } };
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

static void t137_r514_retry_after(void **state)
{
	static const uint32_t table[][2] = { { 0, 1 }, { 14, 2 }, { 20, 3 }, { 30, 6 }, { 40, 11 }, { 50, 20 }, { 57, 30 }, { 100000, 30 } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(table); i++)
		assert_int_equal(vdi_ready_retry_after_s(VD_SECONDS(table[i][0])), table[i][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(t148_r512_states_and_words), cmocka_unit_test(who_listens_is_told_once), cmocka_unit_test(t137_r514_retry_after) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
