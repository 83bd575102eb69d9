/* Reads one object, from the cache or the store. */
#include "delegator.h"

#include "cacher.h"
#include "env.h"

struct get_call {
	struct vdi_fresh_waiter waiter;
	struct vd_cacher       *cacher;
	vd_object_fn		done;
	void		       *arg;
	size_t			key_size;
	char			key[];
};

static void get_from_cache(struct vd_cacher *cacher, struct vd_bytes key, vd_object_fn done, void *arg)
{
	vd_rev		  revision;
	struct vd_object *object = vdi_watch_cache_get(&cacher->watch_cache, key, &revision);
	struct vd_error	  error;

	if (object) {
		done(arg, VD_OK, object, revision, NULL);
		vd_object_unref(object);
		return;
	}
	vd_error_set(&error, VD_NOT_FOUND, "key not found");
	error.current = revision;
	done(arg, VD_NOT_FOUND, NULL, revision, &error);
}

static void get_is_fresh(struct vdi_fresh_waiter *waiter, vd_status status)
{
	struct get_call	 *call = VDI_CONTAINER_OF(waiter, struct get_call, waiter);
	struct vd_cacher *cacher = call->cacher;
	vd_rev		  revision = vdi_watch_cache_revision(&cacher->watch_cache);
	struct vd_error	  error;

	vdi_metric_observe_duration(cacher->metrics.read_wait,
				    vd_mono_since(vd_env_now(cacher->env), waiter->since));
	if (status == VD_OK) {
		get_from_cache(cacher, (struct vd_bytes) { call->key, call->key_size }, call->done,
			       call->arg);
	} else {
		if (status == VD_TOO_LARGE_REVISION)
			vdi_too_large_revision(&error, waiter->revision, revision);
		else
			vd_error_set(&error, status, "apiserver cacher is stopped");
		call->done(call->arg, status, NULL, revision, &error);
	}
	vdi_free(call);
	vdi_cacher_call_end(cacher);
}

static vd_status get_when_fresh(struct vd_cacher *cacher, struct vd_bytes key, vd_rev revision,
				vd_object_fn done, void *arg)
{
	struct get_call *call = vdi_alloc(sizeof *call + key.size);

	if (call == NULL)
		return VD_NOMEM;
	*call = (struct get_call) { .waiter = { .revision = revision, .done = get_is_fresh },
				    .cacher = cacher,
				    .done = done,
				    .arg = arg };
	call->key_size = key.size;
	memcpy(call->key, key.data, key.size);
	if (!vdi_cacher_call_begin(cacher)) {
		vdi_free(call);
		return VD_CLOSED;
	}
	if (vdi_watch_cache_wait(&cacher->watch_cache, &call->waiter)) {
		vdi_free(call);
		vdi_cacher_call_end(cacher);
		get_from_cache(cacher, key, done, arg);
	}
	return VD_OK;
}

struct store_get {
	struct vd_cacher *cacher;
	vd_object_fn	  done;
	void		 *arg;
};

static void store_answered_get(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			       const struct vd_error *error)
{
	struct store_get *call = arg;

	call->done(call->arg, status, object, revision, error);
	vdi_cacher_call_end(call->cacher);
	vdi_free(call);
}

static vd_status get_from_store(struct vd_cacher *cacher, struct vd_bytes key, vd_rev minimum,
				vd_object_fn done, void *arg)
{
	struct store_get *call = VDI_NEW(struct store_get);
	vd_status	  status;

	if (call == NULL)
		return VD_NOMEM;
	*call = (struct store_get) { cacher, done, arg };
	if (!vdi_cacher_call_begin(cacher)) {
		vdi_free(call);
		return VD_CLOSED;
	}
	status = vdi_storage_get(cacher->storage, key, minimum, store_answered_get, call);
	if (status != VD_OK) {
		vdi_cacher_call_end(cacher);
		vdi_free(call);
	}
	return status;
}

vd_status vd_cacher_get(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name,
			vd_rev revision, vd_object_fn done, void *arg)
{
	char		buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes key;
	struct vd_error error;
	vd_status	status;

	VDI_REQUIRE(cacher, NULL);
	VDI_REQUIRE(done, NULL);
	status = vdi_cacher_key(cacher, namespace_name, name, buffer, &key, &error);
	if (status == VD_OK && revision < VD_REVISION_UNSET)
		status = vd_error_set(&error, VD_INVALID_ARGUMENT,
				      "get: the revision is %lld, must be VD_REVISION_UNSET or more",
				      (long long) revision);
	if (status != VD_OK)
		return vdi_cacher_refuse(done, arg, &error);
	if (revision == VD_REVISION_UNSET || vdi_ready_check(&cacher->ready, NULL, NULL) != VD_OK)
		return get_from_store(cacher, key, VDI_MAX(revision, 0), done, arg);
	if (revision <= vdi_watch_cache_revision(&cacher->watch_cache)) {
		get_from_cache(cacher, key, done, arg);
		return VD_OK;
	}
	return get_when_fresh(cacher, key, revision, done, arg);
}
