/* A start locks the directory, opens the checkpoint, verifies the journal after it, passes the state to the
 * sink, and only then changes files. So damage is found before the first byte is written. Afterwards the
 * writer uses the journal only; the checkpointer, an actor, reads the journal's files. */
#include "backend.h"

#include "backend_tuning.h"
#include "checkpointer.h"
#include "env.h"
#include "journal.h"
#include "load.h"

struct vdi_backend {
	/* Fixed at open. */
	const struct vd_env *env;
	struct vdi_dir	    *dir;
	int64_t		     quota_bytes;

	struct vdi_checkpointer *checkpointer; /* NULL: journal only */

	/* The writer. */
	struct vdi_journal *journal;
	bool		    is_over_quota; /* the cause of the last VD_NO_SPACE */
	void (*done)(void *arg);
	void *done_arg;
};

/* Exists from vdi_backend_mark to vdi_backend_unmark. */
#define MARK_FILE "unfinished"

#define CHECKPOINT_BYTES ((int64_t) 4 << 20)
#define CHECKPOINT_INTERVAL VD_SECONDS(1)

static vd_status bury_record(void *arg, const struct vdi_record *record)
{
	return vdi_load_bury_record(arg, record);
}

/* Gathers the records that compaction has not removed yet. */
static vd_status bury_all(struct vdi_backend *backend, struct vdi_checkpoint *checkpoint,
			  struct vdi_load *load, struct vd_error *reterr)
{
	vd_rev from = checkpoint ? vdi_checkpoint_meta(checkpoint)->compact_next : 0;

	if (load->compacted <= 0)
		return VD_OK;
	if (checkpoint && from <= load->compacted)
		VDI_TRY(vdi_checkpoint_walk(checkpoint, from, load->compacted, bury_record, load, reterr));
	return vdi_journal_replay(backend->journal, vdi_load_bury, load, reterr);
}

static vd_status deliver_content(struct vdi_checkpoint_content *content, struct vdi_load *load)
{
	vd_status status = VD_OK;

	for (unsigned i = 0; i < content->part_count; i++) {
		struct vdi_checkpoint_part *part = &content->parts[i];

		for (size_t j = 0; j < part->count && status == VD_OK; j++) {
			struct vd_kv *kv = part->records[j].kv;

			part->records[j].kv = NULL;
			status = vdi_load_deliver_kv(load, kv, part->records[j].is_delete);
		}
	}
	/* Frees the remaining members and the backend. */
	load->leases = content->leases;
	content->leases = (struct vdi_lease_table) { 0 };
	vdi_checkpoint_content_fini(content);
	return status;
}

static vd_status load_all(struct vdi_backend *backend, struct vdi_checkpoint *checkpoint,
			  struct vdi_checkpoint_content *content, struct vdi_load *load,
			  struct vd_error *reterr)
{
	vd_status status;

	VDI_TRY(bury_all(backend, checkpoint, load, reterr));
	load->revision = vdi_journal_revision(backend->journal);
	status = vdi_load_begin(load);
	if (status == VD_OK && checkpoint)
		status = deliver_content(content, load);
	if (status == VD_OK)
		VDI_TRY(vdi_journal_replay(backend->journal, vdi_load_deliver, load, reterr));
	if (status == VD_OK)
		status = vdi_load_end(load);
	return status == VD_OK ? VD_OK : vd_error_set(reterr, status, "%s", vd_status_sentence(status));
}

static struct vdi_backend *backend_free(struct vdi_backend *backend)
{
	vdi_journal_close(backend->journal);
	vdi_dir_close(backend->dir);
	vdi_free(backend);
	return NULL;
}

/* Opens the journal behind the checkpoint (NULL: there is none): verifies it, passes it to the sink, and
 * makes it writable. */
static vd_status open_journal(struct vdi_backend *backend, struct vdi_checkpoint *checkpoint,
			      struct vdi_checkpoint_content *content, const struct vd_mvcc_options *options,
			      const struct vdi_backend_tuning *tuning, struct vdi_load *load,
			      struct vd_error *reterr)
{
	const struct vdi_checkpoint_meta *meta = checkpoint ? vdi_checkpoint_meta(checkpoint) : NULL;
	struct vdi_journal_options	  journal_options = {
		       .dir = backend->dir,
		       .seed = vd_env_random(backend->env),
		       .segment_size = tuning->segment_size,
		       .covered = meta ? meta->covered : 0,
		       .store_id = meta ? meta->store_id : NULL,
		       .no_sync = options->no_sync,
	};

	if (meta) {
		load->compacted = meta->compacted;
		load->record_count = meta->record_count;
	}
	VDI_TRY(vdi_journal_open(&journal_options, vdi_load_survey, load, &backend->journal, reterr));
	if (meta && vdi_journal_is_new(backend->journal))
		return vd_error_set(reterr, VD_CORRUPT,
				    "%s: there is a checkpoint, but the journal is missing",
				    options->data_dir);
	VDI_TRY(load_all(backend, checkpoint, content, load, reterr));
	vdi_journal_room_set_scale(vdi_journal_room(backend->journal),
				   vdi_journal_bytes(backend->journal) -
					   vdi_journal_covered_bytes(backend->journal) +
					   (checkpoint ? vdi_checkpoint_size_bytes(checkpoint) : 0));
	return vdi_journal_start(backend->journal, reterr);
}

/* Creates the first checkpoint of a store. A store with content opens without one if the disk is full; the
 * checkpointer tries again. */
static vd_status create_checkpoint(struct vdi_backend *backend, bool no_sync,
				   struct vdi_checkpoint **ret_checkpoint, struct vd_error *reterr)
{
	vd_status status = vdi_checkpoint_create(
		backend->dir, no_sync, vdi_journal_store_id(backend->journal), ret_checkpoint, reterr);

	return status == VD_NO_SPACE && !vdi_journal_is_new(backend->journal) ? VD_OK : status;
}

static vd_status check_mark(struct vdi_backend *backend, const char *path, struct vd_error *reterr)
{
	struct vdi_file *file;
	vd_status	 status = vdi_file_open(backend->dir, MARK_FILE, VDI_FILE_READ, &file, reterr);

	if (status == VD_NOT_FOUND)
		return VD_OK;
	if (status != VD_OK)
		return status;
	vdi_file_close(file);
	return vd_error_set(
		reterr, VD_CORRUPT,
		"%s: loading a log into this directory was interrupted: remove the directory and load again",
		path);
}

vd_status vdi_backend_mark(struct vdi_backend *backend, struct vd_error *reterr)
{
	struct vdi_file *file;

	VDI_TRY(vdi_file_open(backend->dir, MARK_FILE, VDI_FILE_CREATE, &file, reterr));
	vdi_file_close(file);
	return vdi_dir_sync(backend->dir, reterr);
}

vd_status vdi_backend_unmark(struct vdi_backend *backend, struct vd_error *reterr)
{
	VDI_TRY(vdi_dir_unlink(backend->dir, MARK_FILE, reterr));
	return vdi_dir_sync(backend->dir, reterr);
}

static vd_status open_parts(struct vdi_backend *backend, const struct vd_mvcc_options *options,
			    const struct vdi_backend_tuning *tuning, struct vdi_load *load,
			    struct vd_error *reterr)
{
	struct vdi_checkpoint_content content = { .env = backend->env };
	struct vdi_checkpoint	     *checkpoint = NULL;
	vd_status		      status = VD_NOT_FOUND;
	bool is_journal_only = tuning->is_journal_only || vdi_env_disk(backend->env) != vdi_disk_os();

	VDI_TRY(vdi_dir_open(vdi_env_disk(backend->env), options->data_dir, &backend->dir, reterr));
	vdi_dir_warn(backend->dir, backend->env);
	VDI_TRY(check_mark(backend, options->data_dir, reterr));
	content.part_count = tuning->part_count ? tuning->part_count : vdi_parallel_width(backend->env);
	if (!is_journal_only)
		status = vdi_checkpoint_open(backend->dir, options->no_sync, &content, &checkpoint, reterr);
	if (status == VD_OK || status == VD_NOT_FOUND)
		status = open_journal(backend, checkpoint, &content, options, tuning, load, reterr);
	vdi_checkpoint_content_fini(&content);
	if (status == VD_OK && !is_journal_only && checkpoint == NULL)
		status = create_checkpoint(backend, options->no_sync, &checkpoint, reterr);
	if (status == VD_OK && !is_journal_only) {
		struct vdi_checkpointer_options checkpointer_options = {
			.env = backend->env,
			.dir = backend->dir,
			.journal = backend->journal,
			.checkpoint = checkpoint,
			.bytes = tuning->checkpoint_bytes ? tuning->checkpoint_bytes : CHECKPOINT_BYTES,
			.interval = tuning->checkpoint_interval.ns ? tuning->checkpoint_interval :
								     CHECKPOINT_INTERVAL,
			.no_sync = options->no_sync,
		};

		status = vdi_checkpointer_new(&checkpointer_options, &backend->checkpointer, reterr);
	}
	if (status != VD_OK)
		vdi_checkpoint_close(checkpoint);
	return status;
}

vd_status vdi_backend_open_tuned(const struct vd_env *env, const struct vd_mvcc_options *options,
				 const struct vdi_backend_tuning *tuning, const struct vdi_backend_sink *sink,
				 struct vdi_backend **ret_backend, struct vd_error *reterr)
{
	static const struct vdi_backend_tuning defaults;
	struct vdi_backend		      *backend = VDI_NEW(struct vdi_backend);
	struct vdi_load			       load;
	vd_status			       status;

	if (backend == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	backend->env = env;
	backend->quota_bytes = options->quota_bytes;
	vdi_load_init(&load, sink);
	status = open_parts(backend, options, tuning ? tuning : &defaults, &load, reterr);
	vdi_load_fini(&load);
	if (status != VD_OK) {
		backend_free(backend);
		return status;
	}
	*ret_backend = backend;
	return VD_OK;
}

vd_status vdi_backend_open(const struct vd_env *env, const struct vd_mvcc_options *options,
			   const struct vdi_backend_sink *sink, struct vdi_backend **ret_backend,
			   struct vd_error *reterr)
{
	return vdi_backend_open_tuned(env, options, NULL, sink, ret_backend, reterr);
}

/* Deletes, revocations and compactions must work on a full store, because they free space. */
static bool is_freeing(const struct vdi_commit *commit)
{
	for (size_t i = 0; i < commit->change_count; i++)
		if (!commit->changes[i].is_delete)
			return false;
	for (size_t i = 0; i < commit->lease_count; i++)
		if (commit->leases[i].kind == VDI_LEASE_GRANTED)
			return false;
	return true;
}

static vd_status check_quota(struct vdi_backend *backend, size_t size, struct vd_error *reterr)
{
	int64_t used = vdi_backend_size_bytes(backend);

	if (backend->quota_bytes <= 0 || used + (int64_t) size <= backend->quota_bytes)
		return VD_OK;
	return vd_error_set(
		reterr, VD_NO_SPACE,
		"the quota is used up: %s has %lld of %lld bytes; deletes and compaction continue",
		backend->dir->path, (long long) used, (long long) backend->quota_bytes);
}

/* Room for the commit in the checkpoint first: the journal's next file may be small. */
static vd_status append(struct vdi_backend *backend, const struct vdi_commit *commit, size_t size, bool frees,
			struct vd_error *reterr)
{
	vd_status	     status = VD_OK;
	enum vdi_journal_use use = frees		 ? VDI_JOURNAL_FREES :
				   backend->checkpointer ? VDI_JOURNAL_BORROWS :
							   VDI_JOURNAL_NO_RESERVE;
	bool is_compaction = commit->compact > 0 && commit->change_count == 0 && commit->lease_count == 0;

	if (backend->checkpointer && !is_compaction)
		do
			status = vdi_checkpointer_make_room(backend->checkpointer, size, commit->change_count,
							    frees, reterr);
		while (status == VD_NO_SPACE &&
		       vdi_journal_room_drop_spare(vdi_journal_room(backend->journal)));
	return status == VD_OK ? vdi_journal_append(backend->journal, commit, use, reterr) : status;
}

vd_status vdi_backend_append(struct vdi_backend *backend, const struct vdi_commit *commit,
			     struct vd_error *reterr)
{
	size_t		size = vdi_segment_record_size(vdi_commit_size(commit));
	bool		frees = is_freeing(commit);
	struct vd_error why = { 0 };
	vd_status	status;

	if (!frees && check_quota(backend, size, reterr) != VD_OK) {
		backend->is_over_quota = true;
		return VD_NO_SPACE;
	}
	status = append(backend, commit, size, frees, &why);
	if (status == VD_NO_SPACE) {
		backend->is_over_quota = false;
		return vd_error_set(reterr, VD_NO_SPACE, "the disk is full: %s%s", why.message,
				    frees ? "; the reserve for deletes is used up as well" :
					    "; deletes and compaction continue");
	}
	if (status != VD_OK && reterr)
		*reterr = why;
	return status;
}

bool vdi_backend_is_over_quota(const struct vdi_backend *backend)
{
	return backend->is_over_quota;
}

bool vdi_backend_may_make_room(const struct vdi_backend *backend)
{
	return backend->checkpointer && vdi_checkpointer_may_make_room(backend->checkpointer);
}

int64_t vdi_backend_reserve_bytes(const struct vdi_backend *backend)
{
	return atomic_load(&vdi_journal_room(backend->journal)->reserve_size) +
	       (backend->checkpointer ? vdi_checkpointer_reserve_bytes(backend->checkpointer) : 0);
}

vd_status vdi_backend_sync(struct vdi_backend *backend, struct vd_error *reterr)
{
	VDI_TRY(vdi_journal_sync(backend->journal, reterr));
	vdi_journal_room_set_scale(vdi_journal_room(backend->journal), vdi_backend_size_bytes(backend));
	if (backend->checkpointer)
		vdi_checkpointer_notify(backend->checkpointer);
	return VD_OK;
}

void vdi_backend_discard(struct vdi_backend *backend)
{
	vdi_journal_discard(backend->journal);
}

int64_t vdi_backend_size_bytes(const struct vdi_backend *backend)
{
	int64_t bytes = vdi_journal_bytes(backend->journal);

	if (backend->checkpointer)
		bytes += vdi_checkpointer_size_bytes(backend->checkpointer) -
			 vdi_checkpointer_covered_bytes(backend->checkpointer);
	return bytes;
}

uint64_t vdi_backend_checkpointed(const struct vdi_backend *backend)
{
	return vdi_checkpointer_covered(backend->checkpointer);
}

static void finish_close(void *arg)
{
	struct vdi_backend *backend = arg;
	void (*done)(void *done_arg) = backend->done;
	void *done_arg = backend->done_arg;

	backend_free(backend);
	if (done)
		done(done_arg);
}

void vdi_backend_close(struct vdi_backend *backend, void (*done)(void *arg), void *arg)
{
	backend->done = done;
	backend->done_arg = arg;
	vdi_journal_finish(backend->journal);
	vdi_checkpointer_close(backend->checkpointer, finish_close, backend);
}
