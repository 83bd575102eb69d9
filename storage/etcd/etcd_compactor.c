/* The compactor: in each interval, one of all servers that share an etcd compacts it.
 *
 * Mirrors kubernetes/apiserver pkg/storage/etcd3/compact.go; the key, its value and its version are shared
 * with kube-apiservers on the same etcd. The key's version is a logical time: the server that writes the key
 * at the version it knows wins the round, and compacts at the revision that it remembers from its last round.
 * So revisions younger than one interval are never compacted, and those older than two always are.
 *
 * 	WAITS --interval--> CLAIMS --won, with a revision to compact at--> COMPACTS --> WAITS
 * 	  ^                    \-- lost, or the first round: adopts -----------------------^
 *
 * The key is also watched, to learn compactions by other servers. A failure ends the round; the next one
 * starts an interval later.
 */
#include "etcd_store.h"

#include <stdio.h>

static const char compact_key[] = VDI_ETCD_COMPACT_KEY;
#define COMPACT_KEY ((struct vd_bytes) { compact_key, sizeof compact_key - 1 })

vd_rev vdi_etcd_compactor_parse(struct vd_bytes value)
{
	const char *text = value.data;
	vd_rev	    revision = 0;

	if (value.size == 0 || value.size > 18)
		return 0;
	for (size_t i = 0; i < value.size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		revision = 10 * revision + (text[i] - '0');
	}
	return revision;
}

static void learn(struct vdi_etcd_compactor *compactor, vd_rev revision)
{
	if (revision > 0)
		vdi_etcd_server_state_raise(&compactor->store->server_state->compacted, revision);
}

void vdi_etcd_compactor_init(struct vdi_etcd_compactor *compactor, struct vdi_etcd_store *store,
			     vd_dur interval)
{
	*compactor = (struct vdi_etcd_compactor) {
		.store = store,
		.interval = interval,
		.due = interval.ns ? vd_mono_add(vd_env_now(store->env), interval) : VD_NEVER,
		.step = VDI_COMPACTOR_WAITS,
	};
}

/* ---- Rounds ---- */

static void answered_locked(struct vdi_etcd_compactor *compactor, const struct vd_etcd_error *error)
{
	compactor->is_answered = true;
	compactor->status = VD_OK;
	if (error) {
		compactor->error = error->error;
		compactor->status = error->error.code;
	}
	vd_actor_wake(compactor->store->maintenance);
}

static void on_claim(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		     const struct vd_txn_result *result)
{
	struct vdi_etcd_compactor *compactor = arg;

	if (error == NULL)
		vdi_etcd_store_observe(compactor->store, header);
	vdi_lock_acquire(&compactor->store->lock);
	if (error == NULL) {
		const struct vd_range_result *range =
			result->succeeded || result->result_count == 0 ? NULL : &result->results[0].range;
		const struct vd_kv *kv = range && range->kv_count ? range->kvs[0] : NULL;

		compactor->is_won = result->succeeded;
		compactor->revision = header->revision;
		/* The key was deleted: its version is 0 again. */
		compactor->stored_version = kv ? kv->version : 0;
		compactor->stored_compacted = kv ? vdi_etcd_compactor_parse(vd_kv_value(kv)) : 0;
	}
	answered_locked(compactor, error);
	vdi_lock_release(&compactor->store->lock);
}

static void on_compacted(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header)
{
	struct vdi_etcd_compactor *compactor = arg;

	if (error == NULL)
		vdi_etcd_store_observe(compactor->store, header);
	vdi_lock_acquire(&compactor->store->lock);
	answered_locked(compactor, error);
	vdi_lock_release(&compactor->store->lock);
}

static vd_status claim(struct vdi_etcd_compactor *compactor)
{
	char		  text[24];
	int		  size = snprintf(text, sizeof text, "%lld", (long long) compactor->previous);
	struct vd_compare compare = { .target = VD_COMPARE_VERSION,
				      .result = VD_COMPARE_EQUAL,
				      .key = COMPACT_KEY,
				      .number = compactor->version };
	struct vd_op	  put = { .kind = VD_OP_PUT, .key = COMPACT_KEY, .value = { text, (size_t) size } };
	struct vd_op	  get = { .kind = VD_OP_RANGE, .range = { .key = COMPACT_KEY } };
	struct vd_txn_request request = { .compares = &compare,
					  .compare_count = 1,
					  .success = &put,
					  .success_count = 1,
					  .failure = &get,
					  .failure_count = 1 };
	struct vd_etcd_call   call = { .timeout = compactor->store->call_timeout };

	return vd_etcd_txn(compactor->store->client, &call, &request, on_claim, compactor);
}

static void set_step(struct vdi_etcd_compactor *compactor, int step)
{
	vdi_lock_acquire(&compactor->store->lock);
	compactor->step = step;
	compactor->is_answered = false;
	vdi_lock_release(&compactor->store->lock);
}

static void end_attempt(struct vdi_etcd_compactor *compactor, const char *what, vd_status status,
			const char *text)
{
	if (status != VD_OK)
		vdi_log(compactor->store->env, VD_LOG_WARNING, "etcd", "compaction: %s: %s", what,
			text[0] ? text : vd_status_sentence(status));
	set_step(compactor, VDI_COMPACTOR_WAITS);
	compactor->due = vd_mono_add(vd_env_now(compactor->store->env), compactor->interval);
}

static void begin_attempt(struct vdi_etcd_compactor *compactor)
{
	vd_status status;

	set_step(compactor, VDI_COMPACTOR_CLAIMS);
	vdi_lock_acquire(&compactor->store->lock);
	compactor->rounds++;
	vdi_lock_release(&compactor->store->lock);
	status = claim(compactor);
	if (status != VD_OK)
		end_attempt(compactor, "claiming the round", status, "");
}

static void begin_compaction(struct vdi_etcd_compactor *compactor)
{
	struct vd_etcd_call call = { .timeout = compactor->store->call_timeout };
	vd_status	    status;

	set_step(compactor, VDI_COMPACTOR_COMPACTS);
	status = vd_etcd_compact(compactor->store->client, &call, compactor->claimed, false, on_compacted,
				 compactor);
	if (status != VD_OK)
		end_attempt(compactor, "compacting", status, "");
}

/* Handles the response to a claim. On an error version and revision stay unchanged. */
static void claim_answered(struct vdi_etcd_compactor *compactor, const struct vdi_etcd_compactor *answer)
{
	vd_rev revision = compactor->previous;

	if (answer->status != VD_OK) {
		end_attempt(compactor, "claiming the round", answer->status, answer->error.message);
		return;
	}
	compactor->previous = answer->revision;
	if (!answer->is_won) {
		compactor->version = answer->stored_version;
		learn(compactor, answer->stored_compacted);
		end_attempt(compactor, "", VD_OK, "");
		return;
	}
	compactor->version++;
	compactor->claimed = revision;
	/* At the first attempt no revision is known to be old enough. */
	if (revision == 0)
		end_attempt(compactor, "", VD_OK, "");
	else
		begin_compaction(compactor);
}

static void compaction_answered(struct vdi_etcd_compactor *compactor, const struct vdi_etcd_compactor *answer)
{
	if (answer->status == VD_OK) {
		learn(compactor, compactor->claimed);
		vdi_lock_acquire(&compactor->store->lock);
		compactor->compactions++;
		vdi_lock_release(&compactor->store->lock);
		vdi_log(compactor->store->env, VD_LOG_DEBUG, "etcd", "compacted up to revision %lld",
			(long long) compactor->claimed);
	}
	end_attempt(compactor, "compacting", answer->status, answer->error.message);
}

static void run_iteration(struct vdi_etcd_compactor *compactor)
{
	struct vdi_etcd_compactor answer;

	vdi_lock_acquire(&compactor->store->lock);
	answer = *compactor;
	vdi_lock_release(&compactor->store->lock);
	if (answer.step == VDI_COMPACTOR_WAITS) {
		if (compactor->due.ns <= vd_env_now(compactor->store->env).ns)
			begin_attempt(compactor);
	} else if (answer.is_answered && answer.step == VDI_COMPACTOR_CLAIMS) {
		claim_answered(compactor, &answer);
	} else if (answer.is_answered) {
		compaction_answered(compactor, &answer);
	}
}

/* ---- What others compacted ---- */

static void on_read(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		    const struct vd_range_result *result)
{
	struct vdi_etcd_compactor *compactor = arg;

	if (error == NULL) {
		vdi_etcd_store_observe(compactor->store, header);
		if (result->kv_count)
			learn(compactor, vdi_etcd_compactor_parse(vd_kv_value(result->kvs[0])));
	}
	vdi_lock_acquire(&compactor->store->lock);
	compactor->is_reading = false;
	compactor->is_read = true;
	compactor->read_status = error ? error->error.code : VD_OK;
	compactor->read_revision = error ? 0 : header->revision;
	vd_actor_wake(compactor->store->maintenance);
	vdi_lock_release(&compactor->store->lock);
}

static void on_key_changed(void *arg)
{
	struct vdi_etcd_compactor *compactor = arg;

	vd_actor_wake(compactor->store->maintenance);
}

static void follow_again(struct vdi_etcd_compactor *compactor)
{
	vd_etcd_watch_close(compactor->watch);
	compactor->watch = NULL;
	compactor->follow_at = vd_mono_add(vd_env_now(compactor->store->env), VDI_ETCD_COMPACTOR_RETRY);
}

static void take_changes(struct vdi_etcd_compactor *compactor)
{
	struct vd_etcd_watch_response response;
	struct vd_etcd_error	      error;
	vd_status		      status;

	while ((status = vd_etcd_watch_next(compactor->watch, &response, &error)) == VD_OK)
		for (size_t i = 0; i < response.event_count; i++)
			learn(compactor, vdi_etcd_compactor_parse(vd_kv_value(response.events[i].kv)));
	if (status != VD_AGAIN)
		follow_again(compactor);
}

/* Watches from the revision of the read on, so that no compaction is missed. */
static void open_watch(struct vdi_etcd_compactor *compactor, vd_rev revision)
{
	struct vd_etcd_watch_request request = {
		.key = COMPACT_KEY,
		.revision = revision,
		.require_leader = true,
		.ready = on_key_changed,
		.ready_arg = compactor,
	};

	if (vd_etcd_watch_open(compactor->store->client, &request, &compactor->watch, NULL) == VD_OK)
		take_changes(compactor);
	else
		follow_again(compactor);
}

static void read_key(struct vdi_etcd_compactor *compactor)
{
	struct vd_etcd_range_request request = { .range = { .key = COMPACT_KEY } };
	struct vd_etcd_call	     call = { .timeout = compactor->store->call_timeout };

	vdi_lock_acquire(&compactor->store->lock);
	compactor->is_reading = true;
	vdi_lock_release(&compactor->store->lock);
	if (vd_etcd_range(compactor->store->client, &call, &request, on_read, compactor) == VD_OK)
		return;
	vdi_lock_acquire(&compactor->store->lock);
	compactor->is_reading = false;
	vdi_lock_release(&compactor->store->lock);
	follow_again(compactor);
}

static void run_following(struct vdi_etcd_compactor *compactor)
{
	bool	  is_reading, is_read;
	vd_status status;
	vd_rev	  revision;

	if (compactor->watch) {
		take_changes(compactor);
		return;
	}
	vdi_lock_acquire(&compactor->store->lock);
	is_read = compactor->is_read;
	compactor->is_read = false;
	status = compactor->read_status;
	revision = compactor->read_revision;
	is_reading = compactor->is_reading;
	vdi_lock_release(&compactor->store->lock);
	if (is_read && status == VD_OK)
		open_watch(compactor, revision);
	else if (is_read)
		follow_again(compactor);
	else if (!is_reading && compactor->follow_at.ns <= vd_env_now(compactor->store->env).ns)
		read_key(compactor);
}

vd_mono vdi_etcd_compactor_run(struct vdi_etcd_compactor *compactor)
{
	vd_mono due = VD_NEVER;

	run_iteration(compactor);
	run_following(compactor);
	vdi_lock_acquire(&compactor->store->lock);
	if (compactor->step == VDI_COMPACTOR_WAITS)
		due = compactor->due;
	if (compactor->watch == NULL && !compactor->is_reading)
		due.ns = VDI_MIN(due.ns, compactor->follow_at.ns);
	vdi_lock_release(&compactor->store->lock);
	return due;
}

void vdi_etcd_compactor_stop(struct vdi_etcd_compactor *compactor)
{
	vd_etcd_watch_close(compactor->watch);
	compactor->watch = NULL;
}
