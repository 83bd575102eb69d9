/* vd_store over a vd_etcd: each operation is one call of the client, whose result is noted and passed on.
 *
 * A call is counted twice: in client_users while it uses the client on the caller's thread, so that the
 * client is closed after the last one has left; and in in_flight until its result, for the debug page.
 * Results come on the client's actor and are passed on there.
 */
#include "etcd_store.h"

#include <stdio.h>
#include <stdlib.h>

#include "etcd_client.h"

static struct vdi_etcd_store *store_of(struct vd_store *store)
{
	return VDI_CONTAINER_OF(store, struct vdi_etcd_store, base);
}

struct vdi_etcd_server_state *vdi_etcd_server_state_unref(struct vdi_etcd_server_state *server_state)
{
	if (server_state && atomic_fetch_sub(&server_state->references, 1) == 1) {
		vdi_usage_end(&server_state->usage);
		vdi_lock_fini(&server_state->lock);
		vdi_free(server_state);
	}
	return NULL;
}

/* ---- What answers say ---- */

/* client_users counts the threads that use the client, and has a flag for shutdown. After shutdown the last
 * thread to leave wakes the maintenance actor, and only then the client may be closed. */
#define CLIENT_SHUT UINT64_C(1)
#define CLIENT_USER UINT64_C(2)

bool vdi_etcd_store_is_shut_down(const struct vdi_etcd_store *store)
{
	return atomic_load(&store->client_users) & CLIENT_SHUT;
}

static void client_is_unused_locked(struct vdi_etcd_store *store)
{
	if (store->client_is_unused)
		return; /* another thread entered after shutdown and left again */
	store->client_is_unused = true;
	vd_actor_wake(store->maintenance);
}

bool vdi_etcd_store_enter(struct vdi_etcd_store *store)
{
	if (!(atomic_fetch_add(&store->client_users, CLIENT_USER) & CLIENT_SHUT))
		return true;
	vdi_etcd_store_leave(store);
	return false;
}

void vdi_etcd_store_leave(struct vdi_etcd_store *store)
{
	if (atomic_fetch_sub(&store->client_users, CLIENT_USER) != (CLIENT_USER | CLIENT_SHUT))
		return;
	vdi_lock_acquire(&store->lock);
	client_is_unused_locked(store);
	vdi_lock_release(&store->lock);
}

void vdi_etcd_store_count(struct vdi_etcd_store *store, enum vdi_etcd_operation operation, bool failed)
{
	vdi_metric_add(failed ? store->call_errors[operation] : store->calls[operation], 1);
}

void vdi_etcd_store_observe(struct vdi_etcd_store *store, const struct vd_etcd_header *header)
{
	if (header) {
		vdi_etcd_server_state_raise(&store->server_state->current, header->revision);
		if (atomic_load_explicit(&store->server_state->cluster_id, memory_order_relaxed) !=
		    header->cluster_id)
			atomic_store_explicit(&store->server_state->cluster_id, header->cluster_id,
					      memory_order_relaxed);
	}
	atomic_store_explicit(&store->heard_ns, vd_env_now(store->env).ns, memory_order_relaxed);
	if (!atomic_load_explicit(&store->is_unreachable, memory_order_relaxed))
		return;
	vdi_lock_acquire(&store->lock);
	store->failure.code = VD_OK;
	if (atomic_exchange(&store->is_unreachable, false))
		vdi_log(store->env, VD_LOG_INFO, "etcd", "etcd is reachable again");
	vdi_lock_release(&store->lock);
	vdi_metric_set(store->reachable_metric, 1);
}

static void note_unreachable(struct vdi_etcd_store *store, const struct vd_error *error)
{
	vdi_lock_acquire(&store->lock);
	store->failure = *error;
	if (!atomic_exchange(&store->is_unreachable, true) && store->has_begun)
		vdi_log(store->env, VD_LOG_WARNING, "etcd", "etcd does not answer: %s", error->message);
	vdi_lock_release(&store->lock);
	vdi_metric_set(store->reachable_metric, 0);
}

void vdi_etcd_server_state_fill(struct vdi_etcd_server_state *server_state, vd_rev requested,
				struct vd_error *error)
{
	if (error->code != VD_EXPIRED && error->code != VD_TOO_LARGE_REVISION)
		return;
	error->requested = requested;
	if (error->code == VD_EXPIRED) {
		vdi_etcd_server_state_raise(&server_state->compacted, error->compacted);
		vdi_etcd_server_state_raise(&server_state->current, error->compacted);
		error->compacted =
			VDI_MAX(error->compacted, VDI_MAX(atomic_load(&server_state->compacted), 0));
	}
	error->current = VDI_MAX(error->current, atomic_load(&server_state->current));
}

/* Returns true for codes that a failed write may keep although it may have been applied: VD_UNAVAILABLE,
 * VD_TIMEOUT and VD_CLOSED, which do not exclude that, and VD_NO_SPACE, which is more useful to the operator:
 * etcd may apply the write that exceeds its quota. Other codes would look as if nothing was written. */
static bool leaves_it_open(vd_status code)
{
	return code == VD_UNAVAILABLE || code == VD_TIMEOUT || code == VD_CLOSED || code == VD_NO_SPACE;
}

void vdi_etcd_store_describe(const struct vd_etcd_error *error, struct vd_error *ret_error)
{
	const char *text =
		error->error.message[0] ? error->error.message : vd_status_sentence(error->error.code);

	*ret_error = error->error;
	if (error->error.code == VD_FORBIDDEN && error->endpoint[0])
		vd_error_set(ret_error, VD_FORBIDDEN, "%s: %s", error->endpoint, text);
	else if (text != error->error.message)
		vd_error_set(ret_error, error->error.code, "%s", text);
}

vd_status vdi_etcd_store_failed(struct vdi_etcd_store *store, const struct vd_etcd_error *error,
				vd_rev requested, struct vd_error *ret_error)
{
	vdi_etcd_store_describe(error, ret_error);
	if (error->maybe_applied && !leaves_it_open(ret_error->code))
		ret_error->code = VD_UNAVAILABLE;
	if (error->error.code == VD_UNAVAILABLE || error->error.code == VD_TIMEOUT)
		note_unreachable(store, ret_error);
	else if (error->error.code != VD_CLOSED && error->error.code != VD_CANCELED &&
		 error->error.code != VD_NOMEM)
		vdi_etcd_store_observe(store, NULL);
	vdi_etcd_server_state_fill(store->server_state, requested, ret_error);
	return ret_error->code;
}

/* ---- Calls ---- */

struct call {
	struct vdi_etcd_store  *store;
	enum vdi_etcd_operation operation;
	union {
		vd_range_fn	 range;
		vd_txn_fn	 txn;
		vd_done_fn	 done;
		vd_lease_fn	 lease;
		vd_lease_list_fn leases;
	} answer;
	void   *arg;
	vd_rev	revision; /* requested */
	int64_t lease;
};

/* Begins a call. NULL: *ret_status has the reason. Otherwise the client may be used until began. */
static struct call *begin(struct vd_store *base, enum vdi_etcd_operation operation, void *arg,
			  vd_status *ret_status)
{
	struct vdi_etcd_store *store = store_of(base);
	struct call	      *call = VDI_NEW(struct call);

	if (call == NULL) {
		*ret_status = VD_NOMEM;
		return NULL;
	}
	if (!vdi_etcd_store_enter(store)) {
		vdi_free(call);
		*ret_status = VD_CLOSED;
		return NULL;
	}
	atomic_fetch_add_explicit(&store->in_flight, 1, memory_order_relaxed);
	call->store = store;
	call->operation = operation;
	call->arg = arg;
	return call;
}

/* status: result of the client's function; if it is VD_OK the call may have ended already. */
static vd_status began(struct vdi_etcd_store *store, struct call *call, vd_status status)
{
	if (status != VD_OK) {
		vdi_etcd_store_count(store, call->operation, true);
		atomic_fetch_sub_explicit(&store->in_flight, 1, memory_order_relaxed);
		vdi_free(call);
	}
	vdi_etcd_store_leave(store);
	return status;
}

/* Ends a call. Frees it before the user's callback, which may close any object. */
static struct call ended(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			 struct vd_error *ret_error)
{
	struct call call = *(struct call *) arg;

	vdi_free(arg);
	atomic_fetch_sub_explicit(&call.store->in_flight, 1, memory_order_relaxed);
	vdi_etcd_store_count(call.store, call.operation, error != NULL);
	if (error)
		(void) vdi_etcd_store_failed(call.store, error, call.revision, ret_error);
	else
		vdi_etcd_store_observe(call.store, header);
	return call;
}

static void on_range(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		     const struct vd_range_result *result)
{
	struct vd_error failure = { 0 };
	struct call	call = ended(arg, error, header, &failure);

	call.answer.range(call.arg, failure.code, error ? NULL : result, error ? &failure : NULL);
}

static vd_status store_range(struct vd_store *base, const struct vd_range_request *request, vd_range_fn done,
			     void *arg)
{
	struct vd_etcd_range_request range = { .range = *request };
	struct vdi_etcd_store	    *store = store_of(base);
	struct vd_etcd_call	     options = { .timeout = store->call_timeout };
	vd_status		     status = VD_OK;
	struct call		    *call = begin(base, VDI_ETCD_CALL_RANGE, arg, &status);

	if (call == NULL)
		return status;
	call->answer.range = done;
	call->revision = request->revision;
	return began(store, call, vd_etcd_range(store->client, &options, &range, on_range, call));
}

static void on_txn(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		   const struct vd_txn_result *result)
{
	struct vd_error failure = { 0 };
	struct call	call = ended(arg, error, header, &failure);

	atomic_fetch_add(&call.store->server_state->txns_ended, 1);
	call.answer.txn(call.arg, failure.code, error ? NULL : result, error ? &failure : NULL);
}

static vd_status store_txn(struct vd_store *base, const struct vd_txn_request *request, vd_txn_fn done,
			   void *arg)
{
	struct vdi_etcd_store *store = store_of(base);
	struct vd_etcd_call    options = { .timeout = store->call_timeout };
	vd_status	       status = VD_OK;
	struct call	      *call = begin(base, VDI_ETCD_CALL_TXN, arg, &status);

	if (call == NULL)
		return status;
	call->answer.txn = done;
	atomic_fetch_add(&store->server_state->txns_begun, 1);
	status = vd_etcd_txn(store->client, &options, request, on_txn, call);
	if (status != VD_OK)
		atomic_fetch_add(&store->server_state->txns_ended, 1);
	return began(store, call, status);
}

static void on_compact(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header)
{
	struct vd_error failure = { 0 };
	struct call	call = ended(arg, error, header, &failure);

	if (error == NULL)
		vdi_etcd_server_state_raise(&call.store->server_state->compacted, call.revision);
	call.answer.done(call.arg, failure.code, error ? 0 : header->revision, error ? &failure : NULL);
}

static vd_status store_compact(struct vd_store *base, vd_rev revision, bool physical, vd_done_fn done,
			       void *arg)
{
	struct vdi_etcd_store *store = store_of(base);
	struct vd_etcd_call    options = { .timeout = store->call_timeout };
	vd_status	       status = VD_OK;
	struct call	      *call = begin(base, VDI_ETCD_CALL_COMPACT, arg, &status);

	if (call == NULL)
		return status;
	call->answer.done = done;
	call->revision = revision;
	return began(store, call,
		     vd_etcd_compact(store->client, &options, revision, physical, on_compact, call));
}

static void on_lease(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		     const struct vd_lease_result *result)
{
	struct vd_error failure = { 0 };
	struct call	call = ended(arg, error, header, &failure);

	call.answer.lease(call.arg, failure.code, error ? NULL : result, error ? &failure : NULL);
}

static int compare_keys(const void *a, const void *b)
{
	return vd_bytes_compare(*(const struct vd_bytes *) a, *(const struct vd_bytes *) b);
}

/* Sorts the keys of a lease, which etcd returns in any order. */
static void on_time_to_live(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			    const struct vd_lease_result *result)
{
	struct vd_error	       failure = { 0 };
	struct call	       call = ended(arg, error, header, &failure);
	struct vd_lease_result sorted = { 0 };
	struct vd_bytes	      *keys = NULL;

	if (error == NULL) {
		sorted = *result;
		keys = vdi_calloc(sorted.key_count + 1, sizeof *keys);
		if (keys == NULL)
			vd_error_set(&failure, VD_NOMEM, "out of memory for the keys of a lease");
	}
	if (keys && sorted.key_count) {
		memcpy(keys, result->keys, sorted.key_count * sizeof *keys);
		qsort(keys, sorted.key_count, sizeof *keys, compare_keys);
		sorted.keys = keys;
	}
	call.answer.lease(call.arg, failure.code, failure.code == VD_OK ? &sorted : NULL,
			  failure.code == VD_OK ? NULL : &failure);
	vdi_free(keys);
}

/* As etcd, answers the renewal of an unknown lease with TTL 0 instead of an error. */
static void on_renewed(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		       const struct vd_lease_result *result)
{
	struct vd_error	       failure = { 0 };
	struct call	       call = ended(arg, error, header, &failure);
	struct vd_lease_result gone = { .id = call.lease,
					.revision = atomic_load(&call.store->server_state->current) };

	if (error && error->error.code == VD_LEASE_NOT_FOUND)
		call.answer.lease(call.arg, VD_OK, &gone, NULL);
	else
		call.answer.lease(call.arg, failure.code, error ? NULL : result, error ? &failure : NULL);
}

static void on_revoked(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header)
{
	struct vd_error failure = { 0 };
	struct call	call = ended(arg, error, header, &failure);

	call.answer.done(call.arg, failure.code, error ? 0 : header->revision, error ? &failure : NULL);
}

static vd_status store_lease_grant(struct vd_store *base, int64_t id, int64_t ttl_s, vd_lease_fn done,
				   void *arg)
{
	struct vdi_etcd_store *store = store_of(base);
	struct vd_etcd_call    options = { .timeout = store->call_timeout };
	vd_status	       status = VD_OK;
	struct call	      *call = begin(base, VDI_ETCD_CALL_LEASE, arg, &status);

	if (call == NULL)
		return status;
	call->answer.lease = done;
	return began(store, call, vd_etcd_lease_grant(store->client, &options, id, ttl_s, on_lease, call));
}

static vd_status store_lease_revoke(struct vd_store *base, int64_t id, vd_done_fn done, void *arg)
{
	struct vdi_etcd_store *store = store_of(base);
	struct vd_etcd_call    options = { .timeout = store->call_timeout };
	vd_status	       status = VD_OK;
	struct call	      *call = begin(base, VDI_ETCD_CALL_LEASE, arg, &status);

	if (call == NULL)
		return status;
	call->answer.done = done;
	return began(store, call, vd_etcd_lease_revoke(store->client, &options, id, on_revoked, call));
}

static vd_status store_lease_keep_alive(struct vd_store *base, int64_t id, vd_lease_fn done, void *arg)
{
	struct vdi_etcd_store *store = store_of(base);
	struct vd_etcd_call    options = { .timeout = store->call_timeout };
	vd_status	       status = VD_OK;
	struct call	      *call = begin(base, VDI_ETCD_CALL_LEASE, arg, &status);

	if (call == NULL)
		return status;
	call->answer.lease = done;
	call->lease = id;
	return began(store, call,
		     vd_etcd_lease_keep_alive_once(store->client, &options, id, on_renewed, call));
}

static vd_status store_lease_time_to_live(struct vd_store *base, int64_t id, bool keys, vd_lease_fn done,
					  void *arg)
{
	struct vdi_etcd_store *store = store_of(base);
	struct vd_etcd_call    options = { .timeout = store->call_timeout };
	vd_status	       status = VD_OK;
	struct call	      *call = begin(base, VDI_ETCD_CALL_LEASE, arg, &status);

	if (call == NULL)
		return status;
	call->answer.lease = done;
	return began(store, call,
		     vd_etcd_lease_time_to_live(store->client, &options, id, keys, on_time_to_live, call));
}

static void on_leases(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		      const int64_t *ids, size_t count)
{
	struct vd_error failure = { 0 };
	struct call	call = ended(arg, error, header, &failure);

	call.answer.leases(call.arg, failure.code, error ? NULL : ids, error ? 0 : count,
			   error ? 0 : header->revision);
}

static vd_status store_lease_list(struct vd_store *base, vd_lease_list_fn done, void *arg)
{
	struct vdi_etcd_store *store = store_of(base);
	struct vd_etcd_call    options = { .timeout = store->call_timeout };
	vd_status	       status = VD_OK;
	struct call	      *call = begin(base, VDI_ETCD_CALL_LEASE, arg, &status);

	if (call == NULL)
		return status;
	call->answer.leases = done;
	return began(store, call, vd_etcd_lease_list(store->client, &options, on_leases, call));
}

static vd_status store_status(struct vd_store *base, struct vd_store_status *ret_status)
{
	struct vdi_etcd_store *store = store_of(base);

	if (vdi_etcd_store_is_shut_down(store))
		return VD_CLOSED;
	*ret_status = (struct vd_store_status) {
		.current = atomic_load(&store->server_state->current),
		.compacted = atomic_load(&store->server_state->compacted),
		.size_bytes = atomic_load(&store->size_bytes),
		.key_count = -1,
		.progress = atomic_load(&store->server_state->progress),
		.remote = true,
		.unreachable = atomic_load(&store->is_unreachable),
		.id = atomic_load(&store->server_state->cluster_id),
	};
	return VD_OK;
}

/* ---- Life ---- */

static void shutdown_locked(struct vdi_etcd_store *store)
{
	uint64_t before = atomic_fetch_or(&store->client_users, CLIENT_SHUT);

	if (before == 0)
		client_is_unused_locked(store);
}

static void store_shutdown(struct vd_store *base)
{
	struct vdi_etcd_store *store = store_of(base);

	vdi_lock_acquire(&store->lock);
	shutdown_locked(store);
	vdi_lock_release(&store->lock);
}

static void store_close(struct vd_store *base, void (*done)(void *arg), void *arg)
{
	struct vdi_etcd_store *store = store_of(base);

	if (atomic_exchange(&store->server_state->usage.is_closing, true))
		vdi_misuse("vd_store_close: the store is closing already");
	vdi_lock_acquire(&store->lock);
	store->is_closing = true;
	store->closed = done;
	store->closed_arg = arg;
	shutdown_locked(store);
	vd_actor_wake(store->maintenance);
	vdi_lock_release(&store->lock);
}

static const struct vd_store_ops etcd_store_ops = {
	.size = sizeof(struct vd_store_ops),
	.range = store_range,
	.txn = store_txn,
	.compact = store_compact,
	.lease_grant = store_lease_grant,
	.lease_revoke = store_lease_revoke,
	.lease_keep_alive = store_lease_keep_alive,
	.lease_time_to_live = store_lease_time_to_live,
	.watch = vdi_etcd_store_watch,
	.watch_next = vdi_etcd_store_watch_next,
	.watch_progress = vdi_etcd_store_watch_progress,
	.watch_close = vdi_etcd_store_watch_close,
	.status = store_status,
	.close = store_close,
	.stream = vdi_etcd_store_stream,
	.stream_next = vdi_etcd_store_stream_next,
	.stream_close = vdi_etcd_store_stream_close,
	.shutdown = store_shutdown,
	.dump = vdi_etcd_store_dump,
	.lease_list = store_lease_list,
};

static vd_status make_metrics(struct vdi_etcd_store *store)
{
	static const char *const names[VDI_ETCD_CALL_COUNT] = { "range",   "stream", "txn",
								"compact", "lease",  "watch" };
	struct vdi_metrics	*registry = vdi_env_metrics(store->env);

	for (size_t i = 0; i < VDI_ETCD_CALL_COUNT; i++) {
		const char *ok[] = { names[i], "ok" }, *failed[] = { names[i], "failed" };

		VDI_TRY(vdi_metric_get(registry, VDI_METRIC_ETCD_CLIENT_CALLS_TOTAL, ok, &store->calls[i]));
		VDI_TRY(vdi_metric_get(registry, VDI_METRIC_ETCD_CLIENT_CALLS_TOTAL, failed,
				       &store->call_errors[i]));
	}
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_ETCD_CLIENT_REACHABLE, NULL, &store->reachable_metric));
	vdi_metric_set(store->reachable_metric, 1); /* until a call reaches no endpoint */
	return VD_OK;
}

static vd_status build(struct vdi_etcd_store *store, const struct vd_etcd_store_options *options,
		       const char *const *endpoints, size_t count)
{
	struct vd_actor_options actor = { .name = "etcd_maintenance",
					  .run = vdi_etcd_store_maintenance_run,
					  .arg = store };

	store->server_state = VDI_NEW(struct vdi_etcd_server_state);
	if (store->server_state == NULL)
		return VD_NOMEM;
	atomic_init(&store->server_state->references, 1);
	atomic_init(&store->server_state->compacted, -1);
	vdi_lock_init(&store->server_state->lock,
		      VDI_LOCK_STORE); /* never held together with the store's own */
	atomic_init(&store->size_bytes, -1);
	VDI_TRY(make_metrics(store));
	VDI_TRY(vdi_etcd_probe_init(&store->probe, store, endpoints, count));
	vdi_etcd_compactor_init(&store->compactor, store, options->compaction_interval);
	store->progress_at = VD_NEVER;
	VDI_TRY(vd_actor_new(store->env, &actor, &store->maintenance));
	store->server_state->maintenance = store->maintenance;
	return VD_OK;
}

vd_status vdi_etcd_store_new(const struct vd_env *env, struct vd_etcd *client,
			     const struct vd_etcd_store_options *options, const char *const *endpoints,
			     size_t endpoint_count, struct vdi_etcd_store **ret_store,
			     struct vd_error *reterr)
{
	struct vdi_etcd_store *store = VDI_NEW(struct vdi_etcd_store);
	vd_status	       status = VD_NOMEM;

	if (store) {
		store->base = (struct vd_store) { &etcd_store_ops, env };
		store->env = env;
		store->call_timeout = options->call_timeout;
		vdi_lock_init(&store->lock, VDI_LOCK_STORE);
		status = build(store, options, endpoints, endpoint_count);
		if (status != VD_OK)
			vdi_etcd_store_free(store);
	}
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	if (client)
		vdi_etcd_store_begin(store, client);
	*ret_store = store;
	return VD_OK;
}

void vdi_etcd_store_begin(struct vdi_etcd_store *store, struct vd_etcd *client)
{
	store->client = client;
	vd_actor_wake(store->maintenance);
}

void vdi_etcd_store_discard(struct vdi_etcd_store *store)
{
	vd_actor_close(store->maintenance, NULL, NULL); /* it never ran, so nothing in it uses the store */
	vdi_etcd_store_free(store);
}

/* Writes "http://a:2379: connection refused; http://b:2379: ...". */
static void describe_endpoints(struct vdi_etcd_store *store, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < store->probe.count && used < size; i++) {
		char why[160] = "";
		bool is_ready = false;

		if (vd_etcd_endpoint_state(store->client, i, &is_ready, why, sizeof why) != VD_OK)
			continue;
		used += (size_t) snprintf(text + used, size - used, "%s%s%s", used ? "; " : "", why,
					  is_ready ? ": connected, but no response" :
					  strlen(why) == strlen(store->probe.endpoints[i].endpoint) ?
						     ": not connected" :
						     "");
	}
}

vd_status vdi_etcd_store_wait(struct vdi_etcd_store *store, vd_dur timeout, struct vd_error *reterr)
{
	struct vdi_wait wait;
	char		text[VD_ERROR_MESSAGE_SIZE];
	bool		has_begun, is_notified;
	vd_status	refusal;

	vdi_wait_init(&wait, store->env);
	vdi_lock_acquire(&store->lock);
	store->starter = &wait;
	vd_actor_wake(store->maintenance);
	vdi_lock_release(&store->lock);
	is_notified = vdi_wait_until(&wait, vd_mono_add(vd_env_now(store->env), timeout));
	vdi_lock_acquire(&store->lock);
	store->starter = NULL;
	has_begun = store->has_begun; /* possibly without all endpoints */
	refusal = store->refusal;
	vdi_lock_release(&store->lock);
	vdi_wait_fini(&wait);
	if (has_begun)
		return VD_OK;
	if (refusal != VD_OK) {
		if (reterr)
			*reterr = store->refusal_error;
		return refusal;
	}
	VDI_CHECK(!is_notified);
	describe_endpoints(store, text, sizeof text);
	return vd_error_set(reterr, VD_UNAVAILABLE, "no response within %lld s from %s",
			    (long long) (timeout.ns / 1000000000), text);
}

vd_status vd_store_open_etcd(const struct vd_env *env, const struct vd_etcd_store_options *options,
			     struct vd_store **ret_store, struct vd_error *reterr)
{
	struct vdi_etcd_store *store = NULL;
	struct vd_etcd	      *client = NULL;
	vd_status	       status;

	VDI_REQUIRE(env, reterr);
	VDI_REQUIRE(ret_store, reterr);
	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_REQUIRE(options->etcd, reterr);
	if (options->call_timeout.ns <= 0 || options->compaction_interval.ns < 0 ||
	    options->start_timeout.ns < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "etcd store: timeouts and intervals must not be negative, and the call "
				    "timeout not 0");
	if (options->start_timeout.ns)
		VDI_TRY(vdi_wait_check(env, __func__, reterr));
	VDI_TRY(vdi_etcd_check_options(options->etcd, reterr));
	/* Open the client last, because it closes asynchronously and nothing of it may remain if the open
	 * fails. */
	VDI_TRY(vdi_etcd_store_new(env, NULL, options, options->etcd->endpoints,
				   options->etcd->endpoint_count, &store, reterr));
	status = vdi_etcd_open(env, options->etcd, &client, reterr);
	if (status != VD_OK) {
		vdi_etcd_store_discard(store);
		return status;
	}
	vdi_etcd_store_begin(store, client);
	status = options->start_timeout.ns ? vdi_etcd_store_wait(store, options->start_timeout, reterr) :
					     VD_OK;
	if (status != VD_OK) {
		(void) vd_store_close_wait(&store->base);
		return status;
	}
	store->server_state->usage.kind = "store";
	store->server_state->usage.name = "etcd";
	store->server_state->usage.closed_by = "vd_store_close";
	store->server_state->usage.watch_closed_by = "vd_store_watch_close";
	store->server_state->usage.env = env;
	vdi_usage_begin(&store->server_state->usage);
	*ret_store = &store->base;
	return VD_OK;
}
