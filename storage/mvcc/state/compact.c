#include "compact.h"

static struct vdi_mvcc_log_chunk *take(struct vdi_compactor	  *compactor,
				       struct vdi_compact_waiter **ret_waiters)
{
	struct vdi_mvcc_log_chunk *chunk;

	vdi_lock_acquire(&compactor->lock);
	chunk = compactor->first;
	*ret_waiters = NULL;
	if (chunk) {
		compactor->first = chunk->next;
		if (compactor->first == NULL)
			compactor->last = &compactor->first;
	} else {
		*ret_waiters = compactor->waiters;
		compactor->waiters = NULL;
	}
	vdi_lock_release(&compactor->lock);
	return chunk;
}

static void notify(struct vdi_compact_waiter *waiters)
{
	while (waiters) {
		struct vdi_compact_waiter *next = waiters->next;

		waiters->done(waiters);
		waiters = next;
	}
}

static void compactor_run(void *arg)
{
	struct vdi_compactor	  *compactor = arg;
	struct vdi_compact_waiter *waiters;

	for (int i = 0; i < VDI_COMPACT_CHUNKS_PER_RUN; i++) {
		struct vdi_mvcc_log_chunk *chunk = take(compactor, &waiters);

		notify(waiters);
		if (chunk == NULL)
			return;
		vdi_mvcc_log_chunk_unref(chunk);
	}
	vd_actor_wake(compactor->actor);
}

vd_status vdi_compactor_init(struct vdi_compactor *compactor, const struct vd_env *env)
{
	struct vd_actor_options options = { .name = "mvcc compactor",
					    .run = compactor_run,
					    .arg = compactor };

	VDI_TRY(vd_actor_new(env, &options, &compactor->actor));
	compactor->last = &compactor->first;
	vdi_lock_init(&compactor->lock, VDI_LOCK_QUEUE);
	return VD_OK;
}

void vdi_compactor_add(struct vdi_compactor *compactor, struct vdi_mvcc_log_chunk *chunks,
		       struct vdi_compact_waiter *waiter)
{
	vdi_lock_acquire(&compactor->lock);
	*compactor->last = chunks;
	while (*compactor->last)
		compactor->last = &(*compactor->last)->next;
	if (waiter && compactor->first) {
		waiter->next = compactor->waiters;
		compactor->waiters = waiter;
		waiter = NULL;
	}
	vdi_lock_release(&compactor->lock);
	if (waiter)
		waiter->done(waiter);
	else
		vd_actor_wake(compactor->actor);
}

void vdi_compactor_close(struct vdi_compactor *compactor, void (*done)(void *arg), void *arg)
{
	vd_actor_close(compactor->actor, done, arg);
}

void vdi_compactor_fini(struct vdi_compactor *compactor)
{
	struct vdi_compact_waiter *waiters;
	struct vdi_mvcc_log_chunk *chunk;

	do {
		chunk = take(compactor, &waiters);
		vdi_mvcc_log_chunk_unref(chunk);
		notify(waiters);
	} while (chunk);
	vdi_lock_fini(&compactor->lock);
}
