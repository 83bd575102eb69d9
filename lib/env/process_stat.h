/* The operating system's statistics of this process, with the meaning of Prometheus' client libraries. Any
 * thread; blocks like reads of /proc. */
#ifndef VDI_PROCESS_STAT_H
#define VDI_PROCESS_STAT_H

#include "base.h"

/* Members are -1 if unknown. */
struct vdi_process_stat {
	double	cpu_seconds;
	int64_t resident_bytes;
	int64_t virtual_bytes;
	int64_t virtual_bytes_max;
	int64_t start_time_s; /* Unix time */
	int64_t open_files;
	int64_t open_files_max;
};

void vdi_process_stat_read(struct vdi_process_stat *ret_stat);

#endif
