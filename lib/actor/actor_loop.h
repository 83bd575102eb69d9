/* One thread with a libevent event_base, which also runs actors.
 *
 * Actors of a loop run on the loop's thread, between its I/O callbacks, so they use data of that thread
 * without a lock. Any thread may wake them and set their timers. While the loop sleeps, all wakes together
 * cost one write to an eventfd; wakes from the loop's own thread cost none. Timers of actors are exact to
 * some ten microseconds; libevent's own timers use a coarse clock and may be 8 ms late. The event_base has no
 * locks: only the loop's thread may use it once the loop runs.
 *
 *   vdi_loop_new -> (events on vdi_loop_base, actors on vdi_loop_executor)
 *     -> vdi_loop_run or vdi_loop_start_thread -> vdi_loop_stop -> vdi_loop_free
 */
#ifndef VDI_ACTOR_LOOP_H
#define VDI_ACTOR_LOOP_H

#include "base.h"

struct event_base;
struct vdi_loop;

/* VD_NOMEM. VD_IO: the operating system refuses a file descriptor. The env must have the real clock. */
VDI_MUST_USE vd_status vdi_loop_new(const struct vd_env *env, struct vdi_loop **ret_loop);
/* Exports the loop's longest iterations as a metric with this name, which several loops may share. Call it at
 * most once, before the loop runs. VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_loop_set_name(struct vdi_loop *loop, const char *name);
/* Runs the loop in the calling thread until vdi_loop_stop(); returns at once if that was called before. May
 * be called again afterwards. */
void vdi_loop_run(struct vdi_loop *loop);
/* Runs the loop in a new thread with this name; vdi_loop_free() joins it. VD_FULL: no thread available. */
VDI_MUST_USE vd_status vdi_loop_start_thread(struct vdi_loop *loop, const char *name);
/* Stops the loop after the actor or event that it is running; does not wait for that. Any thread. */
void vdi_loop_stop(struct vdi_loop *loop);
/* Stops the loop, joins its thread, calls the pending done callbacks of closing actors, and frees the
 * event_base. All actors must have been closed (checked) and all events freed. Not from the loop's own
 * thread. NULL is allowed; returns NULL. */
struct vdi_loop *vdi_loop_free(struct vdi_loop *loop);

struct event_base	 *vdi_loop_base(struct vdi_loop *loop);
const struct vd_executor *vdi_loop_executor(const struct vdi_loop *loop);
/* The longest iteration so far: from the first callback after the loop waited to the last one before it waits
 * again. */
struct vdi_loop_iteration {
	vd_dur wall; /* from the first actor, or the first callback that called vdi_loop_note_work() */
	/* CPU time of the loop's thread, which does not grow on a busy machine; up to 1 ms too high; 0 until
	 * an iteration took 1 ms */
	vd_dur cpu;
};
/* Any thread; wall and cpu are not read atomically together. */
struct vdi_loop_iteration vdi_loop_longest_iteration(const struct vdi_loop *loop);
/* Marks the start of work. Call it first in each callback of vdi_loop_base that may take long. No effect
 * outside of a loop. */
void vdi_loop_note_work(void);
/* Returns true if the current iteration began at least this long ago. Any thread. */
bool vdi_loop_is_busy(const struct vdi_loop *loop, vd_dur least);
/* Returns true inside the loop's callbacks and actors. */
bool vdi_loop_is_current(const struct vdi_loop *loop);

#endif
