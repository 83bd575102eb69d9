/* Converts the JSON of a CustomResourceDefinition to resources, one per served version. All versions share
 * one cache, so the cache's fields are the union of all versions' selectable fields; each resource knows its
 * own. */
#include "crd.h"

#include <stdio.h>

#include "read_defaults.h"
#include "schema.h"

struct reading {
	struct vdi_tree	       tree;
	const struct vdi_node *spec;
	const struct vdi_node *names;
	const char	      *root_path;
	struct vd_error	      *error;
};

bool vdi_crd_is(const struct vdi_resource *resource)
{
	return resource->built_in && strcmp(resource->plural, "customresourcedefinitions") == 0;
}

static struct vdi_node *get(struct reading *reading, const struct vdi_node *object, const char *name)
{
	return vdi_tree_get(&reading->tree, object, vd_bytes_of(name));
}

static bool is_true(const struct vdi_node *node)
{
	return vdi_tree_is(node, VDI_NODE_TRUE);
}

static vd_status fault(struct reading *reading, const char *what)
{
	return vd_error_set(reading->error, VD_INVALID, "%s", what);
}

/* Copies a string for the resource to own; "" for an absent member. */
static vd_status take(struct vdi_resource *resource, const struct vdi_node *node, const char **ret_text)
{
	struct vd_bytes text = vdi_tree_string_of(node);

	if (text.size && memchr(text.data, 0, text.size))
		return VD_INVALID;
	*ret_text = text.size ? vdi_resource_own(resource, vdi_strndup(text.data, text.size)) : "";
	return *ret_text ? VD_OK : VD_NOMEM;
}

static vd_status take_words(struct vdi_resource *resource, const struct vdi_node *list,
			    const char *words[VDI_RESOURCE_WORDS_MAX])
{
	size_t i = 0;

	for (const struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL;
	     item && i < VDI_RESOURCE_WORDS_MAX; item = item->next, i++)
		VDI_TRY(take(resource, item, &words[i]));
	return VD_OK;
}

static vd_status take_column(struct reading *reading, struct vdi_resource *resource,
			     const struct vdi_node *node, struct vdi_column *column)
{
	VDI_TRY(take(resource, get(reading, node, "name"), &column->name));
	VDI_TRY(take(resource, get(reading, node, "type"), &column->type));
	VDI_TRY(take(resource, get(reading, node, "format"), &column->format));
	VDI_TRY(take(resource, get(reading, node, "description"), &column->description));
	VDI_TRY(take(resource, get(reading, node, "jsonPath"), &column->path));
	column->priority = (int) vdi_tree_int_of(get(reading, node, "priority"), 0);
	column->cell = VDI_CELL_TYPED;
	return VD_OK;
}

static vd_status take_columns(struct reading *reading, struct vdi_resource *resource,
			      const struct vdi_node *list)
{
	static const struct vdi_column name_column = {
		"Name",
		"string",
		"name",
		"Name must be unique within a namespace. Is required when creating resources, although some "
		"resources may allow a client to request the "
		"generation of an appropriate name automatically. Name is primarily intended for creation "
		"idempotence and configuration definition. Cannot be "
		"updated. More info: "
		"https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
		0,
		VDI_CELL_PATH,
		".metadata.name"
	};
	static const struct vdi_column age_column = {
		"Age",
		"date",
		"",
		"CreationTimestamp is a timestamp representing the server time when this object was created. "
		"It is not guaranteed to be set in happens-before "
		"order across separate operations. Clients may not set this value. It is represented in "
		"RFC3339 form and is in UTC.",
		0,
		VDI_CELL_TYPED,
		".metadata.creationTimestamp"
	};
	size_t count = vdi_tree_is(list, VDI_NODE_ARRAY) ?
			       VDI_MIN(list->count, (size_t) VDI_RESOURCE_COLUMNS_MAX) :
			       0,
	       i = 0;
	struct vdi_column *columns = vdi_resource_own(resource, vdi_calloc(count + 2, sizeof *columns));

	if (columns == NULL)
		return VD_NOMEM;
	columns[0] = name_column;
	columns[1] = age_column;
	for (const struct vdi_node *item = count ? list->first : NULL; item && i < count;
	     item = item->next, i++)
		VDI_TRY(take_column(reading, resource, item, &columns[i + 1]));
	resource->columns = columns;
	resource->column_count = count ? count + 1 : 2;
	return VD_OK;
}

static vd_status take_fields(struct reading *reading, struct vdi_resource *resource,
			     const struct vdi_node *list)
{
	size_t count = vdi_tree_is(list, VDI_NODE_ARRAY) ? VDI_MIN(list->count, (size_t) VD_FIELDS_MAX) : 0,
	       i = 0;
	struct vd_field_spec *fields =
		vdi_resource_own(resource, vdi_calloc(count ? count : 1, sizeof *fields));

	if (fields == NULL)
		return VD_NOMEM;
	for (const struct vdi_node *item = count ? list->first : NULL; item && i < count;
	     item = item->next, i++) {
		VDI_TRY(take(resource, get(reading, item, "jsonPath"), &fields[i].json_path));
		if (fields[i].json_path[0] != '.')
			return fault(reading, "spec.versions: a selectable field has an invalid jsonPath");
		fields[i].name = fields[i].json_path + 1;
	}
	resource->fields = fields;
	resource->field_count = count;
	return VD_OK;
}

static vd_status take_subresources(struct reading *reading, struct vdi_resource *resource,
				   const struct vdi_node *subresources)
{
	const struct vdi_node *scale = get(reading, subresources, "scale");

	resource->has_status = vdi_tree_is(get(reading, subresources, "status"), VDI_NODE_OBJECT);
	resource->has_scale = vdi_tree_is(scale, VDI_NODE_OBJECT);
	if (!resource->has_scale)
		return VD_OK;
	VDI_TRY(take(resource, get(reading, scale, "specReplicasPath"), &resource->scale_spec_path));
	VDI_TRY(take(resource, get(reading, scale, "statusReplicasPath"), &resource->scale_status_path));
	return take(resource, get(reading, scale, "labelSelectorPath"), &resource->scale_selector_path);
}

static vd_status take_schema(struct reading *reading, struct vdi_resource *resource,
			     const struct vdi_node *version)
{
	const struct vdi_node  *node = vdi_tree_find(&reading->tree, version, "schema.openAPIV3Schema");
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_schema      *schema;
	vd_status		status;

	if (!vdi_tree_is(node, VDI_NODE_OBJECT))
		return VD_OK;
	status = vdi_schema_compile(&reading->tree, node, resource->version, &schema, &field_errors);
	if (status == VD_OK) {
		resource->schema = schema;
	} else if (status == VD_INVALID) {
		struct vd_bytes message = vdi_field_errors_message(&field_errors);

		(void) vd_error_set(reading->error, VD_INVALID, "the schema of %s is not structural: %.*s",
				    resource->version, (int) VDI_MIN(message.size, (size_t) 160),
				    message.size ? (const char *) message.data : "");
	}
	vdi_field_errors_fini(&field_errors);
	return status;
}

/* Returns the best version that is better and not deprecated itself; empty: none. */
static struct vd_bytes successor_of(struct reading *reading, const struct vdi_resource *resource)
{
	const struct vdi_node *versions = get(reading, reading->spec, "versions");
	struct vd_bytes	       best = VD_BYTES_NONE;
	char		       best_text[64], text[64];

	(void) snprintf(best_text, sizeof best_text, "%.63s", resource->version);
	for (const struct vdi_node *version = versions->first; version; version = version->next) {
		struct vd_bytes name = vdi_tree_string_of(get(reading, version, "name"));

		if (!is_true(get(reading, version, "served")) ||
		    is_true(get(reading, version, "deprecated")) || name.size == 0 ||
		    name.size >= sizeof text)
			continue;
		(void) snprintf(text, sizeof text, "%.*s", (int) name.size, (const char *) name.data);
		if (vdi_resource_compare_versions(text, best_text) < 0) {
			best = name;
			memcpy(best_text, text, sizeof best_text);
		}
	}
	return best;
}

/* As NewWarningHeader of k8s.io/apimachinery pkg/util/net: a text that could end the header is not
 * written. */
static bool write_warning(struct vdi_out *out, struct vd_bytes text)
{
	const char *at = text.data;

	if (text.size == 0)
		return false;
	vdi_out_raw(out, "Warning: 299 - \"");
	for (size_t i = 0; i < text.size; i++) {
		bool is_c1 = (unsigned char) at[i] == 0xC2 && i + 1 < text.size &&
			     (unsigned char) at[i + 1] < 0xA0;

		if ((unsigned char) at[i] < ' ' || at[i] == 0x7f || is_c1)
			return false;
		if (at[i] == '"' || at[i] == '\\')
			vdi_out_raw(out, "\\");
		vdi_out_bytes(out, (struct vd_bytes) { at + i, 1 });
	}
	vdi_out_raw(out, "\"\r\n");
	return true;
}

/* The text is from apiextensions-apiserver pkg/apiserver/customresource_handler.go,
 * defaultDeprecationWarning. */
static vd_status take_deprecation(struct reading *reading, struct vdi_resource *resource,
				  const struct vdi_node *version)
{
	const struct vdi_node *given = get(reading, version, "deprecationWarning");
	struct vdi_out	       text = VDI_OUT_INIT, line = VDI_OUT_INIT;
	struct vd_bytes	       successor;
	vd_status	       status = VD_OK;

	if (!is_true(get(reading, version, "deprecated")))
		return VD_OK;
	if (vdi_tree_is(given, VDI_NODE_STRING)) {
		vdi_out_bytes(&text, given->text);
	} else {
		vdi_out_printf(&text, "%s/%s %s is deprecated", resource->group, resource->version,
			       resource->kind);
		successor = successor_of(reading, resource);
		if (successor.size)
			vdi_out_printf(&text, "; use %s/%.*s %s", resource->group, (int) successor.size,
				       (const char *) successor.data, resource->kind);
	}
	if (!text.failed && write_warning(&line, vdi_out_slice(&text)) &&
	    (line.failed ||
	     (resource->deprecation = vdi_resource_own(resource, vdi_strndup(line.data, line.size))) == NULL))
		status = VD_NOMEM;
	if (text.failed || line.failed)
		status = VD_NOMEM;
	vdi_out_fini(&text);
	vdi_out_fini(&line);
	return status;
}

static vd_status take_prefix(struct reading *reading, struct vdi_resource *resource)
{
	size_t size = strlen(reading->root_path) + strlen(resource->group) + strlen(resource->plural) + 3;
	char  *text = vdi_resource_own(resource, vdi_alloc(size));

	if (text == NULL)
		return VD_NOMEM;
	(void) snprintf(text, size, "%s%s/%s/", reading->root_path, resource->group, resource->plural);
	resource->key_prefix = text;
	return VD_OK;
}

static vd_status fill(struct reading *reading, struct vdi_resource *resource, const struct vdi_node *version)
{
	char version_text[VDI_RESOURCE_NAME_MAX];

	VDI_TRY(take(resource, get(reading, reading->spec, "group"), &resource->group));
	VDI_TRY(take(resource, get(reading, version, "name"), &resource->version));
	VDI_TRY(take(resource, get(reading, reading->names, "kind"), &resource->kind));
	VDI_TRY(take(resource, get(reading, reading->names, "listKind"), &resource->list_kind));
	VDI_TRY(take(resource, get(reading, reading->names, "plural"), &resource->plural));
	VDI_TRY(take(resource, get(reading, reading->names, "singular"), &resource->singular));
	if (!*resource->group || !*resource->version || !*resource->kind || !*resource->list_kind ||
	    !*resource->plural || !*resource->singular)
		return fault(reading, "spec.group, a version's name or a member of spec.names is empty");
	if (strchr(resource->group, '/') || strchr(resource->plural, '/') || strlen(resource->group) > 253 ||
	    strlen(resource->plural) > 63)
		return fault(reading, "spec.group or spec.names.plural is too long or contains '/'");
	VDI_TRY(take_words(resource, get(reading, reading->names, "shortNames"), resource->short_names));
	VDI_TRY(take_words(resource, get(reading, reading->names, "categories"), resource->categories));
	VDI_TRY(take_prefix(reading, resource));
	VDI_TRY(take_columns(reading, resource, get(reading, version, "additionalPrinterColumns")));
	VDI_TRY(take_fields(reading, resource, get(reading, version, "selectableFields")));
	VDI_TRY(take_subresources(reading, resource, get(reading, version, "subresources")));
	VDI_TRY(take_schema(reading, resource, version));
	VDI_TRY(take_deprecation(reading, resource, version));
	resource->api_version = resource->stored_api_version =
		vdi_resource_own(resource, vdi_strdup(vdi_resource_api_version(resource, version_text)));
	if (resource->api_version == NULL)
		return VD_NOMEM;
	resource->namespaced = vd_bytes_equal(vdi_tree_string_of(get(reading, reading->spec, "scope")),
					      vd_bytes_of("Namespaced"));
	resource->has_generation = true;
	resource->is_custom = true;
	return VD_OK;
}

/* Adds the fields that crd does not have yet. */
static void add_fields(struct vdi_crd *crd, const struct vdi_resource *resource)
{
	for (size_t i = 0; i < resource->field_count && crd->field_count < VD_FIELDS_MAX; i++) {
		size_t known = 0;

		while (known < crd->field_count &&
		       strcmp(crd->fields[known].name, resource->fields[i].name) != 0)
			known++;
		if (known == crd->field_count)
			crd->fields[crd->field_count++] = resource->fields[i];
	}
}

static vd_status read_version(struct reading *reading, const struct vdi_node *version, struct vdi_crd *crd)
{
	bool is_served = is_true(get(reading, version, "served")),
	     is_stored = is_true(get(reading, version, "storage"));
	struct vdi_resource *resource;
	vd_status	     status;

	resource = vdi_resource_new();
	status = resource ? fill(reading, resource, version) : VD_NOMEM;
	if (status == VD_OK) /* objects may be stored in any version */
		status = vdi_read_defaults_add(&crd->defaults, resource->api_version, resource->schema);
	if (!is_served && !is_stored) {
		(void) vdi_resource_unref(resource);
		return status == VD_NOMEM ? VD_NOMEM : VD_OK;
	}
	if (status == VD_OK && is_served) {
		status = vdi_resources_add(&crd->resources, resource);
		if (status == VD_OK)
			add_fields(crd, resource);
	}
	if (status == VD_OK && is_stored && crd->stored == NULL)
		crd->stored = vdi_resource_ref(resource);
	(void) vdi_resource_unref(resource);
	return status;
}

static bool is_accepted(struct reading *reading, const struct vdi_node *root)
{
	const struct vdi_node *conditions = vdi_tree_find(&reading->tree, root, "status.conditions");

	for (const struct vdi_node *item = vdi_tree_is(conditions, VDI_NODE_ARRAY) ? conditions->first : NULL;
	     item; item = item->next)
		if (vd_bytes_equal(vdi_tree_string_of(get(reading, item, "type")),
				   vd_bytes_of("NamesAccepted")))
			return vd_bytes_equal(vdi_tree_string_of(get(reading, item, "status")),
					      vd_bytes_of("True"));
	return false;
}

static void read_metadata(struct reading *reading, const struct vdi_node *root, struct vdi_crd *crd)
{
	const struct vdi_node *metadata = get(reading, root, "metadata"),
			      *finalizers = get(reading, metadata, "finalizers");
	struct vd_bytes uid = vdi_tree_string_of(get(reading, metadata, "uid"));

	(void) snprintf(crd->uid, sizeof crd->uid, "%.*s", (int) VDI_MIN(uid.size, sizeof crd->uid - 1),
			uid.size ? (const char *) uid.data : "");
	crd->generation = vdi_tree_int_of(get(reading, metadata, "generation"), 0);
	crd->is_terminating = vdi_tree_string_of(get(reading, metadata, "deletionTimestamp")).size > 0;
	for (const struct vdi_node *item = vdi_tree_is(finalizers, VDI_NODE_ARRAY) ? finalizers->first : NULL;
	     item; item = item->next)
		crd->is_kept |= vd_bytes_equal(vdi_tree_string_of(item), vd_bytes_of(VDI_CRD_FINALIZER));
	crd->was_accepted = is_accepted(reading, root);
}

static vd_status read(struct reading *reading, struct vd_bytes json, struct vdi_crd *crd)
{
	struct vdi_node	      *root;
	const struct vdi_node *versions;
	struct vd_bytes	       strategy;

	VDI_TRY(vdi_tree_parse(&reading->tree, json, &root, reading->error));
	reading->spec = get(reading, root, "spec");
	reading->names = get(reading, reading->spec, "names");
	versions = get(reading, reading->spec, "versions");
	strategy = vdi_tree_string_of(vdi_tree_find(&reading->tree, reading->spec, "conversion.strategy"));
	if (strategy.size && !vd_bytes_equal(strategy, vd_bytes_of("None")))
		return fault(reading, "spec.conversion uses a webhook, which this server does not support");
	read_metadata(reading, root, crd);
	for (const struct vdi_node *version = vdi_tree_is(versions, VDI_NODE_ARRAY) ? versions->first : NULL;
	     version; version = version->next)
		VDI_TRY(read_version(reading, version, crd));
	if (crd->stored == NULL)
		return fault(reading, "spec.versions: no version has storage: true");
	crd->stored->defaults = vdi_read_defaults_ref(crd->defaults);
	for (size_t i = 0; i < crd->resources.count; i++) {
		struct vdi_resource *resource = crd->resources.items[i];

		resource->stored_api_version =
			vdi_resource_own(resource, vdi_strdup(crd->stored->api_version));
		if (resource->stored_api_version == NULL)
			return VD_NOMEM;
		resource->is_terminating = crd->is_terminating;
	}
	return VD_OK;
}

vd_status vdi_crd_read(struct vd_bytes json, const char *root_path, struct vdi_crd *ret_crd,
		       struct vd_error *reterr)
{
	struct reading reading = { .tree = VDI_TREE_INIT, .root_path = root_path, .error = reterr };
	struct vdi_crd crd = { 0 };
	vd_status      status = read(&reading, json, &crd);

	vdi_tree_fini(&reading.tree);
	if (status == VD_OK) {
		*ret_crd = crd;
		return VD_OK;
	}
	vdi_crd_fini(&crd);
	if (status == VD_BAD_REQUEST)
		return VD_INVALID;
	return status == VD_NOMEM ? vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM)) :
				    status;
}

void vdi_crd_fini(struct vdi_crd *crd)
{
	vdi_resources_fini(&crd->resources);
	crd->stored = vdi_resource_unref(crd->stored);
	crd->defaults = vdi_read_defaults_unref(crd->defaults);
}
