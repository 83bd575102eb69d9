/* A poller: runs vedette's callbacks in the event loop of the embedder.
 *
 * Watches and informers call back on an actor of an executor. A program whose event loop waits in poll,
 * epoll, kqueue, libuv or GLib creates a poller, watches its descriptor for readability, and calls
 * vd_poller_run when it is readable. All callbacks of objects that use vd_poller_executor() run inside that
 * call, on that thread, without locks or further threads.
 *
 *   struct vd_poller *poller;
 *   vd_poller_new(env, &poller);
 *   sink.executor = vd_poller_executor(poller);	// or options.executor of an informer
 *   for (;;) { poll({ vd_poller_fd(poller), POLLIN }, ...); vd_poller_run(poller); }
 */
#ifndef VEDETTE_POLLER_H
#define VEDETTE_POLLER_H

#include <vedette/env.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_poller;

/* Creates a poller; the caller owns it. env must have the real clock (otherwise VD_INVALID_ARGUMENT) and
 * outlive the poller. Errors: VD_NOMEM; VD_IO if no file descriptor is available. */
VD_API VD_MUST_USE vd_status vd_poller_new(const struct vd_env *env, struct vd_poller **ret_poller);
/* Returns a descriptor that is readable while vd_poller_run has work, due timers included. The poller owns
 * it; the caller only polls it for readability. */
VD_API int vd_poller_fd(const struct vd_poller *poller);
/* Returns the executor of the poller, for sinks, informers and actors. Borrowed until the poller is freed. */
VD_API const struct vd_executor *vd_poller_executor(const struct vd_poller *poller);
/* Runs a bounded number of ready actors and returns how many ran. Never blocks. One thread at a time may
 * call it; a call inside a callback aborts the program. The thread that called it last (at first, the one
 * that created the poller) is the poller's thread: calls that block until an object of the poller has
 * finished are refused on it. */
VD_API size_t vd_poller_run(struct vd_poller *poller);
/* Frees the poller; poller may be NULL. Returns NULL. All objects that use its executor must be closed, and
 * vd_poller_run must have run until their done callbacks were called: otherwise the program aborts. */
VD_API struct vd_poller *vd_poller_free(struct vd_poller *poller);

#ifdef __cplusplus
}
#endif
#endif
