/* CustomResourceDefinitions (apiextensions.k8s.io/v1): defaults and validation of a write, the resources
 * served for a definition, and its status.
 *
 * Pure functions of their arguments; any thread. Mirrors k8s.io/apiextensions-apiserver
 * pkg/apis/apiextensions (v1/defaults.go, validation/validation.go),
 * pkg/registry/customresourcedefinition/strategy.go, pkg/controller/status (naming) and
 * pkg/controller/establish.
 */
#ifndef VDI_CRD_H
#define VDI_CRD_H

#include "field_errors.h"
#include "resources.h"
#include "unknown_fields.h"

#define VDI_CRD_FINALIZER "customresourcecleanup.apiextensions.k8s.io"

/* Returns true if resource is the kind CustomResourceDefinition. */
bool vdi_crd_is(const struct vdi_resource *resource);

/* ---- crd_fields.c: first step of every write ---- */

/* Removes unknown members, reporting their paths to unknown (or NULL), and members equal to absent ones
 * (null; zero where Go omits it). Schemas stay as they are. root is an object. VD_BAD_REQUEST with the path
 * and a message: a member has a type that upstream cannot decode; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_crd_check_fields(struct vdi_tree *tree, struct vdi_node *root,
					    struct vdi_unknown_fields *unknown, struct vd_error *reterr);

/* ---- crd_validate.c: validation of a write ---- */

/* Sets defaults. For a new definition (old NULL) the status starts empty; for an update the storage version
 * is added to status.storedVersions. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_crd_prepare(struct vdi_tree *tree, struct vdi_node *root,
				       const struct vdi_node *old);
/* Adds upstream's validation errors, and an error for webhook conversion, which is not supported.
 * *ret_rule_count: number of x-kubernetes-validations, which this server does not evaluate. VD_NOMEM;
 * otherwise check field errors. */
VDI_MUST_USE vd_status vdi_crd_validate(struct vdi_tree *tree, const struct vdi_node *root,
					const struct vdi_node *old, struct vdi_field_errors *field_errors,
					size_t *ret_rule_count);

/* ---- crd.c: served resources ---- */

/* A parsed definition. */
struct vdi_crd {
	/* one per served version, the storage version first where the order is free; no caches yet */
	struct vdi_resources	  resources;
	struct vdi_resource	 *stored; /* the storage version, served or not; one reference */
	struct vd_field_spec	  fields[VD_FIELDS_MAX]; /* of all versions; texts owned by the resources */
	size_t			  field_count;
	struct vdi_read_defaults *defaults; /* of all versions; one reference besides that of stored */
	char			  uid[64];
	int64_t			  generation;
	bool			  is_terminating; /* being deleted */
	bool			  is_kept;	  /* by our finalizer, until its objects are deleted */
	bool			  was_accepted;	  /* has the condition that its names are accepted */
};

/* root_path: prefix of all keys, such as "/registry/". VD_INVALID with a message: the definition cannot be
 * served; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_crd_read(struct vd_bytes json, const char *root_path, struct vdi_crd *ret_crd,
				    struct vd_error *reterr);
void		       vdi_crd_fini(struct vdi_crd *crd);

/* ---- crd_status.c ---- */

struct vdi_crd_state {
	const char *conflict; /* reason why the names are not accepted; a literal; NULL: accepted */
	const char *conflict_message;
	bool	    is_served;
	bool	    is_cleaned; /* all of its objects are deleted */
	const char *cleaning;	/* why objects are left, or NULL */
};

/* Updates the status of root; *ret_changed: it was different. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_crd_set_status(struct vdi_tree *tree, struct vdi_node *root,
					  const struct vdi_crd_state *state, vd_wall now, bool *ret_changed);
/* Sets the finalizer and the condition Terminating. Called for a delete; root has its deletionTimestamp
 * already. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_crd_set_terminating(struct vdi_tree *tree, struct vdi_node *root, vd_wall now);
/* Removes the finalizer. */
void vdi_crd_remove_finalizer(struct vdi_tree *tree, struct vdi_node *root);

#endif
