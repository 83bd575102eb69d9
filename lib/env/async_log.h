/* A file to which many threads append lines without waiting for the disk: audit and access logs.
 *
 * A line is copied into memory of bounded size; the log's own thread writes the collected lines. Lines that
 * do not fit or cannot be written are dropped and counted, and the first of them is logged; the program
 * continues. The file may be renamed and reopened at any time (logrotate).
 */
#ifndef VDI_ASYNC_LOG_H
#define VDI_ASYNC_LOG_H

#include "base.h"
#include "env.h"
#include "metrics.h"

struct vdi_async_log;

struct vdi_async_log_options {
	const char *name; /* "audit log"; for messages; a literal */
	const char *path; /* "-": standard output; copied */
	/* lines in memory, not yet written; 0: VDI_ASYNC_LOG_PENDING_MAX */
	size_t		   pending_bytes_max;
	struct vdi_metric *taken; /* counts accepted lines; borrowed until the close, may be NULL */
	struct vdi_metric *lost;  /* counts lines that were rejected or not written */
};

#define VDI_ASYNC_LOG_PENDING_MAX ((size_t) 16 << 20)

/* Opens or creates the file with access for its owner only; a wider mode of an existing file is narrowed,
 * with a warning. Blocks on the disk. VD_IO: it cannot be opened; the message gives the file and the reason.
 * VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_async_log_open(const struct vd_env		     *env,
					  const struct vdi_async_log_options *options,
					  struct vdi_async_log **ret_log, struct vd_error *reterr);
/* Copies the line, which has no newline at its end and none inside; it is then either accepted or counted as
 * lost. Any thread; never blocks. NULL is allowed. */
void vdi_async_log_put(struct vdi_async_log *log, struct vd_bytes line);
/* Reopens the file under its path before the next line is written. If that fails, the old file stays open.
 * Any thread. NULL is allowed. */
void vdi_async_log_reopen(struct vdi_async_log *log);
/* Writes the remaining lines and closes the file. The caller makes sure that no thread calls put any more.
 * Blocks on the disk, and up to a second on a pipe that is not read. NULL is allowed; returns NULL. */
struct vdi_async_log *vdi_async_log_close(struct vdi_async_log *log);

#endif
