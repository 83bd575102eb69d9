/* Requests of this room to a Kubernetes API server: through a client, or to a peer of the tests. */
#ifndef VDI_KUBE_REQUESTS_H
#define VDI_KUBE_REQUESTS_H

#include <vedette/kube.h>
#include <vedette/kube_helpers.h>
#include <vedette/leader_election.h>

#include "base.h"

struct vdi_kube_requests {
	const struct vd_env *env;
	/* The contract of vd_kube_request. */
	vd_status (*send)(void *peer, const struct vd_kube_call *call, vd_kube_answer_fn done, void *arg);
	void *peer;
};

struct vdi_kube_requests vdi_kube_requests_of(struct vd_kube *kube);

#define VDI_KUBE_PATH_MAX 2048

/* Writes the path of an object (name empty: of the collection), with a subresource (NULL: none). VD_TOO_BIG:
 * longer than VDI_KUBE_PATH_MAX. */
VDI_MUST_USE vd_status vdi_kube_object_path(const struct vd_kube_resource *resource,
					    struct vd_bytes namespace_name, struct vd_bytes name,
					    const char *subresource, char path[VDI_KUBE_PATH_MAX]);

/* As vd_lease_lock_new, vd_kube_update and vd_kube_apply. */
VDI_MUST_USE vd_status vdi_lease_lock_new(const struct vdi_kube_requests *requests,
					  const char *namespace_name, const char *name,
					  struct vd_leader_lock **ret_lock, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_kube_update(const struct vdi_kube_requests *requests,
				       const struct vd_kube_update *update, vd_kube_answer_fn done,
				       void *arg);
VDI_MUST_USE vd_status vdi_kube_apply(const struct vdi_kube_requests *requests,
				      const struct vd_kube_apply *apply, vd_kube_answer_fn done, void *arg);

#endif
