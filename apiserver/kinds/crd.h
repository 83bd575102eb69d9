/* CustomResourceDefinitions (apiextensions.k8s.io/v1): what a write makes of one and refuses, what is served
 * because of one, and its status.
 *
 * Pure functions of their arguments; any thread. Mirrors k8s.io/apiextensions-apiserver
 * pkg/apis/apiextensions (v1/defaults.go, validation/validation.go),
 * pkg/registry/customresourcedefinition/strategy.go, pkg/controller/status (naming) and
 * pkg/controller/establish.
 */
#ifndef VDI_CRD_H
#define VDI_CRD_H

#include "faults.h"
#include "resources.h"
#include "unknown_fields.h"

#define VDI_CRD_FINALIZER "customresourcecleanup.apiextensions.k8s.io"

/* Is resource the kind of these? */
bool vdi_crd_is(const struct vdi_resource *resource);

/* ---- crd_fields.c: before anything else is done with one ---- */

/* Removes members that a CustomResourceDefinition does not have, whose paths unknown, or NULL, gets, and
 * members that say nothing (null; zero where Go omits it). Schemas stay as they are. root is an object.
 * VD_BAD_REQUEST with the place and a sentence: a member of another type, where upstream cannot decode it;
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_crd_check_fields(struct vdi_tree *tree, struct vdi_node *root,
					    struct vdi_unknown_fields *unknown, struct vd_error *reterr);

/* ---- crd_validate.c: at a write ---- */

/* Fills in what follows from the rest; of a new one (old NULL) the status begins anew, of another the storage
 * version joins status.storedVersions. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_crd_prepare(struct vdi_tree *tree, struct vdi_node *root,
				       const struct vdi_node *old);
/* Adds what upstream would refuse, and what cannot be served here: webhook conversion. *ret_rule_count:
 * x-kubernetes-validations, which nobody evaluates. VD_NOMEM; else look at the faults. */
VDI_MUST_USE vd_status vdi_crd_validate(struct vdi_tree *tree, const struct vdi_node *root,
					const struct vdi_node *old, struct vdi_faults *faults,
					size_t *ret_rule_count);

/* ---- crd.c: what is served ---- */

/* What one definition asks for. */
struct vdi_crd {
	/* one for each served version, the storage version first where the order is free; no caches yet */
	struct vdi_resources resources;
	struct vdi_resource *stored; /* the storage version, served or not; a use of it */
	struct vd_field_spec fields
		[VD_FIELDS_MAX]; /* of all versions together; their texts are of the resources or of stored */
	size_t			  field_count;
	struct vdi_read_defaults *defaults; /* of all versions; a use, beside that of stored */
	char			  uid[64];
	int64_t			  generation;
	bool			  is_terminating; /* its objects go */
	bool			  is_kept;	  /* by the finalizer that lets its objects go first */
	bool			  was_accepted;	  /* its status says so */
};

/* root_path: where keys begin, "/registry/". VD_INVALID with a sentence: it cannot be served, as it is;
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_crd_read(struct vd_bytes json, const char *root_path, struct vdi_crd *ret_crd,
				    struct vd_error *reterr);
void		       vdi_crd_fini(struct vdi_crd *crd);

/* ---- crd_status.c ---- */

struct vdi_crd_state {
	const char *conflict; /* reason: why the names are not accepted; a literal; NULL: they are */
	const char *conflict_message;
	bool	    is_served;
	bool	    is_cleaned; /* all of its objects are gone */
	const char *cleaning;	/* what keeps them, or NULL */
};

/* What becomes of the status of root; *ret_changed: it said something else before. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_crd_set_status(struct vdi_tree *tree, struct vdi_node *root,
					  const struct vdi_crd_state *state, vd_wall now, bool *ret_changed);
/* A delete came: the finalizer, and the condition Terminating. root is marked already. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_crd_set_terminating(struct vdi_tree *tree, struct vdi_node *root, vd_wall now);
/* Takes the finalizer away. */
void vdi_crd_remove_finalizer(struct vdi_tree *tree, struct vdi_node *root);

#endif
