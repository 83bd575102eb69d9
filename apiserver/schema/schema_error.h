/* Errors of a validation in upstream's words: their field, the path in their text, names of types. For
 * schema_validate.c and schema_scalar.c. */
#ifndef VDI_SCHEMA_ERROR_H
#define VDI_SCHEMA_ERROR_H

#include "schema_value.h"

/* Arguments of "%.*s": the path of the value. */
#define VDI_SCHEMA_PATH(validator)                                                                           \
	(int) VDI_MIN((validator)->path.size, (size_t) VDI_SCHEMA_PATH_SIZE),                                \
		(validator)->path.size ? (validator)->path.data : ""

/* Returns "object", "string" and so on; "" for VDI_TYPE_NONE. */
const char *vdi_schema_type_name(enum vdi_schema_type type);
/* Returns the field of an error: the prefix and the path below it, then more and more_text. Borrowed until
 * the next call. */
struct vd_bytes vdi_schema_error_field(struct vdi_schema_validator *validator, const char *more,
				       struct vd_bytes more_text);
/* Adds an error without a field, as upstream does for errors other than openapierrors.Validation. */
void vdi_schema_error_add(struct vdi_schema_validator *validator, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
