/* The number of stored objects, read from the store periodically for the metrics, as upstream's registry does
 * with Stats(). Runs on the cacher's actor. */
#ifndef VDI_OBJECT_COUNT_H
#define VDI_OBJECT_COUNT_H

#include "periodic.h"

struct vd_cacher;

#define VDI_OBJECT_COUNT_PERIOD VD_SECONDS(60) /* plus a jitter of up to 1.2 times this */

void vdi_object_count_init(struct vdi_object_count *count, const struct vd_env *env);
/* Runs one step if it is due. Returns the time of the next call. */
vd_mono vdi_object_count_run(struct vd_cacher *cacher);

#endif
