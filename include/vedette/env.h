/* The environment: clock, randomness, threads, executor and log sink of everything in vedette.
 *
 * Production, unit tests and simulation differ only in the env that is passed to the constructors. No
 * other part of vedette asks the operating system for time, random numbers or a thread. An env must
 * outlive everything that was created with it.
 *
 *   vd_env_new_threads()  real clock and a small thread pool         (programs, stress tests)
 *   vdi_env_new_sim()     simulated clock, one thread, seeded order  (lib/sim/actor_sim.h; tests)
 *
 * Actors take the place of goroutines: an actor has a handler that never waits and that runs on one thread
 * at a time.
 *
 * Calls that block (named _wait, or documented as blocking) may need the thread that a handler occupies.
 * Therefore they return VD_INVALID_ARGUMENT, with an explanation, inside the handler of an actor and
 * inside callbacks that run on such a thread; a call without a reterr logs the explanation. Blocking calls
 * that return no status, such as vd_cacher_close_wait, abort the program instead. Handlers of blocking
 * actors are exempt. Handlers that run on an embedder's own executor are not detected.
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

/* One log record. All pointers are borrowed for the call. */
struct vd_log_record {
	vd_wall			   time;
	enum vd_log_level	   level;
	const char		  *module;  /* such as "mvcc" or "cacher" */
	const char		  *message; /* one sentence, no newline */
	const struct vd_log_field *fields;
	size_t			   field_count;
};

/* Receives log records. Called from any thread, from several threads at once. Must not call vedette and
 * should not block for long. */
typedef void (*vd_log_fn)(void *arg, const struct vd_log_record *record);

/* ---- Allocation ---- */

/* The process-wide allocator of all memory of vedette; the default is malloc. Its functions are called from
 * any thread, several at once. release and reallocate receive the size that was allocated. allocate and
 * reallocate return memory aligned for any type, or NULL. */
struct vd_allocator {
	void *(*allocate)(void *arg, size_t size);
	void *(*reallocate)(void *arg, void *memory, size_t old_size, size_t new_size);
	void (*release)(void *arg, void *memory);
	void *arg;
};
/* Replaces the allocator; copies the struct. Call it from one thread, before any other function of
 * vedette. Error: VD_INVALID_ARGUMENT if a function is NULL, or if vedette already uses memory. */
VD_API vd_status vd_allocator_install(const struct vd_allocator *allocator);

/* ---- Actors ---- */

struct vd_actor;

struct vd_actor_options {
	const char *name;	/* borrowed for the life of the process: a string literal */
	void (*run)(void *arg); /* handler; see struct vd_executor_ops */
	void *arg;
	/* The handler blocks, in system calls (fdatasync) or in calls named _wait; it gets a thread of its
	 * own. */
	bool blocking;
};

/* Interface of an executor: a thread pool, an event loop, or the simulator. An embedder may implement its
 * own.
 *
 * The executor calls run after each wake and when the timer is due, and never twice at the same time for one
 * actor. Memory effects before vd_actor_wake() are visible to the run that follows. Wakes coalesce:
 * several wakes before a run cause one run. A handler never waits; it does a bounded amount of work and
 * wakes its own actor if work is left. The executor chooses the thread; it can be an event-loop thread that
 * also reads from sockets, which a waiting handler would stall. */
struct vd_executor_ops {
	vd_status (*actor_new)(void *executor, const struct vd_actor_options *options,
			       struct vd_actor **ret_actor);
	void (*actor_wake)(struct vd_actor *actor);
	void (*actor_set_timer)(struct vd_actor *actor, vd_mono due);
	void (*actor_close)(struct vd_actor *actor, void (*done)(void *arg), void *arg);
};

/* First member of every actor implementation. */
struct vd_actor {
	const struct vd_executor_ops *ops;
};

struct vd_executor {
	const struct vd_executor_ops *ops;
	void			     *executor; /* passed to actor_new */
};

/* Creates an actor on the env's executor. Its handler does not run before the first wake or timer. Errors:
 * VD_NOMEM, VD_FULL, VD_CLOSED. */
VD_API VD_MUST_USE vd_status vd_actor_new(const struct vd_env *env, const struct vd_actor_options *options,
					  struct vd_actor **ret_actor);
/* Creates an actor on the given executor, such as an event loop. Errors as for vd_actor_new. */
VD_API VD_MUST_USE vd_status vd_executor_actor_new(const struct vd_executor	 *executor,
						   const struct vd_actor_options *options,
						   struct vd_actor		**ret_actor);
/* Schedules a run of the handler. May be called from any thread, including the handler, and while locks
 * are held. Never blocks; never runs the handler inside the call. Must not be called after vd_actor_close.
 * If the handler closes its own actor because of a flag, other threads must set the flag and wake the
 * actor under one lock, and the handler must read the flag under that lock. */
VD_API void vd_actor_wake(struct vd_actor *actor);
/* Replaces the actor's only timer; VD_NEVER clears it. May be called wherever vd_actor_wake may be called;
 * calling it from the handler is best. The handler is not told whether a wake or the timer caused a run:
 * it compares its own deadlines with the clock. */
VD_API void vd_actor_set_timer(struct vd_actor *actor, vd_mono due);
/* Closes the actor: no further run starts. done (may be NULL) is called exactly once, on a thread of the
 * executor and never inside the handler, when no run is in progress and the actor's memory is freed. After
 * this call only done may use the arg of the actor. May be called from the handler itself. If actor is
 * NULL, done is called before this function returns. */
VD_API void vd_actor_close(struct vd_actor *actor, void (*done)(void *arg), void *arg);

/* ---- The env ---- */

struct vd_env_options {
	size_t		  size;	   /* sizeof(struct vd_env_options) */
	unsigned	  threads; /* size of the thread pool; 0: number of processors, at most 8 */
	vd_log_fn	  log;	   /* NULL: records are discarded */
	void		 *log_arg;
	enum vd_log_level log_level; /* records of a higher level are not built */
	uint64_t	  seed;	     /* seed of the random numbers; 0: from the operating system */
};
#define VD_ENV_OPTIONS_INIT                                                                                  \
	{                                                                                                    \
		sizeof(struct vd_env_options), 0, 0, 0, VD_LOG_INFO, 0                                       \
	}

/* Creates an env with the real clock and a thread pool. options may be NULL: the defaults. Errors:
 * VD_NOMEM; VD_IO if a thread cannot be started. */
VD_API VD_MUST_USE vd_status vd_env_new_threads(const struct vd_env_options *options,
						struct vd_env		   **ret_env);
/* Frees the env; blocks until its threads have ended. env may be NULL. Returns NULL. Everything created
 * with env, including watchers and watches, must be closed before: otherwise the program aborts with a
 * message that names each open object and the call that closes it. An object whose close was called need
 * not have called its done callback yet. Lists, changes, objects and records may be freed later. Aborts
 * the program if called from an actor's handler. */
VD_API struct vd_env *vd_env_free(struct vd_env *env);

/* The following four functions may be called from any thread and never block. */

/* Returns the monotonic time. */
VD_API vd_mono vd_env_now(const struct vd_env *env);
/* Returns the time of day. */
VD_API vd_wall vd_env_wall(const struct vd_env *env);
/* Returns 64 random bits. */
VD_API uint64_t vd_env_random(const struct vd_env *env);
/* Returns a uniformly distributed number in [0, bound); bound must be above 0. */
VD_API uint64_t vd_env_random_below(const struct vd_env *env, uint64_t bound);

#ifdef __cplusplus
}
#endif
#endif
