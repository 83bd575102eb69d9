/* Leases of writes with a time to live. Writes with nearly the same expiry share one lease. */
#include "storage_op.h"

/* Maximum uses of a granted lease by writes with nearly the same expiry. */
#define LEASE_USES_MAX 1000

/* A grant has completed or failed: operations that wait for it continue, and check the lease again. */
static void wake_lease_waiters(struct vdi_storage *storage)
{
	struct vdi_storage_op *waiters;

	vdi_lock_acquire(&storage->lease_lock);
	storage->lease_asked = false;
	waiters = storage->lease_waiters;
	storage->lease_waiters = NULL;
	vdi_lock_release(&storage->lease_lock);
	while (waiters) {
		struct vdi_storage_op *op = waiters;

		waiters = op->lease_next;
		vdi_storage_op_meet(op);
	}
}

static void on_lease(void *arg, vd_status status, const struct vd_lease_result *result,
		     const struct vd_error *error)
{
	struct vdi_storage_op *op = arg;
	struct vdi_storage    *storage = op->storage;

	if (status != VD_OK) {
		vdi_storage_op_finish_error(op, status, error);
	} else {
		uint64_t uses;

		op->lease = result->id;
		vdi_lock_acquire(&storage->lease_lock);
		uses = (uint64_t) storage->lease_uses;
		storage->lease_id = result->id;
		/* Count from before the request, because the store may have granted it at once. */
		storage->lease_expiry = vd_mono_add(op->lease_asked_at, VD_SECONDS(result->ttl_s));
		storage->lease_uses = 1;
		vdi_lock_release(&storage->lease_lock);
		vdi_storage_metrics_lease(storage->metrics, uses);
		op->step = VDI_STEP_WRITE;
	}
	wake_lease_waiters(storage);
	vdi_storage_op_meet(op);
}

bool vdi_storage_lease_was_lost(struct vdi_storage_op *op, vd_status status)
{
	struct vdi_storage *storage = op->storage;

	if (status != VD_LEASE_NOT_FOUND || op->lease == 0 || op->lease_was_gone)
		return false;
	vdi_lock_acquire(&storage->lease_lock);
	if (storage->lease_id == op->lease)
		storage->lease_id = 0;
	vdi_lock_release(&storage->lease_lock);
	op->lease_was_gone = true;
	op->lease = 0;
	op->step = VDI_STEP_LEASE;
	return true;
}

/* Returns extra seconds that let later writes reuse the lease: min(60 s, 5 %). */
static int64_t lease_extra_s(int64_t ttl_s)
{
	return VDI_MIN(ttl_s / 20, (int64_t) 60);
}

/* Reuses the last lease as kubernetes/apiserver pkg/storage/etcd3/lease_manager.go does. (It is also reused
 * if no time has passed since the grant, which does not happen with a real clock.) */
bool vdi_storage_lease_reuse(struct vdi_storage_op *op)
{
	struct vdi_storage *storage = op->storage;
	int64_t		    now_ns = vd_env_now(storage->env).ns;
	int64_t		    least_ns = now_ns + VD_SECONDS(op->ttl_s).ns;
	int64_t		    most_ns = least_ns + VD_SECONDS(lease_extra_s(op->ttl_s)).ns;
	bool		    reused;

	vdi_lock_acquire(&storage->lease_lock);
	reused = storage->lease_id && least_ns < storage->lease_expiry.ns &&
		 storage->lease_expiry.ns <= most_ns && storage->lease_uses < LEASE_USES_MAX;
	storage->lease_uses++;
	if (reused)
		op->lease = storage->lease_id;
	vdi_lock_release(&storage->lease_lock);
	return reused;
}

vd_status vdi_storage_lease_issue(struct vdi_storage_op *op)
{
	struct vdi_storage *storage = op->storage;
	bool		    is_asked;
	vd_status	    status;

	vdi_lock_acquire(&storage->lease_lock);
	is_asked = storage->lease_asked;
	if (is_asked) {
		op->lease_next = storage->lease_waiters;
		storage->lease_waiters = op;
	}
	storage->lease_asked = true;
	vdi_lock_release(&storage->lease_lock);
	if (is_asked)
		return VD_OK;
	op->lease_asked_at = vd_env_now(storage->env);
	status = vd_store_lease_grant(storage->store, 0, op->ttl_s + lease_extra_s(op->ttl_s), on_lease, op);
	if (status != VD_OK)
		wake_lease_waiters(storage);
	return status;
}
