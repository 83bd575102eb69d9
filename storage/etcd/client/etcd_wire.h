/* Encoders and decoders of etcd's frequent messages: ranges, puts, deletes, transactions, watches.
 *
 * Encoders fill a buffer initialized by the caller, replacing its content. They return VD_OK, VD_NOMEM, or
 * VD_TOO_BIG (beyond the limit of the buffer, or a transaction nested deeper than VDI_ETCD_WIRE_LEVELS_MAX).
 * A value outside its enumeration is a programming error, because the caller has checked it.
 *
 * Decoders read a peer's message. Each record is copied once, into its struct vd_kv. Unknown fields are
 * skipped. Wrong wire types, truncation, numbers longer than 10 bytes, groups and excessive nesting are
 * VD_CORRUPT, with the offset in reterr; VD_NOMEM. For any input: no crash, memory at most proportional to
 * its size, and no leak on failure. Results are written only on success; the caller frees them with the fini
 * of the same name. As protobuf requires, absent fields are zero, the last of several values wins, and a
 * message field that occurs twice is merged.
 *
 * No shared data: any thread, as long as its arguments are not used by others.
 */
#ifndef VDI_ETCD_WIRE_H
#define VDI_ETCD_WIRE_H

#include <vedette/etcd.h>

#include "base.h"
#include "buffer.h"

#define VDI_ETCD_WIRE_LEVELS_MAX 32

/* ---- Requests ---- */

VDI_MUST_USE vd_status vdi_etcd_wire_range_request_encode(const struct vd_etcd_range_request *request,
							  struct vdi_buffer		     *buffer);
/* Encodes VD_OP_PUT as PutRequest, VD_OP_DELETE as DeleteRangeRequest. */
VDI_MUST_USE vd_status vdi_etcd_wire_op_request_encode(const struct vd_op *op, struct vdi_buffer *buffer);
VDI_MUST_USE vd_status vdi_etcd_wire_txn_request_encode(const struct vd_txn_request *request,
							struct vdi_buffer	    *buffer);

struct vdi_etcd_wire_watch_create {
	struct vd_bytes key;
	struct vd_bytes range_end;
	vd_rev		start_revision;
	int64_t		watch_id; /* 0: the server chooses */
	bool		progress;
	bool		previous;
	bool		fragment;
	bool		no_put;
	bool		no_delete;
};
/* Encode a WatchRequest with a create, cancel or progress request. */
VDI_MUST_USE vd_status vdi_etcd_wire_watch_create_encode(const struct vdi_etcd_wire_watch_create *create,
							 struct vdi_buffer			 *buffer);
VDI_MUST_USE vd_status vdi_etcd_wire_watch_cancel_encode(int64_t watch_id, struct vdi_buffer *buffer);
VDI_MUST_USE vd_status vdi_etcd_wire_watch_progress_encode(struct vdi_buffer *buffer);

/* ---- Answers ---- */

/* Decodes field 1 of any response; zero if absent. */
VDI_MUST_USE vd_status vdi_etcd_wire_header_decode(struct vd_bytes message, struct vd_etcd_header *ret_header,
						   struct vd_error *reterr);

/* Decodes a RangeResponse. ret_result owns kvs (references) and the array. */
VDI_MUST_USE vd_status vdi_etcd_wire_range_response_decode(struct vd_bytes	   message,
							   struct vd_etcd_header  *ret_header,
							   struct vd_range_result *ret_result,
							   struct vd_error	  *reterr);
/* Decodes a RangeStreamResponse: the same, nested in another message. */
VDI_MUST_USE vd_status vdi_etcd_wire_range_stream_response_decode(struct vd_bytes	  message,
								  struct vd_etcd_header	 *ret_header,
								  struct vd_range_result *ret_result,
								  struct vd_error	 *reterr);
void		       vdi_etcd_wire_range_result_fini(struct vd_range_result *result);

/* Decodes for VD_OP_PUT a PutResponse, for VD_OP_DELETE a DeleteRangeResponse. */
VDI_MUST_USE vd_status vdi_etcd_wire_op_response_decode(enum vd_op_kind kind, struct vd_bytes message,
							struct vd_etcd_header *ret_header,
							struct vd_op_result   *ret_result,
							struct vd_error	      *reterr);
void		       vdi_etcd_wire_op_result_fini(struct vd_op_result *result);

VDI_MUST_USE vd_status vdi_etcd_wire_txn_response_decode(struct vd_bytes	message,
							 struct vd_etcd_header *ret_header,
							 struct vd_txn_result  *ret_result,
							 struct vd_error       *reterr);
void		       vdi_etcd_wire_txn_result_fini(struct vd_txn_result *result);

/* Events of a watch, collected from one or several messages (fragments). Zeroed memory is empty. */
struct vdi_etcd_wire_events {
	struct vd_store_event *items; /* each owns kv and previous */
	size_t		       count;
	size_t		       capacity;
	size_t		       bytes; /* total size of keys and values, including previous records */
};
/* Drops the references, keeps the array. */
void vdi_etcd_wire_events_clear(struct vdi_etcd_wire_events *events);
void vdi_etcd_wire_events_fini(struct vdi_etcd_wire_events *events);

struct vdi_etcd_wire_watch_response {
	bool		      has_header;
	bool		      created;
	bool		      canceled;
	bool		      fragment;
	struct vd_etcd_header header;
	int64_t		      watch_id;
	vd_rev		      compact_revision;
	struct vd_bytes	      cancel_reason; /* points into the message */
};
/* Decodes a WatchResponse and appends its events to *events, in order; on failure events is unchanged. A
 * record's sub is its index among the events of its revision. An event without a record, or whose type is
 * neither put nor delete, is VD_CORRUPT. */
VDI_MUST_USE vd_status vdi_etcd_wire_watch_response_decode(struct vd_bytes			message,
							   struct vdi_etcd_wire_watch_response *ret_response,
							   struct vdi_etcd_wire_events	       *events,
							   struct vd_error		       *reterr);

#endif
