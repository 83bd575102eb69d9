#include "garbage_edit.h"

bool vdi_garbage_remove_string(struct vdi_node *list, const char *text)
{
	bool taken = false;

	for (struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL, *next; item;
	     item = next) {
		next = item->next;
		if (vd_bytes_equal(vdi_tree_string_of(item), vd_bytes_of(text))) {
			vdi_tree_array_remove(list, item);
			taken = true;
		}
	}
	return taken;
}

bool vdi_garbage_is_owner(struct vdi_tree *tree, const struct vdi_node *item, struct vd_bytes uid)
{
	return vd_bytes_equal(vdi_tree_string_of(vdi_tree_get(tree, item, vd_bytes_of("uid"))), uid);
}

bool vdi_garbage_remove_owner(struct vdi_tree *tree, struct vdi_node *root, struct vd_bytes uid)
{
	struct vdi_node *list = vdi_tree_find(tree, root, "metadata.ownerReferences");
	bool		 taken = false;

	for (struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL, *next; item;
	     item = next) {
		next = item->next;
		if (vdi_garbage_is_owner(tree, item, uid)) {
			vdi_tree_array_remove(list, item);
			taken = true;
		}
	}
	if (taken && list->count == 0)
		(void) vdi_tree_remove(tree, vdi_tree_get(tree, root, vd_bytes_of("metadata")),
				       vd_bytes_of("ownerReferences"));
	return taken;
}
