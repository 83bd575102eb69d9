/* gRPC C core in this process: started with its first user, stopped with its last one; and what it says goes
 * into a log of ours.
 *
 * Core has one log function for the whole process. What it says (errors only, unless GRPC_VERBOSITY is set)
 * goes to the log of the newest user that is still there, at most one record every ten seconds with the
 * number of those left out: a peer that fails a handshake again and again must not fill a disk.
 *
 * Never fork without exec while a user is there.
 */
#ifndef VDI_GRPC_RUNTIME_H
#define VDI_GRPC_RUNTIME_H

#include "base.h"

/* Bytes of a stream that a peer may send before they are read. */
#define VDI_GRPC_WINDOW (1 << 20)

/* Lies inside its owner. Zeroed memory is no user. */
struct vdi_grpc_user {
	const struct vd_env  *env;
	struct vdi_grpc_user *next; /* under the runtime's lock */
};

/* Any thread. Waits when core is being stopped at this moment. */
void vdi_grpc_runtime_enter(struct vdi_grpc_user *user, const struct vd_env *env);
/* The last one stops core and waits until its threads have ended and its memory is gone (some ms): not from a
 * pool's thread. Everything made with core must have been released. Nothing happens when it never entered. */
void vdi_grpc_runtime_leave(struct vdi_grpc_user *user);

#endif
