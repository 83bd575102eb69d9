/* A directory of chunks, oldest first, under one lock that is held only briefly. Before the sync, the writer
 * fills the last chunk (and new ones) behind its count, where cursors do not read; commit raises the counts.
 * So everything that can fail happens before a commit is durable.
 *
 * Memory of the history: an event keeps its predecessor alive (unless that is the record of another event,
 * which is counted once) and, for a delete, its tombstone. A mark keeps tree nodes alive: with random writes
 * nearly one leaf per event, until all leaves are covered. So marks are max(1024, keys / 16) events apart:
 * with a million keys that is about 0.4 KB per event instead of 1 KB, and a read of an old revision passes at
 * most half of 62,500 events (2 ms).
 */
#include "mvcc_log.h"

static int64_t kv_size_bytes(const struct vd_kv *kv)
{
	return kv ? (int64_t) (offsetof(struct vd_kv, data) + kv->key_size + kv->value_size) : 0;
}

static int64_t event_size_bytes(const struct vd_store_event *event)
{
	return (int64_t) sizeof *event + kv_size_bytes(event->previous) +
	       (event->is_delete ? kv_size_bytes(event->kv) : 0);
}

void vdi_mvcc_log_init(struct vdi_mvcc_log *log, int64_t history_bytes, vd_dur history_window)
{
	memset(log, 0, sizeof *log);
	vdi_lock_init(&log->lock, VDI_LOCK_SNAPSHOT);
	log->chunk_bytes_max = history_bytes > 0 ? VDI_MAX(history_bytes / 32, 4096) : (int64_t) 8 << 20;
	log->chunk_age_max.ns = history_window.ns / 8;
}

void vdi_mvcc_log_fini(struct vdi_mvcc_log *log)
{
	vdi_mvcc_log_abort(log);
	for (size_t i = 0; i < log->chunk_count; i++)
		vdi_mvcc_log_chunk_unref(log->chunks[log->chunk_first + i]);
	for (size_t i = 0; i < log->mark_count; i++)
		vdi_mvcc_state_unref(log->marks[i]);
	vdi_free(log->chunks);
	vdi_free(log->marks);
	vdi_free(log->pending_chunks);
	vdi_lock_fini(&log->lock);
}

struct vdi_mvcc_log_chunk *vdi_mvcc_log_chunk_ref(struct vdi_mvcc_log_chunk *chunk)
{
	atomic_fetch_add_explicit(&chunk->references, 1, memory_order_relaxed);
	return chunk;
}

struct vdi_mvcc_log_chunk *vdi_mvcc_log_chunk_unref(struct vdi_mvcc_log_chunk *chunk)
{
	uint32_t count;

	if (chunk == NULL || atomic_fetch_sub_explicit(&chunk->references, 1, memory_order_acq_rel) != 1)
		return NULL;
	count = atomic_load_explicit(&chunk->count, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++) {
		vd_kv_unref(chunk->events[i].kv);
		vd_kv_unref(chunk->events[i].previous);
	}
	vdi_free(chunk);
	return NULL;
}

/* ---- Writing ---- */

static struct vdi_mvcc_log_chunk *last_chunk(const struct vdi_mvcc_log *log)
{
	return log->chunk_count ? log->chunks[log->chunk_first + log->chunk_count - 1] : NULL;
}

static bool has_room(const struct vdi_mvcc_log *log, const struct vdi_mvcc_log_chunk *chunk, size_t count,
		     vd_mono now)
{
	uint32_t used = atomic_load_explicit(&chunk->count, memory_order_relaxed) + chunk->pending;

	if (chunk->capacity - used < count ||
	    chunk->size_bytes + chunk->pending_bytes >= log->chunk_bytes_max)
		return false;
	return log->chunk_age_max.ns == 0 || vd_mono_since(now, chunk->opened).ns < log->chunk_age_max.ns;
}

static struct vdi_mvcc_log_chunk *new_pending_chunk(struct vdi_mvcc_log *log, size_t count, uint64_t index,
						    vd_mono now)
{
	size_t			   capacity = VDI_MAX(count, VDI_MVCC_LOG_CHUNK_EVENTS);
	struct vdi_mvcc_log_chunk *chunk;

	if (!vdi_grow((void **) &log->pending_chunks, &log->pending_chunk_capacity,
		      log->pending_chunk_count + 1, sizeof(void *)))
		return NULL;
	chunk = vdi_alloc(sizeof *chunk + capacity * sizeof chunk->events[0]);
	if (chunk == NULL)
		return NULL;
	memset(chunk, 0, sizeof *chunk);
	chunk->references = 1;
	chunk->capacity = (uint32_t) capacity;
	chunk->first_index = index;
	chunk->opened = now;
	log->pending_chunks[log->pending_chunk_count++] = chunk;
	return chunk;
}

/* Update the prefix before the event is visible, so that the prefix a reader sees holds for all visible
 * events. */
static void share_prefix(struct vdi_mvcc_log_chunk *chunk, uint32_t used, const struct vd_kv *kv)
{
	const struct vd_kv *first = used ? chunk->events[0].kv : kv;
	uint32_t size = used ? atomic_load_explicit(&chunk->prefix_size, memory_order_relaxed) : kv->key_size;

	if (used && kv->key_size >= size && memcmp(first->data, kv->data, size) == 0)
		return;
	size = VDI_MIN(size, kv->key_size);
	for (uint32_t i = 0; i < size; i++)
		if (first->data[i] != kv->data[i])
			size = i;
	atomic_store_explicit(&chunk->prefix_size, size, memory_order_relaxed);
}

static size_t revision_run(const struct vd_store_event *events, size_t count)
{
	size_t run = 1;

	while (run < count && events[run].kv->mod_rev == events[0].kv->mod_rev)
		run++;
	return run;
}

/* Grows the directory for `needed` more chunks, so that commit only stores pointers. */
static vd_status reserve_directory(struct vdi_mvcc_log *log, size_t needed)
{
	size_t			    capacity;
	struct vdi_mvcc_log_chunk **moved;
	struct vdi_mvcc_log_chunk **old = log->chunks;

	if (log->chunk_first + log->chunk_count + needed <= log->chunk_capacity)
		return VD_OK;
	capacity = VDI_MAX(16, 2 * (log->chunk_count + needed));
	moved = vdi_alloc(capacity * sizeof *moved);
	if (moved == NULL)
		return VD_NOMEM;
	vdi_lock_acquire(&log->lock);
	if (log->chunk_count)
		memcpy(moved, old + log->chunk_first, log->chunk_count * sizeof *moved);
	log->chunks = moved;
	log->chunk_first = 0;
	log->chunk_capacity = capacity;
	vdi_lock_release(&log->lock);
	vdi_free(old);
	return VD_OK;
}

static vd_status reserve_mark(struct vdi_mvcc_log *log, size_t count, uint64_t key_count)
{
	uint64_t		spacing = VDI_MAX(VDI_MVCC_LOG_MARK_SPACING, key_count / 16);
	uint64_t		last = log->mark_count ? log->marks[log->mark_count - 1]->log_end : 0;
	struct vdi_mvcc_state **moved;
	struct vdi_mvcc_state **old = log->marks;

	if (log->end_index + count - last < spacing)
		return VD_OK;
	if (log->mark_count == log->mark_capacity) {
		moved = vdi_alloc(2 * (log->mark_capacity + 8) * sizeof *moved);
		if (moved == NULL)
			return VD_NOMEM;
		vdi_lock_acquire(&log->lock);
		if (log->mark_count)
			memcpy(moved, old, log->mark_count * sizeof *moved);
		log->marks = moved;
		log->mark_capacity = 2 * (log->mark_capacity + 8);
		vdi_lock_release(&log->lock);
		vdi_free(old);
	}
	log->mark_pending = true;
	return VD_OK;
}

vd_status vdi_mvcc_log_prepare(struct vdi_mvcc_log *log, const struct vd_store_event *events, size_t count,
			       uint64_t key_count, vd_mono now)
{
	struct vdi_mvcc_log_chunk *chunk = log->sealed ? NULL : last_chunk(log);
	vd_status		   status = reserve_mark(log, count, key_count);

	for (size_t i = 0; status == VD_OK && i < count;) {
		size_t	 run = revision_run(events + i, count - i);
		uint32_t used;

		if (chunk == NULL || !has_room(log, chunk, run, now))
			chunk = new_pending_chunk(log, run, log->end_index + i, now);
		if (chunk == NULL) {
			status = VD_NOMEM;
			break;
		}
		used = atomic_load_explicit(&chunk->count, memory_order_relaxed) + chunk->pending;
		memcpy(&chunk->events[used], &events[i], run * sizeof events[0]);
		if (used == 0)
			chunk->first_revision = events[i].kv->mod_rev;
		for (size_t j = i; j < i + run; j++) {
			chunk->pending_bytes += event_size_bytes(&events[j]);
			share_prefix(chunk, used + (uint32_t) (j - i), events[j].kv);
		}
		chunk->pending += (uint32_t) run;
		chunk->newest = now;
		i += run;
	}
	if (status == VD_OK)
		status = reserve_directory(log, log->pending_chunk_count);
	if (status != VD_OK)
		vdi_mvcc_log_abort(log);
	return status;
}

void vdi_mvcc_log_abort(struct vdi_mvcc_log *log)
{
	struct vdi_mvcc_log_chunk *chunk = last_chunk(log);

	if (chunk)
		chunk->pending = 0, chunk->pending_bytes = 0;
	for (size_t i = 0; i < log->pending_chunk_count; i++)
		vdi_mvcc_log_chunk_unref(log->pending_chunks[i]);
	log->pending_chunk_count = 0;
	log->mark_pending = false;
}

static void publish_chunk(struct vdi_mvcc_log *log, struct vdi_mvcc_log_chunk *chunk)
{
	log->end_index += chunk->pending;
	log->size_bytes += chunk->pending_bytes;
	chunk->size_bytes += chunk->pending_bytes;
	atomic_store_explicit(&chunk->count,
			      atomic_load_explicit(&chunk->count, memory_order_relaxed) + chunk->pending,
			      memory_order_release);
	chunk->pending = 0;
	chunk->pending_bytes = 0;
}

void vdi_mvcc_log_commit(struct vdi_mvcc_log *log, struct vdi_mvcc_state *state)
{
	struct vdi_mvcc_log_chunk *chunk;

	vdi_lock_acquire(&log->lock);
	chunk = last_chunk(log);
	if (chunk)
		publish_chunk(log, chunk);
	for (size_t i = 0; i < log->pending_chunk_count; i++) {
		chunk = log->pending_chunks[i];
		publish_chunk(log, chunk);
		log->chunks[log->chunk_first + log->chunk_count++] = chunk;
		log->sealed = false;
	}
	state->log_end = log->end_index;
	if (log->mark_pending)
		log->marks[log->mark_count++] = vdi_mvcc_state_ref(state);
	vdi_lock_release(&log->lock);
	log->pending_chunk_count = 0;
	log->mark_pending = false;
}

/* ---- Compaction ---- */

static vd_rev last_revision(const struct vdi_mvcc_log_chunk *chunk)
{
	return chunk->events[atomic_load_explicit(&chunk->count, memory_order_relaxed) - 1].kv->mod_rev;
}

vd_rev vdi_mvcc_log_overdue(const struct vdi_mvcc_log *log, vd_mono now, vd_dur window, int64_t bytes_max,
			    vd_rev current, vd_mono *ret_due)
{
	int64_t size_bytes = log->size_bytes;
	vd_rev	revision = 0;

	*ret_due = VD_NEVER;
	for (size_t i = 0; i < log->chunk_count; i++) {
		const struct vdi_mvcc_log_chunk *chunk = log->chunks[log->chunk_first + i];
		bool				 is_last = i + 1 == log->chunk_count;
		vd_mono				 due = vd_mono_add(chunk->newest, window);
		bool				 is_old = window.ns > 0 && due.ns <= now.ns;
		bool is_too_much = bytes_max > 0 && size_bytes > bytes_max && i + 2 < log->chunk_count;

		if (is_last && last_revision(chunk) <= VDI_MAX(log->floor, chunk->first_revision))
			break; /* a single revision: no older one to drop */
		if (!is_old && !is_too_much) {
			if (window.ns > 0)
				*ret_due = due;
			break;
		}
		size_bytes -= chunk->size_bytes;
		revision = is_last ? current : log->chunks[log->chunk_first + i + 1]->first_revision;
	}
	return revision;
}

struct vdi_mvcc_log_chunk *vdi_mvcc_log_compact(struct vdi_mvcc_log *log, vd_rev compacted)
{
	struct vdi_mvcc_log_chunk  *dropped = NULL;
	struct vdi_mvcc_log_chunk **tail = &dropped;
	size_t			    marks = 0;
	struct vdi_mvcc_state	   *old_marks[64];
	size_t			    old_count;

	vdi_lock_acquire(&log->lock);
	while (log->chunk_count && last_revision(log->chunks[log->chunk_first]) < compacted) {
		struct vdi_mvcc_log_chunk *chunk = log->chunks[log->chunk_first++];

		log->chunk_count--;
		log->size_bytes -= chunk->size_bytes;
		*tail = chunk;
		tail = &chunk->next;
	}
	log->floor = VDI_MAX(log->floor, compacted);
	vdi_lock_release(&log->lock);
	/* Seal the last chunk if it has older revisions, so that the next compaction drops them with it. Any
	 * other chunk stays open, because each chunk costs memory for VDI_MVCC_LOG_CHUNK_EVENTS. */
	log->sealed = log->chunk_count && last_chunk(log)->first_revision < compacted;
	do {
		vdi_lock_acquire(&log->lock);
		for (marks = 0; marks < log->mark_count && marks < VDI_ARRAY_SIZE(old_marks) &&
				log->marks[marks]->revision < compacted;
		     marks++)
			old_marks[marks] = log->marks[marks];
		if (marks)
			memmove(log->marks, log->marks + marks,
				(log->mark_count - marks) * sizeof log->marks[0]);
		log->mark_count -= marks;
		vdi_lock_release(&log->lock);
		old_count = marks;
		for (size_t i = 0; i < old_count; i++)
			vdi_mvcc_state_unref(old_marks[i]);
	} while (old_count);
	return dropped;
}

/* ---- Reading ---- */

struct vdi_mvcc_state *vdi_mvcc_log_mark_near(struct vdi_mvcc_log *log, uint64_t index)
{
	struct vdi_mvcc_state *best = NULL;
	uint64_t	       best_distance = UINT64_MAX;
	size_t		       low = 0;
	size_t		       high;

	vdi_lock_acquire(&log->lock);
	high = log->mark_count;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (log->marks[middle]->log_end < index)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low ? low - 1 : 0; i <= low && i < log->mark_count; i++) {
		uint64_t end = log->marks[i]->log_end;
		uint64_t distance = end > index ? end - index : index - end;

		if (distance < best_distance) {
			best = log->marks[i];
			best_distance = distance;
		}
	}
	if (best)
		vdi_mvcc_state_ref(best);
	vdi_lock_release(&log->lock);
	return best;
}

static size_t chunk_of_revision_locked(const struct vdi_mvcc_log *log, vd_rev revision)
{
	size_t low = 0;
	size_t high = log->chunk_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (log->chunks[log->chunk_first + middle]->first_revision <= revision)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : 0;
}

size_t vdi_mvcc_log_find(const struct vd_store_event *events, size_t count, vd_rev revision)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (events[middle].kv->mod_rev < revision)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

vd_status vdi_mvcc_log_seek(struct vdi_mvcc_log *log, vd_rev revision, struct vdi_mvcc_log_cursor *cursor)
{
	struct vdi_mvcc_log_chunk *chunk = NULL;
	vd_status		   status = VD_OK;

	vdi_mvcc_log_cursor_fini(cursor);
	vdi_lock_acquire(&log->lock);
	if (revision < log->floor)
		status = VD_EXPIRED;
	else if (log->chunk_count == 0)
		status = VD_AGAIN;
	else
		chunk = vdi_mvcc_log_chunk_ref(
			log->chunks[log->chunk_first + chunk_of_revision_locked(log, revision)]);
	vdi_lock_release(&log->lock);
	if (status == VD_OK) {
		cursor->chunk = chunk;
		cursor->position = (uint32_t) vdi_mvcc_log_find(
			chunk->events, atomic_load_explicit(&chunk->count, memory_order_acquire), revision);
	}
	return status;
}

/* Finds the first chunk that begins at or after index. */
static size_t chunk_from_index_locked(const struct vdi_mvcc_log *log, uint64_t index)
{
	size_t low = 0;
	size_t high = log->chunk_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (log->chunks[log->chunk_first + middle]->first_index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

vd_status vdi_mvcc_log_seek_index(struct vdi_mvcc_log *log, uint64_t index,
				  struct vdi_mvcc_log_cursor *cursor)
{
	struct vdi_mvcc_log_chunk *chunk = NULL;

	vdi_mvcc_log_cursor_fini(cursor);
	vdi_lock_acquire(&log->lock);
	if (log->chunk_count && index >= log->chunks[log->chunk_first]->first_index) {
		chunk = last_chunk(log);
		if (index < chunk->first_index)
			chunk = log->chunks[log->chunk_first + chunk_from_index_locked(log, index + 1) - 1];
		vdi_mvcc_log_chunk_ref(chunk);
	}
	vdi_lock_release(&log->lock);
	if (chunk == NULL)
		return VD_EXPIRED;
	cursor->chunk = chunk;
	cursor->position = (uint32_t) (index - chunk->first_index);
	return VD_OK;
}

/* Moves the cursor to the next chunk; cursor->chunk has been read to its end. */
static vd_status cross(struct vdi_mvcc_log *log, struct vdi_mvcc_log_cursor *cursor)
{
	uint64_t		   index = vdi_mvcc_log_cursor_index(cursor);
	struct vdi_mvcc_log_chunk *next = NULL;
	vd_status		   status = VD_OK;
	size_t			   place;

	vdi_lock_acquire(&log->lock);
	if (cursor->position < atomic_load_explicit(&cursor->chunk->count, memory_order_acquire)) {
		vdi_lock_release(&log->lock);
		return VD_OK;
	}
	place = chunk_from_index_locked(log, index);
	if (place == log->chunk_count)
		status = VD_AGAIN;
	else if (log->chunks[log->chunk_first + place]->first_index > index)
		status = VD_EXPIRED;
	else
		next = vdi_mvcc_log_chunk_ref(log->chunks[log->chunk_first + place]);
	vdi_lock_release(&log->lock);
	if (status == VD_OK) {
		vdi_mvcc_log_chunk_unref(cursor->chunk);
		cursor->chunk = next;
		cursor->position = 0;
	}
	return status;
}

vd_status vdi_mvcc_log_run(struct vdi_mvcc_log *log, struct vdi_mvcc_log_cursor *cursor,
			   const struct vd_store_event **ret_events, uint32_t *ret_count)
{
	uint32_t count = atomic_load_explicit(&cursor->chunk->count, memory_order_acquire);

	if (cursor->position >= count) {
		VDI_TRY(cross(log, cursor));
		count = atomic_load_explicit(&cursor->chunk->count, memory_order_acquire);
	}
	*ret_events = &cursor->chunk->events[cursor->position];
	*ret_count = count - cursor->position;
	return VD_OK;
}

struct vd_bytes vdi_mvcc_log_run_prefix(const struct vdi_mvcc_log_cursor *cursor)
{
	/* prefix_size was stored before the run's count, so it holds for the run; later events can only make
	 * it shorter. */
	return (struct vd_bytes) { cursor->chunk->events[0].kv->data,
				   atomic_load_explicit(&cursor->chunk->prefix_size, memory_order_relaxed) };
}

void vdi_mvcc_log_cursor_fini(struct vdi_mvcc_log_cursor *cursor)
{
	cursor->chunk = vdi_mvcc_log_chunk_unref(cursor->chunk);
	cursor->position = 0;
}
