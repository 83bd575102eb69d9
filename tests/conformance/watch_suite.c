/* Each test opens a target, runs a script of writes, and compares the received events with a text, "+ns/x@5
 * ~ns/x@6 -ns/x@7 *@8 *END@8 !expired".
 *
 * Tests depend on time only through settle and await. In the simulator both let the given milliseconds pass;
 * with real threads settle waits until everything was delivered and await until its condition holds, without
 * a limit.
 */
#include "watch_suite.h"

#include "actor_sim.h"
#include "env.h"
#include "lock.h"

#define HANG VD_SECONDS(300)

static const struct watch_target *target;

struct viewer {
	struct vd_watcher   *watcher;
	struct vdi_lock	     lock; /* guards all members below */
	struct vdi_condition changed;
	size_t		     room;
	size_t		     count;
	struct {
		enum vd_watch_type type;
		vd_rev		   revision, object_revision;
		bool		   end;
		char		   name[40];
	} events[600];
	unsigned    ended;
	vd_status   reason, error;
	bool	    closed;
	const char *fault; /* set on the target's thread, checked on the test's */
};

static size_t deliver(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct viewer *viewer = arg;
	size_t	       taken;

	vdi_lock_acquire(&viewer->lock);
	if (viewer->ended)
		viewer->fault = "an event after the end";
	for (taken = 0; taken < count && viewer->room; taken++, viewer->room--) {
		struct vd_object *object = events[taken].object;

		if (viewer->error != VD_OK)
			viewer->fault = "an event after an error (R-226)";
		if (viewer->count == VDI_ARRAY_SIZE(viewer->events)) {
			viewer->fault = "more events than there can be";
			break;
		}
		viewer->events[viewer->count].type = events[taken].type;
		viewer->events[viewer->count].revision = events[taken].revision;
		viewer->events[viewer->count].object_revision = object ? vd_object_revision(object) : 0;
		viewer->events[viewer->count].end = events[taken].initial_events_end;
		viewer->events[viewer->count].name[0] = 0;
		if (object)
			snprintf(viewer->events[viewer->count].name, sizeof viewer->events[0].name,
				 "%.*s/%.*s", (int) vd_object_namespace(object).size,
				 (const char *) vd_object_namespace(object).data,
				 (int) vd_object_name(object).size,
				 (const char *) vd_object_name(object).data);
		if (events[taken].error)
			viewer->error = events[taken].error->code;
		viewer->count++;
	}
	vdi_condition_broadcast(&viewer->changed);
	vdi_lock_release(&viewer->lock);
	return taken;
}

static void note_ended(void *arg, vd_status reason)
{
	struct viewer *viewer = arg;

	vdi_lock_acquire(&viewer->lock);
	viewer->ended++;
	viewer->reason = reason;
	vdi_condition_broadcast(&viewer->changed);
	vdi_lock_release(&viewer->lock);
}

static void note_closed(void *arg)
{
	struct viewer *viewer = arg;

	vdi_lock_acquire(&viewer->lock);
	viewer->closed = true;
	vdi_condition_broadcast(&viewer->changed);
	vdi_lock_release(&viewer->lock);
}

struct scene {
	void		  *target;
	struct watch_place place;
	uint64_t	   seed;
};

static struct scene begin(uint64_t seed)
{
	struct scene scene = { .seed = seed };

	scene.target = target->open(seed, &scene.place);
	return scene;
}

static vd_rev revision(const struct scene *scene)
{
	return vd_cacher_revision(scene->place.cacher);
}

/* Changes an object of another resource. */
static vd_rev write_elsewhere(const struct scene *scene)
{
	vd_rev written = 0;

	assert_status(vd_store_put_wait(scene->place.store, vd_bytes_of("/registry/secrets/s"),
					vd_bytes_of("{}"), &written, NULL),
		      VD_OK);
	return written;
}

static bool is_real(void)
{
	return target->settle != NULL;
}

/* Lets the writes reach all watches. */
static void settle(struct scene *scene, int64_t ms)
{
	if (is_real())
		target->settle(scene->target);
	else
		vdi_sim_advance((struct vd_env *) (uintptr_t) scene->place.env, VD_MS(ms));
}

/* Waits until the condition holds for the viewer; in the simulator within ms. */
static void await(struct scene *scene, int64_t ms, struct viewer *viewer,
		  bool (*condition)(const struct viewer *viewer))
{
	vd_mono due = vd_mono_add(vd_env_now(scene->place.env), HANG);
	bool	holds = true, more = true;

	if (!is_real())
		vdi_sim_advance((struct vd_env *) (uintptr_t) scene->place.env, VD_MS(ms));
	vdi_lock_acquire(&viewer->lock);
	while (!(holds = condition(viewer)) && is_real() && more)
		more = vdi_condition_wait_until(&viewer->changed, &viewer->lock, due);
	vdi_lock_release(&viewer->lock);
	assert_true(holds);
}

static bool is_closed(const struct viewer *viewer)
{
	return viewer->closed;
}

static bool is_ended(const struct viewer *viewer)
{
	return viewer->ended;
}

static bool has_bookmark(const struct viewer *viewer)
{
	for (size_t i = 0; i < viewer->count; i++)
		if (viewer->events[i].type == VD_WATCH_BOOKMARK)
			return true;
	return false;
}

static bool has_bookmark_or_end(const struct viewer *viewer)
{
	return viewer->ended || has_bookmark(viewer);
}

static struct viewer *open_viewer_with_room(struct scene *scene, const struct vd_watch_options *options,
					    size_t room)
{
	struct viewer	    *viewer = calloc(1, sizeof *viewer);
	struct vd_watch_sink sink = { deliver, note_ended, viewer,
				      scene->seed % 2 ? vdi_env_executor(scene->place.env) : NULL };

	viewer->room = room;
	vdi_lock_init(&viewer->lock, VDI_LOCK_LEAF);
	vdi_condition_init(&viewer->changed);
	assert_status(vd_cacher_watch(scene->place.cacher, options, &sink, &viewer->watcher, NULL), VD_OK);
	return viewer;
}

static struct viewer *open_viewer(struct scene *scene, const struct vd_watch_options *options)
{
	return open_viewer_with_room(scene, options, SIZE_MAX);
}

/* The viewer accepts everything from now on. */
static void make_room(struct viewer *viewer)
{
	vdi_lock_acquire(&viewer->lock);
	viewer->room = SIZE_MAX;
	vdi_lock_release(&viewer->lock);
	vd_watcher_resume(viewer->watcher);
}

static const char *text_of(struct viewer *viewer)
{
	static char text[32768];
	size_t	    size = 0;

	text[0] = 0;
	vdi_lock_acquire(&viewer->lock);
	for (size_t i = 0; i < viewer->count; i++)
		if (viewer->events[i].type == VD_WATCH_ERROR)
			size += (size_t) snprintf(text + size, sizeof text - size, "%s!%s", i ? " " : "",
						  vd_status_name(viewer->error));
		else
			size += (size_t) snprintf(
				text + size, sizeof text - size, "%s%c%s%s@%lld", i ? " " : "",
				"+~-*"[viewer->events[i].type], viewer -> events[i].name,
				viewer->events[i].end ? "END" : "", (long long) viewer->events[i].revision);
	viewer->count = 0;
	vdi_lock_release(&viewer->lock);
	return text;
}

static struct viewer *close_viewer(struct scene *scene, struct viewer *viewer)
{
	vd_watcher_close(viewer->watcher, note_closed, viewer);
	await(scene, 5, viewer, is_closed);
	if (viewer->fault)
		fail_msg("%s", viewer->fault);
	vdi_condition_fini(&viewer->changed);
	vdi_lock_fini(&viewer->lock);
	free(viewer);
	return NULL;
}

#define ASSERT_TEXT(viewer, ...)                                                                             \
	do {                                                                                                 \
		char expected_[2048];                                                                        \
		snprintf(expected_, sizeof expected_, __VA_ARGS__);                                          \
		assert_string_equal(text_of(viewer), expected_);                                             \
	} while (0)

/* With odd seeds, watches run on an executor of their own. */
#define EACH_SEED(seed) for (uint64_t seed = 1; seed <= (is_real() ? 2 : 4); seed++)

static void t050_r219_add_modify_enter_leave_delete(void **state)
{
	EACH_SEED(seed)
	{
		struct scene		s = begin(seed);
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct viewer	       *v;
		long long		a, b, c, d;

		options.revision = revision(&s);
		options.field_selector = vd_bytes_of("spec.nodeName=n1");
		v = open_viewer(&s, &options);
		target->put(s.target, "ns", "x", NULL, NULL);
		a = target->put(s.target, "ns", "x", NULL, "n1");
		b = target->put(s.target, "ns", "x", "web", "n1");
		c = target->put(s.target, "ns", "x", "web", "n2");
		target->remove(s.target, "ns", "x");
		target->put(s.target, "ns", "y", NULL, "n1");
		d = target->remove(s.target, "ns", "y");
		settle(&s, 20);
		/* T-061, R-130: a deletion carries its own revision and the last state. */
		assert_int_equal(v->events[4].object_revision, d - 1);
		ASSERT_TEXT(v, "+ns/x@%lld ~ns/x@%lld -ns/x@%lld +ns/y@%lld -ns/y@%lld", a, b, c, d - 1, d);
		close_viewer(&s, v);
		target->close(s.target);
	}
}

/* namespace x name x nodeName, live and as initial state, compared with plain string comparison. rules:
 * */
static void t052_r525_r543_scopes_and_selectors(void **state)
{
	static const char *const spaces[] = { "", "a", "b" };
	static const char *const names[] = { "", "x", "y" };
	static const char *const nodes[] = { "", "n1", "n2" };

	for (unsigned combination = 0; combination < 27; combination++)
		for (unsigned by_field = 0; by_field < 2; by_field++)
			for (unsigned initial = 0; initial < 2; initial++) {
				struct scene		s = begin(combination);
				struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
				const char *ns = spaces[combination % 3], *name = names[combination / 3 % 3];
				const char *node = nodes[combination / 9];
				char	    field[96], expected[256] = "";
				struct viewer *v = NULL;
				size_t	       size = 0;

				snprintf(field, sizeof field, "%s%s%s%s%s%s",
					 *node ? "spec.nodeName=" : "spec.nodeName!=none", node,
					 by_field && *ns ? ",metadata.namespace=" : "", by_field ? ns : "",
					 by_field && *name ? ",metadata.name=" : "", by_field ? name : "");
				options.field_selector = vd_bytes_of(field);
				if (!by_field) {
					options.namespace_name = vd_bytes_of(ns);
					options.name = vd_bytes_of(name);
				}
				options.revision = initial ? VD_REVISION_ANY : revision(&s);
				if (!initial)
					v = open_viewer(&s, &options);
				for (unsigned i = 0; i < 8; i++) {
					const char *in = i & 4 ? "b" : "a", *called = i & 2 ? "y" : "x",
						   *on = i & 1 ? "n2" : "n1";
					char   unique[8];
					vd_rev revision;

					/* There cannot be two objects of one name: the node is part of the
					 * state, so only the last one counts. */
					snprintf(unique, sizeof unique, "%s", called);
					if (initial && !(i & 1))
						continue;
					revision = target->put(s.target, in, unique, NULL, on);
					if ((*ns && strcmp(ns, in)) || (*name && strcmp(name, called)))
						continue;
					if (initial ? !*node || !strcmp(node, on) :
						      !*node || !strcmp(node, on) || (i & 1))
						size += (size_t) snprintf(
							expected + size, sizeof expected - size,
							"%s%s%s/%s@%lld", size ? " " : "",
							initial || !(i & 1) ||
									(*node && !strcmp(node, "n2")) ?
								"+" :
							*node ? "-" :
								"~",
							in, called, (long long) revision);
				}
				settle(&s, 20);
				if (initial) {
					v = open_viewer(&s, &options);
					settle(&s, 20);
				}
				assert_string_equal(text_of(v), expected);
				close_viewer(&s, v);
				target->close(s.target);
			}
}

static void t053_t055_r480_from_zero_and_from_a_revision(void **state)
{
	EACH_SEED(seed)
	{
		struct scene		s = begin(seed);
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct viewer	       *zero, *later;
		long long		a, b, c;

		a = target->put(s.target, "ns", "x", NULL, NULL);
		b = target->put(s.target, "ns", "y", NULL, NULL);
		settle(&s, 20);
		options.revision = VD_REVISION_ANY;
		zero = open_viewer(&s, &options);
		options.revision = a;
		later = open_viewer(&s, &options);
		settle(&s, 20);
		c = target->put(s.target, "ns", "x", "web", NULL);
		settle(&s, 20);
		ASSERT_TEXT(zero, "+ns/x@%lld +ns/y@%lld ~ns/x@%lld", a, b, c);
		ASSERT_TEXT(later, "+ns/y@%lld ~ns/x@%lld", b, c);
		close_viewer(&s, zero);
		close_viewer(&s, later);
		target->close(s.target);
	}
}

/* rules: R-554 */
static void t056_t060_t128_who_does_not_read_keeps_a_prefix_and_delays_nobody(void **state)
{
	EACH_SEED(seed)
	{
		struct scene		s = begin(seed);
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct viewer	       *stuck[50], *reader;
		vd_rev			first;

		options.revision = first = revision(&s);
		reader = open_viewer(&s, &options);
		for (unsigned i = 0; i < 50; i++) {
			stuck[i] = open_viewer_with_room(&s, &options, i % 12);
		}
		for (unsigned i = 0; i < 22; i++) {
			target->put(s.target, "ns", "x", NULL, NULL);
			if (i % 7 == 0)
				settle(&s, 10);
		}
		settle(&s, 10);
		assert_int_equal(reader->count, 22);
		for (unsigned i = 0; i < 50; i++) {
			assert_int_equal(stuck[i]->count, i % 12);
			if (i % 2) /* it continues where it stopped */
				make_room(stuck[i]);
		}
		settle(&s, 10);
		for (unsigned i = 0; i < 50; i++) {
			assert_int_equal(stuck[i]->count, i % 2 ? 22 : i % 12);
			for (size_t k = 0; k < stuck[i]->count; k++)
				assert_int_equal(stuck[i]->events[k].revision, first + 1 + (vd_rev) k);
			close_viewer(&s, stuck[i]);
		}
		close_viewer(&s, reader);
		target->close(s.target);
	}
}

/* A bookmark is sent in the two seconds before the deadline. A real machine that pauses for that long misses
 * it; then the watch is repeated. */
static struct viewer *view_until_deadline(struct scene *scene, struct vd_watch_options *options,
					  struct viewer **ret_without)
{
	for (unsigned attempt = 0;; attempt++) {
		struct viewer *with;

		options->deadline = vd_mono_add(vd_env_now(scene->place.env), VD_SECONDS(3));
		options->allow_bookmarks = false;
		*ret_without = open_viewer(scene, options);
		options->allow_bookmarks = true;
		with = open_viewer(scene, options);
		await(scene, 2900, with, has_bookmark_or_end);
		if (with->count || !is_real() || attempt == 20)
			return with;
		close_viewer(scene, with);
		close_viewer(scene, *ret_without);
	}
}

static void t064_t122_r558_a_bookmark_before_the_deadline_if_it_is_allowed(void **state)
{
	EACH_SEED(seed)
	{
		struct scene		s = begin(seed);
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct viewer	       *with, *without;
		vd_rev			seen;

		options.revision = seen = target->put(s.target, "ns", "x", NULL, NULL);
		with = view_until_deadline(&s, &options, &without);
		assert_true(with->count >= 1);
		assert_int_equal(with->events[0].type, VD_WATCH_BOOKMARK);
		assert_true(with->events[0].revision >= seen);
		assert_false(with->events[0].end);
		await(&s, 200, with, is_ended);
		await(&s, 0, without, is_ended);
		assert_int_equal(without->count, 0);
		assert_status(with->reason, VD_TIMEOUT); /* T-059: the end is not an error event */
		assert_status(without->reason, VD_TIMEOUT);
		assert_status(with->error, VD_OK);
		close_viewer(&s, with);
		close_viewer(&s, without);
		target->close(s.target);
	}
}

/* Writes continue while bookmarks are sent. */
static struct viewer *view_writes(struct scene *scene, struct vd_watch_options *options)
{
	for (unsigned attempt = 0;; attempt++) {
		struct viewer *viewer;

		options->revision = revision(scene);
		options->deadline = vd_mono_add(vd_env_now(scene->place.env), VD_SECONDS(3));
		viewer = open_viewer(scene, options);
		for (unsigned i = 0; i < 100; i++) {
			target->put(scene->target, "ns", "x", NULL, NULL);
			settle(scene, 29);
		}
		await(scene, 0, viewer, has_bookmark_or_end);
		for (unsigned i = 0; i < 5; i++)
			target->put(scene->target, "ns", "x", NULL, NULL);
		settle(scene, 5);
		if (has_bookmark(viewer) || !is_real() || attempt == 20)
			return viewer;
		close_viewer(scene, viewer);
	}
}

static void t065_r551_r619_bookmarks_stand_where_they_say(void **state)
{
	EACH_SEED(seed)
	{
		struct scene		s = begin(seed);
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct viewer	       *v;
		vd_rev			last = 0;
		unsigned		bookmarks = 0;

		options.allow_bookmarks = true;
		v = view_writes(&s, &options);
		vdi_lock_acquire(&v->lock);
		for (size_t i = 0; i < v->count; i++) {
			if (v->events[i].type == VD_WATCH_BOOKMARK) {
				bookmarks++;
				assert_true(v->events[i].revision >= last);
			} else {
				assert_true(v->events[i].revision > last);
			}
			last = v->events[i].revision;
		}
		vdi_lock_release(&v->lock);
		assert_true(bookmarks >= 1);
		close_viewer(&s, v);
		target->close(s.target);
	}
}

static void t066_t067_t123_t132_initial_events(void **state)
{
	EACH_SEED(seed)
	{
		static const enum vd_tristate sends[] = { VD_UNSET, VD_FALSE, VD_TRUE };
		struct scene		      s = begin(seed);
		long long		      a, b, now;

		a = target->put(s.target, "ns", "x", NULL, NULL);
		b = target->put(s.target, "ns", "y", NULL, NULL);
		now = b;
		settle(&s, 20);
		for (unsigned revision = 0; revision < 4; revision++)
			for (unsigned send = 0; send < 3; send++)
				for (unsigned bookmarks = 0; bookmarks < 2; bookmarks++) {
					struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
					struct viewer	       *v;
					char			expected[256] = "";
					bool state_first = send == 2 || (send == 0 && revision < 2);

					options.revision = revision == 0 ? VD_REVISION_UNSET :
							   revision == 1 ? VD_REVISION_ANY :
							   revision == 2 ? a :
									   now;
					options.send_initial_events = sends[send];
					options.allow_bookmarks = bookmarks;
					v = open_viewer(&s, &options);
					settle(&s, 20);
					if (state_first)
						snprintf(expected, sizeof expected, "+ns/x@%lld +ns/y@%lld",
							 a, b);
					else if (revision == 2)
						snprintf(expected, sizeof expected, "+ns/y@%lld", b);
					if (send == 2 && bookmarks)
						snprintf(expected + strlen(expected), 64, " *END@%lld", now);
					assert_string_equal(text_of(v), expected);
					close_viewer(&s, v);
				}
		/* Later events follow the bookmark. An empty scope gets its bookmark, too. */
		{
			struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
			struct viewer	       *v, *empty;
			long long		c;

			options.send_initial_events = VD_TRUE;
			options.allow_bookmarks = true;
			v = open_viewer(&s, &options);
			options.namespace_name = vd_bytes_of("nobody");
			empty = open_viewer(&s, &options);
			settle(&s, 20);
			c = target->put(s.target, "ns", "x", "web", NULL);
			settle(&s, 20);
			ASSERT_TEXT(v, "+ns/x@%lld +ns/y@%lld *END@%lld ~ns/x@%lld", a, b, now, c);
			ASSERT_TEXT(empty, "*END@%lld", now);
			close_viewer(&s, v);
			close_viewer(&s, empty);
		}
		target->close(s.target);
	}
}

static void t068_r524_the_end_bookmark_knows_of_writes_elsewhere(void **state)
{
	EACH_SEED(seed)
	{
		struct scene		s = begin(seed);
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct viewer	       *v;
		long long		a, global;

		a = target->put(s.target, "ns", "x", NULL, NULL);
		global = write_elsewhere(&s);
		options.send_initial_events = VD_TRUE;
		options.allow_bookmarks = true;
		v = open_viewer(&s, &options);
		settle(&s, 3500);
		ASSERT_TEXT(v, "+ns/x@%lld *END@%lld", a, global);
		close_viewer(&s, v);
		target->close(s.target);
	}
}

static void t069_r481_one_name(void **state)
{
	EACH_SEED(seed)
	{
		struct scene		s = begin(seed);
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct viewer	       *v;
		long long		b;

		target->put(s.target, "ns", "x", NULL, NULL);
		target->put(s.target, "ns", "xx", NULL, NULL);
		b = target->put(s.target, "other", "y", NULL, NULL);
		options.field_selector = vd_bytes_of("metadata.name=y");
		options.send_initial_events = VD_TRUE;
		options.allow_bookmarks = true;
		v = open_viewer(&s, &options);
		settle(&s, 200);
		ASSERT_TEXT(v, "+other/y@%lld *END@%lld", b, b);
		close_viewer(&s, v);
		target->close(s.target);
	}
}

static void t070_r226_an_error_is_the_last_event(void **state)
{
	EACH_SEED(seed)
	{
		struct scene		s = begin(seed);
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct viewer	       *v[10];

		options.send_initial_events = VD_TRUE;
		options.revision = revision(&s) + 1000; /* never reached: R-124 */
		for (unsigned i = 0; i < 10; i++)
			v[i] = open_viewer(&s, &options);
		for (unsigned i = 0; i < 20; i++) {
			target->put(s.target, "ns", "x", NULL, NULL);
			if (!is_real()) /* watches at such a revision are never opened */
				settle(&s, 250);
		}
		for (unsigned i = 0; i < 10; i++) {
			await(&s, 0, v[i], is_ended);
			assert_int_equal(v[i]->ended, 1);
			ASSERT_TEXT(v[i], "!%s", vd_status_name(VD_TOO_LARGE_REVISION));
			close_viewer(&s, v[i]);
		}
		target->close(s.target);
	}
}

static void t118_t144_r522_no_event_twice_and_none_missing(void **state)
{
	EACH_SEED(seed)
	{
		struct scene   s = begin(seed);
		struct viewer *v[40];
		vd_rev	       first = revision(&s);

		for (unsigned i = 0; i < 40; i++) { /* opened between writes, with state */
			struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

			target->put(s.target, "ns", "x", NULL, NULL);
			options.revision = i % 2 ? VD_REVISION_ANY : VD_REVISION_UNSET;
			v[i] = open_viewer_with_room(&s, &options, 1 + i % 5);
		}
		for (unsigned i = 0; i < 40; i++)
			make_room(v[i]);
		settle(&s, 20);
		for (unsigned i = 0; i < 40; i++) {
			assert_true(v[i]->count >= 1);
			for (size_t k = 1; k < v[i]->count; k++)
				assert_int_equal(v[i]->events[k].revision, v[i]->events[k - 1].revision + 1);
			assert_int_equal(v[i]->events[v[i]->count - 1].revision, first + 40);
			close_viewer(&s, v[i]);
		}
		target->close(s.target);
	}
}

int watch_suite_run(const struct watch_target *suite_target)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t050_r219_add_modify_enter_leave_delete),
		cmocka_unit_test(t052_r525_r543_scopes_and_selectors),
		cmocka_unit_test(t053_t055_r480_from_zero_and_from_a_revision),
		cmocka_unit_test(t056_t060_t128_who_does_not_read_keeps_a_prefix_and_delays_nobody),
		cmocka_unit_test(t064_t122_r558_a_bookmark_before_the_deadline_if_it_is_allowed),
		cmocka_unit_test(t065_r551_r619_bookmarks_stand_where_they_say),
		cmocka_unit_test(t066_t067_t123_t132_initial_events),
		cmocka_unit_test(t068_r524_the_end_bookmark_knows_of_writes_elsewhere),
		cmocka_unit_test(t069_r481_one_name),
		cmocka_unit_test(t070_r226_an_error_is_the_last_event),
		cmocka_unit_test(t118_t144_r522_no_event_twice_and_none_missing),
	};

	struct CMUnitTest left[VDI_ARRAY_SIZE(tests)];
	size_t		  count = 0;

	target = suite_target;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(tests); i++) {
		const struct watch_suite_exception *exception = target->exceptions;

		while (exception && exception->test && strcmp(exception->test, tests[i].name) != 0)
			exception++;
		if (exception && exception->test)
			print_message("[ %s does not: %s: %s ]\n", target->name, exception->test,
				      exception->why);
		else
			left[count++] = tests[i];
	}
	return vdtest_run_group(target->name, left, count, NULL, NULL);
}
