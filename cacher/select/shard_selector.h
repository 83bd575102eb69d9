/* Shard selectors (KEP-5866): the part of a hash space that a list or watch selects.
 *
 *   shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || shardRange(...)
 *
 * An object is selected if the 64-bit FNV-1a hash of its uid (or namespace) is in one of the ranges; a lower
 * bound is inclusive, an upper bound exclusive, and the end of the space is '0x10000000000000000'. Immutable;
 * any thread; matching allocates nothing. Mirrors k8s.io/apiserver pkg/sharding, which parses the text as
 * CEL. This parser accepts calls, ||, parentheses and plain quoted strings, which is all that upstream's
 * validation accepts.
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
	bool		       by_namespace; /* otherwise by uid */
	char		      *text;	     /* canonical; shown in a list's shardInfo */
	size_t		       text_size;
	size_t		       range_count;
	struct vdi_shard_range ranges[];
};

/* Parses a shard selector. Empty text returns NULL, which selects everything. VD_BAD_REQUEST `invalid shard
 * selector: ...`, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_shard_selector_parse(struct vd_bytes		    text,
						struct vdi_shard_selector **ret_selector,
						struct vd_error		   *reterr);
/* Accepts NULL; returns NULL. */
struct vdi_shard_selector *vdi_shard_selector_free(struct vdi_shard_selector *selector);
/* NULL selects everything. */
bool vdi_shard_selector_matches(const struct vdi_shard_selector *selector, const struct vd_object *object);
/* Returns "" for NULL. */
struct vd_bytes vdi_shard_selector_text(const struct vdi_shard_selector *selector);

/* FNV-1a over bytes. */
uint64_t vdi_fnv1a(struct vd_bytes bytes);

#endif
