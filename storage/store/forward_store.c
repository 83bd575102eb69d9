#include "forward_store.h"

static struct vd_store *inner_of(struct vd_store *store)
{
	return VDI_CONTAINER_OF(store, struct vdi_forward_store, base)->inner;
}

vd_status vdi_forward_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			    void *arg)
{
	return vd_store_range(inner_of(store), request, done, arg);
}

vd_status vdi_forward_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			  void *arg)
{
	return vd_store_txn(inner_of(store), request, done, arg);
}

vd_status vdi_forward_compact(struct vd_store *store, vd_rev revision, bool physical, vd_done_fn done,
			      void *arg)
{
	return vd_store_compact(inner_of(store), revision, physical, done, arg);
}

vd_status vdi_forward_lease_grant(struct vd_store *store, int64_t id, int64_t ttl_s, vd_lease_fn done,
				  void *arg)
{
	return vd_store_lease_grant(inner_of(store), id, ttl_s, done, arg);
}

vd_status vdi_forward_lease_revoke(struct vd_store *store, int64_t id, vd_done_fn done, void *arg)
{
	return vd_store_lease_revoke(inner_of(store), id, done, arg);
}

vd_status vdi_forward_lease_keep_alive(struct vd_store *store, int64_t id, vd_lease_fn done, void *arg)
{
	return vd_store_lease_keep_alive(inner_of(store), id, done, arg);
}

vd_status vdi_forward_lease_time_to_live(struct vd_store *store, int64_t id, bool keys, vd_lease_fn done,
					 void *arg)
{
	return vd_store_lease_time_to_live(inner_of(store), id, keys, done, arg);
}

vd_status vdi_forward_lease_list(struct vd_store *store, vd_lease_list_fn done, void *arg)
{
	return vd_store_lease_list(inner_of(store), done, arg);
}

vd_status vdi_forward_watch(struct vd_store *store, const struct vd_store_watch_request *request,
			    struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	return vd_store_watch_open(inner_of(store), request, ret_watch, reterr);
}

vd_status vdi_forward_stream(struct vd_store *store, const struct vd_store_stream_request *request,
			     struct vd_store_stream **ret_stream)
{
	return vd_store_stream_open(inner_of(store), request, ret_stream);
}

vd_status vdi_forward_status(struct vd_store *store, struct vd_store_status *ret_status)
{
	return vd_store_status_get(inner_of(store), ret_status);
}

void vdi_forward_shutdown(struct vd_store *store)
{
	vd_store_shutdown(inner_of(store));
}

void vdi_forward_dump(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg)
{
	vd_store_dump(inner_of(store), write, arg);
}
