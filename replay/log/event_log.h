/* The event log: the history of a store as lines of JSON, for people and programs to read, write and replay.
 *
 *   {"vedetteLog":1,...}                    first line; 1 is the version of the format
 *   {"snapshot":11} records {"snapshotEnd":11}
 *                                           optional: the state at a revision; records have their own "rev"
 *   {"rev":12,"type":"PUT","key":"/registry/pods/a/b","value":{...}}
 *                                           also "valueBase64", "time", "createRev", "version", "lease"
 *   {"rev":12,"type":"DELETE","key":"/registry/pods/a/c"}
 *   {"commit":12}                           ends the transaction of revision 12
 *   {"compact":10} {"progress":13} {"disconnect":true} {"error":"..."}
 *
 * The first line of a log written by a program is {"vedetteLog":1,"checksums":"xxh64"}. In such a log every
 * line except records and "snapshot" ends with a checksum over all text from the first byte, and commit and
 * snapshotEnd count the records that they end:
 *
 *   {"commit":12,"records":2,"sum":"0123456789abcdef"}
 *
 * The writer ends such a log with {"progress":R,"end":true,"sum":"..."}. A line whose checksum or count does
 * not match ends reading, and the message names both places. The first such line after a sync states how much
 * text was on disk before it was written, {"commit":12,"records":2,"synced":4711,"sum":"..."}. What a power
 * cut left after that place (sectors of zeros, a broken frame) is a torn tail; damage before it is an error.
 * The checksum of a line is XXH64 over the line up to ,"sum": seeded by the previous checksum; each line
 * without a checksum is added in the same way (whole, without its newline).
 *
 * All records with one rev are one transaction. In a log with commit lines, a transaction without commit at
 * the end is torn and dropped, as is a last line without newline. In a log without commit lines, a
 * transaction ends where the next rev begins. Unknown members are allowed. The file may be compressed with
 * zstd, which is detected by its first bytes.
 *
 * Reading takes constant memory (the longest line, at most 64 MiB). One thread at a time.
 */
#ifndef VDI_EVENT_LOG_H
#define VDI_EVENT_LOG_H

#include <vedette/store.h>

#include "base.h"

#define VDI_EVENT_LOG_VERSION 1
#define VDI_EVENT_LOG_LINE_MAX ((size_t) 64 << 20)
#define VDI_EVENT_LOG_CHECKSUMS "xxh64"
/* The end of a line with a checksum: ,"sum":"0123456789abcdef"} */
#define VDI_EVENT_LOG_SUM_NAME ",\"sum\":\""
/* Before it, in the first line with a checksum after a sync: bytes of text on disk. */
#define VDI_EVENT_LOG_SYNCED_NAME ",\"synced\":"
#define VDI_EVENT_LOG_SUM_SIZE ((size_t) (sizeof VDI_EVENT_LOG_SUM_NAME - 1 + 16 + 2))

enum vdi_log_kind {
	VDI_LOG_PUT,
	VDI_LOG_DELETE,
	VDI_LOG_COMMIT,
	VDI_LOG_SNAPSHOT,
	VDI_LOG_SNAPSHOT_END,
	VDI_LOG_COMPACT,
	VDI_LOG_PROGRESS,
	VDI_LOG_DISCONNECT,
	VDI_LOG_FAILURE, /* "error" */
};

/* Slices are borrowed until the next call. */
struct vdi_log_record {
	enum vdi_log_kind kind;
	vd_rev		  revision;
	struct vd_bytes	  key;
	struct vd_bytes	  value;      /* JSON without white space, or decoded bytes */
	vd_rev		  create_rev; /* 0: not recorded */
	int64_t		  version;    /* 0: not recorded */
	int64_t		  lease;
	struct vd_bytes	  time; /* RFC 3339 as written, or empty */
	struct vd_bytes	  text; /* of FAILURE */
	uint64_t	  line;
	bool		  is_end;	/* PROGRESS: the writer closed the log here */
	bool		  is_counted;	/* COMMIT, SNAPSHOT_END: the line states how many records it ends */
	uint64_t	  records;	/* that number */
	bool		  is_unchecked; /* value is not validated; see vdi_event_log_next_unchecked */
};

struct vdi_event_log;

/* path "-" is standard input. VD_NOT_FOUND, VD_IO; VD_BAD_REQUEST: not an event log (the message quotes the
 * start); VD_NEWER_FORMAT. */
VDI_MUST_USE vd_status vdi_event_log_open(const char *path, struct vdi_event_log **ret_log,
					  struct vd_error *reterr);
/* VD_OK, or VD_CLOSED at the end. After VD_BAD_REQUEST, which names file and line, nothing more can be
 * read. */
VDI_MUST_USE vd_status vdi_event_log_next(struct vdi_event_log *log, struct vdi_log_record *ret_record,
					  struct vd_error *reterr);
/* The same for callers that scan values anyway, so that each value is scanned once. If is_unchecked is set,
 * value is valid only if it is one JSON value without white space, nested at most VDI_JSON_DEPTH_MAX - 1
 * deep. A caller that has not validated this itself must call vdi_event_log_check before the next call, which
 * returns what vdi_event_log_next would have returned. */
VDI_MUST_USE vd_status vdi_event_log_next_unchecked(struct vdi_event_log  *log,
						    struct vdi_log_record *ret_record,
						    struct vd_error	  *reterr);
VDI_MUST_USE vd_status vdi_event_log_check(struct vdi_event_log *log, struct vdi_log_record *record,
					   struct vd_error *reterr);
/* After VD_BAD_REQUEST: returns true if the unreadable part was left by a power cut, because the log does not
 * state that it was synced. Then the log ends after the last line with a checksum, and is torn. Reads the
 * rest of the file. */
VDI_MUST_USE bool vdi_event_log_was_cut_off(struct vdi_event_log *log);
/* Returns true if the log has checksums. */
bool vdi_event_log_is_sealed(const struct vdi_event_log *log);
/* Returns the checksum over all lines read so far: the seed of the next line. */
uint64_t vdi_event_log_sum(const struct vdi_event_log *log);
/* Adds a line without its newline to the checksum of the previous lines. */
uint64_t vdi_event_log_sum_add(uint64_t sum, struct vd_bytes line);
/* Returns the number of the last line read. */
uint64_t vdi_event_log_line(const struct vdi_event_log *log);
/* Returns the number of text bytes up to the end of the last line read (after open: the header). */
uint64_t vdi_event_log_offset(const struct vdi_event_log *log);
/* After the end: returns true if the file ends in a torn line, which was not returned, or within a compressed
 * frame. */
bool vdi_event_log_is_torn(const struct vdi_event_log *log);
/* After the end: returns the torn line, or empty. Borrowed until the log is closed. */
struct vd_bytes	      vdi_event_log_torn_text(const struct vdi_event_log *log);
struct vdi_event_log *vdi_event_log_close(struct vdi_event_log *log);

#endif
