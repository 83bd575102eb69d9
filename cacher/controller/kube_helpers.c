/* An update is a chain: GET, edit, PUT; after a conflict it waits and begins again. It has an actor for its
 * delays. The answer of a request is handled inside its callback; the actor runs only to begin an attempt, so
 * the two never run at the same time. */
#include <stdio.h>

#include "env.h"
#include "kube_requests.h"
#include "usage.h"

#define ATTEMPTS_MAX 100
#define DELAY_MAX_NS 60e9

struct update {
	struct vdi_kube_requests requests;
	struct vdi_usage	 usage; /* of the client, until done is called */
	struct vd_actor		*actor;
	vd_kube_edit_fn		 edit;
	void			*edit_arg;
	struct vd_kube_retry	 retry;
	vd_kube_answer_fn	 done;
	void			*arg;
	unsigned		 attempts; /* begun */
	double			 delay_ns; /* before the next attempt */
	struct vd_error		 error;	   /* of a request that could not be sent */
	vd_status		 failed;
	char			 path[VDI_KUBE_PATH_MAX];
};

static void on_update_closed(void *arg)
{
	struct update *update = arg;

	vdi_usage_end(&update->usage);
	if (update->failed != VD_OK)
		update->done(update->arg, update->failed, NULL, &update->error);
	vdi_free(update);
}

/* Ends the update after done was called. */
static void end(struct update *update)
{
	vd_actor_close(update->actor, on_update_closed, update);
}

static void finish(struct update *update, vd_status status, const struct vd_kube_answer *answer,
		   const struct vd_error *error)
{
	vdi_usage_end(&update->usage);
	update->done(update->arg, status, answer, error);
	end(update);
}

/* Ends the update with a status that no answer belongs to. */
static void fail(struct update *update, vd_status status, const char *action)
{
	struct vd_error error;

	(void) vd_error_set(&error, status, "%s %s: %s", action, update->path, vd_status_sentence(status));
	finish(update, status, NULL, &error);
}

static void retry_later(struct update *update)
{
	double jitter = (double) vd_env_random_below(update->requests.env, 1u << 30) / (1u << 30);
	double delay_ns = update->delay_ns * (1 + jitter * update->retry.jitter);
	vd_dur delay = { (int64_t) VDI_MIN(delay_ns, DELAY_MAX_NS) };

	update->delay_ns = VDI_MIN(update->delay_ns * update->retry.factor, DELAY_MAX_NS);
	vd_actor_set_timer(update->actor, vd_mono_add(vd_env_now(update->requests.env), delay));
}

static void written(void *arg, vd_status status, const struct vd_kube_answer *answer,
		    const struct vd_error *error)
{
	struct update *update = arg;

	if (status == VD_CONFLICT && update->attempts < update->retry.attempts)
		retry_later(update);
	else
		finish(update, status, answer, error);
}

static void read_done(void *arg, vd_status status, const struct vd_kube_answer *answer,
		      const struct vd_error *error)
{
	struct update	   *update = arg;
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	struct vd_blob	   *object = NULL;

	if (status != VD_OK) {
		finish(update, status, answer, error);
		return;
	}
	status = update->edit(update->edit_arg, answer->body, &object);
	if (status != VD_OK) {
		vd_blob_unref(object);
		fail(update, status, "the edit of");
		return;
	}
	if (object == NULL) {
		finish(update, VD_OK, answer, NULL);
		return;
	}
	call.method = "PUT";
	call.path = update->path;
	call.body = vd_blob_bytes(object);
	status = update->requests.send(update->requests.peer, &call, written, update);
	vd_blob_unref(object);
	if (status != VD_OK)
		fail(update, status, "PUT");
}

static vd_status begin_attempt(struct update *update)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;

	call.path = update->path;
	call.repeat = true;
	update->attempts++;
	return update->requests.send(update->requests.peer, &call, read_done, update);
}

/* A further attempt. */
static void run(void *arg)
{
	struct update *update = arg;
	vd_status      status = begin_attempt(update);

	if (status == VD_OK)
		return;
	update->failed =
		vd_error_set(&update->error, status, "GET %s: %s", update->path, vd_status_sentence(status));
	end(update);
}

static vd_status check(const struct vd_kube_update *update)
{
	VDI_REQUIRE_OPTIONS(update, NULL);
	VDI_REQUIRE(update->resource, NULL);
	VDI_REQUIRE(update->edit, NULL);
	VDI_REQUIRE_BYTES(update->namespace_name, NULL);
	VDI_REQUIRE_BYTES(update->name, NULL);
	if (update->name.size == 0 || update->retry.attempts == 0 || update->retry.attempts > ATTEMPTS_MAX ||
	    update->retry.delay.ns < 0 || !(update->retry.factor >= 1) || !(update->retry.jitter >= 0))
		return VD_INVALID_ARGUMENT;
	return VD_OK;
}

vd_status vdi_kube_update(const struct vdi_kube_requests *requests, const struct vd_kube_update *options,
			  vd_kube_answer_fn done, void *arg)
{
	struct vd_actor_options actor = { .name = "kube_update", .run = run };
	struct update	       *update;
	vd_status		status;

	VDI_REQUIRE(done, NULL);
	VDI_TRY(check(options));
	update = VDI_NEW(struct update);
	if (update == NULL)
		return VD_NOMEM;
	update->requests = *requests;
	update->edit = options->edit;
	update->edit_arg = options->edit_arg;
	update->retry = options->retry;
	update->delay_ns = (double) options->retry.delay.ns;
	update->done = done;
	update->arg = arg;
	actor.arg = update;
	status = vdi_kube_object_path(options->resource, options->namespace_name, options->name,
				      options->subresource, update->path);
	if (status == VD_OK)
		status = vd_actor_new(requests->env, &actor, &update->actor);
	if (status != VD_OK) {
		vdi_free(update);
		return status;
	}
	update->usage = (struct vdi_usage) { .kind = "update of",
					     .name = update->path,
					     .closed_by = "its done callback",
					     .env = requests->env,
					     .uses = { requests->peer } };
	vdi_usage_begin(&update->usage);
	status = begin_attempt(update);
	if (status != VD_OK) {
		vdi_usage_end(&update->usage);
		vd_actor_close(update->actor, vdi_free, update); /* it never ran */
	}
	return status;
}

/* ---- Apply ---- */

/* Escapes text for a query. False: no room. */
static bool append_escaped(char *path, size_t size, const char *text)
{
	size_t at = strlen(path);

	for (; *text; text++) {
		unsigned char letter = (unsigned char) *text;
		bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
				(letter >= '0' && letter <= '9') || strchr("-_.~", letter);

		if (at + 4 > size)
			return false;
		at += (size_t) snprintf(path + at, size - at, is_plain ? "%c" : "%%%02X", letter);
	}
	return true;
}

vd_status vdi_kube_apply(const struct vdi_kube_requests *requests, const struct vd_kube_apply *apply,
			 vd_kube_answer_fn done, void *arg)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	char		    path[VDI_KUBE_PATH_MAX];
	size_t		    size;

	VDI_REQUIRE(done, NULL);
	VDI_REQUIRE_OPTIONS(apply, NULL);
	VDI_REQUIRE(apply->resource, NULL);
	VDI_REQUIRE(apply->field_manager, NULL);
	VDI_REQUIRE_BYTES(apply->configuration, NULL);
	VDI_REQUIRE_BYTES(apply->namespace_name, NULL);
	VDI_REQUIRE_BYTES(apply->name, NULL);
	if (apply->name.size == 0 || apply->field_manager[0] == 0)
		return VD_INVALID_ARGUMENT;
	VDI_TRY(vdi_kube_object_path(apply->resource, apply->namespace_name, apply->name, apply->subresource,
				     path));
	size = strlen(path);
	(void) snprintf(path + size, sizeof path - size, "?fieldManager=");
	if (!append_escaped(path, sizeof path - sizeof "&force=true", apply->field_manager))
		return VD_TOO_BIG;
	size = strlen(path);
	if (apply->force)
		(void) snprintf(path + size, sizeof path - size, "&force=true");
	call.method = "PATCH";
	call.path = path;
	call.body = apply->configuration;
	call.content_type = "application/apply-patch+yaml";
	return requests->send(requests->peer, &call, done, arg);
}
