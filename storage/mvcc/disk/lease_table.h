/* The leases during a start, gathered from checkpoint and journal. One thread. */
#ifndef VDI_LEASE_TABLE_H
#define VDI_LEASE_TABLE_H

#include "commit.h"

struct vdi_lease_entry {
	int64_t id;
	int64_t ttl_s;
	vd_wall deadline;
	bool	is_used;
	bool	is_alive;
};

struct vdi_lease_table {
	struct vdi_lease_entry *entries; /* zeroed: empty */
	size_t			capacity;
	size_t			count; /* used, alive or not */
};

/* Applies a change. A grant replaces a live lease with the same ID; a renewal or revocation of an unknown
 * lease has no effect. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_lease_table_apply(struct vdi_lease_table	   *table,
					     const struct vdi_lease_change *change);
void		       vdi_lease_table_fini(struct vdi_lease_table *table);

#endif
