/* The leases that live, while a start puts them together from checkpoint and journal. One thread. */
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

/* Granting one that lives replaces it; renewing or revoking an unknown one is nothing. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_lease_table_apply(struct vdi_lease_table	   *table,
					     const struct vdi_lease_change *change);
void		       vdi_lease_table_fini(struct vdi_lease_table *table);

#endif
