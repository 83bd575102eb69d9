/* Runs a function in a child process, where it must fail a check; the text it wrote to stderr is compared. */
#ifndef EXPECT_PANIC_H
#define EXPECT_PANIC_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vdtest.h"

static inline void expect_panic(void (*function)(void), const char *expected)
{
	char	text[8192];
	size_t	size = 0;
	ssize_t got;
	int	fds[2];
	int	exit_status;
	pid_t	child;

	assert_int_equal(pipe(fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		dup2(fds[1], STDERR_FILENO);
		function();
		_exit(0);
	}
	close(fds[1]);
	while (size < sizeof text - 1 && (got = read(fds[0], text + size, sizeof text - 1 - size)) > 0)
		size += (size_t) got;
	text[size] = 0;
	close(fds[0]);
	assert_int_equal(waitpid(child, &exit_status, 0), child);
	if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0)
		fail_msg("no check failed");
	if (strstr(text, expected) == NULL)
		fail_msg("expected \"%s\" in: %s", expected, text);
}

#endif
