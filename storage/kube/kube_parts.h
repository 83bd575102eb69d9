/* Objects that belong to a client and are made at their first use: the client does not know them, and folders
 * above it can have some (cacher/controller keeps its list of shared informers so).
 *
 * Any thread. A part lives until the client's memory is freed, after all members were removed. */
#ifndef VDI_KUBE_PARTS_H
#define VDI_KUBE_PARTS_H

#include <vedette/kube.h>

#include "base.h"
#include "lock.h"

enum vdi_kube_part_name {
	VDI_KUBE_PART_CLUSTER,
	VDI_KUBE_PART_DISCOVERY,
	VDI_KUBE_PART_INFORMERS,
	VDI_KUBE_PART_COUNT
};

struct vdi_kube_parts {
	struct vdi_lock lock; /* VDI_LOCK_KUBE_PARTS */
	struct {
		void *part; /* under lock */
		void (*free)(void *part);
	} items[VDI_KUBE_PART_COUNT];
};

void vdi_kube_parts_init(struct vdi_kube_parts *parts);
void vdi_kube_parts_fini(struct vdi_kube_parts *parts);
/* The parts of a client. Defined by the client. */
struct vdi_kube_parts *vdi_kube_parts_of(struct vd_kube *kube);

/* Returns the part; the first call makes it, under the parts' lock. Errors are those of make. */
VDI_MUST_USE vd_status vdi_kube_parts_get(struct vd_kube *kube, enum vdi_kube_part_name name,
					  vd_status (*make)(struct vd_kube *kube, void **ret_part),
					  void (*free_part)(void *part), void **ret_part);

#endif
