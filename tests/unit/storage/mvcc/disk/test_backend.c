/* Unit tests of storage/mvcc/disk/backend.c on the simulated disk (journal only): crashes at every operation,
 * damage, full and failing disks. */
#include "actor_sim.h"
#include "backend_model.h"
#include "backend_tuning.h"
#include "disk_sim.h"
#include "env.h"

struct world {
	struct vd_env		 *env;
	struct vdi_disk		 *disk;
	struct vdi_backend_tuning tuning;
	struct vd_mvcc_options	  options;
	struct vdi_backend	 *backend;
	struct model		  model;
	struct vd_error		  error;
};

static void world_init(struct world *world, uint64_t seed)
{
	memset(world, 0, sizeof *world);
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world->env), VD_OK);
	assert_status(vdi_disk_sim_new(seed, &world->disk), VD_OK);
	world->tuning = (struct vdi_backend_tuning) { .segment_size = 8192 };
	vdi_env_set_disk(world->env, world->disk);
	world->options = (struct vd_mvcc_options) VD_MVCC_OPTIONS_INIT;
	world->options.data_dir = "data";
	model_init(&world->model, seed);
}

static void world_close(struct world *world)
{
	if (world->backend)
		vdi_backend_close(world->backend, NULL, NULL);
	world->backend = NULL;
}

static void world_fini(struct world *world)
{
	world_close(world);
	model_fini(&world->model);
	vdi_disk_sim_free(world->disk);
	vd_env_free(world->env);
}

/* Opens; on success what came back must fit, and the model forgets what was lost. */
static vd_status world_open(struct world *world)
{
	struct model_loaded	loaded;
	struct vdi_backend_sink sink = model_sink(&loaded);
	vd_status		status;

	status = vdi_backend_open_tuned(world->env, &world->options, &world->tuning, &sink, &world->backend,
					&world->error);
	if (status == VD_OK)
		model_cut(&world->model, model_match(&world->model, &loaded));
	else
		assert_int_equal(world->error.code, status);
	model_loaded_fini(&loaded);
	return status;
}

/* A group of random commits, appended and synced. */
static vd_status world_write(struct world *world, size_t commit_count)
{
	struct model_draft draft;
	vd_status	   status;

	for (size_t i = 0; i < commit_count; i++) {
		model_draft(&world->model, &draft);
		status = vdi_backend_append(world->backend, &draft.commit, &world->error);
		if (status != VD_OK) {
			model_drop(&draft);
			vdi_backend_discard(world->backend);
			model_cut(&world->model, world->model.durable);
			return status;
		}
		model_keep(&world->model, &draft);
	}
	status = vdi_backend_sync(world->backend, &world->error);
	if (status == VD_OK)
		world->model.durable = world->model.commit_count;
	return status;
}

static vd_status world_run(struct world *world, unsigned groups)
{
	for (unsigned i = 0; i < groups; i++)
		VDI_TRY(world_write(world, 1 + vdi_rand_below(&world->model.rand, 6)));
	return VD_OK;
}

static void e469_reopening_gives_back_every_commit(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world world;

		world_init(&world, seed);
		for (int round = 0; round < 5; round++) {
			size_t before = world.model.commit_count;

			assert_status(world_open(&world), VD_OK);
			assert_int_equal(world.model.commit_count, before);
			assert_status(world_run(&world, 12), VD_OK);
			world_close(&world);
		}
		world_fini(&world);
	}
}

/* Crashes at operation `at`, then `again` operations into the recovery (0: not again); false when the work
 * ended before the crash. */
static bool crash_once(uint64_t seed, uint64_t at, uint64_t again)
{
	struct world world;
	bool	     was_hit;

	world_init(&world, seed);
	vdi_disk_sim_fail_nth(world.disk, at, VDI_DISK_SIM_CRASH);
	if (world_open(&world) == VD_OK)
		(void) !world_run(&world, 14);
	world_close(&world);
	was_hit = vdi_disk_sim_failed(world.disk);
	vdi_disk_sim_crash(world.disk);
	if (again) {
		vdi_disk_sim_fail_nth(world.disk, again, VDI_DISK_SIM_CRASH);
		if (world_open(&world) == VD_OK)
			(void) !world_run(&world, 2);
		world_close(&world);
		vdi_disk_sim_crash(world.disk);
	}
	assert_status(world_open(&world), VD_OK);
	assert_status(world_run(&world, 3), VD_OK);
	world_close(&world);
	assert_status(world_open(&world), VD_OK);
	assert_int_equal(world.model.commit_count, world.model.durable);
	world_fini(&world);
	return was_hit;
}

static void e469_a_crash_at_any_operation_loses_nothing_acknowledged(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 25; seed++)
		for (uint64_t at = 1; crash_once(seed, at, 0); at++)
			;
}

static void e469_a_second_crash_during_recovery_neither(void **state)
{
	(void) state;
	for (uint64_t seed = 100; seed < 106; seed++)
		for (uint64_t again = 1; again < 8; again++)
			for (uint64_t at = 1; crash_once(seed, at, again); at++)
				;
}

/* What the answer to a compaction promises is on the disk with it; what was to be removed is removed at the
 * next start, however far that had come. */
static void e408_a_compaction_that_was_answered_survives_a_crash(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 30; seed++) {
		struct vdi_commit	compaction = { 0 };
		struct world		world;
		struct model_loaded	loaded;
		struct vdi_backend_sink sink = model_sink(&loaded);
		struct model_commit    *last;

		world_init(&world, seed);
		world.model.has_compaction = false;
		assert_status(world_open(&world), VD_OK);
		assert_status(world_run(&world, 10), VD_OK);
		last = &world.model.commits[world.model.commit_count - 1];
		compaction.compact = last->revision - (vd_rev) vdi_rand_below(&world.model.rand, 3);
		assert_status(vdi_backend_append(world.backend, &compaction, NULL), VD_OK);
		if (seed % 2) /* it is a promise once it is synced */
			assert_status(vdi_backend_sync(world.backend, NULL), VD_OK);
		world_close(&world);
		vdi_disk_sim_crash(world.disk);
		assert_status(vdi_backend_open_tuned(world.env, &world.options, &world.tuning, &sink,
						     &world.backend, &world.error),
			      VD_OK);
		if (loaded.compacted == compaction.compact)
			last->compacted = compaction.compact;
		assert_true(seed % 2 == 0 || loaded.compacted == compaction.compact);
		assert_true(model_equals(&world.model, world.model.commit_count, &loaded));
		model_loaded_fini(&loaded);
		world_fini(&world);
	}
}

static void full_disk_refuses_and_goes_on_when_there_is_room(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct world world;
		vd_status    status = VD_OK;

		world_init(&world, seed);
		assert_status(world_open(&world), VD_OK);
		vdi_disk_sim_set_capacity(world.disk, 3 * 8192 + 100);
		while (status == VD_OK)
			status = world_write(&world, 2);
		assert_status(status, VD_NO_SPACE);
		model_cut(&world.model, world.model.durable);
		assert_status(world_write(&world, 30), VD_NO_SPACE);
		model_cut(&world.model, world.model.durable);
		vdi_disk_sim_set_capacity(world.disk, INT64_MAX);
		assert_status(world_run(&world, 5), VD_OK);
		world_close(&world);
		assert_status(world_open(&world), VD_OK);
		world_fini(&world);
	}
}

/* Only what frees something, until even the reserve is used up. Returns how many commits were taken. */
static unsigned free_some(struct world *world, unsigned count_max)
{
	struct model_draft draft;
	unsigned	   count = 0;
	vd_status	   status = VD_OK;

	while (status == VD_OK && count < count_max) {
		bool frees = true;

		model_draft(&world->model, &draft);
		for (size_t i = 0; i < draft.commit.change_count; i++)
			frees = frees && draft.changes[i].is_delete;
		for (size_t i = 0; i < draft.commit.lease_count; i++)
			frees = frees && draft.leases[i].kind != VDI_LEASE_GRANTED;
		if (!frees) {
			/* A compaction in its place. */
			model_drop(&draft);
			memset(&draft, 0, sizeof draft);
			draft.state = model_state(&world->model, world->model.commit_count);
			draft.commit.compact = draft.state.compacted = VDI_MAX(draft.state.compacted, 1);
		}
		status = vdi_backend_append(world->backend, &draft.commit, &world->error);
		if (status != VD_OK) {
			vdi_backend_discard(world->backend);
			model_drop(&draft);
			break;
		}
		model_keep(&world->model, &draft);
		status = vdi_backend_sync(world->backend, &world->error);
		if (status == VD_OK) {
			world->model.durable = world->model.commit_count;
			count++;
		}
	}
	return count;
}

static vd_status fill_disk(struct world *world)
{
	vd_status status;

	do
		status = world_write(world, 1);
	while (status == VD_OK);
	return status;
}

/* The reserve is one file. It is for commits that free something, and no others are taken before there is one
 * again. */
static void e466_a_full_disk_has_a_reserve_for_what_frees(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct world world;

		world_init(&world, seed);
		assert_status(world_open(&world), VD_OK);
		vdi_disk_sim_set_capacity(world.disk, 4 * 8192);
		assert_status(fill_disk(&world), VD_NO_SPACE);
		assert_non_null(strstr(world.error.message, "the disk is full"));
		assert_non_null(strstr(world.error.message, "journal-"));
		assert_true(free_some(&world, 1000) > 20);
		assert_status(world.error.code, VD_NO_SPACE);
		assert_int_equal(vdi_backend_reserve_bytes(world.backend), 0);
		assert_status(fill_disk(&world), VD_NO_SPACE);
		/* The next start finds neither. */
		world_close(&world);
		assert_status(world_open(&world), VD_OK);
		assert_int_equal(vdi_backend_reserve_bytes(world.backend), 0);
		assert_status(fill_disk(&world), VD_NO_SPACE);
		vdi_disk_sim_set_capacity(world.disk, INT64_MAX);
		assert_status(world_run(&world, 5), VD_OK);
		assert_int_equal(vdi_backend_reserve_bytes(world.backend), 8192);
		world_close(&world);
		assert_status(world_open(&world), VD_OK);
		world_fini(&world);
	}
}

/* false: the work ended before the crash. */
static bool crash_on_full_disk(uint64_t seed, uint64_t at)
{
	struct world world;
	bool	     was_hit;

	world_init(&world, seed);
	assert_status(world_open(&world), VD_OK);
	vdi_disk_sim_set_capacity(world.disk, 3 * 8192 + 5000);
	vdi_disk_sim_fail_nth(world.disk, at, VDI_DISK_SIM_CRASH);
	if (fill_disk(&world) == VD_NO_SPACE) {
		(void) free_some(&world, 30);
		world_close(&world);
		if (world_open(&world) == VD_OK)
			(void) free_some(&world, 30);
	}
	world_close(&world);
	was_hit = vdi_disk_sim_failed(world.disk);
	vdi_disk_sim_crash(world.disk);
	assert_status(world_open(&world), VD_OK);
	(void) free_some(&world, 5);
	world_close(&world);
	vdi_disk_sim_set_capacity(world.disk, INT64_MAX);
	assert_status(world_open(&world), VD_OK);
	assert_int_equal(world.model.commit_count, world.model.durable);
	assert_status(world_run(&world, 3), VD_OK);
	assert_int_equal(vdi_backend_reserve_bytes(world.backend), 8192);
	world_fini(&world);
	return was_hit;
}

static void e469_a_crash_at_any_operation_on_a_full_disk_starts_again_there(void **state)
{
	(void) state;
	for (uint64_t seed = 200; seed < 210; seed++)
		for (uint64_t at = 1; crash_on_full_disk(seed, at); at++)
			;
}

/* One fault at each operation in turn; what follows is a crash. What was refused for lack of room must stay
 * away. */
static void fail_at_each_operation(enum vdi_disk_sim_fault fault, vd_status expected)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		for (uint64_t at = 1;; at++) {
			struct world world;
			vd_status    status = VD_OK;
			bool	     was_hit;

			world_init(&world, seed);
			assert_status(world_open(&world), VD_OK);
			vdi_disk_sim_fail_nth(world.disk, at, fault);
			status = world_run(&world, 14);
			was_hit = vdi_disk_sim_failed(world.disk);
			/* A file that cannot be made as large as wanted is made smaller, and one that frees
			 * something has a reserve. */
			assert_true(was_hit || status == VD_OK);
			assert_true(!was_hit || status != VD_OK || expected == VD_NO_SPACE);
			if (status == VD_NO_SPACE) {
				assert_status(expected, VD_NO_SPACE);
				model_cut(&world.model, world.model.durable);
				assert_status(world_run(&world, 4), VD_OK);
			} else if (status != VD_OK) {
				struct vdi_commit compaction = { .compact = 1 };

				assert_status(status, VD_IO);
				assert_status(vdi_backend_append(world.backend, &compaction, NULL), VD_IO);
				assert_status(vdi_backend_sync(world.backend, NULL), VD_IO);
			}
			world_close(&world);
			vdi_disk_sim_crash(world.disk);
			assert_status(world_open(&world), VD_OK);
			assert_status(world_run(&world, 2), VD_OK);
			world_fini(&world);
			if (!was_hit)
				break;
		}
	}
}

static void failed_operations_close_for_writing(void **state)
{
	(void) state;
	fail_at_each_operation(VDI_DISK_SIM_IO, VD_IO);
}

static void no_space_at_any_operation_is_undone(void **state)
{
	(void) state;
	fail_at_each_operation(VDI_DISK_SIM_NO_SPACE, VD_NO_SPACE);
	fail_at_each_operation(VDI_DISK_SIM_SHORT_WRITE, VD_NO_SPACE);
}

static void discarded_commits_never_happened(void **state)
{
	struct world	   world;
	struct model_draft draft;

	(void) state;
	world_init(&world, 7);
	assert_status(world_open(&world), VD_OK);
	assert_status(world_run(&world, 3), VD_OK);
	for (int i = 0; i < 5; i++) {
		model_draft(&world.model, &draft);
		assert_status(vdi_backend_append(world.backend, &draft.commit, NULL), VD_OK);
		model_drop(&draft);
		vdi_backend_discard(world.backend);
	}
	assert_status(world_run(&world, 3), VD_OK);
	world_close(&world);
	assert_status(world_open(&world), VD_OK);
	world_fini(&world);
}

static void e466_quota_refuses_what_grows_only(void **state)
{
	struct world	   world;
	struct model_draft draft;
	unsigned	   refused = 0, passed = 0;

	(void) state;
	world_init(&world, 3);
	world.options.quota_bytes = 3000;
	assert_status(world_open(&world), VD_OK);
	while (world_write(&world, 1) == VD_OK)
		;
	assert_int_equal(world.error.code, VD_NO_SPACE);
	for (int i = 0; i < 200; i++) {
		bool grows = false;

		model_draft(&world.model, &draft);
		for (size_t j = 0; j < draft.commit.change_count; j++)
			grows |= !draft.changes[j].is_delete;
		grows |= draft.commit.lease_count && draft.leases[0].kind == VDI_LEASE_GRANTED;
		if (vdi_backend_append(world.backend, &draft.commit, NULL) == VD_OK) {
			assert_true(!grows || vdi_backend_size_bytes(world.backend) <= 3000);
			passed++;
		} else {
			assert_true(grows);
			refused++;
		}
		vdi_backend_discard(world.backend);
		model_drop(&draft);
	}
	assert_true(refused > 0 && passed > 0);
	world_fini(&world);
}

static void second_opener_is_refused(void **state)
{
	struct world		world;
	struct vdi_backend     *second = NULL;
	struct model_loaded	loaded;
	struct vdi_backend_sink sink = model_sink(&loaded);
	struct vd_error		error;

	(void) state;
	world_init(&world, 1);
	assert_status(world_open(&world), VD_OK);
	assert_status(
		vdi_backend_open_tuned(world.env, &world.options, &world.tuning, &sink, &second, &error),
		VD_LOCKED);
	assert_non_null(strstr(error.message, "process"));
	assert_null(second);
	world_fini(&world);
}

static void out_of_memory_at_any_allocation_changes_nothing(void **state)
{
	struct world world;
	int64_t	     live;

	(void) state;
	world_init(&world, 5);
	assert_status(world_open(&world), VD_OK);
	assert_status(world_run(&world, 20), VD_OK);
	world_close(&world);
	live = vdi_alloc_live();
	for (uint64_t nth = 1;; nth++) {
		struct model_loaded	loaded;
		struct vdi_backend_sink sink = model_sink(&loaded);
		vd_status		status;
		bool			was_hit;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_backend_open_tuned(world.env, &world.options, &world.tuning, &sink,
						&world.backend, &world.error);
		was_hit = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		model_loaded_fini(&loaded);
		world_close(&world);
		if (!was_hit)
			break;
		assert_status(status, VD_NOMEM);
		assert_int_equal(vdi_alloc_live(), live);
	}
	assert_status(world_open(&world), VD_OK);
	for (uint64_t nth = 1; nth < 400; nth++) {
		struct model_draft draft;
		vd_status	   status;

		model_draft(&world.model, &draft);
		vdi_alloc_fail_nth(nth % 7 + 1, 1);
		status = vdi_backend_append(world.backend, &draft.commit, &world.error);
		if (status == VD_OK)
			status = vdi_backend_sync(world.backend, &world.error);
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK) {
			model_keep(&world.model, &draft);
			world.model.durable = world.model.commit_count;
			continue;
		}
		model_drop(&draft);
		if (status == VD_IO) { /* the simulated disk had no memory for the write itself */
			world_close(&world);
			assert_status(world_open(&world), VD_OK);
			continue;
		}
		assert_status(status, VD_NOMEM);
		vdi_backend_discard(world.backend);
	}
	world_close(&world);
	assert_status(world_open(&world), VD_OK);
	world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e469_reopening_gives_back_every_commit),
		cmocka_unit_test(e469_a_crash_at_any_operation_loses_nothing_acknowledged),
		cmocka_unit_test(e469_a_second_crash_during_recovery_neither),
		cmocka_unit_test(e408_a_compaction_that_was_answered_survives_a_crash),
		cmocka_unit_test(full_disk_refuses_and_goes_on_when_there_is_room),
		cmocka_unit_test(failed_operations_close_for_writing),
		cmocka_unit_test(no_space_at_any_operation_is_undone),
		cmocka_unit_test(e466_a_full_disk_has_a_reserve_for_what_frees),
		cmocka_unit_test(e469_a_crash_at_any_operation_on_a_full_disk_starts_again_there),
		cmocka_unit_test(discarded_commits_never_happened),
		cmocka_unit_test(e466_quota_refuses_what_grows_only),
		cmocka_unit_test(second_opener_is_refused),
		cmocka_unit_test(out_of_memory_at_any_allocation_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
