/* One thread with a libevent event_base, which also runs actors.
 *
 * Actors of a loop run on the loop's thread, between its I/O callbacks, so they may use what belongs to that
 * thread without a lock. Wakes and timers may come from any thread; they coalesce into one write to an
 * eventfd while the loop sleeps, and need none from the loop's own thread. Timers of actors are exact to some
 * ten microseconds; libevent's own timers go by a coarse clock and may be 8 ms late. The event_base is made
 * without locks: only the loop's thread may touch it once the loop runs.
 *
 *   vdi_loop_new -> (events on vdi_loop_base, actors on vdi_loop_runner) -> vdi_loop_run or vdi_loop_start_thread
 *     -> vdi_loop_stop -> vdi_loop_free
 */
#ifndef VDI_ACTOR_LOOP_H
#define VDI_ACTOR_LOOP_H

#include "base.h"

struct event_base;
struct vdi_loop;

/* VD_NOMEM; VD_IO when the operating system refuses a file descriptor. The env must have the real clock. */
VDI_MUST_USE vd_status vdi_loop_new(const struct vd_env *env, struct vdi_loop **ret_loop);
/* Shows the loop's longest iterations as a metric under this name, which several loops may share. Before it
 * runs; once. VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_loop_set_name(struct vdi_loop *loop, const char *name);
/* Runs the loop in the calling thread until vdi_loop_stop(); a stop that came before makes it return at once.
 * May be called again afterwards. */
void vdi_loop_run(struct vdi_loop *loop);
/* The same in a new thread, which gives the loop its name; vdi_loop_free() joins it. VD_FULL: no thread to be
 * had. */
VDI_MUST_USE vd_status vdi_loop_start_thread(struct vdi_loop *loop, const char *name);
/* Any thread; the loop returns after the actor or event it is in. Does not wait for it. */
void vdi_loop_stop(struct vdi_loop *loop);
/* Stops and joins the loop's thread, runs what closing actors still owe, frees the event_base. Every actor
 * must have been closed (a check), every event freed; not from the loop's own thread. NULL is fine; returns
 * NULL. */
struct vdi_loop *vdi_loop_free(struct vdi_loop *loop);

struct event_base      *vdi_loop_base(struct vdi_loop *loop);
const struct vd_runner *vdi_loop_runner(const struct vdi_loop *loop);
/* The longest iteration since the loop began to run: from the first callback after it waited to the last one
 * before it waits again. */
struct vdi_loop_iteration {
	vd_dur wall; /* begins with the first actor, or callback that called vdi_loop_note_work() */
	/* of the loop's thread, which a busy machine does not lengthen; up to 1 ms too much, 0 while none
	 * took 1 ms */
	vd_dur cpu;
};
/* Any thread; the two are read one after the other. */
struct vdi_loop_iteration vdi_loop_longest_iteration(const struct vdi_loop *loop);
/* First thing in a callback that was added to vdi_loop_base and may take long. Does nothing outside of a
 * loop. */
void vdi_loop_note_work(void);
/* Whether the iteration at hand began at least so long ago. Any thread. */
bool vdi_loop_is_busy(const struct vdi_loop *loop, vd_dur least);
/* Whether the caller is inside the loop's callbacks and actors. */
bool vdi_loop_is_current(const struct vdi_loop *loop);

#endif
