/* Identity of a client, as Kubernetes' user.Info: a user name, a UID and groups.
 *
 * Immutable and reference-counted: a connection (client certificate), a row of the token file and the
 * requests authenticated by them share one identity. Any thread.
 */
#ifndef VDI_IDENTITY_H
#define VDI_IDENTITY_H

#include <stdatomic.h>

#include "base.h"
#include "out.h"

#define VDI_USER_ANONYMOUS "system:anonymous"
#define VDI_GROUP_AUTHENTICATED "system:authenticated"
#define VDI_GROUP_UNAUTHENTICATED "system:unauthenticated"
#define VDI_GROUP_MASTERS "system:masters" /* authorized for everything */
#define VDI_IDENTITY_GROUPS_MAX 64

struct vdi_identity {
	_Atomic uint32_t users;
	const char	*user;
	const char	*uid; /* "" if there is none */
	size_t		 group_count;
	const char	*groups[]; /* the last is system:authenticated or system:unauthenticated */
};

/* Copies its arguments and appends last_group. uid and groups may be NULL. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_identity_new(struct vd_bytes user, struct vd_bytes uid,
					const struct vd_bytes *groups, size_t group_count,
					const char *last_group, struct vdi_identity **ret_identity);
/* NULL is fine in both. */
struct vdi_identity *vdi_identity_ref(struct vdi_identity *identity);
struct vdi_identity *vdi_identity_unref(struct vdi_identity *identity);

bool vdi_identity_is_in(const struct vdi_identity *identity, const char *group);
/* Writes a UserInfo of authentication.k8s.io as the object member key; an empty object if identity is
 * NULL. */
void vdi_identity_write(struct vdi_out *out, const char *key, const struct vdi_identity *identity);

#endif
