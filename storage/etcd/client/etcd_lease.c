/* Lease calls with a single response; etcd_keep_alive.c keeps leases alive. */
#include "etcd_call.h"

#include <rpc.pb-c.h>

/* Unpacks the response; on failure reports the error to the user. */
static void *unpack(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message,
		    const ProtobufCMessageDescriptor *descriptor)
{
	vd_etcd_lease_fn     done = (vd_etcd_lease_fn) call->done;
	struct vd_etcd_error unreadable = { 0 };
	ProtobufCMessage    *answer;
	vd_status	     status;

	if (error == NULL) {
		status = vdi_etcd_proto_unpack(descriptor, message, &answer, &unreadable);
		if (status == VD_OK)
			return answer;
		(void) vdi_etcd_call_unreadable(call, status, &unreadable);
		error = &unreadable;
	}
	done(call->arg, error, NULL, NULL);
	return NULL;
}

/* ---- Grant, revoke ---- */

static void granted(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	Etcdserverpb__LeaseGrantResponse *answer =
		unpack(call, error, message, &etcdserverpb__lease_grant_response__descriptor);
	struct vd_etcd_header  header;
	struct vd_lease_result result;

	if (answer == NULL)
		return;
	vdi_etcd_proto_header(answer->header, &header);
	result = (struct vd_lease_result) { .id = answer->id,
					    .ttl_s = answer->ttl,
					    .granted_ttl_s = answer->ttl,
					    .revision = header.revision };
	((vd_etcd_lease_fn) call->done)(call->arg, NULL, &header, &result);
	vdi_etcd_proto_free(&answer->base);
}

vd_status vd_etcd_lease_grant(struct vd_etcd *client, const struct vd_etcd_call *call, int64_t id,
			      int64_t ttl_s, vd_etcd_lease_fn done, void *arg)
{
	Etcdserverpb__LeaseGrantRequest request = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;

	request.id = id;
	request.ttl = ttl_s;
	return vdi_etcd_call_message(client, call, VDI_ETCD_METHOD_LEASE_GRANT, granted,
				     (vdi_etcd_any_fn) done, arg, &request.base);
}

vd_status vd_etcd_lease_revoke(struct vd_etcd *client, const struct vd_etcd_call *call, int64_t id,
			       vd_etcd_done_fn done, void *arg)
{
	Etcdserverpb__LeaseRevokeRequest request = ETCDSERVERPB__LEASE_REVOKE_REQUEST__INIT;

	request.id = id;
	return vdi_etcd_call_message(client, call, VDI_ETCD_METHOD_LEASE_REVOKE, vdi_etcd_finish_header,
				     (vdi_etcd_any_fn) done, arg, &request.base);
}

/* ---- Time to live, list ---- */

static void time_to_live(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	Etcdserverpb__LeaseTimeToLiveResponse *answer =
		unpack(call, error, message, &etcdserverpb__lease_time_to_live_response__descriptor);
	struct vd_etcd_header  header;
	struct vd_lease_result result;
	struct vd_etcd_error   no_memory;
	struct vd_bytes	      *keys = NULL;

	if (answer == NULL)
		return;
	vdi_etcd_proto_header(answer->header, &header);
	result = (struct vd_lease_result) { .id = answer->id,
					    .ttl_s = answer->ttl,
					    .granted_ttl_s = answer->grantedttl,
					    .revision = header.revision,
					    .key_count = answer->n_keys };
	if (answer->n_keys)
		keys = vdi_calloc(answer->n_keys, sizeof *keys);
	if (answer->n_keys && keys == NULL) {
		(void) vdi_etcd_error_set(&no_memory, VD_NOMEM, VDI_ETCD_NO_MEMORY_TEXT);
		((vd_etcd_lease_fn) call->done)(call->arg, &no_memory, NULL, NULL);
	} else {
		for (size_t i = 0; i < answer->n_keys; i++)
			keys[i] = (struct vd_bytes) { answer->keys[i].data, answer->keys[i].len };
		result.keys = keys;
		((vd_etcd_lease_fn) call->done)(call->arg, NULL, &header, &result);
	}
	vdi_free(keys);
	vdi_etcd_proto_free(&answer->base);
}

vd_status vd_etcd_lease_time_to_live(struct vd_etcd *client, const struct vd_etcd_call *call, int64_t id,
				     bool keys, vd_etcd_lease_fn done, void *arg)
{
	Etcdserverpb__LeaseTimeToLiveRequest request = ETCDSERVERPB__LEASE_TIME_TO_LIVE_REQUEST__INIT;

	request.id = id;
	request.keys = keys;
	return vdi_etcd_call_message(client, call, VDI_ETCD_METHOD_LEASE_TIME_TO_LIVE, time_to_live,
				     (vdi_etcd_any_fn) done, arg, &request.base);
}

static void listed(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	vd_etcd_leases_fn		   done = (vd_etcd_leases_fn) call->done;
	Etcdserverpb__LeaseLeasesResponse *answer = NULL;
	struct vd_etcd_error		   own = { 0 };
	struct vd_etcd_header		   header;
	int64_t				  *ids = NULL;
	vd_status			   status = VD_OK;

	if (error == NULL) {
		status = vdi_etcd_proto_unpack(&etcdserverpb__lease_leases_response__descriptor, message,
					       (ProtobufCMessage **) &answer, &own);
		if (status == VD_OK && answer->n_leases &&
		    (ids = vdi_calloc(answer->n_leases, sizeof *ids)) == NULL)
			status = vdi_etcd_error_set(&own, VD_NOMEM, VDI_ETCD_NO_MEMORY_TEXT);
		if (status != VD_OK && vdi_etcd_call_unreadable(call, status, &own) != VD_OK)
			error = &own;
	}
	if (error) {
		done(call->arg, error, NULL, NULL, 0);
	} else {
		vdi_etcd_proto_header(answer->header, &header);
		for (size_t i = 0; i < answer->n_leases; i++)
			ids[i] = answer->leases[i]->id;
		done(call->arg, NULL, &header, ids, answer->n_leases);
	}
	vdi_free(ids);
	if (answer)
		vdi_etcd_proto_free(&answer->base);
}

vd_status vd_etcd_lease_list(struct vd_etcd *client, const struct vd_etcd_call *call, vd_etcd_leases_fn done,
			     void *arg)
{
	Etcdserverpb__LeaseLeasesRequest request = ETCDSERVERPB__LEASE_LEASES_REQUEST__INIT;

	return vdi_etcd_call_message(client, call, VDI_ETCD_METHOD_LEASE_LEASES, listed,
				     (vdi_etcd_any_fn) done, arg, &request.base);
}

/* ---- One renewal (a stream of one request and one response) ---- */

static bool renewed(struct vdi_etcd_call *call, struct vd_bytes message, struct vd_etcd_error *error)
{
	ProtobufCMessage		     *unpacked;
	Etcdserverpb__LeaseKeepAliveResponse *answer;
	struct vd_etcd_header		      header;
	struct vd_lease_result		      result;
	vd_status			      status;

	if (call->extra.number) /* already answered */
		return true;
	status = vdi_etcd_proto_unpack(&etcdserverpb__lease_keep_alive_response__descriptor, message,
				       &unpacked, error);
	if (status != VD_OK) {
		(void) vdi_etcd_call_unreadable(call, status, error);
		return false;
	}
	answer = (Etcdserverpb__LeaseKeepAliveResponse *) unpacked;
	vdi_etcd_proto_header(answer->header, &header);
	result = (struct vd_lease_result) { .id = answer->id,
					    .ttl_s = answer->ttl,
					    .granted_ttl_s = answer->ttl,
					    .revision = header.revision };
	vdi_etcd_proto_free(unpacked);
	if (result.ttl_s <= 0) {
		vdi_etcd_error_of_reason(vd_bytes_of(vdi_etcd_code_message(VD_ETCD_LEASE_NOT_FOUND)), error);
		return false;
	}
	call->extra.number = 1;
	((vd_etcd_lease_fn) call->done)(call->arg, NULL, &header, &result);
	return true;
}

static void renewal_finished(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	struct vd_etcd_error none;

	if (call->extra.number)
		return;
	if (error == NULL) {
		(void) vdi_etcd_error_set(&none, VD_CORRUPT,
					  "the answer cannot be read: the stream ended without one");
		error = &none;
	}
	((vd_etcd_lease_fn) call->done)(call->arg, error, NULL, NULL);
}

vd_status vd_etcd_lease_keep_alive_once(struct vd_etcd *client, const struct vd_etcd_call *call, int64_t id,
					vd_etcd_lease_fn done, void *arg)
{
	Etcdserverpb__LeaseKeepAliveRequest request = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
	struct vdi_etcd_call		   *started;

	request.id = id;
	VDI_TRY(vdi_etcd_call_new(client, call, VDI_ETCD_METHOD_LEASE_KEEP_ALIVE, renewal_finished,
				  (vdi_etcd_any_fn) done, arg, &started));
	started->part = renewed;
	return vdi_etcd_call_start(started, vdi_etcd_proto_pack(&request.base, &started->request),
				   call ? call->ret_id : NULL);
}
