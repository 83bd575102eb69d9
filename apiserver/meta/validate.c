/* Validates names by hand instead of by regular expression; the messages quote the expressions, as upstream's
 * do. */
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

/* Letters and digits at both ends, also '-' inside. */
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

		if (!is_dns_label(at, part))
			return false;
		at += dot ? part + 1 : part;
		size -= dot ? part + 1 : part;
		if (!dot)
			return true;
	}
	return false;
}

static const char *subdomain_shape(struct vd_bytes text)
{
	if (is_dns_subdomain(text.data, text.size))
		return NULL;
	return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
	       "'.', and must start and end "
	       "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
	       "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
}

static const char *dns_label_shape(struct vd_bytes text)
{
	if (is_dns_label(text.data, text.size))
		return NULL;
	if (is_dns_subdomain(text.data, text.size))
		return "must not contain dots";
	return "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
	       "must start and end with an "
	       "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
	       "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
}

const char *vdi_validate_subdomain(struct vd_bytes text)
{
	return text.size > 253 ? "must be no more than 253 characters" : subdomain_shape(text);
}

const char *vdi_validate_dns_label(struct vd_bytes text)
{
	return text.size > 63 ? "must be no more than 63 characters" : dns_label_shape(text);
}

const char *vdi_validate_path_segment(struct vd_bytes text)
{
	if (vd_bytes_equal(text, vd_bytes_of(".")))
		return "may not be '.'";
	if (vd_bytes_equal(text, vd_bytes_of("..")))
		return "may not be '..'";
	if (text.size && memchr(text.data, '/', text.size))
		return "may not contain '/'";
	if (text.size && memchr(text.data, '%', text.size))
		return "may not contain '%'";
	return NULL;
}

static size_t put_why(const char *why, const char **ret_why, size_t count)
{
	if (why)
		ret_why[count++] = why;
	return count;
}

size_t vdi_validate_name(enum vdi_name_rule rule, struct vd_bytes name,
			 const char *ret_why[VDI_NAME_ERRORS_MAX])
{
	const char *too_long = "must be no more than 253 characters";
	size_t	    count;

	if (rule == VDI_NAME_LABEL) {
		count = put_why(name.size > 63 ? "must be no more than 63 characters" : NULL, ret_why, 0);
		return put_why(dns_label_shape(name), ret_why, count);
	}
	count = put_why(name.size > 253 ? too_long : NULL, ret_why, 0);
	if (rule == VDI_NAME_PATH_SEGMENT)
		return put_why(vdi_validate_path_segment(name), ret_why, count);
	count = put_why(subdomain_shape(name), ret_why, count);
	return put_why(rule == VDI_NAME_CRON_JOB && name.size > 52 ? "must be no more than 52 characters" :
								     NULL,
		       ret_why, count);
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
			return "prefix part a lowercase RFC 1123 subdomain must consist of lower case "
			       "alphanumeric characters, '-' or '.', and must "
			       "start and end with an alphanumeric character";
		at = slash + 1;
		size -= prefix + 1;
	}
	if (size == 0)
		return "name part must be non-empty";
	if (size > 63)
		return "name part must be no more than 63 bytes";
	if (!is_name_part(at, size))
		return "name part must consist of alphanumeric characters, '-', '_' or '.', and must start "
		       "and end with an alphanumeric character "
		       "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
		       "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
	return NULL;
}

static const char *label_value_shape(struct vd_bytes text)
{
	if (text.size == 0 || is_name_part(text.data, text.size))
		return NULL;
	return "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
	       "'.', and must start and end with an "
	       "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
	       "validation is "
	       "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
}

const char *vdi_validate_label_value(struct vd_bytes text)
{
	return text.size > 63 ? "must be no more than 63 bytes" : label_value_shape(text);
}

void vdi_validate_label_of(struct vdi_field_errors *field_errors, const char *field, struct vd_bytes value)
{
	const char *why = label_value_shape(value);

	if (value.size > 63)
		vdi_field_errors_add_text(field_errors, VDI_FIELD_ERROR_INVALID, vd_bytes_of(field), value,
					  "must be no more than 63 bytes");
	if (why)
		vdi_field_errors_add_text(field_errors, VDI_FIELD_ERROR_INVALID, vd_bytes_of(field), value,
					  "%s", why);
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

static void invalid(struct vdi_field_errors *field_errors, const char *field, struct vd_bytes value,
		    const char *why)
{
	vdi_field_errors_add_text(field_errors, VDI_FIELD_ERROR_INVALID, vd_bytes_of(field), value, "%s",
				  why);
}

static void wrong_type(struct vdi_field_errors *field_errors, const char *field, const char *why)
{
	vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_TYPE_INVALID, vd_bytes_of(field), VD_BYTES_NONE,
			     "%s", why);
}

static bool is_given(const struct vdi_node *node)
{
	return node && node->kind != VDI_NODE_NULL;
}

/* Returns false if map is not a map of strings. */
static bool check_map(const struct vdi_node *map, const char *field, struct vdi_field_errors *field_errors)
{
	bool is_map = vdi_tree_is(map, VDI_NODE_OBJECT);

	if (!is_given(map))
		return false;
	for (const struct vdi_node *member = map->first; member && is_map; member = member->next)
		is_map = member->kind == VDI_NODE_STRING;
	if (!is_map)
		wrong_type(field_errors, field, "must be a map of strings");
	return is_map;
}

/* Validates ownerReferences, including the kinds that cannot be owners (apimachinery
 * pkg/api/validation/objectmeta.go). */
static void check_owners(struct vdi_tree *tree, const struct vdi_node *owners,
			 struct vdi_field_errors *field_errors)
{
	static const char *const members[] = { "apiVersion", "kind", "name", "uid" };
	size_t			 controllers = 0;

	if (!is_given(owners))
		return;
	if (owners->kind != VDI_NODE_ARRAY) {
		wrong_type(field_errors, "metadata.ownerReferences", "must be a list");
		return;
	}
	for (const struct vdi_node *owner = owners->first; owner; owner = owner->next) {
		for (size_t i = 0; i < VDI_ARRAY_SIZE(members); i++) {
			char field[64];

			(void) snprintf(field, sizeof field, "metadata.ownerReferences.%s", members[i]);
			if (vdi_tree_string_of(vdi_tree_get(tree, owner, vd_bytes_of(members[i]))).size == 0)
				invalid(field_errors, field, VD_BYTES_NONE,
					i == 0 ? "version must not be empty" : "must not be empty");
		}
		if (vd_bytes_equal(vdi_tree_string_of(vdi_tree_get(tree, owner, vd_bytes_of("apiVersion"))),
				   vd_bytes_of("v1")) &&
		    vd_bytes_equal(vdi_tree_string_of(vdi_tree_get(tree, owner, vd_bytes_of("kind"))),
				   vd_bytes_of("Event")))
			vdi_field_errors_add_node(field_errors, VDI_FIELD_ERROR_INVALID,
						  vd_bytes_of("metadata.ownerReferences"), owner,
						  "/v1, Kind=Event is disallowed from being an owner");
		controllers +=
			vdi_tree_is(vdi_tree_get(tree, owner, vd_bytes_of("controller")), VDI_NODE_TRUE);
	}
	if (controllers > 1)
		vdi_field_errors_add_node(field_errors, VDI_FIELD_ERROR_INVALID,
					  vd_bytes_of("metadata.ownerReferences"), owners,
					  "Only one reference can have Controller set to true");
}

static void check_finalizers(const struct vdi_node *finalizers, struct vdi_field_errors *field_errors)
{
	const char *field = "metadata.finalizers", *why;
	bool	    orphan = false, foreground = false;

	if (is_given(finalizers) && finalizers->kind != VDI_NODE_ARRAY)
		wrong_type(field_errors, field, "must be a list of strings");
	for (const struct vdi_node *finalizer = vdi_tree_is(finalizers, VDI_NODE_ARRAY) ? finalizers->first :
											  NULL;
	     finalizer; finalizer = finalizer->next) {
		if (finalizer->kind != VDI_NODE_STRING)
			invalid(field_errors, field, finalizer->text, "must be a string");
		else if ((why = vdi_validate_qualified_name(finalizer->text)))
			invalid(field_errors, field, finalizer->text, why);
		orphan |= vd_bytes_equal(vdi_tree_string_of(finalizer), vd_bytes_of("orphan"));
		foreground |=
			vd_bytes_equal(vdi_tree_string_of(finalizer), vd_bytes_of("foregroundDeletion"));
	}
	if (orphan && foreground) /* they contradict each other */
		vdi_field_errors_add_node(field_errors, VDI_FIELD_ERROR_INVALID, vd_bytes_of(field),
					  finalizers,
					  "finalizer orphan and foregroundDeletion cannot be both set");
}

/* As upstream, a '-' at the end of the prefix is valid, because random letters follow it. */
static void check_generate_name(enum vdi_name_rule rule, struct vd_bytes prefix,
				struct vdi_field_errors *field_errors)
{
	const char *why[VDI_NAME_ERRORS_MAX], *text = prefix.data;
	char	    masked[256];
	size_t	    count;

	if (prefix.size == 0)
		return;
	/* "." and ".." are valid prefixes, because letters follow; a long prefix is truncated. */
	if (rule == VDI_NAME_PATH_SEGMENT) {
		why[0] = prefix.data ? vdi_validate_path_segment(prefix) : NULL;
		if (why[0] && text[0] != '.')
			invalid(field_errors, "metadata.generateName", prefix, why[0]);
		return;
	}
	if (prefix.size > 1 && prefix.size <= sizeof masked && text[prefix.size - 1] == '-') {
		memcpy(masked, text, prefix.size - 2);
		masked[prefix.size - 2] = 'a';
		count = vdi_validate_name(rule, (struct vd_bytes) { masked, prefix.size - 1 }, why);
	} else {
		count = vdi_validate_name(rule, prefix, why);
	}
	for (size_t i = 0; i < count; i++)
		invalid(field_errors, "metadata.generateName", prefix, why[i]);
}

static void check_names(struct vdi_tree *tree, const struct vdi_node *object, enum vdi_name_rule rule,
			struct vdi_field_errors *field_errors)
{
	struct vd_bytes name = vdi_tree_string_of(vdi_tree_find(tree, object, "metadata.name"));
	const char     *why[VDI_NAME_ERRORS_MAX];
	size_t		count;

	/* The length bound of a CronJob does not apply to its prefix. */
	check_generate_name(rule == VDI_NAME_CRON_JOB ? VDI_NAME_SUBDOMAIN : rule,
			    vdi_tree_string_of(vdi_tree_find(tree, object, "metadata.generateName")),
			    field_errors);
	if (name.size == 0) {
		vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_REQUIRED, vd_bytes_of("metadata.name"),
				     VD_BYTES_NONE, "name or generateName is required");
		return;
	}
	count = vdi_validate_name(rule, name, why);
	for (size_t i = 0; i < count; i++)
		invalid(field_errors, "metadata.name", name, why[i]);
}

void vdi_validate_metadata(struct vdi_tree *tree, const struct vdi_node *object, enum vdi_name_rule rule,
			   struct vdi_field_errors *field_errors)
{
	const struct vdi_node *labels = vdi_tree_find(tree, object, "metadata.labels");
	const struct vdi_node *annotations = vdi_tree_find(tree, object, "metadata.annotations");
	const char	      *why;
	size_t		       size = 0;

	check_names(tree, object, rule, field_errors);
	if (check_map(labels, "metadata.labels", field_errors)) {
		for (const struct vdi_node *label = labels->first; label; label = label->next) {
			if ((why = vdi_validate_qualified_name(label->key)))
				invalid(field_errors, "metadata.labels", label->key, why);
			vdi_validate_label_of(field_errors, "metadata.labels", label->text);
		}
	}
	if (check_map(annotations, "metadata.annotations", field_errors)) {
		for (const struct vdi_node *annotation = annotations->first; annotation;
		     annotation = annotation->next) {
			size += annotation->key.size + annotation->text.size;
			if ((why = vdi_validate_qualified_name(annotation->key)))
				invalid(field_errors, "metadata.annotations", annotation->key, why);
		}
		if (size > ANNOTATIONS_MAX)
			vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_TOO_LONG,
					     vd_bytes_of("metadata.annotations"), VD_BYTES_NONE,
					     "may not be more than 262144 bytes");
	}
	check_owners(tree, vdi_tree_find(tree, object, "metadata.ownerReferences"), field_errors);
	check_finalizers(vdi_tree_find(tree, object, "metadata.finalizers"), field_errors);
}
