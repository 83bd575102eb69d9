/* A store in front of etcd that records its changes on disk, so that watches from the past can be served
 * after a restart of this process, even if etcd has compacted.
 *
 * - Users' requests go to the inner store.
 * - A watch from an old revision gets the loaded history (loaded_history.h), then continues with the inner
 *   store.
 * - The recorder watches the whole prefix in the inner store and writes history_files.h.
 *
 * At the start, the files are read and compared with the inner store: at the newest recorded revision it must
 * have the recorded versions of up to 64 keys (the newest and some older ones), and it must still have all
 * changes since then. If it does not (restored from a backup, another cluster, compacted changes in between),
 * the history is dropped with a log line and starts over.
 *
 * The loaded history stays in memory until no watch has used it for a minute; the caches above fill their own
 * history from it. The store's status reports the start of the history (`kept`), and caches keep later
 * changes, whatever etcd has compacted.
 *
 * The recorder is an actor of its own that may wait for the disk; no other thread waits for it. If the disk
 * is full or fails, it logs this once, reports it in vedette_local_history_recording, and retries; everything
 * else continues.
 */
#ifndef VDI_LOCAL_HISTORY_H
#define VDI_LOCAL_HISTORY_H

#include <vedette/store.h>

#include "base.h"

struct vdi_local_history_options {
	const char *data_dir;	    /* created if absent (parents are not) */
	const char *prefix;	    /* recorded keys, such as "/registry/"; copied */
	int64_t	    history_bytes;  /* on disk; 0: no limit */
	vd_dur	    history_window; /* 0: no limit */
};

/* Opens the files and queries the inner store; blocks. Takes over inner, which closes with this store; on an
 * error the caller still owns it. VD_LOCKED: another process uses the directory. VD_INVALID: it contains
 * something else. VD_IO: it cannot be created or written. VD_UNAVAILABLE and similar: the inner store does
 * not answer. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_local_history_open(const struct vd_env *env, struct vd_store *inner,
					      const struct vdi_local_history_options *options,
					      struct vd_store **ret_store, struct vd_error *reterr);

#endif
