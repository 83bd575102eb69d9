/* Answers of the client's actor are left in the session, under its lock, for the thread that waits.
 *
 * A stream is a member of the client:
 *
 *   main thread                          the client's actor
 *   stream: add the member ------------> run: start the request
 *   wait <------- bytes, the end ------- body, ended
 *   chunk (without the lock)             (paused while too many bytes wait)
 *   is_unwanted -----------------------> run: cancel, remove the member
 *   wait <------- is_removed ----------- */
#include "kube_session.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>

#include "buffer.h"
#include "kube_client.h"
#include "lock.h"

#define REQUEST_TIMEOUT VD_SECONDS(120)
#define REFUSAL_SIZE_MAX ((size_t) 1 << 20)

struct vdi_kube_session {
	const struct vd_env *env;
	struct vd_kube	    *kube;

	struct vdi_lock	     lock;
	struct vdi_condition changed;
	/* Under lock. */
	bool			 has_answered;
	struct vd_error		 unreachable; /* the server has never answered; code VD_OK: it may */
	bool			 is_finding;
	char			 typed[VDI_RESOURCE_TEXT_MAX]; /* what is searched for */
	struct vd_error		 found;			       /* outcome of the last search */
	struct vdi_resource_name resource;
};

/* ---- Lifetime ---- */

/* On the client's actor. */
static void on_change(void *arg, const struct vd_kube_health *health)
{
	struct vdi_kube_session *session = arg;

	if (health->resource)
		return;
	vdi_lock_acquire(&session->lock);
	if (health->state == VD_KUBE_WATCHING) {
		session->has_answered = true;
		session->unreachable = (struct vd_error) { 0 };
	} else if (health->state == VD_KUBE_RETRYING && !session->has_answered) {
		session->unreachable = health->error;
		vdi_condition_broadcast(&session->changed);
	}
	vdi_lock_release(&session->lock);
}

vd_status vdi_kube_session_new(const struct vd_env *env, const struct vd_kube_options *options,
			       struct vdi_kube_session **ret_session, struct vd_error *reterr)
{
	struct vdi_kube_session *session = VDI_NEW(struct vdi_kube_session);
	struct vd_kube_options	 own = *options;
	vd_status		 status;

	if (session == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	session->env = env;
	vdi_lock_init(&session->lock, VDI_LOCK_LEAF);
	vdi_condition_init(&session->changed);
	own.changed = on_change;
	own.changed_arg = session;
	status = vd_kube_open(env, &own, &session->kube, reterr);
	if (status != VD_OK) {
		vdi_kube_session_free(session);
		return status;
	}
	*ret_session = session;
	return VD_OK;
}

struct vdi_kube_session *vdi_kube_session_free(struct vdi_kube_session *session)
{
	if (session == NULL)
		return NULL;
	(void) vd_kube_close_wait(session->kube);
	vdi_condition_fini(&session->changed);
	vdi_lock_fini(&session->lock);
	vdi_free(session);
	return NULL;
}

struct vd_kube *vdi_kube_session_client(struct vdi_kube_session *session)
{
	return session->kube;
}

bool vdi_kube_session_has_answered(struct vdi_kube_session *session)
{
	bool has_answered;

	vdi_lock_acquire(&session->lock);
	has_answered = session->has_answered;
	vdi_lock_release(&session->lock);
	return has_answered;
}

/* ---- Resources ---- */

static void copy_text(char place[VDI_RESOURCE_TEXT_MAX], const char *text)
{
	snprintf(place, VDI_RESOURCE_TEXT_MAX, "%s", text ? text : "");
}

static void on_found(void *arg, vd_status status, const struct vd_kube_resource *resource,
		     const struct vd_error *error)
{
	struct vdi_kube_session	 *session = arg;
	struct vdi_resource_name *name = &session->resource;

	vdi_lock_acquire(&session->lock);
	if (status == VD_OK) {
		copy_text(name->group, resource->group);
		copy_text(name->version, resource->version);
		copy_text(name->plural, resource->plural);
		copy_text(name->singular,
			  resource->kind && *resource->kind ? resource->kind : resource->plural);
		for (char *at = name->singular; *at; at++)
			*at = (char) tolower((unsigned char) *at);
		name->namespaced = !resource->cluster_scoped;
	}
	session->found = (struct vd_error) { 0 };
	if (error && status != VD_OK)
		session->found = *error;
	session->found.code = status;
	session->is_finding = false;
	vdi_condition_broadcast(&session->changed);
	vdi_lock_release(&session->lock);
}

/* Returns the outcome of the search; VD_TIMEOUT: there is none in time. */
static void await_found(struct vdi_kube_session *session, vd_mono due, struct vd_error *ret_outcome,
			struct vdi_resource_name *ret_resource)
{
	bool is_late = false;

	vdi_lock_acquire(&session->lock);
	while (session->is_finding && session->unreachable.code == VD_OK && !is_late)
		is_late = !vdi_condition_wait_until(&session->changed, &session->lock, due);
	if (!session->is_finding) {
		*ret_outcome = session->found;
		*ret_resource = session->resource;
	} else if (session->unreachable.code != VD_OK) {
		*ret_outcome = session->unreachable;
	} else {
		(void) vd_error_set(ret_outcome, VD_TIMEOUT, "the server did not answer discovery in time");
	}
	vdi_lock_release(&session->lock);
}

vd_status vdi_kube_session_find(struct vdi_kube_session *session, const char *typed, vd_dur timeout,
				struct vdi_resource_name *ret_resource, struct vd_error *reterr)
{
	struct vd_error outcome = { 0 };
	bool		was_finding;

	vdi_lock_acquire(&session->lock);
	was_finding = session->is_finding;
	if (was_finding && strcmp(session->typed, typed) != 0)
		outcome.code = VD_FULL;
	session->is_finding = true;
	vdi_lock_release(&session->lock);
	if (!was_finding) {
		copy_text(session->typed, typed);
		outcome.code = vd_kube_find(session->kube, typed, on_found, session);
	}
	if (!was_finding && outcome.code != VD_OK) {
		vdi_lock_acquire(&session->lock);
		session->is_finding = false;
		vdi_lock_release(&session->lock);
	}
	if (outcome.code == VD_OK)
		await_found(session, vd_mono_add(vd_env_now(session->env), timeout), &outcome, ret_resource);
	else if (outcome.code == VD_INVALID_ARGUMENT)
		(void) vd_error_set(&outcome, VD_NOT_FOUND,
				    "the server does not have a resource type \"%.100s\"", typed);
	else
		(void) vd_error_set(&outcome, outcome.code, "%s", vd_status_sentence(outcome.code));
	if (reterr)
		*reterr = outcome;
	return outcome.code;
}

/* ---- Requests ---- */

vd_status vdi_kube_session_error_of(const struct vdi_kube_head *head, struct vd_bytes body,
				    struct vd_error *reterr)
{
	struct vd_error error = { 0 };
	json_t	       *root = json_loadb(body.data ? body.data : "", body.size, 0, NULL);
	const char     *reason = json_string_value(json_object_get(root, "reason"));

	(void) vdi_kube_error_of(head, body, &error);
	if (reterr)
		*reterr = error;
	if (reason && *reason)
		(void) vd_error_set(reterr, error.code, "%.200s (%.60s)", error.message, reason);
	if (reterr)
		reterr->retry_after_s = error.retry_after_s;
	json_decref(root);
	return error.code;
}

struct request {
	struct vdi_kube_session *session;
	struct vdi_kube_reply	*reply;
	struct vd_error		 error;
	bool			 is_done;
};

static vd_status take_reply(struct vdi_kube_reply *reply, const struct vd_kube_answer *answer)
{
	if (answer == NULL)
		return VD_OK;
	reply->code = answer->code;
	reply->body = vdi_strndup(answer->body.data ? answer->body.data : "", answer->body.size);
	reply->size = answer->body.size;
	return reply->body ? VD_OK : VD_NOMEM;
}

/* The client's own error names the address of a redirect. */
static bool is_redirect(int code)
{
	return code >= 300 && code < 400;
}

static void on_answer(void *arg, vd_status status, const struct vd_kube_answer *answer,
		      const struct vd_error *error)
{
	struct request		*request = arg;
	struct vdi_kube_session *session = request->session;
	struct vd_error		 own = { 0 };

	if (status != VD_OK && error)
		own = *error;
	own.code = status;
	if (status != VD_OK && answer && answer->body.size && !is_redirect(answer->code)) {
		struct vdi_kube_head head = { .code = answer->code };

		(void) vdi_kube_session_error_of(&head, answer->body, &own);
		if (own.retry_after_s == 0 && error)
			own.retry_after_s = error->retry_after_s;
	}
	if (take_reply(request->reply, answer) != VD_OK)
		own.code = vd_error_set(&own, VD_NOMEM, "out of memory");
	vdi_lock_acquire(&session->lock);
	request->error = own;
	request->is_done = true;
	vdi_condition_broadcast(&session->changed);
	vdi_lock_release(&session->lock);
}

vd_status vdi_kube_session_request(struct vdi_kube_session *session, const char *method, const char *path,
				   const char *accept, const char *body, struct vdi_kube_reply *ret_reply,
				   struct vd_error *reterr)
{
	struct vdi_kube_reply unwanted = { 0 };
	struct request	      request = { session, ret_reply ? ret_reply : &unwanted, { 0 }, false };
	struct vd_kube_call   call = VD_KUBE_CALL_INIT;
	vd_status	      status;

	memset(request.reply, 0, sizeof *request.reply);
	call.method = method;
	call.path = path;
	call.accept = accept;
	call.body = body ? vd_bytes_of(body) : VD_BYTES_NONE;
	call.timeout = REQUEST_TIMEOUT;
	status = vd_kube_request(session->kube, &call, on_answer, &request);
	if (status == VD_INVALID_ARGUMENT)
		return vd_error_set(reterr, status, "not a path that can be requested: %.200s", path);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	vdi_lock_acquire(&session->lock);
	while (!request.is_done)
		vdi_condition_wait(&session->changed, &session->lock);
	vdi_lock_release(&session->lock);
	vdi_kube_reply_fini(&unwanted);
	if (request.error.code != VD_OK && reterr)
		*reterr = request.error;
	return request.error.code;
}

void vdi_kube_reply_fini(struct vdi_kube_reply *reply)
{
	vdi_free(reply->body);
	memset(reply, 0, sizeof *reply);
}

/* ---- Streams ---- */

struct stream {
	struct vdi_kube_member	 member;
	struct vdi_kube_session *session;
	const char		*path, *accept; /* borrowed */

	/* Actor. */
	struct vdi_kube_exchange *exchange;
	unsigned		  retry_after_s;
	struct vdi_buffer	  refusal; /* body of a response that is not 2xx */

	/* Under the session's lock. */
	struct vdi_buffer    waiting;
	int		     code;
	struct vdi_kube_head head;
	bool		     is_paused, has_ended, is_unwanted, is_removed;
	struct vd_error	     end;
};

static void end_stream(struct stream *stream, vd_status status, const struct vd_error *error)
{
	struct vdi_kube_session *session = stream->session;

	vdi_lock_acquire(&session->lock);
	if (error)
		stream->end = *error;
	stream->end.code = status;
	stream->has_ended = true;
	vdi_condition_broadcast(&session->changed);
	vdi_lock_release(&session->lock);
}

static bool is_success(int code)
{
	return code >= 200 && code < 300;
}

static void on_head(void *arg, const struct vdi_kube_head *head)
{
	struct stream *stream = arg;

	stream->retry_after_s = head->retry_after_s;
	vdi_lock_acquire(&stream->session->lock);
	stream->code = head->code;
	stream->head = *head;
	vdi_lock_release(&stream->session->lock);
}

static bool on_body(void *arg, struct vd_bytes bytes)
{
	struct stream		*stream = arg;
	struct vdi_kube_session *session = stream->session;
	vd_status		 status;

	if (!is_success(stream->code)) {
		vdi_buffer_append(&stream->refusal, bytes);
		return true;
	}
	vdi_lock_acquire(&session->lock);
	stream->is_paused =
		stream->waiting.size > 0 && stream->waiting.size + bytes.size > VDI_KUBE_STREAM_WAITING_MAX;
	if (stream->is_paused) {
		vdi_lock_release(&session->lock);
		return false;
	}
	vdi_buffer_append(&stream->waiting, bytes);
	status = vdi_buffer_status(&stream->waiting);
	vdi_condition_broadcast(&session->changed);
	vdi_lock_release(&session->lock);
	if (status != VD_OK) {
		vdi_kube_cancel(stream->exchange);
		stream->exchange = NULL;
		end_stream(stream, VD_NOMEM, NULL);
	}
	return true;
}

static void on_ended(void *arg, vd_status status, const struct vd_error *error)
{
	struct stream  *stream = arg;
	struct vd_error refused = { 0 };

	stream->exchange = NULL;
	if (status == VD_OK && !is_success(stream->code)) {
		status = vdi_kube_session_error_of(&stream->head, vdi_buffer_bytes(&stream->refusal),
						   &refused);
		if (refused.retry_after_s == 0)
			refused.retry_after_s = stream->retry_after_s;
		error = &refused;
	}
	end_stream(stream, status, error);
}

/* Removes the member; the waiting thread frees it. */
static vd_mono remove_stream(struct stream *stream)
{
	struct vdi_kube_session *session = stream->session;

	if (stream->exchange)
		vdi_kube_cancel(stream->exchange);
	vdi_kube_member_remove(&stream->member);
	vdi_lock_acquire(&session->lock);
	stream->is_removed = true;
	vdi_condition_broadcast(&session->changed);
	vdi_lock_release(&session->lock);
	return VD_NEVER;
}

static void start_stream(struct stream *stream)
{
	struct vdi_kube_http_request request = {
		.method = "GET",
		.path = stream->path,
		.accept = stream->accept,
		.silence_max = vdi_kube_options(stream->member.kube)->silence_max,
	};
	struct vdi_kube_handler handler = { on_head, on_body, on_ended, stream };
	struct vd_error		error = { 0 };
	vd_status		status;

	status = vdi_kube_start(stream->member.kube, &request, &handler, &stream->exchange, &error);
	if (status != VD_OK && status != VD_AGAIN)
		end_stream(stream, status, &error);
}

static vd_mono run_stream(struct vdi_kube_member *member, vd_mono now)
{
	struct stream		*stream = VDI_CONTAINER_OF(member, struct stream, member);
	struct vdi_kube_session *session = stream->session;
	bool			 is_unwanted, has_ended, resumes;

	(void) now;
	vdi_lock_acquire(&session->lock);
	is_unwanted = stream->is_unwanted;
	has_ended = stream->has_ended;
	resumes = stream->is_paused && stream->waiting.size == 0;
	if (resumes)
		stream->is_paused = false;
	vdi_lock_release(&session->lock);
	if (is_unwanted)
		return remove_stream(stream);
	if (has_ended)
		return VD_NEVER;
	if (stream->exchange == NULL)
		start_stream(stream);
	else if (resumes)
		vdi_kube_resume(stream->exchange);
	return VD_NEVER;
}

/* Takes what has arrived, in exchange for an empty buffer. Returns false at the end. */
static bool take_waiting(struct stream *stream, struct vdi_buffer *taken)
{
	struct vdi_kube_session *session = stream->session;
	struct vdi_buffer	 empty = *taken;
	bool			 is_paused;

	vdi_lock_acquire(&session->lock);
	while (stream->waiting.size == 0 && !stream->has_ended)
		vdi_condition_wait(&session->changed, &session->lock);
	*taken = stream->waiting;
	stream->waiting = empty;
	is_paused = stream->is_paused;
	vdi_lock_release(&session->lock);
	if (is_paused)
		vdi_kube_member_wake(&stream->member);
	return taken->size > 0;
}

static void close_stream(struct stream *stream)
{
	struct vdi_kube_session *session = stream->session;

	vdi_lock_acquire(&session->lock);
	stream->is_unwanted = true;
	vdi_lock_release(&session->lock);
	vdi_kube_member_wake(&stream->member);
	vdi_lock_acquire(&session->lock);
	while (!stream->is_removed)
		vdi_condition_wait(&session->changed, &session->lock);
	vdi_lock_release(&session->lock);
	vdi_buffer_fini(&stream->waiting);
	vdi_buffer_fini(&stream->refusal);
}

vd_status vdi_kube_session_stream(struct vdi_kube_session *session, const char *path, const char *accept,
				  vdi_kube_chunk_fn chunk, void *arg, int *ret_code, struct vd_error *reterr)
{
	struct stream	  stream = { .session = session, .path = path, .accept = accept };
	struct vdi_buffer taken;
	vd_status	  status;

	*ret_code = 0;
	stream.member.run = run_stream;
	vdi_buffer_init(&stream.waiting, SIZE_MAX);
	vdi_buffer_init(&stream.refusal, REFUSAL_SIZE_MAX);
	vdi_buffer_init(&taken, SIZE_MAX);
	status = vdi_kube_member_add(session->kube, &stream.member);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	while (status == VD_OK && take_waiting(&stream, &taken)) {
		status = chunk(arg, vdi_buffer_bytes(&taken));
		vdi_buffer_clear(&taken);
	}
	close_stream(&stream);
	vdi_buffer_fini(&taken);
	*ret_code = stream.code;
	if (status != VD_OK)
		return status;
	if (stream.end.code != VD_OK && stream.end.message[0] == 0)
		(void) vd_error_set(&stream.end, stream.end.code, "%s", vd_status_sentence(stream.end.code));
	if (stream.end.code != VD_OK && reterr)
		*reterr = stream.end;
	return stream.end.code;
}
