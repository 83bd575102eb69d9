/* Strategic merge: a merge patch that knows the merge keys of lists.
 *
 * Mirrors k8s.io/apimachinery pkg/util/strategicpatch. Instead of Go's struct tags there is one table of
 * field names. Within Kubernetes' own kinds a field name almost always means the same list; the exceptions
 * (ports) are distinguished by their parent. Lists that are not in the table are replaced whole, as upstream
 * does for lists without a patch strategy.
 *
 * Elements are searched linearly, so two long lists could cost the product of their lengths. Therefore each
 * comparison counts as a step of the tree, and the steps of a whole patch are bounded.
 */
#include "strategic_patch.h"

#include "tree_patch.h"

struct list_rule {
	const char *field;
	const char *parent; /* enclosing list or object; NULL: any */
	const char *key;    /* merge key; NULL: a set of plain values */
};

static const struct list_rule rules[] = {
	{ "containers", NULL, "name" },
	{ "initContainers", NULL, "name" },
	{ "ephemeralContainers", NULL, "name" },
	{ "env", NULL, "name" },
	{ "volumes", NULL, "name" },
	{ "volumeMounts", NULL, "mountPath" },
	{ "volumeDevices", NULL, "devicePath" },
	{ "ports", "containers", "containerPort" },
	{ "ports", "initContainers", "containerPort" },
	{ "ports", "ephemeralContainers", "containerPort" },
	{ "ports", "spec", "port" },
	{ "conditions", NULL, "type" },
	{ "ownerReferences", "metadata", "uid" },
	{ "finalizers", "metadata", NULL },
	{ "imagePullSecrets", NULL, "name" },
	{ "secrets", "", "name" },
	{ "hostAliases", NULL, "ip" },
	{ "topologySpreadConstraints", NULL, "topologyKey" },
	{ "resourceClaims", "spec", "name" },
	{ "schedulingGates", NULL, "name" },
	{ "addresses", "status", "type" },
	{ "podIPs", "status", "ip" },
	{ "hostIPs", "status", "ip" },
	{ "podCIDRs", "spec", NULL },
	{ "taints", NULL, "key" },
};

static bool is(struct vd_bytes text, const char *word)
{
	return vd_bytes_equal(text, vd_bytes_of(word));
}

static const struct list_rule *rule_of(struct vd_bytes field, struct vd_bytes parent)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rules); i++)
		if (is(field, rules[i].field) && (rules[i].parent == NULL || is(parent, rules[i].parent)))
			return &rules[i];
	return NULL;
}

struct strategic {
	struct vdi_tree *tree;
	struct vd_error *error;
	uint64_t	 steps_end;
};

static vd_status no_memory(struct strategic *strategic)
{
	return vd_error_set(strategic->error, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
}

static vd_status merge(struct strategic *strategic, struct vdi_node *target, struct vdi_node *patch,
		       struct vd_bytes parent);

static struct vd_bytes directive(struct strategic *strategic, struct vdi_node *patch)
{
	return vdi_tree_string_of(vdi_tree_get(strategic->tree, patch, vd_bytes_of("$patch")));
}

/* New content may contain directives and nulls too, so it is merged into an empty value. */
static vd_status fresh(struct strategic *strategic, struct vdi_node *patch, struct vd_bytes parent,
		       struct vdi_node **ret_value)
{
	if (patch->kind == VDI_NODE_OBJECT) {
		*ret_value = vdi_tree_new(strategic->tree, VDI_NODE_OBJECT);
		return *ret_value ? merge(strategic, *ret_value, patch, parent) : no_memory(strategic);
	}
	*ret_value = vdi_tree_copy(strategic->tree, patch);
	return *ret_value ? VD_OK : no_memory(strategic);
}

static vd_status check_steps(struct strategic *strategic)
{
	if (strategic->tree->steps > strategic->steps_end)
		return vd_error_set(strategic->error, VD_TOO_BIG,
				    "the lists of the patch, or those it is merged into, are too long");
	return VD_OK;
}

static struct vdi_node *find_element(struct strategic *strategic, struct vdi_node *list, const char *key,
				     const struct vdi_node *wanted)
{
	struct vd_bytes name = vd_bytes_of(key);

	for (struct vdi_node *at = list->first; at; at = at->next) {
		struct vdi_node *value = vdi_tree_get(strategic->tree, at, name);

		if (value && value->kind == wanted->kind && vd_bytes_equal(value->text, wanted->text))
			return at;
	}
	return NULL;
}

static struct vdi_node *find_plain(struct strategic *strategic, struct vdi_node *list,
				   const struct vdi_node *wanted)
{
	for (struct vdi_node *at = list->first; at; at = at->next, strategic->tree->steps++)
		if (at->kind == wanted->kind && vd_bytes_equal(at->text, wanted->text))
			return at;
	return NULL;
}

static vd_status merge_keyed(struct strategic *strategic, struct vdi_node *target, struct vdi_node *patch,
			     const char *key, struct vd_bytes field)
{
	for (struct vdi_node *change = patch->first; change; change = change->next)
		if (is(directive(strategic, change), "replace")) /* the rest of the patch is the new list */
			vdi_tree_clear(target);
	for (struct vdi_node *change = patch->first; change; change = change->next) {
		struct vdi_node *wanted = vdi_tree_get(strategic->tree, change, vd_bytes_of(key));
		struct vdi_node *found;
		struct vd_bytes	 order = directive(strategic, change);

		if (is(order, "replace") && wanted == NULL)
			continue;
		if (wanted == NULL)
			return vd_error_set(strategic->error, VD_BAD_REQUEST,
					    "map: does not contain declared merge key: %s", key);
		found = find_element(strategic, target, key, wanted);
		VDI_TRY(check_steps(strategic));
		if (is(order, "delete")) {
			if (found)
				vdi_tree_array_remove(target, found);
		} else if (found) {
			VDI_TRY(merge(strategic, found, change, field));
		} else {
			struct vdi_node *value;

			VDI_TRY(fresh(strategic, change, field, &value));
			vdi_tree_append(target, value);
		}
	}
	return VD_OK;
}

static vd_status merge_plain(struct strategic *strategic, struct vdi_node *target, struct vdi_node *patch)
{
	for (struct vdi_node *change = patch->first; change; change = change->next) {
		struct vdi_node *value;
		bool		 is_there = find_plain(strategic, target, change) != NULL;

		VDI_TRY(check_steps(strategic));
		if (is_there)
			continue;
		VDI_TRY(fresh(strategic, change, VD_BYTES_NONE, &value));
		vdi_tree_append(target, value);
	}
	return VD_OK;
}

/* Returns the element of list that has the key of entry, an entry of an order list. */
static struct vdi_node *ordered_element(struct strategic *strategic, struct vdi_node *list, const char *key,
					const struct vdi_node *entry)
{
	struct vdi_node *wanted;

	if (key == NULL)
		return find_plain(strategic, list, entry);
	wanted = vdi_tree_get(strategic->tree, entry, vd_bytes_of(key));
	return wanted ? find_element(strategic, list, key, wanted) : NULL;
}

/* Collects the elements that order names, each once and in its order. */
static vd_status find_ordered(struct strategic *strategic, struct vdi_node *list, const char *key,
			      const struct vdi_node *order, struct vdi_node **ordered)
{
	size_t count = 0;

	for (const struct vdi_node *entry = order->first; entry && count < list->count; entry = entry->next) {
		struct vdi_node *found = ordered_element(strategic, list, key, entry);

		VDI_TRY(check_steps(strategic));
		if (found == NULL || found->is_marked)
			continue;
		found->is_marked = true;
		ordered[count++] = found;
	}
	return VD_OK;
}

/* Sorts the elements that order names, within the places that they have; others stay. */
static vd_status reorder(struct strategic *strategic, struct vdi_node *list, const char *key,
			 const struct vdi_node *order)
{
	struct vdi_node **elements = vdi_calloc((size_t) list->count * 2 + 1, sizeof *elements);
	struct vdi_node **ordered = elements + list->count;
	size_t		  count = 0, taken = 0;
	vd_status	  status;

	if (elements == NULL)
		return no_memory(strategic);
	status = find_ordered(strategic, list, key, order, ordered);
	for (struct vdi_node *at = list->first; at; at = at->next)
		elements[count++] = at;
	vdi_tree_clear(list);
	for (size_t i = 0; i < count; i++)
		vdi_tree_append(list, elements[i]->is_marked ? ordered[taken++] : elements[i]);
	for (size_t i = 0; i < taken; i++)
		ordered[i]->is_marked = false;
	vdi_free(elements);
	return status;
}

/* `$deleteFromPrimitiveList/finalizers` -> "finalizers"; empty if field lacks the prefix. */
static struct vd_bytes after(struct vd_bytes field, const char *prefix)
{
	size_t size = strlen(prefix);

	if (!vd_bytes_has_prefix(field, vd_bytes_of(prefix)))
		return VD_BYTES_NONE;
	return (struct vd_bytes) { (const char *) field.data + size, field.size - size };
}

static vd_status retain_keys(struct strategic *strategic, struct vdi_node *target, struct vdi_node *keys)
{
	struct vdi_node *next;

	for (struct vdi_node *member = target->first; member; member = next) {
		struct vdi_node wanted = { .kind = VDI_NODE_STRING, .text = member->key };

		next = member->next;
		if (find_plain(strategic, keys, &wanted) == NULL)
			(void) vdi_tree_remove(strategic->tree, target, member->key);
		VDI_TRY(check_steps(strategic));
	}
	return VD_OK;
}

/* Applies the directives of an object, before its members. */
static vd_status apply_directives(struct strategic *strategic, struct vdi_node *target,
				  struct vdi_node *patch)
{
	for (struct vdi_node *change = patch->first; change; change = change->next) {
		struct vd_bytes	 field = after(change->key, "$deleteFromPrimitiveList/");
		struct vdi_node *list = field.size ? vdi_tree_get(strategic->tree, target, field) : NULL;

		if (is(change->key, "$retainKeys") && change->kind == VDI_NODE_ARRAY)
			VDI_TRY(retain_keys(strategic, target, change));
		if (!vdi_tree_is(list, VDI_NODE_ARRAY) || change->kind != VDI_NODE_ARRAY)
			continue;
		for (struct vdi_node *gone = change->first; gone; gone = gone->next) {
			struct vdi_node *found = find_plain(strategic, list, gone);

			if (found)
				vdi_tree_array_remove(list, found);
			VDI_TRY(check_steps(strategic));
		}
	}
	return VD_OK;
}

static vd_status apply_orders(struct strategic *strategic, struct vdi_node *target, struct vdi_node *patch,
			      struct vd_bytes parent)
{
	for (struct vdi_node *change = patch->first; change; change = change->next) {
		struct vd_bytes	 field = after(change->key, "$setElementOrder/");
		struct vdi_node *list = field.size ? vdi_tree_get(strategic->tree, target, field) : NULL;
		const struct list_rule *rule = list ? rule_of(field, parent) : NULL;

		if (!vdi_tree_is(list, VDI_NODE_ARRAY) || change->kind != VDI_NODE_ARRAY || rule == NULL)
			continue;
		VDI_TRY(reorder(strategic, list, rule->key, change));
	}
	return VD_OK;
}

static vd_status merge_member(struct strategic *strategic, struct vdi_node *target, struct vdi_node *change,
			      struct vd_bytes parent)
{
	struct vdi_node	       *member = vdi_tree_get(strategic->tree, target, change->key);
	const struct list_rule *rule = change->kind == VDI_NODE_ARRAY ? rule_of(change->key, parent) : NULL;
	struct vdi_node	       *value;

	if (change->kind == VDI_NODE_NULL) {
		(void) vdi_tree_remove(strategic->tree, target, change->key);
		return VD_OK;
	}
	if (change->kind == VDI_NODE_OBJECT && vdi_tree_is(member, VDI_NODE_OBJECT)) {
		if (!is(directive(strategic, change), "delete"))
			return merge(strategic, member, change, change->key);
		(void) vdi_tree_remove(strategic->tree, target, change->key);
		return VD_OK;
	}
	if (change->kind == VDI_NODE_ARRAY && rule) {
		if (!vdi_tree_is(member, VDI_NODE_ARRAY)) {
			if (!vdi_tree_set(strategic->tree, target, change->key,
					  vdi_tree_new(strategic->tree, VDI_NODE_ARRAY)))
				return no_memory(strategic);
			member = vdi_tree_get(strategic->tree, target, change->key);
		}
		if (rule->key)
			return merge_keyed(strategic, member, change, rule->key, change->key);
		return merge_plain(strategic, member, change);
	}
	VDI_TRY(fresh(strategic, change, change->key, &value));
	return vdi_tree_set(strategic->tree, target, change->key, value) ? VD_OK : no_memory(strategic);
}

static vd_status merge(struct strategic *strategic, struct vdi_node *target, struct vdi_node *patch,
		       struct vd_bytes parent)
{
	struct vd_bytes order = directive(strategic, patch);

	if (order.size && !is(order, "replace") && !is(order, "merge") && !is(order, "delete"))
		return vd_error_set(strategic->error, VD_BAD_REQUEST, "Unknown patch type: %.*s",
				    (int) VDI_MIN(order.size, (size_t) 64), (const char *) order.data);
	if (is(order, "replace") || is(order, "delete"))
		vdi_tree_clear(target);
	if (is(order, "delete"))
		return VD_OK;
	VDI_TRY(apply_directives(strategic, target, patch));
	for (struct vdi_node *change = patch->first; change; change = change->next) {
		if (change->key.size == 0 || ((const char *) change->key.data)[0] != '$')
			VDI_TRY(merge_member(strategic, target, change, parent));
	}
	return apply_orders(strategic, target, patch, parent);
}

vd_status vdi_patch_strategic(struct vdi_tree *tree, struct vdi_node *target, struct vdi_node *patch,
			      struct vd_error *reterr)
{
	struct strategic strategic = { tree, reterr, tree->steps + VDI_PATCH_STEPS_MAX };

	if (patch->kind != VDI_NODE_OBJECT || target->kind != VDI_NODE_OBJECT)
		return vd_error_set(reterr, VD_BAD_REQUEST, "a strategic merge patch must be an object");
	VDI_TRY(merge(&strategic, target, patch, VD_BYTES_NONE));
	return vdi_patch_check_size(tree, target, reterr);
}
