/* The thread is a blocking actor whose single run lasts as long as the queue. It sleeps in
 * grpc_completion_queue_next until the next deadline; core does its I/O in there too, so the thread must not
 * block elsewhere.
 *
 * The only way to wake such a thread is an event. An empty batch completes at once, without network, and a
 * call on a lame channel is cheap. `wanted` makes one batch of many wakes.
 */
#include "grpc_queue.h"
#include "actor_threads.h"
#include "lock.h"

#define SLEPT VD_US(20) /* a thread that was in core for this time was idle */

struct vdi_grpc_queue {
	struct vdi_grpc_queue_options options;
	const struct vd_env	     *env;
	struct vd_actor		     *actor;
	grpc_completion_queue	     *core;
	grpc_channel		     *lame;
	grpc_call		     *wake_call;
	struct vdi_grpc_tag	      wake_tag;
	/* core requires that batches of one call are started one after the other */
	struct vdi_lock wake_lock;
	_Atomic bool	wanted;

	/* Queue's thread only. */
	bool stopped;
};

/* The queue of the current thread. */
static __thread struct vdi_grpc_queue *running;

gpr_timespec vdi_grpc_timespec(vd_mono due)
{
	gpr_timespec at = { .tv_sec = due.ns / 1000000000,
			    .tv_nsec = (int32_t) (due.ns % 1000000000),
			    .clock_type = GPR_CLOCK_MONOTONIC };

	return due.ns == VD_NEVER.ns ? gpr_inf_future(GPR_CLOCK_MONOTONIC) : at;
}

static void do_nothing(struct vdi_grpc_tag *tag, bool success)
{
	(void) tag;
	(void) success;
}

static void finish(void *arg)
{
	struct vdi_grpc_queue	     *queue = arg;
	struct vdi_grpc_queue_options options = queue->options;

	grpc_completion_queue_destroy(queue->core);
	vdi_lock_fini(&queue->wake_lock);
	vdi_free(queue);
	options.ended(options.arg);
}

static void run_tag(struct vdi_grpc_queue *queue, const grpc_event *event, bool slept)
{
	struct vdi_grpc_tag *tag = event->tag;
	bool		     lends = queue->options.lends && slept;

	atomic_load_explicit(&tag->handed, memory_order_acquire);
	if (lends)
		vdi_actor_lend_begin();
	tag->run(tag, event->success);
	if (lends)
		vdi_actor_lend_end();
}

static void run_queue(void *arg)
{
	struct vdi_grpc_queue *queue = arg;
	vd_mono		       due = VD_NEVER;

	running = queue;
	for (;;) {
		grpc_event event;
		vd_mono	   asked;

		/* An iteration may request the next one. A waker that finds `wanted` set posts nothing, so it
		 * must not be set when the thread goes to sleep. */
		while (asked = vd_env_now(queue->env),
		       !queue->stopped && (atomic_exchange(&queue->wanted, false) || due.ns <= asked.ns))
			due = queue->options.iterate(queue->options.arg);
		event = grpc_completion_queue_next(queue->core,
						   vdi_grpc_timespec(queue->stopped ? VD_NEVER : due), NULL);
		if (event.type == GRPC_QUEUE_SHUTDOWN)
			break;
		if (event.type == GRPC_OP_COMPLETE)
			run_tag(queue, &event, vd_mono_since(vd_env_now(queue->env), asked).ns >= SLEPT.ns);
	}
	running = NULL;
	vd_actor_close(queue->actor, finish, queue);
}

vd_status vdi_grpc_queue_new(const struct vd_env *env, const struct vdi_grpc_queue_options *options,
			     struct vdi_grpc_queue **ret_queue)
{
	struct vdi_grpc_queue  *queue = VDI_NEW(struct vdi_grpc_queue);
	struct vd_actor_options actor_options = {
		.name = options->name, .run = run_queue, .arg = queue, .blocking = true
	};
	vd_status status;

	if (queue == NULL)
		return VD_NOMEM;
	queue->options = *options;
	queue->env = env;
	status = vd_actor_new(env, &actor_options, &queue->actor);
	if (status != VD_OK) {
		vdi_free(queue);
		return status;
	}
	queue->wake_tag.run = do_nothing;
	vdi_lock_init(&queue->wake_lock, VDI_LOCK_LEAF);
	queue->core = grpc_completion_queue_create_for_next(NULL);
	queue->lame = grpc_lame_client_channel_create("wake", GRPC_STATUS_UNAVAILABLE, "");
	queue->wake_call = grpc_channel_create_call(queue->lame, NULL, 0, queue->core,
						    grpc_slice_from_static_string("/wake"), NULL,
						    gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
	*ret_queue = queue;
	return VD_OK;
}

static void release_wake(struct vdi_grpc_queue *queue)
{
	grpc_call_unref(queue->wake_call);
	grpc_channel_destroy(queue->lame);
	grpc_completion_queue_shutdown(queue->core);
}

struct vdi_grpc_queue *vdi_grpc_queue_free(struct vdi_grpc_queue *queue)
{
	if (queue == NULL)
		return NULL;
	release_wake(queue);
	while (grpc_completion_queue_next(queue->core, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
	       GRPC_QUEUE_SHUTDOWN)
		;
	grpc_completion_queue_destroy(queue->core);
	vd_actor_close(queue->actor, NULL, NULL); /* the actor has never run, so it does not use the queue */
	vdi_lock_fini(&queue->wake_lock);
	vdi_free(queue);
	return NULL;
}

void vdi_grpc_queue_start(struct vdi_grpc_queue *queue)
{
	atomic_store(&queue->wanted, true);
	vd_actor_wake(queue->actor);
}

void vdi_grpc_queue_wake(struct vdi_grpc_queue *queue)
{
	grpc_call_error error;

	if (atomic_exchange(&queue->wanted, true) || running == queue)
		return;
	vdi_lock_acquire(&queue->wake_lock);
	vdi_grpc_tag_hand(&queue->wake_tag);
	error = grpc_call_start_batch(queue->wake_call, NULL, 0, &queue->wake_tag, NULL);
	VDI_CHECK(error == GRPC_CALL_OK);
	vdi_lock_release(&queue->wake_lock);
}

void vdi_grpc_queue_stop(struct vdi_grpc_queue *queue)
{
	VDI_CHECK(running == queue && !queue->stopped);
	queue->stopped = true;
	/* The last waker may still hold the lock. */
	vdi_lock_acquire(&queue->wake_lock);
	vdi_lock_release(&queue->wake_lock);
	release_wake(queue);
}

bool vdi_grpc_queue_is_own(const struct vdi_grpc_queue *queue)
{
	return running == queue;
}

grpc_completion_queue *vdi_grpc_queue_core(struct vdi_grpc_queue *queue)
{
	return queue->core;
}
