/* The core group is searched first, then the others in the server's order, as kubectl does; the first match
 * wins. */
#include "resource_lookup.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>

#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

/* The typed name, split: resource[.version][.group]. */
struct wanted {
	char	    resource[VDI_RESOURCE_TEXT_MAX]; /* lower case */
	const char *rest;			     /* after the first dot, or NULL */
};

static vd_status take_apart(const char *typed, struct wanted *wanted, struct vd_error *reterr)
{
	size_t size = strcspn(typed, ".");

	if (size == 0 || size >= sizeof wanted->resource)
		return vd_error_set(reterr, VD_BAD_REQUEST, "\"%s\" is not the name of a resource", typed);
	for (size_t i = 0; i < size; i++)
		wanted->resource[i] = (char) tolower((unsigned char) typed[i]);
	wanted->resource[size] = 0;
	wanted->rest = typed[size] ? typed + size + 1 : NULL;
	return VD_OK;
}

static bool group_fits(const struct wanted *wanted, const char *group, const char *version)
{
	size_t size = strlen(version);

	if (wanted->rest == NULL || strcmp(wanted->rest, group) == 0)
		return true;
	if (strncmp(wanted->rest, version, size) != 0)
		return false;
	return wanted->rest[size] == '.' ? strcmp(wanted->rest + size + 1, group) == 0 :
					   wanted->rest[size] == 0 && *group == 0;
}

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool name_fits(const struct wanted *wanted, const char *plural, const char *singular, const char *kind,
		      json_t *short_names)
{
	json_t *short_name;
	size_t	i;

	if (*plural == 0 || strchr(plural, '/'))
		return false;
	if (strcmp(wanted->resource, plural) == 0 || (*singular && strcmp(wanted->resource, singular) == 0) ||
	    strcasecmp(wanted->resource, kind) == 0)
		return true;
	json_array_foreach (short_names, i, short_name)
		if (json_is_string(short_name) &&
		    strcmp(wanted->resource, json_string_value(short_name)) == 0)
			return true;
	return false;
}

static void keep(char *place, const char *text)
{
	snprintf(place, VDI_RESOURCE_TEXT_MAX, "%s", text);
}

static void keep_all(struct vdi_resource_name *resource, const char *group, const char *version,
		     const char *plural, const char *singular, const char *kind, bool namespaced)
{
	keep(resource->group, group);
	keep(resource->version, version);
	keep(resource->plural, plural);
	keep(resource->singular, *singular ? singular : kind);
	for (char *at = resource->singular; *at; at++)
		*at = (char) tolower((unsigned char) *at);
	resource->namespaced = namespaced;
}

/* ---- Aggregated discovery ---- */

static bool find_aggregated(json_t *root, const struct wanted *wanted, struct vdi_resource_name *resource)
{
	json_t *item, *version, *entry;
	size_t	i, j, k;

	json_array_foreach (json_object_get(root, "items"), i, item) {
		const char *group = text_of(json_object_get(item, "metadata"), "name");

		json_array_foreach (json_object_get(item, "versions"), j, version) {
			const char *version_name = text_of(version, "version");

			if (!group_fits(wanted, group, version_name))
				continue;
			json_array_foreach (json_object_get(version, "resources"), k, entry) {
				const char *kind = text_of(json_object_get(entry, "responseKind"), "kind");
				const char *plural = text_of(entry, "resource");
				const char *singular = text_of(entry, "singularResource");

				if (!name_fits(wanted, plural, singular, kind,
					       json_object_get(entry, "shortNames")))
					continue;
				keep_all(resource, group, version_name, plural, singular, kind,
					 strcmp(text_of(entry, "scope"), "Namespaced") == 0);
				return true;
			}
		}
	}
	return false;
}

/* ---- Unaggregated discovery ---- */

static vd_status get_json(struct vdi_http_client *client, const char *path, const char *accept,
			  json_t **ret_root, struct vd_error *reterr)
{
	struct vdi_http_answer answer;
	vd_status	       status = vdi_http_get_ok(client, path, accept, &answer, reterr);

	if (status == VD_OK) {
		*ret_root = json_loadb(answer.body ? answer.body : "", answer.size, 0, NULL);
		if (*ret_root == NULL)
			status = vd_error_set(reterr, VD_UNAVAILABLE,
					      "%s is not JSON: is this a Kubernetes API server?", path);
	}
	vdi_http_answer_fini(&answer);
	return status;
}

static vd_status find_in_version(struct vdi_http_client *client, const char *group, const char *version,
				 const struct wanted *wanted, struct vdi_resource_name *resource,
				 struct vd_error *reterr)
{
	char	path[3 * VDI_RESOURCE_TEXT_MAX];
	json_t *root, *entry;
	size_t	i;

	snprintf(path, sizeof path, "%s%.250s/%.250s", *group ? "/apis/" : "/api", group, version);
	VDI_TRY(get_json(client, path, "application/json", &root, reterr));
	json_array_foreach (json_object_get(root, "resources"), i, entry) {
		const char *kind = text_of(entry, "kind"), *plural = text_of(entry, "name"),
			   *singular = text_of(entry, "singularName");

		if (!name_fits(wanted, plural, singular, kind, json_object_get(entry, "shortNames")))
			continue;
		keep_all(resource, group, version, plural, singular, kind,
			 json_is_true(json_object_get(entry, "namespaced")));
		json_decref(root);
		return VD_OK;
	}
	json_decref(root);
	return VD_NOT_FOUND;
}

static vd_status find_legacy(struct vdi_http_client *client, json_t *root, const struct wanted *wanted,
			     struct vdi_resource_name *resource, struct vd_error *reterr)
{
	json_t	 *item, *version;
	size_t	  i, j;
	vd_status status = VD_NOT_FOUND;

	json_array_foreach (json_object_get(root, "versions"), j, version)
		if (status == VD_NOT_FOUND && json_is_string(version) &&
		    group_fits(wanted, "", json_string_value(version)))
			status = find_in_version(client, "", json_string_value(version), wanted, resource,
						 reterr);
	json_array_foreach (json_object_get(root, "groups"), i, item)
		json_array_foreach (json_object_get(item, "versions"), j, version)
			if (status == VD_NOT_FOUND &&
			    group_fits(wanted, text_of(item, "name"), text_of(version, "version")))
				status = find_in_version(client, text_of(item, "name"),
							 text_of(version, "version"), wanted, resource,
							 reterr);
	return status;
}

vd_status vdi_resource_lookup(struct vdi_http_client *client, const char *typed,
			      struct vdi_resource_name *ret_resource, struct vd_error *reterr)
{
	static const char *const roots[] = { "/api", "/apis" };
	struct wanted		 wanted;

	VDI_TRY(take_apart(typed, &wanted, reterr));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(roots); i++) {
		struct vd_error error = { 0 };
		json_t	       *root;
		vd_status	status;

		VDI_TRY(get_json(client, roots[i], AGGREGATED, &root, reterr));
		if (strcmp(text_of(root, "kind"), "APIGroupDiscoveryList") == 0)
			status = find_aggregated(root, &wanted, ret_resource) ? VD_OK : VD_NOT_FOUND;
		else
			status = find_legacy(client, root, &wanted, ret_resource, &error);
		json_decref(root);
		if (status == VD_OK)
			return VD_OK;
		if (status != VD_NOT_FOUND)
			return vd_error_set(reterr, status, "%s", error.message);
	}
	return vd_error_set(reterr, VD_NOT_FOUND, "the server does not have a resource type \"%s\"", typed);
}

void vdi_resource_print_name(const struct vdi_resource_name *resource, struct vd_bytes name)
{
	printf("%s%s%s/%.*s", resource->singular, *resource->group ? "." : "", resource->group,
	       (int) name.size, (const char *) name.data);
}
