/* The event log: what happened to a store, as lines of JSON that people and programs can read, write and
 * replay.
 *
 *   {"vedetteLog":1,...}                                            first line; 1 is the version of the format
 *   {"snapshot":11} records {"snapshotEnd":11}                      optional: the state at a revision; records carry their own "rev"
 *   {"rev":12,"type":"PUT","key":"/registry/pods/a/b","value":{...}}      also "valueBase64", "time", "createRev", "version", "lease"
 *   {"rev":12,"type":"DELETE","key":"/registry/pods/a/c"}
 *   {"commit":12}                                                   closes the transaction of revision 12
 *   {"compact":10} {"progress":13} {"disconnect":true} {"error":"..."}
 *
 * A log that a program wrote says so in its first line, {"vedetteLog":1,"checksums":"xxh64"}. In such a log
 * every line but the records and "snapshot" ends with a checksum over all text since the first byte, and
 * commit and snapshotEnd count the records that they close:
 *
 *   {"commit":12,"records":2,"sum":"0123456789abcdef"}
 *
 * The writer closes such a log with {"progress":R,"end":true,"sum":"..."}. A line that disagrees with its log
 * ends reading, and the message names both places. The first such line after a sync says how much text was on
 * disk before it was written, {"commit":12,"records":2,"synced":4711,"sum":"..."}: what a power cut left
 * behind that place (sectors of zeros, a broken frame) is a torn tail, and damage before it is damage. The
 * sum of a line is XXH64 over the line up to ,"sum": seeded by the sum before; each line without a sum is
 * added in the same way (whole, without its newline).
 *
 * All records with one rev are one transaction. In a log that holds commit lines, a transaction at the end
 * without its commit is torn and dropped; so is a last line without its newline. In a log without any, a
 * transaction ends where the next rev begins. Unknown members are allowed. The file may be compressed by
 * zstd; this is recognized by its first bytes.
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
/* Before it, in the first line with a checksum after a sync: bytes of text that are on disk. */
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

/* Slices are lent until the next call. */
struct vdi_log_record {
	enum vdi_log_kind kind;
	vd_rev		  revision;
	struct vd_bytes	  key;
	struct vd_bytes	  value;      /* JSON without white space, or decoded bytes */
	vd_rev		  create_rev; /* 0: not given */
	int64_t		  version;    /* 0: not given */
	int64_t		  lease;
	struct vd_bytes	  time; /* RFC 3339 as written, or empty */
	struct vd_bytes	  text; /* of FAILURE */
	uint64_t	  line;
	bool		  is_end;	/* PROGRESS: the writer closed the log here */
	bool		  is_counted;	/* COMMIT, SNAPSHOT_END: the line states how many records it closes */
	uint64_t	  records;	/* that number */
	bool		  is_unchecked; /* the value; see vdi_event_log_next_unchecked */
};

struct vdi_event_log;

/* path "-" is standard input. VD_NOT_FOUND, VD_IO; VD_BAD_REQUEST: not an event log (the message says what
 * stands there); VD_NEWER_FORMAT. */
VDI_MUST_USE vd_status vdi_event_log_open(const char *path, struct vdi_event_log **ret_log,
					  struct vd_error *reterr);
/* VD_OK, or VD_CLOSED at the end. VD_BAD_REQUEST names file and line; nothing can be read after it. */
VDI_MUST_USE vd_status vdi_event_log_next(struct vdi_event_log *log, struct vdi_log_record *ret_record,
					  struct vd_error *reterr);
/* The same for who scans values anyway, so that it is done once: where is_unchecked is set, value is what the
 * line holds if it is one JSON value without white space and at most VDI_JSON_DEPTH_MAX - 1 deep. Who has not
 * found that it is must ask vdi_event_log_check before the next call: it says what vdi_event_log_next would
 * have said. */
VDI_MUST_USE vd_status vdi_event_log_next_unchecked(struct vdi_event_log  *log,
						    struct vdi_log_record *ret_record,
						    struct vd_error	  *reterr);
VDI_MUST_USE vd_status vdi_event_log_check(struct vdi_event_log *log, struct vdi_log_record *record,
					   struct vd_error *reterr);
/* After VD_BAD_REQUEST: true if what could not be read was left by a power cut, because it was not synced as
 * far as the log says. Then the log ends behind the last line with a checksum, and is torn. Reads the rest of
 * the file. */
VDI_MUST_USE bool vdi_event_log_was_cut_off(struct vdi_event_log *log);
/* True: the log has checksums. */
bool vdi_event_log_is_sealed(const struct vdi_event_log *log);
/* Sum over all lines read so far: the seed of the next line. */
uint64_t vdi_event_log_sum(const struct vdi_event_log *log);
/* Adds a line without its newline to the sum of the lines before it. */
uint64_t vdi_event_log_sum_add(uint64_t sum, struct vd_bytes line);
/* Number of the line read last. */
uint64_t vdi_event_log_line(const struct vdi_event_log *log);
/* Bytes of text up to behind the line that was read last (the header, after the open). */
uint64_t vdi_event_log_offset(const struct vdi_event_log *log);
/* After the end: the file ends in a torn line, which was not returned, or in the middle of a compressed
 * frame. */
bool vdi_event_log_is_torn(const struct vdi_event_log *log);
/* That line, after the end was reached; empty when there is none. Lent until the log is closed. */
struct vd_bytes	      vdi_event_log_torn_text(const struct vdi_event_log *log);
struct vdi_event_log *vdi_event_log_close(struct vdi_event_log *log);

#endif
