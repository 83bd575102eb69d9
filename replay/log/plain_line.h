/* A line of an event log just as a program writes it: these members in this order, without white space,
 * nothing escaped outside the value.
 *
 *   {"commit":12,"records":1,"sum":"0123456789abcdef"}
 *   {"rev":12,"type":"DELETE","key":"/registry/pods/a/b","time":"2026-11-21T10:00:00Z"}
 *   {"rev":12,"type":"PUT","key":"/registry/pods/a/b","time":"...","createRev":3,"version":2,"lease":7,"value":{...}}
 *
 * All members after the number of commit and between key and value may be missing. Most lines of most logs
 * are such lines, and reading them needs no plan of members. Every other line, whether it is right or wrong,
 * is left to the full scan in event_log.c, which says the same of these.
 */
#ifndef VDI_PLAIN_LINE_H
#define VDI_PLAIN_LINE_H

#include "event_log.h"

/* False: not such a line; *ret_record is as before then. Sets all but the number of the line. Slices of line.
 * A record that is_unchecked is of such a line only if its value is one. */
bool vdi_plain_line_split(struct vd_bytes line, struct vdi_log_record *ret_record);
/* One JSON value without white space, not too deep for a line. */
bool vdi_plain_line_is_value(struct vd_bytes value);

#endif
