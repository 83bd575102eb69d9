/* Unit tests of storage/mvcc/disk/checkpointer.c on a disk that is full: the checkpoint cannot grow. Real
 * files, simulated time and actors. More of it: test_checkpoint.c. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actor_sim.h"
#include "backend_tuning.h"
#include "checkpoint.h"
#include "temp_folder.h"
#include "vdtest.h"

#define LARGE 30000u

struct world {
	struct vd_env	      *env;
	char		       path[TEMP_FOLDER_SIZE];
	struct vd_mvcc_options options;
	struct vdi_backend    *backend;
	vd_rev		       revision;
	uint64_t	       index;	   /* of the last journal record */
	int64_t		       live_count; /* records that the last open gave */
	bool		       may_fit;	   /* a commit that was refused may fit soon */
	struct rlimit	       no_limit;
	struct vd_error	       error;
};

static vd_status begin_load(void *arg, vd_rev compacted, vd_rev revision_min, int64_t estimate)
{
	(void) compacted;
	(void) revision_min;
	(void) estimate;
	((struct world *) arg)->live_count = 0;
	return VD_OK;
}

static vd_status count_record(void *arg, struct vd_kv *kv, bool is_delete)
{
	((struct world *) arg)->live_count += !is_delete;
	vd_kv_unref(kv);
	return VD_OK;
}

static vd_status ignore_lease(void *arg, int64_t id, int64_t ttl_s, vd_wall deadline)
{
	(void) arg;
	(void) id;
	(void) ttl_s;
	(void) deadline;
	return VD_OK;
}

static void open_store(struct world *w)
{
	struct vdi_backend_tuning tuning = { .segment_size = 1 << 20, .checkpoint_bytes = 4096 };
	struct vdi_backend_sink	  sink = { begin_load, count_record, ignore_lease, w };

	assert_status(vdi_backend_open_tuned(w->env, &w->options, &tuning, &sink, &w->backend, &w->error),
		      VD_OK);
}

static void note_closed(void *arg)
{
	*(bool *) arg = true;
}

static void close_store(struct world *w)
{
	bool is_closed = false;

	vdi_backend_close(w->backend, note_closed, &is_closed);
	vdi_sim_run_until_idle(w->env);
	assert_true(is_closed);
}

/* No file may be larger than so many bytes: the checkpoint cannot grow beyond it. */
static void limit_files(struct world *w, int64_t size)
{
	struct rlimit limited = w->no_limit;

	limited.rlim_cur = (rlim_t) size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
}

static int64_t checkpoint_size(const struct world *w)
{
	struct stat info;
	char	    path[128];

	snprintf(path, sizeof path, "%s/%s", w->path, VDI_CHECKPOINT_NAME);
	assert_int_equal(stat(path, &info), 0);
	return info.st_size;
}

static void init(struct world *w)
{
	memset(w, 0, sizeof *w);
	assert_status(vdi_env_new_sim(1, NULL, NULL, &w->env), VD_OK);
	temp_folder_make(w->path);
	w->options = (struct vd_mvcc_options) VD_MVCC_OPTIONS_INIT;
	w->options.data_dir = w->path;
	w->options.no_sync = true; /* nothing here depends on the power staying on */
	w->revision = 1;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &w->no_limit), 0);
	open_store(w);
}

static void fini(struct world *w)
{
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &w->no_limit), 0);
	close_store(w);
	vd_env_free(w->env);
	temp_folder_remove(w->path);
}

static void settle(struct world *w)
{
	vdi_sim_advance(w->env, VD_SECONDS(5));
}

static vd_status commit(struct world *w, const struct vdi_commit *commit)
{
	vd_status status = vdi_backend_append(w->backend, commit, &w->error);

	w->may_fit = status != VD_OK && vdi_backend_may_make_room(w->backend);
	if (status == VD_OK)
		assert_status(vdi_backend_sync(w->backend, &w->error), VD_OK);
	else
		vdi_backend_discard(w->backend);
	w->index += status == VD_OK;
	vdi_sim_advance(w->env, VD_MS(50));
	return status;
}

static struct vd_kv *make_kv(vd_rev revision, uint32_t sub, uint32_t number, size_t size)
{
	static const char value[LARGE];
	struct vd_kv	 *kv;

	assert_status(vd_kv_new((struct vd_bytes) { &number, sizeof number },
				(struct vd_bytes) { value, size }, &kv),
		      VD_OK);
	kv->mod_rev = kv->create_rev = revision;
	kv->sub = sub;
	kv->version = 1;
	return kv;
}

/* One commit that puts count keys, or deletes them: those that the commit of the revision `previous` put. */
static vd_status change(struct world *w, vd_rev previous, uint32_t previous_sub, unsigned count, size_t size)
{
	struct vdi_change *changes = vdi_calloc(count, sizeof *changes);
	vd_status	   status;

	for (unsigned i = 0; i < count; i++) {
		changes[i].kv = make_kv(w->revision + 1, i, previous_sub + i, previous ? 0 : size);
		changes[i].is_delete = previous != 0;
		changes[i].previous =
			previous ? make_kv(previous, previous_sub + i, previous_sub + i, 0) : NULL;
	}
	status = commit(w, &(struct vdi_commit) {
				   .revision = w->revision + 1, .changes = changes, .change_count = count });
	w->revision += status == VD_OK;
	for (unsigned i = 0; i < count; i++) {
		vd_kv_unref(changes[i].kv);
		vd_kv_unref((struct vd_kv *) changes[i].previous);
	}
	vdi_free(changes);
	return status;
}

/* Puts large values until one is refused although nothing is under way that makes room. Returns the first
 * revision. */
static vd_rev fill(struct world *w)
{
	vd_rev	  first = w->revision + 1;
	vd_status status = VD_OK;

	while (status == VD_OK || w->may_fit)
		status = change(w, 0, 0, 1, LARGE);
	assert_status(status, VD_NO_SPACE);
	return first;
}

static void compact(struct world *w, vd_rev revision)
{
	assert_status(commit(w, &(struct vdi_commit) { .compact = revision }), VD_OK);
	settle(w);
}

/* Nothing was refused since the start, so pages that the only step of compaction frees are not waited for;
 * and there is no other group that makes them usable. */
static void e466_a_restart_before_compaction_does_not_keep_puts_refused(void **state)
{
	struct world w;
	vd_rev	     first, last, compacted;

	(void) state;
	init(&w);
	limit_files(&w, 17 << 20);
	assert_status(change(&w, 0, 0, 20000, 1), VD_OK);
	first = fill(&w);
	last = w.revision;
	limit_files(&w, checkpoint_size(&w));
	for (vd_rev revision = first; revision <= last; revision++)
		assert_status(change(&w, revision, 0, 1, 0), VD_OK);
	compacted = w.revision;
	assert_status(change(&w, first - 1, 0, 20000, 0), VD_OK); /* takes most of the reserve */
	settle(&w);
	close_store(&w);
	open_store(&w);
	compact(&w, compacted);
	first = fill(&w);
	assert_true(w.revision - first > 200);
	fini(&w);
}

/* Tombstones of short keys take three times times the bytes in the checkpoint that they take in the journal.
 * What is taken must fit; what does not is refused, and smaller deletes make room. */
static void e466_a_delete_of_many_short_keys_fits_or_is_refused(void **state)
{
	const unsigned total = 76000, least = 1000;
	struct world   w;
	unsigned       count = total, refused = 0;
	vd_rev	       previous, large;

	(void) state;
	init(&w);
	limit_files(&w, 17 << 20);
	assert_status(change(&w, 0, 0, total, 1), VD_OK);
	previous = w.revision;
	settle(&w);
	large = fill(&w);
	large = w.revision + 1 - large;
	for (unsigned done = 0; done < total;) {
		unsigned  now = VDI_MIN(count, total - done);
		vd_status status = change(&w, previous, done, now, 0);

		settle(&w);
		if (status != VD_OK) {
			assert_status(status, VD_NO_SPACE);
			assert_non_null(
				strstr(w.error.message, "the reserve for deletes is used up as well"));
			assert_true(count > least);
			count /= 2;
			refused++;
			continue;
		}
		assert_int_equal(vdi_backend_checkpointed(w.backend), w.index);
		done += now;
		compact(&w, w.revision);
	}
	assert_true(refused > 0); /* else it was not full */
	close_store(&w);
	open_store(&w);
	assert_int_equal(w.live_count, large);
	fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e466_a_restart_before_compaction_does_not_keep_puts_refused),
		cmocka_unit_test(e466_a_delete_of_many_short_keys_fits_or_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
