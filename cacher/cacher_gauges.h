/* The gauges of a cacher that are computed when the metrics are read: current sizes and queue lengths. */
#ifndef VDI_CACHER_GAUGES_H
#define VDI_CACHER_GAUGES_H

/* A collector of the metrics registry (arg: the cacher). Any thread, one at a time; takes the cacher's locks
 * one after the other, each only to copy a few numbers. */
void vdi_cacher_gauges_collect(void *cacher);

#endif
