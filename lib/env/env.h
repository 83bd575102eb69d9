/* The members of struct vd_env, and the log functions of the library. Only lib/ accesses the members. */
#ifndef VDI_ENV_H
#define VDI_ENV_H

#include <stdatomic.h>

#include "base.h"
#include "clock.h"
#include "rand.h"

struct vdi_metrics;
struct vdi_sim;
struct vdi_disk;

#define VDI_EXECUTORS_NUMBERED 64

struct vd_env {
	/* Fixed at creation. */
	const struct vdi_clock *clock;
	vd_log_fn		log;
	void		       *log_arg;
	enum vd_log_level	log_level;
	uint64_t		seed;
	struct vd_executor	executor;
	void (*executor_free)(void *executor); /* blocks until the executor has no work left */
	struct vdi_metrics *metrics;
	struct vdi_metric  *suppressed; /* log records suppressed by rate limits */
	struct vdi_sim	   *sim;	/* NULL outside the simulator */
	/* NULL: a thread that waits sleeps. Else (simulator) it runs the env until the condition is true.
	 * False: limit has passed, or no further event is possible. */
	bool (*drive)(struct vd_env *env, bool (*condition)(void *arg), void *arg, vd_dur limit);
	struct vdi_disk *disk; /* NULL: the real one */

	/* Any thread; atomic. A pointer, so that a const env can be used. */
	struct vdi_rand_shared *random;
	struct vdi_rand_shared	random_storage;

	/* Likewise: the executors that have a number, at index number - 1. */
	_Atomic(const void *) *executors;
	_Atomic(const void *)  executors_storage[VDI_EXECUTORS_NUMBERED];
};

/* Creates an env without executor, for the constructors of both kinds of env. seed 0: taken from the
 * operating system. */
VDI_MUST_USE vd_status vdi_env_new(const struct vd_env_options *options, const struct vdi_clock *clock,
				   struct vd_env **ret_env);

/* The env's executor, a pool of threads or the simulator; valid as long as the env. */
const struct vd_executor *vdi_env_executor(const struct vd_env *env);
/* A number that identifies an executor (member executor of struct vd_executor) in dumps instead of its
 * address: 1 for the first one requested, and so on; 0: too many. Any thread. */
unsigned vdi_env_executor_number(const struct vd_env *env, const void *executor);
/* Registry of the metric instances (lib/env/metrics.h). */
struct vdi_metrics *vdi_env_metrics(const struct vd_env *env);
/* NULL if the env is not simulated (lib/sim/actor_sim.h). */
struct vdi_sim *vdi_env_sim(const struct vd_env *env);

/* ---- Logs ----
 *
 * The code that decides how to handle a failure logs it, once; functions that return a status do not log. Any
 * thread. The arguments are not evaluated if the level is disabled. A message is one sentence, cut at
 * VDI_LOG_MESSAGE_SIZE. */

#define VDI_LOG_MESSAGE_SIZE 512

static inline bool vdi_log_is_on(const struct vd_env *env, enum vd_log_level level)
{
	return env->log && level <= env->log_level;
}

#define vdi_log(env, level, module, ...)                                                                     \
	do {                                                                                                 \
		if (vdi_log_is_on(env, level))                                                               \
			vdi_log_write(env, level, module, NULL, 0, __VA_ARGS__);                             \
	} while (0)

/* With key=value fields; fields and count are evaluated only if the level is enabled. */
#define vdi_log_fields(env, level, module, fields, count, ...)                                               \
	do {                                                                                                 \
		if (vdi_log_is_on(env, level))                                                               \
			vdi_log_write(env, level, module, fields, count, __VA_ARGS__);                       \
	} while (0)

/* At most one record per interval; the field "suppressed" of the next one counts the records left out. */
struct vdi_log_limit {
	vd_dur		 interval;
	_Atomic int64_t	 open_at_ns; /* monotonic time; 0: now */
	_Atomic uint64_t suppressed;
};
#define VDI_LOG_LIMIT(duration)                                                                              \
	{                                                                                                    \
		.interval = duration                                                                         \
	}

#define vdi_log_limited(env, limit, level, module, ...)                                                      \
	do {                                                                                                 \
		uint64_t vdi_log_suppressed_;                                                                \
		if (vdi_log_is_on(env, level) && vdi_log_limit_pass(env, limit, &vdi_log_suppressed_))       \
			vdi_log_write_suppressed(env, level, module, vdi_log_suppressed_, __VA_ARGS__);      \
	} while (0)

VDI_SHARED bool vdi_log_limit_pass(const struct vd_env *env, struct vdi_log_limit *limit,
				   uint64_t *ret_suppressed);
void		vdi_log_write(const struct vd_env *env, enum vd_log_level level, const char *module,
			      const struct vd_log_field *fields, size_t field_count, const char *format, ...)
	__attribute__((format(printf, 6, 7)));
VDI_SHARED void vdi_log_write_suppressed(const struct vd_env *env, enum vd_log_level level,
					 const char *module, uint64_t suppressed, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

#endif
