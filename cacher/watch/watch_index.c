/* Two chained hash tables over the same groups, which store 32 bits of their key and of the last visit.
 * Counters per kind of key let an event skip lookups of kinds that no group is filed under. */
#include "watch_index.h"

#include "hash.h"

enum { KEY_NAME = 1, KEY_LABEL, KEY_NAMESPACE, KEY_EVERYTHING, KEY_FIELD /* + index, last */ };

static uint64_t hash_bytes(struct vd_bytes bytes, uint64_t seed)
{
	return vdi_hash_bytes(bytes, vdi_hash_seed() + seed);
}

static uint32_t key_hash(uint64_t kind, uint64_t namespace_hash, struct vd_bytes value, uint64_t label_hash)
{
	return (uint32_t) hash_bytes(value,
				     kind * UINT64_C(0x9E3779B97F4A7C15) + namespace_hash * 3 + label_hash);
}

static uint64_t namespace_hash(struct vd_bytes namespace_name)
{
	return namespace_name.size ? hash_bytes(namespace_name, 7) : 0;
}

void vdi_watch_index_init(struct vdi_watch_index *index, const struct vd_codec *codec, int trigger_index)
{
	*index =
		(struct vdi_watch_index) { .codec = codec,
					   .trigger_index = trigger_index,
					   .everything_hash = key_hash(KEY_EVERYTHING, 0, VD_BYTES_NONE, 0) };
}

void vdi_watch_index_fini(struct vdi_watch_index *index)
{
	VDI_CHECK(index->group_count == 0);
	vdi_free(index->buckets);
	vdi_free(index->equals);
}

struct vdi_watch_group *vdi_watch_index_find(const struct vdi_watch_index *index,
					     const struct vdi_predicate	  *predicate)
{
	struct vdi_watch_group *group =
		index->bucket_count ? index->equals[predicate->hash & (index->bucket_count - 1)] : NULL;

	while (group && !vdi_predicate_equal(vdi_watch_group_predicate(group), predicate))
		group = group->equal_next;
	return group;
}

static void link_group(struct vdi_watch_group **buckets, struct vdi_watch_group **equals, size_t bucket_count,
		       struct vdi_watch_group *group)
{
	struct vdi_watch_group **bucket = &buckets[group->index_hash & (bucket_count - 1)];
	struct vdi_watch_group **equal = &equals[vdi_watch_group_predicate(group)->hash & (bucket_count - 1)];

	group->index_next = *bucket;
	*bucket = group;
	group->equal_next = *equal;
	*equal = group;
}

static vd_status grow(struct vdi_watch_index *index)
{
	size_t			 count = index->bucket_count ? index->bucket_count * 2 : 64;
	struct vdi_watch_group **buckets = vdi_calloc(count, sizeof(struct vdi_watch_group *));
	struct vdi_watch_group **equals = vdi_calloc(count, sizeof(struct vdi_watch_group *));

	if (buckets == NULL || equals == NULL) {
		vdi_free(buckets);
		vdi_free(equals);
		return VD_NOMEM;
	}
	for (size_t i = 0; i < index->bucket_count; i++)
		for (struct vdi_watch_group *group = index->buckets[i], *next; group; group = next) {
			next = group->index_next;
			link_group(buckets, equals, count, group);
		}
	vdi_free(index->buckets);
	vdi_free(index->equals);
	index->buckets = buckets;
	index->equals = equals;
	index->bucket_count = count;
	return VD_OK;
}

/* Returns the declared field to file under; -1: none has an exact requirement. */
static int filing_field(const struct vdi_watch_index *index, const struct vdi_predicate *predicate,
			struct vd_bytes *ret_value)
{
	if (index->trigger_index >= 0 &&
	    vdi_predicate_exact_field(predicate, index->trigger_index, ret_value))
		return index->trigger_index;
	for (int i = 0; i < (int) VDI_MIN(index->codec->field_count, (size_t) VD_FIELDS_MAX); i++)
		if (vdi_predicate_exact_field(predicate, i, ret_value))
			return i;
	return -1;
}

static bool filing_label(const struct vdi_predicate *predicate, struct vd_bytes *ret_key,
			 struct vd_bytes *ret_value)
{
	const struct vdi_label_selector *labels = vdi_predicate_labels(predicate);

	for (size_t i = 0; i < vdi_label_selector_count(labels); i++) {
		*ret_key = vdi_label_selector_key(labels, i);
		if (vdi_label_selector_exact(labels, *ret_key, ret_value))
			return true;
	}
	return false;
}

/* Chooses the kind of key for the group, sets its filing key, and returns the counter of that kind. */
static size_t *file_group(struct vdi_watch_index *index, struct vdi_watch_group *group)
{
	const struct vdi_predicate *predicate = vdi_watch_group_predicate(group);
	bool			    is_scoped = predicate->namespace_size > 0;
	uint64_t		    scope = namespace_hash(vdi_predicate_namespace(predicate));
	struct vd_bytes		    key;
	struct vd_bytes		    value;
	int			    field;

	if (predicate->name_size) {
		group->index_hash = key_hash(KEY_NAME, scope, vdi_predicate_name(predicate), 0);
		return is_scoped ? &index->names.scoped : &index->names.open;
	}
	field = filing_field(index, predicate, &value);
	if (field >= 0) {
		group->index_hash = key_hash(KEY_FIELD + (uint64_t) field, scope, value, 0);
		return is_scoped ? &index->fields[field].scoped : &index->fields[field].open;
	}
	if (filing_label(predicate, &key, &value)) {
		group->index_hash = key_hash(KEY_LABEL, scope, value, hash_bytes(key, 1));
		return is_scoped ? &index->labels.scoped : &index->labels.open;
	}
	group->index_hash = key_hash(is_scoped ? KEY_NAMESPACE : KEY_EVERYTHING, scope, VD_BYTES_NONE, 0);
	return is_scoped ? &index->namespaces : &index->everything;
}

vd_status vdi_watch_index_add(struct vdi_watch_index *index, struct vdi_watch_group *group)
{
	if (index->group_count >= index->bucket_count && grow(index) != VD_OK && index->bucket_count == 0)
		return VD_NOMEM;
	++*file_group(index, group);
	link_group(index->buckets, index->equals, index->bucket_count, group);
	index->group_count++;
	return VD_OK;
}

void vdi_watch_index_remove(struct vdi_watch_index *index, struct vdi_watch_group *group)
{
	struct vdi_watch_group **place = &index->buckets[group->index_hash & (index->bucket_count - 1)];

	while (*place != group)
		place = &(*place)->index_next;
	*place = group->index_next;
	place = &index->equals[vdi_watch_group_predicate(group)->hash & (index->bucket_count - 1)];
	while (*place != group)
		place = &(*place)->equal_next;
	*place = group->equal_next;
	--*file_group(index, group);
	index->group_count--;
	vdi_watch_group_unref(group);
}

struct search {
	const struct vdi_watch_index *index;
	uint32_t		      visit;
	vdi_candidate_fn	      found;
	void			     *arg;
};

static void look_up(const struct search *search, uint32_t hash)
{
	for (struct vdi_watch_group *group = search->index->buckets[hash & (search->index->bucket_count - 1)];
	     group; group = group->index_next)
		if (group->index_hash == hash && group->visit != search->visit) {
			group->visit = search->visit;
			search->found(search->arg, group);
		}
}

static void look_up_kind(const struct search *search, const struct vdi_index_kind *kind, uint64_t tag,
			 uint64_t scope, struct vd_bytes value, uint64_t label_hash)
{
	if (kind->scoped && scope)
		look_up(search, key_hash(tag, scope, value, label_hash));
	if (kind->open)
		look_up(search, key_hash(tag, 0, value, label_hash));
}

static void search_object(const struct search *search, const struct vd_object *object)
{
	const struct vdi_watch_index *index = search->index;
	uint64_t		      scope = namespace_hash(vd_object_namespace(object));

	if (index->names.scoped || index->names.open)
		look_up_kind(search, &index->names, KEY_NAME, scope, vd_object_name(object), 0);
	for (size_t i = 0; i < VDI_MIN(index->codec->field_count, (size_t) VD_FIELDS_MAX); i++)
		if (index->fields[i].scoped || index->fields[i].open)
			look_up_kind(search, &index->fields[i], KEY_FIELD + i, scope,
				     vd_object_field(object, i), 0);
	if (index->labels.scoped || index->labels.open)
		for (size_t i = 0; i < vd_object_label_count(object); i++) {
			struct vd_pair label = vd_object_label(object, i);

			look_up_kind(search, &index->labels, KEY_LABEL, scope, label.value,
				     hash_bytes(label.key, 1));
		}
	if (index->namespaces && scope)
		look_up(search, key_hash(KEY_NAMESPACE, scope, VD_BYTES_NONE, 0));
}

/* Resets the groups' visits when the 32-bit number wraps. */
static void forget_visits(struct vdi_watch_index *index)
{
	for (size_t i = 0; i < index->bucket_count; i++)
		for (struct vdi_watch_group *group = index->buckets[i]; group; group = group->index_next)
			group->visit = UINT32_MAX;
}

void vdi_watch_index_candidates(struct vdi_watch_index *index, const struct vdi_event *event, uint64_t visit,
				vdi_candidate_fn found, void *arg)
{
	struct search search = { index, (uint32_t) visit, found, arg };

	if (__builtin_expect(search.visit == 0, 0))
		forget_visits(index);

	if (index->everything)
		look_up(&search, index->everything_hash);
	if (index->group_count == index->everything)
		return;
	if (event->object)
		search_object(&search, event->object);
	if (event->old_object)
		search_object(&search, event->old_object);
}
