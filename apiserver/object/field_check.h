/* Whether an object is what its kind says, for kinds that have a protobuf table: members of other types, and
 * members that the kind does not have (fieldValidation). Of custom kinds with a schema, members that it does
 * not know; their types are the schema's to judge (schema.h). Of CustomResourceDefinitions both. Other custom
 * kinds pass. */
#ifndef VDI_FIELD_CHECK_H
#define VDI_FIELD_CHECK_H

#include "http_status.h"
#include "resources.h"
#include "tree.h"
#include "unknown_fields.h"

/* What a body is checked against. Everything is lent. */
struct vdi_field_check {
	const struct vdi_resource *resource;
	struct vd_bytes		   subresource; /* empty: the object itself */
	struct vd_bytes
		validation; /* fieldValidation: "Strict", "Warn", "Ignore", or empty, which means Warn */
};

/* The body of a create or an update, as JSON, before anything else is done with it. A member of another type
 * is refused; one that the kind does not have is refused with fieldValidation=Strict and becomes a warning
 * unless it is Ignore, appended to warnings. Text that is not JSON passes: others say so better. VD_INVALID
 * or VD_NOMEM with status. Any thread. */
VDI_MUST_USE vd_status vdi_field_check_body(const struct vdi_field_check *check, struct vd_bytes body,
					    struct vdi_out *warnings, struct vdi_http_status *status);

/* What a patch made of current. unknown, or NULL, hears of members that the kind does not have, and that
 * current had not: what was stored before may stay. VD_BAD_REQUEST with the place and a sentence: a member is
 * of another type, and none of current's was. Kinds without a table pass. VD_NOMEM. Any thread. */
VDI_MUST_USE vd_status vdi_field_check_patched(const struct vdi_resource *resource, struct vd_bytes current,
					       struct vd_bytes patched, struct vdi_unknown_fields *unknown,
					       struct vd_error *reterr);
/* Whether the kind has a table. */
bool vdi_field_check_knows(const struct vdi_resource *resource);

/* An object's metadata, of whatever kind, against the types of ObjectMeta: a Go client reads no list that has
 * an item of others. VD_BAD_REQUEST with the member's path and its fault; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_field_check_metadata(const struct vdi_node *metadata, struct vd_error *reterr);

#endif
