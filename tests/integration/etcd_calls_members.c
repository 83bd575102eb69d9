/* The part of test_etcd_calls about servers that do not answer or differ, users, and members that die. */
#include "control.h"
#include "etcd_calls.h"
#include "rpc_etcd_options.h"

/* ---- Unreachable servers and wrong identities ---- */

static struct etcd_result range_by(struct vd_etcd *by, vd_dur timeout)
{
	const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("k") } };
	struct etcd_result		   result;

	CALL(result, vd_etcd_range(by, &(struct vd_etcd_call) { .timeout = timeout }, &request,
				   etcd_note_range, &result));
	return result;
}

void e210_nobody_there(void **state)
{
	const char	      *endpoints[] = { "http://127.0.0.1:1", NULL };
	struct vd_etcd_options options = etcd_options_under_test();
	struct etcd_result     result;
	struct vd_etcd	      *lonely;

	options.endpoints = endpoints;
	options.endpoint_count = 1;
	lonely = calls_open(&options);
	result = range_by(lonely, VD_SECONDS(2));
	assert_status(result.error.error.code, VD_TIMEOUT);
	if (strstr(result.error.error.message, "context deadline exceeded: http://127.0.0.1:1: ") == NULL)
		fail_msg("%s", result.error.error.message);
	assert_false(result.error.maybe_applied);
	vd_etcd_close_wait(lonely);
	/* If one of two endpoints is unreachable, calls still succeed. */
	if (calls_is_tls)
		return;
	endpoints[1] = calls_endpoints[0];
	options.endpoint_count = 2;
	lonely = calls_open(&options);
	for (int i = 0; i < 20; i++) {
		result = range_by(lonely, VD_SECONDS(10));
		assert_etcd_ok(&result);
	}
	vd_etcd_close_wait(lonely);
}

void bad_files_and_certificates(void **state)
{
	static const char *const secure[] = { "https://127.0.0.1:1" };
	struct vd_etcd_options	 options = calls_options();
	struct vd_error		 error = { 0 };
	struct vd_etcd		*opened;
	struct etcd_result	 result;

	options.endpoints = secure; /* with http:// the files are not used (E-204) */
	options.endpoint_count = 1;
	options.ca_path = "/nowhere/ca.pem";
	assert_status(vd_etcd_open(calls_env, &options, &opened, &error), VD_INVALID_ARGUMENT);
	assert_non_null(strstr(error.message, "/nowhere/ca.pem"));
	if (!calls_is_tls)
		return;
	options = calls_options();
	options.cert_path = options.key_path = NULL; /* etcd requires one */
	opened = calls_open(&options);
	result = range_by(opened, VD_SECONDS(2));
	assert_true(result.is_error);
	assert_true(result.error.error.code == VD_TIMEOUT || result.error.error.code == VD_UNAVAILABLE);
	vd_etcd_close_wait(opened);
	options = calls_options();
	options.server_name = "elsewhere.example";
	opened = calls_open(&options);
	result = range_by(opened, VD_SECONDS(2));
	assert_status(result.error.error.code, VD_TIMEOUT);
	vd_etcd_close_wait(opened);
}

/* ---- Users (E-116, E-167, E-168, E-209) ---- */

static vd_status auth_call(struct vd_etcd *by, int step, struct etcd_result *result)
{
	switch (step) {
	case 0: return vd_etcd_user_add(by, NULL, "root", "secret", etcd_note_done, result);
	case 1: return vd_etcd_user_grant_role(by, NULL, "root", "root", etcd_note_done, result);
	case 2: return vd_etcd_role_add(by, NULL, "reader", etcd_note_done, result);
	case 3:
		return vd_etcd_role_grant(by, NULL, "reader", VD_ETCD_READ, vd_bytes_of("k"), VD_BYTES_NONE,
					  etcd_note_done, result);
	case 4: return vd_etcd_user_add(by, NULL, "alice", "one", etcd_note_done, result);
	case 5: return vd_etcd_user_grant_role(by, NULL, "alice", "reader", etcd_note_done, result);
	default: return vd_etcd_auth_enable(by, NULL, true, etcd_note_done, result);
	}
}

void e143_e168_e209_users(void **state)
{
	struct vd_etcd_options options = calls_options();
	struct etcd_result     result;
	struct vd_etcd	      *root, *alice, *stranger;
	char		       answer[4096];

	if (calls_endpoint_count > 1 || calls_is_tls)
		skip_because("one plain server only: certificates name users too");
	CALL(result, vd_etcd_auth_status(calls_client, NULL, etcd_note_auth_status, &result));
	assert_int_equal(result.is_error, calls_is_old); /* new in 3.5 */
	assert_false(result.flag);
	calls_put("k", "v");
	calls_put("secret", "v");
	/* A user without authentication on the server is accepted (AuthNotEnabled). */
	options.user = "root";
	options.password = "secret";
	root = calls_open(&options);
	result = range_by(root, VD_SECONDS(10));
	assert_etcd_ok(&result);
	CALL(result, vd_etcd_auth_enable(calls_client, NULL, true, etcd_note_done, &result));
	assert_etcd_error(&result, VD_FORBIDDEN, "etcdserver: root user does not exist");
	CALL(result, vd_etcd_role_add(calls_client, NULL, "root", etcd_note_done, &result));
	for (int step = 0; step < 7; step++)
		CALL_OK(result, auth_call(calls_client, step, &result));
	result = range_by(calls_client, VD_SECONDS(10));
	assert_etcd_error(&result, VD_FORBIDDEN, "etcdserver: user name is empty");
	/* root had no token; now it fetches one (E-209, UserEmpty). */
	result = range_by(root, VD_SECONDS(10));
	assert_etcd_ok(&result);
	options.password = "wrong";
	stranger = calls_open(&options);
	result = range_by(stranger, VD_SECONDS(10));
	assert_etcd_error(&result, VD_FORBIDDEN,
			  "etcdserver: authentication failed, invalid user ID or password");
	options.user = "alice";
	options.password = "one";
	alice = calls_open(&options);
	result = range_by(alice, VD_SECONDS(10));
	assert_etcd_ok(&result);
	result = calls_put_value(alice, "k", vd_bytes_of("w"));
	assert_etcd_error(&result, VD_FORBIDDEN, "etcdserver: permission denied");
	/* A restart of the server drops the tokens: both are fetched anew, also for a stream. */
	if (getenv("CONTROL"))
		assert_true(test_control("restart all", answer, sizeof answer));
	for (int i = 0; i < 100; i++) {
		result = range_by(alice, VD_SECONDS(10));
		if (!result.is_error)
			break;
	}
	assert_etcd_ok(&result);
	result = calls_put_value(root, "k", vd_bytes_of("w"));
	assert_etcd_ok(&result);
	CALL(result, vd_etcd_snapshot(root, NULL, etcd_note_snapshot, &result));
	assert_etcd_ok(&result);
	/* A changed password invalidates alice's token; the old password gets no new one. */
	CALL_OK(result, vd_etcd_user_change_password(root, NULL, "alice", "two", etcd_note_done, &result));
	result = range_by(alice, VD_SECONDS(10));
	assert_etcd_error(&result, VD_FORBIDDEN,
			  "etcdserver: authentication failed, invalid user ID or password");
	CALL_OK(result, vd_etcd_user_delete(root, NULL, "alice", etcd_note_done, &result));
	CALL_OK(result, vd_etcd_auth_enable(root, NULL, false, etcd_note_done, &result));
	result = range_by(calls_client, VD_SECONDS(10));
	assert_etcd_ok(&result);
	/* With authentication off a token is ignored (E-143). */
	result = range_by(root, VD_SECONDS(10));
	assert_etcd_ok(&result);
	vd_etcd_close_wait(root);
	vd_etcd_close_wait(alice);
	vd_etcd_close_wait(stranger);
	calls_clear();
}

void e203_reject_old_cluster(void **state)
{
	struct vd_etcd_options options = calls_options();
	struct etcd_result     result;
	struct vd_etcd	      *strict;

	options.reject_old_cluster = true;
	strict = calls_open(&options);
	result = range_by(strict, VD_SECONDS(20));
	if (calls_is_old)
		assert_etcd_error(&result, VD_UNSUPPORTED, "etcdclient: old cluster version");
	else
		assert_etcd_ok(&result);
	vd_etcd_close_wait(strict);
}

/* ---- A cluster ---- */

/* Reads and writes until 20 writes were accepted. Reads are repeated until they are answered. */
static void work(struct vd_etcd *by)
{
	unsigned puts = 0;

	for (int i = 0; i < 200 && puts < 20; i++) {
		struct etcd_result result = range_by(by, VD_SECONDS(60));

		assert_etcd_ok(&result);
		result = calls_put_value(by, "k", vd_bytes_of("v"));
		puts += !result.is_error;
		if (result.is_error)
			assert_true(result.error.error.code == VD_UNAVAILABLE ||
				    result.error.error.code == VD_TIMEOUT);
	}
	assert_int_equal(puts, 20);
}

static void bring_back(const char *command, const char *member)
{
	char text[64];
	char answer[256];

	(void) snprintf(text, sizeof text, "%s %.32s", command, member);
	assert_true(test_control(text, answer, sizeof answer));
	assert_true(test_control("wait", answer, sizeof answer));
}

void e205_a_member_dies(void **state)
{
	char member[256];

	if (calls_endpoint_count < 3)
		skip_because("needs three members");
	assert_true(test_control("kill leader", member, sizeof member));
	work(calls_client);
	bring_back("start", member);
}

/* A frozen member keeps its connections: only keep-alive pings detect it. Until then its calls wait. */
void e201_a_member_freezes(void **state)
{
	struct vd_etcd_options options = calls_options();
	struct vd_etcd	      *watchful;
	char		       member[256];

	if (calls_endpoint_count < 3)
		skip_because("needs three members");
	options.keepalive_time = VD_SECONDS(5);
	options.keepalive_timeout = VD_SECONDS(1);
	watchful = calls_open(&options);
	work(watchful);
	assert_true(test_control("pause leader", member, sizeof member));
	work(watchful);
	bring_back("resume", member);
	vd_etcd_close_wait(watchful);
}
