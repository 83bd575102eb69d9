/* The local store of an informer: trees that its actor changes and any thread reads. */
#include "informer_state.h"

#include "cacher.h"
#include "candidates.h"

void vdi_informer_wake_waiters_locked(struct vd_informer *informer)
{
	struct vdi_synced_waiter *waiter;

	while ((waiter = informer->waiters)) {
		informer->waiters = waiter->next;
		vdi_wait_signal(waiter->wait);
	}
}

void vdi_informer_snapshot(struct vd_informer *informer, struct vdi_btree_snapshot *ret_snapshot,
			   struct vdi_btree_cursor *cursor)
{
	struct vdi_key_range everything = VDI_KEY_RANGE_ALL;

	vdi_lock_acquire(&informer->lock);
	vdi_btree_snapshot(&informer->objects, ret_snapshot);
	vdi_lock_release(&informer->lock);
	vdi_btree_cursor_init(cursor, ret_snapshot);
	(void) vdi_btree_cursor_range(cursor, &everything);
}

/* Makes the next watch start with the initial state, because memory was short or the stream broke. */
void vdi_informer_forget_place(struct vd_informer *informer)
{
	informer->revision = 0;
	informer->is_filling = false;
	vdi_btree_clear(&informer->seen);
}

/* Changes the tree, and the indexes or neither. A snapshot, with which the tree could be restored, makes the
 * change copy nodes with all their references; without indexes nothing can fail after the tree. */
static vd_status change_locked(struct vd_informer *informer, struct vd_bytes key, struct vd_object *object,
			       const struct vdi_index_change *old_entries,
			       const struct vdi_index_change *entries)
{
	struct vdi_btree_snapshot before = { 0 };
	struct vdi_btree	  undone;
	vd_status		  status;

	if (informer->index_count > 0)
		vdi_btree_snapshot(&informer->objects, &before);
	status = object ? vdi_btree_put(&informer->objects, object, NULL) :
			  vdi_btree_remove(&informer->objects, key, NULL);
	if (informer->index_count == 0)
		return status;
	if (status == VD_OK)
		status = vdi_index_change_apply(old_entries, entries, informer->indexes,
						informer->index_count);
	if (status == VD_OK) {
		vdi_btree_snapshot_release(&before);
	} else {
		undone = informer->objects;
		informer->objects.live = before;
		vdi_btree_fini(&undone);
	}
	return status;
}

/* Puts object, or (object NULL) removes the one with this key. The caller owns the reference of *ret_old.
 * VD_NOT_FOUND: nothing to remove. */
static vd_status change(struct vd_informer *informer, struct vd_bytes key, struct vd_object *object,
			struct vd_object **ret_old)
{
	struct vdi_index_change old_entries, entries;
	struct vd_object       *old;
	vd_status		status;

	/* Only this actor changes the trees. */
	old = vdi_btree_snapshot_get(vdi_btree_view(&informer->objects), key);
	VDI_TRY(vdi_index_change_prepare(&old_entries, informer->indexes, informer->index_count, old));
	status = vdi_index_change_prepare(&entries, informer->indexes, informer->index_count, object);
	if (status != VD_OK) {
		vdi_index_change_fini(&old_entries);
		return status;
	}
	if (old)
		vd_object_ref(old);
	vdi_lock_acquire(&informer->lock);
	status = change_locked(informer, key, object, &old_entries, &entries);
	vdi_lock_release(&informer->lock);
	vdi_index_change_fini(&old_entries);
	vdi_index_change_fini(&entries);
	if (status == VD_OK)
		*ret_old = old;
	else
		vd_object_unref(old);
	return status;
}

static vd_status set_object(struct vd_informer *informer, struct vd_object *object)
{
	struct vd_object *old = NULL;

	VDI_TRY(change(informer, vd_object_key(object), object, &old));
	if (old == NULL)
		vdi_informer_notify_add(informer, object);
	else if (vd_object_revision(old) !=
		 vd_object_revision(object)) /* an initial event for an unchanged object is no update */
		vdi_informer_notify_update(informer, old, object);
	vd_object_unref(old);
	return VD_OK;
}

static vd_status remove_object(struct vd_informer *informer, struct vd_bytes key, bool unknown_final_state)
{
	struct vd_object *old = NULL;
	vd_status	  status = change(informer, key, NULL, &old);

	if (status == VD_NOT_FOUND)
		return VD_OK;
	if (status != VD_OK)
		return status;
	vdi_informer_notify_remove(informer, old, unknown_final_state);
	vd_object_unref(old);
	return VD_OK;
}

/* Removes objects that the new initial state does not have: they were deleted while the watch was closed. */
static vd_status remove_unseen(struct vd_informer *informer)
{
	struct vdi_btree_snapshot before;
	struct vdi_btree_cursor	  cursor;
	struct vd_object	 *object;
	vd_status		  status = VD_OK;

	vdi_informer_snapshot(informer, &before, &cursor);
	while (status == VD_OK && (object = vdi_btree_cursor_range_next(&cursor)))
		if (vdi_btree_snapshot_get(vdi_btree_view(&informer->seen), vd_object_key(object)) == NULL)
			status = remove_object(informer, vd_object_key(object), true);
	vdi_btree_snapshot_release(&before);
	return status;
}

static void note_revision(struct vd_informer *informer, vd_rev revision)
{
	informer->revision = revision;
	vdi_lock_acquire(&informer->lock);
	informer->shown_revision = revision;
	vdi_lock_release(&informer->lock);
}

static vd_status finish_fill(struct vd_informer *informer, vd_rev revision)
{
	VDI_TRY(remove_unseen(informer));
	vdi_btree_clear(&informer->seen);
	informer->is_filling = false;
	informer->was_filled = true;
	note_revision(informer, revision);
	for (struct vd_informer_registration *to = informer->registrations; to; to = to->next)
		vdi_informer_notify_synced(informer, to);
	vdi_lock_acquire(&informer->lock);
	informer->is_synced = true;
	vdi_informer_wake_waiters_locked(informer);
	vdi_lock_release(&informer->lock);
	return VD_OK;
}

vd_status vdi_informer_take_event(struct vd_informer *informer, const struct vdi_informer_event *event)
{
	vd_status status = VD_OK;

	switch (event->type) {
	case VD_WATCH_ADDED:
	case VD_WATCH_MODIFIED:
		if (event->initial)
			VDI_TRY(vdi_btree_put(&informer->seen, event->object, NULL));
		status = set_object(informer, event->object);
		break;
	case VD_WATCH_DELETED: status = remove_object(informer, vd_object_key(event->object), false); break;
	case VD_WATCH_BOOKMARK:
		if (event->initial_events_end)
			return finish_fill(informer, event->revision);
		break;
	case VD_WATCH_ERROR: vdi_informer_forget_place(informer); return VD_OK;
	}
	if (status == VD_OK && !informer->is_filling)
		note_revision(informer, event->revision);
	return status;
}

/* ---- Readers ---- */

struct vd_object *vd_informer_get(struct vd_informer *informer, struct vd_bytes namespace_name,
				  struct vd_bytes name)
{
	struct vd_cacher *cacher = informer->cacher;
	char		  buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes	  key;
	struct vd_object *object;
	bool		  is_single;

	if (!vdi_scope_key(vdi_cacher_prefix(cacher), cacher->options.cluster_scoped, namespace_name, name,
			   buffer, &key, &is_single) ||
	    !is_single)
		return NULL;
	vdi_lock_acquire(&informer->lock);
	object = vdi_btree_snapshot_get(vdi_btree_view(&informer->objects), key);
	if (object)
		vd_object_ref(object);
	vdi_lock_release(&informer->lock);
	return object;
}

size_t vd_informer_count(struct vd_informer *informer)
{
	size_t count;

	vdi_lock_acquire(&informer->lock);
	count = vdi_btree_count(&informer->objects);
	vdi_lock_release(&informer->lock);
	return count;
}

vd_rev vd_informer_revision(struct vd_informer *informer)
{
	vd_rev revision;

	vdi_lock_acquire(&informer->lock);
	revision = informer->shown_revision;
	vdi_lock_release(&informer->lock);
	return revision;
}

size_t vd_informer_visit(struct vd_informer *informer, vd_object_visit_fn visit, void *arg)
{
	struct vdi_btree_snapshot snapshot;
	struct vdi_btree_cursor	  cursor;
	struct vd_object	 *object;
	size_t			  visited = 0;

	if (visit == NULL)
		return 0;
	vdi_informer_snapshot(informer, &snapshot, &cursor);
	while ((object = vdi_btree_cursor_range_next(&cursor))) {
		visited++;
		if (!visit(arg, object))
			break;
	}
	vdi_btree_snapshot_release(&snapshot);
	return visited;
}

size_t vd_informer_visit_index(struct vd_informer *informer, const char *index, struct vd_bytes value,
			       vd_object_visit_fn visit, void *arg)
{
	struct vdi_btree_snapshot snapshot;
	vd_status		  status;
	size_t			  visited;

	if (index == NULL || visit == NULL)
		return 0;
	vdi_lock_acquire(&informer->lock);
	status = vdi_informer_index_snapshot(informer->indexes, informer->index_count, index, &snapshot);
	vdi_lock_release(&informer->lock);
	if (status != VD_OK)
		return 0;
	visited = vdi_informer_index_visit(&snapshot, value, visit, arg);
	vdi_btree_snapshot_release(&snapshot);
	return visited;
}
