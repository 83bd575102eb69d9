/* Unit tests of storage/etcd/etcd_open.c and of opening a store over it: which options ask for certificates, and how long opening waits. */
#include <vedette/etcd.h>

#include "vdtest.h"

#define MISSING "/nonexistent/vedette-test.pem"

static const char *const endpoints[] = { "127.0.0.1:1" }; /* nobody listens there; without a scheme the certificates decide about TLS */

static struct vd_etcd_options options_of(void)
{
	struct vd_etcd_options options = VD_ETCD_OPTIONS_INIT;

	options.endpoints = endpoints;
	options.endpoint_count = 1;
	return options;
}

static vd_status open_and_close(const struct vd_env *env, const struct vd_etcd_options *options, struct vd_error *error)
{
	struct vd_etcd *client = NULL;
	vd_status	status = vd_etcd_open(env, options, &client, error);

	assert_int_equal(client != NULL, status == VD_OK);
	if (client)
		(void) vd_etcd_close_wait(client);
	return status;
}

/* Each file that is asked for is read at once, whichever others are. */
static void e204_each_file_is_read_when_the_client_is_opened(void **state)
{
	struct vd_env *env;

	(void) state;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	for (unsigned asked = 0; asked < 8; asked++) {
		struct vd_etcd_options options = options_of();
		struct vd_error	       error = { 0 };
		bool		       has_file = asked & 3;

		options.ca_path = asked & 1 ? MISSING : NULL;
		options.cert_path = options.key_path = asked & 2 ? MISSING : NULL;
		options.server_name = asked & 4 ? "etcd.example" : NULL;
		assert_status(open_and_close(env, &options, &error), has_file ? VD_INVALID_ARGUMENT : VD_OK);
		if (has_file)
			assert_non_null(strstr(error.message, MISSING));
	}
	vd_env_free(env);
}

/* Opening a store waits for a first answer only when it is asked to. */
static void e201_a_store_waits_for_its_first_answer_when_asked_to(void **state)
{
	struct vd_etcd_store_options options = VD_ETCD_STORE_OPTIONS_INIT;
	struct vd_etcd_options	     etcd = options_of();
	struct vd_store		    *store = NULL;
	struct vd_env		    *env;

	(void) state;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	options.etcd = &etcd;
	options.start_timeout = (vd_dur) { 0 };
	assert_status(vd_store_open_etcd(env, &options, &store, NULL), VD_OK);
	(void) vd_store_close_wait(store);
	options.start_timeout = VD_MS(1);
	assert_int_not_equal(vd_store_open_etcd(env, &options, &store, NULL), VD_OK);
	options.start_timeout = VD_MS(-1);
	assert_status(vd_store_open_etcd(env, &options, &store, NULL), VD_INVALID_ARGUMENT);
	options.start_timeout = (vd_dur) { 0 };
	options.call_timeout = (vd_dur) { 0 };
	assert_status(vd_store_open_etcd(env, &options, &store, NULL), VD_INVALID_ARGUMENT);
	options = (struct vd_etcd_store_options) VD_ETCD_STORE_OPTIONS_INIT;
	options.etcd = &etcd;
	options.compaction_interval = VD_MS(-1);
	assert_status(vd_store_open_etcd(env, &options, &store, NULL), VD_INVALID_ARGUMENT);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e204_each_file_is_read_when_the_client_is_opened),
		cmocka_unit_test(e201_a_store_waits_for_its_first_answer_when_asked_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
