/* The kinds of a Kubernetes endpoint that can be listed and watched, and the key prefixes of their objects.
 * One thread; blocks. */
#ifndef VDI_ENDPOINT_KINDS_H
#define VDI_ENDPOINT_KINDS_H

#include "kube_object.h"
#include "kube_session.h"

struct vdi_endpoint_kind {
	char path[640]; /* "/apis/apps/v1/deployments" */
	char name[512]; /* "deployments.apps" */
	char kind[256];
	char api_version[512];
	char prefix[VDI_KUBE_PREFIX_MAX]; /* "/registry/deployments/" */
};

struct vdi_endpoint_kinds {
	struct vdi_endpoint_kind *items; /* by prefix */
	size_t			  count;
	size_t			  capacity;
	char			  skipped[256]; /* groups that do not answer, for a message; "": none */
};

/* Loads the kinds in the server's discovery; of several versions the server's preferred one, of several
 * groups with the same objects (events) the first. wanted: only these, as typed ("po", "deployments.apps");
 * count 0: all. VD_NOT_FOUND names a missing kind; errors as of vdi_kube_session_request. */
VDI_MUST_USE vd_status vdi_endpoint_kinds_load(struct vdi_kube_session *session, const char *const *wanted,
					       size_t wanted_count, struct vdi_endpoint_kinds *ret_kinds,
					       struct vd_error *reterr);
void		       vdi_endpoint_kinds_fini(struct vdi_endpoint_kinds *kinds);

#endif
