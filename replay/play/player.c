/* The actor processes the steps of the log. It submits each transaction to the inner store, which keeps
 * everything in memory and answers in order. Submitted transactions are kept in a ring, so that the distance
 * to the slowest watch is known in transactions and bytes without asking the watches. Faults are drawn when a
 * transaction is submitted, in the order of the log, and happen when it is applied, so the same seed and log
 * give the same faults at the same places. */
#include "player.h"

#include <stdio.h>

#include "mvcc_replay.h"

#define STEPS_PER_RUN 256
/* Transactions between the cut and the compaction of a "compact" fault. With two, a watch that had read
 * everything before the cut is compacted too: etcd starts a watch at exactly the compacted revision. */
#define BLACKOUT_TRANSACTIONS 2

/* Notes the end of the replay when all submitted transactions are applied and no more follow. */
static void check_end_locked(struct vd_player *player)
{
	if (player->log_ended && player->applied == player->submitted && !player->progress.ended) {
		player->progress.ended = true;
		vdi_player_wake_waiters_locked(player);
	}
}

/* ---- Cuts ---- */

static void cut_locked(struct vd_player *player, vd_rev revision, vd_status status, const char *text)
{
	struct vdi_player_watch *watch;

	LIST_FOREACH(watch, &player->watches, node)
	player->awaited += !watch->has_ended && watch->cut_seen == player->cut;
	player->await_until = vd_mono_add(vd_env_now(player->env), VDI_PLAYER_AWAIT);
	player->cut++;
	player->cut_revision = revision;
	player->cut_status = status;
	snprintf(player->cut_text, sizeof player->cut_text, "%s", text);
	LIST_FOREACH(watch, &player->watches, node)
	watch->ready(watch->ready_arg);
}

static void on_compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct vd_player *player = arg;

	(void) revision;
	(void) error;
	vdi_lock_acquire(&player->lock);
	player->compacting = false;
	if (status == VD_OK)
		player->progress.compactions++;
	vdi_lock_release(&player->lock);
	vdi_player_unref(player);
}

/* Compacts the inner store. Without the lock. */
static void compact(struct vd_player *player, vd_rev revision)
{
	vdi_player_ref(player);
	if (vd_store_compact(player->front.inner, revision, false, on_compacted, player) != VD_OK)
		on_compacted(player, VD_FULL, 0, NULL);
}

static void inflict_locked(struct vd_player *player, const struct vdi_flight *flight)
{
	switch (flight->fault) {
	case VDI_FAULT_DISCONNECT:
		player->progress.disconnects++;
		cut_locked(player, flight->revision, VD_UNAVAILABLE, "the player disconnected the watch");
		break;
	case VDI_FAULT_ERROR:
		player->progress.errors++;
		cut_locked(player, flight->revision, VD_INTERNAL,
			   player->fault_text[0] ? player->fault_text : "an error of the player");
		break;
	case VDI_FAULT_COMPACT:
		player->progress.disconnects++;
		if (player->blackout == 0 && !player->compacting)
			player->blackout = BLACKOUT_TRANSACTIONS;
		cut_locked(player, flight->revision, VD_UNAVAILABLE, "the player disconnected the watch");
		break;
	default: break;
	}
}

/* Counts a transaction of the blackout, or ends it if none comes for now. Returns true if the compaction is
 * due. */
static bool ends_blackout_locked(struct vd_player *player, bool nothing_comes)
{
	if (player->blackout == 0 || (--player->blackout && !nothing_comes))
		return false;
	player->blackout = 0;
	player->compacting = true;
	return true;
}

/* ---- Applied ---- */

static void on_applied(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct vd_player  *player = arg;
	struct vdi_flight *flight;
	bool		   compacts = false;

	vdi_lock_acquire(&player->lock);
	flight = &player->flights[player->applied & (player->flight_capacity - 1)];
	player->applied++;
	player->applied_bytes += flight->bytes;
	if (status == VD_OK) {
		flight->revision = revision;
		player->progress.revision = VDI_MAX(player->progress.revision, revision);
		player->progress.transactions += flight->is_transaction;
		player->progress.records += flight->records;
		if (flight->time.ns)
			player->progress.time = flight->time;
		if (flight->is_transaction)
			compacts = ends_blackout_locked(player, false);
		if (flight->has_fault)
			inflict_locked(player, flight);
		vdi_player_wake_waiters_locked(player);
	} else if (player->error.code == VD_OK && status != VD_CLOSED) {
		player->error = *error;
		player->log_ended = true;
	}
	check_end_locked(player);
	if (!player->is_closing)
		vd_actor_wake(player->actor);
	vdi_lock_release(&player->lock);
	if (compacts)
		compact(player, revision);
	vdi_player_unref(player);
}

/* ---- Applying ---- */

/* Returns the first flight in the ring that was not delivered to a watch at this revision. The search
 * continues from the last result, unless a watch was opened further back. */
static uint64_t find_unread_locked(const struct vd_player *player, vd_rev revision)
{
	const uint32_t mask = player->flight_capacity - 1;
	uint64_t first = player->submitted - VDI_MIN(player->submitted, (uint64_t) player->flight_capacity);
	uint64_t at = VDI_MAX(player->unread, first);

	if (at > player->submitted || (at > first && player->flights[(at - 1) & mask].revision > revision))
		at = first;
	while (at < player->submitted && player->flights[at & mask].revision <= revision)
		at++;
	return at;
}

/* Returns true if the slowest watch is too far behind the submitted transactions. A watch without matching
 * events is not notified and its position does not change, but it is not behind what was applied. */
static bool leads_too_far_locked(struct vd_player *player)
{
	const struct vdi_player_watch *watch;
	vd_rev			       slowest = INT64_MAX;

	LIST_FOREACH(watch, &player->watches, node)
	if (!watch->has_ended)
		slowest = VDI_MIN(slowest, atomic_load(&watch->is_waiting) ?
						   VDI_MAX(watch->position, player->progress.revision) :
						   watch->position);
	if (slowest == INT64_MAX || player->submitted == 0)
		return false;
	player->unread = find_unread_locked(player, slowest);
	if (player->unread == player->submitted)
		return false;
	return player->submitted - player->unread >= player->lead_max ||
	       player->submitted_bytes -
			       player->flights[player->unread & (player->flight_capacity - 1)].bytes_before >=
		       player->lead_bytes_max;
}

static void draw_fault_locked(struct vd_player *player, struct vdi_flight *flight)
{
	player->fault_text[0] = 0;
	flight->has_fault = vdi_fault_plan_point(&player->faults, flight->revision, &flight->fault);
	/* A random number is drawn in any case, so that a point does not change the later faults. */
	for (int kind = 0; kind < VDI_FAULT_POINT_KINDS; kind++) {
		bool hit = player->faults.after[kind] > 0 &&
			   vdi_player_dice(vdi_rand_next(&player->rand), player->faults.after[kind]);

		if (hit && !flight->has_fault) {
			flight->has_fault = true;
			flight->fault = (enum vdi_fault_point_kind) kind;
		}
	}
}

static void launch_locked(struct vd_player *player, const struct vdi_log_step *step)
{
	struct vdi_flight *flight = &player->flights[player->submitted & (player->flight_capacity - 1)];

	*flight = (struct vdi_flight) { .revision = step->revision,
					.bytes_before = player->submitted_bytes,
					.bytes = step->bytes,
					.records = step->count,
					.time = step->time,
					.is_transaction = step->kind == VDI_STEP_TXN };
	if (flight->is_transaction)
		draw_fault_locked(player, flight);
	player->has_cut |= flight->has_fault;
	player->submitted++;
	player->submitted_bytes += step->bytes;
}

static void unlaunch_locked(struct vd_player *player, const struct vdi_log_step *step)
{
	player->submitted--;
	player->submitted_bytes -= step->bytes;
}

/* Submits a transaction. VD_FULL, VD_NOMEM: not submitted. */
static vd_status submit(struct vd_player *player, struct vdi_log_step *step)
{
	vd_status status;

	if (!vdi_grow((void **) &player->changes, &player->change_capacity, step->count,
		      sizeof *player->changes))
		return VD_NOMEM;
	for (size_t i = 0; i < step->count; i++)
		player->changes[i] =
			(struct vdi_replay_change) { step->changes[i].is_delete, step->changes[i].kv,
						     step->changes[i].kv->create_rev,
						     step->changes[i].kv->version };
	vdi_lock_acquire(&player->lock);
	launch_locked(player, step);
	vdi_lock_release(&player->lock);
	vdi_player_ref(player);
	status = vdi_mvcc_replay(player->front.inner, step->revision, player->changes, step->count,
				 on_applied, player);
	if (status == VD_OK) {
		for (size_t i = 0; i < step->count; i++)
			step->changes[i].kv = NULL;
		return VD_OK;
	}
	vdi_lock_acquire(&player->lock);
	unlaunch_locked(player, step);
	vdi_lock_release(&player->lock);
	vdi_player_unref(player);
	return status;
}

/* Lets a recorded disconnect or error happen after the last submitted transaction. */
static void take_cut(struct vd_player *player, const struct vdi_log_step *step)
{
	struct vdi_flight  mark = { .fault = step->kind == VDI_STEP_FAILURE ? VDI_FAULT_ERROR :
									      VDI_FAULT_DISCONNECT };
	struct vdi_flight *flight;

	vdi_lock_acquire(&player->lock);
	snprintf(player->fault_text, sizeof player->fault_text, "%s", step->text);
	if (player->applied == player->submitted) {
		mark.revision = player->progress.revision;
		inflict_locked(player, &mark);
	} else {
		flight = &player->flights[(player->submitted - 1) & (player->flight_capacity - 1)];
		flight->has_fault = player->has_cut = true;
		flight->fault = mark.fault;
	}
	vdi_lock_release(&player->lock);
}

static vd_status apply(struct vd_player *player, struct vdi_log_step *step, struct vd_error *reterr)
{
	vd_status status;

	switch (step->kind) {
	case VDI_STEP_TXN:
	case VDI_STEP_PROGRESS:
		status = submit(player, step);
		return status == VD_OK ? VD_OK :
					 vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	case VDI_STEP_COMPACT: compact(player, step->revision); return VD_OK;
	case VDI_STEP_SNAPSHOT:
		return vdi_log_steps_broken(player->steps, step->line,
					    "a snapshot must come before all changes", reterr);
	default: take_cut(player, step); return VD_OK;
	}
}

/* ---- Timing ---- */

enum decision { APPLY, WAIT, LATER };

static bool is_fast_locked(const struct vd_player *player)
{
	const struct vdi_log_step *step = &player->step;

	return step->revision <= player->seek_revision ||
	       (player->seek_time.ns && (step->time.ns == 0 || step->time.ns < player->seek_time.ns));
}

/* Computes when the step is due by the recorded clock. */
static enum decision pace(struct vd_player *player, double speed, vd_mono *ret_due)
{
	const struct vdi_log_step *step = &player->step;
	vd_mono			   now = vd_env_now(player->env);
	double			   ahead_ns;

	if (player->pace_recorded.ns == 0) {
		player->pace_recorded = step->time;
		player->pace_mono = now;
	}
	ahead_ns = (double) (step->time.ns - player->pace_recorded.ns) / speed;
	if (ahead_ns <= 0)
		return APPLY;
	*ret_due =
		vd_mono_add(player->pace_mono, (vd_dur) { ahead_ns < 9e18 ? (int64_t) ahead_ns : INT64_MAX });
	return ret_due->ns <= now.ns ? APPLY : LATER;
}

static enum decision decide_locked(struct vd_player *player, vd_mono *ret_due)
{
	bool fast = is_fast_locked(player);

	player->is_paused |= player->stop_revision && player->step.revision > player->stop_revision;
	if (player->awaited && !player->blackout) {
		if (vd_env_now(player->env).ns < player->await_until.ns) {
			*ret_due = player->await_until;
			return LATER;
		}
		player->awaited = 0;
	}
	if (player->has_cut && player->applied < player->submitted)
		return WAIT;
	player->has_cut = false;
	if (player->submitted - player->applied >= VDI_PLAYER_FLIGHTS_MAX ||
	    player->submitted_bytes - player->applied_bytes >= VDI_PLAYER_FLIGHT_BYTES_MAX)
		return WAIT; /* on_applied wakes */
	player->waits_for_watches = leads_too_far_locked(player);
	if (player->waits_for_watches)
		return WAIT;
	if (player->seek_time.ns && player->step.time.ns >= player->seek_time.ns)
		player->seek_time.ns = 0;
	if (fast || player->is_paused) {
		player->pace_recorded.ns = 0;
		if (fast)
			return APPLY;
		if (player->steps_allowed == 0) {
			player->progress.resting = player->applied == player->submitted;
			return WAIT;
		}
		player->steps_allowed -= player->step.kind == VDI_STEP_TXN;
		return APPLY;
	}
	return player->speed > 0 && player->step.time.ns ? pace(player, player->speed, ret_due) : APPLY;
}

/* Handles a pause of the replay: a compaction does not wait for further transactions. */
static void rest(struct vd_player *player)
{
	bool   compacts;
	vd_rev revision;

	vdi_lock_acquire(&player->lock);
	compacts = player->applied == player->submitted && ends_blackout_locked(player, true);
	revision = player->progress.revision;
	vdi_lock_release(&player->lock);
	if (compacts)
		compact(player, revision);
}

vd_status vdi_player_take_tail_locked(struct vd_player *player, struct vd_error *reterr)
{
	struct vdi_log_tail tail = vdi_log_steps_tail(player->steps);
	char		    text[VDI_LOG_TAIL_SIZE];

	player->progress.was_torn |= tail.is_torn;
	player->progress.was_unclosed |= tail.is_unclosed;
	player->progress.torn_line = tail.is_torn ? tail.line : 0;
	player->progress.torn_records = tail.records;
	player->progress.torn_bytes = tail.bytes;
	return player->strict && vdi_log_tail_describe(&tail, text) ?
		       vdi_log_steps_broken(player->steps, tail.line, text, reterr) :
		       VD_OK;
}

static void end_log(struct vd_player *player, const struct vd_error *error)
{
	struct vd_error torn = { 0 };

	vdi_lock_acquire(&player->lock);
	if (error == NULL && player->steps &&
	    vdi_player_take_tail_locked(player, &torn) != VD_OK) /* NULL: the log could not be reopened */
		error = &torn;
	if (error && player->error.code == VD_OK)
		player->error = *error;
	player->log_ended = true;
	check_end_locked(player);
	vdi_lock_release(&player->lock);
}

/* Begins the next round. true: it has begun, or waits until everything is applied; false: it failed. */
static bool begin_round(struct vd_player *player)
{
	struct vd_error error = { 0 };
	bool		is_applied;

	vdi_lock_acquire(&player->lock);
	is_applied = player->applied == player->submitted;
	if (is_applied) {
		player->progress.rounds++;
		player->pace_recorded.ns = 0;
	}
	vdi_lock_release(&player->lock);
	if (!is_applied)
		return true;
	player->is_between = false;
	if (vdi_player_begin_round(player, &error) == VD_OK)
		return true;
	end_log(player, &error);
	return false;
}

/* Reads the next step if there is none. false: the log has ended. */
static bool have_step(struct vd_player *player)
{
	struct vd_error error = { 0 };
	vd_status	status;

	if (player->has_step || player->is_between)
		return true;
	status = vdi_player_next_step(player, &error);
	if (status == VD_CLOSED && player->rounds_left && player->round_transactions) {
		player->is_between = true;
		return true;
	}
	player->has_step = status == VD_OK;
	if (!player->has_step)
		end_log(player, status == VD_CLOSED ? NULL : &error);
	return player->has_step;
}

void vdi_player_run(void *arg)
{
	struct vd_player *player = arg;
	enum decision	  decision;
	vd_mono		  due = VD_NEVER;
	struct vd_error	  error = { 0 };
	vd_status	  status;
	bool		  stops, paused;

	for (int i = 0; i < STEPS_PER_RUN; i++) {
		vdi_lock_acquire(&player->lock);
		stops = player->is_closing || player->log_ended;
		vdi_lock_release(&player->lock);
		if (stops || !have_step(player)) {
			rest(player);
			return;
		}
		if (player->is_between) {
			if (!begin_round(player))
				return;
			if (player->is_between)
				return; /* on_applied wakes */
			continue;
		}
		vdi_lock_acquire(&player->lock);
		decision = decide_locked(player, &due);
		paused = player->is_paused;
		vdi_lock_release(&player->lock);
		if (decision != APPLY) {
			if (decision == WAIT && paused)
				rest(player);
			if (decision == LATER)
				vd_actor_set_timer(player->actor, due);
			return;
		}
		status = apply(player, &player->step, &error);
		if (status == VD_FULL || status == VD_CLOSED)
			return; /* woken by on_applied, or closing */
		player->has_step = false;
		player->round_transactions += player->step.kind == VDI_STEP_TXN;
		if (status != VD_OK)
			end_log(player, &error);
	}
	vd_actor_wake(player->actor);
}
