/* One array of pointers. The capacity follows the window as upstream does, only when full: it doubles while
 * the oldest event is within the window, and halves if less than a quarter of the events is. The byte budget
 * evicts more. A revision of several events that is evicted in part counts as evicted and is answered with
 * 410; upstream would send the rest of it, which is a gap. */
#include "history.h"

#include "caching_object.h"

vd_status vdi_event_new(vd_rev revision, struct vd_object *object, struct vd_object *old_object,
			vd_mono record_time, struct vdi_event **ret_event)
{
	struct vdi_event *event = vdi_alloc(sizeof *event);
	struct vd_kv	 *kv = vd_object_kv(object ? object : old_object);

	if (event == NULL)
		return VD_NOMEM;
	atomic_init(&event->references, 1);
	event->size_bytes = kv->value_size + kv->key_size + VDI_EVENT_OVERHEAD_BYTES;
	event->revision = revision;
	event->object = object ? vd_object_ref(object) : NULL;
	event->old_object = old_object ? vd_object_ref(old_object) : NULL;
	event->record_time = record_time;
	atomic_init(&event->frames, NULL);
	atomic_init(&event->recent, true);
	*ret_event = event;
	return VD_OK;
}

struct vdi_event *vdi_event_unref(struct vdi_event *event)
{
	if (event && atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) == 1) {
		vdi_frames_free(event);
		vd_object_unref(event->object);
		vd_object_unref(event->old_object);
		vdi_free(event);
	}
	return NULL;
}

size_t vdi_history_capacity_upper(vd_dur window)
{
	const int64_t base_ns = 75 * INT64_C(1000000000);
	size_t	      upper = VDI_HISTORY_CAPACITY_MAX;
	int	      exponent = 0;

	/* 102400 * 2^14 fits 32 bits. */
	for (__int128 reach = base_ns; reach < window.ns && exponent < 14; reach *= 2, exponent++)
		upper *= 2;
	return upper;
}

vd_status vdi_history_init(struct vdi_history *history, int64_t bytes_max, vd_dur window)
{
	*history = (struct vdi_history) {
		.bytes_max = bytes_max,
		.window = window,
		.capacity_lower = VDI_HISTORY_CAPACITY_MIN,
		.capacity_upper = vdi_history_capacity_upper(window),
		.capacity = VDI_HISTORY_CAPACITY_MIN,
	};
	history->slots = vdi_calloc(history->capacity, sizeof *history->slots);
	return history->slots ? VD_OK : VD_NOMEM;
}

/* Prefetches events before their eviction, because they left the CPU caches long ago: first the event, then
 * its objects, then their bytes. */
static void prefetch_ahead(const struct vdi_history *history)
{
	const struct vdi_event *event;

	if (history->end - history->start <= 6)
		return;
	__builtin_prefetch(vdi_history_at(history, history->start + 6), 1);
	event = vdi_history_at(history, history->start + 4);
	if (event->old_object)
		__builtin_prefetch(event->old_object, 1);
	event = vdi_history_at(history, history->start + 2);
	if (event->old_object)
		__builtin_prefetch(vd_object_kv(event->old_object), 1);
}

static void evict_oldest(struct vdi_history *history)
{
	struct vdi_event **slot = &history->slots[history->start % history->capacity];

	prefetch_ahead(history);
	history->bytes -= (*slot)->size_bytes;
	history->evicted_revision = (*slot)->revision;
	*slot = vdi_event_unref(*slot);
	history->start++;
}

void vdi_history_fini(struct vdi_history *history)
{
	if (history->slots == NULL)
		return;
	while (history->start < history->end)
		evict_oldest(history);
	vdi_free(history->slots);
	history->slots = NULL;
}

void vdi_history_reset(struct vdi_history *history, vd_rev list_revision)
{
	while (history->start < history->end)
		evict_oldest(history);
	/* One position is skipped, so that a reader at the end of the old generation finds it evicted instead
	 * of continuing with the first event of the new one. */
	history->start = ++history->end;
	history->list_revision = list_revision;
	history->evicted_revision = history->trimmed_revision = 0;
}

/* Moves the newest events to a new ring; on false nothing changed. */
static bool resize(struct vdi_history *history, size_t capacity)
{
	struct vdi_event **slots = vdi_calloc(capacity, sizeof *slots);

	if (slots == NULL)
		return false;
	while (history->end - history->start > capacity)
		evict_oldest(history);
	for (uint64_t position = history->start; position < history->end; position++)
		slots[position % capacity] = history->slots[position % history->capacity];
	vdi_free(history->slots);
	history->slots = slots;
	history->capacity = capacity;
	return true;
}

/* Adapts the capacity; now is the record time of the event to be appended. */
static void adapt_capacity(struct vdi_history *history, vd_mono now)
{
	size_t capacity = history->capacity;

	if (history->end - history->start < capacity)
		return;
	if (vd_mono_since(now, vdi_history_at(history, history->start)->record_time).ns <
	    history->window.ns) {
		size_t wanted = VDI_MIN(capacity * 2, history->capacity_upper);

		if (wanted > capacity && resize(history, wanted))
			history->increases++;
	} else if (vd_mono_since(now, vdi_history_at(history, history->end - capacity / 4)->record_time).ns >
		   history->window.ns) {
		size_t wanted = VDI_MAX(capacity / 2, history->capacity_lower);

		if (wanted < capacity && resize(history, wanted))
			history->decreases++;
	}
}

void vdi_history_append(struct vdi_history *history, struct vdi_event *event)
{
	VDI_CHECK_SLOW(history->start == history->end ||
		       vdi_history_at(history, history->end - 1)->revision <= event->revision);
	adapt_capacity(history, event->record_time);
	if (history->end - history->start == history->capacity)
		evict_oldest(history);
	/* The newest event is kept even if it exceeds the budget, because watchers need it. */
	while (history->start < history->end && history->bytes + event->size_bytes > history->bytes_max)
		evict_oldest(history);
	history->slots[history->end % history->capacity] = event;
	history->bytes += event->size_bytes;
	history->end++;
}

/* Returns true if the oldest retained event is of this revision and includes the previous state. */
static bool shows_before(const struct vdi_history *history, vd_rev revision)
{
	for (uint64_t position = history->start;
	     position < history->end && vdi_history_at(history, position)->revision == revision; position++)
		if (vdi_history_at(history, position)->old_object)
			return true;
	return false;
}

size_t vdi_history_trim(struct vdi_history *history, vd_rev revision)
{
	size_t count = 0;

	for (; history->start < history->end && vdi_history_at(history, history->start)->revision < revision;
	     count++)
		evict_oldest(history);
	if (shows_before(history, revision))
		for (; history->start < history->end &&
		       vdi_history_at(history, history->start)->revision == revision;
		     count++)
			evict_oldest(history);
	if (count)
		history->trimmed_revision = history->evicted_revision;
	return count;
}

uint64_t vdi_history_after(const struct vdi_history *history, vd_rev revision)
{
	uint64_t low = history->start;
	uint64_t high = history->end;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (vdi_history_at(history, middle)->revision > revision)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

vd_rev vdi_history_floor(const struct vdi_history *history)
{
	vd_rev oldest;

	if (history->evicted_revision == 0)
		return history->list_revision;
	if (history->start == history->end || history->trimmed_revision == history->evicted_revision)
		return history->evicted_revision;
	oldest = vdi_history_at(history, history->start)->revision;
	return VDI_MAX(oldest - 1, history->evicted_revision);
}

vd_status vdi_history_check(const struct vdi_history *history, vd_rev revision, struct vd_error *reterr)
{
	vd_rev floor = vdi_history_floor(history);

	if (history->list_revision == 0 && history->start == history->end)
		return vd_error_set(reterr, VD_INTERNAL, "watch cache isn't correctly initialized");
	if (revision >= floor)
		return VD_OK;
	vd_error_set(reterr, VD_EXPIRED, "too old resource version: %lld (%lld)", (long long) revision,
		     (long long) floor);
	if (reterr) {
		reterr->requested = revision;
		reterr->compacted = floor;
	}
	return VD_EXPIRED;
}
