/* The list is a member of the client, whose run takes the queued informers one by one. A step may free its
 * informer, which is in no queue then: is_closing is set together with the last entry. */
#include "kube_informer_state.h"
#include "kube_parts.h"

static struct vd_kube_informer *take_queued(struct vdi_kube_informers *informers)
{
	struct vd_kube_informer *informer;

	vdi_lock_acquire(&informers->lock);
	informer = STAILQ_FIRST(&informers->queue);
	if (informer) {
		STAILQ_REMOVE_HEAD(&informers->queue, queue_node);
		informer->is_queued = false;
	}
	vdi_lock_release(&informers->lock);
	return informer;
}

static vd_mono on_run(struct vdi_kube_member *member, vd_mono now)
{
	struct vdi_kube_informers *informers = VDI_CONTAINER_OF(member, struct vdi_kube_informers, member);
	struct vd_kube_informer	  *informer;

	while ((informer = take_queued(informers)) != NULL)
		vdi_kube_informer_step(informer);
	if (LIST_EMPTY(&informers->shared))
		return VD_NEVER;
	if (now.ns >= informers->check_at.ns) {
		if (informers->check_at.ns)
			vdi_kube_shared_check(informers);
		informers->check_at = vd_mono_add(now, VDI_KUBE_INFORMER_READ);
	}
	return informers->check_at;
}

static void on_close(struct vdi_kube_member *member)
{
	vdi_kube_member_remove(member);
}

static vd_status informers_new(struct vd_kube *kube, void **ret_part)
{
	struct vdi_kube_informers *informers = VDI_NEW(struct vdi_kube_informers);
	vd_status		   status;

	if (informers == NULL)
		return VD_NOMEM;
	informers->kube = kube;
	informers->store_open = vd_store_open_kube;
	informers->member.run = on_run;
	informers->member.close = on_close;
	LIST_INIT(&informers->shared);
	STAILQ_INIT(&informers->queue);
	vdi_lock_init(&informers->lock, VDI_LOCK_KUBE_PARTS);
	status = vdi_kube_member_add(kube, &informers->member);
	if (status == VD_OK) {
		*ret_part = informers;
		return VD_OK;
	}
	vdi_lock_fini(&informers->lock);
	vdi_free(informers);
	return status;
}

static void informers_free(void *part)
{
	struct vdi_kube_informers *informers = part;

	vdi_lock_fini(&informers->lock);
	vdi_free(informers);
}

vd_status vdi_kube_informers_of(struct vd_kube *kube, struct vdi_kube_informers **ret_informers)
{
	void *part;

	VDI_TRY(vdi_kube_parts_get(kube, VDI_KUBE_PART_INFORMERS, informers_new, informers_free, &part));
	*ret_informers = part;
	return VD_OK;
}

void vdi_kube_informers_queue(struct vd_kube_informer *informer, bool *flag)
{
	struct vdi_kube_informers *informers = informer->informers;

	vdi_lock_acquire(&informers->lock);
	if (flag)
		*flag = true;
	if (!informer->is_queued) {
		informer->is_queued = true;
		STAILQ_INSERT_TAIL(&informers->queue, informer, queue_node);
	}
	vdi_kube_member_wake(&informers->member);
	vdi_lock_release(&informers->lock);
}

void vdi_kube_informers_wake(struct vdi_kube_informers *informers)
{
	vdi_kube_member_wake(&informers->member);
}
