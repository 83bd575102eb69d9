/* Removes empty members: absent, null and zero are equal in Kubernetes' types if Go's encoder omits a zero
 * value.
 *
 * The tables of storage/codec/k8s_proto have each field's type and tag. A zero behind a pointer is a value
 * (`replicas: 0`, `immutable: false`) and stays. For a kind without a table only metadata has types. Unknown
 * members stay, and so do members of a wrong type. Pure functions that allocate nothing; any thread.
 */
#ifndef VDI_OMIT_EMPTY_H
#define VDI_OMIT_EMPTY_H

#include "resources.h"
#include "tree.h"

/* Removes, in place, the members that a kube-apiserver would omit. root: an object of the resource. */
void vdi_omit_empty(const struct vdi_resource *resource, struct vdi_tree *tree, struct vdi_node *root);
/* The same for the metadata only, for any kind. */
void vdi_omit_empty_metadata(struct vdi_tree *tree, struct vdi_node *root);

/* Compares two objects of the resource. Empty members that a kube-apiserver always returns, such as {}, are
 * equal to absent ones here too. */
bool vdi_omit_same(const struct vdi_resource *resource, struct vdi_tree *tree, const struct vdi_node *a,
		   const struct vdi_node *b);
/* The same without metadata, and without the status if the kind has a status subresource. */
bool vdi_omit_same_content(const struct vdi_resource *resource, struct vdi_tree *tree,
			   const struct vdi_node *a, const struct vdi_node *b);

#endif
