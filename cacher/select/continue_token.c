/* Continue tokens.
 *
 * Decoding accepts what Go's encoding/json accepts, because clients may hold tokens of other servers:
 * unknown members are ignored, names are compared without case, the last of members like "rv" and "RV" wins,
 * null changes nothing. It rejects members of exactly the same name and bytes that are not UTF-8, of which
 * Go takes the last one or replaces them, because no server writes such tokens.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base64.h"
#include "continue_token.h"
#include "json_text.h"
#include "tree.h"

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
	/* For upstream, a key does not match an empty prefix either. */
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
				last_key.size); /* appends the NUL of last_key */
	vd_status status;

	if (key == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	status = vdi_continue_token_encode((struct vd_bytes) { key, last_key.size + 1 }, prefix, revision,
					   ret_token, reterr);
	vdi_free(key);
	return status;
}

/* Returns true if Go's path.Clean("/" + start) changes nothing: no empty, "." or ".." segment, no trailing
 * slash. start has no leading slash. */
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
	struct vd_bytes version;
	struct vd_bytes start;
	vd_rev		revision;
};

static bool is_named(const struct vdi_node *member, const char *name)
{
	return member->key.size == strlen(name) && strncasecmp(member->key.data, name, member->key.size) == 0;
}

/* Compares member names without case and without preference for an exact match, because Go applies members in
 * document order. Returns NULL or the error. */
static const char *fields_read(const struct vdi_node *object, struct fields *fields)
{
	if (!vdi_tree_is(object, VDI_NODE_OBJECT))
		return "not a JSON object";
	for (const struct vdi_node *value = object->first; value; value = value->next) {
		bool version = is_named(value, "v");
		bool revision = is_named(value, "rv");

		if (value->kind == VDI_NODE_NULL || (!version && !revision && !is_named(value, "start")))
			continue;
		if (revision) {
			fields->revision = vdi_tree_int_of(value, INT64_MIN);
			if (fields->revision == INT64_MIN)
				return "rv is not an integer";
		} else if (value->kind != VDI_NODE_STRING) {
			return version ? "v is not a string" : "start is not a string";
		} else if (version) {
			fields->version = value->text;
		} else {
			fields->start = value->text;
		}
	}
	return NULL;
}

static vd_status fields_check(const struct fields *fields, struct vd_bytes prefix, char **ret_key,
			      size_t *ret_key_size, struct vd_error *reterr)
{
	const char *start = fields->start.data;
	size_t	    size = fields->start.size;
	char	   *key;

	if (!vd_bytes_equal(fields->version, vd_bytes_of(VERSION)))
		return vd_error_set(
			reterr, VD_BAD_REQUEST,
			"continue key is not valid: server does not recognize this encoded version %.*s",
			(int) VDI_MIN(fields->version.size, (size_t) 200),
			(const char *) fields->version.data);
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
				    (int) VDI_MIN(fields->start.size, (size_t) 300),
				    (const char *) fields->start.data);
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
	struct fields	 fields = { vd_bytes_of(""), vd_bytes_of(""), 0 };
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root = NULL;
	struct vd_error	 invalid = { 0 };
	size_t		 error_at = 0, size = 0;
	char		*json;
	const char	*wrong;
	vd_status	 status;

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
	status = vdi_tree_parse(&tree, (struct vd_bytes) { json, size }, &root, &invalid);
	if (status == VD_NOMEM)
		(void) vd_error_set(reterr, VD_NOMEM, "out of memory");
	else if (status != VD_OK)
		status = vd_error_set(reterr, VD_BAD_REQUEST, "continue key is not valid: %.300s",
				      invalid.message);
	else if ((wrong = fields_read(root, &fields)) != NULL)
		status = vd_error_set(reterr, VD_BAD_REQUEST, "continue key is not valid: %s", wrong);
	else
		status = fields_check(&fields, prefix, ret_key, ret_key_size, reterr);
	if (status == VD_OK)
		*ret_revision = fields.revision;
	vdi_tree_fini(&tree);
	vdi_free(json);
	return status;
}
