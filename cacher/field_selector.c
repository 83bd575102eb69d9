/* Field selectors: terms `name=value`, `name==value`, `name!=value` with commas between; `\\`, `\,` and `\=` in values.
 *
 * As upstream (k8s.io/apimachinery pkg/fields/selector.go) the terms are sorted by their text before they are parsed, so which error is told of
 * several, and the canonical text, do not depend on their order. A term with empty name and empty value is dropped. Terms point into one
 * block: the unescaped values are never longer than the text.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "selector.h"

struct vdi_field_selector {
	atomic_uint	       references;
	uint64_t	       hash;
	char		      *source; /* the text; values are unescaped in place */
	char		      *text;
	size_t		       text_size;
	struct vdi_field_term *terms;
	size_t		       term_count;
	size_t		       term_capacity;
};

struct parts {
	struct vd_bytes *parts;
	size_t		 count;
	size_t		 capacity;
};

static vd_status part_append(struct parts *parts, const char *start, const char *end, struct vd_error *reterr)
{
	if (start == end)
		return VD_OK; /* empty terms mean nothing */
	if (parts->count == VDI_SELECTOR_REQUIREMENTS_MAX)
		return vd_error_set(reterr, VD_BAD_REQUEST, "field selector has more than %d terms", VDI_SELECTOR_REQUIREMENTS_MAX);
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

/* Unescapes value where it stands. */
static vd_status value_unescape(struct vd_bytes *value, struct vd_error *reterr)
{
	char  *text = (char *) (uintptr_t) value->data;
	size_t written = 0;

	for (size_t i = 0; i < value->size; i++) {
		if (text[i] == '=') /* the number is what upstream prints for the character */
			return vd_error_set(reterr, VD_BAD_REQUEST, "invalid field selector: unescaped character in value: %d", text[i]);
		if (text[i] == '\\') {
			if (++i == value->size)
				return vd_error_set(reterr, VD_BAD_REQUEST, "invalid field selector: invalid escape sequence: \\");
			if (text[i] != '\\' && text[i] != ',' && text[i] != '=') {
				size_t length = 1;

				while (i + length < value->size && ((unsigned char) text[i + length] & 0xC0) == 0x80)
					length++;
				return vd_error_set(reterr, VD_BAD_REQUEST, "invalid field selector: invalid escape sequence: \\%.*s",
						    (int) VDI_MIN(length, (size_t) 4), text + i);
			}
		}
		text[written++] = text[i];
	}
	value->size = written;
	return VD_OK;
}

static vd_status term_parse(struct vdi_field_selector *selector, struct vd_bytes whole, struct vd_bytes part, struct vd_error *reterr)
{
	const char	     *text = part.data;
	struct vdi_field_term term = { 0 };
	size_t		      i = 0;
	size_t		      after;

	while (i < part.size && text[i] != '=' && (text[i] != '!' || i + 1 == part.size || text[i + 1] != '='))
		i++;
	if (i == part.size)
		return vd_error_set(reterr, VD_BAD_REQUEST, "invalid selector: '%.*s'; can't understand '%.*s'",
				    (int) VDI_MIN(whole.size, (size_t) 150), (const char *) whole.data,
				    (int) VDI_MIN(part.size, (size_t) 150), text);
	term.negated = text[i] == '!';
	after = i + (term.negated || (i + 1 < part.size && text[i + 1] == '=') ? 2 : 1);
	term.field = (struct vd_bytes) { text, i };
	term.value = (struct vd_bytes) { text + after, part.size - after };
	VDI_TRY(value_unescape(&term.value, reterr));
	if (term.field.size == 0 && term.value.size == 0)
		return VD_OK;
	if (!vdi_grow((void **) &selector->terms, &selector->term_capacity, selector->term_count + 1, sizeof *selector->terms))
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	selector->terms[selector->term_count++] = term;
	return VD_OK;
}

static vd_status text_write(struct vdi_field_selector *selector, size_t source_size)
{
	size_t most = 1;
	char  *at;

	for (size_t i = 0; i < selector->term_count; i++)
		most += selector->terms[i].field.size + 2 * selector->terms[i].value.size + 3;
	selector->text = vdi_alloc(most);
	if (selector->text == NULL)
		return VD_NOMEM;
	at = selector->text;
	for (size_t i = 0; i < selector->term_count; i++) {
		const struct vdi_field_term *term = &selector->terms[i];
		const char		    *value = term->value.data;

		if (i)
			*at++ = ',';
		memcpy(at, term->field.data, term->field.size);
		at += term->field.size;
		if (term->negated)
			*at++ = '!';
		*at++ = '=';
		for (size_t k = 0; k < term->value.size; k++) {
			if (value[k] == '\\' || value[k] == ',' || value[k] == '=')
				*at++ = '\\';
			*at++ = value[k];
		}
	}
	selector->text_size = (size_t) (at - selector->text);
	selector->hash = XXH3_64bits(selector->text, selector->text_size);
	if (selector->text_size == source_size && memcmp(selector->text, selector->source, source_size) == 0) {
		vdi_free(selector->text);
		selector->text = selector->source;
	}
	return VD_OK;
}

vd_status vdi_field_selector_parse(struct vd_bytes text, struct vdi_field_selector **ret_selector, struct vd_error *reterr)
{
	struct vdi_field_selector *selector;
	struct parts		   parts = { 0 };
	vd_status		   status;

	if (text.size > VDI_SELECTOR_SIZE_MAX)
		return vd_error_set(reterr, VD_BAD_REQUEST, "field selector of %zu bytes is longer than %zu", text.size, VDI_SELECTOR_SIZE_MAX);
	selector = VDI_NEW(struct vdi_field_selector);
	if (selector == NULL || (selector->source = vdi_strndup(text.size ? text.data : "", text.size)) == NULL) {
		vdi_free(selector);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	atomic_init(&selector->references, 1);
	status = text_split(selector->source, text.size, &parts, reterr);
	if (status == VD_OK && parts.count > 1)
		qsort(parts.parts, parts.count, sizeof *parts.parts, parts_order);
	for (size_t i = 0; status == VD_OK && i < parts.count; i++)
		status = term_parse(selector, text, parts.parts[i], reterr);
	vdi_free(parts.parts);
	if (status == VD_OK) {
		status = vdi_shrink((void **) &selector->terms, &selector->term_capacity, selector->term_count, sizeof *selector->terms) ? VD_OK : VD_NOMEM;
		if (status == VD_OK)
			status = text_write(selector, text.size);
		if (status != VD_OK)
			(void) vd_error_set(reterr, status, "out of memory");
	}
	if (status != VD_OK) {
		vdi_field_selector_unref(selector);
		return status;
	}
	*ret_selector = selector;
	return VD_OK;
}

struct vdi_field_selector *vdi_field_selector_ref(struct vdi_field_selector *selector)
{
	if (selector)
		atomic_fetch_add_explicit(&selector->references, 1, memory_order_relaxed);
	return selector;
}

struct vdi_field_selector *vdi_field_selector_unref(struct vdi_field_selector *selector)
{
	if (selector && atomic_fetch_sub_explicit(&selector->references, 1, memory_order_acq_rel) == 1) {
		if (selector->text != selector->source)
			vdi_free(selector->text);
		vdi_free(selector->source);
		vdi_free(selector->terms);
		vdi_free(selector);
	}
	return NULL;
}

bool vdi_field_selector_matches(const struct vdi_field_selector *selector, vdi_field_get_fn get, const void *arg)
{
	for (size_t i = 0; selector && i < selector->term_count; i++) {
		const struct vdi_field_term *term = &selector->terms[i];

		if (vd_bytes_equal(get(arg, term->field), term->value) == term->negated)
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

bool vdi_field_selector_matches_pairs(const struct vdi_field_selector *selector, const struct vd_pair *fields, size_t field_count)
{
	struct pairs pairs = { fields, field_count };

	return vdi_field_selector_matches(selector, pairs_get, &pairs);
}

bool vdi_field_selector_empty(const struct vdi_field_selector *selector)
{
	return selector == NULL || selector->term_count == 0;
}

bool vdi_field_selector_exact(const struct vdi_field_selector *selector, struct vd_bytes name, struct vd_bytes *ret_value)
{
	for (size_t i = 0; selector && i < selector->term_count; i++) {
		if (!selector->terms[i].negated && vd_bytes_equal(selector->terms[i].field, name)) {
			*ret_value = selector->terms[i].value;
			return true;
		}
	}
	return false;
}

const struct vdi_field_term *vdi_field_selector_terms(const struct vdi_field_selector *selector, size_t *ret_count)
{
	*ret_count = selector ? selector->term_count : 0;
	return selector ? selector->terms : NULL;
}

struct vd_bytes vdi_field_selector_text(const struct vdi_field_selector *selector)
{
	return selector ? (struct vd_bytes) { selector->text, selector->text_size } : VD_BYTES_NONE;
}

uint64_t vdi_field_selector_hash(const struct vdi_field_selector *selector)
{
	return selector ? selector->hash : XXH3_64bits("", 0);
}
