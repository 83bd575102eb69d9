/* The work queue under preemption: additions, delays, retries, workers and callbacks interleave at every
 * lock, and the queue is shut down or closed at any moment. Each key is processed by one worker at a time,
 * and after its last addition once more. */
#include <vedette/work_queue.h>

#include "actor_sim.h"
#include "env.h"
#include "vdtest.h"

enum { KEYS = 6, WORKS_MAX = 8, STEPS = 300 };

struct race {
	struct vd_env	     *env;
	struct vd_work_queue *queue;
	struct vd_work	     *works[WORKS_MAX];
	unsigned	      keys[WORKS_MAX], work_count;
	bool		      in_work[KEYS];
	bool		      is_needed[KEYS]; /* added since its last processing began */
	bool		      is_closed, is_drained, takes;
	unsigned	      ready;
};

static const char *const names[KEYS] = { "a", "b", "c", "d", "e", "f" };

static unsigned draw(struct race *race, unsigned bound)
{
	return (unsigned) vd_env_random_below(race->env, bound);
}

static unsigned begin(struct race *race, struct vd_bytes key)
{
	unsigned at = (unsigned) (((const char *) key.data)[0] - 'a');

	assert_false(race->in_work[at]);
	race->in_work[at] = true;
	race->is_needed[at] = false;
	return at;
}

static void finish(struct race *race, struct vd_work *work, unsigned at)
{
	enum vd_work_result result = draw(race, 3);

	race->in_work[at] = false;
	if (result != VD_WORK_DONE && !vd_work_queue_is_shutting_down(race->queue))
		race->is_needed[at] = true;
	(void) vdi_sim_set_atomic(race->env, false);
	vd_work_finish(work, result, VD_MS(1 + at));
	(void) vdi_sim_set_atomic(race->env, true);
}

static void work(void *arg, struct vd_work *work, struct vd_bytes key)
{
	struct race *race = arg;
	bool	     was_atomic = vdi_sim_set_atomic(race->env, true);
	unsigned     at = begin(race, key);

	if (draw(race, 2)) {
		finish(race, work, at);
	} else {
		race->keys[race->work_count] = at;
		race->works[race->work_count++] = work;
	}
	(void) vdi_sim_set_atomic(race->env, was_atomic);
}

static void finish_some(struct race *race)
{
	struct vd_work *last;

	if (race->work_count == 0)
		return;
	last = race->works[--race->work_count];
	finish(race, last, race->keys[race->work_count]);
}

static void note_ready(void *arg)
{
	((struct race *) arg)->ready++;
}

static void note_closed(void *arg)
{
	((struct race *) arg)->is_closed = true;
}

static void note_drained(void *arg, vd_status status)
{
	struct race *race = arg;

	assert_status(status, VD_OK);
	race->is_drained = true;
}

static void add_some(struct race *race)
{
	unsigned  at = draw(race, KEYS), kind = draw(race, 3);
	vd_status status;

	race->is_needed[at] = true;
	(void) vdi_sim_set_atomic(race->env, false);
	if (kind == 0)
		status = vd_work_queue_add(race->queue, vd_bytes_of(names[at]));
	else if (kind == 1)
		status = vd_work_queue_add_after(race->queue, vd_bytes_of(names[at]), VD_MS(at * 3));
	else
		status = vd_work_queue_add_rate_limited(race->queue, vd_bytes_of(names[at]));
	(void) vdi_sim_set_atomic(race->env, true);
	assert_status(status, VD_OK);
}

/* A consumer beside the workers. */
static void take_some(struct race *race)
{
	struct vd_bytes key;
	vd_status	status;
	unsigned	at;

	(void) vdi_sim_set_atomic(race->env, false);
	status = vd_work_queue_get(race->queue, note_ready, race, &key);
	(void) vdi_sim_set_atomic(race->env, true);
	if (status != VD_OK) {
		assert_status(status, VD_AGAIN);
		return;
	}
	at = begin(race, key);
	race->in_work[at] = false;
	(void) vdi_sim_set_atomic(race->env, false);
	vd_work_queue_done(race->queue, key);
	(void) vdi_sim_set_atomic(race->env, true);
}

static void race_open(struct race *race, uint64_t seed)
{
	struct vd_work_queue_options options = VD_WORK_QUEUE_OPTIONS_INIT;
	struct vd_worker_options     workers = VD_WORKER_OPTIONS_INIT;

	*race = (struct race) { 0 };
	options.limits.failure_base = VD_MS(1);
	options.limits.failure_max = VD_MS(20);
	options.limits.qps = 0;
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &race->env), VD_OK);
	assert_status(vdi_sim_set_preemptions(race->env, 4), VD_OK);
	assert_status(vd_work_queue_new(race->env, &options, &race->queue, NULL), VD_OK);
	workers.concurrency = 1 + draw(race, 4);
	workers.work = work;
	workers.arg = race;
	assert_status(vd_work_queue_run(race->queue, &workers, NULL), VD_OK);
}

static void step(struct race *race)
{
	switch (draw(race, 6)) {
	case 0:
	case 1: add_some(race); break;
	case 2: finish_some(race); break;
	case 3:
		if (race->takes || race->ready) {
			race->takes = false;
			race->ready = 0;
			take_some(race);
		}
		break;
	case 4: vdi_sim_advance(race->env, VD_US(draw(race, 3000))); break;
	default:
		for (unsigned i = draw(race, 8); i; i--)
			(void) vdi_sim_step(race->env);
	}
}

static void rest(struct race *race)
{
	for (unsigned i = 0; i < 2000; i++) {
		finish_some(race);
		vdi_sim_advance(race->env, VD_MS(1));
		if (race->ready) {
			race->ready = 0;
			take_some(race);
		}
	}
}

static void k102_k112_no_key_is_lost_or_processed_twice_at_once(void **state)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		static struct race race;
		bool		   drains = seed % 2;

		race_open(&race, seed);
		race.takes = seed % 3 == 0;
		for (unsigned i = 0; i < STEPS; i++)
			step(&race);
		if (drains) {
			rest(&race); /* a result other than done may add a key again at any time */
			for (unsigned i = 0; i < KEYS; i++)
				assert_true(!race.is_needed[i] || !race.in_work[i]);
			assert_status(vd_work_queue_shutdown_drain(race.queue, note_drained, &race), VD_OK);
			while (race.work_count)
				finish_some(&race);
			vdi_sim_advance(race.env, VD_SECONDS(1));
			while (race.work_count) {
				finish_some(&race);
				vdi_sim_advance(race.env, VD_SECONDS(1));
			}
			assert_true(race.is_drained);
			assert_int_equal(vd_work_queue_len(race.queue), 0);
		}
		vd_work_queue_close(race.queue, note_closed, &race);
		vdi_sim_advance(race.env, VD_SECONDS(1));
		while (race.work_count) {
			struct vd_work *last = race.works[--race.work_count];

			assert_false(race.is_closed);
			vd_work_finish(last, VD_WORK_RETRY, VD_MS(0));
			vdi_sim_advance(race.env, VD_SECONDS(1));
		}
		assert_true(race.is_closed);
		vd_env_free(race.env);
	}
}

/* Workers that always succeed: after the last addition each key is processed once more. */
static void work_well(void *arg, struct vd_work *work, struct vd_bytes key)
{
	struct race *race = arg;
	bool	     was_atomic = vdi_sim_set_atomic(race->env, true);
	unsigned     at = begin(race, key);

	(void) vdi_sim_set_atomic(race->env, false);
	(void) vd_work_num_requeues(work); /* others run here */
	(void) vdi_sim_set_atomic(race->env, true);
	race->in_work[at] = false;
	(void) vdi_sim_set_atomic(race->env, was_atomic);
	vd_work_finish(work, VD_WORK_DONE, VD_MS(0));
}

static void k101_after_its_last_addition_each_key_is_processed(void **state)
{
	uint64_t preemptions = 0;

	for (uint64_t seed = 0; seed < 200; seed++) {
		static struct race	 race;
		struct vd_worker_options workers = VD_WORKER_OPTIONS_INIT;

		race = (struct race) { 0 };
		assert_status(vdi_env_new_sim(seed, NULL, NULL, &race.env), VD_OK);
		assert_status(vdi_sim_set_preemptions(race.env, 4), VD_OK);
		assert_status(vd_work_queue_new(race.env, NULL, &race.queue, NULL), VD_OK);
		workers.concurrency = 3;
		workers.work = work_well;
		workers.arg = &race;
		assert_status(vd_work_queue_run(race.queue, &workers, NULL), VD_OK);
		for (unsigned i = 0; i < STEPS; i++) {
			if (draw(&race, 2))
				add_some(&race);
			else
				(void) vdi_sim_step(race.env);
		}
		vdi_sim_advance(race.env, VD_SECONDS(10000));
		for (unsigned i = 0; i < KEYS; i++)
			assert_false(race.is_needed[i]);
		vd_work_queue_close_wait(race.queue);
		preemptions += vdi_sim_preemptions(race.env);
		vd_env_free(race.env);
	}
	assert_in_range(preemptions, 1000, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(k102_k112_no_key_is_lost_or_processed_twice_at_once),
		cmocka_unit_test(k101_after_its_last_addition_each_key_is_processed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
