/* The embedded store, a Cacher over it, and a watch by label, in one small program.
 *
 *   cc embed.c $(pkg-config --cflags --libs vedette) && ./a.out
 */
#include <stdio.h>
#include <vedette/vedette.h>

static void put(struct vd_cacher *cacher, const char *name, const char *app, int number)
{
	char json[256];

	snprintf(json, sizeof json,
		 "{\"kind\":\"Job\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"a\","
		 "\"labels\":{\"app\":\"%s\"}},\"n\":%d}",
		 name, app, number);
	if (vd_cacher_put_wait(cacher, vd_bytes_of("a"), vd_bytes_of(name), vd_bytes_of(json), NULL, NULL) !=
	    VD_OK)
		fprintf(stderr, "%s was not written\n", name);
}

int main(void)
{
	struct vd_mvcc_options	 store_options = VD_MVCC_OPTIONS_INIT; /* data_dir = "..." makes it durable */
	struct vd_cacher_options cacher_options = VD_CACHER_OPTIONS_INIT;
	struct vd_watch_options	 watch_options = VD_WATCH_OPTIONS_INIT;
	struct vd_error		 error = { 0 };
	struct vd_env		*env = NULL;
	struct vd_store		*store = NULL;
	struct vd_cacher	*cacher = NULL;
	struct vd_watcher	*watcher = NULL;
	struct vd_watch_event	 event;

	cacher_options.resource = "jobs";
	cacher_options.key_prefix = "/registry/jobs/";
	watch_options.label_selector = vd_bytes_of("app=web");
	if (vd_env_new_threads(NULL, &env) != VD_OK ||
	    vd_store_open_mvcc(env, &store_options, &store, &error) != VD_OK ||
	    vd_codec_json_new(NULL, 0, &cacher_options.codec, &error) != VD_OK ||
	    vd_cacher_new(env, store, &cacher_options, &cacher, &error) != VD_OK ||
	    vd_cacher_ready_wait(cacher, VD_SECONDS(5), &error) != VD_OK) {
		fprintf(stderr, "vedette: %s\n", error.message);
		return 1;
	}
	/* deliver every later change, without the present state first */
	watch_options.revision = vd_cacher_revision(cacher);
	if (vd_cacher_watch(cacher, &watch_options, NULL, &watcher, &error) != VD_OK) {
		fprintf(stderr, "vedette: %s\n", error.message);
		return 1;
	}
	put(cacher, "one", "web", 1);
	put(cacher, "two", "db", 2);  /* does not match */
	put(cacher, "one", "web", 3); /* changed */
	put(cacher, "one", "db", 4);  /* no longer matches: DELETED for this watch */
	for (int seen = 0; seen < 3 && vd_watcher_wait(watcher, VD_SECONDS(5)) == VD_OK;)
		for (; vd_watcher_next(watcher, &event) == VD_OK; seen++)
			printf("%-8s %.*s at revision %lld\n", vd_watch_type_name(event.type),
			       (int) vd_object_name(event.object).size,
			       (const char *) vd_object_name(event.object).data, (long long) event.revision);
	vd_watcher_close(watcher, NULL, NULL);
	vd_cacher_close_wait(cacher);
	vd_codec_free(cacher_options.codec);
	vd_store_close_wait(store);
	vd_env_free(env);
	return 0;
}
