/* Operations and lifetime of the embedded store.
 *
 * The end has these steps: close -> the writer answers queued submissions, ends the watches and itself -> the
 * compactor ends -> the persistent backend ends -> the last call in progress leaves (users is 0) -> the
 * store's memory is freed and done is called -> the owner of the last watch closes it (references is 0) ->
 * the block itself is freed.
 */
#include "mvcc_store.h"

#include "env.h"
#include "store.h"

/* ---- Life ---- */

bool vdi_mvcc_enter(struct vdi_mvcc *mvcc)
{
	uint32_t users = atomic_load_explicit(&mvcc->users, memory_order_relaxed);

	if (atomic_load_explicit(&mvcc->is_closing, memory_order_acquire))
		return false;
	do
		if (users == 0)
			return false;
	while (!atomic_compare_exchange_weak_explicit(&mvcc->users, &users, users + 1, memory_order_acquire,
						      memory_order_relaxed));
	return true;
}

static void finish(struct vdi_mvcc *mvcc)
{
	void (*done)(void *arg) = mvcc->close_done;
	void *done_arg = mvcc->close_done_arg;

	vdi_mvcc_metrics_fini(&mvcc->metrics);
	vdi_compactor_fini(&mvcc->compactor);
	vdi_writer_fini(&mvcc->writer);
	vdi_watchable_fini(&mvcc->watchable);
	vdi_mvcc_log_fini(&mvcc->log);
	mvcc->state = vdi_mvcc_state_unref(mvcc->state);
	vdi_lock_fini(&mvcc->state_lock);
	vdi_mvcc_unref(mvcc);
	if (done)
		done(done_arg);
}

void vdi_mvcc_leave(struct vdi_mvcc *mvcc)
{
	if (atomic_fetch_sub_explicit(&mvcc->users, 1, memory_order_acq_rel) == 1)
		finish(mvcc);
}

void vdi_mvcc_ref(struct vdi_mvcc *mvcc)
{
	atomic_fetch_add_explicit(&mvcc->references, 1, memory_order_relaxed);
}

void vdi_mvcc_unref(struct vdi_mvcc *mvcc)
{
	if (atomic_fetch_sub_explicit(&mvcc->references, 1, memory_order_acq_rel) != 1)
		return;
	vdi_usage_end(&mvcc->usage);
	vdi_lock_fini(&mvcc->watchable.lock);
	vdi_free(mvcc);
}

static void backend_ended(void *arg)
{
	vdi_mvcc_leave(arg); /* the writer's reference */
}

static void compactor_ended(void *arg)
{
	struct vdi_mvcc *mvcc = arg;

	if (mvcc->backend)
		vdi_backend_close(mvcc->backend, backend_ended, mvcc);
	else
		backend_ended(mvcc);
}

void vdi_mvcc_writer_ended(void *arg)
{
	struct vdi_mvcc *mvcc = arg;

	vdi_compactor_close(&mvcc->compactor, compactor_ended, mvcc);
}

static void mvcc_close(struct vd_store *store, void (*done)(void *arg), void *arg)
{
	struct vdi_mvcc *mvcc = vdi_mvcc_of(store);

	if (atomic_exchange(&mvcc->usage.is_closing, true))
		vdi_misuse("vd_store_close: the store is closing already");
	mvcc->close_done = done;
	mvcc->close_done_arg = arg;
	atomic_store_explicit(&mvcc->is_closing, true, memory_order_release);
	vdi_writer_close(&mvcc->writer);
}

/* ---- The published state ---- */

struct vdi_mvcc_state *vdi_mvcc_state_get(struct vdi_mvcc *mvcc)
{
	struct vdi_mvcc_state *state;

	vdi_lock_acquire(&mvcc->state_lock);
	state = vdi_mvcc_state_ref(mvcc->state);
	vdi_lock_release(&mvcc->state_lock);
	return state;
}

void vdi_mvcc_publish(struct vdi_mvcc *mvcc, struct vdi_mvcc_state *state)
{
	struct vdi_mvcc_state *old;

	vdi_lock_acquire(&mvcc->state_lock);
	old = mvcc->state;
	mvcc->state = state;
	atomic_store_explicit(&mvcc->compacted, state->compacted, memory_order_release);
	atomic_store_explicit(&mvcc->published, state->revision, memory_order_release);
	vdi_lock_release(&mvcc->state_lock);
	vdi_mvcc_state_unref(old);
}

/* ---- Reads: on the caller's thread ---- */

static vd_status mvcc_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			    void *arg)
{
	struct vdi_mvcc	      *mvcc = vdi_mvcc_of(store);
	struct vdi_mvcc_state *state;
	struct vdi_view	       view;
	struct vdi_read	       read;
	struct vd_error	       error;
	vd_status	       status;

	if (!vdi_mvcc_enter(mvcc))
		return VD_CLOSED;
	vdi_metric_add(mvcc->metrics.ranges, 1);
	state = vdi_mvcc_state_get(mvcc);
	view = vdi_view_of_state(state, &mvcc->log);
	status = vdi_read_range(&view, request, false, &read, &error);
	if (status == VD_OK) {
		done(arg, VD_OK, &read.result, NULL);
		vdi_read_fini(&read);
	} else {
		done(arg, status, NULL, &error);
	}
	vdi_mvcc_state_unref(state);
	vdi_mvcc_leave(mvcc);
	return VD_OK;
}

static void read_txn(struct vdi_mvcc *mvcc, struct vdi_submission *submission)
{
	struct vdi_mvcc_state *state = vdi_mvcc_state_get(mvcc);
	struct vdi_view	       view = vdi_view_of_state(state, &mvcc->log);
	struct vd_error	       error;
	vd_status	       status = vdi_txn_read(&submission->txn.txn, &view, &error);

	if (status == VD_OK)
		submission->txn.done(submission->arg, VD_OK, vdi_txn_result(&submission->txn.txn), NULL);
	else
		submission->txn.done(submission->arg, status, NULL, &error);
	vdi_mvcc_state_unref(state);
}

/* ---- Writes: through the writer ---- */

static vd_status submit_txn(struct vdi_mvcc *mvcc, const struct vd_txn_request *request, vd_txn_fn done,
			    void *arg)
{
	struct vdi_submission *submission;
	struct vdi_txn	       txn;
	void		      *memory;
	vd_status	       status;

	VDI_TRY(vdi_txn_copy(request, sizeof *submission, &memory, &txn));
	submission = memory;
	submission->kind = VDI_SUBMIT_TXN;
	submission->arg = arg;
	submission->txn.txn = txn;
	submission->txn.done = done;
	if (txn.is_read_only) {
		read_txn(mvcc, submission);
		status = VD_OK;
	} else {
		status = vdi_writer_submit(&mvcc->writer, submission);
		if (status == VD_OK)
			return VD_OK;
	}
	vdi_txn_fini(&submission->txn.txn);
	vdi_free(submission);
	return status;
}

static vd_status mvcc_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			  void *arg)
{
	struct vdi_mvcc *mvcc = vdi_mvcc_of(store);
	struct vd_error	 error;
	vd_status	 status;

	if (!vdi_mvcc_enter(mvcc))
		return VD_CLOSED;
	status = vdi_store_check_duplicates(request, &error);
	if (status == VD_OK) {
		status = submit_txn(mvcc, request, done, arg);
	} else {
		done(arg, status, NULL, &error);
		status = VD_OK;
	}
	vdi_mvcc_leave(mvcc);
	return status;
}

/* Submits an operation that is not a transaction. */
static vd_status submit(struct vd_store *store, const struct vdi_submission *filled)
{
	struct vdi_mvcc	      *mvcc = vdi_mvcc_of(store);
	struct vdi_submission *submission;
	vd_status	       status;

	if (!vdi_mvcc_enter(mvcc))
		return VD_CLOSED;
	submission = vdi_alloc(sizeof *submission);
	if (submission) {
		*submission = *filled;
		status = vdi_writer_submit(&mvcc->writer, submission);
		if (status != VD_OK)
			vdi_free(submission);
	} else {
		status = VD_NOMEM;
	}
	vdi_mvcc_leave(mvcc);
	return status;
}

static vd_status mvcc_compact(struct vd_store *store, vd_rev revision, bool physical, vd_done_fn done,
			      void *arg)
{
	struct vdi_submission submission = { .kind = VDI_SUBMIT_COMPACT, .arg = arg };

	submission.compact.done = done;
	submission.compact.revision = revision;
	submission.compact.physical = physical;
	return submit(store, &submission);
}

static vd_status mvcc_lease_grant(struct vd_store *store, int64_t id, int64_t ttl_s, vd_lease_fn done,
				  void *arg)
{
	struct vdi_submission submission = { .kind = VDI_SUBMIT_LEASE_GRANT, .arg = arg };

	submission.lease.done = done;
	submission.lease.wanted_id = id;
	submission.lease.wanted_ttl_s = ttl_s;
	return submit(store, &submission);
}

static vd_status mvcc_lease_revoke(struct vd_store *store, int64_t id, vd_done_fn done, void *arg)
{
	struct vdi_submission submission = { .kind = VDI_SUBMIT_LEASE_REVOKE, .arg = arg };

	submission.lease.revoked = done;
	submission.lease.wanted_id = id;
	return submit(store, &submission);
}

static vd_status mvcc_lease_keep_alive(struct vd_store *store, int64_t id, vd_lease_fn done, void *arg)
{
	struct vdi_submission submission = { .kind = VDI_SUBMIT_LEASE_KEEP_ALIVE, .arg = arg };

	submission.lease.done = done;
	submission.lease.wanted_id = id;
	return submit(store, &submission);
}

static vd_status lease_keys(const struct vdi_mvcc_state *state, int64_t id, struct vd_bytes **ret_keys,
			    size_t *ret_count)
{
	struct vdi_lease_walk walk;
	uint64_t	      count = vdi_lease_walk_init(&walk, &state->lease_keys, id);
	struct vd_bytes	     *keys;

	*ret_keys = NULL;
	*ret_count = 0;
	if (count == 0)
		return VD_OK;
	keys = vdi_alloc(count * sizeof *keys);
	if (keys == NULL)
		return VD_NOMEM;
	*ret_keys = keys;
	while (*ret_count < count && vdi_lease_walk_next(&walk, &keys[*ret_count]))
		++*ret_count;
	return VD_OK;
}

static vd_status mvcc_lease_time_to_live(struct vd_store *store, int64_t id, bool keys, vd_lease_fn done,
					 void *arg)
{
	struct vdi_mvcc	       *mvcc = vdi_mvcc_of(store);
	struct vd_lease_result	result = { .id = id, .ttl_s = -1 };
	struct vd_bytes	       *list = NULL;
	struct vdi_mvcc_state  *state;
	const struct vdi_lease *lease;
	vd_status		status = VD_OK;

	if (!vdi_mvcc_enter(mvcc))
		return VD_CLOSED;
	state = vdi_mvcc_state_get(mvcc);
	result.revision = state->revision;
	lease = vdi_lease_find(&state->leases, id);
	if (lease) {
		result.ttl_s = vdi_lease_remaining_s(lease, vd_env_now(mvcc->env));
		result.granted_ttl_s = lease->ttl_s;
		if (keys)
			status = lease_keys(state, id, &list, &result.key_count);
		result.keys = list;
	}
	if (status == VD_OK)
		done(arg, VD_OK, &result, NULL);
	vdi_free(list);
	vdi_mvcc_state_unref(state);
	vdi_mvcc_leave(mvcc);
	return status;
}

/* Lists leases in the order of their deadlines, as etcd does. */
static vd_status mvcc_lease_list(struct vd_store *store, vd_lease_list_fn done, void *arg)
{
	struct vdi_mvcc	       *mvcc = vdi_mvcc_of(store);
	struct vdi_key_range	all = VDI_KEY_RANGE_ALL;
	struct vdi_mvcc_state  *state;
	struct vdi_btree_cursor cursor;
	int64_t		       *ids;
	uint64_t		count;
	size_t			taken = 0;

	if (!vdi_mvcc_enter(mvcc))
		return VD_CLOSED;
	state = vdi_mvcc_state_get(mvcc);
	vdi_btree_cursor_init(&cursor, &state->lease_deadlines);
	count = vdi_btree_cursor_range(&cursor, &all);
	ids = vdi_alloc((count + 1) * sizeof *ids);
	if (ids) {
		while (taken < count) {
			const struct vdi_lease *lease = vdi_btree_cursor_range_next(&cursor);

			ids[taken++] = lease->id;
		}
		done(arg, VD_OK, ids, taken, state->revision);
	}
	vdi_free(ids);
	vdi_mvcc_state_unref(state);
	vdi_mvcc_leave(mvcc);
	return ids ? VD_OK : VD_NOMEM;
}

static vd_status mvcc_status(struct vd_store *store, struct vd_store_status *ret_status)
{
	struct vdi_mvcc	      *mvcc = vdi_mvcc_of(store);
	struct vdi_mvcc_state *state;

	if (!vdi_mvcc_enter(mvcc))
		return VD_CLOSED;
	state = vdi_mvcc_state_get(mvcc);
	*ret_status = (struct vd_store_status) { .current = state->revision,
						 .compacted = state->compacted,
						 .size_bytes = atomic_load_explicit(&mvcc->size_bytes,
										    memory_order_relaxed),
						 .key_count = (int64_t) state->keys.count,
						 .progress = true };
	vdi_mvcc_state_unref(state);
	vdi_mvcc_leave(mvcc);
	return VD_OK;
}

const struct vd_store_ops vdi_mvcc_ops = {
	.size = sizeof(struct vd_store_ops),
	.range = mvcc_range,
	.txn = mvcc_txn,
	.compact = mvcc_compact,
	.lease_grant = mvcc_lease_grant,
	.lease_revoke = mvcc_lease_revoke,
	.lease_keep_alive = mvcc_lease_keep_alive,
	.lease_time_to_live = mvcc_lease_time_to_live,
	.watch = vdi_watchable_open,
	.watch_next = vdi_watchable_next,
	.watch_progress = vdi_watchable_progress,
	.watch_close = vdi_watchable_close_watch,
	.status = mvcc_status,
	.close = mvcc_close,
	.lease_list = mvcc_lease_list,
};

bool vdi_mvcc_is(const struct vd_store *store)
{
	return store->ops == &vdi_mvcc_ops;
}
