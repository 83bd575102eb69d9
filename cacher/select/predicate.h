/* What a list or watch asks for: a scope (namespace, name), two selectors and a shard of the objects, parsed
 * and bound to a codec's fields once.
 *
 * Immutable, reference counted, any thread; matching allocates nothing. The scope comes from the request,
 * else from exact requirements on metadata.namespace and metadata.name; the selectors
 * are evaluated in full all the same.
 *
 * One block holds it, its selectors and its texts, and in front of it there may be room for something that
 * lives with it: a watch group, of which there is one for each selector that nobody else has.
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
	bool narrow_scope; /* take namespace and name from the field selector when the request has none */
	bool cluster_scoped;
	struct vd_bytes shard_selector;
	size_t		room; /* bytes in front of the predicate, zeros; a multiple of 8 */
};

#define VDI_TERM_NAME (-1)
#define VDI_TERM_NAMESPACE (-2)
#define VDI_TERM_UNDECLARED (-3)

#define VDI_PREDICATE_ROOM_MAX ((size_t) 8 * UINT8_MAX)

struct vdi_predicate {
	_Atomic uint32_t references;
	uint32_t	 namespace_size;
	uint64_t	 hash; /* equal predicates have equal hashes */
	uint32_t	 name_size;
	uint32_t	 fields_at; /* in data; 0: none */
	uint32_t	 scope_at;
	uint8_t		 room;	   /* in eights of bytes */
	bool		 is_empty; /* all selectors */
	bool		 has_shards;
	bool		 has_labels;
	/* The shard selector's address, the label selector, for each field term the codec's field index or
	 * VDI_TERM_, the field selector, the scope's text. */
	uint64_t data[];
};

/* VD_BAD_REQUEST with the selectors' words, or a field that the codec does not declare; VD_INVALID_ARGUMENT,
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_predicate_new(const struct vd_codec		    *codec,
					 const struct vdi_predicate_options *options,
					 struct vdi_predicate **ret_predicate, struct vd_error *reterr);
/* Whether vdi_predicate_new would take these selectors. */
VDI_MUST_USE vd_status vdi_predicate_check(const struct vd_codec *codec, struct vd_bytes label_selector,
					   struct vd_bytes field_selector, struct vd_error *reterr);
struct vdi_predicate  *vdi_predicate_ref(struct vdi_predicate *predicate);
struct vdi_predicate  *vdi_predicate_unref(struct vdi_predicate *predicate);

/* What one match costs at most, in comparisons: for those that bound how many they make in a row. */
size_t vdi_predicate_cost(const struct vdi_predicate *predicate);
/* Namespace and name. */
bool vdi_predicate_has_in_scope(const struct vdi_predicate *predicate, const struct vd_object *object);
/* Scope, shard and selectors. */
bool vdi_predicate_matches(const struct vdi_predicate *predicate, const struct vd_object *object);
/* Empty: all. */
static inline struct vd_bytes vdi_predicate_namespace(const struct vdi_predicate *predicate)
{
	return (struct vd_bytes) { (const char *) predicate->data + predicate->scope_at,
				   predicate->namespace_size };
}
static inline struct vd_bytes vdi_predicate_name(const struct vdi_predicate *predicate)
{
	return (struct vd_bytes) { (const char *) predicate->data + predicate->scope_at +
					   predicate->namespace_size,
				   predicate->name_size };
}
/* NULL: all. */
static inline struct vdi_shard_selector *vdi_predicate_shards(const struct vdi_predicate *predicate)
{
	return predicate->has_shards ? (struct vdi_shard_selector *) (uintptr_t) predicate->data[0] : NULL;
}
static inline const struct vdi_label_selector *vdi_predicate_labels(const struct vdi_predicate *predicate)
{
	return predicate->has_labels ?
		       (const struct vdi_label_selector *) (predicate->data + predicate->has_shards) :
		       NULL;
}
static inline const struct vdi_field_selector *vdi_predicate_fields(const struct vdi_predicate *predicate)
{
	return predicate->fields_at ? (const struct vdi_field_selector *) ((const char *) predicate->data +
									   predicate->fields_at) :
				      NULL;
}

/* Every key of a list's range is wanted, so that counting keys counts objects. */
static inline bool vdi_predicate_takes_all_of_scope(const struct vdi_predicate *predicate)
{
	return predicate->is_empty && predicate->name_size == 0;
}
bool vdi_predicate_equal(const struct vdi_predicate *a, const struct vdi_predicate *b);
/* What a change from old_object to object (either may be NULL) is for this predicate:
 * VD_WATCH_ADDED, _MODIFIED, _DELETED. false: nothing. */
bool vdi_predicate_transition(const struct vdi_predicate *predicate, const struct vd_object *old_object,
			      const struct vd_object *object, enum vd_watch_type *ret_type);
/* The value that the declared field (or the label) must have, if there is exactly one. */
bool vdi_predicate_exact_field(const struct vdi_predicate *predicate, int field_index,
			       struct vd_bytes *ret_value);
bool vdi_predicate_exact_label(const struct vdi_predicate *predicate, struct vd_bytes key,
			       struct vd_bytes *ret_value);

#endif
