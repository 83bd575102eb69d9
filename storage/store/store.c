/* The checked front of vedette/store.h: each call validates its arguments once (store_check.c), then calls
 * the implementation. */
#include "store.h"

#include "usage.h"

/* True if the store implements an optional operation. */
#define HAS(store, operation)                                                                                \
	((store)->ops->size > offsetof(struct vd_store_ops, operation) && (store)->ops->operation)

vd_status vd_store_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			 void *arg)
{
	VDI_REQUIRE(store, NULL);
	VDI_REQUIRE(request, NULL);
	VDI_REQUIRE(done, NULL);
	VDI_TRY(vdi_store_check_range(request, NULL));
	return store->ops->range(store, request, done, arg);
}

vd_status vd_store_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
		       void *arg)
{
	VDI_REQUIRE(store, NULL);
	VDI_REQUIRE(request, NULL);
	VDI_REQUIRE(done, NULL);
	VDI_TRY(vdi_store_check_txn(request, NULL));
	return store->ops->txn(store, request, done, arg);
}

vd_status vd_store_compact(struct vd_store *store, vd_rev revision, bool physical, vd_done_fn done, void *arg)
{
	VDI_REQUIRE(store, NULL);
	VDI_REQUIRE(done, NULL);
	return store->ops->compact(store, revision, physical, done, arg);
}

vd_status vd_store_lease_grant(struct vd_store *store, int64_t id, int64_t ttl_s, vd_lease_fn done, void *arg)
{
	VDI_REQUIRE(store, NULL);
	VDI_REQUIRE(done, NULL);
	if (ttl_s > VDI_LEASE_TTL_MAX_S)
		return VD_INVALID_ARGUMENT;
	return store->ops->lease_grant(store, id, ttl_s, done, arg);
}

vd_status vd_store_lease_revoke(struct vd_store *store, int64_t id, vd_done_fn done, void *arg)
{
	VDI_REQUIRE(store, NULL);
	VDI_REQUIRE(done, NULL);
	return store->ops->lease_revoke(store, id, done, arg);
}

vd_status vd_store_lease_keep_alive(struct vd_store *store, int64_t id, vd_lease_fn done, void *arg)
{
	VDI_REQUIRE(store, NULL);
	VDI_REQUIRE(done, NULL);
	return store->ops->lease_keep_alive(store, id, done, arg);
}

vd_status vd_store_lease_time_to_live(struct vd_store *store, int64_t id, bool keys, vd_lease_fn done,
				      void *arg)
{
	VDI_REQUIRE(store, NULL);
	VDI_REQUIRE(done, NULL);
	return store->ops->lease_time_to_live(store, id, keys, done, arg);
}

vd_status vd_store_lease_list(struct vd_store *store, vd_lease_list_fn done, void *arg)
{
	VDI_REQUIRE(store, NULL);
	VDI_REQUIRE(done, NULL);
	if (!HAS(store, lease_list))
		return VD_UNSUPPORTED;
	return store->ops->lease_list(store, done, arg);
}

vd_status vd_store_watch_open(struct vd_store *store, const struct vd_store_watch_request *request,
			      struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	VDI_REQUIRE(store, reterr);
	VDI_REQUIRE(request, reterr);
	VDI_REQUIRE(ret_watch, reterr);
	VDI_TRY(vdi_store_check_watch(request, reterr));
	return store->ops->watch(store, request, ret_watch, reterr);
}

vd_status vd_store_watch_next(struct vd_store_watch *watch, size_t event_count_max,
			      struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	VDI_REQUIRE(watch, reterr);
	VDI_REQUIRE(ret_batch, reterr);
	return watch->store->ops->watch_next(watch, event_count_max, ret_batch, reterr);
}

vd_status vd_store_watch_progress(struct vd_store_watch *watch)
{
	return watch ? watch->store->ops->watch_progress(watch) : VD_INVALID_ARGUMENT;
}

void vd_store_watch_close(struct vd_store_watch *watch)
{
	if (watch)
		watch->store->ops->watch_close(watch);
}

vd_status vd_store_status_get(struct vd_store *store, struct vd_store_status *ret_status)
{
	VDI_REQUIRE(store, NULL);
	VDI_REQUIRE(ret_status, NULL);
	return store->ops->status(store, ret_status);
}

void vd_store_close(struct vd_store *store, void (*done)(void *arg), void *arg)
{
	if (store) {
		vdi_usage_check("vd_store_close", store);
		store->ops->close(store, done, arg);
	} else if (done) {
		done(arg);
	}
}

vd_status vd_store_stream_open(struct vd_store *store, const struct vd_store_stream_request *request,
			       struct vd_store_stream **ret_stream)
{
	VDI_REQUIRE(store, NULL);
	VDI_REQUIRE(request, NULL);
	VDI_REQUIRE(request->ready, NULL);
	VDI_REQUIRE(ret_stream, NULL);
	VDI_TRY(vdi_store_check_range(&request->range, NULL));
	return HAS(store, stream) ? store->ops->stream(store, request, ret_stream) : VD_UNSUPPORTED;
}

vd_status vd_store_stream_next(struct vd_store_stream *stream, struct vd_store_part *ret_part,
			       struct vd_error *reterr)
{
	VDI_REQUIRE(stream, reterr);
	VDI_REQUIRE(ret_part, reterr);
	return stream->store->ops->stream_next(stream, ret_part, reterr);
}

void vd_store_stream_close(struct vd_store_stream *stream)
{
	if (stream)
		stream->store->ops->stream_close(stream);
}

void vd_store_shutdown(struct vd_store *store)
{
	if (store && HAS(store, shutdown))
		store->ops->shutdown(store);
}

void vd_store_dump(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg)
{
	if (store && write && HAS(store, dump))
		store->ops->dump(store, write, arg);
}
