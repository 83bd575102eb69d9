/* Datagrams to the manager's socket, and the variables that it sets. */
#include "service_manager.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_SOCKET 3

/* Returns a whole number that is not negative, or -1. */
static long long number_of(const char *text)
{
	char	 *end;
	long long number;

	errno = 0;
	number = strtoll(text, &end, 10);
	return end == text || *end || errno || number < 0 || *text == '+' || *text == ' ' ? -1 : number;
}

/* Returns false if the variables are for another process, such as the parent. */
static bool is_for_us(const char *variable)
{
	const char *text = getenv(variable);

	return text == NULL || number_of(text) == getpid();
}

static vd_status take_notify_socket(struct vdi_service_manager *manager, struct vd_error *reterr)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t	    size = path ? strlen(path) : 0;

	if (size == 0)
		return VD_OK;
	if ((path[0] != '/' && path[0] != '@') || size < 2 || size >= sizeof manager->path)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "NOTIFY_SOCKET=%.120s: neither a path nor an abstract name", path);
	memcpy(manager->path, path, size);
	if (path[0] == '@')
		manager->path[0] = 0;
	manager->path_size = size;
	manager->is_there = true;
	return VD_OK;
}

static vd_status take_watchdog(struct vdi_service_manager *manager, struct vd_error *reterr)
{
	const char *text = getenv("WATCHDOG_USEC");
	long long   usec;

	if (text == NULL || !is_for_us("WATCHDOG_PID"))
		return VD_OK;
	usec = number_of(text);
	if (usec <= 0 || usec > INT64_MAX / 1000)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "WATCHDOG_USEC=%.40s: not a number of microseconds", text);
	manager->watchdog = (vd_dur) { usec * 1000 };
	return VD_OK;
}

static vd_status take_sockets(struct vdi_service_manager *manager, struct vd_error *reterr)
{
	const char *text = getenv("LISTEN_FDS");
	long long   count;

	if (text == NULL || getenv("LISTEN_PID") == NULL || !is_for_us("LISTEN_PID"))
		return VD_OK;
	count = number_of(text);
	if (count < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "LISTEN_FDS=%.40s: not a number", text);
	if (count > 1)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "LISTEN_FDS passes %lld sockets: only one is supported", count);
	if (count && fcntl(FIRST_SOCKET, F_GETFD) < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "LISTEN_FDS=1, but file descriptor %d is not open", FIRST_SOCKET);
	manager->socket = count ? FIRST_SOCKET : 0;
	return VD_OK;
}

vd_status vdi_service_manager_init(struct vdi_service_manager *manager, struct vd_error *reterr)
{
	static const char *const names[] = { "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
					     "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES" };

	*manager = (struct vdi_service_manager) { .is_there = false };
	VDI_TRY(take_notify_socket(manager, reterr));
	VDI_TRY(take_watchdog(manager, reterr));
	VDI_TRY(take_sockets(manager, reterr));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++)
		(void) unsetenv(names[i]);
	return VD_OK;
}

void vdi_service_manager_notify(const struct vdi_service_manager *manager, const char *format, ...)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char		   text[1024];
	va_list		   arguments;
	int		   size, fd;

	if (!manager->is_there)
		return;
	va_start(arguments, format);
	size = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (size <= 0)
		return;
	memcpy(address.sun_path, manager->path, manager->path_size);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void) sendto(fd, text, VDI_MIN((size_t) size, sizeof text - 1), MSG_NOSIGNAL | MSG_DONTWAIT,
		      (struct sockaddr *) &address,
		      (socklen_t) (offsetof(struct sockaddr_un, sun_path) + manager->path_size));
	(void) close(fd);
}

void vdi_service_manager_notify_reloading(const struct vdi_service_manager *manager, vd_mono now)
{
	vdi_service_manager_notify(
		manager,
		"RELOADING=1\nMONOTONIC_USEC=%lld\nSTATUS=Reading certificates, tokens and policy again",
		(long long) (now.ns / 1000));
}
