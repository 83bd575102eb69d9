/* Duplicates are found with a hash table per list, so the time is linear in the list; only items with equal
 * hashes are compared. */
#include "schema_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hash.h"
#include "validate.h"

/* ---- Numbers ---- */

struct vdi_schema_number vdi_schema_number_of(struct vd_bytes text)
{
	struct vdi_schema_number number = { 0 };
	struct vdi_node		 node = { .kind = VDI_NODE_NUMBER, .text = text };
	char			 copy[512];

	number.integer = vdi_tree_int_of(&node, 1);
	number.is_integer = number.integer != 1 || vdi_tree_int_of(&node, 2) == 1;
	if (number.is_integer) {
		number.real = (double) number.integer;
		return number;
	}
	(void) snprintf(copy, sizeof copy, "%.*s", (int) VDI_MIN(text.size, sizeof copy - 1),
			(const char *) text.data);
	number.real = strtod(copy, NULL);
	return number;
}

void vdi_schema_number_write(const struct vdi_schema_number *number, char text[VDI_SCHEMA_NUMBER_SIZE])
{
	char digits[32], *e;
	int  precision = 0, exponent;

	if (number->is_integer) {
		(void) snprintf(text, VDI_SCHEMA_NUMBER_SIZE, "%lld", (long long) number->integer);
		return;
	}
	/* Print the shortest digits that read back as the same number. */
	do {
		(void) snprintf(digits, sizeof digits, "%.*e", precision, number->real);
	} while (strtod(digits, NULL) != number->real && ++precision < 17);
	e = strchr(digits, 'e');
	exponent = e ? atoi(e + 1) : 0;
	if (e == NULL || exponent < -4 || exponent >= 6) {
		(void) snprintf(text, VDI_SCHEMA_NUMBER_SIZE, "%s", digits);
		return;
	}
	(void) snprintf(text, VDI_SCHEMA_NUMBER_SIZE, "%.*f", VDI_MAX(precision - exponent, 0), number->real);
}

bool vdi_schema_is_whole(double number)
{
	double nearest = round(number), difference = fabs(number - nearest);

	if (!isfinite(number) || fabs(number) > 9007199254740991.0)
		return false;
	if (difference == 0)
		return true;
	return difference / (fabs(number) + fabs(nearest)) < 1e-9;
}

/* ---- Equality ---- */

static bool same_number(const struct vdi_node *a, const struct vdi_node *b)
{
	struct vdi_schema_number x, y;

	if (vd_bytes_equal(a->text, b->text))
		return true;
	x = vdi_schema_number_of(a->text);
	y = vdi_schema_number_of(b->text);
	return x.is_integer && y.is_integer ? x.integer == y.integer : x.real == y.real;
}

bool vdi_schema_same(struct vdi_schema_validator *validator, const struct vdi_node *a,
		     const struct vdi_node *b)
{
	const struct vdi_node *x, *y;

	if (a->kind != b->kind || a->count != b->count ||
	    vdi_schema_out_of_work(validator, 1 + a->text.size / 64))
		return false;
	if (a->kind == VDI_NODE_NUMBER)
		return same_number(a, b);
	if (!vd_bytes_equal(a->text, b->text))
		return false;
	for (x = a->first, y = b->first; x; x = x->next, y = y->next) {
		const struct vdi_node *other = y;

		if (a->kind == VDI_NODE_OBJECT && !vd_bytes_equal(x->key, y->key))
			other = vdi_tree_get(validator->tree, b, x->key);
		if (other == NULL || !vdi_schema_same(validator, x, other))
			return false;
	}
	return true;
}

static const struct vdi_node *key_of(struct vdi_schema_validator *validator, const struct vdi_node *item,
				     struct vd_bytes key)
{
	return vdi_tree_is(item, VDI_NODE_OBJECT) ? vdi_tree_get(validator->tree, item, key) : NULL;
}

bool vdi_schema_same_keys(struct vdi_schema_validator *validator, const struct vdi_schema_node *list,
			  const struct vdi_node *a, const struct vdi_node *b)
{
	for (size_t i = 0; i < list->list_key_count; i++) {
		const struct vdi_node *x = key_of(validator, a, list->list_keys[i]),
				      *y = key_of(validator, b, list->list_keys[i]);

		if (!x != !y || (x && !vdi_schema_same(validator, x, y)))
			return false;
	}
	return true;
}

bool vdi_schema_has_keys(struct vdi_schema_validator *validator, const struct vdi_schema_node *list,
			 const struct vdi_node *item)
{
	for (size_t i = 0; i < list->list_key_count; i++) {
		const struct vdi_node *key = key_of(validator, item, list->list_keys[i]);

		if (key == NULL || key->kind == VDI_NODE_NULL || key->kind == VDI_NODE_ARRAY ||
		    key->kind == VDI_NODE_OBJECT)
			return false;
	}
	return true;
}

/* Equal values have equal hashes. */
static uint64_t hash_value(struct vdi_schema_validator *validator, const struct vdi_node *value)
{
	uint64_t hash = vdi_hash_seed() + value->kind;

	if (vdi_schema_out_of_work(validator, 1 + value->text.size / 64))
		return 0;
	if (value->kind == VDI_NODE_NUMBER) {
		double real = vdi_schema_number_of(value->text).real;

		return XXH3_64bits_withSeed(&real, sizeof real, hash);
	}
	if (value->text.size)
		hash = XXH3_64bits_withSeed(value->text.data, value->text.size, hash);
	for (const struct vdi_node *child = value->first; child; child = child->next) {
		uint64_t of_child = hash_value(validator, child);

		if (value->kind == VDI_NODE_OBJECT) /* independent of the order of members */
			hash += XXH3_64bits_withSeed(child->key.size ? child->key.data : "", child->key.size,
						     of_child);
		else
			hash = XXH3_64bits_withSeed(&of_child, sizeof of_child, hash);
	}
	return hash;
}

/* ---- Lists of type set and map ---- */

static size_t enter_key(struct vdi_schema_validator *validator, struct vd_bytes key, bool brackets)
{
	size_t size = validator->path.size;

	vdi_out_raw(&validator->path, brackets ? "[" : size ? "." : "");
	vdi_out_bytes(&validator->path, key);
	if (brackets)
		vdi_out_raw(&validator->path, "]");
	return size;
}

static size_t enter_index(struct vdi_schema_validator *validator, size_t index)
{
	size_t size = validator->path.size;

	vdi_out_index(&validator->path, index);
	return size;
}

/* Appends a member or item of value to the path; *ret_of_child: its schema, or NULL. */
static size_t enter_child(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			  const struct vdi_node *value, const struct vdi_node *child, size_t index,
			  const struct vdi_schema_node **ret_of_child)
{
	const struct vdi_schema_node *property;

	if (value->kind == VDI_NODE_ARRAY) {
		*ret_of_child = node->items;
		return enter_index(validator, index);
	}
	property = vdi_schema_property_of(node, child->key);
	*ret_of_child = property ? property : node->additional;
	return enter_key(validator, child->key, property == NULL);
}

static struct vd_bytes here(struct vdi_schema_validator *validator)
{
	vdi_schema_validator_reset(validator, &validator->field);
	vdi_out_bytes(&validator->field, validator->prefix);
	if (validator->prefix.size && validator->path.size && validator->path.data[0] != '[')
		vdi_out_raw(&validator->field, ".");
	vdi_out_bytes(&validator->field,
		      (struct vd_bytes) { validator->path.data,
					  VDI_MIN(validator->path.size, (size_t) VDI_SCHEMA_PATH_SIZE) });
	return vdi_out_slice(&validator->field);
}

struct seen {
	const struct vdi_node *item;
	uint64_t	       hash;
	bool		       reported;
};

static uint64_t hash_item(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			  const struct vdi_node *item)
{
	uint64_t hash = 0;

	if (node->list == VDI_LIST_SET)
		return hash_value(validator, item);
	for (size_t i = 0; i < node->list_key_count; i++) {
		const struct vdi_node *key = key_of(validator, item, node->list_keys[i]);

		hash = hash * 31 + (key ? hash_value(validator, key) : 1);
	}
	return hash;
}

static bool same_item(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
		      const struct vdi_node *a, const struct vdi_node *b)
{
	return node->list == VDI_LIST_SET ? vdi_schema_same(validator, a, b) :
					    vdi_schema_same_keys(validator, node, a, b);
}

static void report_duplicate(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			     const struct vdi_node *item, size_t index)
{
	size_t size = enter_index(validator, index);

	if (node->list == VDI_LIST_SET) {
		vdi_field_errors_add_node(validator->field_errors, VDI_FIELD_ERROR_DUPLICATE, here(validator),
					  item, "%s", "");
	} else {
		vdi_schema_validator_reset(validator, &validator->text);
		vdi_out_raw(&validator->text, "{");
		for (size_t i = 0; i < node->list_key_count; i++) {
			const struct vdi_node *key = key_of(validator, item, node->list_keys[i]);

			if (key == NULL)
				continue;
			vdi_out_comma(&validator->text);
			vdi_out_string(&validator->text, node->list_keys[i]);
			vdi_out_raw(&validator->text, ":");
			vdi_tree_write(&validator->text, key);
		}
		vdi_out_raw(&validator->text, "}");
		vdi_field_errors_add(validator->field_errors, VDI_FIELD_ERROR_DUPLICATE, here(validator),
				     vdi_out_slice(&validator->text), "%s", "");
	}
	validator->path.size = size;
}

/* Reports each value that occurs more than once, at its second occurrence only. */
static void check_doubles(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			  const struct vdi_node *list)
{
	size_t	     slots = 8, index = 0;
	struct seen *table;

	while (slots < (size_t) list->count * 2)
		slots *= 2;
	table = vdi_calloc(slots, sizeof *table);
	if (table == NULL) {
		validator->status = VD_NOMEM;
		return;
	}
	for (const struct vdi_node *item = list->first; item && validator->status == VD_OK;
	     item = item->next, index++) {
		uint64_t hash = hash_item(validator, node, item);
		size_t	 at = hash & (slots - 1);

		for (; table[at].item; at = (at + 1) & (slots - 1)) {
			if (vdi_schema_out_of_work(validator, 1))
				break;
			if (table[at].hash != hash || !same_item(validator, node, table[at].item, item))
				continue;
			if (!table[at].reported)
				report_duplicate(validator, node, item, index);
			table[at].reported = true;
			break;
		}
		if (table[at].item == NULL)
			table[at] = (struct seen) { item, hash, false };
	}
	vdi_free(table);
}

static bool are_objects(struct vdi_schema_validator *validator, const struct vdi_node *list)
{
	size_t index = 0;

	for (const struct vdi_node *item = list->first; item; item = item->next, index++) {
		size_t size;

		if (item->kind == VDI_NODE_OBJECT || item->kind == VDI_NODE_NULL)
			continue;
		size = enter_index(validator, index);
		vdi_field_errors_add_node(validator->field_errors, VDI_FIELD_ERROR_INVALID, here(validator),
					  item, "must be an object for an array of list-type map");
		validator->path.size = size;
		return false;
	}
	return true;
}

static void check_lists(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			const struct vdi_node *value)
{
	size_t index = 0;

	if (vdi_schema_out_of_work(validator, 1))
		return;
	if (value->kind == VDI_NODE_ARRAY && node->list != VDI_LIST_ATOMIC &&
	    (node->list == VDI_LIST_SET || are_objects(validator, value)) && value->count > 1)
		check_doubles(validator, node, value);
	for (const struct vdi_node *child = value->first; child && validator->status == VD_OK;
	     child = child->next, index++) {
		const struct vdi_schema_node *of_child;
		size_t size = enter_child(validator, node, value, child, index, &of_child);

		if (of_child && of_child->has_lists)
			check_lists(validator, of_child, child);
		validator->path.size = size;
	}
}

void vdi_schema_check_lists(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			    const struct vdi_node *value, const struct vdi_node *old)
{
	size_t kept = validator->field_errors->kept, count = validator->field_errors->count;
	bool   had;

	if (!node->has_lists)
		return;
	if (old) {
		check_lists(validator, node, old);
		had = validator->field_errors->count > count;
		vdi_field_errors_truncate(validator->field_errors, kept, count);
		if (had)
			return;
	}
	check_lists(validator, node, value);
}

/* ---- Embedded resources ---- */

static void add_error_at(struct vdi_schema_validator *validator, const char *child,
			 enum vdi_field_error_kind kind, const struct vdi_node *value, const char *detail)
{
	size_t size = enter_key(validator, vd_bytes_of(child), false);

	vdi_field_errors_add_node(validator->field_errors, kind, here(validator), value, "%s", detail);
	validator->path.size = size;
}

/* Checks for a non-empty string. */
static bool check_word(struct vdi_schema_validator *validator, const struct vdi_node *value, const char *name)
{
	const struct vdi_node *word = vdi_tree_get(validator->tree, value, vd_bytes_of(name));

	if (word == NULL)
		add_error_at(validator, name, VDI_FIELD_ERROR_REQUIRED, NULL, "");
	else if (word->kind != VDI_NODE_STRING)
		add_error_at(validator, name, VDI_FIELD_ERROR_INVALID, word, "must be a string");
	else if (word->text.size == 0)
		add_error_at(validator, name, VDI_FIELD_ERROR_INVALID, word, "must not be empty");
	else
		return true;
	return false;
}

static bool is_kind_name(struct vd_bytes text)
{
	const char *at = text.data;

	if (text.size == 0 || text.size > 63 || !((at[0] | 0x20) >= 'a' && (at[0] | 0x20) <= 'z') ||
	    at[text.size - 1] == '-')
		return false;
	for (size_t i = 0; i < text.size; i++)
		if (!((at[i] | 0x20) >= 'a' && (at[i] | 0x20) <= 'z') && !(at[i] >= '0' && at[i] <= '9') &&
		    at[i] != '-')
			return false;
	return true;
}

/* Adds the errors of vdi_validate_metadata under the path of the resource. An embedded resource may lack a
 * name. */
static void check_metadata(struct vdi_schema_validator *validator, const struct vdi_node *value)
{
	const struct vdi_node *metadata = vdi_tree_get(validator->tree, value, vd_bytes_of("metadata"));
	const struct vdi_node *name =
		metadata ? vdi_tree_get(validator->tree, metadata, vd_bytes_of("name")) : NULL;
	struct vdi_field_errors field_errors = { 0 };
	const char *why = vdi_tree_is(name, VDI_NODE_STRING) ? vdi_validate_path_segment(name->text) : NULL;

	if (metadata == NULL || metadata->kind == VDI_NODE_NULL)
		return;
	if (metadata->kind != VDI_NODE_OBJECT) {
		add_error_at(validator, "metadata", VDI_FIELD_ERROR_INVALID, metadata, "must be an object");
		return;
	}
	if (why)
		add_error_at(validator, "metadata.name", VDI_FIELD_ERROR_INVALID, name, why);
	vdi_validate_metadata(validator->tree, value, VDI_NAME_PATH_SEGMENT, &field_errors);
	if (field_errors.failed)
		validator->status = VD_NOMEM;
	for (size_t i = 0; i < field_errors.kept && validator->status == VD_OK; i++) {
		struct vd_bytes field = vdi_field_errors_field(&field_errors, i),
				message = vdi_field_errors_text(&field_errors, i);
		char	    place[128], text[512];
		const char *rest;

		(void) snprintf(place, sizeof place, "%.*s", (int) field.size, (const char *) field.data);
		(void) snprintf(text, sizeof text, "%.*s", (int) message.size, (const char *) message.data);
		rest = strstr(text, ": ");
		if (strcmp(place, "metadata.name") != 0 && strcmp(place, "metadata.generateName") != 0)
			add_error_at(validator, place, VDI_FIELD_ERROR_FORBIDDEN, NULL,
				     rest ? rest + 2 : text);
	}
	vdi_field_errors_fini(&field_errors);
}

static void check_resource(struct vdi_schema_validator *validator, const struct vdi_node *value)
{
	const struct vdi_node *kind = vdi_tree_get(validator->tree, value, vd_bytes_of("kind"));

	(void) check_word(validator, value, "apiVersion");
	if (check_word(validator, value, "kind") && !is_kind_name(kind->text))
		add_error_at(
			validator, "kind", VDI_FIELD_ERROR_INVALID, kind,
			"may have mixed case, but should otherwise match: a DNS-1035 label must consist of "
			"lower case alphanumeric characters or '-', start with an "
			"alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
			"'abc-123', regex used for validation is "
			"'[a-z]([-a-z0-9]*[a-z0-9])?')");
	check_metadata(validator, value);
}

void vdi_schema_check_resources(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
				const struct vdi_node *value)
{
	size_t index = 0;

	if (!node->has_resources || vdi_schema_out_of_work(validator, 1))
		return;
	if (node->embedded && value->kind == VDI_NODE_OBJECT)
		check_resource(validator, value);
	for (const struct vdi_node *child = value->first; child && validator->status == VD_OK;
	     child = child->next, index++) {
		const struct vdi_schema_node *of_child;
		size_t size = enter_child(validator, node, value, child, index, &of_child);

		if (of_child && of_child->has_resources)
			vdi_schema_check_resources(validator, of_child, child);
		validator->path.size = size;
	}
}
