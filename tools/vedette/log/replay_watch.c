/* The parameters after the '?', except namespace and name, have the meaning of the REST server and are parsed
 * by the same code. */
#include "replay_watch.h"

#include <stdio.h>

#include "field_support.h"

static bool is(struct vd_bytes text, const char *name)
{
	return name && vd_bytes_equal(text, vd_bytes_of(name));
}

static bool is_named(const struct vdi_resource *resource, struct vd_bytes name)
{
	if (is(name, resource->plural) || is(name, resource->singular))
		return true;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(resource->short_names); i++)
		if (is(name, resource->short_names[i]))
			return true;
	return false;
}

/* Returns the first match; the core group is first. */
static struct vdi_resource *find(const struct vdi_resources *resources, struct vd_bytes text)
{
	const char     *dot = memchr(text.data, '.', text.size);
	struct vd_bytes name = { text.data, dot ? (size_t) (dot - (const char *) text.data) : text.size };
	struct vd_bytes group = { dot ? dot + 1 : NULL, dot ? text.size - name.size - 1 : 0 };

	for (size_t i = 0; i < resources->count; i++)
		if (is_named(resources->items[i], name) &&
		    (dot == NULL || is(group, resources->items[i]->group)))
			return resources->items[i];
	return NULL;
}

static vd_status refuse(const char *text, const char *why, struct vd_error *reterr)
{
	return vd_error_set(reterr, VD_INVALID_ARGUMENT, "--watch %s: %s", text, why);
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 :
				      -1;
}

/* Returns the decoded parameter key; empty if missing. false: too long, or invalid escapes. */
static bool scope_of(const char *query, const char *key, char *ret_text, size_t size)
{
	size_t length = 0;

	ret_text[0] = 0;
	for (const char *at = query; at && *at; at = strchr(at, '&') ? strchr(at, '&') + 1 : NULL) {
		if (strncmp(at, key, strlen(key)) != 0 || at[strlen(key)] != '=')
			continue;
		for (at += strlen(key) + 1; *at && *at != '&'; at++) {
			char c = *at;

			if (c == '%') {
				if (hex(at[1]) < 0 || hex(at[2]) < 0)
					return false;
				c = (char) (hex(at[1]) * 16 + hex(at[2]));
				at += 2;
			}
			if (length + 1 >= size || c == 0)
				return false;
			ret_text[length++] = c;
		}
		ret_text[length] = 0;
		return true;
	}
	return true;
}

static vd_status options_of(struct vdi_replay_watch *watch, const char *text, struct vd_error *reterr)
{
	struct vdi_params      *params = &watch->params;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vdi_http_status	status = { 0 };
	vd_status		result = VD_OK;

	params->watch = true;
	vdi_params_default(params);
	if (!vdi_params_validate_list(params, &status) || !vdi_params_validate_query(params, &status) ||
	    !vdi_field_support_check(watch->resource, params->field_selector, &status) ||
	    !vdi_params_revision(params->resource_version, &options.revision, &status) ||
	    !vdi_params_int(params->timeout_seconds, &watch->timeout_s, &status))
		result = refuse(text, status.message, reterr);
	options.namespace_name = vd_bytes_of(watch->namespace_name);
	options.name = vd_bytes_of(watch->name);
	options.label_selector = params->label_selector;
	options.field_selector = params->field_selector;
	options.shard_selector = params->shard_selector;
	options.send_initial_events = params->send_initial_events;
	options.allow_bookmarks = params->allow_bookmarks;
	watch->options = options;
	return result;
}

vd_status vdi_replay_watch_parse(const char *text, const struct vdi_resources *resources,
				 struct vdi_replay_watch *ret_watch, struct vd_error *reterr)
{
	const char	       *mark = strchr(text, '?');
	struct vd_bytes		name = { text, mark ? (size_t) (mark - text) : strlen(text) };
	struct vdi_replay_watch watch = { .resource = find(resources, name) };
	vd_status		status;

	if (watch.resource == NULL)
		return refuse(text,
			      "unknown kind (give a plural, singular or short name; for additional kinds: "
			      "--resources)",
			      reterr);
	if (!scope_of(mark ? mark + 1 : NULL, "namespace", watch.namespace_name,
		      sizeof watch.namespace_name) ||
	    !scope_of(mark ? mark + 1 : NULL, "name", watch.name, sizeof watch.name))
		return refuse(text,
			      "namespace and name must be at most 255 bytes, with %XX for special characters",
			      reterr);
	if (watch.namespace_name[0] && !watch.resource->namespaced)
		return refuse(text, "the kind is not namespaced", reterr);
	if (vdi_params_parse(vd_bytes_of(mark ? mark + 1 : ""), &watch.params) != VD_OK)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	*ret_watch = watch;
	status = options_of(ret_watch, text, reterr);
	if (status != VD_OK)
		vdi_replay_watch_fini(ret_watch);
	return status;
}

void vdi_replay_watch_fini(struct vdi_replay_watch *watch)
{
	vdi_params_fini(&watch->params);
}
