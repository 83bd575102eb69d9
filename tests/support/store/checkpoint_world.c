#include "checkpoint_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actor_sim.h"
#include "temp_folder.h"

void checkpoint_each_file(struct checkpoint_world *world, void (*visit)(const char *path))
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

int64_t checkpoint_size_of(const char *path)
{
	struct stat info;

	assert_int_equal(stat(path, &info), 0);
	return info.st_size;
}

void checkpoint_world_init(struct checkpoint_world *world, uint64_t seed)
{
	memset(world, 0, sizeof *world);
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world->env), VD_OK);
	temp_folder_make(world->path);
	world->tuning = (struct vdi_backend_tuning) { .segment_size = 16384, .checkpoint_bytes = 4096 };
	world->options = (struct vd_mvcc_options) VD_MVCC_OPTIONS_INIT;
	world->options.data_dir = world->path;
	world->options.no_sync = true; /* nothing here depends on the power staying on */
	model_init(&world->model, seed);
}

static void note_closed(void *arg)
{
	*(bool *) arg = true;
}

void checkpoint_world_close(struct checkpoint_world *world)
{
	bool is_closed = false;

	if (world->backend == NULL)
		return;
	vdi_backend_close(world->backend, note_closed, &is_closed);
	vdi_sim_run_until_idle(world->env);
	assert_true(is_closed);
	world->backend = NULL;
}

void checkpoint_world_fini(struct checkpoint_world *world)
{
	checkpoint_world_close(world);
	model_fini(&world->model);
	vd_env_free(world->env);
	temp_folder_remove(world->path);
}

vd_status checkpoint_world_open(struct checkpoint_world *world)
{
	struct model_loaded	loaded;
	struct vdi_backend_sink sink = model_sink(&loaded);
	vd_status status = vdi_backend_open_tuned(world->env, &world->options, &world->tuning, &sink,
						  &world->backend, &world->error);

	if (status == VD_OK)
		model_cut(&world->model, model_match(&world->model, &loaded));
	model_loaded_fini(&loaded);
	return status;
}

void checkpoint_world_write(struct checkpoint_world *world, unsigned groups)
{
	for (unsigned i = 0; i < groups; i++) {
		for (uint64_t j = 0, count = 1 + vdi_rand_below(&world->model.rand, 4); j < count; j++) {
			struct model_draft draft;

			model_draft(&world->model, &draft);
			assert_status(vdi_backend_append(world->backend, &draft.commit, &world->error),
				      VD_OK);
			model_keep(&world->model, &draft);
		}
		assert_status(vdi_backend_sync(world->backend, &world->error), VD_OK);
		world->model.durable = world->model.commit_count;
		if (vdi_rand_once_in(&world->model.rand, 4))
			vdi_sim_step(world->env);
	}
}

void checkpoint_settle(struct checkpoint_world *world)
{
	vdi_sim_advance(world->env, VD_SECONDS(5));
}

static unsigned journal_count;

static void count_journal(const char *path)
{
	journal_count += strstr(path, ".vdj") != NULL;
}

unsigned checkpoint_count_journals(struct checkpoint_world *world)
{
	journal_count = 0;
	checkpoint_each_file(world, count_journal);
	return journal_count;
}

void checkpoint_flip(const char *path, int64_t offset, uint8_t bits)
{
	int	fd = open(path, O_RDWR);
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, offset), 1);
	byte ^= bits;
	assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
	close(fd);
}

void checkpoint_write_and_settle(struct checkpoint_world *world, uint64_t seed)
{
	checkpoint_world_init(world, seed);
	world->model.value_size_max = 3000; /* some in overflow pages */
	assert_status(checkpoint_world_open(world), VD_OK);
	checkpoint_world_write(world, 100);
	checkpoint_settle(world);
	checkpoint_world_write(world, 20);
	checkpoint_settle(world);
	checkpoint_world_close(world);
}
