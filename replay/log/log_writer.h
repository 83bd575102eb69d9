/* Writing an event log (event_log.h), so that a crash at any moment leaves a log that can be read and written
 * on.
 *
 * Changes are gathered until their transaction is committed; only whole transactions reach the file, each
 * with its commit line. A path that ends in ".zst" is compressed: frames of about a megabyte of text, each
 * ending with a transaction, and at the end the index of zstd's seekable format, so that tools can jump.
 *
 * Logs have checksums (event_log.h), and a closing line when they are closed; a log without checksums that is
 * resumed stays without.
 *
 * After any error the log on disk ends with what was flushed before; only close is of use then. One thread at
 * a time; may block in writes.
 */
#ifndef VDI_LOG_WRITER_H
#define VDI_LOG_WRITER_H

#include "event_log.h"

struct vdi_log_writer;

struct vdi_log_writer_options {
	const char *path;
	bool resume; /* go on with a log that is there; an incomplete transaction at its end is cut off */
	bool strict; /* with resume: such a log is refused instead (VD_BAD_REQUEST) */
	const char *source; /* for the first line: where the log comes from; may be NULL */
	/* dotted paths into values (".data"): what is there keeps its type and loses its content */
	const char *const *redact;
	size_t		   redact_count;
};

/* VD_EXISTS: the file is there and is not empty, and resume was not asked for. With resume *ret_last (may be
 * NULL) is the last revision in the log, 0 for a new one. VD_INVALID_ARGUMENT: a path to redact;
 * VD_BAD_REQUEST: what is there is no event log, or is damaged before its end; VD_IO, VD_NO_SPACE,
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_log_writer_open(const struct vdi_log_writer_options *options,
					   struct vdi_log_writer **ret_writer, vd_rev *ret_last,
					   struct vd_error *reterr);

/* A change of the transaction (or snapshot) at work: kv's key, value, mod_rev, and where they are not 0
 * create_rev, version and lease. time: 0: none. A value that is not JSON is written as base64, and, where
 * something is to be redacted, not at all; white space in JSON is left out. */
VDI_MUST_USE vd_status vdi_log_writer_change(struct vdi_log_writer *writer, bool is_delete,
					     const struct vd_kv *kv, vd_wall time, struct vd_error *reterr);
/* The changes since the last call are the transaction of this revision. */
VDI_MUST_USE vd_status vdi_log_writer_commit(struct vdi_log_writer *writer, vd_rev revision,
					     struct vd_error *reterr);
/* Everything between is the state at revision. */
VDI_MUST_USE vd_status vdi_log_writer_snapshot_begin(struct vdi_log_writer *writer, vd_rev revision,
						     struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_log_writer_snapshot_end(struct vdi_log_writer *writer, vd_rev revision,
						   struct vd_error *reterr);
/* COMPACT, PROGRESS, DISCONNECT or FAILURE; between transactions. */
VDI_MUST_USE vd_status vdi_log_writer_mark(struct vdi_log_writer *writer, enum vdi_log_kind kind,
					   vd_rev revision, const char *text, struct vd_error *reterr);
/* What was committed is on disk when it returns. */
VDI_MUST_USE vd_status vdi_log_writer_flush(struct vdi_log_writer *writer, struct vd_error *reterr);
/* Flushes, writes the index, and closes. Whatever it answers, writer is gone. NULL is fine. */
vd_status vdi_log_writer_close(struct vdi_log_writer *writer, struct vd_error *reterr);

struct vdi_log_writer_totals {
	uint64_t records, transactions, bytes; /* bytes of text */
	uint64_t cut;			       /* bytes that resume cut off the end of the file */
};
void vdi_log_writer_totals_get(const struct vdi_log_writer *writer, struct vdi_log_writer_totals *ret_totals);

/* "2026-05-28T20:26:42.123Z" */
#define VDI_LOG_TIME_SIZE 32
void vdi_log_time_format(vd_wall time, char text[VDI_LOG_TIME_SIZE]);

#endif
