/* Informers: handlers see what is and what changes, once, in order; after a loss of history they see the
 * difference. */
#include <poll.h>

#include <vedette/informer.h>
#include <vedette/poller.h>

#include "cacher.h"
#include "cacher_fixture.h"
#include "env.h"
#include "feed_store.h"
#include "informer_notes.h"

static void r350_r352_handlers_see_every_change_in_order(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct cacher_fixture	   f;
		struct informer_notes	   seen = { 0 };
		struct vd_informer_handler handler = informer_noting(&seen);
		struct vd_informer	  *informer;
		struct vd_object	  *object;
		struct vd_error		   error;

		cacher_fixture_setup(&f, seed);
		put_pod(&f, "ns", "a", "web", NULL);
		put_pod(&f, "ns", "b", "db", NULL);
		cacher_fixture_settle(&f);
		assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, vd_bytes_of("app in ("), VD_BYTES_NONE,
					      &handler, &informer, &error),
			      VD_BAD_REQUEST);
		assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, vd_bytes_of("app=web"), VD_BYTES_NONE,
					      &handler, &informer, &error),
			      VD_OK);
		seen.informer = seed % 2 ? informer : NULL; /* one change after the other, or all at once */
		assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
		put_pod(&f, "ns", "b", "web", NULL);
		if (seed % 2)
			cacher_fixture_settle(&f);
		put_pod(&f, "ns", "a", "web", "n1");
		if (seed % 2)
			cacher_fixture_settle(&f);
		put_pod(&f, "ns", "a", "db", NULL);
		if (seed % 2)
			cacher_fixture_settle(&f);
		delete_pod(&f, "ns", "b");
		put_pod(&f, "ns", "c", "web", NULL);
		cacher_fixture_settle(&f);
		assert_string_equal(seen.text, "*a +b ~a -a -b +c ");
		assert_int_equal(seen.synced, 1);
		assert_int_equal(vd_informer_count(informer), 1);
		object = vd_informer_get(informer, vd_bytes_of("ns"), vd_bytes_of("c"));
		assert_non_null(object);
		vd_object_unref(object);
		assert_null(vd_informer_get(informer, vd_bytes_of("ns"), vd_bytes_of("a")));
		vd_informer_close_wait(informer);
		seen.is_closed = true;
		put_pod(&f, "ns", "d", "web", NULL);
		cacher_fixture_settle(&f);
		cacher_fixture_teardown(&f);
	}
}

/* The store lost its history: the cacher lists again, all watches end, and what was deleted meanwhile is told
 * as such. */
static void r351_a_relist_tells_the_difference(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct cacher_fixture	   f;
		struct informer_notes	   seen = { 0 };
		struct vd_informer_handler handler = informer_noting(&seen);
		struct vd_informer	  *informer;
		struct vd_store		  *feed;
		struct vd_error		   error;

		cacher_fixture_init(&f, seed);
		f.options.no_backfill = true;
		feed = feed_store_new(f.env);
		feed_put(feed, "/registry/pods/ns/a", "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"}}");
		feed_put(feed, "/registry/pods/ns/b", "{\"metadata\":{\"name\":\"b\",\"namespace\":\"ns\"}}");
		cacher_fixture_open(&f, feed);
		assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler,
					      &informer, &error),
			      VD_OK);
		assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
		feed_break(feed, VD_EXPIRED);
		cacher_fixture_settle(&f);
		assert_status(vd_cacher_ready(f.cacher, &error), VD_NOT_READY);
		assert_int_equal(error.retry_after_s, 1);
		feed_delete(feed, "/registry/pods/ns/a");
		feed_put(feed, "/registry/pods/ns/b",
			 "{\"metadata\":{\"name\":\"b\",\"namespace\":\"ns\"},\"x\":1}");
		feed_put(feed, "/registry/pods/ns/c", "{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\"}}");
		vdi_sim_advance(f.env, VD_SECONDS(20));
		assert_string_equal(seen.text, "*a *b ~b +c ?a ");
		assert_int_equal(seen.synced, 1);
		vd_informer_close_wait(informer);
		f.cacher = vd_cacher_close_wait(f.cacher);
		feed_store_free(feed);
		cacher_fixture_teardown(&f);
	}
}

static bool is_synced(void *arg)
{
	return ((struct informer_notes *) arg)->synced > 0;
}

/* One that is there before its cache is does not sit out the second after which a watch is opened again; nor
 * does it miss the end of such a cache. */
static void an_informer_of_a_cache_that_fills(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct cacher_fixture	   f;
		struct informer_notes	   seen = { 0 };
		struct vd_informer_handler handler = informer_noting(&seen);
		struct vd_informer	  *informer;
		struct vd_error		   error;

		cacher_fixture_setup(&f, seed);
		put_pod(&f, "ns", "a", "web", NULL);
		cacher_fixture_settle(&f);
		f.cacher = vd_cacher_close_wait(f.cacher);
		assert_status(vd_cacher_new(f.env, f.store, &f.options, &f.cacher, &error), VD_OK);
		assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler,
					      &informer, &error),
			      VD_OK);
		if (seed % 4)
			assert_true(vdi_sim_run_until(f.env, is_synced, &seen, VD_MS(500)));
		vd_informer_close_wait(informer);
		cacher_fixture_teardown(&f);
	}
}

static const char *taken(struct informer_notes *seen)
{
	static char text[4096];

	strcpy(text, seen->text);
	seen->text[0] = 0;
	return text;
}

/* whoever comes later gets an add for everything first, in key order, then the same as the others; and
 * a synced of its own. */
static void r354_handlers_added_late(void **state)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct cacher_fixture	   f;
		struct informer_notes	   first = { 0 }, second = { 0 }, third = { 0 };
		struct vd_informer_handler handlers[] = { informer_noting(&first), informer_noting(&second),
							  informer_noting(&third) };
		struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
		struct vd_informer_registration *registration;
		struct vd_informer		*informer;
		struct vd_error			 error;

		cacher_fixture_setup(&f, seed);
		put_pod(&f, "ns", "b", "web", NULL);
		put_pod(&f, "ns", "a", "web", NULL);
		cacher_fixture_settle(&f);
		assert_status(vd_informer_open(f.cacher, &options, &informer, &error), VD_OK);
		/* Before the fill, for some seeds: then it is told with it. */
		if (seed % 2)
			assert_status(vd_informer_add_handler(informer, &handlers[0], NULL, &error), VD_OK);
		assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
		if (seed % 2 == 0)
			assert_status(vd_informer_add_handler(informer, &handlers[0], NULL, &error), VD_OK);
		cacher_fixture_settle(&f);
		assert_string_equal(taken(&first), "*a *b ");
		assert_int_equal(first.synced, 1);
		put_pod(&f, "ns", "c", "web", NULL);
		delete_pod(&f, "ns", "a");
		cacher_fixture_settle(&f);
		assert_status(vd_informer_add_handler(informer, &handlers[1], &registration, &error), VD_OK);
		assert_status(vd_informer_add_handler(informer, &handlers[2], NULL, &error), VD_OK);
		cacher_fixture_settle(&f);
		assert_string_equal(taken(&first), "+c -a ");
		assert_string_equal(taken(&second), "*b *c ");
		assert_string_equal(taken(&third), "*b *c ");
		assert_int_equal(second.synced, 1);
		put_pod(&f, "ns", "b", "db", NULL);
		put_pod(&f, "ns", "d", "db", NULL);
		cacher_fixture_settle(&f);
		assert_string_equal(taken(&first), "~b +d ");
		assert_string_equal(taken(&second), "~b +d ");
		/* One goes; the others stay. */
		vd_informer_remove_handler(informer, registration, informer_note_synced, &second);
		cacher_fixture_settle(&f);
		assert_int_equal(second.synced, 2); /* done was called */
		second.is_closed = true;
		delete_pod(&f, "ns", "d");
		cacher_fixture_settle(&f);
		assert_string_equal(taken(&first), "-d ");
		assert_string_equal(taken(&third), "~b +d -d ");
		assert_int_equal(first.synced, 1);
		vd_informer_close_wait(informer);
		cacher_fixture_teardown(&f);
	}
}

struct remover {
	struct vd_informer		*informer;
	struct vd_informer_registration *registration;
	unsigned			 calls, done;
};

static void removed(void *arg)
{
	((struct remover *) arg)->done++;
}

static void remove_myself(void *arg, struct vd_object *object, bool initial)
{
	struct remover *remover = arg;

	remover->calls++;
	vd_informer_remove_handler(remover->informer, remover->registration, removed, remover);
}

static void r354_a_handler_may_remove_itself(void **state)
{
	struct cacher_fixture	   f;
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct remover		   remover = { 0 };
	struct vd_informer_handler handler = { .add = remove_myself, .arg = &remover };
	struct vd_error		   error;

	cacher_fixture_setup(&f, 3);
	put_pod(&f, "ns", "a", NULL, NULL);
	put_pod(&f, "ns", "b", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_status(vd_informer_open(f.cacher, &options, &remover.informer, &error), VD_OK);
	cacher_fixture_settle(&f);
	assert_status(vd_informer_add_handler(remover.informer, &handler, &remover.registration, &error),
		      VD_OK);
	cacher_fixture_settle(&f);
	assert_int_equal(remover.calls, 1);
	assert_int_equal(remover.done, 1);
	/* One that is removed and whose informer is closed before it was noticed is told too. */
	remover.calls = remover.done = 0;
	assert_status(vd_informer_add_handler(remover.informer, &handler, &remover.registration, &error),
		      VD_OK);
	vd_informer_remove_handler(remover.informer, remover.registration, removed, &remover);
	vd_informer_close_wait(remover.informer);
	assert_int_equal(remover.calls, 0);
	assert_int_equal(remover.done, 1);
	cacher_fixture_teardown(&f);
}

/* everything again, as an update of an object by itself, for those who asked; nobody else hears
 * of it. */
static void r353_r355_resync(void **state)
{
	struct cacher_fixture	   f;
	struct informer_notes	   plain = { 0 }, periodic = { 0 };
	struct vd_informer_handler handlers[] = { informer_noting(&plain), informer_noting(&periodic) };
	struct vd_informer	  *informer;
	struct vd_error		   error;

	cacher_fixture_setup(&f, 4);
	put_pod(&f, "ns", "a", NULL, NULL);
	put_pod(&f, "ns", "b", NULL, NULL);
	cacher_fixture_settle(&f);
	handlers[1].resync_period = VD_MS(999);
	assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handlers[0],
				      &informer, &error),
		      VD_OK);
	assert_status(vd_informer_add_handler(informer, &handlers[1], NULL, &error), VD_INVALID_ARGUMENT);
	handlers[1].resync_period = VD_SECONDS(10);
	assert_status(vd_informer_add_handler(informer, &handlers[1], NULL, &error), VD_OK);
	vdi_sim_advance(f.env, VD_MS(9900));
	assert_string_equal(taken(&periodic), "*a *b ");
	vdi_sim_advance(f.env, VD_MS(200));
	assert_string_equal(taken(&periodic), "=a =b ");
	put_pod(&f, "ns", "c", NULL, NULL);
	vdi_sim_advance(f.env, VD_MS(9700));
	assert_string_equal(taken(&periodic), "+c ");
	vdi_sim_advance(f.env, VD_MS(300));
	assert_string_equal(taken(&periodic), "=a =b =c ");
	assert_string_equal(taken(&plain), "*a *b +c ");
	vd_informer_close_wait(informer);
	cacher_fixture_teardown(&f);
}

struct order {
	unsigned adds, adds_at_synced, synced;
};

static void count_add(void *arg, struct vd_object *object, bool initial)
{
	(void) object;
	((struct order *) arg)->adds++;
	assert_int_equal(initial, ((struct order *) arg)->synced == 0);
}

static void order_synced(void *arg)
{
	struct order *order = arg;

	order->synced++;
	order->adds_at_synced = order->adds;
}

/* Synced means that the whole first state was handed over: it is told once, behind the last of it, also when
 * the state is empty; what comes later is not initial. */
static void r355_synced_is_behind_the_first_state(void **state)
{
	for (unsigned count = 0; count <= 2400; count = count * 60 + 40) {
		struct cacher_fixture	   f;
		struct order		   order = { 0 };
		struct vd_informer_handler handler = { .add = count_add,
						       .synced = order_synced,
						       .arg = &order };
		struct vd_informer	  *informer;
		struct vd_error		   error;
		char			   name[16];

		cacher_fixture_setup(&f, 6);
		for (unsigned i = 0; i < count; i++) {
			snprintf(name, sizeof name, "p%04u", i);
			put_pod(&f, "ns", name, NULL, NULL);
		}
		cacher_fixture_settle(&f);
		assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler,
					      &informer, &error),
			      VD_OK);
		while (order.synced == 0)
			if (!vdi_sim_step(f.env))
				(void) vdi_sim_advance_to_next_timer(f.env);
		assert_int_equal(order.adds_at_synced, count);
		put_pod(&f, "ns", "later", NULL, NULL);
		cacher_fixture_settle(&f);
		assert_int_equal(order.adds, count + 1);
		assert_int_equal(order.synced, 1);
		vd_informer_close_wait(informer);
		cacher_fixture_teardown(&f);
	}
}

/* a bookmark moves the place from which the watch goes on, and nobody is called. */
static void r356_bookmarks_move_the_place(void **state)
{
	struct cacher_fixture	   f;
	struct informer_notes	   seen = { 0 };
	struct vd_informer_handler handler = informer_noting(&seen);
	struct vd_informer	  *informer;
	struct vd_store		  *feed;
	struct vd_error		   error;

	cacher_fixture_init(&f, 5);
	f.options.no_backfill = true;
	feed = feed_store_new(f.env);
	feed_put(feed, "/registry/pods/ns/a", "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"}}");
	cacher_fixture_open(&f, feed);
	assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler,
				      &informer, &error),
		      VD_OK);
	assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
	assert_int_equal(vd_informer_revision(informer), 2);
	for (unsigned i = 0; i < 5; i++)
		feed_progress(feed);
	vdi_sim_advance(f.env, VD_SECONDS(70));
	assert_int_equal(vd_informer_revision(informer), 7);
	assert_string_equal(taken(&seen), "*a ");
	/* The cache starts over at 7: from there nothing was missed, so it is resumed and not listed
	 * again. */
	feed_break(feed, VD_EXPIRED);
	vdi_sim_advance(f.env, VD_SECONDS(10));
	feed_put(feed, "/registry/pods/ns/b", "{\"metadata\":{\"name\":\"b\",\"namespace\":\"ns\"}}");
	vdi_sim_advance(f.env, VD_SECONDS(10));
	assert_string_equal(taken(&seen), "+b ");
	assert_int_equal(vdi_metric_value(f.cacher->metrics.ends[VDI_END_EXPIRED]), 0);
	vd_informer_close_wait(informer);
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
}

struct owner {
	pthread_t	 thread;
	struct vd_actor *actor;
	unsigned	 calls;
	bool		 is_synced, is_gone;
};

static void owned_add(void *arg, struct vd_object *object, bool initial)
{
	struct owner *owner = arg;

	assert_true(pthread_equal(owner->thread, pthread_self()));
	owner->calls++;
}

static void owned_synced(void *arg)
{
	((struct owner *) arg)->is_synced = true;
}

static void wake_owner(void *arg)
{
	vd_actor_wake(((struct owner *) arg)->actor);
}

static void owned_gone(void *arg)
{
	((struct owner *) arg)->is_gone = true;
}

static void turn(struct vd_poller *poller)
{
	struct pollfd fd = { vd_poller_fd(poller), POLLIN, 0 };

	assert_true(poll(&fd, 1, 30000) == 1);
	vd_poller_run(poller);
}

static void an_informer_on_the_callers_own_loop(void **state)
{
	struct owner		   owner = { .thread = pthread_self() };
	struct vd_informer_handler handler = { .add = owned_add, .synced = owned_synced, .arg = &owner };
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_cacher_options   cacher_options = VD_CACHER_OPTIONS_INIT;
	struct vd_mvcc_options	   mvcc = VD_MVCC_OPTIONS_INIT;
	struct vd_actor_options	   actor = { .name = "owner", .run = owned_gone };
	struct vd_poller	  *poller;
	struct vd_informer	  *informer;
	struct vd_cacher	  *cacher;
	struct vd_store		  *store;
	struct vd_codec		  *codec;
	struct vd_env		  *env;
	struct vd_error		   error;

	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	assert_status(vd_store_open_mvcc(env, &mvcc, &store, &error), VD_OK);
	assert_status(vd_codec_json_new(NULL, 0, &codec, &error), VD_OK);
	assert_status(vd_poller_new(env, &poller), VD_OK);
	cacher_options.resource = "pods";
	cacher_options.key_prefix = "/registry/pods/";
	cacher_options.codec = codec;
	assert_status(vd_cacher_new(env, store, &cacher_options, &cacher, &error), VD_OK);
	assert_status(vd_cacher_ready_wait(cacher, VD_SECONDS(30), &error), VD_OK);
	options.executor = vd_poller_executor(poller);
	assert_status(vd_informer_open(cacher, &options, &informer, &error), VD_OK);
	assert_status(vd_informer_add_handler(informer, &handler, NULL, &error), VD_OK);
	assert_int_equal(owner.calls, 0); /* nothing happens outside vd_poller_run */
	while (!owner.is_synced)
		turn(poller);
	assert_status(vd_cacher_put_wait(cacher, vd_bytes_of("ns"), vd_bytes_of("x"),
					 vd_bytes_of("{\"metadata\":{\"name\":\"x\",\"namespace\":\"ns\"}}"),
					 NULL, &error),
		      VD_OK);
	while (owner.calls == 0)
		turn(poller);
	assert_int_equal(vd_informer_count(informer), 1);
	/* A second loop of the same kind has its own: nothing of it happens in the first. */
	{
		struct owner		   second = { .thread = pthread_self() };
		struct vd_informer_handler second_handler = { .add = owned_add,
							      .synced = owned_synced,
							      .arg = &second };
		struct vd_informer	  *second_informer;
		struct vd_poller	  *second_poller;

		assert_status(vd_poller_new(env, &second_poller), VD_OK);
		options.executor = vd_poller_executor(second_poller);
		assert_status(vd_informer_open(cacher, &options, &second_informer, &error), VD_OK);
		assert_status(vd_informer_add_handler(second_informer, &second_handler, NULL, &error), VD_OK);
		turn(second_poller); /* it opens its watch, whose delivery worker must be here too */
		for (unsigned i = 0; i < 1000 && !second.is_synced; i++)
			turn(second_poller);
		assert_true(second.is_synced);
		vd_informer_close(second_informer, owned_gone, &second);
		while (!second.is_gone)
			turn(second_poller);
		/* The delivery worker ends by itself when its last watcher has gone. */
		vd_informer_close(informer, owned_gone, &owner);
		while (!owner.is_gone)
			turn(poller);
		owner.is_gone = false;
		actor.arg = &owner;
		assert_status(vd_executor_actor_new(vd_poller_executor(poller), &actor, &owner.actor), VD_OK);
		vd_cacher_close(cacher, wake_owner, &owner);
		while (!owner.is_gone) {
			struct pollfd fds[] = { { vd_poller_fd(poller), POLLIN, 0 },
						{ vd_poller_fd(second_poller), POLLIN, 0 } };

			assert_true(poll(fds, 2, 30000) > 0);
			vd_poller_run(poller);
			vd_poller_run(second_poller);
		}
		vd_actor_close(owner.actor, NULL, NULL);
		vd_poller_free(second_poller);
	}
	vd_poller_free(poller);
	vd_store_close_wait(store);
	vd_codec_free(codec);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r350_r352_handlers_see_every_change_in_order),
		cmocka_unit_test(an_informer_of_a_cache_that_fills),
		cmocka_unit_test(r351_a_relist_tells_the_difference),
		cmocka_unit_test(r354_handlers_added_late),
		cmocka_unit_test(r354_a_handler_may_remove_itself),
		cmocka_unit_test(r353_r355_resync),
		cmocka_unit_test(r355_synced_is_behind_the_first_state),
		cmocka_unit_test(r356_bookmarks_move_the_place),
		cmocka_unit_test(an_informer_on_the_callers_own_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
