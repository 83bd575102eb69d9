/* Columns on a terminal: the rows of a page are gathered, then printed with the widths they need; later pages
 * keep these widths if possible. One thread. */
#ifndef VDI_TABLE_PRINT_H
#define VDI_TABLE_PRINT_H

#include "base.h"

#define VDI_TABLE_COLUMNS_MAX 64

struct vdi_table_printer {
	bool wide;	     /* also columns of lower priority */
	bool with_event;     /* a first column EVENT */
	bool with_namespace; /* then NAMESPACE */
	bool no_header;

	/* Private. */
	char   *names[VDI_TABLE_COLUMNS_MAX]; /* upper case; NULL: hidden */
	size_t	column_count;		      /* in the server's table */
	size_t	widths[VDI_TABLE_COLUMNS_MAX + 2];
	char  **cells; /* visible cells of the gathered rows */
	size_t	cell_count, cell_capacity;
	bool	header_done;
	int64_t row_count; /* of all pages */
};

/* Sets the columns from the server's definitions (a JSON array); empty: one column, NAME. Existing columns
 * are kept. VD_NOMEM, VD_BAD_REQUEST. */
VDI_MUST_USE vd_status vdi_table_printer_columns(struct vdi_table_printer *printer, struct vd_bytes columns);
/* cells: a JSON array; empty: only the name. event may be NULL. */
VDI_MUST_USE vd_status vdi_table_printer_row(struct vdi_table_printer *printer, const char *event,
					     struct vd_bytes namespace_name, struct vd_bytes name,
					     struct vd_bytes cells);
void		       vdi_table_printer_flush(struct vdi_table_printer *printer);
void		       vdi_table_printer_fini(struct vdi_table_printer *printer);

#endif
