/* The watch suite over the Cacher on the embedded store, with real threads. */
#include "watch_suite_threads.h"

static vd_status open_mvcc(const struct vd_env *env, struct vd_store **ret_store)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	return vd_store_open_mvcc(env, &options, ret_store, NULL);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return watch_suite_run_threads("cacher, threads", open_mvcc, NULL);
}
