/* The server as a whole: from options to running loops, and back.
 *
 * Ending goes from the outside in: stop accepting and drain, close connections, close the caches (their
 * actors on our loops need the loops alive), then the loops. Requests that wait for a store keep the server
 * until their callback came.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller_metrics.h"
#include "env.h"
#include "garbage_collector.h"
#include "http_handlers.h"
#include "http_metrics.h"
#include "http_server.h"
#include "namespace_controller.h"
#include "object_edit.h"
#include "request_log.h"
#include "thread.h"
#include "wait.h"

/* ---- The address ---- */

struct listen_address {
	union {
		struct sockaddr	    any;
		struct sockaddr_in  v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un  path;
	} socket;
	socklen_t size;
	bool	  is_loopback;
};

static vd_status parse_port(const char *text, uint16_t *ret_port)
{
	char *end;
	long  port = strtol(text, &end, 10);

	if (end == text || *end || port < 0 || port > 65535 || *text == '+' || *text == '-' || *text == ' ')
		return VD_INVALID_ARGUMENT;
	*ret_port = (uint16_t) port;
	return VD_OK;
}

static vd_status parse_listen(const char *text, struct listen_address *ret_address, struct vd_error *reterr)
{
	struct listen_address address = { 0 };
	const char	     *colon = text ? strrchr(text, ':') : NULL;
	char		      host[64];
	uint16_t	      port;
	size_t		      size = colon ? (size_t) (colon - text) : 0;
	bool		      loopback;

	if (colon == NULL || size >= sizeof host || parse_port(colon + 1, &port) != VD_OK)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "listen address \"%s\": must be ADDRESS:PORT", text ? text : "");
	if (size > 2 && text[0] == '[' && text[size - 1] == ']')
		(void) snprintf(host, sizeof host, "%.*s", (int) size - 2, text + 1);
	else
		(void) snprintf(host, sizeof host, "%.*s", (int) size, text);
	if (strcmp(host, "localhost") == 0)
		(void) snprintf(host, sizeof host, "127.0.0.1");
	if (inet_pton(AF_INET, host, &address.socket.v4.sin_addr) == 1) {
		address.socket.v4.sin_family = AF_INET;
		address.socket.v4.sin_port = htons(port);
		address.size = sizeof address.socket.v4;
		loopback = ntohl(address.socket.v4.sin_addr.s_addr) >> 24 == 127;
	} else if (inet_pton(AF_INET6, host, &address.socket.v6.sin6_addr) == 1) {
		address.socket.v6.sin6_family = AF_INET6;
		address.socket.v6.sin6_port = htons(port);
		address.size = sizeof address.socket.v6;
		loopback = IN6_IS_ADDR_LOOPBACK(&address.socket.v6.sin6_addr);
	} else {
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "listen address \"%s\": not an IP address",
				    text);
	}
	address.is_loopback = loopback;
	*ret_address = address;
	return VD_OK;
}

/* Refuses an address that other machines reach, unless clients are authenticated and their credentials are
 * encrypted. */
static vd_status check_reach(const struct vd_server *server, const struct listen_address *address,
			     const char *text, struct vd_error *reterr)
{
	const struct vdi_security *security = server->security;

	if (address->is_loopback || server->options.insecure_no_auth ||
	    (security->authenticates && security->tls))
		return VD_OK;
	return vd_error_set(reterr, VD_INVALID_ARGUMENT,
			    security->authenticates ?
				    "listen address \"%s\": tokens would be sent in the clear to an address "
				    "that is not loopback: "
				    "give it a certificate and a key" :
				    "listen address \"%s\": without authentication only loopback addresses "
				    "are served: give it client "
				    "authorities or tokens, or say that everybody may do everything",
			    text);
}

static const char unix_scheme[] = "unix:";

static void log_address(struct vd_server *server, const struct listen_address *address)
{
	const char *scheme = server->security->tls ? "https" : "http";
	char	    host[64];

	if (address->socket.any.sa_family == AF_INET) {
		(void) inet_ntop(AF_INET, &address->socket.v4.sin_addr, host, sizeof host);
		(void) snprintf(server->address, sizeof server->address, "%s://%s:%u", scheme, host,
				ntohs(address->socket.v4.sin_port));
	} else {
		(void) inet_ntop(AF_INET6, &address->socket.v6.sin6_addr, host, sizeof host);
		(void) snprintf(server->address, sizeof server->address, "%s://[%s]:%u", scheme, host,
				ntohs(address->socket.v6.sin6_port));
	}
}

/* Uses a socket opened by another process (socket activation). */
static vd_status take_socket(struct vd_server *server, struct vd_error *reterr)
{
	struct listen_address address = { .size = sizeof address.socket };
	int		      fd = server->listen_fd, type = 0, listens = 0, flags;
	socklen_t	      size = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
	    getsockname(fd, &address.socket.any, &address.size) != 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "the socket that was handed over: %s",
				    strerror(errno));
	if (type != SOCK_STREAM || !listens)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "the socket that was handed over is no stream socket that listens");
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		return vd_error_set(reterr, VD_IO, "the socket that was handed over: %s", strerror(errno));
	switch (address.socket.any.sa_family) {
	case AF_UNIX:
		if (server->security->tls)
			return vd_error_set(
				reterr, VD_INVALID_ARGUMENT,
				"the socket that was handed over: a socket of the file system has no TLS");
		(void) snprintf(server->address, sizeof server->address, "%s%.*s", unix_scheme,
				(int) sizeof address.socket.path.sun_path, address.socket.path.sun_path);
		return VD_OK;
	case AF_INET: address.is_loopback = ntohl(address.socket.v4.sin_addr.s_addr) >> 24 == 127; break;
	case AF_INET6: address.is_loopback = IN6_IS_ADDR_LOOPBACK(&address.socket.v6.sin6_addr); break;
	default:
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "the socket that was handed over has no IP address and no path");
	}
	log_address(server, &address);
	return check_reach(server, &address, strchr(server->address, '/') + 2, reterr);
}

/* Clients can connect only after listen, and only if they may open the file. */
static vd_status bind_path(struct vd_server *server, const char *path, struct vd_error *reterr)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int		   fd;

	if (server->security->tls)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "listen address \"%s\": a socket of the file system has no TLS",
				    server->options.listen);
	if (*path == 0 || strlen(path) >= sizeof address.sun_path)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "listen address \"%s\": a path of 1 to %zu bytes", server->options.listen,
				    sizeof address.sun_path - 1);
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return vd_error_set(reterr, VD_IO, "socket: %s", strerror(errno));
	server->listen_fd = fd;
	if (bind(fd, (struct sockaddr *) &address, sizeof address) != 0)
		return vd_error_set(reterr, VD_IO, "%s: %s", server->options.listen, strerror(errno));
	server->listen_path = vdi_strdup(path);
	if (server->listen_path == NULL) {
		(void) unlink(path);
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	}
	if (chmod(path, 0600) != 0 || listen(fd, 4096) != 0)
		return vd_error_set(reterr, VD_IO, "%s: %s", server->options.listen, strerror(errno));
	(void) snprintf(server->address, sizeof server->address, "%s%s", unix_scheme, path);
	return VD_OK;
}

static vd_status bind_address(struct vd_server *server, struct vd_error *reterr)
{
	struct listen_address address;
	int		      on = 1, fd;

	if (server->listen_fd >= 0)
		return take_socket(server, reterr);
	if (server->options.listen &&
	    strncmp(server->options.listen, unix_scheme, sizeof unix_scheme - 1) == 0)
		return bind_path(server, server->options.listen + sizeof unix_scheme - 1, reterr);
	VDI_TRY(parse_listen(server->options.listen, &address, reterr));
	VDI_TRY(check_reach(server, &address, server->options.listen, reterr));
	fd = socket(address.socket.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return vd_error_set(reterr, VD_IO, "socket: %s", strerror(errno));
	server->listen_fd = fd;
	(void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	/* Listening starts now, so that the port is known and ours; connections wait in the kernel until
	 * vd_server_start. */
	if (bind(fd, &address.socket.any, address.size) != 0 || listen(fd, 4096) != 0 ||
	    getsockname(fd, &address.socket.any, &address.size) != 0)
		return vd_error_set(reterr, VD_IO, "%s: %s", server->options.listen, strerror(errno));
	log_address(server, &address);
	return VD_OK;
}

/* ---- Life ---- */

static size_t loop_count_of(const struct vd_server *server)
{
	return server->options.threads ? server->options.threads : VDI_MIN(vdi_thread_processors(), 8u);
}

static vd_status make_loops(struct vd_server *server, struct vd_error *reterr)
{
	size_t count = loop_count_of(server);

	server->loops = vdi_calloc(count, sizeof *server->loops);
	if (server->loops == NULL)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	for (; server->loop_count < count; server->loop_count++) {
		vd_status status = vdi_http_loop_init(&server->loops[server->loop_count], server);

		if (status != VD_OK)
			return vd_error_set(reterr, status, "event loop: %s", vd_status_sentence(status));
	}
	return VD_OK;
}

static vd_status load_security(const struct vd_server *server, struct vdi_security **ret_security,
			       struct vd_error *reterr)
{
	const struct vdi_security_files files = { .cert = server->options.tls_cert_path,
						  .key = server->options.tls_key_path,
						  .client_ca = server->options.client_ca_path,
						  .tokens = server->options.token_path,
						  .policy = server->options.policy_path };

	return vdi_security_load(&files, ret_security, reterr);
}

vd_status vd_server_reload(struct vd_server *server, struct vd_error *reterr)
{
	struct vdi_security *fresh, *stale;
	vd_status	     status;

	VDI_REQUIRE(server, reterr);
	VDI_TRY(vdi_wait_check(server->env, __func__, reterr));
	vdi_request_logs_reopen(server->request_logs);
	VDI_TRY(load_security(server, &fresh, reterr));
	status = vdi_kinds_reload(&server->kinds, reterr);
	if (status != VD_OK) {
		(void) vdi_security_unref(fresh);
		return status;
	}
	vdi_lock_acquire(&server->lock);
	stale = server->security;
	server->security = fresh;
	vdi_lock_release(&server->lock);
	(void) vdi_security_unref(stale);
	for (size_t i = 0; i < server->loop_count; i++)
		vdi_http_loop_reload(&server->loops[i]);
	return VD_OK;
}

static void run_heartbeat(void *arg)
{
	struct vd_server *server = arg;

	vdi_lock_acquire(&server->lock);
	server->pool_pong = server->ping;
	vdi_condition_broadcast(&server->changed);
	vdi_lock_release(&server->lock);
}

/* ---- Callbacks of the kinds ---- */

static vd_status count_resource(void *arg, const struct vdi_resource *resource,
				struct vdi_resource_counts **ret_counts)
{
	struct vd_server *server = arg;

	return vdi_http_metrics_counts(server->metrics, resource, ret_counts);
}

static void about_to_publish_locked(void *arg)
{
	struct vd_server *server = arg;

	if (server->garbage_collector)
		vdi_garbage_collector_kinds_changed(server->garbage_collector);
}

static void published(void *arg)
{
	struct vd_server *server = arg;

	for (size_t i = 0; i < server->loop_count; i++)
		vdi_http_loop_reload(&server->loops[i]);
}

static bool is_taken(void *arg, uint64_t number)
{
	struct vd_server *server = arg;

	for (size_t i = 0; i < server->loop_count; i++)
		if (atomic_load(&server->loops[i].served_number) != number)
			return false;
	return true;
}

static vd_status build(struct vd_server *server, struct vd_error *reterr)
{
	struct vd_actor_options heartbeat = { .name = "heartbeat", .run = run_heartbeat, .arg = server };
	struct vdi_kinds_host	kinds = { server->env,	  server->store,	   &server->options,
					  &server->lock,  &server->changed,	   server,
					  count_resource, about_to_publish_locked, published,
					  is_taken };
	vd_status		status;

	VDI_TRY(load_security(server, &server->security, reterr));
	VDI_TRY(bind_address(server, reterr));
	VDI_TRY(vdi_request_logs_open(server->env, &server->options, &server->request_logs, reterr));
	status = vdi_http_metrics_new(server, loop_count_of(server), &server->metrics);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "metrics: %s", vd_status_sentence(status));
	if ((status = vdi_work_queue_init(&server->work, server->env, "long_work")) != VD_OK ||
	    (status = vdi_work_queue_init(&server->searches, server->env, "list_search")) != VD_OK)
		return vd_error_set(reterr, status, "worker threads: %s", vd_status_sentence(status));
	VDI_TRY(vdi_kinds_start(&server->kinds, &kinds, reterr));
	if ((status = vd_actor_new(server->env, &heartbeat, &server->heartbeat)) != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	VDI_TRY(make_loops(server, reterr));
	return vdi_kinds_run(&server->kinds, reterr);
}

/* Refuses zeroed options: they would mean no connection, or requests that time out at once. */
static vd_status check_options(const struct vd_server_options *options, struct vd_error *reterr)
{
	const struct {
		const char *name;
		vd_dur	    value;
	} times[] = { { "head_timeout", options->head_timeout },
		      { "body_timeout", options->body_timeout },
		      { "request_timeout", options->request_timeout },
		      { "idle_timeout", options->idle_timeout },
		      { "write_timeout", options->write_timeout } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(times); i++)
		if (times[i].value.ns <= 0)
			return vd_error_set(
				reterr, VD_INVALID_ARGUMENT,
				"server: %s is %lld ms, must be above 0: begin with VD_SERVER_OPTIONS_INIT",
				times[i].name, (long long) times[i].value.ns / 1000000);
	if (options->threads > 256)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "server: %u threads, at most 256",
				    options->threads);
	if (options->history_bytes <= 0 || options->connection_count_max == 0 ||
	    options->client_bytes_max < 0 || options->consistency_interval.ns < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "server: history_bytes and connection_count_max must be above 0, "
				    "client_bytes_max and consistency_interval 0 or more");
	if (!(options->cut_frames >= 0 && options->cut_frames <= 1))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "server: cut_frames is %g, must be 0 to 1",
				    options->cut_frames);
	VDI_REQUIRE_BYTES(options->resources, reterr);
	return VD_OK;
}

static vd_status check_arguments(const struct vd_env *env, const struct vd_store *store,
				 const struct vd_server_options *options, struct vd_server **ret_server,
				 struct vd_error *reterr)
{
	if (env == NULL || store == NULL || ret_server == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "vd_server_new: %s is NULL",
				    env == NULL	  ? "env" :
				    store == NULL ? "store" :
						    "ret_server");
	if (vdi_env_sim(env))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "server: the env must have the real clock");
	return check_options(options, reterr);
}

vd_status vd_server_new(const struct vd_env *env, struct vd_store *store,
			const struct vd_server_options *options, struct vd_server **ret_server,
			struct vd_error *reterr)
{
	static const struct vd_server_options defaults = VD_SERVER_OPTIONS_INIT;
	struct vd_server		     *server;
	vd_status			      status;

	if (options)
		VDI_REQUIRE_OPTIONS(options, reterr);
	else
		options = &defaults;
	status = check_arguments(env, store, options, ret_server, reterr);
	server = status == VD_OK ? VDI_NEW(struct vd_server) : NULL;
	if (server == NULL) {
		if (options->listen_socket)
			(void) close(options->listen_socket);
		return status == VD_OK ? vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM)) :
					 status;
	}
	server->env = env;
	server->store = store;
	server->options = *options;
	server->listen_fd = server->options.listen_socket ? server->options.listen_socket : -1;
	vdi_lock_init(&server->lock, VDI_LOCK_SERVER);
	vdi_accounts_init(&server->accounts);
	server->accounts.budgets[VDI_REQUEST_READING].max = server->options.request_count_max;
	server->accounts.budgets[VDI_REQUEST_MUTATING].max = server->options.mutating_request_count_max;
	server->write_limit = VDI_HTTP_WRITE_LIMIT;
	server->dispatch = vdi_request_dispatch;
	vdi_condition_init(&server->changed);
	status = build(server, reterr);
	if (status != VD_OK) {
		(void) vd_server_free(server);
		return status;
	}
	server->usage = (struct vdi_usage) { .kind = "server",
					     .name = server->address,
					     .closed_by = "vd_server_free",
					     .env = env,
					     .uses = { store } };
	vdi_usage_begin(&server->usage);
	*ret_server = server;
	return VD_OK;
}

struct creation {
	struct vdi_wait wait;
	vd_status	status;
	struct vd_error error;
};

static void namespace_created(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			      const struct vd_error *error)
{
	struct creation *creation = arg;

	(void) object;
	(void) revision;
	creation->status = status;
	if (error)
		creation->error = *error;
	vdi_wait_signal(&creation->wait);
}

static vd_status create_namespace(struct vd_server *server, const char *name, struct vd_error *reterr)
{
	struct vdi_edited	 edited = { 0 };
	struct vdi_http_status	 refusal;
	struct creation		 creation = { .status = VD_OK };
	char			 body[128];
	struct vdi_resource_set *resource_set = vdi_kinds_get(&server->kinds);
	struct vdi_edit edit = { .resource = resource_set->namespaces, .now = vd_env_wall(server->env) };
	vd_status	status;

	for (int i = 0; i < 2; i++)
		edit.random[i] = vd_env_random(server->env);
	(void) snprintf(body, sizeof body,
			"{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\"}}",
			name);
	edit.body = vd_bytes_of(body);
	status = vdi_edit_create(&edit, &edited, &refusal);
	if (status == VD_OK) {
		vdi_wait_init(&creation.wait, server->env);
		status = vd_cacher_create(resource_set->namespaces->cacher, VD_BYTES_NONE, vd_bytes_of(name),
					  vdi_out_slice(&edited.text), 0, namespace_created, &creation);
		if (status == VD_OK) {
			vdi_wait_wait(&creation.wait);
			status = creation.status;
		}
		vdi_wait_fini(&creation.wait);
	}
	vdi_edited_fini(&edited);
	(void) vdi_resource_set_unref(resource_set);
	if (status == VD_OK || status == VD_EXISTS)
		return VD_OK;
	if (status == VD_FORBIDDEN) {
		/* A store that we may only read: it has what it has. */
		vdi_log(server->env, VD_LOG_WARNING, "server", "namespace %s: %s", name,
			creation.error.message);
		return VD_OK;
	}
	return vd_error_set(reterr, status, "namespace %s: %s", name,
			    creation.error.message[0] ? creation.error.message : vd_status_sentence(status));
}

static vd_status wait_for_caches(struct vd_server *server, vd_mono due, struct vd_error *reterr)
{
	struct vdi_resource_set *resource_set = vdi_kinds_get(&server->kinds);
	vd_status		 status = VD_OK;

	for (size_t i = 0; i < resource_set->resources.count && status == VD_OK; i++) {
		vd_dur left =
			due.ns == INT64_MAX ? (vd_dur) { -1 } : vd_mono_since(due, vd_env_now(server->env));

		if (due.ns != INT64_MAX && left.ns < 0)
			left.ns = 0;
		status = vd_cacher_ready_wait(resource_set->resources.items[i]->cacher, left, reterr);
	}
	(void) vdi_resource_set_unref(resource_set);
	return status;
}

static struct vdi_resource_set *served_of(void *arg)
{
	struct vd_server *server = arg;

	return vdi_kinds_get(&server->kinds);
}

/* An object of the namespace went, which may be the last one that is waited for. */
static void on_namespace_deleted(void *arg, struct vd_bytes namespace_name)
{
	struct vd_server *server = arg;

	vdi_namespace_controller_poke(server->namespace_controller, namespace_name);
}

static vd_status start_controllers(struct vd_server *server, struct vd_error *reterr)
{
	struct vdi_garbage_collector *collector;

	if (server->options.no_garbage_collector || server->options.read_only || server->options.only)
		return VD_OK;
	if (server->namespace_controller == NULL)
		VDI_TRY(vdi_namespace_controller_new(server->env, served_of, server,
						     &server->namespace_controller, reterr));
	if (server->garbage_collector == NULL) {
		VDI_TRY(vdi_garbage_collector_new(server->env, served_of, on_namespace_deleted, server,
						  &collector, reterr));
		vdi_lock_acquire(&server->lock);
		server->garbage_collector = collector;
		vdi_lock_release(&server->lock);
		vdi_garbage_collector_kinds_changed(
			collector); /* between its first look and now it could not be told */
	}
	if (server->controller_metrics == NULL &&
	    vdi_controller_metrics_new(server->env, server->garbage_collector, server->namespace_controller,
				       &server->controller_metrics) != VD_OK)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	return VD_OK;
}

vd_status vd_server_start(struct vd_server *server, vd_dur timeout, struct vd_error *reterr)
{
	static const char *const names[] = { "default", "kube-system", "kube-public", "kube-node-lease" };
	vd_mono			 due;

	VDI_REQUIRE(server, reterr);
	VDI_TRY(vdi_wait_check(server->env, __func__, reterr));
	due = timeout.ns < 0 ? VD_NEVER : vd_mono_add(vd_env_now(server->env), timeout);
	VDI_TRY(wait_for_caches(server, due, reterr));
	VDI_TRY(vdi_kinds_wait(&server->kinds, due, reterr));
	for (size_t i = 0;
	     i < VDI_ARRAY_SIZE(names) && !server->options.no_namespaces && !server->options.read_only; i++)
		VDI_TRY(create_namespace(server, names[i], reterr));
	VDI_TRY(start_controllers(server, reterr));
	if (!atomic_exchange(&server->started, true))
		for (size_t i = 0; i < server->loop_count; i++)
			vdi_http_loop_accept(&server->loops[i]);
	return VD_OK;
}

const char *vd_server_address(const struct vd_server *server)
{
	return server->address;
}

static bool wait_for_connections(struct vd_server *server, vd_mono due)
{
	bool gone;

	vdi_lock_acquire(&server->lock);
	while (server->connections_open > 0)
		if (!vdi_condition_wait_until(&server->changed, &server->lock, due))
			break;
	gone = server->connections_open == 0;
	vdi_lock_release(&server->lock);
	return gone;
}

/* ---- Alive ---- */

static bool is_alive_locked(const struct vd_server *server, uint64_t ping)
{
	for (size_t i = 0; i < server->loop_count; i++)
		if (server->loops[i].pong < ping)
			return false;
	return server->pool_pong >= ping;
}

vd_status vd_server_ping(struct vd_server *server, vd_dur timeout)
{
	vd_mono	 due;
	uint64_t ping;
	bool	 is_alive;

	VDI_REQUIRE(server, NULL);
	VDI_TRY(vdi_wait_check(server->env, __func__, NULL));
	due = vd_mono_add(vd_env_now(server->env), timeout);
	ping = ++server->ping;
	vd_actor_wake(server->heartbeat);
	for (size_t i = 0; i < server->loop_count; i++)
		vdi_http_loop_ping(&server->loops[i]);
	vdi_lock_acquire(&server->lock);
	while (!(is_alive = is_alive_locked(server, ping)))
		if (!vdi_condition_wait_until(&server->changed, &server->lock, due))
			break;
	is_alive = is_alive || is_alive_locked(server, ping);
	vdi_lock_release(&server->lock);
	return is_alive ? VD_OK : VD_TIMEOUT;
}

/* ---- The end ---- */

void vd_server_mark_unready(struct vd_server *server)
{
	server->is_unready = true;
}

vd_status vd_server_drain(struct vd_server *server, vd_dur timeout)
{
	VDI_REQUIRE(server, NULL);
	VDI_TRY(vdi_wait_check(server->env, __func__, NULL));
	server->draining = true;
	for (size_t i = 0; i < server->loop_count; i++)
		vdi_http_loop_drain(&server->loops[i]);
	return wait_for_connections(server, vd_mono_add(vd_env_now(server->env), timeout)) ? VD_OK :
											     VD_TIMEOUT;
}

struct vd_server *vd_server_free(struct vd_server *server)
{
	if (server == NULL)
		return NULL;
	vdi_wait_check_close(__func__, "a thread of your own");
	server->draining = true;
	for (size_t i = 0; i < server->loop_count; i++)
		vdi_http_loop_close_all(&server->loops[i]);
	(void) wait_for_connections(server, VD_NEVER);
	server->controller_metrics = vdi_controller_metrics_free(server->controller_metrics);
	vdi_kinds_halt(&server->kinds);
	server->garbage_collector = vdi_garbage_collector_free(server->garbage_collector);
	server->namespace_controller = vdi_namespace_controller_free(server->namespace_controller);
	vdi_kinds_stop(&server->kinds);
	vdi_work_queue_fini(&server->searches);
	vdi_work_queue_fini(&server->work);
	for (size_t i = 0; i < server->loop_count; i++)
		vdi_http_loop_fini(&server->loops[i]);
	vdi_wait_for_actor_close(server->env, server->heartbeat);
	server->request_logs = vdi_request_logs_close(server->request_logs);
	server->metrics = vdi_http_metrics_free(server->metrics);
	vdi_free(server->loops);
	if (server->listen_fd >= 0)
		(void) close(server->listen_fd);
	if (server->listen_path)
		(void) unlink(server->listen_path);
	vdi_free(server->listen_path);
	(void) vdi_security_unref(server->security);
	vdi_usage_end(&server->usage);
	vdi_condition_fini(&server->changed);
	vdi_accounts_fini(&server->accounts);
	vdi_lock_fini(&server->lock);
	vdi_free(server);
	return NULL;
}
