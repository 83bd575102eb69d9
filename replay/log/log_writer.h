/* Writes an event log (event_log.h), so that after a crash at any moment the log can be read and continued.
 *
 * Changes are gathered until their transaction is committed; only whole transactions reach the file, each
 * with its commit line. If the path ends in ".zst", the log is compressed: frames of about a megabyte of
 * text, each ending with a transaction, and at the end the index of zstd's seekable format, so that tools can
 * seek.
 *
 * Logs have checksums (event_log.h), and an end line when they are closed; a resumed log without checksums
 * stays without.
 *
 * After an error the log on disk ends with the last flush, and only close may be called. One thread at a
 * time; writes may block.
 */
#ifndef VDI_LOG_WRITER_H
#define VDI_LOG_WRITER_H

#include "event_log.h"

struct vdi_log_writer;

struct vdi_log_writer_options {
	const char *path;
	bool	    resume; /* continue an existing log; an incomplete transaction at its end is cut off */
	bool	    strict; /* with resume: reject such a log (VD_BAD_REQUEST) instead */
	const char *source; /* source of the log, for the first line; may be NULL */
	/* Dotted paths into values (".data"): these members keep their type and lose their content. */
	const char *const *redact;
	size_t		   redact_count;
};

/* VD_EXISTS: the file exists and is not empty, and resume is not set. With resume *ret_last (may be NULL) is
 * the last revision in the log, 0 for a new one. VD_INVALID_ARGUMENT: a path to redact; VD_BAD_REQUEST: the
 * file is not an event log, or is damaged before its end; VD_IO, VD_NO_SPACE, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_log_writer_open(const struct vdi_log_writer_options *options,
					   struct vdi_log_writer **ret_writer, vd_rev *ret_last,
					   struct vd_error *reterr);

/* Adds a change to the current transaction (or snapshot): kv's key, value, mod_rev and, if not 0, create_rev,
 * version and lease. time: 0: none. A value that is not JSON is written as base64 or, if paths are redacted,
 * omitted; white space in JSON is removed. */
VDI_MUST_USE vd_status vdi_log_writer_change(struct vdi_log_writer *writer, bool is_delete,
					     const struct vd_kv *kv, vd_wall time, struct vd_error *reterr);
/* Commits the changes since the last call as the transaction of this revision. */
VDI_MUST_USE vd_status vdi_log_writer_commit(struct vdi_log_writer *writer, vd_rev revision,
					     struct vd_error *reterr);
/* The changes between begin and end are the state at revision. */
VDI_MUST_USE vd_status vdi_log_writer_snapshot_begin(struct vdi_log_writer *writer, vd_rev revision,
						     struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_log_writer_snapshot_end(struct vdi_log_writer *writer, vd_rev revision,
						   struct vd_error *reterr);
/* COMPACT, PROGRESS, DISCONNECT or FAILURE; between transactions. */
VDI_MUST_USE vd_status vdi_log_writer_mark(struct vdi_log_writer *writer, enum vdi_log_kind kind,
					   vd_rev revision, const char *text, struct vd_error *reterr);
/* Returns when everything committed is on disk. */
VDI_MUST_USE vd_status vdi_log_writer_flush(struct vdi_log_writer *writer, struct vd_error *reterr);
/* Flushes, writes the index, and closes. Frees writer whatever it returns. Accepts NULL. */
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
