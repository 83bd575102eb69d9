/* Computes the new state of an object for a write: creation, replacement, patches, and the subresources
 * status, scale and finalize.
 *
 * Pure functions of their arguments; any thread. A refusal is VD_INVALID with *status filled; VD_NOMEM.
 * Results have no resourceVersion.
 */
#ifndef VDI_OBJECT_EDIT_H
#define VDI_OBJECT_EDIT_H

#include "field_errors.h"
#include "http_status.h"
#include "resources.h"
#include "tree.h"
#include "unknown_fields.h"

enum vdi_edit_part { VDI_EDIT_WHOLE, VDI_EDIT_STATUS, VDI_EDIT_SCALE, VDI_EDIT_FINALIZE /* of namespaces */ };
enum vdi_edit_patch { VDI_PATCH_NONE, VDI_PATCH_OPERATIONS, VDI_PATCH_MERGE, VDI_PATCH_STRATEGIC };

/* Handling of a patch that adds members unknown to the kind (fieldValidation). */
enum vdi_edit_unknown { VDI_UNKNOWN_IGNORED, VDI_UNKNOWN_WARNED, VDI_UNKNOWN_REFUSED };

struct vdi_edit {
	const struct vdi_resource *resource;
	struct vd_bytes		   namespace_name; /* from the path */
	struct vd_bytes		   name;	   /* from the path; empty on create */
	struct vd_bytes		   body;
	enum vdi_edit_part	   part;
	enum vdi_edit_patch	   patch;
	enum vdi_edit_unknown	   unknown;
	vd_wall			   now;
	uint64_t		   random[3]; /* two words for the uid, one for a generated name */
};

#define VDI_OBJECT_NAME_SIZE 256

struct vdi_edited {
	struct vdi_out text;
	char	       name[VDI_OBJECT_NAME_SIZE]; /* of a create: the name, possibly generated */
	bool	       generated;		   /* the name was generated */
	bool	       unchanged;		   /* of an update: the content is the same as before */
	/* of an update: the object is marked for deletion and its last finalizer was removed */
	bool			finished;
	struct vdi_field_errors field_errors; /* the status of a refusal borrows from it */
	/* of a CustomResourceDefinition: number of x-kubernetes-validations, for a warning */
	size_t			  rule_count;
	struct vdi_unknown_fields unknown; /* of a patch: unknown members, for a warning */
};

void vdi_edited_fini(struct vdi_edited *edited);

/* text is reset, not freed. */
VDI_MUST_USE vd_status vdi_edit_create(const struct vdi_edit *edit, struct vdi_edited *edited,
				       struct vdi_http_status *status);
/* current: the complete JSON with its resourceVersion. */
VDI_MUST_USE vd_status vdi_edit_update(const struct vdi_edit *edit, struct vd_bytes current,
				       struct vdi_edited *edited, struct vdi_http_status *status);
#endif
