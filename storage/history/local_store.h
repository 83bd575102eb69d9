/* The inside of local_history.h, shared by local_history.c, local_recorder.c and local_watch.c. */
#ifndef VDI_LOCAL_STORE_H
#define VDI_LOCAL_STORE_H

#include <stdatomic.h>

#include "env.h"
#include "forward_store.h"
#include "history_files.h"
#include "local_history.h"
#include "lock.h"
#include "metrics.h"
#include "past.h"

#define VDI_LOCAL_MARK_PERIOD                                                                                \
	VD_SECONDS(10) /* how old the revision may be that a start finds, as long as nothing happens */
#define VDI_LOCAL_SYNC_PERIOD VD_SECONDS(5) /* what the loss of power may cost */
#define VDI_LOCAL_RETRY_FIRST VD_SECONDS(1)
#define VDI_LOCAL_RETRY_MAX VD_SECONDS(30)
#define VDI_LOCAL_PAST_IDLE VD_SECONDS(60)
/* A new history begins so many revisions back at most: an etcd tells the past at 1,000 of them in 100 ms
 * (E-336). */
#define VDI_LOCAL_LOOK_BACK_MAX 10000

/* The recorder's actor only, but for what is said otherwise. */
struct vdi_local_recorder {
	struct vd_actor		 *actor;
	struct vdi_dir		 *dir;
	struct vdi_history_files *files;
	struct vd_store_watch	 *watch; /* NULL: to be opened at retry_at */
	vd_mono			  retry_at;
	vd_dur			  backoff;
	vd_rev			  progress; /* heard of and not written yet; 0: none */
	vd_mono			  mark_at;  /* not before */
	vd_mono			  ask_at;
	vd_mono			  sync_at;
	vd_rev			  began;       /* where it began again in this process; 0: it did not */
	bool			  is_new;      /* nothing was heard since it began */
	bool			  is_troubled; /* and said so */
	bool			  is_over;     /* the inner store is closed */
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

	_Atomic vd_rev floor; /* of the files */
	/* of the window: as floor, but that a disk that failed does not make the caches forget */
	_Atomic vd_rev	kept;
	_Atomic vd_rev	until;
	_Atomic int64_t oldest_ns; /* wall time of the oldest record; 0: none */
	_Atomic int64_t bytes;
	_Atomic int64_t past_used_ns; /* mono */
	_Atomic vd_rev	past_floor;   /* 0: no past in memory */
	atomic_bool	is_recording;

	/* Under lock. */
	struct vdi_lock	 lock;
	struct vdi_past *past; /* NULL: nothing, or let go */
	bool		 is_closing;
	void (*closed)(void *arg);
	void *closed_arg;
};

/* The past if the watch can begin in it: a reference, or NULL. */
struct vdi_past *vdi_local_past_for(struct vdi_local_history *history, vd_rev start_revision);

/* After the actor. */
void vdi_local_history_free(struct vdi_local_history *history);

/* local_recorder.c. The handler of the actor. */
void vdi_local_recorder_run(void *history);
/* What everybody may know of the files. */
void vdi_local_recorder_publish(struct vdi_local_history *history);
/* Where a history that knows nothing begins. */
vd_rev vdi_local_fresh_floor(const struct vd_store_status *status);

/* local_watch.c: from the past into the present. Takes over the reference of past, also when it fails. */
VDI_MUST_USE vd_status vdi_local_watch_open(struct vd_store *inner, struct vdi_past *past,
					    const struct vd_store_watch_request *request,
					    struct vd_store_watch **ret_watch, struct vd_error *reterr);

#endif
