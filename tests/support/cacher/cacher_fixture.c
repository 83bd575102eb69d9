#include "cacher_fixture.h"

#include "env.h"
#include "pod_objects.h"

void cacher_fixture_init(struct cacher_fixture *fixture, uint64_t seed)
{
	cacher_fixture_init_preempted(fixture, seed, 0, VD_US(0));
}

void cacher_fixture_init_preempted(struct cacher_fixture *fixture, uint64_t seed, unsigned preemptions,
				   vd_dur stall_max)
{
	struct vd_mvcc_options	 mvcc = VD_MVCC_OPTIONS_INIT;
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	struct vd_error		 error;

	memset(fixture, 0, sizeof *fixture);
	fixture->live = vdi_alloc_live();
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &fixture->env), VD_OK);
	assert_status(vdi_sim_set_preemptions(fixture->env, preemptions), VD_OK);
	vdi_sim_set_stalls(fixture->env, stall_max);
	assert_status(vd_store_open_mvcc(fixture->env, &mvcc, &fixture->store, &error), VD_OK);
	fixture->codec = pod_codec_new();
	options.resource = "pods";
	options.key_prefix = "/registry/pods/";
	options.codec = fixture->codec;
	options.trigger = "spec.nodeName";
	fixture->options = options;
}

static bool is_ready(void *arg)
{
	return vd_cacher_ready(arg, NULL) == VD_OK;
}

void cacher_fixture_open(struct cacher_fixture *fixture, struct vd_store *store)
{
	struct vd_error error;

	assert_status(vd_cacher_new(fixture->env, store ? store : fixture->store, &fixture->options,
				    &fixture->cacher, &error),
		      VD_OK);
	assert_true(vdi_sim_run_until(fixture->env, is_ready, fixture->cacher, VD_SECONDS(600)));
}

void cacher_fixture_setup(struct cacher_fixture *fixture, uint64_t seed)
{
	cacher_fixture_init(fixture, seed);
	cacher_fixture_open(fixture, NULL);
}

void cacher_fixture_teardown(struct cacher_fixture *fixture)
{
	fixture->cacher = vd_cacher_close_wait(fixture->cacher);
	vd_store_close_wait(fixture->store);
	vd_codec_free(fixture->codec);
	vd_env_free(fixture->env);
	assert_int_equal(vdi_alloc_live(), fixture->live);
}

void cacher_fixture_settle(struct cacher_fixture *fixture)
{
	vdi_sim_advance(fixture->env, VD_MS(20));
}

void write_pod(char *value, size_t size, const char *namespace_name, const char *name, const char *app,
	       const char *node)
{
	(void) snprintf(value, size,
			"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
			"\"%s\",\"uid\":\"u-%s\"%s%s%s},\"spec\":{%s%s%s}}",
			name, namespace_name, name, app ? ",\"labels\":{\"app\":\"" : "", app ? app : "",
			app ? "\"}" : "", node ? "\"nodeName\":\"" : "", node ? node : "", node ? "\"" : "");
}

vd_rev put_pod(struct cacher_fixture *fixture, const char *namespace_name, const char *name, const char *app,
	       const char *node)
{
	char		key[256];
	char		value[1024];
	struct vd_error error;
	vd_rev		revision = 0;

	snprintf(key, sizeof key, "/registry/pods/%s/%s", namespace_name, name);
	write_pod(value, sizeof value, namespace_name, name, app, node);
	assert_status(
		vd_store_put_wait(fixture->store, vd_bytes_of(key), vd_bytes_of(value), &revision, &error),
		VD_OK);
	return revision;
}

vd_rev delete_pod(struct cacher_fixture *fixture, const char *namespace_name, const char *name)
{
	char		key[256];
	struct vd_error error;
	vd_rev		revision = 0;
	int64_t		deleted = 0;

	snprintf(key, sizeof key, "/registry/pods/%s/%s", namespace_name, name);
	assert_status(vd_store_delete_wait(fixture->store, vd_bytes_of(key), VD_BYTES_NONE, &deleted,
					   &revision, &error),
		      VD_OK);
	return revision;
}

static void note_closed(void *arg)
{
	struct recorder *recorder = arg;

	assert_false(recorder->closed);
	recorder->closed = true;
}

static void close_now(struct recorder *recorder)
{
	struct vd_watcher *watcher = recorder->watcher;

	recorder->watcher = NULL;
	vd_watcher_close(watcher, note_closed, recorder);
}

static size_t record(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct recorder *recorder = arg;
	size_t		 taken;

	assert_int_equal(recorder->ended, 0);
	assert_non_null(recorder->watcher);
	for (taken = 0; taken < count && recorder->room > 0; taken++, recorder->room--) {
		const struct vd_watch_event *event = &events[taken];
		struct recorded		    *to = &recorder->events[recorder->count++];
		struct vd_bytes		     app;

		assert_true(recorder->count <= RECORDED_MAX);
		*to = (struct recorded) { .type = event->type,
					  .revision = event->revision,
					  .initial = event->initial,
					  .end = event->initial_events_end };
		if (event->object)
			snprintf(to->name, sizeof to->name, "%.*s/%.*s",
				 (int) vd_object_namespace(event->object).size,
				 (const char *) vd_object_namespace(event->object).data,
				 (int) vd_object_name(event->object).size,
				 (const char *) vd_object_name(event->object).data);
		if (event->old_object && vd_object_label_get(event->old_object, vd_bytes_of("app"), &app))
			snprintf(to->old_app, sizeof to->old_app, "%.*s", (int) app.size,
				 (const char *) app.data);
		if (event->error) {
			to->code = event->error->code;
			snprintf(to->message, sizeof to->message, "%s", event->error->message);
		}
	}
	if (recorder->close_in_deliver)
		close_now(recorder);
	return taken;
}

static void note_ended(void *arg, vd_status reason)
{
	struct recorder *recorder = arg;

	assert_false(recorder->closed);
	recorder->ended++;
	recorder->reason = reason;
	if (recorder->close_in_ended)
		close_now(recorder);
}

struct vd_watch_sink recorder_sink(struct recorder *recorder, const struct vd_executor *executor)
{
	return (struct vd_watch_sink) { record, note_ended, recorder, executor };
}

vd_status recorder_open(struct cacher_fixture *fixture, struct recorder *recorder,
			const struct vd_watch_options *options, const struct vd_executor *executor)
{
	struct vd_watch_sink sink = recorder_sink(recorder, executor);
	struct vd_error	     error;

	if (recorder->room == 0)
		recorder->room = SIZE_MAX;
	return vd_cacher_watch(fixture->cacher, options, &sink, &recorder->watcher, &error);
}

const char *recorder_text(struct recorder *recorder)
{
	static char text[65536];
	size_t	    size = 0;

	text[0] = 0;
	for (size_t i = 0; i < recorder->count; i++) {
		const struct recorded *event = &recorder->events[i];
		const char	      *space = i ? " " : "";

		if (event->type == VD_WATCH_ERROR)
			size += (size_t) snprintf(text + size, sizeof text - size, "%s!%s", space,
						  vd_status_name(event->code));
		else
			size += (size_t) snprintf(text + size, sizeof text - size, "%s%c%s%s@%lld", space,
						  "+~-*"[event->type], event -> name,
						  event -> end ? "END" : "", (long long) event->revision);
	}
	recorder->count = 0;
	return text;
}

static bool is_closed(void *arg)
{
	return ((struct recorder *) arg)->closed;
}

void recorder_close(struct cacher_fixture *fixture, struct recorder *recorder)
{
	if (recorder->watcher)
		close_now(recorder);
	/* A watch that is still being opened may wait for the store. */
	assert_true(vdi_sim_run_until(fixture->env, is_closed, recorder, VD_SECONDS(10)));
}
