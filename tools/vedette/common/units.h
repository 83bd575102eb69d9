/* Sizes and durations in human notation. Any thread. */
#ifndef VDI_UNITS_H
#define VDI_UNITS_H

#include "base.h"

/* Parses "64MiB", "1g", "4096". false: not a size, or too large. */
bool vdi_parse_bytes(const char *text, int64_t *ret_bytes);
/* Parses a duration as Go does, without a sign: "10m", "1h30m", "500ms", "1.5s", ".5h", "0". Fractions of a
 * nanosecond are dropped. false: not a duration, or longer than INT64_MAX nanoseconds. */
bool vdi_parse_duration(const char *text, vd_dur *ret_duration);

#endif
