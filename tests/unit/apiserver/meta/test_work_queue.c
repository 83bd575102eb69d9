/* Unit tests of apiserver/meta/work_queue.c: all that is posted runs once, on other threads, and the queue
 * has an end. */
#include <stdatomic.h>

#include "actor_sim.h"
#include "base.h"
#include "env.h"
#include "vdtest.h"
#include "wait.h"
#include "work_queue.h"

struct piece {
	struct vdi_work	 work;
	struct vdi_wait *go; /* NULL: do not wait */
	struct vdi_wait	 done;
	unsigned	 runs;
	bool		 was_current;
};

static void run(struct vdi_work *work)
{
	struct piece *piece = VDI_CONTAINER_OF(work, struct piece, work);

	piece->runs++;
	piece->was_current = vdi_work_is_current();
	if (piece->go)
		vdi_wait_wait(piece->go);
	vdi_wait_signal(&piece->done);
}

static void all_that_is_posted_runs_once(void **state)
{
	static struct piece   pieces[VDI_WORK_THREADS + VDI_WORK_COUNT_MAX + 1];
	struct vd_env	     *env;
	struct vdi_work_queue queue = { 0 };
	struct vdi_wait	      go[VDI_WORK_THREADS];
	size_t		      posted = 0;
	vd_status	      status = VD_OK;

	(void) state;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	assert_status(vdi_work_queue_init(&queue, env, "long_work"), VD_OK);
	for (size_t i = 0; i < VDI_WORK_THREADS; i++)
		vdi_wait_init(&go[i], env);
	/* The first ones hold the threads, so the others wait in the queue; whether the threads have taken
	 * theirs by now is not known. */
	for (; status == VD_OK && posted < VDI_ARRAY_SIZE(pieces); posted += status == VD_OK) {
		pieces[posted] = (struct piece) { .work = { run },
						  .go = posted < VDI_WORK_THREADS ? &go[posted] : NULL };
		vdi_wait_init(&pieces[posted].done, env);
		status = vdi_work_queue_post(&queue, &pieces[posted].work);
	}
	assert_status(status, VD_FULL);
	vdi_wait_fini(&pieces[posted].done);
	assert_in_range(posted, VDI_WORK_COUNT_MAX, VDI_WORK_COUNT_MAX + VDI_WORK_THREADS);
	for (size_t i = 0; i < VDI_WORK_THREADS; i++)
		vdi_wait_signal(&go[i]);
	for (size_t i = 0; i < posted; i++) {
		vdi_wait_wait(&pieces[i].done);
		vdi_wait_fini(&pieces[i].done);
	}
	vdi_work_queue_fini(&queue);
	for (size_t i = 0; i < posted; i++) {
		assert_int_equal(pieces[i].runs, 1);
		assert_true(pieces[i].was_current);
	}
	assert_false(vdi_work_is_current());
	for (size_t i = 0; i < VDI_WORK_THREADS; i++)
		vdi_wait_fini(&go[i]);
	vd_env_free(env);
}

/* A thread that has run work may run other actors later. */
static void a_thread_is_current_only_during_work(void **state)
{
	struct vd_env	     *env;
	struct vdi_work_queue queue = { 0 };
	struct piece	      piece = { .work = { run } };

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vdi_work_queue_init(&queue, env, "long_work"), VD_OK);
	vdi_wait_init(&piece.done, env);
	assert_status(vdi_work_queue_post(&queue, &piece.work), VD_OK);
	assert_int_equal(piece.runs, 0);
	vdi_wait_wait(&piece.done);
	assert_true(piece.was_current);
	assert_false(vdi_work_is_current());
	vdi_wait_fini(&piece.done);
	vdi_work_queue_fini(&queue);
	vdi_work_queue_fini(&queue); /* of one that has ended, as of one that never began */
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_posted_runs_once),
		cmocka_unit_test(a_thread_is_current_only_during_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
