/* A published state of the store: everything that is visible to readers and watches at one revision.
 *
 * Immutable and reference counted. Its trees are snapshots that share nodes with the writer's working tree
 * and with each other. The writer publishes a new state after each durable group of commits; a reader takes a
 * reference and then needs no lock.
 */
#ifndef VDI_MVCC_STATE_H
#define VDI_MVCC_STATE_H

#include <stdatomic.h>
#include <vedette/store.h>

#include "base.h"
#include "btree.h"

struct vdi_mvcc_state {
	_Atomic uint32_t	  references;
	vd_rev			  revision;
	vd_rev			  compacted;  /* -1: never */
	uint64_t		  log_end;    /* index in the history just after the last event of revision */
	struct vdi_btree_snapshot keys;	      /* struct vd_kv, live keys only */
	struct vdi_btree_snapshot leases;     /* struct vdi_lease by id */
	struct vdi_btree_snapshot lease_keys; /* struct vdi_lease_key: id, then key */
	struct vdi_btree_snapshot lease_deadlines; /* struct vdi_lease by deadline */
};

/* Returns a state with all fields zero and one reference. */
VDI_MUST_USE vd_status vdi_mvcc_state_new(struct vdi_mvcc_state **ret_state);
struct vdi_mvcc_state *vdi_mvcc_state_ref(struct vdi_mvcc_state *state);
/* The last reference releases the snapshots, in time proportional to the nodes that no other state shares.
 * NULL is fine; returns NULL. */
struct vdi_mvcc_state *vdi_mvcc_state_unref(struct vdi_mvcc_state *state);

/* For trees of struct vd_kv. */
extern const struct vdi_btree_ops vdi_kv_tree_ops;

#endif
