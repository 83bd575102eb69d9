/* Whether an object is what its kind says, for kinds that have a protobuf table: members of other types, and members that the kind does not have
 * (fieldValidation). Of custom kinds with a schema, members that it does not know; their types are the
 * schema's to judge (schema.h). Of CustomResourceDefinitions both. Other custom kinds pass. */
#ifndef VDI_FIELD_CHECK_H
#define VDI_FIELD_CHECK_H

#include "http_request.h"

/* The body of a create or an update, as JSON, before anything else is done with it. A member of another type is refused; one that the kind does not have is refused
 * with fieldValidation=Strict and becomes a warning unless it is Ignore. Text that is not JSON passes: others say so better. False after an answer was
 * sent. */
bool vdi_field_check_body(struct vdi_request *request);

/* What a patch made of current. VD_INVALID with *status filled: it has a member of another type, and current had none. Any thread. */
VDI_MUST_USE vd_status vdi_field_check_result(const struct vdi_resource *resource, struct vd_bytes current, struct vd_bytes result,
					      struct vdi_http_status *status);

#endif
