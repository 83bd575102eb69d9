/* Kills a writing process at random points, repeatedly, on one data directory: every commit that was
 * reported to the parent must be there.
 *
 *   test_backend_kill [ROUNDS [SEED]]
 *
 * The child opens the store, writes random commits (the model's stream, so the parent can make the same ones)
 * while the checkpoint runs, and reports through a pipe how many are durable. The parent kills it after a
 * random number of reports or some further time, opens the store itself and compares. In one round of four it
 * opens the store while the child lives: VD_LOCKED, naming the child.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor_sim.h"
#include "backend_model.h"
#include "backend_tuning.h"
#include "temp_folder.h"

struct world {
	struct vd_env		 *env;
	struct vdi_backend	 *backend;
	struct vdi_backend_tuning tuning;
	struct vd_mvcc_options	  options;
	struct model		  model;
	struct vd_error		  error;
};

static uint64_t rounds = 40;
static uint64_t first_seed = 1;

static vd_status world_open(struct world *world, const char *path, uint64_t seed, struct vd_env *env)
{
	struct model_loaded	loaded;
	struct vdi_backend_sink sink = model_sink(&loaded);
	vd_status		status;

	(void) seed;
	world->env = env;
	world->tuning = (struct vdi_backend_tuning) { .segment_size = 65536,
						      .checkpoint_bytes = 8192,
						      .checkpoint_interval = VD_MS(1) };
	world->options = (struct vd_mvcc_options) VD_MVCC_OPTIONS_INIT;
	world->options.data_dir = path;
	status = vdi_backend_open_tuned(env, &world->options, &world->tuning, &sink, &world->backend,
					&world->error);
	if (status == VD_OK)
		model_cut(&world->model, model_match(&world->model, &loaded));
	model_loaded_fini(&loaded);
	return status;
}

/* The commits of one round depend only on the model so far and the seed of the round: parent and child
 * generate the same ones. */
static void draw(struct model *model, struct model_draft *draft, uint64_t round_seed)
{
	vdi_rand_init(&model->rand, round_seed * 1000003 + model->commit_count);
	model_draft(model, draft);
}

static void child(struct world *world, const char *path, uint64_t seed, int report_fd)
{
	struct vd_env *env;

	if (vd_env_new_threads(NULL, &env) != VD_OK || world_open(world, path, seed, env) != VD_OK)
		_exit(1);
	if (write(report_fd, &world->model.commit_count, sizeof(size_t)) != sizeof(size_t))
		_exit(2);
	for (uint64_t group = 0;; group++) {
		for (uint64_t i = 0; i < 1 + group % 7; i++) {
			struct model_draft draft;

			draw(&world->model, &draft, seed);
			if (vdi_backend_append(world->backend, &draft.commit, &world->error) != VD_OK)
				_exit(3);
			model_keep(&world->model, &draft);
		}
		if (vdi_backend_sync(world->backend, &world->error) != VD_OK)
			_exit(4);
		if (write(report_fd, &world->model.commit_count, sizeof(size_t)) != sizeof(size_t))
			_exit(5);
	}
}

static void e469_a_killed_process_loses_nothing_it_acknowledged(void **state)
{
	struct world	world = { 0 };
	struct vdi_rand rand;
	char		path[TEMP_FOLDER_SIZE];

	(void) state;
	temp_folder_make(path);
	model_init(&world.model, first_seed);
	vdi_rand_init(&rand, first_seed);
	for (uint64_t round = 1; round <= rounds; round++) {
		struct vd_env *env;
		uint64_t       seed = first_seed * 100000 + round;
		uint64_t       reports = 1 + vdi_rand_below(&rand, 60), spin = vdi_rand_below(&rand, 200000);
		size_t	       durable = 0;
		int	       fds[2], wait_status;
		pid_t	       pid;

		assert_int_equal(pipe(fds), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			close(fds[0]);
			child(&world, path, seed, fds[1]);
			_exit(9);
		}
		close(fds[1]);
		for (uint64_t i = 0; i < reports; i++)
			if (read(fds[0], &durable, sizeof durable) != sizeof durable)
				fail_msg("the child ended by itself in round %llu (seed %llu)",
					 (unsigned long long) round, (unsigned long long) first_seed);
		if (round % 4 == 0) {
			char number[32];

			assert_status(vdi_env_new_sim(seed, NULL, NULL, &env), VD_OK);
			assert_status(world_open(&world, path, seed, env), VD_LOCKED);
			snprintf(number, sizeof number, "process %ld", (long) pid);
			assert_non_null(strstr(world.error.message, number));
			vd_env_free(env);
		}
		for (volatile uint64_t i = 0; i < spin; i++)
			;
		kill(pid, SIGKILL);
		while (read(fds[0], &durable, sizeof durable) == sizeof durable)
			;
		close(fds[0]);
		assert_int_equal(waitpid(pid, &wait_status, 0), pid);
		assert_true(WIFSIGNALED(wait_status));
		/* Commits that the child may have appended beyond its reports. */
		while (world.model.commit_count < durable + 7) {
			struct model_draft draft;

			draw(&world.model, &draft, seed);
			model_keep(&world.model, &draft);
		}
		world.model.durable = durable;
		assert_status(vdi_env_new_sim(seed, NULL, NULL, &env), VD_OK);
		if (world_open(&world, path, seed, env) != VD_OK)
			fail_msg("round %llu (seed %llu): %s", (unsigned long long) round,
				 (unsigned long long) first_seed, world.error.message);
		vdi_sim_advance(env, VD_MS((int64_t) vdi_rand_below(&rand, 3)));
		vdi_backend_close(world.backend, NULL, NULL);
		vdi_sim_run_until_idle(env);
		world.backend = NULL;
		vd_env_free(env);
	}
	assert_true(world.model.commit_count > rounds * 20);
	model_fini(&world.model);
	temp_folder_remove(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e469_a_killed_process_loses_nothing_it_acknowledged),
	};

	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
