/* Reads the unaggregated discovery documents, one for each group and version, because every server has
 * them. */
#include "endpoint_kinds.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define FIND_TIMEOUT VD_SECONDS(30)

struct loading {
	struct vdi_kube_session	  *session;
	struct vdi_resource_name  *wanted;
	size_t			   wanted_count;
	struct vdi_endpoint_kinds *kinds;
	struct vd_error		  *reterr;
};

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static vd_status get_json(struct loading *loading, const char *path, json_t **ret_root)
{
	struct vdi_kube_reply answer;
	vd_status status = vdi_kube_session_request(loading->session, "GET", path, "application/json", NULL,
						    &answer, loading->reterr);

	if (status == VD_OK) {
		*ret_root = json_loadb(answer.body ? answer.body : "", answer.size, 0, NULL);
		if (*ret_root == NULL)
			status = vd_error_set(loading->reterr, VD_BAD_REQUEST,
					      "%s is not JSON: is this a Kubernetes API server?", path);
	}
	vdi_kube_reply_fini(&answer);
	return status;
}

static bool is_wanted(const struct loading *loading, const char *group, const char *plural)
{
	for (size_t i = 0; i < loading->wanted_count; i++)
		if (strcmp(loading->wanted[i].group, group) == 0 &&
		    strcmp(loading->wanted[i].plural, plural) == 0)
			return true;
	return loading->wanted_count == 0;
}

static bool has_verb(json_t *entry, const char *verb)
{
	json_t *item;
	size_t	i;

	json_array_foreach (json_object_get(entry, "verbs"), i, item)
		if (json_is_string(item) && strcmp(json_string_value(item), verb) == 0)
			return true;
	return false;
}

static bool is_known(const struct vdi_endpoint_kinds *kinds, const char *prefix)
{
	for (size_t i = 0; i < kinds->count; i++)
		if (strcmp(kinds->items[i].prefix, prefix) == 0)
			return true;
	return false;
}

/* Adds a kind. Skips names that are longer than Kubernetes allows. */
static vd_status add(struct loading *loading, const char *group, const char *version, json_t *entry)
{
	struct vdi_endpoint_kinds *kinds = loading->kinds;
	struct vdi_endpoint_kind   kind;
	const char		  *plural = text_of(entry, "name");

	if (strchr(plural, '/') || *plural == 0 || strlen(plural) > 250 || strlen(group) > 250 ||
	    strlen(version) > 60 || strlen(text_of(entry, "kind")) > 250 || !has_verb(entry, "list") ||
	    !has_verb(entry, "watch") || !is_wanted(loading, group, plural))
		return VD_OK;
	if (!vdi_kube_prefix(group, plural, kind.prefix) || is_known(kinds, kind.prefix))
		return VD_OK;
	snprintf(kind.path, sizeof kind.path, "%s%.250s/%.60s/%.250s", *group ? "/apis/" : "/api", group,
		 version, plural);
	snprintf(kind.name, sizeof kind.name, "%.250s%s%.250s", plural, *group ? "." : "", group);
	snprintf(kind.kind, sizeof kind.kind, "%.250s", text_of(entry, "kind"));
	snprintf(kind.api_version, sizeof kind.api_version, "%.250s%s%.60s", group, *group ? "/" : "",
		 version);
	if (!vdi_grow((void **) &kinds->items, &kinds->capacity, kinds->count + 1, sizeof kind))
		return vd_error_set(loading->reterr, VD_NOMEM, "out of memory");
	kinds->items[kinds->count++] = kind;
	return VD_OK;
}

static void note_skipped(struct vdi_endpoint_kinds *kinds, const char *group)
{
	size_t used = strlen(kinds->skipped);

	snprintf(kinds->skipped + used, sizeof kinds->skipped - used, "%s%s", used ? ", " : "", group);
}

static vd_status load_version(struct loading *loading, const char *group, const char *version)
{
	char	  path[512];
	json_t	 *root, *entry;
	size_t	  i;
	vd_status status;

	snprintf(path, sizeof path, "%s%.250s/%.60s", *group ? "/apis/" : "/api", group, version);
	status = get_json(loading, path, &root);
	if (*group && (status == VD_UNAVAILABLE || status == VD_NOT_FOUND)) {
		note_skipped(loading->kinds, group); /* an unavailable extension server */
		return VD_OK;
	}
	if (status != VD_OK)
		return status;
	json_array_foreach (json_object_get(root, "resources"), i, entry)
		if (status == VD_OK)
			status = add(loading, group, version, entry);
	json_decref(root);
	return status;
}

static vd_status load_group(struct loading *loading, json_t *group)
{
	const char *name = text_of(group, "name"),
		   *preferred = text_of(json_object_get(group, "preferredVersion"), "version");
	json_t *version;
	size_t	i;

	if (*name == 0)
		return VD_OK;
	if (*preferred)
		VDI_TRY(load_version(loading, name, preferred));
	json_array_foreach (json_object_get(group, "versions"), i, version)
		if (*text_of(version, "version") && strcmp(text_of(version, "version"), preferred) != 0)
			VDI_TRY(load_version(loading, name, text_of(version, "version")));
	return VD_OK;
}

static int by_prefix(const void *a, const void *b)
{
	return strcmp(((const struct vdi_endpoint_kind *) a)->prefix,
		      ((const struct vdi_endpoint_kind *) b)->prefix);
}

static vd_status load_all(struct loading *loading)
{
	json_t	 *root, *group;
	size_t	  i;
	vd_status status;

	VDI_TRY(load_version(loading, "", "v1"));
	VDI_TRY(get_json(loading, "/apis", &root));
	status = json_is_array(json_object_get(root, "groups")) ?
			 VD_OK :
			 vd_error_set(loading->reterr, VD_BAD_REQUEST,
				      "/apis names no groups: is this a Kubernetes API server?");
	json_array_foreach (json_object_get(root, "groups"), i, group)
		if (status == VD_OK)
			status = load_group(loading, group);
	json_decref(root);
	if (status == VD_OK && loading->kinds->count == 0)
		return vd_error_set(loading->reterr, VD_NOT_FOUND,
				    "the server has no resource that can be watched");
	if (loading->kinds->count)
		qsort(loading->kinds->items, loading->kinds->count, sizeof *loading->kinds->items, by_prefix);
	return status;
}

static vd_status find_wanted(struct loading *loading, const char *const *wanted, size_t count)
{
	loading->wanted = vdi_calloc(count + 1, sizeof *loading->wanted);
	if (loading->wanted == NULL)
		return vd_error_set(loading->reterr, VD_NOMEM, "out of memory");
	for (; loading->wanted_count < count; loading->wanted_count++)
		VDI_TRY(vdi_kube_session_find(loading->session, wanted[loading->wanted_count], FIND_TIMEOUT,
					      &loading->wanted[loading->wanted_count], loading->reterr));
	return VD_OK;
}

vd_status vdi_endpoint_kinds_load(struct vdi_kube_session *session, const char *const *wanted,
				  size_t wanted_count, struct vdi_endpoint_kinds *ret_kinds,
				  struct vd_error *reterr)
{
	struct vdi_endpoint_kinds kinds = { 0 };
	struct loading		  loading = { .session = session, .kinds = &kinds, .reterr = reterr };
	vd_status		  status = find_wanted(&loading, wanted, wanted_count);

	if (status == VD_OK)
		status = load_all(&loading);
	vdi_free(loading.wanted);
	if (status == VD_OK)
		*ret_kinds = kinds;
	else
		vdi_endpoint_kinds_fini(&kinds);
	return status;
}

void vdi_endpoint_kinds_fini(struct vdi_endpoint_kinds *kinds)
{
	vdi_free(kinds->items);
	memset(kinds, 0, sizeof *kinds);
}
