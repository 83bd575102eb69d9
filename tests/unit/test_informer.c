/* Informers: handlers see what is and what changes, once, in order; after a loss of history they see the difference. */
#include "cacher_fixture.h"

#include <vedette/informer.h>

#include "feed_store.h"

struct seen {
	char	 text[4096];
	unsigned synced;
	bool	 is_closed;
};

static void note(struct seen *seen, char what, const struct vd_object *object)
{
	size_t size = strlen(seen->text);

	assert_false(seen->is_closed);
	snprintf(seen->text + size, sizeof seen->text - size, "%c%.*s ", what, (int) vd_object_name(object).size,
		 (const char *) vd_object_name(object).data);
}

static void on_add(void *arg, struct vd_object *object, bool initial)
{
	note(arg, initial ? '*' : '+', object);
}

static void on_update(void *arg, struct vd_object *old_object, struct vd_object *object)
{
	assert_true(vd_object_revision(old_object) < vd_object_revision(object));
	note(arg, '~', object);
}

static void on_remove(void *arg, struct vd_object *last_state, bool unknown_final_state)
{
	note(arg, unknown_final_state ? '?' : '-', last_state);
}

static void on_synced(void *arg)
{
	((struct seen *) arg)->synced++;
}

static struct vd_informer_handler handler_of(struct seen *seen)
{
	return (struct vd_informer_handler) { on_add, on_update, on_remove, on_synced, seen };
}

static void r350_r352_handlers_see_every_change_in_order(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct cacher_fixture	    f;
		struct seen		    seen = { 0 };
		struct vd_informer_handler handler = handler_of(&seen);
		struct vd_informer	   *informer;
		struct vd_object	   *object;
		struct vd_error		    error;

		cacher_fixture_setup(&f, seed);
		put_pod(&f, "ns", "a", "web", NULL);
		put_pod(&f, "ns", "b", "db", NULL);
		cacher_fixture_settle(&f);
		assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, vd_bytes_of("app in ("), VD_BYTES_NONE, &handler, &informer, &error),
			      VD_BAD_REQUEST);
		assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, vd_bytes_of("app=web"), VD_BYTES_NONE, &handler, &informer, &error), VD_OK);
		assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
		put_pod(&f, "ns", "b", "web", NULL);
		put_pod(&f, "ns", "a", "web", "n1");
		put_pod(&f, "ns", "a", "db", NULL);
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

/* The store lost its history: the cacher lists again, all watches end, and what was deleted meanwhile is told as such. */
static void r351_a_relist_tells_the_difference(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct cacher_fixture	    f;
		struct seen		    seen = { 0 };
		struct vd_informer_handler handler = handler_of(&seen);
		struct vd_informer	   *informer;
		struct vd_store		   *feed;
		struct vd_error		    error;

		cacher_fixture_init(&f, seed);
		f.options.no_backfill = true;
		feed = feed_store_new(f.env);
		feed_put(feed, "/registry/pods/ns/a", "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"}}");
		feed_put(feed, "/registry/pods/ns/b", "{\"metadata\":{\"name\":\"b\",\"namespace\":\"ns\"}}");
		cacher_fixture_open(&f, feed);
		assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler, &informer, &error), VD_OK);
		assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
		feed_break(feed, VD_EXPIRED);
		cacher_fixture_settle(&f);
		assert_status(vd_cacher_ready(f.cacher, &error), VD_NOT_READY);
		assert_int_equal(error.retry_after_s, 1);
		feed_delete(feed, "/registry/pods/ns/a");
		feed_put(feed, "/registry/pods/ns/b", "{\"metadata\":{\"name\":\"b\",\"namespace\":\"ns\"},\"x\":1}");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r350_r352_handlers_see_every_change_in_order),
		cmocka_unit_test(r351_a_relist_tells_the_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
