/* The store suite over the embedded store: in memory, and with a data directory. */
#include "store_suite.h"
#include "temp_folder.h"

#include <unistd.h>

static struct vd_mvcc_options suite_options(void)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	options.history_window = (vd_dur) { 0 };
	options.progress_interval = VD_SECONDS(1);
	return options;
}

static vd_status open_memory(void *arg, const struct vd_env *env, struct vd_store **ret_store)
{
	struct vd_mvcc_options options = suite_options();

	(void) arg;
	return vd_store_open_mvcc(env, &options, ret_store, NULL);
}

static char directory[TEMP_FOLDER_SIZE];

static vd_status open_directory(void *arg, const struct vd_env *env, struct vd_store **ret_store)
{
	struct vd_mvcc_options options = suite_options();
	struct vd_error	       error;
	vd_status	       status;

	(void) arg;
	if (directory[0] == 0)
		temp_folder_make(directory);
	options.data_dir = directory;
	options.no_sync = true;
	status = vd_store_open_mvcc(env, &options, ret_store, &error);
	if (status != VD_OK)
		print_message("%s\n", error.message);
	return status;
}

static vd_status reopen_directory(void *arg, const struct vd_env *env, struct vd_store **store)
{
	*store = vd_store_close_wait(*store);
	return open_directory(arg, env, store);
}

static void remove_directory(void *arg)
{
	(void) arg;
	temp_folder_remove(directory);
	directory[0] = 0;
}

int main(void)
{
	static const struct store_suite_factory memory = { .name = "memory", .open = open_memory };
	static const struct store_suite_factory durable = { .name = "data directory",
							    .open = open_directory,
							    .reopen = reopen_directory,
							    .clean = remove_directory };

	return store_suite_run(&memory) + store_suite_run(&durable);
}
