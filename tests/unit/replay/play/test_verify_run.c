/* Unit tests of replay/play/verify_run.c: silent on a right store, whatever the network does to it; loud on
 * one that lies. */
#include <stdio.h>

#include "actor_sim.h"
#include "store_chaos.h"
#include "vdtest.h"
#include "verify_run.h"
#include "wait.h"

#define K(text) vd_bytes_of(text)

/* ---- A store that lies ---- */

enum lie {
	TRUTH,
	DROP,
	DOUBLE,
	REORDER,
	SPLIT,
	EARLY_BOOKMARK,
	STALE_LIST,
	LIST_WITHOUT_A_KEY,
	WRONG_PREVIOUS,
	NO_PREVIOUS,
	PASSED_OVER,
	LOSE_A_WRITE,
	LIE_COUNT
};

struct liar {
	struct vd_store			store;
	struct vd_store		       *inner;
	enum lie			lie;
	unsigned			lies;
	const struct vd_watch_observer *observer; /* of the newest watch */
};
struct liar_watch {
	struct vd_store_watch		base;
	struct vd_store_watch	       *inner;
	const struct vd_watch_observer *observer;
	struct vd_store_event		kept[64]; /* references */
	size_t				kept_count;
	vd_rev				kept_revision;
	bool				has_kept, is_second;
	unsigned			calls;
};

static struct liar *liar_of(struct vd_store *store)
{
	return (struct liar *) store;
}

static void keep(struct liar_watch *watch, const struct vd_store_event *events, size_t count, vd_rev revision)
{
	for (size_t i = 0; i < watch->kept_count; i++) {
		vd_kv_unref(watch->kept[i].kv);
		vd_kv_unref(watch->kept[i].previous);
	}
	watch->kept_count = VDI_MIN(count, VDI_ARRAY_SIZE(watch->kept));
	for (size_t i = 0; i < watch->kept_count; i++) {
		watch->kept[i] = events[i];
		vd_kv_ref(events[i].kv);
		if (events[i].previous)
			vd_kv_ref(events[i].previous);
	}
	watch->kept_revision = revision;
}

static void give_kept(struct liar_watch *watch, struct vd_store_batch *ret_batch)
{
	watch->has_kept = false;
	*ret_batch = (struct vd_store_batch) { watch->kept_revision, watch->kept, watch->kept_count };
}

static vd_status liar_watch_open(struct vd_store *store, const struct vd_store_watch_request *request,
				 struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct liar_watch *watch = calloc(1, sizeof *watch);
	vd_status status = vd_store_watch_open(liar_of(store)->inner, request, &watch->inner, reterr);

	watch->base.store = store;
	watch->observer = liar_of(store)->observer = request->observer;
	if (status == VD_OK)
		*ret_watch = &watch->base;
	else
		free(watch);
	return status;
}

/* As a store that looks at what its source sends. */
static void report(const struct liar_watch *watch, enum vd_watch_fault_kind kind,
		   const struct vd_store_event *event)
{
	assert_non_null(watch->observer);
	watch->observer->fault(watch->observer->arg, &(struct vd_watch_fault) { kind, event->kv->mod_rev,
										vd_kv_key(event->kv), "so" });
}

static vd_status liar_watch_next(struct vd_store_watch *base, size_t max, struct vd_store_batch *ret_batch,
				 struct vd_error *reterr)
{
	struct liar_watch *watch = (struct liar_watch *) base;
	struct liar	  *liar = liar_of(base->store);
	vd_status	   status;

	if (watch->has_kept) {
		give_kept(watch, ret_batch);
		return VD_OK;
	}
	status = vd_store_watch_next(watch->inner, max, ret_batch, reterr);
	if (status != VD_OK || ret_batch->event_count == 0 || ++watch->calls < 20 || liar->lies)
		return status;
	switch (liar->lie) {
	case DROP: liar->lies++; return vd_store_watch_next(watch->inner, max, ret_batch, reterr);
	case DOUBLE:
		liar->lies++;
		keep(watch, ret_batch->events, ret_batch->event_count, ret_batch->revision);
		watch->has_kept = true;
		return VD_OK;
	case REORDER:
		/* Kept until the next one was given. */
		if (!watch->is_second) {
			watch->is_second = true;
			keep(watch, ret_batch->events, ret_batch->event_count, ret_batch->revision);
			return vd_store_watch_next(watch->inner, max, ret_batch, reterr);
		}
		liar->lies++;
		watch->has_kept = true;
		return VD_OK;
	case SPLIT:
		if (ret_batch->event_count < 2 ||
		    ret_batch->events[ret_batch->event_count - 2].kv->mod_rev != ret_batch->revision)
			return VD_OK;
		liar->lies++;
		keep(watch, ret_batch->events + ret_batch->event_count - 1, 1, ret_batch->revision);
		watch->has_kept = true;
		ret_batch->event_count--;
		return VD_OK;
	case EARLY_BOOKMARK:
		liar->lies++;
		keep(watch, ret_batch->events, ret_batch->event_count, ret_batch->revision);
		watch->has_kept = true;
		*ret_batch = (struct vd_store_batch) { ret_batch->revision + 2, NULL, 0 };
		return VD_OK;
	case WRONG_PREVIOUS:
		keep(watch, ret_batch->events, ret_batch->event_count, ret_batch->revision);
		for (size_t i = 0; i < watch->kept_count; i++)
			if (watch->kept[i].previous) {
				liar->lies++;
				vd_kv_unref(watch->kept[i].previous);
				watch->kept[i].previous = vd_kv_ref(watch->kept[i].kv);
				break;
			}
		give_kept(watch, ret_batch);
		return VD_OK;
	case NO_PREVIOUS:
		keep(watch, ret_batch->events, ret_batch->event_count, ret_batch->revision);
		for (size_t i = 0; i < watch->kept_count; i++)
			if (watch->kept[i].previous) {
				liar->lies++;
				watch->kept[i].previous = vd_kv_unref(watch->kept[i].previous);
				report(watch, VD_FAULT_PREVIOUS, &watch->kept[i]);
				break;
			}
		give_kept(watch, ret_batch);
		return VD_OK;
	case PASSED_OVER:
		liar->lies++;
		report(watch, VD_FAULT_REPEATED, &ret_batch->events[0]);
		return VD_OK;
	default: return VD_OK;
	}
}

static vd_status liar_watch_progress(struct vd_store_watch *base)
{
	return vd_store_watch_progress(((struct liar_watch *) base)->inner);
}

static void liar_watch_close(struct vd_store_watch *base)
{
	struct liar_watch *watch = (struct liar_watch *) base;

	keep(watch, NULL, 0, 0);
	vd_store_watch_close(watch->inner);
	free(watch);
}

struct lying_range {
	struct liar *liar;
	vd_range_fn  done;
	void	    *arg;
};

static void without_a_key(void *arg, vd_status status, const struct vd_range_result *result,
			  const struct vd_error *error)
{
	struct lying_range    *call = arg;
	struct vd_range_result lie;

	if (status == VD_OK && result->kv_count > 3 && !result->more && call->liar->lies == 0) {
		call->liar->lies++;
		lie = *result;
		lie.kv_count--;
		lie.count--;
		call->done(call->arg, status, &lie, error);
	} else {
		call->done(call->arg, status, result, error);
	}
	free(call);
}

static vd_status liar_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			    void *arg)
{
	struct liar	       *liar = liar_of(store);
	struct vd_range_request old = *request;
	struct vd_store_status	status;
	struct lying_range     *call;

	assert_status(vd_store_status_get(liar->inner, &status), VD_OK);
	if (liar->lie == STALE_LIST && status.current > 60) {
		/* The state of a while ago, and it says so. */
		liar->lies++;
		old.revision = status.current - 40;
		call = calloc(1, sizeof *call);
		*call = (struct lying_range) { liar, done, arg };
		return vd_store_range(liar->inner, &old, done, arg) == VD_OK ? (free(call), VD_OK) :
									       VD_UNAVAILABLE;
	}
	if (liar->lie == LIST_WITHOUT_A_KEY && status.current > 60) {
		call = calloc(1, sizeof *call);
		*call = (struct lying_range) { liar, done, arg };
		return vd_store_range(liar->inner, request, without_a_key, call);
	}
	return vd_store_range(liar->inner, request, done, arg);
}

static void ignored(void *arg, vd_status status, const struct vd_txn_result *result,
		    const struct vd_error *error)
{
	(void) arg;
	(void) status;
	(void) result;
	(void) error;
}

static vd_status liar_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			  void *arg)
{
	struct liar	      *liar = liar_of(store);
	struct vd_store_status status;

	assert_status(vd_store_status_get(liar->inner, &status), VD_OK);
	if (liar->lie == LOSE_A_WRITE && status.current > 60 && liar->lies == 0) {
		struct vd_op_result   results[2] = { { .kind = VD_OP_PUT }, { .kind = VD_OP_PUT } };
		struct vd_txn_result  result = { .revision = status.current + 1,
						 .succeeded = true,
						 .results = results,
						 .result_count = request->success_count };
		struct vd_op	      op = { .kind = VD_OP_PUT, .key = K("/elsewhere"), .value = K("x") };
		struct vd_txn_request elsewhere = { .success = &op, .success_count = 1 };

		/* Acknowledged, at a revision that belongs to something else. */
		liar->lies++;
		assert_status(vd_store_txn(liar->inner, &elsewhere, ignored, NULL), VD_OK);
		done(arg, VD_OK, &result, NULL);
		return VD_OK;
	}
	return vd_store_txn(liar->inner, request, done, arg);
}

static vd_status liar_status(struct vd_store *store, struct vd_store_status *ret_status)
{
	return vd_store_status_get(liar_of(store)->inner, ret_status);
}

static const struct vd_store_ops liar_ops = {
	.size = sizeof(struct vd_store_ops),
	.range = liar_range,
	.txn = liar_txn,
	.watch = liar_watch_open,
	.watch_next = liar_watch_next,
	.watch_progress = liar_watch_progress,
	.watch_close = liar_watch_close,
	.status = liar_status,
};

/* ---- The world of a test ---- */

struct world {
	struct vd_env		  *env;
	struct vd_store		  *inner, *chaos;
	struct liar		   liar;
	struct vdi_verify_run	  *run;
	unsigned		   violations, failures;
	struct vdi_violation	   first;
	struct vd_error		   failure;
	struct vdi_verify_progress progress;
	vd_mono			   until;
};

static void on_violation(void *arg, const struct vdi_violation *violation)
{
	struct world *world = arg;

	if (world->violations++ == 0)
		world->first = *violation;
}

static void on_failure(void *arg, const struct vd_error *error)
{
	struct world *world = arg;

	world->failures++;
	world->failure = *error;
}

/* Of the worlds that are made. */
static bool one_by_one;

static void world_init(struct world *world, uint64_t seed, enum lie lie, const struct chaos_options *chaos)
{
	struct vd_mvcc_options	  options = VD_MVCC_OPTIONS_INIT;
	struct vdi_verify_options verify = { .prefix = K("/v/"),
					     .write_prefix = K("/v/mine/"),
					     .writers = 3,
					     .one_by_one = one_by_one,
					     .violated = on_violation,
					     .failed = on_failure,
					     .arg = world,
					     .list_interval = VD_MS(300),
					     .resume_interval = VD_MS(200),
					     .progress_interval = VD_MS(250) };

	memset(world, 0, sizeof *world);
	options.history_window = (vd_dur) { 0 };
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world->env), VD_OK);
	vdi_sim_set_step_delay(world->env, VD_MS(1));
	assert_status(vd_store_open_mvcc(world->env, &options, &world->inner, NULL), VD_OK);
	for (int i = 0; i < 2200; i++) {
		char key[32];

		snprintf(key, sizeof key, "/v/other/%d", i % 1100);
		if (i < 1100 || i % 50 == 0)
			assert_status(vd_store_put_wait(world->inner, K(key), K("1"), NULL, NULL), VD_OK);
	}
	world->chaos = chaos_store_new(world->env, world->inner, chaos);
	world->liar = (struct liar) { { &liar_ops, world->env }, world->chaos, lie, 0, NULL };
	verify.store = &world->liar.store;
	assert_status(vdi_verify_run_new(world->env, &verify, &world->run), VD_OK);
}

static void world_end(struct world *world)
{
	struct vdi_wait wait;

	vdi_wait_init(&wait, world->env);
	vdi_verify_run_close(world->run, &world->progress, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	chaos_store_free(world->chaos);
	vd_store_close_wait(world->inner);
	vd_env_free(world->env);
}

static const struct chaos_options calm = { 0 };

static bool is_later(void *arg)
{
	struct world *world = arg;

	return vd_env_now(world->env).ns >= world->until.ns;
}

/* The writers are never idle: time passes with the steps. */
static void pass(struct world *world, vd_dur time)
{
	world->until = vd_mono_add(vd_env_now(world->env), time);
	(void) vdi_sim_run_until(world->env, is_later, world, time);
}

static void a_right_store_is_right_through_every_trouble(void **state)
{
	static const struct chaos_options rough = { .delay = 100,
						    .delay_max = VD_MS(40),
						    .refuse = 60,
						    .lose_answer = 60,
						    .cut = 30,
						    .stall = 100,
						    .refuse_watch = 200 };

	(void) state;
	for (uint64_t seed = 0; seed < 6; seed++) {
		struct world world;

		world_init(&world, seed, TRUTH, seed % 3 ? &rough : &calm);
		pass(&world, VD_SECONDS(5));
		vdi_verify_run_progress_get(world.run, &world.progress);
		if (world.violations || world.failures)
			fail_msg("seed %u: %s %s", (unsigned) seed, world.first.text, world.failure.message);
		assert_true(world.progress.is_running);
		assert_true(world.progress.writes > 50);
		assert_true(world.progress.totals.acknowledgements > 20);
		assert_true(world.progress.totals.lists > 3);
		assert_true(world.progress.totals.resumes > 3);
		assert_true(world.progress.totals.progresses > 5);
		if (seed % 3)
			assert_true(world.progress.reconnects > 3);
		chaos_set(world.chaos, &calm);
		world_end(&world);
		assert_int_equal(world.violations, 0);
	}
}

static void compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) arg;
	(void) revision;
	(void) error;
	assert_status(status, VD_OK);
}

static void compaction_is_no_violation(void **state)
{
	uint64_t restarts = 0;

	(void) state;
	for (uint64_t seed = 0; seed < 3; seed++) {
		static const struct chaos_options cut = { .cut = 50, .refuse_watch = 700 };
		struct world			  world;

		world_init(&world, seed, TRUTH, &cut);
		for (int i = 0; i < 40; i++) {
			struct vd_store_status status;

			pass(&world, VD_MS(200));
			assert_status(vd_store_status_get(world.inner, &status), VD_OK);
			if (status.current > status.compacted &&
			    vd_store_compact(world.inner, status.current, false, compacted, NULL) != VD_OK)
				fail();
		}
		vdi_verify_run_progress_get(world.run, &world.progress);
		if (world.violations || world.failures)
			fail_msg("seed %u: %s %s", (unsigned) seed, world.first.text, world.failure.message);
		restarts += world.progress.restarts;
		chaos_set(world.chaos, &calm);
		world_end(&world);
	}
	assert_true(restarts > 0);
}

static void every_lie_is_found(void **state)
{
	(void) state;
	for (int lie = TRUTH + 1; lie < LIE_COUNT; lie++) {
		unsigned found = 0, told = 0;

		for (uint64_t seed = 0; seed < 2; seed++) {
			struct world world;

			world_init(&world, seed, (enum lie) lie, &calm);
			for (int i = 0; i < 200 && world.violations == 0; i++)
				pass(&world, VD_MS(100));
			told += world.liar.lies > 0;
			found += world.violations > 0;
			assert_int_equal(world.failures, 0);
			world_end(&world);
		}
		if (told < 2 || found < 2)
			fail_msg("lie %d: told in %u runs, found in %u", lie, told, found);
	}
}

/* A previous record that was compacted may be missing, and a create has none. */
static void a_missing_previous_record_is_looked_up(void **state)
{
	struct world	       world;
	struct vd_watch_fault  fault = { VD_FAULT_PREVIOUS, 50, K("/v/other/7"), "missing" };
	struct vd_store_status status;

	(void) state;
	world_init(&world, 1, TRUTH, &calm);
	pass(&world, VD_SECONDS(1));
	assert_status(vd_store_status_get(world.inner, &status), VD_OK);
	if (vd_store_compact(world.inner, status.current, false, compacted, NULL) != VD_OK)
		fail();
	pass(&world, VD_SECONDS(1));
	assert_non_null(world.liar.observer);
	world.liar.observer->fault(world.liar.observer->arg, &fault);
	fault.key = K("/v/never/there");
	fault.revision = status.current + 2;
	world.liar.observer->fault(world.liar.observer->arg, &fault);
	pass(&world, VD_SECONDS(1));
	assert_int_equal(world.violations, 0);
	fault.key = K("/v/other/7"); /* there it was */
	for (int i = 0; i < 200; i++)
		world.liar.observer->fault(world.liar.observer->arg, &fault);
	pass(&world, VD_SECONDS(5));
	assert_in_range(world.violations, 1, 70);
	assert_int_equal(world.first.guarantee, VDI_PROTOCOL); /* more at once than are kept */
	world_end(&world);
}

static void drive_and_look(uint64_t seed, const struct chaos_options *chaos)
{
	struct world	world;
	struct vdi_wait wait;
	struct vd_kv   *kv = NULL;

	world_init(&world, seed, TRUTH, chaos);
	pass(&world, VD_SECONDS(2));
	vdi_wait_init(&wait, world.env);
	vdi_verify_run_close(world.run, &world.progress, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	assert_true(world.progress.writes > 20);
	for (int i = 0; i < 64; i++) {
		char key[32];

		snprintf(key, sizeof key, "/v/mine/key-%03d", i);
		assert_status(vd_store_get_wait(world.inner, K(key), &kv, NULL), VD_NOT_FOUND);
	}
	assert_int_equal(world.violations, 0);
	assert_int_equal(world.failures, 0);
	chaos_store_free(world.chaos);
	vd_store_close_wait(world.inner);
	vd_env_free(world.env);
}

static void it_leaves_nothing_behind(void **state)
{
	(void) state;
	drive_and_look(3, &calm);
}

/* A store without ranges to delete; what is refused, and of what the answer is lost, is deleted again. */
static void it_leaves_nothing_behind_key_by_key(void **state)
{
	static const struct chaos_options rough = {
		.delay = 100, .delay_max = VD_MS(40), .refuse = 200, .lose_answer = 100
	};
	/* Each answer takes its own time: some writers are idle long before the last put is applied. */
	static const struct chaos_options slow = { .delay = 500, .delay_max = VD_MS(400) };

	(void) state;
	one_by_one = true;
	for (uint64_t seed = 0; seed < 4; seed++)
		drive_and_look(seed, seed ? &rough : &calm);
	for (uint64_t seed = 0; seed < 16; seed++)
		drive_and_look(seed, &slow);
	one_by_one = false;
}

static void it_closes_at_any_moment(void **state)
{
	static const struct chaos_options slow = { .delay = 500, .delay_max = VD_MS(30), .cut = 50 };

	(void) state;
	for (unsigned steps = 0; steps < 200; steps += 19) {
		struct world world;

		world_init(&world, steps, TRUTH, &slow);
		for (unsigned i = 0; i < steps; i++)
			if (!vdi_sim_step(world.env))
				(void) vdi_sim_advance_to_next_timer(world.env);
		world_end(&world);
		assert_int_equal(world.violations, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_right_store_is_right_through_every_trouble),
		cmocka_unit_test(compaction_is_no_violation),
		cmocka_unit_test(every_lie_is_found),
		cmocka_unit_test(a_missing_previous_record_is_looked_up),
		cmocka_unit_test(it_leaves_nothing_behind),
		cmocka_unit_test(it_leaves_nothing_behind_key_by_key),
		cmocka_unit_test(it_closes_at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
