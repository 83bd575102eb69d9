/* The store of one resource, and the keys of its objects. storage_op.c has the operations. */
#include "storage.h"

#include <stdio.h>

#include "storage_state.h"

/* ---- Life ---- */

static vd_status check_prefix(const char *prefix, struct vd_error *reterr)
{
	size_t size = prefix ? strlen(prefix) : 0;

	if (size == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "resourcePrefix cannot be empty");
	if (strcmp(prefix, "/") == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "resourcePrefix cannot be /");
	if (prefix[0] != '/')
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "resourcePrefix needs to start from /");
	if (prefix[size - 1] != '/')
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "key prefix \"%s\" needs to end with /",
				    prefix);
	if (size > VDI_STORAGE_KEY_MAX / 2)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "key prefix is longer than %d bytes",
				    VDI_STORAGE_KEY_MAX / 2);
	return VD_OK;
}

vd_status vdi_storage_new(const struct vd_env *env, struct vd_store *store,
			  const struct vdi_storage_options *options, struct vdi_storage **ret_storage,
			  struct vd_error *reterr)
{
	struct vdi_storage *storage;

	VDI_TRY(check_prefix(options->key_prefix, reterr));
	storage = VDI_NEW(struct vdi_storage);
	if (storage == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	vdi_lock_init(&storage->lease_lock, VDI_LOCK_LEAF);
	storage->env = env;
	storage->store = store;
	storage->codec = options->codec;
	storage->metrics = options->metrics;
	storage->key_prefix = vdi_strdup(options->key_prefix);
	storage->resource = vdi_strdup(options->resource ? options->resource : "");
	if (storage->key_prefix == NULL || storage->resource == NULL) {
		vdi_storage_free(storage);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	storage->key_prefix_size = strlen(storage->key_prefix);
	*ret_storage = storage;
	return VD_OK;
}

struct vdi_storage *vdi_storage_free(struct vdi_storage *storage)
{
	if (storage) {
		vdi_lock_fini(&storage->lease_lock);
		vdi_free(storage->key_prefix);
		vdi_free(storage->resource);
		vdi_free(storage);
	}
	return NULL;
}

struct vd_store *vdi_storage_store(const struct vdi_storage *storage)
{
	return storage->store;
}

struct vdi_storage_metrics *vdi_storage_metrics_of(const struct vdi_storage *storage)
{
	return storage->metrics;
}

/* ---- Keys ---- */

static bool segment_is_safe(struct vd_bytes segment)
{
	if (segment.size == 0 || memchr(segment.data, '/', segment.size) ||
	    memchr(segment.data, 0, segment.size))
		return false;
	return !vd_bytes_equal(segment, vd_bytes_of(".")) && !vd_bytes_equal(segment, vd_bytes_of(".."));
}

vd_status vdi_storage_key(const struct vdi_storage *storage, struct vd_bytes namespace_name,
			  struct vd_bytes name, char buffer[VDI_STORAGE_KEY_MAX], struct vd_bytes *ret_key,
			  struct vd_error *reterr)
{
	size_t size = storage->key_prefix_size;

	if (!segment_is_safe(name) || (namespace_name.size && !segment_is_safe(namespace_name)))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "invalid key: \"%s%.*s%s%.*s\"",
				    storage->key_prefix, (int) namespace_name.size,
				    (const char *) namespace_name.data, namespace_name.size ? "/" : "",
				    (int) name.size, (const char *) name.data);
	if (size + namespace_name.size + 1 + name.size > VDI_STORAGE_KEY_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "the key would be longer than %d bytes",
				    VDI_STORAGE_KEY_MAX);
	memcpy(buffer, storage->key_prefix, size);
	if (namespace_name.size) {
		memcpy(buffer + size, namespace_name.data, namespace_name.size);
		size += namespace_name.size;
		buffer[size++] = '/';
	}
	memcpy(buffer + size, name.data, name.size);
	*ret_key = (struct vd_bytes) { buffer, size + name.size };
	return VD_OK;
}
