/* What a custom kind's schema makes of a write, and of a CustomResourceDefinition: the steps of object_edit.h
 * that only they have. Pure functions; any thread. */
#ifndef VDI_OBJECT_SCHEMA_H
#define VDI_OBJECT_SCHEMA_H

#include "object_edit.h"
#include "schema.h"

/* Defaults come, what the schema does not know goes. unknown, or NULL, hears of what goes. VD_INVALID with
 * *status; VD_NOMEM. Nothing without a schema. */
VDI_MUST_USE vd_status vdi_object_conform(const struct vdi_schema *schema, struct vdi_tree *tree,
					  struct vdi_node *root, struct vdi_unknown_fields *unknown,
					  struct vdi_http_status *status);

/* The same for what a write brought or a patch made of current, also of a CustomResourceDefinition and of
 * Kubernetes' own kinds, where a member of another type is refused: what a patch brought and the kind does
 * not have is told as the request wants it (edit->unknown); of a body that was done before. */
VDI_MUST_USE vd_status vdi_object_conform_written(const struct vdi_edit *edit, struct vdi_tree *tree,
						  struct vdi_node *root, struct vd_bytes current,
						  struct vdi_edited *edited, struct vdi_http_status *status);

/* Whether the object is what the schema says. old: what it replaces, or NULL. VD_INVALID with *status, which
 * borrows from edited->faults; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_object_obey(const struct vdi_edit *edit, struct vdi_tree *tree,
				       const struct vdi_node *root, const struct vdi_node *old,
				       struct vdi_edited *edited, struct vdi_http_status *status);

#endif
