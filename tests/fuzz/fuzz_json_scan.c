/* The scanner compared with jansson: both accept the same documents, and extracted values equal those of a
 * tree. */
#include <jansson.h>

#include "fuzz.h"
#include "json_scan.h"

static const struct vd_bytes paths[] = {
	{ "metadata.name", 13 },
	{ "spec.nodeName", 13 },
	{ "status.phase", 12 },
	{ "spec.containers", 15 },
	{ "a.b", 3 },
};

static json_t *tree_get(json_t *tree, struct vd_bytes path)
{
	const char *at = path.data;
	const char *end = at + path.size;

	while (tree && at < end) {
		const char *dot = memchr(at, '.', (size_t) (end - at));
		size_t	    length = (size_t) ((dot ? dot : end) - at);

		tree = json_object_getn(tree, at, length);
		at += length + 1;
	}
	return tree;
}

static void check_value(struct vd_bytes json, const struct vdi_json_value *value, const json_t *expected)
{
	static const int types[] = { [JSON_OBJECT] = VDI_JSON_OBJECT, [JSON_ARRAY] = VDI_JSON_ARRAY,
				     [JSON_STRING] = VDI_JSON_STRING, [JSON_INTEGER] = VDI_JSON_NUMBER,
				     [JSON_REAL] = VDI_JSON_NUMBER,   [JSON_TRUE] = VDI_JSON_TRUE,
				     [JSON_FALSE] = VDI_JSON_FALSE,   [JSON_NULL] = VDI_JSON_NULL };
	struct vd_bytes	 text = vdi_json_value_bytes(json, value);
	char		*plain;
	json_t		*tree;

	VDI_CHECK(value->type == (expected ? types[json_typeof(expected)] : VDI_JSON_ABSENT));
	if (expected == NULL)
		return;
	if (!json_is_string(expected)) {
		tree = json_loadb(text.data, text.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		VDI_CHECK(tree && json_equal(tree, expected));
		json_decref(tree);
		return;
	}
	plain = malloc(text.size + 1);
	VDI_CHECK(plain);
	VDI_CHECK(vd_bytes_equal(
		(struct vd_bytes) { plain, vdi_json_unescape(text, plain) },
		(struct vd_bytes) { json_string_value(expected), json_string_length(expected) }));
	VDI_CHECK(value->escaped == (text.size && memchr(text.data, '\\', text.size) != NULL));
	free(plain);
}

/* Without the resourceVersion, and with one more member at the insertion point, it is still JSON. */
static void check_splices(struct vd_bytes json, const struct vdi_json_object *object)
{
	struct vdi_json_slice cut = object->resource_version_member;
	char		     *text = malloc(json.size + 16);
	size_t		      size = cut.offset;
	const char	     *member = object->metadata_empty ? "\"~\":1" : "\"~\":1,";

	VDI_CHECK(text);
	memcpy(text, json.data, cut.offset);
	memcpy(text + size, (const char *) json.data + cut.offset + cut.length,
	       json.size - cut.offset - cut.length);
	VDI_CHECK(vdi_json_validate((struct vd_bytes) { text, json.size - cut.length }, NULL, NULL) == VD_OK);
	if (object->metadata_insert) {
		size = object->metadata_insert;
		memcpy(text, json.data, size);
		memcpy(text + size, member, strlen(member));
		memcpy(text + size + strlen(member), (const char *) json.data + size, json.size - size);
		VDI_CHECK(vdi_json_validate((struct vd_bytes) { text, json.size + strlen(member) }, NULL,
					    NULL) == VD_OK);
	}
	free(text);
}

static void check_minify(struct vd_bytes json, const json_t *tree, bool spaced)
{
	char   *text = malloc(json.size);
	size_t	size;
	json_t *again;

	VDI_CHECK(text);
	size = vdi_json_minify(json, text);
	VDI_CHECK((size < json.size) == spaced);
	again = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	VDI_CHECK(again && json_equal(again, tree));
	json_decref(again);
	free(text);
}

static void check_object(struct vd_bytes json, const struct vdi_json_object *object, json_t *tree)
{
	json_t *labels;

	VDI_CHECK(json_is_object(tree));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(paths); i++)
		check_value(json, vdi_json_field(object, i), tree_get(tree, paths[i]));
	check_value(json, vdi_json_member(object, VDI_JSON_KIND), json_object_get(tree, "kind"));
	check_value(json, vdi_json_member(object, VDI_JSON_METADATA), json_object_get(tree, "metadata"));
	labels = tree_get(tree, (struct vd_bytes) { "metadata.labels", 15 });
	VDI_CHECK(object->label_count == json_object_size(labels));
	for (size_t i = 0; i < object->label_count; i++) {
		struct vd_bytes key = vdi_json_slice_bytes(json, object->labels[i].key);
		json_t	       *value = json_object_getn(labels, key.data, key.size);

		VDI_CHECK(value);
		if (json_is_string(value))
			check_value(json, &object->labels[i].value, value);
	}
	check_splices(json, object);
	check_minify(json, tree, object->spaced);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vdi_json_plan  *plan;
	static struct vdi_json_object object;
	struct vd_bytes		      json = { data, size };
	struct vd_error		      error;
	json_error_t		      where;
	bool			      valid = vdi_json_validate(json, NULL, &error) == VD_OK;
	bool			      scanned;
	json_t			     *tree;

	VDI_CHECK(valid || error.message[0]);
	if (plan == NULL) {
		VDI_CHECK(vdi_json_plan_new(paths, VDI_ARRAY_SIZE(paths), &plan, NULL) == VD_OK);
		VDI_CHECK(vdi_json_object_init(&object, plan) == VD_OK);
	}
	scanned = vdi_json_scan(json, NULL, &object, NULL) == VD_OK; /* refuses more than the grammar does */
	VDI_CHECK(valid || !scanned);
	tree = json_loadb((const char *) data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &where);
	if (tree == NULL && valid) {
		/* Valid JSON that jansson cannot represent. */
		enum json_error_code code = json_error_code(&where);

		VDI_CHECK(code == json_error_numeric_overflow || code == json_error_null_byte_in_key);
	} else if (tree && !valid) {
		/* jansson ignores a NUL right behind a number or literal. */
		VDI_CHECK(strstr(error.message, "too many levels") || memchr(data, 0, size));
	} else if (tree && scanned) {
		check_object(json, &object, tree);
	}
	json_decref(tree);
	return 0;
}
