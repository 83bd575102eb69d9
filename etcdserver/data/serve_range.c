/* Equal values of a sort are ordered by key (upstream's sort is not stable). */
#include "serve_range.h"

#include <stdlib.h>

bool vdi_serve_range_decode(struct vd_bytes message, struct vdi_serve_range *ret_range)
{
	struct vdi_serve_range range = { .key = { "", 0 }, .range_end = { "", 0 } };
	struct vdi_wire_reader reader;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader)) {
		switch (reader.tag) {
		case VDI_WIRE_BYTES(1): range.key = reader.bytes; break;
		case VDI_WIRE_BYTES(2): range.range_end = reader.bytes; break;
		case VDI_WIRE_VARINT(3): range.limit = (int64_t) reader.number; break;
		case VDI_WIRE_VARINT(4): range.revision = (int64_t) reader.number; break;
		case VDI_WIRE_VARINT(5): range.sort_order = (int32_t) reader.number; break;
		case VDI_WIRE_VARINT(6): range.sort_target = (int32_t) reader.number; break;
		case VDI_WIRE_VARINT(7): range.serializable = reader.number != 0; break;
		case VDI_WIRE_VARINT(8): range.keys_only = reader.number != 0; break;
		case VDI_WIRE_VARINT(9): range.count_only = reader.number != 0; break;
		case VDI_WIRE_VARINT(10): range.min_mod_revision = (int64_t) reader.number; break;
		case VDI_WIRE_VARINT(11): range.max_mod_revision = (int64_t) reader.number; break;
		case VDI_WIRE_VARINT(12): range.min_create_revision = (int64_t) reader.number; break;
		case VDI_WIRE_VARINT(13): range.max_create_revision = (int64_t) reader.number; break;
		default: break;
		}
	}
	*ret_range = range;
	return !reader.is_bad;
}

bool vdi_serve_range_has_valid_sort(const struct vdi_serve_range *range)
{
	return range->sort_order >= VDI_SORT_NONE && range->sort_order <= VDI_SORT_DESCEND &&
	       range->sort_target >= VDI_SORT_KEY && range->sort_target <= VDI_SORT_VALUE;
}

bool vdi_serve_range_has_filters(const struct vdi_serve_range *range)
{
	return range->min_mod_revision || range->max_mod_revision || range->min_create_revision ||
	       range->max_create_revision;
}

/* Returns true for upstream's "default ordering", which decides where the limit applies: with order NONE in
 * the store, whose result is then sorted. */
static bool is_default_ordering(const struct vdi_serve_range *range)
{
	return range->sort_order == VDI_SORT_NONE ||
	       (range->sort_target == VDI_SORT_KEY && range->sort_order == VDI_SORT_ASCEND);
}

static bool needs_sort(const struct vdi_serve_range *range)
{
	return range->sort_target != VDI_SORT_KEY || range->sort_order == VDI_SORT_DESCEND;
}

bool vdi_serve_range_is_plain(const struct vdi_serve_range *range)
{
	return !needs_sort(range) && !vdi_serve_range_has_filters(range);
}

void vdi_serve_range_ask(const struct vdi_serve_range *range, struct vd_range_request *ret_request)
{
	*ret_request = (struct vd_range_request) {
		.key = range->key,
		.range_end = range->range_end,
		.revision = VDI_MAX(range->revision, 0),
		.limit = VDI_MAX(range->limit, 0),
		.count_only = range->count_only,
		.keys_only = range->keys_only && range->sort_target != VDI_SORT_VALUE,
		.serializable = range->serializable,
	};
	if (!is_default_ordering(range) || vdi_serve_range_has_filters(range))
		ret_request->limit = 0;
	else if (ret_request->limit > 0 && ret_request->limit < INT64_MAX && needs_sort(range))
		/* As upstream, one more record, which is sorted too and shows that there is more. */
		ret_request->limit++;
}

static bool passes(const struct vdi_serve_range *range, const struct vd_kv *kv)
{
	return !(range->max_mod_revision && kv->mod_rev > range->max_mod_revision) &&
	       !(range->min_mod_revision && kv->mod_rev < range->min_mod_revision) &&
	       !(range->max_create_revision && kv->create_rev > range->max_create_revision) &&
	       !(range->min_create_revision && kv->create_rev < range->min_create_revision);
}

static int compare_numbers(int64_t left, int64_t right)
{
	return VDI_ORDER(left, right);
}

static int compare_kvs(const void *a, const void *b, void *arg)
{
	const struct vdi_serve_range *range = arg;
	const struct vd_kv	     *left = *(struct vd_kv *const *) a;
	const struct vd_kv	     *right = *(struct vd_kv *const *) b;
	int			      order = 0;

	switch (range->sort_target) {
	case VDI_SORT_VERSION: order = compare_numbers(left->version, right->version); break;
	case VDI_SORT_CREATE: order = compare_numbers(left->create_rev, right->create_rev); break;
	case VDI_SORT_MOD: order = compare_numbers(left->mod_rev, right->mod_rev); break;
	case VDI_SORT_VALUE: order = vd_bytes_compare(vd_kv_value(left), vd_kv_value(right)); break;
	default: break;
	}
	if (range->sort_target == VDI_SORT_KEY)
		order = vd_bytes_compare(vd_kv_key(left), vd_kv_key(right));
	if (range->sort_order == VDI_SORT_DESCEND)
		order = -order;
	return order ? order : vd_bytes_compare(vd_kv_key(left), vd_kv_key(right));
}

vd_status vdi_serve_range_view_init(const struct vdi_serve_range *range, const struct vd_range_result *result,
				    struct vdi_serve_range_view *ret_view)
{
	struct vdi_serve_range_view view = { .kvs = result->kvs,
					     .kv_count = result->kv_count,
					     .more = result->more,
					     .count = result->count,
					     .keys_only = range->keys_only,
					     .with_lease = range->sort_target == VDI_SORT_VALUE };

	if (range->count_only) {
		view.kv_count = 0;
		view.more = false;
	} else if (!vdi_serve_range_is_plain(range) && result->kv_count) {
		view.kvs = vdi_alloc(result->kv_count * sizeof view.kvs[0]);
		if (view.kvs == NULL)
			return VD_NOMEM;
		view.is_owned = true;
		view.kv_count = 0;
		for (size_t i = 0; i < result->kv_count; i++)
			if (passes(range, result->kvs[i]))
				view.kvs[view.kv_count++] = result->kvs[i];
		if (needs_sort(range))
			qsort_r(view.kvs, view.kv_count, sizeof view.kvs[0], compare_kvs, (void *) range);
		view.more = range->limit > 0 && view.kv_count > (uint64_t) range->limit;
		if (view.more)
			view.kv_count = (size_t) range->limit;
	}
	*ret_view = view;
	return VD_OK;
}

void vdi_serve_range_view_fini(struct vdi_serve_range_view *view)
{
	if (view->is_owned)
		vdi_free(view->kvs);
	view->kvs = NULL;
	view->is_owned = false;
}

void vdi_serve_range_view_write(struct vdi_wire_out *out, const struct vdi_serve_range_view *view)
{
	for (size_t i = 0; i < view->kv_count; i++)
		vdi_wire_kv(out, 2, view->kvs[i], view->keys_only, view->with_lease);
	vdi_wire_number(out, 3, view->more);
	vdi_wire_number(out, 4, (uint64_t) view->count);
}
