/* Each call is a small state machine (struct vdi_storage_op) that sends a range or a transaction to the store
 * and continues in the callback. A callback may run before the store's function returns. So the issuer and
 * the callback both count in, and the second one continues; retries are a loop, never a recursion.
 *
 *   get:     READ -> done
 *   create:  [LEASE] -> WRITE -> done
 *   update:  [suggestion] READ -> decide -> [LEASE] -> WRITE --conflict--> decide on the returned state
 *   delete:  [suggestion] READ -> decide -> WRITE --conflict--> decide on the returned state
 */
#include "storage_op.h"

#include "object.h"
#include "revision_cut.h"
#include "undecodable.h"

static void op_run(struct vdi_storage_op *op);

static struct vdi_storage_op *op_new(struct vdi_storage *storage, enum vdi_storage_op_kind kind,
				     struct vd_bytes key)
{
	struct vdi_storage_op *op = vdi_calloc(1, sizeof *op + key.size + 1);

	if (op == NULL)
		return NULL;
	op->storage = storage;
	op->kind = kind;
	memcpy(op + 1, key.data, key.size);
	op->key = (struct vd_bytes) { op + 1, key.size };
	return op;
}

static void op_free(struct vdi_storage_op *op)
{
	vd_object_unref(op->guard);
	vd_object_unref(op->current);
	vd_object_unref(op->result);
	vd_object_unref(op->wanted_object);
	vd_kv_unref(op->wanted);
	vdi_free(op->uid);
	vdi_free(op->precondition_revision);
	vdi_free(op);
}

void vdi_storage_op_meet(struct vdi_storage_op *op)
{
	if (__atomic_add_fetch(&op->arrived, 1, __ATOMIC_ACQ_REL) == 2)
		op_run(op);
}

void vdi_storage_op_finish(struct vdi_storage_op *op, vd_status status)
{
	op->status = status;
	op->step = VDI_STEP_DONE;
}

void vdi_storage_op_finish_error(struct vdi_storage_op *op, vd_status status, const struct vd_error *error)
{
	if (error && error->message[0])
		op->error = *error;
	else
		vd_error_set(&op->error, status, "%s", vd_status_sentence(status));
	op->error.code = status;
	vdi_storage_op_finish(op, status);
}

static void set_current(struct vdi_storage_op *op, struct vd_object *object)
{
	vd_object_unref(op->current);
	op->current = object;
}

/* Counts a completed request in the metrics. */
static void count_answer(const struct vdi_storage_op *op, vd_status status)
{
	static const enum vdi_storage_operation writes[] = { [VDI_STORAGE_CREATE] = VDI_OPERATION_CREATE,
							     [VDI_STORAGE_UPDATE] = VDI_OPERATION_UPDATE,
							     [VDI_STORAGE_DELETE] = VDI_OPERATION_DELETE };

	if (op->step != VDI_STEP_LEASE)
		vdi_storage_metrics_request(op->storage->metrics,
					    op->step == VDI_STEP_WRITE ? writes[op->kind] : VDI_OPERATION_GET,
					    op->issued, status);
}

/* Decodes the record into op->current; false: the operation has ended. */
static bool take_state(struct vdi_storage_op *op, struct vd_kv *kv)
{
	struct vd_object *object = NULL;

	if (kv) {
		struct vd_error error = { 0 };
		vd_status	status = vd_object_new(op->storage->codec, kv, &object, &error);

		if (status != VD_OK) {
			if (status != VD_NOMEM)
				vdi_storage_metrics_undecodable(op->storage->metrics);
			if (status == VD_UNDECODABLE)
				(void) vdi_undecodable(&error, kv);
			op->error = error;
			vdi_storage_op_finish(op, status);
			return false;
		}
	}
	set_current(op, object);
	op->stale_possible = false;
	return true;
}

static void on_range(void *arg, vd_status status, const struct vd_range_result *result,
		     const struct vd_error *error)
{
	struct vdi_storage_op *op = arg;

	count_answer(op, status);
	if (status != VD_OK) {
		vdi_storage_op_finish_error(op, status, error);
	} else if (op->minimum > result->store_revision) {
		vd_error_set(&op->error, VD_TOO_LARGE_REVISION,
			     "Too large resource version: %lld, current: %lld", (long long) op->minimum,
			     (long long) result->store_revision);
		op->error.requested = op->minimum;
		op->error.current = result->store_revision;
		vdi_storage_op_finish(op, VD_TOO_LARGE_REVISION);
	} else if (take_state(op, result->kv_count ? result->kvs[0] : NULL)) {
		op->revision = result->store_revision;
		op->step = VDI_STEP_DECIDE;
	}
	vdi_storage_op_meet(op);
}

/* Stamps the written record with the transaction's result. The record shares nothing with the store, which
 * keeps its own copy. The object over it was made before the write, so that a completed write cannot fail
 * afterwards. */
static void stamp_wanted(struct vdi_storage_op *op, vd_rev revision)
{
	struct vd_kv *kv = op->wanted;

	kv->mod_rev = revision;
	kv->create_rev = op->current ? vd_object_kv(op->current)->create_rev : revision;
	kv->version = op->current ? vd_object_kv(op->current)->version + 1 : 1;
	kv->lease = op->lease;
}

/* Rejects an object that does not belong to the key: it could not be found under either name, and watches of
 * its namespace would miss it. */
static vd_status check_name(struct vdi_storage_op *op, const struct vd_object *object)
{
	struct vd_bytes namespace_name = vd_object_namespace(object), name = vd_object_name(object);
	char		buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes key = VD_BYTES_NONE;

	if (vdi_storage_key(op->storage, namespace_name, name, buffer, &key, NULL) == VD_OK &&
	    vd_bytes_equal(key, op->key))
		return VD_OK;
	return vd_error_set(&op->error, VD_INVALID_ARGUMENT,
			    "metadata.namespace \"%.*s\" and metadata.name \"%.*s\" of the object do not "
			    "belong to its key %.*s",
			    (int) VDI_MIN(namespace_name.size, (size_t) 63),
			    (const char *) namespace_name.data, (int) VDI_MIN(name.size, (size_t) 100),
			    (const char *) name.data, (int) VDI_MIN(op->key.size, (size_t) 150),
			    (const char *) op->key.data);
}

vd_status vdi_storage_op_set_wanted(struct vdi_storage_op *op, struct vd_bytes value, int64_t ttl_s)
{
	struct vd_object *object = NULL;
	struct vd_kv	 *wanted = NULL;
	vd_status	  status;

	if (ttl_s < 0)
		return vd_error_set(&op->error, VD_INVALID_ARGUMENT,
				    "the time to live is %lld s, must be 0 (none) or more",
				    (long long) ttl_s);
	if (value.size && value.data == NULL)
		return vd_error_set(&op->error, VD_INVALID_ARGUMENT, "value.data is NULL but its size is %zu",
				    value.size);
	VDI_TRY(vdi_revision_cut_kv(op->storage->codec, op->key, value, op->kind == VDI_STORAGE_CREATE,
				    &wanted, &op->error));
	status = vd_object_new(op->storage->codec, wanted, &object, &op->error);
	if (status == VD_OK)
		status = check_name(op, object);
	if (status != VD_OK) {
		vd_object_unref(object);
		vd_kv_unref(wanted);
		return status;
	}
	vd_kv_unref(op->wanted);
	vd_object_unref(op->wanted_object);
	op->wanted = wanted;
	op->wanted_object = object;
	op->ttl_s = ttl_s;
	return VD_OK;
}

static void on_written(struct vdi_storage_op *op, const struct vd_txn_result *result)
{
	op->revision = result->revision;
	if (op->kind == VDI_STORAGE_DELETE) {
		op->result = vd_object_ref(op->current);
		vdi_storage_op_finish(op, VD_OK);
		return;
	}
	stamp_wanted(op, result->revision);
	op->result = vd_object_ref(op->wanted_object);
	vdi_storage_op_finish(op, VD_OK);
}

static void on_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		   const struct vd_error *error)
{
	struct vdi_storage_op *op = arg;

	count_answer(op, status);
	if (vdi_storage_lease_was_lost(op, status)) {
		/* retried with another lease */
	} else if (status != VD_OK) {
		vdi_storage_op_finish_error(op, status, error);
	} else if (result->succeeded) {
		on_written(op, result);
	} else if (op->kind == VDI_STORAGE_CREATE && op->guard && result->results[0].range.count == 0) {
		vdi_storage_op_finish(op, vdi_storage_error(&op->error, VD_CONFLICT, vd_object_key(op->guard),
							    vd_object_revision(op->guard), NULL));
	} else if (op->kind == VDI_STORAGE_CREATE) {
		vdi_storage_op_finish(op, vdi_storage_error(&op->error, VD_EXISTS, op->key, 0, NULL));
	} else {
		const struct vd_range_result *range = &result->results[0].range;

		/* Another client wrote the object: continue with its state. */
		if (take_state(op, range->kv_count ? range->kvs[0] : NULL)) {
			op->revision = result->revision;
			op->step = VDI_STEP_DECIDE;
		}
	}
	vdi_storage_op_meet(op);
}

/* ---- Issuing ---- */

static vd_status issue_write(struct vdi_storage_op *op)
{
	struct vd_compare     compares[2] = { {
		    .target = VD_COMPARE_MOD,
		    .result = VD_COMPARE_EQUAL,
		    .key = op->key,
		    .number = op->current ? vd_object_revision(op->current) : 0,
	    } };
	struct vd_op	      write = { .kind = op->kind == VDI_STORAGE_DELETE ? VD_OP_DELETE : VD_OP_PUT,
					.key = op->key,
					.lease = op->lease };
	struct vd_op	      look = { .kind = VD_OP_RANGE, .range = { .key = op->key, .limit = 1 } };
	struct vd_txn_request request = {
		.compares = compares,
		.compare_count = 1,
		.success = &write,
		.success_count = 1,
		.failure = &look,
		.failure_count = op->kind == VDI_STORAGE_CREATE && op->guard == NULL ? 0 : 1,
	};

	if (op->guard) {
		compares[1] = (struct vd_compare) { .target = VD_COMPARE_MOD,
						    .result = VD_COMPARE_EQUAL,
						    .key = vd_object_key(op->guard),
						    .number = vd_object_revision(op->guard) };
		request.compare_count = 2;
	}
	look.range.count_only = op->kind == VDI_STORAGE_CREATE;
	if (op->wanted)
		write.value = vd_kv_value(op->wanted);
	return vd_store_txn(op->storage->store, &request, on_txn, op);
}

static vd_status issue(struct vdi_storage_op *op)
{
	struct vd_range_request range = { .key = op->key, .limit = 1 };

	switch (op->step) {
	case VDI_STEP_READ: return vd_store_range(op->storage->store, &range, on_range, op);
	case VDI_STEP_LEASE: return vdi_storage_lease_issue(op);
	case VDI_STEP_WRITE: return issue_write(op);
	default: VDI_UNREACHABLE("step without a request");
	}
}

static void op_answer(struct vdi_storage_op *op)
{
	op->done(op->arg, op->status, op->status == VD_OK ? op->result : NULL, op->revision,
		 op->status == VD_OK ? NULL : &op->error);
	op_free(op);
}

static void op_run(struct vdi_storage_op *op)
{
	for (;;) {
		vd_status status;

		if (op->step == VDI_STEP_DECIDE) {
			vdi_storage_op_decide(op);
			continue;
		}
		if (op->step == VDI_STEP_DONE) {
			op_answer(op);
			return;
		}
		if (op->step == VDI_STEP_LEASE && vdi_storage_lease_reuse(op)) {
			op->step = VDI_STEP_WRITE;
			continue;
		}
		__atomic_store_n(&op->arrived, 0, __ATOMIC_RELAXED);
		op->issued = vd_env_now(op->storage->env);
		status = issue(op);
		if (status != VD_OK) {
			count_answer(op, status);
			vdi_storage_op_finish_error(op, status, NULL);
			continue;
		}
		if (__atomic_add_fetch(&op->arrived, 1, __ATOMIC_ACQ_REL) != 2)
			return; /* the callback continues */
	}
}

/* Starts the operation. All results, including failure of the first request, are reported through the
 * callback. */
static vd_status op_start(struct vdi_storage_op *op)
{
	op_run(op);
	return VD_OK;
}

static vd_status set_preconditions(struct vdi_storage_op *op, const struct vd_preconditions *preconditions)
{
	if (preconditions && preconditions->uid.size) {
		op->uid = vdi_strndup(preconditions->uid.data, preconditions->uid.size);
		if (op->uid == NULL)
			return VD_NOMEM;
	}
	if (preconditions && preconditions->revision.size) {
		op->precondition_revision =
			vdi_strndup(preconditions->revision.data, preconditions->revision.size);
		if (op->precondition_revision == NULL)
			return VD_NOMEM;
	}
	return VD_OK;
}

static struct vdi_storage_op *op_new_call(struct vdi_storage *storage, enum vdi_storage_op_kind kind,
					  struct vd_bytes key, struct vd_object *suggestion,
					  vd_object_fn done, void *arg)
{
	struct vdi_storage_op *op = op_new(storage, kind, key);

	if (op == NULL)
		return NULL;
	op->done = done;
	op->arg = arg;
	op->step = VDI_STEP_READ;
	if (suggestion) {
		op->current = vd_object_ref(suggestion);
		op->stale_possible = true;
		op->step = VDI_STEP_DECIDE;
	}
	return op;
}

vd_status vdi_storage_get(struct vdi_storage *storage, struct vd_bytes key, vd_rev minimum, vd_object_fn done,
			  void *arg)
{
	struct vdi_storage_op *op = op_new_call(storage, VDI_STORAGE_GET, key, NULL, done, arg);

	if (op == NULL)
		return VD_NOMEM;
	op->minimum = minimum;
	return op_start(op);
}

vd_status vdi_storage_create(struct vdi_storage *storage, struct vd_bytes key, struct vd_bytes value,
			     int64_t ttl_s, vd_object_fn done, void *arg)
{
	return vdi_storage_create_beside(storage, NULL, key, value, ttl_s, done, arg);
}

vd_status vdi_storage_create_beside(struct vdi_storage *storage, struct vd_object *guard, struct vd_bytes key,
				    struct vd_bytes value, int64_t ttl_s, vd_object_fn done, void *arg)
{
	struct vdi_storage_op *op = op_new_call(storage, VDI_STORAGE_CREATE, key, NULL, done, arg);
	vd_status	       status;

	if (op == NULL)
		return VD_NOMEM;
	status = vdi_storage_op_set_wanted(op, value, ttl_s);
	if (status == VD_NOMEM) {
		op_free(op);
		return status;
	}
	op->guard = guard ? vd_object_ref(guard) : NULL;
	op->step = ttl_s ? VDI_STEP_LEASE : VDI_STEP_WRITE;
	if (status != VD_OK)
		vdi_storage_op_finish(op, status);
	return op_start(op);
}

vd_status vdi_storage_update(struct vdi_storage *storage, struct vd_bytes key, bool create_missing,
			     const struct vd_preconditions *preconditions, struct vd_object *suggestion,
			     vd_update_fn update, vd_object_fn done, void *arg)
{
	struct vdi_storage_op *op = op_new_call(storage, VDI_STORAGE_UPDATE, key, suggestion, done, arg);

	if (op == NULL || set_preconditions(op, preconditions) != VD_OK) {
		if (op)
			op_free(op);
		return VD_NOMEM;
	}
	op->create_missing = create_missing;
	op->update = update;
	return op_start(op);
}

vd_status vdi_storage_delete(struct vdi_storage *storage, struct vd_bytes key,
			     const struct vd_preconditions *preconditions, struct vd_object *suggestion,
			     vd_validate_fn validate, vd_object_fn done, void *arg)
{
	struct vdi_storage_op *op = op_new_call(storage, VDI_STORAGE_DELETE, key, suggestion, done, arg);

	if (op == NULL || set_preconditions(op, preconditions) != VD_OK) {
		if (op)
			op_free(op);
		return VD_NOMEM;
	}
	op->validate = validate;
	return op_start(op);
}
