/* Kubernetes' strategic merge patch on JSON trees; limits and errors as in tree_patch.h. */
#ifndef VDI_STRATEGIC_PATCH_H
#define VDI_STRATEGIC_PATCH_H

#include "tree.h"

/* Lists that have a merge key in Kubernetes' own kinds are merged by it, others replaced; $patch,
 * $deleteFromPrimitiveList, $setElementOrder and $retainKeys are honoured. */
VDI_MUST_USE vd_status vdi_patch_strategic(struct vdi_tree *tree, struct vdi_node *target,
					   struct vdi_node *patch, struct vd_error *reterr);

#endif
