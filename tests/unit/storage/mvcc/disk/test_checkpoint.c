/* Unit tests of storage/mvcc/disk/checkpoint.c, checkpoint_verify.c and checkpointer.c: real files, simulated
 * time and actors. Compaction: test_checkpoint_compact.c. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actor_sim.h"
#include "backend_model.h"
#include "backend_tuning.h"
#include "checkpoint.h"
#include "checkpoint_world.h"
#include "wait.h"

static void e406_checkpoint_and_journal_give_back_what_compaction_keeps(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 12; seed++) {
		struct checkpoint_world world;

		checkpoint_world_init(&world, seed);
		for (int round = 0; round < 8; round++) {
			size_t before = world.model.commit_count;

			assert_status(checkpoint_world_open(&world), VD_OK);
			assert_int_equal(world.model.commit_count, before);
			checkpoint_world_write(&world, 40);
			if (round % 2)
				checkpoint_settle(&world);
			checkpoint_world_close(&world);
		}
		checkpoint_world_fini(&world);
	}
}

static unsigned private_count;
static void	expect_private(const char *path)
{
	struct stat attributes;

	assert_int_equal(stat(path, &attributes), 0);
	if ((attributes.st_mode & 0777) != 0600)
		fail_msg("%s has mode %03o", path, attributes.st_mode & 0777);
	private_count++;
}

static void make_public(const char *path)
{
	assert_int_equal(chmod(path, 0644), 0);
}

/* LOCK, journal and checkpoint, with any umask and also when an older version made them readable. */
static void files_of_the_store_are_its_owners_alone(void **state)
{
	struct checkpoint_world world;
	struct stat		attributes;
	mode_t			before = umask(0);

	(void) state;
	checkpoint_world_init(&world, 7);
	for (int round = 0; round < 3; round++) {
		assert_status(checkpoint_world_open(&world), VD_OK);
		checkpoint_world_write(&world, 40);
		checkpoint_settle(&world);
		checkpoint_world_close(&world);
		private_count = 0;
		checkpoint_each_file(&world, expect_private);
		assert_true(private_count >= 3);
		assert_int_equal(stat(world.path, &attributes), 0);
		assert_int_equal(attributes.st_mode & 07777, 0700);
		checkpoint_each_file(&world, make_public);
		assert_int_equal(chmod(world.path, 0755), 0);
	}
	checkpoint_world_fini(&world);
	(void) umask(before);
}

static void e1018_checkpointed_journal_files_go_and_space_is_bounded(void **state)
{
	struct checkpoint_world world;

	(void) state;
	checkpoint_world_init(&world, 99);
	assert_status(checkpoint_world_open(&world), VD_OK);
	for (int i = 0; i < 60; i++) {
		checkpoint_world_write(&world, 40);
		checkpoint_settle(&world);
		assert_in_range(checkpoint_count_journals(&world), 1, 1);
		assert_true(vdi_backend_size_bytes(world.backend) < 1500000);
	}
	checkpoint_world_close(&world);
	assert_status(checkpoint_world_open(&world), VD_OK);
	checkpoint_world_fini(&world);
}

static void put_sized(struct vdi_backend *backend, vd_rev revision, size_t size)
{
	static const char value[30000];
	struct vdi_change change = { false, NULL, NULL };
	struct vdi_commit commit = { .revision = revision, .changes = &change, .change_count = 1 };

	assert_status(vd_kv_new(vd_bytes_of("/big"), (struct vd_bytes) { value, size }, &change.kv), VD_OK);
	change.kv->mod_rev = change.kv->create_rev = revision;
	change.kv->version = 1;
	assert_status(vdi_backend_append(backend, &commit, NULL), VD_OK);
	vd_kv_unref(change.kv);
	assert_status(vdi_backend_sync(backend, NULL), VD_OK);
}

/* So many bytes that the journal would fill up do not wait for the time of the next checkpoint; few do. */
static void e1018_a_lot_is_checkpointed_at_once(void **state)
{
	struct checkpoint_world world;
	int64_t			size;

	(void) state;
	checkpoint_world_init(&world, 98);
	world.model.value_size_max = 20;
	assert_status(checkpoint_world_open(&world), VD_OK);
	checkpoint_world_write(&world, 1);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(vdi_backend_checkpointed(world.backend), 0);
	checkpoint_world_write(&world, 100);
	vdi_sim_run_until_idle(world.env);
	assert_true(vdi_backend_checkpointed(world.backend) > 50);
	checkpoint_settle(&world);
	assert_int_equal(vdi_backend_checkpointed(world.backend), world.model.commit_count);
	/* What the checkpoint has is not counted twice after a start either. */
	size = vdi_backend_size_bytes(world.backend);
	checkpoint_world_close(&world);
	assert_status(checkpoint_world_open(&world), VD_OK);
	assert_in_range(vdi_backend_size_bytes(world.backend), size, size + 1000);
	checkpoint_world_fini(&world);
}

/* Before a group is written there is room for twice its bytes, in the file too; a small group after it needs
 * nothing. */
static void room_is_made_for_what_is_announced(void **state)
{
	static const uint8_t	store_id[VDI_STORE_ID_SIZE] = { 1 };
	struct vdi_checkpoint  *checkpoint;
	struct vdi_dir	       *dir;
	struct checkpoint_world world;
	char			path[128];
	int64_t			size;

	(void) state;
	checkpoint_world_init(&world, 97);
	snprintf(path, sizeof path, "%s/%s", world.path, VDI_CHECKPOINT_NAME);
	assert_status(vdi_dir_open(vdi_disk_os(), world.path, &dir, NULL), VD_OK);
	assert_status(vdi_checkpoint_create(dir, true, store_id, &checkpoint, NULL), VD_OK);
	assert_status(vdi_checkpoint_begin(checkpoint, 20 << 20, NULL), VD_OK);
	assert_status(vdi_checkpoint_commit(checkpoint, NULL), VD_OK);
	size = checkpoint_size_of(path);
	assert_in_range(size, (40 << 20) + (256 << 10), 64 << 20);
	assert_status(vdi_checkpoint_begin(checkpoint, 1 << 20, NULL), VD_OK);
	vdi_checkpoint_abort(checkpoint);
	assert_int_equal(checkpoint_size_of(path), size);
	/* Not less than a quarter at once, so that it is not made larger again and again. */
	assert_status(vdi_checkpoint_begin(checkpoint, size / 2, NULL), VD_OK);
	vdi_checkpoint_abort(checkpoint);
	assert_true(checkpoint_size_of(path) >= size + size / 4);
	vdi_checkpoint_close(checkpoint);
	vdi_dir_close(dir);
	checkpoint_world_fini(&world);
}

/* KiB of the mapped checkpoint that count as memory of this process. */
static long resident_kib(const char *path)
{
	FILE	     *file = fopen("/proc/self/smaps", "r");
	char	      line[512];
	bool	      is_here = false;
	unsigned long from, to;
	long	      kib = 0, part;

	assert_non_null(file);
	while (fgets(line, sizeof line, file)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			is_here = strstr(line, path) != NULL;
		else if (is_here && sscanf(line, "Rss: %ld", &part) == 1)
			kib += part;
	}
	fclose(file);
	return kib;
}

struct walked {
	const char *path;
	unsigned    count;
	long	    kib; /* the most on the way */
};

static vd_status note_record(void *arg, const struct vdi_record *record)
{
	struct walked *seen = arg;

	if (++seen->count % 50 == 0)
		seen->kib = VDI_MAX(seen->kib, resident_kib(seen->path));
	return record->value.size == 30000 ? VD_OK : VD_CORRUPT;
}

static void what_was_walked_through_does_not_stay_in_memory(void **state)
{
	struct walked		seen = { 0 };
	struct vdi_checkpoint  *checkpoint;
	struct vdi_dir	       *dir;
	struct checkpoint_world world;
	char			path[128];

	(void) state;
	checkpoint_world_init(&world, 96);
	snprintf(path, sizeof path, "%s/%s", world.path, VDI_CHECKPOINT_NAME);
	seen.path = path;
	assert_status(checkpoint_world_open(&world), VD_OK);
	for (vd_rev revision = 2; revision < 202; revision++)
		put_sized(world.backend, revision, 30000);
	checkpoint_settle(&world);
	checkpoint_world_close(&world);
	assert_status(vdi_dir_open(vdi_disk_os(), world.path, &dir, NULL), VD_OK);
	assert_status(vdi_checkpoint_open(dir, true, NULL, &checkpoint, NULL), VD_OK);
	for (unsigned i = 1; i <= 2; i++) {
		assert_status(vdi_checkpoint_walk(checkpoint, 0, 1000, note_record, &seen, NULL), VD_OK);
		assert_int_equal(seen.count, i * 200);
		assert_true(seen.kib > 3000);
		assert_true(resident_kib(path) < 1000);
	}
	vdi_checkpoint_close(checkpoint);
	vdi_dir_close(dir);
	checkpoint_world_fini(&world);
}

static void out_of_memory_at_any_allocation_of_a_start(void **state)
{
	struct checkpoint_world world;

	(void) state;
	checkpoint_write_and_settle(&world, 7);
	for (uint64_t nth = 1;; nth++) {
		int64_t			live = vdi_alloc_live();
		bool			was_hit;
		struct model_loaded	loaded;
		struct vdi_backend_sink sink = model_sink(&loaded);
		vd_status		status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_backend_open_tuned(world.env, &world.options, &world.tuning, &sink,
						&world.backend, &world.error);
		was_hit = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		model_loaded_fini(&loaded);
		if (status == VD_OK)
			checkpoint_world_close(&world);
		if (!was_hit)
			break;
		assert_status(status, VD_NOMEM);
		assert_int_equal(vdi_alloc_live(), live);
	}
	assert_status(checkpoint_world_open(&world), VD_OK);
	checkpoint_world_fini(&world);
}

/* What the last process had not yet taken over is taken over at the next start, also when nobody writes. */
static void a_start_with_a_backlog_works_it_off(void **state)
{
	struct checkpoint_world world;

	(void) state;
	checkpoint_world_init(&world, 21);
	world.tuning.checkpoint_bytes = 1 << 20;
	assert_status(checkpoint_world_open(&world), VD_OK);
	checkpoint_world_write(&world, 200);
	checkpoint_world_close(&world);
	assert_true(checkpoint_count_journals(&world) > 2);
	world.tuning.checkpoint_bytes = 4096;
	assert_status(checkpoint_world_open(&world), VD_OK);
	checkpoint_settle(&world);
	assert_int_equal(checkpoint_count_journals(&world), 1);
	checkpoint_world_fini(&world);
}

/* A run of the actor that fails for lack of memory is repeated; nothing is lost or done twice. */
static void out_of_memory_in_the_actor_is_tried_again(void **state)
{
	struct checkpoint_world world;

	(void) state;
	checkpoint_world_init(&world, 8);
	assert_status(checkpoint_world_open(&world), VD_OK);
	for (uint64_t nth = 1; nth < 60; nth++) {
		checkpoint_world_write(&world, 5);
		vdi_alloc_fail_nth(nth % 20 + 1, 1 + nth % 3);
		vdi_sim_advance(world.env, VD_MS(1100));
		vdi_alloc_fail_nth(0, 0);
	}
	checkpoint_settle(&world);
	assert_int_equal(checkpoint_count_journals(&world), 1);
	checkpoint_world_close(&world);
	assert_status(checkpoint_world_open(&world), VD_OK);
	checkpoint_world_fini(&world);
}

static vd_status count_record(void *arg, struct vd_kv *kv, bool is_delete)
{
	(void) is_delete;
	++*(uint64_t *) arg;
	vd_kv_unref(kv);
	return VD_OK;
}
static vd_status ignore_begin(void *arg, vd_rev compacted, vd_rev revision_min, int64_t estimate)
{
	(void) arg;
	(void) compacted;
	(void) revision_min;
	(void) estimate;
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

/* A commit that puts (size), deletes (size 0) or compacts (no key). */
static vd_status commit_one(struct checkpoint_world *world, vd_rev revision, const char *key, vd_rev previous,
			    size_t size)
{
	static const char value[30000];
	struct vdi_change change = { .is_delete = size == 0 };
	struct vdi_commit commit = { .revision = revision, .changes = &change, .change_count = 1 };
	struct vd_kv	 *superseded = NULL;
	vd_status	  status;

	if (key == NULL)
		commit = (struct vdi_commit) { .compact = revision };
	assert_status(vd_kv_new(vd_bytes_of(key ? key : "/"), (struct vd_bytes) { value, size }, &change.kv),
		      VD_OK);
	change.kv->mod_rev = revision;
	if (size) {
		change.kv->create_rev = revision;
		change.kv->version = 1;
	} else {
		assert_status(vd_kv_new(vd_bytes_of(key ? key : "/"), VD_BYTES_NONE, &superseded), VD_OK);
		superseded->mod_rev = superseded->create_rev = previous;
		superseded->version = 1;
		change.previous = superseded;
	}
	status = vdi_backend_append(world->backend, &commit, &world->error);
	world->may_fit = status != VD_OK && vdi_backend_may_make_room(world->backend);
	vd_kv_unref(change.kv);
	vd_kv_unref(superseded);
	if (status == VD_OK)
		status = vdi_backend_sync(world->backend, &world->error);
	else
		vdi_backend_discard(world->backend);
	vdi_sim_advance(world->env, VD_MS(50));
	return status;
}

static vd_rev put_until_full(struct checkpoint_world *world, vd_rev revision)
{
	char	  key[32];
	vd_status status = VD_OK;

	while (status == VD_OK || world->may_fit) {
		snprintf(key, sizeof key, "/%lld", (long long) revision);
		status = commit_one(world, revision, key, 0, 30000);
		revision += status == VD_OK;
		vdi_sim_advance(world->env, VD_MS(50));
	}
	assert_status(status, VD_NO_SPACE);
	assert_non_null(strstr(world->error.message, "the disk is full"));
	assert_non_null(strstr(world->error.message, world->path));
	return revision;
}

/* No file may be larger than 17 MiB, so the checkpoint cannot grow. Puts are refused before it has to;
 * deletes and compactions go on and make room for others, as often as one likes; a larger disk makes room at
 * once. */
static void e466_a_full_disk_refuses_puts_until_deletes_and_compaction_make_room(void **state)
{
	struct rlimit		before, limited;
	struct checkpoint_world world;
	uint64_t		count = 0;
	vd_rev			from = 2, to;
	char			key[32];
	struct vdi_backend_sink sink = { ignore_begin, count_record, ignore_lease, &count };

	(void) state;
	checkpoint_world_init(&world, 9);
	world.tuning.segment_size = 65536;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limited = before;
	limited.rlim_cur = 17 << 20;
	assert_status(
		vdi_backend_open_tuned(world.env, &world.options, &world.tuning, &sink, &world.backend, NULL),
		VD_OK);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
	for (int round = 0; round < 6; round++) {
		to = put_until_full(&world, from);
		assert_true(to - from > 200);
		for (vd_rev revision = from; revision < to; revision++) {
			snprintf(key, sizeof key, "/%lld", (long long) revision);
			assert_status(commit_one(&world, to + revision - from, key, revision, 0), VD_OK);
		}
		/* The next start finds a full disk too. */
		if (round % 2) {
			checkpoint_world_close(&world);
			assert_status(vdi_backend_open_tuned(world.env, &world.options, &world.tuning, &sink,
							     &world.backend, NULL),
				      VD_OK);
		}
		from = 2 * to - from;
		assert_status(commit_one(&world, from - 1, NULL, 0, 0), VD_OK);
		checkpoint_settle(&world);
	}
	to = put_until_full(&world, from);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "/%lld", (long long) to);
		assert_status(commit_one(&world, to++, key, 0, 30000), VD_OK);
	}
	count = 0;
	checkpoint_world_close(&world);
	assert_status(
		vdi_backend_open_tuned(world.env, &world.options, &world.tuning, &sink, &world.backend, NULL),
		VD_OK);
	assert_in_range(count, to - from, to - from + 1);
	checkpoint_world_fini(&world);
}

/* One write is enough, although an earlier one has already asked for a checkpoint some time. */
static void e1018_one_large_write_is_checkpointed_at_once(void **state)
{
	struct checkpoint_world world;
	uint64_t		count = 0;
	struct vdi_backend_sink sink = { ignore_begin, count_record, ignore_lease, &count };

	(void) state;
	checkpoint_world_init(&world, 96);
	world.tuning.segment_size = 65536;
	assert_status(
		vdi_backend_open_tuned(world.env, &world.options, &world.tuning, &sink, &world.backend, NULL),
		VD_OK);
	put_sized(world.backend, 2, 10);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(vdi_backend_checkpointed(world.backend), 0);
	put_sized(world.backend, 3, 30000);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(vdi_backend_checkpointed(world.backend), 2);
	checkpoint_world_fini(&world);
}

/* What comes while a group is taken waits until it is enough for one, or for its time: each group waits for
 * the disk. */
static void e1018_a_steady_stream_is_taken_in_large_groups(void **state)
{
	struct checkpoint_world world;
	struct vd_env	       *threads;
	struct vdi_wait		wait;
	uint64_t		count = 0;
	uint64_t		covered = 0;
	unsigned		groups = 0;
	struct vdi_backend_sink sink = { ignore_begin, count_record, ignore_lease, &count };

	(void) state;
	checkpoint_world_init(&world, 11);
	assert_status(vd_env_new_threads(NULL, &threads), VD_OK);
	world.tuning.checkpoint_bytes = 64 << 10;
	world.tuning.checkpoint_interval = VD_SECONDS(3600);
	assert_status(vdi_backend_open_tuned(threads, &world.options, &world.tuning, &sink, &world.backend,
					     &world.error),
		      VD_OK);
	/* 10,000 bytes a write: seven are enough for a group, of which the last may not be on disk yet. */
	for (vd_rev revision = 2; revision < 302; revision++) {
		put_sized(world.backend, revision, 10000);
		if (vdi_backend_checkpointed(world.backend) != covered) {
			covered = vdi_backend_checkpointed(world.backend);
			groups++;
		}
	}
	assert_in_range(groups, 0, 300 / 6 + 1);
	vdi_wait_init(&wait, threads);
	vdi_backend_close(world.backend, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	world.backend = NULL;
	vd_env_free(threads);
	checkpoint_world_fini(&world);
}

/* Writer and checkpoint on real threads: for the thread sanitizer. */
static void writer_and_actor_run_side_by_side(void **state)
{
	struct checkpoint_world world;
	struct vd_env	       *threads;

	(void) state;
	checkpoint_world_init(&world, 10);
	assert_status(vd_env_new_threads(NULL, &threads), VD_OK);
	for (int round = 0; round < 4; round++) {
		struct model_loaded	loaded;
		struct vdi_backend_sink sink = model_sink(&loaded);
		struct vdi_wait		wait;

		world.tuning.checkpoint_interval = VD_MS(1);
		assert_status(vdi_backend_open_tuned(threads, &world.options, &world.tuning, &sink,
						     &world.backend, &world.error),
			      VD_OK);
		assert_int_equal(model_match(&world.model, &loaded), world.model.commit_count);
		model_loaded_fini(&loaded);
		for (int i = 0; i < 150; i++) {
			struct model_draft draft;

			model_draft(&world.model, &draft);
			assert_status(vdi_backend_append(world.backend, &draft.commit, &world.error), VD_OK);
			model_keep(&world.model, &draft);
			assert_status(vdi_backend_sync(world.backend, &world.error), VD_OK);
			world.model.durable = world.model.commit_count;
			assert_true(vdi_backend_size_bytes(world.backend) > 0);
		}
		vdi_wait_init(&wait, threads);
		vdi_backend_close(world.backend, vdi_wait_signal_arg, &wait);
		vdi_wait_wait(&wait);
		vdi_wait_fini(&wait);
		world.backend = NULL;
	}
	vd_env_free(threads);
	checkpoint_world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e406_checkpoint_and_journal_give_back_what_compaction_keeps),
		cmocka_unit_test(files_of_the_store_are_its_owners_alone),
		cmocka_unit_test(e1018_checkpointed_journal_files_go_and_space_is_bounded),
		cmocka_unit_test(e1018_a_lot_is_checkpointed_at_once),
		cmocka_unit_test(e1018_one_large_write_is_checkpointed_at_once),
		cmocka_unit_test(e1018_a_steady_stream_is_taken_in_large_groups),
		cmocka_unit_test(room_is_made_for_what_is_announced),
		cmocka_unit_test(what_was_walked_through_does_not_stay_in_memory),
		cmocka_unit_test(out_of_memory_at_any_allocation_of_a_start),
		cmocka_unit_test(a_start_with_a_backlog_works_it_off),
		cmocka_unit_test(out_of_memory_in_the_actor_is_tried_again),
		cmocka_unit_test(e466_a_full_disk_refuses_puts_until_deletes_and_compaction_make_room),
		cmocka_unit_test(writer_and_actor_run_side_by_side),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
