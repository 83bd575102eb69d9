/* One actor runs the client and delivers the answers that are due. */
#include "kube_routes.h"

#include <stdio.h>
#include <sys/queue.h>

#include "base.h"

static struct kube_routes *current;

struct exchange {
	struct vdi_kube_exchange base;
	TAILQ_ENTRY(exchange) node;
	struct vdi_kube_handler handler;
	char		       *path;
	bool			is_plain, is_canceled, is_delivered;
	vd_mono			due;
};

struct transport {
	struct vdi_kube_transport base;
	const struct vd_env	 *env;
	struct vd_actor		 *actor;
	vd_mono (*run)(void *arg);
	void *run_arg;
	TAILQ_HEAD(, exchange) exchanges;
	void (*closed)(void *arg);
	void *closed_arg;
};

void kube_routes_init(struct kube_routes *routes)
{
	memset(routes, 0, sizeof *routes);
	current = routes;
}

struct kube_route *kube_routes_at(struct kube_routes *routes, const char *path)
{
	for (size_t i = 0; i < routes->count; i++)
		if (strcmp(routes->routes[i].path, path) == 0)
			return &routes->routes[i];
	return NULL;
}

struct kube_route *kube_routes_set(struct kube_routes *routes, const char *path, int code, const char *body)
{
	struct kube_route *route = kube_routes_at(routes, path);

	if (route == NULL) {
		VDI_CHECK(routes->count < KUBE_ROUTES_MAX);
		route = &routes->routes[routes->count++];
		route->path = path;
	}
	route->code = code;
	route->body = body;
	route->size = 0;
	route->plain = NULL;
	route->location = NULL;
	route->retry_after_s = 0;
	return route;
}

static void exchange_free(struct transport *transport, struct exchange *exchange)
{
	TAILQ_REMOVE(&transport->exchanges, exchange, node);
	vdi_free(exchange->path);
	vdi_free(exchange);
}

static void end(struct exchange *exchange, vd_status status, const char *message)
{
	struct vd_error error = { 0 };

	if (status != VD_OK)
		(void) vd_error_set(&error, status, "%s", message);
	current->open--;
	exchange->is_delivered = true;
	exchange->handler.ended(exchange->handler.arg, status, &error);
}

static void deliver(struct exchange *exchange)
{
	static const char    not_found[] = "{\"kind\":\"Status\",\"message\":\"the server could not find the "
					   "requested resource\",\"reason\":\"NotFound\",\"code\":404}";
	struct kube_route   *route = kube_routes_at(current, exchange->path);
	struct vdi_kube_head head = { .code = route ? route->code : 404,
				      .content_type = vd_bytes_of("application/json") };
	const char	    *body = route ? route->body : not_found;
	size_t		     size, piece;

	if (route && head.code == 0) {
		end(exchange, VD_UNAVAILABLE, "connection reset by peer");
		return;
	}
	if (route && route->plain && (exchange->is_plain || !current->is_aggregated))
		body = route->plain;
	size = route && route->size && body == route->body ? route->size : strlen(body);
	head.retry_after_s = route ? route->retry_after_s : 0;
	snprintf(head.location, sizeof head.location, "%s", route && route->location ? route->location : "");
	exchange->handler.head(exchange->handler.arg, &head);
	while (size && !exchange->is_canceled) {
		piece = current->piece ? VDI_MIN(current->piece, size) : size;
		exchange->handler.body(exchange->handler.arg, (struct vd_bytes) { body, piece });
		body += piece;
		size -= piece;
	}
	if (!exchange->is_canceled)
		end(exchange, VD_OK, "");
}

static vd_mono deliver_due(struct transport *transport)
{
	struct exchange *exchange, *next;
	vd_mono		 now = vd_env_now(transport->env), due = VD_NEVER;

	for (exchange = TAILQ_FIRST(&transport->exchanges); exchange; exchange = next) {
		next = TAILQ_NEXT(exchange, node);
		if (exchange->is_canceled) {
			exchange_free(transport, exchange);
		} else if (!current->is_silent && exchange->due.ns <= now.ns) {
			deliver(exchange);
			next = TAILQ_NEXT(exchange, node); /* deliveries start others */
			exchange_free(transport, exchange);
		} else if (!current->is_silent) {
			due.ns = VDI_MIN(due.ns, exchange->due.ns);
		}
	}
	return due;
}

static void on_run(void *arg)
{
	struct transport *transport = arg;
	vd_mono		  due = transport->run(transport->run_arg);

	if (transport->closed == NULL)
		due.ns = VDI_MIN(due.ns, deliver_due(transport).ns);
	if (transport->closed)
		return;
	vd_actor_set_timer(transport->actor, due);
}

static vd_status start(struct vdi_kube_transport *base, const struct vdi_kube_http_request *request,
		       const struct vdi_kube_handler *handler, struct vdi_kube_exchange **ret_exchange,
		       struct vd_error *reterr)
{
	struct transport  *transport = VDI_CONTAINER_OF(base, struct transport, base);
	struct exchange	  *exchange = VDI_NEW(struct exchange);
	struct kube_route *route = kube_routes_at(current, request->path);

	if (exchange)
		exchange->path = vdi_strdup(request->path);
	if (exchange == NULL || exchange->path == NULL) {
		vdi_free(exchange);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	exchange->base.transport = base;
	exchange->handler = *handler;
	exchange->is_plain = strcmp(request->accept, "application/json") == 0;
	exchange->due = vd_mono_add(vd_env_now(transport->env), current->delay);
	TAILQ_INSERT_TAIL(&transport->exchanges, exchange, node);
	if (route)
		route->requests++;
	current->requests++;
	current->open++;
	current->opened_max = VDI_MAX(current->opened_max, current->open);
	vd_actor_wake(transport->actor);
	*ret_exchange = &exchange->base;
	return VD_OK;
}

static void cancel(struct vdi_kube_exchange *base)
{
	struct exchange *exchange = VDI_CONTAINER_OF(base, struct exchange, base);

	VDI_CHECK(!exchange->is_delivered);
	exchange->is_canceled = true;
	current->open--;
	vd_actor_wake(VDI_CONTAINER_OF(base->transport, struct transport, base)->actor);
}

static void resume(struct vdi_kube_exchange *exchange)
{
	(void) exchange;
}

static vd_status configure(struct vdi_kube_transport *transport, const struct vdi_kube_tls *tls,
			   struct vd_error *reterr)
{
	(void) transport;
	(void) tls;
	(void) reterr;
	return VD_OK;
}

static void wake(struct vdi_kube_transport *base)
{
	vd_actor_wake(VDI_CONTAINER_OF(base, struct transport, base)->actor);
}

static void on_closed(void *arg)
{
	struct transport *transport = arg;
	struct exchange	 *exchange;

	while ((exchange = TAILQ_FIRST(&transport->exchanges)) != NULL) {
		VDI_CHECK(exchange->is_canceled);
		exchange_free(transport, exchange);
	}
	transport->closed(transport->closed_arg);
	vdi_free(transport);
}

static void close_transport(struct vdi_kube_transport *base, void (*done)(void *arg), void *arg)
{
	struct transport *transport = VDI_CONTAINER_OF(base, struct transport, base);

	transport->closed = done;
	transport->closed_arg = arg;
	vd_actor_close(transport->actor, on_closed, transport);
}

vd_status kube_routes_transport(const struct vdi_kube_transport_options *options,
				struct vdi_kube_transport **ret_transport, struct vd_error *reterr)
{
	static const struct vdi_kube_transport_ops ops = { start,     cancel, resume,
							   configure, wake,   close_transport };
	struct transport			  *transport = VDI_NEW(struct transport);
	const struct vd_actor_options		   actor = { "kube routes", on_run, transport, false };
	vd_status				   status;

	if (transport == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	transport->base.ops = &ops;
	transport->env = options->env;
	transport->run = options->run;
	transport->run_arg = options->arg;
	TAILQ_INIT(&transport->exchanges);
	status = vd_actor_new(options->env, &actor, &transport->actor);
	if (status != VD_OK) {
		vdi_free(transport);
		return vd_error_set(reterr, status, "no actor");
	}
	vd_actor_wake(transport->actor);
	*ret_transport = &transport->base;
	return VD_OK;
}
