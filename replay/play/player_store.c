/* The store that clients see: the inner store with the player's cuts, delays and refusals, and with writes
 * only if the player is writable.
 *
 * A watch passes on the batches of the inner watch and notes its reader's position, which limits the player's
 * lead. It never changes, drops or repeats a batch: a fault only delays one or ends the watch, so a reader
 * that opens the watch again gets all events.
 */
#include "player.h"

#include <stdio.h>

static struct vdi_player_watch *watch_of(struct vd_store_watch *watch)
{
	return (struct vdi_player_watch *) watch;
}

/* ---- Calls ---- */

static bool call_dice(struct vd_player *player, double probability, uint64_t *count)
{
	if (probability <= 0 || !vdi_player_dice(vdi_rand_shared_next(&player->call_rand), probability))
		return false;
	vdi_lock_acquire(&player->lock);
	++*count;
	vdi_lock_release(&player->lock);
	return true;
}

static void unavailable(struct vd_error *error)
{
	(void) vd_error_set(error, VD_UNAVAILABLE, "the player refused the call (injected fault)");
}

static vd_status player_range(struct vd_store *store, const struct vd_range_request *request,
			      vd_range_fn done, void *arg)
{
	struct vd_player *player = vdi_player_of(store);
	struct vd_error	  error = { 0 };

	if (call_dice(player, player->faults.refuse, &player->progress.refusals)) {
		unavailable(&error);
		done(arg, VD_UNAVAILABLE, NULL, &error);
		return VD_OK;
	}
	if (request->revision > 0 &&
	    call_dice(player, player->faults.too_large, &player->progress.too_large)) {
		(void) vd_error_set(&error, VD_TOO_LARGE_REVISION,
				    "required revision %lld is a future revision (injected fault)",
				    (long long) request->revision);
		error.requested = request->revision;
		done(arg, VD_TOO_LARGE_REVISION, NULL, &error);
		return VD_OK;
	}
	return vd_store_range(player->front.inner, request, done, arg);
}

static bool writes(const struct vd_txn_request *request)
{
	for (int branch = 0; branch < 2; branch++) {
		const struct vd_op *ops = branch ? request->failure : request->success;
		size_t		    count = branch ? request->failure_count : request->success_count;

		for (size_t i = 0; i < count; i++)
			if (ops[i].kind == VD_OP_PUT || ops[i].kind == VD_OP_DELETE ||
			    (ops[i].kind == VD_OP_TXN && writes(ops[i].txn)))
				return true;
	}
	return false;
}

struct lost_answer {
	struct vd_player *player;
	vd_txn_fn	  done;
	void		 *arg;
};

static void on_lost(void *arg, vd_status status, const struct vd_txn_result *result,
		    const struct vd_error *error)
{
	struct lost_answer *lost = arg;
	struct vd_error	    reported = { 0 };

	(void) result;
	if (status == VD_OK) {
		(void) vd_error_set(&reported, VD_UNAVAILABLE, "the player lost the answer (injected fault)");
		lost->done(lost->arg, VD_UNAVAILABLE, NULL, &reported);
	} else {
		lost->done(lost->arg, status, NULL, error);
	}
	vdi_player_unref(lost->player);
	vdi_free(lost);
}

static vd_status lose_answer(struct vd_player *player, const struct vd_txn_request *request, vd_txn_fn done,
			     void *arg)
{
	struct lost_answer *lost = VDI_NEW(struct lost_answer);
	vd_status	    status;

	if (lost == NULL)
		return VD_NOMEM;
	*lost = (struct lost_answer) { player, done, arg };
	vdi_player_ref(player);
	status = vd_store_txn(player->front.inner, request, on_lost, lost);
	if (status != VD_OK) {
		vdi_player_unref(player);
		vdi_free(lost);
	}
	return status;
}

static const char read_only[] = "the player is read only: open it as writable";

static vd_status player_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			    void *arg)
{
	struct vd_player *player = vdi_player_of(store);
	struct vd_error	  error = { 0 };
	bool		  is_write = writes(request);

	if (is_write && !player->writable) {
		(void) vd_error_set(&error, VD_FORBIDDEN, read_only);
		done(arg, VD_FORBIDDEN, NULL, &error);
		return VD_OK;
	}
	if (call_dice(player, player->faults.refuse, &player->progress.refusals)) {
		unavailable(&error);
		done(arg, VD_UNAVAILABLE, NULL, &error);
		return VD_OK;
	}
	if (is_write && call_dice(player, player->faults.lose, &player->progress.lost_answers))
		return lose_answer(player, request, done, arg);
	return vd_store_txn(player->front.inner, request, done, arg);
}

static vd_status player_compact(struct vd_store *store, vd_rev revision, bool physical, vd_done_fn done,
				void *arg)
{
	struct vd_player *player = vdi_player_of(store);
	struct vd_error	  error = { 0 };

	if (player->writable)
		return vd_store_compact(player->front.inner, revision, physical, done, arg);
	(void) vd_error_set(&error, VD_FORBIDDEN, read_only);
	done(arg, VD_FORBIDDEN, 0, &error);
	return VD_OK;
}

static vd_status player_lease_grant(struct vd_store *store, int64_t id, int64_t ttl_s, vd_lease_fn done,
				    void *arg)
{
	struct vd_player *player = vdi_player_of(store);
	struct vd_error	  error = { 0 };

	if (player->writable)
		return vd_store_lease_grant(player->front.inner, id, ttl_s, done, arg);
	(void) vd_error_set(&error, VD_FORBIDDEN, read_only);
	done(arg, VD_FORBIDDEN, NULL, &error);
	return VD_OK;
}

static void player_dump(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg)
{
	struct vd_player_progress progress;
	char			  text[512];
	int			  size;

	vd_player_progress_get(vdi_player_of(store), &progress);
	size = snprintf(
		text, sizeof text,
		",\"replay\":{\"revision\":%lld,\"transactions\":%llu,\"records\":%llu,\"paused\":%s,"
		"\"ended\":%s,\"disconnects\":%llu,\"compactions\":%llu,"
		"\"errors\":%llu,\"delays\":%llu,\"refusals\":%llu,\"lostAnswers\":%llu,\"tooLarge\":%llu}",
		(long long) progress.revision, (unsigned long long) progress.transactions,
		(unsigned long long) progress.records, progress.paused ? "true" : "false",
		progress.ended ? "true" : "false", (unsigned long long) progress.disconnects,
		(unsigned long long) progress.compactions, (unsigned long long) progress.errors,
		(unsigned long long) progress.delays, (unsigned long long) progress.refusals,
		(unsigned long long) progress.lost_answers, (unsigned long long) progress.too_large);
	write(arg, (struct vd_bytes) { text, (size_t) size });
	vd_store_dump(vdi_player_of(store)->front.inner, write, arg);
}

/* Does nothing: the player closes the store. */
static void player_close(struct vd_store *store, void (*done)(void *arg), void *arg)
{
	(void) store;
	if (done)
		done(arg);
}

/* ---- Watches ---- */

static void on_ready(void *arg)
{
	struct vdi_player_watch *watch = arg;

	atomic_store(&watch->is_waiting, false);
	watch->ready(watch->ready_arg);
}

static void no_ready(void *arg)
{
	(void) arg;
}

static vd_status enroll(struct vd_player *player, struct vdi_player_watch *watch, struct vd_error *reterr)
{
	vd_status status = VD_OK;

	vdi_lock_acquire(&player->lock);
	if (player->is_closing)
		status = vd_error_set(reterr, VD_CLOSED, "the player is closing");
	else if (player->blackout || player->compacting)
		status = vd_error_set(reterr, VD_UNAVAILABLE, "the player is disconnected");
	if (status == VD_OK) {
		watch->cut_seen = player->cut;
		vdi_rand_init(&watch->rand, player->seed * 31 + ++player->opened);
		LIST_INSERT_HEAD(&player->watches, watch, node);
		vdi_player_ref(player);
		if (player->awaited && --player->awaited == 0)
			vd_actor_wake(player->actor);
	}
	vdi_lock_release(&player->lock);
	return status;
}

static void withdraw(struct vdi_player_watch *watch)
{
	struct vd_player *player = watch->player;

	vdi_lock_acquire(&player->lock);
	LIST_REMOVE(watch, node);
	vdi_timer_heap_remove(&player->timers, &watch->timer);
	if (player->waits_for_watches && !player->is_closing)
		vd_actor_wake(player->actor);
	vdi_lock_release(&player->lock);
}

static vd_status player_watch(struct vd_store *store, const struct vd_store_watch_request *request,
			      struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct vd_player	     *player = vdi_player_of(store);
	struct vd_store_watch_request inner = *request;
	struct vd_store_status	      status;
	struct vdi_player_watch	     *watch = VDI_NEW(struct vdi_player_watch);
	vd_status		      result;

	if (watch == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	watch->base.store = store;
	watch->player = player;
	watch->ready = request->ready ? request->ready : no_ready;
	watch->ready_arg = request->ready_arg;
	inner.ready = on_ready;
	inner.ready_arg = watch;
	/* For the player's lead, everything before the start counts as delivered. */
	if (vd_store_status_get(player->front.inner, &status) == VD_OK)
		watch->position = request->start_revision ? request->start_revision - 1 : status.current;
	result = enroll(player, watch, reterr);
	if (result == VD_OK) {
		result = vd_store_watch_open(player->front.inner, &inner, &watch->inner, reterr);
		if (result != VD_OK) {
			withdraw(watch);
			vdi_player_unref(player);
		}
	}
	if (result != VD_OK) {
		vdi_free(watch);
		return result;
	}
	*ret_watch = &watch->base;
	return VD_OK;
}

static vd_status end(struct vdi_player_watch *watch, vd_status status, const char *text,
		     struct vd_error *reterr)
{
	struct vd_player *player = watch->player;

	watch->end = status;
	snprintf(watch->end_text, sizeof watch->end_text, "%.*s", (int) sizeof watch->end_text - 1, text);
	vdi_lock_acquire(&player->lock);
	watch->has_ended = true;
	if (player->waits_for_watches && !player->is_closing)
		vd_actor_wake(player->actor);
	vdi_lock_release(&player->lock);
	return vd_error_set(reterr, status, "%s", text);
}

/* Returns true if a cut has reached this watch. reached: revision up to which the inner watch has delivered
 * everything. */
static bool is_cut(struct vdi_player_watch *watch, vd_rev reached, vd_status *ret_status, char text[160])
{
	struct vd_player *player = watch->player;
	bool		  cut;

	vdi_lock_acquire(&player->lock);
	cut = player->cut > watch->cut_seen && reached >= player->cut_revision;
	if (cut) {
		*ret_status = player->cut_status;
		memcpy(text, player->cut_text, sizeof player->cut_text);
	}
	vdi_lock_release(&player->lock);
	return cut;
}

static void note_position(struct vdi_player_watch *watch, vd_rev position)
{
	struct vd_player *player = watch->player;

	vdi_lock_acquire(&player->lock);
	watch->position = VDI_MAX(watch->position, position);
	if (player->waits_for_watches && !player->is_closing)
		vd_actor_wake(player->actor);
	vdi_lock_release(&player->lock);
}

/* Returns how long this batch is held back. */
static vd_dur delay_of(struct vdi_player_watch *watch)
{
	const struct vdi_fault_plan *faults = &watch->player->faults;
	vd_dur			     delay = faults->stale;

	if (faults->delay_max.ns > 0 && vdi_player_dice(vdi_rand_next(&watch->rand), faults->delay_rate))
		delay.ns += (int64_t) vdi_rand_below(&watch->rand, (uint64_t) faults->delay_max.ns + 1);
	return delay;
}

static void hold(struct vdi_player_watch *watch, const struct vd_store_batch *batch, vd_dur delay)
{
	struct vd_player *player = watch->player;

	watch->held = *batch;
	vdi_lock_acquire(&player->lock);
	watch->is_holding = true;
	watch->held_until = vd_mono_add(vd_env_now(player->env), delay);
	player->progress.delays++;
	if (!player->is_closing) {
		vdi_timer_heap_set(&player->timers, &watch->timer, watch->held_until);
		vd_actor_set_timer(player->clock, vdi_timer_heap_next_due(&player->timers));
	}
	vdi_lock_release(&player->lock);
}

/* Returns VD_OK if the held batch is due. */
static vd_status take_held(struct vdi_player_watch *watch)
{
	struct vd_player *player = watch->player;
	bool		  due;

	vdi_lock_acquire(&player->lock);
	due = player->is_closing || vd_env_now(player->env).ns >= watch->held_until.ns;
	if (due) {
		watch->is_holding = false;
		vdi_timer_heap_remove(&player->timers, &watch->timer);
	}
	vdi_lock_release(&player->lock);
	return due ? VD_OK : VD_AGAIN;
}

/* The clock's handler: wakes watches whose batch is due. Under the lock, so that none is closed meanwhile. */
void vdi_player_clock(void *arg)
{
	struct vd_player *player = arg;
	struct vdi_timer *timer;

	vdi_lock_acquire(&player->lock);
	while ((timer = vdi_timer_heap_pop_due(&player->timers, vd_env_now(player->env))) != NULL) {
		struct vdi_player_watch *watch = VDI_CONTAINER_OF(timer, struct vdi_player_watch, timer);

		watch->ready(watch->ready_arg);
	}
	if (!player->is_closing)
		vd_actor_set_timer(player->clock, vdi_timer_heap_next_due(&player->timers));
	vdi_lock_release(&player->lock);
}

static vd_status next_of_inner(struct vdi_player_watch *watch, size_t event_count_max,
			       struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct vd_store_status status = { 0 };
	vd_status	       result, cut_status;
	char		       text[160];
	vd_dur		       delay;

	/* Read before the inner watch is asked: if it then has no events, it has none up to this revision. */
	if (vd_store_status_get(watch->player->front.inner, &status) != VD_OK)
		status.current = 0;
	atomic_store(&watch->is_waiting, true); /* before the call, so that a later event clears it */
	result = vd_store_watch_next(watch->inner, event_count_max, ret_batch, reterr);
	if (result != VD_AGAIN)
		atomic_store(&watch->is_waiting, false);
	if (result == VD_AGAIN) {
		if (is_cut(watch, status.current, &cut_status, text))
			return end(watch, cut_status, text, reterr);
		note_position(watch, status.current);
		return VD_AGAIN;
	}
	if (result != VD_OK) {
		struct vd_error error = reterr ? *reterr : (struct vd_error) { .code = result };

		(void) end(watch, result, error.message, reterr);
		if (reterr)
			*reterr = error;
		return result;
	}
	if (is_cut(watch, ret_batch->revision - 1, &cut_status, text))
		return end(watch, cut_status, text, reterr);
	delay = delay_of(watch);
	if (delay.ns > 0) {
		hold(watch, ret_batch, delay);
		return VD_AGAIN;
	}
	return VD_OK;
}

static vd_status player_watch_next(struct vd_store_watch *base, size_t event_count_max,
				   struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct vdi_player_watch *watch = watch_of(base);
	struct vd_store_batch	 batch;
	vd_status		 status;

	if (watch->end != VD_OK)
		return vd_error_set(reterr, watch->end, "%s", watch->end_text);
	if (watch->is_holding) {
		status = take_held(watch);
		batch = watch->held;
	} else {
		status = next_of_inner(watch, event_count_max, &batch, reterr);
	}
	if (status != VD_OK)
		return status;
	note_position(watch, batch.revision);
	*ret_batch = batch;
	return VD_OK;
}

static vd_status player_watch_progress(struct vd_store_watch *base)
{
	return vd_store_watch_progress(watch_of(base)->inner);
}

static void player_watch_close(struct vd_store_watch *base)
{
	struct vdi_player_watch *watch = watch_of(base);
	struct vd_player	*player = watch->player;

	vd_store_watch_close(watch->inner);
	withdraw(watch);
	vdi_free(watch);
	vdi_player_unref(player);
}

const struct vd_store_ops vdi_player_store_ops = {
	.size = sizeof(struct vd_store_ops),
	.range = player_range,
	.txn = player_txn,
	.compact = player_compact,
	.lease_grant = player_lease_grant,
	.lease_revoke = vdi_forward_lease_revoke,
	.lease_keep_alive = vdi_forward_lease_keep_alive,
	.lease_time_to_live = vdi_forward_lease_time_to_live,
	.watch = player_watch,
	.watch_next = player_watch_next,
	.watch_progress = player_watch_progress,
	.watch_close = player_watch_close,
	.status = vdi_forward_status,
	.close = player_close,
	.dump = player_dump,
	.lease_list = vdi_forward_lease_list,
};
