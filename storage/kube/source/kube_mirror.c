/* A copy-on-write tree: a reader of the initial state gets a snapshot in O(1). */
#include "kube_mirror.h"

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
	vdi_btree_init(&mirror->tree, &kv_ops);
}

void vdi_kube_mirror_fini(struct vdi_kube_mirror *mirror)
{
	vdi_btree_fini(&mirror->tree);
	memset(mirror, 0, sizeof *mirror);
}

struct vd_kv *vdi_kube_mirror_get(const struct vdi_kube_mirror *mirror, struct vd_bytes key)
{
	return vdi_btree_snapshot_get(vdi_btree_view(&mirror->tree), key);
}

size_t vdi_kube_mirror_count(const struct vdi_kube_mirror *mirror)
{
	return (size_t) vdi_btree_count(&mirror->tree);
}

vd_status vdi_kube_mirror_list(struct vdi_kube_mirror *mirror, struct vd_kv *kv)
{
	vd_status status;

	kv->create_rev = kv->mod_rev;
	kv->version = 1;
	status = vdi_btree_put(&mirror->tree, kv, NULL);
	if (status == VD_OK)
		mirror->applied = VDI_MAX(mirror->applied, kv->mod_rev);
	vd_kv_unref(kv);
	return status;
}

vd_status vdi_kube_mirror_unlist(struct vdi_kube_mirror *mirror, struct vd_bytes key)
{
	vd_status status = vdi_btree_remove(&mirror->tree, key, NULL);

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

static vd_status change(struct vdi_kube_mirror *mirror, struct vd_kv *kv, bool is_delete)
{
	if (is_delete)
		return vdi_btree_remove(&mirror->tree, vd_kv_key(kv), NULL);
	return vdi_btree_put(&mirror->tree, kv, NULL);
}

vd_status vdi_kube_mirror_apply(struct vdi_kube_mirror *mirror, struct vd_kv *kv, bool is_delete,
				struct vdi_kube_change *ret_change)
{
	struct vd_kv *old = vdi_kube_mirror_get(mirror, vd_kv_key(kv));
	vd_status     status = VD_EXISTS;

	if (!is_repeated(mirror, kv, is_delete, old)) {
		if (old)
			vd_kv_ref(old);
		kv->create_rev = is_delete ? 0 : old ? old->create_rev : kv->mod_rev;
		kv->version = is_delete ? 0 : old ? old->version + 1 : 1;
		status = change(mirror, kv, is_delete);
		if (status != VD_OK)
			vd_kv_unref(old);
	}
	if (status != VD_OK) {
		vd_kv_unref(kv);
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
