/* A socket that the server has accepted, until it is known what its peer speaks: the handshake of TLS, then
 * the first bytes.
 *
 *   plain text             the preface of HTTP/2 -> HTTP/2; anything else -> other, with the bytes that were read
 *   TLS, h2 agreed on      HTTP/2, nothing was read
 *   TLS, else              the preface -> nothing (HTTP/2 wants ALPN); anything else -> other
 *
 * Nothing is sent before that, so nobody who speaks something else gets frames to read. What the preface
 * begins with is never taken for anything else: at most 24 bytes are read.
 *
 * The loop's thread.
 */
#ifndef VDI_H2_OPENING_H
#define VDI_H2_OPENING_H

#include "h2_hub.h"
#include "h2_tls.h"

#define VDI_H2_PREFACE_SIZE 24

struct vdi_h2_opening;

enum vdi_h2_opened_as { VDI_H2_OPENED_NOTHING, VDI_H2_OPENED_HTTP2, VDI_H2_OPENED_OTHER };

/* What it came to. fd and link (NULL: plain text) are whoever's it is told to; with VDI_H2_OPENED_NOTHING
 * both are gone. */
struct vdi_h2_opened {
	enum vdi_h2_opened_as as;
	int		      fd;
	struct vdi_h2_link   *link;
	size_t		      size; /* HTTP/2: 0, or all of the preface */
	char		      bytes[VDI_H2_PREFACE_SIZE];
};

struct vdi_h2_opening_options {
	int		   fd;	/* non-blocking; the opening's from VD_OK on */
	struct vdi_h2_tls *tls; /* NULL: plain text; borrowed for the call */
	vd_dur		   timeout;
	/* Exactly once, unless it is freed before; not inside another callback of the loop's owner. The
	 * opening may be freed in it. */
	void (*opened)(void *arg, const struct vdi_h2_opened *opened);
	void *arg;
};

/* Nothing is told before the loop runs on. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_opening_new(struct vdi_h2_hub		      *hub,
					  const struct vdi_h2_opening_options *options,
					  struct vdi_h2_opening		     **ret_opening);
/* Closes the socket if it has not been told. NULL is fine; returns NULL. */
struct vdi_h2_opening *vdi_h2_opening_free(struct vdi_h2_opening *opening);

#endif
