/* Label selectors: the parser and the matcher. Field selectors are in field_selector.c.
 *
 * The parser has the states of upstream's (k8s.io/apimachinery pkg/labels/selector.go: Lexer, Parser), with
 * its oddities: `in` and `notin` are values where a value is expected; `()` is the set of the empty value; a
 * NUL byte ends the text; `x,` is rejected, but white space alone is not. Parsed requirements are slices of
 * the caller's text. At the end they are sorted and written as the canonical text, to which the finished
 * selector refers:
 *
 *   header | requirements, 12 bytes each | values, 4 bytes each | text
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "hash.h"
#include "json_text.h"
#include "selector.h"

enum operator{
	OPERATOR_EQUALS,	/* = */
	OPERATOR_DOUBLE_EQUALS, /* == */
	OPERATOR_IN,
	OPERATOR_NOT_EQUALS,
	OPERATOR_NOT_IN,
	OPERATOR_EXISTS,
	OPERATOR_NOT_EXISTS,
	OPERATOR_GREATER,
	OPERATOR_LESS,
};

/* Offsets in the canonical text, which has at most 64 KiB plus a few bytes for each requirement. */
struct requirement {
	uint32_t key_at;
	uint16_t key_size; /* 317 at most */
	uint8_t	 operator_kind;
	uint8_t	 unused;
	uint16_t value_first;
	uint16_t value_count; /* bytewise order, each once; none for exists and not exists */
};

struct value {
	uint32_t at : 24;
	uint32_t size : 8; /* 63 at most */
};

struct vdi_label_selector {
	uint32_t	   text_size;
	uint16_t	   requirement_count;
	uint16_t	   value_count;	 /* of all requirements */
	uint32_t	   needed_count; /* requirements that an object without the label does not satisfy */
	struct requirement requirements[];
};

_Static_assert(VDI_SELECTOR_SIZE_MAX / 2 + 1 <= UINT16_MAX, "a value has a comma");

/* A requirement during parsing. */
struct parsed {
	struct vd_bytes key;
	enum		operator operator_kind;
	size_t		value_first;
	size_t		value_count;
};

enum token {
	TOKEN_END,
	TOKEN_CLOSE,
	TOKEN_COMMA,
	TOKEN_NOT,
	TOKEN_DOUBLE_EQUALS,
	TOKEN_EQUALS,
	TOKEN_GREATER,
	TOKEN_IDENTIFIER,
	TOKEN_IN,
	TOKEN_LESS,
	TOKEN_NOT_EQUALS,
	TOKEN_NOT_IN,
	TOKEN_OPEN,
};

struct parser {
	struct parsed	*requirements;
	size_t		 requirement_count;
	size_t		 requirement_capacity;
	struct vd_bytes *values; /* of all requirements */
	size_t		 value_count;
	size_t		 value_capacity;
	const char	*at;
	const char	*end;
	enum token	 token; /* the next token */
	struct vd_bytes	 literal;
	struct vd_error *reterr;
};

static bool is_space(char character)
{
	return character == ' ' || character == '\t' || character == '\r' || character == '\n';
}

static enum token symbol_of(char character)
{
	switch (character) {
	case '=': return TOKEN_EQUALS;
	case '!': return TOKEN_NOT;
	case '(': return TOKEN_OPEN;
	case ')': return TOKEN_CLOSE;
	case ',': return TOKEN_COMMA;
	case '>': return TOKEN_GREATER;
	case '<': return TOKEN_LESS;
	default: return TOKEN_END;
	}
}

/* Reads the next token into token and literal. */
static void token_advance(struct parser *parser)
{
	const char *start;

	while (parser->at < parser->end && is_space(*parser->at))
		parser->at++;
	start = parser->at;
	if (parser->at == parser->end || *parser->at == 0) {
		parser->at = parser->end;
		parser->token = TOKEN_END;
	} else if ((parser->token = symbol_of(*parser->at)) != TOKEN_END) {
		parser->at++;
		if (parser->at < parser->end && *parser->at == '=' &&
		    (parser->token == TOKEN_EQUALS || parser->token == TOKEN_NOT)) {
			parser->token = parser->token == TOKEN_NOT ? TOKEN_NOT_EQUALS : TOKEN_DOUBLE_EQUALS;
			parser->at++;
		}
	} else {
		while (parser->at < parser->end && *parser->at && !is_space(*parser->at) &&
		       symbol_of(*parser->at) == TOKEN_END)
			parser->at++;
		parser->token = TOKEN_IDENTIFIER;
	}
	parser->literal = (struct vd_bytes) { start, (size_t) (parser->at - start) };
	if (parser->token == TOKEN_END)
		parser->literal.size = 0;
	else if (vd_bytes_equal(parser->literal, vd_bytes_of("in")))
		parser->token = TOKEN_IN;
	else if (vd_bytes_equal(parser->literal, vd_bytes_of("notin")))
		parser->token = TOKEN_NOT_IN;
	/* A NUL directly after a token is dropped with it, and parsing continues after it. */
	if (parser->token != TOKEN_END && parser->at < parser->end && *parser->at == 0)
		parser->at++;
}

/* Returns the next token where a value or key is expected. */
static enum token value_token(const struct parser *parser)
{
	return parser->token == TOKEN_IN || parser->token == TOKEN_NOT_IN ? TOKEN_IDENTIFIER : parser->token;
}

#define LITERAL(bytes) (int) VDI_MIN((bytes).size, (size_t) 200), (const char *) (bytes).data

/* Quotes as Go's %q. */
static void quote_go(struct vd_bytes text, char *out, size_t size)
{
	const uint8_t *in = text.data;
	size_t	       length = 0;

	out[length++] = '"';
	for (size_t i = 0; i < text.size && length + 8 < size;) {
		size_t	    character = vdi_utf8_character(in + i, text.size - i);
		const char *letter = in[i] >= '\a' && in[i] <= '\r' ? &"abtnvfr"[in[i] - '\a'] : NULL;

		if (character > 1) {
			memcpy(out + length, in + i, character);
			length += character;
			i += character;
			continue;
		}
		if (in[i] == '"' || in[i] == '\\' || letter) {
			out[length++] = '\\';
			out[length++] = letter ? *letter : (char) in[i];
		} else if (in[i] < 0x20 || in[i] >= 0x7F) {
			length += (size_t) snprintf(out + length, size - length, "\\x%02x", in[i]);
		} else {
			out[length++] = (char) in[i];
		}
		i++;
	}
	out[length++] = '"';
	out[length] = 0;
}

static vd_status requirement_error(struct parser *parser, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static vd_status requirement_error(struct parser *parser, const char *format, ...)
{
	char	text[VD_ERROR_MESSAGE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return vd_error_set(parser->reterr, VD_BAD_REQUEST, "unable to parse requirement: %s", text);
}

/* snprintf with intended truncation. */
static void text_format(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void text_format(char *text, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, size, format, arguments);
	va_end(arguments);
}

static vd_status value_append(struct parser *parser, struct vd_bytes value)
{
	if (!vdi_grow((void **) &parser->values, &parser->value_capacity, parser->value_count + 1,
		      sizeof *parser->values))
		return vd_error_set(parser->reterr, VD_NOMEM, "out of memory");
	parser->values[parser->value_count++] = value;
	return VD_OK;
}

/* Parses the values between parentheses: comma separated, possibly empty. The `(` is consumed already; stops
 * at the `)`. */
static vd_status identifiers_parse(struct parser *parser, size_t first)
{
	for (;;) {
		enum token	token = value_token(parser);
		struct vd_bytes literal = parser->literal;

		token_advance(parser);
		if (token == TOKEN_IDENTIFIER) {
			VDI_TRY(value_append(parser, literal));
			if (value_token(parser) == TOKEN_CLOSE)
				return VD_OK;
			if (value_token(parser) != TOKEN_COMMA)
				return requirement_error(parser, "found '%.*s', expected: ',' or ')'",
							 LITERAL(parser->literal));
		} else if (token == TOKEN_COMMA) {
			if (parser->value_count == first)
				VDI_TRY(value_append(parser, VD_BYTES_NONE));
			if (value_token(parser) == TOKEN_CLOSE)
				return value_append(parser, VD_BYTES_NONE);
			if (value_token(parser) == TOKEN_COMMA)
				VDI_TRY(value_append(parser, VD_BYTES_NONE));
		} else {
			return requirement_error(parser, "found '%.*s', expected: ',', or identifier",
						 LITERAL(literal));
		}
	}
}

static vd_status set_parse(struct parser *parser, size_t first)
{
	if (parser->token != TOKEN_OPEN)
		return requirement_error(parser, "found '%.*s' expected: '('", LITERAL(parser->literal));
	token_advance(parser);
	switch (value_token(parser)) {
	case TOKEN_IDENTIFIER:
	case TOKEN_COMMA: VDI_TRY(identifiers_parse(parser, first)); break;
	case TOKEN_CLOSE: VDI_TRY(value_append(parser, VD_BYTES_NONE)); break;
	default:
		return requirement_error(parser, "found '%.*s', expected: ',', ')' or identifier",
					 LITERAL(parser->literal));
	}
	token_advance(parser); /* the `)` */
	return VD_OK;
}

static vd_status exact_parse(struct parser *parser)
{
	struct vd_bytes literal = parser->literal;

	switch (value_token(parser)) {
	case TOKEN_END:
	case TOKEN_COMMA: return value_append(parser, VD_BYTES_NONE);
	case TOKEN_IDENTIFIER: token_advance(parser); return value_append(parser, literal);
	default: return requirement_error(parser, "found '%.*s', expected: identifier", LITERAL(literal));
	}
}

static int values_order(const void *a, const void *b)
{
	return vd_bytes_compare(*(const struct vd_bytes *) a, *(const struct vd_bytes *) b);
}

/* Parses as Go's strconv.ParseInt(text, 10, 64). */
static bool number_parse(struct vd_bytes text, int64_t *ret_number)
{
	const char *in = text.data;
	size_t	    i = 0;
	bool	    negative = false;
	uint64_t    number = 0;
	uint64_t    most;

	if (text.size && (in[0] == '-' || in[0] == '+'))
		negative = in[i++] == '-';
	if (i == text.size)
		return false;
	most = (uint64_t) INT64_MAX + negative;
	for (; i < text.size; i++) {
		unsigned digit = (unsigned char) in[i] - (unsigned) '0';

		if (digit > 9 || number > (most - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = (int64_t) (negative ? 0 - number : number);
	return true;
}

/* Validates the values of a complete requirement as upstream's NewRequirement does. */
static vd_status values_check(struct parser *parser, struct parsed *requirement)
{
	struct vd_bytes *values = parser->values + requirement->value_first;
	size_t		 count = parser->value_count - requirement->value_first;
	size_t		 kept = 0;
	int64_t		 bound;
	char		 errors[2][VD_ERROR_MESSAGE_SIZE];
	size_t		 error_count = 0;
	char		 quoted[80];
	char		 reason[VD_ERROR_MESSAGE_SIZE];

	if (count > 1)
		qsort(values, count, sizeof *values, values_order);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || !vd_bytes_equal(values[kept - 1], values[i]))
			values[kept++] = values[i];
	parser->value_count = requirement->value_first + kept;
	requirement->value_count = kept;

	if ((requirement->operator_kind == OPERATOR_GREATER || requirement->operator_kind == OPERATOR_LESS) &&
	    !number_parse(values[0], &bound)) {
		quote_go(values[0], quoted, sizeof quoted);
		text_format(errors[error_count++], sizeof errors[0],
			    "values[0]: Invalid value: %s: for 'Gt', 'Lt' operators, the value must be an "
			    "integer",
			    quoted);
	}
	for (size_t i = 0; i < kept && error_count < 2; i++) {
		if (vdi_label_value_valid(values[i], reason, sizeof reason))
			continue;
		quote_go(values[i], quoted, sizeof quoted);
		text_format(errors[error_count++], sizeof errors[0],
			    "values[%zu][%.*s]: Invalid value: %s: %s", i,
			    (int) VDI_MIN(requirement->key.size, (size_t) 100),
			    (const char *) requirement->key.data, quoted, reason);
	}
	if (error_count == 0)
		return VD_OK;
	if (error_count == 1)
		return requirement_error(parser, "%s", errors[0]);
	return requirement_error(parser, "[%s, %s]", errors[0], errors[1]);
}

static vd_status operator_parse(struct parser *parser, enum operator* ret_operator)
{
	switch (parser->token) {
	case TOKEN_IN: *ret_operator = OPERATOR_IN; break;
	case TOKEN_EQUALS: *ret_operator = OPERATOR_EQUALS; break;
	case TOKEN_DOUBLE_EQUALS: *ret_operator = OPERATOR_DOUBLE_EQUALS; break;
	case TOKEN_GREATER: *ret_operator = OPERATOR_GREATER; break;
	case TOKEN_LESS: *ret_operator = OPERATOR_LESS; break;
	case TOKEN_NOT_IN: *ret_operator = OPERATOR_NOT_IN; break;
	case TOKEN_NOT_EQUALS: *ret_operator = OPERATOR_NOT_EQUALS; break;
	default:
		return requirement_error(parser, "found '%.*s', expected: in, notin, =, ==, !=, gt, lt",
					 LITERAL(parser->literal));
	}
	token_advance(parser);
	return VD_OK;
}

static vd_status requirement_parse(struct parser *parser)
{
	struct parsed requirement = { .operator_kind = OPERATOR_EXISTS, .value_first = parser->value_count };
	char	      reason[VD_ERROR_MESSAGE_SIZE];
	char	      quoted[160];

	if (parser->requirement_count == VDI_SELECTOR_REQUIREMENTS_MAX)
		return vd_error_set(parser->reterr, VD_BAD_REQUEST,
				    "label selector has more than %d requirements",
				    VDI_SELECTOR_REQUIREMENTS_MAX);
	if (!vdi_grow((void **) &parser->requirements, &parser->requirement_capacity,
		      parser->requirement_count + 1, sizeof *parser->requirements))
		return vd_error_set(parser->reterr, VD_NOMEM, "out of memory");
	if (parser->token == TOKEN_NOT) {
		requirement.operator_kind = OPERATOR_NOT_EXISTS;
		token_advance(parser);
	}
	if (value_token(parser) != TOKEN_IDENTIFIER)
		return requirement_error(parser, "found '%.*s', expected: identifier",
					 LITERAL(parser->literal));
	requirement.key = parser->literal;
	if (!vdi_label_key_valid(requirement.key, reason, sizeof reason)) {
		quote_go(requirement.key, quoted, sizeof quoted);
		/* Upstream prints the path of the field, which is nil here. */
		return requirement_error(parser, "<nil>: Invalid value: %s: %s", quoted, reason);
	}
	token_advance(parser);
	if (requirement.operator_kind != OPERATOR_NOT_EXISTS && parser->token != TOKEN_END &&
	    parser->token != TOKEN_COMMA) {
		VDI_TRY(operator_parse(parser, &requirement.operator_kind));
		if (requirement.operator_kind == OPERATOR_IN || requirement.operator_kind == OPERATOR_NOT_IN)
			VDI_TRY(set_parse(parser, requirement.value_first));
		else
			VDI_TRY(exact_parse(parser));
		VDI_TRY(values_check(parser, &requirement));
	}
	parser->requirements[parser->requirement_count++] = requirement;
	return VD_OK;
}

static vd_status selector_parse(struct parser *parser)
{
	token_advance(parser);
	if (parser->token == TOKEN_END)
		return VD_OK;
	if (value_token(parser) != TOKEN_IDENTIFIER && parser->token != TOKEN_NOT)
		return vd_error_set(parser->reterr, VD_BAD_REQUEST,
				    "found '%.*s', expected: !, identifier, or 'end of string'",
				    LITERAL(parser->literal));
	for (;;) {
		VDI_TRY(requirement_parse(parser));
		if (parser->token == TOKEN_END)
			return VD_OK;
		if (parser->token != TOKEN_COMMA)
			return vd_error_set(parser->reterr, VD_BAD_REQUEST,
					    "found '%.*s', expected: ',' or 'end of string'",
					    LITERAL(parser->literal));
		token_advance(parser);
		if (value_token(parser) != TOKEN_IDENTIFIER && parser->token != TOKEN_NOT)
			return vd_error_set(parser->reterr, VD_BAD_REQUEST,
					    "found '%.*s', expected: identifier after ','",
					    LITERAL(parser->literal));
	}
}

/* Orders by key, and equal keys by their order in the text, which is that of the addresses. */
static int requirements_order(const void *a, const void *b)
{
	const struct parsed *left = a;
	const struct parsed *right = b;
	int		     order = vd_bytes_compare(left->key, right->key);

	return order ? order : ((const char *) left->key.data > (const char *) right->key.data) * 2 - 1;
}

static const char *operator_text(enum operator operator_kind)
{
	switch (operator_kind) {
	case OPERATOR_EQUALS: return "=";
	case OPERATOR_DOUBLE_EQUALS: return "==";
	case OPERATOR_IN: return " in (";
	case OPERATOR_NOT_EQUALS: return "!=";
	case OPERATOR_NOT_IN: return " notin (";
	case OPERATOR_GREATER: return ">";
	case OPERATOR_LESS: return "<";
	default: return "";
	}
}

static void put(char **at, const void *data, size_t size)
{
	if (size)
		memcpy(*at, data, size);
	*at += size;
}

/* Returns the size of the text around a requirement's key and values, and between the values. */
static size_t frame_size(const struct parsed *requirement)
{
	return strlen(operator_text(requirement->operator_kind)) +
	       (requirement->operator_kind == OPERATOR_NOT_EXISTS) +
	       (requirement->value_count ? requirement->value_count - 1 : 0) +
	       (requirement->operator_kind == OPERATOR_IN || requirement->operator_kind == OPERATOR_NOT_IN);
}

static size_t text_measure(const struct parser *parser)
{
	size_t size = parser->requirement_count ? parser->requirement_count - 1 : 0;

	for (size_t i = 0; i < parser->requirement_count; i++) {
		const struct parsed *requirement = &parser->requirements[i];

		size += requirement->key.size + frame_size(requirement);
		for (size_t k = 0; k < requirement->value_count; k++)
			size += parser->values[requirement->value_first + k].size;
	}
	return size;
}

static inline struct value *values_of(const struct vdi_label_selector *selector)
{
	return (struct value *) (uintptr_t) (selector->requirements + selector->requirement_count);
}

static inline char *text_of(const struct vdi_label_selector *selector)
{
	return (char *) (values_of(selector) + selector->value_count);
}

/* Writes a requirement at *at, and its values as the next values. */
static void requirement_write(const struct parser *parser, const struct parsed *parsed,
			      struct vdi_label_selector *selector, struct requirement *requirement, char **at)
{
	const char   *text = operator_text(parsed->operator_kind);
	struct value *values = values_of(selector);

	if (parsed->operator_kind == OPERATOR_NOT_EXISTS)
		put(at, "!", 1);
	*requirement = (struct requirement) { .key_at = (uint32_t) (*at - text_of(selector)),
					      .key_size = (uint16_t) parsed->key.size,
					      .operator_kind = (uint8_t) parsed->operator_kind,
					      .value_first = (uint16_t) parsed->value_first,
					      .value_count = (uint16_t) parsed->value_count };
	put(at, parsed->key.data, parsed->key.size);
	put(at, text, strlen(text));
	for (size_t k = parsed->value_first; k < parsed->value_first + parsed->value_count; k++) {
		if (k > parsed->value_first)
			put(at, ",", 1);
		values[k].at = (uint32_t) (*at - text_of(selector)) & 0xFFFFFF;
		values[k].size = (uint8_t) parser->values[k].size;
		put(at, parser->values[k].data, parser->values[k].size);
	}
	if (parsed->operator_kind == OPERATOR_IN || parsed->operator_kind == OPERATOR_NOT_IN)
		put(at, ")", 1);
}

static vd_status selector_write(const struct parser *parser, struct vdi_label_selector **ret_selector)
{
	size_t			   text_size = text_measure(parser);
	struct vdi_label_selector *selector =
		vdi_alloc(sizeof *selector + parser->requirement_count * sizeof selector->requirements[0] +
			  parser->value_count * sizeof(struct value) + text_size);
	char *at;

	if (selector == NULL)
		return VD_NOMEM;
	*selector = (struct vdi_label_selector) { (uint32_t) text_size, (uint16_t) parser->requirement_count,
						  (uint16_t) parser->value_count, 0 };
	at = text_of(selector);
	for (size_t i = 0; i < parser->requirement_count; i++) {
		if (i)
			put(&at, ",", 1);
		requirement_write(parser, &parser->requirements[i], selector, &selector->requirements[i],
				  &at);
		selector->needed_count += !vdi_label_selector_takes(selector, i, NULL);
	}
	VDI_CHECK(at == text_of(selector) + text_size);
	*ret_selector = selector;
	return VD_OK;
}

vd_status vdi_label_selector_parse(struct vd_bytes text, struct vdi_label_selector **ret_selector,
				   struct vd_error *reterr)
{
	struct parser parser = { .reterr = reterr };
	vd_status     status;

	if (text.size > VDI_SELECTOR_SIZE_MAX)
		return vd_error_set(reterr, VD_BAD_REQUEST, "label selector of %zu bytes is longer than %zu",
				    text.size, VDI_SELECTOR_SIZE_MAX);
	parser.at = text.size ? text.data : "";
	parser.end = parser.at + text.size;
	status = selector_parse(&parser);
	if (status == VD_OK) {
		if (parser.requirement_count > 1)
			qsort(parser.requirements, parser.requirement_count, sizeof *parser.requirements,
			      requirements_order);
		status = selector_write(&parser, ret_selector);
		if (status != VD_OK)
			(void) vd_error_set(reterr, status, "out of memory");
	}
	vdi_free(parser.requirements);
	vdi_free(parser.values);
	return status;
}

struct vdi_label_selector *vdi_label_selector_free(struct vdi_label_selector *selector)
{
	vdi_free(selector);
	return NULL;
}

size_t vdi_label_selector_size(const struct vdi_label_selector *selector)
{
	return selector ? (size_t) (text_of(selector) + selector->text_size - (const char *) selector) : 0;
}

static inline struct vd_bytes value_at(const struct vdi_label_selector *selector, size_t index)
{
	struct value value = values_of(selector)[index];

	return (struct vd_bytes) { text_of(selector) + value.at, value.size };
}

static bool requirement_has_value(const struct vdi_label_selector *selector,
				  const struct requirement *requirement, struct vd_bytes value)
{
	size_t low = requirement->value_first;
	size_t high = low + requirement->value_count;

	if (requirement->value_count == 1)
		return vd_bytes_equal(value_at(selector, low), value);
	while (low < high) {
		size_t middle = (low + high) / 2;
		int    order = vd_bytes_compare(value_at(selector, middle), value);

		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* The value was validated as a number by the parser. */
static int64_t bound_of(const struct vdi_label_selector *selector, const struct requirement *requirement)
{
	int64_t bound = 0;

	(void) number_parse(value_at(selector, requirement->value_first), &bound);
	return bound;
}

bool vdi_label_selector_takes(const struct vdi_label_selector *selector, size_t index,
			      const struct vd_bytes *value)
{
	const struct requirement *requirement = &selector->requirements[index];
	int64_t			  number;

	switch ((enum operator) requirement->operator_kind) {
	case OPERATOR_EQUALS:
	case OPERATOR_DOUBLE_EQUALS:
	case OPERATOR_IN: return value && requirement_has_value(selector, requirement, *value);
	case OPERATOR_NOT_EQUALS:
	case OPERATOR_NOT_IN: return !value || !requirement_has_value(selector, requirement, *value);
	case OPERATOR_EXISTS: return value != NULL;
	case OPERATOR_NOT_EXISTS: return value == NULL;
	case OPERATOR_GREATER:
		return value && number_parse(*value, &number) && number > bound_of(selector, requirement);
	case OPERATOR_LESS:
		return value && number_parse(*value, &number) && number < bound_of(selector, requirement);
	}
	VDI_UNREACHABLE("label operator");
}

/* Returns the first requirement on this key; requirement_count if there is none. */
static size_t find_key(const struct vdi_label_selector *selector, struct vd_bytes key)
{
	size_t low = 0, high = selector->requirement_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (vd_bytes_compare(vdi_label_selector_key(selector, middle), key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < selector->requirement_count &&
			       vd_bytes_equal(vdi_label_selector_key(selector, low), key) ?
		       low :
		       selector->requirement_count;
}

static struct vd_pair label_of(const struct vd_object *object, const struct vd_pair *labels, size_t index)
{
	return object ? vd_object_label(object, index) : labels[index];
}

/* Matches object or, if it is NULL, labels. Evaluates the requirements of present labels, and counts the
 * requirements that fail if their label is absent. */
static bool matches(const struct vdi_label_selector *selector, const struct vd_object *object,
		    const struct vd_pair *labels, size_t label_count)
{
	unsigned char seen[VDI_SELECTOR_REQUIREMENTS_MAX / 8 + 1] = { 0 };
	size_t	      needed = selector->needed_count;

	for (size_t k = 0; k < label_count; k++) {
		struct vd_pair label = label_of(object, labels, k);
		size_t	       i = find_key(selector, label.key);

		if (i == selector->requirement_count || (seen[i / 8] & 1u << i % 8))
			continue;
		seen[i / 8] |= (unsigned char) (1u << i % 8);
		for (; i < selector->requirement_count &&
		       vd_bytes_equal(vdi_label_selector_key(selector, i), label.key);
		     i++) {
			if (!vdi_label_selector_takes(selector, i, &label.value))
				return false;
			needed -= !vdi_label_selector_takes(selector, i, NULL);
		}
	}
	return needed == 0;
}

bool vdi_label_selector_matches(const struct vdi_label_selector *selector, const struct vd_pair *labels,
				size_t label_count)
{
	return selector == NULL || matches(selector, NULL, labels, label_count);
}

bool vdi_label_selector_matches_object(const struct vdi_label_selector *selector,
				       const struct vd_object	       *object)
{
	return selector == NULL || matches(selector, object, NULL, vd_object_label_count(object));
}

bool vdi_label_selector_empty(const struct vdi_label_selector *selector)
{
	return selector == NULL || selector->requirement_count == 0;
}

bool vdi_label_selector_exact(const struct vdi_label_selector *selector, struct vd_bytes key,
			      struct vd_bytes *ret_value)
{
	for (size_t i = 0; selector && i < selector->requirement_count; i++) {
		const struct requirement *requirement = &selector->requirements[i];

		if (!vd_bytes_equal(vdi_label_selector_key(selector, i), key))
			continue;
		if (requirement->operator_kind > OPERATOR_IN || requirement->value_count != 1)
			return false;
		*ret_value = value_at(selector, requirement->value_first);
		return true;
	}
	return false;
}

size_t vdi_label_selector_count(const struct vdi_label_selector *selector)
{
	return selector ? selector->requirement_count : 0;
}

struct vd_bytes vdi_label_selector_key(const struct vdi_label_selector *selector, size_t index)
{
	return (struct vd_bytes) { text_of(selector) + selector->requirements[index].key_at,
				   selector->requirements[index].key_size };
}

struct vd_bytes vdi_label_selector_text(const struct vdi_label_selector *selector)
{
	return selector ? (struct vd_bytes) { text_of(selector), selector->text_size } : VD_BYTES_NONE;
}

uint64_t vdi_label_selector_hash(const struct vdi_label_selector *selector)
{
	return vdi_hash_bytes(selector ? (struct vd_bytes) { text_of(selector), selector->text_size } :
					 vd_bytes_of(""),
			      vdi_hash_seed());
}
