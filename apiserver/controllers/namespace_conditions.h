/* Conditions in a namespace's status that tell why its deletion is not complete (kubernetes
 * pkg/controller/namespace/deletion/status_condition_utils.go). Not thread-safe. */
#ifndef VDI_NAMESPACE_CONDITIONS_H
#define VDI_NAMESPACE_CONDITIONS_H

#include "tree.h"

#define VDI_CONTENT_COUNTS_MAX 64

struct vdi_content_count {
	char   *name; /* owned */
	int64_t number;
};

/* Counts by name. Names beyond the limit or without memory are missing in the messages only. */
struct vdi_content_counts {
	struct vdi_content_count items[VDI_CONTENT_COUNTS_MAX];
	size_t			 count;
};

struct vdi_namespace_content {
	struct vdi_content_counts kinds; /* such as "pods." */
	struct vdi_content_counts finalizers;
	struct vdi_content_counts failures; /* sentences */
};

void vdi_content_add(struct vdi_content_counts *counts, struct vd_bytes name);
void vdi_namespace_content_reset(struct vdi_namespace_content *content);
/* Sets the five conditions in the namespace root, which belongs to tree; *ret_changed: one of them was
 * different. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_namespace_conditions_set(struct vdi_tree *tree, struct vdi_node *root,
						    struct vdi_namespace_content *content, vd_wall now,
						    bool *ret_changed);

#endif
