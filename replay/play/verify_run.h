/* A verification of a store: watches, resumed watches, lists and, as an option, writers of its own, all
 * checked against each other by a verifier.
 *
 *   LISTING (the initial state) -> RUNNING
 *   RUNNING --history lost to compaction--> LISTING, with a new verifier
 *
 * Two watches are always open; periodically a third one is opened in the past and must deliver the same. Lost
 * connections are resumed. One actor; callbacks of the store only leave their results for it.
 */
#ifndef VDI_VERIFY_RUN_H
#define VDI_VERIFY_RUN_H

#include "verifier.h"

struct vdi_verify_run;

struct vdi_verify_options {
	struct vd_store *store;	 /* borrowed */
	struct vd_bytes	 prefix; /* copied; keys to watch and list */
	/* copied; prefix of the writers' keys, below prefix; at the end they delete everything below it */
	struct vd_bytes write_prefix;
	unsigned	writers;    /* 0: read only */
	bool		one_by_one; /* the store accepts only one put or delete of one key at a time */
	/* Writes a writer's value as text of at most size bytes including its NUL. random: a random number
	 * for this value. On the actor. NULL: some JSON. */
	void (*make_value)(void *arg, const char *key, unsigned writer, uint64_t random, char *value,
			   size_t size);
	vd_dur list_interval;	  /* default 2 s */
	vd_dur resume_interval;	  /* default 1 s */
	vd_dur progress_interval; /* default 1 s */
	/* Maximum time that a close waits for the last events, and for each answer while writers clean up;
	 * default 10 s. */
	vd_dur settle_time;
	bool   in_parts;						    /* as in verifier.h */
	void (*violated)(void *arg, const struct vdi_violation *violation); /* on the actor */
	/* Verification cannot continue: the store is closed, or fails permanently. Once, on the actor. */
	void (*failed)(void *arg, const struct vd_error *error);
	void *arg;
};

struct vdi_verify_progress {
	struct vdi_verifier_totals totals; /* of all verifiers */
	uint64_t		   writes, unknown_writes, reconnects, restarts;
	bool			   is_running; /* the first list is complete */
};

VDI_MUST_USE vd_status vdi_verify_run_new(const struct vd_env *env, const struct vdi_verify_options *options,
					  struct vdi_verify_run **ret_run);
/* Any thread. */
void vdi_verify_run_progress_get(const struct vdi_verify_run *run, struct vdi_verify_progress *ret_progress);
/* Stops the writers. Closes everything when all streams have delivered the last writes, or after the settle
 * time. Calls done when it is gone; writes *ret_progress (may be NULL) before. */
void vdi_verify_run_close(struct vdi_verify_run *run, struct vdi_verify_progress *ret_progress,
			  void (*done)(void *arg), void				 *arg);

#endif
