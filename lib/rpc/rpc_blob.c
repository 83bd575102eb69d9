/* Bytes that are encoded once and sent on many calls. The transport references them, once per message, so
 * nothing is copied before the socket. It may drop a reference on any of its threads; that costs an atomic
 * subtraction and at most one free. */
#include <stdatomic.h>

#include "rpc_server.h"

struct vdi_rpc_blob {
	_Atomic uint32_t references;
	_Atomic uint32_t waiting;
	size_t		 size;
	char		 bytes[];
};

vd_status vdi_rpc_blob_new(size_t size, struct vdi_rpc_blob **ret_blob, char **ret_bytes)
{
	struct vdi_rpc_blob *blob = size <= SIZE_MAX / 2 ? vdi_alloc(sizeof *blob + size) : NULL;

	if (blob == NULL)
		return VD_NOMEM;
	atomic_init(&blob->references, 1);
	atomic_init(&blob->waiting, 0);
	blob->size = size;
	*ret_blob = blob;
	*ret_bytes = blob->bytes;
	return VD_OK;
}

struct vdi_rpc_blob *vdi_rpc_blob_ref(struct vdi_rpc_blob *blob)
{
	/* Release, for a transport that passes the reference to another thread in a way that the thread
	 * sanitizer does not see (gRPC C core); it acquires with vdi_rpc_blob_size. */
	atomic_fetch_add_explicit(&blob->references, 1, memory_order_release);
	return blob;
}

struct vdi_rpc_blob *vdi_rpc_blob_unref(struct vdi_rpc_blob *blob)
{
	if (blob && atomic_fetch_sub_explicit(&blob->references, 1, memory_order_acq_rel) == 1)
		vdi_free(blob);
	return NULL;
}

bool vdi_rpc_blob_wait(struct vdi_rpc_blob *blob)
{
	return atomic_fetch_add_explicit(&blob->waiting, 1, memory_order_acq_rel) == 0;
}

bool vdi_rpc_blob_unwait(struct vdi_rpc_blob *blob)
{
	return atomic_fetch_sub_explicit(&blob->waiting, 1, memory_order_acq_rel) == 1;
}

struct vd_bytes vdi_rpc_blob_bytes(const struct vdi_rpc_blob *blob)
{
	return (struct vd_bytes) { blob->bytes, blob->size };
}

size_t vdi_rpc_blob_size(const struct vdi_rpc_blob *blob)
{
	if (blob == NULL)
		return 0;
	(void) atomic_load_explicit(&blob->references, memory_order_acquire);
	return blob->size;
}
