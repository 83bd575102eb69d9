/* Compiles dotted paths into a tree of keys.
 *
 * All built-in members and all paths share one tree, so for each key of an object on any path the scanner
 * only has to find the matching child. The lookup is a small bucket table in the node, indexed by the key's
 * length and first byte.
 */
#include "json_plan.h"

struct member_row {
	enum vdi_json_member member;
	uint16_t	     parent;
	const char	    *key;
};

static const struct member_row member_rows[] = {
	{ VDI_JSON_API_VERSION, VDI_JSON_NODE_ROOT, "apiVersion" },
	{ VDI_JSON_KIND, VDI_JSON_NODE_ROOT, "kind" },
	{ VDI_JSON_METADATA, VDI_JSON_NODE_ROOT, "metadata" },
	{ VDI_JSON_NAME, VDI_JSON_METADATA, "name" },
	{ VDI_JSON_NAMESPACE, VDI_JSON_METADATA, "namespace" },
	{ VDI_JSON_GENERATE_NAME, VDI_JSON_METADATA, "generateName" },
	{ VDI_JSON_UID, VDI_JSON_METADATA, "uid" },
	{ VDI_JSON_RESOURCE_VERSION, VDI_JSON_METADATA, "resourceVersion" },
	{ VDI_JSON_SELF_LINK, VDI_JSON_METADATA, "selfLink" },
	{ VDI_JSON_GENERATION, VDI_JSON_METADATA, "generation" },
	{ VDI_JSON_CREATION_TIMESTAMP, VDI_JSON_METADATA, "creationTimestamp" },
	{ VDI_JSON_DELETION_TIMESTAMP, VDI_JSON_METADATA, "deletionTimestamp" },
	{ VDI_JSON_DELETION_GRACE_PERIOD_SECONDS, VDI_JSON_METADATA, "deletionGracePeriodSeconds" },
	{ VDI_JSON_LABELS, VDI_JSON_METADATA, "labels" },
	{ VDI_JSON_ANNOTATIONS, VDI_JSON_METADATA, "annotations" },
	{ VDI_JSON_FINALIZERS, VDI_JSON_METADATA, "finalizers" },
	{ VDI_JSON_OWNER_REFERENCES, VDI_JSON_METADATA, "ownerReferences" },
	{ VDI_JSON_MANAGED_FIELDS, VDI_JSON_METADATA, "managedFields" },
};

static void node_init(struct vdi_json_node *node, char *key, size_t length)
{
	memset(node, 0, sizeof *node);
	node->key = key;
	node->key_length = (uint16_t) length;
	node->next = VDI_JSON_NODE_NONE;
	memcpy(node->key16, key, VDI_MIN(length, sizeof node->key16));
	if (length < sizeof node->key16) {
		node->key16[length] = '"';
		node->behind16 = (uint16_t) (0xffffu << (length + 1));
	}
	for (size_t i = 0; i < VDI_JSON_BUCKETS; i++)
		node->buckets[i] = VDI_JSON_NODE_NONE;
}

static void child_link(struct vdi_json_plan *plan, uint16_t parent, uint16_t child)
{
	struct vdi_json_node *node = &plan->nodes[child];
	unsigned	      bucket = vdi_json_bucket(node->key, node->key_length);

	node->next = plan->nodes[parent].buckets[bucket];
	plan->nodes[parent].buckets[bucket] = child;
	plan->nodes[parent].inner = true;
}

static vd_status node_append(struct vdi_json_plan *plan, const char *key, size_t length, uint16_t *ret_node)
{
	char *copy;

	if (!vdi_grow((void **) &plan->nodes, &plan->node_capacity, plan->node_count + 1,
		      sizeof *plan->nodes))
		return VD_NOMEM;
	copy = vdi_strndup(key, length);
	if (copy == NULL)
		return VD_NOMEM;
	node_init(&plan->nodes[plan->node_count], copy, length);
	*ret_node = (uint16_t) plan->node_count++;
	return VD_OK;
}

static uint16_t child_find(const struct vdi_json_plan *plan, uint16_t parent, const char *key, size_t length)
{
	uint16_t child = plan->nodes[parent].buckets[vdi_json_bucket(key, length)];

	while (child != VDI_JSON_NODE_NONE &&
	       (plan->nodes[child].key_length != length || memcmp(plan->nodes[child].key, key, length) != 0))
		child = plan->nodes[child].next;
	return child;
}

static vd_status builtin_append(struct vdi_json_plan *plan)
{
	uint16_t node;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(member_rows); i++) {
		VDI_TRY(node_append(plan, member_rows[i].key, strlen(member_rows[i].key), &node));
		VDI_CHECK(node == member_rows[i].member);
	}
	VDI_TRY(node_append(plan, "", 0, &node));
	VDI_CHECK(node == VDI_JSON_NODE_ROOT);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(member_rows); i++)
		child_link(plan, member_rows[i].parent, (uint16_t) member_rows[i].member);
	plan->nodes[VDI_JSON_NODE_ROOT].strict = true;
	plan->nodes[VDI_JSON_METADATA].strict = true;
	plan->nodes[VDI_JSON_LABELS].strict = true;
	plan->nodes[VDI_JSON_LABELS].inner = true;
	return VD_OK;
}

/* Parses one segment of a path: `name`, `na\.me` or `['na.me']`, and advances *at. Returns its length in key,
 * SIZE_MAX if it is malformed. */
static size_t segment_next(const char *text, size_t size, size_t *at, char *key)
{
	size_t i = *at;
	size_t length = 0;

	if (i + 1 < size && text[i] == '[' && (text[i + 1] == '\'' || text[i + 1] == '"')) {
		char quote = text[i + 1];

		for (i += 2; i < size && text[i] != quote; i++) {
			if (text[i] == '\\' && ++i == size)
				return SIZE_MAX;
			key[length++] = text[i];
		}
		if (i + 1 >= size || text[i + 1] != ']')
			return SIZE_MAX;
		*at = i + 2;
		return length;
	}
	for (; i < size && text[i] != '.' && text[i] != '['; i++) {
		if (text[i] == '\\' && ++i == size)
			return SIZE_MAX;
		if (strchr("]*?@(){}\"' ", text[i]) != NULL)
			return SIZE_MAX;
		key[length++] = text[i];
	}
	*at = i;
	return length ? length : SIZE_MAX;
}

static vd_status path_append(struct vdi_json_plan *plan, struct vd_bytes path, struct vd_error *reterr)
{
	const char *text = path.data;
	size_t	    size = path.size;
	size_t	    at = 0;
	uint16_t    node = VDI_JSON_NODE_ROOT;
	char	    key[VDI_JSON_PATH_SIZE_MAX];

	if (size > VDI_JSON_PATH_SIZE_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "path has %zu bytes, maximum is %d", size,
				    VDI_JSON_PATH_SIZE_MAX);
	if (size >= 2 && text[0] == '{' && text[size - 1] == '}') {
		text++;
		size -= 2;
	}
	if (size && text[0] == '$')
		at++;
	if (at < size && text[at] == '.')
		at++;
	for (size_t depth = 0;; depth++) {
		size_t	 length = at < size && depth < VDI_JSON_PATH_DEPTH_MAX ?
					  segment_next(text, size, &at, key) :
					  SIZE_MAX;
		uint16_t child;

		if (length == SIZE_MAX)
			return vd_error_set(reterr, VD_INVALID_ARGUMENT,
					    "path '%.*s' is not a dotted path of object members",
					    (int) path.size, (const char *) path.data);
		child = child_find(plan, node, key, length);
		if (child == VDI_JSON_NODE_NONE) {
			if (plan->node_count >= VDI_JSON_NODES_MAX)
				return vd_error_set(reterr, VD_INVALID_ARGUMENT,
						    "the paths have more than %d members",
						    VDI_JSON_NODES_MAX);
			VDI_TRY(node_append(plan, key, length, &child));
			child_link(plan, node, child);
		}
		node = child;
		if (at == size)
			break;
		if (text[at] == '.')
			at++;
		else if (text[at] != '[')
			at = size; /* text after a bracket is an error */
	}
	plan->path_nodes[plan->path_count++] = node;
	return VD_OK;
}

vd_status vdi_json_plan_new(const struct vd_bytes *paths, size_t path_count, struct vdi_json_plan **ret_plan,
			    struct vd_error *reterr)
{
	struct vdi_json_plan *plan;
	vd_status	      status;

	if (path_count > VDI_JSON_PATHS_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "%zu paths, maximum is %d", path_count,
				    VDI_JSON_PATHS_MAX);
	plan = VDI_NEW(struct vdi_json_plan);
	if (plan == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	status = builtin_append(plan);
	for (size_t i = 0; status == VD_OK && i < path_count; i++)
		status = path_append(plan, paths[i], reterr);
	if (status != VD_OK) {
		vdi_json_plan_free(plan);
		return status == VD_NOMEM ? vd_error_set(reterr, VD_NOMEM, "out of memory") : status;
	}
	*ret_plan = plan;
	return VD_OK;
}

struct vdi_json_plan *vdi_json_plan_free(struct vdi_json_plan *plan)
{
	if (plan == NULL)
		return NULL;
	for (size_t i = 0; i < plan->node_count; i++)
		vdi_free(plan->nodes[i].key);
	vdi_free(plan->nodes);
	vdi_free(plan);
	return NULL;
}

vd_status vdi_json_object_init(struct vdi_json_object *object, const struct vdi_json_plan *plan)
{
	struct vdi_json_value *values = vdi_calloc(plan->node_count, sizeof *values);

	if (values == NULL)
		return VD_NOMEM;
	memset(object, 0, sizeof *object);
	object->plan = plan;
	object->values = values;
	return VD_OK;
}

void vdi_json_object_fini(struct vdi_json_object *object)
{
	vdi_free(object->values);
	vdi_free(object->labels);
	memset(object, 0, sizeof *object);
}

const struct vdi_json_value *vdi_json_field(const struct vdi_json_object *object, size_t index)
{
	VDI_CHECK(index < object->plan->path_count);
	return &object->values[object->plan->path_nodes[index]];
}
