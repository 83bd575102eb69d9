/* Objects: a small decoded header over the bytes of a vd_kv, which store, history and cache share.
 *
 * An object is one block of memory: the header, labels, declared fields, and the few strings that are not
 * part of the value (unescaped or defaulted ones). A slice is an offset into the value or, with the top bit
 * set, into those strings. For a Pod of 1 KB with three labels and eight fields the block has 150 bytes.
 */
#include "object.h"

#include "codec_json.h"

#define OWN_STRING 0x80000000u
#define REVISION_HEAD "\"resourceVersion\":\""

struct slice {
	uint32_t offset;
	uint32_t size;
};

struct label {
	uint32_t key_offset;
	uint32_t value_offset;
	uint16_t key_size;
	uint16_t value_size;
};

struct vd_object {
	uint32_t      references;
	uint16_t      label_count;
	uint16_t      field_count;
	struct vd_kv *kv;
	struct slice  name;
	struct slice  namespace_name;
	struct slice  uid;
	uint32_t      metadata_offset;
	uint32_t      metadata_size;
	uint32_t      revision_offset;
	uint32_t      revision_size : 31;
	uint32_t      revision_comma : 1;
	uint32_t      own_size;
	struct label  labels[]; /* followed by struct slice fields[], then own strings */
};

static struct slice *fields_of(const struct vd_object *object)
{
	return (struct slice *) (uintptr_t) (object->labels + object->label_count);
}

static char *own_of(const struct vd_object *object)
{
	return (char *) (fields_of(object) + object->field_count);
}

static struct vd_bytes bytes_of(const struct vd_object *object, uint32_t offset, size_t size)
{
	const char *base = offset & OWN_STRING ? own_of(object) : object->kv->data + object->kv->key_size;

	return (struct vd_bytes) { base + (offset & ~OWN_STRING), size };
}

static bool inside(struct vd_bytes value, struct vd_bytes part)
{
	return (uintptr_t) part.data >= (uintptr_t) value.data &&
	       (uintptr_t) part.data + part.size <= (uintptr_t) value.data + value.size;
}

/* Returns the bytes to copy for part: 0 if it is a slice of value. */
static size_t own_need(struct vd_bytes value, struct vd_bytes part)
{
	return part.size == 0 || inside(value, part) ? 0 : part.size;
}

static uint32_t place(struct vd_object *object, struct vd_bytes value, struct vd_bytes part)
{
	uint32_t offset;

	if (part.size == 0)
		return 0;
	if (inside(value, part))
		return (uint32_t) ((const char *) part.data - (const char *) value.data);
	offset = object->own_size;
	memcpy(own_of(object) + offset, part.data, part.size);
	object->own_size += (uint32_t) part.size;
	return offset | OWN_STRING;
}

static struct slice place_slice(struct vd_object *object, struct vd_bytes value, struct vd_bytes part)
{
	struct slice slice = { place(object, value, part), (uint32_t) part.size };

	return slice;
}

static vd_status check_attributes(const struct vd_object_attributes *attributes, struct vd_bytes value,
				  struct vd_error *reterr)
{
	if (attributes->label_count > VD_LABELS_MAX)
		return vd_error_set(reterr, VD_UNDECODABLE, "more than %d labels", VD_LABELS_MAX);
	if (attributes->field_count > VD_FIELDS_MAX)
		return vd_error_set(reterr, VD_UNDECODABLE, "more than %d declared fields", VD_FIELDS_MAX);
	for (size_t i = 0; i < attributes->label_count; i++)
		if (attributes->labels[i].key.size > UINT16_MAX ||
		    attributes->labels[i].value.size > UINT16_MAX)
			return vd_error_set(reterr, VD_UNDECODABLE, "a label is longer than %d bytes",
					    UINT16_MAX);
	VDI_CHECK((size_t) attributes->metadata_offset + attributes->metadata_size <= value.size);
	VDI_CHECK((size_t) attributes->revision_offset + attributes->revision_size <= value.size);
	return VD_OK;
}

static vd_status build(struct vd_kv *kv, struct vd_bytes value, const struct vd_object_attributes *attributes,
		       struct vd_object **ret_object, struct vd_error *reterr)
{
	struct vd_object *object;
	size_t		  own;

	own = own_need(value, attributes->name) + own_need(value, attributes->namespace_name) +
	      own_need(value, attributes->uid);
	for (size_t i = 0; i < attributes->label_count; i++)
		own += own_need(value, attributes->labels[i].key) +
		       own_need(value, attributes->labels[i].value);
	for (size_t i = 0; i < attributes->field_count; i++)
		own += own_need(value, attributes->fields[i]);
	object = vdi_alloc(sizeof *object + attributes->label_count * sizeof(struct label) +
			   attributes->field_count * sizeof(struct slice) + own);
	if (object == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for an object");
	object->references = 1;
	object->label_count = (uint16_t) attributes->label_count;
	object->field_count = (uint16_t) attributes->field_count;
	object->kv = vd_kv_ref(kv);
	object->own_size = 0;
	object->name = place_slice(object, value, attributes->name);
	object->namespace_name = place_slice(object, value, attributes->namespace_name);
	object->uid = place_slice(object, value, attributes->uid);
	object->metadata_offset = attributes->metadata_offset;
	object->metadata_size = attributes->metadata_size;
	object->revision_offset = attributes->revision_offset;
	object->revision_size = attributes->revision_size & 0x7fffffffu;
	object->revision_comma = attributes->revision_comma;
	for (size_t i = 0; i < attributes->label_count; i++) {
		struct label *label = &object->labels[i];

		label->key_offset = place(object, value, attributes->labels[i].key);
		label->key_size = (uint16_t) attributes->labels[i].key.size;
		label->value_offset = place(object, value, attributes->labels[i].value);
		label->value_size = (uint16_t) attributes->labels[i].value.size;
	}
	for (size_t i = 0; i < attributes->field_count; i++)
		fields_of(object)[i] = place_slice(object, value, attributes->fields[i]);
	VDI_CHECK(object->own_size == own);
	*ret_object = object;
	return VD_OK;
}

vd_status vdi_object_translate(const struct vd_codec *codec, struct vd_kv *kv, struct vd_kv **ret_kv,
			       struct vd_error *reterr)
{
	struct vd_kv *translated = NULL;

	if (codec->ops->translate)
		VDI_TRY(codec->ops->translate(codec, vd_kv_key(kv), vd_kv_value(kv), &translated, reterr));
	if (translated) {
		translated->sub = kv->sub;
		translated->create_rev = kv->create_rev;
		translated->mod_rev = kv->mod_rev;
		translated->version = kv->version;
		translated->lease = kv->lease;
	}
	*ret_kv = translated ? translated : vd_kv_ref(kv);
	return VD_OK;
}

vd_status vdi_object_of_attributes(struct vd_kv *kv, const struct vd_object_attributes *attributes,
				   struct vd_object **ret_object, struct vd_error *reterr)
{
	VDI_TRY(check_attributes(attributes, vd_kv_value(kv), reterr));
	return build(kv, vd_kv_value(kv), attributes, ret_object, reterr);
}

static vd_status inspect_and_build(const struct vd_codec *codec, struct vd_kv *kv,
				   struct vd_object **ret_object, struct vd_error *reterr)
{
	struct vd_object_attributes attributes = { 0 };
	vd_status		    status;

	VDI_TRY(codec->ops->inspect(codec, vd_kv_value(kv), &attributes, reterr));
	status = vdi_object_of_attributes(kv, &attributes, ret_object, reterr);
	vd_codec_release(codec, &attributes);
	return status;
}

vd_status vd_object_new(const struct vd_codec *codec, struct vd_kv *kv, struct vd_object **ret_object,
			struct vd_error *reterr)
{
	struct vd_object *prepared;
	vd_status	  status;

	VDI_REQUIRE(codec, reterr);
	VDI_REQUIRE(kv, reterr);
	VDI_REQUIRE(ret_object, reterr);
	prepared = vdi_codec_json_prepared(codec, kv);
	if (prepared) {
		*ret_object = prepared;
		return VD_OK;
	}
	VDI_TRY(vdi_object_translate(codec, kv, &kv, reterr));
	status = inspect_and_build(codec, kv, ret_object, reterr);
	vd_kv_unref(kv);
	return status;
}

struct vd_object *vd_object_ref(struct vd_object *object)
{
	__atomic_fetch_add(&object->references, 1, __ATOMIC_RELAXED);
	return object;
}

struct vd_object *vd_object_unref(struct vd_object *object)
{
	if (object && __atomic_fetch_sub(&object->references, 1, __ATOMIC_ACQ_REL) == 1) {
		vd_kv_unref(object->kv);
		vdi_free(object);
	}
	return NULL;
}

struct vd_kv *vd_object_kv(const struct vd_object *object)
{
	return object->kv;
}

struct vd_bytes vd_object_key(const struct vd_object *object)
{
	return vd_kv_key(object->kv);
}

struct vd_bytes vd_object_name(const struct vd_object *object)
{
	return bytes_of(object, object->name.offset, object->name.size);
}

struct vd_bytes vd_object_namespace(const struct vd_object *object)
{
	return bytes_of(object, object->namespace_name.offset, object->namespace_name.size);
}

struct vd_bytes vdi_object_uid(const struct vd_object *object)
{
	return bytes_of(object, object->uid.offset, object->uid.size);
}

vd_rev vd_object_revision(const struct vd_object *object)
{
	return object->kv->mod_rev;
}

size_t vd_object_label_count(const struct vd_object *object)
{
	return object->label_count;
}

struct vd_pair vd_object_label(const struct vd_object *object, size_t index)
{
	const struct label *label = &object->labels[index];

	VDI_CHECK_SLOW(index < object->label_count);
	return (struct vd_pair) { bytes_of(object, label->key_offset, label->key_size),
				  bytes_of(object, label->value_offset, label->value_size) };
}

bool vd_object_label_get(const struct vd_object *object, struct vd_bytes key, struct vd_bytes *ret_value)
{
	for (size_t i = 0; i < object->label_count; i++) {
		const struct label *label = &object->labels[i];

		if (label->key_size == key.size &&
		    vd_bytes_equal(bytes_of(object, label->key_offset, label->key_size), key)) {
			*ret_value = bytes_of(object, label->value_offset, label->value_size);
			return true;
		}
	}
	return false;
}

struct vd_bytes vd_object_field(const struct vd_object *object, size_t index)
{
	const struct slice *slice = &fields_of(object)[index];

	if (index >= object->field_count)
		return VD_BYTES_NONE;
	return bytes_of(object, slice->offset, slice->size);
}

/* Formats the number itself, because printf would take most of the time of a frame. */
static size_t write_revision(char *text, vd_rev revision, bool comma)
{
	char   digits[20];
	size_t count = 0;
	char  *end = text + sizeof REVISION_HEAD - 1;

	memcpy(text, REVISION_HEAD, sizeof REVISION_HEAD - 1);
	for (uint64_t rest = (uint64_t) revision; rest; rest /= 10)
		digits[count++] = (char) ('0' + rest % 10);
	while (count)
		*end++ = digits[--count];
	*end++ = '"';
	if (comma)
		*end++ = ',';
	return (size_t) (end - text);
}

void vd_object_json(const struct vd_object *object, vd_rev revision, struct vd_object_json *ret_json)
{
	struct vd_bytes value = vd_kv_value(object->kv);
	size_t		after = (size_t) object->revision_offset + object->revision_size;
	size_t		size = 0;

	/* A replaced resourceVersion must stay a member, or its comma would remain alone. */
	if (revision > 0 || object->revision_size)
		size = write_revision(ret_json->text, revision > 0 ? revision : 0, object->revision_comma);
	ret_json->piece[0] = (struct vd_bytes) { value.data, object->revision_offset };
	ret_json->piece[1] = (struct vd_bytes) { ret_json->text, size };
	ret_json->piece[2] = (struct vd_bytes) { (const char *) value.data + after, value.size - after };
}

size_t vd_object_json_size(const struct vd_object *object, vd_rev revision)
{
	size_t size = object->kv->value_size - object->revision_size;

	if (revision <= 0 && object->revision_size == 0)
		return size;
	/* The terminating NUL of REVISION_HEAD counts for the closing quote. */
	size += sizeof REVISION_HEAD + object->revision_comma;
	for (uint64_t rest = revision > 0 ? (uint64_t) revision : 0; rest; rest /= 10)
		size++;
	return size;
}

size_t vdi_object_header_size(const struct vd_object *object)
{
	return sizeof *object + object->label_count * sizeof(struct label) +
	       object->field_count * sizeof(struct slice) + object->own_size;
}

void vdi_object_prefetch(const struct vd_object *object)
{
	for (size_t offset = 0; offset < 192; offset += 64)
		__builtin_prefetch((const char *) object + offset, 1);
}

size_t vdi_object_field_count(const struct vd_object *object)
{
	return object->field_count;
}

struct vd_bytes vdi_object_metadata(const struct vd_object *object)
{
	return bytes_of(object, object->metadata_offset, object->metadata_size);
}

void vdi_object_offsets(const struct vd_object *object, uint32_t *ret_metadata_offset,
			uint32_t *ret_metadata_size, uint32_t *ret_revision_offset,
			uint32_t *ret_revision_size, bool *ret_revision_comma)
{
	*ret_metadata_offset = object->metadata_offset;
	*ret_metadata_size = object->metadata_size;
	*ret_revision_offset = object->revision_offset;
	*ret_revision_size = object->revision_size;
	*ret_revision_comma = object->revision_comma;
}
