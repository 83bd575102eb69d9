/* Load, dump and merge. JSON patch is in json_patch.c.
 *
 * The text is judged by our own scanner first, so that both paths accept the same language and every error
 * has a position; jansson then only has duplicate keys, and integers beyond 64 bits, to refuse. The printer
 * is our own because jansson's writes 0.1 as 0.10000000000000001.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "json_edit.h"

vd_status vdi_json_load(struct vd_bytes json, const struct vdi_json_limits *limits, json_t **ret_tree,
			struct vd_error *reterr)
{
	json_error_t where;
	json_t	    *tree;

	VDI_TRY(vdi_json_validate(json, limits, reterr));
	tree = json_loadb(json.data, json.size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL,
			  &where);
	if (tree == NULL && json_error_code(&where) == json_error_out_of_memory)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (tree == NULL)
		return vd_error_set(reterr, VD_BAD_REQUEST, "invalid JSON at byte %d: %s", where.position,
				    where.text);
	*ret_tree = tree;
	return VD_OK;
}

struct writer {
	char  *text;
	size_t size;
	size_t capacity;
};

static bool write_bytes(struct writer *writer, const void *bytes, size_t size)
{
	if (!vdi_grow((void **) &writer->text, &writer->capacity, writer->size + size + 1, 1))
		return false;
	memcpy(writer->text + writer->size, bytes, size);
	writer->size += size;
	writer->text[writer->size] = 0;
	return true;
}

static bool write_string(struct writer *writer, const char *text, size_t size)
{
	static const char letters[] = "btnvfr"; /* from \b on; there is no escape for \v */
	size_t		  start = 0;

	if (!write_bytes(writer, "\"", 1))
		return false;
	for (size_t i = 0; i < size; i++) {
		unsigned char character = (unsigned char) text[i];
		char	      escape[8];

		if (character >= 0x20 && character != '"' && character != '\\')
			continue;
		if (character == '"' || character == '\\')
			snprintf(escape, sizeof escape, "\\%c", character);
		else if (character >= '\b' && character <= '\r' && character != '\v')
			snprintf(escape, sizeof escape, "\\%c", letters[character - '\b']);
		else
			snprintf(escape, sizeof escape, "\\u%04x", character);
		if (!write_bytes(writer, text + start, i - start) ||
		    !write_bytes(writer, escape, strlen(escape)))
			return false;
		start = i + 1;
	}
	return write_bytes(writer, text + start, size - start) && write_bytes(writer, "\"", 1);
}

static bool write_real(struct writer *writer, double number)
{
	char text[64];
	bool whole = true;

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	for (char *at = text; *at; at++) {
		if (*at == 'e') {
			whole = false;
		} else if ((*at < '0' || *at > '9') && *at != '-' && *at != '+') {
			*at = '.'; /* whatever the locale calls it */
			whole = false;
		}
	}
	return write_bytes(writer, text, strlen(text)) && (!whole || write_bytes(writer, ".0", 2));
}

static vd_status write_value(struct writer *writer, const json_t *value, unsigned depth)
{
	json_t	   *tree = (json_t *) (uintptr_t) value; /* jansson iterates without changing it */
	const char *separator = "";
	char	    text[32];
	bool	    fine = false;

	if (depth > 2 * VDI_JSON_DEPTH_MAX)
		return VD_TOO_BIG;
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		fine = write_bytes(writer, "{", 1);
		for (void *at = json_object_iter(tree); at && fine; at = json_object_iter_next(tree, at)) {
			fine = write_bytes(writer, separator, strlen(separator)) &&
			       write_string(writer, json_object_iter_key(at), json_object_iter_key_len(at)) &&
			       write_bytes(writer, ":", 1);
			if (fine)
				VDI_TRY(write_value(writer, json_object_iter_value(at), depth + 1));
			separator = ",";
		}
		fine = fine && write_bytes(writer, "}", 1);
		break;
	case JSON_ARRAY:
		fine = write_bytes(writer, "[", 1);
		for (size_t i = 0; i < json_array_size(value) && fine; i++) {
			fine = write_bytes(writer, separator, strlen(separator));
			if (fine)
				VDI_TRY(write_value(writer, json_array_get(value, i), depth + 1));
			separator = ",";
		}
		fine = fine && write_bytes(writer, "]", 1);
		break;
	case JSON_STRING:
		fine = write_string(writer, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		fine = write_bytes(writer, text, strlen(text));
		break;
	case JSON_REAL: fine = write_real(writer, json_real_value(value)); break;
	case JSON_TRUE: fine = write_bytes(writer, "true", 4); break;
	case JSON_FALSE: fine = write_bytes(writer, "false", 5); break;
	case JSON_NULL: fine = write_bytes(writer, "null", 4); break;
	}
	return fine ? VD_OK : VD_NOMEM;
}

vd_status vdi_json_dump(const json_t *tree, char **ret_text, size_t *ret_size, struct vd_error *reterr)
{
	struct writer writer = { 0 };
	vd_status     status = write_value(&writer, tree, 0);

	if (status != VD_OK) {
		vdi_free(writer.text);
		return vd_error_set(reterr, status,
				    status == VD_NOMEM ? "out of memory" : "JSON has too many levels");
	}
	*ret_text = writer.text;
	*ret_size = writer.size;
	return VD_OK;
}

json_t *vdi_json_get(const json_t *tree, const char *path)
{
	json_t *value = (json_t *) (uintptr_t) tree;
	char	key[VDI_JSON_PATH_SIZE_MAX];

	path += *path == '.';
	while (value) {
		size_t length = 0;

		for (; *path && *path != '.'; path++) {
			path += path[0] == '\\' && path[1];
			if (length == sizeof key)
				return NULL;
			key[length++] = *path;
		}
		value = json_object_getn(value, key, length); /* NULL for what is no object */
		if (*path++ == 0)
			break;
	}
	return value;
}

/* Merges patch, an object, into target, an object that is ours. */
static bool merge_into(json_t *target, const json_t *patch)
{
	json_t *tree = (json_t *) (uintptr_t) patch;

	for (void *at = json_object_iter(tree); at; at = json_object_iter_next(tree, at)) {
		const char *key = json_object_iter_key(at);
		size_t	    length = json_object_iter_key_len(at);
		json_t	   *change = json_object_iter_value(at);
		json_t	   *member;

		if (json_is_null(change)) {
			json_object_deln(target, key,
					 length); /* its absence is what we want: no matter if it was there */
			continue;
		}
		if (!json_is_object(change)) {
			if (json_object_setn_new(target, key, length, json_deep_copy(change)) != 0)
				return false;
			continue;
		}
		/* An object is merged also into what is not there yet, so that its nulls go. */
		member = json_object_getn(target, key, length);
		if (!json_is_object(member)) {
			if (json_object_setn_new(target, key, length, json_object()) != 0)
				return false;
			member = json_object_getn(target, key, length);
		}
		if (!merge_into(member, change))
			return false;
	}
	return true;
}

vd_status vdi_json_merge_patch(const json_t *target, const json_t *patch, json_t **ret_tree,
			       struct vd_error *reterr)
{
	json_t *tree;

	if (json_is_object(patch))
		tree = json_is_object(target) ? json_deep_copy(target) : json_object();
	else
		tree = json_deep_copy(patch);
	if (tree == NULL || (json_is_object(patch) && !merge_into(tree, patch))) {
		json_decref(tree);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	*ret_tree = tree;
	return VD_OK;
}

bool vdi_json_same(const json_t *a, const json_t *b)
{
	json_t *tree = (json_t *) (uintptr_t) a;

	if (json_is_number(a) && json_is_number(b) && json_typeof(a) != json_typeof(b))
		return json_number_value(a) == json_number_value(b);
	if (json_typeof(a) != json_typeof(b))
		return false;
	if (json_is_array(a)) {
		if (json_array_size(a) != json_array_size(b))
			return false;
		for (size_t i = 0; i < json_array_size(a); i++)
			if (!vdi_json_same(json_array_get(a, i), json_array_get(b, i)))
				return false;
		return true;
	}
	if (!json_is_object(a))
		return json_equal(a, b);
	if (json_object_size(a) != json_object_size(b))
		return false;
	for (void *at = json_object_iter(tree); at; at = json_object_iter_next(tree, at)) {
		const json_t *other =
			json_object_getn(b, json_object_iter_key(at), json_object_iter_key_len(at));

		if (other == NULL || !vdi_json_same(json_object_iter_value(at), other))
			return false;
	}
	return true;
}
