/* A group of commits in progress: the writer's working copy of the newest state, and the changes since that
 * state was published.
 *
 * Writer only; invisible to other threads. A group is a sequence of units: begin, any number of changes, end.
 * Each unit is one revision (none if it changed no key) and one struct vdi_commit. If a change returns an
 * error, the whole group must be restored to the published state with vdi_group_restore, which cannot fail
 * because the trees are copy-on-write.
 */
#ifndef VDI_MVCC_GROUP_H
#define VDI_MVCC_GROUP_H

#include "commit.h"
#include "lease.h"
#include "mvcc_read.h"

struct vdi_group {
	/* Borrowed for the lifetime of the group. */
	struct vdi_mvcc_log *log;

	struct vdi_mvcc_state *state; /* one reference: published state on which the working state is based */
	struct vdi_btree       keys;
	struct vdi_btree       leases;
	struct vdi_btree       lease_keys;
	struct vdi_btree       lease_deadlines;
	vd_rev		       revision;
	vd_rev		       compacted;

	/* Events of all units; one reference to each kv and previous. */
	struct vd_store_event *events;
	size_t		       event_count;
	size_t		       event_capacity;
	/* Current unit. */
	size_t			 unit_first_event;
	vd_rev			 unit_revision;
	struct vdi_lease_change *lease_changes;
	size_t			 lease_change_count;
	size_t			 lease_change_capacity;
	struct vdi_change	*changes; /* scratch */
	size_t			 change_capacity;
	bool			 is_changed; /* something changed since state, which must be published */
};

void vdi_group_init(struct vdi_group *group, struct vdi_mvcc_log *log);
void vdi_group_fini(struct vdi_group *group);
/* Discards all changes: the working state becomes state (takes a reference). */
void vdi_group_restore(struct vdi_group *group, struct vdi_mvcc_state *state);
/* Returns the view of a range in the current unit, which includes the unit's own changes. */
struct vdi_view vdi_group_view(const struct vdi_group *group);

void		     vdi_group_unit_begin(struct vdi_group *group);
static inline size_t vdi_group_unit_change_count(const struct vdi_group *group)
{
	return group->event_count - group->unit_first_event;
}
/* Ends the unit. ret_commit borrows the group's memory until the next unit begins. ret_empty: nothing to
 * write. */
VDI_MUST_USE vd_status vdi_group_unit_end(struct vdi_group *group, vd_rev compact,
					  struct vdi_commit *ret_commit, bool *ret_empty);

/* Stores the record, which must not be shared yet, with revision, version and lease (exists, or 0). Takes its
 * own references. ret_previous: borrowed from the event; NULL for a create. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_group_put(struct vdi_group *group, struct vd_kv *kv, int64_t lease,
				     struct vd_kv **ret_previous);
/* Deletes every key of the range, in key order. The events from *ret_first_event on are the deletions.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_group_delete(struct vdi_group *group, const struct vdi_key_range *range,
					size_t *ret_first_event, size_t *ret_count);

/* The caller has checked that the id is free. */
VDI_MUST_USE vd_status vdi_group_lease_grant(struct vdi_group *group, int64_t id, int64_t ttl_s, vd_mono now,
					     vd_wall wall);
VDI_MUST_USE vd_status vdi_group_lease_renew(struct vdi_group *group, const struct vdi_lease *lease,
					     vd_mono now, vd_wall wall);
/* Deletes the attached keys and the lease, in this unit. */
VDI_MUST_USE vd_status vdi_group_lease_revoke(struct vdi_group *group, int64_t id);
/* Returns the lease that expires first, borrowed until the next change; NULL if there is none. */
struct vdi_lease *vdi_group_lease_first(const struct vdi_group *group);

#endif
