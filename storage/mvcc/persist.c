/* How a start goes: lock the directory, open the checkpoint, verify the journal after it, hand everything to the sink, and only then change
 * anything on disk. Whatever is wrong is therefore found before the first byte is written.
 *
 * Afterwards the writer only ever touches the journal.
 */
#include "persist.h"

#include "journal.h"
#include "load.h"
#include "persist_tuning.h"

struct vdi_persist {
	/* Fixed at open. */
	const struct vd_env *env;
	struct vdi_dir	    *dir;
	int64_t		     quota_bytes;

	/* The writer. */
	struct vdi_journal *journal;
};

static vd_status load_all(struct vdi_persist *persist, struct vdi_load *load, struct vd_error *reterr)
{
	vd_status status;

	if (load->compacted > 0)
		VDI_TRY(vdi_journal_replay(persist->journal, vdi_load_bury, load, reterr));
	load->revision = VDI_MAX(load->revision, vdi_journal_revision(persist->journal));
	status = vdi_load_begin(load);
	if (status == VD_OK) {
		VDI_TRY(vdi_journal_replay(persist->journal, vdi_load_deliver, load, reterr));
		status = vdi_load_end(load);
	}
	return status == VD_OK ? VD_OK : vd_error_set(reterr, status, "%s", vd_status_sentence(status));
}

static struct vdi_persist *persist_free(struct vdi_persist *persist)
{
	vdi_journal_close(persist->journal);
	vdi_dir_close(persist->dir);
	vdi_free(persist);
	return NULL;
}

static vd_status open_parts(struct vdi_persist *persist, const struct vd_mvcc_options *options, const struct vdi_persist_tuning *tuning,
			    struct vdi_load *load, struct vd_error *reterr)
{
	struct vdi_journal_options journal_options = {
		.seed = vd_env_random(persist->env),
		.segment_size = tuning->segment_size,
		.no_sync = options->no_sync,
	};

	VDI_TRY(vdi_dir_open(tuning->disk ? tuning->disk : vdi_disk_os(), options->data_dir, &persist->dir, reterr));
	journal_options.dir = persist->dir;
	VDI_TRY(vdi_journal_open(&journal_options, vdi_load_survey, load, &persist->journal, reterr));
	VDI_TRY(load_all(persist, load, reterr));
	return vdi_journal_start(persist->journal, reterr);
}

vd_status vdi_persist_open_tuned(const struct vd_env *env, const struct vd_mvcc_options *options, const struct vdi_persist_tuning *tuning,
				 const struct vdi_persist_sink *sink, struct vdi_persist **ret_persist, struct vd_error *reterr)
{
	static const struct vdi_persist_tuning defaults;
	struct vdi_persist		      *persist = VDI_NEW(struct vdi_persist);
	struct vdi_load			       load;
	vd_status			       status;

	if (persist == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	persist->env = env;
	persist->quota_bytes = options->quota_bytes;
	vdi_load_init(&load, sink);
	status = open_parts(persist, options, tuning ? tuning : &defaults, &load, reterr);
	vdi_load_fini(&load);
	if (status != VD_OK) {
		persist_free(persist);
		return status;
	}
	*ret_persist = persist;
	return VD_OK;
}

vd_status vdi_persist_open(const struct vd_env *env, const struct vd_mvcc_options *options, const struct vdi_persist_sink *sink,
			   struct vdi_persist **ret_persist, struct vd_error *reterr)
{
	return vdi_persist_open_tuned(env, options, NULL, sink, ret_persist, reterr);
}

/* Deleting, revoking and compacting must work on a full store: they are the way out (E-466). */
static bool needs_quota(const struct vdi_commit *commit)
{
	for (size_t i = 0; i < commit->change_count; i++)
		if (!commit->changes[i].is_delete)
			return true;
	for (size_t i = 0; i < commit->lease_count; i++)
		if (commit->leases[i].kind == VDI_LEASE_GRANTED)
			return true;
	return false;
}

vd_status vdi_persist_append(struct vdi_persist *persist, const struct vdi_commit *commit, struct vd_error *reterr)
{
	if (persist->quota_bytes > 0 && needs_quota(commit) &&
	    vdi_persist_size_bytes(persist) + (int64_t) vdi_segment_record_size(vdi_commit_size(commit)) > persist->quota_bytes)
		return vd_error_set(reterr, VD_NO_SPACE, "the quota of %lld bytes is used up", (long long) persist->quota_bytes);
	return vdi_journal_append(persist->journal, commit, reterr);
}

vd_status vdi_persist_sync(struct vdi_persist *persist, struct vd_error *reterr)
{
	return vdi_journal_sync(persist->journal, reterr);
}

void vdi_persist_discard(struct vdi_persist *persist)
{
	vdi_journal_discard(persist->journal);
}

int64_t vdi_persist_size_bytes(const struct vdi_persist *persist)
{
	return vdi_journal_bytes(persist->journal);
}

void vdi_persist_close(struct vdi_persist *persist, void (*done)(void *arg), void *arg)
{
	persist_free(persist);
	if (done)
		done(arg);
}
