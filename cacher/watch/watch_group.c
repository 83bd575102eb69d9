/* The ring holds 8 bytes per match, starts with 4 entries at the first match and grows to 128, enough for the
 * matches between two runs of a delivery worker. A watcher that is further behind evaluates events itself,
 * outside of the lock, one array of events at a time. */
#include "watch_group.h"

#include "watch_cache.h"

struct vdi_watch_group *vdi_watch_group_new(struct vdi_predicate *predicate, uint64_t position)
{
	struct vdi_watch_group *group = (struct vdi_watch_group *) predicate - 1;

	VDI_CHECK((size_t) predicate->room * 8 == sizeof *group && atomic_load(&group->references) == 0);
	memset(group, 0, sizeof *group);
	atomic_init(&group->references, 1);
	vdi_predicate_ref(predicate);
	group->ring_floor = position;
	return group;
}

struct vdi_watch_group *vdi_watch_group_ref(struct vdi_watch_group *group)
{
	atomic_fetch_add_explicit(&group->references, 1, memory_order_relaxed);
	return group;
}

struct vdi_watch_group *vdi_watch_group_unref(struct vdi_watch_group *group)
{
	if (group && atomic_fetch_sub_explicit(&group->references, 1, memory_order_acq_rel) == 1) {
		vdi_free(group->ring);
		vdi_predicate_unref(vdi_watch_group_predicate(group));
	}
	return NULL;
}

static uint64_t entry_at(const struct vdi_watch_group *group, unsigned index)
{
	return group->ring[(group->ring_start + index) % group->ring_capacity];
}

static void grow_ring(struct vdi_watch_group *group)
{
	unsigned  capacity = group->ring_capacity ? group->ring_capacity * 2u : VDI_GROUP_RING_MIN;
	uint64_t *ring = vdi_alloc(capacity * sizeof *ring);

	if (ring == NULL)
		return;
	for (unsigned i = 0; i < group->ring_count; i++)
		ring[i] = entry_at(group, i);
	vdi_free(group->ring);
	group->ring = ring;
	group->ring_start = 0;
	group->ring_capacity = (uint8_t) capacity;
}

void vdi_watch_group_append_locked(struct vdi_watch_group *group, uint64_t position, enum vd_watch_type type,
				   uint32_t size_bytes)
{
	group->matched_events++;
	group->matched_bytes += size_bytes;
	if (group->ring_count == group->ring_capacity && group->ring_capacity < VDI_GROUP_RING_MAX)
		grow_ring(group);
	if (group->ring_capacity == 0) {
		group->ring_floor = position + 1;
		return;
	}
	if (group->ring_count == group->ring_capacity) {
		group->ring_floor = entry_at(group, 0) / 4 + 1;
		group->ring_start = (uint8_t) ((group->ring_start + 1) % group->ring_capacity);
		group->ring_count--;
	}
	group->ring[(group->ring_start + group->ring_count) % group->ring_capacity] = position * 4 + type;
	group->ring_count++;
}

/* Returns the index of the first ring entry at or after position. */
static unsigned find_entry(const struct vdi_watch_group *group, uint64_t position)
{
	unsigned low = 0;
	unsigned high = group->ring_count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (entry_at(group, middle) / 4 >= position)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Cuts the taken matches back to whole revisions if the next event, of next_revision, continues their last
 * one. Then a client that resumes from its last revision misses nothing. Only a revision that is larger than
 * the whole array is delivered in parts. */
static size_t whole_revisions(struct vdi_match *matches, size_t count, vd_rev next_revision,
			      uint64_t *position)
{
	size_t whole = count;

	while (whole > 0 && matches[whole - 1].event->revision == next_revision)
		whole--;
	if (whole == 0 || whole == count)
		return count;
	*position = matches[whole].position;
	vdi_matches_release(matches + whole, count - whole);
	return whole;
}

static size_t take_from_ring(struct vdi_watch_group *group, struct vdi_watch_cache *cache, uint64_t *position,
			     uint64_t limit, struct vdi_match *matches, size_t max)
{
	size_t count = 0;

	for (unsigned i = find_entry(group, *position); i < group->ring_count; i++) {
		uint64_t entry = entry_at(group, i);

		if (entry / 4 >= limit)
			break;
		if (count == max)
			return whole_revisions(matches, count,
					       vdi_history_at(&cache->history, entry / 4)->revision,
					       position);
		matches[count].event = vdi_event_ref(vdi_history_at(&cache->history, entry / 4));
		matches[count].position = entry / 4;
		matches[count++].type = entry % 4;
		*position = entry / 4 + 1;
	}
	*position = limit;
	return count;
}

/* Keeps the events that match, of events that were taken without evaluation. */
static size_t evaluate(const struct vdi_watch_group *group, struct vdi_match *matches, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct vdi_match match = matches[i];

		if (vdi_predicate_transition(vdi_watch_group_predicate(group), match.event->old_object,
					     match.event->object, &match.type))
			matches[kept++] = match;
		else
			vdi_event_unref(match.event);
	}
	return kept;
}

vd_status vdi_watch_group_take(struct vdi_watch_group *group, struct vdi_watch_cache *cache,
			       uint64_t *position, uint64_t limit, struct vdi_match *matches, size_t max,
			       size_t *ret_count)
{
	struct vdi_history *history = &cache->history;
	size_t		    count = 0;

	*ret_count = 0;
	if (*position >= limit)
		return VD_OK;
	vdi_lock_acquire(&cache->lock);
	if (*position < history->start) {
		vdi_lock_release(&cache->lock);
		return VD_EXPIRED;
	}
	VDI_CHECK(limit <= history->end);
	if (*position >= group->ring_floor) {
		count = take_from_ring(group, cache, position, limit, matches, max);
		vdi_lock_release(&cache->lock);
	} else {
		for (; count < max && *position < limit; count++, ++*position) {
			matches[count].event = vdi_event_ref(vdi_history_at(history, *position));
			matches[count].position = *position;
		}
		if (*position < limit)
			count = whole_revisions(matches, count, vdi_history_at(history, *position)->revision,
						position);
		vdi_lock_release(&cache->lock);
		count = evaluate(group, matches, count);
	}
	*ret_count = count;
	return VD_OK;
}

void vdi_matches_release(struct vdi_match *matches, size_t count)
{
	for (size_t i = 0; i < count; i++)
		vdi_event_unref(matches[i].event);
}

void vdi_match_to_event(const struct vdi_match *match, struct vd_watch_event *ret_event)
{
	struct vdi_event *event = match->event;

	*ret_event = (struct vd_watch_event) {
		.type = match->type,
		.revision = event->revision,
		.object = match->type == VD_WATCH_DELETED ? event->old_object : event->object,
		.old_object = match->type == VD_WATCH_ADDED ? NULL : event->old_object,
		.shared = event,
	};
}
