/* Continue tokens.
 *
 * Decoding mirrors what Go's encoding/json lets through, because clients may hold tokens of other servers:
 * unknown members are skipped, names compare without case, the last of repeated members wins, null changes
 * nothing. Bytes that are not UTF-8 are refused where Go would replace them: no server writes such tokens.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base64.h"
#include "continue_token.h"
#include "json_scan.h"

#define VERSION "meta.k8s.io/v1"

static vd_status token_write(struct vd_bytes start, vd_rev revision, char **ret_token,
			     struct vd_error *reterr)
{
	size_t room = VDI_JSON_QUOTED_MAX(start.size) + 80;
	char  *json = vdi_alloc(room);
	char  *token = vdi_alloc(VDI_BASE64_ENCODED_MAX(room) + 1);
	size_t size;

	if (json == NULL || token == NULL) {
		vdi_free(json);
		vdi_free(token);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	size = (size_t) snprintf(json, room,
				 "{\"v\":\"" VERSION "\",\"rv\":%" PRId64 ",\"start\":", revision);
	size += vdi_json_quote(start, json + size);
	json[size++] = '}';
	token[vdi_base64_encode(VDI_BASE64_URL, (struct vd_bytes) { json, size }, token)] = 0;
	vdi_free(json);
	*ret_token = token;
	return VD_OK;
}

vd_status vdi_continue_token_encode(struct vd_bytes start_key, struct vd_bytes prefix, vd_rev revision,
				    char **ret_token, struct vd_error *reterr)
{
	/* An empty prefix strips nothing, and upstream takes that for a key that does not match. */
	if (prefix.size == 0 || !vd_bytes_has_prefix(start_key, prefix))
		return vd_error_set(reterr, VD_INTERNAL,
				    "unable to encode next field: the key and key prefix do not match");
	return token_write((struct vd_bytes) { (const char *) start_key.data + prefix.size,
					       start_key.size - prefix.size },
			   revision, ret_token, reterr);
}

vd_status vdi_continue_token_encode_after(struct vd_bytes last_key, struct vd_bytes prefix, vd_rev revision,
					  char **ret_token, struct vd_error *reterr)
{
	char *key = vdi_strndup(last_key.size ? last_key.data : "",
				last_key.size); /* its NUL is the one that is wanted */
	vd_status status;

	if (key == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	status = vdi_continue_token_encode((struct vd_bytes) { key, last_key.size + 1 }, prefix, revision,
					   ret_token, reterr);
	vdi_free(key);
	return status;
}

/* Whether Go's path.Clean("/" + start) changes nothing: no empty, "." or ".." segment, no slash at the end.
 * start has no leading slash. */
static bool path_is_clean(const char *start, size_t size)
{
	size_t segment = 0;

	if (size == 0)
		return true; /* "/" itself */
	for (size_t i = 0; i <= size; i++) {
		if (i < size && start[i] != '/')
			continue;
		if (i == segment || (i - segment == 1 && start[segment] == '.') ||
		    (i - segment == 2 && start[segment] == '.' && start[segment + 1] == '.'))
			return false;
		segment = i + 1;
	}
	return true;
}

struct fields {
	const char *version;
	size_t	    version_size;
	const char *start;
	size_t	    start_size;
	json_int_t  revision;
};

/* Names of members are compared without case, an exact match is not preferred: Go applies them in document
 * order. */
static const char *fields_read(json_t *tree, struct fields *fields)
{
	void *iterator;

	for (iterator = json_object_iter(tree); iterator; iterator = json_object_iter_next(tree, iterator)) {
		const char *name = json_object_iter_key(iterator);
		json_t	   *value = json_object_iter_value(iterator);
		bool	    version = strcasecmp(name, "v") == 0;
		bool	    revision = strcasecmp(name, "rv") == 0;

		if (json_is_null(value) || (!version && !revision && strcasecmp(name, "start") != 0))
			continue;
		if (revision) {
			if (!json_is_integer(value))
				return "rv is not an integer";
			fields->revision = json_integer_value(value);
		} else if (!json_is_string(value)) {
			return version ? "v is not a string" : "start is not a string";
		} else if (version) {
			fields->version = json_string_value(value);
			fields->version_size = json_string_length(value);
		} else {
			fields->start = json_string_value(value);
			fields->start_size = json_string_length(value);
		}
	}
	return NULL;
}

static vd_status fields_check(const struct fields *fields, struct vd_bytes prefix, char **ret_key,
			      size_t *ret_key_size, struct vd_error *reterr)
{
	const char *start = fields->start;
	size_t	    size = fields->start_size;
	char	   *key;

	if (fields->version_size != strlen(VERSION) ||
	    memcmp(fields->version, VERSION, fields->version_size) != 0)
		return vd_error_set(
			reterr, VD_BAD_REQUEST,
			"continue key is not valid: server does not recognize this encoded version %.*s",
			(int) VDI_MIN(fields->version_size, (size_t) 200), fields->version);
	if (fields->revision == 0)
		return vd_error_set(
			reterr, VD_BAD_REQUEST,
			"continue key is not valid: incorrect encoded start resourceVersion (version " VERSION
			")");
	if (size == 0)
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "continue key is not valid: encoded start key empty (version " VERSION
				    ")");
	if (start[0] == '/') {
		start++;
		size--;
	}
	if (!path_is_clean(start, size))
		return vd_error_set(reterr, VD_BAD_REQUEST, "continue key is not valid: %.*s",
				    (int) VDI_MIN(fields->start_size, (size_t) 300), fields->start);
	key = vdi_alloc(prefix.size + size + 1);
	if (key == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (prefix.size)
		memcpy(key, prefix.data, prefix.size);
	memcpy(key + prefix.size, start, size);
	key[prefix.size + size] = 0;
	*ret_key = key;
	*ret_key_size = prefix.size + size;
	return VD_OK;
}

vd_status vdi_continue_token_decode(struct vd_bytes token, struct vd_bytes prefix, char **ret_key,
				    size_t *ret_key_size, vd_rev *ret_revision, struct vd_error *reterr)
{
	struct fields	fields = { "", 0, "", 0, 0 };
	size_t		error_at = 0;
	size_t		size = 0;
	char	       *json;
	json_t	       *tree;
	json_error_t	where;
	struct vd_error invalid;
	const char     *wrong;
	vd_status	status;

	if (token.size > VDI_CONTINUE_TOKEN_SIZE_MAX)
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "continue key is not valid: longer than %zu bytes",
				    VDI_CONTINUE_TOKEN_SIZE_MAX);
	json = vdi_alloc(VDI_BASE64_DECODED_MAX(token.size));
	if (json == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (vdi_base64_decode(VDI_BASE64_URL, token, json, &size, &error_at) != VD_OK) {
		vdi_free(json);
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "continue key is not valid: illegal base64 data at input byte %zu",
				    error_at);
	}
	/* The scanner first: jansson overlooks a NUL right behind a number. */
	if (vdi_json_validate((struct vd_bytes) { json, size }, NULL, &invalid) != VD_OK) {
		vdi_free(json);
		return vd_error_set(reterr, VD_BAD_REQUEST, "continue key is not valid: %.300s",
				    invalid.message);
	}
	tree = json_loadb(json, size, JSON_ALLOW_NUL, &where);
	vdi_free(json);
	if (tree == NULL && json_error_code(&where) == json_error_out_of_memory)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (tree == NULL)
		return vd_error_set(reterr, VD_BAD_REQUEST, "continue key is not valid: %s", where.text);
	wrong = json_is_object(tree) ? fields_read(tree, &fields) : "no JSON object";
	if (wrong)
		status = vd_error_set(reterr, VD_BAD_REQUEST, "continue key is not valid: %s", wrong);
	else
		status = fields_check(&fields, prefix, ret_key, ret_key_size, reterr);
	if (status == VD_OK)
		*ret_revision = fields.revision;
	json_decref(tree);
	return status;
}
