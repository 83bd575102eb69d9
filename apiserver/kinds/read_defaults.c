/* A codec around the kind's codec. Just as a value in another encoding is converted to JSON when it is read
 * from the store, a value without its defaults is completed: the cache then holds a record of its own instead
 * of the store's. A value that lacks no default stays shared with the store. */
#include "read_defaults.h"

#include <stdatomic.h>

#include "base.h"
#include "hash.h"
#include "stored_version.h"

struct version {
	char			*api_version;
	const struct vdi_schema *schema; /* one reference */
};

struct vdi_read_defaults {
	_Atomic uint32_t users;
	struct version	*versions;
	size_t		 count;
	size_t		 capacity;
	uint64_t	 key;
};

struct defaulting_codec {
	struct vd_codec		  codec;
	struct vd_codec		 *inner;    /* owned */
	struct vdi_read_defaults *defaults; /* one reference */
};

static vd_status add(struct vdi_read_defaults *defaults, const char *api_version,
		     const struct vdi_schema *schema, uint64_t key)
{
	void *versions = defaults->versions;
	char *text = vdi_strdup(api_version);

	if (text == NULL ||
	    !vdi_grow(&versions, &defaults->capacity, defaults->count + 1, sizeof *defaults->versions)) {
		vdi_free(text);
		return VD_NOMEM;
	}
	defaults->versions = versions;
	defaults->versions[defaults->count++] = (struct version) { text, vdi_schema_ref(schema) };
	/* the sum is independent of the order */
	defaults->key += vdi_hash_bytes(vd_bytes_of(api_version), key);
	return VD_OK;
}

vd_status vdi_read_defaults_add(struct vdi_read_defaults **defaults, const char *api_version,
				const struct vdi_schema *schema)
{
	uint64_t		  key = schema ? vdi_schema_default_key(schema) : 0;
	struct vdi_read_defaults *made = *defaults;
	vd_status		  status;

	if (key == 0)
		return VD_OK;
	if (made == NULL) {
		made = VDI_NEW(struct vdi_read_defaults);
		if (made == NULL)
			return VD_NOMEM;
		atomic_init(&made->users, 1);
	}
	status = add(made, api_version, schema, key);
	if (status == VD_OK)
		*defaults = made;
	else if (*defaults == NULL)
		(void) vdi_read_defaults_unref(made);
	return status;
}

struct vdi_read_defaults *vdi_read_defaults_ref(struct vdi_read_defaults *defaults)
{
	if (defaults)
		atomic_fetch_add_explicit(&defaults->users, 1, memory_order_relaxed);
	return defaults;
}

struct vdi_read_defaults *vdi_read_defaults_unref(struct vdi_read_defaults *defaults)
{
	if (defaults == NULL || atomic_fetch_sub_explicit(&defaults->users, 1, memory_order_acq_rel) != 1)
		return NULL;
	for (size_t i = 0; i < defaults->count; i++) {
		vdi_free(defaults->versions[i].api_version);
		(void) vdi_schema_free((struct vdi_schema *) (uintptr_t) defaults->versions[i].schema);
	}
	vdi_free(defaults->versions);
	vdi_free(defaults);
	return NULL;
}

uint64_t vdi_read_defaults_key(const struct vdi_read_defaults *defaults)
{
	return defaults ? VDI_MAX(defaults->key, 1u) : 0;
}

/* ---- The codec ---- */

static struct defaulting_codec *codec_of(const struct vd_codec *codec)
{
	return VDI_CONTAINER_OF(codec, struct defaulting_codec, codec);
}

static vd_status inspect(const struct vd_codec *codec, struct vd_bytes value,
			 struct vd_object_attributes *ret_attributes, struct vd_error *reterr)
{
	const struct vd_codec *inner = codec_of(codec)->inner;

	return inner->ops->inspect(inner, value, ret_attributes, reterr);
}

static void release(const struct vd_codec *codec, struct vd_object_attributes *attributes)
{
	vd_codec_release(codec_of(codec)->inner, attributes);
}

static void free_codec(struct vd_codec *codec)
{
	struct defaulting_codec *defaulting = codec_of(codec);

	(void) vd_codec_free(defaulting->inner);
	(void) vdi_read_defaults_unref(defaulting->defaults);
	vdi_free(defaulting);
}

static const struct vdi_schema *schema_of(const struct vdi_read_defaults *defaults, struct vd_bytes value)
{
	struct vd_bytes version = vdi_version_of(value);

	for (size_t i = 0; i < defaults->count; i++)
		if (vd_bytes_equal(version, vd_bytes_of(defaults->versions[i].api_version)))
			return defaults->versions[i].schema;
	return NULL;
}

/* Writes the value with its defaults to ret_text; *ret_changed false: it lacks none. A value that is not an
 * object is left for inspect to reject; one that its defaults would make too large is left unchanged. */
static vd_status complete(const struct vdi_schema *schema, struct vd_bytes value, struct vdi_out *ret_text,
			  bool *ret_changed)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	vd_status	 status = vdi_tree_parse(&tree, value, &root, NULL);

	if (status == VD_OK && vdi_tree_is(root, VDI_NODE_OBJECT))
		status = vdi_schema_default_stored(schema, &tree, root, ret_changed);
	*ret_changed &= status == VD_OK;
	if (*ret_changed) {
		vdi_tree_write(ret_text, root);
		status = ret_text->failed ? VD_NOMEM : VD_OK;
	}
	vdi_tree_fini(&tree);
	return status == VD_NOMEM ? VD_NOMEM : VD_OK;
}

static vd_status translate(const struct vd_codec *codec, struct vd_bytes key, struct vd_bytes value,
			   struct vd_kv **ret_kv, struct vd_error *reterr)
{
	struct defaulting_codec *defaulting = codec_of(codec);
	const struct vdi_schema *schema;
	struct vdi_out		 text = VDI_OUT_INIT;
	struct vd_kv		*plain = NULL;
	bool			 is_changed = false;
	vd_status		 status = VD_OK;

	*ret_kv = NULL;
	if (defaulting->inner->ops->translate)
		VDI_TRY(defaulting->inner->ops->translate(defaulting->inner, key, value, &plain, reterr));
	if (plain)
		value = vd_kv_value(plain);
	schema = schema_of(defaulting->defaults, value);
	if (schema)
		status = complete(schema, value, &text, &is_changed);
	if (status == VD_OK && is_changed)
		status = vd_kv_new(key, vdi_out_slice(&text), ret_kv);
	vdi_out_fini(&text);
	if (status == VD_OK && !is_changed)
		*ret_kv = plain;
	else
		vd_kv_unref(plain);
	return status == VD_OK ? VD_OK : vd_error_set(reterr, status, "%s", vd_status_sentence(status));
}

static const struct vd_codec_ops ops = { inspect, release, free_codec, translate };

vd_status vdi_read_defaults_wrap(struct vdi_read_defaults *defaults, struct vd_codec **codec)
{
	struct defaulting_codec *defaulting = VDI_NEW(struct defaulting_codec);
	struct defaulting_codec	 content = { { &ops, (*codec)->field_names, (*codec)->field_count },
					     *codec,
					     NULL };

	if (defaulting == NULL)
		return VD_NOMEM;
	content.defaults = vdi_read_defaults_ref(defaults);
	memcpy(defaulting, &content, sizeof content); /* copied, because its names are const */
	*codec = &defaulting->codec;
	return VD_OK;
}
