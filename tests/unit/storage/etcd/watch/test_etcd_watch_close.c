/* A client with watches is closed while they are, with real threads and a transport that never gets anywhere:
 * no server is needed for what may go wrong here. */
#include <vedette/etcd.h>

#include "lock.h"
#include "rpc_etcd_options.h"
#include "vdtest.h"

#define STALL 8 /* one release in so many */
#define ROUNDS 200
#define WATCHES 3

static void ignore(void *arg)
{
	(void) arg;
}

static void close_amid_opening(const struct vd_env *env)
{
	static const char *const     endpoints[] = { "127.0.0.1:1" };
	struct vd_etcd_options	     options = etcd_options_under_test();
	struct vd_etcd_watch_request request = { .key = vd_bytes_of("k"), .ready = ignore };
	struct vd_etcd_watch	    *watches[WATCHES];
	struct vd_etcd		    *client;
	struct vd_error		     error = { 0 };

	options.endpoints = endpoints;
	options.endpoint_count = 1;
	assert_status(vd_etcd_open(env, &options, &client, &error), VD_OK);
	for (size_t i = 0; i < WATCHES; i++)
		assert_status(vd_etcd_watch_open(client, &request, &watches[i], &error), VD_OK);
	for (size_t i = 0; i < WATCHES; i++)
		vd_etcd_watch_close(watches[i]);
	(void) vd_etcd_close_wait(client);
}

/* Threads stand still where they let go of a lock: the set of watches must not be needed by those who told it
 * to close. */
static void e231_client_and_watches_closed_at_once(void **state)
{
	struct vd_env *env;

	(void) state;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	vdi_lock_stall(STALL);
	for (unsigned round = 0; round < ROUNDS; round++)
		close_amid_opening(env);
	vdi_lock_stall(0);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e231_client_and_watches_closed_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
