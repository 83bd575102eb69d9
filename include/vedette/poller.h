/* A runner for a loop that the embedder already has.
 *
 * Watches and informers call back on an actor of some runner. Where a program has one thread that waits in poll, epoll, kqueue's like, libuv or GLib, it makes a
 * poller, watches its descriptor for readability, and calls vd_poller_run when it is readable: everything given vd_poller_runner() then runs inside that call,
 * on that thread. No locks, no threads of ours.
 *
 *   struct vd_poller *poller;
 *   vd_poller_new(env, &poller);
 *   sink.runner = vd_poller_runner(poller);	// or options.runner of an informer
 *   for (;;) { poll({ vd_poller_fd(poller), POLLIN }, ...); vd_poller_run(poller); }
 */
#ifndef VEDETTE_POLLER_H
#define VEDETTE_POLLER_H

#include <vedette/env.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_poller;

/* env must have the real clock (else VD_INVALID_ARGUMENT) and outlive the poller. VD_NOMEM; VD_IO when there is no file descriptor to be had. */
VD_API VD_MUST_USE vd_status vd_poller_new(const struct vd_env *env, struct vd_poller **ret_poller);
/* Readable while vd_poller_run has something to do, timers included. Owned by the poller; wait for readability only. */
VD_API int		       vd_poller_fd(const struct vd_poller *poller);
VD_API const struct vd_runner *vd_poller_runner(const struct vd_poller *poller);
/* Runs what is ready, a bounded number of actors, and returns how many ran. Never blocks. One thread at a time; not from inside a callback (the program
 * stops). A thread serves a poller when it was the last to run it, or has made it and nobody has run it yet: there, waits for what runs on the poller are refused. */
VD_API size_t vd_poller_run(struct vd_poller *poller);
/* What was given the runner must have been closed before, and vd_poller_run called until that was told: else the program stops. NULL is fine; returns NULL. */
VD_API struct vd_poller *vd_poller_free(struct vd_poller *poller);

#ifdef __cplusplus
}
#endif
#endif
