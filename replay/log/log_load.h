/* Loads an event log into an empty embedded store, at the recorded revisions.
 *
 * Leases are ignored (a log has only their numbers, so a loaded key does not expire), as are progress,
 * disconnects and errors. A torn transaction at the end of the log is dropped.
 */
#ifndef VDI_LOG_LOAD_H
#define VDI_LOG_LOAD_H

#include <vedette/store.h>

#include "base.h"
#include "log_steps.h"

struct vdi_backend_tuning;

struct vdi_log_load_report {
	uint64_t	    records;  /* puts and deletes */
	vd_rev		    revision; /* current revision of the store */
	struct vdi_log_tail tail;     /* the part missing at the end */
};

/* Called from time to time on the opening thread: first with the number of records read, then, with all > 0,
 * with the number of records written to disk, out of all. */
typedef void (*vdi_log_load_fn)(void *arg, uint64_t records, uint64_t all);

/* As vd_store_open_mvcc, filled from the log at path ("-": standard input). Blocks until all of it is
 * durable. VD_EXISTS: the store is not empty. strict: a log that is torn at its end, or not closed by its
 * writer, is VD_BAD_REQUEST. Further errors: as vdi_event_log_open and _next; VD_BAD_REQUEST names file and
 * line, also for a JSON object with a number that no Go client could read (json_number.h). After an error the
 * store shows nothing of the log. tuning, progress and ret_report may be NULL. */
VDI_MUST_USE vd_status vdi_log_load_open(const struct vd_env *env, const struct vd_mvcc_options *options,
					 const struct vdi_backend_tuning *tuning, const char *path,
					 bool strict, vdi_log_load_fn progress, void *progress_arg,
					 struct vd_store **ret_store, struct vdi_log_load_report *ret_report,
					 struct vd_error *reterr);

#endif
