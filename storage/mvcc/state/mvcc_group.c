/* Each change allocates before or while it modifies the trees. If a change fails in the middle, the group is
 * restored as a whole, so no change undoes itself. */
#include "mvcc_group.h"

void vdi_group_init(struct vdi_group *group, struct vdi_mvcc_log *log)
{
	memset(group, 0, sizeof *group);
	group->log = log;
	vdi_btree_init(&group->keys, &vdi_kv_tree_ops);
	vdi_btree_init(&group->leases, &vdi_lease_id_tree_ops);
	vdi_btree_init(&group->lease_keys, &vdi_lease_key_tree_ops);
	vdi_btree_init(&group->lease_deadlines, &vdi_lease_deadline_tree_ops);
	group->revision = 1;
	group->compacted = -1;
}

static void drop_events(struct vdi_group *group)
{
	for (size_t i = 0; i < group->event_count; i++) {
		vd_kv_unref(group->events[i].kv);
		vd_kv_unref(group->events[i].previous);
	}
	group->event_count = 0;
}

void vdi_group_fini(struct vdi_group *group)
{
	drop_events(group);
	vdi_btree_fini(&group->keys);
	vdi_btree_fini(&group->leases);
	vdi_btree_fini(&group->lease_keys);
	vdi_btree_fini(&group->lease_deadlines);
	vdi_free(group->events);
	vdi_free(group->lease_changes);
	vdi_free(group->changes);
	vdi_mvcc_state_unref(group->state);
}

static void restore_tree(struct vdi_btree *tree, const struct vdi_btree_snapshot *snapshot)
{
	struct vdi_btree_snapshot kept;

	vdi_btree_snapshot_ref(snapshot, &kept);
	vdi_btree_fini(tree);
	tree->live = kept;
}

void vdi_group_restore(struct vdi_group *group, struct vdi_mvcc_state *state)
{
	vdi_mvcc_state_ref(state);
	drop_events(group);
	restore_tree(&group->keys, &state->keys);
	restore_tree(&group->leases, &state->leases);
	restore_tree(&group->lease_keys, &state->lease_keys);
	restore_tree(&group->lease_deadlines, &state->lease_deadlines);
	group->revision = state->revision;
	group->compacted = state->compacted;
	group->unit_first_event = 0;
	group->lease_change_count = 0;
	group->is_changed = false;
	vdi_mvcc_state_unref(group->state);
	group->state = state;
}

struct vdi_view vdi_group_view(const struct vdi_group *group)
{
	bool in_unit = group->event_count > group->unit_first_event;

	return (struct vdi_view) { vdi_btree_view(&group->keys),
				   group->revision + in_unit,
				   group->compacted,
				   group->log,
				   group->state,
				   group->events,
				   group->event_count };
}

void vdi_group_unit_begin(struct vdi_group *group)
{
	group->unit_first_event = group->event_count;
	group->unit_revision = group->revision + 1;
	group->lease_change_count = 0;
}

vd_status vdi_group_unit_end(struct vdi_group *group, vd_rev compact, struct vdi_commit *ret_commit,
			     bool *ret_empty)
{
	size_t count = vdi_group_unit_change_count(group);

	if (!vdi_grow((void **) &group->changes, &group->change_capacity, count, sizeof group->changes[0]))
		return VD_NOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct vd_store_event *event = &group->events[group->unit_first_event + i];

		group->changes[i] = (struct vdi_change) { event->is_delete, event->kv, event->previous };
	}
	*ret_commit = (struct vdi_commit) {
		count ? group->unit_revision : 0, group->changes, count, group->lease_changes,
		group->lease_change_count,	  compact
	};
	*ret_empty = count == 0 && group->lease_change_count == 0 && compact <= 0;
	if (count)
		group->revision = group->unit_revision;
	if (!*ret_empty)
		group->is_changed = true;
	group->unit_first_event = group->event_count;
	return VD_OK;
}

/* ---- Keys ---- */

static vd_status reserve_event(struct vdi_group *group)
{
	return vdi_grow((void **) &group->events, &group->event_capacity, group->event_count + 1,
			sizeof group->events[0]) ?
		       VD_OK :
		       VD_NOMEM;
}

/* Takes over both references. */
static void add_event(struct vdi_group *group, bool is_delete, struct vd_kv *kv, struct vd_kv *previous)
{
	group->events[group->event_count++] = (struct vd_store_event) { is_delete, kv, previous };
}

static vd_status detach(struct vdi_group *group, int64_t id, struct vd_bytes key)
{
	struct vdi_lease_key *probe;
	vd_status	      status;

	VDI_TRY(vdi_lease_key_new(id, key, &probe));
	status = vdi_btree_remove(&group->lease_keys, (struct vd_bytes) { probe->data, probe->size }, NULL);
	vdi_lease_key_unref(probe);
	return status == VD_NOT_FOUND ? VD_OK : status;
}

static vd_status attach(struct vdi_group *group, int64_t id, struct vd_bytes key)
{
	struct vdi_lease_key *attachment;
	vd_status	      status;

	VDI_TRY(vdi_lease_key_new(id, key, &attachment));
	status = vdi_btree_put(&group->lease_keys, attachment, NULL);
	vdi_lease_key_unref(attachment);
	return status;
}

vd_status vdi_group_put(struct vdi_group *group, struct vd_kv *kv, int64_t lease, struct vd_kv **ret_previous)
{
	void	     *replaced = NULL;
	struct vd_kv *previous;

	VDI_TRY(reserve_event(group));
	kv->mod_rev = group->unit_revision;
	kv->sub = (uint32_t) vdi_group_unit_change_count(group);
	kv->lease = lease;
	VDI_TRY(vdi_btree_put(&group->keys, kv, &replaced));
	add_event(group, false, vd_kv_ref(kv), replaced);
	/* Set after it is in the tree, to search the tree once instead of twice; no other thread sees the
	 * tree before the group is committed. */
	previous = replaced;
	kv->create_rev = previous ? previous->create_rev : kv->mod_rev;
	kv->version = previous ? previous->version + 1 : 1;
	if (previous && previous->lease && previous->lease != lease)
		VDI_TRY(detach(group, previous->lease, vd_kv_key(kv)));
	if (lease && (previous == NULL || previous->lease != lease))
		VDI_TRY(attach(group, lease, vd_kv_key(kv)));
	*ret_previous = previous;
	return VD_OK;
}

/* Replaces previous by a tombstone; the event takes over the tree's reference to previous. */
static vd_status delete_one(struct vdi_group *group, struct vd_bytes key)
{
	struct vd_kv *tombstone;
	void	     *removed = NULL;
	vd_status     status;

	VDI_TRY(reserve_event(group));
	VDI_TRY(vd_kv_new(key, VD_BYTES_NONE, &tombstone));
	tombstone->mod_rev = group->unit_revision;
	tombstone->sub = (uint32_t) vdi_group_unit_change_count(group);
	status = vdi_btree_remove(&group->keys, vd_kv_key(tombstone), &removed);
	if (status != VD_OK) {
		vd_kv_unref(tombstone);
		return status;
	}
	add_event(group, true, tombstone, removed);
	if (((struct vd_kv *) removed)->lease)
		return detach(group, ((struct vd_kv *) removed)->lease, vd_kv_key(tombstone));
	return VD_OK;
}

vd_status vdi_group_delete(struct vdi_group *group, const struct vdi_key_range *range,
			   size_t *ret_first_event, size_t *ret_count)
{
	struct vdi_btree_snapshot before;
	struct vdi_btree_cursor	  cursor;
	struct vd_kv		 *kv;
	vd_status		  status = VD_OK;
	size_t			  first = group->event_count;

	if (range->single) {
		if (vdi_btree_snapshot_get(vdi_btree_view(&group->keys), range->from))
			status = delete_one(group, range->from);
	} else {
		/* Walk over a snapshot, because the loop changes the tree. */
		vdi_btree_snapshot(&group->keys, &before);
		vdi_btree_cursor_init(&cursor, &before);
		vdi_btree_cursor_range(&cursor, range);
		while (status == VD_OK && (kv = vdi_btree_cursor_range_next(&cursor)) != NULL)
			status = delete_one(group, vd_kv_key(kv));
		vdi_btree_snapshot_release(&before);
	}
	*ret_first_event = first;
	*ret_count = group->event_count - first;
	return status;
}

/* ---- Leases ---- */

static vd_status note_lease_change(struct vdi_group *group, enum vdi_lease_change_kind kind, int64_t id,
				   int64_t ttl_s, vd_wall deadline)
{
	if (!vdi_grow((void **) &group->lease_changes, &group->lease_change_capacity,
		      group->lease_change_count + 1, sizeof group->lease_changes[0]))
		return VD_NOMEM;
	group->lease_changes[group->lease_change_count++] =
		(struct vdi_lease_change) { kind, id, ttl_s, deadline };
	return VD_OK;
}

static int64_t add_seconds(int64_t ns, int64_t seconds, int64_t max_ns)
{
	return seconds > (max_ns - ns) / 1000000000 ? max_ns : ns + seconds * 1000000000;
}

static vd_status store_lease(struct vdi_group *group, enum vdi_lease_change_kind kind, int64_t id,
			     int64_t ttl_s, vd_mono now, vd_wall wall)
{
	struct vdi_lease *lease;
	vd_wall		  deadline_wall = { add_seconds(wall.ns, ttl_s, INT64_MAX) };
	vd_mono		  deadline = { add_seconds(now.ns, ttl_s, INT64_MAX - 1) };
	vd_status	  status;

	VDI_TRY(note_lease_change(group, kind, id, ttl_s, deadline_wall));
	VDI_TRY(vdi_lease_new(id, ttl_s, deadline, &lease));
	status = vdi_btree_put(&group->leases, lease, NULL);
	if (status == VD_OK)
		status = vdi_btree_put(&group->lease_deadlines, lease, NULL);
	vdi_lease_unref(lease);
	return status;
}

vd_status vdi_group_lease_grant(struct vdi_group *group, int64_t id, int64_t ttl_s, vd_mono now, vd_wall wall)
{
	return store_lease(group, VDI_LEASE_GRANTED, id, ttl_s, now, wall);
}

vd_status vdi_group_lease_renew(struct vdi_group *group, const struct vdi_lease *lease, vd_mono now,
				vd_wall wall)
{
	int64_t id = lease->id;
	int64_t ttl_s = lease->ttl_s;

	VDI_TRY(vdi_btree_remove(&group->lease_deadlines,
				 (struct vd_bytes) { lease->order, sizeof lease->order }, NULL));
	return store_lease(group, VDI_LEASE_RENEWED, id, ttl_s, now, wall);
}

vd_status vdi_group_lease_revoke(struct vdi_group *group, int64_t id)
{
	unsigned char		  order[sizeof((struct vdi_lease *) NULL)->order];
	struct vdi_btree_snapshot before;
	struct vdi_lease_walk	  walk;
	struct vd_bytes		  key;
	vd_status		  status;

	VDI_TRY(note_lease_change(group, VDI_LEASE_REVOKED, id, 0, (vd_wall) { 0 }));
	memcpy(order, vdi_lease_find(vdi_btree_view(&group->leases), id)->order, sizeof order);
	vdi_btree_snapshot(&group->lease_keys, &before);
	vdi_lease_walk_init(&walk, &before, id);
	status = VD_OK;
	while (status == VD_OK && vdi_lease_walk_next(&walk, &key))
		status = delete_one(group, key);
	vdi_btree_snapshot_release(&before);
	VDI_TRY(status);
	VDI_TRY(vdi_btree_remove(&group->lease_deadlines, (struct vd_bytes) { order, sizeof order }, NULL));
	return vdi_btree_remove(&group->leases, (struct vd_bytes) { order + 8, 8 }, NULL);
}

struct vdi_lease *vdi_group_lease_first(const struct vdi_group *group)
{
	return vdi_btree_snapshot_min(vdi_btree_view(&group->lease_deadlines));
}
