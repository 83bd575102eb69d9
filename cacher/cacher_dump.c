/* A dump is a struct with one part per delivery worker. The actor fills in its own data and gives each
 * delivery worker its part; the thread that finishes the last part writes the text. Caught-up watchers are
 * represented by their subscription, because they all lag alike. */
#include "cacher_dump.h"

#include <stdlib.h>

#include "cache_watcher.h"
#include "cacher_state.h"
#include "consistency.h"
#include "delivery_worker.h"
#include "env.h"

#define TEXT_SIZE_MAX (1u << 20)
#define WAITERS_COUNTED_MAX 1000

struct row {
	struct vdi_predicate *predicate; /* a reference; NULL: never set */
	const char	     *state;
	const void	     *executor;
	size_t		      watchers;
	uint64_t	      events;
	uint64_t	      bytes;
};

struct vdi_dump_part {
	struct vdi_dump	     *dump;
	struct vdi_dump_part *next; /* of the same delivery worker */
	size_t		      members;
	size_t		      lagging;
	size_t		      stuck;
	size_t		      row_count;
	struct row	      rows[VDI_DUMP_WATCHERS_MAX];
};

struct vdi_dump {
	struct vd_cacher	*cacher;
	vdi_cacher_dump_fn	 done;
	void			*arg;
	struct vdi_dump		*next;
	_Atomic size_t		 left; /* unfilled parts, plus one for the actor */
	struct vdi_dump_part	*parts;
	size_t			 part_count;
	enum vdi_reflector_phase phase;
	uint64_t		 relists;
	uint64_t		 resumes;
	size_t			 groups;
	struct {
		uint64_t		    counts[4];
		enum vdi_consistency_result result;
		vd_rev			    revision;
		uint64_t		    digest;
	} consistency;
	bool			   has_stream;
	struct vdi_watchchan_stats stream;
};

/* ---- Parts ---- */

static bool is_before(const struct row *a, const struct row *b)
{
	return a->bytes != b->bytes ? a->bytes > b->bytes : a->events > b->events;
}

/* Keeps the rows with the greatest lag. */
static void add_row(struct vdi_dump_part *part, struct row row)
{
	struct row *last = &part->rows[0];

	if (part->row_count < VDI_DUMP_WATCHERS_MAX) {
		last = &part->rows[part->row_count++];
	} else {
		for (size_t i = 1; i < part->row_count; i++)
			if (is_before(last, &part->rows[i]))
				last = &part->rows[i];
		if (!is_before(&row, last))
			return;
		vdi_predicate_unref(last->predicate);
	}
	if (row.predicate)
		vdi_predicate_ref(row.predicate);
	*last = row;
}

static uint64_t behind(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

static const char *state_of(const struct vd_watcher *watcher)
{
	if (watcher->error_due)
		return "failing";
	if (watcher->initial)
		return watcher->is_stuck ? "initial, blocked" : "initial";
	return watcher->is_stuck ? "blocked" : "catching up";
}

static void fill_subscription(struct vdi_dump_part *part, struct vdi_delivery_worker *worker,
			      struct vdi_subscription *subscription)
{
	struct vdi_watch_cache *cache = worker->watchers->cache;
	uint64_t		events, bytes;

	vdi_lock_acquire(&cache->lock);
	events = subscription->group->matched_events;
	bytes = subscription->group->matched_bytes;
	vdi_lock_release(&cache->lock);
	part->members += subscription->member_count;
	if (subscription->member_count)
		add_row(part, (struct row) { vdi_watch_group_predicate(subscription->group), "live",
					     worker->executor.executor, subscription->member_count,
					     behind(events, subscription->taken_events),
					     behind(bytes, subscription->taken_bytes) });
	for (struct vd_watcher *watcher = subscription->lagging; watcher; watcher = watcher->lagging_next) {
		part->lagging++;
		part->stuck += watcher->is_stuck;
		add_row(part,
			(struct row) { vdi_watch_group_predicate(subscription->group), state_of(watcher),
				       worker->executor.executor, 1, behind(events, watcher->base_events),
				       behind(bytes, watcher->base_bytes) });
	}
}

static void fill_part(struct vdi_dump_part *part, struct vdi_delivery_worker *worker)
{
	for (struct vdi_subscription *subscription = worker->subscriptions; subscription;
	     subscription = subscription->worker_next)
		fill_subscription(part, worker, subscription);
	for (struct vd_watcher *watcher = worker->failed; watcher; watcher = watcher->lagging_next) {
		part->lagging++;
		part->stuck += watcher->is_stuck;
		add_row(part, (struct row) { NULL, "failing", worker->executor.executor, 1, 0, 0 });
	}
}

/* ---- The text ---- */

static void write_string(struct vdi_buffer *buffer, const char *key, struct vd_bytes text)
{
	vdi_buffer_printf(buffer, ",\"%s\":", key);
	vdi_buffer_append_json_string(buffer, text);
}

static void write_ready(struct vdi_buffer *buffer, struct vd_cacher *cacher)
{
	static const char *const names[] = { "pending", "ready", "stopped" };
	struct vdi_ready	*ready = &cacher->ready;
	char			 error[VD_ERROR_MESSAGE_SIZE];
	enum vdi_ready_state	 state;
	uint64_t		 generation;
	vd_mono			 changed;
	bool			 has_error;

	vdi_lock_acquire(&ready->lock);
	state = ready->state;
	generation = ready->generation;
	changed = ready->changed;
	has_error = ready->has_error;
	memcpy(error, ready->error, sizeof error);
	vdi_lock_release(&ready->lock);
	vdi_buffer_printf(buffer, "\"ready\":%s,\"state\":\"%s\",\"stateSeconds\":%lld,\"generation\":%llu",
			  state == VDI_READY_READY ? "true" : "false", names[state],
			  (long long) (vd_mono_since(vd_env_now(cacher->env), changed).ns / 1000000000),
			  (unsigned long long) generation);
	if (has_error)
		write_string(buffer, "lastError", vd_bytes_of(error));
}

static void write_cache(struct vdi_buffer *buffer, struct vd_cacher *cacher)
{
	struct vdi_watch_cache *cache = &cacher->watch_cache;
	struct vdi_history	history; /* numbers only */
	vd_mono			now = vd_env_now(cacher->env), first = now;
	vd_rev			floor = 0, newest = 0, revision;
	uint64_t		objects;
	int64_t			bytes;
	size_t			snapshots, waiters = 0;

	vdi_lock_acquire(&cache->lock);
	history = cache->history;
	revision = vdi_watch_cache_revision(cache);
	if (history.list_revision)
		floor = vdi_history_floor(&cache->history);
	if (history.start != history.end) {
		first = vdi_history_at(&cache->history, history.start)->record_time;
		newest = vdi_history_at(&cache->history, history.end - 1)->revision;
	}
	objects = vdi_btree_count(&cache->store.objects);
	bytes = cache->store.bytes;
	snapshots = cache->store.retained_count;
	for (struct vdi_fresh_waiter *waiter = cache->waiters_first; waiter && waiters < WAITERS_COUNTED_MAX;
	     waiter = waiter->next)
		waiters++;
	vdi_lock_release(&cache->lock);
	vdi_buffer_printf(buffer,
			  ",\"resourceVersion\":%lld,\"listResourceVersion\":%lld,\"objects\":%llu,"
			  "\"objectBytes\":%lld",
			  (long long) revision, (long long) history.list_revision,
			  (unsigned long long) objects, (long long) bytes);
	vdi_buffer_printf(buffer,
			  ",\"history\":{\"oldest\":%lld,\"newest\":%lld,\"events\":%llu,\"bytes\":%lld,"
			  "\"capacity\":%zu,\"bytesMax\":%lld,"
			  "\"spanSeconds\":%lld},\"freshWaiters\":%zu,\"snapshots\":%zu",
			  (long long) floor, (long long) newest,
			  (unsigned long long) (history.end - history.start), (long long) history.bytes,
			  history.capacity, (long long) history.bytes_max,
			  (long long) (vd_mono_since(now, first).ns / 1000000000), waiters, snapshots);
}

static void write_stream(struct vdi_buffer *buffer, const struct vdi_dump *dump)
{
	static const char *const	  phases[] = { "listing", "backfilling", "watching" };
	const struct vdi_watchchan_stats *stats = &dump->stream;

	vdi_buffer_printf(buffer, ",\"reflector\":{\"phase\":\"%s\",\"relists\":%llu,\"resumes\":%llu}",
			  phases[dump->phase], (unsigned long long) dump->relists,
			  (unsigned long long) dump->resumes);
	if (!dump->has_stream)
		return;
	vdi_buffer_printf(buffer,
			  ",\"watchChan\":{\"raw\":{\"len\":%zu,\"high\":%zu,\"full\":%llu,\"capacity\":%d},"
			  "\"result\":{\"len\":%zu,\"high\":%zu,\"full\":%llu,\"capacity\":%d},\"events\":%"
			  "llu,\"bookmarks\":%llu,\"undecodable\":%llu}",
			  stats->raw_len, stats->raw_high, (unsigned long long) stats->raw_full,
			  VDI_WATCHCHAN_QUEUE_LEN, stats->result_len, stats->result_high,
			  (unsigned long long) stats->result_full, VDI_WATCHCHAN_QUEUE_LEN,
			  (unsigned long long) stats->events, (unsigned long long) stats->bookmarks,
			  (unsigned long long) stats->undecodable);
}

static void write_consistency(struct vdi_buffer *buffer, const struct vdi_dump *dump)
{
	vdi_buffer_printf(buffer, ",\"consistency\":{\"status\":\"%s\"",
			  vdi_consistency_result_name(dump->consistency.result));
	if (dump->consistency.result != VDI_CONSISTENCY_NONE)
		vdi_buffer_printf(buffer, ",\"resourceVersion\":%lld,\"digest\":\"%llx\"",
				  (long long) dump->consistency.revision,
				  (unsigned long long) dump->consistency.digest);
	for (int i = VDI_CONSISTENCY_SUCCESS; i <= VDI_CONSISTENCY_ERROR; i++)
		vdi_buffer_printf(buffer, ",\"%s\":%llu",
				  vdi_consistency_result_name((enum vdi_consistency_result) i),
				  (unsigned long long) dump->consistency.counts[i]);
	vdi_buffer_append_char(buffer, '}');
}

static void write_row(struct vdi_buffer *buffer, const struct vd_env *env, const struct row *row)
{
	vdi_buffer_printf(buffer, "{\"state\":\"%s\",\"watchers\":%zu,\"lagEvents\":%llu,\"lagBytes\":%llu",
			  row->state, row->watchers, (unsigned long long) row->events,
			  (unsigned long long) row->bytes);
	if (row->executor)
		vdi_buffer_printf(buffer, ",\"executor\":\"%u\"",
				  vdi_env_executor_number(env, row->executor));
	if (row->predicate && row->predicate->namespace_size)
		write_string(buffer, "namespace", vdi_predicate_namespace(row->predicate));
	if (row->predicate && row->predicate->name_size)
		write_string(buffer, "name", vdi_predicate_name(row->predicate));
	if (row->predicate && row->predicate->has_labels)
		write_string(buffer, "labelSelector",
			     vdi_label_selector_text(vdi_predicate_labels(row->predicate)));
	if (row->predicate && row->predicate->fields_at)
		write_string(buffer, "fieldSelector",
			     vdi_field_selector_text(vdi_predicate_fields(row->predicate)));
	if (row->predicate && row->predicate->has_shards)
		write_string(buffer, "shardSelector",
			     vdi_shard_selector_text(vdi_predicate_shards(row->predicate)));
	vdi_buffer_append_char(buffer, '}');
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *const *left = a, *const *right = b;

	return is_before(*left, *right) ? -1 : is_before(*right, *left);
}

static void write_rows(struct vdi_buffer *buffer, const struct vdi_dump *dump)
{
	const struct row **rows = vdi_calloc(dump->part_count * VDI_DUMP_WATCHERS_MAX, sizeof *rows);
	size_t		   count = 0;

	if (rows == NULL) {
		buffer->status = VD_NOMEM;
		return;
	}
	for (size_t i = 0; i < dump->part_count; i++)
		for (size_t j = 0; j < dump->parts[i].row_count; j++)
			rows[count++] = &dump->parts[i].rows[j];
	qsort(rows, count, sizeof *rows, compare_rows);
	for (size_t i = 0; i < VDI_MIN(count, (size_t) VDI_DUMP_WATCHERS_MAX); i++) {
		if (i)
			vdi_buffer_append_char(buffer, ',');
		write_row(buffer, dump->cacher->env, rows[i]);
	}
	vdi_free(rows);
}

static void write_watchers(struct vdi_buffer *buffer, const struct vdi_dump *dump)
{
	struct vd_cacher *cacher = dump->cacher;
	size_t		  count, workers, members = 0, lagging = 0, stuck = 0;

	vdi_lock_acquire(&cacher->watchers.lock);
	count = cacher->watchers.count;
	workers = cacher->watchers.worker_count;
	vdi_lock_release(&cacher->watchers.lock);
	for (size_t i = 0; i < dump->part_count; i++) {
		members += dump->parts[i].members;
		lagging += dump->parts[i].lagging;
		stuck += dump->parts[i].stuck;
	}
	vdi_buffer_printf(buffer,
			  ",\"watchers\":{\"count\":%zu,\"groups\":%zu,\"deliveryWorkers\":%zu,\"live\":%zu,"
			  "\"behind\":%zu,\"blocked\":%zu,\"ends\":{",
			  count, dump->groups, workers, members, lagging, stuck);
	for (int i = 0; i < VDI_END_COUNT; i++)
		vdi_buffer_printf(buffer, "%s\"%s\":%lld", i ? "," : "", vdi_end_name((enum vdi_end) i),
				  (long long) vdi_metric_value(cacher->metrics.ends[i]));
	vdi_buffer_append_text(buffer, "},\"slowest\":[");
	write_rows(buffer, dump);
	vdi_buffer_append_text(buffer, "]}");
}

/* ---- Lifetime ---- */

static void free_dump(struct vdi_dump *dump)
{
	for (size_t i = 0; i < dump->part_count; i++)
		for (size_t j = 0; j < dump->parts[i].row_count; j++)
			vdi_predicate_unref(dump->parts[i].rows[j].predicate);
	vdi_free(dump->parts);
	vdi_free(dump);
}

static void finish(struct vdi_dump *dump, vd_status status)
{
	struct vd_cacher *cacher = dump->cacher;
	struct vdi_buffer buffer;

	vdi_buffer_init(&buffer, TEXT_SIZE_MAX);
	if (status == VD_OK) {
		vdi_buffer_append_char(&buffer, '{');
		write_ready(&buffer, cacher);
		write_cache(&buffer, cacher);
		write_stream(&buffer, dump);
		write_consistency(&buffer, dump);
		write_watchers(&buffer, dump);
		vdi_buffer_append_text(&buffer, ",\"quarantined\":");
		vdi_quarantine_dump(&cacher->quarantine, VDI_DUMP_QUARANTINED_MAX, &buffer);
		vdi_buffer_append_char(&buffer, '}');
		status = vdi_buffer_status(&buffer);
	}
	dump->done(dump->arg, status, status == VD_OK ? vdi_buffer_bytes(&buffer) : VD_BYTES_NONE);
	vdi_buffer_fini(&buffer);
	free_dump(dump);
	vdi_cacher_call_end(cacher);
}

static void part_is_done(struct vdi_dump *dump)
{
	if (atomic_fetch_sub_explicit(&dump->left, 1, memory_order_acq_rel) == 1)
		finish(dump, VD_OK);
}

vd_status vdi_cacher_dump(struct vd_cacher *cacher, vdi_cacher_dump_fn done, void *arg)
{
	struct vdi_dump *dump = VDI_NEW(struct vdi_dump);

	if (dump == NULL)
		return VD_NOMEM;
	dump->cacher = cacher;
	dump->done = done;
	dump->arg = arg;
	if (!vdi_cacher_call_begin(cacher)) {
		vdi_free(dump);
		return VD_CLOSED;
	}
	vdi_lock_acquire(&cacher->watchers.lock);
	dump->next = cacher->dumps;
	cacher->dumps = dump;
	vd_actor_wake(cacher->actor);
	vdi_lock_release(&cacher->watchers.lock);
	return VD_OK;
}

static void note_actor(struct vdi_dump *dump)
{
	struct vd_cacher *cacher = dump->cacher;

	dump->phase = cacher->reflector.phase;
	dump->relists = cacher->reflector.relists;
	dump->resumes = cacher->reflector.resumes;
	dump->groups = cacher->watcher_index.group_count;
	memcpy(dump->consistency.counts, cacher->consistency.counts, sizeof dump->consistency.counts);
	dump->consistency.result = cacher->consistency.result;
	dump->consistency.revision = cacher->consistency.result_revision;
	dump->consistency.digest = cacher->consistency.result_digest;
	dump->has_stream = cacher->reflector.watchchan != NULL;
	if (dump->has_stream)
		vdi_watchchan_stats_get(cacher->reflector.watchchan, &dump->stream);
}

static void post(struct vdi_delivery_worker *worker, struct vdi_dump_part *part)
{
	part->next = atomic_load(&worker->dumps);
	while (!atomic_compare_exchange_weak(&worker->dumps, &part->next, part))
		continue;
	vd_actor_wake(worker->actor);
}

/* Posts the dump to the delivery workers. The inline delivery worker runs on this thread, so it is filled
 * here. */
static void ask_workers(struct vdi_dump *dump, size_t count)
{
	struct vd_cacher *cacher = dump->cacher;

	dump->parts = vdi_calloc(count, sizeof *dump->parts);
	if (dump->parts == NULL) {
		finish(dump, VD_NOMEM);
		return;
	}
	dump->part_count = count;
	atomic_init(&dump->left, count + 1);
	for (size_t i = 0; i < count; i++)
		dump->parts[i].dump = dump;
	fill_part(&dump->parts[0], cacher->watchers.inline_worker);
	atomic_fetch_sub(&dump->left, 1);
	count = 1;
	vdi_lock_acquire(&cacher->watchers.lock);
	for (struct vdi_delivery_worker *worker = cacher->watchers.workers;
	     worker && count < dump->part_count; worker = worker->next)
		post(worker, &dump->parts[count++]);
	vdi_lock_release(&cacher->watchers.lock);
	/* Parts of delivery workers that ended in the meantime. */
	for (; count < dump->part_count; count++)
		atomic_fetch_sub(&dump->left, 1);
	part_is_done(dump);
}

void vdi_cacher_dump_run(struct vd_cacher *cacher)
{
	struct vdi_dump *dump;
	size_t		 count = 1;

	vdi_lock_acquire(&cacher->watchers.lock);
	dump = cacher->dumps;
	cacher->dumps = NULL;
	for (struct vdi_delivery_worker *worker = dump ? cacher->watchers.workers : NULL; worker;
	     worker = worker->next)
		count++;
	vdi_lock_release(&cacher->watchers.lock);
	while (dump) {
		struct vdi_dump *next = dump->next;

		note_actor(dump);
		ask_workers(dump, count);
		dump = next;
	}
}

void vdi_cacher_dump_worker(struct vdi_delivery_worker *worker)
{
	struct vdi_dump_part *part = atomic_exchange(&worker->dumps, NULL);

	while (part) {
		struct vdi_dump_part *next = part->next;

		fill_part(part, worker);
		part_is_done(part->dump);
		part = next;
	}
}
