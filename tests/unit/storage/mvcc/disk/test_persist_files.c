/* Unit tests of storage/mvcc/disk/backend.c, with journal and checkpoint: which commits a quota and a full
 * disk refuse, sizes and reserves, marks of unfinished work, files that do not belong together. */
#include <signal.h>
#include <sys/resource.h>

#include "actor_sim.h"
#include "backend_tuning.h"
#include "checkpoint.h"
#include "disk_sim.h"
#include "env.h"
#include "record.h"
#include "temp_folder.h"
#include "vdtest.h"

struct world {
	struct vd_env		 *env;
	struct vdi_disk		 *disk; /* NULL: the real one */
	char			  path[TEMP_FOLDER_SIZE];
	struct vd_mvcc_options	  options;
	struct vdi_backend_tuning tuning;
	struct vdi_backend	 *backend;
	vd_rev			  revision;
	struct rlimit		  no_limit;
	struct vd_error		  error;

	/* What the last open gave. */
	unsigned changes, leases;
	vd_rev	 compacted;
};

static vd_status begin_load(void *arg, vd_rev compacted, vd_rev revision_min, int64_t estimate)
{
	struct world *w = arg;

	(void) estimate;
	w->changes = w->leases = 0;
	w->compacted = compacted;
	w->revision = VDI_MAX(revision_min, 1);
	return VD_OK;
}

static vd_status count_change(void *arg, struct vd_kv *kv, bool is_delete)
{
	(void) is_delete;
	((struct world *) arg)->changes++;
	vd_kv_unref(kv);
	return VD_OK;
}

static vd_status count_lease(void *arg, int64_t id, int64_t ttl_s, vd_wall deadline)
{
	(void) id;
	(void) ttl_s;
	(void) deadline;
	((struct world *) arg)->leases++;
	return VD_OK;
}

static vd_status try_open(struct world *w)
{
	struct vdi_backend_sink sink = { begin_load, count_change, count_lease, w };
	vd_status		status;

	w->error = (struct vd_error) { 0 };
	status = vdi_backend_open_tuned(w->env, &w->options, &w->tuning, &sink, &w->backend, &w->error);
	if (status != VD_OK) {
		w->backend = NULL;
		assert_status(w->error.code, status);
	}
	return status;
}

static void note_closed(void *arg)
{
	*(bool *) arg = true;
}

static void close_store(struct world *w)
{
	bool is_closed = false;

	if (w->backend)
		vdi_backend_close(w->backend, note_closed, &is_closed);
	vdi_sim_run_until_idle(w->env);
	assert_int_equal(is_closed, w->backend != NULL);
	w->backend = NULL;
}

static void init(struct world *w, bool is_journal_only)
{
	memset(w, 0, sizeof *w);
	assert_status(vdi_env_new_sim(1, NULL, NULL, &w->env), VD_OK);
	w->options = (struct vd_mvcc_options) VD_MVCC_OPTIONS_INIT;
	w->options.no_sync = true;
	w->tuning = (struct vdi_backend_tuning) { .segment_size = 16384, .checkpoint_bytes = 4096 };
	w->revision = 1;
	if (is_journal_only) {
		assert_status(vdi_disk_sim_new(1, &w->disk), VD_OK);
		vdi_env_set_disk(w->env, w->disk);
		strcpy(w->path, "data");
	} else {
		temp_folder_make(w->path);
	}
	w->options.data_dir = w->path;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &w->no_limit), 0);
}

static void fini(struct world *w)
{
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &w->no_limit), 0);
	close_store(w);
	vd_env_free(w->env);
	if (w->disk)
		vdi_disk_sim_free(w->disk);
	else
		temp_folder_remove(w->path);
}

static void settle(struct world *w)
{
	vdi_sim_advance(w->env, VD_SECONDS(5));
}

/* ---- Commits ---- */

enum { PUT = 1, DELETE = 2, GRANT = 4, RENEW = 8, REVOKE = 16, COMPACT = 32 };

struct draft {
	struct vdi_change	change[2];
	struct vdi_lease_change leases[3];
	struct vdi_commit	commit;
};

static struct vd_kv *make_kv(vd_rev revision, uint32_t sub, size_t size)
{
	static const char value[60000];
	struct vd_kv	 *kv;

	assert_status(vd_kv_new(vd_bytes_of("/k"), (struct vd_bytes) { value, size }, &kv), VD_OK);
	kv->mod_rev = kv->create_rev = revision;
	kv->version = 1;
	kv->sub = sub;
	return kv;
}

/* A commit of the next revision that does all that `kinds` says. A delete is of what the first commit put. */
static void make_draft(struct world *w, struct draft *draft, unsigned kinds, size_t size)
{
	struct vdi_commit *commit = &draft->commit;

	memset(draft, 0, sizeof *draft);
	if (kinds & PUT)
		draft->change[commit->change_count++].kv = make_kv(w->revision + 1, 0, size);
	if (kinds & DELETE) {
		struct vdi_change *change = &draft->change[commit->change_count++];

		change->kv = make_kv(w->revision + 1, 1, 0);
		change->is_delete = true;
		change->previous = make_kv(2, 0, 0);
	}
	for (unsigned kind = GRANT; kind <= REVOKE; kind *= 2)
		if (kinds & kind)
			draft->leases[commit->lease_count++] =
				(struct vdi_lease_change) { kind == GRANT ? VDI_LEASE_GRANTED :
							    kind == RENEW ? VDI_LEASE_RENEWED :
									    VDI_LEASE_REVOKED,
							    7,
							    10,
							    { 1000 } };
	commit->compact = kinds & COMPACT ? 2 : 0;
	commit->changes = draft->change;
	commit->leases = draft->leases;
	commit->revision = commit->change_count ? w->revision + 1 : 0;
}

static void free_draft(struct draft *draft)
{
	for (size_t i = 0; i < draft->commit.change_count; i++) {
		vd_kv_unref(draft->change[i].kv);
		vd_kv_unref((struct vd_kv *) draft->change[i].previous);
	}
}

/* Appends and, if is_kept, syncs it. */
static vd_status commit(struct world *w, unsigned kinds, size_t size, bool is_kept)
{
	struct draft draft;
	vd_status    status;

	make_draft(w, &draft, kinds, size);
	w->error = (struct vd_error) { 0 };
	status = vdi_backend_append(w->backend, &draft.commit, &w->error);
	if (status == VD_OK && is_kept) {
		assert_status(vdi_backend_sync(w->backend, &w->error), VD_OK);
		w->revision += draft.commit.change_count != 0;
	} else {
		vdi_backend_discard(w->backend);
	}
	free_draft(&draft);
	return status;
}

static int64_t cost_of(struct world *w, unsigned kinds, size_t size)
{
	struct draft draft;
	int64_t	     bytes;

	make_draft(w, &draft, kinds, size);
	bytes = (int64_t) vdi_segment_record_size(vdi_commit_size(&draft.commit));
	free_draft(&draft);
	return bytes;
}

/* What only frees something goes on: it must not put and not grant. */
static bool frees(unsigned kinds)
{
	return (kinds & (PUT | GRANT)) == 0;
}

/* ---- Tests ---- */

/* Exactly up to the quota; what only frees is never counted against it. */
static void a_quota_refuses_what_does_not_fit_and_does_not_free(void **state)
{
	(void) state;
	for (unsigned kinds = 1; kinds < 2 * COMPACT; kinds++)
		for (int64_t missing = 0; missing <= 1; missing++) {
			struct world w;
			bool	     is_refused = missing && !frees(kinds);
			char	     expected[256];

			init(&w, true);
			assert_status(try_open(&w), VD_OK);
			assert_status(commit(&w, PUT, 100, true), VD_OK);
			w.options.quota_bytes =
				vdi_backend_size_bytes(w.backend) + cost_of(&w, kinds, 50) - missing;
			close_store(&w);
			assert_status(try_open(&w), VD_OK);
			/* The mark of a clean end takes some bytes of its own. */
			close_store(&w);
			w.options.quota_bytes += VDI_SEGMENT_RECORD_HEADER_SIZE;
			assert_status(try_open(&w), VD_OK);
			assert_false(vdi_backend_is_over_quota(w.backend));
			assert_status(commit(&w, kinds, 50, true), is_refused ? VD_NO_SPACE : VD_OK);
			assert_int_equal(vdi_backend_is_over_quota(w.backend), is_refused);
			if (is_refused) {
				snprintf(expected, sizeof expected,
					 "the quota is used up: data has %lld of %lld bytes; deletes and "
					 "compaction continue",
					 (long long) vdi_backend_size_bytes(w.backend),
					 (long long) w.options.quota_bytes);
				assert_string_equal(w.error.message, expected);
				assert_status(w.error.code, VD_NO_SPACE);
			} else if (!frees(kinds)) {
				assert_int_equal(vdi_backend_size_bytes(w.backend), w.options.quota_bytes);
			}
			fini(&w);
		}
}

/* 0 is no quota. */
static void without_a_quota_nothing_is_refused(void **state)
{
	struct world w;

	(void) state;
	init(&w, true);
	w.options.quota_bytes = 0;
	assert_status(try_open(&w), VD_OK);
	for (unsigned i = 0; i < 100; i++)
		assert_status(commit(&w, PUT | GRANT, 1000, true), VD_OK);
	assert_false(vdi_backend_is_over_quota(w.backend));
	fini(&w);
}

/* A full disk is not a full quota, and says what still works. */
static void a_full_disk_is_told_from_a_full_quota(void **state)
{
	struct world w;

	(void) state;
	init(&w, true);
	w.options.quota_bytes = 20000;
	assert_status(try_open(&w), VD_OK);
	while (commit(&w, PUT, 1000, true) == VD_OK)
		;
	assert_true(vdi_backend_is_over_quota(w.backend));
	close_store(&w);
	w.options.quota_bytes = 0;
	assert_status(try_open(&w), VD_OK);
	vdi_disk_sim_set_capacity(w.disk, 5 * 16384);
	while (commit(&w, PUT, 1000, true) == VD_OK)
		;
	assert_false(vdi_backend_is_over_quota(w.backend));
	assert_status(w.error.code, VD_NO_SPACE);
	assert_non_null(strstr(w.error.message, "the disk is full: "));
	assert_non_null(strstr(w.error.message, "; deletes and compaction continue"));
	assert_false(vdi_backend_may_make_room(w.backend));
	while (commit(&w, COMPACT, 0, true) == VD_OK)
		;
	assert_status(w.error.code, VD_NO_SPACE);
	assert_non_null(strstr(w.error.message, "the reserve for deletes is used up as well"));
	assert_null(strstr(w.error.message, "deletes and compaction continue"));
	fini(&w);
}

/* The last room in the checkpoint is for compactions alone: deletes and ends of leases are refused. */
static void a_compaction_goes_on_where_a_delete_is_refused(void **state)
{
	struct rlimit limited;
	struct world  w;
	vd_status     status;

	(void) state;
	init(&w, false);
	w.tuning.segment_size = 8 << 20; /* the journal has room */
	w.tuning.checkpoint_bytes = 64 << 20;
	w.tuning.checkpoint_interval = VD_SECONDS(3600);
	assert_status(try_open(&w), VD_OK);
	for (unsigned i = 0; i < 3; i++)
		assert_status(commit(&w, PUT, 20000, true), VD_OK);
	/* The journal's present file is as large as it will ever be: what follows fits. */
	limited = w.no_limit;
	limited.rlim_cur = 4 << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
	do
		status = commit(&w, PUT, 30000, true);
	while (status == VD_OK);
	assert_status(status, VD_NO_SPACE);
	do
		status = commit(&w, DELETE | REVOKE | RENEW, 0, true);
	while (status == VD_OK);
	assert_status(status, VD_NO_SPACE);
	assert_non_null(strstr(w.error.message, "the reserve for deletes is used up as well"));
	assert_status(commit(&w, COMPACT | REVOKE, 0, true), VD_NO_SPACE);
	assert_status(commit(&w, COMPACT | DELETE, 0, true), VD_NO_SPACE);
	for (unsigned i = 0; i < 10; i++)
		assert_status(commit(&w, COMPACT, 0, true), VD_OK);
	fini(&w);
}

/* What is reserved and what is in use, without a checkpoint and with one. */
static void sizes_are_those_of_journal_and_checkpoint(void **state)
{
	(void) state;
	for (unsigned is_journal_only = 0; is_journal_only < 2; is_journal_only++) {
		struct world w;
		int64_t	     journal = 0, size;

		init(&w, is_journal_only);
		w.tuning.checkpoint_bytes = 1 << 20;
		assert_status(try_open(&w), VD_OK);
		settle(&w);
		assert_int_equal(vdi_backend_reserve_bytes(w.backend),
				 16384 + (is_journal_only ? 0 : (2 << 20) + (512 << 10)));
		assert_false(vdi_backend_may_make_room(w.backend));
		size = vdi_backend_size_bytes(w.backend);
		assert_in_range(size, is_journal_only ? 0 : 4096, is_journal_only ? 0 : 8 * 4096);
		for (unsigned i = 0; i < 10; i++) {
			journal += cost_of(&w, PUT, 5000);
			assert_status(commit(&w, PUT, 5000, true), VD_OK);
			assert_int_equal(vdi_backend_size_bytes(w.backend), size + journal);
		}
		/* A commit is not counted any more when it was given up. */
		assert_status(commit(&w, PUT, 5000, false), VD_OK);
		assert_int_equal(vdi_backend_size_bytes(w.backend), size + journal);
		assert_int_equal(vdi_backend_may_make_room(w.backend), !is_journal_only);
		settle(&w);
		/* In the checkpoint each takes two pages. */
		if (is_journal_only)
			assert_int_equal(vdi_backend_size_bytes(w.backend), journal);
		else
			assert_in_range(vdi_backend_size_bytes(w.backend), 20 * 4096, size + 24 * 4096);
		size = vdi_backend_size_bytes(w.backend);
		close_store(&w);
		assert_status(try_open(&w), VD_OK);
		assert_int_equal(w.changes, 10);
		assert_int_equal(vdi_backend_size_bytes(w.backend), size + VDI_SEGMENT_RECORD_HEADER_SIZE);
		fini(&w);
	}
}

/* Between the two the directory cannot be opened. */
static void a_mark_refuses_the_next_open(void **state)
{
	struct world w;

	(void) state;
	init(&w, true);
	w.options.no_sync = false;
	assert_status(try_open(&w), VD_OK);
	assert_status(vdi_backend_mark(w.backend, &w.error), VD_OK);
	assert_status(commit(&w, PUT, 100, true), VD_OK);
	close_store(&w);
	vdi_disk_sim_crash(w.disk);
	assert_status(try_open(&w), VD_CORRUPT);
	assert_string_equal(w.error.message,
			    "data: loading a log into this directory was interrupted: remove "
			    "the directory and load again");
	fini(&w);
	init(&w, true);
	w.options.no_sync = false;
	assert_status(try_open(&w), VD_OK);
	assert_status(vdi_backend_mark(w.backend, &w.error), VD_OK);
	assert_status(commit(&w, PUT, 100, true), VD_OK);
	assert_status(vdi_backend_unmark(w.backend, &w.error), VD_OK);
	close_store(&w);
	vdi_disk_sim_crash(w.disk);
	assert_status(try_open(&w), VD_OK);
	assert_int_equal(w.changes, 1);
	fini(&w);
}

static void errors_of_the_disk_at_a_mark_are_handed_out(void **state)
{
	(void) state;
	for (unsigned is_unmark = 0; is_unmark < 2; is_unmark++) {
		bool was_hit = true;

		for (uint64_t nth = 1; was_hit; nth++) {
			struct world w;
			vd_status    status;

			init(&w, true);
			assert_status(try_open(&w), VD_OK);
			if (is_unmark)
				assert_status(vdi_backend_mark(w.backend, NULL), VD_OK);
			w.error = (struct vd_error) { 0 };
			vdi_disk_sim_fail_nth(w.disk, nth, VDI_DISK_SIM_IO);
			status = is_unmark ? vdi_backend_unmark(w.backend, &w.error) :
					     vdi_backend_mark(w.backend, &w.error);
			was_hit = vdi_disk_sim_failed(w.disk);
			vdi_disk_sim_fail_nth(w.disk, 0, VDI_DISK_SIM_IO);
			assert_status(status, was_hit ? VD_IO : VD_OK);
			assert_status(w.error.code, was_hit ? VD_IO : VD_OK);
			assert_true(was_hit || nth == 3); /* the file, and its name */
			fini(&w);
		}
	}
}

static void run_command(const struct world *w, const char *format, const char *other)
{
	char command[512];

	snprintf(command, sizeof command, format, w->path, other);
	assert_int_equal(system(command), 0);
}

/* Journal and checkpoint are those of one store, and the journal is not missing. */
static void files_of_another_store_are_refused(void **state)
{
	struct world w, other;
	char	     expected[256];

	(void) state;
	init(&w, false);
	init(&other, false);
	for (unsigned round = 0; round < 2; round++) {
		struct world *one = round ? &other : &w;

		assert_status(try_open(one), VD_OK);
		assert_status(commit(one, PUT, 100, true), VD_OK);
		settle(one);
		assert_status(commit(one, PUT, 100, true), VD_OK);
		close_store(one);
		if (round == 0)
			(void) vd_env_random(other.env); /* another id */
	}
	run_command(&w, "cp %s/*.vdj %s/", other.path);
	assert_status(try_open(&other), VD_CORRUPT);
	assert_non_null(strstr(other.error.message, "the file belongs to another store"));
	run_command(&w, "rm %s/*.vdj", "");
	assert_status(try_open(&w), VD_CORRUPT);
	snprintf(expected, sizeof expected,
		 "%s: the journal is missing, yet the checkpoint contains 1 records", w.path);
	assert_string_equal(w.error.message, expected);
	fini(&other);
	fini(&w);
	/* A checkpoint in which nothing is yet. */
	init(&w, false);
	assert_status(try_open(&w), VD_OK);
	close_store(&w);
	run_command(&w, "rm %s/*.vdj", "");
	assert_status(try_open(&w), VD_CORRUPT);
	snprintf(expected, sizeof expected, "%s: there is a checkpoint, but the journal is missing", w.path);
	assert_string_equal(w.error.message, expected);
	fini(&w);
}

static void limit_files(struct world *w, int64_t size)
{
	struct rlimit limited = w->no_limit;

	limited.rlim_cur = (rlim_t) size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
}

/* A new store needs its checkpoint; one with content opens without it, and gets it when there is room. */
static void a_store_with_content_opens_on_a_full_disk(void **state)
{
	struct world w;

	(void) state;
	init(&w, false);
	limit_files(&w, 100000);
	assert_status(try_open(&w), VD_NO_SPACE);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &w.no_limit), 0);
	assert_status(try_open(&w), VD_OK);
	fini(&w);
	init(&w, false);
	w.tuning.is_journal_only = true;
	assert_status(try_open(&w), VD_OK);
	for (unsigned i = 0; i < 30; i++)
		assert_status(commit(&w, PUT | (i ? RENEW : GRANT), 1000, true), VD_OK);
	close_store(&w);
	w.tuning.is_journal_only = false;
	limit_files(&w, 100000);
	assert_status(try_open(&w), VD_OK);
	assert_int_equal(w.changes, 30);
	assert_int_equal(w.leases, 1);
	settle(&w);
	assert_int_equal(vdi_backend_checkpointed(w.backend), 0);
	assert_status(commit(&w, PUT, 1000, true), VD_NO_SPACE);
	assert_non_null(strstr(w.error.message, "there is no room for"));
	assert_status(commit(&w, DELETE, 0, true), VD_OK);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &w.no_limit), 0);
	settle(&w);
	assert_true(vdi_backend_checkpointed(w.backend) >= 31);
	assert_status(commit(&w, PUT, 1000, true), VD_OK);
	close_store(&w);
	assert_status(try_open(&w), VD_OK);
	assert_int_equal(w.changes, 32);
	fini(&w);
}

/* Each read of an open fails once: nothing is changed on disk, and the next open has everything. */
static void a_read_that_fails_changes_nothing(void **state)
{
	bool	     was_hit = true;
	struct world w;

	(void) state;
	init(&w, true);
	assert_status(try_open(&w), VD_OK);
	for (unsigned i = 0; i < 60; i++)
		assert_status(commit(&w, PUT | (i ? RENEW : GRANT) | (i == 30 ? COMPACT : 0), 1000, true),
			      VD_OK);
	close_store(&w);
	for (uint64_t nth = 1; was_hit; nth++) {
		uint64_t  operations = vdi_disk_sim_operations(w.disk);
		vd_status status;

		vdi_disk_sim_fail_read(w.disk, nth);
		status = try_open(&w);
		was_hit = vdi_disk_sim_failed(w.disk);
		assert_status(status, was_hit ? VD_IO : VD_OK);
		vdi_disk_sim_fail_read(w.disk, 0);
		if (was_hit) {
			assert_non_null(strstr(w.error.message, "journal-"));
			assert_int_equal(vdi_disk_sim_operations(w.disk), operations);
			assert_true(nth < 1000);
		} else {
			assert_true(nth > 10);
		}
	}
	assert_int_equal(w.changes, 60);
	assert_int_equal(w.leases, 1);
	fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quota_refuses_what_does_not_fit_and_does_not_free),
		cmocka_unit_test(without_a_quota_nothing_is_refused),
		cmocka_unit_test(a_full_disk_is_told_from_a_full_quota),
		cmocka_unit_test(sizes_are_those_of_journal_and_checkpoint),
		cmocka_unit_test(a_read_that_fails_changes_nothing),
		cmocka_unit_test(a_mark_refuses_the_next_open),
		cmocka_unit_test(errors_of_the_disk_at_a_mark_are_handed_out),
		cmocka_unit_test(files_of_another_store_are_refused),
		cmocka_unit_test(a_store_with_content_opens_on_a_full_disk),
		cmocka_unit_test(a_compaction_goes_on_where_a_delete_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
