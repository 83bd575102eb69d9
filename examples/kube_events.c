/* Events, server-side apply and updates: records events about a ConfigMap, as an operator does, applies
 * it, and lets eight updates compete for it. None of them is lost. tests/integration/kube_records.py
 * checks what the server has then. */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vedette/event_recorder.h>
#include <vedette/kube_helpers.h>

enum { UPDATES = 8 };

static const struct vd_kube_resource configmaps = { .version = "v1", .plural = "configmaps" };
static sem_t			     answers;
static atomic_uint		     failures;
static char			     apply_name[] = "apply", update_name[] = "update";

static void answered(void *arg, vd_status status, const struct vd_kube_answer *answer,
		     const struct vd_error *error)
{
	if (status != VD_OK) {
		fprintf(stderr, "%s: %s\n", (const char *) arg, error->message);
		atomic_fetch_add(&failures, 1);
	}
	sem_post(&answers);
}

/* The bytes of an object do not end with a NUL. Returns where text begins in object, or NULL. */
static const char *find(struct vd_bytes object, const char *text)
{
	size_t size = strlen(text);

	for (size_t at = 0; at + size <= object.size; at++)
		if (memcmp((const char *) object.data + at, text, size) == 0)
			return (const char *) object.data + at;
	return NULL;
}

/* Adds a member to data. */
static vd_status add_member(void *arg, struct vd_bytes object, struct vd_blob **ret_object)
{
	const char *text = object.data, *data = find(object, "\"data\":{");
	char	    changed[8192];
	int	    at, size;

	if (data == NULL)
		return VD_INVALID;
	at = (int) (data - text) + 8;
	size = snprintf(changed, sizeof changed, "%.*s\"n%u\":\"x\",%.*s", at, text, *(unsigned *) arg,
			(int) object.size - at, text + at);
	if (size < 0 || (size_t) size >= sizeof changed)
		return VD_TOO_BIG;
	return vd_blob_new((struct vd_bytes) { changed, (size_t) size }, ret_object);
}

static vd_status change(struct vd_kube *kube)
{
	static unsigned	     numbers[UPDATES];
	struct vd_kube_apply apply = VD_KUBE_APPLY_INIT;
	vd_status	     status;

	apply.resource = &configmaps;
	apply.namespace_name = vd_bytes_of("default");
	apply.name = vd_bytes_of("cfg");
	apply.field_manager = "records & more";
	apply.configuration = vd_bytes_of("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cfg\ndata:\n"
					  "  a: b\n");
	status = vd_kube_apply(kube, &apply, answered, apply_name);
	if (status != VD_OK)
		return status;
	sem_wait(&answers);
	for (unsigned i = 0; i < UPDATES; i++) {
		struct vd_kube_update update = VD_KUBE_UPDATE_INIT;

		numbers[i] = i;
		update.resource = &configmaps;
		update.namespace_name = apply.namespace_name;
		update.name = apply.name;
		update.edit = add_member;
		update.edit_arg = &numbers[i];
		update.retry.attempts = 100;
		update.retry.jitter = 1;
		status = vd_kube_update(kube, &update, answered, update_name);
		if (status != VD_OK)
			return status;
	}
	for (unsigned i = 0; i < UPDATES; i++)
		sem_wait(&answers);
	return VD_OK;
}

static vd_status record(struct vd_kube *kube, struct vd_error *error)
{
	struct vd_event_recorder_options options = VD_EVENT_RECORDER_OPTIONS_INIT;
	struct vd_event_object		 configmap = { .api_version = vd_bytes_of("v1"),
						       .kind = vd_bytes_of("ConfigMap"),
						       .namespace_name = vd_bytes_of("default"),
						       .name = vd_bytes_of("cfg") };
	struct vd_event_object		 node = { .api_version = vd_bytes_of("v1"),
						  .kind = vd_bytes_of("Node"),
						  .name = vd_bytes_of("system:Node_1") };
	struct vd_event_recorder	*recorder;
	vd_status			 status;

	options.component = "records";
	options.flush = VD_SECONDS(60);
	status = vd_event_recorder_open(kube, &options, &recorder, error);
	if (status != VD_OK)
		return status;
	for (unsigned i = 0; i < 3; i++)
		vd_event_record(recorder, &configmap, VD_EVENT_NORMAL, "Same", "the same <message>");
	for (unsigned i = 0; i < 15; i++)
		vd_event_record(recorder, &configmap, VD_EVENT_WARNING, "Different", "message %u", i);
	vd_event_record(recorder, &node, VD_EVENT_WARNING, "Odd", "a name that is no name of an Event");
	vd_event_recorder_close_wait(recorder);
	return VD_OK;
}

int main(void)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_error	       error = { 0 };
	struct vd_env	      *env;
	struct vd_kube	      *kube;
	vd_status	       status;

	sem_init(&answers, 0, 0);
	if (vd_env_new_threads(NULL, &env) != VD_OK)
		return 1;
	status = vd_kube_open(env, &options, &kube, &error);
	if (status == VD_OK) {
		status = record(kube, &error);
		if (status == VD_OK)
			status = change(kube);
		vd_kube_close_wait(kube);
	}
	if (status != VD_OK)
		fprintf(stderr, "kube_events: %s %s\n", vd_status_name(status), error.message);
	vd_env_free(env);
	return status == VD_OK && atomic_load(&failures) == 0 ? 0 : 1;
}
