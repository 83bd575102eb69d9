/* The differences between two JSON values, as paths. */
#ifndef VDI_OBJECT_DIFF_H
#define VDI_OBJECT_DIFF_H

#include <jansson.h>

#include "base.h"

/* from or to is NULL if only the other value has the path. path: "spec.containers[0].image"; names with dots
 * or brackets are quoted: metadata.labels["a.b/c"]. */
typedef void (*vdi_difference_fn)(void *arg, const char *path, const json_t *from, const json_t *to);

/* Calls each for every difference, in the order of the members of `to`, then of `from`. Skips
 * metadata.resourceVersion and metadata.managedFields, which only repeat other information. Paths are
 * truncated to 1023 bytes. */
void vdi_object_diff(const json_t *from, const json_t *to, vdi_difference_fn each, void *arg);

#endif
