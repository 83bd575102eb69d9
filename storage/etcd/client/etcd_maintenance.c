/* Maintenance and cluster calls with a single response. */
#include "etcd_call.h"

#include <rpc.pb-c.h>

/* Unpacks the response; on failure fills own and returns NULL. */
static void *unpack(struct vdi_etcd_call *call, struct vd_bytes message,
		    const ProtobufCMessageDescriptor *descriptor, struct vd_etcd_error *own)
{
	ProtobufCMessage *answer;
	vd_status	  status = vdi_etcd_proto_unpack(descriptor, message, &answer, own);

	if (status == VD_OK)
		return answer;
	(void) vdi_etcd_call_unreadable(call, status, own);
	return NULL;
}

/* ---- Status ---- */

static void status_finished(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	vd_etcd_status_fn	      done = (vd_etcd_status_fn) call->done;
	Etcdserverpb__StatusResponse *answer = NULL;
	struct vd_etcd_error	      own;
	struct vd_etcd_header	      header;
	struct vd_etcd_status	      status;

	if (error == NULL &&
	    (answer = unpack(call, message, &etcdserverpb__status_response__descriptor, &own)) == NULL)
		error = &own;
	if (error) {
		done(call->arg, error, NULL, NULL);
		return;
	}
	vdi_etcd_proto_header(answer->header, &header);
	status = (struct vd_etcd_status) {
		.endpoint = call->end.endpoint,
		.version = answer->version,
		.storage_version = answer->storageversion,
		.db_size = answer->dbsize,
		.db_size_in_use = answer->dbsizeinuse,
		.db_size_quota = answer->dbsizequota,
		.leader = answer->leader,
		.raft_index = answer->raftindex,
		.raft_term = answer->raftterm,
		.raft_applied_index = answer->raftappliedindex,
		.is_learner = answer->islearner,
		.errors = (const char *const *) answer->errors,
		.error_count = answer->n_errors,
	};
	done(call->arg, NULL, &header, &status);
	vdi_etcd_proto_free(&answer->base);
}

vd_status vd_etcd_status_get(struct vd_etcd *client, const struct vd_etcd_call *call, vd_etcd_status_fn done,
			     void *arg)
{
	Etcdserverpb__StatusRequest request = ETCDSERVERPB__STATUS_REQUEST__INIT;

	return vdi_etcd_call_message(client, call, VDI_ETCD_METHOD_STATUS, status_finished,
				     (vdi_etcd_any_fn) done, arg, &request.base);
}

/* ---- Alarms ---- */

static void alarm_finished(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	vd_etcd_alarms_fn	     done = (vd_etcd_alarms_fn) call->done;
	Etcdserverpb__AlarmResponse *answer = NULL;
	struct vd_etcd_error	     own;
	struct vd_etcd_header	     header;
	struct vd_etcd_alarm	    *alarms = NULL;

	if (error == NULL &&
	    (answer = unpack(call, message, &etcdserverpb__alarm_response__descriptor, &own)) == NULL)
		error = &own;
	if (answer && answer->n_alarms && (alarms = vdi_calloc(answer->n_alarms, sizeof *alarms)) == NULL) {
		(void) vdi_etcd_call_unreadable(
			call, vdi_etcd_error_set(&own, VD_NOMEM, VDI_ETCD_NO_MEMORY_TEXT), &own);
		error = &own;
	}
	if (error) {
		done(call->arg, error, NULL, NULL, 0);
	} else {
		vdi_etcd_proto_header(answer->header, &header);
		for (size_t i = 0; i < answer->n_alarms; i++)
			alarms[i] =
				(struct vd_etcd_alarm) { answer->alarms[i]->memberid,
							 (enum vd_etcd_alarm_kind) answer->alarms[i]->alarm };
		done(call->arg, NULL, &header, alarms, answer->n_alarms);
	}
	vdi_free(alarms);
	if (answer)
		vdi_etcd_proto_free(&answer->base);
}

vd_status vd_etcd_alarm(struct vd_etcd *client, const struct vd_etcd_call *call,
			enum vd_etcd_alarm_action action, const struct vd_etcd_alarm *alarm,
			vd_etcd_alarms_fn done, void *arg)
{
	Etcdserverpb__AlarmRequest request = ETCDSERVERPB__ALARM_REQUEST__INIT;

	if ((unsigned) action > VD_ETCD_ALARM_DEACTIVATE ||
	    (alarm && (unsigned) alarm->kind > VD_ETCD_ALARM_CORRUPT))
		return VD_INVALID_ARGUMENT;
	request.action = (Etcdserverpb__AlarmRequest__AlarmAction) action;
	if (alarm) {
		request.memberid = alarm->member_id;
		request.alarm = (Etcdserverpb__AlarmType) alarm->kind;
	}
	return vdi_etcd_call_message(client, call, VDI_ETCD_METHOD_ALARM, alarm_finished,
				     (vdi_etcd_any_fn) done, arg, &request.base);
}

/* ---- Defragment, hash, move the leader ---- */

vd_status vd_etcd_defragment(struct vd_etcd *client, const struct vd_etcd_call *call, vd_etcd_done_fn done,
			     void *arg)
{
	Etcdserverpb__DefragmentRequest request = ETCDSERVERPB__DEFRAGMENT_REQUEST__INIT;

	return vdi_etcd_call_message(client, call, VDI_ETCD_METHOD_DEFRAGMENT, vdi_etcd_finish_header,
				     (vdi_etcd_any_fn) done, arg, &request.base);
}

static void hash_finished(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	vd_etcd_hash_fn		      done = (vd_etcd_hash_fn) call->done;
	Etcdserverpb__HashKVResponse *answer = NULL;
	struct vd_etcd_error	      own;
	struct vd_etcd_header	      header;

	if (error == NULL &&
	    (answer = unpack(call, message, &etcdserverpb__hash_kvresponse__descriptor, &own)) == NULL)
		error = &own;
	if (error) {
		done(call->arg, error, NULL, 0, 0, 0);
		return;
	}
	vdi_etcd_proto_header(answer->header, &header);
	done(call->arg, NULL, &header, answer->hash, answer->compact_revision, answer->hash_revision);
	vdi_etcd_proto_free(&answer->base);
}

vd_status vd_etcd_hash_kv(struct vd_etcd *client, const struct vd_etcd_call *call, vd_rev revision,
			  vd_etcd_hash_fn done, void *arg)
{
	Etcdserverpb__HashKVRequest request = ETCDSERVERPB__HASH_KVREQUEST__INIT;

	request.revision = revision;
	return vdi_etcd_call_message(client, call, VDI_ETCD_METHOD_HASH_KV, hash_finished,
				     (vdi_etcd_any_fn) done, arg, &request.base);
}

vd_status vd_etcd_move_leader(struct vd_etcd *client, const struct vd_etcd_call *call, uint64_t member_id,
			      vd_etcd_done_fn done, void *arg)
{
	Etcdserverpb__MoveLeaderRequest request = ETCDSERVERPB__MOVE_LEADER_REQUEST__INIT;

	request.targetid = member_id;
	return vdi_etcd_call_message(client, call, VDI_ETCD_METHOD_MOVE_LEADER, vdi_etcd_finish_header,
				     (vdi_etcd_any_fn) done, arg, &request.base);
}

/* ---- Members ---- */

static void members_finished(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	vd_etcd_members_fn		  done = (vd_etcd_members_fn) call->done;
	Etcdserverpb__MemberListResponse *answer = NULL;
	struct vd_etcd_error		  own;
	struct vd_etcd_header		  header;
	struct vd_etcd_member		 *members = NULL;

	if (error == NULL &&
	    (answer = unpack(call, message, &etcdserverpb__member_list_response__descriptor, &own)) == NULL)
		error = &own;
	if (answer && answer->n_members &&
	    (members = vdi_calloc(answer->n_members, sizeof *members)) == NULL) {
		(void) vdi_etcd_call_unreadable(
			call, vdi_etcd_error_set(&own, VD_NOMEM, VDI_ETCD_NO_MEMORY_TEXT), &own);
		error = &own;
	}
	if (error) {
		done(call->arg, error, NULL, NULL, 0);
	} else {
		vdi_etcd_proto_header(answer->header, &header);
		for (size_t i = 0; i < answer->n_members; i++) {
			const Etcdserverpb__Member *theirs = answer->members[i];

			members[i] = (struct vd_etcd_member) {
				.id = theirs->id,
				.name = theirs->name,
				.peer_urls = (const char *const *) theirs->peerurls,
				.peer_url_count = theirs->n_peerurls,
				.client_urls = (const char *const *) theirs->clienturls,
				.client_url_count = theirs->n_clienturls,
				.is_learner = theirs->islearner,
			};
		}
		done(call->arg, NULL, &header, members, answer->n_members);
	}
	vdi_free(members);
	if (answer)
		vdi_etcd_proto_free(&answer->base);
}

vd_status vd_etcd_member_list(struct vd_etcd *client, const struct vd_etcd_call *call, bool linearizable,
			      vd_etcd_members_fn done, void *arg)
{
	Etcdserverpb__MemberListRequest request = ETCDSERVERPB__MEMBER_LIST_REQUEST__INIT;

	request.linearizable = linearizable;
	return vdi_etcd_call_message(client, call, VDI_ETCD_METHOD_MEMBER_LIST, members_finished,
				     (vdi_etcd_any_fn) done, arg, &request.base);
}
