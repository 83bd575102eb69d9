/* Checks objects against the types of their kind. Kinds with a protobuf table: members of a wrong type, and
 * unknown members (fieldValidation). Custom kinds with a schema: unknown members only, because the schema
 * checks the types (schema.h). CustomResourceDefinitions: both. Other custom kinds pass. */
#ifndef VDI_FIELD_CHECK_H
#define VDI_FIELD_CHECK_H

#include "http_status.h"
#include "resources.h"
#include "tree.h"
#include "unknown_fields.h"

/* The request whose body is checked. All members are borrowed. */
struct vdi_field_check {
	const struct vdi_resource *resource;
	struct vd_bytes		   subresource; /* empty: the object itself */
	struct vd_bytes
		validation; /* fieldValidation: "Strict", "Warn", "Ignore", or empty, which means Warn */
};

/* Checks the JSON body of a create or update before any other step. A member of a wrong type is refused. An
 * unknown member is refused with fieldValidation=Strict, ignored with Ignore, and otherwise appended to
 * warnings. Text that is not JSON passes, because the parser reports it with more detail. VD_INVALID or
 * VD_NOMEM with status. Any thread. */
VDI_MUST_USE vd_status vdi_field_check_body(const struct vdi_field_check *check, struct vd_bytes body,
					    struct vdi_out *warnings, struct vdi_http_status *status);

/* Checks the result of a patch. Unknown members that current does not have are reported to unknown, unless it
 * is NULL; members that were already stored may stay. VD_BAD_REQUEST with the path and a sentence: a member
 * has a wrong type, and no member of current had one. Kinds without a table pass. VD_NOMEM. Any thread. */
VDI_MUST_USE vd_status vdi_field_check_patched(const struct vdi_resource *resource, struct vd_bytes current,
					       struct vd_bytes patched, struct vdi_unknown_fields *unknown,
					       struct vd_error *reterr);
/* Returns true if the kind has a protobuf table. */
bool vdi_field_check_has_schema(const struct vdi_resource *resource);

/* Checks an object's metadata against the types of ObjectMeta, for any kind: a Go client fails to decode a
 * whole list if one item has others. VD_BAD_REQUEST with the member's path and the error; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_field_check_metadata(const struct vdi_node *metadata, struct vd_error *reterr);

#endif
