/* What tests and benchmarks may turn; vdi_backend_open uses the defaults. */
#ifndef VDI_BACKEND_TUNING_H
#define VDI_BACKEND_TUNING_H

#include "backend.h"
#include "disk.h"

struct vdi_backend_tuning {
	/* no checkpoint: the journal only grows. Always so when the env's disk is not the real one: LMDB
	 * knows no other */
	bool	 is_journal_only;
	int64_t	 segment_size; /* of journal files and the reserve; 0: both follow the size of the store */
	int64_t	 checkpoint_bytes;    /* journal bytes that wake the checkpoint at once; 0: 4 MiB */
	vd_dur	 checkpoint_interval; /* and the time after which it takes less than that; 0: 1 s */
	unsigned part_count; /* in which the checkpoint is read; 0: as many as there are processors */
};

/* As vdi_backend_open. tuning may be NULL. */
VDI_MUST_USE vd_status vdi_backend_open_tuned(const struct vd_env *env, const struct vd_mvcc_options *options,
					      const struct vdi_backend_tuning *tuning,
					      const struct vdi_backend_sink   *sink,
					      struct vdi_backend **ret_backend, struct vd_error *reterr);
/* Number of journal records that the checkpoint holds. Any thread. Not for a journal only. */
uint64_t vdi_backend_checkpointed(const struct vdi_backend *backend);

#endif
