/* The etcd client as a user whose token, password or role ends while it is used, on a real etcd that issues
 * tokens for two seconds: simple ones, which stay valid while they are used (--auth-token-ttl=2 and
 * --log-level=debug, which logs their end), and JWT, which expire on time (--auth-token=jwt,...,ttl=2s).
 *
 * No test waits for time to pass, only for the server to have dropped a token.
 */
#include "await.h"
#include "etcd_client_fixture.h"
#include "etcd_fixture.h"
#include "etcd_state.h"
#include "rpc_etcd_options.h"

#define PATIENCE VD_SECONDS(300)

static struct vd_etcd *root, *alice;

#define CALL(result, start)                                                                                  \
	do {                                                                                                 \
		struct vdi_wait call_wait_;                                                                  \
		vd_status	started_;                                                                    \
		vdi_wait_init(&call_wait_, env);                                                             \
		(result) = (struct etcd_result) { .wait = &call_wait_ };                                     \
		started_ = start;                                                                            \
		assert_status(started_, VD_OK);                                                              \
		vdi_wait_wait(&call_wait_);                                                                  \
		vdi_wait_fini(&call_wait_);                                                                  \
	} while (0)
#define CALL_OK(result, start)                                                                               \
	do {                                                                                                 \
		CALL(result, start);                                                                         \
		assert_etcd_ok(&(result));                                                                   \
	} while (0)

static struct vd_etcd *open_as(const char *user, const char *password)
{
	struct vd_etcd_options options = etcd_options_under_test();

	options.user = user;
	options.password = password;
	return fixture_open(NULL, &options);
}

static struct etcd_result range_by(struct vd_etcd *by)
{
	const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("k") } };
	struct etcd_result		   result;

	CALL(result, vd_etcd_range(by, &(struct vd_etcd_call) { .timeout = PATIENCE }, &request,
				   etcd_note_range, &result));
	return result;
}

static vd_rev put_as_root(void)
{
	const struct vd_op op = { .kind = VD_OP_PUT, .key = vd_bytes_of("k"), .value = vd_bytes_of("v") };
	struct etcd_result result;

	CALL_OK(result, vd_etcd_put(root, &(struct vd_etcd_call) { .timeout = PATIENCE }, &op, etcd_note_op,
				    &result));
	return result.header.revision;
}

/* Resets users and roles for each test; the client of alice is new. */
static int setup(void **state)
{
	static bool	   is_enabled;
	struct etcd_result result;

	(void) state;
	if (!is_enabled) {
		root = open_as("root", "secret");
		CALL_OK(result, vd_etcd_user_add(root, NULL, "root", "secret", etcd_note_done, &result));
		CALL(result, vd_etcd_role_add(root, NULL, "root", etcd_note_done, &result));
		CALL_OK(result, vd_etcd_user_grant_role(root, NULL, "root", "root", etcd_note_done, &result));
		CALL_OK(result, vd_etcd_role_add(root, NULL, "reader", etcd_note_done, &result));
		CALL_OK(result, vd_etcd_role_grant(root, NULL, "reader", VD_ETCD_READ, vd_bytes_of("k"),
						   VD_BYTES_NONE, etcd_note_done, &result));
		CALL_OK(result, vd_etcd_auth_enable(root, NULL, true, etcd_note_done, &result));
		is_enabled = true;
	}
	CALL(result, vd_etcd_user_delete(root, NULL, "alice", etcd_note_done, &result));
	CALL_OK(result, vd_etcd_user_add(root, NULL, "alice", "one", etcd_note_done, &result));
	CALL_OK(result, vd_etcd_user_grant_role(root, NULL, "alice", "reader", etcd_note_done, &result));
	alice = open_as("alice", "one");
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	vd_etcd_close_wait(alice);
	return 0;
}

/* ---- The end of a token ---- */

static bool is_simple(void)
{
	return getenv("TOKENS") == NULL;
}

/* Returns how many simple tokens of alice the server has dropped. */
static unsigned forgotten(void)
{
	char	 name[512], line[16384];
	unsigned count = 0;
	FILE	*log;

	(void) snprintf(name, sizeof name, "%s/m0.log", getenv("ETCD_DIR"));
	log = fopen(name, "r");
	assert_non_null(log);
	while (fgets(line, sizeof line, log))
		count += strstr(line, "deleted a simple token") && strstr(line, "\"alice\"");
	(void) fclose(log);
	return count;
}

static void copy_token(char *token, size_t size)
{
	struct vd_bytes bytes;

	vdi_lock_acquire(&alice->lock);
	assert_non_null(alice->preflight.token);
	bytes = vd_blob_bytes(alice->preflight.token);
	assert_true(bytes.size < size);
	memcpy(token, bytes.data, bytes.size);
	token[bytes.size] = 0;
	vdi_lock_release(&alice->lock);
}

/* Uses alice's token until the server refuses it. (A simple one would be renewed by being used.) */
static void wear_out(void)
{
	struct vd_etcd_options options = etcd_options_under_test();
	char		       token[4096];
	struct vd_etcd	      *fixed;
	struct etcd_result     result;

	copy_token(token, sizeof token);
	options.token = token;
	fixed = fixture_open(NULL, &options);
	AWAIT((result = range_by(fixed)).is_error);
	assert_etcd_error(&result, VD_FORBIDDEN, "etcdserver: invalid auth token");
	vd_etcd_close_wait(fixed);
}

/* Waits until all present tokens of alice's client have expired. */
static void await_expiry(void)
{
	unsigned before = is_simple() ? forgotten() : 0;

	if (!is_simple())
		wear_out();
	else
		AWAIT(forgotten() != before);
}

static void e209_calls_and_watches_outlive_their_token(void **state)
{
	struct vd_etcd_watch_request request = { .key = vd_bytes_of("k") };
	struct watcher		     first;
	vd_rev			     revision = put_as_root();

	(void) state;
	request.revision = revision;
	watcher_open(&first, alice, request);
	WATCHER_EXPECT_EVENTS(&first, revision);
	for (unsigned round = 0; round < 3; round++) {
		struct etcd_result result = range_by(alice);
		struct watcher	   second;

		assert_etcd_ok(&result);
		await_expiry();
		/* The watch is not affected. */
		revision = put_as_root();
		WATCHER_EXPECT_EVENTS(&first, revision);
		/* Nor is a watch that joins its stream, which was opened with an expired token. */
		request.revision = revision;
		watcher_open(&second, alice, request);
		WATCHER_EXPECT_EVENTS(&second, revision);
		result = range_by(alice);
		assert_etcd_ok(&result);
		revision = put_as_root();
		WATCHER_EXPECT_EVENTS(&second, revision);
		WATCHER_EXPECT_EVENTS(&first, revision);
		watcher_close(&second);
	}
	watcher_close(&first);
}

/* ---- Passwords and roles ---- */

static void expect_refusal(struct watcher *watcher, const char *text)
{
	watcher_expect_end(watcher, VD_FORBIDDEN);
	assert_string_equal(watcher->error.error.message, text);
	assert_non_null(strchr(watcher->error.endpoint, ':'));
}

static void e209_a_password_that_changes_is_one_error(void **state)
{
	static const char *const     text = "etcdserver: authentication failed, invalid user ID or password";
	struct vd_etcd_watch_request request = { .key = vd_bytes_of("k") };
	struct watcher		     first, second;
	struct etcd_result	     result;

	(void) state;
	request.revision = put_as_root();
	watcher_open(&first, alice, request);
	WATCHER_EXPECT_EVENTS(&first, request.revision);
	CALL_OK(result, vd_etcd_user_change_password(root, NULL, "alice", "two", etcd_note_done, &result));
	result = range_by(alice);
	assert_etcd_error(&result, VD_FORBIDDEN, text);
	assert_non_null(strchr(result.error.endpoint, ':'));
	assert_false(result.error.maybe_applied);
	/* The stream requests a new token when a watch joins it, and is refused for all its watches. */
	watcher_open(&second, alice, request);
	expect_refusal(&second, text);
	expect_refusal(&first, text);
	watcher_close(&first);
	watcher_close(&second);
	/* The failure has no effect once the password is right again. */
	CALL_OK(result, vd_etcd_user_change_password(root, NULL, "alice", "one", etcd_note_done, &result));
	result = range_by(alice);
	assert_etcd_ok(&result);
	watcher_open(&first, alice, request);
	WATCHER_EXPECT_EVENTS(&first, request.revision);
	watcher_close(&first);
}

/* Our client cannot do this, so it uses etcd's own tool. */
static void revoke_role(void)
{
	char command[1024];

	(void) snprintf(command, sizeof command,
			"\"%s\" --endpoints \"%s\" --user root:secret user revoke-role alice reader",
			getenv("ETCDCTL"), getenv("ETCD_ENDPOINTS"));
	assert_int_equal(system(command), 0);
}

static void e209_a_role_that_is_revoked_is_one_error(void **state)
{
	static const char *const     text = "etcdserver: permission denied";
	struct vd_etcd_watch_request request = { .key = vd_bytes_of("k") };
	struct watcher		     first, second;
	struct etcd_result	     result;
	vd_rev			     revision;

	(void) state;
	request.revision = put_as_root();
	watcher_open(&first, alice, request);
	WATCHER_EXPECT_EVENTS(&first, request.revision);
	revoke_role();
	result = range_by(alice);
	assert_etcd_error(&result, VD_FORBIDDEN, text);
	assert_non_null(strchr(result.error.endpoint, ':'));
	watcher_open(&second, alice, request);
	expect_refusal(&second, text);
	watcher_close(&second);
	if (is_simple()) {
		/* A watch that was permitted when it began continues, as in etcd. (JWT: the token was renewed
		 * with the stream.) */
		revision = put_as_root();
		WATCHER_EXPECT_EVENTS(&first, revision);
	} else {
		expect_refusal(&first, text);
	}
	watcher_close(&first);
	CALL_OK(result, vd_etcd_user_grant_role(root, NULL, "alice", "reader", etcd_note_done, &result));
	result = range_by(alice);
	assert_etcd_ok(&result);
}

/* Teardown of the whole group. */
static int end(void **state)
{
	if (root)
		vd_etcd_close_wait(root);
	return fixture_end(state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(e209_calls_and_watches_outlive_their_token, setup, teardown),
		cmocka_unit_test_setup_teardown(e209_a_password_that_changes_is_one_error, setup, teardown),
		cmocka_unit_test_setup_teardown(e209_a_role_that_is_revoked_is_one_error, setup, teardown),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (getenv("ETCD_DIR") == NULL) {
		(void) fprintf(stderr, "run it under tests/integration/with-etcd.sh\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, fixture_begin, end);
}
