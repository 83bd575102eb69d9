/* The env combines clock, random numbers, log sink, executor and metrics; each has its own file. The public
 * actor calls are thin: the first word of an actor points to its executor's table, so waking one costs an
 * indirect call and no lookup. */
#include <stdarg.h>
#include <stdio.h>

#include "env.h"
#include "lock.h"
#include "metrics.h"

vd_status vdi_env_new(const struct vd_env_options *options, const struct vdi_clock *clock,
		      struct vd_env **ret_env)
{
	struct vd_env *env = VDI_NEW(struct vd_env);

	if (env == NULL)
		return VD_NOMEM;
	if (vdi_metrics_new(&env->metrics) != VD_OK) {
		vdi_free(env);
		return VD_NOMEM;
	}
	if (vdi_metric_get(env->metrics, VDI_METRIC_LOG_RECORDS_SUPPRESSED_TOTAL, NULL, &env->suppressed) !=
	    VD_OK) {
		vdi_metrics_free(env->metrics);
		vdi_free(env);
		return VD_NOMEM;
	}
	env->clock = clock;
	env->log = options->log;
	env->log_arg = options->log_arg;
	env->log_level = options->log_level;
	env->seed = options->seed ? options->seed : vdi_rand_seed_os();
	vdi_rand_shared_init(&env->random_storage, env->seed);
	env->random = &env->random_storage;
	env->executors = env->executors_storage;
	*ret_env = env;
	return VD_OK;
}

unsigned vdi_env_executor_number(const struct vd_env *env, const void *executor)
{
	for (unsigned i = 0; i < VDI_EXECUTORS_NUMBERED; i++) {
		const void *seen = NULL;

		if (atomic_compare_exchange_strong(&env->executors[i], &seen, executor) || seen == executor)
			return i + 1;
	}
	return 0;
}

vd_mono vd_env_now(const struct vd_env *env)
{
	return vdi_clock_mono(env->clock);
}

vd_wall vd_env_wall(const struct vd_env *env)
{
	return vdi_clock_wall(env->clock);
}

uint64_t vd_env_random(const struct vd_env *env)
{
	return vdi_rand_shared_next(env->random);
}

uint64_t vd_env_random_below(const struct vd_env *env, uint64_t bound)
{
	return vdi_rand_shared_below(env->random, bound);
}

const struct vd_executor *vdi_env_executor(const struct vd_env *env)
{
	return &env->executor;
}

struct vdi_metrics *vdi_env_metrics(const struct vd_env *env)
{
	return env->metrics;
}

struct vdi_sim *vdi_env_sim(const struct vd_env *env)
{
	return env->sim;
}

/* ---- Actors ---- */

vd_status vd_executor_actor_new(const struct vd_executor *executor, const struct vd_actor_options *options,
				struct vd_actor **ret_actor)
{
	VDI_REQUIRE(executor, NULL);
	VDI_REQUIRE(options, NULL);
	VDI_REQUIRE(options->name, NULL);
	VDI_REQUIRE(options->run, NULL);
	VDI_REQUIRE(ret_actor, NULL);
	return executor->ops->actor_new(executor->executor, options, ret_actor);
}

vd_status vd_actor_new(const struct vd_env *env, const struct vd_actor_options *options,
		       struct vd_actor **ret_actor)
{
	VDI_REQUIRE(env, NULL);
	return vd_executor_actor_new(&env->executor, options, ret_actor);
}

void vd_actor_wake(struct vd_actor *actor)
{
	vdi_preempt_point();
	actor->ops->actor_wake(actor);
}

void vd_actor_set_timer(struct vd_actor *actor, vd_mono due)
{
	actor->ops->actor_set_timer(actor, due);
}

void vd_actor_close(struct vd_actor *actor, void (*done)(void *arg), void *arg)
{
	if (actor)
		actor->ops->actor_close(actor, done, arg);
	else if (done)
		done(arg);
}

/* ---- Logs ---- */

static void write_record(const struct vd_env *env, enum vd_log_level level, const char *module,
			 const struct vd_log_field *fields, size_t field_count, const char *format,
			 va_list arguments)
{
	char		     message[VDI_LOG_MESSAGE_SIZE];
	struct vd_log_record record = {
		.time = vd_env_wall(env),
		.level = level,
		.module = module,
		.message = message,
		.fields = fields,
		.field_count = field_count,
	};

	if (vsnprintf(message, sizeof message, format, arguments) < 0)
		message[0] = 0;
	env->log(env->log_arg, &record);
}

void vdi_log_write(const struct vd_env *env, enum vd_log_level level, const char *module,
		   const struct vd_log_field *fields, size_t field_count, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_record(env, level, module, fields, field_count, format, arguments);
	va_end(arguments);
}

void vdi_log_write_suppressed(const struct vd_env *env, enum vd_log_level level, const char *module,
			      uint64_t suppressed, const char *format, ...)
{
	char		    count[24];
	struct vd_log_field field = { "suppressed", count };
	va_list		    arguments;

	snprintf(count, sizeof count, "%llu", (unsigned long long) suppressed);
	va_start(arguments, format);
	write_record(env, level, module, &field, suppressed ? 1 : 0, format, arguments);
	va_end(arguments);
}

bool vdi_log_limit_pass(const struct vd_env *env, struct vdi_log_limit *limit, uint64_t *ret_suppressed)
{
	int64_t now = vd_env_now(env).ns;
	int64_t open_at = atomic_load_explicit(&limit->open_at_ns, memory_order_relaxed);

	/* Several threads may see that the interval is over; only the one that moves open_at passes. */
	if (now < open_at ||
	    !atomic_compare_exchange_strong(&limit->open_at_ns, &open_at, now + limit->interval.ns)) {
		atomic_fetch_add_explicit(&limit->suppressed, 1, memory_order_relaxed);
		vdi_metric_add(env->suppressed, 1);
		return false;
	}
	*ret_suppressed = atomic_exchange_explicit(&limit->suppressed, 0, memory_order_relaxed);
	return true;
}
