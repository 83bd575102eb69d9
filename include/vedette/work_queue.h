/* A work queue for controllers, as client-go's util/workqueue, with workers as those of
 * controller-runtime's Reconcile.
 *
 * The items are keys: byte strings such as "namespace/name", which are copied. A key that is added several
 * times before it is taken is taken once. A key is never processed by two workers at the same time: a key
 * that is added while it is processed is queued again when its processing ends. A delayed key is added when
 * its delay has passed; the delay of a key that fails grows with each failure.
 *
 * A program takes keys in one of three ways: by workers of the queue (vd_work_queue_run), by
 * vd_work_queue_get on its own actors, or by vd_work_queue_get_wait on its own threads.
 *
 * All functions may be called from any thread, also inside a handler; only functions named _wait block. */
#ifndef VEDETTE_WORK_QUEUE_H
#define VEDETTE_WORK_QUEUE_H

#include <vedette/env.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_work_queue;

/* Rate limits of vd_work_queue_add_rate_limited: a key is delayed by the maximum of the delays of all
 * limiters that are set. The defaults are those of client-go's controllers. */
struct vd_rate_limits {
	/* Per key: base * 2^failures, at most max. base 0: not used. */
	vd_dur failure_base; /* default 5 ms */
	vd_dur failure_max;  /* default 1000 s */
	/* All keys together: a token bucket. qps 0: not used. */
	double	 qps;	/* tokens per second; default 10 */
	uint32_t burst; /* default 100 */
	/* Per key: fast for the first fast_attempts failures, then slow. fast_attempts 0 (the default): not
	 * used. */
	uint32_t fast_attempts;
	vd_dur	 fast, slow;
	/* Maximum of the result; 0 (the default): none. */
	vd_dur delay_max;
};

#define VD_WORK_KEY_SIZE_MAX 4096

struct vd_work_queue_options {
	size_t	    size; /* sizeof(struct vd_work_queue_options) */
	const char *name; /* label of the metrics workqueue_*; NULL: no metrics */
	/* maximum number of keys that are queued, delayed, processed or have failures; default 1,000,000 */
	size_t		      items_max;
	struct vd_rate_limits limits;
};
#define VD_WORK_QUEUE_OPTIONS_INIT                                                                           \
	{                                                                                                    \
		sizeof(struct vd_work_queue_options), 0, 1000000,                                            \
		{                                                                                            \
			{ 5000000 }, { (int64_t) 1000 * 1000000000 }, 10, 100, 0, { 0 }, { 0 },              \
			{                                                                                    \
				0                                                                            \
			}                                                                                    \
		}                                                                                            \
	}

/* Creates a queue; the caller owns it and closes it. options are copied; NULL: the defaults. Errors:
 * VD_INVALID_ARGUMENT (the message names the option), VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_work_queue_new(const struct vd_env		  *env,
					       const struct vd_work_queue_options *options,
					       struct vd_work_queue **ret_queue, struct vd_error *reterr);

/* ---- Adding ---- */

/* Adds a key. VD_OK if the key is queued, also if it was queued already. Errors: VD_CLOSED (after a
 * shutdown), VD_FULL (the queue has items_max keys), VD_TOO_BIG (more than VD_WORK_KEY_SIZE_MAX bytes),
 * VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_work_queue_add(struct vd_work_queue *queue, struct vd_bytes key);
/* Adds a key after a delay; at once if the delay is 0 or less. If the key is delayed already, the earlier
 * time counts. Errors as for vd_work_queue_add. */
VD_API VD_MUST_USE vd_status vd_work_queue_add_after(struct vd_work_queue *queue, struct vd_bytes key,
						     vd_dur delay);
/* Counts a failure of the key and adds it after the delay of the rate limits. Errors as for
 * vd_work_queue_add. */
VD_API VD_MUST_USE vd_status vd_work_queue_add_rate_limited(struct vd_work_queue *queue, struct vd_bytes key);
/* Clears the failures of the key; does not remove it from the queue. */
VD_API void vd_work_queue_forget(struct vd_work_queue *queue, struct vd_bytes key);
/* Returns the failures of the key since the last vd_work_queue_forget. */
VD_API unsigned vd_work_queue_num_requeues(struct vd_work_queue *queue, struct vd_bytes key);
/* Returns the number of queued keys, without delayed and processed ones. */
VD_API size_t vd_work_queue_len(struct vd_work_queue *queue);

/* ---- Taking ---- */

/* Takes the oldest queued key, which the caller then processes; consumers call it until it returns
 * VD_AGAIN. *ret_key is borrowed until vd_work_queue_done of this key. VD_AGAIN: nothing is queued; ready
 * (may be NULL) is called once, on an actor of the env, when vd_work_queue_get may return something else. A
 * second call with the same ready and arg before that does not register another callback. Errors: VD_CLOSED
 * (shut down, and nothing is queued), VD_FULL (1,024 callbacks are registered), VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_work_queue_get(struct vd_work_queue *queue, void (*ready)(void *arg),
					       void *arg, struct vd_bytes *ret_key);
/* Blocks until a key can be taken, at most for timeout (negative: for ever). Errors: VD_TIMEOUT; VD_CLOSED;
 * VD_INVALID_ARGUMENT where blocking is not allowed (vedette/env.h). */
VD_API VD_MUST_USE vd_status vd_work_queue_get_wait(struct vd_work_queue *queue, vd_dur timeout,
						    struct vd_bytes *ret_key);
/* Ends the processing of a key. If the key was added meanwhile, it is queued again. No effect if the key is
 * not processed. */
VD_API void vd_work_queue_done(struct vd_work_queue *queue, struct vd_bytes key);

/* ---- Workers ---- */

struct vd_work; /* one key that a worker processes */

enum vd_work_result {
	VD_WORK_DONE,  /* clear the failures of the key */
	VD_WORK_RETRY, /* count a failure and add the key again, rate limited */
	VD_WORK_AFTER, /* clear the failures and add the key again after the given delay */
};

/* Processes one key. The program must call vd_work_finish exactly once for work, inside this call or later.
 * key is borrowed until then. */
typedef void (*vd_work_fn)(void *arg, struct vd_work *work, struct vd_bytes key);

#define VD_WORKERS_MAX 256

struct vd_worker_options {
	size_t	   size;	/* sizeof(struct vd_worker_options) */
	unsigned   concurrency; /* keys processed at the same time; default 1, at most VD_WORKERS_MAX */
	vd_work_fn work;
	void	  *arg;
	/* true: each worker has a thread of its own, and work may block. false: workers run on actors, and
	 * work must not block. */
	bool blocking;
};
#define VD_WORKER_OPTIONS_INIT                                                                               \
	{                                                                                                    \
		sizeof(struct vd_worker_options), 1, 0, 0, false                                             \
	}

/* Starts workers, which end when the queue is shut down and empty. On an error, no worker was started:
 * VD_INVALID_ARGUMENT (the message names the option), VD_CLOSED, VD_NOMEM, VD_FULL. */
VD_API VD_MUST_USE vd_status vd_work_queue_run(struct vd_work_queue	      *queue,
					       const struct vd_worker_options *options,
					       struct vd_error		      *reterr);
/* Ends the processing of a key; work is invalid afterwards. after: the delay of VD_WORK_AFTER. Cannot fail,
 * because it needs no memory. After a shutdown, keys are not added again. */
VD_API void vd_work_finish(struct vd_work *work, enum vd_work_result result, vd_dur after);
/* Returns the failures of the key before this attempt. */
VD_API unsigned vd_work_num_requeues(const struct vd_work *work);

/* ---- Shutdown ---- */

/* Refuses new keys and drops delayed ones. Queued keys can still be taken. Ends a drain in progress with
 * VD_CANCELED. */
VD_API void vd_work_queue_shutdown(struct vd_work_queue *queue);
/* Returns true after vd_work_queue_shutdown or vd_work_queue_shutdown_drain. */
VD_API bool vd_work_queue_is_shutting_down(struct vd_work_queue *queue);
/* Shuts down as vd_work_queue_shutdown, and calls done on an actor of the env: with VD_OK when no key is
 * queued or processed, or with VD_CANCELED if vd_work_queue_shutdown or vd_work_queue_close was called.
 * Error: VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_work_queue_shutdown_drain(struct vd_work_queue *queue,
							  void (*done)(void *arg, vd_status status),
							  void *arg);
/* Shuts down and blocks until no key is queued or processed, at most for timeout (negative: for ever).
 * Errors: VD_TIMEOUT, VD_CANCELED, VD_INVALID_ARGUMENT where blocking is not allowed. */
VD_API VD_MUST_USE vd_status vd_work_queue_shutdown_drain_wait(struct vd_work_queue *queue, vd_dur timeout);

/* Shuts the queue down, drops queued keys, and frees it when all workers have finished their keys; only
 * vd_work_finish and vd_work_num_requeues may be called for it afterwards. Waiting callbacks and blocked
 * calls end before done (may be NULL) is called. queue NULL: done is called at once. The _wait form blocks
 * until then and returns NULL. */
VD_API void vd_work_queue_close(struct vd_work_queue *queue, void (*done)(void *arg), void *arg);
VD_API struct vd_work_queue *vd_work_queue_close_wait(struct vd_work_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
