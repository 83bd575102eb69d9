/* The Cluster service of a store that is one member and stays one (E-160, E-166), and grpc.health.v1 (E-155). */
#include "auth.h"
#include "etcdserver.h"

/* ---- Members ---- */

static void write_member(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_etcdserver *server = arg;
	const char		    *client_url = atomic_load_explicit(&server->client_url, memory_order_acquire);

	vdi_wire_number(out, 1, server->member_id);
	vdi_wire_bytes(out, 2, vd_bytes_of(server->options.name));
	for (size_t i = 0; i < server->options.peer_url_count; i++)
		vdi_wire_bytes_always(out, 3, vd_bytes_of(server->options.peer_urls[i]));
	if (server->options.client_url_count == 0 && client_url)
		vdi_wire_bytes_always(out, 4, vd_bytes_of(client_url));
	for (size_t i = 0; i < server->options.client_url_count; i++)
		vdi_wire_bytes_always(out, 4, vd_bytes_of(server->options.client_urls[i]));
}

static void write_members(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_etcdserver *server = arg;

	vdi_serve_write_header(out, server, 0); /* E-123 */
	vdi_wire_message(out, 2, write_member, server);
}

static void member_list_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	(void) message;
	if (vdi_auth_require_somebody(call))
		vdi_serve_reply(call, write_members, call->server);
}

/* A change of the member with that id: only our own exists. */
static void change_member(struct vdi_serve_call *call, struct vd_bytes message, enum vd_etcd_code own)
{
	int64_t id;

	if (!vdi_wire_read_number(message, &id, NULL))
		vdi_serve_fail_malformed(call);
	else if (vdi_auth_require_admin(call))
		vdi_serve_fail(call, (uint64_t) id == call->server->member_id ? own : VD_ETCD_MEMBER_NOT_FOUND);
}

static void member_add_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	(void) message;
	/* Upstream with its strict reconfiguration check refuses in these words when a member cannot be reached; here none ever can. */
	if (vdi_auth_require_admin(call))
		vdi_serve_fail(call, VD_ETCD_UNHEALTHY);
}

static void member_remove_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	change_member(call, message, VD_ETCD_MEMBER_NOT_ENOUGH_STARTED);
}

static void member_update_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	change_member(call, message, VD_ETCD_MEMBER_BAD_URLS);
}

static void member_promote_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	change_member(call, message, VD_ETCD_MEMBER_NOT_LEARNER);
}

const struct vdi_serve_method vdi_serve_cluster_methods[] = {
	{ "/etcdserverpb.Cluster/MemberList", VDI_SERVE_UNARY, member_list_begin },
	{ "/etcdserverpb.Cluster/MemberAdd", VDI_SERVE_UNARY, member_add_begin },
	{ "/etcdserverpb.Cluster/MemberRemove", VDI_SERVE_UNARY, member_remove_begin },
	{ "/etcdserverpb.Cluster/MemberUpdate", VDI_SERVE_UNARY, member_update_begin },
	{ "/etcdserverpb.Cluster/MemberPromote", VDI_SERVE_UNARY, member_promote_begin },
	{ 0 },
};

/* ---- Health ---- */

enum { HEALTH_SERVING = 1, HEALTH_SERVICE_UNKNOWN = 3 };

static void write_health(struct vdi_wire_out *out, const void *arg)
{
	vdi_wire_number(out, 1, *(const uint64_t *) arg);
}

static bool decode_service(struct vd_bytes message, struct vd_bytes *ret_service)
{
	struct vdi_wire_reader reader;

	*ret_service = (struct vd_bytes) { "", 0 };
	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader))
		if (reader.tag == VDI_WIRE_BYTES(1))
			*ret_service = reader.bytes;
	return !reader.is_bad;
}

static void health_check_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	uint64_t	serving = HEALTH_SERVING;
	struct vd_bytes service;

	if (!decode_service(message, &service))
		vdi_serve_fail_malformed(call);
	else if (service.size)
		call->ops->finish(call, VDI_RPC_NOT_FOUND, "unknown service");
	else
		vdi_serve_reply(call, write_health, &serving);
}

/* One answer, and then nothing: it does not change until the server ends, and then all streams do. */
static void health_watch_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct vdi_rpc_blob *blob;
	struct vd_bytes	     service;
	uint64_t	     health;
	vd_status	     status;

	if (!decode_service(message, &service)) {
		vdi_serve_fail_malformed(call);
		return;
	}
	health = service.size ? HEALTH_SERVICE_UNKNOWN : HEALTH_SERVING;
	status = vdi_wire_encode(write_health, &health, &blob);
	if (status == VD_OK) {
		(void) vdi_serve_send(call, VD_BYTES_NONE, blob); /* the first one has room, or the call has ended */
		vdi_rpc_blob_unref(blob);
	} else {
		vdi_serve_fail_status(call, status);
	}
}

const struct vdi_serve_method vdi_serve_health_methods[] = {
	{ "/grpc.health.v1.Health/Check", VDI_SERVE_UNARY, health_check_begin },
	{ "/grpc.health.v1.Health/Watch", VDI_SERVE_UNARY, health_watch_begin },
	{ 0 },
};
