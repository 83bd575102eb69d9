/* A store elsewhere with its history kept here: an etcd whose past can be told after a restart of this
 * process, whatever etcd has compacted meanwhile.
 *
 *   users --everything--> the inner store
 *         --watch from an old revision--> what was read back at the start (past.h), then the inner store from there
 *   recorder --watch of the whole prefix--> the inner store;  --> history_files.h
 *
 * A start reads the files and believes them only if the inner store, at the newest revision they know, shows
 * what they say of up to 64 keys (the newest ones and some of the others), and still has everything since. A
 * store that was restored from a backup, another cluster, or a gap that was compacted: the history is dropped
 * with one line in the log, and begins again.
 *
 * What was read back stays in memory until no watch has used it for a minute; the caches above fill their own
 * history from it. The store's status says where the history begins (`kept`), and caches keep what came after
 * that, whatever etcd has compacted.
 *
 * The recorder is an actor of its own that may wait for the disk; nobody waits for it. When the disk is full
 * or fails, it says so once and in vedette_local_history_recording, and tries again; everything else goes on.
 */
#ifndef VDI_LOCAL_HISTORY_H
#define VDI_LOCAL_HISTORY_H

#include <vedette/store.h>

#include "base.h"

struct vdi_local_history_options {
	const char *data_dir;	    /* created when absent (parents are not) */
	const char *prefix;	    /* "/registry/": what is recorded; copied */
	int64_t	    history_bytes;  /* on disk; 0: no bound */
	vd_dur	    history_window; /* 0: no bound */
};

/* Blocks: reads the files, asks the inner store. Takes over inner, which closes with it; on an error it stays
 * the caller's. VD_LOCKED: another process has the directory. VD_INVALID: it holds something else. VD_IO: it
 * cannot be created or written. VD_UNAVAILABLE and the like: the inner store does not answer. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_local_history_open(const struct vd_env *env, struct vd_store *inner,
					      const struct vdi_local_history_options *options,
					      struct vd_store **ret_store, struct vd_error *reterr);

#endif
