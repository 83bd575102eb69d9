/* Sizes and durations as people write them. Any thread. */
#ifndef VDI_UNITS_H
#define VDI_UNITS_H

#include "base.h"

/* "64MiB", "1g", "4096"; "10m", "1h30m", "500ms", "0". False: it is none, or too large. */
bool vdi_parse_bytes(const char *text, int64_t *ret_bytes);
bool vdi_parse_duration(const char *text, vd_dur *ret_duration);

#endif
