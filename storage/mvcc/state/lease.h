/* Leases: a time to live that keys can be attached to (E-501..E-512). Upstream: etcd server/lease/lessor.go.
 *
 * Records are immutable and reference counted; a renewal makes a new one. They lie in copy-on-write trees
 * like the keys, so that a group of commits that fails takes its leases back with it, and time-to-live is
 * answered from a published state without the writer:
 *
 * 	leases           id -> lease
 * 	lease_deadlines  (deadline, id) -> lease       the writer's timer is the first of these
 * 	lease_keys       (id, key) -> attachment       bytewise order of keys within a lease, as revocation wants it
 *
 * A deadline is held twice: on the monotonic clock, by which leases expire in this process, and on the wall
 * clock, by which they go on after a restart. A restart gives at least VDI_LEASE_GRACE_S (or the TTL if that
 * is less) to renew, and never more than the TTL.
 */
#ifndef VDI_LEASE_H
#define VDI_LEASE_H

#include <stdatomic.h>
#include <vedette/store.h>

#include "base.h"
#include "btree.h"

#define VDI_LEASE_GRACE_S 5
/* What fits into nanoseconds. */
#define VDI_LEASE_TTL_NS_S_MAX 9000000000
/* Leases revoked in one turn of the writer. */
#define VDI_LEASE_EXPIRE_MAX 64

struct vdi_lease {
	_Atomic uint32_t references;
	int64_t		 id;
	int64_t		 ttl_s;
	vd_mono		 deadline;
	unsigned char	 order
		[16]; /* deadline, id; big-endian with the sign turned: bytewise order is numeric order */
};

struct vdi_lease_key {
	_Atomic uint32_t references;
	uint32_t	 size;
	char		 data[]; /* id as in order, then the key */
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

/* NULL: unknown. Borrowed from the snapshot. */
struct vdi_lease *vdi_lease_find(const struct vdi_btree_snapshot *leases, int64_t id);
/* Starts a walk over the keys of a lease; returns how many there are. */
struct vdi_lease_walk {
	struct vdi_btree_cursor cursor;
	unsigned char		from[8];
	unsigned char		to[8];
	struct vdi_key_range	range;
};
uint64_t vdi_lease_walk_init(struct vdi_lease_walk *walk, const struct vdi_btree_snapshot *lease_keys,
			     int64_t id);
/* False when over. The key is lent by the snapshot. */
bool vdi_lease_walk_next(struct vdi_lease_walk *walk, struct vd_bytes *ret_key);

/* Whole seconds left, truncated; 0 when none. */
int64_t vdi_lease_remaining_s(const struct vdi_lease *lease, vd_mono now);

#endif
