/* The rules of ConfigMaps and Secrets: stringData, types, keys, sizes, and that immutable ones do not change.
 *
 * Mirrors kubernetes pkg/apis/core/v1 (SetDefaults_Secret, Convert_v1_Secret_To_core_Secret) and
 * pkg/apis/core/validation (ValidateConfigMap, ValidateSecret and their updates). Pure functions of their
 * arguments; any thread. A kind that is neither is left alone.
 */
#ifndef VDI_CONFIG_DATA_H
#define VDI_CONFIG_DATA_H

#include "field_errors.h"
#include "resources.h"
#include "tree.h"

/* Whether the resource is one of the two. */
bool vdi_config_data_is(const struct vdi_resource *resource);

/* Makes of a written object what is stored: a Secret without type is Opaque, stringData is merged into data
 * and removed, a null value is an empty one. What has another type than its field stays as it is.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_config_data_prepare(const struct vdi_resource *resource, struct vdi_tree *tree,
					       struct vdi_node *root);

/* Adds the faults of a prepared object. old: the prepared present one; NULL: it is new. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_config_data_validate(const struct vdi_resource *resource, struct vdi_tree *tree,
						const struct vdi_node *root, const struct vdi_node *old,
						struct vdi_faults *faults);

#endif
