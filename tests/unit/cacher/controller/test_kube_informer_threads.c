/* Informers on real threads: calls that wait while another thread closes the informer, and closes that race
 * with the client's actor. The server never answers. */
#include <pthread.h>
#include <vedette/kube.h>

#include "await.h"
#include "kube_informer_state.h"
#include "kube_socket.h"
#include "vdtest.h"

#define ROUNDS 100

static bool answer_never(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	kube_socket_wait_for_end(call);
	return false;
}

struct waiter {
	struct vd_kube_informer *informer;
	vd_status		 status;
};

static void *wait_synced(void *arg)
{
	struct waiter *waiter = arg;

	waiter->status = vd_kube_informer_synced_wait(waiter->informer, (vd_dur) { -1 });
	return NULL;
}

static bool is_waiting(struct vd_kube_informer *informer)
{
	bool result;

	vdi_lock_acquire(&informer->lock);
	result = informer->waiting > 0;
	vdi_lock_release(&informer->lock);
	return result;
}

struct fixture {
	struct vd_env	  *env;
	struct vd_kube	  *kube;
	struct kube_socket server;
};

static void fixture_open(struct fixture *fixture)
{
	struct vd_env_options  env = VD_ENV_OPTIONS_INIT;
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;

	env.threads = 2;
	assert_status(vd_env_new_threads(&env, &fixture->env), VD_OK);
	kube_socket_start(&fixture->server, answer_never, NULL, NULL, NULL, NULL);
	options.server = fixture->server.url;
	assert_status(vd_kube_open(fixture->env, &options, &fixture->kube, NULL), VD_OK);
}

static void fixture_close(struct fixture *fixture)
{
	assert_null(vd_kube_close_wait(fixture->kube));
	kube_socket_stop(&fixture->server);
	fixture->env = vd_env_free(fixture->env);
}

static struct vd_kube_informer *open_informer(struct fixture *fixture)
{
	struct vd_informer_handler handler = { 0 };
	struct vd_kube_informer	  *informer;

	assert_status(vd_kube_informer_open(fixture->kube, "pods", NULL, &handler, &informer, NULL), VD_OK);
	return informer;
}

static void closing_ends_calls_that_wait(void **state)
{
	struct fixture fixture;

	(void) state;
	fixture_open(&fixture);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct waiter waiter = { .informer = open_informer(&fixture) };
		pthread_t     thread;

		assert_int_equal(pthread_create(&thread, NULL, wait_synced, &waiter), 0);
		AWAIT(is_waiting(waiter.informer));
		assert_null(vd_kube_informer_close_wait(waiter.informer));
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_status(waiter.status, VD_CLOSED);
	}
	fixture_close(&fixture);
}

static void closing_at_once_races_with_the_actor(void **state)
{
	struct fixture fixture;

	(void) state;
	fixture_open(&fixture);
	for (unsigned i = 0; i < 10 * ROUNDS; i++)
		assert_null(vd_kube_informer_close_wait(open_informer(&fixture)));
	fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_ends_calls_that_wait),
		cmocka_unit_test(closing_at_once_races_with_the_actor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
