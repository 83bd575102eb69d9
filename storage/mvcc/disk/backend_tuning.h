/* What tests and benchmarks may turn; vdi_persist_open uses the defaults. */
#ifndef VDI_PERSIST_TUNING_H
#define VDI_PERSIST_TUNING_H

#include "disk.h"
#include "backend.h"

struct vdi_persist_tuning {
	/* no checkpoint: the journal only grows. Always so when the env's disk is not the real one: LMDB
	 * knows no other */
	bool	 is_journal_only;
	int64_t	 segment_size; /* of journal files and the reserve; 0: both follow the size of the store */
	int64_t	 checkpoint_bytes;    /* journal bytes that wake the checkpoint at once; 0: 4 MiB */
	vd_dur	 checkpoint_interval; /* and the time after which it takes less than that; 0: 1 s */
	unsigned part_count; /* in which the checkpoint is read; 0: as many as there are processors */
};

/* As vdi_persist_open. tuning may be NULL. */
VDI_MUST_USE vd_status vdi_persist_open_tuned(const struct vd_env *env, const struct vd_mvcc_options *options,
					      const struct vdi_persist_tuning *tuning,
					      const struct vdi_persist_sink   *sink,
					      struct vdi_persist **ret_persist, struct vd_error *reterr);
/* Number of journal records that the checkpoint holds. Any thread. Not for a journal only. */
uint64_t vdi_persist_checkpointed(const struct vdi_persist *persist);

#endif
