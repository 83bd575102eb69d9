/* A rule keeps its members as jansson arrays of strings: rules are few, and each is matched in the form in
 * which the file has it. */
#include "policy.h"

#include <jansson.h>
#include <stdio.h>

enum member { USERS, GROUPS, VERBS, API_GROUPS, RESOURCES, RESOURCE_NAMES, NAMESPACES, URLS, MEMBERS };

static const char *const member_names[MEMBERS] = { "users",	 "groups",	   "verbs",
						   "apiGroups",	 "resources",	   "resourceNames",
						   "namespaces", "nonResourceURLs" };

struct rule {
	json_t *members[MEMBERS]; /* borrowed from the document; NULL: absent */
};

struct vdi_policy {
	json_t	    *document;
	struct rule *rules;
	size_t	     count;
};

struct vdi_policy *vdi_policy_free(struct vdi_policy *policy)
{
	if (policy == NULL)
		return NULL;
	json_decref(policy->document);
	vdi_free(policy->rules);
	vdi_free(policy);
	return NULL;
}

/* ---- Parsing ---- */

static vd_status read_member(struct rule *rule, size_t index, const char *key, json_t *value,
			     struct vd_error *reterr)
{
	size_t	      member = 0, at;
	const json_t *item;

	while (member < MEMBERS && strcmp(member_names[member], key) != 0)
		member++;
	if (member == MEMBERS)
		return vd_error_set(reterr, VD_INVALID, "rules[%zu].%.64s: unknown key", index, key);
	if (!json_is_array(value) || json_array_size(value) == 0)
		return vd_error_set(reterr, VD_INVALID,
				    "rules[%zu].%s: must be an array of strings, and not empty", index, key);
	json_array_foreach (value, at, item)
		if (!json_is_string(item))
			return vd_error_set(reterr, VD_INVALID, "rules[%zu].%s[%zu]: must be a string", index,
					    key, at);
	rule->members[member] = value;
	return VD_OK;
}

static vd_status read_rule(struct rule *rule, size_t index, json_t *entry, struct vd_error *reterr)
{
	const char *key;
	json_t	   *value;

	if (!json_is_object(entry))
		return vd_error_set(reterr, VD_INVALID, "rules[%zu]: must be an object", index);
	json_object_foreach (entry, key, value)
		VDI_TRY(read_member(rule, index, key, value, reterr));
	if (rule->members[USERS] == NULL && rule->members[GROUPS] == NULL)
		return vd_error_set(reterr, VD_INVALID, "rules[%zu]: needs users or groups", index);
	if (rule->members[VERBS] == NULL)
		return vd_error_set(reterr, VD_INVALID, "rules[%zu]: needs verbs", index);
	if (rule->members[RESOURCES] == NULL && rule->members[URLS] == NULL)
		return vd_error_set(reterr, VD_INVALID, "rules[%zu]: needs resources or nonResourceURLs",
				    index);
	return VD_OK;
}

static vd_status read_rules(struct vdi_policy *policy, struct vd_error *reterr)
{
	json_t	   *rules = json_object_get(policy->document, "rules");
	const char *key;
	json_t	   *value;

	if (!json_is_array(rules)) /* also if the document is not an object */
		return vd_error_set(reterr, VD_INVALID, "must be an object with an array \"rules\"");
	json_object_foreach (policy->document, key, value)
		if (strcmp(key, "rules") != 0)
			return vd_error_set(reterr, VD_INVALID, "%.64s: unknown key", key);
	policy->rules = vdi_calloc(json_array_size(rules) + 1, sizeof *policy->rules);
	if (policy->rules == NULL)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	for (; policy->count < json_array_size(rules); policy->count++)
		VDI_TRY(read_rule(&policy->rules[policy->count], policy->count,
				  json_array_get(rules, policy->count), reterr));
	return VD_OK;
}

vd_status vdi_policy_parse(struct vd_bytes json, struct vdi_policy **ret_policy, struct vd_error *reterr)
{
	struct vdi_policy *policy = VDI_NEW(struct vdi_policy);
	json_error_t	   fault;
	vd_status	   status;

	if (policy == NULL)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	policy->document = json_loadb(json.size ? json.data : "", json.size, JSON_REJECT_DUPLICATES, &fault);
	if (policy->document == NULL)
		status = vd_error_set(reterr, VD_INVALID, "line %d, column %d: %s", fault.line, fault.column,
				      fault.text);
	else
		status = read_rules(policy, reterr);
	if (status != VD_OK) {
		(void) vdi_policy_free(policy);
		return status;
	}
	*ret_policy = policy;
	return VD_OK;
}

/* ---- Matching ---- */

static struct vd_bytes text_of(const json_t *item)
{
	return (struct vd_bytes) { json_string_value(item), json_string_length(item) };
}

static bool holds(const json_t *array, struct vd_bytes wanted)
{
	const json_t *item;
	size_t	      at;

	json_array_foreach (array, at, item)
		if (vd_bytes_equal(text_of(item), vd_bytes_of("*")) || vd_bytes_equal(text_of(item), wanted))
			return true;
	return false;
}

static bool is_for(const struct rule *rule, const struct vdi_identity *identity)
{
	if (rule->members[USERS] && holds(rule->members[USERS], vd_bytes_of(identity->user)))
		return true;
	for (size_t i = 0; rule->members[GROUPS] && i < identity->group_count; i++)
		if (holds(rule->members[GROUPS], vd_bytes_of(identity->groups[i])))
			return true;
	return false;
}

/* Matches "pods", "pods/status", "*" + "/status" (that subresource of every resource), and "*", as upstream's
 * ResourceMatches (component-helpers auth/rbac). */
static bool covers_resource(const json_t *array, const struct vdi_access *access)
{
	const json_t *item;
	size_t	      at;

	json_array_foreach (array, at, item) {
		struct vd_bytes text = text_of(item);
		const char     *slash = memchr(text.data, '/', text.size);
		struct vd_bytes first = { text.data,
					  slash ? (size_t) (slash - (const char *) text.data) : text.size };
		struct vd_bytes second =
			slash ? (struct vd_bytes) { slash + 1, text.size - first.size - 1 } : VD_BYTES_NONE;

		if (vd_bytes_equal(text, vd_bytes_of("*")))
			return true;
		if (vd_bytes_equal(second, access->subresource) &&
		    (vd_bytes_equal(first, access->resource) ||
		     (second.size && vd_bytes_equal(first, vd_bytes_of("*")))))
			return true;
	}
	return false;
}

static bool covers_path(const json_t *array, struct vd_bytes path)
{
	const json_t *item;
	size_t	      at;

	json_array_foreach (array, at, item) {
		struct vd_bytes text = text_of(item);

		if (vd_bytes_equal(text, path))
			return true;
		if (text.size && ((const char *) text.data)[text.size - 1] == '*' &&
		    vd_bytes_has_prefix(path, (struct vd_bytes) { text.data, text.size - 1 }))
			return true;
	}
	return false;
}

/* An absent member covers every value. A request without a namespace or a name is covered only by a rule
 * without that member, or with "*". */
static bool holds_or_open(const json_t *array, struct vd_bytes wanted)
{
	return array == NULL || holds(array, wanted);
}

static bool allows(const struct rule *rule, const struct vdi_access *access)
{
	if (!holds(rule->members[VERBS], access->verb))
		return false;
	if (access->is_path)
		return rule->members[URLS] && covers_path(rule->members[URLS], access->path);
	return rule->members[RESOURCES] && covers_resource(rule->members[RESOURCES], access) &&
	       holds_or_open(rule->members[API_GROUPS], access->group) &&
	       holds_or_open(rule->members[NAMESPACES], access->namespace_name) &&
	       holds_or_open(rule->members[RESOURCE_NAMES], access->name);
}

/* The paths of upstream's role system:public-info-viewer. */
static const char *const public_paths[] = { "/healthz", "/livez", "/readyz", "/version" };

static bool is_public(const struct vdi_access *access)
{
	if (!access->is_path || !vd_bytes_equal(access->verb, vd_bytes_of("get")))
		return false;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(public_paths); i++)
		if (vd_bytes_equal(access->path, vd_bytes_of(public_paths[i])))
			return true;
	return false;
}

/* Returns true if every request is allowed without a rule. */
static bool may_everything(const struct vdi_policy *policy, const struct vdi_identity *identity)
{
	return vdi_identity_is_in(identity, VDI_GROUP_MASTERS) ||
	       (policy == NULL && vdi_identity_is_in(identity, VDI_GROUP_AUTHENTICATED));
}

bool vdi_policy_allows(const struct vdi_policy *policy, const struct vdi_identity *identity,
		       const struct vdi_access *access)
{
	if (is_public(access) || may_everything(policy, identity))
		return true;
	for (size_t i = 0; policy && i < policy->count; i++)
		if (is_for(&policy->rules[i], identity) && allows(&policy->rules[i], access))
			return true;
	return false;
}

/* ---- Writing ---- */

static void write_array(struct vdi_out *out, const char *key, const json_t *array)
{
	const json_t *item;
	size_t	      at;

	vdi_out_key(out, key);
	vdi_out_raw(out, "[");
	json_array_foreach (array, at, item) {
		vdi_out_comma(out);
		vdi_out_string(out, text_of(item));
	}
	vdi_out_raw(out, "]");
}

static void write_rule(struct vdi_out *out, const struct rule *rule, bool paths)
{
	vdi_out_comma(out);
	vdi_out_raw(out, "{");
	write_array(out, "verbs", rule->members[VERBS]);
	if (paths) {
		write_array(out, "nonResourceURLs", rule->members[URLS]);
	} else {
		if (rule->members[API_GROUPS])
			write_array(out, "apiGroups", rule->members[API_GROUPS]);
		else
			vdi_out_raw(out, ",\"apiGroups\":[\"*\"]");
		write_array(out, "resources", rule->members[RESOURCES]);
		if (rule->members[RESOURCE_NAMES])
			write_array(out, "resourceNames", rule->members[RESOURCE_NAMES]);
	}
	vdi_out_raw(out, "}");
}

void vdi_policy_write_rules(struct vdi_out *out, const struct vdi_policy *policy,
			    const struct vdi_identity *identity, struct vd_bytes namespace_name)
{
	bool may_all = may_everything(policy, identity);

	vdi_out_key(out, "resourceRules");
	vdi_out_raw(out, "[");
	if (may_all)
		vdi_out_raw(out, "{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]}");
	for (size_t i = 0; policy && i < policy->count; i++)
		if (policy->rules[i].members[RESOURCES] && is_for(&policy->rules[i], identity) &&
		    holds_or_open(policy->rules[i].members[NAMESPACES], namespace_name))
			write_rule(out, &policy->rules[i], false);
	vdi_out_raw(out, "]");
	vdi_out_key(out, "nonResourceRules");
	vdi_out_raw(out, "[{\"verbs\":[\"get\"],\"nonResourceURLs\":[");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(public_paths); i++) {
		vdi_out_comma(out);
		vdi_out_text(out, public_paths[i]);
	}
	vdi_out_raw(out, "]}");
	if (may_all)
		vdi_out_raw(out, ",{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}");
	for (size_t i = 0; policy && i < policy->count; i++)
		if (policy->rules[i].members[URLS] && is_for(&policy->rules[i], identity))
			write_rule(out, &policy->rules[i], true);
	vdi_out_raw(out, "]");
}

void vdi_access_explain(const struct vdi_access *access, const char *user, char *buffer, size_t size)
{
	char place[300] = "at the cluster scope";

	if (access->is_path) {
		(void) snprintf(buffer, size, "User \"%s\" cannot %.*s path \"%.*s\"", user,
				(int) access->verb.size, (const char *) access->verb.data,
				(int) VDI_MIN(access->path.size, (size_t) 256),
				(const char *) access->path.data);
		return;
	}
	if (access->namespace_name.size)
		(void) snprintf(place, sizeof place, "in the namespace \"%.*s\"",
				(int) VDI_MIN(access->namespace_name.size, (size_t) 253),
				(const char *) access->namespace_name.data);
	(void) snprintf(
		buffer, size, "User \"%s\" cannot %.*s resource \"%.*s%s%.*s\" in API group \"%.*s\" %s",
		user, (int) access->verb.size, (const char *) access->verb.data,
		(int) VDI_MIN(access->resource.size, (size_t) 63), (const char *) access->resource.data,
		access->subresource.size ? "/" : "", (int) VDI_MIN(access->subresource.size, (size_t) 63),
		(const char *) access->subresource.data, (int) VDI_MIN(access->group.size, (size_t) 253),
		(const char *) access->group.data, place);
}
