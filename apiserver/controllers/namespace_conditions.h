/* What is in the way of a namespace's end, as conditions of its status (kubernetes
 * pkg/controller/namespace/deletion/status_condition_utils.go). One owner. */
#ifndef VDI_NAMESPACE_CONDITIONS_H
#define VDI_NAMESPACE_CONDITIONS_H

#include "tree.h"

#define VDI_CONTENT_COUNTS_MAX 64

struct vdi_content_count {
	char   *name; /* owned */
	int64_t number;
};

/* Counts by name; what does not fit, or finds no memory, is left out of the texts only. */
struct vdi_content_counts {
	struct vdi_content_count items[VDI_CONTENT_COUNTS_MAX];
	size_t			 count;
};

struct vdi_namespace_content {
	struct vdi_content_counts kinds; /* "pods." */
	struct vdi_content_counts finalizers;
	struct vdi_content_counts failures; /* sentences */
};

void vdi_content_add(struct vdi_content_counts *counts, struct vd_bytes name);
void vdi_namespace_content_reset(struct vdi_namespace_content *content);
/* Sets the five conditions in the namespace root, which belongs to tree; true in *ret_changed when one is
 * another than before. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_namespace_conditions_set(struct vdi_tree *tree, struct vdi_node *root,
						    struct vdi_namespace_content *content, vd_wall now,
						    bool *ret_changed);

#endif
