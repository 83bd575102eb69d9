/* The Auth service. Changes run on the worker for slow work, one after another; logins have a queue of their
 * own (serve_logins.h); reads are answered at once. Mirrors etcd server/auth/store.go: the order of errors,
 * the effect of changes on tokens, and the rejection of changes that leave an enabled store without root. */
#include "auth.h"
#include "env.h"
#include "etcdserver.h"
#include "serve_logins.h"
#include "serve_watches.h"
#include "utf8.h"

#define LOGIN_ATTEMPTS 8

/* The fields of all requests, by number in the message; their meaning depends on the request. */
struct request {
	struct vd_bytes field[4]; /* 1, 2, 3 */
	bool		has_permission;
	bool		no_password;
	int		permission_type;
	struct vd_bytes permission_key;
	struct vd_bytes permission_end;
};

static bool decode_permission(struct vd_bytes message, struct request *request)
{
	struct vdi_wire_reader reader;

	request->has_permission = true;
	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader)) {
		if (reader.tag == VDI_WIRE_VARINT(1))
			request->permission_type = (int) reader.number;
		else if (reader.tag == VDI_WIRE_BYTES(2))
			request->permission_key = reader.bytes;
		else if (reader.tag == VDI_WIRE_BYTES(3))
			request->permission_end = reader.bytes;
	}
	return !reader.is_bad;
}

static bool decode_options(struct vd_bytes message, struct request *request)
{
	struct vdi_wire_reader reader;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader))
		if (reader.tag == VDI_WIRE_VARINT(1))
			request->no_password = reader.number != 0;
	return !reader.is_bad;
}

static bool decode(struct vd_bytes message, struct request *request)
{
	struct vdi_wire_reader reader;

	memset(request, 0, sizeof *request);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(request->field); i++)
		request->field[i].data = "";
	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader))
		if (reader.tag >= VDI_WIRE_BYTES(1) && reader.tag <= VDI_WIRE_BYTES(3) &&
		    (reader.tag & 7) == 2)
			request->field[reader.tag >> 3] = reader.bytes;
	return !reader.is_bad;
}

static const struct vd_bytes root = { VDI_AUTH_ROOT, sizeof VDI_AUTH_ROOT - 1 };

static void reply_header(struct vdi_serve_call *call)
{
	struct vdi_serve_header header = { call->server, vdi_serve_revision(call->server) };

	vdi_serve_reply(call, vdi_serve_write_only_header, &header);
}

/* ---- Changes ---- */

static enum vd_etcd_code delete_user(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
				     bool *ret_changed);

/* Makes a change for an administrator, and answers. */
static void run_change(struct vdi_serve_call *call, vdi_auth_change_fn change, void *arg,
		       struct vd_bytes forget_user)
{
	enum vd_etcd_code code = VD_ETCD_OTHER;
	vd_status	  status;

	if (!vdi_auth_require_admin(call))
		return;
	status = vdi_auth_change(call->server->auth, change, arg, &code);
	if (status != VD_OK) {
		vdi_serve_fail_status(call, status);
		return;
	}
	if (code != VD_ETCD_OTHER) {
		vdi_serve_fail(call, code);
		return;
	}
	if (forget_user.data)
		vdi_auth_tokens_forget(call->server->auth, forget_user);
	if (change == delete_user)
		vdi_serve_watches_revoke(call->server->watches, forget_user);
	reply_header(call);
}

static enum vd_etcd_code enable(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
				bool *ret_changed)
{
	const struct vdi_auth_account *account = vdi_auth_data_account(data, root);

	(void) arg;
	(void) ret_status;
	*ret_changed = !data->is_enabled;
	if (data->is_enabled)
		return VD_ETCD_OTHER;
	if (account == NULL)
		return VD_ETCD_ROOT_USER_NOT_EXIST;
	if (!vdi_auth_account_has_role(account, root))
		return VD_ETCD_ROOT_ROLE_NOT_EXIST;
	data->is_enabled = true;
	return VD_ETCD_OTHER;
}

static void work_enable(struct vdi_serve_call *call)
{
	run_change(call, enable, NULL, VD_BYTES_NONE);
}

static enum vd_etcd_code disable(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
				 bool *ret_changed)
{
	(void) arg;
	(void) ret_status;
	*ret_changed = data->is_enabled;
	if (data->is_enabled)
		data->revision++;
	data->is_enabled = false;
	return VD_ETCD_OTHER;
}

static void work_disable(struct vdi_serve_call *call)
{
	run_change(call, disable, NULL, VD_BYTES_NONE);
	if (!vdi_auth_is_enabled(call->server->auth))
		vdi_auth_tokens_forget(call->server->auth, VD_BYTES_NONE);
}

struct user_change {
	const struct request *request;
	char		      hash[VDI_AUTH_HASH_SIZE];
};

static enum vd_etcd_code add_user(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
				  bool *ret_changed)
{
	const struct user_change *change = arg;
	const struct request	 *request = change->request;

	(void) ret_changed;
	if (request->field[1].size == 0)
		return VD_ETCD_USER_EMPTY;
	if (vdi_auth_data_account(data, request->field[1]))
		return VD_ETCD_USER_ALREADY_EXIST;
	*ret_status = vdi_auth_data_add_account(data, request->field[1], vd_bytes_of(change->hash),
						request->no_password);
	data->revision++;
	return VD_ETCD_OTHER;
}

/* Hash passwords only for users with permission to add users, because it is expensive. */
static bool hash_password(struct vdi_serve_call *call, struct vd_bytes password,
			  char ret_hash[VDI_AUTH_HASH_SIZE])
{
	vd_status status;

	if (!vdi_auth_require_admin(call))
		return false;
	status = vdi_auth_hash_password(call->server->auth, password, ret_hash);
	if (status != VD_OK)
		vdi_serve_fail_status(call, status);
	return status == VD_OK;
}

static void work_user_add(struct vdi_serve_call *call)
{
	struct request	   request;
	struct user_change change = { .request = &request };

	if (!decode(call->request.bytes, &request) || !decode_options(request.field[3], &request) ||
	    !vdi_utf8_valid(request.field[1])) {
		vdi_serve_fail_malformed(call);
		return;
	}
	if (request.field[1].size >= VDI_AUTH_NAME_MAX) {
		vdi_serve_finish(call, VDI_RPC_INVALID_ARGUMENT, "etcdserver: user name is too long");
		return;
	}
	if (request.no_password || hash_password(call, request.field[2], change.hash))
		run_change(call, add_user, &change, VD_BYTES_NONE);
}

static enum vd_etcd_code change_password(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
					 bool *ret_changed)
{
	const struct user_change *change = arg;
	struct vdi_auth_account	 *account = vdi_auth_data_account(data, change->request->field[1]);

	(void) ret_changed;
	if (account == NULL)
		return VD_ETCD_USER_NOT_FOUND;
	if (!account->no_password)
		*ret_status = vdi_auth_account_set_password(account, vd_bytes_of(change->hash));
	data->revision++;
	return VD_ETCD_OTHER;
}

static void work_user_change_password(struct vdi_serve_call *call)
{
	struct request	   request;
	struct user_change change = { .request = &request };

	if (!decode(call->request.bytes, &request)) {
		vdi_serve_fail_malformed(call);
		return;
	}
	/* An empty password has no hash, so no password matches. */
	if (request.field[2].size == 0 || hash_password(call, request.field[2], change.hash))
		run_change(call, change_password, &change, request.field[1]);
}

static enum vd_etcd_code delete_user(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
				     bool *ret_changed)
{
	const struct request	*request = arg;
	struct vdi_auth_account *account = vdi_auth_data_account(data, request->field[1]);

	(void) ret_status;
	(void) ret_changed;
	if (data->is_enabled && vd_bytes_equal(request->field[1], root))
		return VD_ETCD_INVALID_AUTH_MANAGEMENT;
	if (account == NULL)
		return VD_ETCD_USER_NOT_FOUND;
	vdi_auth_data_remove_account(data, account);
	data->revision++;
	return VD_ETCD_OTHER;
}

static enum vd_etcd_code grant_role(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
				    bool *ret_changed)
{
	const struct request	*request = arg;
	struct vdi_auth_account *account = vdi_auth_data_account(data, request->field[1]);

	if (account == NULL)
		return VD_ETCD_USER_NOT_FOUND;
	if (!vd_bytes_equal(request->field[2], root) && vdi_auth_data_role(data, request->field[2]) == NULL)
		return VD_ETCD_ROLE_NOT_FOUND;
	*ret_changed = !vdi_auth_account_has_role(account, request->field[2]);
	if (*ret_changed) {
		*ret_status = vdi_auth_account_add_role(account, request->field[2]);
		data->revision++;
	}
	return VD_ETCD_OTHER;
}

static enum vd_etcd_code revoke_role(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
				     bool *ret_changed)
{
	const struct request	*request = arg;
	struct vdi_auth_account *account = vdi_auth_data_account(data, request->field[1]);

	(void) ret_status;
	(void) ret_changed;
	if (data->is_enabled && vd_bytes_equal(request->field[1], root) &&
	    vd_bytes_equal(request->field[2], root))
		return VD_ETCD_INVALID_AUTH_MANAGEMENT;
	if (account == NULL)
		return VD_ETCD_USER_NOT_FOUND;
	if (!vdi_auth_account_remove_role(account, request->field[2]))
		return VD_ETCD_ROLE_NOT_GRANTED;
	data->revision++;
	return VD_ETCD_OTHER;
}

static enum vd_etcd_code add_role(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
				  bool *ret_changed)
{
	const struct request *request = arg;

	(void) ret_changed;
	if (request->field[1].size == 0)
		return VD_ETCD_ROLE_EMPTY;
	if (vdi_auth_data_role(data, request->field[1]))
		return VD_ETCD_ROLE_ALREADY_EXIST;
	*ret_status = vdi_auth_data_add_role(data, request->field[1]);
	data->revision++;
	return VD_ETCD_OTHER;
}

static enum vd_etcd_code delete_role(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
				     bool *ret_changed)
{
	const struct request *request = arg;
	struct vdi_auth_role *role = vdi_auth_data_role(data, request->field[1]);

	(void) ret_status;
	(void) ret_changed;
	if (data->is_enabled && vd_bytes_equal(request->field[1], root))
		return VD_ETCD_INVALID_AUTH_MANAGEMENT;
	if (role == NULL)
		return VD_ETCD_ROLE_NOT_FOUND;
	vdi_auth_data_remove_role(data, role);
	data->revision++;
	return VD_ETCD_OTHER;
}

static bool is_valid_range(struct vd_bytes key, struct vd_bytes range_end)
{
	if (key.size == 0)
		return false;
	if (range_end.size == 0 || (range_end.size == 1 && *(const char *) range_end.data == 0))
		return true;
	return vd_bytes_compare(key, range_end) < 0;
}

static enum vd_etcd_code grant_permission(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
					  bool *ret_changed)
{
	const struct request *request = arg;
	struct vdi_auth_role *role;

	(void) ret_changed;
	if (!request->has_permission)
		return VD_ETCD_PERMISSION_NOT_GIVEN;
	if (!is_valid_range(request->permission_key, request->permission_end))
		return VD_ETCD_INVALID_AUTH_MANAGEMENT;
	role = vdi_auth_data_role(data, request->field[1]);
	if (role == NULL)
		return VD_ETCD_ROLE_NOT_FOUND;
	*ret_status = vdi_auth_role_add_permission(role, request->permission_type, request->permission_key,
						   request->permission_end);
	data->revision++;
	return VD_ETCD_OTHER;
}

static enum vd_etcd_code revoke_permission(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
					   bool *ret_changed)
{
	const struct request *request = arg;
	struct vdi_auth_role *role = vdi_auth_data_role(data, request->field[1]);

	(void) ret_status;
	(void) ret_changed;
	if (role == NULL)
		return VD_ETCD_ROLE_NOT_FOUND;
	if (!vdi_auth_role_remove_permission(role, request->field[2], request->field[3]))
		return VD_ETCD_PERMISSION_NOT_GRANTED;
	data->revision++;
	return VD_ETCD_OTHER;
}

static void change_decoded(struct vdi_serve_call *call, vdi_auth_change_fn change, bool forgets_user)
{
	struct request request;

	if (!decode(call->request.bytes, &request) || !vdi_utf8_valid(request.field[1]))
		vdi_serve_fail_malformed(call);
	else
		run_change(call, change, &request, forgets_user ? request.field[1] : VD_BYTES_NONE);
}

static void work_user_delete(struct vdi_serve_call *call)
{
	change_decoded(call, delete_user, true);
}

static void work_user_grant_role(struct vdi_serve_call *call)
{
	change_decoded(call, grant_role, false);
}

static void work_user_revoke_role(struct vdi_serve_call *call)
{
	change_decoded(call, revoke_role, false);
}

static void work_role_add(struct vdi_serve_call *call)
{
	change_decoded(call, add_role, false);
}

static void work_role_delete(struct vdi_serve_call *call)
{
	change_decoded(call, delete_role, false);
}

static void work_role_grant_permission(struct vdi_serve_call *call)
{
	struct request	       request;
	struct vdi_wire_reader reader;
	bool		       is_good = decode(call->request.bytes, &request);

	vdi_wire_reader_init(&reader, call->request.bytes);
	while (is_good && vdi_wire_next(&reader))
		if (reader.tag == VDI_WIRE_BYTES(2))
			is_good = decode_permission(reader.bytes, &request);
	if (is_good)
		run_change(call, grant_permission, &request, VD_BYTES_NONE);
	else
		vdi_serve_fail_malformed(call);
}

static void work_role_revoke_permission(struct vdi_serve_call *call)
{
	change_decoded(call, revoke_permission, false);
}

#define SLOW(name)                                                                                           \
	static void name##_begin(struct vdi_serve_call *call, struct vd_bytes message)                       \
	{                                                                                                    \
		(void) message;                                                                              \
		vdi_serve_defer(call, VDI_SERVE_WORKER_SLOW, work_##name);                                   \
	}
SLOW(enable)
SLOW(disable)
SLOW(user_add)
SLOW(user_change_password)
SLOW(user_delete)
SLOW(user_grant_role)
SLOW(user_revoke_role)
SLOW(role_add)
SLOW(role_delete)
SLOW(role_grant_permission)
SLOW(role_revoke_permission)

/* ---- Authenticate ---- */

struct token_answer {
	struct vdi_serve_call *call;
	vd_rev		       revision;
	const char	      *token;
};

static void write_token(struct vdi_wire_out *out, const void *arg)
{
	const struct token_answer *answer = arg;

	vdi_serve_write_header(out, answer->call->server, answer->revision);
	vdi_wire_bytes(out, 2, vd_bytes_of(answer->token));
}

/* Copy of the account's data for a login, because the check takes long. */
struct account_copy {
	/* Without an account or password: the hash of no password, as expensive as others, so that the
	 * response time does not show which users exist. */
	char	 hash[VDI_AUTH_HASH_SIZE];
	uint64_t revision;
	bool	 no_password;
};

static void copy_account(struct vdi_auth *auth, struct vd_bytes name, struct account_copy *attributes)
{
	const struct vdi_auth_data    *data = vdi_auth_lock_data(auth);
	const struct vdi_auth_account *account = vdi_auth_data_account(data, name);

	attributes->no_password = account && account->no_password;
	attributes->revision = data->revision;
	if (account && account->password.size && account->password.size < VDI_AUTH_HASH_SIZE)
		memcpy(attributes->hash, account->password.data, account->password.size + 1);
	else
		memcpy(attributes->hash, vdi_auth_no_hash(auth), sizeof attributes->hash);
	vdi_auth_unlock_data(auth);
}

/* Checks against the current users: if the password was changed meanwhile, the check is repeated. */
static vd_status log_in(struct vdi_auth *auth, const struct request *request, bool *ret_no_password,
			bool *ret_matches, char token[VDI_AUTH_TOKEN_SIZE])
{
	struct account_copy attributes;
	vd_status	    status = VD_AGAIN;

	for (int attempt = 0; status == VD_AGAIN && attempt < LOGIN_ATTEMPTS; attempt++) {
		copy_account(auth, request->field[1], &attributes);
		*ret_no_password = attributes.no_password;
		VDI_TRY(vdi_auth_password_matches(request->field[2], attributes.hash, ret_matches));
		status = *ret_matches && !attributes.no_password ?
				 vdi_auth_token_new(auth, request->field[1], attributes.revision, token) :
				 VD_OK;
	}
	return status;
}

static void work_authenticate(struct vdi_serve_call *call)
{
	char	       token[VDI_AUTH_TOKEN_SIZE];
	bool	       matches = false;
	bool	       no_password = false;
	struct request request;
	vd_status      status;

	(void) decode(call->request.bytes, &request); /* begin has decoded it before */
	status = log_in(call->server->auth, &request, &no_password, &matches, token);
	if (status == VD_AGAIN) {
		vdi_serve_fail(call, VD_ETCD_AUTH_OLD_REVISION);
	} else if (status != VD_OK) {
		vdi_serve_fail_status(call, status);
	} else if (no_password) {
		vdi_serve_finish(call, VDI_RPC_UNKNOWN,
				 "auth: authentication failed, password was given for no password user");
	} else if (!matches) {
		vdi_serve_fail(call, VD_ETCD_AUTH_FAILED);
	} else {
		struct token_answer answer = { call, vdi_serve_revision(call->server), token };

		vdi_serve_reply(call, write_token, &answer);
	}
}

static void authenticate_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct request request;

	if (!decode(message, &request))
		vdi_serve_fail_malformed(call);
	else if (!vdi_auth_is_enabled(call->server->auth))
		vdi_serve_fail(call, VD_ETCD_AUTH_NOT_ENABLED);
	else
		vdi_serve_logins_put(call->server->logins, call, work_authenticate);
}

/* ---- Reading ---- */

struct search_answer {
	struct vdi_etcdserver	      *server;
	vd_rev			       revision;
	const struct vdi_auth_data    *data;
	const struct vdi_auth_account *account;
	const struct vdi_auth_role    *role;
};

static void write_status(struct vdi_wire_out *out, const void *arg)
{
	const struct search_answer *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->revision);
	vdi_wire_number(out, 2, answer->data->is_enabled);
	vdi_wire_number(out, 3, answer->data->revision);
}

static void write_accounts(struct vdi_wire_out *out, const void *arg)
{
	const struct search_answer *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->revision);
	for (size_t i = 0; i < answer->data->account_count; i++)
		vdi_wire_bytes_always(out, 2, vdi_auth_name_bytes(&answer->data->accounts[i].name));
}

static void write_roles(struct vdi_wire_out *out, const void *arg)
{
	const struct search_answer *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->revision);
	for (size_t i = 0; i < answer->data->role_count; i++)
		vdi_wire_bytes_always(out, 2, vdi_auth_name_bytes(&answer->data->roles[i].name));
}

static void write_account(struct vdi_wire_out *out, const void *arg)
{
	const struct search_answer *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->revision);
	for (size_t i = 0; i < answer->account->role_count; i++)
		vdi_wire_bytes_always(out, 2, vdi_auth_name_bytes(&answer->account->roles[i]));
}

static void write_permission(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_auth_permission *permission = arg;

	vdi_wire_number(out, 1, (uint64_t) permission->type);
	vdi_wire_bytes(out, 2, (struct vd_bytes) { permission->key, permission->key_size });
	vdi_wire_bytes(out, 3, (struct vd_bytes) { permission->range_end, permission->range_end_size });
}

static void write_role(struct vdi_wire_out *out, const void *arg)
{
	/* The root role has every permission. */
	static const struct vdi_auth_permission everything = { VDI_PERMISSION_READWRITE, (char *) "", 0,
							       (char *) "\0", 1 };
	const struct search_answer	       *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->revision);
	if (vd_bytes_equal(vdi_auth_name_bytes(&answer->role->name), root))
		vdi_wire_message(out, 2, write_permission, &everything);
	else
		for (size_t i = 0; i < answer->role->permission_count; i++)
			vdi_wire_message(out, 2, write_permission, &answer->role->permissions[i]);
}

/* Encodes under the lock of the data, and answers after it. found: VD_ETCD_OTHER if write may be called. */
static void reply_found(struct vdi_serve_call *call, struct search_answer *answer, enum vd_etcd_code found,
			vdi_wire_write_fn write)
{
	struct vdi_rpc_blob *blob = NULL;
	vd_status	     status = VD_OK;

	if (found == VD_ETCD_OTHER)
		status = vdi_wire_encode(write, answer, &blob);
	vdi_auth_unlock_data(call->server->auth);
	if (found != VD_ETCD_OTHER) {
		vdi_serve_fail(call, found);
		return;
	}
	if (status == VD_OK)
		status = vdi_serve_answer(call, blob);
	if (status != VD_OK)
		vdi_serve_fail_status(call, status);
	vdi_rpc_blob_unref(blob);
}

static void search(struct vdi_serve_call *call, struct search_answer *answer)
{
	answer->server = call->server;
	answer->revision = vdi_serve_revision(call->server);
	answer->data = vdi_auth_lock_data(call->server->auth);
}

static void status_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct vdi_auth_user user;
	struct search_answer answer = { 0 };

	(void) message;
	if (!vdi_auth_identify(call, &user))
		return;
	search(call, &answer);
	reply_found(call, &answer, VD_ETCD_OTHER, write_status);
}

static void user_list_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct search_answer answer = { 0 };

	(void) message;
	if (!vdi_auth_require_admin(call))
		return;
	search(call, &answer);
	reply_found(call, &answer, VD_ETCD_OTHER, write_accounts);
}

static void role_list_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct search_answer answer = { 0 };

	(void) message;
	if (!vdi_auth_require_admin(call))
		return;
	search(call, &answer);
	reply_found(call, &answer, VD_ETCD_OTHER, write_roles);
}

static void user_get_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct search_answer answer = { 0 };
	struct vdi_auth_user user;
	struct request	     request;
	enum vd_etcd_code    code;

	if (!decode(message, &request)) {
		vdi_serve_fail_malformed(call);
		return;
	}
	if (!vdi_auth_identify(call, &user))
		return;
	code = vdi_auth_check_admin(call->server->auth, &user);
	/* Every user may query itself. */
	if (code != VD_ETCD_OTHER &&
	    !(user.is_given &&
	      vd_bytes_equal(request.field[1], (struct vd_bytes) { user.name, user.name_size }))) {
		vdi_serve_fail(call, code);
		return;
	}
	search(call, &answer);
	answer.account = vdi_auth_data_account(answer.data, request.field[1]);
	reply_found(call, &answer, answer.account ? VD_ETCD_OTHER : VD_ETCD_USER_NOT_FOUND, write_account);
}

static void role_get_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	const struct vdi_auth_account *account;
	struct search_answer	       answer = { 0 };
	struct vdi_auth_user	       user;
	struct request		       request;
	enum vd_etcd_code	       code;

	if (!decode(message, &request)) {
		vdi_serve_fail_malformed(call);
		return;
	}
	if (!vdi_auth_identify(call, &user))
		return;
	code = vdi_auth_check_admin(call->server->auth, &user);
	search(call, &answer);
	account = user.is_given ? vdi_auth_data_account(answer.data,
							(struct vd_bytes) { user.name, user.name_size }) :
				  NULL;
	if (code != VD_ETCD_OTHER && account && vdi_auth_account_has_role(account, request.field[1]))
		code = VD_ETCD_OTHER; /* and its own roles */
	answer.role = vdi_auth_data_role(answer.data, request.field[1]);
	if (code == VD_ETCD_OTHER && answer.role == NULL)
		code = VD_ETCD_ROLE_NOT_FOUND;
	reply_found(call, &answer, code, write_role);
}

const struct vdi_serve_method vdi_serve_auth_methods[] = {
	{ "/etcdserverpb.Auth/AuthEnable", VDI_SERVE_UNARY, enable_begin, true },
	{ "/etcdserverpb.Auth/AuthDisable", VDI_SERVE_UNARY, disable_begin, true },
	{ "/etcdserverpb.Auth/AuthStatus", VDI_SERVE_UNARY, status_begin, true },
	{ "/etcdserverpb.Auth/Authenticate", VDI_SERVE_UNARY, authenticate_begin },
	{ "/etcdserverpb.Auth/UserAdd", VDI_SERVE_UNARY, user_add_begin },
	{ "/etcdserverpb.Auth/UserGet", VDI_SERVE_UNARY, user_get_begin },
	{ "/etcdserverpb.Auth/UserList", VDI_SERVE_UNARY, user_list_begin, true },
	{ "/etcdserverpb.Auth/UserDelete", VDI_SERVE_UNARY, user_delete_begin },
	{ "/etcdserverpb.Auth/UserChangePassword", VDI_SERVE_UNARY, user_change_password_begin },
	{ "/etcdserverpb.Auth/UserGrantRole", VDI_SERVE_UNARY, user_grant_role_begin },
	{ "/etcdserverpb.Auth/UserRevokeRole", VDI_SERVE_UNARY, user_revoke_role_begin },
	{ "/etcdserverpb.Auth/RoleAdd", VDI_SERVE_UNARY, role_add_begin },
	{ "/etcdserverpb.Auth/RoleGet", VDI_SERVE_UNARY, role_get_begin },
	{ "/etcdserverpb.Auth/RoleList", VDI_SERVE_UNARY, role_list_begin, true },
	{ "/etcdserverpb.Auth/RoleDelete", VDI_SERVE_UNARY, role_delete_begin },
	{ "/etcdserverpb.Auth/RoleGrantPermission", VDI_SERVE_UNARY, role_grant_permission_begin },
	{ "/etcdserverpb.Auth/RoleRevokePermission", VDI_SERVE_UNARY, role_revoke_permission_begin },
	{ 0 },
};
