/* Validates objects against schemas, as k8s.io/kube-openapi pkg/validation/validate does for custom
 * resources: type, allOf and its likes, strings, numbers, lists, enums, objects, in this order; each check
 * runs even if an earlier one failed. Errors are appended to one list; a branch of anyOf or oneOf that does
 * not count truncates it. Like upstream, the errors of the branch with the most passed checks are shown, so
 * passed checks are counted too.
 *
 * Ratcheting (pkg/apiserver/validation/ratcheting.go): errors in a part that is unchanged from the old object
 * are ignored. The comparison runs only after an error, so valid writes do not pay for it.
 */
#include <stdio.h>

#include "schema_error.h"
#include "schema_scalar.h"

/* Result of validating one value against one node. */
struct decision {
	bool	 valid;
	uint32_t passed; /* upstream's MatchCount */
};

static struct decision validate(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
				const struct vdi_node *value, const struct vdi_node *old);

/* ---- Types ---- */

static void add_type_error(struct vdi_schema_validator *validator, const char *wanted, size_t wanted_size,
			   const char *found)
{
	vdi_field_errors_add_text(validator->field_errors, VDI_FIELD_ERROR_TYPE_INVALID,
				  vdi_schema_error_field(validator, "", VD_BYTES_NONE), vd_bytes_of(found),
				  "%.*s in body must be of type %.*s: \"%s\"", VDI_SCHEMA_PATH(validator),
				  (int) wanted_size, wanted, found);
}

static const char *type_name(const struct vdi_schema_node *node)
{
	return node->int_or_string ? "integer,string" : vdi_schema_type_name(node->type);
}

static bool takes(const struct vdi_schema_node *node, enum vdi_schema_type type)
{
	return node->int_or_string ? type == VDI_TYPE_INTEGER || type == VDI_TYPE_STRING : node->type == type;
}

static enum vdi_schema_type type_of(const struct vdi_node *value, const struct vdi_schema_number *number)
{
	switch ((enum vdi_node_kind) value->kind) {
	case VDI_NODE_FALSE:
	case VDI_NODE_TRUE: return VDI_TYPE_BOOLEAN;
	case VDI_NODE_NUMBER: return number->is_integer ? VDI_TYPE_INTEGER : VDI_TYPE_NUMBER;
	case VDI_NODE_STRING: return VDI_TYPE_STRING;
	case VDI_NODE_ARRAY: return VDI_TYPE_ARRAY;
	case VDI_NODE_OBJECT: return VDI_TYPE_OBJECT;
	case VDI_NODE_NULL: break;
	}
	return VDI_TYPE_NONE;
}

static bool has_type(const struct vdi_schema_node *node)
{
	return node->type != VDI_TYPE_NONE || node->int_or_string;
}

/* typeValidator, with its exception for formats: a list is accepted for a string that has a format. */
static bool check_type(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
		       const struct vdi_node *value, const struct vdi_schema_number *number)
{
	struct vd_bytes	     format = node->limits ? node->limits->format : VD_BYTES_NONE;
	enum vdi_schema_type type = type_of(value, number);
	bool		     text_like = type == VDI_TYPE_STRING || type == VDI_TYPE_ARRAY;
	bool		     numeric = takes(node, VDI_TYPE_INTEGER) || takes(node, VDI_TYPE_NUMBER);
	bool		     fits = takes(node, type) ||
		    (type == VDI_TYPE_NUMBER && takes(node, VDI_TYPE_INTEGER) &&
		     vdi_schema_is_whole(number->real)) ||
		    (type == VDI_TYPE_INTEGER && takes(node, VDI_TYPE_NUMBER));

	if (value->kind == VDI_NODE_NULL) {
		if (!has_type(node) || node->nullable)
			return true;
		add_type_error(validator, type_name(node), strlen(type_name(node)), "null");
		return false;
	}
	if (format.size && !text_like && !fits &&
	    !(type == VDI_TYPE_INTEGER && vd_bytes_equal(format, vd_bytes_of("int64")))) {
		add_type_error(validator, format.data, format.size,
			       type == VDI_TYPE_INTEGER ? "int64" :
			       type == VDI_TYPE_NUMBER	? "float64" :
							  "");
		return false;
	}
	if ((!numeric && format.size && text_like) || fits)
		return true;
	add_type_error(validator, type_name(node), strlen(type_name(node)), vdi_schema_type_name(type));
	return false;
}

/* ---- allOf, anyOf, oneOf, not: without ratcheting ---- */

/* Errors of the branches of anyOf and the like: only those of the best branch stay. */
struct best {
	size_t	 kept, count; /* numbers of errors before the branches */
	size_t	 best_kept, best_count;
	uint32_t passed;
	bool	 any;
};

static void begin_branches(struct vdi_schema_validator *validator, struct best *best)
{
	*best = (struct best) { .kept = validator->field_errors->kept,
				.count = validator->field_errors->count };
	best->best_kept = best->kept;
	best->best_count = best->count;
}

/* Handles a failed branch: keeps its errors instead of the best so far if it passed more checks, otherwise
 * drops them. */
static void weigh(struct vdi_schema_validator *validator, struct best *best, struct decision decision)
{
	struct vdi_field_errors *field_errors = validator->field_errors;
	size_t kept = field_errors->kept - best->best_kept, count = field_errors->count - best->best_count;

	if (best->any && decision.passed <= best->passed) {
		vdi_field_errors_truncate(field_errors, best->best_kept, best->best_count);
		return;
	}
	memmove(&field_errors->items[best->kept], &field_errors->items[best->best_kept],
		kept * sizeof *field_errors->items);
	vdi_field_errors_truncate(field_errors, best->kept + kept, best->count + count);
	best->best_kept = field_errors->kept;
	best->best_count = field_errors->count;
	best->passed = decision.passed;
	best->any = true;
}

static void forget(struct vdi_schema_validator *validator, const struct best *best)
{
	vdi_field_errors_truncate(validator->field_errors, best->kept, best->count);
}

static struct vd_bytes quoted_path(struct vdi_schema_validator *validator)
{
	vdi_schema_validator_reset(validator, &validator->field);
	vdi_field_errors_write_quoted(
		&validator->field,
		(struct vd_bytes) { validator->path.data,
				    VDI_MIN(validator->path.size, (size_t) VDI_SCHEMA_PATH_SIZE) });
	return vdi_out_slice(&validator->field);
}

#define QUOTED(text) (int) (text).size, (text).size ? (const char *) (text).data : ""

/* Moves the last error before those of the best branch, as upstream orders them. */
static void put_first(struct vdi_schema_validator *validator, const struct best *best)
{
	struct vdi_field_errors *field_errors = validator->field_errors;
	struct vdi_field_error	 last;

	if (field_errors->kept <= best->kept + 1)
		return;
	last = field_errors->items[field_errors->kept - 1];
	memmove(&field_errors->items[best->kept + 1], &field_errors->items[best->kept],
		(field_errors->kept - best->kept - 1) * sizeof last);
	field_errors->items[best->kept] = last;
}

static void check_any_of(struct vdi_schema_validator *validator, const struct vdi_schema_nodes *nodes,
			 const struct vdi_node *value, struct decision *total)
{
	struct best	best;
	struct vd_bytes path;

	begin_branches(validator, &best);
	for (size_t i = 0; i < nodes->count; i++) {
		struct decision decision = validate(validator, nodes->items[i], value, NULL);

		if (decision.valid) {
			forget(validator, &best);
			total->passed += decision.passed;
			return;
		}
		weigh(validator, &best, decision);
	}
	if (nodes->count == 0)
		return;
	path = quoted_path(validator);
	vdi_schema_error_add(validator, "%.*s must validate at least one schema (anyOf)", QUOTED(path));
	put_first(validator, &best);
	total->passed += best.passed;
	total->valid = false;
}

static void check_one_of(struct vdi_schema_validator *validator, const struct vdi_schema_nodes *nodes,
			 const struct vdi_node *value, struct decision *total)
{
	struct best	best;
	struct vd_bytes path;
	size_t		valid = 0;
	uint32_t	passed = 0;

	begin_branches(validator, &best);
	for (size_t i = 0; i < nodes->count; i++) {
		struct decision decision = validate(validator, nodes->items[i], value, NULL);

		if (decision.valid && valid++ == 0) {
			passed = decision.passed;
			forget(validator, &best);
		} else if (valid) {
			forget(validator, &best);
		} else {
			weigh(validator, &best, decision);
		}
	}
	if (valid == 1 || nodes->count == 0) {
		total->passed += passed;
		return;
	}
	path = quoted_path(validator);
	if (valid == 0)
		vdi_schema_error_add(validator,
				     "%.*s must validate one and only one schema (oneOf). Found none valid",
				     QUOTED(path));
	else
		vdi_schema_error_add(
			validator,
			"%.*s must validate one and only one schema (oneOf). Found %zu valid alternatives",
			QUOTED(path), valid);
	put_first(validator, &best);
	total->passed += valid ? 0 : best.passed;
	total->valid = false;
}

static void check_all_of(struct vdi_schema_validator *validator, const struct vdi_schema_nodes *nodes,
			 const struct vdi_node *value, struct decision *total)
{
	size_t		valid = 0;
	struct vd_bytes path;

	for (size_t i = 0; i < nodes->count; i++) {
		struct decision decision = validate(validator, nodes->items[i], value, NULL);

		valid += decision.valid;
		total->passed += decision.passed;
	}
	if (valid == nodes->count)
		return;
	path = quoted_path(validator);
	vdi_schema_error_add(validator, "%.*s must validate all the schemas (allOf)%s", QUOTED(path),
			     valid ? "" : ". None validated");
	total->valid = false;
}

static void check_not(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
		      const struct vdi_node *value, struct decision *total)
{
	struct best	best;
	struct decision decision;
	struct vd_bytes path;

	if (node == NULL)
		return;
	begin_branches(validator, &best);
	decision = validate(validator, node, value, NULL);
	forget(validator, &best);
	if (!decision.valid)
		return;
	path = quoted_path(validator);
	vdi_schema_error_add(validator, "%.*s must not validate the schema (not)", QUOTED(path));
	total->valid = false;
}

/* ---- Lists and objects ---- */

static void note(struct decision *total, bool fine)
{
	total->valid &= fine;
}

static void add_count_error(struct vdi_schema_validator *validator, enum vdi_field_error_kind kind,
			    uint32_t count, const char *words, int64_t limit, const char *things)
{
	char text[24];

	(void) snprintf(text, sizeof text, "%u", count);
	if (kind == VDI_FIELD_ERROR_TOO_MANY)
		vdi_field_errors_add(validator->field_errors, kind,
				     vdi_schema_error_field(validator, "", VD_BYTES_NONE), vd_bytes_of(text),
				     "must have at most %lld item%s", (long long) limit,
				     limit == 1 ? "" : "s");
	else
		vdi_field_errors_add(validator->field_errors, kind,
				     vdi_schema_error_field(validator, "", VD_BYTES_NONE), vd_bytes_of(text),
				     "%.*s in body %s %lld %s", VDI_SCHEMA_PATH(validator), words,
				     (long long) limit, things);
}

static void check_counts(struct vdi_schema_validator *validator, uint32_t count, int64_t min, int64_t max,
			 const char *things, struct decision *total)
{
	if (min >= 0 && count < min) {
		add_count_error(validator, VDI_FIELD_ERROR_INVALID, count, "should have at least", min,
				things);
		total->valid = false;
	}
	if (max >= 0 && count > max) {
		add_count_error(validator, VDI_FIELD_ERROR_TOO_MANY, count, "", max, things);
		total->valid = false;
	}
}

/* Returns the old item with the same keys, for a list of type map and items that are objects. *cursor: where
 * the search begins, behind the last match. */
static const struct vdi_node *counterpart(struct vdi_schema_validator  *validator,
					  const struct vdi_schema_node *node, const struct vdi_node *item,
					  const struct vdi_node *old, const struct vdi_node **cursor)
{
	const struct vdi_node *at = *cursor ? *cursor : old->first;

	if (!vdi_schema_has_keys(validator, node, item))
		return NULL;
	for (uint32_t i = 0; at && i < old->count; i++) {
		if (vdi_schema_out_of_work(validator, node->list_key_count + 1))
			return NULL;
		if (vdi_schema_same_keys(validator, node, item, at)) {
			*cursor = at->next;
			return at;
		}
		at = at->next ? at->next : old->first;
	}
	return NULL;
}

static void check_list(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
		       const struct vdi_node *value, const struct vdi_node *old, struct decision *total)
{
	bool		       correlates = node->list == VDI_LIST_MAP && vdi_tree_is(old, VDI_NODE_ARRAY);
	const struct vdi_node *cursor = NULL;
	size_t		       index = 0;

	for (const struct vdi_node *item = node->items ? value->first : NULL;
	     item && validator->status == VD_OK; item = item->next, index++) {
		size_t		       size = validator->path.size;
		const struct vdi_node *old_item =
			correlates ? counterpart(validator, node, item, old, &cursor) : NULL;
		struct decision decision;

		vdi_out_index(&validator->path, index);
		decision = validate(validator, node->items, item, old_item);
		note(total, decision.valid);
		total->passed += decision.passed;
		validator->path.size = size;
	}
	if (node->limits)
		check_counts(validator, value->count, node->limits->min_items, node->limits->max_items,
			     "items", total);
}

static void check_member(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			 const struct vdi_node *member, const struct vdi_node *old, struct decision *total)
{
	const struct vdi_schema_node *property = vdi_schema_property_of(node, member->key),
				     *of_member = property ? property : node->additional;
	size_t		size = validator->path.size;
	struct decision decision;

	if (vdi_schema_out_of_work(validator, member->key.size / 64))
		return;
	if (property == NULL && node->more == VDI_MORE_FORBIDDEN) {
		vdi_field_errors_add_text(validator->field_errors, VDI_FIELD_ERROR_INVALID,
					  vdi_schema_error_field(validator, "", VD_BYTES_NONE), member->key,
					  "%.*s.%.*s in body is a forbidden property",
					  VDI_SCHEMA_PATH(validator),
					  (int) VDI_MIN(member->key.size, (size_t) 256),
					  member->key.size ? (const char *) member->key.data : "");
		total->valid = false;
		return;
	}
	if (of_member == NULL)
		return;
	if (size || property == NULL)
		vdi_out_raw(&validator->path, ".");
	vdi_out_bytes(&validator->path, member->key);
	decision = validate(
		validator, of_member, member,
		vdi_tree_is(old, VDI_NODE_OBJECT) ? vdi_tree_get(validator->tree, old, member->key) : NULL);
	note(total, decision.valid);
	total->passed += decision.passed;
	validator->path.size = size;
}

static void check_object(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			 const struct vdi_node *value, const struct vdi_node *old, struct decision *total)
{
	const struct vdi_schema_limits *limits = node->limits;

	if (limits)
		check_counts(validator, value->count, limits->min_properties, limits->max_properties,
			     "properties", total);
	if (node->property_count || node->more != VDI_MORE_NONE)
		for (const struct vdi_node *member = value->first; member && validator->status == VD_OK;
		     member = member->next)
			check_member(validator, node, member, old, total);
	for (size_t i = 0; limits && i < limits->required_count; i++) {
		struct vd_bytes key = limits->required[i];

		if (vdi_schema_out_of_work(validator, 1 + key.size / 64) ||
		    vdi_tree_get(validator->tree, value, key))
			continue;
		vdi_field_errors_add(validator->field_errors, VDI_FIELD_ERROR_REQUIRED,
				     vdi_schema_error_field(validator, ".", key), VD_BYTES_NONE, "%s", "");
		total->valid = false;
	}
}

/* ---- One node ---- */

static void check_value(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			const struct vdi_node *value, const struct vdi_node *old,
			const struct vdi_schema_number *number, struct decision *total)
{
	const struct vdi_schema_limits *limits = node->limits;

	if (limits) {
		check_any_of(validator, &limits->any_of, value, total);
		check_one_of(validator, &limits->one_of, value, total);
		check_all_of(validator, &limits->all_of, value, total);
		check_not(validator, limits->not, value, total);
	}
	total->passed += 2;
	if (value->kind == VDI_NODE_STRING && limits) {
		note(total, vdi_schema_check_string(validator, limits, value));
		if (limits->format.size)
			note(total, vdi_schema_check_format(validator, limits, value));
	}
	if (value->kind == VDI_NODE_NUMBER)
		note(total, vdi_schema_check_number(validator, node, number));
	if (value->kind == VDI_NODE_ARRAY)
		check_list(validator, node, value, old, total);
	if (limits && limits->enumeration)
		note(total, vdi_schema_check_enum(validator, limits, value));
	if (value->kind == VDI_NODE_OBJECT)
		check_object(validator, node, value, old, total);
	total->passed += 3;
}

/* As upstream's CachedDeepEqual: an object with members that the schema does not have counts as changed. */
static bool is_unchanged(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			 const struct vdi_node *value, const struct vdi_node *old)
{
	if (value->kind == VDI_NODE_ARRAY && node->list == VDI_LIST_MAP)
		for (const struct vdi_node *item = value->first; item; item = item->next)
			if (!vdi_schema_has_keys(validator, node, item))
				return false;
	if (value->kind != VDI_NODE_OBJECT)
		return vdi_schema_same(validator, old, value);
	if (old->kind != VDI_NODE_OBJECT || old->count != value->count)
		return false;
	for (const struct vdi_node *member = value->first; member; member = member->next) {
		const struct vdi_schema_node *of_member = vdi_schema_member_of(node, member->key);
		const struct vdi_node	     *old_member = vdi_tree_get(validator->tree, old, member->key);

		if (of_member == NULL || old_member == NULL || vdi_schema_out_of_work(validator, 1) ||
		    !is_unchanged(validator, of_member, member, old_member))
			return false;
	}
	return true;
}

static struct decision validate(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
				const struct vdi_node *value, const struct vdi_node *old)
{
	struct decision		 total = { true, 0 };
	struct vdi_schema_number number = { 0 };
	size_t			 kept = validator->field_errors->kept, count = validator->field_errors->count;

	if (vdi_schema_out_of_work(validator, 2 + value->count / 8 + value->text.size / 64))
		return total;
	if (value->kind == VDI_NODE_NUMBER)
		number = vdi_schema_number_of(value->text);
	if (has_type(node) || (node->limits && node->limits->format.size)) {
		note(&total, check_type(validator, node, value, &number));
		total.passed += 1 + total.valid;
	}
	if (value->kind != VDI_NODE_NULL)
		check_value(validator, node, value, old, &number, &total);
	else if (node->limits && node->limits->enumeration)
		note(&total, vdi_schema_check_enum(validator, node->limits, value));
	if (!total.valid && old && validator->status == VD_OK && is_unchanged(validator, node, value, old)) {
		vdi_field_errors_truncate(validator->field_errors, kept, count);
		total.valid = true;
	}
	return total;
}

static vd_status outcome(struct vdi_schema_validator *validator, size_t count)
{
	vd_status status = validator->status;

	if (validator->path.failed || validator->field.failed || validator->text.failed ||
	    validator->field_errors->failed)
		status = VD_NOMEM;
	if (status == VD_TOO_BIG)
		vdi_field_errors_add(
			validator->field_errors, VDI_FIELD_ERROR_FORBIDDEN,
			validator->prefix.size ? validator->prefix : vd_bytes_of("<nil>"), VD_BYTES_NONE,
			"the object is too costly to validate: more than %d steps", VDI_SCHEMA_WORK_MAX);
	vdi_out_fini(&validator->path);
	vdi_out_fini(&validator->field);
	vdi_out_fini(&validator->text);
	if (status == VD_NOMEM)
		return VD_NOMEM;
	return validator->field_errors->count > count ? VD_INVALID : VD_OK;
}

vd_status vdi_schema_validate_node(const struct vdi_schema_node *node, struct vdi_tree *tree,
				   const struct vdi_node *value, const struct vdi_node *old,
				   struct vd_bytes at, bool is_default, uint64_t *work,
				   struct vdi_field_errors *field_errors)
{
	struct vdi_schema_validator validator = {
		.tree = tree, .field_errors = field_errors, .prefix = at, .work = *work
	};
	size_t count = field_errors->count;

	(void) validate(&validator, node, value, old);
	if (!is_default)
		vdi_schema_check_lists(&validator, node, value, old);
	vdi_schema_check_resources(&validator, node, value);
	*work = validator.work;
	return outcome(&validator, count);
}

vd_status vdi_schema_validate(const struct vdi_schema *schema, struct vdi_tree *tree,
			      const struct vdi_node *root, const struct vdi_node *old,
			      enum vdi_schema_part part, struct vdi_field_errors *field_errors)
{
	const struct vdi_schema_node *node = schema->root;
	struct vd_bytes		      at = VD_BYTES_NONE, status = vd_bytes_of("status");
	uint64_t		      work = VDI_SCHEMA_WORK_MAX;

	if (part == VDI_SCHEMA_STATUS) {
		node = vdi_schema_property_of(node, status);
		root = vdi_tree_get(tree, root, status);
		old = old ? vdi_tree_get(tree, old, status) : NULL;
		at = status;
		if (node == NULL || root == NULL)
			return VD_OK;
	}
	return vdi_schema_validate_node(node, tree, root, old, at, false, &work, field_errors);
}
