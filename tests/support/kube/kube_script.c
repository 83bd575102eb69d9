/* An actor delivers what is due; exchanges are in the order of their start. */
#include "kube_script.h"

#include <stdio.h>
#include <sys/queue.h>

#include "vdtest.h"

struct exchange;

struct transport {
	struct vdi_kube_transport base;
	struct kube_script	 *script;
	const struct vd_env	 *env;
	vd_mono (*run)(void *arg);
	void		*arg;
	struct vd_actor *actor;
	bool		 is_woken, is_closed;
	vd_mono		 due;
	TAILQ_HEAD(, exchange) exchanges;
	void (*closed)(void *arg);
	void *closed_arg;
};

struct exchange {
	struct vdi_kube_exchange  base;
	struct transport	 *owner;
	struct vdi_kube_handler	  handler;
	struct kube_script_answer answer; /* holds, without a code: after the script */
	vd_mono			  due, deadline;
	struct vd_bytes		  left;
	bool			  has_head, is_paused, is_canceled;
	TAILQ_ENTRY(exchange) node;
};

static struct kube_script *current;

void kube_script_use(struct kube_script *script)
{
	current = script;
}

static struct transport *transport_of(struct vdi_kube_transport *base)
{
	return VDI_CONTAINER_OF(base, struct transport, base);
}

static void record(struct kube_script *script, const struct vdi_kube_http_request *request)
{
	struct kube_script_request *seen = &script->requests[script->request_count];

	assert_true(script->request_count < KUBE_SCRIPT_REQUESTS_MAX);
	script->request_count++;
	snprintf(seen->method, sizeof seen->method, "%s", request->method);
	snprintf(seen->path, sizeof seen->path, "%s", request->path);
	snprintf(seen->token, sizeof seen->token, "%s", request->token ? request->token : "");
	snprintf(seen->accept, sizeof seen->accept, "%s", request->accept ? request->accept : "");
	snprintf(seen->content_type, sizeof seen->content_type, "%s",
		 request->content_type ? request->content_type : "");
	snprintf(seen->body, sizeof seen->body, "%.*s", (int) request->body.size,
		 request->body.size ? (const char *) request->body.data : "");
	seen->timeout = request->timeout;
	seen->at = vd_env_now(script->env);
}

static vd_status start(struct vdi_kube_transport *base, const struct vdi_kube_http_request *request,
		       const struct vdi_kube_handler *handler, struct vdi_kube_exchange **ret_exchange,
		       struct vd_error *reterr)
{
	struct transport   *transport = transport_of(base);
	struct kube_script *script = transport->script;
	struct exchange	   *exchange;
	vd_status	    status = script->start_status;

	script->start_status = VD_OK;
	if (status != VD_OK)
		return vd_error_set(reterr, status, "scripted");
	exchange = VDI_NEW(struct exchange);
	if (exchange == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	record(script, request);
	exchange->base.transport = base;
	exchange->owner = transport;
	exchange->handler = *handler;
	exchange->answer = script->next < script->count ? script->answers[script->next++] :
							  (struct kube_script_answer) { .holds = true };
	exchange->left = vd_bytes_of(exchange->answer.body);
	exchange->due = vd_mono_add(vd_env_now(transport->env), exchange->answer.delay);
	exchange->deadline =
		request->timeout.ns ? vd_mono_add(vd_env_now(transport->env), request->timeout) : VD_NEVER;
	TAILQ_INSERT_TAIL(&transport->exchanges, exchange, node);
	script->open++;
	transport->is_woken = true;
	vd_actor_wake(transport->actor);
	*ret_exchange = &exchange->base;
	return VD_OK;
}

static void exchange_free(struct exchange *exchange)
{
	exchange->owner->script->open--;
	TAILQ_REMOVE(&exchange->owner->exchanges, exchange, node);
	vdi_free(exchange);
}

static void cancel(struct vdi_kube_exchange *base)
{
	struct exchange *exchange = VDI_CONTAINER_OF(base, struct exchange, base);

	exchange->is_canceled = true;
	vd_actor_wake(exchange->owner->actor);
}

static void resume(struct vdi_kube_exchange *base)
{
	struct exchange *exchange = VDI_CONTAINER_OF(base, struct exchange, base);

	exchange->is_paused = false;
	vd_actor_wake(exchange->owner->actor);
}

static vd_status configure(struct vdi_kube_transport *base, const struct vdi_kube_tls *tls,
			   struct vd_error *reterr)
{
	struct kube_script *script = transport_of(base)->script;

	(void) reterr;
	script->configured++;
	snprintf(script->ca, sizeof script->ca, "%.*s", (int) tls->ca.size,
		 tls->ca.size ? (const char *) tls->ca.data : "");
	snprintf(script->cert, sizeof script->cert, "%.*s", (int) tls->cert.size,
		 tls->cert.size ? (const char *) tls->cert.data : "");
	snprintf(script->server_name, sizeof script->server_name, "%s",
		 tls->server_name ? tls->server_name : "");
	return VD_OK;
}

static void wake(struct vdi_kube_transport *base)
{
	transport_of(base)->is_woken = true;
	vd_actor_wake(transport_of(base)->actor);
}

static void end(struct exchange *exchange, vd_status status)
{
	struct vdi_kube_handler handler = exchange->handler;
	struct vd_error		error = { 0 };

	if (status != VD_OK)
		(void) vd_error_set(&error, status, "scripted end: %s", vd_status_name(status));
	exchange_free(exchange);
	handler.ended(handler.arg, status, &error);
}

static void deliver(struct exchange *exchange)
{
	struct vdi_kube_head head = { .code = exchange->answer.code,
				      .retry_after_s = exchange->answer.retry_after_s,
				      .content_type = vd_bytes_of("application/json") };

	if (!exchange->has_head && head.code) {
		exchange->has_head = true;
		exchange->handler.head(exchange->handler.arg, &head);
	}
	if (!exchange->is_canceled && exchange->left.size) {
		exchange->is_paused = !exchange->handler.body(exchange->handler.arg, exchange->left);
		if (!exchange->is_paused)
			exchange->left.size = 0;
	}
	if (!exchange->is_canceled && !exchange->is_paused && !exchange->answer.holds)
		end(exchange, exchange->answer.status);
}

static bool step(struct transport *transport)
{
	vd_mono		 now = vd_env_now(transport->env);
	struct exchange *exchange;

	TAILQ_FOREACH(exchange, &transport->exchanges, node)
	{
		bool is_due = exchange->due.ns <= now.ns && !exchange->is_paused &&
			      (exchange->answer.code ?
				       !exchange->has_head || exchange->left.size || !exchange->answer.holds :
				       !exchange->answer.holds);

		if (exchange->is_canceled)
			exchange_free(exchange);
		else if (exchange->deadline.ns <= now.ns)
			end(exchange, VD_TIMEOUT);
		else if (is_due)
			deliver(exchange);
		else
			continue;
		return true;
	}
	return false;
}

static void transport_run(void *arg)
{
	struct transport *transport = arg;
	struct exchange	 *exchange;
	vd_mono		  due;

	if (transport->is_closed)
		return;
	while (step(transport))
		continue;
	while (!transport->is_closed &&
	       (transport->is_woken || transport->due.ns <= vd_env_now(transport->env).ns)) {
		transport->is_woken = false;
		transport->due = transport->run(transport->arg);
		while (step(transport))
			continue;
	}
	if (transport->is_closed)
		return;
	due = transport->due;
	TAILQ_FOREACH(exchange, &transport->exchanges, node)
	{
		if (exchange->deadline.ns < due.ns)
			due = exchange->deadline;
		if (exchange->due.ns > vd_env_now(transport->env).ns && exchange->due.ns < due.ns)
			due = exchange->due;
	}
	vd_actor_set_timer(transport->actor, due);
}

static void on_closed(void *arg)
{
	struct transport *transport = arg;
	void (*closed)(void *closed_arg) = transport->closed;
	void *closed_arg = transport->closed_arg;

	while (!TAILQ_EMPTY(&transport->exchanges)) {
		assert_true(TAILQ_FIRST(&transport->exchanges)->is_canceled);
		exchange_free(TAILQ_FIRST(&transport->exchanges));
	}
	vdi_free(transport);
	closed(closed_arg);
}

static void close_transport(struct vdi_kube_transport *base, void (*done)(void *arg), void *arg)
{
	struct transport *transport = transport_of(base);

	transport->is_closed = true;
	transport->closed = done;
	transport->closed_arg = arg;
	vd_actor_close(transport->actor, on_closed, transport);
}

static const struct vdi_kube_transport_ops ops = { start, cancel, resume, configure, wake, close_transport };

vd_status kube_script_transport_new(const struct vdi_kube_transport_options *options,
				    struct vdi_kube_transport **ret_transport, struct vd_error *reterr)
{
	struct transport       *transport = VDI_NEW(struct transport);
	struct vd_actor_options actor = { .name = "kube_script", .run = transport_run, .arg = transport };
	vd_status		status = VD_NOMEM;

	if (transport) {
		transport->base.ops = &ops;
		transport->script = current;
		transport->env = options->env;
		transport->run = options->run;
		transport->arg = options->arg;
		transport->is_woken = true;
		transport->due = VD_NEVER;
		TAILQ_INIT(&transport->exchanges);
		status = vd_actor_new(options->env, &actor, &transport->actor);
	}
	if (status != VD_OK) {
		vdi_free(transport);
		return vd_error_set(reterr, status, "out of memory");
	}
	*ret_transport = &transport->base;
	vd_actor_wake(transport->actor);
	return VD_OK;
}
