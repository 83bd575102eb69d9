/* Unit tests of lib/env/parallel.c. */
#include "vdtest.h"

#include <pthread.h>
#include <vedette/env.h>

#include "actor_sim.h"
#include "parallel.h"

struct seen {
	pthread_t threads[VDI_PARALLEL_MAX];
	unsigned  times[VDI_PARALLEL_MAX];
	unsigned  order[VDI_PARALLEL_MAX];
	unsigned  count; /* of a simulated env only: there is one thread */
	bool	  is_sim;
};

static void note(void *arg, unsigned part)
{
	struct seen *seen = arg;

	seen->threads[part] = pthread_self();
	seen->times[part]++;
	if (seen->is_sim)
		seen->order[seen->count++] = part;
}

static void every_part_runs_once_and_the_first_here(void **state)
{
	struct vd_env *env;

	(void) state;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	for (unsigned count = 0; count <= VDI_PARALLEL_MAX; count++) {
		struct seen seen = { .is_sim = false };

		vdi_parallel(env, count, note, &seen);
		for (unsigned i = 0; i < VDI_PARALLEL_MAX; i++)
			assert_int_equal(seen.times[i], i < count);
		assert_true(count == 0 || pthread_equal(seen.threads[0], pthread_self()));
	}
	assert_in_range(vdi_parallel_width(env), 1, VDI_PARALLEL_MAX);
	vd_env_free(env);
}

static void a_simulated_world_has_one_thread(void **state)
{
	struct seen    seen = { .is_sim = true };
	struct vd_env *env;

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_int_equal(vdi_parallel_width(env), 1);
	vdi_parallel(env, VDI_PARALLEL_MAX, note, &seen);
	assert_int_equal(seen.count, VDI_PARALLEL_MAX);
	for (unsigned i = 0; i < VDI_PARALLEL_MAX; i++) {
		assert_int_equal(seen.order[i], i);
		assert_true(pthread_equal(seen.threads[i], pthread_self()));
	}
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_runs_once_and_the_first_here),
		cmocka_unit_test(a_simulated_world_has_one_thread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
