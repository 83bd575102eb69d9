/* Settings of a backend for tests and benchmarks; vdi_backend_open uses the defaults. */
#ifndef VDI_BACKEND_TUNING_H
#define VDI_BACKEND_TUNING_H

#include "backend.h"
#include "disk.h"

struct vdi_backend_tuning {
	/* no checkpoint: the journal only grows. Implied if the env's disk is not the real one, which LMDB
	 * requires */
	bool	 is_journal_only;
	int64_t	 segment_size;	   /* size of journal files and of the reserve; 0: follows the store's size */
	int64_t	 checkpoint_bytes; /* journal bytes that wake the checkpointer at once; 0: 4 MiB */
	vd_dur	 checkpoint_interval; /* time after which it takes fewer bytes; 0: 1 s */
	unsigned part_count;	      /* number of threads that read the checkpoint; 0: of processors */
};

/* As vdi_backend_open. tuning may be NULL. */
VDI_MUST_USE vd_status vdi_backend_open_tuned(const struct vd_env *env, const struct vd_mvcc_options *options,
					      const struct vdi_backend_tuning *tuning,
					      const struct vdi_backend_sink   *sink,
					      struct vdi_backend **ret_backend, struct vd_error *reterr);
/* Returns the number of journal records in the checkpoint. Any thread. Not with is_journal_only. */
uint64_t vdi_backend_checkpointed(const struct vdi_backend *backend);

#endif
