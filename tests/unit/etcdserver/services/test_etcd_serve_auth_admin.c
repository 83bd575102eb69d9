/* Administration of users and roles: which changes are refused and why, what each does to the revision of the
 * users, and what is read afterwards. Tokens and permissions are in test_etcd_serve_auth.c. */
#include "actor_sim.h"
#include "auth.h"
#include "etcd_server_fixture.h"
#include "vdtest.h"

static char root_token[VDI_AUTH_TOKEN_SIZE];

/* All requests have strings or messages in their first fields. */
struct ask {
	const char *method;
	const char *field[3]; /* NULL: absent */
	const char *token;
};

static void ask(struct etcd_server_fixture *fixture, struct etcd_server_call *call, const struct ask *with)
{
	uint8_t		    bytes[1024];
	struct vdi_wire_out out = { bytes, 0 };
	char		    method[64];

	for (unsigned i = 0; i < 3; i++)
		if (with->field[i])
			vdi_wire_bytes(&out, i + 1, vd_bytes_of(with->field[i]));
	(void) snprintf(method, sizeof method, "/etcdserverpb.Auth/%s", with->method);
	etcd_server_call_init(call, fixture);
	call->token = with->token;
	etcd_server_call_open(call, fixture, method);
	etcd_server_call_send_bytes(call, bytes, out.size);
	assert_true(call->is_finished);
}

/* The text of the refusal, "" if it was done. */
static const char *result_of(struct etcd_server_fixture *fixture, const struct ask *with)
{
	static char		text[512];
	struct etcd_server_call call;

	ask(fixture, &call, with);
	(void) snprintf(text, sizeof text, "%s", call.text);
	assert_int_equal(call.count, text[0] == 0);
	etcd_server_call_end(&call);
	return text;
}
#define RESULT(fixture, ...) result_of(fixture, &(const struct ask) { __VA_ARGS__ })

static uint64_t revision_of(struct etcd_server_fixture *fixture)
{
	Etcdserverpb__AuthStatusRequest	  request = ETCDSERVERPB__AUTH_STATUS_REQUEST__INIT;
	Etcdserverpb__AuthStatusResponse *response =
		ETCD_ASK(fixture, "Auth/AuthStatus", &request, auth_status_response);
	uint64_t revision = response->authrevision;

	ETCD_FREE(response);
	return revision;
}

static void log_in(struct etcd_server_fixture *fixture, const char *name, const char *password,
		   char token[VDI_AUTH_TOKEN_SIZE])
{
	Etcdserverpb__AuthenticateRequest   request = ETCDSERVERPB__AUTHENTICATE_REQUEST__INIT;
	Etcdserverpb__AuthenticateResponse *response;

	request.name = (char *) (uintptr_t) name;
	request.password = (char *) (uintptr_t) password;
	response = ETCD_ASK(fixture, "Auth/Authenticate", &request, authenticate_response);
	(void) snprintf(token, VDI_AUTH_TOKEN_SIZE, "%s", response->token);
	ETCD_FREE(response);
}

struct step {
	struct ask	  ask;
	enum vd_etcd_code code;	 /* VD_ETCD_OTHER: done */
	int		  moves; /* the revision of the users */
};

static void take_steps(struct etcd_server_fixture *fixture, const struct step *steps, size_t count,
		       const char *token)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t    before = vdi_auth_lock_data(fixture->server->auth)->revision, after;
		struct ask  with = steps[i].ask;
		const char *wanted =
			steps[i].code == VD_ETCD_OTHER ? "" : vdi_serve_code_message(steps[i].code);
		const char *found;

		vdi_auth_unlock_data(fixture->server->auth);
		with.token = token;
		found = result_of(fixture, &with);
		after = vdi_auth_lock_data(fixture->server->auth)->revision;
		vdi_auth_unlock_data(fixture->server->auth);
		if (strcmp(found, wanted) != 0 || after != before + (uint64_t) steps[i].moves)
			fail_msg("step %zu (%s): \"%s\", not \"%s\"; revision %llu after %llu", i,
				 with.method, found, wanted, (unsigned long long) after,
				 (unsigned long long) before);
	}
}

/* rules: E-167 */
static void e167_changes_of_users_and_roles(void **state)
{
	static const struct step first[] = {
		{ { "AuthEnable" }, VD_ETCD_ROOT_USER_NOT_EXIST, 0 },
		{ { "UserAdd", { "", "p" } }, VD_ETCD_USER_EMPTY, 0 },
		{ { "UserAdd", { "root", "rp" } }, VD_ETCD_OTHER, 1 },
		{ { "UserAdd", { "root", "rp" } }, VD_ETCD_USER_ALREADY_EXIST, 0 },
		{ { "AuthEnable" }, VD_ETCD_ROOT_ROLE_NOT_EXIST, 0 },
		{ { "UserGrantRole", { "root", "none" } }, VD_ETCD_ROLE_NOT_FOUND, 0 },
		{ { "UserGrantRole", { "nobody", "root" } }, VD_ETCD_USER_NOT_FOUND, 0 },
		{ { "UserGrantRole", { "root", "root" } }, VD_ETCD_OTHER, 1 }, /* needs no role */
		{ { "UserGrantRole", { "root", "root" } }, VD_ETCD_OTHER, 0 },
		{ { "RoleAdd", { "" } }, VD_ETCD_ROLE_EMPTY, 0 },
		{ { "RoleAdd", { "r" } }, VD_ETCD_OTHER, 1 },
		{ { "RoleAdd", { "r" } }, VD_ETCD_ROLE_ALREADY_EXIST, 0 },
		{ { "RoleAdd", { "root" } }, VD_ETCD_OTHER, 1 },
		{ { "RoleDelete", { "none" } }, VD_ETCD_ROLE_NOT_FOUND, 0 },
		{ { "UserAdd", { "u", "up" } }, VD_ETCD_OTHER, 1 },
		{ { "UserRevokeRole", { "nobody", "r" } }, VD_ETCD_USER_NOT_FOUND, 0 },
		{ { "UserRevokeRole", { "u", "r" } }, VD_ETCD_ROLE_NOT_GRANTED, 0 },
		{ { "UserGrantRole", { "u", "r" } }, VD_ETCD_OTHER, 1 },
		{ { "UserRevokeRole", { "u", "r" } }, VD_ETCD_OTHER, 1 },
		{ { "UserGrantRole", { "u", "r" } }, VD_ETCD_OTHER, 1 },
		{ { "RoleGrantPermission", { "none", "\x12\1k" } }, VD_ETCD_ROLE_NOT_FOUND, 0 },
		{ { "RoleGrantPermission", { "r", "\x12\1k" } }, VD_ETCD_OTHER, 1 },
		{ { "RoleRevokePermission", { "none", "k" } }, VD_ETCD_ROLE_NOT_FOUND, 0 },
		{ { "RoleRevokePermission", { "r", "k", "l" } }, VD_ETCD_PERMISSION_NOT_GRANTED, 0 },
		{ { "RoleRevokePermission", { "r", "k" } }, VD_ETCD_OTHER, 1 },
		{ { "RoleRevokePermission", { "r", "k" } }, VD_ETCD_PERMISSION_NOT_GRANTED, 0 },
		{ { "UserChangePassword", { "nobody", "p" } }, VD_ETCD_USER_NOT_FOUND, 0 },
		{ { "UserChangePassword", { "u", "new" } }, VD_ETCD_OTHER, 1 },
		{ { "UserDelete", { "nobody" } }, VD_ETCD_USER_NOT_FOUND, 0 },
		{ { "AuthDisable" }, VD_ETCD_OTHER, 0 },
		{ { "AuthEnable" }, VD_ETCD_OTHER, 0 },
	};
	/* While it is enabled root stays. */
	static const struct step second[] = {
		{ { "AuthEnable" }, VD_ETCD_OTHER, 0 },
		{ { "UserDelete", { "root" } }, VD_ETCD_INVALID_AUTH_MANAGEMENT, 0 },
		{ { "UserRevokeRole", { "root", "root" } }, VD_ETCD_INVALID_AUTH_MANAGEMENT, 0 },
		{ { "UserRevokeRole", { "root", "r" } }, VD_ETCD_ROLE_NOT_GRANTED, 0 },
		{ { "UserRevokeRole", { "u", "root" } }, VD_ETCD_ROLE_NOT_GRANTED, 0 },
		{ { "RoleDelete", { "root" } }, VD_ETCD_INVALID_AUTH_MANAGEMENT, 0 },
		{ { "RoleDelete", { "r" } }, VD_ETCD_OTHER, 1 },
		{ { "UserRevokeRole", { "u", "r" } }, VD_ETCD_ROLE_NOT_GRANTED, 0 },
		{ { "UserDelete", { "u" } }, VD_ETCD_OTHER, 1 },
		{ { "AuthDisable" }, VD_ETCD_OTHER, 1 },
	};
	static const struct step third[] = {
		{ { "UserRevokeRole", { "root", "root" } }, VD_ETCD_OTHER, 1 },
		{ { "RoleDelete", { "root" } }, VD_ETCD_OTHER, 1 },
		{ { "UserDelete", { "root" } }, VD_ETCD_OTHER, 1 },
		{ { "AuthEnable" }, VD_ETCD_ROOT_USER_NOT_EXIST, 0 },
	};
	struct etcd_server_fixture *fixture = *state;

	assert_int_equal(revision_of(fixture), 1);
	take_steps(fixture, first, VDI_ARRAY_SIZE(first), NULL);
	log_in(fixture, "root", "rp", root_token);
	take_steps(fixture, second, VDI_ARRAY_SIZE(second), root_token);
	take_steps(fixture, third, VDI_ARRAY_SIZE(third), NULL);
	assert_int_equal(revision_of(fixture), 1 + 11 + 3 + 3);
}

static void names_are_text_of_a_bounded_size(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	char			    name[VDI_AUTH_NAME_MAX + 1];

	memset(name, 'n', sizeof name);
	name[VDI_AUTH_NAME_MAX] = 0;
	assert_string_equal(RESULT(fixture, "UserAdd", { name, NULL, "\x08\1" }),
			    "etcdserver: user name is too long");
	name[VDI_AUTH_NAME_MAX - 1] = 0;
	assert_string_equal(RESULT(fixture, "UserAdd", { name, NULL, "\x08\1" }), "");
	assert_string_not_equal(RESULT(fixture, "UserAdd", { "\xff", NULL, "\x08\1" }), "");
	assert_string_not_equal(RESULT(fixture, "RoleAdd", { "\xff" }), "");
	assert_string_not_equal(RESULT(fixture, "UserDelete", { "\xff" }), "");
	assert_string_not_equal(RESULT(fixture, "UserAdd", { "u", NULL, "\x08" }), "");
	assert_string_not_equal(RESULT(fixture, "RoleGrantPermission", { "r", "\x08" }), "");
	assert_int_equal(revision_of(fixture), 2);
}

/* rules: E-168 */
static void e168_a_user_without_a_password_cannot_log_in(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	struct etcd_server_call	    call;

	assert_string_equal(RESULT(fixture, "UserAdd", { "root", "rp" }), "");
	assert_string_equal(RESULT(fixture, "UserGrantRole", { "root", "root" }), "");
	assert_string_equal(RESULT(fixture, "UserAdd", { "n", NULL, "\x08\1" }), "");
	assert_string_equal(RESULT(fixture, "UserAdd", { "e", "" }), "");
	assert_string_equal(RESULT(fixture, "AuthEnable"), "");
	assert_string_equal(RESULT(fixture, "Authenticate", { "e", "x" }),
			    vdi_serve_code_message(VD_ETCD_AUTH_FAILED));
	ask(fixture, &call, &(const struct ask) { "Authenticate", { "n", "" } });
	assert_int_not_equal(call.code, 0);
	etcd_server_call_end(&call);
	/* To give it one changes nothing. */
	log_in(fixture, "root", "rp", root_token);
	assert_string_equal(RESULT(fixture, "UserChangePassword", { "n", "given" }, root_token), "");
	ask(fixture, &call, &(const struct ask) { "Authenticate", { "n", "given" } });
	assert_int_not_equal(call.code, 0);
	etcd_server_call_end(&call);
	/* An emptied password matches nothing either. */
	assert_string_equal(RESULT(fixture, "UserChangePassword", { "root", "" }, root_token), "");
	assert_string_equal(RESULT(fixture, "Authenticate", { "root", "" }),
			    vdi_serve_code_message(VD_ETCD_AUTH_FAILED));
	assert_string_equal(RESULT(fixture, "Authenticate", { "root", "rp" }),
			    vdi_serve_code_message(VD_ETCD_AUTH_FAILED));
}

static void *answer_of(struct etcd_server_fixture *fixture, const struct ask *with,
		       const ProtobufCMessageDescriptor *descriptor)
{
	struct etcd_server_call call;
	void		       *answer;

	ask(fixture, &call, with);
	assert_string_equal(call.text, "");
	answer = protobuf_c_message_unpack(descriptor, NULL, call.sizes[0],
					   (const uint8_t *) call.messages[0]);
	etcd_server_call_end(&call);
	return answer;
}
#define ANSWER(fixture, descriptor, ...)                                                                     \
	answer_of(fixture, &(const struct ask) { __VA_ARGS__ }, &etcdserverpb__##descriptor##__descriptor)

static void users_and_roles_are_listed(void **state)
{
	struct etcd_server_fixture	   *fixture = *state;
	Etcdserverpb__AuthUserListResponse *users;
	Etcdserverpb__AuthRoleListResponse *roles;
	Etcdserverpb__AuthUserGetResponse  *user;
	Etcdserverpb__AuthRoleGetResponse  *role;

	users = ANSWER(fixture, auth_user_list_response, "UserList");
	assert_int_equal(users->n_users, 0);
	assert_int_equal(users->header->revision, 1);
	ETCD_FREE(users);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(RESULT(fixture, "UserAdd", { i ? "a" : "b", NULL, "\x08\1" }), "");
		assert_string_equal(RESULT(fixture, "RoleAdd", { i ? "ra" : "rb" }), "");
		assert_string_equal(RESULT(fixture, "UserGrantRole", { "b", i ? "ra" : "rb" }), "");
	}
	assert_string_equal(RESULT(fixture, "RoleGrantPermission", { "ra", "\x08\1\x12\1k\x1a\1l" }), "");
	assert_string_equal(RESULT(fixture, "RoleAdd", { "root" }), "");
	users = ANSWER(fixture, auth_user_list_response, "UserList");
	assert_int_equal(users->n_users, 2);
	assert_string_equal(users->users[0], "a");
	assert_string_equal(users->users[1], "b");
	ETCD_FREE(users);
	roles = ANSWER(fixture, auth_role_list_response, "RoleList");
	assert_int_equal(roles->header->revision, 1);
	assert_int_equal(roles->n_roles, 3);
	assert_string_equal(roles->roles[0], "ra");
	assert_string_equal(roles->roles[1], "rb");
	assert_string_equal(roles->roles[2], "root");
	ETCD_FREE(roles);
	user = ANSWER(fixture, auth_user_get_response, "UserGet", { "b" });
	assert_int_equal(user->header->revision, 1);
	assert_int_equal(user->n_roles, 2);
	assert_string_equal(user->roles[0], "ra");
	assert_string_equal(user->roles[1], "rb");
	ETCD_FREE(user);
	role = ANSWER(fixture, auth_role_get_response, "RoleGet", { "ra" });
	assert_int_equal(role->header->revision, 1);
	assert_int_equal(role->n_perm, 1);
	assert_int_equal(role->perm[0]->permtype, AUTHPB__PERMISSION__TYPE__WRITE);
	assert_memory_equal(role->perm[0]->key.data, "k", 1);
	assert_int_equal(role->perm[0]->range_end.len, 1);
	assert_memory_equal(role->perm[0]->range_end.data, "l", 1);
	ETCD_FREE(role);
	role = ANSWER(fixture, auth_role_get_response, "RoleGet", { "rb" });
	assert_int_equal(role->n_perm, 0);
	ETCD_FREE(role);
	role = ANSWER(fixture, auth_role_get_response, "RoleGet", { "root" }); /* everything */
	assert_int_equal(role->n_perm, 1);
	assert_int_equal(role->perm[0]->permtype, AUTHPB__PERMISSION__TYPE__READWRITE);
	assert_int_equal(role->perm[0]->key.len, 0);
	assert_int_equal(role->perm[0]->range_end.len, 1);
	assert_int_equal(role->perm[0]->range_end.data[0], 0);
	ETCD_FREE(role);
	assert_string_equal(RESULT(fixture, "UserGet", { "c" }),
			    vdi_serve_code_message(VD_ETCD_USER_NOT_FOUND));
	assert_string_equal(RESULT(fixture, "RoleGet", { "rc" }),
			    vdi_serve_code_message(VD_ETCD_ROLE_NOT_FOUND));
}

/* Users may look at themselves and at their roles, root at everything. */
static void e167_users_may_read_what_is_their_own(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	const char		   *denied = vdi_serve_code_message(VD_ETCD_PERMISSION_DENIED);
	char			    token[VDI_AUTH_TOKEN_SIZE];

	assert_string_equal(RESULT(fixture, "UserAdd", { "root", "rp" }), "");
	assert_string_equal(RESULT(fixture, "UserGrantRole", { "root", "root" }), "");
	assert_string_equal(RESULT(fixture, "UserAdd", { "u", "up" }), "");
	assert_string_equal(RESULT(fixture, "RoleAdd", { "r" }), "");
	assert_string_equal(RESULT(fixture, "RoleAdd", { "other" }), "");
	assert_string_equal(RESULT(fixture, "UserGrantRole", { "u", "r" }), "");
	assert_string_equal(RESULT(fixture, "AuthEnable"), "");
	log_in(fixture, "u", "up", token);
	log_in(fixture, "root", "rp", root_token);
	assert_string_equal(RESULT(fixture, "UserGet", { "u" }, token), "");
	assert_string_equal(RESULT(fixture, "UserGet", { "root" }, token), denied);
	assert_string_equal(RESULT(fixture, "UserGet", { "none" }, token), denied);
	assert_string_equal(RESULT(fixture, "UserGet", { "u" }, root_token), "");
	assert_string_not_equal(RESULT(fixture, "UserGet", { "u" }), "");
	assert_string_equal(RESULT(fixture, "RoleGet", { "r" }, token), "");
	assert_string_equal(RESULT(fixture, "RoleGet", { "other" }, token), denied);
	assert_string_equal(RESULT(fixture, "RoleGet", { "none" }, token), denied);
	assert_string_equal(RESULT(fixture, "RoleGet", { "other" }, root_token), "");
	assert_string_not_equal(RESULT(fixture, "RoleGet", { "r" }), "");
	assert_string_equal(RESULT(fixture, "RoleGet", { "r" }, "no token"),
			    vdi_serve_code_message(VD_ETCD_INVALID_AUTH_TOKEN));
	/* Disabled again, tokens are over. */
	assert_string_equal(RESULT(fixture, "AuthDisable", { NULL }, root_token), "");
	assert_string_equal(RESULT(fixture, "AuthEnable"), "");
	assert_string_equal(RESULT(fixture, "UserGet", { "u" }, token),
			    vdi_serve_code_message(VD_ETCD_INVALID_AUTH_TOKEN));
}

/* A token ends with its user's password and with the user, and with nothing else that has that name. */
static void e168_which_changes_end_a_token(void **state)
{
	static const struct {
		struct ask ask;
		bool	   ends;
	} rows[] = {
		{ { "RoleAdd", { "u" } }, false },
		{ { "RoleGrantPermission", { "u", "\x12\1k" } }, false },
		{ { "RoleRevokePermission", { "u", "k" } }, false },
		{ { "UserGrantRole", { "u", "u" } }, false },
		{ { "UserRevokeRole", { "u", "u" } }, false },
		{ { "RoleDelete", { "u" } }, false },
		{ { "UserAdd", { "v", "vp" } }, false },
		{ { "UserChangePassword", { "v", "new" } }, false },
		{ { "UserDelete", { "v" } }, false },
		{ { "UserChangePassword", { "u", "up" } }, true },
		{ { "UserDelete", { "u" } }, true },
	};
	struct etcd_server_fixture *fixture = *state;
	char			    token[VDI_AUTH_TOKEN_SIZE];

	assert_string_equal(RESULT(fixture, "UserAdd", { "root", "rp" }), "");
	assert_string_equal(RESULT(fixture, "UserGrantRole", { "root", "root" }), "");
	assert_string_equal(RESULT(fixture, "UserAdd", { "u", "up" }), "");
	assert_string_equal(RESULT(fixture, "AuthEnable"), "");
	log_in(fixture, "root", "rp", root_token);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct ask  with = rows[i].ask;
		const char *found;

		with.token = root_token;
		log_in(fixture, "u", "up", token);
		assert_string_equal(result_of(fixture, &with), "");
		found = RESULT(fixture, "UserGet", { "u" }, token);
		if ((strcmp(found, "") != 0) != rows[i].ends)
			fail_msg("after %s: \"%s\"", with.method, found);
	}
}

/* Methods that every user may call still need a user, also when they concern no key. */
static void methods_for_every_user_need_a_login(void **state)
{
	static const char *const    methods[] = { "Lease/LeaseGrant",	   "Lease/LeaseRevoke",
						  "Lease/LeaseTimeToLive", "Lease/LeaseLeases",
						  "Cluster/MemberList",	   "Maintenance/Status",
						  "Maintenance/Alarm" };
	struct etcd_server_fixture *fixture = *state;
	char			    user[VDI_AUTH_TOKEN_SIZE];
	const char *const	    tokens[] = { NULL, "no token", user };
	const char *const	    refusals[] = { vdi_serve_code_message(VD_ETCD_USER_EMPTY),
						   vdi_serve_code_message(VD_ETCD_INVALID_AUTH_TOKEN) };

	assert_string_equal(RESULT(fixture, "UserAdd", { "root", "rp" }), "");
	assert_string_equal(RESULT(fixture, "UserGrantRole", { "root", "root" }), "");
	assert_string_equal(RESULT(fixture, "UserAdd", { "u", "up" }), "");
	assert_string_equal(RESULT(fixture, "AuthEnable"), "");
	log_in(fixture, "u", "up", user);
	for (size_t i = 0; i < 3 * VDI_ARRAY_SIZE(methods); i++) {
		struct etcd_server_call call;
		char			method[64];

		(void) snprintf(method, sizeof method, "/etcdserverpb.%s", methods[i / 3]);
		etcd_server_call_init(&call, fixture);
		call.token = tokens[i % 3];
		etcd_server_call_open(&call, fixture, method);
		etcd_server_call_send_bytes(&call, "", 0);
		(void) vdi_sim_run_until_idle(fixture->env);
		assert_true(call.is_finished);
		if (i % 3 < 2 ? strcmp(call.text, refusals[i % 3]) != 0 :
				strcmp(call.text, refusals[0]) == 0 || strcmp(call.text, refusals[1]) == 0)
			fail_msg("%s, token %zu: \"%s\"", method, i % 3, call.text);
		etcd_server_call_end(&call);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		CASE(e167_changes_of_users_and_roles),
		CASE(names_are_text_of_a_bounded_size),
		CASE(e168_a_user_without_a_password_cannot_log_in),
		CASE(users_and_roles_are_listed),
		CASE(e167_users_may_read_what_is_their_own),
		CASE(e168_which_changes_end_a_token),
		CASE(methods_for_every_user_need_a_login),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
