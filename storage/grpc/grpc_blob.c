/* Bytes encoded once and sent on many calls: core refers to them, one reference for each message, so nothing is copied before the socket. Core may drop its
 * references on any of its threads; that is an atomic subtraction and at most a free. */
#include <stdatomic.h>

#include "grpc_server_state.h"

struct vdi_rpc_blob {
	_Atomic uint32_t references;
	size_t		 size;
	char		 bytes[];
};

vd_status vdi_rpc_blob_new(size_t size, struct vdi_rpc_blob **ret_blob, char **ret_bytes)
{
	struct vdi_rpc_blob *blob = size <= SIZE_MAX / 2 ? vdi_alloc(sizeof *blob + size) : NULL;

	if (blob == NULL)
		return VD_NOMEM;
	atomic_init(&blob->references, 1);
	blob->size = size;
	*ret_blob = blob;
	*ret_bytes = blob->bytes;
	return VD_OK;
}

struct vdi_rpc_blob *vdi_rpc_blob_ref(struct vdi_rpc_blob *blob)
{
	/* Release, and the load below: core hands the reference to another thread in a way that the thread sanitizer does not see. */
	atomic_fetch_add_explicit(&blob->references, 1, memory_order_release);
	return blob;
}

struct vdi_rpc_blob *vdi_rpc_blob_unref(struct vdi_rpc_blob *blob)
{
	if (blob && atomic_fetch_sub_explicit(&blob->references, 1, memory_order_acq_rel) == 1)
		vdi_free(blob);
	return NULL;
}

struct vd_bytes vdi_rpc_blob_bytes(const struct vdi_rpc_blob *blob)
{
	return (struct vd_bytes) { blob->bytes, blob->size };
}

size_t vdi_rpc_blob_size(const struct vdi_rpc_blob *blob)
{
	return blob ? blob->size : 0;
}

static void drop_reference(void *arg)
{
	struct vdi_rpc_blob *blob = arg;

	(void) atomic_load_explicit(&blob->references, memory_order_acquire);
	vdi_rpc_blob_unref(blob);
}

grpc_byte_buffer *vdi_grpc_blob_pack(struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	grpc_slice	  slices[2];
	size_t		  count = 0;
	grpc_byte_buffer *buffer;

	if (head.size)
		slices[count++] = grpc_slice_from_copied_buffer(head.data, head.size);
	if (blob && blob->size)
		slices[count++] = grpc_slice_new_with_user_data(blob->bytes, blob->size, drop_reference, vdi_rpc_blob_ref(blob));
	buffer = grpc_raw_byte_buffer_create(slices, count);
	while (count)
		grpc_slice_unref(slices[--count]);
	return buffer;
}
