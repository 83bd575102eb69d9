/* The rules are those of libcurl, which compares only the host of the URL: with a server name for TLS that is
 * not the host of the server. */
#include "no_proxy.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <strings.h>

#define HOST_MAX 255

struct address {
	int	      family; /* 0: not an address */
	unsigned char bytes[16];
};

static struct address parse_address(const char *text)
{
	struct address address = { 0 };

	if (inet_pton(AF_INET, text, address.bytes) == 1)
		address.family = AF_INET;
	else if (inet_pton(AF_INET6, text, address.bytes) == 1)
		address.family = AF_INET6;
	return address;
}

static bool has_equal_bits(const struct address *a, const struct address *b, unsigned bits)
{
	unsigned char mask = (unsigned char) (0xFF00 >> (bits % 8));

	if (memcmp(a->bytes, b->bytes, bits / 8) != 0)
		return false;
	return bits % 8 == 0 || ((a->bytes[bits / 8] ^ b->bytes[bits / 8]) & mask) == 0;
}

static bool is_in_network(const struct address *host, char *entry)
{
	unsigned       bits = host->family == AF_INET ? 32 : 128;
	char	      *slash = strchr(entry, '/'), *end;
	struct address network;

	if (slash) {
		unsigned long length = strtoul(slash + 1, &end, 10);

		if (slash[1] < '0' || slash[1] > '9' || *end || length > bits)
			return false;
		bits = (unsigned) length;
		*slash = 0;
	}
	network = parse_address(entry);
	return network.family == host->family && has_equal_bits(host, &network, bits);
}

static bool is_in_domain(const char *host, const char *entry)
{
	size_t host_size = strlen(host), size;

	entry += *entry == '.';
	size = strlen(entry);
	size -= size && entry[size - 1] == '.';
	if (size == 0 || size > host_size || strncasecmp(host + host_size - size, entry, size) != 0)
		return false;
	return size == host_size || host[host_size - size - 1] == '.';
}

static bool copy_host(struct vd_bytes host, char text[HOST_MAX + 1])
{
	const char *bytes = host.data;

	if (host.size >= 2 && bytes[0] == '[' && bytes[host.size - 1] == ']') {
		bytes++;
		host.size -= 2;
	}
	if (host.size && bytes[host.size - 1] == '.')
		host.size--;
	if (host.size == 0 || host.size > HOST_MAX)
		return false;
	memcpy(text, bytes, host.size);
	text[host.size] = 0;
	return true;
}

bool vdi_no_proxy_has(const char *list, struct vd_bytes host)
{
	static const char separators[] = ", \t";
	char		  text[HOST_MAX + 1], entry[HOST_MAX + 1];
	struct address	  address;
	size_t		  size;

	if (list == NULL || !copy_host(host, text))
		return false;
	if (strcmp(list, "*") == 0)
		return true;
	address = parse_address(text);
	for (;; list += size) {
		list += strspn(list, separators);
		size = strcspn(list, separators);
		if (size == 0)
			return false;
		if (size > HOST_MAX)
			continue;
		memcpy(entry, list, size);
		entry[size] = 0;
		if (address.family ? is_in_network(&address, entry) : is_in_domain(text, entry))
			return true;
	}
}
