/* An event log as its steps: whole transactions, snapshots, and the marks between them. What makes a
 * transaction complete, and what is torn at the end, is decided here and nowhere else.
 *
 * A key that occurs twice in a transaction or snapshot is an error.
 *
 * Memory: the largest transaction or snapshot. One thread at a time; reads the file, so it may block.
 */
#ifndef VDI_LOG_STEPS_H
#define VDI_LOG_STEPS_H

#include "event_log.h"

enum vdi_log_step_kind {
	VDI_STEP_TXN,	   /* changes of one revision */
	VDI_STEP_SNAPSHOT, /* puts, each with its own revision; revision is that of the snapshot */
	VDI_STEP_COMPACT,
	VDI_STEP_PROGRESS,
	VDI_STEP_DISCONNECT,
	VDI_STEP_FAILURE,
};

/* mod_rev, create_rev and version are set as recorded, 0 where they were not; lease is 0. */
struct vdi_log_change {
	bool	      is_delete;
	uint32_t      line; /* the lower half of its line's number */
	struct vd_kv *kv;   /* a reference of the step's; whoever takes it over sets it to NULL */
};

/* All lent until the next call. */
struct vdi_log_step {
	enum vdi_log_step_kind kind;
	vd_rev		       revision;
	struct vdi_log_change *changes;
	size_t		       count;
	size_t		       bytes; /* of keys and values */
	vd_wall		       time;  /* of the first record that has one; 0: none has */
	const char	      *text;  /* of FAILURE; never NULL */
	uint64_t	       line;  /* where it began */
};

struct vdi_log_steps;

/* As vdi_event_log_open. */
VDI_MUST_USE vd_status vdi_log_steps_open(const char *path, struct vdi_log_steps **ret_steps,
					  struct vd_error *reterr);
/* Which codec will make an object of the value of key; NULL: none, or none that is prepared for it
 * (codec_json.h). */
typedef const struct vd_codec *(*vdi_codec_of_fn)(void *arg, struct vd_bytes key);

/* From now on values are checked by making their objects where there is a codec: once, not twice. The codecs
 * must live as long as the steps, or until this is called with NULL. */
void vdi_log_steps_prepare(struct vdi_log_steps *steps, vdi_codec_of_fn codec_of, void *arg);
/* VD_OK; VD_CLOSED at the end. VD_BAD_REQUEST names file and line; nothing can be read after it. */
VDI_MUST_USE vd_status vdi_log_steps_next(struct vdi_log_steps *steps, struct vdi_log_step *ret_step,
					  struct vd_error *reterr);
/* The end of a log, once it was reached. */
struct vdi_log_tail {
	bool is_torn; /* an incomplete transaction or line was left out */
	/* the log has checksums, and its writer did not close it: later transactions may be missing */
	bool	 is_unclosed;
	uint64_t line;	  /* where the part that was left out begins */
	uint64_t records; /* whole records that were left out */
	uint64_t bytes;	  /* of text that was left out; 0 if only compressed bytes are missing */
};
/* Describes the end in a sentence for the user. False: nothing is missing. */
#define VDI_LOG_TAIL_SIZE 256
bool vdi_log_tail_say(const struct vdi_log_tail *tail, char text[VDI_LOG_TAIL_SIZE]);

/* After the end. */
struct vdi_log_tail vdi_log_steps_tail(const struct vdi_log_steps *steps);
/* Puts and deletes of the steps given so far. */
uint64_t vdi_log_steps_records(const struct vdi_log_steps *steps);
/* VD_BAD_REQUEST with file and line before why, which may be reterr's own message. */
vd_status vdi_log_steps_broken(const struct vdi_log_steps *steps, uint64_t line, const char *why,
			       struct vd_error *reterr);
/* NULL is fine. Returns NULL. */
struct vdi_log_steps *vdi_log_steps_close(struct vdi_log_steps *steps);

/* RFC 3339, with or without fractions, Z or an offset. False: it is none. */
bool vdi_log_time_parse(struct vd_bytes text, vd_wall *ret_time);

#endif
