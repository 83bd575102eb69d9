/* Listens on the addresses. The first loop accepts, and passes each socket to the loop with the fewest
 * connections.
 *
 * If no descriptor or memory is free, accepting pauses for a moment; otherwise the socket would stay readable
 * and the loop would spin.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <netinet/in.h>

#include "env.h"
#include "h2_server_state.h"

#define BACKLOG 1024
#define ACCEPT_BATCH 64
#define ACCEPT_PAUSE VD_MS(50)

/* ---- Addresses ---- */

static vd_status open_socket(const struct sockaddr *at, socklen_t size, const char *name,
			     struct vdi_h2_listener *listener, struct vd_error *reterr)
{
	int fd = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;
	int error;

	if (fd >= 0) {
		if (at->sa_family != AF_UNIX)
			(void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		if (bind(fd, at, size) == 0 && listen(fd, BACKLOG) == 0) {
			listener->fd = fd;
			return VD_OK;
		}
	}
	error = errno;
	if (fd >= 0)
		(void) close(fd);
	return vd_error_set(reterr, VD_IO, "address \"%.200s\": %s", name, strerror(error));
}

static unsigned port_of(int fd)
{
	struct sockaddr_storage at = { 0 };
	socklen_t		size = sizeof at;

	if (getsockname(fd, (struct sockaddr *) &at, &size) != 0)
		return 0;
	return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *) &at)->sin6_port :
						((struct sockaddr_in *) &at)->sin_port);
}

/* Chooses IPv4 first if a name has several addresses, like Go. */
static const struct addrinfo *choose(const struct addrinfo *found)
{
	for (const struct addrinfo *at = found; at; at = at->ai_next)
		if (at->ai_family == AF_INET)
			return at;
	return found;
}

static vd_status listen_on_port(const char *name, struct vdi_h2_listener *listener, struct vd_error *reterr)
{
	const char	*colon = strrchr(name, ':');
	struct addrinfo	 hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	char		 host[256];
	char		 address[300];
	size_t		 size;
	vd_status	 status;

	if (colon == NULL || strlen(name) > 256)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "address \"%.200s\" is not of the form address:port", name);
	size = (size_t) (colon - name);
	if (size >= 2 && name[0] == '[' && name[size - 1] == ']')
		snprintf(host, sizeof host, "%.*s", (int) (size - 2), name + 1);
	else
		snprintf(host, sizeof host, "%.*s", (int) size, name);
	if (getaddrinfo(host[0] ? host : NULL, colon + 1, &hints, &found) != 0)
		return vd_error_set(reterr, VD_IO, "address \"%.200s\": no such address", name);
	status = open_socket(choose(found)->ai_addr, choose(found)->ai_addrlen, name, listener, reterr);
	freeaddrinfo(found);
	VDI_TRY(status);
	snprintf(address, sizeof address, "%.*s:%u", (int) size, name, port_of(listener->fd));
	listener->address = vdi_strdup(address);
	return listener->address ? VD_OK : VD_NOMEM;
}

/* Removes the socket file of a server that was killed, which would block the next one. */
static void remove_stale(const struct sockaddr_un *at)
{
	struct stat found;
	int	    fd;

	if (lstat(at->sun_path, &found) != 0 || !S_ISSOCK(found.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *) at, sizeof *at) != 0 && errno == ECONNREFUSED)
		(void) unlink(at->sun_path);
	(void) close(fd);
}

static vd_status listen_on_path(const char *name, struct vdi_h2_listener *listener, struct vd_error *reterr)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const char	  *path = name + sizeof "unix:" - 1;

	if (strncmp(path, "//", 2) == 0)
		path += 2;
	if (path[0] == 0 || strlen(path) >= sizeof at.sun_path)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "address \"%.200s\": the path is %s", name,
				    path[0] ? "too long" : "missing");
	strcpy(at.sun_path, path);
	remove_stale(&at);
	VDI_TRY(open_socket((struct sockaddr *) &at, sizeof at, name, listener, reterr));
	listener->path = vdi_strdup(path);
	listener->address = vdi_strdup(name);
	return listener->path && listener->address ? VD_OK : VD_NOMEM;
}

vd_status vdi_h2_accept_listen(struct vdi_h2_server *server, const struct vdi_rpc_server_options *options,
			       struct vd_error *reterr)
{
	if (options->listen_count == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "no address to listen on");
	server->listeners = vdi_calloc(options->listen_count, sizeof server->listeners[0]);
	if (server->listeners == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < options->listen_count; i++) {
		struct vdi_h2_listener *listener = &server->listeners[server->listener_count++];
		const char	       *name = options->listen[i];

		listener->server = server;
		listener->fd = -1;
		if (strncmp(name, "unix:", 5) == 0)
			VDI_TRY(listen_on_path(name, listener, reterr));
		else
			VDI_TRY(listen_on_port(name, listener, reterr));
	}
	return VD_OK;
}

/* ---- Accepting ---- */

static struct vdi_h2_server_loop *least_busy(struct vdi_h2_server *server)
{
	struct vdi_h2_server_loop *best = &server->loops[0];

	for (unsigned i = 1; i < server->loop_count; i++)
		if (atomic_load_explicit(&server->loops[i].connection_count, memory_order_relaxed) <
		    atomic_load_explicit(&best->connection_count, memory_order_relaxed))
			best = &server->loops[i];
	return best;
}

static void hand_out(struct vdi_h2_server *server, const struct vdi_h2_arrival *arrived)
{
	struct vdi_h2_server_loop *loop = least_busy(server);
	struct vdi_h2_arrival	  *arrival;

	atomic_fetch_add_explicit(&loop->connection_count, 1, memory_order_relaxed);
	if (loop == server->loops) {
		vdi_h2_server_connection_open(loop, arrived);
		return;
	}
	arrival = vdi_alloc(sizeof *arrival);
	if (arrival == NULL) {
		(void) close(arrived->fd);
		atomic_fetch_sub_explicit(&loop->connection_count, 1, memory_order_relaxed);
		return;
	}
	*arrival = *arrived;
	vdi_lock_acquire(&loop->lock);
	arrival->next = loop->arrivals;
	loop->arrivals = arrival;
	vdi_h2_loop_wake(
		loop->h2_loop); /* under the lock: the loop may end as soon as it has processed the arrival */
	vdi_lock_release(&loop->lock);
}

static void pause_accepting(struct vdi_h2_server *server)
{
	for (size_t i = 0; i < server->listener_count; i++)
		(void) event_del(&server->listeners[i].event);
	vdi_h2_timer_set(server->loops[0].h2_loop, &server->accept_pause,
			 vd_mono_add(vd_env_now(server->env), ACCEPT_PAUSE));
}

static void resume_accepting(struct vdi_h2_timer *timer)
{
	struct vdi_h2_server *server = VDI_CONTAINER_OF(timer, struct vdi_h2_server, accept_pause);

	for (size_t i = 0; i < server->listener_count; i++)
		if (server->listeners[i].has_event && event_add(&server->listeners[i].event, NULL) != 0)
			vdi_h2_timer_set(server->loops[0].h2_loop, timer,
					 vd_mono_add(vd_env_now(server->env), ACCEPT_PAUSE));
}

static void on_arrival(evutil_socket_t fd, short what, void *arg)
{
	struct vdi_h2_listener *listener = arg;

	(void) what;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		struct vdi_h2_arrival arrival = { .address_size = sizeof arrival.address };

		arrival.fd = accept4(fd, (struct sockaddr *) &arrival.address, &arrival.address_size,
				     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (arrival.fd >= 0) {
			hand_out(listener->server, &arrival);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			pause_accepting(listener->server);
			return;
		}
		if (errno == EAGAIN)
			return;
		/* ECONNABORTED and similar errors concern that socket only. */
	}
}

/* ---- Start and stop ---- */

vd_status vdi_h2_accept_start(struct vdi_h2_server *server)
{
	server->accept_pause.fire = resume_accepting;
	for (size_t i = 0; i < server->listener_count; i++) {
		struct vdi_h2_listener *listener = &server->listeners[i];

		if (event_assign(&listener->event, vdi_loop_base(server->loops[0].loop), listener->fd,
				 EV_READ | EV_PERSIST, on_arrival, listener) != 0 ||
		    event_add(&listener->event, NULL) != 0)
			return VD_NOMEM;
		listener->has_event = true;
	}
	return VD_OK;
}

void vdi_h2_accept_stop(struct vdi_h2_server *server)
{
	if (server->loops && server->loops[0].h2_loop && server->accept_pause.fire)
		vdi_h2_timer_set(server->loops[0].h2_loop, &server->accept_pause, VD_NEVER);
	for (size_t i = 0; i < server->listener_count; i++) {
		struct vdi_h2_listener *listener = &server->listeners[i];

		if (listener->has_event)
			(void) event_del(&listener->event);
		listener->has_event = false;
		if (listener->fd >= 0) {
			if (listener->path)
				(void) unlink(listener->path);
			(void) close(listener->fd);
		}
		listener->fd = -1;
	}
}

void vdi_h2_accept_fini(struct vdi_h2_server *server)
{
	for (size_t i = 0; i < server->listener_count; i++) {
		vdi_free(server->listeners[i].address);
		vdi_free(server->listeners[i].path);
	}
	vdi_free(server->listeners);
}
