/* Objects read directly from an etcd, for commands that otherwise need a server: a server within the process,
 * for one kind, read-only, on a socket in a directory that only this user can enter, so that other users
 * cannot use this command's rights. One thread; blocks. */
#ifndef VDI_ETCD_SOURCE_H
#define VDI_ETCD_SOURCE_H

#include "etcd_options.h"

struct vdi_etcd_source;

/* typed: "po", "pods", "deployments.apps", "pods/web-1". resources_path: additional kinds, or NULL. log is
 * borrowed for the source's lifetime. */
VDI_MUST_USE vd_status vdi_etcd_source_open(const struct vdi_etcd_settings *settings,
					    const char *resources_path, const char *typed,
					    struct vdi_log_settings *log, struct vdi_etcd_source **ret_source,
					    struct vd_error *reterr);
/* Returns "unix:PATH" of the server's socket; borrowed. */
const char *vdi_etcd_source_url(const struct vdi_etcd_source *source);
/* Free its clients first. Accepts NULL. */
void vdi_etcd_source_close(struct vdi_etcd_source *source);

#endif
