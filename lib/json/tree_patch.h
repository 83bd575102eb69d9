/* Patches on JSON trees: merge patch (RFC 7386) and JSON Patch (RFC 6902).
 *
 * Target and patch are in the same tree. The target is changed in place, the patch is consumed, and after a
 * failure neither may be used. VD_BAD_REQUEST: the patch is malformed. VD_INVALID: it cannot be applied to
 * this target (a test failed, a path does not exist). VD_TOO_BIG: more than VDI_PATCH_OPERATIONS_MAX
 * operations, more than VDI_PATCH_STEPS_MAX steps, more than VDI_PATCH_COPY_MAX bytes copied by a JSON Patch,
 * or a document with more than VDI_PATCH_BYTES_MAX bytes after any operation. VD_NOMEM.
 */
#ifndef VDI_TREE_PATCH_H
#define VDI_TREE_PATCH_H

#include "tree.h"

#define VDI_PATCH_OPERATIONS_MAX 10000
#define VDI_PATCH_BYTES_MAX ((size_t) 3 << 20) /* like a request's body */
#define VDI_PATCH_COPY_MAX ((size_t) 3 << 20)  /* like upstream's JSONPatchMaxCopyBytes */
#define VDI_PATCH_STEPS_MAX 10000000	       /* steps of struct vdi_tree, each some nanoseconds */

VDI_MUST_USE vd_status vdi_patch_merge(struct vdi_tree *tree, struct vdi_node **target,
				       struct vdi_node *patch, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_patch_operations(struct vdi_tree *tree, struct vdi_node **target,
					    struct vdi_node *patch, struct vd_error *reterr);

/* For a merge, whose document never exceeds target and patch together: VD_TOO_BIG if it has more than
 * VDI_PATCH_BYTES_MAX at the end. */
VDI_MUST_USE vd_status vdi_patch_check_size(struct vdi_tree *tree, const struct vdi_node *target,
					    struct vd_error *reterr);

#endif
