/* Unit tests of lib/env/env.c. */
#include "actor_sim.h"
#include "env.h"
#include "vdtest.h"

struct log {
	int		  count;
	enum vd_log_level level;
	char		  module[32];
	char		  message[600];
	char		  field[64];
	vd_wall		  time;
};

static void keep(void *arg, const struct vd_log_record *record)
{
	struct log *log = arg;

	log->count++;
	log->level = record->level;
	log->time = record->time;
	snprintf(log->module, sizeof log->module, "%s", record->module);
	snprintf(log->message, sizeof log->message, "%s", record->message);
	log->field[0] = 0;
	if (record->field_count)
		snprintf(log->field, sizeof log->field, "%s=%s", record->fields[0].key,
			 record->fields[0].value);
}

static int evaluations;

static int evaluate(void)
{
	return ++evaluations;
}

static void records_above_the_level_are_not_built(void **state)
{
	struct log	      log = { 0 };
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;
	struct vd_env	     *env;

	(void) state;
	options.threads = 1;
	options.log = keep;
	options.log_arg = &log;
	options.log_level = VD_LOG_WARNING;
	assert_status(vd_env_new_threads(&options, &env), VD_OK);
	evaluations = 0;
	vdi_log(env, VD_LOG_INFO, "test", "number %d", evaluate());
	assert_int_equal(log.count, 0);
	assert_int_equal(evaluations, 0);
	vdi_log(env, VD_LOG_WARNING, "test", "number %d", evaluate());
	assert_int_equal(log.count, 1);
	assert_string_equal(log.message, "number 1");
	assert_string_equal(log.module, "test");
	assert_int_equal(log.level, VD_LOG_WARNING);
	vdi_log_fields(env, VD_LOG_ERROR, "test", (&(struct vd_log_field) { "key", "value" }), 1, "x");
	assert_string_equal(log.field, "key=value");
	vdi_log(env, VD_LOG_ERROR, "test", "%0600d", 1);
	assert_int_equal(strlen(log.message), VDI_LOG_MESSAGE_SIZE - 1);
	vd_env_free(env);
	/* Without a sink nothing is built either. */
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	vdi_log(env, VD_LOG_ERROR, "test", "number %d", evaluate());
	assert_int_equal(evaluations, 1);
	vd_env_free(env);
}

static void limited_records_pass_once_an_interval_and_count_the_rest(void **state)
{
	struct vdi_log_limit limit = VDI_LOG_LIMIT(VD_SECONDS(10));
	struct log	     log = { 0 };
	struct vd_env	    *env;

	(void) state;
	assert_status(vdi_env_new_sim(1, keep, &log, &env), VD_OK);
	for (int i = 0; i < 5; i++)
		vdi_log_limited(env, &limit, VD_LOG_WARNING, "test", "number %d", i);
	assert_int_equal(log.count, 1);
	assert_string_equal(log.message, "number 0");
	assert_string_equal(log.field, "");
	vdi_sim_advance(env, VD_SECONDS(10));
	vdi_log_limited(env, &limit, VD_LOG_WARNING, "test", "again");
	assert_int_equal(log.count, 2);
	assert_string_equal(log.field, "suppressed=4");
	assert_true(log.time.ns == vd_env_wall(env).ns);
	vd_env_free(env);
}

static void the_seed_decides_the_random_numbers(void **state)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;
	struct vd_env	     *a;
	struct vd_env	     *b;

	(void) state;
	options.threads = 1;
	options.seed = 5;
	assert_status(vd_env_new_threads(&options, &a), VD_OK);
	assert_status(vd_env_new_threads(&options, &b), VD_OK);
	for (int i = 0; i < 10; i++) {
		assert_true(vd_env_random(a) == vd_env_random(b));
		assert_true(vd_env_random_below(a, 10) == vd_env_random_below(b, 10));
	}
	vd_env_free(a);
	vd_env_free(b);
	assert_null(vd_env_free(NULL));
}

static void options_may_be_shorter_but_not_wrong(void **state)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;
	struct vd_env	     *env = NULL;

	(void) state;
	options.size = 1;
	assert_status(vd_env_new_threads(&options, &env), VD_INVALID_ARGUMENT);
	options.size = sizeof options;
	options.threads = 1000000;
	assert_status(vd_env_new_threads(&options, &env), VD_INVALID_ARGUMENT);
	assert_null(env);
	options.threads = 1;
	options.size = offsetof(struct vd_env_options, log);
	assert_status(vd_env_new_threads(&options, &env), VD_OK);
	assert_null(vdi_env_sim(env));
	assert_non_null(vdi_env_metrics(env));
	vd_env_free(env);
}

static void real_time_goes_forward(void **state)
{
	struct vd_env *env;
	vd_mono	       before;

	(void) state;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	before = vd_env_now(env);
	assert_true(vd_env_now(env).ns >= before.ns);
	assert_true(vd_env_wall(env).ns > VD_SECONDS(1600000000).ns);
	vd_env_free(env);
}

static void a_failed_allocation_makes_no_env(void **state)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;
	struct vd_env	     *env = NULL;
	int64_t		      live = vdi_alloc_live();
	bool		      failed = true;

	(void) state;
	options.threads = 2;
	for (uint64_t nth = 1; failed; nth++) {
		vd_status status;

		vdi_alloc_fail_nth(nth, 1);
		status = vd_env_new_threads(&options, &env);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		assert_true(failed == (env == NULL));
	}
	vd_env_free(env);
	assert_int_equal(vdi_alloc_live(), live);
}

static void executors_have_numbers(void **state)
{
	static char    executors[VDI_EXECUTORS_NUMBERED + 1];
	struct vd_env *env;

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	for (unsigned i = 0; i < VDI_EXECUTORS_NUMBERED; i++)
		assert_int_equal(vdi_env_executor_number(env, &executors[i]), i + 1);
	assert_int_equal(vdi_env_executor_number(env, &executors[0]), 1);
	assert_int_equal(vdi_env_executor_number(env, &executors[VDI_EXECUTORS_NUMBERED]), 0);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_above_the_level_are_not_built),
		cmocka_unit_test(limited_records_pass_once_an_interval_and_count_the_rest),
		cmocka_unit_test(the_seed_decides_the_random_numbers),
		cmocka_unit_test(options_may_be_shorter_but_not_wrong),
		cmocka_unit_test(real_time_goes_forward),
		cmocka_unit_test(a_failed_allocation_makes_no_env),
		cmocka_unit_test(executors_have_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
