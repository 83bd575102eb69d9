/* Objects are compared member by member, without copies; the test for an empty message ends at its first
 * member that is not empty. */
#include "omit_empty.h"

#include "k8s_proto_table.h"

enum how {
	AS_GO,	    /* as Go's encoder writes */
	TO_COMPARE, /* messages and required members may be zero, too */
};

/* Returns NULL if the kind has no such member. *next: start of the search, updated; 0 at first. */
static const struct vdi_k8s_field *field_of(const struct vdi_k8s_message *message, struct vd_bytes name,
					    unsigned *next)
{
	int	 index = vdi_k8s_field_by_name(message, name, next);
	unsigned inner = 0;

	while (index >= 0 && vdi_k8s_fields(message)[index].empty == VDI_K8S_INLINE) {
		message = vdi_k8s_child(&vdi_k8s_fields(message)[index]);
		index = vdi_k8s_field_by_name(message, name, &inner);
		inner = 0;
	}
	return index < 0 ? NULL : &vdi_k8s_fields(message)[index];
}

/* For a kind without a table, only the type of metadata is known. */
static const struct vdi_k8s_message *message_of(const struct vdi_resource *resource)
{
	char			      version[VDI_RESOURCE_NAME_MAX];
	const struct vdi_k8s_message *message = vdi_k8s_kind_find(
		vd_bytes_of(vdi_resource_api_version(resource, version)), vd_bytes_of(resource->kind));

	return message ?
		       message :
		       vdi_k8s_kind_find(vd_bytes_of("meta.k8s.io/v1"), vd_bytes_of("PartialObjectMetadata"));
}

/* ---- Empty values ---- */

static bool is_omitted(const struct vdi_k8s_field *field, const struct vdi_node *value, enum how how);

static bool is_empty(const struct vdi_k8s_message *message, const struct vdi_node *object)
{
	unsigned next = 0;

	for (const struct vdi_node *member = object->first; member; member = member->next) {
		const struct vdi_k8s_field *field = field_of(message, member->key, &next);

		if (field == NULL || !is_omitted(field, member, TO_COMPARE))
			return false;
	}
	return true;
}

static bool is_zero(const struct vdi_k8s_field *field, const struct vdi_node *value, enum how how)
{
	switch ((enum vdi_k8s_type) field->type) {
	case VDI_K8S_BOOL: return value->kind == VDI_NODE_FALSE;
	case VDI_K8S_INT32:
	case VDI_K8S_INT64:
		return value->kind == VDI_NODE_NUMBER && (vd_bytes_equal(value->text, vd_bytes_of("0")) ||
							  vd_bytes_equal(value->text, vd_bytes_of("-0")));
	case VDI_K8S_STRING:
	case VDI_K8S_BYTES: return value->kind == VDI_NODE_STRING && value->text.size == 0;
	case VDI_K8S_MESSAGE:
		return how == TO_COMPARE && value->kind == VDI_NODE_OBJECT &&
		       is_empty(vdi_k8s_child(field), value);
	default: return false;
	}
}

static bool is_omitted(const struct vdi_k8s_field *field, const struct vdi_node *value, enum how how)
{
	bool omits = field->empty != VDI_K8S_KEEP || how == TO_COMPARE;

	if (value->kind == VDI_NODE_NULL)
		return true;
	switch ((enum vdi_k8s_container) field->container) {
	case VDI_K8S_ONE: return omits && is_zero(field, value, how);
	case VDI_K8S_LIST: return omits && value->kind == VDI_NODE_ARRAY && value->count == 0;
	case VDI_K8S_MAP: return omits && value->kind == VDI_NODE_OBJECT && value->count == 0;
	case VDI_K8S_POINTER: break;
	}
	return false;
}

static bool has_values(const struct vdi_k8s_field *field)
{
	return field->container == VDI_K8S_LIST || field->container == VDI_K8S_MAP;
}

/* ---- Omission ---- */

static void omit(const struct vdi_k8s_message *message, struct vdi_tree *tree, struct vdi_node *object)
{
	struct vdi_node *member = vdi_tree_is(object, VDI_NODE_OBJECT) ? object->first : NULL, *following;
	unsigned	 next = 0;

	for (; member; member = following) {
		const struct vdi_k8s_field *field = field_of(message, member->key, &next);

		following = member->next;
		if (field == NULL)
			continue;
		if (field->type == VDI_K8S_MESSAGE && !has_values(field))
			omit(vdi_k8s_child(field), tree, member);
		for (struct vdi_node *value =
			     field->type == VDI_K8S_MESSAGE && has_values(field) ? member->first : NULL;
		     value; value = value->next)
			omit(vdi_k8s_child(field), tree, value);
		if (is_omitted(field, member, AS_GO))
			(void) vdi_tree_remove(tree, object, member->key);
	}
}

void vdi_omit_empty_metadata(struct vdi_tree *tree, struct vdi_node *root)
{
	omit(vdi_k8s_object_meta(), tree, vdi_tree_get(tree, root, vd_bytes_of("metadata")));
}

void vdi_omit_empty(const struct vdi_resource *resource, struct vdi_tree *tree, struct vdi_node *root)
{
	omit(message_of(resource), tree, root);
}

/* ---- Comparison ---- */

static bool same_object(const struct vdi_k8s_message *message, struct vdi_tree *tree,
			const struct vdi_node *a, const struct vdi_node *b);

static bool same_value(const struct vdi_k8s_field *field, struct vdi_tree *tree, const struct vdi_node *a,
		       const struct vdi_node *b)
{
	if (field == NULL || field->type != VDI_K8S_MESSAGE || !has_values(field))
		return field && field->type == VDI_K8S_MESSAGE ?
			       same_object(vdi_k8s_child(field), tree, a, b) :
			       vdi_tree_equal(tree, a, b);
	if (a->kind != b->kind || a->count != b->count)
		return false;
	for (const struct vdi_node *x = a->first, *y = b->first; x; x = x->next, y = y->next) {
		const struct vdi_node *other =
			field->container == VDI_K8S_MAP ? vdi_tree_get(tree, b, x->key) : y;

		if (other == NULL || !same_object(vdi_k8s_child(field), tree, x, other))
			return false;
	}
	return true;
}

static bool same_member(const struct vdi_k8s_field *field, struct vdi_tree *tree, const struct vdi_node *a,
			const struct vdi_node *b)
{
	bool a_is_present = a && !(field && is_omitted(field, a, TO_COMPARE)),
	     b_is_present = b && !(field && is_omitted(field, b, TO_COMPARE));

	return a_is_present && b_is_present ? same_value(field, tree, a, b) : a_is_present == b_is_present;
}

static bool same_object(const struct vdi_k8s_message *message, struct vdi_tree *tree,
			const struct vdi_node *a, const struct vdi_node *b)
{
	unsigned next = 0;

	if (a->kind != VDI_NODE_OBJECT || b->kind != VDI_NODE_OBJECT)
		return vdi_tree_equal(tree, a, b);
	for (const struct vdi_node *member = a->first; member; member = member->next)
		if (!same_member(field_of(message, member->key, &next), tree, member,
				 vdi_tree_get(tree, b, member->key)))
			return false;
	next = 0;
	for (const struct vdi_node *member = b->first; member; member = member->next)
		if (vdi_tree_get(tree, a, member->key) == NULL &&
		    !same_member(field_of(message, member->key, &next), tree, NULL, member))
			return false;
	return true;
}

static bool is_content(const struct vdi_resource *resource, struct vd_bytes name)
{
	return !vd_bytes_equal(name, vd_bytes_of("metadata")) &&
	       !(resource->has_status && vd_bytes_equal(name, vd_bytes_of("status")));
}

static bool same_root(const struct vdi_resource *resource, struct vdi_tree *tree, const struct vdi_node *a,
		      const struct vdi_node *b, bool content_only)
{
	const struct vdi_k8s_message *message = message_of(resource);
	unsigned		      next = 0;

	for (const struct vdi_node *member = a->first; member; member = member->next)
		if ((!content_only || is_content(resource, member->key)) &&
		    !same_member(field_of(message, member->key, &next), tree, member,
				 vdi_tree_get(tree, b, member->key)))
			return false;
	next = 0;
	for (const struct vdi_node *member = b->first; member; member = member->next)
		if ((!content_only || is_content(resource, member->key)) &&
		    vdi_tree_get(tree, a, member->key) == NULL &&
		    !same_member(field_of(message, member->key, &next), tree, NULL, member))
			return false;
	return true;
}

bool vdi_omit_same(const struct vdi_resource *resource, struct vdi_tree *tree, const struct vdi_node *a,
		   const struct vdi_node *b)
{
	return same_root(resource, tree, a, b, false);
}

bool vdi_omit_same_content(const struct vdi_resource *resource, struct vdi_tree *tree,
			   const struct vdi_node *a, const struct vdi_node *b)
{
	return same_root(resource, tree, a, b, true);
}
