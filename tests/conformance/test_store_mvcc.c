/* The store suite over the embedded store in memory. */
#include "store_suite.h"

static vd_status open_memory(void *arg, const struct vd_env *env, struct vd_store **ret_store)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	(void) arg;
	options.history_window = (vd_dur) { 0 };
	options.progress_interval = VD_SECONDS(1);
	return vd_store_open_mvcc(env, &options, ret_store, NULL);
}

int main(void)
{
	static const struct store_suite_factory memory = { .name = "memory", .open = open_memory };

	return store_suite_run(&memory);
}
