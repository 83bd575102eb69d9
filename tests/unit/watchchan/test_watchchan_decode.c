/* watchchan/: what becomes of an event: its type, its objects, its revision, and what cannot be decoded. */
#include "watchchan_script.h"

/* Which objects an event carries: the state before only where a predicate has looked at it,
 * and of a deletion always.
 * rules */
static void r216_the_objects_of_an_event(void **state)
{
	for (int filtered = 0; filtered < 2; filtered++) {
		struct world		   world;
		struct vdi_watchchan_event event;
		vd_mono			   now;

		world_init(&world);
		world.options.predicate = filtered ? app_is_x : NULL;
		open_watch(&world);
		vdi_sim_advance(world.env, VD_SECONDS(5));
		now = vd_env_now(world.env);
		tell_event(&world, false, record("a", "x", 2, 2), NULL);
		vdi_sim_advance(world.env, VD_SECONDS(5));
		event = next(&world);
		assert_int_equal(event.type, VD_WATCH_ADDED);
		assert_false(event.initial);
		assert_null(event.old_object);
		assert_int_equal(event.received.ns, now.ns);
		vdi_watchchan_event_fini(&event);
		tell_event(&world, false, record("a", "x", 2, 3), record("a", "x", 2, 2));
		event = next(&world);
		assert_int_equal(event.type, VD_WATCH_MODIFIED);
		assert_int_equal(event.revision, 3);
		assert_int_equal(vd_object_revision(event.object), 3);
		if (filtered)
			assert_int_equal(vd_object_revision(event.old_object), 2);
		else
			assert_null(event.old_object);
		vdi_watchchan_event_fini(&event);
		assert_null(event.old_object);
		tell_event(&world, false, record("b", filtered ? "x" : "y", 1, 4), record("b", "y", 1, 1));
		event = next(&world);
		assert_int_equal(event.type,
				 filtered ? VD_WATCH_ADDED : VD_WATCH_MODIFIED); /* it enters the filter */
		assert_null(event.old_object);
		vdi_watchchan_event_fini(&event);
		tell_event(&world, true, record("a", "y", 0, 5), record("a", "x", 2, 3));
		now = vd_env_now(world.env);
		event = next(&world);
		assert_int_equal(event.type, VD_WATCH_DELETED);
		assert_int_equal(event.revision, 5);
		assert_int_equal(vd_object_revision(event.object), 3);
		assert_null(event.old_object);
		assert_int_equal(event.received.ns, now.ns);
		vdi_watchchan_event_fini(&event);
		if (filtered) { /* it leaves: the last state that passed, at the revision of the change */
			tell_event(&world, false, record("b", "y", 1, 6), record("b", "x", 1, 4));
			event = next(&world);
			assert_int_equal(event.type, VD_WATCH_DELETED);
			assert_int_equal(event.revision, 6);
			assert_int_equal(vd_object_revision(event.object), 4);
			assert_null(event.old_object);
			vdi_watchchan_event_fini(&event);
		}
		assert_status(next_status(&world), VD_AGAIN);
		world_fini(&world);
	}
}

/* A filter holds for the state, too. */
static void r219_the_initial_state_is_filtered(void **state)
{
	for (int workers = 0; workers < 2; workers++) {
		struct world  world;
		struct vd_kv *kvs[3];

		world_init(&world);
		world.options.revision = 0;
		world.options.predicate = app_is_x;
		world.options.initial_end_bookmark = true;
		world.options.decode_workers = workers;
		open_watch(&world);
		kvs[0] = record("a", "y", 2, 2);
		kvs[1] = record("b", "x", 3, 3);
		kvs[2] = record("c", "y", 4, 4);
		answer_range(&world, VD_OK, 4, kvs, 3, false, NULL);
		expect_object(&world, VD_WATCH_ADDED, "b", 3, false);
		expect_bookmark(&world, 4, true);
		assert_status(next_status(&world), VD_AGAIN);
		world_fini(&world);
	}
}

/* A turn is bounded. What the store gave is taken to its end all the same, without another word of it. */
static void a_turn_that_is_too_long_goes_on(void **state)
{
	enum { COUNT = 130, BATCHES = 7 };
	struct world world;
	vd_rev	     revision = 1;
	uint64_t     steps;

	world_init(&world);
	world.options.predicate = app_is_x;
	open_watch(&world);
	for (int batch = 0; batch < BATCHES; batch++) {
		struct answer *answer = answer_new(&world);

		for (answer->count = 0; answer->count < COUNT; answer->count++) {
			revision++;
			answer->events[answer->count].kv = record("a", "y", revision, revision);
		}
		answer->revision = revision;
	}
	answer_new(&world)->revision = revision + 1;
	steps = vdi_sim_steps(world.env);
	tell(&world);
	assert_true(vdi_sim_steps(world.env) - steps > 1);
	expect_bookmark(&world, revision + 1, false);
	world_fini(&world);
}

/* Three of one revision, one of the next: all but the last of each say that more follows, and what a filter
 * drops at the end is told by a bookmark. */
static void e459_where_a_revision_ends(void **state)
{
	for (int filtered = 0; filtered < 2; filtered++) {
		struct world   world;
		struct answer *answer;

		world_init(&world);
		world.options.predicate = filtered ? app_is_x : NULL;
		open_watch(&world);
		answer = answer_new(&world);
		answer->events[0].kv = record("a", "x", 2, 2);
		answer->events[1].kv = record("b", "x", 2, 2);
		answer->events[2].kv = record("c", "y", 2, 2);
		answer->events[3].kv = record("d", "x", 3, 3);
		answer->events[4].kv = record("e", "y", 4, 4);
		answer->count = 5;
		answer->revision = 4;
		tell(&world);
		expect_object(&world, VD_WATCH_ADDED, "a", 2, true);
		expect_object(&world, VD_WATCH_ADDED, "b", 2, true);
		if (filtered)
			expect_bookmark(&world, 2, false);
		else
			expect_object(&world, VD_WATCH_ADDED, "c", 2, false);
		expect_object(&world, VD_WATCH_ADDED, "d", 3, false);
		if (!filtered)
			expect_object(&world, VD_WATCH_ADDED, "e", 4, false);
		assert_status(next_status(&world), VD_AGAIN);
		world_fini(&world);
	}
}

/* In the words of upstream, at the end of the watch or to him who counts them (O-20). A
 * store's progress goes on past it. */
struct skipped {
	unsigned count, deletes;
	vd_rev	 revision;
	char	 message[VD_ERROR_MESSAGE_SIZE];
};

static void on_undecodable(void *arg, struct vd_kv *kv, bool is_delete, const struct vd_error *error)
{
	struct skipped *skipped = arg;

	skipped->count++;
	skipped->deletes += is_delete;
	skipped->revision = kv->mod_rev;
	snprintf(skipped->message, sizeof skipped->message, "%s", error->message);
}

static const char unreadable[] = "Internal error occurred: object not decodable revision=2: ";

/* The change whose state cannot be read: whoever has the state before drops it. */
static void expect_lost(struct world *world, const char *name, vd_rev revision)
{
	struct vdi_watchchan_event event = next(world);

	assert_int_equal(event.type, VD_WATCH_DELETED);
	assert_null(event.object);
	assert_non_null(event.lost);
	assert_true(vd_bytes_equal(vd_kv_key(event.lost), vd_bytes_of(name)));
	assert_int_equal(event.revision, revision);
	assert_false(event.more_in_revision);
	vdi_watchchan_event_fini(&event);
}

static void r165_r221_what_cannot_be_decoded(void **state)
{
	for (int skip = 0; skip < 4;
	     skip++) { /* 0: the end; 1: skipped in silence; 2: told; 3: and the reader wants progress */
		struct world		   world;
		struct skipped		   skipped = { 0 };
		struct vdi_watchchan_stats stats;
		struct vdi_watchchan_event event;

		world_init(&world);
		world.options.skip_undecodable = skip;
		world.options.undecodable = skip > 1 ? on_undecodable : NULL;
		world.options.undecodable_arg = &skipped;
		world.options.progress = skip == 3;
		open_watch(&world);
		tell_event(&world, false, record("a", "junk", 2, 2), NULL);
		if (skip == 0) {
			event = next(&world);
			assert_int_equal(event.type, VD_WATCH_ERROR);
			assert_status(event.error->code, VD_UNDECODABLE);
			assert_memory_equal(event.error->message, unreadable, strlen(unreadable));
			assert_true(strlen(event.error->message) > strlen(unreadable));
			assert_int_equal(event.received.ns, vd_env_now(world.env).ns);
			assert_int_equal(event.revision, 0);
			tell_event(&world, false, record("b", "x", 3, 3), NULL);
			assert_status(next_status(&world), VD_CLOSED);
			vdi_watchchan_stats_get(world.watchchan, &stats);
			assert_int_equal(stats.undecodable, 0);
			world_fini(&world);
			continue;
		}
		assert_int_equal(skipped.count, skip > 1);
		if (skip > 1) {
			assert_int_equal(skipped.revision, 2);
			assert_memory_equal(skipped.message, unreadable, strlen(unreadable));
		}
		expect_lost(&world, KEY "a", 2);
		tell_event(&world, true, record("a", "y", 0, 3), record("a", "junk", 2, 2));
		expect_lost(&world, KEY "a", 3);
		assert_int_equal(skipped.deletes, skip > 1);
		tell_event(&world, false, record("b", "x", 4, 4), NULL);
		expect_object(&world, VD_WATCH_ADDED, "b", 4, false);
		vdi_watchchan_stats_get(world.watchchan, &stats);
		assert_int_equal(stats.undecodable, 2);
		assert_int_equal(stats.events, 3);
		assert_int_equal(stats.bookmarks, 0);
		world_fini(&world);
	}
}

/* Each fault of a value in upstream's words, in the last event of the watch: of a put, and of a delete, whose
 * value is the last one before. */
static void r165_r168_the_words_of_what_cannot_be_read(void **state)
{
	static const char	 encrypted[] = "k8s:enc:aescbc:v1:key1:\x80x";
	static const char *const words[][2] = {
		{ "Internal error occurred: object not decodable revision=2: ",
		  "Internal error occurred: object not decodable revision=2: " },
		{ "Internal error occurred: data from the storage is not transformable revision=2: ",
		  "saw a DELETED event, but object data is corrupt - data from the storage is not "
		  "transformable revision=2: " },
	};

	for (int i = 0; i < 4; i++) {
		bool			   is_encrypted = i & 1, is_delete = i & 2;
		const char		  *value = is_encrypted ? encrypted : "junk";
		const char		  *wanted = words[is_encrypted][is_delete];
		struct world		   world;
		struct vdi_watchchan_event event;

		world_init(&world);
		open_watch(&world);
		if (is_delete)
			tell_event(&world, true, record("a", "y", 0, 3), record("a", value, 2, 2));
		else
			tell_event(&world, false, record("a", value, 2, 2), NULL);
		event = next(&world);
		assert_int_equal(event.type, VD_WATCH_ERROR);
		assert_status(event.error->code, VD_UNDECODABLE);
		if (strncmp(event.error->message, wanted, strlen(wanted)) != 0)
			fail_msg("%d: %s", i, event.error->message);
		assert_true(strlen(event.error->message) > strlen(wanted));
		vdi_watchchan_event_fini(&event);
		assert_status(next_status(&world), VD_CLOSED);
		world_fini(&world);
	}
}

/* Slots are used again and again: nothing of a failure stays in one. */
static void a_slot_forgets_its_failure(void **state)
{
	const enum vdi_raw_kind kinds[] = { VDI_RAW_CHANGE, VDI_RAW_INITIAL, VDI_RAW_BOOKMARK,
					    VDI_RAW_ERROR };
	struct world		world;
	struct vdi_slot		slot = { .state = VDI_SLOT_RAW };
	struct vd_kv	       *junk, *good;

	(void) state;
	world_init(&world);
	open_watch(&world);
	junk = record("a", "junk", 2, 2);
	good = record("a", "x", 3, 3);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(kinds); i++) {
		slot.raw = (struct vdi_raw_event) {
			.kind = VDI_RAW_CHANGE, .kv = junk, .revision = 2, .more_in_revision = true
		};
		vdi_watchchan_decode_slot(world.watchchan, &slot);
		assert_status(slot.status, VD_UNDECODABLE);
		slot.raw = (struct vdi_raw_event) { .kind = kinds[i], .kv = good, .revision = 3 };
		vdi_watchchan_decode_slot(world.watchchan, &slot);
		assert_status(slot.status, VD_OK);
		assert_true(slot.emit);
		assert_int_equal(slot.event.revision, 3);
		assert_false(slot.event.more_in_revision);
		vd_object_unref(slot.event.object);
	}
	vd_kv_unref(junk);
	vd_kv_unref(good);
	world_fini(&world);
}

/* rules: T-093 */
static void r212_without_the_record_before(void **state)
{
	for (int is_delete = 0; is_delete < 2; is_delete++) {
		struct world world;

		world_init(&world);
		open_watch(&world);
		tell_event(&world, is_delete, record("a", "x", 2, 3), NULL);
		expect_error(&world, VD_EXPIRED,
			     is_delete ? "The resourceVersion for the provided watch is too old: etcd event "
					 "received with PrevKv=nil (key=\"" KEY
					 "a\", modRevision=3, type=DELETE)" :
					 "The resourceVersion for the provided watch is too old: etcd event "
					 "received with PrevKv=nil (key=\"" KEY
					 "a\", modRevision=3, type=PUT)");
		world_fini(&world);
	}
}

/* The start of a long key is enough: what follows it in the message is not lost. */
static void r212_a_long_key_is_cut(void **state)
{
	struct world		   world;
	struct vdi_watchchan_event event;
	struct vd_kv		  *kv;
	char			   key[300];

	world_init(&world);
	open_watch(&world);
	memset(key, 'k', sizeof key);
	assert_status(vd_kv_new((struct vd_bytes) { key, sizeof key }, vd_bytes_of("{}"), &kv), VD_OK);
	kv->create_rev = 2;
	kv->mod_rev = 3;
	tell_event(&world, false, kv, NULL);
	event = next(&world);
	assert_int_equal(event.type, VD_WATCH_ERROR);
	key[150] = 0;
	assert_non_null(strstr(event.error->message, key));
	assert_non_null(strstr(event.error->message, "k\", modRevision=3, type=PUT)"));
	key[150] = 'k';
	key[151] = 0;
	assert_null(strstr(event.error->message, key));
	world_fini(&world);
}

static struct vd_object *known_object;

static struct vd_object *find_decoded(void *arg, const struct vd_kv *kv)
{
	*(const struct vd_kv **) arg = kv;
	return known_object ? vd_object_ref(known_object) : NULL;
}

/* An object that was made of the record before is taken as it is. */
static void an_object_is_not_decoded_twice(void **state)
{
	struct world		   world;
	const struct vd_kv	  *asked = NULL;
	struct vd_kv		  *kv = record("known", "x", 2, 2);
	struct vdi_watchchan_event event;

	world_init(&world);
	world.live--; /* kv */
	assert_status(vd_object_new(world.codec, kv, &known_object, NULL), VD_OK);
	vd_kv_unref(kv);
	world.options.decoded = find_decoded;
	world.options.decoded_arg = &asked;
	open_watch(&world);
	tell_event(&world, false, record("a", "x", 2, 2), NULL);
	event = next(&world);
	assert_ptr_equal(event.object, known_object);
	assert_int_equal(asked->mod_rev, 2);
	vdi_watchchan_event_fini(&event);
	known_object = vd_object_unref(known_object);
	tell_event(&world, false, record("b", "x", 3, 3), NULL);
	expect_object(&world, VD_WATCH_ADDED, "b", 3, false);
	world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r216_the_objects_of_an_event),
		cmocka_unit_test(r219_the_initial_state_is_filtered),
		cmocka_unit_test(a_turn_that_is_too_long_goes_on),
		cmocka_unit_test(e459_where_a_revision_ends),
		cmocka_unit_test(r165_r221_what_cannot_be_decoded),
		cmocka_unit_test(r165_r168_the_words_of_what_cannot_be_read),
		cmocka_unit_test(a_slot_forgets_its_failure),
		cmocka_unit_test(r212_without_the_record_before),
		cmocka_unit_test(r212_a_long_key_is_cut),
		cmocka_unit_test(an_object_is_not_decoded_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
