/* When the program of a kubeconfig is run: renewals, failures, rejected credentials. */
#include "kube_exec.h"

#include <sys/stat.h>

#include "actor_sim.h"
#include "temp_folder.h"
#include "vdtest.h"

#define V1 "client.authentication.k8s.io/v1"

static struct {
	struct vd_env	     *env;
	struct vdi_kube_exec *exec;
	struct vdi_exec_plan  plan;
	struct vd_error	      error;
	char		      folder[TEMP_FOLDER_SIZE], script[256], api_version[64], command[16], option[4];
	unsigned	      changes;
	bool		      is_closed;
} world;

static void on_changed(void *arg)
{
	(void) arg;
	world.changes++;
}

/* The program prints the file "answer", and fails without it. */
static int begin(void **state)
{
	static const struct vdi_exec_cluster cluster = { .server = "https://one" };

	(void) state;
	memset(&world, 0, sizeof world);
	temp_folder_make(world.folder);
	snprintf(world.script, sizeof world.script, "echo >>%s/runs; cat %s/answer 2>/dev/null", world.folder,
		 world.folder);
	snprintf(world.api_version, sizeof world.api_version, V1);
	snprintf(world.command, sizeof world.command, "/bin/sh");
	snprintf(world.option, sizeof world.option, "-c");
	world.plan = (struct vdi_exec_plan) { .api_version = world.api_version,
					      .command = world.command,
					      .arguments = { world.command, world.option, world.script } };
	if (vdi_env_new_sim(5, NULL, NULL, &world.env) != VD_OK)
		return -1;
	return vdi_kube_exec_new(world.env, &world.plan, &cluster, on_changed, NULL, &world.exec) == VD_OK ?
		       0 :
		       -1;
}

static void on_closed(void *arg)
{
	(void) arg;
	world.is_closed = true;
}

static int end(void **state)
{
	(void) state;
	vdi_kube_exec_close(world.exec, on_closed, NULL);
	vdi_sim_run_until_idle(world.env);
	assert_true(world.is_closed);
	world.env = vd_env_free(world.env);
	temp_folder_remove(world.folder);
	return 0;
}

/* Simulated time begins at 2024-01-01T00:00:00Z; life_s counts from there, 0: for ever. */
static void set_answer(const char *token, int64_t life_s)
{
	char  path[TEMP_FOLDER_SIZE + 8], time[64] = "";
	FILE *file;

	snprintf(path, sizeof path, "%s/answer", world.folder);
	if (token == NULL) {
		(void) remove(path);
		return;
	}
	if (life_s)
		snprintf(time, sizeof time, ",\"expirationTimestamp\":\"2024-01-01T%02d:%02d:%02dZ\"",
			 (int) (life_s / 3600), (int) (life_s / 60 % 60), (int) (life_s % 60));
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fprintf(file,
			    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\","
			    "\"status\":{\"token\":\"%s\"%s}}",
			    token, time) > 0);
	assert_int_equal(fclose(file), 0);
}

static size_t runs(void)
{
	char	    path[TEMP_FOLDER_SIZE + 8];
	struct stat stat_of;

	snprintf(path, sizeof path, "%s/runs", world.folder);
	return stat(path, &stat_of) == 0 ? (size_t) stat_of.st_size : 0;
}

static vd_status get(struct vdi_exec_answer *answer)
{
	memset(&world.error, 0, sizeof world.error);
	return vdi_kube_exec_get(world.exec, answer, &world.error);
}

static void expect_token(const char *token)
{
	struct vdi_exec_answer answer;

	assert_status(get(&answer), VD_OK);
	assert_string_equal(answer.token, token);
}

static void expect_status(vd_status status)
{
	struct vdi_exec_answer answer;

	assert_status(get(&answer), status);
}

/* A get, the run that it causes, and its token. */
static void expect_run(const char *token)
{
	size_t before = runs();

	expect_status(VD_AGAIN);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(runs(), before + 1);
	expect_token(token);
}

static int64_t due_in_ms(void)
{
	return vd_mono_since(vdi_kube_exec_due(world.exec), vd_env_now(world.env)).ns / 1000000;
}

/* When a tenth of its life is left, at most a minute before its end. */
static void a_credential_is_renewed_before_its_end(void **state)
{
	static const struct {
		int64_t life_s, due_ms;
	} rows[] = { { 5, 4500 },     { 100, 90000 },  { 590, 531000 },
		     { 600, 540000 }, { 610, 550000 }, { 3600, 3540000 } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		if (i) {
			(void) end(state);
			assert_int_equal(begin(state), 0);
		}
		assert_int_equal(vdi_kube_exec_due(world.exec).ns, VD_NEVER.ns);
		set_answer("a", rows[i].life_s);
		expect_run("a");
		assert_int_equal(world.changes, 1);
		assert_int_equal(due_in_ms(), rows[i].due_ms);
		vdi_sim_advance(world.env, VD_MS(rows[i].due_ms - 1));
		set_answer("b", 0);
		expect_token("a");
		vdi_sim_run_until_idle(world.env);
		assert_int_equal(runs(), 1);
		vdi_sim_advance(world.env, VD_MS(1));
		expect_token("a"); /* used while the program runs */
		vdi_sim_run_until_idle(world.env);
		assert_int_equal(runs(), 2);
		expect_token("b");
		assert_int_equal(vdi_kube_exec_due(world.exec).ns, VD_NEVER.ns);
	}
}

/* The last credential is good until its end; only then is the failure an error. */
static void a_renewal_that_fails(void **state)
{
	(void) state;
	set_answer("a", 10);
	expect_run("a");
	set_answer(NULL, 0);
	vdi_sim_advance(world.env, VD_SECONDS(9));
	expect_token("a");
	vdi_sim_run_until_idle(world.env);
	expect_token("a");
	assert_int_equal(runs(), 2);
	assert_int_equal(due_in_ms(), 1000); /* the next attempt, which is not before */
	vdi_sim_advance(world.env, VD_MS(999));
	expect_token("a");
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(runs(), 2);
	vdi_sim_advance(world.env, VD_MS(1));
	expect_status(VD_AGAIN); /* it has expired, and the program runs */
	expect_status(VD_AGAIN);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(runs(), 3);
	/* The server decides about a credential that has expired. */
	expect_token("a");
	vdi_sim_advance(world.env, VD_SECONDS(2));
	set_answer("b", 0);
	expect_run("b");
}

/* 1, 2, 4 .. 64 s apart, and so on; a success and its acceptance begin again. */
static void the_delays_grow_to_a_minute(void **state)
{
	(void) state;
	for (unsigned i = 0; i < 9; i++) {
		int64_t delay_s = (int64_t) 1 << VDI_MIN(i, 6U);

		expect_status(VD_AGAIN);
		vdi_sim_run_until_idle(world.env);
		assert_int_equal(world.changes, i + 1);
		expect_status(VD_FORBIDDEN);
		assert_int_equal(world.error.retry_after_s, delay_s + 1);
		assert_string_equal(world.error.message,
				    "the credential program \"/bin/sh\" failed with status 1");
		vdi_sim_advance(world.env, (vd_dur) { delay_s * 1000000000 - 1 });
		expect_status(VD_FORBIDDEN);
		assert_int_equal(world.error.retry_after_s, 1);
		vdi_sim_run_until_idle(world.env);
		assert_int_equal(runs(), i + 1);
		vdi_sim_advance(world.env, (vd_dur) { 1 });
	}
	set_answer("a", 0);
	expect_run("a");
	vdi_kube_exec_accepted(world.exec);
	set_answer(NULL, 0);
	vdi_kube_exec_refused(world.exec, 1);
	expect_status(VD_AGAIN); /* at once */
	vdi_sim_run_until_idle(world.env);
	expect_status(VD_FORBIDDEN);
	assert_int_equal(world.error.retry_after_s, 3);
}

/* Each run has a number; a rejection of an older one, or of one that is gone, says nothing new. */
static void a_rejection_is_that_of_one_credential(void **state)
{
	struct vdi_exec_answer answer;

	(void) state;
	vdi_kube_exec_refused(world.exec, 0); /* nothing is there */
	set_answer("a", 0);
	expect_run("a");
	assert_status(get(&answer), VD_OK);
	assert_int_equal(answer.number, 1);
	vdi_kube_exec_refused(world.exec, 0);
	expect_token("a");
	vdi_kube_exec_refused(world.exec, 1);
	vdi_kube_exec_refused(world.exec, 1);
	set_answer("b", 0);
	expect_run("b");
	assert_status(get(&answer), VD_OK);
	assert_int_equal(answer.number, 2);
	vdi_kube_exec_refused(world.exec, 1);
	expect_token("b");
	/* The second in a row waits. */
	vdi_kube_exec_refused(world.exec, 2);
	expect_status(VD_FORBIDDEN);
	assert_string_equal(world.error.message,
			    "the server rejected the credential of the kubeconfig's program (401)");
	assert_int_equal(world.error.retry_after_s, 3);
	vdi_sim_advance(world.env, VD_SECONDS(2));
	set_answer("c", 0);
	expect_run("c");
}

/* Its credential has expired already: it is used, and the program is run again after a pause. */
static void a_credential_that_comes_too_late(void **state)
{
	(void) state;
	vdi_sim_advance(world.env, VD_SECONDS(100));
	for (unsigned i = 0; i < 3; i++) {
		set_answer("late", 100); /* ends now */
		expect_run("late");
		expect_token("late");
		vdi_sim_run_until_idle(world.env);
		assert_int_equal(runs(), i + 1);
		assert_int_equal(due_in_ms(), INT64_C(1000) << i);
		vdi_sim_advance(world.env, VD_MS(INT64_C(1000) << i));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_credential_is_renewed_before_its_end),
		TEST(a_renewal_that_fails),
		TEST(the_delays_grow_to_a_minute),
		TEST(a_rejection_is_that_of_one_credential),
		TEST(a_credential_that_comes_too_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
