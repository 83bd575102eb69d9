/* What is said of an access that nobody allowed. */
#ifndef VDI_HTTP_AUTH_H
#define VDI_HTTP_AUTH_H

#include "policy.h"

/* `User "ann" cannot list resource "pods" in API group "" in the namespace "a"`, as upstream. */
void vdi_access_say(const struct vdi_access *access, const char *user, char *buffer, size_t size);

struct vdi_request;
/* Kubernetes' verb for objects and their collections, else the method in small letters; "" for other methods. */
const char *vdi_request_verb(const struct vdi_request *request);

#endif
