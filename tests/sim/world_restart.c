/* Restarts of the store, after a crash or cleanly, with or without the cachers. */
#include <stdio.h>
#include <stdlib.h>

#include "cacher.h"
#include "viewer.h"
#include "world.h"
#include "writer.h"

struct journal_file {
	char	 name[VDI_DISK_NAME_MAX];
	uint8_t *now, *durable;
	int64_t	 now_size, durable_size;
};

static uint8_t *copy_of(const uint8_t *bytes, int64_t size)
{
	uint8_t *copy = malloc((size_t) size + 1);

	if (size)
		memcpy(copy, bytes, (size_t) size);
	return copy;
}

/* Finds the newest journal file: a crash can only affect data that was not synced. */
static bool find_newest(struct world *world, struct journal_file *file)
{
	const uint8_t *bytes;

	for (unsigned long long sequence = 1000; sequence-- > 0;) {
		snprintf(file->name, sizeof file->name, "journal-%016llu.vdj", sequence);
		bytes = vdi_disk_sim_content(world->disk, file->name, &file->now_size);
		if (bytes == NULL)
			continue;
		file->now = copy_of(bytes, file->now_size);
		bytes = vdi_disk_sim_durable(world->disk, file->name, &file->durable_size);
		file->durable = copy_of(bytes, bytes ? file->durable_size : 0);
		file->durable_size = bytes ? file->durable_size : 0;
		return true;
	}
	return false;
}

static void crash_disk(struct world *world)
{
	struct journal_file file;
	const uint8_t	   *after;
	int64_t		    size, old = 0, new = 0;

	if (!find_newest(world, &file)) {
		vdi_disk_sim_crash(world->disk);
		return;
	}
	vdi_disk_sim_crash(world->disk);
	after = vdi_disk_sim_content(world->disk, file.name, &size);
	for (int64_t i = 0; after && i < size && i < file.now_size; i++) {
		uint8_t before = i < file.durable_size ? file.durable[i] : 0;

		old += after[i] == before && before != file.now[i];
		new += after[i] == file.now[i] && before != file.now[i];
	}
	world->marks.torn_write += old && new;
	free(file.now);
	free(file.durable);
}

static void cacher_closed(void *arg)
{
	((struct sim_cacher *) arg)->is_closed = true;
}

static bool cachers_are_closed(void *arg)
{
	struct world *world = arg;

	if (world->oracle.has_news)
		oracle_drain(&world->oracle);
	viewers_tend(world);
	return world->cachers[0].is_closed && world->cachers[1].is_closed;
}

void world_close_cachers(struct world *world)
{
	unsigned first = (unsigned) roll(world, SIM_CACHERS);

	world->is_closing = true;
	for (unsigned i = 0; i < SIM_CACHERS; i++) {
		struct sim_cacher *at = &world->cachers[(first + i) % SIM_CACHERS];

		world->marks.cache_compared += at->cacher->consistency.counts[VDI_CONSISTENCY_SUCCESS];
		world->marks.cache_not_compared += at->cacher->consistency.counts[VDI_CONSISTENCY_ERROR];
		SIM_PREEMPTIBLE(world, vd_cacher_close(at->cacher, cacher_closed, at));
		world_run_steps(world, roll(world, 30));
	}
	if (!vdi_sim_run_until(world->env, cachers_are_closed, world, VD_SECONDS(120)))
		sim_fail(world, "everything ends", "the cachers do not close: %d %d",
			 world->cachers[0].is_closed, world->cachers[1].is_closed);
	for (unsigned i = 0; i < SIM_CACHERS; i++)
		world->cachers[i].cacher = NULL;
}

static void check_recovered(struct world *world, vd_rev shown)
{
	struct vd_store_status status;

	if (vd_store_status_get(world->store, &status) != VD_OK)
		sim_fail(world, "harness", "no status");
	world->compacted_max = VDI_MAX(world->compacted_max, status.compacted);
	if (status.current < shown)
		sim_fail(world, "nothing visible before it is durable",
			 "the store comes back at %lld, it had shown %lld", (long long) status.current,
			 (long long) shown);
	if (status.current > shown)
		world->marks.unpublished_survived++;
	oracle_compare_store(&world->oracle, world->store, shown);
	if (shown > 10)
		oracle_compare_store(&world->oracle, world->store,
				     1 + (vd_rev) roll(world, (uint64_t) shown));
}

void world_restart(struct world *world, bool is_crash)
{
	bool   is_remote = world->swarm.remote && chance(world, 700);
	vd_rev shown;

	sim_trace(world, "restart: crash %d remote %d", is_crash, is_remote);
	world->restarts++;
	world->is_down = true;
	if (is_crash && !world->crash_armed) {
		world->marks.crash_at_rest++;
		world->crash_armed = true;
		vdi_disk_sim_fail_nth(world->disk, 1, VDI_DISK_SIM_CRASH);
	} else if (is_crash) {
		world->marks.crash_in_operation++;
	} else {
		world->marks.clean_restart++;
	}
	vdi_sim_settle(world->env); /* the wrapper's watches are closed while they are in use */
	if (is_remote) {
		world->marks.restart_under_cachers++;
		chaos_set_inner(world->chaos, NULL);
	} else {
		world->marks.restart_with_cachers++;
		world_close_cachers(world);
		vdi_sim_settle(world->env);
	}
	oracle_drain(&world->oracle);
	shown = world->oracle.revision;
	oracle_close(&world->oracle);
	if (!is_remote)
		chaos_replace_inner(world->chaos, NULL);
	world->store = vd_store_close_wait(world->store);
	if (is_crash)
		crash_disk(world);
	world->crash_armed = is_crash && chance(world, 300);
	world->trouble_armed = false;
	vdi_disk_sim_fail_nth(world->disk, world->crash_armed ? 1 + roll(world, 6) : 0, VDI_DISK_SIM_CRASH);
	world_open_store(world);
	vdi_disk_sim_fail_nth(world->disk, 0, VDI_DISK_SIM_CRASH);
	world->crash_armed = false;
	check_recovered(world, shown);
	oracle_open(&world->oracle, world->store);
	oracle_drain(&world->oracle);
	writers_check_pending(world);
	if (is_remote) {
		chaos_set_inner(world->chaos, world->store);
	} else {
		chaos_replace_inner(world->chaos, world->store);
		world_open_cachers(world);
	}
	world->is_closing = false;
	world->is_down = false;
}
