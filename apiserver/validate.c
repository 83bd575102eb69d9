/* Names by hand instead of by regular expression; the sentences quote the expressions as upstream does. */
#include "validate.h"

#include <stdio.h>

#define ANNOTATIONS_MAX (256 * 1024)

static bool is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
	return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

/* Letters and digits at both ends, '-' within. */
static bool is_dns_label(const char *at, size_t size)
{
	if (size == 0 || !is_lower_alnum(at[0]) || !is_lower_alnum(at[size - 1]))
		return false;
	for (size_t i = 0; i < size; i++)
		if (!is_lower_alnum(at[i]) && at[i] != '-')
			return false;
	return true;
}

static bool is_dns_subdomain(const char *at, size_t size)
{
	while (size) {
		const char *dot = memchr(at, '.', size);
		size_t	    part = dot ? (size_t) (dot - at) : size;

		if (!is_dns_label(at, part) || (dot && part + 1 == size))
			return false;
		at += dot ? part + 1 : part;
		size -= dot ? part + 1 : part;
		if (!dot)
			return true;
	}
	return false;
}

const char *vdi_validate_subdomain(struct vd_bytes text)
{
	if (text.size > 253)
		return "must be no more than 253 bytes";
	if (!is_dns_subdomain(text.data, text.size))
		return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
		       "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
		       "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
	return NULL;
}

const char *vdi_validate_dns_label(struct vd_bytes text)
{
	if (text.size > 63)
		return "must be no more than 63 bytes";
	if (!is_dns_label(text.data, text.size))
		return "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
		       "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
	return NULL;
}

const char *vdi_validate_path_segment(struct vd_bytes text)
{
	if (vd_bytes_equal(text, vd_bytes_of(".")) || vd_bytes_equal(text, vd_bytes_of("..")))
		return "may not be '.' or '..'";
	if (text.size && memchr(text.data, '/', text.size))
		return "may not contain '/'";
	if (text.size && memchr(text.data, '%', text.size))
		return "may not contain '%'";
	return NULL;
}

/* [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])? */
static bool is_name_part(const char *at, size_t size)
{
	if (size == 0 || !is_alnum(at[0]) || !is_alnum(at[size - 1]))
		return false;
	for (size_t i = 0; i < size; i++)
		if (!is_alnum(at[i]) && at[i] != '-' && at[i] != '_' && at[i] != '.')
			return false;
	return true;
}

const char *vdi_validate_qualified_name(struct vd_bytes text)
{
	const char *at = text.data;
	const char *slash = text.size ? memchr(at, '/', text.size) : NULL;
	size_t	    size = text.size;

	if (slash) {
		size_t prefix = (size_t) (slash - at);

		if (prefix == 0)
			return "prefix part must be non-empty";
		if (prefix > 253 || !is_dns_subdomain(at, prefix))
			return "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
			       "start and end with an alphanumeric character";
		at = slash + 1;
		size -= prefix + 1;
	}
	if (size == 0)
		return "name part must be non-empty";
	if (size > 63)
		return "name part must be no more than 63 bytes";
	if (!is_name_part(at, size))
		return "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
		       "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
	return NULL;
}

const char *vdi_validate_label_value(struct vd_bytes text)
{
	if (text.size > 63)
		return "must be no more than 63 bytes";
	if (text.size && !is_name_part(text.data, text.size))
		return "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
		       "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
		       "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
	return NULL;
}

const char *vdi_validate_finalizer(struct vd_bytes text)
{
	static const char *const standard[] = { "kubernetes", "orphan", "foregroundDeletion" };
	const char		*why = vdi_validate_qualified_name(text);

	if (why || memchr(text.data, '/', text.size))
		return why;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(standard); i++)
		if (vd_bytes_equal(text, vd_bytes_of(standard[i])))
			return NULL;
	return "name is neither a standard finalizer name nor is it fully qualified";
}

static void invalid(struct vdi_http_status *status, const char *field, struct vd_bytes value, const char *why)
{
	struct vdi_out quoted = VDI_OUT_INIT;

	value.size = VDI_MIN(value.size, (size_t) 80);
	vdi_out_string(&quoted, value);
	vdi_http_status_cause(status, "FieldValueInvalid", field, "Invalid value: %.*s: %s", (int) quoted.size, quoted.size ? quoted.data : "",
			      why);
	vdi_out_fini(&quoted);
}

/* False: not a map of strings. */
static bool check_map(const struct vdi_node *map, const char *field, struct vdi_http_status *status)
{
	if (map == NULL || map->kind == VDI_NODE_NULL)
		return false;
	if (map->kind != VDI_NODE_OBJECT) {
		vdi_http_status_cause(status, "FieldValueTypeInvalid", field, "Invalid value: must be a map of strings");
		return false;
	}
	for (const struct vdi_node *member = map->first; member; member = member->next)
		if (member->kind != VDI_NODE_STRING) {
			vdi_http_status_cause(status, "FieldValueTypeInvalid", field, "Invalid value: must be a map of strings");
			return false;
		}
	return true;
}

/* What may not own: apimachinery pkg/api/validation/objectmeta.go. */
static void check_owners(struct vdi_tree *tree, const struct vdi_node *owners, struct vdi_http_status *status)
{
	static const char *const members[] = { "apiVersion", "kind", "name", "uid" };
	size_t			 controllers = 0;

	if (owners == NULL || owners->kind == VDI_NODE_NULL)
		return;
	if (owners->kind != VDI_NODE_ARRAY) {
		vdi_http_status_cause(status, "FieldValueTypeInvalid", "metadata.ownerReferences", "Invalid value: must be a list");
		return;
	}
	for (const struct vdi_node *owner = owners->first; owner; owner = owner->next) {
		for (size_t i = 0; i < VDI_ARRAY_SIZE(members); i++) {
			char field[64];

			(void) snprintf(field, sizeof field, "metadata.ownerReferences.%s", members[i]);
			if (vdi_tree_string_of(vdi_tree_get(tree, owner, vd_bytes_of(members[i]))).size == 0)
				invalid(status, field, VD_BYTES_NONE, "must not be empty");
		}
		if (vd_bytes_equal(vdi_tree_string_of(vdi_tree_get(tree, owner, vd_bytes_of("apiVersion"))), vd_bytes_of("v1")) &&
		    vd_bytes_equal(vdi_tree_string_of(vdi_tree_get(tree, owner, vd_bytes_of("kind"))), vd_bytes_of("Event")))
			vdi_http_status_cause(status, "FieldValueInvalid", "metadata.ownerReferences",
					      "Invalid value: /v1, Kind=Event is disallowed from being an owner");
		controllers += vdi_tree_is(vdi_tree_get(tree, owner, vd_bytes_of("controller")), VDI_NODE_TRUE);
	}
	if (controllers > 1)
		vdi_http_status_cause(status, "FieldValueInvalid", "metadata.ownerReferences",
				      "Invalid value: Only one reference can have Controller set to true");
}

/* The garbage collector's finalizers contradict each other. */
static void check_finalizers(const struct vdi_node *finalizers, struct vdi_http_status *status)
{
	bool orphan = false, foreground = false;

	for (const struct vdi_node *finalizer = vdi_tree_is(finalizers, VDI_NODE_ARRAY) ? finalizers->first : NULL; finalizer;
	     finalizer = finalizer->next) {
		orphan |= vd_bytes_equal(vdi_tree_string_of(finalizer), vd_bytes_of("orphan"));
		foreground |= vd_bytes_equal(vdi_tree_string_of(finalizer), vd_bytes_of("foregroundDeletion"));
	}
	if (orphan && foreground)
		vdi_http_status_cause(status, "FieldValueInvalid", "metadata.finalizers",
				      "Invalid value: finalizer orphan and foregroundDeletion cannot be both set");
}

void vdi_validate_metadata(struct vdi_tree *tree, const struct vdi_node *object, bool is_namespace, struct vdi_http_status *status)
{
	const struct vdi_node *name_node = vdi_tree_find(tree, object, "metadata.name");
	const struct vdi_node *labels = vdi_tree_find(tree, object, "metadata.labels");
	const struct vdi_node *annotations = vdi_tree_find(tree, object, "metadata.annotations");
	const struct vdi_node *finalizers = vdi_tree_find(tree, object, "metadata.finalizers");
	struct vd_bytes	       name = vdi_tree_string_of(name_node);
	const char	      *why = is_namespace ? vdi_validate_dns_label(name) : vdi_validate_subdomain(name);
	size_t		       size = 0;

	if (name.size == 0)
		vdi_http_status_cause(status, "FieldValueRequired", "metadata.name", "Required value: name or generateName is required");
	else if (why)
		invalid(status, "metadata.name", name, why);
	if (check_map(labels, "metadata.labels", status)) {
		for (const struct vdi_node *label = labels->first; label; label = label->next) {
			if ((why = vdi_validate_qualified_name(label->key)))
				invalid(status, "metadata.labels", label->key, why);
			if ((why = vdi_validate_label_value(label->text)))
				invalid(status, "metadata.labels", label->text, why);
		}
	}
	if (check_map(annotations, "metadata.annotations", status)) {
		for (const struct vdi_node *annotation = annotations->first; annotation; annotation = annotation->next) {
			size += annotation->key.size + annotation->text.size;
			if ((why = vdi_validate_qualified_name(annotation->key)))
				invalid(status, "metadata.annotations", annotation->key, why);
		}
		if (size > ANNOTATIONS_MAX)
			vdi_http_status_cause(status, "FieldValueTooLong", "metadata.annotations", "Too long: may not be more than 262144 bytes");
	}
	if (finalizers && finalizers->kind != VDI_NODE_NULL && finalizers->kind != VDI_NODE_ARRAY)
		vdi_http_status_cause(status, "FieldValueTypeInvalid", "metadata.finalizers", "Invalid value: must be a list of strings");
	for (const struct vdi_node *finalizer = vdi_tree_is(finalizers, VDI_NODE_ARRAY) ? finalizers->first : NULL; finalizer;
	     finalizer = finalizer->next)
		if (finalizer->kind != VDI_NODE_STRING || (why = vdi_validate_qualified_name(finalizer->text)))
			invalid(status, "metadata.finalizers", finalizer->text, finalizer->kind == VDI_NODE_STRING ? why : "must be a string");
	check_finalizers(finalizers, status);
	check_owners(tree, vdi_tree_find(tree, object, "metadata.ownerReferences"), status);
}
