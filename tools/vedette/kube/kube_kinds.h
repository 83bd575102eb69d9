/* The kinds of a Kubernetes endpoint that can be listed and watched, and the key prefixes of their objects.
 * One thread; blocks. */
#ifndef VDI_KUBE_KINDS_H
#define VDI_KUBE_KINDS_H

#include "http_client.h"
#include "kube_object.h"

struct vdi_kube_kind {
	char path[640]; /* "/apis/apps/v1/deployments" */
	char name[512]; /* "deployments.apps" */
	char kind[256];
	char api_version[512];
	char prefix[VDI_KUBE_PREFIX_MAX]; /* "/registry/deployments/" */
};

struct vdi_kube_kinds {
	struct vdi_kube_kind *items; /* by prefix */
	size_t		      count;
	size_t		      capacity;
	char		      skipped[256]; /* groups that do not answer, for a message; "": none */
};

/* Loads the kinds in the server's discovery; of several versions the server's preferred one, of several
 * groups with the same objects (events) the first. wanted: only these, as typed ("po", "deployments.apps");
 * count 0: all. VD_NOT_FOUND names a missing kind; errors as of vdi_http_get_ok. */
VDI_MUST_USE vd_status vdi_kube_kinds_load(struct vdi_http_client *client, const char *const *wanted,
					   size_t wanted_count, struct vdi_kube_kinds *ret_kinds,
					   struct vd_error *reterr);
void		       vdi_kube_kinds_fini(struct vdi_kube_kinds *kinds);

#endif
