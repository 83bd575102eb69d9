/* An accepted socket until its protocol is known: the TLS handshake, then the first bytes.
 *
 *   plain text       preface of HTTP/2 -> HTTP/2; else -> other, with the bytes read
 *   TLS, ALPN is h2  HTTP/2; no bytes were read
 *   TLS, else        preface -> nothing (HTTP/2 requires ALPN); else -> other
 *
 * Nothing is sent before that, so a client of another protocol gets no HTTP/2 frames. Bytes that begin like
 * the preface are never taken for another protocol: at most 24 bytes are read.
 *
 * Loop's thread only.
 */
#ifndef VDI_H2_DETECTION_H
#define VDI_H2_DETECTION_H

#include "h2_loop.h"
#include "h2_tls.h"

#define VDI_H2_PREFACE_SIZE 24

struct vdi_h2_detection;

enum vdi_h2_opened_as { VDI_H2_OPENED_NOTHING, VDI_H2_OPENED_HTTP2, VDI_H2_OPENED_OTHER };

/* The result. fd and link (NULL: plain text) belong to the receiver; with VDI_H2_OPENED_NOTHING both are
 * closed. */
struct vdi_h2_opened {
	enum vdi_h2_opened_as as;
	int		      fd;
	struct vdi_h2_link   *link;
	size_t		      size; /* HTTP/2: 0, or the whole preface */
	char		      bytes[VDI_H2_PREFACE_SIZE];
};

struct vdi_h2_detection_options {
	int		   fd;	/* non-blocking; taken over with VD_OK */
	struct vdi_h2_tls *tls; /* NULL: plain text; borrowed for the call */
	vd_dur		   timeout;
	/* Exactly once, unless the detection is freed before; not inside another callback of the loop's
	 * owner. May free the detection. */
	void (*opened)(void *arg, const struct vdi_h2_opened *opened);
	void *arg;
};

/* No callback before the loop continues. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_detection_new(struct vdi_h2_loop			  *h2_loop,
					    const struct vdi_h2_detection_options *options,
					    struct vdi_h2_detection		 **ret_detection);
/* Closes the socket if `opened` was not called. NULL is allowed; returns NULL. */
struct vdi_h2_detection *vdi_h2_detection_free(struct vdi_h2_detection *detection);

#endif
