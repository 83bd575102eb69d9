/* Members that say nothing: absent, null and zero are the same in Kubernetes' types where Go's encoder omits
 * a zero value.
 *
 * The tables of storage/codec/k8s_proto know each field's type and tag. A pointer's zero is a value
 * (`replicas: 0`, `immutable: false`) and stays. Of a kind without a table only metadata has types. Members
 * that the kind does not have stay, and so does whatever is not of its field's type. Pure functions that
 * allocate nothing; any thread.
 */
#ifndef VDI_OMIT_EMPTY_H
#define VDI_OMIT_EMPTY_H

#include "resources.h"
#include "tree.h"

/* Takes away, in place, what a kube-apiserver does not return either. root: an object of the resource. */
void vdi_omit_empty(const struct vdi_resource *resource, struct vdi_tree *tree, struct vdi_node *root);
/* Only of its metadata, whatever object it is. */
void vdi_omit_empty_metadata(struct vdi_tree *tree, struct vdi_node *root);

/* Whether two objects of the resource say the same. What a kube-apiserver returns whether it was sent or not,
 * such as {}, says nothing here either. */
bool vdi_omit_same(const struct vdi_resource *resource, struct vdi_tree *tree, const struct vdi_node *a,
		   const struct vdi_node *b);
/* The same without metadata, and without the status where that is written apart. */
bool vdi_omit_same_content(const struct vdi_resource *resource, struct vdi_tree *tree,
			   const struct vdi_node *a, const struct vdi_node *b);

#endif
