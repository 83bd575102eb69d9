/* Everything is constructed on the caller's thread; the actors start last. */
#include "mvcc_open.h"

#include "mvcc_load.h"
#include "mvcc_store.h"
#include "wait.h"

static vd_status copy_options(const struct vd_mvcc_options *options, struct vd_mvcc_options *ret_options,
			      struct vd_error *reterr)
{
	struct vd_mvcc_options copy = VD_MVCC_OPTIONS_INIT;

	if (options) {
		VDI_REQUIRE_OPTIONS(options, reterr);
		copy = *options;
	}
	if (copy.in_flight_max == 0 || copy.history_bytes < 0 || copy.history_window.ns < 0 ||
	    copy.quota_bytes < 0 || copy.progress_interval.ns < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "mvcc: in_flight_max must be above 0; history_bytes, history_window, "
				    "quota_bytes and progress_interval must be 0 or more");
	*ret_options = copy;
	return VD_OK;
}

/* Sets the state before the first publication: loaded from the data directory, or empty at revision 1. */
static vd_status first_state(struct vdi_mvcc *mvcc, const struct vdi_backend_tuning *tuning,
			     const struct vdi_mvcc_importer *importer, struct vd_error *reterr)
{
	struct vdi_mvcc_state *state;
	vd_status	       status = VD_OK;

	if (mvcc->options.data_dir)
		status = vdi_mvcc_load(mvcc, tuning, reterr);
	if (status == VD_OK && importer)
		status = vdi_mvcc_import_run(mvcc, importer, reterr);
	if (status != VD_OK)
		return status;
	status = vdi_mvcc_state_new(&state);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "mvcc: out of memory");
	state->revision = mvcc->writer.group.revision;
	state->compacted = mvcc->writer.group.compacted;
	state->log_end = mvcc->log.end_index;
	vdi_btree_snapshot(&mvcc->writer.group.keys, &state->keys);
	vdi_btree_snapshot(&mvcc->writer.group.leases, &state->leases);
	vdi_btree_snapshot(&mvcc->writer.group.lease_keys, &state->lease_keys);
	vdi_btree_snapshot(&mvcc->writer.group.lease_deadlines, &state->lease_deadlines);
	mvcc->state = state;
	mvcc->writer.group.state = vdi_mvcc_state_ref(state);
	mvcc->published = state->revision;
	mvcc->compacted = state->compacted;
	mvcc->watchable.notified_revision = state->revision;
	return VD_OK;
}

/* Undoes everything except the actors; the writer's actor does not exist yet. */
static void undo_open(struct vdi_mvcc *mvcc)
{
	vdi_writer_fini(&mvcc->writer);
	vdi_watchable_fini(&mvcc->watchable);
	vdi_mvcc_log_fini(&mvcc->log);
	vdi_mvcc_state_unref(mvcc->state);
	vdi_lock_fini(&mvcc->state_lock);
	vdi_mvcc_unref(mvcc);
}

static vd_status start_actors(struct vdi_mvcc *mvcc)
{
	struct vdi_wait wait;
	vd_status	status;

	VDI_TRY(vdi_compactor_init(&mvcc->compactor, mvcc->env));
	status = vdi_writer_start(&mvcc->writer);
	if (status == VD_OK)
		return VD_OK;
	vdi_wait_init(&wait, mvcc->env);
	vdi_compactor_close(&mvcc->compactor, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	vdi_compactor_fini(&mvcc->compactor);
	return status;
}

static void close_backend(struct vdi_mvcc *mvcc)
{
	struct vdi_wait wait;

	if (mvcc->backend == NULL)
		return;
	vdi_wait_init(&wait, mvcc->env);
	vdi_backend_close(mvcc->backend, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	mvcc->backend = NULL;
}

vd_status vd_store_open_mvcc(const struct vd_env *env, const struct vd_mvcc_options *options,
			     struct vd_store **ret_store, struct vd_error *reterr)
{
	struct vdi_mvcc *mvcc;

	VDI_TRY(vdi_mvcc_open_tuned(env, options, NULL, ret_store, reterr));
	mvcc = vdi_mvcc_of(*ret_store);
	mvcc->usage = (struct vdi_usage) { .kind = "store",
					   .closed_by = "vd_store_close",
					   .watch_closed_by = "vd_store_watch_close",
					   .env = env };
	vdi_usage_begin(&mvcc->usage);
	return VD_OK;
}

vd_status vdi_mvcc_open_tuned(const struct vd_env *env, const struct vd_mvcc_options *options,
			      const struct vdi_backend_tuning *tuning, struct vd_store **ret_store,
			      struct vd_error *reterr)
{
	return vdi_mvcc_open_importing(env, options, tuning, NULL, ret_store, reterr);
}

vd_status vdi_mvcc_open_importing(const struct vd_env *env, const struct vd_mvcc_options *options,
				  const struct vdi_backend_tuning *tuning,
				  const struct vdi_mvcc_importer *importer, struct vd_store **ret_store,
				  struct vd_error *reterr)
{
	struct vd_mvcc_options checked;
	struct vdi_mvcc	      *mvcc;
	vd_status	       status;

	if (env == NULL || ret_store == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "vd_store_open_mvcc: %s is NULL",
				    env ? "ret_store" : "env");
	VDI_TRY(copy_options(options, &checked, reterr));
	mvcc = VDI_NEW(struct vdi_mvcc);
	if (mvcc == NULL)
		return vd_error_set(reterr, VD_NOMEM, "mvcc: out of memory");
	mvcc->store.ops = &vdi_mvcc_ops;
	mvcc->store.env = env;
	mvcc->env = env;
	mvcc->options = checked;
	mvcc->references = 1;
	mvcc->users = 1;
	vdi_lock_init(&mvcc->state_lock, VDI_LOCK_SNAPSHOT);
	vdi_mvcc_log_init(&mvcc->log, checked.history_bytes, checked.history_window);
	vdi_watchable_init(&mvcc->watchable);
	status = vdi_writer_init(&mvcc->writer, mvcc);
	if (status == VD_OK)
		status = first_state(mvcc, tuning, importer, reterr);
	mvcc->options.data_dir = NULL;
	if (status == VD_OK) {
		status = vdi_mvcc_metrics_init(&mvcc->metrics, mvcc);
		if (status == VD_OK)
			status = start_actors(mvcc);
		if (status == VD_OK) {
			/* The writer computes the deadlines of loaded leases and history. */
			vdi_writer_wake(&mvcc->writer);
			*ret_store = &mvcc->store;
			return VD_OK;
		}
		vdi_mvcc_metrics_fini(&mvcc->metrics);
		(void) vd_error_set(reterr, status, "mvcc: the store's actors or metrics cannot be created");
	}
	close_backend(mvcc);
	undo_open(mvcc);
	return status;
}
