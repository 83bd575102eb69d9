/* Rules of ConfigMaps and Secrets: stringData, types, keys, sizes, and immutability.
 *
 * Mirrors kubernetes pkg/apis/core/v1 (SetDefaults_Secret, Convert_v1_Secret_To_core_Secret) and
 * pkg/apis/core/validation (ValidateConfigMap, ValidateSecret and their updates). Pure functions of their
 * arguments; any thread. Other kinds are left unchanged.
 */
#ifndef VDI_CONFIG_DATA_H
#define VDI_CONFIG_DATA_H

#include "field_errors.h"
#include "resources.h"
#include "tree.h"

/* Returns true for ConfigMaps and Secrets. */
bool vdi_config_data_is(const struct vdi_resource *resource);

/* Turns a written object into the form that is stored: a Secret without a type becomes Opaque, stringData is
 * merged into data and removed, null values become empty ones. Members of a wrong type stay unchanged.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_config_data_prepare(const struct vdi_resource *resource, struct vdi_tree *tree,
					       struct vdi_node *root);

/* Adds the field errors of a prepared object. old: the present object, also prepared; NULL on create.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_config_data_validate(const struct vdi_resource *resource, struct vdi_tree *tree,
						const struct vdi_node *root, const struct vdi_node *old,
						struct vdi_field_errors *field_errors);

#endif
