/* Tables: columns, rows, paths and times. table_cells.c has the cells of individual kinds. */
#include "table.h"

#include "k8s_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void put_member(struct vdi_out *out, const char *key, const char *value)
{
	vdi_out_key(out, key);
	vdi_out_text(out, value);
}

void vdi_table_columns(struct vdi_out *out, const struct vdi_resource *resource)
{
	vdi_out_key(out, "columnDefinitions");
	vdi_out_raw(out, "[");
	for (size_t i = 0; i < resource->column_count; i++) {
		const struct vdi_column *column = &resource->columns[i];

		vdi_out_comma(out);
		vdi_out_raw(out, "{");
		put_member(out, "name", column->name);
		put_member(out, "type", column->type);
		put_member(out, "format", column->format);
		put_member(out, "description", column->description);
		vdi_out_key(out, "priority");
		vdi_out_int(out, column->priority);
		vdi_out_raw(out, "}");
	}
	vdi_out_raw(out, "]");
}

void vdi_table_metadata(struct vdi_out *out, struct vdi_tree *tree, const struct vdi_node *root, bool v1beta1)
{
	const struct vdi_node *metadata = vdi_tree_get(tree, root, vd_bytes_of("metadata"));

	vdi_out_raw(out, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/");
	vdi_out_raw(out, v1beta1 ? "v1beta1\"" : "v1\"");
	if (metadata) {
		vdi_out_key(out, "metadata");
		if (tree->metadata.size)
			vdi_out_bytes(out, tree->metadata);
		else
			vdi_tree_write(out, metadata);
	}
	vdi_out_raw(out, "}");
}

void vdi_table_row(struct vdi_out *out, const struct vdi_resource *resource, struct vdi_tree *tree,
		   const struct vdi_node *root, struct vd_bytes text, enum vdi_include include, bool v1beta1,
		   vd_wall now)
{
	struct vdi_cell_context context = { tree, root, now };

	vdi_out_raw(out, "{\"cells\":[");
	for (size_t i = 0; i < resource->column_count; i++) {
		if (i)
			vdi_out_raw(out, ",");
		vdi_table_cell(out, &context, &resource->columns[i]);
	}
	vdi_out_raw(out, "]");
	if (include == VDI_INCLUDE_NONE) {
		vdi_out_raw(out, ",\"object\":null}");
		return;
	}
	vdi_out_raw(out, ",\"object\":");
	if (include == VDI_INCLUDE_OBJECT)
		vdi_out_bytes(out, text);
	else
		vdi_table_metadata(out, tree, root, v1beta1);
	vdi_out_raw(out, "}");
}

/* ---- Paths ---- */

/* Skips `['name']`, `[3]`, `[*]` or `[?(@.a=="b")]`; *path is behind the '['. */
static const struct vdi_node *step_bracket(struct vdi_tree *tree, const struct vdi_node *node,
					   const char **path)
{
	const char *at = *path;
	const char *close = strchr(at, ']');

	if (close == NULL)
		return NULL;
	if (*at == '\'' || *at == '"') {
		const char *quote = strchr(at + 1, *at);

		if (quote == NULL || quote[1] != ']')
			return NULL;
		*path = quote + 2;
		return vdi_tree_get(tree, node, (struct vd_bytes) { at + 1, (size_t) (quote - at - 1) });
	}
	if (strncmp(at, "?(@.", 4) == 0) {
		const char     *equals = strstr(at, "==");
		const char     *end = strstr(at, ")]");
		struct vd_bytes key, value;

		if (equals == NULL || end == NULL || equals > end)
			return NULL;
		key = (struct vd_bytes) { at + 4, (size_t) (equals - at - 4) };
		for (equals += 2; *equals == ' ' || *equals == '"' || *equals == '\''; equals++)
			;
		value = (struct vd_bytes) { equals, (size_t) (end - equals) };
		while (value.size && strchr(" \"'", equals[value.size - 1]))
			value.size--;
		while (key.size && ((const char *) key.data)[key.size - 1] == ' ')
			key.size--;
		*path = end + 2;
		if (!vdi_tree_is(node, VDI_NODE_ARRAY))
			return NULL;
		for (const struct vdi_node *child = node->first; child; child = child->next) {
			const struct vdi_node *member = vdi_tree_get(tree, child, key);

			if (member && vd_bytes_equal(member->text, value))
				return child;
		}
		return NULL;
	}
	*path = close + 1;
	if (!vdi_tree_is(node, VDI_NODE_ARRAY))
		return NULL;
	node = node->first;
	for (long index = *at == '*' ? 0 : strtol(at, NULL, 10); node && index > 0; index--)
		node = node->next;
	return node;
}

const struct vdi_node *vdi_tree_path(struct vdi_tree *tree, const struct vdi_node *root, const char *path)
{
	const struct vdi_node *node = root;

	while (node && *path) {
		char   key[256];
		size_t size = 0;

		if (*path == '[') {
			path++;
			node = step_bracket(tree, node, &path);
			continue;
		}
		if (*path == '.')
			path++;
		for (; *path && *path != '.' && *path != '['; path++) {
			if (*path == '\\' && path[1])
				path++;
			if (size == sizeof key)
				return NULL;
			key[size++] = *path;
		}
		if (size)
			node = vdi_tree_get(tree, node, (struct vd_bytes) { key, size });
	}
	return node;
}

/* ---- Times ---- */

void vdi_human_duration(struct vdi_out *out, int64_t seconds)
{
	long long minutes = seconds / 60, hours = seconds / 3600, days = hours / 24;

	if (seconds < -1)
		vdi_out_raw(out, "<invalid>");
	else if (seconds < 0)
		vdi_out_raw(out, "0s");
	else if (seconds < 120)
		vdi_out_printf(out, "%llds", (long long) seconds);
	else if (minutes < 10 && seconds % 60)
		vdi_out_printf(out, "%lldm%llds", minutes, (long long) (seconds % 60));
	else if (minutes < 180)
		vdi_out_printf(out, "%lldm", minutes);
	else if (hours < 8 && minutes % 60)
		vdi_out_printf(out, "%lldh%lldm", hours, minutes % 60);
	else if (hours < 48)
		vdi_out_printf(out, "%lldh", hours);
	else if (days < 8 && hours % 24)
		vdi_out_printf(out, "%lldd%lldh", days, hours % 24);
	else if (days < 730)
		vdi_out_printf(out, "%lldd", days);
	else if (days < 2920 && days % 365)
		vdi_out_printf(out, "%lldy%lldd", days / 365, days % 365);
	else
		vdi_out_printf(out, "%lldy", days / 365);
}

void vdi_table_age(struct vdi_out *out, const struct vdi_node *timestamp, vd_wall now)
{
	int64_t seconds;

	if (!vdi_k8s_time_seconds(vdi_tree_string_of(timestamp), &seconds)) {
		vdi_out_raw(out, "\"\\u003cunknown\\u003e\"");
		return;
	}
	vdi_out_raw(out, "\"");
	vdi_human_duration(out, now.ns / 1000000000 - seconds);
	vdi_out_raw(out, "\"");
}

static void typed_date(struct vdi_out *out, const struct vdi_node *value, vd_wall now)
{
	int64_t seconds;

	if (vdi_k8s_time_seconds(vdi_tree_string_of(value), &seconds))
		vdi_table_age(out, value, now);
	else
		vdi_out_raw(out, "\"\\u003cinvalid\\u003e\"");
}

/* Writes a number, a boolean, an object or an array as text. */
static void typed_string(struct vdi_out *out, const struct vdi_node *value)
{
	struct vdi_out text = VDI_OUT_INIT;

	if (value->kind == VDI_NODE_STRING) {
		vdi_out_string(out, value->text);
		return;
	}
	vdi_tree_write(&text, value);
	out->failed |= text.failed;
	vdi_out_string(out, vdi_out_slice(&text));
	vdi_out_fini(&text);
}

static void typed_integer(struct vdi_out *out, const struct vdi_node *value)
{
	struct vd_bytes text = value->text;
	const char     *dot = memchr(text.data, '.', text.size);

	if (memchr(text.data, 'e', text.size) || memchr(text.data, 'E', text.size))
		/* the document continues behind the number */
		vdi_out_printf(out, "%.0f", strtod(text.data, NULL));
	else
		vdi_out_bytes(out,
			      (struct vd_bytes) { text.data, dot ? (size_t) (dot - (const char *) text.data) :
								   text.size });
}

void vdi_table_typed(struct vdi_out *out, const struct vdi_node *value, const char *type, vd_wall now)
{
	bool is_number = vdi_tree_is(value, VDI_NODE_NUMBER);

	if (value == NULL || value->kind == VDI_NODE_NULL)
		vdi_out_raw(out, "null");
	else if (strcmp(type, "date") == 0 && value->kind == VDI_NODE_STRING)
		typed_date(out, value, now);
	else if (strcmp(type, "string") == 0)
		typed_string(out, value);
	else if (strcmp(type, "integer") == 0 && is_number)
		typed_integer(out, value);
	else if (strcmp(type, "number") == 0 && is_number)
		vdi_out_bytes(out, value->text);
	else if (strcmp(type, "boolean") == 0 &&
		 (value->kind == VDI_NODE_TRUE || value->kind == VDI_NODE_FALSE))
		vdi_out_raw(out, value->kind == VDI_NODE_TRUE ? "true" : "false");
	else
		vdi_out_raw(out, "null");
}
