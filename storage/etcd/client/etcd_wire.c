/* Decodes etcd's responses.
 *
 * A message is a sequence of fields: a tag (field number and wire type), then a number, or a length and
 * bytes. next_field() takes the first one and checks its form; each decoder is a loop over it with a case per
 * known field. Sub-messages are decoded into the existing struct, so a field that occurs twice is merged, as
 * protobuf requires.
 *
 * The fields of a record may come in any order. So it is read twice: first to find key and value, then for
 * one allocation and one copy.
 */
#include "etcd_wire.h"

#include "kv.h"
#include "varint.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct decoding {
	const char	*start; /* of the message, for offsets in errors */
	struct vd_error *reterr;
};

struct field {
	uint32_t	number;
	enum wire_type	type;
	uint64_t	value; /* VARINT */
	struct vd_bytes bytes; /* BYTES */
};

static vd_status corrupt(const struct decoding *decoding, const void *place, const char *what)
{
	return vd_error_set(decoding->reterr, VD_CORRUPT, "the answer cannot be read: %s at byte %zu", what,
			    (size_t) ((const char *) place - decoding->start));
}

static vd_status no_memory(const struct decoding *decoding)
{
	return vd_error_set(decoding->reterr, VD_NOMEM, "out of memory for an answer");
}

/* Reads a number; false: truncated, or longer than 10 bytes. */
static inline bool take_varint(struct vd_bytes *rest, uint64_t *ret_value)
{
	const uint8_t *at = rest->data;
	size_t	       size = vdi_varint_read(at, at + rest->size, ret_value);

	*rest = (struct vd_bytes) { at + size, rest->size - size };
	return size > 0;
}

static inline bool take_bytes(struct vd_bytes *rest, uint64_t size, struct vd_bytes *ret_bytes)
{
	if (size > rest->size)
		return false;
	*ret_bytes = (struct vd_bytes) { rest->data, (size_t) size };
	*rest = (struct vd_bytes) { (const char *) rest->data + size, rest->size - (size_t) size };
	return true;
}

/* VD_AGAIN: end of the message. */
static vd_status next_field(const struct decoding *decoding, struct vd_bytes *rest, struct field *ret_field)
{
	const void *place = rest->data;
	uint64_t    tag;
	bool	    complete;

	if (rest->size == 0)
		return VD_AGAIN;
	if (!take_varint(rest, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
		return corrupt(decoding, place, "a field's tag");
	ret_field->number = (uint32_t) (tag >> 3);
	ret_field->type = (enum wire_type)(tag & 7);
	switch (ret_field->type) {
	case WIRE_VARINT: complete = take_varint(rest, &ret_field->value); break;
	case WIRE_BYTES:
		complete = take_varint(rest, &ret_field->value) &&
			   take_bytes(rest, ret_field->value, &ret_field->bytes);
		break;
	case WIRE_FIXED64: complete = take_bytes(rest, 8, &ret_field->bytes); break;
	case WIRE_FIXED32: complete = take_bytes(rest, 4, &ret_field->bytes); break;
	default: return corrupt(decoding, place, "an unknown wire type");
	}
	return complete ? VD_OK : corrupt(decoding, place, "a field that is truncated");
}

/* Returns the next field with a known number below the count of types; skips others. types[number]: the wire
 * type, 'v' or 'b', or 0: unknown. */
static vd_status next_known(const struct decoding *decoding, struct vd_bytes *rest, const char *types,
			    size_t type_count, struct field *ret_field)
{
	for (;;) {
		const void *place = rest->data;
		vd_status   status = next_field(decoding, rest, ret_field);

		if (status != VD_OK)
			return status;
		if (ret_field->number >= type_count || types[ret_field->number] == 0)
			continue;
		if (ret_field->type != (types[ret_field->number] == 'v' ? WIRE_VARINT : WIRE_BYTES))
			return corrupt(decoding, place, "a field with an unexpected wire type");
		return VD_OK;
	}
}

/* Loops over the known fields of bytes; the block uses `field`. Returns on failure. */
#define FOR_EACH_FIELD(decoding, bytes, types)                                                               \
	for (struct vd_bytes rest_ = (bytes), *again_ = &rest_; again_;)                                     \
		for (struct field field = { 0 };;)                                                           \
			if ((field_status = next_known(decoding, &rest_, types, sizeof(types), &field)) ==   \
			    VD_AGAIN) {                                                                      \
				again_ = NULL;                                                               \
				break;                                                                       \
			} else if (field_status != VD_OK) {                                                  \
				return field_status;                                                         \
			} else

/* ---- Header and record ---- */

static vd_status decode_header(const struct decoding *decoding, struct vd_bytes bytes,
			       struct vd_etcd_header *header)
{
	static const char types[] = { 0, 'v', 'v', 'v', 'v' };
	vd_status	  field_status;

	FOR_EACH_FIELD(decoding, bytes, types)
	{
		switch (field.number) {
		case 1: header->cluster_id = field.value; break;
		case 2: header->member_id = field.value; break;
		case 3: header->revision = (vd_rev) field.value; break;
		case 4: header->raft_term = field.value; break;
		}
	}
	return VD_OK;
}

static vd_status decode_first_header(const struct decoding *decoding, struct vd_bytes bytes,
				     struct vd_etcd_header *header)
{
	static const char types[] = { 0, 'b' };
	vd_status	  field_status;

	FOR_EACH_FIELD(decoding, bytes, types)
	VDI_TRY(decode_header(decoding, field.bytes, header));
	return VD_OK;
}

vd_status vdi_etcd_wire_header_decode(struct vd_bytes message, struct vd_etcd_header *ret_header,
				      struct vd_error *reterr)
{
	struct decoding	      decoding = { message.data, reterr };
	struct vd_etcd_header header = { 0 };

	VDI_TRY(decode_first_header(&decoding, message, &header));
	*ret_header = header;
	return VD_OK;
}

struct record {
	struct vd_bytes key;
	struct vd_bytes value;
	vd_rev		create_rev;
	vd_rev		mod_rev;
	int64_t		version;
	int64_t		lease;
};

static vd_status decode_record(const struct decoding *decoding, struct vd_bytes bytes, struct record *record)
{
	static const char types[] = { 0, 'b', 'v', 'v', 'v', 'b', 'v' };
	vd_status	  field_status;

	FOR_EACH_FIELD(decoding, bytes, types)
	{
		switch (field.number) {
		case 1: record->key = field.bytes; break;
		case 2: record->create_rev = (vd_rev) field.value; break;
		case 3: record->mod_rev = (vd_rev) field.value; break;
		case 4: record->version = (int64_t) field.value; break;
		case 5: record->value = field.bytes; break;
		case 6: record->lease = (int64_t) field.value; break;
		}
	}
	return VD_OK;
}

static vd_status make_kv(const struct decoding *decoding, const struct record *record, struct vd_kv **ret_kv)
{
	struct vd_kv *kv;

	if (record->key.size > UINT32_MAX || record->value.size > UINT32_MAX)
		return corrupt(decoding, record->key.data, "a record of more than 4 GiB");
	kv = vdi_kv_alloc((uint32_t) record->key.size, (uint32_t) record->value.size);
	if (kv == NULL)
		return no_memory(decoding);
	kv->create_rev = record->create_rev;
	kv->mod_rev = record->mod_rev;
	kv->version = record->version;
	kv->lease = record->lease;
	if (record->key.size)
		memcpy(kv->data, record->key.data, record->key.size);
	if (record->value.size)
		memcpy(kv->data + record->key.size, record->value.data, record->value.size);
	*ret_kv = kv;
	return VD_OK;
}

/* Grows arrays without a stored capacity: it is 4, 8, 16, ... elements. */
static bool make_room(void **array, size_t count, size_t item_size)
{
	void *larger;

	if (count != 0 && (count < 4 || (count & (count - 1)) != 0))
		return true;
	larger = vdi_realloc(*array, (count == 0 ? 4 : 2 * count) * item_size);
	if (larger == NULL)
		return false;
	*array = larger;
	return true;
}

static vd_status append_record(const struct decoding *decoding, struct vd_bytes bytes, struct vd_kv ***kvs,
			       size_t *count)
{
	struct record record = { 0 };

	VDI_TRY(decode_record(decoding, bytes, &record));
	if (!make_room((void **) kvs, *count, sizeof **kvs))
		return no_memory(decoding);
	VDI_TRY(make_kv(decoding, &record, &(*kvs)[*count]));
	++*count;
	return VD_OK;
}

static void free_kvs(struct vd_kv **kvs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		vd_kv_unref(kvs[i]);
	vdi_free(kvs);
}

/* ---- Range ---- */

static vd_status decode_range(const struct decoding *decoding, struct vd_bytes bytes,
			      struct vd_etcd_header *header, struct vd_range_result *result)
{
	static const char types[] = { 0, 'b', 'b', 'v', 'v' };
	vd_status	  field_status;

	FOR_EACH_FIELD(decoding, bytes, types)
	{
		switch (field.number) {
		case 1:
			VDI_TRY(decode_header(decoding, field.bytes, header));
			result->store_revision = header->revision;
			break;
		case 2: VDI_TRY(append_record(decoding, field.bytes, &result->kvs, &result->kv_count)); break;
		case 3: result->more = field.value != 0; break;
		case 4: result->count = (int64_t) field.value; break;
		}
	}
	return VD_OK;
}

void vdi_etcd_wire_range_result_fini(struct vd_range_result *result)
{
	free_kvs(result->kvs, result->kv_count);
	*result = (struct vd_range_result) { 0 };
}

static vd_status finish_range(vd_status status, struct vd_etcd_header *header, struct vd_range_result *result,
			      struct vd_etcd_header *ret_header, struct vd_range_result *ret_result)
{
	if (status != VD_OK) {
		vdi_etcd_wire_range_result_fini(result);
		return status;
	}
	*ret_header = *header;
	*ret_result = *result;
	return VD_OK;
}

vd_status vdi_etcd_wire_range_response_decode(struct vd_bytes message, struct vd_etcd_header *ret_header,
					      struct vd_range_result *ret_result, struct vd_error *reterr)
{
	struct decoding	       decoding = { message.data, reterr };
	struct vd_etcd_header  header = { 0 };
	struct vd_range_result result = { 0 };

	return finish_range(decode_range(&decoding, message, &header, &result), &header, &result, ret_header,
			    ret_result);
}

static vd_status decode_range_stream(const struct decoding *decoding, struct vd_bytes bytes,
				     struct vd_etcd_header *header, struct vd_range_result *result)
{
	static const char types[] = { 0, 'b' };
	vd_status	  field_status;

	FOR_EACH_FIELD(decoding, bytes, types)
	VDI_TRY(decode_range(decoding, field.bytes, header, result));
	return VD_OK;
}

vd_status vdi_etcd_wire_range_stream_response_decode(struct vd_bytes	     message,
						     struct vd_etcd_header  *ret_header,
						     struct vd_range_result *ret_result,
						     struct vd_error	    *reterr)
{
	struct decoding	       decoding = { message.data, reterr };
	struct vd_etcd_header  header = { 0 };
	struct vd_range_result result = { 0 };

	return finish_range(decode_range_stream(&decoding, message, &header, &result), &header, &result,
			    ret_header, ret_result);
}

/* ---- Put, delete, transaction ---- */

static vd_status decode_put(const struct decoding *decoding, struct vd_bytes bytes,
			    struct vd_etcd_header *header, struct vd_op_result *result)
{
	static const char types[] = { 0, 'b', 'b' };
	struct record	  previous = { 0 };
	bool		  has_previous = false;
	vd_status	  field_status;

	FOR_EACH_FIELD(decoding, bytes, types)
	{
		if (field.number == 1) {
			VDI_TRY(decode_header(decoding, field.bytes, header));
			result->revision = header->revision;
		} else {
			VDI_TRY(decode_record(decoding, field.bytes, &previous));
			has_previous = true;
		}
	}
	if (!has_previous)
		return VD_OK;
	/* A put in two pieces: the later previous record wins. */
	free_kvs(result->previous, result->previous_count);
	result->previous = NULL;
	result->previous_count = 0;
	if (!make_room((void **) &result->previous, 0, sizeof *result->previous))
		return no_memory(decoding);
	VDI_TRY(make_kv(decoding, &previous, &result->previous[0]));
	result->previous_count = 1;
	return VD_OK;
}

static vd_status decode_delete(const struct decoding *decoding, struct vd_bytes bytes,
			       struct vd_etcd_header *header, struct vd_op_result *result)
{
	static const char types[] = { 0, 'b', 'v', 'b' };
	vd_status	  field_status;

	FOR_EACH_FIELD(decoding, bytes, types)
	{
		switch (field.number) {
		case 1:
			VDI_TRY(decode_header(decoding, field.bytes, header));
			result->revision = header->revision;
			break;
		case 2: result->deleted = (int64_t) field.value; break;
		case 3:
			VDI_TRY(append_record(decoding, field.bytes, &result->previous,
					      &result->previous_count));
			break;
		}
	}
	return VD_OK;
}

static vd_status decode_txn(const struct decoding *decoding, struct vd_bytes bytes, unsigned level,
			    struct vd_etcd_header *header, struct vd_txn_result *result);

static vd_status decode_sub_txn(const struct decoding *decoding, struct vd_bytes bytes, unsigned level,
				struct vd_op_result *result)
{
	struct vd_txn_result *txn = (struct vd_txn_result *) result->txn;
	struct vd_etcd_header header = { .revision = result->revision };

	if (txn == NULL) {
		txn = VDI_NEW(struct vd_txn_result);
		if (txn == NULL)
			return no_memory(decoding);
		result->txn = txn;
	}
	VDI_TRY(decode_txn(decoding, bytes, level + 1, &header, txn));
	result->revision = header.revision;
	return VD_OK;
}

/* Decodes a ResponseOp. The last of several kinds wins, so a result of another kind is dropped first. */
static vd_status decode_op(const struct decoding *decoding, struct vd_bytes bytes, unsigned level,
			   struct vd_op_result *result)
{
	static const char	     types[] = { 0, 'b', 'b', 'b', 'b' };
	static const enum vd_op_kind kinds[] = { 0, VD_OP_RANGE, VD_OP_PUT, VD_OP_DELETE, VD_OP_TXN };
	bool			     any = false;
	vd_status		     field_status;

	FOR_EACH_FIELD(decoding, bytes, types)
	{
		struct vd_etcd_header header;

		if (any && result->kind != kinds[field.number])
			vdi_etcd_wire_op_result_fini(result);
		any = true;
		result->kind = kinds[field.number];
		header = (struct vd_etcd_header) { .revision = result->revision };
		switch (result->kind) {
		case VD_OP_RANGE:
			result->range.store_revision = result->revision;
			VDI_TRY(decode_range(decoding, field.bytes, &header, &result->range));
			result->revision = header.revision;
			break;
		case VD_OP_PUT: VDI_TRY(decode_put(decoding, field.bytes, &header, result)); break;
		case VD_OP_DELETE: VDI_TRY(decode_delete(decoding, field.bytes, &header, result)); break;
		case VD_OP_TXN: VDI_TRY(decode_sub_txn(decoding, field.bytes, level, result)); break;
		}
	}
	return any ? VD_OK : corrupt(decoding, bytes.data, "a result of an unknown kind");
}

static vd_status decode_txn(const struct decoding *decoding, struct vd_bytes bytes, unsigned level,
			    struct vd_etcd_header *header, struct vd_txn_result *result)
{
	static const char types[] = { 0, 'b', 'v', 'b' };
	vd_status	  field_status;

	if (level > VDI_ETCD_WIRE_LEVELS_MAX)
		return corrupt(decoding, bytes.data, "too many levels of transactions");
	FOR_EACH_FIELD(decoding, bytes, types)
	{
		struct vd_op_result *results = (struct vd_op_result *) result->results;

		switch (field.number) {
		case 1:
			VDI_TRY(decode_header(decoding, field.bytes, header));
			result->revision = header->revision;
			break;
		case 2: result->succeeded = field.value != 0; break;
		case 3:
			if (!make_room((void **) &results, result->result_count, sizeof *results))
				return no_memory(decoding);
			result->results = results;
			results[result->result_count] = (struct vd_op_result) { 0 };
			VDI_TRY(decode_op(decoding, field.bytes, level, &results[result->result_count++]));
			break;
		}
	}
	return VD_OK;
}

void vdi_etcd_wire_txn_result_fini(struct vd_txn_result *result)
{
	struct vd_op_result *results = (struct vd_op_result *) result->results;

	for (size_t i = 0; i < result->result_count; i++)
		vdi_etcd_wire_op_result_fini(&results[i]);
	vdi_free(results);
	*result = (struct vd_txn_result) { 0 };
}

void vdi_etcd_wire_op_result_fini(struct vd_op_result *result)
{
	struct vd_txn_result *txn = (struct vd_txn_result *) result->txn;

	free_kvs(result->previous, result->previous_count);
	vdi_etcd_wire_range_result_fini(&result->range);
	if (txn) {
		vdi_etcd_wire_txn_result_fini(txn);
		vdi_free(txn);
	}
	*result = (struct vd_op_result) { 0 };
}

vd_status vdi_etcd_wire_op_response_decode(enum vd_op_kind kind, struct vd_bytes message,
					   struct vd_etcd_header *ret_header, struct vd_op_result *ret_result,
					   struct vd_error *reterr)
{
	struct decoding	      decoding = { message.data, reterr };
	struct vd_etcd_header header = { 0 };
	struct vd_op_result   result = { .kind = kind };
	vd_status	      status;

	VDI_CHECK(kind == VD_OP_PUT || kind == VD_OP_DELETE);
	status = kind == VD_OP_PUT ? decode_put(&decoding, message, &header, &result) :
				     decode_delete(&decoding, message, &header, &result);
	if (status != VD_OK) {
		vdi_etcd_wire_op_result_fini(&result);
		return status;
	}
	*ret_header = header;
	*ret_result = result;
	return VD_OK;
}

vd_status vdi_etcd_wire_txn_response_decode(struct vd_bytes message, struct vd_etcd_header *ret_header,
					    struct vd_txn_result *ret_result, struct vd_error *reterr)
{
	struct decoding	      decoding = { message.data, reterr };
	struct vd_etcd_header header = { 0 };
	struct vd_txn_result  result = { 0 };
	vd_status	      status = decode_txn(&decoding, message, 1, &header, &result);

	if (status != VD_OK) {
		vdi_etcd_wire_txn_result_fini(&result);
		return status;
	}
	*ret_header = header;
	*ret_result = result;
	return VD_OK;
}

/* ---- Watch ---- */

static size_t kv_bytes(const struct vd_kv *kv)
{
	return kv ? (size_t) kv->key_size + kv->value_size : 0;
}

static void events_cut(struct vdi_etcd_wire_events *events, size_t count)
{
	while (events->count > count) {
		struct vd_store_event *event = &events->items[--events->count];

		events->bytes -= kv_bytes(event->kv) + kv_bytes(event->previous);
		vd_kv_unref(event->kv);
		vd_kv_unref(event->previous);
	}
}

void vdi_etcd_wire_events_clear(struct vdi_etcd_wire_events *events)
{
	events_cut(events, 0);
}

void vdi_etcd_wire_events_fini(struct vdi_etcd_wire_events *events)
{
	events_cut(events, 0);
	vdi_free(events->items);
	*events = (struct vdi_etcd_wire_events) { 0 };
}

static vd_status append_event(const struct decoding *decoding, struct vd_bytes bytes,
			      struct vdi_etcd_wire_events *events)
{
	static const char      types[] = { 0, 'v', 'b', 'b' };
	struct record	       record = { 0 };
	struct record	       previous = { 0 };
	struct vd_store_event  event = { 0 };
	struct vd_store_event *last;
	bool		       has_record = false;
	bool		       has_previous = false;
	int32_t		       kind = 0;
	vd_status	       field_status;

	FOR_EACH_FIELD(decoding, bytes, types)
	{
		switch (field.number) {
		case 1: kind = (int32_t) field.value; break;
		case 2:
			VDI_TRY(decode_record(decoding, field.bytes, &record));
			has_record = true;
			break;
		case 3:
			VDI_TRY(decode_record(decoding, field.bytes, &previous));
			has_previous = true;
			break;
		}
	}
	if (kind != 0 && kind != 1)
		return corrupt(decoding, bytes.data, "an event of an unknown kind");
	if (!has_record)
		return corrupt(decoding, bytes.data, "an event without a record");
	if (!vdi_grow((void **) &events->items, &events->capacity, events->count + 1, sizeof *events->items))
		return no_memory(decoding);
	event.is_delete = kind == 1;
	VDI_TRY(make_kv(decoding, &record, &event.kv));
	if (has_previous) {
		vd_status status = make_kv(decoding, &previous, &event.previous);

		if (status != VD_OK) {
			vd_kv_unref(event.kv);
			return status;
		}
	}
	last = events->count ? &events->items[events->count - 1] : NULL;
	if (last && last->kv->mod_rev == event.kv->mod_rev)
		event.kv->sub = last->kv->sub + 1;
	events->bytes += kv_bytes(event.kv) + kv_bytes(event.previous);
	events->items[events->count++] = event;
	return VD_OK;
}

static vd_status decode_watch(const struct decoding *decoding, struct vd_bytes bytes,
			      struct vdi_etcd_wire_watch_response *response,
			      struct vdi_etcd_wire_events	  *events)
{
	static const char types[] = { 0, 'b', 'v', 'v', 'v', 'v', 'b', 'v', 0, 0, 0, 'b' };
	vd_status	  field_status;

	FOR_EACH_FIELD(decoding, bytes, types)
	{
		switch (field.number) {
		case 1:
			VDI_TRY(decode_header(decoding, field.bytes, &response->header));
			response->has_header = true;
			break;
		case 2: response->watch_id = (int64_t) field.value; break;
		case 3: response->created = field.value != 0; break;
		case 4: response->canceled = field.value != 0; break;
		case 5: response->compact_revision = (vd_rev) field.value; break;
		case 6: response->cancel_reason = field.bytes; break;
		case 7: response->fragment = field.value != 0; break;
		case 11: VDI_TRY(append_event(decoding, field.bytes, events)); break;
		}
	}
	return VD_OK;
}

vd_status vdi_etcd_wire_watch_response_decode(struct vd_bytes			   message,
					      struct vdi_etcd_wire_watch_response *ret_response,
					      struct vdi_etcd_wire_events *events, struct vd_error *reterr)
{
	struct decoding			    decoding = { message.data, reterr };
	struct vdi_etcd_wire_watch_response response = { 0 };
	size_t				    count_before = events->count;
	vd_status			    status = decode_watch(&decoding, message, &response, events);

	if (status != VD_OK) {
		events_cut(events, count_before);
		return status;
	}
	*ret_response = response;
	return VD_OK;
}
