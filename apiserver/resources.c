/* The collection of served kinds. It stays ordered by group and version, so that discovery can walk it. */
#include "resources.h"

#include <stdio.h>


/* Where an entry of this group and version goes: behind its likes. */
static size_t place_of(const struct vdi_resources *resources, const struct vdi_resource *resource)
{
	size_t at = resources->count;

	while (at > 0) {
		int order = strcmp(resources->items[at - 1].group, resource->group);

		if (order == 0)
			order = strcmp(resources->items[at - 1].version, resource->version);
		if (order <= 0)
			break;
		at--;
	}
	return at;
}

vd_status vdi_resources_init(struct vdi_resources *resources)
{
	memset(resources, 0, sizeof *resources);
	if (!vdi_grow((void **) &resources->items, &resources->capacity, vdi_resources_built_in_count, sizeof *resources->items))
		return VD_NOMEM;
	for (size_t i = 0; i < vdi_resources_built_in_count; i++) {
		size_t at = place_of(resources, &vdi_resources_built_in[i]);

		memmove(resources->items + at + 1, resources->items + at, (resources->count - at) * sizeof *resources->items);
		resources->items[at] = vdi_resources_built_in[i];
		resources->count++;
	}
	return VD_OK;
}

void vdi_resources_fini(struct vdi_resources *resources)
{
	for (size_t i = 0; i < resources->owned_count; i++)
		vdi_free(resources->owned[i]);
	vdi_free(resources->owned);
	vdi_free(resources->items);
	memset(resources, 0, sizeof *resources);
}

struct vdi_resource *vdi_resources_find(const struct vdi_resources *resources, struct vd_bytes group, struct vd_bytes version,
					struct vd_bytes plural)
{
	for (size_t i = 0; i < resources->count; i++) {
		struct vdi_resource *item = &resources->items[i];

		if (vd_bytes_equal(vd_bytes_of(item->plural), plural) && vd_bytes_equal(vd_bytes_of(item->group), group) &&
		    vd_bytes_equal(vd_bytes_of(item->version), version))
			return item;
	}
	return NULL;
}

bool vdi_resources_has_version(const struct vdi_resources *resources, struct vd_bytes group, struct vd_bytes version)
{
	for (size_t i = 0; i < resources->count; i++)
		if (vd_bytes_equal(vd_bytes_of(resources->items[i].group), group) &&
		    (version.size == 0 || vd_bytes_equal(vd_bytes_of(resources->items[i].version), version)))
			return true;
	return false;
}

const char *vdi_resource_name(const struct vdi_resource *resource, char buffer[VDI_RESOURCE_NAME_MAX])
{
	(void) snprintf(buffer, VDI_RESOURCE_NAME_MAX, "%s%s%s", resource->plural, *resource->group ? "." : "", resource->group);
	return buffer;
}

const char *vdi_resource_api_version(const struct vdi_resource *resource, char buffer[VDI_RESOURCE_NAME_MAX])
{
	(void) snprintf(buffer, VDI_RESOURCE_NAME_MAX, "%s%s%s", resource->group, *resource->group ? "/" : "", resource->version);
	return buffer;
}
