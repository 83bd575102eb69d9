/* Kubernetes' storage operations for one resource over any vd_store: Create, Get, List, GuaranteedUpdate,
 * Delete with preconditions, Count.
 *
 * Mirrors kubernetes/apiserver pkg/storage/etcd3/store.go. Keys are complete store keys. Asynchronous, as
 * vedette/store.h: if a call returns an error there is no callback; if it returns VD_OK there is exactly one,
 * possibly before the call returns. Any thread; nothing blocks. Objects in callbacks are borrowed.
 */
#ifndef VDI_STORAGE_H
#define VDI_STORAGE_H

#include <vedette/cacher.h>

#include "base.h"

struct vdi_storage;
struct vdi_storage_metrics;

struct vdi_storage_options {
	const char		   *resource;	/* for messages; copied */
	const char		   *key_prefix; /* copied */
	struct vd_codec		   *codec;	/* borrowed */
	struct vdi_storage_metrics *metrics;	/* borrowed; NULL: nothing is counted */
};

VDI_MUST_USE vd_status vdi_storage_new(const struct vd_env *env, struct vd_store *store,
				       const struct vdi_storage_options *options,
				       struct vdi_storage **ret_storage, struct vd_error *reterr);
/* Frees the storage; no call may be outstanding. NULL is fine. */
struct vdi_storage *vdi_storage_free(struct vdi_storage *storage);

struct vd_store		   *vdi_storage_store(const struct vdi_storage *storage);
struct vdi_storage_metrics *vdi_storage_metrics_of(const struct vdi_storage *storage);

/* Writes prefix + [namespace/] + name into buffer. Rejects path traversal and empty names with upstream's
 * messages. */
#define VDI_STORAGE_KEY_MAX 1024
VDI_MUST_USE vd_status vdi_storage_key(const struct vdi_storage *storage, struct vd_bytes namespace_name,
				       struct vd_bytes name, char buffer[VDI_STORAGE_KEY_MAX],
				       struct vd_bytes *ret_key, struct vd_error *reterr);

/* Reads an object. minimum: least revision of the result (0: any). A missing object is VD_NOT_FOUND. */
VDI_MUST_USE vd_status vdi_storage_get(struct vdi_storage *storage, struct vd_bytes key, vd_rev minimum,
				       vd_object_fn done, void *arg);
/* Creates an object. A value with a non-zero resourceVersion is VD_REVISION_ON_CREATE. */
VDI_MUST_USE vd_status vdi_storage_create(struct vdi_storage *storage, struct vd_bytes key,
					  struct vd_bytes value, int64_t ttl_s, vd_object_fn done, void *arg);
/* Creates an object only if guard (of the same store; borrowed for the call) is unchanged; VD_CONFLICT if it
 * was changed or deleted. NULL: no guard. */
VDI_MUST_USE vd_status vdi_storage_create_beside(struct vdi_storage *storage, struct vd_object *guard,
						 struct vd_bytes key, struct vd_bytes value, int64_t ttl_s,
						 vd_object_fn done, void *arg);
/* Updates an object (GuaranteedUpdate). suggestion (may be NULL): possibly stale state to try first, without
 * a read. */
VDI_MUST_USE vd_status vdi_storage_update(struct vdi_storage *storage, struct vd_bytes key,
					  bool create_missing, const struct vd_preconditions *preconditions,
					  struct vd_object *suggestion, vd_update_fn update,
					  vd_object_fn done, void *arg);
/* Deletes an object. done gets the revision of the deletion, and the object's last state. */
VDI_MUST_USE vd_status vdi_storage_delete(struct vdi_storage *storage, struct vd_bytes key,
					  const struct vd_preconditions *preconditions,
					  struct vd_object *suggestion, vd_validate_fn validate,
					  vd_object_fn done, void *arg);

/* One page of the resource at one revision. An undecodable object is NULL and counted; the callback's error
 * then describes the first one, with VD_OK as the status. */
struct vdi_storage_page {
	vd_rev		   revision; /* the store's revision at the time of the answer */
	struct vd_object **objects;  /* borrowed */
	size_t		   object_count;
	size_t		   undecodable_count;
	struct vd_bytes	   last_key; /* last key read, decodable or not; borrowed; empty: none */
	int64_t		   count;    /* keys from start to the end of the prefix */
	bool		   more;     /* only true if a key was read */
};
typedef void (*vdi_storage_page_fn)(void *arg, vd_status status, const struct vdi_storage_page *page,
				    const struct vd_error *error);
/* Reads the keys with prefix, from start (inclusive; empty: the prefix), at revision (0: current), at most
 * limit (0: all). A prefix that does not end with '/' is a single key. */
VDI_MUST_USE vd_status vdi_storage_page(struct vdi_storage *storage, struct vd_bytes prefix,
					struct vd_bytes start, vd_rev revision, int64_t limit,
					vdi_storage_page_fn done, void *arg);

/* Returns the store's current revision by a read, which is linearizable if the store is remote. */
VDI_MUST_USE vd_status vdi_storage_current_revision(struct vdi_storage *storage, vd_done_fn done, void *arg);
/* Counts the keys under the prefix. */
typedef void (*vdi_storage_count_fn)(void *arg, vd_status status, int64_t count,
				     const struct vd_error *error);
VDI_MUST_USE vd_status vdi_storage_count(struct vdi_storage *storage, vdi_storage_count_fn done, void *arg);

#endif
