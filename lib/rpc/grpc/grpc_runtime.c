/* The list of users is the only global state of lib/rpc/grpc, because core's log function has no argument. A
 * plain mutex protects it, also while the log sink runs, so that no user leaves while its log is written. A
 * sink must not call back (vedette/env.h), so this cannot deadlock. */
#include <stdlib.h>

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include "env.h"
#include "grpc_runtime.h"
#include "lock.h"

static pthread_mutex_t	     users_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vdi_grpc_user *users;
static struct vdi_log_limit  log_limit = { .interval = { INT64_C(10000000000) } };

static void write_log(gpr_log_func_args *args)
{
	enum vd_log_level level = args->severity == GPR_LOG_SEVERITY_ERROR ? VD_LOG_WARNING :
				  args->severity == GPR_LOG_SEVERITY_INFO  ? VD_LOG_INFO :
									     VD_LOG_DEBUG;

	pthread_mutex_lock(&users_lock);
	if (users)
		vdi_log_limited(users->env, &log_limit, level, "grpc", "%s", args->message);
	pthread_mutex_unlock(&users_lock);
}

void vdi_grpc_runtime_enter(struct vdi_grpc_user *user, const struct vd_env *env)
{
	gpr_set_log_function(write_log);
	if (getenv("GRPC_VERBOSITY") == NULL)
		gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
	user->env = env;
	pthread_mutex_lock(&users_lock);
	user->next = users;
	users = user;
	pthread_mutex_unlock(&users_lock);
	grpc_init();
}

void vdi_grpc_runtime_leave(struct vdi_grpc_user *user)
{
	if (user->env == NULL)
		return;
	grpc_shutdown_blocking();
	pthread_mutex_lock(&users_lock);
	for (struct vdi_grpc_user **link = &users; *link; link = &(*link)->next) {
		if (*link == user) {
			*link = user->next;
			break;
		}
	}
	pthread_mutex_unlock(&users_lock);
	*user = (struct vdi_grpc_user) { 0 };
}
