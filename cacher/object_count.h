/* How many objects the store has, asked once in a while for the metrics (R-725, R-726; upstream's registry
 * does it with Stats()). The cacher's actor. */
#ifndef VDI_OBJECT_COUNT_H
#define VDI_OBJECT_COUNT_H

#include "periodic.h"

struct vd_cacher;

#define VDI_OBJECT_COUNT_PERIOD VD_SECONDS(60) /* and up to 1.2 times as much on top */

void vdi_object_count_init(struct vdi_object_count *count, const struct vd_env *env);
/* A step, if one is due. Returns when to call again. */
vd_mono vdi_object_count_run(struct vd_cacher *cacher);

#endif
