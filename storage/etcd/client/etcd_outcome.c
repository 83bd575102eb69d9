/* Evaluation of a failed attempt: whether it may have been applied, and whether the call may be repeated.
 *
 * Difference from clientv3: a call that must not be repeated is repeated only if the transport reports that
 * it was never sent, also after Canceled and DeadlineExceeded (where upstream repeats writes).
 */
#include <stdio.h>

#include "etcd_call.h"
#include "etcd_wire.h"

static bool is_write(enum vdi_etcd_method method)
{
	switch (method) {
	case VDI_ETCD_METHOD_RANGE:
	case VDI_ETCD_METHOD_RANGE_STREAM:
	case VDI_ETCD_METHOD_WATCH:
	case VDI_ETCD_METHOD_LEASE_KEEP_ALIVE:
	case VDI_ETCD_METHOD_LEASE_TIME_TO_LIVE:
	case VDI_ETCD_METHOD_LEASE_LEASES:
	case VDI_ETCD_METHOD_MEMBER_LIST:
	case VDI_ETCD_METHOD_STATUS:
	case VDI_ETCD_METHOD_HASH:
	case VDI_ETCD_METHOD_HASH_KV:
	case VDI_ETCD_METHOD_SNAPSHOT:
	case VDI_ETCD_METHOD_AUTH_STATUS:
	case VDI_ETCD_METHOD_AUTHENTICATE:
	case VDI_ETCD_METHOD_USER_GET:
	case VDI_ETCD_METHOD_USER_LIST:
	case VDI_ETCD_METHOD_ROLE_GET:
	case VDI_ETCD_METHOD_ROLE_LIST: return false;
	default: return true;
	}
}

/* Returns false if the attempt was not sent, or if the server refused it with an etcd error. */
bool vdi_etcd_may_have_applied(enum vdi_etcd_method method, const struct vdi_rpc_end *end,
			       enum vd_etcd_code known)
{
	if (!is_write(method) || end->unsent)
		return false;
	/* etcd applies the write that exceeds its quota, and then returns NoSpace. */
	if (known != VD_ETCD_OTHER)
		return vdi_etcd_code_grpc(known) == VDI_RPC_UNAVAILABLE || known == VD_ETCD_NO_SPACE;
	switch (end->code) {
	case VDI_RPC_CANCELED:
	case VDI_RPC_UNKNOWN:
	case VDI_RPC_DEADLINE_EXCEEDED:
	case VDI_RPC_INTERNAL:
	case VDI_RPC_UNAVAILABLE:
	case VDI_RPC_DATA_LOSS: return true;
	case VDI_RPC_RESOURCE_EXHAUSTED: /* the response was too large, not the request */
		return strstr(end->message, "eceived message larger than max") != NULL;
	default: return false;
	}
}

/* The errors after which clientv3 fetches a new token. */
bool vdi_etcd_wants_new_token(const struct vd_etcd *client, enum vd_etcd_code known)
{
	return client->user && (known == VD_ETCD_INVALID_AUTH_TOKEN || known == VD_ETCD_AUTH_OLD_REVISION ||
				known == VD_ETCD_USER_EMPTY);
}

/* Decides whether this end allows another attempt, by clientv3's rules except as stated above. */
bool vdi_etcd_may_repeat(struct vdi_etcd_call *call, enum vd_etcd_code known)
{
	const struct vdi_rpc_end *end = &call->end.end;
	bool			  repeatable = vdi_etcd_methods[call->method].repeat == VDI_ETCD_REPEATABLE;

	if (vdi_etcd_methods[call->method].kind == VDI_ETCD_BIDI) /* a single keep-alive */
		return !vdi_etcd_is_halt(end);
	/* The caller's context is alive, so the caller did not cause it. */
	if (end->code == VDI_RPC_CANCELED || end->code == VDI_RPC_DEADLINE_EXCEEDED)
		return repeatable || end->unsent;
	if (known == VD_ETCD_NOT_SUPPORTED_FOR_LEARNER)
		return call->client->transport->ops->endpoint_count(call->client->transport) > 1;
	if (end->code != VDI_RPC_UNAVAILABLE ||
	    (known != VD_ETCD_OTHER && vdi_etcd_code_grpc(known) != VDI_RPC_UNAVAILABLE))
		return false;
	return repeatable || end->unsent;
}

bool vdi_etcd_has_attempts_left(const struct vdi_etcd_call *call)
{
	/* A snapshot is requested again until its first part has arrived. */
	if (vdi_etcd_methods[call->method].kind != VDI_ETCD_UNARY)
		return !call->has_parts && vdi_etcd_methods[call->method].repeat == VDI_ETCD_REPEATABLE;
	return call->attempt + 1 < call->client->attempts_max;
}

vd_status vdi_etcd_call_unreadable(const struct vdi_etcd_call *call, vd_status status,
				   struct vd_etcd_error *error)
{
	error->code = VD_ETCD_OTHER;
	error->grpc_code = vd_status_grpc(status);
	error->maybe_applied = is_write(call->method);
	(void) snprintf(error->endpoint, sizeof error->endpoint, "%s", call->end.endpoint);
	return status;
}

void vdi_etcd_finish_header(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	vd_etcd_done_fn	      done = (vd_etcd_done_fn) call->done;
	struct vd_etcd_error  unreadable = { 0 };
	struct vd_etcd_header header;

	if (error == NULL) {
		vd_status status = vdi_etcd_wire_header_decode(message, &header, &unreadable.error);

		if (status != VD_OK && vdi_etcd_call_unreadable(call, status, &unreadable) != VD_OK)
			error = &unreadable;
	}
	done(call->arg, error, error ? NULL : &header);
}
