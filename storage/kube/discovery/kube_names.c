/* A document is parsed into a tree, copied into the table, and freed. The number of its JSON values is
 * estimated before, because a node of the tree is forty times as large as the shortest value.
 *
 * A search passes over the table once for each way in which a name can match, and takes the first entry. */
#include "kube_names.h"

#include <stdio.h>
#include <strings.h>

#include "http_parser.h"

void vdi_kube_names_fini(struct vdi_kube_names *names)
{
	vdi_free(names->items);
	vdi_free(names->versions);
	vdi_free(names->missing);
	vdi_tree_fini(&names->texts);
	memset(names, 0, sizeof *names);
}

/* ---- Texts ---- */

static vd_status no_memory(struct vd_error *reterr)
{
	return vd_error_set(reterr, VD_NOMEM, "out of memory");
}

/* Returns true for the texts that can be a group, version or resource: one segment of a path. */
static bool is_name(struct vd_bytes text)
{
	const unsigned char *bytes = text.data;

	if (text.size == 0 || text.size > VDI_KUBE_NAME_MAX)
		return false;
	for (size_t i = 0; i < text.size; i++)
		if (!vdi_ascii_is_alnum(bytes[i]) && bytes[i] != '-' && bytes[i] != '.' && bytes[i] != '_' &&
		    bytes[i] != ':')
			return false;
	return bytes[0] != '.';
}

/* Copies text into the table, with a NUL. NULL: out of memory. */
static const char *keep(struct vdi_kube_names *names, struct vd_bytes text)
{
	char *copy = vdi_tree_take(&names->texts, text.size + 1);

	if (copy) {
		if (text.size)
			memcpy(copy, text.data, text.size);
		copy[text.size] = 0;
	}
	return copy;
}

/* The text of a member if it is a name; otherwise empty. */
static struct vd_bytes name_at(struct vdi_tree *tree, const struct vdi_node *object, const char *key)
{
	struct vd_bytes text = vdi_tree_string_of(vdi_tree_get(tree, object, vd_bytes_of(key)));

	return is_name(text) ? text : VD_BYTES_NONE;
}

static struct vdi_node *children_at(struct vdi_tree *tree, const struct vdi_node *object, const char *key)
{
	struct vdi_node *array = vdi_tree_get(tree, object, vd_bytes_of(key));

	return vdi_tree_is(array, VDI_NODE_ARRAY) ? array->first : NULL;
}

/* ---- The table ---- */

static vd_status add_version(struct vdi_kube_names *names, struct vdi_kube_version **versions, size_t *count,
			     size_t *capacity, const struct vdi_kube_version *version,
			     struct vd_error *reterr)
{
	if (*count == VDI_KUBE_NAMES_VERSIONS_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "the server has more than %d versions of groups",
				    VDI_KUBE_NAMES_VERSIONS_MAX);
	if (!vdi_grow((void **) versions, capacity, *count + 1, sizeof **versions))
		return no_memory(reterr);
	(*versions)[*count] = *version;
	++*count;
	return VD_OK;
}

/* The first error of keep leaves a NULL among the texts. */
static vd_status keep_version(struct vdi_kube_names *names, struct vd_bytes group, struct vd_bytes version,
			      struct vdi_kube_version *ret_version, struct vd_error *reterr)
{
	ret_version->group = keep(names, group);
	ret_version->version = keep(names, version);
	return ret_version->group && ret_version->version ? VD_OK : no_memory(reterr);
}

vd_status vdi_kube_names_miss(struct vdi_kube_names *names, const struct vdi_kube_version *version,
			      struct vd_error *reterr)
{
	struct vdi_kube_version kept;

	VDI_TRY(keep_version(names, vd_bytes_of(version->group), vd_bytes_of(version->version), &kept,
			     reterr));
	return add_version(names, &names->missing, &names->missing_count, &names->missing_capacity, &kept,
			   reterr);
}

/* Joins the short names of an entry with spaces. NULL: out of memory. */
static const char *keep_short_names(struct vdi_kube_names *names, struct vdi_tree *tree,
				    const struct vdi_node *entry)
{
	char   text[VDI_KUBE_SHORT_NAMES_MAX * (VDI_KUBE_NAME_MAX + 1)];
	size_t size = 0;
	int    count = 0;

	for (struct vdi_node *node = children_at(tree, entry, "shortNames");
	     node && count < VDI_KUBE_SHORT_NAMES_MAX; node = node->next) {
		struct vd_bytes name = vdi_tree_string_of(node);

		if (!is_name(name))
			continue;
		if (count++)
			text[size++] = ' ';
		memcpy(text + size, name.data, name.size);
		size += name.size;
	}
	return keep(names, (struct vd_bytes) { text, size });
}

struct entry {
	struct vd_bytes plural, singular, kind;
	bool		cluster_scoped;
};

static vd_status add_name(struct vdi_kube_names *names, struct vdi_tree *tree, const struct vdi_node *node,
			  const struct vdi_kube_version *version, const struct entry *entry,
			  struct vd_error *reterr)
{
	struct vdi_kube_name name = { .group = version->group, .version = version->version };

	if (entry->plural.size == 0)
		return VD_OK; /* a subresource, or not an entry */
	if (names->count == VDI_KUBE_NAMES_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "the server has more than %d resources",
				    VDI_KUBE_NAMES_MAX);
	name.plural = keep(names, entry->plural);
	name.singular = keep(names, entry->singular);
	name.kind = keep(names, entry->kind);
	name.short_names = keep_short_names(names, tree, node);
	name.cluster_scoped = entry->cluster_scoped;
	if (!name.plural || !name.singular || !name.kind || !name.short_names ||
	    !vdi_grow((void **) &names->items, &names->capacity, names->count + 1, sizeof name))
		return no_memory(reterr);
	names->items[names->count++] = name;
	return VD_OK;
}

/* ---- Documents ---- */

static vd_status check_size(struct vd_bytes document, struct vd_error *reterr)
{
	const char *bytes = document.data;
	size_t	    nodes = 1;

	if (document.size > VDI_KUBE_NAMES_DOCUMENT_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "%zu bytes; at most %zu are read", document.size,
				    VDI_KUBE_NAMES_DOCUMENT_MAX);
	for (size_t i = 0; i < document.size; i++)
		nodes += bytes[i] == ',' || bytes[i] == '[' || bytes[i] == '{';
	if (nodes > VDI_KUBE_NAMES_NODES_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "about %zu JSON values; at most %d are read", nodes,
				    VDI_KUBE_NAMES_NODES_MAX);
	return VD_OK;
}

static vd_status parse(struct vdi_tree *tree, struct vd_bytes document, struct vdi_node **ret_root,
		       struct vd_error *reterr)
{
	VDI_TRY(check_size(document, reterr));
	return vdi_tree_parse(tree, document, ret_root, reterr);
}

static bool is_kind(struct vdi_tree *tree, const struct vdi_node *root, const char *kind)
{
	return vd_bytes_equal(vdi_tree_string_of(vdi_tree_get(tree, root, vd_bytes_of("kind"))),
			      vd_bytes_of(kind));
}

static vd_status read_aggregated_version(struct vdi_kube_names *names, struct vdi_tree *tree,
					 struct vd_bytes group, const struct vdi_node *node,
					 struct vd_error *reterr)
{
	struct vd_bytes freshness = vdi_tree_string_of(vdi_tree_get(tree, node, vd_bytes_of("freshness")));
	struct vdi_kube_version version;

	if (name_at(tree, node, "version").size == 0)
		return VD_OK;
	VDI_TRY(keep_version(names, group, name_at(tree, node, "version"), &version, reterr));
	for (struct vdi_node *at = children_at(tree, node, "resources"); at; at = at->next) {
		struct vd_bytes scope = vdi_tree_string_of(vdi_tree_get(tree, at, vd_bytes_of("scope")));
		struct entry entry = { name_at(tree, at, "resource"), name_at(tree, at, "singularResource"),
				       name_at(tree, vdi_tree_get(tree, at, vd_bytes_of("responseKind")),
					       "kind"),
				       !vd_bytes_equal(scope, vd_bytes_of("Namespaced")) };

		VDI_TRY(add_name(names, tree, at, &version, &entry, reterr));
	}
	if (vd_bytes_equal(freshness, vd_bytes_of("Stale")))
		return vdi_kube_names_miss(names, &version, reterr);
	return VD_OK;
}

static vd_status read_aggregated(struct vdi_kube_names *names, bool is_core, struct vdi_tree *tree,
				 const struct vdi_node *root, struct vd_error *reterr)
{
	for (struct vdi_node *item = children_at(tree, root, "items"); item; item = item->next) {
		struct vd_bytes group =
			name_at(tree, vdi_tree_get(tree, item, vd_bytes_of("metadata")), "name");

		if (is_core != (group.size == 0))
			continue;
		for (struct vdi_node *at = children_at(tree, item, "versions"); at; at = at->next)
			VDI_TRY(read_aggregated_version(names, tree, group, at, reterr));
	}
	return VD_OK;
}

static vd_status want_version(struct vdi_kube_names *names, struct vd_bytes group, struct vd_bytes version,
			      struct vd_error *reterr)
{
	struct vdi_kube_version kept;

	if (!is_name(version))
		return VD_OK;
	VDI_TRY(keep_version(names, group, version, &kept, reterr));
	return add_version(names, &names->versions, &names->version_count, &names->version_capacity, &kept,
			   reterr);
}

static vd_status read_core_versions(struct vdi_kube_names *names, struct vdi_tree *tree,
				    const struct vdi_node *root, struct vd_error *reterr)
{
	for (struct vdi_node *at = children_at(tree, root, "versions"); at; at = at->next)
		VDI_TRY(want_version(names, VD_BYTES_NONE, vdi_tree_string_of(at), reterr));
	return VD_OK;
}

/* The preferred version first, then the others. */
static vd_status read_group(struct vdi_kube_names *names, struct vdi_tree *tree, const struct vdi_node *node,
			    struct vd_error *reterr)
{
	struct vd_bytes group = name_at(tree, node, "name"),
			preferred = name_at(tree, vdi_tree_get(tree, node, vd_bytes_of("preferredVersion")),
					    "version");

	if (group.size == 0)
		return VD_OK;
	VDI_TRY(want_version(names, group, preferred, reterr));
	for (struct vdi_node *at = children_at(tree, node, "versions"); at; at = at->next) {
		struct vd_bytes version = name_at(tree, at, "version");

		if (!vd_bytes_equal(version, preferred))
			VDI_TRY(want_version(names, group, version, reterr));
	}
	return VD_OK;
}

static vd_status read_groups(struct vdi_kube_names *names, bool is_core, struct vdi_tree *tree,
			     const struct vdi_node *root, struct vd_error *reterr)
{
	if (is_kind(tree, root, "APIGroupDiscoveryList"))
		return read_aggregated(names, is_core, tree, root, reterr);
	if (is_core && is_kind(tree, root, "APIVersions"))
		return read_core_versions(names, tree, root, reterr);
	if (!is_core && is_kind(tree, root, "APIGroupList")) {
		for (struct vdi_node *at = children_at(tree, root, "groups"); at; at = at->next)
			VDI_TRY(read_group(names, tree, at, reterr));
		return VD_OK;
	}
	return vd_error_set(reterr, VD_BAD_REQUEST, "not a list of API groups");
}

vd_status vdi_kube_names_read_groups(struct vdi_kube_names *names, bool is_core, struct vd_bytes document,
				     struct vd_error *reterr)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	vd_status	 status = parse(&tree, document, &root, reterr);

	if (status == VD_OK)
		status = read_groups(names, is_core, &tree, root, reterr);
	vdi_tree_fini(&tree);
	return status;
}

static vd_status read_resources(struct vdi_kube_names *names, const struct vdi_kube_version *version,
				struct vdi_tree *tree, const struct vdi_node *root, struct vd_error *reterr)
{
	if (!is_kind(tree, root, "APIResourceList"))
		return vd_error_set(reterr, VD_BAD_REQUEST, "not a list of resources");
	for (struct vdi_node *at = children_at(tree, root, "resources"); at; at = at->next) {
		struct entry entry = { name_at(tree, at, "name"), name_at(tree, at, "singularName"),
				       name_at(tree, at, "kind"),
				       !vdi_tree_is(vdi_tree_get(tree, at, vd_bytes_of("namespaced")),
						    VDI_NODE_TRUE) };

		VDI_TRY(add_name(names, tree, at, version, &entry, reterr));
	}
	return VD_OK;
}

vd_status vdi_kube_names_read_version(struct vdi_kube_names *names, const struct vdi_kube_version *version,
				      struct vd_bytes document, struct vd_error *reterr)
{
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_node	       *root;
	struct vdi_kube_version kept;
	vd_status		status = parse(&tree, document, &root, reterr);

	if (status == VD_OK)
		status = keep_version(names, vd_bytes_of(version->group), vd_bytes_of(version->version),
				      &kept, reterr);
	if (status == VD_OK)
		status = read_resources(names, &kept, &tree, root, reterr);
	vdi_tree_fini(&tree);
	return status;
}

/* ---- The search ---- */

/* A typed name, split at its first dot. */
struct wanted {
	char	    resource[VDI_KUBE_NAME_MAX + 1];
	const char *rest; /* NULL: none */
};

static vd_status split(const char *typed, struct wanted *ret_wanted, struct vd_error *reterr)
{
	size_t size = strcspn(typed, ".");

	if (!is_name((struct vd_bytes) { typed, size }) || strlen(typed) > 3 * VDI_KUBE_NAME_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "\"%.100s\" is not the name of a resource",
				    typed);
	memcpy(ret_wanted->resource, typed, size);
	ret_wanted->resource[size] = 0;
	ret_wanted->rest = typed[size] ? typed + size + 1 : NULL;
	return VD_OK;
}

vd_status vdi_kube_names_check(const char *typed, struct vd_error *reterr)
{
	struct wanted wanted;

	return split(typed, &wanted, reterr);
}

/* rest is the group, or the version and the group; "v1" and "v1." are of the core group. */
static bool is_group_exact(const struct wanted *wanted, const char *group, const char *version)
{
	const char *rest = wanted->rest;
	size_t	    size = strlen(version);

	if (rest == NULL || strcasecmp(rest, group) == 0)
		return true;
	if (strncasecmp(rest, version, size) != 0)
		return false;
	return rest[size] == '.' ? strcasecmp(rest + size + 1, group) == 0 : rest[size] == 0 && *group == 0;
}

static bool is_group_prefix(const struct wanted *wanted, const char *group, const char *version)
{
	(void) version;
	return wanted->rest && *wanted->rest && strncasecmp(group, wanted->rest, strlen(wanted->rest)) == 0;
}

static bool is_its_name(const struct vdi_kube_name *name, const char *typed)
{
	return strcasecmp(name->plural, typed) == 0 ||
	       (*name->singular && strcasecmp(name->singular, typed) == 0);
}

static bool is_its_short_name(const struct vdi_kube_name *name, const char *typed)
{
	size_t size = strlen(typed);

	for (const char *at = name->short_names; *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");

		if (length == size && strncasecmp(at, typed, size) == 0)
			return true;
		at += length;
	}
	return false;
}

static bool is_its_kind(const struct vdi_kube_name *name, const char *typed)
{
	return strcasecmp(name->kind, typed) == 0;
}

typedef bool (*group_fn)(const struct wanted *wanted, const char *group, const char *version);

static bool is_missing(const struct vdi_kube_names *names, const struct wanted *wanted)
{
	for (size_t i = 0; wanted->rest && i < names->missing_count; i++)
		if (is_group_exact(wanted, names->missing[i].group, names->missing[i].version))
			return true;
	return false;
}

/* Writes "; unavailable: metrics.k8s.io/v1beta1, ..."; cuts a long list. */
static void describe_missing(const struct vdi_kube_names *names, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < names->missing_count && used < size / 2; i++)
		used += (size_t) snprintf(text + used, size - used, "%s%.60s%s%.20s",
					  i ? ", " : "; unavailable: ", names->missing[i].group,
					  *names->missing[i].group ? "/" : "", names->missing[i].version);
}

vd_status vdi_kube_names_find(const struct vdi_kube_names *names, const char *typed,
			      const struct vdi_kube_name **ret_name, struct vd_error *reterr)
{
	static const group_fn groups[] = { is_group_exact, is_group_prefix };
	static bool (*const fits[])(const struct vdi_kube_name *,
				    const char *) = { is_its_name, is_its_short_name, is_its_kind };
	struct wanted wanted;
	char	      missing[240];

	VDI_TRY(split(typed, &wanted, reterr));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(groups); i++)
		for (size_t j = 0; j < VDI_ARRAY_SIZE(fits); j++)
			for (size_t k = 0; k < names->count; k++) {
				const struct vdi_kube_name *name = &names->items[k];

				if (groups[i](&wanted, name->group, name->version) &&
				    fits[j](name, wanted.resource)) {
					*ret_name = name;
					return VD_OK;
				}
			}
	describe_missing(names, missing, sizeof missing);
	return vd_error_set(reterr, is_missing(names, &wanted) ? VD_UNAVAILABLE : VD_NOT_FOUND,
			    "the server does not have a resource type \"%.100s\"%s", typed, missing);
}
