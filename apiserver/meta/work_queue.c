#include "work_queue.h"

#include "env.h"
#include "wait.h"

static __thread bool is_working;

bool vdi_work_is_current(void)
{
	return is_working;
}

/* Runs on its own thread, so it may continue while there is work. */
static void run(void *arg)
{
	struct vdi_work_queue *queue = arg;
	struct vdi_work	      *work;

	is_working = true;
	while (vdi_queue_shared_take(&queue->queue, &work, 1))
		work->run(work);
	is_working = false;
	vdi_alloc_trim(); /* parsed trees take about 40 times their text */
}

vd_status vdi_work_queue_init(struct vdi_work_queue *work, const struct vd_env *env, const char *name)
{
	struct vdi_queue_options queue = { .name = name,
					   .when_full = "the request is answered 429",
					   .capacity = VDI_WORK_COUNT_MAX,
					   .item_size = sizeof(struct vdi_work *) };
	struct vd_actor_options	 worker = { .name = name, .run = run, .arg = work, .blocking = true };

	VDI_TRY(vdi_queue_shared_init(&work->queue, &queue, vdi_env_metrics(env)));
	work->env = env;
	for (size_t i = 0; i < VDI_WORK_THREADS; i++)
		VDI_TRY(vd_actor_new(env, &worker, &work->workers[i]));
	return VD_OK;
}

void vdi_work_queue_fini(struct vdi_work_queue *work)
{
	if (work->env == NULL)
		return;
	for (size_t i = 0; i < VDI_WORK_THREADS; i++)
		if (work->workers[i])
			vdi_wait_for_actor_close(work->env, work->workers[i]);
	vdi_queue_shared_fini(&work->queue);
	memset(work, 0, sizeof *work);
}

vd_status vdi_work_queue_post(struct vdi_work_queue *queue, struct vdi_work *work)
{
	VDI_TRY(vdi_queue_shared_put(&queue->queue, &work));
	for (size_t i = 0; i < VDI_WORK_THREADS; i++)
		vd_actor_wake(queue->workers[i]);
	return VD_OK;
}
