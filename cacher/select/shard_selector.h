/* Shard selectors (KEP-5866): which part of a hash space a list or watch wants.
 *
 *   shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || shardRange(...)
 *
 * An object is wanted when the 64-bit FNV-1a of its uid (or namespace) lies in one of the ranges, lower bound
 * inclusive, upper exclusive; the upper end of the space is '0x10000000000000000'. Immutable; any thread;
 * matching allocates nothing. Mirrors k8s.io/apiserver pkg/sharding (R-5B0), which reads the text as CEL: of
 * that grammar this takes calls, ||, parentheses and plain quoted strings, which is all that can pass there.
 */
#ifndef VDI_SHARD_SELECTOR_H
#define VDI_SHARD_SELECTOR_H

#include <vedette/codec.h>

#include "base.h"

#define VDI_SHARD_SELECTOR_SIZE_MAX ((size_t) 64 << 10)
#define VDI_SHARD_RANGES_MAX 1000

struct vdi_shard_range {
	uint64_t first;
	uint64_t last; /* inclusive: the space ends at UINT64_MAX */
};

struct vdi_shard_selector {
	bool		       by_namespace; /* else by uid */
	char		      *text;	     /* canonical; what a list says in shardInfo */
	size_t		       text_size;
	size_t		       range_count;
	struct vdi_shard_range ranges[];
};

/* An empty text gives NULL: everything. VD_BAD_REQUEST `invalid shard selector: ...`, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_shard_selector_parse(struct vd_bytes		    text,
						struct vdi_shard_selector **ret_selector,
						struct vd_error		   *reterr);
/* NULL is fine; returns NULL. */
struct vdi_shard_selector *vdi_shard_selector_free(struct vdi_shard_selector *selector);
/* NULL wants everything. */
bool vdi_shard_selector_matches(const struct vdi_shard_selector *selector, const struct vd_object *object);
/* "" for NULL. */
struct vd_bytes vdi_shard_selector_text(const struct vdi_shard_selector *selector);

/* FNV-1a over bytes. */
uint64_t vdi_fnv1a(struct vd_bytes bytes);

#endif
