/* The subcommands: each gets its arguments without its own name and returns the exit status: 0, 1 (failed), 2 (usage). */
#ifndef VDI_COMMAND_H
#define VDI_COMMAND_H

int vdi_command_serve(int argc, char **argv);

#endif
