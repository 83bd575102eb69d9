/* The providers of each entry become keys, and each of its resources a rule for the key prefix of its
 * objects. */
#include "encryption_file.h"

#include <openssl/crypto.h>
#include <stdio.h>

#include "base64.h"
#include "resources.h"
#include "yaml_tree.h"

#define KEYS_MAX 32
#define RULES_MAX 1024
#define SECRET_SIZE VDI_BASE64_DECODED_MAX(44) /* longest secret: 32 bytes, 44 as base64 */
#define FILE_SIZE_MAX ((size_t) 1 << 20)

/* The providers of an entry. */
struct providers {
	struct vd_encryption_key keys[KEYS_MAX];
	unsigned char		 secrets[KEYS_MAX][SECRET_SIZE];
	size_t			 key_count;
	bool			 writes_plain, reads_plain;
};

struct reading {
	const char		 *path;
	const char		 *root;
	struct vdi_resources	  resources;
	struct providers	 *providers; /* one for each entry */
	size_t			  provider_count;
	struct vd_encryption_rule rules[RULES_MAX];
	char			 *prefixes[RULES_MAX];
	size_t			  rule_count;
	struct vd_error		 *reterr;
};

static vd_status wrong(struct reading *reading, size_t entry, const char *why)
{
	return vd_error_set(reading->reterr, VD_INVALID, "%s: resources[%zu]: %s", reading->path, entry, why);
}

/* ---- Providers ---- */

static vd_status read_key(struct reading *reading, size_t entry, const json_t *tree,
			  struct providers *providers)
{
	const char     *name = json_string_value(json_object_get(tree, "name"));
	const char     *text = json_string_value(json_object_get(tree, "secret"));
	unsigned char  *secret = providers->secrets[providers->key_count];
	struct vd_bytes base64 = text ? vd_bytes_of(text) : VD_BYTES_NONE;
	size_t		size = 0;

	if (name == NULL || text == NULL)
		return wrong(reading, entry, "aesgcm: each key needs a name and a secret");
	if (VDI_BASE64_DECODED_MAX(base64.size) > sizeof providers->secrets[0] ||
	    vdi_base64_decode(VDI_BASE64_STANDARD, base64, (char *) secret, &size, NULL) != VD_OK ||
	    (size != 16 && size != 24 && size != 32))
		return wrong(reading, entry, "aesgcm: each secret must be the base64 of 16, 24 or 32 bytes");
	providers->keys[providers->key_count++] =
		(struct vd_encryption_key) { vd_bytes_of(name), { (const char *) secret, size } };
	return VD_OK;
}

static vd_status read_aesgcm(struct reading *reading, size_t entry, const json_t *tree,
			     struct providers *providers)
{
	const json_t *keys = json_object_get(tree, "keys");

	if (json_array_size(keys) == 0)
		return wrong(reading, entry, "aesgcm: keys is missing");
	for (size_t i = 0; i < json_array_size(keys); i++) {
		if (providers->key_count == KEYS_MAX)
			return wrong(reading, entry, "more than 32 keys");
		VDI_TRY(read_key(reading, entry, json_array_get(keys, i), providers));
	}
	return VD_OK;
}

static vd_status read_provider(struct reading *reading, size_t entry, json_t *tree, bool is_first,
			       struct providers *providers)
{
	const char *name = json_object_iter_key(json_object_iter(tree));

	if (json_object_size(tree) != 1)
		return wrong(reading, entry, "each provider must have one name: aesgcm or identity");
	if (strcmp(name, "identity") == 0) {
		providers->reads_plain = true;
		providers->writes_plain |= is_first;
		return VD_OK;
	}
	if (strcmp(name, "aesgcm") == 0)
		return read_aesgcm(reading, entry, json_object_get(tree, name), providers);
	return vd_error_set(reading->reterr, VD_UNSUPPORTED,
			    "%s: resources[%zu]: provider %s is not supported: use aesgcm or identity",
			    reading->path, entry, name);
}

static vd_status read_providers(struct reading *reading, size_t entry, const json_t *tree,
				struct providers *providers)
{
	const json_t *list = json_object_get(tree, "providers");

	if (json_array_size(list) == 0)
		return wrong(reading, entry, "providers is missing or empty");
	for (size_t i = 0; i < json_array_size(list); i++)
		VDI_TRY(read_provider(reading, entry, json_array_get(list, i), i == 0, providers));
	return VD_OK;
}

/* ---- Resources ---- */

static vd_status add_rule(struct reading *reading, size_t entry, const struct providers *providers,
			  const char *text)
{
	char *prefix = vdi_strdup(text);

	if (prefix == NULL)
		return vd_error_set(reading->reterr, VD_NOMEM, "out of memory");
	if (reading->rule_count == RULES_MAX) {
		vdi_free(prefix);
		return wrong(reading, entry, "more than 1024 resources");
	}
	reading->prefixes[reading->rule_count] = prefix;
	reading->rules[reading->rule_count++] =
		(struct vd_encryption_rule) { .prefix = vd_bytes_of(prefix),
					      .keys = providers->keys,
					      .key_count = providers->key_count,
					      .writes_plain = providers->writes_plain,
					      .reads_plain = providers->reads_plain };
	return VD_OK;
}

/* Adds the prefix of kinds that are not built in: /registry/GROUP/PLURAL/. plural NULL: the whole group. */
static vd_status add_custom(struct reading *reading, size_t entry, const struct providers *providers,
			    const char *group, const char *plural, size_t plural_size)
{
	char prefix[VD_KEY_SIZE_MAX];
	int  size = plural ? snprintf(prefix, sizeof prefix, "%s/%s/%.*s/", reading->root, group,
				      (int) plural_size, plural) :
			     snprintf(prefix, sizeof prefix, "%s/%s/", reading->root, group);

	if (size < 0 || (size_t) size >= sizeof prefix)
		return wrong(reading, entry, "a name is too long");
	return add_rule(reading, entry, providers, prefix);
}

static vd_status add_resource(struct reading *reading, size_t entry, const struct providers *providers,
			      const char *name)
{
	const char     *dot = strchr(name, '.');
	const char     *group = dot ? dot + 1 : "";
	struct vd_bytes plural = { name, dot ? (size_t) (dot - name) : strlen(name) };
	bool		is_any = vd_bytes_equal(plural, vd_bytes_of("*")), found = false;

	if (plural.size == 0 || (is_any && dot == NULL))
		return wrong(reading, entry,
			     "a resource must be PLURAL, PLURAL.GROUP, *.GROUP, \"*.\" or \"*.*\"");
	if (is_any && strcmp(group, "*") == 0)
		return add_rule(reading, entry, providers, reading->root);
	for (size_t i = 0; i < reading->resources.count; i++) {
		const struct vdi_resource *item = reading->resources.items[i];

		if (strcmp(item->group, group) != 0 ||
		    !(is_any || vd_bytes_equal(plural, vd_bytes_of(item->plural))))
			continue;
		found = true;
		VDI_TRY(add_rule(reading, entry, providers, item->key_prefix));
	}
	if (*group && (is_any || !found))
		return add_custom(reading, entry, providers, group, is_any ? NULL : plural.data, plural.size);
	return found ? VD_OK : wrong(reading, entry, "unknown resource of the core group");
}

static vd_status read_entry(struct reading *reading, size_t entry, const json_t *tree)
{
	struct providers *providers = &reading->providers[entry];
	const json_t	 *names = json_object_get(tree, "resources");

	VDI_TRY(read_providers(reading, entry, tree, providers));
	if (json_array_size(names) == 0)
		return wrong(reading, entry, "resources is missing or empty");
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));

		if (name == NULL)
			return wrong(reading, entry, "a resource must be a string");
		VDI_TRY(add_resource(reading, entry, providers, name));
	}
	return VD_OK;
}

/* ---- The file ---- */

static vd_status read_tree(struct reading *reading, const json_t *tree)
{
	const char   *kind = json_string_value(json_object_get(tree, "kind"));
	const json_t *entries = json_object_get(tree, "resources");

	if (kind == NULL || strcmp(kind, "EncryptionConfiguration") != 0)
		return vd_error_set(reading->reterr, VD_INVALID, "%s: kind must be EncryptionConfiguration",
				    reading->path);
	if (json_array_size(entries) == 0)
		return vd_error_set(reading->reterr, VD_INVALID, "%s: resources is missing or empty",
				    reading->path);
	reading->provider_count = json_array_size(entries);
	reading->providers = vdi_calloc(reading->provider_count, sizeof *reading->providers);
	if (reading->providers == NULL)
		return vd_error_set(reading->reterr, VD_NOMEM, "out of memory");
	for (size_t i = 0; i < reading->provider_count; i++)
		VDI_TRY(read_entry(reading, i, json_array_get(entries, i)));
	return VD_OK;
}

static vd_status load_resources(struct reading *reading, const char *path)
{
	char	 *text = NULL;
	size_t	  size = 0;
	vd_status status;

	if (vdi_resources_init(&reading->resources) != VD_OK)
		return vd_error_set(reading->reterr, VD_NOMEM, "out of memory");
	if (path) {
		VDI_TRY(vdi_yaml_read_file(path, FILE_SIZE_MAX, &text, &size, reading->reterr));
		status = vdi_resources_load(&reading->resources, (struct vd_bytes) { text, size },
					    reading->reterr);
		vdi_free(text);
		VDI_TRY(status);
	}
	return vdi_resources_set_root(&reading->resources, reading->root, reading->reterr);
}

vd_status vdi_encryption_file_open(const struct vd_env *env, const char *path, const char *resources_path,
				   const char *root, struct vd_store *inner, struct vd_store **ret_store,
				   struct vd_error *reterr)
{
	struct reading *reading = VDI_NEW(struct reading);
	json_t	       *tree = NULL;
	vd_status	status;

	if (reading == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	reading->path = path;
	reading->root = root ? root : "/registry";
	reading->reterr = reterr;
	status = load_resources(reading, resources_path);
	if (status == VD_OK)
		status = vdi_yaml_tree_read(path, &tree, reterr);
	if (status == VD_OK)
		status = read_tree(reading, tree);
	if (status == VD_OK)
		status = vd_store_open_encrypted(env, inner, reading->rules, reading->rule_count, ret_store,
						 reterr);
	json_decref(tree);
	vdi_resources_fini(&reading->resources);
	if (reading->providers)
		OPENSSL_cleanse(reading->providers, reading->provider_count * sizeof *reading->providers);
	vdi_free(reading->providers);
	for (size_t i = 0; i < reading->rule_count; i++)
		vdi_free(reading->prefixes[i]);
	vdi_free(reading);
	return status;
}
