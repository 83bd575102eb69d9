/* The Lease service. Reads are answered at once; grants and revocations when the store's writer calls back.
 *
 * A keep-alive stream handles one request at a time: the next one is read when the response is sent. So a
 * client that does not read its responses is not read either.
 */
#include "auth.h"
#include "etcdserver.h"

struct lease_answer {
	const struct vdi_etcdserver  *server;
	const struct vd_lease_result *result;
	vd_rev			      revision;
};

/* ---- Grant ---- */

static void write_id_and_ttl(struct vdi_wire_out *out, const void *arg)
{
	const struct lease_answer *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->revision);
	vdi_wire_number(out, 2, (uint64_t) answer->result->id);
	vdi_wire_number(out, 3, (uint64_t) answer->result->ttl_s);
}

static void finish(struct vdi_serve_call *call, vd_status status, const struct vd_lease_result *result,
		   vdi_wire_write_fn write)
{
	if (status == VD_OK) {
		struct lease_answer answer = { call->server, result, result->revision };

		vdi_serve_reply(call, write, &answer);
	} else {
		vdi_serve_fail_status(call, status);
	}
	vdi_serve_call_unref(call);
}

static void grant_done(void *arg, vd_status status, const struct vd_lease_result *result,
		       const struct vd_error *error)
{
	(void) error;
	finish(arg, status, result, write_id_and_ttl);
}

static void grant_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct vdi_wire_reader reader;
	int64_t		       ttl_s = 0;
	int64_t		       id = 0;
	vd_status	       status;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader)) {
		if (reader.tag == VDI_WIRE_VARINT(1))
			ttl_s = (int64_t) reader.number;
		else if (reader.tag == VDI_WIRE_VARINT(2))
			id = (int64_t) reader.number;
	}
	if (reader.is_bad) {
		vdi_serve_fail_malformed(call);
		return;
	}
	if (!vdi_serve_check_quota(call, 64) || !vdi_auth_require_login(call) ||
	    !vdi_serve_check_corrupt(call))
		return;
	if (ttl_s > VDI_ETCD_LEASE_TTL_MAX_S) {
		vdi_serve_fail(call, VD_ETCD_LEASE_TTL_TOO_LARGE);
		return;
	}
	vdi_serve_call_ref(call);
	status = vd_store_lease_grant(call->server->store, id, ttl_s, grant_done, call);
	if (status != VD_OK)
		grant_done(call, status, NULL, NULL);
}

/* ---- Revoke ---- */

static void do_revoke(struct vdi_serve_call *call)
{
	struct vdi_auth_user user;
	enum vd_etcd_code    code;
	int64_t		     id;
	bool		     keys;
	vd_status	     status;

	(void) vdi_wire_read_number(call->request.bytes, &id, &keys); /* decoded before */
	if (!vdi_auth_identify(call, &user) || !vdi_serve_check_corrupt(call))
		return;
	code = vdi_auth_check_login(call->server->auth, &user);
	if (code == VD_ETCD_OTHER)
		code = vdi_auth_check_lease(call->server->auth, &user, id, true);
	if (code != VD_ETCD_OTHER) {
		vdi_serve_fail(call, code);
		return;
	}
	vdi_serve_call_ref(call);
	status = vd_store_lease_revoke(call->server->store, id, vdi_serve_header_done, call);
	if (status != VD_OK)
		vdi_serve_header_done(call, status, 0, NULL);
}

static void revoke_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	int64_t id;
	bool	keys;

	if (!vdi_wire_read_number(message, &id, &keys))
		vdi_serve_fail_malformed(call);
	else
		vdi_auth_defer_lease(call, do_revoke);
}

/* ---- TimeToLive and Leases ---- */

static void write_time_to_live(struct vdi_wire_out *out, const void *arg)
{
	const struct lease_answer *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->revision);
	vdi_wire_number(out, 2, (uint64_t) answer->result->id);
	vdi_wire_number(out, 3, (uint64_t) answer->result->ttl_s);
	vdi_wire_number(out, 4, (uint64_t) answer->result->granted_ttl_s);
	for (size_t i = 0; i < answer->result->key_count; i++)
		vdi_wire_bytes_always(out, 5, answer->result->keys[i]);
}

static void time_to_live_done(void *arg, vd_status status, const struct vd_lease_result *result,
			      const struct vd_error *error)
{
	(void) error;
	finish(arg, status, result, write_time_to_live);
}

static void do_time_to_live(struct vdi_serve_call *call)
{
	struct vdi_auth_user user;
	enum vd_etcd_code    code;
	int64_t		     id;
	bool		     keys;
	vd_status	     status;

	(void) vdi_wire_read_number(call->request.bytes, &id, &keys); /* decoded before */
	if (!vdi_auth_identify(call, &user))
		return;
	code = vdi_auth_check_login(call->server->auth, &user);
	if (code == VD_ETCD_OTHER && keys)
		code = vdi_auth_check_lease(call->server->auth, &user, id, false);
	if (code != VD_ETCD_OTHER) {
		vdi_serve_fail(call, code);
		return;
	}
	vdi_serve_call_ref(call);
	status = vd_store_lease_time_to_live(call->server->store, id, keys, time_to_live_done, call);
	if (status != VD_OK)
		time_to_live_done(call, status, NULL, NULL);
}

/* A lease may have any number of keys, and there may be any number of leases: a worker walks over them. */
static void time_to_live_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	int64_t id;
	bool	keys;

	if (!vdi_wire_read_number(message, &id, &keys))
		vdi_serve_fail_malformed(call);
	else if (keys)
		vdi_serve_defer(call, vdi_serve_any_range_worker(call->server), do_time_to_live);
	else
		do_time_to_live(call);
}

struct leases_answer {
	struct vdi_serve_call *call;
	struct vdi_auth_user   user;
	enum vd_etcd_code      code;
	vd_rev		       revision;
	const int64_t	      *ids;
	size_t		       count;
};

static void write_lease_id(struct vdi_wire_out *out, const void *arg)
{
	vdi_wire_number(out, 1, (uint64_t) * (const int64_t *) arg);
}

static void write_leases(struct vdi_wire_out *out, const void *arg)
{
	const struct leases_answer *answer = arg;

	vdi_serve_write_header(out, answer->call->server, answer->revision);
	for (size_t i = 0; i < answer->count; i++)
		vdi_wire_message(out, 2, write_lease_id, &answer->ids[i]);
}

static void leases_done(void *arg, vd_status status, const int64_t *ids, size_t count, vd_rev revision)
{
	struct leases_answer *answer = arg;
	struct vdi_auth	     *auth = answer->call->server->auth;

	if (status != VD_OK) {
		vdi_serve_fail_status(answer->call, status);
		return;
	}
	answer->revision = revision;
	answer->ids = ids;
	answer->count = count;
	for (size_t i = 0; vdi_auth_is_enabled(auth) && answer->code == VD_ETCD_OTHER && i < count; i++)
		answer->code = vdi_auth_check_lease(auth, &answer->user, ids[i], false);
	if (answer->code == VD_ETCD_OTHER)
		vdi_serve_reply(answer->call, write_leases, answer);
	else
		vdi_serve_fail(answer->call, answer->code);
}

static void do_leases(struct vdi_serve_call *call)
{
	struct leases_answer answer = { .call = call };
	vd_status	     status;

	if (!vdi_auth_identify(call, &answer.user))
		return;
	answer.code = vdi_auth_check_login(call->server->auth, &answer.user);
	if (answer.code != VD_ETCD_OTHER) {
		vdi_serve_fail(call, answer.code);
		return;
	}
	status = vd_store_lease_list(call->server->store, leases_done, &answer);
	if (status != VD_OK)
		vdi_serve_fail_status(call, status);
}

static void leases_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	(void) message;
	vdi_serve_defer(call, vdi_serve_any_range_worker(call->server), do_leases);
}

/* ---- KeepAlive ---- */

struct keep_alive {
	int64_t		     id;	 /* of the current request */
	vd_rev		     revision;	 /* before the renewal, as etcd */
	struct vdi_rpc_blob *waiting;	 /* being sent, or did not fit */
	atomic_bool	     is_blocked; /* VD_FULL was returned: writable sends it again */
};

/* Sends the response, or leaves it to writable. */
static void keep_alive_send(struct vdi_serve_call *call)
{
	struct keep_alive *stream = call->state;
	vd_status	   status;

	atomic_store(&stream->is_blocked, true);
	status = vdi_serve_send(call, VD_BYTES_NONE, stream->waiting);
	if (status == VD_FULL)
		return; /* from here on writable may run concurrently */
	atomic_store(&stream->is_blocked, false);
	stream->waiting = vdi_rpc_blob_unref(stream->waiting);
	if (status == VD_OK)
		call->ops->receive(call);
}

static void keep_alive_done(void *arg, vd_status status, const struct vd_lease_result *result,
			    const struct vd_error *error)
{
	struct vdi_serve_call *call = arg;
	struct keep_alive     *stream = call->state;

	(void) error;
	if (status == VD_OK) {
		struct lease_answer answer = { call->server, result, stream->revision };

		status = vdi_wire_encode(write_id_and_ttl, &answer, &stream->waiting);
	}
	if (status == VD_OK)
		keep_alive_send(call);
	else
		vdi_serve_fail_status(call, status);
	vdi_serve_call_unref(call);
}

static void do_keep_alive(struct vdi_serve_call *call)
{
	struct keep_alive   *stream = call->state;
	struct vdi_auth_user user;
	enum vd_etcd_code    code;
	vd_status	     status;

	if (!vdi_auth_identify(call, &user))
		return;
	code = vdi_auth_check_login(call->server->auth, &user);
	if (code == VD_ETCD_OTHER)
		code = vdi_auth_check_lease(call->server->auth, &user, stream->id, true);
	if (code != VD_ETCD_OTHER) {
		vdi_serve_fail(call, code);
		return;
	}
	stream->revision = vdi_serve_revision(call->server);
	vdi_serve_call_ref(call);
	status = vd_store_lease_keep_alive(call->server->store, stream->id, keep_alive_done, call);
	if (status != VD_OK)
		keep_alive_done(call, status, NULL, NULL);
}

static void keep_alive_message(struct vdi_serve_call *call, struct vdi_rpc_message *message)
{
	struct keep_alive *stream = call->state;
	bool		   keys;
	bool		   is_good;

	if (message->bytes.data == NULL) {
		vdi_serve_finish(call, VDI_RPC_OK, "");
		return;
	}
	is_good = vdi_wire_read_number(message->bytes, &stream->id, &keys);
	vdi_rpc_message_release(message);
	if (is_good)
		vdi_auth_defer_lease(call, do_keep_alive);
	else
		vdi_serve_fail_malformed(call);
}

static void keep_alive_writable(struct vdi_serve_call *call)
{
	struct keep_alive *stream = call->state;

	if (atomic_exchange(&stream->is_blocked, false))
		keep_alive_send(call);
}

static void keep_alive_free(struct vdi_serve_call *call)
{
	struct keep_alive *stream = call->state;

	vdi_rpc_blob_unref(stream->waiting);
	vdi_free(stream);
}

static void keep_alive_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct keep_alive *stream = VDI_NEW(struct keep_alive);

	(void) message;
	if (stream == NULL) {
		vdi_serve_fail_status(call, VD_NOMEM);
		return;
	}
	call->state = stream;
	call->on_message = keep_alive_message;
	call->on_writable = keep_alive_writable;
	call->on_free = keep_alive_free;
}

const struct vdi_serve_method vdi_serve_lease_methods[] = {
	{ "/etcdserverpb.Lease/LeaseGrant", VDI_SERVE_UNARY, grant_begin },
	{ "/etcdserverpb.Lease/LeaseRevoke", VDI_SERVE_UNARY, revoke_begin },
	{ "/etcdserverpb.Lease/LeaseKeepAlive", VDI_SERVE_STREAM, keep_alive_begin },
	{ "/etcdserverpb.Lease/LeaseTimeToLive", VDI_SERVE_UNARY, time_to_live_begin },
	{ "/etcdserverpb.Lease/LeaseLeases", VDI_SERVE_UNARY, leases_begin, true },
	{ 0 },
};
