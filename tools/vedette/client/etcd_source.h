/* Objects straight from an etcd, for commands that otherwise ask a server: a server within the process, for
 * one kind, read-only, on a socket in a directory that nobody else may enter (so nobody else can use this
 * command's rights). One thread; blocks. */
#ifndef VDI_ETCD_SOURCE_H
#define VDI_ETCD_SOURCE_H

#include "etcd_options.h"

struct vdi_etcd_source;

/* typed: "po", "pods", "deployments.apps", "pods/web-1". resources_path: further kinds, or NULL. log is lent
 * for the source's life. */
VDI_MUST_USE vd_status vdi_etcd_source_open(const struct vdi_etcd_settings *settings,
					    const char *resources_path, const char *typed,
					    struct vdi_log_settings *log, struct vdi_etcd_source **ret_source,
					    struct vd_error *reterr);
/* For vdi_http_client_options.socket_path; lent. */
const char *vdi_etcd_source_path(const struct vdi_etcd_source *source);
/* Its clients must be gone. NULL is fine. */
void vdi_etcd_source_close(struct vdi_etcd_source *source);

#endif
