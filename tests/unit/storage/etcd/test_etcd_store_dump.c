/* What /debug/vedette shows of an etcd (storage/etcd/etcd_store_dump.c): each member has its value, whatever
 * servers say of themselves. */
#include "vdtest.h"

#include "actor_sim.h"
#include "etcd_store.h"
#include "etcd_toy.h"
#include "json_scan.h"

static void keep_dump(void *arg, struct vd_bytes json)
{
	(void) snprintf(arg, 4096, "{\"\":0%.*s}", (int) json.size, (const char *) json.data);
	assert_status(vdi_json_validate(vd_bytes_of(arg), NULL, NULL), VD_OK);
}

static void expect_part(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("no %s in %s", part, text);
}

static void ignore_range(void *arg, vd_status status, const struct vd_range_result *result,
			 const struct vd_error *error)
{
	(void) arg;
	(void) status;
	(void) result;
	(void) error;
}

static void members_and_values(void **state)
{
	struct vd_etcd_store_options options = VD_ETCD_STORE_OPTIONS_INIT;
	struct vd_env		    *env;
	struct vdi_etcd_store	    *store;
	struct etcd_toy		     toy;
	struct vd_range_request	     range = { .key = vd_bytes_of("a") };
	char			     text[4096] = "";

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	etcd_toy_init(&toy, env, 1, 2);
	toy.versions[0] = "3.6.1\"\n";
	assert_status(vdi_etcd_store_new(env, etcd_toy_client(&toy), &options, toy.endpoints,
					 toy.endpoint_count, &store, NULL),
		      VD_OK);
	assert_status(vdi_etcd_store_wait(store, VD_SECONDS(20), NULL), VD_OK);
	vdi_sim_advance(env, VD_SECONDS(60));
	vdi_etcd_store_dump(&store->base, keep_dump, text);
	expect_part(
		text,
		"\"etcd\":{\"endpoints\":[{\"endpoint\":\"http://"
		"e0:2379\",\"ready\":true,\"bytes\":4096,\"version\":\"3.6.1\\\"\\n\",\"lastError\":\"\"},"
		"{\"endpoint\":\"http://"
		"e1:2379\",\"ready\":true,\"bytes\":4096,\"version\":\"3.6.1\",\"lastError\":\"\"}]");
	expect_part(text, "\"reachable\":true,\"progress\":false,\"callsInFlight\":0,\"watches\":0");
	expect_part(text, "\"compactor\":{\"intervalSeconds\":300,\"rounds\":0,\"compactions\":0},"
			  "\"lastFailure\":\"\",\"calls\":{\"range\":");
	expect_part(text, "\"watch\":{\"ok\":0,\"failed\":0}}}}"); /* all of it within "etcd" */
	assert_int_equal(vdi_metric_value(store->reachable_metric), 1);
	assert_status(vd_store_range(&store->base, &range, ignore_range, NULL), VD_OK);
	vdi_sim_run_until_idle(env);
	toy.fail_code = VDI_RPC_PERMISSION_DENIED;
	toy.fail_text = "bro\"ken";
	assert_status(vd_store_range(&store->base, &range, ignore_range, NULL), VD_OK);
	vdi_sim_advance(env, VD_SECONDS(600));
	vdi_etcd_store_dump(&store->base, keep_dump, text);
	expect_part(text, "\"rounds\":2,\"compactions\":0");
	expect_part(text, "\"calls\":{\"range\":{\"ok\":1,\"failed\":1},\"stream\":{\"ok\":0,\"failed\":0}");
	/* A server that refuses is there. One that is silent is a failure, until it answers again. */
	expect_part(text, "\"reachable\":true");
	expect_part(text, "\"lastFailure\":\"\"");
	toy.fail_code = 0;
	toy.is_silent = true;
	vdi_sim_advance(env, VD_SECONDS(8));
	vdi_etcd_store_dump(&store->base, keep_dump, text);
	expect_part(text, "\"reachable\":false");
	assert_int_equal(vdi_metric_value(store->reachable_metric), 0);
	expect_part(text, "\"lastFailure\":\"context deadline exceeded\"");
	toy.is_silent = false;
	vdi_sim_advance(env, VD_SECONDS(3));
	vdi_etcd_store_dump(&store->base, keep_dump, text);
	expect_part(text, "\"reachable\":true");
	assert_int_equal(vdi_metric_value(store->reachable_metric), 1);
	expect_part(text, "\"lastFailure\":\"\"");
	(void) vd_store_close_wait(&store->base);
	etcd_toy_fini(&toy);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_and_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
