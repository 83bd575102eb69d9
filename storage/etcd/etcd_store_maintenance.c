/* The maintenance of an etcd store: an actor that checks whether etcd answers, requests progress while
 * watches wait for it, runs the probe and the compactor, and carries out the shutdown. */
#include "etcd_store.h"

static vd_mono earlier(vd_mono a, vd_mono b)
{
	return a.ns < b.ns ? a : b;
}

/* Wakes the thread in vdi_etcd_store_wait if the outcome is known. */
static void notify_starter_locked(struct vdi_etcd_store *store)
{
	struct vdi_wait *starter = store->starter;

	if (starter == NULL || (store->refusal == VD_OK &&
				!(store->has_begun && vdi_etcd_probe_is_settled_locked(&store->probe))))
		return;
	store->starter = NULL;
	vdi_wait_signal(starter);
}

/* Returns true if a repetition would get the same error. */
static bool is_final(const struct vd_etcd_error *error)
{
	switch (error->error.code) {
	case VD_UNAVAILABLE:
	case VD_TIMEOUT:
	case VD_CANCELED:
	case VD_CLOSED:
	case VD_NOMEM:
	case VD_FULL:
	case VD_NOT_READY:
	case VD_EXPIRED:
	case VD_CONFLICT: return false;
	default: return true;
	}
}

/* The response also has the compaction of other servers. A refusal to read the key also shows that etcd is
 * reachable. */
static void on_sign_of_life(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			    const struct vd_range_result *result)
{
	struct vdi_etcd_store *store = arg;
	struct vd_error	       failure = { 0 };
	bool is_refused = error && error->code != VD_ETCD_PERMISSION_DENIED && is_final(error);

	if (error)
		(void) vdi_etcd_store_failed(store, error, 0, &failure);
	else
		vdi_etcd_store_observe(store, header);
	if (error == NULL && result->kv_count)
		vdi_etcd_server_state_raise(&store->server_state->compacted,
					    vdi_etcd_compactor_parse(vd_kv_value(result->kvs[0])));
	vdi_lock_acquire(&store->lock);
	store->is_asking = false;
	if (error == NULL || error->code == VD_ETCD_PERMISSION_DENIED) {
		store->has_begun = true;
	} else if (is_refused) {
		store->refusal = failure.code;
		store->refusal_error = failure;
	}
	vd_actor_wake(store->maintenance);
	vdi_lock_release(&store->lock);
}

static vd_mono ask_for_life(struct vdi_etcd_store *store)
{
	static const char	     key[] = VDI_ETCD_COMPACT_KEY;
	vd_mono			     now = vd_env_now(store->env);
	struct vd_etcd_range_request request = { .range = { .key = { key, sizeof key - 1 }, .limit = 1 } };
	struct vd_etcd_call	     options = { .timeout = VDI_ETCD_SIGN_OF_LIFE_TIMEOUT };
	int64_t			     heard_ns = atomic_load_explicit(&store->heard_ns, memory_order_relaxed);
	vd_mono			     due = { heard_ns + VDI_ETCD_SILENCE_MAX.ns };
	bool is_asking, is_due, is_well = heard_ns != 0 && !atomic_load(&store->is_unreachable);

	vdi_lock_acquire(&store->lock);
	is_asking = store->is_asking;
	is_due = !is_well || due.ns <= now.ns || !store->has_begun;
	if (!is_asking && is_due && now.ns >= store->ask_next.ns)
		store->is_asking = true;
	vdi_lock_release(&store->lock);
	if (is_asking || !is_due)
		return is_well ? due : VD_NEVER; /* the response wakes the maintenance actor */
	if (now.ns < store->ask_next.ns)
		return store->ask_next;
	store->ask_next = vd_mono_add(now, VDI_ETCD_SIGN_OF_LIFE_PACE);
	if (vd_etcd_range(store->client, &options, &request, on_sign_of_life, store) == VD_OK)
		return VD_NEVER;
	vdi_lock_acquire(&store->lock);
	store->is_asking = false;
	vdi_lock_release(&store->lock);
	return vd_mono_add(now, VD_SECONDS(1));
}

/* Sends progress requests while watches wait for progress. The response is delivered to all watches of a
 * stream; there are two streams. */
static bool request_progress(struct vdi_etcd_store *store)
{
	struct vd_etcd_call call = { .require_leader = true };
	bool		    is_asked = true;

	for (size_t i = 0; i < 2; i++) {
		call.metadata = &vdi_etcd_store_history_stream;
		call.metadata_count = i;
		if (atomic_load(&store->server_state->progress_wanted[i]) > 0)
			is_asked &= vd_etcd_request_progress(store->client, &call, NULL) ==
				    VD_OK; /* best effort; it is repeated */
	}
	return is_asked;
}

static vd_mono ask_for_progress(struct vdi_etcd_store *store)
{
	vd_mono	 now = vd_env_now(store->env);
	unsigned asks = atomic_load(&store->server_state->progress_asks);

	if (atomic_load(&store->server_state->progress_wanted[0]) <= 0 &&
	    atomic_load(&store->server_state->progress_wanted[1]) <= 0) {
		store->progress_at = VD_NEVER;
		return VD_NEVER;
	}
	if (store->progress_asks_seen != asks &&
	    store->progress_backoff.ns > VDI_ETCD_PROGRESS_RETRY_FIRST.ns)
		/* A new request must not wait for the back-off of earlier ones. */
		store->progress_at = VD_NEVER;
	store->progress_asks_seen = asks;
	if (store->progress_at.ns == VD_NEVER.ns) {
		store->progress_backoff = VDI_ETCD_PROGRESS_RETRY_FIRST;
		/* The watch has sent a first request itself. */
		store->progress_at = vd_mono_add(now, store->progress_backoff);
	} else if (store->progress_at.ns <= now.ns) {
		if (request_progress(store))
			store->progress_backoff.ns =
				VDI_MIN(2 * store->progress_backoff.ns, VDI_ETCD_PROGRESS_RETRY_MAX.ns);
		store->progress_at = vd_mono_add(now, store->progress_backoff);
	}
	return store->progress_at;
}

void vdi_etcd_store_free(struct vdi_etcd_store *store)
{
	for (size_t i = 0; i < VDI_ETCD_CALL_COUNT; i++) {
		vdi_metric_release(store->calls[i]);
		vdi_metric_release(store->call_errors[i]);
	}
	vdi_metric_remove(store->reachable_metric);
	vdi_etcd_probe_fini(&store->probe);
	vdi_etcd_server_state_unref(store->server_state);
	vdi_lock_fini(&store->lock);
	vdi_free(store);
}

static void maintenance_ended(void *arg)
{
	struct vdi_etcd_store *store = arg;
	void (*closed)(void *) = store->closed;
	void *closed_arg = store->closed_arg;

	vdi_etcd_store_free(store);
	if (closed)
		closed(closed_arg);
}

/* The last callback of the client. */
static void on_client_closed(void *arg)
{
	struct vdi_etcd_store *store = arg;

	vdi_lock_acquire(&store->lock);
	store->is_client_gone = true;
	vd_actor_wake(store->maintenance);
	vdi_lock_release(&store->lock);
}

/* Runs the steps of the shutdown, each once. */
static void run_shutdown(struct vdi_etcd_store *store)
{
	bool close_client, close_actor;

	vdi_lock_acquire(&store->lock);
	close_client = store->client_is_unused && !store->is_client_closing;
	if (close_client)
		store->is_client_closing = true;
	close_actor = store->is_client_gone && store->is_closing;
	vdi_lock_release(&store->lock);
	if (close_client) {
		vdi_lock_acquire(&store->server_state->lock);
		store->server_state->maintenance = NULL;
		vdi_lock_release(&store->server_state->lock);
		vdi_etcd_compactor_stop(&store->compactor);
		vd_etcd_close(store->client, on_client_closed, store);
	} else if (close_actor) {
		vd_actor_close(store->maintenance, maintenance_ended, store);
	}
}

void vdi_etcd_store_maintenance_run(void *arg)
{
	struct vdi_etcd_store *store = arg;
	vd_mono		       due;

	if (vdi_etcd_store_is_shut_down(store)) {
		run_shutdown(store);
		return;
	}
	due = vdi_etcd_probe_run(&store->probe);
	due = earlier(due, ask_for_life(store));
	due = earlier(due, vdi_etcd_compactor_run(&store->compactor));
	due = earlier(due, ask_for_progress(store));
	vdi_lock_acquire(&store->lock);
	notify_starter_locked(store);
	vdi_lock_release(&store->lock);
	vd_actor_set_timer(store->maintenance, due);
}
