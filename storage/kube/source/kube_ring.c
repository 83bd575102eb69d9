/* A circular array whose capacity is a power of two and doubles when it is full. */
#include "kube_ring.h"

#define CAPACITY_MIN 64

static size_t bytes_of(const struct vdi_kube_change *change)
{
	/* The previous record is in the mirror or in an older event, but this may be its last reference. */
	size_t bytes = sizeof *change + sizeof(struct vd_kv) + change->kv->key_size + change->kv->value_size;

	if (change->previous)
		bytes += sizeof(struct vd_kv) + change->previous->key_size + change->previous->value_size;
	return bytes;
}

void vdi_kube_ring_init(struct vdi_kube_ring *ring, size_t bytes_min, size_t bytes_max)
{
	memset(ring, 0, sizeof *ring);
	ring->bytes_min = bytes_min;
	ring->bytes_max = bytes_max;
}

static void drop_first(struct vdi_kube_ring *ring)
{
	struct vdi_kube_change *change = vdi_kube_ring_at(ring, ring->first++);

	ring->bytes -= bytes_of(change);
	vdi_kube_change_fini(change);
}

void vdi_kube_ring_fini(struct vdi_kube_ring *ring)
{
	while (ring->first < ring->end)
		drop_first(ring);
	vdi_free(ring->changes);
	memset(ring, 0, sizeof *ring);
}

void vdi_kube_ring_reset(struct vdi_kube_ring *ring, vd_rev after)
{
	while (ring->first < ring->end)
		drop_first(ring);
	ring->visible = ring->end;
	ring->after = after;
}

void vdi_kube_ring_break(struct vdi_kube_ring *ring, vd_rev revision)
{
	vdi_kube_ring_reset(ring, revision);
	ring->broken = revision;
}

void vdi_kube_ring_give(struct vdi_kube_ring *ring, vd_rev revision)
{
	if (ring->given_count == 0 || ring->given[(ring->given_count - 1) % VDI_KUBE_GIVEN_MAX] != revision)
		ring->given[ring->given_count++ % VDI_KUBE_GIVEN_MAX] = revision;
}

void vdi_kube_ring_lose(struct vdi_kube_ring *ring)
{
	unsigned count = VDI_MIN(ring->given_count, (unsigned) VDI_KUBE_GIVEN_MAX);

	for (unsigned i = 0; i < count; i++)
		ring->lost[ring->lost_count++ % VDI_KUBE_LOST_MAX] = ring->given[i];
	ring->given_count = 0;
	ring->broken = 0; /* of a sequence that has ended */
}

bool vdi_kube_ring_is_lost(const struct vdi_kube_ring *ring, vd_rev revision)
{
	unsigned count = VDI_MIN(ring->lost_count, (unsigned) VDI_KUBE_LOST_MAX);

	for (unsigned i = 0; i < count; i++)
		if (ring->lost[i] == revision)
			return true;
	return false;
}

bool vdi_kube_ring_can_continue(const struct vdi_kube_ring *ring, vd_rev revision)
{
	return revision >= ring->after && !(ring->broken && revision == ring->broken) &&
	       !vdi_kube_ring_is_lost(ring, revision);
}

vd_status vdi_kube_ring_reserve(struct vdi_kube_ring *ring)
{
	size_t			capacity = ring->capacity ? ring->capacity * 2 : CAPACITY_MIN;
	struct vdi_kube_change *changes;

	if (ring->end - ring->first < ring->capacity)
		return VD_OK;
	changes = vdi_calloc(capacity, sizeof *changes);
	if (changes == NULL)
		return VD_NOMEM;
	for (uint64_t i = ring->first; i < ring->end; i++)
		changes[i & (capacity - 1)] = *vdi_kube_ring_at(ring, i);
	vdi_free(ring->changes);
	ring->changes = changes;
	ring->capacity = capacity;
	return VD_OK;
}

static vd_rev revision_at(const struct vdi_kube_ring *ring, uint64_t number)
{
	return vdi_kube_ring_at(ring, number)->kv->mod_rev;
}

/* Drops the oldest visible revision; false: it is the newest one, or it ends at or after cursor. */
static bool drop_revision(struct vdi_kube_ring *ring, uint64_t cursor)
{
	vd_rev revision;

	if (ring->first == ring->visible || ring->first >= cursor)
		return false;
	revision = revision_at(ring, ring->first);
	if (revision == revision_at(ring, cursor < ring->end ? cursor : ring->end - 1))
		return false;
	while (revision_at(ring, ring->first) == revision)
		drop_first(ring);
	ring->after = revision;
	return true;
}

void vdi_kube_ring_push(struct vdi_kube_ring *ring, const struct vdi_kube_change *change)
{
	VDI_CHECK(ring->end - ring->first < ring->capacity);
	*vdi_kube_ring_at(ring, ring->end++) = *change;
	ring->bytes += bytes_of(change);
	while (ring->bytes > ring->bytes_max && drop_revision(ring, ring->end))
		;
}

void vdi_kube_ring_trim(struct vdi_kube_ring *ring, uint64_t cursor)
{
	while (ring->bytes > ring->bytes_min && drop_revision(ring, cursor))
		;
}

void vdi_kube_ring_show(struct vdi_kube_ring *ring)
{
	ring->visible = ring->end;
}

vd_rev vdi_kube_ring_shown(const struct vdi_kube_ring *ring)
{
	return ring->visible > ring->first ? revision_at(ring, ring->visible - 1) : ring->after;
}

vd_status vdi_kube_ring_find(const struct vdi_kube_ring *ring, vd_rev start, uint64_t *ret_cursor)
{
	uint64_t low = ring->first, high = ring->end;

	if (!vdi_kube_ring_can_continue(ring, start - 1))
		return VD_EXPIRED;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (revision_at(ring, middle) < start)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_cursor = low;
	return VD_OK;
}
