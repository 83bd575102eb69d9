/* Unit tests of storage/mvcc/disk/checkpoint.c, checkpoint_verify.c and checkpointer.c: real files, simulated
 * time and actors. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <signal.h>
#include <sys/resource.h>

#include "actor_sim.h"
#include "checkpoint.h"
#include "checkpoint_verify.h"
#include "persist_model.h"
#include "persist_tuning.h"
#include "wait.h"

struct world {
	struct vd_env		 *env;
	char			  path[64];
	struct vdi_persist_tuning tuning;
	struct vd_mvcc_options	  options;
	struct vdi_persist	 *persist;
	struct model		  model;
	struct vd_error		  error;
};

static void each_file(struct world *world, void (*visit)(const char *path))
{
	struct dirent *entry;
	DIR	      *stream = opendir(world->path);
	char	       path[512];

	while (stream && (entry = readdir(stream))) {
		snprintf(path, sizeof path, "%s/%s", world->path, entry->d_name);
		if (entry->d_type == DT_REG)
			visit(path);
	}
	if (stream)
		closedir(stream);
}

static int64_t size_of(const char *path)
{
	struct stat info;

	assert_int_equal(stat(path, &info), 0);
	return info.st_size;
}

static void remove_file(const char *path)
{
	assert_int_equal(unlink(path), 0);
}

static void world_init(struct world *world, uint64_t seed)
{
	memset(world, 0, sizeof *world);
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world->env), VD_OK);
	snprintf(world->path, sizeof world->path, "/tmp/vedette-test-checkpoint-XXXXXX");
	assert_non_null(mkdtemp(world->path));
	world->tuning = (struct vdi_persist_tuning) { .segment_size = 16384, .checkpoint_bytes = 4096 };
	world->options = (struct vd_mvcc_options) VD_MVCC_OPTIONS_INIT;
	world->options.data_dir = world->path;
	world->options.no_sync = true; /* nothing here depends on the power staying on */
	model_init(&world->model, seed);
}

static void note_closed(void *arg)
{
	*(bool *) arg = true;
}

static void world_close(struct world *world)
{
	bool is_closed = false;

	if (world->persist == NULL)
		return;
	vdi_persist_close(world->persist, note_closed, &is_closed);
	vdi_sim_run_until_idle(world->env);
	assert_true(is_closed);
	world->persist = NULL;
}

static void world_fini(struct world *world)
{
	world_close(world);
	model_fini(&world->model);
	vd_env_free(world->env);
	each_file(world, remove_file);
	rmdir(world->path);
}

static vd_status world_open(struct world *world)
{
	struct model_loaded	loaded;
	struct vdi_persist_sink sink = model_sink(&loaded);
	vd_status status = vdi_persist_open_tuned(world->env, &world->options, &world->tuning, &sink,
						  &world->persist, &world->error);

	if (status == VD_OK)
		model_cut(&world->model, model_match(&world->model, &loaded));
	model_loaded_fini(&loaded);
	return status;
}

static void world_write(struct world *world, unsigned groups)
{
	for (unsigned i = 0; i < groups; i++) {
		for (uint64_t j = 0, count = 1 + vdi_rand_below(&world->model.rand, 4); j < count; j++) {
			struct model_draft draft;

			model_draft(&world->model, &draft);
			assert_status(vdi_persist_append(world->persist, &draft.commit, &world->error),
				      VD_OK);
			model_keep(&world->model, &draft);
		}
		assert_status(vdi_persist_sync(world->persist, &world->error), VD_OK);
		world->model.durable = world->model.commit_count;
		if (vdi_rand_once_in(&world->model.rand, 4))
			vdi_sim_step(world->env);
	}
}

static void settle(struct world *world)
{
	vdi_sim_advance(world->env, VD_SECONDS(5));
}

static unsigned journal_count;
static void	count_journals(const char *path)
{
	journal_count += strstr(path, ".vdj") != NULL;
}

static void e406_checkpoint_and_journal_give_back_what_compaction_keeps(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 12; seed++) {
		struct world world;

		world_init(&world, seed);
		for (int round = 0; round < 8; round++) {
			size_t before = world.model.commit_count;

			assert_status(world_open(&world), VD_OK);
			assert_int_equal(world.model.commit_count, before);
			world_write(&world, 40);
			if (round % 2)
				settle(&world);
			world_close(&world);
		}
		world_fini(&world);
	}
}

static unsigned private_count;
static void	expect_private(const char *path)
{
	struct stat facts;

	assert_int_equal(stat(path, &facts), 0);
	if ((facts.st_mode & 0777) != 0600)
		fail_msg("%s has mode %03o", path, facts.st_mode & 0777);
	private_count++;
}

static void make_public(const char *path)
{
	assert_int_equal(chmod(path, 0644), 0);
}

/* LOCK, journal and checkpoint, with any umask and also when an older version made them readable. */
static void files_of_the_store_are_its_owners_alone(void **state)
{
	struct world world;
	struct stat  facts;
	mode_t	     before = umask(0);

	(void) state;
	world_init(&world, 7);
	for (int round = 0; round < 3; round++) {
		assert_status(world_open(&world), VD_OK);
		world_write(&world, 40);
		settle(&world);
		world_close(&world);
		private_count = 0;
		each_file(&world, expect_private);
		assert_true(private_count >= 3);
		assert_int_equal(stat(world.path, &facts), 0);
		assert_int_equal(facts.st_mode & 07777, 0700);
		each_file(&world, make_public);
		assert_int_equal(chmod(world.path, 0755), 0);
	}
	world_fini(&world);
	(void) umask(before);
}

static void e1018_checkpointed_journal_files_go_and_space_is_bounded(void **state)
{
	struct world world;

	(void) state;
	world_init(&world, 99);
	assert_status(world_open(&world), VD_OK);
	for (int i = 0; i < 60; i++) {
		world_write(&world, 40);
		settle(&world);
		journal_count = 0;
		each_file(&world, count_journals);
		assert_in_range(journal_count, 1, 1);
		assert_true(vdi_persist_size_bytes(world.persist) < 1500000);
	}
	world_close(&world);
	assert_status(world_open(&world), VD_OK);
	world_fini(&world);
}

static void put_sized(struct vdi_persist *persist, vd_rev revision, size_t size)
{
	static const char value[30000];
	struct vdi_change change = { false, NULL, NULL };
	struct vdi_commit commit = { .revision = revision, .changes = &change, .change_count = 1 };

	assert_status(vd_kv_new(vd_bytes_of("/big"), (struct vd_bytes) { value, size }, &change.kv), VD_OK);
	change.kv->mod_rev = change.kv->create_rev = revision;
	change.kv->version = 1;
	assert_status(vdi_persist_append(persist, &commit, NULL), VD_OK);
	vd_kv_unref(change.kv);
	assert_status(vdi_persist_sync(persist, NULL), VD_OK);
}

/* So many bytes that the journal would fill up do not wait for the time of the next checkpoint; few do. */
static void e1018_a_lot_is_checkpointed_at_once(void **state)
{
	struct world world;
	int64_t	     size;

	(void) state;
	world_init(&world, 98);
	world.model.value_size_max = 20;
	assert_status(world_open(&world), VD_OK);
	world_write(&world, 1);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(vdi_persist_checkpointed(world.persist), 0);
	world_write(&world, 100);
	vdi_sim_run_until_idle(world.env);
	assert_true(vdi_persist_checkpointed(world.persist) > 50);
	settle(&world);
	assert_int_equal(vdi_persist_checkpointed(world.persist), world.model.commit_count);
	/* What the checkpoint has is not counted twice after a start either. */
	size = vdi_persist_size_bytes(world.persist);
	world_close(&world);
	assert_status(world_open(&world), VD_OK);
	assert_in_range(vdi_persist_size_bytes(world.persist), size, size + 1000);
	world_fini(&world);
}

/* Before a group is written there is room for twice its bytes, in the file too; a small group after it needs
 * nothing. */
static void room_is_made_for_what_is_announced(void **state)
{
	static const uint8_t   store_id[VDI_STORE_ID_SIZE] = { 1 };
	struct vdi_checkpoint *checkpoint;
	struct vdi_dir	      *dir;
	struct world	       world;
	char		       path[128];
	int64_t		       size;

	(void) state;
	world_init(&world, 97);
	snprintf(path, sizeof path, "%s/%s", world.path, VDI_CHECKPOINT_NAME);
	assert_status(vdi_dir_open(vdi_disk_os(), world.path, &dir, NULL), VD_OK);
	assert_status(vdi_checkpoint_create(dir, true, store_id, &checkpoint, NULL), VD_OK);
	assert_status(vdi_checkpoint_begin(checkpoint, 20 << 20, NULL), VD_OK);
	assert_status(vdi_checkpoint_commit(checkpoint, NULL), VD_OK);
	size = size_of(path);
	assert_in_range(size, (40 << 20) + (256 << 10), 64 << 20);
	assert_status(vdi_checkpoint_begin(checkpoint, 1 << 20, NULL), VD_OK);
	vdi_checkpoint_abort(checkpoint);
	assert_int_equal(size_of(path), size);
	/* Not less than a quarter at once, so that it is not made larger again and again. */
	assert_status(vdi_checkpoint_begin(checkpoint, size / 2, NULL), VD_OK);
	vdi_checkpoint_abort(checkpoint);
	assert_true(size_of(path) >= size + size / 4);
	vdi_checkpoint_close(checkpoint);
	vdi_dir_close(dir);
	world_fini(&world);
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
	struct walked	       seen = { 0 };
	struct vdi_checkpoint *checkpoint;
	struct vdi_dir	      *dir;
	struct world	       world;
	char		       path[128];

	(void) state;
	world_init(&world, 96);
	snprintf(path, sizeof path, "%s/%s", world.path, VDI_CHECKPOINT_NAME);
	seen.path = path;
	assert_status(world_open(&world), VD_OK);
	for (vd_rev revision = 2; revision < 202; revision++)
		put_sized(world.persist, revision, 30000);
	settle(&world);
	world_close(&world);
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
	world_fini(&world);
}

/* ---- Damage ---- */

static void flip(const char *path, int64_t offset, uint8_t bits)
{
	int	fd = open(path, O_RDWR);
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, offset), 1);
	byte ^= bits;
	assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
	close(fd);
}

static void write_and_settle(struct world *world, uint64_t seed)
{
	world_init(world, seed);
	world->model.value_size_max = 3000; /* some in overflow pages */
	assert_status(world_open(world), VD_OK);
	world_write(world, 100);
	settle(world);
	world_write(world, 20);
	settle(world);
	world_close(world);
}

/* Whatever byte is turned: an error, or every commit as it was (the byte meant nothing). Never something
 * else, never a crash. */
static void damage_of_any_page_byte_is_found_or_means_nothing(void **state)
{
	struct world world;
	char	     path[128];
	unsigned     found = 0, meaningless = 0;
	size_t	     commits;

	(void) state;
	write_and_settle(&world, 4);
	commits = world.model.commit_count;
	snprintf(path, sizeof path, "%s/%s", world.path, VDI_CHECKPOINT_NAME);
	for (int i = 0; i < 1500; i++) {
		int64_t offset = i < 300 ? i : (int64_t) vdi_rand_below(&world.model.rand, 600000);
		uint8_t bits = (uint8_t) (1u << vdi_rand_below(&world.model.rand, 8));

		if (i >= 300 && i % 3 == 0)
			offset = offset / 4096 * 4096 + (int64_t) vdi_rand_below(&world.model.rand, 64);
		flip(path, offset, bits);
		if (world_open(&world) == VD_OK) {
			assert_int_equal(world.model.commit_count, commits);
			meaningless++;
			world_close(&world); /* before the actor writes anything */
		} else {
			assert_true(world.error.code == VD_CORRUPT || world.error.code == VD_NEWER_FORMAT);
			assert_non_null(strstr(world.error.message, world.path));
			found++;
		}
		flip(path, offset, bits);
	}
	assert_true(found > 100 && meaningless > 100);
	assert_status(world_open(&world), VD_OK);
	world_fini(&world);
}

/* By itself, not by what else is wrong with what stands there. */
static void a_node_at_an_odd_place_is_named(void **state)
{
	struct world  world;
	unsigned char header[20];
	char	      path[128];
	unsigned      pages = 0;
	int	      fd;

	(void) state;
	write_and_settle(&world, 5);
	snprintf(path, sizeof path, "%s/%s", world.path, VDI_CHECKPOINT_NAME);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	for (int64_t page = 2; pread(fd, header, sizeof header, page * 4096) == (ssize_t) sizeof header;
	     page++) {
		if (header[0] != page % 256 || header[1] != page / 256 || header[10] != 2 || header[11] != 0)
			continue; /* no leaf */
		flip(path, page * 4096 + 16, 1);
		if (world_open(&world) == VD_OK)
			world_close(&world); /* a page that is free */
		else
			pages += strstr(world.error.message, "a node leads outside its page") != NULL;
		flip(path, page * 4096 + 16, 1);
	}
	close(fd);
	assert_true(pages > 3);
	world_fini(&world);
}

static void a_cut_checkpoint_is_named_and_never_mapped(void **state)
{
	struct world world;
	char	     path[128];
	int64_t	     size;

	(void) state;
	write_and_settle(&world, 5);
	snprintf(path, sizeof path, "%s/%s", world.path, VDI_CHECKPOINT_NAME);
	size = size_of(path);
	for (int64_t at = 0; at <= 400000; at += at < 9000 ? 1000 : 41000) {
		assert_int_equal(truncate(path, at), 0);
		assert_int_not_equal(world_open(&world), VD_OK);
		assert_true(world.error.code == VD_CORRUPT);
		assert_non_null(strstr(world.error.message, VDI_CHECKPOINT_NAME));
	}
	assert_true(size >= 1 << 20);
	world_fini(&world);
}

static void a_missing_journal_beside_a_checkpoint_is_damage(void **state)
{
	struct world world;
	char	     path[512];

	(void) state;
	write_and_settle(&world, 6);
	snprintf(path, sizeof path, "rm %s/*.vdj", world.path);
	assert_int_equal(system(path), 0);
	assert_status(world_open(&world), VD_CORRUPT);
	world_fini(&world);
}

static void out_of_memory_at_any_allocation_of_a_start(void **state)
{
	struct world world;

	(void) state;
	write_and_settle(&world, 7);
	for (uint64_t nth = 1;; nth++) {
		int64_t			live = vdi_alloc_live();
		bool			was_hit;
		struct model_loaded	loaded;
		struct vdi_persist_sink sink = model_sink(&loaded);
		vd_status		status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_persist_open_tuned(world.env, &world.options, &world.tuning, &sink,
						&world.persist, &world.error);
		was_hit = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		model_loaded_fini(&loaded);
		if (status == VD_OK)
			world_close(&world);
		if (!was_hit)
			break;
		assert_status(status, VD_NOMEM);
		assert_int_equal(vdi_alloc_live(), live);
	}
	assert_status(world_open(&world), VD_OK);
	world_fini(&world);
}

/* A run of the actor that fails for lack of memory is repeated; nothing is lost or done twice. */
/* What the last process had not yet taken over is taken over at the next start, also when nobody writes. */
static void a_start_with_a_backlog_works_it_off(void **state)
{
	struct world world;

	(void) state;
	world_init(&world, 21);
	world.tuning.checkpoint_bytes = 1 << 20;
	assert_status(world_open(&world), VD_OK);
	world_write(&world, 200);
	world_close(&world);
	journal_count = 0;
	each_file(&world, count_journals);
	assert_true(journal_count > 2);
	world.tuning.checkpoint_bytes = 4096;
	assert_status(world_open(&world), VD_OK);
	settle(&world);
	journal_count = 0;
	each_file(&world, count_journals);
	assert_int_equal(journal_count, 1);
	world_fini(&world);
}

static void out_of_memory_in_the_actor_is_tried_again(void **state)
{
	struct world world;

	(void) state;
	world_init(&world, 8);
	assert_status(world_open(&world), VD_OK);
	for (uint64_t nth = 1; nth < 60; nth++) {
		world_write(&world, 5);
		vdi_alloc_fail_nth(nth % 20 + 1, 1 + nth % 3);
		vdi_sim_advance(world.env, VD_MS(1100));
		vdi_alloc_fail_nth(0, 0);
	}
	settle(&world);
	journal_count = 0;
	each_file(&world, count_journals);
	assert_int_equal(journal_count, 1);
	world_close(&world);
	assert_status(world_open(&world), VD_OK);
	world_fini(&world);
}

/* ---- LMDB that refuses ---- */

static unsigned refuse_at; /* 0: never; else so many calls from now */
static bool	has_refused;

static bool refuses(void)
{
	bool refused = refuse_at && --refuse_at == 0;

	has_refused |= refused;
	return refused;
}

/* These take the place of the library's own. */
int mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned int flags, MDB_txn **txn)
{
	int (*next)(MDB_env *, MDB_txn *, unsigned int, MDB_txn **);

	*(void **) &next = dlsym(RTLD_NEXT, "mdb_txn_begin");
	return refuses() ? ENOMEM : next(env, parent, flags, txn);
}

int mdb_dbi_open(MDB_txn *txn, const char *name, unsigned int flags, MDB_dbi *dbi)
{
	int (*next)(MDB_txn *, const char *, unsigned int, MDB_dbi *);

	*(void **) &next = dlsym(RTLD_NEXT, "mdb_dbi_open");
	return refuses() ? ENOMEM : next(txn, name, flags, dbi);
}

int mdb_cursor_open(MDB_txn *txn, MDB_dbi dbi, MDB_cursor **cursor)
{
	int (*next)(MDB_txn *, MDB_dbi, MDB_cursor **);

	*(void **) &next = dlsym(RTLD_NEXT, "mdb_cursor_open");
	return refuses() ? ENOMEM : next(txn, dbi, cursor);
}

/* Each call of a start, and of the work behind it, is refused once: the start says so, or the work is done
 * later; nothing is lost either way. */
static void what_lmdb_refuses_is_told_or_tried_again(void **state)
{
	struct world world;
	bool	     was_refused = true;

	(void) state;
	write_and_settle(&world, 31);
	for (unsigned nth = 1; was_refused; nth++) {
		vd_status status;

		refuse_at = nth;
		has_refused = false;
		memset(&world.error, 0, sizeof world.error);
		status = world_open(&world);
		was_refused = has_refused;
		if (was_refused && status != VD_OK) {
			assert_status(world.error.code, status);
			assert_true(world.error.message[0]);
			refuse_at = 0;
			assert_status(world_open(&world), VD_OK);
		}
		refuse_at = 0;
		world_close(&world);
		assert_true(nth < 100);
	}
	for (unsigned nth = 1; nth <= 12; nth++) {
		assert_status(world_open(&world), VD_OK);
		refuse_at = nth;
		world_write(&world, 10);
		settle(&world);
		refuse_at = 0;
		settle(&world);
		journal_count = 0;
		each_file(&world, count_journals);
		assert_int_equal(journal_count, 1);
		world_close(&world);
	}
	assert_status(world_open(&world), VD_OK);
	world_fini(&world);
}

/* ---- Reading in parts ---- */

#define PARTS 3u

struct visited {
	int64_t counts[PARTS];
	char	first[PARTS][12];
	char	last[PARTS][12];
	bool	has_failed; /* an allocation */
};

static vd_status visit_entry(void *arg, unsigned part, struct vd_bytes table, struct vd_bytes key,
			     struct vd_bytes value, struct vd_error *reterr)
{
	struct visited *visited = arg;

	(void) value;
	(void) reterr;
	if (!vd_bytes_equal(table, vd_bytes_of("records"))) {
		assert_int_equal(part, 0);
		return VD_OK;
	}
	assert_int_equal(key.size, 12);
	if (visited->counts[part]++)
		assert_true(memcmp(visited->last[part], key.data, 12) < 0);
	else
		memcpy(visited->first[part], key.data, 12);
	memcpy(visited->last[part], key.data, 12);
	return VD_OK;
}

/* nth: the allocation that fails; 0: none. env: of threads, or the simulated one. */
static vd_status visit_in_parts(struct world *world, const struct vd_env *env, unsigned part_count,
				uint64_t nth, struct visited *ret_visited)
{
	struct vdi_checkpoint_visitor visitor = { env, vd_bytes_of("records"), part_count, visit_entry,
						  ret_visited };
	struct vdi_dir		     *dir;
	struct vdi_file		     *file;
	vd_status		      status;

	memset(ret_visited, 0, sizeof *ret_visited);
	world->error.code = VD_FULL;
	assert_status(vdi_dir_open(vdi_disk_os(), world->path, &dir, NULL), VD_OK);
	assert_status(vdi_file_open(dir, VDI_CHECKPOINT_NAME, VDI_FILE_READ, &file, NULL), VD_OK);
	vdi_alloc_fail_nth(nth, 1);
	status = vdi_checkpoint_verify(file, &visitor, &world->error);
	ret_visited->has_failed = vdi_alloc_failed();
	vdi_alloc_fail_nth(0, 0);
	vdi_file_close(file);
	vdi_dir_close(dir);
	assert_status(world->error.code,
		      status == VD_OK ? VD_FULL : status); /* left alone unless there is one */
	return status;
}

/* Enough for a tree of three levels. */
static void write_a_lot(struct world *world, uint64_t seed)
{
	world_init(world, seed);
	world->model.value_size_max = 3000;
	world->model.has_compaction = false;
	assert_status(world_open(world), VD_OK);
	world_write(world, 400);
	settle(world);
	world_close(world);
}

static void parts_together_are_the_whole_in_order(void **state)
{
	struct visited one, parts;
	struct vd_env *threads;
	struct world   world;

	(void) state;
	write_a_lot(&world, 11);
	assert_status(visit_in_parts(&world, world.env, 1, 0, &one), VD_OK);
	assert_status(visit_in_parts(&world, world.env, PARTS, 0, &parts), VD_OK);
	assert_true(parts.counts[0] && parts.counts[1] && parts.counts[2]);
	assert_int_equal(parts.counts[0] + parts.counts[1] + parts.counts[2], one.counts[0]);
	assert_true(memcmp(parts.last[0], parts.first[1], 12) < 0 &&
		    memcmp(parts.last[1], parts.first[2], 12) < 0);
	assert_memory_equal(parts.first[0], one.first[0], 12);
	assert_memory_equal(parts.last[2], one.last[0], 12);
	assert_status(vd_env_new_threads(NULL, &threads), VD_OK);
	assert_status(visit_in_parts(&world, threads, PARTS, 0, &one), VD_OK);
	assert_memory_equal(&one, &parts, sizeof one);
	vd_env_free(threads);
	world.tuning.part_count = PARTS;
	assert_status(world_open(&world), VD_OK);
	world_fini(&world);
}

static int64_t used_size_of(const char *path)
{
	static const char zeros[4096];
	int64_t		  size = size_of(path);
	char		  page[4096];
	int		  fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	do
		size -= (int64_t) sizeof page;
	while (size > 0 && pread(fd, page, sizeof page, size) == (ssize_t) sizeof page &&
	       memcmp(page, zeros, sizeof page) == 0);
	close(fd);
	return size;
}

/* Damage is named as one who reads alone names it. */
static void damage_is_named_alike_in_parts(void **state)
{
	struct world world;
	char	     path[128], message[sizeof world.error.message];
	unsigned     found = 0;
	int64_t	     used;

	(void) state;
	write_a_lot(&world, 12);
	snprintf(path, sizeof path, "%s/%s", world.path, VDI_CHECKPOINT_NAME);
	used = used_size_of(path);
	for (int i = 0; i < 200; i++) {
		int64_t	  offset = (int64_t) vdi_rand_below(&world.model.rand, (uint64_t) used);
		uint8_t	  bits = (uint8_t) (1u << vdi_rand_below(&world.model.rand, 8));
		vd_status status;

		if (i % 3)
			offset = offset / 4096 * 4096 + (int64_t) vdi_rand_below(&world.model.rand, 64);
		flip(path, offset, bits);
		world.tuning.part_count = 1;
		status = world_open(&world);
		world_close(&world);
		snprintf(message, sizeof message, "%s", world.error.message);
		world.tuning.part_count = PARTS;
		assert_status(world_open(&world), status);
		world_close(&world);
		if (status != VD_OK) {
			assert_string_equal(world.error.message, message);
			found++;
		}
		flip(path, offset, bits);
	}
	assert_true(found > 30);
	world_fini(&world);
}

static void out_of_memory_in_any_part_undoes_all(void **state)
{
	struct visited visited;
	struct world   world;
	vd_status      status = VD_NOMEM;

	(void) state;
	write_a_lot(&world, 13);
	for (uint64_t nth = 1; status != VD_OK; nth++) {
		int64_t live = vdi_alloc_live();

		status = visit_in_parts(&world, world.env, PARTS, nth, &visited);
		assert_status(status, visited.has_failed ? VD_NOMEM : VD_OK);
		assert_int_equal(vdi_alloc_live(), live);
	}
	world_fini(&world);
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
static vd_status commit_one(struct world *world, vd_rev revision, const char *key, vd_rev previous,
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
	status = vdi_persist_append(world->persist, &commit, &world->error);
	vd_kv_unref(change.kv);
	vd_kv_unref(superseded);
	if (status == VD_OK)
		status = vdi_persist_sync(world->persist, &world->error);
	else
		vdi_persist_discard(world->persist);
	vdi_sim_advance(world->env, VD_MS(50));
	return status;
}

static vd_rev put_until_full(struct world *world, vd_rev revision)
{
	char	  key[32];
	vd_status status = VD_OK;
	bool	  may_fit = true;

	while (status == VD_OK || may_fit) {
		snprintf(key, sizeof key, "/%lld", (long long) revision);
		status = commit_one(world, revision, key, 0, 30000);
		revision += status == VD_OK;
		may_fit = vdi_persist_may_make_room(world->persist);
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
	struct world		world;
	uint64_t		count = 0;
	vd_rev			from = 2, to;
	char			key[32];
	struct vdi_persist_sink sink = { ignore_begin, count_record, ignore_lease, &count };

	(void) state;
	world_init(&world, 9);
	world.tuning.segment_size = 65536;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limited = before;
	limited.rlim_cur = 17 << 20;
	assert_status(
		vdi_persist_open_tuned(world.env, &world.options, &world.tuning, &sink, &world.persist, NULL),
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
			world_close(&world);
			assert_status(vdi_persist_open_tuned(world.env, &world.options, &world.tuning, &sink,
							     &world.persist, NULL),
				      VD_OK);
		}
		from = 2 * to - from;
		assert_status(commit_one(&world, from - 1, NULL, 0, 0), VD_OK);
		settle(&world);
	}
	to = put_until_full(&world, from);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "/%lld", (long long) to);
		assert_status(commit_one(&world, to++, key, 0, 30000), VD_OK);
	}
	count = 0;
	world_close(&world);
	assert_status(
		vdi_persist_open_tuned(world.env, &world.options, &world.tuning, &sink, &world.persist, NULL),
		VD_OK);
	assert_in_range(count, to - from, to - from + 1);
	world_fini(&world);
}

/* One write is enough, although an earlier one has already asked for a checkpoint some time. */
static void e1018_one_large_write_is_checkpointed_at_once(void **state)
{
	struct world		world;
	uint64_t		count = 0;
	struct vdi_persist_sink sink = { ignore_begin, count_record, ignore_lease, &count };

	(void) state;
	world_init(&world, 96);
	world.tuning.segment_size = 65536;
	assert_status(
		vdi_persist_open_tuned(world.env, &world.options, &world.tuning, &sink, &world.persist, NULL),
		VD_OK);
	put_sized(world.persist, 2, 10);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(vdi_persist_checkpointed(world.persist), 0);
	put_sized(world.persist, 3, 30000);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(vdi_persist_checkpointed(world.persist), 2);
	world_fini(&world);
}

/* What comes while a group is taken waits until it is enough for one, or for its time: each group waits for
 * the disk. */
static void e1018_a_steady_stream_is_taken_in_large_groups(void **state)
{
	struct world		world;
	struct vd_env	       *threads;
	struct vdi_wait		wait;
	uint64_t		count = 0;
	uint64_t		covered = 0;
	unsigned		groups = 0;
	struct vdi_persist_sink sink = { ignore_begin, count_record, ignore_lease, &count };

	(void) state;
	world_init(&world, 11);
	assert_status(vd_env_new_threads(NULL, &threads), VD_OK);
	world.tuning.checkpoint_bytes = 64 << 10;
	world.tuning.checkpoint_interval = VD_SECONDS(3600);
	assert_status(vdi_persist_open_tuned(threads, &world.options, &world.tuning, &sink, &world.persist,
					     &world.error),
		      VD_OK);
	/* 10,000 bytes a write: seven are enough for a group, of which the last may not be on disk yet. */
	for (vd_rev revision = 2; revision < 302; revision++) {
		put_sized(world.persist, revision, 10000);
		if (vdi_persist_checkpointed(world.persist) != covered) {
			covered = vdi_persist_checkpointed(world.persist);
			groups++;
		}
	}
	assert_in_range(groups, 0, 300 / 6 + 1);
	vdi_wait_init(&wait, threads);
	vdi_persist_close(world.persist, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	world.persist = NULL;
	vd_env_free(threads);
	world_fini(&world);
}

/* Writer and checkpoint on real threads: for the thread sanitizer. */
static void writer_and_actor_run_side_by_side(void **state)
{
	struct world   world;
	struct vd_env *threads;

	(void) state;
	world_init(&world, 10);
	assert_status(vd_env_new_threads(NULL, &threads), VD_OK);
	for (int round = 0; round < 4; round++) {
		struct model_loaded	loaded;
		struct vdi_persist_sink sink = model_sink(&loaded);
		struct vdi_wait		wait;

		world.tuning.checkpoint_interval = VD_MS(1);
		assert_status(vdi_persist_open_tuned(threads, &world.options, &world.tuning, &sink,
						     &world.persist, &world.error),
			      VD_OK);
		assert_int_equal(model_match(&world.model, &loaded), world.model.commit_count);
		model_loaded_fini(&loaded);
		for (int i = 0; i < 150; i++) {
			struct model_draft draft;

			model_draft(&world.model, &draft);
			assert_status(vdi_persist_append(world.persist, &draft.commit, &world.error), VD_OK);
			model_keep(&world.model, &draft);
			assert_status(vdi_persist_sync(world.persist, &world.error), VD_OK);
			world.model.durable = world.model.commit_count;
			assert_true(vdi_persist_size_bytes(world.persist) > 0);
		}
		vdi_wait_init(&wait, threads);
		vdi_persist_close(world.persist, vdi_wait_signal_arg, &wait);
		vdi_wait_wait(&wait);
		vdi_wait_fini(&wait);
		world.persist = NULL;
	}
	vd_env_free(threads);
	world_fini(&world);
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
		cmocka_unit_test(a_node_at_an_odd_place_is_named),
		cmocka_unit_test(damage_of_any_page_byte_is_found_or_means_nothing),
		cmocka_unit_test(a_cut_checkpoint_is_named_and_never_mapped),
		cmocka_unit_test(a_missing_journal_beside_a_checkpoint_is_damage),
		cmocka_unit_test(out_of_memory_at_any_allocation_of_a_start),
		cmocka_unit_test(what_lmdb_refuses_is_told_or_tried_again),
		cmocka_unit_test(parts_together_are_the_whole_in_order),
		cmocka_unit_test(damage_is_named_alike_in_parts),
		cmocka_unit_test(out_of_memory_in_any_part_undoes_all),
		cmocka_unit_test(a_start_with_a_backlog_works_it_off),
		cmocka_unit_test(out_of_memory_in_the_actor_is_tried_again),
		cmocka_unit_test(e466_a_full_disk_refuses_puts_until_deletes_and_compaction_make_room),
		cmocka_unit_test(writer_and_actor_run_side_by_side),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
