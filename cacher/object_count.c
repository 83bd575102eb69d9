/* The number of keys is read from the store. Their size in bytes is that of the cached objects, which
 * upstream can only estimate. */
#include "object_count.h"

#include "cacher_state.h"
#include "env.h"

void vdi_object_count_init(struct vdi_object_count *count, const struct vd_env *env)
{
	*count = (struct vdi_object_count) { .due = vd_env_now(env) };
	atomic_init(&count->answered, false);
}

static void on_count(void *arg, vd_status status, int64_t count, const struct vd_error *error)
{
	struct vd_cacher *cacher = arg;

	(void) error; /* shown as -1; the storage metrics count the error */
	cacher->object_count.count = status == VD_OK ? count : -1;
	atomic_store_explicit(&cacher->object_count.answered, true, memory_order_release);
	vd_actor_wake(cacher->actor);
	vdi_cacher_call_end(cacher);
}

static void ask(struct vd_cacher *cacher)
{
	vd_status status;

	if (!vdi_cacher_call_begin(cacher))
		return;
	cacher->object_count.is_running = true;
	atomic_store_explicit(&cacher->object_count.answered, false, memory_order_relaxed);
	status = vdi_storage_count(cacher->storage, on_count, cacher);
	if (status != VD_OK)
		on_count(cacher, status, -1, NULL);
}

static void show(struct vd_cacher *cacher)
{
	struct vdi_watch_cache *cache = &cacher->watch_cache;
	int64_t			bytes = -1;

	if (vdi_ready_check(&cacher->ready, NULL, NULL) == VD_OK) {
		vdi_lock_acquire(&cache->lock);
		bytes = cache->store.bytes;
		vdi_lock_release(&cache->lock);
	}
	vdi_storage_metrics_objects(cacher->storage_metrics, cacher->object_count.count,
				    cacher->object_count.count < 0 ? -1 : bytes);
}

vd_mono vdi_object_count_run(struct vd_cacher *cacher)
{
	struct vdi_object_count *count = &cacher->object_count;
	vd_mono			 now = vd_env_now(cacher->env);

	if (count->is_running && atomic_load_explicit(&count->answered, memory_order_acquire)) {
		count->is_running = false;
		show(cacher);
		count->due = vd_mono_add(
			now,
			(vd_dur) { VDI_OBJECT_COUNT_PERIOD.ns +
				   (int64_t) vd_env_random_below(
					   cacher->env, (uint64_t) VDI_OBJECT_COUNT_PERIOD.ns * 6 / 5) });
	}
	if (!count->is_running && count->due.ns <= now.ns)
		ask(cacher);
	return count->is_running ? VD_NEVER : count->due;
}
