/* The pump, case by case, as client-go tests its reflector: what is resumed, and what is listed again. */
#include "actor_sim.h"
#include "cacher_fixture.h"
#include "cacher_state.h"
#include "kube_peer.h"
#include "kube_peer_state.h"
#include "kube_source.h"
#include "kube_world.h"

static void health_of(void *arg, const struct vd_kube_health *health)
{
	if (health->resource)
		*(struct vd_kube_health *) arg = *health;
}

/* Health and the cacher's log have the reason of the last list. */
static void assert_cause(struct kube_world *world, vd_status code, const char *text)
{
	struct vd_kube_health health = { 0 };

	vd_kube_health(world->kube, health_of, &health);
	assert_status(health.list_cause.code, code);
	assert_non_null(strstr(health.list_cause.message, text));
	if (code != VD_OK)
		assert_non_null(strstr(world->cacher_log, text));
}

static unsigned lists(const struct kube_world *world)
{
	return world->peer->lists + world->peer->watch_lists;
}

static void open_filled(struct kube_world *world)
{
	kube_world_open(world, 3);
	kube_peer_put(world->peer, "pods", "a", "x", "");
	kube_world_open_cacher(world);
	kube_world_settle(world);
	assert_int_equal(lists(world), 1);
}

static void k502_k503_a_refused_watch_is_repeated_without_a_list(void **state)
{
	static const int codes[] = { 429, 500, 502, 503, 504, 401, 403 };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(codes); i++) {
		struct kube_world     world;
		struct vd_kube_health health;

		open_filled(&world);
		world.peer->refuse_code = codes[i];
		world.peer->refuse_count = 3;
		kube_peer_cut(world.peer);
		vdi_sim_advance(world.env, VD_MS(50));
		kube_peer_put(world.peer, "pods", "a", "y", "");
		kube_peer_delete(world.peer, "pods", "a", "x");
		vdi_sim_advance(world.env, VD_SECONDS(60));
		assert_int_equal(world.peer->refuse_count, 0);
		assert_true(kube_world_is_equal(&world));
		assert_int_equal(lists(&world), 1);
		assert_int_equal(world.cacher->reflector.relists, 0);
		vd_kube_health(world.kube, health_of, &health);
		assert_int_equal(health.state, VD_KUBE_WATCHING);
		assert_int_equal(health.attempts, 0);
		assert_true(health.error.code != VD_OK);
		kube_world_close(&world);
	}
}

static void k504_the_delays_grow(void **state)
{
	struct kube_world     world;
	struct vd_kube_health health;
	unsigned	      early, late;

	open_filled(&world);
	world.peer->faults.unreachable = 100;
	kube_peer_cut(world.peer);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	vd_kube_health(world.kube, health_of, &health);
	assert_int_equal(health.state, VD_KUBE_RETRYING);
	early = health.attempts;
	vdi_sim_advance(world.env, VD_SECONDS(3600));
	vd_kube_health(world.kube, health_of, &health);
	late = health.attempts - early;
	/* At most 30 s apart in the end, and never more often than at the start. */
	assert_in_range(late, 3600 / 90, 3600 / 10);
	assert_true(health.retry_at.ns > 0);
	world.peer->faults.unreachable = 0;
	vdi_sim_advance(world.env, VD_SECONDS(70));
	assert_true(kube_world_is_equal(&world));
	assert_int_equal(lists(&world), 1);
	kube_world_close(&world);
}

static bool has_request(const struct kube_world *world)
{
	return !TAILQ_EMPTY(&world->peer->transports->exchanges);
}

/* Neither earlier nor later than the health says. */
static void k504_an_attempt_is_made_when_it_is_due(void **state)
{
	struct kube_world     world;
	struct vd_kube_health health;

	open_filled(&world);
	world.peer->faults.unreachable = 100;
	kube_peer_cut(world.peer);
	for (unsigned attempts = 1; attempts < 6; attempts++) {
		vd_dur wait;

		for (health.attempts = 0; health.attempts < attempts;) {
			vdi_sim_advance(world.env, VD_MS(1));
			vd_kube_health(world.kube, health_of, &health);
		}
		assert_int_equal(health.state, VD_KUBE_RETRYING);
		wait = vd_mono_since(health.retry_at, vd_env_now(world.env));
		vdi_sim_advance(world.env, (vd_dur) { wait.ns - 1 });
		assert_false(has_request(&world));
		vdi_sim_advance(world.env, (vd_dur) { 1 });
		assert_true(has_request(&world));
	}
	kube_world_close(&world);
}

static void k505_an_expired_revision_costs_one_list(void **state)
{
	for (unsigned as_event = 0; as_event < 2; as_event++) {
		struct kube_world world;

		open_filled(&world);
		assert_cause(&world, VD_OK, "");
		world.peer->gone_as_event = as_event;
		kube_peer_cut(world.peer);
		for (int i = 0; i < 5; i++)
			kube_peer_put(world.peer, "pods", "a", "y", "");
		kube_peer_delete(world.peer, "pods", "a", "x");
		kube_peer_compact(world.peer);
		vdi_sim_advance(world.env, VD_SECONDS(30));
		kube_world_settle(&world);
		assert_true(kube_world_is_equal(&world));
		assert_int_equal(world.peer->gone, 1);
		assert_int_equal(lists(&world), 2);
		assert_int_equal(world.cacher->reflector.relists, 1);
		assert_cause(&world, VD_EXPIRED, "too old resource version");
		kube_world_close(&world);
	}
}

static void k506_a_revision_that_is_too_large_is_listed_again_if_the_server_went_back(void **state)
{
	struct kube_world world;
	char		  uid[64];

	open_filled(&world);
	for (int i = 0; i < 5; i++)
		kube_peer_put(world.peer, "pods", "a", "y", "");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	memcpy(uid, world.peer->uid, sizeof uid);
	kube_peer_restore(world.peer, world.peer->revision - 3);
	memcpy(world.peer->uid, uid, sizeof uid); /* a backup of the same cluster */
	vdi_sim_advance(world.env, VD_SECONDS(30));
	kube_world_settle(&world);
	assert_true(kube_world_is_equal(&world));
	assert_int_equal(lists(&world), 2);
	assert_cause(&world, VD_EXPIRED, "its revision went back");
	kube_peer_restore(world.peer, world.peer->revision);
	kube_peer_advance(world.peer);
	vdi_sim_advance(world.env, VD_SECONDS(30));
	assert_cause(&world, VD_EXPIRED, "the uid of its namespace kube-system changed");
	kube_peer_remove_resource(world.peer, "pods");
	vdi_sim_advance(world.env, VD_SECONDS(100));
	assert_cause(&world, VD_NOT_FOUND, "no longer has the resource");
	kube_peer_return_resource(world.peer, "pods");
	vdi_sim_advance(world.env, VD_SECONDS(100));
	assert_cause(&world, VD_EXPIRED, "the server has the resource again");
	kube_world_close(&world);
}

static void k507_a_long_list_is_read_in_pages(void **state)
{
	struct kube_world world;
	char		  name[16];

	kube_world_open(&world, 3);
	world.peer->watch_list = KUBE_PEER_WATCH_LIST_REFUSED;
	for (int i = 0; i < 1200; i++) {
		snprintf(name, sizeof name, "p%d", i);
		kube_peer_put(world.peer, "pods", "a", name, "");
	}
	kube_world_open_cacher(&world);
	kube_world_settle(&world);
	assert_true(kube_world_is_equal(&world));
	assert_int_equal(world.peer->lists, 1);
	assert_int_equal(world.peer->pages, 2);
	kube_world_close(&world);
}

static vd_status fill(struct vdi_kube_source *source, enum vdi_kube_event_type type, const char *object)
{
	struct vdi_kube_event event = { type, vd_bytes_of(object) };
	struct vd_error	      error;

	return vdi_kube_fill_event(source, &event, &error);
}

#define POD(name, revision)                                                                                  \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name                             \
	"\",\"namespace\":\"a\",\"resourceVersion\":\"" revision "\"}}"
#define BOOKMARK(revision, value)                                                                            \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" revision              \
	"\",\"annotations\":{\"k8s.io/initial-events-end\":\"" value "\"}}}"

static void k509_k510_changes_arrive_within_the_initial_events(void **state)
{
	struct kube_world	world;
	struct vdi_kube_source *source;

	kube_world_open(&world, 3);
	vdi_sim_advance(world.env, VD_MS(1));
	source = (struct vdi_kube_source *) world.store;
	vdi_kube_mirror_init(&source->pump.filling);
	assert_status(fill(source, VDI_KUBE_ADDED, POD("x", "5")), VD_OK);
	assert_status(fill(source, VDI_KUBE_ADDED, POD("y", "6")), VD_OK);
	assert_status(fill(source, VDI_KUBE_MODIFIED, POD("x", "7")), VD_OK);
	assert_status(fill(source, VDI_KUBE_DELETED, POD("y", "8")), VD_OK);
	assert_status(fill(source, VDI_KUBE_BOOKMARK, POD("", "8")), VD_UNSUPPORTED);
	assert_status(fill(source, VDI_KUBE_BOOKMARK, BOOKMARK("9", "false")), VD_UNSUPPORTED);
	assert_false(source->pump.is_filled);
	assert_status(fill(source, VDI_KUBE_BOOKMARK, BOOKMARK("9", "true")), VD_OK);
	assert_true(source->pump.is_filled);
	assert_int_equal(vdi_kube_mirror_count(&source->pump.mirror), 1);
	assert_int_equal(vdi_kube_mirror_get(&source->pump.mirror, vd_bytes_of(KUBE_PREFIX "a/x"))->mod_rev,
			 7);
	assert_int_equal(vdi_kube_pump_position(source), 9);
	kube_world_close(&world);
}

static void k511_k512_a_watch_ends_in_time_and_resumes_at_the_newest_revision(void **state)
{
	struct kube_world	world;
	struct vdi_kube_source *source;
	unsigned		watches;

	open_filled(&world);
	source = (struct vdi_kube_source *) world.store;
	watches = world.peer->watches;
	vdi_sim_advance(world.env, VD_SECONDS(295));
	assert_int_equal(world.peer->watches, watches);
	/* Bookmarks move the position, so that a compaction forces no list. */
	kube_peer_advance(world.peer);
	vdi_sim_advance(world.env, VD_SECONDS(61));
	assert_int_equal(vdi_kube_pump_position(source), world.peer->revision);
	kube_peer_compact(world.peer);
	vdi_sim_advance(world.env, VD_SECONDS(300));
	assert_true(world.peer->watches > watches);
	kube_peer_put(world.peer, "pods", "a", "y", "");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_true(kube_world_is_equal(&world));
	/* The cacher compares itself with the server now and then, by ranges. */
	assert_int_equal(world.peer->watch_lists, 1);
	assert_int_equal(world.cacher->reflector.relists, 0);
	kube_world_close(&world);
}

static vd_status send(struct vdi_kube_source *source, enum vdi_kube_event_type type, const char *object)
{
	struct vdi_kube_event event = { type, vd_bytes_of(object) };
	struct vd_error	      error;

	return source->pump.feed.event(&source->pump.feed, &event, &error);
}

#define SHORT_BOOKMARK(revision)                                                                             \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" revision "\"}}"

/* A server that sends the same event and cuts, over and over, is asked less and less often. */
static void k504_only_new_revisions_are_a_success(void **state)
{
	struct kube_world	world;
	struct vdi_kube_source *source;

	open_filled(&world);
	source = (struct vdi_kube_source *) world.store;
	assert_status(send(source, VDI_KUBE_MODIFIED, POD("x", "500")), VD_OK);
	source->pump.backoff.attempts = 3;
	assert_status(send(source, VDI_KUBE_MODIFIED, POD("x", "500")), VD_OK);
	assert_status(send(source, VDI_KUBE_MODIFIED, POD("x", "400")), VD_OK);
	assert_int_equal(source->repeated, 2);
	assert_int_equal(source->pump.backoff.attempts, 3);
	assert_status(send(source, VDI_KUBE_BOOKMARK, SHORT_BOOKMARK("600")), VD_OK);
	assert_int_equal(source->pump.backoff.attempts, 0);
	source->pump.backoff.attempts = 3;
	assert_status(send(source, VDI_KUBE_BOOKMARK, SHORT_BOOKMARK("600")), VD_OK);
	assert_int_equal(source->pump.backoff.attempts, 3);
	assert_status(send(source, VDI_KUBE_MODIFIED, POD("x", "700")), VD_OK);
	assert_int_equal(source->pump.backoff.attempts, 0);
	/* Nor is a watch that has lasted for a while a failure. */
	source->pump.backoff.attempts = 3;
	vdi_sim_advance(world.env, VD_SECONDS(6));
	assert_status(send(source, VDI_KUBE_MODIFIED, POD("x", "700")), VD_OK);
	assert_int_equal(source->pump.backoff.attempts, 0);
	kube_world_close(&world);
}

/* 404 that passes, twice: the watch between them has no events. */
static void answers_404_count_in_a_row(void **state)
{
	struct kube_world	world;
	struct vdi_kube_source *source;

	open_filled(&world);
	source = (struct vdi_kube_source *) world.store;
	for (int i = 0; i < 2; i++) {
		world.peer->refuse_code = 404;
		world.peer->refuse_count = 2;
		kube_peer_cut(world.peer);
		vdi_sim_advance(world.env, VD_SECONDS(4));
		assert_int_equal(world.peer->refuse_count, 0);
		assert_int_equal(source->pump.removed_answers, 2);
		vdi_sim_advance(world.env, VD_SECONDS(10));
		assert_int_equal(source->health.state, VD_KUBE_WATCHING);
		assert_int_equal(source->pump.removed_answers, 0);
	}
	assert_true(kube_world_is_equal(&world));
	assert_int_equal(lists(&world), 1);
	kube_world_close(&world);
}

/* Without events of deletions, as after a cut. */
static void a_removed_resource_is_empty_within_10_s(void **state)
{
	struct kube_world world;

	open_filled(&world);
	kube_peer_cut(world.peer);
	kube_peer_remove_resource(world.peer, "pods");
	vdi_sim_advance(world.env, VD_SECONDS(5));
	assert_false(kube_world_is_equal(&world)); /* one answer is no proof */
	vdi_sim_advance(world.env, VD_SECONDS(5));
	kube_world_settle(&world);
	assert_true(kube_world_is_equal(&world));
	assert_cause(&world, VD_NOT_FOUND, "no longer has the resource");
	kube_world_close(&world);
}

static void ignore(void *arg)
{
	(void) arg;
}

/* Readers that wait for the first state are told what does not pass by itself; the rest they wait for. */
static void which_refusals_of_the_first_list_are_told(void **state)
{
	static const struct {
		int  code;
		bool is_told;
	} rows[] = { { 399, false }, { 400, true },  { 401, true }, { 403, true },
		     { 408, false }, { 410, false }, { 422, true }, { 429, false },
		     { 499, true },  { 500, false }, { 503, false } };
	const struct vd_store_stream_request request = {
		.range = { .key = vd_bytes_of(KUBE_PREFIX), .range_end = vd_bytes_of(KUBE_PREFIX_END) },
		.ready = ignore
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_store_stream *stream;
		struct vd_store_part	part;
		struct kube_world	world;
		vd_status		status;

		kube_world_open(&world, 3);
		world.peer->refuse_code = rows[i].code;
		world.peer->refuse_count = 1000;
		assert_status(vd_store_stream_open(world.store, &request, &stream), VD_OK);
		vdi_sim_advance(world.env, VD_SECONDS(2));
		status = vd_store_stream_next(stream, &part, NULL);
		if (rows[i].is_told ? status == VD_OK || status == VD_AGAIN : status != VD_AGAIN)
			fail_msg("%d: %d", rows[i].code, (int) status);
		vd_store_stream_close(stream);
		kube_world_close(&world);
	}
}

static void on_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	*(bool *) arg = true;
	list = vd_list_free(list);
}

/* A server without a watch cache proves no progress: the cacher's list is answered by that of the source. */
static void k505_a_server_without_a_watch_cache_is_listed_once(void **state)
{
	for (unsigned is_restored = 0; is_restored < 2; is_restored++) {
		struct kube_world      world;
		struct vd_list_options options = VD_LIST_OPTIONS_INIT;
		struct vd_error	       error;
		bool		       has_come = false;
		unsigned	       before;

		kube_world_open(&world, 3);
		world.peer->no_bookmarks = true;
		world.peer->watch_list = KUBE_PEER_WATCH_LIST_REFUSED;
		kube_peer_put(world.peer, "pods", "a", "x", "");
		kube_world_open_cacher(&world);
		kube_world_settle(&world);
		kube_peer_advance(world.peer);
		assert_status(vd_cacher_list(world.cacher, &options, on_list, &has_come, &error), VD_OK);
		vdi_sim_advance(world.env, VD_SECONDS(60));
		assert_true(has_come);
		assert_true(((struct vdi_kube_source *) world.store)->has_no_progress);
		before = lists(&world);
		if (is_restored) {
			kube_peer_restore(world.peer, world.peer->revision);
		} else {
			kube_peer_cut(world.peer);
			kube_peer_put(world.peer, "pods", "a", "y", "");
			kube_peer_put(world.peer, "pods", "a", "y", "");
			kube_peer_compact(world.peer);
		}
		kube_peer_advance(world.peer);
		vdi_sim_advance(world.env, VD_SECONDS(5));
		kube_world_settle(&world);
		assert_true(kube_world_is_equal(&world));
		assert_int_equal(world.cacher->reflector.relists, 1);
		assert_int_equal(lists(&world), before + 1);
		kube_world_close(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(k502_k503_a_refused_watch_is_repeated_without_a_list),
		cmocka_unit_test(k504_the_delays_grow),
		cmocka_unit_test(k504_an_attempt_is_made_when_it_is_due),
		cmocka_unit_test(which_refusals_of_the_first_list_are_told),
		cmocka_unit_test(k505_an_expired_revision_costs_one_list),
		cmocka_unit_test(k506_a_revision_that_is_too_large_is_listed_again_if_the_server_went_back),
		cmocka_unit_test(k507_a_long_list_is_read_in_pages),
		cmocka_unit_test(k509_k510_changes_arrive_within_the_initial_events),
		cmocka_unit_test(k511_k512_a_watch_ends_in_time_and_resumes_at_the_newest_revision),
		cmocka_unit_test(k504_only_new_revisions_are_a_success),
		cmocka_unit_test(k505_a_server_without_a_watch_cache_is_listed_once),
		cmocka_unit_test(answers_404_count_in_a_row),
		cmocka_unit_test(a_removed_resource_is_empty_within_10_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
