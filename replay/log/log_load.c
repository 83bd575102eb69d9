/* Passes the steps of the log (log_steps.c) to the store's import. */
#include "log_load.h"

#include <stdio.h>

#include "json_number.h"
#include "log_steps.h"
#include "mvcc_open.h"

#define PROGRESS_RECORDS 100000

struct load {
	struct vdi_log_steps *steps;
	vdi_log_load_fn	      progress;
	void		     *progress_arg;
	bool		      strict;
	uint64_t	      reported;

	struct vdi_import_change  *changes; /* changes of the current step, as the import takes them */
	size_t			   capacity;
	struct vdi_log_load_report report;
};

/* Rejects numbers that make a list unreadable for Go clients of the store. Values that are not JSON have no
 * textual numbers. */
static vd_status check_numbers(const struct load *load, const struct vdi_log_change *change,
			       struct vd_error *reterr)
{
	struct vd_bytes value = change->is_delete ? VD_BYTES_NONE : vd_kv_value(change->kv), number;
	char		why[160];

	if (value.size == 0 || *(const char *) value.data != '{' ||
	    !vdi_json_has_unfit_number(value, NULL, &number))
		return VD_OK;
	(void) snprintf(why, sizeof why,
			"the number %.*s fits neither int64 nor float64: no Go client could read the value",
			(int) VDI_MIN(number.size, (size_t) 40), (const char *) number.data);
	return vdi_log_steps_broken(load->steps, change->line, why, reterr);
}

static vd_status changes_of(struct load *load, const struct vdi_log_step *step, struct vd_error *reterr)
{
	if (!vdi_grow((void **) &load->changes, &load->capacity, step->count, sizeof *load->changes))
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	for (size_t i = 0; i < step->count; i++) {
		VDI_TRY(check_numbers(load, &step->changes[i], reterr));
		load->changes[i] =
			(struct vdi_import_change) { step->changes[i].is_delete, step->changes[i].kv };
	}
	return VD_OK;
}

static vd_status import_step(struct load *load, struct vdi_mvcc_import *import,
			     const struct vdi_log_step *step, struct vd_error *reterr)
{
	VDI_TRY(changes_of(load, step, reterr));
	switch (step->kind) {
	case VDI_STEP_TXN:
		VDI_TRY(vdi_mvcc_import_commit(import, load->changes, step->count, reterr));
		load->report.revision = step->revision;
		return VD_OK;
	case VDI_STEP_SNAPSHOT:
		VDI_TRY(vdi_mvcc_import_snapshot(import, step->revision, load->changes, step->count, reterr));
		for (size_t i = 0; i < step->count; i++)
			load->report.revision = VDI_MAX(load->report.revision, load->changes[i].kv->mod_rev);
		return VD_OK;
	case VDI_STEP_COMPACT: return vdi_mvcc_import_compact(import, step->revision, reterr);
	default: return VD_OK; /* not stored */
	}
}

static void report_read(struct load *load)
{
	uint64_t records = vdi_log_steps_records(load->steps);

	if (load->progress && records - load->reported >= PROGRESS_RECORDS) {
		load->reported = records;
		load->progress(load->progress_arg, records, 0);
	}
}

static vd_status run(void *arg, struct vdi_mvcc_import *import, struct vd_error *reterr)
{
	struct load	   *load = arg;
	struct vdi_log_step step;
	struct vd_error	    error = { 0 };
	char		    text[VDI_LOG_TAIL_SIZE];
	vd_status	    status;

	while ((status = vdi_log_steps_next(load->steps, &step, reterr)) == VD_OK) {
		status = import_step(load, import, &step, &error);
		if (status == VD_INVALID) /* the log is contradictory */
			return vdi_log_steps_broken(load->steps, step.line, error.message, reterr);
		if (status != VD_OK) {
			if (reterr)
				*reterr = error;
			return status;
		}
		report_read(load);
	}
	load->report.records = vdi_log_steps_records(load->steps);
	if (status != VD_CLOSED)
		return status;
	load->report.tail = vdi_log_steps_tail(load->steps);
	if (load->strict && vdi_log_tail_describe(&load->report.tail, text))
		return vdi_log_steps_broken(load->steps, load->report.tail.line, text, reterr);
	return VD_OK;
}

static void report_written(void *arg, uint64_t done, uint64_t all)
{
	struct load *load = arg;

	if (load->progress)
		load->progress(load->progress_arg, done, all);
}

vd_status vdi_log_load_open(const struct vd_env *env, const struct vd_mvcc_options *options,
			    const struct vdi_backend_tuning *tuning, const char *path, bool strict,
			    vdi_log_load_fn progress, void *progress_arg, struct vd_store **ret_store,
			    struct vdi_log_load_report *ret_report, struct vd_error *reterr)
{
	struct load load = { .strict = strict, .progress = progress, .progress_arg = progress_arg };
	struct vdi_mvcc_importer importer = { run, report_written, &load };
	vd_status		 status;

	VDI_TRY(vdi_log_steps_open(path, &load.steps, reterr));
	status = vdi_mvcc_open_importing(env, options, tuning, &importer, ret_store, reterr);
	vdi_free(load.changes);
	vdi_log_steps_close(load.steps);
	if (status == VD_OK && ret_report)
		*ret_report = load.report;
	return status;
}
