/* An informer's queue between the thread that delivers and its actor, under preemption: more comes at once
 * than fits, handlers come and go, and it is closed at any moment. */
#include "cacher_fixture.h"

#include <vedette/informer.h>

#include "env.h"
#include "informer_queue.h"

#define PODS (VDI_INFORMER_QUEUE_MAX + 50)

struct seen {
	unsigned adds;
	unsigned updates;
	vd_rev	 last; /* of an update */
	bool	 is_over;
};

struct race {
	struct cacher_fixture f;
	struct vd_informer   *informer;
	struct seen	      seen, late;
	unsigned	      answers;
};

static void on_add(void *arg, struct vd_object *object, bool initial)
{
	struct seen *seen = arg;

	(void) object;
	(void) initial;
	assert_false(seen->is_over);
	seen->adds++;
}

static void on_update(void *arg, struct vd_object *old_object, struct vd_object *object)
{
	struct seen *seen = arg;

	assert_false(seen->is_over);
	assert_true(vd_object_revision(old_object) < vd_object_revision(object));
	assert_true(vd_object_revision(object) > seen->last);
	seen->last = vd_object_revision(object);
	seen->updates++;
}

static void on_remove(void *arg, struct vd_object *last_state, bool unknown_final_state)
{
	(void) arg;
	(void) last_state;
	(void) unknown_final_state;
	fail_msg("nothing was deleted");
}

static struct vd_informer_handler handler_of(struct seen *seen)
{
	return (struct vd_informer_handler) {
		.add = on_add, .update = on_update, .remove = on_remove, .arg = seen
	};
}

static void over(void *arg)
{
	((struct seen *) arg)->is_over = true;
}

static void put_done(void *arg, vd_status status, const struct vd_txn_result *result,
		     const struct vd_error *error)
{
	(void) result;
	(void) error;
	assert_status(status, VD_OK);
	++*(unsigned *) arg;
}

/* Nobody waits for the answer. */
static void start_put(struct race *race, unsigned number)
{
	char		      key[64], name[16], value[512];
	struct vd_op	      op = { .kind = VD_OP_PUT };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	snprintf(name, sizeof name, "p%u", number);
	snprintf(key, sizeof key, "/registry/pods/ns/%s", name);
	write_pod(value, sizeof value, "ns", name, "x", NULL);
	op.key = vd_bytes_of(key);
	op.value = vd_bytes_of(value);
	assert_status(vd_store_txn(race->f.store, &request, put_done, &race->answers), VD_OK);
}

static void run_some(struct race *race, uint64_t steps_max)
{
	for (uint64_t steps = vd_env_random_below(race->f.env, steps_max); steps; steps--)
		(void) vdi_sim_step(race->f.env);
}

static void race_open(struct race *race, uint64_t seed)
{
	struct vd_informer_handler handler = handler_of(&race->seen);

	memset(race, 0, sizeof *race);
	cacher_fixture_init_preempted(&race->f, seed, 3, VD_US(0));
	for (unsigned i = 0; i < PODS; i++)
		start_put(race, i);
	cacher_fixture_open(&race->f, NULL);
	cacher_fixture_settle(&race->f);
	assert_int_equal(race->answers, PODS);
	assert_status(vd_informer_new(race->f.cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler,
				      &race->informer, NULL),
		      VD_OK);
}

/* Writes all pods in an order of their own, in bursts that do not fit into the queue. */
static void write_all(struct race *race)
{
	for (unsigned i = 0; i < PODS; i++) {
		start_put(race, i * 7 % PODS);
		if (i % 50 == 0)
			run_some(race, 12);
	}
}

static void each_change_comes_once_through_a_full_queue(void **state)
{
	static struct race race;

	(void) state;
	for (uint64_t seed = 0; seed < 25; seed++) {
		race_open(&race, seed);
		run_some(&race, 20);
		cacher_fixture_settle(&race.f);
		assert_int_equal(race.seen.adds, PODS);
		for (unsigned round = 1; round <= 2; round++) {
			write_all(&race);
			cacher_fixture_settle(&race.f);
			assert_int_equal(race.seen.adds, PODS);
			assert_int_equal(race.seen.updates, round * PODS);
		}
		assert_int_equal(race.seen.last, vd_informer_revision(race.informer));
		vd_informer_close_wait(race.informer);
		cacher_fixture_teardown(&race.f);
	}
}

/* A handler that is added among changes gets each object once, then each change behind what it was given. */
static void a_late_handler_misses_nothing(void **state)
{
	static struct race race;

	(void) state;
	for (uint64_t seed = 100; seed < 125; seed++) {
		struct vd_informer_registration *registration;
		struct vd_informer_handler	 handler = handler_of(&race.late);
		unsigned			 updates;

		race_open(&race, seed);
		cacher_fixture_settle(&race.f);
		write_all(&race);
		assert_status(vd_informer_add_handler(race.informer, &handler, &registration, NULL), VD_OK);
		run_some(&race, 30);
		write_all(&race);
		cacher_fixture_settle(&race.f);
		assert_int_equal(race.late.adds, PODS);
		assert_int_equal(race.seen.updates, 2 * PODS);
		assert_int_equal(race.late.last, race.seen.last);
		updates = race.late.updates;
		assert_in_range(updates, PODS, 2 * PODS);
		write_all(&race);
		run_some(&race, 30);
		vd_informer_remove_handler(race.informer, registration, over, &race.late);
		cacher_fixture_settle(&race.f);
		assert_true(race.late.is_over);
		assert_int_equal(race.seen.updates, 3 * PODS);
		vd_informer_close_wait(race.informer);
		cacher_fixture_teardown(&race.f);
	}
}

/* What is in the queue then is released (the fixture counts), and no handler is called behind the end. */
static void closed_at_any_moment(void **state)
{
	static struct race race;

	(void) state;
	for (uint64_t seed = 200; seed < 240; seed++) {
		race_open(&race, seed);
		run_some(&race, 40);
		write_all(&race);
		run_some(&race, 40);
		vd_informer_close(race.informer, over, &race.seen);
		cacher_fixture_settle(&race.f);
		assert_true(race.seen.is_over);
		cacher_fixture_teardown(&race.f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_change_comes_once_through_a_full_queue),
		cmocka_unit_test(a_late_handler_misses_nothing),
		cmocka_unit_test(closed_at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
