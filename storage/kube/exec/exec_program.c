/* posix_spawn, two pipes, and waitid with WNOWAIT: a program that has ended stays a zombie, and so keeps the
 * id of its group, until the group was killed. */
#include "exec_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "utf8.h"

#define STEP_MS ((int64_t) 100) /* between looks at is_stopped */
#define END_STEP_MS 5		/* between looks at the program, after its output has ended */
#define KEPT_SIZE ((size_t) 512)
#define DRAINS_MAX 128 /* a pipe holds 64 KiB: at least 512 bytes each time */

/* The end of what a program printed on stderr. */
struct tail {
	char   bytes[2 * KEPT_SIZE];
	size_t size;
	bool   is_cut;
};

struct run {
	struct vdi_exec_program *program;
	pid_t			 pid;
	int			 output, errors; /* -1: closed */
	int64_t			 deadline_ms;
	struct tail		 tail;
	/* Why the run failed. */
	vd_status   status;
	char	    fault[128];
	const char *advice; /* or NULL */
};

static int64_t now_ms(void)
{
	return vdi_clock_mono(&vdi_clock_os).ns / 1000000; /* of the program, also in a simulation */
}

/* ---- Text for messages ---- */

/* Escapes the character at text into piece; returns the number of bytes of text. */
static size_t escape_one(const char *text, size_t size, char piece[8])
{
	size_t	      length = vdi_utf8_character(text, size);
	unsigned char byte = (unsigned char) text[0];

	if (length == 2 && byte == 0xC2 && (unsigned char) text[1] < 0xA0)
		length = 0; /* a control character of ISO 8859 */
	if (byte == '\n' || byte == '\t' || byte == '\r' || byte == '\\')
		snprintf(piece, 8, "\\%c",
			 byte == '\n' ? 'n' :
			 byte == '\t' ? 't' :
			 byte == '\r' ? 'r' :
					byte);
	else if (length == 0 || byte < ' ' || byte == 0x7F)
		snprintf(piece, 8, "\\x%02x", byte);
	else
		snprintf(piece, 8, "%.*s", (int) length, text);
	return length ? length : 1;
}

static size_t escaped_size(const char *text, size_t size)
{
	size_t at = 0, total = 0;
	char   piece[8];

	while (at < size) {
		at += escape_one(text + at, size - at, piece);
		total += strlen(piece);
	}
	return total;
}

/* Writes the end of text that fits into ret_text. */
static void escape(const char *text, size_t size, bool is_cut, char *ret_text, size_t ret_text_size)
{
	static const char dots[] = "...";
	size_t		  total, at = 0, room = ret_text_size - sizeof dots, out;
	char		  piece[8];

	for (total = escaped_size(text + at, size - at); total > room; total -= strlen(piece)) {
		at += escape_one(text + at, size - at, piece);
		is_cut = true;
	}
	out = (size_t) snprintf(ret_text, ret_text_size, "%s", is_cut ? dots : "");
	while (at < size) {
		at += escape_one(text + at, size - at, piece);
		out += (size_t) snprintf(ret_text + out, ret_text_size - out, "%s", piece);
	}
}

static bool is_space(char character)
{
	return character == ' ' || character == '\n' || character == '\r' || character == '\t';
}

static void set_printed(struct run *run)
{
	size_t begin = 0, end = run->tail.size;

	while (end > 0 && is_space(run->tail.bytes[end - 1]))
		end--;
	while (!run->tail.is_cut && begin < end && is_space(run->tail.bytes[begin]))
		begin++;
	if (end > begin)
		escape(run->tail.bytes + begin, end - begin, run->tail.is_cut, run->program->printed,
		       sizeof run->program->printed);
}

static void fail(struct run *run, vd_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The first fault is reported. */
static void fail(struct run *run, vd_status status, const char *format, ...)
{
	va_list arguments;

	if (run->status != VD_OK)
		return;
	run->status = status;
	va_start(arguments, format);
	(void) vsnprintf(run->fault, sizeof run->fault, format, arguments);
	va_end(arguments);
}

/* ---- The beginning ---- */

/* Descriptors 0 to 2 may be free in this process, but the program's own are made with them. */
static bool move_up(int *descriptor)
{
	int moved;

	if (*descriptor > STDERR_FILENO)
		return true;
	moved = fcntl(*descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (moved < 0)
		return false;
	(void) close(*descriptor);
	*descriptor = moved;
	return true;
}

static bool make_pipe(int pipes[2])
{
	if (pipe2(pipes, O_CLOEXEC) != 0)
		return false;
	if (move_up(&pipes[0]) && move_up(&pipes[1]))
		return true;
	(void) close(pipes[0]);
	(void) close(pipes[1]);
	return false;
}

/* Returns 0 or an error number. */
static int spawn(struct run *run, int output, int errors)
{
	const struct vdi_exec_program *program = run->program;
	posix_spawn_file_actions_t     actions;
	posix_spawnattr_t	       attributes;
	sigset_t		       none, pipe_only;
	int			       result;

	sigemptyset(&none);
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	if (posix_spawn_file_actions_init(&actions) != 0)
		return ENOMEM;
	if (posix_spawnattr_init(&attributes) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return ENOMEM;
	}
	result = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (result == 0)
		result = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (result == 0)
		result = posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
	posix_spawnattr_setsigmask(&attributes, &none); /* this process has blocked signals */
	posix_spawnattr_setsigdefault(&attributes, &pipe_only);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes,
				 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	if (result == 0)
		result = posix_spawnp(&run->pid, program->command, &actions, &attributes, program->arguments,
				      program->environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return result;
}

/* Returns false if this process is not told how its children end. */
static bool keeps_children(void)
{
	struct sigaction action;

	return sigaction(SIGCHLD, NULL, &action) != 0 ||
	       (action.sa_handler != SIG_IGN && (action.sa_flags & SA_NOCLDWAIT) == 0);
}

/* ---- The output ---- */

/* Reads what is there, at most once. Returns false if there is nothing now. */
static bool read_errors(struct run *run)
{
	struct tail *tail = &run->tail;
	ssize_t	     got;

	if (run->errors < 0)
		return false;
	if (tail->size > KEPT_SIZE) {
		memmove(tail->bytes, tail->bytes + tail->size - KEPT_SIZE, KEPT_SIZE);
		tail->size = KEPT_SIZE;
		tail->is_cut = true;
	}
	got = read(run->errors, tail->bytes + tail->size, sizeof tail->bytes - tail->size);
	if (got > 0)
		tail->size += (size_t) got;
	else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
		(void) close(run->errors);
		run->errors = -1;
	}
	return got > 0;
}

/* Returns true if the run must end. */
static bool is_over(struct run *run)
{
	if (atomic_load(run->program->is_stopped))
		fail(run, VD_CLOSED, "was ended");
	else if (now_ms() >= run->deadline_ms)
		fail(run, VD_TIMEOUT, "took longer than %lld s",
		     (long long) (run->program->timeout_ms / 1000));
	return run->status != VD_OK;
}

/* Waits at most step_ms for bytes. Returns true if there is output. */
static bool wait_for_bytes(struct run *run, int64_t step_ms)
{
	struct pollfd waiting[] = { { .fd = run->output, .events = POLLIN },
				    { .fd = run->errors, .events = POLLIN } };
	int64_t	      left = run->deadline_ms - now_ms();

	if (poll(waiting, VDI_ARRAY_SIZE(waiting), (int) VDI_MAX((int64_t) 0, VDI_MIN(left, step_ms))) <= 0)
		return false;
	if (waiting[1].revents)
		(void) read_errors(run);
	return waiting[0].revents != 0;
}

/* Reads the output to its end. */
static void read_output(struct run *run, char *output, size_t *ret_size)
{
	size_t	size = 0;
	ssize_t got = -1;

	while (got != 0 && !is_over(run)) {
		if (!wait_for_bytes(run, STEP_MS))
			continue;
		got = read(run->output, output + size, VDI_EXEC_OUTPUT_SIZE_MAX + 1 - size);
		size += got > 0 ? (size_t) got : 0;
		if (got < 0 && errno != EINTR)
			fail(run, VD_FORBIDDEN, "has output that cannot be read: %s", strerror(errno));
		if (size > VDI_EXEC_OUTPUT_SIZE_MAX)
			fail(run, VD_FORBIDDEN, "printed more than 1 MiB");
	}
	(void) close(run->output);
	run->output = -1;
	*ret_size = size;
}

/* ---- The end ---- */

enum life { RUNS, ENDED, LOST };

/* LOST: it was reaped by the kernel or another thread, and its id is not ours any more. */
static enum life look(pid_t pid)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t) pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
		return errno == EINTR ? RUNS : LOST;
	return info.si_pid == pid ? ENDED : RUNS;
}

/* Waits for the end of the program or of its time, and ends its group. */
static void end(struct run *run)
{
	enum life life;
	int	  status = 0;
	pid_t	  reaped = -1;

	while ((life = look(run->pid)) == RUNS && !is_over(run))
		(void) wait_for_bytes(run, END_STEP_MS);
	if (life != LOST && kill(-run->pid, SIGKILL) != 0) /* it, and processes that it left */
		(void) kill(run->pid, SIGKILL);		   /* it joined another group */
	for (unsigned i = 0; i < DRAINS_MAX && read_errors(run); i++)
		;
	while (life != LOST && (reaped = waitpid(run->pid, &status, 0)) < 0 && errno == EINTR)
		;
	if (reaped != run->pid)
		fail(run, VD_FORBIDDEN,
		     "ended with an unknown status: this process ignores SIGCHLD or waits for all its "
		     "children");
	else if (WIFSIGNALED(status))
		fail(run, VD_FORBIDDEN, "was ended by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		fail(run, VD_FORBIDDEN, "failed with status %d", WEXITSTATUS(status));
}

static void run_to_end(struct run *run, int output, int errors, char *output_text, size_t *ret_size)
{
	struct vdi_exec_program *program = run->program;
	int			 result = keeps_children() ? spawn(run, output, errors) : ECHILD;

	(void) close(output);
	(void) close(errors);
	if (result == 0) {
		read_output(run, output_text, ret_size);
		end(run);
	} else if (result == ECHILD)
		fail(run, VD_FORBIDDEN, "cannot be run while this process ignores SIGCHLD");
	else {
		fail(run, result == ENOMEM ? VD_NOMEM : VD_FORBIDDEN, "cannot be run: %s", strerror(result));
		run->advice = program->hint;
	}
}

vd_status vdi_exec_program_run(struct vdi_exec_program *program, char *output, size_t *ret_size,
			       struct vd_error *reterr)
{
	struct run run = {
		.program = program, .output = -1, .errors = -1, .deadline_ms = now_ms() + program->timeout_ms
	};
	int outputs[2], errors[2];

	program->printed[0] = 0;
	escape(program->command, strlen(program->command), false, program->name, sizeof program->name);
	if (!make_pipe(outputs))
		return vd_error_set(reterr, VD_FORBIDDEN, "cannot make a pipe: %s", strerror(errno));
	if (!make_pipe(errors)) {
		(void) close(outputs[0]);
		(void) close(outputs[1]);
		return vd_error_set(reterr, VD_FORBIDDEN, "cannot make a pipe: %s", strerror(errno));
	}
	run.output = outputs[0];
	run.errors = errors[0];
	(void) fcntl(run.errors, F_SETFL, O_NONBLOCK);
	run_to_end(&run, outputs[1], errors[1], output, ret_size);
	if (run.output >= 0)
		(void) close(run.output);
	if (run.errors >= 0)
		(void) close(run.errors);
	set_printed(&run);
	if (run.status == VD_OK)
		return VD_OK;
	return vd_error_set(reterr, run.status, "the credential program \"%s\" %s%s%s", program->name,
			    run.fault,
			    run.advice		? ". " :
			    program->printed[0] ? ": " :
						  "",
			    run.advice ? run.advice : program->printed);
}
