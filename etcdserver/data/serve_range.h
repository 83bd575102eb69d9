/* RangeRequest: decoding, the request to the store, and the records of the store's result that are sent.
 *
 * Filters, sorting and their limits are applied here, to the records borrowed from the store. Mirrors etcd
 * server/etcdserver/txn/range.go.
 */
#ifndef VDI_SERVE_RANGE_H
#define VDI_SERVE_RANGE_H

#include "serve_wire.h"

enum vdi_sort_order { VDI_SORT_NONE, VDI_SORT_ASCEND, VDI_SORT_DESCEND };
enum vdi_sort_target { VDI_SORT_KEY, VDI_SORT_VERSION, VDI_SORT_CREATE, VDI_SORT_MOD, VDI_SORT_VALUE };

/* The decoded request; slices point into the message. */
struct vdi_serve_range {
	struct vd_bytes key;
	struct vd_bytes range_end;
	int64_t		limit;
	vd_rev		revision;
	int64_t		sort_order; /* unchecked */
	int64_t		sort_target;
	bool		serializable;
	bool		keys_only;
	bool		count_only;
	vd_rev		min_mod_revision;
	vd_rev		max_mod_revision;
	vd_rev		min_create_revision;
	vd_rev		max_create_revision;
};

/* False: the bytes are not a valid message. */
bool vdi_serve_range_decode(struct vd_bytes message, struct vdi_serve_range *ret_range);
bool vdi_serve_range_has_valid_sort(const struct vdi_serve_range *range);
bool vdi_serve_range_has_filters(const struct vdi_serve_range *range);
/* Returns true if the result is sent in the store's order with the store's limit. */
bool vdi_serve_range_is_plain(const struct vdi_serve_range *range);
void vdi_serve_range_ask(const struct vdi_serve_range *range, struct vd_range_request *ret_request);

/* Records to send, borrowed from the result. */
struct vdi_serve_range_view {
	struct vd_kv **kvs;
	size_t	       kv_count;
	bool	       is_owned; /* of the array */
	bool	       more;
	int64_t	       count;
	bool	       keys_only;
	bool	       with_lease;
};

/* VD_NOMEM. */
VDI_MUST_USE vd_status vdi_serve_range_view_init(const struct vdi_serve_range *range,
						 const struct vd_range_result *result,
						 struct vdi_serve_range_view  *ret_view);
void		       vdi_serve_range_view_fini(struct vdi_serve_range_view *view);
/* Writes a RangeResponse without its header: fields 2 to 4. */
void vdi_serve_range_view_write(struct vdi_wire_out *out, const struct vdi_serve_range_view *view);

#endif
