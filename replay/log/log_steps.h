/* An event log as steps: whole transactions, snapshots, and the marks between them. Only this module decides
 * when a transaction is complete and what is torn at the end.
 *
 * A key that occurs twice in a transaction or snapshot is an error.
 *
 * Memory: the largest transaction or snapshot. One thread at a time; it reads the file, so it may block.
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

/* mod_rev, create_rev and version are set as recorded, or 0; lease is 0. */
struct vdi_log_change {
	bool	      is_delete;
	uint32_t      line; /* lower half of its line number */
	struct vd_kv *kv;   /* a reference of the step; a caller that takes it over sets it to NULL */
};

/* All borrowed until the next call. */
struct vdi_log_step {
	enum vdi_log_step_kind kind;
	vd_rev		       revision;
	struct vdi_log_change *changes;
	size_t		       count;
	size_t		       bytes; /* of keys and values */
	vd_wall		       time;  /* of the first record with a time; 0: none */
	const char	      *text;  /* of FAILURE; never NULL */
	uint64_t	       line;  /* first line of the step */
};

struct vdi_log_steps;

/* As vdi_event_log_open. */
VDI_MUST_USE vd_status vdi_log_steps_open(const char *path, struct vdi_log_steps **ret_steps,
					  struct vd_error *reterr);
/* Returns the codec that will decode the value of key; NULL: none, or it is not prepared for this
 * (codec_json.h). */
typedef const struct vd_codec *(*vdi_codec_of_fn)(void *arg, struct vd_bytes key);

/* Makes later values be validated by decoding their objects, if there is a codec, so that they are scanned
 * only once. The codecs must outlive the steps, or a call of this with NULL. */
void vdi_log_steps_prepare(struct vdi_log_steps *steps, vdi_codec_of_fn codec_of, void *arg);
/* VD_OK; VD_CLOSED at the end. After VD_BAD_REQUEST, which names file and line, nothing more can be read. */
VDI_MUST_USE vd_status vdi_log_steps_next(struct vdi_log_steps *steps, struct vdi_log_step *ret_step,
					  struct vd_error *reterr);
/* The end of a log, after it was reached. */
struct vdi_log_tail {
	bool is_torn; /* an incomplete transaction or line was dropped */
	/* The log has checksums, and its writer did not close it: later transactions may be missing. */
	bool	 is_unclosed;
	uint64_t line;	  /* first dropped line */
	uint64_t records; /* whole records dropped */
	uint64_t bytes;	  /* dropped bytes of text; 0 if only compressed bytes are missing */
};
/* Writes a sentence about the end, for the user. false: nothing is missing. */
#define VDI_LOG_TAIL_SIZE 256
bool vdi_log_tail_describe(const struct vdi_log_tail *tail, char text[VDI_LOG_TAIL_SIZE]);

/* After the end. */
struct vdi_log_tail vdi_log_steps_tail(const struct vdi_log_steps *steps);
/* Returns the number of puts and deletes in the steps returned so far. */
uint64_t vdi_log_steps_records(const struct vdi_log_steps *steps);
/* Sets VD_BAD_REQUEST with file and line before why, which may be reterr's own message. */
vd_status vdi_log_steps_broken(const struct vdi_log_steps *steps, uint64_t line, const char *why,
			       struct vd_error *reterr);
/* Accepts NULL. Returns NULL. */
struct vdi_log_steps *vdi_log_steps_close(struct vdi_log_steps *steps);

/* Parses RFC 3339, with or without fractions, Z or an offset. false: invalid. */
bool vdi_log_time_parse(struct vd_bytes text, vd_wall *ret_time);

#endif
