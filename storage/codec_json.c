/* The Kubernetes JSON codec: one pass of the strict scanner, then slices.
 *
 * The scanner's arrays are kept in scratch blocks that go round: a codec holds a few idle ones, so inspection allocates only when more threads
 * inspect at once than ever before. Strings with escapes are unescaped into the scratch block's text.
 */
#include <stdatomic.h>

#include <vedette/codec.h>

#include "base.h"
#include "json_scan.h"
#include "json_text.h"

#define IDLE_SCRATCH 16

struct codec_json {
	struct vd_codec	      codec;
	struct vdi_json_plan *plan;
	char		    **names;    /* of the declared fields */
	char		    **defaults; /* NULL: empty */
	_Atomic(struct scratch *) idle[IDLE_SCRATCH];
};

struct scratch {
	struct vdi_json_object object;
	struct vd_pair	      *labels;
	size_t		       label_capacity;
	struct vd_bytes	       fields[VD_FIELDS_MAX];
	char		      *text; /* unescaped strings */
	size_t		       text_size, text_capacity;
};

static struct scratch *scratch_free(struct scratch *scratch)
{
	if (scratch) {
		vdi_json_object_fini(&scratch->object);
		vdi_free(scratch->labels);
		vdi_free(scratch->text);
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
	if (scratch && vdi_json_object_init(&scratch->object, json->plan) != VD_OK)
		scratch = scratch_free(scratch);
	return scratch;
}

static void scratch_give_back(struct codec_json *json, struct scratch *scratch)
{
	for (size_t i = 0; i < IDLE_SCRATCH; i++) {
		struct scratch *none = NULL;

		if (atomic_load_explicit(&json->idle[i], memory_order_relaxed) == NULL &&
		    atomic_compare_exchange_strong_explicit(&json->idle[i], &none, scratch, memory_order_release, memory_order_relaxed))
			return;
	}
	scratch_free(scratch);
}

/* The plain text of a scanned value; "" for what is no scalar. Room for unescaping was made before. */
static struct vd_bytes plain(struct scratch *scratch, struct vd_bytes json, const struct vdi_json_value *value)
{
	struct vd_bytes raw = vdi_json_value_bytes(json, value);
	char	       *text;
	size_t		size;

	if (value->type == VDI_JSON_ABSENT || value->type == VDI_JSON_NULL || value->type == VDI_JSON_OBJECT || value->type == VDI_JSON_ARRAY)
		return VD_BYTES_NONE;
	if (!value->escaped)
		return raw;
	text = scratch->text + scratch->text_size;
	size = vdi_json_unescape(raw, text);
	scratch->text_size += size;
	return (struct vd_bytes) { text, size };
}

/* Bytes of all strings that need unescaping, so that the text block never moves while slices point into it. */
static size_t escaped_size(const struct codec_json *json, const struct scratch *scratch)
{
	static const enum vdi_json_member members[] = { VDI_JSON_NAME, VDI_JSON_NAMESPACE, VDI_JSON_UID };
	const struct vdi_json_object	 *object = &scratch->object;
	size_t				  size = 0;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(members); i++)
		size += vdi_json_member(object, members[i])->escaped ? vdi_json_member(object, members[i])->length : 0;
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
	       vdi_grow((void **) &scratch->labels, &scratch->label_capacity, scratch->object.label_count, sizeof *scratch->labels);
}

/* Where the resourceVersion goes: over the member that is there, else just behind the brace of metadata. */
static void find_revision(struct vd_bytes json, const struct vdi_json_object *object, struct vd_object_facts *facts)
{
	static const char	     key[] = "\"resourceVersion\"";
	const struct vdi_json_value *value = vdi_json_member(object, VDI_JSON_RESOURCE_VERSION);
	const char		    *text = json.data;
	uint32_t		     from = value->offset, to = value->offset + value->length;

	if (value->type == VDI_JSON_ABSENT) {
		facts->revision_offset = object->metadata_insert;
		facts->revision_comma = !object->metadata_empty;
		return;
	}
	if (value->type == VDI_JSON_STRING) {
		from--;
		to++;
	}
	while (text[from - 1] != ':')
		from--;
	while (text[from - 1] != '"')
		from--;
	facts->revision_offset = from - (uint32_t) (sizeof key - 1);
	facts->revision_size = to - facts->revision_offset;
	facts->revision_comma = false;
}

static vd_status inspect(const struct vd_codec *codec, struct vd_bytes value, struct vd_object_facts *ret_facts, struct vd_error *reterr)
{
	struct codec_json	    *json = VDI_CONTAINER_OF(codec, struct codec_json, codec);
	struct scratch		    *scratch = scratch_take(json);
	const struct vdi_json_value *metadata;
	vd_status		     status;

	if (scratch == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	status = vdi_json_scan(value, NULL, &scratch->object, reterr);
	if (status == VD_OK && vdi_json_member(&scratch->object, VDI_JSON_METADATA)->type != VDI_JSON_OBJECT)
		status = vd_error_set(reterr, VD_BAD_REQUEST, "the object has no metadata");
	if (status == VD_OK && !make_room(json, scratch))
		status = vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (status != VD_OK) {
		scratch_give_back(json, scratch);
		if (status != VD_NOMEM && reterr)
			reterr->code = VD_UNDECODABLE;
		return status == VD_NOMEM ? VD_NOMEM : VD_UNDECODABLE;
	}
	metadata = vdi_json_member(&scratch->object, VDI_JSON_METADATA);
	memset(ret_facts, 0, sizeof *ret_facts);
	ret_facts->scratch = scratch;
	ret_facts->name = plain(scratch, value, vdi_json_member(&scratch->object, VDI_JSON_NAME));
	ret_facts->namespace_name = plain(scratch, value, vdi_json_member(&scratch->object, VDI_JSON_NAMESPACE));
	ret_facts->uid = plain(scratch, value, vdi_json_member(&scratch->object, VDI_JSON_UID));
	for (size_t i = 0; i < scratch->object.label_count; i++) {
		const struct vdi_json_label *label = &scratch->object.labels[i];

		scratch->labels[i].key = vdi_json_slice_bytes(value, label->key);
		scratch->labels[i].value = plain(scratch, value, &label->value);
	}
	ret_facts->labels = scratch->labels;
	ret_facts->label_count = scratch->object.label_count;
	for (size_t i = 0; i < codec->field_count; i++) {
		scratch->fields[i] = plain(scratch, value, vdi_json_field(&scratch->object, i));
		if (scratch->fields[i].size == 0 && json->defaults[i])
			scratch->fields[i] = vd_bytes_of(json->defaults[i]);
	}
	ret_facts->fields = scratch->fields;
	ret_facts->field_count = codec->field_count;
	ret_facts->metadata_offset = metadata->offset;
	ret_facts->metadata_size = metadata->length;
	find_revision(value, &scratch->object, ret_facts);
	return VD_OK;
}

static void release(const struct vd_codec *codec, struct vd_object_facts *facts)
{
	struct codec_json *json = VDI_CONTAINER_OF(codec, struct codec_json, codec);

	if (facts->scratch)
		scratch_give_back(json, facts->scratch);
	facts->scratch = NULL;
}

static void codec_json_free(struct vd_codec *codec)
{
	struct codec_json *json = VDI_CONTAINER_OF(codec, struct codec_json, codec);

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

static const struct vd_codec_ops codec_json_ops = { inspect, release, codec_json_free };

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

vd_status vd_codec_json_new(const struct vd_field_spec *fields, size_t field_count, struct vd_codec **ret_codec, struct vd_error *reterr)
{
	struct vd_bytes	   paths[VD_FIELDS_MAX];
	struct codec_json *json;
	vd_status	   status;

	if (field_count > VD_FIELDS_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "more than %d declared fields", VD_FIELDS_MAX);
	for (size_t i = 0; i < field_count; i++) {
		if (fields[i].name == NULL || fields[i].name[0] == 0 || fields[i].json_path == NULL)
			return vd_error_set(reterr, VD_INVALID_ARGUMENT, "declared field %zu needs a name and a JSON path", i);
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
	if (codec)
		codec->ops->free(codec);
	return NULL;
}
