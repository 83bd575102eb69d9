/* A file with Kubernetes' EncryptionConfiguration (apiserver.config.k8s.io/v1), as for kube-apiserver's
 * --encryption-provider-config, and the encrypted store that it describes.
 *
 * Providers: aesgcm and identity. Resources: plural names, with ".GROUP" unless they are of the core group;
 * "*.GROUP" for a whole group, "*." for the core group, "*.*" for everything. If several entries name a
 * resource, the first one applies.
 *
 * Blocks in reads.
 */
#ifndef VDI_ENCRYPTION_FILE_H
#define VDI_ENCRYPTION_FILE_H

#include <vedette/encryption.h>

#include "base.h"

/* Opens the store that encrypts as path configures. resources_path: additional kinds, or NULL. root: key
 * prefix in the store; NULL: "/registry". Takes inner over as vd_store_open_encrypted does. VD_INVALID: the
 * file's content; VD_NOT_FOUND, VD_IO, VD_BAD_REQUEST: it cannot be read; VD_UNSUPPORTED: a provider that
 * vedette does not have. The message names the file. */
VDI_MUST_USE vd_status vdi_encryption_file_open(const struct vd_env *env, const char *path,
						const char *resources_path, const char *root,
						struct vd_store *inner, struct vd_store **ret_store,
						struct vd_error *reterr);

#endif
