/* One connection for each command, so there is no state, and any thread may call. */
#include "control.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool refuse(char *answer, size_t size, const char *why)
{
	snprintf(answer, size, "%s", why);
	return false;
}

/* $CONTROL is ADDRESS:PORT with an IPv4 address. */
static int connect_control(void)
{
	const char	  *control = getenv("CONTROL");
	const char	  *colon = control != NULL ? strrchr(control, ':') : NULL;
	struct sockaddr_in address = { .sin_family = AF_INET };
	char		   host[32];
	int		   fd;

	if (colon == NULL || (size_t) (colon - control) >= sizeof(host))
		return -1;
	memcpy(host, control, (size_t) (colon - control));
	host[colon - control] = '\0';
	address.sin_port = htons((uint16_t) atoi(colon + 1));
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
		return -1;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *) &address, sizeof(address)) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool test_control(const char *command, char *answer, size_t size)
{
	char	    line[1024];
	size_t	    length = 0;
	int	    fd = connect_control();
	const char *rest;

	if (fd < 0)
		return refuse(answer, size, "nobody listens at $CONTROL");
	if (dprintf(fd, "%s\n", command) < 0) {
		close(fd);
		return refuse(answer, size, "the command could not be sent");
	}
	for (;;) {
		ssize_t n = read(fd, line + length, sizeof(line) - 1 - length);

		if (n <= 0)
			break;
		length += (size_t) n;
		if (line[length - 1] == '\n' || length == sizeof(line) - 1)
			break;
	}
	close(fd);
	while (length > 0 && line[length - 1] == '\n')
		length--;
	line[length] = '\0';
	if (strncmp(line, "ok", 2) != 0)
		return refuse(answer, size, strncmp(line, "error ", 6) == 0 ? line + 6 : "no answer");
	rest = line[2] == ' ' ? line + 3 : "";
	snprintf(answer, size, "%s", rest);
	return true;
}
