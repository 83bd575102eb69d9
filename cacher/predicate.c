/* How: requirements are looked at one by one against the object's own labels, fields by the index that their name was bound to. */
#include "predicate.h"

#include <xxhash.h>

static int bind_field(const struct vd_codec *codec, struct vd_bytes name)
{
	if (vd_bytes_equal(name, vd_bytes_of("metadata.name")))
		return VDI_TERM_NAME;
	if (vd_bytes_equal(name, vd_bytes_of("metadata.namespace")))
		return VDI_TERM_NAMESPACE;
	for (size_t i = 0; i < codec->field_count; i++)
		if (vd_bytes_equal(name, vd_bytes_of(codec->field_names[i])))
			return (int) i;
	return VDI_TERM_ABSENT;
}

static struct vd_bytes scope_of(struct vd_bytes asked, const struct vdi_predicate_options *options, const struct vdi_field_selector *fields,
				const char *field)
{
	struct vd_bytes value;

	if (asked.size == 0 && options->narrow_scope && vdi_field_selector_exact(fields, vd_bytes_of(field), &value))
		return value;
	return asked;
}

static struct vd_bytes copy_bytes(char **place, struct vd_bytes bytes)
{
	struct vd_bytes copy = { *place, bytes.size };

	if (bytes.size)
		memcpy(*place, bytes.data, bytes.size);
	*place += bytes.size;
	return copy;
}

static vd_status build(const struct vd_codec *codec, const struct vdi_predicate_options *options, struct vdi_label_selector *labels,
		       struct vdi_field_selector *fields, struct vdi_shard_selector *shards, struct vdi_predicate **ret_predicate)
{
	struct vd_bytes		     namespace_name = scope_of(options->namespace_name, options, fields, "metadata.namespace");
	struct vd_bytes		     name = scope_of(options->name, options, fields, "metadata.name");
	size_t			     term_count;
	const struct vdi_field_term *terms = vdi_field_selector_terms(fields, &term_count);
	struct vdi_predicate	    *predicate;
	char			    *text;

	/* Objects of a cluster-scoped resource have no namespace; core "namespaces" are asked with namespace == name. */
	if (options->cluster_scoped)
		namespace_name = VD_BYTES_NONE;
	predicate = vdi_calloc(1, sizeof *predicate + term_count * sizeof predicate->bound[0] + namespace_name.size + name.size);
	if (predicate == NULL)
		return VD_NOMEM;
	atomic_init(&predicate->references, 1);
	text = (char *) &predicate->bound[term_count];
	predicate->namespace_name = copy_bytes(&text, namespace_name);
	predicate->name = copy_bytes(&text, name);
	predicate->labels = labels;
	predicate->fields = fields;
	predicate->shards = shards;
	predicate->requirements = vdi_label_selector_requirements(labels, &predicate->requirement_count);
	predicate->terms = terms;
	predicate->term_count = term_count;
	predicate->is_empty = vdi_label_selector_empty(labels) && vdi_field_selector_empty(fields) && shards == NULL;
	for (size_t i = 0; i < term_count; i++)
		predicate->bound[i] = bind_field(codec, terms[i].field);
	predicate->hash = XXH3_64bits_withSeed(namespace_name.size ? namespace_name.data : "", namespace_name.size,
					       vdi_label_selector_hash(labels) * 31 + vdi_field_selector_hash(fields));
	predicate->hash = XXH3_64bits_withSeed(name.size ? name.data : "", name.size, predicate->hash);
	if (shards)
		predicate->hash = XXH3_64bits_withSeed(shards->text, shards->text_size, predicate->hash);
	*ret_predicate = predicate;
	return VD_OK;
}

vd_status vdi_predicate_new(const struct vd_codec *codec, const struct vdi_predicate_options *options, struct vdi_predicate **ret_predicate,
			    struct vd_error *reterr)
{
	struct vdi_label_selector *labels = NULL;
	struct vdi_field_selector *fields = NULL;
	struct vdi_shard_selector *shards = NULL;
	vd_status		   status = vdi_label_selector_parse(options->label_selector, &labels, reterr);

	if (status == VD_OK)
		status = vdi_field_selector_parse(options->field_selector, &fields, reterr);
	if (status == VD_OK)
		status = vdi_shard_selector_parse(options->shard_selector, &shards, reterr);
	/* Nothing asked is nothing kept: a predicate lives as long as its watches. */
	if (status == VD_OK && vdi_label_selector_empty(labels))
		labels = vdi_label_selector_unref(labels);
	if (status == VD_OK && vdi_field_selector_empty(fields))
		fields = vdi_field_selector_unref(fields);
	if (status == VD_OK && (status = build(codec, options, labels, fields, shards, ret_predicate)) != VD_OK)
		vd_error_set(reterr, status, "out of memory for a selector");
	if (status != VD_OK) {
		vdi_label_selector_unref(labels);
		vdi_field_selector_unref(fields);
		vdi_shard_selector_free(shards);
	}
	return status;
}

struct vdi_predicate *vdi_predicate_ref(struct vdi_predicate *predicate)
{
	atomic_fetch_add_explicit(&predicate->references, 1, memory_order_relaxed);
	return predicate;
}

struct vdi_predicate *vdi_predicate_unref(struct vdi_predicate *predicate)
{
	if (predicate && atomic_fetch_sub_explicit(&predicate->references, 1, memory_order_acq_rel) == 1) {
		vdi_label_selector_unref(predicate->labels);
		vdi_field_selector_unref(predicate->fields);
		vdi_shard_selector_free(predicate->shards);
		vdi_free(predicate);
	}
	return NULL;
}

static struct vd_bytes field_value(const struct vd_object *object, int bound)
{
	switch (bound) {
	case VDI_TERM_NAME:
		return vd_object_name(object);
	case VDI_TERM_NAMESPACE:
		return vd_object_namespace(object);
	case VDI_TERM_ABSENT:
		return VD_BYTES_NONE;
	default:
		return vd_object_field(object, (size_t) bound);
	}
}

bool vdi_predicate_matches(const struct vdi_predicate *predicate, const struct vd_object *object)
{
	if (predicate->namespace_name.size && !vd_bytes_equal(predicate->namespace_name, vd_object_namespace(object)))
		return false;
	if (predicate->name.size && !vd_bytes_equal(predicate->name, vd_object_name(object)))
		return false;
	if (predicate->shards && !vdi_shard_selector_matches(predicate->shards, object))
		return false;
	for (size_t i = 0; i < predicate->term_count; i++)
		if (vd_bytes_equal(predicate->terms[i].value, field_value(object, predicate->bound[i])) == predicate->terms[i].negated)
			return false;
	for (size_t i = 0; i < predicate->requirement_count; i++) {
		struct vd_pair label = { predicate->requirements[i].key, VD_BYTES_NONE };
		bool	       present = vd_object_label_get(object, label.key, &label.value);

		if (!vdi_label_requirement_matches(&predicate->requirements[i], &label, present))
			return false;
	}
	return true;
}

bool vdi_predicate_equal(const struct vdi_predicate *a, const struct vdi_predicate *b)
{
	return a->hash == b->hash && vd_bytes_equal(a->namespace_name, b->namespace_name) && vd_bytes_equal(a->name, b->name) &&
	       vd_bytes_equal(vdi_label_selector_text(a->labels), vdi_label_selector_text(b->labels)) &&
	       vd_bytes_equal(vdi_field_selector_text(a->fields), vdi_field_selector_text(b->fields)) &&
	       vd_bytes_equal(vdi_shard_selector_text(a->shards), vdi_shard_selector_text(b->shards));
}

bool vdi_predicate_transition(const struct vdi_predicate *predicate, const struct vd_object *old_object, const struct vd_object *object,
			      enum vd_watch_type *ret_type)
{
	bool is = object && vdi_predicate_matches(predicate, object);
	bool was = old_object && vdi_predicate_matches(predicate, old_object);

	if (!is && !was)
		return false;
	*ret_type = !was ? VD_WATCH_ADDED : is ? VD_WATCH_MODIFIED : VD_WATCH_DELETED;
	return true;
}

bool vdi_predicate_exact_field(const struct vdi_predicate *predicate, int field_index, struct vd_bytes *ret_value)
{
	for (size_t i = 0; i < predicate->term_count; i++)
		if (predicate->bound[i] == field_index && !predicate->terms[i].negated) {
			*ret_value = predicate->terms[i].value;
			return true;
		}
	return false;
}

bool vdi_predicate_exact_label(const struct vdi_predicate *predicate, struct vd_bytes key, struct vd_bytes *ret_value)
{
	return vdi_label_selector_exact(predicate->labels, key, ret_value);
}
