/* Creates threads for each call, because a start needs them only once. */
#include "parallel.h"

#include "env.h"
#include "thread.h"

struct part {
	struct vdi_thread thread;
	void (*run)(void *arg, unsigned part);
	void	*arg;
	unsigned number;
	bool	 is_started;
};

static void *run_part(void *arg)
{
	struct part *part = arg;

	part->run(part->arg, part->number);
	return NULL;
}

unsigned vdi_parallel_width(const struct vd_env *env)
{
	return vdi_env_sim(env) ? 1 : VDI_MIN(vdi_thread_processors(), VDI_PARALLEL_MAX);
}

void vdi_parallel(const struct vd_env *env, unsigned count, void (*run)(void *arg, unsigned part), void *arg)
{
	struct part parts[VDI_PARALLEL_MAX];

	VDI_CHECK(count <= VDI_PARALLEL_MAX);
	for (unsigned i = 1; i < count; i++) {
		parts[i] = (struct part) { .run = run, .arg = arg, .number = i };
		parts[i].is_started =
			vdi_env_sim(env) == NULL &&
			vdi_thread_start(&parts[i].thread, "vedette-part", run_part, &parts[i]) == VD_OK;
	}
	if (count)
		run(arg, 0);
	for (unsigned i = 1; i < count; i++) {
		if (parts[i].is_started)
			vdi_thread_join(&parts[i].thread);
		else
			run(arg, i);
	}
}
