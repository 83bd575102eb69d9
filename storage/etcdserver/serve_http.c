/* evhttp with small limits: what comes in is a line and some headers, what goes out was made in memory. */
#include "serve_http.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "actor_loop.h"
#include "buffer.h"
#include "env.h"
#include "metrics.h"
#include "serve_state.h"
#include "serve_watches.h"
#include "wait.h"

#define REQUEST_BYTES_MAX 16384
#define IDLE_SECONDS 60

struct vdi_serve_http {
	struct vdi_etcdserver *server;
	struct vdi_loop	      *loop;
	struct vd_actor	      *stopper; /* on the loop: what belongs to its thread ends there */
	struct evhttp	      *http;
	struct vdi_wait	       stopped;
	char		       address[64];
};

/* ---- Answers ---- */

static void reply(struct evhttp_request *request, int code, const char *reason, const char *type, struct vdi_buffer *body)
{
	struct evbuffer *out = evhttp_request_get_output_buffer(request);
	struct vd_bytes	 bytes = vdi_buffer_bytes(body);

	if (vdi_buffer_status(body) != VD_OK || (bytes.size && evbuffer_add(out, bytes.data, bytes.size) != 0)) {
		evhttp_send_reply(request, 503, "Service Unavailable", NULL);
	} else {
		(void) evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", type);
		evhttp_send_reply(request, code, reason, NULL);
	}
	vdi_buffer_fini(body);
}

/* False: answered, only GET is known. */
static bool is_get(struct evhttp_request *request)
{
	struct vdi_buffer body;

	if (evhttp_request_get_command(request) == EVHTTP_REQ_GET)
		return true;
	vdi_buffer_init(&body, 256);
	vdi_buffer_append_text(&body, "Method Not Allowed\n");
	(void) evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET");
	reply(request, 405, "Method Not Allowed", "text/plain; charset=utf-8", &body);
	return false;
}

static void on_version(struct evhttp_request *request, void *arg)
{
	struct vdi_buffer body;

	(void) arg;
	if (!is_get(request))
		return;
	vdi_buffer_init(&body, 1024);
	vdi_buffer_append_text(&body, "{\"etcdserver\":\"" VDI_ETCD_VERSION "\",\"etcdcluster\":\"" VDI_ETCD_CLUSTER_VERSION
				      ".0\",\"storage\":\"" VDI_ETCD_STORAGE_VERSION "\"}");
	reply(request, 200, "OK", "application/json", &body);
}

/* A key without a value is there too ("?verbose"); what is asked for needs no unescaping. */
static bool query_has(struct evhttp_request *request, const char *key, const char *value)
{
	const char *at = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
	size_t	    key_size = strlen(key);

	while (at && *at) {
		size_t size = strcspn(at, "&");
		size_t name_size = VDI_MIN(strcspn(at, "="), size);

		if (name_size == key_size && memcmp(at, key, key_size) == 0 &&
		    (value == NULL || (size == name_size + 1 + strlen(value) && memcmp(at + name_size + 1, value, strlen(value)) == 0)))
			return true;
		at += size + (at[size] == '&');
	}
	return false;
}

static bool alarm_is_active(struct vdi_etcdserver *server, enum vdi_alarm kind)
{
	return vdi_serve_state_alarms(server->state, kind, NULL, 0) > 0;
}

static void on_health(struct evhttp_request *request, void *arg)
{
	struct vdi_serve_http *http = arg;
	struct vd_store_status store;
	const char	      *reason = "";
	struct vdi_buffer      body;

	if (!is_get(request))
		return;
	if (alarm_is_active(http->server, VDI_ALARM_NOSPACE) && !query_has(request, "exclude", "NOSPACE"))
		reason = "ALARM NOSPACE";
	else if (alarm_is_active(http->server, VDI_ALARM_CORRUPT) && !query_has(request, "exclude", "CORRUPT"))
		reason = "ALARM CORRUPT";
	else if (vd_store_status_get(http->server->store, &store) != VD_OK)
		reason = "RANGE ERROR:etcdserver: server stopped";
	vdi_buffer_init(&body, 1024);
	vdi_buffer_printf(&body, "{\"health\":\"%s\",\"reason\":\"%s\"}%s", *reason ? "false" : "true", reason, *reason ? "\n" : "");
	reply(request, *reason ? 503 : 200, *reason ? "Service Unavailable" : "OK", "text/plain; charset=utf-8", &body); /* upstream says so of JSON */
}

/* ---- livez and readyz ---- */

static const char *check_corruption(struct vdi_etcdserver *server)
{
	return alarm_is_active(server, VDI_ALARM_CORRUPT) ? "alarm activated: CORRUPT" : NULL;
}

static const char *check_read(struct vdi_etcdserver *server)
{
	struct vd_store_status store;

	return vd_store_status_get(server->store, &store) == VD_OK ? NULL : "etcdserver: server stopped";
}

static const char *check_nothing(struct vdi_etcdserver *server)
{
	(void) server;
	return NULL;
}

struct check {
	const char *name;
	const char *(*run)(struct vdi_etcdserver *server);
};
static const struct check live_checks[] = { { "serializable_read", check_read }, { NULL, NULL } };
static const struct check ready_checks[] = { { "data_corruption", check_corruption },
					     { "serializable_read", check_read },
					     { "linearizable_read", check_read },
					     { "non_learner", check_nothing },
					     { NULL, NULL } };

static void run_checks(struct vdi_serve_http *http, struct evhttp_request *request, const struct check *checks, const char *only)
{
	struct vdi_buffer body;
	struct vdi_buffer lines;
	bool		  failed = false;

	vdi_buffer_init(&lines, 4096);
	for (const struct check *check = checks; check->name; check++) {
		const char *reason;

		if ((*only && strcmp(only, check->name) != 0) || query_has(request, "exclude", check->name))
			continue;
		reason = check->run(http->server);
		failed = failed || reason;
		if (reason)
			vdi_buffer_printf(&lines, "[-]%s failed: %s\n", check->name, reason);
		else
			vdi_buffer_printf(&lines, "[+]%s ok\n", check->name);
	}
	vdi_buffer_init(&body, 8192);
	if (failed || query_has(request, "verbose", NULL))
		vdi_buffer_append(&body, vdi_buffer_bytes(&lines));
	vdi_buffer_append_text(&body, failed ? "\n" : "ok\n"); /* Go ends what went wrong with one more */
	vdi_buffer_fini(&lines);
	reply(request, failed ? 503 : 200, failed ? "Service Unavailable" : "OK", "text/plain; charset=utf-8", &body);
}

static bool has_check(const struct check *checks, const char *name)
{
	for (; checks->name; checks++)
		if (strcmp(checks->name, name) == 0)
			return true;
	return false;
}

/* ---- Metrics: ours, and those of upstream's that one member answers by being what it is (9.1) ---- */

static void metric(struct vdi_buffer *body, const char *name, const char *kind, int64_t value)
{
	vdi_buffer_printf(body, "# TYPE %s %s\n%s %lld\n", name, kind, name, (long long) value);
}

static void append_server_metrics(struct vdi_serve_http *http, struct vdi_buffer *body)
{
	struct vdi_etcdserver	     *server = http->server;
	int64_t			      quota = server->options.quota_bytes ? server->options.quota_bytes : VDI_ETCD_QUOTA_DEFAULT;
	struct vdi_serve_watch_counts watches;
	struct vd_store_status	      store = { 0 };

	if (vd_store_status_get(server->store, &store) != VD_OK)
		memset(&store, 0, sizeof store); /* it is closing */
	vdi_serve_watches_counts(server->watches, &watches);
	metric(body, "etcd_server_has_leader", "gauge", 1);
	metric(body, "etcd_server_is_leader", "gauge", 1);
	metric(body, "etcd_server_is_learner", "gauge", 0);
	metric(body, "etcd_server_leader_changes_seen_total", "counter", 1);
	metric(body, "etcd_server_proposals_committed_total", "gauge", store.current + 3);
	metric(body, "etcd_server_proposals_applied_total", "gauge", store.current + 3);
	metric(body, "etcd_server_proposals_pending", "gauge", 0);
	metric(body, "etcd_server_proposals_failed_total", "counter", 0);
	metric(body, "etcd_server_quota_backend_bytes", "gauge", quota);
	metric(body, "etcd_debugging_mvcc_watch_stream_total", "gauge", watches.streams);
	vdi_buffer_printf(body, "# TYPE etcd_server_id gauge\netcd_server_id{server_id=\"%llx\"} 1\n", (unsigned long long) server->member_id);
	vdi_buffer_append_text(body, "# TYPE etcd_server_version gauge\netcd_server_version{server_version=\"" VDI_ETCD_VERSION "\"} 1\n");
	vdi_buffer_append_text(body, "# TYPE etcd_cluster_version gauge\netcd_cluster_version{cluster_version=\"" VDI_ETCD_CLUSTER_VERSION "\"} 1\n");
	vdi_serve_clients_render(&server->clients, body);
	metric(body, "etcd_server_calls_total", "counter", (int64_t) atomic_load_explicit(&server->calls_total, memory_order_relaxed));
	metric(body, "etcd_server_watch_frames_total", "counter", watches.frames);
	metric(body, "etcd_server_watch_events_sent_total", "counter", watches.events);
}

static void on_metrics(struct evhttp_request *request, void *arg)
{
	struct vdi_serve_http *http = arg;
	struct vdi_buffer      body;

	if (!is_get(request))
		return;
	vdi_buffer_init(&body, 64u << 20);
	if (vdi_metrics_render(vdi_env_metrics(http->server->env), &body) == VD_OK)
		append_server_metrics(http, &body);
	reply(request, 200, "OK", "text/plain; version=0.0.4; charset=utf-8", &body);
}

static void on_other(struct evhttp_request *request, void *arg)
{
	const char	 *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	struct vdi_buffer body;

	if (!is_get(request))
		return;
	if (path && strncmp(path, "/livez/", 7) == 0 && has_check(live_checks, path + 7)) {
		run_checks(arg, request, live_checks, path + 7);
		return;
	}
	if (path && strncmp(path, "/readyz/", 8) == 0 && has_check(ready_checks, path + 8)) {
		run_checks(arg, request, ready_checks, path + 8);
		return;
	}
	vdi_buffer_init(&body, 256);
	vdi_buffer_append_text(&body, "404 page not found\n");
	reply(request, 404, "Not Found", "text/plain; charset=utf-8", &body);
}

static void on_livez(struct evhttp_request *request, void *arg)
{
	if (is_get(request))
		run_checks(arg, request, live_checks, "");
}

static void on_readyz(struct evhttp_request *request, void *arg)
{
	if (is_get(request))
		run_checks(arg, request, ready_checks, "");
}

/* ---- Life ---- */

static vd_status bind_address(struct vdi_serve_http *http, const char *listen, struct vd_error *reterr)
{
	struct evhttp_bound_socket *socket;
	struct sockaddr_storage	    bound;
	socklen_t		    size = sizeof bound;
	const char		   *colon = strrchr(listen, ':');
	char			    host[48];
	char			   *end;
	unsigned long		    port = colon ? strtoul(colon + 1, &end, 10) : 0;
	size_t			    host_size = colon ? (size_t) (colon - listen) : 0;

	if (colon == NULL || colon[1] == 0 || *end || port > 65535 || host_size == 0 || host_size >= sizeof host)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "\"%s\" is no address: ADDR:PORT is wanted", listen);
	memcpy(host, listen, host_size);
	host[host_size] = 0;
	if (host[0] == '[' && host_size > 2 && host[host_size - 1] == ']') {
		memmove(host, host + 1, host_size - 2);
		host[host_size - 2] = 0;
	}
	socket = evhttp_bind_socket_with_handle(http->http, host, (uint16_t) port);
	if (socket == NULL || getsockname(evhttp_bound_socket_get_fd(socket), (struct sockaddr *) &bound, &size) != 0)
		return vd_error_set(reterr, VD_IO, "cannot listen on %s", listen);
	port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *) &bound)->sin6_port : ((struct sockaddr_in *) &bound)->sin_port);
	(void) snprintf(http->address, sizeof http->address, "%.*s:%lu", (int) host_size, listen, port);
	return VD_OK;
}

static void set_routes(struct vdi_serve_http *http)
{
	(void) evhttp_set_cb(http->http, "/version", on_version, http);
	(void) evhttp_set_cb(http->http, "/health", on_health, http);
	(void) evhttp_set_cb(http->http, "/metrics", on_metrics, http);
	(void) evhttp_set_cb(http->http, "/livez", on_livez, http);
	(void) evhttp_set_cb(http->http, "/readyz", on_readyz, http);
	evhttp_set_gencb(http->http, on_other, http);
	evhttp_set_max_headers_size(http->http, REQUEST_BYTES_MAX);
	evhttp_set_max_body_size(http->http, REQUEST_BYTES_MAX);
	evhttp_set_timeout(http->http, IDLE_SECONDS);
	evhttp_set_allowed_methods(http->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE);
}

static void stop(void *arg)
{
	struct vdi_serve_http *http = arg;

	evhttp_free(http->http);
	http->http = NULL;
	vdi_wait_signal(&http->stopped);
}

static vd_status make_stopper(struct vdi_serve_http *http)
{
	struct vd_actor_options options = { .name = "etcd http", .run = stop, .arg = http };

	return vd_runner_actor_new(vdi_loop_runner(http->loop), &options, &http->stopper);
}

vd_status vdi_serve_http_new(struct vdi_etcdserver *server, const char *listen, struct vdi_serve_http **ret_http, struct vd_error *reterr)
{
	struct vdi_serve_http *http = VDI_NEW(struct vdi_serve_http);
	vd_status	       status;

	if (http == NULL)
		return vd_error_set(reterr, VD_NOMEM, "etcd: no memory");
	http->server = server;
	status = vdi_loop_new(server->env, &http->loop);
	if (status == VD_OK) {
		http->http = evhttp_new(vdi_loop_base(http->loop));
		status = http->http ? VD_OK : VD_NOMEM;
	}
	if (status == VD_OK)
		status = make_stopper(http);
	if (status == VD_OK) {
		set_routes(http);
		status = bind_address(http, listen, reterr);
	} else {
		(void) vd_error_set(reterr, status, "etcd: http cannot start");
	}
	if (status == VD_OK)
		status = vdi_loop_start_thread(http->loop, "etcd http");
	if (status == VD_OK) {
		*ret_http = http;
		return VD_OK;
	}
	if (http->http)
		evhttp_free(http->http);
	vdi_wait_for_actor_close(server->env, http->stopper);
	(void) vdi_loop_free(http->loop);
	vdi_free(http);
	return status;
}

const char *vdi_serve_http_address(const struct vdi_serve_http *http)
{
	return http->address;
}

struct vdi_serve_http *vdi_serve_http_free(struct vdi_serve_http *http)
{
	if (http == NULL)
		return NULL;
	vdi_wait_init(&http->stopped, http->server->env);
	vd_actor_wake(http->stopper);
	vdi_wait_wait(&http->stopped);
	vdi_wait_fini(&http->stopped);
	vdi_wait_for_actor_close(http->server->env, http->stopper);
	(void) vdi_loop_free(http->loop);
	vdi_free(http);
	return NULL;
}
