/* A file of Kubernetes' EncryptionConfiguration (apiserver.config.k8s.io/v1), as --encryption-provider-config
 * of kube-apiserver reads it, and the store that it asks for.
 *
 * Providers: aesgcm and identity. Resources: plural names, with ".GROUP" behind those that are not of the
 * core group; "*.GROUP" all of a group, "*." all of the core group, "*.*" everything. Of several entries that
 * name a resource, the first one counts.
 *
 * Blocks in reads.
 */
#ifndef VDI_ENCRYPTION_FILE_H
#define VDI_ENCRYPTION_FILE_H

#include <vedette/encryption.h>

#include "base.h"

/* resources_path: further kinds, or NULL. root: where keys begin in the store ("/registry"), or NULL for
 * that. Takes inner over as vd_store_open_encrypted does. VD_INVALID: the file says something that is not
 * understood; VD_NOT_FOUND, VD_IO, VD_BAD_REQUEST: it cannot be read; VD_UNSUPPORTED: a provider that vedette
 * does not have. The message names the file. */
VDI_MUST_USE vd_status vdi_encryption_file_open(const struct vd_env *env, const char *path,
						const char *resources_path, const char *root,
						struct vd_store *inner, struct vd_store **ret_store,
						struct vd_error *reterr);

#endif
