/* Objects against schemas, as k8s.io/kube-openapi pkg/validation/validate does it for custom resources: type,
 * allOf and its likes, strings, numbers, lists, enums, objects, in this order, each going on after the
 * others' faults. Faults are appended to one list; a branch of anyOf or oneOf that turns out not to count
 * cuts it back. Which branch's faults are shown is upstream's choice: the one with the most checks passed, so
 * those are counted too.
 *
 * Ratcheting (pkg/apiserver/validation/ratcheting.go): a part that is the same in the object before is not
 * held against the update. It is looked at only where something is wrong, so that the usual write pays
 * nothing for it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema_value.h"

/* What one node made of one value. */
struct verdict {
	bool	 valid;
	uint32_t passed; /* upstream's MatchCount */
};

static struct verdict validate(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
			       const struct vdi_node *value, const struct vdi_node *old);

static bool out_of_work(struct vdi_schema_judge *judge, uint64_t cost)
{
	if (judge->work < cost || judge->status != VD_OK) {
		if (judge->status == VD_OK)
			judge->status = VD_TOO_BIG;
		return true;
	}
	judge->work -= cost;
	return false;
}

/* ---- Faults ---- */

/* The field of a fault: where validation began, and the path from there. Lent until the next call. */
static struct vd_bytes field(struct vdi_schema_judge *judge, const char *more, struct vd_bytes more_text)
{
	struct vd_bytes path = vdi_out_slice(&judge->path);

	vdi_schema_judge_reset(judge, &judge->field);
	path.size = VDI_MIN(path.size, (size_t) VDI_SCHEMA_PATH_SIZE);
	vdi_out_bytes(&judge->field, judge->prefix);
	if (path.size && *(const char *) path.data == '.')
		path = (struct vd_bytes) { (const char *) path.data + 1, path.size - 1 };
	if (judge->field.size && path.size)
		vdi_out_raw(&judge->field,
			    "."); /* before an index too: upstream puts the whole path there as one child */
	vdi_out_bytes(&judge->field, path);
	if (judge->field.size && *more)
		vdi_out_raw(&judge->field, more);
	vdi_out_bytes(&judge->field, more_text);
	if (judge->field.size == 0)
		vdi_out_raw(&judge->field, "<nil>"); /* what upstream's field.Path says of itself */
	return vdi_out_slice(&judge->field);
}

#define PATH(judge)                                                                                          \
	(int) VDI_MIN((judge)->path.size, (size_t) VDI_SCHEMA_PATH_SIZE),                                    \
		(judge)->path.size ? (judge)->path.data : ""

/* A fault of no field: upstream makes such of all that is no openapierrors.Validation. */
static void fault_nowhere(struct vdi_schema_judge *judge, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void fault_nowhere(struct vdi_schema_judge *judge, const char *format, ...)
{
	va_list		arguments;
	struct vd_bytes at = judge->prefix;

	vdi_schema_judge_reset(judge, &judge->text);
	va_start(arguments, format);
	vdi_out_vprintf(&judge->text, format, arguments);
	va_end(arguments);
	if (at.size == 0)
		at = vd_bytes_of("<nil>");
	vdi_faults_add_text(judge->faults, VDI_FAULT_INVALID, at, VD_BYTES_NONE, "%.*s",
			    (int) judge->text.size, judge->text.size ? judge->text.data : "");
}

static void fault_type(struct vdi_schema_judge *judge, const char *wanted, size_t wanted_size,
		       const char *found)
{
	vdi_faults_add_text(judge->faults, VDI_FAULT_TYPE_INVALID, field(judge, "", VD_BYTES_NONE),
			    vd_bytes_of(found), "%.*s in body must be of type %.*s: \"%s\"", PATH(judge),
			    (int) wanted_size, wanted, found);
}

/* ---- Types ---- */

static const char *const type_names[] = { "", "array", "boolean", "integer", "number", "object", "string" };

static const char *type_name(const struct vdi_schema_node *node)
{
	return node->int_or_string ? "integer,string" : type_names[node->type];
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

/* typeValidator, with its ways around formats: a list passes for a string that has one. */
static bool check_type(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
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
		fault_type(judge, type_name(node), strlen(type_name(node)), "null");
		return false;
	}
	if (format.size && !text_like && !fits &&
	    !(type == VDI_TYPE_INTEGER && vd_bytes_equal(format, vd_bytes_of("int64")))) {
		fault_type(judge, format.data, format.size,
			   type == VDI_TYPE_INTEGER ? "int64" :
			   type == VDI_TYPE_NUMBER  ? "float64" :
						      "");
		return false;
	}
	if ((!numeric && format.size && text_like) || fits)
		return true;
	fault_type(judge, type_name(node), strlen(type_name(node)), type_names[type]);
	return false;
}

/* ---- allOf, anyOf, oneOf, not: of the value alone, whatever it was before ---- */

/* What the branches of a junctor left behind: only the faults of the best one may stay. */
struct best {
	size_t	 kept, count; /* of the faults before the branches */
	size_t	 best_kept, best_count;
	uint32_t passed;
	bool	 any;
};

static void begin_branches(struct vdi_schema_judge *judge, struct best *best)
{
	*best = (struct best) { .kept = judge->faults->kept, .count = judge->faults->count };
	best->best_kept = best->kept;
	best->best_count = best->count;
}

/* The branch failed: its faults replace those of the best so far, or go. */
static void weigh(struct vdi_schema_judge *judge, struct best *best, struct verdict verdict)
{
	struct vdi_faults *faults = judge->faults;
	size_t		   kept = faults->kept - best->best_kept, count = faults->count - best->best_count;

	if (best->any && verdict.passed <= best->passed) {
		vdi_faults_truncate(faults, best->best_kept, best->best_count);
		return;
	}
	memmove(&faults->items[best->kept], &faults->items[best->best_kept], kept * sizeof *faults->items);
	vdi_faults_truncate(faults, best->kept + kept, best->count + count);
	best->best_kept = faults->kept;
	best->best_count = faults->count;
	best->passed = verdict.passed;
	best->any = true;
}

static void forget(struct vdi_schema_judge *judge, const struct best *best)
{
	vdi_faults_truncate(judge->faults, best->kept, best->count);
}

static struct vd_bytes quoted_path(struct vdi_schema_judge *judge)
{
	vdi_schema_judge_reset(judge, &judge->field);
	vdi_faults_write_quoted(&judge->field, (struct vd_bytes) { judge->path.data,
								   VDI_MIN(judge->path.size,
									   (size_t) VDI_SCHEMA_PATH_SIZE) });
	return vdi_out_slice(&judge->field);
}

#define QUOTED(text) (int) (text).size, (text).size ? (const char *) (text).data : ""

/* The sentence goes before the faults of the best branch, as upstream has it. */
static void put_first(struct vdi_schema_judge *judge, const struct best *best)
{
	struct vdi_faults *faults = judge->faults;
	struct vdi_fault   last;

	if (faults->kept <= best->kept + 1)
		return;
	last = faults->items[faults->kept - 1];
	memmove(&faults->items[best->kept + 1], &faults->items[best->kept],
		(faults->kept - best->kept - 1) * sizeof last);
	faults->items[best->kept] = last;
}

static void check_any_of(struct vdi_schema_judge *judge, const struct vdi_schema_nodes *nodes,
			 const struct vdi_node *value, struct verdict *total)
{
	struct best	best;
	struct vd_bytes path;

	begin_branches(judge, &best);
	for (size_t i = 0; i < nodes->count; i++) {
		struct verdict verdict = validate(judge, nodes->items[i], value, NULL);

		if (verdict.valid) {
			forget(judge, &best);
			total->passed += verdict.passed;
			return;
		}
		weigh(judge, &best, verdict);
	}
	if (nodes->count == 0)
		return;
	path = quoted_path(judge);
	fault_nowhere(judge, "%.*s must validate at least one schema (anyOf)", QUOTED(path));
	put_first(judge, &best);
	total->passed += best.passed;
	total->valid = false;
}

static void check_one_of(struct vdi_schema_judge *judge, const struct vdi_schema_nodes *nodes,
			 const struct vdi_node *value, struct verdict *total)
{
	struct best	best;
	struct vd_bytes path;
	size_t		valid = 0;
	uint32_t	passed = 0;

	begin_branches(judge, &best);
	for (size_t i = 0; i < nodes->count; i++) {
		struct verdict verdict = validate(judge, nodes->items[i], value, NULL);

		if (verdict.valid && valid++ == 0) {
			passed = verdict.passed;
			forget(judge, &best);
		} else if (valid) {
			forget(judge, &best);
		} else {
			weigh(judge, &best, verdict);
		}
	}
	if (valid == 1 || nodes->count == 0) {
		total->passed += passed;
		return;
	}
	path = quoted_path(judge);
	if (valid == 0)
		fault_nowhere(judge, "%.*s must validate one and only one schema (oneOf). Found none valid",
			      QUOTED(path));
	else
		fault_nowhere(
			judge,
			"%.*s must validate one and only one schema (oneOf). Found %zu valid alternatives",
			QUOTED(path), valid);
	put_first(judge, &best);
	total->passed += valid ? 0 : best.passed;
	total->valid = false;
}

static void check_all_of(struct vdi_schema_judge *judge, const struct vdi_schema_nodes *nodes,
			 const struct vdi_node *value, struct verdict *total)
{
	size_t		valid = 0;
	struct vd_bytes path;

	for (size_t i = 0; i < nodes->count; i++) {
		struct verdict verdict = validate(judge, nodes->items[i], value, NULL);

		valid += verdict.valid;
		total->passed += verdict.passed;
	}
	if (valid == nodes->count)
		return;
	path = quoted_path(judge);
	fault_nowhere(judge, "%.*s must validate all the schemas (allOf)%s", QUOTED(path),
		      valid ? "" : ". None validated");
	total->valid = false;
}

static void check_not(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
		      const struct vdi_node *value, struct verdict *total)
{
	struct best	best;
	struct verdict	verdict;
	struct vd_bytes path;

	if (node == NULL)
		return;
	begin_branches(judge, &best);
	verdict = validate(judge, node, value, NULL);
	forget(judge, &best);
	if (!verdict.valid)
		return;
	path = quoted_path(judge);
	fault_nowhere(judge, "%.*s must not validate the schema (not)", QUOTED(path));
	total->valid = false;
}

/* ---- Scalars ---- */

static void note(struct verdict *total, bool fine)
{
	total->valid &= fine;
}

static size_t count_runes(struct vd_bytes text)
{
	size_t count = 0;

	for (size_t i = 0; i < text.size; i++)
		count += (((const char *) text.data)[i] & 0xC0) != 0x80;
	return count;
}

static bool matches(struct vdi_schema_judge *judge, const struct vdi_schema_limits *limits,
		    struct vd_bytes text)
{
	bool	  found = true;
	vd_status status;

	if (limits->pattern == NULL || judge->status != VD_OK)
		return true;
	status = vdi_pattern_match(limits->pattern, text, &judge->work, &found);
	if (status != VD_OK)
		judge->status = status;
	return found;
}

static bool check_string(struct vdi_schema_judge *judge, const struct vdi_schema_limits *limits,
			 const struct vdi_node *value)
{
	bool   counts = limits->max_length >= 0 || limits->min_length >= 0;
	size_t runes = counts ? count_runes(value->text) : 0;

	if (limits->max_length >= 0 && runes > (uint64_t) limits->max_length) {
		vdi_faults_add(judge->faults, VDI_FAULT_TOO_LONG, field(judge, "", VD_BYTES_NONE),
			       VD_BYTES_NONE, "may not be more than %lld byte%s",
			       (long long) limits->max_length, limits->max_length == 1 ? "" : "s");
		return false;
	}
	if (limits->min_length >= 0 && runes < (uint64_t) limits->min_length) {
		vdi_faults_add_node(judge->faults, VDI_FAULT_INVALID, field(judge, "", VD_BYTES_NONE), value,
				    "%.*s in body should be at least %lld chars long", PATH(judge),
				    (long long) limits->min_length);
		return false;
	}
	if (!matches(judge, limits, value->text)) {
		vdi_faults_add_node(judge->faults, VDI_FAULT_INVALID, field(judge, "", VD_BYTES_NONE), value,
				    "%.*s in body should match '%.*s'", PATH(judge),
				    (int) limits->pattern_text.size,
				    (const char *) limits->pattern_text.data);
		return false;
	}
	return true;
}

static bool check_format(struct vdi_schema_judge *judge, const struct vdi_schema_limits *limits,
			 const struct vdi_node *value)
{
	if (out_of_work(judge, value->text.size / 16) || vdi_schema_format_holds(limits->format, value->text))
		return true;
	vdi_faults_add_node(judge->faults, VDI_FAULT_TYPE_INVALID, field(judge, "", VD_BYTES_NONE), value,
			    "%.*s in body must be of type %.*s: \"%.*s\"", PATH(judge),
			    (int) limits->format.size, (const char *) limits->format.data,
			    (int) VDI_MIN(value->text.size, (size_t) 256),
			    value->text.size ? (const char *) value->text.data : "");
	return false;
}

/* IsValueValidAgainstRange: of the value, and of what it is held against. */
static bool is_in_range(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
			const struct vdi_schema_number *number, const char *what)
{
	struct vd_bytes format = node->limits->format;
	bool		integer = node->type == VDI_TYPE_INTEGER && !node->int_or_string, fits = true;

	if (integer)
		fits = number->is_integer ||
		       (number->real == trunc(number->real) && fabs(number->real) < 9223372036854775808.0);
	if (integer && fits && vd_bytes_equal(format, vd_bytes_of("int32")))
		fits = number->real >= INT32_MIN && number->real <= INT32_MAX;
	if (!integer && node->type == VDI_TYPE_NUMBER && vd_bytes_equal(format, vd_bytes_of("float")))
		fits = fabs(number->real) <= 3.40282346638528859811704183484516925440e+38;
	if (fits)
		return true;
	if (format.size)
		fault_nowhere(judge, "%s value must be of type %s with format %.*s in %.*s", what,
			      type_names[node->type], (int) format.size, (const char *) format.data,
			      PATH(judge));
	else
		fault_nowhere(judge, "%s value must be of type %s (default format) in %.*s", what,
			      type_names[node->type], PATH(judge));
	return false;
}

/* What is held against a limit of another kind is shown as that kind. */
static void fault_limit(struct vdi_schema_judge *judge, const struct vdi_schema_number *number,
			const char *words, const struct vdi_schema_number *limit)
{
	struct vdi_schema_number shown = { number->real, number->integer,
					   number->is_integer && limit->is_integer };
	struct vdi_node		 value = { .kind = VDI_NODE_NUMBER };
	char			 text[VDI_SCHEMA_NUMBER_SIZE], value_text[VDI_SCHEMA_NUMBER_SIZE];

	vdi_schema_number_write(limit, text);
	vdi_schema_judge_reset(judge, &judge->text);
	vdi_out_printf(&judge->text, "%.*s in body should be %s %s", PATH(judge), words, text);
	vdi_schema_number_write(&shown, value_text);
	value.text = vd_bytes_of(value_text);
	vdi_faults_add_node(judge->faults, VDI_FAULT_INVALID, field(judge, "", VD_BYTES_NONE), &value, "%.*s",
			    (int) judge->text.size, judge->text.size ? judge->text.data : "");
}

/* The limit in the value's own kind of number, unless it does not fit in there. */
static struct vdi_schema_number limit_for(const struct vdi_schema_number *value, double limit, bool in_range)
{
	struct vdi_schema_number number = { limit, 0, false };

	if (value->is_integer && in_range && fabs(limit) < 9223372036854775808.0) {
		number.integer = (int64_t) limit;
		number.is_integer = true;
	}
	return number;
}

static bool check_multiple(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
			   const struct vdi_schema_number *number)
{
	struct vdi_schema_number factor = { node->limits->multiple_of, 0, false };
	bool			 in_range = is_in_range(judge, node, &factor, "MultipleOf"), fine;
	char			 text[VDI_SCHEMA_NUMBER_SIZE];

	factor = limit_for(number, node->limits->multiple_of, in_range);
	vdi_schema_number_write(&factor, text);
	if (factor.is_integer ? factor.integer <= 0 : factor.real <= 0) {
		vdi_faults_add(judge->faults, VDI_FAULT_INVALID, field(judge, "", VD_BYTES_NONE),
			       vd_bytes_of(text), "factor MultipleOf declared for %.*s must be positive: %s",
			       PATH(judge), text);
		return false;
	}
	if (factor.is_integer)
		fine = number->integer % factor.integer == 0;
	else
		fine = vdi_schema_is_whole(factor.real < 1 ? 1 / factor.real * number->real :
							     number->real / factor.real);
	if (!fine)
		fault_limit(judge, number, "a multiple of", &factor);
	return in_range && fine;
}

static bool check_bound(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
			const struct vdi_schema_number *number, bool is_maximum)
{
	static const char *const words[] = { "greater than or equal to", "greater than",
					     "less than or equal to", "less than" };
	double			 bound = is_maximum ? node->limits->maximum : node->limits->minimum;
	bool exclusive = is_maximum ? node->limits->exclusive_maximum : node->limits->exclusive_minimum, fine;
	struct vdi_schema_number limit = { bound, 0, false };
	bool			 in_range =
		is_in_range(judge, node, &limit, is_maximum ? "Maximum boundary" : "Minimum boundary");
	int order;

	limit = limit_for(number, bound, in_range);
	order = limit.is_integer ? (number->integer > limit.integer) - (number->integer < limit.integer) :
				   (number->real > limit.real) - (number->real < limit.real);
	if (!is_maximum)
		order = -order;
	fine = exclusive ? order < 0 : order <= 0;
	if (!fine)
		fault_limit(judge, number, words[is_maximum * 2 + exclusive], &limit);
	return in_range && fine;
}

static void check_number(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
			 const struct vdi_schema_number *number, struct verdict *total)
{
	static const struct vdi_schema_limits none = { .min_length = -1 };
	struct vdi_schema_node		      plain = *node;

	if (node->limits == NULL)
		plain.limits = &none;
	note(total, is_in_range(judge, &plain, number, "Checked"));
	if (plain.limits->has_multiple_of)
		note(total, check_multiple(judge, node, number));
	if (plain.limits->has_minimum)
		note(total, check_bound(judge, node, number, false));
	if (plain.limits->has_maximum)
		note(total, check_bound(judge, node, number, true));
}

/* A bad value: a number that is no integer is shown as Go shows it. */
static void add_value(struct vdi_schema_judge *judge, enum vdi_fault_kind kind, const struct vdi_node *value,
		      const char *detail, size_t size)
{
	char			 text[VDI_SCHEMA_NUMBER_SIZE];
	struct vdi_node		 shown = *value;
	struct vdi_schema_number number;

	if (value->kind == VDI_NODE_NUMBER) {
		number = vdi_schema_number_of(value->text);
		vdi_schema_number_write(&number, text);
		shown.text = vd_bytes_of(text);
	}
	vdi_faults_add_node(judge->faults, kind, field(judge, "", VD_BYTES_NONE), &shown, "%.*s", (int) size,
			    detail);
}

/* A null is in no enum; that is upstream's way. */
static bool check_enum(struct vdi_schema_judge *judge, const struct vdi_schema_limits *limits,
		       const struct vdi_node *value)
{
	for (const struct vdi_node *one = limits->enumeration->first; one && value->kind != VDI_NODE_NULL;
	     one = one->next)
		if (out_of_work(judge, 1) || vdi_schema_same(judge, one, value))
			return true;
	vdi_schema_judge_reset(judge, &judge->text);
	for (const struct vdi_node *one = limits->enumeration->first;
	     one && judge->text.size < VDI_FAULT_VALUE_SIZE; one = one->next) {
		vdi_out_raw(&judge->text, judge->text.size ? ", " : "supported values: ");
		if (one->kind == VDI_NODE_STRING) {
			vdi_faults_write_quoted(&judge->text, one->text);
		} else {
			struct vdi_out json = VDI_OUT_INIT;

			vdi_tree_write(&json, one);
			judge->text.failed |= json.failed;
			vdi_faults_write_quoted(&judge->text, vdi_out_slice(&json));
			vdi_out_fini(&json);
		}
	}
	add_value(judge, VDI_FAULT_NOT_SUPPORTED, value, judge->text.size ? judge->text.data : "",
		  judge->text.size);
	return false;
}

/* ---- Lists and objects ---- */

static void fault_count(struct vdi_schema_judge *judge, enum vdi_fault_kind kind, uint32_t count,
			const char *words, int64_t limit, const char *things)
{
	char text[24];

	(void) snprintf(text, sizeof text, "%u", count);
	if (kind == VDI_FAULT_TOO_MANY)
		vdi_faults_add(judge->faults, kind, field(judge, "", VD_BYTES_NONE), vd_bytes_of(text),
			       "must have at most %lld item%s", (long long) limit, limit == 1 ? "" : "s");
	else
		vdi_faults_add(judge->faults, kind, field(judge, "", VD_BYTES_NONE), vd_bytes_of(text),
			       "%.*s in body %s %lld %s", PATH(judge), words, (long long) limit, things);
}

static void check_counts(struct vdi_schema_judge *judge, uint32_t count, int64_t min, int64_t max,
			 const char *things, struct verdict *total)
{
	if (min >= 0 && count < min) {
		fault_count(judge, VDI_FAULT_INVALID, count, "should have at least", min, things);
		total->valid = false;
	}
	if (max >= 0 && count > max) {
		fault_count(judge, VDI_FAULT_TOO_MANY, count, "", max, things);
		total->valid = false;
	}
}

/* Only an object of a list of type map has a counterpart: the one with its keys. *cursor: where the last one
 * was found. */
static const struct vdi_node *counterpart(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
					  const struct vdi_node *item, const struct vdi_node *old,
					  const struct vdi_node **cursor)
{
	const struct vdi_node *at = *cursor ? *cursor : old->first;

	if (!vdi_schema_has_keys(judge, node, item))
		return NULL;
	for (uint32_t i = 0; at && i < old->count; i++) {
		if (out_of_work(judge, node->list_key_count + 1))
			return NULL;
		if (vdi_schema_same_keys(judge, node, item, at)) {
			*cursor = at->next;
			return at;
		}
		at = at->next ? at->next : old->first;
	}
	return NULL;
}

static void check_list(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
		       const struct vdi_node *value, const struct vdi_node *old, struct verdict *total)
{
	bool		       correlates = node->list == VDI_LIST_MAP && vdi_tree_is(old, VDI_NODE_ARRAY);
	const struct vdi_node *cursor = NULL;
	size_t		       index = 0;

	for (const struct vdi_node *item = node->items ? value->first : NULL; item && judge->status == VD_OK;
	     item = item->next, index++) {
		size_t		       size = judge->path.size;
		const struct vdi_node *old_item =
			correlates ? counterpart(judge, node, item, old, &cursor) : NULL;
		struct verdict verdict;

		vdi_out_index(&judge->path, index);
		verdict = validate(judge, node->items, item, old_item);
		note(total, verdict.valid);
		total->passed += verdict.passed;
		judge->path.size = size;
	}
	if (node->limits)
		check_counts(judge, value->count, node->limits->min_items, node->limits->max_items, "items",
			     total);
}

static void check_member(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
			 const struct vdi_node *member, const struct vdi_node *old, struct verdict *total)
{
	const struct vdi_schema_node *property = vdi_schema_property_of(node, member->key),
				     *of_member = property ? property : node->additional;
	size_t	       size = judge->path.size;
	struct verdict verdict;

	if (out_of_work(judge, member->key.size / 64))
		return;
	if (property == NULL && node->more == VDI_MORE_FORBIDDEN) {
		vdi_faults_add_text(judge->faults, VDI_FAULT_INVALID, field(judge, "", VD_BYTES_NONE),
				    member->key, "%.*s.%.*s in body is a forbidden property", PATH(judge),
				    (int) VDI_MIN(member->key.size, (size_t) 256),
				    member->key.size ? (const char *) member->key.data : "");
		total->valid = false;
		return;
	}
	if (of_member == NULL)
		return;
	if (size || property == NULL)
		vdi_out_raw(&judge->path, ".");
	vdi_out_bytes(&judge->path, member->key);
	verdict = validate(judge, of_member, member,
			   vdi_tree_is(old, VDI_NODE_OBJECT) ? vdi_tree_get(judge->tree, old, member->key) :
							       NULL);
	note(total, verdict.valid);
	total->passed += verdict.passed;
	judge->path.size = size;
}

static void check_object(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
			 const struct vdi_node *value, const struct vdi_node *old, struct verdict *total)
{
	const struct vdi_schema_limits *limits = node->limits;

	if (limits)
		check_counts(judge, value->count, limits->min_properties, limits->max_properties,
			     "properties", total);
	if (node->property_count || node->more != VDI_MORE_NONE)
		for (const struct vdi_node *member = value->first; member && judge->status == VD_OK;
		     member = member->next)
			check_member(judge, node, member, old, total);
	for (size_t i = 0; limits && i < limits->required_count; i++) {
		struct vd_bytes key = limits->required[i];

		if (out_of_work(judge, 1 + key.size / 64) || vdi_tree_get(judge->tree, value, key))
			continue;
		vdi_faults_add(judge->faults, VDI_FAULT_REQUIRED, field(judge, ".", key), VD_BYTES_NONE, "%s",
			       "");
		total->valid = false;
	}
}

/* ---- One node ---- */

static void check_value(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
			const struct vdi_node *value, const struct vdi_node *old,
			const struct vdi_schema_number *number, struct verdict *total)
{
	const struct vdi_schema_limits *limits = node->limits;

	if (limits) {
		check_any_of(judge, &limits->any_of, value, total);
		check_one_of(judge, &limits->one_of, value, total);
		check_all_of(judge, &limits->all_of, value, total);
		check_not(judge, limits->not, value, total);
	}
	total->passed += 2;
	if (value->kind == VDI_NODE_STRING && limits) {
		note(total, check_string(judge, limits, value));
		if (limits->format.size)
			note(total, check_format(judge, limits, value));
	}
	if (value->kind == VDI_NODE_NUMBER)
		check_number(judge, node, number, total);
	if (value->kind == VDI_NODE_ARRAY)
		check_list(judge, node, value, old, total);
	if (limits && limits->enumeration)
		note(total, check_enum(judge, limits, value));
	if (value->kind == VDI_NODE_OBJECT)
		check_object(judge, node, value, old, total);
	total->passed += 3;
}

/* As upstream's CachedDeepEqual: an object with members that the schema does not know is never the same. */
static bool is_unchanged(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
			 const struct vdi_node *value, const struct vdi_node *old)
{
	if (value->kind == VDI_NODE_ARRAY && node->list == VDI_LIST_MAP)
		for (const struct vdi_node *item = value->first; item; item = item->next)
			if (!vdi_schema_has_keys(judge, node, item))
				return false;
	if (value->kind != VDI_NODE_OBJECT)
		return vdi_schema_same(judge, old, value);
	if (old->kind != VDI_NODE_OBJECT || old->count != value->count)
		return false;
	for (const struct vdi_node *member = value->first; member; member = member->next) {
		const struct vdi_schema_node *of_member = vdi_schema_member_of(node, member->key);
		const struct vdi_node	     *old_member = vdi_tree_get(judge->tree, old, member->key);

		if (of_member == NULL || old_member == NULL || out_of_work(judge, 1) ||
		    !is_unchanged(judge, of_member, member, old_member))
			return false;
	}
	return true;
}

static struct verdict validate(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
			       const struct vdi_node *value, const struct vdi_node *old)
{
	struct verdict		 total = { true, 0 };
	struct vdi_schema_number number = { 0 };
	size_t			 kept = judge->faults->kept, count = judge->faults->count;

	if (out_of_work(judge, 2 + value->count / 8 + value->text.size / 64))
		return total;
	if (value->kind == VDI_NODE_NUMBER)
		number = vdi_schema_number_of(value->text);
	if (has_type(node) || (node->limits && node->limits->format.size)) {
		note(&total, check_type(judge, node, value, &number));
		total.passed += 1 + total.valid;
	}
	if (value->kind != VDI_NODE_NULL)
		check_value(judge, node, value, old, &number, &total);
	else if (node->limits && node->limits->enumeration)
		note(&total, check_enum(judge, node->limits, value));
	if (!total.valid && old && judge->status == VD_OK && is_unchanged(judge, node, value, old)) {
		vdi_faults_truncate(judge->faults, kept, count);
		total.valid = true;
	}
	return total;
}

/* ---- */

static vd_status outcome(struct vdi_schema_judge *judge, size_t count)
{
	vd_status status = judge->status;

	if (judge->path.failed || judge->field.failed || judge->text.failed || judge->faults->failed)
		status = VD_NOMEM;
	if (status == VD_TOO_BIG)
		vdi_faults_add(judge->faults, VDI_FAULT_FORBIDDEN,
			       judge->prefix.size ? judge->prefix : vd_bytes_of("<nil>"), VD_BYTES_NONE,
			       "the object is too costly to validate: more than %d steps",
			       VDI_SCHEMA_WORK_MAX);
	vdi_out_fini(&judge->path);
	vdi_out_fini(&judge->field);
	vdi_out_fini(&judge->text);
	if (status == VD_NOMEM)
		return VD_NOMEM;
	return judge->faults->count > count ? VD_INVALID : VD_OK;
}

vd_status vdi_schema_validate_node(const struct vdi_schema_node *node, struct vdi_tree *tree,
				   const struct vdi_node *value, const struct vdi_node *old,
				   struct vd_bytes at, bool is_default, uint64_t *work,
				   struct vdi_faults *faults)
{
	struct vdi_schema_judge judge = { .tree = tree, .faults = faults, .prefix = at, .work = *work };
	size_t			count = faults->count;

	(void) validate(&judge, node, value, old);
	if (!is_default)
		vdi_schema_check_lists(&judge, node, value, old);
	vdi_schema_check_resources(&judge, node, value);
	*work = judge.work;
	return outcome(&judge, count);
}

vd_status vdi_schema_validate(const struct vdi_schema *schema, struct vdi_tree *tree,
			      const struct vdi_node *root, const struct vdi_node *old,
			      enum vdi_schema_part part, struct vdi_faults *faults)
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
	return vdi_schema_validate_node(node, tree, root, old, at, false, &work, faults);
}
