/* gRPC C core in this process: started with its first user, stopped with its last one; its log messages go to
 * vedette's log.
 *
 * Core has one log function per process. Its messages (errors only, unless GRPC_VERBOSITY is set) go to the
 * log of the newest remaining user, at most one record every ten seconds with the number of suppressed ones,
 * so that a peer whose handshakes fail repeatedly cannot fill a disk.
 *
 * Do not fork without exec while there is a user.
 */
#ifndef VDI_GRPC_RUNTIME_H
#define VDI_GRPC_RUNTIME_H

#include "base.h"

/* Maximum bytes that a peer may send on a stream before they are read. */
#define VDI_GRPC_WINDOW (1 << 20)

/* A member of its owner. Zeroed memory is not a user. */
struct vdi_grpc_user {
	const struct vd_env  *env;
	struct vdi_grpc_user *next; /* under the runtime's lock */
};

/* Any thread. Waits if core is just being stopped. */
void vdi_grpc_runtime_enter(struct vdi_grpc_user *user, const struct vd_env *env);
/* The last user stops core and waits until its threads have ended and its memory is freed (some ms), so do
 * not call it on a pool's thread. All objects of core must have been released. No effect if the user never
 * entered. */
void vdi_grpc_runtime_leave(struct vdi_grpc_user *user);

#endif
