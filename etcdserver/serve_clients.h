/* Counts of calls per client-api-version: etcd's metric etcd_server_client_requests_total.
 *
 * Clients choose the text, so only a few short ones are kept; others are counted together. Any thread;
 * nothing blocks.
 */
#ifndef VDI_SERVE_CLIENTS_H
#define VDI_SERVE_CLIENTS_H

#include <stdatomic.h>
#include <vedette/bytes.h>

#include "buffer.h"
#include "lock.h"

#define VDI_SERVE_CLIENT_VERSIONS_MAX 16
#define VDI_SERVE_CLIENT_VERSION_SIZE 16

struct vdi_serve_client_version {
	char		 text[VDI_SERVE_CLIENT_VERSION_SIZE]; /* fixed once count covers it */
	_Atomic uint64_t calls[2];			      /* unary, streams */
};

struct vdi_serve_clients {
	struct vdi_lock	 lock; /* "leaf"; held to add a version */
	_Atomic uint32_t count;
	struct vdi_serve_client_version
		versions[VDI_SERVE_CLIENT_VERSIONS_MAX]; /* the first: "unknown", the second: "other" */
};

/* Initialize zeroed memory, and free it. */
void vdi_serve_clients_init(struct vdi_serve_clients *clients);
void vdi_serve_clients_fini(struct vdi_serve_clients *clients);
/* version.data NULL: the call has none. Otherwise it is UTF-8. */
void vdi_serve_clients_count(struct vdi_serve_clients *clients, struct vd_bytes version, bool is_stream);
void vdi_serve_clients_render(struct vdi_serve_clients *clients, struct vdi_buffer *body);

#endif
