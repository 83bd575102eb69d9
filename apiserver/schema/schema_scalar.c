#include "schema_scalar.h"

#include <math.h>

#include "schema_error.h"

static size_t count_runes(struct vd_bytes text)
{
	size_t count = 0;

	for (size_t i = 0; i < text.size; i++)
		count += (((const char *) text.data)[i] & 0xC0) != 0x80;
	return count;
}

static bool matches(struct vdi_schema_validator *validator, const struct vdi_schema_limits *limits,
		    struct vd_bytes text)
{
	bool	  found = true;
	vd_status status;

	if (limits->pattern == NULL || validator->status != VD_OK)
		return true;
	status = vdi_pattern_match(limits->pattern, text, &validator->work, &found);
	if (status != VD_OK)
		validator->status = status;
	return found;
}

bool vdi_schema_check_string(struct vdi_schema_validator *validator, const struct vdi_schema_limits *limits,
			     const struct vdi_node *value)
{
	bool   counts = limits->max_length >= 0 || limits->min_length >= 0;
	size_t runes = counts ? count_runes(value->text) : 0;

	if (limits->max_length >= 0 && runes > (uint64_t) limits->max_length) {
		vdi_field_errors_add(validator->field_errors, VDI_FIELD_ERROR_TOO_LONG,
				     vdi_schema_error_field(validator, "", VD_BYTES_NONE), VD_BYTES_NONE,
				     "may not be more than %lld byte%s", (long long) limits->max_length,
				     limits->max_length == 1 ? "" : "s");
		return false;
	}
	if (limits->min_length >= 0 && runes < (uint64_t) limits->min_length) {
		vdi_field_errors_add_node(validator->field_errors, VDI_FIELD_ERROR_INVALID,
					  vdi_schema_error_field(validator, "", VD_BYTES_NONE), value,
					  "%.*s in body should be at least %lld chars long",
					  VDI_SCHEMA_PATH(validator), (long long) limits->min_length);
		return false;
	}
	if (!matches(validator, limits, value->text)) {
		vdi_field_errors_add_node(validator->field_errors, VDI_FIELD_ERROR_INVALID,
					  vdi_schema_error_field(validator, "", VD_BYTES_NONE), value,
					  "%.*s in body should match '%.*s'", VDI_SCHEMA_PATH(validator),
					  (int) limits->pattern_text.size,
					  (const char *) limits->pattern_text.data);
		return false;
	}
	return true;
}

bool vdi_schema_check_format(struct vdi_schema_validator *validator, const struct vdi_schema_limits *limits,
			     const struct vdi_node *value)
{
	if (vdi_schema_out_of_work(validator, value->text.size / 16) ||
	    vdi_schema_format_holds(limits->format, value->text))
		return true;
	vdi_field_errors_add_node(validator->field_errors, VDI_FIELD_ERROR_TYPE_INVALID,
				  vdi_schema_error_field(validator, "", VD_BYTES_NONE), value,
				  "%.*s in body must be of type %.*s: \"%.*s\"", VDI_SCHEMA_PATH(validator),
				  (int) limits->format.size, (const char *) limits->format.data,
				  (int) VDI_MIN(value->text.size, (size_t) 256),
				  value->text.size ? (const char *) value->text.data : "");
	return false;
}

/* IsValueValidAgainstRange; what: the value or the limit. */
static bool is_in_range(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
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
		vdi_schema_error_add(validator, "%s value must be of type %s with format %.*s in %.*s", what,
				     vdi_schema_type_name(node->type), (int) format.size,
				     (const char *) format.data, VDI_SCHEMA_PATH(validator));
	else
		vdi_schema_error_add(validator, "%s value must be of type %s (default format) in %.*s", what,
				     vdi_schema_type_name(node->type), VDI_SCHEMA_PATH(validator));
	return false;
}

/* Adds an error for a limit; a value that is compared as a double is also shown as one. */
static void add_limit_error(struct vdi_schema_validator *validator, const struct vdi_schema_number *number,
			    const char *words, const struct vdi_schema_number *limit)
{
	struct vdi_schema_number shown = { number->real, number->integer,
					   number->is_integer && limit->is_integer };
	struct vdi_node		 value = { .kind = VDI_NODE_NUMBER };
	char			 text[VDI_SCHEMA_NUMBER_SIZE], value_text[VDI_SCHEMA_NUMBER_SIZE];

	vdi_schema_number_write(limit, text);
	vdi_schema_validator_reset(validator, &validator->text);
	vdi_out_printf(&validator->text, "%.*s in body should be %s %s", VDI_SCHEMA_PATH(validator), words,
		       text);
	vdi_schema_number_write(&shown, value_text);
	value.text = vd_bytes_of(value_text);
	vdi_field_errors_add_node(validator->field_errors, VDI_FIELD_ERROR_INVALID,
				  vdi_schema_error_field(validator, "", VD_BYTES_NONE), &value, "%.*s",
				  (int) validator->text.size,
				  validator->text.size ? validator->text.data : "");
}

/* Converts the limit to the value's kind of number, unless it does not fit. */
static struct vdi_schema_number limit_for(const struct vdi_schema_number *value, double limit, bool in_range)
{
	struct vdi_schema_number number = { limit, 0, false };

	if (value->is_integer && in_range && fabs(limit) < 9223372036854775808.0) {
		number.integer = (int64_t) limit;
		number.is_integer = true;
	}
	return number;
}

static bool check_multiple(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			   const struct vdi_schema_number *number)
{
	struct vdi_schema_number factor = { node->limits->multiple_of, 0, false };
	bool			 in_range = is_in_range(validator, node, &factor, "MultipleOf"), fine;
	char			 text[VDI_SCHEMA_NUMBER_SIZE];

	factor = limit_for(number, node->limits->multiple_of, in_range);
	vdi_schema_number_write(&factor, text);
	if (factor.is_integer ? factor.integer <= 0 : factor.real <= 0) {
		vdi_field_errors_add(validator->field_errors, VDI_FIELD_ERROR_INVALID,
				     vdi_schema_error_field(validator, "", VD_BYTES_NONE), vd_bytes_of(text),
				     "factor MultipleOf declared for %.*s must be positive: %s",
				     VDI_SCHEMA_PATH(validator), text);
		return false;
	}
	if (factor.is_integer)
		fine = number->integer % factor.integer == 0;
	else
		fine = vdi_schema_is_whole(factor.real < 1 ? 1 / factor.real * number->real :
							     number->real / factor.real);
	if (!fine)
		add_limit_error(validator, number, "a multiple of", &factor);
	return in_range && fine;
}

static bool check_bound(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			const struct vdi_schema_number *number, bool is_maximum)
{
	static const char *const words[] = { "greater than or equal to", "greater than",
					     "less than or equal to", "less than" };
	double			 bound = is_maximum ? node->limits->maximum : node->limits->minimum;
	bool exclusive = is_maximum ? node->limits->exclusive_maximum : node->limits->exclusive_minimum, fine;
	struct vdi_schema_number limit = { bound, 0, false };
	bool			 in_range =
		is_in_range(validator, node, &limit, is_maximum ? "Maximum boundary" : "Minimum boundary");
	int order;

	limit = limit_for(number, bound, in_range);
	order = limit.is_integer ? (number->integer > limit.integer) - (number->integer < limit.integer) :
				   (number->real > limit.real) - (number->real < limit.real);
	if (!is_maximum)
		order = -order;
	fine = exclusive ? order < 0 : order <= 0;
	if (!fine)
		add_limit_error(validator, number, words[is_maximum * 2 + exclusive], &limit);
	return in_range && fine;
}

bool vdi_schema_check_number(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			     const struct vdi_schema_number *number)
{
	static const struct vdi_schema_limits none = { .min_length = -1 };
	struct vdi_schema_node		      plain = *node;
	bool				      fine;

	if (node->limits == NULL)
		plain.limits = &none;
	fine = is_in_range(validator, &plain, number, "Checked");
	if (plain.limits->has_multiple_of)
		fine &= check_multiple(validator, node, number);
	if (plain.limits->has_minimum)
		fine &= check_bound(validator, node, number, false);
	if (plain.limits->has_maximum)
		fine &= check_bound(validator, node, number, true);
	return fine;
}

/* Adds an error with the value; a number that is no integer is printed as Go prints it. */
static void add_value(struct vdi_schema_validator *validator, enum vdi_field_error_kind kind,
		      const struct vdi_node *value, const char *detail, size_t size)
{
	char			 text[VDI_SCHEMA_NUMBER_SIZE];
	struct vdi_node		 shown = *value;
	struct vdi_schema_number number;

	if (value->kind == VDI_NODE_NUMBER) {
		number = vdi_schema_number_of(value->text);
		vdi_schema_number_write(&number, text);
		shown.text = vd_bytes_of(text);
	}
	vdi_field_errors_add_node(validator->field_errors, kind,
				  vdi_schema_error_field(validator, "", VD_BYTES_NONE), &shown, "%.*s",
				  (int) size, detail);
}

bool vdi_schema_check_enum(struct vdi_schema_validator *validator, const struct vdi_schema_limits *limits,
			   const struct vdi_node *value)
{
	for (const struct vdi_node *one = limits->enumeration->first; one && value->kind != VDI_NODE_NULL;
	     one = one->next)
		if (vdi_schema_out_of_work(validator, 1) || vdi_schema_same(validator, one, value))
			return true;
	vdi_schema_validator_reset(validator, &validator->text);
	for (const struct vdi_node *one = limits->enumeration->first;
	     one && validator->text.size < VDI_FIELD_ERROR_VALUE_SIZE; one = one->next) {
		vdi_out_raw(&validator->text, validator->text.size ? ", " : "supported values: ");
		if (one->kind == VDI_NODE_STRING) {
			vdi_field_errors_write_quoted(&validator->text, one->text);
		} else {
			struct vdi_out json = VDI_OUT_INIT;

			vdi_tree_write(&json, one);
			validator->text.failed |= json.failed;
			vdi_field_errors_write_quoted(&validator->text, vdi_out_slice(&json));
			vdi_out_fini(&json);
		}
	}
	add_value(validator, VDI_FIELD_ERROR_NOT_SUPPORTED, value,
		  validator->text.size ? validator->text.data : "", validator->text.size);
	return false;
}
