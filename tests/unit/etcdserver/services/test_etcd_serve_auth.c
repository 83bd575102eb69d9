/* Users, roles and tokens of the etcd server, and what of it survives a restart. */
#include "actor_sim.h"
#include "auth.h"
#include "etcd_server_fixture.h"
#include "serve_state.h"
#include "temp_folder.h"
#include "vdtest.h"

#define FREE ETCD_FREE

/* ---- Over the service ---- */

static void add_user(struct etcd_server_fixture *fixture, const char *name, const char *password,
		     const char *role)
{
	Etcdserverpb__AuthUserAddRequest       user = ETCDSERVERPB__AUTH_USER_ADD_REQUEST__INIT;
	Etcdserverpb__AuthUserGrantRoleRequest grant = ETCDSERVERPB__AUTH_USER_GRANT_ROLE_REQUEST__INIT;
	Etcdserverpb__AuthRoleAddRequest       add = ETCDSERVERPB__AUTH_ROLE_ADD_REQUEST__INIT;

	user.name = (char *) (uintptr_t) name;
	user.password = (char *) (uintptr_t) password;
	FREE(etcd_server_ask(fixture, NULL, "/etcdserverpb.Auth/UserAdd", &user.base,
			     &etcdserverpb__auth_user_add_response__descriptor));
	add.name = (char *) (uintptr_t) role;
	FREE(etcd_server_ask(fixture, NULL, "/etcdserverpb.Auth/RoleAdd", &add.base,
			     &etcdserverpb__auth_role_add_response__descriptor));
	grant.user = (char *) (uintptr_t) name;
	grant.role = (char *) (uintptr_t) role;
	FREE(etcd_server_ask(fixture, NULL, "/etcdserverpb.Auth/UserGrantRole", &grant.base,
			     &etcdserverpb__auth_user_grant_role_response__descriptor));
}

static void login(struct etcd_server_fixture *fixture, const char *name, const char *password,
		  char token[VDI_AUTH_TOKEN_SIZE])
{
	Etcdserverpb__AuthenticateRequest   request = ETCDSERVERPB__AUTHENTICATE_REQUEST__INIT;
	Etcdserverpb__AuthenticateResponse *response;

	request.name = (char *) (uintptr_t) name;
	request.password = (char *) (uintptr_t) password;
	response = etcd_server_ask(fixture, NULL, "/etcdserverpb.Auth/Authenticate", &request.base,
				   &etcdserverpb__authenticate_response__descriptor);
	(void) snprintf(token, VDI_AUTH_TOKEN_SIZE, "%s", response->token);
	FREE(response);
}

static void enable(struct etcd_server_fixture *fixture)
{
	Etcdserverpb__AuthEnableRequest request = ETCDSERVERPB__AUTH_ENABLE_REQUEST__INIT;

	FREE(etcd_server_ask(fixture, NULL, "/etcdserverpb.Auth/AuthEnable", &request.base,
			     &etcdserverpb__auth_enable_response__descriptor));
}

static const char *range_as(struct etcd_server_fixture *fixture, const char *token, const char *common_name)
{
	static char		   text[512];
	Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	struct etcd_server_call	   call;
	void			  *answer;

	request.key = etcd_bytes("a");
	etcd_server_call_init(&call, fixture);
	call.token = token;
	call.common_name = common_name;
	answer = etcd_server_ask(fixture, &call, "/etcdserverpb.KV/Range", &request.base,
				 &etcdserverpb__range_response__descriptor);
	(void) snprintf(text, sizeof text, "%s", call.text);
	if (answer)
		FREE(answer);
	return text;
}

static void e143_a_token_is_ignored_without_authentication(void **state)
{
	assert_string_equal(range_as(*state, "nonsense.1", NULL), "");
}

/* Disabled, as a new store is. Users and roles can be managed all the same. */
static void e167_authentication_is_disabled_at_first(void **state)
{
	Etcdserverpb__AuthStatusRequest	  status = ETCDSERVERPB__AUTH_STATUS_REQUEST__INIT;
	Etcdserverpb__AuthDisableRequest  disable = ETCDSERVERPB__AUTH_DISABLE_REQUEST__INIT;
	Etcdserverpb__AuthEnableRequest	  on = ETCDSERVERPB__AUTH_ENABLE_REQUEST__INIT;
	Etcdserverpb__AuthenticateRequest who = ETCDSERVERPB__AUTHENTICATE_REQUEST__INIT;
	Etcdserverpb__AuthUserListRequest user_list = ETCDSERVERPB__AUTH_USER_LIST_REQUEST__INIT;
	Etcdserverpb__AuthRoleListRequest role_list = ETCDSERVERPB__AUTH_ROLE_LIST_REQUEST__INIT;
	Etcdserverpb__AuthUserAddRequest  root = ETCDSERVERPB__AUTH_USER_ADD_REQUEST__INIT;
	Etcdserverpb__AuthStatusResponse *answer =
		ETCD_ASK(*state, "Auth/AuthStatus", &status, auth_status_response);
	Etcdserverpb__AuthUserListResponse *users =
		ETCD_ASK(*state, "Auth/UserList", &user_list, auth_user_list_response);
	Etcdserverpb__AuthRoleListResponse *roles =
		ETCD_ASK(*state, "Auth/RoleList", &role_list, auth_role_list_response);

	assert_false(answer->enabled);
	assert_int_equal(answer->authrevision, 1);
	assert_int_equal(users->n_users, 0);
	assert_int_equal(roles->n_roles, 0);
	ETCD_FREE(answer);
	ETCD_FREE(users);
	ETCD_FREE(roles);
	who.name = who.password = (char *) (uintptr_t) "root";
	etcd_server_ask_fails(*state, "/etcdserverpb.Auth/Authenticate", &who.base, VD_ETCD_AUTH_NOT_ENABLED);
	etcd_server_ask_fails(*state, "/etcdserverpb.Auth/AuthEnable", &on.base, VD_ETCD_ROOT_USER_NOT_EXIST);
	root.name = root.password = (char *) (uintptr_t) "root";
	ETCD_FREE(ETCD_ASK(*state, "Auth/UserAdd", &root, auth_user_add_response));
	etcd_server_ask_fails(*state, "/etcdserverpb.Auth/AuthEnable", &on.base, VD_ETCD_ROOT_ROLE_NOT_EXIST);
	ETCD_FREE(ETCD_ASK(*state, "Auth/AuthDisable", &disable, auth_disable_response));
	users = ETCD_ASK(*state, "Auth/UserList", &user_list, auth_user_list_response);
	assert_int_equal(users->n_users, 1);
	assert_string_equal(users->users[0], "root");
	ETCD_FREE(users);
	answer = ETCD_ASK(*state, "Auth/AuthStatus", &status, auth_status_response);
	assert_false(answer->enabled);
	ETCD_FREE(answer);
}

static void e168_tokens_expire_and_end_with_the_password(void **state)
{
	struct etcd_server_fixture		   *fixture = *state;
	Etcdserverpb__AuthUserChangePasswordRequest change =
		ETCDSERVERPB__AUTH_USER_CHANGE_PASSWORD_REQUEST__INIT;
	char			token[VDI_AUTH_TOKEN_SIZE];
	char			again[VDI_AUTH_TOKEN_SIZE];
	struct etcd_server_call call;

	add_user(fixture, "root", "rp", "root");
	enable(fixture);
	assert_string_equal(range_as(fixture, NULL, NULL), "etcdserver: user name is empty");
	assert_string_equal(range_as(fixture, "nonsense.1", NULL), "etcdserver: invalid auth token");
	login(fixture, "root", "rp", token);
	assert_string_equal(range_as(fixture, token, NULL), "");
	vdi_sim_advance(fixture->env, VD_SECONDS(290));
	assert_string_equal(range_as(fixture, token, NULL), ""); /* use prolongs it */
	vdi_sim_advance(fixture->env, VD_SECONDS(290));
	assert_string_equal(range_as(fixture, token, NULL), "");
	vdi_sim_advance(fixture->env, VD_SECONDS(301));
	assert_string_equal(range_as(fixture, token, NULL), "etcdserver: invalid auth token");
	login(fixture, "root", "rp", token);
	login(fixture, "root", "rp", again);
	assert_string_not_equal(token, again);
	change.name = (char *) (uintptr_t) "root";
	change.password = (char *) (uintptr_t) "new";
	etcd_server_call_init(&call, fixture);
	call.token = token;
	FREE(etcd_server_ask(fixture, &call, "/etcdserverpb.Auth/UserChangePassword", &change.base,
			     &etcdserverpb__auth_user_change_password_response__descriptor));
	assert_string_equal(range_as(fixture, again, NULL), "etcdserver: invalid auth token");
	login(fixture, "root", "new", token);
	assert_string_equal(range_as(fixture, token, NULL), "");
}

static void e167_a_certificate_names_a_user_when_that_is_wanted(void **state)
{
	struct etcd_server_fixture *fixture = *state;

	add_user(fixture, "root", "rp", "root");
	enable(fixture);
	assert_string_equal(range_as(fixture, NULL, "root"), "etcdserver: user name is empty");
	fixture->server->options.client_cert_auth = true;
	assert_string_equal(range_as(fixture, NULL, "root"), "");
	assert_string_equal(range_as(fixture, NULL, "stranger"), "etcdserver: permission denied");
}

/* A name may have 255 bytes; a longer one names nobody. */
static void e167_names_of_certificates_have_a_limit(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	char			    name[VDI_AUTH_NAME_MAX + 1];

	add_user(fixture, "root", "rp", "root");
	enable(fixture);
	fixture->server->options.client_cert_auth = true;
	memset(name, 'n', sizeof name);
	name[VDI_AUTH_NAME_MAX] = 0;
	assert_string_equal(range_as(fixture, NULL, name), "etcdserver: user name is empty");
	name[VDI_AUTH_NAME_MAX - 1] = 0;
	assert_string_equal(range_as(fixture, NULL, name), "etcdserver: permission denied");
}

/* Who is unknown, who has another password, and who has none: none of them gets a token. */
static void e168_only_the_right_password_gives_a_token(void **state)
{
	static const char *const	  names[] = { "root", "nobody", "certified", "" };
	struct etcd_server_fixture	 *fixture = *state;
	Etcdserverpb__AuthUserAddRequest  add = ETCDSERVERPB__AUTH_USER_ADD_REQUEST__INIT;
	Authpb__UserAddOptions		  options = AUTHPB__USER_ADD_OPTIONS__INIT;
	Etcdserverpb__AuthenticateRequest request = ETCDSERVERPB__AUTHENTICATE_REQUEST__INIT;
	static const char *const	  passwords[] = { "wrong", "" };
	char				  token[VDI_AUTH_TOKEN_SIZE];

	add_user(fixture, "root", "rp", "root");
	options.no_password = true;
	add.name = (char *) (uintptr_t) "certified";
	add.options = &options;
	ETCD_FREE(ETCD_ASK(fixture, "Auth/UserAdd", &add, auth_user_add_response));
	enable(fixture);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(names) * VDI_ARRAY_SIZE(passwords); i++) {
		struct etcd_server_call call;

		request.name = (char *) (uintptr_t) names[i / 2];
		request.password = (char *) (uintptr_t) passwords[i % 2];
		etcd_server_call_init(&call, fixture);
		assert_null(etcd_server_ask(fixture, &call, "/etcdserverpb.Auth/Authenticate", &request.base,
					    &etcdserverpb__authenticate_response__descriptor));
		assert_string_equal(call.text, strcmp(names[i / 2], "certified") == 0 ?
						       "auth: authentication failed, password was given for "
						       "no password user" :
						       vdi_serve_code_message(VD_ETCD_AUTH_FAILED));
	}
	login(fixture, "root", "rp", token);
	assert_string_equal(range_as(fixture, token, NULL), "");
}

/* What a permission is asked for is the range as it was sent: "everything from a on" must not pass for the
 * key a alone. Whoever may not see says so in an answer of its own, and the stream goes on. */
static void e312_a_watch_of_everything_is_not_one_of_a_key(void **state)
{
	struct etcd_server_fixture		    *fixture = *state;
	Etcdserverpb__AuthRoleGrantPermissionRequest permit =
		ETCDSERVERPB__AUTH_ROLE_GRANT_PERMISSION_REQUEST__INIT;
	Authpb__Permission		 permission = AUTHPB__PERMISSION__INIT;
	Etcdserverpb__WatchCreateRequest body = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
	Etcdserverpb__WatchRequest	 request = ETCDSERVERPB__WATCH_REQUEST__INIT;
	static const ProtobufCBinaryData ends[] = { { 0, NULL },
						    { 1, (uint8_t *) (uintptr_t) "\0" },
						    { 1, (uint8_t *) (uintptr_t) "b" } };
	char				 token[VDI_AUTH_TOKEN_SIZE];
	struct etcd_server_call		 call;

	add_user(fixture, "root", "rp", "root");
	add_user(fixture, "u", "up", "reader");
	permission.permtype = AUTHPB__PERMISSION__TYPE__READ;
	permission.key = etcd_bytes("a");
	permit.name = (char *) (uintptr_t) "reader";
	permit.perm = &permission;
	FREE(etcd_server_ask(fixture, NULL, "/etcdserverpb.Auth/RoleGrantPermission", &permit.base,
			     &etcdserverpb__auth_role_grant_permission_response__descriptor));
	enable(fixture);
	login(fixture, "u", "up", token);
	etcd_server_call_init(&call, fixture);
	call.token = token;
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Watch/Watch");
	request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
	request.create_request = &body;
	body.key = etcd_bytes("a");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(ends); i++) {
		Etcdserverpb__WatchResponse *response;

		body.range_end = ends[i];
		etcd_server_call_send(&call, &request.base);
		response = etcd_server_call_next(&call);
		assert_non_null(response);
		assert_true(response->created);
		assert_int_equal(response->canceled, i > 0);
		assert_int_equal(response->watch_id, i > 0 ? -1 : 0);
		if (i > 0)
			assert_non_null(strstr(response->cancel_reason, "permission denied"));
		FREE(response);
	}
	assert_false(call.is_finished);
	etcd_server_call_end(&call);
}

/* ---- Who may do what with leases and in transactions ---- */

/* "" or what is wrong. */
static const char *ask_as(struct etcd_server_fixture *fixture, const char *token, const char *method,
			  const ProtobufCMessage *request, const ProtobufCMessageDescriptor *answer)
{
	static char		text[512];
	struct etcd_server_call call;
	void		       *response;

	etcd_server_call_init(&call, fixture);
	call.token = token;
	response = etcd_server_ask(fixture, &call, method, request, answer);
	assert_true((response == NULL) == (call.code != 0));
	(void) snprintf(text, sizeof text, "%s", call.text);
	if (response)
		FREE(response);
	return text;
}

#define DENIED "etcdserver: permission denied"

static const char *put_as(struct etcd_server_fixture *fixture, const char *token, const char *key,
			  int64_t lease)
{
	Etcdserverpb__PutRequest request = ETCDSERVERPB__PUT_REQUEST__INIT;

	request.key = etcd_bytes(key);
	request.lease = lease;
	return ask_as(fixture, token, "/etcdserverpb.KV/Put", &request.base,
		      &etcdserverpb__put_response__descriptor);
}

static const char *time_to_live_as(struct etcd_server_fixture *fixture, const char *token, int64_t lease,
				   bool keys)
{
	Etcdserverpb__LeaseTimeToLiveRequest request = ETCDSERVERPB__LEASE_TIME_TO_LIVE_REQUEST__INIT;

	request.id = lease;
	request.keys = keys;
	return ask_as(fixture, token, "/etcdserverpb.Lease/LeaseTimeToLive", &request.base,
		      &etcdserverpb__lease_time_to_live_response__descriptor);
}

static const char *list_leases_as(struct etcd_server_fixture *fixture, const char *token)
{
	Etcdserverpb__LeaseLeasesRequest request = ETCDSERVERPB__LEASE_LEASES_REQUEST__INIT;

	return ask_as(fixture, token, "/etcdserverpb.Lease/LeaseLeases", &request.base,
		      &etcdserverpb__lease_leases_response__descriptor);
}

static const char *revoke_as(struct etcd_server_fixture *fixture, const char *token, int64_t lease)
{
	Etcdserverpb__LeaseRevokeRequest request = ETCDSERVERPB__LEASE_REVOKE_REQUEST__INIT;

	request.id = lease;
	return ask_as(fixture, token, "/etcdserverpb.Lease/LeaseRevoke", &request.base,
		      &etcdserverpb__lease_revoke_response__descriptor);
}

static const char *keep_alive_as(struct etcd_server_fixture *fixture, const char *token, int64_t lease)
{
	static char			    text[512];
	Etcdserverpb__LeaseKeepAliveRequest request = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
	struct etcd_server_call		    call;

	request.id = lease;
	etcd_server_call_init(&call, fixture);
	call.token = token;
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Lease/LeaseKeepAlive");
	etcd_server_call_send(&call, &request.base);
	assert_int_equal(call.count, !call.is_finished);
	(void) snprintf(text, sizeof text, "%s", call.text);
	etcd_server_call_end(&call);
	return text;
}

static void permit(struct etcd_server_fixture *fixture, const char *token, const char *role, int type,
		   const char *key, const char *end)
{
	Etcdserverpb__AuthRoleGrantPermissionRequest request =
		ETCDSERVERPB__AUTH_ROLE_GRANT_PERMISSION_REQUEST__INIT;
	Authpb__Permission permission = AUTHPB__PERMISSION__INIT;

	permission.permtype = (Authpb__Permission__Type) type;
	permission.key = etcd_bytes(key);
	permission.range_end = etcd_bytes(end);
	request.name = (char *) (uintptr_t) role;
	request.perm = &permission;
	assert_string_equal(ask_as(fixture, token, "/etcdserverpb.Auth/RoleGrantPermission", &request.base,
				   &etcdserverpb__auth_role_grant_permission_response__descriptor),
			    "");
}

/* root, and u, who may do everything below p/ and read r; lease 5 holds a key of root's, lease 6 one of
 * u's. */
static void open_two(struct etcd_server_fixture *fixture, char root[VDI_AUTH_TOKEN_SIZE],
		     char user[VDI_AUTH_TOKEN_SIZE])
{
	add_user(fixture, "root", "rp", "root");
	add_user(fixture, "u", "up", "role");
	permit(fixture, NULL, "role", AUTHPB__PERMISSION__TYPE__READWRITE, "p/", "p0");
	permit(fixture, NULL, "role", AUTHPB__PERMISSION__TYPE__READ, "r", "");
	etcd_server_grant(fixture, 5, 100, 100);
	etcd_server_grant(fixture, 6, 100, 100);
	(void) etcd_server_put_leased(fixture, "x", "1", 5);
	(void) etcd_server_put_leased(fixture, "p/a", "1", 6);
	enable(fixture);
	login(fixture, "root", "rp", root);
	login(fixture, "u", "up", user);
}

/* A lease ends its keys, so who may not write them all may not end it, keep it, or hang more on it; its keys
 * are for who may read them. */
static void e167_leases_are_of_who_may_write_their_keys(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	char			    root[VDI_AUTH_TOKEN_SIZE], user[VDI_AUTH_TOKEN_SIZE];

	etcd_server_grant(fixture, 7, 100, 100);
	open_two(fixture, root, user);
	assert_string_equal(list_leases_as(fixture, root), "");
	assert_string_equal(list_leases_as(fixture, user), DENIED);
	assert_string_equal(list_leases_as(fixture, NULL), "etcdserver: user name is empty");
	/* What u may only read is no key to hang others on. */
	assert_string_equal(put_as(fixture, root, "r", 7), "");
	assert_string_equal(time_to_live_as(fixture, user, 7, true), "");
	assert_string_equal(put_as(fixture, user, "p/b", 7), DENIED);
	assert_string_equal(revoke_as(fixture, root, 7), "");
	assert_string_equal(put_as(fixture, user, "p/b", 5), DENIED);
	assert_string_equal(put_as(fixture, user, "p/b", 6), "");
	assert_string_equal(put_as(fixture, user, "r", 0), DENIED);
	assert_string_equal(time_to_live_as(fixture, user, 5, true), DENIED);
	assert_string_equal(time_to_live_as(fixture, user, 5, false), "");
	assert_string_equal(time_to_live_as(fixture, user, 6, true), "");
	assert_string_equal(keep_alive_as(fixture, user, 5), DENIED);
	assert_string_equal(keep_alive_as(fixture, user, 6), "");
	assert_string_equal(keep_alive_as(fixture, NULL, 6), "etcdserver: user name is empty");
	assert_string_equal(revoke_as(fixture, user, 5), DENIED);
	assert_string_equal(revoke_as(fixture, NULL, 6), "etcdserver: user name is empty");
	assert_string_equal(put_as(fixture, root, "x2", 6), "");
	assert_string_equal(revoke_as(fixture, user, 6), DENIED); /* it has more than u's now */
	assert_string_equal(revoke_as(fixture, root, 6), "");
	assert_string_equal(revoke_as(fixture, root, 5), "");
	assert_string_equal(list_leases_as(fixture, user), ""); /* none is left to hide */
}

static void assert_denied_later(struct etcd_server_fixture *fixture, const char *token, const char *method,
				const ProtobufCMessage *request)
{
	struct etcd_server_call call;

	etcd_server_call_post_as(&call, fixture, NULL, token, method, request);
	assert_false(call.is_finished);
	(void) vdi_sim_run_until_idle(fixture->env);
	assert_true(call.is_finished);
	assert_string_equal(call.text, DENIED);
	etcd_server_call_end(&call);
}

/* A lease may have any number of keys: a worker checks them, not the loop that serves the connections. */
static void the_keys_of_a_lease_are_checked_by_a_worker(void **state)
{
	struct etcd_server_fixture	   *fixture = *state;
	Etcdserverpb__PutRequest	    put = ETCDSERVERPB__PUT_REQUEST__INIT;
	Etcdserverpb__LeaseRevokeRequest    revoke = ETCDSERVERPB__LEASE_REVOKE_REQUEST__INIT;
	Etcdserverpb__LeaseKeepAliveRequest keep = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
	Etcdserverpb__TxnRequest	    txn = ETCDSERVERPB__TXN_REQUEST__INIT,
				 outer = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__RequestOp op = ETCDSERVERPB__REQUEST_OP__INIT, nested = ETCDSERVERPB__REQUEST_OP__INIT,
				*ops = &op, *outers = &nested;
	char root[VDI_AUTH_TOKEN_SIZE], user[VDI_AUTH_TOKEN_SIZE];

	open_two(fixture, root, user);
	put.key = etcd_bytes("p/b");
	put.lease = revoke.id = keep.id = 5;
	op.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
	op.request_put = &put;
	txn.n_failure = 1;
	txn.failure = &ops;
	nested.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_TXN;
	nested.request_txn = &txn;
	outer.n_success = 1;
	outer.success = &outers;
	assert_denied_later(fixture, user, "/etcdserverpb.KV/Put", &put.base);
	assert_denied_later(fixture, user, "/etcdserverpb.KV/Txn", &txn.base);
	assert_denied_later(fixture, user, "/etcdserverpb.KV/Txn", &outer.base);
	assert_denied_later(fixture, user, "/etcdserverpb.Lease/LeaseRevoke", &revoke.base);
	assert_denied_later(fixture, user, "/etcdserverpb.Lease/LeaseKeepAlive", &keep.base);
}

enum txn_part { COMPARE, THEN, ELSE, NESTED };

/* A transaction of one operation on key, put where part says. Its condition holds. */
static const char *txn_as(struct etcd_server_fixture *fixture, const char *token, enum txn_part part,
			  const char *key, bool is_put)
{
	Etcdserverpb__TxnRequest request = ETCDSERVERPB__TXN_REQUEST__INIT,
				 nested = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__Compare	compare = ETCDSERVERPB__COMPARE__INIT, *compares = &compare;
	Etcdserverpb__RequestOp op = ETCDSERVERPB__REQUEST_OP__INIT, outer = ETCDSERVERPB__REQUEST_OP__INIT,
				*ops = &op, *outers = &outer;
	Etcdserverpb__PutRequest   put = ETCDSERVERPB__PUT_REQUEST__INIT;
	Etcdserverpb__RangeRequest range = ETCDSERVERPB__RANGE_REQUEST__INIT;

	put.key = range.key = compare.key = etcd_bytes(key);
	compare.target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__VERSION;
	compare.result = ETCDSERVERPB__COMPARE__COMPARE_RESULT__GREATER;
	compare.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_VERSION;
	compare.version = -1;
	op.request_case = is_put ? ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT :
				   ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE;
	if (is_put)
		op.request_put = &put;
	else
		op.request_range = &range;
	if (part == COMPARE) {
		request.compare = &compares;
		request.n_compare = 1;
	} else if (part == THEN) {
		request.success = &ops;
		request.n_success = 1;
	} else if (part == ELSE) {
		request.failure = &ops;
		request.n_failure = 1;
	} else { /* in the branch of a transaction in a branch, neither of which is taken */
		nested.failure = &ops;
		nested.n_failure = 1;
		outer.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_TXN;
		outer.request_txn = &nested;
		request.failure = &outers;
		request.n_failure = 1;
	}
	return ask_as(fixture, token, "/etcdserverpb.KV/Txn", &request.base,
		      &etcdserverpb__txn_response__descriptor);
}

/* Whatever stands in it must be permitted, whether it is carried out or not: else it tells what may not be
 * read. */
static void e167_a_transaction_is_permitted_as_a_whole(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	char			    root[VDI_AUTH_TOKEN_SIZE], user[VDI_AUTH_TOKEN_SIZE];
	int64_t			    revision;

	open_two(fixture, root, user);
	revision = vdi_serve_revision(fixture->server);
	for (enum txn_part part = COMPARE; part <= NESTED; part++)
		for (int is_put = 0; is_put < 2; is_put++) {
			assert_string_equal(txn_as(fixture, NULL, part, "p/k", is_put),
					    "etcdserver: user name is empty");
			assert_string_equal(txn_as(fixture, user, part, "x", is_put), DENIED);
			assert_string_equal(txn_as(fixture, user, part, "r", is_put),
					    is_put && part != COMPARE ? DENIED : "");
		}
	assert_int_equal(vdi_serve_revision(fixture->server), revision);
	for (enum txn_part part = COMPARE; part <= NESTED; part++)
		assert_string_equal(txn_as(fixture, user, part, "p/k", true), "");
	assert_int_equal(vdi_serve_revision(fixture->server), revision + 1);
}

/* What is taken from a role is taken from streams that are open: the next watcher is refused, in words
 * (E-133). */
/* What is for those who administer is refused to everybody else, in one answer. */
/* Who may write a key and not read it gets no previous value of it; the lease of a key that may be read shows
 * its keys. */
static void e167_previous_values_are_for_who_may_read(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__PutRequest    put = ETCDSERVERPB__PUT_REQUEST__INIT;
	Etcdserverpb__DeleteRangeRequest delete = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
	Etcdserverpb__LeaseGrantRequest lease = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
	char				root[VDI_AUTH_TOKEN_SIZE], user[VDI_AUTH_TOKEN_SIZE];

	open_two(fixture, root, user);
	permit(fixture, root, "role", AUTHPB__PERMISSION__TYPE__WRITE, "w/", "w0");
	put.key = etcd_bytes("w/a");
	delete.key = etcd_bytes("w/");
	delete.range_end = etcd_bytes("w0");
	for (int i = 0; i < 2; i++) {
		put.prev_kv = delete.prev_kv = i;
		assert_string_equal(ask_as(fixture, user, "/etcdserverpb.KV/Put", &put.base,
					   &etcdserverpb__put_response__descriptor),
				    i ? DENIED : "");
		assert_string_equal(ask_as(fixture, user, "/etcdserverpb.KV/DeleteRange", &delete.base,
					   &etcdserverpb__delete_range_response__descriptor),
				    i ? DENIED : "");
	}
	lease.id = 7;
	lease.ttl = 100;
	assert_string_equal(ask_as(fixture, root, "/etcdserverpb.Lease/LeaseGrant", &lease.base,
				   &etcdserverpb__lease_grant_response__descriptor),
			    "");
	assert_string_equal(put_as(fixture, root, "r", 7), "");
	assert_string_equal(time_to_live_as(fixture, user, 7, true), "");
	assert_string_equal(revoke_as(fixture, user, 7), DENIED);
}

/* Permissions are for a key, for a range that is not empty, or for everything from a key on. */
static void e167_which_ranges_can_be_permitted(void **state)
{
	static const struct {
		const char	 *role, *key, *end;
		size_t		  end_size;
		enum vd_etcd_code code; /* VD_ETCD_OTHER: permitted */
	} rows[] = {
		{ "role", "a", "", 0, VD_ETCD_OTHER },
		{ "role", "a", "b", 1, VD_ETCD_OTHER },
		{ "role", "a", "\0", 1, VD_ETCD_OTHER },
		{ "role", "a", "a", 1, VD_ETCD_INVALID_AUTH_MANAGEMENT },
		{ "role", "b", "a", 1, VD_ETCD_INVALID_AUTH_MANAGEMENT },
		{ "role", "a", "\0\0", 2, VD_ETCD_INVALID_AUTH_MANAGEMENT },
		{ "role", "", "", 0, VD_ETCD_INVALID_AUTH_MANAGEMENT },
		{ "role", "", "b", 1, VD_ETCD_INVALID_AUTH_MANAGEMENT },
		{ "none", "a", "b", 1, VD_ETCD_ROLE_NOT_FOUND },
	};
	static const char		 grant[] = "/etcdserverpb.Auth/RoleGrantPermission";
	struct etcd_server_fixture	*fixture = *state;
	Etcdserverpb__AuthRoleGetRequest get = ETCDSERVERPB__AUTH_ROLE_GET_REQUEST__INIT;

	add_user(fixture, "u", "up", "role");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		Etcdserverpb__AuthRoleGrantPermissionRequest request =
			ETCDSERVERPB__AUTH_ROLE_GRANT_PERMISSION_REQUEST__INIT;
		Authpb__Permission permission = AUTHPB__PERMISSION__INIT;

		permission.key = etcd_bytes(rows[i].key);
		permission.range_end =
			(ProtobufCBinaryData) { rows[i].end_size, (uint8_t *) (uintptr_t) rows[i].end };
		request.name = (char *) (uintptr_t) rows[i].role;
		request.perm = &permission;
		if (rows[i].code != VD_ETCD_OTHER)
			etcd_server_ask_fails(fixture, grant, &request.base, rows[i].code);
		else
			ETCD_FREE(ETCD_ASK(fixture, "Auth/RoleGrantPermission", &request,
					   auth_role_grant_permission_response));
		request.perm = NULL;
		etcd_server_ask_fails(fixture, grant, &request.base, VD_ETCD_PERMISSION_NOT_GIVEN);
	}
	get.role = (char *) (uintptr_t) "none";
	etcd_server_ask_fails(fixture, "/etcdserverpb.Auth/RoleGet", &get.base, VD_ETCD_ROLE_NOT_FOUND);
}

/* Whatever they are asked to do: methods of administration do it for root alone. */
static void e167_methods_that_are_roots(void **state)
{
	static const char *const methods[] = {
		"Maintenance/HashKV",
		"Maintenance/Hash",
		"Maintenance/Defragment",
		"Maintenance/Snapshot",
		"Maintenance/MoveLeader",
		"Maintenance/Downgrade",
		"Cluster/MemberAdd",
		"Cluster/MemberRemove",
		"Cluster/MemberUpdate",
		"Cluster/MemberPromote",
		"Auth/AuthEnable",
		"Auth/AuthDisable",
		"Auth/UserAdd",
		"Auth/UserList",
		"Auth/UserDelete",
		"Auth/UserChangePassword",
		"Auth/UserGrantRole",
		"Auth/UserRevokeRole",
		"Auth/RoleAdd",
		"Auth/RoleList",
		"Auth/RoleDelete",
		"Auth/RoleGrantPermission",
		"Auth/RoleRevokePermission",
	};
	struct etcd_server_fixture *fixture = *state;
	char			    root[VDI_AUTH_TOKEN_SIZE], user[VDI_AUTH_TOKEN_SIZE];

	open_two(fixture, root, user);
	for (size_t i = 0; i < 2 * VDI_ARRAY_SIZE(methods); i++) {
		struct etcd_server_call call;
		char			method[64];
		bool			is_known = i % 2;
		const char	       *wanted = is_known ? DENIED : "etcdserver: user name is empty";

		(void) snprintf(method, sizeof method, "/etcdserverpb.%s", methods[i / 2]);
		etcd_server_call_init(&call, fixture);
		call.token = is_known ? user : NULL;
		etcd_server_call_open(&call, fixture, method);
		etcd_server_call_send_bytes(&call, "", 0);
		vdi_sim_advance(fixture->env, VD_SECONDS(1));
		if (!call.is_finished || strcmp(call.text, wanted) != 0)
			fail_msg("%s: \"%s\", not \"%s\"", method, call.text, wanted);
		assert_int_equal(call.count, 0);
		etcd_server_call_end(&call);
	}
}

static void e167_administration_is_for_root(void **state)
{
	struct etcd_server_fixture	 *fixture = *state;
	Etcdserverpb__HashRequest	  hash = ETCDSERVERPB__HASH_REQUEST__INIT;
	Etcdserverpb__DefragmentRequest	  defragment = ETCDSERVERPB__DEFRAGMENT_REQUEST__INIT;
	Etcdserverpb__AuthUserListRequest users = ETCDSERVERPB__AUTH_USER_LIST_REQUEST__INIT;
	char				  token[VDI_AUTH_TOKEN_SIZE];

	add_user(fixture, "root", "rp", "root");
	add_user(fixture, "u", "up", "r");
	enable(fixture);
	login(fixture, "u", "up", token);
	assert_string_equal(ask_as(fixture, token, "/etcdserverpb.Maintenance/Hash", &hash.base,
				   &etcdserverpb__hash_response__descriptor),
			    DENIED);
	assert_string_equal(ask_as(fixture, token, "/etcdserverpb.Maintenance/Defragment", &defragment.base,
				   &etcdserverpb__defragment_response__descriptor),
			    DENIED);
	assert_string_equal(ask_as(fixture, token, "/etcdserverpb.Auth/UserList", &users.base,
				   &etcdserverpb__auth_user_list_response__descriptor),
			    DENIED);
	login(fixture, "root", "rp", token);
	assert_string_equal(ask_as(fixture, token, "/etcdserverpb.Maintenance/Defragment", &defragment.base,
				   &etcdserverpb__defragment_response__descriptor),
			    "");
	assert_string_equal(ask_as(fixture, token, "/etcdserverpb.Auth/UserList", &users.base,
				   &etcdserverpb__auth_user_list_response__descriptor),
			    "");
}

static void e133_each_watcher_is_permitted_by_itself(void **state)
{
	struct etcd_server_fixture		     *fixture = *state;
	Etcdserverpb__AuthRoleRevokePermissionRequest revoke =
		ETCDSERVERPB__AUTH_ROLE_REVOKE_PERMISSION_REQUEST__INIT;
	Etcdserverpb__WatchCreateRequest body = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
	Etcdserverpb__WatchRequest	 request = ETCDSERVERPB__WATCH_REQUEST__INIT;
	Etcdserverpb__WatchResponse	*response;
	char				 root[VDI_AUTH_TOKEN_SIZE], user[VDI_AUTH_TOKEN_SIZE];
	static const char *const	 reasons[] = {
			"", "rpc error: code = PermissionDenied desc = etcdserver: permission denied",
			"rpc error: code = Unauthenticated desc = etcdserver: invalid auth token"
	};
	struct etcd_server_call call;

	open_two(fixture, root, user);
	etcd_server_call_init(&call, fixture);
	call.token = user;
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Watch/Watch");
	request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
	request.create_request = &body;
	body.key = etcd_bytes("p/");
	body.range_end = etcd_bytes("p0");
	for (int i = 0; i < 3; i++) {
		/* the lease that p/a hung on is over meanwhile; who watches already goes on watching */
		if (i == 2) {
			response = etcd_server_call_next(&call);
			assert_int_equal(response->watch_id, 0);
			assert_int_equal(response->n_events, 1);
			FREE(response);
		}
		etcd_server_call_send(&call, &request.base);
		response = etcd_server_call_next(&call);
		assert_non_null(response);
		assert_true(response->created);
		assert_int_equal(response->watch_id, i ? -1 : 0);
		assert_int_equal(response->canceled, i > 0);
		assert_string_equal(response->cancel_reason, reasons[i]);
		FREE(response);
		revoke.role = (char *) (uintptr_t) "role";
		revoke.key = etcd_bytes("p/");
		revoke.range_end = etcd_bytes("p0");
		if (i == 0)
			assert_string_equal(
				ask_as(fixture, root, "/etcdserverpb.Auth/RoleRevokePermission", &revoke.base,
				       &etcdserverpb__auth_role_revoke_permission_response__descriptor),
				"");
		else
			vdi_sim_advance(fixture->env, VD_SECONDS(301));
	}
	assert_false(call.is_finished);
	etcd_server_call_end(&call);
}

static void open_watch(struct etcd_server_call *call, struct etcd_server_fixture *fixture, const char *token)
{
	Etcdserverpb__WatchCreateRequest body = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
	Etcdserverpb__WatchRequest	 request = ETCDSERVERPB__WATCH_REQUEST__INIT;
	Etcdserverpb__WatchResponse	*response;

	etcd_server_call_init(call, fixture);
	call->token = token;
	etcd_server_call_open(call, fixture, "/etcdserverpb.Watch/Watch");
	request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
	request.create_request = &body;
	body.key = etcd_bytes("p/");
	body.range_end = etcd_bytes("p0");
	etcd_server_call_send(call, &request.base);
	response = etcd_server_call_next(call);
	assert_true(response->created && !response->canceled);
	FREE(response);
}

/* etcd checks permissions only when a watcher is created; there the watch goes on. A role that is taken away
 * leaves it here, too. */
static void a_watch_ends_when_its_user_is_deleted(void **state)
{
	struct etcd_server_fixture	       *fixture = *state;
	Etcdserverpb__AuthUserRevokeRoleRequest revoke = ETCDSERVERPB__AUTH_USER_REVOKE_ROLE_REQUEST__INIT;
	Etcdserverpb__AuthUserChangePasswordRequest change =
		ETCDSERVERPB__AUTH_USER_CHANGE_PASSWORD_REQUEST__INIT;
	Etcdserverpb__AuthUserDeleteRequest delete = ETCDSERVERPB__AUTH_USER_DELETE_REQUEST__INIT;
	char			root[VDI_AUTH_TOKEN_SIZE], user[VDI_AUTH_TOKEN_SIZE];
	struct etcd_server_call watches[2];

	open_two(fixture, root, user);
	open_watch(&watches[0], fixture, user);
	open_watch(&watches[1], fixture, root);
	revoke.name = change.name = delete.name = (char *) "u";
	revoke.role = (char *) "role";
	change.password = (char *) "new";
	assert_string_equal(ask_as(fixture, root, "/etcdserverpb.Auth/UserRevokeRole", &revoke.base,
				   &etcdserverpb__auth_user_revoke_role_response__descriptor),
			    "");
	assert_string_equal(ask_as(fixture, root, "/etcdserverpb.Auth/UserChangePassword", &change.base,
				   &etcdserverpb__auth_user_change_password_response__descriptor),
			    "");
	assert_false(watches[0].is_finished);
	assert_string_equal(ask_as(fixture, root, "/etcdserverpb.Auth/UserDelete", &delete.base,
				   &etcdserverpb__auth_user_delete_response__descriptor),
			    "");
	assert_true(watches[0].is_finished);
	assert_int_equal(watches[0].code, 16); /* Unauthenticated */
	assert_string_equal(watches[0].text, "etcdserver: invalid auth token");
	assert_false(watches[1].is_finished);
	etcd_server_call_end(&watches[0]);
	etcd_server_call_end(&watches[1]);
}

/* ---- What is persistent ---- */

static void e162_alarms_users_and_ids_survive(void **state)
{
	char			      path[TEMP_FOLDER_SIZE];
	char			      directory[TEMP_FOLDER_SIZE + 8];
	struct vdi_etcdserver_options options = { 0 };
	struct etcd_server_fixture    fixture;
	struct vdi_serve_alarm	      alarm = { 7, VDI_ALARM_NOSPACE };
	uint64_t		      cluster_id = 0;
	bool			      changed;

	(void) state;
	temp_folder_make(path);
	(void) snprintf(directory, sizeof directory, "%s/etcd", path);
	options.state_path = directory;
	for (int round = 0; round < 3; round++) {
		etcd_server_fixture_open(&fixture, &options);
		assert_int_equal(fixture.server->term, 2 + round);
		if (round == 0) {
			cluster_id = fixture.server->cluster_id;
			add_user(&fixture, "root", "rp", "root");
			enable(&fixture);
			assert_status(
				vdi_serve_state_set_alarm(fixture.server->state, &alarm, true, &changed),
				VD_OK);
			assert_true(changed);
		} else {
			assert_int_equal(fixture.server->cluster_id, cluster_id);
			assert_true(vdi_auth_is_enabled(fixture.server->auth));
			assert_int_equal(
				vdi_serve_state_alarms(fixture.server->state, VDI_ALARM_NOSPACE, NULL, 0), 1);
			assert_true(fixture.server->alarms & 1u << VDI_ALARM_NOSPACE);
		}
		etcd_server_fixture_close(&fixture);
	}
	temp_folder_remove(path);
}

static void a_damaged_state_is_not_served(void **state)
{
	char			      path[TEMP_FOLDER_SIZE];
	char			      text[96];
	struct vdi_etcdserver_options options = { 0 };
	struct etcd_server_fixture    fixture;
	struct vdi_etcdserver	     *server;
	struct vd_error		      error;
	FILE			     *file;

	(void) state;
	temp_folder_make(path);
	options.state_path = path;
	etcd_server_fixture_open(&fixture, &options);
	etcd_server_fixture_close(&fixture);
	(void) snprintf(text, sizeof text, "%s/state", path);
	file = fopen(text, "r+");
	assert_non_null(file);
	assert_int_equal(fseek(file, 20, SEEK_SET), 0);
	assert_int_equal(fputc('!', file), '!');
	assert_int_equal(fclose(file), 0);
	etcd_server_fixture_open(&fixture, NULL);
	options.store = fixture.store;
	assert_status(vdi_etcdserver_new(fixture.env, &options, &server, &error), VD_CORRUPT);
	assert_non_null(strstr(error.message, "is damaged"));
	etcd_server_fixture_close(&fixture);
	temp_folder_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		CASE(e143_a_token_is_ignored_without_authentication),
		CASE(e167_authentication_is_disabled_at_first),
		CASE(e168_tokens_expire_and_end_with_the_password),
		CASE(e167_a_certificate_names_a_user_when_that_is_wanted),
		CASE(e167_names_of_certificates_have_a_limit),
		CASE(e168_only_the_right_password_gives_a_token),
		CASE(e312_a_watch_of_everything_is_not_one_of_a_key),
		CASE(e167_leases_are_of_who_may_write_their_keys),
		CASE(the_keys_of_a_lease_are_checked_by_a_worker),
		CASE(e167_a_transaction_is_permitted_as_a_whole),
		CASE(e167_administration_is_for_root),
		CASE(e167_previous_values_are_for_who_may_read),
		CASE(e167_which_ranges_can_be_permitted),
		CASE(e167_methods_that_are_roots),
		CASE(e133_each_watcher_is_permitted_by_itself),
		CASE(a_watch_ends_when_its_user_is_deleted),
		cmocka_unit_test(e162_alarms_users_and_ids_survive),
		cmocka_unit_test(a_damaged_state_is_not_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
