/* A kubeconfig file, read: which server, and who we are to it. One thread; blocks in reads. */
#ifndef VDI_KUBECONFIG_READ_H
#define VDI_KUBECONFIG_READ_H

#include "base.h"
#include "exec_credential.h"

/* Texts are owned by it, NULL where the file says nothing; data is PEM. Paths are relative to the file, as
 * for kubectl. */
struct vdi_kubeconfig {
	char		    *server, *token, *ca_file, *cert_file, *key_file;
	struct vd_bytes	     ca_data, cert_data, key_data;
	bool		     insecure;
	struct vdi_exec_plan exec; /* command NULL: none */
};

/* context NULL: the current one. VD_NOT_FOUND, VD_IO: the file; VD_BAD_REQUEST: it is no kubeconfig, names
 * something that is not in it, or wants what we cannot do (a password, a program that needs a terminal);
 * VD_UNSUPPORTED: built without libyaml, and the file is no JSON. The message names the file. */
VDI_MUST_USE vd_status vdi_kubeconfig_read(const char *path, const char *context,
					   struct vdi_kubeconfig *ret_config, struct vd_error *reterr);
/* Copes with a zeroed one. */
void vdi_kubeconfig_fini(struct vdi_kubeconfig *config);

#endif
