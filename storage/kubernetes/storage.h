/* Kubernetes' storage semantics for one resource over any vd_store: Create, Get, List, GuaranteedUpdate,
 * Delete with preconditions, Count.
 *
 * Mirrors kubernetes/apiserver pkg/storage/etcd3/store.go (R-127..R-162). Keys are complete store keys.
 * Asynchronous under the rule of vedette/store.h: an error returned means no callback, VD_OK means exactly
 * one, perhaps before the call returns. Any thread; nothing blocks. Objects in callbacks are lent.
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
	struct vd_codec		   *codec;	/* lent */
	struct vdi_storage_metrics *metrics;	/* lent; NULL: nothing is counted */
};

VDI_MUST_USE vd_status vdi_storage_new(const struct vd_env *env, struct vd_store *store,
				       const struct vdi_storage_options *options,
				       struct vdi_storage **ret_storage, struct vd_error *reterr);
/* No call may be outstanding. NULL is fine. */
struct vdi_storage *vdi_storage_free(struct vdi_storage *storage);

struct vd_store		   *vdi_storage_store(const struct vdi_storage *storage);
struct vdi_storage_metrics *vdi_storage_metrics_of(const struct vdi_storage *storage);

/* traversal and empty names are refused with upstream's texts. Writes prefix + [namespace/] + name
 * into buffer. */
#define VDI_STORAGE_KEY_MAX 1024
VDI_MUST_USE vd_status vdi_storage_key(const struct vdi_storage *storage, struct vd_bytes namespace_name,
				       struct vd_bytes name, char buffer[VDI_STORAGE_KEY_MAX],
				       struct vd_bytes *ret_key, struct vd_error *reterr);

/* minimum: the answer's revision must be at least this (0: no demand). Missing: VD_NOT_FOUND. */
VDI_MUST_USE vd_status vdi_storage_get(struct vdi_storage *storage, struct vd_bytes key, vd_rev minimum,
				       vd_object_fn done, void *arg);
/* A value with a non-zero resourceVersion: VD_REVISION_ON_CREATE. */
VDI_MUST_USE vd_status vdi_storage_create(struct vdi_storage *storage, struct vd_bytes key,
					  struct vd_bytes value, int64_t ttl_s, vd_object_fn done, void *arg);
/* The same, but only while guard (of the same store; lent for the call) is as it is: VD_CONFLICT when it was
 * changed or is gone. NULL: no guard. */
VDI_MUST_USE vd_status vdi_storage_create_beside(struct vdi_storage *storage, struct vd_object *guard,
						 struct vd_bytes key, struct vd_bytes value, int64_t ttl_s,
						 vd_object_fn done, void *arg);
/* R-131..R-137. suggestion (may be NULL): a perhaps stale state to try first, without a read. */
VDI_MUST_USE vd_status vdi_storage_update(struct vdi_storage *storage, struct vd_bytes key,
					  bool create_missing, const struct vd_preconditions *preconditions,
					  struct vd_object *suggestion, vd_update_fn update,
					  vd_object_fn done, void *arg);
/* done's revision is that of the deletion, object the last state. */
VDI_MUST_USE vd_status vdi_storage_delete(struct vdi_storage *storage, struct vd_bytes key,
					  const struct vd_preconditions *preconditions,
					  struct vd_object *suggestion, vd_validate_fn validate,
					  vd_object_fn done, void *arg);

/* One page of the resource at one revision. An object that cannot be decoded is NULL and counted; the
 * callback's error then says why of the first one, with VD_OK as its status. */
struct vdi_storage_page {
	vd_rev		   revision; /* of the store when it answered */
	struct vd_object **objects;  /* lent */
	size_t		   object_count;
	size_t		   undecodable_count;
	struct vd_bytes	   last_key; /* that was read, decodable or not; lent; empty: no key was read */
	int64_t		   count;    /* keys from start to the end of the prefix */
	bool		   more;     /* never without a key */
};
typedef void (*vdi_storage_page_fn)(void *arg, vd_status status, const struct vdi_storage_page *page,
				    const struct vd_error *error);
/* Keys with prefix, from start (inclusive; empty: the prefix) on, at revision (0: current), at most limit (0:
 * all). A prefix that does not end with '/' is one key. */
VDI_MUST_USE vd_status vdi_storage_page(struct vdi_storage *storage, struct vd_bytes prefix,
					struct vd_bytes start, vd_rev revision, int64_t limit,
					vdi_storage_page_fn done, void *arg);

/* the store's current revision, by a read (linearizable where the store is remote). */
VDI_MUST_USE vd_status vdi_storage_current_revision(struct vdi_storage *storage, vd_done_fn done, void *arg);
/* Number of keys under the prefix. */
typedef void (*vdi_storage_count_fn)(void *arg, vd_status status, int64_t count,
				     const struct vd_error *error);
VDI_MUST_USE vd_status vdi_storage_count(struct vdi_storage *storage, vdi_storage_count_fn done, void *arg);

#endif
