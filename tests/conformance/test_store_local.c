/* The store suite over a local history around the embedded store: all calls are forwarded, and the recorder
 * delays none. The history has the keys from "k" on. */
#include "store_suite.h"

#include <unistd.h>

#include "local_history.h"
#include "temp_folder.h"

static char directory[TEMP_FOLDER_SIZE];

static vd_status open_local(void *arg, const struct vd_env *env, struct vd_store **ret_store)
{
	struct vd_mvcc_options		 options = VD_MVCC_OPTIONS_INIT;
	struct vdi_local_history_options local = { .prefix = "k", .history_bytes = 1 << 20 };
	char				 inner_path[80], local_path[80];
	struct vd_store			*inner;
	struct vd_error			 error;
	vd_status			 status;

	if (directory[0] == 0)
		temp_folder_make(directory);
	snprintf(inner_path, sizeof inner_path, "%s/store", directory);
	snprintf(local_path, sizeof local_path, "%s/history", directory);
	options.history_window = (vd_dur) { 0 };
	options.progress_interval = VD_SECONDS(1);
	options.data_dir = inner_path;
	options.no_sync = true;
	local.data_dir = local_path;
	status = vd_store_open_mvcc(env, &options, &inner, &error);
	if (status == VD_OK) {
		status = vdi_local_history_open(env, inner, &local, ret_store, &error);
		if (status != VD_OK)
			vd_store_close_wait(inner);
	}
	if (status != VD_OK)
		print_message("%s\n", error.message);
	return status;
}

static vd_status reopen_local(void *arg, const struct vd_env *env, struct vd_store **store)
{
	*store = vd_store_close_wait(*store);
	return open_local(arg, env, store);
}

static void remove_directory(void *arg)
{
	temp_folder_remove(directory);
	directory[0] = 0;
}

int main(void)
{
	static const struct store_suite_factory local = {
		.name = "local history", .open = open_local, .reopen = reopen_local, .clean = remove_directory
	};

	return store_suite_run(&local);
}
