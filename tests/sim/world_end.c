/* The end of a run: no more faults, everyone catches up, everything is closed. */
#include <stdio.h>

#include "reader.h"
#include "viewer.h"
#include "world.h"
#include "writer.h"

#define CALM_LIMIT VD_SECONDS(300)

struct evening {
	struct world *world;
	char	      why[256];
};

static bool all_caught_up(struct world *world, char *why, size_t size)
{
	if (writers_outstanding(world) || readers_outstanding(world) || chaos_pending(world->chaos)) {
		snprintf(why, size, "%u writes, %u reads, %zu delayed calls are unanswered",
			 writers_outstanding(world), readers_outstanding(world), chaos_pending(world->chaos));
		return false;
	}
	for (unsigned i = 0; i < SIM_CACHERS; i++)
		if (vd_cacher_ready(world->cachers[i].cacher, NULL) != VD_OK) {
			snprintf(why, size, "%s is not ready", world->cachers[i].options.resource);
			return false;
		}
	return viewers_caught_up(world, why, size);
}

void world_calm_down(struct world *world)
{
	char	why[256] = "";
	vd_mono limit;

	sim_trace(world, "calm");
	chaos_set(world->chaos, NULL);
	if (world->crash_armed && vdi_disk_sim_failed(world->disk))
		world_restart(world, true);
	vdi_disk_sim_fail_nth(world->disk, 0, VDI_DISK_SIM_CRASH);
	world->crash_armed = false;
	world->stall_max = VD_SECONDS(0);
	vdi_sim_set_stalls(world->env, world->stall_max);
	/* Handlers that were suspended during the faults still deliver their errors. */
	vdi_sim_settle(world->env);
	world->is_calm = true;
	world->calm_since = world_now(world);
	limit = vd_mono_add(world->calm_since, CALM_LIMIT);
	for (;;) {
		viewers_tend(world);
		readers_walk(world, true);
		world_run(world, VD_MS(100));
		world_look_at_cachers(world);
		viewers_check_progress(world);
		world_check_compaction(world);
		if (all_caught_up(world, why, sizeof why))
			break;
		if (world_now(world).ns > limit.ns)
			sim_fail(world, "after the faults stop, everyone catches up", "%s", why);
	}
}

/* A consistent list makes an idle cache catch up with the store's revision; then both must be equal. */
void world_final_reads(struct world *world)
{
	for (unsigned i = 0; i < 40; i++) {
		readers_start_one(world);
		world_run(world, VD_MS(200));
		viewers_tend(world);
	}
	world_run(world, VD_SECONDS(10));
	readers_walk(world, true);
	world_run(world, VD_SECONDS(10));
	readers_walk(world, true);
	if (readers_outstanding(world))
		sim_fail(world, "one answer", "%u reads are unanswered", readers_outstanding(world));
	oracle_drain(&world->oracle);
	oracle_compare_store(&world->oracle, world->store, world->oracle.revision);
}

static bool leases_are_gone(const struct world *world)
{
	const struct oracle *oracle = &world->oracle;

	for (int i = 0; i < oracle->key_count; i++) {
		const struct oracle_record *record = oracle_at(oracle, i, oracle->revision);

		if (record && record->lease)
			return false;
	}
	return true;
}

void world_wait_for_leases(struct world *world)
{
	vd_mono limit = vd_mono_add(world_now(world), VD_SECONDS(100));

	if (leases_are_gone(world))
		return;
	while (!leases_are_gone(world)) {
		viewers_tend(world);
		world_run(world, VD_MS(500));
		oracle_drain(&world->oracle);
		if (world_now(world).ns > limit.ns)
			sim_fail(world, "leases end", "a key still has a lease that nobody keeps");
	}
	world->marks.lease_expired++;
}

static bool all_viewers_idle(void *arg)
{
	return viewers_open(arg) == 0;
}

void world_close_down(struct world *world)
{
	bool viewers_first = chance(world, 500);

	/* A list may be in progress. */
	world_run(world, VD_SECONDS(5));
	if (viewers_first) {
		world->is_closing = true; /* no watch is opened again */
		viewers_close_all(world, true);
		world_run_steps(world, roll(world, 50));
	} else {
		viewers_close_all(world, false);
	}
	world_close_cachers(world);
	viewers_close_all(world, true);
	if (!vdi_sim_run_until(world->env, all_viewers_idle, world, VD_SECONDS(60)))
		sim_fail(world, "everything ends", "%zu viewers do not close", viewers_open(world));
	oracle_drain(&world->oracle);
	oracle_close(&world->oracle);
	world->store = vd_store_close_wait(world->store);
}
