/* The Maintenance service of a single member that is always the leader. Snapshot is in serve_snapshot.c. */
#include <stdio.h>
#include <stdlib.h>

#include "auth.h"
#include "env.h"
#include "etcdserver.h"
#include "serve_hash.h"
#include "serve_snapshot.h"
#include "serve_state.h"

/* ---- Status ---- */

struct status_answer {
	struct vdi_etcdserver  *server;
	struct vd_store_status	store;
	struct vdi_serve_alarm *alarms;
	size_t			alarm_count;
};

/* As Go prints the message, in Status' list of errors. */
static void write_alarm_text(struct vdi_wire_out *out, const struct vdi_serve_alarm *alarm)
{
	static const char *const names[] = { NULL, "NOSPACE", "CORRUPT" };
	char			 text[96];
	int			 size = 0;

	text[0] = 0;
	if (alarm->member_id)
		size = snprintf(text, sizeof text, "memberID:%llu", (unsigned long long) alarm->member_id);
	if (alarm->kind > 0 && alarm->kind < (int64_t) VDI_ARRAY_SIZE(names))
		(void) snprintf(text + size, sizeof text - (size_t) size, "%salarm:%s", size ? " " : "",
				names[alarm->kind]);
	else if (alarm->kind)
		(void) snprintf(text + size, sizeof text - (size_t) size, "%salarm:%lld", size ? " " : "",
				(long long) alarm->kind);
	vdi_wire_bytes_always(out, 8, vd_bytes_of(text));
}

static void write_nothing(struct vdi_wire_out *out, const void *arg)
{
	(void) out;
	(void) arg;
}

static void write_status(struct vdi_wire_out *out, const void *arg)
{
	const struct status_answer  *answer = arg;
	const struct vdi_etcdserver *server = answer->server;
	int64_t quota = server->options.quota_bytes ? server->options.quota_bytes : VDI_ETCD_QUOTA_DEFAULT;
	/* Stands for the index of a raft log: grows with every revision and never decreases. */
	uint64_t index = (uint64_t) answer->store.current + 3;

	vdi_serve_write_header(out, server, answer->store.current);
	vdi_wire_bytes(out, 2, vd_bytes_of(VDI_ETCD_VERSION));
	vdi_wire_number(out, 3, (uint64_t) VDI_MAX(answer->store.size_bytes, 1));
	vdi_wire_number(out, 4, server->member_id);
	vdi_wire_number(out, 5, index);
	vdi_wire_number(out, 6, server->term);
	vdi_wire_number(out, 7, index);
	for (size_t i = 0; i < answer->alarm_count; i++)
		write_alarm_text(out, &answer->alarms[i]);
	vdi_wire_number(out, 9, (uint64_t) VDI_MAX(answer->store.size_bytes, 1));
	vdi_wire_bytes(out, 11, vd_bytes_of(VDI_ETCD_STORAGE_VERSION));
	vdi_wire_number(out, 12, (uint64_t) quota);
	vdi_wire_message(out, 13, write_nothing, NULL);
}

/* The caller frees *ret_alarms; NULL if there are none. */
static vd_status copy_alarms(struct vdi_etcdserver *server, int64_t kind, struct vdi_serve_alarm **ret_alarms,
			     size_t *ret_count)
{
	struct vdi_serve_alarm *alarms = NULL;
	size_t			room = vdi_serve_state_alarms(server->state, kind, NULL, 0);
	size_t			count = 0;

	if (room) {
		alarms = vdi_alloc(room * sizeof *alarms);
		if (alarms == NULL)
			return VD_NOMEM;
		count = vdi_serve_state_alarms(server->state, kind, alarms, room);
	}
	*ret_alarms = alarms;
	*ret_count = VDI_MIN(count, room);
	return VD_OK;
}

static void status_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct status_answer answer = { .server = call->server };
	vd_status	     status;

	(void) message;
	if (!vdi_auth_require_login(call))
		return;
	status = vd_store_status_get(call->server->store, &answer.store);
	if (status == VD_OK)
		status = copy_alarms(call->server, VDI_ALARM_NONE, &answer.alarms, &answer.alarm_count);
	if (status == VD_OK)
		vdi_serve_reply(call, write_status, &answer);
	else
		vdi_serve_fail_status(call, status);
	vdi_free(answer.alarms);
}

/* ---- Alarm ---- */

enum { ALARM_GET, ALARM_ACTIVATE, ALARM_DEACTIVATE };

struct alarm_request {
	int64_t		       action;
	struct vdi_serve_alarm alarm;
};

struct alarm_answer {
	struct vdi_etcdserver	     *server;
	vd_rev			      revision; /* read once: counting and writing must use the same value */
	const struct vdi_serve_alarm *alarms;
	size_t			      count;
};

static bool decode_alarm(struct vd_bytes message, struct alarm_request *request)
{
	struct vdi_wire_reader reader;

	memset(request, 0, sizeof *request);
	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader)) {
		if (reader.tag == VDI_WIRE_VARINT(1))
			request->action = (int32_t) reader.number;
		else if (reader.tag == VDI_WIRE_VARINT(2))
			request->alarm.member_id = reader.number;
		else if (reader.tag == VDI_WIRE_VARINT(3))
			request->alarm.kind = (int32_t) reader.number;
	}
	return !reader.is_bad;
}

static void write_alarm(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_serve_alarm *alarm = arg;

	vdi_wire_number(out, 1, alarm->member_id);
	vdi_wire_number(out, 2, (uint64_t) alarm->kind);
}

static void write_alarms(struct vdi_wire_out *out, const void *arg)
{
	const struct alarm_answer *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->revision);
	for (size_t i = 0; i < answer->count; i++)
		vdi_wire_message(out, 2, write_alarm, &answer->alarms[i]);
}

static void reply_alarms(struct vdi_serve_call *call, const struct vdi_serve_alarm *alarms, size_t count)
{
	struct alarm_answer answer = { call->server, vdi_serve_revision(call->server), alarms, count };

	vdi_serve_reply(call, write_alarms, &answer);
}

static void work_alarm(struct vdi_serve_call *call)
{
	struct alarm_request request;
	bool		     changed = false;
	vd_status	     status = VD_OK;

	(void) decode_alarm(call->request.bytes, &request);
	if (request.alarm.kind != VDI_ALARM_NONE)
		status = vdi_serve_state_set_alarm(call->server->state, &request.alarm,
						   request.action == ALARM_ACTIVATE, &changed);
	if (status != VD_OK)
		vdi_serve_fail_status(call, status);
	else /* activating is always answered with the alarm, deactivating only once */
		reply_alarms(call, &request.alarm,
			     request.alarm.kind != VDI_ALARM_NONE &&
				     (changed || request.action == ALARM_ACTIVATE));
}

static void alarm_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct alarm_request	request;
	struct vdi_serve_alarm *alarms;
	size_t			count;
	vd_status		status;

	if (!decode_alarm(message, &request)) {
		vdi_serve_fail_malformed(call);
		return;
	}
	if (!(request.action == ALARM_GET ? vdi_auth_require_login(call) : vdi_auth_require_admin(call)))
		return;
	if (request.action == ALARM_ACTIVATE || request.action == ALARM_DEACTIVATE) {
		vdi_serve_defer(call, VDI_SERVE_WORKER_SLOW, work_alarm);
		return;
	}
	status = request.action == ALARM_GET ?
			 copy_alarms(call->server, request.alarm.kind, &alarms, &count) :
			 VD_OK;
	if (status != VD_OK) {
		vdi_serve_fail_status(call, status);
		return;
	}
	if (request.action != ALARM_GET)
		alarms = NULL, count = 0;
	reply_alarms(call, alarms, count);
	vdi_free(alarms);
}

/* ---- What one member has little to do for ---- */

/* Nothing to do: the store releases space itself (journal files, free pages of the checkpoint). */
static void defragment_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	(void) message;
	if (vdi_auth_require_admin(call))
		vdi_serve_reply(call, write_nothing, NULL);
}

static void move_leader_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct vdi_wire_reader reader;
	uint64_t	       target = 0;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader))
		if (reader.tag == VDI_WIRE_VARINT(1))
			target = reader.number;
	if (reader.is_bad) {
		vdi_serve_fail_malformed(call);
		return;
	}
	if (!vdi_auth_require_admin(call))
		return;
	if (target == call->server->member_id)
		vdi_serve_reply(call, write_nothing, NULL);
	else
		vdi_serve_fail(call, VD_ETCD_BAD_LEADER_TRANSFEREE);
}

static void write_downgrade(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_serve_header *header = arg;

	vdi_serve_write_header(out, header->server, header->revision);
	vdi_wire_bytes(out, 2, vd_bytes_of(VDI_ETCD_CLUSTER_VERSION));
}

/* Parses "3.6" or "3.6.0", with any suffix that semver allows. False: not a version. */
static bool parse_version(struct vd_bytes text, long *ret_major, long *ret_minor)
{
	char  copy[64];
	char *end;

	if (text.size >= sizeof copy)
		return false;
	memcpy(copy, text.data, text.size);
	copy[text.size] = 0;
	if (copy[0] < '0' || copy[0] > '9')
		return false;
	*ret_major = strtol(copy, &end, 10);
	if (*end != '.' || end[1] < '0' || end[1] > '9')
		return false;
	*ret_minor = strtol(end + 1, &end, 10);
	return *end == 0 || (*end == '.' && end[1] >= '0' && end[1] <= '9');
}

static void downgrade_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct vdi_serve_header header = { call->server, 0 };
	struct vd_bytes		version = { "", 0 };
	uint64_t		action = 0;
	struct vdi_wire_reader	reader;
	long			major;
	long			minor;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader)) {
		if (reader.tag == VDI_WIRE_VARINT(1))
			action = reader.number;
		else if (reader.tag == VDI_WIRE_BYTES(2))
			version = reader.bytes;
	}
	if (reader.is_bad) {
		vdi_serve_fail_malformed(call);
		return;
	}
	if (!vdi_auth_require_admin(call))
		return;
	header.revision = vdi_serve_revision(call->server);
	if (action == 2) /* CANCEL */
		vdi_serve_reply(call, write_downgrade, &header);
	else if (action > 2)
		vdi_serve_finish(call, VDI_RPC_UNKNOWN, "etcdserver: unknown method");
	else if (!parse_version(version, &major, &minor))
		vdi_serve_fail(call, VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	else if (major != 3 || minor != 6)
		vdi_serve_fail(call, VD_ETCD_INVALID_DOWNGRADE_TARGET_VERSION);
	else if (action == 0)
		vdi_serve_reply(call, write_downgrade, &header);
	else /* ENABLE: the files are not etcd's, so no older etcd could read them */
		vdi_serve_fail(call, VD_ETCD_INVALID_DOWNGRADE_TARGET_VERSION);
}

const struct vdi_serve_method vdi_serve_maintenance_methods[] = {
	{ "/etcdserverpb.Maintenance/Status", VDI_SERVE_UNARY, status_begin, true },
	{ "/etcdserverpb.Maintenance/Alarm", VDI_SERVE_UNARY, alarm_begin },
	{ "/etcdserverpb.Maintenance/HashKV", VDI_SERVE_UNARY, vdi_serve_hash_kv_begin, true },
	{ "/etcdserverpb.Maintenance/Hash", VDI_SERVE_UNARY, vdi_serve_hash_begin, true },
	{ "/etcdserverpb.Maintenance/Defragment", VDI_SERVE_UNARY, defragment_begin, true },
	{ "/etcdserverpb.Maintenance/Snapshot", VDI_SERVE_UNARY, vdi_serve_snapshot_begin, true },
	{ "/etcdserverpb.Maintenance/MoveLeader", VDI_SERVE_UNARY, move_leader_begin },
	{ "/etcdserverpb.Maintenance/Downgrade", VDI_SERVE_UNARY, downgrade_begin },
	{ 0 },
};
