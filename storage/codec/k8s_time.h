/* RFC 3339 times as Kubernetes writes them (UTC; whole seconds, or six digits after the point) and reads
 * them. Pure functions. */
#ifndef VDI_K8S_TIME_H
#define VDI_K8S_TIME_H

#include "base.h"

#define VDI_K8S_TIME_SIZE 32

/* 0001-01-01T00:00:00Z, Go's zero time: no time is set. */
#define VDI_K8S_TIME_ZERO_S (-62135596800)

/* Writes seconds since 1970, with microseconds unless they are negative. Returns the size; 0: outside the
 * years 0 to 9999. */
size_t vdi_k8s_time_write(int64_t seconds, int32_t microseconds, char buffer[VDI_K8S_TIME_SIZE]);
/* Parses a date and time with Z or an offset; digits after the ninth of a fraction are dropped. false: not a
 * time. */
bool vdi_k8s_time_parse(struct vd_bytes text, int64_t *ret_seconds, int32_t *ret_nanoseconds);

/* The same, without the fraction. */
bool vdi_k8s_time_seconds(struct vd_bytes text, int64_t *ret_seconds);
/* Writes "2026-05-28T20:26:40Z": whole seconds, NUL-terminated. */
void vdi_k8s_time_format(vd_wall time, char buffer[VDI_K8S_TIME_SIZE]);

#endif
