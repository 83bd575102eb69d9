/* A fast reader of log lines as programs write them: these members in this order, without white space,
 * without escapes outside the value.
 *
 *   {"commit":12,"records":1,"sum":"0123456789abcdef"}
 *   {"rev":12,"type":"DELETE","key":"/registry/pods/a/b","time":"2026-11-21T10:00:00Z"}
 *   {"rev":12,"type":"PUT","key":"/registry/pods/a/b","time":"...","createRev":3,"version":2,"lease":7,
 *    "value":{...}}                                                                 (all on one line)
 *
 * The members after the number of commit, and those between key and value, are optional. Most lines of most
 * logs have this form and need no plan of members. All other lines, valid or not, are left to the full scan
 * in event_log.c, which returns the same for these.
 */
#ifndef VDI_PLAIN_LINE_H
#define VDI_PLAIN_LINE_H

#include "event_log.h"

/* Sets all of *ret_record except the line number, with slices of line. A record with is_unchecked is valid
 * only if its value is. false: not such a line; *ret_record is unchanged. */
bool vdi_plain_line_split(struct vd_bytes line, struct vdi_log_record *ret_record);
/* Returns true for one JSON value without white space that is not too deep for a line. */
bool vdi_plain_line_is_value(struct vd_bytes value);

#endif
