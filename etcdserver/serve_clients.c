/* Versions are searched one by one, because there are only one or two. */
#include "serve_clients.h"

#include <string.h>

enum { UNKNOWN, OTHER, KNOWN };

void vdi_serve_clients_init(struct vdi_serve_clients *clients)
{
	vdi_lock_init(&clients->lock, VDI_LOCK_LEAF);
	memcpy(clients->versions[UNKNOWN].text, "unknown", sizeof "unknown");
	memcpy(clients->versions[OTHER].text, "other", sizeof "other");
	atomic_init(&clients->count, KNOWN);
}

void vdi_serve_clients_fini(struct vdi_serve_clients *clients)
{
	vdi_lock_fini(&clients->lock);
}

/* Accepts "3.8" and similar; nothing that needs escaping in a label. */
static bool is_version(struct vd_bytes text)
{
	const char *at = text.data;

	for (size_t i = 0; i < text.size; i++)
		if (!((at[i] >= '0' && at[i] <= '9') || (at[i] >= 'a' && at[i] <= 'z') || at[i] == '.' ||
		      at[i] == '-'))
			return false;
	return text.size && text.size < VDI_SERVE_CLIENT_VERSION_SIZE;
}

static struct vdi_serve_client_version *find(struct vdi_serve_clients *clients, struct vd_bytes version)
{
	uint32_t count = atomic_load_explicit(&clients->count, memory_order_acquire);

	for (uint32_t i = KNOWN; i < count; i++)
		if (strlen(clients->versions[i].text) == version.size &&
		    memcmp(clients->versions[i].text, version.data, version.size) == 0)
			return &clients->versions[i];
	return NULL;
}

static struct vdi_serve_client_version *add(struct vdi_serve_clients *clients, struct vd_bytes version)
{
	struct vdi_serve_client_version *found;
	uint32_t			 count;

	vdi_lock_acquire(&clients->lock);
	found = find(clients, version);
	count = atomic_load_explicit(&clients->count, memory_order_relaxed);
	if (found == NULL && count < VDI_SERVE_CLIENT_VERSIONS_MAX) {
		found = &clients->versions[count];
		memcpy(found->text, version.data, version.size);
		atomic_store_explicit(&clients->count, count + 1, memory_order_release);
	}
	vdi_lock_release(&clients->lock);
	return found ? found : &clients->versions[OTHER];
}

void vdi_serve_clients_count(struct vdi_serve_clients *clients, struct vd_bytes version, bool is_stream)
{
	struct vdi_serve_client_version *of = &clients->versions[version.data ? OTHER : UNKNOWN];

	if (version.data && is_version(version)) {
		of = find(clients, version);
		if (of == NULL)
			of = add(clients, version);
	}
	atomic_fetch_add_explicit(&of->calls[is_stream], 1, memory_order_relaxed);
}

void vdi_serve_clients_render(struct vdi_serve_clients *clients, struct vdi_buffer *body)
{
	static const char *const types[] = { "unary", "stream" };
	uint32_t		 count = atomic_load_explicit(&clients->count, memory_order_acquire);

	vdi_buffer_append_text(body, "# TYPE etcd_server_client_requests_total counter\n");
	for (uint32_t i = 0; i < count; i++)
		for (int type = 0; type < 2; type++) {
			uint64_t calls =
				atomic_load_explicit(&clients->versions[i].calls[type], memory_order_relaxed);

			if (calls)
				vdi_buffer_printf(body,
						  "etcd_server_client_requests_total{client_api_version=\"%"
						  "s\",type=\"%s\"} %llu\n",
						  clients->versions[i].text, types[type],
						  (unsigned long long) calls);
		}
}
