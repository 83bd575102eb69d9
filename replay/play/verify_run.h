/* Verifying a store: watches, resumed watches, lists and, when asked, writers of its own, all checked against
 * each other by a verifier.
 *
 * 	LISTING (the state everything begins with) -> RUNNING --history lost to compaction--> LISTING again, with a new verifier
 *
 * Two watches run all the time; now and then a third is opened in the past and must tell the same. Lost
 * connections are resumed. One actor; callbacks of the store only leave their results for it.
 */
#ifndef VDI_VERIFY_RUN_H
#define VDI_VERIFY_RUN_H

#include "verifier.h"

struct vdi_verify_run;

struct vdi_verify_options {
	struct vd_store *store;	 /* lent */
	struct vd_bytes	 prefix; /* copied; what is watched and listed */
	/* copied; where writers write, below prefix; they delete what is there at the end */
	struct vd_bytes write_prefix;
	unsigned	writers; /* 0: only look */
	bool one_by_one; /* the store takes one put or delete of one key at a time, and no range to delete */
	/* The value that a writer puts, as text of at most size bytes with its NUL. random: of this value. On
	 * the actor. NULL: some JSON. */
	void (*make_value)(void *arg, const char *key, unsigned writer, uint64_t random, char *value,
			   size_t size);
	vd_dur list_interval;	  /* default 2 s */
	vd_dur resume_interval;	  /* default 1 s */
	vd_dur progress_interval; /* default 1 s */
	/* how long a close waits for the last events, and for each answer while writers clean up; default 10
	 * s */
	vd_dur settle_time;
	bool   in_parts;						    /* as in verifier.h */
	void (*violated)(void *arg, const struct vdi_violation *violation); /* on the actor */
	/* Verification cannot go on: the store is closed, or refuses for good. Once, on the actor. */
	void (*failed)(void *arg, const struct vd_error *error);
	void *arg;
};

struct vdi_verify_position {
	struct vdi_verifier_totals totals; /* of all verifiers */
	uint64_t		   writes, unknown_writes, reconnects, restarts;
	bool			   is_running; /* the first list is there */
};

VDI_MUST_USE vd_status vdi_verify_run_new(const struct vd_env *env, const struct vdi_verify_options *options,
					  struct vdi_verify_run **ret_run);
/* Any thread. */
void vdi_verify_run_position_get(const struct vdi_verify_run *run, struct vdi_verify_position *ret_position);
/* Writers stop; then, when their last writes were seen by every stream, or after the settle time, everything
 * is closed. done when it is gone; *ret_position (may be NULL) is written before. */
void vdi_verify_run_close(struct vdi_verify_run *run, struct vdi_verify_position *ret_position,
			  void (*done)(void *arg), void				 *arg);

#endif
