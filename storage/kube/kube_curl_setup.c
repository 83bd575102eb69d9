/* What libcurl is told about the server and about one exchange.
 *
 * A configured TLS server name becomes the host of the URL, so that libcurl sends it and compares it with
 * the certificate; CURLOPT_CONNECT_TO leads the connection to the real host, and the header Host names
 * it. A server "unix:PATH" is a socket of this machine; its URL is that of localhost. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kube_curl_state.h"
#include "loopback.h"
#include "no_proxy.h"

#define CONNECT_TIMEOUT_MS 10000L
#define KEEP_ALIVE_S 15L
/* Data that is not acknowledged for so long ends the connection. */
#define UNACKNOWLEDGED_MS 45000
#define LIST_BUFFER_SIZE 131072L

/* ---- The server ---- */

static bool is_text(const char *text)
{
	for (; *text; text++)
		if ((unsigned char) *text <= ' ' || *text == 0x7f)
			return false;
	return true;
}

/* Returns the part between "://" and the path. */
static struct vd_bytes authority_of(const char *server)
{
	const char *start = strstr(server, "://");

	start = start ? start + 3 : server;
	return (struct vd_bytes) { start, strcspn(start, "/") };
}

static vd_status copy(const char *text, char **place)
{
	if (text == NULL)
		return VD_OK;
	*place = vdi_strdup(text);
	return *place ? VD_OK : VD_NOMEM;
}

vd_status vdi_curl_configure_server(struct vdi_curl_transport		    *transport,
				    const struct vdi_kube_transport_options *options, struct vd_error *reterr)
{
	static const char scheme[] = "unix:";
	struct vd_bytes	  authority = authority_of(options->server);

	if (strncmp(options->server, scheme, sizeof scheme - 1) == 0) {
		transport->is_loopback = true;
		VDI_TRY(copy("http://localhost", &transport->server));
		VDI_TRY(copy(options->server + sizeof scheme - 1, &transport->socket_path));
		return copy(options->user_agent, &transport->user_agent);
	}
	if ((strncmp(options->server, "http://", 7) != 0 && strncmp(options->server, "https://", 8) != 0) ||
	    !is_text(options->server) || authority.size == 0 || memchr(authority.data, '@', authority.size) ||
	    strpbrk(options->server, "?#"))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "the server must be a URL such as https://10.0.0.1:6443, not \"%.200s\"",
				    options->server);
	transport->is_loopback = vdi_loopback_has_host(authority);
	VDI_TRY(copy(options->server, &transport->server));
	VDI_TRY(copy(options->proxy_url, &transport->proxy_url));
	return copy(options->user_agent, &transport->user_agent);
}

/* ---- TLS ---- */

static vd_status copy_text(struct vd_bytes text, struct vd_bytes *ret_copy)
{
	char *copy = text.size ? vdi_strndup(text.data, text.size) : NULL;

	*ret_copy = (struct vd_bytes) { copy, text.size };
	return text.size && copy == NULL ? VD_NOMEM : VD_OK;
}

static void swap(struct vd_bytes *place, struct vd_bytes *text)
{
	struct vd_bytes old = *place;

	*place = *text;
	*text = old;
}

/* libcurl compares certificates and CA of a connection with those of a handle before it reuses one. */
vd_status vdi_curl_configure_tls(struct vdi_kube_transport *base, const struct vdi_kube_tls *tls,
				 struct vd_error *reterr)
{
	struct vdi_curl_transport *transport = VDI_CONTAINER_OF(base, struct vdi_curl_transport, transport);
	struct vd_bytes		   ca, cert, key;
	char	 *server_name = tls->server_name ? vdi_strdup(tls->server_name) : NULL, *old_name;
	vd_status status = copy_text(tls->ca, &ca);

	status = copy_text(tls->cert, &cert) == VD_OK ? status : VD_NOMEM;
	status = copy_text(tls->key, &key) == VD_OK ? status : VD_NOMEM;
	if (tls->server_name && server_name == NULL)
		status = VD_NOMEM;
	if (status == VD_OK) {
		swap(&transport->ca, &ca);
		swap(&transport->cert, &cert);
		swap(&transport->key, &key);
		old_name = transport->server_name;
		transport->server_name = server_name;
		server_name = old_name;
		transport->insecure = tls->insecure;
	}
	vdi_free((char *) (uintptr_t) ca.data);
	vdi_free((char *) (uintptr_t) cert.data);
	vdi_free((char *) (uintptr_t) key.data);
	vdi_free(server_name);
	return status == VD_OK ? VD_OK : vd_error_set(reterr, VD_NOMEM, "out of memory");
}

/* ---- One exchange ---- */

static bool add(struct curl_slist **list, const char *name, const char *value, size_t size)
{
	size_t		   room = strlen(name) + size + 1;
	char		  *line = vdi_alloc(room);
	struct curl_slist *longer;

	if (line == NULL)
		return false;
	snprintf(line, room, "%s%.*s", name, (int) size, value);
	longer = curl_slist_append(*list, line);
	vdi_free(line);
	if (longer)
		*list = longer;
	return longer != NULL;
}

/* value NULL: no such header. */
static bool add_header(struct vdi_curl_exchange *exchange, const char *name, const char *value)
{
	return value == NULL || add(&exchange->headers, name, value, strlen(value));
}

static bool set_headers(struct vdi_curl_exchange *exchange, const struct vdi_kube_http_request *request)
{
	if (!add_header(exchange, "Accept: ", request->accept ? request->accept : "application/json") ||
	    !add_header(exchange, "Authorization: Bearer ", request->token) ||
	    !add_header(exchange, "Content-Type: ", request->content_type) ||
	    !add_header(exchange, "Expect:", ""))
		return false;
	curl_easy_setopt(exchange->easy, CURLOPT_HEADEROPT, (long) CURLHEADER_SEPARATE);
	curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->headers);
	return true;
}

static void set_blob(CURL *easy, CURLoption option, struct vd_bytes pem)
{
	struct curl_blob blob = { .data = (void *) (uintptr_t) pem.data,
				  .len = pem.size,
				  .flags = CURL_BLOB_COPY };

	if (pem.size)
		curl_easy_setopt(easy, option, &blob);
}

static void set_tls(CURL *easy, const struct vdi_curl_transport *transport)
{
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_2TLS);
	/* Wait for the handshake, after which the server's protocol is known. Without TLS it would be known
	 * only after the first response, which may be that of a watch. */
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, strncmp(transport->server, "https://", 8) == 0 ? 1L : 0L);
	if (transport->ca.size) { /* and no other CA */
		curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	}
	set_blob(easy, CURLOPT_CAINFO_BLOB, transport->ca);
	set_blob(easy, CURLOPT_SSLCERT_BLOB, transport->cert);
	set_blob(easy, CURLOPT_SSLKEY_BLOB, transport->key);
	if (transport->insecure) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

static struct vd_bytes host_of(struct vd_bytes authority)
{
	const char *text = authority.data, *bracket = memchr(text, ']', authority.size);
	const char *from = bracket ? bracket : text;
	const char *colon = memchr(from, ':', authority.size - (size_t) (from - text));

	return (struct vd_bytes) { text, colon ? (size_t) (colon - text) : authority.size };
}

/* With a server name libcurl would compare that with NO_PROXY, and not the host that is connected to. */
static void set_no_proxy(CURL *easy, const struct vdi_curl_transport *transport)
{
	const char *list = getenv("no_proxy");

	if (list == NULL)
		list = getenv("NO_PROXY");
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
	if (vdi_no_proxy_has(list, host_of(authority_of(transport->server))))
		curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

/* libcurl reads https_proxy, HTTPS_PROXY, http_proxy, NO_PROXY and no_proxy itself. */
static void set_proxy(CURL *easy, const struct vdi_curl_transport *transport)
{
	const char *upper = getenv("HTTP_PROXY");

	curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	if (transport->proxy_url) {
		curl_easy_setopt(easy, CURLOPT_PROXY, transport->proxy_url);
		curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
	} else if (transport->is_loopback)
		curl_easy_setopt(easy, CURLOPT_PROXY, "");
	else if (upper && *upper && getenv("http_proxy") == NULL && getenv("REQUEST_METHOD") == NULL &&
		 strncmp(transport->server, "http://", 7) == 0)
		curl_easy_setopt(easy, CURLOPT_PROXY, upper);
	if (transport->server_name && transport->proxy_url == NULL && !transport->is_loopback)
		set_no_proxy(easy, transport);
}

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct vdi_curl_transport *transport = arg;
	int opened = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

	(void) purpose;
	if (opened >= 0 && transport->socket_count < VDI_KUBE_SOCKETS_MAX)
		transport->sockets[transport->socket_count++] = opened;
	return opened < 0 ? CURL_SOCKET_BAD : opened;
}

static int on_close(void *arg, curl_socket_t closed)
{
	struct vdi_curl_transport *transport = arg;
	size_t			   i;

	for (i = 0; i < transport->socket_count; i++)
		if (transport->sockets[i] == closed) {
			transport->sockets[i] = transport->sockets[--transport->socket_count];
			break;
		}
	return close(closed);
}

static int on_socket(void *arg, curl_socket_t socket, curlsocktype purpose)
{
	int limit = UNACKNOWLEDGED_MS;

	(void) arg;
	(void) purpose;
	(void) setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit); /* best effort */
	return CURL_SOCKOPT_OK;
}

static void set_connection(CURL *easy, struct vdi_curl_transport *transport)
{
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEP_ALIVE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEP_ALIVE_S);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transport);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, transport);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, transport->user_agent);
	if (transport->socket_path)
		curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, transport->socket_path);
	set_proxy(easy, transport);
	set_tls(easy, transport);
}

static bool set_url(struct vdi_curl_exchange *exchange, const char *path)
{
	const struct vdi_curl_transport *transport = exchange->owner;
	struct vd_bytes			 authority = authority_of(transport->server);
	const char			*text = authority.data, *name = transport->server_name;
	size_t				 host = host_of(authority).size;
	size_t room = strlen(transport->server) + strlen(path) + (name ? strlen(name) : 0) + 16;
	char  *url;
	bool   is_set;

	if (name && strncmp(transport->server, "http://", 7) == 0)
		name = NULL;
	url = vdi_alloc(room);
	if (url == NULL)
		return false;
	if (name == NULL)
		snprintf(url, room, "%s%s", transport->server, path);
	else {
		snprintf(url, room, "::%.*s%s", (int) authority.size, text,
			 host < authority.size ? "" : ":443");
		if (!add(&exchange->connect_to, "", url, strlen(url)) ||
		    !add(&exchange->headers, "Host: ", text, authority.size)) {
			vdi_free(url);
			return false;
		}
		snprintf(url, room, "https://%s%.*s%s%s", name, (int) (authority.size - host), text + host,
			 text + authority.size, path);
		curl_easy_setopt(exchange->easy, CURLOPT_CONNECT_TO, exchange->connect_to);
	}
	is_set = curl_easy_setopt(exchange->easy, CURLOPT_URL, url) == CURLE_OK;
	vdi_free(url);
	return is_set;
}

static bool set_method(CURL *easy, const struct vdi_kube_http_request *request)
{
	bool is_get = strcmp(request->method, "GET") == 0, is_watch = strstr(request->path, "watch=") != NULL;

	if (request->content_type || request->body.size) {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) request->body.size);
		if (curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS,
				     request->body.size ? request->body.data : "") != CURLE_OK)
			return false;
	} else
		curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
	if (strcmp(request->method, "HEAD") == 0)
		curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	if (is_get && !is_watch)
		curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, LIST_BUFFER_SIZE);
	/* A compressor may keep an event back until the next one. */
	if (!is_watch && curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip") != CURLE_OK)
		return false;
	return curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK;
}

static const char *fault_of(const struct vdi_kube_http_request *request)
{
	const char *texts[] = { request->method, request->path, request->token };
	size_t	    i;

	for (i = 0; i < VDI_ARRAY_SIZE(texts); i++)
		if (texts[i] && (!is_text(texts[i]) || *texts[i] == 0))
			return i == 0 ? "method" : i == 1 ? "path" : "token";
	if (request->path[0] != '/' || strchr(request->path, '#'))
		return "path";
	if (request->accept && strpbrk(request->accept, "\r\n"))
		return "accept";
	return request->content_type && strpbrk(request->content_type, "\r\n") ? "content type" : NULL;
}

vd_status vdi_curl_set_up(struct vdi_curl_exchange *exchange, const struct vdi_kube_http_request *request,
			  struct vd_error *reterr)
{
	const char *fault = fault_of(request);

	if (fault)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "the request's %s has characters that are not allowed in HTTP", fault);
	set_connection(exchange->easy, exchange->owner);
	return set_url(exchange, request->path) && set_headers(exchange, request) &&
			       set_method(exchange->easy, request) ?
		       VD_OK :
		       VD_NOMEM;
}

/* ---- Redirects ---- */

void vdi_curl_set_location(char location[VDI_KUBE_LOCATION_SIZE], struct vd_bytes value)
{
	const char *text = value.data;
	size_t	    size = 0;

	while (size < value.size && size < VDI_KUBE_LOCATION_SIZE - 1 && text[size] != '?' &&
	       text[size] != '#') {
		location[size] = text[size] > ' ' && text[size] < 0x7f ? text[size] : '_';
		size++;
	}
	location[size] = 0;
}

/* ---- Dead connections ---- */

static long port_of(CURL *easy)
{
	long port = 0;

	curl_easy_getinfo(easy, CURLINFO_LOCAL_PORT, &port);
	return port;
}

bool vdi_curl_is_stopped(const struct vdi_curl_exchange *exchange)
{
	const struct vdi_curl_exchange *other;
	long				port = exchange->is_added ? port_of(exchange->easy) : 0;

	if (port == 0 || exchange->owner->paused_count == 0)
		return false;
	LIST_FOREACH(other, &exchange->owner->exchanges, node)
	{
		if (other->is_paused && other->is_added && port_of(other->easy) == port)
			return true;
	}
	return false;
}

static bool has_port(int fd, long port)
{
	struct sockaddr_storage address = { 0 };
	socklen_t		size = sizeof address;

	if (getsockname(fd, (struct sockaddr *) &address, &size) != 0)
		return false;
	if (address.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *) (void *) &address)->sin_port) == port;
	return address.ss_family == AF_INET6 &&
	       ntohs(((struct sockaddr_in6 *) (void *) &address)->sin6_port) == port;
}

void vdi_curl_drop_dead(struct vdi_curl_exchange *exchange, vd_mono since)
{
	struct vdi_curl_transport *transport = exchange->owner;
	long			   port = exchange->is_added ? port_of(exchange->easy) : 0;
	struct vdi_curl_exchange  *other;
	size_t			   i;

	if (port == 0)
		return;
	LIST_FOREACH(other, &transport->exchanges, node)
	if (other->is_added && other->has_head && other->heard.ns > since.ns && port_of(other->easy) == port)
		return;
	for (i = 0; i < transport->socket_count; i++)
		if (has_port(transport->sockets[i], port))
			(void) shutdown(transport->sockets[i], SHUT_RDWR); /* libcurl notices and closes it */
}
