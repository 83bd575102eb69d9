/* The backfill uses a watchChan like the one that feeds the cache, opened at an old revision. A progress
 * request reports that the stream has reached L even if the last revisions contain no event of this resource.
 * An etcd does not answer it while the watch is behind, so the request is repeated.
 *
 * The newest version of an object was already decoded for the list; the history shares that object. */
#include "backfill.h"

#include "cacher_state.h"
#include "hash.h"

#define TAKE_MAX 64
#define AHEAD 12 /* objects prefetched */

/* A predicate makes watchChan decode the previous object of each change, which the cache cannot supply
 * here. */
static bool want_all(void *arg, const struct vd_object *object)
{
	return true;
}

/* ---- Listed objects ---- */

/* Listed objects, immutable. Lives as long as the backfill's stream, which may outlast the cacher's wait for
 * it. */
struct vdi_backfill_listed {
	struct vd_cacher	 *cacher;
	struct vdi_btree_snapshot objects;
	struct vdi_hash		  by_record; /* only objects whose record is the store's own, untranslated */
};

static uint64_t hash_of(const struct vd_kv *kv)
{
	return ((uint64_t) (uintptr_t) kv * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

static bool is_of_record(const void *object, const void *kv)
{
	return vd_object_kv(object) == kv;
}

static void listed_free(void *arg)
{
	struct vdi_backfill_listed *listed = arg;
	struct vd_cacher	   *cacher = listed->cacher;

	vdi_btree_snapshot_release(&listed->objects);
	vdi_hash_fini(&listed->by_record);
	vdi_free(listed);
	vdi_reflector_stream_closed(cacher);
}

/* Without memory for the table, all objects are decoded again. */
static struct vdi_backfill_listed *listed_new(struct vd_cacher *cacher)
{
	struct vdi_backfill_listed *listed = VDI_NEW(struct vdi_backfill_listed);
	const struct vdi_reflector *reflector = &cacher->reflector;
	size_t			    count = reflector->loading_count;

	if (listed == NULL)
		return NULL;
	listed->cacher = cacher;
	vdi_btree_snapshot(&cacher->reflector.pending, &listed->objects);
	vdi_hash_init(&listed->by_record, is_of_record, 0);
	/* Only objects that the snapshot keeps: all of them, unless the list had duplicates. */
	if (listed->objects.count != count || count == 0 ||
	    vdi_hash_reserve(&listed->by_record, count) != VD_OK)
		return listed;
	for (size_t i = 0; i < count; i++) {
		const struct vd_kv *kv = vd_object_kv(reflector->loading[i]);

		if (i + AHEAD < count)
			__builtin_prefetch(reflector->loading[i + AHEAD]);
		if (vdi_hash_put(&listed->by_record, hash_of(kv), kv, reflector->loading[i], NULL) != VD_OK)
			break;
	}
	return listed;
}

static struct vd_object *find_listed(void *arg, const struct vd_kv *kv)
{
	const struct vdi_backfill_listed *listed = arg;
	struct vd_object		 *object = vdi_hash_get(&listed->by_record, hash_of(kv), kv);

	return object ? vd_object_ref(object) : NULL;
}

/* ---- */

bool vdi_backfill_begin(struct vd_cacher *cacher)
{
	struct vdi_reflector	    *reflector = &cacher->reflector;
	struct vd_store_status	     store = { 0 };
	struct vdi_backfill_listed  *listed;
	vd_rev			     span;
	struct vdi_watchchan_options options = {
		.resource = cacher->options.resource,
		.codec = cacher->codec,
		.key = vdi_cacher_prefix(cacher),
		.recursive = true,
		.progress = true,
		.predicate = want_all,
		.decoded = find_listed,
		.ready = vdi_reflector_wake,
		.ready_arg = cacher,
	};

	/* Only the first fill: before later ones all watchers were ended. */
	if (cacher->options.no_backfill || vdi_watch_cache_revision(&cacher->watch_cache) != 0)
		return false;
	if (vd_store_status_get(cacher->store, &store) != VD_OK || !store.progress)
		return false;
	span = (vd_rev) cacher->watch_cache.history.capacity_upper;
	if (store.remote && store.history == 0)
		span = VDI_MIN(span, VDI_BACKFILL_REMOTE_MAX);
	options.revision =
		VDI_MAX(VDI_MAX(store.history ? VDI_MAX(store.history, store.kept) : store.compacted, 1),
			reflector->pending_revision - span);
	if (options.revision >= reflector->pending_revision || !vdi_cacher_call_begin(cacher))
		return false;
	listed = listed_new(cacher);
	options.decoded_arg = listed;
	if (listed == NULL ||
	    vdi_watchchan_open(cacher->env, cacher->store, &options, &reflector->backfill, NULL) != VD_OK) {
		if (listed)
			listed_free(listed);
		else
			vdi_cacher_call_end(cacher);
		return false;
	}
	reflector->backfill_listed = listed;
	vdi_watch_cache_backfill_begin(&cacher->watch_cache, options.revision);
	reflector->backfill_due = vd_mono_add(vd_env_now(cacher->env), VDI_BACKFILL_SILENCE_MAX);
	vd_actor_wake(cacher->actor);
	return true;
}

void vdi_backfill_stop(struct vd_cacher *cacher)
{
	struct vdi_watchchan *backfill = cacher->reflector.backfill;

	cacher->reflector.backfill = NULL;
	if (backfill)
		vdi_watchchan_close(backfill, listed_free, cacher->reflector.backfill_listed);
}

static void finish(struct vd_cacher *cacher, bool is_complete)
{
	vdi_backfill_stop(cacher);
	vdi_reflector_fill(cacher, is_complete);
}

enum outcome { CONTINUES, COMPLETE, FAILED };

static enum outcome take(struct vd_cacher *cacher, struct vdi_watchchan_event *event)
{
	vd_rev until = cacher->reflector.pending_revision;

	if (event->type == VD_WATCH_BOOKMARK)
		return event->revision >= until ? COMPLETE : CONTINUES;
	if (event->type == VD_WATCH_ERROR)
		return FAILED;
	if (event->revision > until)
		return COMPLETE;
	return vdi_watch_cache_backfill(&cacher->watch_cache, event) == VD_OK ? CONTINUES : FAILED;
}

vd_mono vdi_backfill_run(struct vd_cacher *cacher)
{
	struct vdi_reflector	  *reflector = &cacher->reflector;
	struct vdi_watchchan_event events[TAKE_MAX];
	size_t			   count = 0;
	vd_status		   status;
	vd_mono			   now;

	while ((status = vdi_watchchan_take(reflector->backfill, events, TAKE_MAX, &count)) == VD_OK) {
		enum outcome outcome = CONTINUES;

		/* The wait has no limit while the store sends events, only while it is silent. */
		reflector->backfill_due = vd_mono_add(vd_env_now(cacher->env), VDI_BACKFILL_SILENCE_MAX);
		for (size_t i = 0; i < count; i++) {
			if (outcome == CONTINUES)
				outcome = take(cacher, &events[i]);
			vdi_watchchan_event_fini(&events[i]);
		}
		if (outcome != CONTINUES) {
			finish(cacher, outcome == COMPLETE);
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
