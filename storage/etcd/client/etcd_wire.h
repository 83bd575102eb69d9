/* The hot messages of etcd, read and written by hand: ranges, puts, deletes, transactions, watches
 * (E-105..E-112).
 *
 * Encoders fill a buffer that the caller initialised; what was in it is forgotten. They answer VD_OK,
 * VD_NOMEM, or VD_TOO_BIG (more than the buffer may hold, or a transaction nested deeper than
 * VDI_ETCD_WIRE_LEVELS_MAX); a value out of its enumeration is a programming error of the caller, who checked
 * it.
 *
 * Decoders read a message that a peer sent. Each record is copied once, into its struct vd_kv. Unknown fields
 * are skipped (E-104); wrong wire types, truncation, numbers longer than 10 bytes, groups and too much
 * nesting are VD_CORRUPT, with the place in reterr; VD_NOMEM. Whatever the bytes: no crash, memory at most in
 * proportion to their size, and on failure nothing is left behind. Results are written only on success; the
 * caller gives them back with the fini of the same name. As protobuf wants it, a message may lack any field
 * (zero then), the last of several values holds, and a message field that comes twice is merged.
 *
 * No thread of its own, nothing shared: any thread, as long as the arguments belong to it.
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
/* VD_OP_PUT as PutRequest, VD_OP_DELETE as DeleteRangeRequest. */
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
/* WatchRequest with a create, cancel or progress request inside. */
VDI_MUST_USE vd_status vdi_etcd_wire_watch_create_encode(const struct vdi_etcd_wire_watch_create *create,
							 struct vdi_buffer			 *buffer);
VDI_MUST_USE vd_status vdi_etcd_wire_watch_cancel_encode(int64_t watch_id, struct vdi_buffer *buffer);
VDI_MUST_USE vd_status vdi_etcd_wire_watch_progress_encode(struct vdi_buffer *buffer);

/* ---- Answers ---- */

/* Any answer's field 1; zero when it has none. */
VDI_MUST_USE vd_status vdi_etcd_wire_header_decode(struct vd_bytes message, struct vd_etcd_header *ret_header,
						   struct vd_error *reterr);

/* RangeResponse. ret_result owns kvs (references) and the array. */
VDI_MUST_USE vd_status vdi_etcd_wire_range_response_decode(struct vd_bytes	   message,
							   struct vd_etcd_header  *ret_header,
							   struct vd_range_result *ret_result,
							   struct vd_error	  *reterr);
/* RangeStreamResponse: the same, one message deeper. */
VDI_MUST_USE vd_status vdi_etcd_wire_range_stream_response_decode(struct vd_bytes	  message,
								  struct vd_etcd_header	 *ret_header,
								  struct vd_range_result *ret_result,
								  struct vd_error	 *reterr);
void		       vdi_etcd_wire_range_result_fini(struct vd_range_result *result);

/* kind VD_OP_PUT: PutResponse; VD_OP_DELETE: DeleteRangeResponse. */
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

/* Events of a watch, gathered over one or several messages (fragments). Zeroed memory is empty. */
struct vdi_etcd_wire_events {
	struct vd_store_event *items; /* each owns kv and previous */
	size_t		       count;
	size_t		       capacity;
	size_t		       bytes; /* of keys and values of all items, previous ones included */
};
/* Gives up the references, keeps the array. */
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
	struct vd_bytes	      cancel_reason; /* lies in the message */
};
/* WatchResponse. Its events are appended to *events, in order; on failure events is as before. A record's sub
 * is its place among the events of its revision. An event without a record, or of a kind that is neither put
 * nor delete, is VD_CORRUPT. */
VDI_MUST_USE vd_status vdi_etcd_wire_watch_response_decode(struct vd_bytes			message,
							   struct vdi_etcd_wire_watch_response *ret_response,
							   struct vdi_etcd_wire_events	       *events,
							   struct vd_error		       *reterr);

#endif
