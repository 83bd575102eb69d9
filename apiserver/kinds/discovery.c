/* All documents are rendered when a set of kinds is made; a request only compares an ETag and sends bytes. */
#include "discovery.h"

#include "openapi_v2.h"
#include "schema.h"

#include <stdio.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static const char resource_verbs[] =
	"[\"create\",\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\",\"update\",\"watch\"]";
static const char namespace_verbs[] =
	"[\"create\",\"delete\",\"get\",\"list\",\"patch\",\"update\",\"watch\"]";
static const char subresource_verbs[] = "[\"get\",\"patch\",\"update\"]";
static const char finalize_verbs[] = "[\"update\"]";

void vdi_documents_fini(struct vdi_documents *documents)
{
	for (size_t i = 0; i < documents->count; i++) {
		vdi_free(documents->items[i].path);
		vdi_out_fini(&documents->items[i].body);
	}
	vdi_free(documents->items);
	memset(documents, 0, sizeof *documents);
}

static vd_status keep(struct vdi_documents *documents, const char *path, enum vdi_form form,
		      const char *content_type, struct vdi_out *body)
{
	struct vdi_document *document;
	char		    *copy = vdi_strdup(path);

	if (copy == NULL || body->failed ||
	    !vdi_grow((void **) &documents->items, &documents->capacity, documents->count + 1,
		      sizeof *documents->items)) {
		vdi_free(copy);
		vdi_out_fini(body);
		return VD_NOMEM;
	}
	document = &documents->items[documents->count++];
	*document = (struct vdi_document) { copy, form, content_type, *body, "" };
	(void) snprintf(document->etag, sizeof document->etag, "\"%016llX\"",
			(unsigned long long) XXH3_64bits(body->data, body->size));
	*body = (struct vdi_out) VDI_OUT_INIT;
	return VD_OK;
}

/* Takes over body. */
static vd_status add(struct vdi_documents *documents, const char *path, enum vdi_form form,
		     struct vdi_out *body)
{
	static const char *const types[] = {
		[VDI_FORM_OBJECT] = "application/json",
		[VDI_FORM_DISCOVERY_V2] =
			"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
		[VDI_FORM_DISCOVERY_V2BETA1] =
			"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
	};
	vdi_out_raw(body, "\n");
	return keep(documents, path, form, types[form], body);
}

const struct vdi_document *vdi_documents_find(const struct vdi_documents *documents, struct vd_bytes path,
					      enum vdi_form form)
{
	const struct vdi_document *plain = NULL;

	for (size_t i = 0; i < documents->count; i++) {
		if (!vd_bytes_equal(vd_bytes_of(documents->items[i].path), path))
			continue;
		if (documents->items[i].form == form)
			return &documents->items[i];
		if (documents->items[i].form == VDI_FORM_OBJECT)
			plain = &documents->items[i];
	}
	return plain;
}

static void member(struct vdi_out *out, const char *key, const char *value)
{
	vdi_out_key(out, key);
	vdi_out_text(out, value);
}

static void words(struct vdi_out *out, const char *key, const char *const *list, size_t max)
{
	if (list[0] == NULL)
		return;
	vdi_out_key(out, key);
	vdi_out_raw(out, "[");
	for (size_t i = 0; i < max && list[i]; i++) {
		vdi_out_comma(out);
		vdi_out_text(out, list[i]);
	}
	vdi_out_raw(out, "]");
}

static void raw_member(struct vdi_out *out, const char *key, const char *json)
{
	vdi_out_key(out, key);
	vdi_out_raw(out, json);
}

/* ---- Legacy discovery ---- */

static void legacy_subresource(struct vdi_out *out, const struct vdi_resource *resource, const char *name,
			       const char *group, const char *version, const char *kind, const char *verbs)
{
	vdi_out_comma(out);
	vdi_out_printf(out, "{\"name\":\"%s/%s\",\"singularName\":\"\",\"namespaced\":%s", resource->plural,
		       name, resource->namespaced ? "true" : "false");
	if (group) {
		member(out, "group", group);
		member(out, "version", version);
	}
	member(out, "kind", kind);
	raw_member(out, "verbs", verbs);
	vdi_out_raw(out, "}");
}

static void legacy_resource(struct vdi_out *out, const struct vdi_resource *resource)
{
	vdi_out_comma(out);
	vdi_out_raw(out, "{");
	member(out, "name", resource->plural);
	member(out, "singularName", resource->singular);
	raw_member(out, "namespaced", resource->namespaced ? "true" : "false");
	member(out, "kind", resource->kind);
	raw_member(out, "verbs", vdi_resource_is_namespaces(resource) ? namespace_verbs : resource_verbs);
	words(out, "shortNames", resource->short_names, VDI_ARRAY_SIZE(resource->short_names));
	words(out, "categories", resource->categories, VDI_ARRAY_SIZE(resource->categories));
	vdi_out_raw(out, "}");
	if (resource->has_scale)
		legacy_subresource(out, resource, "scale", "autoscaling", "v1", "Scale", subresource_verbs);
	if (resource->has_status)
		legacy_subresource(out, resource, "status", NULL, NULL, resource->kind, subresource_verbs);
	if (vdi_resource_is_namespaces(resource))
		legacy_subresource(out, resource, "finalize", NULL, NULL, resource->kind, finalize_verbs);
}

static bool same_version(const struct vdi_resource *a, const struct vdi_resource *b)
{
	return strcmp(a->group, b->group) == 0 && strcmp(a->version, b->version) == 0;
}

static void version_path(const struct vdi_resource *resource, const char *prefix,
			 char path[VDI_RESOURCE_NAME_MAX])
{
	(void) snprintf(path, VDI_RESOURCE_NAME_MAX, "%s%s%s/%s", prefix,
			*resource->group ? "/apis/" : "/api", resource->group, resource->version);
}

static vd_status render_version(struct vdi_documents *documents, const struct vdi_resources *resources,
				size_t from, size_t to)
{
	struct vdi_out out = VDI_OUT_INIT;
	char	       path[VDI_RESOURCE_NAME_MAX], version[VDI_RESOURCE_NAME_MAX];

	vdi_out_raw(&out, "{");
	member(&out, "kind", "APIResourceList");
	if (*resources->items[from]->group)
		member(&out, "apiVersion", "v1");
	member(&out, "groupVersion", vdi_resource_api_version(resources->items[from], version));
	raw_member(&out, "resources", "[");
	for (size_t i = from; i < to; i++)
		legacy_resource(&out, resources->items[i]);
	vdi_out_raw(&out, "]}");
	version_path(resources->items[from], "", path);
	return add(documents, path, VDI_FORM_OBJECT, &out);
}

static void group_body(struct vdi_out *out, const struct vdi_resources *resources, size_t from, size_t to)
{
	const char *group = resources->items[from]->group;

	member(out, "name", group);
	raw_member(out, "versions", "[");
	for (size_t i = from; i < to; i++) {
		if (i > from && same_version(resources->items[i - 1], resources->items[i]))
			continue;
		vdi_out_comma(out);
		vdi_out_printf(out, "{\"groupVersion\":\"%s/%s\",\"version\":\"%s\"}", group,
			       resources->items[i]->version, resources->items[i]->version);
	}
	vdi_out_printf(out, "],\"preferredVersion\":{\"groupVersion\":\"%s/%s\",\"version\":\"%s\"}", group,
		       resources->items[from]->version, resources->items[from]->version);
}

static size_t group_end(const struct vdi_resources *resources, size_t from)
{
	size_t to = from + 1;

	while (to < resources->count &&
	       strcmp(resources->items[to]->group, resources->items[from]->group) == 0)
		to++;
	return to;
}

static size_t version_end(const struct vdi_resources *resources, size_t from)
{
	size_t to = from + 1;

	while (to < resources->count && same_version(resources->items[to], resources->items[from]))
		to++;
	return to;
}

static vd_status render_groups(struct vdi_documents *documents, const struct vdi_resources *resources)
{
	struct vdi_out list = VDI_OUT_INIT;

	vdi_out_raw(&list, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
	for (size_t from = 0, to; from < resources->count; from = to) {
		struct vdi_out one = VDI_OUT_INIT;
		char	       path[VDI_RESOURCE_NAME_MAX];
		vd_status      status;

		to = group_end(resources, from);
		if (!*resources->items[from]->group)
			continue;
		vdi_out_comma(&list);
		vdi_out_raw(&list, "{");
		group_body(&list, resources, from, to);
		vdi_out_raw(&list, "}");

		vdi_out_raw(&one, "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"");
		group_body(&one, resources, from, to);
		vdi_out_raw(&one, "}");
		(void) snprintf(path, sizeof path, "/apis/%s", resources->items[from]->group);
		status = add(documents, path, VDI_FORM_OBJECT, &one);
		if (status != VD_OK) {
			vdi_out_fini(&list);
			return status;
		}
	}
	vdi_out_raw(&list, "]}");
	return add(documents, "/apis", VDI_FORM_OBJECT, &list);
}

/* ---- Aggregated discovery ---- */

static void aggregated_kind(struct vdi_out *out, const char *group, const char *version, const char *kind)
{
	vdi_out_key(out, "responseKind");
	vdi_out_raw(out, "{");
	member(out, "group", group);
	member(out, "version", version);
	member(out, "kind", kind);
	vdi_out_raw(out, "}");
}

static void aggregated_resource(struct vdi_out *out, const struct vdi_resource *resource)
{
	vdi_out_comma(out);
	vdi_out_raw(out, "{");
	member(out, "resource", resource->plural);
	aggregated_kind(out, resource->group, resource->version, resource->kind);
	member(out, "scope", resource->namespaced ? "Namespaced" : "Cluster");
	member(out, "singularResource", resource->singular);
	raw_member(out, "verbs", vdi_resource_is_namespaces(resource) ? namespace_verbs : resource_verbs);
	words(out, "shortNames", resource->short_names, VDI_ARRAY_SIZE(resource->short_names));
	words(out, "categories", resource->categories, VDI_ARRAY_SIZE(resource->categories));
	if (resource->has_status || resource->has_scale) {
		raw_member(out, "subresources", "[");
		if (resource->has_scale) {
			vdi_out_raw(out, "{\"subresource\":\"scale\"");
			aggregated_kind(out, "autoscaling", "v1", "Scale");
			raw_member(out, "verbs", subresource_verbs);
			vdi_out_raw(out, "}");
		}
		if (resource->has_status) {
			vdi_out_comma(out);
			vdi_out_raw(out, "{\"subresource\":\"status\"");
			aggregated_kind(out, resource->group, resource->version, resource->kind);
			raw_member(out, "verbs", subresource_verbs);
			vdi_out_raw(out, "}");
		}
		if (vdi_resource_is_namespaces(resource)) {
			vdi_out_comma(out);
			vdi_out_raw(out, "{\"subresource\":\"finalize\"");
			aggregated_kind(out, resource->group, resource->version, resource->kind);
			raw_member(out, "verbs", finalize_verbs);
			vdi_out_raw(out, "}");
		}
		vdi_out_raw(out, "]");
	}
	vdi_out_raw(out, "}");
}

static vd_status render_aggregated(struct vdi_documents *documents, const struct vdi_resources *resources,
				   bool core, enum vdi_form form)
{
	struct vdi_out out = VDI_OUT_INIT;

	vdi_out_printf(&out,
		       "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/"
		       "%s\",\"metadata\":{},\"items\":[",
		       form == VDI_FORM_DISCOVERY_V2 ? "v2" : "v2beta1");
	for (size_t from = 0, to; from < resources->count; from = to) {
		to = group_end(resources, from);
		if (core == (*resources->items[from]->group != 0))
			continue;
		vdi_out_comma(&out);
		vdi_out_raw(&out, "{\"metadata\":{");
		if (!core)
			member(&out, "name", resources->items[from]->group);
		raw_member(&out, "creationTimestamp", "null}");
		raw_member(&out, "versions", "[");
		for (size_t at = from; at < to;) {
			size_t end = version_end(resources, at);

			vdi_out_comma(&out);
			vdi_out_raw(&out, "{");
			member(&out, "version", resources->items[at]->version);
			raw_member(&out, "resources", "[");
			for (; at < end; at++)
				aggregated_resource(&out, resources->items[at]);
			vdi_out_raw(&out, "],\"freshness\":\"Current\"}");
		}
		vdi_out_raw(&out, "]}");
	}
	vdi_out_raw(&out, "]}");
	return add(documents, core ? "/api" : "/apis", form, &out);
}

/* ---- OpenAPI v3: paths for kubectl apply, and schemas of the kinds that have one, for kubectl explain
 * ---- */

static void openapi_patch(struct vdi_out *out, const struct vdi_resource *resource)
{
	static const char *const parameters[] = { "dryRun", "fieldManager", "fieldValidation", "force" };
	static const char *const types[] = { "application/json-patch+json", "application/merge-patch+json",
					     "application/apply-patch+yaml" };
	char			 path[VDI_RESOURCE_NAME_MAX];

	version_path(resource, "", path);
	vdi_out_comma(out);
	vdi_out_printf(out, "\"%s%s/%s/{name}\":{\"patch\":{\"operationId\":\"patch%s\",\"parameters\":[",
		       path, resource->namespaced ? "/namespaces/{namespace}" : "", resource->plural,
		       resource->kind);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(parameters); i++)
		vdi_out_printf(out,
			       "%s{\"name\":\"%s\",\"in\":\"query\",\"schema\":{\"type\":\"%s\","
			       "\"uniqueItems\":true}}",
			       i ? "," : "", parameters[i], i == 3 ? "boolean" : "string");
	vdi_out_raw(out, "],\"requestBody\":{\"content\":{");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(types); i++)
		vdi_out_printf(out, "%s\"%s\":{\"schema\":{}}", i ? "," : "", types[i]);
	vdi_out_printf(
		out,
		"}},\"responses\":{\"200\":{\"description\":\"OK\"}},\"x-kubernetes-action\":\"patch\","
		"\"x-kubernetes-group-version-kind\":{\"group\":\"%s\",\"version\":\"%s\",\"kind\":\"%s\"}}}",
		resource->group, resource->version, resource->kind);
}

/* Writes the schema's name, such as "com.example.stable.v1.CronTab". */
static void openapi_name(struct vdi_out *out, const struct vdi_resource *resource)
{
	const char *end = resource->group + strlen(resource->group);

	for (const char *at = end; at > resource->group;) {
		const char *from = memrchr(resource->group, '.', (size_t) (at - resource->group));

		from = from ? from + 1 : resource->group;
		vdi_out_printf(out, "%.*s.", (int) (at - from), from);
		at = from > resource->group ? from - 1 : resource->group;
	}
	vdi_out_printf(out, "%s.%s", resource->version, resource->kind);
}

static void openapi_schema(struct vdi_out *out, const struct vdi_resource *resource)
{
	vdi_out_comma(out);
	vdi_out_raw(out, "\"");
	openapi_name(out, resource);
	vdi_out_raw(out, "\":");
	vdi_schema_write_open_api(out, resource->schema, resource->group, resource->version, resource->kind);
}

static vd_status render_openapi(struct vdi_documents *documents, const struct vdi_resources *resources)
{
	struct vdi_out index = VDI_OUT_INIT;

	vdi_out_raw(&index, "{\"paths\":{");
	for (size_t from = 0, to; from < resources->count; from = to) {
		struct vdi_out out = VDI_OUT_INIT;
		char	       path[VDI_RESOURCE_NAME_MAX];
		vd_status      status;

		to = version_end(resources, from);
		vdi_out_raw(&out, "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"vedette\",\"version\":"
				  "\"unversioned\"},\"paths\":{");
		for (size_t i = from; i < to; i++)
			openapi_patch(&out, resources->items[i]);
		vdi_out_raw(&out, "},\"components\":{\"schemas\":{");
		for (size_t i = from; i < to; i++)
			if (resources->items[i]->schema)
				openapi_schema(&out, resources->items[i]);
		vdi_out_raw(&out, "}}}");
		version_path(resources->items[from], "/openapi/v3", path);
		status = add(documents, path, VDI_FORM_OBJECT, &out);
		if (status != VD_OK) {
			vdi_out_fini(&index);
			return status;
		}
		vdi_out_comma(&index);
		vdi_out_printf(&index, "\"%s\":{\"serverRelativeURL\":\"%s?hash=%.16s\"}",
			       path + strlen("/openapi/v3/"), path,
			       documents->items[documents->count - 1].etag + 1);
	}
	vdi_out_raw(&index, "}}");
	return add(documents, "/openapi/v3", VDI_FORM_OBJECT, &index);
}

static vd_status render_api(struct vdi_documents *documents)
{
	struct vdi_out out = VDI_OUT_INIT;

	vdi_out_raw(&out,
		    "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":[]}");
	return add(documents, "/api", VDI_FORM_OBJECT, &out);
}

static vd_status render(struct vdi_documents *documents, const struct vdi_resources *resources)
{
	struct vdi_out v2 = VDI_OUT_INIT;

	VDI_TRY(render_api(documents));
	VDI_TRY(render_groups(documents, resources));
	for (size_t from = 0, to; from < resources->count; from = to) {
		to = version_end(resources, from);
		VDI_TRY(render_version(documents, resources, from, to));
	}
	for (int core = 0; core < 2; core++) {
		VDI_TRY(render_aggregated(documents, resources, core, VDI_FORM_DISCOVERY_V2));
		VDI_TRY(render_aggregated(documents, resources, core, VDI_FORM_DISCOVERY_V2BETA1));
	}
	VDI_TRY(render_openapi(documents, resources));
	vdi_openapi_v2_write(&v2, resources);
	return keep(documents, "/openapi/v2", VDI_FORM_OBJECT, VDI_OPENAPI_V2_TYPE, &v2);
}

vd_status vdi_documents_init(struct vdi_documents *documents, const struct vdi_resources *resources)
{
	vd_status status;

	memset(documents, 0, sizeof *documents);
	status = render(documents, resources);
	if (status != VD_OK)
		vdi_documents_fini(documents);
	return status;
}
