/* Patches on JSON trees: merge (RFC 7386), JSON Patch (RFC 6902) and Kubernetes' strategic merge (H-341, H-342).
 *
 * Target and patch lie in the same tree; the target is changed in place and nothing of it is usable after a failure. VD_BAD_REQUEST: the patch itself is
 * malformed. VD_INVALID: it cannot be applied to this target (a test failed, a path is missing). VD_TOO_BIG: more than VDI_PATCH_OPERATIONS_MAX
 * operations, or a result that grows out of bounds. VD_NOMEM.
 */
#ifndef VDI_TREE_PATCH_H
#define VDI_TREE_PATCH_H

#include "tree.h"

#define VDI_PATCH_OPERATIONS_MAX 10000

VDI_MUST_USE vd_status vdi_patch_merge(struct vdi_tree *tree, struct vdi_node **target, struct vdi_node *patch, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_patch_operations(struct vdi_tree *tree, struct vdi_node **target, const struct vdi_node *patch,
					    struct vd_error *reterr);
/* Lists that have a merge key in Kubernetes' own kinds are merged by it, others replaced; $patch, $deleteFromPrimitiveList, $setElementOrder and
 * $retainKeys are honoured. */
VDI_MUST_USE vd_status vdi_patch_strategic(struct vdi_tree *tree, struct vdi_node *target, struct vdi_node *patch, struct vd_error *reterr);

#endif
