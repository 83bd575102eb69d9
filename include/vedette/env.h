/* The seam between vedette and the world.
 *
 * Everything in vedette that needs time, randomness, threads, files' durability or a place for log records takes it from a struct vd_env.
 * Production, unit test and simulation differ only by the env that is passed in; nothing below a constructor asks the operating
 * system for time, random numbers or a thread. An env is created once, given to constructors, and must outlive what was built
 * with it.
 *
 *   vd_env_new_threads()  real clock, a small pool of threads           (programs, stress tests)
 *   vdi_env_new_sim()     simulated clock, one thread, seeded order     (lib/sim/actor_sim.h; tests)
 *
 * Actors take the place that goroutines have upstream: a handler that never waits, run on one thread at a time.
 *
 * Calls that block, those named _wait and those that say so, may need the very thread that a handler occupies. Inside the handler of an actor (but for a blocking one), and
 * inside callbacks that come on such a thread, they return VD_INVALID_ARGUMENT with a sentence; those without a reterr log it. Those that return no status, such as
 * vd_cacher_close_wait, stop the program with it. Handlers on a runner of the embedder's own are not recognised.
 */
#ifndef VEDETTE_ENV_H
#define VEDETTE_ENV_H

#include <stdbool.h>
#include <vedette/bytes.h>
#include <vedette/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_env;

/* ---- Logs ---- */

enum vd_log_level { VD_LOG_ERROR, VD_LOG_WARNING, VD_LOG_INFO, VD_LOG_DEBUG };

struct vd_log_field {
	const char *key;
	const char *value;
};

/* One record. All pointers are lent for the call. */
struct vd_log_record {
	vd_wall			   time;
	enum vd_log_level	   level;
	const char		  *module;  /* "mvcc", "cacher", ... */
	const char		  *message; /* one sentence, no newline */
	const struct vd_log_field *fields;
	size_t			   field_count;
};

/* May be called from any thread, several at once; must not call back into vedette and should not block for long. */
typedef void (*vd_log_fn)(void *arg, const struct vd_log_record *record);

/* ---- Allocation ---- */

/* All memory of vedette comes from one process-wide allocator, malloc unless replaced before the first vd_env exists. release is
 * given the size that was allocated. allocate returns memory aligned for any type, or NULL. */
struct vd_allocator {
	void *(*allocate)(void *arg, size_t size);
	void *(*reallocate)(void *arg, void *memory, size_t old_size, size_t new_size);
	void (*release)(void *arg, void *memory);
	void *arg;
};
/* Call before anything else, from one thread. VD_INVALID_ARGUMENT once memory is in use. */
VD_API vd_status vd_allocator_install(const struct vd_allocator *allocator);

/* ---- Actors ---- */

struct vd_actor;

struct vd_actor_options {
	const char *name;	   /* lent for ever: a literal */
	void (*run)(void *arg);	   /* the handler; see below */
	void *arg;
	bool  blocking;		   /* the handler blocks in system calls (fdatasync), or in calls named _wait: it gets a thread of its own */
};

/* What a pool of threads, an event loop or the simulator must offer. An embedder may bring its own.
 *
 * run is called after each wake and when the timer is due; never twice at the same time for one actor, and all memory effects
 * before vd_actor_wake() are visible to the run that follows it. Wakes coalesce: many wakes before a run cause one run. A
 * handler never waits; it does a bounded amount of work and wakes itself when there is more. Which of the runner's threads runs it is
 * the runner's business: it can be one that also reads from a network, for which a handler that waits would be doubly bad. */
struct vd_runner_ops {
	vd_status (*actor_new)(void *runner, const struct vd_actor_options *options, struct vd_actor **ret_actor);
	void (*actor_wake)(struct vd_actor *actor);
	void (*actor_set_timer)(struct vd_actor *actor, vd_mono due);
	void (*actor_close)(struct vd_actor *actor, void (*done)(void *arg), void *arg);
};

/* First member of every actor implementation. */
struct vd_actor {
	const struct vd_runner_ops *ops;
};

struct vd_runner {
	const struct vd_runner_ops *ops;
	void			   *runner; /* passed to actor_new */
};

/* Creates a sleeping actor; nothing runs before the first wake or timer. VD_NOMEM, VD_FULL, VD_CLOSED. */
VD_API VD_MUST_USE vd_status vd_actor_new(const struct vd_env *env, const struct vd_actor_options *options, struct vd_actor **ret_actor);
/* The same on a given runner, such as one event loop's. */
VD_API VD_MUST_USE vd_status vd_runner_actor_new(const struct vd_runner *runner, const struct vd_actor_options *options,
						 struct vd_actor **ret_actor);
/* Any thread, the handler included; never blocks, never runs the handler inside the call. Not after vd_actor_close: where the handler closes its own actor because
 * a flag says so, set the flag and wake under one lock, and read it under that lock. Locks may be held. */
VD_API void vd_actor_wake(struct vd_actor *actor);
/* Replaces the one timer of the actor; VD_NEVER clears it. Any thread that may call wake; best from the handler itself. The run that
 * a timer causes does not clear anything else; the handler looks at its own deadlines. */
VD_API void vd_actor_set_timer(struct vd_actor *actor, vd_mono due);
/* No further run starts. done (may be NULL) is called exactly once, from some thread of the runner and never inside the handler, when no run
 * is under way; the actor's memory is gone then. After the call, only done may touch what arg of the actor points at. Calling from the
 * handler itself is legal. vd_actor_close(NULL, done, arg) calls done at once. */
VD_API void vd_actor_close(struct vd_actor *actor, void (*done)(void *arg), void *arg);

/* ---- The env ---- */

struct vd_env_options {
	size_t		  size;		/* sizeof(struct vd_env_options) */
	unsigned	  threads;	/* pool threads; 0: number of processors, at most 8 */
	vd_log_fn	  log;		/* NULL: records are dropped */
	void		 *log_arg;
	enum vd_log_level log_level;	/* records above this are not built */
	uint64_t	  seed;		/* 0: from the operating system */
};
#define VD_ENV_OPTIONS_INIT { sizeof(struct vd_env_options), 0, 0, 0, VD_LOG_INFO, 0 }

/* options may be NULL. VD_NOMEM, VD_IO (no threads). */
VD_API VD_MUST_USE vd_status vd_env_new_threads(const struct vd_env_options *options, struct vd_env **ret_env);
/* Everything built with env must be closed before, watchers and watches too: else the program stops with a message that names what is open and the call that closes it. What is closing
 * need not have told its done. Lists, changes, objects and records may be freed later. Blocks until its threads have ended; not from a handler (the program stops).
 * NULL is fine; returns NULL. */
VD_API struct vd_env *vd_env_free(struct vd_env *env);

/* Any thread; never block. */
VD_API vd_mono	vd_env_now(const struct vd_env *env);
VD_API vd_wall	vd_env_wall(const struct vd_env *env);
VD_API uint64_t vd_env_random(const struct vd_env *env);
/* Uniform in [0, bound); bound > 0. */
VD_API uint64_t vd_env_random_below(const struct vd_env *env, uint64_t bound);

#ifdef __cplusplus
}
#endif
#endif
