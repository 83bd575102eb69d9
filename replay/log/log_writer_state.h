/* The private state of a log writer: log_writer.c writes lines and frames, log_writer_resume.c begins or
 * resumes a file. */
#ifndef VDI_LOG_WRITER_STATE_H
#define VDI_LOG_WRITER_STATE_H

#include <zstd.h>

#include "buffer.h"
#include "json_scan.h"
#include "log_writer.h"

/* Size of the text, in bytes, at which a compressed log writes a frame. */
#define VDI_LOG_FRAME_SIZE ((size_t) 1 << 20)

struct vdi_log_frame {
	uint32_t compressed_size, size;
};

struct vdi_log_writer {
	char *path;
	int   fd;
	bool  is_compressed;
	bool  in_snapshot;
	bool  has_failed;

	struct vdi_json_plan  *plan; /* of the redacted paths */
	struct vdi_json_object object;
	size_t		       redact_count;

	struct vdi_buffer	     open, ready, compressed;
	ZSTD_CCtx		    *zstd; /* NULL: plain */
	struct vdi_log_frame	    *frames;
	size_t			     frame_count, frame_capacity;
	struct vdi_log_writer_totals totals;
	uint64_t		     open_records; /* not committed yet */
	uint64_t		     records;	   /* since the last line that counts records */

	bool	 is_sealed; /* the log has checksums */
	bool	 strict;
	uint64_t settled;	  /* bytes of committed text, of the whole log */
	uint64_t synced;	  /* of them on disk */
	bool	 has_synced_line; /* the next line with a checksum states it */
	uint64_t sum;		  /* over all lines so far */
	uint64_t settled_sum;	  /* over committed lines */
	vd_rev	 last;		  /* newest revision of a line */
};

/* Sets the error "cannot WHAT FILE: <errno>". The writer has failed. */
vd_status vdi_log_writer_io_error(struct vdi_log_writer *writer, const char *what, struct vd_error *reterr);
vd_status vdi_log_writer_no_memory(struct vdi_log_writer *writer, struct vd_error *reterr);
/* Moves the completed transaction from open to ready, and writes ready if it is large enough. */
VDI_MUST_USE vd_status vdi_log_writer_settle(struct vdi_log_writer *writer, struct vd_error *reterr);
/* Returns the text of open from start on. */
struct vd_bytes vdi_log_writer_line_from(const struct vdi_log_writer *writer, size_t start);

/* ---- log_writer_resume.c ---- */

/* Begins an empty file, on disk. */
VDI_MUST_USE vd_status vdi_log_writer_write_header(struct vdi_log_writer *writer, const char *source,
						   struct vd_error *reterr);
/* Continues the file after its last whole step. ret_last (may be NULL): the revision of that. VD_BAD_REQUEST:
 * not a log, or strict and incomplete. */
VDI_MUST_USE vd_status vdi_log_writer_resume(struct vdi_log_writer *writer, const char *source,
					     vd_rev *ret_last, struct vd_error *reterr);

#endif
