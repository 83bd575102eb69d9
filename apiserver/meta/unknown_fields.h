/* Members of an object that its kind does not have, as fieldValidation wants them told: refused together, or
 * a Warning header each. Zero is an empty one. */
#ifndef VDI_UNKNOWN_FIELDS_H
#define VDI_UNKNOWN_FIELDS_H

#include "out.h"

#define VDI_UNKNOWN_FIELDS_MAX 10 /* that are named */

struct vdi_unknown_fields {
	struct vdi_out warnings; /* header lines */
	struct vdi_out refusal;	 /* `unknown field "a", unknown field "b"` */
	size_t	       count;
};

void vdi_unknown_fields_fini(struct vdi_unknown_fields *fields);
void vdi_unknown_fields_reset(struct vdi_unknown_fields *fields);

/* arg is a struct vdi_unknown_fields. What a member is called: "spec.containers[0].colour". */
void vdi_unknown_fields_note(void *arg, struct vd_bytes path);

static inline bool vdi_unknown_fields_failed(const struct vdi_unknown_fields *fields)
{
	return fields->warnings.failed || fields->refusal.failed;
}

#endif
