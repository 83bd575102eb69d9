/* How: records are gathered until their transaction is known to be complete (its commit line, or the next revision in a log without commit lines), then
 * given to the import. Between snapshot lines everything is gathered, whatever its revisions. */
#include "log_load.h"

#include <stdio.h>

#include "event_log.h"
#include "mvcc_import.h"

#define PROGRESS_RECORDS 100000

struct load {
	const char	     *path;
	struct vdi_event_log *log;
	vdi_log_load_fn	      progress;
	void		     *progress_arg;

	struct vdi_import_change *changes; /* of the transaction or snapshot at work; one reference each */
	size_t			  change_count, change_capacity;
	vd_rev			  revision;	 /* of the transaction; 0: none */
	uint64_t		  line;		 /* where it began */
	bool			  in_snapshot, has_commits;
	struct vdi_log_load_report report;
};

static void drop_changes(struct load *load)
{
	for (size_t i = 0; i < load->change_count; i++)
		vd_kv_unref(load->changes[i].kv);
	load->change_count = 0;
	load->revision = 0;
}

static vd_status broken(const struct load *load, uint64_t line, const char *why, struct vd_error *reterr)
{
	struct vd_error said = { 0 };

	/* why may point into reterr. */
	vd_status status = vd_error_set(&said, VD_BAD_REQUEST, "%s:%llu: %s", load->path, (unsigned long long) line, why);

	if (reterr)
		*reterr = said;
	return status;
}

/* A refusal of the import gets the line that caused it. */
static vd_status with_line(const struct load *load, uint64_t line, vd_status status, struct vd_error *reterr)
{
	return status == VD_INVALID && reterr ? broken(load, line, reterr->message, reterr) : status == VD_INVALID ? VD_BAD_REQUEST : status;
}

static vd_status end_transaction(struct load *load, struct vdi_mvcc_import *import, struct vd_error *reterr)
{
	vd_status status = vdi_mvcc_import_commit(import, load->changes, load->change_count, reterr);

	if (status == VD_OK && load->change_count)
		load->report.revision = load->revision;
	drop_changes(load);
	return with_line(load, load->line, status, reterr);
}

static vd_status gather(struct load *load, const struct vdi_log_record *record, struct vd_error *reterr)
{
	struct vdi_import_change change = { .is_delete = record->kind == VDI_LOG_DELETE };
	vd_status		 status;

	if (!vdi_grow((void **) &load->changes, &load->change_capacity, load->change_count + 1, sizeof *load->changes))
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	status = vd_kv_new(record->key, record->value, &change.kv);
	if (status != VD_OK)
		return status == VD_TOO_BIG ? broken(load, record->line, "key or value are too large", reterr) : vd_error_set(reterr, status, "out of memory");
	change.kv->mod_rev = record->revision;
	change.kv->create_rev = record->create_rev;
	change.kv->version = record->version;
	load->changes[load->change_count++] = change;
	if (++load->report.records % PROGRESS_RECORDS == 0 && load->progress)
		load->progress(load->progress_arg, load->report.records, 0);
	return VD_OK;
}

static vd_status take_change(struct load *load, struct vdi_mvcc_import *import, const struct vdi_log_record *record, struct vd_error *reterr)
{
	if (load->in_snapshot) {
		if (record->kind == VDI_LOG_DELETE)
			return broken(load, record->line, "a DELETE within a snapshot", reterr);
		return gather(load, record, reterr);
	}
	if (load->revision && load->revision != record->revision) {
		if (load->has_commits)
			return broken(load, record->line, "a new revision begins, and the one before has no commit", reterr);
		VDI_TRY(end_transaction(load, import, reterr));
	}
	if (load->revision == 0)
		load->line = record->line;
	load->revision = record->revision;
	return gather(load, record, reterr);
}

static vd_status take_commit(struct load *load, struct vdi_mvcc_import *import, const struct vdi_log_record *record, struct vd_error *reterr)
{
	load->has_commits = true;
	if (load->in_snapshot || (load->revision && load->revision != record->revision))
		return broken(load, record->line, "the commit is of another revision than the records before it", reterr);
	return end_transaction(load, import, reterr);
}

static vd_status take_snapshot_end(struct load *load, struct vdi_mvcc_import *import, const struct vdi_log_record *record, struct vd_error *reterr)
{
	vd_status status;

	if (!load->in_snapshot)
		return broken(load, record->line, "a snapshot ends that did not begin", reterr);
	load->in_snapshot = false;
	status = vdi_mvcc_import_snapshot(import, record->revision, load->changes, load->change_count, reterr);
	for (size_t i = 0; i < load->change_count; i++)
		load->report.revision = VDI_MAX(load->report.revision, load->changes[i].kv->mod_rev);
	drop_changes(load);
	return with_line(load, record->line, status, reterr);
}

/* Ends what is gathered before a line that belongs to no transaction. */
static vd_status settle(struct load *load, struct vdi_mvcc_import *import, const struct vdi_log_record *record, struct vd_error *reterr)
{
	if (load->in_snapshot)
		return broken(load, record->line, "only records may stand within a snapshot", reterr);
	if (load->revision && load->has_commits)
		return broken(load, record->line, "the transaction before has no commit", reterr);
	return end_transaction(load, import, reterr);
}

static vd_status take(struct load *load, struct vdi_mvcc_import *import, const struct vdi_log_record *record, struct vd_error *reterr)
{
	switch (record->kind) {
	case VDI_LOG_PUT:
	case VDI_LOG_DELETE:
		return take_change(load, import, record, reterr);
	case VDI_LOG_COMMIT:
		return take_commit(load, import, record, reterr);
	case VDI_LOG_SNAPSHOT:
		VDI_TRY(settle(load, import, record, reterr));
		load->in_snapshot = true;
		return VD_OK;
	case VDI_LOG_SNAPSHOT_END:
		return take_snapshot_end(load, import, record, reterr);
	case VDI_LOG_COMPACT:
		VDI_TRY(settle(load, import, record, reterr));
		return with_line(load, record->line, vdi_mvcc_import_compact(import, record->revision, reterr), reterr);
	default:
		return VD_OK; /* nothing that a store holds */
	}
}

/* Whether the torn line at the end certainly began another transaction than the one at work. */
static bool torn_line_is_of_another(const struct load *load)
{
	struct vd_bytes torn = vdi_event_log_torn_text(load->log);
	char		start[48], ours[48];
	size_t		size = VDI_MIN(torn.size, sizeof start - 1);

	if (size)
		memcpy(start, torn.data, size);
	start[size] = 0;
	snprintf(ours, sizeof ours, "{\"rev\":%lld,", (long long) load->revision);
	return strncmp(start, "{\"rev\":", 7) == 0 && strchr(start, ',') && strncmp(start, ours, strlen(ours)) != 0;
}

static vd_status run(void *arg, struct vdi_mvcc_import *import, struct vd_error *reterr)
{
	struct load	     *load = arg;
	struct vdi_log_record record;
	vd_status	      status;

	while ((status = vdi_event_log_next(load->log, &record, reterr)) == VD_OK)
		VDI_TRY(take(load, import, &record, reterr));
	if (status != VD_CLOSED)
		return status;
	load->report.was_torn = vdi_event_log_is_torn(load->log);
	if (load->in_snapshot)
		return broken(load, record.line, "the log ends within a snapshot", reterr);
	/* In a log with commit lines the last transaction is torn; so it may be in one without, when the last line is. */
	if (load->revision && (load->has_commits || (load->report.was_torn && !torn_line_is_of_another(load)))) {
		load->report.was_torn = true;
		load->report.records -= load->change_count;
		drop_changes(load);
	}
	return end_transaction(load, import, reterr);
}

static void say_written(void *arg, uint64_t done, uint64_t all)
{
	struct load *load = arg;

	if (load->progress)
		load->progress(load->progress_arg, done, all);
}

vd_status vdi_log_load_open(const struct vd_env *env, const struct vd_mvcc_options *options, const struct vdi_persist_tuning *tuning,
			    const char *path, vdi_log_load_fn progress, void *progress_arg, struct vd_store **ret_store,
			    struct vdi_log_load_report *ret_report, struct vd_error *reterr)
{
	struct load		 load = { .path = path, .progress = progress, .progress_arg = progress_arg };
	struct vdi_mvcc_importer importer = { run, say_written, &load };
	vd_status		 status;

	VDI_TRY(vdi_event_log_open(path, &load.log, reterr));
	status = vdi_mvcc_open_importing(env, options, tuning, &importer, ret_store, reterr);
	drop_changes(&load);
	vdi_free(load.changes);
	vdi_event_log_close(load.log);
	if (status == VD_OK && ret_report)
		*ret_report = load.report;
	return status;
}
