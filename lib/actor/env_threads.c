/* Creates and frees the env with real threads. The simulator's env is created in actor_sim.c, and freed here
 * too. */
#include "actor_threads.h"
#include "env.h"
#include "metrics.h"
#include "thread.h"
#include "usage.h"
#include "wait.h"

#define THREADS_DEFAULT_MAX 8
#define THREADS_MAX 1024

vd_status vd_env_new_threads(const struct vd_env_options *given, struct vd_env **ret_env)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;
	struct vd_env	     *env;
	vd_status	      status;

	VDI_REQUIRE(ret_env, NULL);
	if (given && given->size < sizeof(size_t))
		return VD_INVALID_ARGUMENT;
	if (given)
		memcpy(&options, given, VDI_MIN(given->size, sizeof options));
	if (options.threads > THREADS_MAX || (unsigned) options.log_level > VD_LOG_DEBUG)
		return VD_INVALID_ARGUMENT;
	if (options.threads == 0)
		options.threads = VDI_MIN(vdi_thread_processors(), THREADS_DEFAULT_MAX);
	VDI_TRY(vdi_env_new(&options, &vdi_clock_os, &env));
	status = vdi_actor_threads_new(options.threads, &env->executor);
	if (status != VD_OK) {
		vd_env_free(env);
		return status == VD_FULL ? VD_IO : status;
	}
	env->executor_free = vdi_actor_threads_free;
	*ret_env = env;
	return VD_OK;
}

struct vd_env *vd_env_free(struct vd_env *env)
{
	if (env == NULL)
		return NULL;
	vdi_wait_check_close("vd_env_free", "a thread of your own");
	vdi_usage_check_env("vd_env_free", env);
	if (env->executor_free)
		env->executor_free(env->executor.executor);
	vdi_metric_release(env->suppressed);
	vdi_metrics_free(env->metrics);
	vdi_free(env);
	return NULL;
}
