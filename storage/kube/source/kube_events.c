/* Events of the pump and of proof watches: through the mirror into the ring. Their order, companions and late
 * ones: kube_source.h. */
#include <inttypes.h>

#include "kube_source.h"

vd_rev vdi_kube_pump_position(const struct vdi_kube_source *source)
{
	const struct vdi_kube_pump *pump = &source->pump;

	return VDI_MAX(pump->covered, pump->mirror.applied - 1);
}

void vdi_kube_pump_show(struct vdi_kube_source *source)
{
	struct vdi_kube_pump *pump = &source->pump;

	pump->hold_at = VD_NEVER;
	vdi_lock_acquire(&source->lock);
	if (vdi_kube_pump_holds(source)) {
		vdi_kube_ring_show(&source->ring);
		vdi_kube_watches_wake_locked(source);
	}
	vdi_lock_release(&source->lock);
}

/* Shows the open revision a little later. */
static void hold(struct vdi_kube_source *source)
{
	source->pump.hold_at = vd_mono_add(vdi_kube_now(source->member.kube), VDI_KUBE_HOLD);
	vdi_kube_member_wake(&source->member);
}

/* A companion of a revision that readers may have passed, or an event that a bookmark left out. */
static void take_late(struct vdi_kube_source *source, struct vdi_kube_change *change)
{
	struct vdi_kube_pump *pump = &source->pump;
	vd_rev		      passed = VDI_MAX(pump->mirror.applied, pump->covered);

	/* Several late events: what was passed before the first one counts. */
	passed = VDI_MAX(passed, vdi_kube_ring_shown(&source->ring));
	source->late++;
	vdi_log_limited(source->env, &source->log_limit, VD_LOG_WARNING, "kube",
			"%s: an event of revision %" PRId64 " arrived late: all watches list again",
			source->name, (int64_t) change->kv->mod_rev);
	pump->covered = VDI_MIN(pump->covered, change->kv->mod_rev - 1);
	pump->may_grow = true;
	vdi_lock_acquire(&source->lock);
	source->covered = pump->covered;
	vdi_kube_ring_break(&source->ring, passed);
	vdi_kube_watches_relist_locked(source, INT64_MAX, VD_EXPIRED,
				       "an event arrived after its revision was delivered");
	vdi_lock_release(&source->lock);
	vdi_kube_change_fini(change);
}

static void put_in_ring(struct vdi_kube_source *source, struct vdi_kube_change *change)
{
	struct vdi_kube_pump *pump = &source->pump;
	vd_rev		      revision = change->kv->mod_rev;
	bool		      is_delete = change->is_delete;

	pump->may_grow = is_delete;
	if (revision <= VDI_MAX(vdi_kube_ring_shown(&source->ring), pump->covered)) {
		take_late(source, change);
		return;
	}
	vdi_lock_acquire(&source->lock);
	if (vdi_kube_pump_holds(source) &&
	    vdi_kube_ring_at(&source->ring, source->ring.end - 1)->kv->mod_rev < revision)
		vdi_kube_ring_show(&source->ring);
	vdi_kube_ring_push(&source->ring, change);
	if (!is_delete)
		vdi_kube_ring_show(&source->ring);
	source->known = VDI_MAX(source->known, revision);
	source->health.revision = VDI_MAX(source->health.revision, revision);
	source->health.events++;
	source->health.heard = source->heard;
	vdi_kube_watches_wake_locked(source);
	if (!LIST_EMPTY(&source->streams))
		vdi_kube_member_wake(&source->member); /* one may wait for the end of a revision */
	vdi_lock_release(&source->lock);
	if (is_delete)
		hold(source);
	else
		pump->hold_at = VD_NEVER;
}

static vd_status reserve(struct vdi_kube_source *source)
{
	vd_status status;

	vdi_lock_acquire(&source->lock);
	status = vdi_kube_ring_reserve(&source->ring);
	vdi_lock_release(&source->lock);
	return status;
}

static vd_status take_bookmark(struct vdi_kube_source *source, const struct vdi_kube_object *object,
			       struct vd_error *reterr)
{
	if (object->revision == 0)
		return vd_error_set(reterr, VD_BAD_REQUEST, "a bookmark has no resourceVersion");
	vdi_kube_pump_cover(source, object->revision);
	return VD_OK;
}

vd_status vdi_kube_pump_apply(struct vdi_kube_source *source, const struct vdi_kube_event *event,
			      struct vd_error *reterr)
{
	struct vdi_kube_pump  *pump = &source->pump;
	struct vdi_kube_object object;
	struct vdi_kube_change change;
	struct vd_kv	      *kv;
	vd_status	       status;

	VDI_TRY(vdi_kube_object_read(&source->objects, event->object, NULL, NULL, &object, reterr));
	if (event->type == VDI_KUBE_BOOKMARK)
		return take_bookmark(source, &object, reterr);
	VDI_TRY(vdi_kube_source_check(source, &object, reterr));
	VDI_TRY(vdi_kube_object_kv(&object, source->prefix, event->type == VDI_KUBE_DELETED, &kv, reterr));
	status = reserve(source);
	if (status != VD_OK) {
		vd_kv_unref(kv);
		return vd_error_set(reterr, status, "out of memory for an event");
	}
	status = vdi_kube_mirror_apply(&pump->mirror, kv, event->type == VDI_KUBE_DELETED, &change, reterr);
	if (status == VD_EXISTS) {
		source->repeated++;
		if (vdi_kube_pump_holds(source) && object.revision == pump->mirror.applied)
			hold(source);
		return VD_OK;
	}
	if (status == VD_OK)
		put_in_ring(source, &change);
	return status;
}

void vdi_kube_pump_cover(struct vdi_kube_source *source, vd_rev revision)
{
	struct vdi_kube_pump *pump = &source->pump;

	if (revision <= pump->covered || revision < pump->mirror.applied)
		return;
	/* A server may send a bookmark between two events of its revision. */
	if (revision == pump->mirror.applied && pump->may_grow) {
		if (vdi_kube_pump_holds(source))
			hold(source);
		return;
	}
	pump->may_grow = false;
	pump->covered = revision;
	pump->hold_at = VD_NEVER;
	vdi_lock_acquire(&source->lock);
	vdi_kube_ring_show(&source->ring);
	source->covered = revision;
	source->known = VDI_MAX(source->known, revision);
	source->health.revision = VDI_MAX(source->health.revision, revision);
	source->health.heard = source->heard;
	vdi_kube_watches_wake_locked(source);
	if (!LIST_EMPTY(&source->streams))
		vdi_kube_member_wake(&source->member);
	vdi_lock_release(&source->lock);
}
