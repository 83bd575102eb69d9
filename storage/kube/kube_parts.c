/* One lock for all parts, because a part is requested much more rarely than used. */
#include "kube_parts.h"

void vdi_kube_parts_init(struct vdi_kube_parts *parts)
{
	memset(parts, 0, sizeof *parts);
	vdi_lock_init(&parts->lock, VDI_LOCK_KUBE_PARTS);
}

void vdi_kube_parts_fini(struct vdi_kube_parts *parts)
{
	for (size_t i = 0; i < VDI_KUBE_PART_COUNT; i++)
		if (parts->items[i].part)
			parts->items[i].free(parts->items[i].part);
	vdi_lock_fini(&parts->lock);
}

vd_status vdi_kube_parts_get(struct vd_kube *kube, enum vdi_kube_part_name name,
			     vd_status (*make)(struct vd_kube *kube, void **ret_part),
			     void (*free_part)(void *part), void **ret_part)
{
	struct vdi_kube_parts *parts = vdi_kube_parts_of(kube);
	vd_status	       status = VD_OK;

	vdi_lock_acquire(&parts->lock);
	if (parts->items[name].part == NULL) {
		status = make(kube, &parts->items[name].part);
		parts->items[name].free = free_part;
	}
	if (status == VD_OK)
		*ret_part = parts->items[name].part;
	vdi_lock_release(&parts->lock);
	return status;
}
