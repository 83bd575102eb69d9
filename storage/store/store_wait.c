/* The blocking wrappers of vedette/store.h: start the call, wait on the caller's stack, copy the borrowed
 * results of the callback. Must not be called from an actor's handler. */
#include <vedette/store.h>

#include "wait.h"

struct waiter {
	struct vdi_wait wait;
	vd_status	status;
	struct vd_error error;
	struct vd_kv   *kv;
	int64_t		deleted;
	vd_rev		revision;
};

static void waiter_done(struct waiter *waiter, vd_status status, const struct vd_error *error)
{
	waiter->status = status;
	if (error)
		waiter->error = *error;
	vdi_wait_signal(&waiter->wait);
}

/* Waits if the call was accepted; returns its status, with details of a failure in *reterr. */
static vd_status waiter_end(struct waiter *waiter, vd_status called, struct vd_error *reterr)
{
	if (called == VD_OK)
		vdi_wait_wait(&waiter->wait);
	vdi_wait_fini(&waiter->wait);
	if (called != VD_OK)
		return vd_error_set(reterr, called, "%s", vd_status_sentence(called));
	if (waiter->status != VD_OK && reterr)
		*reterr = waiter->error;
	return waiter->status;
}

static void got_range(void *arg, vd_status status, const struct vd_range_result *result,
		      const struct vd_error *error)
{
	struct waiter *waiter = arg;

	if (status == VD_OK && result->kv_count)
		waiter->kv = vd_kv_ref(result->kvs[0]);
	waiter_done(waiter, status, error);
}

vd_status vd_store_get_wait(struct vd_store *store, struct vd_bytes key, struct vd_kv **ret_kv,
			    struct vd_error *reterr)
{
	struct vd_range_request request = { .key = key };
	struct waiter		waiter = { 0 };

	VDI_REQUIRE(store, reterr);
	VDI_REQUIRE(ret_kv, reterr);
	VDI_TRY(vdi_wait_check(store->env, __func__, reterr));
	vdi_wait_init(&waiter.wait, store->env);
	VDI_TRY(waiter_end(&waiter, vd_store_range(store, &request, got_range, &waiter), reterr));
	if (waiter.kv == NULL)
		return vd_error_set(reterr, VD_NOT_FOUND, "no such key");
	*ret_kv = waiter.kv;
	return VD_OK;
}

static void got_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		    const struct vd_error *error)
{
	struct waiter *waiter = arg;

	if (status == VD_OK) {
		waiter->revision = result->revision;
		waiter->deleted = result->results[0].deleted;
	}
	waiter_done(waiter, status, error);
}

static vd_status write_one(struct vd_store *store, const struct vd_op *op, struct waiter *waiter,
			   struct vd_error *reterr)
{
	struct vd_txn_request request = { .success = op, .success_count = 1 };

	if (store == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "write: store is NULL");
	VDI_TRY(vdi_wait_check(store->env,
			       op->kind == VD_OP_PUT ? "vd_store_put_wait" : "vd_store_delete_wait", reterr));
	vdi_wait_init_chained(&waiter->wait, store->env);
	return waiter_end(waiter, vd_store_txn(store, &request, got_txn, waiter), reterr);
}

vd_status vd_store_put_wait(struct vd_store *store, struct vd_bytes key, struct vd_bytes value,
			    vd_rev *ret_revision, struct vd_error *reterr)
{
	struct vd_op  op = { .kind = VD_OP_PUT, .key = key, .value = value };
	struct waiter waiter = { 0 };

	VDI_TRY(write_one(store, &op, &waiter, reterr));
	if (ret_revision)
		*ret_revision = waiter.revision;
	return VD_OK;
}

vd_status vd_store_delete_wait(struct vd_store *store, struct vd_bytes key, struct vd_bytes range_end,
			       int64_t *ret_deleted, vd_rev *ret_revision, struct vd_error *reterr)
{
	struct vd_op  op = { .kind = VD_OP_DELETE, .key = key, .range_end = range_end };
	struct waiter waiter = { 0 };

	VDI_TRY(write_one(store, &op, &waiter, reterr));
	if (ret_deleted)
		*ret_deleted = waiter.deleted;
	if (ret_revision)
		*ret_revision = waiter.revision;
	return VD_OK;
}

struct vd_store *vd_store_close_wait(struct vd_store *store)
{
	struct vdi_wait wait;

	if (store == NULL)
		return NULL;
	vdi_wait_check_close(__func__, "vd_store_close");
	vdi_wait_init(&wait, store->env);
	vd_store_close(store, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	return NULL;
}
