/* Reference-counted immutable blobs: header and content in one block. */
#include <stdatomic.h>

#include "base.h"

struct vd_blob {
	atomic_uint references;
	uint32_t    padding;
	size_t	    size;
	char	    content[];
};

vd_status vd_blob_new(struct vd_bytes content, struct vd_blob **ret_blob)
{
	struct vd_blob *blob;

	VDI_REQUIRE(ret_blob, NULL);
	VDI_REQUIRE_BYTES(content, NULL);
	blob = content.size <= PTRDIFF_MAX - sizeof *blob ? vdi_alloc(sizeof *blob + content.size) : NULL;
	if (blob == NULL)
		return VD_NOMEM;
	atomic_init(&blob->references, 1);
	blob->padding = 0;
	blob->size = content.size;
	if (content.size)
		memcpy(blob->content, content.data, content.size);
	*ret_blob = blob;
	return VD_OK;
}

struct vd_blob *vd_blob_ref(struct vd_blob *blob)
{
	atomic_fetch_add_explicit(&blob->references, 1, memory_order_relaxed);
	return blob;
}

struct vd_blob *vd_blob_unref(struct vd_blob *blob)
{
	if (blob && atomic_fetch_sub_explicit(&blob->references, 1, memory_order_acq_rel) == 1)
		vdi_free(blob);
	return NULL;
}

struct vd_bytes vd_blob_bytes(const struct vd_blob *blob)
{
	return (struct vd_bytes) { blob->content, blob->size };
}
