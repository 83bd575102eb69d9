/* Unit tests of storage/history/local_history.c over a store that is a script: what is asked before a history
 * is believed, which watches it serves, and what people and metrics are told. */
#include "local_script.h"

/* Records the changes from 11 on and stops. */
static void record_and_stop(struct local *l, size_t count)
{
	local_open(l);
	for (vd_rev revision = 11; count; revision += 4, count -= VDI_MIN(count, 4))
		say(l, revision, VDI_MIN(count, 4));
	local_close(l);
	forget_opens(l);
}

static int64_t drops(struct local *l)
{
	return metric_of(l, VDI_METRIC_LOCAL_HISTORY_DROPS_TOTAL);
}

/* ---- Is it the same store? ---- */

static void each_witness_is_asked_for_at_the_newest_revision(void **state)
{
	struct local l;

	local_init(&l, 10);
	record_and_stop(&l, 12);
	local_open(&l);
	assert_int_equal(l.script.txns, 1);
	assert_int_equal(l.script.txn_revision, 22);
	assert_int_equal(l.script.txn_ops, 1 + 12);
	assert_string_equal(l.log,
			    "I watches can resume from revision 1: loaded 12 changes from " DIRECTORY "\n");
	assert_int_equal(drops(&l), 0);
	assert_int_equal(status_of(&l).history, 1);
	assert_int_equal(history_of(&l)->loaded->latest.count, 0); /* who was asked for is not kept */
	assert_int_equal(l.script.starts[0], 23);
	local_fini(&l);
}

/* The store shows one record otherwise than the history knows it, in one number or byte. */
static void any_difference_of_a_witness_drops_the_history(void **state)
{
	for (unsigned what = 0; what < 7; what++) {
		struct local  l;
		struct vd_kv *other;
		size_t	      which = 2;

		local_init(&l, 10);
		record_and_stop(&l, 4);
		other = new_record("/registry/pods/ns/p0013", 13, 13, 1);
		switch (what) {
		case 0: other->mod_rev = 12; break;
		case 1: other->create_rev = 12; break;
		case 2: other->version = 2; break;
		case 3: other->data[other->key_size] = '['; break;
		case 4: l.script.has[which] = l.script.has[--l.script.has_count]; break;
		case 5: l.script.txn_short = 3; break; /* results are missing */
		default: l.script.txn_short = 1; break;
		}
		if (what < 4)
			l.script.has[which] = other;
		local_open(&l);
		assert_int_equal(lines_with(&l, "W "), 1);
		assert_int_equal(lines_with(&l,
					    "W the local history in " DIRECTORY
					    " is dropped, clients from before this start must list again: "
					    "etcd has another version of /registry/pods/ns/p00"),
				 1);
		assert_int_equal(
			lines_with(&l,
				   what >= 5 ?
					   "/p0011 at revision 14: it was restored, or is another cluster\n" :
					   "/p0013 at revision 14: it was restored, or is another cluster\n"),
			1);
		assert_int_equal(drops(&l), 1);
		assert_int_equal(status_of(&l).history, 0);
		assert_int_equal(l.script.starts[0], 2); /* the store has compacted nothing */
		vd_kv_unref(other);
		local_fini(&l);
	}
}

/* A key whose last record was its deletion must be absent. */
static void a_deletion_is_a_witness_too(void **state)
{
	for (int is_there = 0; is_there < 2; is_there++) {
		struct local  l;
		struct step  *step;
		struct vd_kv *back = new_record("/registry/pods/ns/p0011", 11, 11, 1);

		local_init(&l, 10);
		local_open(&l);
		say(&l, 11, 1);
		step = next_step(&l);
		step->events[0] =
			(struct vd_store_event) { .is_delete = true,
						  .kv = new_record("/registry/pods/ns/p0011", 0, 12, 0),
						  .previous = vd_kv_ref(back) };
		step->event_count = 1;
		step->revision = l.script.status.current = 12;
		now_ready(&l);
		local_close(&l);
		if (!is_there)
			l.script.has_count = 0;
		local_open(&l);
		assert_int_equal(status_of(&l).history, is_there ? 0 : 1);
		assert_int_equal(lines_with(&l, "W "), is_there);
		vd_kv_unref(back);
		local_fini(&l);
	}
}

/* What may pass is asked five times, a second apart; then, as anything else at once, it is the answer, and
 * nothing on the disk has changed. */
static void a_store_that_cannot_say_is_not_believed_to_be_another_one(void **state)
{
	static const struct {
		vd_status status;
		bool	  may_pass;
	} cases[] = { { VD_UNAVAILABLE, true }, { VD_TIMEOUT, true },	{ VD_FULL, true },
		      { VD_CLOSED, false },	{ VD_INTERNAL, false }, { VD_NOMEM, false } };

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (int is_submit = 0; is_submit < 2; is_submit++) {
			struct local	l;
			struct vd_error error = { 0 };

			local_init(&l, 10);
			record_and_stop(&l, 4);
			l.log[0] = 0;
			l.script.txn_fails = is_submit ? 0 : UINT_MAX;
			l.script.txn_code = cases[i].status;
			l.script.txn_submit = is_submit ? cases[i].status : VD_OK;
			assert_status(local_try_open(&l, &error), cases[i].status);
			assert_string_equal(error.message, is_submit ? vd_status_sentence(cases[i].status) :
								       "the script answers no");
			assert_int_equal(l.script.txns, cases[i].may_pass ? 5 : 1);
			for (unsigned k = 1; k < l.script.txns; k++)
				assert_int_equal(l.script.txn_at[k].ns - l.script.txn_at[k - 1].ns,
						 VD_SECONDS(1).ns);
			assert_string_equal(l.log, "");
			assert_false(l.script.is_closed); /* it stays the caller's */
			/* The next start finds everything, at the last moment. */
			forget_opens(&l);
			l.script.txn_submit = VD_OK;
			l.script.txn_fails = cases[i].may_pass ? 4 : 0;
			local_open(&l);
			assert_int_equal(l.script.txns, cases[i].may_pass ? 5 : 1);
			assert_int_equal(status_of(&l).history, 1);
			assert_string_equal(l.log, "I watches can resume from revision 1: loaded 4 changes "
						   "from " DIRECTORY "\n");
			local_fini(&l);
		}
}

static void a_store_without_what_came_after_drops_the_history(void **state)
{
	static const struct {
		vd_status   status;
		const char *why;
	} cases[] = { { VD_EXPIRED, "etcd has compacted the changes after revision 14\n" },
		      { VD_TOO_LARGE_REVISION,
			"etcd has not reached revision 14: it was restored, or is another cluster\n" } };

	for (size_t i = 0; i < 2; i++) {
		struct local l;

		local_init(&l, 10);
		record_and_stop(&l, 4);
		l.script.txn_fails = 1;
		l.script.txn_code = cases[i].status;
		l.script.status.compacted = 20;
		l.script.status.current = 30;
		local_open(&l);
		assert_int_equal(l.script.txns, 1);
		assert_int_equal(lines_with(&l, cases[i].why), 1);
		assert_int_equal(lines_with(&l, "W "), 1);
		assert_int_equal(drops(&l), 1);
		assert_int_equal(l.script.starts[0], 21);
		/* A drop that was said is not said again when the store looked back too far. */
		say_end(&l, VD_EXPIRED, 25);
		assert_int_equal(lines_with(&l, "W "), 1);
		assert_int_equal(drops(&l), 1);
		local_fini(&l);
	}
}

/* Marks alone: no key can be compared, so nothing is told, but nothing is dropped either. */
static void marks_alone_are_nothing_to_believe(void **state)
{
	struct local l;

	local_init(&l, 10);
	local_open(&l);
	send_progress(&l, 10);
	local_close(&l);
	forget_opens(&l);
	local_open(&l);
	assert_string_equal(l.log, "");
	assert_int_equal(drops(&l), 0);
	assert_int_equal(status_of(&l).history, 0);
	local_fini(&l);
}

/* ---- Which watches the loaded history serves ---- */

static void only_watches_inside_the_loaded_history_are_answered_by_it(void **state)
{
	static const struct {
		vd_rev	    start;
		const char *key;
		bool	    is_loaded;
	} cases[] = {
		{ 0, "/registry/pods/", false },  { 1, "/registry/pods/", false },
		{ 2, "/registry/pods/", true },	  { 14, "/registry/pods/", true },
		{ 15, "/registry/pods/", false }, { 5, "/registry/", true },
		{ 5, "/registry", false },	  { 5, "/other/longer/", false },
	};
	struct local l;

	local_init(&l, 10);
	record_and_stop(&l, 4);
	local_open(&l);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct vd_store_watch_request request = { .key = vd_bytes_of(cases[i].key),
							  .start_revision = cases[i].start,
							  .ready = count_ready,
							  .ready_arg = &l.ready };
		struct vd_store_watch	     *watch;

		assert_status(vd_store_watch_open(l.store, &request, &watch, NULL), VD_OK);
		assert_int_equal(l.script.starts[l.script.opens - 1],
				 cases[i].is_loaded ? 15 : cases[i].start);
		assert_int_equal(watch != &l.script.watch, cases[i].is_loaded);
		vd_store_watch_close(watch);
	}
	local_fini(&l);
}

/* ---- What is told of it ---- */

static void the_span_is_the_age_of_the_oldest_record(void **state)
{
	struct local l;

	local_init(&l, 10);
	local_open(&l);
	vdi_sim_advance(l.env, VD_SECONDS(50));
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_SPAN_SECONDS), 0); /* no record */
	say(&l, 11, 1);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_SPAN_SECONDS), 0);
	vdi_sim_advance(l.env, VD_MS(7999));
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_SPAN_SECONDS), 7);
	say(&l, 12, 2);
	vdi_sim_advance(l.env, VD_MS(2001));
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_SPAN_SECONDS), 10);
	/* It goes on across a restart. */
	local_close(&l);
	vdi_sim_advance(l.env, VD_SECONDS(90));
	local_open(&l);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_SPAN_SECONDS), 100);
	/* A clock that was set back makes no negative age. */
	vdi_sim_jump_wall(l.env, (vd_dur) { -VD_SECONDS(101).ns });
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_SPAN_SECONDS), 0);
	vdi_sim_jump_wall(l.env, VD_SECONDS(101));
	/* Everything was given up. */
	say_end(&l, VD_EXPIRED, 30);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_SPAN_SECONDS), 0);
	local_fini(&l);
}

static void metrics_say_what_is_on_the_disk(void **state)
{
	struct local l;
	int64_t	     before, size = 0;

	local_init(&l, 10);
	local_open(&l);
	before = metric_of(&l, VDI_METRIC_LOCAL_HISTORY_BYTES);
	assert_true(before > 0);
	say(&l, 11, 4);
	assert_true(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_BYTES) > before);
	before = metric_of(&l, VDI_METRIC_LOCAL_HISTORY_BYTES);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_OLDEST_REVISION), 1);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_NEWEST_REVISION), 14);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_RECORDING), 1);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_EVENTS_TOTAL), 4);
	local_close(&l);
	assert_non_null(vdi_disk_sim_content(l.disk, "history-0000000000000001.vdh", &size));
	assert_in_range(before, 1, size);
	/* From the moment when it is open. */
	assert_status(local_try_open(&l, NULL), VD_OK);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_BYTES), before);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_OLDEST_REVISION), 1);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_NEWEST_REVISION), 14);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_RECORDING), 0);
	vdi_sim_run_until_idle(l.env);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_BYTES), before);
	local_fini(&l);
}

static void collect_text(void *arg, struct vd_bytes json)
{
	char  *text = arg;
	size_t used = strlen(text);

	snprintf(text + used, 1024 - used, "%.*s", (int) json.size, (const char *) json.data);
}

static void the_dump_says_where_it_begins_and_ends(void **state)
{
	struct local l;
	char	     text[1024] = "", expected[1024];

	local_init(&l, 10);
	l.script.refuse_watch = VD_UNAVAILABLE;
	local_open(&l);
	vd_store_dump(l.store, collect_text, text);
	snprintf(expected, sizeof expected,
		 ",\"script\":true,\"localHistory\":{\"oldest\":1,\"newest\":1,\"bytes\":%lld,\"recording\":"
		 "false,\"inMemory\":false}",
		 (long long) metric_of(&l, VDI_METRIC_LOCAL_HISTORY_BYTES));
	assert_string_equal(text, expected);
	l.script.refuse_watch = VD_OK;
	vdi_sim_advance(l.env, VD_SECONDS(2));
	say(&l, 11, 4);
	local_close(&l);
	local_open(&l);
	text[0] = 0;
	vd_store_dump(l.store, collect_text, text);
	snprintf(expected, sizeof expected,
		 ",\"script\":true,\"localHistory\":{\"oldest\":1,\"newest\":14,\"bytes\":%lld,\"recording\":"
		 "true,\"inMemory\":true}",
		 (long long) metric_of(&l, VDI_METRIC_LOCAL_HISTORY_BYTES));
	assert_string_equal(text, expected);
	local_fini(&l);
}

/* Everything but what is kept is as the store below says. */
static void the_status_is_the_stores_with_what_is_kept(void **state)
{
	struct local	       l;
	struct vd_store_status status;

	local_init(&l, 10);
	record_and_stop(&l, 4);
	local_open(&l);
	l.script.status.size_bytes = 77;
	status = status_of(&l);
	assert_int_equal(status.current, 14);
	assert_int_equal(status.compacted, -1);
	assert_int_equal(status.size_bytes, 77);
	assert_true(status.remote);
	assert_int_equal(status.kept, 1);
	assert_int_equal(status.history, 1);
	l.script.status_code = VD_UNAVAILABLE;
	assert_status(vd_store_status_get(l.store, &status), VD_UNAVAILABLE);
	l.script.status_code = VD_OK;
	vd_store_shutdown(l.store);
	assert_int_equal(l.script.shutdown, 1);
	local_fini(&l);
}

/* A key may have 4,096 bytes; people see 200 of them. */
static void a_long_key_is_shown_in_part(void **state)
{
	struct local l;
	struct step *step;
	char	     key[301], expected[256];

	local_init(&l, 10);
	local_open(&l);
	memset(key, 'k', 300);
	memcpy(key, "/registry/", 10);
	key[300] = 0;
	step = next_step(&l);
	step->events[0].kv = new_record(key, 11, 11, 1);
	step->event_count = 1;
	step->revision = l.script.status.current = 11;
	now_ready(&l);
	local_close(&l);
	local_open(&l);
	snprintf(expected, sizeof expected, "etcd has another version of %.200s at revision 11: ", key);
	assert_int_equal(lines_with(&l, expected), 1);
	local_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_witness_is_asked_for_at_the_newest_revision),
		cmocka_unit_test(any_difference_of_a_witness_drops_the_history),
		cmocka_unit_test(a_deletion_is_a_witness_too),
		cmocka_unit_test(a_store_that_cannot_say_is_not_believed_to_be_another_one),
		cmocka_unit_test(a_store_without_what_came_after_drops_the_history),
		cmocka_unit_test(marks_alone_are_nothing_to_believe),
		cmocka_unit_test(only_watches_inside_the_loaded_history_are_answered_by_it),
		cmocka_unit_test(the_span_is_the_age_of_the_oldest_record),
		cmocka_unit_test(metrics_say_what_is_on_the_disk),
		cmocka_unit_test(the_dump_says_where_it_begins_and_ends),
		cmocka_unit_test(the_status_is_the_stores_with_what_is_kept),
		cmocka_unit_test(a_long_key_is_shown_in_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
