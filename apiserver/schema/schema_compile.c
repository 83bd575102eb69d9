/* Compiles the JSON of an openAPIV3Schema into the nodes that the other schema_*.c files walk. schema_check.c
 * has checked the JSON before, so every member has the expected type. The defaults are validated at the end,
 * by the same functions as objects. */
#include <stdio.h>
#include <stdlib.h>

#include "schema_node.h"

struct compiler {
	struct vdi_tree		*tree; /* of the openAPIV3Schema */
	struct vdi_schema	*schema;
	struct vdi_field_errors *field_errors;
	struct vdi_out		 place;
	uint64_t		 work;	   /* steps left for validating the defaults */
	uint64_t		 patterns; /* steps left for compiling the patterns */
};

static struct vdi_node *member(struct compiler *compiler, const struct vdi_node *source, const char *key)
{
	struct vdi_node *node = vdi_tree_get(compiler->tree, source, vd_bytes_of(key));

	return vdi_tree_is(node, VDI_NODE_NULL) ? NULL : node;
}

static void *take(struct compiler *compiler, size_t count, size_t size)
{
	void *memory = vdi_tree_take(&compiler->schema->memory, VDI_MAX(count * size, (size_t) 1));

	if (memory)
		memset(memory, 0, count * size);
	return memory;
}

static vd_status take_text(struct compiler *compiler, const struct vdi_node *node, struct vd_bytes *ret_text)
{
	struct vd_bytes text = vdi_tree_string_of(node);

	if (text.size == 0)
		return VD_OK;
	return vdi_tree_take_text(&compiler->schema->memory, text, ret_text) ? VD_OK : VD_NOMEM;
}

static int compare_texts(const void *a, const void *b)
{
	const struct vd_bytes *x = a, *y = b;
	size_t		       size = VDI_MIN(x->size, y->size);
	int		       order = size ? memcmp(x->data, y->data, size) : 0;

	return order ? order : (x->size > y->size) - (x->size < y->size);
}

static vd_status take_texts(struct compiler *compiler, const struct vdi_node *array,
			    struct vd_bytes **ret_texts, size_t *ret_count)
{
	struct vd_bytes *texts;
	size_t		 count = 0;

	if (!vdi_tree_is(array, VDI_NODE_ARRAY) || array->count == 0)
		return VD_OK;
	texts = take(compiler, array->count, sizeof *texts);
	if (texts == NULL)
		return VD_NOMEM;
	for (const struct vdi_node *item = array->first; item; item = item->next) {
		texts[count] = VD_BYTES_NONE;
		VDI_TRY(take_text(compiler, item, &texts[count]));
		count++;
	}
	*ret_texts = texts;
	*ret_count = count;
	return VD_OK;
}

static size_t size_of(const struct vdi_node *node)
{
	size_t size = sizeof *node + node->text.size + node->key.size;

	for (const struct vdi_node *child = node->first; child; child = child->next)
		size += size_of(child);
	return size;
}

static vd_status take_value(struct compiler *compiler, const struct vdi_node *value,
			    const struct vdi_node **ret_value)
{
	*ret_value = vdi_tree_copy(&compiler->schema->memory, value);
	return *ret_value ? VD_OK : VD_NOMEM;
}

static bool is_true(const struct vdi_node *node)
{
	return vdi_tree_is(node, VDI_NODE_TRUE);
}

static double number_of(const struct vdi_node *node)
{
	char text[400];

	(void) snprintf(text, sizeof text, "%.*s", (int) VDI_MIN(node->text.size, sizeof text - 1),
			(const char *) node->text.data);
	return strtod(text, NULL);
}

static bool take_number(struct compiler *compiler, const struct vdi_node *source, const char *key,
			double *ret_number)
{
	const struct vdi_node *node = member(compiler, source, key);

	if (node)
		*ret_number = number_of(node);
	return node != NULL;
}

static int64_t take_count(struct compiler *compiler, const struct vdi_node *source, const char *key)
{
	const struct vdi_node *node = member(compiler, source, key);

	return node ? vdi_tree_int_of(node, INT64_MAX) : -1;
}

static vd_status take_pattern(struct compiler *compiler, struct vdi_schema_limits *limits)
{
	struct vdi_schema  *schema = compiler->schema;
	struct vdi_pattern *pattern;

	if (limits->pattern_text.size == 0)
		return VD_OK;
	if (!vdi_grow((void **) &schema->patterns, &schema->pattern_capacity, schema->pattern_count + 1,
		      sizeof *schema->patterns))
		return VD_NOMEM;
	VDI_TRY(vdi_pattern_compile(limits->pattern_text, &compiler->patterns, &pattern, NULL));
	limits->pattern = schema->patterns[schema->pattern_count++] = pattern;
	return VD_OK;
}

static vd_status compile_node(struct compiler *compiler, const struct vdi_node *source,
			      struct vdi_schema_node **ret_node);

static vd_status compile_list(struct compiler *compiler, const struct vdi_node *source, const char *key,
			      struct vdi_schema_nodes *nodes)
{
	const struct vdi_node *array = member(compiler, source, key);

	if (!array || array->count == 0)
		return VD_OK;
	nodes->items = take(compiler, array->count, sizeof *nodes->items);
	if (nodes->items == NULL)
		return VD_NOMEM;
	for (const struct vdi_node *item = array->first; item; item = item->next)
		VDI_TRY(compile_node(compiler, item, &nodes->items[nodes->count++]));
	return VD_OK;
}

/* Returns true if the node restricts values; most nodes do not. */
static bool has_limits(struct compiler *compiler, const struct vdi_node *source)
{
	static const char *const keys[] = {
		"format",	 "pattern",   "enum",	   "required", "minimum",  "maximum",
		"multipleOf",	 "minLength", "maxLength", "minItems", "maxItems", "minProperties",
		"maxProperties", "allOf",     "anyOf",	   "oneOf",    "not"
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(keys); i++)
		if (member(compiler, source, keys[i]))
			return true;
	return false;
}

static vd_status compile_limits(struct compiler *compiler, const struct vdi_node *source,
				const struct vdi_schema_node	*node,
				const struct vdi_schema_limits **ret_limits)
{
	struct vdi_schema_limits *limits = take(compiler, 1, sizeof *limits);
	const struct vdi_node	 *enumeration = member(compiler, source, "enum"),
			      *not = member(compiler, source, "not");
	struct vd_bytes		format = vdi_tree_string_of(member(compiler, source, "format"));
	struct vdi_schema_node *negated;

	if (limits == NULL)
		return VD_NOMEM;
	if (vdi_schema_format_is_known(format, node->int_or_string ? VDI_TYPE_NONE :
								     (enum vdi_schema_type) node->type))
		VDI_TRY(take_text(compiler, member(compiler, source, "format"), &limits->format));
	VDI_TRY(take_text(compiler, member(compiler, source, "pattern"), &limits->pattern_text));
	VDI_TRY(take_pattern(compiler, limits));
	if (enumeration && enumeration->count)
		VDI_TRY(take_value(compiler, enumeration, &limits->enumeration));
	VDI_TRY(take_texts(compiler, member(compiler, source, "required"), &limits->required,
			   &limits->required_count));
	limits->has_minimum = take_number(compiler, source, "minimum", &limits->minimum);
	limits->has_maximum = take_number(compiler, source, "maximum", &limits->maximum);
	limits->has_multiple_of = take_number(compiler, source, "multipleOf", &limits->multiple_of);
	limits->exclusive_minimum = is_true(member(compiler, source, "exclusiveMinimum"));
	limits->exclusive_maximum = is_true(member(compiler, source, "exclusiveMaximum"));
	limits->min_length = take_count(compiler, source, "minLength");
	limits->max_length = take_count(compiler, source, "maxLength");
	limits->min_items = take_count(compiler, source, "minItems");
	limits->max_items = take_count(compiler, source, "maxItems");
	limits->min_properties = take_count(compiler, source, "minProperties");
	limits->max_properties = take_count(compiler, source, "maxProperties");
	VDI_TRY(compile_list(compiler, source, "allOf", &limits->all_of));
	VDI_TRY(compile_list(compiler, source, "anyOf", &limits->any_of));
	VDI_TRY(compile_list(compiler, source, "oneOf", &limits->one_of));
	if (not ) {
		VDI_TRY(compile_node(compiler, not, &negated));
		limits->not = negated;
	}
	*ret_limits = limits;
	return VD_OK;
}

static int compare_properties(const void *a, const void *b)
{
	const struct vdi_schema_property *x = a, *y = b;

	return compare_texts(&x->key, &y->key);
}

/* Lists the properties with defaults, so that defaulting an object does not visit all properties of its
 * schema. */
static vd_status collect_defaulted(struct compiler *compiler, struct vdi_schema_node *node)
{
	size_t count = 0;

	for (size_t i = 0; i < node->property_count; i++)
		count += node->properties[i].node->default_value != NULL;
	if (count == 0)
		return VD_OK;
	node->defaulted = take(compiler, count, sizeof(struct vdi_schema_property *));
	if (node->defaulted == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < node->property_count; i++)
		if (node->properties[i].node->default_value)
			node->defaulted[node->defaulted_count++] = &node->properties[i];
	return VD_OK;
}

static vd_status compile_properties(struct compiler *compiler, const struct vdi_node *properties,
				    struct vdi_schema_node *node)
{
	if (properties == NULL || properties->count == 0)
		return VD_OK;
	node->properties = take(compiler, properties->count, sizeof *node->properties);
	if (node->properties == NULL)
		return VD_NOMEM;
	for (const struct vdi_node *property = properties->first; property; property = property->next) {
		struct vdi_schema_property *to = &node->properties[node->property_count];

		if (!vdi_tree_take_text(&compiler->schema->memory, property->key, &to->key))
			return VD_NOMEM;
		VDI_TRY(compile_node(compiler, property, &to->node));
		node->property_count++;
	}
	qsort(node->properties, node->property_count, sizeof *node->properties, compare_properties);
	return collect_defaulted(compiler, node);
}

static void note_below(struct vdi_schema_node *node, const struct vdi_schema_node *child)
{
	node->has_lists |= child && child->has_lists;
	node->has_resources |= child && child->has_resources;
}

static enum vdi_schema_type type_of(struct vd_bytes name)
{
	static const char *const names[] = {
		"", "array", "boolean", "integer", "number", "object", "string"
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++)
		if (vd_bytes_equal(name, vd_bytes_of(names[i])))
			return (enum vdi_schema_type) i;
	return VDI_TYPE_NONE;
}

static vd_status compile_children(struct compiler *compiler, const struct vdi_node *source,
				  struct vdi_schema_node *node)
{
	const struct vdi_node *items = member(compiler, source, "items"),
			      *additional = member(compiler, source, "additionalProperties");
	const struct vdi_node *rules = member(compiler, source, "x-kubernetes-validations"),
			      *value = member(compiler, source, "default");

	VDI_TRY(compile_properties(compiler, member(compiler, source, "properties"), node));
	if (items)
		VDI_TRY(compile_node(compiler, items, &node->items));
	if (vdi_tree_is(additional, VDI_NODE_OBJECT)) {
		node->more = VDI_MORE_SCHEMA;
		VDI_TRY(compile_node(compiler, additional, &node->additional));
	} else if (additional) {
		node->more = is_true(additional) ? VDI_MORE_ANY : VDI_MORE_FORBIDDEN;
	}
	for (size_t i = 0; i < node->property_count; i++)
		note_below(node, node->properties[i].node);
	note_below(node, node->items);
	note_below(node, node->additional);
	VDI_TRY(take_texts(compiler, member(compiler, source, "x-kubernetes-list-map-keys"), &node->list_keys,
			   &node->list_key_count));
	if (node->list_key_count)
		qsort(node->list_keys, node->list_key_count, sizeof *node->list_keys, compare_texts);
	if (value) {
		VDI_TRY(take_value(compiler, value, &node->default_value));
		node->default_size = size_of(value);
	}
	compiler->schema->rule_count += rules ? rules->count : 0;
	return has_limits(compiler, source) ? compile_limits(compiler, source, node, &node->limits) : VD_OK;
}

static vd_status compile_node(struct compiler *compiler, const struct vdi_node *source,
			      struct vdi_schema_node **ret_node)
{
	struct vd_bytes		list = vdi_tree_string_of(member(compiler, source, "x-kubernetes-list-type"));
	struct vdi_schema_node *node = take(compiler, 1, sizeof *node);

	if (node == NULL)
		return VD_NOMEM;
	compiler->schema->node_count++;
	node->type = (uint8_t) type_of(vdi_tree_string_of(member(compiler, source, "type")));
	node->list = vd_bytes_equal(list, vd_bytes_of("set")) ? VDI_LIST_SET :
		     vd_bytes_equal(list, vd_bytes_of("map")) ? VDI_LIST_MAP :
								VDI_LIST_ATOMIC;
	node->nullable = is_true(member(compiler, source, "nullable"));
	node->int_or_string = is_true(member(compiler, source, "x-kubernetes-int-or-string"));
	node->preserves = is_true(member(compiler, source, "x-kubernetes-preserve-unknown-fields"));
	node->embedded = is_true(member(compiler, source, "x-kubernetes-embedded-resource"));
	node->has_lists = node->list != VDI_LIST_ATOMIC;
	node->has_resources = node->embedded;
	*ret_node = node;
	return compile_children(compiler, source, node);
}

/* ---- Defaults ----
 *
 * Each must be a valid value for its place, as upstream checks in
 * pkg/apiserver/schema/defaulting/validation.go. */

static void note_unknown(void *arg, struct vd_bytes path)
{
	*(bool *) arg = true;
}

static vd_status check_default(struct compiler *compiler, const struct vdi_schema_node *node)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *copy = vdi_tree_copy(&tree, node->default_value),
			*pruned = vdi_tree_copy(&tree, node->default_value);
	size_t	  size = compiler->place.size;
	bool	  unknown = false;
	vd_status status = VD_NOMEM;

	vdi_out_raw(&compiler->place, compiler->place.size ? ".default" : "default");
	if (copy && pruned && !compiler->place.failed)
		status = vdi_schema_prune_node(node, &tree, pruned, node->embedded, note_unknown, &unknown);
	if (status == VD_OK && unknown)
		vdi_field_errors_add_node(compiler->field_errors, VDI_FIELD_ERROR_INVALID,
					  vdi_out_slice(&compiler->place), node->default_value,
					  "must not have unknown fields");
	if (status == VD_OK)
		status = vdi_schema_validate_node(node, &tree, copy, NULL, vdi_out_slice(&compiler->place),
						  true, &compiler->work, compiler->field_errors);
	vdi_tree_fini(&tree);
	compiler->place.size = size;
	return status == VD_INVALID ? VD_OK : status;
}

/* Does not descend into additionalProperties; neither does upstream. */
static vd_status check_defaults(struct compiler *compiler, const struct vdi_schema_node *node)
{
	size_t size = compiler->place.size;

	if (node->default_value)
		VDI_TRY(check_default(compiler, node));
	if (node->items) {
		vdi_out_raw(&compiler->place, size ? ".items" : "items");
		VDI_TRY(check_defaults(compiler, node->items));
		compiler->place.size = size;
	}
	for (size_t i = 0; i < node->property_count; i++) {
		vdi_out_raw(&compiler->place, size ? ".properties[" : "properties[");
		vdi_out_bytes(&compiler->place, node->properties[i].key);
		vdi_out_raw(&compiler->place, "]");
		VDI_TRY(check_defaults(compiler, node->properties[i].node));
		compiler->place.size = size;
	}
	return compiler->place.failed ? VD_NOMEM : VD_OK;
}

static vd_status keep_source(struct vdi_schema *schema, const struct vdi_node *source)
{
	struct vdi_out text = VDI_OUT_INIT;
	bool	       kept;

	vdi_tree_write(&text, source);
	kept = !text.failed && vdi_tree_take_text(&schema->memory, vdi_out_slice(&text), &schema->text);
	vdi_out_fini(&text);
	return kept ? VD_OK : VD_NOMEM;
}

static vd_status compile(struct compiler *compiler, const struct vdi_node *source, const char *place)
{
	VDI_TRY(compile_node(compiler, source, &compiler->schema->root));
	VDI_TRY(keep_source(compiler->schema, source));
	vdi_out_raw(&compiler->place, place);
	return check_defaults(compiler, compiler->schema->root);
}

vd_status vdi_schema_compile(struct vdi_tree *tree, const struct vdi_node *open_api_v3_schema,
			     const char *place, struct vdi_schema **ret_schema,
			     struct vdi_field_errors *field_errors)
{
	struct compiler compiler = { .tree = tree,
				     .field_errors = field_errors,
				     .place = VDI_OUT_INIT,
				     .work = VDI_SCHEMA_WORK_MAX,
				     .patterns = VDI_SCHEMA_PATTERN_MAX };
	size_t		count = field_errors->count;
	vd_status	status;

	VDI_TRY(vdi_schema_check(tree, open_api_v3_schema, place, field_errors));
	if (field_errors->count > count)
		return VD_INVALID;
	compiler.schema = VDI_NEW(struct vdi_schema);
	if (compiler.schema == NULL)
		return VD_NOMEM;
	atomic_init(&compiler.schema->users, 1);
	status = compile(&compiler, open_api_v3_schema, place);
	compiler.schema->work =
		VDI_SCHEMA_PATTERN_MAX - compiler.patterns + (VDI_SCHEMA_WORK_MAX - compiler.work) / 20;
	vdi_out_fini(&compiler.place);
	if (status == VD_OK && field_errors->failed)
		status = VD_NOMEM;
	if (status == VD_OK && field_errors->count > count)
		status = VD_INVALID;
	if (status == VD_OK)
		*ret_schema = compiler.schema;
	else
		(void) vdi_schema_free(compiler.schema);
	return status;
}

const struct vdi_schema *vdi_schema_ref(const struct vdi_schema *schema)
{
	atomic_fetch_add_explicit(&((struct vdi_schema *) (uintptr_t) schema)->users, 1,
				  memory_order_relaxed);
	return schema;
}

struct vdi_schema *vdi_schema_free(struct vdi_schema *schema)
{
	if (schema == NULL || atomic_fetch_sub_explicit(&schema->users, 1, memory_order_acq_rel) != 1)
		return NULL;
	for (size_t i = 0; i < schema->pattern_count; i++)
		(void) vdi_pattern_free(schema->patterns[i]);
	vdi_free(schema->patterns);
	vdi_tree_fini(&schema->memory);
	vdi_free(schema);
	return NULL;
}

uint64_t vdi_schema_work(const struct vdi_schema *schema)
{
	return schema->work;
}

size_t vdi_schema_rule_count(const struct vdi_schema *schema)
{
	return schema->rule_count;
}

const struct vdi_schema_node *vdi_schema_property_of(const struct vdi_schema_node *node, struct vd_bytes key)
{
	size_t low = 0, high = node->property_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int    order = compare_texts(&key, &node->properties[middle].key);

		if (order == 0)
			return node->properties[middle].node;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const struct vdi_schema_node *vdi_schema_member_of(const struct vdi_schema_node *node, struct vd_bytes key)
{
	const struct vdi_schema_node *property = vdi_schema_property_of(node, key);

	return property ? property : node->additional;
}
