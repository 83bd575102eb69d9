/* The members of a CustomResourceDefinition and their types, as tables, from k8s.io/apiextensions-apiserver
 * pkg/apis/apiextensions/v1/types.go and ObjectMeta. A definition is checked against them recursively. A
 * schema is only checked to be an object here; its compiler checks the rest. As in Go, null is the same as
 * absent everywhere. */
#include <stdio.h>

#include "crd.h"
#include "k8s_time.h"

#define PATH_MAX_SIZE 256

enum type { STRING, BOOLEAN, INT32, INT64, TIME, STRING_MAP, ANY, OPEN /* any object */, OBJECT };
enum count { ONE, LIST };

struct field {
	const char	   *name;
	enum type	    type;
	enum count	    count;
	const struct field *members; /* of an object; terminated by an entry without a name */
	bool		    omits;   /* Go's encoder omits a zero, "" or an empty list */
};

static const struct field owner_fields[] = {
	{ "apiVersion", STRING, ONE, NULL },
	{ "kind", STRING, ONE, NULL },
	{ "name", STRING, ONE, NULL },
	{ "uid", STRING, ONE, NULL },
	{ "controller", BOOLEAN, ONE, NULL },
	{ "blockOwnerDeletion", BOOLEAN, ONE, NULL },
	{ 0 },
};

static const struct field managed_fields[] = {
	{ "manager", STRING, ONE, NULL },     { "operation", STRING, ONE, NULL },
	{ "apiVersion", STRING, ONE, NULL },  { "time", TIME, ONE, NULL },
	{ "fieldsType", STRING, ONE, NULL },  { "fieldsV1", ANY, ONE, NULL },
	{ "subresource", STRING, ONE, NULL }, { 0 },
};

static const struct field metadata_fields[] = {
	{ "name", STRING, ONE, NULL },
	{ "generateName", STRING, ONE, NULL },
	{ "namespace", STRING, ONE, NULL },
	{ "selfLink", STRING, ONE, NULL },
	{ "uid", STRING, ONE, NULL },
	{ "resourceVersion", STRING, ONE, NULL },
	{ "generation", INT64, ONE, NULL },
	{ "creationTimestamp", TIME, ONE, NULL },
	{ "deletionTimestamp", TIME, ONE, NULL },
	{ "deletionGracePeriodSeconds", INT64, ONE, NULL },
	{ "labels", STRING_MAP, ONE, NULL },
	{ "annotations", STRING_MAP, ONE, NULL },
	{ "ownerReferences", OBJECT, LIST, owner_fields },
	{ "finalizers", STRING, LIST, NULL },
	{ "managedFields", OBJECT, LIST, managed_fields },
	{ 0 },
};

static const struct field name_fields[] = {
	{ "plural", STRING, ONE, NULL },
	{ "singular", STRING, ONE, NULL, true },
	{ "shortNames", STRING, LIST, NULL, true },
	{ "kind", STRING, ONE, NULL },
	{ "listKind", STRING, ONE, NULL, true },
	{ "categories", STRING, LIST, NULL, true },
	{ 0 },
};

static const struct field schema_fields[] = { { "openAPIV3Schema", OPEN, ONE, NULL }, { 0 } };

static const struct field nothing[] = { { 0 } };

static const struct field scale_fields[] = {
	{ "specReplicasPath", STRING, ONE, NULL },
	{ "statusReplicasPath", STRING, ONE, NULL },
	{ "labelSelectorPath", STRING, ONE, NULL },
	{ 0 },
};

static const struct field subresource_fields[] = { { "status", OBJECT, ONE, nothing },
						   { "scale", OBJECT, ONE, scale_fields },
						   { 0 } };

static const struct field column_fields[] = {
	{ "name", STRING, ONE, NULL },
	{ "type", STRING, ONE, NULL },
	{ "format", STRING, ONE, NULL, true },
	{ "description", STRING, ONE, NULL, true },
	{ "priority", INT32, ONE, NULL, true },
	{ "jsonPath", STRING, ONE, NULL },
	{ 0 },
};

static const struct field selectable_fields[] = { { "jsonPath", STRING, ONE, NULL }, { 0 } };

static const struct field version_fields[] = {
	{ "name", STRING, ONE, NULL },
	{ "served", BOOLEAN, ONE, NULL },
	{ "storage", BOOLEAN, ONE, NULL },
	{ "deprecated", BOOLEAN, ONE, NULL, true },
	{ "deprecationWarning", STRING, ONE, NULL },
	{ "schema", OBJECT, ONE, schema_fields },
	{ "subresources", OBJECT, ONE, subresource_fields },
	{ "additionalPrinterColumns", OBJECT, LIST, column_fields, true },
	{ "selectableFields", OBJECT, LIST, selectable_fields, true },
	{ 0 },
};

static const struct field service_fields[] = {
	{ "namespace", STRING, ONE, NULL },
	{ "name", STRING, ONE, NULL },
	{ "path", STRING, ONE, NULL },
	{ "port", INT32, ONE, NULL },
	{ 0 },
};

static const struct field client_fields[] = {
	{ "url", STRING, ONE, NULL },
	{ "service", OBJECT, ONE, service_fields },
	{ "caBundle", STRING, ONE, NULL },
	{ 0 },
};

static const struct field webhook_fields[] = {
	{ "clientConfig", OBJECT, ONE, client_fields },
	{ "conversionReviewVersions", STRING, LIST, NULL },
	{ 0 },
};

static const struct field conversion_fields[] = { { "strategy", STRING, ONE, NULL },
						  { "webhook", OBJECT, ONE, webhook_fields },
						  { 0 } };

static const struct field spec_fields[] = {
	{ "group", STRING, ONE, NULL },
	{ "names", OBJECT, ONE, name_fields },
	{ "scope", STRING, ONE, NULL },
	{ "versions", OBJECT, LIST, version_fields },
	{ "conversion", OBJECT, ONE, conversion_fields },
	{ "preserveUnknownFields", BOOLEAN, ONE, NULL, true },
	{ 0 },
};

static const struct field condition_fields[] = {
	{ "type", STRING, ONE, NULL },
	{ "status", STRING, ONE, NULL },
	{ "lastTransitionTime", TIME, ONE, NULL },
	{ "reason", STRING, ONE, NULL },
	{ "message", STRING, ONE, NULL },
	{ "observedGeneration", INT64, ONE, NULL },
	{ 0 },
};

static const struct field status_fields[] = {
	{ "conditions", OBJECT, LIST, condition_fields },
	{ "acceptedNames", OBJECT, ONE, name_fields },
	{ "storedVersions", STRING, LIST, NULL },
	{ "observedGeneration", INT64, ONE, NULL },
	{ 0 },
};

static const struct field definition_fields[] = {
	{ "kind", STRING, ONE, NULL },
	{ "apiVersion", STRING, ONE, NULL },
	{ "metadata", OBJECT, ONE, metadata_fields },
	{ "spec", OBJECT, ONE, spec_fields },
	{ "status", OBJECT, ONE, status_fields },
	{ 0 },
};

struct walk {
	struct vdi_tree		  *tree;
	struct vdi_unknown_fields *unknown;
	struct vd_error		  *error;
	char			   path[PATH_MAX_SIZE]; /* of the current member; truncated if too long */
};

static vd_status wrong(struct walk *walk, const char *why)
{
	return vd_error_set(walk->error, VD_BAD_REQUEST, "%s: %s", walk->path, why);
}

/* Appends a member or an element to the path; returns the length to restore. */
static size_t enter_member(struct walk *walk, struct vd_bytes name)
{
	size_t size = strlen(walk->path);

	(void) snprintf(walk->path + size, sizeof walk->path - size, "%s%.*s", size ? "." : "",
			(int) VDI_MIN(name.size, (size_t) 120), name.size ? (const char *) name.data : "");
	return size;
}

static size_t enter_element(struct walk *walk, size_t index)
{
	size_t size = strlen(walk->path);

	(void) snprintf(walk->path + size, sizeof walk->path - size, "[%zu]", index);
	return size;
}

static const struct field *field_of(const struct field *fields, struct vd_bytes name)
{
	for (; fields->name; fields++)
		if (vd_bytes_equal(vd_bytes_of(fields->name), name))
			return fields;
	return NULL;
}

static vd_status check_members(struct walk *walk, struct vdi_node *object, const struct field *fields);

static vd_status check_integer(struct walk *walk, const struct vdi_node *node, int64_t low, int64_t high)
{
	int64_t number;

	if (node->kind != VDI_NODE_NUMBER)
		return wrong(walk, "is not a number");
	number = vdi_tree_int_of(node, INT64_MIN);
	return number < low || number > high || number == INT64_MIN ?
		       wrong(walk, "is not a whole number, or out of range") :
		       VD_OK;
}

static vd_status check_string(struct walk *walk, const struct vdi_node *node)
{
	return node->kind == VDI_NODE_STRING ? VD_OK : wrong(walk, "is not a string");
}

static vd_status check_string_map(struct walk *walk, const struct vdi_node *node)
{
	size_t size;

	if (node->kind != VDI_NODE_OBJECT)
		return wrong(walk, "is not an object");
	for (const struct vdi_node *item = node->first; item; item = item->next) {
		if (item->kind == VDI_NODE_NULL)
			continue;
		size = enter_member(walk, item->key);
		VDI_TRY(check_string(walk, item));
		walk->path[size] = 0;
	}
	return VD_OK;
}

static vd_status check_value(struct walk *walk, struct vdi_node *node, const struct field *field)
{
	int64_t seconds;
	int32_t nanoseconds;

	if (node->kind == VDI_NODE_NULL)
		return VD_OK;
	switch (field->type) {
	case STRING: return check_string(walk, node);
	case BOOLEAN:
		return node->kind == VDI_NODE_TRUE || node->kind == VDI_NODE_FALSE ?
			       VD_OK :
			       wrong(walk, "is neither true nor false");
	case INT32: return check_integer(walk, node, INT32_MIN, INT32_MAX);
	case INT64: return check_integer(walk, node, INT64_MIN, INT64_MAX);
	case TIME:
		return node->kind == VDI_NODE_STRING &&
				       vdi_k8s_time_parse(node->text, &seconds, &nanoseconds) ?
			       VD_OK :
			       wrong(walk, "is not a time (RFC 3339)");
	case STRING_MAP: return check_string_map(walk, node);
	case ANY: return VD_OK;
	case OPEN: return node->kind == VDI_NODE_OBJECT ? VD_OK : wrong(walk, "is not an object");
	case OBJECT: return check_members(walk, node, field->members);
	}
	VDI_UNREACHABLE("a type of the tables");
}

static vd_status check_field(struct walk *walk, struct vdi_node *node, const struct field *field)
{
	size_t index = 0, size;

	if (field->count == ONE || node->kind == VDI_NODE_NULL)
		return check_value(walk, node, field);
	if (node->kind != VDI_NODE_ARRAY)
		return wrong(walk, "is not a list");
	for (struct vdi_node *item = node->first; item; item = item->next) {
		size = enter_element(walk, index++);
		VDI_TRY(check_value(walk, item, field));
		walk->path[size] = 0;
	}
	return VD_OK;
}

/* Returns true if the member means the same as an absent one, as omit_empty.h does for kinds with transcoder
 * tables. */
static bool is_default_value(const struct field *field, const struct vdi_node *node)
{
	if (node->kind == VDI_NODE_NULL || !field->omits)
		return node->kind == VDI_NODE_NULL;
	if (field->count == LIST)
		return node->count == 0;
	return node->kind == VDI_NODE_FALSE || (node->kind == VDI_NODE_STRING && node->text.size == 0) ||
	       vdi_tree_int_of(node, 1) == 0;
}

/* Recursion is limited by the depth of the tables. */
static vd_status check_members(struct walk *walk, struct vdi_node *object, const struct field *fields)
{
	if (object->kind != VDI_NODE_OBJECT)
		return wrong(walk, "is not an object");
	for (struct vdi_node *member = object->first, *next; member; member = next) {
		const struct field *field = field_of(fields, member->key);
		size_t		    size = enter_member(walk, member->key);

		next = member->next;
		if (field) {
			VDI_TRY(check_field(walk, member, field));
			if (is_default_value(field, member))
				(void) vdi_tree_remove(walk->tree, object, member->key);
		} else {
			if (walk->unknown)
				vdi_unknown_fields_note(walk->unknown, vd_bytes_of(walk->path));
			(void) vdi_tree_remove(walk->tree, object, member->key);
		}
		walk->path[size] = 0;
	}
	return VD_OK;
}

vd_status vdi_crd_check_fields(struct vdi_tree *tree, struct vdi_node *root,
			       struct vdi_unknown_fields *unknown, struct vd_error *reterr)
{
	struct walk walk = { .tree = tree, .unknown = unknown, .error = reterr };

	VDI_TRY(check_members(&walk, root, definition_fields));
	return unknown && vdi_unknown_fields_failed(unknown) ? VD_NOMEM : VD_OK;
}
