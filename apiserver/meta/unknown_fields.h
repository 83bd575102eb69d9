/* Unknown fields of an object, reported as fieldValidation asks: in one error (Strict), or in a Warning
 * header each (Warn). Zero is an empty list. */
#ifndef VDI_UNKNOWN_FIELDS_H
#define VDI_UNKNOWN_FIELDS_H

#include "out.h"

#define VDI_UNKNOWN_FIELDS_MAX 10 /* fields that are named; more are only counted */

struct vdi_unknown_fields {
	struct vdi_out warnings; /* header lines */
	struct vdi_out refusal;	 /* `unknown field "a", unknown field "b"` */
	size_t	       count;
};

void vdi_unknown_fields_fini(struct vdi_unknown_fields *fields);
void vdi_unknown_fields_reset(struct vdi_unknown_fields *fields);

/* Adds the field with this path, such as "spec.containers[0].colour". arg is a struct vdi_unknown_fields. */
void vdi_unknown_fields_note(void *arg, struct vd_bytes path);

static inline bool vdi_unknown_fields_failed(const struct vdi_unknown_fields *fields)
{
	return fields->warnings.failed || fields->refusal.failed;
}

#endif
