/* Unit tests of lib/wait.c, with threads and in the simulator. */
#include "actor_sim.h"
#include "expect_panic.h"
#include "wait.h"

static void signal_it(void *arg)
{
	vdi_wait_signal(arg);
}

static void wait_for_an_actor(struct vd_env *env)
{
	for (int i = 0; i < 100; i++) {
		struct vdi_wait		wait;
		struct vd_actor_options options = { .name = "signaller", .run = signal_it, .arg = &wait };
		struct vd_actor	       *actor;

		vdi_wait_init(&wait, env);
		assert_status(vd_actor_new(env, &options, &actor), VD_OK);
		assert_false(vdi_wait_is_done(&wait));
		if (i % 2)
			vd_actor_wake(actor);
		else
			vd_actor_set_timer(actor, vd_mono_add(vd_env_now(env), VD_US(50)));
		vdi_wait_wait(&wait);
		assert_true(vdi_wait_is_done(&wait));
		assert_true(vdi_wait_until(&wait, vd_env_now(env))); /* still done */
		vdi_wait_fini(&wait);
		vdi_wait_for_actor_close(env, actor);
	}
	vdi_wait_for_actor_close(env, NULL);
}

static void give_up_at_the_deadline(struct vd_env *env)
{
	struct vdi_wait wait;
	vd_mono		due = vd_mono_add(vd_env_now(env), VD_MS(2));

	vdi_wait_init(&wait, env);
	assert_false(vdi_wait_until(&wait, (vd_mono) { 0 }));
	assert_false(vdi_wait_until(&wait, due));
	assert_true(vd_env_now(env).ns >= due.ns);
	vdi_wait_fini(&wait);
}

static void waiting_with_threads_blocks(void **state)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;
	struct vd_env	     *env;

	(void) state;
	options.threads = 2;
	assert_status(vd_env_new_threads(&options, &env), VD_OK);
	wait_for_an_actor(env);
	give_up_at_the_deadline(env);
	vd_env_free(env);
}

static void waiting_in_the_simulator_runs_it(void **state)
{
	struct vd_env *env;

	(void) state;
	assert_status(vdi_env_new_sim(3, NULL, NULL, &env), VD_OK);
	wait_for_an_actor(env);
	give_up_at_the_deadline(env);
	vd_env_free(env);
}

static void wait_for_nothing(void)
{
	struct vdi_wait wait;
	struct vd_env  *env;

	assert_status(vdi_env_new_sim(3, NULL, NULL, &env), VD_OK);
	vdi_wait_init(&wait, env);
	vdi_wait_wait(&wait);
}

static void waiting_for_what_can_never_happen_is_found(void **state)
{
	(void) state;
	expect_panic(wait_for_nothing, "check failed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiting_with_threads_blocks),
		cmocka_unit_test(waiting_in_the_simulator_runs_it),
		cmocka_unit_test(waiting_for_what_can_never_happen_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
