/* The cacher's references, its outstanding calls into the store, and the keys of its objects. */
#include "cacher_state.h"

/* ---- References and calls ---- */

struct vd_cacher *vdi_cacher_ref(struct vd_cacher *cacher)
{
	vdi_watchers_ref(&cacher->watchers);
	return cacher;
}

void vdi_cacher_unref(struct vd_cacher *cacher)
{
	vdi_watchers_unref(&cacher->watchers);
}

bool vdi_cacher_call_begin(struct vd_cacher *cacher)
{
	bool may;

	vdi_lock_acquire(&cacher->watchers.lock);
	may = !atomic_load(&cacher->is_stopping);
	cacher->call_count += may;
	vdi_lock_release(&cacher->watchers.lock);
	return may;
}

void vdi_cacher_call_end(struct vd_cacher *cacher)
{
	vdi_cacher_ref(cacher); /* it may finish as soon as the lock is released */
	vdi_lock_acquire(&cacher->watchers.lock);
	cacher->call_count--;
	if (atomic_load(&cacher->is_stopping))
		vd_actor_wake(cacher->actor);
	vdi_lock_release(&cacher->watchers.lock);
	vdi_cacher_unref(cacher);
}

/* ---- Names ---- */

vd_status vdi_cacher_check_scope(struct vd_cacher *cacher, struct vd_bytes namespace_name,
				 struct vd_bytes name, struct vd_error *reterr)
{
	const char *resource = cacher->options.resource;

	VDI_REQUIRE_BYTES(namespace_name, reterr);
	VDI_REQUIRE_BYTES(name, reterr);
	/* A request for a namespace object has its own name as namespace. */
	if (cacher->options.cluster_scoped && namespace_name.size && !vd_bytes_equal(namespace_name, name))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "%s are not namespaced: the namespace must be empty, not \"%.*s\"",
				    resource, (int) VDI_MIN(namespace_name.size, (size_t) 63),
				    (const char *) namespace_name.data);
	return VD_OK;
}

vd_status vdi_cacher_key(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name,
			 char *buffer, struct vd_bytes *ret_key, struct vd_error *reterr)
{
	bool is_clustered = cacher->options.cluster_scoped;

	VDI_TRY(vdi_cacher_check_scope(cacher, namespace_name, name, reterr));
	if (!is_clustered && namespace_name.size == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "%s are namespaced: the namespace of \"%.*s\" is missing",
				    cacher->options.resource, (int) VDI_MIN(name.size, (size_t) 100),
				    (const char *) name.data);
	return vdi_storage_key(cacher->storage, is_clustered ? VD_BYTES_NONE : namespace_name, name, buffer,
			       ret_key, reterr);
}

vd_status vdi_cacher_refuse(vd_object_fn done, void *arg, const struct vd_error *error)
{
	done(arg, error->code, NULL, 0, error);
	return VD_OK;
}
