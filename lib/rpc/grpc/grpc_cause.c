/* Core's error texts are matched by substrings, as in Debian's version 1.51. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "grpc_cause.h"
#include "http_parser.h"

/* Returns true for characters that need no escaping in the path of a URI. */
static bool is_path_char(char c)
{
	return vdi_ascii_is_alnum((unsigned char) c) || strchr("-._~!$&'()*+,;=:@/", c) != NULL;
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

void vdi_grpc_target(const struct vdi_rpc_endpoint *endpoint, struct vdi_buffer *target)
{
	if (endpoint->is_socket)
		vdi_buffer_append_text(target, *endpoint->address == '/' ? "unix://" : "unix:");
	else
		vdi_buffer_append_text(target, "dns:///");
	append_path(target, endpoint->address, strlen(endpoint->address));
	vdi_buffer_append_char(target, 0);
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

/* The text after the last "word", or NULL. */
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
		{ "certificate verify failed",
		  "the server's certificate is not trusted (certificate verify failed)" },
		{ "wrong version number", "the server does not speak TLS" },
		{ "certificate required", "the server requires a client certificate" },
		{ "bad certificate", "the server does not accept the client certificate" },
		{ "Failed parsing HTTP/2", "not an HTTP/2 server" },
		{ "http1.x", "not an HTTP/2 server" },
		{ "before receiving SETTINGS frame",
		  "no HTTP/2 settings received (not an HTTP/2 server, or TLS is expected)" },
		{ "Cannot check peer: missing selected ALPN", "the server does not offer HTTP/2 (ALPN)" },
		{ "empty address list",
		  "the certificate, its key or the CA cannot be used" }, /* core's text for this case */
		{ "Domain name not found", "unknown host" },
		{ "DNS server returned answer with no data", "unknown host" },
	};
	const char *at;

	at = behind(words, "Peer name ");
	if (at && strstr(at, " is not in peer certificate")) {
		say(text, size, "the server's certificate is not valid for %.*s",
		    (int) (strstr(at, " is not in peer certificate") - at), at);
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
	/* With TLS 1.3 a server that requires a client certificate reports a missing one only after the
	 * handshake; core then reports just a failed read. */
	if ((strncmp(at, "Socket closed", 13) == 0 && strstr(words, "failed to connect")) ||
	    strncmp(at, "Endpoint read failed", 20) == 0) {
		say(text, size,
		    "the server closed the connection before HTTP/2 began (TLS or a client certificate may "
		    "be expected)");
		return;
	}
	say(text, size, "%s", at);
	text[0] = text[0] && size > 1 && islower((unsigned char) text[1]) ?
			  (char) tolower((unsigned char) text[0]) :
			  text[0];
}
