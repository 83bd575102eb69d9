/* Open addressing, at most half full; revoked leases keep their place. */
#include "lease_table.h"

static struct vdi_lease_entry *place_of(struct vdi_lease_entry *entries, size_t capacity, int64_t id)
{
	size_t at = (size_t) (((uint64_t) id * 0x9E3779B97F4A7C15u) >> 20) & (capacity - 1);

	while (entries[at].is_used && entries[at].id != id)
		at = (at + 1) & (capacity - 1);
	return &entries[at];
}

static vd_status make_room(struct vdi_lease_table *table)
{
	size_t			capacity = table->capacity ? table->capacity * 2 : 64;
	struct vdi_lease_entry *grown;

	if ((table->count + 1) * 2 <= table->capacity)
		return VD_OK;
	grown = vdi_calloc(capacity, sizeof *grown);
	if (grown == NULL)
		return VD_NOMEM;
	table->count = 0;
	for (size_t i = 0; i < table->capacity; i++) {
		if (!table->entries[i].is_alive)
			continue;
		*place_of(grown, capacity, table->entries[i].id) = table->entries[i];
		table->count++;
	}
	vdi_free(table->entries);
	table->entries = grown;
	table->capacity = capacity;
	return VD_OK;
}

vd_status vdi_lease_table_apply(struct vdi_lease_table *table, const struct vdi_lease_change *change)
{
	struct vdi_lease_entry *entry;

	VDI_TRY(make_room(table));
	entry = place_of(table->entries, table->capacity, change->id);
	switch (change->kind) {
	case VDI_LEASE_GRANTED:
		table->count += !entry->is_used;
		*entry = (struct vdi_lease_entry) { change->id, change->ttl_s, change->deadline, true, true };
		break;
	case VDI_LEASE_RENEWED:
		if (entry->is_alive)
			entry->deadline = change->deadline;
		break;
	case VDI_LEASE_REVOKED: entry->is_alive = false; break;
	}
	return VD_OK;
}

void vdi_lease_table_fini(struct vdi_lease_table *table)
{
	vdi_free(table->entries);
	*table = (struct vdi_lease_table) { NULL, 0, 0 };
}
