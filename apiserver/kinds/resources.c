/* The collection of served kinds, ordered by group and version for discovery. */
#include "resources.h"

#include <stdio.h>

#include "read_defaults.h"
#include "schema.h"

struct vdi_resource *vdi_resource_new(void)
{
	struct vdi_resource *resource = VDI_NEW(struct vdi_resource);

	if (resource)
		atomic_init(&resource->users, 1);
	return resource;
}

struct vdi_resource *vdi_resource_ref(struct vdi_resource *resource)
{
	if (resource)
		atomic_fetch_add_explicit(&resource->users, 1, memory_order_relaxed);
	return resource;
}

struct vdi_resource *vdi_resource_unref(struct vdi_resource *resource)
{
	if (resource == NULL || atomic_fetch_sub_explicit(&resource->users, 1, memory_order_acq_rel) != 1)
		return NULL;
	if (resource->cache)
		resource->cache_unref(resource->cache);
	(void) vdi_schema_free((struct vdi_schema *) (uintptr_t) resource->schema);
	(void) vdi_read_defaults_unref(resource->defaults);
	for (size_t i = 0; i < resource->owned_count; i++)
		vdi_free(resource->owned[i]);
	vdi_free(resource->owned);
	vdi_free(resource);
	return NULL;
}

void *vdi_resource_own(struct vdi_resource *resource, void *memory)
{
	if (memory == NULL)
		return NULL;
	if (!vdi_grow((void **) &resource->owned, &resource->owned_capacity, resource->owned_count + 1,
		      sizeof *resource->owned)) {
		vdi_free(memory);
		return NULL;
	}
	resource->owned[resource->owned_count++] = memory;
	return memory;
}

struct version_parts {
	bool	 is_known; /* v<major>[alpha|beta<minor>] */
	int	 stage;	   /* 2: stable, 1: beta, 0: alpha */
	uint64_t major, minor;
};

/* Returns false if there is no number. */
static bool take_number(const char **at, uint64_t *ret_number)
{
	const char *from = *at;

	*ret_number = 0;
	while (**at >= '0' && **at <= '9' && *at - from < 18)
		*ret_number = *ret_number * 10 + (uint64_t) (*(*at)++ - '0');
	return *at > from;
}

static struct version_parts parts_of(const char *version)
{
	struct version_parts parts = { .stage = 2 };

	if (*version++ != 'v' || !take_number(&version, &parts.major))
		return parts;
	if (strncmp(version, "beta", 4) == 0 || strncmp(version, "alpha", 5) == 0) {
		parts.stage = *version == 'b';
		version += parts.stage ? 4 : 5;
		if (!take_number(&version, &parts.minor))
			return parts;
	}
	parts.is_known = *version == 0;
	return parts;
}

int vdi_resource_compare_versions(const char *a, const char *b)
{
	struct version_parts x = parts_of(a), y = parts_of(b);

	if (!x.is_known || !y.is_known)
		return x.is_known != y.is_known ? (x.is_known ? -1 : 1) : strcmp(a, b);
	if (x.stage != y.stage)
		return y.stage - x.stage;
	if (x.major != y.major)
		return x.major > y.major ? -1 : 1;
	return x.minor == y.minor ? 0 : x.minor > y.minor ? -1 : 1;
}

/* Returns the index for an entry of this group and version: after its equals. */
static size_t place_of(const struct vdi_resources *resources, const struct vdi_resource *resource)
{
	size_t at = resources->count;

	while (at > 0) {
		int order = strcmp(resources->items[at - 1]->group, resource->group);

		if (order == 0)
			order = vdi_resource_compare_versions(resources->items[at - 1]->version,
							      resource->version);
		if (order <= 0)
			break;
		at--;
	}
	return at;
}

vd_status vdi_resources_add(struct vdi_resources *resources, struct vdi_resource *resource)
{
	size_t at;

	if (!vdi_grow((void **) &resources->items, &resources->capacity, resources->count + 1,
		      sizeof(struct vdi_resource *)))
		return VD_NOMEM;
	at = place_of(resources, resource);
	memmove(resources->items + at + 1, resources->items + at,
		(resources->count - at) * sizeof(struct vdi_resource *));
	resources->items[at] = vdi_resource_ref(resource);
	resources->count++;
	return VD_OK;
}

vd_status vdi_resources_copy(struct vdi_resources *to, const struct vdi_resources *from)
{
	struct vdi_resource **items = vdi_calloc(from->count ? from->count : 1, sizeof *items);

	if (items == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < from->count; i++)
		items[i] = vdi_resource_ref(from->items[i]);
	*to = (struct vdi_resources) { items, from->count, from->count };
	return VD_OK;
}

vd_status vdi_resources_init(struct vdi_resources *resources)
{
	vd_status status = VD_OK;

	memset(resources, 0, sizeof *resources);
	for (size_t i = 0; i < vdi_resources_built_in_count && status == VD_OK; i++) {
		struct vdi_resource *resource = VDI_NEW(struct vdi_resource);

		if (resource) {
			*resource = vdi_resources_built_in[i];
			atomic_init(&resource->users, 1);
		}
		status = resource ? vdi_resources_add(resources, resource) : VD_NOMEM;
		(void) vdi_resource_unref(resource);
	}
	if (status != VD_OK)
		vdi_resources_fini(resources);
	return status;
}

void vdi_resources_fini(struct vdi_resources *resources)
{
	for (size_t i = 0; i < resources->count; i++)
		(void) vdi_resource_unref(resources->items[i]);
	vdi_free(resources->items);
	memset(resources, 0, sizeof *resources);
}

/* ---- Key prefix ---- */

static const char usual_root[] = "/registry/";

/* As path.Join("/", root) with a slash appended; but a root with parts that path.Join would remove is
 * rejected. */
static vd_status clean_root(const char *root, char **ret_clean, struct vd_error *reterr)
{
	size_t size;
	char  *clean;

	while (*root == '/')
		root++;
	size = strlen(root);
	while (size && root[size - 1] == '/')
		size--;
	if (size > 256)
		return vd_error_set(reterr, VD_INVALID, "key prefix: longer than 256 bytes");
	for (const char *at = root; at < root + size;) {
		const char *end = memchr(at, '/', (size_t) (root + size - at));
		size_t	    length = (size_t) ((end ? end : root + size) - at);

		if (length == 0 || (length == 1 && *at == '.') || (length == 2 && memcmp(at, "..", 2) == 0))
			return vd_error_set(reterr, VD_INVALID,
					    "key prefix \"%s\": \"%.*s\" is not a valid path segment", root,
					    (int) length, at);
		at += length + (end != NULL);
	}
	clean = vdi_alloc(size + 3);
	if (clean == NULL)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	(void) snprintf(clean, size + 3, size ? "/%.*s/" : "/", (int) size, root);
	*ret_clean = clean;
	return VD_OK;
}

static char *join(struct vdi_resource *resource, const char *root, const char *rest)
{
	size_t size = strlen(root) + strlen(rest) + 1;
	char  *text = vdi_resource_own(resource, vdi_alloc(size));

	if (text)
		(void) snprintf(text, size, "%s%s", root, rest);
	return text;
}

static vd_status refuse_equal_prefixes(const struct vdi_resources *resources, struct vd_error *reterr)
{
	for (size_t i = 0; i < resources->count; i++)
		for (size_t j = i + 1; j < resources->count; j++)
			if (strcmp(resources->items[i]->key_prefix, resources->items[j]->key_prefix) == 0)
				return vd_error_set(reterr, VD_INVALID,
						    "key prefix: %s and %s would share the keys below %s",
						    resources->items[i]->plural, resources->items[j]->plural,
						    resources->items[i]->key_prefix);
	return VD_OK;
}

vd_status vdi_resources_set_root(struct vdi_resources *resources, const char *root, struct vd_error *reterr)
{
	char *clean = NULL;

	VDI_TRY(clean_root(root, &clean, reterr));
	for (size_t i = 0; i < resources->count; i++) {
		struct vdi_resource *item = resources->items[i];
		char		    *text;

		if (strncmp(item->key_prefix, usual_root, sizeof usual_root - 1) != 0)
			continue;
		text = join(item, clean, item->key_prefix + sizeof usual_root - 1);
		if (text == NULL) {
			vdi_free(clean);
			return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
		}
		item->key_prefix = text;
	}
	vdi_free(clean);
	return refuse_equal_prefixes(resources, reterr);
}

struct vdi_resource *vdi_resources_find(const struct vdi_resources *resources, struct vd_bytes group,
					struct vd_bytes version, struct vd_bytes plural)
{
	for (size_t i = 0; i < resources->count; i++) {
		struct vdi_resource *item = resources->items[i];

		if (vd_bytes_equal(vd_bytes_of(item->plural), plural) &&
		    vd_bytes_equal(vd_bytes_of(item->group), group) &&
		    vd_bytes_equal(vd_bytes_of(item->version), version))
			return item;
	}
	return NULL;
}

bool vdi_resources_has_version(const struct vdi_resources *resources, struct vd_bytes group,
			       struct vd_bytes version)
{
	for (size_t i = 0; i < resources->count; i++)
		if (vd_bytes_equal(vd_bytes_of(resources->items[i]->group), group) &&
		    (version.size == 0 || vd_bytes_equal(vd_bytes_of(resources->items[i]->version), version)))
			return true;
	return false;
}

bool vdi_resource_is_namespaces(const struct vdi_resource *resource)
{
	return resource->group[0] == 0 && strcmp(resource->plural, "namespaces") == 0;
}

const char *vdi_resource_name(const struct vdi_resource *resource, char buffer[VDI_RESOURCE_NAME_MAX])
{
	(void) snprintf(buffer, VDI_RESOURCE_NAME_MAX, "%s%s%s", resource->plural,
			*resource->group ? "." : "", resource->group);
	return buffer;
}

const char *vdi_resource_api_version(const struct vdi_resource *resource, char buffer[VDI_RESOURCE_NAME_MAX])
{
	(void) snprintf(buffer, VDI_RESOURCE_NAME_MAX, "%s%s%s", resource->group, *resource->group ? "/" : "",
			resource->version);
	return buffer;
}

vd_status vdi_resource_cacher_options(struct vdi_resource *resource, const struct vd_field_spec *fields,
				      size_t field_count, char buffer[VDI_RESOURCE_NAME_MAX],
				      struct vd_cacher_options *options, struct vd_error *reterr)
{
	VDI_TRY(vd_codec_json_new(fields, field_count, &resource->codec, reterr));
	if (resource->defaults && vdi_read_defaults_wrap(resource->defaults, &resource->codec) != VD_OK) {
		resource->codec = vd_codec_free(resource->codec);
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	}
	options->resource = vdi_resource_name(resource, buffer);
	options->group = resource->group;
	options->key_prefix = resource->key_prefix;
	options->cluster_scoped = !resource->namespaced;
	options->codec = resource->codec;
	for (size_t i = 0; i < field_count && resource->trigger; i++)
		if (strcmp(fields[i].name, resource->trigger) == 0)
			options->trigger = resource->trigger;
	options->skip_undecodable = true;
	return VD_OK;
}
