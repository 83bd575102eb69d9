/* Writes pass through to the store. Update and delete take the cached object as a first guess of the current
 * one. */
#include "cacher.h"
#include "wait.h"

struct write_call {
	struct vd_cacher *cacher;
	struct vd_object *suggestion;
	vd_update_fn	  update;
	vd_validate_fn	  validate;
	vd_object_fn	  done;
	void		 *arg; /* of all three */
};

static vd_status write_update(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			      int64_t *ret_ttl_s, struct vd_error *reterr)
{
	struct write_call *call = arg;

	return call->update(call->arg, current, ret_value, ret_ttl_s, reterr);
}

static vd_status write_validate(void *arg, struct vd_object *current, struct vd_error *reterr)
{
	struct write_call *call = arg;

	return call->validate(call->arg, current, reterr);
}

static void write_answered(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			   const struct vd_error *error)
{
	struct write_call *call = arg;
	struct vd_cacher  *cacher = call->cacher;

	call->done(call->arg, status, object, revision, error);
	vd_object_unref(call->suggestion);
	vdi_free(call);
	vdi_cacher_call_end(cacher);
}

static vd_status begin(struct vd_cacher *cacher, vd_object_fn done, void *arg, struct write_call **ret_call)
{
	struct write_call *call = VDI_NEW(struct write_call);

	if (call == NULL)
		return VD_NOMEM;
	*call = (struct write_call) { .cacher = cacher, .done = done, .arg = arg };
	if (!vdi_cacher_call_begin(cacher)) {
		vdi_free(call);
		return VD_CLOSED;
	}
	*ret_call = call;
	return VD_OK;
}

static vd_status finish(struct write_call *call, vd_status status)
{
	struct vd_cacher *cacher = call->cacher;

	if (status != VD_OK) {
		vd_object_unref(call->suggestion);
		vdi_free(call);
		vdi_cacher_call_end(cacher);
	}
	return status;
}

static vd_status check_preconditions(const struct vd_preconditions *preconditions, struct vd_error *reterr)
{
	if (preconditions) {
		VDI_REQUIRE_BYTES(preconditions->uid, reterr);
		VDI_REQUIRE_BYTES(preconditions->revision, reterr);
	}
	return VD_OK;
}

static struct vd_object *suggest(struct vd_cacher *cacher, struct vd_bytes key)
{
	if (vdi_ready_check(&cacher->ready, NULL, NULL) != VD_OK)
		return NULL;
	return vdi_watch_cache_get(&cacher->watch_cache, key, NULL);
}

vd_status vd_cacher_create(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name,
			   struct vd_bytes value, int64_t ttl_s, vd_object_fn done, void *arg)
{
	return vdi_cacher_create_beside(cacher, NULL, namespace_name, name, value, ttl_s, done, arg);
}

vd_status vdi_cacher_create_beside(struct vd_cacher *cacher, struct vd_object *guard,
				   struct vd_bytes namespace_name, struct vd_bytes name,
				   struct vd_bytes value, int64_t ttl_s, vd_object_fn done, void *arg)
{
	char		   buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes	   key;
	struct vd_error	   error;
	struct write_call *call;

	VDI_REQUIRE(cacher, NULL);
	VDI_REQUIRE(done, NULL);
	if (vdi_cacher_key(cacher, namespace_name, name, buffer, &key, &error) != VD_OK)
		return vdi_cacher_refuse(done, arg, &error);
	VDI_TRY(begin(cacher, done, arg, &call));
	return finish(call, vdi_storage_create_beside(cacher->storage, guard, key, value, ttl_s,
						      write_answered, call));
}

vd_status vd_cacher_update(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name,
			   bool create_missing, const struct vd_preconditions *preconditions,
			   vd_update_fn update, vd_object_fn done, void *arg)
{
	char		   buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes	   key;
	struct vd_error	   error;
	struct write_call *call;

	VDI_REQUIRE(cacher, NULL);
	VDI_REQUIRE(update, NULL);
	VDI_REQUIRE(done, NULL);
	if (vdi_cacher_key(cacher, namespace_name, name, buffer, &key, &error) != VD_OK ||
	    check_preconditions(preconditions, &error) != VD_OK)
		return vdi_cacher_refuse(done, arg, &error);
	VDI_TRY(begin(cacher, done, arg, &call));
	call->suggestion = suggest(cacher, key);
	call->update = update;
	return finish(call, vdi_storage_update(cacher->storage, key, create_missing, preconditions,
					       call->suggestion, write_update, write_answered, call));
}

vd_status vd_cacher_delete(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name,
			   const struct vd_preconditions *preconditions, vd_validate_fn validate,
			   vd_object_fn done, void *arg)
{
	char		   buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes	   key;
	struct vd_error	   error;
	struct write_call *call;

	VDI_REQUIRE(cacher, NULL);
	VDI_REQUIRE(done, NULL);
	if (vdi_cacher_key(cacher, namespace_name, name, buffer, &key, &error) != VD_OK ||
	    check_preconditions(preconditions, &error) != VD_OK)
		return vdi_cacher_refuse(done, arg, &error);
	VDI_TRY(begin(cacher, done, arg, &call));
	call->suggestion = suggest(cacher, key);
	call->validate = validate;
	return finish(call, vdi_storage_delete(cacher->storage, key, preconditions, call->suggestion,
					       validate ? write_validate : NULL, write_answered, call));
}

/* ---- Blocking ---- */

struct wait_call {
	struct vdi_wait	  wait;
	vd_status	  status;
	struct vd_object *object;
	vd_rev		  revision;
	struct vd_bytes	  value;
	struct vd_error	  error;
};

static void on_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		      const struct vd_error *error)
{
	struct wait_call *call = arg;

	call->status = status;
	call->object = object ? vd_object_ref(object) : NULL;
	call->revision = revision;
	if (error)
		call->error = *error;
	vdi_wait_signal(&call->wait);
}

static vd_status wait_for(struct wait_call *call, vd_status status, struct vd_error *reterr)
{
	if (status == VD_OK) {
		vdi_wait_wait(&call->wait);
		status = call->status;
		if (status != VD_OK && reterr)
			*reterr = call->error;
	} else {
		vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	vdi_wait_fini(&call->wait);
	return status;
}

static vd_status put_value(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			   int64_t *ret_ttl_s, struct vd_error *reterr)
{
	*ret_value = ((struct wait_call *) arg)->value;
	return VD_OK;
}

vd_status vd_cacher_put_wait(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name,
			     struct vd_bytes value, struct vd_object **ret_object, struct vd_error *reterr)
{
	struct wait_call call = { .value = value };
	vd_status	 status;

	VDI_REQUIRE(cacher, reterr);
	VDI_TRY(vdi_wait_check(cacher->env, __func__, reterr));
	vdi_wait_init(&call.wait, cacher->env);
	status = wait_for(
		&call,
		vd_cacher_update(cacher, namespace_name, name, true, NULL, put_value, on_object, &call),
		reterr);
	if (status == VD_OK && ret_object)
		*ret_object = call.object;
	else
		vd_object_unref(call.object);
	return status;
}

vd_status vd_cacher_delete_wait(struct vd_cacher *cacher, struct vd_bytes namespace_name,
				struct vd_bytes name, vd_rev *ret_revision, struct vd_error *reterr)
{
	struct wait_call call = { .status = VD_OK };
	vd_status	 status;

	VDI_REQUIRE(cacher, reterr);
	VDI_TRY(vdi_wait_check(cacher->env, __func__, reterr));
	vdi_wait_init(&call.wait, cacher->env);
	status = wait_for(&call, vd_cacher_delete(cacher, namespace_name, name, NULL, NULL, on_object, &call),
			  reterr);
	vd_object_unref(call.object);
	if (status == VD_OK && ret_revision)
		*ret_revision = call.revision;
	return status;
}
