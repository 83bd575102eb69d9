/* A copy-on-write tree: a reader of the initial state gets a snapshot in O(1). */
#include "kube_mirror.h"

#include <inttypes.h>

static struct vd_bytes key_of(const void *value)
{
	return vd_kv_key(value);
}

static void ref(void *value)
{
	vd_kv_ref(value);
}

static void unref(void *value)
{
	vd_kv_unref(value);
}

static const struct vdi_btree_ops kv_ops = { key_of, ref, unref };

void vdi_kube_mirror_init(struct vdi_kube_mirror *mirror)
{
	memset(mirror, 0, sizeof *mirror);
	mirror->bytes_max = UINT64_MAX;
	vdi_btree_init(&mirror->tree, &kv_ops);
}

void vdi_kube_mirror_fini(struct vdi_kube_mirror *mirror)
{
	vdi_btree_fini(&mirror->tree);
	vdi_metric_subtract(mirror->metric, mirror->bytes);
	memset(mirror, 0, sizeof *mirror);
}

/* ---- Bytes ---- */

size_t vdi_kube_mirror_size(const struct vd_kv *kv)
{
	return sizeof *kv + kv->key_size + kv->value_size;
}

/* NULL: none. */
static void replace_bytes(struct vdi_kube_mirror *mirror, const struct vd_kv *old, const struct vd_kv *kv)
{
	uint64_t more = kv ? vdi_kube_mirror_size(kv) : 0, less = old ? vdi_kube_mirror_size(old) : 0;

	mirror->bytes += more - less;
	vdi_metric_add(mirror->metric, more - less);
}

static vd_status check_bytes(const struct vdi_kube_mirror *mirror, const struct vd_kv *kv,
			     struct vd_error *reterr)
{
	const struct vd_kv *old;
	uint64_t	    bytes = mirror->bytes + vdi_kube_mirror_size(kv);

	if (bytes <= mirror->bytes_max)
		return VD_OK;
	old = vdi_kube_mirror_get(mirror, vd_kv_key(kv));
	if (old && bytes - vdi_kube_mirror_size(old) <= mirror->bytes_max)
		return VD_OK;
	return vd_error_set(reterr, VD_TOO_BIG,
			    "the objects need more than %" PRIu64 " bytes (source_bytes_max)",
			    mirror->bytes_max);
}

/* ---- Records ---- */

struct vd_kv *vdi_kube_mirror_get(const struct vdi_kube_mirror *mirror, struct vd_bytes key)
{
	return vdi_btree_snapshot_get(vdi_btree_view(&mirror->tree), key);
}

size_t vdi_kube_mirror_count(const struct vdi_kube_mirror *mirror)
{
	return (size_t) vdi_btree_count(&mirror->tree);
}

/* ret_old: the record before, which the caller owns; NULL: none. */
static vd_status put(struct vdi_kube_mirror *mirror, struct vd_kv *kv, struct vd_kv **ret_old,
		     struct vd_error *reterr)
{
	void	 *old = NULL;
	vd_status status = check_bytes(mirror, kv, reterr);

	if (status == VD_OK) {
		status = vdi_btree_put(&mirror->tree, kv, &old);
		if (status != VD_OK)
			return vd_error_set(reterr, status, "out of memory for an object");
		replace_bytes(mirror, old, kv);
		*ret_old = old;
	}
	return status;
}

static vd_status remove_key(struct vdi_kube_mirror *mirror, struct vd_bytes key, struct vd_kv **ret_old)
{
	void	 *old = NULL;
	vd_status status = vdi_btree_remove(&mirror->tree, key, &old);

	if (status == VD_OK) {
		replace_bytes(mirror, old, NULL);
		*ret_old = old;
	}
	return status;
}

vd_status vdi_kube_mirror_list(struct vdi_kube_mirror *mirror, struct vd_kv *kv, struct vd_error *reterr)
{
	struct vd_kv *old = NULL;
	vd_status     status;

	kv->create_rev = kv->mod_rev;
	kv->version = 1;
	status = put(mirror, kv, &old, reterr);
	if (status == VD_OK)
		mirror->applied = VDI_MAX(mirror->applied, kv->mod_rev);
	vd_kv_unref(old);
	vd_kv_unref(kv);
	return status;
}

vd_status vdi_kube_mirror_unlist(struct vdi_kube_mirror *mirror, struct vd_bytes key)
{
	struct vd_kv *old = NULL;
	vd_status     status = remove_key(mirror, key, &old);

	vd_kv_unref(old);
	return status == VD_NOT_FOUND ? VD_OK : status;
}

static bool is_repeated(const struct vdi_kube_mirror *mirror, const struct vd_kv *kv, bool is_delete,
			const struct vd_kv *old)
{
	if (kv->mod_rev < mirror->applied)
		return true;
	if (is_delete)
		return old == NULL;
	return old && old->mod_rev >= kv->mod_rev;
}

vd_status vdi_kube_mirror_apply(struct vdi_kube_mirror *mirror, struct vd_kv *kv, bool is_delete,
				struct vdi_kube_change *ret_change, struct vd_error *reterr)
{
	struct vd_kv *old = vdi_kube_mirror_get(mirror, vd_kv_key(kv));
	vd_status     status = VD_EXISTS;

	if (!is_repeated(mirror, kv, is_delete, old)) {
		kv->create_rev = is_delete ? 0 : old ? old->create_rev : kv->mod_rev;
		kv->version = is_delete ? 0 : old ? old->version + 1 : 1;
		if (is_delete)
			status = remove_key(mirror, vd_kv_key(kv), &old);
		else
			status = put(mirror, kv, &old, reterr);
	}
	if (status != VD_OK) {
		vd_kv_unref(kv);
		if (status != VD_EXISTS && status != VD_TOO_BIG)
			return vd_error_set(reterr, status, "out of memory for an event");
		return status;
	}
	mirror->applied = kv->mod_rev;
	*ret_change = (struct vdi_kube_change) { kv, old, is_delete };
	return VD_OK;
}

void vdi_kube_change_fini(struct vdi_kube_change *changed)
{
	vd_kv_unref(changed->kv);
	vd_kv_unref(changed->previous);
	memset(changed, 0, sizeof *changed);
}
