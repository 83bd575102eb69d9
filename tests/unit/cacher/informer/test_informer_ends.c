/* Informers that end at any moment or cannot go on: full memory, histories that are lost, waits. */
#include <vedette/informer.h>

#include "cacher.h"
#include "cacher_fixture.h"
#include "env.h"
#include "feed_store.h"
#include "informer_notes.h"

static void on_closed(void *arg)
{
	*(bool *) arg = true;
}

/* More than its queue takes at once: the watch waits and nothing is lost. */
static void a_flood_passes_in_order(void **state)
{
	struct cacher_fixture	   f;
	struct informer_notes	  *seen = calloc(1, sizeof *seen);
	struct vd_informer_handler handler = { .synced = informer_note_synced, .arg = seen };
	struct vd_informer	  *informer;
	struct vd_error		   error;
	char			   name[16];

	cacher_fixture_setup(&f, 7);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "p%u", i);
		put_pod(&f, "ns", name, "a", NULL);
	}
	cacher_fixture_settle(&f);
	assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler,
				      &informer, &error),
		      VD_OK);
	assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
	assert_int_equal(vd_informer_count(informer), 1000);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "p%u", i);
		if (i % 2)
			delete_pod(&f, "ns", name);
		else
			put_pod(&f, "ns", name, "b", NULL);
	}
	cacher_fixture_settle(&f);
	assert_int_equal(vd_informer_count(informer), 500);
	assert_int_equal(vd_informer_revision(informer), vd_cacher_revision(f.cacher));
	vd_informer_close_wait(informer);
	cacher_fixture_teardown(&f);
	free(seen);
}

/* Before and after its life: what is asked of one that closes, of keys and indexes that do not exist, of
 * visits that end early. */
static void what_an_informer_cannot_tell(void **state)
{
	static char		   long_name[8192];
	struct cacher_fixture	   f;
	struct informer_notes	   seen = { 0 };
	struct vd_informer_handler handler = informer_noting(&seen);
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;
	struct vd_error		   error = { 0 };
	bool			   closed = false;

	cacher_fixture_setup(&f, 7);
	put_pod(&f, "ns", "a", NULL, NULL);
	put_pod(&f, "ns", "b", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_status(vd_informer_open(f.cacher, &options, &informer, &error), VD_OK);
	assert_int_equal(vd_informer_count(informer), 0);
	assert_int_equal(vd_informer_revision(informer), 0);
	assert_status(vd_informer_synced_wait(informer, (vd_dur) { -1 }), VD_OK);
	assert_status(vd_informer_synced_wait(informer, VD_MS(0)), VD_OK);
	assert_int_equal(vd_informer_count(informer), 2);
	assert_int_equal(vd_informer_revision(informer), vd_cacher_revision(f.cacher));
	memset(long_name, 'x', sizeof long_name - 1);
	assert_null(vd_informer_get(informer, vd_bytes_of("ns"), vd_bytes_of(long_name)));
	assert_null(vd_informer_get(informer, vd_bytes_of("ns"), VD_BYTES_NONE));
	assert_null(vd_informer_get(informer, VD_BYTES_NONE, vd_bytes_of("a")));
	assert_null(vd_informer_get(informer, vd_bytes_of("ns"), vd_bytes_of("c")));
	assert_int_equal(vd_informer_visit(informer, NULL, NULL), 0);
	assert_int_equal(
		vd_informer_visit_index(informer, "none", VD_BYTES_NONE, informer_note_visited, &seen), 0);
	assert_int_equal(vd_informer_visit_index(informer, NULL, VD_BYTES_NONE, informer_note_visited, &seen),
			 0);
	memset(seen.text, '#', 12); /* full: the first visit is the last */
	assert_int_equal(vd_informer_visit(informer, informer_note_visited, &seen), 1);
	seen.text[0] = 0;
	assert_string_equal(error.message, "");
	vd_informer_close(informer, on_closed, &closed);
	assert_status(vd_informer_add_handler(informer, &handler, NULL, &error), VD_CLOSED);
	assert_string_equal(error.message, "the informer is closed");
	vdi_sim_run_until_idle(f.env);
	assert_true(closed);
	closed = false;
	vd_informer_close(NULL, on_closed, &closed);
	assert_true(closed);
	vd_informer_close(NULL, NULL, NULL);
	assert_null(vd_informer_close_wait(NULL));
	assert_string_equal(seen.text, "");
	cacher_fixture_teardown(&f);
}

static unsigned wait_ended;

static void end_informer(void *arg)
{
	wait_ended++;
	vd_informer_close(arg, NULL, NULL);
}

/* A wait for an informer that never fills ends with it. */
static void r352_a_wait_ends_with_the_informer(void **state)
{
	struct vd_actor_options	   later = { .name = "later", .run = end_informer };
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct cacher_fixture	   f;
	struct vd_informer	  *informer;
	struct vd_actor		  *actor;
	vd_mono			   before;

	cacher_fixture_setup(&f, 8);
	vdi_ready_set_pending(&f.cacher->ready, "never");
	assert_status(vd_informer_open(f.cacher, &options, &informer, NULL), VD_OK);
	before = vd_env_now(f.env);
	assert_status(vd_informer_synced_wait(informer, VD_SECONDS(2)), VD_TIMEOUT);
	assert_int_equal(vd_mono_since(vd_env_now(f.env), before).ns, VD_SECONDS(2).ns);
	later.arg = informer;
	assert_status(vd_actor_new(f.env, &later, &actor), VD_OK);
	before = vd_env_now(f.env);
	vd_actor_set_timer(actor, vd_mono_add(before, VD_SECONDS(3)));
	wait_ended = 0;
	assert_status(vd_informer_synced_wait(informer, VD_SECONDS(60)), VD_CLOSED);
	assert_int_equal(vd_mono_since(vd_env_now(f.env), before).ns, VD_SECONDS(3).ns);
	assert_int_equal(wait_ended, 1);
	vd_actor_close(actor, NULL, NULL);
	vdi_sim_run_until_idle(f.env);
	cacher_fixture_teardown(&f);
}

/* Closing at any step of a busy life. */
static void closing_at_any_moment(void **state)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct cacher_fixture	   f;
		struct informer_notes	   seen = { 0 };
		struct vd_informer_handler handler = informer_noting(&seen);
		struct vd_informer	  *informer;
		struct vd_error		   error;

		cacher_fixture_setup(&f, seed);
		put_pod(&f, "ns", "a", NULL, NULL);
		assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler,
					      &informer, &error),
			      VD_OK);
		for (uint64_t step = 0; step < seed; step++) {
			if (step % 9 == 0)
				put_pod(&f, "ns", "a", NULL, NULL);
			(void) vdi_sim_step(f.env);
		}
		vd_informer_close_wait(informer);
		seen.is_closed = true;
		put_pod(&f, "ns", "b", NULL, NULL);
		cacher_fixture_settle(&f);
		cacher_fixture_teardown(&f);
	}
}

/* Without memory now and then the objects are late, never wrong, and so are their indexes. */
static void torture_the_objects_are_late_but_right(void **state)
{
	for (unsigned nth = 1; nth < 120; nth++) {
		struct cacher_fixture	   f;
		struct vd_informer_index   index = { "node", informer_by_node, NULL };
		struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
		struct vd_informer	  *informer;
		struct vd_error		   error;

		cacher_fixture_setup(&f, nth);
		options.indexes = &index;
		options.index_count = 1;
		put_pod(&f, "ns", "a", NULL, "n1");
		put_pod(&f, "ns", "b", NULL, "n1");
		cacher_fixture_settle(&f);
		assert_status(vd_informer_open(f.cacher, &options, &informer, &error), VD_OK);
		if (nth % 2)
			assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
		(void) vdi_alloc_fail_nth(nth, 1);
		cacher_fixture_settle(&f);
		(void) vdi_alloc_fail_nth(0, 0);
		put_pod(&f, "ns", "a", NULL, "n2");
		(void) vdi_alloc_fail_nth(nth / 2 + 1, 1);
		cacher_fixture_settle(&f);
		(void) vdi_alloc_fail_nth(0, 0);
		delete_pod(&f, "ns", "b");
		vdi_sim_advance(f.env, VD_SECONDS(20));
		assert_int_equal(vd_informer_count(informer), 1);
		assert_string_equal(informer_indexed(informer, "node", "n2"), " a ");
		assert_string_equal(informer_indexed(informer, "node", "n1"), "");
		vd_informer_close_wait(informer);
		cacher_fixture_teardown(&f);
	}
}

/* Memory is missing in the middle of the first state, and what was seen of it is gone before the second. */
static void r351_torture_a_state_that_was_seen_half(void **state)
{
	for (unsigned nth = 1; nth < 150; nth++) {
		struct cacher_fixture	   f;
		struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
		struct vd_informer	  *informer;
		struct vd_error		   error;

		cacher_fixture_setup(&f, nth);
		put_pod(&f, "ns", "a", NULL, "n1");
		put_pod(&f, "ns", "b", NULL, "n1");
		put_pod(&f, "ns", "c", NULL, "n1");
		cacher_fixture_settle(&f);
		assert_status(vd_informer_open(f.cacher, &options, &informer, &error), VD_OK);
		(void) vdi_alloc_fail_nth(nth, 1);
		vdi_sim_run_until_idle(f.env);
		(void) vdi_alloc_fail_nth(0, 0);
		delete_pod(&f, "ns", "a");
		vdi_sim_advance(f.env, VD_SECONDS(20));
		assert_int_equal(vd_informer_count(informer), 2);
		vd_informer_close_wait(informer);
		cacher_fixture_teardown(&f);
	}
}

/* The watch ends in the middle of the first state. What was seen of it does not count for the second: an
 * object that was deleted in between goes. */
static void r351_a_state_that_was_cut_off(void **state)
{
	enum { COUNT = 300 };
	unsigned cut = 0;

	for (uint64_t steps = 1; steps <= 40; steps++) {
		struct cacher_fixture	   f;
		struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
		struct vd_informer	  *informer;
		struct vd_store		  *feed;
		char			   key[64], value[128];
		size_t			   seen;

		cacher_fixture_init(&f, steps);
		f.options.no_backfill = true;
		feed = feed_store_new(f.env);
		for (unsigned i = 0; i < COUNT; i++) {
			snprintf(key, sizeof key, "/registry/pods/ns/p%03u", i);
			snprintf(value, sizeof value,
				 "{\"metadata\":{\"name\":\"p%03u\",\"namespace\":\"ns\"}}", i);
			feed_put(feed, key, value);
		}
		cacher_fixture_open(&f, feed);
		assert_status(vd_informer_open(f.cacher, &options, &informer, NULL), VD_OK);
		for (uint64_t i = 0; i < steps; i++)
			(void) vdi_sim_step(f.env);
		seen = vd_informer_count(informer);
		cut += seen > 0 && seen < COUNT;
		feed_break(feed, VD_EXPIRED);
		feed_delete(feed, "/registry/pods/ns/p000");
		feed_delete(feed, "/registry/pods/ns/p299");
		vdi_sim_advance(f.env, VD_SECONDS(20));
		assert_int_equal(vd_informer_count(informer), COUNT - 2);
		assert_null(vd_informer_get(informer, vd_bytes_of("ns"), vd_bytes_of("p000")));
		assert_int_equal(vd_informer_revision(informer), vd_cacher_revision(f.cacher));
		vd_informer_close_wait(informer);
		f.cacher = vd_cacher_close_wait(f.cacher);
		feed_store_free(feed);
		cacher_fixture_teardown(&f);
	}
	assert_true(cut > 3);
}

static void torture_opening_an_informer(void **state)
{
	struct cacher_fixture	   f;
	struct vd_informer_index   indexes[] = { { "node", informer_by_node, NULL },
						 { "letter", informer_by_letter, NULL } };
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct informer_notes	   seen = { 0 };
	struct vd_informer_handler handler = informer_noting(&seen);
	struct vd_informer	  *informer;

	options.indexes = indexes;
	options.index_count = 2;
	options.namespace_name = vd_bytes_of("ns");
	for (unsigned kind = 0; kind < 2; kind++) {
		bool failed = true;

		for (unsigned nth = 1; failed; nth++) {
			int64_t	  live;
			vd_status status;

			informer = NULL;
			cacher_fixture_setup(&f, 9);
			live = vdi_alloc_live();
			(void) vdi_alloc_fail_nth(nth, 1);
			status = kind ? vd_informer_open(f.cacher, &options, &informer, NULL) :
					vd_informer_new(f.cacher, VD_BYTES_NONE, vd_bytes_of("app=web"),
							VD_BYTES_NONE, &handler, &informer, NULL);
			failed = vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
			assert_status(status, failed ? VD_NOMEM : VD_OK);
			assert_int_equal(informer == NULL, failed);
			/* nothing is left but perhaps the actor, which never ran and which its env frees */
			if (failed)
				assert_true(vdi_alloc_live() - live <= 1);
			vd_informer_close_wait(informer);
			cacher_fixture_teardown(&f);
		}
	}
}

static void count_done(void *arg, vd_status status, const struct vd_txn_result *result,
		       const struct vd_error *error)
{
	assert_status(status, VD_OK);
	++*(unsigned *) arg;
}

/* A watch that falls behind a history that is too small ends as expired: the informer lists again, and its
 * state is whole. */
static void a_watch_that_expires_is_followed_by_a_list(void **state)
{
	enum { count = 800 };
	unsigned expired = 0;

	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct cacher_fixture	   f;
		struct informer_notes	  *seen = calloc(1, sizeof *seen);
		struct vd_informer_handler handler = { .synced = informer_note_synced, .arg = seen };
		struct vd_informer	  *informer;
		unsigned		   done = 0;

		cacher_fixture_init(&f, seed);
		f.options.history_bytes = 4000;
		cacher_fixture_open(&f, NULL);
		assert_status(vd_informer_new(f.cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler,
					      &informer, NULL),
			      VD_OK);
		assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
		for (unsigned i = 0; i < count; i++) {
			char		      key[64], name[16], value[1024];
			struct vd_op	      put = { .kind = VD_OP_PUT };
			struct vd_txn_request txn = { .success = &put, .success_count = 1 };

			snprintf(name, sizeof name, "p%u", i);
			snprintf(key, sizeof key, "/registry/pods/ns/%s", name);
			write_pod(value, sizeof value, "ns", name, "a", NULL);
			put.key = vd_bytes_of(key);
			put.value = vd_bytes_of(value);
			assert_status(vd_store_txn(f.store, &txn, count_done, &done), VD_OK);
		}
		cacher_fixture_settle(&f);
		vdi_sim_advance(f.env, VD_SECONDS(10));
		assert_int_equal(done, count);
		expired += vdi_metric_value(f.cacher->metrics.ends[VDI_END_EXPIRED]) > 0;
		assert_int_equal(vd_informer_count(informer), count);
		assert_int_equal(vd_informer_revision(informer), vd_cacher_revision(f.cacher));
		vd_informer_close_wait(informer);
		cacher_fixture_teardown(&f);
		free(seen);
	}
	assert_true(expired > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_watch_that_expires_is_followed_by_a_list),
		cmocka_unit_test(a_flood_passes_in_order),
		cmocka_unit_test(what_an_informer_cannot_tell),
		cmocka_unit_test(r352_a_wait_ends_with_the_informer),
		cmocka_unit_test(closing_at_any_moment),
		cmocka_unit_test(torture_the_objects_are_late_but_right),
		cmocka_unit_test(r351_torture_a_state_that_was_seen_half),
		cmocka_unit_test(r351_a_state_that_was_cut_off),
		cmocka_unit_test(torture_opening_an_informer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
