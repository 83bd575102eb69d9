/* The hand-written codec: field numbers, what is refused, and agreement with protobuf-c over random
 * messages. */
#include <rpc.pb-c.h>

#include "etcd_oracle.h"
#include "etcd_wire.h"
#include "rand.h"
#include "vdtest.h"

#define ROUNDS 400

/* ---- Random messages, in protobuf-c's structures; memory from the test's arena ---- */

static char   arena[1 << 20];
static size_t arena_used;

static void *take(size_t size)
{
	void *place = arena + arena_used;

	size = (size + 15) & ~(size_t) 15;
	assert_true(arena_used + size <= sizeof arena);
	arena_used += size;
	memset(place, 0, size);
	return place;
}

static int64_t random_number(struct vdi_rand *rand)
{
	switch (vdi_rand_below(rand, 4)) {
	case 0: return 0;
	case 1: return (int64_t) vdi_rand_below(rand, 300);
	case 2: return -(int64_t) vdi_rand_below(rand, 300);
	default: return (int64_t) vdi_rand_next(rand);
	}
}

static ProtobufCBinaryData random_bytes(struct vdi_rand *rand)
{
	ProtobufCBinaryData bytes = { vdi_rand_below(rand, vdi_rand_once_in(rand, 10) ? 300 : 8), NULL };

	bytes.data = take(bytes.len + 1);
	for (size_t i = 0; i < bytes.len; i++)
		bytes.data[i] = (uint8_t) vdi_rand_next(rand);
	return bytes;
}

static Etcdserverpb__ResponseHeader *random_header(struct vdi_rand *rand)
{
	Etcdserverpb__ResponseHeader *header = take(sizeof *header);

	if (vdi_rand_once_in(rand, 4))
		return NULL;
	etcdserverpb__response_header__init(header);
	header->cluster_id = (uint64_t) random_number(rand);
	header->member_id = (uint64_t) random_number(rand);
	header->revision = random_number(rand);
	header->raft_term = (uint64_t) random_number(rand);
	return header;
}

static Mvccpb__KeyValue *random_kv(struct vdi_rand *rand)
{
	Mvccpb__KeyValue *kv = take(sizeof *kv);

	mvccpb__key_value__init(kv);
	kv->key = random_bytes(rand);
	kv->value = random_bytes(rand);
	kv->create_revision = random_number(rand);
	kv->mod_revision = (int64_t) vdi_rand_below(rand, 3);
	kv->version = random_number(rand);
	kv->lease = random_number(rand);
	return kv;
}

static Mvccpb__KeyValue **random_kvs(struct vdi_rand *rand, size_t *ret_count)
{
	Mvccpb__KeyValue **kvs = take(20 * sizeof *kvs);

	*ret_count = vdi_rand_below(rand, 20);
	for (size_t i = 0; i < *ret_count; i++)
		kvs[i] = random_kv(rand);
	return kvs;
}

static Etcdserverpb__RangeResponse *random_range(struct vdi_rand *rand)
{
	Etcdserverpb__RangeResponse *range = take(sizeof *range);

	etcdserverpb__range_response__init(range);
	range->header = random_header(rand);
	range->kvs = random_kvs(rand, &range->n_kvs);
	range->more = vdi_rand_once_in(rand, 2);
	range->count = random_number(rand);
	return range;
}

static Etcdserverpb__PutResponse *random_put(struct vdi_rand *rand)
{
	Etcdserverpb__PutResponse *put = take(sizeof *put);

	etcdserverpb__put_response__init(put);
	put->header = random_header(rand);
	put->prev_kv = vdi_rand_once_in(rand, 2) ? random_kv(rand) : NULL;
	return put;
}

static Etcdserverpb__DeleteRangeResponse *random_delete(struct vdi_rand *rand)
{
	Etcdserverpb__DeleteRangeResponse *deleted = take(sizeof *deleted);

	etcdserverpb__delete_range_response__init(deleted);
	deleted->header = random_header(rand);
	deleted->deleted = random_number(rand);
	deleted->prev_kvs = random_kvs(rand, &deleted->n_prev_kvs);
	return deleted;
}

static Etcdserverpb__TxnResponse *random_txn(struct vdi_rand *rand, unsigned level)
{
	Etcdserverpb__TxnResponse *txn = take(sizeof *txn);

	etcdserverpb__txn_response__init(txn);
	txn->header = random_header(rand);
	txn->succeeded = vdi_rand_once_in(rand, 2);
	txn->n_responses = vdi_rand_below(rand, 6);
	txn->responses = take(6 * sizeof *txn->responses);
	for (size_t i = 0; i < txn->n_responses; i++) {
		Etcdserverpb__ResponseOp *op = txn->responses[i] = take(sizeof *op);

		etcdserverpb__response_op__init(op);
		op->response_case =
			(Etcdserverpb__ResponseOp__ResponseCase) (1 +
								  vdi_rand_below(rand, level < 3 ? 4 : 3));
		if (op->response_case == ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_RANGE)
			op->response_range = random_range(rand);
		else if (op->response_case == ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_PUT)
			op->response_put = random_put(rand);
		else if (op->response_case == ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_DELETE_RANGE)
			op->response_delete_range = random_delete(rand);
		else
			op->response_txn = random_txn(rand, level + 1);
	}
	return txn;
}

static Etcdserverpb__WatchResponse *random_watch(struct vdi_rand *rand)
{
	Etcdserverpb__WatchResponse *watch = take(sizeof *watch);

	etcdserverpb__watch_response__init(watch);
	watch->header = random_header(rand);
	watch->watch_id = random_number(rand);
	watch->created = vdi_rand_once_in(rand, 2);
	watch->canceled = vdi_rand_once_in(rand, 2);
	watch->fragment = vdi_rand_once_in(rand, 2);
	watch->compact_revision = random_number(rand);
	watch->cancel_reason = vdi_rand_once_in(rand, 2) ? (char *) "because" : (char *) "";
	watch->n_events = vdi_rand_below(rand, 20);
	watch->events = take(20 * sizeof *watch->events);
	for (size_t i = 0; i < watch->n_events; i++) {
		Mvccpb__Event *event = watch->events[i] = take(sizeof *event);

		mvccpb__event__init(event);
		event->type = vdi_rand_once_in(rand, 2) ? MVCCPB__EVENT__EVENT_TYPE__DELETE :
							  MVCCPB__EVENT__EVENT_TYPE__PUT;
		event->kv = random_kv(rand);
		event->prev_kv = vdi_rand_once_in(rand, 2) ? random_kv(rand) : NULL;
	}
	return watch;
}

static struct vd_bytes pack(const void *message)
{
	uint8_t *bytes = take(protobuf_c_message_get_packed_size(message));

	return (struct vd_bytes) { bytes, protobuf_c_message_pack(message, bytes) };
}

static const ProtobufCMessage *random_message(struct vdi_rand *rand, enum etcd_oracle_kind kind)
{
	Etcdserverpb__RangeStreamResponse *stream;

	switch (kind) {
	case ETCD_ORACLE_RANGE: return &random_range(rand)->base;
	case ETCD_ORACLE_RANGE_STREAM:
		stream = take(sizeof *stream);
		etcdserverpb__range_stream_response__init(stream);
		stream->range_response = random_range(rand);
		return &stream->base;
	case ETCD_ORACLE_PUT: return &random_put(rand)->base;
	case ETCD_ORACLE_DELETE: return &random_delete(rand)->base;
	case ETCD_ORACLE_TXN: return &random_txn(rand, 1)->base;
	default: return &random_watch(rand)->base;
	}
}

/* ---- Answers ---- */

/* rules: E-112 */
static void e105_to_e112_answers_mean_what_protobuf_says(void **state)
{
	struct vdi_rand rand;

	vdi_rand_init(&rand, 11);
	for (int round = 0; round < ROUNDS; round++) {
		arena_used = 0;
		assert_status(etcd_oracle_decode(round % ETCD_ORACLE_COUNT,
						 pack(random_message(&rand, round % ETCD_ORACLE_COUNT))),
			      VD_OK);
	}
}

static void every_cut_message_is_refused_or_shorter(void **state)
{
	struct vdi_rand rand;
	int64_t		live = vdi_alloc_live();
	size_t		refused = 0;

	vdi_rand_init(&rand, 12);
	for (int kind = 0; kind < ETCD_ORACLE_COUNT; kind++) {
		struct vd_bytes message;

		arena_used = 0;
		do
			message = pack(random_message(&rand, kind));
		while (message.size < 30 || message.size > 3000);
		for (size_t size = 0; size < message.size; size++) {
			void	 *exact = vdi_alloc(size ? size : 1);
			vd_status status;

			memcpy(exact, message.data, size);
			status = etcd_oracle_decode(kind, (struct vd_bytes) { exact, size });
			assert_true(status == VD_OK || status == VD_CORRUPT);
			refused += status == VD_CORRUPT;
			vdi_free(exact);
		}
	}
	assert_true(refused > 100);
	assert_int_equal(vdi_alloc_live(), live);
}

static void mutated_messages_do_no_harm(void **state)
{
	struct vdi_rand rand;

	vdi_rand_init(&rand, 13);
	for (int round = 0; round < 5 * ROUNDS; round++) {
		struct vd_bytes message;
		char	       *bytes;

		arena_used = 0;
		message = pack(random_message(&rand, round % ETCD_ORACLE_COUNT));
		if (message.size == 0)
			continue;
		bytes = vdi_alloc(message.size);
		memcpy(bytes, message.data, message.size);
		for (uint64_t i = 1 + vdi_rand_below(&rand, 3); i; i--)
			bytes[vdi_rand_below(&rand, message.size)] = (char) vdi_rand_next(&rand);
		(void) etcd_oracle_decode(round % ETCD_ORACLE_COUNT,
					  (struct vd_bytes) { bytes, message.size });
		vdi_free(bytes);
	}
}

#define BYTES(...)                                                                                           \
	((struct vd_bytes) { (const char[]) { __VA_ARGS__ }, sizeof((const char[]) { __VA_ARGS__ }) })

static void e104_unknown_fields_are_skipped(void **state)
{
	/* Fields 15 (number), 100 (bytes), 16 (8 bytes), 17 (4 bytes) around count 4 = 3. */
	struct vd_bytes message =
		BYTES(0x78, 0x05, (char) 0xa2, 0x06, 0x02, 'x', 'y', 0x20, 0x03, (char) 0x81, 0x01, 1, 2, 3,
		      4, 5, 6, 7, 8, (char) 0x8d, 0x01, 1, 2, 3, 4);
	struct vd_etcd_header  header;
	struct vd_range_result result;

	assert_status(vdi_etcd_wire_range_response_decode(message, &header, &result, NULL), VD_OK);
	assert_int_equal(result.count, 3);
	vdi_etcd_wire_range_result_fini(&result);
}

static void refuses(enum etcd_oracle_kind kind, struct vd_bytes message)
{
	assert_status(etcd_oracle_decode(kind, message), VD_CORRUPT);
}

static void wrong_forms_are_corrupt(void **state)
{
	refuses(ETCD_ORACLE_RANGE, BYTES(0x08, 0x01));		   /* header as a number */
	refuses(ETCD_ORACLE_RANGE, BYTES(0x22, 0x01, 0x00));	   /* count as bytes */
	refuses(ETCD_ORACLE_RANGE, BYTES(0x12, 0x02, 0x0d, 0x00)); /* a record's key as 4 bytes */
	refuses(ETCD_ORACLE_RANGE, BYTES(0x23));		   /* a group */
	refuses(ETCD_ORACLE_RANGE, BYTES(0x26, 0x00));		   /* wire type 6 */
	refuses(ETCD_ORACLE_RANGE, BYTES(0x00, 0x00));		   /* field 0 */
	refuses(ETCD_ORACLE_RANGE, BYTES(0x12, 0x7f, 0x00));	   /* longer than the message */
	refuses(ETCD_ORACLE_RANGE, BYTES(0x12, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1)); /* length 2^64-1 */
	refuses(ETCD_ORACLE_RANGE, BYTES(0x20, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1)); /* 11 bytes */
	refuses(ETCD_ORACLE_RANGE, BYTES(-8, -1, -1, -1, -1, 1, 0));	       /* a tag above 32 bits */
	refuses(ETCD_ORACLE_TXN, BYTES(0x1a, 0x00));			       /* a result of no kind */
	refuses(ETCD_ORACLE_WATCH, BYTES(0x5a, 0x00));			       /* an event without a record */
	refuses(ETCD_ORACLE_WATCH, BYTES(0x5a, 0x04, 0x08, 0x02, 0x12, 0x00)); /* neither put nor delete */
}

static void nesting_is_bounded(void **state)
{
	static char message[8 << 10];
	size_t	    levels = 0;
	size_t	    size = 0;

	/* TxnResponse{responses: [ResponseOp{response_txn: ...}]}, from the inside out. */
	for (;;) {
		char   head[16];
		size_t head_size = 0;
		size_t inner = size;

		assert_status(etcd_oracle_decode(ETCD_ORACLE_TXN, (struct vd_bytes) { message, size }),
			      levels < VDI_ETCD_WIRE_LEVELS_MAX ? VD_OK : VD_CORRUPT);
		if (++levels > 500)
			break;
		for (int field = 0; field < 2; field++) { /* response_txn = 4, then responses = 3 */
			head_size = 0;
			head[head_size++] = field == 0 ? 0x22 : 0x1a;
			for (size_t rest = size; head_size < 2 || rest; rest >>= 7)
				head[head_size++] = (char) ((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
			memmove(message + head_size, message, size);
			memcpy(message, head, head_size);
			size += head_size;
		}
		assert_true(size > inner);
	}
}

static void a_message_field_that_comes_twice_is_merged(void **state)
{
	/* header {revision 7} and header {member 2}; response_range {count 1}, then {more}; a put, then a
	 * range: the range holds. */
	struct vd_bytes range = BYTES(0x0a, 0x02, 0x18, 0x07, 0x0a, 0x02, 0x10, 0x02);
	struct vd_bytes merged = BYTES(0x1a, 0x08, 0x0a, 0x02, 0x20, 0x01, 0x0a, 0x02, 0x18, 0x01);
	struct vd_bytes last = BYTES(0x1a, 0x0a, 0x12, 0x04, 0x12, 0x02, 0x0a, 0x00, 0x0a, 0x02, 0x20, 0x05);
	struct vd_etcd_header  header;
	struct vd_range_result result;
	struct vd_txn_result   txn;

	assert_status(vdi_etcd_wire_range_response_decode(range, &header, &result, NULL), VD_OK);
	assert_int_equal(header.revision, 7);
	assert_int_equal(header.member_id, 2);
	vdi_etcd_wire_range_result_fini(&result);
	assert_status(vdi_etcd_wire_txn_response_decode(merged, &header, &txn, NULL), VD_OK);
	assert_true(txn.results[0].range.count == 1 && txn.results[0].range.more);
	vdi_etcd_wire_txn_result_fini(&txn);
	assert_status(vdi_etcd_wire_txn_response_decode(last, &header, &txn, NULL), VD_OK);
	assert_int_equal(txn.results[0].kind, VD_OP_RANGE);
	assert_int_equal(txn.results[0].range.count, 5);
	assert_int_equal(txn.results[0].previous_count, 0);
	vdi_etcd_wire_txn_result_fini(&txn);
}

static void e106_record_and_event(void **state)
{
	/* type DELETE; kv { key "k" create 2 mod 3 version 4 value "v" lease 6 }; prev_kv { key "p" }. */
	struct vd_bytes message =
		BYTES(0x5a, 0x17, 0x08, 0x01, 0x12, 0x0e, 0x0a, 0x01, 'k', 0x10, 0x02, 0x18, 0x03, 0x20, 0x04,
		      0x2a, 0x01, 'v', 0x30, 0x06, 0x1a, 0x03, 0x0a, 0x01, 'p');
	struct vdi_etcd_wire_events	    events = { 0 };
	struct vdi_etcd_wire_watch_response response;
	const struct vd_kv		   *kv;

	assert_status(vdi_etcd_wire_watch_response_decode(message, &response, &events, NULL), VD_OK);
	assert_int_equal(events.count, 1);
	assert_true(events.items[0].is_delete);
	kv = events.items[0].kv;
	assert_true(vd_bytes_equal(vd_kv_key(kv), vd_bytes_of("k")) &&
		    vd_bytes_equal(vd_kv_value(kv), vd_bytes_of("v")));
	assert_true(kv->create_rev == 2 && kv->mod_rev == 3 && kv->version == 4 && kv->lease == 6);
	assert_true(vd_bytes_equal(vd_kv_key(events.items[0].previous), vd_bytes_of("p")));
	vdi_etcd_wire_events_fini(&events);
}

static void events_are_gathered_over_messages(void **state)
{
	struct vdi_etcd_wire_events	    events = { 0 };
	struct vdi_etcd_wire_watch_response response;
	struct vd_bytes first = BYTES(0x38, 0x01, 0x5a, 0x07, 0x12, 0x05, 0x0a, 0x01, 'a', 0x18, 0x05);
	struct vd_bytes second = BYTES(0x5a, 0x09, 0x08, 0x01, 0x12, 0x05, 0x0a, 0x01, 'b', 0x18, 0x05);
	struct vd_bytes broken = BYTES(0x5a, 0x07, 0x12, 0x05, 0x0a, 0x01, 'c', 0x18, 0x05, 0x5a, 0x01);

	assert_status(vdi_etcd_wire_watch_response_decode(first, &response, &events, NULL), VD_OK);
	assert_true(response.fragment && !response.has_header);
	assert_status(vdi_etcd_wire_watch_response_decode(broken, &response, &events, NULL), VD_CORRUPT);
	assert_int_equal(events.count, 1);
	assert_int_equal(events.bytes, 1);
	assert_status(vdi_etcd_wire_watch_response_decode(second, &response, &events, NULL), VD_OK);
	assert_int_equal(events.count, 2);
	assert_true(!events.items[0].is_delete && events.items[1].is_delete);
	assert_int_equal(events.items[0].kv->sub, 0);
	assert_int_equal(events.items[1].kv->sub, 1);
	vdi_etcd_wire_events_clear(&events);
	assert_true(events.count == 0 && events.bytes == 0 && events.capacity > 0);
	vdi_etcd_wire_events_fini(&events);
}

static void torture_decoding(void **state)
{
	for (int kind = 0; kind < ETCD_ORACLE_COUNT; kind++) {
		struct vdi_rand rand;
		struct vd_bytes message;
		int64_t		live = vdi_alloc_live();
		uint64_t	nth;

		vdi_rand_init(&rand, 14 + (uint64_t) kind);
		arena_used = 0;
		message = pack(random_message(&rand, kind));
		for (nth = 1;; nth++) {
			struct vd_etcd_header		    header;
			struct vd_range_result		    range;
			struct vd_op_result		    op;
			struct vd_txn_result		    txn;
			struct vdi_etcd_wire_watch_response watch;
			struct vdi_etcd_wire_events	    events = { 0 };
			struct vd_error			    error = { 0 };
			vd_status			    status;

			vdi_alloc_fail_nth(nth, 1);
			if (kind == ETCD_ORACLE_RANGE || kind == ETCD_ORACLE_RANGE_STREAM) {
				status = (kind == ETCD_ORACLE_RANGE ?
						  vdi_etcd_wire_range_response_decode :
						  vdi_etcd_wire_range_stream_response_decode)(
					message, &header, &range, &error);
				if (status == VD_OK)
					vdi_etcd_wire_range_result_fini(&range);
			} else if (kind == ETCD_ORACLE_TXN) {
				status = vdi_etcd_wire_txn_response_decode(message, &header, &txn, &error);
				if (status == VD_OK)
					vdi_etcd_wire_txn_result_fini(&txn);
			} else if (kind == ETCD_ORACLE_WATCH) {
				status =
					vdi_etcd_wire_watch_response_decode(message, &watch, &events, &error);
				vdi_etcd_wire_events_fini(&events);
			} else {
				status = vdi_etcd_wire_op_response_decode(
					kind == ETCD_ORACLE_PUT ? VD_OP_PUT : VD_OP_DELETE, message, &header,
					&op, &error);
				if (status == VD_OK)
					vdi_etcd_wire_op_result_fini(&op);
			}
			assert_status(status,
				      vdi_alloc_failed() ? VD_NOMEM : VD_OK); /* all of it, or nothing */
			vdi_alloc_fail_nth(0, 0);
			assert_int_equal(vdi_alloc_live(), live);
			if (status == VD_OK)
				break;
		}
		assert_true(nth > 1 || message.size < 8);
	}
}

/* The previous record comes twice, and there is no memory for the second one: nothing is left of either. */
static void a_record_that_comes_twice_without_memory(void **state)
{
	static const char record[] = "\x12\x06\x0a\x01k\x2a\x01v"
				     "\x12\x06\x0a\x01k\x2a\x01w";
	struct vd_bytes	  message = { record, sizeof record - 1 };
	vd_status	  status = VD_NOMEM;
	int64_t		  live = vdi_alloc_live();

	for (uint64_t nth = 1; status != VD_OK; nth++) {
		struct vd_etcd_header header;
		struct vd_op_result   op;
		struct vd_error	      error = { 0 };

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_etcd_wire_op_response_decode(VD_OP_PUT, message, &header, &op, &error);
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK) {
			assert_int_equal(op.previous_count, 1);
			assert_true(vd_bytes_equal(vd_kv_value(op.previous[0]), vd_bytes_of("w")));
			vdi_etcd_wire_op_result_fini(&op);
		} else {
			assert_status(status, VD_NOMEM);
		}
		assert_int_equal(vdi_alloc_live(), live);
		assert_true(nth < 20);
	}
}

/* ---- Requests ---- */

/* Unpacks with protobuf-c and checks that it would write the same bytes. */
static ProtobufCMessage *unpack_same(const ProtobufCMessageDescriptor *descriptor,
				     const struct vdi_buffer	      *buffer)
{
	struct vd_bytes	  bytes = vdi_buffer_bytes(buffer);
	ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, NULL, bytes.size, bytes.data);
	struct vd_bytes	  again;

	assert_non_null(message);
	arena_used = 0;
	again = pack(message);
	assert_int_equal(again.size, bytes.size);
	assert_memory_equal(again.data, bytes.data, bytes.size);
	return message;
}

static void assert_data(ProtobufCBinaryData data, const char *text)
{
	assert_int_equal(data.len, strlen(text));
	assert_memory_equal(data.data, text, data.len);
}

static void e107_range_request(void **state)
{
	struct vd_etcd_range_request request = {
		.range = { .key = vd_bytes_of("a"),
			   .range_end = vd_bytes_of("b"),
			   .revision = 1LL << 40,
			   .limit = 9,
			   .count_only = true,
			   .keys_only = true,
			   .serializable = true },
		.sort_order = VD_ETCD_SORT_DESCEND,
		.sort_target = VD_ETCD_SORT_VALUE,
		.min_mod_revision = 1,
		.max_mod_revision = 2,
		.min_create_revision = 3,
		.max_create_revision = -4,
	};
	struct vdi_buffer	    buffer;
	Etcdserverpb__RangeRequest *theirs;

	vdi_buffer_init(&buffer, 1 << 20);
	assert_status(vdi_etcd_wire_range_request_encode(&request, &buffer), VD_OK);
	theirs =
		(Etcdserverpb__RangeRequest *) unpack_same(&etcdserverpb__range_request__descriptor, &buffer);
	assert_data(theirs->key, "a");
	assert_data(theirs->range_end, "b");
	assert_true(theirs->revision == 1LL << 40 && theirs->limit == 9 && theirs->count_only &&
		    theirs->keys_only && theirs->serializable);
	assert_true(theirs->sort_order == ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__DESCEND);
	assert_true(theirs->sort_target == ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__VALUE);
	assert_true(theirs->min_mod_revision == 1 && theirs->max_mod_revision == 2 &&
		    theirs->min_create_revision == 3 && theirs->max_create_revision == -4);
	etcdserverpb__range_request__free_unpacked(theirs, NULL);
	vdi_buffer_fini(&buffer);
}

static void e217_by_key_ascending_is_sent_as_none(void **state)
{
	struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("a") },
						 .sort_order = VD_ETCD_SORT_ASCEND };
	struct vdi_buffer	     buffer;

	vdi_buffer_init(&buffer, 1 << 20);
	assert_status(vdi_etcd_wire_range_request_encode(&request, &buffer), VD_OK);
	assert_int_equal(buffer.size, 3);
	request.sort_target = VD_ETCD_SORT_MOD;
	assert_status(vdi_etcd_wire_range_request_encode(&request, &buffer), VD_OK);
	assert_int_equal(buffer.size, 7);
	vdi_buffer_fini(&buffer);
}

static void e108_put_and_delete_requests(void **state)
{
	struct vd_op put = { .kind = VD_OP_PUT,
			     .key = vd_bytes_of("k"),
			     .value = vd_bytes_of("v"),
			     .lease = -1,
			     .previous = true,
			     .ignore_value = true,
			     .ignore_lease = true };
	struct vd_op deleted = {
		.kind = VD_OP_DELETE, .key = vd_bytes_of("k"), .range_end = { "", 1 }, .previous = true
	};
	struct vdi_buffer		  buffer;
	Etcdserverpb__PutRequest	 *their_put;
	Etcdserverpb__DeleteRangeRequest *their_delete;

	vdi_buffer_init(&buffer, 1 << 20);
	assert_status(vdi_etcd_wire_op_request_encode(&put, &buffer), VD_OK);
	their_put = (Etcdserverpb__PutRequest *) unpack_same(&etcdserverpb__put_request__descriptor, &buffer);
	assert_data(their_put->key, "k");
	assert_data(their_put->value, "v");
	assert_true(their_put->lease == -1 && their_put->prev_kv && their_put->ignore_value &&
		    their_put->ignore_lease);
	etcdserverpb__put_request__free_unpacked(their_put, NULL);
	assert_status(vdi_etcd_wire_op_request_encode(&deleted, &buffer), VD_OK);
	their_delete = (Etcdserverpb__DeleteRangeRequest *) unpack_same(
		&etcdserverpb__delete_range_request__descriptor, &buffer);
	assert_data(their_delete->key, "k");
	assert_true(their_delete->range_end.len == 1 && their_delete->range_end.data[0] == 0 &&
		    their_delete->prev_kv);
	etcdserverpb__delete_range_request__free_unpacked(their_delete, NULL);
	vdi_buffer_fini(&buffer);
}

static void e109_e110_txn_request(void **state)
{
	struct vd_compare compares[] = {
		{ .target = VD_COMPARE_VERSION,
		  .result = VD_COMPARE_EQUAL,
		  .key = vd_bytes_of("a"),
		  .number = 0 },
		{ .target = VD_COMPARE_CREATE,
		  .result = VD_COMPARE_GREATER,
		  .key = vd_bytes_of("b"),
		  .number = 5 },
		{ .target = VD_COMPARE_MOD,
		  .result = VD_COMPARE_LESS,
		  .key = vd_bytes_of("c"),
		  .number = 6,
		  .range_end = vd_bytes_of("d") },
		{ .target = VD_COMPARE_VALUE,
		  .result = VD_COMPARE_NOT_EQUAL,
		  .key = vd_bytes_of("e"),
		  .value = vd_bytes_of("") },
		{ .target = VD_COMPARE_LEASE,
		  .result = VD_COMPARE_EQUAL,
		  .key = vd_bytes_of("f"),
		  .number = 7 },
	};
	struct vd_op		    inner_ops[] = { { .kind = VD_OP_DELETE, .key = vd_bytes_of("x") } };
	const struct vd_txn_request inner = { .failure = inner_ops, .failure_count = 1 };
	struct vd_op success[] = { { .kind = VD_OP_PUT, .key = vd_bytes_of("p"), .value = vd_bytes_of("q") },
				   { .kind = VD_OP_TXN, .txn = &inner } };
	struct vd_op failure[] = { { .kind = VD_OP_RANGE,
				     .range = { .key = vd_bytes_of("r"), .limit = 4 } } };
	const struct vd_txn_request request = { compares, 5, success, 2, failure, 1 };
	struct vdi_buffer	    buffer;
	Etcdserverpb__TxnRequest   *theirs;

	vdi_buffer_init(&buffer, 1 << 20);
	assert_status(vdi_etcd_wire_txn_request_encode(&request, &buffer), VD_OK);
	theirs = (Etcdserverpb__TxnRequest *) unpack_same(&etcdserverpb__txn_request__descriptor, &buffer);
	assert_int_equal(theirs->n_compare, 5);
	/* A zero in the oneof is sent: version = 0 is "does not exist". */
	assert_int_equal(theirs->compare[0]->target_union_case, ETCDSERVERPB__COMPARE__TARGET_UNION_VERSION);
	assert_int_equal(theirs->compare[1]->create_revision, 5);
	assert_int_equal(theirs->compare[1]->result, ETCDSERVERPB__COMPARE__COMPARE_RESULT__GREATER);
	assert_int_equal(theirs->compare[2]->mod_revision, 6);
	assert_int_equal(theirs->compare[2]->target, ETCDSERVERPB__COMPARE__COMPARE_TARGET__MOD);
	assert_data(theirs->compare[2]->range_end, "d");
	assert_int_equal(theirs->compare[3]->target_union_case, ETCDSERVERPB__COMPARE__TARGET_UNION_VALUE);
	assert_int_equal(theirs->compare[3]->result, ETCDSERVERPB__COMPARE__COMPARE_RESULT__NOT_EQUAL);
	assert_int_equal(theirs->compare[4]->lease, 7);
	assert_data(theirs->success[0]->request_put->value, "q");
	assert_data(theirs->success[1]->request_txn->failure[0]->request_delete_range->key, "x");
	assert_int_equal(theirs->failure[0]->request_range->limit, 4);
	etcdserverpb__txn_request__free_unpacked(theirs, NULL);
	vdi_buffer_fini(&buffer);
}

static void too_deep_or_too_big_a_request_is_refused(void **state)
{
	struct vd_txn_request txns[VDI_ETCD_WIRE_LEVELS_MAX + 1] = { 0 };
	struct vd_op	      ops[VDI_ETCD_WIRE_LEVELS_MAX + 1] = { 0 };
	struct vdi_buffer     buffer;

	for (size_t i = 0; i < VDI_ETCD_WIRE_LEVELS_MAX; i++) {
		ops[i] = (struct vd_op) { .kind = VD_OP_TXN, .txn = &txns[i + 1] };
		txns[i] = (struct vd_txn_request) { .success = &ops[i], .success_count = 1 };
	}
	vdi_buffer_init(&buffer, 300);
	assert_status(vdi_etcd_wire_txn_request_encode(&txns[0], &buffer), VD_TOO_BIG);
	assert_status(vdi_etcd_wire_txn_request_encode(&txns[1], &buffer), VD_OK);
	for (size_t i = 0; i < VDI_ETCD_WIRE_LEVELS_MAX; i++)
		txns[i] = (struct vd_txn_request) { .failure = &ops[i], .failure_count = 1 };
	assert_status(vdi_etcd_wire_txn_request_encode(&txns[0], &buffer), VD_TOO_BIG);
	assert_status(vdi_etcd_wire_txn_request_encode(&txns[1], &buffer), VD_OK);
	ops[0] = (struct vd_op) { .kind = VD_OP_PUT, .key = vd_bytes_of("k"), .value = { arena, 300 } };
	assert_status(vdi_etcd_wire_op_request_encode(&ops[0], &buffer), VD_TOO_BIG);
	/* What failed leaves the buffer usable. */
	ops[0].value.size = 280;
	assert_status(vdi_etcd_wire_op_request_encode(&ops[0], &buffer), VD_OK);
	vdi_buffer_fini(&buffer);
	vdi_buffer_init(&buffer, 300);
	vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_etcd_wire_op_request_encode(&ops[0], &buffer), VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
	assert_status(vdi_etcd_wire_op_request_encode(&ops[0], &buffer), VD_OK);
	vdi_buffer_fini(&buffer);
}

static void e112_watch_requests(void **state)
{
	struct vdi_etcd_wire_watch_create create = { .key = vd_bytes_of("k"),
						     .range_end = { "", 1 },
						     .start_revision = 12,
						     .watch_id = 3,
						     .progress = true,
						     .previous = true,
						     .fragment = true,
						     .no_put = true,
						     .no_delete = true };
	struct vdi_buffer		  buffer;
	Etcdserverpb__WatchRequest	 *theirs;
	Etcdserverpb__WatchCreateRequest *their_create;

	vdi_buffer_init(&buffer, 1 << 20);
	assert_status(vdi_etcd_wire_watch_create_encode(&create, &buffer), VD_OK);
	theirs =
		(Etcdserverpb__WatchRequest *) unpack_same(&etcdserverpb__watch_request__descriptor, &buffer);
	assert_int_equal(theirs->request_union_case,
			 ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST);
	their_create = theirs->create_request;
	assert_data(their_create->key, "k");
	assert_int_equal(their_create->range_end.len, 1);
	assert_true(their_create->start_revision == 12 && their_create->watch_id == 3 &&
		    their_create->progress_notify && their_create->prev_kv && their_create->fragment);
	assert_int_equal(their_create->n_filters, 2);
	assert_int_equal(their_create->filters[0], ETCDSERVERPB__WATCH_CREATE_REQUEST__FILTER_TYPE__NOPUT);
	assert_int_equal(their_create->filters[1], ETCDSERVERPB__WATCH_CREATE_REQUEST__FILTER_TYPE__NODELETE);
	etcdserverpb__watch_request__free_unpacked(theirs, NULL);

	assert_status(vdi_etcd_wire_watch_cancel_encode(0, &buffer), VD_OK);
	theirs =
		(Etcdserverpb__WatchRequest *) unpack_same(&etcdserverpb__watch_request__descriptor, &buffer);
	assert_int_equal(theirs->request_union_case,
			 ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CANCEL_REQUEST);
	assert_int_equal(theirs->cancel_request->watch_id, 0);
	etcdserverpb__watch_request__free_unpacked(theirs, NULL);
	assert_status(vdi_etcd_wire_watch_cancel_encode(-77, &buffer), VD_OK);
	theirs =
		(Etcdserverpb__WatchRequest *) unpack_same(&etcdserverpb__watch_request__descriptor, &buffer);
	assert_int_equal(theirs->cancel_request->watch_id, -77);
	etcdserverpb__watch_request__free_unpacked(theirs, NULL);

	assert_status(vdi_etcd_wire_watch_progress_encode(&buffer), VD_OK);
	theirs =
		(Etcdserverpb__WatchRequest *) unpack_same(&etcdserverpb__watch_request__descriptor, &buffer);
	assert_int_equal(theirs->request_union_case,
			 ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_PROGRESS_REQUEST);
	etcdserverpb__watch_request__free_unpacked(theirs, NULL);
	vdi_buffer_fini(&buffer);
}

/* Each flag has its own number. */
static void e112_each_flag_of_a_watch_request(void **state)
{
	struct vdi_buffer buffer;

	vdi_buffer_init(&buffer, 1 << 20);
	for (unsigned flag = 0; flag < 6; flag++) {
		struct vdi_etcd_wire_watch_create create = { .key = vd_bytes_of("k"),
							     .progress = flag == 1,
							     .previous = flag == 2,
							     .fragment = flag == 3,
							     .no_put = flag == 4,
							     .no_delete = flag == 5 };
		Etcdserverpb__WatchRequest	 *theirs;
		Etcdserverpb__WatchCreateRequest *their_create;

		assert_status(vdi_etcd_wire_watch_create_encode(&create, &buffer), VD_OK);
		theirs = (Etcdserverpb__WatchRequest *) unpack_same(&etcdserverpb__watch_request__descriptor,
								    &buffer);
		their_create = theirs->create_request;
		assert_int_equal(their_create->progress_notify, flag == 1);
		assert_int_equal(their_create->prev_kv, flag == 2);
		assert_int_equal(their_create->fragment, flag == 3);
		assert_int_equal(their_create->n_filters, flag > 3);
		if (flag > 3)
			assert_int_equal(their_create->filters[0],
					 flag == 4 ?
						 ETCDSERVERPB__WATCH_CREATE_REQUEST__FILTER_TYPE__NOPUT :
						 ETCDSERVERPB__WATCH_CREATE_REQUEST__FILTER_TYPE__NODELETE);
		etcdserverpb__watch_request__free_unpacked(theirs, NULL);
	}
	vdi_buffer_fini(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e105_to_e112_answers_mean_what_protobuf_says),
		cmocka_unit_test(every_cut_message_is_refused_or_shorter),
		cmocka_unit_test(mutated_messages_do_no_harm),
		cmocka_unit_test(e104_unknown_fields_are_skipped),
		cmocka_unit_test(wrong_forms_are_corrupt),
		cmocka_unit_test(nesting_is_bounded),
		cmocka_unit_test(a_message_field_that_comes_twice_is_merged),
		cmocka_unit_test(e106_record_and_event),
		cmocka_unit_test(events_are_gathered_over_messages),
		cmocka_unit_test(torture_decoding),
		cmocka_unit_test(a_record_that_comes_twice_without_memory),
		cmocka_unit_test(e107_range_request),
		cmocka_unit_test(e217_by_key_ascending_is_sent_as_none),
		cmocka_unit_test(e108_put_and_delete_requests),
		cmocka_unit_test(e109_e110_txn_request),
		cmocka_unit_test(too_deep_or_too_big_a_request_is_refused),
		cmocka_unit_test(e112_watch_requests),
		cmocka_unit_test(e112_each_flag_of_a_watch_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
