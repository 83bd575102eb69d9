/* vedette: one program, git-like subcommands. A new one is a row here and a file beside this one. */
#include <stdio.h>
#include <string.h>
#include <vedette/vedette.h>

#include "command.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "serve", vdi_command_serve, "REST list/watch server for kubectl, client-go and the like" },
};

static void help(FILE *to)
{
	(void) fprintf(to, "usage: vedette COMMAND [OPTIONS]\n\ncommands:\n");
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		(void) fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
	(void) fprintf(to, "\nvedette COMMAND --help says more; vedette --version.\n");
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		help(stderr);
		return 2;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		help(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
		(void) printf("vedette %s\n", vd_version());
		return 0;
	}
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 2, argv + 2);
	(void) fprintf(stderr, "vedette: unknown command \"%s\"\n", argv[1]);
	help(stderr);
	return 2;
}
