/* The samples of a period are in a ring; the sample to be overwritten next is one period old. */
#include "auto_compaction.h"

#include <stdatomic.h>

#include "env.h"
#include "wait.h"

#define SAMPLES_MAX 4096
#define SAMPLES_PER_INTERVAL 10

struct vdi_auto_compaction {
	const struct vd_env		  *env;
	struct vdi_auto_compaction_options options;
	struct vd_actor			  *actor;
	/* Time between samples, or between compactions by revision. */
	vd_dur	turn;
	size_t	ring_size;
	vd_rev *ring;

	/* Actor only. */
	uint64_t sampled;
	vd_mono	 due;

	/* Any thread. */
	atomic_bool	 is_compacting;
	_Atomic uint32_t references; /* 1 until it is freed, 1 for a compaction in progress */
};

static void unref(struct vdi_auto_compaction *compaction)
{
	if (atomic_fetch_sub_explicit(&compaction->references, 1, memory_order_acq_rel) != 1)
		return;
	vdi_free(compaction->ring);
	vdi_free(compaction);
}

static void compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct vdi_auto_compaction *compaction = arg;

	(void) revision;
	if (status != VD_OK && status != VD_EXPIRED && status != VD_CLOSED)
		vdi_log(compaction->env, VD_LOG_WARNING, "etcd", "automatic compaction failed: %s",
			error ? error->message : vd_status_sentence(status));
	atomic_store(&compaction->is_compacting, false);
	unref(compaction);
}

static void compact(struct vdi_auto_compaction *compaction, const struct vd_store_status *store,
		    vd_rev revision)
{
	if (revision <= 0 || revision <= store->compacted ||
	    atomic_exchange(&compaction->is_compacting, true))
		return;
	atomic_fetch_add_explicit(&compaction->references, 1, memory_order_relaxed);
	if (vd_store_compact(compaction->options.store, revision, false, compacted, compaction) == VD_OK)
		return;
	atomic_store(&compaction->is_compacting, false);
	unref(compaction);
}

static void run(void *arg)
{
	struct vdi_auto_compaction *compaction = arg;
	vd_mono			    now = vd_env_now(compaction->env);
	struct vd_store_status	    store;

	if (compaction->due.ns <= now.ns && vd_store_status_get(compaction->options.store, &store) == VD_OK) {
		compaction->due = vd_mono_add(now, compaction->turn);
		if (compaction->options.period.ns == 0) {
			compact(compaction, &store, store.current - compaction->options.revisions);
		} else {
			vd_rev *sample = &compaction->ring[compaction->sampled % compaction->ring_size];

			if (compaction->sampled >= compaction->ring_size &&
			    compaction->sampled % SAMPLES_PER_INTERVAL == 0)
				compact(compaction, &store, *sample);
			*sample = store.current;
			compaction->sampled++;
		}
	}
	vd_actor_set_timer(compaction->actor, VDI_MAX(compaction->due.ns, now.ns) == now.ns ?
						      vd_mono_add(now, VD_MS(100)) :
						      compaction->due);
}

vd_status vdi_auto_compaction_new(const struct vd_env *env, const struct vdi_auto_compaction_options *options,
				  struct vdi_auto_compaction **ret_compaction)
{
	struct vdi_auto_compaction *compaction = VDI_NEW(struct vdi_auto_compaction);
	struct vd_actor_options	    actor = { .name = "etcd compaction", .run = run, .arg = compaction };
	int64_t			    interval_ns = VDI_MIN(options->period.ns, VD_SECONDS(3600).ns);
	vd_status		    status = VD_NOMEM;

	if (compaction == NULL)
		return VD_NOMEM;
	compaction->env = env;
	compaction->references = 1;
	compaction->options = *options;
	compaction->turn = options->interval.ns ? options->interval : VD_SECONDS(300);
	if (options->period.ns) {
		compaction->turn.ns = VDI_MAX(interval_ns / SAMPLES_PER_INTERVAL, VD_MS(1).ns);
		/* A period of many hours has more samples than fit: sample less often. */
		while (options->period.ns / compaction->turn.ns > SAMPLES_MAX)
			compaction->turn.ns *= 2;
		compaction->ring_size = (size_t) VDI_MAX(options->period.ns / compaction->turn.ns, 1);
	}
	compaction->ring = vdi_calloc(compaction->ring_size + 1, sizeof compaction->ring[0]);
	if (compaction->ring)
		status = vd_actor_new(env, &actor, &compaction->actor);
	if (status != VD_OK) {
		vdi_free(compaction->ring);
		vdi_free(compaction);
		return status;
	}
	compaction->due =
		options->period.ns ? vd_env_now(env) : vd_mono_add(vd_env_now(env), compaction->turn);
	vd_actor_wake(compaction->actor);
	*ret_compaction = compaction;
	return VD_OK;
}

struct vdi_auto_compaction *vdi_auto_compaction_free(struct vdi_auto_compaction *compaction)
{
	if (compaction == NULL)
		return NULL;
	vdi_wait_for_actor_close(compaction->env, compaction->actor);
	unref(compaction);
	return NULL;
}
