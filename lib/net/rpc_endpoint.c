/* Upstream: etcd client/v3/internal/endpoint/endpoint.go defines the forms. A missing port, which grpc-go
 * detects while dialing, is refused here at once.
 */
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "buffer.h"
#include "http_parser.h"
#include "rpc_endpoint.h"

#define ADDRESS_SIZE_MAX 1024
#define SOCKET_PATH_MAX 107

static bool starts_with(const char *text, const char *prefix, const char **ret_rest)
{
	size_t size = strlen(prefix);

	if (strncasecmp(text, prefix, size) != 0)
		return false;
	*ret_rest = text + size;
	return true;
}

static vd_status refuse(struct vd_error *reterr, const char *name, const char *why)
{
	return vd_error_set(reterr, VD_INVALID_ARGUMENT, "endpoint \"%.200s\": %s", name, why);
}

static bool is_port(const char *text, size_t size)
{
	unsigned port = 0;

	for (size_t i = 0; i < size && i < 6; i++) {
		if (!isdigit((unsigned char) text[i]))
			return false;
		port = port * 10 + (unsigned) (text[i] - '0');
	}
	return size > 0 && size < 6 && port > 0 && port < 65536;
}

/* Returns the fault; NULL: a valid host and port. */
static const char *check_host_port(const char *text, size_t size)
{
	const char *colon = memrchr(text, ':', size);
	const char *bracket = memrchr(text, ']', size);
	size_t	    host_size;

	if (size == 0)
		return "is empty";
	if (colon == NULL || (bracket && bracket > colon))
		return "has no port";
	host_size = (size_t) (colon - text);
	if (!is_port(colon + 1, size - host_size - 1))
		return "has no valid port";
	if (host_size == 0)
		return "has no host";
	if (text[0] == '[' ? text[host_size - 1] != ']' || host_size < 4 :
			     memchr(text, ':', host_size) != NULL)
		return "is not host:port";
	for (size_t i = 0; i < host_size; i++) {
		if (!vdi_ascii_is_alnum((unsigned char) text[i]) &&
		    strchr(text[0] == '[' ? "[]:.%-_" : ".-_", text[i]) == NULL)
			return "has a host with a character that no host name has";
	}
	return NULL;
}

static const char *parse_socket(const char *path, struct vdi_rpc_endpoint *endpoint,
				struct vdi_buffer *address)
{
	const char *rest;

	if (starts_with(path, "//", &rest))
		path = rest;
	if (*path == 0)
		return "has no path";
	if (strlen(path) > SOCKET_PATH_MAX)
		return "has a path that is too long for a socket (107 bytes)";
	endpoint->is_socket = true;
	vdi_buffer_append_text(address, path);
	return NULL;
}

static const char *parse_host(const char *text, struct vdi_rpc_endpoint *endpoint, struct vdi_buffer *address)
{
	/* A URL may have a path, which is ignored. */
	size_t	    size = endpoint->scheme == VDI_RPC_AS_CONFIGURED ? strlen(text) : strcspn(text, "/?#");
	const char *wrong = check_host_port(text, size);

	if (wrong)
		return wrong;
	vdi_buffer_append(address, (struct vd_bytes) { text, size });
	return NULL;
}

vd_status vdi_rpc_endpoint_parse(const char *name, struct vdi_rpc_endpoint *ret_endpoint,
				 struct vd_error *reterr)
{
	struct vdi_rpc_endpoint endpoint = { .scheme = VDI_RPC_AS_CONFIGURED };
	struct vdi_buffer	address;
	const char	       *rest = name;
	const char	       *wrong;
	bool			is_socket = false;
	vd_status		status;

	vdi_buffer_init(&address, ADDRESS_SIZE_MAX);
	if (starts_with(name, "http://", &rest))
		endpoint.scheme = VDI_RPC_PLAIN;
	else if (starts_with(name, "https://", &rest))
		endpoint.scheme = VDI_RPC_TLS;
	else if (starts_with(name, "unix:", &rest))
		is_socket = true;
	else if (starts_with(name, "unixs:", &rest)) {
		endpoint.scheme = VDI_RPC_TLS;
		is_socket = true;
	}
	if (is_socket)
		wrong = parse_socket(rest, &endpoint, &address);
	else if (strstr(rest, "://"))
		wrong = "has an unknown scheme (http, https, unix and unixs are supported)";
	else
		wrong = parse_host(rest, &endpoint, &address);
	vdi_buffer_append_char(&address, 0);
	status = vdi_buffer_status(&address);
	if (wrong || status == VD_TOO_BIG)
		status = refuse(reterr, name, wrong ? wrong : "is too long");
	else if (status == VD_OK) {
		endpoint.address = vdi_strdup(address.data);
		status = endpoint.address ? VD_OK : VD_NOMEM;
	}
	vdi_buffer_fini(&address);
	if (status == VD_OK)
		*ret_endpoint = endpoint;
	return status;
}

vd_status vdi_rpc_endpoints_use_tls(const char *const *endpoints, size_t count, bool is_tls_configured,
				    bool *ret_tls, struct vd_error *reterr)
{
	struct vdi_rpc_endpoint first;

	if (count == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "etcdclient: no available endpoints");
	VDI_TRY(vdi_rpc_endpoint_parse(endpoints[0], &first, reterr));
	vdi_free(first.address);
	*ret_tls =
		first.scheme == VDI_RPC_TLS || (first.scheme == VDI_RPC_AS_CONFIGURED && is_tls_configured);
	return VD_OK;
}
