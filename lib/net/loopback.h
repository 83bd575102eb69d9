/* Recognizes loopback names and addresses in Host headers and in listen addresses. Resolves nothing, because
 * a name may mean another machine later. */
#ifndef VDI_LOOPBACK_H
#define VDI_LOOPBACK_H

#include "base.h"

/* text: a host, optionally with a port ("127.0.0.1:8080"). True for `localhost` and `localhost.` in any case,
 * four decimal numbers of which the first is 127, and in brackets ::1 and the IPv4-mapped form of such an
 * address. False for everything else, for example `127.example.org` and `127.1`. Any thread. */
bool vdi_loopback_has_host(struct vd_bytes text);

#endif
