/* Unit tests of storage/etcd/client/etcd_open.c and of opening a store over it: which options ask for
 * certificates, and how long opening waits. */
#include <vedette/etcd.h>

#include "actor_sim.h"
#include "rpc_transport.h"
#include "vdtest.h"

#define MISSING "/nonexistent/vedette-test.pem"

static const char *const endpoints[] = {
	"127.0.0.1:1"
}; /* nobody listens there; without a scheme the certificates decide about TLS */

static struct vd_etcd_options options_of(void)
{
	struct vd_etcd_options options = VD_ETCD_OPTIONS_INIT;

	options.endpoints = endpoints;
	options.endpoint_count = 1;
	return options;
}

static vd_status open_and_close(const struct vd_env *env, const struct vd_etcd_options *options,
				struct vd_error *error)
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

/* A transport that counts how often a client of it is made and closed. */
static unsigned		     made, closed;
static vd_status	     make_status;
static struct vdi_rpc_client counted;

static void close_counted(struct vdi_rpc_client *client, void (*done)(void *arg), void *arg)
{
	assert_ptr_equal(client, &counted);
	closed++;
	if (done)
		done(arg);
}

static size_t no_endpoints(struct vdi_rpc_client *client)
{
	(void) client;
	return 0;
}

static vd_status make_counted(const struct vd_env *env, const struct vdi_rpc_client_options *options,
			      struct vdi_rpc_client **ret_client, struct vd_error *reterr)
{
	static const struct vdi_rpc_client_ops ops = { .close = close_counted,
						       .endpoint_count = no_endpoints };

	(void) env;
	(void) options;
	(void) reterr;
	if (make_status != VD_OK)
		return make_status;
	made++;
	counted.ops = &ops;
	*ret_client = &counted;
	return VD_OK;
}

static const struct vd_rpc_transport counting = { .client_new = make_counted };

/* Memory that fails while a client or a store is opened: the call says so. No transport was begun, which
 * would close on a thread of its own, and nothing else is left that uses the env: it can be freed at once. */
static void torture_opening(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (unsigned with_store = 0; with_store < 2; with_store++) {
		bool has_failed = true;

		for (uint64_t nth = 1; has_failed; nth++) {
			struct vd_etcd_store_options store_options = VD_ETCD_STORE_OPTIONS_INIT;
			struct vd_etcd_options	     options = options_of();
			struct vd_error		     error = { 0 };
			struct vd_etcd		    *client = NULL;
			struct vd_store		    *store = NULL;
			struct vd_env		    *env;
			vd_status		     status;

			assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
			options.transport = &counting;
			store_options.etcd = &options;
			store_options.start_timeout = (vd_dur) { 0 };
			made = closed = 0;
			vdi_alloc_fail_nth(nth, 1);
			status = with_store ? vd_store_open_etcd(env, &store_options, &store, &error) :
					      vd_etcd_open(env, &options, &client, &error);
			has_failed = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			assert_status(status, has_failed ? VD_NOMEM : VD_OK);
			assert_status(error.code, status);
			assert_int_equal(client || store, !has_failed);
			assert_int_equal(made, !has_failed);
			if (client)
				(void) vd_etcd_close_wait(client);
			if (store)
				(void) vd_store_close_wait(store);
			assert_int_equal(closed, made);
			vd_env_free(env);
			assert_int_equal(vdi_alloc_live(), live);
		}
	}
}

/* A transport that cannot be made is the end of it, also when it does not say why. */
static void a_transport_that_cannot_be_made_is_named(void **state)
{
	struct vd_etcd_store_options store_options = VD_ETCD_STORE_OPTIONS_INIT;
	struct vd_etcd_options	     options = options_of();
	struct vd_error		     error = { 0 };
	struct vd_etcd		    *client = NULL;
	struct vd_store		    *store = NULL;
	struct vd_env		    *env;

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	options.transport = &counting;
	store_options.etcd = &options;
	store_options.start_timeout = (vd_dur) { 0 };
	made = closed = 0;
	make_status = VD_IO;
	assert_status(vd_etcd_open(env, &options, &client, &error), VD_IO);
	assert_status(error.code, VD_IO);
	assert_string_equal(error.message, vd_status_sentence(VD_IO));
	assert_status(vd_store_open_etcd(env, &store_options, &store, &error), VD_IO);
	make_status = VD_OK;
	assert_null(client);
	assert_null(store);
	assert_int_equal(made + closed, 0);
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
	options.compaction_interval = (vd_dur) { 0 }; /* none of its own */
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
		cmocka_unit_test(torture_opening),
		cmocka_unit_test(a_transport_that_cannot_be_made_is_named),
		cmocka_unit_test(e201_a_store_waits_for_its_first_answer_when_asked_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
