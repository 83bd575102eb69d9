/* Label and field selectors: parsed once, immutable.
 *
 * A selector may be used from any thread; nothing blocks; matching allocates nothing. Bounds:
 * VDI_SELECTOR_SIZE_MAX bytes of text and VDI_SELECTOR_REQUIREMENTS_MAX requirements. Rules,
 * Mirrors k8s.io/apimachinery pkg/labels/selector.go and pkg/fields/selector.go, error texts
 * included.
 *
 * One lies in one block without pointers, its text written once with all keys and values in it: a predicate
 * has copies in its own block (predicate.h).
 */
#ifndef VDI_SELECTOR_H
#define VDI_SELECTOR_H

#include <vedette/codec.h>

#include "base.h"

#define VDI_SELECTOR_SIZE_MAX ((size_t) 64 << 10)
#define VDI_SELECTOR_REQUIREMENTS_MAX 1000

/* ---- Labels ---- */

struct vdi_label_selector;

/* An empty text, or one of white space, gives the selector that matches everything. VD_BAD_REQUEST with
 * upstream's text, such as `unable to parse requirement: found '', expected: identifier`; VD_NOMEM. Text is
 * copied. */
VD_MUST_USE vd_status vdi_label_selector_parse(struct vd_bytes text, struct vdi_label_selector **ret_selector,
					       struct vd_error *reterr);
/* NULL is fine; returns NULL. */
struct vdi_label_selector *vdi_label_selector_free(struct vdi_label_selector *selector);
/* Of the block: so many bytes elsewhere, where an uint32_t may lie, are the same selector. */
size_t vdi_label_selector_size(const struct vdi_label_selector *selector);

/* Whether an object with these labels is selected. NULL selects everything. The cost grows with the
 * number of labels, and with the logarithm of the number of requirements: a client chooses both. Of a label
 * that is there twice the first one counts. */
bool vdi_label_selector_matches(const struct vdi_label_selector *selector, const struct vd_pair *labels,
				size_t label_count);
/* The same of an object's labels. */
bool vdi_label_selector_matches_object(const struct vdi_label_selector *selector,
				       const struct vd_object	       *object);
/* Selects everything. NULL does. */
bool vdi_label_selector_empty(const struct vdi_label_selector *selector);
/* The one value that a label must have: the first requirement on key is `=`, `==`, or `in` with one
 * value. *ret_value is good while the selector is. */
bool vdi_label_selector_exact(const struct vdi_label_selector *selector, struct vd_bytes key,
			      struct vd_bytes *ret_value);
/* Requirements are in the order of their keys; of equal keys in the order of the text. NULL has none. */
size_t		vdi_label_selector_count(const struct vdi_label_selector *selector);
struct vd_bytes vdi_label_selector_key(const struct vdi_label_selector *selector, size_t index);
/* Whether requirement `index` takes this value of its label. NULL: there is no such label. */
bool vdi_label_selector_takes(const struct vdi_label_selector *selector, size_t index,
			      const struct vd_bytes *value);
/* Upstream's String(): requirements sorted by key, values sorted. Selectors with the same text select the
 * same. */
struct vd_bytes vdi_label_selector_text(const struct vdi_label_selector *selector);
/* Of the text, for grouping. Equal texts have equal hashes. */
uint64_t vdi_label_selector_hash(const struct vdi_label_selector *selector);

/* ---- Fields ---- */

struct vdi_field_term {
	struct vd_bytes field;
	struct vd_bytes value;	 /* unescaped */
	bool		negated; /* != */
};

/* For the two inline functions below; text and places are field_selector.c's. */
struct vdi_field_selector {
	uint32_t text_size;
	uint32_t plain_size; /* of what lies behind the text */
	uint32_t term_count;
	struct vdi_field_place {
		uint32_t field_at;
		uint32_t field_size;
		uint32_t value_at;
		uint32_t value_size : 31;
		uint32_t negated : 1;
	} places[];
};

/* The value of the field called name; what is absent reads as empty. The slice is good for the call that
 * asks. */
typedef struct vd_bytes (*vdi_field_get_fn)(const void *arg, struct vd_bytes name);

/* As for labels. VD_BAD_REQUEST such as `invalid selector: 'a'; can't understand 'a'`. Which fields exist is
 * for the caller to check. */
VD_MUST_USE vd_status vdi_field_selector_parse(struct vd_bytes text, struct vdi_field_selector **ret_selector,
					       struct vd_error *reterr);
struct vdi_field_selector *vdi_field_selector_free(struct vdi_field_selector *selector);
size_t			   vdi_field_selector_size(const struct vdi_field_selector *selector);

bool vdi_field_selector_matches(const struct vdi_field_selector *selector, vdi_field_get_fn get,
				const void *arg);
/* The same over an array of names and values. */
bool vdi_field_selector_matches_pairs(const struct vdi_field_selector *selector, const struct vd_pair *fields,
				      size_t field_count);
bool vdi_field_selector_empty(const struct vdi_field_selector *selector);
/* The value of the first `=` or `==` term on name. */
bool vdi_field_selector_exact(const struct vdi_field_selector *selector, struct vd_bytes name,
			      struct vd_bytes *ret_value);
/* In the order of the text of the terms. A caller that matches often binds the names to its own numbers once
 * and walks these. NULL has none. */
static inline size_t vdi_field_selector_count(const struct vdi_field_selector *selector)
{
	return selector ? selector->term_count : 0;
}
static inline struct vdi_field_term vdi_field_selector_term(const struct vdi_field_selector *selector,
							    size_t			     index)
{
	const struct vdi_field_place *place = &selector->places[index];
	const char		     *text = (const char *) (selector->places + selector->term_count);

	return (struct vdi_field_term) { { text + place->field_at, place->field_size },
					 { text + place->value_at, place->value_size },
					 place->negated };
}
struct vd_bytes vdi_field_selector_text(const struct vdi_field_selector *selector);
uint64_t	vdi_field_selector_hash(const struct vdi_field_selector *selector);

/* ---- Names, as k8s.io/apimachinery pkg/api/validate/content has them ---- */

/* A label key: [ DNS subdomain "/" ] name. On false the reasons, joined by "; ", are in message (cut to its
 * size; size may be 0). */
bool vdi_label_key_valid(struct vd_bytes key, char *message, size_t size);
bool vdi_label_value_valid(struct vd_bytes value, char *message, size_t size);

#endif
