/* Requests by a client, and paths of objects. */
#include <stdio.h>

#include "kube_client.h"
#include "kube_requests.h"

static vd_status send_by_client(void *peer, const struct vd_kube_call *call, vd_kube_answer_fn done,
				void *arg)
{
	return vd_kube_request(peer, call, done, arg);
}

struct vdi_kube_requests vdi_kube_requests_of(struct vd_kube *kube)
{
	return (struct vdi_kube_requests) { vdi_kube_env(kube), send_by_client, kube };
}

vd_status vdi_kube_object_path(const struct vd_kube_resource *resource, struct vd_bytes namespace_name,
			       struct vd_bytes name, const char *subresource, char path[VDI_KUBE_PATH_MAX])
{
	size_t size = vd_kube_path(resource, namespace_name, name, path, VDI_KUBE_PATH_MAX);
	int    more;

	if (size == 0)
		return VD_INVALID_ARGUMENT;
	if (size >= VDI_KUBE_PATH_MAX)
		return VD_TOO_BIG;
	if (subresource == NULL)
		return VD_OK;
	more = snprintf(path + size, VDI_KUBE_PATH_MAX - size, "/%s", subresource);
	return more < 0 || (size_t) more >= VDI_KUBE_PATH_MAX - size ? VD_TOO_BIG : VD_OK;
}

vd_status vd_lease_lock_new(struct vd_kube *kube, const char *namespace_name, const char *name,
			    struct vd_leader_lock **ret_lock, struct vd_error *reterr)
{
	struct vdi_kube_requests requests;

	VDI_REQUIRE(kube, reterr);
	requests = vdi_kube_requests_of(kube);
	return vdi_lease_lock_new(&requests, namespace_name, name, ret_lock, reterr);
}

vd_status vd_kube_update(struct vd_kube *kube, const struct vd_kube_update *update, vd_kube_answer_fn done,
			 void *arg)
{
	struct vdi_kube_requests requests;

	VDI_REQUIRE(kube, NULL);
	requests = vdi_kube_requests_of(kube);
	return vdi_kube_update(&requests, update, done, arg);
}

vd_status vd_kube_apply(struct vd_kube *kube, const struct vd_kube_apply *apply, vd_kube_answer_fn done,
			void *arg)
{
	struct vdi_kube_requests requests;

	VDI_REQUIRE(kube, NULL);
	requests = vdi_kube_requests_of(kube);
	return vdi_kube_apply(&requests, apply, done, arg);
}
