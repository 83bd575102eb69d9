/* What a list or watch asks for: a scope (namespace, name), two selectors and a shard of the objects, parsed and bound to a codec's fields once.
 *
 * Immutable, reference counted, any thread; matching allocates nothing. The scope comes from the request, else from exact requirements on
 * metadata.namespace and metadata.name; the selectors are evaluated in full all the same.
 */
#ifndef VDI_PREDICATE_H
#define VDI_PREDICATE_H

#include <stdatomic.h>

#include <vedette/codec.h>
#include <vedette/watch.h>

#include "base.h"
#include "selector.h"
#include "shard_selector.h"

struct vdi_predicate_options {
	struct vd_bytes namespace_name;
	struct vd_bytes name;
	struct vd_bytes label_selector;
	struct vd_bytes field_selector;
	bool		narrow_scope; /* take namespace and name from the field selector when the request has none */
	bool		cluster_scoped;
	struct vd_bytes shard_selector;
};

#define VDI_TERM_NAME (-1)
#define VDI_TERM_NAMESPACE (-2)
#define VDI_TERM_ABSENT (-3)

struct vdi_predicate {
	_Atomic uint32_t	   references;
	bool			   is_empty; /* all selectors */
	struct vd_bytes		   namespace_name; /* empty: all */
	struct vd_bytes		   name;
	struct vdi_label_selector *labels;
	struct vdi_field_selector *fields;
	struct vdi_shard_selector *shards; /* NULL: all */
	const struct vdi_label_requirement *requirements;
	size_t			   requirement_count;
	const struct vdi_field_term *terms;
	size_t			   term_count;
	uint64_t		   hash; /* equal predicates have equal hashes */
	int			   bound[]; /* per term: the codec's field index or VDI_TERM_; then the scope's text */
};

/* VD_BAD_REQUEST with the selectors' words, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_predicate_new(const struct vd_codec *codec, const struct vdi_predicate_options *options,
					 struct vdi_predicate **ret_predicate, struct vd_error *reterr);
struct vdi_predicate *vdi_predicate_ref(struct vdi_predicate *predicate);
struct vdi_predicate *vdi_predicate_unref(struct vdi_predicate *predicate);

/* Scope, shard and selectors. */
bool vdi_predicate_matches(const struct vdi_predicate *predicate, const struct vd_object *object);
/* Every key of a list's range is wanted, so that counting keys counts objects. */
static inline bool vdi_predicate_takes_all_of_scope(const struct vdi_predicate *predicate)
{
	return predicate->is_empty && predicate->name.size == 0;
}
bool vdi_predicate_equal(const struct vdi_predicate *a, const struct vdi_predicate *b);
/* What a change from old_object to object (either may be NULL) is for this predicate: VD_WATCH_ADDED, _MODIFIED, _DELETED. false:
 * nothing. */
bool vdi_predicate_transition(const struct vdi_predicate *predicate, const struct vd_object *old_object, const struct vd_object *object,
			      enum vd_watch_type *ret_type);
/* The value that the declared field (or the label) must have, if there is exactly one. */
bool vdi_predicate_exact_field(const struct vdi_predicate *predicate, int field_index, struct vd_bytes *ret_value);
bool vdi_predicate_exact_label(const struct vdi_predicate *predicate, struct vd_bytes key, struct vd_bytes *ret_value);

#endif
