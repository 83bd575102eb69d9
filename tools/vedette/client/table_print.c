/* Column widths count characters of UTF-8, not bytes. */
#include "table_print.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char) *text & 0xC0) != 0x80;
	return width;
}

static bool keep_name(struct vdi_table_printer *printer, const char *name)
{
	char *copy = vdi_strdup(name);

	if (copy == NULL)
		return false;
	for (char *at = copy; *at; at++)
		*at = (char) toupper((unsigned char) *at);
	printer->names[printer->column_count++] = copy;
	return true;
}

vd_status vdi_table_printer_columns(struct vdi_table_printer *printer, struct vd_bytes columns)
{
	json_t *root, *column;
	size_t	i;
	bool	ok = true;

	if (printer->column_count)
		return VD_OK;
	if (columns.size == 0)
		return keep_name(printer, "name") ? VD_OK : VD_NOMEM;
	root = json_loadb(columns.data, columns.size, 0, NULL);
	if (root == NULL)
		return VD_BAD_REQUEST;
	json_array_foreach (root, i, column) {
		const char *name = json_string_value(json_object_get(column, "name"));

		if (i == VDI_TABLE_COLUMNS_MAX)
			break;
		if (json_integer_value(json_object_get(column, "priority")) > 0 && !printer->wide)
			printer->names[printer->column_count++] = NULL;
		else
			ok = ok && keep_name(printer, name ? name : "?");
	}
	json_decref(root);
	return ok ? VD_OK : VD_NOMEM;
}

static vd_status add_cell(struct vdi_table_printer *printer, size_t place, const char *text, size_t size)
{
	char  *copy = size ? vdi_strndup(text, size) : vdi_strdup("");
	size_t width;

	if (copy == NULL || !vdi_grow((void **) &printer->cells, &printer->cell_capacity,
				      printer->cell_count + 1, sizeof *printer->cells)) {
		vdi_free(copy);
		return VD_NOMEM;
	}
	printer->cells[printer->cell_count++] = copy;
	width = width_of(copy);
	printer->widths[place] = VDI_MAX(printer->widths[place], width);
	return VD_OK;
}

static vd_status add_value(struct vdi_table_printer *printer, size_t place, json_t *value)
{
	char	  number[48];
	char	 *dump;
	vd_status status;

	if (json_is_string(value))
		return add_cell(printer, place, json_string_value(value), json_string_length(value));
	if (json_is_integer(value)) {
		snprintf(number, sizeof number, "%lld", (long long) json_integer_value(value));
		return add_cell(printer, place, number, strlen(number));
	}
	if (value == NULL || json_is_null(value))
		return add_cell(printer, place, "<none>", 6);
	dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	if (dump == NULL)
		return VD_NOMEM;
	status = add_cell(printer, place, dump, strlen(dump));
	free(dump); /* allocated by jansson */
	return status;
}

vd_status vdi_table_printer_row(struct vdi_table_printer *printer, const char *event,
				struct vd_bytes namespace_name, struct vd_bytes name, struct vd_bytes cells)
{
	size_t	  place = 0;
	json_t	 *root;
	vd_status status = VD_OK;

	VDI_TRY(vdi_table_printer_columns(printer, VD_BYTES_NONE));
	if (printer->with_event)
		VDI_TRY(add_cell(printer, place++, event, strlen(event)));
	if (printer->with_namespace)
		VDI_TRY(add_cell(printer, place++, namespace_name.data, namespace_name.size));
	root = cells.size ? json_loadb(cells.data, cells.size, 0, NULL) : NULL;
	for (size_t i = 0; status == VD_OK && i < printer->column_count; i++) {
		if (printer->names[i] == NULL)
			continue;
		if (root)
			status = add_value(printer, place++, json_array_get(root, i));
		else
			status = i == 0 ? add_cell(printer, place++, name.data, name.size) :
					  add_cell(printer, place++, "", 0);
	}
	json_decref(root);
	printer->row_count++;
	return status;
}

static size_t shown_count(const struct vdi_table_printer *printer)
{
	size_t count = (size_t) printer->with_event + printer->with_namespace;

	for (size_t i = 0; i < printer->column_count; i++)
		count += printer->names[i] != NULL;
	return count;
}

static void print_cell(const struct vdi_table_printer *printer, size_t place, size_t count, const char *text)
{
	fputs(text, stdout);
	if (place + 1 == count) {
		putchar('\n');
		return;
	}
	for (size_t width = width_of(text); width < printer->widths[place] + 3; width++)
		putchar(' ');
}

static void print_header(struct vdi_table_printer *printer)
{
	const char *names[VDI_TABLE_COLUMNS_MAX + 2];
	size_t	    count = 0;

	if (printer->with_event)
		names[count++] = "EVENT";
	if (printer->with_namespace)
		names[count++] = "NAMESPACE";
	for (size_t i = 0; i < printer->column_count; i++)
		if (printer->names[i])
			names[count++] = printer->names[i];
	for (size_t i = 0; i < count; i++)
		printer->widths[i] = VDI_MAX(printer->widths[i], width_of(names[i]));
	for (size_t i = 0; i < count && !printer->no_header; i++)
		print_cell(printer, i, count, names[i]);
	printer->header_done = true;
}

void vdi_table_printer_flush(struct vdi_table_printer *printer)
{
	size_t count = shown_count(printer);

	if (printer->with_event)
		printer->widths[0] = VDI_MAX(printer->widths[0], strlen("MODIFIED"));
	if (printer->cell_count && !printer->header_done)
		print_header(printer);
	for (size_t i = 0; i < printer->cell_count; i++) {
		print_cell(printer, i % count, count, printer->cells[i]);
		vdi_free(printer->cells[i]);
	}
	printer->cell_count = 0;
}

void vdi_table_printer_fini(struct vdi_table_printer *printer)
{
	for (size_t i = 0; i < printer->cell_count; i++)
		vdi_free(printer->cells[i]);
	for (size_t i = 0; i < printer->column_count; i++)
		vdi_free(printer->names[i]);
	vdi_free(printer->cells);
	memset(printer, 0, sizeof *printer);
}
