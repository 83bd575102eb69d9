/* A file that lines are appended to by many threads, none of which waits for the disk: audit and access logs.
 *
 * A line is copied into memory of a bounded size; a thread of the log's own writes what has come together.
 * What does not fit, and what cannot be written, is lost and counted, and said once; the program goes on. The
 * file may be renamed and opened anew at any time (logrotate).
 */
#ifndef VDI_LINE_LOG_H
#define VDI_LINE_LOG_H

#include "base.h"
#include "env.h"
#include "metrics.h"

struct vdi_line_log;

struct vdi_line_log_options {
	const char	  *name;	      /* "audit log"; for messages; a literal */
	const char	  *path;	      /* "-": standard output; copied */
	size_t		   pending_bytes_max; /* not written yet; 0: VDI_LINE_LOG_PENDING_MAX */
	struct vdi_metric *taken; /* counts lines that were taken; lent until the close, may be NULL */
	struct vdi_metric *lost;  /* counts lines that were not taken, or not written */
};

#define VDI_LINE_LOG_PENDING_MAX ((size_t) 16 << 20)

/* Opens the file, or makes it, readable by its owner only: a wider mode of a file that exists is narrowed,
 * with a warning. Blocks for the disk. VD_IO: it cannot be opened; the message says which and why. VD_NOMEM,
 * VD_FULL. */
VDI_MUST_USE vd_status vdi_line_log_open(const struct vd_env *env, const struct vdi_line_log_options *options,
					 struct vdi_line_log **ret_log, struct vd_error *reterr);
/* Any thread; never blocks. line is copied, without its newline, and must hold none. Afterwards it is taken,
 * or counted as lost. NULL is fine. */
void vdi_line_log_put(struct vdi_line_log *log, struct vd_bytes line);
/* Any thread: the file is opened anew under its path before anything more is written. If it cannot be, the
 * old one is kept. NULL is fine. */
void vdi_line_log_reopen(struct vdi_line_log *log);
/* Writes what is left. Nobody puts any more. Blocks for the disk; for a pipe that nobody reads a second. NULL
 * is fine; returns NULL. */
struct vdi_line_log *vdi_line_log_close(struct vdi_line_log *log);

#endif
