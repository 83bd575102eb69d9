/* What a delete makes of an object: whether it goes at once, is marked and waits, or waits already; and when
 * a change of a marked object ends it.
 *
 * Mirrors kubernetes/apiserver pkg/registry/generic/registry/store.go (Delete, ShouldDeleteDuringUpdate),
 * pkg/registry/rest/delete.go (BeforeDelete), and the rules of two kinds: pods have a grace period
 * (kubernetes pkg/registry/core/pod/strategy.go), namespaces finalizers of their own in spec
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

enum vdi_deletion_verdict {
	VDI_DELETION_REMOVE, /* nothing keeps it */
	VDI_DELETION_MARK,   /* text is to be written */
	VDI_DELETION_WAIT,   /* it is being deleted already, and this request changes nothing about it */
};

struct vdi_deletion {
	enum vdi_deletion_verdict verdict;
	struct vdi_out		  text; /* MARK: without a resourceVersion */
	char			  uid[64];
};

/* current: the complete JSON. text is reset, not freed. */
VDI_MUST_USE vd_status vdi_deletion_plan(const struct vdi_resource	 *resource,
					 const struct vdi_delete_options *options, vd_wall now,
					 struct vd_bytes current, struct vdi_deletion *deletion,
					 struct vdi_http_status *status);

/* Whether the change from old_root to root takes away the last thing that kept a marked object. Both
 * belong to tree. */
bool vdi_deletion_is_over(const struct vdi_resource *resource, struct vdi_tree *tree,
			  const struct vdi_node *root, const struct vdi_node *old_root);

/* Adds a fault for each thing that an update may not do to an object that is being deleted: new finalizers,
 * another deletionTimestamp. */
void vdi_deletion_validate_update(struct vdi_tree *tree, const struct vdi_node *metadata,
				  const struct vdi_node *old_metadata, struct vdi_faults *faults);

/* default, kube-system, kube-public (kubernetes/apiserver pkg/admission/plugin/namespace/lifecycle). */
bool vdi_deletion_is_immortal(const struct vdi_resource *resource, struct vd_bytes name);
/* Kinds whose deletion is answered with the last state instead of a Status (ReturnDeletedObject upstream). */
bool vdi_deletion_returns_object(const struct vdi_resource *resource);

/* Whether the list of strings holds text; list may be NULL or anything else. */
bool vdi_deletion_has(const struct vdi_node *list, struct vd_bytes text);

#endif
