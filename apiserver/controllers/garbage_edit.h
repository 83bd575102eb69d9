/* Edits of an object's finalizers and owner references. Pure functions. */
#ifndef VDI_GARBAGE_EDIT_H
#define VDI_GARBAGE_EDIT_H

#include "tree.h"

/* Removes all strings equal to text from a list. Returns true if there was one. */
bool vdi_garbage_remove_string(struct vdi_node *list, const char *text);
/* Returns true if item, an owner reference, names the owner with this uid. */
bool vdi_garbage_is_owner(struct vdi_tree *tree, const struct vdi_node *item, struct vd_bytes uid);
/* Removes the owner's references from the object root, and the list if it becomes empty. Returns true if
 * there was one. */
bool vdi_garbage_remove_owner(struct vdi_tree *tree, struct vdi_node *root, struct vd_bytes uid);

#endif
