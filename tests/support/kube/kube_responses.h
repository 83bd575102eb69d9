/* A transport of the Kubernetes client for the simulator whose server follows a script, the rest of a
 * fuzzer's input. Each line is a step; a line that begins with '=' begins the response to one request:
 *
 *   =w  for a watch      =f  for a WatchList      =l  for a list in pages      =c  for a list with limit=1
 *   =i  for kube-system  =o  for one object       =*  for any request
 *
 * A request takes the first response for it that was not taken. Without one it gets an empty, valid answer,
 * and a watch a bookmark of the newest revision. Steps, with words separated by spaces:
 *
 *   H CODE RETRY_AFTER   the head, before everything else; 200 if missing
 *   A|M|D NAME REVISION  an event of a pod     B|b REVISION   a bookmark, with b the end of the initial state
 *   E CODE               an ERROR event        S CODE         a Status object
 *   P REVISION TOKEN     the begin of a page   I NAME REVISION  an item of it     Q   its end
 *   "text"               bytes: a line that begins with a space is sent with its newline, one with '+'
 *                        without
 *   W N                  waits N tenths of a second
 *   O the response ends  X it is cut  T it takes too long  K its head is too long  Z nothing more is sent
 *
 * Requests are counted, and their number has a bound: a client that repeats a request without a pause
 * fails. */
#ifndef KUBE_RESPONSES_H
#define KUBE_RESPONSES_H

#include <stdarg.h>
#include <stdio.h>
#include <sys/queue.h>

#include "env.h"
#include "fuzz.h"
#include "kube_transport.h"

#define SCRIPT_RESPONSES_MAX 64
#define SCRIPT_TEXT_MAX 70000
#define SCRIPT_STEP_DELAY VD_US(100)

struct script_response {
	struct vd_bytes steps;
	char		type;
	bool		is_taken;
};

struct script {
	struct script_response responses[SCRIPT_RESPONSES_MAX];
	size_t		       response_count;
	bool		       is_bytewise; /* one byte for each call of body */
	uint64_t	       requests;
	int64_t		       revision; /* newest one that was sent */
	uint64_t	       lists;	 /* those in pages */
	size_t		       open;	 /* exchanges */
};

static struct script script;

struct script_exchange {
	struct vdi_kube_exchange base;
	TAILQ_ENTRY(script_exchange) node;
	struct script_transport *transport;
	struct vdi_kube_handler	 handler;
	struct vd_bytes		 steps;
	vd_mono			 ready_at, heard, deadline;
	vd_dur			 silence_max;
	uint64_t		 round;
	bool			 has_head, is_paused, is_silent, has_item;
	char			 fallback[256];
	char			*text; /* not sent yet */
	size_t			 text_size, text_sent;
};

struct script_transport {
	struct vdi_kube_transport	  base;
	struct vdi_kube_transport_options options;
	struct vd_actor			 *actor;
	TAILQ_HEAD(, script_exchange) exchanges;
	struct script_exchange *stepping; /* NULL: none, or it was canceled */
	uint64_t		round;
	bool			is_closing;
	void (*closed)(void *arg);
	void *closed_arg;
};

/* ---- Lines ---- */

static struct vd_bytes script_line(struct vd_bytes *rest)
{
	const char     *end = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;
	struct vd_bytes line = { rest->data, end ? (size_t) (end - (const char *) rest->data) : rest->size };
	size_t		used = end ? line.size + 1 : line.size;

	*rest = (struct vd_bytes) { (const char *) rest->data + used, rest->size - used };
	return line;
}

/* Takes the next word of a line. */
static struct vd_bytes script_word(struct vd_bytes *line)
{
	const char     *text = line->data;
	size_t		at = 0, size = 0;
	struct vd_bytes word;

	while (at < line->size && text[at] == ' ')
		at++;
	while (at + size < line->size && text[at + size] != ' ')
		size++;
	word = (struct vd_bytes) { text + at, size };
	*line = (struct vd_bytes) { text + at + size, line->size - at - size };
	return word;
}

static int64_t script_number(struct vd_bytes word)
{
	int64_t number = 0;

	for (size_t i = 0; i < word.size && i < 17; i++) {
		char digit = ((const char *) word.data)[i];

		if (digit < '0' || digit > '9')
			break;
		number = number * 10 + digit - '0';
	}
	return number;
}

static void script_parse(struct vd_bytes input)
{
	struct script_response *response = NULL;

	script.response_count = 0;
	while (input.size) {
		const char     *start = input.data;
		struct vd_bytes line = script_line(&input);

		if (line.size && *start == '=') {
			if (script.response_count == SCRIPT_RESPONSES_MAX)
				return;
			response = &script.responses[script.response_count++];
			*response = (struct script_response) { input, line.size > 1 ? start[1] : '*', false };
			response->steps.size = 0;
		} else if (response) {
			response->steps.size =
				(size_t) ((const char *) input.data - (const char *) response->steps.data);
		}
	}
}

/* ---- Responses ---- */

static char script_type(const struct vdi_kube_http_request *request)
{
	const char *query = strchr(request->path, '?');

	if (strcmp(request->path, "/api/v1/namespaces/kube-system") == 0)
		return 'i';
	if (query == NULL)
		return 'o';
	if (strstr(query, "sendInitialEvents"))
		return 'f';
	if (strstr(query, "watch="))
		return 'w';
	return strstr(query, "limit=1&") || strcmp(query, "?limit=1") == 0 ? 'c' : 'l';
}

static void script_choose(struct script_exchange *exchange, char type)
{
	int64_t revision = VDI_MAX(script.revision, 1);

	script.lists += type == 'l';
	for (size_t i = 0; i < script.response_count; i++) {
		struct script_response *response = &script.responses[i];

		if (response->is_taken || (response->type != type && response->type != '*'))
			continue;
		response->is_taken = true;
		exchange->steps = response->steps;
		return;
	}
	switch (type) {
	case 'i':
		snprintf(exchange->fallback, sizeof exchange->fallback, " {\"metadata\":{\"uid\":\"u\"}}");
		break;
	case 'o':
		snprintf(exchange->fallback, sizeof exchange->fallback,
			 "H 404 0\n {\"kind\":\"Status\",\"code\":404}");
		break;
	case 'f':
		snprintf(exchange->fallback, sizeof exchange->fallback, "b %lld\nZ", (long long) revision);
		break;
	case 'w':
		snprintf(exchange->fallback, sizeof exchange->fallback, "B %lld\nW 20\nB %lld\nZ",
			 (long long) revision, (long long) revision);
		break;
	default: snprintf(exchange->fallback, sizeof exchange->fallback, "P %lld\nQ", (long long) revision);
	}
	exchange->steps = vd_bytes_of(exchange->fallback);
}

static void script_end(struct script_exchange *exchange, vd_status status)
{
	struct script_transport *transport = exchange->transport;
	struct vdi_kube_handler	 handler = exchange->handler;
	struct vd_error		 error = { 0 };

	TAILQ_REMOVE(&transport->exchanges, exchange, node);
	transport->stepping = NULL;
	free(exchange->text);
	free(exchange);
	script.open--;
	if (status != VD_OK)
		(void) vd_error_set(&error, status, "%s", vd_status_sentence(status));
	handler.ended(handler.arg, status, &error);
}

/* False: the exchange is gone. */
static bool script_head(struct script_exchange *exchange, int code, unsigned retry_after_s)
{
	struct vdi_kube_head head = { .code = code,
				      .retry_after_s = retry_after_s,
				      .content_type = vd_bytes_of("application/json") };

	exchange->has_head = true;
	exchange->handler.head(exchange->handler.arg, &head);
	return exchange->transport->stepping != NULL;
}

/* Sends as much of the text as the client takes; false: the exchange is gone. */
static bool script_send(struct script_exchange *exchange, vd_mono now)
{
	struct script_transport *transport = exchange->transport;

	if (!exchange->has_head && !script_head(exchange, 200, 0))
		return false;
	exchange->heard = now;
	while (exchange->text_sent < exchange->text_size) {
		size_t size = script.is_bytewise ? 1 : exchange->text_size - exchange->text_sent;

		if (!exchange->handler.body(
			    exchange->handler.arg,
			    (struct vd_bytes) { exchange->text + exchange->text_sent, size })) {
			exchange->is_paused = true;
			return true;
		}
		if (transport->stepping == NULL)
			return false;
		exchange->text_sent += size;
	}
	return true;
}

static void script_say(struct script_exchange *exchange, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void script_say(struct script_exchange *exchange, const char *format, ...)
{
	va_list arguments;
	int	size;

	if (exchange->text == NULL && (exchange->text = malloc(SCRIPT_TEXT_MAX)) == NULL)
		abort();
	va_start(arguments, format);
	size = vsnprintf(exchange->text, SCRIPT_TEXT_MAX, format, arguments);
	va_end(arguments);
	exchange->text_size = VDI_MIN((size_t) size, (size_t) SCRIPT_TEXT_MAX - 1);
	exchange->text_sent = 0;
}

static void script_object(char *text, size_t size, struct vd_bytes line)
{
	struct vd_bytes name = script_word(&line), revision = script_word(&line);

	script.revision = VDI_MAX(script.revision, script_number(revision));
	snprintf(
		text, size,
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":\"n\",\"name\":\"%.*s\","
		"\"resourceVersion\":\"%.*s\"},\"spec\":{\"nodeName\":\"x\"}}",
		(int) VDI_MIN(name.size, (size_t) 400), (const char *) name.data,
		(int) VDI_MIN(revision.size, (size_t) 40), (const char *) revision.data);
}

static void script_raw(struct script_exchange *exchange, struct vd_bytes line, bool ends)
{
	script_say(exchange, "%s", "");
	exchange->text_size = VDI_MIN(line.size, (size_t) SCRIPT_TEXT_MAX - 1);
	if (exchange->text_size)
		memcpy(exchange->text, line.data, exchange->text_size);
	if (ends)
		exchange->text[exchange->text_size++] = '\n';
}

/* Writes the text of a step; false: it is not one of these. */
static bool script_text(struct script_exchange *exchange, char step, struct vd_bytes line)
{
	static char	object[1024];
	struct vd_bytes first = line, word = script_word(&first), second = script_word(&first);
	int		size = (int) VDI_MIN(word.size, (size_t) 40);

	switch (step) {
	case 'A':
	case 'M':
	case 'D':
		script_object(object, sizeof object, line);
		script_say(exchange, "{\"type\":\"%s\",\"object\":%s}\n",
			   step == 'A' ? "ADDED" :
			   step == 'M' ? "MODIFIED" :
					 "DELETED",
			   object);
		return true;
	case 'B':
	case 'b':
		script.revision = VDI_MAX(script.revision, script_number(word));
		script_say(exchange,
			   "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\","
			   "\"metadata\":"
			   "{\"resourceVersion\":\"%.*s\"%s}}}\n",
			   size, (const char *) word.data,
			   step == 'b' ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
		return true;
	case 'E':
	case 'S':
		script_say(exchange, "%s{\"kind\":\"Status\",\"message\":\"m\",\"code\":%.*s}%s\n",
			   step == 'E' ? "{\"type\":\"ERROR\",\"object\":" : "", size,
			   (const char *) word.data, step == 'E' ? "}" : "");
		return true;
	case 'P':
		script.revision = VDI_MAX(script.revision, script_number(word));
		exchange->has_item = false;
		script_say(exchange,
			   "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%"
			   ".*s\","
			   "\"continue\":\"%.*s\"},\"items\":[",
			   size, (const char *) word.data, (int) VDI_MIN(second.size, (size_t) 40),
			   (const char *) second.data);
		return true;
	case 'I':
		script_object(object, sizeof object, line);
		script_say(exchange, "%s%s", exchange->has_item ? "," : "", object);
		exchange->has_item = true;
		return true;
	case 'Q': script_say(exchange, "]}"); return true;
	case ' ':
	case '+': script_raw(exchange, line, step == ' '); return true;
	default: return false;
	}
}

/* Does one step and sets ready_at. The exchange may be gone afterwards. */
static void script_do(struct script_exchange *exchange, vd_mono now)
{
	struct vd_bytes line, rest;
	char		step;

	if (exchange->steps.size == 0) {
		if (exchange->has_head || script_head(exchange, 200, 0))
			script_end(exchange, VD_OK);
		return;
	}
	rest = line = script_line(&exchange->steps);
	step = line.size ? *(const char *) line.data : 'N';
	if (line.size)
		rest = (struct vd_bytes) { (const char *) line.data + 1, line.size - 1 };
	exchange->ready_at = vd_mono_add(now, SCRIPT_STEP_DELAY);
	if (script_text(exchange, step, rest)) {
		(void) script_send(exchange, now);
		return;
	}
	switch (step) {
	case 'H':
		if (!exchange->has_head) {
			int64_t code = script_number(script_word(&rest)),
				after = script_number(script_word(&rest));

			(void) script_head(exchange, code < 200 || code > 999 ? 200 : (int) code,
					   (unsigned) VDI_MIN(after, 86400));
		}
		break;
	case 'W':
		exchange->ready_at =
			vd_mono_add(now, VD_MS(100 * (VDI_MIN(script_number(script_word(&rest)), 2000) + 1)));
		break;
	case 'O': exchange->steps.size = 0; break;
	case 'X': script_end(exchange, VD_UNAVAILABLE); break;
	case 'T': script_end(exchange, VD_TIMEOUT); break;
	case 'K': script_end(exchange, exchange->has_head ? VD_UNAVAILABLE : VD_TOO_BIG); break;
	case 'Z': exchange->is_silent = true; break;
	default: break;
	}
}

static vd_mono script_step(struct script_exchange *exchange, vd_mono now)
{
	struct script_transport *transport = exchange->transport;
	vd_mono			 due = exchange->deadline;

	if (exchange->silence_max.ns)
		due.ns = VDI_MIN(due.ns, vd_mono_add(exchange->heard, exchange->silence_max).ns);
	if (due.ns <= now.ns) {
		script_end(exchange, VD_TIMEOUT);
		return VD_NEVER;
	}
	if (exchange->is_paused || exchange->is_silent)
		return due;
	if (exchange->ready_at.ns <= now.ns) {
		if (exchange->text_sent < exchange->text_size)
			(void) script_send(exchange, now);
		else
			script_do(exchange, now);
		if (transport->stepping == NULL)
			return VD_NEVER;
	}
	due.ns = VDI_MIN(due.ns, exchange->ready_at.ns);
	return due;
}

/* ---- The transport ---- */

static void script_run(void *arg)
{
	struct script_transport *transport = arg;
	struct script_exchange	*exchange;
	vd_mono			 now = vd_env_now(transport->options.env), due;

	if (transport->is_closing)
		return;
	due = transport->options.run(transport->options.arg);
	transport->round++;
	while (!transport->is_closing) {
		vd_mono next;

		TAILQ_FOREACH(exchange, &transport->exchanges, node)
		if (exchange->round != transport->round)
			break;
		if (exchange == NULL)
			break;
		exchange->round = transport->round;
		transport->stepping = exchange;
		next = script_step(exchange, now);
		transport->stepping = NULL;
		due.ns = VDI_MIN(due.ns, next.ns);
	}
	if (!transport->is_closing)
		vd_actor_set_timer(transport->actor, due);
}

static vd_status script_start(struct vdi_kube_transport *base, const struct vdi_kube_http_request *request,
			      const struct vdi_kube_handler *handler, struct vdi_kube_exchange **ret_exchange,
			      struct vd_error *reterr)
{
	struct script_transport *transport = (struct script_transport *) base;
	struct script_exchange	*exchange;
	void			*probe = vdi_alloc(sizeof *exchange); /* fails on demand */
	vd_mono			 now = vd_env_now(transport->options.env);

	script.requests++;
	if (probe == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	vdi_free(probe);
	exchange = calloc(1, sizeof *exchange);
	if (exchange == NULL)
		abort();
	exchange->base.transport = base;
	exchange->transport = transport;
	exchange->handler = *handler;
	exchange->heard = now;
	exchange->ready_at = vd_mono_add(now, VD_MS(1));
	exchange->deadline = request->timeout.ns ? vd_mono_add(now, request->timeout) : VD_NEVER;
	exchange->silence_max = request->silence_max;
	script_choose(exchange, script_type(request));
	if (getenv("KUBE_LOG"))
		(void) fprintf(stderr, "%.3f %s %s\n%.*s\n", (double) now.ns / 1e9, request->method,
			       request->path, (int) exchange->steps.size,
			       (const char *) exchange->steps.data);
	TAILQ_INSERT_TAIL(&transport->exchanges, exchange, node);
	script.open++;
	vd_actor_wake(transport->actor);
	*ret_exchange = &exchange->base;
	return VD_OK;
}

static void script_cancel(struct vdi_kube_exchange *base)
{
	struct script_exchange	*exchange = (struct script_exchange *) base;
	struct script_transport *transport = exchange->transport;

	TAILQ_REMOVE(&transport->exchanges, exchange, node);
	if (transport->stepping == exchange)
		transport->stepping = NULL;
	free(exchange->text);
	free(exchange);
	script.open--;
}

static void script_resume(struct vdi_kube_exchange *base)
{
	struct script_exchange *exchange = (struct script_exchange *) base;

	exchange->is_paused = false;
	vd_actor_wake(exchange->transport->actor);
}

static vd_status script_configure(struct vdi_kube_transport *base, const struct vdi_kube_tls *tls,
				  struct vd_error *reterr)
{
	(void) base;
	(void) tls;
	(void) reterr;
	return VD_OK;
}

static void script_wake(struct vdi_kube_transport *base)
{
	vd_actor_wake(((struct script_transport *) base)->actor);
}

static void script_closed(void *arg)
{
	struct script_transport *transport = arg, copy = *transport;

	free(transport);
	copy.closed(copy.closed_arg);
}

static void script_close(struct vdi_kube_transport *base, void (*done)(void *arg), void *arg)
{
	struct script_transport *transport = (struct script_transport *) base;

	VDI_CHECK(TAILQ_EMPTY(&transport->exchanges));
	transport->closed = done;
	transport->closed_arg = arg;
	transport->is_closing = true;
	vd_actor_close(transport->actor, script_closed, transport);
}

static vd_status script_transport_new(const struct vdi_kube_transport_options *options,
				      struct vdi_kube_transport **ret_transport, struct vd_error *reterr)
{
	static const struct vdi_kube_transport_ops ops = {
		.start = script_start,
		.cancel = script_cancel,
		.resume = script_resume,
		.configure = script_configure,
		.wake = script_wake,
		.close = script_close,
	};
	struct script_transport *transport = calloc(1, sizeof *transport);
	struct vd_actor_options	 actor = { .name = "script", .run = script_run, .arg = transport };

	if (transport == NULL)
		abort();
	transport->base.ops = &ops;
	transport->options = *options;
	TAILQ_INIT(&transport->exchanges);
	if (vd_actor_new(options->env, &actor, &transport->actor) != VD_OK) {
		free(transport);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	vd_actor_wake(transport->actor);
	*ret_transport = &transport->base;
	return VD_OK;
}

#endif
