/* evhttp with small limits: a request is a line and some headers, a response is rendered in memory. */
#include "serve_http_port.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "actor_loop.h"
#include "env.h"
#include "serve_http.h"
#include "wait.h"

#define REQUEST_BYTES_MAX 16384
#define HEADER_BYTES_MAX 4096
#define BODY_BYTES_MAX (64u << 20)
#define IDLE_SECONDS 60

struct vdi_serve_http_port {
	struct vdi_etcdserver *server;
	struct vdi_loop	      *loop;
	struct vd_actor	      *stopper; /* on the loop; frees objects of its thread */
	struct evhttp	      *http;
	struct vdi_wait	       stopped;
	char		       address[64];
};

/* ---- Requests ---- */

static enum vdi_http_method method_of(const struct evhttp_request *request)
{
	switch (evhttp_request_get_command(request)) {
	case EVHTTP_REQ_GET: return VDI_HTTP_GET;
	case EVHTTP_REQ_HEAD: return VDI_HTTP_HEAD;
	default: return VDI_HTTP_OTHER;
	}
}

/* Parses lines of "Name: value". */
static void add_headers(struct evhttp_request *request, struct vdi_buffer *headers)
{
	char *line;
	char *end;

	vdi_buffer_append_char(headers, 0);
	for (line = headers->data; line && (end = strstr(line, "\r\n")) != NULL; line = end + 2) {
		char *colon = strchr(line, ':');

		*end = 0;
		if (colon) {
			*colon = 0;
			(void) evhttp_add_header(evhttp_request_get_output_headers(request), line, colon + 2);
		}
	}
}

static void on_request(struct evhttp_request *request, void *arg)
{
	struct vdi_serve_http_port *port = arg;
	const struct evhttp_uri	   *uri = evhttp_request_get_evhttp_uri(request);
	const char		   *path = evhttp_uri_get_path(uri);
	const char		   *query = evhttp_uri_get_query(uri);
	struct vdi_rpc_http	    http = { .method = method_of(request),
					     .path = vd_bytes_of(path && *path ? path : "/"),
					     .query = vd_bytes_of(query ? query : ""),
					     .code = 200 };
	struct vd_bytes		    body;

	vdi_buffer_init(&http.headers, HEADER_BYTES_MAX);
	vdi_buffer_init(&http.body, BODY_BYTES_MAX);
	vdi_serve_http_fill(port->server, false, &http);
	add_headers(request, &http.headers);
	body = vdi_buffer_bytes(&http.body);
	if (vdi_buffer_status(&http.headers) != VD_OK || vdi_buffer_status(&http.body) != VD_OK ||
	    (body.size && http.method != VDI_HTTP_HEAD &&
	     evbuffer_add(evhttp_request_get_output_buffer(request), body.data, body.size) != 0))
		http.code = 503;
	evhttp_send_reply(request, http.code, NULL, NULL);
	vdi_buffer_fini(&http.headers);
	vdi_buffer_fini(&http.body);
}

/* ---- Life ---- */

static vd_status bind_address(struct vdi_serve_http_port *port, const char *listen, struct vd_error *reterr)
{
	struct evhttp_bound_socket *socket;
	struct sockaddr_storage	    bound;
	socklen_t		    size = sizeof bound;
	const char		   *colon = strrchr(listen, ':');
	char			    host[48];
	char			   *end;
	unsigned long		    number = colon ? strtoul(colon + 1, &end, 10) : 0;
	size_t			    host_size = colon ? (size_t) (colon - listen) : 0;

	if (colon == NULL || colon[1] == 0 || *end || number > 65535 || host_size == 0 ||
	    host_size >= sizeof host)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "\"%s\" is not an address: use ADDR:PORT",
				    listen);
	memcpy(host, listen, host_size);
	host[host_size] = 0;
	if (host[0] == '[' && host_size > 2 && host[host_size - 1] == ']') {
		memmove(host, host + 1, host_size - 2);
		host[host_size - 2] = 0;
	}
	socket = evhttp_bind_socket_with_handle(port->http, host, (uint16_t) number);
	if (socket == NULL ||
	    getsockname(evhttp_bound_socket_get_fd(socket), (struct sockaddr *) &bound, &size) != 0)
		return vd_error_set(reterr, VD_IO, "cannot listen on %s", listen);
	number = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *) &bound)->sin6_port :
						     ((struct sockaddr_in *) &bound)->sin_port);
	(void) snprintf(port->address, sizeof port->address, "%.*s:%lu", (int) host_size, listen, number);
	return VD_OK;
}

static void set_routes(struct vdi_serve_http_port *port)
{
	evhttp_set_gencb(port->http, on_request, port);
	evhttp_set_max_headers_size(port->http, REQUEST_BYTES_MAX);
	evhttp_set_max_body_size(port->http, REQUEST_BYTES_MAX);
	evhttp_set_timeout(port->http, IDLE_SECONDS);
	evhttp_set_allowed_methods(port->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
						       EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
						       EVHTTP_REQ_OPTIONS);
}

static void stop(void *arg)
{
	struct vdi_serve_http_port *port = arg;

	evhttp_free(port->http);
	port->http = NULL;
	vdi_wait_signal(&port->stopped);
}

static vd_status make_stopper(struct vdi_serve_http_port *port)
{
	struct vd_actor_options options = { .name = "etcd http", .run = stop, .arg = port };

	return vd_executor_actor_new(vdi_loop_executor(port->loop), &options, &port->stopper);
}

vd_status vdi_serve_http_port_new(struct vdi_etcdserver *server, const char *listen,
				  struct vdi_serve_http_port **ret_port, struct vd_error *reterr)
{
	struct vdi_serve_http_port *port = VDI_NEW(struct vdi_serve_http_port);
	vd_status		    status;

	if (port == NULL)
		return vd_error_set(reterr, VD_NOMEM, "etcd: out of memory");
	port->server = server;
	status = vdi_loop_new(server->env, &port->loop);
	if (status == VD_OK) {
		port->http = evhttp_new(vdi_loop_base(port->loop));
		status = port->http ? VD_OK : VD_NOMEM;
	}
	if (status == VD_OK)
		status = make_stopper(port);
	if (status == VD_OK) {
		set_routes(port);
		status = bind_address(port, listen, reterr);
	} else {
		(void) vd_error_set(reterr, status, "etcd: cannot start the HTTP port");
	}
	if (status == VD_OK)
		status = vdi_loop_start_thread(port->loop, "etcd http");
	if (status == VD_OK) {
		*ret_port = port;
		return VD_OK;
	}
	if (port->http)
		evhttp_free(port->http);
	if (port->stopper)
		vd_actor_close(port->stopper, NULL, NULL); /* no thread runs the loop: it ends with it */
	(void) vdi_loop_free(port->loop);
	vdi_free(port);
	return status;
}

const char *vdi_serve_http_port_address(const struct vdi_serve_http_port *port)
{
	return port->address;
}

struct vdi_serve_http_port *vdi_serve_http_port_free(struct vdi_serve_http_port *port)
{
	if (port == NULL)
		return NULL;
	vdi_wait_init(&port->stopped, port->server->env);
	vd_actor_wake(port->stopper);
	vdi_wait_wait(&port->stopped);
	vdi_wait_fini(&port->stopped);
	vdi_wait_for_actor_close(port->server->env, port->stopper);
	(void) vdi_loop_free(port->loop);
	vdi_free(port);
	return NULL;
}
