/* One run of the actor:
 *
 *   run (the client)  if it was woken or is due: starts, cancels and resumes exchanges, which are noted in
 *                     the list todo, because libcurl allows none of it inside its own calls
 *   todo, waiting     frees canceled exchanges, delivers held bytes; adds handles to libcurl
 *   perform           libcurl reads and writes; heads and bodies go straight to the handlers
 *   ends, timers      ended is called
 *   poll              sleeps until a socket is ready, a timer is due, or another thread wakes
 *
 * An HTTP/2 connection takes a limited number of exchanges (100 at a kube-apiserver). libcurl would open
 * one connection for each exchange that finds it full while the next one is not ready yet; therefore many
 * exchanges connect one after the other.
 *
 * A handler that refuses bytes does not stop its connection at once: the bytes are held, up to a bound.
 * Beyond it libcurl pauses the exchange. Until libcurl 8 that stops all exchanges of the same HTTP/2
 * connection as soon as more arrives for the paused one, so silence of these is not judged meanwhile. */
#include "kube_curl_state.h"

#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>

#include "actor_threads.h"

#define WAIT_MAX VD_SECONDS(60)
#define FIELD_MAX ((size_t) 16 << 10)
#define IDLE_MAX VD_SECONDS(75) /* servers send bookmarks each minute */

static void wake(struct vdi_kube_transport *base)
{
	struct vdi_curl_transport *transport = VDI_CONTAINER_OF(base, struct vdi_curl_transport, transport);

	/* The actor sets is_waiting before it reads is_woken. */
	if (!atomic_exchange(&transport->is_woken, true) && atomic_load(&transport->is_waiting))
		(void) curl_multi_wakeup(transport->multi);
}

/* ---- Exchanges ---- */

static void add_todo(struct vdi_curl_exchange *exchange)
{
	if (exchange->is_in_todo)
		return;
	exchange->is_in_todo = true;
	exchange->owner->todo_count++;
	TAILQ_INSERT_TAIL(&exchange->owner->todo, exchange, todo_node);
}

static void remove_todo(struct vdi_curl_exchange *exchange)
{
	if (!exchange->is_in_todo)
		return;
	exchange->is_in_todo = false;
	exchange->owner->todo_count--;
	TAILQ_REMOVE(&exchange->owner->todo, exchange, todo_node);
}

static void set_paused(struct vdi_curl_exchange *exchange, bool is_paused)
{
	if (exchange->is_paused == is_paused)
		return;
	exchange->is_paused = is_paused;
	exchange->owner->paused_count += is_paused ? 1 : (size_t) -1;
}

static void set_waiting(struct vdi_curl_exchange *exchange, bool is_waiting)
{
	if (is_waiting && !exchange->is_waiting)
		TAILQ_INSERT_TAIL(&exchange->owner->waiting, exchange, waiting_node);
	else if (!is_waiting && exchange->is_waiting)
		TAILQ_REMOVE(&exchange->owner->waiting, exchange, waiting_node);
	exchange->is_waiting = is_waiting;
}

/* Not inside a function of libcurl. */
static void remove_handle(struct vdi_curl_exchange *exchange)
{
	if (!exchange->is_added)
		return;
	curl_multi_remove_handle(exchange->owner->multi, exchange->easy);
	exchange->is_added = false;
	if (exchange->is_connected)
		exchange->owner->connected_count--;
	else
		exchange->owner->connecting_count--;
}

static void exchange_free(struct vdi_curl_exchange *exchange)
{
	remove_todo(exchange);
	set_waiting(exchange, false);
	set_paused(exchange, false);
	LIST_REMOVE(exchange, node);
	vdi_timer_heap_remove(&exchange->owner->timers, &exchange->timer);
	remove_handle(exchange);
	if (exchange->easy)
		curl_easy_cleanup(exchange->easy);
	curl_slist_free_all(exchange->headers);
	curl_slist_free_all(exchange->connect_to);
	vdi_buffer_fini(&exchange->content_type);
	vdi_buffer_fini(&exchange->warning);
	vdi_buffer_fini(&exchange->location);
	vdi_buffer_fini(&exchange->held);
	vdi_free(exchange);
}

static void finish(struct vdi_curl_exchange *exchange, vd_status status, const char *message)
{
	struct vdi_kube_handler handler = exchange->handler;
	struct vd_error		error = { 0 };

	if (status != VD_OK)
		(void) vd_error_set(&error, status, "%s: %s", exchange->owner->server, message);
	exchange_free(exchange);
	handler.ended(handler.arg, status, &error);
}

/* Handles the end of the transfer, unless bytes are held: they are delivered first. */
static void end(struct vdi_curl_exchange *exchange)
{
	vd_status   status = exchange->failure;
	const char *message = exchange->reason[0] ? exchange->reason : curl_easy_strerror(exchange->result);

	if (exchange->is_canceled) {
		exchange_free(exchange);
		return;
	}
	if (status == VD_OK && exchange->held.size)
		return;
	if (status == VD_OK && exchange->result == CURLE_OK && !exchange->has_head)
		finish(exchange, VD_UNAVAILABLE, "the response has no head");
	else if (status == VD_OK && exchange->result == CURLE_OK)
		finish(exchange, VD_OK, NULL);
	else if (status != VD_OK)
		finish(exchange, status,
		       status == VD_TOO_BIG ? "the head of the response is too long" :
					      vd_status_sentence(status));
	else
		finish(exchange, exchange->result == CURLE_OUT_OF_MEMORY ? VD_NOMEM : VD_UNAVAILABLE,
		       message);
}

/* ---- Functions that libcurl calls ---- */

static size_t stop(struct vdi_curl_exchange *exchange, vd_status status)
{
	exchange->failure = status;
	return 0;
}

static bool is_field(const char *line, size_t size, const char *name)
{
	size_t length = strlen(name);

	return size > length && strncasecmp(line, name, length) == 0;
}

static void append_value(struct vdi_buffer *buffer, const char *line, size_t size, size_t name_size)
{
	line += name_size;
	for (size -= name_size; size && (*line == ' ' || *line == '\t'); size--)
		line++;
	while (size && (unsigned char) line[size - 1] <= ' ')
		size--;
	if (buffer->size)
		vdi_buffer_append_char(buffer, '\n');
	vdi_buffer_append(buffer, (struct vd_bytes) { line, size });
}

static void deliver_head(struct vdi_curl_exchange *exchange, int code)
{
	struct vdi_kube_head head = { .code = code };
	curl_off_t	     seconds = 0;

	curl_easy_getinfo(exchange->easy, CURLINFO_RETRY_AFTER, &seconds);
	head.retry_after_s = seconds > 0 ? (unsigned) VDI_MIN(seconds, (curl_off_t) 86400) : 0;
	head.content_type = vdi_buffer_bytes(&exchange->content_type);
	head.warning = vdi_buffer_bytes(&exchange->warning);
	if (code >= 300 && code < 400)
		vdi_curl_set_location(head.location, vdi_buffer_bytes(&exchange->location));
	exchange->has_head = true;
	exchange->heard = vd_env_now(exchange->owner->env);
	exchange->handler.head(exchange->handler.arg, &head);
}

static size_t on_header(char *line, size_t one, size_t size, void *arg)
{
	struct vdi_curl_exchange *exchange = arg;
	long			  code = 0;

	(void) one;
	if (exchange->is_canceled)
		return 0;
	exchange->head_size += size;
	if (exchange->head_size > VDI_KUBE_HEAD_MAX)
		return stop(exchange, VD_TOO_BIG);
	if (exchange->has_head)
		return size; /* trailers */
	if (is_field(line, size, "HTTP/")) {
		vdi_buffer_clear(&exchange->content_type);
		vdi_buffer_clear(&exchange->warning);
		vdi_buffer_clear(&exchange->location);
	} else if (is_field(line, size, "content-type:"))
		append_value(&exchange->content_type, line, size, strlen("content-type:"));
	else if (is_field(line, size, "warning:"))
		append_value(&exchange->warning, line, size, strlen("warning:"));
	else if (is_field(line, size, "location:"))
		append_value(&exchange->location, line, size, strlen("location:"));
	else if (size <= 2 && (*line == '\r' || *line == '\n')) {
		curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &code);
		if (code >= 200)
			deliver_head(exchange, (int) code);
	}
	return exchange->is_canceled ? 0 : size;
}

/* False: out of memory. */
static bool hold(struct vdi_curl_exchange *exchange, const char *data, size_t size)
{
	vdi_buffer_append(&exchange->held, (struct vd_bytes) { data, size });
	if (vdi_buffer_status(&exchange->held) == VD_OK)
		return true;
	exchange->failure = VD_NOMEM;
	return false;
}

static size_t on_body(char *data, size_t one, size_t size, void *arg)
{
	struct vdi_curl_exchange *exchange = arg;
	bool			  is_taken = false;

	(void) one;
	if (exchange->is_canceled)
		return size ? 0 : 1; /* not equal to size */
	exchange->heard = vd_env_now(exchange->owner->env);
	if (size == 0)
		return 0;
	if (exchange->held.size == 0)
		is_taken = exchange->handler.body(exchange->handler.arg, (struct vd_bytes) { data, size });
	else if (exchange->held.size + size > VDI_KUBE_HELD_MAX) {
		set_paused(exchange, true);
		return CURL_WRITEFUNC_PAUSE;
	}
	if (exchange->is_canceled)
		return 0;
	return is_taken || hold(exchange, data, size) ? size : 0;
}

/* The exchange has a connection, and its request is sent next. */
static int on_connected(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct vdi_curl_exchange *exchange = arg;

	(void) ip;
	(void) local_ip;
	(void) port;
	(void) local_port;
	if (!exchange->is_connected) {
		exchange->is_connected = true;
		exchange->owner->connecting_count--;
		exchange->owner->connected_count++;
	}
	return CURL_PREREQFUNC_OK;
}

/* ---- Operations ---- */

static void set_timer(struct vdi_curl_exchange *exchange)
{
	vd_mono due = exchange->deadline;

	if (exchange->silence_max.ns) {
		vd_mono silent = vd_mono_add(exchange->heard, exchange->silence_max);

		due = silent.ns < due.ns ? silent : due;
	}
	vdi_timer_heap_set(&exchange->owner->timers, &exchange->timer, due);
}

static void set_functions(struct vdi_curl_exchange *exchange)
{
	curl_easy_setopt(exchange->easy, CURLOPT_PRIVATE, exchange);
	curl_easy_setopt(exchange->easy, CURLOPT_ERRORBUFFER, exchange->reason);
	curl_easy_setopt(exchange->easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(exchange->easy, CURLOPT_HEADERDATA, exchange);
	curl_easy_setopt(exchange->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(exchange->easy, CURLOPT_WRITEDATA, exchange);
	curl_easy_setopt(exchange->easy, CURLOPT_PREREQFUNCTION, on_connected);
	curl_easy_setopt(exchange->easy, CURLOPT_PREREQDATA, exchange);
}

static vd_status start(struct vdi_kube_transport *base, const struct vdi_kube_http_request *request,
		       const struct vdi_kube_handler *handler, struct vdi_kube_exchange **ret_exchange,
		       struct vd_error *reterr)
{
	struct vdi_curl_transport *transport = VDI_CONTAINER_OF(base, struct vdi_curl_transport, transport);
	struct vdi_curl_exchange  *exchange = VDI_NEW(struct vdi_curl_exchange);
	vd_status		   status = VD_NOMEM;

	if (exchange == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	exchange->exchange.transport = base;
	exchange->owner = transport;
	exchange->handler = *handler;
	exchange->timeout = request->timeout;
	exchange->silence_max = request->silence_max;
	exchange->heard = vd_env_now(transport->env);
	exchange->deadline = request->timeout.ns ? vd_mono_add(exchange->heard, request->timeout) : VD_NEVER;
	vdi_buffer_init(&exchange->content_type, FIELD_MAX);
	vdi_buffer_init(&exchange->warning, FIELD_MAX);
	vdi_buffer_init(&exchange->location, FIELD_MAX);
	vdi_buffer_init(&exchange->held, SIZE_MAX / 2);
	LIST_INSERT_HEAD(&transport->exchanges, exchange, node);
	exchange->easy = curl_easy_init();
	if (exchange->easy)
		status = vdi_curl_set_up(exchange, request, reterr);
	if (status != VD_OK) {
		exchange_free(exchange);
		return status == VD_NOMEM ? vd_error_set(reterr, VD_NOMEM, "out of memory") : status;
	}
	set_functions(exchange);
	set_timer(exchange);
	set_waiting(exchange, true);
	*ret_exchange = &exchange->exchange;
	return VD_OK;
}

static void cancel(struct vdi_kube_exchange *base)
{
	struct vdi_curl_exchange *exchange = VDI_CONTAINER_OF(base, struct vdi_curl_exchange, exchange);

	exchange->is_canceled = true;
	add_todo(exchange);
}

static void resume(struct vdi_kube_exchange *base)
{
	struct vdi_curl_exchange *exchange = VDI_CONTAINER_OF(base, struct vdi_curl_exchange, exchange);

	exchange->is_resumed = true;
	add_todo(exchange);
}

/* ---- The actor ---- */

static void deliver_held(struct vdi_curl_exchange *exchange)
{
	exchange->is_resumed = false;
	exchange->heard = vd_env_now(exchange->owner->env);
	if (exchange->held.size) {
		if (!exchange->handler.body(exchange->handler.arg, vdi_buffer_bytes(&exchange->held)))
			return;
		vdi_buffer_clear(&exchange->held);
	}
	if (exchange->is_canceled)
		return; /* it is in todo again */
	if (exchange->is_paused) {
		set_paused(exchange, false);
		curl_easy_pause(exchange->easy, CURLPAUSE_CONT);
	}
	if (exchange->is_ended)
		end(exchange);
}

static void do_todo(struct vdi_curl_transport *transport)
{
	struct vdi_curl_exchange *exchange;
	size_t			  left;

	for (left = transport->todo_count; left && (exchange = TAILQ_FIRST(&transport->todo)) != NULL;
	     left--) {
		remove_todo(exchange);
		if (exchange->is_canceled)
			exchange_free(exchange);
		else if (exchange->is_resumed)
			deliver_held(exchange);
	}
}

static void add_waiting(struct vdi_curl_transport *transport)
{
	struct vdi_curl_exchange *exchange;

	while ((exchange = TAILQ_FIRST(&transport->waiting)) != NULL) {
		if (transport->connecting_count &&
		    transport->connecting_count + transport->connected_count >= VDI_KUBE_CONNECT_AT_ONCE)
			return;
		set_waiting(exchange, false);
		exchange->is_added = curl_multi_add_handle(transport->multi, exchange->easy) == CURLM_OK;
		if (exchange->is_added)
			transport->connecting_count++;
		else
			finish(exchange, VD_NOMEM, "out of memory");
	}
}

static void take_ends(struct vdi_curl_transport *transport)
{
	CURLMsg *message;
	int	 left;

	while ((message = curl_multi_info_read(transport->multi, &left)) != NULL) {
		struct vdi_curl_exchange *exchange = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **) &exchange);
		exchange->result = message->data.result;
		exchange->is_ended = true;
		remove_handle(exchange);
		end(exchange);
	}
}

static void time_out(struct vdi_curl_exchange *exchange, vd_mono now)
{
	vd_mono since = { now.ns - exchange->silence_max.ns };
	char	text[80];

	if (exchange->deadline.ns <= now.ns) {
		/* A slow response does not cut watches whose connection is only idle. */
		since.ns = now.ns - VDI_MAX(exchange->timeout.ns, IDLE_MAX.ns);
		snprintf(text, sizeof text, "no complete response within %.3g s",
			 (double) exchange->timeout.ns / 1e9);
	} else if (exchange->held.size || vdi_curl_is_stopped(exchange)) {
		exchange->heard = now;
		set_timer(exchange);
		return;
	} else if (exchange->heard.ns > since.ns) {
		set_timer(exchange);
		return;
	} else
		snprintf(text, sizeof text, "nothing was received for %.3g s",
			 (double) exchange->silence_max.ns / 1e9);
	vdi_curl_drop_dead(exchange, since);
	finish(exchange, VD_TIMEOUT, text);
}

static void fire_timers(struct vdi_curl_transport *transport)
{
	vd_mono		  now = vd_env_now(transport->env);
	struct vdi_timer *timer;

	while ((timer = vdi_timer_heap_pop_due(&transport->timers, now)) != NULL) {
		struct vdi_curl_exchange *exchange = VDI_CONTAINER_OF(timer, struct vdi_curl_exchange, timer);

		if (!exchange->is_canceled)
			time_out(exchange, now);
	}
}

static void run_client(struct vdi_curl_transport *transport)
{
	bool is_woken = atomic_exchange(&transport->is_woken, false);

	if (is_woken || transport->due.ns <= vd_env_now(transport->env).ns)
		transport->due = transport->run(transport->arg);
}

/* Sleeps; libcurl wakes for its own timers. */
static void wait_for_input(struct vdi_curl_transport *transport)
{
	vd_mono now = vd_env_now(transport->env), due = vd_mono_add(now, WAIT_MAX);
	int	timeout_ms = 0;

	due.ns = VDI_MIN(due.ns, transport->due.ns);
	due.ns = VDI_MIN(due.ns, vdi_timer_heap_next_due(&transport->timers).ns);
	atomic_store(&transport->is_waiting, true);
	if (!atomic_load(&transport->is_woken) && transport->todo_count == 0 && due.ns > now.ns)
		timeout_ms = (int) ((due.ns - now.ns) / 1000000) + 1;
	(void) curl_multi_poll(transport->multi, NULL, 0, timeout_ms, NULL);
	atomic_store(&transport->is_waiting, false);
	transport->has_slept = timeout_ms > 0;
}

static void curl_run(void *arg)
{
	struct vdi_curl_transport *transport = arg;
	bool			   has_slept = transport->has_slept;
	int			   running;

	if (transport->is_closed)
		return;
	if (has_slept)
		vdi_actor_lend_begin();
	(void) curl_multi_perform(transport->multi, &running); /* failures are in the messages */
	take_ends(transport);
	fire_timers(transport);
	run_client(transport);
	do_todo(transport);
	add_waiting(transport);
	if (has_slept)
		vdi_actor_lend_end();
	if (transport->is_closed)
		return;
	wait_for_input(transport);
	vd_actor_wake(transport->actor);
}

/* ---- Lifetime ---- */

static void transport_free(struct vdi_curl_transport *transport)
{
	struct vdi_curl_exchange *exchange;

	while ((exchange = LIST_FIRST(&transport->exchanges)) != NULL) {
		VDI_CHECK(exchange->is_canceled);
		exchange_free(exchange);
	}
	if (transport->multi)
		curl_multi_cleanup(transport->multi);
	vdi_free(transport->server);
	vdi_free(transport->socket_path);
	vdi_free(transport->proxy_url);
	vdi_free(transport->user_agent);
	vdi_free((char *) (uintptr_t) transport->ca.data);
	vdi_free((char *) (uintptr_t) transport->cert.data);
	vdi_free((char *) (uintptr_t) transport->key.data);
	vdi_free(transport->server_name);
	vdi_free(transport);
}

static void on_actor_closed(void *arg)
{
	struct vdi_curl_transport *transport = arg;
	void (*closed)(void *closed_arg) = transport->closed;
	void *closed_arg = transport->closed_arg;

	transport_free(transport);
	if (closed)
		closed(closed_arg);
}

static void close_transport(struct vdi_kube_transport *base, void (*done)(void *arg), void *arg)
{
	struct vdi_curl_transport *transport = VDI_CONTAINER_OF(base, struct vdi_curl_transport, transport);

	transport->closed = done;
	transport->closed_arg = arg;
	transport->is_closed = true;
	vd_actor_close(transport->actor, on_actor_closed, transport);
}

static const struct vdi_kube_transport_ops ops = {
	.start = start,
	.cancel = cancel,
	.resume = resume,
	.configure = vdi_curl_configure_tls,
	.wake = wake,
	.close = close_transport,
};

static vd_status prepare(struct vdi_curl_transport		 *transport,
			 const struct vdi_kube_transport_options *options, struct vd_error *reterr)
{
	const struct vd_actor_options actor = {
		.name = "kube", .run = curl_run, .arg = transport, .blocking = true
	};

	VDI_TRY(vdi_curl_load(reterr));
	VDI_TRY(vdi_curl_configure_server(transport, options, reterr));
	transport->multi = curl_multi_init();
	if (transport->multi == NULL)
		return VD_NOMEM;
	curl_multi_setopt(transport->multi, CURLMOPT_PIPELINING, (long) CURLPIPE_MULTIPLEX);
	curl_multi_setopt(transport->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000L);
	return vd_actor_new(transport->env, &actor, &transport->actor);
}

vd_status vdi_kube_curl_new(const struct vdi_kube_transport_options *options,
			    struct vdi_kube_transport **ret_transport, struct vd_error *reterr)
{
	struct vdi_curl_transport *transport = VDI_NEW(struct vdi_curl_transport);
	vd_status		   status;

	if (transport == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	transport->transport.ops = &ops;
	transport->env = options->env;
	transport->run = options->run;
	transport->arg = options->arg;
	transport->due = VD_NEVER;
	LIST_INIT(&transport->exchanges);
	TAILQ_INIT(&transport->todo);
	TAILQ_INIT(&transport->waiting);
	atomic_init(&transport->is_woken, true);
	status = prepare(transport, options, reterr);
	if (status != VD_OK) {
		transport_free(transport);
		return status == VD_NOMEM || status == VD_FULL ?
			       vd_error_set(reterr, status, "%s", vd_status_sentence(status)) :
			       status;
	}
	*ret_transport = &transport->transport;
	vd_actor_wake(transport->actor);
	return VD_OK;
}
