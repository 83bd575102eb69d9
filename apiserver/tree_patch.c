/* Merge patch and JSON Patch.
 *
 * A JSON Patch can copy the document into itself again and again; what it may build is bounded in depth (VDI_TREE_DEPTH_MAX) and in nodes copied, so that
 * neither memory nor the recursion of the writer can be driven out of bounds.
 */
#include "tree_patch.h"

#define COPIED_NODES_MAX 1000000

struct operations {
	struct vdi_tree *tree;
	struct vdi_node	     *root;
	struct vd_error	     *error;
	size_t		      index;
	size_t		      copied;
};

static vd_status no_memory(struct vd_error *error)
{
	return vd_error_set(error, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
}

static bool merge_object(struct vdi_tree *tree, struct vdi_node *target, struct vdi_node *patch)
{
	for (struct vdi_node *change = patch->first; change; change = change->next) {
		struct vdi_node *member = vdi_tree_get(tree, target, change->key);

		if (change->kind == VDI_NODE_NULL) {
			(void) vdi_tree_remove(tree, target, change->key);
			continue;
		}
		if (change->kind != VDI_NODE_OBJECT) {
			if (!vdi_tree_set(tree, target, change->key, vdi_tree_copy(tree, change)))
				return false;
			continue;
		}
		if (!vdi_tree_is(member, VDI_NODE_OBJECT)) {
			if (!vdi_tree_set(tree, target, change->key, vdi_tree_new(tree, VDI_NODE_OBJECT)))
				return false;
			member = vdi_tree_get(tree, target, change->key);
		}
		if (!merge_object(tree, member, change))
			return false;
	}
	return true;
}

vd_status vdi_patch_merge(struct vdi_tree *tree, struct vdi_node **target, struct vdi_node *patch, struct vd_error *reterr)
{
	if (patch->kind != VDI_NODE_OBJECT) {
		*target = patch;
		return VD_OK;
	}
	if ((*target)->kind != VDI_NODE_OBJECT) {
		*target = vdi_tree_new(tree, VDI_NODE_OBJECT);
		if (*target == NULL)
			return no_memory(reterr);
	}
	return merge_object(tree, *target, patch) ? VD_OK : no_memory(reterr);
}

/* ---- JSON Patch ---- */

static vd_status fault(struct operations *operations, vd_status status, const char *what)
{
	return vd_error_set(operations->error, status, "operation %zu: %s", operations->index, what);
}

/* The next segment of a pointer, unescaped into buffer. */
static bool next_segment(struct vd_bytes *pointer, char buffer[1024], struct vd_bytes *ret_segment)
{
	const char *at = pointer->data;
	const char *end = at + pointer->size;
	size_t	    size = 0;

	for (at++; at < end && *at != '/'; at++) {
		char c = *at;

		if (c == '~') {
			if (++at == end || (*at != '0' && *at != '1'))
				return false;
			c = *at == '0' ? '~' : '/';
		}
		if (size == 1024)
			return false;
		buffer[size++] = c;
	}
	*pointer = (struct vd_bytes) { at, (size_t) (end - at) };
	*ret_segment = (struct vd_bytes) { buffer, size };
	return true;
}

/* An array index; -1 for '-', -2 when it is none. */
static int64_t index_of(struct vd_bytes segment)
{
	const char *at = segment.data;
	int64_t	    index = 0;

	if (segment.size == 1 && at[0] == '-')
		return -1;
	if (segment.size == 0 || segment.size > 9 || (at[0] == '0' && segment.size > 1))
		return -2;
	for (size_t i = 0; i < segment.size; i++) {
		if (at[i] < '0' || at[i] > '9')
			return -2;
		index = index * 10 + (at[i] - '0');
	}
	return index;
}

static struct vdi_node *element(struct vdi_node *array, int64_t index)
{
	struct vdi_node *child = array->first;

	if (index < 0)
		return NULL;
	while (child && index-- > 0)
		child = child->next;
	return child;
}

static struct vdi_node *child_of(struct operations *operations, struct vdi_node *parent, struct vd_bytes segment)
{
	if (vdi_tree_is(parent, VDI_NODE_ARRAY))
		return element(parent, index_of(segment));
	return vdi_tree_get(operations->tree, parent, segment);
}

/* Walks to the parent of what pointer names. The whole document: *ret_parent NULL. */
static vd_status walk(struct operations *operations, struct vd_bytes pointer, struct vdi_node **ret_parent, char buffer[1024],
		      struct vd_bytes *ret_last, unsigned *ret_depth)
{
	struct vdi_node *parent = NULL;
	struct vdi_node *at = operations->root;
	unsigned	 depth = 0;

	*ret_last = VD_BYTES_NONE;
	if (pointer.size && ((const char *) pointer.data)[0] != '/')
		return fault(operations, VD_BAD_REQUEST, "a path must begin with '/'");
	while (pointer.size) {
		if (parent || depth) {
			at = child_of(operations, at, *ret_last);
			if (at == NULL)
				return fault(operations, VD_INVALID, "the path does not exist");
		}
		parent = at;
		if (!next_segment(&pointer, buffer, ret_last))
			return fault(operations, VD_BAD_REQUEST, "malformed path");
		depth++;
		if (parent->kind != VDI_NODE_OBJECT && parent->kind != VDI_NODE_ARRAY)
			return fault(operations, VD_INVALID, "the path does not exist");
	}
	*ret_parent = parent;
	*ret_depth = depth;
	return VD_OK;
}

static vd_status find(struct operations *operations, struct vd_bytes pointer, struct vdi_node **ret_node)
{
	struct vdi_node *parent;
	char		 buffer[1024];
	struct vd_bytes	 last;
	unsigned	 depth;

	VDI_TRY(walk(operations, pointer, &parent, buffer, &last, &depth));
	*ret_node = depth ? child_of(operations, parent, last) : operations->root;
	return *ret_node ? VD_OK : fault(operations, VD_INVALID, "the path does not exist");
}

static unsigned depth_of(const struct vdi_node *node)
{
	unsigned depth = 0;

	for (const struct vdi_node *child = node->first; child; child = child->next)
		depth = VDI_MAX(depth, depth_of(child));
	return depth + 1;
}

static size_t nodes_of(const struct vdi_node *node)
{
	size_t count = 1;

	for (const struct vdi_node *child = node->first; child; child = child->next)
		count += nodes_of(child);
	return count;
}

static vd_status add(struct operations *operations, struct vd_bytes pointer, struct vdi_node *value)
{
	struct vdi_node *parent, *before;
	char		 buffer[1024];
	struct vd_bytes	 last;
	unsigned	 depth;
	int64_t		 index;

	VDI_TRY(walk(operations, pointer, &parent, buffer, &last, &depth));
	if (depth + depth_of(value) > VDI_TREE_DEPTH_MAX)
		return fault(operations, VD_TOO_BIG, "nested too deeply");
	if (depth == 0) {
		operations->root = value;
		return VD_OK;
	}
	if (parent->kind == VDI_NODE_OBJECT)
		return vdi_tree_set(operations->tree, parent, last, value) ? VD_OK : no_memory(operations->error);
	index = index_of(last);
	if (index == -2 || index > (int64_t) parent->count)
		return fault(operations, VD_INVALID, "the array index is out of range");
	if (index == -1 || index == (int64_t) parent->count) {
		vdi_tree_append(parent, value);
		return VD_OK;
	}
	before = index ? element(parent, index - 1) : NULL;
	value->next = before ? before->next : parent->first;
	if (before)
		before->next = value;
	else
		parent->first = value;
	parent->count++;
	return VD_OK;
}

/* ret_removed (may be NULL) is free to be put elsewhere. */
static vd_status take_out(struct operations *operations, struct vd_bytes pointer, struct vdi_node **ret_removed)
{
	struct vdi_node *parent, *child;
	char		 buffer[1024];
	struct vd_bytes	 last;
	unsigned	 depth;

	VDI_TRY(walk(operations, pointer, &parent, buffer, &last, &depth));
	if (depth == 0)
		return fault(operations, VD_INVALID, "the whole document cannot be removed");
	child = child_of(operations, parent, last);
	if (child == NULL)
		return fault(operations, VD_INVALID, "the path does not exist");
	if (parent->kind == VDI_NODE_OBJECT)
		(void) vdi_tree_remove(operations->tree, parent, last);
	else
		vdi_tree_array_remove(parent, child);
	if (ret_removed)
		*ret_removed = child;
	return VD_OK;
}

static vd_status replace(struct operations *operations, struct vd_bytes pointer, struct vdi_node *value)
{
	struct vdi_node *old, *next;
	struct vd_bytes	 key;
	unsigned	 depth = 0;

	VDI_TRY(find(operations, pointer, &old));
	if (old == operations->root) {
		operations->root = value;
		return VD_OK;
	}
	for (size_t i = 0; i < pointer.size; i++)
		depth += ((const char *) pointer.data)[i] == '/';
	if (depth + depth_of(value) > VDI_TREE_DEPTH_MAX)
		return fault(operations, VD_TOO_BIG, "nested too deeply");
	next = old->next;
	key = old->key;
	*old = *value;
	old->next = next;
	old->key = key;
	return VD_OK;
}

static vd_status copied(struct operations *operations, const struct vdi_node *node, struct vdi_node **ret_copy)
{
	operations->copied += nodes_of(node);
	if (operations->copied > COPIED_NODES_MAX)
		return fault(operations, VD_TOO_BIG, "the patch copies too much");
	*ret_copy = vdi_tree_copy(operations->tree, node);
	return *ret_copy ? VD_OK : no_memory(operations->error);
}

static bool is_inside(struct vd_bytes path, struct vd_bytes from)
{
	return path.size > from.size && vd_bytes_has_prefix(path, from) && ((const char *) path.data)[from.size] == '/';
}

static vd_status apply(struct operations *operations, const struct vdi_node *operation)
{
	struct vdi_tree *tree = operations->tree;
	struct vd_bytes	      name = vdi_tree_string_of(vdi_tree_get(tree, operation, vd_bytes_of("op")));
	struct vdi_node	     *path_node = vdi_tree_get(tree, operation, vd_bytes_of("path"));
	struct vdi_node	     *from_node = vdi_tree_get(tree, operation, vd_bytes_of("from"));
	struct vdi_node	     *value = vdi_tree_get(tree, operation, vd_bytes_of("value"));
	struct vd_bytes	      path = vdi_tree_string_of(path_node), from = vdi_tree_string_of(from_node);
	struct vdi_node	     *node;

	if (!vdi_tree_is(operation, VDI_NODE_OBJECT) || !vdi_tree_is(path_node, VDI_NODE_STRING))
		return fault(operations, VD_BAD_REQUEST, "needs op and path");
	if (vd_bytes_equal(name, vd_bytes_of("remove")))
		return take_out(operations, path, NULL);
	if (vd_bytes_equal(name, vd_bytes_of("move")) || vd_bytes_equal(name, vd_bytes_of("copy"))) {
		if (!vdi_tree_is(from_node, VDI_NODE_STRING))
			return fault(operations, VD_BAD_REQUEST, "needs from");
		if (vd_bytes_equal(name, vd_bytes_of("copy"))) {
			VDI_TRY(find(operations, from, &node));
			VDI_TRY(copied(operations, node, &node));
			return add(operations, path, node);
		}
		if (is_inside(path, from))
			return fault(operations, VD_INVALID, "a value cannot be moved into itself");
		VDI_TRY(find(operations, from, &node));
		if (vd_bytes_equal(path, from))
			return VD_OK;
		VDI_TRY(take_out(operations, from, &node));
		return add(operations, path, node);
	}
	if (value == NULL)
		return fault(operations, VD_BAD_REQUEST, "unknown op, or value is missing");
	if (vd_bytes_equal(name, vd_bytes_of("test"))) {
		VDI_TRY(find(operations, path, &node));
		return vdi_tree_equal(tree, node, value) ? VD_OK : fault(operations, VD_INVALID, "testing value failed");
	}
	
	VDI_TRY(copied(operations, value, &value));
	if (vd_bytes_equal(name, vd_bytes_of("add")))
		return add(operations, path, value);
	if (vd_bytes_equal(name, vd_bytes_of("replace")))
		return replace(operations, path, value);
	return fault(operations, VD_BAD_REQUEST, "unknown op");
}

vd_status vdi_patch_operations(struct vdi_tree *tree, struct vdi_node **target, const struct vdi_node *patch, struct vd_error *reterr)
{
	struct operations operations = { tree, *target, reterr, 0, 0 };

	if (patch->kind != VDI_NODE_ARRAY)
		return vd_error_set(reterr, VD_BAD_REQUEST, "a JSON patch must be an array of operations");
	if (patch->count > VDI_PATCH_OPERATIONS_MAX)
		return vd_error_set(reterr, VD_TOO_BIG,
				    "The allowed maximum operations in a JSON patch is %d, got %u", VDI_PATCH_OPERATIONS_MAX, patch->count);
	for (const struct vdi_node *operation = patch->first; operation; operation = operation->next, operations.index++)
		VDI_TRY(apply(&operations, operation));
	*target = operations.root;
	return VD_OK;
}
