/* Checks of strings, numbers and enums against a schema, as those of k8s.io/kube-openapi. Each returns false
 * if the value is invalid, and adds an error. For schema_validate.c. */
#ifndef VDI_SCHEMA_SCALAR_H
#define VDI_SCHEMA_SCALAR_H

#include "schema_value.h"

/* Checks length and pattern of a string. */
bool vdi_schema_check_string(struct vdi_schema_validator *validator, const struct vdi_schema_limits *limits,
			     const struct vdi_node *value);
/* Checks the format of a string. */
bool vdi_schema_check_format(struct vdi_schema_validator *validator, const struct vdi_schema_limits *limits,
			     const struct vdi_node *value);
/* Checks range and limits of a number. */
bool vdi_schema_check_number(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			     const struct vdi_schema_number *number);
/* Checks any value against an enum; null matches none, as upstream. */
bool vdi_schema_check_enum(struct vdi_schema_validator *validator, const struct vdi_schema_limits *limits,
			   const struct vdi_node *value);

#endif
