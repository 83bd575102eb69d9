/* Reader of a bbolt database: an etcd snapshot, or the member/snap/db of a stopped etcd. The file is not
 * trusted: every page number, offset and size is checked against its length, and no page is entered twice.
 *
 * One thread; pure functions over bytes (mapped or read by the caller).
 */
#ifndef VDI_BOLT_READ_H
#define VDI_BOLT_READ_H

#include <vedette/store.h>

#include "base.h"

struct vdi_bolt_file {
	const uint8_t *bytes;
	uint64_t       size;
	uint32_t       page_size;
	uint64_t       root;
	uint64_t       page_count;
};

/* Key and value are borrowed for the call. */
typedef vd_status (*vdi_bolt_each_fn)(void *arg, struct vd_bytes key, struct vd_bytes value);

/* VD_CORRUPT with a message: not a bbolt database. */
VDI_MUST_USE vd_status vdi_bolt_file_init(struct vd_bytes bytes, struct vdi_bolt_file *ret_file,
					  struct vd_error *reterr);
/* Visits all pairs of a top-level bucket in order; a missing bucket has none. VD_CORRUPT, VD_NOMEM, or the
 * error of each. */
VDI_MUST_USE vd_status vdi_bolt_each(const struct vdi_bolt_file *file, const char *bucket,
				     vdi_bolt_each_fn each, void *arg, struct vd_error *reterr);

#endif
