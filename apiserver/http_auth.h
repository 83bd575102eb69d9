/* What is said of an access that nobody allowed. */
#ifndef VDI_HTTP_AUTH_H
#define VDI_HTTP_AUTH_H

#include "policy.h"

/* `User "ann" cannot list resource "pods" in API group "" in the namespace "a"`, as upstream. */
void vdi_access_say(const struct vdi_access *access, const char *user, char *buffer, size_t size);

#endif
