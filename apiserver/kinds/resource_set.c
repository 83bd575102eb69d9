#include "resource_set.h"

vd_status vdi_served_new(const struct vdi_resources *resources, struct vdi_served **ret_served,
			 struct vd_error *reterr)
{
	struct vdi_served *served = VDI_NEW(struct vdi_served);
	vd_status	   status = served ? vdi_resources_copy(&served->resources, resources) : VD_NOMEM;

	if (served)
		atomic_init(&served->users, 1);
	if (status == VD_OK)
		status = vdi_documents_init(&served->documents, &served->resources);
	if (status != VD_OK) {
		(void) vdi_served_unref(served);
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	served->namespaces = vdi_resources_find(&served->resources, VD_BYTES_NONE, vd_bytes_of("v1"),
						vd_bytes_of("namespaces"));
	*ret_served = served;
	return VD_OK;
}

struct vdi_served *vdi_served_ref(struct vdi_served *served)
{
	if (served)
		atomic_fetch_add_explicit(&served->users, 1, memory_order_relaxed);
	return served;
}

struct vdi_served *vdi_served_unref(struct vdi_served *served)
{
	if (served == NULL || atomic_fetch_sub_explicit(&served->users, 1, memory_order_acq_rel) != 1)
		return NULL;
	vdi_documents_fini(&served->documents);
	vdi_resources_fini(&served->resources);
	vdi_free(served);
	return NULL;
}
