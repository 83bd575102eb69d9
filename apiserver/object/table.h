/* Tables: what `kubectl get` prints.
 *
 * A row is derived from the object's JSON; ages are computed against the wall clock given. Any thread.
 */
#ifndef VDI_TABLE_H
#define VDI_TABLE_H

#include "resources.h"
#include "tree.h"

enum vdi_include { VDI_INCLUDE_METADATA, VDI_INCLUDE_OBJECT, VDI_INCLUDE_NONE };

/* `"columnDefinitions":[...]` */
void vdi_table_columns(struct vdi_out *out, const struct vdi_resource *resource);
/* Writes `{"cells":[...],"object":{...}}`. text: the complete JSON of the object; root: its tree. */
void vdi_table_row(struct vdi_out *out, const struct vdi_resource *resource, struct vdi_tree *tree,
		   const struct vdi_node *root, struct vd_bytes text, enum vdi_include include, bool v1beta1,
		   vd_wall now);
/* `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{...}}` */
void vdi_table_metadata(struct vdi_out *out, struct vdi_tree *tree, const struct vdi_node *root,
			bool v1beta1);

/* kubectl's short durations: "5s", "3m2s", "7d4h", "2y". */
void vdi_human_duration(struct vdi_out *out, int64_t seconds);

/* Returns the first value at a path such as `.a.b[0].c`, `.conditions[?(@.type=="Ready")].status`,
 * `.labels['x/y']`; NULL if absent or the path is not understood. */
const struct vdi_node *vdi_tree_path(struct vdi_tree *tree, const struct vdi_node *root, const char *path);

/* table_cells.c: one cell of a kind with rules of its own; writes a JSON value. */
struct vdi_cell_context {
	struct vdi_tree	      *tree;
	const struct vdi_node *root;
	vd_wall		       now;
};
void vdi_table_cell(struct vdi_out *out, const struct vdi_cell_context *context,
		    const struct vdi_column *column);
/* Writes a value as a column of that type shows it; null if the value has another type
 * (apiextensions-apiserver pkg/registry/customresource/tableconvertor). */
void vdi_table_typed(struct vdi_out *out, const struct vdi_node *value, const char *type, vd_wall now);
/* `"5m"` or `"<unknown>"` */
void vdi_table_age(struct vdi_out *out, const struct vdi_node *timestamp, vd_wall now);

#endif
