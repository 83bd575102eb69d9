/* Snapshots of the trees with a reference count. */
#include "mvcc_state.h"

static struct vd_bytes kv_tree_key(const void *value)
{
	return vd_kv_key(value);
}

static void kv_tree_ref(void *value)
{
	vd_kv_ref(value);
}

static void kv_tree_unref(void *value)
{
	vd_kv_unref(value);
}

const struct vdi_btree_ops vdi_kv_tree_ops = { kv_tree_key, kv_tree_ref, kv_tree_unref };

vd_status vdi_mvcc_state_new(struct vdi_mvcc_state **ret_state)
{
	struct vdi_mvcc_state *state = VDI_NEW(struct vdi_mvcc_state);

	if (state == NULL)
		return VD_NOMEM;
	state->references = 1;
	*ret_state = state;
	return VD_OK;
}

struct vdi_mvcc_state *vdi_mvcc_state_ref(struct vdi_mvcc_state *state)
{
	atomic_fetch_add_explicit(&state->references, 1, memory_order_relaxed);
	return state;
}

struct vdi_mvcc_state *vdi_mvcc_state_unref(struct vdi_mvcc_state *state)
{
	if (state == NULL || atomic_fetch_sub_explicit(&state->references, 1, memory_order_acq_rel) != 1)
		return NULL;
	vdi_btree_snapshot_release(&state->keys);
	vdi_btree_snapshot_release(&state->leases);
	vdi_btree_snapshot_release(&state->lease_keys);
	vdi_btree_snapshot_release(&state->lease_deadlines);
	vdi_free(state);
	return NULL;
}
