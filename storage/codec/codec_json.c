/* The codec of Kubernetes' JSON: one pass of the strict scanner reports slices of the value.
 *
 * The scanner's arrays are in scratch blocks that are reused: a codec keeps a few idle ones, so inspection
 * allocates only when more threads inspect at once than ever before. Strings with escapes are unescaped into
 * the text of the scratch block.
 *
 * kube-apiserver stores its built-in kinds as protobuf. Such a value is recognized by its first bytes and
 * converted to JSON once, when it enters; all other code sees only JSON. Values are written as JSON, which
 * kube-apiserver also reads.
 */
#include <stdatomic.h>
#include <stdio.h>

#include <vedette/codec.h>

#include "base.h"
#include "codec_json.h"
#include "json_scan.h"
#include "json_text.h"
#include "k8s_proto.h"
#include "object.h"
#include "usage.h"

#define IDLE_SCRATCH 16
/* Slots for prepared objects; the slot is chosen by revision, so that objects of neighbouring revisions do
 * not collide. */
#define PREPARED 1024
/* Maximum JSON size of a converted protobuf value, as the scanner accepts it. */
#define TRANSLATED_MAX ((size_t) 8 << 20)
/* A scratch block keeps a buffer of up to this size for reuse. */
#define TRANSLATED_KEPT_MAX ((size_t) 64 << 10)

struct codec_json {
	struct vd_codec		     codec;
	struct vdi_json_plan	    *plan;
	char			   **names;    /* of the declared fields */
	char			   **defaults; /* NULL: empty */
	_Atomic(struct scratch *)    idle[IDLE_SCRATCH];
	_Atomic(struct vd_object *) *prepared; /* NULL: prepare_init was not called */
};

struct scratch {
	struct vdi_json_object object;
	struct vd_pair	      *labels;
	size_t		       label_capacity;
	struct vd_bytes	       fields[VD_FIELDS_MAX];
	char		      *text; /* unescaped strings */
	size_t		       text_size, text_capacity;
	struct vdi_buffer      translated;
};

static struct scratch *scratch_free(struct scratch *scratch)
{
	if (scratch) {
		vdi_json_object_fini(&scratch->object);
		vdi_free(scratch->labels);
		vdi_free(scratch->text);
		vdi_buffer_fini(&scratch->translated);
		vdi_free(scratch);
	}
	return NULL;
}

static struct scratch *scratch_take(struct codec_json *json)
{
	struct scratch *scratch;

	for (size_t i = 0; i < IDLE_SCRATCH; i++) {
		if (atomic_load_explicit(&json->idle[i], memory_order_relaxed) == NULL)
			continue;
		scratch = atomic_exchange_explicit(&json->idle[i], NULL, memory_order_acquire);
		if (scratch)
			return scratch;
	}
	scratch = VDI_NEW(struct scratch);
	if (scratch)
		vdi_buffer_init(&scratch->translated, TRANSLATED_MAX);
	if (scratch && vdi_json_object_init(&scratch->object, json->plan) != VD_OK)
		scratch = scratch_free(scratch);
	return scratch;
}

static void scratch_give_back(struct codec_json *json, struct scratch *scratch)
{
	for (size_t i = 0; i < IDLE_SCRATCH; i++) {
		struct scratch *none = NULL;

		if (atomic_load_explicit(&json->idle[i], memory_order_relaxed) == NULL &&
		    atomic_compare_exchange_strong_explicit(&json->idle[i], &none, scratch,
							    memory_order_release, memory_order_relaxed))
			return;
	}
	scratch_free(scratch);
}

/* Returns the plain text of a scanned value, "" if it is not a scalar. Room for unescaping was reserved
 * before. */
static struct vd_bytes plain(struct scratch *scratch, struct vd_bytes json,
			     const struct vdi_json_value *value)
{
	struct vd_bytes raw = vdi_json_value_bytes(json, value);
	char	       *text;
	size_t		size;

	if (value->type == VDI_JSON_ABSENT || value->type == VDI_JSON_NULL ||
	    value->type == VDI_JSON_OBJECT || value->type == VDI_JSON_ARRAY)
		return VD_BYTES_NONE;
	if (!value->escaped)
		return raw;
	text = scratch->text + scratch->text_size;
	size = vdi_json_unescape(raw, text);
	scratch->text_size += size;
	return (struct vd_bytes) { text, size };
}

/* Returns the size of all strings that need unescaping, which is reserved at once: the text must not move
 * while slices point into it. */
static size_t escaped_size(const struct codec_json *json, const struct scratch *scratch)
{
	static const enum vdi_json_member members[] = { VDI_JSON_NAME, VDI_JSON_NAMESPACE, VDI_JSON_UID };
	const struct vdi_json_object	 *object = &scratch->object;
	size_t				  size = 0;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(members); i++)
		size += vdi_json_member(object, members[i])->escaped ?
				vdi_json_member(object, members[i])->length :
				0;
	for (size_t i = 0; i < object->label_count; i++)
		size += object->labels[i].value.escaped ? object->labels[i].value.length : 0;
	for (size_t i = 0; i < json->codec.field_count; i++)
		size += vdi_json_field(object, i)->escaped ? vdi_json_field(object, i)->length : 0;
	return size;
}

static bool make_room(const struct codec_json *json, struct scratch *scratch)
{
	scratch->text_size = 0;
	return vdi_grow((void **) &scratch->text, &scratch->text_capacity, escaped_size(json, scratch), 1) &&
	       vdi_grow((void **) &scratch->labels, &scratch->label_capacity, scratch->object.label_count,
			sizeof *scratch->labels);
}

/* Finds the offset and size of the member `"key":value` of metadata. */
static void find_member(struct vd_bytes json, const struct vdi_json_value *value, const char *key,
			uint32_t *ret_offset, uint32_t *ret_size)
{
	const char *text = json.data;
	uint32_t    from = value->offset;
	uint32_t    to = value->offset + value->length + (value->type == VDI_JSON_STRING); /* its quote */

	while (text[from - 1] != ':')
		from--;
	while (text[from - 1] != '"')
		from--;
	*ret_offset = from - (uint32_t) strlen(key) - 2;
	*ret_size = to - *ret_offset;
}

/* Finds the place for a resourceVersion: the existing member, else just after the opening brace of
 * metadata. */
static void find_revision(struct vd_bytes json, const struct vdi_json_object *object,
			  struct vd_object_attributes *attributes)
{
	const struct vdi_json_value *value = vdi_json_member(object, VDI_JSON_RESOURCE_VERSION);

	if (value->type == VDI_JSON_ABSENT) {
		attributes->revision_offset = object->metadata_insert;
		attributes->revision_comma = !object->metadata_empty;
		return;
	}
	find_member(json, value, "resourceVersion", &attributes->revision_offset, &attributes->revision_size);
}

/* ---- Values that are not JSON ---- */

/* Recognizes values encrypted by kube-apiserver: its prefix, followed by the names of provider and key
 * (kubernetes/apiserver pkg/storage/value). */
static bool is_encrypted(struct vd_bytes value)
{
	return vd_bytes_has_prefix(value, vd_bytes_of("k8s:enc:"));
}

static vd_status encrypted(struct vd_bytes value, struct vd_error *reterr)
{
	const char *text = value.data;
	size_t	    size = 8;

	while (size < value.size && size < 80 &&
	       (text[size] == ':' || text[size] == '-' || (text[size] >= '0' && text[size] <= '9') ||
		(text[size] >= 'A' && text[size] <= 'Z') || (text[size] >= 'a' && text[size] <= 'z')))
		size++;
	while (text[size - 1] != ':') /* the ciphertext follows the last colon */
		size--;
	return vd_error_set(
		reterr, VD_UNDECODABLE,
		"the value is encrypted (%.*s): only a kube-apiserver that has the key can read it",
		(int) size, text);
}

/* Describes an object of a kind without a table; its metadata is field 1 as in every kind. */
static vd_status unknown_kind(struct vd_bytes value, struct vd_error *reterr)
{
	struct vdi_k8s_envelope envelope;
	struct vd_bytes		name, namespace_name;

	if (vdi_k8s_proto_open(value, &envelope, reterr) != VD_OK)
		return VD_UNDECODABLE;
	vdi_k8s_proto_names(envelope.raw, &name, &namespace_name);
	envelope.api_version = vdi_k8s_proto_shown(envelope.api_version);
	envelope.kind = vdi_k8s_proto_shown(envelope.kind);
	name = vdi_k8s_proto_shown(name);
	namespace_name = vdi_k8s_proto_shown(namespace_name);
	return vd_error_set(
		reterr, VD_UNDECODABLE,
		"%.*s %.*s %.*s%s%.*s is stored as protobuf, but this kind has no conversion table",
		(int) envelope.api_version.size, (const char *) envelope.api_version.data,
		(int) envelope.kind.size, (const char *) envelope.kind.data, (int) namespace_name.size,
		(const char *) namespace_name.data, namespace_name.size ? "/" : "", (int) name.size,
		(const char *) name.data);
}

static vd_status translate_into(struct vdi_buffer *json, struct vd_bytes key, struct vd_bytes value,
				struct vd_kv **ret_kv, struct vd_error *reterr)
{
	struct vd_error error = { 0 };
	vd_status	status = vdi_k8s_proto_to_json(value, json, &error);

	if (status == VD_UNSUPPORTED)
		return unknown_kind(value, reterr);
	if (status == VD_OK)
		status = vd_kv_new(key, vdi_buffer_bytes(json), ret_kv);
	else if (status != VD_NOMEM)
		return vd_error_set(reterr, VD_UNDECODABLE, "stored as protobuf: %.300s", error.message);
	return status == VD_NOMEM ? vd_error_set(reterr, VD_NOMEM, "out of memory") : status;
}

static vd_status translate(const struct vd_codec *codec, struct vd_bytes key, struct vd_bytes value,
			   struct vd_kv **ret_kv, struct vd_error *reterr)
{
	struct codec_json *json = VDI_CONTAINER_OF(codec, struct codec_json, codec);
	struct scratch	  *scratch;
	vd_status	   status;

	*ret_kv = NULL;
	if (!vdi_k8s_proto_is(value))
		return VD_OK;
	scratch = scratch_take(json);
	if (scratch == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	status = translate_into(&scratch->translated, key, value, ret_kv, reterr);
	if (scratch->translated.capacity > TRANSLATED_KEPT_MAX)
		vdi_buffer_fini(&scratch->translated);
	vdi_buffer_clear(&scratch->translated);
	scratch_give_back(json, scratch);
	return status;
}

/* ---- */

static vd_status inspect_within(const struct vd_codec *codec, struct vd_bytes value,
				const struct vdi_json_limits *limits,
				struct vd_object_attributes *ret_attributes, struct vd_error *reterr)
{
	struct codec_json	    *json = VDI_CONTAINER_OF(codec, struct codec_json, codec);
	struct scratch		    *scratch = scratch_take(json);
	const struct vdi_json_value *metadata;
	vd_status		     status;

	if (scratch == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	status = vdi_json_scan(value, limits, &scratch->object, reterr);
	if (status == VD_OK && vdi_json_member(&scratch->object, VDI_JSON_METADATA)->type != VDI_JSON_OBJECT)
		status = vd_error_set(reterr, VD_BAD_REQUEST, "the object has no metadata");
	if (status == VD_OK && !make_room(json, scratch))
		status = vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (status != VD_OK) {
		scratch_give_back(json, scratch);
		if (status != VD_NOMEM && is_encrypted(value))
			return encrypted(value, reterr);
		if (status != VD_NOMEM && reterr)
			reterr->code = VD_UNDECODABLE;
		return status == VD_NOMEM ? VD_NOMEM : VD_UNDECODABLE;
	}
	metadata = vdi_json_member(&scratch->object, VDI_JSON_METADATA);
	memset(ret_attributes, 0, sizeof *ret_attributes);
	ret_attributes->scratch = scratch;
	ret_attributes->name = plain(scratch, value, vdi_json_member(&scratch->object, VDI_JSON_NAME));
	ret_attributes->namespace_name =
		plain(scratch, value, vdi_json_member(&scratch->object, VDI_JSON_NAMESPACE));
	ret_attributes->uid = plain(scratch, value, vdi_json_member(&scratch->object, VDI_JSON_UID));
	for (size_t i = 0; i < scratch->object.label_count; i++) {
		const struct vdi_json_label *label = &scratch->object.labels[i];

		scratch->labels[i].key = vdi_json_slice_bytes(value, label->key);
		scratch->labels[i].value = plain(scratch, value, &label->value);
	}
	ret_attributes->labels = scratch->labels;
	ret_attributes->label_count = scratch->object.label_count;
	for (size_t i = 0; i < codec->field_count; i++) {
		scratch->fields[i] = plain(scratch, value, vdi_json_field(&scratch->object, i));
		if (scratch->fields[i].size == 0 && json->defaults[i])
			scratch->fields[i] = vd_bytes_of(json->defaults[i]);
	}
	ret_attributes->fields = scratch->fields;
	ret_attributes->field_count = codec->field_count;
	ret_attributes->metadata_offset = metadata->offset;
	ret_attributes->metadata_size = metadata->length;
	find_revision(value, &scratch->object, ret_attributes);
	if (vdi_json_member(&scratch->object, VDI_JSON_SELF_LINK)->type != VDI_JSON_ABSENT)
		find_member(value, vdi_json_member(&scratch->object, VDI_JSON_SELF_LINK), "selfLink",
			    &ret_attributes->self_link_offset, &ret_attributes->self_link_size);
	return VD_OK;
}

static vd_status inspect(const struct vd_codec *codec, struct vd_bytes value,
			 struct vd_object_attributes *ret_attributes, struct vd_error *reterr)
{
	return inspect_within(codec, value, NULL, ret_attributes, reterr);
}

static void release(const struct vd_codec *codec, struct vd_object_attributes *attributes)
{
	struct codec_json *json = VDI_CONTAINER_OF(codec, struct codec_json, codec);

	if (attributes->scratch)
		scratch_give_back(json, attributes->scratch);
	attributes->scratch = NULL;
}

static void codec_json_free(struct vd_codec *codec)
{
	struct codec_json *json = VDI_CONTAINER_OF(codec, struct codec_json, codec);

	for (size_t i = 0; json->prepared && i < PREPARED; i++)
		vd_object_unref(atomic_load(&json->prepared[i]));
	vdi_free(json->prepared);
	for (size_t i = 0; i < IDLE_SCRATCH; i++)
		scratch_free(atomic_load(&json->idle[i]));
	for (size_t i = 0; i < codec->field_count; i++) {
		vdi_free(json->names ? json->names[i] : NULL);
		vdi_free(json->defaults ? json->defaults[i] : NULL);
	}
	vdi_free(json->names);
	vdi_free(json->defaults);
	vdi_json_plan_free(json->plan);
	vdi_free(json);
}

static const struct vd_codec_ops codec_json_ops = { inspect, release, codec_json_free, translate };

/* ---- Ahead ---- */

static _Atomic(struct vd_object *) *place_of(const struct codec_json *json, const struct vd_kv *kv)
{
	return &json->prepared[(uint64_t) kv->mod_rev % PREPARED];
}

vd_status vdi_codec_json_prepare_init(struct vd_codec *codec)
{
	struct codec_json *json = VDI_CONTAINER_OF(codec, struct codec_json, codec);

	VDI_CHECK(codec->ops == &codec_json_ops);
	if (json->prepared == NULL)
		json->prepared = vdi_calloc(PREPARED, sizeof *json->prepared);
	return json->prepared ? VD_OK : VD_NOMEM;
}

bool vdi_codec_json_prepare(const struct vd_codec *codec, struct vd_kv *kv)
{
	static const struct vdi_json_limits limits = { VDI_CODEC_JSON_PREPARE_MAX, VDI_JSON_DEPTH_MAX - 1 };
	const struct codec_json		   *json = VDI_CONTAINER_OF(codec, struct codec_json, codec);
	struct vd_object_attributes	    attributes;
	struct vd_object		   *object = NULL;

	VDI_CHECK(codec->ops == &codec_json_ops && json->prepared);
	if (kv->value_size > limits.size_max ||
	    inspect_within(codec, vd_kv_value(kv), &limits, &attributes, NULL) != VD_OK)
		return false;
	if (((struct scratch *) attributes.scratch)->object.spaced ||
	    vdi_object_of_attributes(kv, &attributes, &object, NULL) != VD_OK)
		object = NULL;
	release(codec, &attributes);
	if (object)
		vd_object_unref(atomic_exchange_explicit(place_of(json, kv), object, memory_order_acq_rel));
	return object;
}

struct vd_object *vdi_codec_json_prepared(const struct vd_codec *codec, const struct vd_kv *kv)
{
	const struct codec_json *json = VDI_CONTAINER_OF(codec, struct codec_json, codec);
	struct vd_object	*object;

	if (codec->ops != &codec_json_ops || json->prepared == NULL)
		return NULL;
	if (atomic_load_explicit(place_of(json, kv), memory_order_relaxed) == NULL)
		return NULL;
	object = atomic_exchange_explicit(place_of(json, kv), NULL, memory_order_acq_rel);
	return object && vd_object_kv(object) != kv ? vd_object_unref(object) : object;
}

static vd_status copy_specs(struct codec_json *json, const struct vd_field_spec *fields, size_t count)
{
	json->names = vdi_calloc(count + 1, sizeof *json->names);
	json->defaults = vdi_calloc(count + 1, sizeof *json->defaults);
	if (json->names == NULL || json->defaults == NULL)
		return VD_NOMEM;
	json->codec.field_count = count;
	json->codec.field_names = (const char *const *) json->names;
	for (size_t i = 0; i < count; i++) {
		json->names[i] = vdi_strdup(fields[i].name);
		if (json->names[i] == NULL)
			return VD_NOMEM;
		if (fields[i].default_value) {
			json->defaults[i] = vdi_strdup(fields[i].default_value);
			if (json->defaults[i] == NULL)
				return VD_NOMEM;
		}
	}
	return VD_OK;
}

vd_status vd_codec_json_new(const struct vd_field_spec *fields, size_t field_count,
			    struct vd_codec **ret_codec, struct vd_error *reterr)
{
	struct vd_bytes	   paths[VD_FIELDS_MAX];
	struct codec_json *json;
	vd_status	   status;

	VDI_REQUIRE(ret_codec, reterr);
	if (field_count && fields == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "fields is NULL but field_count is %zu",
				    field_count);
	if (field_count > VD_FIELDS_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "more than %d declared fields",
				    VD_FIELDS_MAX);
	for (size_t i = 0; i < field_count; i++) {
		if (fields[i].name == NULL || fields[i].name[0] == 0 || fields[i].json_path == NULL)
			return vd_error_set(reterr, VD_INVALID_ARGUMENT,
					    "declared field %zu needs a name and a JSON path", i);
		paths[i] = vd_bytes_of(fields[i].json_path);
	}
	json = VDI_NEW(struct codec_json);
	if (json == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	json->codec.ops = &codec_json_ops;
	status = copy_specs(json, fields, field_count);
	if (status == VD_OK)
		status = vdi_json_plan_new(paths, field_count, &json->plan, reterr);
	if (status != VD_OK) {
		codec_json_free(&json->codec);
		return status == VD_NOMEM ? vd_error_set(reterr, VD_NOMEM, "out of memory") : status;
	}
	*ret_codec = &json->codec;
	return VD_OK;
}

struct vd_codec *vd_codec_free(struct vd_codec *codec)
{
	if (codec) {
		vdi_usage_check("vd_codec_free", codec);
		codec->ops->free(codec);
	}
	return NULL;
}
