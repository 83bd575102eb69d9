/* The gauges of a cacher that are not kept up to date otherwise: sizes and depths as they are when somebody
 * reads the metrics. */
#ifndef VDI_CACHER_GAUGES_H
#define VDI_CACHER_GAUGES_H

/* A collector of the registry (arg: the cacher). Any thread, one at a time; takes the cacher's locks one
 * after the other, each for some numbers. */
void vdi_cacher_gauges_collect(void *cacher);

#endif
