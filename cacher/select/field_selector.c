/* Field selectors: terms `name=value`, `name==value`, `name!=value`, separated by commas; `\\`, `\,` and `\=`
 * are escapes in values.
 *
 * As upstream (k8s.io/apimachinery pkg/fields/selector.go), the terms are sorted by their text before they
 * are parsed, so neither the canonical text nor the choice among several errors depends on their order. A
 * term with empty name and empty value is dropped. The parser works on a copy of the text and unescapes
 * values in place. The finished selector refers to its canonical text or, for values that need escapes there,
 * to the bytes after it:
 *
 *   header | terms, 16 bytes each | text | unescaped values
 */
#include <stdio.h>
#include <stdlib.h>

#include "hash.h"
#include "selector.h"

struct terms {
	struct vdi_field_term *terms;
	size_t		       count;
	size_t		       capacity;
};

struct parts {
	struct vd_bytes *parts;
	size_t		 count;
	size_t		 capacity;
};

static vd_status part_append(struct parts *parts, const char *start, const char *end, struct vd_error *reterr)
{
	if (start == end)
		return VD_OK; /* empty terms are ignored */
	if (parts->count == VDI_SELECTOR_REQUIREMENTS_MAX)
		return vd_error_set(reterr, VD_BAD_REQUEST, "field selector has more than %d terms",
				    VDI_SELECTOR_REQUIREMENTS_MAX);
	if (!vdi_grow((void **) &parts->parts, &parts->capacity, parts->count + 1, sizeof *parts->parts))
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	parts->parts[parts->count++] = (struct vd_bytes) { start, (size_t) (end - start) };
	return VD_OK;
}

static vd_status text_split(const char *text, size_t size, struct parts *parts, struct vd_error *reterr)
{
	const char *start = text;

	for (const char *at = text; at < text + size; at++) {
		if (*at == '\\') {
			at++;
		} else if (*at == ',') {
			VDI_TRY(part_append(parts, start, at, reterr));
			start = at + 1;
		}
	}
	return part_append(parts, start, text + size, reterr);
}

static int parts_order(const void *a, const void *b)
{
	return vd_bytes_compare(*(const struct vd_bytes *) a, *(const struct vd_bytes *) b);
}

/* Unescapes value in place. */
static vd_status value_unescape(struct vd_bytes *value, struct vd_error *reterr)
{
	char  *text = (char *) (uintptr_t) value->data;
	size_t written = 0;

	for (size_t i = 0; i < value->size; i++) {
		if (text[i] == '=') /* upstream prints the character's number too */
			return vd_error_set(reterr, VD_BAD_REQUEST,
					    "invalid field selector: unescaped character in value: %d",
					    text[i]);
		if (text[i] == '\\') {
			if (++i == value->size)
				return vd_error_set(reterr, VD_BAD_REQUEST,
						    "invalid field selector: invalid escape sequence: \\");
			if (text[i] != '\\' && text[i] != ',' && text[i] != '=') {
				size_t length = 1;

				while (i + length < value->size &&
				       ((unsigned char) text[i + length] & 0xC0) == 0x80)
					length++;
				return vd_error_set(reterr, VD_BAD_REQUEST,
						    "invalid field selector: invalid escape sequence: \\%.*s",
						    (int) VDI_MIN(length, (size_t) 4), text + i);
			}
		}
		text[written++] = text[i];
	}
	value->size = written;
	return VD_OK;
}

static vd_status term_parse(struct terms *terms, struct vd_bytes whole, struct vd_bytes part,
			    struct vd_error *reterr)
{
	const char	     *text = part.data;
	struct vdi_field_term term = { 0 };
	size_t		      i = 0;
	size_t		      after;

	while (i < part.size && text[i] != '=' &&
	       (text[i] != '!' || i + 1 == part.size || text[i + 1] != '='))
		i++;
	if (i == part.size)
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "invalid selector: '%.*s'; can't understand '%.*s'",
				    (int) VDI_MIN(whole.size, (size_t) 150), (const char *) whole.data,
				    (int) VDI_MIN(part.size, (size_t) 150), text);
	term.negated = text[i] == '!';
	after = i + (term.negated || (i + 1 < part.size && text[i + 1] == '=') ? 2 : 1);
	term.field = (struct vd_bytes) { text, i };
	term.value = (struct vd_bytes) { text + after, part.size - after };
	VDI_TRY(value_unescape(&term.value, reterr));
	if (term.field.size == 0 && term.value.size == 0)
		return VD_OK;
	if (!vdi_grow((void **) &terms->terms, &terms->capacity, terms->count + 1, sizeof *terms->terms))
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	terms->terms[terms->count++] = term;
	return VD_OK;
}

static bool is_escaped(char character)
{
	return character == '\\' || character == ',' || character == '=';
}

static size_t count_escapes(struct vd_bytes value)
{
	const char *text = value.data;
	size_t	    count = 0;

	for (size_t i = 0; i < value.size; i++)
		count += is_escaped(text[i]);
	return count;
}

static inline char *text_of(const struct vdi_field_selector *selector)
{
	return (char *) (uintptr_t) (selector->places + selector->term_count);
}

static void put(char **at, const void *data, size_t size)
{
	if (size)
		memcpy(*at, data, size);
	*at += size;
}

/* Writes the term at *at, and its value at *plain if it differs from the escaped one. */
static void term_write(const struct vdi_field_term *parsed, const char *start, struct vdi_field_place *place,
		       char **at, char **plain)
{
	const char *value = parsed->value.data;

	*place = (struct vdi_field_place) { .field_at = (uint32_t) (*at - start),
					    .field_size = (uint32_t) parsed->field.size,
					    .negated = parsed->negated };
	place->value_size = (uint32_t) parsed->value.size & INT32_MAX;
	put(at, parsed->field.data, parsed->field.size);
	put(at, parsed->negated ? "!=" : "=", parsed->negated ? 2 : 1);
	if (count_escapes(parsed->value) == 0) {
		place->value_at = (uint32_t) (*at - start);
		put(at, value, parsed->value.size);
		return;
	}
	place->value_at = (uint32_t) (*plain - start);
	put(plain, value, parsed->value.size);
	for (size_t i = 0; i < parsed->value.size; i++) {
		if (is_escaped(value[i]))
			put(at, "\\", 1);
		put(at, value + i, 1);
	}
}

static vd_status selector_write(const struct terms *terms, struct vdi_field_selector **ret_selector)
{
	size_t			   text_size = terms->count ? terms->count - 1 : 0;
	size_t			   plain_size = 0;
	struct vdi_field_selector *selector;
	char			  *at, *plain;

	for (size_t i = 0; i < terms->count; i++) {
		const struct vdi_field_term *term = &terms->terms[i];
		size_t			     escapes = count_escapes(term->value);

		text_size += term->field.size + 1 + term->negated + term->value.size + escapes;
		plain_size += escapes ? term->value.size : 0;
	}
	selector = vdi_alloc(sizeof *selector + terms->count * sizeof selector->places[0] + text_size +
			     plain_size);
	if (selector == NULL)
		return VD_NOMEM;
	*selector = (struct vdi_field_selector) { (uint32_t) text_size, (uint32_t) plain_size,
						  (uint32_t) terms->count };
	at = text_of(selector);
	plain = at + text_size;
	for (size_t i = 0; i < terms->count; i++) {
		if (i)
			put(&at, ",", 1);
		term_write(&terms->terms[i], text_of(selector), &selector->places[i], &at, &plain);
	}
	VDI_CHECK(at == text_of(selector) + text_size && plain == at + plain_size);
	*ret_selector = selector;
	return VD_OK;
}

vd_status vdi_field_selector_parse(struct vd_bytes text, struct vdi_field_selector **ret_selector,
				   struct vd_error *reterr)
{
	struct parts parts = { 0 };
	struct terms terms = { 0 };
	char	    *source;
	vd_status    status;

	if (text.size > VDI_SELECTOR_SIZE_MAX)
		return vd_error_set(reterr, VD_BAD_REQUEST, "field selector of %zu bytes is longer than %zu",
				    text.size, VDI_SELECTOR_SIZE_MAX);
	source = vdi_strndup(text.size ? text.data : "", text.size);
	if (source == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	status = text_split(source, text.size, &parts, reterr);
	if (status == VD_OK && parts.count > 1)
		qsort(parts.parts, parts.count, sizeof *parts.parts, parts_order);
	for (size_t i = 0; status == VD_OK && i < parts.count; i++)
		status = term_parse(&terms, text, parts.parts[i], reterr);
	if (status == VD_OK && (status = selector_write(&terms, ret_selector)) != VD_OK)
		(void) vd_error_set(reterr, status, "out of memory");
	vdi_free(parts.parts);
	vdi_free(terms.terms);
	vdi_free(source);
	return status;
}

struct vdi_field_selector *vdi_field_selector_free(struct vdi_field_selector *selector)
{
	vdi_free(selector);
	return NULL;
}

size_t vdi_field_selector_size(const struct vdi_field_selector *selector)
{
	return selector ? (size_t) (text_of(selector) + selector->text_size + selector->plain_size -
				    (const char *) selector) :
			  0;
}

bool vdi_field_selector_matches(const struct vdi_field_selector *selector, vdi_field_get_fn get,
				const void *arg)
{
	for (size_t i = 0; selector && i < selector->term_count; i++) {
		struct vdi_field_term term = vdi_field_selector_term(selector, i);

		if (vd_bytes_equal(get(arg, term.field), term.value) == term.negated)
			return false;
	}
	return true;
}

struct pairs {
	const struct vd_pair *pairs;
	size_t		      count;
};

static struct vd_bytes pairs_get(const void *arg, struct vd_bytes name)
{
	const struct pairs *pairs = arg;

	for (size_t i = 0; i < pairs->count; i++)
		if (vd_bytes_equal(pairs->pairs[i].key, name))
			return pairs->pairs[i].value;
	return VD_BYTES_NONE;
}

bool vdi_field_selector_matches_pairs(const struct vdi_field_selector *selector, const struct vd_pair *fields,
				      size_t field_count)
{
	struct pairs pairs = { fields, field_count };

	return vdi_field_selector_matches(selector, pairs_get, &pairs);
}

bool vdi_field_selector_empty(const struct vdi_field_selector *selector)
{
	return selector == NULL || selector->term_count == 0;
}

bool vdi_field_selector_exact(const struct vdi_field_selector *selector, struct vd_bytes name,
			      struct vd_bytes *ret_value)
{
	for (size_t i = 0; selector && i < selector->term_count; i++) {
		struct vdi_field_term term = vdi_field_selector_term(selector, i);

		if (!term.negated && vd_bytes_equal(term.field, name)) {
			*ret_value = term.value;
			return true;
		}
	}
	return false;
}

struct vd_bytes vdi_field_selector_text(const struct vdi_field_selector *selector)
{
	return selector ? (struct vd_bytes) { text_of(selector), selector->text_size } : VD_BYTES_NONE;
}

uint64_t vdi_field_selector_hash(const struct vdi_field_selector *selector)
{
	return vdi_hash_bytes(selector ? (struct vd_bytes) { text_of(selector), selector->text_size } :
					 vd_bytes_of(""),
			      vdi_hash_seed());
}
