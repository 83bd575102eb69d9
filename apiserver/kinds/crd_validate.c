/* Collects the errors of the whole definition in one list, in upstream's order and words, so that one
 * response has all. */
#include <stdio.h>

#include "crd.h"
#include "schema.h"
#include "validate.h"

#define FIELD_MAX 256
/* Total steps for compiling the schemas of all versions; a rejected schema counts as
 * VDI_SCHEMA_PATTERN_MAX. */
#define SCHEMAS_WORK_MAX (8 * VDI_SCHEMA_PATTERN_MAX)

struct check {
	struct vdi_tree		*tree;
	struct vdi_field_errors *field_errors;
	size_t			 rule_count;
	uint64_t		 schemas_work; /* steps left */
};

static struct vdi_node *get(struct check *check, const struct vdi_node *object, const char *name)
{
	return vdi_tree_get(check->tree, object, vd_bytes_of(name));
}

static struct vd_bytes text(struct check *check, const struct vdi_node *object, const char *name)
{
	return vdi_tree_string_of(get(check, object, name));
}

static bool is_true(const struct vdi_node *node)
{
	return vdi_tree_is(node, VDI_NODE_TRUE);
}

static struct vd_bytes field_of(char buffer[FIELD_MAX], const char *place, const char *name)
{
	(void) snprintf(buffer, FIELD_MAX, "%.150s%s%.90s", place, *name ? "." : "", name);
	return vd_bytes_of(buffer);
}

static void required(struct check *check, const char *place, const char *name, const char *why)
{
	char buffer[FIELD_MAX];

	vdi_field_errors_add(check->field_errors, VDI_FIELD_ERROR_REQUIRED, field_of(buffer, place, name),
			     VD_BYTES_NONE, "%s", why);
}

static void invalid(struct check *check, const char *place, const char *name, struct vd_bytes value,
		    const char *why)
{
	char buffer[FIELD_MAX];

	vdi_field_errors_add_text(check->field_errors, VDI_FIELD_ERROR_INVALID, field_of(buffer, place, name),
				  value, "%s", why);
}

static void invalid_node(struct check *check, const char *place, const char *name,
			 const struct vdi_node *value, const char *why)
{
	char buffer[FIELD_MAX];

	vdi_field_errors_add_node(check->field_errors, VDI_FIELD_ERROR_INVALID, field_of(buffer, place, name),
				  value, "%s", why);
}

static bool is_lower_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Returns NULL if text is a DNS-1035 label; fold: upper case is also valid. */
static const char *label_fault(struct vd_bytes label, bool fold)
{
	static const char why[] = "a DNS-1035 label must consist of lower case alphanumeric characters or "
				  "'-', start with an alphabetic character, and end with "
				  "an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
				  "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
	static const char mixed[] = "may have mixed case, but should otherwise match: a DNS-1035 label must "
				    "consist of lower case alphanumeric characters or "
				    "'-', start with an alphabetic character, and end with an alphanumeric "
				    "character (e.g. 'my-name',  or 'abc-123', regex "
				    "used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
	const char	 *at = label.data;

	if (label.size > 63)
		return "must be no more than 63 bytes";
	for (size_t i = 0; i < label.size; i++) {
		char c = fold && at[i] >= 'A' && at[i] <= 'Z' ? (char) (at[i] + 32) : at[i];
		bool is_edge = i == 0 || i + 1 == label.size;

		if (!is_lower_or_digit(c) && (is_edge || c != '-'))
			return fold ? mixed : why;
		if (i == 0 && c >= '0' && c <= '9')
			return fold ? mixed : why;
	}
	return label.size ? NULL : fold ? mixed : why;
}

static void check_label(struct check *check, const char *place, const char *name, struct vd_bytes label,
			bool fold)
{
	const char *why = label_fault(label, fold);

	if (why)
		invalid(check, place, name, label, why);
}

static void check_labels(struct check *check, const char *name, const struct vdi_node *list)
{
	char   member[64];
	size_t i = 0;

	for (const struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL; item;
	     item = item->next, i++) {
		(void) snprintf(member, sizeof member, "%s[%zu]", name, i);
		check_label(check, "spec.names", member, vdi_tree_string_of(item), false);
	}
	if (i > VDI_RESOURCE_WORDS_MAX)
		vdi_field_errors_add(check->field_errors, VDI_FIELD_ERROR_TOO_MANY, vd_bytes_of(name),
				     VD_BYTES_NONE, "must have at most %d items", VDI_RESOURCE_WORDS_MAX);
}

static void check_names(struct check *check, const struct vdi_node *names)
{
	static const char	 place[] = "spec.names";
	static const char *const words[] = { "plural", "singular", "kind", "listKind" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(words); i++) {
		struct vd_bytes word = text(check, names, words[i]);

		if (word.size == 0)
			required(check, place, words[i], "");
		else
			check_label(check, place, words[i], word, i >= 2);
	}
	check_labels(check, "shortNames", get(check, names, "shortNames"));
	check_labels(check, "categories", get(check, names, "categories"));
	if (text(check, names, "kind").size &&
	    vd_bytes_equal(text(check, names, "kind"), text(check, names, "listKind")))
		invalid(check, place, "listKind", text(check, names, "listKind"),
			"kind and listKind may not be the same");
}

/* Path of replicas or of a selectable field: upstream's validateSimpleJSONPath. */
static bool is_simple_path(struct vd_bytes path, bool arrays)
{
	const char *at = path.data;

	if (path.size < 2 || path.size > 255 || at[0] != '.' || at[1] == '.')
		return false;
	for (size_t i = 0; i < path.size; i++)
		if ((unsigned char) at[i] <= ' ' || at[i] == '{' || at[i] == '}' ||
		    (!arrays && at[i] == '[' && (i + 1 == path.size || at[i + 1] != '\'')))
			return false;
	return true;
}

static void check_column(struct check *check, const char *place, const struct vdi_node *column)
{
	static const char *const types[] = { "boolean", "date", "integer", "number", "string" };
	struct vd_bytes		 type = text(check, column, "type"), path = text(check, column, "jsonPath");
	char			 buffer[FIELD_MAX];
	size_t			 i = 0;

	if (text(check, column, "name").size == 0)
		required(check, place, "name", "");
	while (i < VDI_ARRAY_SIZE(types) && !vd_bytes_equal(type, vd_bytes_of(types[i])))
		i++;
	if (type.size == 0)
		required(check, place, "type", "must be one of boolean,date,integer,number,string");
	else if (i == VDI_ARRAY_SIZE(types))
		invalid(check, place, "type", type, "must be one of boolean,date,integer,number,string");
	if (path.size == 0)
		required(check, place, "jsonPath", "");
	else if (path.size > 1024 || ((const char *) path.data)[0] != '.')
		vdi_field_errors_add_text(check->field_errors, VDI_FIELD_ERROR_INVALID,
					  field_of(buffer, place, "jsonPath"), path,
					  "must be a simple json path starting with .");
}

static bool begins(struct vd_bytes path, const char *with)
{
	return vd_bytes_has_prefix(path, vd_bytes_of(with));
}

static void check_scale(struct check *check, const char *place, const struct vdi_node *scale)
{
	struct vd_bytes spec = text(check, scale, "specReplicasPath"),
			status = text(check, scale, "statusReplicasPath");
	struct vd_bytes selector = text(check, scale, "labelSelectorPath");

	if (spec.size == 0)
		required(check, place, "specReplicasPath", "");
	else if (!is_simple_path(spec, false))
		invalid(check, place, "specReplicasPath", spec, "must be a simple json path starting with .");
	else if (!begins(spec, ".spec."))
		invalid(check, place, "specReplicasPath", spec, "should be a json path under .spec");
	if (status.size == 0)
		required(check, place, "statusReplicasPath", "");
	else if (!is_simple_path(status, false))
		invalid(check, place, "statusReplicasPath", status,
			"must be a simple json path starting with .");
	else if (!begins(status, ".status."))
		invalid(check, place, "statusReplicasPath", status, "should be a json path under .status");
	if (selector.size && !is_simple_path(selector, false))
		invalid(check, place, "labelSelectorPath", selector,
			"must be a simple json path starting with .");
	else if (selector.size && !begins(selector, ".spec.") && !begins(selector, ".status."))
		invalid(check, place, "labelSelectorPath", selector,
			"should be a json path under either .spec or .status");
}

static size_t count_of(const struct vdi_node *list)
{
	return vdi_tree_is(list, VDI_NODE_ARRAY) ? list->count : 0;
}

/* Takes the next token of a path, as pkg/apiserver/schema/cel ValidFieldPath does: a delimiter, a quoted
 * text, or the text before the next delimiter. Empty: the end. */
static struct vd_bytes take_token(struct vd_bytes *path)
{
	const char     *at = path->data;
	size_t		size = 0;
	struct vd_bytes token;

	if (path->size && at[0] == '\'') {
		for (size = 1; size < path->size && (at[size] != '\'' || at[size - 1] == '\\'); size++)
			;
		size = VDI_MIN(size + 1, path->size);
	} else if (path->size) {
		for (size = 1; size < path->size && !strchr(".[]", at[0]) &&
			       (at[size] == 0 || !strchr(".[]", at[size]));
		     size++)
			;
	}
	token = (struct vd_bytes) { at, size };
	*path = (struct vd_bytes) { size ? at + size : at, path->size - size };
	return token;
}

static bool is_word(struct vd_bytes token, const char *word)
{
	return vd_bytes_equal(token, vd_bytes_of(word));
}

/* Returns the schema of one member; NULL with *ret_why. */
static const struct vdi_node *step_down(struct check *check, const struct vdi_node *schema,
					struct vd_bytes name, const char **ret_why)
{
	const struct vdi_node *properties = get(check, schema, "properties"),
			      *additional = get(check, schema, "additionalProperties");
	const struct vdi_node *found = NULL;

	if (vdi_tree_is(properties, VDI_NODE_OBJECT) && properties->count)
		found = vdi_tree_get(check->tree, properties, name);
	else if (vdi_tree_is(additional, VDI_NODE_OBJECT))
		found = additional;
	if (found == NULL)
		*ret_why = "does not refer to a valid field";
	return found;
}

/* Returns the schema of the field at path; NULL with the reason in why. */
static const struct vdi_node *field_schema(struct check *check, const struct vdi_node *schema,
					   struct vd_bytes path, char why[FIELD_MAX],
					   struct vd_bytes *ret_root)
{
	const char *fault = NULL;

	*ret_root = VD_BYTES_NONE;
	while (path.size && schema) {
		struct vd_bytes token = take_token(&path);

		if (is_word(token, "[")) {
			fault = "array notation is not allowed";
		} else if (!is_word(token, ".")) {
			(void) snprintf(why, FIELD_MAX, "is an invalid path: expected [ or . but got: %.*s",
					(int) VDI_MIN(token.size, (size_t) 120), (const char *) token.data);
			return NULL;
		} else if ((token = take_token(&path)).size == 0) {
			fault = "unexpected end of JSON path";
		} else {
			schema = step_down(check, schema, token, &fault);
			if (ret_root->size == 0)
				*ret_root = token;
		}
		if (fault) {
			(void) snprintf(why, FIELD_MAX, "is an invalid path: %s", fault);
			return NULL;
		}
	}
	return schema;
}

/* Returns false if the field does not count as a unique one. */
static bool check_selectable(struct check *check, const char *place, const struct vdi_node *schema,
			     struct vd_bytes path)
{
	struct vd_bytes	       root, type;
	char		       why[FIELD_MAX];
	const struct vdi_node *found;

	if (path.size == 0) {
		required(check, place, "jsonPath", "");
		return false;
	}
	found = field_schema(check, schema, path, why, &root);
	if (found == NULL) {
		invalid(check, place, "jsonPath", path, why);
		return false;
	}
	type = text(check, found, "type");
	if (is_word(root, "metadata"))
		invalid(check, place, "jsonPath", path, "must not point to fields in metadata");
	if (!is_word(type, "string") && !is_word(type, "boolean") && !is_word(type, "integer"))
		invalid(check, place, "jsonPath", path,
			"must point to a field of type string, boolean or integer. Enum string fields and "
			"strings with formats are allowed.");
	else if (!is_simple_path(path, false)) /* also: names that our paths cannot express */
		invalid(check, place, "jsonPath", path, "must be a simple json path starting with .");
	return true;
}

static void check_selectable_fields(struct check *check, const char *place, const struct vdi_node *version,
				    const struct vdi_node *fields)
{
	const struct vdi_node *schema = vdi_tree_find(check->tree, version, "schema.openAPIV3Schema");
	char		       member[FIELD_MAX];
	size_t		       i = 0, unique_count = 0;

	if (count_of(fields) && !vdi_tree_is(schema, VDI_NODE_OBJECT)) {
		invalid(check, place, "selectableFields", VD_BYTES_NONE,
			"may only be set when `version.schema.openAPIV3Schema` is not included");
		return;
	}
	for (const struct vdi_node *item = count_of(fields) ? fields->first : NULL; item;
	     item = item->next, i++) {
		struct vd_bytes	       path = text(check, item, "jsonPath");
		const struct vdi_node *other = fields->first;

		(void) snprintf(member, sizeof member, "%s.selectableFields[%zu]", place, i);
		if (!check_selectable(check, member, schema, path))
			continue;
		while (other != item && !vd_bytes_equal(path, text(check, other, "jsonPath")))
			other = other->next;
		unique_count += other == item;
		(void) snprintf(member, sizeof member, "%s.selectableFields[%zu].jsonPath", place, i);
		if (other != item)
			vdi_field_errors_add_text(check->field_errors, VDI_FIELD_ERROR_DUPLICATE,
						  vd_bytes_of(member), path, "%s", "");
	}
	if (unique_count > 8) {
		(void) snprintf(member, sizeof member, "%s.selectableFields", place);
		vdi_field_errors_add(check->field_errors, VDI_FIELD_ERROR_TOO_MANY, vd_bytes_of(member),
				     VD_BYTES_NONE, "must have at most 8 items");
	}
}

static void check_lists(struct check *check, const char *place, const struct vdi_node *version)
{
	const struct vdi_node *columns = get(check, version, "additionalPrinterColumns");
	char		       member[FIELD_MAX];
	size_t		       i = 0;

	for (const struct vdi_node *item = count_of(columns) ? columns->first : NULL; item;
	     item = item->next, i++) {
		(void) snprintf(member, sizeof member, "%s.additionalPrinterColumns[%zu]", place, i);
		check_column(check, member, item);
	}
	check_selectable_fields(check, place, version, get(check, version, "selectableFields"));
	if (count_of(columns) > VDI_RESOURCE_COLUMNS_MAX) {
		(void) snprintf(member, sizeof member, "%s.additionalPrinterColumns", place);
		vdi_field_errors_add(check->field_errors, VDI_FIELD_ERROR_TOO_MANY, vd_bytes_of(member),
				     VD_BYTES_NONE, "must have at most %d items", VDI_RESOURCE_COLUMNS_MAX);
	}
}

static vd_status check_schema(struct check *check, const char *place, const struct vdi_node *version)
{
	const struct vdi_node *schema = vdi_tree_find(check->tree, version, "schema.openAPIV3Schema");
	struct vdi_schema     *compiled;
	char		       buffer[FIELD_MAX];
	uint64_t	       work = VDI_SCHEMA_PATTERN_MAX;
	vd_status	       status;

	if (!vdi_tree_is(schema, VDI_NODE_OBJECT)) {
		required(check, place, "schema.openAPIV3Schema", "schemas are required");
		return VD_OK;
	}
	(void) field_of(buffer, place, "schema.openAPIV3Schema");
	if (check->schemas_work == 0) {
		vdi_field_errors_add(check->field_errors, VDI_FIELD_ERROR_FORBIDDEN, vd_bytes_of(buffer),
				     VD_BYTES_NONE,
				     "the schemas of all versions take too many steps to compile together");
		return VD_OK;
	}
	status = vdi_schema_compile(check->tree, schema, buffer, &compiled, check->field_errors);
	if (status == VD_OK) {
		check->rule_count += vdi_schema_rule_count(compiled);
		work = vdi_schema_work(compiled);
		(void) vdi_schema_free(compiled);
	}
	check->schemas_work -= VDI_MIN(check->schemas_work, work);
	return status == VD_NOMEM ? VD_NOMEM : VD_OK;
}

/* As Go's unicode.IsPrint, except that unassigned code points count as printable. */
static bool is_printable(uint32_t c)
{
	static const struct {
		uint32_t from, to;
	} unseen[] = {
		{ 0, 0x1F },	    { 0x7F, 0xA0 },	  { 0xAD, 0xAD },	 { 0x600, 0x605 },
		{ 0x61C, 0x61C },   { 0x6DD, 0x6DD },	  { 0x70F, 0x70F },	 { 0x1680, 0x1680 },
		{ 0x180E, 0x180E }, { 0x2000, 0x200F },	  { 0x2028, 0x202F },	 { 0x205F, 0x206F },
		{ 0x3000, 0x3000 }, { 0xD800, 0xF8FF },	  { 0xFEFF, 0xFEFF },	 { 0xFFF0, 0xFFFB },
		{ 0xFFFE, 0xFFFF }, { 0xE0000, 0xE0FFF }, { 0xF0000, 0x10FFFF },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(unseen); i++)
		if (c >= unseen[i].from && c <= unseen[i].to)
			return false;
	return true;
}

/* Takes the next character of valid UTF-8. */
static uint32_t take_character(const unsigned char **at)
{
	uint32_t c = *(*at)++;
	int	 rest = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;

	c &= rest ? 0x3Fu >> rest : 0x7F;
	while (rest--)
		c = c << 6 | (*(*at)++ & 0x3F);
	return c;
}

static void check_deprecation(struct check *check, const char *place, const struct vdi_node *version)
{
	const struct vdi_node *warning = get(check, version, "deprecationWarning");
	const unsigned char   *at, *start, *end;
	char		       buffer[FIELD_MAX];

	if (!vdi_tree_is(warning, VDI_NODE_STRING))
		return;
	if (!is_true(get(check, version, "deprecated"))) {
		invalid(check, place, "deprecationWarning", warning->text,
			"can only be set for deprecated versions");
		return;
	}
	if (warning->text.size > 256)
		invalid(check, place, "deprecationWarning", warning->text, "must be <= 256 characters long");
	if (warning->text.size == 0)
		invalid(check, place, "deprecationWarning", warning->text, "must not be an empty string");
	start = at = warning->text.data;
	end = at + warning->text.size;
	while (at < end) {
		size_t index = (size_t) (at - start);

		if (is_printable(take_character(&at)))
			continue;
		vdi_field_errors_add_text(
			check->field_errors, VDI_FIELD_ERROR_INVALID,
			field_of(buffer, place, "deprecationWarning"), warning->text,
			"must only contain printable UTF-8 characters; non-printable character "
			"found at index %zu",
			index);
		return;
	}
}

static vd_status check_versions(struct check *check, const struct vdi_node *versions)
{
	size_t i = 0, storage_count = 0;
	bool   is_unique = true;

	for (const struct vdi_node *version = count_of(versions) ? versions->first : NULL; version;
	     version = version->next, i++) {
		const struct vdi_node *scale = vdi_tree_find(check->tree, version, "subresources.scale");
		struct vd_bytes	       name = text(check, version, "name");
		char		       place[FIELD_MAX - 64], member[FIELD_MAX];

		(void) snprintf(place, sizeof place, "spec.versions[%zu]", i);
		storage_count += is_true(get(check, version, "storage"));
		for (const struct vdi_node *other = versions->first; other != version; other = other->next)
			is_unique &= !vd_bytes_equal(name, text(check, other, "name"));
		check_label(check, place, "name", name, false);
		check_deprecation(check, place, version);
		VDI_TRY(check_schema(check, place, version));
		(void) snprintf(member, sizeof member, "%s.subresources.scale", place);
		if (vdi_tree_is(scale, VDI_NODE_OBJECT))
			check_scale(check, member, scale);
		check_lists(check, place, version);
	}
	if (i == 0)
		required(check, "spec", "versions", "");
	if (!is_unique)
		invalid_node(check, "spec", "versions", versions, "must contain unique version names");
	if (i && storage_count != 1)
		invalid_node(check, "spec", "versions", versions,
			     "must have exactly one version marked as storage version");
	return VD_OK;
}

static void check_group(struct check *check, const struct vdi_node *root, struct vd_bytes group)
{
	static const char *const protected[] = { "k8s.io", "kubernetes.io" };
	const char *why = vdi_validate_subdomain(group);

	if (group.size == 0) {
		required(check, "spec", "group", "");
		return;
	}
	if (why || memchr(group.data, '.', group.size) == NULL) {
		invalid(check, "spec", "group", group,
			why ? why : "should be a domain with at least one dot");
		return;
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(protected); i++) {
		size_t		       size = strlen(protected[i]);
		const char	      *end = (const char *) group.data + group.size;
		const struct vdi_node *annotations = vdi_tree_find(check->tree, root, "metadata.annotations");

		if (group.size < size || memcmp(end - size, protected[i], size) != 0 ||
		    (group.size > size && end[-(ptrdiff_t) size - 1] != '.'))
			continue;
		if (text(check, annotations, "api-approved.kubernetes.io").size == 0)
			required(check, "metadata", "annotations[api-approved.kubernetes.io]",
				 "protected groups must have approval annotation "
				 "\"api-approved.kubernetes.io\", see "
				 "https://github.com/kubernetes/enhancements/pull/1111");
	}
}

static void check_conversion(struct check *check, const struct vdi_node *conversion)
{
	struct vd_bytes strategy = text(check, conversion, "strategy");

	if (conversion == NULL || conversion->kind == VDI_NODE_NULL ||
	    vd_bytes_equal(strategy, vd_bytes_of("None")))
		return;
	if (vd_bytes_equal(strategy, vd_bytes_of("Webhook")))
		invalid(check, "spec.conversion", "strategy", strategy,
			"this server calls no webhooks: only None is served, which needs versions that "
			"differ in apiVersion alone");
	else
		vdi_field_errors_add_text(check->field_errors, VDI_FIELD_ERROR_NOT_SUPPORTED,
					  vd_bytes_of("spec.conversion.strategy"), strategy,
					  "supported values: \"None\"");
}

static void check_immutable(struct check *check, const char *place, const char *name,
			    const struct vdi_node *value, const struct vdi_node *old)
{
	if (old && value && !vdi_tree_equal(check->tree, value, old))
		invalid_node(check, place, name, value, "field is immutable");
}

static bool is_condition_true(struct check *check, const struct vdi_node *root, const char *type)
{
	const struct vdi_node *conditions = vdi_tree_find(check->tree, root, "status.conditions");

	for (const struct vdi_node *item = count_of(conditions) ? conditions->first : NULL; item;
	     item = item->next)
		if (vd_bytes_equal(text(check, item, "type"), vd_bytes_of(type)))
			return vd_bytes_equal(text(check, item, "status"), vd_bytes_of("True"));
	return false;
}

static bool has_version(struct check *check, const struct vdi_node *versions, struct vd_bytes name)
{
	for (const struct vdi_node *version = count_of(versions) ? versions->first : NULL; version;
	     version = version->next)
		if (vd_bytes_equal(text(check, version, "name"), name))
			return true;
	return false;
}

static void check_change(struct check *check, const struct vdi_node *spec, const struct vdi_node *old)
{
	const struct vdi_node *old_spec = get(check, old, "spec"),
			      *stored = vdi_tree_find(check->tree, old, "status.storedVersions");
	const struct vdi_node *names = get(check, spec, "names"), *old_names = get(check, old_spec, "names");
	char		       member[64];
	size_t		       i = 0;

	check_immutable(check, "spec", "group", get(check, spec, "group"), get(check, old_spec, "group"));
	check_immutable(check, "spec.names", "plural", get(check, names, "plural"),
			get(check, old_names, "plural"));
	if (is_condition_true(check, old, "Established")) {
		check_immutable(check, "spec", "scope", get(check, spec, "scope"),
				get(check, old_spec, "scope"));
		check_immutable(check, "spec.names", "kind", get(check, names, "kind"),
				get(check, old_names, "kind"));
	}
	for (const struct vdi_node *version = count_of(stored) ? stored->first : NULL; version;
	     version = version->next, i++) {
		struct vd_bytes name = vdi_tree_string_of(version);
		char		why[512];

		if (has_version(check, get(check, spec, "versions"), name))
			continue;
		(void) snprintf(member, sizeof member, "storedVersions[%zu]", i);
		(void) snprintf(why, sizeof why,
				"missing from spec.versions; %.*s was previously a storage version, and must "
				"remain in spec.versions until a storage migration "
				"ensures no data remains persisted in %.*s and removes %.*s from "
				"status.storedVersions",
				(int) VDI_MIN(name.size, (size_t) 63), (const char *) name.data,
				(int) VDI_MIN(name.size, (size_t) 63), (const char *) name.data,
				(int) VDI_MIN(name.size, (size_t) 63), (const char *) name.data);
		invalid(check, "status", member, name, why);
	}
}

vd_status vdi_crd_validate(struct vdi_tree *tree, const struct vdi_node *root, const struct vdi_node *old,
			   struct vdi_field_errors *field_errors, size_t *ret_rule_count)
{
	struct check check = { .tree = tree, .field_errors = field_errors, .schemas_work = SCHEMAS_WORK_MAX };
	const struct vdi_node *spec = get(&check, root, "spec"), *names = get(&check, spec, "names");
	struct vd_bytes	       name = vdi_tree_string_of(vdi_tree_find(tree, root, "metadata.name"));
	struct vd_bytes	       plural = text(&check, names, "plural"), group = text(&check, spec, "group"),
			scope = text(&check, spec, "scope");
	char wanted[640];

	*ret_rule_count = 0;
	(void) snprintf(wanted, sizeof wanted, "%.*s.%.*s", (int) VDI_MIN(plural.size, (size_t) 253),
			plural.size ? (const char *) plural.data : "",
			(int) VDI_MIN(group.size, (size_t) 253), group.size ? (const char *) group.data : "");
	if (!vd_bytes_equal(name, vd_bytes_of(wanted)))
		invalid(&check, "metadata", "name", name, "must be spec.names.plural+\".\"+spec.group");
	if (!vdi_tree_is(spec, VDI_NODE_OBJECT)) {
		required(&check, "spec", "", "");
		return field_errors->failed ? VD_NOMEM : VD_OK;
	}
	check_group(&check, root, group);
	if (scope.size == 0)
		required(&check, "spec", "scope", "");
	else if (!vd_bytes_equal(scope, vd_bytes_of("Cluster")) &&
		 !vd_bytes_equal(scope, vd_bytes_of("Namespaced")))
		vdi_field_errors_add_text(field_errors, VDI_FIELD_ERROR_NOT_SUPPORTED,
					  vd_bytes_of("spec.scope"), scope,
					  "supported values: \"Cluster\", \"Namespaced\"");
	if (is_true(get(&check, spec, "preserveUnknownFields")))
		invalid_node(&check, "spec", "preserveUnknownFields",
			     get(&check, spec, "preserveUnknownFields"),
			     "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
			     "spec.versions[*].schema instead");
	VDI_TRY(check_versions(&check, get(&check, spec, "versions")));
	check_names(&check, names);
	check_conversion(&check, get(&check, spec, "conversion"));
	if (old)
		check_change(&check, spec, old);
	*ret_rule_count = check.rule_count;
	return field_errors->failed ? VD_NOMEM : VD_OK;
}

/* ---- Defaults ---- */

static bool set_default(struct vdi_tree *tree, struct vdi_node *object, const char *name,
			struct vd_bytes value)
{
	if (vdi_tree_string_of(vdi_tree_get(tree, object, vd_bytes_of(name))).size || value.size == 0)
		return true;
	return vdi_tree_set(tree, object, vd_bytes_of(name), vdi_tree_new_string(tree, value));
}

static bool default_names(struct vdi_tree *tree, struct vdi_node *names)
{
	struct vd_bytes kind = vdi_tree_string_of(vdi_tree_get(tree, names, vd_bytes_of("kind")));
	char		lower[128], list[128];
	size_t		size = VDI_MIN(kind.size, sizeof lower - 8);

	for (size_t i = 0; i < size; i++) {
		char c = ((const char *) kind.data)[i];

		lower[i] = c >= 'A' && c <= 'Z' ? (char) (c + 32) : c;
	}
	(void) snprintf(list, sizeof list, "%.*sList", (int) size, size ? (const char *) kind.data : "");
	return set_default(tree, names, "singular", (struct vd_bytes) { lower, size }) &&
	       set_default(tree, names, "listKind", size ? vd_bytes_of(list) : VD_BYTES_NONE);
}

static struct vd_bytes storage_version(struct vdi_tree *tree, const struct vdi_node *spec)
{
	const struct vdi_node *versions = vdi_tree_get(tree, spec, vd_bytes_of("versions"));

	for (const struct vdi_node *version = count_of(versions) ? versions->first : NULL; version;
	     version = version->next)
		if (is_true(vdi_tree_get(tree, version, vd_bytes_of("storage"))))
			return vdi_tree_string_of(vdi_tree_get(tree, version, vd_bytes_of("name")));
	return VD_BYTES_NONE;
}

static bool add_stored(struct vdi_tree *tree, struct vdi_node *status, struct vd_bytes version)
{
	struct vdi_node *stored = vdi_tree_array_at(tree, status, "storedVersions"), *item;

	if (stored == NULL)
		return false;
	for (const struct vdi_node *present = stored->first; present; present = present->next)
		if (vd_bytes_equal(vdi_tree_string_of(present), version))
			return true;
	if (version.size == 0)
		return true;
	item = vdi_tree_new_string(tree, version);
	if (item)
		vdi_tree_append(stored, item);
	return item != NULL;
}

static bool new_status(struct vdi_tree *tree, struct vdi_node *root)
{
	struct vdi_node *status, *names;

	/* clients do not set the status of a new definition */
	(void) vdi_tree_remove(tree, root, vd_bytes_of("status"));
	return (status = vdi_tree_object_at(tree, root, "status")) != NULL &&
	       vdi_tree_array_at(tree, status, "conditions") != NULL &&
	       (names = vdi_tree_object_at(tree, status, "acceptedNames")) != NULL &&
	       vdi_tree_set(tree, names, vd_bytes_of("plural"), vdi_tree_new_string(tree, VD_BYTES_NONE)) &&
	       vdi_tree_set(tree, names, vd_bytes_of("kind"), vdi_tree_new_string(tree, VD_BYTES_NONE));
}

vd_status vdi_crd_prepare(struct vdi_tree *tree, struct vdi_node *root, const struct vdi_node *old)
{
	struct vdi_node *spec = vdi_tree_get(tree, root, vd_bytes_of("spec"));
	struct vdi_node *names = vdi_tree_get(tree, spec, vd_bytes_of("names")), *conversion, *status;

	if (!vdi_tree_is(spec, VDI_NODE_OBJECT))
		return VD_OK;
	if (vdi_tree_is(names, VDI_NODE_OBJECT) && !default_names(tree, names))
		return VD_NOMEM;
	conversion = vdi_tree_object_at(tree, spec, "conversion");
	if (conversion == NULL || !set_default(tree, conversion, "strategy", vd_bytes_of("None")))
		return VD_NOMEM;
	if (old == NULL && !new_status(tree, root))
		return VD_NOMEM;
	status = vdi_tree_object_at(tree, root, "status");
	return status && add_stored(tree, status, storage_version(tree, spec)) ? VD_OK : VD_NOMEM;
}
