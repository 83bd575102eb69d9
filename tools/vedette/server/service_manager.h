/* The protocol between a service manager (systemd) and a server: readiness, reload, stop, watchdog, passed
 * sockets.
 *
 * The protocols are those of sd_notify(3), sd_watchdog_enabled(3) and sd_listen_fds(3), which systemd
 * guarantees to keep: datagrams of lines to $NOTIFY_SOCKET, and three variables. libsystemd is not used,
 * because it loads compression and cryptography libraries into the process.
 *
 * Without a service manager all functions do nothing. Notifications: any thread.
 */
#ifndef VDI_SERVICE_MANAGER_H
#define VDI_SERVICE_MANAGER_H

#include "base.h"

struct vdi_service_manager {
	bool   is_there;
	char   path[108]; /* of its socket; in the abstract namespace the first byte is NUL */
	size_t path_size;
	vd_dur watchdog; /* interval of watchdog notifications; 0: none */
	int    socket;	 /* passed listening socket; 0: none */
};

/* Reads the environment and removes its variables, so that child processes do not use them.
 * VD_INVALID_ARGUMENT: invalid variables, or several sockets; the message names them. */
VDI_MUST_USE vd_status vdi_service_manager_init(struct vdi_service_manager *manager, struct vd_error *reterr);
/* Sends lines such as "READY=1\nSTATUS=...". Failures are ignored: the notification is repeated, or the
 * manager's time-out expires. */
void vdi_service_manager_notify(const struct vdi_service_manager *manager, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Sends RELOADING=1 with the time, as Type=notify-reload requires. READY=1 ends it. */
void vdi_service_manager_notify_reloading(const struct vdi_service_manager *manager, vd_mono now);

#endif
