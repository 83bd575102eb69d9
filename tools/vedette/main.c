/* The program: runs the subcommand. */
#include <stdio.h>
#include <vedette/vedette.h>

#include "command_line.h"

static const struct vdi_command *const commands[] = {
	&vdi_command_serve,
#if VDI_ETCD
	&vdi_command_etcd,
#endif
	&vdi_command_get,    &vdi_command_watch,
#if VDI_ETCD
	&vdi_command_record, &vdi_command_verify,
#endif
	&vdi_command_replay, &vdi_command_kubeconfig,
};

static const struct vdi_command *find(const char *name)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(commands); i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static void print_help(FILE *file)
{
	fprintf(file, "vedette: a Kubernetes-style watch cache and its store\n\n"
		      "Usage: vedette COMMAND [options]\n\nCommands:\n");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(commands); i++)
		fprintf(file, "  %-12s%s\n", commands[i]->name, commands[i]->summary);
	fprintf(file, "  %-12s%s\n", "help", "Show the help of a command.");
	fprintf(file, "\nFor the options of a command: vedette COMMAND --help. For the version: vedette "
		      "--version. Manual: man vedette\n");
}

static int help(int argc, char **argv)
{
	static char		  flag[] = "--help";
	const struct vdi_command *command = argc > 2 ? find(argv[2]) : NULL;

	if (argc > 2 && command == NULL) {
		fprintf(stderr, "vedette help: unknown command \"%s\"\n", argv[2]);
		return VDI_EXIT_USAGE;
	}
	if (command) {
		char *arguments[] = { argv[2], flag, NULL };

		return command->run(command, 2, arguments);
	}
	print_help(stdout);
	return VDI_EXIT_OK;
}

int main(int argc, char **argv)
{
	const struct vdi_command *command = argc > 1 ? find(argv[1]) : NULL;

	if (command)
		return command->run(command, argc - 1, argv + 1);
	if (argc > 1 &&
	    (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return help(argc, argv);
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		printf("vedette %s\n", vd_version());
		return VDI_EXIT_OK;
	}
	if (argc > 1)
		fprintf(stderr, "vedette: unknown command \"%s\"\n\n", argv[1]);
	print_help(stderr);
	return VDI_EXIT_USAGE;
}
