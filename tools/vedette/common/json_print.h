/* Indented JSON, formatted as by kubectl. */
#ifndef VDI_JSON_PRINT_H
#define VDI_JSON_PRINT_H

#include "base.h"

/* Prints valid json, indented by four spaces per level, with a newline at the end. The text of every value is
 * unchanged. */
void vdi_json_print(struct vd_bytes json);
/* The same, starting at a depth and without the newline, for parts of a larger document. */
void vdi_json_print_at(struct vd_bytes json, unsigned depth);

#endif
