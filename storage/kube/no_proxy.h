/* The list of NO_PROXY: hosts that are reached without a proxy. Pure functions; any thread. */
#ifndef VDI_NO_PROXY_H
#define VDI_NO_PROXY_H

#include "base.h"

/* Returns true if the list names the host: "*", or a host, domain (with or without a dot in front), address
 * or network (10.0.0.0/8) of it, separated by commas or spaces. host has no port; an IPv6 address may have
 * brackets. list NULL: none. */
bool vdi_no_proxy_has(const char *list, struct vd_bytes host);

#endif
