/* The transport on libcurl (kube_transport.h): one thread, which waits for all exchanges of the client.
 *
 * HTTP/2 where a TLS server offers it, with as many exchanges on a connection as the server allows;
 * otherwise HTTP/1.1. Redirects are not followed, only http and https are spoken, and a token is sent to
 * the server alone. The server's certificate must be signed by the configured CA, or without one by a CA
 * of the system.
 *
 * Bounds: VDI_KUBE_HEAD_MAX bytes of heads and trailers in a response; VDI_KUBE_HELD_MAX bytes that a
 * handler refused, after which the exchange is no longer read. A connection on which nothing was received
 * during an exchange's timeout or silence_max is closed, together with all of its exchanges, because it is
 * probably half-open. */
#ifndef VDI_KUBE_CURL_H
#define VDI_KUBE_CURL_H

#include "kube_transport.h"

#define VDI_KUBE_HEAD_MAX ((size_t) 256 << 10)
#define VDI_KUBE_HELD_MAX ((size_t) 1 << 20)

/* Has the type vdi_kube_transport_new_fn. Loads libcurl. VD_UNAVAILABLE: it is missing;
 * VD_INVALID_ARGUMENT: server is not a URL; VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_kube_curl_new(const struct vdi_kube_transport_options *options,
					 struct vdi_kube_transport **ret_transport, struct vd_error *reterr);

#endif
