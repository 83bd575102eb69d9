#include "watchchan_world.h"

const char watched_prefix[] = "/registry/pods/";

struct world world_logging(uint64_t seed, vd_log_fn log, void *log_arg)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct world	       world = { 0 };

	options.history_window = (vd_dur) { 0 };
	assert_status(vdi_env_new_sim(seed, log, log_arg, &world.env), VD_OK);
	assert_status(vd_store_open_mvcc(world.env, &options, &world.store, NULL), VD_OK);
	assert_status(vd_codec_json_new(NULL, 0, &world.codec, NULL), VD_OK);
	return world;
}

struct world world_new(uint64_t seed)
{
	return world_logging(seed, NULL, NULL);
}

void on_closed(void *arg)
{
	*(bool *) arg = true;
}

bool is_true(void *arg)
{
	return *(bool *) arg;
}

void close_watch(struct world *world)
{
	world->closed = false;
	vdi_watchchan_close(world->watchchan, on_closed, &world->closed);
	assert_true(vdi_sim_run_until(world->env, is_true, &world->closed, VD_SECONDS(10)));
	world->watchchan = NULL;
}

void world_free(struct world *world)
{
	if (world->watchchan)
		close_watch(world);
	vd_store_close_wait(world->store);
	vd_codec_free(world->codec);
	vd_env_free(world->env);
}

vd_rev put_value(struct world *world, const char *key, const char *value)
{
	vd_rev revision = 0;

	assert_status(vd_store_put_wait(world->store, vd_bytes_of(key), vd_bytes_of(value), &revision, NULL),
		      VD_OK);
	return revision;
}

/* An object with a label app=<app>. */
vd_rev put_app(struct world *world, const char *name, const char *app)
{
	char key[128], value[256];

	snprintf(key, sizeof key, "%s%s", watched_prefix, name);
	snprintf(value, sizeof value, "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":\"%s\"}}}", name,
		 app);
	return put_value(world, key, value);
}

vd_rev delete (struct world *world, const char *name)
{
	char   key[128];
	vd_rev revision = 0;

	snprintf(key, sizeof key, "%s%s", watched_prefix, name);
	assert_status(
		vd_store_delete_wait(world->store, vd_bytes_of(key), VD_BYTES_NONE, NULL, &revision, NULL),
		VD_OK);
	return revision;
}

static void on_ready(void *arg)
{
	((struct world *) arg)->ready++;
}

static void on_undecodable(void *arg, struct vd_kv *kv, bool is_delete, const struct vd_error *error)
{
	(void) kv;
	(void) is_delete;
	assert_int_equal(error->code, VD_UNDECODABLE);
	((struct world *) arg)->undecodable++;
}

struct vdi_watchchan_options options_of(struct world *world)
{
	return (struct vdi_watchchan_options) {
		.resource = "pods",
		.codec = world->codec,
		.key = vd_bytes_of(watched_prefix),
		.recursive = true,
		.ready = on_ready,
		.ready_arg = world,
		.undecodable = on_undecodable,
		.undecodable_arg = world,
	};
}

void open_watch(struct world *world, const struct vdi_watchchan_options *options)
{
	struct vd_error error = { 0 };

	if (vdi_watchchan_open(world->env, world->store, options, &world->watchchan, &error) != VD_OK)
		fail_msg("%s", error.message);
}

/* The next event as text, "TYPE name@revision"; "AGAIN" or "END". */
const char *next(struct world *world)
{
	static char		   text[256];
	struct vdi_watchchan_event event;
	vd_status		   status;

	vdi_sim_run_until_idle(world->env);
	status = vdi_watchchan_next(world->watchchan, &event);
	if (status != VD_OK)
		return status == VD_AGAIN ? "AGAIN" : "END";
	if (event.type == VD_WATCH_ERROR)
		snprintf(text, sizeof text, "ERROR %s", vd_status_name(event.error->code));
	else if (event.lost)
		snprintf(text, sizeof text, "LOST %.*s@%lld", (int) vd_kv_key(event.lost).size - 15,
			 event.lost->data + 15, (long long) event.revision);
	else if (event.object == NULL)
		snprintf(text, sizeof text, "%s%s@%lld", vd_watch_type_name(event.type),
			 event.initial_events_end ? " end" : "", (long long) event.revision);
	else
		snprintf(text, sizeof text, "%s %.*s@%lld", vd_watch_type_name(event.type),
			 (int) vd_object_name(event.object).size,
			 (const char *) vd_object_name(event.object).data, (long long) event.revision);
	vdi_watchchan_event_fini(&event);
	return text;
}

bool app_is_x(void *arg, const struct vd_object *object)
{
	struct vd_bytes value;

	(void) arg;
	return vd_object_label_get(object, vd_bytes_of("app"), &value) &&
	       vd_bytes_equal(value, vd_bytes_of("x"));
}
