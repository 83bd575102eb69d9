/* An informer: callbacks with the old and the new object, for all existing objects and all changes. */
#include <semaphore.h>
#include <stdio.h>
#include <vedette/vedette.h>

static void print(const char *what, struct vd_object *object)
{
	printf("%-7s %.*s\n", what, (int) vd_object_key(object).size,
	       (const char *) vd_object_key(object).data);
}

static void on_add(void *arg, struct vd_object *object, bool initial)
{
	(void) arg;
	print(initial ? "exists" : "added", object);
}

static void on_update(void *arg, struct vd_object *old_object, struct vd_object *object)
{
	(void) arg;
	printf("changed %.*s from revision %lld to %lld\n", (int) vd_object_key(object).size,
	       (const char *) vd_object_key(object).data, (long long) vd_object_revision(old_object),
	       (long long) vd_object_revision(object));
}

static void on_remove(void *arg, struct vd_object *last_state, bool unknown_final_state)
{
	(void) unknown_final_state;
	print("removed", last_state);
	sem_post(arg); /* the last change of this program */
}

static int run(const struct vd_env *env, struct vd_store *store, struct vd_codec *codec,
	       struct vd_error *error)
{
	static const char first[] = "{\"metadata\":{\"name\":\"lamp\",\"namespace\":\"hall\"},\"on\":false}";
	static const char second[] = "{\"metadata\":{\"name\":\"lamp\",\"namespace\":\"hall\"},\"on\":true}";
	struct vd_cacher_options   options = VD_CACHER_OPTIONS_INIT;
	struct vd_informer_handler handler = { .add = on_add, .update = on_update, .remove = on_remove };
	sem_t			   removed;
	struct vd_cacher	  *cacher = NULL;
	struct vd_informer	  *informer = NULL;
	struct vd_bytes		   hall = vd_bytes_of("hall"), lamp = vd_bytes_of("lamp");
	int			   failed = 1;

	sem_init(&removed, 0, 0);
	handler.arg = &removed;
	options.resource = "devices";
	options.key_prefix = "/registry/devices/";
	options.codec = codec;
	if (vd_cacher_new(env, store, &options, &cacher, error) != VD_OK)
		return 1;
	if (vd_cacher_ready_wait(cacher, VD_SECONDS(5), error) == VD_OK &&
	    vd_cacher_put_wait(cacher, hall, lamp, vd_bytes_of(first), NULL, error) == VD_OK &&
	    vd_informer_new(cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler, &informer,
			    error) == VD_OK &&
	    vd_informer_synced_wait(informer, VD_SECONDS(5)) == VD_OK &&
	    vd_cacher_put_wait(cacher, hall, lamp, vd_bytes_of(second), NULL, error) == VD_OK &&
	    vd_cacher_delete_wait(cacher, hall, lamp, NULL, error) == VD_OK) {
		sem_wait(&removed);
		failed = 0;
	}
	vd_informer_close_wait(informer);
	vd_cacher_close_wait(cacher);
	return failed;
}

int main(void)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_error	       error = { 0 };
	struct vd_env	      *env = NULL;
	struct vd_store	      *store = NULL;
	struct vd_codec	      *codec = NULL;
	int		       failed = 1;

	if (vd_env_new_threads(NULL, &env) == VD_OK &&
	    vd_store_open_mvcc(env, &options, &store, &error) == VD_OK &&
	    vd_codec_json_new(NULL, 0, &codec, &error) == VD_OK)
		failed = run(env, store, codec, &error);
	if (failed)
		fprintf(stderr, "vedette: %s\n", error.message);
	vd_codec_free(codec);
	vd_store_close_wait(store);
	vd_env_free(env);
	return failed;
}
