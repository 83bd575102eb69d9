/* Two buffers: one collects lines under the lock, a blocking actor writes the other; then they swap. If a
 * write fails in the middle of a line, the file is truncated to its last complete line (unless it is a pipe),
 * so that readers see no partial line. A crash of the process loses the lines of the last milliseconds. */
#include "async_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buffer.h"
#include "lock.h"
#include "wait.h"

/* Lines are collected for this time or up to this size, because waking a thread for each line costs more than
 * the request that the line is about. */
#define BATCH_DELAY VD_MS(5)
#define BATCH_SIZE ((size_t) 512 << 10)
/* Maximum time that closing waits for the reader of a pipe that does not read. */
#define POLL_MS 100
#define POLLS_AT_THE_END 10

struct batch {
	struct vdi_buffer text;
	uint64_t	  lines;
};

struct vdi_async_log {
	/* Fixed at creation. */
	const struct vd_env	    *env;
	struct vdi_async_log_options options;
	char			    *path;
	struct vd_actor		    *actor;
	struct vdi_log_limit	     full_reported;
	size_t			     batch_size;

	/* Actor only. */
	int	     fd;
	bool	     is_file; /* else a pipe or terminal: writes may block until it is read */
	struct batch writing;
	bool	     is_failing;
	uint64_t     lost_count; /* since it began to fail */

	_Atomic bool is_closing;

	/* Under lock. */
	struct vdi_lock	     lock;
	struct vdi_condition changed;
	struct batch	     pending;
	bool		     has_to_reopen;
	bool		     is_writing;
};

static bool is_stdout(const struct vdi_async_log *log)
{
	return strcmp(log->path, "-") == 0;
}

/* Narrows the mode of an existing file, which logrotate or an older version may have created. */
static void narrow(const struct vdi_async_log *log, int fd, mode_t mode)
{
	if ((mode & 077) == 0)
		return;
	if (fchmod(fd, 0600) == 0)
		vdi_log(log->env, VD_LOG_WARNING, "log",
			"%s %s had mode %04o, so other users could access it; it has been changed to 0600",
			log->options.name, log->path, mode & 07777);
	else
		vdi_log(log->env, VD_LOG_WARNING, "log",
			"%s %s has mode %04o, so other users can access it, and the mode cannot be "
			"changed: %s",
			log->options.name, log->path, mode & 07777, strerror(errno));
}

/* Opens without blocking: opening a FIFO that has no reader would block for ever. */
static int open_file(struct vdi_async_log *log)
{
	struct stat attributes;
	int	    fd, flags;

	if (is_stdout(log)) {
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		log->is_file = fd >= 0 && fstat(fd, &attributes) == 0 && S_ISREG(attributes.st_mode);
		return fd;
	}
	fd = open(log->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	flags = fd >= 0 ? fcntl(fd, F_GETFL) : -1;
	if (flags >= 0)
		(void) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	log->is_file = fd >= 0 && fstat(fd, &attributes) == 0 && S_ISREG(attributes.st_mode);
	if (log->is_file)
		narrow(log, fd, attributes.st_mode);
	return fd;
}

/* ---- Writing ---- */

/* Removes a partial line at the end of the file. */
static void cut_torn_line(const struct vdi_async_log *log, size_t torn)
{
	struct stat attributes;

	if (torn && fstat(log->fd, &attributes) == 0 && S_ISREG(attributes.st_mode) &&
	    attributes.st_size >= (off_t) torn)
		(void) !ftruncate(log->fd, attributes.st_size - (off_t) torn);
}

static uint64_t count_lines(const char *text, size_t size, size_t *ret_tail)
{
	const char *end = text + size, *newline;
	uint64_t    count = 0;

	while ((newline = memchr(text, '\n', (size_t) (end - text))) != NULL) {
		count++;
		text = newline + 1;
	}
	*ret_tail = (size_t) (end - text);
	return count;
}

static void note_failure(struct vdi_async_log *log, int error, uint64_t lines)
{
	vdi_metric_add(log->options.lost, lines);
	log->lost_count += lines;
	if (!log->is_failing)
		vdi_log(log->env, VD_LOG_ERROR, "log",
			"%s %s: cannot write: %s; lines are dropped and counted until it can be written "
			"again",
			log->options.name, log->path, strerror(error));
	log->is_failing = true;
}

static void note_success(struct vdi_async_log *log)
{
	if (log->is_failing)
		vdi_log(log->env, VD_LOG_INFO, "log", "%s %s can be written again; %llu lines were lost",
			log->options.name, log->path, (unsigned long long) log->lost_count);
	log->is_failing = false;
	log->lost_count = 0;
}

/* Waits for a pipe whose reader does not read; false: the log is closing and has waited long enough. A pipe
 * that poll reports as writable has room for PIPE_BUF bytes. */
static bool wait_until_writable(const struct vdi_async_log *log)
{
	struct pollfd wanted = { .fd = log->fd, .events = POLLOUT };

	for (unsigned polls = 0; poll(&wanted, 1, POLL_MS) == 0;)
		if (log->is_closing && ++polls == POLLS_AT_THE_END)
			return false;
	return true;
}

static ssize_t write_some(const struct vdi_async_log *log, const char *text, size_t size)
{
	if (log->is_file)
		return write(log->fd, text, size);
	if (wait_until_writable(log))
		return write(log->fd, text, VDI_MIN(size, (size_t) PIPE_BUF));
	errno = ETIMEDOUT;
	return -1;
}

static void write_batch(struct vdi_async_log *log)
{
	const char *text = log->writing.text.data;
	size_t	    size = log->writing.text.size, done = 0, tail;

	while (done < size) {
		ssize_t written = write_some(log, text + done, size - done);

		if (written >= 0) {
			done += (size_t) written;
		} else if (errno != EINTR) {
			int	 error = errno;
			uint64_t whole = count_lines(text, done, &tail);

			cut_torn_line(log, tail);
			note_failure(log, error, log->writing.lines - whole);
			return;
		}
	}
	if (size)
		note_success(log);
}

static void reopen(struct vdi_async_log *log)
{
	int fd = open_file(log);

	if (fd < 0) {
		vdi_log(log->env, VD_LOG_WARNING, "log",
			"%s %s cannot be reopened, the old file stays open: %s", log->options.name, log->path,
			strerror(errno));
		return;
	}
	(void) close(log->fd);
	log->fd = fd;
}

/* Blocks SIGPIPE: a pipe without reader becomes an error like others, also in programs that do not ignore the
 * signal. The thread belongs to the actor. */
static void mute_pipes(void)
{
	sigset_t signals;

	(void) sigemptyset(&signals);
	(void) sigaddset(&signals, SIGPIPE);
	(void) pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

static void run(void *arg)
{
	struct vdi_async_log *log = arg;
	struct batch	      swap;
	bool		      has_to_reopen;

	vdi_lock_acquire(&log->lock);
	swap = log->pending;
	log->pending = log->writing;
	log->writing = swap;
	has_to_reopen = log->has_to_reopen;
	log->has_to_reopen = false;
	log->is_writing = true;
	vdi_lock_release(&log->lock);
	if (has_to_reopen)
		reopen(log);
	if (!log->is_file)
		mute_pipes();
	write_batch(log);
	if (log->writing.text.capacity > BATCH_SIZE * 2) { /* a burst has ended */
		vdi_buffer_fini(&log->writing.text);
		vdi_buffer_init(&log->writing.text, log->options.pending_bytes_max);
	}
	vdi_buffer_clear(&log->writing.text);
	log->writing.lines = 0;
	vdi_lock_acquire(&log->lock);
	log->is_writing = false;
	vdi_condition_broadcast(&log->changed);
	vdi_lock_release(&log->lock);
}

/* ---- Any thread ---- */

/* Appends a line. A buffer whose append failed keeps its content but rejects further appends, so its status
 * is reset. */
static bool append_locked(struct vdi_async_log *log, struct vd_bytes line)
{
	struct vdi_buffer *text = &log->pending.text;
	char		  *place;

	if (line.size >= log->options.pending_bytes_max ||
	    text->size + line.size + 1 > log->options.pending_bytes_max)
		return false;
	place = vdi_buffer_reserve(text, line.size + 1);
	if (place == NULL) {
		text->status = VD_OK; /* out of memory: only this line is lost */
		return false;
	}
	if (line.size)
		memcpy(place, line.data, line.size);
	place[line.size] = '\n';
	vdi_buffer_commit(text, line.size + 1);
	log->pending.lines++;
	return true;
}

void vdi_async_log_put(struct vdi_async_log *log, struct vd_bytes line)
{
	bool is_taken;

	if (log == NULL)
		return;
	vdi_lock_acquire(&log->lock);
	is_taken = append_locked(log, line);
	if (is_taken && log->pending.lines == 1)
		vd_actor_set_timer(log->actor, vd_mono_add(vd_env_now(log->env), BATCH_DELAY));
	if (log->pending.text.size >= log->batch_size)
		vd_actor_wake(log->actor);
	vdi_lock_release(&log->lock);
	if (is_taken) {
		vdi_metric_add(log->options.taken, 1);
		return;
	}
	vdi_metric_add(log->options.lost, 1);
	vdi_log_limited(log->env, &log->full_reported, VD_LOG_ERROR, "log",
			"%s %s: lines arrive faster than they can be written; some are dropped and counted",
			log->options.name, log->path);
}

void vdi_async_log_reopen(struct vdi_async_log *log)
{
	if (log == NULL)
		return;
	vdi_lock_acquire(&log->lock);
	log->has_to_reopen = !is_stdout(log);
	vd_actor_wake(log->actor);
	vdi_lock_release(&log->lock);
}

/* ---- Open and close ---- */

static struct vdi_async_log *free_log(struct vdi_async_log *log)
{
	if (log->fd >= 0)
		(void) close(log->fd);
	vdi_buffer_fini(&log->pending.text);
	vdi_buffer_fini(&log->writing.text);
	vdi_condition_fini(&log->changed);
	vdi_lock_fini(&log->lock);
	vdi_free(log->path);
	vdi_free(log);
	return NULL;
}

vd_status vdi_async_log_open(const struct vd_env *env, const struct vdi_async_log_options *options,
			     struct vdi_async_log **ret_log, struct vd_error *reterr)
{
	struct vdi_async_log   *log = VDI_NEW(struct vdi_async_log);
	struct vd_actor_options actor = { .name = "async_log", .run = run, .blocking = true };
	vd_status		status = VD_OK;

	if (log == NULL)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	log->env = env;
	log->options = *options;
	if (log->options.pending_bytes_max == 0)
		log->options.pending_bytes_max = VDI_ASYNC_LOG_PENDING_MAX;
	log->full_reported.interval = VD_SECONDS(10);
	log->batch_size = VDI_MIN(BATCH_SIZE, log->options.pending_bytes_max / 2);
	log->fd = -1;
	vdi_lock_init(&log->lock, VDI_LOCK_QUEUE);
	vdi_condition_init(&log->changed);
	vdi_buffer_init(&log->pending.text, log->options.pending_bytes_max);
	vdi_buffer_init(&log->writing.text, log->options.pending_bytes_max);
	log->path = vdi_strdup(options->path);
	if (log->path == NULL)
		status = vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	else if ((log->fd = open_file(log)) < 0)
		status = vd_error_set(reterr, VD_IO, "%s %s: %s", options->name, options->path,
				      strerror(errno));
	actor.arg = log;
	if (status == VD_OK && (status = vd_actor_new(env, &actor, &log->actor)) != VD_OK)
		(void) vd_error_set(reterr, status, "%s: %s", options->name, vd_status_sentence(status));
	if (status != VD_OK) {
		(void) free_log(log);
		return status;
	}
	*ret_log = log;
	return VD_OK;
}

struct vdi_async_log *vdi_async_log_close(struct vdi_async_log *log)
{
	if (log == NULL)
		return NULL;
	log->is_closing = true;
	vdi_lock_acquire(&log->lock);
	while (log->pending.lines || log->is_writing || log->has_to_reopen) {
		vd_actor_wake(log->actor);
		vdi_condition_wait(&log->changed, &log->lock);
	}
	vdi_lock_release(&log->lock);
	vdi_wait_for_actor_close(log->env, log->actor);
	return free_log(log);
}
