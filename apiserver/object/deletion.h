/* Decides what a delete does to an object: remove it at once, mark it and wait, or nothing because it is
 * already waiting. Also decides when a change of a marked object removes it.
 *
 * Mirrors kubernetes/apiserver pkg/registry/generic/registry/store.go (Delete, ShouldDeleteDuringUpdate),
 * pkg/registry/rest/delete.go (BeforeDelete), and the rules of two kinds: pods have a grace period
 * (kubernetes pkg/registry/core/pod/strategy.go), namespaces have finalizers in their spec
 * (pkg/registry/core/namespace/storage). Pure functions of their arguments; any thread. A refusal is
 * VD_INVALID with *status filled; VD_NOMEM.
 */
#ifndef VDI_DELETION_H
#define VDI_DELETION_H

#include "delete_options.h"
#include "field_errors.h"
#include "resources.h"
#include "tree.h"

/* The finalizers that the garbage collector handles. */
#define VDI_FINALIZER_ORPHAN "orphan"
#define VDI_FINALIZER_FOREGROUND "foregroundDeletion"

enum vdi_deletion_decision {
	VDI_DELETION_REMOVE, /* nothing holds the object */
	VDI_DELETION_MARK,   /* write text */
	VDI_DELETION_WAIT,   /* the object is being deleted already, and this request changes nothing */
};

struct vdi_deletion {
	enum vdi_deletion_decision decision;
	struct vdi_out		   text; /* MARK: the object to write, without a resourceVersion */
	char			   uid[64];
};

/* current: the complete JSON. text is reset, not freed. */
VDI_MUST_USE vd_status vdi_deletion_plan(const struct vdi_resource	 *resource,
					 const struct vdi_delete_options *options, vd_wall now,
					 struct vd_bytes current, struct vdi_deletion *deletion,
					 struct vdi_http_status *status);

/* Returns true if the change from old_root to root removes the last thing that held a marked object. Both
 * trees belong to tree. */
bool vdi_deletion_is_over(const struct vdi_resource *resource, struct vdi_tree *tree,
			  const struct vdi_node *root, const struct vdi_node *old_root);

/* Adds an error for each change that is forbidden on an object that is being deleted: new finalizers, another
 * deletionTimestamp. */
void vdi_deletion_validate_update(struct vdi_tree *tree, const struct vdi_node *metadata,
				  const struct vdi_node *old_metadata, struct vdi_field_errors *field_errors);

/* True for the namespaces default, kube-system and kube-public (kubernetes/apiserver
 * pkg/admission/plugin/namespace/lifecycle). */
bool vdi_deletion_is_immortal(const struct vdi_resource *resource, struct vd_bytes name);
/* True for kinds whose deletion is answered with the last state instead of a Status (ReturnDeletedObject
 * upstream). */
bool vdi_deletion_returns_object(const struct vdi_resource *resource);

/* Returns true if the list contains the string; false if list is NULL or not a list of strings. */
bool vdi_deletion_has(const struct vdi_node *list, struct vd_bytes text);

#endif
