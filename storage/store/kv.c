/* Key-value records. A record is one block of memory: header, key and value. The reference count is atomic,
 * because the memory store, events and caches on several threads share records. */
#include <vedette/store.h>

#include "base.h"
#include "kv.h"

struct vd_kv *vdi_kv_alloc(uint32_t key_size, uint32_t value_size)
{
	static __thread size_t ahead;
	size_t size = VDI_MAX(sizeof(struct vd_kv), offsetof(struct vd_kv, data) + key_size + value_size);
	struct vd_kv *kv;

	/* Reserve ahead: records account for most of a store's memory growth, on the threads of its
	 * writers. */
	ahead += size;
	if (ahead >= VDI_ALLOC_AHEAD) {
		ahead = 0;
		vdi_alloc_ahead();
	}
	kv = vdi_alloc(size);
	if (kv == NULL)
		return NULL;
	memset(kv, 0, offsetof(struct vd_kv, data));
	kv->references = 1;
	kv->key_size = key_size;
	kv->value_size = value_size;
	return kv;
}

vd_status vd_kv_new(struct vd_bytes key, struct vd_bytes value, struct vd_kv **ret_kv)
{
	struct vd_kv *kv;

	VDI_REQUIRE(ret_kv, NULL);
	VDI_REQUIRE_BYTES(key, NULL);
	VDI_REQUIRE_BYTES(value, NULL);
	if (key.size > VD_KEY_SIZE_MAX || value.size > VD_VALUE_SIZE_MAX)
		return VD_TOO_BIG;
	kv = vdi_kv_alloc((uint32_t) key.size, (uint32_t) value.size);
	if (kv == NULL)
		return VD_NOMEM;
	if (key.size)
		memcpy(kv->data, key.data, key.size);
	if (value.size)
		memcpy(kv->data + key.size, value.data, value.size);
	*ret_kv = kv;
	return VD_OK;
}

struct vd_kv *vd_kv_ref(struct vd_kv *kv)
{
	__atomic_fetch_add(&kv->references, 1, __ATOMIC_RELAXED);
	return kv;
}

struct vd_kv *vd_kv_unref(struct vd_kv *kv)
{
	if (kv && __atomic_fetch_sub(&kv->references, 1, __ATOMIC_ACQ_REL) == 1)
		vdi_free(kv);
	return NULL;
}
