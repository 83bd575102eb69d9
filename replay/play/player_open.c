/* Opening and closing a player. The start of the log, up to the requested revision, is imported into the
 * inner store before the actor runs. */
#include "player.h"

#include <math.h>

#include "mvcc_open.h"

/* ---- Lifetime ---- */

void vdi_player_ref(struct vd_player *player)
{
	atomic_fetch_add_explicit(&player->references, 1, memory_order_relaxed);
}

void vdi_player_unref(struct vd_player *player)
{
	if (atomic_fetch_sub_explicit(&player->references, 1, memory_order_acq_rel) != 1)
		return;
	vdi_player_rounds_fini(player);
	vdi_fault_plan_fini(&player->faults);
	vdi_lock_fini(&player->lock);
	vdi_free(player->changes);
	vdi_free(player->flights);
	vdi_free(player);
}

/* ---- Opening ---- */

/* Reports an error of the import as an error in the log. */
static vd_status import_step(struct vd_player *player, struct vdi_mvcc_import *import,
			     struct vd_error *reterr)
{
	struct vdi_log_step	 *step = &player->step;
	struct vdi_import_change *changes = vdi_calloc(step->count + 1, sizeof *changes);
	struct vd_error		  error = { 0 };
	vd_status		  status = VD_OK;

	if (changes == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	for (size_t i = 0; i < step->count; i++)
		changes[i] = (struct vdi_import_change) { step->changes[i].is_delete, step->changes[i].kv };
	if (step->kind == VDI_STEP_SNAPSHOT)
		status = vdi_mvcc_import_snapshot(import, step->revision, changes, step->count, &error);
	else if (step->kind == VDI_STEP_TXN)
		status = vdi_mvcc_import_commit(import, changes, step->count, &error);
	else if (step->kind == VDI_STEP_COMPACT)
		status = vdi_mvcc_import_compact(import, step->revision, &error);
	vdi_free(changes);
	if (status == VD_INVALID)
		return vdi_log_steps_broken(player->steps, step->line, error.message, reterr);
	if (status != VD_OK && reterr)
		*reterr = error;
	player->progress.transactions += step->kind == VDI_STEP_TXN;
	player->progress.records += step->count;
	if (step->time.ns)
		player->progress.time = step->time;
	return status;
}

struct opening {
	struct vd_player *player;
	vd_rev		  start_revision;
};

/* Imports the snapshot and the requested start. Keeps the next step for the actor. */
static vd_status run_import(void *arg, struct vdi_mvcc_import *import, struct vd_error *reterr)
{
	struct opening	 *opening = arg;
	struct vd_player *player = opening->player;
	vd_status	  status;

	while ((status = vdi_log_steps_next(player->steps, &player->step, reterr)) == VD_OK) {
		if (player->step.kind != VDI_STEP_SNAPSHOT &&
		    player->step.revision > opening->start_revision) {
			player->has_step = true;
			return VD_OK;
		}
		VDI_TRY(import_step(player, import, reterr));
	}
	if (status != VD_CLOSED)
		return status;
	VDI_TRY(vdi_player_take_tail_locked(player, reterr));
	player->is_between = player->rounds_left && player->progress.transactions;
	player->log_ended = player->progress.ended = !player->is_between;
	return VD_OK;
}

static vd_status open_inner(struct vd_player *player, const struct vd_player_options *options,
			    struct vd_error *reterr)
{
	struct opening		 opening = { player, options->start_revision };
	struct vdi_mvcc_importer importer = { run_import, NULL, &opening };
	struct vd_mvcc_options	 inner = VD_MVCC_OPTIONS_INIT;
	struct vd_store_status	 status;

	inner.history_bytes = options->history_bytes;
	player->path = vdi_strndup(options->path, strlen(options->path));
	if (player->path == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	VDI_TRY(vdi_log_steps_open(options->path, &player->steps, reterr));
	VDI_TRY(vdi_mvcc_open_importing(player->env, &inner, NULL, &importer, &player->front.inner, reterr));
	VDI_TRY(vd_store_status_get(player->front.inner, &status));
	player->progress.revision = status.current;
	return VD_OK;
}

static vd_status open_actors(struct vd_player *player, struct vd_error *reterr)
{
	struct vd_actor_options actor = {
		.name = "player", .run = vdi_player_run, .arg = player, .blocking = true
	};
	struct vd_actor_options clock = { .name = "player clock", .run = vdi_player_clock, .arg = player };
	vd_status		status = vd_actor_new(player->env, &actor, &player->actor);

	if (status == VD_OK)
		status = vd_actor_new(player->env, &clock, &player->clock);
	return status == VD_OK ? VD_OK : vd_error_set(reterr, status, "player: the actor cannot be created");
}

static vd_status check_options(const struct vd_player_options *options, struct vd_error *reterr)
{
	if (options->path == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "player: path is NULL");
	if (options->rounds != 1 && strcmp(options->path, "-") == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "player: standard input can be played only once");
	if (!(options->speed >= 0) || !isfinite(options->speed))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "player: speed must be 0 or more");
	if (options->history_bytes < 0 || options->start_revision < 0 || options->lead_max == 0 ||
	    options->lead_max > VDI_PLAYER_LEAD_LIMIT / 2)
		return vd_error_set(
			reterr, VD_INVALID_ARGUMENT,
			"player: history_bytes and start_revision must be 0 or more, lead_max 1 to %u",
			VDI_PLAYER_LEAD_LIMIT / 2);
	return VD_OK;
}

static vd_status prepare(struct vd_player *player, const struct vd_player_options *options,
			 struct vd_error *reterr)
{
	player->flight_capacity = 2048;
	while (player->flight_capacity < options->lead_max + VDI_PLAYER_FLIGHTS_MAX)
		player->flight_capacity *= 2;
	player->flights = vdi_calloc(player->flight_capacity, sizeof *player->flights);
	if (player->flights == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	VDI_TRY(vdi_fault_plan_init(&player->faults, options->faults, reterr));
	VDI_TRY(open_inner(player, options, reterr));
	return open_actors(player, reterr);
}

vd_status vd_player_open(const struct vd_env *env, const struct vd_player_options *options,
			 struct vd_player **ret_player, struct vd_error *reterr)
{
	struct vd_player *player;
	vd_status	  status;

	VDI_REQUIRE(env, reterr);
	VDI_REQUIRE(ret_player, reterr);
	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_TRY(check_options(options, reterr));
	player = VDI_NEW(struct vd_player);
	if (player == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	player->front.base.ops = &vdi_player_store_ops;
	player->front.base.env = player->env = env;
	player->references = 1;
	player->writable = options->writable;
	player->strict = options->strict;
	player->lead_max = options->lead_max;
	player->lead_bytes_max = VDI_PLAYER_LEAD_BYTES_MAX;
	if (options->history_bytes)
		player->lead_bytes_max =
			VDI_MIN(player->lead_bytes_max, (uint64_t) options->history_bytes / 2);
	player->seed = options->seed;
	player->speed = options->speed;
	player->is_paused = options->paused;
	vdi_lock_init(&player->lock, VDI_LOCK_STORE);
	player->rounds_left = options->rounds ? options->rounds - 1 : UINT64_MAX;
	player->progress.rounds = 1;
	vdi_rand_init(&player->rand, options->seed);
	vdi_rand_shared_init(&player->call_rand, options->seed ^ 0x706c6179);
	LIST_INIT(&player->watches);
	SLIST_INIT(&player->waiters);
	status = prepare(player, options, reterr);
	if (status != VD_OK) {
		vdi_wait_for_actor_close(env, player->actor);
		vdi_wait_for_actor_close(env, player->clock);
		if (player->front.inner)
			(void) vd_store_close_wait(player->front.inner);
		vdi_player_unref(player);
		return status;
	}
	player->usage = (struct vdi_usage) { .kind = "player", .closed_by = "vd_player_close", .env = env };
	vdi_usage_begin(&player->usage);
	vd_actor_wake(player->actor);
	*ret_player = player;
	return VD_OK;
}

void vdi_player_prepare(struct vd_player *player, vdi_codec_of_fn codec_of, void *arg)
{
	player->codec_of = codec_of;
	player->codec_of_arg = arg;
	if (player->steps)
		vdi_log_steps_prepare(player->steps, codec_of, arg);
}

struct vd_store *vd_player_store(struct vd_player *player)
{
	return &player->front.base;
}

/* ---- Closing: the reader, then the clock, then the store that both use ---- */

static void on_inner_closed(void *arg)
{
	struct vd_player *player = arg;
	void (*done)(void *arg) = player->close_done;
	void *done_arg = player->close_done_arg;

	vdi_usage_end(&player->usage);
	vdi_player_unref(player);
	if (done)
		done(done_arg);
}

static void on_clock_closed(void *arg)
{
	struct vd_player *player = arg;

	vd_store_close(player->front.inner, on_inner_closed, player);
}

static void on_actor_closed(void *arg)
{
	struct vd_player *player = arg;
	struct vd_actor	 *clock = player->clock;

	vd_actor_close(clock, on_clock_closed, player);
}

void vd_player_close(struct vd_player *player, void (*done)(void *arg), void *arg)
{
	if (player == NULL) {
		if (done)
			done(arg);
		return;
	}
	vdi_usage_check("vd_player_close", &player->front.base);
	if (atomic_exchange(&player->usage.is_closing, true))
		vdi_misuse("vd_player_close: the player is closing already");
	vdi_lock_acquire(&player->lock);
	player->is_closing = true;
	player->close_done = done;
	player->close_done_arg = arg;
	vdi_player_wake_waiters_locked(player);
	vdi_lock_release(&player->lock);
	vd_actor_close(player->actor, on_actor_closed, player);
}

struct vd_player *vd_player_close_wait(struct vd_player *player)
{
	struct vdi_wait wait;

	if (player) {
		vdi_wait_check_close(__func__, "vd_player_close");
		vdi_wait_init(&wait, player->env);
		vd_player_close(player, vdi_wait_signal_arg, &wait);
		vdi_wait_wait(&wait);
		vdi_wait_fini(&wait);
	}
	return NULL;
}
