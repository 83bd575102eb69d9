/* The store suite over our etcd client and our etcd server, in the simulator, with a fast network and with a
 * slow one. */
#include "etcd_loop.h"
#include "store_suite.h"

static struct etcd_loop loop; /* open between open and close */
static bool		is_slow;

static void close_all(void *arg, struct vd_store *store)
{
	(void) arg;
	(void) vd_store_close_wait(store);
	etcd_loop_close(&loop);
	loop.env = NULL;
}

static vd_status open_loop(void *arg, const struct vd_env *env, struct vd_store **ret_store)
{
	(void) arg;
	if (loop.env) /* the test has closed the store itself */
		etcd_loop_close(&loop);
	etcd_loop_open(&loop, (struct vd_env *) (uintptr_t) env, 5, VD_SECONDS(1));
	if (is_slow)
		rpc_script_set_delay(loop.script, VD_MS(2));
	*ret_store = etcd_loop_store(&loop);
	return VD_OK;
}

int main(void)
{
	static const struct store_suite_factory quick = {
		.name = "etcd client and server",
		.open = open_loop,
		.close = close_all,
		.is_remote = true,
		.no_threads = true,
	};
	static const struct store_suite_factory slow = {
		.name = "etcd client and server, slow network",
		.open = open_loop,
		.close = close_all,
		.is_remote = true,
		.no_threads = true,
	};
	int failed = store_suite_run(&quick);

	is_slow = true;
	return failed + store_suite_run(&slow);
}
