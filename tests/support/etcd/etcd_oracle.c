/* protobuf-c recurses without a limit, so it gets a message only after our decoder has accepted it. */
#include "etcd_oracle.h"

#include <rpc.pb-c.h>

static void same_header(const Etcdserverpb__ResponseHeader *theirs, const struct vd_etcd_header *ours)
{
	VDI_CHECK(ours->cluster_id == (theirs ? theirs->cluster_id : 0));
	VDI_CHECK(ours->member_id == (theirs ? theirs->member_id : 0));
	VDI_CHECK(ours->revision == (theirs ? theirs->revision : 0));
	VDI_CHECK(ours->raft_term == (theirs ? theirs->raft_term : 0));
}

static vd_rev revision_of(const Etcdserverpb__ResponseHeader *header)
{
	return header ? header->revision : 0;
}

static void same_bytes(ProtobufCBinaryData theirs, struct vd_bytes ours)
{
	VDI_CHECK(vd_bytes_equal((struct vd_bytes) { theirs.data, theirs.len }, ours));
}

static void same_kv(const Mvccpb__KeyValue *theirs, const struct vd_kv *ours)
{
	VDI_CHECK((theirs == NULL) == (ours == NULL));
	if (theirs == NULL)
		return;
	same_bytes(theirs->key, vd_kv_key(ours));
	same_bytes(theirs->value, vd_kv_value(ours));
	VDI_CHECK(theirs->create_revision == ours->create_rev && theirs->mod_revision == ours->mod_rev);
	VDI_CHECK(theirs->version == ours->version && theirs->lease == ours->lease);
}

static void same_range(const Etcdserverpb__RangeResponse *theirs, const struct vd_range_result *ours)
{
	VDI_CHECK(ours->store_revision == revision_of(theirs->header));
	VDI_CHECK(theirs->n_kvs == ours->kv_count && theirs->count == ours->count &&
		  theirs->more == ours->more);
	for (size_t i = 0; i < ours->kv_count; i++)
		same_kv(theirs->kvs[i], ours->kvs[i]);
}

static void same_put(const Etcdserverpb__PutResponse *theirs, const struct vd_op_result *ours)
{
	VDI_CHECK(ours->kind == VD_OP_PUT && ours->revision == revision_of(theirs->header));
	VDI_CHECK(ours->previous_count == (theirs->prev_kv != NULL));
	if (theirs->prev_kv)
		same_kv(theirs->prev_kv, ours->previous[0]);
}

static void same_delete(const Etcdserverpb__DeleteRangeResponse *theirs, const struct vd_op_result *ours)
{
	VDI_CHECK(ours->kind == VD_OP_DELETE && ours->revision == revision_of(theirs->header));
	VDI_CHECK(ours->deleted == theirs->deleted && ours->previous_count == theirs->n_prev_kvs);
	for (size_t i = 0; i < ours->previous_count; i++)
		same_kv(theirs->prev_kvs[i], ours->previous[i]);
}

static void same_txn(const Etcdserverpb__TxnResponse *theirs, const struct vd_txn_result *ours)
{
	VDI_CHECK(ours->revision == revision_of(theirs->header));
	VDI_CHECK(ours->succeeded == theirs->succeeded && ours->result_count == theirs->n_responses);
	for (size_t i = 0; i < ours->result_count; i++) {
		const Etcdserverpb__ResponseOp *response = theirs->responses[i];
		const struct vd_op_result      *result = &ours->results[i];

		switch (response->response_case) {
		case ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_RANGE:
			VDI_CHECK(result->kind == VD_OP_RANGE);
			same_range(response->response_range, &result->range);
			break;
		case ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_PUT:
			same_put(response->response_put, result);
			break;
		case ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_DELETE_RANGE:
			same_delete(response->response_delete_range, result);
			break;
		case ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_TXN:
			VDI_CHECK(result->kind == VD_OP_TXN && result->txn);
			same_txn(response->response_txn, result->txn);
			break;
		default: VDI_UNREACHABLE("a result of no kind");
		}
	}
}

static void same_watch(const Etcdserverpb__WatchResponse	 *theirs,
		       const struct vdi_etcd_wire_watch_response *ours,
		       const struct vdi_etcd_wire_events	 *events)
{
	size_t bytes = 0;

	VDI_CHECK(ours->has_header == (theirs->header != NULL));
	same_header(theirs->header, &ours->header);
	VDI_CHECK(ours->watch_id == theirs->watch_id && ours->compact_revision == theirs->compact_revision);
	VDI_CHECK(ours->created == theirs->created && ours->canceled == theirs->canceled &&
		  ours->fragment == theirs->fragment);
	/* Theirs ends at the first NUL. */
	VDI_CHECK(ours->cancel_reason.size >= strlen(theirs->cancel_reason) &&
		  (ours->cancel_reason.size == 0 ||
		   strncmp(ours->cancel_reason.data, theirs->cancel_reason, ours->cancel_reason.size) == 0));
	VDI_CHECK(events->count == theirs->n_events);
	for (size_t i = 0; i < events->count; i++) {
		const struct vd_store_event *event = &events->items[i];

		VDI_CHECK(event->is_delete == (theirs->events[i]->type == MVCCPB__EVENT__EVENT_TYPE__DELETE));
		same_kv(theirs->events[i]->kv, event->kv);
		same_kv(theirs->events[i]->prev_kv, event->previous);
		bytes += event->kv->key_size + event->kv->value_size;
		bytes += event->previous ? event->previous->key_size + event->previous->value_size : 0;
		VDI_CHECK(event->kv->sub == (i && events->items[i - 1].kv->mod_rev == event->kv->mod_rev ?
						     events->items[i - 1].kv->sub + 1 :
						     0));
	}
	VDI_CHECK(bytes == events->bytes);
}

static const ProtobufCMessageDescriptor *descriptor_of(enum etcd_oracle_kind kind)
{
	switch (kind) {
	case ETCD_ORACLE_RANGE: return &etcdserverpb__range_response__descriptor;
	case ETCD_ORACLE_RANGE_STREAM: return &etcdserverpb__range_stream_response__descriptor;
	case ETCD_ORACLE_PUT: return &etcdserverpb__put_response__descriptor;
	case ETCD_ORACLE_DELETE: return &etcdserverpb__delete_range_response__descriptor;
	case ETCD_ORACLE_TXN: return &etcdserverpb__txn_response__descriptor;
	case ETCD_ORACLE_WATCH: return &etcdserverpb__watch_response__descriptor;
	default: VDI_UNREACHABLE("no such kind");
	}
}

/* NULL unless protobuf-c writes these very bytes again. */
static ProtobufCMessage *unpack_canonical(enum etcd_oracle_kind kind, struct vd_bytes message)
{
	ProtobufCMessage *theirs =
		protobuf_c_message_unpack(descriptor_of(kind), NULL, message.size, message.data);
	uint8_t *again;
	bool	 same;

	if (theirs == NULL)
		return NULL;
	same = protobuf_c_message_get_packed_size(theirs) == message.size && theirs->n_unknown_fields == 0;
	if (same) {
		again = vdi_alloc(message.size + 1);
		VDI_CHECK(again != NULL);
		same = protobuf_c_message_pack(theirs, again) == message.size &&
		       (message.size == 0 || memcmp(again, message.data, message.size) == 0);
		vdi_free(again);
	}
	if (!same) {
		protobuf_c_message_free_unpacked(theirs, NULL);
		return NULL;
	}
	return theirs;
}

vd_status etcd_oracle_decode(enum etcd_oracle_kind kind, struct vd_bytes message)
{
	struct vd_etcd_header		    header = { 0 };
	struct vd_range_result		    range = { 0 };
	struct vd_op_result		    op = { 0 };
	struct vd_txn_result		    txn = { 0 };
	struct vdi_etcd_wire_watch_response watch = { 0 };
	struct vdi_etcd_wire_events	    events = { 0 };
	struct vd_error			    error = { 0 };
	ProtobufCMessage		   *theirs = NULL;
	vd_status			    status = VD_OK;

	switch (kind) {
	case ETCD_ORACLE_RANGE:
		status = vdi_etcd_wire_range_response_decode(message, &header, &range, &error);
		break;
	case ETCD_ORACLE_RANGE_STREAM:
		status = vdi_etcd_wire_range_stream_response_decode(message, &header, &range, &error);
		break;
	case ETCD_ORACLE_PUT:
		status = vdi_etcd_wire_op_response_decode(VD_OP_PUT, message, &header, &op, &error);
		break;
	case ETCD_ORACLE_DELETE:
		status = vdi_etcd_wire_op_response_decode(VD_OP_DELETE, message, &header, &op, &error);
		break;
	case ETCD_ORACLE_TXN:
		status = vdi_etcd_wire_txn_response_decode(message, &header, &txn, &error);
		break;
	case ETCD_ORACLE_WATCH:
		status = vdi_etcd_wire_watch_response_decode(message, &watch, &events, &error);
		break;
	default: VDI_UNREACHABLE("no such kind");
	}
	if (status == VD_OK)
		theirs = unpack_canonical(kind, message);
	else
		VDI_CHECK(status == error.code && error.message[0] &&
			  (status == VD_CORRUPT || status == VD_NOMEM));
	if (theirs) {
		switch (kind) {
		case ETCD_ORACLE_RANGE:
			same_header(((Etcdserverpb__RangeResponse *) theirs)->header, &header);
			same_range((Etcdserverpb__RangeResponse *) theirs, &range);
			break;
		case ETCD_ORACLE_RANGE_STREAM:
			if (((Etcdserverpb__RangeStreamResponse *) theirs)->range_response)
				same_range(((Etcdserverpb__RangeStreamResponse *) theirs)->range_response,
					   &range);
			break;
		case ETCD_ORACLE_PUT:
			same_header(((Etcdserverpb__PutResponse *) theirs)->header, &header);
			same_put((Etcdserverpb__PutResponse *) theirs, &op);
			break;
		case ETCD_ORACLE_DELETE:
			same_header(((Etcdserverpb__DeleteRangeResponse *) theirs)->header, &header);
			same_delete((Etcdserverpb__DeleteRangeResponse *) theirs, &op);
			break;
		case ETCD_ORACLE_TXN:
			same_header(((Etcdserverpb__TxnResponse *) theirs)->header, &header);
			same_txn((Etcdserverpb__TxnResponse *) theirs, &txn);
			break;
		default: same_watch((Etcdserverpb__WatchResponse *) theirs, &watch, &events); break;
		}
		protobuf_c_message_free_unpacked(theirs, NULL);
	}
	vdi_etcd_wire_range_result_fini(&range);
	vdi_etcd_wire_op_result_fini(&op);
	vdi_etcd_wire_txn_result_fini(&txn);
	vdi_etcd_wire_events_fini(&events);
	return status;
}
