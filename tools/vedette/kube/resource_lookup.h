/* Finds the server's resource for a typed name ("po", "pods", "deployments.apps", "deployments.v1.apps",
 * "Pod") with discovery: the aggregated documents (two requests), otherwise the unaggregated ones. One
 * thread; blocks. */
#ifndef VDI_RESOURCE_LOOKUP_H
#define VDI_RESOURCE_LOOKUP_H

#include "http_client.h"

#define VDI_RESOURCE_TEXT_MAX 256

struct vdi_resource_name {
	char group[VDI_RESOURCE_TEXT_MAX]; /* "" for core */
	char version[VDI_RESOURCE_TEXT_MAX];
	char plural[VDI_RESOURCE_TEXT_MAX];
	char singular[VDI_RESOURCE_TEXT_MAX];
	bool namespaced;
};

/* VD_NOT_FOUND: the server has no such resource; errors as of vdi_http_get_ok. */
VDI_MUST_USE vd_status vdi_resource_lookup(struct vdi_http_client *client, const char *typed,
					   struct vdi_resource_name *ret_resource, struct vd_error *reterr);
/* "pod/web-1", "deployment.apps/web" */
void vdi_resource_print_name(const struct vdi_resource_name *resource, struct vd_bytes name);

#endif
