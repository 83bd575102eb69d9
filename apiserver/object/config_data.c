/* field_check has already checked every type and that the values of a Secret are base64, so nothing is
 * decoded here without need. */
#include "config_data.h"

#include <stdio.h>

#include "base64.h"
#include "json_scan.h"

#define DATA_MAX (1024 * 1024) /* decoded size of all values: core.MaxSecretSize */
#define FIELD_SIZE 320

enum kind { NEITHER, CONFIG_MAP, SECRET };

static enum kind kind_of(const struct vdi_resource *resource)
{
	if (!resource->built_in || *resource->group)
		return NEITHER;
	return strcmp(resource->plural, "secrets") == 0	   ? SECRET :
	       strcmp(resource->plural, "configmaps") == 0 ? CONFIG_MAP :
							     NEITHER;
}

bool vdi_config_data_is(const struct vdi_resource *resource)
{
	return kind_of(resource) != NEITHER;
}

static struct vd_bytes key(const char *text)
{
	return vd_bytes_of(text);
}

static const struct vdi_node *first_of(const struct vdi_node *map)
{
	return vdi_tree_is(map, VDI_NODE_OBJECT) ? map->first : NULL;
}

/* ---- Preparation ---- */

/* Removes the line breaks from a base64 text; Go's decoder skips them. */
static vd_status unfold(struct vdi_tree *tree, struct vdi_node *value)
{
	const char *from = value->text.data;
	char	   *text;
	size_t	    size = 0;

	if (value->text.size == 0 ||
	    (!memchr(from, '\n', value->text.size) && !memchr(from, '\r', value->text.size)))
		return VD_OK;
	text = vdi_tree_take(tree, value->text.size);
	if (text == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < value->text.size; i++)
		if (from[i] != '\n' && from[i] != '\r')
			text[size++] = from[i];
	value->text = (struct vd_bytes) { text, size };
	return VD_OK;
}

/* Removes an empty or null map; turns null values into empty strings. */
static vd_status prepare_map(struct vdi_tree *tree, struct vdi_node *root, const char *name, bool is_encoded)
{
	struct vdi_node *map = vdi_tree_get(tree, root, key(name));

	if (vdi_tree_is(map, VDI_NODE_NULL) || (vdi_tree_is(map, VDI_NODE_OBJECT) && map->count == 0)) {
		(void) vdi_tree_remove(tree, root, key(name));
		return VD_OK;
	}
	for (struct vdi_node *value = vdi_tree_is(map, VDI_NODE_OBJECT) ? map->first : NULL; value;
	     value = value->next) {
		if (value->kind == VDI_NODE_NULL) {
			value->kind = VDI_NODE_STRING;
			value->text = key("");
		}
		if (is_encoded && value->kind == VDI_NODE_STRING)
			VDI_TRY(unfold(tree, value));
	}
	return VD_OK;
}

static vd_status put_encoded(struct vdi_tree *tree, struct vdi_node *data, struct vd_bytes name,
			     struct vd_bytes bytes)
{
	struct vdi_node *value = vdi_tree_new(tree, VDI_NODE_STRING);
	char		*text = vdi_tree_take(tree, VDI_BASE64_ENCODED_MAX(bytes.size) + 1);

	if (value == NULL || text == NULL)
		return VD_NOMEM;
	value->text = (struct vd_bytes) { text, vdi_base64_encode(VDI_BASE64_STANDARD, bytes, text) };
	return vdi_tree_set(tree, data, name, value) ? VD_OK : VD_NOMEM;
}

static vd_status merge_string_data(struct vdi_tree *tree, struct vdi_node *root)
{
	const struct vdi_node *given = vdi_tree_get(tree, root, key("stringData"));
	struct vdi_node	      *data;

	if (vdi_tree_is(given, VDI_NODE_OBJECT) && given->count) {
		data = vdi_tree_object_at(tree, root, "data");
		if (data == NULL)
			return VD_NOMEM;
		for (const struct vdi_node *value = given->first; value; value = value->next)
			VDI_TRY(put_encoded(tree, data, value->key, vdi_tree_string_of(value)));
	}
	(void) vdi_tree_remove(tree, root, key("stringData"));
	return VD_OK;
}

vd_status vdi_config_data_prepare(const struct vdi_resource *resource, struct vdi_tree *tree,
				  struct vdi_node *root)
{
	enum kind kind = kind_of(resource);

	if (kind == NEITHER)
		return VD_OK;
	if (kind == SECRET)
		VDI_TRY(merge_string_data(tree, root));
	VDI_TRY(prepare_map(tree, root, "data", kind == SECRET));
	if (kind == CONFIG_MAP)
		VDI_TRY(prepare_map(tree, root, "binaryData", true));
	if (vdi_tree_is(vdi_tree_get(tree, root, key("immutable")), VDI_NODE_NULL))
		(void) vdi_tree_remove(tree, root, key("immutable"));
	if (kind == CONFIG_MAP)
		return VD_OK;
	if (vdi_tree_string_of(vdi_tree_get(tree, root, key("type"))).size == 0 &&
	    !vdi_tree_set(tree, root, key("type"), vdi_tree_new_string(tree, key("Opaque"))))
		return VD_NOMEM;
	return VD_OK;
}

/* ---- Validation ---- */

static bool is_key_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
	       c == '_' || c == '.';
}

static struct vd_bytes field_of(char buffer[FIELD_SIZE], const char *map, struct vd_bytes name)
{
	(void) snprintf(buffer, FIELD_SIZE, "%s[%.*s]", map, (int) VDI_MIN(name.size, (size_t) 280),
			name.size ? (const char *) name.data : "");
	return key(buffer);
}

static void check_key(const char *map, struct vd_bytes name, struct vdi_field_errors *field_errors)
{
	char	    buffer[FIELD_SIZE];
	const char *text = name.data;
	bool	    is_fine = name.size > 0;

	for (size_t i = 0; i < name.size; i++)
		is_fine &= is_key_character(text[i]);
	if (name.size > 253)
		vdi_field_errors_add_text(field_errors, VDI_FIELD_ERROR_INVALID, field_of(buffer, map, name),
					  name, "must be no more than 253 characters");
	if (!is_fine)
		vdi_field_errors_add_text(
			field_errors, VDI_FIELD_ERROR_INVALID, field_of(buffer, map, name), name,
			"a valid config key must consist of alphanumeric characters, '-', '_' or "
			"'.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for "
			"validation is '[-._a-zA-Z0-9]+')");
	else if (vd_bytes_equal(name, key(".")) || vd_bytes_equal(name, key("..")))
		vdi_field_errors_add_text(field_errors, VDI_FIELD_ERROR_INVALID, field_of(buffer, map, name),
					  name, "must not be '%s'", name.size == 1 ? "." : "..");
	else if (name.size > 2 && memcmp(text, "..", 2) == 0)
		vdi_field_errors_add_text(field_errors, VDI_FIELD_ERROR_INVALID, field_of(buffer, map, name),
					  name, "must not start with '..'");
}

static size_t decoded_size(struct vd_bytes text)
{
	const char *at = text.data;
	size_t	    size = text.size / 4 * 3;

	for (size_t i = 1; i <= 2 && i <= text.size && at[text.size - i] == '='; i++)
		size -= size > 0;
	return size;
}

static size_t check_values(const char *name, const struct vdi_node *map, bool is_encoded,
			   struct vdi_field_errors *field_errors)
{
	size_t size = 0;

	for (const struct vdi_node *value = first_of(map); value; value = value->next) {
		check_key(name, value->key, field_errors);
		size += is_encoded ? decoded_size(vdi_tree_string_of(value)) : vdi_tree_string_of(value).size;
	}
	return size;
}

static void check_config_map(struct vdi_tree *tree, const struct vdi_node *root,
			     struct vdi_field_errors *field_errors)
{
	const struct vdi_node *data = vdi_tree_get(tree, root, key("data")),
			      *binary = vdi_tree_get(tree, root, key("binaryData"));
	char   buffer[FIELD_SIZE];
	size_t size = check_values("data", data, false, field_errors) +
		      check_values("binaryData", binary, true, field_errors);

	for (const struct vdi_node *value = first_of(data); value; value = value->next)
		if (vdi_tree_get(tree, binary, value->key))
			vdi_field_errors_add_text(field_errors, VDI_FIELD_ERROR_INVALID,
						  field_of(buffer, "data", value->key), value->key,
						  "duplicate of key present in binaryData");
	if (size > DATA_MAX)
		vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_TOO_LONG, key("[]"), VD_BYTES_NONE,
				     "may not be more than %d bytes", DATA_MAX);
}

/* Reports a missing key; an empty value counts as missing unless may_be_empty, as upstream. */
static bool require(const struct vdi_node *data, struct vdi_tree *tree, const char *name, bool may_be_empty,
		    struct vdi_field_errors *field_errors)
{
	const struct vdi_node *value = vdi_tree_get(tree, data, key(name));
	char		       buffer[FIELD_SIZE];

	if (value && (may_be_empty || vdi_tree_string_of(value).size))
		return true;
	vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_REQUIRED, field_of(buffer, "data", key(name)),
			     VD_BYTES_NONE, "%s", "");
	return false;
}

/* Checks that the registry client's configuration is a JSON object. */
static vd_status check_docker(struct vdi_tree *tree, const struct vdi_node *data, const char *name,
			      struct vdi_field_errors *field_errors)
{
	struct vd_bytes text;
	size_t		size, at;
	char	       *bytes, buffer[FIELD_SIZE];

	if (!require(data, tree, name, true, field_errors))
		return VD_OK;
	text = vdi_tree_string_of(vdi_tree_get(tree, data, key(name)));
	bytes = vdi_tree_take(tree, VDI_BASE64_DECODED_MAX(text.size));
	if (bytes == NULL)
		return VD_NOMEM;
	if (vdi_base64_decode(VDI_BASE64_STANDARD, text, bytes, &size, NULL) == VD_OK &&
	    vdi_json_validate((struct vd_bytes) { bytes, size }, NULL, NULL) == VD_OK) {
		for (at = 0; bytes[at] == ' ' || bytes[at] == '\n' || bytes[at] == '\t' || bytes[at] == '\r';
		     at++)
			continue;
		if (bytes[at] == '{' || bytes[at] == 'n')
			return VD_OK;
	}
	vdi_field_errors_add_text(field_errors, VDI_FIELD_ERROR_INVALID, field_of(buffer, "data", key(name)),
				  key("<secret contents redacted>"), "must be a JSON object");
	return VD_OK;
}

static vd_status check_type(struct vdi_tree *tree, const struct vdi_node *root, const struct vdi_node *data,
			    struct vdi_field_errors *field_errors)
{
	static const char account[] = "kubernetes.io/service-account.name";
	struct vd_bytes	  type = vdi_tree_string_of(vdi_tree_get(tree, root, key("type")));
	char		  buffer[FIELD_SIZE];

	if (vd_bytes_equal(type, key("kubernetes.io/service-account-token"))) {
		if (vdi_tree_string_of(vdi_tree_get(tree, vdi_tree_find(tree, root, "metadata.annotations"),
						    key(account)))
			    .size == 0)
			vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_REQUIRED,
					     field_of(buffer, "metadata.annotations", key(account)),
					     VD_BYTES_NONE, "%s", "");
	} else if (vd_bytes_equal(type, key("kubernetes.io/dockercfg"))) {
		return check_docker(tree, data, ".dockercfg", field_errors);
	} else if (vd_bytes_equal(type, key("kubernetes.io/dockerconfigjson"))) {
		return check_docker(tree, data, ".dockerconfigjson", field_errors);
	} else if (vd_bytes_equal(type, key("kubernetes.io/basic-auth"))) {
		if (vdi_tree_get(tree, data, key("username")) == NULL &&
		    vdi_tree_get(tree, data, key("password")) == NULL) {
			(void) require(data, tree, "username", true, field_errors);
			(void) require(data, tree, "password", true, field_errors);
		}
	} else if (vd_bytes_equal(type, key("kubernetes.io/ssh-auth"))) {
		(void) require(data, tree, "ssh-privatekey", false, field_errors);
	} else if (vd_bytes_equal(type, key("kubernetes.io/tls"))) {
		(void) require(data, tree, "tls.crt", true, field_errors);
		(void) require(data, tree, "tls.key", true, field_errors);
	}
	return VD_OK;
}

static vd_status check_secret(struct vdi_tree *tree, const struct vdi_node *root,
			      struct vdi_field_errors *field_errors)
{
	const struct vdi_node *data = vdi_tree_get(tree, root, key("data"));

	if (check_values("data", data, true, field_errors) > DATA_MAX)
		vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_TOO_LONG, key("data"), VD_BYTES_NONE,
				     "may not be more than %d bytes", DATA_MAX);
	return check_type(tree, root, data, field_errors);
}

/* An absent map and an empty one are equal. */
static bool is_same_map(struct vdi_tree *tree, const struct vdi_node *a, const struct vdi_node *b)
{
	return first_of(a) == NULL || first_of(b) == NULL ? first_of(a) == first_of(b) :
							    vdi_tree_equal(tree, a, b);
}

static void check_update(enum kind kind, struct vdi_tree *tree, const struct vdi_node *root,
			 const struct vdi_node *old, struct vdi_field_errors *field_errors)
{
	static const char *const maps[] = { "data", "binaryData" };
	static const char	 why[] = "field is immutable when `immutable` is set";
	struct vd_bytes		 type = vdi_tree_string_of(vdi_tree_get(tree, root, key("type")));

	if (kind == SECRET && !vd_bytes_equal(type, vdi_tree_string_of(vdi_tree_get(tree, old, key("type")))))
		vdi_field_errors_add_text(field_errors, VDI_FIELD_ERROR_INVALID, key("type"), type,
					  "field is immutable");
	if (!vdi_tree_is(vdi_tree_get(tree, old, key("immutable")), VDI_NODE_TRUE))
		return;
	if (!vdi_tree_is(vdi_tree_get(tree, root, key("immutable")), VDI_NODE_TRUE))
		vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_FORBIDDEN, key("immutable"), VD_BYTES_NONE,
				     "%s", why);
	for (size_t i = 0; i < (kind == SECRET ? 1 : VDI_ARRAY_SIZE(maps)); i++)
		if (!is_same_map(tree, vdi_tree_get(tree, root, key(maps[i])),
				 vdi_tree_get(tree, old, key(maps[i]))))
			vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_FORBIDDEN, key(maps[i]),
					     VD_BYTES_NONE, "%s", why);
}

vd_status vdi_config_data_validate(const struct vdi_resource *resource, struct vdi_tree *tree,
				   const struct vdi_node *root, const struct vdi_node *old,
				   struct vdi_field_errors *field_errors)
{
	enum kind kind = kind_of(resource);

	if (kind == NEITHER)
		return VD_OK;
	if (old)
		check_update(kind, tree, root, old, field_errors);
	if (kind == SECRET)
		return check_secret(tree, root, field_errors);
	check_config_map(tree, root, field_errors);
	return VD_OK;
}
