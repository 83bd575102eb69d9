/* Internal structures of the local history (local_history.h), shared by local_history.c, local_recorder.c and
 * local_watch.c. */
#ifndef VDI_LOCAL_STORE_H
#define VDI_LOCAL_STORE_H

#include <stdatomic.h>

#include "env.h"
#include "forward_store.h"
#include "history_files.h"
#include "loaded_history.h"
#include "local_history.h"
#include "lock.h"
#include "metrics.h"

/* Maximum age of the newest recorded revision while nothing changes. */
#define VDI_LOCAL_MARK_PERIOD VD_SECONDS(10)
#define VDI_LOCAL_SYNC_PERIOD VD_SECONDS(5) /* maximum time of changes that a power cut loses */
#define VDI_LOCAL_RETRY_FIRST VD_SECONDS(1)
#define VDI_LOCAL_RETRY_MAX VD_SECONDS(30)
#define VDI_LOCAL_LOADED_IDLE VD_SECONDS(60)
/* Maximum revisions that a new history looks back; etcd's catch-up loop sends 1,000 of them per 100 ms. */
#define VDI_LOCAL_BACKFILL_MAX 10000

/* Used only by the recorder's actor, unless stated otherwise. */
struct vdi_local_recorder {
	struct vd_actor		 *actor;
	struct vdi_dir		 *dir;
	struct vdi_history_files *files;
	struct vd_store_watch	 *watch; /* NULL: opened again at retry_at */
	vd_mono			  retry_at;
	vd_dur			  backoff;
	vd_rev			  progress; /* received progress that is not yet written; 0: none */
	vd_mono			  mark_at;  /* earliest time of the next mark */
	vd_mono			  ask_at;
	vd_mono			  sync_at;
	/* Floor of the history started by this process; 0: the loaded one continues. */
	vd_rev began;
	bool   is_new;	    /* nothing received since the history was started */
	bool   is_troubled; /* the disk fails, and this was logged */
	bool   is_over;	    /* the inner store is closed */
};

enum vdi_local_metric {
	VDI_LOCAL_BYTES,
	VDI_LOCAL_OLDEST_REVISION,
	VDI_LOCAL_NEWEST_REVISION,
	VDI_LOCAL_SPAN,
	VDI_LOCAL_RECORDING,
	VDI_LOCAL_EVENTS,
	VDI_LOCAL_FAILURES,
	VDI_LOCAL_DROPS,
	VDI_LOCAL_METRIC_COUNT
};

struct vdi_local_history {
	struct vdi_forward_store front;

	/* Fixed at creation. */
	const struct vd_env	    *env;
	char			    *prefix;
	char			    *prefix_end;
	struct vd_bytes		     prefix_end_bytes;
	struct vdi_metric	    *metrics[VDI_LOCAL_METRIC_COUNT];
	struct vdi_metrics_collector collector;

	struct vdi_local_recorder recorder;

	_Atomic vd_rev floor; /* floor of the files */
	/* as floor, but a history that starts over because of the disk does not raise it, so that caches keep
	 * theirs */
	_Atomic vd_rev	kept;
	_Atomic vd_rev	until;
	_Atomic int64_t oldest_ns; /* wall time of the oldest record; 0: none */
	_Atomic int64_t bytes;
	_Atomic int64_t loaded_used_ns; /* monotonic time of the last use of the loaded history */
	_Atomic vd_rev	loaded_floor;	/* 0: no loaded history in memory */
	atomic_bool	is_recording;

	/* Under lock. */
	struct vdi_lock		   lock;
	struct vdi_loaded_history *loaded; /* NULL: none, or released */
	bool			   is_closing;
	void (*closed)(void *arg);
	void *closed_arg;
};

/* Returns a reference to the loaded history if the watch can start in it, else NULL. */
struct vdi_loaded_history *vdi_local_loaded_history_for(struct vdi_local_history *history,
							vd_rev			  start_revision);

/* Frees the store; call after the actor has ended. */
void vdi_local_history_free(struct vdi_local_history *history);

/* Handler of the recorder's actor (local_recorder.c). */
void vdi_local_recorder_run(void *history);
/* Publishes the state of the files for other threads. */
void vdi_local_recorder_publish(struct vdi_local_history *history);
/* Returns the floor of a new history without records. */
vd_rev vdi_local_fresh_floor(const struct vd_store_status *status);

/* Opens a watch that starts in the loaded history and continues live (local_watch.c). Takes over the
 * reference to loaded, also on failure. */
VDI_MUST_USE vd_status vdi_local_watch_open(struct vd_store *inner, struct vdi_loaded_history *loaded,
					    const struct vd_store_watch_request *request,
					    struct vd_store_watch **ret_watch, struct vd_error *reterr);

#endif
