#include "server_command.h"

#include "command_process.h"

static int serve(const struct vdi_server_command *steps, void *server, const struct vdi_command *command,
		 struct vdi_log_settings *log)
{
	struct vd_env *env;
	sigset_t       signals;
	int	       result;

	vdi_command_raise_file_limit();
	if (vdi_command_process_init(log, steps->also_heard, &signals, &env) != VD_OK)
		return vdi_command_failed(command, "cannot start threads");
	result = steps->open(server, env, &signals);
	if (result == VDI_EXIT_OK)
		steps->run(server, &signals);
	steps->end(server);
	(void) vd_env_free(env);
	return result;
}

int vdi_server_command_run(const struct vdi_server_command *steps, void *server,
			   const struct vdi_command *command, int argc, char **argv)
{
	struct vdi_log_settings log = VDI_LOG_SETTINGS_INIT;
	int			result;

	if (steps->read(server, command, argc, argv, &log, &result))
		result = serve(steps, server, command, &log);
	if (steps->fini)
		steps->fini(server);
	return result;
}
