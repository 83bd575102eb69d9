/* What a service manager (systemd) and a server say to each other: readiness, reloads, the end, signs of
 * life, sockets that were opened beforehand.
 *
 * The protocols are those of sd_notify(3), sd_watchdog_enabled(3) and sd_listen_fds(3), which systemd
 * promises to keep: a datagram of lines to $NOTIFY_SOCKET, and three variables. libsystemd is not needed for
 * that, and brings compressors and cryptography into the process.
 *
 * Without a service manager everything here does nothing. Saying: any thread.
 */
#ifndef VDI_SERVICE_MANAGER_H
#define VDI_SERVICE_MANAGER_H

#include "base.h"

struct vdi_service_manager {
	bool   is_there;
	char   path[108]; /* of its socket; the first byte is NUL in the abstract namespace */
	size_t path_size;
	vd_dur watchdog; /* how often it wants a sign of life; 0: never */
	int    socket;	 /* that it has opened for us; 0: none */
};

/* Reads the environment and takes its variables out of it, so that they mean no child of this process.
 * VD_INVALID_ARGUMENT: they make no sense, or there are several sockets; the message says which. */
VDI_MUST_USE vd_status vdi_service_manager_init(struct vdi_service_manager *manager, struct vd_error *reterr);
/* Lines such as "READY=1\nSTATUS=...". What cannot be sent is lost: it is said again, or the manager's
 * patience ends. */
void vdi_service_manager_say(const struct vdi_service_manager *manager, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* RELOADING=1, as Type=notify-reload wants it: with the time. READY=1 ends it. */
void vdi_service_manager_say_reloading(const struct vdi_service_manager *manager, vd_mono now);

#endif
