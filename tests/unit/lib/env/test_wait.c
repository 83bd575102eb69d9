/* Unit tests of lib/env/wait.c, with threads and in the simulator. */
#include "actor_sim.h"
#include "expect_panic.h"
#include "thread.h"
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

/* ---- Rounds ---- */

#define WAITS 75 /* more than two times as many as are kept together */

struct sleeper {
	struct vdi_thread thread;
	struct vdi_wait	 *wait;
	struct vdi_wait	  on_stack;
};

/* As the blocking calls do: the wait is gone, and its memory is something else, as soon as it is over. */
static void *sleeper_run(void *arg)
{
	struct sleeper *sleeper = arg;

	vdi_wait_wait(sleeper->wait);
	vdi_wait_fini(sleeper->wait);
	memset(sleeper->wait, 0xa5, sizeof *sleeper->wait);
	return NULL;
}

static void a_round_gets_everybody_up(void **state)
{
	struct vd_env *env;

	(void) state;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	for (unsigned count = 0; count <= WAITS; count += count < 6 ? 1 : 23) {
		struct sleeper	      sleepers[WAITS];
		struct vdi_wait_batch batch;

		for (unsigned i = 0; i < count; i++) {
			sleepers[i].wait = &sleepers[i].on_stack;
			vdi_wait_init_chained(sleepers[i].wait, env);
			assert_status(
				vdi_thread_start(&sleepers[i].thread, "sleeper", sleeper_run, &sleepers[i]),
				VD_OK);
		}
		vdi_wait_batch_begin(&batch);
		for (unsigned i = 0; i < count; i++)
			vdi_wait_signal(sleepers[i].wait);
		vdi_wait_batch_end(&batch);
		for (unsigned i = 0; i < count; i++)
			vdi_thread_join(&sleepers[i].thread);
	}
	vd_env_free(env);
}

static unsigned count_done(struct vdi_wait *waits, unsigned count)
{
	unsigned done = 0;

	for (unsigned i = 0; i < count; i++)
		done += vdi_wait_is_done(&waits[i]);
	return done;
}

static void whoever_is_got_up_by_a_round_gets_up_others(void **state)
{
	struct vdi_wait_batch batch, inner;
	struct vdi_wait	      waits[WAITS], plain, late;
	struct vd_env	     *env;

	(void) state;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	vdi_wait_init(&plain, env);
	vdi_wait_init_chained(&late, env);
	for (unsigned i = 0; i < WAITS; i++)
		vdi_wait_init_chained(&waits[i], env);
	vdi_wait_batch_begin(&batch);
	for (unsigned i = 0; i < 31; i++)
		vdi_wait_signal(&waits[i]);
	vdi_wait_signal(&plain);
	assert_true(vdi_wait_is_done(&plain)); /* it may never be waited for */
	assert_int_equal(count_done(waits, WAITS), 0);
	vdi_wait_signal(&waits[31]); /* not more than 32 hang on one */
	assert_int_equal(count_done(waits, WAITS), 2);
	vdi_wait_batch_begin(&inner);
	for (unsigned i = 32; i < WAITS; i++)
		vdi_wait_signal(&waits[i]);
	assert_int_equal(count_done(waits, WAITS), 4);
	vdi_wait_batch_end(&inner);
	assert_int_equal(count_done(waits, WAITS), 6);
	vdi_wait_signal(&late); /* of the outer one again */
	assert_false(vdi_wait_is_done(&late));
	vdi_wait_batch_end(&batch);
	assert_true(vdi_wait_is_done(&late));
	for (unsigned seen = 0; seen < WAITS;)
		for (unsigned i = 0; i < WAITS; i++)
			if (waits[i].env && vdi_wait_is_done(&waits[i])) {
				vdi_wait_wait(&waits[i]);
				assert_true(vdi_wait_until(&waits[i],
							   (vd_mono) { 0 })); /* and signals nobody twice */
				vdi_wait_fini(&waits[i]);
				seen++;
			}
	vdi_wait_fini(&plain);
	vdi_wait_fini(&late);
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
		cmocka_unit_test(a_round_gets_everybody_up),
		cmocka_unit_test(whoever_is_got_up_by_a_round_gets_up_others),
		cmocka_unit_test(waiting_for_what_can_never_happen_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
