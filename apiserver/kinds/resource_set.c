#include "resource_set.h"

vd_status vdi_resource_set_new(const struct vdi_resources *resources,
			       struct vdi_resource_set **ret_resource_set, struct vd_error *reterr)
{
	struct vdi_resource_set *resource_set = VDI_NEW(struct vdi_resource_set);
	vd_status status = resource_set ? vdi_resources_copy(&resource_set->resources, resources) : VD_NOMEM;

	if (resource_set)
		atomic_init(&resource_set->users, 1);
	if (status == VD_OK)
		status = vdi_documents_init(&resource_set->documents, &resource_set->resources);
	if (status != VD_OK) {
		(void) vdi_resource_set_unref(resource_set);
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	resource_set->namespaces = vdi_resources_find(&resource_set->resources, VD_BYTES_NONE,
						      vd_bytes_of("v1"), vd_bytes_of("namespaces"));
	*ret_resource_set = resource_set;
	return VD_OK;
}

struct vdi_resource_set *vdi_resource_set_ref(struct vdi_resource_set *resource_set)
{
	if (resource_set)
		atomic_fetch_add_explicit(&resource_set->users, 1, memory_order_relaxed);
	return resource_set;
}

struct vdi_resource_set *vdi_resource_set_unref(struct vdi_resource_set *resource_set)
{
	if (resource_set == NULL ||
	    atomic_fetch_sub_explicit(&resource_set->users, 1, memory_order_acq_rel) != 1)
		return NULL;
	vdi_documents_fini(&resource_set->documents);
	vdi_resources_fini(&resource_set->resources);
	vdi_free(resource_set);
	return NULL;
}
