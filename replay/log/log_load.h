/* An event log becomes the content of an embedded store, with the revisions it was recorded at.
 *
 * Leases are left out (a log knows their numbers only: a loaded key does not expire), progress, disconnects
 * and errors say nothing about the content. A transaction that is torn at the end of the log is dropped.
 */
#ifndef VDI_LOG_LOAD_H
#define VDI_LOG_LOAD_H

#include <vedette/store.h>

#include "base.h"
#include "log_steps.h"

struct vdi_persist_tuning;

struct vdi_log_load_report {
	uint64_t	    records;  /* puts and deletes */
	vd_rev		    revision; /* the store stands here */
	struct vdi_log_tail tail;     /* what is missing at the end */
};

/* Now and then, on the opening thread: so many records read; then, with all > 0, so many of all written to
 * disk. */
typedef void (*vdi_log_load_fn)(void *arg, uint64_t records, uint64_t all);

/* As vd_store_open_mvcc, filled from the log at path ("-": standard input). Blocks until all of it is
 * durable. VD_EXISTS: the store holds something already. strict: a log that is torn at its end, or that its
 * writer did not close, is VD_BAD_REQUEST. Further errors: as vdi_event_log_open and _next; VD_BAD_REQUEST
 * names file and line, also of a JSON object with a number that no Go client could read (json_number.h).
 * After any error nothing of the log can be seen in the store. tuning, progress and ret_report may be
 * NULL. */
VDI_MUST_USE vd_status vdi_log_load_open(const struct vd_env *env, const struct vd_mvcc_options *options,
					 const struct vdi_persist_tuning *tuning, const char *path,
					 bool strict, vdi_log_load_fn progress, void *progress_arg,
					 struct vd_store **ret_store, struct vdi_log_load_report *ret_report,
					 struct vd_error *reterr);

#endif
