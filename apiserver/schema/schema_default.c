/* Defaulting and pruning (pkg/apiserver/schema/defaulting, pruning, objectmeta). Both walk object and schema
 * side by side, as deep as the object is. Removed members are unlinked in one pass over their siblings, so
 * many of them cost linear time. */
#include <stdlib.h>

#include "hash.h"
#include "schema_node.h"

struct defaulter {
	struct vdi_tree *tree;
	size_t		 left; /* bytes that defaults may still add */
	bool		 changed;
};

/* Returns true for a null that is not allowed and has no default. */
static bool is_stray_null(const struct vdi_schema_node *node, const struct vdi_node *value)
{
	return value->kind == VDI_NODE_NULL && node && !node->nullable && !node->default_value;
}

/* Unlinks the children for which keep returns false. The object's index is rebuilt when it is next needed. */
static void filter(struct vdi_node *object, bool (*keep)(void *arg, struct vdi_node *child), void *arg)
{
	uint32_t	 count = object->count;
	struct vdi_node *next;

	for (struct vdi_node *child = object->first; child; child = next) {
		next = child->next;
		if (!keep(arg, child))
			vdi_tree_array_remove(object, child);
	}
	if (count != object->count)
		object->index = NULL;
}

static bool drop_nulls(const struct vdi_schema_node *node, struct vdi_node *value);

struct nulls {
	const struct vdi_schema_node *node;
	bool			      dropped;
};

static bool keep_unless_null(void *arg, struct vdi_node *child)
{
	struct nulls		     *nulls = arg;
	const struct vdi_schema_node *of_child =
		nulls->node ? vdi_schema_member_of(nulls->node, child->key) : NULL;
	bool is_stray = is_stray_null(of_child, child);

	nulls->dropped |= is_stray || drop_nulls(of_child, child);
	return !is_stray;
}

/* Returns true if there were some. */
static bool drop_nulls(const struct vdi_schema_node *node, struct vdi_node *value)
{
	struct nulls nulls = { node, false };

	if (node == NULL)
		return false; /* members below are unknown too */
	if (value->kind == VDI_NODE_OBJECT)
		filter(value, keep_unless_null, &nulls);
	for (struct vdi_node *item = value->kind == VDI_NODE_ARRAY ? value->first : NULL; item;
	     item = item->next)
		nulls.dropped |= drop_nulls(node->items, item);
	return nulls.dropped;
}

/* Copies the default; on failure returns NULL and sets *ret_status. */
static struct vdi_node *copy_default(struct defaulter *defaulter, const struct vdi_schema_node *node,
				     vd_status *ret_status)
{
	struct vdi_node *copy;

	*ret_status = VD_TOO_BIG;
	if (node->default_size > defaulter->left)
		return NULL;
	defaulter->left -= node->default_size;
	defaulter->changed = true;
	copy = vdi_tree_copy(defaulter->tree, node->default_value);
	*ret_status = copy ? VD_OK : VD_NOMEM;
	return copy;
}

/* Replaces a forbidden null by the default. */
static vd_status replace_null(struct defaulter *defaulter, const struct vdi_schema_node *node,
			      struct vdi_node *value)
{
	struct vdi_node *copy;
	vd_status	 status;

	if (value->kind != VDI_NODE_NULL || !node || node->nullable || !node->default_value)
		return VD_OK;
	copy = copy_default(defaulter, node, &status);
	if (copy == NULL)
		return status;
	vdi_tree_become(value, copy);
	return VD_OK;
}

static vd_status set_defaults(struct defaulter *defaulter, const struct vdi_schema_node *node,
			      struct vdi_node *value)
{
	if (node == NULL)
		return VD_OK;
	for (size_t i = 0; value->kind == VDI_NODE_OBJECT && i < node->defaulted_count; i++) {
		const struct vdi_schema_property *property = node->defaulted[i];
		struct vdi_node			 *copy;
		vd_status			  status;

		if (vdi_tree_get(defaulter->tree, value, property->key))
			continue;
		copy = copy_default(defaulter, property->node, &status);
		if (copy == NULL)
			return status;
		if (!vdi_tree_set(defaulter->tree, value, property->key, copy))
			return VD_NOMEM;
	}
	for (struct vdi_node *child = value->first; child; child = child->next) {
		const struct vdi_schema_node *of_child =
			value->kind == VDI_NODE_ARRAY ? node->items : vdi_schema_member_of(node, child->key);

		VDI_TRY(replace_null(defaulter, of_child, child));
		VDI_TRY(set_defaults(defaulter, of_child, child));
	}
	return VD_OK;
}

vd_status vdi_schema_default_stored(const struct vdi_schema *schema, struct vdi_tree *tree,
				    struct vdi_node *root, bool *ret_changed)
{
	struct defaulter defaulter = { tree, VDI_SCHEMA_GROWTH_MAX, drop_nulls(schema->root, root) };

	VDI_TRY(set_defaults(&defaulter, schema->root, root));
	*ret_changed = defaulter.changed;
	return VD_OK;
}

vd_status vdi_schema_default(const struct vdi_schema *schema, struct vdi_tree *tree, struct vdi_node *root)
{
	bool changed;

	return vdi_schema_default_stored(schema, tree, root, &changed);
}

struct key {
	uint64_t value;
	bool	 has_defaults;
};

static void add_bytes(struct key *key, struct vd_bytes bytes)
{
	key->value = vdi_hash_bytes(bytes, key->value + bytes.size);
}

static void add_number(struct key *key, uint64_t number)
{
	add_bytes(key, (struct vd_bytes) { (const char *) &number, sizeof number });
}

static void add_value(struct key *key, const struct vdi_node *value)
{
	add_number(key, value->kind);
	add_bytes(key, value->text);
	for (const struct vdi_node *child = value->first; child; child = child->next) {
		add_bytes(key, child->key);
		add_value(key, child);
	}
	add_number(key, UINT64_MAX);
}

/* Hashes the parts of the schema that affect defaulting. */
static void add_node(struct key *key, const struct vdi_schema_node *node)
{
	uint64_t before;

	if (node == NULL)
		return;
	if (node->default_value) {
		key->has_defaults = true;
		add_value(key, node->default_value);
	}
	if (node->nullable)
		add_number(key, 1);
	for (size_t i = 0; i < node->property_count; i++) {
		struct key below = { 0 };

		add_node(&below, node->properties[i].node);
		if (below.value == 0)
			continue;
		add_bytes(key, node->properties[i].key);
		add_number(key, below.value);
		key->has_defaults |= below.has_defaults;
	}
	for (int i = 0; i < 2; i++) {
		before = key->value;
		add_node(key, i ? node->additional : node->items);
		if (key->value != before)
			add_number(key, 2 + (uint64_t) i);
	}
}

uint64_t vdi_schema_default_key(const struct vdi_schema *schema)
{
	struct key key = { 0 };

	add_node(&key, schema->root);
	return key.has_defaults ? VDI_MAX(key.value, 1u) : 0;
}

/* ---- Pruning ---- */

struct pruner {
	struct vdi_tree *tree;
	struct vdi_out	 path;
	struct vdi_out
		/* removed paths, each preceded by its length; collected only if the caller wants them */
		found;
	size_t	count;
	bool	collects;
};

#define FOUND_PATH_MAX ((size_t) 1024) /* a longer path is truncated in messages */

/* The position of the filter. */
struct pruning {
	struct pruner		     *pruner;
	const struct vdi_schema_node *node; /* NULL: the schema has nothing here */
	bool			      embedded;
	bool			      preserves;
};

static void prune(struct pruner *pruner, const struct vdi_schema_node *node, struct vdi_node *value,
		  bool embedded);
static void prune_preserved(struct pruner *pruner, const struct vdi_schema_node *node, struct vdi_node *value,
			    bool embedded);

static size_t enter_key(struct pruner *pruner, struct vd_bytes key)
{
	size_t size = pruner->path.size;

	if (!pruner->collects)
		return size;
	if (size)
		vdi_out_raw(&pruner->path, ".");
	vdi_out_bytes(&pruner->path, key);
	return size;
}

static void note(struct pruner *pruner, struct vd_bytes key)
{
	size_t	 size;
	uint32_t length;

	if (!pruner->collects || pruner->count >= VDI_FIELD_ERRORS_MAX)
		return;
	size = enter_key(pruner, key);
	length = (uint32_t) VDI_MIN(pruner->path.size, FOUND_PATH_MAX);
	vdi_out_bytes(&pruner->found, (struct vd_bytes) { &length, sizeof length });
	vdi_out_bytes(&pruner->found, (struct vd_bytes) { pruner->path.data, length });
	pruner->found.failed |= pruner->path.failed;
	pruner->count++;
	pruner->path.size = size;
}

static bool is_meta_field(struct vd_bytes key)
{
	static const char *const names[] = { "name",
					     "generateName",
					     "namespace",
					     "selfLink",
					     "uid",
					     "resourceVersion",
					     "generation",
					     "creationTimestamp",
					     "deletionTimestamp",
					     "deletionGracePeriodSeconds",
					     "labels",
					     "annotations",
					     "ownerReferences",
					     "finalizers",
					     "managedFields" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++)
		if (vd_bytes_equal(key, vd_bytes_of(names[i])))
			return true;
	return false;
}

static bool keep_meta_field(void *arg, struct vdi_node *child)
{
	struct pruner *pruner = arg;

	if (is_meta_field(child->key))
		return true;
	note(pruner, child->key);
	return false;
}

/* Returns true for apiVersion, kind and metadata of a resource, which stay regardless of the schema; prunes
 * the metadata. */
static bool prune_meta(struct pruner *pruner, struct vdi_node *child)
{
	size_t size;

	if (!vdi_schema_is_meta(child->key))
		return false;
	if (child->kind == VDI_NODE_OBJECT && vd_bytes_equal(child->key, vd_bytes_of("metadata"))) {
		size = enter_key(pruner, child->key);
		filter(child, keep_meta_field, pruner);
		pruner->path.size = size;
	}
	return true;
}

static bool keep_member(void *arg, struct vdi_node *child)
{
	struct pruning		     *pruning = arg;
	struct pruner		     *pruner = pruning->pruner;
	const struct vdi_schema_node *of_child;
	size_t			      size;

	if (pruning->embedded && prune_meta(pruner, child))
		return true;
	of_child = pruning->node ? vdi_schema_member_of(pruning->node, child->key) : NULL;
	if (of_child == NULL && (!pruning->node || pruning->node->more == VDI_MORE_NONE)) {
		if (!pruning->preserves)
			note(pruner, child->key);
		return pruning->preserves;
	}
	size = enter_key(pruner, child->key);
	prune(pruner, of_child, child, of_child && of_child->embedded);
	pruner->path.size = size;
	return true;
}

static size_t enter_index(struct pruner *pruner, size_t index)
{
	size_t size = pruner->path.size;

	if (pruner->collects)
		vdi_out_index(&pruner->path, index);
	return size;
}

static void prune(struct pruner *pruner, const struct vdi_schema_node *node, struct vdi_node *value,
		  bool embedded)
{
	struct pruning pruning = { pruner, node, embedded, false };
	size_t	       index = 0;

	if (node && node->preserves) {
		prune_preserved(pruner, node, value, embedded);
		return;
	}
	if (value->kind == VDI_NODE_OBJECT)
		filter(value, keep_member, &pruning);
	for (struct vdi_node *item = value->kind == VDI_NODE_ARRAY ? value->first : NULL; item;
	     item = item->next, index++) {
		const struct vdi_schema_node *items = node ? node->items : NULL;
		size_t			      size = enter_index(pruner, index);

		prune(pruner, items, item, items && items->embedded);
		pruner->path.size = size;
	}
}

/* Keeps unknown members; prunes below known ones as their schema says. */
static void prune_preserved(struct pruner *pruner, const struct vdi_schema_node *node, struct vdi_node *value,
			    bool embedded)
{
	struct pruning pruning = { pruner, node, embedded, true };
	size_t	       index = 0;

	if (node == NULL)
		return;
	if (value->kind == VDI_NODE_OBJECT)
		filter(value, keep_member, &pruning);
	for (struct vdi_node *item = value->kind == VDI_NODE_ARRAY ? value->first : NULL; item;
	     item = item->next, index++) {
		size_t size = enter_index(pruner, index);

		prune_preserved(pruner, node->items, item, node->items && node->items->embedded);
		pruner->path.size = size;
	}
}

static int compare_paths(const void *a, const void *b)
{
	const struct vd_bytes *x = a, *y = b;
	size_t		       size = VDI_MIN(x->size, y->size);
	int		       order = size ? memcmp(x->data, y->data, size) : 0;

	return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Reports the removed paths, sorted as upstream sorts them. */
static void report_unknown(const struct pruner *pruner, vdi_schema_unknown_fn *unknown, void *arg)
{
	struct vd_bytes paths[VDI_FIELD_ERRORS_MAX];
	const char     *at = pruner->found.data;

	for (size_t i = 0; i < pruner->count; i++) {
		uint32_t length;

		memcpy(&length, at, sizeof length);
		paths[i] = (struct vd_bytes) { at + sizeof length, length };
		at += sizeof length + length;
	}
	qsort(paths, pruner->count, sizeof *paths, compare_paths);
	for (size_t i = 0; i < pruner->count; i++)
		unknown(arg, paths[i]);
}

vd_status vdi_schema_prune_node(const struct vdi_schema_node *node, struct vdi_tree *tree,
				struct vdi_node *value, bool is_root, vdi_schema_unknown_fn *unknown,
				void *arg)
{
	struct pruner pruner = {
		.tree = tree, .path = VDI_OUT_INIT, .found = VDI_OUT_INIT, .collects = unknown != NULL
	};
	vd_status status;

	prune(&pruner, node, value, is_root || node->embedded);
	status = pruner.found.failed || pruner.path.failed ? VD_NOMEM : VD_OK;
	if (status == VD_OK && pruner.count)
		report_unknown(&pruner, unknown, arg);
	vdi_out_fini(&pruner.path);
	vdi_out_fini(&pruner.found);
	return status;
}

vd_status vdi_schema_prune(const struct vdi_schema *schema, struct vdi_tree *tree, struct vdi_node *root,
			   vdi_schema_unknown_fn *unknown, void *arg)
{
	return vdi_schema_prune_node(schema->root, tree, root, true, unknown, arg);
}
