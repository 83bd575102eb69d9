/* Checkpoints that are read in parts by several threads: together the parts are the whole. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend_model.h"
#include "checkpoint.h"
#include "checkpoint_verify.h"
#include "checkpoint_world.h"

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
static vd_status visit_in_parts(struct checkpoint_world *world, const struct vd_env *env, unsigned part_count,
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
static void write_a_lot(struct checkpoint_world *world, uint64_t seed)
{
	checkpoint_world_init(world, seed);
	world->model.value_size_max = 3000;
	world->model.has_compaction = false;
	assert_status(checkpoint_world_open(world), VD_OK);
	checkpoint_world_write(world, 400);
	checkpoint_settle(world);
	checkpoint_world_close(world);
}

static void parts_together_are_the_whole_in_order(void **state)
{
	struct visited		one, parts;
	struct vd_env	       *threads;
	struct checkpoint_world world;

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
	assert_status(checkpoint_world_open(&world), VD_OK);
	checkpoint_world_fini(&world);
}

static int64_t used_size_of(const char *path)
{
	static const char zeros[4096];
	int64_t		  size = checkpoint_size_of(path);
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
	struct checkpoint_world world;
	char			path[128], message[sizeof world.error.message];
	unsigned		found = 0;
	int64_t			used;

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
		checkpoint_flip(path, offset, bits);
		world.tuning.part_count = 1;
		status = checkpoint_world_open(&world);
		checkpoint_world_close(&world);
		snprintf(message, sizeof message, "%s", world.error.message);
		world.tuning.part_count = PARTS;
		assert_status(checkpoint_world_open(&world), status);
		checkpoint_world_close(&world);
		if (status != VD_OK) {
			assert_string_equal(world.error.message, message);
			found++;
		}
		checkpoint_flip(path, offset, bits);
	}
	assert_true(found > 30);
	checkpoint_world_fini(&world);
}

static void out_of_memory_in_any_part_undoes_all(void **state)
{
	struct visited		visited;
	struct checkpoint_world world;
	vd_status		status = VD_NOMEM;

	(void) state;
	write_a_lot(&world, 13);
	for (uint64_t nth = 1; status != VD_OK; nth++) {
		int64_t live = vdi_alloc_live();

		status = visit_in_parts(&world, world.env, PARTS, nth, &visited);
		assert_status(status, visited.has_failed ? VD_NOMEM : VD_OK);
		assert_int_equal(vdi_alloc_live(), live);
	}
	checkpoint_world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_together_are_the_whole_in_order),
		cmocka_unit_test(damage_is_named_alike_in_parts),
		cmocka_unit_test(out_of_memory_in_any_part_undoes_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
