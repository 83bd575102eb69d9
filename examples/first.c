#include <stdio.h>
#include <vedette/vedette.h>

int main(void)
{
	struct vd_mvcc_options	 in_memory = VD_MVCC_OPTIONS_INIT; /* .data_dir = "data" makes it durable */
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	struct vd_watch_options	 all = VD_WATCH_OPTIONS_INIT;
	struct vd_bytes		 hall = vd_bytes_of("hall"), lamp = vd_bytes_of("lamp");
	struct vd_bytes	      json = vd_bytes_of("{\"metadata\":{\"name\":\"lamp\",\"namespace\":\"hall\"}}");
	struct vd_env	     *env;
	struct vd_store	     *store;
	struct vd_cacher     *cacher;
	struct vd_watcher    *watcher;
	struct vd_watch_event event;

	options.resource = "devices";
	options.key_prefix = "/registry/devices/";
	if (vd_env_new_threads(NULL, &env) || vd_store_open_mvcc(env, &in_memory, &store, NULL) ||
	    vd_codec_json_new(NULL, 0, &options.codec, NULL) ||
	    vd_cacher_new(env, store, &options, &cacher, NULL) ||
	    vd_cacher_ready_wait(cacher, VD_SECONDS(5), NULL) ||
	    vd_cacher_watch(cacher, &all, NULL, &watcher, NULL) ||
	    vd_cacher_put_wait(cacher, hall, lamp, json, NULL, NULL) ||
	    vd_watcher_wait(watcher, VD_SECONDS(5)) || vd_watcher_next(watcher, &event))
		return 1;
	printf("%s at revision %lld\n", vd_watch_type_name(event.type), (long long) event.revision);
	vd_watcher_close(watcher, NULL, NULL);
	vd_cacher_close_wait(cacher);
	vd_codec_free(options.codec);
	vd_store_close_wait(store);
	vd_env_free(env);
	return 0;
}
