/* Reads a kubeconfig file: server and credentials. One thread; blocks in reads. */
#ifndef VDI_KUBECONFIG_READ_H
#define VDI_KUBECONFIG_READ_H

#include "base.h"
#include "exec_credential.h"

/* Texts are owned, NULL if missing in the file; data is PEM. Paths are relative to the file, as for
 * kubectl. */
struct vdi_kubeconfig {
	char		    *server, *token, *ca_file, *cert_file, *key_file;
	char		    *token_file; /* token is its content when it was read */
	char		    *server_name, *proxy_url, *namespace_name;
	struct vd_bytes	     ca_data, cert_data, key_data;
	bool		     insecure;
	struct vdi_exec_plan exec; /* command NULL: none */
};

#define VDI_KUBECONFIGS_MAX 16

/* context NULL: the current one. VD_NOT_FOUND, VD_IO: the file; VD_BAD_REQUEST: not a kubeconfig, a name that
 * it does not define, or an unsupported method (a password, impersonation, a
 * program that needs a terminal); VD_UNSUPPORTED:
 * built without libyaml, and the file is not JSON. The message names the file. */
VDI_MUST_USE vd_status vdi_kubeconfig_read(const char *path, const char *context,
					   struct vdi_kubeconfig *ret_config, struct vd_error *reterr);
/* The same of several files, separated by ':', as in $KUBECONFIG: the first that defines a name counts.
 * Files that do not exist are left out; VD_NOT_FOUND: none exists. */
VDI_MUST_USE vd_status vdi_kubeconfig_read_list(const char *paths, const char *context,
						struct vdi_kubeconfig *ret_config, struct vd_error *reterr);
/* Accepts a zeroed struct. */
void vdi_kubeconfig_fini(struct vdi_kubeconfig *config);

#endif
