/* JSON for people: indented as kubectl does. */
#ifndef VDI_JSON_PRINT_H
#define VDI_JSON_PRINT_H

#include "base.h"

/* Prints json, which is valid, indented by four spaces a level as kubectl does; every value keeps its text. A
 * newline at the end. */
void vdi_json_print(struct vd_bytes json);
/* The same starting at a depth and without the newline: for parts of a larger document. */
void vdi_json_print_at(struct vd_bytes json, unsigned depth);

#endif
