/* Leases: a time to live to which keys can be attached. Upstream: etcd server/lease/lessor.go.
 *
 * Records are immutable and reference counted; a renewal makes a new one. They are in copy-on-write trees
 * like the keys. So a failed group of commits also rolls back its leases, and time-to-live requests are
 * answered from a published state without the writer:
 *
 * 	leases           id -> lease
 * 	lease_deadlines  (deadline, id) -> lease     the writer's timer is set to the first one
 * 	lease_keys       (id, key) -> attachment     keys of a lease in bytewise order, as for revocation
 *
 * A lease has two forms of its deadline: on the monotonic clock, for its expiry in this process, and on the
 * wall clock, which continues across a restart. After a restart at least VDI_LEASE_GRACE_S remain for a
 * renewal (or the TTL if that is less), and never more than the TTL.
 */
#ifndef VDI_LEASE_H
#define VDI_LEASE_H

#include <stdatomic.h>
#include <vedette/store.h>

#include "base.h"
#include "btree.h"

#define VDI_LEASE_GRACE_S 5
/* Maximum TTL in seconds; as nanoseconds it fits into an int64_t. */
#define VDI_LEASE_TTL_NS_S_MAX 9000000000
/* Maximum leases revoked in one iteration of the writer. */
#define VDI_LEASE_EXPIRE_MAX 64

struct vdi_lease {
	_Atomic uint32_t references;
	int64_t		 id;
	int64_t		 ttl_s;
	vd_mono		 deadline;
	/* Deadline, id; big-endian with inverted sign bits, so that bytewise order is numeric order. */
	unsigned char order[16];
};

struct vdi_lease_key {
	_Atomic uint32_t references;
	uint32_t	 size;
	char		 data[]; /* id as in order, followed by the key */
};

extern const struct vdi_btree_ops vdi_lease_id_tree_ops;
extern const struct vdi_btree_ops vdi_lease_deadline_tree_ops;
extern const struct vdi_btree_ops vdi_lease_key_tree_ops;

VDI_MUST_USE vd_status vdi_lease_new(int64_t id, int64_t ttl_s, vd_mono deadline,
				     struct vdi_lease **ret_lease);
/* NULL is fine; returns NULL. */
struct vdi_lease      *vdi_lease_unref(struct vdi_lease *lease);
VDI_MUST_USE vd_status vdi_lease_key_new(int64_t id, struct vd_bytes key, struct vdi_lease_key **ret_key);
struct vdi_lease_key  *vdi_lease_key_unref(struct vdi_lease_key *key);

/* Returns the lease, borrowed from the snapshot; NULL: unknown. */
struct vdi_lease *vdi_lease_find(const struct vdi_btree_snapshot *leases, int64_t id);
/* A walk over the keys of a lease. start returns their number. */
struct vdi_lease_walk {
	struct vdi_btree_cursor cursor;
	unsigned char		from[8];
	unsigned char		to[8];
	struct vdi_key_range	range;
};
uint64_t vdi_lease_walk_init(struct vdi_lease_walk *walk, const struct vdi_btree_snapshot *lease_keys,
			     int64_t id);
/* Returns false at the end. The key is borrowed from the snapshot. */
bool vdi_lease_walk_next(struct vdi_lease_walk *walk, struct vd_bytes *ret_key);

/* Returns the whole seconds left, rounded down; 0 if expired. */
int64_t vdi_lease_remaining_s(const struct vdi_lease *lease, vd_mono now);

#endif
