/* The kinds of a server: where they come from, and how a set of them becomes the one that is served. */
#ifndef VDI_KINDS_H
#define VDI_KINDS_H

#include "served.h"

struct vd_server;

/* Before the loops run: reads what the options name, makes the caches and the first set. VD_INVALID: the message names entry and member. VD_NOMEM. Blocks for the
 * disk. */
VDI_MUST_USE vd_status vdi_kinds_start(struct vd_server *server, struct vd_error *reterr);
/* The newest set, a use of the caller's; NULL when the server ends. Any thread. */
struct vdi_served *vdi_kinds_get(struct vd_server *server);
/* After the last connection went: nothing is served any more, all caches end. Blocks until they are gone; the loops must run. */
void vdi_kinds_stop(struct vd_server *server);

#endif
