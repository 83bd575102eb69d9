/* The steps of object_edit.h for custom kinds with a schema and for CustomResourceDefinitions. Pure
 * functions; any thread. */
#ifndef VDI_OBJECT_SCHEMA_H
#define VDI_OBJECT_SCHEMA_H

#include "object_edit.h"
#include "schema.h"

/* Applies the schema's defaults and removes unknown members, which are reported to unknown unless it is NULL.
 * Does nothing without a schema. VD_INVALID with *status; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_object_conform(const struct vdi_schema *schema, struct vdi_tree *tree,
					  struct vdi_node *root, struct vdi_unknown_fields *unknown,
					  struct vdi_http_status *status);

/* As above for a written object or the result of patching current; also for CustomResourceDefinitions and
 * Kubernetes' own kinds, where members of a wrong type are refused. Unknown members of a patch are reported
 * as edit->unknown requests; those of a body were reported by field_check.h. */
VDI_MUST_USE vd_status vdi_object_conform_written(const struct vdi_edit *edit, struct vdi_tree *tree,
						  struct vdi_node *root, struct vd_bytes current,
						  struct vdi_edited *edited, struct vdi_http_status *status);

/* Validates the object against the schema. old: the object that it replaces, or NULL. VD_INVALID with
 * *status, which borrows from edited->field_errors; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_object_obey(const struct vdi_edit *edit, struct vdi_tree *tree,
				       const struct vdi_node *root, const struct vdi_node *old,
				       struct vdi_edited *edited, struct vdi_http_status *status);

#endif
