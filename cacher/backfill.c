/* How: the same watchChan that feeds the cache, opened at an old revision; a progress request tells when it has reached L even if nothing happened just before.
 * An etcd answers none while the watch is behind (E-317), so it is asked until it does. */
#include "backfill.h"

#include "cacher.h"

#define TAKE_MAX 64

/* With a predicate watchChan decodes the state before each change, which nobody else can tell here. */
static bool want_all(void *arg, const struct vd_object *object)
{
	return true;
}

bool vdi_backfill_begin(struct vd_cacher *cacher)
{
	struct vdi_reflector	    *reflector = &cacher->reflector;
	struct vd_store_status	     store = { 0 };
	vd_rev			     span;
	struct vdi_watchchan_options options = {
		.resource = cacher->options.resource,
		.codec = cacher->codec,
		.key = vdi_cacher_prefix(cacher),
		.recursive = true,
		.progress = true,
		.predicate = want_all,
		.ready = vdi_reflector_wake,
		.ready_arg = cacher,
	};

	/* Only the first fill: later ones have watchers that ended for a reason. */
	if (cacher->options.no_backfill || vdi_watch_cache_revision(&cacher->watch_cache) != 0)
		return false;
	if (vd_store_status_get(cacher->store, &store) != VD_OK || !store.progress)
		return false;
	span = (vd_rev) cacher->watch_cache.history.capacity_upper;
	if (store.remote && store.history == 0)
		span = VDI_MIN(span, VDI_BACKFILL_REMOTE_MAX);
	options.revision = VDI_MAX(VDI_MAX(store.history ? VDI_MAX(store.history, store.kept) : store.compacted, 1), reflector->pending_revision - span);
	if (options.revision >= reflector->pending_revision || !vdi_cacher_call_begin(cacher))
		return false;
	if (vdi_watchchan_open(cacher->env, cacher->store, &options, &reflector->backfill, NULL) != VD_OK) {
		reflector->backfill = NULL;
		vdi_cacher_call_end(cacher);
		return false;
	}
	vdi_watch_cache_backfill_begin(&cacher->watch_cache, options.revision);
	reflector->backfill_ask_at = (vd_mono) { 0 };
	reflector->backfill_due = vd_mono_add(vd_env_now(cacher->env), VDI_BACKFILL_SILENCE_MAX);
	vd_actor_wake(cacher->actor);
	return true;
}

void vdi_backfill_stop(struct vd_cacher *cacher)
{
	struct vdi_watchchan *backfill = cacher->reflector.backfill;

	cacher->reflector.backfill = NULL;
	if (backfill)
		vdi_watchchan_close(backfill, vdi_reflector_stream_closed, cacher);
}

static void finish(struct vd_cacher *cacher, bool is_complete)
{
	vdi_backfill_stop(cacher);
	vdi_reflector_fill(cacher, is_complete);
}

enum verdict { GOES_ON, COMPLETE, FAILED };

/* The newest state of an object was decoded for the list already: the history shares that header. */
static void share_object(struct vd_cacher *cacher, struct vdi_watchchan_event *event)
{
	struct vd_object *listed = vdi_btree_snapshot_get(&cacher->reflector.pending.live, vd_object_key(event->object));

	if (listed && vd_object_kv(listed) == vd_object_kv(event->object)) {
		vd_object_unref(event->object);
		event->object = vd_object_ref(listed);
	}
}

static enum verdict take(struct vd_cacher *cacher, struct vdi_watchchan_event *event)
{
	vd_rev until = cacher->reflector.pending_revision;

	switch (event->type) {
	case VD_WATCH_BOOKMARK:
		return event->revision >= until ? COMPLETE : GOES_ON;
	case VD_WATCH_ERROR:
		return FAILED;
	case VD_WATCH_MODIFIED:
		if (event->old_object == NULL && event->revision <= until)
			return FAILED; /* a watcher would be told a wrong type */
		break;
	default:
		break;
	}
	if (event->revision > until)
		return COMPLETE;
	if (event->object && event->type != VD_WATCH_DELETED)
		share_object(cacher, event);
	return vdi_watch_cache_backfill(&cacher->watch_cache, event) == VD_OK ? GOES_ON : FAILED;
}

vd_mono vdi_backfill_run(struct vd_cacher *cacher)
{
	struct vdi_reflector	  *reflector = &cacher->reflector;
	struct vdi_watchchan_event events[TAKE_MAX];
	size_t			   count = 0;
	vd_status		   status;
	vd_mono			   now;

	while ((status = vdi_watchchan_take(reflector->backfill, events, TAKE_MAX, &count)) == VD_OK) {
		enum verdict verdict = GOES_ON;

		/* A store that goes on telling may take its time; one that falls silent may not. */
		reflector->backfill_due = vd_mono_add(vd_env_now(cacher->env), VDI_BACKFILL_SILENCE_MAX);
		for (size_t i = 0; i < count; i++) {
			if (verdict == GOES_ON)
				verdict = take(cacher, &events[i]);
			vdi_watchchan_event_fini(&events[i]);
		}
		if (verdict != GOES_ON) {
			finish(cacher, verdict == COMPLETE);
			return VD_NEVER;
		}
	}
	now = vd_env_now(cacher->env);
	if (status != VD_AGAIN || now.ns >= reflector->backfill_due.ns) {
		finish(cacher, false);
		return VD_NEVER;
	}
	if (now.ns >= reflector->backfill_ask_at.ns) {
		vdi_watchchan_progress(reflector->backfill);
		reflector->backfill_ask_at = vd_mono_add(now, VDI_PROGRESS_PERIOD);
	}
	return (vd_mono) { VDI_MIN(reflector->backfill_due.ns, reflector->backfill_ask_at.ns) };
}
