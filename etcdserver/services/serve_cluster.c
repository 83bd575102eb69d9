/* The Cluster service of a single member, and grpc.health.v1. */
#include "auth.h"
#include "buffer.h"
#include "etcdserver.h"
#include "rpc_endpoint.h"
#include "serve_state.h"

/* ---- Members ---- */

struct members {
	const struct vdi_etcdserver *server;
	struct vdi_buffer
		peer_urls; /* of MemberUpdate, each terminated by a NUL; empty: those of the options */
};

static void write_member(struct vdi_wire_out *out, const void *arg)
{
	const struct members	    *members = arg;
	const struct vdi_etcdserver *server = members->server;
	const char *client_url = atomic_load_explicit(&server->client_url, memory_order_acquire);

	vdi_wire_number(out, 1, server->member_id);
	vdi_wire_bytes(out, 2, vd_bytes_of(server->options.name));
	for (size_t at = 0; at < members->peer_urls.size; at += strlen(members->peer_urls.data + at) + 1)
		vdi_wire_bytes_always(out, 3, vd_bytes_of(members->peer_urls.data + at));
	for (size_t i = 0; members->peer_urls.size == 0 && i < server->options.peer_url_count; i++)
		vdi_wire_bytes_always(out, 3, vd_bytes_of(server->options.peer_urls[i]));
	if (server->options.client_url_count == 0 && client_url)
		vdi_wire_bytes_always(out, 4, vd_bytes_of(client_url));
	for (size_t i = 0; i < server->options.client_url_count; i++)
		vdi_wire_bytes_always(out, 4, vd_bytes_of(server->options.client_urls[i]));
}

static void write_members(struct vdi_wire_out *out, const void *arg)
{
	const struct members *members = arg;

	vdi_serve_write_header(out, members->server, 0); /* as etcd, without a revision */
	vdi_wire_message(out, 2, write_member, members);
}

static void reply_members(struct vdi_serve_call *call)
{
	struct members members = { .server = call->server };

	vdi_buffer_init(&members.peer_urls, VDI_SERVE_PEER_URLS_SIZE_MAX);
	vdi_serve_state_peer_urls(call->server->state, &members.peer_urls);
	if (vdi_buffer_status(&members.peer_urls) == VD_OK)
		vdi_serve_reply(call, write_members, &members);
	else
		vdi_serve_fail_status(call, VD_NOMEM);
	vdi_buffer_fini(&members.peer_urls);
}

static void member_list_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	(void) message;
	if (vdi_auth_require_login(call))
		reply_members(call);
}

/* Rejects a change of a member; only this server's member id exists. */
static void change_member(struct vdi_serve_call *call, struct vd_bytes message, enum vd_etcd_code own)
{
	int64_t id;

	if (!vdi_wire_read_number(message, &id, NULL))
		vdi_serve_fail_malformed(call);
	else if (vdi_auth_require_admin(call))
		vdi_serve_fail(call,
			       (uint64_t) id == call->server->member_id ? own : VD_ETCD_MEMBER_NOT_FOUND);
}

static void member_add_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	(void) message;
	/* With its strict reconfiguration check, upstream rejects a new member that cannot be reached with
	 * this error. This server can reach none. */
	if (vdi_auth_require_admin(call))
		vdi_serve_fail(call, VD_ETCD_UNHEALTHY);
}

static void member_remove_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	change_member(call, message, VD_ETCD_MEMBER_NOT_ENOUGH_STARTED);
}

/* Accepts the URLs that clientv3 accepts: a known scheme, a host with a port or the path of a socket, nothing
 * else. */
static bool is_peer_url(struct vd_bytes bytes)
{
	struct vdi_rpc_endpoint endpoint;
	char			url[512];
	bool			fine;

	if (bytes.size >= sizeof url || memchr(bytes.data, 0, bytes.size))
		return false;
	memcpy(url, bytes.data, bytes.size);
	url[bytes.size] = 0;
	if (strstr(url, ":/") == NULL || strpbrk(url, " \t\r\n?#") ||
	    vdi_rpc_endpoint_parse(url, &endpoint, NULL) != VD_OK)
		return false;
	fine = endpoint.is_socket ||
	       (endpoint.scheme != VDI_RPC_AS_CONFIGURED && strchr(strstr(url, "://") + 3, '/') == NULL);
	vdi_free(endpoint.address);
	return fine;
}

/* Reads the URLs of a MemberUpdateRequest; false: one is invalid, or there are none. */
static bool take_peer_urls(struct vd_bytes message, struct vdi_buffer *urls)
{
	struct vdi_wire_reader reader;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader)) {
		if (reader.tag != VDI_WIRE_BYTES(2))
			continue;
		if (!is_peer_url(reader.bytes))
			return false;
		vdi_buffer_append(urls, reader.bytes);
		vdi_buffer_append_char(urls, 0);
	}
	return vdi_buffer_status(urls) == VD_OK && urls->size;
}

/* The URLs are only shown in the list of members; nothing connects to them. */
static void work_member_update(struct vdi_serve_call *call)
{
	struct vdi_buffer urls;
	vd_status	  status = VD_OK;
	bool		  is_good;

	vdi_buffer_init(&urls, VDI_SERVE_PEER_URLS_SIZE_MAX);
	is_good = take_peer_urls(call->request.bytes, &urls);
	if (is_good)
		status = vdi_serve_state_set_peer_urls(call->server->state, vdi_buffer_bytes(&urls));
	vdi_buffer_fini(&urls);
	if (!is_good)
		vdi_serve_fail(call, VD_ETCD_MEMBER_BAD_URLS);
	else if (status != VD_OK)
		vdi_serve_fail_status(call, status);
	else
		reply_members(call);
}

static void member_update_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	int64_t id;

	if (!vdi_wire_read_number(message, &id, NULL))
		vdi_serve_fail_malformed(call);
	else if (!vdi_auth_require_admin(call))
		return;
	else if ((uint64_t) id != call->server->member_id)
		vdi_serve_fail(call, VD_ETCD_MEMBER_NOT_FOUND);
	else
		vdi_serve_defer(call, VDI_SERVE_WORKER_SLOW, work_member_update);
}

static void member_promote_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	change_member(call, message, VD_ETCD_MEMBER_NOT_LEARNER);
}

const struct vdi_serve_method vdi_serve_cluster_methods[] = {
	{ "/etcdserverpb.Cluster/MemberList", VDI_SERVE_UNARY, member_list_begin, true },
	{ "/etcdserverpb.Cluster/MemberAdd", VDI_SERVE_UNARY, member_add_begin, true },
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
		vdi_serve_finish(call, VDI_RPC_NOT_FOUND, "unknown service");
	else
		vdi_serve_reply(call, write_health, &serving);
}

/* Sends one response. The status does not change until the server ends, and then all streams end. */
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
		(void) vdi_serve_send(call, VD_BYTES_NONE,
				      blob); /* the first message has room, or the call has ended */
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
