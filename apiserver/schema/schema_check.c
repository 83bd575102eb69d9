/* Checks that a schema is allowed: the rules of pkg/apiserver/schema/validation.go and complete.go
 * (structural), and of pkg/apis/apiextensions/validation/validation.go
 * (ValidateCustomResourceDefinitionOpenAPISchema), in one walk over the JSON. Errors are sorted by text, as
 * upstream sorts the structural ones. */
#include <stdio.h>

#include "schema_node.h"

enum level { LEVEL_ROOT, LEVEL_ITEM, LEVEL_FIELD };

struct check {
	struct vdi_tree		*tree;
	struct vdi_field_errors *field_errors;
	struct vdi_out		 place;
	struct vdi_out
		 twin_place; /* of the structural node that a node inside of allOf and its likes speaks of */
	size_t	 nodes;
	uint64_t patterns; /* steps left for compiling them */
	bool	 too_many;
};

/* Position of a node in the schema. */
struct context {
	enum level  level;
	bool	    nested;	 /* inside of allOf, anyOf, oneOf, not */
	bool	    skip_any_of; /* the node is the { integer, string } pair of int-or-string */
	bool	    in_meta;
	const char *no_default; /* why a default is forbidden here, or NULL */
	const struct vdi_node
		*twin; /* of nodes inside of the root's junctors, else NULL: nothing to compare with */
};

static const struct vdi_node *member(struct check *check, const struct vdi_node *source, const char *key)
{
	const struct vdi_node *node = vdi_tree_get(check->tree, source, vd_bytes_of(key));

	return vdi_tree_is(node, VDI_NODE_NULL) ? NULL : node;
}

static struct vd_bytes text(struct check *check, const struct vdi_node *source, const char *key)
{
	return vdi_tree_string_of(member(check, source, key));
}

static bool is_true(struct check *check, const struct vdi_node *source, const char *key)
{
	return vdi_tree_is(member(check, source, key), VDI_NODE_TRUE);
}

static bool is(struct vd_bytes text_bytes, const char *other)
{
	return vd_bytes_equal(text_bytes, vd_bytes_of(other));
}

static bool has_members(const struct vdi_node *node)
{
	return node && node->count > 0;
}

/* ---- Paths ---- */

static size_t enter(struct vdi_out *place, const char *child)
{
	size_t size = place->size;

	if (size && child[0] != '[')
		vdi_out_raw(place, ".");
	vdi_out_raw(place, child);
	return size;
}

static size_t enter_key(struct vdi_out *place, const char *child, struct vd_bytes key)
{
	size_t size = enter(place, child);

	vdi_out_raw(place, "[");
	vdi_out_bytes(place, key);
	vdi_out_raw(place, "]");
	return size;
}

static size_t enter_index(struct vdi_out *place, const char *child, size_t index)
{
	size_t size = enter(place, child);

	vdi_out_index(place, index);
	return size;
}

static void add(struct check *check, enum vdi_field_error_kind kind, const char *child,
		const struct vdi_node *value, const char *detail)
{
	size_t size = enter(&check->place, child);

	vdi_field_errors_add_node(check->field_errors, kind, vdi_out_slice(&check->place), value, "%s",
				  detail);
	check->place.size = size;
}

static void forbid(struct check *check, const char *child, const char *detail)
{
	add(check, VDI_FIELD_ERROR_FORBIDDEN, child, NULL, detail);
}

/* Adds Invalid, or Required if the member is absent. */
static void want_type(struct check *check, const struct vdi_node *source, const char *child,
		      const char *detail)
{
	const struct vdi_node *type = member(check, source, child);

	add(check, text(check, source, child).size ? VDI_FIELD_ERROR_INVALID : VDI_FIELD_ERROR_REQUIRED,
	    child, type, detail);
}

/* ---- Errors of upstream's decoder ---- */

enum shape {
	SHAPE_TEXT,
	SHAPE_BOOLEAN,
	SHAPE_NUMBER,
	SHAPE_COUNT,
	SHAPE_OBJECT,
	SHAPE_OBJECTS,
	SHAPE_TEXTS,
	SHAPE_ARRAY,
	SHAPE_SCHEMA_OR_BOOLEAN,
	SHAPE_SCHEMAS
};

static const struct {
	const char *key;
	enum shape  shape;
} shapes[] = {
	{ "type", SHAPE_TEXT },
	{ "format", SHAPE_TEXT },
	{ "title", SHAPE_TEXT },
	{ "description", SHAPE_TEXT },
	{ "pattern", SHAPE_TEXT },
	{ "$ref", SHAPE_TEXT },
	{ "x-kubernetes-list-type", SHAPE_TEXT },
	{ "x-kubernetes-map-type", SHAPE_TEXT },
	{ "nullable", SHAPE_BOOLEAN },
	{ "uniqueItems", SHAPE_BOOLEAN },
	{ "exclusiveMinimum", SHAPE_BOOLEAN },
	{ "exclusiveMaximum", SHAPE_BOOLEAN },
	{ "x-kubernetes-preserve-unknown-fields", SHAPE_BOOLEAN },
	{ "x-kubernetes-embedded-resource", SHAPE_BOOLEAN },
	{ "x-kubernetes-int-or-string", SHAPE_BOOLEAN },
	{ "minimum", SHAPE_NUMBER },
	{ "maximum", SHAPE_NUMBER },
	{ "multipleOf", SHAPE_NUMBER },
	{ "minLength", SHAPE_COUNT },
	{ "maxLength", SHAPE_COUNT },
	{ "minItems", SHAPE_COUNT },
	{ "maxItems", SHAPE_COUNT },
	{ "minProperties", SHAPE_COUNT },
	{ "maxProperties", SHAPE_COUNT },
	{ "properties", SHAPE_SCHEMAS },
	{ "not", SHAPE_OBJECT },
	{ "allOf", SHAPE_OBJECTS },
	{ "anyOf", SHAPE_OBJECTS },
	{ "oneOf", SHAPE_OBJECTS },
	{ "required", SHAPE_TEXTS },
	{ "x-kubernetes-list-map-keys", SHAPE_TEXTS },
	{ "enum", SHAPE_ARRAY },
	{ "x-kubernetes-validations", SHAPE_OBJECTS },
	{ "additionalProperties", SHAPE_SCHEMA_OR_BOOLEAN },
};

static bool all_are(const struct vdi_node *node, enum vdi_node_kind kind)
{
	for (const struct vdi_node *child = node->first; child; child = child->next)
		if (child->kind != kind)
			return false;
	return true;
}

static bool has_shape(const struct vdi_node *node, enum shape shape)
{
	bool boolean = node->kind == VDI_NODE_TRUE || node->kind == VDI_NODE_FALSE;

	switch (shape) {
	case SHAPE_TEXT: return node->kind == VDI_NODE_STRING;
	case SHAPE_BOOLEAN: return boolean;
	case SHAPE_NUMBER: return node->kind == VDI_NODE_NUMBER;
	case SHAPE_COUNT:
		return node->kind == VDI_NODE_NUMBER && vdi_tree_int_of(node, INT64_MIN) != INT64_MIN;
	case SHAPE_OBJECT: return node->kind == VDI_NODE_OBJECT;
	case SHAPE_OBJECTS: return node->kind == VDI_NODE_ARRAY && all_are(node, VDI_NODE_OBJECT);
	case SHAPE_TEXTS: return node->kind == VDI_NODE_ARRAY && all_are(node, VDI_NODE_STRING);
	case SHAPE_ARRAY: return node->kind == VDI_NODE_ARRAY;
	case SHAPE_SCHEMAS: return node->kind == VDI_NODE_OBJECT && all_are(node, VDI_NODE_OBJECT);
	case SHAPE_SCHEMA_OR_BOOLEAN: return boolean || node->kind == VDI_NODE_OBJECT;
	}
	return false;
}

static bool check_shapes(struct check *check, const struct vdi_node *source)
{
	static const char *const words[] = {
		"must be a string",	     "must be true or false", "must be a number",
		"must be an integer",	     "must be an object",     "must be a list of objects",
		"must be a list of strings", "must be a list",	      "must be a schema, true or false",
		"must be a map of schemas"
	};
	bool fine = true;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(shapes); i++) {
		const struct vdi_node *node = member(check, source, shapes[i].key);

		if (node == NULL || has_shape(node, shapes[i].shape))
			continue;
		add(check, VDI_FIELD_ERROR_TYPE_INVALID, shapes[i].key, node, words[shapes[i].shape]);
		fine = false;
	}
	return fine;
}

/* ---- OpenAPI features that custom resources lack ---- */

static void check_unsupported(struct check *check, const struct vdi_node *source,
			      const struct context *context)
{
	static const char *const keys[] = { "id",	   "additionalItems", "patternProperties",
					    "definitions", "dependencies",    "$ref" };
	const struct vdi_node *items = member(check, source, "items"), *type = member(check, source, "type");
	char		       detail[128];

	if (type && vdi_tree_string_of(type).size && !is(type->text, "array") && !is(type->text, "boolean") &&
	    !is(type->text, "integer") && !is(type->text, "number") && !is(type->text, "object") &&
	    !is(type->text, "string"))
		add(check, VDI_FIELD_ERROR_NOT_SUPPORTED, "type", type,
		    "supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", "
		    "\"string\"");
	if (context->no_default && member(check, source, "default")) {
		(void) snprintf(detail, sizeof detail, "must not be set %s", context->no_default);
		forbid(check, "default", detail);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(keys); i++) {
		const struct vdi_node *node = member(check, source, keys[i]);

		if (node == NULL || (i == 0 && vdi_tree_string_of(node).size == 0) ||
		    ((i == 2 || i == 3) && node->count == 0))
			continue;
		(void) snprintf(detail, sizeof detail, "%s is not supported", keys[i]);
		forbid(check, keys[i], detail);
	}
	if (is(text(check, source, "type"), "null"))
		forbid(check, "type", "type cannot be set to null, use nullable as an alternative");
	if (vdi_tree_is(items, VDI_NODE_ARRAY) && items->count)
		forbid(check, "items", "items must be a schema object and not an array");
	if (context->in_meta && is_true(check, source, "x-kubernetes-embedded-resource"))
		forbid(check, "x-kubernetes-embedded-resource", "must not be used inside of resource meta");
	if (is_true(check, source, "uniqueItems"))
		forbid(check, "uniqueItems",
		       "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
	if (context->level == LEVEL_ROOT && !context->nested && is_true(check, source, "nullable"))
		forbid(check, "nullable", "nullable cannot be true at the root");
}

static void check_list_keys(struct check *check, const struct vdi_node *source, const struct vdi_node *items)
{
	const struct vdi_node *keys = member(check, source, "x-kubernetes-list-map-keys"),
			      *properties = member(check, items, "properties");
	const struct vdi_node *required = member(check, items, "required");

	for (const struct vdi_node *key = keys ? keys->first : NULL; key; key = key->next) {
		const struct vdi_node *property = vdi_tree_get(check->tree, properties, key->text);
		bool		       is_required = false;
		size_t		       size;

		for (const struct vdi_node *other = keys->first; other != key; other = other->next)
			if (vd_bytes_equal(other->text, key->text))
				add(check, VDI_FIELD_ERROR_INVALID, "x-kubernetes-list-map-keys", keys,
				    "must not contain duplicate entries");
		if (!vdi_tree_is(property, VDI_NODE_OBJECT)) {
			add(check, VDI_FIELD_ERROR_INVALID, "x-kubernetes-list-map-keys", keys,
			    "entries must all be names of item properties");
			continue;
		}
		size = enter_key(&check->place, "items.properties", key->text);
		if (is(text(check, property, "type"), "array") || is(text(check, property, "type"), "object"))
			add(check, VDI_FIELD_ERROR_INVALID, "type", member(check, items, "type"),
			    "must be a scalar type if parent array's x-kubernetes-list-type is map");
		for (const struct vdi_node *one = vdi_tree_is(required, VDI_NODE_ARRAY) ? required->first :
											  NULL;
		     one; one = one->next)
			is_required |= vd_bytes_equal(vdi_tree_string_of(one), key->text);
		if (!is_required && !member(check, property, "default"))
			add(check, VDI_FIELD_ERROR_REQUIRED, "default", NULL,
			    "this property is in x-kubernetes-list-map-keys, so it must have a default or be "
			    "a required property");
		if (is_true(check, property, "nullable"))
			forbid(check, "nullable",
			       "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
		check->place.size = size;
	}
}

static void check_map_list(struct check *check, const struct vdi_node *source, const struct vdi_node *items)
{
	if (!has_members(member(check, source, "x-kubernetes-list-map-keys")))
		add(check, VDI_FIELD_ERROR_REQUIRED, "x-kubernetes-list-map-keys", NULL,
		    "must not be empty if x-kubernetes-list-type is map");
	if (items == NULL)
		add(check, VDI_FIELD_ERROR_REQUIRED, "items", NULL,
		    "must have a schema if x-kubernetes-list-type is map");
	else if (!is(text(check, items, "type"), "object"))
		add(check, VDI_FIELD_ERROR_INVALID, "items.type", member(check, items, "type"),
		    "must be object if parent array's x-kubernetes-list-type is map");
	else if (member(check, source, "x-kubernetes-list-map-keys") &&
		 member(check, source, "x-kubernetes-list-map-keys")->count > VDI_SCHEMA_LIST_KEYS_MAX)
		forbid(check, "x-kubernetes-list-map-keys", "must not have more than 64 entries");
	else
		check_list_keys(check, source, items);
}

static void check_list_type(struct check *check, const struct vdi_node *source)
{
	const struct vdi_node *list = member(check, source, "x-kubernetes-list-type"),
			      *items = member(check, source, "items");
	struct vd_bytes name = vdi_tree_string_of(list), item_type;
	bool		has_keys = has_members(member(check, source, "x-kubernetes-list-map-keys"));

	if (!vdi_tree_is(items, VDI_NODE_OBJECT))
		items = NULL;
	item_type = text(check, items, "type");
	if (list && !is(text(check, source, "type"), "array")) {
		want_type(check, source, "type", "must be array if x-kubernetes-list-type is specified");
	} else if (is(name, "set") && is(item_type, "array") &&
		   member(check, items, "x-kubernetes-list-type") &&
		   !is(text(check, items, "x-kubernetes-list-type"), "atomic")) {
		add(check, VDI_FIELD_ERROR_INVALID, "items.x-kubernetes-list-type",
		    member(check, items, "x-kubernetes-list-type"),
		    "must be atomic as item of a list with x-kubernetes-list-type=set");
	} else if (is(name, "set") && is(item_type, "object") &&
		   !is(text(check, items, "x-kubernetes-map-type"), "atomic")) {
		static const struct vdi_node null = { .kind = VDI_NODE_NULL };

		add(check, VDI_FIELD_ERROR_INVALID, "items.x-kubernetes-map-type", &null,
		    "must be atomic as item of a list with x-kubernetes-list-type=set");
	}
	if (list && !is(name, "atomic") && !is(name, "set") && !is(name, "map"))
		add(check, VDI_FIELD_ERROR_NOT_SUPPORTED, "x-kubernetes-list-type", list,
		    "supported values: \"atomic\", \"set\", \"map\"");
	if (has_keys && list == NULL)
		add(check, VDI_FIELD_ERROR_REQUIRED, "x-kubernetes-list-type", NULL,
		    "must be map if x-kubernetes-list-map-keys is non-empty");
	else if (has_keys && !is(name, "map"))
		add(check, VDI_FIELD_ERROR_INVALID, "x-kubernetes-list-type", list,
		    "must be map if x-kubernetes-list-map-keys is non-empty");
	if ((is(name, "set") || is(name, "map")) && is_true(check, items, "nullable"))
		forbid(check, "items.nullable",
		       is(name, "set") ? "cannot be nullable when x-kubernetes-list-type is set" :
					 "cannot be nullable when x-kubernetes-list-type is map");
	if (is(name, "map"))
		check_map_list(check, source, items);
}

static void check_extensions(struct check *check, const struct vdi_node *source)
{
	const struct vdi_node *preserves = member(check, source, "x-kubernetes-preserve-unknown-fields"),
			      *map = member(check, source, "x-kubernetes-map-type");
	const struct vdi_node *rules = member(check, source, "x-kubernetes-validations"),
			      *additional = member(check, source, "additionalProperties");
	size_t index = 0;

	if (vdi_tree_is(preserves, VDI_NODE_FALSE))
		add(check, VDI_FIELD_ERROR_INVALID, "x-kubernetes-preserve-unknown-fields", preserves,
		    "must be true or undefined");
	if (map && !is(text(check, source, "type"), "object"))
		want_type(check, source, "type", "must be object if x-kubernetes-map-type is specified");
	if (map && !is(map->text, "atomic") && !is(map->text, "granular"))
		add(check, VDI_FIELD_ERROR_NOT_SUPPORTED, "x-kubernetes-map-type", map,
		    "supported values: \"atomic\", \"granular\"");
	if (additional && additional->kind != VDI_NODE_TRUE &&
	    has_members(member(check, source, "properties")))
		forbid(check, "additionalProperties",
		       "additionalProperties and properties are mutual exclusive");
	check_list_type(check, source);
	for (const struct vdi_node *rule = rules ? rules->first : NULL; rule; rule = rule->next, index++) {
		size_t size = enter_index(&check->place, "x-kubernetes-validations", index);

		if (text(check, rule, "rule").size == 0)
			add(check, VDI_FIELD_ERROR_REQUIRED, "rule", NULL, "rule is not specified");
		check->place.size = size;
	}
}

/* ---- Structural ---- */

static void check_pattern(struct check *check, const struct vdi_node *source)
{
	const struct vdi_node *pattern = member(check, source, "pattern");
	struct vdi_pattern    *compiled;
	struct vd_error	       error = { 0 };
	char		       detail[512];
	vd_status	       status;

	if (vdi_tree_string_of(pattern).size == 0 || check->patterns == 0)
		return;
	status = vdi_pattern_compile(pattern->text, &check->patterns, &compiled, &error);
	if (status == VD_OK) {
		(void) vdi_pattern_free(compiled);
		return;
	}
	if (status == VD_TOO_BIG) {
		check->patterns = 0;
		(void) snprintf(
			detail, sizeof detail,
			"the patterns of a schema must not take more than %d steps to compile together",
			VDI_SCHEMA_PATTERN_MAX);
		forbid(check, "pattern", detail);
		return;
	}
	if (status == VD_NOMEM)
		check->field_errors->failed = true;
	(void) snprintf(detail, sizeof detail, "must be a valid regular expression, but isn't: %s",
			error.message);
	add(check, VDI_FIELD_ERROR_INVALID, "pattern", pattern, detail);
}

/* `anyOf: [{type: integer}, {type: string}]` without other members in the two */
static bool is_int_or_string_pair(struct check *check, const struct vdi_node *any_of)
{
	return any_of && any_of->count == 2 && any_of->first->count == 1 &&
	       vdi_tree_last(any_of)->count == 1 && is(text(check, any_of->first, "type"), "integer") &&
	       is(text(check, vdi_tree_last(any_of), "type"), "string");
}

static void check_metadata(struct check *check, const struct vdi_node *metadata, bool resource,
			   enum level level)
{
	static const char *const known[] = { "type", "default", "example", "externalDocs" };
	const struct vdi_node	*properties = member(check, metadata, "properties");
	bool			 more = false;
	size_t			 size = enter(&check->place, "properties[metadata]");

	if (resource && !is(text(check, metadata, "type"), "object")) {
		static const struct vdi_node nothing = { .kind = VDI_NODE_STRING };
		const struct vdi_node	    *type = member(check, metadata, "type");

		add(check, VDI_FIELD_ERROR_INVALID, "type", type ? type : &nothing, "must be object");
	}
	for (const struct vdi_node *property = properties ? properties->first : NULL; property;
	     property = property->next)
		more |= !is(property->key, "name") && !is(property->key, "generateName");
	for (const struct vdi_node *one = metadata->first; one; one = one->next) {
		bool fine = one == properties || one->kind == VDI_NODE_NULL || one->kind == VDI_NODE_FALSE;

		for (size_t i = 0; i < VDI_ARRAY_SIZE(known); i++)
			fine |= is(one->key, known[i]);
		more |= !fine;
	}
	if (level == LEVEL_ROOT && more)
		vdi_field_errors_add(
			check->field_errors, VDI_FIELD_ERROR_FORBIDDEN, vdi_out_slice(&check->place),
			VD_BYTES_NONE,
			"must not specify anything other than name and generateName, but metadata is "
			"implicitly specified");
	check->place.size = size;
}

static void check_type_of_member(struct check *check, const struct vdi_node *properties, const char *key,
				 const char *place)
{
	const struct vdi_node *property = member(check, properties, key);

	if (property && !is(text(check, property, "type"), "string"))
		add(check, VDI_FIELD_ERROR_INVALID, place, member(check, property, "type"), "must be string");
}

static void check_structural(struct check *check, const struct vdi_node *source, enum level level)
{
	static const char *const no_type[] = { "must not be empty at the root",
					       "must not be empty for specified array items",
					       "must not be empty for specified object fields" };
	const struct vdi_node	*properties = member(check, source, "properties"),
			      *items = member(check, source, "items");
	const struct vdi_node *additional = member(check, source, "additionalProperties"),
			      *metadata = member(check, properties, "metadata");
	struct vd_bytes type = text(check, source, "type");
	bool		embedded = is_true(check, source, "x-kubernetes-embedded-resource");
	bool		preserves = is_true(check, source, "x-kubernetes-preserve-unknown-fields");
	bool		int_or_string = is_true(check, source, "x-kubernetes-int-or-string");

	if (is(type, "array") && items == NULL)
		add(check, VDI_FIELD_ERROR_REQUIRED, "items", NULL, "must be specified");
	if (additional && level == LEVEL_ROOT)
		forbid(check, "additionalProperties", "must not be used at the root");
	if (int_or_string && preserves)
		add(check, VDI_FIELD_ERROR_INVALID, "x-kubernetes-preserve-unknown-fields",
		    member(check, source, "x-kubernetes-preserve-unknown-fields"),
		    "must be false if x-kubernetes-int-or-string is true");
	if (int_or_string && embedded)
		add(check, VDI_FIELD_ERROR_INVALID, "x-kubernetes-embedded-resource",
		    member(check, source, "x-kubernetes-embedded-resource"),
		    "must be false if x-kubernetes-int-or-string is true");
	if (embedded && !is(type, "object"))
		want_type(check, source, "type", "must be object if x-kubernetes-embedded-resource is true");
	else if (type.size == 0 && !int_or_string && !preserves)
		add(check, VDI_FIELD_ERROR_REQUIRED, "type", NULL, no_type[level]);
	if (embedded && additional)
		forbid(check, "additionalProperties",
		       "must not be used if x-kubernetes-embedded-resource is set");
	if (level == LEVEL_ROOT && type.size && !is(type, "object"))
		add(check, VDI_FIELD_ERROR_INVALID, "type", member(check, source, "type"),
		    "must be object at the root");
	if (level == LEVEL_ROOT || embedded) {
		check_type_of_member(check, properties, "kind", "properties[kind].type");
		check_type_of_member(check, properties, "apiVersion", "properties[apiVersion].type");
	}
	if (metadata)
		check_metadata(check, metadata, level == LEVEL_ROOT || embedded, level);
	if (embedded && !preserves && !has_members(properties))
		add(check, VDI_FIELD_ERROR_REQUIRED, "properties", NULL,
		    "must not be empty if x-kubernetes-embedded-resource is true without "
		    "x-kubernetes-preserve-unknown-fields");
}

/* A nested node may only restrict values. */
static void check_nested(struct check *check, const struct vdi_node *source)
{
	static const struct {
		const char *key, *detail;
	} rules[] = {
		{ "type", "must be empty to be structural" },
		{ "additionalProperties", "must be undefined to be structural" },
		{ "default", "must be undefined to be structural" },
		{ "title", "must be empty to be structural" },
		{ "description", "must be empty to be structural" },
		{ "nullable", "must be false to be structural" },
		{ "x-kubernetes-preserve-unknown-fields", "must be false to be structural" },
		{ "x-kubernetes-embedded-resource", "must be false to be structural" },
		{ "x-kubernetes-int-or-string", "must be false to be structural" },
		{ "x-kubernetes-list-map-keys", "must be empty to be structural" },
		{ "x-kubernetes-list-type", "must be undefined to be structural" },
		{ "x-kubernetes-map-type", "must be undefined to be structural" },
		{ "x-kubernetes-validations", "must be empty to be structural" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rules); i++) {
		const struct vdi_node *node = member(check, source, rules[i].key);
		bool		       counts = node != NULL;

		if (i != 1 && i != 2 && node) /* an empty value counts as absent */
			counts = node->kind == VDI_NODE_TRUE || node->text.size ||
				 (node->kind == VDI_NODE_ARRAY && node->count);
		if (counts)
			forbid(check, rules[i].key, rules[i].detail);
	}
	if (member(check, member(check, source, "properties"), "metadata"))
		forbid(check, "properties[metadata]", "must not be specified in a nested context");
}

/* ---- The walk ---- */

static void check_node(struct check *check, const struct vdi_node *source, struct context context);

/* Reports a child of a nested node that has no counterpart in the structural node. */
static const struct vdi_node *twin_of(struct check *check, const struct vdi_node *child)
{
	if (child)
		return child;
	vdi_field_errors_add(check->field_errors, VDI_FIELD_ERROR_REQUIRED, vdi_out_slice(&check->twin_place),
			     VD_BYTES_NONE, "because it is defined in %.*s", (int) check->place.size,
			     check->place.data);
	return NULL;
}

static void walk_child(struct check *check, const struct vdi_node *child, struct context context,
		       const char *name, const struct vd_bytes *key, const struct vdi_node *twin)
{
	size_t size = key ? enter_key(&check->place, name, *key) : enter(&check->place, name);
	size_t twin_size = key ? enter_key(&check->twin_place, name, *key) : enter(&check->twin_place, name);

	if (context.nested && context.twin)
		context.twin = twin_of(check, twin);
	check_node(check, child, context);
	check->place.size = size;
	check->twin_place.size = twin_size;
}

static void walk_properties(struct check *check, const struct vdi_node *source, const struct context *context)
{
	const struct vdi_node *properties = member(check, source, "properties"),
			      *twins = member(check, context->twin, "properties");
	bool is_root = context->level == LEVEL_ROOT && !context->nested;
	bool resource = is_root || is_true(check, source, "x-kubernetes-embedded-resource");

	for (const struct vdi_node *property = properties ? properties->first : NULL; property;
	     property = property->next) {
		struct context below = *context;

		below.level = LEVEL_FIELD;
		below.skip_any_of = false;
		if (resource && vdi_schema_is_meta(property->key)) {
			below.in_meta = true;
			if (is_root)
				below.no_default = is(property->key, "metadata") ? "in top-level metadata" :
						   is(property->key, "kind")	 ? "in top-level kind" :
										   "in top-level apiVersion";
		}
		walk_child(check, property, below, "properties", &property->key,
			   vdi_tree_get(check->tree, twins, property->key));
	}
}

static void walk_junctors(struct check *check, const struct vdi_node *source, const struct context *context)
{
	static const char *const names[] = { "allOf", "anyOf", "oneOf" };
	const struct vdi_node *not = member(check, source, "not"), *all_of = member(check, source, "allOf");
	struct context below = *context;

	below.nested = true;
	if (!context->nested &&
	    context->level ==
		    LEVEL_ROOT) { /* upstream looks for the counterparts of the root's junctors only */
		below.twin = source;
		check->twin_place.size = 0;
		vdi_out_bytes(&check->twin_place, vdi_out_slice(&check->place));
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++) {
		const struct vdi_node *list = member(check, source, names[i]);
		size_t		       index = 0;

		if (i == 1 && list &&
		    (context->skip_any_of || (!context->nested && is_int_or_string_pair(check, list))))
			continue;
		for (const struct vdi_node *one = list ? list->first : NULL; one; one = one->next, index++) {
			size_t size = enter_index(&check->place, names[i], index);

			below.skip_any_of = list == all_of && index == 0 && !context->nested &&
					    is_int_or_string_pair(check, member(check, one, "anyOf"));
			check_node(check, one, below);
			check->place.size = size;
		}
	}
	if (not ) {
		size_t size = enter(&check->place, "not");

		below.skip_any_of = false;
		check_node(check, not, below);
		check->place.size = size;
	}
}

static void check_node(struct check *check, const struct vdi_node *source, struct context context)
{
	const struct vdi_node *items, *additional;
	struct context	       below = context;

	if (check->nodes++ >= VDI_SCHEMA_NODES_MAX) {
		check->too_many = true;
		return;
	}
	if (!check_shapes(check, source))
		return;
	check_unsupported(check, source, &context);
	check_extensions(check, source);
	check_pattern(check, source);
	if (vdi_tree_is(member(check, source, "enum"), VDI_NODE_ARRAY) &&
	    member(check, source, "enum")->count > VDI_SCHEMA_ENUM_MAX)
		forbid(check, "enum", "must not have more than 10000 values");
	if (context.nested)
		check_nested(check, source);
	else
		check_structural(check, source, context.level);
	walk_junctors(check, source, &context);
	walk_properties(check, source, &context);
	items = member(check, source, "items");
	below.skip_any_of = false;
	if (vdi_tree_is(items, VDI_NODE_OBJECT)) {
		below.level = LEVEL_ITEM;
		walk_child(check, items, below, "items", NULL, member(check, context.twin, "items"));
	}
	additional = member(check, source, "additionalProperties");
	if (vdi_tree_is(additional, VDI_NODE_OBJECT)) {
		below.level = LEVEL_FIELD;
		below.twin = NULL; /* already refused in nested nodes */
		if (context.in_meta)
			below.no_default = "inside additionalProperties applying to object metadata";
		walk_child(check, additional, below, "additionalProperties", NULL, NULL);
	}
}

bool vdi_schema_is_meta(struct vd_bytes key)
{
	return is(key, "apiVersion") || is(key, "kind") || is(key, "metadata");
}

vd_status vdi_schema_check(struct vdi_tree *tree, const struct vdi_node *source, const char *place,
			   struct vdi_field_errors *field_errors)
{
	struct check   check = { .tree = tree,
				 .field_errors = field_errors,
				 .place = VDI_OUT_INIT,
				 .twin_place = VDI_OUT_INIT,
				 .patterns = VDI_SCHEMA_PATTERN_MAX };
	struct context context = { .level = LEVEL_ROOT };
	bool	       failed;

	vdi_out_raw(&check.place, place);
	if (vdi_tree_is(source, VDI_NODE_OBJECT))
		check_node(&check, source, context);
	else
		vdi_field_errors_add_node(field_errors, VDI_FIELD_ERROR_TYPE_INVALID,
					  vdi_out_slice(&check.place), source, "must be an object");
	if (check.too_many)
		vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_FORBIDDEN, vd_bytes_of(place),
				     VD_BYTES_NONE, "must not have more than %d subschemas",
				     VDI_SCHEMA_NODES_MAX);
	failed = check.place.failed || check.twin_place.failed || field_errors->failed;
	vdi_out_fini(&check.place);
	vdi_out_fini(&check.twin_place);
	vdi_field_errors_sort(field_errors);
	return failed ? VD_NOMEM : VD_OK;
}
