/* Upstream: etcd client/v3/internal/endpoint/endpoint.go for the forms. What grpc-go finds out while dialing (no port) we say at once.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "buffer.h"
#include "grpc_endpoint.h"

#define TARGET_SIZE_MAX 1024
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

/* What a URI's path takes as it is. */
static bool is_path_char(char c)
{
	return isalnum((unsigned char) c) || strchr("-._~!$&'()*+,;=:@/", c) != NULL;
}

static void append_path(struct vdi_buffer *target, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] && is_path_char(text[i]))
			vdi_buffer_append_char(target, text[i]);
		else
			vdi_buffer_printf(target, "%%%02X", (unsigned char) text[i]);
	}
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

/* NULL: it is a host and a port. */
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
	if (text[0] == '[' ? text[host_size - 1] != ']' || host_size < 4 : memchr(text, ':', host_size) != NULL)
		return "is not host:port";
	for (size_t i = 0; i < host_size; i++) {
		if (!isalnum((unsigned char) text[i]) && strchr(text[0] == '[' ? "[]:.%-_" : ".-_", text[i]) == NULL)
			return "has a host with a character that no host name has";
	}
	return NULL;
}

static const char *parse_socket(const char *path, struct vdi_grpc_endpoint *endpoint, struct vdi_buffer *target)
{
	const char *rest;

	if (starts_with(path, "//", &rest))
		path = rest;
	if (*path == 0)
		return "has no path";
	if (strlen(path) > SOCKET_PATH_MAX)
		return "has a path that is too long for a socket (107 bytes)";
	endpoint->is_socket = true;
	vdi_buffer_append_text(target, *path == '/' ? "unix://" : "unix:");
	append_path(target, path, strlen(path));
	return NULL;
}

static const char *parse_host(const char *text, struct vdi_grpc_endpoint *endpoint, struct vdi_buffer *target)
{
	/* A URL may have a path, which says nothing to us. */
	size_t	    size = endpoint->scheme == VDI_GRPC_AS_CONFIGURED ? strlen(text) : strcspn(text, "/?#");
	const char *wrong = check_host_port(text, size);

	if (wrong)
		return wrong;
	vdi_buffer_append_text(target, "dns:///");
	append_path(target, text, size);
	return NULL;
}

vd_status vdi_grpc_endpoint_parse(const char *name, struct vdi_grpc_endpoint *ret_endpoint, struct vd_error *reterr)
{
	struct vdi_grpc_endpoint endpoint = { .scheme = VDI_GRPC_AS_CONFIGURED };
	struct vdi_buffer	 target;
	const char		*rest = name;
	const char		*wrong;
	bool			 is_socket = false;
	vd_status		 status;

	vdi_buffer_init(&target, TARGET_SIZE_MAX);
	if (starts_with(name, "http://", &rest))
		endpoint.scheme = VDI_GRPC_PLAIN;
	else if (starts_with(name, "https://", &rest))
		endpoint.scheme = VDI_GRPC_TLS;
	else if (starts_with(name, "unix:", &rest))
		is_socket = true;
	else if (starts_with(name, "unixs:", &rest)) {
		endpoint.scheme = VDI_GRPC_TLS;
		is_socket = true;
	}
	if (is_socket)
		wrong = parse_socket(rest, &endpoint, &target);
	else if (strstr(rest, "://"))
		wrong = "has a scheme that is none of http, https, unix, unixs";
	else
		wrong = parse_host(rest, &endpoint, &target);
	vdi_buffer_append_char(&target, 0);
	status = vdi_buffer_status(&target);
	if (wrong || status == VD_TOO_BIG)
		status = refuse(reterr, name, wrong ? wrong : "is too long");
	else if (status == VD_OK) {
		endpoint.target = vdi_strdup(target.data);
		status = endpoint.target ? VD_OK : VD_NOMEM;
	}
	vdi_buffer_fini(&target);
	if (status == VD_OK)
		*ret_endpoint = endpoint;
	return status;
}

/* ---- Causes ---- */

static void say(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(char *text, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, size, format, arguments);
	va_end(arguments);
}

/* Behind the last "word", or NULL. */
static const char *behind(const char *words, const char *word)
{
	const char *found = NULL;

	for (const char *at = words; (at = strcasestr(at, word)) != NULL; at += strlen(word))
		found = at + strlen(word);
	return found;
}

/* "UNKNOWN: ipv4:127.0.0.1:1: Failed ..." without code and address. */
static const char *skip_prefixes(const char *words)
{
	const char *at = behind(words, "last error: ");
	const char *colon;

	if (at == NULL)
		at = words;
	colon = strstr(at, ": ");
	if (colon && strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == (size_t) (colon - at))
		at = colon + 2;
	if (strncmp(at, "ipv4:", 5) == 0 || strncmp(at, "ipv6:", 5) == 0 || strncmp(at, "unix:", 5) == 0) {
		colon = strstr(at, ": ");
		if (colon)
			at = colon + 2;
	}
	return at;
}

void vdi_grpc_cause(const char *words, char *text, size_t size)
{
	static const struct {
		const char *words;
		const char *says;
	} known[] = {
		{ "certificate verify failed", "the server's certificate is not trusted (certificate verify failed)" },
		{ "wrong version number", "the server does not speak TLS" },
		{ "certificate required", "the server wants a client certificate" },
		{ "bad certificate", "the server does not accept the client certificate" },
		{ "Failed parsing HTTP/2", "not an HTTP/2 server" },
		{ "http1.x", "not an HTTP/2 server" },
		{ "before receiving SETTINGS frame", "no HTTP/2 settings came (not an HTTP/2 server, or TLS is expected)" },
		{ "Cannot check peer: missing selected ALPN", "the server does not offer HTTP/2 (ALPN)" },
		{ "empty address list", "the certificate, its key or the CA cannot be used" }, /* what core makes of that */
		{ "Domain name not found", "unknown host" },
		{ "DNS server returned answer with no data", "unknown host" },
	};
	const char *at;

	at = behind(words, "Peer name ");
	if (at && strstr(at, " is not in peer certificate")) {
		say(text, size, "the server's certificate is not valid for %.*s", (int) (strstr(at, " is not in peer certificate") - at), at);
		return;
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(known); i++) {
		if (strcasestr(words, known[i].words)) {
			say(text, size, "%s", known[i].says);
			return;
		}
	}
	at = behind(words, "Ssl handshake failed: ");
	if (at) {
		say(text, size, "TLS handshake failed: %s", at);
		return;
	}
	if (strstr(words, "DNS resolution failed")) {
		at = behind(words, ": ");
		say(text, size, "the host name could not be resolved%s%s", at ? ": " : "", at ? at : "");
		return;
	}
	at = behind(words, "Failed to connect to remote host: ");
	if (at == NULL)
		at = skip_prefixes(words);
	/* With TLS 1.3 a server that misses the client's certificate says so after the handshake, and core only that reading failed. */
	if ((strncmp(at, "Socket closed", 13) == 0 && strstr(words, "failed to connect")) || strncmp(at, "Endpoint read failed", 20) == 0) {
		say(text, size, "the server closed the connection before HTTP/2 began (TLS or a client certificate may be expected)");
		return;
	}
	say(text, size, "%s", at);
	text[0] = text[0] && size > 1 && islower((unsigned char) text[1]) ? (char) tolower((unsigned char) text[0]) : text[0];
}
