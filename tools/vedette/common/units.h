/* Sizes and durations as people write them. Any thread. */
#ifndef VDI_UNITS_H
#define VDI_UNITS_H

#include "base.h"

/* "64MiB", "1g", "4096". False: it is no size, or too large. */
bool vdi_parse_bytes(const char *text, int64_t *ret_bytes);
/* As Go writes and reads them, without a sign: "10m", "1h30m", "500ms", "1.5s", ".5h", "0". A fraction of a
 * nanosecond is dropped. False: it is no duration, or longer than INT64_MAX nanoseconds. */
bool vdi_parse_duration(const char *text, vd_dur *ret_duration);

#endif
