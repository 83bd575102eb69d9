/* One run of a credential program: its output, its end and what it printed on stderr.
 *
 * The program runs in its own process group, with /dev/null as stdin. The group is killed once: when the
 * program has ended or its time is over, and before it is reaped, because its id may belong to another
 * process afterwards. Blocks while the program runs. Any thread; one run at a time for each struct. */
#ifndef VDI_EXEC_PROGRAM_H
#define VDI_EXEC_PROGRAM_H

#include <stdatomic.h>

#include "base.h"

#define VDI_EXEC_OUTPUT_SIZE_MAX ((size_t) 1 << 20)
#define VDI_EXEC_NAME_SIZE 84
#define VDI_EXEC_PRINTED_SIZE 232

struct vdi_exec_program {
	/* Set by the caller, borrowed for the run. */
	const char  *command; /* searched in PATH if it has no slash */
	char *const *arguments, *const *environment;
	const char	   *hint; /* how to install it, or NULL */
	int64_t		    timeout_ms;
	const _Atomic bool *is_stopped; /* true: the run ends within 0.2 s */

	/* Results, also of a failed run: the end of the text if it is long, with control characters,
	 * backslashes and bytes that are not UTF-8 escaped (\n, \x1b). */
	char name[VDI_EXEC_NAME_SIZE];	     /* the command, for messages */
	char printed[VDI_EXEC_PRINTED_SIZE]; /* on stderr */
};

/* Runs the program; output has room for VDI_EXEC_OUTPUT_SIZE_MAX + 1 bytes. VD_OK: it ended with status 0.
 * VD_FORBIDDEN: it cannot be run, failed or printed too much, or its status is unknown because this process
 * ignores SIGCHLD; VD_TIMEOUT; VD_CLOSED: it was stopped; VD_NOMEM. The message names the program and ends
 * with what it printed. */
VDI_MUST_USE vd_status vdi_exec_program_run(struct vdi_exec_program *program, char *output, size_t *ret_size,
					    struct vd_error *reterr);

#endif
