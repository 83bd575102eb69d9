/* JSON as a tree, for the cold paths: patches, defaulting, table cells. On jansson.
 *
 * Trees keep the order of keys and every 64-bit integer exactly; other numbers are doubles and are written
 * with as few digits as give the same double. Nothing blocks; a tree belongs to one thread at a time. Trees
 * are jansson's own allocations: release them with json_decref.
 */
#ifndef VDI_JSON_EDIT_H
#define VDI_JSON_EDIT_H

#include <jansson.h>

#include "base.h"
#include "json_scan.h"

/* Operations of one JSON patch, as upstream (k8s.io/apiserver pkg/endpoints/handlers/patch.go). */
#define VDI_JSON_PATCH_OPERATIONS_MAX 10000
/* Bytes, roughly, that all copies of one JSON patch may make: copying doubles. */
#define VDI_JSON_PATCH_COPY_MAX ((size_t) 16 << 20)

/* Any JSON value. As strict as vdi_json_validate, and no key may appear twice in any object. limits NULL: the
 * default. VD_BAD_REQUEST with the byte position, VD_TOO_BIG, VD_NOMEM. */
VD_MUST_USE vd_status vdi_json_load(struct vd_bytes json, const struct vdi_json_limits *limits,
				    json_t **ret_tree, struct vd_error *reterr);

/* Compact text without white space, NUL-terminated; the caller frees it with vdi_free. VD_NOMEM; VD_TOO_BIG
 * when deeper than 2 * VDI_JSON_DEPTH_MAX. */
VD_MUST_USE vd_status vdi_json_dump(const json_t *tree, char **ret_text, size_t *ret_size,
				    struct vd_error *reterr);

/* The value at a dotted path of keys, such as "spec.nodeName" (a leading dot is fine; `\.` stands for a dot
 * in a key), or NULL. Borrowed. */
json_t *vdi_json_get(const json_t *tree, const char *path);

/* RFC 7386. target and patch stay as they are; *ret_tree is a new tree. VD_NOMEM. */
VD_MUST_USE vd_status vdi_json_merge_patch(const json_t *target, const json_t *patch, json_t **ret_tree,
					   struct vd_error *reterr);

/* RFC 6902. target and patch stay as they are; *ret_tree is a new tree, only after all operations went well.
 * VD_BAD_REQUEST: the patch is no list of operations. VD_INVALID: an operation cannot be done, or a test
 * failed; the message names its number. VD_TOO_BIG, VD_NOMEM. */
VD_MUST_USE vd_status vdi_json_patch(const json_t *target, const json_t *patch, json_t **ret_tree,
				     struct vd_error *reterr);

/* The same value: objects whatever their order, numbers by value (1 is 1.0). */
bool vdi_json_same(const json_t *a, const json_t *b);

#endif
