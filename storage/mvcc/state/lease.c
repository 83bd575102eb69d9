/* This file only stores leases; the writer decides about them (mvcc_group.c). */
#include "lease.h"

static void encode(unsigned char *out, int64_t number)
{
	uint64_t ordered = (uint64_t) number ^ ((uint64_t) 1 << 63);

	for (int i = 0; i < 8; i++)
		out[i] = (unsigned char) (ordered >> (56 - 8 * i));
}

static struct vd_bytes by_id(const void *value)
{
	return (struct vd_bytes) { ((const struct vdi_lease *) value)->order + 8, 8 };
}

static struct vd_bytes by_deadline(const void *value)
{
	return (struct vd_bytes) { ((const struct vdi_lease *) value)->order, 16 };
}

static void lease_ref(void *value)
{
	atomic_fetch_add_explicit(&((struct vdi_lease *) value)->references, 1, memory_order_relaxed);
}

static void lease_unref(void *value)
{
	vdi_lease_unref(value);
}

static struct vd_bytes by_lease_and_key(const void *value)
{
	const struct vdi_lease_key *key = value;

	return (struct vd_bytes) { key->data, key->size };
}

static void key_ref(void *value)
{
	atomic_fetch_add_explicit(&((struct vdi_lease_key *) value)->references, 1, memory_order_relaxed);
}

static void key_unref(void *value)
{
	vdi_lease_key_unref(value);
}

const struct vdi_btree_ops vdi_lease_id_tree_ops = { by_id, lease_ref, lease_unref };
const struct vdi_btree_ops vdi_lease_deadline_tree_ops = { by_deadline, lease_ref, lease_unref };
const struct vdi_btree_ops vdi_lease_key_tree_ops = { by_lease_and_key, key_ref, key_unref };

vd_status vdi_lease_new(int64_t id, int64_t ttl_s, vd_mono deadline, struct vdi_lease **ret_lease)
{
	struct vdi_lease *lease = VDI_NEW(struct vdi_lease);

	if (lease == NULL)
		return VD_NOMEM;
	lease->references = 1;
	lease->id = id;
	lease->ttl_s = ttl_s;
	lease->deadline = deadline;
	encode(lease->order, deadline.ns);
	encode(lease->order + 8, id);
	*ret_lease = lease;
	return VD_OK;
}

struct vdi_lease *vdi_lease_unref(struct vdi_lease *lease)
{
	if (lease && atomic_fetch_sub_explicit(&lease->references, 1, memory_order_acq_rel) == 1)
		vdi_free(lease);
	return NULL;
}

vd_status vdi_lease_key_new(int64_t id, struct vd_bytes key, struct vdi_lease_key **ret_key)
{
	struct vdi_lease_key *attachment = vdi_alloc(sizeof *attachment + 8 + key.size);

	if (attachment == NULL)
		return VD_NOMEM;
	attachment->references = 1;
	attachment->size = (uint32_t) (8 + key.size);
	encode((unsigned char *) attachment->data, id);
	memcpy(attachment->data + 8, key.data, key.size);
	*ret_key = attachment;
	return VD_OK;
}

struct vdi_lease_key *vdi_lease_key_unref(struct vdi_lease_key *key)
{
	if (key && atomic_fetch_sub_explicit(&key->references, 1, memory_order_acq_rel) == 1)
		vdi_free(key);
	return NULL;
}

struct vdi_lease *vdi_lease_find(const struct vdi_btree_snapshot *leases, int64_t id)
{
	unsigned char key[8];

	encode(key, id);
	return vdi_btree_snapshot_get(leases, (struct vd_bytes) { key, sizeof key });
}

uint64_t vdi_lease_walk_init(struct vdi_lease_walk *walk, const struct vdi_btree_snapshot *lease_keys,
			     int64_t id)
{
	encode(walk->from, id);
	walk->range.from = (struct vd_bytes) { walk->from, sizeof walk->from };
	walk->range.unbounded = id == INT64_MAX;
	walk->range.single = false;
	if (!walk->range.unbounded)
		encode(walk->to, id + 1);
	walk->range.to = (struct vd_bytes) { walk->to, 8 };
	vdi_btree_cursor_init(&walk->cursor, lease_keys);
	return vdi_btree_cursor_range(&walk->cursor, &walk->range);
}

bool vdi_lease_walk_next(struct vdi_lease_walk *walk, struct vd_bytes *ret_key)
{
	const struct vdi_lease_key *key = vdi_btree_cursor_range_next(&walk->cursor);

	if (key == NULL)
		return false;
	*ret_key = (struct vd_bytes) { key->data + 8, key->size - 8 };
	return true;
}

int64_t vdi_lease_remaining_s(const struct vdi_lease *lease, vd_mono now)
{
	return lease->deadline.ns > now.ns ? (lease->deadline.ns - now.ns) / 1000000000 : 0;
}
