/* Unit tests of storage/history/local_watch.c: from a loaded history that is made here into a present that is
 * a script. */
#include "local_script.h"

/* How many references the loaded history has besides the test's own. */
static unsigned users(struct vdi_loaded_history *loaded)
{
	return atomic_load(&loaded->references) - 1;
}

static struct vdi_loaded_history *loaded_of(vd_rev floor, vd_rev until)
{
	struct vdi_loaded_history *loaded;

	assert_status(vdi_loaded_history_new(&loaded), VD_OK);
	loaded->floor = floor;
	loaded->until = until;
	return loaded;
}

static void add(struct vdi_loaded_history *loaded, struct vd_kv *kv, struct vd_kv *previous)
{
	assert_status(vdi_loaded_history_add(loaded, kv->version == 0, kv, previous, true), VD_OK);
}

static vd_status try_open(struct local *l, struct vdi_loaded_history *loaded,
			  const struct vd_store_watch_request *request, struct vd_store_watch **ret_watch)
{
	struct vd_store_watch_request whole = *request;

	whole.ready = count_ready;
	whole.ready_arg = &l->ready;
	return vdi_local_watch_open(&l->script.store, vdi_loaded_history_ref(loaded), &whole, ret_watch,
				    NULL);
}

static struct vd_store_watch *open_at(struct local *l, struct vdi_loaded_history *loaded, vd_rev start)
{
	struct vd_store_watch_request request = { .key = vd_bytes_of("/registry/"),
						  .range_end = vd_bytes_of("/registry0"),
						  .start_revision = start,
						  .previous = true };
	struct vd_store_watch	     *watch;

	assert_status(try_open(l, loaded, &request, &watch), VD_OK);
	return watch;
}

/* The next batch has count events, the first and last of these revisions. */
static void assert_next(struct vd_store_watch *watch, size_t max, size_t count, vd_rev first, vd_rev last)
{
	struct vd_store_batch batch;

	assert_status(vd_store_watch_next(watch, max, &batch, NULL), VD_OK);
	assert_int_equal(batch.event_count, count);
	assert_int_equal(batch.revision, last);
	assert_int_equal(batch.events[0].kv->mod_rev, first);
	assert_int_equal(batch.events[count - 1].kv->mod_rev, last);
}

static void assert_progress(struct vd_store_watch *watch, vd_rev revision)
{
	struct vd_store_batch batch;

	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_OK);
	assert_int_equal(batch.event_count, 0);
	assert_int_equal(batch.revision, revision);
}

static void assert_nothing(struct vd_store_watch *watch)
{
	struct vd_store_batch batch;

	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
}

static void the_watch_behind_begins_where_the_loaded_history_ends(void **state)
{
	struct local		   l;
	struct vdi_loaded_history *loaded = loaded_of(4, 20);

	local_init(&l, 33);
	add(loaded, created_at(5), NULL);
	for (unsigned flags = 0; flags < 16; flags++) {
		char			      key[] = "/registry/a", end[] = "/registry/b";
		struct vd_store_watch_request request = { .key = vd_bytes_of(key),
							  .range_end = vd_bytes_of(end),
							  .start_revision = 5,
							  .previous = flags & 1,
							  .progress = flags & 2,
							  .no_put = flags & 4,
							  .no_delete = flags & 8 };
		struct vd_store_watch	     *watch;

		assert_status(try_open(&l, loaded, &request, &watch), VD_OK);
		assert_int_equal(l.script.starts[flags], 21);
		assert_string_equal(l.script.key, "/registry/a");
		assert_string_equal(l.script.range_end, "/registry/b");
		assert_int_equal(l.script.request.previous, !!(flags & 1));
		assert_int_equal(l.script.request.progress, !!(flags & 2));
		assert_int_equal(l.script.request.no_put, !!(flags & 4));
		assert_int_equal(l.script.request.no_delete, !!(flags & 8));
		assert_ptr_equal(l.script.request.ready_arg, &l.ready);
		assert_int_equal(watch->opened, 33);
		assert_int_equal(users(loaded), 1);
		vd_store_watch_close(watch);
		assert_int_equal(l.script.live, 0);
		assert_int_equal(users(loaded), 0);
	}
	/* The store below is not there: its answer is the answer. */
	l.script.refuse_watch = VD_UNAVAILABLE;
	{
		struct vd_store_watch_request request = { .key = vd_bytes_of("/registry/a"),
							  .start_revision = 5 };
		struct vd_store_watch	     *watch;

		assert_status(try_open(&l, loaded, &request, &watch), VD_UNAVAILABLE);
		assert_int_equal(users(loaded), 0);
	}
	vdi_loaded_history_unref(loaded);
	local_fini(&l);
}

/* One key; an interval; everything from a key on. Whatever the caller does to its own keys afterwards. */
static void only_the_keys_of_the_watch_are_told(void **state)
{
	static const struct {
		const char *key, *end;
		size_t	    end_size;
		unsigned    count;
		vd_rev	    first, last;
	} cases[] = { { "/registry/b", "", 0, 2, 6, 8 },
		      { "/registry/a", "/registry/c", 11, 3, 5, 8 },
		      { "/registry/b", "\0", 1, 3, 6, 8 },
		      { "/registry/b", "/registry/c", 11, 2, 6, 8 },
		      { "/registry/c", "/registry/d", 11, 1, 7, 7 } };

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct local		      l;
		struct vdi_loaded_history    *loaded = loaded_of(4, 20);
		char			      key[16], end[16];
		struct vd_store_watch_request request = { .key = { key, strlen(cases[i].key) },
							  .range_end = { end, cases[i].end_size },
							  .start_revision = 5 };
		struct vd_store_watch	     *watch;

		local_init(&l, 33);
		memcpy(key, cases[i].key, strlen(cases[i].key));
		memcpy(end, cases[i].end, cases[i].end_size);
		add(loaded, new_record("/registry/a", 5, 5, 1), NULL);
		add(loaded, new_record("/registry/b", 6, 6, 1), NULL);
		add(loaded, new_record("/registry/c", 7, 7, 1), NULL);
		add(loaded, new_record("/registry/b", 6, 8, 2), new_record("/registry/b", 6, 6, 1));
		assert_status(try_open(&l, loaded, &request, &watch), VD_OK);
		memset(key, 'x', sizeof key);
		memset(end, 'x', sizeof end);
		assert_next(watch, 10, cases[i].count, cases[i].first, cases[i].last);
		assert_nothing(watch);
		vd_store_watch_close(watch);
		vdi_loaded_history_unref(loaded);
		local_fini(&l);
	}
}

static void puts_and_deletes_and_what_they_replaced_come_as_asked(void **state)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		struct local		      l;
		struct vdi_loaded_history    *loaded = loaded_of(4, 20);
		struct vd_store_watch_request request = { .key = vd_bytes_of("/registry/a"),
							  .start_revision = 5,
							  .no_put = flags & 1,
							  .no_delete = flags & 2,
							  .previous = flags & 4 };
		struct vd_store_watch	     *watch;
		struct vd_store_batch	      batch;
		unsigned		      puts = 0, deletes = 0, previous = 0;

		local_init(&l, 33);
		add(loaded, new_record("/registry/a", 5, 5, 1), NULL);
		add(loaded, new_record("/registry/a", 5, 6, 2), new_record("/registry/a", 5, 5, 1));
		add(loaded, new_record("/registry/a", 0, 7, 0), new_record("/registry/a", 5, 6, 2));
		assert_status(try_open(&l, loaded, &request, &watch), VD_OK);
		while (vd_store_watch_next(watch, 1, &batch, NULL) == VD_OK) {
			assert_int_equal(batch.event_count, 1);
			assert_int_equal(batch.revision, batch.events[0].kv->mod_rev);
			puts += !batch.events[0].is_delete;
			deletes += batch.events[0].is_delete;
			previous += batch.events[0].previous != NULL;
		}
		assert_int_equal(puts, flags & 1 ? 0 : 2);
		assert_int_equal(deletes, flags & 2 ? 0 : 1);
		assert_int_equal(previous, flags & 4 ? (flags & 1 ? 0 : 1) + (flags & 2 ? 0 : 1) : 0);
		vd_store_watch_close(watch);
		vdi_loaded_history_unref(loaded);
		local_fini(&l);
	}
}

/* At least one whole revision, and beyond that about so many events. */
static void a_batch_has_whole_revisions(void **state)
{
	struct local		   l;
	struct vdi_loaded_history *loaded = loaded_of(4, 20);
	struct vd_store_watch	  *watch;

	local_init(&l, 33);
	for (vd_rev revision = 5; revision < 15; revision++)
		for (int i = 0; i < 3; i++) {
			char key[32];

			snprintf(key, sizeof key, "/registry/%d-%d", (int) revision, i);
			add(loaded, new_record(key, revision, revision, 1), NULL);
		}
	watch = open_at(&l, loaded, 5);
	assert_next(watch, 1, 3, 5, 5);
	assert_next(watch, 0, 3, 6, 6);
	assert_next(watch, 3, 3, 7, 7);
	assert_next(watch, 4, 6, 8, 9);
	assert_next(watch, 6, 6, 10, 11);
	assert_next(watch, 1000, 9, 12, 14);
	assert_int_equal(users(loaded), 1); /* the last batch is lent until the next call */
	assert_nothing(watch);
	assert_int_equal(users(loaded), 0);
	vd_store_watch_close(watch);
	/* It begins where it was asked to. */
	watch = open_at(&l, loaded, 9);
	assert_next(watch, 1, 3, 9, 9);
	vd_store_watch_close(watch);
	watch = open_at(&l, loaded, 15);
	assert_nothing(watch);
	vd_store_watch_close(watch);
	vdi_loaded_history_unref(loaded);
	local_fini(&l);
}

/* A long loaded history without anything for this watch: in pieces, and each time it says that there is
 * more. */
static void a_long_loaded_history_is_looked_through_in_pieces(void **state)
{
	struct local		      l;
	struct vdi_loaded_history    *loaded = loaded_of(0, 100000);
	struct vd_store_watch_request request = { .key = vd_bytes_of("/registry/wanted"),
						  .start_revision = 1 };
	struct vd_store_watch	     *watch;

	local_init(&l, 100000);
	for (vd_rev revision = 1; revision <= 40000; revision++)
		add(loaded, new_record("/registry/other", 1, revision, revision), NULL);
	add(loaded, new_record("/registry/wanted", 50000, 50000, 1), NULL);
	assert_status(try_open(&l, loaded, &request, &watch), VD_OK);
	for (unsigned i = 1; i <= 2; i++) {
		assert_nothing(watch);
		assert_int_equal(l.ready, i);
	}
	assert_next(watch, 10, 1, 50000, 50000);
	assert_nothing(watch);
	assert_int_equal(l.ready, 2);
	vd_store_watch_close(watch);
	vdi_loaded_history_unref(loaded);
	local_fini(&l);
}

/* rules: E-340. The store below says nothing of its progress before its own start, so how far the loaded
 * history went is said here, once for each question. */
static void the_end_of_the_loaded_history_is_said_when_asked(void **state)
{
	for (int is_request = 0; is_request < 2; is_request++) {
		struct local		      l;
		struct vdi_loaded_history    *loaded = loaded_of(4, 20);
		struct vd_store_watch_request request = { .key = vd_bytes_of("/registry/"),
							  .range_end = vd_bytes_of("/registry0"),
							  .start_revision = 5,
							  .progress = is_request };
		struct vd_store_watch	     *watch;

		local_init(&l, 20);
		add(loaded, created_at(7), NULL);
		assert_status(try_open(&l, loaded, &request, &watch), VD_OK);
		if (is_request) {
			assert_next(watch, 10, 1, 7, 7);
			assert_progress(watch, 20);
		} else {
			/* Asked before the events are read: behind them. */
			assert_status(vd_store_watch_progress(watch), VD_OK);
			assert_int_equal(l.ready, 1);
			assert_int_equal(l.script.asks, 1);
			assert_next(watch, 10, 1, 7, 7);
			assert_progress(watch, 20);
		}
		assert_nothing(watch);
		l.ready = 0;
		assert_status(vd_store_watch_progress(watch), VD_OK);
		assert_int_equal(l.ready, 1);
		assert_progress(watch, 20);
		assert_nothing(watch);
		/* A question that the store below refuses is none. */
		l.script.progress_code = VD_UNAVAILABLE;
		assert_status(vd_store_watch_progress(watch), VD_UNAVAILABLE);
		assert_int_equal(l.ready, 1);
		assert_nothing(watch);
		l.script.progress_code = VD_OK;
		/* From its first word on the store below answers. */
		next_step(&l)->revision = 25;
		assert_progress(watch, 25);
		assert_status(vd_store_watch_progress(watch), VD_OK);
		assert_nothing(watch);
		vd_store_watch_close(watch);
		vdi_loaded_history_unref(loaded);
		local_fini(&l);
	}
}

static void what_the_store_below_says_comes_as_it_is(void **state)
{
	struct local		   l;
	struct vdi_loaded_history *loaded = loaded_of(4, 20);
	struct vd_store_watch	  *watch;
	struct vd_store_batch	   batch;
	struct vd_error		   error = { 0 };

	local_init(&l, 20);
	add(loaded, created_at(7), NULL);
	watch = open_at(&l, loaded, 5);
	next_step(&l)->events[0].kv = created_at(21);
	l.script.steps[0].event_count = 1;
	l.script.steps[0].revision = 21;
	*next_step(&l) = (struct step) { .status = VD_EXPIRED, .compacted = 30 };
	assert_next(watch, 10, 1, 7, 7);
	assert_int_equal(l.script.step_next, 0);
	assert_next(watch, 17, 1, 21, 21);
	assert_int_equal(l.script.taken_max, 17);
	assert_status(vd_store_watch_next(watch, 10, &batch, &error), VD_EXPIRED);
	assert_int_equal(error.compacted, 30);
	vd_store_watch_close(watch);
	vdi_loaded_history_unref(loaded);
	local_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_watch_behind_begins_where_the_loaded_history_ends),
		cmocka_unit_test(only_the_keys_of_the_watch_are_told),
		cmocka_unit_test(puts_and_deletes_and_what_they_replaced_come_as_asked),
		cmocka_unit_test(a_batch_has_whole_revisions),
		cmocka_unit_test(a_long_loaded_history_is_looked_through_in_pieces),
		cmocka_unit_test(the_end_of_the_loaded_history_is_said_when_asked),
		cmocka_unit_test(what_the_store_below_says_comes_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
