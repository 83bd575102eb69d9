/* Ends in the wrong order, and twice: the program stops with a sentence that names what is open and how it is
 * closed. */
#include "misuse.h"

#include <vedette/etcd.h>
#include <vedette/poller.h>

#include "actor_sim.h"
#include "expect_panic.h"

static struct misuse_world w;

static struct vd_watcher *watch_pods(const struct vd_watch_sink *sink)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watcher      *watcher;

	assert_status(vd_cacher_watch(w.pods, &options, sink, &watcher, NULL), VD_OK);
	return watcher;
}

static void close_all_but_watchers(void)
{
	vd_cacher_close_wait(w.pods);
	vd_cacher_close_wait(w.nodes);
	vd_codec_free(w.codec);
	vd_store_close_wait(w.store);
}

/* ---- Too early ---- */

static void store_before_its_cachers(void)
{
	misuse_world_init(&w);
	vd_store_close_wait(w.store);
}

static void store_before_a_cacher_with_watchers(void)
{
	misuse_world_init(&w);
	vd_cacher_close_wait(w.nodes);
	watch_pods(NULL);
	watch_pods(NULL);
	vd_store_close(w.store, NULL, NULL);
}

static void codec_before_its_cachers(void)
{
	misuse_world_init(&w);
	vd_cacher_close_wait(w.nodes);
	vd_codec_free(w.codec);
}

static void env_before_its_cachers(void)
{
	misuse_world_init(&w);
	vd_env_free(w.env);
}

static void env_before_its_store(void)
{
	misuse_world_init(&w);
	vd_cacher_close_wait(w.pods);
	vd_cacher_close_wait(w.nodes);
	vd_env_free(w.env);
}

static void env_before_an_informer(void)
{
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;

	misuse_world_init(&w);
	assert_status(vd_informer_open(w.pods, &options, &informer, NULL), VD_OK);
	close_all_but_watchers();
	vd_env_free(w.env);
}

static void env_before_a_poller(void)
{
	struct vd_poller *poller;

	misuse_world_init(&w);
	assert_status(vd_poller_new(w.env, &poller), VD_OK);
	close_all_but_watchers();
	vd_env_free(w.env);
}

static void no_run(void *arg)
{
	(void) arg;
}

static void env_before_an_actor(void)
{
	struct vd_actor_options options = { .name = "mine", .run = no_run };
	struct vd_actor	       *actor;

	misuse_world_init(&w);
	assert_status(vd_actor_new(w.env, &options, &actor), VD_OK);
	close_all_but_watchers();
	vd_env_free(w.env);
}

static void env_before_a_server(void)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct vd_server	*server;

	misuse_world_init(&w);
	options.listen = "127.0.0.1:0";
	options.threads = 1;
	assert_status(vd_server_new(w.env, w.store, &options, &server, &w.error), VD_OK);
	vd_cacher_close_wait(w.pods);
	vd_cacher_close_wait(w.nodes);
	vd_store_close_wait(w.store);
}

static void player_before_its_cachers(void)
{
	struct vd_player_options player_options = VD_PLAYER_OPTIONS_INIT;
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	struct vd_player	*player;
	struct vd_cacher	*cacher;
	char			 path[] = "/tmp/misuse-log-XXXXXX";
	int			 fd = mkstemp(path);

	misuse_world_init(&w);
	assert_int_equal(write(fd, "{\"vedetteLog\":1}\n", 17), 17);
	close(fd);
	player_options.path = path;
	assert_status(vd_player_open(w.env, &player_options, &player, &w.error), VD_OK);
	unlink(path);
	options.resource = "replayed";
	options.key_prefix = "/registry/pods/";
	options.codec = w.codec;
	assert_status(vd_cacher_new(w.env, vd_player_store(player), &options, &cacher, &w.error), VD_OK);
	vd_player_close_wait(player);
}

/* ---- Forgotten ---- */

static void forgotten_watcher(void)
{
	misuse_world_init(&w);
	watch_pods(NULL);
	close_all_but_watchers();
	vd_env_free(w.env);
}

static size_t take_all(void *arg, const struct vd_watch_event *events, size_t count)
{
	(void) arg, (void) events;
	return count;
}

static void no_end(void *arg, vd_status reason)
{
	(void) arg, (void) reason;
}

static void forgotten_watchers(void)
{
	struct vd_watch_sink sink = { .deliver = take_all, .ended = no_end };

	misuse_world_init(&w);
	watch_pods(&sink);
	watch_pods(NULL);
	vd_watcher_close(watch_pods(NULL), NULL, NULL);
	close_all_but_watchers();
	vd_env_free(w.env);
}

static void forgotten_watcher_in_a_simulation(void)
{
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	struct vd_watch_options	 watch = VD_WATCH_OPTIONS_INIT;
	struct vd_watcher	*watcher;
	struct vd_cacher	*cacher;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &w.env), VD_OK);
	assert_status(vd_store_open_mvcc(w.env, NULL, &w.store, NULL), VD_OK);
	assert_status(vd_codec_json_new(NULL, 0, &w.codec, NULL), VD_OK);
	options.resource = "pods";
	options.key_prefix = "/registry/pods/";
	options.codec = w.codec;
	assert_status(vd_cacher_new(w.env, w.store, &options, &cacher, NULL), VD_OK);
	assert_status(vd_cacher_ready_wait(cacher, VD_SECONDS(10), NULL), VD_OK);
	assert_status(vd_cacher_watch(cacher, &watch, NULL, &watcher, NULL), VD_OK);
	vd_cacher_close_wait(cacher);
	vd_store_close_wait(w.store);
	vd_env_free(w.env);
}

static void no_ready(void *arg)
{
	(void) arg;
}

static struct vd_store_watch *watch_store(struct vd_store *store)
{
	struct vd_store_watch_request request = { .key = { "k", 1 }, .ready = no_ready };
	struct vd_store_watch	     *watch;

	assert_status(vd_store_watch_open(store, &request, &watch, &w.error), VD_OK);
	return watch;
}

static void forgotten_watches_of_a_store(void)
{
	misuse_world_init(&w);
	watch_store(w.store);
	watch_store(w.store);
	vd_store_watch_close(watch_store(w.store));
	close_all_but_watchers();
	vd_env_free(w.env);
}

static void env_before_a_store_with_a_watch(void)
{
	misuse_world_init(&w);
	vd_cacher_close_wait(w.pods);
	vd_cacher_close_wait(w.nodes);
	watch_store(w.store);
	vd_env_free(w.env);
}

#if VDI_ETCD
static const char *const nobody = "http://127.0.0.1:1";

static void forgotten_watch_of_an_etcd_store(void)
{
	struct vd_etcd_options	     etcd = VD_ETCD_OPTIONS_INIT;
	struct vd_etcd_store_options options = VD_ETCD_STORE_OPTIONS_INIT;
	struct vd_store		    *store;

	misuse_world_init(&w);
	etcd.endpoints = &nobody;
	etcd.endpoint_count = 1;
	options.etcd = &etcd;
	options.start_timeout = VD_SECONDS(0);
	assert_status(vd_store_open_etcd(w.env, &options, &store, &w.error), VD_OK);
	watch_store(store);
	vd_store_close_wait(store);
	close_all_but_watchers();
	vd_env_free(w.env);
}

static struct vd_etcd *new_client(void)
{
	struct vd_etcd_options options = VD_ETCD_OPTIONS_INIT;
	struct vd_etcd	      *client;

	options.endpoints = &nobody;
	options.endpoint_count = 1;
	assert_status(vd_etcd_open(w.env, &options, &client, &w.error), VD_OK);
	return client;
}

static struct vd_etcd_watch *watch_etcd(struct vd_etcd *client)
{
	struct vd_etcd_watch_request request = { .key = { "k", 1 }, .ready = no_ready };
	struct vd_etcd_watch	    *watch;

	assert_status(vd_etcd_watch_open(client, &request, &watch, &w.error), VD_OK);
	return watch;
}

static void forgotten_watches_of_an_etcd_client(void)
{
	struct vd_etcd *client;

	misuse_world_init(&w);
	client = new_client();
	watch_etcd(client);
	vd_etcd_watch_close(watch_etcd(client));
	watch_etcd(client);
	vd_etcd_close_wait(client);
	close_all_but_watchers();
	vd_env_free(w.env);
}
#endif

/* ---- Twice ---- */

static void cacher_closed_twice(void)
{
	misuse_world_init(&w);
	watch_pods(NULL); /* it keeps the cacher's memory */
	vd_cacher_close(w.pods, NULL, NULL);
	vd_cacher_close(w.pods, NULL, NULL);
}

static void watcher_closed_twice(void)
{
	struct vd_watch_sink sink = { .deliver = take_all, .ended = no_end };
	struct vd_poller    *poller;
	struct vd_watcher   *watcher;

	misuse_world_init(&w);
	assert_status(vd_poller_new(w.env, &poller), VD_OK);
	sink.executor = vd_poller_executor(poller); /* nobody runs it, so the watcher stays */
	watcher = watch_pods(&sink);
	vd_watcher_close(watcher, NULL, NULL);
	vd_watcher_close(watcher, NULL, NULL);
}

static void informer_closed_twice(void)
{
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;
	struct vd_poller	  *poller;

	misuse_world_init(&w);
	assert_status(vd_poller_new(w.env, &poller), VD_OK);
	options.executor = vd_poller_executor(poller);
	assert_status(vd_informer_open(w.pods, &options, &informer, NULL), VD_OK);
	vd_informer_close(informer, NULL, NULL);
	vd_informer_close(informer, NULL, NULL);
}

static struct vd_poller *running_poller;

static void run_again(void *arg)
{
	(void) arg;
	vd_poller_run(running_poller);
}

static void poller_inside_itself(void)
{
	struct vd_actor_options options = { .name = "mine", .run = run_again };
	struct vd_actor	       *actor;

	misuse_world_init(&w);
	assert_status(vd_poller_new(w.env, &running_poller), VD_OK);
	assert_status(vd_executor_actor_new(vd_poller_executor(running_poller), &options, &actor), VD_OK);
	vd_actor_wake(actor);
	vd_poller_run(running_poller);
}

static void poller_before_its_watchers(void)
{
	struct vd_watch_sink sink = { .deliver = take_all, .ended = no_end };
	struct vd_poller    *poller;

	misuse_world_init(&w);
	assert_status(vd_poller_new(w.env, &poller), VD_OK);
	sink.executor = vd_poller_executor(poller);
	watch_pods(&sink);
	vd_poller_free(poller);
}

static const struct end {
	const char *name;
	void (*commit)(void);
	const char *sentence;
} ends[] = {
#define END(name, sentence)                                                                                  \
	{                                                                                                    \
#name, name, sentence                                                                        \
	}
	END(store_before_its_cachers, "vedette: misuse: vd_store_close: cacher nodes is open: close with "
				      "vd_cacher_close; cacher pods is open: close with vd_cacher_close\n"),
	END(store_before_a_cacher_with_watchers, "vd_store_close: 2 watchers of cacher pods are open: close "
						 "with vd_watcher_close; cacher pods is open"),
	END(codec_before_its_cachers, "vd_codec_free: cacher pods is open: close with vd_cacher_close\n"),
	END(env_before_its_cachers, "vd_env_free: cacher nodes is open: close with vd_cacher_close; cacher "
				    "pods is open: close with vd_cacher_close; store is open"),
	END(env_before_its_store, "vd_env_free: store is open: close with vd_store_close\n"),
	END(env_before_an_informer, "vd_env_free: informer of pods is open: close with vd_informer_close"),
	END(env_before_a_poller, "vd_env_free: poller is open: close with vd_poller_free\n"),
	END(env_before_an_actor, "vd_env_free: 1 actors are still open; close them with vd_actor_close\n"),
	END(env_before_a_server, "vd_store_close: server http://127.0.0.1:"),
	END(player_before_its_cachers,
	    "vd_player_close: cacher replayed is open: close with vd_cacher_close\n"),
	END(forgotten_watcher,
	    "vd_env_free: 1 watcher of cacher pods is open: close with vd_watcher_close\n"),
	END(forgotten_watchers,
	    "vd_env_free: 2 watchers of cacher pods are open: close with vd_watcher_close\n"),
	END(forgotten_watcher_in_a_simulation,
	    "vd_env_free: 1 watcher of cacher pods is open: close with vd_watcher_close\n"),
	END(forgotten_watches_of_a_store,
	    "vd_env_free: 2 watches of store are open: close with vd_store_watch_close\n"),
	END(env_before_a_store_with_a_watch, "vd_env_free: store is open: close with vd_store_close\n"),
#if VDI_ETCD
	END(forgotten_watch_of_an_etcd_store,
	    "vd_env_free: 1 watch of store etcd is open: close with vd_store_watch_close\n"),
	END(forgotten_watches_of_an_etcd_client,
	    "vd_env_free: 2 watches of etcd client are open: close with vd_etcd_watch_close\n"),
#endif
	END(cacher_closed_twice, "vd_cacher_close: cacher pods is closing already\n"),
	END(watcher_closed_twice, "vd_watcher_close: this watcher of cacher pods is closed already\n"),
	END(informer_closed_twice, "vd_informer_close: the informer of pods is closing already\n"),
	END(poller_inside_itself, "vd_poller_run: the poller is already running"),
	END(poller_before_its_watchers,
	    "vd_poller_free: 1 watchers, informers and actors are still open on the poller"),
};

static void run_one(void **state)
{
	const struct end *end = *state;

	expect_panic(end->commit, end->sentence);
}

/* ---- What may be freed late ---- */

static void a_watch_may_be_closed_after_its_store(void **state)
{
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;

	(void) state;
	misuse_world_init(&w);
	watch = watch_store(w.store);
	close_all_but_watchers();
	assert_status(vd_store_watch_next(watch, 1, &batch, &w.error), VD_CLOSED);
	vd_store_watch_close(watch);
#if VDI_ETCD
	struct vd_etcd	     *client = new_client();
	struct vd_etcd_watch *etcd_watch = watch_etcd(client);

	vd_etcd_close_wait(client);
	vd_etcd_watch_close(etcd_watch);
#endif
	vd_env_free(w.env);
}

static void a_list_outlives_its_env(void **state)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_list	      *walked, *gathered, *stored;
	struct vd_object      *object;

	(void) state;
	misuse_world_init(&w);
	assert_status(vd_cacher_list_wait(w.pods, &options, &walked, NULL), VD_OK);
	options.limit = 1;
	assert_status(vd_cacher_list_wait(w.pods, &options, &gathered, NULL), VD_OK);
	options.limit = 0;
	options.revision = vd_list_revision(walked);
	options.match = VD_MATCH_EXACT;
	options.namespace_name = vd_bytes_of("ns");
	options.name = vd_bytes_of("a"); /* of one key: from the store */
	assert_status(vd_cacher_list_wait(w.pods, &options, &stored, NULL), VD_OK);
	object = vd_object_ref(vd_list_next(gathered));
	misuse_world_fini(&w);
	assert_non_null(vd_list_next(walked));
	assert_null(vd_list_next(walked));
	assert_non_null(vd_list_next(stored));
	vd_list_free(walked);
	vd_list_free(gathered);
	vd_list_free(stored);
	assert_true(vd_bytes_equal(vd_object_name(object), vd_bytes_of("a")));
	vd_object_unref(object);
}

static void changes_outlive_their_env(void **state)
{
	struct vd_changes_options options = VD_CHANGES_OPTIONS_INIT;
	struct vd_list_options	  list_options = VD_LIST_OPTIONS_INIT;
	struct vd_changes	 *changes;
	struct vd_list		 *list;

	(void) state;
	misuse_world_init(&w);
	list_options.revision = VD_REVISION_UNSET; /* as new as the store: then the history has the put */
	assert_status(vd_cacher_list_wait(w.pods, &list_options, &list, NULL), VD_OK);
	vd_list_free(list);
	assert_status(vd_cacher_changes(w.pods, &options, &changes, NULL), VD_OK);
	misuse_world_fini(&w);
	assert_int_equal(vd_changes_count(changes), 1);
	assert_non_null(vd_changes_at(changes, 0).object);
	vd_changes_free(changes);
}

/* The watcher outlives its cacher, the store and the codec, but not the env. */
static void a_watcher_outlives_its_cacher(void **state)
{
	struct vd_watcher    *watcher;
	struct vd_watch_event event;

	(void) state;
	misuse_world_init(&w);
	watcher = watch_pods(NULL);
	close_all_but_watchers();
	while (vd_watcher_next(watcher, &event) == VD_OK)
		continue;
	assert_status(vd_watcher_next(watcher, &event), VD_CLOSED);
	vd_watcher_close(watcher, NULL, NULL);
	vd_env_free(w.env);
}

int main(void)
{
	struct CMUnitTest	misuses[VDI_ARRAY_SIZE(ends)];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_watch_may_be_closed_after_its_store),
		cmocka_unit_test(a_list_outlives_its_env),
		cmocka_unit_test(changes_outlive_their_env),
		cmocka_unit_test(a_watcher_outlives_its_cacher),
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(ends); i++)
		misuses[i] = (struct CMUnitTest) { ends[i].name, run_one, NULL, NULL,
						   (void *) (uintptr_t) &ends[i] };
	return cmocka_run_group_tests(misuses, NULL, NULL) + cmocka_run_group_tests(tests, NULL, NULL);
}
