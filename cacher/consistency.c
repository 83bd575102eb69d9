/* A walk over a snapshot of the cache and one over the store's keys at the snapshot's revision are merged.
 * The store's values are not decoded, because the cache holds them byte for byte, or as translated by the
 * codec. Only the value of a key that the cache lacks is decoded, because the cache leaves out undecodable
 * objects on purpose. */
#include "consistency.h"

#include <stdio.h>

#include "cacher_state.h"
#include "env.h"
#include "key_range.h"
#include "object.h"
#include "store.h"

#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static const char *const result_names[] = { "none", "success", "failure", "error" };

const char *vdi_consistency_result_name(enum vdi_consistency_result result)
{
	return result_names[result];
}

/* Returns the next check's time: [1, 1.5) times the interval from now, as upstream. */
static vd_mono next_due(const struct vd_env *env, vd_dur interval)
{
	if (interval.ns <= 0)
		return VD_NEVER;
	return vd_mono_add(
		vd_env_now(env),
		(vd_dur) { interval.ns + (int64_t) vd_env_random_below(
						 env, (uint64_t) VDI_MAX(interval.ns / 2, (int64_t) 1)) });
}

void vdi_consistency_init(struct vdi_consistency *check, const struct vd_env *env, vd_dur interval)
{
	*check = (struct vdi_consistency) { .due = next_due(env, interval) };
	atomic_init(&check->answered, false);
}

void vdi_consistency_fini(struct vdi_consistency *check)
{
	vdi_btree_snapshot_release(&check->snapshot);
	check->last = vd_kv_unref(check->last);
}

/* ---- Comparing, inside the store call ---- */

/* FNV-1, not FNV-1a: multiply first. */
static uint64_t digest_bytes(uint64_t digest, struct vd_bytes bytes)
{
	const unsigned char *at = bytes.data;

	for (size_t i = 0; i < bytes.size; i++)
		digest = (digest * FNV_PRIME) ^ at[i];
	return digest;
}

/* suffix: the key after the prefix, which is namespace "/" name, or only the name in cluster scope. */
static uint64_t digest_item(const struct vd_cacher *cacher, uint64_t digest, struct vd_bytes key,
			    vd_rev revision)
{
	struct vd_bytes suffix = { (const char *) key.data + cacher->key_prefix_size,
				   key.size - cacher->key_prefix_size };
	char		text[32];
	int		size = snprintf(text, sizeof text, "/%lld", (long long) revision);

	if (cacher->options.cluster_scoped)
		digest = digest_bytes(digest, vd_bytes_of("/"));
	return digest_bytes(digest_bytes(digest, suffix), (struct vd_bytes) { text, (size_t) size });
}

static void note_difference(struct vdi_consistency *check, const char *what, struct vd_bytes key,
			    vd_rev cached, vd_rev stored)
{
	if (!check->differs)
		(void) snprintf(check->difference, sizeof check->difference,
				"%s: %.*s (revision %lld in the cache, %lld in storage)", what,
				(int) VDI_MIN(key.size, (size_t) 200), (const char *) key.data,
				(long long) cached, (long long) stored);
	check->differs = true;
}

static void next_head(struct vd_cacher *cacher)
{
	struct vdi_consistency *check = &cacher->consistency;

	check->head = vdi_btree_cursor_range_next(&check->cursor);
	if (check->head)
		check->cache_digest = digest_item(cacher, check->cache_digest, vd_object_key(check->head),
						  vd_object_revision(check->head));
}

/* Skips cached objects with keys less than below, which are not in the store. */
static void skip_cached(struct vd_cacher *cacher, const struct vd_bytes *below)
{
	struct vdi_consistency *check = &cacher->consistency;

	while (check->head && (below == NULL || vd_bytes_compare(vd_object_key(check->head), *below) < 0)) {
		note_difference(check, "only in the cache", vd_object_key(check->head),
				vd_object_revision(check->head), 0);
		next_head(cacher);
	}
}

/* Compares the cache's head with kv of the same revision. A value that the codec translates is compared
 * translated. */
static vd_status compare_value(struct vd_cacher *cacher, struct vd_kv *kv)
{
	struct vdi_consistency *check = &cacher->consistency;
	struct vd_kv	       *cached = vd_object_kv(check->head), *translated = NULL;
	vd_status		status;

	if (cached == kv || vd_bytes_equal(vd_kv_value(cached), vd_kv_value(kv)))
		return VD_OK;
	status = vdi_object_translate(cacher->codec, kv, &translated, NULL);
	if (status == VD_NOMEM)
		return status;
	if (status != VD_OK || !vd_bytes_equal(vd_kv_value(cached), vd_kv_value(translated)))
		note_difference(check, "different content", vd_kv_key(kv), cached->mod_rev, kv->mod_rev);
	vd_kv_unref(translated);
	return VD_OK;
}

static vd_status compare_item(struct vd_cacher *cacher, struct vd_kv *kv)
{
	struct vdi_consistency *check = &cacher->consistency;
	struct vd_bytes		key = vd_kv_key(kv);
	struct vd_object       *object;
	vd_rev			cached;

	skip_cached(cacher, &key);
	if (check->head == NULL || !vd_bytes_equal(vd_object_key(check->head), key)) {
		vd_status status = vd_object_new(cacher->codec, kv, &object, NULL);

		if (status == VD_NOMEM)
			return status;
		if (status != VD_OK)
			return VD_OK;
		vd_object_unref(object);
		note_difference(check, "only in storage", key, 0, kv->mod_rev);
	} else {
		cached = vd_object_revision(check->head);
		if (cached != kv->mod_rev)
			note_difference(check, "different revision", key, cached, kv->mod_rev);
		else
			VDI_TRY(compare_value(cacher, kv));
		next_head(cacher);
	}
	check->store_digest = digest_item(cacher, check->store_digest, key, kv->mod_rev);
	return VD_OK;
}

static void on_page(void *arg, vd_status status, const struct vd_range_result *result,
		    const struct vd_error *error)
{
	struct vd_cacher       *cacher = arg;
	struct vdi_consistency *check = &cacher->consistency;

	struct vd_error wrong;

	vdi_storage_metrics_request(cacher->storage_metrics, VDI_OPERATION_LIST, check->issued, status);
	if (status == VD_OK) {
		status = vdi_store_check_page(result, &wrong);
		error = &wrong;
	}
	for (size_t i = 0; status == VD_OK && i < result->kv_count; i++)
		status = compare_item(cacher, result->kvs[i]);
	check->more = status == VD_OK && result->more;
	if (check->more) {
		vd_kv_unref(check->last);
		check->last = vd_kv_ref(result->kvs[result->kv_count - 1]);
	} else if (status == VD_OK) {
		skip_cached(cacher, NULL);
	}
	check->status = status;
	if (status != VD_OK)
		(void) snprintf(check->difference, sizeof check->difference, "%s",
				error ? error->message : vd_status_sentence(status));
	atomic_store_explicit(&check->answered, true, memory_order_release);
	vd_actor_wake(cacher->actor);
	vdi_cacher_call_end(cacher);
}

/* ---- Steps, on the actor ---- */

static void read_page(struct vd_cacher *cacher)
{
	struct vdi_consistency *check = &cacher->consistency;
	struct vd_bytes		prefix = vdi_cacher_prefix(cacher);
	char			end[VDI_STORAGE_KEY_MAX];
	struct vd_range_request request = { .key = prefix,
					    .revision = check->revision,
					    .limit = VDI_CONSISTENCY_PAGE };
	char			next[VD_KEY_SIZE_MAX + 1];
	vd_status		status;

	request.range_end = vdi_bytes_prefix_end(prefix, end);
	if (check->last)
		request.key = vdi_bytes_next_key(vd_kv_key(check->last), VD_KEY_SIZE_MAX, next);
	atomic_store_explicit(&check->answered, false, memory_order_relaxed);
	if (!vdi_cacher_call_begin(cacher))
		return;
	check->issued = vd_env_now(cacher->env);
	status = vd_store_range(cacher->store, &request, on_page, cacher);
	if (status != VD_OK)
		on_page(cacher, status, NULL, NULL);
}

static void begin(struct vd_cacher *cacher)
{
	struct vdi_consistency *check = &cacher->consistency;
	struct vdi_watch_cache *cache = &cacher->watch_cache;
	struct vdi_key_range	all = VDI_KEY_RANGE_ALL;

	vdi_lock_acquire(&cache->lock);
	vdi_object_store_snapshot(&cache->store, &check->snapshot);
	check->revision = vdi_watch_cache_revision(cache);
	vdi_lock_release(&cache->lock);
	check->is_running = true;
	check->cache_digest = check->store_digest = FNV_OFFSET;
	check->differs = false;
	check->last = vd_kv_unref(check->last);
	check->difference[0] = 0;
	vdi_btree_cursor_init(&check->cursor, &check->snapshot);
	(void) vdi_btree_cursor_range(&check->cursor, &all);
	next_head(cacher);
	read_page(cacher);
}

static void count(struct vd_cacher *cacher, enum vdi_consistency_result result)
{
	struct vdi_consistency *check = &cacher->consistency;

	check->counts[result]++;
	check->result = result;
	check->result_revision = check->revision;
	check->result_digest = check->cache_digest;
	check->checked = vd_env_now(cacher->env);
	check->due = next_due(cacher->env, cacher->options.consistency_interval);
	vdi_metric_add(cacher->metrics.consistency_checks[result], 1);
}

static void act_on_difference(struct vd_cacher *cacher)
{
	struct vdi_consistency *check = &cacher->consistency;

	vdi_log(cacher->env, VD_LOG_ERROR, "cacher",
		"%s: the cache differs from storage at revision %lld: %s; digests %llx and %llx",
		cacher->options.resource, (long long) check->revision, check->difference,
		(unsigned long long) check->cache_digest, (unsigned long long) check->store_digest);
	if (cacher->options.on_inconsistency == VD_ON_INCONSISTENCY_PANIC)
		vdi_panic(__FILE__, __LINE__, "the watch cache equals storage", check->difference);
	if (cacher->options.on_inconsistency == VD_ON_INCONSISTENCY_RELIST)
		vdi_reflector_relist(cacher, "the cache differed from storage");
}

static void finish(struct vd_cacher *cacher)
{
	struct vdi_consistency *check = &cacher->consistency;
	bool			is_equal = !check->differs && check->cache_digest == check->store_digest;

	check->is_running = false;
	vdi_btree_snapshot_release(&check->snapshot);
	check->snapshot = (struct vdi_btree_snapshot) { 0 };
	if (check->status != VD_OK) {
		vdi_log(cacher->env, VD_LOG_WARNING, "cacher",
			"%s: the cache could not be compared with storage: %s", cacher->options.resource,
			check->difference);
		count(cacher, VDI_CONSISTENCY_ERROR);
		return;
	}
	count(cacher, is_equal ? VDI_CONSISTENCY_SUCCESS : VDI_CONSISTENCY_FAILURE);
	vdi_watch_cache_mark_consistent(&cacher->watch_cache, is_equal);
	if (!is_equal)
		act_on_difference(cacher);
}

vd_mono vdi_consistency_run(struct vd_cacher *cacher)
{
	struct vdi_consistency *check = &cacher->consistency;

	if (check->is_running) {
		if (!atomic_load_explicit(&check->answered, memory_order_acquire))
			return VD_NEVER;
		if (check->more && check->status == VD_OK)
			read_page(cacher);
		else
			finish(cacher);
		return check->is_running ? VD_NEVER : check->due;
	}
	if (check->due.ns > vd_env_now(cacher->env).ns)
		return check->due;
	if (vdi_ready_check(&cacher->ready, NULL, NULL) == VD_OK) {
		begin(cacher);
		return VD_NEVER;
	}
	check->revision = 0;
	check->cache_digest = 0;
	count(cacher, VDI_CONSISTENCY_ERROR);
	return check->due;
}
