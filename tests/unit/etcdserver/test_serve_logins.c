/* Authenticate calls in great numbers: who waits for whom, and what the end of the server does with those
 * that wait. */
#include "etcd_server_fixture.h"

#include "actor_sim.h"
#include "auth.h"
#include "buffer.h"
#include "env.h"
#include "metrics.h"
#include "serve_logins.h"
#include "vdtest.h"

#define FREE ETCD_FREE

static void add_user(struct etcd_server_fixture *fixture, const char *name, const char *password)
{
	Etcdserverpb__AuthUserAddRequest       user = ETCDSERVERPB__AUTH_USER_ADD_REQUEST__INIT;
	Etcdserverpb__AuthUserGrantRoleRequest grant = ETCDSERVERPB__AUTH_USER_GRANT_ROLE_REQUEST__INIT;

	user.name = (char *) (uintptr_t) name;
	user.password = (char *) (uintptr_t) password;
	FREE(ETCD_ASK(fixture, "Auth/UserAdd", &user, auth_user_add_response));
	grant.user = user.name;
	grant.role = (char *) "root";
	FREE(ETCD_ASK(fixture, "Auth/UserGrantRole", &grant, auth_user_grant_role_response));
}

static int set_up(void **state)
{
	Etcdserverpb__AuthRoleAddRequest role = ETCDSERVERPB__AUTH_ROLE_ADD_REQUEST__INIT;
	Etcdserverpb__AuthEnableRequest	 enable = ETCDSERVERPB__AUTH_ENABLE_REQUEST__INIT;
	int				 failed = etcd_server_setup(state);

	role.name = (char *) "root";
	FREE(ETCD_ASK(*state, "Auth/RoleAdd", &role, auth_role_add_response));
	add_user(*state, "root", "rp");
	add_user(*state, "other", "op");
	FREE(ETCD_ASK(*state, "Auth/AuthEnable", &enable, auth_enable_response));
	return failed;
}

static void post(struct etcd_server_call *call, struct etcd_server_fixture *fixture, const char *peer,
		 const char *name, const char *password)
{
	Etcdserverpb__AuthenticateRequest request = ETCDSERVERPB__AUTHENTICATE_REQUEST__INIT;

	request.name = (char *) (uintptr_t) name;
	request.password = (char *) (uintptr_t) password;
	etcd_server_call_post_as(call, fixture, peer, NULL, "/etcdserverpb.Auth/Authenticate", &request.base);
}

static size_t count_finished(const struct etcd_server_call *calls, size_t count)
{
	size_t finished = 0;

	for (size_t i = 0; i < count; i++)
		finished += calls[i].is_finished;
	return finished;
}

static void end_all(struct etcd_server_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++)
		etcd_server_call_end(&calls[i]);
}

#define FLOOD 100
static struct etcd_server_call flood[VDI_SERVE_LOGINS_MAX + 2];

static void post_flood(struct etcd_server_fixture *fixture, size_t count, const char *peer)
{
	for (size_t i = 0; i < count; i++)
		post(&flood[i], fixture, peer, "root", "wrong");
}

static void addresses_take_turns(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	struct etcd_server_call	    honest;

	post_flood(fixture, FLOOD, "10.0.0.1:1");
	post(&honest, fixture, "10.0.0.2:1", "other", "op");
	while (!honest.is_finished)
		assert_true(vdi_sim_step(fixture->env));
	assert_int_equal(honest.code, 0);
	assert_true(count_finished(flood, FLOOD) <= 2);
	(void) vdi_sim_run_until_idle(fixture->env);
	assert_int_equal(count_finished(flood, FLOOD), FLOOD);
	assert_string_equal(flood[0].text, vdi_serve_code_message(VD_ETCD_AUTH_FAILED));
	end_all(flood, FLOOD);
	etcd_server_call_end(&honest);
}

/* The same worker did both once: a minute of passwords delayed it by a minute. */
static void administration_does_not_wait_for_logins(void **state)
{
	static const char *const	       methods[] = { "/etcdserverpb.Auth/UserGrantRole",
							     "/etcdserverpb.Maintenance/HashKV" };
	struct etcd_server_fixture	      *fixture = *state;
	Etcdserverpb__AuthUserGrantRoleRequest grant = ETCDSERVERPB__AUTH_USER_GRANT_ROLE_REQUEST__INIT;
	Etcdserverpb__HashKVRequest	       hash = ETCDSERVERPB__HASH_KVREQUEST__INIT;
	const ProtobufCMessage		      *requests[] = { &grant.base, &hash.base };
	char				       token[VDI_AUTH_TOKEN_SIZE];

	grant.user = (char *) "other";
	grant.role = (char *) "root";
	for (size_t i = 0; i < VDI_ARRAY_SIZE(methods); i++) {
		struct etcd_server_call administration;
		unsigned		steps = 0;

		post_flood(fixture, FLOOD, "10.0.0.1:1");
		assert_status(vdi_auth_token_new(fixture->server->auth, vd_bytes_of("root"),
						 vdi_auth_revision(fixture->server->auth), token),
			      VD_OK);
		etcd_server_call_post_as(&administration, fixture, NULL, token, methods[i], requests[i]);
		while (!administration.is_finished && steps++ < 10000)
			assert_true(vdi_sim_step(fixture->env));
		assert_string_equal(administration.text, "");
		assert_true(count_finished(flood, FLOOD) <
			    FLOOD / 2); /* the simulator draws which actor runs */
		(void) vdi_sim_run_until_idle(fixture->env);
		end_all(flood, FLOOD);
		etcd_server_call_end(&administration);
	}
}

static void assert_metrics(struct etcd_server_fixture *fixture, unsigned waiting, unsigned rejected_address,
			   unsigned rejected_total)
{
	char		  wanted[256];
	struct vdi_buffer text;

	vdi_buffer_init(&text, 1 << 20);
	assert_status(vdi_metrics_render(vdi_env_metrics(fixture->env), &text), VD_OK);
	vdi_buffer_append_char(&text, 0);
	assert_status(vdi_buffer_status(&text), VD_OK);
	(void) snprintf(wanted, sizeof wanted, "\nvedette_etcd_logins_waiting %u\n", waiting);
	assert_non_null(strstr(text.data, wanted));
	(void) snprintf(wanted, sizeof wanted, "\nvedette_etcd_logins_rejected_total{limit=\"address\"} %u\n",
			rejected_address);
	assert_non_null(strstr(text.data, wanted));
	(void) snprintf(wanted, sizeof wanted, "\nvedette_etcd_logins_rejected_total{limit=\"total\"} %u\n",
			rejected_total);
	assert_non_null(strstr(text.data, wanted));
	vdi_buffer_fini(&text);
}

static void a_full_queue_refuses(void **state)
{
	static char		    peers[VDI_SERVE_LOGINS_MAX + 2][32];
	struct etcd_server_fixture *fixture = *state;
	size_t			    count = VDI_SERVE_LOGINS_ADDRESS_MAX + 2;

	assert_metrics(fixture, 0, 0, 0);
	post_flood(fixture, count, "10.0.0.1:1");
	assert_int_equal(count_finished(flood, count), 2);
	assert_metrics(fixture, VDI_SERVE_LOGINS_ADDRESS_MAX, 2, 0);
	assert_int_equal(flood[count - 1].code, VDI_RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(flood[count - 1].text, "etcdserver: too many requests");
	/* Whoever has gone makes room. */
	etcd_server_call_end(&flood[0]);
	(void) vdi_sim_run_until_idle(fixture->env);
	assert_int_equal(count_finished(flood + 1, count - 1), count - 1);
	assert_metrics(fixture, 0, 2, 0);
	end_all(flood + 1, count - 1);

	count = VDI_SERVE_LOGINS_MAX + 1;
	for (size_t i = 0; i < count; i++) {
		(void) snprintf(peers[i], sizeof peers[i], "10.0.%zu.%zu:1", i / 200, i % 200);
		post(&flood[i], fixture, peers[i], "nobody", "x");
	}
	assert_int_equal(count_finished(flood, count), 1);
	assert_int_equal(flood[count - 1].code, VDI_RPC_RESOURCE_EXHAUSTED);
	assert_metrics(fixture, VDI_SERVE_LOGINS_MAX, 2, 1);
	vdi_etcdserver_stop(fixture->server);
	assert_metrics(fixture, 0, 2, 1);
	end_all(flood, count);
}

static void calls_that_were_given_up_cost_nothing(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	uint64_t		    allocations;

	post_flood(fixture, 20, "10.0.0.1:1");
	for (size_t i = 0; i < 20; i++)
		vdi_etcdserver_ended(&flood[i].base);
	(void) vdi_alloc_fail_nth(0, 0);
	(void) vdi_sim_run_until_idle(fixture->env);
	allocations = vdi_alloc_fail_nth(0, 0);
	assert_int_equal(allocations, 0); /* no bcrypt, which needs memory */
	for (size_t i = 0; i < 20; i++) {
		assert_true(flood[i].is_freed);
		assert_false(flood[i].is_finished);
	}
}

/* SIGTERM: nothing is hashed any more. */
static void the_end_of_the_server_does_not_wait_for_logins(void **state)
{
	struct etcd_server_fixture *fixture = *state;

	post_flood(fixture, FLOOD, "10.0.0.1:1");
	vdi_etcdserver_stop(fixture->server);
	assert_int_equal(count_finished(flood, FLOOD), FLOOD);
	for (size_t i = 0; i < FLOOD; i++)
		assert_string_equal(flood[i].text, vdi_serve_code_message(VD_ETCD_STOPPED));
	end_all(flood, FLOOD);
}

/* Work for the worker for slow work is not begun either. */
static void the_end_of_the_server_does_not_wait_for_slow_work(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__HashKVRequest hash = ETCDSERVERPB__HASH_KVREQUEST__INIT;

	for (size_t i = 0; i < 3; i++)
		etcd_server_call_post(&flood[i], fixture, "/etcdserverpb.Auth/AuthDisable", &hash.base);
	vdi_etcdserver_stop(fixture->server);
	(void) vdi_sim_run_until_idle(fixture->env);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(flood[i].text, vdi_serve_code_message(VD_ETCD_STOPPED));
	end_all(flood, 3);
}

static uint64_t cost_of(struct etcd_server_fixture *fixture, const char *name, const char *password)
{
	struct etcd_server_call call;
	uint64_t		cost;

	post(&call, fixture, "10.0.0.1:1", name, password);
	(void) vdi_alloc_fail_nth(0, 0);
	(void) vdi_sim_run_until_idle(fixture->env);
	cost = vdi_alloc_fail_nth(0, 0);
	assert_string_equal(call.text, vdi_serve_code_message(VD_ETCD_AUTH_FAILED));
	etcd_server_call_end(&call);
	return cost;
}

static void unknown_users_take_as_long_as_known_ones(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	const char		   *no_hash = vdi_auth_no_hash(fixture->server->auth);
	char			    hash[VDI_AUTH_HASH_SIZE];
	bool			    matches = true;

	assert_true(cost_of(fixture, "root", "wrong") > 0);
	assert_int_equal(cost_of(fixture, "nobody", "wrong"), cost_of(fixture, "root", "wrong"));
	/* As costly as a real one, and nothing fits. */
	assert_status(vdi_auth_hash_password(fixture->server->auth, vd_bytes_of("x"), hash), VD_OK);
	assert_memory_equal(hash, no_hash, sizeof "$2b$04$" - 1);
	assert_status(vdi_auth_password_matches(vd_bytes_of(""), no_hash, &matches), VD_OK);
	assert_false(matches);
}

/* Between the check of the old password and the token. */
static void a_password_that_changes_meanwhile_gives_no_token(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	struct vdi_auth		   *auth = fixture->server->auth;
	char			    token[VDI_AUTH_TOKEN_SIZE];

	assert_status(vdi_auth_token_new(auth, vd_bytes_of("root"), vdi_auth_revision(auth) - 1, token),
		      VD_AGAIN);
	assert_status(vdi_auth_token_new(auth, vd_bytes_of("root"), vdi_auth_revision(auth), token), VD_OK);
}

/* Once each token that was forgotten began a new walk over all of them. */
static void many_tokens_are_forgotten_at_once(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	struct vdi_auth		   *auth = fixture->server->auth;
	char			    token[VDI_AUTH_TOKEN_SIZE];

	for (int i = 0; i < 5000; i++)
		assert_status(vdi_auth_token_new(auth, vd_bytes_of(i % 5 ? "root" : "other"),
						 vdi_auth_revision(auth), token),
			      VD_OK);
	vdi_auth_tokens_forget(auth, vd_bytes_of("root"));
	vdi_auth_tokens_forget(auth, VD_BYTES_NONE);
}

/* Each request for memory of a login fails in turn. The client gets its token or an error, and no login is
 * left in the queue. */
static void a_login_without_memory_fails_alone(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	unsigned		    failures = 0;
	bool			    was_reached = true;

	for (uint64_t n = 1; was_reached; n++) {
		struct etcd_server_call call;

		assert_true(n < 100);
		(void) vdi_alloc_fail_nth(n, 1);
		post(&call, fixture, "10.0.0.1:1", "other", "op");
		(void) vdi_sim_run_until_idle(fixture->env);
		was_reached = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_true(call.is_finished);
		if (call.code) {
			assert_true(was_reached);
			assert_true(call.text[0] != 0);
			failures++;
		}
		etcd_server_call_end(&call);
		assert_metrics(fixture, 0, 0, 0);
	}
	assert_true(failures > 0);
}

static void expect_address(const char *peer, const char *expected)
{
	char text[VDI_SERVE_ADDRESS_SIZE];

	vdi_serve_logins_address(peer, text);
	assert_string_equal(text, expected);
}

static void addresses_without_port_and_host_number(void **state)
{
	(void) state;
	expect_address("10.0.0.7:4711", "10.0.0.7");
	expect_address("[2001:db8:1:2:3:4:5:6]:4711", "2001:db8:1:2::/64");
	expect_address("[2001:db8:1:2::9]:1", "2001:db8:1:2::/64");
	expect_address("[::1]:1", "::/64");
	expect_address("unix:", "unix");
	expect_address("", "");
	expect_address("[]:1", "[]");
	expect_address("[nonsense]:1", "nonsense");
	expect_address(
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, etcd_server_teardown)
		CASE(addresses_take_turns),
		CASE(administration_does_not_wait_for_logins),
		CASE(a_full_queue_refuses),
		CASE(a_login_without_memory_fails_alone),
		CASE(calls_that_were_given_up_cost_nothing),
		CASE(the_end_of_the_server_does_not_wait_for_logins),
		CASE(the_end_of_the_server_does_not_wait_for_slow_work),
		CASE(unknown_users_take_as_long_as_known_ones),
		CASE(a_password_that_changes_meanwhile_gives_no_token),
		CASE(many_tokens_are_forgotten_at_once),
		cmocka_unit_test(addresses_without_port_and_host_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
