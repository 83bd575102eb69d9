/* Columns on a terminal: rows are gathered for a page, then printed as wide as they need; later pages keep
 * the columns' places where they can. One thread. */
#ifndef VDI_TABLE_PRINT_H
#define VDI_TABLE_PRINT_H

#include "base.h"

#define VDI_TABLE_COLUMNS_MAX 64

struct vdi_table_printer {
	bool wide;	     /* columns of lower priority too */
	bool with_event;     /* a first column EVENT */
	bool with_namespace; /* and NAMESPACE */
	bool no_header;

	/* Private. */
	char   *names[VDI_TABLE_COLUMNS_MAX]; /* upper case; NULL: not shown */
	size_t	column_count;		      /* of the server's */
	size_t	widths[VDI_TABLE_COLUMNS_MAX + 2];
	char  **cells; /* shown cells of the rows gathered */
	size_t	cell_count, cell_capacity;
	bool	header_done;
	int64_t row_count; /* in all */
};

/* Column definitions as the server sent them (a JSON array); empty: one column, NAME. Columns that are there
 * already stay. VD_NOMEM, VD_BAD_REQUEST. */
VDI_MUST_USE vd_status vdi_table_printer_columns(struct vdi_table_printer *printer, struct vd_bytes columns);
/* cells: a JSON array; empty: only the name. event may be NULL. */
VDI_MUST_USE vd_status vdi_table_printer_row(struct vdi_table_printer *printer, const char *event,
					     struct vd_bytes namespace_name, struct vd_bytes name,
					     struct vd_bytes cells);
void		       vdi_table_printer_flush(struct vdi_table_printer *printer);
void		       vdi_table_printer_fini(struct vdi_table_printer *printer);

#endif
