/* Writer of a bbolt database, from front to back: the format of etcd's snapshot files (etcd-io/bbolt page.go,
 * node.go, tx.go).
 *
 * - page 0 and 1: meta: magic, version, page size, root bucket, freelist, high-water mark, transaction,
 *   FNV-1a of these
 * - page 2: an empty freelist
 * - then the leaves and branches of each bucket, from its leaves up, and the root bucket that references the
 *   buckets
 *
 * Buckets and pairs must be added in order. Memory: the current page, and a key and a number per leaf of the
 * bucket. The meta pages are known last, so the sink must be able to write at an offset. One thread; blocks
 * if the sink does.
 */
#ifndef VDI_BOLT_WRITE_H
#define VDI_BOLT_WRITE_H

#include <vedette/store.h>

#include "base.h"

#define VDI_BOLT_PAGE_SIZE 4096
#define VDI_BOLT_BUCKETS_MAX 16

struct vdi_bolt_sink {
	vd_status (*write)(void *arg, int64_t offset, const void *bytes, size_t size);
	void *arg;
};

struct vdi_bolt_writer;

VDI_MUST_USE vd_status vdi_bolt_writer_new(const struct vdi_bolt_sink *sink,
					   struct vdi_bolt_writer    **ret_writer);
/* NULL is fine; returns NULL. */
struct vdi_bolt_writer *vdi_bolt_writer_free(struct vdi_bolt_writer *writer);
/* Buckets in bytewise order of their names (literals), for each: begin, pairs in bytewise order of keys, end.
 * After a failure only free may be called. */
VDI_MUST_USE vd_status vdi_bolt_bucket_begin(struct vdi_bolt_writer *writer, const char *name);
VDI_MUST_USE vd_status vdi_bolt_put(struct vdi_bolt_writer *writer, struct vd_bytes key,
				    struct vd_bytes value);
VDI_MUST_USE vd_status vdi_bolt_bucket_end(struct vdi_bolt_writer *writer);
/* Writes the root, the freelist and the meta pages. *ret_size: of the file, a multiple of the page size. */
VDI_MUST_USE vd_status vdi_bolt_finish(struct vdi_bolt_writer *writer, int64_t *ret_size);

#endif
