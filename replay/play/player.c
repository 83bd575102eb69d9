/* The actor processes the steps of the log. It submits each transaction to the inner store, which keeps
 * everything in memory and answers in order. Submitted transactions are kept in a ring, so that the distance
 * to the slowest watch is known in transactions and bytes without asking the watches. Faults are drawn when a
 * transaction is submitted, in the order of the log, and happen when it is applied, so the same seed and log
 * give the same faults at the same places. */
#include "player.h"

#include <math.h>
#include <stdio.h>

#include "mvcc_open.h"
#include "mvcc_replay.h"
#include "wait.h"

#define STEPS_PER_RUN 256
/* Transactions between the cut and the compaction of a "compact" fault. With two, a watch that had read
 * everything before the cut is compacted too: etcd starts a watch at exactly the compacted revision. */
#define BLACKOUT_TRANSACTIONS 2

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

/* ---- Waiters ---- */

static bool is_satisfied_locked(const struct vd_player *player, vd_rev revision)
{
	return player->position.ended || player->is_closing ||
	       (revision != VD_PLAYER_END && player->position.revision >= revision);
}

static void wake_waiters_locked(struct vd_player *player)
{
	struct vdi_player_waiter *waiter, *next;
	SLIST_HEAD(, vdi_player_waiter) left = SLIST_HEAD_INITIALIZER(left);

	for (waiter = SLIST_FIRST(&player->waiters); waiter; waiter = next) {
		next = SLIST_NEXT(waiter, node);
		if (is_satisfied_locked(player, waiter->revision))
			vdi_wait_signal(&waiter->wait); /* it may be freed now */
		else
			SLIST_INSERT_HEAD(&left, waiter, node);
	}
	SLIST_FIRST(&player->waiters) = SLIST_FIRST(&left);
}

/* Notes the end of the replay when all submitted transactions are applied and no more follow. */
static void look_at_the_end_locked(struct vd_player *player)
{
	if (player->log_ended && player->applied == player->submitted && !player->position.ended) {
		player->position.ended = true;
		wake_waiters_locked(player);
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
		player->position.compactions++;
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
		player->position.disconnects++;
		cut_locked(player, flight->revision, VD_UNAVAILABLE, "the player disconnected the watch");
		break;
	case VDI_FAULT_ERROR:
		player->position.errors++;
		cut_locked(player, flight->revision, VD_INTERNAL,
			   player->fault_text[0] ? player->fault_text : "an error of the player");
		break;
	case VDI_FAULT_COMPACT:
		player->position.disconnects++;
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
		player->position.revision = VDI_MAX(player->position.revision, revision);
		player->position.transactions += flight->is_transaction;
		player->position.records += flight->records;
		if (flight->time.ns)
			player->position.time = flight->time;
		if (flight->is_transaction)
			compacts = ends_blackout_locked(player, false);
		if (flight->has_fault)
			inflict_locked(player, flight);
		wake_waiters_locked(player);
	} else if (player->error.code == VD_OK && status != VD_CLOSED) {
		player->error = *error;
		player->log_ended = true;
	}
	look_at_the_end_locked(player);
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
						   VDI_MAX(watch->position, player->position.revision) :
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
		mark.revision = player->position.revision;
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
			player->position.resting = player->applied == player->submitted;
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
	revision = player->position.revision;
	vdi_lock_release(&player->lock);
	if (compacts)
		compact(player, revision);
}

static vd_status take_tail_locked(struct vd_player *player, struct vd_error *reterr)
{
	struct vdi_log_tail tail = vdi_log_steps_tail(player->steps);
	char		    text[VDI_LOG_TAIL_SIZE];

	player->position.was_torn |= tail.is_torn;
	player->position.was_unclosed |= tail.is_unclosed;
	player->position.torn_line = tail.is_torn ? tail.line : 0;
	player->position.torn_records = tail.records;
	player->position.torn_bytes = tail.bytes;
	return player->strict && vdi_log_tail_say(&tail, text) ?
		       vdi_log_steps_broken(player->steps, tail.line, text, reterr) :
		       VD_OK;
}

static void end_log(struct vd_player *player, const struct vd_error *error)
{
	struct vd_error torn = { 0 };

	vdi_lock_acquire(&player->lock);
	if (error == NULL && player->steps &&
	    take_tail_locked(player, &torn) != VD_OK) /* NULL: the log could not be reopened */
		error = &torn;
	if (error && player->error.code == VD_OK)
		player->error = *error;
	player->log_ended = true;
	look_at_the_end_locked(player);
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
		player->position.rounds++;
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

static void player_run(void *arg)
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

/* ---- Controls ---- */

#define CONTROL(player, change)                                                                              \
	do {                                                                                                 \
		vdi_lock_acquire(&(player)->lock);                                                           \
		change;                                                                                      \
		(player)->position.resting = false;                                                          \
		if (!(player)->is_closing)                                                                   \
			vd_actor_wake((player)->actor);                                                      \
		vdi_lock_release(&(player)->lock);                                                           \
	} while (0)

void vd_player_pause(struct vd_player *player)
{
	CONTROL(player, player->is_paused = true; player->steps_allowed = 0);
}

void vd_player_resume(struct vd_player *player)
{
	CONTROL(player, player->is_paused = false; player->stop_revision = 0);
}

void vdi_player_play_until(struct vd_player *player, vd_rev revision)
{
	CONTROL(player, player->is_paused = false; player->stop_revision = revision);
}

/* The pace restarts with the next record. */
void vd_player_set_speed(struct vd_player *player, double speed)
{
	CONTROL(player, player->speed = isfinite(speed) && speed > 0 ? speed : 0;
		player->pace_recorded.ns = 0);
}

void vd_player_step(struct vd_player *player, uint64_t count)
{
	CONTROL(player, player->steps_allowed += count);
}

void vd_player_seek(struct vd_player *player, vd_rev revision)
{
	CONTROL(player, player->seek_revision = revision);
}

void vd_player_seek_time(struct vd_player *player, vd_wall time)
{
	CONTROL(player, player->seek_time = time);
}

void vd_player_position_get(const struct vd_player *player, struct vd_player_position *ret_position)
{
	struct vd_player *mine = (struct vd_player *) (uintptr_t) player; /* only its lock is modified */

	vdi_lock_acquire(&mine->lock);
	*ret_position = player->position;
	ret_position->paused = player->is_paused;
	vdi_lock_release(&mine->lock);
}

static vd_status wait_result_locked(const struct vd_player *player, vd_rev revision, struct vd_error *reterr)
{
	if (revision != VD_PLAYER_END && player->position.revision >= revision)
		return VD_OK;
	if (player->error.code != VD_OK) {
		if (reterr)
			*reterr = player->error;
		return player->error.code;
	}
	if (player->position.ended)
		return revision == VD_PLAYER_END ?
			       VD_OK :
			       vd_error_set(reterr, VD_NOT_FOUND,
					    "the log ends at revision %lld, before %lld",
					    (long long) player->position.revision, (long long) revision);
	if (player->is_closing)
		return vd_error_set(reterr, VD_CLOSED, "the player was closed");
	return vd_error_set(reterr, VD_TIMEOUT, "the player is at revision %lld",
			    (long long) player->position.revision);
}

vd_status vd_player_wait(struct vd_player *player, vd_rev revision, vd_dur timeout, struct vd_error *reterr)
{
	struct vdi_player_waiter waiter = { .revision = revision };
	vd_status		 status;
	bool			 signalled = true;

	VDI_REQUIRE(player, reterr);
	VDI_TRY(vdi_wait_check(player->env, __func__, reterr));
	vdi_wait_init(&waiter.wait, player->env);
	vdi_lock_acquire(&player->lock);
	if (is_satisfied_locked(player, revision))
		vdi_wait_signal(&waiter.wait);
	else
		SLIST_INSERT_HEAD(&player->waiters, &waiter, node);
	vdi_lock_release(&player->lock);
	if (timeout.ns < 0)
		vdi_wait_wait(&waiter.wait);
	else
		signalled = vdi_wait_until(&waiter.wait, vd_mono_add(vd_env_now(player->env), timeout));
	vdi_lock_acquire(&player->lock);
	if (!signalled && !vdi_wait_is_done(&waiter.wait))
		SLIST_REMOVE(&player->waiters, &waiter, vdi_player_waiter, node);
	status = wait_result_locked(player, revision, reterr);
	vdi_lock_release(&player->lock);
	vdi_wait_fini(&waiter.wait);
	return status;
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
	player->position.transactions += step->kind == VDI_STEP_TXN;
	player->position.records += step->count;
	if (step->time.ns)
		player->position.time = step->time;
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
	VDI_TRY(take_tail_locked(player, reterr));
	player->is_between = player->rounds_left && player->position.transactions;
	player->log_ended = player->position.ended = !player->is_between;
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
	player->position.revision = status.current;
	return VD_OK;
}

static vd_status open_actors(struct vd_player *player, struct vd_error *reterr)
{
	struct vd_actor_options actor = {
		.name = "player", .run = player_run, .arg = player, .blocking = true
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
	player->position.rounds = 1;
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
	wake_waiters_locked(player);
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
