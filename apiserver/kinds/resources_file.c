/* The resources file: a JSON array of kinds, added to the built-in ones.
 *
 * Parsed with jansson and checked member by member. The first error is reported with its place ("entry 2
 * (widgets): shortNames[0]: must be a string"); the file then has no effect.
 */
#include <jansson.h>
#include <stdio.h>

#include "resources.h"
#include "read_defaults.h"
#include "schema.h"

struct reader {
	struct vdi_resource *resource; /* of the entry */
	struct vd_error	    *error;
	size_t		     index;
	const char	    *plural;
};

static vd_status fault(struct reader *reader, const char *member, const char *what)
{
	return vd_error_set(reader->error, VD_INVALID, "resources: entry %zu%s%s%s: %s: %s", reader->index,
			    reader->plural ? " (" : "", reader->plural ? reader->plural : "",
			    reader->plural ? ")" : "", member, what);
}

static vd_status take_text(struct reader *reader, const char *member, const json_t *value,
			   const char **ret_text)
{
	if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
		return fault(reader, member, "must be a string");
	*ret_text = vdi_resource_own(reader->resource, vdi_strdup(json_string_value(value)));
	return *ret_text ? VD_OK : VD_NOMEM;
}

static bool is_dns_name(const char *text, bool dots)
{
	size_t size = strlen(text);

	if (size == 0 || size > 253 || text[0] == '-' || text[0] == '.' || text[size - 1] == '-' ||
	    text[size - 1] == '.')
		return false;
	for (size_t i = 0; i < size; i++)
		if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9') ||
		      text[i] == '-' || (dots && text[i] == '.')))
			return false;
	return true;
}

static bool is_path(const char *text)
{
	return text[0] == '.' && text[1] != 0 && strlen(text) < 256;
}

static vd_status take_texts(struct reader *reader, const char *member, const json_t *value, const char **to,
			    size_t max)
{
	char place[96];

	if (!json_is_array(value))
		return fault(reader, member, "must be an array of strings");
	if (json_array_size(value) > max)
		return fault(reader, member, "has too many entries");
	for (size_t i = 0; i < json_array_size(value); i++) {
		(void) snprintf(place, sizeof place, "%s[%zu]", member, i);
		VDI_TRY(take_text(reader, place, json_array_get(value, i), &to[i]));
		if (!is_dns_name(to[i], false))
			return fault(reader, place, "must be lower case letters, digits and '-'");
	}
	return VD_OK;
}

static vd_status take_fields(struct reader *reader, const json_t *value, struct vdi_resource *resource)
{
	struct vd_field_spec *specs;
	char		      place[96];
	size_t		      count = json_array_size(value);

	if (!json_is_array(value))
		return fault(reader, "selectableFields", "must be an array of {name, jsonPath}");
	if (count > VD_FIELDS_MAX)
		return fault(reader, "selectableFields", "has too many entries");
	specs = vdi_resource_own(reader->resource, vdi_calloc(count ? count : 1, sizeof *specs));
	if (specs == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < count; i++) {
		const json_t *entry = json_array_get(value, i);
		const char   *key;
		json_t	     *member;

		(void) snprintf(place, sizeof place, "selectableFields[%zu]", i);
		if (!json_is_object(entry))
			return fault(reader, place, "must be an object");
		json_object_foreach ((json_t *) entry, key, member) {
			(void) snprintf(place, sizeof place, "selectableFields[%zu].%.32s", i, key);
			if (strcmp(key, "name") == 0)
				VDI_TRY(take_text(reader, place, member, &specs[i].name));
			else if (strcmp(key, "jsonPath") == 0)
				VDI_TRY(take_text(reader, place, member, &specs[i].json_path));
			else if (strcmp(key, "default") == 0)
				VDI_TRY(take_text(reader, place, member, &specs[i].default_value));
			else
				return fault(reader, place, "unknown key");
		}
		(void) snprintf(place, sizeof place, "selectableFields[%zu]", i);
		if (specs[i].json_path == NULL && specs[i].name == NULL)
			return fault(reader, place, "needs jsonPath");
		if (specs[i].json_path == NULL || !is_path(specs[i].json_path))
			return fault(reader, place, "jsonPath must begin with '.'");
		/* as in a CustomResourceDefinition, the path is the field's name */
		if (specs[i].name == NULL)
			specs[i].name = specs[i].json_path + 1;
	}
	resource->fields = specs;
	resource->field_count = count;
	return VD_OK;
}

static vd_status take_column(struct reader *reader, size_t index, const json_t *entry,
			     struct vdi_column *column)
{
	char	    place[96];
	const char *key;
	json_t	   *member;

	*column = (struct vdi_column) { .format = "", .description = "", .type = "string" };
	(void) snprintf(place, sizeof place, "printerColumns[%zu]", index);
	if (!json_is_object(entry))
		return fault(reader, place, "must be an object");
	json_object_foreach ((json_t *) entry, key, member) {
		(void) snprintf(place, sizeof place, "printerColumns[%zu].%.32s", index, key);
		if (strcmp(key, "name") == 0)
			VDI_TRY(take_text(reader, place, member, &column->name));
		else if (strcmp(key, "type") == 0)
			VDI_TRY(take_text(reader, place, member, &column->type));
		else if (strcmp(key, "format") == 0)
			VDI_TRY(take_text(reader, place, member, &column->format));
		else if (strcmp(key, "description") == 0)
			VDI_TRY(take_text(reader, place, member, &column->description));
		else if (strcmp(key, "jsonPath") == 0)
			VDI_TRY(take_text(reader, place, member, &column->path));
		else if (strcmp(key, "priority") != 0)
			return fault(reader, place, "unknown key");
		else if (!json_is_integer(member))
			return fault(reader, place, "must be an integer");
		else
			column->priority = (int) json_integer_value(member);
	}
	(void) snprintf(place, sizeof place, "printerColumns[%zu]", index);
	if (column->name == NULL || column->path == NULL)
		return fault(reader, place, "needs name and jsonPath");
	if (!is_path(column->path))
		return fault(reader, place, "jsonPath must begin with '.'");
	if (strcmp(column->type, "string") && strcmp(column->type, "integer") &&
	    strcmp(column->type, "number") && strcmp(column->type, "boolean") && strcmp(column->type, "date"))
		return fault(reader, place, "type must be string, integer, number, boolean or date");
	column->cell = strcmp(column->type, "date") == 0 ? VDI_CELL_AGE : VDI_CELL_PATH;
	return VD_OK;
}

static vd_status take_columns(struct reader *reader, const json_t *value, struct vdi_resource *resource)
{
	static const struct vdi_column name_column = { "Name", "string",      "name",	       "",
						       0,      VDI_CELL_PATH, ".metadata.name" };
	static const struct vdi_column age_column = {
		"Age", "date", "", "", 0, VDI_CELL_AGE, ".metadata.creationTimestamp"
	};
	struct vdi_column *columns;
	size_t		   count = value ? json_array_size(value) : 0;

	if (value && !json_is_array(value))
		return fault(reader, "printerColumns", "must be an array");
	if (count > 32)
		return fault(reader, "printerColumns", "has too many entries");
	columns = vdi_resource_own(reader->resource, vdi_calloc(count + 2, sizeof *columns));
	if (columns == NULL)
		return VD_NOMEM;
	columns[0] = name_column;
	for (size_t i = 0; i < count; i++)
		VDI_TRY(take_column(reader, i, json_array_get(value, i), &columns[i + 1]));
	if (count == 0)
		columns[1] = age_column;
	resource->columns = columns;
	resource->column_count = count ? count + 1 : 2;
	return VD_OK;
}

static vd_status take_boolean(struct reader *reader, const char *member, const json_t *value, bool *ret)
{
	if (!json_is_boolean(value))
		return fault(reader, member, "must be true or false");
	*ret = json_is_true(value);
	return VD_OK;
}

static vd_status compile_schema(struct reader *reader, struct vd_bytes text, struct vdi_schema **ret_schema,
				struct vdi_field_errors *field_errors)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vd_error	 error;
	struct vdi_node *source;
	vd_status	 status = vdi_tree_parse(&tree, text, &source, &error);

	if (status == VD_BAD_REQUEST)
		status = fault(reader, "schema", error.message);
	if (status == VD_OK)
		status = vdi_schema_compile(&tree, source, "", ret_schema, field_errors);
	vdi_tree_fini(&tree);
	return status;
}

static int append(const char *bytes, size_t size, void *arg)
{
	struct vdi_out *out = arg;

	vdi_out_bytes(out, (struct vd_bytes) { bytes, size });
	return out->failed ? -1 : 0;
}

/* As the openAPIV3Schema of a CustomResourceDefinition. */
static vd_status take_schema(struct reader *reader, const json_t *value, struct vdi_resource *resource)
{
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_schema      *schema = NULL;
	struct vdi_out		text = VDI_OUT_INIT;
	vd_status		status = VD_NOMEM;

	if (json_dump_callback(value, append, &text, JSON_COMPACT | JSON_ENCODE_ANY) == 0)
		status = compile_schema(reader, vdi_out_slice(&text), &schema, &field_errors);
	if (status == VD_INVALID && field_errors.count) {
		struct vd_bytes message = vdi_field_errors_message(&field_errors);
		char		what[400];

		(void) snprintf(what, sizeof what, "%.*s", (int) message.size,
				message.size ? (const char *) message.data : "");
		status = fault(reader, "schema", what);
	}
	resource->schema = schema;
	vdi_out_fini(&text);
	vdi_field_errors_fini(&field_errors);
	return status;
}

static vd_status take_member(struct reader *reader, const char *key, const json_t *value,
			     struct vdi_resource *resource)
{
	if (strcmp(key, "group") == 0)
		return take_text(reader, key, value, &resource->group);
	if (strcmp(key, "version") == 0)
		return take_text(reader, key, value, &resource->version);
	if (strcmp(key, "kind") == 0)
		return take_text(reader, key, value, &resource->kind);
	if (strcmp(key, "listKind") == 0)
		return take_text(reader, key, value, &resource->list_kind);
	if (strcmp(key, "plural") == 0)
		return take_text(reader, key, value, &resource->plural);
	if (strcmp(key, "singular") == 0)
		return take_text(reader, key, value, &resource->singular);
	if (strcmp(key, "trigger") == 0)
		return take_text(reader, key, value, &resource->trigger);
	if (strcmp(key, "storagePrefix") == 0)
		return take_text(reader, key, value, &resource->key_prefix);
	if (strcmp(key, "shortNames") == 0)
		return take_texts(reader, key, value, resource->short_names,
				  VDI_ARRAY_SIZE(resource->short_names));
	if (strcmp(key, "categories") == 0)
		return take_texts(reader, key, value, resource->categories,
				  VDI_ARRAY_SIZE(resource->categories));
	if (strcmp(key, "namespaced") == 0)
		return take_boolean(reader, key, value, &resource->namespaced);
	if (strcmp(key, "statusSubresource") == 0)
		return take_boolean(reader, key, value, &resource->has_status);
	if (strcmp(key, "scaleSubresource") == 0)
		return take_boolean(reader, key, value, &resource->has_scale);
	if (strcmp(key, "selectableFields") == 0)
		return take_fields(reader, value, resource);
	if (strcmp(key, "historyBytes") == 0) {
		if (!json_is_integer(value) || json_integer_value(value) < 0)
			return fault(reader, key, "must be a number of bytes");
		resource->history_bytes = json_integer_value(value);
		return VD_OK;
	}
	if (strcmp(key, "schema") == 0)
		return take_schema(reader, value, resource);
	if (strcmp(key, "printerColumns") == 0)
		return VD_OK; /* parsed after the other members */
	return fault(reader, key, "unknown key");
}

static char *lower(const char *text)
{
	char *copy = vdi_strdup(text);

	for (char *at = copy; at && *at; at++)
		if (*at >= 'A' && *at <= 'Z')
			*at = (char) (*at + 32);
	return copy;
}

/* Checks required members and derives the others. */
static vd_status complete(struct reader *reader, struct vdi_resource *resource)
{
	size_t size;
	char  *text;
	bool   found = resource->trigger == NULL;

	if (!resource->group)
		return fault(reader, "group", "is required (\"\" for the core group)");
	if (!resource->version || !is_dns_name(resource->version, false))
		return fault(reader, "version", "is required, such as \"v1\"");
	if (!resource->kind || !resource->kind[0] || strlen(resource->kind) > 63)
		return fault(reader, "kind", "is required, such as \"Widget\"");
	for (const char *at = resource->kind; *at; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9')))
			return fault(reader, "kind", "must be letters and digits");
	if (!resource->plural || !is_dns_name(resource->plural, false))
		return fault(reader, "plural", "is required, in lower case, such as \"widgets\"");
	if (resource->group[0] && !is_dns_name(resource->group, true))
		return fault(reader, "group", "must be a DNS name");
	for (size_t i = 0; i < resource->field_count && !found; i++)
		found = strcmp(resource->trigger, resource->fields[i].name) == 0;
	if (!found)
		return fault(reader, "trigger", "must be one of selectableFields");
	if (!resource->singular &&
	    !(resource->singular = vdi_resource_own(reader->resource, lower(resource->kind))))
		return VD_NOMEM;
	size = strlen(resource->kind) + strlen(resource->group) + strlen(resource->plural) + 32;
	if (!resource->list_kind) {
		if (!(text = vdi_resource_own(reader->resource, vdi_alloc(size))))
			return VD_NOMEM;
		(void) snprintf(text, size, "%sList", resource->kind);
		resource->list_kind = text;
	}
	if (!resource->key_prefix) {
		if (!(text = vdi_resource_own(reader->resource, vdi_alloc(size))))
			return VD_NOMEM;
		(void) snprintf(text, size, "/registry/%s%s%s/", resource->group, *resource->group ? "/" : "",
				resource->plural);
		resource->key_prefix = text;
	}
	size = strlen(resource->key_prefix);
	if (size < 3 || size > 512 || resource->key_prefix[0] != '/' || resource->key_prefix[size - 1] != '/')
		return fault(reader, "storagePrefix", "must begin and end with '/'");
	return VD_OK;
}

static vd_status read_entry(struct reader *reader, const json_t *entry)
{
	struct vdi_resource *resource = reader->resource;
	char		     api_version[VDI_RESOURCE_NAME_MAX];
	const char	    *key;
	json_t		    *value;

	resource->namespaced = true;
	reader->plural = NULL;
	if (!json_is_object(entry))
		return fault(reader, "entry", "must be an object");
	reader->plural = json_string_value(json_object_get(entry, "plural"));
	json_object_foreach ((json_t *) entry, key, value) {
		VDI_TRY(take_member(reader, key, value, resource));
	}
	VDI_TRY(take_columns(reader, json_object_get(entry, "printerColumns"), resource));
	VDI_TRY(complete(reader, resource));
	resource->has_generation = true;
	return vdi_read_defaults_add(&resource->defaults, vdi_resource_api_version(resource, api_version),
				     resource->schema);
}

static vd_status add(struct vdi_resources *resources, struct vdi_resource *resource, struct reader *reader)
{
	size_t at;

	for (at = 0; at < resources->count; at++)
		if (strcmp(resources->items[at]->plural, resource->plural) == 0 &&
		    strcmp(resources->items[at]->group, resource->group) == 0)
			break;
	if (at < resources->count) {
		(void) vdi_resource_unref(resources->items[at]);
		memmove(resources->items + at, resources->items + at + 1,
			(--resources->count - at) * sizeof(struct vdi_resource *));
	}
	for (size_t i = 0; i < resources->count; i++)
		if (strcmp(resources->items[i]->key_prefix, resource->key_prefix) == 0)
			return fault(reader, "storagePrefix", "is already used by another resource");
	return vdi_resources_add(resources, resource);
}

static vd_status load(struct vdi_resources *resources, const json_t *document, struct vd_error *reterr)
{
	struct reader reader = { NULL, reterr, 0, NULL };
	vd_status     status = VD_OK;

	for (reader.index = 0; reader.index < json_array_size(document) && status == VD_OK; reader.index++) {
		reader.resource = vdi_resource_new();
		status = reader.resource ? read_entry(&reader, json_array_get(document, reader.index)) :
					   VD_NOMEM;
		if (status == VD_OK)
			status = add(resources, reader.resource, &reader);
		(void) vdi_resource_unref(reader.resource);
	}
	return status;
}

/* Loads into a copy, which replaces the original if all entries are valid. */
vd_status vdi_resources_load(struct vdi_resources *resources, struct vd_bytes json, struct vd_error *reterr)
{
	json_error_t	     json_error;
	struct vdi_resources copy = { 0 };
	json_t		    *document;
	vd_status	     status = vdi_resources_copy(&copy, resources);

	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	document = json_loadb(json.data, json.size, JSON_REJECT_DUPLICATES, &json_error);
	if (document == NULL)
		status = vd_error_set(reterr, VD_INVALID, "resources: line %d, column %d: %s",
				      json_error.line, json_error.column, json_error.text);
	else if (!json_is_array(document))
		status = vd_error_set(reterr, VD_INVALID, "resources: must be a JSON array");
	else
		status = load(&copy, document, reterr);
	json_decref(document);
	if (status == VD_NOMEM)
		(void) vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	if (status == VD_OK) {
		struct vdi_resources before = *resources;

		*resources = copy;
		copy = before;
	}
	vdi_resources_fini(&copy);
	return status;
}
