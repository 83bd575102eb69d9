/* Each requirement is evaluated against the object's own labels, or its fields by the index to which the
 * field's name was bound. */
#include "predicate.h"

#include "hash.h"

static int bind_field(const struct vd_codec *codec, struct vd_bytes name)
{
	if (vd_bytes_equal(name, vd_bytes_of("metadata.name")))
		return VDI_TERM_NAME;
	if (vd_bytes_equal(name, vd_bytes_of("metadata.namespace")))
		return VDI_TERM_NAMESPACE;
	for (size_t i = 0; i < codec->field_count; i++)
		if (vd_bytes_equal(name, vd_bytes_of(codec->field_names[i])))
			return (int) i;
	return VDI_TERM_UNDECLARED;
}

/* Rejects fields that the codec does not declare. A declared field that is absent reads as empty, but a name
 * that no object can have is the caller's error, as in upstream's REST layer. */
static vd_status check_fields(const struct vd_codec *codec, const struct vdi_field_selector *fields,
			      struct vd_error *reterr)
{
	for (size_t i = 0; i < vdi_field_selector_count(fields); i++) {
		struct vd_bytes name = vdi_field_selector_term(fields, i).field;

		if (bind_field(codec, name) == VDI_TERM_UNDECLARED)
			return vd_error_set(reterr, VD_BAD_REQUEST,
					    "field label not supported: %.*s: the codec does not declare it",
					    (int) VDI_MIN(name.size, (size_t) 150), (const char *) name.data);
	}
	return VD_OK;
}

static vd_status check_bytes(struct vd_bytes bytes, const char *what, struct vd_error *reterr)
{
	if (bytes.size && bytes.data == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "%s: data is NULL but size is %zu", what,
				    bytes.size);
	return VD_OK;
}

static struct vd_bytes scope_of(struct vd_bytes asked, const struct vdi_predicate_options *options,
				const struct vdi_field_selector *fields, const char *field)
{
	struct vd_bytes value;

	if (asked.size == 0 && options->narrow_scope &&
	    vdi_field_selector_exact(fields, vd_bytes_of(field), &value))
		return value;
	return asked;
}

static void put(char **at, const void *data, size_t size)
{
	if (size)
		memcpy(*at, data, size);
	*at += size;
}

/* Rounds up to a multiple of 4, the alignment of the next part. */
static size_t round_up(size_t size)
{
	return (size + 3) & ~(size_t) 3;
}

static uint64_t hash_of(const struct vdi_predicate *predicate)
{
	struct vd_bytes namespace_name = vdi_predicate_namespace(predicate),
			name = vdi_predicate_name(predicate);
	struct vd_bytes shards = vdi_shard_selector_text(vdi_predicate_shards(predicate));
	uint64_t	hash = vdi_label_selector_hash(vdi_predicate_labels(predicate)) * 31 +
			vdi_field_selector_hash(vdi_predicate_fields(predicate));

	hash = vdi_hash_bytes(namespace_name, hash);
	hash = vdi_hash_bytes(name, hash);
	return shards.size ? vdi_hash_bytes(shards, hash) : hash;
}

/* Parsed parts of a predicate. */
struct parsed {
	struct vdi_label_selector *labels;
	struct vdi_field_selector *fields;
	struct vdi_shard_selector *shards;
};

/* Takes over the shard selector. */
static vd_status build(const struct vd_codec *codec, const struct vdi_predicate_options *options,
		       struct parsed *parsed, struct vdi_predicate **ret_predicate)
{
	struct vd_bytes namespace_name =
		scope_of(options->namespace_name, options, parsed->fields, "metadata.namespace");
	struct vd_bytes name = scope_of(options->name, options, parsed->fields, "metadata.name");
	size_t		term_count = vdi_field_selector_count(parsed->fields);
	size_t		labels_size = round_up(vdi_label_selector_size(parsed->labels));
	size_t fields_at = (parsed->shards ? sizeof(uint64_t) : 0) + labels_size + term_count * sizeof(int);
	size_t scope_at = fields_at + vdi_field_selector_size(parsed->fields);
	struct vdi_predicate *predicate;
	char		     *block, *at;

	/* Objects of a cluster-scoped resource have no namespace, but requests for core "namespaces" have a
	 * namespace equal to the name. */
	if (options->cluster_scoped)
		namespace_name = VD_BYTES_NONE;
	VDI_CHECK(options->room % 8 == 0 && options->room <= VDI_PREDICATE_ROOM_MAX);
	block = namespace_name.size > UINT32_MAX || name.size > UINT32_MAX ?
			NULL :
			vdi_calloc(1, options->room + sizeof *predicate + scope_at + namespace_name.size +
					      name.size);
	if (block == NULL)
		return VD_NOMEM;
	predicate = (struct vdi_predicate *) (block + options->room);
	atomic_init(&predicate->references, 1);
	predicate->room = (uint8_t) (options->room / 8);
	predicate->namespace_size = (uint32_t) namespace_name.size;
	predicate->name_size = (uint32_t) name.size;
	predicate->has_shards = parsed->shards != NULL;
	predicate->has_labels = parsed->labels != NULL;
	predicate->fields_at = parsed->fields ? (uint32_t) fields_at : 0;
	predicate->scope_at = (uint32_t) scope_at;
	predicate->is_empty = vdi_label_selector_empty(parsed->labels) &&
			      vdi_field_selector_empty(parsed->fields) && parsed->shards == NULL;
	if (parsed->shards)
		predicate->data[0] = (uintptr_t) parsed->shards;
	at = (char *) (predicate->data + predicate->has_shards);
	put(&at, parsed->labels, vdi_label_selector_size(parsed->labels));
	at = (char *) predicate->data + fields_at;
	put(&at, parsed->fields, vdi_field_selector_size(parsed->fields));
	put(&at, namespace_name.data, namespace_name.size);
	put(&at, name.data, name.size);
	for (size_t i = 0; i < term_count; i++)
		((int *) (uintptr_t) vdi_predicate_fields(
			predicate))[(ptrdiff_t) i - (ptrdiff_t) term_count] =
			bind_field(codec, vdi_field_selector_term(parsed->fields, i).field);
	predicate->hash = hash_of(predicate);
	parsed->shards = NULL;
	*ret_predicate = predicate;
	return VD_OK;
}

vd_status vdi_predicate_new(const struct vd_codec *codec, const struct vdi_predicate_options *options,
			    struct vdi_predicate **ret_predicate, struct vd_error *reterr)
{
	struct parsed parsed = { 0 };
	vd_status     status;

	VDI_TRY(check_bytes(options->label_selector, "label selector", reterr));
	VDI_TRY(check_bytes(options->field_selector, "field selector", reterr));
	VDI_TRY(check_bytes(options->shard_selector, "shard selector", reterr));
	status = vdi_label_selector_parse(options->label_selector, &parsed.labels, reterr);
	if (status == VD_OK)
		status = vdi_field_selector_parse(options->field_selector, &parsed.fields, reterr);
	if (status == VD_OK)
		status = check_fields(codec, parsed.fields, reterr);
	if (status == VD_OK)
		status = vdi_shard_selector_parse(options->shard_selector, &parsed.shards, reterr);
	/* Empty selectors are not kept, because a predicate lives as long as its watches. */
	if (vdi_label_selector_empty(parsed.labels))
		parsed.labels = vdi_label_selector_free(parsed.labels);
	if (vdi_field_selector_empty(parsed.fields))
		parsed.fields = vdi_field_selector_free(parsed.fields);
	if (status == VD_OK && (status = build(codec, options, &parsed, ret_predicate)) != VD_OK)
		vd_error_set(reterr, status, "out of memory for a selector");
	vdi_label_selector_free(parsed.labels);
	vdi_field_selector_free(parsed.fields);
	vdi_shard_selector_free(parsed.shards);
	return status;
}

vd_status vdi_predicate_check(const struct vd_codec *codec, struct vd_bytes label_selector,
			      struct vd_bytes field_selector, struct vd_error *reterr)
{
	struct vdi_predicate_options options = { .label_selector = label_selector,
						 .field_selector = field_selector };
	struct vdi_predicate	    *predicate;

	VDI_TRY(vdi_predicate_new(codec, &options, &predicate, reterr));
	vdi_predicate_unref(predicate);
	return VD_OK;
}

struct vdi_predicate *vdi_predicate_ref(struct vdi_predicate *predicate)
{
	atomic_fetch_add_explicit(&predicate->references, 1, memory_order_relaxed);
	return predicate;
}

struct vdi_predicate *vdi_predicate_unref(struct vdi_predicate *predicate)
{
	if (predicate && atomic_fetch_sub_explicit(&predicate->references, 1, memory_order_acq_rel) == 1) {
		vdi_shard_selector_free(vdi_predicate_shards(predicate));
		vdi_free((char *) predicate - (size_t) predicate->room * 8);
	}
	return NULL;
}

static struct vd_bytes field_value(const struct vd_object *object, int bound)
{
	switch (bound) {
	case VDI_TERM_NAME: return vd_object_name(object);
	case VDI_TERM_NAMESPACE: return vd_object_namespace(object);
	default: return vd_object_field(object, (size_t) bound);
	}
}

static inline int bound_of(const struct vdi_field_selector *fields, size_t count, size_t index)
{
	return ((const int *) fields)[(ptrdiff_t) index - (ptrdiff_t) count];
}

static bool fields_match(const struct vdi_field_selector *fields, const struct vd_object *object)
{
	size_t count = vdi_field_selector_count(fields);

	for (size_t i = 0; i < count; i++) {
		struct vdi_field_term term = vdi_field_selector_term(fields, i);

		if (vd_bytes_equal(term.value, field_value(object, bound_of(fields, count, i))) ==
		    term.negated)
			return false;
	}
	return true;
}

/* Up to this many requirements are looked up one by one. */
#define FEW_REQUIREMENTS 4

static bool labels_match(const struct vdi_label_selector *labels, const struct vd_object *object)
{
	size_t count = vdi_label_selector_count(labels);

	if (count > FEW_REQUIREMENTS)
		return vdi_label_selector_matches_object(labels, object);
	for (size_t i = 0; i < count; i++) {
		struct vd_bytes value;
		bool present = vd_object_label_get(object, vdi_label_selector_key(labels, i), &value);

		if (!vdi_label_selector_takes(labels, i, present ? &value : NULL))
			return false;
	}
	return true;
}

size_t vdi_predicate_cost(const struct vdi_predicate *predicate)
{
	/* The cost of a label selector depends on the object's labels, which are few in nearly all
	 * objects. */
	return 1 + VDI_MIN(vdi_label_selector_count(vdi_predicate_labels(predicate)), (size_t) 64) +
	       vdi_field_selector_count(vdi_predicate_fields(predicate)) + 2 * (size_t) predicate->has_shards;
}

bool vdi_predicate_has_in_scope(const struct vdi_predicate *predicate, const struct vd_object *object)
{
	if (predicate->namespace_size &&
	    !vd_bytes_equal(vdi_predicate_namespace(predicate), vd_object_namespace(object)))
		return false;
	return predicate->name_size == 0 ||
	       vd_bytes_equal(vdi_predicate_name(predicate), vd_object_name(object));
}

bool vdi_predicate_matches(const struct vdi_predicate *predicate, const struct vd_object *object)
{
	if (!vdi_predicate_has_in_scope(predicate, object))
		return false;
	if (predicate->has_shards && !vdi_shard_selector_matches(vdi_predicate_shards(predicate), object))
		return false;
	if (predicate->fields_at && !fields_match(vdi_predicate_fields(predicate), object))
		return false;
	return !predicate->has_labels || labels_match(vdi_predicate_labels(predicate), object);
}

bool vdi_predicate_equal(const struct vdi_predicate *a, const struct vdi_predicate *b)
{
	return a->hash == b->hash && vd_bytes_equal(vdi_predicate_namespace(a), vdi_predicate_namespace(b)) &&
	       vd_bytes_equal(vdi_predicate_name(a), vdi_predicate_name(b)) &&
	       vd_bytes_equal(vdi_label_selector_text(vdi_predicate_labels(a)),
			      vdi_label_selector_text(vdi_predicate_labels(b))) &&
	       vd_bytes_equal(vdi_field_selector_text(vdi_predicate_fields(a)),
			      vdi_field_selector_text(vdi_predicate_fields(b))) &&
	       vd_bytes_equal(vdi_shard_selector_text(vdi_predicate_shards(a)),
			      vdi_shard_selector_text(vdi_predicate_shards(b)));
}

bool vdi_predicate_transition(const struct vdi_predicate *predicate, const struct vd_object *old_object,
			      const struct vd_object *object, enum vd_watch_type *ret_type)
{
	bool is = object && vdi_predicate_matches(predicate, object);
	bool was = old_object && vdi_predicate_matches(predicate, old_object);

	if (!is && !was)
		return false;
	*ret_type = !was ? VD_WATCH_ADDED : is ? VD_WATCH_MODIFIED : VD_WATCH_DELETED;
	return true;
}

bool vdi_predicate_exact_field(const struct vdi_predicate *predicate, int field_index,
			       struct vd_bytes *ret_value)
{
	const struct vdi_field_selector *fields = vdi_predicate_fields(predicate);
	size_t				 count = vdi_field_selector_count(fields);

	for (size_t i = 0; i < count; i++) {
		struct vdi_field_term term = vdi_field_selector_term(fields, i);

		if (bound_of(fields, count, i) == field_index && !term.negated) {
			*ret_value = term.value;
			return true;
		}
	}
	return false;
}

bool vdi_predicate_exact_label(const struct vdi_predicate *predicate, struct vd_bytes key,
			       struct vd_bytes *ret_value)
{
	return vdi_label_selector_exact(vdi_predicate_labels(predicate), key, ret_value);
}
