/* vd_kube_request: one request is a member of the client until it is answered.
 *
 *   vd_kube_request --> run: start --> head, body --> ended --+--> done
 *                        ^                                    |
 *                        +---- at retry_at <---- repeated ----+
 *
 * A response is repeated if that cannot apply the request twice (see struct vd_kube_call), and if the next
 * attempt would begin before the deadline; otherwise the caller gets the response at once. After a 401 it
 * is sent once more with the next identity. */
#include <stdio.h>

#include "buffer.h"
#include "kube_state.h"

#define BODY_SIZE_MAX ((size_t) 1 << 30)
#define FIELD_SIZE_MAX ((size_t) 1 << 18)

struct request {
	/* Fixed at creation. */
	struct vdi_kube_member member;
	char		      *method, *path, *content_type, *accept, *body;
	size_t		       body_size;
	bool		       repeat;
	vd_mono		       deadline;
	vd_kube_answer_fn      done;
	void		      *arg;

	/* Actor. */
	struct vdi_kube_exchange *exchange; /* NULL: not sent, or it ended */
	struct vdi_kube_backoff	  backoff;
	struct vd_error		  failure; /* why the exchange was given up; VD_OK: it was not */
	struct vd_error		  last;	   /* of the last attempt */
	struct vdi_kube_head	  head;	   /* code 0: none */
	struct vdi_buffer	  answer, answer_type, answer_warning;
	bool			  is_identified_again; /* after a 401 */
};

static struct request *request_free(struct request *request)
{
	vdi_free(request->method);
	vdi_free(request->path);
	vdi_free(request->content_type);
	vdi_free(request->accept);
	vdi_free(request->body);
	vdi_buffer_fini(&request->answer);
	vdi_buffer_fini(&request->answer_type);
	vdi_buffer_fini(&request->answer_warning);
	vdi_free(request);
	return NULL;
}

/* Calls done and frees the request. error NULL: the response is the answer. */
static void answer(struct request *request, const struct vd_error *error)
{
	struct vd_error	      own = { 0 };
	struct vd_kube_answer answered = { .code = request->head.code,
					   .body = vdi_buffer_bytes(&request->answer),
					   .content_type = vdi_buffer_bytes(&request->answer_type),
					   .warning = vdi_buffer_bytes(&request->answer_warning) };
	vd_status	      status = VD_OK;

	if (request->exchange)
		vdi_kube_cancel(request->exchange);
	vdi_kube_member_remove(&request->member);
	if (error) {
		own = *error;
		status = own.code;
	}
	request->done(request->arg, status, request->head.code ? &answered : NULL, &own);
	request_free(request);
}

/* ---- The exchange ---- */

static void give_up(struct request *request, vd_status status)
{
	char message[80];

	vdi_kube_cancel(request->exchange);
	request->exchange = NULL;
	request->head.code = 0;
	snprintf(message, sizeof message, "the response is larger than %zu bytes", request->answer.size_max);
	(void) vd_error_set(&request->failure, status, "%s",
			    status == VD_TOO_BIG ? message : "out of memory");
	vdi_kube_member_wake(&request->member);
}

static void on_head(void *arg, const struct vdi_kube_head *head)
{
	struct request *request = arg;

	request->head = *head;
	vdi_buffer_append(&request->answer_type, head->content_type);
	vdi_buffer_append(&request->answer_warning, head->warning);
	if (vdi_buffer_status(&request->answer_type) != VD_OK ||
	    vdi_buffer_status(&request->answer_warning) != VD_OK)
		give_up(request, VD_NOMEM);
}

static bool on_body(void *arg, struct vd_bytes bytes)
{
	struct request *request = arg;
	vd_status	status;

	vdi_buffer_append(&request->answer, bytes);
	status = vdi_buffer_status(&request->answer);
	if (status != VD_OK)
		give_up(request, status);
	return true;
}

static bool is_repeatable(int code)
{
	return code == 429 || code == 500 || code == 502 || code == 503 || code == 504;
}

/* Sets retry_at; false: the caller gets this failure. */
static bool will_repeat(struct request *request, vd_status status)
{
	struct vd_kube *kube = request->member.kube;
	int		code = request->head.code;
	unsigned	retry_after_s = request->head.retry_after_s;
	bool		is_refused = (code == 429 || code == 503) && retry_after_s, repeats = request->repeat;

	if (status == VD_OK && code == 401) {
		if (request->is_identified_again || !vdi_kube_has_next_identity(kube))
			return false;
		request->is_identified_again = true;
		return true;
	}
	if (status == VD_OK ? !is_refused && !(repeats && is_repeatable(code)) :
			      !(repeats && status == VD_UNAVAILABLE))
		return false;
	vdi_kube_backoff_fail(kube, &request->backoff, retry_after_s);
	return request->backoff.retry_at.ns < request->deadline.ns;
}

static void clear(struct request *request)
{
	request->head = (struct vdi_kube_head) { 0 };
	vdi_buffer_clear(&request->answer);
	vdi_buffer_clear(&request->answer_type);
	vdi_buffer_clear(&request->answer_warning);
}

static void on_ended(void *arg, vd_status status, const struct vd_error *error)
{
	struct request *request = arg;
	int		code = request->head.code;

	request->exchange = NULL;
	if (status == VD_OK && code >= 200 && code < 300) {
		answer(request, NULL);
		return;
	}
	if (status == VD_OK)
		(void) vdi_kube_error_of(&request->head, vdi_buffer_bytes(&request->answer), &request->last);
	else
		request->last = *error;
	if (will_repeat(request, status)) {
		clear(request);
		vdi_kube_member_wake(&request->member);
		return;
	}
	if (status != VD_OK)
		request->head.code = 0; /* an incomplete response is none */
	answer(request, &request->last);
}

static const struct vdi_kube_handler handler = { on_head, on_body, on_ended, NULL };

/* ---- The member ---- */

static vd_mono earlier(vd_mono a, vd_mono b)
{
	return a.ns < b.ns ? a : b;
}

static vd_mono begin(struct request *request, vd_mono now)
{
	struct vdi_kube_handler	     own = handler;
	struct vdi_kube_http_request http = { .method = request->method,
					      .path = request->path,
					      .accept = request->accept,
					      .content_type = request->content_type,
					      .body = { request->body, request->body_size },
					      .timeout = vd_mono_since(request->deadline, now) };
	struct vd_error		     error = { 0 };
	vd_status		     status;

	own.arg = request;
	status = vdi_kube_start(request->member.kube, &http, &own, &request->exchange, &error);
	if (status == VD_OK)
		return VD_NEVER; /* the exchange has the deadline */
	if (status == VD_AGAIN)
		return request->deadline;
	if (status == VD_FORBIDDEN && request->repeat) {
		request->last = error;
		vdi_kube_backoff_fail(request->member.kube, &request->backoff, error.retry_after_s);
		if (request->backoff.retry_at.ns < request->deadline.ns)
			return request->backoff.retry_at;
	}
	answer(request, &error);
	return VD_NEVER;
}

static vd_mono run(struct vdi_kube_member *member, vd_mono now)
{
	struct request *request = VDI_CONTAINER_OF(member, struct request, member);
	struct vd_error error = { 0 };

	if (request->exchange)
		return VD_NEVER;
	if (request->failure.code != VD_OK) {
		answer(request, &request->failure);
		return VD_NEVER;
	}
	if (now.ns >= request->deadline.ns) {
		(void) vd_error_set(&error, VD_TIMEOUT, "%s %.100s: no answer in time%s%.160s",
				    request->method, request->path, request->last.code ? ": " : "",
				    request->last.message);
		answer(request, &error);
		return VD_NEVER;
	}
	if (now.ns < request->backoff.retry_at.ns)
		return earlier(request->backoff.retry_at, request->deadline);
	return begin(request, now);
}

static void close_request(struct vdi_kube_member *member)
{
	struct request *request = VDI_CONTAINER_OF(member, struct request, member);
	struct vd_error error = { 0 };

	(void) vd_error_set(&error, VD_CLOSED, "the client was closed before the server answered");
	request->head.code = 0;
	answer(request, &error);
}

/* ---- The call ---- */

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if ((unsigned char) *text <= ' ' || *text == 0x7f)
			return false;
	return true;
}

static bool is_method(const char *method)
{
	return *method && strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(method) &&
	       strlen(method) < 20 && strcmp(method, "CONNECT") != 0;
}

static bool is_call_valid(const struct vd_kube_call *call)
{
	const char *method = call->method ? call->method : "GET";

	if (!is_method(method) || call->path[0] != '/' || !is_printable(call->path) ||
	    strchr(call->path, '#') || call->timeout.ns < 0)
		return false;
	if ((call->accept && strpbrk(call->accept, "\r\n")) ||
	    (call->content_type && strpbrk(call->content_type, "\r\n")))
		return false;
	return !call->repeat || (strcmp(method, "POST") != 0 && strcmp(method, "PATCH") != 0);
}

static bool copy(char **place, const char *text)
{
	if (text)
		*place = vdi_strdup(text);
	return text == NULL || *place;
}

static struct request *request_new(const struct vd_kube *kube, const struct vd_kube_call *call,
				   size_t body_max)
{
	struct request *request = VDI_NEW(struct request);
	const char     *type = call->content_type;
	vd_dur		timeout = call->timeout.ns ? call->timeout : vdi_kube_options(kube)->request_timeout;

	if (request == NULL)
		return NULL;
	vdi_buffer_init(&request->answer, body_max);
	vdi_buffer_init(&request->answer_type, FIELD_SIZE_MAX);
	vdi_buffer_init(&request->answer_warning, FIELD_SIZE_MAX);
	request->body_size = call->body.size;
	request->repeat = call->repeat;
	request->deadline = vd_mono_add(vdi_kube_now(kube), timeout);
	request->member.run = run;
	request->member.close = close_request;
	if (type == NULL && call->body.size)
		type = "application/json";
	if (copy(&request->method, call->method ? call->method : "GET") && copy(&request->path, call->path) &&
	    copy(&request->content_type, type) && copy(&request->accept, call->accept) &&
	    (call->body.size == 0 || (request->body = vdi_strndup(call->body.data, call->body.size)) != NULL))
		return request;
	return request_free(request);
}

vd_status vdi_kube_request_bounded(struct vd_kube *kube, const struct vd_kube_call *call, size_t body_max,
				   vd_kube_answer_fn done, void *arg)
{
	struct request *request;
	vd_status	status;

	VDI_REQUIRE(kube, NULL);
	VDI_REQUIRE_OPTIONS(call, NULL);
	VDI_REQUIRE(done, NULL);
	VDI_REQUIRE(call->path, NULL);
	VDI_REQUIRE_BYTES(call->body, NULL);
	if (!is_call_valid(call))
		return VD_INVALID_ARGUMENT;
	request = request_new(kube, call, body_max);
	if (request == NULL)
		return VD_NOMEM;
	request->done = done;
	request->arg = arg;
	status = vdi_kube_member_add(kube, &request->member);
	if (status != VD_OK)
		request_free(request);
	return status;
}

vd_status vd_kube_request(struct vd_kube *kube, const struct vd_kube_call *call, vd_kube_answer_fn done,
			  void *arg)
{
	return vdi_kube_request_bounded(kube, call, BODY_SIZE_MAX, done, arg);
}
