/* Merge patch and JSON Patch.
 *
 * A JSON Patch can copy the document into itself repeatedly, and address the elements of a long array ten
 * thousand times. So three numbers are checked after each operation: the bytes of the document, computed from
 * what was added and removed; the bytes copied; and the steps of the tree, which limit the time. Only moved
 * values are measured more than once, and moves take steps.
 */
#include "tree_patch.h"

struct operations {
	struct vdi_tree *tree;
	struct vdi_node *root;
	struct vd_error *error;
	size_t		 index;
	size_t		 bytes; /* size of the document */
	size_t		 copied;
	uint64_t	 steps_end; /* limit of the tree's steps: no operation begins after it */
};

static vd_status no_memory(struct vd_error *error)
{
	return vd_error_set(error, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
}

static bool merge_object(struct vdi_tree *tree, struct vdi_node *target, struct vdi_node *patch)
{
	struct vdi_node *next;

	for (struct vdi_node *change = patch->first; change; change = next) {
		struct vdi_node *member = vdi_tree_get(tree, target, change->key);

		next = change->next;
		if (change->kind == VDI_NODE_NULL) {
			(void) vdi_tree_remove(tree, target, change->key);
			continue;
		}
		if (change->kind != VDI_NODE_OBJECT) {
			if (!vdi_tree_set(tree, target, change->key, change))
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

vd_status vdi_patch_check_size(struct vdi_tree *tree, const struct vdi_node *target, struct vd_error *reterr)
{
	if (vdi_tree_measure(tree, target).bytes > VDI_PATCH_BYTES_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "the patched object would have more than %zu bytes",
				    VDI_PATCH_BYTES_MAX);
	return VD_OK;
}

vd_status vdi_patch_merge(struct vdi_tree *tree, struct vdi_node **target, struct vdi_node *patch,
			  struct vd_error *reterr)
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
	return merge_object(tree, *target, patch) ? vdi_patch_check_size(tree, *target, reterr) :
						    no_memory(reterr);
}

/* ---- JSON Patch ---- */

static vd_status fault(struct operations *operations, vd_status status, const char *what)
{
	return vd_error_set(operations->error, status, "operation %zu: %s", operations->index, what);
}

/* Returns the next segment of a pointer, unescaped into buffer. */
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

/* Parses an array index; -1 for '-', -2 if it is invalid. */
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

/* Walks from the nearer end. If this exceeds the permitted steps, the next operation is refused. */
static struct vdi_node *element(struct operations *operations, struct vdi_node *array, int64_t index)
{
	struct vdi_node *child = array->first;

	if (index < 0 || index >= (int64_t) array->count)
		return NULL;
	if (index > array->count / 2) {
		child = vdi_tree_last(array);
		for (int64_t at = array->count - 1; at > index; at--)
			child = child->previous;
		operations->tree->steps += (uint64_t) (array->count - index);
	} else {
		for (int64_t at = 0; at < index; at++)
			child = child->next;
		operations->tree->steps += (uint64_t) index;
	}
	return child;
}

static struct vdi_node *child_of(struct operations *operations, struct vdi_node *parent,
				 struct vd_bytes segment)
{
	if (vdi_tree_is(parent, VDI_NODE_ARRAY))
		return element(operations, parent, index_of(segment));
	return vdi_tree_get(operations->tree, parent, segment);
}

/* Walks to the parent of the node that pointer names. *ret_parent is NULL for the whole document. */
static vd_status walk(struct operations *operations, struct vd_bytes pointer, struct vdi_node **ret_parent,
		      char buffer[1024], struct vd_bytes *ret_last, unsigned *ret_depth)
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

/* Bytes of node in its parent, with its key and a comma. */
static size_t bytes_in(const struct vdi_node *parent, struct vd_bytes key, size_t bytes)
{
	return bytes + 1 + (parent->kind == VDI_NODE_OBJECT ? key.size + 3 : 0);
}

/* Updates the size of the document before bytes are added and removed. */
static vd_status account(struct operations *operations, size_t added, size_t removed)
{
	operations->bytes += added;
	operations->bytes -= VDI_MIN(removed, operations->bytes);
	if (operations->bytes > VDI_PATCH_BYTES_MAX)
		return vd_error_set(operations->error, VD_TOO_BIG,
				    "operation %zu: the patched object would have more than %zu bytes",
				    operations->index, VDI_PATCH_BYTES_MAX);
	return VD_OK;
}

static size_t measure(struct operations *operations, const struct vdi_node *node)
{
	return vdi_tree_measure(operations->tree, node).bytes;
}

static vd_status replace_root(struct operations *operations, struct vdi_node *value)
{
	operations->bytes = 0;
	operations->root = value;
	return account(operations, measure(operations, value), 0);
}

/* value has no parent. */
static vd_status add(struct operations *operations, struct vd_bytes pointer, struct vdi_node *value)
{
	struct vdi_tree_size size = vdi_tree_measure(operations->tree, value);
	struct vdi_node	    *parent, *old;
	char		     buffer[1024];
	struct vd_bytes	     last;
	unsigned	     depth;
	int64_t		     index;

	VDI_TRY(walk(operations, pointer, &parent, buffer, &last, &depth));
	if (depth + size.depth > VDI_TREE_DEPTH_MAX)
		return fault(operations, VD_TOO_BIG, "nested too deeply");
	if (depth == 0)
		return replace_root(operations, value);
	if (parent->kind == VDI_NODE_OBJECT) {
		old = vdi_tree_get(operations->tree, parent, last);
		VDI_TRY(account(operations, bytes_in(parent, last, size.bytes),
				old ? bytes_in(parent, last, measure(operations, old)) : 0));
		return vdi_tree_set(operations->tree, parent, last, value) ? VD_OK :
									     no_memory(operations->error);
	}
	index = index_of(last);
	if (index == -2 || index > (int64_t) parent->count)
		return fault(operations, VD_INVALID, "the array index is out of range");
	VDI_TRY(account(operations, bytes_in(parent, last, size.bytes), 0));
	vdi_tree_array_insert(parent, element(operations, parent, index), value);
	return VD_OK;
}

/* *ret_removed (ret_removed may be NULL) has no parent afterwards. */
static vd_status take_out(struct operations *operations, struct vd_bytes pointer,
			  struct vdi_node **ret_removed)
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
	VDI_TRY(account(operations, 0, bytes_in(parent, last, measure(operations, child))));
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
	struct vdi_tree_size size = vdi_tree_measure(operations->tree, value);
	struct vdi_node	    *old;
	unsigned	     depth = 0;

	VDI_TRY(find(operations, pointer, &old));
	if (old == operations->root)
		return replace_root(operations, value);
	for (size_t i = 0; i < pointer.size; i++)
		depth += ((const char *) pointer.data)[i] == '/';
	if (depth + size.depth > VDI_TREE_DEPTH_MAX)
		return fault(operations, VD_TOO_BIG, "nested too deeply");
	VDI_TRY(account(operations, size.bytes, measure(operations, old)));
	vdi_tree_become(old, value);
	return VD_OK;
}

static vd_status copied(struct operations *operations, const struct vdi_node *node,
			struct vdi_node **ret_copy)
{
	operations->copied += measure(operations, node);
	if (operations->copied > VDI_PATCH_COPY_MAX)
		return vd_error_set(operations->error, VD_TOO_BIG,
				    "operation %zu: the patch copies %zu bytes, more than %zu",
				    operations->index, operations->copied, VDI_PATCH_COPY_MAX);
	*ret_copy = vdi_tree_copy(operations->tree, node);
	return *ret_copy ? VD_OK : no_memory(operations->error);
}

static bool is_inside(struct vd_bytes path, struct vd_bytes from)
{
	return path.size > from.size && vd_bytes_has_prefix(path, from) &&
	       ((const char *) path.data)[from.size] == '/';
}

static vd_status transfer(struct operations *operations, struct vd_bytes from, struct vd_bytes path,
			  bool is_copy)
{
	struct vdi_node *node;

	if (!is_copy && is_inside(path, from))
		return fault(operations, VD_INVALID, "a value cannot be moved into itself");
	VDI_TRY(find(operations, from, &node));
	if (is_copy)
		VDI_TRY(copied(operations, node, &node));
	else if (vd_bytes_equal(path, from))
		return VD_OK;
	else
		VDI_TRY(take_out(operations, from, &node));
	return add(operations, path, node);
}

static vd_status apply(struct operations *operations, struct vdi_node *operation)
{
	struct vdi_tree *tree = operations->tree;
	struct vd_bytes	 name = vdi_tree_string_of(vdi_tree_get(tree, operation, vd_bytes_of("op")));
	struct vdi_node *path_node = vdi_tree_get(tree, operation, vd_bytes_of("path"));
	struct vdi_node *from_node = vdi_tree_get(tree, operation, vd_bytes_of("from"));
	struct vdi_node *value = vdi_tree_get(tree, operation, vd_bytes_of("value"));
	struct vd_bytes	 path = vdi_tree_string_of(path_node), from = vdi_tree_string_of(from_node);
	bool		 is_copy = vd_bytes_equal(name, vd_bytes_of("copy"));
	struct vdi_node *node;

	if (!vdi_tree_is(operation, VDI_NODE_OBJECT) || !vdi_tree_is(path_node, VDI_NODE_STRING))
		return fault(operations, VD_BAD_REQUEST, "needs op and path");
	if (vd_bytes_equal(name, vd_bytes_of("remove")))
		return take_out(operations, path, NULL);
	if (is_copy || vd_bytes_equal(name, vd_bytes_of("move"))) {
		if (!vdi_tree_is(from_node, VDI_NODE_STRING))
			return fault(operations, VD_BAD_REQUEST, "needs from");
		return transfer(operations, from, path, is_copy);
	}
	if (value == NULL)
		return fault(operations, VD_BAD_REQUEST, "unknown op, or value is missing");
	if (vd_bytes_equal(name, vd_bytes_of("test"))) {
		VDI_TRY(find(operations, path, &node));
		return vdi_tree_equal(tree, node, value) ?
			       VD_OK :
			       fault(operations, VD_INVALID, "testing value failed");
	}
	(void) vdi_tree_remove(tree, operation, vd_bytes_of("value")); /* it becomes part of the document */
	if (vd_bytes_equal(name, vd_bytes_of("add")))
		return add(operations, path, value);
	if (vd_bytes_equal(name, vd_bytes_of("replace")))
		return replace(operations, path, value);
	return fault(operations, VD_BAD_REQUEST, "unknown op");
}

vd_status vdi_patch_operations(struct vdi_tree *tree, struct vdi_node **target, struct vdi_node *patch,
			       struct vd_error *reterr)
{
	struct operations operations = {
		.tree = tree, .root = *target, .error = reterr, .steps_end = tree->steps + VDI_PATCH_STEPS_MAX
	};

	if (patch->kind != VDI_NODE_ARRAY)
		return vd_error_set(reterr, VD_BAD_REQUEST, "a JSON patch must be an array of operations");
	if (patch->count > VDI_PATCH_OPERATIONS_MAX)
		return vd_error_set(reterr, VD_TOO_BIG,
				    "The allowed maximum operations in a JSON patch is %d, got %u",
				    VDI_PATCH_OPERATIONS_MAX, patch->count);
	operations.bytes = measure(&operations, *target);
	for (struct vdi_node *operation = patch->first; operation;
	     operation = operation->next, operations.index++) {
		VDI_TRY(apply(&operations, operation));
		if (tree->steps > operations.steps_end)
			return fault(&operations, VD_TOO_BIG,
				     "the patch takes too many steps: fewer operations, or shorter arrays, "
				     "are needed");
	}
	*target = operations.root;
	return VD_OK;
}
