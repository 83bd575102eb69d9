/* Users, roles, permissions: calls of etcd's Auth service. The client's own token is the task of
 * etcd_preflight.c. */
#include "etcd_call.h"

#include <rpc.pb-c.h>

static vd_status start(struct vd_etcd *client, const struct vd_etcd_call *call, enum vdi_etcd_method method,
		       const ProtobufCMessage *request, vd_etcd_done_fn done, void *arg)
{
	return vdi_etcd_call_message(client, call, method, vdi_etcd_finish_header, (vdi_etcd_any_fn) done,
				     arg, request);
}

/* protobuf-c takes char * even for strings that it only reads. */
static char *text(const char *borrowed)
{
	return (char *) borrowed;
}

static void auth_status_finished(struct vdi_etcd_call *call, struct vd_etcd_error *error,
				 struct vd_bytes message)
{
	vd_etcd_auth_status_fn		  done = (vd_etcd_auth_status_fn) call->done;
	ProtobufCMessage		 *unpacked = NULL;
	Etcdserverpb__AuthStatusResponse *answer;
	struct vd_etcd_error		  own;
	struct vd_etcd_header		  header;

	if (error == NULL) {
		vd_status status = vdi_etcd_proto_unpack(&etcdserverpb__auth_status_response__descriptor,
							 message, &unpacked, &own);

		if (status != VD_OK && vdi_etcd_call_unreadable(call, status, &own) != VD_OK)
			error = &own;
	}
	if (error) {
		done(call->arg, error, NULL, false, 0);
		return;
	}
	answer = (Etcdserverpb__AuthStatusResponse *) unpacked;
	vdi_etcd_proto_header(answer->header, &header);
	done(call->arg, NULL, &header, answer->enabled, answer->authrevision);
	vdi_etcd_proto_free(unpacked);
}

vd_status vd_etcd_auth_status(struct vd_etcd *client, const struct vd_etcd_call *call,
			      vd_etcd_auth_status_fn done, void *arg)
{
	Etcdserverpb__AuthStatusRequest request = ETCDSERVERPB__AUTH_STATUS_REQUEST__INIT;

	return vdi_etcd_call_message(client, call, VDI_ETCD_METHOD_AUTH_STATUS, auth_status_finished,
				     (vdi_etcd_any_fn) done, arg, &request.base);
}

vd_status vd_etcd_auth_enable(struct vd_etcd *client, const struct vd_etcd_call *call, bool enable,
			      vd_etcd_done_fn done, void *arg)
{
	Etcdserverpb__AuthEnableRequest	 enabling = ETCDSERVERPB__AUTH_ENABLE_REQUEST__INIT;
	Etcdserverpb__AuthDisableRequest disabling = ETCDSERVERPB__AUTH_DISABLE_REQUEST__INIT;

	return enable ? start(client, call, VDI_ETCD_METHOD_AUTH_ENABLE, &enabling.base, done, arg) :
			start(client, call, VDI_ETCD_METHOD_AUTH_DISABLE, &disabling.base, done, arg);
}

vd_status vd_etcd_user_add(struct vd_etcd *client, const struct vd_etcd_call *call, const char *name,
			   const char *password, vd_etcd_done_fn done, void *arg)
{
	Etcdserverpb__AuthUserAddRequest request = ETCDSERVERPB__AUTH_USER_ADD_REQUEST__INIT;
	Authpb__UserAddOptions		 options = AUTHPB__USER_ADD_OPTIONS__INIT;

	if (name == NULL)
		return VD_INVALID_ARGUMENT;
	request.name = text(name);
	if (password)
		request.password = text(password);
	options.no_password = password == NULL;
	request.options = &options;
	return start(client, call, VDI_ETCD_METHOD_USER_ADD, &request.base, done, arg);
}

vd_status vd_etcd_user_delete(struct vd_etcd *client, const struct vd_etcd_call *call, const char *name,
			      vd_etcd_done_fn done, void *arg)
{
	Etcdserverpb__AuthUserDeleteRequest request = ETCDSERVERPB__AUTH_USER_DELETE_REQUEST__INIT;

	if (name == NULL)
		return VD_INVALID_ARGUMENT;
	request.name = text(name);
	return start(client, call, VDI_ETCD_METHOD_USER_DELETE, &request.base, done, arg);
}

vd_status vd_etcd_user_change_password(struct vd_etcd *client, const struct vd_etcd_call *call,
				       const char *name, const char *password, vd_etcd_done_fn done,
				       void *arg)
{
	Etcdserverpb__AuthUserChangePasswordRequest request =
		ETCDSERVERPB__AUTH_USER_CHANGE_PASSWORD_REQUEST__INIT;

	if (name == NULL || password == NULL)
		return VD_INVALID_ARGUMENT;
	request.name = text(name);
	request.password = text(password);
	return start(client, call, VDI_ETCD_METHOD_USER_CHANGE_PASSWORD, &request.base, done, arg);
}

vd_status vd_etcd_user_grant_role(struct vd_etcd *client, const struct vd_etcd_call *call, const char *user,
				  const char *role, vd_etcd_done_fn done, void *arg)
{
	Etcdserverpb__AuthUserGrantRoleRequest request = ETCDSERVERPB__AUTH_USER_GRANT_ROLE_REQUEST__INIT;

	if (user == NULL || role == NULL)
		return VD_INVALID_ARGUMENT;
	request.user = text(user);
	request.role = text(role);
	return start(client, call, VDI_ETCD_METHOD_USER_GRANT_ROLE, &request.base, done, arg);
}

vd_status vd_etcd_role_add(struct vd_etcd *client, const struct vd_etcd_call *call, const char *name,
			   vd_etcd_done_fn done, void *arg)
{
	Etcdserverpb__AuthRoleAddRequest request = ETCDSERVERPB__AUTH_ROLE_ADD_REQUEST__INIT;

	if (name == NULL)
		return VD_INVALID_ARGUMENT;
	request.name = text(name);
	return start(client, call, VDI_ETCD_METHOD_ROLE_ADD, &request.base, done, arg);
}

vd_status vd_etcd_role_grant(struct vd_etcd *client, const struct vd_etcd_call *call, const char *role,
			     enum vd_etcd_permission permission, struct vd_bytes key,
			     struct vd_bytes range_end, vd_etcd_done_fn done, void *arg)
{
	Etcdserverpb__AuthRoleGrantPermissionRequest request =
		ETCDSERVERPB__AUTH_ROLE_GRANT_PERMISSION_REQUEST__INIT;
	Authpb__Permission granted = AUTHPB__PERMISSION__INIT;

	VDI_REQUIRE_BYTES(key, NULL);
	VDI_REQUIRE_BYTES(range_end, NULL);
	if (role == NULL || (unsigned) permission > VD_ETCD_READ_WRITE)
		return VD_INVALID_ARGUMENT;
	request.name = text(role);
	granted.permtype = (Authpb__Permission__Type) permission;
	granted.key = (ProtobufCBinaryData) { key.size, (uint8_t *) key.data };
	granted.range_end = (ProtobufCBinaryData) { range_end.size, (uint8_t *) range_end.data };
	request.perm = &granted;
	return start(client, call, VDI_ETCD_METHOD_ROLE_GRANT_PERMISSION, &request.base, done, arg);
}
