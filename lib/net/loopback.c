#include "loopback.h"

#include <arpa/inet.h>

#include "http_parser.h"

#define PORT_DIGITS_MAX 5

static bool is_port(struct vd_bytes text)
{
	const char *at = text.data;

	if (text.size == 0)
		return true;
	if (at[0] != ':' || text.size > 1 + PORT_DIGITS_MAX)
		return false;
	for (size_t i = 1; i < text.size; i++) {
		if (at[i] < '0' || at[i] > '9')
			return false;
	}
	return true;
}

static bool is_number(struct vd_bytes host, bool is_v6)
{
	char		text[INET6_ADDRSTRLEN];
	struct in_addr	four;
	struct in6_addr six;

	if (host.size >= sizeof text || memchr(host.data, 0, host.size))
		return false;
	memcpy(text, host.data, host.size);
	text[host.size] = 0;
	if (!is_v6)
		return inet_pton(AF_INET, text, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, text, &six) == 1 &&
	       (IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127));
}

bool vdi_loopback_has_host(struct vd_bytes text)
{
	const char     *at = text.data;
	const char     *end;
	bool		is_v6 = text.size && at[0] == '[';
	struct vd_bytes host;

	if (text.size == 0)
		return false;
	end = memchr(at, is_v6 ? ']' : ':', text.size);
	if (is_v6 && end == NULL)
		return false;
	host = (struct vd_bytes) { at + is_v6, (size_t) ((end ? end : at + text.size) - at) - is_v6 };
	at += host.size + (is_v6 ? 2 : 0);
	return is_port((struct vd_bytes) { at, text.size - (size_t) (at - (const char *) text.data) }) &&
	       (is_number(host, is_v6) || (!is_v6 && (vdi_ascii_equal_fold(host, "localhost") ||
						      vdi_ascii_equal_fold(host, "localhost."))));
}
