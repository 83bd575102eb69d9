/* Bytes: each exchange answers after a random delay, then sends its response in chunks of random sizes, at
 * random times. Faults are drawn when it begins. */
#include "kube_peer_state.h"

#include <stdlib.h>

#include "check.h"

static vd_dur random_delay(struct kube_peer *peer, int64_t max_us)
{
	return VD_US(1 + kube_peer_random(peer, (uint64_t) max_us));
}

void kube_peer_wake(struct kube_peer *peer)
{
	pthread_mutex_lock(&peer->mutex);
	for (struct kube_peer_transport *transport = peer->transports; transport; transport = transport->next)
		vd_actor_wake(transport->actor);
	pthread_mutex_unlock(&peer->mutex);
}

static void free_exchange(struct kube_peer_exchange *exchange)
{
	struct kube_peer_transport *transport = exchange->transport;

	pthread_mutex_lock(&transport->peer->mutex);
	TAILQ_REMOVE(&transport->exchanges, exchange, node);
	if (exchange->is_watch)
		transport->peer->open_watches--;
	pthread_mutex_unlock(&transport->peer->mutex);
	if (transport->stepping == exchange)
		transport->stepping = NULL;
	free(exchange->method);
	free(exchange->path);
	free(exchange->token);
	free(exchange->body.data);
	free(exchange->text.data);
	free(exchange);
}

static void end(struct kube_peer_exchange *exchange, vd_status status, const char *why)
{
	struct vdi_kube_handler handler = exchange->handler;
	struct vd_error		error = { 0 };

	free_exchange(exchange);
	if (status != VD_OK)
		(void) vd_error_set(&error, status, "%s", why);
	handler.ended(handler.arg, status, &error);
}

/* ---- Faults ---- */

static void draw_faults(struct kube_peer_exchange *exchange, vd_mono now)
{
	struct kube_peer *peer = exchange->transport->peer;

	exchange->cut_after = SIZE_MAX;
	exchange->cut_at = VD_NEVER;
	if (kube_peer_random(peer, 100) < peer->faults.unreachable) {
		exchange->is_cut = true;
	} else if (kube_peer_random(peer, 100) < peer->faults.cut) {
		if (kube_peer_random(peer, 2))
			exchange->cut_after = kube_peer_random(peer, 4000);
		else
			exchange->cut_at = vd_mono_add(now, VD_MS(kube_peer_random(peer, 30000)));
	} else if (kube_peer_random(peer, 100) < peer->faults.silent) {
		exchange->is_silent = true;
		exchange->cut_after = kube_peer_random(peer, 4000);
	}
}

void kube_peer_cut(struct kube_peer *peer)
{
	pthread_mutex_lock(&peer->mutex);
	for (struct kube_peer_transport *transport = peer->transports; transport;
	     transport = transport->next) {
		struct kube_peer_exchange *exchange;

		TAILQ_FOREACH(exchange, &transport->exchanges, node)
		exchange->is_cut = true;
	}
	pthread_mutex_unlock(&peer->mutex);
	kube_peer_wake(peer);
}

/* ---- Steps ---- */

static bool send_head(struct kube_peer_exchange *exchange)
{
	struct kube_peer_transport *transport = exchange->transport;
	struct vdi_kube_head	    head = { .code = exchange->code,
					     .retry_after_s = exchange->retry_after_s,
					     .content_type = vd_bytes_of("application/json") };

	exchange->has_head = true;
	exchange->handler.head(exchange->handler.arg, &head);
	return transport->stepping != NULL;
}

/* False: the exchange is gone. */
static bool send_chunk(struct kube_peer_exchange *exchange, vd_mono now)
{
	struct kube_peer_transport *transport = exchange->transport;
	struct kube_peer	   *peer = transport->peer;
	size_t			    most = peer->chunk_max ? peer->chunk_max : 65536;
	size_t			    size = exchange->text.size;

	size = VDI_MIN(size, peer->chunk_max ? 1 + kube_peer_random(peer, most) : most);
	size = VDI_MIN(size, exchange->cut_after);
	if (size == 0)
		return true;
	exchange->heard = now;
	if (!exchange->handler.body(exchange->handler.arg, (struct vd_bytes) { exchange->text.data, size })) {
		exchange->is_paused = true;
		return true;
	}
	if (transport->stepping == NULL)
		return false;
	exchange->text.size -= size;
	memmove(exchange->text.data, exchange->text.data + size, exchange->text.size);
	if (exchange->cut_after != SIZE_MAX)
		exchange->cut_after -= size;
	return true;
}

/* One step; returns when the next one is due, VD_NEVER also if the exchange is gone. */
static vd_mono step(struct kube_peer_exchange *exchange, vd_mono now)
{
	struct kube_peer_transport *transport = exchange->transport;
	struct kube_peer	   *peer = transport->peer;
	vd_mono			    due = VD_NEVER;

	if (exchange->ready_at.ns > now.ns)
		return exchange->ready_at;
	if (exchange->is_cut || exchange->cut_at.ns <= now.ns ||
	    (!exchange->is_silent && exchange->cut_after == 0)) {
		end(exchange, VD_UNAVAILABLE, "the connection was cut");
		return VD_NEVER;
	}
	if (exchange->deadline.ns <= now.ns ||
	    (exchange->silence_max.ns &&
	     vd_mono_since(now, exchange->heard).ns >= exchange->silence_max.ns)) {
		end(exchange, VD_TIMEOUT, "the server is silent");
		return VD_NEVER;
	}
	due.ns = VDI_MIN(exchange->deadline.ns, exchange->cut_at.ns);
	if (exchange->silence_max.ns)
		due.ns = VDI_MIN(due.ns, vd_mono_add(exchange->heard, exchange->silence_max).ns);
	if (exchange->is_silent && exchange->cut_after == 0)
		return due;
	if (!exchange->is_answered) {
		pthread_mutex_lock(&peer->mutex);
		kube_peer_answer(exchange, now);
		pthread_mutex_unlock(&peer->mutex);
	}
	if (!exchange->has_head && !send_head(exchange))
		return VD_NEVER;
	if (exchange->is_paused)
		return due;
	if (exchange->is_watch && !exchange->is_complete) {
		pthread_mutex_lock(&peer->mutex);
		due.ns = VDI_MIN(due.ns, kube_peer_watch_step(exchange, now).ns);
		pthread_mutex_unlock(&peer->mutex);
	}
	if (exchange->text.size && !send_chunk(exchange, now))
		return VD_NEVER;
	if (exchange->text.size == 0 && exchange->is_complete) {
		end(exchange, VD_OK, "");
		return VD_NEVER;
	}
	if (exchange->text.size) {
		exchange->ready_at = vd_mono_add(now, random_delay(peer, 2000));
		return exchange->ready_at;
	}
	return due;
}

static struct kube_peer_exchange *next_exchange(struct kube_peer_transport *transport)
{
	struct kube_peer_exchange *exchange;

	TAILQ_FOREACH(exchange, &transport->exchanges, node)
	{
		if (exchange->round != transport->round)
			return exchange;
	}
	return NULL;
}

static void run_transport(void *arg)
{
	struct kube_peer_transport *transport = arg;
	struct kube_peer_exchange  *exchange;
	vd_mono			    due, now;

	if (transport->is_closing)
		return;
	now = vd_env_now(transport->peer->env);
	due = transport->options.run(transport->options.arg);
	transport->round++;
	while (!transport->is_closing && (exchange = next_exchange(transport)) != NULL) {
		exchange->round = transport->round;
		transport->stepping = exchange;
		due.ns = VDI_MIN(due.ns, step(exchange, now).ns);
		transport->stepping = NULL;
	}
	/* A handler may have started an exchange, or woken a member: those wake the actor. */
	if (!transport->is_closing)
		vd_actor_set_timer(transport->actor, due);
}

/* ---- The transport ---- */

static struct kube_peer_transport *transport_of(struct vdi_kube_transport *base)
{
	return (struct kube_peer_transport *) base;
}

static vd_status start(struct vdi_kube_transport *base, const struct vdi_kube_http_request *request,
		       const struct vdi_kube_handler *handler, struct vdi_kube_exchange **ret_exchange,
		       struct vd_error *reterr)
{
	struct kube_peer_transport *transport = transport_of(base);
	struct kube_peer_exchange  *exchange;
	void			   *probe = vdi_alloc(sizeof *exchange); /* fails on demand */
	vd_mono			    now = vd_env_now(transport->peer->env);

	if (probe == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	vdi_free(probe);
	exchange = calloc(1, sizeof *exchange);
	VDI_CHECK(exchange);
	exchange->base.transport = base;
	exchange->transport = transport;
	exchange->handler = *handler;
	exchange->method = strdup(request->method);
	exchange->path = strdup(request->path);
	exchange->token = request->token ? strdup(request->token) : NULL;
	if (request->body.size)
		kube_peer_append(&exchange->body, "%.*s", (int) request->body.size,
				 (const char *) request->body.data);
	exchange->heard = now;
	exchange->ready_at = vd_mono_add(now, random_delay(transport->peer, 5000));
	exchange->deadline = request->timeout.ns ? vd_mono_add(now, request->timeout) : VD_NEVER;
	exchange->silence_max = request->silence_max;
	draw_faults(exchange, now);
	pthread_mutex_lock(&transport->peer->mutex);
	TAILQ_INSERT_TAIL(&transport->exchanges, exchange, node);
	pthread_mutex_unlock(&transport->peer->mutex);
	vd_actor_wake(transport->actor);
	*ret_exchange = &exchange->base;
	return VD_OK;
}

static void cancel(struct vdi_kube_exchange *base)
{
	free_exchange((struct kube_peer_exchange *) base);
}

static void resume(struct vdi_kube_exchange *base)
{
	struct kube_peer_exchange *exchange = (struct kube_peer_exchange *) base;

	exchange->is_paused = false;
	vd_actor_wake(exchange->transport->actor);
}

static vd_status configure(struct vdi_kube_transport *base, const struct vdi_kube_tls *tls,
			   struct vd_error *reterr)
{
	return VD_OK;
}

static void wake(struct vdi_kube_transport *base)
{
	vd_actor_wake(transport_of(base)->actor);
}

struct closing {
	struct kube_peer_transport *transport;
	void (*done)(void *arg);
	void *arg;
};

static void on_closed(void *arg)
{
	struct closing		    *closing = arg, copy = *closing;
	struct kube_peer_transport **place = &copy.transport->peer->transports;

	pthread_mutex_lock(&copy.transport->peer->mutex);
	while (*place != copy.transport)
		place = &(*place)->next;
	*place = copy.transport->next;
	pthread_mutex_unlock(&copy.transport->peer->mutex);
	free(copy.transport);
	free(closing);
	copy.done(copy.arg);
}

static void close_transport(struct vdi_kube_transport *base, void (*done)(void *arg), void *arg)
{
	struct kube_peer_transport *transport = transport_of(base);
	struct closing		   *closing = calloc(1, sizeof *closing);

	VDI_CHECK(closing && TAILQ_EMPTY(&transport->exchanges));
	*closing = (struct closing) { transport, done, arg };
	transport->is_closing = true;
	vd_actor_close(transport->actor, on_closed, closing);
}

static const struct vdi_kube_transport_ops ops = {
	.start = start,
	.cancel = cancel,
	.resume = resume,
	.configure = configure,
	.wake = wake,
	.close = close_transport,
};

vd_status kube_peer_transport_new(const struct vdi_kube_transport_options *options,
				  struct vdi_kube_transport **ret_transport, struct vd_error *reterr)
{
	struct kube_peer	   *peer = kube_peer_of(options->env);
	struct kube_peer_transport *transport;
	struct vd_actor_options	    actor = { .name = "kube peer", .run = run_transport };
	vd_status		    status;

	VDI_CHECK(peer);
	transport = calloc(1, sizeof *transport);
	VDI_CHECK(transport);
	transport->base.ops = &ops;
	transport->peer = peer;
	transport->options = *options;
	TAILQ_INIT(&transport->exchanges);
	actor.arg = transport;
	status = vd_actor_new(peer->env, &actor, &transport->actor);
	if (status != VD_OK) {
		free(transport);
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	pthread_mutex_lock(&peer->mutex);
	transport->next = peer->transports;
	peer->transports = transport;
	pthread_mutex_unlock(&peer->mutex);
	vd_actor_wake(transport->actor);
	*ret_transport = &transport->base;
	return VD_OK;
}
