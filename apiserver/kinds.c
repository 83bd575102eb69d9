/* See the header. */
#include "kinds.h"

#include "http_server.h"
#include "kind_cache.h"

#define RESOURCES_FILE_MAX (16u << 20)

static vd_status load_file(struct vdi_resources *resources, const char *path, struct vd_error *reterr)
{
	struct vdi_out	text = VDI_OUT_INIT;
	struct vd_error inner = { .code = VD_OK };
	vd_status	status = vdi_out_read_file(&text, path, RESOURCES_FILE_MAX, &inner);

	if (status != VD_OK)
		status = vd_error_set(reterr, status, "%s%s", status == VD_INVALID ? "resources: " : "", inner.message);
	else
		status = vdi_resources_load(resources, vdi_out_slice(&text), reterr);
	vdi_out_fini(&text);
	return status;
}

/* Forgets all kinds but one. */
static vd_status keep_only(struct vdi_resources *resources, const char *only, struct vd_error *reterr)
{
	char   name[VDI_RESOURCE_NAME_MAX];
	size_t kept = 0;

	for (size_t i = 0; i < resources->count; i++) {
		if (strcmp(vdi_resource_name(resources->items[i], name), only) == 0)
			resources->items[kept++] = resources->items[i];
		else
			(void) vdi_resource_unref(resources->items[i]);
	}
	resources->count = kept;
	return kept ? VD_OK : vd_error_set(reterr, VD_INVALID, "resources: there is no kind %s", only);
}

/* What the options name, in an empty collection, which is the caller's to end also when this fails. */
static vd_status read_kinds(const struct vd_server *server, struct vdi_resources *resources, struct vd_error *reterr)
{
	vd_status status = vdi_resources_init(resources);

	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	if (server->options.resources_path)
		VDI_TRY(load_file(resources, server->options.resources_path, reterr));
	if (server->options.resources.size)
		VDI_TRY(vdi_resources_load(resources, server->options.resources, reterr));
	if (server->options.key_prefix)
		VDI_TRY(vdi_resources_set_root(resources, server->options.key_prefix, reterr));
	if (server->options.only)
		VDI_TRY(keep_only(resources, server->options.only, reterr));
	if (!server->options.read_only && vdi_resources_find(resources, VD_BYTES_NONE, vd_bytes_of("v1"), vd_bytes_of("namespaces")) == NULL)
		return vd_error_set(reterr, VD_INVALID, "resources: namespaces of the core group must stay at v1");
	return VD_OK;
}

static vd_status make_cache(struct vd_server *server, struct vdi_resource *resource, struct vd_error *reterr)
{
	struct vdi_kind_cache *cache;
	vd_status	       status = vdi_http_metrics_counts(server->metrics, resource, &resource->counts);

	if (status != VD_OK)
		return vd_error_set(reterr, status, "metrics: %s", vd_status_sentence(status));
	VDI_TRY(vdi_kind_cache_new(server, resource, resource->fields, resource->field_count, &cache, reterr));
	vdi_kind_cache_bind(cache, resource);
	(void) vdi_kind_cache_unref(cache);
	return VD_OK;
}

static vd_status start(struct vd_server *server, struct vdi_resources *resources, struct vd_error *reterr)
{
	VDI_TRY(read_kinds(server, resources, reterr));
	for (size_t i = 0; i < resources->count; i++)
		VDI_TRY(make_cache(server, resources->items[i], reterr));
	return vdi_served_new(resources, &server->served, reterr);
}

vd_status vdi_kinds_start(struct vd_server *server, struct vd_error *reterr)
{
	struct vdi_resources resources = { 0 };
	vd_status	     status = start(server, &resources, reterr);

	vdi_resources_fini(&resources);
	return status;
}

struct vdi_served *vdi_kinds_get(struct vd_server *server)
{
	struct vdi_served *served;

	vdi_lock_acquire(&server->lock);
	served = vdi_served_ref(server->served);
	vdi_lock_release(&server->lock);
	return served;
}

static void publish(struct vd_server *server, struct vdi_served *fresh)
{
	struct vdi_served *stale;

	vdi_lock_acquire(&server->lock);
	stale = server->served;
	server->served = fresh;
	vdi_lock_release(&server->lock);
	for (size_t i = 0; i < server->loop_count; i++)
		vdi_http_loop_reload(&server->loops[i]);
	(void) vdi_served_unref(stale);
}

void vdi_kinds_stop(struct vd_server *server)
{
	struct vdi_served *last = vdi_kinds_get(server);

	/* What still waits in a cache is answered. */
	for (size_t i = 0; last && i < last->resources.count; i++)
		vdi_kind_cache_end(last->resources.items[i]->cache);
	(void) vdi_served_unref(last);
	publish(server, NULL);
	vdi_lock_acquire(&server->lock);
	while (server->kind_cache_count > 0)
		(void) vdi_condition_wait_until(&server->changed, &server->lock, VD_NEVER);
	vdi_lock_release(&server->lock);
}
