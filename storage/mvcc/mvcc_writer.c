/* Everything that can fail in an iteration happens before or in the sync. After the sync only publish
 * remains, which allocates nothing and cannot fail. */
#include "mvcc_writer.h"

#include "mvcc_store.h"
#include "env.h"
#include "store.h"
#include "wait.h"

static void writer_run(void *arg);

/* Runs as a handler that must not wait: it calls callers' callbacks, and a callback that waits for this store
 * would wait for this very thread. */
static void writer_serve(void *arg)
{
	const char *outer = vdi_wait_enter_handler("mvcc writer");

	writer_run(arg);
	vdi_wait_leave_handler(outer);
}

vd_status vdi_writer_init(struct vdi_writer *writer, struct vdi_mvcc *mvcc)
{
	memset(writer, 0, sizeof *writer);
	writer->mvcc = mvcc;
	writer->tick_due = VD_NEVER;
	vdi_lock_init(&writer->queue_lock, VDI_LOCK_QUEUE);
	STAILQ_INIT(&writer->queue);
	STAILQ_INIT(&writer->taken);
	vdi_group_init(&writer->group, &mvcc->log);
	return VD_OK;
}

void vdi_writer_fini(struct vdi_writer *writer)
{
	vdi_group_fini(&writer->group);
	vdi_lock_fini(&writer->queue_lock);
}

vd_status vdi_writer_start(struct vdi_writer *writer)
{
	struct vd_actor_options options = {
		.name = "mvcc writer", .run = writer_serve, .arg = writer, .blocking = true
	};

	return vd_actor_new(writer->mvcc->env, &options, &writer->actor);
}

/* After a run that sees is_closing, the actor is freed. So a wake either holds the lock under which the run
 * reads is_closing, or is announced under it in wakers: a submitting thread wakes without the lock, because
 * many others wait for it. */
static void wake_locked(struct vdi_writer *writer)
{
	vdi_lock_assert_held(&writer->queue_lock);
	vd_actor_wake(writer->actor);
}

void vdi_writer_wake(struct vdi_writer *writer)
{
	vdi_lock_acquire(&writer->queue_lock);
	if (!writer->is_closing)
		wake_locked(writer);
	vdi_lock_release(&writer->queue_lock);
}

void vdi_writer_close(struct vdi_writer *writer)
{
	vdi_lock_acquire(&writer->queue_lock);
	writer->is_closing = true;
	wake_locked(writer);
	vdi_lock_release(&writer->queue_lock);
}

static void wait_for_wakers(struct vdi_writer *writer)
{
	while (atomic_load_explicit(&writer->wakers, memory_order_acquire))
		vdi_preempt_spin();
}

vd_status vdi_writer_submit(struct vdi_writer *writer, struct vdi_submission *submission)
{
	vd_status status = VD_OK;
	bool	  was_empty = false;

	submission->mvcc = writer->mvcc;
	vdi_lock_acquire(&writer->queue_lock);
	if (writer->is_closing)
		status = VD_CLOSED;
	else if (writer->in_flight >= writer->mvcc->options.in_flight_max)
		status = VD_FULL;
	if (status == VD_OK) {
		was_empty = STAILQ_EMPTY(&writer->queue);
		STAILQ_INSERT_TAIL(&writer->queue, submission, node);
		writer->in_flight++;
	}
	if (was_empty)
		atomic_fetch_add_explicit(&writer->wakers, 1, memory_order_relaxed);
	vdi_lock_release(&writer->queue_lock);
	if (was_empty) {
		vd_actor_wake(writer->actor);
		atomic_fetch_sub_explicit(&writer->wakers, 1, memory_order_release);
	}
	return status;
}

/* ---- Executing ---- */

static vd_status reject(struct vdi_submission *submission, vd_status status, vd_rev requested)
{
	struct vdi_group *group = &submission->mvcc->writer.group;

	submission->requested = requested;
	submission->current = group->revision;
	submission->compacted = group->compacted;
	return status;
}

static vd_status execute_txn(struct vdi_submission *submission)
{
	struct vdi_group *group = &submission->mvcc->writer.group;
	struct vd_error	  error = { 0 };
	vd_status	  status = vdi_txn_execute(&submission->txn.txn, group, &error);

	return status == VD_OK ? VD_OK : reject(submission, status, error.requested);
}

static vd_status execute_compact(struct vdi_submission *submission, vd_rev *ret_compact)
{
	struct vdi_group *group = &submission->mvcc->writer.group;
	vd_rev		  revision = submission->compact.revision;

	if (revision <= group->compacted)
		return reject(submission, VD_EXPIRED, revision);
	if (revision > group->revision)
		return reject(submission, VD_TOO_LARGE_REVISION, revision);
	group->compacted = revision;
	group->is_changed = true;
	*ret_compact = revision;
	return VD_OK;
}

static int64_t free_lease_id(const struct vdi_group *group, const struct vd_env *env)
{
	int64_t id;

	do
		id = (int64_t) (vd_env_random(env) >> 1);
	while (id == 0 || vdi_lease_find(vdi_btree_view(&group->leases), id));
	return id;
}

static vd_status execute_lease(struct vdi_submission *submission, vd_mono now)
{
	struct vdi_mvcc	       *mvcc = submission->mvcc;
	struct vdi_group       *group = &mvcc->writer.group;
	struct vd_lease_result *result = &submission->lease.result;
	struct vdi_lease *lease = vdi_lease_find(vdi_btree_view(&group->leases), submission->lease.wanted_id);

	*result = (struct vd_lease_result) { .id = submission->lease.wanted_id };
	switch (submission->kind) {
	case VDI_SUBMIT_LEASE_GRANT:
		if (result->id == 0)
			result->id = free_lease_id(group, mvcc->env);
		else if (lease)
			return reject(submission, VD_LEASE_EXISTS, 0);
		result->ttl_s = result->granted_ttl_s =
			VDI_MAX(submission->lease.wanted_ttl_s, VDI_LEASE_TTL_MIN_S);
		return vdi_group_lease_grant(group, result->id, result->ttl_s, now, vd_env_wall(mvcc->env));
	case VDI_SUBMIT_LEASE_REVOKE:
		if (lease == NULL)
			return reject(submission, VD_LEASE_NOT_FOUND, 0);
		return vdi_group_lease_revoke(group, result->id);
	default:
		if (lease == NULL || lease->deadline.ns <= now.ns)
			/* The answer is TTL 0, as etcd's; an expired lease is revoked when its turn comes. */
			return VD_OK;
		result->ttl_s = result->granted_ttl_s = lease->ttl_s;
		return vdi_group_lease_renew(group, lease, now, vd_env_wall(mvcc->env));
	}
}

/* Executes a recorded transaction at its revision, or at the next one if the store has reached it. */
static vd_status execute_replay(struct vdi_submission *submission)
{
	struct vdi_group *group = &submission->mvcc->writer.group;

	group->unit_revision = VDI_MAX(submission->replay.revision, group->unit_revision);
	for (size_t i = 0; i < submission->replay.count; i++) {
		const struct vdi_replay_change *change = &submission->replay.changes[i];
		struct vdi_key_range		range = { .single = true, .from = vd_kv_key(change->kv) };
		struct vd_kv		       *previous;
		size_t				first, count;

		if (change->is_delete) {
			VDI_TRY(vdi_group_delete(group, &range, &first, &count));
			continue;
		}
		VDI_TRY(vdi_group_put(group, change->kv, 0, &previous));
		if (change->create_rev > 0 && change->create_rev <= change->kv->mod_rev)
			change->kv->create_rev = change->create_rev;
		if (change->version > 0)
			change->kv->version = change->version;
	}
	if (submission->replay.count == 0 && submission->replay.revision > group->revision) {
		group->revision = submission->replay.revision;
		group->is_changed = true;
	}
	return VD_OK;
}

/* Appends the current unit to the journal. */
static vd_status append_unit(struct vdi_writer *writer, vd_rev compact, bool *ret_appended)
{
	struct vdi_commit commit;
	bool		  empty;

	VDI_TRY(vdi_group_unit_end(&writer->group, compact, &commit, &empty));
	if (empty || writer->mvcc->backend == NULL)
		return VD_OK;
	VDI_TRY(vdi_backend_append(writer->mvcc->backend, &commit, &writer->backend_error));
	*ret_appended = true;
	return VD_OK;
}

static bool is_rejection(vd_status status)
{
	return status == VD_TOO_LARGE_REVISION || status == VD_EXPIRED || status == VD_LEASE_NOT_FOUND ||
	       status == VD_LEASE_EXISTS || status == VD_NOT_FOUND || status == VD_TOO_BIG;
}

static bool is_of_lease(enum vdi_submission_kind kind)
{
	return kind == VDI_SUBMIT_LEASE_GRANT || kind == VDI_SUBMIT_LEASE_REVOKE ||
	       kind == VDI_SUBMIT_LEASE_KEEP_ALIVE;
}

/* VD_OK: executed or rejected. Any other status: the group must be restored. */
static vd_status execute_submission(struct vdi_writer *writer, struct vdi_submission *submission, vd_mono now,
				    bool *ret_appended)
{
	vd_rev	  compact = 0;
	vd_status status;

	vdi_group_unit_begin(&writer->group);
	if (submission->kind == VDI_SUBMIT_TXN)
		status = execute_txn(submission);
	else if (submission->kind == VDI_SUBMIT_COMPACT)
		status = execute_compact(submission, &compact);
	else if (submission->kind == VDI_SUBMIT_REPLAY)
		status = execute_replay(submission);
	else
		status = execute_lease(submission, now);
	submission->status = status;
	submission->current = writer->group.revision;
	if (status != VD_OK)
		return is_rejection(status) && vdi_group_unit_change_count(&writer->group) == 0 ? VD_OK :
												  status;
	status = append_unit(writer, compact, ret_appended);
	submission->current = writer->group.revision;
	if (is_of_lease(submission->kind))
		submission->lease.result.revision = writer->group.revision;
	submission->status = status;
	return status;
}

/* ---- What the writer does by itself ---- */

/* Revokes expired leases, each in a revision of its own, as etcd does. Failed ones are retried in the next
 * iteration. */
static vd_status execute_expiry(struct vdi_writer *writer, vd_mono now, bool *ret_appended, bool *ret_more)
{
	struct vdi_lease *lease;
	unsigned	  count = 0;

	while ((lease = vdi_group_lease_first(&writer->group)) != NULL && lease->deadline.ns <= now.ns) {
		if (count++ == VDI_LEASE_EXPIRE_MAX) {
			*ret_more = true;
			break;
		}
		vdi_group_unit_begin(&writer->group);
		VDI_TRY(vdi_group_lease_revoke(&writer->group, lease->id));
		VDI_TRY(append_unit(writer, 0, ret_appended));
		writer->expired_count++;
	}
	return VD_OK;
}

static vd_status execute_own_compaction(struct vdi_writer *writer, bool *ret_appended)
{
	if (writer->compact_target <= 0 || writer->compact_target <= writer->group.compacted)
		return VD_OK;
	vdi_group_unit_begin(&writer->group);
	writer->group.compacted = writer->compact_target;
	writer->group.is_changed = true;
	return append_unit(writer, writer->compact_target, ret_appended);
}

static void check_history(struct vdi_writer *writer, vd_mono now, vd_mono *due)
{
	const struct vd_mvcc_options *options = &writer->mvcc->options;

	*due = VD_NEVER;
	writer->compact_target = 0;
	if (options->history_window.ns > 0)
		writer->compact_target =
			vdi_mvcc_log_overdue(&writer->mvcc->log, now, options->history_window,
					     options->history_bytes, writer->group.revision, due);
}

/* ---- The turn ---- */

static size_t submission_size_bytes(const struct vdi_submission *submission)
{
	return submission->kind == VDI_SUBMIT_TXN ? submission->txn.txn.size_bytes : 0;
}

/* Returns true if more submissions are waiting. */
static bool take_group(struct vdi_writer *writer, bool *ret_closing)
{
	size_t count = 0;
	size_t bytes = 0;
	bool   more;

	vdi_lock_acquire(&writer->queue_lock);
	while (!STAILQ_EMPTY(&writer->queue) && count < VDI_GROUP_SUBMISSIONS_MAX &&
	       bytes < VDI_GROUP_BYTES_MAX) {
		struct vdi_submission *submission = STAILQ_FIRST(&writer->queue);

		STAILQ_REMOVE_HEAD(&writer->queue, node);
		STAILQ_INSERT_TAIL(&writer->taken, submission, node);
		bytes += submission_size_bytes(submission);
		count++;
	}
	more = !STAILQ_EMPTY(&writer->queue);
	*ret_closing = writer->is_closing && !more;
	vdi_lock_release(&writer->queue_lock);
	return more;
}

static void restore(struct vdi_writer *writer)
{
	if (writer->mvcc->backend)
		vdi_backend_discard(writer->mvcc->backend);
	vdi_group_restore(&writer->group, writer->group.state);
}

/* Space that a submission may use, in ascending order. If one does not fit, all that need as much or more are
 * refused with it. */
enum need { NEED_COMPACTION, NEED_RESERVE, NEED_ROOM };

static enum need need_of(const struct vdi_submission *submission)
{
	if (submission->kind == VDI_SUBMIT_COMPACT)
		return NEED_COMPACTION;
	if (submission->kind == VDI_SUBMIT_TXN ?
		    submission->txn.txn.has_puts :
		    submission->kind == VDI_SUBMIT_LEASE_GRANT || submission->kind == VDI_SUBMIT_REPLAY)
		return NEED_ROOM;
	return NEED_RESERVE;
}

/* Refuses the submissions after one that did not fit if they need as much space. Deletes and compactions
 * still run, as under etcd's NOSPACE alarm. */
static void refuse_rest(struct vdi_submission *submission)
{
	enum need need = need_of(submission);

	while ((submission = STAILQ_NEXT(submission, node)) != NULL) {
		if (submission->is_decided || need_of(submission) < need)
			continue;
		submission->is_decided = true;
		submission->status = VD_NO_SPACE;
	}
}

/* Runs the writer's own work, without its last `skipped` parts. Compaction comes first because, when the disk
 * is full, it frees the space that the rest needs. */
static vd_status execute_own(struct vdi_writer *writer, vd_mono now, unsigned skipped, bool *ret_appended,
			     bool *ret_more)
{
	if (skipped < 2)
		VDI_TRY(execute_own_compaction(writer, ret_appended));
	return skipped < 1 ? execute_expiry(writer, now, ret_appended, ret_more) : VD_OK;
}

/* Executes the whole group on the working state. VD_OK even if submissions were rejected or given up.
 *
 * *ret_appended: records were appended, so a sync is required. *ret_own_failed: some of the writer's own work
 * failed and must be retried later; it does not fail the submissions. */
static vd_status execute_group(struct vdi_writer *writer, vd_mono now, bool *ret_appended, bool *ret_more,
			       bool *ret_own_failed)
{
	struct vdi_submission *submission;
	vd_status	       status;
	unsigned	       skipped = 0;

	for (unsigned tries = 0;; tries++) {
		*ret_appended = false;
		writer->expired_count = 0;
		while (execute_own(writer, now, skipped, ret_appended, ret_more) != VD_OK) {
			*ret_own_failed = true;
			skipped++;
			writer->expired_count = 0;
			*ret_appended = false;
			restore(writer);
		}
		status = VD_OK;
		STAILQ_FOREACH(submission, &writer->taken, node)
		{
			if (submission->is_decided)
				continue;
			status = execute_submission(writer, submission, now, ret_appended);
			if (status != VD_OK)
				break;
		}
		if (submission == NULL)
			return VD_OK;
		submission->is_decided = true;
		if (status == VD_NO_SPACE)
			refuse_rest(submission);
		restore(writer);
		if (tries == VDI_GROUP_RETRIES_MAX)
			return status;
	}
}

/* Performs everything that can fail between execution and answers: allocates history and the new state, and
 * syncs. */
static vd_status make_durable(struct vdi_writer *writer, vd_mono now, bool appended,
			      struct vdi_mvcc_state **ret_state)
{
	struct vdi_group *group = &writer->group;
	struct vdi_mvcc	 *mvcc = writer->mvcc;
	vd_status	  status;

	VDI_TRY(vdi_mvcc_state_new(ret_state));
	status = vdi_mvcc_log_prepare(&mvcc->log, group->events, group->event_count,
				      vdi_btree_count(&group->keys), now);
	if (status == VD_OK && appended && mvcc->backend) {
		vd_mono begun = vd_env_now(mvcc->env);

		status = vdi_backend_sync(mvcc->backend, &writer->backend_error);
		vdi_metric_observe_duration(mvcc->metrics.sync_duration,
					    vd_mono_since(vd_env_now(mvcc->env), begun));
		if (status != VD_OK)
			vdi_mvcc_log_abort(&mvcc->log);
	}
	if (status != VD_OK)
		*ret_state = vdi_mvcc_state_unref(*ret_state);
	return status;
}

static void count_events(struct vdi_writer *writer)
{
	const struct vdi_group	*group = &writer->group;
	struct vdi_mvcc_metrics *metrics = &writer->mvcc->metrics;
	uint64_t		 deletes = 0;
	uint64_t		 bytes = 0;

	for (size_t i = 0; i < group->event_count; i++) {
		deletes += group->events[i].is_delete;
		if (!group->events[i].is_delete)
			bytes += group->events[i].kv->key_size + group->events[i].kv->value_size;
	}
	vdi_metric_add(metrics->puts, group->event_count - deletes);
	vdi_metric_add(metrics->deletes, deletes);
	vdi_metric_add(metrics->put_bytes, bytes);
	vdi_metric_add(metrics->commits, 1);
	vdi_metric_add(metrics->leases_expired, writer->expired_count);
	vdi_metric_add(metrics->leases_revoked, writer->expired_count);
}

static void count_submission(struct vdi_mvcc *mvcc, const struct vdi_submission *submission)
{
	struct vdi_mvcc_metrics *metrics = &mvcc->metrics;

	if (submission->status == VD_NO_SPACE)
		vdi_metric_add(vdi_backend_is_over_quota(mvcc->backend) ? metrics->quota_full :
									  metrics->disk_full,
			       1);
	if (submission->status != VD_OK)
		return;
	switch (submission->kind) {
	case VDI_SUBMIT_TXN:
		vdi_metric_add(metrics->commit_txns, 1);
		if (submission->txn.txn.op_count > 1)
			vdi_metric_add(metrics->txns, 1);
		break;
	case VDI_SUBMIT_LEASE_GRANT: vdi_metric_add(metrics->leases_granted, 1); break;
	case VDI_SUBMIT_LEASE_REVOKE: vdi_metric_add(metrics->leases_revoked, 1); break;
	case VDI_SUBMIT_LEASE_KEEP_ALIVE:
		vdi_metric_add(metrics->leases_renewed, submission->lease.result.ttl_s > 0);
		break;
	case VDI_SUBMIT_REPLAY: vdi_metric_add(metrics->commit_txns, 1); break;
	case VDI_SUBMIT_COMPACT: break;
	}
}

/* Publishes the working state; cannot fail. *ret_old: a reference to the previous state. */
static void publish(struct vdi_writer *writer, struct vdi_mvcc_state *state, struct vdi_mvcc_state **ret_old,
		    struct vdi_mvcc_log_chunk **ret_dropped)
{
	struct vdi_group *group = &writer->group;
	struct vdi_mvcc	 *mvcc = writer->mvcc;
	vd_rev		  compacted_before = group->state->compacted;

	state->revision = group->revision;
	state->compacted = group->compacted;
	vdi_btree_snapshot(&group->keys, &state->keys);
	vdi_btree_snapshot(&group->leases, &state->leases);
	vdi_btree_snapshot(&group->lease_keys, &state->lease_keys);
	vdi_btree_snapshot(&group->lease_deadlines, &state->lease_deadlines);
	vdi_mvcc_log_commit(&mvcc->log, state);
	if (mvcc->backend)
		atomic_store_explicit(&mvcc->size_bytes, vdi_backend_size_bytes(mvcc->backend),
				      memory_order_relaxed);
	*ret_old = group->state;
	group->state = vdi_mvcc_state_ref(state);
	if (group->event_count)
		vdi_watchable_publish(mvcc, state, group->events, group->event_count);
	else
		vdi_mvcc_publish(mvcc, state);
	*ret_dropped = state->compacted > compacted_before ?
			       vdi_mvcc_log_compact(&mvcc->log, state->compacted) :
			       NULL;
	count_events(writer);
	/* The log owns the references of the events now. */
	group->event_count = 0;
	group->unit_first_event = 0;
	group->is_changed = false;
}

static void fail_all(struct vdi_writer *writer, vd_status status)
{
	struct vdi_submission *submission;

	restore(writer);
	STAILQ_FOREACH(submission, &writer->taken, node)
	if (!submission->is_decided)
		submission->status = status;
}

/* ---- Answers ---- */

static void free_submission(struct vdi_submission *submission)
{
	if (submission->kind == VDI_SUBMIT_TXN)
		vdi_txn_fini(&submission->txn.txn);
	if (submission->kind == VDI_SUBMIT_REPLAY)
		for (size_t i = 0; i < submission->replay.count; i++)
			vd_kv_unref(submission->replay.changes[i].kv);
	vdi_free(submission);
}

static void fill_error(const struct vdi_submission *submission, struct vd_error *error)
{
	const struct vd_error *why = &submission->mvcc->writer.backend_error;

	(void) vd_error_set(error, submission->status, "%s",
			    why->code == submission->status ? why->message :
							      vd_status_sentence(submission->status));
	if (submission->status == VD_EXPIRED)
		(void) vd_error_set(error, VD_EXPIRED, "required revision %lld has been compacted",
				    (long long) submission->requested);
	else if (submission->status == VD_TOO_LARGE_REVISION)
		(void) vd_error_set(error, VD_TOO_LARGE_REVISION,
				    "required revision %lld is a future revision",
				    (long long) submission->requested);
	if (submission->status == VD_TOO_BIG && why->code != VD_TOO_BIG)
		(void) vd_error_set(
			error, VD_TOO_BIG,
			"transaction too large: its compares and ranges read more than %d records beyond "
			"the number of keys",
			VDI_TXN_RECORDS_MAX);
	error->requested = submission->requested;
	error->current = submission->current;
	error->compacted = submission->compacted;
}

static void answer(struct vdi_submission *submission)
{
	struct vd_error	       details;
	const struct vd_error *error = NULL;
	bool		       ok = submission->status == VD_OK;

	if (!ok) {
		fill_error(submission, &details);
		error = &details;
	}
	switch (submission->kind) {
	case VDI_SUBMIT_TXN:
		submission->txn.done(submission->arg, submission->status,
				     ok ? vdi_txn_result(&submission->txn.txn) : NULL, error);
		break;
	case VDI_SUBMIT_COMPACT:
		submission->compact.done(submission->arg, submission->status, submission->current, error);
		break;
	case VDI_SUBMIT_REPLAY:
		submission->replay.done(submission->arg, submission->status, submission->current, error);
		break;
	case VDI_SUBMIT_LEASE_REVOKE:
		submission->lease.revoked(submission->arg, submission->status, submission->current, error);
		break;
	default:
		submission->lease.done(submission->arg, submission->status,
				       ok ? &submission->lease.result : NULL, error);
		break;
	}
	free_submission(submission);
}

static void answer_compaction(struct vdi_compact_waiter *waiter)
{
	answer(VDI_CONTAINER_OF(waiter, struct vdi_submission, compact.waiter));
}

/* Returns submissions to the queue that were refused for lack of space and may still find some. */
static void put_back(struct vdi_writer *writer, vd_mono now)
{
	struct vdi_submission_list answered = STAILQ_HEAD_INITIALIZER(answered);
	struct vdi_submission_list waiting = STAILQ_HEAD_INITIALIZER(waiting);
	struct vdi_mvcc		  *mvcc = writer->mvcc;
	struct vdi_submission	  *submission;

	writer->is_waiting = false;
	if (writer->backend_error.code != VD_NO_SPACE || vdi_backend_is_over_quota(mvcc->backend) ||
	    !vdi_backend_may_make_room(mvcc->backend))
		return;
	vdi_lock_acquire(&writer->queue_lock);
	while (!writer->is_closing && !STAILQ_EMPTY(&writer->taken)) {
		submission = STAILQ_FIRST(&writer->taken);
		STAILQ_REMOVE_HEAD(&writer->taken, node);
		if (submission->status == VD_NO_SPACE && submission->room_until.ns == 0)
			submission->room_until = vd_mono_add(now, VDI_ROOM_WAIT);
		if (submission->status == VD_NO_SPACE && submission->room_until.ns > now.ns) {
			submission->is_decided = false;
			STAILQ_INSERT_TAIL(&waiting, submission, node);
		} else {
			STAILQ_INSERT_TAIL(&answered, submission, node);
		}
	}
	writer->is_waiting = !STAILQ_EMPTY(&waiting);
	STAILQ_CONCAT(&waiting, &writer->queue);
	STAILQ_CONCAT(&writer->queue, &waiting);
	STAILQ_CONCAT(&answered, &writer->taken);
	STAILQ_CONCAT(&writer->taken, &answered);
	vdi_lock_release(&writer->queue_lock);
}

static void answer_all(struct vdi_writer *writer, struct vdi_mvcc_log_chunk *dropped)
{
	struct vdi_compactor *compactor = &writer->mvcc->compactor;
	struct vdi_wait_batch batch;
	unsigned	      count = 0;

	if (dropped)
		vdi_compactor_add(compactor, dropped, NULL);
	vdi_wait_batch_begin(&batch);
	while (!STAILQ_EMPTY(&writer->taken)) {
		struct vdi_submission *submission = STAILQ_FIRST(&writer->taken);

		STAILQ_REMOVE_HEAD(&writer->taken, node);
		count++;
		count_submission(writer->mvcc, submission);
		if (submission->kind == VDI_SUBMIT_COMPACT && submission->compact.physical) {
			submission->compact.waiter.done = answer_compaction;
			vdi_compactor_add(compactor, NULL, &submission->compact.waiter);
		} else {
			answer(submission);
		}
	}
	vdi_wait_batch_end(&batch);
	vdi_lock_acquire(&writer->queue_lock);
	writer->in_flight -= count;
	vdi_lock_release(&writer->queue_lock);
}

/* ---- Time ---- */

static void tick(struct vdi_writer *writer, vd_mono now)
{
	struct vdi_watchable *watchable = &writer->mvcc->watchable;
	vd_dur		      interval = writer->mvcc->options.progress_interval;

	if (interval.ns <= 0 || !vdi_watchable_wants_ticks(watchable)) {
		writer->tick_due = VD_NEVER;
		return;
	}
	if (writer->tick_due.ns <= now.ns)
		vdi_watchable_tick(watchable);
	if (writer->tick_due.ns <= now.ns || writer->tick_due.ns == VD_NEVER.ns)
		writer->tick_due = vd_mono_add(now, interval);
}

static vd_mono next_deadline(struct vdi_writer *writer, vd_mono now)
{
	const struct vdi_lease *lease = vdi_group_lease_first(&writer->group);
	vd_mono			due;

	check_history(writer, now, &due); /* the next turn checks again */
	if (writer->compact_target)
		due = now;
	if (lease && lease->deadline.ns < due.ns)
		due = lease->deadline;
	return writer->tick_due.ns < due.ns ? writer->tick_due : due;
}

static void writer_run(void *arg)
{
	struct vdi_writer	  *writer = arg;
	struct vdi_mvcc		  *mvcc = writer->mvcc;
	struct vdi_mvcc_log_chunk *dropped = NULL;
	struct vdi_mvcc_state	  *state = NULL;
	struct vdi_mvcc_state	  *old = NULL;
	vd_mono			   now = vd_env_now(mvcc->env);
	vd_mono			   due;
	bool			   appended = false;
	bool			   closing = false;
	bool			   failed = false;
	bool			   more = take_group(writer, &closing);
	vd_status		   status;

	writer->backend_error.code = VD_OK;
	check_history(writer, now, &due);
	status = execute_group(writer, now, &appended, &more, &failed);
	if (status == VD_OK && writer->group.is_changed)
		status = make_durable(writer, now, appended, &state);
	if (status != VD_OK) {
		fail_all(writer, status);
		failed = true;
	} else if (state) {
		publish(writer, state, &old, &dropped);
		vdi_metric_observe_duration(mvcc->metrics.commit_duration,
					    vd_mono_since(vd_env_now(mvcc->env), now));
	}
	put_back(writer, now);
	answer_all(writer, dropped);
	/* Frees the old state's nodes that no other state shares, in time proportional to the group. It comes
	 * after the answers, so that no caller waits for it. */
	vdi_mvcc_state_unref(old);
	tick(writer, now);
	if (closing) {
		vdi_watchable_close(&mvcc->watchable);
		wait_for_wakers(writer);
		vd_actor_close(writer->actor, vdi_mvcc_writer_ended, mvcc);
		return;
	}
	if (more)
		vd_actor_wake(writer->actor);
	due = next_deadline(writer, now);
	/* Retry failed work (no memory to revoke a lease, a full disk) after a while, not at once. */
	if (failed && due.ns != VD_NEVER.ns)
		due.ns = VDI_MAX(due.ns, vd_mono_add(now, VD_SECONDS(1)).ns);
	if (writer->is_waiting)
		due.ns = VDI_MIN(due.ns, vd_mono_add(now, VDI_ROOM_CHECK_EVERY).ns);
	vd_actor_set_timer(writer->actor, due);
}
