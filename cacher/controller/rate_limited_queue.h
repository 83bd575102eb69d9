/* The struct of a work queue, for the files of this room. All members that change are under the lock. */
#ifndef VDI_RATE_LIMITED_QUEUE_H
#define VDI_RATE_LIMITED_QUEUE_H

#include <vedette/work_queue.h>

#include "hash.h"
#include "lock.h"
#include "metrics.h"
#include "rate_limiter.h"
#include "timer.h"
#include "usage.h"
#include "wait.h"

/* A known key. It is freed when it is neither dirty nor processed nor delayed and has no failures. */
struct vdi_work_item {
	struct vd_bytes	      key; /* data below */
	uint64_t	      hash;
	bool		      is_dirty; /* to be processed: queued, or added while processed */
	bool		      is_processing;
	unsigned	      failures;
	struct vdi_timer      timer; /* set: delayed */
	vd_mono		      added;
	vd_mono		      started;
	struct vdi_work_item *next;	/* of the queued, or of the processed */
	struct vdi_work_item *previous; /* of the processed */
	char		      data[];
};

enum vdi_work_waiter_kind {
	VDI_WORK_WAITER_READY,	/* a callback of vd_work_queue_get; allocated */
	VDI_WORK_WAITER_THREAD, /* a thread in vd_work_queue_get_wait */
	VDI_WORK_WAITER_WORKER, /* an idle worker */
};

/* One consumer that waits for a queued key. */
struct vdi_work_waiter {
	enum vdi_work_waiter_kind kind;
	struct vdi_work_waiter	 *next;
	bool			  is_listed;
	void (*ready)(void *arg);
	void		*arg;
	struct vdi_wait *wait;
	struct vd_actor *actor;
};

/* One caller that waits until the queue is drained. */
struct vdi_work_drain {
	struct vdi_work_drain *next;
	vd_status	       status;
	bool		       is_over; /* wait was signalled */
	void (*done)(void *arg, vd_status status);
	void		*arg;
	struct vdi_wait *wait; /* NULL: done is called, and the node is allocated */
};

struct vd_work {
	struct vd_work_queue  *queue;
	struct vd_actor	      *actor;
	vd_work_fn	       work;
	void		      *arg;
	struct vdi_work_item  *item; /* NULL: idle */
	struct vdi_work_waiter waiter;
	bool		       is_ending;
	struct vd_work	      *next;
};

struct vdi_work_metrics {
	struct vdi_metric *depth, *adds, *queue_duration, *work_duration, *unfinished, *longest, *retries;
};

struct vd_work_queue {
	/* Fixed. */
	const struct vd_env	    *env;
	char			    *name; /* NULL: no metrics */
	size_t			     items_max;
	uint64_t		     seed;
	struct vd_actor		    *actor;
	struct vdi_usage	     usage;
	struct vdi_work_metrics	     metrics;
	struct vdi_metrics_collector collector;

	struct vdi_lock		lock;
	struct vdi_rate_limiter limiter;
	struct vdi_hash		items;
	struct vdi_work_item   *first, *last; /* queued */
	size_t			count;
	struct vdi_work_item   *processed_first, *processed_last; /* in the order of their start */
	size_t			processed;
	struct vdi_timer_heap	delayed;
	struct vdi_work_waiter *waiter_first, *waiter_last;
	size_t			callbacks; /* waiters with a callback */
	struct vdi_work_waiter *called;	   /* callbacks to be called by the actor */
	struct vdi_work_drain  *drains;
	struct vdi_work_drain  *drained; /* done functions to be called by the actor */
	struct vd_work	       *workers;
	size_t			worker_count; /* workers whose actor has not ended */
	size_t			blocked;      /* threads in _wait calls */
	bool			is_shutting_down;
	bool			is_closed;
	void (*closed)(void *arg);
	void *closed_arg;
};

/* ---- The queue, for workers; under the lock ---- */

/* Takes the oldest queued key; NULL: none. */
struct vdi_work_item *vdi_rate_limited_queue_take_locked(struct vd_work_queue *queue);
void vdi_rate_limited_queue_done_locked(struct vd_work_queue *queue, struct vdi_work_item *item);
void vdi_rate_limited_queue_wait_locked(struct vd_work_queue *queue, struct vdi_work_waiter *waiter);
void vdi_rate_limited_queue_unwait_locked(struct vd_work_queue *queue, struct vdi_work_waiter *waiter);
/* Adds a known item again after a delay; 0 or less: now. No effect after a shutdown. */
void vdi_rate_limited_queue_again_locked(struct vd_work_queue *queue, struct vdi_work_item *item,
					 vd_dur delay);
/* Counts a failure and returns the delay. */
vd_dur vdi_rate_limited_queue_failed_locked(struct vd_work_queue *queue, struct vdi_work_item *item);

/* Frees the item if it need not be known any more. */
void vdi_rate_limited_queue_free_unless_used_locked(struct vd_work_queue *queue, struct vdi_work_item *item);
/* Wakes the consumer that has waited longest. */
void vdi_rate_limited_queue_wake_one_locked(struct vd_work_queue *queue);
/* Ends all drains with status: the queue is drained, or the drain is canceled. */
void vdi_rate_limited_queue_end_drains_locked(struct vd_work_queue *queue, vd_status status);

/* ---- Metrics ---- */

/* VD_NOMEM, VD_FULL: none is registered. */
VDI_MUST_USE vd_status vdi_work_metrics_init(struct vd_work_queue *queue);
void		       vdi_work_metrics_fini(struct vd_work_queue *queue);

#endif
