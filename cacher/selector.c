/* Label selectors: the parser and the matcher. Field selectors are in field_selector.c.
 *
 * The parser follows upstream's state by state (k8s.io/apimachinery pkg/labels/selector.go: Lexer, Parser), with its oddities: `in` and
 * `notin` are values where a value is expected; `()` is the set of the empty value; a NUL byte ends the text; `x,` is refused and a text of
 * white space is not. Slices of the finished selector point into its own copy of the text.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "json_text.h"
#include "selector.h"

struct vdi_label_selector {
	atomic_uint		      references;
	uint64_t		      hash;
	char			     *source;
	char			     *text;
	size_t			      text_size;
	struct vdi_label_requirement *requirements;
	size_t			      requirement_count;
	size_t			      requirement_capacity;
	struct vd_bytes		     *values; /* of all requirements */
	size_t			      value_count;
	size_t			      value_capacity;
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
	struct vdi_label_selector *selector;
	const char		  *at;
	const char		  *end;
	enum token		   token; /* the one ahead */
	struct vd_bytes		   literal;
	struct vd_error		  *reterr;
};

static bool is_space(char character)
{
	return character == ' ' || character == '\t' || character == '\r' || character == '\n';
}

static enum token symbol_of(char character)
{
	switch (character) {
	case '=':
		return TOKEN_EQUALS;
	case '!':
		return TOKEN_NOT;
	case '(':
		return TOKEN_OPEN;
	case ')':
		return TOKEN_CLOSE;
	case ',':
		return TOKEN_COMMA;
	case '>':
		return TOKEN_GREATER;
	case '<':
		return TOKEN_LESS;
	default:
		return TOKEN_END;
	}
}

/* Reads the token that comes next into token and literal. */
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
		if (parser->at < parser->end && *parser->at == '='
		    && (parser->token == TOKEN_EQUALS || parser->token == TOKEN_NOT)) {
			parser->token = parser->token == TOKEN_NOT ? TOKEN_NOT_EQUALS : TOKEN_DOUBLE_EQUALS;
			parser->at++;
		}
	} else {
		while (parser->at < parser->end && *parser->at && !is_space(*parser->at) && symbol_of(*parser->at) == TOKEN_END)
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
	/* A NUL right behind a token is gone with it, and what follows is read on. */
	if (parser->token != TOKEN_END && parser->at < parser->end && *parser->at == 0)
		parser->at++;
}

/* The token ahead where a value or key is expected. */
static enum token value_token(const struct parser *parser)
{
	return parser->token == TOKEN_IN || parser->token == TOKEN_NOT_IN ? TOKEN_IDENTIFIER : parser->token;
}

#define LITERAL(bytes) (int) VDI_MIN((bytes).size, (size_t) 200), (const char *) (bytes).data

/* Go's %q. */
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

static vd_status requirement_error(struct parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));
static vd_status requirement_error(struct parser *parser, const char *format, ...)
{
	char	text[VD_ERROR_MESSAGE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return vd_error_set(parser->reterr, VD_BAD_REQUEST, "unable to parse requirement: %s", text);
}

/* snprintf whose cutting is meant. */
static void text_format(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void text_format(char *text, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, size, format, arguments);
	va_end(arguments);
}

static vd_status value_append(struct parser *parser, struct vd_bytes value)
{
	struct vdi_label_selector *selector = parser->selector;

	if (!vdi_grow((void **) &selector->values, &selector->value_capacity, selector->value_count + 1, sizeof *selector->values))
		return vd_error_set(parser->reterr, VD_NOMEM, "out of memory");
	selector->values[selector->value_count++] = value;
	return VD_OK;
}

/* What may stand between parentheses: values, also empty ones, with commas between. The `(` is gone; stops at the `)`. */
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
				return requirement_error(parser, "found '%.*s', expected: ',' or ')'", LITERAL(parser->literal));
		} else if (token == TOKEN_COMMA) {
			if (parser->selector->value_count == first)
				VDI_TRY(value_append(parser, VD_BYTES_NONE));
			if (value_token(parser) == TOKEN_CLOSE)
				return value_append(parser, VD_BYTES_NONE);
			if (value_token(parser) == TOKEN_COMMA)
				VDI_TRY(value_append(parser, VD_BYTES_NONE));
		} else {
			return requirement_error(parser, "found '%.*s', expected: ',', or identifier", LITERAL(literal));
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
	case TOKEN_COMMA:
		VDI_TRY(identifiers_parse(parser, first));
		break;
	case TOKEN_CLOSE:
		VDI_TRY(value_append(parser, VD_BYTES_NONE));
		break;
	default:
		return requirement_error(parser, "found '%.*s', expected: ',', ')' or identifier", LITERAL(parser->literal));
	}
	token_advance(parser); /* the `)` */
	return VD_OK;
}

static vd_status exact_parse(struct parser *parser)
{
	struct vd_bytes literal = parser->literal;

	switch (value_token(parser)) {
	case TOKEN_END:
	case TOKEN_COMMA:
		return value_append(parser, VD_BYTES_NONE);
	case TOKEN_IDENTIFIER:
		token_advance(parser);
		return value_append(parser, literal);
	default:
		return requirement_error(parser, "found '%.*s', expected: identifier", LITERAL(literal));
	}
}

static int values_order(const void *a, const void *b)
{
	return vd_bytes_compare(*(const struct vd_bytes *) a, *(const struct vd_bytes *) b);
}

/* Go's strconv.ParseInt(text, 10, 64). */
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

/* Checks the values of a complete requirement, which start at first, as upstream's NewRequirement does. */
static vd_status values_check(struct parser *parser, struct vdi_label_requirement *requirement, size_t first)
{
	struct vdi_label_selector *selector = parser->selector;
	struct vd_bytes		  *values = selector->values + first;
	size_t			   count = selector->value_count - first;
	size_t			   kept = 0;
	char			   errors[2][VD_ERROR_MESSAGE_SIZE];
	size_t			   error_count = 0;
	char			   quoted[80];
	char			   reason[VD_ERROR_MESSAGE_SIZE];

	if (count > 1)
		qsort(values, count, sizeof *values, values_order);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || !vd_bytes_equal(values[kept - 1], values[i]))
			values[kept++] = values[i];
	selector->value_count = first + kept;
	requirement->value_count = kept;

	if ((requirement->operator_kind == VDI_LABEL_GREATER || requirement->operator_kind == VDI_LABEL_LESS)
	    && !number_parse(values[0], &requirement->bound)) {
		quote_go(values[0], quoted, sizeof quoted);
		text_format(errors[error_count++], sizeof errors[0],
			    "values[0]: Invalid value: %s: for 'Gt', 'Lt' operators, the value must be an integer", quoted);
	}
	for (size_t i = 0; i < kept && error_count < 2; i++) {
		if (vdi_label_value_valid(values[i], reason, sizeof reason))
			continue;
		quote_go(values[i], quoted, sizeof quoted);
		text_format(errors[error_count++], sizeof errors[0], "values[%zu][%.*s]: Invalid value: %s: %s", i,
			 (int) VDI_MIN(requirement->key.size, (size_t) 100), (const char *) requirement->key.data, quoted, reason);
	}
	if (error_count == 0)
		return VD_OK;
	if (error_count == 1)
		return requirement_error(parser, "%s", errors[0]);
	return requirement_error(parser, "[%s, %s]", errors[0], errors[1]);
}

static vd_status operator_parse(struct parser *parser, enum vdi_label_operator *ret_operator)
{
	switch (parser->token) {
	case TOKEN_IN:
		*ret_operator = VDI_LABEL_IN;
		break;
	case TOKEN_EQUALS:
		*ret_operator = VDI_LABEL_EQUALS;
		break;
	case TOKEN_DOUBLE_EQUALS:
		*ret_operator = VDI_LABEL_DOUBLE_EQUALS;
		break;
	case TOKEN_GREATER:
		*ret_operator = VDI_LABEL_GREATER;
		break;
	case TOKEN_LESS:
		*ret_operator = VDI_LABEL_LESS;
		break;
	case TOKEN_NOT_IN:
		*ret_operator = VDI_LABEL_NOT_IN;
		break;
	case TOKEN_NOT_EQUALS:
		*ret_operator = VDI_LABEL_NOT_EQUALS;
		break;
	default:
		return requirement_error(parser, "found '%.*s', expected: in, notin, =, ==, !=, gt, lt", LITERAL(parser->literal));
	}
	token_advance(parser);
	return VD_OK;
}

static vd_status requirement_parse(struct parser *parser)
{
	struct vdi_label_selector   *selector = parser->selector;
	struct vdi_label_requirement requirement = { .operator_kind = VDI_LABEL_EXISTS };
	size_t			     first = selector->value_count;
	char			     reason[VD_ERROR_MESSAGE_SIZE];
	char			     quoted[160];

	if (selector->requirement_count == VDI_SELECTOR_REQUIREMENTS_MAX)
		return vd_error_set(parser->reterr, VD_BAD_REQUEST, "label selector has more than %d requirements",
				    VDI_SELECTOR_REQUIREMENTS_MAX);
	if (!vdi_grow((void **) &selector->requirements, &selector->requirement_capacity, selector->requirement_count + 1,
		      sizeof *selector->requirements))
		return vd_error_set(parser->reterr, VD_NOMEM, "out of memory");
	if (parser->token == TOKEN_NOT) {
		requirement.operator_kind = VDI_LABEL_NOT_EXISTS;
		token_advance(parser);
	}
	if (value_token(parser) != TOKEN_IDENTIFIER)
		return requirement_error(parser, "found '%.*s', expected: identifier", LITERAL(parser->literal));
	requirement.key = parser->literal;
	if (!vdi_label_key_valid(requirement.key, reason, sizeof reason)) {
		quote_go(requirement.key, quoted, sizeof quoted);
		/* Upstream prints the path of the field, of which there is none. */
		return requirement_error(parser, "<nil>: Invalid value: %s: %s", quoted, reason);
	}
	token_advance(parser);
	if (requirement.operator_kind != VDI_LABEL_NOT_EXISTS && parser->token != TOKEN_END && parser->token != TOKEN_COMMA) {
		VDI_TRY(operator_parse(parser, &requirement.operator_kind));
		if (requirement.operator_kind == VDI_LABEL_IN || requirement.operator_kind == VDI_LABEL_NOT_IN)
			VDI_TRY(set_parse(parser, first));
		else
			VDI_TRY(exact_parse(parser));
		VDI_TRY(values_check(parser, &requirement, first));
	}
	selector->requirements[selector->requirement_count++] = requirement;
	return VD_OK;
}

static vd_status selector_parse(struct parser *parser)
{
	token_advance(parser);
	if (parser->token == TOKEN_END)
		return VD_OK;
	if (value_token(parser) != TOKEN_IDENTIFIER && parser->token != TOKEN_NOT)
		return vd_error_set(parser->reterr, VD_BAD_REQUEST, "found '%.*s', expected: !, identifier, or 'end of string'",
				    LITERAL(parser->literal));
	for (;;) {
		VDI_TRY(requirement_parse(parser));
		if (parser->token == TOKEN_END)
			return VD_OK;
		if (parser->token != TOKEN_COMMA)
			return vd_error_set(parser->reterr, VD_BAD_REQUEST, "found '%.*s', expected: ',' or 'end of string'",
					    LITERAL(parser->literal));
		token_advance(parser);
		if (value_token(parser) != TOKEN_IDENTIFIER && parser->token != TOKEN_NOT)
			return vd_error_set(parser->reterr, VD_BAD_REQUEST, "found '%.*s', expected: identifier after ','",
					    LITERAL(parser->literal));
	}
}

/* By key; the same key in the order of the text, which is the order of the addresses. */
static int requirements_order(const void *a, const void *b)
{
	const struct vdi_label_requirement *left = a;
	const struct vdi_label_requirement *right = b;
	int				    order = vd_bytes_compare(left->key, right->key);

	return order ? order : ((const char *) left->key.data > (const char *) right->key.data) * 2 - 1;
}

static const char *operator_text(enum vdi_label_operator operator_kind)
{
	switch (operator_kind) {
	case VDI_LABEL_EQUALS:
		return "=";
	case VDI_LABEL_DOUBLE_EQUALS:
		return "==";
	case VDI_LABEL_IN:
		return " in (";
	case VDI_LABEL_NOT_EQUALS:
		return "!=";
	case VDI_LABEL_NOT_IN:
		return " notin (";
	case VDI_LABEL_GREATER:
		return ">";
	case VDI_LABEL_LESS:
		return "<";
	default:
		return "";
	}
}

static void put(char **at, const void *data, size_t size)
{
	if (size)
		memcpy(*at, data, size);
	*at += size;
}

static vd_status text_write(struct vdi_label_selector *selector, size_t source_size)
{
	size_t most = 1;
	char  *at;

	for (size_t i = 0; i < selector->requirement_count; i++)
		most += selector->requirements[i].key.size + 12;
	for (size_t i = 0; i < selector->value_count; i++)
		most += selector->values[i].size + 1;
	selector->text = vdi_alloc(most);
	if (selector->text == NULL)
		return VD_NOMEM;
	at = selector->text;
	for (size_t i = 0; i < selector->requirement_count; i++) {
		const struct vdi_label_requirement *requirement = &selector->requirements[i];
		const char			   *text = operator_text(requirement->operator_kind);

		if (i)
			put(&at, ",", 1);
		if (requirement->operator_kind == VDI_LABEL_NOT_EXISTS)
			put(&at, "!", 1);
		put(&at, requirement->key.data, requirement->key.size);
		put(&at, text, strlen(text));
		for (size_t k = 0; k < requirement->value_count; k++) {
			if (k)
				put(&at, ",", 1);
			put(&at, requirement->values[k].data, requirement->values[k].size);
		}
		if (requirement->operator_kind == VDI_LABEL_IN || requirement->operator_kind == VDI_LABEL_NOT_IN)
			put(&at, ")", 1);
	}
	selector->text_size = (size_t) (at - selector->text);
	selector->hash = XXH3_64bits(selector->text, selector->text_size);
	/* It was written as we write it, as programs do: one copy is enough. */
	if (selector->text_size == source_size && memcmp(selector->text, selector->source, source_size) == 0) {
		vdi_free(selector->text);
		selector->text = selector->source;
	}
	return VD_OK;
}

vd_status vdi_label_selector_parse(struct vd_bytes text, struct vdi_label_selector **ret_selector, struct vd_error *reterr)
{
	struct vdi_label_selector *selector;
	struct parser		   parser = { .reterr = reterr };
	vd_status		   status;
	size_t			   first = 0;

	if (text.size > VDI_SELECTOR_SIZE_MAX)
		return vd_error_set(reterr, VD_BAD_REQUEST, "label selector of %zu bytes is longer than %zu", text.size, VDI_SELECTOR_SIZE_MAX);
	selector = VDI_NEW(struct vdi_label_selector);
	if (selector == NULL || (selector->source = vdi_strndup(text.size ? text.data : "", text.size)) == NULL) {
		vdi_free(selector);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	atomic_init(&selector->references, 1);
	parser.selector = selector;
	parser.at = selector->source;
	parser.end = selector->source + text.size;
	status = selector_parse(&parser);
	/* Selectors live as long as their watches. */
	if (status == VD_OK &&
	    (!vdi_shrink((void **) &selector->requirements, &selector->requirement_capacity, selector->requirement_count, sizeof *selector->requirements) ||
	     !vdi_shrink((void **) &selector->values, &selector->value_capacity, selector->value_count, sizeof *selector->values)))
		status = vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (status == VD_OK) {
		/* The array of values has stopped moving. */
		for (size_t i = 0; i < selector->requirement_count; i++) {
			selector->requirements[i].values = selector->value_count ? selector->values + first : NULL;
			first += selector->requirements[i].value_count;
		}
		if (selector->requirement_count > 1)
			qsort(selector->requirements, selector->requirement_count, sizeof *selector->requirements, requirements_order);
		status = text_write(selector, text.size);
		if (status != VD_OK)
			(void) vd_error_set(reterr, status, "out of memory");
	}
	if (status != VD_OK) {
		vdi_label_selector_unref(selector);
		return status;
	}
	*ret_selector = selector;
	return VD_OK;
}

struct vdi_label_selector *vdi_label_selector_ref(struct vdi_label_selector *selector)
{
	if (selector)
		atomic_fetch_add_explicit(&selector->references, 1, memory_order_relaxed);
	return selector;
}

struct vdi_label_selector *vdi_label_selector_unref(struct vdi_label_selector *selector)
{
	if (selector && atomic_fetch_sub_explicit(&selector->references, 1, memory_order_acq_rel) == 1) {
		if (selector->text != selector->source)
			vdi_free(selector->text);
		vdi_free(selector->source);
		vdi_free(selector->requirements);
		vdi_free(selector->values);
		vdi_free(selector);
	}
	return NULL;
}

static bool requirement_has_value(const struct vdi_label_requirement *requirement, struct vd_bytes value)
{
	size_t low = 0;
	size_t high = requirement->value_count;

	if (high == 1)
		return vd_bytes_equal(requirement->values[0], value);
	while (low < high) {
		size_t middle = (low + high) / 2;
		int    order = vd_bytes_compare(requirement->values[middle], value);

		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

bool vdi_label_requirement_matches(const struct vdi_label_requirement *requirement, const struct vd_pair *labels, size_t label_count)
{
	const struct vd_bytes *value = NULL;
	int64_t		       number;

	for (size_t i = 0; i < label_count; i++) {
		if (vd_bytes_equal(labels[i].key, requirement->key)) {
			value = &labels[i].value;
			break;
		}
	}
	switch (requirement->operator_kind) {
	case VDI_LABEL_EQUALS:
	case VDI_LABEL_DOUBLE_EQUALS:
	case VDI_LABEL_IN:
		return value && requirement_has_value(requirement, *value);
	case VDI_LABEL_NOT_EQUALS:
	case VDI_LABEL_NOT_IN:
		return !value || !requirement_has_value(requirement, *value);
	case VDI_LABEL_EXISTS:
		return value != NULL;
	case VDI_LABEL_NOT_EXISTS:
		return value == NULL;
	case VDI_LABEL_GREATER:
		return value && number_parse(*value, &number) && number > requirement->bound;
	case VDI_LABEL_LESS:
		return value && number_parse(*value, &number) && number < requirement->bound;
	}
	VDI_UNREACHABLE("label operator");
}

bool vdi_label_selector_matches(const struct vdi_label_selector *selector, const struct vd_pair *labels, size_t label_count)
{
	if (selector == NULL)
		return true;
	for (size_t i = 0; i < selector->requirement_count; i++)
		if (!vdi_label_requirement_matches(&selector->requirements[i], labels, label_count))
			return false;
	return true;
}

bool vdi_label_selector_empty(const struct vdi_label_selector *selector)
{
	return selector == NULL || selector->requirement_count == 0;
}

bool vdi_label_selector_exact(const struct vdi_label_selector *selector, struct vd_bytes key, struct vd_bytes *ret_value)
{
	for (size_t i = 0; selector && i < selector->requirement_count; i++) {
		const struct vdi_label_requirement *requirement = &selector->requirements[i];

		if (!vd_bytes_equal(requirement->key, key))
			continue;
		if (requirement->operator_kind > VDI_LABEL_IN || requirement->value_count != 1)
			return false;
		*ret_value = requirement->values[0];
		return true;
	}
	return false;
}

const struct vdi_label_requirement *vdi_label_selector_requirements(const struct vdi_label_selector *selector, size_t *ret_count)
{
	*ret_count = selector ? selector->requirement_count : 0;
	return selector ? selector->requirements : NULL;
}

struct vd_bytes vdi_label_selector_text(const struct vdi_label_selector *selector)
{
	return selector ? (struct vd_bytes) { selector->text, selector->text_size } : VD_BYTES_NONE;
}

uint64_t vdi_label_selector_hash(const struct vdi_label_selector *selector)
{
	return selector ? selector->hash : XXH3_64bits("", 0);
}
