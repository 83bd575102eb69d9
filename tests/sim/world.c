/* The main program is a loop of small random actions, each followed by some simulated time; faults are among
 * the actions. After the requested number of writes the faults stop: every client must catch up, then
 * everything is closed in a random order, and nothing may remain. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache_watcher.h"
#include "cacher.h"
#include "direct.h"
#include "env.h"
#include "mvcc_open.h"
#include "mvcc_store.h"
#include "reader.h"
#include "viewer.h"
#include "writer.h"

#define TRACE_LINES 400
#define TRACE_LINE_SIZE 160

static char	trace_lines[TRACE_LINES][TRACE_LINE_SIZE];
static uint64_t trace_count;

/* ---- Helpers ---- */

uint64_t roll(struct world *world, uint64_t below)
{
	return vdi_rand_below(&world->rand, below);
}

bool chance(struct world *world, unsigned permille)
{
	return vdi_rand_below(&world->rand, 1000) < permille;
}

vd_mono world_now(const struct world *world)
{
	return vd_env_now(world->env);
}

void sim_trace(struct world *world, const char *format, ...)
{
	char   *line = trace_lines[trace_count++ % TRACE_LINES];
	int	size = snprintf(line, TRACE_LINE_SIZE, "%10.6f r%lld ",
				world->env ? (double) world_now(world).ns / 1e9 : 0,
				(long long) world->oracle.revision);
	va_list arguments;

	va_start(arguments, format);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	vsnprintf(line + size, TRACE_LINE_SIZE - (size_t) size, format, arguments);
#pragma GCC diagnostic pop
	va_end(arguments);
	if (world->is_verbose)
		printf("%s\n", line);
}

struct sim_atomic sim_atomic_begin(struct world *world)
{
	return (struct sim_atomic) { world, vdi_sim_set_atomic(world->env, true) };
}

void sim_atomic_end(struct sim_atomic *atomic)
{
	(void) vdi_sim_set_atomic(atomic->world->env, atomic->before);
}

static void report(struct world *world)
{
	uint64_t first = trace_count > TRACE_LINES ? trace_count - TRACE_LINES : 0;

	/* As much as fits on a screen; with --verbose everything was printed before. */
	if (trace_count - first > 60)
		first = trace_count - 60;
	for (uint64_t i = first; i < trace_count && !world->is_verbose; i++)
		fprintf(stderr, "  %s\n", trace_lines[i % TRACE_LINES]);
	fprintf(stderr, "replay: build/tests/sim/sim --seed %llu --writes %llu --preemptions %u\n",
		(unsigned long long) world->seed, (unsigned long long) world->writes_wanted,
		world->preemptions);
}

void sim_fail(struct world *world, const char *property, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "seed %llu violates \"%s\": ", (unsigned long long) world->seed, property);
	va_start(arguments, format);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	vfprintf(stderr, format, arguments);
#pragma GCC diagnostic pop
	va_end(arguments);
	fprintf(stderr, "\n");
	report(world);
	fflush(NULL);
	_exit(1); /* memory held by suspended handlers is no leak */
}

static void log_record(void *arg, const struct vd_log_record *record)
{
	sim_trace(arg, "log %s: %s", record->module, record->message);
}

/* ---- Steps ---- */

void world_look_at_cachers(struct world *world)
{
	for (unsigned i = 0; i < SIM_CACHERS; i++) {
		struct sim_cacher  *at = &world->cachers[i];
		struct vdi_history *history;

		if (at->cacher == NULL)
			continue;
		history = &at->cacher->watch_cache.history;
		vdi_lock_acquire(&at->cacher->watchers.lock);
		world->marks.relist += at->cacher->reflector.relists - at->relists;
		if (world->restarts && at->cacher->reflector.relists == at->relists &&
		    at->cacher->reflector.resumes > at->resumes)
			world->marks.resumed_after_restart++;
		for (struct vdi_delivery_worker *worker = at->cacher->watchers.workers; worker;
		     worker = worker->next)
			for (struct vdi_subscription *subscription = worker->subscriptions; subscription;
			     subscription = subscription->worker_next)
				for (struct vd_watcher *watcher = subscription->lagging; watcher;
				     watcher = watcher->lagging_next)
					world->marks.lagging_rescan +=
						!watcher->initial && !watcher->error_due &&
						watcher->position >= history->start &&
						watcher->position < subscription->group->ring_floor;
		vdi_lock_release(&at->cacher->watchers.lock);
		at->relists = at->cacher->reflector.relists;
		at->resumes = at->cacher->reflector.resumes;
		at->stood[at->stood_next].time = world_now(world);
		at->stood[at->stood_next].revision = vd_cacher_revision(at->cacher);
		at->stood_next = (at->stood_next + 1) % VDI_ARRAY_SIZE(at->stood);
		vdi_lock_acquire(&at->cacher->watch_cache.lock);
		if (history->bytes > history->bytes_max && history->end - history->start > 1)
			sim_fail(world, "nothing exceeds its maximum", "the history of %s has %lld bytes",
				 at->options.resource, (long long) history->bytes);
		for (size_t j = 0;
		     j < at->cacher->watch_cache.store.retained_count && history->evicted_revision; j++)
			if (at->cacher->watch_cache.store.retained[j].revision < vdi_history_floor(history))
				sim_fail(
					world, "nothing exceeds its maximum",
					"a snapshot of %s at %lld is retained, the history starts after %lld",
					at->options.resource,
					(long long) at->cacher->watch_cache.store.retained[j].revision,
					(long long) vdi_history_floor(history));
		if (history->end - history->start > history->capacity_upper)
			sim_fail(world, "nothing exceeds its maximum", "the history of %s has %llu events",
				 at->options.resource, (unsigned long long) (history->end - history->start));
		vdi_lock_release(&at->cacher->watch_cache.lock);
		if (at->cacher->watchers.count > at->options.watcher_count_max)
			sim_fail(world, "nothing exceeds its maximum", "%zu watchers of %s",
				 at->cacher->watchers.count, at->options.resource);
		if (vd_cacher_revision(at->cacher) > world->oracle.revision)
			oracle_reach(&world->oracle, vd_cacher_revision(at->cacher), "a cacher");
	}
	if (world->store && vdi_mvcc_of(world->store)->writer.in_flight > world->swarm.in_flight_max)
		sim_fail(world, "nothing exceeds its maximum", "%zu submissions in flight",
			 (size_t) vdi_mvcc_of(world->store)->writer.in_flight);
}

/* Called between two steps. Returns true if the power failed. */
static bool tick(void *arg)
{
	struct world *world = arg;
	uint64_t      refused = chaos_marks(world->chaos)->refused_ranges;

	/* Only a cacher that lists reads whole ranges; the other clients want few keys, or are refused. */
	if (refused != world->refused_ranges) {
		world->refused_ranges = refused;
		for (unsigned i = 0; i < SIM_CACHERS; i++)
			if (world->cachers[i].cacher &&
			    world->cachers[i].cacher->reflector.phase == VDI_REFLECTOR_LISTING)
				world->marks.cut_initial_sync++;
	}

	if (world->oracle.has_news)
		oracle_drain(&world->oracle);
	return world->crash_armed && vdi_disk_sim_failed(world->disk);
}

void world_run(struct world *world, vd_dur by)
{
	(void) vdi_sim_run_until(world->env, tick, world, by);
}

void world_run_steps(struct world *world, uint64_t steps)
{
	while (steps-- && !tick(world))
		if (!vdi_sim_step(world->env))
			break;
}

/* ---- Setup ---- */

static void choose_swarm(struct world *world)
{
	struct sim_swarm *swarm = &world->swarm;
	bool		  is_rough = chance(world, 750);

	swarm->crashes = chance(world, 600);
	swarm->clean_restarts = chance(world, 400) || !swarm->crashes;
	swarm->remote = chance(world, 500);
	swarm->compactions = chance(world, 800);
	swarm->closes = chance(world, 600);
	swarm->stalls = chance(world, 700);
	swarm->disk_trouble = chance(world, 250);
	swarm->leases = chance(world, 400);
	swarm->multi_key = chance(world, 600);
	if (is_rough) {
		swarm->chaos.delay = chance(world, 500) ? (unsigned) roll(world, 300) : 0;
		swarm->chaos.delay_max = VD_MS(1 + (int64_t) roll(world, chance(world, 200) ? 4000 : 60));
		swarm->chaos.refuse = chance(world, 400) ? (unsigned) roll(world, 60) : 0;
		swarm->chaos.lose_answer = chance(world, 400) ? (unsigned) roll(world, 80) : 0;
		swarm->chaos.cut = chance(world, 500) ? (unsigned) roll(world, 30) : 0;
		swarm->chaos.stall = chance(world, 400) ? (unsigned) roll(world, 200) : 0;
		swarm->chaos.refuse_watch = chance(world, 400) ? (unsigned) roll(world, 300) : 0;
	}
	swarm->step_delay = chance(world, 500) ? VD_US(1 + (int64_t) roll(world, 60)) : VD_US(0);
	swarm->history_bytes = chance(world, 500) ? 64 << 20 : (int64_t) 3000 << roll(world, 8);
	swarm->store_history_bytes = chance(world, 600) ? 64 << 20 : (int64_t) 100000 << roll(world, 3);
	swarm->store_history_window =
		chance(world, 700) ? VD_SECONDS(600) : VD_SECONDS(1 + (int64_t) roll(world, 20));
	swarm->segment_size = (int64_t) 16384 << roll(world, 4);
	swarm->lag_bytes_max = chance(world, 700) ? 16 << 20 : (int64_t) 4000 << roll(world, 5);
	swarm->watcher_count_max = chance(world, 850) ? 1000 : 10;
	swarm->decode_workers = chance(world, 700) ? 0 : 1 + (unsigned) roll(world, 3);
	swarm->in_flight_max = chance(world, 900) ? 1024 : 2 + (unsigned) roll(world, 4);
	swarm->writers_max = 1 + (unsigned) roll(world, 24);
	swarm->namespaces = 1 + (unsigned) roll(world, 4);
	swarm->names = 2 + (unsigned) roll(world, chance(world, 500) ? 4 : 14);
}

void world_open_store(struct world *world)
{
	struct vd_mvcc_options	  options = VD_MVCC_OPTIONS_INIT;
	struct vdi_backend_tuning tuning = { .is_journal_only = true,
					     .segment_size = world->swarm.segment_size };
	struct vd_error		  error;
	vd_status		  status;

	options.data_dir = "data";
	options.history_bytes = world->swarm.store_history_bytes;
	options.history_window = world->swarm.store_history_window;
	options.in_flight_max = world->swarm.in_flight_max;
	while ((status = vdi_mvcc_open_tuned(world->env, &options, &tuning, &world->store, &error)) !=
	       VD_OK) {
		if (!world->crash_armed || !vdi_disk_sim_failed(world->disk))
			sim_fail(world, "a store opens after every crash", "%s: %s", vd_status_name(status),
				 error.message);
		world->marks.crash_in_recovery++;
		sim_trace(world, "crash in recovery");
		world->crash_armed = false;
		vdi_disk_sim_crash(world->disk);
	}
}

void world_open_cachers(struct world *world)
{
	for (unsigned i = 0; i < SIM_CACHERS; i++) {
		struct sim_cacher *at = &world->cachers[i];
		struct vd_error	   error;

		at->is_closed = false;
		at->relists = at->resumes = 0;
		memset(at->stood, 0, sizeof at->stood);
		if (vd_cacher_new(world->env, world->chaos, &at->options, &at->cacher, &error) != VD_OK)
			sim_fail(world, "harness", "no cacher: %s", error.message);
	}
}

static void build(struct world *world)
{
	static const struct vd_field_spec fields[] = { { "spec.nodeName", ".spec.nodeName", NULL },
						       { "status.phase", ".status.phase", NULL } };
	static struct vd_executor_ops	  other_ops;
	struct vd_error			  error;

	if (vdi_env_new_sim(world->seed, world->is_verbose ? log_record : NULL, world, &world->env) !=
		    VD_OK ||
	    vdi_disk_sim_new(world->seed, &world->disk) != VD_OK ||
	    vd_codec_json_new(fields, 2, &world->codec, &error) != VD_OK)
		sim_fail(world, "harness", "no world");
	if (vdi_sim_set_preemptions(world->env, world->preemptions) != VD_OK)
		sim_fail(world, "harness", "no fibers");
	vdi_sim_set_stalls(world->env, world->stall_max);
	vdi_env_set_disk(world->env, world->disk);
	vdi_sim_set_step_delay(world->env, world->swarm.step_delay);
	/* The same simulator under a second name: its watchers run on an actor of their own. */
	world->executors[0] = *vdi_env_executor(world->env);
	other_ops = *world->executors[0].ops;
	world->executors[1] = (struct vd_executor) { &other_ops, world->executors[0].executor };
	oracle_init(&world->oracle, world);
	world->writers = writers_new(world);
	world->viewers = viewers_new(world);
	world->readers = readers_new(world);
	world_open_store(world);
	oracle_open(&world->oracle, world->store);
	world->chaos = chaos_store_new(world->env, world->store, &world->swarm.chaos);
	for (unsigned i = 0; i < SIM_CACHERS; i++) {
		struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;

		options.resource = i ? "widgets" : "pods";
		options.group = i ? "example.org" : "";
		options.key_prefix = i ? SIM_WIDGETS : SIM_PODS;
		options.cluster_scoped = i != 0;
		options.codec = world->codec;
		options.trigger = i ? NULL : "spec.nodeName";
		options.history_bytes = world->swarm.history_bytes;
		options.lag_bytes_max = world->swarm.lag_bytes_max;
		options.watcher_count_max = world->swarm.watcher_count_max;
		options.decode_workers = world->swarm.decode_workers;
		/* Often; a difference is a broken promise like any other. */
		options.consistency_interval = VD_SECONDS(5);
		options.on_inconsistency = VD_ON_INCONSISTENCY_PANIC;
		world->cachers[i].options = options;
	}
	world_open_cachers(world);
}

/* ---- Faults and actions ---- */

static void disk_trouble(struct world *world)
{
	if (world->trouble_armed || world->crash_armed)
		return;
	world->trouble_armed = true;
	if (chance(world, 600)) {
		sim_trace(world, "the disk has no room for a moment");
		vdi_disk_sim_fail_nth(world->disk, 1 + roll(world, 20),
				      chance(world, 500) ? VDI_DISK_SIM_NO_SPACE : VDI_DISK_SIM_SHORT_WRITE);
	} else {
		/* After this the store refuses writes until it is opened again. */
		vdi_disk_sim_fail_nth(world->disk, 1 + roll(world, 20), VDI_DISK_SIM_IO);
		world_run(world, VD_MS(50));
		if (vdi_disk_sim_failed(world->disk))
			world->marks.disk_error++;
		world_restart(world, true);
	}
	world->trouble_armed = false;
}

/* Regardless of the swarm, each of these faults happens in every world at least once. */
static void certain_trouble(struct world *world)
{
	if ((uint64_t) world->oracle.revision < world->writes_wanted * (world->certain + 1) / 6 ||
	    world->crash_armed || world->trouble_armed)
		return;
	/* Repeat until it worked, because there may be nothing to cut at the moment. */
	switch (world->certain) {
	case 0:
		chaos_cut(world->chaos);
		world->certain += chaos_marks(world->chaos)->cuts > 0;
		break;
	case 1:
		viewers_stall_one(world);
		world->certain += world->marks.stalled_client > 0;
		break;
	case 2:
		if (world->marks.compaction + world->marks.own_compaction == 0)
			writers_compact(world);
		else
			world->certain++;
		break;
	case 3:
		world->certain++;
		world_restart(world, chance(world, 700));
		break;
	default: break;
	}
}

static void check_certain(struct world *world)
{
	const struct sim_marks *marks = &world->marks;

	if (chaos_marks(world->chaos)->cuts == 0 || marks->stalled_client == 0 ||
	    marks->compaction + marks->own_compaction == 0 || world->restarts == 0)
		sim_fail(world, "harness",
			 "cuts %llu, stalled clients %llu, compactions %llu, restarts %llu: each must happen",
			 (unsigned long long) chaos_marks(world->chaos)->cuts,
			 (unsigned long long) marks->stalled_client,
			 (unsigned long long) (marks->compaction + marks->own_compaction),
			 (unsigned long long) world->restarts);
}

static void trouble(struct world *world)
{
	const struct sim_swarm *swarm = &world->swarm;

	if (swarm->compactions && chance(world, 5))
		writers_compact(world);
	if (swarm->crashes && !world->crash_armed && !world->trouble_armed && chance(world, 2)) {
		if (chance(world, 300)) {
			world_restart(world, true);
		} else {
			world->crash_armed = true;
			vdi_disk_sim_fail_nth(world->disk, 1 + roll(world, 40), VDI_DISK_SIM_CRASH);
		}
	}
	if (swarm->clean_restarts && !world->crash_armed && chance(world, 1))
		world_restart(world, false);
	if (swarm->disk_trouble && chance(world, 2))
		disk_trouble(world);
	if (world->crash_armed && vdi_disk_sim_failed(world->disk))
		world_restart(world, true);
	/* A store whose disk failed refuses to write until it is opened again. */
	if (world->oracle.revision != world->moved_revision) {
		world->moved_revision = world->oracle.revision;
		world->moved_at = world_now(world);
	} else if ((swarm->disk_trouble || world->crash_armed) &&
		   vd_mono_since(world_now(world), world->moved_at).ns > VD_SECONDS(20).ns) {
		world->marks.disk_error++;
		world->moved_at = world_now(world);
		world_restart(world, chance(world, 500));
	}
	if (chance(world, 1))
		vdi_sim_jump_wall(world->env, VD_SECONDS((int64_t) roll(world, 20) - 10));
}

void world_note_compaction(struct world *world)
{
	struct vd_store_status status;

	if (world->store == NULL || vd_store_status_get(world->store, &status) != VD_OK)
		return;
	if (status.compacted > world->compacted_max) {
		world->compacted_max = status.compacted;
		world->marks.own_compaction++;
	}
}

void world_check_compaction(struct world *world)
{
	struct vd_store_status status;

	world_note_compaction(world);
	if (world->store == NULL || world->is_down || world->compacted_max <= world->compacted_seen)
		return;
	vdi_sim_settle(world->env); /* a compaction in progress has not removed everything */
	world_note_compaction(world);
	if (vd_store_status_get(world->store, &status) == VD_OK && status.compacted > world->compacted_seen) {
		world->compacted_seen = status.compacted;
		direct_check_compaction(world, status.compacted);
	}
}

static void pass_time(struct world *world)
{
	unsigned which = (unsigned) roll(world, 100);

	if (which < 60)
		world_run_steps(world, roll(world, 40));
	else if (which < 95)
		world_run(world, VD_US((int64_t) roll(world, 20000)));
	else if (which < 99)
		world_run(world, VD_MS((int64_t) roll(world, 300)));
	else
		world_run(world, VD_MS((int64_t) roll(world, 4000)));
}

static void act(struct world *world)
{
	unsigned bursts = chance(world, 50) ? 20 : 1 + (unsigned) roll(world, 3);

	while (bursts--)
		writers_start_one(world);
	if (chance(world, 250))
		readers_start_one(world);
	viewers_nudge(world);
	viewers_nudge(world);
	if (chance(world, 150))
		viewers_tend(world);
	readers_walk(world, false);
	if (chance(world, 50)) {
		vdi_sim_settle(world->env);
		direct_look(world);
	}
	pass_time(world);
	world_check_compaction(world);
	trouble(world);
	certain_trouble(world);
	world_look_at_cachers(world);
	if (chance(world, 100))
		viewers_check_progress(world);
}

/* ---- A run ---- */

static void take_chaos_marks(struct world *world)
{
	const struct chaos_marks *chaos = chaos_marks(world->chaos);

	world->marks.late_call += chaos->delays;
	world->marks.refused_call += chaos->refusals;
	world->marks.lost_answer += chaos->lost_answers;
	world->marks.cut_feed += chaos->cuts;
	world->marks.stalled_feed += chaos->stalls;
	world->marks.refused_watch += chaos->refused_watches;
}

static void add_marks(struct sim_marks *total, const struct sim_marks *more)
{
#define SIM_MARK_ADD(name, text) total->name += more->name;
	SIM_MARKS(SIM_MARK_ADD)
#undef SIM_MARK_ADD
}

uint64_t world_run_seed(uint64_t seed, uint64_t writes, unsigned preemptions, bool is_verbose,
			struct sim_marks *marks)
{
	struct world *world = calloc(1, sizeof *world);
	uint64_t      hash;

	trace_count = 0;
	world->seed = seed;
	world->writes_wanted = writes;
	world->preemptions = preemptions;
	/* Not drawn: a seed's world is the same with and without preemption. */
	world->stall_max = preemptions && seed % 3 == 0 ? VD_SECONDS(3) : VD_SECONDS(0);
	world->is_verbose = is_verbose;
	world->live_before = vdi_alloc_live();
	vdi_rand_init(&world->rand, seed);
	choose_swarm(world);
	build(world);
	while ((uint64_t) world->oracle.revision < writes || world->certain < 4)
		act(world);
	check_certain(world);
	world_calm_down(world);
	world_wait_for_leases(world);
	world_calm_down(world);
	world_final_reads(world);
	world_close_down(world);
	take_chaos_marks(world);
	hash = vdi_sim_schedule_hash(world->env);
	world->marks.preemption += vdi_sim_preemptions(world->env);
	chaos_store_free(world->chaos);
	vd_codec_free(world->codec);
	vd_env_free(world->env);
	world->env = NULL;
	vdi_disk_sim_free(world->disk);
	if (vdi_alloc_live() != world->live_before)
		sim_fail(world, "nothing leaks", "%lld blocks are left",
			 (long long) (vdi_alloc_live() - world->live_before));
	add_marks(marks, &world->marks);
	writers_free(world->writers);
	viewers_free(world->viewers);
	readers_free(world->readers);
	oracle_fini(&world->oracle);
	free(world);
	return hash;
}
