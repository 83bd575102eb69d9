/* JSON trees and patches: a parsed document is written and parses to an equal tree; a patch preserves the
 * invariants of a tree. The input is two documents, separated by a zero byte: a target and a patch. */
#include "fuzz.h"
#include "strategic_patch.h"
#include "table.h"
#include "tree_patch.h"

static unsigned depth_of(const struct vdi_node *node)
{
	unsigned depth = 0;

	for (const struct vdi_node *child = node->first; child; child = child->next)
		depth = VDI_MAX(depth, depth_of(child));
	return depth + 1;
}

static void check_round_trip(struct vdi_tree *tree, const struct vdi_node *root)
{
	struct vdi_out	 out = VDI_OUT_INIT, again = VDI_OUT_INIT;
	struct vdi_node *copy;

	vdi_tree_write(&out, root);
	VDI_CHECK(!out.failed && vdi_tree_parse(tree, vdi_out_slice(&out), &copy, NULL) == VD_OK);
	VDI_CHECK(vdi_tree_equal(tree, root, copy));
	vdi_tree_write(&again, copy);
	VDI_CHECK(vd_bytes_equal(vdi_out_slice(&out), vdi_out_slice(&again)));
	vdi_out_fini(&out);
	vdi_out_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t  *zero = size ? memchr(data, 0, size) : NULL;
	struct vd_bytes first = { data, zero ? (size_t) (zero - data) : size };
	struct vd_bytes second = { zero ? zero + 1 : data, zero ? size - first.size - 1 : size };

	for (int kind = 0; kind < 3; kind++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_node *target, *patch;
		struct vd_error	 error = { 0 };
		vd_status	 status = VD_OK;

		if (vdi_tree_parse(&tree, first, &target, NULL) == VD_OK) {
			check_round_trip(&tree, target);
			(void) vdi_tree_path(&tree, target, ".a[?(@.b==\"c\")].d['e'][2]");
			if (vdi_tree_parse(&tree, second, &patch, NULL) == VD_OK) {
				status = kind == 0 ? vdi_patch_merge(&tree, &target, patch, &error) :
					 kind == 1 ? vdi_patch_operations(&tree, &target, patch, &error) :
						     vdi_patch_strategic(&tree, target, patch, &error);
				if (status == VD_OK) {
					VDI_CHECK(depth_of(target) <= VDI_TREE_DEPTH_MAX + 1);
					check_round_trip(&tree, target);
				}
			}
		}
		vdi_tree_fini(&tree);
	}
	return 0;
}
