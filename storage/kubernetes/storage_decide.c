/* Decisions on a state of the object: preconditions, then the caller's function. A failed decision on a state
 * that may be stale is repeated on fresh state. */
#include "storage_op.h"

#include <stdio.h>

#include "object.h"

vd_status vdi_storage_error(struct vd_error *error, vd_status code, struct vd_bytes key, vd_rev revision,
			    const char *inner)
{
	static const struct {
		vd_status   code;
		const char *text;
		int	    number;
	} kinds[] = {
		{ VD_NOT_FOUND, "key not found", 1 },
		{ VD_EXISTS, "key exists", 2 },
		{ VD_CONFLICT, "resource version conflicts", 3 },
		{ VD_PRECONDITION, "invalid object", 4 },
		{ VD_UNAVAILABLE, "server unreachable", 5 },
		{ VD_TIMEOUT, "request timeout", 6 },
		{ VD_UNDECODABLE, "corrupt object", 7 },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(kinds); i++)
		if (kinds[i].code == code)
			return vd_error_set(error, code,
					    "StorageError: %s, Code: %d, Key: %.*s, ResourceVersion: %lld, "
					    "AdditionalErrorMsg: %s",
					    kinds[i].text, kinds[i].number,
					    (int) VDI_MIN(key.size, (size_t) 200), (const char *) key.data,
					    (long long) revision, inner ? inner : "<nil>");
	return vd_error_set(error, code, "%s", inner ? inner : vd_status_sentence(code));
}

static vd_status check_preconditions(struct vdi_storage_op *op)
{
	char			    inner[256], revision[24];
	struct vd_object_attributes attributes = { 0 };
	struct vd_kv		   *kv;
	bool			    equal;

	if (op->current == NULL)
		return VD_OK; /* a missing object has no metadata to compare; the callers handle it */
	kv = vd_object_kv(op->current);
	if (op->uid) {
		VDI_TRY(op->storage->codec->ops->inspect(op->storage->codec, vd_kv_value(kv), &attributes,
							 &op->error));
		equal = vd_bytes_equal(attributes.uid, vd_bytes_of(op->uid));
		snprintf(inner, sizeof inner,
			 "Precondition failed: UID in precondition: %.64s, UID in object meta: %.*s", op->uid,
			 (int) VDI_MIN(attributes.uid.size, (size_t) 64), (const char *) attributes.uid.data);
		vd_codec_release(op->storage->codec, &attributes);
		if (!equal)
			return vdi_storage_error(&op->error, VD_PRECONDITION, op->key, 0, inner);
	}
	if (op->precondition_revision) {
		snprintf(revision, sizeof revision, "%lld", (long long) kv->mod_rev);
		if (strcmp(revision, op->precondition_revision) != 0) {
			snprintf(inner, sizeof inner,
				 "Precondition failed: ResourceVersion in precondition: %.64s, "
				 "ResourceVersion in object meta: %s",
				 op->precondition_revision, revision);
			return vdi_storage_error(&op->error, VD_PRECONDITION, op->key, 0, inner);
		}
	}
	return VD_OK;
}

static vd_status call_update(struct vdi_storage_op *op)
{
	struct vd_bytes value = VD_BYTES_NONE;
	int64_t		ttl_s = 0;

	VDI_TRY(op->update(op->arg, op->current, &value, &ttl_s, &op->error));
	VDI_TRY(vdi_storage_op_set_wanted(op, value, ttl_s));
	op->lease = 0;
	return VD_OK;
}

/* Repeats a failed decision on fresh state if the state may be stale. If the fresh state is the same, the
 * first error is returned. */
static void decide_failed(struct vdi_storage_op *op, vd_status status)
{
	if (!op->stale_possible) {
		if (op->error.code != status)
			vd_error_set(&op->error, status, "%s", vd_status_sentence(status));
		vdi_storage_op_finish(op, status);
		return;
	}
	op->first_status = status;
	op->first_error = op->error;
	op->first_revision = op->current ? vd_object_revision(op->current) : 0;
	memset(&op->error, 0, sizeof op->error);
	op->step = VDI_STEP_READ;
}

static bool keeps_first_decision(struct vdi_storage_op *op)
{
	vd_status status = op->first_status;

	if (status == VD_OK || op->stale_possible || op->current == NULL)
		return false;
	op->first_status = VD_OK;
	if (vd_object_revision(op->current) != op->first_revision)
		return false;
	op->error = op->first_error;
	vdi_storage_op_finish(op, status);
	return true;
}

static void decide_update(struct vdi_storage_op *op)
{
	vd_status status;

	if (keeps_first_decision(op))
		return;
	if (op->current == NULL && !op->create_missing) {
		vdi_storage_op_finish(op, vdi_storage_error(&op->error, VD_NOT_FOUND, op->key, 0, NULL));
		return;
	}
	status = check_preconditions(op);
	if (status == VD_OK)
		status = call_update(op);
	if (status != VD_OK) {
		decide_failed(op, status);
		return;
	}
	if (op->current && op->ttl_s == 0 && vd_object_kv(op->current)->lease == 0 &&
	    !vd_object_kv(op->current)->is_stale &&
	    vd_bytes_equal(vd_kv_value(op->wanted), vd_kv_value(vd_object_kv(op->current)))) {
		if (op->stale_possible) {
			op->step = VDI_STEP_READ;
			return;
		}
		/* As upstream, no write: the revision does not change. */
		op->result = vd_object_ref(op->current);
		op->revision = vd_object_revision(op->current);
		vdi_storage_op_finish(op, VD_OK);
		return;
	}
	op->step = op->ttl_s ? VDI_STEP_LEASE : VDI_STEP_WRITE;
}

static void decide_delete(struct vdi_storage_op *op)
{
	vd_status status;

	if (keeps_first_decision(op))
		return;
	if (op->current == NULL) {
		vdi_storage_op_finish(op, vdi_storage_error(&op->error, VD_NOT_FOUND, op->key, 0, NULL));
		return;
	}
	status = check_preconditions(op);
	if (status == VD_OK && op->validate)
		status = op->validate(op->arg, op->current, &op->error);
	if (status != VD_OK) {
		decide_failed(op, status);
		return;
	}
	op->step = VDI_STEP_WRITE;
}

void vdi_storage_op_decide(struct vdi_storage_op *op)
{
	switch (op->kind) {
	case VDI_STORAGE_GET:
		if (op->current) {
			op->result = vd_object_ref(op->current);
			vdi_storage_op_finish(op, VD_OK);
		} else {
			vdi_storage_op_finish(op,
					      vdi_storage_error(&op->error, VD_NOT_FOUND, op->key, 0, NULL));
		}
		break;
	case VDI_STORAGE_UPDATE: decide_update(op); break;
	case VDI_STORAGE_DELETE: decide_delete(op); break;
	default: VDI_UNREACHABLE("no decision for this kind of operation");
	}
}
