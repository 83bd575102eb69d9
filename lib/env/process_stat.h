/* What the system says about this process, as Prometheus' own libraries report it. Any thread; blocks as
 * reads of /proc do. */
#ifndef VDI_PROCESS_STAT_H
#define VDI_PROCESS_STAT_H

#include "base.h"

/* -1: not known. */
struct vdi_process_stat {
	double	cpu_seconds;
	int64_t resident_bytes;
	int64_t virtual_bytes;
	int64_t virtual_bytes_max;
	int64_t start_time_s; /* since 1970 */
	int64_t open_files;
	int64_t open_files_max;
};

void vdi_process_stat_read(struct vdi_process_stat *ret_stat);

#endif
